# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Draw integer noise with OpenDP, and write how often each number came.

In an environment of its own, in about a minute::

    pip install opendp==0.16.0
    python tests/auditors/draw_with_opendp.py
"""

import json
from collections import Counter
from importlib.metadata import version
from pathlib import Path

DRAWS, AT_ONCE, SCALE = 400_000, 100_000, 40.0


def main():
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    rows = dp.vector_domain(dp.atom_domain(T=int))
    makers = {
        "gaussian": dp.m.make_gaussian(rows, dp.l2_distance(T=float), scale=SCALE),
        "laplace": dp.m.make_laplace(rows, dp.l1_distance(T=int), scale=SCALE),
    }
    found = {"opendp": version("opendp"), "scale": SCALE}
    for name, maker in makers.items():
        counts = Counter()
        for _ in range(DRAWS // AT_ONCE):
            counts.update(maker([0] * AT_ONCE))
        found[name] = {str(value): counts[value] for value in sorted(counts)}
    path = Path(__file__).with_name("opendp_counts.json")
    path.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

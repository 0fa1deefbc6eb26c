# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The rates of private optimisation with heavy-tailed gradients, measured.

Xu, Ding, Xiang, Xu and Wang (2025) prove how the excess loss falls with the number of rows, the
budget and the moments of the gradients, for losses that grow like a power theta of the
distance from the minimum. This script runs the methods on the loss of their lower bounds
and fits the slopes in logarithms::

    python benchmarks/heavy_tails_rates.py            # under ten minutes of one core
    python benchmarks/heavy_tails_rates.py --quick    # a smoke run, writes nothing

It writes the tables into ``docs/benchmarks/heavy_tails_rates.rst`` and the picture into
``docs/_static/heavy_tails_rates.png``. Noise is seeded: the tables are the same every time.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import _heavy_experiments as experiments
from _heavy_page import page
from _heavy_picture import save_picture
from _rates_fit import Effort

from skdp.exceptions import SeededNoiseWarning

DOCS = Path(__file__).resolve().parents[1] / "docs"
SUITE = (
    "against_rows",
    "against_features",
    "against_budget",
    "against_tails",
    "against_longest",
    "lower_bound",
)


def main():
    """Measure, print the rates and, unless it is a smoke run, write tables and picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repeats, short sweeps")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--rst", type=Path, default=DOCS / "benchmarks/heavy_tails_rates.rst")
    parser.add_argument("--figure", type=Path, default=DOCS / "_static/heavy_tails_rates.png")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    effort = Effort(2, 2) if arguments.quick else Effort(arguments.repeats)
    print("experiment | variable | theory | fitted slope | mean excess losses")
    found = {}
    for name in SUITE:
        start = time.process_time()
        found[name] = getattr(experiments, name)(effort)
        for rate in found[name].values():
            errors = ", ".join(f"{value:.2g}" for value in rate.mean)
            print(" | ".join((*rate.cells()[:4], errors)), flush=True)
        print(f"    {name}: {time.process_time() - start:.0f} s CPU", flush=True)
    print(f"{time.process_time():.0f} s CPU")
    if arguments.quick:
        print("A smoke run: these are too few repeats to judge a slope by.")
    else:
        arguments.rst.write_text(page(found, effort.repeats), encoding="utf-8")
        save_picture(found, arguments.figure)


if __name__ == "__main__":
    main()

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""DPMedian next to diffprivlib's median, on the same columns.

diffprivlib needs older dependencies: this script makes an environment for it (see
`_environments.py`) and runs itself there::

    python benchmarks/median.py     # three minutes of one core

Columns are lognormal(3, 1) between the bounds 0 and 10,000, and integers of which four in
five are equal. Every figure is over 200 repeats with fresh noise on the same column. The
rank error is the distance of one half to the interval of ranks that the answer has, as a
fraction of the rows. Milliseconds are CPU time of the process. diffprivlib states no adjacency; its
exponential mechanism has the temperature 2/epsilon, that of replace-one here.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from _environments import add_argument, run_there

BOUNDS = (0.0, 1e4)
REPEATS = 200
CASES = [(kind, n, eps) for kind in ("lognormal", "ties") for n in (10**3, 10**5)
         for eps in (0.01, 0.1, 1.0)]  # fmt: skip


def column(kind, n):
    """Return one column of data."""
    rng = np.random.default_rng(0)
    if kind == "lognormal":
        return rng.lognormal(3, 1, size=n)
    return np.where(rng.random(n) < 0.8, 40, rng.integers(0, 100, size=n)).astype(float)


def skdp_median(adjacency):
    """Return a function that releases a median with skdp."""
    from skdp.location import DPMedian

    def median(x, epsilon):
        model = DPMedian(epsilon, mechanism="rank", adjacency=adjacency, bounds=BOUNDS)
        return model.fit(x[:, None]).location_[0]

    return median


def diffprivlib_median():
    """Return a function that releases a median with diffprivlib."""
    from diffprivlib import tools

    def median(x, epsilon):
        return float(tools.median(x, epsilon=epsilon, bounds=BOUNDS))

    return median


def methods(library):
    """Return the functions to compare, by name."""
    if library == "diffprivlib":
        return {"diffprivlib": diffprivlib_median()}
    return {f"skdp, {a}": skdp_median(a) for a in ("replace-one", "zero-out")}


def measure(median, kind, n, epsilon):
    """Return the figures of one cell."""
    x = column(kind, n)
    truth, released, failed, seconds = np.median(x), [], 0, []
    for _ in range(REPEATS):
        start = time.process_time()
        try:
            released.append(median(x, epsilon))
        except RuntimeError:
            failed += 1
        seconds.append(time.process_time() - start)
    if not released:
        return {"error": None, "rank": None, "failed": failed, "ms": 1e3 * np.median(seconds)}
    rank = [max(np.mean(x < r) - 0.5, 0.5 - np.mean(x <= r), 0.0) for r in released]
    return {
        "error": float(np.median(np.abs(np.array(released) - truth))),
        "rank": float(np.mean(rank)),
        "failed": failed,
        "ms": 1e3 * float(np.median(seconds)),
    }


def run(library):
    """Measure one library in this process."""
    warnings.simplefilter("ignore")
    results = {}
    for name, median in methods(library).items():
        median(column("lognormal", 100), 1.0)
        results[name] = [measure(median, *case) for case in CASES]
    return results


def main():
    """Run both libraries and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--library", choices=("skdp", "diffprivlib"), help="run one in this environment"
    )
    add_argument(parser)
    arguments = parser.parse_args()
    if arguments.library:
        print(json.dumps(run(arguments.library)))
        return
    results = run("skdp")
    command = (__file__, "--library", "diffprivlib")
    done = run_there("diffprivlib", arguments.environments, *command, capture_output=True)
    results |= json.loads(done.stdout)
    print("| column | n | ε | method | median abs. error | mean rank error | failed | CPU ms |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for i, (kind, n, epsilon) in enumerate(CASES):
        for name, cells in results.items():
            cell = cells[i]
            error, rank = (
                "" if cell[key] is None else f"{cell[key]:.2g}" for key in ("error", "rank")
            )
            failed, ms = f"{cell['failed']} of {REPEATS}", f"{cell['ms']:.2g}"
            print(f"| {kind} | {n:,} | {epsilon:g} | {name} | {error} | {rank} | {failed} | {ms} |")


if __name__ == "__main__":
    main()

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Errors, times and memory of local reports of vectors, beside theory and public peers.

It measures the mean squared error of every randomiser of the library against its closed form, and
prints what the parameters of Bhowmick et al. (2018) cost, and Table 1 of that paper::

    python benchmarks/local_mean.py             # fifteen minutes of one core
    python benchmarks/local_mean.py --no-peers  # ten, without peers
    python benchmarks/local_mean.py --quick     # a smoke run without them, writes nothing

Peers are programs beside articles. They are cloned at a pinned commit (see `_environments.py`) and
run from there as they are.

It writes ``docs/benchmarks/local_mean.rst`` and ``docs/_static/local_mean.png``. Errors are
seeded, but for those beside the peers; times are not.
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

# before numpy is loaded: times are those of one core
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))
import _local_runs as runs
from _environments import REPOSITORIES, add_argument, clone
from _local_page import page
from _local_peers import compare
from _local_picture import save_picture
from _local_theory import METHODS

from skdp.exceptions import SeededNoiseWarning

DOCS = Path(__file__).resolve().parents[1] / "docs"


def main():
    """Measure, print and, unless it is a smoke run, write page and picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows, few dimensions")
    parser.add_argument("--no-peers", action="store_true", help="measure ours only")
    parser.add_argument("--rst", type=Path, default=DOCS / "benchmarks/local_mean.rst")
    parser.add_argument("--figure", type=Path, default=DOCS / "_static/local_mean.png")
    add_argument(parser)
    arguments = parser.parse_args()
    folder = None
    if not (arguments.quick or arguments.no_peers):
        for name in REPOSITORIES:
            folder = clone(name, arguments.environments).parent
    warnings.simplefilter("ignore", SeededNoiseWarning)
    entries = 50_000 if arguments.quick else 2_000_000
    measured = []
    for name in METHODS:
        found = [runs.measure(name, *cell, entries) for cell in runs.cells(name, arguments.quick)]
        measured += [one for one in found if one is not None]
        worst = max((one for one in measured if one.name == name), key=lambda m: abs(m.ratio - 1))
        print(
            f"{name}: {len(found)} cells, worst ratio {worst.ratio:.4f} ± {worst.error:.4f} at "
            f"epsilon {worst.epsilon:g}, d = {worst.n_dims:,}; {time.process_time():.0f} s CPU",
            flush=True,
        )
    times, many = [], 10**5 if arguments.quick else 10**7
    for n_dims in runs.DIMS:
        n_rows = max(1, many // n_dims)
        for n_threads in (1, 2):
            times.append((n_rows, n_dims, n_threads, *runs.timed(n_rows, n_dims, 8.0, n_threads)))
    if not arguments.quick:
        for n_threads in (1, 2):
            times.append((10**5, 1000, n_threads, *runs.timed(10**5, 1000, 8.0, n_threads)))
    memory = [(n, d, runs.peak_memory(n, d)) for n, d in ((10, 10**6), (10_000, 1000))]
    searches = [(d, e, runs.time_of_parameters(d, e)) for d in (10, 10**6) for e in (0.5, 1000.0)]
    for line in (*times, *memory, *searches):
        print(line, flush=True)
    peers = []
    for found in compare(folder, arguments.quick):
        peers.append(found)
        print(found, flush=True)
    if arguments.quick:
        print("A smoke run: these are too few rows to judge an error by.")
    else:
        text = page(measured, times, memory, searches, peers)
        arguments.rst.write_text(text, encoding="utf-8")
        save_picture(measured, arguments.figure)


if __name__ == "__main__":
    main()

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Accuracy of every classifier beside the peers, on one page: docs/benchmarks/accuracy.rst.

One command makes the environments of the peers and fetches the data (see `_environments.py`),
measures, and writes the page::

    pip install ".[bench]"
    python benchmarks/accuracy.py             # about 40 minutes of two cores
    python benchmarks/accuracy.py --quick     # a smoke run of two data sets, writes no page

Every result is stored as soon as it is there (``--results DIR``): an interrupted run goes on where
it was when the command is given again, and a fresh run needs a fresh DIR. ``--part`` runs one
library and writes no page, ``--report`` writes the page from what is stored. Peers: diffprivlib,
Opacus, and DP-EBM of interpret.
"""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# before numpy is loaded: times are those of one thread
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
sys.path.insert(0, str(Path(__file__).parent))
import _accuracy_statistics
from _accuracy_methods import measure
from _accuracy_page import PICTURE, page, save_picture
from _accuracy_runs import measure_peer
from _accuracy_store import Store
from _environments import add_argument, add_data

ROOT = Path(__file__).resolve().parents[1]
PEERS = ("diffprivlib", "opacus", "interpret")
PARTS = ("skdp", *PEERS, "statistics")
#: what runs after each other, of about the same length
LANES = (("skdp", "interpret"), ("diffprivlib", "opacus", "statistics"))
QUICK = {"names": ("breast_cancer", "synthetic"), "most_splits": 2, "epsilons": (1.0,)}


def run_part(part, arguments):
    """Measure one library, or the small tables."""
    folder, given = arguments.results, QUICK if arguments.quick else {}
    if part == "skdp":
        measure(Store(folder / "skdp.jsonl"), **given)
    elif part == "statistics":
        few = {"n_seeds": 2, "regression_seeds": _accuracy_statistics.REGRESSION_SEEDS[:1]}
        few = few if arguments.quick else {}
        _accuracy_statistics.measure(Store(folder / "skdp_statistics.jsonl"), **few)
        _accuracy_statistics.measure_peer(folder, arguments.environments, **few)
    else:
        measure_peer(part, folder, arguments.environments, **given)


def run_all(arguments):
    """Run all parts, each in a process of its own, two at a time."""
    given = ["--results", arguments.results, "--environments", arguments.environments]
    given += ["--quick"] * arguments.quick

    def run(lane):
        for part in lane:
            command = [sys.executable, __file__, "--part", part, *map(str, given)]
            subprocess.run(command, check=True)

    with ThreadPoolExecutor() as pool:
        list(pool.map(run, LANES))


def main():
    """Measure, print and, unless it is a smoke run, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    task = parser.add_mutually_exclusive_group()
    task.add_argument("--part", choices=PARTS, help="run one part only")
    task.add_argument("--report", action="store_true", help="write the page of what is stored")
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks/results/accuracy")
    parser.add_argument("--rst", type=Path, default=ROOT / "docs/benchmarks/accuracy.rst")
    add_argument(parser)
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    if not arguments.quick:
        add_data(arguments.environments)
    if arguments.part:
        run_part(arguments.part, arguments)
        return
    if not arguments.report:
        run_all(arguments)
    if not arguments.quick:
        arguments.rst.write_text(page(arguments.results), encoding="utf-8")
        save_picture(arguments.results, ROOT / "docs/_static" / PICTURE)


if __name__ == "__main__":
    main()

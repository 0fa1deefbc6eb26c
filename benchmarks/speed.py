# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Speed: ratios to scikit-learn, diffprivlib and Opacus, share of memory bandwidth, growth.

One command, about half an hour of one core; ``--quick`` is a smoke run of two minutes::

    python benchmarks/speed.py

It makes the environments of diffprivlib and Opacus by itself (see `_environments.py`) and prints
tables; ``--page docs/user_guide/performance.rst`` puts them into the page. ``--part`` runs some
parts only, ``--results FILE`` keeps what was measured and lets the next call go on from there.

- "fits": `DPLogisticRegression` with its defaults, on dense and CSR rows of three sizes each,
  fitted in turn with scikit-learn's `LogisticRegression`; one more pass over the rows; and
  the time of plain reading (``X.sum()``, ``X.data.sum()``) divided by that of the pass: the share
  of the memory bandwidth, one for what no pass can beat. diffprivlib fits the same rows, in its
  environment and in turn with that environment's scikit-learn.
- "epochs": private stochastic gradients with the same batches and budget as Opacus.
- "estimators": each of ours next to what computes the same without privacy.
- "cvxpy": fits that minimise or recover by solvers of ours, and by cvxpy.
- "growth": doubling series and their exponents.
- "threads": wall-clock times with one thread and with all. Everything else is CPU seconds of a
  process that has one thread, so that other work on the machine disturbs it less.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from _environments import add_argument, run_there
from _machine import machine
from _one_thread import VARIABLES
from _speed_cvxpy import cvxpy_beside
from _speed_estimators import estimators
from _speed_fits import epochs, fits
from _speed_growth import growth
from _speed_page import tables, write
from _speed_rows import SIZES

HERE = Path(__file__).parent
#: of the table of estimators
MODERATE = ((10**5, 50, None), (10**5, 10**4, 30))


def peer_cells(peer, sizes, folder):
    """Return the cells that a peer measures in its own environment."""
    done = run_there(
        peer, folder, HERE / "_speed_peers.py", peer, json.dumps(sizes), stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def threads(scale):
    """Return wall-clock seconds for one thread and for as many as there are cores."""
    found = {}
    for number in sorted({1, len(os.sched_getaffinity(0))}):
        environment = {**os.environ, **dict.fromkeys(VARIABLES, str(number))}
        command = [sys.executable, HERE / "_speed_threads.py", str(scale)]
        done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
        found[number] = json.loads(done.stdout.splitlines()[-1])
    return found


def parts(quick, folder):
    """Return what measures each part, by its name, in the order of running."""
    sizes = [size for size in SIZES if not quick or size[0] == 10**4]
    moderate = ((2000, 20, None), (2000, 500, 10)) if quick else MODERATE
    return {
        "fits": lambda: list(fits(sizes)),
        "diffprivlib": lambda: peer_cells("diffprivlib", sizes, folder),
        "epochs": lambda: list(epochs(sizes)),
        "opacus": lambda: peer_cells("opacus", sizes, folder),
        "estimators": lambda: list(estimators(moderate, seconds=0.1 if quick else 1.0)),
        "cvxpy": lambda: list(cvxpy_beside(quick)),
        "growth": lambda: list(growth(0.01 if quick else 1.0)),
        "threads": lambda: threads(0.01 if quick else 1.0),
    }


def main():
    """Measure, and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_argument(parser)
    parser.add_argument("--quick", action="store_true", help="small rows only")
    parser.add_argument("--part", nargs="+", help="names of parts to run; all by default")
    parser.add_argument("--results", type=Path, help="JSON file that keeps what was measured")
    parser.add_argument("--page", type=Path, help="page that gets the tables")
    arguments = parser.parse_args()
    known = parts(arguments.quick, arguments.environments)
    for name in set(arguments.part or ()) - set(known):
        parser.error(f"--part must be among {', '.join(known)}; got {name}")
    found = {}
    if arguments.results and arguments.results.exists():
        found = json.loads(arguments.results.read_text())
    for name, measure in known.items():
        if arguments.part and name not in arguments.part:
            continue
        if name in found and not arguments.part:
            continue
        print(f"measuring {name}", file=sys.stderr, flush=True)
        # as it comes back from a file
        found[name] = json.loads(json.dumps(measure()))
        if arguments.results:
            arguments.results.write_text(json.dumps({**found, "machine": machine()}))
    text = tables({**found, "machine": found.get("machine", machine())})
    if arguments.page:
        write(arguments.page, text)
    else:
        print(text)


if __name__ == "__main__":
    main()

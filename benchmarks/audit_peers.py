# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Audit of diffprivlib's LogisticRegression: a lower bound on its epsilon.

diffprivlib needs older dependencies; this script makes an environment with pinned versions (see
`_environments.py`), runs itself there to collect outputs of many fits, and bounds epsilon
here. About five minutes of one core::

    python benchmarks/audit_peers.py

All rows are made up: two rows with the labels 0 and 1, at the origin, of which the second moves
to the bound `data_norm`. Every estimator has epsilon = 1 and is purely private by its
documentation. Noise is drawn by diffprivlib from the operating system, so figures differ a
little from run to run. Half of the fits choose the attack, the others bound; the bound holds
with a confidence of 99 % for each line.
"""

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from _environments import add_argument, run_there

EPSILON, CONFIDENCE = 1.0, 0.99
#: name, parameters; rows are two-dimensional arrays with one column
CASES = {
    "data_norm=1000, no intercept": {"data_norm": 1000.0, "fit_intercept": False},
    "data_norm=100, no intercept": {"data_norm": 100.0, "fit_intercept": False},
}


def collect(n_runs, folder):
    """Fit in the peer's environment; write the coefficients of every case."""
    from diffprivlib.models import LogisticRegression

    warnings.simplefilter("ignore")
    for place, given in enumerate(CASES.values()):
        worlds = []
        for moved in (0.0, given["data_norm"]):
            X, y = np.array([[0.0], [moved]]), np.array([0, 1])
            outputs = np.empty((n_runs, 2))
            for row in outputs:
                model = LogisticRegression(epsilon=EPSILON, **given).fit(X, y)
                row[:] = model.coef_[0, 0], model.intercept_[0]
            worlds.append(outputs)
        np.save(Path(folder) / f"{place}.npy", np.array(worlds))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=20_000, help="fits to each data set")
    parser.add_argument("--collect", help=argparse.SUPPRESS)
    add_argument(parser)
    arguments = parser.parse_args()
    if arguments.collect:
        collect(arguments.runs, arguments.collect)
        return
    from skdp.audit import audit_outputs

    with tempfile.TemporaryDirectory() as folder:
        command = (__file__, "--runs", arguments.runs, "--collect", folder)
        run_there("diffprivlib", arguments.environments, *command)
        for place, name in enumerate(CASES):
            worlds = np.load(Path(folder) / f"{place}.npy")
            result = audit_outputs(*worlds, confidence=CONFIDENCE, claimed=EPSILON)
            print(f"diffprivlib LogisticRegression, {name}\n{result}")
            print(f"test: {result.attack}, FPR {result.fpr[0]:.2g}, FNR {result.fnr[0]:.2g}\n")


if __name__ == "__main__":
    sys.exit(main())

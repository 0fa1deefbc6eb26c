# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The rows of skdp on the accuracy page: every classifier with its defaults, nothing tuned."""

import time
import warnings

import numpy as np
from _accuracy_data import DATA, SEEDS, SPARSITY, public_model, split
from _accuracy_store import qualities
from _datasets import DELTA, EPSILONS
from _tables import KEPT_ASIDE
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression, LocalDPLogisticRegression, papers, solvers

__all__ = ["DEFAULT", "LOCAL", "PURE", "SECTIONS", "UNBOUNDED", "WITH_DELTA", "measure"]

#: adjacency, delta: what a guarantee needs to be comparable
WITH_DELTA = ("zero-out", "replace-one")
PURE, LOCAL = "pure", "local"
SECTIONS = (*WITH_DELTA, PURE, LOCAL)
#: with the bound that peers are given too, and without any
DEFAULT, UNBOUNDED = "DPLogisticRegression(data_norm=1)", "DPLogisticRegression()"
# label, estimator, parameters; in both adjacencies, at delta = 1e-5
_ROWS = (
    (DEFAULT, DPLogisticRegression, {}),
    (UNBOUNDED, DPLogisticRegression, {"data_norm": None}),
    ('solver="accelerated"', DPLogisticRegression, {"solver": "accelerated"}),
    ('solver="gd"', DPLogisticRegression, {"solver": "gd"}),
    ('solver="sgd"', DPLogisticRegression, {"solver": "sgd"}),
    ('mechanism="objective"', DPLogisticRegression, {"mechanism": "objective"}),
    ('mechanism="output"', DPLogisticRegression, {"mechanism": "output"}),
    ('solver="phased"', DPLogisticRegression, {"solver": "phased"}),
    ("solver=papers.Localized()", DPLogisticRegression, {"solver": papers.Localized()}),
    ("solver=papers.OnePass()", DPLogisticRegression, {"solver": papers.OnePass()}),
    (
        "solver=papers.AcceleratedOnePass()",
        DPLogisticRegression,
        {"solver": papers.AcceleratedOnePass()},
    ),
    ("DPHingeSVM()", DPHingeSVM, {}),
)
#: what is run on tables that were kept aside
_FEW = (
    DEFAULT,
    UNBOUNDED,
    'solver="accelerated"',
    "DPHingeSVM()",
    "DPLogisticRegression(delta=0)",
)
_SPARSE_ROWS = (
    ('solver="lazy-sgd"', DPLogisticRegression, {"solver": "lazy-sgd"}),
    (
        'solver="frank-wolfe"',
        DPLogisticRegression,
        {"solver": solvers.FrankWolfe(sparsity=SPARSITY)},
    ),
    ("solver=papers.BiasReduced()", DPLogisticRegression, {"solver": papers.BiasReduced()}),
)
# replace-one, delta = 0
_PURE_ROWS = (
    ("DPLogisticRegression(delta=0)", DPLogisticRegression, {}),
    ('delta=0, mechanism="output"', DPLogisticRegression, {"solver": solvers.Output()}),
)
_PURE_SPARSE_ROWS = (
    ('delta=0, solver="frank-wolfe"', DPLogisticRegression, {"solver": solvers.FrankWolfe()}),
)


def rows(name):
    """Yield (section, label, maker of a model from epsilon and classes) for a data set."""

    def maker(kind, **parameters):
        # tables are in the unit ball, by public constants
        given = {"data_norm": 1.0, **parameters}
        return lambda epsilon, classes: kind(epsilon, classes=classes, **given)

    few = name in KEPT_ASIDE
    for section in WITH_DELTA:
        for label, kind, parameters in (*_ROWS, *(_SPARSE_ROWS if name == "text" else ())):
            if few and label not in _FEW:
                continue
            yield section, label, maker(kind, delta=DELTA, adjacency=section, **parameters)
    pure = (*_PURE_ROWS, *(_PURE_SPARSE_ROWS if name == "text" else ()))
    for label, kind, parameters in pure:
        if few and label not in _FEW:
            continue
        if parameters and name == "text":
            parameters = {"solver": clone(parameters["solver"]).set_params(sparsity=SPARSITY)}
        yield PURE, label, maker(kind, delta=0.0, **parameters)
    if not few:
        yield LOCAL, "LocalDPLogisticRegression()", maker(LocalDPLogisticRegression)


def _non_private(store, name, seed, parts):
    X, X_test, y, y_test = parts
    if store.get(name, "non-private", seed) is None:
        start = time.process_time()
        model = public_model(name).fit(X, y)
        seconds = time.process_time() - start
        rate = np.log(np.bincount(y) / len(y))
        store.add(
            name, "non-private", seed,
            seconds=seconds, base_rate=float(-rate[y_test].mean()),
            **qualities(model, X_test, y_test),
        )  # fmt: skip


def measure(store, names=None, most_splits=None, epsilons=EPSILONS):
    """Fit every row of every data set on every split, and store accuracies and CPU seconds.

    Parameters
    ----------
    store : Store
        What it holds is not measured again.
    names : iterable of str, default=None
        Data sets; by default all.
    most_splits : int, default=None
        At most so many splits of each.
    epsilons : iterable of float, default=EPSILONS
        Budgets.
    """
    warnings.simplefilter("ignore")
    names = list(names or DATA)
    for index in range(max(len(seeds) for seeds in SEEDS.values())):
        for name in names:
            if index >= min(len(SEEDS[name]), most_splits or len(SEEDS[name])):
                continue
            seed = SEEDS[name][index]
            wanted = [
                (section, label, make, epsilon)
                for section, label, make in rows(name)
                for epsilon in epsilons
                if store.get(name, section, label, epsilon, seed) is None
            ]
            if not wanted and store.get(name, "non-private", seed):
                continue
            parts = X, X_test, y, y_test = split(name, seed)
            _non_private(store, name, seed, parts)
            classes = np.unique(y)
            for section, label, make, epsilon in wanted:
                model = make(epsilon, classes)
                start = time.process_time()
                model.fit(X, y)
                seconds = time.process_time() - start
                found = qualities(model, X_test, y_test)
                store.add(name, section, label, epsilon, seed, seconds=seconds, **found)
            print(f"skdp: {name}, split {index + 1}", flush=True)

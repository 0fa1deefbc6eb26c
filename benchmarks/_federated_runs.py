# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Runs of federated softmax regression on handwritten digits: configurations and accuracies."""

import time
import warnings

import numpy as np
from _images import mnist

from skdp import FederatedDPLogisticRegression
from skdp.exceptions import PrivacyWarning
from skdp.federated import FederatedAveraging, GradientSteps, Population
from skdp.local import BallRandomiser

CLIENTS, IMAGES, BATCH, ROUNDS, LOCAL_STEPS = 600, 100, 200, 100, 5
POPULATION, POPULATION_BATCH, DELTA, EPSILON = 10**7, 20_000, 1e-9, 2.0
#: budgets of the direction, the paper's and less; the length has 10 on top
DIRECTIONS = (50.0, 250.0, 10.0, 500.0, 100.0)
LENGTH = 10.0
COMMON = {
    "classes": range(10),
    "adjacency": "zero-out",
    "delta": DELTA,
    "local_update__n_steps": LOCAL_STEPS,
    "local_update__clipping_norm": 0.5,
    "solver__batch_size": BATCH,
    "solver__step_size": 8.0,
    "solver__intercept_scaling": 0.1,
    "max_iter": ROUNDS,
}
DEPLOYED = {"population": Population(POPULATION, batch_size=POPULATION_BATCH)}


def model(**options):
    """Return the model of a configuration."""
    objects = {"local_update": GradientSteps(), "solver": FederatedAveraging()}
    return FederatedDPLogisticRegression(**objects).set_params(**{**COMMON, **options})


def reports(direction, magnitude):
    """Return the parameters of reports whose direction has a budget."""
    randomiser = BallRandomiser(magnitude)
    if magnitude == "product":
        randomiser.set_params(parameters="paper", magnitude_epsilon=LENGTH)
    return {"local_epsilon": direction + LENGTH, "randomiser": randomiser}


def federated_data(seed):
    """Return rows and labels of 600 clients with 100 images each, their groups, and a test set."""
    X, X_test, y, y_test = mnist()
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order], y[order], np.repeat(np.arange(CLIENTS), IMAGES), X_test, y_test


def accuracy(options, seeds):
    """Return accuracies of a configuration, the last fitted model, and the seconds of a fit."""
    found, start = [], time.perf_counter()
    for seed in seeds:
        X, y, clients, X_test, y_test = federated_data(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            fitted = model(**options).fit(X, y, groups=clients)
        found.append(fitted.score(X_test, y_test))
    return np.array(found), fitted, (time.perf_counter() - start) / len(found)


def configurations():
    """Yield (group, label, options) of every configuration."""
    yield "none", "no privacy to speak of", {"epsilon": 1e5}
    yield "central", "budget held by 600 clients", {"epsilon": EPSILON}
    planned = {
        "local_update__clipping_norm": None,
        "solver__step_size": None,
        "solver__batch_size": None,
        "max_iter": None,
    }
    yield "central", "the same, rounds and steps planned", {"epsilon": EPSILON, **planned}
    yield "central", "budget held by 10,000,000 clients", {"epsilon": EPSILON, **DEPLOYED}
    for direction in DIRECTIONS:
        for magnitude in ("product", "lift"):
            given = reports(direction, magnitude)
            yield f"local {magnitude}", f"{direction:g}", {"epsilon": None, **given}
    for limit in (0.5, None):
        given = {**reports(250.0, "product"), "solver__report_norm": limit}
        words = "no limit" if limit is None else f"{limit:g}"
        yield "both product", words, {"epsilon": EPSILON, **DEPLOYED, **given}
    given = {**reports(250.0, "product"), "solver__report_norm": 0.5}
    yield "projected product", "0.5", {"epsilon": None, **given}

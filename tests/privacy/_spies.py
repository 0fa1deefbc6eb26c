# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Budgets that grant everything and write down what they are asked for."""

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp import DPLogisticRegression, DPStandardScaler, NormClipper


class Spy:
    """Writes every charge into a file: clones, threads and processes share it."""

    def __init__(self, path):
        self.path = Path(path)
        self.path.touch()

    def check(self, epsilon, delta=0.0, stream=None):
        """Grant it."""

    def charge(self, epsilon, delta=0.0, **about):
        """Write it down, in one write."""
        with self.path.open("a") as file:
            file.write(json.dumps([epsilon, delta]) + "\n")

    def __deepcopy__(self, memo):
        return self

    @property
    def charges(self):
        """What was charged, pairs (epsilon, delta), in order."""
        return [tuple(json.loads(line)) for line in self.path.read_text().splitlines()]


class Collector(Spy):
    """Keeps the ledgers of `Recorded` fits as well; for one process."""

    def __init__(self, path):
        super().__init__(path)
        self.ledgers = []


class Recorded(DPLogisticRegression):
    """Hands its ledger to its budget, before a search forgets it."""

    def fit(self, X, y):
        """Fit."""
        super().fit(X, y)
        self.budget.ledgers.append(self.ledger_)
        return self


RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
FOLDS = KFold(3)


def model(budget=None, **parameters):
    """Return a classifier that fits fast."""
    parameters = {"epsilon": 0.5, "max_iter": 2, "classes": [0, 1], **parameters}
    return DPLogisticRegression(budget=budget, **{"data_norm": 1.0, **parameters})


def scaler(budget=None, **parameters):
    """Return a private scaler."""
    return DPStandardScaler(epsilon=0.25, bounds=(-1, 1), budget=budget, **parameters)


def agrees(spent, charges, steps=1):
    """Check that fits and budgets are those that were charged."""
    assert spent.n_fits * steps == len(charges)
    known = Counter()
    for release in spent.ledger.releases:
        if release.noise.law == "fits":
            known[release.noise.epsilon, release.noise.delta] += release.count
    # what is not on the ledger as lost was kept: the last fit
    kept = Counter(charges) - known
    assert not known - Counter(charges)
    assert kept.total() <= steps
    assert spent.delta == pytest.approx(math.fsum(delta for _, delta in charges), rel=1e-12)


def pipeline(spy, *front):
    """Return steps in front of a classifier."""
    return Pipeline([*front, ("clip", NormClipper()), ("model", model(spy))])


def branched(budget=None, **options):
    """Return a pipeline whose first step is a union of a private scaler and a clipper."""
    front = FeatureUnion([("dp", scaler(budget)), ("c", NormClipper())])
    return Pipeline([("front", front), ("model", model(budget))], **options)

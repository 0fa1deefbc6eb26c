# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The library with one known bug at a time, for benchmarks/audit_all.py."""

import math
import os
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest.mock import patch

from sklearn.base import BaseEstimator, clone

import skdp
from skdp.location._clipped_mean import RowSum
from skdp.privacy import GaussianMechanism
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.kernel.ledger import Record
from skdp.privacy.kernel.samplers import SeededBits
from skdp.solvers.gradient import ClippedGradient

_ADD_NOISE = _mechanisms.add_noise


@contextmanager
def half_the_noise():
    """Draw half of what the ledger says."""

    def halved(values, noise, bits):
        return _ADD_NOISE(values, replace(noise, scale=noise.scale / 2), bits)

    with patch.object(_mechanisms, "add_noise", halved):
        yield


@contextmanager
def one_row_forgotten():
    """State the sensitivity of zero-out where a row is replaced."""
    with ExitStack() as stack:
        for query in (RowSum, ClippedGradient):
            stated = query.sensitivity
            stack.enter_context(
                patch.object(
                    query,
                    "sensitivity",
                    lambda self, _, n, stated=stated: stated(self, "zero-out", n),
                )
            )
        yield


@contextmanager
def one_step_accounted():
    """Spend the budget of a fit in every one of its steps."""
    steps = "skdp.solvers.gradient.GaussianMechanism"
    with (
        patch(steps, lambda mu: GaussianMechanism(mu * math.sqrt(16))),
        patch.object(Record, "fits", lambda *_: True),
    ):
        yield


@contextmanager
def noise_repeats():
    """Draw the same noise in every step of a fit."""
    seed = int.from_bytes(os.urandom(8), "little")

    def repeated(values, noise, bits):
        return _ADD_NOISE(values, noise, SeededBits(seed))

    with patch.object(_mechanisms, "add_noise", repeated):
        yield


@contextmanager
def no_noise_in_the_last_coordinate():
    """Add noise to all coordinates but one."""

    def most(values, noise, bits):
        released = _ADD_NOISE(values, noise, bits)
        released[-1] = values[-1]
        return released

    with patch.object(_mechanisms, "add_noise", most):
        yield


BUGS = {
    "half of the noise": half_the_noise,
    "a replaced row counts once": one_row_forgotten,
    "the accountant knows of one step of 16": one_step_accounted,
    "the last coordinate has no noise": no_noise_in_the_last_coordinate,
    "all steps have the same noise": noise_repeats,
}


class Mutant(BaseEstimator):
    """An estimator that is fitted while the library has a bug, and claims what it always did."""

    def __init__(self, estimator, bug):
        self.estimator = estimator
        self.bug = bug

    def fit(self, X, y=None):
        """Fit with the bug."""
        with BUGS[self.bug]():
            fitted = clone(self.estimator).fit(X, y)
        for name in ("coef_", "intercept_", "location_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
        pure = getattr(self.estimator, "mechanism", None) == "laplace"
        self.privacy_spent_ = self.estimator.epsilon, 0.0 if pure else self.estimator.delta
        return self


def mutants():
    """Yield estimators with bugs, and the names of the pairs that they are audited on."""
    pair = "rows on two sides, opposite rows"
    means = [
        skdp.DPMean(mechanism="laplace", data_norm=1.0),
        skdp.DPMean(epsilon=4.0, data_norm=1.0),
    ]
    model = skdp.DPLogisticRegression(
        epsilon=4.0, classes=(0, 1), solver="gd", max_iter=16, fit_intercept=False, data_norm=1.0
    )
    for mean in means:
        for bug in list(BUGS)[:2]:
            yield Mutant(mean, bug), pair
    for bug in BUGS:
        yield Mutant(model, bug), "equal rows, another label"

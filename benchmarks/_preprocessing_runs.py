# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The fits of `feature_preprocessing_table1.py`; every function returns a test accuracy."""

import functools
import math

import numpy as np
from _datasets import DELTA, adult, breast_cancer, digits, synthetic
from scipy.ndimage import gaussian_filter
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from skdp import DPLogisticRegression, papers, solvers
from skdp.preprocessing import DPFeatureCenterer
from skdp.privacy import gdp_mu

COMMON = {"delta": DELTA, "adjacency": "zero-out"}
#: what the centering step of a pipeline gets of epsilon and of delta
SHARE = 0.05
#: epsilon of the mean in the paper's grid, if it were released alone
EPSILON_F = 0.05
#: standard deviation of the kernel that smooths images, in pixels
SMOOTHING = 1.0


def moved(load, offset):
    """Return rows of the unit ball plus an offset, scaled into the unit ball again."""
    X, y = load()
    direction = np.ones(X.shape[1]) / np.sqrt(X.shape[1])
    return (X + offset * direction) / (1.0 + offset), y


def _small():
    return synthetic(10_000, 20, class_sep=0.97)


DATA = {
    "breast_cancer, [-1, 1]": breast_cancer,
    "breast_cancer, [0, 1]": functools.partial(breast_cancer, low=0.0),
    "digits, pixels - 1/2": digits,
    "digits, pixels from 0": functools.partial(digits, center=0.0),
    "Adult": adult,
    "synthetic 10,000 x 20": _small,
    "synthetic, offset 3": functools.partial(moved, _small, 3.0),
    "synthetic, offset 30": functools.partial(moved, _small, 30.0),
}


def as_they_are(rows):
    """Return the rows."""
    return rows


def square_roots(rows):
    """Return rows of square roots, of unit norm again: each row by itself, so at no cost."""
    X, X_test, y, y_test = rows
    return normalize(np.sqrt(X)), normalize(np.sqrt(X_test)), y, y_test


def smoothed(rows):
    """Return rows of smoothed images, of unit norm again: each row by itself, so at no cost.

    Noise is alike in all directions, and neighbouring pixels should have similar coefficients.
    A linear score of a smoothed image is one of the pixels, with smoothed coefficients: so
    the noise of fine patterns, which tell little about a digit, is damped.
    """
    X, X_test, y, y_test = rows
    return _smooth(X), _smooth(X_test), y, y_test


def _smooth(X):
    side = math.isqrt(X.shape[1])
    images = X.reshape(-1, side, side)
    kernel = {"sigma": (0, SMOOTHING, SMOOTHING), "mode": "constant"}
    return normalize(gaussian_filter(images, **kernel).reshape(X.shape))


def moved(kind, steps, share=0.05):
    """Return a solver inside the preprocessing of a kind; None for rows as they are."""
    if kind is None:
        return steps
    return papers.FeaturePreprocessing(solver=steps, kind=kind, share=share)


def stochastic(rows, epsilon, preprocess, point):
    """Fit DPSGD with the parameters of the paper, which scales rows to a norm.

    With rows of norm C, gradients clipped to 1, step r and the constant feature 1, the
    coefficients are those of unit rows divided by C, if there gradients are clipped to
    1 / C, the step is r C^2, and the constant feature is 1 / C. Steps are plain.
    """
    X, X_test, y, y_test = rows
    norm, batch, epochs, rate = point
    share = (gdp_mu(EPSILON_F, DELTA) / gdp_mu(epsilon, DELTA)) ** 2
    steps = solvers.SGD(
        batch_size=batch, momentum=False, clipping_norm=1.0 / norm,
        step_size=float(rate * norm**2), intercept_scaling=1.0 / norm,
    )  # fmt: skip
    model = DPLogisticRegression(
        epsilon,
        solver=moved(preprocess, steps, share),
        max_iter=round(epochs * len(y) / batch),
        classes=range(10),
        **{"data_norm": 1.0, **COMMON},
    )
    return model.fit(X, y).score(X_test, y_test)


def default(rows, epsilon, **parameters):
    """Fit the untuned classifier."""
    X, X_test, y, y_test = rows
    model = DPLogisticRegression(
        epsilon, classes=range(10), **COMMON, **{"data_norm": 1.0, **parameters}
    )
    return model.fit(X, y).score(X_test, y_test)


def pipeline(rows, epsilon):
    """Fit a centering step, then the untuned classifier with the rest of the budget."""
    X, X_test, y, y_test = rows
    first, rest = ((share * epsilon, share * DELTA) for share in (SHARE, 1 - SHARE))
    model = make_pipeline(
        DPFeatureCenterer(*first, adjacency="zero-out"),
        DPLogisticRegression(*rest, adjacency="zero-out", classes=range(10), data_norm=1.0),
    )
    return model.fit(X, y).score(X_test, y_test)


UNTUNED = {
    "full batches": default,
    **{
        f"full batches, {kind}": functools.partial(default, solver=moved(kind, None))
        for kind in ("center", "center-scale", "center-clip")
    },
    "sgd": functools.partial(default, solver="sgd"),
    "sgd, center": functools.partial(default, solver=moved("center", solvers.SGD())),
    "DPFeatureCenterer, then full batches": pipeline,
}


def non_private(rows):
    """Fit scikit-learn's model."""
    X, X_test, y, y_test = rows
    return LogisticRegression(C=100.0, max_iter=150).fit(X, y).score(X_test, y_test)


@functools.cache
def _loaded(name):
    return DATA[name]()


def split(name, seed):
    """Return training and test rows."""
    X, y = _loaded(name)
    return train_test_split(X, y, test_size=0.2, random_state=seed)


def untuned(name, epsilon, preprocess, seed):
    """Fit the untuned classifier on a split of a data set."""
    X, X_test, y, y_test = split(name, 100 + seed)
    model = DPLogisticRegression(
        epsilon,
        solver=moved(preprocess, solvers.Accelerated()),
        classes=np.unique(_loaded(name)[1]),
        **{"data_norm": 1.0, **COMMON},
    )
    return model.fit(X, y).score(X_test, y_test)

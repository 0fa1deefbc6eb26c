# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Neighbouring data sets, ordinary and extreme, for the tests of privacy claims.

Neighbours differ in one row, which keeps its position. In the zero-out relation the
second data set has a null row there: flagged as null for `LinearRows`, labelled
outside the label set for a classifier, the center of the domain for a mean.
"""

import inspect
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skdp._rows.base import L2Ball
from skdp._rows.linear import LinearRows

ADJACENCIES = ("replace-one", "zero-out")
LAYOUTS = ("C", "F", "strided", "read-only", "float32", "csr", "csr zeros", "csr duplicates")
FINITE_ROWS = (
    "random", "boundary", "one entry", "short", "far", "zero", "denormal", "mixed", "huge",
)  # fmt: skip
BROKEN_ROWS = ("nan", "inf", "-inf")
OUTSIDE = 99


@dataclass(frozen=True)
class Rows:
    """A small data set: rows, class codes, null flags."""

    X: Any
    codes: np.ndarray
    null: np.ndarray

    def labels(self):
        """Return the codes as labels, null rows labelled outside the label set."""
        return np.where(self.null, OUTSIDE, self.codes)


def rows_in_ball(X, target, null, radius=1.0, intercept=0.0, **options):
    """Return what a curator admits of rows that are clipped to norm `radius`."""
    return LinearRows(X, target, null, L2Ball(radius), intercept, **options)


def make_row(kind, n_features, radius, rng):
    """Return one row of a named kind, for rows that are clipped to norm `radius`."""
    direction = rng.normal(size=n_features)
    direction *= radius / np.linalg.norm(direction)
    axis = radius * np.eye(n_features)[rng.integers(n_features)]
    if kind == "mixed":
        magnitudes = rng.choice([1e308, 1e-320, 1.0, 0.0], size=n_features)
        return np.sign(direction) * magnitudes
    return {
        "random": direction * rng.uniform(),
        "boundary": direction,
        "one entry": -axis,
        "short": 0.1 * direction,
        "far": 100 * direction,
        "zero": 0 * direction,
        "denormal": np.sign(direction) * 1e-310,
        "huge": np.sign(direction) * 1e308,
        "nan": np.where(axis != 0, np.nan, direction),
        "inf": np.where(axis != 0, np.inf, direction),
        "-inf": np.full(n_features, -np.inf),
    }[kind]


def as_layout(X, layout):
    """Return the rows X in another memory layout or format."""
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "strided":
        wide = np.full((X.shape[0], 2 * X.shape[1]), 7.0)
        wide[:, ::2] = X
        return wide[:, ::2]
    if layout == "float32":
        with np.errstate(over="ignore", under="ignore"):
            return X.astype(np.float32)
    if layout == "csr":
        return sparse.csr_array(X)
    if layout == "csr zeros":
        n, d = X.shape
        return sparse.csr_array(
            (X.ravel(), np.tile(np.arange(d), n), np.arange(n + 1) * d), X.shape
        )
    if layout == "csr duplicates":
        return with_duplicates(X)
    X = np.array(X, order="C")
    X.flags.writeable = layout != "read-only"
    return X


def with_duplicates(X):
    """Return CSR rows that store every entry as two halves, in reversed column order."""
    n, d = X.shape
    with np.errstate(under="ignore"):
        half = X / 2
        # a denormal has no exact half
        exact = half + half == X
    parts = np.stack([np.where(exact, half, X), np.where(exact, half, 0.0)], axis=2)
    columns = np.repeat(np.arange(d), 2)
    return sparse.csr_array(
        (parts[:, ::-1].ravel(), np.tile(columns[::-1], n), np.arange(n + 1) * 2 * d), X.shape
    )


def as_dense(X):
    """Return the values of X, whatever its layout, as a dense float64 array."""
    return np.asarray(X.todense() if sparse.issparse(X) else X, dtype=np.float64)


def other_row(change, X, i, radius, rng):
    """Return what row i becomes under a named change."""
    if change == "opposite":
        return -X[i]
    if change == "same row":
        return X[i]
    if change == "duplicate":
        return X[i - 1]
    if change.startswith("times "):
        with np.errstate(over="ignore", invalid="ignore"):
            return X[i] * float(change.removeprefix("times "))
    return make_row(change, X.shape[1], radius, rng)


CHANGES = ("opposite", "same row", "duplicate", "times 0.1", "times 10", "times 100")


@st.composite
def neighbours(
    draw, adjacency, *, n_classes=2, radius=1.0, finite=False, null_row=None, layouts=LAYOUTS
):
    """Draw two neighbouring `Rows`.

    With `finite`, such as pass scikit-learn's validation; with a `null_row`, null rows
    are filled with that number besides being flagged.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = FINITE_ROWS if finite else FINITE_ROWS + BROKEN_ROWS
    n_features = draw(st.integers(1, 4))
    drawn = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=9))
    codes = np.array(draw(st.lists(st.integers(0, n_classes - 1), min_size=9, max_size=9)))
    X = np.array([make_row(kind, n_features, radius, rng) for kind in drawn])
    first = Rows(X, codes[: len(X)], rng.uniform(size=len(X)) < 0.1)
    i = draw(st.integers(0, len(X) - 1))
    change = draw(st.sampled_from(CHANGES + kinds))
    code = draw(st.integers(0, n_classes - 1))
    second = changed(first, i, adjacency, other_row(change, X, i, radius, rng), code)
    if null_row is not None:
        for rows in (first, second):
            rows.X[rows.null] = null_row
    layout = draw(st.sampled_from(layouts))
    pair = [replace(rows, X=as_layout(rows.X, layout)) for rows in (first, second)]
    if finite:
        pair = [replace(rows, X=_finite(rows.X)) for rows in pair]
    return tuple(pair)


def _finite(X):
    values = X.data if sparse.issparse(X) else X
    if np.isfinite(values).all():
        return X
    clean = np.nan_to_num(values)
    return type(X)((clean, X.indices, X.indptr), X.shape) if sparse.issparse(X) else clean


def changed(rows, i, adjacency, row, code):
    """Return the data set in which row i is another one, or a null row."""
    X, codes, null = rows.X.copy(), rows.codes.copy(), rows.null.copy()
    X[i], codes[i], null[i] = row, code, adjacency == "zero-out"
    return Rows(X, codes, null)


def worst_pairs(n_rows, n_features, n_classes, adjacency, radius, seed=0):
    """Return neighbouring pairs that move a clipped gradient as far as any.

    Row 0 is long, so that its gradient reaches the clipping norm; it is replaced by its
    opposite, with and without another label, or by a null row.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * radius
    X[0] *= 5 * radius / np.linalg.norm(X[0])
    null = np.zeros(n_rows, dtype=bool)
    rows = Rows(X, np.arange(n_rows) % n_classes, null)
    changes = [(sign * X[0], code) for sign in (1, -1) for code in range(n_classes)]
    return [(rows, changed(rows, 0, adjacency, *change)) for change in changes]


def worst_mean_pairs(n_rows, n_features, adjacency, lower, upper, seed=0):
    """Return neighbouring pairs that move a sum of rows of the box [lower, upper] furthest.

    Row 0 is a corner, or a face's center, far outside; it is replaced by the opposite one,
    or by the center, which is the null row.
    """
    rng = np.random.default_rng(seed)
    center = np.full(n_features, (lower + upper) / 2)
    X = rng.uniform(lower, upper, size=(n_rows, n_features))
    pairs = []
    for offset in (np.ones(n_features), np.eye(n_features)[0]):
        first, second = X.copy(), X.copy()
        first[0] = center + 10 * (upper - lower) * offset
        second[0] = center if adjacency == "zero-out" else 2 * center - first[0]
        pairs.append((first, second))
    return pairs


def mixed_rows(n_rows=101, d=5, seed=3):
    """Return rows of many kinds, some of them null."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["random", "boundary", "far", "zero", "huge", "short"], size=n_rows)
    X = np.array([make_row(kind, d, 1.0, rng) for kind in kinds])
    return Rows(X, rng.integers(0, 2, n_rows), rng.uniform(size=n_rows) < 0.1)


def naive_gradient(rows, coef, clip, intercept, radius):
    """Sum clipped gradients row by row, with outer products, as the definition says."""
    total = np.zeros(coef.shape)
    for x, code, null in zip(as_dense(rows.X), rows.codes, rows.null, strict=True):
        if null or not np.isfinite(x).all():
            continue
        scale = max(np.abs(x).max(), radius)
        unit = x / scale / max(np.linalg.norm(x / scale), radius / scale)
        row = np.append(unit, intercept) if intercept else unit
        z = np.atleast_1d(coef @ row)
        if coef.ndim == 1:
            residual = 1 / (1 + np.exp(-z)) - code
        else:
            residual = np.exp(z - z.max()) / np.exp(z - z.max()).sum() - np.eye(len(coef))[code]
        gradient = np.outer(residual, row).reshape(coef.shape)
        norm = np.linalg.norm(gradient)
        total += gradient * min(1.0, clip / norm if norm else 1.0)
    return total.ravel()


def on_examples(many):
    """Return a decorator that runs a test on draws of `data`.

    By default they are a fifth of this many; half of it in the full tier, and all in the slow one.
    """
    few, half = max(many // 5, 4), max(many // 2, 5)

    def decorate(test):
        runs = {n: settings(max_examples=n)(given(data=st.data())(test)) for n in (few, half, many)}
        plain = inspect.signature(runs[many])

        def on(n_examples, **others):
            runs[n_examples](**others)

        first = inspect.Parameter("n_examples", inspect.Parameter.KEYWORD_ONLY)
        on.__signature__ = plain.replace(parameters=[*plain.parameters.values(), first])
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(on, name, getattr(test, name))
        on.pytestmark = list(getattr(test, "pytestmark", ()))
        later = {half: pytest.mark.full, many: pytest.mark.slow}
        tiers = [few, *(pytest.param(n, marks=mark) for n, mark in later.items())]
        return pytest.mark.parametrize("n_examples", tiers)(on)

    return decorate

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Public sets that private rows are forced into.

Projections are total: whatever the floats of a row are, the result is a member of
the set, and no norm overflows. A row that is not finite becomes a null row, which
contributes nothing to any statistic.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

# Entries smaller than this are flushed to zero (denormals slow products 20-fold) and
# rows with larger ones are rescaled (their squares would overflow). A radius is held
# in the range below, so that neither matters to the statistics.
_TINY, _HUGE = 1e-140, 1e140
RADIUS_RANGE = (1e-100, 1e100)


def check_radius(radius, name="data_norm"):
    """Return a usable radius as a float, or raise a ValueError that names it."""
    number = isinstance(radius, int | float | np.number) and not isinstance(radius, bool)
    if not number or not RADIUS_RANGE[0] <= radius <= RADIUS_RANGE[1]:
        raise ValueError(f"{name} must be a number in [1e-100, 1e100]; got {radius!r}.")
    return float(radius)


def check_bounds(bounds, n_features, name="bounds"):
    """Return (lower, upper) as arrays of shape (n_features,), or raise a ValueError."""
    expected = (
        f"{name} must be a pair (lower, upper) of finite numbers, or of arrays with one finite "
        "number per feature, lower below upper"
    )
    try:
        lower, upper = (np.asarray(side, dtype=np.float64) for side in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"{expected}; got {bounds!r}.") from None
    for side in (lower, upper):
        if side.ndim > 1 or (side.ndim == 1 and side.shape != (n_features,)):
            raise ValueError(f"{expected}; got {bounds!r} for {n_features} feature(s).")
    lower, upper = (np.broadcast_to(side, (n_features,)) for side in (lower, upper))
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(upper - lower).all()
    if not (finite and (lower < upper).all()):
        raise ValueError(f"{expected}; got {bounds!r}.")
    return lower, upper


def row_norms(X):
    """Return the Euclidean norm of every row of tame data, in float64."""
    # squares of single precision overflow from 2e19 on
    X = X.astype(np.float64, copy=False)
    if sparse.issparse(X):
        # as if all stood in one column: no vector as long as a row is made
        parts = (X.data * X.data, np.zeros_like(X.indices), X.indptr)
        return np.sqrt(sparse.csr_array(parts, shape=(X.shape[0], 1)) @ np.ones(1))
    # one layout: a norm must not depend on how the rows around it are stored
    X = np.require(X, requirements=["C", "ALIGNED"])
    return np.sqrt(np.einsum("ij,ij->i", X, X))


def _is_awkward(values):
    if values.dtype == np.float32:
        # neither so small nor so large, unless it is not finite
        return not float(np.abs(values).max(initial=0.0)) <= _HUGE
    magnitude = np.abs(values.astype(np.float64, copy=False))
    largest = magnitude.max(initial=0.0)
    small = np.count_nonzero(magnitude < _TINY)
    return not largest <= _HUGE or (small > 0 and small > np.count_nonzero(magnitude == 0))


def _tame_values(values, row_of, n_rows):
    """Return tame values and the flags of non-finite rows.

    `values` is a copy to be changed; `row_of` gives the row of every value. A row
    with a huge entry is scaled down as a whole, which keeps its direction.
    """
    finite = np.isfinite(values)
    broken = np.zeros(n_rows, dtype=bool)
    broken[row_of[~finite]] = True
    values[~finite] = 0.0
    largest = np.zeros(n_rows)
    np.maximum.at(largest, row_of, np.abs(values))
    # scaling in two steps: 1 / 1e308 would be denormal
    shrink = np.where(largest > _HUGE, _HUGE / np.maximum(largest, 1.0), 1.0)
    # whether an entry underflows depends on the data: nobody is to be told
    with np.errstate(under="ignore"):
        values *= shrink[row_of]
    values[np.abs(values) < _TINY] = 0.0
    return values, broken


def without_duplicates(X):
    """Return a CSR matrix whose rows store every column once, in order; X itself if so.

    What is stored in parts is added up in an order that depends on the row alone. scipy sorts
    all rows or none, by a sort that is not stable: parts of a sorted row would be added up in
    another order because some other row is not sorted, and floats that cancel would not.
    """
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.has_sorted_indices = False
    X.sum_duplicates()
    return X


def tame(X):
    """Return rows without floats that break arithmetic, and flags of the non-finite ones.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Never changed; returned as it is when there is nothing to do.

    Returns
    -------
    X : ndarray or CSR matrix
        Every entry is 0 or in [1e-140, 1e140] in magnitude. A row with a larger entry
        has been scaled down as a whole. CSR matrices have no duplicate entries.
    broken : ndarray of shape (n_rows,), dtype bool
        Rows that had a NaN or an infinity; they are not to be used.
    """
    n_rows = X.shape[0]
    if not sparse.issparse(X):
        if not _is_awkward(X):
            return X, np.zeros(n_rows, dtype=bool)
        row_of = np.repeat(np.arange(n_rows), X.shape[1])
        values, broken = _tame_values(X.astype(np.float64, order="C").ravel(), row_of, n_rows)
        return values.reshape(X.shape), broken
    X = without_duplicates(X)
    if not _is_awkward(X.data):
        return X, np.zeros(n_rows, dtype=bool)
    row_of = np.repeat(np.arange(n_rows), np.diff(X.indptr))
    data, broken = _tame_values(X.data.astype(np.float64), row_of, n_rows)
    return type(X)((data, X.indices, X.indptr), shape=X.shape), broken


@dataclass(frozen=True)
class L2Ball:
    """Rows of Euclidean norm at most `radius`; longer ones are scaled down.

    Parameters
    ----------
    radius : float
        Public bound, in [1e-100, 1e100].
    """

    radius: float

    def factors(self, norms):
        """Return what rows of the given norms are multiplied by to land in the UNIT ball."""
        return 1.0 / np.maximum(norms, self.radius)


@dataclass(frozen=True)
class Box:
    """Rows with every coordinate in [lower, upper]; others are clipped.

    Parameters
    ----------
    lower, upper : tuple of float
        Public bounds, one per feature, lower below upper.
    """

    lower: tuple
    upper: tuple

    @property
    def center(self):
        """Midpoint, as an array of shape (n_features,)."""
        return np.asarray(self.lower) / 2 + np.asarray(self.upper) / 2

    @property
    def half_width(self):
        """Half of every side, as an array of shape (n_features,)."""
        return np.asarray(self.upper) / 2 - np.asarray(self.lower) / 2

    def to_unit(self, X):
        """Return rows clipped into the box and mapped to [-1, 1]; NaN goes to the centre."""
        unit = (np.clip(X, self.lower, self.upper) - self.center) / self.half_width
        return np.nan_to_num(np.clip(unit, -1.0, 1.0), nan=0.0)


def ball_constraint(coef, radius):
    """Return finite `coef` scaled into the ball of `radius`; None means no bound."""
    if radius is None:
        return coef
    norm = np.linalg.norm(coef)
    return coef if norm <= radius else coef * (radius / norm)


def two_balls_constraint(coef, radius, center, reach):
    """Return `coef` projected on the ball of `radius` around 0 and of `reach` around `center`.

    Parameters
    ----------
    coef : ndarray of shape (size,)
        Any point.
    radius : float or None
        None for no ball around 0.
    center : ndarray of shape (size,)
        A point of the first ball.
    reach : float
        Radius of the ball around it.

    Returns
    -------
    nearest : ndarray of shape (size,)
        The nearest point that is in both, but for rounding.
    """
    first = ball_constraint(coef, radius)
    if np.linalg.norm(first - center) <= reach:
        return first
    second = center + ball_constraint(coef - center, reach)
    distance = np.linalg.norm(center)
    if radius is None or np.linalg.norm(second) <= radius or distance == 0:
        return second
    # neither ball alone decides: the point is on both spheres, in the plane of `coef`
    axis = center / distance
    along = (distance + (radius - reach) * ((radius + reach) / distance)) / 2
    along = min(max(along, -radius), radius)
    across = coef - (coef @ axis) * axis
    length = np.linalg.norm(across)
    if length == 0:
        return center
    return along * axis + across * (np.sqrt((radius - along) * (radius + along)) / length)

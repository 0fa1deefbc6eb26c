# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows in their domain: one layout, finite floats, and public sets that rows are forced into.

The contract of ``skdp._rows``: *what a row contributes to a statistic depends on no bit of
another row.* A row that is not finite, too long, huge or denormal needs work, and its neighbour
does not; the other rows must not notice. A sum over rows then changes by what one row
contributes and by the rounding of the sum, whatever the loss: a residual that jumps where a
prediction moves by one rounding, as that of a hinge does, is the same number on both data sets.

What is done for it:

* Before anything is multiplied, a chunk of dense rows is float64, row after row, aligned
  (`row_major`). Rows that have this layout are used where they are; others are copied, chunk by
  chunk. A copy that is made because of a value (`tame`) lies at the same address, modulo 64
  bytes, as the rows that it stands for; every other copy lies at a multiple of 64. Sparse rows
  are CSR in float64; duplicates are added up in an order that depends on the row alone.
* Where chunks begin depends on the number of rows, of features, and of drawn positions, never
  on a value. A row that counts as null keeps its place and its shape.
* Norms, limits and residuals are computed row by row, or element by element. Where rows stay in
  their places, predictions are products of a whole chunk. In a batch that was drawn, a row may
  be missing, and others move up: there every prediction is a product of its own.

What is relied on, and tested on the machine at hand:

* A product of matrices, or of a matrix with a vector, treats a row by a sequence of operations
  that is a function of the shapes, the types, the strides, the addresses modulo 64 bytes and the
  row's place; what the numbers in other rows are, NaN, infinities and denormals included, has no
  part in it. BLAS does not promise that rows in different places, or in other layouts, are
  treated alike, and they are not.
* A function of arrays (``np.tanh``, say) maps an element to the same float wherever it stands.
  Products with one vector at a time, ``np.vecdot``, and sums along contiguous rows are the same
  for a row wherever it stands.
* scipy's products with CSR rows go through the entries of each row in the order in which they
  are stored.

The sum itself may be rounded in another order if a value changes: Proposition 7 of the proofs
bounds that for any order.

Projections are total: whatever the floats of a row are, the result is a member of the set, and
no norm overflows. A row that is not finite becomes a null row, which contributes nothing.
"""

import math
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


# bytes: no kernel of a product looks at more of an address
_LINE = 64


def _empty_rows(shape, place=0):
    """Return an uninitialised float64 array at an address that is `place` modulo 64."""
    size = math.prod(shape)
    memory = np.empty(size + _LINE // 8)
    skip = (place - _address(memory)) % _LINE // 8
    return memory[skip : skip + size].reshape(shape)


def _address(X):
    return X.__array_interface__["data"][0]


def _is_row_major(X):
    return X.dtype == np.float64 and X.flags.c_contiguous and X.flags.aligned


def row_major(X):
    """Return dense rows in the one layout that products are made in.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Never changed.

    Returns
    -------
    X : ndarray of shape (n_rows, n_features)
        In float64, row after row in memory and aligned; X itself if it is.
    """
    if _is_row_major(X):
        return X
    rows = _empty_rows(X.shape)
    rows[:] = X
    return rows


def row_norms(X):
    """Return the Euclidean norm of every row of tame data, in float64."""
    if sparse.issparse(X):
        # squares of single precision overflow from 2e19 on
        X = X.astype(np.float64, copy=False)
        # as if all stood in one column: no vector as long as a row is made
        parts = (X.data * X.data, np.zeros_like(X.indices), X.indptr)
        return np.sqrt(sparse.csr_array(parts, shape=(X.shape[0], 1)) @ np.ones(1))
    X = row_major(X)
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
        Never changed; returned as it is when there is nothing to do. Dense rows with anything to
        do are copied into the layout of `row_major`.

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
        rows = _empty_rows(X.shape, _address(X) if _is_row_major(X) else 0)
        rows[:] = X
        _, broken = _tame_values(rows.reshape(-1), row_of, n_rows)
        return rows, broken
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

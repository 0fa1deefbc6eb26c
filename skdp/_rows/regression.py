# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows and targets of a regression, unbounded at first, then in public units."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from skdp._rows.linear import LinearChunk, LinearRows, raw_norms, usable_norms
from skdp._rows.streams import over_rows

#: targets are brought to at most that, in the units of the data, so that floats hold
LARGEST_TARGET = 1e150
# and to this in public units: their cubes are finite
_LARGEST_UNIT = 1e100


@dataclass(frozen=True)
class EveryRow:
    """The domain of rows of any length: none is scaled."""

    def factors(self, norms):
        """Return what rows of the given norms are multiplied by: 1."""
        return np.ones(len(norms))


def regression_rows(X, y, n_threads=1):
    """Admit rows and targets in the units of the data, whatever their length.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Finite; entries beyond 1e140 in magnitude scale their row down.
    y : ndarray of shape (n_rows,)
        Targets; NaN for null rows.
    n_threads : int, default=1
        Threads for the sums.

    Returns
    -------
    rows : LinearRows
        Without an intercept, with factors of 1.
    """
    target, null = over_rows(_bounded, y), over_rows(np.isnan, y)
    return LinearRows(X, target, null, EveryRow(), 0.0, n_threads)


def _bounded(y):
    """Return targets that floats can work with; 0 for those of null rows."""
    # whether a wider float overflows depends on the data: nobody is to be told
    with np.errstate(over="ignore", under="ignore"):
        target = np.clip(y.astype(np.float64), -LARGEST_TARGET, LARGEST_TARGET)
    target[np.isnan(target)] = 0.0
    return target


def unit_rows(rows, radius, longest, intercept, center, scale):
    """Return rows and targets in public units, long rows scaled down with their targets.

    Parameters
    ----------
    rows : LinearRows
        What `regression_rows` admitted.
    radius, longest : float, float
        Unit of length of the features, and the length, in this unit, to which rows are scaled
        down.
    intercept : float
        Constant feature.
    center, scale : float, float
        Origin and unit of the targets.

    Returns
    -------
    moved : LinearRows
        Rows ``s (x / radius, intercept)`` with targets ``s (y - center) / scale``, where s is
        ``min(1, longest radius / |x|)``. Memory of the features is shared.

    Notes
    -----
    A row that is scaled down together with its target has the same residual of zero as before
    at the coefficients that fit it: it counts less, and pulls in no wrong direction. Every new
    number is a function of one old row, to the last bit.
    """
    return rows.mapped(
        partial(
            _in_units,
            radius=radius,
            longest=longest,
            intercept=intercept,
            center=center,
            scale=scale,
        )
    )


def _in_units(chunk, radius, longest, intercept, center, scale):
    """Return one chunk in public units."""
    with np.errstate(under="ignore", over="ignore"):
        length = raw_norms(chunk) / radius
        lift = longest / np.maximum(length, longest)
        factor = lift / radius
        norm = np.hypot(np.minimum(length, longest), intercept * lift)
        target = lift * ((chunk.target - center) / scale)
    norm = usable_norms(norm, np.isinf(chunk.norm))
    target = np.clip(target, -_LARGEST_UNIT, _LARGEST_UNIT)
    return LinearChunk(chunk.X, factor, norm, target, intercept, lift)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the unit ball, whose floats depend on nothing but the row itself.

A count may jump when a distance moves by one unit in the last place, and a sum of rows
clipped to a tiny radius feels the last place of every row. `LinearChunk.factor` is not
strict enough for them: how a norm is rounded depends on the memory layout, and one row
with a denormal changes the layout of its whole chunk. Here every operation is
elementwise, with one row in each column, and so the same for a row whatever the others.
"""

import numpy as np
from scipy import sparse

# Rows this close to the sphere count as long ones. Far more than the rounding of a norm.
_EDGE = 1 - 1e-9
# Norms of chunks are held above this one, for a division: it may stand for zero.
_FLOOR = 1e-100


def unit_columns(chunk):
    """Return the rows of a dense chunk, one in each column, and their norms.

    Parameters
    ----------
    chunk : LinearChunk
        Dense rows without an intercept.

    Returns
    -------
    columns : ndarray of shape (n_features, n_rows)
        Fresh, in float64. Those of null rows mean nothing.
    norm : ndarray of shape (n_rows,)
        At most 1.

    Notes
    -----
    A row clearly inside the ball has the factor one over its radius, a constant. Every
    other row is divided by its own norm, computed anew.
    """
    columns = np.array(chunk.X.T, dtype=np.float64, order="C")
    with np.errstate(under="ignore"):
        norm = np.sqrt((columns * columns).sum(axis=0))
        scaled = norm * chunk.factor
        inside = scaled < _EDGE
        # a row of zeros is inside
        columns *= np.where(inside, chunk.factor, 1.0 / np.maximum(norm, 1e-150))
    return columns, np.where(inside, scaled, 1.0)


def gaps_from(center, chunk):
    """Return the rows of a dense chunk minus a centre, and their distances from it.

    Parameters
    ----------
    center : ndarray of shape (n_features,)
        Point of the unit ball.
    chunk : LinearChunk
        Dense rows without an intercept.

    Returns
    -------
    gaps : ndarray of shape (n_features, n_rows)
        Fresh, one row in each column.
    distance : ndarray of shape (n_rows,)
        Their Euclidean norms.
    """
    gaps, _ = unit_columns(chunk)
    # differences first: distances from products would lose the digits of near rows
    with np.errstate(under="ignore"):
        gaps -= center[:, None]
        return gaps, np.sqrt((gaps * gaps).sum(axis=0))


def distances_from(center, chunk):
    """Return the distances of a chunk's rows from a centre.

    Parameters
    ----------
    center : ndarray of shape (n_features,) or None
        Point of the unit ball; None is the origin.
    chunk : LinearChunk
        Rows without an intercept; sparse only without a centre.

    Returns
    -------
    distances : ndarray of shape (n_rows,)
        In float64. Those of null rows mean nothing.
    """
    if center is not None:
        return gaps_from(center, chunk)[1]
    if sparse.issparse(chunk.X):
        # summed in the stored order of each row
        return np.where(chunk.norm > _FLOOR, chunk.norm, 0.0)
    return unit_columns(chunk)[1]

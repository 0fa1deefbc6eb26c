# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a linear model around a public centre, within a public radius."""

import numpy as np

from skdp._queries._linear_rows import LinearChunk, LinearRows
from skdp._queries._unit_columns import unit_columns


def centred_rows(rows, center, intercept, radius=1.0, shorten=False):
    """Return rows moved so that a public point is their origin.

    Parameters
    ----------
    rows : LinearRows
        Dense rows f x in the unit ball, without an intercept.
    center : ndarray of shape (n_features,)
        Public point, in units of the ball.
    intercept : float
        Constant feature of the new rows.
    radius : float, default=1.0
        Public radius tau: the new rows are ``((f x - center) / tau, intercept)``.
    shorten : bool, default=False
        Whether the whole of a row is shortened to norm ``sqrt(1 + intercept^2)`` where it is
        longer.

    Returns
    -------
    moved : LinearRows
        In float64, a copy: moving the rows anew at every step would take longer than the
        step.

    Notes
    -----
    A unit in the last place of x may be long in units of a small radius. So a new row is a
    function of the old one alone, whatever the memory layout that other rows bring about.
    """
    n_rows = sum(len(chunk.norm) for chunk in rows.chunks)
    moved = object.__new__(LinearRows)
    moved.n_threads, moved.n_entries = rows.n_threads, rows.n_entries
    moved._X, moved._whole = np.empty((n_rows, len(center))), None
    moved.chunks, start = [], 0
    for chunk in rows.chunks:
        body = moved._X[start : start + len(chunk.norm)]
        start += len(chunk.norm)
        columns, _ = unit_columns(chunk)
        with np.errstate(under="ignore"):
            columns -= center[:, None]
            columns /= radius
            norm = np.hypot(np.sqrt((columns * columns).sum(axis=0)), intercept)
        lift = None
        if shorten:
            longest = np.hypot(1.0, intercept)
            lift = longest / np.maximum(norm, longest)
            columns *= lift
            np.minimum(norm, longest, out=norm)
        body[:] = columns.T
        # as for all rows: no limit on a row of zeros, and nothing left of a null row
        norm = np.maximum(norm, 1e-100)
        norm[np.isinf(chunk.norm)] = np.inf
        ones = np.ones(len(norm))
        moved.chunks.append(LinearChunk(body, ones, norm, chunk.target, intercept, lift))
    return moved

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a linear model around a public centre, within a public radius."""

from functools import partial

import numpy as np

from skdp._queries._linear_chunk import LinearChunk
from skdp._queries._linear_rows import usable_norms
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
        step. Rows that are read chunk by chunk are moved anew all the same.

    Notes
    -----
    A unit in the last place of x may be long in units of a small radius. So a new row is a
    function of the old one alone, whatever the memory layout that other rows bring about.
    """
    move = partial(_centred, center=center, intercept=intercept, radius=radius, shorten=shorten)
    if rows.is_streamed:
        return rows.mapped(move)
    X, chunks, start = np.empty((rows.n_rows, len(center))), [], 0
    for chunk in rows.chunks:
        body = X[start : start + len(chunk.norm)]
        start += len(chunk.norm)
        chunks.append(move(chunk, body=body))
    return rows.with_chunks(chunks, X)


def _centred(chunk, center, intercept, radius, shorten, body=None):
    """Return one chunk of moved rows; `body` is where they are to be stored."""
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
    if body is None:
        body = np.empty(columns.shape[::-1])
    body[:] = columns.T
    norm = usable_norms(norm, np.isinf(chunk.norm))
    return LinearChunk(body, np.ones(len(norm)), norm, chunk.target, intercept, lift)

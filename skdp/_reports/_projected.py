# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reports of unit vectors by ProjUnit: rotated, cut, reported and rotated back."""

import math

import numpy as np

from skdp._reports._chunks import CHUNK, in_chunks
from skdp._reports._coins import coins
from skdp._reports._cube import uniform_subsets
from skdp._reports._rows import unit_rows
from skdp._reports._unit import report_unit
from skdp._reports._words import normals

#: the largest dimension in which a uniformly random rotation is made
MOST_DENSE = 4096


def report_projected(projected, vectors, bits, n_threads=1, rotation=None, *, out=None):
    """Return the report of the direction of every row, in all its entries.

    Parameters
    ----------
    projected : ProjUnit
        Parameters.
    vectors : ndarray of shape (n, d)
        Rows of which the directions are reported. A row without one takes a direction that is
        uniform among those that are kept.
    bits, n_threads : Bits, int
        As for `in_chunks`.
    rotation : callable, default=None
        What `make_rotation` returned; None to make a fresh one.
    out : ndarray of shape (n, d), default=None
        Takes the reports.

    Returns
    -------
    reports : ndarray of shape (n, d)

    Notes
    -----
    All rows of a call share a rotation, and each draws the entries that it keeps. Both are
    public: they could be seeds that are sent along. Any entries of a uniform rotation are as
    good as any others, so every report has the law of `ProjUnit`, and its mean is the
    direction. Given the rotation, the mean is off by a length of about ``1.2/k``, by which
    the reports of one call have to do with each other. (If the entries were shared too, it
    would be off by ``sqrt(d/k - 1)``.) Another call takes another rotation.
    """
    rotate = make_rotation(projected, bits) if rotation is None else rotation
    n_rows, n_dims = vectors.shape
    wide, k = projected.n_rotated, projected.n_kept
    factor = projected.unit.scale / projected.scale * math.sqrt(wide / k)
    out = np.empty((n_rows, n_dims)) if out is None else out
    step = max(1, CHUNK // wide)
    for start in range(0, n_rows, step):
        rows = slice(start, min(start + step, n_rows))
        padded = np.zeros((rows.stop - start, wide))
        padded[:, :n_dims] = unit_rows(vectors[rows])[0]
        kept = _kept_entries(len(padded), wide, k, bits)
        parts = np.take_along_axis(rotate(padded, False), kept, axis=1)
        parts = report_unit(projected.unit, parts, bits, n_threads)
        padded[:] = 0.0
        np.put_along_axis(padded, kept, parts * factor, axis=1)
        out[rows] = rotate(padded, True)[:, :n_dims]
    return out


def _kept_entries(n_rows, wide, k, bits):
    """Return positions of k entries for every row, uniform among all subsets."""
    chosen = np.ones((n_rows, wide), dtype=bool)
    if k < wide:

        def work(rows, words):
            chosen[rows], tied = uniform_subsets(words, np.full(len(words), k))
            return np.flatnonzero(tied)

        in_chunks(work, n_rows, wide, bits)
    return np.nonzero(chosen)[1].reshape(n_rows, k)


def make_rotation(projected, bits):
    """Return a random rotation of rows.

    Parameters
    ----------
    projected : ProjUnit
        Parameters; `rotation` says which kind.
    bits : Bits
        Source of random words.

    Returns
    -------
    rotate : callable
        ``rotate(rows, back)`` returns the rotated rows, or those rotated back.

    Raises
    ------
    ValueError
        If a uniform rotation would be a matrix of more than 4096 rows.

    Notes
    -----
    "haar": the orthogonal factor of a matrix of normals, uniform if the other factor has a
    positive diagonal. "hadamard": random signs, then Hadamard's matrix, in ``d log d`` steps.
    """
    wide = projected.n_rotated
    if projected.rotation == "hadamard":
        signs = np.where(coins(0.5, wide, bits), 1.0, -1.0)

        def rotate(rows, back):
            return hadamard(rows) * signs if back else hadamard(rows * signs)

        return rotate
    if wide > MOST_DENSE:
        raise ValueError(
            f'rotation="haar" is for at most {MOST_DENSE} dimensions, got {wide}; '
            'rotation="hadamard" is for more.'
        )
    matrix, upper = np.linalg.qr(normals(bits.words(wide * wide)).reshape(wide, wide))
    matrix *= np.where(np.diagonal(upper) < 0.0, -1.0, 1.0)
    return lambda rows, back: rows @ (matrix if back else matrix.T)


def hadamard(rows):
    """Return rows times Hadamard's matrix, made orthogonal; their length is a power of two."""
    n_rows, wide = rows.shape
    made, half = rows / math.sqrt(wide), 1
    while half < wide:
        pairs = made.reshape(n_rows, -1, 2, half)
        made = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        half *= 2
    return made.reshape(n_rows, wide)

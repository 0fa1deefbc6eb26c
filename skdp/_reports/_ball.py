# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reports of vectors in the unit ball, made from one of a unit vector."""

import numpy as np

from skdp._randomisers import PrivUnit, PrivUnitG
from skdp._reports._gaussian import report_gaussian
from skdp._reports._projected import report_projected
from skdp._reports._rows import row_lengths, unit_rows
from skdp._reports._scalar import report_scalar
from skdp._reports._unit import report_unit
from skdp._reports._words import uniforms


def report_lift(lift, vectors, bits, n_threads=1, *, out=None):
    """Return the unbiased report of every row by `Lift`.

    Parameters
    ----------
    lift : Lift
        Parameters.
    vectors : ndarray of shape (n, d)
        Rows of length at most 1. Longer ones are scaled down, and those that are not finite
        count as zero. It is the same for the two functions below.
    bits, n_threads : Bits, int
        As for `in_chunks`.
    out : ndarray of shape (n, d), default=None
        Takes the reports.

    Returns
    -------
    reports : ndarray of shape (n, d)
    """
    out = np.empty(vectors.shape) if out is None else out
    if isinstance(lift.unit, PrivUnit):
        return report_unit(lift.unit, vectors, bits, n_threads, out=out, prepare=lifted)
    out[:] = _direction(lift.unit)(lift.unit, lifted(vectors), bits, n_threads)[:, :-1]
    return out


def lifted(rows):
    """Return rows with one more entry, with which their length is 1."""
    lengths = row_lengths(rows)
    made = np.empty((len(rows), rows.shape[1] + 1))
    made[:, :-1] = rows
    # rows that are not finite have length 0
    made[lengths == 0.0, :-1] = 0.0
    long = lengths > 1.0
    made[long, :-1] = unit_rows(rows[long])[0]
    short = np.minimum(lengths, 1.0)
    made[:, -1] = np.sqrt((1.0 - short) * (1.0 + short))
    return made


def report_flip(flip, vectors, bits, n_threads=1, *, out=None):
    """Return the unbiased report of every row by `Flip`; see `report_lift`."""
    lengths = np.minimum(row_lengths(vectors), 1.0)
    keep = 2.0 * uniforms(bits.words(len(vectors))) < 1.0 + lengths
    signs = np.where(keep, 1.0, -1.0)
    if isinstance(flip.unit, PrivUnit):
        return report_unit(flip.unit, vectors, bits, n_threads, out=out, factors=signs)
    made = _direction(flip.unit)(flip.unit, vectors, bits, n_threads, out=out)
    made *= signs[:, None]
    return made


def _direction(unit):
    """Return the sampler of reports of unit vectors."""
    return report_gaussian if isinstance(unit, PrivUnitG) else report_projected


def report_product(product, vectors, bits, n_threads=1, *, out=None):
    """Return the unbiased report of every row by `Product`; see `report_lift`."""
    lengths = report_scalar(product.grid, row_lengths(vectors), bits)
    return report_unit(product.unit, vectors, bits, n_threads, out=out, factors=lengths)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sparse recovery from few noisy measurements: which form, which solver, and what if it fails."""

import warnings

import numpy as np

from skdp._recovery._cvxpy import recover_with_cvxpy
from skdp._recovery._first_order import recover_constrained, recover_shortest

RECOVERIES = ("constrained", "denoising", "equality")
SOLVERS = ("cvxpy", "first-order")
# Entries of the matrix up to which an interior-point method meets measurements exactly in
# less time than first-order steps. With noise allowed for, these are faster at any size.
_EXACT_LIMIT = 100_000


def recover(matrix, b, form, *, radius=None, slack=0.0, nonnegative=False, solver="auto"):
    """Return a vector of small l1 norm that explains noisy measurements.

    Parameters
    ----------
    matrix : Measurement
        A; public.
    b : ndarray of shape (n_measurements,)
        Released measurements, finite.
    form : {"constrained", "denoising", "equality"}
        The least ``|A z - b|_2`` over the l1 ball of a radius; the least l1 norm with
        ``|A z - b|_2 <= slack``; the least l1 norm with ``A z = b``, which fits the noise.
    radius : float, default=None
        For "constrained".
    slack : float, default=0.0
        For "denoising".
    nonnegative : bool, default=False
        Whether no entry of z is negative.
    solver : {"auto", "cvxpy", "first-order"}, default="auto"
        "auto" is "cvxpy" for "equality" and a small matrix, and "first-order" for the rest.

    Returns
    -------
    z : ndarray of shape (n_features,)
        Finite. If cvxpy fails or finds no optimum, what first-order steps find.
    """
    z, largest = np.zeros(matrix.shape[1]), np.abs(b).max()
    if largest == 0:
        return z
    with np.errstate(over="ignore", under="ignore"):
        unit = largest * np.linalg.norm(b / largest)
        b = b / unit
        radius = radius / unit if form == "constrained" else None
        slack = slack / unit if form == "denoising" else 0.0
        if slack < 1:
            z = _solved(matrix, b, form, radius, slack, nonnegative, solver) * unit
    return z


def _solved(matrix, b, form, radius, slack, nonnegative, solver):
    """Return the solution for measurements of norm 1."""
    small = form == "equality" and matrix.shape[0] * matrix.shape[1] <= _EXACT_LIMIT
    if solver == "cvxpy" or (solver == "auto" and small):
        found = _guarded(matrix, b, radius, slack, nonnegative)
        if found is not None:
            return found
    if radius is not None:
        return recover_constrained(matrix, b, radius, nonnegative)
    return recover_shortest(matrix, b, slack, nonnegative)


def _guarded(matrix, b, radius, slack, nonnegative):
    """Return what cvxpy finds, or None; whatever happens there, nobody hears of it."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            z = recover_with_cvxpy(matrix, b, radius=radius, slack=slack, nonnegative=nonnegative)
            usable = z is not None and z.shape == matrix.shape[1:] and np.isfinite(z).all()
        except Exception:
            # solvers raise what they like; the first-order steps take over
            return None
    return z if usable else None

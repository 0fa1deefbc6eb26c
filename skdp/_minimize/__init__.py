# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Minimisers of strongly convex sums over rows, each with a certificate.

A minimiser is released with noise for the distance that one row can move it, and that
distance is proved for the exact minimiser. What is computed instead must be within a
public tolerance of it, whatever the rows are. Here every result is checked after the
fact, rounding errors included, and a solver that fails is replaced in silence by a
slower one: only the time depends on the rows.
"""

from skdp._minimize.bounds import Bounds, check_tolerance, reachable_tolerance
from skdp._minimize.certified import SMOOTH_SOLVERS, minimize_smooth
from skdp._minimize.nonsmooth import minimize_nonsmooth

__all__ = [
    "SMOOTH_SOLVERS",
    "Bounds",
    "check_tolerance",
    "minimize_nonsmooth",
    "minimize_smooth",
    "reachable_tolerance",
]

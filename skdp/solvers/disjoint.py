# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Disjoint parts of the rows: division among runs, and the choice of a result.

Runs on disjoint rows cost as much as one: a row is charged for its own part only. Restarts shrink
the search set, for losses that grow fast around their minimum (Algorithms 4 and 5 of Xu et al.
2025, from Su, Hu and Wang 2024). Independent runs on disjoint rows turn a bound in expectation
into a bound with high probability. Everything here is arithmetic on public numbers or on released
points.
"""

import itertools
import math
from numbers import Real

import numpy as np
from scipy.special import bdtr

from skdp._sklearn import Interval, StrOptions

#: fewest rows of a restart, and of a run of several
LEAST_RESTART, LEAST_SPLIT = 100, 20
#: probability with which one run is good: Markov's inequality at four times the expectation
GOOD_RUN = 0.75
#: parameters of the solvers that restart
RESTART_CONSTRAINTS = {
    "growth": [StrOptions({"halving", "doubling"}), None],
    "growth_order": [Interval(Real, 1, None, closed="neither")],
    "failure_probability": [Interval(Real, 0, 1, closed="neither"), None],
}
# more runs than the smallest positive float asks for
_MOST_SPLITS = 5999
# a golden stride spreads neighbouring rows far apart
_GOLDEN = (math.sqrt(5) - 1) / 2


def public_order(n_rows):
    """Return a fixed order of rows, far from sorted.

    Parameters
    ----------
    n_rows : int
        Number of rows.

    Returns
    -------
    order : ndarray of shape (n_rows,)
        Positions of rows.
    """
    stride = max(1, round(n_rows * _GOLDEN))
    while math.gcd(stride, n_rows) > 1:
        stride += 1
    return np.arange(n_rows) * stride % n_rows


def even_parts(start, stop, n_parts):
    """Return (first row, one after the last) of disjoint parts of nearly equal size."""
    n_rows = stop - start
    ends = [start + i * n_rows // n_parts for i in range(n_parts + 1)]
    return tuple(itertools.pairwise(ends))


def restarts(start, stop, growth=None, growth_order=2.0):
    """Divide rows among restarts; each halves the search radius.

    Parameters
    ----------
    start, stop : int
        First row, and the one after the last; at least one row.
    growth : {"halving", "doubling"} or None, default=None
        Parts of equal size, or of sizes that double; None for one part.
    growth_order : float, default=2.0
        For "doubling": a lower bound, greater than 1, on the exponent with which the
        expected loss grows around its minimum. The smaller, the more parts.

    Returns
    -------
    parts : tuple of (int, int, float)
        First row, the one after the last, and the search radius as a fraction of the first one.
        The parts cover all rows. Each has at least `LEAST_RESTART` rows, unless there is only one
        part.

    Notes
    -----
    The numbers of parts are from Xu et al.: ``floor(log2(2 n / log2 n) / 2) - 1`` and
    ``floor(log2(log2 n) / log2(growth_order))``. The sizes are not: the published "doubling"
    leaves up to three quarters of the rows unread.
    """
    n_rows = stop - start
    if growth is None or n_rows < 2 * LEAST_RESTART:
        return ((start, stop, 1.0),)
    if growth == "halving":
        n_parts = math.floor(math.log2(2 * n_rows / math.log2(n_rows)) / 2) - 1
        n_parts = max(1, min(n_parts, n_rows // LEAST_RESTART))
        parts = even_parts(start, stop, n_parts)
    elif growth == "doubling":
        wanted = math.log2(math.log2(n_rows)) / math.log2(growth_order)
        # sizes 1, 2, 4, ... times the first, which has the least number of rows
        most = int(math.log2(n_rows / LEAST_RESTART + 1))
        n_parts = max(1, math.floor(min(wanted, most)))
        ends = [start + (2**i - 1) * n_rows // (2**n_parts - 1) for i in range(n_parts + 1)]
        parts = itertools.pairwise(ends)
    else:
        raise ValueError(f"growth must be 'halving', 'doubling' or None; got {growth!r}.")
    return tuple((first, last, 2.0**-i) for i, (first, last) in enumerate(parts))


def splits(n_rows, failure_probability=None):
    """Divide rows among independent runs; with high probability most are good.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    failure_probability : float or None, default=None
        In (0, 1): the probability that at most half of the runs are good, if each is good with
        probability 3/4. None for one run.

    Returns
    -------
    parts : tuple of (int, int)
        First row, and the one after the last, of an odd number of parts of nearly equal size.

    Raises
    ------
    ValueError
        If there are fewer than `LEAST_SPLIT` rows for each of several runs.
    """
    if failure_probability is None:
        return ((0, n_rows),)
    if not 0 < failure_probability < 1:
        raise ValueError(f"failure_probability must be in (0, 1); got {failure_probability!r}.")
    numbers = np.arange(1, _MOST_SPLITS + 1, 2)
    failures = bdtr((numbers - 1) // 2, numbers, GOOD_RUN)
    n_parts = int(numbers[np.argmax(failures <= failure_probability)])
    if n_parts > max(1, n_rows // LEAST_SPLIT):
        allowed = failures[numbers <= max(1, n_rows // LEAST_SPLIT)][-1]
        digit = 10.0 ** (math.floor(math.log10(allowed)) - 2)
        raise ValueError(
            f"failure_probability={failure_probability!r} asks for {n_parts} runs on disjoint "
            f"rows, of at least {LEAST_SPLIT} rows each; there are {n_rows} rows, for which it "
            f"must be at least {math.ceil(allowed / digit) * digit:.3g}, or None."
        )
    return even_parts(0, n_rows, n_parts)


def least_median_distance(points):
    """Return the point with the least median distance to all points.

    Parameters
    ----------
    points : array-like of shape (n_points, size)
        What was released.

    Returns
    -------
    point : ndarray of shape (size,)
        One of the points; the first in a tie.

    Notes
    -----
    If more than half of the points are within r of some location, the result is within 3 r of it.
    The median includes the distance 0 of the point itself; of two middle distances it is the
    larger.
    """
    points = np.asarray(points, dtype=np.float64)
    middle = len(points) // 2
    medians = [
        np.partition(np.linalg.norm(points - point, axis=1), middle)[middle] for point in points
    ]
    return points[int(np.argmin(medians))]

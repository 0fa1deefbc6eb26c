# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How many cells the grid of a `ScalarGrid` best has."""

import math
from functools import lru_cache

import numpy as np

from skdp._randomisers._odds import check_local_epsilon
from skdp._randomisers._scalar_grid import relative_levels, scalar_grid

#: the largest number of cells of a grid that is chosen here
MOST_CELLS = 1 << 20


def uniform_variance(number, n_cells, epsilon):
    """Return the variance of reports of a number in [0, 1] on uniform grids.

    Parameters
    ----------
    number : float or ndarray
        In [0, 1].
    n_cells : int or ndarray of int
        Numbers of cells, which are broadcast.
    epsilon : float
        Budget of one report.

    Returns
    -------
    variance : float or ndarray
        As `ScalarGrid.variance`, without making the grid.
    """
    k = np.asarray(n_cells, dtype=np.float64)
    j = np.minimum(np.floor(number * k), k - 1)
    up = number * k - j
    low, high = _uniform_at(j, k, epsilon), _uniform_at(j + 1, k, epsilon)
    return (1 - up) * low + up * high + up * (1 - up) / k**2


def worst_uniform_variance(n_cells, epsilon):
    """Return the largest variance over [0, 1], as `uniform_variance` for each number.

    The variance at levels is convex and symmetric about the middle, so the worst number is in
    the outermost cell.
    """
    k = np.asarray(n_cells, dtype=np.float64)
    low, high = _uniform_at(0.0, k, epsilon), _uniform_at(1.0, k, epsilon)
    up = np.clip(0.5 * (1.0 + (high - low) * k**2), 0.0, 1.0)
    return low + up * (high - low) + up * (1 - up) / k**2


def _uniform_at(j, k, epsilon):
    log_k = np.log(k)
    # vanishes for large budgets
    with np.errstate(under="ignore"):
        b = np.exp(-np.logaddexp(epsilon, log_k))
    s = -math.expm1(-epsilon) / (1.0 + k * math.exp(-epsilon))
    squares = (k + 1) * (k + 2) / (12.0 * k)
    return (b / s**2) * (s * (k + 1) * (j / k - 0.5) ** 2 + squares)


def cells_to_try(epsilon):
    """Return numbers of cells, among which is a nearly best one, an ndarray of int.

    Rounding and response have equal variances near ``exp(epsilon / 3)`` cells. All numbers up to
    64 are tried, and beyond that some in distances of 2 %.
    """
    most = min(_most_cells(epsilon), MOST_CELLS)
    more = np.geomspace(64.0, most, math.ceil(50.0 * math.log(max(most, 65) / 64)) + 1)
    return np.concatenate([np.arange(1, min(64, most) + 1), np.ceil(more[more > 64.0])])


def _most_cells(epsilon):
    return int(4.0 * math.exp(min(epsilon, 60.0) / 3.0) + 8.0)


@lru_cache(maxsize=256, typed=True)
def best_uniform_cells(epsilon):
    """Return the number of cells whose largest variance is smallest, at most 2^20."""
    most = min(_most_cells(check_local_epsilon(epsilon)), MOST_CELLS)
    cells = np.arange(1, most + 1)
    return int(cells[np.argmin(worst_uniform_variance(cells, epsilon))])


@lru_cache(maxsize=256, typed=True)
def best_relative_cells(epsilon, floor):
    """Return the number of inner cells of the least relative error, for numbers up to 1.

    Parameters
    ----------
    epsilon : float
        Budget of one report.
    floor : float
        In (0, 1), as in `relative_levels`.

    Returns
    -------
    n_inner : int
        The best of 1 to 16 and of numbers that then grow by a tenth, up to 4096.
    """
    tries = [*range(1, 17), *(math.ceil(16 * 1.1**i) for i in range(1, 59))]
    errors = []
    for n_inner in tries:
        grid = scalar_grid(relative_levels(floor, n_inner), epsilon)
        errors.append(grid.worst_relative_error(floor))
        if errors[-1] > 4.0 * min(errors):
            break
    return tries[int(np.argmin(errors))]

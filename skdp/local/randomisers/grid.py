# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Local randomisers of bounded numbers: rounding to a grid, then randomised response.

A. Bhowmick et al. (2018), Algorithms 3 and 4. In this order: the randomiser of one number, and
that of every entry of a row; levels; the best number of cells.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.local.randomisers.base import (
    BLOCK,
    Randomiser,
    budget_of,
    check_local_epsilon,
    check_packed,
    coins,
    largest_chance,
    pack_numbers,
    positions_below,
    uniforms,
    unpack_numbers,
)


@dataclass(frozen=True, eq=False)
class ScalarGrid(Randomiser):
    """Parameters of the randomiser of one number, and what follows from them.

    Parameters
    ----------
    levels : ndarray of shape (k + 1,)
        Increasing numbers, at least two. What is reported lies between the first and the last.
    p : float
        Probability that the level is kept, greater than ``1 / (k + 1)``; otherwise it becomes
        one of the k others, each with equal probability.

    Notes
    -----
    A number r is rounded to one of the two levels around it, at random and so that its mean is
    r. After randomised response a level has probability p if it is the level that the number
    was rounded to, and ``b = (1-p)/k`` if not. Mixtures of these stay between b and p, so
    epsilon is ``log(p/b)``, the log-odds of p less those of ``1 / (k + 1)``.

    With ``s = p - b`` the mean of the level is ``s r + b sum(levels)``, and the report
    ``(level - b sum(levels)) / s`` is unbiased. The uniform grid is the mechanism ScalarDP of
    Bhowmick et al. (2018), Algorithm 3. Their Algorithm 4 takes the grid that is geometric
    from ``nu alpha`` on and has no level between that and 0. Their Lemma B.1 is false there:
    rounding alone has variance ``(nu alpha)^2 / 4``, where ``((nu-1) alpha)^2`` is claimed;
    `relative_levels` has levels in between.
    """

    levels: np.ndarray
    p: float

    exact = True

    def __post_init__(self):
        levels = np.array(self.levels, dtype=np.float64)
        finite = levels.ndim == 1 and levels.size > 1 and bool(np.isfinite(levels).all())
        # squares of larger numbers overflow
        finite = finite and bool((np.abs(levels) <= 1e150).all())
        if not finite or not (levels[1:] > levels[:-1]).all():
            raise ValueError(
                "levels must be at least two numbers of size at most 1e150 that increase."
            )
        levels.setflags(write=False)
        object.__setattr__(self, "levels", levels)
        if not 1.0 / levels.size < self.p < 1.0:
            raise ValueError(
                f"p must be below 1 and above one share of the levels, {1.0 / levels.size!r}, "
                f"got {self.p!r}."
            )

    @cached_property
    def epsilon(self):
        """The budget of one report, rounded up by the accuracy of the arithmetic."""
        return budget_of(self.p, -math.log(self.levels.size))

    @property
    def scale(self):
        """The number s by which the mean of a level follows the number."""
        return self.p - (1.0 - self.p) / (self.levels.size - 1)

    @cached_property
    def outputs(self):
        """The report of each level; the outermost lie a little outside of the levels."""
        middle = self.levels.mean()
        return middle + (self.levels - middle) / self.scale

    @cached_property
    def _at_levels(self):
        # with the mean of the levels as origin no term is negative
        k, s = self.levels.size - 1, self.scale
        g = self.levels - self.levels.mean()
        b = (1.0 - self.p) / k
        return (b / s**2) * (s * (k + 1) * g**2 + np.sum(g**2))

    def variance(self, number):
        """Return the variance of a report.

        Parameters
        ----------
        number : float or ndarray
            Between the first and the last level.

        Returns
        -------
        variance : float or ndarray
            The mean of the variances at the two levels around the number, in the proportions
            of the rounding, plus the product of the distances to them.
        """
        g, c = self.levels, self._at_levels
        if not np.all((number >= g[0]) & (number <= g[-1])):
            raise ValueError(f"number must be between {g[0]} and {g[-1]}, got {number!r}.")
        j = np.clip(np.searchsorted(g, number, side="right") - 1, 0, g.size - 2)
        up = (number - g[j]) / (g[j + 1] - g[j])
        return (1 - up) * c[j] + up * c[j + 1] + (number - g[j]) * (g[j + 1] - number)

    @cached_property
    def worst_variance(self):
        """The largest variance of a report over all numbers.

        In each cell the variance is a concave parabola; its top, or the nearer end of the
        cell, is evaluated.
        """
        g, c = self.levels, self._at_levels
        width = np.diff(g)
        top = np.clip(0.5 * (width + np.diff(c) / width), 0.0, width)
        return float(np.max(c[:-1] + np.diff(c) * (top / width) + top * (width - top)))

    def worst_relative_error(self, floor):
        """Return the largest of ``variance(r) / max(r, floor)^2``.

        Parameters
        ----------
        floor : float
            Greater than 0. Below that, errors count as if the number were that.

        Returns
        -------
        error : float
            Above the floor the quotient is a parabola in 1/r in each cell; the ends of cells
            and the vertices are tried.
        """
        g, c = self.levels, self._at_levels
        low, width = g[:-1], np.diff(g)
        slope = np.diff(c) / width + low + g[1:]
        front = c[:-1] - low * np.diff(c) / width - low * g[1:]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            vertex = np.nan_to_num(-2.0 * front / slope, nan=0.0)
        tries = np.concatenate([0.5 * slope, vertex])
        tries = np.clip(tries, np.tile(low, 2), np.tile(g[1:], 2))
        tries = np.concatenate([g, tries, np.clip([floor], g[0], g[-1])])
        return float(np.max(self.variance(tries) / np.maximum(tries, floor) ** 2))

    @property
    def size(self):
        """Number of entries of a row, and of its report: one."""
        return 1

    @property
    def bound(self):
        """Bound on the magnitude of all reports."""
        return float(np.abs(self.outputs).max())

    def message_bits(self, number_bits=32, n_entries=None):
        """Return how many bits a report takes when it is sent: the number of its level."""
        return (self.levels.size - 1).bit_length()

    def packed(self, report, grid):
        """Return one report, or those of several numbers, as bytes: their levels."""
        levels = np.abs(self.outputs[:, None] - report).argmin(axis=0)
        return pack_numbers(levels, self.message_bits())

    def unpacked(self, message, grid, size=1):
        """Return the reports of some numbers, one by default; see `Randomiser`."""
        levels = unpack_numbers(message, self.message_bits(), size)
        check_packed(bool((levels < self.levels.size).all()))
        return np.rint(self.outputs[levels] / grid) * grid

    def log_law_of(self, reports, number):
        """Return the logarithms of the probabilities of reports of one number.

        Parameters
        ----------
        reports : ndarray of shape (n,)
            Entries of `outputs`, as far as floats go; others have probability 0.
        number : float
            As for `report_numbers`.

        Returns
        -------
        log_law : ndarray of shape (n,)
        """
        g = self.levels
        number = min(max(number if number == number else g[0], g[0]), g[-1])
        cell = min(max(int(np.searchsorted(g, number, side="right")) - 1, 0), g.size - 2)
        share = (number - g[cell]) / (g[cell + 1] - g[cell])
        other = (1.0 - self.p) / (g.size - 1)
        chances = np.full(g.size, other)
        chances[cell] += (1.0 - share) * (self.p - other)
        chances[cell + 1] += share * (self.p - other)
        outputs = self.outputs
        place = np.abs(outputs[:, None] - reports).argmin(axis=0)
        apart = np.abs(outputs[place] - reports)
        found = np.log(chances)[place]
        return np.where(apart <= 1e-3 * np.diff(outputs).min(), found, -np.inf)

    def log_law(self, reports, vector):
        """Return the logarithms of the probabilities of reports; see `Randomiser`."""
        return self.log_law_of(reports[:, 0], float(vector[0]))

    def report_numbers(self, numbers, bits):
        """Return the unbiased report of every number.

        Parameters
        ----------
        numbers : ndarray of shape (n,)
            Numbers beyond the outermost levels count as these, and NaN as the first.
        bits : Bits
            Source of random words.

        Returns
        -------
        reports : ndarray of shape (n,)
            Entries of `outputs`.

        Notes
        -----
        Given the level to which a number is rounded, the law of its report is exactly that of
        the parameters.
        """
        k = self.levels.size - 1
        place = rounded_places(self.levels, numbers, bits)
        kept = coins(self.p, len(numbers), bits)
        other = positions_below(k, len(numbers), bits)
        # the level itself is left out of the others
        other += other >= place
        return self.outputs[np.where(kept, place, other)]

    def randomise(self, vectors, bits, n_threads=1, *, out=None):
        """Return the unbiased report of every row, which is one number; see `Randomiser`."""
        out = np.empty(vectors.shape) if out is None else out
        out[:, 0] = self.report_numbers(vectors[:, 0], bits)
        return out


@dataclass(frozen=True, eq=False)
class EntrywiseGrid(Randomiser):
    """Every entry of a row reports on its own.

    Parameters
    ----------
    grid : ScalarGrid
        Parameters of each entry.
    n_dims : int
        Number of entries. Their budgets add up.
    """

    grid: ScalarGrid
    n_dims: int

    exact = True
    # every entry needs what a row does
    block_entries = BLOCK

    @cached_property
    def epsilon(self):
        """The budget of the reports of a row, rounded up."""
        return math.nextafter(self.n_dims * self.grid.epsilon, math.inf)

    @property
    def worst_variance(self):
        """The largest variance of an entry of a report."""
        return self.grid.worst_variance

    @property
    def bound(self):
        """Bound on the magnitude of all entries of reports."""
        return self.grid.bound

    def message_bits(self, number_bits=32, n_entries=None):
        """Return how many bits a report takes when it is sent: the numbers of its levels."""
        return (self.n_dims if n_entries is None else n_entries) * self.grid.message_bits()

    def packed(self, report, grid):
        """Return one report as bytes: the levels of its entries."""
        return self.grid.packed(report, grid)

    def unpacked(self, message, grid):
        """Return the report that bytes are of; see `Randomiser`."""
        return self.grid.unpacked(message, grid, self.n_dims)

    def log_law(self, reports, vector):
        """Return the logarithms of the probabilities of reports; see `Randomiser`."""
        entries = zip(reports.T, vector, strict=True)
        return np.sum([self.grid.log_law_of(own, float(number)) for own, number in entries], axis=0)

    def randomise(self, vectors, bits, n_threads=1, *, out=None):
        """Return the unbiased report of every row; see `Randomiser`."""
        out = np.empty(vectors.shape) if out is None else out
        out[:] = self.grid.report_numbers(vectors.ravel(), bits).reshape(vectors.shape)
        return out


def uniform_levels(n_cells: int, high: float = 1.0) -> NDArray[np.float64]:
    """Return the ends of equal cells from 0 to a number.

    Parameters
    ----------
    n_cells : int
        Number of cells.
    high : float, default=1.0
        The last level.

    Returns
    -------
    levels : ndarray of shape (n_cells + 1,)
        Increasing.

    Examples
    --------
    >>> from skdp.local import uniform_levels
    >>> uniform_levels(4)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    return np.linspace(0.0, high, n_cells + 1)


def relative_levels(floor: float, n_inner: int, high: float = 1.0) -> NDArray[np.float64]:
    """Return levels that are as fine as numbers are small, down to a floor.

    Parameters
    ----------
    floor : float
        Greater than 0 and less than `high`: below it, levels have equal distances.
    n_inner : int
        Number of cells from 0 to the floor. Beyond, levels grow by a factor of at most
        ``1 + 1 / n_inner``, so no cell is wider than ``max(r, floor) / n_inner`` for the
        numbers r inside of it.
    high : float, default=1.0
        The last level.

    Returns
    -------
    levels : ndarray
        Increasing.

    Examples
    --------
    >>> from skdp.local import relative_levels
    >>> relative_levels(0.25, 1)
    array([0.  , 0.25, 0.5 , 1.  ])
    """
    if not 0.0 < floor < high:
        raise ValueError(f"floor must be greater than 0 and less than {high}, got {floor!r}.")
    n_outer = math.ceil(math.log(high / floor) / math.log1p(1.0 / n_inner))
    inner = np.linspace(0.0, floor, n_inner + 1)
    outer = np.geomspace(floor, high, n_outer + 1)
    return np.concatenate([inner, outer[1:]])


def scalar_grid(levels: ArrayLike, epsilon: float) -> ScalarGrid:
    """Return the randomiser of a number that spends a budget, or hardly less.

    Parameters
    ----------
    levels : array-like of shape (n_levels,)
        Increasing numbers, at least two.
    epsilon : float
        Budget of one report in nats, from 10^-6 to 10^6.

    Returns
    -------
    parameters : ScalarGrid
        Randomiser with an `epsilon` of at most the budget.

    Examples
    --------
    The mechanism ScalarDP of Bhowmick et al. (2018) with their number of levels:

    >>> from skdp.local import scalar_grid, uniform_levels
    >>> grid = scalar_grid(uniform_levels(29), 10.0)
    >>> round(grid.worst_variance**0.5, 3)
    0.027
    """
    levels = np.asarray(levels, dtype=np.float64)
    return ScalarGrid(levels, largest_chance(check_local_epsilon(epsilon), -math.log(levels.size)))


# The best number of cells of a grid.


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


def rounded_places(levels, numbers, bits):
    """Return places of levels around numbers, drawn so that the means are the numbers."""
    numbers = np.clip(np.nan_to_num(numbers, nan=levels[0]), levels[0], levels[-1])
    cell = np.clip(np.searchsorted(levels, numbers, side="right") - 1, 0, levels.size - 2)
    share = (numbers - levels[cell]) / (levels[cell + 1] - levels[cell])
    return cell + (uniforms(bits.words(len(numbers))) < share)

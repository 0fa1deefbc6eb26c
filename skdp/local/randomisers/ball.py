# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Local randomisers of vectors in the unit ball, from a randomiser of unit vectors.

`Lift` adds an entry, `Flip` reverses directions at random (Duchi, Jordan and Wainwright 2018), and
`Product` reports direction and length separately (Bhowmick et al. 2018). The best choice for a
budget follows below.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from skdp.local.randomisers.base import (
    LENGTH_ROUNDING,
    Randomiser,
    UnitRandomiser,
    check_local_epsilon,
    directions_of,
    row_lengths,
    uniforms,
)
from skdp.local.randomisers.caps import check_dims
from skdp.local.randomisers.grid import (
    ScalarGrid,
    cells_to_try,
    scalar_grid,
    uniform_levels,
    uniform_variance,
)
from skdp.local.randomisers.privunit import PrivUnit, PrivUnitG, optimal_privunit


def check_norm(norm, name="norm"):
    """Return a norm as a float, or raise if it is not in [0, 1]."""
    norm = float(norm)
    if not 0.0 <= norm <= 1.0:
        raise ValueError(f"{name} must be in [0, 1], got {norm!r}.")
    return norm


class NoisyVectors(Randomiser):
    """Base of `Lift`, `Flip` and `Product`: the report of w is w plus noise of mean 0.

    Their `n_dims` is the dimension d of w, and `variances` says what the noise is. They draw
    from `unit`, a randomiser of directions. Rows longer than 1 are scaled down, and those that
    are not finite count as zero.
    """

    def variances(self, norm):
        """Return the variances of a report along w and along an orthogonal direction."""
        raise NotImplementedError

    def mean_squared_error(self, norm):
        """Return the mean squared distance of a report from a vector of the given norm."""
        along, across = self.variances(norm)
        return along + (self.n_dims - 1) * across

    @property
    def bound(self):
        """Bound on the magnitude of all entries of reports."""
        return self.unit.bound * LENGTH_ROUNDING

    @property
    def longest(self):
        """Bound on the Euclidean norms of all reports."""
        return self.unit.longest * LENGTH_ROUNDING

    def message_bits(self, number_bits=32, n_entries=None):
        """Return the number of bits of a message with one report, as for the direction."""
        return self.unit.message_bits(number_bits, self.n_dims if n_entries is None else n_entries)


@dataclass(frozen=True)
class Lift(NoisyVectors):
    """The vector with an additional entry that makes its length 1.

    Parameters
    ----------
    unit : PrivUnit, PrivUnitG or ProjUnit
        Parameters in dimension d + 1.

    Notes
    -----
    The report is the first d entries of the report of ``(w, sqrt(1 - |w|^2))``; leaving an entry
    out costs nothing. Its covariance is ``s I + (c/m - 1) w w'``, which does not depend on w at
    the best parameters.
    """

    unit: UnitRandomiser

    def __post_init__(self):
        check_dims(self.unit.n_dims, 2)

    @property
    def n_dims(self):
        """Dimension of the vectors."""
        return self.unit.n_dims - 1

    @property
    def epsilon(self):
        """The budget of one report."""
        return self.unit.epsilon

    def variances(self, norm):
        """Return the variances of a report along w and along an orthogonal direction."""
        across = self.unit.noise_variance
        return across + (self.unit.stretch - 1.0) * check_norm(norm) ** 2, across

    def log_law(self, reports, vector):
        """Return the logarithms of the densities of reports; see `Randomiser`.

        The omitted entry has one of two signs on a sphere, and is normal for `PrivUnitG`.
        """
        (long,) = lifted(np.atleast_2d(vector))
        if isinstance(self.unit, PrivUnitG):
            unit, aside = self.unit, long[-1]
            left = unit.threshold - reports @ long[:-1] * unit.scale
            if aside == 0.0:
                return np.where(left <= 0.0, *unit.log_densities)
            beyond = ndtr(-left / aside)
            inner, outer = np.exp(unit.log_densities)
            return np.log(inner * beyond + outer * (1.0 - beyond))
        if not isinstance(self.unit, PrivUnit):
            return super().log_law(reports, vector)
        square = 1.0 / self.unit.scale**2 - np.einsum("ij,ij->i", reports, reports)
        last = np.sqrt(np.maximum(square, 0.0))[:, None]
        sides = [self.unit.log_law(np.hstack([reports, s * last]), long) for s in (1.0, -1.0)]
        return np.logaddexp(*sides) - math.log(2.0)

    def given(self, source):
        """Draw the public part of a report; see `Randomiser`.

        If there is a public part, the omitted entry of a report counts as public too.
        """
        unit, carried, restored = self.unit.given(source)
        if unit is self.unit:
            return super().given(source)
        return (
            unit,
            lambda vectors: carried(lifted(np.asarray(vectors))),
            lambda reports: restored(reports)[:, :-1],
        )

    def randomise(self, vectors, bits, n_threads=1, *, out=None):
        """Return the unbiased report of every row; see `Randomiser`."""
        out = np.empty(vectors.shape) if out is None else out
        return self.unit.randomise(vectors, bits, n_threads, out=out, prepare=lifted)


def lifted(rows):
    """Return rows with an additional entry that makes their length 1."""
    lengths = row_lengths(rows)
    made = np.empty((len(rows), rows.shape[1] + 1))
    made[:, :-1] = rows
    # rows that are not finite have length 0
    made[lengths == 0.0, :-1] = 0.0
    long = lengths > 1.0
    made[long, :-1] = directions_of(rows[long])[0]
    short = np.minimum(lengths, 1.0)
    made[:, -1] = np.sqrt((1.0 - short) * (1.0 + short))
    return made


@dataclass(frozen=True)
class Flip(NoisyVectors):
    """The direction, reversed at random with the correct mean.

    Parameters
    ----------
    unit : PrivUnit, PrivUnitG or ProjUnit
        Parameters in dimension d.

    Notes
    -----
    The report is the report of ``w/|w|`` with probability ``(1 + |w|) / 2`` and of its opposite
    otherwise (Duchi, Jordan and Wainwright 2018); a zero vector reports a random direction. Its
    length is 1/m, and its second moment is ``s I + (c/m) u u'``.
    """

    unit: UnitRandomiser

    @property
    def n_dims(self):
        """Dimension of the vectors."""
        return self.unit.n_dims

    @property
    def epsilon(self):
        """The budget of one report."""
        return self.unit.epsilon

    def variances(self, norm):
        """Return the variances of a report along w and along an orthogonal direction."""
        across = self.unit.noise_variance
        return across + self.unit.stretch - check_norm(norm) ** 2, across

    def log_law(self, reports, vector):
        """Return the logarithms of the densities of reports; see `Randomiser`."""
        length = min(float(row_lengths(np.atleast_2d(vector))[0]), 1.0)
        sides = [self.unit.log_law(reports, sign * vector) for sign in (1.0, -1.0)]
        # of a unit vector nothing is turned round; and NaN where there is no closed form
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.log([(1.0 + length) / 2.0, (1.0 - length) / 2.0])
            return np.logaddexp(*(side + share for side, share in zip(sides, shares, strict=True)))

    def given(self, source):
        """Draw the public part of a report; see `Randomiser`."""
        unit, carried, restored = self.unit.given(source)
        if unit is self.unit:
            return super().given(source)

        def shortened(vectors):
            lengths = np.minimum(row_lengths(np.asarray(vectors)), 1.0)
            return directions_of(carried(vectors))[0] * lengths[:, None]

        return Flip(unit), shortened, restored

    def randomise(self, vectors, bits, n_threads=1, *, out=None):
        """Return the unbiased report of every row; see `Randomiser`."""
        lengths = np.minimum(row_lengths(vectors), 1.0)
        keep = 2.0 * uniforms(bits.words(len(vectors))) < 1.0 + lengths
        signs = np.where(keep, 1.0, -1.0)
        return self.unit.randomise(vectors, bits, n_threads, out=out, factors=signs)


@dataclass(frozen=True)
class Product(NoisyVectors):
    """The report of the direction times an independent report of the length.

    Parameters
    ----------
    unit : PrivUnit
        Parameters of the direction, in dimension d.
    grid : ScalarGrid
        Parameters of the length, with levels from 0 to 1.

    Notes
    -----
    Section 4 of Bhowmick et al. (2018). The two budgets add up. With variance V of the length, the
    second moment is ``(|w|^2 + V) (s I + (c/m) u u')``. Negative lengths occur and must be kept,
    or the mean would change. A zero vector takes a random direction.
    """

    unit: PrivUnit
    grid: ScalarGrid

    def __post_init__(self):
        if self.grid.levels[0] != 0.0 or self.grid.levels[-1] != 1.0:
            raise ValueError("grid must have levels from 0 to 1.")

    @property
    def n_dims(self):
        """Dimension of the vectors."""
        return self.unit.n_dims

    @property
    def epsilon(self):
        """The budget of one report, rounded up."""
        return math.nextafter(self.unit.epsilon + self.grid.epsilon, math.inf)

    def variances(self, norm):
        """Return the variances of a report along w and along an orthogonal direction."""
        norm = check_norm(norm)
        square = norm**2 + float(self.grid.variance(norm))
        across = square * self.unit.noise_variance
        return across + square * self.unit.cosine / self.unit.scale - norm**2, across

    @property
    def bound(self):
        """Bound on the magnitude of all entries of reports."""
        return self.unit.bound * self.grid.bound * LENGTH_ROUNDING

    @property
    def longest(self):
        """Bound on the Euclidean norms of all reports."""
        return self.bound

    def message_bits(self, number_bits=32, n_entries=None):
        """Return the number of bits of a message with one report; the length is multiplied in."""
        return Randomiser.message_bits(self, number_bits, n_entries)

    def log_law(self, reports, vector):
        """Return the logarithms of the densities of reports; see `Randomiser`.

        Only the direction distinguishes a length from its opposite.
        """
        reported = row_lengths(reports) * self.unit.scale
        length = row_lengths(np.atleast_2d(vector))
        totals = np.full(len(reports), -np.inf)
        for sign in (1.0, -1.0):
            # nobody reports a length that no level has; grids of reports are far finer
            own = self.grid.log_law_of(sign * reported, float(length[0]))
            totals = np.logaddexp(totals, own + self.unit.log_law(sign * reports, vector))
        return totals

    def randomise(self, vectors, bits, n_threads=1, *, out=None):
        """Return the unbiased report of every row; see `Randomiser`."""
        lengths = self.grid.report_numbers(row_lengths(vectors), bits)
        return self.unit.randomise(vectors, bits, n_threads, out=out, factors=lengths)


def lift(epsilon, n_dims):
    """Return the `Lift` of least error for a budget in dimension `n_dims`."""
    return Lift(optimal_privunit(epsilon, check_dims(n_dims) + 1))


def flip(epsilon, n_dims):
    """Return the `Flip` of least error for a budget in dimension `n_dims`."""
    return Flip(optimal_privunit(epsilon, n_dims))


def product(epsilon, n_dims, epsilon_norm, n_cells):
    """Return the `Product` of a split of a budget.

    Parameters
    ----------
    epsilon : float
        Budget of one report.
    n_dims : int
        Dimension of the vectors.
    epsilon_norm : float
        Part of the budget for the length.
    n_cells : int
        Number of equal cells of the grid of lengths.

    Returns
    -------
    parameters : Product
        Randomiser with an `epsilon` of at most the budget.
    """
    epsilon = check_local_epsilon(epsilon)
    if not 0.0 < epsilon_norm < epsilon:
        raise ValueError(
            f"epsilon_norm must be greater than 0 and less than epsilon={epsilon!r}, "
            f"got {epsilon_norm!r}."
        )
    # the sum of the two is rounded up
    rest = epsilon - epsilon_norm - 4.0 * math.ulp(epsilon)
    return Product(
        optimal_privunit(rest, n_dims), scalar_grid(uniform_levels(n_cells), epsilon_norm)
    )


# The best split of a budget between direction and length, and the best randomiser of a ball.


#: the smallest budget of which all parts that are tried are budgets
LEAST_SPLIT = 1e-4


@lru_cache(maxsize=256, typed=True)
def best_product(epsilon: float, n_dims: int, norm: float, spread: float = 0.0) -> Product:
    """Return the `Product` of least error for vectors of a norm.

    Parameters
    ----------
    epsilon : float
        Budget of one report in nats, from 10^-4 to 10^6.
    n_dims : int
        Dimension of the vectors.
    norm : float
        In [0, 1]: a public guess of the ratio of the norms to the largest norm.
    spread : float, default=0.0
        In [0, 1]. The mean error over norms from ``norm (1 - spread)`` to ``norm (1 + spread)``,
        and at most 1, is minimised. With 0 the best grid often has a level at exactly this norm,
        and is worse for other norms.

    Returns
    -------
    parameters : Product
        The split is tried on a grid of fractions and then refined; for each split, the best number
        of cells is found.

    Examples
    --------
    Rows of a fifth of the largest norm, at a budget where it pays to report lengths:

    >>> from skdp.local import best_product
    >>> best = best_product(16.0, 1000, 0.2)
    >>> round(best.grid.epsilon, 1), round(best.mean_squared_error(0.2), 1)
    (5.3, 3.9)
    """
    epsilon, norm = check_local_epsilon(epsilon), check_norm(norm)
    ends = norm * (1.0 - check_norm(spread, "spread")), min(1.0, norm * (1.0 + spread))
    norms = np.linspace(*ends, 9 if spread else 1)[:, None]
    if epsilon < LEAST_SPLIT:
        raise ValueError(f"epsilon must be at least {LEAST_SPLIT} to be split, got {epsilon!r}.")

    def error(log_part):
        part = math.exp(log_part)
        cells = cells_to_try(part)
        variances = uniform_variance(norms, cells, part).mean(axis=0)
        best = int(np.argmin(variances))
        square = float(np.mean(norms**2) + variances[best])
        unit = optimal_privunit(epsilon - part, n_dims)
        return math.log(square) - 2.0 * math.log(unit.scale), int(cells[best])

    # beyond this the length has more levels than are tried
    most = min(0.98 * epsilon, 40.0)
    tries = np.geomspace(min(0.05 * epsilon, 0.2), most, 45)
    place = int(np.argmin([error(t)[0] for t in np.log(tries)]))
    ends = math.log(tries[max(place - 1, 0)]), math.log(tries[min(place + 1, 44)])
    found = minimize_scalar(
        lambda t: error(t)[0], bounds=ends, method="bounded", options={"xatol": 1e-4}
    ).x
    found = min((float(found), math.log(tries[place])), key=lambda t: error(t)[0])
    return product(epsilon, n_dims, math.exp(found), error(found)[1])


def best_ball_randomiser(
    epsilon: float, n_dims: int, norm: float, spread: float = 0.0
) -> Lift | Flip | Product:
    """Return the one of `Lift`, `Flip` and `Product` of least error for vectors of a norm.

    Parameters
    ----------
    epsilon, n_dims, norm, spread : float, int, float, float
        As for `best_product`.

    Returns
    -------
    parameters : Lift, Flip or Product
        The one with the least error at that norm; `Product` is not compared at budgets too small
        to split.

    Examples
    --------
    >>> from skdp.local import best_ball_randomiser
    >>> [type(best_ball_randomiser(e, 100, 0.2)).__name__ for e in (1.0, 16.0)]
    ['Lift', 'Product']
    """
    made = [lift(epsilon, n_dims), flip(epsilon, n_dims)]
    if epsilon >= LEAST_SPLIT:
        made.append(best_product(epsilon, n_dims, norm, spread))
    return min(made, key=lambda parameters: parameters.mean_squared_error(norm))

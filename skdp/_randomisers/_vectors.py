# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Local randomisers of vectors in the unit ball, made from one of unit vectors."""

import math
from dataclasses import dataclass

from skdp._randomisers._cap import check_dims
from skdp._randomisers._odds import check_local_epsilon
from skdp._randomisers._privunit import PrivUnit, optimal_privunit
from skdp._randomisers._scalar_grid import ScalarGrid, scalar_grid, uniform_levels


def check_norm(norm, name="norm"):
    """Return a norm as a float, or raise if it is not in [0, 1]."""
    norm = float(norm)
    if not 0.0 <= norm <= 1.0:
        raise ValueError(f"{name} must be in [0, 1], got {norm!r}.")
    return norm


class BallRandomiser:
    """What the three randomisers have in common: reports are w plus noise of mean 0.

    Their `n_dims` is the dimension d of w, and `variances` says what the noise is.
    """

    def variances(self, norm):
        """Return the variances of a report along w and along a direction across."""
        raise NotImplementedError

    def mean_squared_error(self, norm):
        """Return the mean of the squared distance of a report from a vector of that norm."""
        along, across = self.variances(norm)
        return along + (self.n_dims - 1) * across


@dataclass(frozen=True)
class Lift(BallRandomiser):
    """The vector gets one more entry, with which its length is 1.

    Parameters
    ----------
    unit : PrivUnit, PrivUnitG or ProjUnit
        Parameters in dimension d + 1.

    Notes
    -----
    The report is the first d entries of that of ``(w, sqrt(1 - |w|^2))``; leaving an entry out
    costs nothing. Covariance ``s I + (c/m - 1) w w'``, which does not depend on w at the best
    parameters.
    """

    unit: PrivUnit

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
        """Return the variances of a report along w and along a direction across."""
        across = self.unit.noise_variance
        return across + (self.unit.stretch - 1.0) * check_norm(norm) ** 2, across


@dataclass(frozen=True)
class Flip(BallRandomiser):
    """The direction, turned round with a probability that gives the right mean.

    Parameters
    ----------
    unit : PrivUnit, PrivUnitG or ProjUnit
        Parameters in dimension d.

    Notes
    -----
    The report is that of ``w/|w|`` with probability ``(1 + |w|) / 2`` and of its opposite
    otherwise (Duchi, Jordan and Wainwright 2018); of a zero vector it is that of a random
    direction. Its length is 1/m, and the second moment ``s I + (c/m) u u'``.
    """

    unit: PrivUnit

    @property
    def n_dims(self):
        """Dimension of the vectors."""
        return self.unit.n_dims

    @property
    def epsilon(self):
        """The budget of one report."""
        return self.unit.epsilon

    def variances(self, norm):
        """Return the variances of a report along w and along a direction across."""
        across = self.unit.noise_variance
        return across + self.unit.stretch - check_norm(norm) ** 2, across


@dataclass(frozen=True)
class Product(BallRandomiser):
    """The report of the direction times an independent report of the length.

    Parameters
    ----------
    unit : PrivUnit
        Parameters of the direction, in dimension d.
    grid : ScalarGrid
        Parameters of the length, with levels from 0 to 1.

    Notes
    -----
    Section 4 of Bhowmick et al. (2018). The two budgets add up. With V the variance of the length
    the second moment is ``(|w|^2 + V) (s I + (c/m) u u')``. Negative lengths occur and must
    stay, or the mean would change. A zero vector takes a random direction.
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
        """Return the variances of a report along w and along a direction across."""
        norm = check_norm(norm)
        square = norm**2 + float(self.grid.variance(norm))
        across = square * self.unit.noise_variance
        return across + square * self.unit.cosine / self.unit.scale - norm**2, across


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
        The part of it that is for the length.
    n_cells : int
        Number of equal cells of the grid of lengths.

    Returns
    -------
    parameters : Product
        Its `epsilon` is at most what was asked for.
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

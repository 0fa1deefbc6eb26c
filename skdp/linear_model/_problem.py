# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What is public about fitting a linear classifier."""

import math
from dataclasses import dataclass, replace
from typing import Any, TypeVarTuple

from skdp._losses.regression import QuarticLoss
from skdp._minimize.objective import objective_bounds
from skdp._minimize.smooth import reachable_tolerance
from skdp._rows.streams import RowStream
from skdp.privacy.laws.calibration import mu_beside

#: in units of one row's loss
WEAKEST_PENALTY = 1e-50

#: where no bound is given, the solution is expected within this radius (rows are in the unit
#: ball); it sets the first ridge of localised fits, the scale of the noise that a penalty is
#: balanced with, and constrains subgradient steps only
EXPECTED_RADIUS = 30.0
#: a larger bound says nothing: pulls that belong to it are lost in the rounding of predictions
LONGEST_DISTANCE = 1e6


@dataclass(frozen=True)
class Problem:
    """Minimise a sum of losses over rows in the unit ball, privately.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data.
    loss : object
        Loss of `skdp._losses`.
    intercept : float
        Constant feature of every row; 0 for none.
    epsilon, delta, adjacency : float, float, {"replace-one", "zero-out"}
        The budget.
    penalty : float
        Strength of ``penalty/2 |coef|^2`` next to the SUM of losses; 0 for none.
    radius : float or None
        The coefficients, intercept included, stay in the ball of this radius.
    data_norm : float
        Length of a unit in the units of the data.
    max_iter, clipping_norm : int or None, float or None
        Wishes of the user; None leaves the choice to the plan.
    centering : Centering or None
        What is done to the rows beforehand; it takes a part of the budget.
    sparsity : int or None
        Rows have at most that many entries, the constant feature not counted.
    moments : tuple of (float, float) or None
        Order k and bound r_k on the k-th moment of a row's gradient, ``E |g|^k <= r_k^k``.
    scale_prices : tuple of float
        Epsilons of the purely private scales and thresholds that are released before the fit.
    expected_radius : float
        Where no bound is given, the solution is expected within this radius.
    longest_row : float
        Bound on the norm of a row, constant feature not included.
    """

    n_rows: int
    n_features: int
    loss: Any
    intercept: float
    epsilon: float
    delta: float
    adjacency: str
    penalty: float = 0.0
    radius: float | None = None
    data_norm: float = 1.0
    max_iter: int | None = None
    clipping_norm: float | None = None
    centering: Any = None
    sparsity: int | None = None
    moments: tuple[float, float] | None = None
    scale_prices: tuple[float, ...] = ()
    expected_radius: float = EXPECTED_RADIUS
    longest_row: float = 1.0

    @property
    def mu_spent(self):
        """Gaussian-DP parameter of what is released before the fit."""
        return self.centering.mu if self.centering else 0.0

    @property
    def priced(self):
        """What is released before the fit at a price in epsilon: (epsilon, delta, count)."""
        centering = self.centering.priced if self.centering else 0.0
        return tuple((spent, 0.0, 1) for spent in (centering, *self.scale_prices) if spent)

    @property
    def mu(self):
        """Gaussian-DP parameter that is left for full batches."""
        priced = tuple(epsilon for epsilon, _, _ in self.priced)
        return mu_beside(self.epsilon, self.delta, priced, self.mu_spent)

    @property
    def pure_epsilon(self):
        """Epsilon that is left for one purely private release."""
        # a hair less, so that the prices add up to no more than the budget in floats
        spent = math.fsum(self.scale_prices)
        return (self.epsilon - spent) * (1 - 1e-12) if spent else self.epsilon

    @property
    def pointwise(self):
        """The loss without its clipping, for queries that clip gradients themselves."""
        return getattr(self.loss, "loss", self.loss)

    @property
    def flat(self):
        """Whether the loss has no curvature at its minimum, so that noise is not pulled back."""
        return isinstance(self.pointwise, QuarticLoss)

    @property
    def row_norm(self):
        """Bound on the norm of a row, constant feature included."""
        return math.hypot(self.longest_row, self.intercept)

    @property
    def row_l1(self):
        """Bound on the l1 norm of a row, constant feature included."""
        entries = math.sqrt(min(self.sparsity or self.n_features, self.n_features))
        return self.longest_row * entries + self.intercept

    @property
    def row_terms(self):
        """Bound on the non-zeros of a row, constant feature included; None for any number."""
        return None if self.sparsity is None else self.sparsity + bool(self.intercept)

    @property
    def n_coefs(self):
        """Number of coefficients of one output."""
        return self.n_features + bool(self.intercept)

    @property
    def shape(self):
        """Shape of the coefficients: (n_coefs,) or (n_outputs, n_coefs)."""
        n_outputs = self.loss.n_outputs
        return (self.n_coefs,) if n_outputs == 1 else (n_outputs, self.n_coefs)

    @property
    def size(self):
        """Number of all coefficients."""
        return self.loss.n_outputs * self.n_coefs

    @property
    def moved_rows(self):
        """Number of row gradients in which neighbours differ."""
        return 1 if self.adjacency == "zero-out" else 2

    @property
    def distance(self):
        """How far away the solution is expected: a pull towards the start is one over it."""
        return min(self.radius or self.expected_radius, LONGEST_DISTANCE)

    @property
    def gradient_sensitivity(self):
        """Bound on the change of the summed gradient between neighbours."""
        return self.moved_rows * self.loss.lipschitz * self.row_norm

    @property
    def longest_gradient(self):
        """Bound on a row's gradient: its largest norm, unless it is to be clipped shorter."""
        return min(self.loss.lipschitz * self.row_norm, self.clipping_norm or math.inf)

    @property
    def clip(self):
        """Clipping norm that is asked for; None leaves it to the plan."""
        if self.clipping_norm is None and self.centering and self.centering.shorten:
            # rows are short by now: their gradients need no clipping
            return self.longest_gradient
        return self.clipping_norm

    def tolerance(self, ridge, center=None, longest_linear=0.0):
        """Return a distance that a computed minimiser is sure to be within.

        Parameters
        ----------
        ridge, center : float, ndarray or None
            Of the penalty ``ridge/2 |w - center|^2``.
        longest_linear : float
            Bound on the length of a linear term.
        """
        bounds = objective_bounds(
            self.loss,
            n_rows=self.n_rows,
            n_coefs=self.n_coefs,
            row_norm=self.row_norm,
            ridge=ridge,
            row_terms=self.row_terms,
            center=center,
        )
        return reachable_tolerance(replace(bounds, linear_norm=longest_linear))

    @property
    def noise_ridge(self):
        """Penalty at which noise on a minimiser would have about length 1."""
        if self.delta:
            mu = mu_beside(self.epsilon, self.delta, self.scale_prices)
            return self.gradient_sensitivity * math.sqrt(self.size) / mu
        return self.gradient_sensitivity * self.size / self.pure_epsilon

    @property
    def signal(self):
        """Largest gradient of the summed loss over the length of the noise that it would need."""
        return self.n_rows * self.loss.lipschitz * self.row_norm / self.noise_ridge

    def check_weak_penalty(self):
        """Raise a ValueError if a penalty was asked for that noise would leave floats with."""
        if 0 < self.penalty < WEAKEST_PENALTY:
            raise ValueError(
                "C is too large for a mechanism whose noise is inversely proportional to the "
                f"penalty: C must be at most {self.largest_C(WEAKEST_PENALTY):.3g}, or np.inf, "
                "which leaves the penalty to the plan."
            )

    def largest_C(self, ridge):
        """Return the parameter C that corresponds to a penalty in the problem's units."""
        return 1.0 / ridge / self.data_norm / self.data_norm


# Reading of rows: range by range as they come, or all of them in another order.


Arrays = TypeVarTuple("Arrays")


def check_reading(solver, X):
    """Raise a TypeError if a solver needs rows in memory and X cannot be brought there.

    Parameters
    ----------
    solver : Solver
        The solver.
    X : ndarray, CSR matrix or RowStream
        The rows.
    """
    if isinstance(X, RowStream) and not solver.streams and not X.is_mapped:
        raise TypeError(
            f"solver={type(solver).__name__} reads the rows in an order of its own, or all at "
            "once, so they must be in memory; got rows that are read chunk by chunk. All solvers "
            "of skdp.solvers can do with these, but for the minimizer 'cvxpy'."
        )


def as_read(solver: Any, plan: Any, *arrays: *Arrays) -> tuple[*Arrays]:
    """Return rows, and what belongs to them, in the order in which a plan reads them.

    Parameters
    ----------
    solver, plan : Solver, Fit
        The solver, and its plan; some have a fixed public order.
    *arrays : ndarray, CSR matrix or RowStream
        Of as many rows each.

    Returns
    -------
    arrays : tuple
        Streams remain streams if the solver can do with them.
    """
    read: Any = arrays
    if not solver.streams:
        read = [part.whole() if isinstance(part, RowStream) else part for part in arrays]
    order = plan.order() if hasattr(plan, "order") else None
    read = read if order is None else [part[order] for part in read]
    return tuple(read)

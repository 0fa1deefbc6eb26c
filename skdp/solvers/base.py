# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Base classes of solvers and plans, and the public facts behind a plan.

`Solver` is the base of the public classes, and `Fit` the base of their plans. `Problem` has the
public facts about a linear model and its budget. `default_ridge` is the default penalty of
minimisers.
"""

import math
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, TypeVarTuple

import numpy as np
from scipy.optimize import brentq
from sklearn.base import BaseEstimator

from skdp._losses.regression import PowerLoss, QuarticLoss
from skdp._minimize.queries import l1_shift, objective_bounds
from skdp._minimize.smooth import reachable_tolerance
from skdp._rows.streams import RowStream
from skdp._sklearn import SCALE_OR_NONE, Interval
from skdp.privacy.laws.calibration import mu_beside, mu_of_all

#: coefficients are zero to the last digit under it
LARGEST_L2 = 1e150
#: longer noise, of units that fit no data, is cut: squares of norms are finite
LARGEST_COEF = 1e100

# a Hessian of this many coefficients is cheaper than the steps that it saves
NEWTON_LIMIT = 300


class Solver(BaseEstimator):
    """Base class for algorithms that fit a private linear model.

    A subclass declares its requirements in class attributes, and plans a fit in `plan`. One
    function, `skdp.linear_model._classifiers.check_pair`, reads the declarations and refuses
    incompatible models.

    Parameters
    ----------
    sparsity : int, default=None
        For classification: public bound on the number of non-zero features of a row; rows with
        more keep their largest entries. None: no bound.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1, and 0.2 for targets.

    Attributes
    ----------
    word : str or None
        Name of an object with default parameters, for `solver` of an estimator.
    mechanism : {"gradient", "objective", "output", "exponential"}
        What is released.
    tasks : tuple of {"classification", "regression"}
        Supported tasks.
    needs_delta, needs_second_derivative, needs_coef_bound : str
        Reason why delta must be greater than 0, the loss needs a second derivative, or the
        coefficients need a bound; empty without the requirement.
    most_coefs, beyond_most_coefs : float, str
        Largest number of coefficients, and the remedy for more.
    unused : dict
        Parameters of the estimator that must keep their defaults, with the reason. `max_iter` has
        no effect instead, with a warning.
    only_classification : tuple of str
        Parameters of the solver that must keep their defaults for regression.
    streams : bool
        Whether rows may be read chunk by chunk, in their own order.
    moves_rows : bool
        Whether it moves the rows. It then adds their constant feature itself, and makes them
        dense.
    takes_groups : bool
        Whether every release is a sum over all rows, where a group may contribute a mean; a draw
        by such sums; or the minimiser of such a sum. Weights of rows, and a secret number of rows,
        need no more.

    See Also
    --------
    skdp.DPLogisticRegression : Takes an object of a subclass as `solver`.

    Examples
    --------
    >>> from skdp.solvers import SGD, Solver
    >>> issubclass(SGD, Solver), SGD.mechanism, SGD.tasks
    (True, 'gradient', ('classification', 'regression'))
    """

    word: ClassVar[str | None] = None
    mechanism: ClassVar[str] = "gradient"
    tasks: ClassVar[tuple[str, ...]] = ("classification", "regression")
    needs_delta: ClassVar[str] = ""
    needs_second_derivative: ClassVar[str] = ""
    needs_coef_bound: ClassVar[str] = ""
    most_coefs: ClassVar[float] = math.inf
    beyond_most_coefs: ClassVar[str] = ""
    unused: ClassVar[dict[str, str]] = {}
    only_classification: ClassVar[tuple[str, ...]] = ("sparsity",)
    streams: ClassVar[bool] = True
    moves_rows: ClassVar[bool] = False
    takes_groups: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "sparsity": [Interval(Integral, 1, None, closed="left"), None],
        "intercept_scaling": SCALE_OR_NONE,
    }

    def __init__(
        self, *, sparsity: int | None = None, intercept_scaling: float | None = None
    ) -> None:
        self.sparsity = sparsity
        self.intercept_scaling = intercept_scaling

    @property
    def steps_of(self) -> "Solver":
        """The solver that takes the steps: this one, or the one it prepares rows for."""
        return self

    def plan(self, problem: Any) -> "Fit":
        """Plan a fit from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts of `skdp.linear_model`.

        Returns
        -------
        plan : Fit
            The releases and their prices; its `run` takes the steps.

        Raises
        ------
        ValueError
            If no plan can be made for this problem.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Fit:
    """Plan of a fit, of public numbers only. A subclass adds ``n_iter`` and ``run(curator)``.

    `run` returns the coefficients. The length of a typical row in clipping norms may follow, and
    after it the number of steps, if that may be less than ``n_iter``.

    Parameters
    ----------
    problem : Problem
        Public facts.
    """

    problem: Any
    #: whether all releases of the plan have Gaussian noise, and read rows that are fixed
    full_batches: ClassVar[bool] = False
    #: whether what is released first may save steps
    at_most = False
    #: whether rows with a known label are counted
    counts_labels = False
    #: whether intercepts follow from released counts of the classes
    counts_classes: ClassVar[bool] = False

    @property
    def n_releases(self):
        """Number of releases: one per step by default."""
        return self.n_iter

    @property
    def delta(self):
        """The delta that may be spent."""
        return self.problem.delta

    def order(self):
        """Return the public order of reading rows; None for their own order."""

    @property
    def total_mu(self):
        """The Gaussian-DP parameter of the whole fit; None if it has none."""
        if not (self.full_batches and self.delta):
            return None
        priced = tuple(epsilon for epsilon, _, _ in self.problem.priced)
        return mu_of_all(self.problem.epsilon, self.problem.delta, priced)

    def solution(self, curator, doubts=None):
        """Return coefficients, the length of a typical row in clipping norms (or None), and steps.

        Parameters
        ----------
        curator : Curator
            Holds the rows; `run` releases from it.
        doubts : Doubts, default=None
            Collects a warning if released numbers show that many rows do not count, or almost none
            under a public norm.
        """
        found = self.run(curator)
        found = found if isinstance(found, tuple) else (found, None)
        return found if len(found) == 3 else (*found, self.n_iter)

    def rescaled(self, radius):
        """Return the plan for rows in units of a released radius, with the penalty adjusted.

        Only called for plans with `steps`.
        """
        if radius == 1 or self.steps.l2 == 0:
            return self
        l2 = min(self.steps.l2 / radius / radius, LARGEST_L2)
        return replace(self, steps=replace(self.steps, l2=l2))


@dataclass(frozen=True)
class RidgeFit(Fit):
    """Plan to release one minimiser of a penalised loss.

    Parameters
    ----------
    problem : Problem
        Public facts.
    minimizer : {"newton", "lbfgs", "cvxpy"}
        Method for the minimiser.
    ridge : float
        Strength of the penalty next to the sum of losses.
    """

    minimizer: str
    ridge: float
    n_iter: int = 1


def minimizer_of(problem, wanted="auto"):
    """Return the method for a minimiser: "auto" is Newton's for few coefficients."""
    if wanted != "auto":
        return wanted
    return "newton" if problem.size <= NEWTON_LIMIT else "lbfgs"


# The noise that a minimiser gets, and its default penalty, from public quantities.
#
# A row's loss sees the coefficients through its margin alone (through one margin a class).
# Noise of independent coordinates moves the margin of a row by a deviation that depends on
# the length of the row, and not on how many coefficients there are: what it costs is free
# of the dimension (Jain and Thakurta 2014; Arora et al. 2022). With D the norm of a good
# solution, n rows, u the deviation of the margin of a row of unit length, and t the trace of
# the loss's second derivative, noise and penalty add at most
#
#     n min(X u / sqrt(2 pi), t X^2 u^2 / 2) + ridge D^2 / 2,    u ~ 1 / ridge,
#
# to the sum of losses, which a penalty growing as n^(1/3) makes smallest (proved in the user
# guide). D is not known. On data the best penalty corresponds to a D that grows as the square
# root of the signal, which is to say to the same deviation of a margin, about a third, for
# 8,000 to 80,000 rows, 21 to 262,145 coefficients and epsilon from 0.5 to 8. Hence the rule:
# the weakest penalty at which noise moves margins by no more than that, and not below what
# the bound asks for with a generous D. Few coefficients bear more noise.


#: deviation of the margin of a row of unit length that noise may cause
MARGIN_NOISE = 1 / 3
# noise of that length is no harm to few coefficients
_NOISE_LENGTH = 1.25
#: exact K-norm noise takes minutes for more coefficients
MOST_K_NORM = 1 << 16


def rivals(loss):
    """Return the factor of the largest noise among all rival classes."""
    return 1.0 if loss.n_outputs == 1 else math.sqrt(2 * math.log(loss.n_outputs))


def margin_noise(problem):
    """Return a function from the penalty to the noise of a minimiser and of its margins.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    noise : callable
        Maps a ridge to the law with the least noise in margins, and to the standard deviation of
        the margin of a unit row. Gaussian noise if delta allows it; otherwise Laplace noise, for
        the l1 sensitivity, or K-norm noise, for the l2 sensitivity.
    """
    sensitivity = problem.gradient_sensitivity
    if problem.delta:
        unit = sensitivity / problem.mu
        return lambda ridge: ("gaussian", unit / ridge)

    def pure(ridge):
        laplace = math.sqrt(2.0) * _l1(problem, ridge) / problem.pure_epsilon
        k_norm = sensitivity / ridge * math.sqrt(problem.size + 1.0) / problem.pure_epsilon
        if laplace < k_norm or problem.size > MOST_K_NORM:
            return "laplace", laplace
        return "k-norm", k_norm

    return pure


def default_ridge(problem):
    """Return a penalty that balances its bias and the noise.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    ridge : float
        Strength of the penalty.
    """
    loss, noise = problem.loss, margin_noise(problem)
    limit = max(MARGIN_NOISE / rivals(loss), _NOISE_LENGTH / math.sqrt(problem.size))

    def excess(ridge):
        deviation = noise(ridge)[1] * problem.row_norm
        kinked = deviation * (rivals(loss) if loss.n_outputs > 1 else 1 / math.sqrt(2 * math.pi))
        smooth = loss.trace * deviation**2 / 2
        return problem.n_rows * min(kinked, smooth) + ridge * problem.expected_radius**2 / 2

    stronger = _weakest(problem, noise, limit) * np.exp(np.linspace(0.0, 30.0, 601))
    return float(min(stronger, key=excess))


def _weakest(problem, noise, limit):
    """Return the weakest penalty at which noise moves a margin by at most the limit."""
    at_one = noise(1.0)[1] / limit
    if problem.delta:
        return at_one

    def too_loud(log_ridge):
        return math.log(noise(math.exp(log_ridge))[1] / limit)

    low = high = math.log(at_one)
    while too_loud(low) <= 0.0:
        low -= 1.0
    while too_loud(high) >= 0.0:
        high += 1.0
    return math.exp(brentq(too_loud, low, high, rtol=1e-12))


def _l1(problem, ridge):
    return l1_shift(
        problem.loss,
        ridge=ridge,
        n_rows=problem.most_rows,
        n_coefs=problem.n_coefs,
        row_norm=problem.row_norm,
        row_l1=problem.row_l1,
        moved=problem.moved_rows,
    )


# What is public about fitting a linear classifier.


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
        Values given by the user; None leaves the choice to the plan.
    sparsity : int or None
        Largest number of entries of a row, without the constant feature.
    moments : tuple of (float, float) or None
        Order k and bound r_k on the k-th moment of a row's gradient, ``E |g|^k <= r_k^k``.
    scale_prices, scale_mu : tuple of float, float
        Prices of scales, centers and thresholds released before the fit: the epsilons of purely
        private releases, and the Gaussian-DP parameter of all others.
    expected_radius : float
        Expected radius of the solution, if no bound is given.
    longest_row : float
        Bound on the norm of a row, without the constant feature.
    is_sparse : bool
        Whether zeros of the rows are not stored.
    unit : {"row", "group"}
        Protected unit; with groups `n_rows` is their number.
    bound_on_rows : int
        Bound on the total weight of rows; 0 for `n_rows`, which may be a noisy number.
    is_made_up : bool
        Whether the rows are made up, for a plan with the largest number of steps.
    has_labels : bool
        Whether targets are labels, and those outside the classes make null rows.
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
    sparsity: int | None = None
    moments: tuple[float, float] | None = None
    scale_prices: tuple[float, ...] = ()
    scale_mu: float = 0.0
    expected_radius: float = EXPECTED_RADIUS
    longest_row: float = 1.0
    is_sparse: bool = False
    unit: str = "row"
    bound_on_rows: int = 0
    is_made_up: bool = False
    has_labels: bool = False

    @property
    def most_rows(self):
        """Bound on the total weight of rows."""
        return self.bound_on_rows or self.n_rows

    @property
    def priced(self):
        """Releases before the fit with a price in epsilon: (epsilon, delta, count)."""
        return tuple((spent, 0.0, 1) for spent in self.scale_prices)

    @property
    def mu(self):
        """Gaussian-DP parameter left for full batches."""
        priced = tuple(epsilon for epsilon, _, _ in self.priced)
        return mu_beside(self.epsilon, self.delta, priced, self.scale_mu)

    @property
    def pure_epsilon(self):
        """Epsilon left for one purely private release."""
        # a hair less, so that the prices add up to no more than the budget in floats
        spent = math.fsum(self.scale_prices)
        return (self.epsilon - spent) * (1 - 1e-12) if spent else self.epsilon

    @property
    def pointwise(self):
        """The loss without its clipping, for queries that clip gradients themselves."""
        return getattr(self.loss, "loss", self.loss)

    @property
    def flat(self):
        """Whether the loss has no curvature at its minimum, and so does not dampen noise."""
        loss = self.pointwise
        return isinstance(loss, QuarticLoss) or (isinstance(loss, PowerLoss) and loss.power > 2)

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
        """Bound on the number of non-zeros of a row, constant feature included, or None."""
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
        """Expected distance of the solution; its inverse is the pull towards the start."""
        return min(self.radius or self.expected_radius, LONGEST_DISTANCE)

    @property
    def gradient_sensitivity(self):
        """Bound on the change of the summed gradient between neighbours."""
        return self.moved_rows * self.loss.lipschitz * self.row_norm

    @property
    def longest_gradient(self):
        """Bound on the norm of a row's gradient, after clipping."""
        return min(self.loss.lipschitz * self.row_norm, self.clipping_norm or math.inf)

    def tolerance(self, ridge, center=None, longest_linear=0.0):
        """Return a certified bound on the distance of a computed minimiser from the exact one.

        Parameters
        ----------
        ridge, center : float, ndarray or None
            Parameters of the penalty ``ridge/2 |w - center|^2``.
        longest_linear : float
            Bound on the length of a linear term.
        """
        bounds = objective_bounds(
            self.loss,
            n_rows=self.most_rows,
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
            mu = mu_beside(self.epsilon, self.delta, self.scale_prices, self.scale_mu)
            return self.gradient_sensitivity * math.sqrt(self.size) / mu
        return self.gradient_sensitivity * self.size / self.pure_epsilon

    @property
    def ratio(self):
        """Rows times mu, divided by differing rows and the square root of the size."""
        return self.n_rows * self.mu / self.moved_rows / math.sqrt(self.size)

    @property
    def signal(self):
        """Largest gradient of the summed loss, divided by the length of its noise."""
        return self.n_rows * self.loss.lipschitz * self.row_norm / self.noise_ridge

    def check_weak_penalty(self):
        """Raise a ValueError if a given penalty is so weak that noise overflows."""
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
    """Raise a TypeError if a solver needs rows in memory and X cannot be loaded.

    Parameters
    ----------
    solver : Solver
        The solver.
    X : ndarray, CSR matrix or RowStream
        The rows.
    """
    if isinstance(X, RowStream) and not solver.streams and not X.is_mapped:
        raise TypeError(
            f"solver={type(solver).__name__} needs all rows in memory; got rows that are read "
            "chunk by chunk. Use another solver of skdp.solvers: all of them read chunks, except "
            "with the minimizer 'cvxpy'."
        )


def as_read(solver: Any, plan: Any, *arrays: *Arrays) -> tuple[*Arrays]:
    """Return rows and arrays of their values in the reading order of a plan.

    Parameters
    ----------
    solver, plan : Solver, Fit
        The solver, and its plan; some have a fixed public order.
    *arrays : ndarray, CSR matrix or RowStream
        All of the same number of rows.

    Returns
    -------
    arrays : tuple
        Streams remain streams if the solver supports them.
    """
    read: Any = arrays
    if not solver.streams:
        read = [part.whole() if isinstance(part, RowStream) else part for part in arrays]
    order = plan.order()
    read = read if order is None else [part[order] for part in read]
    return tuple(read)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The base of all solvers, the base of their plans, and the default penalty of minimisers."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq
from sklearn.base import BaseEstimator

from skdp._minimize.queries import l1_shift
from skdp._sklearn import SCALE_OR_NONE
from skdp.privacy.laws.calibration import mu_of_all

#: coefficients are zero to the last digit under it
LARGEST_L2 = 1e150
#: longer noise, of units that fit no data, is cut: squares of norms are finite
LARGEST_COEF = 1e100

# a Hessian of this many coefficients is cheaper than the steps that it saves
NEWTON_LIMIT = 300


class Solver(BaseEstimator):
    """Base of the algorithms that fit a private linear model.

    A subclass declares in class attributes what it needs, and plans a fit in `plan`. One
    function, `skdp.linear_model._choice.check_pair`, reads the declarations and refuses models
    that do not go with it.

    Parameters
    ----------
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small one takes
        less of a row's gradient. None is 0.1.

    Attributes
    ----------
    word : str or None
        What `solver` of an estimator may say for an object with default parameters.
    mechanism : {"gradient", "objective", "output", "exponential"}
        What is released.
    tasks : tuple of {"classification", "regression"}
        What the algorithm is for.
    needs_delta, needs_second_derivative, needs_coef_bound : str
        Why there must be a delta greater than 0, a loss with a second derivative, or a bound on
        the coefficients; empty if there need not.
    most_coefs, beyond_most_coefs : float, str
        Number of coefficients that it can handle, and what to do about more.
    unused : dict
        Why parameters of the estimator must be left at their defaults, by their names.
    only_classification : tuple of str
        Its own parameters that must be left at their defaults for regression.
    streams : bool
        Whether rows may be read chunk by chunk, in the order in which they come.

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
    only_classification: ClassVar[tuple[str, ...]] = ()
    streams: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"intercept_scaling": SCALE_OR_NONE}

    def __init__(self, *, intercept_scaling: float | None = None) -> None:
        self.intercept_scaling = intercept_scaling

    def plan(self, problem: Any) -> "Fit":
        """Plan a fit from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts of `skdp.linear_model`.

        Returns
        -------
        plan : Fit
            What will be released, at what price; its `run` takes the steps.

        Raises
        ------
        ValueError
            If no plan can be made for this problem.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Fit:
    """A plan: public numbers only; a subclass adds ``n_iter`` and ``run(curator)``.

    Parameters
    ----------
    problem : Problem
        Public facts.
    """

    problem: Any
    #: whether all releases of the plan have Gaussian noise, and read rows that are fixed
    full_batches: ClassVar[bool] = False

    @property
    def delta(self):
        """The delta that may be spent."""
        return self.problem.delta

    @property
    def total_mu(self):
        """The Gaussian-DP parameter of the whole fit; None if it has none."""
        if not (self.full_batches and self.delta):
            return None
        priced = tuple(epsilon for epsilon, _, _ in self.problem.priced)
        return mu_of_all(self.problem.epsilon, self.problem.delta, priced)

    def rescaled(self, radius):
        """Return the plan for rows in units of a radius that was released: the penalty moves.

        Only plans with `steps` are asked for one.
        """
        if radius == 1 or self.steps.l2 == 0:
            return self
        l2 = min(self.steps.l2 / radius / radius, LARGEST_L2)
        return replace(self, steps=replace(self.steps, l2=l2))


@dataclass(frozen=True)
class RidgeFit(Fit):
    """A plan to release one minimiser of a penalised loss.

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
    """Return how much larger the largest of the noises of all rival classes is."""
    return 1.0 if loss.n_outputs == 1 else math.sqrt(2 * math.log(loss.n_outputs))


def margin_noise(problem):
    """Return a function that tells what noise a minimiser gets, and what it does to margins.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    noise : callable
        Maps a ridge to the law that moves margins least, and the standard deviation of the
        margin of a row of unit length. Gaussian noise if delta allows it; otherwise Laplace
        noise, for the l1 sensitivity, or K-norm noise, for the l2 sensitivity.
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
    """Return a penalty that balances its own bias and the noise.

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
        n_rows=problem.n_rows,
        n_coefs=problem.n_coefs,
        row_norm=problem.row_norm,
        row_l1=problem.row_l1,
        moved=problem.moved_rows,
    )

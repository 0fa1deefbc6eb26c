# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Gradient perturbation on full batches: noisy clipped gradients, accelerated or plain.

Bassily, Smith and Thakurta (2014), Algorithm 1, with full batches and Gaussian-DP accounting:
a row's gradient is clipped to norm c, so that the sum moves by at most c (zero-out) or 2 c
(replace-one), and T releases with noise of standard deviation ``sensitivity sqrt(T) / mu`` are
exactly mu-Gaussian-DP together (Dong, Roth and Su 2022, Corollary 2).
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skdp._counted import CellCounts
from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._losses.clipped import ClippedLoss
from skdp._rows.base import ball_constraint, sum_over
from skdp._sklearn import SCALE_OR_NONE
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.solvers.base import Fit, Solver
from skdp.solvers.link import believed_shares
from skdp.solvers.subgradient import SubgradientPlan, plan_subgradient, subgradient_descent

#: why gradients are for delta greater than 0 only
NEVER_PURE = "whose Gaussian noise is never purely epsilon-DP"
#: parameters of all solvers that clip gradients and step along them
GRADIENT_CONSTRAINTS = {
    **Solver._parameter_constraints,
    "clipping_norm": SCALE_OR_NONE,
    "step_size": SCALE_OR_NONE,
}


class FullGradient(Solver):
    """Base class for solvers that release the gradient of all rows in every step."""

    needs_delta = NEVER_PURE
    takes_groups = True
    #: how to descend along released gradients
    accelerated: ClassVar[bool]

    _parameter_constraints = GRADIENT_CONSTRAINTS

    def __init__(
        self,
        *,
        clipping_norm: float | None = None,
        step_size: float | None = None,
        sparsity: int | None = None,
        intercept_scaling: float | None = None,
    ) -> None:
        self.clipping_norm = clipping_norm
        self.step_size = step_size
        self.sparsity = sparsity
        self.intercept_scaling = intercept_scaling

    def plan(self, problem: Any) -> Fit:
        """Plan the steps from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : Fit
            The plan. For plain steps and a loss with kinks, the step rule has a proved bound.
        """
        kinks = math.isinf(problem.loss.smoothness)
        if not self.accelerated and kinks and self.step_size is None:
            steps = plan_subgradient(
                n_rows=problem.n_rows,
                n_coefs=problem.size,
                row_gradient_bound=problem.longest_gradient,
                radius=problem.radius or problem.expected_radius,
                mu=problem.mu,
                adjacency=problem.adjacency,
                l2=problem.penalty,
                n_steps=problem.max_iter,
                # on data the accuracy of four times as many steps is no better
                most_steps=1000,
            )
            return SubgradientFit(problem, steps)
        steps = plan_gradient(**gradient_facts(problem, self.step_size))
        if steps.adaptive and isinstance(problem.loss, ClippedLoss):
            along = problem.n_rows * problem.mu / problem.moved_rows
            steps = regression_steps(
                steps, along=along, n_steps=problem.max_iter, flat=problem.flat
            )
        return GradientFit(problem, self.accelerated, steps)


class Accelerated(FullGradient):
    """Noisy gradients of all rows, with Nesterov's accelerated steps.

    The default, with delta greater than 0, for very little signal in dense rows or in more than
    two classes, and for regression with `p` above 2 or a `clipping_norm`.

    Parameters
    ----------
    clipping_norm : float, default=None
        Bound on the norm of one row's gradient, for rows in units of `data_norm`. None chooses it
        from public quantities. Not for regressors, which have their own `clipping_norm`.
    step_size : float, default=None
        Step along the gradient of the mean loss, for rows in units of `data_norm`. None chooses
        it, and shortens it if released gradients show curvature.
    sparsity : int, default=None
        For classification: public bound on the number of non-zero features of a row; rows with
        more keep their largest entries. None: no bound.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1, and 0.2 for targets.

    See Also
    --------
    Preconditioned : The default: few steps in the geometry of the rows.
    GD : Plain steps, with a step rule for losses with kinks.
    SGD : Random batches, for many rows.

    Notes
    -----
    Step t starts at ``w_t + t/(t+3) (w_t - w_{t-1})`` and follows the released gradient there. The
    later iterates are averaged. The number of steps does not depend on the data.

    Where noise dominates, a fit of classes with default parameters takes one gradient at 0, and the
    intercept follows from noisy counts of the classes, for at most a fifth of the squared budget
    (:ref:`how <first-gradient>`).

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.
    .. [2] A. Beck and M. Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear
       inverse problems", SIAM Journal on Imaging Sciences, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, solvers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2)) / 2
    >>> y = X[:, 0] > 0
    >>> solver = solvers.Accelerated(clipping_norm=0.5)
    >>> model = DPLogisticRegression(solver=solver, classes=[False, True], random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    word = "accelerated"
    accelerated = True

    def plan(self, problem: Any) -> Fit:
        """Plan the steps from public facts; one, where noise dominates.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : Fit
            The plan.
        """
        own = self.clipping_norm, self.step_size, self.intercept_scaling
        given = any(one is not None for one in (*own, problem.max_iter, problem.radius))
        classes = isinstance(problem.loss, LogisticLoss | SoftmaxLoss)
        along = problem.ratio * math.sqrt(problem.size)
        few = problem.ratio < HEARD and along < _FEW_DIRECTIONS
        if not few or given or problem.penalty or not (problem.intercept and classes):
            return super().plan(problem)
        return FirstGradientFit(problem, min(_COUNTED, (_SURE_COUNTS / along) ** 2))


class GD(FullGradient):
    """Noisy gradients of all rows, with plain steps.

    For a loss with kinks, such as the hinge, the steps have their own rule, with a proved bound on
    the error. It is more accurate on data while noise dominates.

    Parameters
    ----------
    clipping_norm : float, default=None
        Bound on the norm of one row's gradient, for rows in units of `data_norm`. None chooses it
        from public quantities. Not for regressors, which have their own `clipping_norm`.
    step_size : float, default=None
        Step along the gradient of the mean loss, for rows in units of `data_norm`. None chooses
        it, and shortens it if released gradients show curvature. The step rule for losses with
        kinks applies with None only.
    sparsity : int, default=None
        For classification: public bound on the number of non-zero features of a row; rows with
        more keep their largest entries. None: no bound.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1, and 0.2 for targets.

    See Also
    --------
    Accelerated : Accelerated steps.

    Notes
    -----
    The step rule for kinks needs a ball: without `coef_bound` its radius is 30 / `data_norm`.
    It penalises the intercept with the other coefficients.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPHingeSVM, solvers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2)) / 2
    >>> y = X[:, 0] > 0
    >>> model = DPHingeSVM(solver=solvers.GD(), classes=[False, True], random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    word = "gd"
    accelerated = False


def gradient_facts(problem, step_size):
    """Return the arguments of `plan_gradient` for a problem and a step size, or None."""
    return {
        "n_rows": problem.n_rows,
        "n_features": problem.n_features,
        "loss": problem.loss,
        "mu": problem.mu,
        "adjacency": problem.adjacency,
        "intercept": problem.intercept,
        "l2": problem.penalty / problem.n_rows,
        "radius": problem.radius,
        "n_steps": problem.max_iter,
        "step_size": step_size,
        "clip": problem.clipping_norm,
    }


# The plan of a noisy gradient method, made from public quantities before any data.
#
# Two numbers say how hard a problem is. With n rows, p coefficients, a budget of mu and
# a sensitivity of a clipping norms (1 for zero-out, 2 for replace-one),
#
# * ``M = n mu / a`` is the signal-to-noise ratio along one direction, and
# * ``N = M / sqrt(p)`` is that ratio against the whole noise vector.
#
# The constants below were chosen on data (benchmarks/accuracy.py measures the outcome,
# the user guide shows the table); nothing in them is a theorem, and nothing in them
# bears on privacy.


# A bound on coefficients that changes no decision, and keeps every product with a row
# finite.
_LARGEST_COEF = 1e100

#: more steps bring no accuracy that could be measured
MOST_STEPS = 500

# clipping norm where noise dominates, as a share of the longest gradient
_LEAST_SHARE = 0.25
# With more features than rows: steps, clipping norm (share of the longest gradient), and
# noise of a prediction.
_WIDE_STEPS, _WIDE_SHARE, _WIDE_NOISE = 64.0, 0.15, 0.4

# Deviation that noise may give the log-odds of the longest rows, and the scores of more than two
# classes: at least, and per ratio N, since curvature damps noise where there is signal. One factor
# shortens all coefficients, so no decision changes
_LOUDEST, _LOUDEST_OF_MORE = (2.0, 1 / 3), (0.5, 0.5)
#: ratio N from which second moments are worth their price; and up to which the link is undone, and
#: scores of more classes are shortened
HEARD = 3.0
#: constant feature for the intercept, in units of the longest row
DEFAULT_INTERCEPT = 0.1

# where one gradient at 0 is taken for all steps: largest ratio M; part of the squared budget for
# counts of classes, and M from which less is enough; deviation that noise gives the score of the
# longest row, per N / (1 + N)
_FEW_DIRECTIONS, _COUNTED, _SURE_COUNTS, _FAINT = 12.0, 0.2, 10.0, 0.6


@dataclass(frozen=True)
class GradientPlan:
    """Plan of a gradient solver, fixed before any row is read.

    Parameters
    ----------
    n_steps : int
        Number of releases.
    mu : float
        Gaussian-DP price of all of them.
    clip : float
        Clipping norm of a row's gradient.
    step_size : float
        Step along the released gradient of the mean loss.
    adaptive : bool
        Whether released gradients may shorten the step.
    noise : float
        Standard deviation of every coordinate of a released gradient of the mean loss.
    l2 : float
        Strength of the penalty ``l2/2 |coef|^2`` added to the mean loss; the
        intercept is not penalised.
    radius : float or None
        The coefficients, intercept included, stay in the ball of this radius.
    intercept : bool
        Whether the last coefficient is an intercept.
    """

    n_steps: int
    mu: float
    clip: float
    step_size: float
    adaptive: bool
    noise: float
    l2: float
    radius: float | None
    intercept: bool

    @property
    def mu_step(self):
        """Price of one step: n_steps equal prices compose to mu."""
        return self.mu / math.sqrt(self.n_steps)

    def step(self, coef, gradient, length):
        """Return the proximal, projected gradient step of a given length from `coef`."""
        coef = np.clip(coef - length * gradient, -_LARGEST_COEF, _LARGEST_COEF)
        body = coef[..., :-1] if self.intercept else coef
        # the penalty's proximal map: stable for any strength, and it needs no data
        body /= 1.0 + length * self.l2
        return ball_constraint(coef, self.radius)


def plan_gradient(
    *,
    n_rows,
    n_features,
    loss,
    mu,
    adjacency,
    intercept,
    l2,
    radius,
    n_steps,
    step_size,
    clip,
    most_steps=None,
):
    """Choose steps, step size and clipping from public quantities.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data.
    loss : LogisticLoss or SoftmaxLoss
        States its Lipschitz constant.
    mu : float
        Gaussian-DP budget.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    intercept : float
        Constant feature, 0 for none.
    l2, radius : float, float or None
        As in `GradientPlan`.
    n_steps, step_size, clip : int, float, float or None
        Given by the user, or None to be chosen here.
    most_steps : int, default=None
        Largest number chosen here; None limits the time of full batches.

    Returns
    -------
    plan : GradientPlan
        The plan.
    """
    row_norm = math.hypot(1.0, intercept)
    n_coefs = loss.n_outputs * (n_features + bool(intercept))
    along = n_rows * mu / (2 if adjacency == "replace-one" else 1)
    ratio = along / math.sqrt(n_coefs)
    # more steps pay as long as signal is left; past 2e9 multiplications they cost more
    # time than they bring accuracy
    wanted = max(16.0, 4.5 * math.sqrt(ratio), ratio / 3)
    wide = n_features > n_rows
    if wide:
        wanted = max(wanted, _WIDE_STEPS)
    if n_steps is None:
        if most_steps is None:
            most_steps = np.clip(2e9 / (n_rows * n_coefs), 100, MOST_STEPS)
        n_steps = math.ceil(min(wanted, most_steps))
    if clip is None:
        # clipping harder lowers the noise in proportion and biases the direction a
        # little: worth it while noise dominates
        least = _WIDE_SHARE if wide else _LEAST_SHARE
        share = min(1.0, max(least, 0.025 * math.sqrt(ratio)))
        clip = share * loss.lipschitz * row_norm
    adaptive = step_size is None
    if adaptive:
        # long steps while there is little signal; where the number of steps is capped,
        # longer ones make up for it
        capped = min(4.0, max(1.0, (wanted / n_steps) ** 2))
        step_size = min(32.0 * capped, 4 * ratio * min(1.0, (along / 10) ** 2))
        if wide:
            # what noise does to the prediction of one row does not depend on the number of
            # coefficients: after all steps it shall be some tenths
            step_size = _WIDE_NOISE * along / (n_steps * clip)
    return GradientPlan(
        n_steps=n_steps,
        mu=mu,
        clip=clip,
        step_size=step_size,
        adaptive=adaptive,
        noise=clip * math.sqrt(n_steps) / along,
        l2=l2,
        radius=radius,
        intercept=bool(intercept),
    )


# Steps for losses of regression, in units in which rows and targets are of about length 1.
#
# What noise does to the prediction of a row, after all steps, is what has to be bounded: the
# second derivative of a square never falls, and nothing else holds the coefficients. The
# constants were chosen on data; nothing in them bears on privacy.


# fewer steps do not get far enough along directions of small curvature
_FEWEST = 32
# deviation of a prediction, in units of the target, that the noise of all steps may cause, times
# a constant of accelerated steps; and that where nothing but the number of steps limits it: the
# curvature of a fourth power vanishes where it is fitted
_NOISE, _FLAT_NOISE = 1.2, 4.0
_LONGEST = 32.0


def regression_steps(plan, *, along, n_steps=None, flat=False):
    """Return the plan of a gradient method with steps adapted to the noise.

    Parameters
    ----------
    plan : GradientPlan
        Plan as for a classifier, with a step size that released gradients may shorten.
    along : float
        Signal-to-noise ratio along one direction: rows times mu over moved rows.
    n_steps : int, default=None
        Given number of steps.
    flat : bool, default=False
        Whether the loss has no curvature at its minimum.

    Returns
    -------
    plan : GradientPlan
        A plan of the same price, with another number and length of steps.
    """
    steps = n_steps or max(plan.n_steps, _FEWEST)
    noise = plan.clip * math.sqrt(steps) / along
    return calm_steps(replace(plan, n_steps=steps, noise=noise), flat)


def calm_steps(plan, flat=False):
    """Return a plan with the same number of steps, and the lengths of `regression_steps`."""
    noise = _FLAT_NOISE / math.sqrt(plan.n_steps) if flat else _NOISE
    return replace(plan, step_size=min(noise / (plan.noise * plan.n_steps), _LONGEST))


# The clipped gradient of a linear model's loss.


@dataclass(frozen=True, eq=False)
class ClippedGradient:
    """Sum over rows of the loss gradients, each clipped to norm `clip`.

    Parameters
    ----------
    coef : ndarray of shape (n_coefs,) or (n_outputs, n_coefs)
        Point of the gradient; an intercept comes last.
    loss : LogisticLoss or SoftmaxLoss
        Pointwise loss.
    clip : float
        Bound on the Euclidean (for several outputs, Frobenius) norm of one row's gradient,
        intercept included.
    slack : float, default=0.0
        Bound on the rounding error in the change of the sum, as a fraction of `clip`, for rows
        that are summed as differences of longer ones.

    Notes
    -----
    The gradient of a row is the outer product of its residual r and the augmented row v, of norm
    ``|r| |v|``: clipping the residual to norm ``clip / |v|`` clips the gradient, without forming
    it. Several outputs are clipped jointly: one row changes all of them, and all share one budget.
    """

    coef: Any
    loss: Any
    clip: float
    slack: float = 0.0

    @property
    def name(self):
        """Name of the statistic."""
        return f"gradient of {type(self.loss).__name__}, clipped to {self.clip:.6g}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.coef.size

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: clip (zero-out) or 2 clip (replace-one).

        Proof. Every row contributes a vector of norm at most clip. Zero-out removes
        one; replace-one removes one and adds another (triangle inequality). Both are
        attained, by a row at the clipping norm and by two opposite ones. So it is for groups, whose
        weights add up to at most 1: a mean of such vectors, and of zero, is no longer.
        """
        if adjacency == "zero-out":
            reach = self.clip * (1 + self.slack)
            theorem = "a row's clipped gradient has norm <= clip"
        else:
            reach = 2 * self.clip * (1 + self.slack)
            theorem = "two clipped gradients differ by <= 2 clip"
        return Sensitivity(l1=math.inf, l2=reach, bound=n_rows * self.clip, theorem=theorem)

    def partial(self, chunk):
        """Return the clipped gradients of a chunk, summed."""
        chunk = chunk.widened()
        residual = self.loss.residual(chunk.predict(self.coef), chunk.target)
        limit = self.clip / chunk.norm
        if residual.ndim == 1:
            np.minimum(residual, limit, out=residual)
            np.maximum(residual, np.negative(limit, out=limit), out=residual)
        else:
            length = np.sqrt(np.einsum("ij,ij->i", residual, residual))
            residual *= (limit / np.maximum(length, limit + 1e-300))[:, None]
        if chunk.weight is not None:
            residual *= chunk.weight if residual.ndim == 1 else chunk.weight[:, None]
        return chunk.combine(residual)

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (size,)."""
        return sum_over(rows, self.partial, self.size)


@dataclass(frozen=True)
class GradientFit(Fit):
    """Noisy gradient descent, plain or accelerated."""

    accelerated: bool
    steps: GradientPlan
    full_batches = True

    @property
    def n_iter(self):
        """Number of steps."""
        return self.steps.n_steps

    def run(self, curator):
        """Release one gradient per step and descend along it."""
        loss, clip, n_rows = self.problem.pointwise, self.steps.clip, self.problem.n_rows
        paid = prepaid_gradients(curator, self.problem, clip, self.steps)

        def gradient(coef):
            released = curator.release(ClippedGradient(coef, loss, clip), paid)
            return released.reshape(coef.shape) / n_rows

        descend = accelerated_gradient if self.accelerated else gradient_descent
        coef = descend(gradient, self.problem.shape, self.steps)
        ratio, two = self.problem.ratio, isinstance(loss, LogisticLoss)
        if not two and (not isinstance(loss, SoftmaxLoss) or ratio >= HEARD):
            return coef
        # how long rows are was not released, and the bound stands for it
        longest = self.problem.row_norm
        noise = noise_of_average(descend, self.steps) * longest
        least, each = _LOUDEST if two else _LOUDEST_OF_MORE
        coef *= min(1.0, max(least, each * ratio) / noise)
        # nearly all gradients are clipped; with more classes, to undo that helped some tables and
        # hurt others
        return (coef, longest / clip) if two and ratio < HEARD else coef


@dataclass(frozen=True)
class FirstGradientFit(Fit):
    """Noisy counts of the classes, and one noisy gradient at 0, where noise dominates.

    All iterates of many steps would be close to 0, or noise: one gradient for the whole budget is
    the mean of their gradients, without the weights of an average. The intercept follows from the
    counts.

    Parameters
    ----------
    problem : Problem
        Public facts.
    share : float
        Part of the squared Gaussian-DP budget for the counts.
    """

    share: float
    n_iter = 1
    n_releases = 2
    full_batches = True
    counts_classes = counts_labels = True

    def solution(self, curator, doubts=None):
        """Count the classes; step along the gradient at 0 until noise has a known deviation."""
        mu = math.sqrt(self.share) * self.problem.mu
        logs = self._logs(curator, mu, doubts)
        # a hair more than the ledger will hold
        spent = math.hypot(self.problem.scale_mu, mu) * (1 + 1e-9)
        problem, loss = replace(self.problem, scale_mu=spent), self.problem.pointwise
        clip = _LEAST_SHARE * loss.lipschitz * problem.row_norm
        query = ClippedGradient(np.zeros(problem.shape), loss, clip)
        released = curator.release(query, GaussianMechanism(problem.mu))
        noise = problem.moved_rows * clip / problem.mu * problem.row_norm
        wanted = _FAINT * problem.ratio / (1 + problem.ratio)
        coef = -wanted / noise * released.reshape(problem.shape)
        coef[..., -1] = logs / problem.intercept
        return coef, None, self.n_iter

    def _logs(self, curator, mu, doubts):
        """Release counts; return logarithms of the odds of two classes, or of shares of more."""
        n_rows, n_outputs = self.problem.n_rows, self.problem.loss.n_outputs
        query = CellCounts((max(n_outputs, 2),), "rows of each class")
        noise = query.sensitivity(self.problem.adjacency, n_rows).l2 / mu
        counts = curator.release(query, GaussianMechanism(mu))
        if doubts is not None:
            doubts.of_labels(counts.sum(), noise * math.sqrt(len(counts)), n_rows)
        logs = np.log(believed_shares(counts / n_rows, noise / n_rows))
        return logs[1] - logs[0] if n_outputs == 1 else logs - logs.mean()


@dataclass(frozen=True)
class SubgradientFit(Fit):
    """Noisy projected subgradient descent, for losses with kinks."""

    steps: SubgradientPlan
    full_batches = True

    @property
    def n_iter(self):
        """Number of steps."""
        return self.steps.n_steps

    def run(self, curator):
        """Release one subgradient per step and descend along it."""
        loss, clip = self.problem.pointwise, self.problem.longest_gradient
        paid = prepaid_gradients(curator, self.problem, clip, self.steps)

        def gradient(coef):
            released = curator.release(ClippedGradient(coef, loss, clip), paid)
            return released.reshape(coef.shape)

        return subgradient_descent(gradient, self.problem.shape, self.steps)


def prepaid_gradients(curator, problem, clip, steps):
    """Charge for the gradients of all steps, before the first one is taken."""
    first = ClippedGradient(np.zeros(problem.shape), problem.pointwise, clip)
    return curator.prepay(first, GaussianMechanism(steps.mu_step), steps.n_steps)


# A step size that released gradients may shorten.


class StepSize:
    """Planned step size, reduced to 1/curvature if released gradients show curvature.

    Between two points at distance s, the gradient of a convex loss changes by at most curvature
    times s. Gradients are released with noise of known size, so only the excess over two standard
    deviations of the noise counts as curvature. With few rows or a small budget the noise hides
    it, and the planned step stays. With many rows it shows, and a step longer than its inverse
    would make the iterates oscillate. This is arithmetic on released numbers, and costs nothing.

    Parameters
    ----------
    plan : GradientPlan
        Planned step size, noise of a released gradient, and whether to adapt.
    """

    def __init__(self, plan):
        self._length = plan.step_size
        self._doubt = 2 * math.sqrt(2) * plan.noise
        self._adaptive = plan.adaptive
        self._point = self._gradient = None

    def at(self, point, gradient):
        """Return the step size at a point with a released gradient."""
        if self._adaptive and self._point is not None:
            moved = np.linalg.norm(point - self._point)
            change = np.vdot(point - self._point, gradient - self._gradient)
            sure = change - self._doubt * moved
            if sure > 0:
                self._length = min(self._length, moved**2 / sure)
        self._point, self._gradient = point, gradient
        return self._length


# The average that a noisy method returns.


def skipped_steps(n_steps):
    """Return the number of first iterates to leave out: a third, at least eight, at most half."""
    return min(n_steps // 2, max(8, n_steps // 3))


class SuffixAverage:
    """Average of the iterates without the first third (at least eight, at most half)."""

    def __init__(self, shape, n_steps):
        self._skip = skipped_steps(n_steps)
        self._count, self._sum = 0, np.zeros(shape)

    def add(self, coef):
        """Add the next iterate."""
        if self._skip > 0:
            self._skip -= 1
        else:
            self._sum += coef
            self._count += 1

    @property
    def value(self):
        """The average so far."""
        return self._sum / self._count


# Noisy projected gradient descent, its later iterates averaged.


def gradient_descent(gradient, shape, plan):
    """Descend along released gradients.

    Parameters
    ----------
    gradient : callable
        Maps coefficients of the given shape to a released gradient of the mean loss.
    shape : tuple of int
        Shape of the coefficients.
    plan : GradientPlan
        Steps, step size, penalty, constraint.

    Returns
    -------
    coef : ndarray of shape `shape`
        Average of the later iterates, which are nearer to the optimum; averaging reduces the
        noise.

    Notes
    -----
    Bassily, Smith and Thakurta (2014), Algorithm 1, on full batches. Any function of the released
    gradients is as private as the gradients.
    """
    coef = np.zeros(shape)
    average = SuffixAverage(shape, plan.n_steps)
    step_size = StepSize(plan)
    for _ in range(plan.n_steps):
        released = gradient(coef)
        coef = plan.step(coef, released, step_size.at(coef, released))
        average.add(coef)
    return average.value


def noise_of_average(descend, plan):
    """Return the standard deviation of a coefficient of the average, from the noise of all steps.

    Parameters
    ----------
    descend : callable
        The method.
    plan : GradientPlan
        Plan of the steps. They are linear in the noise without curvature of the loss and without
        shortening by released gradients; both are left out.
    """
    steps = iter(np.eye(plan.n_steps))
    free = replace(plan, radius=None, adaptive=False, intercept=False)
    return plan.noise * np.linalg.norm(descend(lambda _: next(steps), (plan.n_steps,), free))


# Noisy accelerated gradient descent, its later iterates averaged.


def accelerated_gradient(gradient, shape, plan):
    """Descend along released gradients with Nesterov's extrapolation.

    Parameters
    ----------
    gradient : callable
        Maps coefficients of the given shape to a released gradient of the mean loss.
    shape : tuple of int
        Shape of the coefficients.
    plan : GradientPlan
        Steps, step size, penalty, constraint.

    Returns
    -------
    coef : ndarray of shape `shape`
        Average of the later iterates.

    Notes
    -----
    Step t starts at ``w_t + t/(t+3) (w_t - w_{t-1})`` and follows the released gradient there
    (Nesterov 1983, in the form of Beck and Teboulle 2009 with the constant of Chambolle and Dossal
    2015). Under noise, a few accelerated steps make progress along directions of small curvature;
    as many plain steps do not.
    """
    previous = coef = np.zeros(shape)
    average = SuffixAverage(shape, plan.n_steps)
    step_size = StepSize(plan)
    for t in range(plan.n_steps):
        ahead = coef + (t / (t + 3)) * (coef - previous)
        released = gradient(ahead)
        previous, coef = coef, plan.step(ahead, released, step_size.at(ahead, released))
        average.add(coef)
    return average.value

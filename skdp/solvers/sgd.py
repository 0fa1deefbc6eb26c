# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noisy stochastic gradient descent: one clipped gradient of a secret random batch per step.

Batches are Poisson samples, or have a fixed size. The noise is the least that composed privacy
loss distributions of a dominating pair allow (Zhu, Dong and Wang 2022). With independent draws,
the published step lengths and the last iterate, it is Algorithm 1 of Bassily, Smith and Thakurta
(2014).
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from skdp._losses.clipped import ClippedLoss
from skdp._rows.base import ball_constraint
from skdp._sklearn import Interval, StrOptions
from skdp.privacy.kernel.batches import KINDS, Sampling
from skdp.privacy.laws.additive import SampledGaussianMechanism
from skdp.privacy.laws.calibration import sampled_mu
from skdp.solvers.base import Fit, Solver
from skdp.solvers.gradient import (
    GRADIENT_CONSTRAINTS,
    MOST_STEPS,
    NEVER_PURE,
    ClippedGradient,
    GradientPlan,
    accelerated_gradient,
    calm_steps,
    gradient_descent,
    gradient_facts,
    plan_gradient,
)

#: rows of a batch
BATCH_SIZE = [Interval(Real, 0, None, closed="neither"), None]


class SGD(Solver):
    """Noisy gradients of secret random batches, for many rows.

    Parameters
    ----------
    batch_size : float, default=None
        Number of rows of a batch, expected for Poisson batches; at most the number of rows. None
        chooses it from public quantities.
    sampling : {"poisson", "without-replacement", "with-replacement"}, default="poisson"
        "poisson": every row is in a batch independently. "without-replacement": a random subset of
        fixed size. "with-replacement": independent draws, with the step lengths and the last
        iterate of [1]_, Algorithm 1 (its setting is ``batch_size=1`` and
        ``max_iter=n_samples**2``). Fixed sizes need more noise.
    momentum : bool, default=True
        Whether steps are accelerated (Nesterov). Plain steps must be more or longer.
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
    Accelerated : All rows in every step.
    LazySGD : The same for very sparse rows, in time that does not grow with the features.

    Notes
    -----
    Sums are divided by the expected size of a batch, because the actual size is private. All steps
    are charged before the first one.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.
    .. [2] Y. Zhu, J. Dong and Y.-X. Wang, "Optimal accounting of differential privacy via
       characteristic function", AISTATS 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, solvers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 2)) / 2
    >>> y = X[:, 0] > 0
    >>> solver = solvers.SGD(batch_size=500)
    >>> model = DPLogisticRegression(solver=solver, classes=[False, True], random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    word = "sgd"
    needs_delta = NEVER_PURE

    _parameter_constraints = {
        **GRADIENT_CONSTRAINTS,
        "batch_size": BATCH_SIZE,
        "sampling": [StrOptions(set(KINDS))],
        "momentum": ["boolean"],
    }

    def __init__(
        self,
        *,
        batch_size: float | None = None,
        sampling: Literal["poisson", "without-replacement", "with-replacement"] = "poisson",
        momentum: bool = True,
        clipping_norm: float | None = None,
        step_size: float | None = None,
        sparsity: int | None = None,
        intercept_scaling: float | None = None,
    ) -> None:
        self.batch_size = batch_size
        self.sampling = sampling
        self.momentum = momentum
        self.clipping_norm = clipping_norm
        self.step_size = step_size
        self.sparsity = sparsity
        self.intercept_scaling = intercept_scaling

    def plan(self, problem: Any) -> Fit:
        """Plan the batches and the steps from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : SgdFit
            The plan.

        Raises
        ------
        ValueError
            If a batch is larger than the data, or the budget too small for the steps.
        """
        radius, facts = problem.radius, gradient_facts(problem, self.step_size)
        if self.sampling == "with-replacement" and radius is None:
            radius = facts["radius"] = problem.expected_radius
        steps = plan_sgd(
            facts,
            budget=(problem.epsilon, problem.delta, problem.scale_mu, problem.priced),
            sampling=self.sampling,
            batch_size=self.batch_size,
            momentum=self.momentum,
            radius=radius,
            longest_gradient=problem.longest_gradient,
        )
        if steps.adaptive and isinstance(problem.loss, ClippedLoss):
            steps = calm_steps(steps, flat=problem.flat)
        return SgdFit(problem, steps)


# Passes over the data that the default makes; more bring little, and cost in proportion.
_PASSES = 30
# Rows of a batch, at least: smaller ones spend their time outside of products.
_SMALLEST_BATCH = 256


@dataclass(frozen=True)
class SgdPlan(GradientPlan):
    """Plan of stochastic gradient descent, fixed before any row is read.

    Parameters
    ----------
    sampling : Sampling
        How batches are drawn.
    mu_batch : float
        Sensitivity over noise of one release.
    momentum : bool
        Whether steps are accelerated.
    printed : float or None
        Diameter D over G: step t has length ``printed / sqrt(t)``, and the last iterate is
        returned. None makes steps of `step_size`, and averages.

    Notes
    -----
    `mu` is the price of as many full batches. `noise` is for one released mean gradient, sampling
    included.
    """

    sampling: Sampling | None = None
    mu_batch: float = 0.0
    momentum: bool = True
    printed: float | None = None


def plan_sgd(
    problem,
    *,
    budget,
    sampling="poisson",
    batch_size=None,
    momentum=True,
    radius=None,
    longest_gradient=None,
):
    """Choose steps, batches and noise from public quantities.

    Parameters
    ----------
    problem : dict
        The arguments of `plan_gradient`; `mu` is for full batches.
    budget : tuple (epsilon, delta, mu, priced)
        Total budget, and prices of the other releases: a Gaussian-DP parameter, and a tuple of
        (epsilon, delta, count).
    sampling : {"poisson", "without-replacement", "with-replacement"}
        How batches are drawn; "with-replacement" also uses the published step lengths.
    batch_size : float, default=None
        Expected rows of a batch. None chooses it.
    momentum : bool, default=True
        Whether steps are accelerated.
    radius : float, default=None
        "with-replacement": radius in the published step lengths.
    longest_gradient : float, default=None
        "with-replacement": bound on the norm of a row's gradient; also the clipping norm.

    Returns
    -------
    plan : SgdPlan
        The plan.

    Raises
    ------
    ValueError
        If the batch is larger than the data, or the budget too small for the steps.
    """
    epsilon, delta, mu, priced = budget
    n_rows, adjacency = problem["n_rows"], problem["adjacency"]
    printed = sampling == "with-replacement"
    if printed:
        problem = {**problem, "clip": longest_gradient}
    steps = plan_gradient(**problem, most_steps=MOST_STEPS)
    if batch_size is None:
        batch_size = math.ceil(_PASSES * n_rows / steps.n_steps)
        batch_size = min(n_rows, max(_SMALLEST_BATCH, batch_size))
    batches = Sampling(sampling, n_rows, batch_size)
    if batches.reads_all:
        mu_batch = steps.mu_step
    else:
        mu_batch = sampled_mu(
            epsilon,
            delta,
            sampling=batches,
            n_releases=steps.n_steps,
            adjacency=adjacency,
            mu=mu,
            priced=priced,
        )
    moved = 1 if batches.adjacency(adjacency) == "zero-out" else 2
    noise = moved * steps.clip / mu_batch / batch_size
    # a batch's mean gradient differs from that of all rows, in all coordinates together
    spread = 0.0 if batches.reads_all else steps.clip / math.sqrt(batch_size)
    n_coefs = problem["loss"].n_outputs * (problem["n_features"] + bool(problem["intercept"]))
    length = None
    if printed:
        length = 2 * radius / math.hypot(steps.clip, math.sqrt(n_coefs) * noise)
    return SgdPlan(
        **{**vars(steps), "noise": math.hypot(noise, spread)},
        sampling=batches,
        mu_batch=mu_batch,
        momentum=momentum,
        printed=length,
    )


def stochastic_gradient(gradient, shape, plan):
    """Descend along released gradients of random batches.

    Parameters
    ----------
    gradient : callable
        Maps coefficients of the given shape to a released sum over a batch, divided by
        the expected size of a batch.
    shape : tuple of int
        Shape of the coefficients.
    plan : SgdPlan
        Steps, step lengths, penalty, constraint.

    Returns
    -------
    coef : ndarray of shape `shape`
        Average of the later iterates; the last iterate for the published step lengths.

    Notes
    -----
    Steps are accelerated (Nesterov), or plain without momentum. With batches of a few hundred rows
    the privacy noise dominates, and it is the same as for full batches.

    With the published step lengths this is Algorithm 1 of Bassily, Smith and Thakurta (2014):
    ``eta(t) = D / sqrt(t (n^2 L^2 + p sigma^2))`` for gradients of the sum of losses, a
    projection, and the last iterate. Only the noise is smaller than published.
    """
    if plan.printed is None:
        descend = accelerated_gradient if plan.momentum else gradient_descent
        return descend(gradient, shape, plan)
    coef = np.zeros(shape)
    for t in range(1, plan.n_steps + 1):
        released = gradient(coef)
        length = plan.printed / math.sqrt(t)
        penalty = plan.l2 * (coef * _penalised(coef, plan.intercept))
        coef = ball_constraint(coef - length * (released + penalty), plan.radius)
    return coef


def _penalised(coef, intercept):
    """Return 1 for penalised coefficients, and 0 for the intercept."""
    held = np.ones(coef.shape[-1])
    held[-1] = 0.0 if intercept else 1.0
    return held


@dataclass(frozen=True)
class SgdFit(Fit):
    """Noisy gradients of random batches, all of them charged before the first."""

    steps: SgdPlan

    @property
    def n_iter(self):
        """Number of steps."""
        return self.steps.n_steps

    def run(self, curator):
        """Release one gradient per step and descend along it."""
        steps, loss, shape = self.steps, self.problem.pointwise, self.problem.shape
        mechanism = SampledGaussianMechanism(steps.mu_batch, steps.sampling)
        first = ClippedGradient(np.zeros(shape), loss, steps.clip)
        paid = curator.prepay(first, mechanism, steps.n_steps)
        # the expected size, never the realised one, which says how many rows there are
        size = steps.sampling.batch_size

        def gradient(coef):
            released = curator.release(ClippedGradient(coef, loss, steps.clip), paid)
            return released.reshape(coef.shape) / size

        return stochastic_gradient(gradient, shape, steps)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Federated averaging: clients move a model with their own rows, and a server averages.

H. B. McMahan, D. Ramage, K. Talwar and L. Zhang, "Learning differentially private recurrent
language models", ICLR 2018; with randomised reports of clients, and proximal updates, A. Bhowmick
et al., "Protection against reconstruction and its applications in private federated learning",
2018, Section 3.1.

In this order: parameters; the plan of all rounds, from public numbers; the query of a round and
the query of a sum of reports, with proofs of their sensitivities; rounds and the server's steps;
private rows, by client.
"""

import copy
import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from skdp._rows.base import CompensatedSum, sum_over
from skdp._rows.linear import LinearRows, whole_chunk
from skdp._sklearn import SCALE_OR_NONE, Interval, penalty_of
from skdp.local._ball_randomiser import ParameterGroup, as_ball_randomiser
from skdp.local.randomisers.report import LocalReports
from skdp.privacy.kernel.accounting import HAIR
from skdp.privacy.kernel.batches import SMALLEST_RATE, Sampling
from skdp.privacy.kernel.ledger import SampledCost, compose_epsilon, report_epsilon
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import SampledGaussianMechanism
from skdp.privacy.laws.calibration import gdp_mu, sampled_mu
from skdp.privacy.laws.local_reports import LocalMechanism, ReportedSum, SumOfReports
from skdp.privacy.laws.shared_noise import SharedGaussianMechanism
from skdp.solvers.gradient import (
    DEFAULT_INTERCEPT,
    MOST_STEPS,
    GradientPlan,
    StepSize,
    SuffixAverage,
    plan_gradient,
)

# Parameters: what a client does in a round, what the server does, and what is simulated.


class LocalUpdate(ParameterGroup):
    """Base class for the steps of a client in a round, along the mean loss of its rows."""

    def _pull(self, curvature):
        """Return the strength of the pull to the start."""
        return 0.0

    def steps(self, curvature: float) -> dict[str, Any]:
        """Return the arguments of `ClientUpdates` for a client's steps.

        Parameters
        ----------
        curvature : float
            Bound on the second derivative of the mean loss of a client.

        Returns
        -------
        steps : dict
            ``n_steps``, ``step_size`` and ``pull``.

        Raises
        ------
        ValueError
            If the steps are too long for the pull.
        """
        pull = self._pull(curvature)
        # such steps bring no two points further apart
        length = 1.0 / (curvature + pull) if self.step_size is None else self.step_size
        if pull * length > 1.0:
            raise ValueError(
                "step_size must be at most 1 / strength, or steps jump over the point that they "
                f"approach; got step_size={length!r} with strength={pull!r}."
            )
        return {"n_steps": self.n_steps, "step_size": float(length), "pull": float(pull)}


class GradientSteps(LocalUpdate):
    """Gradient steps of a client, along the mean loss of its rows.

    For the parameter `local_update` of `FederatedDPLogisticRegression`.

    Parameters
    ----------
    n_steps : int, default=1
        Steps of a client in a round.
    step_size : float, default=None
        Length of the steps, for rows in the unit ball. None is the inverse curvature of the loss.
    clipping_norm : float, default=None
        Bound on the norm of a client's update, for rows in the unit ball. The update is the mean
        of the descent directions of the client's steps, so it is no longer than the longest
        gradient of a row. None chooses a fraction of that bound.

    See Also
    --------
    ProximalPoint : Steps that are pulled back to their start.

    Examples
    --------
    >>> from skdp import FederatedDPLogisticRegression
    >>> from skdp.federated import GradientSteps
    >>> FederatedDPLogisticRegression(local_update=GradientSteps(n_steps=5))
    FederatedDPLogisticRegression(local_update=GradientSteps(n_steps=5))
    """

    _parameter_constraints = {
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "step_size": SCALE_OR_NONE,
        "clipping_norm": SCALE_OR_NONE,
    }

    def __init__(
        self,
        n_steps: int = 1,
        *,
        step_size: float | None = None,
        clipping_norm: float | None = None,
    ) -> None:
        self.n_steps = n_steps
        self.step_size = step_size
        self.clipping_norm = clipping_norm


class ProximalPoint(LocalUpdate):
    """Steps of a client towards a balance between its own loss and the start.

    The client minimises the mean loss of its rows plus ``strength / 2 |w - start|^2``, up to the
    precision of the steps [1]_. For the parameter `local_update` of
    `FederatedDPLogisticRegression`.

    Parameters
    ----------
    strength : float, default=None
        Strength of the pull to the start. None is the curvature of the loss.
    n_steps : int, default=10
        Steps of a client in a round.
    step_size : float, default=None
        Length of the steps, for rows in the unit ball, at most ``1 / strength``. None is the
        inverse curvature of the objective.
    clipping_norm : float, default=None
        Bound on the norm of a client's update; see `GradientSteps`.

    See Also
    --------
    GradientSteps : Steps along the loss alone.

    References
    ----------
    .. [1] A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor and R. Rogers, "Protection against
       reconstruction and its applications in private federated learning", 2018, equation 12.

    Examples
    --------
    >>> from skdp import FederatedDPLogisticRegression
    >>> from skdp.federated import ProximalPoint
    >>> FederatedDPLogisticRegression(local_update=ProximalPoint(0.5, n_steps=20))
    FederatedDPLogisticRegression(local_update=ProximalPoint(n_steps=20,
                                                             strength=0.5))
    """

    _parameter_constraints = {"strength": SCALE_OR_NONE, **GradientSteps._parameter_constraints}

    def __init__(
        self,
        strength: float | None = None,
        *,
        n_steps: int = 10,
        step_size: float | None = None,
        clipping_norm: float | None = None,
    ) -> None:
        self.strength = strength
        self.n_steps = n_steps
        self.step_size = step_size
        self.clipping_norm = clipping_norm

    def _pull(self, curvature):
        return curvature if self.strength is None else self.strength


class FederatedAveraging(ParameterGroup):
    """Server steps along the mean update of random clients [1]_.

    For the parameter `solver` of `FederatedDPLogisticRegression`; `max_iter` there is the number
    of rounds.

    Parameters
    ----------
    batch_size : float, default=None
        Expected number of clients of a round, each drawn independently; at most their number. None
        chooses it; with reports, each client reports once on average.
    step_size : float, default=None
        Length of the server's steps, for rows in the unit ball. None chooses it, and shortens it
        if released updates show curvature.
    momentum : bool, default=True
        Whether the server accelerates its steps.
    average : bool, default=True
        Whether the result is the average of the server's later points, or the last point.
    report_norm : float, default=None
        Norm to which the server projects reports, in the same units. None is a norm that no report
        exceeds. A smaller norm needs less noise, but biases the mean, because reports are long.
    intercept_scaling : float, default=None
        Constant feature, in units of `data_norm`. None is 0.1, or 0.3 with reports.
    fewest_reports : int, default=None
        For secure aggregation: clients round their updates and add shares of the noise, and the
        server learns only sums [2]_. All clients take part in every round. At least this number
        must answer, whatever their rows, and keep their shares secret; with fewer answers a round
        has no sum. None: the server adds the noise.

    See Also
    --------
    GradientSteps : What a client does in a round.
    ProximalPoint : The same, with a pull to the start.

    References
    ----------
    .. [1] H. B. McMahan, D. Ramage, K. Talwar and L. Zhang, "Learning differentially private
       recurrent language models", ICLR 2018.
    .. [2] P. Kairouz, Z. Liu and T. Steinke, "The distributed discrete Gaussian mechanism for
       federated learning with secure aggregation", ICML 2021.

    Examples
    --------
    >>> from skdp import FederatedDPLogisticRegression
    >>> from skdp.federated import FederatedAveraging
    >>> FederatedDPLogisticRegression(max_iter=30, solver=FederatedAveraging(batch_size=500))
    FederatedDPLogisticRegression(max_iter=30,
                                  solver=FederatedAveraging(batch_size=500))
    """

    _parameter_constraints = {
        "batch_size": [Interval(Real, 0, None, closed="neither"), None],
        "step_size": SCALE_OR_NONE,
        "momentum": ["boolean"],
        "average": ["boolean"],
        "report_norm": SCALE_OR_NONE,
        "intercept_scaling": SCALE_OR_NONE,
        "fewest_reports": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        batch_size: float | None = None,
        *,
        step_size: float | None = None,
        momentum: bool = True,
        average: bool = True,
        report_norm: float | None = None,
        intercept_scaling: float | None = None,
        fewest_reports: int | None = None,
    ) -> None:
        self.batch_size = batch_size
        self.step_size = step_size
        self.momentum = momentum
        self.average = average
        self.report_norm = report_norm
        self.intercept_scaling = intercept_scaling
        self.fewest_reports = fewest_reports


class Population(ParameterGroup):
    """Larger deployment, simulated by a fit on a few clients.

    The noise of the mean update is as in the deployment with the given budget. The clients of the
    fit itself spend `privacy_spent_`, in general far more than `epsilon`.

    Parameters
    ----------
    size : float
        Number of clients of the deployment, from 1 to 2^53.
    batch_size : float, default=None
        Expected number of its clients in a round. None keeps the fraction of the fit.

    See Also
    --------
    FederatedAveraging : What the server does in a round.

    Examples
    --------
    >>> from skdp import FederatedDPLogisticRegression
    >>> from skdp.federated import Population
    >>> FederatedDPLogisticRegression(population=Population(1_000_000, batch_size=5000))
    FederatedDPLogisticRegression(population=Population(batch_size=5000,
                                                        size=1000000))
    """

    _parameter_constraints = {
        "size": [Interval(Real, 1, 2**53, closed="both")],
        "batch_size": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(self, size: float, *, batch_size: float | None = None) -> None:
        self.size = size
        self.batch_size = batch_size


#: the words that `local_update` may be
LOCAL_UPDATES = {"gradient": GradientSteps, "proximal": ProximalPoint}


@dataclass(frozen=True)
class FederatedParameters:
    """Checked objects among the parameters of an estimator, with names resolved.

    Parameters
    ----------
    update : LocalUpdate
        Steps of a client.
    solver : FederatedAveraging
        Steps of the server.
    randomiser : BallRandomiser
        Randomiser of reports, if any.
    population : Population or None
        Simulated deployment.
    """

    update: Any
    solver: Any
    randomiser: Any
    population: Any

    @classmethod
    def of(cls, model):
        """Return the objects of an estimator, or raise a ValueError if they are incompatible."""
        update, solver, population = model.local_update, model.solver, model.population
        if isinstance(update, str):
            update = LOCAL_UPDATES[update]()
        made = cls(
            update.checked(),
            FederatedAveraging() if isinstance(solver, str) else solver.checked(),
            as_ball_randomiser(model.randomiser),
            None if population is None else population.checked(),
        )
        if model.epsilon is None and model.local_epsilon is None:
            raise ValueError(
                "epsilon and local_epsilon are both None: there would be no privacy. Set epsilon "
                "for noise on what is released, local_epsilon for reports of clients, or both."
            )
        if model.epsilon is None and population is not None:
            raise ValueError(
                "population is for noise on what is released: epsilon must be a number with it; "
                "got None."
            )
        if model.local_epsilon is None:
            made._check_without_reports()
        alone = model.local_epsilon is None and model.epsilon is not None
        if made.solver.fewest_reports is not None and not alone:
            raise ValueError(
                "fewest_reports is for noise on sums of exact updates: epsilon must be a number, "
                f"and local_epsilon None; got epsilon={model.epsilon!r} and "
                f"local_epsilon={model.local_epsilon!r}."
            )
        return made

    def _check_without_reports(self):
        names = {"report_norm": self.solver}
        names |= dict.fromkeys(("expected_norm", "magnitude_epsilon", "n_levels"), self.randomiser)
        for name, owner in names.items():
            if getattr(owner, name) is not None:
                raise ValueError(
                    f"{name} is for reports: it must be None where local_epsilon is None; got "
                    f"{owner!r}."
                )


# The plan of all rounds, made from public quantities before any data.


# Times that a client takes part, on average, and clients of a round, at least: as for sgd.
_PASSES, _SMALLEST_BATCH = 30, 256
# norms of reports are rounded, and so are their entries, to a grid
_ROUNDING = 1.0 + 2.0**-19
_MARGIN = 1.0 + 1e-9
#: constant feature where reports are the noise
_REPORTING_INTERCEPT = 0.3


@dataclass(frozen=True)
class FederatedBudget:
    """Budget for clients.

    Parameters
    ----------
    epsilon : float or None
        For all releases; None if only reports are protected.
    delta, adjacency : float, {"replace-one", "zero-out"}
        Of what is released.
    randomiser : Lift, Flip, Product or None
        Randomiser of reports; None if clients send exact updates.
    population : Population or None
        Simulated deployment.
    """

    epsilon: float | None
    delta: float
    adjacency: str
    randomiser: Any = None
    population: Population | None = None


@dataclass(frozen=True)
class FederatedPlan(GradientPlan):
    """Plan of all rounds, fixed before any row is read.

    Parameters
    ----------
    sampling : Sampling
        Sampling of the clients of a round.
    mu_round : float or None
        Sensitivity over noise of the sum of one round; None for no noise.
    randomiser, limit : object or None, float
        Randomiser of reports, and norm to which reports are projected.
    momentum, average : bool
        Whether the server accelerates its steps, and whether it averages its points.
    spent, hypothetical : float, float or None
        Epsilon of this fit, rounded up, and of the simulated deployment.
    shared : tuple of (int, float) or None
        If clients add the noise: their least number, and the grid of updates.

    Notes
    -----
    `clip` bounds the update of a client; `noise` is the standard deviation of a coordinate of a
    mean update.
    """

    sampling: Sampling | None = None
    mu_round: float | None = None
    randomiser: Any = None
    limit: float = math.inf
    momentum: bool = True
    average: bool = True
    spent: float = 0.0
    hypothetical: float | None = None
    shared: tuple[int, float] | None = None

    @property
    def n_releases(self):
        """Number of releases: one per round; two with noisy sums of reports."""
        return self.n_steps * ((self.randomiser is not None) + (self.mu_round is not None))

    @property
    def total_mu(self):
        """Gaussian-DP parameter of the whole fit; None with random batches, or reports only."""
        if self.mu_round is None or not self.sampling.reads_all:
            return None
        return self.mu_round * math.sqrt(self.n_steps) * HAIR


def plan_federated(
    problem,
    *,
    budget,
    batch_size=None,
    report_norm=None,
    momentum=True,
    average=True,
    fewest_reports=None,
):
    """Choose rounds, steps, clients of a round, clipping and noise from public quantities.

    Parameters
    ----------
    problem : dict
        The arguments of `plan_gradient` but `mu` and `adjacency`; `n_rows` is the number of
        clients.
    budget : FederatedBudget
        Available budget.
    batch_size : float, default=None
        Expected clients of a round. None chooses it.
    report_norm : float, default=None
        Norm to which reports are projected. None for a norm that no report exceeds.
    momentum, average : bool, default=True
        As in `FederatedPlan`.
    fewest_reports : int, default=None
        Least number of clients that add shares of the noise; None if the server adds it.

    Returns
    -------
    plan : FederatedPlan
        The plan.

    Raises
    ------
    ValueError
        If a round has more clients than exist, or the budget is too small.
    """
    n_clients, randomiser = problem["n_rows"], budget.randomiser
    longest = 1.0 if randomiser is None else randomiser.bound * _ROUNDING
    doubt = 0.0
    if budget.epsilon is not None:
        mu = gdp_mu(budget.epsilon, budget.delta)
        moved = 2 if budget.adjacency == "replace-one" else 1
        size = n_clients if budget.population is None else budget.population.size
        doubt = moved * longest / (mu * size)
    if randomiser is not None:
        across = randomiser.variances(1.0)[1]
        # one report of every client, unless that was left to the user
        n_reports = n_clients
        if batch_size is not None and problem["n_steps"] is not None:
            n_reports = batch_size * problem["n_steps"]
        doubt = math.hypot(doubt, math.sqrt(across / n_reports))
    # the same plan as with full batches of rows whose noise is as large
    steps = plan_gradient(
        **{**problem, "mu": 1.0 / (doubt * n_clients), "adjacency": "zero-out"},
        most_steps=MOST_STEPS,
    )
    n_rounds, shared = steps.n_steps, None
    if fewest_reports is not None:
        batch_size = _everybody(n_clients, batch_size, fewest_reports, budget)
    if batch_size is None:
        wanted = math.ceil(_PASSES * n_clients / n_rounds)
        batch_size = min(n_clients, max(_SMALLEST_BATCH, wanted))
        if randomiser is not None:
            batch_size = max(1, math.ceil(n_clients / n_rounds))
    sampling = _sampling(n_clients, batch_size, "batch_size", "the number of clients")
    limit = steps.clip * longest if report_norm is None else report_norm
    limit = steps.clip if randomiser is None else limit
    mu_round, spent, hypothetical = _prices(budget, sampling, n_rounds)
    if fewest_reports is not None:
        size = (problem["n_features"] + bool(problem["intercept"])) * problem["loss"].n_outputs
        shared = fewest_reports, _grid_of_shares(steps.clip, mu_round, size, fewest_reports)
    spread = [steps.clip / math.sqrt(batch_size)] * (not sampling.reads_all)
    if mu_round is not None:
        spread.append(_reach_of_clients(sampling, budget.adjacency) * limit / mu_round / batch_size)
    if randomiser is not None:
        spread.append(steps.clip * math.sqrt(across / batch_size))
    return FederatedPlan(
        **{**vars(steps), "noise": math.hypot(*spread)},
        sampling=sampling,
        mu_round=mu_round,
        randomiser=randomiser,
        limit=limit,
        momentum=momentum,
        average=average,
        spent=spent,
        hypothetical=hypothetical,
        shared=shared,
    )


def _everybody(n_clients, batch_size, fewest_reports, budget):
    """Return the number of clients, who all take part if they add the noise, or raise."""
    if batch_size not in (None, n_clients) or budget.population is not None:
        raise ValueError(
            "with fewest_reports all clients take part in every round, and none are simulated: "
            f"batch_size must be None or {n_clients}, population None; got {batch_size!r} and "
            f"{budget.population!r}."
        )
    if fewest_reports > n_clients:
        raise ValueError(
            f"fewest_reports must be at most the number of clients, {n_clients}; got "
            f"{fewest_reports}."
        )
    return n_clients


def _grid_of_shares(clip, mu, size, n_shares):
    """Return a grid with a rounding error of at most a thousandth of the longest update."""
    # and on which sums of shares are nearly continuous, and single ones are no single number
    finest = min(clip / mu * 2.0**-12, clip * 2.0**-9 / math.sqrt(size))
    share = clip / mu / math.sqrt(n_shares)
    finest = min(max(finest, share * 2.0**-24), share / 8)
    return math.ldexp(1.0, math.frexp(finest)[1] - 1)


def _sampling(n_clients, batch_size, name, limit):
    if not 0 < batch_size <= n_clients:
        raise ValueError(
            f"{name} must be greater than 0 and at most {limit}, {n_clients!r}; got {batch_size!r}."
        )
    if batch_size < SMALLEST_RATE * n_clients:
        raise ValueError(
            f"{name} must be at least {SMALLEST_RATE:.0e} times {limit}, {n_clients!r}; got "
            f"{batch_size!r}."
        )
    return Sampling("poisson", n_clients, batch_size)


def _reach_of_clients(sampling, adjacency):
    """Return the stated sensitivity in units of the longest projected vector."""
    return 1 if sampling.adjacency(adjacency) == "zero-out" else 2


def _prices(budget, sampling, n_rounds):
    """Return mu of a round, epsilon of the fit, and epsilon of the simulated deployment."""
    if budget.epsilon is None:
        price, rate = budget.randomiser.epsilon, sampling.rate
        if sampling.reads_all:
            return None, report_epsilon([(price, 0.0, n_rounds)], [], 0.0), None
        return None, report_epsilon([], [(price, n_rounds, rate)], budget.delta), None
    if budget.population is None:
        return _mu_of(budget, sampling, n_rounds), budget.epsilon, None
    rate = sampling.batch_size / sampling.n_rows
    size, wanted = int(budget.population.size), budget.population.batch_size
    wanted = rate * size if wanted is None else wanted
    deployed = _sampling(size, wanted, "batch_size of the population", "its size")
    mu = _mu_of(budget, deployed, n_rounds)
    hypothetical = _epsilon_of(mu, deployed, budget, n_rounds)
    # the same noise on the mean: Proposition 70
    reach = _reach_of_clients(sampling, budget.adjacency) / _reach_of_clients(
        deployed, budget.adjacency
    )
    mu *= reach * deployed.batch_size / sampling.batch_size
    # the ledger composes in another rounding
    return mu, _epsilon_of(mu, sampling, budget, n_rounds) * _MARGIN, hypothetical


def _mu_of(budget, sampling, n_rounds):
    if sampling.reads_all:
        return gdp_mu(budget.epsilon, budget.delta) / math.sqrt(n_rounds) * (1 - 1e-12)
    return sampled_mu(
        budget.epsilon,
        budget.delta,
        sampling=sampling,
        n_releases=n_rounds,
        adjacency=budget.adjacency,
    )


def _epsilon_of(mu, sampling, budget, n_rounds):
    if sampling.reads_all:
        return compose_epsilon(mu * math.sqrt(n_rounds) * _MARGIN, (), budget.delta)
    cost = SampledCost(sampling, mu, budget.adjacency, n_rounds)
    return compose_epsilon(0.0, (), budget.delta, (cost,))


@dataclass(frozen=True)
class FederatedProblem:
    """Public facts about a federated fit.

    Parameters
    ----------
    loss, intercept, shape : object, float, tuple of int
        Pointwise loss, constant feature of every row (0 for none), shape of the coefficients.
    local : dict
        Steps of clients: n_steps, step_size, pull.
    rounds : FederatedPlan
        Steps of the server.
    """

    loss: Any
    intercept: float
    shape: tuple[int, ...]
    local: dict[str, Any]
    rounds: Any

    def query(self, coef):
        """Return the query of a round, from the server's point."""
        query = ClientUpdates(coef, self.loss, self.rounds.clip, **self.local)
        shared = self.rounds.shared
        return query if shared is None else RoundedUpdates(query, shared[1], shared[0])


def plan_problem(model, given, n_clients, n_features, loss):
    """Return the `FederatedProblem` of an estimator, or raise a ValueError.

    Parameters
    ----------
    model : FederatedDPLogisticRegression
        Its parameters are read.
    given : FederatedParameters
        Its object parameters.
    n_clients, n_features : int
        Public sizes.
    loss : object
        Pointwise loss.
    """
    reporting, intercept = model.local_epsilon is not None, 0.0
    if model.fit_intercept and given.solver.intercept_scaling is not None:
        intercept = float(given.solver.intercept_scaling)
    elif model.fit_intercept:
        intercept = _REPORTING_INTERCEPT if reporting else DEFAULT_INTERCEPT
    n_coefs = n_features + bool(intercept)
    shape = (n_coefs,) if loss.n_outputs == 1 else (loss.n_outputs, n_coefs)
    randomiser = None
    if reporting:
        randomiser = given.randomiser.calibrate(float(model.local_epsilon), math.prod(shape))
    rounds = plan_federated(
        {
            "n_rows": n_clients,
            "n_features": n_features,
            "loss": loss,
            "intercept": intercept,
            "l2": penalty_of(model.C, model.data_norm) / n_clients,
            "radius": None,
            "n_steps": model.max_iter,
            "step_size": given.solver.step_size,
            "clip": given.update.clipping_norm,
        },
        budget=FederatedBudget(
            model.epsilon, model.delta, model.adjacency, randomiser, given.population
        ),
        batch_size=given.solver.batch_size,
        report_norm=given.solver.report_norm,
        momentum=given.solver.momentum,
        average=given.solver.average,
        fewest_reports=given.solver.fewest_reports,
    )
    local = given.update.steps(loss.smoothness * (1.0 + intercept**2))
    return FederatedProblem(loss, intercept, shape, local, rounds)


# The query of a round: how far clients move a model with their own rows.


@dataclass(frozen=True, eq=False)
class ClientUpdates:
    """Sum over clients of their updates of a linear model, each clipped.

    Parameters
    ----------
    coef : ndarray of shape (n_coefs,) or (n_outputs, n_coefs)
        Common starting point of the clients; an intercept comes last.
    loss : LogisticLoss or SoftmaxLoss
        Pointwise loss.
    clip : float
        Bound on the Euclidean norm of the update of one client.
    n_steps, step_size : int, float
        Gradient steps of a client along the mean loss of its rows, and their length.
    pull : float, default=0.0
        Strength of the penalty ``pull/2 |w - coef|^2`` of a client's objective; at most
        ``1 / step_size``.

    Notes
    -----
    The update of a client that ends at ``w`` is ``(w - coef) / (m step_size)``, where m is the sum
    of ``(1 - pull step_size)^k`` over ``k < n_steps``. It is a weighted mean of the descent
    directions along its path, no longer than the longest of them. It equals ``-X' A`` for the
    client's rows X and sums A of residuals: steps are computed in A, and one update is formed at
    the end.
    """

    coef: Any
    loss: Any
    clip: float
    n_steps: int = 1
    step_size: float = 1.0
    pull: float = 0.0

    @property
    def name(self):
        """Name of the statistic."""
        kind = f"{self.n_steps} steps" if self.n_steps > 1 else "1 step"
        pulled = f", pull {self.pull:.6g}" if self.pull else ""
        return (
            f"updates of clients by {kind} on {type(self.loss).__name__}{pulled}, clipped to "
            f"{self.clip:.6g}"
        )

    @property
    def size(self):
        """Number of coordinates."""
        return self.coef.size

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: clip (zero-out) or 2 clip (replace-one).

        Proof. Proposition 69 (i). A client's update is a function of its own rows and has norm
        at most clip, however many rows there are. Zero-out takes one away; replace-one takes
        one away and adds another. `n_rows` is the number of clients. Updates that come as
        messages, late or not at all: Proposition 97.
        """
        if adjacency == "zero-out":
            reach, theorem = self.clip, "the clipped update of a client has norm <= clip"
        else:
            reach, theorem = 2 * self.clip, "clipped updates of two clients differ by <= 2 clip"
        return Sensitivity(l1=math.inf, l2=reach, bound=n_rows * self.clip, theorem=theorem)

    def partial(self, chunk):
        """Return the clipped updates of a chunk of clients, summed."""
        coef = np.atleast_2d(self.coef)
        total = np.zeros(coef.shape)
        for stack in chunk.stacks():
            weights = self._residuals(stack, coef)
            if stack.rows.shape[1] == 1:
                # the norm of an outer product: no update is formed
                norm = _norms(weights) * _norms(stack.rows)
                weights[:, 0] *= self._factors(norm)[:, None]
                summed = weights[:, 0].T @ stack.rows[:, 0]
            else:
                made = np.matmul(weights.transpose(0, 2, 1), stack.rows)
                summed = np.einsum("g,gkp->kp", self._factors(_norms(made)), made)
            total[:, _all(stack.columns)] -= summed
        return total.ravel()

    def evaluate(self, rows):
        """Return the sum over all clients, local or distant, an array of shape (size,)."""
        return rows.sum_of(self)

    def vectors(self, chunk):
        """Return a row for every present client: its clipped update, divided by clip."""
        coef = np.atleast_2d(self.coef)
        vectors = np.zeros((chunk.n_clients, *coef.shape))
        for stack in chunk.stacks():
            weights = self._residuals(stack, coef)
            made = np.matmul(weights.transpose(0, 2, 1), stack.rows)
            made *= (self._factors(_norms(made)) / -self.clip)[:, None, None]
            if stack.columns is None:
                vectors[stack.place] = made
            else:
                vectors[np.ix_(stack.place, np.arange(len(coef)), stack.columns)] = made
        return vectors.reshape(chunk.n_clients, self.size)

    def _residuals(self, stack, coef):
        """Return A of every client, of shape (n_clients, n_rows, n_outputs), over the steps."""
        rows, shape = stack.rows, (*stack.target.shape, len(coef))
        start = np.matmul(rows, coef[:, _all(stack.columns)].T)
        target = stack.target.ravel()
        gram = None
        if self.n_steps > 1 and rows.shape[1] <= rows.shape[2]:
            gram = stack.products()
        total, kept = np.zeros(shape), 1.0 - self.pull * self.step_size
        for step in range(self.n_steps):
            score = start.copy()
            if step and gram is not None:
                score -= self.step_size * np.matmul(gram, total)
            elif step:
                moved = np.matmul(rows.transpose(0, 2, 1), total)
                score -= self.step_size * np.matmul(rows, moved)
            flat = score.reshape(-1) if self.loss.n_outputs == 1 else score.reshape(-1, shape[2])
            residual = self.loss.residual(flat, target).reshape(shape)
            residual *= stack.weight[:, :, None]
            total *= kept
            total += residual
        total /= math.fsum(kept**k for k in range(self.n_steps))
        return total

    def _factors(self, norm):
        return self.clip / np.maximum(norm, self.clip)


def _all(columns):
    return slice(None) if columns is None else columns


def _norms(stack):
    """Return the Euclidean norm of every part of a stack, accurate for tiny ones."""
    flat = np.ascontiguousarray(stack).reshape(len(stack), -1)
    return np.sqrt(np.einsum("ij,ij->i", flat, flat))


@dataclass(frozen=True)
class RoundedUpdates:
    """Sum over clients of clipped updates, each rounded to whole steps of a public grid.

    The vectors that clients send to secure aggregation, before their shares of the noise.

    Parameters
    ----------
    updates : ClientUpdates
        Query to round.
    grid : float
        A power of two.
    fewest_reports : int
        Least number of clients that answer, whatever their rows.
    """

    updates: ClientUpdates
    grid: float
    fewest_reports: int

    @property
    def name(self):
        """Name of the statistic."""
        return f"{self.updates.name}, on a grid of {self.grid:.3g}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.updates.size

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: clip + grid sqrt(size) / 2 (zero-out), or twice that.

        Proof. Proposition 99. The rounded update of a client is a function of its own rows, and
        rounding moves each coordinate by at most half a step. The update of null rows is 0.
        """
        own = self.updates.sensitivity(adjacency, n_rows)
        count = 1 if adjacency == "zero-out" else 2
        theorem = (
            f"{own.theorem} + grid sqrt(size) each, after rounding; {self.fewest_reports} clients "
            "or more add noise whatever their rows"
        )
        return Sensitivity(
            l1=math.inf,
            l2=own.l2 + count * self.grid * math.sqrt(self.size) / 2,
            bound=own.bound + n_rows * self.grid,
            theorem=theorem,
        )

    def steps(self, chunk):
        """Return a row of integers for every present client: its update in steps."""
        return np.rint(self.updates.vectors(chunk) * (self.updates.clip / self.grid))

    def evaluate(self, rows):
        """Return the sum over all clients, of shape (size,), without further rounding."""
        total = sum_over(rows, lambda chunk: self.steps(chunk).sum(axis=0), self.size)
        return total * self.grid


# The sum of local reports, none of which counts for more than a bound.


# sums that are made next to each other
_STEP = 64


@dataclass(frozen=True)
class ReportSum:
    """Sum of reports times `unit`, each projected to the ball of radius `limit`.

    Parameters
    ----------
    size : int
        Number of entries of a report.
    unit : float
        Length of a report of norm 1.
    limit : float
        Bound on the norm of a report in the sum. Projection of longer reports biases their mean.
    """

    size: int
    unit: float
    limit: float
    #: what the statistic is
    name = "sum of projected reports"

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: limit (zero-out) or 2 limit (replace-one).

        Proof. Proposition 69 (ii). Given all reports, what one of them counts for has norm at
        most limit. Under zero-out a client that is not there makes no report; under
        replace-one there is another report in its place.
        """
        if adjacency == "zero-out":
            reach, theorem = self.limit, "a projected report has norm <= limit"
        else:
            reach, theorem = 2 * self.limit, "two projected reports differ by <= 2 limit"
        return Sensitivity(l1=math.inf, l2=reach, bound=n_rows * self.limit, theorem=theorem)

    def total(self, reports):
        """Return the sum of projected reports, an array of shape (size,).

        An absent client shifts all others, and so changes every rounding. So all rounding errors
        are included; together they are below 2 u n limit for n reports, u = 2^-53, in any order.
        """
        total, beside = CompensatedSum(self.size), CompensatedSum((_STEP, self.size))
        for start in range(0, len(reports), _STEP):
            part = reports[start : start + _STEP]
            counted = np.zeros((_STEP, self.size))
            np.multiply(part, (self._factors(part) * self.unit)[:, None], counted[: len(part)])
            beside.add(counted)
        for one in beside.value[: len(reports)]:
            total.add(one)
        return total.value

    def n_projected(self, reports):
        """Return the number of reports longer than the limit."""
        return int(np.count_nonzero(self._factors(reports) < 1.0))

    def _factors(self, reports):
        norm = self.unit * np.sqrt(np.einsum("ij,ij->i", reports, reports))
        return self.limit / np.maximum(norm, self.limit)


# Rounds, and the server's steps.
#
# Nothing here knows the model or the loss: a function makes the query of a round from the
# server's point. Whatever is done with what a curator releases costs nothing.


class PrepaidRounds:
    """Federated rounds, all charged before the first.

    Parameters
    ----------
    curator : Curator
        Holds the clients.
    make_query : callable
        Maps a point to the query of a round: the sum of clipped updates of clients that start
        there (with `vectors` for reports).
    start : ndarray
        The first point.
    plan : FederatedPlan
        Rounds, clients of a round, noise, reports.

    Notes
    -----
    A mean is the sum divided by the EXPECTED number of clients of a round. The actual number is
    private, and a sum divided by it has another sensitivity.
    """

    def __init__(self, curator, make_query, start, plan):
        self._curator, self._make_query, self._plan = curator, make_query, plan
        self._n_reports = self._n_projected = 0
        first = make_query(start)
        if plan.shared is not None:
            noise = SharedGaussianMechanism(plan.mu_round, plan.shared[1], plan.shared[0])
        elif plan.mu_round is not None:
            noise = SampledGaussianMechanism(plan.mu_round, plan.sampling)
        if plan.randomiser is None:
            self._paid = curator.prepay(first, noise, plan.n_steps)
            return
        self._total = ReportSum(first.size, plan.clip, plan.limit)
        local = LocalMechanism(plan.randomiser.epsilon, plan.sampling)
        reports = LocalReports(first, plan.randomiser)
        if plan.mu_round is None:
            self._paid = curator.prepay(reports, local, plan.n_steps)
        else:
            sums = SumOfReports(self._total, reports)
            self._paid = curator.prepay(sums, ReportedSum(noise, local), plan.n_steps)

    def mean_update(self, point):
        """Return the released mean update of the clients of one round, at a point."""
        query, plan = self._make_query(point), self._plan
        if plan.randomiser is None:
            total = self._curator.release(query, self._paid)
        else:
            reports = LocalReports(query, plan.randomiser)
            if plan.mu_round is None:
                made = self._curator.release(reports, self._paid)
                self._n_reports += len(made)
                self._n_projected += self._total.n_projected(made)
                total = self._total.total(made)
            else:
                total = self._curator.release(SumOfReports(self._total, reports), self._paid)
        return total.reshape(point.shape) / plan.sampling.batch_size

    @property
    def projected_share(self):
        """Fraction of projected reports; None if only their sums were released."""
        if self._plan.randomiser is None or self._plan.mu_round is not None:
            return None
        return self._n_projected / max(self._n_reports, 1)


def federated_descent(mean_update, shape, plan):
    """Make the server's steps along released mean updates.

    Parameters
    ----------
    mean_update : callable
        Maps a point of the given shape to a released mean update.
    shape : tuple of int
        Shape of the model.
    plan : FederatedPlan
        Steps, step length, penalty, momentum, averaging.

    Returns
    -------
    coef : ndarray of shape `shape`
        Average of the later points, or the last point.

    Notes
    -----
    An update serves as a descent direction of the mean objective. With one local step it is a
    descent direction (Bhowmick et al. 2018, Section 3.1).
    """
    previous = coef = np.zeros(shape)
    average, step_size = SuffixAverage(shape, plan.n_steps), StepSize(plan)
    for t in range(plan.n_steps):
        ahead = coef + (t / (t + 3)) * (coef - previous) if plan.momentum else coef
        gradient = -mean_update(ahead)
        previous, coef = coef, plan.step(ahead, gradient, step_size.at(ahead, gradient))
        average.add(coef)
    return average.value if plan.average else coef


# Private rows that belong to clients, who own any number of them each.


# numbers of one stack of clients, at most, unless one client alone has more
_STACK_ENTRIES = 1 << 16
# sparse rows of no more columns are stacked as dense ones
_FEW_COLUMNS = 64
# clients of one chunk; where chunks begin depends on public numbers alone
_FEWEST, _MOST = 32, 512


@dataclass(frozen=True)
class ClientStack:
    """Clients with the same number of rows.

    Parameters
    ----------
    place : ndarray of shape (n_clients,)
        Places of these clients among the present clients of the chunk.
    rows : ndarray of shape (n_clients, n_rows, size)
        Rows in the unit ball, the constant feature included.
    target, weight : ndarray of shape (n_clients, n_rows)
        Targets, and the inverse of the client's number of non-null rows; 0 for null rows.
    columns : ndarray of shape (size,) or None
        Columns of the rows; None for all.
    kept, key : dict, int or None
        Cache of products for the next rounds, and its key; None keeps nothing.
    """

    place: Any
    rows: Any
    target: Any
    weight: Any
    columns: Any
    kept: Any
    key: Any

    def products(self):
        """Return the inner products of the rows of every client with each other."""
        if self.key in self.kept:
            return self.kept[self.key]
        made = np.matmul(self.rows, self.rows.transpose(0, 2, 1))
        if self.key is not None:
            self.kept[self.key] = made
        return made


class ClientChunk:
    """Some clients, in order."""

    def __init__(self, owner, positions):
        self._owner = owner
        # a client without any row is not there
        self._positions = positions[owner.sizes(positions) > 0]

    @property
    def n_clients(self):
        """Number of present clients."""
        return len(self._positions)

    def stacks(self):
        """Yield every client once, in a `ClientStack`."""
        sizes = self._owner.sizes(self._positions)
        for size in np.unique(sizes):
            places = np.flatnonzero(sizes == size)
            width = self._owner.stack_width(size)
            for start in range(0, len(places), width):
                place = places[start : start + width]
                yield self._owner.stack(place, self._positions[place], size)


class ClientRows:
    """Rows of a linear model, sorted by client.

    Parameters
    ----------
    X, target, null : ndarray or CSR matrix, ndarray, ndarray
        As for `LinearRows`.
    clients : ndarray of shape (n_rows,), dtype int64
        Position of the client of every row; private, except the number of clients.
    n_clients : int
        Public number of clients. A client may have no rows.
    ball, intercept, n_threads : L2Ball, float, int
        As for `LinearRows`.

    Notes
    -----
    The results for one client do not depend on any bit of the rows of others: products are
    computed separately for every client of a stack.
    """

    def __init__(self, X, target, null, clients, n_clients, ball, intercept, n_threads=1):
        if (clients[1:] < clients[:-1]).any():
            order = np.argsort(clients, kind="stable")
            X, target, null, clients = X[order], target[order], null[order], clients[order]
        rows = LinearRows(X, target, null, ball, intercept)
        self._whole = whole_chunk(X, rows.chunks)
        self._starts = np.searchsorted(clients, np.arange(n_clients + 1))
        self._n_clients, self.n_threads = n_clients, n_threads
        self._own_columns = sparse.issparse(X) and X.shape[1] > _FEW_COLUMNS
        self._kept = {}
        self._step = int(np.clip(n_clients // 32, _FEWEST, _MOST))
        self._chunked(np.arange(n_clients), 1.0)

    def _chunked(self, positions, rate):
        width = max(1, int(self._step / 2 / rate)) if rate < 1 else self._step
        cuts = np.searchsorted(positions, np.arange(width, self._n_clients, width))
        self.chunks = [ClientChunk(self, part) for part in np.split(positions, cuts)]
        self.n_rows = len(positions)
        self.n_entries = int(self.sizes(positions).sum()) * self._whole.X.shape[1]

    def batch(self, positions, rate):
        """Return the clients at sorted positions, each drawn with a public probability."""
        chosen = copy.copy(self)
        chosen._chunked(positions, rate)
        return chosen

    def part(self, start, stop):
        """Return the clients of a range of positions."""
        chosen = copy.copy(self)
        chosen._chunked(np.arange(start, stop), 1.0)
        return chosen

    def sum_of(self, query):
        """Return the sum of the updates of a query, an array of shape (query.size,)."""
        return sum_over(self, query.partial, query.size)

    def sizes(self, positions):
        """Return the number of rows of each client at the given positions."""
        return self._starts[positions + 1] - self._starts[positions]

    def stack_width(self, size):
        """Return the number of clients of a size in one stack."""
        # wide sparse ones alone: each has columns of its own
        entries = int(size) * (self._whole.X.shape[1] + 1)
        return 1 if self._own_columns else max(1, _STACK_ENTRIES // entries)

    def stack(self, place, positions, size):
        """Return clients of one size as a `ClientStack`."""
        if len(positions) == 1:
            start = int(self._starts[positions[0]])
            index, key = slice(start, start + int(size)), start
        else:
            index, key = (self._starts[positions][:, None] + np.arange(size)).ravel(), None
        part = self._whole.taken(index)
        rows, columns = part.explicit(), None
        if self._own_columns:
            columns, inverse = np.unique(rows.indices, return_inverse=True)
            shape = (rows.shape[0], len(columns))
            rows = sparse.csr_array((rows.data, inverse, rows.indptr), shape=shape).toarray()
        elif sparse.issparse(rows):
            rows = rows.toarray()
        counts = np.isfinite(part.norm).reshape(len(positions), size)
        weight = counts / np.maximum(counts.sum(axis=1), 1)[:, None]
        stacked = rows.reshape(len(positions), size, rows.shape[1])
        target = part.target.reshape(weight.shape)
        return ClientStack(place, stacked, target, weight, columns, self._kept, key)

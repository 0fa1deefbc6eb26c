# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The plan of federated rounds, made from public quantities before any data."""

import math
from dataclasses import dataclass
from typing import Any

from skdp._reports import report_bound
from skdp._solvers.gradient_plan import MOST_STEPS, GradientPlan, plan_gradient
from skdp.privacy import Sampling, gdp_mu, sampled_mu
from skdp.privacy._accounting import HAIR
from skdp.privacy._composition import SampledCost, compose_epsilon
from skdp.privacy._local import report_epsilon
from skdp.privacy._sampling import SMALLEST_RATE

# Times that a client takes part, on average, and clients of a round, at least: as for sgd.
_PASSES, _SMALLEST_BATCH = 30, 256
# norms of reports are rounded, and so are their entries, to a grid
_ROUNDING = 1.0 + 2.0**-19
_MARGIN = 1.0 + 1e-9


@dataclass(frozen=True)
class FederatedBudget:
    """What may be spent on clients.

    Parameters
    ----------
    epsilon : float or None
        Of all that is released; None if nothing but reports is protected.
    delta, adjacency : float, {"replace-one", "zero-out"}
        Of what is released.
    randomiser : Lift, Flip, Product or None
        What makes the report of a client; None if clients send exact updates.
    population, population_batch : float or None
        Clients of a deployment that this simulates, and of one of its rounds.
    """

    epsilon: float | None
    delta: float
    adjacency: str
    randomiser: Any = None
    population: float | None = None
    population_batch: float | None = None


@dataclass(frozen=True)
class FederatedPlan(GradientPlan):
    """What federated learning will do: fixed before the data are touched.

    Parameters
    ----------
    sampling : Sampling
        How the clients of a round are drawn.
    mu_round : float or None
        Sensitivity over noise of the sum of one round; None for no noise.
    randomiser, limit : object or None, float
        What makes reports, and the norm to which they are projected.
    momentum, average : bool
        Whether the server accelerates its steps, and whether it averages its points.
    spent, hypothetical : float, float or None
        Epsilon of this fit, rounded up, and of the deployment that it simulates.

    Notes
    -----
    `clip` bounds the update of a client, `noise` is that of one coordinate of a mean update.
    """

    sampling: Sampling | None = None
    mu_round: float | None = None
    randomiser: Any = None
    limit: float = math.inf
    momentum: bool = True
    average: bool = True
    spent: float = 0.0
    hypothetical: float | None = None

    @property
    def total_mu(self):
        """Gaussian-DP parameter of the whole fit; None with random batches, or reports alone."""
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
):
    """Choose rounds, steps, clients of a round, clipping and noise from public quantities.

    Parameters
    ----------
    problem : dict
        The arguments of `plan_gradient` but `mu` and `adjacency`; `n_rows` is the number of
        clients.
    budget : FederatedBudget
        What may be spent.
    batch_size : float, default=None
        Expected clients of a round. None chooses it.
    report_norm : float, default=None
        Norm to which reports are projected. None for one that no report exceeds.
    momentum, average : bool, default=True
        As in `FederatedPlan`.

    Returns
    -------
    plan : FederatedPlan
        The plan.

    Raises
    ------
    ValueError
        If a round would have more clients than there are, or the budget is too small.
    """
    n_clients, randomiser = problem["n_rows"], budget.randomiser
    longest = 1.0 if randomiser is None else report_bound(randomiser) * _ROUNDING
    doubt = 0.0
    if budget.epsilon is not None:
        mu = gdp_mu(budget.epsilon, budget.delta)
        moved = 2 if budget.adjacency == "replace-one" else 1
        doubt = moved * longest / (mu * (budget.population or n_clients))
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
    n_rounds = steps.n_steps
    if batch_size is None:
        wanted = math.ceil(_PASSES * n_clients / n_rounds)
        batch_size = min(n_clients, max(_SMALLEST_BATCH, wanted))
        if randomiser is not None:
            batch_size = max(1, math.ceil(n_clients / n_rounds))
    sampling = _sampling(n_clients, batch_size, "batch_size", "number of clients")
    limit = steps.clip * longest if report_norm is None else report_norm
    limit = steps.clip if randomiser is None else limit
    mu_round, spent, hypothetical = _prices(budget, sampling, n_rounds)
    spread = [steps.clip / math.sqrt(batch_size)] * (not sampling.reads_all)
    if mu_round is not None:
        spread.append(_reach(sampling, budget.adjacency) * limit / mu_round / batch_size)
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
    )


def _sampling(n_clients, batch_size, name, limit):
    if not 0 < batch_size <= n_clients:
        raise ValueError(
            f"{name} must be greater than 0 and at most the {limit}, {n_clients!r}; got "
            f"{batch_size!r}."
        )
    if batch_size < SMALLEST_RATE * n_clients:
        raise ValueError(
            f"{name} must be at least {SMALLEST_RATE:.0e} times the {limit}, {n_clients!r}; got "
            f"{batch_size!r}."
        )
    return Sampling("poisson", n_clients, batch_size)


def _reach(sampling, adjacency):
    """Return how many projected vectors the stated sensitivity is."""
    return 1 if sampling.adjacency(adjacency) == "zero-out" else 2


def _prices(budget, sampling, n_rounds):
    """Return mu of a round, the epsilon of the fit, and that of what it simulates."""
    if budget.epsilon is None:
        price, rate = budget.randomiser.epsilon, sampling.rate
        if sampling.reads_all:
            return None, report_epsilon([(price, 0.0, n_rounds)], [], 0.0), None
        return None, report_epsilon([], [(price, n_rounds, rate)], budget.delta), None
    if budget.population is None:
        return _mu_of(budget, sampling, n_rounds), budget.epsilon, None
    rate = sampling.batch_size / sampling.n_rows
    wanted = budget.population_batch
    size = int(budget.population)
    wanted = rate * size if wanted is None else wanted
    deployed = _sampling(size, wanted, "population_batch_size", "population_size")
    mu = _mu_of(budget, deployed, n_rounds)
    hypothetical = _epsilon_of(mu, deployed, budget, n_rounds)
    # the same noise on the mean: Proposition 70
    reach = _reach(sampling, budget.adjacency) / _reach(deployed, budget.adjacency)
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

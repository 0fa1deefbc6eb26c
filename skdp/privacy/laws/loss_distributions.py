# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Composition by privacy loss distributions, rounded up, without a closed form.

Distributions of dp_accounting on a grid of losses; every loss is rounded up. A pure release is
represented by its worst case, a Gaussian release on a random batch by the dominating pair of its
sampling. Let a row's contribution to the sum have norm at most C, and sigma be the standard
deviation of the noise.

Poisson. Under zero-out the worst pair is ``(1-q) N(0) + q N(C)`` against ``N(0)``, in both
directions; under replace-one ``(1-q) N(0) + q N(C)`` against ``(1-q) N(0) + q N(-C)``
(proved in docs/user_guide/proofs_sampling.rst). Both dominate at every order, hence under
adaptive composition as well (Zhu, Dong and Wang 2022). dp_accounting knows these pairs.

Fixed size. A batch without the row has another one in its place, which may be as far away
as two contributions can be: the profile below bounds all pairs of either adjacency in both
directions, and a bound on a profile is that of a dominating pair.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr

from skdp.privacy.kernel.accounting import gdp_epsilon
from skdp.privacy.kernel.batches import Sampling
from skdp.privacy.kernel.ledger import SampledCost

# multiplicities of a row in a batch beyond this weigh nothing that matters
_MOST_COPIES = 40
_LIGHTEST = 1e-20
_TAIL = 1e-18


def numerical_epsilon(
    mu: float,
    priced: tuple[tuple[float, float, int], ...],
    delta: float,
    sampled: tuple[SampledCost, ...],
) -> float:
    """Return the epsilon of everything together, by privacy loss distributions, rounded up.

    Parameters
    ----------
    mu, priced, delta : float, tuple of (float, float, int), float
        As in `compose_epsilon`.
    sampled : tuple of SampledCost
        Releases on random batches; empty for none.
    """
    if sampled:
        return _sampled_epsilon(mu, priced, delta, sampled)
    return _pld_epsilon(mu, priced, delta)


@lru_cache(maxsize=4096)
def _sampled_epsilon(
    mu: float,
    priced: tuple[tuple[float, float, int], ...],
    delta: float,
    sampled: tuple[SampledCost, ...],
) -> float:
    steps = sum(cost.count for cost in sampled)
    # every loss is rounded up to the grid: by half a step each, for the sum by
    # interval * sqrt(steps) at the scale of its spread. A tenth of epsilon is fine enough
    # (tested by halving), and any grid gives a bound
    likely = [c.sampling.rate * math.sqrt(c.count * math.expm1(min(c.mu**2, 30))) for c in sampled]
    spread = gdp_epsilon(min(math.hypot(mu, *likely), 30.0), delta)
    spread = max(spread, *(epsilon for epsilon, _, _ in priced), 1e-4)
    finest = min([0.03 * spread / math.sqrt(steps), *(e / 64 for e, _, _ in priced)])
    # where a row is hardly ever drawn, the rare losses are what counts, and they are far away
    finest = max(finest, *(_farthest(cost) * 2.0**-15 for cost in sampled))
    interval = 2.0 ** math.floor(math.log2(finest))
    interval = min(max(interval, 2.0**-24), 2.0**-8)
    # tails over- and underflow on the way
    with np.errstate(all="ignore"):
        total = _common_loss(mu, priced, interval)
        for cost in sampled:
            one = batch_loss(cost.sampling, cost.mu, cost.adjacency, interval)
            one = one.self_compose(cost.count) if cost.count > 1 else one
            total = one if total is None else total.compose(one)
        return float(total.get_epsilon_for_delta(delta)) * (1 + 1e-12)


def _farthest(cost: SampledCost) -> float:
    """Return about the largest loss that counts, of one release."""
    far = 10 * cost.mu + cost.mu**2 / 2
    return far + math.log(cost.sampling.rate + math.exp(-far))


@lru_cache(maxsize=1024)
def _pld_epsilon(mu: float, priced: tuple[tuple[float, float, int], ...], delta: float) -> float:
    # the grid of losses is rounded up, so it must be fine against the smallest loss
    # composed, and the whole range must stay small enough for memory
    finest = min([mu, *(epsilon for epsilon, _, _ in priced)]) / 100
    largest = math.fsum(epsilon * count for epsilon, _, count in priced) + gdp_epsilon(mu, 1e-12)
    if largest > 500:
        return math.inf
    interval = max(min(1e-4, finest), largest / 5e5)
    return float(_common_loss(mu, priced, interval).get_epsilon_for_delta(delta))


def _common_loss(mu: float, priced: Sequence[tuple[float, float, int]], interval: float) -> Any:
    """Return the privacy loss distribution of what reads all rows; None for nothing."""
    from dp_accounting.pld import common, privacy_loss_distribution

    parts = [_symmetric_loss(lambda losses: _gaussian_delta(mu, losses), interval)] if mu else []
    for epsilon, broken, count in priced:
        one = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, broken),
            value_discretization_interval=interval,
        )
        parts.append(one.self_compose(count) if count > 1 else one)
    return reduce(lambda a, b: a.compose(b), parts) if parts else None


# The dominating pair of a release on a random batch.


@lru_cache(maxsize=4)
def batch_loss(sampling: Sampling, mu: float, adjacency: str, interval: float) -> Any:
    """Return the privacy loss distribution of one release on a batch, on a grid of losses.

    Parameters
    ----------
    sampling, mu, adjacency : Sampling, float, {"replace-one", "zero-out"}
        How the batch is drawn; sensitivity over noise, the sensitivity as
        ``sampling.adjacency`` asks for it; what is promised.
    interval : float
        Step of the grid; losses are rounded up.

    Returns
    -------
    loss : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        Of a dominating pair.
    """
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution

    if sampling.kind == "poisson" or sampling.reads_all:
        replace = adjacency == "replace-one" and not sampling.reads_all
        return privacy_loss_distribution.from_gaussian_mechanism(
            1 / mu,
            value_discretization_interval=interval,
            sampling_prob=sampling.rate,
            neighboring_relation=NeighboringRelation.REPLACE_ONE
            if replace
            else NeighboringRelation.ADD_OR_REMOVE_ONE,
        )
    return _symmetric_loss(lambda losses: batch_profile(sampling, mu, losses), interval)


def _symmetric_loss(
    profile: Callable[[NDArray[np.float64]], NDArray[np.float64]], interval: float
) -> Any:
    """Return the privacy loss distribution of a symmetric pair, from its delta at any epsilons."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    # far enough for the mass beyond to be nothing
    farthest = 2.0**-10
    while profile(np.array([farthest]))[0] > _TAIL and farthest < 700:
        farthest *= 1.25
    epsilons = np.arange(math.ceil(farthest / interval) + 1, dtype=np.float64) * interval
    deltas = np.minimum.accumulate(profile(epsilons))
    probs = _connected(deltas, interval)
    # a loss of -x has exp(-x) times the probability of x; differences of deltas near 1
    # would have rounding errors instead
    both = np.concatenate([(probs * np.exp(-epsilons))[:0:-1], probs])
    steps = len(probs) - 1
    return privacy_loss_distribution.PrivacyLossDistribution(
        pld_pmf.DensePLDPmf(interval, -steps, both, float(deltas[-1]), True)
    )


def _connected(deltas: NDArray[np.float64], interval: float) -> NDArray[np.float64]:
    """Return the masses of the losses 0, interval, ... of a symmetric pair, from its deltas.

    The profile is linear in exp(epsilon) between the losses (Doroshenko et al. 2022).
    """
    drop = -np.diff(deltas)
    rise, fall = math.expm1(interval), -math.expm1(-interval)
    probs: NDArray[np.float64] = np.append(0.0, drop / fall)
    probs[1:-1] -= drop[1:] / rise
    probs[0] = 1 - deltas[1] - drop[0] * (1 / fall + 1 / rise)
    np.maximum(probs, 0.0, out=probs)
    return probs


def batch_copies(sampling: Sampling) -> list[tuple[int, float]]:
    """Return pairs: how often a row is in a fixed-size batch, and how likely, given once."""
    if sampling.kind == "without-replacement":
        return [(1, 1.0)]
    size, n_rows = int(sampling.batch_size), sampling.n_rows
    k = np.arange(1, min(size, _MOST_COPIES) + 1)
    # logarithms of factors, not of factorials, whose difference would have few digits
    logs = np.cumsum(np.log((size - k + 1) / (k * n_rows)))
    if n_rows > 1:
        logs += (size - k) * math.log1p(-1 / n_rows)
    weights = np.exp(logs) / sampling.rate * (1 + 1e-12)
    # what is left out counts as the worst: see `batch_profile`
    return [(int(c), float(w)) for c, w in zip(k, weights, strict=True) if w > _LIGHTEST]


def batch_profile(
    sampling: Sampling, mu: float, epsilons: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return a bound on delta for fixed-size batches, at any real epsilons, rounded up.

    Parameters
    ----------
    sampling : Sampling
        How batches of fixed size are drawn.
    mu : float
        Distance of two contributions, in standard deviations of the noise.
    epsilons : ndarray
        In nats; negative ones ask for the same of the reversed pair.

    Returns
    -------
    delta : ndarray
        ``q sum_k w_k H(k mu)`` at ``log(1 + (exp(epsilon) - 1) / q)`` (Balle, Barthe and
        Gaboardi 2018, Theorems 9 and 10), symmetrised.
    """
    size, q = np.abs(epsilons), sampling.rate
    # log(1 + expm1(size) / q), which expm1 would overflow for large ones
    inner = np.where(
        size < 30,
        np.log1p(np.expm1(np.minimum(size, 30)) / q),
        size - math.log(q) + np.log1p((q - 1) * np.exp(-size)),
    )
    copies = batch_copies(sampling)
    # what has more copies weighs less still, each a small part of the one before
    complete = sampling.kind == "without-replacement" or len(copies) == sampling.batch_size
    beyond = 0.0 if complete else (_MOST_COPIES + 1) * _LIGHTEST
    delta = q * (beyond + sum(w * _gaussian_delta(k * mu, inner) for k, w in copies))
    delta = np.minimum(delta, 1.0)
    mirrored = -np.expm1(-size) + np.exp(-size) * delta
    return np.where(epsilons >= 0, delta, mirrored)


def _gaussian_delta(mu: float, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the delta of mu-GDP at many non-negative epsilons, rounded up."""
    u, v = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    near = np.maximum(u, -5.0)
    with np.errstate(under="ignore", over="ignore"):
        # exp(-u^2/2) is common to both terms, and would drown their difference
        scaled = erfcx(near / math.sqrt(2)) - erfcx(v / math.sqrt(2))
        tail = 0.5 * np.exp(-near * near / 2) * scaled
        plain = ndtr(-u) - np.exp(np.minimum(epsilon, 700)) * ndtr(-v)
    exact: NDArray[np.float64] = np.where(u > -5, tail, plain)
    # as in `gdp_delta`: cancellation for small mu, conditioning of the tail
    slack = 1e-11 + 4e-15 * (1 + epsilon / mu) * (1 / min(mu, 1.0) + epsilon / mu)
    return np.clip(exact * (1 + slack), 0.0, 1.0)

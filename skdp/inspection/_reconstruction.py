# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How well an attacker can rebuild a direction from one report under local privacy."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from skdp._randomisers import log_cap, optimal_privunit
from skdp.inspection._public_numbers import (
    check_cosine,
    check_dims,
    check_epsilon,
    check_ratio,
    log_odds_bound,
    log_prior,
)
from skdp.inspection._reconstruction_report import ReconstructionRisk

MECHANISMS = (None, "privunit")
COSINES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def log_paper_bound(epsilon, n_dims, cosine):
    """Return the logarithm of the bound that is in print, at most 0."""
    if n_dims < 4 or cosine == 1.0:
        # whoever knows the vector beforehand has it
        return 0.0 if n_dims < 4 or epsilon == math.inf else -math.inf
    log_rest, bounds = math.log1p(-cosine) + math.log1p(cosine), [0.0]
    if cosine <= math.sqrt(0.5):
        bounds.append(epsilon + n_dims / 2 * log_rest)
    if cosine >= math.sqrt(2 / n_dims):
        small = math.log(2 * cosine) + 0.5 * math.log(n_dims)
        bounds.append(epsilon + (n_dims - 1) / 2 * log_rest - small)
    return min(bounds)


def log_privunit_success(channel, log_prior):
    """Return the log of the largest posterior probability that PrivUnit allows.

    Parameters
    ----------
    channel : PrivUnit
        Density p/q on a cap of probability q around the input, (1-p)/(1-q) elsewhere.
    log_prior : float
        Logarithm of the probability of the event for a uniform input.

    Returns
    -------
    log_posterior : float
        At most 0.
    """
    log_q, p = channel.log_q, channel.p
    if log_prior <= log_q:
        return min(0.0, math.log(p) - log_q + log_prior)
    beyond = (1 - p) * (math.exp(log_prior) - math.exp(log_q)) / -math.expm1(log_q)
    return min(0.0, math.log(p + beyond))


def reconstruction_risk(
    epsilon: float,
    n_dims: int,
    *,
    cosine: float | Sequence[float] = COSINES,
    prior_log_ratio: float = 0.0,
    mechanism: Literal["privunit"] | None = None,
    target_dims: int | None = None,
) -> ReconstructionRisk:
    """Bound how often an attacker rebuilds a direction from a report under local privacy.

    A person has a direction, a unit vector. The attacker knows its prior law, sees one
    report of an epsilon-locally private channel, and guesses. The guess is a success if
    its cosine with the true direction is at least `cosine`. For each cosine the result
    has the success of a guess without the report (the baseline of "reconstruction
    robustness"), and bounds on the success with it, for every attack, channel and report.

    Parameters
    ----------
    epsilon : float
        Budget in nats of all that is reported on the person, from 1e-3 to 1e5.
    n_dims : int
        Dimension of the space of the input direction, from 2 to 10^7.
    cosine : float or sequence of float, default=(0.1, 0.2, ..., 0.9)
        From 0 to 1. A cosine c is the Euclidean distance sqrt(2 - 2c) of unit vectors.
    prior_log_ratio : float, default=0.0
        What the attacker knows beforehand: the density of the prior relative to the uniform
        law is at most e to this power. 0 is a uniform prior; infinity an attacker who may
        know everything.
    mechanism : {None, "privunit"}, default=None
        "privunit" adds the exact success of the best attack on PrivUnit with its optimal
        parameters, for a uniform prior.
    target_dims : int, default=None
        The attacker wants the direction of a linear image of the input only, under orthonormal
        rows, and this many of them. None: the input itself, of dimension `n_dims`.

    Returns
    -------
    risk : ReconstructionRisk
        Print it, plot it, or make it a table. It holds logarithms, which do not underflow.

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names it.

    See Also
    --------
    epsilon_for_reconstruction : The largest epsilon for a success.
    cosine_for_reconstruction : What can be ruled out at an epsilon.
    dictionary_risk : The same for words that a person used.

    Notes
    -----
    Let P be the prior probability of a success: that of a cap of the sphere, times e to
    `prior_log_ratio`, at most 1. The odds of any event grow by a factor of at most
    e^epsilon with a report, so that the success is at most e^epsilon P / (1 + (e^epsilon - 1) P),
    which some channel attains. That is the bound to quote. For comparison there are
    e^epsilon P, and the bound in print ([1]_, Proposition 1), which puts a bound of P for P,
    and is stated for four dimensions or more (below, it is 1 here). Both are at least as
    large.

    A bound says nothing where it is near 1, and the success of one attack is no bound. Quote
    the baseline, the bound and the exact success together. With fewer `target_dims`
    than `n_dims` the last is an upper bound for PrivUnit, which no attack need attain.

    This is no privacy guarantee of its own: it rests on the prior. Reports on one person
    add up their budgets. A channel that is only (epsilon, delta)-private has no such bound,
    since it may reveal everything on rare occasions.

    References
    ----------
    .. [1] A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor and R. Rogers, "Protection against
       reconstruction and its applications in private federated learning", 2018.
       Definition 2.3, Lemma 2.2 and Proposition 1.

    Examples
    --------
    >>> from skdp.inspection import reconstruction_risk
    >>> print(reconstruction_risk(8.0, 200, cosine=[0.1, 0.3, 0.5], mechanism="privunit"))
    epsilon 8, 200 dimensions, uniform prior
    cosine   prior    paper    e^eps prior  odds bound  PrivUnit
    0.1      0.0789   1        1            0.996       0.91
    0.3      7.6e-06  0.0295   0.0226       0.0221      0.0022
    0.5      2.1e-14  7.8e-11  6.1e-11      6.1e-11     6.0e-12
    best guess on PrivUnit: mean cosine 0.192
    """
    epsilon, n_dims = check_epsilon(epsilon), check_dims("n_dims", n_dims)
    ratio = check_ratio(prior_log_ratio)
    given = np.atleast_1d(cosine).ravel().tolist()
    if not given:
        raise ValueError("cosine must have at least one number from 0 to 1; got none.")
    cosines = tuple(check_cosine("cosine", c) for c in given)
    if mechanism not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {MECHANISMS}; got {mechanism!r}.")
    dims = n_dims if target_dims is None else check_dims("target_dims", target_dims, n_dims)
    caps = [log_cap(c, dims) for c in cosines]
    priors = tuple(log_prior(cap, ratio) for cap in caps)
    log_privunit, mean_cosine = None, None
    if mechanism:
        channel = optimal_privunit(epsilon, n_dims)
        log_privunit = tuple(log_privunit_success(channel, cap) for cap in caps)
        mean_cosine = float(channel.scale)
    return ReconstructionRisk(
        epsilon=epsilon,
        n_dims=n_dims,
        target_dims=dims,
        prior_log_ratio=ratio,
        cosine=cosines,
        log_prior=priors,
        log_paper_bound=tuple(log_paper_bound(epsilon + ratio, dims, c) for c in cosines),
        log_product_bound=tuple(min(0.0, epsilon + p) for p in priors),
        log_odds_bound=tuple(log_odds_bound(epsilon, p) for p in priors),
        log_privunit=log_privunit,
        mean_cosine=mean_cosine,
    )

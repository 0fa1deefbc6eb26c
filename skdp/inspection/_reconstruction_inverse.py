# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The budget that a risk of reconstruction allows, and what a budget rules out."""

import math

from skdp._randomisers import cap_cosine, log_cap
from skdp.inspection._public_numbers import (
    check_cosine,
    check_dims,
    check_epsilon,
    check_ratio,
    check_success,
    log_complement,
    log_prior,
)


def epsilon_for_reconstruction(
    success: float, n_dims: int, *, cosine: float, prior_log_ratio: float = 0.0
) -> float:
    """Return the largest epsilon at which no attack succeeds more often.

    Parameters
    ----------
    success : float
        Above 0, at most 1, and at least what a guess without a report has.
    n_dims : int
        Dimension of the direction that the attacker wants, from 2 to 10^7.
    cosine : float
        Guesses count as a success from this cosine on, from 0 to 1.
    prior_log_ratio : float, default=0.0
        The density of the prior is at most e to this power, relative to the uniform law.

    Returns
    -------
    epsilon : float
        In nats; infinity if no budget makes the success larger (`success` 1, or `cosine` 1).

    Raises
    ------
    ValueError
        If a parameter is out of range, or a guess without a report succeeds more often.

    See Also
    --------
    reconstruction_risk : The success at an epsilon.
    cosine_for_reconstruction : What can be ruled out at an epsilon.

    Notes
    -----
    The difference of the log-odds of `success` and of the prior: the bound from odds is
    solved exactly. See :ref:`proof-odds`.

    Examples
    --------
    >>> from skdp.inspection import epsilon_for_reconstruction
    >>> round(epsilon_for_reconstruction(0.01, 784, cosine=0.5), 1)
    111.6
    """
    success, n_dims = check_success(success), check_dims("n_dims", n_dims)
    cosine = check_cosine("cosine", cosine)
    log_p = log_prior(log_cap(cosine, n_dims), check_ratio(prior_log_ratio))
    if success == 1.0 or log_p == -math.inf:
        return math.inf
    epsilon = _log_odds(math.log(success)) - _log_odds(log_p)
    if epsilon < 0.0:
        raise ValueError(
            f"success must be at least {math.exp(log_p):.3g}, what a guess without a report "
            f"has with n_dims={n_dims}, cosine={cosine:g} and prior_log_ratio="
            f"{prior_log_ratio:g}; got {success:g}."
        )
    return epsilon


def cosine_for_reconstruction(
    epsilon: float, n_dims: int, *, success: float = 0.05, prior_log_ratio: float = 0.0
) -> float:
    """Return the smallest cosine that no attack reaches more often.

    Parameters
    ----------
    epsilon : float
        Budget in nats of all that is reported on the person, from 1e-3 to 1e5.
    n_dims : int
        Dimension of the direction that the attacker wants, from 2 to 10^7.
    success : float, default=0.05
        Above 0 and at most 1.
    prior_log_ratio : float, default=0.0
        The density of the prior is at most e to this power, relative to the uniform law.

    Returns
    -------
    cosine : float
        Guesses of a cosine above it succeed with probability `success` at most, whatever
        the channel and the report; 1 if nothing is ruled out, and 0 if even a cosine of 0 is
        rarer.

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names it.

    See Also
    --------
    reconstruction_risk : The success at an epsilon.
    epsilon_for_reconstruction : The largest epsilon for a success.

    Notes
    -----
    About ``sqrt(1 - exp(-2 (epsilon + prior_log_ratio) / n_dims))`` for a success of 0.05,
    within 0.02 from a hundred dimensions and epsilon 8 on. So a budget that protects is a
    small part of the dimension.

    Examples
    --------
    >>> from skdp.inspection import cosine_for_reconstruction
    >>> round(cosine_for_reconstruction(110.0, 784), 3)
    0.494
    """
    epsilon, n_dims = check_epsilon(epsilon), check_dims("n_dims", n_dims)
    success, ratio = check_success(success), check_ratio(prior_log_ratio)
    if success == 1.0:
        return 0.0
    if ratio == math.inf:
        return 1.0
    log_p = _log_sigmoid(_log_odds(math.log(success)) - epsilon) - ratio
    return max(0.0, cap_cosine(log_p, n_dims))


def _log_odds(log_p):
    """Return the log-odds of a probability that is given by its logarithm."""
    return math.inf if log_p == 0.0 else log_p - log_complement(log_p)


def _log_sigmoid(x):
    """Return the logarithm of the probability with the given log-odds."""
    return -math.log1p(math.exp(-x)) if x > 0 else x - math.log1p(math.exp(x))

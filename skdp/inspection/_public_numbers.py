# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Checks of public numbers, and arithmetic with logarithms of probabilities."""

import math
from numbers import Integral, Real

import numpy as np


def check_number(name, number, allowed, holds, kind=Real):
    """Return a public number, or raise a ValueError that says what is allowed."""
    valid = isinstance(number, kind) and not isinstance(number, bool | np.bool_)
    if not valid or not holds(number):
        what = "an integer" if kind is Integral else "a number"
        raise ValueError(f"{name} must be {what} {allowed}; got {number!r}.")
    return int(number) if kind is Integral else float(number)


def check_epsilon(epsilon):
    """Return epsilon as a float, or raise."""
    return check_number("epsilon", epsilon, "from 1e-3 to 1e5", lambda x: 1e-3 <= x <= 1e5)


def check_dims(name, n_dims, most=10**7):
    """Return a number of dimensions as an int, or raise."""
    return check_number(name, n_dims, f"from 2 to {most}", lambda n: 2 <= n <= most, Integral)


def check_ratio(ratio):
    """Return the log-ratio of the prior, or raise."""
    return check_number("prior_log_ratio", ratio, "from 0 to infinity", lambda x: x >= 0)


def check_cosine(name, cosine):
    """Return a cosine, or raise."""
    return check_number(name, cosine, "from 0 to 1", lambda c: 0 <= c <= 1)


def check_success(success):
    """Return a success, or raise."""
    return check_number("success", success, "above 0 and at most 1", lambda p: 0 < p <= 1)


def log_complement(log_p):
    """Return the logarithm of what a probability lacks to 1."""
    if log_p == 0.0:
        return -math.inf
    return math.log(-math.expm1(log_p)) if log_p > -0.7 else math.log1p(-math.exp(log_p))


def log_prior(log_probability, ratio):
    """Return the log of the prior probability, at most 0; with an infinite ratio it is 0."""
    return 0.0 if ratio == math.inf else min(0.0, log_probability + ratio)


def log_odds_bound(epsilon, log_prior):
    """Return the log of the largest posterior probability: odds grow by e^epsilon at most.

    Parameters
    ----------
    epsilon, log_prior : float
        Budget of the channel, and logarithm of the prior probability of an event.

    Returns
    -------
    log_posterior : float
        At most 0.
    """
    if log_prior == -math.inf:
        return -math.inf
    grown = epsilon + log_prior
    return min(0.0, grown - float(np.logaddexp(log_complement(log_prior), grown)))

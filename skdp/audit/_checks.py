# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the numbers that an audit is given."""

import math
from numbers import Integral, Real


def check_real(name, value, allowed, holds):
    """Return a real number as a float.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object
        What was given.
    allowed : str
        What is allowed, in words.
    holds : callable
        Whether a float is allowed.

    Returns
    -------
    value : float

    Raises
    ------
    ValueError
        If it is not allowed, or no number.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan
    except OverflowError:  # integers have no end
        number = math.inf
    if math.isnan(number) or not holds(number):
        raise ValueError(f"{name} must be {allowed}; got {value!r}.")
    return number


def check_confidence(confidence):
    """Return a confidence in (0, 1) as a float, or raise ValueError."""
    return check_real("confidence", confidence, "in (0, 1)", lambda c: 0 < c < 1)


def check_delta(delta):
    """Return a delta in [0, 1) as a float, or raise ValueError."""
    return check_real("delta", delta, "in [0, 1)", lambda d: 0 <= d < 1)


def check_count(name, value, least, most=None):
    """Return an integer as an int.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object
        What was given.
    least : int
        The least that is allowed.
    most : int, default=None
        The most that is allowed, or None.

    Returns
    -------
    value : int

    Raises
    ------
    ValueError
        If it is not allowed, or no integer.
    """
    allowed = f"an integer of {least} at least" + ("" if most is None else f" and {most} at most")
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {allowed}; got {value!r}.")
    return int(value)


def check_seed(random_state):
    """Return None or an int of at least 0, or raise ValueError."""
    return None if random_state is None else check_count("random_state", random_state, 0)

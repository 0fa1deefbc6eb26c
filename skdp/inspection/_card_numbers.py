# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of a card in digits, rounded to the side on which they promise less."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal


def upward(x, digits=6):
    """Return a number in so many digits, never less than it is; None is infinite.

    Parameters
    ----------
    x : float or None
        What is claimed to be an upper bound.
    digits : int, default=6
        How many.

    Returns
    -------
    text : str
        Read as a float, at least `x`.
    """
    return _towards(x, digits, ROUND_CEILING)


def downward(x, digits=6):
    """Return a number in so many digits, never more than it is; None is infinite.

    Parameters
    ----------
    x : float or None
        What is claimed to be a lower bound.
    digits : int, default=6
        How many.

    Returns
    -------
    text : str
        Read as a float, at most `x`.
    """
    return _towards(x, digits, ROUND_FLOOR)


def _towards(x, digits, side):
    if x is None or math.isinf(x):
        return "infinite"
    text = f"{x:.{digits}g}"
    wrong = float(text) < x if side == ROUND_CEILING else float(text) > x
    if not wrong:
        return text
    exact = Decimal(x)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(step, side)):.{digits}g}"

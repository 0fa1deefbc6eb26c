# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Parameters as plain numbers, whatever type they were given in."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from skdp.privacy._accounting import as_float


def is_number(value: Any) -> bool:
    """Return whether this is an int or a float, of Python or numpy, and floats reach that far.

    Booleans, fractions and decimals are none: what they do in formulas nobody has looked at.
    """
    number = as_float(value)
    return not (math.isnan(number) or (isinstance(value, int) and math.isinf(number)))


@contextmanager
def plain_parameters(estimator: Any) -> Iterator[None]:
    """Make Python's numbers of an estimator's parameters in those of numpy, for a while.

    In short floats or integers, what follows from them would be rounded to a few digits, or run
    over: sensitivities and shares of a budget too.
    """
    given = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if isinstance(value, np.floating | np.integer)
    }
    try:
        for name, value in given.items():
            setattr(estimator, name, int(value) if isinstance(value, np.integer) else float(value))
        yield
    finally:
        for name, value in given.items():
            setattr(estimator, name, value)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The penalty of a linear classifier, in the units that its rows are admitted in."""

import numpy as np

#: in units of one row's loss: no data could move a coefficient
LARGEST_PENALTY = 1e100


def penalty_of(C, data_norm):
    """Return the penalty on coefficients of rows in the unit ball, or raise a ValueError."""
    with np.errstate(over="ignore"):
        penalty = float(np.float64(1.0) / C / data_norm / data_norm)
    if not penalty <= LARGEST_PENALTY:
        raise ValueError(
            f"C must be at least {1 / LARGEST_PENALTY:.0e} / data_norm**2: coefficients would be "
            f"zero to the last digit; got C={C!r} with data_norm={data_norm!r}."
        )
    return penalty

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Quantiles by rank, one coordinate after another."""

import math
from fractions import Fraction

import numpy as np

from skdp._queries._quantile_rank import GRID_CELLS, QuantileRank
from skdp.privacy import ExponentialMechanism

# Quantiles are fractions with denominators up to this, so that scores are integers.
_FINEST = 10**6


def check_quantile(quantile):
    """Return the nearest fraction strictly between 0 and 1 with a small denominator."""
    if not 0 < quantile < 1:
        raise ValueError(f"quantile must be greater than 0 and less than 1; got {quantile!r}.")
    tau = Fraction(float(quantile)).limit_denominator(_FINEST)
    return min(max(tau, Fraction(1, _FINEST)), 1 - Fraction(1, _FINEST))


def release_quantiles(curator, tau, lower, upper, epsilon, n_rows):
    """Release one quantile of every coordinate.

    Parameters
    ----------
    curator : Curator
        Holds `RankRows` between the bounds.
    tau : Fraction
        Which quantile.
    lower, upper : ndarray of shape (n_features,)
        Public bounds.
    epsilon : float
        Price of all coordinates together.
    n_rows : int
        Number of rows.

    Returns
    -------
    location : ndarray of shape (n_features,)
        The quantiles.
    error_bound : float
        With probability 0.99 or more, the rank of every one of them is off by at most
        this fraction of the rows.

    Notes
    -----
    Bound. Some position has score 0: the intervals from the rows below to the rows not
    above cover [0, m]. So a score above ``s`` has probability at most ``N exp(-s / temperature)``,
    N the number of positions (McSherry and Talwar 2007). Set that to 0.01 over the number
    of coordinates.
    """
    n_features = len(lower)
    mechanism = ExponentialMechanism(_share(epsilon, n_features))
    drawn = [
        curator.release(QuantileRank(column, tau), mechanism)[0] for column in range(n_features)
    ]
    cell = (upper - lower) / GRID_CELLS
    location = _shortest(lower + (upper - lower) * (np.array(drawn) / GRID_CELLS), cell)
    temperature = curator.ledger.releases[-1].noise.scale
    unlikely = math.log(100 * n_features * (GRID_CELLS + 1))
    worst = float(max(tau, 1 - tau))
    return np.clip(location, lower, upper), min(unlikely * temperature / n_rows, worst)


def _shortest(values, cell):
    """Return, within half a cell of every value, the decimal with the fewest digits.

    Rows in one cell of the grid are tied; the released cell says no more than that. Data
    are decimals more often than fractions of the bounds: so a tie is hit exactly.
    """
    # powers of ten beyond 22 are not floats
    with np.errstate(all="ignore"):
        finest, coarsest = np.clip(np.log10([cell.min(), cell.max() * GRID_CELLS]), -22, 22)
        found = values
        for digits in range(math.ceil(-finest), math.floor(-coarsest) - 1, -1):
            near = np.round(values, digits)
            found = np.where(np.abs(near - values) <= cell / 2, near + 0.0, found)
    return found


def _share(epsilon, n_parts):
    """Return the largest float of which n_parts are no more than epsilon."""
    part = epsilon / n_parts
    return math.nextafter(part, 0.0) if n_parts * Fraction(part) > Fraction(epsilon) else part

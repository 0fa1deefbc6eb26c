# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reports of bounded numbers by rounding to a grid and randomised response, exactly."""

import numpy as np

from skdp._reports._coins import coins, positions_below
from skdp._reports._words import uniforms


def report_scalar(grid, numbers, bits):
    """Return the unbiased report of every number.

    Parameters
    ----------
    grid : ScalarGrid
        Parameters.
    numbers : ndarray of shape (n,)
        Numbers beyond the outermost levels count as these, and NaN as the first.
    bits : Bits
        Source of random words.

    Returns
    -------
    reports : ndarray of shape (n,)
        Entries of ``grid.outputs``.

    Notes
    -----
    Given the level to which a number is rounded, the law of its report is exactly that of the
    parameters.
    """
    k = grid.levels.size - 1
    place = rounded_places(grid.levels, numbers, bits)
    kept = coins(grid.p, len(numbers), bits)
    other = positions_below(k, len(numbers), bits)
    # the level itself is left out of the others
    other += other >= place
    return grid.outputs[np.where(kept, place, other)]


def rounded_places(levels, numbers, bits):
    """Return places of levels around numbers, drawn so that the means are the numbers."""
    numbers = np.clip(np.nan_to_num(numbers, nan=levels[0]), levels[0], levels[-1])
    cell = np.clip(np.searchsorted(levels, numbers, side="right") - 1, 0, levels.size - 2)
    share = (numbers - levels[cell]) / (levels[cell + 1] - levels[cell])
    return cell + (uniforms(bits.words(len(numbers))) < share)

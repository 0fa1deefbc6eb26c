# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scores of candidates on rows that were held out: the mean of one, and the choice of one."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._queries._quantile_rank import rate
from skdp._queries._sums import CHUNKS_PER_BLOCK, SMALLEST_CHUNK, sum_over
from skdp.privacy import Sensitivity
from skdp.privacy._choice import weighted_choice

#: a score is a whole number of steps, of which the range has this many
STEPS = 1 << 20
# numbers in a chunk, about
_ENTRIES = 1 << 18


class HeldOutRows:
    """Scores of held-out rows, in whole steps from the lower bound.

    Parameters
    ----------
    scores : array-like of shape (n_rows, n_candidates)
        Real numbers. What is not finite or out of bounds is moved to the nearest bound, a
        NaN to the lower one.
    low, high : float
        Public bounds.
    """

    n_threads = 1

    def __init__(self, scores, low, high):
        scores = np.array(scores, dtype=np.float64, ndmin=2)
        # whether a number overflows or underflows depends on the row: nobody is to be told
        with np.errstate(all="ignore"):
            scores = np.clip(np.where(np.isnan(scores), low, scores), low, high)
            # halves: the width of the bounds may be infinite
            share = (scores / 2 - low / 2) / (high / 2 - low / 2)
            # bounds so near that they have no middle: every row counts the same
            share = np.clip(np.nan_to_num(share, nan=0.5), 0.0, 1.0)
            self._steps = np.rint(share * STEPS).astype(np.int32)
        self.n_rows, self.n_entries = len(self._steps), self._steps.size

    @property
    def chunks(self):
        """Parts of the table, cut by its shape alone."""
        n_rows, width = self._steps.shape
        length = max(SMALLEST_CHUNK, _ENTRIES // (CHUNKS_PER_BLOCK * width))
        return [self._steps[start : start + length] for start in range(0, n_rows, length)]

    def totals(self):
        """Return the steps of every candidate beyond the middle of the bounds, all rows added.

        Integers below 2^52 for up to 2^31 rows: sums of floats are exact.
        """
        width = self._steps.shape[1]
        return sum_over(self, lambda part: (part - STEPS / 2).sum(axis=0), width)


def _change(adjacency):
    """Return by how many ranges a row changes a total, and why."""
    if adjacency == "zero-out":
        return 0.5, "a row counts within half a range of 0, a null row counts as 0"
    return 1.0, "a row moves a total by one range at most"


@dataclass(frozen=True)
class HeldOutScore:
    """Mean score of one candidate over held-out rows, as a share of its range.

    Parameters
    ----------
    column : int, default=0
        Which candidate; public.

    Notes
    -----
    Every row counts as its score in units of the range, minus 1/2; a null row counts as 0.
    """

    column: int = 0

    #: nothing here is a float that rounds
    idealised = False
    name = "mean score on held-out rows"
    size = 1

    def sensitivity(self, adjacency, n_rows):
        """State 1 / n, or half of it under zero-out.

        Proof. A row counts as a number in [-1/2, 1/2], over n. Another value moves that by
        1 / n at most; a null row counts as 0.
        """
        ranges, theorem = _change(adjacency)
        moved = ranges / n_rows
        return Sensitivity(l1=moved, l2=moved, bound=0.5, theorem=theorem)

    def evaluate(self, rows):
        """Return the mean."""
        totals = rows.totals()
        return np.array([totals[self.column] / (STEPS * rows.n_rows)])


@dataclass(frozen=True)
class HeldOutChoice:
    """Index of a candidate, drawn with probability exp(total score / temperature).

    Parameters
    ----------
    n_candidates : int
        How many there are.

    Notes
    -----
    Totals are whole numbers of steps, and the draw has exact probabilities.
    """

    n_candidates: int

    idealised = False
    size = 1

    @property
    def name(self):
        """What the statistic is."""
        return f"choice among {self.n_candidates} candidates by scores on held-out rows"

    def sensitivity(self, adjacency, n_rows):
        """State the spread, in steps: twice the range, or the range under zero-out.

        Proof. The change of a candidate's total lies in [-R, R], R being the range of one
        score if a row takes another value, and half of it if the row becomes null. The
        largest change and the smallest one are at most 2 R apart.
        """
        ranges, theorem = _change(adjacency)
        bound = float(max(1, self.n_candidates))
        return Sensitivity(math.inf, math.inf, bound, theorem, spread=2 * ranges * STEPS)

    def draw(self, rows, noise, source):
        """Return the index at the temperature ``noise.scale``."""
        totals = rows.totals().astype(np.int64)
        steps = totals.max() - totals
        index = weighted_choice(np.ones(len(steps)), steps, rate(1, noise.scale), source)
        return np.array([float(index)])

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Gradients without the bias of small batches: a sum over levels that telescopes.

An oracle cleans the noisy mean gradient of a batch; it is not linear, and the smaller the
batch, the larger its bias. Level k compares a batch with its two halves, which on average is
the difference between two sizes of batches. One level is drawn a step, and what it finds is
divided by the probability of the level: all levels together add up to the oracle on all rows
(Blanchet and Glynn 2015; Ghazi, Guzman, Kamath, Kumar and Manurangsi 2024, Algorithm 3).
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp._solvers.suffix_average import SuffixAverage
from skdp.privacy._bits import SeededBits

# neighbours in the order of levels are spread over the steps
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Telescope:
    """Sizes of batches, from small ones to all rows, each twice the one before.

    Parameters
    ----------
    n_rows, n_levels : int
        Number of rows, and of doublings; 0 reads all rows always.
    """

    n_rows: int
    n_levels: int

    def rate(self, size):
        """Return the share of the rows that batches of a size have: 1 for size `n_levels`."""
        return math.ldexp(1.0, size - self.n_levels)

    def batch_size(self, size):
        """Return the expected number of rows of a batch of a size."""
        return self.n_rows * self.rate(size)

    @property
    def probabilities(self):
        """Probability of every level: each half as likely as the one before."""
        weights = np.ldexp(1.0, -np.arange(self.n_levels))
        return weights / weights.sum() if self.n_levels else weights

    def estimate(self, level, smallest, triple, oracle):
        """Return one step's estimate of the gradient of the mean loss.

        Parameters
        ----------
        level : int
            A level, in [0, n_levels); not looked at if there is none.
        smallest : ndarray
            Released sum over a batch of size 0.
        triple : sequence of three ndarray or None
            Released sums over a batch of size ``level + 1``, and over its two halves.
        oracle : callable
            Maps a noisy mean, and the size of the batch, to a clean one.

        Returns
        -------
        estimate : ndarray
            On average over batches, coins and levels the oracle on all rows.

        Notes
        -----
        Sums are divided by the expected numbers of rows: the realised ones are private.
        """
        total = oracle(smallest / self.batch_size(0), 0)
        if not self.n_levels:
            return total
        whole, *halves = triple
        gain = oracle(whole / self.batch_size(level + 1), level + 1)
        for half in halves:
            gain = gain - 0.5 * oracle(half / self.batch_size(level), level)
        return total + gain / self.probabilities[level]

    def levels(self, n_steps, run=0):
        """Draw the levels of all steps of a run, before anything is known of the rows.

        Parameters
        ----------
        n_steps, run : int
            Number of steps, and which of several runs it is.

        Returns
        -------
        levels : tuple of int
            Each has the law of `probabilities` over the public start of the sequence, which
            is drawn once and for all; each level occurs as often as expected, rounded up or
            down (systematic sampling).

        Notes
        -----
        Levels depend on nothing but the arguments: given them, a fit is an ordinary sequence
        of releases. They are never drawn again until they please: that would be a bias.
        """
        if not self.n_levels:
            return (0,) * n_steps
        word = int(SeededBits(run, "levels of a telescope").words(1)[0])
        start = (word + 0.5) * 2.0**-64
        stride = max(1, round(n_steps * _GOLDEN))
        while math.gcd(stride, n_steps) > 1:
            stride += 1
        places = (start + np.arange(n_steps) * stride % n_steps / n_steps) % 1.0
        found = np.searchsorted(np.cumsum(self.probabilities), places, side="right")
        return tuple(int(level) for level in np.minimum(found, self.n_levels - 1))


def telescoped_descent(gradient, shape, plan):
    """Descend along bias-reduced gradients, in the ball.

    Parameters
    ----------
    gradient : callable
        Maps coefficients of the given shape and the number of a step to an estimate of the
        gradient of the mean loss.
    shape : tuple of int
        Shape of the coefficients.
    plan : TelescopePlan
        Steps, step size, penalty, constraint.

    Returns
    -------
    coef : ndarray of shape `shape`
        Average of the iterates but the first.
    """
    coef = np.zeros(shape)
    average = SuffixAverage(shape, plan.n_steps)
    for step in range(plan.n_steps):
        coef = plan.step(coef, gradient(coef, step), plan.step_size)
        average.add(coef)
    return average.value

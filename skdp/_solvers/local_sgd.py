# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""One pass of stochastic gradient steps along local reports of gradients.

Every row reports once, in its batch, so every row pays for one report however many steps there
are. The plan is made from public quantities before any data are read.

Step size. Let G^2 bound the mean square of a step direction and D the distance to the
minimiser. T steps of length ``D / (G sqrt(T))`` bring the expected excess of the averaged
iterate to at most ``D G / sqrt(T)`` (Robbins-Siegmund, as in Bhowmick et al. 2018, Section 3.2).
A batch of n / T reports with errors of mean square e has ``G^2 = r^2 (1 + e) T / n``, r being
the longest gradient, so that ``length * T = D sqrt(n) / (r sqrt(1 + e))`` for every T: all
numbers of steps are equally good in the presence of noise, as long as a step is no longer than
one over the smoothness L. The plan takes about as many steps as that asks for.

Decaying steps ``step_size * k**-decay`` with 1/2 < decay < 1 are those of Polyak and Juditsky
(1992), for which the average is asymptotically normal.
"""

import math
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from skdp._solvers.disjoint import even_parts

#: the minimiser is expected within this radius; rows are in the unit ball
EXPECTED_RADIUS = 10.0
#: for decaying steps: their first ones may be long, and the start must be forgotten
DECAYING_RADIUS = 30.0
#: fewest batches, and the largest product of step and smoothness, of a plan made here
_LEAST_STEPS, _LONGEST_STEP = 20, 4.0


@dataclass(frozen=True)
class LocalSgdPlan:
    """What the solver will do: fixed before the data are touched.

    Parameters
    ----------
    batches : tuple of (int, int)
        First row of every batch, and the one after the last.
    step_size : float
        Length of steps, of the first one if they decay.
    decay : float or None
        Steps have length ``step_size * k**-decay``; None for equal steps.
    penalty : float
        Strength of ``penalty/2 |coef|^2`` next to the MEAN of losses.
    average : bool
        Whether the result is the average of all iterates, or the last one.
    """

    batches: tuple
    step_size: float
    decay: float | None
    penalty: float
    average: bool

    @property
    def n_steps(self):
        """Number of batches."""
        return len(self.batches)

    def lengths(self):
        """Return the lengths of the steps."""
        if self.decay is None:
            return repeat(self.step_size, self.n_steps)
        return (self.step_size * k**-self.decay for k in range(1, self.n_steps + 1))


def plan_local_sgd(
    *,
    n_rows,
    longest,
    error,
    smoothness,
    batch_size=None,
    step_size=None,
    decay=None,
    penalty=0.0,
    average=True,
):
    """Choose batches and steps from public quantities.

    Parameters
    ----------
    n_rows : int
        Rows that report gradients.
    longest : float
        Bound on the norm of a row's gradient.
    error : float
        Mean squared error of a report, in units of ``longest**2``.
    smoothness : float
        Bound on the largest eigenvalue of the Hessian of the mean loss.
    batch_size, step_size, decay : int, float, float, default=None
        Given by the user, or None to be chosen here; a decay of None makes equal steps.
    penalty, average : float, bool
        As for `LocalSgdPlan`.

    Returns
    -------
    plan : LocalSgdPlan
        Every row is in one batch. A last batch is not made smaller: sizes are nearly equal.
    """
    # the sum of all steps, whatever their number
    radius = EXPECTED_RADIUS if decay is None else DECAYING_RADIUS
    travelled = radius * math.sqrt(n_rows) / (longest * math.sqrt(1.0 + error))
    if batch_size is None:
        n_steps = max(_LEAST_STEPS, math.ceil(travelled * smoothness))
    else:
        n_steps = math.ceil(n_rows / batch_size)
    n_steps = min(n_steps, n_rows)
    if step_size is None:
        units = n_steps if decay is None else n_steps ** (1.0 - decay) / (1.0 - decay)
        step_size = min(travelled / units, _LONGEST_STEP / smoothness)
    batches = even_parts(0, n_rows, n_steps)
    return LocalSgdPlan(batches, float(step_size), decay, penalty, average)


def local_sgd(gradient, shape, plan):
    """Descend along means of reports, every row's being used once.

    Parameters
    ----------
    gradient : callable
        Maps coefficients of the given shape and a batch (start, stop) to the mean of the
        reported gradients of its rows, an array of the same shape, without the penalty.
    shape : tuple of int
        Shape of the coefficients.
    plan : LocalSgdPlan
        Batches and steps.

    Returns
    -------
    coef : ndarray of shape `shape`
        Average of the iterates after every step, or the last one.

    Notes
    -----
    The penalty is public, and its part of a step is taken at the new point: that is stable
    whatever its strength, and the same to first order in the length of the step.
    """
    coef, total = np.zeros(shape), np.zeros(shape)
    for batch, length in zip(plan.batches, plan.lengths(), strict=True):
        coef = (coef - length * gradient(coef, batch)) / (1.0 + length * plan.penalty)
        total += coef
    return total / plan.n_steps if plan.average else coef

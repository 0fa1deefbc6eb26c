# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noisy projected gradient descent, its later iterates averaged."""

import numpy as np

from skdp._solvers.step_size import StepSize


def gradient_descent(gradient, shape, plan):
    """Descend along released gradients.

    Parameters
    ----------
    gradient : callable
        Maps coefficients of the given shape to a released gradient of the mean loss.
    shape : tuple of int
        Shape of the coefficients.
    plan : GradientPlan
        Steps, step size, penalty, constraint.

    Returns
    -------
    coef : ndarray of shape `shape`
        Average of the iterates but the first: the later ones are nearer to the optimum,
        and averaging them averages the noise.

    Notes
    -----
    Bassily, Smith and Thakurta (2014), Algorithm 1, on full batches; any function of
    the released gradients is as private as they are.
    """
    coef = np.zeros(shape)
    average = SuffixAverage(shape, plan.n_steps)
    step_size = StepSize(plan)
    for _ in range(plan.n_steps):
        released = gradient(coef)
        coef = plan.step(coef, released, step_size.at(coef, released))
        average.add(coef)
    return average.value


class SuffixAverage:
    """Average of the iterates after the first third: eight at least, half at most."""

    def __init__(self, shape, n_steps):
        self._skip = min(n_steps // 2, max(8, n_steps // 3))
        self._count, self._sum = 0, np.zeros(shape)

    def add(self, coef):
        """Take the next iterate into account."""
        if self._skip > 0:
            self._skip -= 1
        else:
            self._sum += coef
            self._count += 1

    @property
    def value(self):
        """The average so far."""
        return self._sum / self._count

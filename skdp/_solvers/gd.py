# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noisy projected gradient descent, its later iterates averaged."""

import numpy as np

from skdp._solvers.step_size import StepSize
from skdp._solvers.suffix_average import SuffixAverage


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

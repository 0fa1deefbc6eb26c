# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noisy accelerated gradient descent, its later iterates averaged."""

import numpy as np

from skdp._solvers.step_size import StepSize
from skdp._solvers.suffix_average import SuffixAverage


def accelerated_gradient(gradient, shape, plan):
    """Descend along released gradients with Nesterov's extrapolation.

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
        Average of the iterates but the first.

    Notes
    -----
    Step t goes from ``w_t + t/(t+3) (w_t - w_{t-1})`` along the released gradient
    there (Nesterov 1983, in the form of Beck and Teboulle 2009 with the constant of
    Chambolle and Dossal 2015). Under noise, few long steps that build up speed
    reach directions of small curvature which as many plain steps do not.
    """
    previous = coef = np.zeros(shape)
    average = SuffixAverage(shape, plan.n_steps)
    step_size = StepSize(plan)
    for t in range(plan.n_steps):
        ahead = coef + (t / (t + 3)) * (coef - previous)
        released = gradient(ahead)
        previous, coef = coef, plan.step(ahead, released, step_size.at(ahead, released))
        average.add(coef)
    return average.value

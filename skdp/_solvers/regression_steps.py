# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Steps for losses of regression, in units in which rows and targets are of about length 1.

What noise does to the prediction of a row, after all steps, is what has to be bounded: the
second derivative of a square never falls, and nothing else holds the coefficients. The
constants were chosen on data; nothing in them bears on privacy.
"""

import math
from dataclasses import replace

# fewer steps do not get far enough along directions of small curvature
_FEWEST = 32
# deviation of a prediction, in units of the target, that the noise of all steps may cause, times
# a constant of accelerated steps; and that where nothing but the number of steps limits it: the
# curvature of a fourth power vanishes where it is fitted
_NOISE, _FLAT_NOISE = 1.2, 4.0
_LONGEST = 32.0


def regression_steps(plan, *, along, n_steps=None, flat=False):
    """Return the plan of a gradient method with steps that noise does not carry away.

    Parameters
    ----------
    plan : GradientPlan
        As for a classifier, of step sizes that released gradients may shorten.
    along : float
        Signal-to-noise ratio along one direction: rows times mu over moved rows.
    n_steps : int, default=None
        Number of steps that was asked for.
    flat : bool, default=False
        Whether the loss has no curvature at its minimum.

    Returns
    -------
    plan : GradientPlan
        The same price, another number of steps and another length.
    """
    steps = n_steps or max(plan.n_steps, _FEWEST)
    noise = plan.clip * math.sqrt(steps) / along
    return calm_steps(replace(plan, n_steps=steps, noise=noise), flat)


def calm_steps(plan, flat=False):
    """Return a plan with its number of steps, of lengths as in `regression_steps`."""
    noise = _FLAT_NOISE / math.sqrt(plan.n_steps) if flat else _NOISE
    return replace(plan, step_size=min(noise / (plan.noise * plan.n_steps), _LONGEST))

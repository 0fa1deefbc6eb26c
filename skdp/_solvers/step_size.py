# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A step size that released gradients may shorten."""

import math

import numpy as np


class StepSize:
    """The planned step size, cut to 1/curvature where the released gradients show any.

    Between two points at distance s the gradient of a convex loss changes by at most
    curvature times s. Gradients are released with noise of known size; a curvature is
    believed as far as it exceeds two standard deviations of that noise. Few rows and
    small budgets hide it, and the planned step stays; many rows show it, and then a
    step beyond its inverse would make the iterates oscillate. All this is arithmetic
    on released numbers, and so it costs nothing.

    Parameters
    ----------
    plan : GradientPlan
        Planned step size, noise of a released gradient, and whether to adapt.
    """

    def __init__(self, plan):
        self._length = plan.step_size
        self._doubt = 2 * math.sqrt(2) * plan.noise
        self._adaptive = plan.adaptive
        self._point = self._gradient = None

    def at(self, point, gradient):
        """Return the step size at a point with a released gradient."""
        if self._adaptive and self._point is not None:
            moved = np.linalg.norm(point - self._point)
            change = np.vdot(point - self._point, gradient - self._gradient)
            sure = change - self._doubt * moved
            if sure > 0:
                self._length = min(self._length, moved**2 / sure)
        self._point, self._gradient = point, gradient
        return self._length

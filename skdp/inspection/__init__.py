# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tools that look at algorithms and claims, and at no data."""

from skdp._sampling import GridWalkSteps, grid_walk_steps

__all__ = ["GridWalkSteps", "grid_walk_steps"]

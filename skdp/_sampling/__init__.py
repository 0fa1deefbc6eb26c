# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exact samplers for densities proportional to exp(-c f).

The exponential mechanism draws a parameter with this density, f being the loss of the
data. Its proof of pure differential privacy is about the exact law, so nothing here is
a Markov chain: every sampler inverts, projects or rejects, and in ideal arithmetic its
output has the target law whatever the data. Floats only come close to that.

The functions are pure numerics. They know neither data nor budgets, take functions or
arrays, and draw from a `Variates` object. How long a rejection sampler takes depends
on the data.
"""

from skdp._sampling._ball import (
    sample_linear_on_ball,
    sample_quadratic_on_ball,
    uniform_on_ball,
)
from skdp._sampling._grid_walk import GridWalkSteps, grid_walk_steps
from skdp._sampling._net import ball_candidates, ball_grid, choose_by_loss
from skdp._sampling._piecewise import sample_piecewise_exponential, truncated_exponential
from skdp._sampling._sparse_net import sparse_net, sparse_net_step
from skdp._sampling._tangent_box import sample_tangent_box

__all__ = [
    "GridWalkSteps",
    "ball_candidates",
    "ball_grid",
    "choose_by_loss",
    "grid_walk_steps",
    "sample_linear_on_ball",
    "sample_piecewise_exponential",
    "sample_quadratic_on_ball",
    "sample_tangent_box",
    "sparse_net",
    "sparse_net_step",
    "truncated_exponential",
    "uniform_on_ball",
]

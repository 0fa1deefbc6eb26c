# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Algorithms of papers that are not the best in any benchmark.

The parameter `solver` of a linear model takes an object of these solver classes; no default
chooses one. :ref:`solvers` has the figures.
"""

from skdp.papers.accelerated_one_pass import AcceleratedOnePass
from skdp.papers.bias_reduced import BiasReduced
from skdp.papers.exponential import FiniteNet, GridWalkSteps, grid_walk_steps
from skdp.papers.feature_preprocessing import FeaturePreprocessing
from skdp.papers.localized import Localized
from skdp.papers.one_pass import OnePass

__all__ = [
    "AcceleratedOnePass",
    "BiasReduced",
    "FeaturePreprocessing",
    "FiniteNet",
    "GridWalkSteps",
    "Localized",
    "OnePass",
    "grid_walk_steps",
]

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Estimators in the local model: every row makes its own report."""

from skdp.local._ball_randomiser import BallRandomiser
from skdp.local._clients import Aggregator, LocalClient
from skdp.local._covariance import LocalDPCovariance, LocalDPPCA
from skdp.local._frequencies import LocalDPFrequencies
from skdp.local._linear_regression import LocalDPLinearRegression
from skdp.local._logistic import LocalDPLogisticRegression
from skdp.local._mean import LocalDPMean
from skdp.local._privatizers import PrivUnitPrivatizer, ScalarPrivatizer
from skdp.local.randomisers.ball import best_ball_randomiser, best_product
from skdp.local.randomisers.cube import optimal_privunit_cube
from skdp.local.randomisers.grid import relative_levels, scalar_grid, uniform_levels
from skdp.local.randomisers.privunit import (
    optimal_privunit,
    optimal_privunit_gaussian,
    paper_privunit,
)
from skdp.local.randomisers.projunit import projunit, smallest_projunit
from skdp.privacy.laws.local_reports import shuffled_epsilon

__all__ = [
    "Aggregator",
    "BallRandomiser",
    "LocalClient",
    "LocalDPCovariance",
    "LocalDPFrequencies",
    "LocalDPLinearRegression",
    "LocalDPLogisticRegression",
    "LocalDPMean",
    "LocalDPPCA",
    "PrivUnitPrivatizer",
    "ScalarPrivatizer",
    "best_ball_randomiser",
    "best_product",
    "optimal_privunit",
    "optimal_privunit_cube",
    "optimal_privunit_gaussian",
    "paper_privunit",
    "projunit",
    "relative_levels",
    "scalar_grid",
    "shuffled_epsilon",
    "smallest_projunit",
    "uniform_levels",
]

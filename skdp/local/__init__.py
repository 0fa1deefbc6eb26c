# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Estimators of the local model: every row reports on its own."""

from skdp._randomisers import (
    best_ball_randomiser,
    best_product,
    optimal_privunit,
    optimal_privunit_cube,
    optimal_privunit_gaussian,
    paper_privunit,
    projunit,
    relative_levels,
    scalar_grid,
    smallest_projunit,
    uniform_levels,
)
from skdp.local._covariance import LocalDPCovariance
from skdp.local._linear_regression import LocalDPLinearRegression
from skdp.local._logistic import LocalDPLogisticRegression
from skdp.local._mean import LocalDPMean
from skdp.local._pca import LocalDPPCA
from skdp.local._privatizer import PrivUnitPrivatizer
from skdp.local._scalar_privatizer import ScalarPrivatizer
from skdp.privacy._shuffling import shuffled_epsilon

__all__ = [
    "LocalDPCovariance",
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

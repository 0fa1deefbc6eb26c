# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Algorithms, as functions of released numbers and public constants only.

A solver is handed a function that releases a noisy gradient; it never sees the
private rows, so whatever it does is post-processing.
"""

from skdp._solvers.accelerated import accelerated_gradient
from skdp._solvers.boosting import BoostingPlan, boost, plan_boosting
from skdp._solvers.budget import mu_beside
from skdp._solvers.gd import gradient_descent
from skdp._solvers.gradient_plan import DEFAULT_INTERCEPT, GradientPlan, plan_gradient
from skdp._solvers.mean import plan_mean
from skdp._solvers.sgd import SgdPlan, plan_sgd, stochastic_gradient
from skdp._solvers.subgradient import SubgradientPlan, plan_subgradient, subgradient_descent
from skdp._solvers.threshold import ThresholdPlan, plan_threshold

GRADIENT_SOLVERS = {"accelerated": accelerated_gradient, "gd": gradient_descent}

__all__ = [
    "DEFAULT_INTERCEPT",
    "GRADIENT_SOLVERS",
    "BoostingPlan",
    "GradientPlan",
    "SgdPlan",
    "SubgradientPlan",
    "ThresholdPlan",
    "boost",
    "plan_boosting",
    "mu_beside",
    "plan_gradient",
    "plan_mean",
    "plan_sgd",
    "plan_subgradient",
    "plan_threshold",
    "stochastic_gradient",
    "subgradient_descent",
]

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Algorithms, as functions of released numbers and public constants only.

A solver is handed a function that releases a noisy gradient; it never sees the
private rows, so whatever it does is post-processing.
"""

from skdp._solvers.accelerated import accelerated_gradient
from skdp._solvers.boosting import BoostingPlan, boost, plan_boosting
from skdp._solvers.budget import mu_beside
from skdp._solvers.frank_wolfe import FrankWolfePlan, frank_wolfe, plan_frank_wolfe
from skdp._solvers.gd import gradient_descent
from skdp._solvers.gradient_oracle import make_oracle
from skdp._solvers.gradient_plan import DEFAULT_INTERCEPT, GradientPlan, plan_gradient
from skdp._solvers.lazy_sgd import LazyPlan, plan_lazy_sgd
from skdp._solvers.mean import plan_mean
from skdp._solvers.sgd import SgdPlan, plan_sgd, stochastic_gradient
from skdp._solvers.subgradient import SubgradientPlan, plan_subgradient, subgradient_descent
from skdp._solvers.telescope import Telescope, telescoped_descent
from skdp._solvers.telescope_plan import TelescopePlan, plan_telescope
from skdp._solvers.threshold import ThresholdPlan, plan_threshold

GRADIENT_SOLVERS = {"accelerated": accelerated_gradient, "gd": gradient_descent}

__all__ = [
    "DEFAULT_INTERCEPT",
    "GRADIENT_SOLVERS",
    "BoostingPlan",
    "FrankWolfePlan",
    "GradientPlan",
    "LazyPlan",
    "SgdPlan",
    "SubgradientPlan",
    "Telescope",
    "TelescopePlan",
    "ThresholdPlan",
    "boost",
    "frank_wolfe",
    "make_oracle",
    "plan_boosting",
    "mu_beside",
    "plan_frank_wolfe",
    "plan_gradient",
    "plan_lazy_sgd",
    "plan_mean",
    "plan_sgd",
    "plan_subgradient",
    "plan_telescope",
    "plan_threshold",
    "stochastic_gradient",
    "subgradient_descent",
    "telescoped_descent",
]

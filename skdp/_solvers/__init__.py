# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Algorithms, as functions of released numbers and public constants only.

A solver is handed a function that releases a noisy gradient; it never sees the
private rows, so whatever it does is post-processing.
"""

from skdp._solvers.accelerated import accelerated_gradient
from skdp._solvers.boosting import BoostingPlan, boost, plan_boosting
from skdp._solvers.budget import mu_beside, mu_of_all
from skdp._solvers.disjoint import (
    even_parts,
    least_median_distance,
    public_order,
    restarts,
    splits,
)
from skdp._solvers.federated import Rounds, federated_descent
from skdp._solvers.federated_plan import FederatedBudget, FederatedPlan, plan_federated
from skdp._solvers.frank_wolfe import FrankWolfePlan, frank_wolfe, plan_frank_wolfe
from skdp._solvers.gd import gradient_descent
from skdp._solvers.gradient_oracle import make_oracle
from skdp._solvers.gradient_plan import DEFAULT_INTERCEPT, GradientPlan, plan_gradient
from skdp._solvers.lazy_sgd import LazyPlan, plan_lazy_sgd
from skdp._solvers.local_sgd import LocalSgdPlan, local_sgd, plan_local_sgd
from skdp._solvers.localized_plan import Phase, moment_clip, plan_phases
from skdp._solvers.mean import plan_mean
from skdp._solvers.regression_scales import plan_clip, plan_scales
from skdp._solvers.regression_steps import calm_steps, regression_steps
from skdp._solvers.sgd import SgdPlan, plan_sgd, stochastic_gradient
from skdp._solvers.stochastic_approximation import (
    ApproximationPlan,
    plan_approximation,
    stochastic_approximation,
)
from skdp._solvers.subgradient import SubgradientPlan, plan_subgradient, subgradient_descent
from skdp._solvers.telescope import Telescope, telescoped_descent
from skdp._solvers.telescope_plan import TelescopePlan, plan_telescope
from skdp._solvers.threshold import ThresholdPlan, plan_threshold

GRADIENT_SOLVERS = {"accelerated": accelerated_gradient, "gd": gradient_descent}

__all__ = [
    "DEFAULT_INTERCEPT",
    "GRADIENT_SOLVERS",
    "ApproximationPlan",
    "BoostingPlan",
    "FederatedBudget",
    "FederatedPlan",
    "FrankWolfePlan",
    "GradientPlan",
    "LazyPlan",
    "LocalSgdPlan",
    "Phase",
    "Rounds",
    "SgdPlan",
    "SubgradientPlan",
    "Telescope",
    "TelescopePlan",
    "ThresholdPlan",
    "boost",
    "calm_steps",
    "federated_descent",
    "frank_wolfe",
    "even_parts",
    "least_median_distance",
    "local_sgd",
    "make_oracle",
    "plan_approximation",
    "plan_boosting",
    "moment_clip",
    "mu_beside",
    "mu_of_all",
    "plan_clip",
    "plan_federated",
    "plan_frank_wolfe",
    "plan_gradient",
    "plan_lazy_sgd",
    "plan_local_sgd",
    "plan_mean",
    "plan_scales",
    "plan_phases",
    "plan_sgd",
    "plan_subgradient",
    "plan_telescope",
    "plan_threshold",
    "public_order",
    "restarts",
    "splits",
    "stochastic_approximation",
    "regression_steps",
    "stochastic_gradient",
    "subgradient_descent",
    "telescoped_descent",
]

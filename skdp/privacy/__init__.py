# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Three rings of code behind every privacy claim; each imports only inwards.

``kernel/`` must be correct for any claim to hold, and imports numpy and scipy only. Read `curator`
(the only exit for private numbers) and `charging` (its part without access to rows), `mechanisms`
(queries, laws, and addition of noise), `ledger` (releases, their total and a second price),
`accounting` (privacy arithmetic), then `batches` and `samplers` (draws of batches and noise, from
the only source of random bits).

``laws/`` has one file per kind of randomisation, with its proof: `additive`, `k_norm`,
`shared_noise`, `exponential`, `histogram`, `objective`, `late_noise`, `local_reports`;
`loss_distributions` composes releases without a closed form; `calibration`, `selection` and
`search` plan.

``books/`` is for readers: `ledger` and `texts` (a record in words and tables), `budget` and
`store` (shared budgets), `spent` (totals of estimators), `functions` (functions of users).

Queries and their sensitivities are beside their algorithms.
"""

from skdp.privacy.books.budget import PrivacyBudget
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.books.spent import NotCovered, PrivacySpent, privacy_spent
from skdp.privacy.books.store import BudgetStore, Charge
from skdp.privacy.kernel import ledger
from skdp.privacy.kernel.accounting import gdp_delta, gdp_epsilon
from skdp.privacy.kernel.batches import Sampling
from skdp.privacy.kernel.curator import Curator
from skdp.privacy.kernel.ledger import Record, Release
from skdp.privacy.kernel.mechanisms import Law, Noise, Price, Sensitivity
from skdp.privacy.laws import loss_distributions
from skdp.privacy.laws.additive import (
    GaussianMechanism,
    LaplaceMechanism,
    SampledGaussianMechanism,
)
from skdp.privacy.laws.calibration import gdp_mu, sampled_mu
from skdp.privacy.laws.exponential import ExponentialMechanism
from skdp.privacy.laws.histogram import SparseSensitivity, StabilityHistogram
from skdp.privacy.laws.k_norm import KNormMechanism
from skdp.privacy.laws.late_noise import LateNoise
from skdp.privacy.laws.local_reports import LocalMechanism, ReportedSum, SumOfReports
from skdp.privacy.laws.objective import Influence, ObjectivePerturbation
from skdp.privacy.laws.search import Search, Winner
from skdp.privacy.laws.selection import SecretSubset, SelectionPlan, plan_selection

__all__ = [
    "BudgetStore",
    "Charge",
    "Curator",
    "ExponentialMechanism",
    "GaussianMechanism",
    "Influence",
    "KNormMechanism",
    "LaplaceMechanism",
    "LateNoise",
    "Law",
    "Ledger",
    "LocalMechanism",
    "Noise",
    "NotCovered",
    "ObjectivePerturbation",
    "Price",
    "PrivacyBudget",
    "PrivacySpent",
    "Record",
    "Release",
    "ReportedSum",
    "SampledGaussianMechanism",
    "Sampling",
    "Search",
    "SecretSubset",
    "SelectionPlan",
    "Sensitivity",
    "SparseSensitivity",
    "StabilityHistogram",
    "SumOfReports",
    "Winner",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "plan_selection",
    "privacy_spent",
    "sampled_mu",
]

# the kernel knows no loss distributions: here it is told where they are
ledger.numerical_epsilon = loss_distributions.numerical_epsilon

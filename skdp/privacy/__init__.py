# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Three rings that a privacy promise rests on; each imports only inwards.

``kernel/`` is what must be right for any promise to hold, and imports numpy and scipy only. Read
`curator` (the only exit for private numbers) and `charging` (its side that never sees a row),
`mechanisms` (what queries state, what laws promise, how noise is added), `ledger` (what is added
up, and priced once more), `accounting` (what it costs), then `batches` and `samplers` (how batches
and noise are drawn, of random bits that nothing else makes).

``laws/`` has a file for every way to randomise a release, with its proof: `additive`, `k_norm`,
`shared_noise`, `exponential`, `histogram`, `objective`, `late_noise`, `local_reports`;
`loss_distributions` composes what has no closed form; `calibration`, `selection` and `search` plan.

``books/`` is for readers: `ledger` and `texts` (a record in words and tables), `budget` and
`store` (what several fits share), `spent` (totals of estimators), `functions` (those of users).

The queries whose sensitivities are claimed stand with their algorithms.
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

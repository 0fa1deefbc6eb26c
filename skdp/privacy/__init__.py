# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The audit folder: everything a privacy claim rests on, and nothing else.

Read in this order: `_curator` (the only exit for private numbers), `_charging` (its side that
never sees a row), `_terms`, `_mechanisms`, `_pure_mechanisms`, `_objective`, `_stability` and
`_local` (how much noise), `_samplers`, `_k_norm`, `_choice`, `_variates` and `_bits` (how it is
made), `_sampling`, `_subsets` and `_sampled_gaussian` (random batches), `_lazy_noise` (noise that
is added late), `_accounting`, `_zcdp`, `_composition`, `_release` and `_ledger` (what it costs),
`_prepaid`, `_shuffling` (what a shuffler adds), `_ledger_text`, `_spent`, `_steps`,
`_learns_nothing` and `_search_price` (the same in words, and added up), `_budget`,
`_budget_rules`, `_budget_store` and `_budget_text` (what several fits share), `_search` (the gate
of a search), `_repetitions`, `_winner`, `_shares` and `_selection` (what that costs). The queries
whose sensitivities are claimed stand in ``skdp/_queries``.
"""

from skdp.privacy.books.budget import PrivacyBudget
from skdp.privacy.books.spent import NotCovered, PrivacySpent, privacy_spent
from skdp.privacy.books.store import Charge
from skdp.privacy.kernel.accounting import gdp_delta, gdp_epsilon, gdp_mu
from skdp.privacy.kernel.batches import Sampling
from skdp.privacy.kernel.curator import Curator
from skdp.privacy.kernel.ledger import Ledger, Release, Winner
from skdp.privacy.kernel.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    KNormMechanism,
    LaplaceMechanism,
    Noise,
    Sensitivity,
)
from skdp.privacy.laws.batches import SampledGaussianMechanism, sampled_mu
from skdp.privacy.laws.histogram import SparseSensitivity, StabilityHistogram
from skdp.privacy.laws.local_reports import LocalMechanism
from skdp.privacy.laws.objective import Influence, ObjectivePerturbation
from skdp.privacy.laws.search import Search
from skdp.privacy.laws.selection import Repetitions, SelectionPlan, plan_selection

__all__ = [
    "Charge",
    "Curator",
    "ExponentialMechanism",
    "GaussianMechanism",
    "Influence",
    "KNormMechanism",
    "LaplaceMechanism",
    "Ledger",
    "LocalMechanism",
    "Noise",
    "NotCovered",
    "ObjectivePerturbation",
    "PrivacyBudget",
    "PrivacySpent",
    "Release",
    "Repetitions",
    "SampledGaussianMechanism",
    "Sampling",
    "Search",
    "SelectionPlan",
    "Sensitivity",
    "SparseSensitivity",
    "StabilityHistogram",
    "Winner",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "plan_selection",
    "privacy_spent",
    "sampled_mu",
]

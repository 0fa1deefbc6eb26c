# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Everything that a privacy claim rests on, in three rings: kernel, laws and books.

Each ring imports only itself and the rings inside of it. Read `kernel/curator.py` first, the only
exit for private numbers; the queries whose sensitivities are claimed stand beside their algorithms.
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

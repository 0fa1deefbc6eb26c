# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tools that look at algorithms, claims and fitted models, and pictures of them."""

from skdp._sampling import GridWalkSteps, grid_walk_steps
from skdp.inspection._audit_display import AuditDisplay
from skdp.inspection._dictionary_risk import DictionaryRisk, dictionary_risk
from skdp.inspection._ledger_display import LedgerDisplay
from skdp.inspection._ledger_parts import LedgerPart
from skdp.inspection._privacy_card import PrivacyCard, privacy_card
from skdp.inspection._privacy_utility_display import PrivacyUtilityDisplay
from skdp.inspection._reconstruction import reconstruction_risk
from skdp.inspection._reconstruction_inverse import (
    cosine_for_reconstruction,
    epsilon_for_reconstruction,
)
from skdp.inspection._reconstruction_report import ReconstructionRisk
from skdp.inspection._trusted_types import trusted_types

__all__ = [
    "AuditDisplay",
    "DictionaryRisk",
    "GridWalkSteps",
    "PrivacyCard",
    "LedgerDisplay",
    "LedgerPart",
    "PrivacyUtilityDisplay",
    "ReconstructionRisk",
    "cosine_for_reconstruction",
    "dictionary_risk",
    "epsilon_for_reconstruction",
    "grid_walk_steps",
    "privacy_card",
    "reconstruction_risk",
    "trusted_types",
]

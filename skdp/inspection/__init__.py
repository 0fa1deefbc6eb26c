# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Inspection of fitted models, claims and algorithms: cards, displays and risks."""

from skdp._plan import FitPlan
from skdp.inspection._audit_display import AuditDisplay
from skdp.inspection._card import PrivacyCard, privacy_card
from skdp.inspection._dictionary_risk import DictionaryRisk, dictionary_risk
from skdp.inspection._ledger_display import LedgerDisplay, LedgerPart
from skdp.inspection._reconstruction import (
    ReconstructionRisk,
    cosine_for_reconstruction,
    epsilon_for_reconstruction,
    reconstruction_risk,
)
from skdp.inspection._shapes_display import AdditiveShapesDisplay
from skdp.inspection._trusted_types import trusted_types
from skdp.inspection._utility_display import PrivacyUtilityDisplay
from skdp.preprocessing._describe import TableSummary

__all__ = [
    "AdditiveShapesDisplay",
    "AuditDisplay",
    "DictionaryRisk",
    "FitPlan",
    "TableSummary",
    "PrivacyCard",
    "LedgerDisplay",
    "LedgerPart",
    "PrivacyUtilityDisplay",
    "ReconstructionRisk",
    "cosine_for_reconstruction",
    "dictionary_risk",
    "epsilon_for_reconstruction",
    "privacy_card",
    "reconstruction_risk",
    "trusted_types",
]

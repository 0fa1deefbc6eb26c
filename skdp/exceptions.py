# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions and warnings."""

from skdp.privacy.kernel.accounting import BudgetError, PrivacyWarning, SeededNoiseWarning

__all__ = [
    "BudgetError",
    "NoisyEstimateWarning",
    "PrivacyWarning",
    "SeededNoiseWarning",
    "SimulationWarning",
]


class NoisyEstimateWarning(PrivacyWarning):
    """What was released is mostly noise, or lies on a bound; public and released numbers say so."""


class SimulationWarning(PrivacyWarning):
    """The noise is that of a larger deployment: the budget does not hold for these data."""

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tools that look at algorithms and claims, and at no data."""

from skdp._sampling import GridWalkSteps, grid_walk_steps
from skdp.inspection._dictionary_risk import DictionaryRisk, dictionary_risk
from skdp.inspection._reconstruction import reconstruction_risk
from skdp.inspection._reconstruction_inverse import (
    cosine_for_reconstruction,
    epsilon_for_reconstruction,
)
from skdp.inspection._reconstruction_report import ReconstructionRisk

__all__ = [
    "DictionaryRisk",
    "GridWalkSteps",
    "ReconstructionRisk",
    "cosine_for_reconstruction",
    "dictionary_risk",
    "epsilon_for_reconstruction",
    "grid_walk_steps",
    "reconstruction_risk",
]

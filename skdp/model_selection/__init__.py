# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Searches for parameters that pay for every fit, for the choice and for the score."""

from skdp.model_selection._row_scorer import RowScorer
from skdp.model_selection._search import DPGridSearchCV, DPRandomizedSearchCV

__all__ = ["DPGridSearchCV", "DPRandomizedSearchCV", "RowScorer"]

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private searches over parameters: fits, choice and score within one budget."""

from skdp.model_selection._row_scorer import RowScorer
from skdp.model_selection._search import DPGridSearchCV, DPRandomizedSearchCV

__all__ = ["DPGridSearchCV", "DPRandomizedSearchCV", "RowScorer"]

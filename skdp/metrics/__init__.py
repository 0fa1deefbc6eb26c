# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private scores of held-out rows, with confidence intervals."""

from skdp.metrics._classification import (
    DPClassificationScores,
    DPConfusionMatrix,
    dp_balanced_accuracy_score,
    dp_roc_auc_score,
)
from skdp.metrics._scorer import make_dp_scorer
from skdp.metrics._scores import (
    DPRegressionScores,
    DPScore,
    dp_accuracy_score,
    dp_brier_score_loss,
    dp_d2_absolute_error_score,
    dp_log_loss,
    dp_mean_absolute_error,
    dp_mean_squared_error,
    dp_r2_score,
)

__all__ = [
    "DPClassificationScores",
    "DPConfusionMatrix",
    "DPRegressionScores",
    "DPScore",
    "dp_accuracy_score",
    "dp_balanced_accuracy_score",
    "dp_brier_score_loss",
    "dp_d2_absolute_error_score",
    "dp_log_loss",
    "dp_mean_absolute_error",
    "dp_mean_squared_error",
    "dp_r2_score",
    "dp_roc_auc_score",
    "make_dp_scorer",
]

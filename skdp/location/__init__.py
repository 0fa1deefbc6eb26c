# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private estimators of location."""

from skdp.location._heavy_tailed_mean import DPHeavyTailedMean
from skdp.location._histogram import DPHistogram
from skdp.location._mean import DPMean
from skdp.location._median import DPMedian
from skdp.location._norm_quantile import DPNormQuantile
from skdp.location._quantile import DPQuantile
from skdp.location._sparse_mean import DPSparseMeanEstimator

__all__ = [
    "DPHeavyTailedMean",
    "DPHistogram",
    "DPMean",
    "DPMedian",
    "DPNormQuantile",
    "DPQuantile",
    "DPSparseMeanEstimator",
]

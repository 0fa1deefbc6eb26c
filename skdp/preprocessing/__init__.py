# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Transformers with public constants, which are free, and with released constants."""

from skdp.preprocessing._describe import dp_describe
from skdp.preprocessing._feature_centerer import DPFeatureCenterer
from skdp.preprocessing._frequent_features import DPFrequentFeatures
from skdp.preprocessing._public import BoundedScaler, NormClipper, RandomFourierFeatures
from skdp.preprocessing._standard_scaler import DPStandardScaler
from skdp.preprocessing._table import DPTableVectorizer

__all__ = [
    "BoundedScaler",
    "DPFeatureCenterer",
    "DPFrequentFeatures",
    "DPStandardScaler",
    "DPTableVectorizer",
    "NormClipper",
    "RandomFourierFeatures",
    "dp_describe",
]

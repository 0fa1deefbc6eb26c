# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private estimators with the interface of scikit-learn."""

from skdp.federated import FederatedDPLogisticRegression
from skdp.linear_model import DPHingeSVM, DPLogisticRegression, DPLpRegressor
from skdp.local import (
    LocalDPCovariance,
    LocalDPLinearRegression,
    LocalDPLogisticRegression,
    LocalDPMean,
    LocalDPPCA,
    PrivUnitPrivatizer,
    ScalarPrivatizer,
)
from skdp.location import (
    DPHeavyTailedMean,
    DPMean,
    DPMedian,
    DPNormQuantile,
    DPQuantile,
    DPSparseMeanEstimator,
)
from skdp.preprocessing import (
    BoundedScaler,
    DPFeatureCenterer,
    DPFrequentFeatures,
    DPStandardScaler,
    NormClipper,
)
from skdp.privacy import Ledger, privacy_spent

__version__ = "0.1.0"

__all__ = [
    "BoundedScaler",
    "DPFeatureCenterer",
    "DPFrequentFeatures",
    "DPHeavyTailedMean",
    "DPHingeSVM",
    "DPLogisticRegression",
    "DPLpRegressor",
    "DPMean",
    "DPMedian",
    "DPNormQuantile",
    "DPQuantile",
    "DPSparseMeanEstimator",
    "DPStandardScaler",
    "FederatedDPLogisticRegression",
    "Ledger",
    "LocalDPCovariance",
    "LocalDPLinearRegression",
    "LocalDPLogisticRegression",
    "LocalDPMean",
    "LocalDPPCA",
    "NormClipper",
    "PrivUnitPrivatizer",
    "ScalarPrivatizer",
    "privacy_spent",
]

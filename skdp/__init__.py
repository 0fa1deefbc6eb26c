# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private estimators with the interface of scikit-learn."""

from skdp._export import to_sklearn
from skdp.audit import audit_privacy
from skdp.federated import FederatedDPLogisticRegression
from skdp.inspection import (
    AdditiveShapesDisplay,
    AuditDisplay,
    LedgerDisplay,
    PrivacyUtilityDisplay,
    privacy_card,
    reconstruction_risk,
    trusted_types,
)
from skdp.linear_model import (
    DPHingeSVM,
    DPKernelClassifier,
    DPKernelRegressor,
    DPLogisticRegression,
    DPLpRegressor,
    dp_tabular_pipeline,
)
from skdp.local import (
    LocalDPCovariance,
    LocalDPFrequencies,
    LocalDPLinearRegression,
    LocalDPLogisticRegression,
    LocalDPMean,
    LocalDPPCA,
    PrivUnitPrivatizer,
    ScalarPrivatizer,
)
from skdp.location import (
    DPHeavyTailedMean,
    DPHistogram,
    DPMean,
    DPMedian,
    DPNormQuantile,
    DPQuantile,
    DPSparseMeanEstimator,
)
from skdp.metrics import DPClassificationScores, DPConfusionMatrix, DPRegressionScores
from skdp.model_selection import DPGridSearchCV, DPRandomizedSearchCV
from skdp.moments import DPPCA, DPCovariance, DPRidge
from skdp.preprocessing import (
    BoundedScaler,
    DPFeatureCenterer,
    DPFrequentFeatures,
    DPStandardScaler,
    DPTableVectorizer,
    NormClipper,
    RandomFourierFeatures,
    dp_describe,
)
from skdp.privacy import Ledger, PrivacyBudget, privacy_spent

__version__ = "0.1.0"

__all__ = [
    "AdditiveShapesDisplay",
    "AuditDisplay",
    "BoundedScaler",
    "DPClassificationScores",
    "DPConfusionMatrix",
    "DPCovariance",
    "DPFeatureCenterer",
    "DPFrequentFeatures",
    "DPGridSearchCV",
    "DPHeavyTailedMean",
    "DPHingeSVM",
    "DPHistogram",
    "DPKernelClassifier",
    "DPKernelRegressor",
    "DPLogisticRegression",
    "DPLpRegressor",
    "DPMean",
    "DPMedian",
    "DPNormQuantile",
    "DPPCA",
    "DPQuantile",
    "DPRandomizedSearchCV",
    "DPRegressionScores",
    "DPRidge",
    "DPSparseMeanEstimator",
    "DPStandardScaler",
    "DPTableVectorizer",
    "FederatedDPLogisticRegression",
    "Ledger",
    "LedgerDisplay",
    "LocalDPCovariance",
    "LocalDPFrequencies",
    "LocalDPLinearRegression",
    "LocalDPLogisticRegression",
    "LocalDPMean",
    "LocalDPPCA",
    "NormClipper",
    "PrivUnitPrivatizer",
    "PrivacyBudget",
    "PrivacyUtilityDisplay",
    "RandomFourierFeatures",
    "ScalarPrivatizer",
    "audit_privacy",
    "dp_describe",
    "dp_tabular_pipeline",
    "privacy_card",
    "privacy_spent",
    "reconstruction_risk",
    "to_sklearn",
    "trusted_types",
]

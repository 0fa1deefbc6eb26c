# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private linear models."""

from skdp.linear_model._classifiers import DPHingeSVM, DPLogisticRegression
from skdp.linear_model._kernel_classifier import DPKernelClassifier
from skdp.linear_model._kernel_regressor import DPKernelRegressor
from skdp.linear_model._lp_regressor import DPLpRegressor
from skdp.linear_model._tabular import dp_tabular_pipeline

__all__ = [
    "DPHingeSVM",
    "DPKernelClassifier",
    "DPKernelRegressor",
    "DPLogisticRegression",
    "DPLpRegressor",
    "dp_tabular_pipeline",
]

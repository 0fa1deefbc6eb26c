# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private linear models."""

from skdp.linear_model._classifiers import DPHingeSVM, DPLogisticRegression
from skdp.linear_model._lp_regressor import DPLpRegressor

__all__ = ["DPHingeSVM", "DPLogisticRegression", "DPLpRegressor"]

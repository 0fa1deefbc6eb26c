# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private linear models."""

from skdp.linear_model._hinge import DPHingeSVM
from skdp.linear_model._logistic import DPLogisticRegression
from skdp.linear_model._lp_regressor import DPLpRegressor

__all__ = ["DPHingeSVM", "DPLogisticRegression", "DPLpRegressor"]

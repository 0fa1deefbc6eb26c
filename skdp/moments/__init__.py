# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Estimators from second moments, which are released once."""

from skdp.moments._covariance import DPPCA, DPCovariance
from skdp.moments._ridge import DPRidge

__all__ = ["DPPCA", "DPCovariance", "DPRidge"]

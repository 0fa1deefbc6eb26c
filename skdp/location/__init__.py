# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private estimators of location."""

from skdp.location._mean import DPMean

__all__ = ["DPMean"]

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Transformers that learn nothing from the data, and so cost nothing."""

from skdp.preprocessing._bounded_scaler import BoundedScaler
from skdp.preprocessing._norm_clipper import NormClipper

__all__ = ["BoundedScaler", "NormClipper"]

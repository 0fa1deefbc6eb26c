# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Pointwise losses of a linear predictor."""

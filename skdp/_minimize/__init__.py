# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Certified minimisers of strongly convex sums over rows."""

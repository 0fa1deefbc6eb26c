# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Algorithms of the papers that are there for research."""

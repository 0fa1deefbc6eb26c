# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of private linear models: one file for each algorithm."""

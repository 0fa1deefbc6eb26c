# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of rows that are not in memory."""

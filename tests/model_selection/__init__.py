# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of skdp.model_selection."""

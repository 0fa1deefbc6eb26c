# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noise against exact laws and against the samplers of others."""

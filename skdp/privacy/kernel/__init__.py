# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The kernel: the gate for private numbers, its noise, and its accounting."""

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows that a curator admits: domains, chunks, products, sums and streams."""

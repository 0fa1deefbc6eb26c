# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Post-processing of released numbers: projections, shrinkage, recovery."""

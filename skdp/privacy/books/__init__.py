# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Books: shared budgets, totals, and ledgers in words."""

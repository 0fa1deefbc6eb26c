# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Books: budgets that several fits share, totals, and ledgers in words."""

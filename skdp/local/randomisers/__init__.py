# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Local randomisers: parameters, budgets, errors and reports, one file per randomiser."""

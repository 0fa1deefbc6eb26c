# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Local randomisers: their arithmetic, and the reports that they make."""

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Laws of releases other than additive noise, and their calibration."""

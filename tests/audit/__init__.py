# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of what looks at algorithms and claims."""

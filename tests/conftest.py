# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Set-up shared by all tests."""

import os

# Read when scipy is imported: without it one scikit-learn check skips for everybody.
os.environ["SCIPY_ARRAY_API"] = "1"

from hypothesis import settings

# The same examples in every run; a failure anywhere is a failure everywhere.
settings.register_profile("skdp", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("skdp")

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Imported before numpy: libraries use one thread, so that CPU seconds mean something."""

import os

#: what libraries read when they are loaded
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

os.environ.update(dict.fromkeys(VARIABLES, "1"))

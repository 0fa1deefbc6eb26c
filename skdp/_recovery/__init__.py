# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Post-processing of released numbers: projections, shrinkage, recovery.

Nothing here ever sees a private row, so nothing here costs or risks anything.
"""

from skdp._recovery._ksupport import ksupport_norm, project_ksupport
from skdp._recovery._l1 import project_l1, project_l1l2
from skdp._recovery._matrices import MEASUREMENTS, measurement_matrix
from skdp._recovery._recover import RECOVERIES, SOLVERS, recover
from skdp._recovery._shrink import project_linf, soft_threshold
from skdp._recovery._sure import sure_threshold, universal_threshold

__all__ = [
    "MEASUREMENTS",
    "RECOVERIES",
    "SOLVERS",
    "ksupport_norm",
    "measurement_matrix",
    "project_ksupport",
    "project_l1",
    "project_l1l2",
    "project_linf",
    "recover",
    "soft_threshold",
    "sure_threshold",
    "universal_threshold",
]

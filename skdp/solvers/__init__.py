# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of private linear models, one file per algorithm, with its plan and its steps.

The parameter `solver` of a linear model takes an object of these classes. Each class beats the
default in some setting, or is the only one for a setting; :ref:`solvers` has the figures.
"""

from skdp.solvers.base import Solver
from skdp.solvers.exponential import ExactDraw
from skdp.solvers.frank_wolfe import FrankWolfe
from skdp.solvers.gradient import GD, Accelerated
from skdp.solvers.lazy_sgd import LazySGD
from skdp.solvers.objective import Objective
from skdp.solvers.output import Output
from skdp.solvers.phased import Phased
from skdp.solvers.preconditioned import Preconditioned
from skdp.solvers.sgd import SGD

__all__ = [
    "Accelerated",
    "ExactDraw",
    "FrankWolfe",
    "GD",
    "LazySGD",
    "Objective",
    "Output",
    "Phased",
    "Preconditioned",
    "SGD",
    "Solver",
]

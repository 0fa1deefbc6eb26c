# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Public arithmetic of local randomisers: budgets, errors and best parameters.

Nothing is drawn here, and no data are read.
"""

from skdp._randomisers._ball_choice import best_ball_randomiser, best_product
from skdp._randomisers._cap import cap_cosine, log_cap, log_cap_mean
from skdp._randomisers._gaussian_privunit import PrivUnitG, optimal_privunit_gaussian
from skdp._randomisers._grid_choice import best_relative_cells, best_uniform_cells
from skdp._randomisers._hypercube import PrivUnitCube, optimal_privunit_cube
from skdp._randomisers._paper_privunit import paper_privunit
from skdp._randomisers._privunit import PrivUnit, optimal_privunit, with_cosine
from skdp._randomisers._projection import ProjUnit, projection_factor, projunit, smallest_projunit
from skdp._randomisers._scalar_grid import (
    EntrywiseGrid,
    ScalarGrid,
    relative_levels,
    scalar_grid,
    uniform_levels,
)
from skdp._randomisers._vectors import Flip, Lift, Product, flip, lift, product

__all__ = [
    "EntrywiseGrid",
    "Flip",
    "Lift",
    "PrivUnit",
    "PrivUnitCube",
    "PrivUnitG",
    "Product",
    "ProjUnit",
    "ScalarGrid",
    "best_ball_randomiser",
    "best_product",
    "best_relative_cells",
    "best_uniform_cells",
    "cap_cosine",
    "flip",
    "lift",
    "log_cap",
    "log_cap_mean",
    "optimal_privunit",
    "optimal_privunit_cube",
    "optimal_privunit_gaussian",
    "paper_privunit",
    "product",
    "projection_factor",
    "projunit",
    "relative_levels",
    "scalar_grid",
    "smallest_projunit",
    "uniform_levels",
    "with_cosine",
]

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Mean squared errors of local reports in closed form, and what the paper's choices cost."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from skdp.local.randomisers.ball import best_product, flip, lift
from skdp.local.randomisers.base import largest_chance
from skdp.local.randomisers.caps import cap_cosine
from skdp.local.randomisers.cube import optimal_privunit_cube
from skdp.local.randomisers.privunit import (
    PrivUnit,
    optimal_privunit,
    optimal_privunit_gaussian,
    paper_privunit,
)
from skdp.local.randomisers.projunit import smallest_projunit
from skdp.privacy import gdp_mu

DELTA = 1e-6
#: length of the rows where rows are of the ball
NORM = 0.3

#: what Table 1 of the paper prints: data, dimension, budget of the direction, gamma, p
TABLE_1 = (
    ("MNIST", 3_274_634, 500, 0.01729, "1.0"), ("MNIST", 3_274_634, 250, 0.01217, "0.924"),
    ("MNIST", 3_274_634, 100, 0.00760, "0.731"), ("MNIST", 3_274_634, 50, 0.00526, "0.622"),
    ("CIFAR", 1_068_298, 5000, 0.09598, "1.0"), ("CIFAR", 1_068_298, 1000, 0.04291, "1.0"),
    ("CIFAR", 1_068_298, 500, 0.03027, "0.993"), ("CIFAR", 1_068_298, 100, 0.01331, "0.731"),
)  # fmt: skip


@dataclass(frozen=True)
class Noise:
    """Noise of a law that does not depend on the row, added to unit vectors.

    Parameters
    ----------
    law : {"gaussian", "l2-laplace", "laplace"}
        Normal; of density ``exp(-|z| / scale)``; Laplace for each entry.
    scale : float
        Its scale.
    n_dims : int
        Dimension.
    """

    law: str
    scale: float
    n_dims: int

    @property
    def mean_squared_error(self):
        """Mean of the squared length of the noise."""
        d = self.n_dims
        shape = {"gaussian": d, "l2-laplace": d * (d + 1.0), "laplace": 2.0 * d}[self.law]
        return shape * self.scale**2


def hemisphere(epsilon, n_dims):
    """Return the randomiser of Duchi, Jordan and Wainwright: one bit, the side of a half-space."""
    return PrivUnit(n_dims, 0.0, largest_chance(epsilon, -math.log(2.0)))


def repeated_hemisphere(epsilon, n_dims):
    """Return the error of the mean of several hemisphere reports with the best number of them."""
    most = max(1, math.ceil(epsilon))
    return min(hemisphere(epsilon / k, n_dims).mean_squared_error / k for k in range(1, most + 1))


#: randomisers of unit vectors, from budget and dimension
UNIT = {
    "PrivUnit": optimal_privunit,
    "PrivUnitG": lambda epsilon, d: optimal_privunit_gaussian(epsilon, d),
    "ProjUnit, uniform rotation": smallest_projunit,
    "ProjUnit, Hadamard": lambda epsilon, d: smallest_projunit(epsilon, d, rotation="hadamard"),
    "hemisphere": hemisphere,
    "Gaussian noise": lambda e, d: Noise("gaussian", 2.0 / gdp_mu(e, DELTA), d),
    "l2-Laplace noise": lambda e, d: Noise("l2-laplace", 2.0 / e, d),
    "Laplace noise": lambda e, d: Noise("laplace", 2.0 * math.sqrt(d) / e, d),
}
#: randomisers of the unit ball
BALL = {
    "Lift": lift,
    "Flip": flip,
    "Product": lambda epsilon, d: best_product(epsilon, d, NORM),
}
CUBE = "PrivUnit of the cube"
METHODS = (*UNIT, *BALL, CUBE)


def make(name, epsilon, n_dims):
    """Return the parameters of a method of `METHODS`."""
    if name == CUBE:
        return optimal_privunit_cube(epsilon, n_dims)
    return (UNIT | BALL)[name](epsilon, n_dims)


def error(name, epsilon, n_dims):
    """Return the mean squared error by theory.

    For a row of length 1, of length `NORM` for those of the ball, and for the cube the mean over
    rows of uniform entries.
    """
    randomiser = make(name, epsilon, n_dims)
    if name == CUBE:
        return n_dims * (1.0 / randomiser.scale**2 - 1.0 / 3.0)
    if name in BALL:
        return randomiser.mean_squared_error(NORM)
    if name == "PrivUnitG":
        return randomiser.mean_squared_error(n_dims)
    return randomiser.mean_squared_error


def corner_error(epsilon, n_dims):
    """Return the error of the cube for a corner, in units of the corner's squared length."""
    scale = optimal_privunit_cube(epsilon, n_dims).scale
    return (1.0 - scale) * (1.0 + scale) / scale**2


def _half(epsilon, n_dims):
    # p = 1/2 leaves all of the budget to the cap
    cap = -(epsilon + math.log1p(math.exp(-epsilon)))
    return PrivUnit(n_dims, cap_cosine(cap, n_dims), 0.5)


#: parameters of PrivUnit as the paper chooses them, and the part of the budget that they spend
SPLITS = {
    "0.99 : 0.01, condition (16)": (lambda e, d: paper_privunit(0.99 * e, 0.01 * e, d), 1.0),
    "0.99 : 0.01, exact share": (lambda e, d: paper_privunit(0.99 * e, 0.01 * e, d, "exact"), 1.0),
    "p = 1/2, exact share": (_half, 1.0),
    "13/16 : 1/16, condition (16)": (lambda e, d: paper_privunit(13 * e / 16, e / 16, d), 14 / 16),
}


def split_cost(name, epsilon, n_dims):
    """Return the error of a split of the paper over that of the best parameters."""
    choice, part = SPLITS[name]
    found = choice(epsilon, n_dims).mean_squared_error
    return found / optimal_privunit(part * epsilon, n_dims).mean_squared_error


def table_1():
    """Yield the rows of Table 1 of the paper, recomputed.

    Yields
    ------
    row : tuple
        Data, dimension, budget, gamma printed and computed, p printed and computed, 1/m, 1/m of
        the best parameters, ratio of the errors, and the budget with which the best
        parameters have the paper's error.
    """
    for data, d, epsilon, gamma, p in TABLE_1:
        paper = paper_privunit(0.99 * epsilon, 0.01 * epsilon, d)
        best = optimal_privunit(float(epsilon), d)

        def excess(log_budget, d=d, paper=paper):
            return optimal_privunit(math.exp(log_budget), d).scale - paper.scale

        equivalent = math.exp(brentq(excess, 0.0, math.log(epsilon), xtol=1e-9))
        yield (
            data, d, epsilon, gamma, paper.cosine, p, paper.p, 1 / paper.scale, 1 / best.scale,
            paper.mean_squared_error / best.mean_squared_error, equivalent,
        )  # fmt: skip


def product_cost(norm, epsilon, n_dims):
    """Return the error of the best product for a length, over that of the lift."""
    tuned = best_product(epsilon, n_dims, norm).mean_squared_error(norm)
    return tuned / lift(epsilon, n_dims).mean_squared_error(norm)


def doubling(first, last):
    """Return powers of two from one to another."""
    return [float(2.0**k) for k in np.arange(math.log2(first), math.log2(last) + 0.5)]

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The best split of a budget between direction and length, and the best randomiser of a ball."""

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from skdp._randomisers._grid_choice import cells_to_try, uniform_variance
from skdp._randomisers._odds import check_local_epsilon
from skdp._randomisers._privunit import optimal_privunit
from skdp._randomisers._vectors import Flip, Lift, Product, check_norm, flip, lift, product

#: the smallest budget of which all parts that are tried are budgets
LEAST_SPLIT = 1e-4


@lru_cache(maxsize=256, typed=True)
def best_product(epsilon: float, n_dims: int, norm: float, spread: float = 0.0) -> Product:
    """Return the `Product` of least error for vectors of a norm.

    Parameters
    ----------
    epsilon : float
        Budget of one report in nats, from 10^-4 to 10^6.
    n_dims : int
        Dimension of the vectors.
    norm : float
        In [0, 1]: a public guess of the ratio of the norms to the largest norm.
    spread : float, default=0.0
        In [0, 1]. The mean error over norms from ``norm (1 - spread)`` to ``norm (1 + spread)``,
        and at most 1, is minimised. With 0 the best grid often has a level at that very norm,
        and is less good for others.

    Returns
    -------
    parameters : Product
        The split is tried on a grid of fractions and then refined; for each, the best number
        of cells is found among all that can be best.

    Examples
    --------
    Rows of a fifth of the largest norm, at a budget where it pays to report lengths:

    >>> from skdp.local import best_product
    >>> best = best_product(16.0, 1000, 0.2)
    >>> round(best.grid.epsilon, 1), round(best.mean_squared_error(0.2), 1)
    (5.3, 3.9)
    """
    epsilon, norm = check_local_epsilon(epsilon), check_norm(norm)
    ends = norm * (1.0 - check_norm(spread, "spread")), min(1.0, norm * (1.0 + spread))
    norms = np.linspace(*ends, 9 if spread else 1)[:, None]
    if epsilon < LEAST_SPLIT:
        raise ValueError(f"epsilon must be at least {LEAST_SPLIT} to be split, got {epsilon!r}.")

    def error(log_part):
        part = math.exp(log_part)
        cells = cells_to_try(part)
        variances = uniform_variance(norms, cells, part).mean(axis=0)
        best = int(np.argmin(variances))
        square = float(np.mean(norms**2) + variances[best])
        unit = optimal_privunit(epsilon - part, n_dims)
        return math.log(square) - 2.0 * math.log(unit.scale), int(cells[best])

    # beyond this the length has more levels than are tried
    most = min(0.98 * epsilon, 40.0)
    tries = np.geomspace(min(0.05 * epsilon, 0.2), most, 45)
    place = int(np.argmin([error(t)[0] for t in np.log(tries)]))
    ends = math.log(tries[max(place - 1, 0)]), math.log(tries[min(place + 1, 44)])
    found = minimize_scalar(
        lambda t: error(t)[0], bounds=ends, method="bounded", options={"xatol": 1e-4}
    ).x
    found = min((float(found), math.log(tries[place])), key=lambda t: error(t)[0])
    return product(epsilon, n_dims, math.exp(found), error(found)[1])


def best_ball_randomiser(
    epsilon: float, n_dims: int, norm: float, spread: float = 0.0
) -> Lift | Flip | Product:
    """Return the one of `Lift`, `Flip` and `Product` of least error for vectors of a norm.

    Parameters
    ----------
    epsilon, n_dims, norm, spread : float, int, float, float
        As for `best_product`.

    Returns
    -------
    parameters : Lift, Flip or Product
        The errors at that norm are compared. Budgets too small to be split are not.

    Examples
    --------
    >>> from skdp.local import best_ball_randomiser
    >>> [type(best_ball_randomiser(e, 100, 0.2)).__name__ for e in (1.0, 16.0)]
    ['Lift', 'Product']
    """
    made = [lift(epsilon, n_dims), flip(epsilon, n_dims)]
    if epsilon >= LEAST_SPLIT:
        made.append(best_product(epsilon, n_dims, norm, spread))
    return min(made, key=lambda parameters: parameters.mean_squared_error(norm))

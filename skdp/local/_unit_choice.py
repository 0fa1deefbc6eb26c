# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which randomiser PrivUnitPrivatizer's parameters ask for."""

import math

from skdp._randomisers import (
    Flip,
    Lift,
    Product,
    best_relative_cells,
    best_uniform_cells,
    optimal_privunit,
    optimal_privunit_cube,
    optimal_privunit_gaussian,
    projunit,
    relative_levels,
    scalar_grid,
    smallest_projunit,
    uniform_levels,
)
from skdp.local._choice import _paper, ball_randomiser

MECHANISMS = ("privunit", "privunit-gaussian", "projunit", "cube")
#: dimension up to which rotations are uniform; beyond that they are fast
MOST_UNIFORM = 512
#: where the relative grid of lengths begins, unless a norm is expected
_FLOOR = 0.1


def unit_randomiser(privatizer, n_features):
    """Return the randomiser that the parameters of a `PrivUnitPrivatizer` ask for.

    Parameters
    ----------
    privatizer : PrivUnitPrivatizer
        Only its public parameters are read.
    n_features : int
        Number of features.

    Returns
    -------
    randomiser : object
        Of `skdp._randomisers`; its `epsilon` is at most that of the privatizer.

    Raises
    ------
    ValueError
        If the parameters do not go together.
    """
    p = privatizer
    _check(p, n_features)
    if p.mechanism == "cube":
        return optimal_privunit_cube(p.epsilon, n_features)
    if p.mechanism == "privunit":
        return _privunit(p, n_features)
    if p.magnitude == "unit":
        return _directions(p, n_features)
    lifted, flipped = Lift(_directions(p, n_features + 1)), Flip(_directions(p, n_features))
    if p.magnitude != "auto":
        return lifted if p.magnitude == "lift" else flipped
    norm = 1.0 if p.expected_norm is None else p.expected_norm
    return min((lifted, flipped), key=lambda made: made.mean_squared_error(norm))


def _privunit(p, n_features):
    if p.magnitude == "unit":
        optimal = p.parameters == "optimal"
        return (
            optimal_privunit(p.epsilon, n_features)
            if optimal
            else _paper(p.epsilon, n_features, p.parameters)
        )
    part = p.magnitude_epsilon
    if p.magnitude == "product" and p.levels == "relative":
        return _relative(p, n_features)
    return ball_randomiser(
        p.epsilon, n_features, p.magnitude, p.expected_norm, part, p.parameters, p.n_levels
    )


def _relative(p, n_features):
    """Return the product of the usual direction and a length on a relative grid."""
    given = p.epsilon, n_features, "product", p.expected_norm, p.magnitude_epsilon, p.parameters
    usual = ball_randomiser(*given)
    floor = _FLOOR if p.expected_norm is None else p.expected_norm / 2.0
    part = usual.grid.epsilon
    grid = scalar_grid(levels_of("relative", part, p.n_levels, floor), part)
    # the same budget but for rounding, and the sum must not be above what was asked for
    if usual.unit.epsilon + grid.epsilon >= p.epsilon:
        part -= 4.0 * math.ulp(p.epsilon)
        grid = scalar_grid(grid.levels, part)
    return Product(usual.unit, grid)


def levels_of(kind, epsilon, n_levels, floor):
    """Return levels from 0 to 1 for a budget.

    Parameters
    ----------
    kind : {"uniform", "relative"}
        Equal distances, or distances that grow with the number from `floor` on.
    epsilon : float
        Budget of one number.
    n_levels : int or None
        How many, for "relative" at most; None for the best number.
    floor : float
        In (0, 1); for "relative" only.

    Returns
    -------
    levels : ndarray

    Raises
    ------
    ValueError
        If so few levels do not reach from the floor to 1.
    """
    if kind == "uniform":
        return uniform_levels(best_uniform_cells(epsilon) if n_levels is None else n_levels - 1)
    if n_levels is None:
        return relative_levels(floor, best_relative_cells(epsilon, floor))
    made, n_inner = None, 1
    while (levels := relative_levels(floor, n_inner)).size <= n_levels:
        made, n_inner = levels, n_inner + 1
    if made is None:
        raise ValueError(
            f'n_levels must be at least {levels.size} for levels="relative" from {floor:g} on; '
            f"got {n_levels!r}."
        )
    return made


def _directions(p, n_dims):
    """Return the randomiser of unit vectors."""
    if p.mechanism == "privunit-gaussian":
        return optimal_privunit_gaussian(p.epsilon, n_dims)
    rotation = "haar" if n_dims <= MOST_UNIFORM else "hadamard"
    if p.n_components is None:
        return smallest_projunit(p.epsilon, n_dims, rotation=rotation)
    return projunit(p.epsilon, n_dims, p.n_components, rotation)


def _check(p, n_features):
    """Raise if parameters do not go together."""
    mechanism = f"mechanism={p.mechanism!r}"
    if (p.bounds is None) == (p.mechanism == "cube"):
        raise ValueError(
            f'bounds must be given for mechanism="cube" and be None for others; got {p.bounds!r} '
            f"for {mechanism}."
        )
    given = p.mechanism == "projunit" and p.n_components is not None
    if given and p.n_components > n_features:
        raise ValueError(
            f"n_components must be at most the number of features, {n_features}; got "
            f"{p.n_components!r}."
        )
    if p.mechanism == "privunit":
        if p.magnitude == "unit" and p.parameters == "paper-simulation":
            raise ValueError('parameters="paper-simulation" needs magnitude="product"; got "unit".')
        if p.magnitude != "product" and p.levels != "uniform":
            raise ValueError(f'levels={p.levels!r} needs magnitude="product"; got {p.magnitude!r}.')
        for name in ("magnitude_epsilon", "n_levels"):
            if p.magnitude == "unit" and getattr(p, name) is not None:
                raise ValueError(
                    f'{name} is for magnitude="product" only; got {getattr(p, name)!r} for "unit".'
                )
        return
    if p.parameters != "optimal":
        raise ValueError(
            f'parameters={p.parameters!r} is for mechanism="privunit" only; got {mechanism}.'
        )
    given = p.magnitude_epsilon is not None or p.n_levels is not None or p.levels != "uniform"
    if p.magnitude == "product" or given:
        raise ValueError(
            'magnitude="product" and its magnitude_epsilon, n_levels and levels are for '
            f'mechanism="privunit" only; got {mechanism}.'
        )

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which randomiser of the unit ball an estimator's parameters ask for."""

import math

from skdp.local.randomisers.ball import (
    Flip,
    Lift,
    Product,
    best_ball_randomiser,
    best_product,
    flip,
    lift,
)
from skdp.local.randomisers.cube import optimal_privunit_cube
from skdp.local.randomisers.grid import (
    best_relative_cells,
    best_uniform_cells,
    relative_levels,
    scalar_grid,
    uniform_levels,
)
from skdp.local.randomisers.privunit import optimal_privunit, paper_privunit
from skdp.local.randomisers.privunit_gaussian import optimal_privunit_gaussian
from skdp.local.randomisers.projunit import projunit, smallest_projunit

#: what `magnitude` and `parameters` may be
MAGNITUDES = ("lift", "flip", "product", "auto")
PARAMETERS = ("optimal", "paper", "paper-simulation", "half")

#: norms around the expected one, relative to it, that a product is made for
_SPREAD = 0.25
#: where a coin is to be fair: the least that its budget may be, relative to all
_FAIR = 1e-9


def ball_randomiser(
    epsilon, n_dims, magnitude, expected_norm, magnitude_epsilon, parameters, n_levels=None
):
    """Return the randomiser of vectors in the unit ball for a budget.

    Parameters
    ----------
    epsilon : float
        Budget of one report, from 10^-6 to 10^6.
    n_dims : int
        Dimension of the vectors.
    magnitude : {"lift", "flip", "product", "auto"}
        What is done about lengths below 1; "auto" takes the least error at `expected_norm`.
    expected_norm : float or None
        A public guess of the norms, in (0, 1]; None for 1.
    magnitude_epsilon : float or None
        "product": the part of the budget that is for the length. None for the best part, and
        for an eighth where `parameters` is not "optimal".
    parameters : {"optimal", "paper", "paper-simulation", "half"}
        "optimal" has the least error. The others are choices of Bhowmick et al. (2018), by the
        conditions (16) of their Theorem 1: 99 % of the direction's budget for the cap and 1 %
        for the coin; 13/16 and 1/16 of the whole, with 2/16 for the length (Section 5.1); or a
        fair coin (equation 22).
    n_levels : int, default=None
        "product": number of levels of the length, at least 2. None for the best number; where
        `parameters` is not "optimal", for the paper's, ``1 + ceil(exp(magnitude_epsilon / 3))``.

    Returns
    -------
    randomiser : Lift, Flip or Product
        Its `epsilon` is at most what was asked for.

    Raises
    ------
    ValueError
        If the parameters do not go together, or the conditions give no cosine.
    """
    _check_ball(magnitude, expected_norm, magnitude_epsilon, parameters, n_levels)
    norm = 1.0 if expected_norm is None else float(expected_norm)
    optimal = parameters == "optimal"
    if magnitude == "auto":
        return best_ball_randomiser(epsilon, n_dims, norm, _SPREAD)
    if magnitude == "lift":
        return lift(epsilon, n_dims) if optimal else Lift(_paper(epsilon, n_dims + 1, parameters))
    if magnitude == "flip":
        return flip(epsilon, n_dims) if optimal else Flip(_paper(epsilon, n_dims, parameters))
    if optimal and magnitude_epsilon is None:
        best = best_product(epsilon, n_dims, norm, _SPREAD)
        if n_levels is None:
            return best
        magnitude_epsilon = best.grid.epsilon
    part = epsilon / 8.0 if magnitude_epsilon is None else float(magnitude_epsilon)
    if not 0.0 < part < epsilon:
        raise ValueError(
            f"magnitude_epsilon must be greater than 0 and less than epsilon={epsilon!r}; got "
            f"{part!r}."
        )
    if n_levels is not None:
        cells = n_levels - 1
    else:
        cells = best_uniform_cells(part) if optimal else math.ceil(math.exp(min(part / 3, 14.0)))
    # the sum of the two is rounded up
    rest = epsilon - part - 4.0 * math.ulp(epsilon)
    unit = optimal_privunit(rest, n_dims) if optimal else _paper(rest, n_dims, parameters)
    return Product(unit, scalar_grid(uniform_levels(cells), part))


def _check_ball(magnitude, expected_norm, magnitude_epsilon, parameters, n_levels):
    for name, value, known in (
        ("magnitude", magnitude, MAGNITUDES),
        ("parameters", parameters, PARAMETERS),
    ):
        if value not in known:
            raise ValueError(f"{name} must be one of {known}; got {value!r}.")
    if expected_norm is not None and not 0.0 < expected_norm <= 1.0:
        raise ValueError(f"expected_norm must be in (0, 1] or None; got {expected_norm!r}.")
    if magnitude == "auto" and parameters != "optimal":
        raise ValueError(f'magnitude="auto" needs parameters="optimal"; got {parameters!r}.')
    if parameters == "paper-simulation" and magnitude != "product":
        raise ValueError(
            f'parameters="paper-simulation" needs magnitude="product"; got {magnitude!r}.'
        )
    if parameters == "paper-simulation" and magnitude_epsilon is not None:
        raise ValueError(
            'parameters="paper-simulation" gives the length an eighth of the budget: '
            f"magnitude_epsilon must be None with it; got {magnitude_epsilon!r}."
        )
    for name, value in (("magnitude_epsilon", magnitude_epsilon), ("n_levels", n_levels)):
        if value is not None and magnitude != "product":
            raise ValueError(
                f'{name} is for magnitude="product" only: it must be None with '
                f"magnitude={magnitude!r}; got {value!r}."
            )
    if n_levels is not None and n_levels < 2:
        raise ValueError(f"n_levels must be at least 2; got {n_levels!r}.")


def _paper(epsilon, n_dims, parameters):
    """Return the parameters of directions that the paper takes, which spend at most epsilon."""
    coin = {"paper": 0.01, "paper-simulation": 1 / 14, "half": _FAIR}[parameters] * epsilon
    try:
        made = paper_privunit(epsilon - coin, coin, n_dims)
    except ValueError as error:
        raise ValueError(
            f"parameters={parameters!r}: the conditions of the paper give no cosine for epsilon="
            f'{epsilon!r} in dimension {n_dims}. Set parameters="optimal", or another budget.'
        ) from error
    if made.epsilon > epsilon:
        # condition (16a) is false in dimension 2
        raise ValueError(
            f"parameters={parameters!r}: in dimension {n_dims} the conditions of the paper spend "
            f'more than the epsilon={epsilon!r} that they promise. Set parameters="optimal".'
        )
    return made


# Which randomiser PrivUnitPrivatizer's parameters ask for.


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
    _check_unit(p, n_features)
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


def _check_unit(p, n_features):
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

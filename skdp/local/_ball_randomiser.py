# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The choice of a randomiser of the unit ball, as one parameter of an estimator."""

import math
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator

from skdp._sklearn import Interval, StrOptions
from skdp.local.randomisers.ball import (
    Flip,
    Lift,
    Product,
    best_ball_randomiser,
    best_product,
    flip,
    lift,
)
from skdp.local.randomisers.grid import best_uniform_cells, scalar_grid, uniform_levels
from skdp.local.randomisers.privunit import optimal_privunit, paper_privunit

#: what `magnitude` and `parameters` may be
MAGNITUDES = ("lift", "flip", "product", "auto")
PARAMETERS = ("optimal", "paper", "paper-simulation", "half")

#: norms around the expected one, relative to it, that a product is made for
_SPREAD = 0.25
#: where a coin is to be fair: the least that its budget may be, relative to all
_FAIR = 1e-9


class ParameterGroup(BaseEstimator):
    """Base class for objects with some parameters of an estimator.

    They are estimators for scikit-learn, so `clone`, nested parameters
    (``randomiser__magnitude``), `repr` and searches work.
    """

    _parameter_constraints: dict[str, Any] = {}

    def checked(self) -> Self:
        """Return a copy for one fit, with numpy scalars as Python numbers.

        Returns
        -------
        copy : object
            Copy of the same class.

        Raises
        ------
        ValueError
            If a parameter has the wrong type or is out of range.
        """
        given = self.get_params(deep=False)
        copy = type(self)(**{name: _plain(value) for name, value in given.items()})
        copy._validate_params()
        return copy


def _plain(value):
    if isinstance(value, np.integer):
        return int(value)
    return float(value) if isinstance(value, np.floating) else value


class BallRandomiser(ParameterGroup):
    """Reports of vectors in the unit ball, with the treatment of lengths below 1.

    For the parameter `randomiser` of `LocalDPLogisticRegression` and
    `FederatedDPLogisticRegression`. Vectors are gradients or updates of models, in units of the
    longest.

    Parameters
    ----------
    magnitude : {"lift", "flip", "product", "auto"}, default="lift"
        "lift": an additional entry makes all vectors unit vectors; the noise is the same in all
        directions. "flip": the direction is reversed at random, with the correct mean. "product":
        separate reports of direction and length, as in [1]_; better at large budgets. "auto": the
        least error at `expected_norm`.
    expected_norm : float, default=None
        Public guess of the norms of vectors, in (0, 1], for the tuning of "product" and "auto",
        and of the steps of `LocalDPLogisticRegression`. None leaves it to the estimator. It must
        not be computed from private data.
    magnitude_epsilon : float, default=None
        "product": the part of the budget for the length. None is the best part, or an eighth if
        `parameters` is not "optimal".
    n_levels : int, default=None
        "product": number of levels of length, at least 2. None is the best number; if `parameters`
        is not "optimal", the number of [1]_, ``1 + ceil(exp(magnitude_epsilon / 3))``.
    parameters : {"optimal", "paper", "paper-simulation", "half"}, default="optimal"
        "optimal" has the least error. The others reproduce [1]_, with larger errors, by the
        conditions (16) of its Theorem 1. "paper": 99 % of the direction's budget for the cap and 1
        % for the coin. "paper-simulation": 13/16 and 1/16 of the whole, with 2/16 for the length
        (Section 5.1, with "product" only). "half": a fair coin (equation 22).

    See Also
    --------
    PrivUnitPrivatizer : Reports of rows, with the same parameters.
    best_ball_randomiser : What "auto" is for a norm.

    References
    ----------
    .. [1] A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor and R. Rogers, "Protection against
       reconstruction and its applications in private federated learning", 2018, Section 4.

    Examples
    --------
    >>> from skdp import LocalDPLogisticRegression
    >>> from skdp.local import BallRandomiser
    >>> short = BallRandomiser("product", expected_norm=0.2)
    >>> LocalDPLogisticRegression(epsilon=16.0, randomiser=short)
    LocalDPLogisticRegression(epsilon=16.0,
                              randomiser=BallRandomiser(expected_norm=0.2,
                                                        magnitude='product'))
    >>> round(short.calibrate(16.0, 1000).mean_squared_error(0.2), 1)
    3.9
    """

    _parameter_constraints = {
        "magnitude": [StrOptions(set(MAGNITUDES))],
        "expected_norm": [Interval(Real, 0, 1, closed="right"), None],
        "magnitude_epsilon": [Interval(Real, 0, None, closed="neither"), None],
        "n_levels": [Interval(Integral, 2, None, closed="left"), None],
        "parameters": [StrOptions(set(PARAMETERS))],
    }

    def __init__(
        self,
        magnitude: Literal["lift", "flip", "product", "auto"] = "lift",
        *,
        expected_norm: float | None = None,
        magnitude_epsilon: float | None = None,
        n_levels: int | None = None,
        parameters: Literal["optimal", "paper", "paper-simulation", "half"] = "optimal",
    ) -> None:
        self.magnitude = magnitude
        self.expected_norm = expected_norm
        self.magnitude_epsilon = magnitude_epsilon
        self.n_levels = n_levels
        self.parameters = parameters

    def calibrate(
        self, epsilon: float, n_dims: int, default_norm: float = 1.0
    ) -> Lift | Flip | Product:
        """Return the randomiser for a budget.

        Parameters
        ----------
        epsilon : float
            Budget of one report, from 1e-6 to 1e6.
        n_dims : int
            Dimension of the vectors.
        default_norm : float, default=1.0
            Value of `expected_norm` if it is None.

        Returns
        -------
        randomiser : Lift, Flip or Product
            Randomiser with an `epsilon` of at most the budget.

        Raises
        ------
        ValueError
            If the parameters are incompatible, or the conditions of the paper give no cosine.
        """
        chosen = self.checked()
        chosen._check_together()
        norm = default_norm if chosen.expected_norm is None else float(chosen.expected_norm)
        optimal = chosen.parameters == "optimal"
        if chosen.magnitude == "auto":
            return best_ball_randomiser(epsilon, n_dims, norm, _SPREAD)
        if chosen.magnitude == "lift":
            if optimal:
                return lift(epsilon, n_dims)
            return Lift(paper_directions(epsilon, n_dims + 1, chosen.parameters))
        if chosen.magnitude == "flip":
            if optimal:
                return flip(epsilon, n_dims)
            return Flip(paper_directions(epsilon, n_dims, chosen.parameters))
        return chosen._product(epsilon, n_dims, norm)

    def _product(self, epsilon, n_dims, norm):
        part, optimal = self.magnitude_epsilon, self.parameters == "optimal"
        if optimal and part is None:
            best = best_product(epsilon, n_dims, norm, _SPREAD)
            if self.n_levels is None:
                return best
            part = best.grid.epsilon
        part = epsilon / 8.0 if part is None else float(part)
        if not 0.0 < part < epsilon:
            raise ValueError(
                f"magnitude_epsilon must be greater than 0 and less than epsilon={epsilon!r}; got "
                f"{part!r}."
            )
        if self.n_levels is not None:
            cells = self.n_levels - 1
        else:
            cells = best_uniform_cells(part) if optimal else math.ceil(math.exp(min(part / 3, 14)))
        # the sum of the two is rounded up
        rest = epsilon - part - 4.0 * math.ulp(epsilon)
        if optimal:
            unit = optimal_privunit(rest, n_dims)
        else:
            unit = paper_directions(rest, n_dims, self.parameters)
        return Product(unit, scalar_grid(uniform_levels(cells), part))

    def _check_together(self):
        if self.magnitude == "auto" and self.parameters != "optimal":
            raise ValueError(
                f'magnitude="auto" needs parameters="optimal"; got {self.parameters!r}.'
            )
        if self.parameters == "paper-simulation" and self.magnitude != "product":
            raise ValueError(
                f'parameters="paper-simulation" needs magnitude="product"; got {self.magnitude!r}.'
            )
        if self.parameters == "paper-simulation" and self.magnitude_epsilon is not None:
            raise ValueError(
                'parameters="paper-simulation" gives the length an eighth of the budget: '
                f"magnitude_epsilon must be None with it; got {self.magnitude_epsilon!r}."
            )
        for name in ("magnitude_epsilon", "n_levels"):
            if getattr(self, name) is not None and self.magnitude != "product":
                raise ValueError(
                    f'{name} is for magnitude="product" only: it must be None with '
                    f"magnitude={self.magnitude!r}; got {getattr(self, name)!r}."
                )


def as_ball_randomiser(given):
    """Return the `BallRandomiser` of a parameter `randomiser`, an object or a magnitude."""
    return BallRandomiser(given) if isinstance(given, str) else given.checked()


def paper_directions(epsilon, n_dims, parameters):
    """Return the `PrivUnit` of the paper.

    Parameters
    ----------
    epsilon : float
        Budget of one report.
    n_dims : int
        Dimension of the unit vectors.
    parameters : {"paper", "paper-simulation", "half"}
        As for `BallRandomiser`.

    Returns
    -------
    parameters : PrivUnit
        PrivUnit with a price of at most epsilon.

    Raises
    ------
    ValueError
        If the conditions of the paper give no cosine, or cost more.
    """
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

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The exponential mechanism of Bassily, Smith and Thakurta (2014), as far as it can be run.

Draws from a fixed set of candidates. The paper draws from a grid; here the candidates are a few
thousand points of the ball, the same for all data. That is private for any number of coefficients,
and inaccurate for most: it is a cross-check of `skdp.solvers.ExactDraw`.

And the number of steps of the paper's grid walk, which nobody can run.
"""

import math
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from skdp.solvers.exponential import ExponentialDraw


class FiniteNet(ExponentialDraw):
    """A random draw that favours small losses, from a fixed set of candidates.

    Purely private: no delta is spent.

    Parameters
    ----------
    localize : bool, default=False
        With finite `C`: spend half of epsilon on a coarse minimiser, and draw near it.
    sparsity : int, default=None
        For classification: public bound on the number of non-zero features of a row; rows with
        more keep their largest entries. None: no bound.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1.

    See Also
    --------
    skdp.solvers.ExactDraw : A draw from the density itself, for at most five coefficients.

    Notes
    -----
    The number of candidates, at most 4,096, depends on the numbers of rows and coefficients.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, papers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2)) / 2
    >>> y = X[:, 0] > 0
    >>> model = DPLogisticRegression(
    ...     solver=papers.FiniteNet(), data_norm=1.0, coef_bound=10.0, classes=[False, True],
    ...     random_state=0,
    ... )
    >>> model.fit(X, y).score(X, y) > 0.85
    True
    """

    exact = False


@dataclass(frozen=True)
class GridWalkSteps:
    """Steps of the grid walk for one private release.

    Parameters
    ----------
    steps_per_call : float
        Steps of one walk over the grid.
    calls : float
        Number of walks until one ends in the constraint set.
    total_steps : float
        The product of both.
    """

    steps_per_call: float
    calls: float
    total_steps: float


def _check_grid_walk(name, number, kind, allowed, holds):
    """Raise a ValueError with the name of the parameter, unless it is a number in the range."""
    if isinstance(number, bool) or not isinstance(number, kind) or not holds(number):
        what = "an integer" if kind is Integral else "a number"
        raise ValueError(f"{name} must be {what} {allowed}; got {number!r}.")


def _walk_steps(edge, lipschitz, distance, p):
    """Return the steps of one walk over a cube ([1]_, Lemma 6.1, corrected).

    The log-density is `lipschitz`-Lipschitz in the Euclidean norm, so it varies by lipschitz *
    edge * sqrt(p) over the cube; the published bound lacks the square root.
    """
    cell = distance / (2 * lipschitz * math.sqrt(p))
    cell = edge / np.ceil(edge / cell)  # cells tile the cube
    conductance = distance / (8 * lipschitz * edge * p**1.5 * np.exp(distance / 2))
    log_rarest = lipschitz * edge * math.sqrt(p) + p * np.log(edge / cell)
    return np.ceil(1 + 4 / conductance**2 * (np.log(2 / distance) + log_rarest))


def grid_walk_steps(
    n_samples: int,
    n_features: int,
    lipschitz: float = 1.0,
    diameter: float = 2.0,
    epsilon: float = 1.0,
) -> GridWalkSteps:
    """Count the steps of the grid walk that the exact samplers replace.

    The polynomial-time algorithm for pure differential privacy of [1]_ draws from the exponential
    mechanism by a random walk on a grid (its Algorithms 5 to 7). This function evaluates the
    number of steps in its proof.

    Parameters
    ----------
    n_samples : int
        Number of records.
    n_features : int
        Number of parameters, an intercept included.
    lipschitz : float, default=1.0
        Lipschitz constant of the loss of one record. The count does not depend on it:
        the temperature of the mechanism is proportional to it.
    diameter : float, default=2.0
        Diameter of the constraint set, which contains the unit ball. A ball of any
        radius is first scaled to the unit ball, whose diameter is 2.
    epsilon : float, default=1.0
        Privacy parameter of the release.

    Returns
    -------
    steps : GridWalkSteps
        Has the attributes `steps_per_call`, the steps of one walk, `calls`, the number of walks,
        and `total_steps`, their product. They are infinite above the largest float.

    Raises
    ------
    ValueError
        If an argument is out of range.

    See Also
    --------
    skdp.DPLogisticRegression : Private logistic regression.

    Notes
    -----
    A third of `epsilon` is spent on the mechanism itself, the rest on the distance between the end
    of the walk and the stationary law. For this the walk must mix in *multiplicative* distance, on
    a grid whose cells are so fine that the density is nearly constant on each, and the bound on
    its mixing time is the inverse square of its conductance.

    Stopping earlier voids the guarantee: a walk within total variation distance t of its law gives
    (epsilon, (1 + e^epsilon) t)-differential privacy at best, and without a proof of mixing it
    gives none. No diagnostic of convergence is such a proof. This library therefore draws from the
    exponential mechanism by rejection, inversion and projection, which have no mixing time and
    exactly the target law.

    Three points of the published analysis are corrected: the smallest stationary probability has a
    square root of `n_features` in its exponent, the cells must tile the cube, and the logarithms
    in the number of walks have base 2.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.

    Examples
    --------
    A hundred records and one parameter take some 10^13 steps:

    >>> from skdp.papers import grid_walk_steps
    >>> steps = grid_walk_steps(n_samples=100, n_features=1)
    >>> f"{steps.steps_per_call:.1e}, {steps.total_steps:.1e}"
    '4.8e+11, 3.4e+13'
    """
    _check_grid_walk(
        "n_samples", n_samples, Integral, "from 1 to 10**15", lambda n: 1 <= n <= 10**15
    )
    _check_grid_walk(
        "n_features", n_features, Integral, "from 1 to 10**9", lambda n: 1 <= n <= 10**9
    )
    for name, number in {"lipschitz": lipschitz, "epsilon": epsilon}.items():
        _check_grid_walk(name, number, Real, "above 0 and finite", lambda x: 0 < x < math.inf)
    _check_grid_walk(
        "diameter", diameter, Real,
        "from 2 on and finite (scale the constraint set until it contains the unit ball)",
        lambda x: 2 <= x < math.inf,
    )  # fmt: skip
    n, p, diameter, epsilon = (np.float64(x) for x in (n_samples, n_features, diameter, epsilon))
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        # Algorithm 7: the loss times epsilon/(6 lipschitz diameter), distance epsilon/3
        eta, distance = n * epsilon / (6 * diameter), epsilon / 3
        # Algorithm 6: walks until one ends inside, each at a quarter of the distance
        misses = -np.log2(-np.expm1(-distance / 4))
        calls = np.ceil(4 * eta * diameter + p * np.log2(diameter) + misses)
        # Algorithm 5: a penalty outside the set, half of what is left of the distance
        distance /= 4
        penalty = 3 * np.exp(2 * distance) * (eta * diameter + p)
        steps = _walk_steps(diameter, eta + penalty, distance / 2, p)
        return GridWalkSteps(float(steps), float(calls), float(steps * calls))

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private quantiles of every feature, drawn by rank on a public grid.

One feature after another gets an equal share of epsilon. The query, `QuantileRank`, is in
`skdp._quantiles`.
"""

import math
from fractions import Fraction
from numbers import Real
from typing import Self

import numpy as np

from skdp._gate import Doubts, open_gate
from skdp._groups import PARTS, check_groups, resolve_groups, shares
from skdp._quantiles import (
    COARSEST,
    GRID_CELLS,
    Ladder,
    LadderRows,
    QuantileRank,
    RankRows,
    finest_ladder,
)
from skdp._rows.base import bounds_of
from skdp._sklearn import SHARED_CONSTRAINTS, Interval, fit_context, validate_private_data
from skdp._typing import Adjacency, Bounds, Budget, MatrixLike, Seed, VectorLike
from skdp.location._base import LocationEstimator
from skdp.location._range import UNLIKELY, say_of_ends, some_of
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_epsilon
from skdp.privacy.laws.exponential import ExponentialMechanism

# Quantiles are fractions with denominators up to this, so that scores are integers.
_FINEST = 10**6


def check_quantile(quantile, finest=_FINEST):
    """Return the nearest fraction strictly between 0 and 1 with a denominator of at most that."""
    if not 0 < quantile < 1:
        raise ValueError(f"quantile must be greater than 0 and less than 1; got {quantile!r}.")
    tau = Fraction(float(quantile)).limit_denominator(finest)
    return min(max(tau, Fraction(1, finest)), 1 - Fraction(1, finest))


def ladder_for(tau, epsilon, adjacency, shape):
    """Return the floats among which quantiles are drawn, by public numbers.

    Parameters
    ----------
    tau : Fraction
        Which quantile.
    epsilon : float
        Price of all coordinates together.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    shape : tuple of (int, int)
        Numbers of rows and coordinates.
    """
    away = _ranks_away(tau, adjacency, shape) * epsilon
    return finest_ladder(away, UNLIKELY) or Ladder(COARSEST, signed=True)


def _ranks_away(tau, adjacency, shape):
    """Return the ranks between a quantile and the nearer end, in temperatures at epsilon=1."""
    worst = max(tau, 1 - tau)
    spread = float(2 * worst) if adjacency == "zero-out" else 2.0
    return shape[0] * float(1 - worst) / (spread * shape[1])


def ranked_rows(X, grid, weight=None):
    """Return rows on a grid.

    Parameters
    ----------
    X : ndarray or RowStream of shape (n_rows, n_features)
        Rows.
    grid : Ladder, or tuple of ndarray of shape (n_features,)
        Floats, or public bounds (lower, upper) of equally spaced points.
    weight : ndarray of shape (n_rows,), default=None
        What rows count; None for 1 each.
    """
    if isinstance(grid, Ladder):
        return LadderRows(X, grid, weight=weight)
    return RankRows(X, *grid, weight=weight)


def release_quantiles(curator, tau, grid, epsilon, shape):
    """Release one quantile of every coordinate.

    Parameters
    ----------
    curator : Curator
        Holds what `ranked_rows` made.
    tau : Fraction
        Which quantile.
    grid : Ladder, or tuple of ndarray of shape (n_features,)
        That of the rows.
    epsilon : float
        Price of all coordinates together.
    shape : tuple of (int, int)
        Numbers of rows and coordinates.

    Returns
    -------
    location : ndarray of shape (n_features,)
        The quantiles.
    error_bound : float
        With probability 0.99 or more, the rank of every one of them is off by at most
        this fraction of the rows.

    Notes
    -----
    Bound. Some position has score 0: the intervals from the rows below to the rows not
    above cover [0, m]. So a score above ``s`` has probability at most ``N exp(-s / temperature)``,
    N the number of positions, twice that if one is heavy (McSherry and Talwar 2007). Set that to
    0.01 over the number of coordinates.
    """
    n_rows, n_features = shape
    mechanism = ExponentialMechanism(_share(epsilon, n_features))
    ladder = grid if isinstance(grid, Ladder) else None
    query = ladder.query if ladder else QuantileRank
    drawn = np.array(
        [curator.release(query(column, tau), mechanism)[0] for column in range(n_features)]
    )
    if ladder:
        location = ladder.values(drawn)
    else:
        lower, upper = grid
        cell = (upper - lower) / GRID_CELLS
        location = _shortest(lower + (upper - lower) * (drawn / GRID_CELLS), cell)
        location = np.clip(location, lower, upper)
    temperature = curator.ledger.releases[-1].noise.scale
    points = 2 * (ladder.cells + 1) if ladder else GRID_CELLS + 1
    unlikely = math.log(100 * n_features * points)
    worst = float(max(tau, 1 - tau))
    return location, min(unlikely * temperature / n_rows, worst)


# fewer ranks between a quantile and an end of the rows, in temperatures of a draw, hardly hold it
_FEWEST = Ladder(COARSEST, signed=True).needed(UNLIKELY)


def say_of_quantiles(doubts, tau, epsilon, adjacency, shape, unit="row"):
    """Take note of quantiles that too few rows lie beyond; public numbers alone decide."""
    away = _ranks_away(tau, adjacency, shape) * epsilon
    if away < _FEWEST:
        doubts.noise(
            f"{shape[0]} {unit}s at epsilon={epsilon:.4g} are too few for the {float(tau):.4g}-"
            f"quantile of {shape[1]} feature(s): what is released is mostly noise. Use some "
            f"{math.ceil(shape[0] * _FEWEST / away)} {unit}s or a larger epsilon, and bounds that "
            "are as tight as they are known to be."
        )


def say_of_grid(doubts, location, grid):
    """Take note of released values at an end of their grid, but for 0, a true bound of many."""
    if isinstance(grid, Ladder):
        say_of_ends(doubts, location)
        return
    reached = (location <= grid[0]) | (location >= grid[1])
    on = np.flatnonzero(reached & (location != 0))
    if len(on):
        doubts.noise(
            f"what was released of feature(s) {some_of(on)} lies on a bound, to which values are "
            "clipped: they may lie beyond. Give wider bounds if that is known to be so, or none: "
            "ranks need no bounds."
        )


def _share(epsilon, n_parts):
    """Return the largest float of which n_parts are no more than epsilon."""
    part = epsilon / n_parts
    return math.nextafter(part, 0.0) if n_parts * Fraction(part) > Fraction(epsilon) else part


def _shortest(values, cell):
    """Return, within half a cell of every value, the decimal with the fewest digits.

    Rows in one cell of the grid are tied; the released cell says no more than that. Data
    are decimals more often than fractions of the bounds: so a tie is hit exactly.
    """
    # powers of ten beyond 22 are not floats
    with np.errstate(all="ignore"):
        finest, coarsest = np.clip(np.log10([cell.min(), cell.max() * GRID_CELLS]), -22, 22)
        found = values
        for digits in range(math.ceil(-finest), math.floor(-coarsest) - 1, -1):
            near = np.round(values, digits)
            found = np.where(np.abs(near - values) <= cell / 2, near + 0.0, found)
    return found


class DPQuantile(LocationEstimator):
    """Differentially private quantile of every feature.

    The exponential mechanism draws a value by how far its rank is from the quantile's,
    on a public grid of 2^30 cells between the bounds, or among floats of all magnitudes. It is
    purely epsilon-DP, exact, and indifferent to ties, to outliers and to how wide the bounds are.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0; every feature gets an equal share.
    quantile : float, default=0.5
        Which quantile, strictly between 0 and 1; 0.5 is the median.
    adjacency : {"replace-one", "zero-out"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), or in one row that is
        replaced by a null row ("zero-out"). The number of rows is public in both.
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=None
        Public bounds: a pair (lower, upper) of numbers or arrays of shape (n_features,), or a pair
        for every feature, in order or by name. Values outside are clipped. A null row is not
        counted. None draws among floats of all magnitudes, from 1e-38 to 3e38: all of single
        precision, if rows and budget allow (130 rows at ``epsilon=1`` for the median of one
        feature), or fewer, down to 8 to a power of two.
    budget : PrivacyBudget, default=None
        A budget that several fits share: each is charged (epsilon, delta) before it reads a
        row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise
        reproducible, voids the guarantee towards whoever knows it, and warns.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        The released quantiles: in each chosen cell of the grid, the shortest decimal.
    error_bound_ : float
        With probability 0.99 or more, the rank of every released quantile is off by at
        most this fraction of the rows. It follows from public numbers.
    ledger_ : Ledger
        What was released, at what price.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent; delta is 0.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    Warns
    -----
    PrivacyWarning
        If a promise is next to none.
    NoisyEstimateWarning
        If too few rows lie beyond the quantile for the budget, by public numbers, or a released
        value lies on its bound.

    See Also
    --------
    DPMedian : Medians of whole rows.
    DPMean : Private mean.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, whose rows count one together. The
    number of rows or groups, the number and names of features and all parameters are public. The
    score of a value is the distance, in ranks, to the quantile; between neighbours its change stays
    in an interval of length 2 under replace-one and 2 max(quantile, 1 - quantile) under zero-out.
    Timing, exceptions on malformed input and `score` on private data are not covered.

    References
    ----------
    .. [1] F. McSherry and K. Talwar, "Mechanism design via differential privacy",
       FOCS 2007.
    .. [2] A. Smith, "Privacy-preserving statistical estimation with optimal convergence
       rates", STOC 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.location import DPQuantile
    >>> incomes = np.random.default_rng(0).lognormal(3, 1, size=(1000, 1))
    >>> top = DPQuantile(epsilon=1.0, quantile=0.9, bounds=(0, 1e4), random_state=0).fit(incomes)
    >>> bool(55 < top.location_[0] < 95)
    True
    >>> top.privacy_spent_
    (1.0, 0.0)
    >>> anywhere = DPQuantile(epsilon=1.0, quantile=0.9, random_state=0).fit(incomes)
    >>> bool(55 < anywhere.location_[0] < 95)
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        **{
            name: SHARED_CONSTRAINTS[name]
            for name in ("epsilon", "adjacency", "budget", "random_state")
        },
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "bounds": [tuple, list, dict, np.ndarray, None],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        quantile: float = 0.5,
        adjacency: Adjacency = "replace-one",
        bounds: Bounds | None = None,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.quantile = quantile
        self.adjacency = adjacency
        self.bounds = bounds
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None, *, groups: VectorLike | None = None) -> Self:
        """Release the quantiles.

        Parameters
        ----------
        X : array-like or RowStream of shape (n_samples, n_features)
            Private rows. A stream is read once for as many columns as fit in 256 MiB, with 4
            bytes for every value: its position on the grid. A draw takes up to 70 bytes a row
            for a moment, if no two values are equal.
        y : None
            Ignored.
        groups : array-like or RowStream of shape (n_samples,), default=None
            Whose row it is: numbers, or text. All rows of a group are protected together, whatever
            their number, and count as one row does, each as one over their number: what is released
            is a quantile of all rows, in which every group has the same weight. The number of
            groups is public. Beside a stream of rows also one of identifiers, or an array. None
            protects rows. See :ref:`groups`.

        Returns
        -------
        self : DPQuantile
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable; nothing has been released then.
        BudgetError
            If a shared budget has less left, or protects groups and there are none.
        """
        check_groups(self, groups)
        # 1. price, before any data
        epsilon = check_epsilon(self.epsilon)
        tau = check_quantile(self.quantile)
        # 2. validate
        X = validate_private_data(self, X, streams=True)
        (n_rows, unit), whose = resolve_groups(groups, X)
        n_features = X.shape[1]
        # 3. plan, from public facts
        if unit == "group":
            # ranks in parts of one, times the denominator, are integers of 64 bits
            tau = check_quantile(self.quantile, min(_FINEST, 2**62 // (PARTS * n_rows)))
        bounds = None if self.bounds is None else bounds_of(self, n_features)
        shape = n_rows, n_features
        grid = ladder_for(tau, epsilon, self.adjacency, shape) if bounds is None else bounds
        doubts = Doubts(type(self).__name__)
        say_of_quantiles(doubts, tau, epsilon, self.adjacency, shape, unit)
        # 4. gate, 5. run
        with open_gate(
            self,
            lambda: ranked_rows(X, grid, shares(unit, whose)),
            n_rows=n_rows,
            unit=unit,
            delta=0.0,
            doubts=doubts,
        ) as curator:
            location, bound = release_quantiles(curator, tau, grid, epsilon, shape)
            say_of_grid(doubts, location, grid)
        # 6. attributes: what was released, and what is public
        self.location_, self.error_bound_ = location, bound
        return self

    def score(self, X: MatrixLike, y: object = None) -> float:
        """Return minus the mean pinball loss of the released quantiles, summed over features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. If they are private, so is the score: it is not covered.
        y : None
            Ignored.

        Returns
        -------
        score : float
            At most 0; higher is better. Its expectation is highest at the true quantiles.
        """
        X = self._check(X).astype(np.float64, copy=False)
        # a loss that overflows is infinite
        with np.errstate(over="ignore", under="ignore"):
            gaps = X - self.location_
            losses = np.maximum(self.quantile * gaps, (self.quantile - 1) * gaps)
            return -float((losses / len(X)).sum())

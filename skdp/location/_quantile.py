# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private quantiles of every feature, drawn by rank on a public grid.

One feature after another gets an equal share of epsilon. Several quantiles of a feature are found
by halving: one splits the rows in two parts, in each of which another one is drawn, both at the
price of one (Kaplan, Schnapp and Stemmer 2022). The queries, `QuantileRank` and `PartRanks`, are in
`skdp._quantiles`.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Self

import numpy as np

from skdp._counted import PARTS, check_groups, count_rows, counts_of, hidden_count
from skdp._gate import Doubts, open_gate
from skdp._quantiles import (
    COARSEST,
    GRID_CELLS,
    Ladder,
    LadderRows,
    PartRank,
    PartRanks,
    QuantileRank,
    RankRows,
    finest_ladder,
)
from skdp._rows.base import bounds_of
from skdp._rows.streams import whole_columns
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    fit_context,
    validate_private_data,
)
from skdp._typing import Adjacency, ArrayLike, Bounds, Budget, MatrixLike, Seed, VectorLike
from skdp.location._base import LocationEstimator, shares_of_score
from skdp.location._range import UNLIKELY, say_of_ends
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_epsilon
from skdp.privacy.laws.exponential import ExponentialMechanism

# Quantiles are fractions with denominators up to this, so that scores are integers.
_FINEST = 10**6


def check_quantile(quantile, finest=_FINEST, name="quantile"):
    """Return the nearest fraction strictly between 0 and 1 with a denominator of at most that."""
    if isinstance(quantile, str | None) or not 0 < quantile < 1:
        raise ValueError(f"{name} must be greater than 0 and less than 1; got {quantile!r}.")
    tau = Fraction(float(quantile)).limit_denominator(finest)
    return min(max(tau, Fraction(1, finest)), 1 - Fraction(1, finest))


def check_quantiles(quantile, finest=_FINEST, name="quantile"):
    """Return the distinct fractions of one quantile or several, sorted, and the place of each."""
    if np.ndim(quantile) > 1 or not np.size(quantile):
        raise ValueError(f"{name} must be a number, or a list of numbers; got {quantile!r}.")
    given = [check_quantile(one, finest, name) for one in np.ravel(quantile).tolist()]
    taus = tuple(sorted(set(given)))
    return taus, [taus.index(tau) for tau in given]


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


def even_grid(lower, upper, whole=False):
    """Return equally spaced points between public bounds: (lower, upper, cells) for every column.

    Where values are whole numbers, they are the whole numbers. On a finer grid there are a million
    points between two of these, all of which nearly have the rank of the one that many rows share.
    """
    low, high = np.ceil(lower), np.floor(upper)
    whole = whole & (high > low) & (high - low <= GRID_CELLS)
    low, high = np.where(whole, low, lower), np.where(whole, high, upper)
    return low, high, np.where(whole, high - low, GRID_CELLS).astype(np.int64)


def cells_in(grid, column):
    """Return the cells of a column's grid."""
    return grid.cells if isinstance(grid, Ladder) else int(grid[2][column])


def ranked_rows(X, grid, weight=None):
    """Return rows on a grid.

    Parameters
    ----------
    X : ndarray or RowStream of shape (n_rows, n_features)
        Rows.
    grid : Ladder, or tuple of ndarray of shape (n_features,)
        Floats, or what `even_grid` returns.
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
    columns = range(n_features)
    queries = (
        ladder.query(column, tau) if ladder else QuantileRank(column, tau, cells_in(grid, column))
        for column in columns
    )
    drawn = np.array([curator.release(query, mechanism)[0] for query in queries])
    location = values_on(grid, drawn)
    temperature = curator.ledger.releases[-1].noise.scale
    points = (1 + bool(ladder)) * (max(cells_in(grid, column) for column in columns) + 1)
    unlikely = math.log(100 * n_features * points)
    worst = float(max(tau, 1 - tau))
    return location, min(unlikely * temperature / n_rows, worst)


def values_on(grid, positions):
    """Return the values at positions of a grid, one of each coordinate."""
    if isinstance(grid, Ladder):
        return grid.values(positions)
    lower, upper, cells = grid
    cell = (upper - lower) / cells
    location = _shortest(lower + (upper - lower) * (positions / cells), cell)
    return np.clip(location, lower, upper)


# Several quantiles of every feature.

# bits of the places in a position, at most: weights of runs stay below 2^52
_MOST_BITS = 19


@dataclass(frozen=True)
class QuantilesPlan:
    """In which order several quantiles are found, from public numbers alone.

    Parameters
    ----------
    taus : tuple of Fraction
        Distinct quantiles, sorted.
    levels : tuple of tuple of (Fraction, Fraction, Fraction)
        For every level the parts whose quantile is drawn: the quantiles between which a part lies,
        0 and 1 among them, and the one that is drawn.
    spreads : tuple of float
        What a row can change at every level.
    """

    taus: tuple[Fraction, ...]
    levels: tuple[tuple[tuple[Fraction, Fraction, Fraction], ...], ...]
    spreads: tuple[float, ...]

    @classmethod
    def made(cls, taus, adjacency):
        """Return the plan of sorted quantiles: the middle one first, then that of either half."""
        levels, groups = [], [(Fraction(0), Fraction(1), taus)]
        while groups:
            level, smaller = [], []
            for low, high, inner in groups:
                middles = sorted({(len(inner) - 1) // 2, len(inner) // 2})
                one = min(middles, key=lambda i: abs(2 * inner[i] - low - high))
                tau = inner[one]
                level.append((low, tau, high))
                smaller.append((low, tau, inner[:one]))
                smaller.append((tau, high, inner[one + 1 :]))
            levels.append(tuple(level))
            groups = [group for group in smaller if group[2]]
        spreads = tuple(_spread_of_level(level, adjacency) for level in levels)
        return cls(tuple(taus), tuple(levels), spreads)

    @property
    def total(self):
        """The sum of the spreads: what a feature's temperature is times its epsilon."""
        return sum(self.spreads)

    def ranks_away(self, shape):
        """Return the ranks between quantiles and the ends, in temperatures at epsilon=1."""
        nearest = float(min(self.taus[0], 1 - self.taus[-1]))
        return shape[0] * nearest / (self.total * shape[1])

    def run(self, curator, grid, epsilon, shape):
        """Release the quantiles; see `release_several`."""
        return release_several(curator, self, grid, epsilon, shape)


@dataclass(frozen=True)
class QuantilesInTurn:
    """Several quantiles, each drawn from all rows, with an equal share of the budget.

    Parameters
    ----------
    taus : tuple of Fraction
        Distinct quantiles, sorted.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    """

    taus: tuple[Fraction, ...]
    adjacency: str

    @property
    def total(self):
        """The sum of the spreads, as of `QuantilesPlan`."""
        if self.adjacency != "zero-out":
            return 2.0 * len(self.taus)
        return float(len(self.taus) * 2 * max(max(tau, 1 - tau) for tau in self.taus))

    def ranks_away(self, shape):
        """Return the ranks between quantiles and the ends, in temperatures at epsilon=1."""
        away = min(_ranks_away(tau, self.adjacency, shape) for tau in self.taus)
        return away / len(self.taus)

    def run(self, curator, grid, epsilon, shape):
        """Release the quantiles; see `release_several`."""
        share = _share(epsilon, len(self.taus))
        drawn = [release_quantiles(curator, tau, grid, share, shape) for tau in self.taus]
        # the order that they have: no rank is off by more than before
        return np.sort([one for one, _ in drawn], axis=0), max(bound for _, bound in drawn)


def quantiles_of_parts(quantile, most):
    """Return what `check_quantiles` does, for at most so many rows, or groups, that count in parts.

    Ranks in parts of one, times the denominator, are integers of 64 bits.
    """
    return check_quantiles(quantile, min(_FINEST, 2**62 // (PARTS * most)))


def plan_quantiles(taus, adjacency, alone):
    """Return how several quantiles are found, from public facts alone.

    Rows that count less than 1, or may move up, are no matter of a single part: where rows do not
    stand `alone`, each counting 1 in its place, quantiles are drawn one after another.
    """
    in_turn = QuantilesInTurn(taus, adjacency)
    if len(taus) == 1 or not alone:
        return in_turn
    halves = QuantilesPlan.made(taus, adjacency)
    return halves if halves.total < in_turn.total else in_turn


def _part_tau(low, tau, high):
    """Return which quantile of its part a quantile is."""
    return check_quantile((tau - low) / (high - low))


def _spread_of_level(level, adjacency):
    """Return what a row can change at a level; see `PartRanks`."""
    parts = tuple(PartRank(0, _part_tau(*one), -1, 1, 1) for one in level)
    return PartRanks(parts, 1).sensitivity(adjacency, 1).spread


def release_several(curator, plan, grid, epsilon, shape):
    """Release several quantiles of every coordinate.

    Parameters
    ----------
    curator, grid, epsilon, shape : object
        As for `release_quantiles`.
    plan : QuantilesPlan
        Which, and in which order.

    Returns
    -------
    location : ndarray of shape (n_quantiles, n_features)
        The quantiles, none below the one before.
    error_bound : float
        As for `release_quantiles`, for all of them.

    Notes
    -----
    Every level has the same temperature. The rank of a quantile is off by what the farther end of
    its part is, and by its own draw: so the bounds of the levels add up.
    """
    n_rows, n_features = shape
    ladder = grid if isinstance(grid, Ladder) else None
    heavy = (ladder.zero, ladder.cells) if ladder else None
    bits = min(n_rows.bit_length() + 1, _MOST_BITS)
    share = _share(epsilon, n_features)
    laws = [ExponentialMechanism(price) for price in _prices_of_levels(share, plan.spreads)]
    drawn, temperature = np.empty((len(plan.taus), n_features)), 0.0
    for column in range(n_features):
        cells = cells_in(grid, column)
        found = {Fraction(0): -1, Fraction(1): ((cells + 1) << bits) - 1}
        for level, law in zip(plan.levels, laws, strict=True):
            parts = tuple(
                PartRank(column, _part_tau(low, tau, high), found[low], found[high], bits, heavy)
                for low, tau, high in level
            )
            pairs = curator.release(PartRanks(parts, cells), law).reshape(-1, 2)
            temperature = max(temperature, curator.ledger.releases[-1].noise.scale)
            for (_, tau, _), (position, place) in zip(level, pairs.astype(np.int64), strict=True):
                found[tau] = (int(position) << bits) + int(place)
        drawn[:, column] = [found[tau] >> bits for tau in plan.taus]
    points = 2 * (max(cells_in(grid, column) for column in range(n_features)) + 1) << bits
    unlikely = len(laws) * math.log(100 * drawn.size * points)
    worst = float(max(plan.taus[-1], 1 - plan.taus[0]))
    location = np.array([values_on(grid, positions) for positions in drawn])
    return location, min(unlikely * temperature / n_rows, worst)


def _prices_of_levels(epsilon, spreads):
    """Return shares of epsilon in proportion to spreads, the sum of which is no more."""
    total = sum(map(Fraction, spreads))
    exact = [Fraction(epsilon) * Fraction(spread) / total for spread in spreads]
    prices = [float(price) for price in exact]
    lower = [math.nextafter(price, 0.0) for price in prices]
    return lower if sum(map(Fraction, prices)) > Fraction(epsilon) else prices


# fewer ranks between a quantile and an end of the rows, in temperatures of a draw, hardly hold it
# anywhere, and not between bounds that the rows fill. In bounds that are exp(k) times as wide as
# the rows k more are needed: of even rows, one or more of five quantiles lay beyond in 0 to 15 % of
# the draws at .5 exp(k), in half of them at 3 to 5 exp(k)
_FEWEST, _FEWEST_IN_BOUNDS = Ladder(COARSEST, signed=True).needed(UNLIKELY), 6.0


def say_of_quantiles(doubts, tau, epsilon, adjacency, shape, unit, grid):
    """Take note of quantiles that too few rows lie beyond; public numbers alone decide."""
    away = _ranks_away(tau, adjacency, shape) * epsilon
    what = f"the {float(tau):.4g}-quantile of {shape[1]} feature(s)"
    say_of_ranks(doubts, what, away, epsilon, shape[0], unit, grid)


def say_of_ranks(doubts, what, away, epsilon, n_rows, unit, grid):
    """Take note if so many ranks beyond quantiles, in temperatures, are too few on a grid."""
    bounded, fewest = not isinstance(grid, Ladder), _FEWEST
    if bounded:
        # bounds of whole numbers are no wider than so many of them
        fewest = min(fewest, _FEWEST_IN_BOUNDS + math.log(int(np.max(grid[2])) + 1))
    if away >= fewest:
        return
    found = "is mostly noise"
    if bounded and away >= _FEWEST_IN_BOUNDS:
        times = float(f"{math.exp(away - _FEWEST_IN_BOUNDS):.1g}")
        found = f"is noise if bounds are more than some {times:,.0f} times as wide as the rows"
    tight = "and the tightest bounds" if bounded else "or give the tightest bounds"
    doubts.noise(
        f"{n_rows} {unit}s at epsilon={epsilon:.4g} are too few for {what}: the result "
        f"{found}. Use about {math.ceil(n_rows * fewest / away)} {unit}s or a larger epsilon, "
        f"{tight} that are known to hold."
    )


def say_of_grid(doubts, location, grid, named=None):
    """Take note of released values at an end of their grid, but for 0, a true bound of many."""
    location = np.atleast_2d(location)
    if isinstance(grid, Ladder):
        say_of_ends(doubts, np.abs(location).max(axis=0), named)
        return
    reached = (location <= grid[0]) | (location >= grid[1])
    on = np.flatnonzero((reached & (location != 0)).any(axis=0))
    if len(on):
        called = (named or doubts.named)(on)
        doubts.noise(
            f"the result for feature(s) {called} lies on a bound, to which values are clipped: "
            "they may lie beyond it. Give wider bounds if you know that they do, or no bounds: "
            "ranks need none."
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

    The exponential mechanism draws a value by the distance of its rank to that of the quantile, on
    a public grid of 2^30 cells between the bounds, or among floats of all magnitudes. It is purely
    epsilon-DP, exact, and insensitive to ties, outliers and wide bounds.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0; every feature gets an equal share.
    quantile : float or array-like of float, default=0.5
        Quantile, strictly between 0 and 1; 0.5 is the median. Several are found together: the
        middle one splits the rows in two parts, in each of which the next is drawn, at the price
        of one [3]_. Nine deciles are four such steps, not nine.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in the presence of a row ("add-remove", where the number of rows is
        released first; otherwise it is public). See :ref:`adjacency`.
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=None
        Public bounds: a pair (lower, upper) of numbers or arrays of shape (n_features,), or a pair
        for every feature, in order or by name. Values outside are clipped. A null row is not
        counted. Of columns whose type is one of whole numbers or flags, whole numbers are drawn,
        with far less error where rows are tied. None draws among floats of all magnitudes, from
        1e-38 to 3e38: all of single precision, if rows and budget allow (130 rows at ``epsilon=1``
        for the median of one feature), or fewer, down to 8 to a power of two.
    max_weight : float, default=None
        Public bound on weights of rows, in [1e-50, 1e50]; larger weights are clipped to it. None:
        `fit` takes no weights (:ref:`sample_weight`).
    budget : PrivacyBudget, default=None
        A budget shared by several fits. Each fit is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise reproducible, voids
        the guarantee towards anybody who knows it, and warns.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,) or (n_quantiles, n_features)
        The released quantiles: in each chosen cell of the grid, the shortest decimal. A row for
        each of several quantiles; none is below that of a smaller quantile.
    error_bound_ : float
        With probability 0.99 or more, the rank of every released quantile is off by at
        most this fraction of the rows. It follows from public numbers.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent; delta is 0.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    Warns
    -----
    PrivacyWarning
        If epsilon or delta is too large.
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
    number of rows or groups (a secret under add-remove), the number and names of features and all
    parameters are public. The score of a value is the distance, in ranks, to the quantile; between
    neighbours its change stays in an interval of length 2 under replace-one and 2 max(quantile, 1 -
    quantile) under zero-out. Of several quantiles a row is in one part at a time, so that the draws
    of a step are one release (Proposition 89 of the guide); with `groups` they are drawn one after
    another. Timing, exceptions on malformed input and `score` on private data are not covered.

    References
    ----------
    .. [1] F. McSherry and K. Talwar, "Mechanism design via differential privacy",
       FOCS 2007.
    .. [2] A. Smith, "Privacy-preserving statistical estimation with optimal convergence
       rates", STOC 2011.
    .. [3] H. Kaplan, S. Schnapp and U. Stemmer, "Differentially private approximate quantiles",
       ICML 2022.

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
    >>> quartiles = DPQuantile(quantile=[0.25, 0.5, 0.75], random_state=0).fit(incomes).location_
    >>> quartiles.shape, bool(15 < quartiles[1, 0] < 25)
    ((3, 1), True)
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
        "quantile": [Interval(Real, 0, 1, closed="neither"), "array-like"],
        "bounds": [tuple, list, dict, np.ndarray, None],
        "max_weight": SCALE_OR_NONE,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        quantile: float | ArrayLike = 0.5,
        adjacency: Adjacency = "replace-one",
        bounds: Bounds | None = None,
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.quantile = quantile
        self.adjacency = adjacency
        self.bounds = bounds
        self.max_weight = max_weight
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        *,
        groups: VectorLike | None = None,
        sample_weight: VectorLike | None = None,
    ) -> Self:
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
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of the rows, finite and not negative; only with `max_weight`. Larger
            weights are clipped to it. A twentieth of epsilon is for their noisy total. See
            :ref:`sample_weight`.

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
        taus, places = check_quantiles(self.quantile)
        # 2. validate
        whole = whole_columns(X)
        X = validate_private_data(self, X, streams=True)
        # 3. plan, from public facts
        n_features, hidden = X.shape[1], hidden_count(self)
        ends = None if self.bounds is None else bounds_of(self, n_features)
        (n_rows, unit), whose = count_rows(groups, X, hidden, sample_weight)
        if unit == "group" or hidden is not None:
            most = n_rows if hidden is None else hidden.most
            taus, places = quantiles_of_parts(self.quantile, most)
        shape = n_rows, n_features
        plan = plan_quantiles(taus, self.adjacency, unit == "row" and hidden is None)
        away = plan.ranks_away(shape) * epsilon
        ladder = finest_ladder(away, UNLIKELY) or Ladder(COARSEST, signed=True)
        grid = ladder if ends is None else even_grid(ends[0], ends[1], whole)
        doubts = Doubts(self)
        what = f"the {float(taus[0]):.4g}-quantile" if len(taus) == 1 else f"{len(taus)} quantiles"
        what += f" of {shape[1]} feature(s)"
        say_of_ranks(doubts, what, away, epsilon, n_rows, unit, grid)
        # 4. gate, 5. run
        with open_gate(
            self,
            lambda: ranked_rows(X, grid, counts_of(whose)),
            n_rows=n_rows,
            unit=unit,
            delta=0.0,
            doubts=doubts,
        ) as curator:
            location, bound = plan.run(curator, grid, epsilon, shape)
            say_of_grid(doubts, location[places], grid)
        # 6. attributes: what was released, and what is public
        if grid is ladder:
            location = np.where(whole, np.rint(location), location)
        self.location_ = location[places if np.ndim(self.quantile) else 0]
        self.error_bound_ = bound
        return self

    def score(
        self, X: MatrixLike, y: object = None, sample_weight: VectorLike | None = None
    ) -> float:
        """Return minus the mean pinball loss, summed over quantiles and features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. If they are private, so is the score: it is not covered.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            What rows count in the mean, not negative; None is 1 each.

        Returns
        -------
        score : float
            At most 0; higher is better. Its expectation is highest at the true quantiles.
        """
        X = self._check(X).astype(np.float64, copy=False)
        shares = shares_of_score(sample_weight, X)
        # a loss that overflows is infinite
        with np.errstate(over="ignore", under="ignore"):
            total = 0.0
            for quantile, location in zip(
                np.ravel(self.quantile), np.atleast_2d(self.location_), strict=True
            ):
                gaps = X - location
                losses = np.maximum(quantile * gaps, (quantile - 1) * gaps)
                total += float((losses * shares[:, None]).sum())
            return -total

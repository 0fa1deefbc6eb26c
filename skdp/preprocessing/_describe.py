# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A private ``DataFrame.describe``: all columns of a table within one budget.

Counts of categories and of values that are there come first; then quantiles of numbers and dates,
between public bounds and without; and last moments, in a box that follows from these. Public
numbers say which quantiles can be known without bounds: no other is drawn.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator

from skdp._counted import (
    CellCounts,
    check_groups,
    count_rows,
    counts_of,
    hidden_count,
    largest_weight,
)
from skdp._gate import Doubts, open_gate
from skdp._quantiles import COARSEST, Ladder, LadderRows, RankRows, finest_ladder
from skdp._rows.base import Box
from skdp._rows.columns import FeatureRows
from skdp._rows.streams import name_of_type, types_in
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    effective_n_threads,
    fit_context,
    validate_private_data,
)
from skdp._typing import Adjacency, ArrayLike, Budget, MatrixLike, Seed, VectorLike
from skdp.location._clipped_mean import BoxRows
from skdp.location._histogram import empty_lists
from skdp.location._quantile import (
    check_quantiles,
    even_grid,
    plan_quantiles,
    quantiles_of_parts,
    say_of_grid,
    say_of_ranks,
)
from skdp.location._range import FINEST_WIDTH, LEVEL_OF_COUNTS, NO_COUNT
from skdp.preprocessing._standard_scaler import MomentSum, reach_at
from skdp.preprocessing._table import (
    column_numbers,
    column_of,
    column_values,
    column_words,
    word_places,
)
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_epsilon
from skdp.privacy.laws.additive import LaplaceMechanism

# shares of a column: the quantiles of a number, its moments, the count of its values that are
# there; and the counts of categories
_QUANTILES, _MOMENTS, _PRESENT, _CATEGORIES = 2.0, 1.0, 0.25, 1.0
_FLAGS = ("False", "True")
# where the spread of a column is read if the outer ones of the percentiles cannot be known
_QUARTILES = Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)
# bound on the failure of a draw that is put up with: see `Ladder.needed`; columns are many
_WILD = 1e-4
# days of the first and the last date that there is, and how many months lie between
_CALENDAR, _MONTHS = (-719_162.0, 2_932_896.0), 119_988
_DAY = 86_400


@dataclass(frozen=True)
class Drawn:
    """Which quantiles of some columns are drawn, among what; public numbers only.

    Parameters
    ----------
    chosen : tuple of int
        Positions of the columns.
    taus : tuple of Fraction
        Quantiles; none if none can be known.
    enough, least : int
        Rows, or groups, for which all that were asked for could be known, or quartiles.
    ladder : Ladder or None
        Floats of all magnitudes; None between public ends.
    """

    chosen: Any
    taus: Any
    enough: int = 0
    least: int = 0
    ladder: Any = None

    @property
    def level(self):
        """Part of the rows that lie between the outermost quantiles."""
        return float(self.taus[-1] - self.taus[0])


def _that_can_be_known(taus, chosen, planned, price, n_rows, dates=False):
    """Return what can be known of columns without bounds: the outermost quantiles go first.

    Parameters
    ----------
    taus : tuple of Fraction
        What was asked for.
    chosen, price, n_rows : tuple of int, float, int
        Columns, their budget, and the number of rows or groups.
    planned : callable
        Returns how quantiles are found.
    dates : bool, default=False
        Whether the columns are dates.
    """

    def away(some):
        return planned(some).ranks_away((n_rows, len(chosen))) * price

    # a month can be told from others, or a float of three bits
    needed = math.log(2 * _MONTHS / _WILD)
    if not dates:
        needed = Ladder(COARSEST, signed=True).needed(_WILD)
    enough, least = (math.ceil(n_rows * needed / away(some)) for some in (taus, _QUARTILES))
    kept = taus
    while len(kept) > 1 and away(kept) < needed:
        nearest = min(kept[0], 1 - kept[-1])
        kept = tuple(tau for tau in kept if min(tau, 1 - tau) > nearest)
    if len(kept) < 2:
        kept = _QUARTILES if away(_QUARTILES) >= needed else ()
    ladder = None if dates or not kept else finest_ladder(away(kept), _WILD)
    return Drawn(chosen, kept, enough, min(enough, least), ladder)


def _of_those_there(draw, taus, planned, price, present):
    """Return the draw of columns without bounds, anew by the numbers of values that are there.

    Parameters
    ----------
    draw, taus, planned : Drawn, tuple of Fraction, callable
        As in `_that_can_be_known`.
    price : float
        For a column.
    present : ndarray of shape (n_numbers,)
        Released numbers of values, or those of rows.

    Returns
    -------
    draws : list of Drawn
        Columns of which the same is drawn together.
    """
    alike: dict[Any, list[int]] = {}
    dates = draw.ladder is None
    for k in draw.chosen:
        own = _that_can_be_known(taus, (k,), planned, price, present[k], dates)
        alike.setdefault((own.taus, own.ladder), []).append(k)
    more = draw.enough, draw.least
    return [Drawn(tuple(chosen), *own[:1], *more, *own[1:]) for own, chosen in alike.items()]


class DescribedRows:
    """The numbers of a table, and the places of its categories.

    Parameters
    ----------
    numbers : ndarray of shape (n_rows, n_numbers)
        NaN for what is missing.
    places : ndarray of shape (n_rows, n_categorical)
        -1 for values that are in no list.
    weight : ndarray of shape (n_rows,) or None
        What rows count, in [0, 1]: those of a group at most 1 together. None for 1 each.
    """

    def __init__(self, numbers, places, weight=None):
        self.numbers, self.places, self.weight = numbers, places, weight
        #: how the rows are seen by the next release
        self.chunks: Any = ()

    def seen_as(self, rows):
        """Return other rows made of these, which remember them."""
        rows.described = self
        return rows


def _described(rows):
    return getattr(rows, "described", rows)


# For its parameters, the gate and audits it is an estimator; not for pipelines or scikit-learn's
# checks: a table of which nothing can be said is refused.
class TableSummary(BaseEstimator):
    """A description of a table, as `dp_describe` returns it; it prints as a data frame.

    Parameters
    ----------
    epsilon, percentiles, bounds, categories, adjacency, max_weight, budget, random_state : object
        As in `dp_describe`.

    Attributes
    ----------
    statistics_ : dict
        By names of columns, a dict of released statistics by their names.
    left_out_ : tuple
        Names of columns about which nothing was released.
    n_samples_seen_ : int or float
        Number of rows, or of groups; with weights their noisy total.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent; delta is 0.
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    _parameter_constraints = {
        **{
            name: SHARED_CONSTRAINTS[name]
            for name in ("epsilon", "adjacency", "budget", "random_state")
        },
        "percentiles": ["array-like"],
        "bounds": [dict, None],
        "categories": [dict, None],
        "max_weight": SCALE_OR_NONE,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        percentiles: ArrayLike = (0.05, 0.25, 0.5, 0.75, 0.95),
        bounds: dict[Any, Any] | None = None,
        categories: dict[Any, Any] | None = None,
        adjacency: Adjacency = "replace-one",
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.percentiles = percentiles
        self.bounds = bounds
        self.categories = categories
        self.adjacency = adjacency
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
        """Release the statistics of a table.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            Private rows, as for `dp_describe`.
        y : None
            Ignored.
        groups, sample_weight : array-like of shape (n_samples,), default=None
            As for `dp_describe`.

        Returns
        -------
        self : TableSummary
            With what was released.
        """
        check_groups(self, groups)
        epsilon = check_epsilon(self.epsilon)
        taus = check_quantiles(self.percentiles, name="percentiles")[0]
        if len(taus) < 2:
            raise ValueError(
                "percentiles must hold two different ones at least, from which the spread of a "
                f"column is read; got {self.percentiles!r}."
            )
        X = validate_private_data(self, X, table=True)
        # the plan, from public facts
        columns, left_out = described_columns(X, self.bounds, self.categories)
        hidden = hidden_count(self)
        (n_rows, unit), whose = count_rows(groups, X, hidden, sample_weight)
        alone = unit == "row" and hidden is None
        if not alone:
            taus = quantiles_of_parts(self.percentiles, n_rows if hidden is None else hidden.most)[
                0
            ]
        numbers = [(i, column) for i, column in columns if column.kind != "text"]
        listed = [(i, column) for i, column in columns if column.kind == "text"]
        nullable = [k for k, (_, column) in enumerate(numbers) if column.nullable]
        doubts = Doubts("dp_describe")

        def planned(some):
            return plan_quantiles(some, self.adjacency, alone)

        prices, draws = _plan_of(
            epsilon, taus, planned, (n_rows, unit), (numbers, listed, nullable)
        )
        for draw in draws:
            shape = n_rows, len(draw.chosen)
            price = prices["quantiles"] * len(draw.chosen)
            if draw.enough:
                _say_of_draw(doubts, draw, taus, numbers, (n_rows, unit, epsilon))
            else:
                away = planned(taus).ranks_away(shape) * price
                what = f"the percentiles of the column(s) {_names(numbers, draw.chosen)}"
                ends = _public_ends([numbers[k][1] for k in draw.chosen])
                say_of_ranks(doubts, what, away, epsilon, n_rows, unit, ends)
        hopeful = sorted(k for draw in draws if draw.taus for k in draw.chosen)
        sizes = tuple(len(column.words) for _, column in listed) + (1,) * len(nullable)
        quantiles = np.full((len(taus), len(numbers)), np.nan)
        spread, moments = np.full((4, len(numbers)), np.nan), np.full((2, len(numbers)), np.nan)
        counts = np.zeros(0)
        with open_gate(
            self,
            lambda: _described_rows(X, numbers, listed, counts_of(whose)),
            n_rows=n_rows,
            unit=unit,
            delta=0.0,
            doubts=doubts,
        ) as curator:
            if sizes:
                curator.map_rows(partial(_as_cells, nullable=nullable))
                counts = curator.release(CellCounts(sizes), LaplaceMechanism(prices["cells"]))
                noise = math.sqrt(2) * curator.ledger.releases[-1].noise.scale
                _say_of_cells(doubts, counts, sizes, noise, listed, (n_rows, unit))
            present = np.full(len(numbers), float(n_rows))
            if nullable:
                present[nullable] = np.clip(counts[len(counts) - len(nullable) :], 1.0, n_rows)
            draws = [
                one
                for draw in draws
                for one in (
                    _of_those_there(draw, taus, planned, prices["quantiles"], present)
                    if draw.taus and draw.enough
                    else [draw]
                )
            ]
            lost = [k for k in hopeful if not any(draw.taus for draw in draws if k in draw.chosen)]
            if lost:
                doubts.noise(
                    f"the column(s) {_names(numbers, lost)} have too few values, by their released "
                    "counts, for any other statistic without bounds. Give public bounds, or use a "
                    "larger epsilon."
                )
            described = [k for k in hopeful if k not in lost]
            for draw in draws:
                if not draw.taus:
                    continue
                chosen = list(draw.chosen)
                price = prices["quantiles"] * len(chosen)
                found, spread[:, chosen] = _run_draw(
                    curator, draw, planned(draw.taus), numbers, price, n_rows, doubts
                )
                for tau, row in zip(draw.taus, found, strict=True):
                    if tau in taus:
                        quantiles[taus.index(tau), chosen] = row
            if described:
                law = LaplaceMechanism(prices["moments"] * len(described))
                kept = [numbers[k][1] for k in described]
                box = _box_around(spread[:, described], kept, law, (n_rows, self.adjacency))
                curator.map_rows(partial(_as_features, chosen=described))
                total = curator.release(MomentSum(box), law)
                noise = math.sqrt(2) * curator.ledger.releases[-1].noise.scale
                moments[:, described] = _moments_of(box, total, present[described], noise)
        heaviest = largest_weight(self)
        self.left_out_ = tuple(left_out)
        self.n_samples_seen_ = n_rows if heaviest is None else heaviest * n_rows
        self.statistics_ = _statistics(columns, taus, counts, present, quantiles, moments, heaviest)
        return self

    @property
    def frame(self) -> Any:
        """The statistics as a pandas DataFrame, a column for each column that was described."""
        import pandas as pd

        names = [name for own in self.statistics_.values() for name in own]
        order = ["count", "top", "freq", "mean", "std"]
        rows = [name for name in order if name in names]
        rows += [name for name in dict.fromkeys(names) if name not in order]
        of = {np.datetime64: pd.Timestamp, np.timedelta64: pd.Timedelta}
        table = {
            label: [of.get(type(one := own.get(n, math.nan)), lambda x: x)(one) for n in rows]
            for label, own in self.statistics_.items()
        }
        return pd.DataFrame(table, index=rows)

    def _notes(self):
        epsilon, delta = self.privacy_spent_
        text = f"(epsilon={epsilon:.4g}, delta={delta:g}), {self.adjacency}, "
        seen = self.n_samples_seen_
        weighed = isinstance(seen, float)
        text += f"a weight of {seen:.6g}" if weighed else f"{seen} {self.ledger_.unit}s"
        text += ". No least and no largest value: no one row's value can be private."
        if self.left_out_:
            text += (
                " Left out, being no numbers, dates or flags by type and without categories: "
                f"{', '.join(map(repr, self.left_out_))}."
            )
        return text

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "statistics_"):
            return super().__repr__(N_CHAR_MAX)
        return f"{self.frame.to_string(float_format='{:.6g}'.format)}\n{self._notes()}"

    def _repr_html_(self) -> str:
        return f"{self.frame.to_html(float_format='{:.6g}'.format)}<p>{self._notes()}</p>"

    def __sklearn_is_fitted__(self):
        return hasattr(self, "statistics_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def dp_describe(
    X: MatrixLike,
    epsilon: float = 1.0,
    *,
    percentiles: ArrayLike = (0.05, 0.25, 0.5, 0.75, 0.95),
    bounds: dict[Any, Any] | None = None,
    categories: dict[Any, Any] | None = None,
    adjacency: Adjacency = "replace-one",
    max_weight: float | None = None,
    groups: VectorLike | None = None,
    sample_weight: VectorLike | None = None,
    budget: Budget = None,
    random_state: Seed = None,
) -> TableSummary:
    """Describe the columns of a table with differential privacy: a private ``df.describe()``.

    For numbers, dates and durations: count, mean, standard deviation and percentiles. For flags,
    and text with public categories: the most frequent value and its frequency. The whole
    description is purely epsilon-DP, with one charge to a shared budget.

    Parameters
    ----------
    X : data frame or array-like of shape (n_samples, n_columns)
        Private rows: of pandas, polars or Arrow, or an array, whose columns are called x0, x1 and
        so on; a list says no types, and has numbers but in `categories`. Values may be missing.
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0, for the whole description.
    percentiles : array-like of float, default=(0.05, 0.25, 0.5, 0.75, 0.95)
        Quantiles, strictly between 0 and 1, at least two different ones. The outermost replace the
        minimum and the maximum, which cannot be private.
    bounds : dict, default=None
        Public bounds by names of columns, as ``{"age": (18, 100)}``; those of dates as
        ``("2019-01-01", "2025-01-01")``, those of durations as such or in days. Without,
        percentiles are drawn among floats of all magnitudes, or all dates, and the moments are
        those of values clipped to a range around them.
    categories : dict, default=None
        Public lists of values by names of columns, as ``{"plan": ["basic", "pro"]}``. Text without
        a list is left out, and the description says so.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in the presence of a row ("add-remove", where the number of rows is
        released first; otherwise it is public). See :ref:`adjacency`.
    max_weight : float, default=None
        Public bound on weights of rows, in [1e-50, 1e50]; larger weights are clipped to it. None:
        `fit` takes no weights (:ref:`sample_weight`).
    groups : array-like of shape (n_samples,), default=None
        Group of each row: numbers, or text. All rows of a group are protected together, whatever
        their number, and count as one row. The number of groups is public. None protects rows. See
        :ref:`groups`.
    sample_weight : array-like of shape (n_samples,), default=None
        Private weights of the rows, finite and not negative; only with `max_weight`. Larger
        weights are clipped to it. A twentieth of epsilon is for their noisy total. Counts are then
        sums of weights. See :ref:`sample_weight`.
    budget : PrivacyBudget, default=None
        A shared budget. It is charged epsilon before a row is read, and the description is refused
        if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise reproducible, voids
        the guarantee towards anybody who knows it, and warns.

    Returns
    -------
    summary : TableSummary
        It prints as a data frame, and has this one as `frame`; `statistics_`, a dict of dicts;
        `left_out_`, `ledger_` and `privacy_spent_`.

    Raises
    ------
    ValueError, TypeError
        If a parameter or a column is unusable, or there are too few rows for any statistic. Then
        nothing was released, except the number of rows if it is a secret.
    BudgetError
        If a shared budget has less left.

    Warns
    -----
    NoisyEstimateWarning
        If there are too few rows for percentiles, by public numbers, or too few values of a column,
        by its released count; or a released percentile lies on its bound.

    See Also
    --------
    DPQuantile, DPMean, DPHistogram : One statistic at a time.
    DPTableVectorizer : Rows of numbers for a model.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean over its rows to
    every sum and rank. Public are the number of rows or groups (a secret under add-remove), the
    names and types of columns, and all parameters. Columns share the budget: of each number two
    parts are for percentiles, found by halving, one is for mean and deviation together, and a
    quarter for the count, if its type has a place for missing values; one part is for the
    categories of a column. Counts and moments have Laplace noise, percentiles are drawn by rank;
    the prices add up (Propositions 4, 89 and 94 of the guide). Timing and exceptions on malformed
    input are not covered.

    Without bounds. A percentile needs enough rows beyond it. Percentiles with too few are not
    drawn, the outermost first, and are NaN, so the others have less noise. Quartiles of numbers
    take n epsilon of about 450 for each column, those at 5 and 95 % about 4,000, with zero-out
    half of it; dates take a fifth more. With less there is no mean either, and with nothing to
    release at all, an error. Whole numbers are 1 apart: their range is at least that of so long a
    deviation, and counts that are mostly 0 have a mean. Tails beyond a range are clipped, so that
    deviations of heavy ones are too small.

    Missing values are left out of all statistics but the count, as pandas does it. The count of
    categories is that of values in the list. A sum is the mean times the count, a variance the
    square of the deviation. Times are those of UTC. If the type of a column has whole numbers
    alone, so have its percentiles. Statistics are noisy: a deviation of a constant column is small,
    and seldom 0.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp import dp_describe
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({
    ...     "age": rng.integers(18, 90, 20_000),
    ...     "income": rng.lognormal(10, 0.5, 20_000),
    ...     "plan": rng.choice(["basic", "pro"], 20_000, p=[0.7, 0.3]),
    ... })
    >>> summary = dp_describe(people, epsilon=2.0, bounds={"age": (0, 120)},
    ...                       categories={"plan": ["basic", "pro"]}, random_state=0)
    >>> summary.frame.index.tolist()
    ['count', 'top', 'freq', 'mean', 'std', '5%', '25%', '50%', '75%', '95%']
    >>> summary.statistics_["plan"]["top"]
    'basic'
    >>> bool(abs(summary.frame.loc["50%", "age"] - 53.5) < 3)
    True
    >>> summary.privacy_spent_[0] <= 2.0
    True
    """
    summary = TableSummary(
        epsilon,
        percentiles=percentiles,
        bounds=bounds,
        categories=categories,
        adjacency=adjacency,
        max_weight=max_weight,
        budget=budget,
        random_state=random_state,
    )
    more = {} if sample_weight is None else {"sample_weight": sample_weight}
    try:
        return summary.fit(X, groups=groups, **more)
    except (TypeError, ValueError) as error:
        # the class is what is returned, and not what was called
        own, called = type(summary).__name__, dp_describe.__name__
        error.args = tuple(
            part.replace(f"{own}.fit", called).replace(own, called)
            if isinstance(part, str)
            else part
            for part in error.args
        )
        raise


def described_columns(X, bounds, categories):
    """Return places and columns that are described, and the names of the others."""
    types, given = types_in(X), {"bounds": bounds, "categories": categories}
    for name, public in given.items():
        for label in public or ():
            if label not in types:
                raise ValueError(f"{name} has the key {label!r}, but no column has this name.")
    kept, left_out = [], []
    for i, (label, dtype) in enumerate(types.items()):
        named = any(label in (public or ()) for public in given.values())
        try:
            column = column_of(label, dtype, given)
        except (TypeError, ValueError):
            # what cannot be described is not asked for, unless something is said of it
            if named:
                raise
            left_out.append(label)
            continue
        if column.kind == "flag":
            column = type(column)(label, "text", column.nullable, words=_FLAGS)
        if column.kind != "text" or column.words:
            kept.append((i, column))
        else:
            left_out.append(label)
    if not kept:
        given = ", ".join(f"{label!r} of type {name_of_type(types[label])}" for label in left_out)
        raise ValueError(
            "X must have a column of numbers, dates or flags, by its type, or one with a public "
            f"list of its values, as in categories={{{left_out[0]!r}: [...]}}; got {given}."
        )
    return kept, left_out


def _described_rows(X, numbers, listed, weight):
    """Return the rows of a table: numbers, the places of categories, and what rows count."""
    n_rows = X.shape[0]
    parts = [column_numbers(column_values(X, i), column) for i, column in numbers]
    places = np.full((n_rows, len(listed)), -1.0)
    for j, (i, column) in enumerate(listed):
        known = {word: k for k, word in enumerate(column.words)}
        found = word_places(
            column_words(column_values(X, i)), lambda w, known=known: known.get(w, -1)
        )
        places[:, j] = np.maximum(found, -1)
    return DescribedRows(np.column_stack([np.empty((n_rows, 0)), *parts]), places, weight)


def _as_cells(rows, nullable):
    """Return the places of categories, and whether numbers are there."""
    rows = _described(rows)
    there = np.where(np.isnan(rows.numbers[:, nullable]), -1.0, 0.0)
    return rows.seen_as(BoxRows(np.hstack([rows.places, there]), None, weight=rows.weight))


def _as_ranks(rows, grid, chosen):
    """Return some numbers on a grid."""
    rows = _described(rows)
    values = rows.numbers[:, chosen]
    make = LadderRows if isinstance(grid, Ladder) else RankRows
    grid = (grid,) if isinstance(grid, Ladder) else grid
    ranked = make(values, *grid, weight=rows.weight)
    return rows.seen_as(ranked)


def _as_features(rows, chosen):
    """Return some numbers as they are."""
    rows = _described(rows)
    values = rows.numbers[:, chosen]
    return rows.seen_as(FeatureRows(values, n_threads=effective_n_threads(), weight=rows.weight))


def _as_whole(found, whole, grid):
    """Return percentiles, those of whole numbers as such: a draw may fall between two of them."""
    nearest = np.rint(found)
    if not isinstance(grid, Ladder):
        nearest = np.clip(nearest, *grid[:2])
    return np.where(whole, nearest, found)


def _public_ends(columns):
    """Return the grid between public ends; without bounds those of the calendar, for dates."""
    ends = np.array([column.bounds or _CALENDAR for column in columns], dtype=np.float64)
    return even_grid(*ends.T, np.array([column.whole for column in columns]))


def _plan_of(epsilon, taus, planned, shape, columns):
    """Return the price of everything for each column, and which quantiles are drawn."""
    (n_rows, unit), (numbers, listed, nullable) = shape, columns
    kinds: dict[str, list[int]] = {"bounded": [], "free": [], "dates": []}
    for k, (_, column) in enumerate(numbers):
        free = "dates" if column.kind == "date" else "free"
        kinds["bounded" if column.bounds is not None else free].append(k)
    cells = _CATEGORIES * len(listed) + _PRESENT * len(nullable)

    def priced(n_described):
        whole = cells + (_QUANTILES + _MOMENTS) * n_described
        each = epsilon / whole / (1 + 1e-12) if whole else 0.0
        return {"cells": cells * each, "quantiles": _QUANTILES * each, "moments": _MOMENTS * each}

    each = priced(len(numbers))["quantiles"]
    draws = [Drawn(tuple(kinds["bounded"]), taus)] if kinds["bounded"] else []
    for kind in ("free", "dates"):
        if kinds[kind]:
            chosen = tuple(kinds[kind])
            dates = kind == "dates"
            draws.append(
                _that_can_be_known(taus, chosen, planned, each * len(chosen), n_rows, dates)
            )
    prices = priced(sum(len(draw.chosen) for draw in draws if draw.taus))
    if not prices["cells"] + prices["quantiles"]:
        raise ValueError(
            f"{n_rows} {unit}s at epsilon={epsilon:.4g} are too few for anything about "
            f"{len(numbers)} column(s) without bounds. Give public bounds, or use "
            f"{max(draw.least for draw in draws)} {unit}s or a larger epsilon."
        )
    return prices, draws


def _say_of_draw(doubts, draw, taus, numbers, facts):
    """Take note of quantiles that are not known; public numbers alone decide."""
    n_rows, unit, epsilon = facts
    missing = [f"{100 * float(tau):g}%" for tau in taus if tau not in draw.taus]
    if not missing:
        return
    what = "any statistic but the count"
    if draw.taus:
        what = f"the percentiles {', '.join(missing)}"
    doubts.noise(
        f"{n_rows} {unit}s at epsilon={epsilon:.4g} are too few for {what} of the column(s) "
        f"{_names(numbers, draw.chosen)} without bounds. Give public bounds, use "
        f"{draw.enough} {unit}s or a larger epsilon, or describe fewer columns."
    )


def _say_of_cells(doubts, counts, sizes, noise, listed, facts):
    """Take note of categories that next to no row has, by released counts."""
    n_rows, unit = facts
    parts = np.split(counts, np.cumsum(sizes)[:-1])[: len(listed)]
    empty = empty_lists(parts, noise, n_rows)
    if empty:
        doubts.noise(
            f"almost no {unit} has one of the categories of the column(s) "
            f"{_names(listed, empty)}, by the released counts. Compare them with the values."
        )


def _run_draw(curator, draw, plan, numbers, price, n_rows, doubts):
    """Draw quantiles of some columns; return them, and what `_spread_of` has of them.

    Parameters
    ----------
    curator, draw, plan : Curator, Drawn, object
        Holds the rows; which columns; and how their quantiles are drawn.
    numbers : list of (int, Column)
        All columns with numbers.
    price, n_rows, doubts : float, int, Doubts
        Epsilon of the draw; number of rows; and what takes notes, of released numbers.
    """
    chosen = list(draw.chosen)
    own = [numbers[k] for k in chosen]
    grid = draw.ladder or _public_ends([column for _, column in own])
    curator.map_rows(partial(_as_ranks, grid=grid, chosen=chosen))
    found, _ = plan.run(curator, grid, price, (n_rows, len(chosen)))
    say_of_grid(doubts, found, grid, partial(_names, own))
    whole = np.array([column.whole for _, column in own])
    found = _as_whole(found, whole, grid)
    flat = [k for k, one in zip(chosen, found[0] == found[-1], strict=True) if one]
    if draw.enough and flat:
        doubts.noise(
            f"{draw.level:.0%} or more of the values of the column(s) {_names(numbers, flat)} are "
            "equal, or nearly so. Others are clipped to that value, or close to it, before mean "
            "and deviation are computed. Give public bounds."
        )
    return found, _spread_of(draw, found, whole)


def _names(numbers, chosen):
    """Return the names of the first few columns in words."""
    named = ", ".join(repr(numbers[k][1].label) for k in chosen[:5])
    return named + (", ..." if len(chosen) > 5 else "")


def _spread_of(draw, found, whole):
    """Return the outer quantiles, a middle one, and how long a deviation of a Gaussian is.

    Different whole numbers are 1 apart. Of columns of another type, those most of whose values are
    equal to a whole number are taken for such, as ranges of `DPMean` are.
    """
    middle = found[int(np.argmin([abs(2 * tau - 1) for tau in draw.taus]))]
    wide = float(ndtri(float(draw.taus[-1])) - ndtri(float(draw.taus[0])))
    deviations = found[-1] / wide - found[0] / wide
    if draw.level < LEVEL_OF_COUNTS:
        tied = (found[0] == middle) | (found[-1] == middle)
        deviations[tied & (np.rint(middle) == middle) & (deviations < NO_COUNT)] = 1.0
    deviations[whole] = np.maximum(deviations[whole], 0.5)
    return np.stack([found[0], middle, found[-1], deviations])


def _box_around(spread, columns, law, facts):
    """Return the box in which moments are taken: public bounds, or a range around quantiles."""
    n_rows, adjacency = facts
    unit = MomentSum(Box((-1.0,) * len(columns), (1.0,) * len(columns)))
    moved = unit.sensitivity(adjacency, n_rows).l1
    reach = reach_at(math.sqrt(2) * moved / (law.epsilon * n_rows))
    _, middle, _, deviations = spread
    with np.errstate(over="ignore"):
        half = reach * deviations
    half = np.clip(half, np.maximum(np.abs(middle) * FINEST_WIDTH, 1e-38), 1e300)
    lower, upper = middle - half, middle + half
    for k, column in enumerate(columns):
        if column.bounds is not None:
            lower[k], upper[k] = column.bounds
    return Box(tuple(lower), tuple(upper))


def _moments_of(box, total, present, noise):
    """Return means and deviations of every number, from released sums and counts."""
    k = len(present)
    means, deviations = np.zeros(k), np.zeros(k)
    for j, count in enumerate(present):
        one = MomentSum(Box((box.lower[j],), (box.upper[j],)))
        (mean,), (variance,) = one.moments(total[[j, k + j]], count, noise)
        means[j] = box.center[j] + box.half_width[j] * mean
        deviations[j] = box.half_width[j] * math.sqrt(variance)
    return means, deviations


def _statistics(columns, taus, counts, present, quantiles, moments, heaviest):
    """Return what was released, by names of columns."""
    found, start, k = {}, 0, 0

    def counted(count):
        # sums of weights are in units of the heaviest
        return max(0, round(count)) if heaviest is None else max(0.0, heaviest * count)

    for _, column in columns:
        if column.kind == "text":
            own = counts[start : start + len(column.words)]
            start += len(own)
            top = int(np.argmax(own))
            found[column.label] = {
                "count": counted(float(own.sum())),
                "top": column.words[top],
                "freq": counted(float(own[top])),
            }
            continue
        statistics: dict[str, Any] = {"count": counted(float(present[k]))}
        statistics |= {
            "mean": _as_given(column, moments[0][k]),
            "std": _as_given(column, moments[1][k], is_length=True),
        }
        for tau, value in zip(taus, quantiles[:, k].tolist(), strict=True):
            statistics[f"{100 * float(tau):g}%"] = _as_given(column, value)
        found[column.label] = statistics
        k += 1
    return found


def _as_given(column, value, is_length=False):
    """Return a number; of dates and durations, which are days in here, one of these."""
    if column.kind == "number":
        return float(value)
    if column.kind == "date" and not is_length:
        if math.isnan(value):
            return np.datetime64("NaT", "s")
        return np.datetime64(round(float(np.clip(value, *_CALENDAR)) * _DAY), "s")
    if math.isnan(value):
        return np.timedelta64("NaT", "s")
    # longer ones are no durations of pandas
    return np.timedelta64(round(float(np.clip(value, -1e11, 1e11)) * _DAY), "s")

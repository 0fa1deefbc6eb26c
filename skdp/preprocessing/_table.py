# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tables of mixed types, as rows of bounded numbers.

The encoding of a column follows from its type, its name and public parameters, never from its
values (`table_schema`). Numbers with public bounds and words of a public list cost nothing. The
scales of other numbers are released as `DPStandardScaler` releases them, and other words are
hashed into a public number of buckets, whose noisy counts (`PresenceCount`) tell which are worth a
feature.
"""

import math
import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from numbers import Integral, Real
from operator import attrgetter
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import murmurhash3_32
from sklearn.utils.validation import check_is_fitted

from skdp._counted import check_groups, count_rows, counts_of, hidden_count
from skdp._export import TwinMixin, table_columns
from skdp._gate import Doubts, open_gate
from skdp._rows.base import L2Ball, check_bounds, check_radius, row_norms
from skdp._rows.columns import FeatureRows
from skdp._rows.streams import is_table, name_of_type, types_in
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    StrOptions,
    check_feature_names_in,
    effective_n_threads,
    fit_context,
    is_missing,
    validate_private_data,
)
from skdp._typing import Adjacency, Budget, MatrixLike, Seed, VectorLike
from skdp.location._sparse_noisy import sparse_rows
from skdp.preprocessing._frequent_features import PresenceCount
from skdp.preprocessing._public import triangles
from skdp.preprocessing._standard_scaler import say_of_moments, unbounded_moments
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.books.texts import some_of
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.privacy.laws.calibration import gdp_mu, mu_of_all

# What columns are, from their types and names and from public parameters.

#: the beginning of the name of a type, in small letters, tells what a column holds; first come
_KINDS = (
    ("flag", r"bool"),
    ("number", r"(u?int|float|decimal)\d*\b|double|halffloat|half\b"),
    ("date", r"datetime|timestamp|date"),
    ("duration", r"timedelta|duration"),
    ("text", r"(large_)?(string|utf8)|str\b|object|<u|\|s|categor|enum|dictionary|null"),
)
# words that the name of a column ends with, or consists of, in small letters
_IDENTIFIERS = {"id", "ids", "uuid", "guid", "ssn", "iban"}
_WHOLE = {"name", "surname", "email", "phone", "telephone", "passport", "index", "unnamed"}
_PROSE = {"comment", "comments", "description", "message", "notes", "remarks", "review", "text"}


@dataclass(frozen=True)
class Column:
    """A column of a table; public.

    Parameters
    ----------
    label : object
        Its name.
    kind : {"flag", "number", "date", "duration", "text"}
        What its type says that it holds.
    nullable : bool
        Whether its type has a place for what is missing.
    bounds : tuple of float or None
        Public bounds, of a number.
    words : tuple of str or None
        Public list, of words.
    whole : bool
        Whether its type has whole numbers alone.
    """

    label: Any
    kind: str
    nullable: bool
    bounds: Any = None
    words: Any = None
    whole: bool = False

    @property
    def scaled(self):
        """Whether the scale of its numbers is to be released."""
        return self.kind != "text" and self.bounds is None

    @property
    def counted(self):
        """Whether its words are to be counted in buckets."""
        return self.kind == "text" and self.words is None

    @property
    def length(self):
        """About the square of the length of its part of a row."""
        if self.counted:
            return 0.7
        return 1.0 if self.bounds is None or self.kind == "flag" else 1 / 3


def table_schema(X, bounds=None, categories=None):
    """Return the columns of a table, or raise for one that cannot be used; no value is looked at.

    Parameters
    ----------
    X : data frame, Arrow table or ndarray
        As `validate_private_data` returned it. Only names and types of its columns are used.
    bounds, categories : dict or None
        As in `DPTableVectorizer`.

    Returns
    -------
    columns : tuple of Column
        In the order of the table.

    Raises
    ------
    TypeError, ValueError
        If the type of a column is no kind of `Column`, its name is that of an identifier or of
        prose, or a parameter does not fit the table. The message names the column.
    """
    types = types_in(X)
    given = {"bounds": bounds, "categories": categories}
    for name, public in given.items():
        if public is not None and not isinstance(public, dict):
            raise TypeError(
                f"{name} must be None or a dict with names of columns as keys; got "
                f"{type(public).__name__}."
            )
        for label in public or ():
            if label not in types:
                near = get_close_matches(str(label), map(str, types), 3, 0.5)
                hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
                raise ValueError(
                    f"{name} has the key {label!r}, but no column has this name.{hint}"
                )
    both = set(bounds or ()) & set(categories or ())
    if both:
        raise ValueError(f"column {min(both, key=str)!r} is in bounds and in categories: drop one.")
    return tuple(column_of(label, dtype, given) for label, dtype in types.items())


def column_of(label, dtype, given):
    """Return one column, or raise."""
    text = name_of_type(dtype)
    kind = next((kind for kind, start in _KINDS if re.match(start, str(dtype).lower())), None)
    if kind is None:
        raise TypeError(
            f"column {label!r} is of type {text}: make it numbers, dates, flags or text with a "
            "function that treats every row on its own, or leave it out with "
            f"X.drop(columns=[{label!r}])."
        )
    bounds = (given["bounds"] or {}).get(label)
    listed = label in (given["categories"] or {})
    whole = re.match("u?int", str(dtype).lower()) is not None
    nullable = not (isinstance(dtype, np.dtype) and dtype.kind in "biu")
    if listed:
        if kind in ("date", "duration"):
            raise ValueError(
                f"categories has the column {label!r} of {kind}s: give bounds={{{label!r}: (first, "
                "last)}}, or turn it into text, such as the month."
            )
        words = _word_list(label, given["categories"][label])
        if words and not any(_may_hold(kind, word) for word in words):
            raise ValueError(
                f"categories[{label!r}] must have values that a column of type {text} can hold; "
                f"got {given['categories'][label]!r}."
            )
        return Column(label, "text", True, words=words)
    if bounds is not None:
        if kind == "text":
            raise ValueError(
                f"bounds has the column {label!r} of type {text}, which is not a number: give "
                f"categories={{{label!r}: [...]}}, or convert it."
            )
        return Column(label, kind, nullable, _bounds_of(label, kind, bounds), whole=whole)
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(label)).lower())
    called = None
    if words and (words[-1] in _IDENTIFIERS or (len(words) == 1 and words[0] in _WHOLE)):
        called = "an identifier" if kind in ("number", "text") else None
    elif words and words[-1] in _PROSE and kind == "text":
        called = "free text"
    if called:
        public = f"bounds={{{label!r}: (low, high)}} or " if kind == "number" else ""
        raise ValueError(
            f"column {label!r} is {called} by its name, and tells nothing about other rows. Drop "
            f"it with X.drop(columns=[{label!r}]). If the name misleads, pass "
            f"{public}categories={{{label!r}: None}}."
        )
    return Column(label, kind, nullable, (0.0, 1.0) if kind == "flag" else None, whole=whole)


def _bounds_of(label, kind, bounds):
    """Return public bounds as floats, those of dates in days."""
    given = bounds
    if kind == "date":
        try:
            if any(isinstance(end, Real) for end in bounds):
                raise TypeError
            bounds = tuple(_days(np.datetime64(_moment(end), "s")) for end in bounds)
            if not bounds[0] < bounds[1]:
                raise ValueError
        except (TypeError, ValueError):
            raise ValueError(
                f"bounds[{label!r}] must be a pair of dates, the earlier one first, such as "
                f"('2019-01-01', '2025-01-01'); got {given!r}."
            ) from None
    try:
        if kind == "duration":
            bounds = [_length_in_days(end) for end in bounds]
        (low,), (high,) = check_bounds(bounds, 1)
    except (TypeError, ValueError):
        kinds = "durations, or of numbers of days" if kind == "duration" else "finite numbers"
        raise ValueError(
            f"bounds[{label!r}] must be a pair (lower, upper) of {kinds}, lower below upper; got "
            f"{given!r}."
        ) from None
    return float(low), float(high)


def _length_in_days(end):
    """Return a duration in days; numbers are days already, and numpy takes its own for numbers."""
    if isinstance(end, Real) and not isinstance(end, np.timedelta64):
        return end
    return _days(np.timedelta64(end, "s"))


def _may_hold(kind, word):
    """Return whether a column of some kind can have a value that is this text."""
    if kind == "flag":
        return word in ("True", "False")
    try:
        return kind == "text" or not math.isnan(float(word))
    except ValueError:
        return False


def _word_list(label, given):
    """Return public categories as text; None for words that are to be counted."""
    if given is None:
        return None
    listed = isinstance(given, list | tuple | range | np.ndarray) or hasattr(given, "tolist")
    words = tuple(map(as_word, given)) if listed else ()
    if not words or None in words or len(set(words)) < len(words):
        raise ValueError(
            f"categories[{label!r}] must be None, or a list of at least one distinct value and no "
            f"missing one; got {given!r}."
        )
    return words


# The values of columns: every one on its own.


def column_values(X, position):
    """Return one column of a table."""
    if isinstance(X, np.ndarray):
        return X[:, position]
    if is_table(X):
        return X.column(position)
    return X.iloc[:, position] if hasattr(X, "iloc") else X[:, position]


def _array(values):
    """Return the values of a column as an array of whatever type."""
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)


def column_numbers(values, column):
    """Return a column as float64, dates and durations in days, with NaN for what is missing."""
    array, moments = _array(values), column.kind in ("date", "duration")
    try:
        if moments and array.dtype.kind in "fO":
            # time zones, or nothing but missing values
            array = np.array([_moment(value) for value in array.tolist()], _MOMENTS[column.kind])
        if moments:
            return _days(array.astype(_MOMENTS[column.kind], casting="same_kind"))
        if array.dtype.kind == "O":
            array = np.array([np.nan if is_missing(v) else v for v in array.tolist()], object)
        if array.dtype.kind in "biufO":
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise TypeError(
        f"column {column.label!r} held {column.kind}s when the vectorizer was fitted, and holds "
        "something else now: give it the same type."
    )


_MOMENTS = {"date": "datetime64[s]", "duration": "timedelta64[s]"}


def _days(moments):
    """Return dates or durations, in whole seconds, as numbers of days; NaN for none."""
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / 86_400.0)


def _moment(value):
    """Return a date or a duration as numpy reads it, in UTC."""
    if is_missing(value):
        return None
    if getattr(value, "tzinfo", None) is not None:
        return np.datetime64(math.floor(value.timestamp()), "s")
    if isinstance(value, float):
        raise TypeError
    return value


def as_word(value):
    """Return a value as text, the same for 1 and 1.0; None for a missing one."""
    if isinstance(value, str):
        return value
    if is_missing(value):
        return None
    if isinstance(value, float | np.floating):
        # in one type: that of a list is that of its entries, and short floats are spelt shorter
        value = float(value)
        return str(int(value)) if value.is_integer() else str(value)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def column_words(values):
    """Return a column as a list of words, None for what is missing."""
    listed = next(name for name in ("to_pylist", "tolist", "to_list") if hasattr(values, name))
    # most are text already, and a call for every one takes longer than the rest
    return [v if type(v) is str else as_word(v) for v in getattr(values, listed)()]


def bucket_of(n_buckets, word):
    """Return the bucket of a word: the same in every process, for everybody."""
    code = murmurhash3_32(word.encode("utf-8", "surrogatepass"), seed=0, positive=True)
    return code % n_buckets


def word_places(words, find):
    """Return the place of every word, -1 for one without, and -2 for a missing one."""
    # found once for all rows with the same word
    places = {word: -2 if word is None else find(word) for word in set(words)}
    return np.fromiter(map(places.__getitem__, words), np.int64, len(words))


class TableRows:
    """Words of the rows of a table, in chunks, and behind them the numbers of the same rows.

    Parameters
    ----------
    words : LinearRows
        For every row the buckets of its words, as entries that are not zero.
    numbers : FeatureRows or None
        Its numbers, as they are.
    """

    def __init__(self, words, numbers):
        self.chunks, self.n_entries, self.n_threads = words.chunks, words.n_entries, words.n_threads
        self.numbers = numbers


def table_rows(X, columns, n_buckets, adjacency, weight=None):
    """Return the rows of a table for counts of words and for scales of numbers.

    Parameters
    ----------
    X : data frame, Arrow table or ndarray
        Private rows; never changed.
    columns : tuple of Column
        Their columns.
    n_buckets : int
        Buckets of a column.
    adjacency : {"replace-one", "zero-out"}
        Under zero-out a row in which everything is missing is a null row. Under replace-one it is
        a row like others, whose numbers count as medians.
    weight : ndarray of shape (n_rows,), default=None
        What rows count, in [0, 1]: those of a group at most 1 together. None for 1 each.

    Returns
    -------
    rows : TableRows or FeatureRows
        The latter if there are no words to be counted.
    """
    scaled = [i for i, column in enumerate(columns) if column.scaled]
    counted = [i for i, column in enumerate(columns) if column.counted]
    numbers, n_threads = None, effective_n_threads()
    if scaled:
        parts = [column_numbers(column_values(X, i), columns[i]) for i in scaled]
        null = rows_without_values(X, columns) if adjacency == "zero-out" else None
        numbers = FeatureRows(np.column_stack(parts), null, n_threads, weight)
    if not counted:
        return numbers
    words = [column_words(column_values(X, i)) for i in counted]
    places = np.column_stack([word_places(part, partial(bucket_of, n_buckets)) for part in words])
    there = places >= 0
    entries = (places + n_buckets * np.arange(len(counted)))[there]
    starts = np.concatenate([[0], there.sum(axis=1).cumsum()])
    shape = X.shape[0], n_buckets * len(counted)
    presence = sparse.csr_array((np.ones(len(entries)), entries, starts), shape=shape)
    facts = {"n_threads": n_threads, "weight": weight}
    present = sparse_rows(presence, L2Ball(1.0), len(counted), **facts)
    return TableRows(present, numbers)


def rows_without_values(X, columns):
    """Return in which rows of a table everything is missing."""
    null = np.ones(X.shape[0], dtype=bool)
    for i, column in enumerate(columns):
        values = column_values(X, i)
        if column.kind == "text":
            null &= np.array([word is None for word in column_words(values)])
        else:
            null &= np.isnan(column_numbers(values, column))
    return null


# The features of a row, and the plan of the releases.

#: values further than this many standard deviations from the mean are moved there
_FARTHEST = 4.0
#: knots in these units, where there is signal for more than a square: with a Gaussian-DP parameter
#: mu for n rows and d numbers, n mu / (a sqrt(d)) is so much at least, a being 1 under zero-out and
#: 2 otherwise. Between public bounds as many are even. Where the unit of a column cannot be told,
#: most values are equal: others are told by their order of magnitude.
_KNOTS = np.array([-1.5, -0.5, 0.0, 0.5, 1.5, 4.0, 12.0])
_EVEN = np.arange(-3, 4) / 3
_BENT = 150.0
_MAGNITUDES = 4.0 ** np.arange(11)
_WIDE = np.concatenate([-_MAGNITUDES[::-1], [0.0], _MAGNITUDES])
#: of the squared Gaussian-DP budget, where both words and numbers have a price
_WORDS_SHARE = 0.3
#: a bucket is kept if its noisy count is above so many standard deviations of the noise, and one
#: of its column is above the second number: of a thousand empty ones, one exceeds the first
_SEEN, _CLEARLY_SEEN = 3.0, 4.5


def _say_of_columns(doubts, scaled, frequent, ranks, unit):
    """Take note of what is mostly noise, by public and released numbers."""
    say_of_moments(doubts, len(scaled), ranks, f"bounds for {_listed(scaled)}", unit)
    none = [label for label, (kept, _) in frequent.items() if not len(kept)]
    if none:
        doubts.noise(
            f"no frequent word was found in {some_of(none)}. Drop identifiers and free text, give "
            "dates and numbers a type of their own, and other columns categories, or use a larger "
            "epsilon."
        )


class DPTableVectorizer(TwinMixin, TransformerMixin, BaseEstimator):
    """Turn a table of numbers, dates, flags and words into bounded rows of numbers.

    The encoding of a column follows from its type, its name and public parameters. Columns with
    public facts cost nothing. For other columns the scales of numbers and the frequent words are
    released within the budget. No encoded row is longer than `data_norm`, so a private estimator
    with the same `data_norm` clips none.

    - A number, date, duration or flag with public `bounds` (of a flag 0 and 1): its place between
      them, in [-1, 1]. That costs nothing.
    - A number, date or duration without: (value - mean) / deviation, in [-4, 4]. Two searches and
      one sum are released, for all of them.
    - Words with a public list (`categories`): a feature for each of the list, one for others, and
      one for missing words. That costs nothing.
    - Words without: a feature for each of the frequent buckets, one for others, and one for missing
      words. One count is released, for all of them.

    Parameters
    ----------
    epsilon : float or None, default=1.0
        Privacy budget in nats, greater than 0. None releases nothing: every column must have
        `bounds` or `categories`, or be a flag.
    delta : float, default=1e-6
        Privacy budget in (0, 1).
    bounds : dict, default=None
        Public bounds by names of columns, as ``{"age": (18, 100)}``; those of dates are dates, or
        text such as ``"2019-01-01"``, those of durations days. Values outside are clipped.
    categories : dict, default=None
        Public lists of values by names of columns, as ``{"plan": ["basic", "pro"]}``. None instead
        of a list declares words to be counted: for integers that are codes, as ``{"shop": None}``.
    curves : {"auto", "squares"} or None, default="auto"
        Nonlinear features of numbers other than flags: a linear model can then rise and fall with
        age. "squares": squares in addition to the values. "auto": with enough rows and budget
        piecewise linear functions between public knots, in released units or between bounds, and
        squares otherwise (see Notes). None: no such features.
    n_buckets : int, default=1024
        Public number of buckets, at least 64, that the words of a column without a list are hashed
        into.
    max_categories : int, default=64
        Largest number of buckets of a column that become features.
    data_norm : float, default=1.0
        Norm that no row exceeds.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in the presence of a row ("add-remove", where the number of rows is
        released first; otherwise it is public). See :ref:`adjacency`. Under zero-out a row with
        all values missing is a null row, and is encoded as NaN.
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
    columns_ : tuple of Column
        Encoding of every column; public.
    mean_, scale_ : dict
        Released means and standard deviations by names of columns, in the units of the data, days
        for dates and durations. The scale is 0 if a column is constant or its spread is unknown:
        then the sign of the distance from `mean_` replaces the value.
    has_knots_ : bool
        Whether numbers have knots instead of squares; from public numbers, and the number or
        weight of rows.
    frequent_ : dict
        Selected buckets by names of columns: two arrays, their numbers and their released shares
        of the rows, or of their weight.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent; zeros if nothing had to be released.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns, if all are strings.

    Warns
    -----
    NoisyEstimateWarning
        If there are too few rows for scales, by public numbers; or if no word of a column is
        frequent, as in identifiers and free text. The message names the remedy.

    See Also
    --------
    dp_tabular_pipeline : A pipeline of this and a linear model.
    DPStandardScaler : For numbers alone.
    DPFrequentFeatures : For existing sparse features.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean over its rows to
    every sum and count. Public are the number of rows or groups (a secret under add-remove), the
    names and types of columns, and all parameters. A type can depend on rows: pandas turns integers
    into floats if one is missing. Pass the types when the file is read, if that matters. The
    categories of pandas' ``category`` type usually come from the rows, so they are not used: such a
    column holds words. All releases have Gaussian noise, and compose to exactly the mu-GDP of
    (epsilon, delta). The counts of buckets are those of :class:`~skdp.DPFrequentFeatures`, with
    sensitivity sqrt(2 k) for k columns of words (zero-out: sqrt(k)); the others are those of
    :class:`~skdp.DPStandardScaler`, where a missing value has no say in a median and counts as that
    from then on. Words are hashed by MurmurHash3 without a key: a bucket tells which words may be
    in it, and only what many rows have in common is kept. Timing and exceptions on malformed input
    are not covered.

    Missing values. Columns of a type with missing values get a feature for them, and the value is
    replaced by the center. Integers and flags of numpy have none.

    Prediction. A word outside the list, or not frequent, is "other". Columns must be those of
    `fit`, by name and order. Numbers may be floats, or missing.

    Identifiers. A column of text with nearly unique values is refused if its name is that of an
    identifier or of prose. Otherwise it has no features, and a warning names it.

    Knots. With a signal ``n mu / (a sqrt(d))`` of 150 at least, for n rows, d numbers that are no
    flags, the Gaussian-DP parameter mu of the budget, and a of 1 under zero-out and 2 otherwise, a
    number has six functions instead of its square. Each is 1 at its knot, 0 at the others, and a
    straight line between: in deviations from the mean at -1.5, -0.5, 0.5, 1.5, 4 and 12, and
    evenly between bounds. All are 0 in the middle. If the spread is unknown, most values are
    equal, and there are knots at distances of 1, 4, 16 and so on to 4^10 on both sides.

    Accuracy. Scales need about ``47 sqrt(d) / mu`` rows for d numbers, and a bucket is kept if it
    holds more than about ``3 sqrt(2 k) / mu``, where mu is the Gaussian-DP parameter of the
    budget, times the root of 0.7 and of 0.3 if both are needed. Give `bounds` and `categories` if
    you know them.

    References
    ----------
    .. [1] B. Ghazi, Y. Huang, P. Kamath, R. Kumar, P. Manurangsi, A. Sinha and C. Zhang,
       "Sparsity-preserving differentially private training of large embedding models",
       NeurIPS 2023 (counts of buckets).
    .. [2] K. Weinberger, A. Dasgupta, J. Langford, A. Smola and J. Attenberg, "Feature hashing for
       large scale multitask learning", ICML 2009.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp import DPTableVectorizer
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({
    ...     "age": rng.integers(18, 90, 8000),
    ...     "plan": rng.choice(["basic", "plus", "pro"], 8000),
    ...     "spent": rng.lognormal(3, 1, 8000),
    ... })
    >>> vectorizer = DPTableVectorizer(
    ...     bounds={"age": (18, 100)}, categories={"plan": ["basic", "pro"]}, random_state=0
    ... )
    >>> rows = vectorizer.set_output(transform="pandas").fit_transform(table)
    >>> rows.columns.tolist()[:4]
    ['age', 'age~18', 'age~31.67', 'age~45.33']
    >>> rows.columns.tolist()[7:11]
    ['plan=basic', 'plan=pro', 'plan=other', 'plan=missing']
    >>> bool((rows**2).sum(axis=1).max() <= 1 + 1e-9)
    True
    >>> vectorizer.privacy_spent_[0] <= 1.0
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        "epsilon": [*SHARED_CONSTRAINTS["epsilon"], None],
        "bounds": [dict, None],
        "categories": [dict, None],
        "curves": [StrOptions({"auto", "squares"}), None],
        "n_buckets": [Interval(Integral, 64, 2**20, closed="both")],
        "max_categories": [Interval(Integral, 1, None, closed="left")],
        **{
            name: SHARED_CONSTRAINTS[name]
            for name in ("delta", "data_norm", "adjacency", "budget", "random_state")
        },
        "max_weight": SCALE_OR_NONE,
    }

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        *,
        bounds: dict[Any, Any] | None = None,
        categories: dict[Any, Any] | None = None,
        curves: Literal["auto", "squares"] | None = "auto",
        n_buckets: int = 1024,
        max_categories: int = 64,
        data_norm: float = 1.0,
        adjacency: Adjacency = "replace-one",
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.curves = curves
        self.n_buckets = n_buckets
        self.max_categories = max_categories
        self.data_norm = data_norm
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
        """Release scales of numbers and counts of words.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            Private rows: of pandas, polars or Arrow, of what narwhals reads if that is there, a
            structured array of numpy, whose fields are the columns, or a plain one, whose columns
            are called x0, x1 and so on. A list says no types of columns: they are numbers, but for
            those in `categories`.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            Whose row it is: numbers, or text. All rows of a group are protected together, whatever
            their number, and count as one row does, each as one over their number: scales and
            counts are those of all rows, in which every group has the same weight. The number of
            groups is public. It is no column of X. None protects rows. See :ref:`groups`.
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of the rows, finite and not negative; only with `max_weight`. Weights
            beyond that count as that. A twentieth of epsilon goes to their noisy total, unless
            nothing has to be released. See :ref:`sample_weight`.

        Returns
        -------
        self : DPTableVectorizer
            Fitted transformer.

        Raises
        ------
        TypeError, ValueError
            If a parameter or a column is unusable; nothing has been released then. The message
            names the column, and no value.
        BudgetError
            If a shared budget has less left, or protects groups and there are none.
        """
        check_groups(self, groups)
        # 1. price, before any data
        epsilon = None if self.epsilon is None else check_epsilon(self.epsilon)
        delta = check_delta(self.delta)
        check_radius(self.data_norm)
        # 2. validate
        X = validate_private_data(self, X, table=True)
        # 3. plan, from public facts
        columns = table_schema(X, self.bounds, self.categories)
        scaled = [column for column in columns if column.scaled]
        counted = [column for column in columns if column.counted]
        means, scales, frequent = np.zeros(0), np.zeros(0), {}
        self.has_knots_ = False
        if not (scaled or counted):
            if epsilon is not None and hidden_count(self) is None:
                (n_rows, _), _ = count_rows(groups, X, None, None)
                self.has_knots_ = self._is_bent(columns, n_rows * gdp_mu(epsilon, delta))
            self.ledger_, self.privacy_spent_ = Ledger(), (0.0, 0.0)
        elif epsilon is None:
            raise ValueError(
                "epsilon must be a number for columns about which nothing is public; got None. "
                f"Give bounds or categories for {_listed([*scaled, *counted])}."
            )
        else:
            mu = gdp_mu(epsilon, delta)
            (n_rows, unit), whose = count_rows(groups, X, hidden_count(self), sample_weight)
            share = _WORDS_SHARE if scaled and counted else float(bool(counted))
            mu_words, mu_numbers = math.sqrt(share) * mu, math.sqrt(1 - share) * mu
            doubts = Doubts(self)
            self.has_knots_ = self._is_bent(columns, n_rows * mu)
            # 4. gate, 5. run
            with open_gate(
                self,
                lambda: table_rows(X, columns, self.n_buckets, self.adjacency, counts_of(whose)),
                n_rows=n_rows,
                unit=unit,
                delta=delta,
                mu=mu_of_all(epsilon, delta),
                doubts=doubts,
            ) as curator:
                if counted:
                    query = PresenceCount(self.n_buckets * len(counted), len(counted))
                    counts = curator.release(query, GaussianMechanism(mu_words))
                    noise = curator.ledger.releases[-1].noise.scale
                    frequent = self._frequent(counted, counts, noise, n_rows)
                    curator.map_rows(attrgetter("numbers"))
                if scaled:
                    shape = n_rows, len(scaled)
                    means, scales = unbounded_moments(
                        curator, mu_numbers, self.adjacency, shape, missing=True
                    )
                _say_of_columns(doubts, scaled, frequent, n_rows * mu_numbers, unit)
        # 6. attributes: what was released, and what is public
        labels = [column.label for column in scaled]
        self.columns_, self.frequent_ = columns, frequent
        self.mean_ = dict(zip(labels, means.tolist(), strict=True))
        self.scale_ = dict(zip(labels, scales.tolist(), strict=True))
        return self

    @property
    def _releases(self):
        """Whether a fit may release anything."""
        return self.epsilon is not None

    def _frequent(self, counted, counts, noise, n_rows):
        """Return which buckets are kept, and their shares, from released counts."""
        found = {}
        for column, part in zip(counted, np.split(counts, len(counted)), strict=True):
            largest = np.argsort(-part, kind="stable")[: self.max_categories]
            # the words of an identifier are spread over all buckets alike, with Poisson's law
            average = n_rows / self.n_buckets
            crowded = max(2 * average, average + 5 * math.sqrt(average) + 5)
            clear = part[largest[0]] > max(_CLEARLY_SEEN * noise, crowded)
            kept = np.sort(largest[clear & (part[largest] > max(_SEEN * noise, crowded))])
            found[column.label] = kept, np.clip(part[kept] / n_rows, 0.0, 1.0)
        return found

    def transform(self, X: MatrixLike) -> Any:
        """Turn rows of the table into rows of numbers.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            Rows with the columns of `fit`; never changed.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            No row is longer than `data_norm`.
        """
        check_is_fitted(self)
        X = validate_private_data(self, X, table=True, reset=False)
        blocks = [
            self._block(column_values(X, i), column) for i, column in enumerate(self.columns_)
        ]
        rows = np.hstack(blocks) * (self.data_norm / self._unit())
        with np.errstate(under="ignore"):
            rows *= (self.data_norm / np.maximum(row_norms(rows), self.data_norm))[:, None]
        if self.adjacency == "zero-out":
            rows[rows_without_values(X, self.columns_)] = np.nan
        return rows

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features.

        Parameters
        ----------
        input_features : None or array-like of str
            Ignored, but for a check that they are the names of the columns.

        Returns
        -------
        names : ndarray of str objects
            As "age", "age^2", or "age~45" for a knot at 45, "age=missing", "plan=pro",
            "plan=other", and "plan=#17" for the words of bucket 17.
        """
        check_is_fitted(self)
        named = zip(self.columns_, check_feature_names_in(self, input_features), strict=True)
        names: dict[str, None] = {}
        for column, name in named:
            for feature in self._names(column, name):
                # a column may be called like the feature of another
                while feature in names:
                    feature += "'"
                names[feature] = None
        return np.array(list(names), dtype=object)

    def _names(self, column, name):
        """Return the names of the features of a column."""
        if column.kind == "text":
            kept = column.words or [f"#{bucket}" for bucket in self.frequent_[column.label][0]]
            return [f"{name}={word}" for word in (*kept, "other", "missing")]
        bent = [f"{name}^2"] * self._bends(column)
        if bent and self.has_knots_:
            center, unit, knots = self._knots(column)
            bent = [f"{name}~{center + unit * knot:.4g}" for knot in knots[knots != 0]]
        return [name, *bent, *[f"{name}=missing"] * column.nullable]

    def _is_bent(self, columns, ranks):
        """Return whether there is signal for knots, by rows times the Gaussian-DP parameter."""
        moved = 1.0 if self.adjacency == "zero-out" else 2.0
        d = sum(map(self._bends, columns))
        return self.curves == "auto" and bool(ranks >= _BENT * moved * math.sqrt(d) > 0)

    def _bends(self, column):
        return self.curves is not None and column.kind not in ("flag", "text")

    def _knots(self, column):
        """Return origin and unit of a column, and its knots in that unit."""
        if column.bounds is not None:
            low, high = column.bounds
            return low / 2 + high / 2, high / 2 - low / 2, _EVEN
        center, scale = self.mean_[column.label], self.scale_[column.label]
        return (center, scale, _KNOTS) if scale else (center, 1.0, _WIDE)

    def _block(self, values, column):
        """Return the features of a column: every value on its own, by released and public facts."""
        if column.kind == "text":
            return self._hot(column_words(values), column)
        numbers = column_numbers(values, column)
        missing = np.isnan(numbers)
        if column.bounds is not None:
            low, high = column.bounds
            # exact at both ends, and it cannot overflow
            share = (np.clip(numbers, low, high) - low) / (high - low)
            moved, middle, width = share - (1 - share), 1 / 3, 1.0
        else:
            center, scale = self.mean_[column.label], self.scale_[column.label]
            with np.errstate(over="ignore", under="ignore"):
                away = numbers - center
                moved = np.clip(away / scale, -_FARTHEST, _FARTHEST) if scale else np.sign(away)
            middle, width = float(scale > 0), 3.0
        bent = [(moved * moved - middle) / width] * self._bends(column)
        if bent and self.has_knots_:
            center, unit, knots = self._knots(column)
            with np.errstate(over="ignore", under="ignore"):
                away = moved if column.bounds is not None else (numbers - center) / unit
            bent = list(triangles(away, knots)[:, knots != 0].T)
        parts = [np.where(missing, 0.0, part) for part in (moved, *bent)]
        return np.column_stack([*parts, *[missing] * column.nullable])

    def _hot(self, words, column):
        """Return the features of words."""
        if column.words is not None:
            known, shares = {word: i for i, word in enumerate(column.words)}, 0.0
            places = word_places(words, lambda word: known.get(word, -1))
        else:
            buckets, shares = self.frequent_[column.label]
            known = {bucket: i for i, bucket in enumerate(buckets.tolist())}
            places = word_places(words, lambda word: known.get(bucket_of(self.n_buckets, word), -1))
        # the last but one says "other", the last one "missing"
        hot = np.zeros((len(words), len(known) + 2))
        hot[np.arange(len(words)), np.where(places < 0, len(known) - 1 - places, places)] = 1.0
        hot[:, : len(known)] -= shares
        return hot

    def _unit(self):
        """Return what rows are divided by, so that most are shorter than 1; public.

        On tables between one row in a hundred and one in five is longer, and shortened. A larger
        unit makes the noise of a model louder, a smaller one shortens rows far from the centre.
        """
        square = sum(
            column.length * (1.25 if self._bends(column) else 1.0) for column in self.columns_
        )
        return 1.1 * math.sqrt(square) + 0.8

    def _twin(self):
        knots = self._knots if self.has_knots_ else None
        return table_columns(self, _FARTHEST, self._unit(), knots)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _listed(columns):
    """Return the names of columns in words."""
    return some_of([column.label for column in columns])

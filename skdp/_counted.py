# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Counts of rows: as one of their group, by their weight, and all together where that is a secret.

Groups. A person is protected with all rows, whatever their number. Neighbours differ in the rows of
one group, in their number too; how many groups there are is public. A row counts as one over the
number of rows of its group. So whatever sum a statistic is, a group adds a mean of what rows may
add: the bound on what one row moves is that of a group, for groups of any size.

Numbers of rows. With adjacency "add-remove" neighbours are data sets with and without one row, so
plans must not know their number. With weights of rows they must not know the total of these, which
a row changes. Either is released first, for a small part of epsilon, and stands in plans where the
number of rows stands otherwise. Sums that nothing is divided by do without a total of weights: the
number of rows is public then, and bounds them. Given what was released, a row more is a row in the
place of a null row, for estimators whose statistics are sums over rows that may stand anywhere:
what follows is the fit that adjacency "zero-out" has, with what is left of epsilon (Propositions 85
and 86).
"""

import math
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from skdp._rows.base import sum_over
from skdp._rows.linear import LinearChunk, counted_rows
from skdp._rows.streams import (
    NOBODY,
    Identified,
    RowStream,
    arrow_targets,
    as_stored,
    is_arrow,
    is_dask,
    is_text_of_arrow,
    marks_of,
    one_by_one,
    refuse_masked,
)
from skdp.exceptions import BudgetError
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.books.parts import asks_for_groups
from skdp.privacy.books.resume import open_curator
from skdp.privacy.kernel.accounting import SeededNoiseWarning
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import LaplaceMechanism

_DROPPED = (
    "{}, and fit got no groups: every row would be a group of its own. Pass groups= to fit. "
    "GridSearchCV, RandomizedSearchCV, cross_val_score and the other cross-validators of "
    "scikit-learn keep groups for the splits, and pass them to fit only after "
    "sklearn.set_config(enable_metadata_routing=True) and set_fit_request(groups=True). Nothing "
    "was charged, and no row was read."
)

_ASKED = (
    "set_fit_request(groups=True), or one for weights that does not say groups=False, asked for "
    "groups"
)


def check_groups(estimator, groups):
    """Raise if somebody meant groups and a fit got none.

    Parameters
    ----------
    estimator : estimator
        Its shared budget and its request for metadata are read.
    groups : array-like or None
        What `fit` got.

    Raises
    ------
    BudgetError
        If the shared budget protects groups.
    ValueError
        If groups were asked for.
    """
    if groups is not None or not getattr(estimator, "_releases", True):
        return
    if getattr(estimator.budget, "unit", None) == "group":
        raise BudgetError(_DROPPED.format("the shared budget protects groups (unit='group')"))
    if asks_for_groups(estimator):
        raise ValueError(_DROPPED.format(_ASKED))


def resolve_groups(groups, X, ordered=False):
    """Code the groups.

    Parameters
    ----------
    groups : array-like, RowStream or dask collection of shape (n_rows,), or None
        Identifier of the group that a row belongs to: numbers, or text. None: every row is a
        group of its own.
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        The rows. A stream notes whose rows they are if its own chunks say so: they may be of
        nobody else when they are read again.
    ordered : bool, default=False
        Whether the order of groups must be the same for other rows, and in another process.

    Returns
    -------
    public : tuple of (int, str)
        Number of groups, and what is protected: "group", or "row" without groups.
    codes : ndarray of shape (n_rows,), dtype int64
        Number of every row's group; private. With `ordered` it is the place among the sorted
        identifiers, which follows from their set. Otherwise it is any, and tells rows of one group
        from others, but nothing may depend on which it is. None without groups.

    Raises
    ------
    ValueError
        If `groups` is not one identifier a row.
    TypeError
        If `groups` is a stream of rows, or a name.
    """
    n_rows = X.shape[0]
    if groups is None:
        return (n_rows, "row"), None
    if isinstance(groups, str):
        raise TypeError(
            f"groups must be the identifiers themselves, one for each row; got {groups!r}. Pass "
            "the column of that name; stream_chunks and stream_parquet take names of columns."
        )
    if isinstance(groups, RowStream):
        own = isinstance(X, RowStream) and groups.table is X.table
        found, codes = _joined_codes(_read_identifiers(groups, X if own else None))
    elif is_dask(groups):
        from skdp._rows.dask import of_column

        found, codes = _joined_codes(of_column(groups, coded_identifiers, "groups"))
    elif is_arrow(groups) and is_text_of_arrow(groups):
        found, codes = _joined_codes(_coded_text(groups))
    elif hasattr(groups, "factorize"):
        # pandas tells text apart without an object of Python for every row
        places, names = groups.factorize()
        if (places < 0).any():
            raise ValueError(NOBODY)
        found, codes = coded_identifiers(np.asarray(names))
        codes = codes[places]
    else:
        found, codes = coded_identifiers(identifiers_of(groups))
    if len(codes) != n_rows:
        raise ValueError(_WRONG_SHAPE.format(n_rows, codes.shape))
    if ordered:
        places = np.empty(len(found), dtype=np.int64)
        places[np.argsort(found, kind="stable")] = np.arange(len(found))
        codes = places[codes]
    return (len(found), "group"), codes


_WRONG_SHAPE = "groups must have one identifier for each row of X, shape ({},); got shape {}."


def identifiers_of(groups):
    """Return the identifiers of rows in memory, an array, or raise a ValueError."""
    try:
        found = np.asarray(arrow_targets(groups, exact=True) if is_arrow(groups) else groups)
        # one fraction in a list would make one of two large numbers, and one word two of 1 and 1.0
        mixed = isinstance(groups, list | tuple) and found.ndim == 1 and found.dtype.kind in "fU"
        found = as_stored(groups) if mixed else found
    except ValueError:
        raise ValueError(
            "groups must have one identifier for each row of X; got lists of several lengths."
        ) from None
    if found.ndim != 1:
        raise ValueError(_WRONG_SHAPE.format("n_rows", found.shape))
    refuse_masked(groups)
    # numpy spells out what is missing in a list of text
    spelled = found.dtype.kind == "U" and isinstance(groups, list | tuple)
    if spelled and any(map(_is_nobody, groups)):
        raise ValueError(NOBODY)
    return found


def coded_identifiers(groups):
    """Return identifiers, each once, and which of them every row has.

    Parameters
    ----------
    groups : ndarray of shape (n_rows,)
        Numbers, or text.

    Returns
    -------
    found : ndarray of shape (n_groups,)
        In any order.
    codes : ndarray of shape (n_rows,), dtype int64
        Private.

    Raises
    ------
    ValueError
        If some are missing, or if they are of several types.
    """
    try:
        if groups.dtype.kind in "SU":
            rows, codes = _told_by_words(_words(groups))
            return groups[rows], codes
        if groups.dtype.kind in "OT":
            listed = groups.tolist()
            words = _words_of_text(listed)
            if words is not None:
                rows, codes = _told_by_words(words)
                return groups[rows], codes
            # whoever shares a number with another one is protected together with him
            rows, codes = _told_apart(marks_of(listed))
            if set(map(type, groups[rows].tolist())) == {bytes}:
                # text shares its number with the bytes that spell it, which it cannot be joined to
                b"".join(listed)
                return groups[rows], codes
        if _has_nobody(groups):
            raise ValueError(NOBODY)
        if np.can_cast(groups.dtype, np.float64):
            # the bits of a number tell it, once there is one zero
            numbers = groups.astype(np.float64 if groups.dtype.kind == "f" else np.int64) + 0
            if groups.dtype.kind != "f" and len(groups):
                close = _close_numbers(numbers)
                if close is not None:
                    return close[0].astype(groups.dtype), close[1]
            rows, codes = _told_apart(numbers.view(np.int64))
            return groups[rows], codes
        groups = one_by_one(listed) if groups.dtype.kind == "O" else groups
        found, codes = np.unique(groups, return_inverse=True)
    except TypeError:
        raise ValueError(
            "groups must have identifiers of one type that can be sorted; got several types."
        ) from None
    return found, codes.reshape(-1)


def _close_numbers(numbers):
    """Return whole numbers, each once, and which of them each is; None if they are far apart."""
    low, high = int(numbers.min()), int(numbers.max())
    if high - low >= 4 * len(numbers):
        return None
    # a place for every number from the lowest to the highest
    places, seen = numbers - low, np.zeros(high - low + 1, dtype=bool)
    seen[places] = True
    return np.flatnonzero(seen) + low, (np.cumsum(seen) - 1)[places]


# zeros behind text, and the most bytes of an identifier that is read in words; and identifiers
# that are compared at a time
_PADDING, _AT_ONCE = 64, 1 << 12


def _words(groups):
    """Return text of one width as numbers of eight bytes, an array of shape (n_rows, n_words)."""
    kind, n_words = groups.dtype.kind, max(-(-groups.dtype.itemsize // 8), 1)
    padded = np.ascontiguousarray(groups, f"{kind}{n_words * (8 if kind == 'S' else 2)}")
    return padded.view(np.uint64).reshape(len(groups), n_words)


def _words_of_text(listed):
    """Return a list of text as numbers of eight bytes, as `_words` does; None if not all is text.

    What lies beyond the padding is one number: that by which the whole text is told.
    """
    try:
        # one pass in C, and no object for every row
        text = ("\0".join(listed) + "\0" * _PADDING).encode("utf-8", "surrogatepass")
    except TypeError:
        return None
    ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == 0)
    if len(ends) == len(listed) + _PADDING - 1:
        ends = ends[: len(listed)]
        starts = np.append(0, ends[:-1] + 1)
        lengths = ends - starts
    else:
        # some text holds a zero
        parts = [one.encode("utf-8", "surrogatepass") for one in listed]
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        starts, text = lengths.cumsum() - lengths, b"".join(parts) + bytes(_PADDING)
    windows = np.ndarray(len(text) - 7, dtype="<u8", buffer=text, strides=(1,))
    # what lies behind the end is shifted out
    beyond = 64 - 8 * lengths
    long = np.flatnonzero(lengths > _PADDING)
    n_words = max(1, -(-min(lengths.max(initial=0), _PADDING) // 8))
    words = np.zeros((len(listed), n_words + bool(len(long))), dtype=np.uint64)
    for i in range(n_words):
        left = np.minimum(np.maximum(beyond + 64 * i, 0), 64).astype(np.uint64)
        words[:, i] = windows[starts + 8 * i] << left
    if len(long):
        words[long, -1] = marks_of([listed[i] for i in long]).view(np.uint64)
    return words


def _told_by_words(words):
    """Return a row of every text, and of which of these rows each has the text, by its words."""
    marks = np.zeros(len(words), dtype=np.uint64)
    for word in words.T:
        marks = _scattered(marks ^ word)
    rows, codes = _told_apart(marks.view(np.int64))
    lead = rows[codes]
    # a few at a time: new memory for all of them takes longer than the comparison
    parts = [slice(start, start + _AT_ONCE) for start in range(0, len(words), _AT_ONCE)]
    if all(np.array_equal(words.take(lead[part], axis=0), words[part]) for part in parts):
        return rows, codes
    # two texts share a mark: told apart by a sort
    _, rows, codes = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return rows, codes.reshape(-1)


def _scattered(marks):
    """Return other numbers for numbers, one for each, of which the first bits are well mixed."""
    marks = marks ^ (marks >> np.uint64(32))
    marks *= np.uint64(GOLDEN_BITS)
    return marks


def _told_apart(marks):
    """Return a row of every mark, and of which of these rows each has the mark.

    Parameters
    ----------
    marks : ndarray of shape (n_rows,), dtype int64
        Whatever they are, in time that grows with their number: no sort.
    """
    every, bits = np.arange(len(marks)), len(marks).bit_length() + 1
    lead, table = (np.empty(size, dtype=np.int64) for size in (len(marks), 1 << bits))
    left, own, mixed = every, marks, marks.view(np.uint64)
    while len(left):
        mixed = _scattered(mixed)
        places = (mixed >> np.uint64(64 - bits)).view(np.int64)
        # of several rows any may be the last to be written; those of other marks try once more
        table[places] = left
        first = table[places]
        lead[left if len(left) < len(lead) else slice(None)] = first
        other = np.flatnonzero(marks[first] != own)
        left, own, mixed = left[other], own[other], mixed[other]
    rows = np.flatnonzero(lead == every)
    table[rows] = every[: len(rows)]
    return rows, table[lead]


def _read_identifiers(groups, X):
    """Yield the codes of all blocks of a stream; `X` is that of the rows if they lie beside it."""
    if groups.ndim != 1:
        raise TypeError("groups must be a stream of identifiers, one for each row; got rows.")
    marks = []
    for block in groups.table.blocks():
        listed = groups.of(block)
        if X is not None:
            # a copy: a view would keep the whole of a chunk in memory
            marks.append(np.array(marks_of(listed)))
        yield coded_identifiers(listed)
    if X is not None and marks:
        known = Identified(groups.steps, np.concatenate(marks))
        X.inspected(replace(X.facts, known=known))


def _joined_codes(blocks):
    """Return the identifiers and codes of blocks one after another, from those of each."""
    names, parts = [], []
    for found, codes in blocks:
        names.append(found)
        parts.append(codes)
    if len({_is_text(found) for found in names if len(found)}) > 1:
        raise ValueError(
            "groups must have identifiers of one type in all chunks; got numbers in some and text "
            "in others."
        )
    if not names:
        return np.empty(0), np.empty(0, dtype=np.int64)
    if len({found.dtype.kind for found in names if len(found)} & {*"iuf"}) > 1:
        # as floats two large numbers of one chunk could be one, by the type of another
        names = [found.astype(object) for found in names]
    found, places = coded_identifiers(np.concatenate(names))
    starts = np.cumsum([0, *map(len, names)])
    return found, np.concatenate(
        [places[start + codes] for start, codes in zip(starts[:-1], parts, strict=True)]
    )


def _coded_text(column):
    """Yield the codes of the parts of a column of Arrow, which tells text apart itself."""
    for part in getattr(column, "chunks", [column]):
        if part.null_count:
            raise ValueError(NOBODY)
        coded = part.dictionary_encode()
        yield coded.dictionary.to_numpy(zero_copy_only=False), coded.indices.to_numpy()


def _is_text(found):
    return isinstance(found[0], str | bytes)


def _has_nobody(groups):
    """Return whether there is None, NaN, NA or NaT."""
    if groups.dtype.kind != "O":
        # what is missing does not even equal itself
        return bool((groups != groups).any())
    return any(map(_is_nobody, groups.tolist()))


def _is_nobody(one):
    try:
        return one is None or bool(one != one)
    except TypeError:
        # NA does not know whether it does
        return True


#: 2^64 over the golden ratio
GOLDEN_BITS = 0x9E3779B97F4A7C15
#: what rows count is a whole number of parts of one: sums over up to 2^31 groups are exact
PARTS = 1 << 20


def shares(unit, codes):
    """Return what rows count: one over the number of rows of their group, in whole parts.

    Parameters
    ----------
    unit : {"row", "group"}
        What is protected.
    codes : ndarray of shape (n_rows,) or None
        Of the groups, from `resolve_groups`.

    Returns
    -------
    shares : ndarray of shape (n_rows,) or None
        Private; multiples of 1 / PARTS, with a sum of 1 over every group. None for 1 each.

    Notes
    -----
    What one over the number of rows leaves of the parts goes to the first rows of a group: what a
    row counts depends on the rows of its own group alone.
    """
    if unit == "row":
        return None
    n_groups = codes.max(initial=-1) + 1
    if n_groups == len(codes):
        return np.ones(len(codes))
    # by group and then by place: a count, and no sort
    owners = sparse.csr_array((codes, codes, np.arange(len(codes) + 1)), (len(codes), n_groups))
    owners = owners.tocsc()
    sizes = np.diff(owners.indptr)
    parts, more = np.divmod(PARTS, sizes)
    each = np.column_stack([parts + 1, parts]) / PARTS
    counts = np.empty(len(codes))
    counts[owners.indices] = np.repeat(each.ravel(), np.column_stack([more, sizes - more]).ravel())
    return counts


# part of epsilon that the number gets, where it is in plans only
_COUNT_SHARE = 0.05
# no number of rows is larger: sums are exact enough for so many
_MOST_ROWS = 2**31
#: as many rows as any solver needs: what is refused for these is refused for all
MANY_ROWS = 10**6
# scales of the noise between the released number and what the true one is below: it is not with a
# probability of exp(-1000), and sums beyond their bound are clamped then
_MARGIN = 1000


@dataclass(frozen=True)
class RowCount:
    """Number of rows, or of groups; or the total of their weights.

    Parameters
    ----------
    name : {"number of rows", "total of the weights"}
        What the statistic is.
    """

    name: str = "number of rows"
    size = 1

    def sensitivity(self, adjacency, n_rows):
        """State the l1 sensitivity: 1.

        Proof. A row, or a group, counts between 0 and 1. Neighbours differ in one, that is there or
        is not, or counts as another does.
        """
        return Sensitivity(l1=1.0, l2=1.0, bound=float(n_rows), theorem="a row counts 1 at most")

    def evaluate(self, rows):
        """Return the total of what rows count, an array of shape (1,)."""
        # whole parts of one, for up to 2^31 rows: nothing is rounded
        return np.array([np.sum(rows)])


def _cells_of(chunk):
    """Return the cells of rows, shape (n_rows, n_tables), and what rows count; None for 1 each."""
    if isinstance(chunk, LinearChunk):
        # of two classes with one prediction the first is -1
        return np.maximum(chunk.target, 0)[:, None], counted_rows(chunk)
    return chunk.X, chunk.weight


@dataclass(frozen=True)
class CellCounts:
    """Numbers of rows in the cells of tables: a row is in one cell of each, or in none.

    Parameters
    ----------
    sizes : tuple of int
        Number of cells of every table: bins of a feature, classes, labels with predictions.
    name : str
        What the cells are.

    Notes
    -----
    Rows are those of `BoxRows`, with the cell of a row in every table, -1 for none; or `LinearRows`
    of a classifier, whose cells are their classes.
    """

    sizes: tuple[int, ...]
    name: str = "rows in cells of features"

    @property
    def size(self):
        """Number of coordinates."""
        return sum(self.sizes)

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities of d tables: d and sqrt(d), or 2 d and sqrt(2 d).

        Proof. A row adds 1 to at most one cell of each table, a null row nothing. Zero-out removes
        that; under replace-one it leaves one cell of each and enters another, or, of a table with a
        single cell, does one of both: 1. All is attained. A group, whose weights add up to at most
        1, adds a mean of such vectors, and of zero.
        """
        moved = len(self.sizes)
        theorem = "a row is in one cell of each table"
        if adjacency == "replace-one":
            moved = sum(min(size, 2) for size in self.sizes)
            theorem = "a row leaves one cell of each table and enters another"
        return Sensitivity(float(moved), math.sqrt(moved), float(n_rows), theorem)

    def partial(self, chunk):
        """Return the counts over a chunk's rows."""
        cells, weight = _cells_of(chunk)
        starts = np.cumsum((0, *self.sizes[:-1]))
        there = (cells >= 0) & np.isfinite(cells)
        if weight is not None:
            weight = np.broadcast_to(weight[:, None], there.shape)[there]
        places = (np.where(there, cells, 0) + starts).astype(np.int64)[there]
        return np.bincount(places, weight, minlength=self.size).astype(np.float64)

    def evaluate(self, rows):
        """Return the counts over all rows, an array of shape (size,)."""
        return sum_over(rows, self.partial, self.size)


@dataclass
class HiddenCount:
    """A fit for which the number of rows, or the total of their weights, is a secret.

    Parameters
    ----------
    epsilon, delta, adjacency : float, float, str
        What is promised for the whole fit.
    price : float
        Epsilon of the number; 0 where none is needed.
    max_weight : float or None
        A weight that counts 1; None without weights.
    source : dict
        The shared budget, the source of noise, and its purpose.
    made_up : bool
        Whether rows are made up for a plan, which is for as many as was asked for.
    ledger : Ledger
        With the number, once it was released.
    most : int
        A public number that the number of rows, or of groups, is not above.
    """

    epsilon: float
    delta: float
    adjacency: str
    price: float
    max_weight: float | None
    source: Any
    made_up: bool = False
    ledger: Any = None
    most: int = 0

    @property
    def left(self):
        """Epsilon that is left for the fit."""
        if self.is_free:
            return self.epsilon
        # a hair less, so that prices add up to no more than the budget in floats
        return (self.epsilon - self.price) * (1 - 1e-9)

    @property
    def is_free(self):
        """Whether nothing is planned by a total, nor divided by one: none is released."""
        return self.price == 0

    def before(self, ledger):
        """Return a ledger with the number before the releases of the same fit."""
        if self.is_free:
            return ledger
        whole = self.ledger.assume(*ledger.assumptions)
        for release in ledger.releases:
            whole = whole.append(release)
        return whole

    def release(self, counts, n_rows, unit):
        """Release the number; a shared budget is charged for the whole fit.

        Parameters
        ----------
        counts : callable
            Returns what rows count, each in [0, 1], those of a group at most 1 together.
        n_rows, unit : int, {"row", "group"}
            How many there are of what is protected; private with adjacency "add-remove".

        Returns
        -------
        n_rows : int
            Public from here on, at least 1.
        """
        secret = self.adjacency == "add-remove"
        if self.is_free:
            # the number of rows is public, and bounds all sums of what they count
            self.most = n_rows
            return n_rows
        with warnings.catch_warnings():
            # the curator of the fit warns of a seed
            warnings.simplefilter("ignore", SeededNoiseWarning)
            curator = open_curator(
                None if self.made_up else (self.price, self.max_weight),
                counts,
                n_rows=_MOST_ROWS if secret else n_rows,
                epsilon=self.epsilon,
                delta=self.delta,
                adjacency=self.adjacency,
                unit=unit,
                **self.source,
            )
        query = RowCount() if self.max_weight is None else RowCount("total of the weights")
        (released,) = curator.release(query, LaplaceMechanism(self.price))
        self.ledger, self.most = Ledger.of(curator.ledger), n_rows
        found = n_rows if self.made_up else min(max(1, round(released)), _MOST_ROWS)
        if secret:
            scale = curator.ledger.releases[-1].noise.scale
            self.most = min(found + math.ceil(_MARGIN * scale), _MOST_ROWS)
        return min(found, self.most)


def hidden_count(estimator):
    """Return the `HiddenCount` of a fit that is under way; None if the number is public."""
    return vars(estimator).get("_hidden_count")


def largest_weight(estimator):
    """Return the weight that counts 1 in a fit that is under way; None without weights."""
    hidden = hidden_count(estimator)
    return None if hidden is None else hidden.max_weight


@contextmanager
def counted_first(estimator, weighted):
    """Fit an estimator with what is left when a secret number of rows, or total, was released.

    Parameters
    ----------
    estimator : estimator
        With a secret number of rows, or with weights and a bound on them, its `epsilon` and
        `adjacency` are others until the context closes: those of a fit that takes the released
        number for the true one.
    weighted : bool
        Whether rows have weights.
    """
    epsilon, adjacency = (getattr(estimator, name, None) for name in ("epsilon", "adjacency"))
    secret = adjacency == "add-remove"
    weighted = weighted and getattr(estimator, "max_weight", None) is not None
    releases = epsilon is not None and getattr(estimator, "_releases", True)
    if not (secret or weighted) or not releases:
        yield
        return
    share = getattr(estimator, "_count_share", _COUNT_SHARE)
    if secret:
        # plans need it, whatever is divided by it
        share = share or _COUNT_SHARE
    hidden = HiddenCount(
        epsilon,
        getattr(estimator, "delta", 0.0),
        adjacency,
        share * epsilon,
        estimator.max_weight if weighted else None,
        {
            "budget": estimator.budget,
            "random_state": estimator.random_state,
            "purpose": f"{type(estimator).__name__}, number of rows",
        },
        getattr(estimator, "_is_made_up", False),
    )
    estimator._hidden_count = hidden
    try:
        estimator.epsilon = hidden.left
        if secret:
            estimator.adjacency = "zero-out"
        yield
    finally:
        estimator.epsilon = epsilon
        if secret:
            estimator.adjacency = adjacency
        del estimator._hidden_count


def count_rows(groups, X, hidden, sample_weight=None, planned=None):
    """Say how many rows, or groups, there are; release that where it is a secret.

    Parameters
    ----------
    groups : array-like of shape (n_rows,) or None
        As for `resolve_groups`.
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        The rows. What they count is in memory, whether they are or not.
    hidden : HiddenCount or None
        Of the fit.
    sample_weight : array-like of shape (n_rows,), float or None
        Weights of rows, with `max_weight`.
    planned : callable, default=None
        Plans for a number of rows. What it refuses for many of them is refused before the number
        is released, which a shared budget pays for.

    Returns
    -------
    public : tuple of (int, str)
        The number, released where it is a secret, and what is protected: "row" or "group".
    whose : callable or None
        What `counts_of` has counts from; private. None where every row counts 1 in its place.

    Raises
    ------
    ValueError, TypeError
        If groups or weights are unusable, or as `planned` raises.
    """
    if hidden is None:
        public, codes = resolve_groups(groups, X)
        return public, None if codes is None else partial(shares, public[1], codes)
    weights = None
    if hidden.max_weight is not None:
        weights = units_of_weight(sample_weight, X.shape[0], hidden.max_weight)
    (n_rows, unit), codes = resolve_groups(groups, X)
    # a row alone is a group of one
    codes = np.arange(X.shape[0]) if codes is None else codes
    if planned is not None:
        planned(MANY_ROWS)
    # counted once, for the total and for the fit
    whose = cache(partial(_counts, unit, codes, weights))
    return (hidden.release(whose, n_rows, unit), unit), whose


def counts_of(whose):
    """Return what rows count, in whole parts of one.

    Parameters
    ----------
    whose : callable or None
        From `count_rows`.

    Returns
    -------
    counts : ndarray of shape (n_rows,) or None
        Private; multiples of 1 / PARTS in [0, 1], of a group at most 1 together. None for 1 each.
    """
    return None if whose is None else whose()


def _counts(unit, codes, weights):
    """Return what rows count, by the rows of their group and by their weights, if there are any."""
    counts = np.ones(len(codes)) if unit == "row" else shares(unit, codes)
    return counts if weights is None else in_parts(counts * weights)


def in_parts(counts):
    """Return what rows count, rounded down to whole parts of one, of which sums are exact."""
    return np.floor(counts * PARTS) / PARTS


def units_of_weight(sample_weight, n_rows, max_weight):
    """Return weights in units of the largest that counts, at most 1.

    Parameters
    ----------
    sample_weight : array-like of shape (n_rows,), or float
        Private weights.
    n_rows, max_weight : int, float
        How many there are, and the largest that counts.

    Returns
    -------
    weights : ndarray of shape (n_rows,)
        In [0, 1].

    Raises
    ------
    ValueError
        If they are not one finite number a row, none of them negative.
    """
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, float(sample_weight))
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must have one number for each row of X.") from None
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one number for each row of X, shape ({n_rows},); got shape "
            f"{weights.shape}."
        )
    # no message tells which
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must have finite numbers that are not negative.")
    with np.errstate(under="ignore"):
        return np.minimum(weights, max_weight) / max_weight

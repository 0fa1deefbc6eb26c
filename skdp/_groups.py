# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Groups of rows: who has which, what a row of them counts, and requests that must not be lost.

With groups a person is protected with all rows, whatever their number. Neighbours differ in the
rows of one group, in their number too; how many groups there are is public. A row counts as one
over the number of rows of its group. So whatever sum a statistic is, a group adds a mean of what
rows may add: the bound on what one row moves is that of a group, for groups of any size.
"""

from dataclasses import replace

import numpy as np
from scipy import sparse

from skdp._rows.streams import (
    Identified,
    RowStream,
    arrow_targets,
    as_stored,
    is_arrow,
    is_dask,
    is_text_of_arrow,
    marks_of,
    one_by_one,
)
from skdp.exceptions import BudgetError
from skdp.privacy.books.spent import asks_for_groups

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
            raise ValueError(_NOBODY)
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


_NOBODY = "groups must not have missing identifiers."
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
    # numpy spells out what is missing in a list of text, and forgets a mask
    spelled = found.dtype.kind == "U" and isinstance(groups, list | tuple)
    if np.ma.is_masked(groups) or (spelled and any(map(_is_nobody, groups))):
        raise ValueError(_NOBODY)
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
            raise ValueError(_NOBODY)
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
            raise ValueError(_NOBODY)
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

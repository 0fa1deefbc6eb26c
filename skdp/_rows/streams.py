# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tables and streams: rows outside memory, and arrays computed from them range by range.

A `RowStream` stands for an array that is not in memory: the rows of a table, or a function of
them, row by row. Its tables read arrays on disk by slices (`ArrayTable`), pair the rows of one
stream with the targets of another (`PairTable`), or go through chunks of any length from the first
to the last (`ChunkTable`); rows in the partitions of a cluster are in ``skdp/_rows/dask.py``.

Ranges are cut by the number of rows and of features alone, and put together row after row in
memory. So a fit to a stream computes what a fit to the same rows in memory does, to the last bit
(Proposition 76 of the proofs).
"""

import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

# Tables of rows outside memory, and blocks of rows as arrays.
#
# A `Table` reads any range of its rows, as often as it is asked to, and keeps the range that it
# read last. What it reads are blocks: pairs of rows, as float arrays or CSR, and targets; a third
# part is whose row it is, or what it counts.
# `as_block` makes one of whatever rows are stored as: arrays, data frames, sparse matrices, and
# tables and batches of Arrow, whose values keep their precision. No message quotes a value
# (`quietly`).


#: rows that are read at a time where nothing else says how many
READ_ROWS = 1 << 16
#: entries that are read at a time, at most: 64 MiB of numbers
_READ_ENTRIES = 1 << 23


class Table:
    """Rows and, in the same order, targets, that can be read any number of times.

    Subclasses implement ``_read(start, stop)`` and `blocks`.

    Attributes
    ----------
    n_rows : int or None
        Number of rows; None as long as nobody has counted them.
    names : tuple of str or None
        Names of the features; known once a row was read.
    """

    n_rows = names = None
    #: number of features; None as long as no row was read
    n_features = None
    #: what keeps chunks of rows from one pass to the next, of `skdp._rows.kept`
    keeper = None
    #: range that was read last, and its rows: several streams are read from one table
    _last = None
    #: what there is of rows that were kept, if there are none: in copies, and once it is closed
    _blank: ClassVar[dict[str, Any]] = {"_last": None}

    def __new__(cls, *args, **options):
        """Return a table that one thread at a time reads."""
        made = super().__new__(cls)
        made._turn = threading.RLock()
        return made

    def __getstate__(self):
        state = {**vars(self), **self._blank}
        del state["_turn"]
        return state

    @property
    def width(self):
        """Number of rows that are read at a time where nothing else says how many."""
        if not self.n_features:
            return READ_ROWS
        return min(max(_READ_ENTRIES // self.n_features, 1), READ_ROWS)

    def blocks(self):
        """Yield all rows, in order, in blocks (X, y) of any length; y may be None."""
        for start in range(0, self.n_rows, self.width):
            yield self.read(start, min(start + self.width, self.n_rows))

    def _read(self, start, stop):
        raise NotImplementedError

    def read(self, start, stop):
        """Return the rows of a range, a block (X, y).

        Returns
        -------
        X : ndarray or CSR array of shape (stop - start, n_features)
            In float64 or float32.
        y : ndarray of shape (stop - start,) or None
            Targets as they are stored.
        *more : ndarray of shape (stop - start,)
            Whose row it is, of chunks that say so; or what it counts, of `counted`.
        """
        # two fits in threads may share what is read: rows must not get mixed up
        with self._turn:
            if self._last is None or self._last[0] != (start, stop):
                self._last = None
                self._last = (start, stop), self._read(start, stop)
            return self._last[1]

    def take(self, positions):
        """Return the rows at sorted positions, a block as of `read`; the whole is never held."""
        if not len(positions):
            return self.read(0, 0)
        n_rows, width = self.count(), self.width
        pieces, first = [], int(positions[0]) // width * width
        for start in range(first, int(positions[-1]) + 1, width):
            low, high = np.searchsorted(positions, [start, start + width])
            if low < high:
                block = self.read(start, min(start + width, n_rows))
                pieces.append(taken(block, positions[low:high] - start))
        return joined(pieces)

    def count(self):
        """Return the number of rows; they are gone through if nobody has counted them."""
        if self.n_rows is None:
            self.n_rows = sum(block[0].shape[0] for block in self.blocks())
        return self.n_rows

    def counted(self, weight, known=None):
        """Return the table of the same rows, with what each counts as a third part of blocks.

        Parameters
        ----------
        weight : ndarray of shape (n_rows,)
            One number for each row.
        known : Identified, default=None
            Whose rows they were when that was read; looked at again whenever rows are read.
        """
        return CountedTable(self, weight, known)

    def close(self):
        """Forget rows that were kept for the next call, or for the next pass."""
        with self._turn:
            vars(self).update(self._blank)
        if self.keeper is not None:
            self.keeper.close()


def through(steps, block):
    """Return what functions make of a block, one after another."""
    for step in steps:
        block = step(block)
    return block


def taken(block, where):
    """Return some rows of a block, at an index or in a slice, as a block."""
    return tuple(None if part is None else part[where] for part in block)


def _of_its_own(block):
    """Return a block of the same rows in memory of its own, one row after another."""
    X, *others = block
    X = X.copy() if sparse.issparse(X) else np.array(X, order="C")
    return X, *(None if part is None else np.array(part) for part in others)


def joined(pieces):
    """Return blocks of rows one after another, as one block.

    Parameters
    ----------
    pieces : list of blocks (X, y), or of three parts
        At least one.

    Returns
    -------
    X, y : ndarray or CSR array, ndarray or None
        Views of the only piece that has rows, if there is one; and a third part, if pieces have.
    """
    filled = [piece for piece in pieces if piece[0].shape[0]] or pieces[:1]
    if len(filled) == 1:
        return filled[0]
    rows, y, *others = zip(*filled, strict=True)
    X = sparse.vstack(rows, format="csr") if sparse.issparse(rows[0]) else np.concatenate(rows)
    return X, None if y[0] is None else in_one(y), *map(np.concatenate, others)


def in_one(parts):
    """Return targets one after another; no entry changes its type for that of another part.

    numpy would make text of all numbers beside a part with text, and floats of whole numbers that
    have none: the labels of a whole range would depend on one row.
    """
    kinds = {part.dtype.kind for part in parts}
    whole = [part for part in parts if part.dtype.kind in "iu"]
    if kinds <= set("biuf"):
        wide = len(kinds & set("iuf")) > 1 and any(not _have_floats(part) for part in whole)
    else:
        wide = len(kinds) > 1
    return np.concatenate([one_by_one(part) for part in parts] if wide else parts)


def _have_floats(whole):
    return whole.min(initial=0) >= -(2**53) and whole.max(initial=0) <= 2**53


# Tables and record batches of Arrow as arrays of numpy; pyarrow is imported when one is met.

_OTHER_KINDS = "Encode it with public constants first, or leave it out (columns=)."
#: and what reads words, dates and gaps
FOR_TABLES = "A table in memory can go through DPTableVectorizer first, as in dp_tabular_pipeline."


def is_arrow(X):
    """Whether X is a table, a batch or a column of Arrow; nothing is imported to find out."""
    return type(X).__module__.partition(".")[0] == "pyarrow"


def is_text_of_arrow(column):
    """Whether a column of Arrow is text, every entry written down."""
    from pyarrow import types

    kind = getattr(column, "type", None)
    return types.is_string(kind) or types.is_large_string(kind)


def arrow_dtype(schema):
    """Return the type of the rows of a schema, or raise a TypeError that names a column.

    float32 if no column needs more, as scikit-learn has it; float64 otherwise.
    """
    kinds = [_numpy_type(field) for field in schema]
    single = bool(kinds) and np.result_type(*kinds) == np.float32
    return np.dtype(np.float32 if single else np.float64)


def _numpy_type(field):
    from pyarrow import types

    if types.is_decimal(field.type):
        return np.dtype(np.float64)
    numbers = (types.is_integer, types.is_floating, types.is_boolean)
    if not any(test(field.type) for test in numbers):
        raise TypeError(
            f"X must be numeric: column {field.name!r} is of type {name_of_type(field.type)}. "
            f"{_OTHER_KINDS}"
        )
    return np.dtype(field.type.to_pandas_dtype())


def check_column(field, what):
    """Raise a TypeError unless a column can be targets or groups: numbers, flags or text.

    Parameters
    ----------
    field : pyarrow.Field
        The column.
    what : str
        What it is to be.
    """
    from pyarrow import types

    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    usable = (
        types.is_integer, types.is_floating, types.is_boolean, types.is_decimal,
        types.is_string, types.is_large_string, types.is_string_view,
    )  # fmt: skip
    if not any(test(kind) for test in usable):
        raise TypeError(
            f"{what} must be numbers, booleans or text: column {field.name!r} is of type "
            f"{name_of_type(field.type)}."
        )


def name_of_type(kind):
    """Return the name of a type, without what it may quote of the values, such as categories."""
    return re.split(r"[<\[(]", str(kind))[0] or str(kind)


def arrow_rows(X):
    """Return the rows of a table or a batch, values as they are; nulls are NaN.

    Parameters
    ----------
    X : pyarrow.Table or pyarrow.RecordBatch
        Columns of integers, floats, decimals and booleans.

    Returns
    -------
    X : ndarray of shape (n_rows, n_features)
        Column after column in memory, as data frames have it: sums of such rows are the same
        to the last bit.
    """
    rows = np.empty((X.num_rows, X.num_columns), arrow_dtype(X.schema), order="F")
    first = 0
    for batch in X.to_batches() if hasattr(X, "to_batches") else [X]:
        part = rows[first : first + batch.num_rows]
        for position, column in enumerate(batch.columns):
            part[:, position] = _numbers(column)
        first += batch.num_rows
    return rows


def _numbers(column):
    from pyarrow import types

    if types.is_decimal(column.type):
        # the nearest number, as that of a printed decimal; Arrow's own cast can miss it
        column = column.cast("string").cast("float64")
    elif types.is_boolean(column.type) and column.null_count:
        column = column.cast("float64")
    return column.to_numpy(zero_copy_only=False)


def arrow_targets(y, exact=False):
    """Return a column of targets, values as they are.

    Parameters
    ----------
    y : pyarrow.Array or pyarrow.ChunkedArray
        Numbers, booleans or text.
    exact : bool, default=False
        Whether decimals stay decimals: as floats, two large identifiers would be one.

    Returns
    -------
    y : ndarray of shape (n_rows,)
        Text in objects. A null among floats is NaN, one among whole numbers or text None.
    """
    from pyarrow import ChunkedArray, types

    if isinstance(y, ChunkedArray):
        parts = [arrow_targets(part, exact) for part in y.chunks]
        return np.concatenate(parts) if parts else np.empty(0)
    if types.is_dictionary(y.type):
        y = y.dictionary_decode()
    numbers = (types.is_integer, types.is_floating, types.is_boolean)
    if any(test(y.type) for test in numbers) or (types.is_decimal(y.type) and not exact):
        return _whole_numbers(y, _numbers(y))
    return y.to_numpy(zero_copy_only=False)


def as_stored(y):
    """Return targets as an array in which no entry changes its type for that of another."""
    if not isinstance(y, list | tuple):
        return _whole_numbers(y, np.asarray(y))
    try:
        made = np.asarray(y)
    except ValueError:
        # lists of several lengths: what they are is left to whoever looks at the values
        return one_by_one(y)
    if made.ndim == 2 and made.shape[1] == 1:
        return as_stored([one[0] for one in y]).reshape(-1, 1)
    if made.ndim != 1 or made.dtype.kind in "biu":
        return made
    exact = floats_hold(y) if made.dtype.kind == "f" else all(isinstance(one, str) for one in y)
    return made if exact else one_by_one(y)


def _only_column(y):
    """Return the column of a table that has one; anything else as it is."""
    return y[y.columns[0]] if len(getattr(y, "columns", ())) == 1 else y


def declared_kind(y):
    """Return "number" or "text" for a column of a data frame or of Arrow; None if it is neither.

    Arrays and lists say nothing: their entries are looked at one by one. A column of objects is
    text if all of its entries are, but for missing ones.
    """
    y = _only_column(y)
    dtype = getattr(y, "dtype", getattr(y, "type", None))
    if dtype is None or isinstance(y, np.ndarray):
        return None
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    name = str(getattr(dtype, "value_type", dtype)).lower()
    if re.match("u?int|float|double|half|bool|decimal", name):
        return "number"
    if name == "object":
        missing = ("NoneType", "NAType", "NaTType", "float")
        kinds = {type(one) for one in y.tolist() if type(one).__name__ not in missing}
        return "text" if kinds == {str} else None
    return "text" if re.match("(large_)?str|categor|enum", name) else None


def _whole_numbers(y, made):
    """Return the array of a column; whole numbers beside gaps, which are None, become no floats."""
    y = _only_column(y)
    dtype = getattr(y, "dtype", getattr(y, "type", None))
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    if made.dtype.kind != "f" or not re.match("u?int", str(dtype).lower()):
        return made
    # of floats, large numbers that are different would be the same
    y = y.astype(object) if hasattr(y, "astype") else y
    listed = next(name for name in ("to_pylist", "tolist", "to_list") if hasattr(y, name))
    whole = [one if isinstance(one, Integral) else None for one in getattr(y, listed)()]
    return np.array(whole, dtype=object).reshape(made.shape)


def floats_hold(numbers):
    """Return whether every whole number of a list has a float."""
    return all(not isinstance(one, Integral) or abs(int(one)) <= 2**53 for one in numbers)


def one_by_one(y):
    """Return a list as an array of objects; numbers are those of Python, which compare exactly."""
    made = np.empty(len(y), dtype=object)
    for position, one in enumerate(y):
        made[position] = one.item() if isinstance(one, np.number) else one
    return made


# Blocks of rows as arrays of the usual types, whatever they are stored as.

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_REFUSED = ("datetime", "date", "time", "duration", "categor", "enum", "period", "interval")


def as_block(X, y=None):
    """Return rows, and targets if there are any, as arrays; values are not looked at.

    Parameters
    ----------
    X : array-like, data frame, Arrow table or sparse matrix of shape (n_rows, n_features)
        Numbers, as they are stored.
    y : array-like of shape (n_rows,), default=None
        Targets.

    Returns
    -------
    X : ndarray or CSR array of shape (n_rows, n_features)
        In float64 or float32.
    y : ndarray of shape (n_rows,) or None
        As they are stored.

    Raises
    ------
    ValueError, TypeError
        If they cannot be converted, or have another shape. No value is in the message.
    """
    if isinstance(X, dict):
        raise TypeError("a chunk must be an array, a data frame or a CSR matrix; got a dict.")
    if not _is_plain(X):
        refuse_other_types(X)
        X = quietly(
            check_array,
            arrow_rows(X) if is_table(X) else in_rows(X),
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=0,
        )
    return X, None if y is None else as_column(y, X.shape[0], "target", "y")


def as_column(y, n_rows, what, name):
    """Return what is given for every row of a chunk as it is stored, an array, or raise."""
    if name == "groups":
        refuse_masked(y)
    y = arrow_targets(y, name == "groups") if is_arrow(y) and not is_table(y) else as_stored(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y.ravel()
    if y.shape != (n_rows,):
        raise ValueError(
            f"a chunk must have one {what} for each of its rows; X has {n_rows} rows, and {name} "
            f"has shape {y.shape}."
        )
    return y


NOBODY = "groups must not have missing identifiers."


def refuse_masked(groups):
    """Raise a ValueError if identifiers are masked: an array would have what stands under that."""
    if np.ma.is_masked(groups):
        raise ValueError(NOBODY)


def _is_plain(X):
    # nothing would be changed, and small ranges are asked for thousands of times
    return type(X) is np.ndarray and X.ndim == 2 and X.shape[1] > 0 and X.dtype in _FLOATS


def quietly(check, *args, **options):
    """Call one of scikit-learn's checks without letting a data value into a message.

    Errors that quote values there, of a failed conversion or of an array of another dimension,
    name only the kind of problem here.
    """
    try:
        # a warning that depends on the values would be an output: scikit-learn looks for
        # NaN in a sum, which entries of 1e308 overflow
        with np.errstate(invalid="ignore", over="ignore"):
            return check(*args, **options)
    except ValueError as error:
        problem = _without_values(str(error))
        if problem is None:
            raise
    raise ValueError(problem)


def in_rows(X):
    """Return COO matrices in CSR, entries in the order in which they are stored; others as is.

    scipy would add up what is stored in parts, in an order that depends on other rows.
    """
    if not (sparse.issparse(X) and X.format == "coo" and X.ndim == 2):
        return X
    X = type(X)((X.data, X.coords), shape=X.shape)
    # nothing is added up then
    X.has_canonical_format = True
    return X.tocsr()


def refuse_other_types(X, but=()):
    """Raise for dates and categories, which scikit-learn would turn into numbers silently.

    And for a frame of polars whose rows are still to be computed. Types in `but` are let through.
    """
    if type(X).__name__ == "LazyFrame":
        raise TypeError(
            "the rows of a LazyFrame are not there yet: pass X.collect(), or a stream of "
            "skdp.io.stream_chunks if they do not fit in memory."
        )
    if is_table(X):
        arrow_dtype(X.schema)
        return
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None:
        dtypes = [X.dtype] if hasattr(X, "dtype") else []
    # a series has one type, and is refused for its dimension
    for place, dtype in enumerate(np.atleast_1d(dtypes)):
        if str(dtype).lower().startswith(tuple(set(_REFUSED) - set(but))):
            which = f"column {X.columns[place]!r}" if hasattr(X, "columns") else "it"
            raise TypeError(
                f"X must be numeric: {which} is of type {name_of_type(dtype)}. {FOR_TABLES}"
            )


def _without_values(message):
    """Return what to say instead of a message that quotes values; None if it may stand."""
    if "could not convert" in message or message.startswith("setting an array element"):
        return f"X must be numeric: it holds text, or objects that are not numbers. {FOR_TABLES}"
    kind, _, quoted = message.partition("\narray=")
    if quoted:
        return (
            f"{kind.rstrip(':')}. Reshape your data with X.reshape(-1, 1) if it has a single "
            "feature, or X.reshape(1, -1) if it is a single sample."
        )
    if message.startswith("Complex data not supported"):
        return "Complex data not supported: X must be real numbers."
    if message.startswith("Input X contains NaN"):
        # scikit-learn recommends what would void the promise
        return (
            "Input X contains NaN. Fill in a public constant: the promise covers neither a value "
            f"that is computed from the rows nor rows that are left out. {FOR_TABLES}"
        )
    return None


def is_table(X):
    """Whether X is a table or a batch of Arrow."""
    return is_arrow(X) and hasattr(X, "column_names")


def columns_of(X):
    """Return the names of the columns of a data frame or an Arrow table; nothing for others."""
    return list(X.column_names if is_table(X) else getattr(X, "columns", ()))


def types_in(X):
    """Return the types of columns by their names; x0, x1 ... for those of an array."""
    if isinstance(X, np.ndarray):
        return {f"x{i}": X.dtype for i in range(X.shape[1])}
    if is_table(X):
        return {field.name: field.type for field in X.schema}
    if hasattr(X, "iloc"):
        return dict(zip(X.columns, X.dtypes, strict=True))
    return dict(X.schema)


def whole_columns(X):
    """Return which columns have whole numbers alone, by the types that they say they have.

    The entries of a list do not tell: one of them would decide. False if there are no types.
    """
    # asked of the class: a frame that is not computed yet has neither, and warns of its columns
    typed = is_table(X) or hasattr(type(X), "columns") or isinstance(X, np.ndarray)
    typed = typed and hasattr(type(X), "shape") and len(X.shape) == 2
    types = types_in(X).values() if typed else ()
    whole = [re.match("u?int|bool", str(dtype).lower()) is not None for dtype in types]
    return np.array(whole or False)


def names_of(X):
    """Return the names of the columns of a data frame, if all are strings; None for others."""
    columns = columns_of(X)
    if not columns or not all(isinstance(name, str) for name in columns):
        return None
    return tuple(columns)


# Streams of rows, and of numbers that belong to them.


def rows_of(block):
    """Return the rows of a block, one after another in memory: one layout, wherever chunks end."""
    X = block[0]
    return X if sparse.issparse(X) else np.ascontiguousarray(X)


def targets_of(block):
    """Return the targets of a block."""
    return block[1]


def numbers_of(block):
    """Return the third part of a block: whose rows they are, or what they count."""
    return block[2]


def no_flags(X):
    """Return a flag that is not set for every row of X."""
    return np.zeros(X.shape[0], dtype=bool)


class RowStream:
    """Rows, or one number for each, that are read range by range.

    Made by the functions of `skdp.io`, and passed to `fit` in place of an array. It holds
    no rows but those of the range that was read last, until the next `fit` is over.

    Parameters
    ----------
    table : Table
        Where rows are read.
    steps : tuple of callables
        What turns a block of the table into a range of this array, one function after another.
        Each maps every row on its own.
    ndim : int, default=2
        2 for rows, 1 for one number each.
    """

    def __init__(
        self, table: Any, steps: tuple[Callable[[Any], Any], ...] = (rows_of,), ndim: int = 2
    ) -> None:
        self.table, self.steps, self.ndim = table, steps, ndim
        #: what a pass over the rows has found
        self.facts = None
        self._n_features: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and, for rows, of features; rows are counted if need be."""
        if self.ndim == 1:
            return (self.table.count(),)
        if self._n_features is None and len(self.steps) == 1:
            self._n_features = self.table.n_features
        if self._n_features is None:
            first = next(iter(self.table.blocks()), None)
            # without a row nobody knows
            self._n_features = 0 if first is None else self.of(first).shape[1]
        return self.table.count(), self._n_features

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self):
        return f"<RowStream of {'rows' if self.ndim == 2 else 'targets'}>"

    def __array__(self, dtype=None, copy=None):
        """Refuse: rows are not to be brought into memory unasked."""
        raise TypeError(
            "a stream of rows is not an array, and this method needs one. Go through it with "
            "`for block in stream.blocks():`, or load the data if they fit into memory."
        )

    def inspected(self, facts: Any) -> None:
        """Note what a pass over the rows has found; nobody needs to read a row for it again."""
        self.facts, self._n_features = facts, facts.n_features

    def view(self) -> "RowStream":
        """Return another stream of the same array, of which nothing is known yet."""
        return RowStream(self.table, self.steps, self.ndim)

    def map(self, function: Callable[[Any], Any], ndim: int | None = None) -> "RowStream":
        """Return the stream of a function of this one's ranges.

        Parameters
        ----------
        function : callable
            Maps an array of rows to one of as many, every row on its own. The ledger of a fit
            notes that this is assumed; a fit refuses functions that visibly mix made-up rows.
        ndim : int, default=None
            Dimensions of what it returns; None for those of this stream.

        Returns
        -------
        stream : RowStream
            Nothing is computed before it is read.
        """
        made = RowStream(self.table, (*self.steps, function), self.ndim if ndim is None else ndim)
        made.facts = self.facts
        return made

    def of(self, block: Any) -> Any:
        """Return the range of this array that belongs to a block of the table."""
        return through(self.steps, block)

    def read(self, start: int, stop: int) -> Any:
        """Return a range of this array."""
        block = self.table.read(start, stop)
        if self.facts is not None and self.facts.known is not None:
            self.facts.known.check(block, start, stop)
        return self.of(block)

    @property
    def is_mapped(self) -> bool:
        """Whether the whole is an array of numpy already: a memory map, unchanged."""
        return isinstance(self.table, ArrayTable) and self.table.is_mapped

    def whole(self) -> NDArray[Any]:
        """Return the whole array at once; only of memory maps."""
        if not self.is_mapped:
            raise TypeError("only a memory map can be used as a whole.")
        return self.read(0, self.table.count())

    def blocks(self, n_rows: int = READ_ROWS) -> Iterator[Any]:
        """Yield the array in pieces of at most `n_rows` rows, in order.

        Parameters
        ----------
        n_rows : int, default=65536
            Rows of a piece.

        Yields
        ------
        part : ndarray or CSR array
            The rows of one piece, or one number for each.
        """
        total = self.table.count()
        for start in range(0, total, n_rows):
            yield self.read(start, min(start + n_rows, total))


@contextmanager
def kept_meanwhile(*given):
    """Forget the rows that streams have kept for the next call, and close files, at the end."""
    try:
        yield
    finally:
        for part in given:
            if isinstance(part, RowStream):
                part.table.close()


def over_rows(function, X):
    """Return a function of rows, computed now for an array and range by range for a stream."""
    return X.map(function) if isinstance(X, RowStream) else function(X)


@dataclass(frozen=True)
class Together:
    """Ranges of several streams of one table; parameters are their steps."""

    streams: tuple

    def __call__(self, block):
        """Return the ranges that belong to a block of the table."""
        # what streams share is computed once: labels are looked up for codes and for flags
        made, known = [], {}
        for steps in self.streams:
            part, path = block, ()
            for step in steps:
                path += (id(step),)
                if path not in known:
                    known[path] = step(part)
                part = known[path]
            made.append(part)
        return tuple(made)


def together(*streams):
    """Return what maps a block of the table of streams to the ranges of all of them."""
    if any(stream.table is not streams[0].table for stream in streams):
        raise ValueError("streams of different tables cannot be read together.")
    return Together(tuple(stream.steps for stream in streams))


# Which arrays are read range by range.


#: bytes from which on a memory map is read range by range, and no array is copied as a whole
LARGE = 1 << 28


def is_streamed(X):
    """Whether rows are to be read range by range rather than held in memory."""
    return isinstance(X, RowStream) or is_large_memmap(X) or is_dask(X)


def is_dask(X):
    """Whether X is a collection of dask; nothing is imported to find out."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr", "distributed")


def is_large_memmap(X):
    """Whether X is a memory map that is large enough to be read range by range."""
    mapped = isinstance(X, np.memmap) and X.filename is not None
    return mapped and X.ndim == 2 and X.nbytes >= LARGE


# Tables: arrays that slices can be taken of.


class ArrayTable(Table):
    """Rows of arrays that need not be in memory.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Anything with a `shape` that slices of rows can be taken of: memory maps, HDF5 and Zarr
        arrays.
    y : array of shape (n_rows,), default=None
        Targets, likewise.
    """

    _blank: ClassVar[dict[str, Any]] = {"_last": None, "_kept": None}

    def __init__(self, X, y=None):
        self.n_rows = int(X.shape[0])
        if y is not None and y.shape[0] != self.n_rows:
            raise ValueError(
                f"X and y must have the same number of rows; got {self.n_rows} and {y.shape[0]}."
            )
        # memory maps as the arrays that they are: a slice of one costs much more
        self.X, self.y = (np.asarray(a) if isinstance(a, np.ndarray) else a for a in (X, y))
        self.n_features = int(X.shape[1]) if len(X.shape) == 2 else None
        self._kept = None

    def _read(self, start, stop):
        if self.is_mapped:
            return self._at(slice(start, stop))
        # what is stored in compressed chunks is unpacked once a pass, not once a range
        width, pieces = self.width, []
        for first in range(start // width * width, max(stop, start + 1), width):
            if self._kept is None or self._kept[0] != first:
                self._kept = None
                self._kept = first, self._at(slice(first, min(first + width, self.n_rows)))
            rows = slice(max(start - first, 0), max(stop - first, 0))
            pieces.append(taken(self._kept[1], rows))
        return joined(pieces)

    def _at(self, rows):
        X = np.asarray(self.X[rows])
        block = as_block(X, None if self.y is None else np.asarray(self.y[rows]))
        # what is no array of numpy may read the next slice into the same memory
        return block if self.is_mapped else _of_its_own(block)

    def take(self, positions):
        """Return the rows at sorted positions; of arrays of numpy these alone are read."""
        return self._at(positions) if self.is_mapped else super().take(positions)

    @property
    def width(self):
        """Number of rows that are read at a time: whole chunks, if the rows are stored in some."""
        width, stored = super().width, getattr(self.X, "chunks", None)
        if not (isinstance(stored, tuple) and stored and isinstance(stored[0], int)):
            return width
        return max(width // stored[0], 1) * max(stored[0], 1)

    @property
    def is_mapped(self):
        """Whether the rows are an array of numpy, of which any part can be taken."""
        return all(isinstance(part, np.ndarray | None) for part in (self.X, self.y))


# Tables: rows of one stream with the targets of another, or of an array.


class PairTable(Table):
    """Rows of one stream with the targets of another, or of an array.

    Parameters
    ----------
    X : RowStream
        Rows.
    y : RowStream or ndarray of shape (n_rows,)
        Targets.
    """

    def __init__(self, X, y):
        self._X, self._y = X, y
        (self.n_rows, self.n_features), self.names = X.shape, X.table.names
        self.keeper = X.table.keeper
        if y.shape[0] != self.n_rows:
            raise ValueError(
                f"X and y must have the same number of rows; got {self.n_rows} and {y.shape[0]}."
            )

    def _read(self, start, stop):
        y = self._y
        y = y.read(start, stop) if isinstance(y, RowStream) else y[start:stop]
        return self._X.read(start, stop), y

    def close(self):
        """Forget rows that were kept for the next call."""
        super().close()
        for part in (self._X, self._y):
            if isinstance(part, RowStream):
                part.table.close()


# Tables: rows with what each of them counts.


class CountedTable(Table):
    """Rows of a table, with what each of them counts.

    Parameters
    ----------
    table : Table
        Where rows are read; they were counted.
    weight : ndarray of shape (n_rows,)
        One number for each row.
    known : Identified or None
        Whose rows they were when that was read.
    """

    def __init__(self, table, weight, known):
        self._table, self._weight, self._known = table, weight, known
        self.n_rows, self.n_features, self.names = table.n_rows, table.n_features, table.names
        self.keeper = table.keeper

    def _read(self, start, stop):
        block = self._table.read(start, stop)
        if self._known is not None:
            self._known.check(block, start, stop)
        return *block[:2], self._weight[start:stop]

    def close(self):
        """Forget rows that were kept for the next call."""
        super().close()
        self._table.close()


@dataclass(frozen=True, eq=False)
class Identified:
    """Whose rows they were when that was read first.

    Parameters
    ----------
    steps : tuple of callables
        What turns a block of the table into identifiers.
    marks : ndarray of shape (n_rows,)
        Of the identifiers, from `marks_of`.
    """

    steps: tuple
    marks: Any

    def check(self, block, start, stop):
        """Raise a ValueError if a range of rows is not of whom it was before."""
        if not np.array_equal(marks_of(through(self.steps, block)), self.marks[start:stop]):
            raise ValueError(
                "groups have changed since they were read first: chunks must give the same rows, "
                "of the same groups and in the same order, every time that they are iterated over."
            )


def marks_of(identifiers):
    """Return a number for every identifier, by which another one is told in this process."""
    if not isinstance(identifiers, list):
        if identifiers.dtype.kind in "biuf":
            return identifiers
        identifiers = identifiers.tolist()
    return np.fromiter(map(hash, identifiers), np.int64, len(identifiers))


# Tables: rows that come in chunks of any length, from the first to the last.


class ChunkTable(Table):
    """Rows that are iterated over, as often as they are needed.

    Parameters
    ----------
    make : callable
        Returns a fresh iterator over the chunks, pairs (X, y), where y may be None, or three
        parts, of which the last says whose row it is; the same rows every time.
    n_rows : int, default=None
        Number of rows, if it is known; otherwise they are counted when they are inspected.

    Notes
    -----
    Where chunks end is of no consequence: rows are put together anew, into ranges that depend
    on their number alone. Otherwise a row could shift the boundaries of sums, and rounding
    would depend on it.
    """

    _blank: ClassVar[dict[str, Any]] = {"_last": None, "_source": None, "_rest": None, "_passed": 0}

    def __init__(self, make, n_rows=None):
        self._make, self.n_rows = make, n_rows
        self._columns = self._kind_of_targets = None
        vars(self).update(self._blank)

    def blocks(self):
        """Yield chunks as they come; those without rows are left out."""
        chunks = self._make()
        try:
            for chunk in chunks:
                block = self._checked(*chunk)
                if block[0].shape[0]:
                    yield block
        finally:
            # files that an iterator has opened are not left to the garbage collector
            if hasattr(chunks, "close"):
                chunks.close()

    def _checked(self, X, y, *groups):
        names, kind = names_of(X), declared_kind(y)
        if kind is not None and self._kind_of_targets not in (None, kind):
            # a reader makes text of a whole chunk if one entry is
            raise ValueError(
                "the targets of chunks must be of one type; a column is of numbers in one chunk "
                "and of text in another, as readers that look at the entries decide. Say which, "
                "as in pandas.read_csv(..., dtype={'target': str})."
            )
        self._kind_of_targets = kind or self._kind_of_targets
        X, y = as_block(X, y)
        groups = [as_column(whose, X.shape[0], "group", "groups") for whose in groups]
        columns = names, X.shape[1]
        if X.shape[0] and self._columns is None:
            self._columns, self.names, self.n_features = columns, names, X.shape[1]
        if X.shape[0] and columns != self._columns:
            raise ValueError(
                "the chunks must have the same features: one has "
                f"{_described_chunk(*self._columns)}, another {_described_chunk(*columns)}."
            )
        return X, y, *groups

    def _read(self, start, stop):
        try:
            return self._next_range(start, stop)
        except BaseException:
            # an iterator that has raised has ended: the next one begins anew
            self._stop()
            raise

    def _next_range(self, start, stop):
        if self._source is None or start < self._passed:
            # what is kept of earlier passes stays
            self._stop()
            self._source = self.blocks()
        pieces = []
        while not pieces or self._passed < stop:
            block = self._rest or self._next()
            n_rows = block[0].shape[0]
            low, high = (min(max(at - self._passed, 0), n_rows) for at in (start, stop))
            pieces.append(taken(block, slice(low, high)))
            self._passed += high
            self._rest = taken(block, slice(high, None)) if high < n_rows else None
        if stop == self.n_rows:
            self._end()
        return joined(pieces)

    def _next(self):
        block = next(self._source, None)
        if block is None:
            raise ValueError(
                "the chunks ended early: they must give the same rows every time that they are "
                "iterated over."
            )
        # a range has rows of several chunks, and the next one may be in the memory of this one: as
        # a view, a row would count as often as there are chunks in the range
        return _of_its_own(block)

    def _end(self):
        """Raise if there are more rows than there should be, and close the iterator."""
        more = self._rest is not None or next(self._source, None) is not None
        self._stop()
        if more:
            raise ValueError(
                "there are more rows in the chunks than before: they must give the same rows "
                "every time that they are iterated over."
            )

    def _stop(self):
        if self._source is not None:
            self._source.close()
        self._source, self._rest, self._passed = None, None, 0

    def close(self):
        """Forget the iterator and the rows that were kept."""
        # another fit may be reading
        with self._turn:
            self._stop()
            super().close()


def _described_chunk(names, n_features):
    return f"{n_features} features" + ("" if names is None else f" named {list(names)}")


# One pass over rows before a fit: whether they are usable, how many, with which labels.


@dataclass(frozen=True)
class Facts:
    """What a pass over the rows has found.

    Parameters
    ----------
    n_rows, n_features, n_entries : int
        Numbers of rows, of features, and of entries that are stored.
    is_sparse : bool
        Whether rows are CSR.
    labels : ndarray or None
        The distinct targets, sorted; None if nobody asked for them.
    known : Identified or None
        Whose rows they were, if the table says so and somebody asked.
    """

    n_rows: int = 0
    n_features: int = 0
    n_entries: int = 0
    is_sparse: bool = False
    labels: Any = None
    known: Any = None

    @classmethod
    def of(cls, X, y, with_labels):
        """Return the facts of one checked block."""
        labels = np.unique(y) if with_labels and y is not None else None
        is_sparse = sparse.issparse(X)
        entries = int(X.nnz if is_sparse else X.size)
        return cls(X.shape[0], X.shape[1], entries, is_sparse, labels)

    def plus(self, other):
        """Return the facts of these blocks and of those of `other`, which come after."""
        if not self.n_rows:
            return other
        if not other.n_rows:
            return self
        if self.is_sparse != other.is_sparse:
            raise ValueError("the chunks must all be sparse, or all be dense.")
        labels = self.labels
        if labels is not None:
            if _kind(labels) != _kind(other.labels):
                raise ValueError("the chunks of y must be labels of one type.")
            labels = np.unique(np.concatenate([labels, other.labels]))
        return Facts(
            self.n_rows + other.n_rows,
            self.n_features,
            self.n_entries + other.n_entries,
            self.is_sparse,
            labels,
        )


def _kind(labels):
    return "text" if labels.dtype.kind in "USO" else "number"


def facts_of(X, y, check, with_labels):
    """Go through streams once.

    Parameters
    ----------
    X, y : RowStream, RowStream or None
        Of one table.
    check : callable
        Raises if a block (X, y) is unusable, and returns it otherwise.
    with_labels : bool
        Whether the distinct targets are asked for.

    Returns
    -------
    facts : Facts
        About all rows; the table knows their number from then on.
    """
    table, look = X.table, Look(X.steps, None if y is None else y.steps, check, with_labels)
    per_block = getattr(table, "of_blocks", None)
    found = map(look, table.blocks()) if per_block is None else per_block(look)
    facts = Facts()
    for part in found:
        facts = facts.plus(part)
    if table.n_rows is not None and table.n_rows != facts.n_rows:
        raise ValueError(f"the chunks have {facts.n_rows} rows; n_rows is {table.n_rows}.")
    table.n_rows = facts.n_rows
    return facts


@dataclass(frozen=True)
class Look:
    """The facts of one block, wherever it is; parameters are those of `facts_of`."""

    rows: Any
    targets: Any
    check: Any
    with_labels: bool

    def __call__(self, block):
        """Return the facts of a block of the table."""
        y = through(self.targets, block) if self.targets else None
        X, y = self.check(through(self.rows, block), y)
        return Facts.of(X, y, self.with_labels)


# The features of a stream: their number and names, and whether an estimator knows them.


def first_rows(X):
    """Return the first rows of a stream, or none if there are none."""
    block = next(iter(X.table.blocks()), None)
    return np.empty((0, 1)) if block is None else X.of(block)


def stream_names_of(X):
    """Return the names of the features of a stream that was read, or None."""
    # what was computed from a data frame has no names, as an array has none
    return X.table.names if len(X.steps) == 1 else None


def check_columns(estimator, names, n_features, *, reset):
    """Do for a stream what scikit-learn does with the columns of arrays and data frames.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` and `feature_names_in_`, or has them.
    names : sequence of str or None
        Names of the features.
    n_features : int
        Number of features.
    reset : bool
        Whether they are set; compared otherwise.

    Raises
    ------
    ValueError
        If they are not those that were set.
    """
    fitted = getattr(estimator, "feature_names_in_", None)
    if names is not None and not reset:
        if fitted is None:
            warnings.warn(
                f"X has feature names, but {type(estimator).__name__} was fitted without "
                "feature names",
                UserWarning,
                stacklevel=4,
            )
        elif list(fitted) != list(names):
            raise ValueError(
                "The feature names should match those that were passed during fit, in the "
                f"same order: {_difference(fitted, names)}."
            )
        else:
            return
    validate_data(estimator, Nameless(n_features), skip_check_array=True, reset=reset)
    if names is not None and reset:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)


def _difference(fitted, names):
    if len(fitted) != len(names):
        return f"there were {len(fitted)} features, and now there are {len(names)}"
    place = next(i for i, pair in enumerate(zip(fitted, names, strict=True)) if len({*pair}) > 1)
    return f"feature {place} was {fitted[place]!r}, and now it is {names[place]!r}"


class Nameless:
    """Rows of which scikit-learn is to see nothing but how many features they have."""

    def __init__(self, n_features):
        self.shape = (1, n_features)

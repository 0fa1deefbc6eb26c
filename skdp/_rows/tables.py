# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tables of rows outside memory, and blocks of rows as arrays.

A `Table` reads any range of its rows, as often as it is asked to, and keeps the range that it read
last. What it reads are blocks: pairs of rows, as float arrays or CSR, and targets. `as_block` makes
one of whatever rows are stored as: arrays, data frames, sparse matrices, and tables and batches of
Arrow, whose values keep their precision. No message quotes a value (`quietly`).
"""

import threading
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

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

    n_rows = None
    names = None
    #: number of features; None as long as no row was read
    n_features = None
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
        """Yield all rows, in order, in pairs (X, y) of any length; y may be None."""
        for start in range(0, self.n_rows, self.width):
            yield self.read(start, min(start + self.width, self.n_rows))

    def _read(self, start, stop):
        raise NotImplementedError

    def read(self, start, stop):
        """Return the rows of a range, a pair (X, y).

        Returns
        -------
        X : ndarray or CSR array of shape (stop - start, n_features)
            In float64 or float32.
        y : ndarray of shape (stop - start,) or None
            Targets as they are stored.
        """
        # two fits in threads may share what is read: rows must not get mixed up
        with self._turn:
            if self._last is None or self._last[0] != (start, stop):
                self._last = None
                self._last = (start, stop), self._read(start, stop)
            return self._last[1]

    def take(self, positions):
        """Return the rows at sorted positions, a pair as of `read`; the whole is never held."""
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
            self.n_rows = sum(X.shape[0] for X, _ in self.blocks())
        return self.n_rows

    def close(self):
        """Forget rows that were kept for the next call."""
        with self._turn:
            vars(self).update(self._blank)


def through(steps, block):
    """Return what functions make of a block, one after another."""
    for step in steps:
        block = step(block)
    return block


def taken(block, where):
    """Return some rows of a block, at an index or in a slice, as a pair (X, y)."""
    X, y = block
    return X[where], None if y is None else y[where]


def joined(pieces):
    """Return blocks of rows one after another, as one pair (X, y).

    Parameters
    ----------
    pieces : list of pairs (X, y)
        At least one.

    Returns
    -------
    X, y : ndarray or CSR array, ndarray or None
        Views of the only piece that has rows, if there is one.
    """
    filled = [piece for piece in pieces if piece[0].shape[0]] or pieces[:1]
    if len(filled) == 1:
        return filled[0]
    rows = [X for X, _ in filled]
    X = sparse.vstack(rows, format="csr") if sparse.issparse(rows[0]) else np.concatenate(rows)
    return X, None if filled[0][1] is None else np.concatenate([y for _, y in filled])


# Tables and record batches of Arrow as arrays of numpy; pyarrow is imported when one is met.

_OTHER_KINDS = "Encode it with public constants first, or leave it out (columns=)."


def is_arrow(X):
    """Whether X is a table, a batch or a column of Arrow; nothing is imported to find out."""
    return type(X).__module__.partition(".")[0] == "pyarrow"


def arrow_dtype(schema):
    """Return the type of the rows of a schema, or raise a TypeError that names a column.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the features.

    Returns
    -------
    dtype : dtype
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
            f"the input must be numeric: column {field.name!r} is of type {_named(field.type)}. "
            f"{_OTHER_KINDS}"
        )
    return np.dtype(field.type.to_pandas_dtype())


def check_target(field):
    """Raise a TypeError unless a column can be targets: numbers, flags or text.

    Parameters
    ----------
    field : pyarrow.Field
        The column.
    """
    from pyarrow import types

    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    usable = (
        types.is_integer, types.is_floating, types.is_boolean, types.is_decimal,
        types.is_string, types.is_large_string, types.is_string_view,
    )  # fmt: skip
    if not any(test(kind) for test in usable):
        raise TypeError(
            f"targets must be numbers, booleans or text: column {field.name!r} is of type "
            f"{_named(field.type)}."
        )


def _named(kind):
    # a type may quote what it has learned of the values, such as the fields of a record
    return str(kind).partition("<")[0]


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


def arrow_targets(y):
    """Return a column of targets, values as they are.

    Parameters
    ----------
    y : pyarrow.Array or pyarrow.ChunkedArray
        Numbers, booleans or text.

    Returns
    -------
    y : ndarray of shape (n_rows,)
        Text in objects.

    Raises
    ------
    ValueError
        If some text is null. A null among numbers is NaN.
    """
    from pyarrow import ChunkedArray, types

    if isinstance(y, ChunkedArray):
        parts = [arrow_targets(part) for part in y.chunks]
        return np.concatenate(parts) if parts else np.empty(0)
    if types.is_dictionary(y.type):
        y = y.dictionary_decode()
    if any(test(y.type) for test in (types.is_integer, types.is_floating, types.is_boolean)):
        return _numbers(y)
    if types.is_decimal(y.type):
        return _numbers(y)
    if y.null_count:
        raise ValueError("Input y contains missing values.")
    return y.to_numpy(zero_copy_only=False)


# Blocks of rows as arrays of the usual types, whatever they are stored as.

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_REFUSED = ("datetime", "date", "time", "duration", "categor", "enum")


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
    if y is not None:
        y = arrow_targets(y) if is_arrow(y) and not is_table(y) else np.asarray(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = y.ravel()
        if y.shape != (X.shape[0],):
            raise ValueError(
                "a chunk must have one target for each of its rows; X has "
                f"{X.shape[0]} rows, and y has shape {y.shape}."
            )
    return X, y


def _is_plain(X):
    # nothing would be changed, and small ranges are asked for thousands of times
    return type(X) is np.ndarray and X.ndim == 2 and X.shape[1] > 0 and X.dtype in _FLOATS


def quietly(check, *args, **options):
    """Call one of scikit-learn's checks without letting a data value into a message.

    Parameters
    ----------
    check : callable
        Of scikit-learn.
    *args, **options : tuple, dict
        Its arguments.

    Returns
    -------
    checked : object
        What it returns.

    Raises
    ------
    ValueError, TypeError
        As scikit-learn raises them; those that quote values there, of a failed conversion or
        of an array of another dimension, name only the kind of problem here.
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


def refuse_other_types(X):
    """Raise for dates and categories, which scikit-learn would turn into numbers silently."""
    if is_table(X):
        arrow_dtype(X.schema)
        return
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None:
        dtypes = [X.dtype] if hasattr(X, "dtype") else []
    # a series has one type, and is refused for its dimension
    if any(str(dtype).lower().startswith(_REFUSED) for dtype in np.atleast_1d(dtypes)):
        raise TypeError(
            "the input must be numeric: it has a column of dates, durations or categories. "
            "Encode it with public constants first."
        )


def _without_values(message):
    """Return what to say instead of a message that quotes values; None if it may stand."""
    if "could not convert" in message:
        return (
            "the input must be numeric: it holds text, or objects that are not numbers. Encode "
            "categories with public vocabularies first."
        )
    kind, _, quoted = message.partition("\narray=")
    if quoted:
        return (
            f"{kind.rstrip(':')}. Reshape your data with X.reshape(-1, 1) if it has a single "
            "feature, or X.reshape(1, -1) if it is a single sample."
        )
    if message.startswith("Complex data not supported"):
        return "Complex data not supported: the input must be real numbers."
    if message.startswith("Input X contains NaN"):
        # scikit-learn recommends what would void the promise
        return (
            "Input X contains NaN. Fill in a public constant: the promise covers neither a value "
            "that is computed from the rows nor rows that are left out."
        )
    return None


def is_table(X):
    """Whether X is a table or a batch of Arrow."""
    return is_arrow(X) and hasattr(X, "column_names")


def columns_of(X):
    """Return the names of the columns of a data frame or an Arrow table; nothing for others."""
    return list(X.column_names if is_table(X) else getattr(X, "columns", ()))


def names_of(X):
    """Return the names of the columns of a data frame, if all are strings; None for others."""
    columns = columns_of(X)
    if not columns or not all(isinstance(name, str) for name in columns):
        return None
    return tuple(columns)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tables and record batches of Arrow as arrays of numpy; pyarrow is imported when one is met."""

import numpy as np

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

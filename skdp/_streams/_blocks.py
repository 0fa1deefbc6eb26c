# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Blocks of rows as arrays of the usual types, whatever they are stored as."""

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from skdp._streams._arrow import arrow_dtype, arrow_rows, arrow_targets, is_arrow

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

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The public form of a data set, and null rows of that form."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import column_or_1d


def as_table(X):
    """Return X itself if it knows its shape, or an array; CSR for sparse matrices."""
    if sparse.issparse(X):
        return X.tocsr()
    if hasattr(X, "shape") and (hasattr(X, "dtype") or hasattr(X, "columns")):
        return X
    return np.asarray(X)


def as_targets(y):
    """Return y as an array, a single column flattened with a warning; None stays None."""
    if y is None:
        return None
    y = np.asarray(y)
    return column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y


@dataclass(frozen=True)
class Form:
    """What is public about rows and targets: how many, and of which kind.

    Parameters
    ----------
    shape : tuple of int
        Of X.
    kind : {"array", "text", "sparse", "frame"}
        What holds the rows.
    columns : object
        An empty data frame with the columns of X, or an empty sparse matrix; None otherwise.
    target_shape : tuple of int or None
        Of y; None if there is none.
    """

    shape: tuple[int, ...]
    kind: str
    columns: Any
    target_shape: tuple[int, ...] | None

    def null_rows(self, n_rows):
        """Return rows of zeros: of empty text, in columns that hold no numbers.

        Parameters
        ----------
        n_rows : int
            How many.

        Returns
        -------
        X : ndarray, CSR matrix or data frame
            A function of the form alone.
        """
        shape = (n_rows, *self.shape[1:])
        if self.kind == "sparse":
            return type(self.columns)(shape, dtype=self.columns.dtype)
        if self.kind == "frame":
            return _null_frame(self.columns, n_rows)
        return np.broadcast_to("" if self.kind == "text" else 0.0, shape)

    def null_targets(self, n_rows, labels):
        """Return labels in turn, or zeros where there are no labels.

        Parameters
        ----------
        n_rows : int
            How many.
        labels : ndarray or None
            The public label set.

        Returns
        -------
        y : ndarray or None
            None if there are no targets.
        """
        if self.target_shape is None:
            return None
        if labels is not None:
            column = labels[np.arange(n_rows) % len(labels)]
            # of a wrong shape, too, so that it is refused before anything is charged
            further = self.target_shape[1:]
            return np.broadcast_to(column.reshape(-1, *[1] * len(further)), (n_rows, *further))
        return np.zeros((n_rows, *self.target_shape[1:]))


def public_form(X, y):
    """Return the form of a data set.

    Parameters
    ----------
    X, y : array-like
        What `as_table` and `as_targets` returned.

    Returns
    -------
    form : Form
        Nothing in it depends on a value.

    Raises
    ------
    ValueError
        If X and y have different lengths.
    """
    shape = tuple(int(side) for side in X.shape)
    kind, columns = "array", None
    if sparse.issparse(X):
        kind, columns = "sparse", type(X)((0, shape[1]), dtype=X.dtype)
    elif hasattr(X, "columns"):
        kind, columns = "frame", X[:0]
    elif X.dtype.kind in "US":
        kind = "text"
    target_shape = None
    if y is not None:
        target_shape = tuple(y.shape)
        if len(target_shape) == 0 or not shape or target_shape[0] != shape[0]:
            raise ValueError(
                "X and y must have the same number of rows; got shapes "
                f"{shape} and {target_shape}. Found input variables with inconsistent numbers "
                "of samples."
            )
    return Form(shape, kind, columns, target_shape)


def _null_frame(columns, n_rows):
    """Return a data frame of null rows, pandas or polars."""
    numeric = [_is_numeric(columns.dtypes, place) for place in range(columns.shape[1])]
    if hasattr(columns, "iloc"):
        import pandas as pd

        parts = []
        for place, number in enumerate(numeric):
            column = columns.iloc[:, place]
            zero = 0 if number else _first_category(column.dtype)
            parts.append(pd.Series([zero] * n_rows, dtype=column.dtype))
        made = pd.concat(parts, axis=1) if parts else pd.DataFrame(index=range(n_rows))
        made.columns = columns.columns
        return made
    values = {
        name: np.zeros(n_rows) if number else [""] * n_rows
        for name, number in zip(columns.columns, numeric, strict=True)
    }
    return type(columns)(values, schema=columns.schema)


def _first_category(dtype):
    known = getattr(dtype, "categories", None)
    return "" if known is None or not len(known) else known[0]


def _is_numeric(dtypes, place):
    dtype = dtypes.iloc[place] if hasattr(dtypes, "iloc") else dtypes[place]
    text = str(dtype).lower()
    return text.startswith(("int", "uint", "float", "bool", "decimal"))

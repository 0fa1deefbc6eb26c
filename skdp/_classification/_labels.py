# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The label set of a classifier: public when given, assumed public when inferred."""

import warnings

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

INFERRED = "the set of class labels, which was read from y (pass classes= to make it public)"


def resolve_classes(y, classes):
    """Code the labels.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Private labels.
    classes : array-like of shape (n_classes,) or None
        Public label set; None reads it from `y`.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted label set.
    codes : ndarray of shape (n_rows,), dtype int64
        Position of every label in `classes`; 0 where there is none.
    outside : ndarray of shape (n_rows,), dtype bool
        Rows whose label is not in `classes`; they are to contribute nothing.
    assumptions : tuple of str
        For the ledger.

    Raises
    ------
    ValueError
        If `classes` is not a set of at least two labels, if `y` is not made of class
        labels, or if `classes` is None and `y` has one class.
    """
    y = column_or_1d(y, warn=True)
    # errors are outside the claim, but a warning about the labels would be an output
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_classification_targets(y)
    if classes is None:
        found, codes = np.unique(y, return_inverse=True)
        if len(found) < 2:
            raise ValueError(
                "y has only 1 class. Pass the public label set as classes= and such data can be "
                "fitted; without it this error depends on the data."
            )
        return found, codes.reshape(-1), np.zeros(len(y), dtype=bool), (INFERRED,)
    given = np.asarray(classes)
    if given.ndim != 1 or len(given) < 2 or given.dtype.kind == "c" or _has_missing(given):
        raise ValueError(
            f"classes must be a sequence of at least 2 distinct labels; got {classes!r}."
        )
    public = np.unique(given)
    if len(public) != len(given):
        raise ValueError(f"classes must be distinct; got {classes!r}.")
    if (public.dtype.kind in "US") != (y.dtype.kind in "USO") and public.dtype != y.dtype:
        raise ValueError(
            f"classes and y must be labels of one type; classes are {public.dtype} and y is "
            f"{y.dtype}."
        )
    codes = np.clip(np.searchsorted(public, y), 0, len(public) - 1)
    outside = public[codes] != y
    codes[outside] = 0
    return public, codes, outside, ()


def _has_missing(labels):
    return labels.dtype.kind == "f" and not np.isfinite(labels).all()

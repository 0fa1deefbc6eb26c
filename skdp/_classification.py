# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Parts of every classifier: the label set, the penalty, probabilities.

A label set is public when it is given, and assumed public when it is read from the labels.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from skdp._rows.streams import RowStream, over_rows
from skdp._typing import MatrixLike

# The label set.

#: up to here it is quicker to compare with each than to search
FEW_CLASSES = 4
INFERRED = "the set of class labels, which was read from y (pass classes= to make it public)"


def resolve_classes(y, classes):
    """Code the labels.

    Parameters
    ----------
    y : array-like or RowStream of shape (n_rows,)
        Private labels.
    classes : array-like of shape (n_classes,) or None
        Public label set; None reads it from `y`.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted label set.
    codes : ndarray or RowStream of shape (n_rows,), dtype int64
        Position of every label in `classes`; 0 where there is none.
    outside : ndarray or RowStream of shape (n_rows,), dtype bool
        Rows whose label is not in `classes`; they are to contribute nothing.
    assumptions : tuple of str
        For the ledger.

    Raises
    ------
    ValueError
        If `classes` is not a set of at least two labels, if `y` is not made of class
        labels, or if `classes` is None and `y` has one class.
    """
    if isinstance(y, RowStream):
        labels = y.facts.labels
    else:
        y = labels = column_or_1d(y, warn=True)
    # errors are outside the claim, but a warning about the labels would be an output
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_classification_targets(labels)
    if classes is None:
        found = np.unique(labels)
        if len(found) < 2:
            raise ValueError(
                "y has only 1 class. Pass the public label set as classes= and such data can be "
                "fitted; without it this error depends on the data."
            )
        return found, *coded(y, found), (INFERRED,)
    given = np.asarray(classes)
    if given.ndim != 1 or len(given) < 2 or given.dtype.kind == "c" or _has_missing(given):
        raise ValueError(
            f"classes must be a sequence of at least 2 distinct labels; got {classes!r}."
        )
    public = np.unique(given)
    if len(public) != len(given):
        raise ValueError(f"classes must be distinct; got {classes!r}.")
    if (public.dtype.kind in "US") != (labels.dtype.kind in "USO") and public.dtype != labels.dtype:
        raise ValueError(
            f"classes and y must be labels of one type; classes are {public.dtype} and y is "
            f"{labels.dtype}."
        )
    return public, *coded(y, public), ()


def coded(y, classes):
    """Return the position of every label among sorted classes, and which labels have none."""
    # one function, whose result both are made of: of a stream it is computed once for a block
    places = over_rows(partial(_places, classes=classes), y)
    return over_rows(_positions, places), over_rows(_is_missing, places)


def _places(y, classes):
    """Return the position of every label among sorted classes, and -1 where there is none."""
    if len(classes) <= FEW_CLASSES and {y.dtype.kind, classes.dtype.kind} <= set("biuf"):
        places = np.full(len(y), -1)
        # integers of Python are compared without y being made wider
        narrow = {y.dtype.kind, classes.dtype.kind} <= set("iu")
        for position, label in enumerate(classes.tolist() if narrow else classes):
            np.copyto(places, position, where=y == label)
        return places
    places = np.clip(np.searchsorted(classes, y), 0, len(classes) - 1)
    places[classes[places] != y] = -1
    return places


def _positions(places):
    return np.maximum(places, 0)


def _is_missing(places):
    return places < 0


def _has_missing(labels):
    return labels.dtype.kind == "f" and not np.isfinite(labels).all()


# The penalty of a linear classifier, in the units that its rows are admitted in.

#: in units of one row's loss: no data could move a coefficient
LARGEST_PENALTY = 1e100


def penalty_of(C, data_norm):
    """Return the penalty on coefficients of rows in the unit ball, or raise a ValueError."""
    with np.errstate(over="ignore"):
        penalty = float(np.float64(1.0) / C / data_norm / data_norm)
    if not penalty <= LARGEST_PENALTY:
        raise ValueError(
            f"C must be at least {1 / LARGEST_PENALTY:.0e} / data_norm**2: coefficients would be "
            f"zero to the last digit; got C={C!r} with data_norm={data_norm!r}."
        )
    return penalty


# Probabilities of a fitted logistic or softmax model: released numbers and the caller's rows.


class SoftmaxClassifierMixin:
    """Probabilities from the decision function, for two classes and for more."""

    decision_function: Callable[..., Any]

    def predict_log_proba(self, X: MatrixLike) -> NDArray[Any]:
        """Estimate logarithms of probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        score = self.decision_function(X)
        if score.ndim == 1:
            return np.column_stack([log_expit(-score), log_expit(score)])
        return log_softmax(score, axis=1)

    def predict_proba(self, X: MatrixLike) -> NDArray[Any]:
        """Estimate probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return np.exp(self.predict_log_proba(X))

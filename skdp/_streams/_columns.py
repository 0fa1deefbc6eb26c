# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The features of a stream: their number and names, and whether an estimator knows them."""

import warnings

import numpy as np
from sklearn.utils.validation import validate_data


def first_rows(X):
    """Return the first rows of a stream, or none if there are none."""
    block = next(iter(X.table.blocks()), None)
    return np.empty((0, 1)) if block is None else X.of(block)


def names_of(X):
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

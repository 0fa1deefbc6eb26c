# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows that transformers map, in memory or read range by range."""

from dataclasses import dataclass

from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from skdp._sklearn import StreamCheck, refuse_sparse, validate_private_data
from skdp._streams import RowStream
from skdp._streams._columns import first_rows


def map_rows(estimator, X, function, accept_sparse=("csr", "csc")):
    """Return a function of rows: an array of an array, a stream of a stream.

    Parameters
    ----------
    estimator : estimator
        Fitted. The number and the names of the features must be those that it was fitted to.
    X : {array-like, sparse matrix} or RowStream of shape (n_rows, n_features)
        Rows; never changed.
    function : callable
        Maps checked rows, each on its own, by released and public constants. It may be sent to
        other processes.
    accept_sparse : tuple of str or False, default=("csr", "csc")
        Formats that it can do with.

    Returns
    -------
    mapped : ndarray, sparse matrix or RowStream
        Of a stream the first rows are looked at now. What is wrong with the others is found
        when they are read: a `fit` does so before it spends anything.
    """
    check_is_fitted(estimator)
    if isinstance(X, RowStream):
        X, _ = checked_rows(estimator, X, accept_sparse)
        return X.map(function)
    formats = accept_sparse and list(accept_sparse)
    return function(validate_private_data(estimator, X, accept_sparse=formats, reset=False))


def map_shiftable_rows(estimator, X, function):
    """Do what `map_rows` does, for an estimator with a parameter `with_mean`."""
    check_is_fitted(estimator)
    if estimator.with_mean:
        rows = first_rows(X) if isinstance(X, RowStream) else X
        refuse_sparse(rows, "with_mean=True", "with_mean=False")
    return map_rows(estimator, X, function, not estimator.with_mean and ("csr", "csc"))


def checked_rows(estimator, X, accept_sparse):
    """Check the first rows of a stream now, and the others whenever they are read.

    Parameters
    ----------
    estimator : estimator
        Whose number and names of features they are to have.
    X : RowStream of shape (n_rows, n_features)
        Rows; they are not counted.
    accept_sparse : tuple of str or False
        Formats that are accepted.

    Returns
    -------
    X : RowStream
        The same rows, or what is raised for them.
    n_features : int
        Number of features.
    """
    refuse_containers(estimator)
    formats = accept_sparse and list(accept_sparse)
    options = {"accept_sparse": formats}
    first = validate_private_data(estimator, X, streams="first", reset=False, **options)
    check = StreamCheck(type(estimator).__name__, tuple(options.items()))
    return X.map(RowCheck(check)), first.shape[1]


def refuse_containers(estimator):
    """Raise a TypeError if `transform` is set to return data frames, which hold all rows."""
    of_estimator = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    container = of_estimator or get_config()["transform_output"]
    if container != "default":
        raise TypeError(
            f"a stream of rows is transformed to a stream, not to a data frame ({container!r}): "
            "use set_output(transform='default')."
        )


@dataclass(frozen=True)
class RowCheck:
    """Returns rows that are usable, and raises for others; `check` is a `StreamCheck`."""

    check: StreamCheck

    def __call__(self, X):
        """Return a range of rows, or raise."""
        return self.check(X)[0]

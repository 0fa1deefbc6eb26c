# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Everything borrowed from scikit-learn's private modules, and its input checks.

The only module that may import a private name of scikit-learn.
"""

from functools import wraps
from numbers import Real

import numpy as np
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.callback import CallbackSupportMixin
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.model_selection._search import BaseSearchCV, _yield_masked_array_for_each_param
from sklearn.utils import _safe_indexing, assert_all_finite
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.parallel import _get_threadpool_controller
from sklearn.utils.validation import validate_data

from skdp._domains import RADIUS_RANGE

__all__ = [
    "BaseSearchCV",
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "LinearClassifierMixin",
    "SCALE_OR_NONE",
    "SHARED_CONSTRAINTS",
    "SparseCoefMixin",
    "StrOptions",
    "blas_on_one_thread",
    "columns_of_params",
    "effective_n_threads",
    "fit_context",
    "real_targets",
    "refuse_sparse",
    "take_rows",
    "validate_private_data",
]

#: a positive scale whose squares stay inside floating point
SCALE_OR_NONE = [Interval(Real, 1e-50, 1e50, closed="both"), None]

#: constraints of the parameters that all private estimators share
SHARED_CONSTRAINTS = {
    "epsilon": [Interval(Real, 0, None, closed="neither")],
    "delta": [Interval(Real, 0, 1, closed="left")],
    "adjacency": [StrOptions({"replace-one", "zero-out"})],
    "data_norm": [Interval(Real, *RADIUS_RANGE, closed="both")],
    "budget": [HasMethods(["check", "charge"]), None],
    "random_state": ["random_state"],
}


def fit_context(*, prefer_skip_nested_validation):
    """Return scikit-learn's decorator of fits, which asks a shared budget first.

    After the parameters, and before the data: a fit that the budget has no epsilon left for
    reads nothing. The curator charges it later.

    Parameters
    ----------
    prefer_skip_nested_validation : bool
        As scikit-learn has it.

    Returns
    -------
    decorator : callable
        Of `fit`.
    """

    def decorate(fit):
        @wraps(fit)
        def asked(estimator, *args, **params):
            budget = getattr(estimator, "budget", None)
            asks = budget is not None and getattr(estimator, "_releases", True)
            if asks and fit.__name__ == "fit":
                # the plan alone tells what the clients of a simulated population spend
                simulated = getattr(estimator, "population_size", None) is not None
                budget.check(None if simulated else estimator.epsilon)
            return fit(estimator, *args, **params)

        context = _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)
        return context(asked)

    return decorate


def take_rows(X, positions):
    """Return the rows of an array, a matrix or a data frame at integer positions."""
    return _safe_indexing(X, positions)


def columns_of_params(candidates):
    """Return a masked array for every parameter of a list of candidates, by its name."""
    return dict(_yield_masked_array_for_each_param(candidates))


def effective_n_threads():
    """Return the number of threads that scikit-learn would use here."""
    return _openmp_effective_n_threads()


def blas_on_one_thread():
    """Return a context in which BLAS uses one thread: chunks of rows are the parallel unit.

    Nested threads fight for the cores, and a threaded product may round differently
    from one run to the next.
    """
    return _get_threadpool_controller().limit(limits=1, user_api="blas")


def validate_private_data(estimator, X, y="no_validation", **options):
    """Run scikit-learn's ``validate_data`` without letting a data value into a message.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` and `feature_names_in_`.
    X : array-like or sparse matrix
        The data.
    y : array-like, default="no_validation"
        The target, if there is one.
    **options : dict
        For ``validate_data``.

    Returns
    -------
    X, or X and y : ndarray or CSR matrix
        float64 or float32.

    Raises
    ------
    ValueError, TypeError
        As scikit-learn raises them; those that quote values there, of a failed conversion or
        of an array of another dimension, name only the kind of problem here.
    """
    _refuse_other_types(X)
    X = _in_rows(X)
    try:
        # a warning that depends on the values would be an output: scikit-learn looks for
        # NaN in a sum, which entries of 1e308 overflow
        with np.errstate(invalid="ignore", over="ignore"):
            return validate_data(
                estimator, X, y, dtype=[np.float64, np.float32], ensure_all_finite=True, **options
            )
    except ValueError as error:
        problem = _without_values(str(error))
        if problem is None:
            raise
    raise ValueError(problem)


def real_targets(y):
    """Return targets that are real numbers in float64, or raise a ValueError without values."""
    if y.dtype.kind not in "biuf":
        raise ValueError("y must be real numbers; got text, complex numbers, or other objects.")
    # whether a sum or a wider float overflows depends on the data: nobody is to be told
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # again: what was an object before, None or infinite, is a number by now
        assert_all_finite(y, input_name="y")
        return y.astype(np.float64, copy=False)


def _in_rows(X):
    """Return COO matrices in CSR, entries in the order in which they are stored; others as is.

    scipy would add up what is stored in parts, in an order that depends on other rows.
    """
    if not (sparse.issparse(X) and X.format == "coo" and X.ndim == 2):
        return X
    X = type(X)((X.data, X.coords), shape=X.shape)
    # nothing is added up then
    X.has_canonical_format = True
    return X.tocsr()


def _without_values(message):
    """Return a message of scikit-learn's that quotes values, without them; None for others."""
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
    return None


def refuse_sparse(X, shift, remedy):
    """Raise a TypeError for sparse rows that are to be shifted.

    Parameters
    ----------
    X : {array-like, sparse matrix}
        Rows; only their format is looked at.
    shift, remedy : str
        The parameter that asks for the shift, and the value with which there is none.
    """
    if sparse.issparse(X):
        raise TypeError(
            f"sparse rows cannot be shifted ({shift}), for they would become dense: set {remedy}, "
            "or pass a dense array."
        )


_REFUSED = ("datetime", "date", "time", "duration", "categor", "enum")


def _refuse_other_types(X):
    """Raise for dates and categories, which scikit-learn would turn into numbers silently."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None:
        dtypes = [X.dtype] if hasattr(X, "dtype") else []
    if any(str(dtype).lower().startswith(_REFUSED) for dtype in dtypes):
        raise TypeError(
            "the input must be numeric: it has a column of dates, durations or categories. "
            "Encode it with public constants first."
        )

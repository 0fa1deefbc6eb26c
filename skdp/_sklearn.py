# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private names of scikit-learn, checks of input and labels, and what all classifiers share.

No other module may import a private name of scikit-learn.
"""

import math
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from inspect import signature
from numbers import Integral, Real
from types import MethodType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_expit, log_softmax
from sklearn.base import _fit_context, is_classifier
from sklearn.linear_model._base import LinearClassifierMixin as _LinearClassifierMixin
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.model_selection._search import BaseSearchCV, _yield_masked_array_for_each_param
from sklearn.utils import _safe_indexing, assert_all_finite, check_array, check_X_y
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils._param_validation import HasMethods, RealNotInt, StrOptions
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import _get_threadpool_controller
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from skdp._counted import counted_first
from skdp._export import TwinMixin, linear_classifier
from skdp._rows.base import RADIUS_RANGE, ColumnBall
from skdp._rows.linear import StandardColumns
from skdp._rows.streams import (
    RowStream,
    arrow_targets,
    as_stored,
    check_columns,
    columns_of,
    facts_of,
    first_rows,
    floats_hold,
    in_rows,
    is_arrow,
    is_dask,
    is_streamed,
    is_table,
    kept_meanwhile,
    over_rows,
    quietly,
    refuse_other_types,
    stream_names_of,
)
from skdp._typing import MatrixLike
from skdp.privacy.books.functions import (
    assumption_about,
    is_known,
    made_up,
    made_up_tables,
    mixes_rows,
    mixing,
)
from skdp.privacy.books.resume import is_paid
from skdp.privacy.books.spent import note_of_fit
from skdp.privacy.books.texts import some_of
from skdp.privacy.kernel.accounting import as_float
from skdp.privacy.kernel.samplers import noise_identity

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # new in scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """No callbacks, and no method to set any."""


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
    "centered_classes",
    "check_feature_names_in",
    "check_sample_weight",
    "columns_of_params",
    "effective_n_threads",
    "fit_context",
    "is_number",
    "is_sparse",
    "plain_parameters",
    "real_targets",
    "refuse_sparse",
    "take_rows",
    "validate_private_data",
    "was_fitted_to",
]


def is_number(value: Any) -> bool:
    """Return whether this is an int or a float, of Python or numpy, in the range of floats.

    Booleans, fractions and decimals do not count: no formula was checked for them.
    """
    number = as_float(value)
    return not (math.isnan(number) or (isinstance(value, int) and math.isinf(number)))


@contextmanager
def plain_parameters(estimator: Any) -> Iterator[None]:
    """Convert numpy scalars among the parameters to Python numbers during fit.

    Arithmetic in numpy's short types would round sensitivities and shares of a budget to a few
    digits, or overflow.
    """
    given = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if isinstance(value, np.floating | np.integer)
    }
    try:
        for name, value in given.items():
            setattr(estimator, name, int(value) if isinstance(value, np.integer) else float(value))
        yield
    finally:
        for name, value in given.items():
            setattr(estimator, name, value)


class Interval(_Interval):
    """Scikit-learn's interval, for the numbers that `is_number` accepts."""

    def is_satisfied_by(self, val):
        """Return whether a value is a number in the interval."""
        return is_number(val) and super().is_satisfied_by(val)


#: a positive scale whose squares stay inside floating point
SCALE_OR_NONE = [Interval(Real, 1e-50, 1e50, closed="both"), None]
#: a number of things, or a share
COUNT_OR_SHARE = [
    Interval(Integral, 1, None, closed="left"),
    Interval(RealNotInt, 0, 1, closed="neither"),
    None,
]

#: constraints of the parameters that all private estimators share
SHARED_CONSTRAINTS = {
    "epsilon": [Interval(Real, 0, None, closed="neither")],
    "delta": [Interval(Real, 0, 1, closed="left")],
    "adjacency": [StrOptions({"replace-one", "zero-out", "add-remove"})],
    "data_norm": [Interval(Real, *RADIUS_RANGE, closed="both")],
    "budget": [HasMethods(["check", "charge"]), None],
    "random_state": ["random_state"],
}

#: why a fit with weights of rows is refused
NO_WEIGHTS = (
    "takes no sample_weight: a row with a weight could change the fit by more than is paid for. "
    "Meta-estimators that fit with weights (boosting, the reductions of fairlearn) cannot use it. "
    "Nothing was charged, and no row was read."
)

#: and why one without a bound on them is
NO_BOUND = (
    "takes sample_weight only with max_weight, a public number to which weights are clipped. Noise "
    "grows with it. Do not compute it from private weights. Nothing was charged, and no row was "
    "read."
)

#: a decorated method keeps its signature
Method = TypeVar("Method", bound=Callable[..., Any])


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Method], Method]:
    """Return scikit-learn's decorator of fits, with a look at the shared budget before the data.

    A fit for which the budget has no epsilon left reads nothing. The curator charges it later.

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
        given = signature(fit).parameters
        weighs = "sample_weight" in given or any(p.kind is p.VAR_KEYWORD for p in given.values())

        @wraps(fit)
        def asked(estimator, *args, **params):
            if "sample_weight" in params and not weighs:
                raise TypeError(f"{type(estimator).__name__}.{fit.__name__} {NO_WEIGHTS}")
            budget = getattr(estimator, "budget", None) if fit.__name__ == "fit" else None
            if budget is not None and getattr(estimator, "_releases", True) and not is_paid(budget):
                # the plan alone tells what the clients of a simulated population spend
                real = getattr(estimator, "population", None) is None
                seed, name = getattr(estimator, "random_state", None), type(estimator).__name__
                seeded = {} if seed is None else {"stream": noise_identity(seed, name)}
                budget.check(estimator.epsilon if real else None, **seeded)
            passed = *args, *params.values()
            assumed = assumed_maps(type(estimator).__name__, *passed)
            weighted = params.get("sample_weight") is not None
            with (
                plain_parameters(estimator),
                counted_first(estimator, weighted),
                kept_meanwhile(*passed),
            ):
                made = fit(estimator, *args, **params)
            if fit.__name__ == "fit":
                note_rows(estimator, args[0] if args else params.get("X"))
                if hasattr(estimator, "ledger_"):
                    # last, after a second fit too: the order of attributes tells nothing
                    vars(estimator).pop("_fit_note", None)
                    estimator._fit_note = note_of_fit(estimator.ledger_)
            if assumed and hasattr(estimator, "ledger_"):
                estimator.ledger_ = estimator.ledger_.assume(*assumed)
            return made

        context = _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)
        return WeightedFit(context(asked)) if "sample_weight" in given else context(asked)

    return decorate


class WeightedFit:
    """A `fit` that takes weights of rows where the parameter `max_weight` bounds them.

    Without that bound the method has no `sample_weight`, and scikit-learn sees that it has none.

    Parameters
    ----------
    fit : callable
        With a keyword `sample_weight`.
    """

    def __init__(self, fit):
        given = signature(fit)

        @wraps(fit)
        def unweighted(estimator, *args, **params):
            if params.get("sample_weight") is not None:
                raise TypeError(f"{type(estimator).__name__}.fit {NO_BOUND}")
            return fit(estimator, *args, **params)

        others = [each for name, each in given.parameters.items() if name != "sample_weight"]
        unweighted.__signature__ = given.replace(parameters=others)
        self.fit, self.unweighted = fit, unweighted

    def __get__(self, estimator, kind=None):
        if estimator is None:
            return self.fit
        return MethodType(self.unweighted if estimator.max_weight is None else self.fit, estimator)


# whose memory estimators were fitted to, and where in it, while both are there; no value is kept
_FITTED_TO: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _place_in_memory(X):
    """Return the object that has the memory of rows, and where in it they are; None for all."""
    if not isinstance(X, np.ndarray):
        return X, None
    owner = X
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner, byte_bounds(X)


def note_rows(estimator, X):
    """Note which rows an estimator was fitted to, for as long as somebody else keeps them."""
    owner, place = _place_in_memory(X)
    try:
        _FITTED_TO[estimator] = ref(owner), place
    except TypeError:
        # lists, say
        _FITTED_TO.pop(estimator, None)


def was_fitted_to(estimator, X):
    """Return whether an estimator was fitted, in this process, to rows in the same memory."""
    try:
        noted, place = _FITTED_TO.get(estimator) or (lambda: None, None)
    except TypeError:
        return False
    owner, other = _place_in_memory(X)
    if owner is None or noted() is not owner:
        return False
    return place is None or other is None or (place[0] < other[1] and other[0] < place[1])


def assumed_maps(name, *given):
    """Return what is assumed about the functions that streams were mapped by, or raise.

    Parameters
    ----------
    name : str
        Who is to be fitted.
    *given : object
        What was passed; streams among it are looked at, and none of their rows.

    Raises
    ------
    ValueError
        If a function visibly mixes rows.
    """
    assumed = []
    for stream in given:
        if not isinstance(stream, RowStream):
            continue
        for function in stream.steps:
            if is_known(function):
                continue
            tables = made_up_tables() if stream.ndim == 2 else [(made_up((24,)),)]
            if mixes_rows(function, tables):
                raise ValueError(f"{name} cannot use {mixing(function, 'the map of a stream')}.")
            assumed.append(assumption_about(function, "the map of a stream"))
    return tuple(assumed)


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


def validate_private_data(
    estimator, X, y="no_validation", *, streams=False, classes=None, table=False, **options
):
    """Run scikit-learn's ``validate_data`` without letting a data value into a message.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` and `feature_names_in_`.
    X : array-like, sparse matrix, or what is read range by range
        The data.
    y : array-like, default="no_validation"
        The target, if there is one.
    streams : bool or "first", default=False
        Whether rows may be read range by range: a `RowStream`, a large memory map, or a
        collection of dask. "first" looks at the first rows of a `RowStream` alone.
    classes : array-like, default=None
        The public label set, if one was given: labels may be anything then, for what is not in
        it is a null row, and no error may tell. None checks them as scikit-learn does.
    table : bool, default=False
        Whether columns may have types of their own: a data frame is returned as it is, and so
        are the values of an array. There is no `y` then.
    **options : dict
        For ``validate_data``.

    Returns
    -------
    X, or X and y : ndarray, CSR matrix or RowStream
        float64 or float32. A stream is gone through once, with the same checks; with "first"
        its first rows are returned, an array.

    Raises
    ------
    ValueError, TypeError
        As scikit-learn raises them; those that quote values there, of a failed conversion or
        of an array of another dimension, name only the kind of problem here.
    """
    if streams == "first":
        if isinstance(X, RowStream):
            return _validate_first(estimator, X, options)
    elif is_streamed(X) or isinstance(y, RowStream):
        if streams:
            return _validate_streams(estimator, X, y, options, classes is not None)
        if isinstance(X, RowStream):
            raise TypeError(
                f"{type(estimator).__name__} needs all rows in memory here; got a stream of rows. "
                "Go through it with `for block in stream.blocks():`, or load the data if they fit."
            )
    if table:
        return _validate_table(estimator, X, options)
    if options.get("dtype", X) is None:
        return _validate_values(estimator, X, options)
    refuse_other_types(X)
    y = y if isinstance(y, str) else plain_text(y)
    if options.get("y_numeric") and y is not None:
        y = _as_real(y)
    labels, options = None, {"dtype": [np.float64, np.float32], **options}
    if classes is None and y is not None and is_classifier(estimator):
        _refuse_missing_labels(as_stored(y))
    elif classes is not None and y is not None:
        _check_declared_labels(y, classes)
        labels, y = as_labels(y), "no_validation"
    X = quietly(validate_data, estimator, in_rows(X), y, ensure_all_finite=True, **options)
    if labels is None:
        return X
    check_consistent_length(X, labels)
    return X, labels


def _validate_values(estimator, X, options):
    """Return an array of values of any type; none is missing."""
    refuse_other_types(X, ("categor", "enum"))
    options = {**options, "ensure_all_finite": False}
    X = quietly(validate_data, estimator, entry_by_entry(X), **options)
    if X.dtype.kind == "f":
        quietly(assert_all_finite, X, input_name="X")
    elif X.dtype.kind == "O" and any(map(is_missing, X.ravel().tolist())):
        raise ValueError(
            "Input X has missing values. Replace them by a public value or category: the guarantee "
            "covers neither a value computed from the rows nor dropping rows."
        )
    return X


def entry_by_entry(X):
    """Return a list of rows as an array; the entries stay what they are, unless all are numbers.

    numpy would make text of all of them if one is, and floats of whole numbers that have no float,
    so that one row decided about others.
    """
    if not isinstance(X, list | tuple):
        return X
    try:
        entries, numbers = np.array(X, dtype=object), np.asarray(X)
    except (TypeError, ValueError):
        # scikit-learn says what is wrong
        return X
    listed = entries.ravel().tolist()
    flags = any(isinstance(entry, bool | np.bool_) for entry in listed)
    alike = numbers.dtype.kind == "b" or (numbers.dtype.kind in "iuf" and not flags)
    if alike and numbers.dtype.kind == "f":
        alike = floats_hold(listed)
    return numbers if alike else entries


def is_missing(value):
    """Return whether a value stands for none: None, NaN, or what pandas has for it."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and value != value


def _validate_table(estimator, X, options):
    """Return a data frame, or an array of any type, with usable numbers and names of columns."""
    if is_dask(X) or type(X).__name__ == "LazyFrame":
        call = "compute" if is_dask(X) else "collect"
        raise TypeError(f"{type(estimator).__name__} needs all rows in memory: pass X.{call}().")
    if getattr(getattr(X, "dtype", None), "names", None) and X.ndim == 1:
        X = RecordTable(X)
    known = is_table(X) or hasattr(X, "iloc") or isinstance(X, RecordTable)
    if not (known or hasattr(X, "__array__") or isinstance(X, list | tuple)):
        X = _read_by_narwhals(X)
    if not (is_table(X) or hasattr(X, "columns")):
        options = {"dtype": None, "ensure_all_finite": False, **options}
        listed = isinstance(X, list | tuple)
        X = quietly(validate_data, estimator, entry_by_entry(X), **options)
        # once columns are known, every entry is read on its own
        return _listed_table(X, estimator) if listed and options.get("reset", True) else X
    names = columns_of(X)
    if len(set(names)) < len(names):
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise ValueError(
            f"the names of columns must be distinct; several columns are called {some_of(twice)}. "
            "Rename them."
        )
    for size, what in zip(X.shape, ("row", "column"), strict=True):
        if not size:
            raise ValueError(
                f"{type(estimator).__name__} needs a table with at least one {what}; got one of "
                f"shape {tuple(X.shape)}."
            )
    if isinstance(X, RecordTable) or type(X).__module__.startswith("narwhals"):
        check_columns(estimator, names, X.shape[1], reset=options.get("reset", True))
    else:
        validate_data(estimator, X, skip_check_array=True, **options)
    return X


def _listed_table(X, estimator):
    """Return what was a list of rows as a table: numbers, but for columns in `categories`.

    A list says no types of columns, and one entry would decide about all others.
    """
    names = [f"x{i}" for i in range(X.shape[1])]
    types = [object if name in (estimator.categories or ()) else np.float64 for name in names]
    records = np.empty(len(X), dtype=list(zip(names, types, strict=True)))
    try:
        for name, column, kind in zip(names, X.T, types, strict=True):
            if kind is not object and any(isinstance(one, str | bytes) for one in column.tolist()):
                raise TypeError
            records[name] = column
    except (TypeError, ValueError):
        raise ValueError(
            "X must be a list of numbers, except in columns with categories: a list has no types "
            "of columns. Pass a data frame, or np.array(X, dtype=object) for columns of text."
        ) from None
    return RecordTable(records)


class RecordTable:
    """A structured array as a table: the fields are its columns.

    Parameters
    ----------
    records : ndarray of shape (n_rows,)
        With names of fields, as `numpy.genfromtxt` returns it.
    """

    def __init__(self, records):
        self._records = records
        self.columns = list(records.dtype.names)
        self.schema = {name: records.dtype[name] for name in self.columns}
        self.shape = len(records), len(self.columns)

    def __getitem__(self, where):
        rows, position = where
        return self._records[self.columns[position]][rows]


def _read_by_narwhals(X):
    """Return a data frame of another library as narwhals shows it, if it does; or what it is."""
    try:
        from narwhals import from_native
    except ImportError:  # scikit-learn needs it from 1.9 on
        return X
    return from_native(X, eager_only=True, pass_through=True)


def plain_text(y):
    """Return numpy's strings of any length as those that scikit-learn knows; others as they are."""
    if getattr(getattr(y, "dtype", None), "kind", None) != "T":
        return y
    as_objects = y.astype(object)
    # a missing one stays what it is, and is the label of nobody
    return as_objects if hasattr(y.dtype, "na_object") else as_objects.astype(str)


def as_labels(y):
    """Return labels of any type as one column; what is no label has no error of its own."""
    y = plain_text(y)
    listed = isinstance(y, list | tuple)
    y = arrow_targets(y, exact=True) if is_arrow(y) and not is_table(y) else as_stored(y)
    # the type of a list is that of its entries, and no one entry is to decide about others
    y = y.astype(object) if listed else y
    if y.ndim == 2 and y.shape[1] == 1:
        # with scikit-learn's warning, and without its look at the values
        column_or_1d(np.zeros(y.shape), warn=True)
        y = y.ravel()
    if y.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
    return y


def _validate_streams(estimator, X, y, options, any_label):
    """Return streams of X and y that are usable; they have been gone through once."""
    from skdp._rows.dask import opened

    given = y is not None and not isinstance(y, str)
    first = {"skip_check_array": True, "reset": options.pop("reset", True)}
    if y is None:
        # raises where targets are needed
        validate_data(estimator, X, y, **first)
    X, y = opened(X, y if given else None)
    check = StreamCheck(type(estimator).__name__, tuple(options.items()), any_label)
    with_labels = given and not any_label and not options.get("y_numeric")
    if first["reset"] and getattr(estimator, "verbose", 0):
        # there is no release yet that a bar could count, and many rows take minutes
        print(f"[{type(estimator).__name__}] a first pass over the rows: are they usable?")
    facts = facts_of(X, y, check, with_labels=with_labels)
    if not facts.n_rows:
        # as for an empty array
        check(np.empty((0, 1)), np.empty(0) if given else None, least=1)
    check_columns(estimator, stream_names_of(X), facts.n_features, reset=first["reset"])
    X.inspected(facts)
    if y is None:
        return X
    y.facts = facts
    return X, y.map(as_numbers) if options.get("y_numeric") else y


def _validate_first(estimator, X, options):
    """Return the first rows of a stream, an array, or raise; the others are not read."""
    reset = options.pop("reset", True)
    check, first = StreamCheck(type(estimator).__name__, tuple(options.items())), first_rows(X)
    # if there are none, as for an empty array
    first, _ = check(first, least=1)
    check_columns(estimator, stream_names_of(X), first.shape[1], reset=reset)
    return first


def as_numbers(y):
    """Return targets that are stored as objects in float64, others as they are."""
    return y.astype(np.float64) if y.dtype.kind == "O" else y


@dataclass(frozen=True)
class StreamCheck:
    """Scikit-learn's checks of rows and targets, for one block of a stream.

    Parameters
    ----------
    estimator : str
        The name of the estimator, for messages.
    options : tuple of (str, object)
        For ``check_X_y``.
    any_label : bool
        Whether targets may be anything.
    """

    estimator: str
    options: tuple
    any_label: bool = False

    def __call__(self, X, y=None, least=0):
        """Return the block (X, y), or raise."""
        options = {
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": True,
            "ensure_min_samples": least,
            "estimator": self.estimator,
            **dict(self.options),
        }
        if y is not None and not self.any_label:
            if y.dtype.kind == "O" and any(one is None for one in y):
                raise ValueError("Input y contains missing values.")
            X, y = quietly(check_X_y, X, y, **options)
            return X, real_targets(y) if options.get("y_numeric") else y
        options.pop("y_numeric", None)
        return quietly(check_array, X, input_name="X", **options), y


def _as_real(y):
    """Return targets that are stored as objects in float64, others as they are, or raise."""
    try:
        given = np.asarray(y)
        return given.astype(np.float64) if given.dtype == object else y
    except (TypeError, ValueError):
        pass
    raise ValueError(_NO_TARGETS)


_NO_TARGETS = (
    "y must be real numbers; got text, complex numbers, or other objects. For labels use a "
    "classifier."
)


def real_targets(y):
    """Return targets that are real numbers in float64, or raise a ValueError without values."""
    if isinstance(y, RowStream):
        # every block is looked at when the stream is gone through
        return y.map(real_targets)
    if y.dtype.kind not in "biuf":
        raise ValueError(_NO_TARGETS)
    # whether a sum or a wider float overflows depends on the data: nobody is to be told
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # again: what was an object before, None or infinite, is a number by now
        assert_all_finite(y, input_name="y")
        return y.astype(np.float64, copy=False)


def is_sparse(X):
    """Return whether rows are sparse; of a stream, whether it was found to be so."""
    if isinstance(X, RowStream):
        return X.facts is not None and X.facts.is_sparse
    return sparse.issparse(X)


def refuse_sparse(X, shift, remedy):
    """Raise a TypeError for sparse rows that are to be shifted.

    Parameters
    ----------
    X : {array-like, sparse matrix} or RowStream
        Rows; only their format is looked at. That of a stream is known once it was validated.
    shift, remedy : str
        The parameter that asks for the shift, and the value with which there is none.
    """
    if is_sparse(X):
        raise TypeError(
            f"sparse rows cannot be shifted ({shift}): they would become dense. Set {remedy}, or "
            "pass a dense array."
        )


# Parts of every classifier: the label set, the penalty, probabilities.
#
# A label set is public when it is given, and assumed public when it is read from the labels.


# The label set.

#: up to here it is quicker to compare with each than to search
FEW_CLASSES = 4
INFERRED = "the set of class labels, which was read from y (pass classes= to make it public)"


# more numbers than that, with fewer rows for each, are no labels unless somebody says so
_MOST_NUMBERS, _ROWS_EACH = 100, 20


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
        If `classes` is not a set of at least two labels, or numbers where `y` is an array of text,
        or the other way round; or if it is None, and `y` has one class, or numbers that are no
        class labels.
    """
    if not isinstance(y, RowStream):
        y = as_labels(y)
    if classes is None:
        labels = y.facts.labels if isinstance(y, RowStream) else y
        _refuse_missing_labels(labels)
        # errors are outside the claim, but a warning about the labels would be an output
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_classification_targets(labels)
        found = np.unique(labels)
        if found.dtype.kind in "iuf" and len(found) > max(_MOST_NUMBERS, y.shape[0] // _ROWS_EACH):
            raise ValueError(
                f"y has more than {_MOST_NUMBERS} distinct numbers, and fewer than {_ROWS_EACH} "
                "rows for each, as targets of a regression have. Use a regressor, or pass the "
                "public label set as classes= if they are labels."
            )
        if len(found) < 2:
            raise ValueError(
                "y has only 1 class. Pass the public label set as classes= to fit such data: "
                "without it this error depends on the data."
            )
        return found, *coded(y, found), (INFERRED,)
    given = plain_text(np.asarray(classes))
    if given.ndim != 1 or len(given) < 2 or given.dtype.kind == "c" or _has_missing(given, classes):
        raise ValueError(
            "classes must be a sequence of at least 2 distinct labels, none missing; got "
            f"{classes!r}."
        )
    public = np.unique(given)
    if len(public) != len(given):
        raise ValueError(f"classes must be distinct; got {classes!r}.")
    if not isinstance(y, RowStream) and _cannot_meet(y.dtype.kind, public.dtype.kind):
        # said of the types of arrays, which are public
        raise ValueError(_NEVER_MEET.format(public.dtype, y.dtype))
    return public, *coded(y, public), ()


def _refuse_missing_labels(labels):
    """Raise a ValueError if a label is missing, where no label set is given."""
    if labels.dtype.kind == "O" and any(map(is_missing, labels.ravel().tolist())):
        raise ValueError(
            "y has missing labels. Pass the public label set as classes=: rows of no class add "
            "nothing then; without it this error depends on the data."
        )


_NEVER_MEET = (
    "classes and y must be labels of one type: classes are {} and y is {}, so no label is one of "
    "the classes."
)
# kinds of labels: those of two sorts are never equal
_SORTS = {"U": "text", "S": "bytes", "M": "dates", "m": "durations", **dict.fromkeys("biuf", "")}


def _cannot_meet(labels, classes):
    sorts = {_SORTS.get(kind) for kind in (labels, classes)}
    return len(sorts) == 2 and None not in sorts


def _check_declared_labels(y, classes):
    """Raise if a column says that it is text, and classes are none, or the other way round.

    As an array it is one of objects if an entry is missing, of which nothing is told: one entry
    could decide.
    """
    declared = getattr(y, "dtype", getattr(y, "type", None))
    if declared is None:
        declared = next(iter(getattr(y, "dtypes", ())), None)
    declared = getattr(getattr(declared, "categories", None), "dtype", declared)
    public = np.asarray(classes).dtype
    for names, kind in ((r"(large_)?str(ing)?\b", "U"), (r"(u?int|float|double|bool)", "i")):
        if re.match(names, str(declared), re.IGNORECASE) and _cannot_meet(kind, public.kind):
            raise ValueError(_NEVER_MEET.format(public, declared))


def coded(y, classes):
    """Return the position of every label among sorted classes, and which labels have none."""
    # one function, whose result both are made of: of a stream it is computed once for a block
    places = over_rows(partial(_places, classes=classes), y)
    return over_rows(_positions, places), over_rows(_is_missing, places)


def _places(y, classes):
    """Return the position of every label among sorted classes, and -1 where there is none."""
    kinds = {y.dtype.kind, classes.dtype.kind}
    alike = kinds <= set("biuf") or kinds in ({"U"}, {"S"})
    if alike and len(kinds & set("iuf")) > 1:
        # a large whole number is compared as itself, be there gaps beside it or not
        alike = bool((np.abs(classes.astype(np.float64)) < 2**53).all())
    if not alike:
        # entry by entry: what is in one has no part in what others are
        known = {label: place for place, label in enumerate(classes.tolist())}
        return np.fromiter((_place(label, known) for label in y.tolist()), np.int64, len(y))
    if len(classes) <= FEW_CLASSES and kinds <= set("biuf"):
        places = np.full(len(y), -1)
        # integers of Python are compared without y being made wider
        narrow = kinds <= set("iu")
        for position, label in enumerate(classes.tolist() if narrow else classes):
            np.copyto(places, position, where=y == label)
        return places
    places = np.clip(np.searchsorted(classes, y), 0, len(classes) - 1)
    places[classes[places] != y] = -1
    return places


def _place(label, known):
    """Return the place of one label of any type, -1 if it has none."""
    try:
        return known.get(label, -1)
    except Exception:
        # a list, say, or a missing value that does not know what it equals
        return -1


def _positions(places):
    return np.maximum(places, 0)


def _is_missing(places):
    return places < 0


def _has_missing(labels, listed):
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        return True
    return any(map(is_missing, np.asarray(listed, dtype=object).ravel().tolist()))


# The penalty of a linear classifier, in the units that its rows are admitted in.

#: in units of one row's loss: no data could move a coefficient
LARGEST_PENALTY = 1e100


def penalty_of(C, data_norm):
    """Return the penalty on coefficients of rows in the unit ball, or raise a ValueError."""
    with np.errstate(over="ignore"):
        penalty = float(np.float64(1.0) / C / data_norm / data_norm)
    if not penalty <= LARGEST_PENALTY:
        raise ValueError(
            f"C must be at least {1 / LARGEST_PENALTY:.0e} / data_norm**2, or all coefficients are "
            f"zero; got C={C!r} with data_norm={data_norm!r}."
        )
    return penalty


# Decisions and probabilities of a fitted linear model: released numbers and the caller's rows.


def centered_classes(coef):
    """Return coefficients of which those of all classes add up to zero.

    Parameters
    ----------
    coef : ndarray of shape (size,) or (n_outputs, size)
        As they were released, intercepts included.

    Returns
    -------
    coef : ndarray of shape (n_outputs, size)
        Of several classes only differences of scores are fitted: what they share is noise, and says
        nothing in a softmax or a largest score. One output stays as it is, and so does a feature
        that some class has no use for: few coefficients are to remain few.
    """
    coef = np.atleast_2d(coef)
    if len(coef) == 1:
        return coef
    return coef - np.where((coef == 0).any(axis=0), 0.0, coef.mean(axis=0))


class LinearClassifierMixin(TwinMixin, _LinearClassifierMixin):
    """Scikit-learn's linear classifiers, with our words for rows that cannot be used."""

    #: norm that `fit` clipped rows to, and the units of columns that it found first
    _clipped_at: float | None = None
    _found: StandardColumns | None = None

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Return the classes with the largest scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        predicted : ndarray of shape (n_samples,)
            Entries of `classes_`.

        Raises
        ------
        ValueError, TypeError
            If X has other columns than the rows of `fit`, is not numeric or not finite. Fill in for
            NaN what was filled in for `fit`, a public constant.
        """
        return super().predict(X)

    def decision_function(self, X: MatrixLike) -> NDArray[Any]:
        """Return how far rows are on the side of a class.

        Rows are clipped as in `fit`: the model has seen no others.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of each class in the order of `classes_`; of two classes only that of the second,
            which is predicted where it is positive.

        Raises
        ------
        ValueError, TypeError
            If X has other columns than the rows of `fit`, is not numeric or not finite. Fill in for
            NaN what was filled in for `fit`, a public constant.
        """
        check_is_fitted(self)
        X = validate_private_data(self, X, accept_sparse="csr", reset=False)
        coef, intercept = self.coef_.T, self.intercept_
        if self._clipped_at is not None:
            found = self._found
            X = X if found is None else found.near(X)
            factors = ColumnBall(self._clipped_at, found).factors(X)
            if (factors != 1).any():
                X = sparse.diags_array(factors) @ X if sparse.issparse(X) else factors[:, None] * X
                if found is not None:
                    # towards the origins of the columns
                    away = safe_sparse_dot(found.center[None], coef, dense_output=True)
                    intercept = intercept + (1 - factors)[:, None] * away
        score = safe_sparse_dot(X, coef, dense_output=True) + intercept
        return score.ravel() if score.shape[1] == 1 else score

    def _twin(self):
        return linear_classifier(self, self._clipped_at, self._found)


class SoftmaxClassifierMixin:
    """Probabilities from the decision function, for two classes and for more."""

    decision_function: Callable[..., Any]

    def _steps(self, n_steps: int) -> NDArray[Any]:
        """Return a number of steps as `LogisticRegression` of scikit-learn has it, in an array."""
        return np.array([n_steps])

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

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Fitted estimators of scikit-learn with the outputs of ours: a way out of the library.

An estimator with a twin derives from `TwinMixin`. The parts of twins are here: each is a fitted
estimator of scikit-learn whose constants are set, and not learned. Only steps are used that other
libraries can read, so that there is no function among them, but for dates.

Rows are clipped to a norm by steps of their own. With n = |x| / norm and
``(s, s x) = (1, x) / sqrt(1 + n^2)`` on the unit sphere, the length of the second part is
``l = sqrt(1 - s^2)``, a function of one number, and ``s x / max(s, l)`` is ``x / max(1, n)``: the
row in units of the norm, shortened to length 1 if it is longer.
"""

import re
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

#: what stands for an infinite bound, in single precision too
_HUGE = 1e30
#: the loss of digits by an offset, from which bounds are subtracted first
_FAR = 1e3
#: what missing words are replaced by, in the private use area of Unicode
_MISSING = "\ue000missing"
#: 2 to the number of bits of a hash
_HASHES = 2**32


class TwinMixin:
    """An estimator that scikit-learn has a twin of."""

    def to_sklearn(self) -> Any:
        """Return a fitted object of scikit-learn with the same outputs.

        It needs no skdp to be loaded and used, and other libraries can read it. Clipping of rows
        becomes steps of a pipeline. It holds what `predict` or `transform` use, and no ledger: keep
        the private model, or its card, for that. Post-processing: it is computed from what was
        released and from public parameters, costs nothing, and reads no row.

        Returns
        -------
        twin : estimator of scikit-learn
            Its `predict`, `predict_proba`, `decision_function` and `transform` return what those of
            this estimator do, to a few roundings; one that would differ is not there. It takes
            arrays, sparse rows where the model was not fitted with shifts of columns (nor, before
            scikit-learn 1.8, with units), and data frames. See the user guide (:ref:`leaving`).

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If nothing of scikit-learn has the same outputs with these parameters.
        """
        check_is_fitted(self)
        # a copy: nothing is shared with the model
        twin = deepcopy(self._twin())
        names = getattr(self, "feature_names_in_", None)
        if names is not None and not hasattr(twin, "feature_names_in_"):
            _tell_names(twin, names)
        return twin

    def _twin(self) -> Any:
        """Return the twin; names of features are set by the caller."""
        raise NotImplementedError


def to_sklearn(fitted: Any) -> Any:
    """Return a fitted object of scikit-learn with the outputs of a private one.

    Does what the method `to_sklearn` of estimators does, and goes through pipelines, unions,
    column transformers and searches of scikit-learn. Post-processing: costs no privacy.

    Parameters
    ----------
    fitted : estimator
        Fitted: of skdp, of scikit-learn, or one of the latter's pipelines, unions, column
        transformers and searches with steps of both. Of a search the best estimator is used.

    Returns
    -------
    twin : estimator of scikit-learn
        Without an object of skdp. What has none already is copied.

    Raises
    ------
    NotFittedError
        If it is not fitted.
    TypeError
        If it, or a step, has no twin: estimators of location, and transformers that randomise; or
        if an object of scikit-learn of another kind holds an estimator of skdp.

    See Also
    --------
    privacy_card : What the private model promises, for a file beside its twin.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import BoundedScaler, DPHingeSVM, to_sklearn
    >>> X = np.random.default_rng(0).uniform(0, 10, size=(2000, 3))
    >>> model = make_pipeline(
    ...     BoundedScaler((0, 10)), DPHingeSVM(data_norm=2.0, classes=(0, 1), random_state=0)
    ... ).fit(X, X[:, 0] > 5)
    >>> twin = to_sklearn(model)
    >>> type(twin[-1]).__name__, type(twin[-1][-1]).__name__
    ('Pipeline', 'LinearSVC')
    >>> far = 100 * X
    >>> bool(np.allclose(twin.decision_function(far), model.decision_function(far), 1e-12, 1e-12))
    True
    """
    if isinstance(fitted, TwinMixin):
        return fitted.to_sklearn()
    called = type(fitted).__name__
    if _is_ours(fitted):
        raise TypeError(
            f"{called} has no twin in scikit-learn. Linear models, scalers, clippers, selectors of "
            "features, the table vectorizer, covariances, components, searches, and pipelines of "
            "these have."
        )
    if isinstance(fitted, str) or fitted is None:  # "passthrough" and "drop"
        return fitted
    if not hasattr(fitted, "get_params"):
        raise TypeError(f"to_sklearn needs a fitted estimator; got an object of class {called}.")
    check_is_fitted(fitted)
    if hasattr(fitted, "best_estimator_"):
        return to_sklearn(fitted.best_estimator_)
    if not any(map(_is_ours, fitted.get_params().values())):
        return deepcopy(fitted)
    parts: dict[str, list[Any]] = {}
    if isinstance(fitted, Pipeline):
        parts = {name: [step] for name, step in fitted.steps}
    elif isinstance(fitted, FeatureUnion):
        parts = {name: [step] for name, step in fitted.transformer_list}
    elif isinstance(fitted, ColumnTransformer):
        # fitted copies, and what they are copies of
        parts = {name: [step] for name, step, _ in fitted.transformers_}
        for name, step, _ in (*fitted.transformers, ("remainder", fitted.remainder, None)):
            parts.setdefault(name, ["drop"]).append(step)
    if parts:
        copies: dict[int, Any] = {}
        for steps in parts.values():
            twin = to_sklearn(steps[0])
            copies.update((id(step), twin) for step in steps if not isinstance(step, str))
        return deepcopy(fitted, copies)
    raise TypeError(
        f"{called} holds an estimator of skdp, but is not a pipeline, union, column transformer or "
        "search of scikit-learn. Call to_sklearn on the fitted estimators in it."
    )


def _is_ours(value):
    return type(value).__module__.split(".")[0] == "skdp"


def _tell_names(twin, names):
    """Tell the first steps of a twin the names of features."""
    if isinstance(twin, Pipeline | FeatureUnion):
        parts = twin.steps[:1] if isinstance(twin, Pipeline) else twin.transformer_list
        for _, part in parts:
            _tell_names(part, names)
    else:
        twin.feature_names_in_ = names


# Steps whose constants are set.


def _in_arrays(step):
    """Return a pipeline whose steps pass on arrays, whatever containers are configured."""
    for _, part in getattr(step, "steps", getattr(step, "transformer_list", ())):
        _in_arrays(part)
    if not isinstance(step, Pipeline) and hasattr(step, "get_feature_names_out"):
        # of the step alone: its parts were asked, and not all of them can be
        TransformerMixin.set_output(step, transform="default")
    return step


def _fitted(step, n_features, **attributes):
    """Return a step that counts as fitted."""
    for name, value in {"n_features_in_": n_features, **attributes}.items():
        setattr(step, name, value)
    return step


def _linear_map(matrix):
    """Return a step that maps rows x to ``x @ matrix.T``, in a dense array."""
    from sklearn.decomposition import TruncatedSVD

    matrix = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
    return _fitted(TruncatedSVD(len(matrix)), matrix.shape[1], components_=matrix)


def _selected(kept):
    """Return a step that keeps the columns of a mask."""
    from sklearn.feature_selection import SelectKBest

    kept = np.asarray(kept, dtype=bool)
    scores = kept.astype(np.float64)
    return _fitted(SelectKBest(k=int(kept.sum())), len(kept), scores_=scores, pvalues_=None)


def standard_scaler(n_features, mean=None, scale=None, **facts):
    """Return a scaler to ``(x - mean) / scale``; None for no mean or scale.

    Parameters
    ----------
    n_features : int
        Number of columns.
    mean, scale : float, ndarray of shape (n_features,) or None
        Constants.
    **facts : object
        Further attributes.
    """
    given = {
        name: None if value is None else np.full(n_features, value, dtype=np.float64)
        for name, value in (("mean_", mean), ("scale_", scale))
    }
    with np.errstate(over="ignore", under="ignore"):
        given["var_"] = None if scale is None else given["scale_"] ** 2
    scaler = StandardScaler(with_mean=mean is not None, with_std=scale is not None)
    return _fitted(scaler, n_features, **{"n_samples_seen_": 1, **given, **facts})


def _clipped(n_features, low, high, scale=1.0, shift=0.0):
    """Return a step that maps columns x to ``x scale + shift``, clipped to [low, high]."""
    scale, shift = (np.full(n_features, value, dtype=np.float64) for value in (scale, shift))
    facts = {"data_min_": (low - shift) / scale, "data_max_": (high - shift) / scale}
    facts["data_range_"] = facts["data_max_"] - facts["data_min_"]
    clipper = MinMaxScaler((low, high), clip=True)
    return _fitted(clipper, n_features, scale_=scale, min_=shift, n_samples_seen_=1, **facts)


def _power(n_features, exponent):
    """Return a step that maps numbers x above 0 to ``(x**exponent - 1) / exponent``, or log(x)."""
    lambdas = np.full(n_features, float(exponent))
    return _fitted(PowerTransformer("box-cox", standardize=False), n_features, lambdas_=lambdas)


def _same(n_features):
    return _fitted(
        FunctionTransformer(accept_sparse=True, feature_names_out="one-to-one"), n_features
    )


def _called(function, **options):
    """Return a step that maps a column by a function of numpy."""
    return _fitted(
        FunctionTransformer(function, feature_names_out="one-to-one", kw_args=options), 1
    )


def _with_one(n_features, degree=1):
    """Return a step that puts 1 in front, and products of columns behind."""
    return PolynomialFeatures(degree).fit(np.zeros((1, n_features)))


def bounded_scaler(lower, upper, low, high):
    """Return a scaler that clips columns to bounds, and maps these to [low, high].

    Parameters
    ----------
    lower, upper : ndarray of shape (n_features,)
        Bounds.
    low, high : float
        Where they are mapped to.
    """
    width, n_features = upper - lower, len(lower)
    if (np.maximum(np.abs(lower), np.abs(upper)) <= _FAR * width).all():
        scale = (high - low) / width
        return _clipped(n_features, low, high, scale, low - lower * scale)
    # an offset that is far larger than the width would take the digits
    shares = standard_scaler(n_features, lower, width)
    return Pipeline([("share", shares), ("clip", _clipped(n_features, low, high, high - low, low))])


def selector(support, scores):
    """Return a selector of features with given scores, those with the largest of which are kept.

    Parameters
    ----------
    support : ndarray of shape (n_features,), dtype bool
        Which are kept.
    scores : ndarray of shape (n_features,)
        Of all features.
    """
    chosen = _selected(support)
    chosen.scores_ = np.where(support, scores, -np.inf)
    return chosen


def row_clipper(n_features, norm):
    """Return a pipeline that scales rows that are longer than a norm down to it.

    Parameters
    ----------
    n_features : int
        Number of columns.
    norm : float
        Euclidean norm.
    """
    kept = np.arange(n_features + 2) % (n_features + 1) > 0
    back = [("rows", _selected(kept)), ("back", standard_scaler(n_features, scale=1 / norm))]
    return Pipeline([*_unit_ball(n_features, norm), *back])


def fourier_features(frequencies, reach, odd):
    """Return steps to cosines of rows, with phases of zero and of a quarter turn.

    Parameters
    ----------
    frequencies : ndarray of shape (n_waves, n_features)
        Of the cosines, and of the sines.
    reach : float
        To which entries of rows are clipped.
    odd : {0, 1}
        Whether there is a constant besides.
    """
    n_waves, n_features = frequencies.shape
    n_components = 2 * n_waves + odd
    sampler = RBFSampler(n_components=n_components, random_state=0)
    sampler.n_features_in_, sampler._n_features_out = n_features, n_components
    sampler.random_weights_ = np.vstack([frequencies, frequencies, np.zeros((odd, n_features))]).T
    phases = [0.0, -np.pi / 2, np.pi / 4]
    sampler.random_offset_ = np.repeat(phases, [n_waves, n_waves, odd])
    ends = np.full(n_features, reach)
    return Pipeline([("clip", bounded_scaler(-ends, ends, -reach, reach)), ("waves", sampler)])


def hat_features(knots, n_features):
    """Return steps to triangles between knots, the same for every column, over the root of these.

    Parameters
    ----------
    knots : ndarray of shape (n_knots,)
        Increasing.
    n_features : int
        Number of columns.
    """
    table = np.repeat(knots[:, None], n_features, axis=1)
    hats = SplineTransformer(knots=table, degree=1, extrapolation="constant").fit(table[:2])
    size = len(knots) * n_features
    return Pipeline([("hats", hats), ("norm", standard_scaler(size, scale=n_features**0.5))])


def fold_features(knot, far, share, n_features):
    """Return steps to distances of columns from 0, and columns behind them, times a number.

    Parameters
    ----------
    knot, far : float, float
        Up to where distances, and columns, count; the first is less.
    share : float
        The number.
    n_features : int
        Number of columns.
    """
    knots, same = np.array([-far, -knot, 0.0, knot, far]), np.eye(n_features)
    folds, lines = np.kron(same, np.minimum(abs(knots), knot)), np.kron(same, knots)
    both = _linear_map(np.vstack([folds, lines]) * (share * n_features**0.5))
    return Pipeline([("hats", hat_features(knots, n_features)), ("folds", both)])


def _unit_ball(n_features, norm):
    """Return steps that clip rows in units of a norm; the first and last column are others."""
    first = np.eye(1, n_features + 1)
    length = [
        ("first", _linear_map(first)),
        ("square", _power(1, 2)),  # (s^2 - 1) / 2
        # shorter than 1/2 is shorter than s
        ("clip", _clipped(1, 0.25, 1.0, -2.0)),
        ("root", _power(1, 0.5)),  # 2 (l - 1)
        ("unit", standard_scaler(1, -2.0, 2.0)),
    ]
    both = [("row", _same(n_features + 1)), ("length", Pipeline(length))]
    return [
        ("units", standard_scaler(n_features, scale=norm)),
        ("one", _with_one(n_features)),
        # first so that squares of numbers of any size are finite
        ("range", _fitted(Normalizer("l1"), n_features + 1)),
        ("sphere", _fitted(Normalizer("l2"), n_features + 1)),
        ("length", FeatureUnion(both)),
        ("ball", _fitted(Normalizer("max"), n_features + 2)),
    ]


def _near(columns):
    """Return steps to columns in their units, clipped to their reach, and the units by then."""
    n_features, reach = len(columns.center), columns.reach
    if columns.is_sparse and "clip" in MaxAbsScaler().get_params():
        # the only one that clips CSR rows, from scikit-learn 1.8 on
        facts = {"scale_": columns.scale * reach, "max_abs_": columns.scale * reach}
        scaler = _fitted(MaxAbsScaler(clip=True), n_features, n_samples_seen_=1, **facts)
        return [("reach", scaler)], columns.scale * reach
    steps = [
        ("columns", standard_scaler(n_features, columns.center, columns.scale * reach)),
        ("reach", _clipped(n_features, -1.0, 1.0)),
    ]
    if not columns.drops:
        return steps, columns.scale * reach
    # what is dropped is at the ends, and nothing else is
    ends = np.where(np.isinf(columns.dropped), 2 * reach, columns.dropped)
    return [
        *steps,
        ("tails", standard_scaler(n_features, scale=ends / reach)),
        ("ends", _clipped(n_features, -1.0, 1.0)),
        ("above", _zero_for(n_features, 1.0)),
        ("below", _zero_for(n_features, -1.0)),
    ], columns.scale * ends


def _zero_for(n_features, number):
    """Return a step that puts 0 in the place of a number."""
    from sklearn.impute import SimpleImputer

    imputer = SimpleImputer(missing_values=number, strategy="constant", fill_value=0.0)
    return imputer.fit(np.zeros((1, n_features)))


# Linear models.


def linear_regression(model, columns=None):
    """Return the twin of a linear regression.

    Parameters
    ----------
    model : estimator
        Has `coef_` and `intercept_`.
    columns : StandardColumns or None
        Origins and units of columns that are clipped first.
    """
    from sklearn.linear_model import LinearRegression

    coef, intercept, steps = np.asarray(model.coef_), model.intercept_, []
    if columns is not None:
        steps, units = _near(columns)
        coef, intercept = coef * units, intercept + coef @ columns.center
    last = _fitted(LinearRegression(), coef.shape[-1], coef_=coef, intercept_=intercept)
    return _in_arrays(Pipeline([*steps, ("linear", last)])) if steps else last


def linear_classifier(model, norm, columns=None, link=None, shift=None):
    """Return the twin of a linear classifier.

    Parameters
    ----------
    model : estimator
        Has `coef_`, `intercept_` and `classes_`, and probabilities if `predict_proba`.
    norm : float or None
        Norm that rows are clipped to.
    columns : StandardColumns or None
        Origins and units of columns that are clipped first, and `norm` is in.
    link : tuple of (float, float) or None
        Length of a typical row in clipping norms, and the exponent, of `unclipped_log_proba`.
    shift : tuple of (ndarray, ndarray) or None
        What weights of two classes have added to the score, and what they add to the odds.
    """
    coef, intercept, steps = model.coef_, model.intercept_, []
    before, after = (0.0, 0.0) if shift is None else shift
    if hasattr(coef, "toarray"):  # sparsify()
        coef = coef.toarray()
    n_outputs, n_features = coef.shape
    if columns is not None:
        steps, units = _near(columns)
        coef, intercept = coef * units, intercept + coef @ columns.center
        # back to units in which the norm is one
        steps.append(("equal", standard_scaler(n_features, scale=1 / columns.reach)))
        coef = coef / columns.reach
    if norm is not None:
        steps += _unit_ball(n_features, norm)
        none = np.zeros((n_outputs, 1))
        coef = np.hstack([none, coef * norm, none])
    # the largest residual of two classes, and of more
    if link is not None and link[0] * (1.0 if n_outputs == 1 else 2**0.5) > 1:
        last = _linked(_linear(model, coef, intercept - before), *link, after)
    else:
        last = _linear(model, coef, intercept)
    return _in_arrays(Pipeline([*steps, ("linear", last)]))


def mapped_classifier(model, columns, features, link=None, shift=None):
    """Return the twin of a linear classifier of mapped columns.

    Parameters
    ----------
    model, link, shift : estimator, tuple or None, tuple or None
        As for `linear_classifier`.
    columns : StandardColumns
        Origins and units of columns that are clipped first.
    features : estimator
        The map of columns in their units, fitted.
    """
    steps, _ = _near(columns)
    units = standard_scaler(len(columns.center), scale=1 / columns.reach)
    last = linear_classifier(model, None, None, link, shift)
    return _in_arrays(Pipeline([*steps, ("units", units), ("map", features), ("model", last)]))


def beside_columns(features, n_mapped, n_features, share, line):
    """Return a step to mapped columns times a number, and the columns times another behind them.

    Parameters
    ----------
    features, n_mapped : estimator, int
        The map, fitted, and how many features it makes.
    n_features : int
        Number of columns.
    share, line : float, float
        The numbers.
    """
    bent = Pipeline([("map", features), ("share", standard_scaler(n_mapped, scale=1 / share))])
    lines = standard_scaler(n_features, scale=1 / line)
    return FeatureUnion([("bent", bent), ("columns", lines)])


def mapped_regression(model, columns, features):
    """Return the twin of a linear regression of mapped columns.

    Parameters
    ----------
    model : estimator
        Has `coef_` and `intercept_`.
    columns, features : StandardColumns, estimator
        As for `mapped_classifier`.
    """
    steps, _ = _near(columns)
    units = standard_scaler(len(columns.center), scale=1 / columns.reach)
    last = linear_regression(model)
    return _in_arrays(Pipeline([*steps, ("units", units), ("map", features), ("model", last)]))


def _linear(model, coef, intercept):
    """Return the last step, of which all methods are those of the model."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    facts = {"coef_": coef, "intercept_": intercept, "classes_": model.classes_}
    if hasattr(model, "predict_proba"):
        return _fitted(LogisticRegression(), coef.shape[1], n_iter_=np.array([1]), **facts)
    return _fitted(LinearSVC(), coef.shape[1], n_iter_=1, **facts)


def _linked(linear, longer, exponent, after):
    """Return a classifier that undoes most of what clipping does to the link.

    The probabilities p of the linear model come before the row. The scores become ``z_k + a log
    max(longer |p - e_k|, 1)``, where a is the exponent and e_k the vertex of class k. There is no
    `decision_function`: that of the model are the scores z.
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import StackingClassifier, VotingClassifier
    from sklearn.linear_model import LogisticRegression

    n_outputs, n_columns = linear.coef_.shape
    places = np.arange(len(linear.classes_))
    n_classes, n_given = len(places), n_outputs + n_columns
    chosen = [("probabilities", _linear_map(np.eye(n_outputs, n_given)))]
    if n_outputs == 1:
        # of the second class; |p - e_k| is p or 1 - p
        chosen.append(("residuals", _linear_map([[1.0], [-1.0]])))
        chosen.append(("clip", _clipped(2, 1.0, _HUGE, longer, [0.0, longer])))
        weights = exponent * np.array([[-1.0, 1.0]])
    else:
        # |p - e_k|^2 = sum_j p_j^2 - 2 p_k + 1, with squares as 2 (p_j^2 - 1) / 2 + 1
        squares = [("clip", _clipped(n_classes, 1 / _HUGE, 1.0)), ("square", _power(n_classes, 2))]
        both = [("first", _same(n_classes)), ("second", Pipeline(squares))]
        residuals = np.hstack([-2 * np.eye(n_classes), np.full((n_classes, n_classes), 2.0)])
        chosen.append(("squares", FeatureUnion(both)))
        chosen.append(("residuals", _linear_map(residuals)))
        scale = longer**2
        chosen.append(("clip", _clipped(n_classes, 1.0, _HUGE, scale, scale * (n_classes + 1))))
        weights = exponent / 2 * np.eye(n_classes)
    chosen.append(("log", _power(n_classes, 0)))
    scores = _linear_map(np.hstack([np.zeros((n_outputs, n_outputs)), linear.coef_]))
    both = [("link", Pipeline(chosen)), ("scores", scores)]
    linked = _fitted(
        LogisticRegression(),
        n_classes + n_outputs,
        coef_=np.hstack([weights, np.eye(n_outputs)]),
        intercept_=linear.intercept_ + after,
        classes_=places,
        n_iter_=np.array([1]),
    )
    # probabilities alone: what is averaged has no decision function
    alone = VotingClassifier([("linked", linked)], voting="soft", flatten_transform=False)
    alone.estimators_, alone.le_ = [linked], LabelEncoder().fit(places)
    alone.classes_ = alone.le_.classes_
    final = _in_arrays(Pipeline([("both", FeatureUnion(both)), ("linked", alone)]))
    stacked = StackingClassifier(
        [("linear", linear)],
        DummyClassifier(),
        cv="prefit",
        stack_method="predict_proba",
        passthrough=True,
    ).fit(np.zeros((n_classes, n_columns)), linear.classes_)
    stacked.final_estimator = stacked.final_estimator_ = final
    # a plain one, which every format of files knows
    stacked.named_estimators_ = dict(stacked.named_estimators_)
    return stacked


# Other transformers.


def principal_components(model):
    """Return the twin of principal components.

    Parameters
    ----------
    model : DPPCA or LocalDPPCA
        Fitted.
    """
    from sklearn.decomposition import PCA

    names = ("components_", "mean_", "explained_variance_", "explained_variance_ratio_")
    facts = {name: getattr(model, name) for name in (*names, "n_components_")}
    # reports tell neither
    facts["singular_values_"] = np.sqrt(model.explained_variance_)
    facts |= {"noise_variance_": 0.0, "n_samples_": 1}
    facts |= {name: getattr(model, name) for name in _OF_ROWS if hasattr(model, name)}
    return _fitted(PCA(model.n_components_), model.n_features_in_, **facts)


#: attributes of principal components that not every estimator has
_OF_ROWS = ("singular_values_", "noise_variance_", "n_samples_")


def empirical_covariance(model):
    """Return the twin of a covariance.

    Parameters
    ----------
    model : DPCovariance
        Fitted.
    """
    from sklearn.covariance import EmpiricalCovariance

    names = ("covariance_", "location_", "precision_")
    facts = {name: getattr(model, name) for name in names}
    twin = EmpiricalCovariance(assume_centered=model.assume_centered)
    return _fitted(twin, model.n_features_in_, **facts)


def table_columns(vectorizer, farthest, unit, knots):
    """Return the twin of a table vectorizer.

    Parameters
    ----------
    vectorizer : DPTableVectorizer
        Fitted.
    farthest : float
        Bound on numbers whose scale was released, in its units.
    unit : float
        What rows are divided by before they are clipped.
    knots : callable or None
        Of a column: origin, unit and knots of its functions; None for squares.
    """
    from sklearn.frozen import FrozenEstimator

    columns = vectorizer.columns_
    if vectorizer.adjacency == "zero-out" and all(column.nullable for column in columns):
        raise TypeError(
            "under zero-out a row in which everything is missing comes out as NaN, which no step "
            "of scikit-learn does: a twin needs a column of a type without missing values, or "
            "adjacency='replace-one'."
        )
    made_up, parts = np.zeros((1, len(columns)), dtype=object), []
    for place, column in enumerate(columns):
        if column.kind == "text":
            made_up[0, place] = ""
            if column.words is None:
                found = _words_in_buckets(vectorizer, column)
            else:
                found = _listed_words(column.words)
        else:
            if column.kind in _MOMENTS:
                made_up[0, place] = np.array(0, dtype=_MOMENTS[column.kind])[()]
            found = _number_features(vectorizer, column, farthest, knots)
        parts += [(f"{what} of column {place}", steps, [place]) for what, steps in found]
    frozen = [(name, FrozenEstimator(steps), places) for name, steps, places in parts]
    rows = ColumnTransformer(frozen)
    n_features = rows.fit_transform(made_up).shape[1]
    rows.transformers = rows.transformers_ = parts
    for _, steps, (place,) in parts:
        _in_arrays(steps)
        if hasattr(vectorizer, "feature_names_in_"):
            _tell_names(steps, vectorizer.feature_names_in_[[place]])
    norm = vectorizer.data_norm
    scaled = standard_scaler(n_features, scale=unit / norm)
    return Pipeline([("columns", rows), ("scale", scaled), *row_clipper(n_features, norm).steps])


#: dates and durations in seconds
_MOMENTS = {"date": "datetime64[s]", "duration": "timedelta64[s]"}
_DAY = 86_400.0


def _number_features(vectorizer, column, farthest, knots):
    """Return the steps to the features of a column of numbers, by what these are."""
    day = _DAY if column.kind in _MOMENTS else 1.0
    if column.bounds is not None:
        low, high = column.bounds
        steps = [
            ("share", standard_scaler(1, low * day, (high - low) * day)),
            ("clip", _clipped(1, -1.0, 1.0, 2.0, -1.0)),
        ]
        middle, width = 1 / 3, 1.0
    else:
        center, scale = vectorizer.mean_[column.label], vectorizer.scale_[column.label]
        steps = [("scale", standard_scaler(1, center * day, scale * day or None))]
        if scale:
            steps.append(("clip", _clipped(1, -farthest, farthest)))
        else:
            # the sign of a number of any size, without an overflow
            steps.append(("clip", _clipped(1, -1.0, 1.0)))
            steps += [(name, _clipped(1, -1.0, 1.0, 1e300)) for name in ("small", "sign")]
        middle, width = float(scale > 0), 3.0
    as_numbers = []
    if column.kind in _MOMENTS:
        as_numbers = [
            ("seconds", _called(np.asarray, dtype=_MOMENTS[column.kind])),
            ("numbers", _called(np.asarray, dtype="float64")),
            ("none", _imputed(np.zeros((1, 1)), np.nan, float(np.iinfo(np.int64).min))),
        ]
    steps = [*as_numbers, *steps]
    found = [("value", [*steps, ("missing", _imputed(np.zeros((1, 1)), 0.0))])]
    if vectorizer.curves and column.kind != "flag" and knots is not None:
        center, width, places = knots(column)
        # how far a number is on its way between two knots; the function of a knot is the part of
        # the way to it less that of the way from it. Graphs know no step for splines.
        gaps = np.diff(places)
        ways = np.eye(len(places), len(gaps), -1) - np.eye(len(places), len(gaps))
        others = places != 0
        bent = [
            ("scale", standard_scaler(1, center * day, width * day)),
            ("missing", _imputed(np.zeros((1, 1)), 0.0)),
            ("copies", _linear_map(np.ones((len(gaps), 1)))),
            ("clip", _clipped(len(gaps), 0.0, 1.0, 1 / gaps, -places[:-1] / gaps)),
            ("curves", _linear_map(ways[others])),
            ("first", standard_scaler(others.sum(), -np.eye(1, len(places))[0][others])),
        ]
        found.append(("curve", [*as_numbers, *bent]))
    elif vectorizer.curves and column.kind != "flag":
        square = [
            # so that a missing square is in the middle
            ("missing", _imputed(np.zeros((1, 1)), middle**0.5)),
            ("powers", _with_one(1, 2)),
            ("square", _linear_map([[0.0, 0.0, 1.0]])),
            ("centre", standard_scaler(1, middle, width)),
        ]
        found.append(("square", [*steps, *square]))
    if column.nullable:
        from sklearn.impute import MissingIndicator

        missing = MissingIndicator(features="all").fit(np.zeros((1, 1)))
        found.append(("missing", [*steps, ("missing", missing)]))
    return [(what, deepcopy(Pipeline(steps))) for what, steps in found]


def _imputed(made_up, value, missing=np.nan):
    """Return a step that puts a value where something is missing."""
    from sklearn.impute import SimpleImputer

    imputer = SimpleImputer(missing_values=missing, strategy="constant", fill_value=value)
    return imputer.set_params(keep_empty_features=True).fit(made_up)


def _without_missing(word):
    """Return steps that put a word where one is missing."""
    made_up = np.array([["", ""]], dtype=object)[:, :1]
    return [("nan", _imputed(made_up, word)), ("none", _imputed(made_up, word, None))]


def _one_hot(values):
    """Return a step to one column for each value, zeros for others."""
    coder = OneHotEncoder(categories=[values], handle_unknown="ignore", sparse_output=False)
    return coder.fit(np.array(values, dtype=object)[:, None])


def _listed_words(words):
    """Return the steps to the features of words with a public list."""
    n_words, steps, sums = len(words), _without_missing(_MISSING), []
    # what stands for a whole number may come as a float
    places = [
        place
        for place, word in enumerate(words)
        if re.fullmatch(r"-?\d+", word) and f"{word}.0" not in words
    ]
    values = [*words, *(f"{words[place]}.0" for place in places), _MISSING]
    if places:
        steps.append(("text", _called(np.asarray, dtype="U")))
        same = np.zeros((n_words + 1, len(values)))
        same[[*range(n_words), *places, -1], range(len(values))] = 1.0
        sums = [("same", _linear_map(same))]
    steps += [("words", _one_hot(values)), *sums, *_with_others(np.zeros(n_words))]
    return [("words", Pipeline(steps))]


def _with_others(shares):
    """Return steps that put a column for other words before the last one, for missing words."""
    n_known = len(shares)
    others = [
        ("sum", _linear_map(-np.ones((1, n_known + 1)))),
        ("others", standard_scaler(1, -1.0)),
    ]
    last = np.eye(1, n_known + 1, n_known)
    parts = [("others", Pipeline(others)), ("missing", _linear_map(last))]
    if n_known:
        known = [
            ("known", _selected(np.arange(n_known + 1) < n_known)),
            ("shares", standard_scaler(n_known, shares)),
        ]
        parts.insert(0, ("known", Pipeline(known)))
    return [("features", FeatureUnion(parts))]


def _words_in_buckets(vectorizer, column):
    """Return the steps to the features of words that are hashed.

    scikit-learn's hash has a sign: of the words of our bucket b it puts a part as 1 into bucket b,
    and the others as -1 into bucket -b.
    """
    from sklearn.feature_extraction import FeatureHasher

    kept, shares = vectorizer.frequent_[column.label]
    n_buckets, n_known = vectorizer.n_buckets, len(kept)
    mirrored = (_HASHES - kept) % n_buckets
    hasher = FeatureHasher(n_buckets, input_type="string")
    known = np.zeros(n_buckets, dtype=bool)
    known[kept] = known[mirrored] = True
    places = np.cumsum(known) - 1
    # what stands for a missing word is to be in none of them
    word = next(
        word
        for word in (f"{_MISSING}{i}" for i in range(100 * n_buckets))
        if not known[hasher.transform([[word]]).indices].any()
    )
    missing = [*_without_missing(word), ("missing", _one_hot([word]))]
    parts = [("missing", Pipeline(missing))]
    if n_known:
        signs = np.zeros((2 * n_known, int(known.sum())))
        signs[np.arange(n_known), places[kept]] = 1.0
        signs[n_known + np.arange(n_known), places[mirrored]] = -1.0
        both = np.hstack([np.eye(n_known)] * 2)
        words = [
            *_without_missing(word),
            ("hash", hasher),
            ("buckets", _selected(known)),
            ("signs", _linear_map(signs)),
            ("positive", _clipped(2 * n_known, 0.0, 1.0)),
            ("both", _linear_map(both)),
        ]
        parts.insert(0, ("known", Pipeline(words)))
    return [("words", Pipeline([("words", FeatureUnion(parts)), *_with_others(shares)]))]

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Parts of estimators of scikit-learn: steps, fitted members, and whether they learn anything.

Pipelines, searches and ensembles of any library are read by their attributes and by the names of
their bases, and nothing is imported.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from inspect import signature
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from skdp.privacy.books.functions import (
    assumption_about,
    estimators_in,
    is_known,
    made_up_tables,
    mixes_rows,
)


def sklearn_bases(estimator: Any) -> set[str]:
    """Return the names of scikit-learn's classes among the bases of an estimator."""
    mro = type(estimator).__mro__
    return {base.__name__ for base in mro if base.__module__.startswith("sklearn.")}


def is_private(estimator: Any) -> bool:
    """Return whether this has its own budget, like all private estimators."""
    return hasattr(estimator, "epsilon") and hasattr(estimator, "budget")


def is_free(estimator: Any) -> bool:
    """Return whether a private estimator releases nothing, with the parameters it has."""
    return is_private(estimator) and not getattr(estimator, "_releases", True)


def is_search(estimator: Any) -> bool:
    """Return whether this is a search of scikit-learn, without a ledger."""
    return "BaseSearchCV" in sklearn_bases(estimator) and not is_private(estimator)


def is_private_search(estimator: Any) -> bool:
    """Return whether this is a search with a ledger of its own."""
    return "BaseSearchCV" in sklearn_bases(estimator) and is_private(estimator)


def leaves(
    estimator: Any, given: Mapping[str, Any] | None = None, step: str | None = None
) -> Iterator[tuple[str | None, Any]]:
    """Yield (step, estimator) for the leaves of pipelines and other containers of steps.

    Parameters
    ----------
    estimator : estimator
        Fitted or not. Of a column transformer that is fitted, the leaves are what was fitted.
    given : dict, default=None
        Parameters that are replaced before a fit, as for `set_params`: the leaves are what that
        fit would fit, whether this is fitted or not. None for what is there.
    step : str, default=None
        The name of the estimator, if it is a step itself.
    """
    own = {key: value for key, value in (given or {}).items() if "__" not in key}
    parts = _parts(estimator, own, given is None)
    if parts is None:
        # those of what it holds too: an adjacency may stand there
        yield step, copy.deepcopy(estimator).set_params(**given) if given else estimator
        return
    for name, part in parts:
        part, start, nested = own.get(name, part), f"{name}__", None
        if part is None or isinstance(part, str):  # "passthrough" and "drop"
            continue
        if given is not None:
            nested = {key[len(start) :]: v for key, v in given.items() if key.startswith(start)}
        yield from leaves(part, nested, name)


def holders_of_steps(estimator: Any, step: str | None = None) -> Iterator[tuple[str | None, Any]]:
    """Yield (step, estimator) for pipelines and other containers of steps, nested ones too."""
    parts = _parts(estimator, {}, True)
    if parts is not None:
        yield step, estimator
    for name, part in parts or ():
        if not (part is None or isinstance(part, str)):
            yield from holders_of_steps(part, name)


def watchers(holder: Any) -> list[Any]:
    """Return the callbacks of what holds steps; scikit-learn hands them the rows."""
    # a bar looks at numbers of steps alone
    known = getattr(holder, "_skl_callbacks", None) or ()
    return [one for one in known if "ProgressBar" not in sklearn_bases(one)]


def what_rows_decide(holder: Any) -> list[str]:
    """Return what a column transformer lets rows decide, in sentences with a place for its name.

    It is sparse or dense by how many entries are stored, if a part returns sparse rows, which is
    known once it has decided for them. A function that chooses columns is handed all rows.
    """
    if "ColumnTransformer" not in sklearn_bases(holder):
        return []
    found = []
    parts = any(getattr(leaf, "sparse_output", False) for _, leaf in leaves(holder))
    if holder.sparse_threshold and (parts or getattr(holder, "sparse_output_", False)):
        found.append(
            "the form of what {} returns, sparse or dense by how many entries are stored. Set "
            "sparse_threshold=0, or sparse_output=False in its parts"
        )
    choices = [columns for _, _, columns in holder.transformers]
    if any(callable(c) and "make_column_selector" not in sklearn_bases(c) for c in choices):
        found.append(
            "the columns of {}, chosen by a function that is handed the rows. Give names or "
            "positions, or use make_column_selector"
        )
    return found


#: scikit-learn's bases of what lets rows, or fits to them, decide about the fits that it keeps
_DECIDING = {
    "BaseSearchCV", "RFE", "BaseBagging", "BaseWeightBoosting", "_BaseStacking",
    "SelfTrainingClassifier", "IterativeImputer", "RANSACRegressor",
}  # fmt: skip


def decides_about_fits(holder: Any) -> bool:
    """Return whether a fit that a meta-estimator keeps has no price without that.

    Its parameters, columns, rows or weights depend on rows in another way.
    """
    bases = sklearn_bases(holder)
    if "TransformedTargetRegressor" in bases:
        return holder.transformer is not None
    if "_BaseChain" in bases:
        return holder.cv is not None
    return bool(bases & _DECIDING) and not is_private(holder)


def overrides_fit(estimator: Any) -> bool:
    """Return whether a class that is derived from a private estimator learns in another way."""
    frozen = "FrozenEstimator" in sklearn_bases(estimator)
    bases = type(estimator.estimator if frozen else estimator).__mro__
    return learns_before(bases, {"skdp"}) is True


def learns_before(bases: Sequence[type], known: set[str]) -> bool | None:
    """Return whether a class learns before the first of its bases that is from known packages.

    None if there is no such base.
    """
    ours = [base.__module__.partition(".")[0] in known for base in bases]
    if not any(ours):
        return None
    return any(_LEARNING & set(vars(base)) for base in bases[: ours.index(True)])


def name_of(step: str | None, part: Any) -> str:
    """Return how a sentence calls a step, or an estimator that is no step."""
    return type(part).__name__ if step is None else f"step {step!r}"


def _parts(estimator: Any, own: Mapping[str, Any], as_it_is: bool) -> list[tuple[str, Any]] | None:
    """Return the named parts of what holds steps, with parameters replaced; None for others."""
    if hasattr(estimator, "steps"):
        return list(own.get("steps", estimator.steps))
    bases = sklearn_bases(estimator)
    if "FeatureUnion" in bases:
        return list(own.get("transformer_list", estimator.transformer_list))
    if "ColumnTransformer" not in bases:
        return None
    if as_it_is and hasattr(estimator, "transformers_"):
        parts = estimator.transformers_
    else:
        parts = own.get("transformers", estimator.transformers)
        parts = [*parts, ("remainder", estimator.remainder, slice(None))]
    # a part without columns is never fitted
    return [(name, part) for name, part, columns in parts if not _none_of(columns)]


def _none_of(columns: Any) -> bool:
    """Return whether a choice of columns is empty; one that is still to be made is not."""
    if callable(columns):
        return False
    chosen = np.asarray(columns)
    return chosen.size == 0 or (chosen.dtype == bool and not chosen.any())


#: they read the label set, and nothing else, from y
LABEL_CODERS = {"LabelBinarizer", "LabelEncoder", "MultiLabelBinarizer"}

# as deep as parts are looked for
_DEEPEST = 12

# whose objects hold no estimators
_PLAIN = {"builtins", "numpy", "scipy", "pandas", "polars", "threading", "_thread", "logging"}


def has_attributes(estimator: Any) -> bool:
    """Return whether this has attributes that only a fit makes."""
    names = getattr(estimator, "__dict__", ())
    return any(name.endswith("_") and not name.endswith("__") for name in names)


def was_fitted(step: Any) -> bool:
    """Return whether a step of a fitted pipeline was fitted; a sampler may keep nothing."""
    frozen = type(step).__name__ == "FrozenEstimator"
    return frozen or multiplies_rows(step) or has_attributes(step)


def keeps_ledgers(estimator: Any, depth: int = 0) -> bool:
    """Return whether this, one of its steps, or a kept part is a private fit."""
    return depth < _DEEPEST and any(
        hasattr(part, "ledger_")
        or (is_search(part) and hasattr(part, "cv_results_"))
        or any(keeps_ledgers(inner, depth + 1) for inner in kept_parts(part))
        for _, part in leaves(estimator)
    )


def fits_inside(estimator: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the private fits of an estimator, of its steps, and of its kept parts."""
    for _, part in leaves(estimator):
        if hasattr(part, "ledger_"):
            yield part
        elif depth < _DEEPEST:
            for inner in kept_parts(part):
                yield from fits_inside(inner, depth + 1)


def kept_parts(holder: Any) -> list[Any]:
    """Return the kept estimators of a fitted meta-estimator, each once.

    They are looked for in its attributes, in lists, dictionaries and plain objects there.
    Parameters are templates, which were cloned before they were fitted, except those of a
    FrozenEstimator; those of other libraries are looked at if nothing else holds an estimator.
    """
    names = vars(holder) if hasattr(holder, "__dict__") else {}
    parameters = set[str]()
    if hasattr(holder, "get_params") and type(holder).__name__ != "FrozenEstimator":
        parameters = set(holder.get_params(deep=False))
    seen = {id(holder): holder}
    found = list(_estimators_in([v for k, v in names.items() if k not in parameters], seen, 0))
    if found or type(holder).__module__.startswith("sklearn."):
        return found
    return list(_estimators_in([v for k, v in names.items() if k in parameters], seen, 0))


def _estimators_in(value: Any, seen: dict[int, Any], depth: int) -> Iterator[Any]:
    """Yield the estimators in a value, whatever holds them there, in order."""
    if str(getattr(value, "dtype", "")) == "object" and hasattr(value, "to_numpy"):
        # a column of pandas, in which fairlearn keeps its fits
        value = value.to_numpy()
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.ravel().tolist()
    if isinstance(value, type | FunctionType | ModuleType) or depth > _DEEPEST:
        return
    inside: Any = ()
    if isinstance(value, Mapping):
        inside = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        inside = value
    elif type(value).__module__.partition(".")[0] in _PLAIN or not hasattr(value, "__dict__"):
        return
    if id(value) in seen:
        return
    # kept, so that no other object gets its address meanwhile
    seen[id(value)] = value
    if hasattr(value, "fit"):
        yield value
        return
    if not isinstance(value, Mapping | list | tuple | set | frozenset):
        inside = vars(value).values()
    for one in inside:
        yield from _estimators_in(one, seen, depth + 1)


def writes_seeds(holder: Any) -> bool:
    """Return whether seeds of the parts of a meta-estimator are its own, and not the user's."""
    if "BaseEnsemble" in sklearn_bases(holder):
        return True
    given = holder.get_params(deep=True) if hasattr(holder, "get_params") else {}
    seeds = [value for name, value in given.items() if name.endswith("__random_state")]
    return bool(seeds) and all(seed is None for seed in seeds)


def _nothing(holder: Any) -> None:
    return None


def drawn_rows(holder: Any) -> tuple[bool, dict[int, int]]:
    """Return whether parts were fitted to drawn rows, and how often each read the same one.

    scikit-learn's bagging draws positions from a seed and their number, and can draw them again:
    no row is read for it. Parts that are left out were fitted to each row once, or `what_else`
    names what happened to them.
    """
    if "BaseBagging" not in sklearn_bases(holder) or not hasattr(holder, "estimators_"):
        return False, {}
    if not holder.bootstrap or _unknown_draws(holder):
        return True, {}
    drawn = zip(holder.estimators_, holder.estimators_samples_, strict=True)
    return True, {id(part): int(np.max(np.bincount(rows), initial=1)) for part, rows in drawn}


def _unknown_draws(holder: Any) -> bool:
    # seeds and numbers of rows of the last fit alone are kept, which another one may have gone
    # before, with other parameters; and weights of rows are no public number
    weighted = getattr(holder, "_sample_weight", None) is not None
    several = holder.warm_start or len(getattr(holder, "_seeds", ())) != len(holder.estimators_)
    return weighted or several


def _bagged(holder: Any) -> str | None:
    if getattr(holder, "oob_score", False):
        return "its score on rows that were left out, which is exact"
    if getattr(holder, "_sample_weight", None) is not None:
        return "the rows that it drew, by weights of theirs"
    if _unknown_draws(holder):
        return "rows that it drew several times, nobody knows how often: it keeps its last draws"
    return None


def _one_for_each(holder: Any) -> str | None:
    # without a row that has a label, or one that has it not, there is no fit
    labels = "which labels some rows have and others have not: only these are fitted. Use "
    labels += "MultiOutputClassifier, and classes=(0, 1) in what it fits"
    return labels if getattr(holder, "multilabel_", False) else None


def _boosted(holder: Any) -> str | None:
    return "what it learned from the errors of its members: how often rows are drawn, and weights"


def _on_folds(holder: Any) -> str | None:
    kept = "prefit" if type(holder).__name__.startswith("Stacking") else None
    folds = "the fits on folds that later ones were trained by, which it did not keep"
    return None if isinstance(holder.cv, str | None) and holder.cv == kept else folds


#: what scikit-learn's meta-estimators do besides the fits that they keep; None for nothing
LEFT_OUT: dict[str, Callable[[Any], str | None]] = {
    **dict.fromkeys(
        [
            "FixedThresholdClassifier", "FrozenEstimator", "MultiOutputClassifier",
            "MultiOutputRegressor", "OutputCodeClassifier", "TransformedTargetRegressor",
            "VotingClassifier", "VotingRegressor",
        ],
        _nothing,
    ),
    "AdaBoostClassifier": _boosted,
    "AdaBoostRegressor": _boosted,
    "BaggingClassifier": _bagged,
    "BaggingRegressor": _bagged,
    "CalibratedClassifierCV": lambda _: "what calibrates it, learned from exact scores of rows",
    "ClassifierChain": _on_folds,
    "RegressorChain": _on_folds,
    "OneVsRestClassifier": _one_for_each,
    "OneVsOneClassifier": lambda _: "the number of rows of every pair of classes",
    "RFE": lambda _: "the fits of its earlier rounds, which it did not keep",
    "RFECV": lambda _: "fits that it did not keep, and the choice among them by exact scores",
    "SelfTrainingClassifier": lambda _: (
        "the fits of its earlier rounds, which it did not keep, and how many there were"
    ),
    "StackingClassifier": _on_folds,
    "StackingRegressor": _on_folds,
    "SelectFromModel": lambda h: "the number that it selects" if callable(h.max_features) else None,
    "TunedThresholdClassifierCV": lambda _: (
        "the threshold, chosen by exact scores, and the fits on folds, which it did not keep"
    ),
}  # fmt: skip


def what_else(holder: Any) -> str | None:
    """Return what a meta-estimator did besides the fits that it keeps, or None if nothing."""
    known = type(holder).__module__.startswith("sklearn.")
    if known and type(holder).__name__ in LEFT_OUT:
        return LEFT_OUT[type(holder).__name__](holder)
    return "what it learned itself, and fits that it did not keep"


def _always(step: Any) -> bool:
    return True


def _categories_are_given(step: Any) -> bool:
    given = not isinstance(step.categories, str)
    return given and step.min_frequency is None and step.max_categories is None


def _fills_in_a_constant(step: Any) -> bool:
    return step.strategy == "constant" and step.keep_empty_features and not step.add_indicator


#: scikit-learn's transformers whose `fit` stores what follows from parameters and shape
SHAPE_ONLY: dict[str, Callable[[Any], bool]] = {
    # a random matrix of a given size; "auto" takes the number of rows, which may be a secret
    "GaussianRandomProjection": lambda step: step.n_components != "auto",
    "SparseRandomProjection": lambda step: step.n_components != "auto",  # density: from the width
    "PolynomialFeatures": _always,  # exponents for a number of features
    "PolynomialCountSketch": _always,  # random hashes for a number of features
    "SkewedChi2Sampler": _always,  # random weights for a number of features
    # random weights, but gamma="scale" takes the variance of the rows
    "RBFSampler": lambda step: not isinstance(step.gamma, str),
    # polynomials between public knots, and not quantiles or the ends of the rows
    "SplineTransformer": lambda step: not isinstance(step.knots, str),
    # counts of the words of a public vocabulary, and parts of a row's length
    "CountVectorizer": lambda step: step.vocabulary is not None,
    # places of words by their hash; scikit-learn 1.6 does not say that they do without a fit
    "FeatureHasher": _always,
    "HashingVectorizer": _always,
    "TfidfTransformer": lambda step: not step.use_idf,
    # encoders with public vocabularies, unless they count how frequent categories are
    "OneHotEncoder": _categories_are_given,
    "OrdinalEncoder": _categories_are_given,
    # other strategies learn statistics; empty features and missing values are facts about rows
    "SimpleImputer": _fills_in_a_constant,
}


def own_function(step: Any) -> Any:
    """Return the function of a FunctionTransformer; None if it has none, and for all others."""
    return step.func if "FunctionTransformer" in sklearn_bases(step) else None


def _mixes(step: Any) -> bool | None:
    """Return whether the function of a step visibly mixes rows; None if nobody can tell."""
    function = own_function(step)
    if is_known(function):
        return False
    width = getattr(step, "n_features_in_", None)
    tables = made_up_tables(width, getattr(step, "feature_names_in_", None))
    return mixes_rows(partial(function, **(step.kw_args or {})), tables)


def assumptions_of(step: Any, where: str) -> tuple[str, ...]:
    """Return what is assumed about the function of a step that learns nothing."""
    function = own_function(step)
    return () if is_known(function) else (assumption_about(function, where),)


def fits_used(step: Any) -> list[str]:
    """Return the classes of the fits that functions of a FunctionTransformer visibly use."""
    if "FunctionTransformer" not in sklearn_bases(step):
        return []
    options = [*(step.kw_args or {}).values(), *(step.inv_kw_args or {}).values()]
    used = estimators_in(step.func, step.inverse_func, *options)
    parts = [part for one in used for _, part in leaves(one)]
    kinds = [type(part).__name__ for part in parts if not (is_free(part) or learns_nothing(part))]
    return list(dict.fromkeys(kinds))


#: methods by which a step learns, or does what it does
_LEARNING = {"fit", "fit_transform", "partial_fit", "transform", "_transform", "_fit"}


def fits_anew(step: Any) -> bool:
    """Return whether a class has methods of its own, and the tags of a class of scikit-learn."""
    for base in type(step).__mro__:
        ours = base.__module__.startswith(("sklearn.", "skdp."))
        if ours or "__sklearn_tags__" in vars(base):
            return False
        if _LEARNING & set(vars(base)):
            return True
    return False


def multiplies_rows(step: Any) -> bool:
    """Return whether a step hands on other rows, or more of them, than there are people."""
    # a PatchExtractor makes many rows of an image
    return hasattr(step, "fit_resample") or "PatchExtractor" in sklearn_bases(step)


def _holds_an_estimator(step: Any) -> bool:
    return any(hasattr(value, "fit") for value in getattr(step, "__dict__", {}).values())


def learns_nothing(step: Any) -> bool:
    """Return whether fitting a step leaves nothing behind that was computed from rows.

    Parameters
    ----------
    step : estimator
        A leaf of a pipeline. One that holds other estimators, or predicts, is never said
        to learn nothing.

    Returns
    -------
    nothing : bool
        By its tag ``requires_fit=False``, or by `SHAPE_ONLY`; never of what resamples rows, nor of
        a class that has the tag of another one and methods of its own. A FunctionTransformer
        learns nothing unless its function visibly mixes rows, or uses a fit; that it does not is
        assumed besides.
    """
    if multiplies_rows(step) or fits_anew(step) or fits_used(step):
        return False
    if own_function(step) is not None:
        return not _mixes(step)
    # a regressor may do without fit and learn all the same
    if hasattr(step, "predict") or _holds_an_estimator(step):
        return False
    kind, tags = type(step), getattr(step, "__sklearn_tags__", None)
    if kind.__module__.startswith("sklearn.") and kind.__name__ in SHAPE_ONLY:
        return bool(SHAPE_ONLY[kind.__name__](step))
    return tags is not None and not tags().requires_fit


# Groups, which scikit-learn routes.


def asks_for_groups(leaf: Any) -> bool:
    """Return whether somebody has asked for groups in `fit`: without them it is an error.

    Estimators here take groups that cross-validators route by default, and do without.
    """
    # scikit-learn takes half a millisecond, and every fit asks
    kind: Any = type(leaf)
    if "_metadata_request" not in vars(leaf) and not _class_requests(kind):
        return False
    return _requests_of_fit(leaf).get("groups") not in (None, False)


@cache
def _class_requests(kind: type) -> bool:
    """Return whether a class of somebody else asks for metadata in an attribute of its own."""
    return any(
        "__metadata_request__" in name
        for base in kind.__mro__
        if not base.__module__.startswith("skdp.")
        for name in vars(base)
    )


def got_groups(fitted: Any) -> bool:
    """Return whether all fits of private steps were passed groups; None was not fitted."""
    steps = [] if fitted is None else [leaf for _, leaf in leaves(fitted) if is_private(leaf)]
    ledgers = [getattr(leaf, "ledger_", None) for leaf in steps if not is_free(leaf)]
    return bool(ledgers) and all(getattr(ledger, "unit", None) == "group" for ledger in ledgers)


def takes_groups(leaf: Any) -> bool:
    """Return whether `fit` has a parameter for groups."""
    if "groups" not in _requests_of_fit(leaf):
        return False
    # a subclass may have another `fit`, and still the requests of its base
    given = signature(leaf.fit).parameters
    return "groups" in given or any(p.kind is p.VAR_KEYWORD for p in given.values())


def _requests_of_fit(leaf: Any) -> dict[str, Any]:
    """Return which metadata the `fit` of an estimator has parameters for, and asks for."""
    if not hasattr(leaf, "get_metadata_routing"):
        return {}
    routing = leaf.get_metadata_routing()
    # that of what fits others has its own requests inside
    fit = getattr(getattr(routing, "_self_request", routing), "fit", None)
    return {} if fit is None else dict(fit.requests)

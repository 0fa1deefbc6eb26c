# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which steps of a pipeline learn nothing from rows, known by name: no import is needed."""

from collections.abc import Callable
from typing import Any


def _always(step: Any) -> bool:
    return True


def _categories_are_given(step: Any) -> bool:
    given = not isinstance(step.categories, str)
    return given and step.min_frequency is None and step.max_categories is None


def _fills_in_a_constant(step: Any) -> bool:
    return step.strategy == "constant" and step.keep_empty_features and not step.add_indicator


#: scikit-learn's transformers whose `fit` stores what follows from parameters and shape
SHAPE_ONLY: dict[str, Callable[[Any], bool]] = {
    "GaussianRandomProjection": _always,  # a random matrix of a given size
    "SparseRandomProjection": _always,  # the same, its density following from the width
    "PolynomialFeatures": _always,  # exponents for a number of features
    "PolynomialCountSketch": _always,  # random hashes for a number of features
    "SkewedChi2Sampler": _always,  # random weights for a number of features
    # random weights, but gamma="scale" takes the variance of the rows
    "RBFSampler": lambda step: not isinstance(step.gamma, str),
    # encoders with public vocabularies, unless they count how frequent categories are
    "OneHotEncoder": _categories_are_given,
    "OrdinalEncoder": _categories_are_given,
    # other strategies learn statistics; empty features and missing values are facts about rows
    "SimpleImputer": _fills_in_a_constant,
}


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
        By its tag ``requires_fit=False``, or by `SHAPE_ONLY`. What a function inside of a
        FunctionTransformer does with rows is not looked at.
    """
    # a regressor may do without fit and learn all the same
    if hasattr(step, "predict") or _holds_an_estimator(step):
        return False
    kind, tags = type(step), getattr(step, "__sklearn_tags__", None)
    if kind.__module__.startswith("sklearn.") and kind.__name__ in SHAPE_ONLY:
        return bool(SHAPE_ONLY[kind.__name__](step))
    return tags is not None and not tags().requires_fit

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The steps of pipelines and of what else holds steps, and of which kind they are.

All of it is told by names and attributes: no import is needed.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def sklearn_bases(estimator: Any) -> set[str]:
    """Return the names of those classes among the bases that are scikit-learn's."""
    mro = type(estimator).__mro__
    return {base.__name__ for base in mro if base.__module__.startswith("sklearn.")}


def is_private(estimator: Any) -> bool:
    """Return whether this has a budget of its own, as all private estimators have."""
    return hasattr(estimator, "epsilon") and hasattr(estimator, "budget")


def is_free(estimator: Any) -> bool:
    """Return whether a private estimator says that, with its parameters, it releases nothing."""
    return is_private(estimator) and not getattr(estimator, "_releases", True)


def is_search(estimator: Any) -> bool:
    """Return whether this is one of scikit-learn's searches, which keep no ledger."""
    return "BaseSearchCV" in sklearn_bases(estimator) and not is_private(estimator)


def leaves(
    estimator: Any, name: str = "", given: Mapping[str, Any] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield (name, estimator) for the leaves of pipelines and what else holds steps.

    Parameters
    ----------
    estimator : estimator
        Fitted or not. Of a column transformer that is fitted, the leaves are what was fitted.
    name : str, default=""
        What it is called if it is a leaf itself; others are called after their steps.
    given : dict, default=None
        Parameters that are replaced before a fit, as for `set_params`: the leaves are what that
        fit would fit, whether this is fitted or not. None for what is there.
    """
    own = {key: value for key, value in (given or {}).items() if "__" not in key}
    parts = _parts(estimator, own, given is None)
    if parts is None:
        # those of what it holds too: an adjacency may stand there
        yield name, copy.deepcopy(estimator).set_params(**given) if given else estimator
        return
    for step, part in parts:
        part, start, nested = own.get(step, part), f"{step}__", None
        if part is None or isinstance(part, str):  # "passthrough" and "drop"
            continue
        if given is not None:
            nested = {key[len(start) :]: v for key, v in given.items() if key.startswith(start)}
        yield from leaves(part, f"step {step!r}", nested)


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

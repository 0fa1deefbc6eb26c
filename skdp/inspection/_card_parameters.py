# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of estimators as a card may show them: plain, short, and without seeds."""

import math
from numbers import Integral, Real

import numpy as np

# longer lists say how long they are
_MOST_ENTRIES = 12
_MOST_LETTERS = 200
_DEEPEST = 6
_SEED = "set (a seed is not shown: who knows it can remove the noise)"


def plain(value):
    """Return public numbers, texts and lists of them as JSON has them; None for not finite.

    Parameters
    ----------
    value : object
        Of built-in types or numpy's, lists, tuples and dictionaries of them.

    Returns
    -------
    plain : object
        Of built-in types. What is infinite or not a number is None, for JSON has neither.
    """
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    return None if value is None else str(value)


def shown_parameters(estimator, depth=0):
    """Return the parameters of an estimator, as they were given.

    Parameters
    ----------
    estimator : estimator
        With ``get_params``.
    depth : int, default=0
        How many estimators it is inside of.

    Returns
    -------
    shown : dict of str to object
        Of built-in types, in the order of names.
    """
    given = estimator.get_params(deep=False)
    return {name: shown(name, given[name], depth) for name in sorted(given)}


def shown(name, value, depth=0):
    """Return one parameter: short values as they are, arrays by their shape, objects by type.

    Parameters
    ----------
    name : str
        Of the parameter. The value of a `random_state` is never shown.
    value : object
        As given.
    depth : int, default=0
        How deep inside of other values it is.

    Returns
    -------
    shown : object
        Of built-in types.
    """
    if name.endswith(("random_state", "seed")):
        return None if value is None else _SEED
    if isinstance(value, bool | np.bool_ | Integral) or value is None:
        return plain(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, str):
        cut = len(value) > _MOST_LETTERS
        return value[:_MOST_LETTERS] + f"... ({len(value)} letters)" if cut else value
    kind = type(value).__name__
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return f"{value.__module__}.{value.__qualname__}"
    if depth >= _DEEPEST:
        return f"{kind}, not shown"
    if hasattr(value, "get_params"):
        return {"estimator": kind, "parameters": shown_parameters(value, depth + 1)}
    if hasattr(value, "shape"):
        return f"{kind} of shape {tuple(value.shape)}"
    if isinstance(value, dict | list | tuple | set | frozenset | range):
        return _container(name, value, kind, depth + 1)
    return f"object of type {kind}"


def _container(name, value, kind, depth):
    """Return a short container; of a long one how long it is."""
    if len(value) > _MOST_ENTRIES:
        return f"{kind} of {len(value)}"
    if isinstance(value, dict):
        return {str(key): shown(str(key), inner, depth) for key, inner in value.items()}
    entries = [shown(name, inner, depth) for inner in value]
    # sets have no order of their own
    return sorted(entries, key=str) if isinstance(value, set | frozenset) else entries

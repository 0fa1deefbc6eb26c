# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Functions of users: assumed to be row-wise, after a check on made-up rows.

The function of a FunctionTransformer, a row score or the map of a stream is arbitrary code without
proofs. The independence of the value of a row from other rows is an assumption, and the ledger
says so. Functions that visibly violate it are refused: on made-up rows, on the same rows in
another order, on half of them and on single rows, they give a row different values.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from inspect import getclosurevars
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

# made-up rows, and widths that are tried where the number of features is not known
_ROWS, _WIDTHS = 24, (3, 1, 2, 4, 5, 8)
#: what floating-point arithmetic may change in a row when others stand beside it
_TOLERANCE = 1e-7
_LONGEST = 80
# containers of more things are not looked into
_FEW = 100

Table = tuple[Any, ...]


def made_up(shape: tuple[int, ...], low: float = -2.0) -> NDArray[np.float64]:
    """Return distinct public numbers between `low` and 2."""
    share: NDArray[np.float64] = np.modf(np.arange(1, math.prod(shape) + 1) * 0.6180339887498949)[0]
    return low + (2.0 - low) * share.reshape(shape)


def made_up_tables(width: int | None = None, names: Any = None) -> Iterator[Table]:
    """Yield tables of rows for the check: some functions need names, or no negatives."""
    for n_features in _WIDTHS if width is None else (width,):
        for low in (-2.0, 0.1):
            rows = made_up((_ROWS, n_features), low)
            if names is not None and len(names) == n_features:
                import pandas as pd

                yield (pd.DataFrame(rows, columns=list(names)),)
            yield (rows,)


def mixes_rows(function: Callable[..., Any], tables: Iterable[Table]) -> bool | None:
    """Return whether a function visibly computes the value of a row from other rows.

    Parameters
    ----------
    function : callable
        Function of the parts of a table that returns a value for every row.
    tables : iterable of tuple
        Made-up rows and their companions; the first that the function accepts is used.

    Returns
    -------
    mixes : bool or None
        None if the function accepts none of them, or is random.
    """
    if _fits(function):
        return True
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for table in tables:
            try:
                whole = _tried(function, table, np.arange(_ROWS))
                again = _tried(function, table, np.arange(_ROWS))
            except Exception:
                continue
            if whole is None:
                return True
            if not _agree(whole, again):
                return None
            return _differs(function, table, whole)
    return None


def _differs(function: Callable[..., Any], table: Table, whole: Any) -> bool | None:
    """Return whether values of rows differ in another order, in halves, or for single rows."""
    order = np.arange(_ROWS)
    parts = [order[::-1], (7 * order + 3) % _ROWS, order[: _ROWS // 2], order[_ROWS // 2 :]]
    for taken in [*parts, *order[:4, None]]:
        try:
            found = _tried(function, table, taken)
        except Exception:
            return None
        if not _agree(found, whole[taken]):
            return True
    return False


def _tried(function: Callable[..., Any], table: Table, taken: NDArray[Any]) -> Any:
    """Return the values of a function, an array; None unless one per row."""
    given = [part.iloc[taken] if hasattr(part, "iloc") else part[taken] for part in table]
    found = function(*(part.copy() for part in given))
    found = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
    return found if found.ndim and len(found) == len(taken) else None


def _agree(one: Any, other: Any) -> bool:
    if one is None or other is None or one.shape != other.shape:
        return False
    if {one.dtype.kind, other.dtype.kind} <= set("biuf"):
        one, other = one.astype(np.float64), other.astype(np.float64)
        scale = np.max(np.abs(other), initial=0.0, where=np.isfinite(other))
        close = np.isclose(one, other, rtol=_TOLERANCE, atol=_TOLERANCE * scale, equal_nan=True)
        return bool(close.all())
    return bool(np.all((one == other) | ((one != one) & (other != other))))


def name_of_function(function: Any) -> str:
    """Return the name of a function, and the first line of its docstring."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", type(function).__qualname__)
    said = (getattr(function, "__doc__", None) or "").strip().partition("\n")[0]
    return f"{name} ({said[:_LONGEST]!r})" if said else name


def assumption_about(function: Any, where: str) -> str:
    """Return the assumption about the function of a user, for a ledger."""
    name = name_of_function(function)
    used = ", ".join(sorted({type(one).__name__ for one in estimators_in(function)}))
    public = f", and the fit of {used} that it uses is public" if used else ""
    return f"the function {name} of {where} computes the value of a row from that row alone{public}"


def mixing(function: Any, where: str) -> str:
    """Return the error text for a function that visibly mixes rows."""
    return (
        f"the function {name_of_function(function)} of {where}, which mixes rows: made-up rows get "
        "other values if other rows stand beside them. Use public constants there, or private "
        "steps"
    )


def using(function: Any, where: str, used: Iterable[str]) -> str:
    """Return the error text for a function that uses a fit."""
    return (
        f"the function {name_of_function(function)} of {where}, which uses a fit of "
        f"{', '.join(used)}: what that has learned from rows has no price here. Make it a step of "
        "its own, in a FrozenEstimator if it is not to be fitted again"
    )


def estimators_in(*values: Any) -> list[Any]:
    """Return the estimators that functions visibly use.

    They are looked for among the owners of methods, the arguments of a partial, the attributes of
    callable objects, and the variables and defaults of functions, also of those of the same module
    that these call; and in small containers there.
    """
    found, seen, left = list[Any](), set[int](), list(values)
    while left:
        value = left.pop()
        if id(value) in seen or isinstance(value, type | ModuleType):
            continue
        seen.add(id(value))
        if hasattr(value, "fit") and hasattr(value, "get_params"):
            found.append(value)
        elif isinstance(value, partial):
            left += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, MethodType):
            left += [value.__self__, value.__func__]
        elif isinstance(value, FunctionType):
            left += _variables(value)
        elif isinstance(value, dict | list | tuple) and len(value) <= _FEW:
            left += value.values() if isinstance(value, dict) else value
        elif callable(value) and hasattr(value, "__dict__"):
            left += [*vars(value).values(), type(value).__call__]
    return found


def _variables(function: FunctionType) -> list[Any]:
    """Return the values of defaults, and of variables that a function has from outside."""
    found = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    try:
        outside = getclosurevars(function)
    except ValueError:  # a variable without a value
        return found
    found += [*outside.nonlocals.values(), *outside.globals.values()]
    # what another module does is its own
    own = function.__module__
    return [
        value for value in found if not isinstance(value, FunctionType) or value.__module__ == own
    ]


def is_known(function: Any) -> bool:
    """Return whether a function is an entrywise one of numpy, or from this library."""
    if _fits(function):
        return False
    while isinstance(function, partial):
        function = function.func
    if isinstance(function, np.ufunc):
        # frompyfunc makes one of any function: it knows objects alone, which those of numpy do not
        return function.signature is None and not set("".join(function.types)) <= set("O->")
    if function is None:
        return True
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or type(function).__module__
    if owner is not None:
        module = type(owner).__module__
    return module.partition(".")[0] == "skdp"


def _fits(function: Any) -> bool:
    """Return whether a function is a method that fits, as `fit_transform`: it learns from rows."""
    while isinstance(function, partial):
        function = function.func
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    return hasattr(owner, "fit") and name.startswith("fit")

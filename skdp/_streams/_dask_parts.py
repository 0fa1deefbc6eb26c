# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The partitions of a collection of dask: rows with their targets, and how many there are."""

import numpy as np

from skdp._streams import _cluster_tasks as tasks
from skdp._streams._blocks import names_of, refuse_other_types
from skdp._streams._cluster_tasks import Sealed
from skdp._streams._dask import compute, kept, task
from skdp._streams._opened import is_dask
from skdp._streams._places import located


def partitions(X, y, client):
    """Return the partitions of rows and targets.

    Parameters
    ----------
    X, y : dask collection; dask collection, array-like or None
        Rows and targets.
    client : Client or None
        Who computes them.

    Returns
    -------
    parts : list of Delayed
        Blocks (X, y).
    lengths : list of int
        Their numbers of rows; they are computed if dask does not know them.
    names : tuple of str or None
        Of the features.
    """
    parts, lengths, n_features = _rows_in_parts(X)
    names = names_of(X)
    parts = [task(tasks.rows_alone, part, n_features) for part in parts]
    parts, lengths = _counted(parts, lengths, client)
    if y is None:
        return kept(parts, client), lengths, names
    n_rows, bounds = sum(lengths), np.cumsum([0, *lengths])
    if not is_dask(y):
        y = np.asarray(y)
        targets, given = [y], list(y.shape[:1])
        if y.ndim != 1 and y.shape[1:] != (1,):
            raise ValueError(f"y must have one column; got an array of shape {y.shape}.")
    else:
        targets, given = _counted(*_targets_in_parts(y), client)
    if sum(given) != n_rows:
        raise ValueError(
            f"X and y must have the same number of rows; got {n_rows} and {sum(given)}."
        )
    filled = [i for i, length in enumerate(given) if length]
    ends = np.cumsum([0, *(given[i] for i in filled)])
    made = []
    for i, part in enumerate(parts):
        if not lengths[i]:
            continue
        pairs = []
        for j, where in located((int(bounds[i]), int(bounds[i + 1])), ends):
            target = targets[filled[j]]
            if isinstance(target, np.ndarray):
                # every task gets its own rows alone
                target, where = target[where], slice(None)
            pairs += [target, Sealed(where)]
        made.append(task(tasks.with_targets, part, *pairs))
    return kept(made, client), [length for length in lengths if length], names


def _counted(parts, lengths, client):
    """Return partitions and their lengths; if nobody knows these, each is computed once."""
    if any(length is None for length in lengths):
        parts = kept(parts, client)
        lengths = compute([task(tasks.length_of, part) for part in parts], client)
    return parts, list(lengths)


def _rows_in_parts(X):
    """Return partitions of all columns, their lengths where these are known, and n_features."""
    if not _is_collection(X) or X.ndim != 2:
        raise TypeError(
            f"X must be a dask array with two dimensions, or a dask DataFrame; got {_described(X)}."
        )
    refuse_other_types(X)
    if hasattr(X, "to_dask_array"):
        parts = X.to_delayed()
        return parts, [None] * len(parts), len(X.columns)
    if np.isnan(X.shape[1]):
        raise ValueError("the number of columns of X must be known; got a dask array without it.")
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    return X.to_delayed()[:, 0].tolist(), _known(X.chunks[0]), X.shape[1]


def _targets_in_parts(y):
    """Return partitions of one column, and their lengths where these are known."""
    known = _is_collection(y)
    if known and hasattr(y, "to_dask_array"):
        if y.ndim == 2 and len(y.columns) != 1:
            raise ValueError(f"y must have one column; got a dask DataFrame of {len(y.columns)}.")
        parts = y.to_delayed()
        return parts, [None] * len(parts)
    if not known or y.ndim not in (1, 2) or y.shape[1:] not in ((), (1,)):
        raise TypeError(
            "y must be a dask array, Series or DataFrame with one column, or an array; got "
            f"{_described(y)}."
        )
    return y.to_delayed().ravel().tolist(), _known(y.chunks[0])


def _is_collection(part):
    """Whether part is an array or a data frame of dask."""
    from dask.delayed import Delayed

    # a delayed object has attributes of any name
    return not isinstance(part, Delayed) and hasattr(part, "to_delayed") and hasattr(part, "ndim")


def _known(lengths):
    return [None if np.isnan(length) else int(length) for length in lengths]


def _described(part):
    kind = type(part).__name__
    return f"a {kind} with {part.ndim} dimensions" if _is_collection(part) else f"a {kind} of dask"

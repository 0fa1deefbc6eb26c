# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whether two data sets are neighbours."""

import numpy as np
from scipy import sparse

ADJACENCIES = ("replace-one", "zero-out", "remove-one")


def as_arguments(data):
    """Return data as the arguments of `fit`: X alone, or what a tuple holds."""
    return data if isinstance(data, tuple) else (data,)


def dense(values):
    """Return an array of rows: numbers as float64, anything else as it is."""
    if sparse.issparse(values):
        values = values.toarray()
    elif hasattr(values, "to_numpy"):
        values = values.to_numpy()
    values = np.asarray(values)
    return values.astype(np.float64) if values.dtype.kind in "biuf" else values


def check_neighbours(first, second, adjacency):
    """Raise ValueError unless two data sets differ as an adjacency says.

    Parameters
    ----------
    first, second : tuple of array-like
        The arguments of `fit`. If there is a third one, groups, all rows of one group may
        differ.
    adjacency : {"replace-one", "zero-out", "remove-one"}
        That a row contributes nothing cannot be seen: "zero-out" is checked like
        "replace-one".
    """
    if len(first) != len(second):
        raise ValueError(
            f"data and neighbour must be alike; got {len(first)} arrays and {len(second)}."
        )
    pairs = [(dense(a), dense(b)) for a, b in zip(first, second, strict=True)]
    sizes = {a.shape[:1] for a, _ in pairs}, {b.shape[:1] for _, b in pairs}
    if any(len(lengths) != 1 for lengths in sizes) or any(
        a.shape[1:] != b.shape[1:] for a, b in pairs
    ):
        shapes = [tuple(part.shape for part in side) for side in zip(*pairs, strict=True)]
        raise ValueError(f"data and neighbour have wrong shapes; got {shapes[0]} and {shapes[1]}.")
    n_first, n_second = len(pairs[0][0]), len(pairs[0][1])
    if adjacency == "remove-one":
        _check_removed(pairs, n_first, n_second)
        return
    if n_first != n_second:
        raise ValueError(
            f"data and neighbour must have equally many rows under {adjacency!r}; got {n_first} "
            f"and {n_second} (adjacency='remove-one' is for one row less)."
        )
    changed = np.any([_differ(a, b) for a, b in pairs], axis=0)
    if not changed.any():
        raise ValueError("data and neighbour must differ; they are equal.")
    groups = pairs[2][0] if len(pairs) > 2 else None
    alone = len(set(groups[changed])) if groups is not None else int(changed.sum())
    if alone > 1:
        unit = "row" if groups is None else "group"
        raise ValueError(f"data and neighbour must differ in one {unit}; they differ in {alone}.")


def _differ(first, second):
    """Return which rows differ; NaN equals NaN."""
    unequal = first != second
    if first.dtype.kind == second.dtype.kind == "f":
        unequal &= ~(np.isnan(first) & np.isnan(second))
    return unequal.reshape(len(first), -1).any(axis=1)


def _check_removed(pairs, n_first, n_second):
    if abs(n_first - n_second) != 1:
        raise ValueError(
            "data and neighbour must differ by one row under 'remove-one'; got "
            f"{n_first} and {n_second} rows."
        )
    if n_first < n_second:
        pairs = [(b, a) for a, b in pairs]
    shorter = min(n_first, n_second)
    same = np.all([~_differ(a[:shorter], b) for a, b in pairs], axis=0)
    place = shorter if same.all() else int(np.argmin(same))
    if any(_differ(np.delete(a, place, axis=0), b).any() for a, b in pairs):
        raise ValueError(
            "data and neighbour must differ by one row under 'remove-one'; other rows differ too."
        )

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which rows belong to which client."""

import numpy as np


def resolve_clients(groups, n_rows):
    """Code the clients.

    Parameters
    ----------
    groups : array-like of shape (n_rows,) or None
        Identifier of the client that owns the row: numbers, or text. None: every row is a
        client of its own.
    n_rows : int
        Number of rows.

    Returns
    -------
    n_clients : int
        Number of clients; public.
    codes : ndarray of shape (n_rows,), dtype int64
        Position of every row's client among the sorted identifiers; private.

    Raises
    ------
    ValueError
        If `groups` is not one identifier a row.
    """
    if groups is None:
        return n_rows, np.arange(n_rows)
    try:
        groups = np.asarray(groups)
    except ValueError:
        raise ValueError(
            "groups must have one identifier of a client for each row of X; got lists of several "
            "lengths."
        ) from None
    if groups.ndim != 1 or len(groups) != n_rows:
        raise ValueError(
            f"groups must have one identifier of a client for each row of X, shape ({n_rows},); "
            f"got shape {groups.shape}."
        )
    if _has_missing(groups):
        raise ValueError("groups must not have missing identifiers.")
    try:
        found, codes = np.unique(groups, return_inverse=True)
    except TypeError:
        raise ValueError(
            "groups must have identifiers of one type that can be sorted; got several types."
        ) from None
    return len(found), codes.reshape(-1).astype(np.int64)


def _has_missing(groups):
    """Return whether there is None, NaN, NA or NaT."""
    if groups.dtype.kind != "O":
        # what is missing does not even equal itself
        return bool((groups != groups).any())
    return any(map(_is_missing, groups.tolist()))


def _is_missing(one):
    try:
        return one is None or bool(one != one)
    except TypeError:
        # NA does not know whether it does
        return True

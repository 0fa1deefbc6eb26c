# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Groups of rows: who has which, what a row of them counts, and requests that must not be lost.

With groups a person is protected with all rows, whatever their number. Neighbours differ in the
rows of one group, in their number too; how many groups there are is public. A row counts as one
over the number of rows of its group. So whatever sum a statistic is, a group adds a mean of what
rows may add: the bound on what one row moves is that of a group, for groups of any size.
"""

import numpy as np

from skdp._rows.streams import RowStream
from skdp.exceptions import BudgetError
from skdp.privacy.books.spent import asks_for_groups

_DROPPED = (
    "{}, and fit got no groups: every row would be a group of its own. Pass groups= to fit. "
    "GridSearchCV, RandomizedSearchCV, cross_val_score and the other cross-validators of "
    "scikit-learn keep groups for the splits, and pass them to fit only after "
    "sklearn.set_config(enable_metadata_routing=True) and set_fit_request(groups=True). Nothing "
    "was charged, and no row was read."
)


def check_groups(estimator, groups):
    """Raise if somebody meant groups and a fit got none.

    Parameters
    ----------
    estimator : estimator
        Its shared budget and its request for metadata are read.
    groups : array-like or None
        What `fit` got.

    Raises
    ------
    BudgetError
        If the shared budget protects groups.
    ValueError
        If groups were asked for.
    """
    if groups is not None or not getattr(estimator, "_releases", True):
        return
    if getattr(estimator.budget, "unit", None) == "group":
        raise BudgetError(_DROPPED.format("the shared budget protects groups (unit='group')"))
    if asks_for_groups(estimator):
        raise ValueError(_DROPPED.format("set_fit_request(groups=True) asked for groups"))


def resolve_groups(groups, X):
    """Code the groups.

    Parameters
    ----------
    groups : array-like of shape (n_rows,) or None
        Identifier of the group that a row belongs to: numbers, or text. None: every row is a
        group of its own.
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        The rows; groups have to be in memory, and so have they.

    Returns
    -------
    public : tuple of (int, str)
        Number of groups, and what is protected: "group", or "row" without groups.
    codes : ndarray of shape (n_rows,), dtype int64
        Position of every row's group among the sorted identifiers; private. None without groups.

    Raises
    ------
    ValueError
        If `groups` is not one identifier a row.
    TypeError
        If there are groups, and X is read range by range.
    """
    n_rows = X.shape[0]
    if groups is None:
        return (n_rows, "row"), None
    if isinstance(X, RowStream):
        raise TypeError(
            "groups must be None for rows that are read range by range: how many rows a group has "
            "must be known before the first is read. Load the rows into memory."
        )
    try:
        groups = np.asarray(groups)
    except ValueError:
        raise ValueError(
            "groups must have one identifier for each row of X; got lists of several lengths."
        ) from None
    if groups.ndim != 1 or len(groups) != n_rows:
        raise ValueError(
            f"groups must have one identifier for each row of X, shape ({n_rows},); "
            f"got shape {groups.shape}."
        )
    if _has_nobody(groups):
        raise ValueError("groups must not have missing identifiers.")
    if groups.dtype.kind in "iu" and len(groups):
        least, most = int(groups.min()), int(groups.max())
        if most - least < 4 * len(groups):
            # whole numbers that lie close together need not be sorted; in short integers they may
            # be further apart than the largest of these
            wide = groups.astype(np.int64) if groups.dtype.kind == "i" else groups
            codes = (wide - wide.min()).astype(np.int64)
            places = np.cumsum(np.bincount(codes) > 0)
            return (int(places[-1]), "group"), places[codes] - 1
    try:
        found, codes = np.unique(groups, return_inverse=True)
    except TypeError:
        raise ValueError(
            "groups must have identifiers of one type that can be sorted; got several types."
        ) from None
    return (len(found), "group"), codes.reshape(-1).astype(np.int64)


def _has_nobody(groups):
    """Return whether there is None, NaN, NA or NaT."""
    if groups.dtype.kind != "O":
        # what is missing does not even equal itself
        return bool((groups != groups).any())
    return any(map(_is_nobody, groups.tolist()))


def _is_nobody(one):
    try:
        return one is None or bool(one != one)
    except TypeError:
        # NA does not know whether it does
        return True


#: what rows count is a whole number of parts of one: sums over up to 2^31 groups are exact
PARTS = 1 << 20


def shares(unit, codes):
    """Return what rows count: one over the number of rows of their group, in whole parts.

    Parameters
    ----------
    unit : {"row", "group"}
        What is protected.
    codes : ndarray of shape (n_rows,) or None
        Of the groups, from `resolve_groups`.

    Returns
    -------
    shares : ndarray of shape (n_rows,) or None
        Private; multiples of 1 / PARTS, with a sum of 1 over every group. None for 1 each.

    Notes
    -----
    What one over the number of rows leaves of the parts goes to the first rows of a group: what a
    row counts depends on the rows of its own group alone.
    """
    if unit == "row":
        return None
    sizes = np.bincount(codes)
    # by group and then by place: several times as fast as a stable sort of the groups
    order = np.sort(codes * len(codes) + np.arange(len(codes))) % len(codes)
    place = np.empty(len(codes), dtype=np.int64)
    place[order] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    parts, more = np.divmod(PARTS, sizes)
    return (parts[codes] + (place < more[codes])) / PARTS

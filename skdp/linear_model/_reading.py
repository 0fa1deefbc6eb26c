# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How a plan reads its rows: range by range as they come, or all of them in another order."""

from typing import Any, TypeVarTuple

from skdp._streams import RowStream

Arrays = TypeVarTuple("Arrays")


def check_reading(plan, solver, X):
    """Raise a TypeError if a plan needs rows in memory and X cannot be brought there.

    Parameters
    ----------
    plan, solver : Fit, str
        Plan of a mechanism, and what its solver is called.
    X : ndarray, CSR matrix or RowStream
        The rows.
    """
    if isinstance(X, RowStream) and not plan.streams and not X.is_mapped:
        raise TypeError(
            f"solver={solver!r} reads the rows in an order of its own, or all at once, so they "
            "must be in memory; got rows that are read chunk by chunk. All solvers but "
            "'localized', 'accelerated-one-pass', 'one-pass' and 'cvxpy' can do with these."
        )


def as_read(plan: Any, *arrays: *Arrays) -> tuple[*Arrays]:
    """Return rows, and what belongs to them, in the order in which a plan reads them.

    Parameters
    ----------
    plan : Fit
        Plan of a mechanism; some have a fixed public order.
    *arrays : ndarray, CSR matrix or RowStream
        Of as many rows each.

    Returns
    -------
    arrays : tuple
        Streams remain streams if the plan can do with them.
    """
    read: Any = arrays
    if not plan.streams:
        read = [part.whole() if isinstance(part, RowStream) else part for part in arrays]
    order = plan.order() if hasattr(plan, "order") else None
    read = read if order is None else [part[order] for part in read]
    return tuple(read)

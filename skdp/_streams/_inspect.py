# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""One pass over rows before a fit: whether they are usable, how many, with which labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skdp._streams._table import through


@dataclass(frozen=True)
class Facts:
    """What a pass over the rows has found.

    Parameters
    ----------
    n_rows, n_features, n_entries : int
        Numbers of rows, of features, and of entries that are stored.
    is_sparse : bool
        Whether rows are CSR.
    labels : ndarray or None
        The distinct targets, sorted; None if nobody asked for them.
    """

    n_rows: int = 0
    n_features: int = 0
    n_entries: int = 0
    is_sparse: bool = False
    labels: Any = None

    @classmethod
    def of(cls, X, y, with_labels):
        """Return the facts of one checked block."""
        labels = np.unique(y) if with_labels and y is not None else None
        is_sparse = sparse.issparse(X)
        entries = int(X.nnz if is_sparse else X.size)
        return cls(X.shape[0], X.shape[1], entries, is_sparse, labels)

    def plus(self, other):
        """Return the facts of these blocks and of those of `other`, which come after."""
        if not self.n_rows:
            return other
        if not other.n_rows:
            return self
        if self.is_sparse != other.is_sparse:
            raise ValueError("the chunks must all be sparse, or all be dense.")
        labels = self.labels
        if labels is not None:
            if _kind(labels) != _kind(other.labels):
                raise ValueError("the chunks of y must be labels of one type.")
            labels = np.unique(np.concatenate([labels, other.labels]))
        return Facts(
            self.n_rows + other.n_rows,
            self.n_features,
            self.n_entries + other.n_entries,
            self.is_sparse,
            labels,
        )


def _kind(labels):
    return "text" if labels.dtype.kind in "USO" else "number"


def facts_of(X, y, check, with_labels):
    """Go through streams once.

    Parameters
    ----------
    X, y : RowStream, RowStream or None
        Of one table.
    check : callable
        Raises if a block (X, y) is unusable, and returns it otherwise.
    with_labels : bool
        Whether the distinct targets are asked for.

    Returns
    -------
    facts : Facts
        About all rows; the table knows their number from then on.
    """
    table, look = X.table, Look(X.steps, None if y is None else y.steps, check, with_labels)
    per_block = getattr(table, "of_blocks", None)
    found = map(look, table.blocks()) if per_block is None else per_block(look)
    facts = Facts()
    for part in found:
        facts = facts.plus(part)
    if table.n_rows is not None and table.n_rows != facts.n_rows:
        raise ValueError(f"the chunks have {facts.n_rows} rows; n_rows is {table.n_rows}.")
    table.n_rows = facts.n_rows
    return facts


@dataclass(frozen=True)
class Look:
    """The facts of one block, wherever it is; parameters are those of `facts_of`."""

    rows: Any
    targets: Any
    check: Any
    with_labels: bool

    def __call__(self, block):
        """Return the facts of a block of the table."""
        y = through(self.targets, block) if self.targets else None
        X, y = self.check(through(self.rows, block), y)
        return Facts.of(X, y, self.with_labels)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows cut down to a public number of non-zeros."""

from functools import partial

import numpy as np
from scipy import sparse

from skdp._domains import tame
from skdp._queries._sums import chunk_rows
from skdp._streams import RowStream


def top_entries(X, sparsity):
    """Return rows that keep their largest entries, at most `sparsity` of them each.

    Parameters
    ----------
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        Never changed. Duplicates are added up, explicit zeros do not count.
    sparsity : int or None
        Public number of entries that a row may have; None for any.

    Returns
    -------
    X : ndarray or CSR array of shape (n_rows, n_features)
        Each row by itself: the entries of largest magnitude, of equal ones those of the
        lowest columns. X itself, if `sparsity` is None or at least n_features, or no sparse
        row has to lose anything. A row that is not finite stays so, for whoever admits it.
    """
    n_rows, n_features = X.shape
    if sparsity is None or sparsity >= n_features:
        return X
    if isinstance(X, RowStream):
        return X.map(partial(top_entries, sparsity=sparsity))
    is_sparse = sparse.issparse(X)
    step = chunk_rows(X)[1]
    starts = range(0, n_rows, step)
    cut = _cut_sparse if is_sparse else _cut_dense
    parts = [cut(X, i, min(i + step, n_rows), sparsity) for i in starts]
    if not is_sparse:
        return np.concatenate(parts)
    if all(np.may_share_memory(part.data, X.data) or not part.nnz for part in parts):
        return X
    return sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0]


def _cut_dense(X, start, stop, sparsity):
    part, broken = tame(X[start:stop])
    # stable: of equal entries the first ones come first
    order = np.argsort(-np.abs(part), axis=1, kind="stable")[:, :sparsity]
    kept = np.zeros_like(part)
    np.put_along_axis(kept, order, np.take_along_axis(part, order, axis=1), axis=1)
    kept[broken, 0] = np.nan
    return kept


def _cut_sparse(X, start, stop, sparsity):
    low, high = X.indptr[start], X.indptr[stop]
    pieces = (X.data[low:high], X.indices[low:high], X.indptr[start : stop + 1] - low)
    part, broken = tame(sparse.csr_array(pieces, shape=(stop - start, X.shape[1])))
    lengths = np.diff(part.indptr)
    if not broken.any() and (lengths <= sparsity).all():
        return part
    row = np.repeat(np.arange(stop - start), lengths)
    # a row that is not finite holds nothing but zeros by now, and keeps one to show it
    kept = np.flatnonzero(_is_kept(part, row, sparsity) & ((part.data != 0) | broken[row]))
    data, columns, of = part.data[kept], part.indices[kept], row[kept]
    data = np.where(broken[of], np.nan, data)
    ends = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=stop - start))])
    return sparse.csr_array((data, columns, ends), shape=part.shape)


def _is_kept(X, row, sparsity):
    """Return which entries of canonical rows are among the largest of their row."""
    magnitude = np.abs(X.data)
    level = _row_levels(magnitude, X.indptr, sparsity)[row]
    kept = magnitude > level
    # what is left of the number goes to entries on the level, in the order of the columns
    tied = np.flatnonzero(magnitude == level)
    of = row[tied]
    n_above = np.bincount(row[kept], minlength=X.shape[0])
    n_tied = np.bincount(of, minlength=X.shape[0])
    rank = np.arange(len(tied)) - np.repeat(np.cumsum(n_tied) - n_tied, n_tied)
    kept[tied] = rank < (sparsity - n_above)[of]
    return kept


def _row_levels(magnitude, starts, sparsity):
    """Return of every row the magnitude of rank `sparsity`; -1 if it has no more entries.

    Nothing is sorted: rows of about the same length are padded to one, and the level of each
    is selected. It depends on nothing but the row.
    """
    lengths = np.diff(starts)
    levels = np.full(len(lengths), -1.0)
    longer = np.flatnonzero(lengths > sparsity)
    doubled = np.ceil(np.log2(lengths[longer]))
    for power in np.unique(doubled):
        chosen, width = longer[doubled == power], 1 << int(power)
        offset = np.arange(width)
        found = magnitude[np.minimum(starts[chosen, None] + offset, len(magnitude) - 1)]
        found[offset >= lengths[chosen, None]] = -1.0
        levels[chosen] = np.partition(found, width - sparsity, axis=1)[:, width - sparsity]
    return levels

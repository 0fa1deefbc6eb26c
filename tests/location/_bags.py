# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sparse rows for the tests of means: bags of words, and the hardest blocks."""

import numpy as np
from scipy import sparse


def bags_of_words(n_rows, n_features, n_words, seed=0, exponent=1.1):
    """Return rows of counts of words that are drawn by Zipf's law, as a CSR array."""
    rng = np.random.default_rng(seed)
    weights = np.arange(1, n_features + 1) ** -exponent
    words = rng.choice(n_features, size=n_rows * n_words, p=weights / weights.sum())
    rows = np.repeat(np.arange(n_rows), n_words)
    return sparse.csr_array((np.ones(len(words)), (rows, words)), shape=(n_rows, n_features))


def blocks(n_rows, n_features, sparsity, n_blocks, seed=0):
    """Return unit rows on disjoint supports, whose mean has the largest l1 norm there is."""
    rng = np.random.default_rng(seed)
    columns = rng.choice(n_features, size=(n_blocks, sparsity), replace=False)
    signs = rng.choice([-1.0, 1.0], size=(n_blocks, sparsity)) / np.sqrt(sparsity)
    which = np.arange(n_rows) % n_blocks
    starts = np.arange(n_rows + 1) * sparsity
    return sparse.csr_array(
        (signs[which].ravel(), columns[which].ravel(), starts), shape=(n_rows, n_features)
    )


def admitted_mean(X, data_norm=1.0, sparsity=None, nonnegative=False):
    """Return the mean of rows that were cut and clipped, row by row."""
    total = np.zeros(X.shape[1])
    for row in np.asarray(X.todense() if sparse.issparse(X) else X, dtype=np.float64):
        row = np.maximum(row, 0) if nonnegative else row
        order = sorted(range(len(row)), key=lambda j, row=row: (-abs(row[j]), j))
        kept = np.zeros_like(row)
        kept[order[:sparsity]] = row[order[:sparsity]]
        total += kept * data_norm / max(np.linalg.norm(kept), data_norm)
    return total / X.shape[0]

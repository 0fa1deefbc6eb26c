# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Measurements by a part of a randomised Walsh-Hadamard transform."""

from functools import cached_property, lru_cache

import numpy as np
from scipy import sparse
from scipy.linalg import hadamard

from skdp._recovery._measurements import Measurement, public_words

# bits of the index that one product with a small Hadamard matrix transforms
_BITS = 6
# numbers of explicit columns at once, and of a row that is transformed as a whole
_AT_ONCE = 1 << 22


def walsh_hadamard(x):
    """Return the Walsh-Hadamard transform, without a factor, of a vector of length 2^k.

    Parameters
    ----------
    x : ndarray of shape (2^k,)
        Never changed.

    Returns
    -------
    transformed : ndarray of shape (2^k,)
        In time ``2^k k``. Twice the transform is ``2^k x``.
    """
    left = x.size.bit_length() - 1
    while left > 0:
        bits = min(left, _BITS)
        # the lowest bits are transformed and become the highest: after all bits of the
        # index had their turn, its order is what it was
        x = (x.reshape(-1, 1 << bits) @ _small(bits)).T.ravel()
        left -= bits
    return x


@lru_cache(maxsize=_BITS)
def _small(bits):
    return hadamard(1 << bits, dtype=np.float64)


class HadamardMeasurement(Measurement):
    """Rows of the Hadamard matrix, chosen at random, columns multiplied by random signs.

    Notes
    -----
    Features are padded with zeros to a power of two, D. All columns have norm 1, and without
    the padding A A' would be D/m times the identity; so no vector grows by more than
    ``sqrt(D / m)``.
    """

    def __init__(self, n_measurements, n_features):
        super().__init__(n_measurements, n_features)
        self.padded = 1 << (n_features - 1).bit_length()
        self.stretch = self.norm = float(np.sqrt(self.padded / n_measurements))
        words = public_words("hadamard", self.shape)
        flips = words.words(n_features) & np.uint64(1)
        # divided by the norm of a column, so that both products need no other factor
        self._signs = np.where(flips, 1.0, -1.0) / np.sqrt(n_measurements)
        order = np.argpartition(words.words(self.padded), n_measurements - 1)
        self._chosen = np.sort(order[:n_measurements])

    def forward(self, z):
        """Return A z, for z of shape (n_features,)."""
        wide = np.zeros(self.padded)
        np.multiply(z, self._signs, out=wide[: self.shape[1]])
        return walsh_hadamard(wide)[self._chosen]

    def backward(self, r):
        """Return A' r, for r of shape (n_measurements,)."""
        wide = np.zeros(self.padded)
        wide[self._chosen] = r
        return walsh_hadamard(wide)[: self.shape[1]] * self._signs

    @cached_property
    def _tables(self):
        # an entry of the matrix is a product: of the low bits' matrix and the high bits'
        bits = self.padded.bit_length() - 1
        low, high = bits // 2, bits - bits // 2
        low_rows, high_rows = self._chosen & ((1 << low) - 1), self._chosen >> low
        first, second = (hadamard(1 << part, dtype=np.int8) for part in (low, high))
        return low, first[:, low_rows], second[:, high_rows]

    def _columns(self, index):
        """Return columns of A as rows, an ndarray of shape (len(index), n_measurements)."""
        low, first, second = self._tables
        signs = first[index & ((1 << low) - 1)] * second[index >> low]
        return signs * self._signs[index, None]

    def sketches(self, X):
        """Return the measurements of rows; as for any measurement, row by row."""
        m, d = self.shape
        counts = np.diff(X.indptr).astype(np.int64)
        # which way a row takes depends on the row: a full one is transformed as a whole
        full = counts * m > _AT_ONCE
        found = np.empty((X.shape[0], m))
        for i in np.flatnonzero(full):
            wide, part = np.zeros(d), slice(X.indptr[i], X.indptr[i + 1])
            np.add.at(wide, X.indices[part], X.data[part])
            found[i] = self.forward(wide)
        rest = np.flatnonzero(~full)
        group = np.cumsum(counts[rest]) // (_AT_ONCE // m + 1)
        for rows in np.split(rest, np.flatnonzero(np.diff(group)) + 1):
            part = X[rows]
            used, place = np.unique(part.indices, return_inverse=True)
            narrow = sparse.csr_array((part.data, place, part.indptr), shape=(len(rows), len(used)))
            found[rows] = narrow @ self._columns(used)
        return found

    def explicit(self):
        """Return A itself, an ndarray."""
        return np.ascontiguousarray(self._columns(np.arange(self.shape[1])).T)

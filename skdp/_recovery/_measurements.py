# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Public measurement matrices: few numbers of which a sparse vector can be recovered.

A matrix is a function of its kind and shape, the same for everybody and for every fit. It is
not a secret: what it measures is private for every matrix, because each row's measurements
are clipped (`SketchSum`).
"""

from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from skdp.privacy._bits import SeededBits

#: non-zeros in a column of a sparse matrix of signs
NONZEROS = 8
# numbers drawn at once
_BLOCK = 1 << 20
_POWER_STEPS = 25


def public_words(kind, shape):
    """Return the source of the public words that a matrix is made of."""
    return SeededBits(0, f"measurement matrix, {kind}, {shape[0]} x {shape[1]}")


class Measurement:
    """A public matrix A of shape (n_measurements, n_features) with columns of norm 1.

    Parameters
    ----------
    n_measurements, n_features : int
        Shape; there are at most as many measurements as features.
    """

    def __init__(self, n_measurements, n_features):
        self.shape = (n_measurements, n_features)

    #: largest factor by which it stretches a vector, where that is known beforehand
    stretch = np.inf
    #: most measurements that an entry of a row has a part in
    spread = np.iinfo(np.int32).max

    def forward(self, z):
        """Return A z, for z of shape (n_features,)."""
        return self.columns.T @ z

    def backward(self, r):
        """Return A' r, for r of shape (n_measurements,)."""
        return self.columns @ r

    def sketches(self, X):
        """Return the measurements of rows.

        Parameters
        ----------
        X : CSR array of shape (n_rows, n_features)
            In float64.

        Returns
        -------
        sketches : ndarray or CSR array of shape (n_rows, n_measurements)
            The floats of a row depend on nothing but the row: its entries are added up in
            the order in which they are stored.
        """
        return X @ self.columns

    def explicit(self):
        """Return A itself, an ndarray or a sparse array."""
        return self.columns.T

    @cached_property
    def norm(self):
        """Spectral norm of A, or slightly more: an estimate, good enough for step sizes."""
        v = np.cos(np.arange(self.shape[0], dtype=np.float64))
        growth = 1.0
        for _ in range(_POWER_STEPS):
            v = self.forward(self.backward(v / np.linalg.norm(v)))
            growth = np.linalg.norm(v)
        return 1.05 * float(np.sqrt(growth))


class GaussianMeasurement(Measurement):
    """Columns that point into uniformly random directions: Gaussian ones, of norm 1."""

    @cached_property
    def columns(self):
        """The transposed matrix, an ndarray of shape (n_features, n_measurements)."""
        m, d = self.shape
        words = public_words("gaussian", self.shape)
        columns, step = np.empty((d, m)), max(1, _BLOCK // m)
        for start in range(0, d, step):
            part = columns[start : start + step]
            uniform = ((words.words(part.size) >> np.uint64(11)) + 0.5) * 2.0**-53
            part[:] = ndtri(uniform).reshape(part.shape)
            part /= np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-300)
        return columns


class SparseSignMeasurement(Measurement):
    """Columns with eight entries of one magnitude and random signs, at random places."""

    spread = NONZEROS

    @cached_property
    def columns(self):
        """The transposed matrix, a CSR array of shape (n_features, n_measurements)."""
        m, d = self.shape
        k = min(NONZEROS, m)
        words = public_words("sparse-sign", self.shape)
        # one entry in each of k parts of the measurements: no two fall on the same
        edges = np.arange(k + 1) * m // k
        places, values = np.empty((d, k), np.int64), np.empty((d, k))
        step = max(1, _BLOCK // k)
        for start in range(0, d, step):
            stop = min(start + step, d)
            drawn = words.words((stop - start) * k).reshape(-1, k)
            uniform = (drawn >> np.uint64(11)) * 2.0**-53
            places[start:stop] = edges[:-1] + uniform * np.diff(edges)
            values[start:stop] = np.where(drawn & np.uint64(1), 1.0, -1.0) / np.sqrt(k)
        parts = (values.ravel(), places.ravel(), np.arange(d + 1) * k)
        return sparse.csr_array(parts, shape=(d, m))

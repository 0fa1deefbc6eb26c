# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Many reports of one vector, and how far their moments are from what they should be."""

import numpy as np

from skdp.privacy.kernel.samplers import Bits, SeededBits


class GivenBits(Bits):
    """Words that a test chose, and seeded ones after them."""

    seeded, origin = True, "a test"

    def __init__(self, words, seed=0):
        super().__init__()
        self._given, self._then = list(words), SeededBits(seed)

    def _draw(self, size):
        head, self._given = self._given[:size], self._given[size:]
        head = np.array(head, dtype=np.uint64)
        return np.concatenate([head, self._then.words(size - head.size)])


def vector_of(n_dims, norm=1.0, seed=0):
    """Return a vector of a norm whose entries differ."""
    vector = np.random.default_rng(seed).standard_normal(n_dims)
    return norm * vector / np.linalg.norm(vector)


def reports_of(randomiser, vector, n_rows, seed=0):
    """Return `n_rows` reports of one vector."""
    return randomiser.report(np.tile(vector, (n_rows, 1)), SeededBits(seed))


def rotated_to(vector):
    """Return an orthogonal matrix whose first row is the direction of a vector."""
    u = vector / np.linalg.norm(vector)
    basis = np.linalg.qr(np.column_stack([u, np.eye(u.size)]))[0].T
    basis[0] = u
    return basis


def worst_bias(reports, mean):
    """Return the largest distance of a mean from what it should be, in standard errors."""
    error = np.std(reports, axis=0) / np.sqrt(len(reports))
    return np.max(np.abs(reports.mean(axis=0) - mean) / np.maximum(error, 1e-12))


def variances_of(reports, vector):
    """Return the variances along a vector and across it, those across averaged."""
    turned = np.var(reports @ rotated_to(vector).T, axis=0)
    return turned[0], turned[1:].mean() if turned.size > 1 else None

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private rows that belong to clients, who own any number of them each."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skdp._queries._linear_rows import LinearRows, whole_chunk

# numbers of one stack of clients, at most, unless one client alone has more
_STACK_ENTRIES = 1 << 16
# clients of one chunk; where chunks begin depends on public numbers alone
_FEWEST, _MOST = 32, 512


@dataclass(frozen=True)
class ClientStack:
    """Clients of one size, each with as many rows.

    Parameters
    ----------
    place : ndarray of shape (n_clients,)
        Places of these clients among those of the chunk that are there.
    rows : ndarray of shape (n_clients, n_rows, size)
        Rows in the unit ball, the constant feature included.
    target, weight : ndarray of shape (n_clients, n_rows)
        Targets, and one over the client's number of rows that count; 0 for null rows.
    columns : ndarray of shape (size,) or None
        Which columns the rows have; None for all.
    kept, key : dict, int or None
        Where products are kept for the next rounds, and under which name; None keeps nothing.
    """

    place: Any
    rows: Any
    target: Any
    weight: Any
    columns: Any
    kept: Any
    key: Any

    def products(self):
        """Return the inner products of the rows of every client with each other."""
        if self.key in self.kept:
            return self.kept[self.key]
        made = np.matmul(self.rows, self.rows.transpose(0, 2, 1))
        if self.key is not None:
            self.kept[self.key] = made
        return made


class ClientChunk:
    """Some clients, in order."""

    def __init__(self, owner, positions):
        self._owner = owner
        # a client without any row is not there
        self._positions = positions[owner.sizes(positions) > 0]

    @property
    def n_clients(self):
        """Number of clients that are there."""
        return len(self._positions)

    def stacks(self):
        """Yield every client once, in a `ClientStack`."""
        sizes = self._owner.sizes(self._positions)
        for size in np.unique(sizes):
            places = np.flatnonzero(sizes == size)
            width = self._owner.stack_width(size)
            for start in range(0, len(places), width):
                place = places[start : start + width]
                yield self._owner.stack(place, self._positions[place], size)


class ClientRows:
    """Rows of a linear model, sorted by the client that owns them.

    Parameters
    ----------
    X, target, null : ndarray or CSR matrix, ndarray, ndarray
        As for `LinearRows`.
    clients : ndarray of shape (n_rows,), dtype int64
        Position of the client that owns the row. Private, but for how many clients there are.
    n_clients : int
        Public. A client may have no row.
    ball, intercept, n_threads : L2Ball, float, int
        As for `LinearRows`.

    Notes
    -----
    What is computed for one client is the same to the last bit whatever rows others have:
    products are made for every client of a stack on its own.
    """

    def __init__(self, X, target, null, clients, n_clients, ball, intercept, n_threads=1):
        if (clients[1:] < clients[:-1]).any():
            order = np.argsort(clients, kind="stable")
            X, target, null, clients = X[order], target[order], null[order], clients[order]
        rows = LinearRows(X, target, null, ball, intercept)
        self._whole = whole_chunk(X, rows.chunks)
        self._starts = np.searchsorted(clients, np.arange(n_clients + 1))
        self._n_clients, self.n_threads = n_clients, n_threads
        self._sparse, self._kept = sparse.issparse(X), {}
        self._step = int(np.clip(n_clients // 32, _FEWEST, _MOST))
        self._chunked(np.arange(n_clients), 1.0)

    def _chunked(self, positions, rate):
        width = max(1, int(self._step / 2 / rate)) if rate < 1 else self._step
        cuts = np.searchsorted(positions, np.arange(width, self._n_clients, width))
        self.chunks = [ClientChunk(self, part) for part in np.split(positions, cuts)]
        self.n_rows = len(positions)
        self.n_entries = int(self.sizes(positions).sum()) * self._whole.X.shape[1]

    def batch(self, positions, rate):
        """Return the clients at sorted positions, drawn with a public probability each."""
        chosen = copy.copy(self)
        chosen._chunked(positions, rate)
        return chosen

    def part(self, start, stop):
        """Return the clients of a range of positions."""
        chosen = copy.copy(self)
        chosen._chunked(np.arange(start, stop), 1.0)
        return chosen

    def sizes(self, positions):
        """Return how many rows the clients at some positions own."""
        return self._starts[positions + 1] - self._starts[positions]

    def stack_width(self, size):
        """Return how many clients of a size are stacked."""
        # sparse ones alone: each has columns of its own
        entries = int(size) * (self._whole.X.shape[1] + 1)
        return 1 if self._sparse else max(1, _STACK_ENTRIES // entries)

    def stack(self, place, positions, size):
        """Return clients of one size as a `ClientStack`."""
        if len(positions) == 1:
            start = int(self._starts[positions[0]])
            index, key = slice(start, start + int(size)), start
        else:
            index, key = (self._starts[positions][:, None] + np.arange(size)).ravel(), None
        part = self._whole.taken(index)
        rows, columns = part.explicit(), None
        if sparse.issparse(rows):
            columns, inverse = np.unique(rows.indices, return_inverse=True)
            shape = (rows.shape[0], len(columns))
            rows = sparse.csr_array((rows.data, inverse, rows.indptr), shape=shape).toarray()
        counts = np.isfinite(part.norm).reshape(len(positions), size)
        weight = counts / np.maximum(counts.sum(axis=1), 1)[:, None]
        stacked = rows.reshape(len(positions), size, rows.shape[1])
        target = part.target.reshape(weight.shape)
        return ClientStack(place, stacked, target, weight, columns, self._kept, key)

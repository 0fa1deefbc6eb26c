# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Ways to hand rows to a fit without handing over an array in memory."""

from itertools import pairwise

import numpy as np
from sklearn.base import clone

from skdp.io import stream_chunks

__all__ = ["OnDisk", "assert_same_fit", "chunked", "odd_cuts", "read_from_chunks"]


class OnDisk:
    """An array as HDF5 and Zarr have it: a shape, and slices; `reads` has what was asked for."""

    def __init__(self, array, chunks=None):
        self._array, self.reads = array, []
        self.shape, self.dtype = array.shape, array.dtype
        if chunks is not None:
            self.chunks = chunks

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        self.reads.append((rows.start, rows.stop))
        return self._array[rows].copy()


def odd_cuts(n_rows):
    """Return where chunks of odd lengths end: empty ones, one row, nearly all."""
    return [0, 0, 1, 8, min(60, n_rows), min(60, n_rows), max(n_rows - 1, 60), n_rows]


def chunked(X, y=None, cuts=None, groups=None):
    """Return streams of the rows of arrays, cut at odd places; with groups, keywords of `fit`."""
    cuts = odd_cuts(X.shape[0]) if cuts is None else cuts
    ranges = [slice(a, b) for a, b in pairwise(cuts)]
    if groups is not None:
        targets = [None] * len(ranges) if y is None else [y[rows] for rows in ranges]
        chunks = zip(
            [X[rows] for rows in ranges], targets, (groups[r] for r in ranges), strict=True
        )
        names = ("X", "groups") if y is None else ("X", "y", "groups")
        return dict(zip(names, stream_chunks(list(chunks)), strict=True))
    if y is None:
        return (stream_chunks([X[rows] for rows in ranges]),)
    return stream_chunks([(X[rows], y[rows]) for rows in ranges])


def assert_same_fit(model, memory, *streams):
    """Assert that fits to streams are the fit to arrays: to the last bit, and in what they say.

    Each is a tuple (X, y), or a dict of keywords.
    """

    def fitted(given):
        return clone(model).fit(**given) if isinstance(given, dict) else clone(model).fit(*given)

    inside = fitted(memory)
    for stream in streams:
        outside = fitted(stream)
        for name, value in vars(inside).items():
            if not name.endswith("_") or name.startswith("_") or name == "ledger_":
                continue
            found = getattr(outside, name)
            np.testing.assert_array_equal(found, value, err_msg=name, strict=True)
        assert str(outside.ledger_) == str(inside.ledger_)
        assert vars(outside).keys() == vars(inside).keys()
    return inside


def read_from_chunks(model):
    """Return an unfitted copy of a model that reads rows, targets and groups from chunks."""

    class FromChunks(type(model)):
        def fit(self, X, y=None, *, groups=None):
            return super().fit(**chunked(np.asarray(X), y, groups=np.asarray(groups)))

    # seeds of noise go by the name
    FromChunks.__name__ = type(model).__name__
    return FromChunks(**model.get_params(deep=False))

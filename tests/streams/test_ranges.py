# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A range of rows is the same to the last bit wherever the chunks end; copies hold no rows."""

import copy
import pickle
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import skdp._rows.base as sums
from skdp import DPLogisticRegression, DPStandardScaler
from skdp._quantiles import RankRows
from skdp._rows.base import LazyChunks
from skdp._rows.dask import opened
from skdp._rows.streams import RowStream, facts_of, rows_of
from skdp.io import stream_arrays, stream_chunks
from tests.streams._ways import OnDisk, chunked

N_ROWS = 9000  # of which a chunk of sums has 8192
X = np.random.default_rng(0).normal(size=(N_ROWS, 5))
Y = (X[:, 0] > 0).astype(int)
CUTS = ([0, N_ROWS], [0, 1, N_ROWS], [0, 8191, 8193, N_ROWS], [0, 3000, 3001, 7000, N_ROWS])
LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "frames": lambda rows: pd.DataFrame(np.asfortranarray(rows)),
    "by turns": lambda rows: np.array(rows, order="CF"[len(rows) % 2]),
}
MODEL = DPLogisticRegression(solver="gd", max_iter=2, data_norm=3.0, random_state=0)


def partials(monkeypatch, model, *data):
    """Return the sums of a fit before anything is rounded to a grid."""
    found, real = [], sums.added_up

    def recorded(partial, block):
        found.append(real(partial, block))
        return found[-1].copy()

    with monkeypatch.context() as patch:
        patch.setattr(sums, "added_up", recorded)
        model.fit(*data)
    return np.concatenate(found)


@pytest.mark.covering
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_rows", [N_ROWS, 3001])
def test_partial_sums_are_those_in_memory_in_any_layout(monkeypatch, layout, n_rows):
    for model, data in ((MODEL, (X, Y)), (DPStandardScaler(random_state=0), (X,))):
        memory = [part[:n_rows] for part in data]
        expected = partials(monkeypatch, model, *memory)
        frame = partials(monkeypatch, model, np.asfortranarray(memory[0]), *memory[1:])
        np.testing.assert_array_equal(frame, expected)
        for cuts in CUTS:
            ranges = [slice(a, b) for a, b in pairwise(cuts)]
            chunks = [(LAYOUTS[layout](memory[0][rows]), *(y[rows] for y in memory[1:]))
                      for rows in ranges if rows.start < n_rows]  # fmt: skip
            given = stream_chunks([chunk if len(chunk) > 1 else chunk[0] for chunk in chunks])
            given = given if isinstance(given, tuple) else (given,)
            found = partials(monkeypatch, model, *given)
            np.testing.assert_array_equal(found, expected, err_msg=str(cuts))


def generated():
    for start in range(0, N_ROWS, 1000):
        yield X[start : start + 1000], Y[start : start + 1000]


def test_copies_and_pickles_begin_anew_and_hold_no_rows():
    rows, _ = stream_chunks(generated)
    assert rows.shape == X.shape
    expected = rows.read(100, 4200)
    for made in (copy.deepcopy(rows), pickle.loads(pickle.dumps(rows))):
        np.testing.assert_array_equal(made.read(100, 4200), expected)
    assert X[4000].tobytes() not in pickle.dumps(rows)


def test_a_fit_leaves_no_rows_and_no_open_iterator_in_the_streams():
    alive, ended = [], []

    def chunks():
        for start in range(0, N_ROWS, 1000):
            alive.append(weakref.ref(part := X[start : start + 1000].copy()))
            yield part, Y[start : start + 1000]
            del part
        ended.append(None)

    streams = stream_chunks(chunks)
    MODEL.fit(*streams)
    assert ended
    assert not any(part() is not None for part in alive)
    table = streams[0].table
    assert table._last is table._rest is table._source is None
    disk = stream_arrays(OnDisk(X, (1000, 5)), OnDisk(Y))
    MODEL.fit(*disk)
    assert disk[0].table._last is disk[0].table._kept is None


def test_a_source_that_fails_once_can_be_read_again():
    fails = []

    def chunks():
        if fails:
            raise OSError(fails.pop())
        yield from generated()

    streams = stream_chunks(chunks)
    assert streams[0].shape == X.shape
    fails.append("no connection")
    with pytest.raises(OSError, match="no connection"):
        streams[0].read(0, 10)
    np.testing.assert_array_equal(streams[0].read(0, 10), X[:10])


def test_wide_rows_with_targets_in_memory_are_read_a_few_at_a_time():
    wide = stream_arrays(OnDisk(np.zeros((100, 1 << 20), dtype=np.int8)))
    rows, _ = opened(wide, np.zeros(100))
    assert rows.table.width == 8


def test_streams_without_rows_have_a_shape():
    rows, labels = chunked(X[:0], Y[:0], [0, 0])
    assert rows.shape == (0, 0)
    assert labels.shape == (0,)
    assert isinstance(rows, RowStream)


def test_ranks_and_parts_of_many_ranges_are_those_in_memory():
    rows, labels = chunked(X, Y, CUTS[-1])
    stream, _ = opened(rows, labels)
    stream.facts = facts_of(stream, None, lambda A, y: (A, y), with_labels=False)
    bounds = np.full(5, -2.0), np.full(5, 2.0)
    found = RankRows(stream, *bounds).positions(3)
    np.testing.assert_array_equal(found, RankRows(X, *bounds).positions(3))
    chunks = LazyChunks.cut(stream.table, 1000, (rows_of,)).between(1500, 4700)
    np.testing.assert_array_equal(np.concatenate(list(chunks)), X[1500:4700])


def test_threads_that_share_a_stream_get_the_rows_that_they_asked_for():
    def slowly():
        for block in generated():
            # others have their turn
            time.sleep(1e-4)
            yield block

    rows, _ = stream_chunks(slowly)
    starts = range(0, 8000, 37)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(rows.read, starts, [start + 700 for start in starts]))
    for start, part in zip(starts, found, strict=True):
        np.testing.assert_array_equal(part, X[start : start + 700])

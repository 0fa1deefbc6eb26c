# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a row outside memory can do to a fit is what it can do in memory; memory stays small."""

import json
import pickle
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest

import skdp._rows.linear as linear_rows
from skdp import DPLogisticRegression, solvers
from skdp._rows.base import CHUNKS_PER_BLOCK, LazyChunks
from skdp._rows.streams import rows_of
from skdp.privacy import gdp_mu
from tests import _audit
from tests._neighbours import worst_pairs
from tests.streams._ways import chunked

EPSILON, DELTA = 2.0, 1e-5
MODEL = DPLogisticRegression(
    EPSILON, DELTA, solver=solvers.GD(clipping_norm=0.1, step_size=1e-06), classes=(0, 1),
    max_iter=5, random_state=0,
)  # fmt: skip


def loss(adjacency, streamed):
    """Return the largest coupled mu over worst pairs, relative to the claim."""
    model = MODEL.set_params(adjacency=adjacency)

    def fit(rows):
        model.fit(*(chunked(rows.X, rows.labels(), [0, 3, 12]) if streamed
                    else (rows.X, rows.labels())))  # fmt: skip

    pairs = worst_pairs(12, 3, 2, adjacency, model.data_norm)
    return max(_audit.coupled_mu(fit, *pair) for pair in pairs) / gdp_mu(EPSILON, DELTA)


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_neighbouring_streams_are_as_far_apart_as_neighbouring_arrays(adjacency):
    outside = loss(adjacency, streamed=True)
    assert outside == loss(adjacency, streamed=False)
    assert 0.999 <= outside <= 1.0


def test_rows_of_a_stream_that_are_not_clipped_are_caught(monkeypatch):
    real = linear_rows.LinearAdmission.__call__

    def unclipped(self, block):
        made = real(self, block)
        if self.wide:  # of a stream alone
            made.factor[:], made.norm[:] = 1.0, 1e-100
        return made

    monkeypatch.setattr(linear_rows.LinearAdmission, "__call__", unclipped)
    assert 0.999 <= loss("replace-one", streamed=False) <= 1.0
    assert loss("replace-one", streamed=True) > 1.5


def test_labels_outside_the_public_set_that_count_are_caught(monkeypatch):
    real = linear_rows.LinearAdmission.__call__

    def counted(self, block):
        X, target, null = block
        return real(replace(self), (X, target, np.zeros_like(null)))

    monkeypatch.setattr(linear_rows.LinearAdmission, "__call__", counted)
    assert loss("zero-out", streamed=True) > 1.01


def sums(cuts):
    """Return a statistic, before its noise, of rows of which sums round."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    with _audit.recorded() as additions:
        DPLogisticRegression(solver="gd", max_iter=1, classes=[0, 1], random_state=0).fit(
            *chunked(X, (X[:, 0] > 0).astype(int), cuts)
        )
    return additions[0].statistic


def total(cuts):
    """Return the sum of rows, made of a partial sum for each range that is read."""
    rows, _ = chunked(np.random.default_rng(0).normal(size=(20_000, 3)), np.zeros(20_000), cuts)
    assert rows.shape == (20_000, 3)
    ranges = LazyChunks.cut(rows.table, 8192, (lambda block: block[0].sum(axis=0),))
    return sum(ranges, start=np.zeros(3))


CUTS = ([0, 20_000], [0, 1, 20_000], [0, 5000, 13_333, 20_000])


def test_sums_do_not_depend_on_where_chunks_end():
    for cuts in CUTS[1:]:
        np.testing.assert_array_equal(total(cuts), total(CUTS[0]))
        np.testing.assert_array_equal(sums(cuts), sums(CUTS[0]))


def test_ranges_that_follow_the_chunks_are_caught(monkeypatch):
    """Then where a row of text ends moves what the others are rounded with."""

    def as_they_come(cls, table, step, make):
        ends = np.cumsum([X.shape[0] for X, _ in table.blocks()]).tolist()
        return cls(table, list(zip([0, *ends], ends, strict=False)), make)

    monkeypatch.setattr(LazyChunks, "cut", classmethod(as_they_come))
    assert any((total(cuts) != total(CUTS[0])).any() for cuts in CUTS[1:])


def test_nothing_of_the_rows_travels_with_chunks_to_other_processes():
    rows, _ = chunked(np.full((3000, 3), 918273.0), np.arange(3000))
    assert rows.read(0, 10).shape == (10, 3)
    assert rows.table.count() == 3000
    made = pickle.dumps(LazyChunks.cut(rows.table, 1000, (rows_of,)))
    assert len(made) < 1000
    assert np.float64(918273.0).tobytes() not in made
    rows.table.close()
    assert rows.table._last is rows.table._rest is rows.table._source is None


GENERATED = """
import json, resource, sys
import numpy as np
from skdp import DPLogisticRegression
from skdp.io import stream_chunks

def chunks(n_rows):
    for start in range(0, n_rows, 50_000):
        position = np.arange(start, start + 50_000, dtype=np.uint32)[:, None]
        X = (position * (np.arange(20, dtype=np.uint32) + 7) * np.uint32(0x9E3779B1)).view(np.int32)
        X = X.astype(np.float64) / 2**31
        yield X, X[:, 0] > 0

def peak(n_rows):
    model = DPLogisticRegression(max_iter=2, solver="gd", classes=[False, True], data_norm=4.0)
    model.fit(*stream_chunks(lambda: chunks(n_rows)))
    scale = 1 if sys.platform == "darwin" else 1024
    return scale * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

print(json.dumps([peak(n_rows) for n_rows in (200_000, int(sys.argv[1]))]))
"""


@pytest.mark.parametrize(
    "n_rows",
    [
        pytest.param(1_000_000, marks=pytest.mark.full),
        pytest.param(5_000_000, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_memory_does_not_grow_with_the_rows(n_rows):
    """What 200,000 rows need is enough for any number: a tenth of what they would take up."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(GENERATED), str(n_rows)],
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    few, many = json.loads(done.stdout)
    assert many - few < n_rows * 20 * 8 / 10
    assert few > CHUNKS_PER_BLOCK * 8192 * 20 * 8

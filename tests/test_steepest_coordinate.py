# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The scores of a vertex keep the spread that they state, and the draw its exact law."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse, stats

from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp.privacy import Curator, ExponentialMechanism
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from skdp.privacy.kernel.samplers import SeededBits
from skdp.solvers.frank_wolfe import SteepestCoordinate
from tests._neighbours import (
    ADJACENCIES,
    Rows,
    as_dense,
    as_layout,
    neighbours,
    on_examples,
    rows_in_ball,
)
from tests.linear_model._vertices import law
from tests.test_sensitivity import admit, make_coef

LOSSES = {
    "binary": LogisticLoss(), "softmax": SoftmaxLoss(3), "hinge": HingeLoss(1).smoothed(0.1),
}  # fmt: skip
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def reach(adjacency, clip):
    return clip if adjacency == "zero-out" else 2 * clip


def naive_scores(rows, loss, coef, clip, intercept):
    """Return the sum of gradients, each one formed, clipped in its largest entry."""
    total = np.zeros(coef.shape)
    for x, code, null in zip(as_dense(rows.X), rows.codes, rows.null, strict=True):
        if null or not np.isfinite(x).all():
            continue
        x = x / max(np.abs(x).max(), 1.0)
        x = x / max(np.linalg.norm(x), 1.0)
        v = np.append(x, intercept) if intercept else x
        z = np.atleast_1d(coef @ v)[None] if coef.ndim > 1 else np.array([coef @ v])
        r = loss.residual(z, loss.encode(np.array([code])))[0]
        gradient = np.multiply.outer(r, v)
        largest = np.abs(gradient).max()
        total += gradient * min(1.0, clip / largest if largest else 1.0)
    return total.ravel()


@pytest.mark.covering
@every_loss
@pytest.mark.parametrize("intercept", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("layout", ["C", "F", "float32", "csr", "csr zeros", "csr duplicates"])
def test_scores_are_those_of_the_definition(loss, intercept, layout):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5)) * rng.uniform(0, 2, size=(40, 1)) * (rng.random((40, 5)) < 0.6)
    X[3] = 0.0
    codes = rng.integers(0, max(2, loss.n_outputs), size=40)
    null = rng.random(40) < 0.1
    rows = Rows(as_layout(X.astype(np.float32).astype(np.float64), layout), codes, null)
    coef = make_coef(loss, 5 + bool(intercept), 3.0)
    for clip in (1e-3, 0.1, 0.4, 2.0):
        query = SteepestCoordinate(coef, loss, clip)
        found = query.scores(admit(rows, loss, intercept)) * query.grid
        wanted = naive_scores(rows, loss, coef, clip, intercept)
        np.testing.assert_allclose(found, wanted, atol=0.51 * query.grid, rtol=1e-6)


@pytest.mark.covering
@every_adjacency
@every_loss
@on_examples(150)
def test_any_neighbours_keep_the_spread(loss, adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-100, 1e100, 3.7]))
    n_classes = max(2, loss.n_outputs)
    pair = data.draw(neighbours(adjacency, n_classes=n_classes, radius=radius))
    n_rows, n_features = pair[0].X.shape
    intercept = data.draw(st.sampled_from([0.0, 1e-50, 0.1, 1.0, 1e50]))
    size = data.draw(st.sampled_from([0.0, 1.0, 1e3, 1e150]))
    coef = make_coef(loss, n_features + bool(intercept), size, seed=data.draw(st.integers(0, 99)))
    clip = data.draw(st.sampled_from([1e-50, 0.01, 0.3, 1.0, 5.0, 1e50]))
    query = SteepestCoordinate(coef, loss, clip)
    stated = query.sensitivity(adjacency, n_rows)
    assert stated.spread == pytest.approx(2 * reach(adjacency, clip), rel=0.003)
    scores = [query.scores(admit(rows, loss, intercept, radius)) for rows in pair]
    change = (scores[1] - scores[0]) * query.grid
    both = np.concatenate([change, -change])
    assert np.ptp(both) <= stated.spread
    for score in scores:
        assert score.dtype == np.int64
        assert np.abs(score).max() * query.grid <= n_rows * clip * (1 + FLOAT_SLACK) + query.grid


@every_adjacency
@every_loss
def test_the_spread_is_attained_up_to_the_grid(loss, adjacency):
    # residuals of a half or more at zero, and rows with one entry
    X = np.eye(2)[[0, 0, 0]]
    codes = np.array([0, 1, 0])
    other = -X if adjacency == "replace-one" else X
    query = SteepestCoordinate(make_coef(loss, 2, 0.0), loss, 0.25)
    null = np.arange(3) == 2
    first = query.scores(admit(Rows(X, codes, np.zeros(3, bool)), loss))
    X = np.where(null[:, None], other, X)
    second = query.scores(admit(Rows(X, codes, null & (adjacency == "zero-out")), loss))
    change = (second - first) * query.grid
    spread = query.sensitivity(adjacency, 3).spread
    assert np.ptp(np.concatenate([change, -change])) == spread - 2 * query.grid


def test_a_row_is_clipped_by_its_own_entries_alone():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(50, 4)), rng.integers(0, 2, size=50)
    for layout in ("C", "csr", "float32"):
        for intercept in (0.0, 0.3):
            rows = Rows(as_layout(X, layout), codes, np.zeros(50, bool))
            (chunk,) = admit(rows, LogisticLoss(), intercept).chunks
            whole = chunk.largest_entries()
            for i in range(50):
                alone = rows_in_ball(
                    rows.X[i : i + 1], np.ones(1), np.zeros(1, bool), 1.0, intercept
                ).chunks[0]
                assert alone.largest_entries() == whole[i]
            assert chunk.largest_entries() is whole
            explicit = np.abs(as_dense(chunk.explicit())).max(axis=1)
            np.testing.assert_allclose(whole, explicit, rtol=1e-7)


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(3)], ids=["binary", "softmax"])
def test_a_draw_has_the_law_of_its_temperature(loss, adjacency):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 2))
    rows = admit(Rows(X, rng.integers(0, 2, size=30), np.zeros(30, bool)), loss, 0.1)
    query = SteepestCoordinate(make_coef(loss, 3, 0.5), loss, 0.3)
    mechanism = ExponentialMechanism(0.7)
    noise = mechanism.calibrate(query.sensitivity(adjacency, 30), 1)
    expected = np.exp(law(query, noise, query.scores(rows)))
    curator = Curator(
        lambda: rows, n_rows=30, epsilon=1e4, delta=0.0, adjacency=adjacency, random_state=None,
        purpose="test",
    )  # fmt: skip
    paid = curator.prepay(query, mechanism, 4000)
    drawn = [int(curator.release(query, paid)[0]) for _ in range(4000)]
    seen = np.bincount(drawn, minlength=len(expected))
    assert len(seen) == 2 * query.coef.size
    assert stats.chisquare(seen, 4000 * expected).pvalue > 1e-9
    # half the temperature would be noticed
    colder = expected**2 / (expected**2).sum()
    assert stats.chisquare(seen, 4000 * colder).pvalue < 1e-9


@every_adjacency
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_no_output_is_more_likely_than_the_price_allows(epsilon, adjacency):
    # the range of the loss, not only its size: composition rests on it
    loss, X = LogisticLoss(), np.ones((400, 1))
    codes, other = np.zeros(400, dtype=int), np.zeros(400, dtype=int)
    codes[0] = 1
    null = np.zeros(400, bool)
    gone = (np.arange(400) == 0) & (adjacency == "zero-out")
    query = SteepestCoordinate(np.zeros(1), loss, 0.5)
    noise = ExponentialMechanism(epsilon).calibrate(query.sensitivity(adjacency, 400), 1)
    laws = [
        law(query, noise, query.scores(admit(Rows(X, c, n), loss)))
        for c, n in ((codes, null), (other, gone))
    ]
    change = laws[0] - laws[1]
    assert np.abs(change).max() <= epsilon
    assert 0.99 * epsilon <= np.ptp(change) <= epsilon


def test_rows_without_entries_and_without_columns_in_use():
    loss = LogisticLoss()
    rows = Rows(sparse.csr_array((7, 3)), np.zeros(7, dtype=int), np.zeros(7, bool))
    for intercept in (0.0, 0.1):
        query = SteepestCoordinate(np.zeros(3 + bool(intercept)), loss, 0.2)
        scores = query.scores(admit(rows, loss, intercept))
        assert not scores[:3].any()
    noise = ExponentialMechanism(1.0).calibrate(query.sensitivity("zero-out", 7), 1)
    assert 0 <= query.draw(admit(rows, loss, 0.1), noise, SeededBits(0))[0] < 8


def test_a_million_columns_need_a_few_vectors():
    loss, d = LogisticLoss(), 10**6
    columns = np.random.default_rng(0).integers(0, d, size=6000)
    X = sparse.csr_array((np.ones(6000), columns, np.arange(0, 6001, 20)), shape=(300, d))
    rows = admit(Rows(X, np.arange(300) % 2, np.zeros(300, bool)), loss, 0.1)
    query = SteepestCoordinate(np.zeros(d + 1), loss, 0.1)
    noise = ExponentialMechanism(0.1).calibrate(query.sensitivity("replace-one", 300), 1)
    tracemalloc.start()
    drawn = {query.draw(rows, noise, SeededBits(seed))[0] for seed in range(3)}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(drawn) == 3
    assert peak < 16 * 8 * d

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scores of drawn scales and medians keep the spread they state, and units move rows alone."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse

from skdp._losses.regression import SquaredLoss
from skdp._quantiles import (
    GradientNorm,
    MagnitudeThreshold,
    RowNorm,
    TargetDistance,
    TargetMedian,
    candidates,
    rate,
)
from skdp._rows.linear import regression_rows, unit_rows
from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws.exponential import ExponentialMechanism
from tests._neighbours import (
    ADJACENCIES,
    LAYOUTS,
    as_dense,
    as_layout,
    make_row,
    neighbours,
    on_examples,
)

NAN = float("nan")
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
MAGNITUDES = [RowNorm(), TargetDistance(), TargetDistance(0.3), GradientNorm(SquaredLoss())]
every_magnitude = pytest.mark.parametrize("magnitude", MAGNITUDES, ids=lambda m: type(m).__name__)
TARGETS = [0.0, 1.0, -1.0, 0.3, 1e300, -1e300, 1e-310, 7.0]


def admit(X, y, magnitude=None):
    rows = regression_rows(X, np.asarray(y, dtype=np.float64))
    units = isinstance(magnitude, GradientNorm)
    return unit_rows(rows, 0.5, 3.0, 0.1, 0.2, 0.7) if units else rows


def query_of(magnitude, tail, points=90):
    return MagnitudeThreshold(magnitude, 1e-6, 1.4, points, tail)


def naive_scores(magnitudes, query):
    """Return the scores as the definition says, point by point."""
    beyond = [np.sum(magnitudes > t) for t in query.grid()[:-1]] + [0]
    return [
        max(count - query.tail, query.tail - beyond[k - 1] if k else 0, 0)
        for k, count in enumerate(beyond)
    ]


def law(steps, counts, scale, denominator=1):
    """Return the log-probability of every single output of a group."""
    logits = -rate(denominator, scale) * steps
    total = np.log(np.sum(counts * np.exp(logits - logits.max()))) + logits.max()
    return logits - total


@pytest.mark.covering
@every_adjacency
@every_magnitude
@on_examples(60)
def test_any_neighbours_keep_the_spread_of_a_magnitude(magnitude, adjacency, data):
    pair = data.draw(neighbours(adjacency, finite=True))
    n = pair[0].X.shape[0]
    targets = data.draw(st.lists(st.sampled_from(TARGETS), min_size=n, max_size=n))
    other = list(targets)
    i = data.draw(st.integers(0, n - 1))
    # the row that differs, if any, takes another target too
    differs = np.flatnonzero((as_dense(pair[0].X) != as_dense(pair[1].X)).any(axis=1))
    i = int(differs[0]) if len(differs) else i
    other[i] = NAN if adjacency == "zero-out" else data.draw(st.sampled_from(TARGETS))
    query = query_of(magnitude, data.draw(st.integers(0, n + 1)))
    scores = [
        query.scores(admit(rows.X, y, magnitude))
        for rows, y in zip(pair, (targets, other), strict=True)
    ]
    change = scores[1] - scores[0]
    assert np.ptp(change) <= query.sensitivity(adjacency, n).spread == 2
    assert np.abs(change).max() <= 1


@every_adjacency
def test_the_spread_of_a_magnitude_is_attained_by_one_pair(adjacency):
    # three targets far out and one just beyond the first point: one of the far ones goes
    query = query_of(TargetDistance(), 3)
    first = np.array([1e3, 1e3, 1e3, 1.1e-6])
    second = first.copy()
    second[0] = NAN if adjacency == "zero-out" else 0.0
    change = query.scores(admit(np.ones((4, 1)), second)) - query.scores(
        admit(np.ones((4, 1)), first)
    )
    assert np.ptp(change) == query.sensitivity(adjacency, 4).spread


@every_magnitude
def test_scores_are_what_the_definition_says(magnitude):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.standard_t(1.5, size=200)
    y[:3] = NAN
    norms = np.linalg.norm(X, axis=1)
    s = np.minimum(1, 3.0 * 0.5 / norms)
    expected = {
        "RowNorm": norms,
        "TargetDistance": np.abs(y - getattr(magnitude, "center", 0.0)),
        "GradientNorm": s**2 * np.abs((y - 0.2) / 0.7) * np.hypot(norms / 0.5, 0.1),
    }[type(magnitude).__name__]
    expected = expected[3:]
    query = query_of(magnitude, 50)
    np.testing.assert_array_equal(
        query.scores(admit(X, y, magnitude)), naive_scores(expected, query)
    )


@every_magnitude
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_row_moves_no_magnitude_but_its_own(magnitude, layout):
    # an awkward row makes its chunk be copied: the others must not notice, to the last bit
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 7))
    y = rng.normal(size=600)
    found = []
    for kind in ("denormal", "huge", "random"):
        X[0] = make_row(kind, 7, 1.0, rng)
        rows = admit(
            np.asarray(as_layout(X, "C")) if "csr" not in layout else sparse.csr_array(X),
            y,
            magnitude,
        )
        found.append(np.concatenate([magnitude(chunk) for chunk in rows.chunks])[1:])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("n_rows", [1, 2, 3, 4])
def test_medians_of_all_small_neighbours_keep_the_spread(n_rows, adjacency):
    query = TargetMedian(-2.0, 1.0, 4)
    noise = ExponentialMechanism(2.0).calibrate(query.sensitivity(adjacency, n_rows), 1)
    values = [-2.0, 0.0, 1.0, 9.0]
    worlds = [*itertools.product([*values, NAN], repeat=n_rows)]

    def full(world):
        """Return the score and the log-probability of every position, in halves of a rank."""
        rows = admit(np.ones((n_rows, 1)), world)
        starts, counts, steps = candidates(query.positions(rows), _half(), query.cells)
        logs = law(steps, counts, noise.scale, 2)
        score, log = np.empty(5), np.empty(5)
        for start, count, step, value in zip(starts, counts, steps, logs, strict=True):
            score[start : start + count], log[start : start + count] = step / 2, value
        return score, log

    known = {repr(world): full(world) for world in worlds}
    worst, spread = 0.0, 0.0
    for world in worlds:
        score, log = known[repr(world)]
        kept = np.array([v for v in world if not math.isnan(v)])
        kept = np.clip(kept, -2, 2) + 2
        naive = [
            max((kept < t).sum() - len(kept) / 2, len(kept) / 2 - (kept <= t).sum(), 0)
            for t in range(5)
        ]
        np.testing.assert_array_equal(score, naive)
        others = [*values, NAN] if adjacency == "replace-one" else [NAN]
        for i, other in itertools.product(range(n_rows), others):
            changed = (*world[:i], other, *world[i + 1 :])
            spread = max(spread, np.ptp(known[repr(changed)][0] - score))
            worst = max(worst, np.abs(known[repr(changed)][1] - log).max())
    assert worst <= 2.0
    # attained by one row: a median moves, and both ends lose what the other gains
    assert spread == query.sensitivity(adjacency, n_rows).spread or n_rows < 2


def _half():
    from fractions import Fraction

    return Fraction(1, 2)


def test_draws_of_a_median_follow_the_law():
    query = TargetMedian(-2.0, 1.0, 4)
    rows = admit(np.ones((5, 1)), [-2.0, 0.0, 0.0, 1.0, 9.0])
    noise = ExponentialMechanism(1.0).calibrate(query.sensitivity("replace-one", 5), 1)
    starts, counts, steps = candidates(query.positions(rows), _half(), 4)
    expected = np.repeat(np.exp(law(steps, counts, noise.scale, 2)), counts)[
        np.argsort(
            np.concatenate([np.arange(s, s + c) for s, c in zip(starts, counts, strict=True)])
        )
    ]
    bits, n_draws = SeededBits(0), 4000
    drawn = np.bincount(
        [int(query.draw(rows, noise, bits)[0]) for _ in range(n_draws)], minlength=5
    )
    assert np.sum((drawn - n_draws * expected) ** 2 / (n_draws * expected)) < 25


def test_draws_of_a_magnitude_follow_the_law():
    query = MagnitudeThreshold(TargetDistance(), 0.5, 2.0, 4, 2)
    rows = admit(np.ones((6, 1)), [0.1, 0.7, 1.5, 2.5, 9.0, -9.0])
    noise = ExponentialMechanism(1.0).calibrate(query.sensitivity("replace-one", 6), 1)
    expected = np.exp(law(query.scores(rows), np.ones(4), noise.scale))
    bits, n_draws = SeededBits(0), 4000
    drawn = np.bincount(
        [int(query.draw(rows, noise, bits)[0]) for _ in range(n_draws)], minlength=4
    )
    assert np.sum((drawn - n_draws * expected) ** 2 / (n_draws * expected)) < 22


# -- units -----------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("intercept", [0.0, 0.1, 3.0])
def test_units_are_what_the_definition_says(layout, intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)).astype(np.float32).astype(np.float64)
    X[0], X[1] = 0.0, 1e6
    y = rng.normal(size=50)
    rows = unit_rows(regression_rows(as_layout(X, layout), y), 0.5, 3.0, intercept, 0.2, 0.7)
    (chunk,) = rows.chunks
    s = np.minimum(1, 3.0 / np.maximum(np.linalg.norm(X, axis=1) / 0.5, 1e-9))
    body = s[:, None] * X / 0.5
    whole = np.column_stack([body, s * intercept]) if intercept else body
    explicit = chunk.explicit()
    explicit = explicit.toarray() if sparse.issparse(explicit) else explicit
    np.testing.assert_allclose(explicit, whole, rtol=1e-6)
    np.testing.assert_allclose(chunk.target, s * (y - 0.2) / 0.7, rtol=1e-6, atol=1e-12)
    length = np.linalg.norm(whole, axis=1)
    np.testing.assert_allclose(chunk.norm, np.maximum(length, 1e-100), rtol=1e-6)
    assert chunk.norm.max() <= math.hypot(3.0, intercept) * (1 + 1e-12)


def test_a_long_row_is_scaled_with_its_target():
    # what a correct model predicts for it is still its target
    X, w = np.array([[1e9, -2e9], [0.1, 0.2]]), np.array([2.0, -1.0])
    y = X @ w + 5.0
    rows = unit_rows(regression_rows(X, y), 1.0, 4.0, 0.1, 0.0, 10.0)
    (chunk,) = rows.chunks
    predicted = chunk.predict(np.append(w / 10.0, 5.0 / 10.0 / 0.1))
    np.testing.assert_allclose(predicted, chunk.target, rtol=1e-12)
    assert chunk.lift[0] < 1e-8

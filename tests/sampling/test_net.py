# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The net covers the ball, and its choice has the exact probabilities."""

import numpy as np
import pytest
from scipy import sparse

from skdp import DPLogisticRegression, papers
from skdp import _log_concave as _net
from skdp._log_concave import ball_candidates, ball_grid, choose_by_loss
from skdp.solvers import exponential as _loss_draw
from tests.sampling._laws import same_counts, source


def choices(losses, c, n=6_000):
    variates = source("choices")
    drawn = [choose_by_loss(losses, c, variates) for _ in range(n)]
    return np.bincount(drawn, minlength=len(losses))


@pytest.mark.parametrize("shift", [0.0, -1e6, 1e6])
def test_choice_has_its_probabilities(shift):
    losses = np.array([3.0, 0.0, 1.0, 1.0, 2.5, 8.0])
    probabilities = np.exp(-0.9 * losses)
    counts = choices(losses + shift, 0.9)
    assert same_counts(counts, probabilities)
    assert not same_counts(counts, np.sqrt(probabilities))
    assert not same_counts(counts, probabilities**2)


def test_choice_at_every_scale():
    with np.errstate(all="raise", under="ignore"):
        losses = np.array([1.0, 1e-300, 1e300, 5.0])
        assert same_counts(choices(losses, 0.0, n=4000), np.ones(4))
        assert same_counts(choices(losses[[0, 1, 3]], 1e-300, n=4000), np.ones(3))
        assert choices(losses, 1e300, n=10).tolist() == [0, 10, 0, 0]
        assert choices(losses[:1], 1.0, n=10).tolist() == [10]


@pytest.mark.parametrize(("n_dims", "radius", "spacing"), [(1, 1, 0.1), (2, 3.0, 0.5), (3, 2, 0.7)])
def test_every_point_of_the_ball_is_near_the_grid(n_dims, radius, spacing):
    points = ball_grid(n_dims, radius, spacing)
    assert points.shape[1] == n_dims
    assert (np.linalg.norm(points, axis=1) <= radius * (1 + 1e-15)).all()
    assert (points == 0).all(axis=1).sum() == 1
    np.testing.assert_allclose(points / spacing, np.rint(points / spacing), atol=1e-12)
    assert len(np.unique(points, axis=0)) == len(points)
    x = np.random.default_rng(0).normal(size=(500, n_dims))
    x *= (
        radius
        * np.random.default_rng(1).uniform(0.5, 1, size=(500, 1))
        / np.linalg.norm(x, axis=1, keepdims=True)
    )
    gaps = np.linalg.norm(x[:, None] - points, axis=2).min(axis=1)
    assert gaps.max() < spacing * np.sqrt(n_dims)


def test_no_lattice_point_of_the_ball_is_left_out():
    # Gauss's circle problem
    assert [len(ball_grid(2, r, 1)) for r in (0.5, 1, 2, 3, 4, 5)] == [1, 5, 13, 29, 49, 81]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.0, 0.1), "n_dims must be at least 1; got 0"),
        ((2, -1.0, 0.1), "radius must be a finite positive number; got -1.0"),
        ((2, np.inf, 0.1), "radius must be a finite positive number; got inf"),
        ((2, 1.0, 0.0), "spacing must be a finite positive number; got 0.0"),
        ((2, 1.0, np.nan), "spacing must be a finite positive number; got nan"),
        ((3, 1.0, 1e-3), f"spacing must leave at most {_net.MAX_GRID} points"),
        ((50, 1.0, 1.0), f"spacing must leave at most {_net.MAX_GRID} points"),
    ],
)
def test_bad_grids_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ball_grid(*arguments)


@pytest.mark.parametrize("n_dims", [1, 2, 3, 4, 20, 500])
def test_candidates_fill_the_ball_evenly(n_dims):
    points = ball_candidates(n_dims, 3.0, 2000)
    assert 0.9 * 2000 < len(points) < 1.1 * 2000
    lengths = np.linalg.norm(points, axis=1)
    assert lengths.max() <= 3.0 * (1 + 1e-12)
    assert lengths.min() == 0
    assert len(np.unique(points, axis=0)) == len(points)
    # no direction is preferred
    assert np.linalg.norm(points.mean(axis=0)) < 0.15
    np.testing.assert_array_equal(points, ball_candidates(n_dims, 3.0, 2000))


def test_primes():
    assert _net._primes(6).tolist() == [2, 3, 5, 7, 11, 13]
    assert len(_net._primes(10_000)) == 10_000
    assert _net._primes(10_000)[-1] == 104_729


def test_candidates_do_not_depend_on_the_entries_of_sparse_rows(monkeypatch):
    # their number is private, and so would be what can be drawn
    seen = []
    monkeypatch.setattr(_loss_draw, "_WORK", 4e5)
    monkeypatch.setattr(
        _loss_draw, "ball_candidates", lambda *a: seen.append(a) or ball_candidates(*a)
    )
    for entries in (1, 100):
        X = sparse.csr_array(
            (np.full(entries, 0.1), (np.arange(entries), np.zeros(entries, int))), (100, 6)
        )
        model = DPLogisticRegression(
            mechanism="exponential",
            solver=papers.FiniteNet(),
            coef_bound=1.0,
            classes=(0, 1),
            random_state=0,
        )
        model.fit(X, np.arange(100) % 2)
    assert seen[0] == seen[1]
    assert seen[0][2] < _loss_draw._CANDIDATES

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Nets of sparse vectors, and the draws from them, which are a yardstick for the others."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from skdp import DPLogisticRegression
from skdp._domains import L2Ball
from skdp._losses import HingeLoss, LogisticLoss
from skdp._queries import LinearRows
from skdp._queries._loss_values import loss_values
from skdp._sampling import sparse_net, sparse_net_step
from skdp._solvers.sparse_draw import SparseDraw
from skdp.privacy import Curator, ExponentialMechanism
from skdp.privacy._bits import SeededBits
from skdp.privacy._variates import Variates
from tests._neighbours import worst_pairs


@pytest.mark.parametrize(("n_dims", "ratio"), [(1, 1.0), (2, 2.5), (3, 1.7), (4, 2.0), (5, 0.9)])
def test_the_net_is_what_its_definition_says(n_dims, ratio):
    radius = 1.3
    tau = radius / ratio
    found = sparse_net(n_dims, radius, tau)
    m = math.floor(ratio)
    expected = [
        p for p in itertools.product(range(-m, m + 1), repeat=n_dims)
        if sum(x * x for x in p) <= ratio**2
    ]  # fmt: skip
    np.testing.assert_allclose(found, tau * np.array(expected))
    k = min(n_dims, math.floor(ratio**2))
    assert np.count_nonzero(found, axis=1).max() == k
    assert len(found) <= max(1, math.comb(n_dims, k) * (3 * ratio) ** k)


def test_every_point_of_the_ball_is_near_the_net():
    rng, radius, tau = np.random.default_rng(0), 2.0, 0.7
    points = rng.normal(size=(200, 4))
    points *= radius * (rng.uniform(size=200) / np.linalg.norm(points, axis=1))[:, None]
    net = sparse_net(4, radius, tau)
    gaps = np.abs(points[:, None] - net[None]).max(axis=2)
    assert gaps.min(axis=1).max() < tau


def test_twelve_dimensions_can_be_listed():
    net = sparse_net(12, 1.0, 0.5)
    assert 1000 < len(net) < math.comb(12, 4) * 6**4
    assert np.linalg.norm(net, axis=1).max() <= 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.0, 0.5), "n_dims"),
        ((13, 1.0, 0.5), "n_dims"),
        ((2, 0.0, 0.5), "radius"),
        ((2, math.nan, 0.5), "radius"),
        ((2, 1.0, -1.0), "tau"),
        ((2, 1.0, math.inf), "tau"),
        ((12, 1.0, 0.1), "tau must leave at most"),
    ],
)
def test_bad_nets_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        sparse_net(*arguments)


def test_the_step_solves_its_equation_and_shrinks_with_more_rows():
    facts = {
        "epsilon": 1.0, "n_dims": 6, "radius": 2.0, "lipschitz": 1.1, "n_nonzeros": 3,
        "spread": 4.4, "failure": 0.1,
    }  # fmt: skip
    steps = [sparse_net_step(n_rows=n, **facts) for n in (3, 1000, 10**5)]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] == 2.0
    for n, tau in zip((1000, 10**5), steps[1:], strict=True):
        left = tau**3 / math.log(12.0 / (tau * 0.1))
        assert left == pytest.approx(4.4 * 4 / (1.1 * math.sqrt(3) * n), rel=1e-9)


def sparse_problem(n_rows=400, d=4, s=2, loss=None, seed=0):
    rng = np.random.default_rng(seed)
    X = np.zeros((n_rows, d))
    for row in X:
        row[rng.choice(d, s, replace=False)] = rng.choice([-1, 1], s) / math.sqrt(s)
    codes = (X @ np.linspace(2, -1, d) + 0.3 * rng.normal(size=n_rows) > 0).astype(int)
    loss = loss or LogisticLoss()
    return LinearRows(X, loss.encode(codes), np.zeros(n_rows, bool), L2Ball(1.0), 0.0)


def drawn(rows, plan, seed):
    curator = Curator(
        lambda: rows, n_rows=plan.n_rows, epsilon=plan.epsilon, delta=0.0,
        adjacency=plan.adjacency, random_state=seed, purpose="test",
    )  # fmt: skip
    coef = plan.run(curator)
    assert curator.ledger.epsilon() <= plan.epsilon
    return coef


def lowest(rows, loss, radius, n_rows):
    """Return the least mean loss over the ball, from the interior-point method of scipy."""
    found = minimize(
        lambda w: loss_values(rows, w[None], loss)[0] / n_rows,
        np.full(4, 0.1),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: radius**2 - w @ w},
    )
    return found.fun


def drawing(loss, n_rows, epsilon, adjacency="replace-one", most_points=3000):
    return SparseDraw(loss, 1.0, 2, n_rows, 4, 1.5, epsilon, adjacency, 0.1, most_points)


@pytest.mark.filterwarnings("ignore:random_state is set")
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("loss", [LogisticLoss(), HingeLoss()], ids=str)
def test_the_excess_stays_below_the_bound(loss, adjacency):
    n_rows = 400
    rows, plan = sparse_problem(n_rows, loss=loss), drawing(loss, n_rows, 0.2, adjacency)
    best = lowest(rows, loss, 1.5, n_rows)
    excess = np.array(
        [
            loss_values(rows, drawn(rows, plan, seed)[None], loss)[0] / n_rows - best
            for seed in range(20)
        ]
    )
    bound = plan.excess_bound
    assert np.mean(excess > bound) <= 0.1
    # a bound that says something: it is a few times the truth
    assert excess.min() > -1e-9
    assert bound < 30 * excess.mean()
    # and a larger budget has a smaller one
    assert drawing(loss, n_rows, 20.0, adjacency).excess_bound < bound


@pytest.mark.filterwarnings("ignore:random_state is set")
def test_a_large_budget_finds_what_others_find():
    loss, n_rows = LogisticLoss(), 400
    rows, plan = sparse_problem(n_rows), drawing(loss, n_rows, 500.0, most_points=30_000)
    mean_loss = loss_values(rows, drawn(rows, plan, 0)[None], loss)[0] / n_rows
    assert 0 <= mean_loss - lowest(rows, loss, 1.5, n_rows) < 0.02
    (chunk,) = rows.chunks
    model = DPLogisticRegression(
        epsilon=500.0, delta=0.0, mechanism="exponential", coef_bound=1.5, fit_intercept=False,
        random_state=0,
    )  # fmt: skip
    coef = model.fit(chunk.X, chunk.target > 0).coef_
    assert mean_loss == pytest.approx(loss_values(rows, coef, loss)[0] / n_rows, abs=0.02)


def test_probabilities_are_those_of_the_exponential_mechanism():
    loss, n_rows = LogisticLoss(), 30
    rows = sparse_problem(n_rows)
    plan = drawing(loss, n_rows, 3.0)
    net = sparse_net(4, 1.5, 1.0)
    query = plan.query(net)
    facts = query.sensitivity("replace-one", n_rows)
    assert facts.spread == pytest.approx(2 * loss.lipschitz * np.sqrt(2) * 2)
    noise = ExponentialMechanism(3.0).calibrate(facts, 1)
    scores = loss_values(rows, net, loss) / noise.scale
    expected = np.exp(scores.min() - scores)
    expected /= expected.sum()
    source, runs = Variates(SeededBits(0)), 20_000
    counts = np.bincount(
        [int(query.draw(rows, noise, source)[0]) for _ in range(runs)], minlength=len(net)
    )
    chi_square = np.sum((counts - runs * expected) ** 2 / (runs * expected))
    assert chi_square < len(net) + 6 * math.sqrt(2 * len(net))


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_no_probability_changes_by_more_than_epsilon_between_neighbours(adjacency):
    loss, net = LogisticLoss(), sparse_net(4, 1.5, 0.7)
    query = SparseDraw(loss, 1.0, 4, 8, 4, 1.5, 1.0, adjacency, 0.1).query(net)
    scale = query.sensitivity(adjacency, 8).spread
    largest = 0.0
    for pair in worst_pairs(8, 4, 2, adjacency, 1.0):
        logs = []
        for data in pair:
            rows = LinearRows(data.X, loss.encode(data.codes), data.null, L2Ball(1.0), 0.0)
            scores = -loss_values(rows, net, loss) / scale
            logs.append(scores - np.logaddexp.reduce(scores))
        largest = max(largest, np.abs(logs[0] - logs[1]).max())
    assert 0.1 < largest <= 1.0


def test_many_candidates_have_the_diameter_of_their_ball():
    query = SparseDraw(LogisticLoss(), 1.0, 2, 10, 4, 1.5, 1.0, "zero-out", 0.1).query
    few, many = sparse_net(2, 1.0, 0.5), sparse_net(4, 1.0, 0.4)
    assert query(few).diameter == 2.0
    assert len(many) > 100
    assert query(many).diameter == pytest.approx(2 * np.linalg.norm(many, axis=1).max())
    lone = np.zeros((200, 3))
    lone[0] = 1.0
    assert query(lone).diameter >= np.linalg.norm(lone[0])

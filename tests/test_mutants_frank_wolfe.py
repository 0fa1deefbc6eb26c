# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of Frank-Wolfe steps, planted one by one: exact laws of all draws see them.

Every test first shows that the audit passes on the real code.
"""

import importlib
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from skdp._losses.classification import LogisticLoss
from skdp._rows.linear import LinearChunk
from skdp.exceptions import BudgetError
from skdp.privacy import Curator
from skdp.privacy.kernel import ledger as _composition
from skdp.privacy.kernel.charging import Charging
from skdp.privacy.kernel.ledger import Record
from skdp.solvers import frank_wolfe as _steepest_coordinate
from skdp.solvers.frank_wolfe import SteepestCoordinate
from tests._neighbours import ADJACENCIES, Rows
from tests.linear_model._vertices import delta_between, fitted, joint_law, worst_pair
from tests.linear_model.test_frank_wolfe import X, Y, model
from tests.test_sensitivity import admit

# the package has a function of that name
solver = importlib.import_module("skdp.solvers.frank_wolfe")
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize(
    ("epsilon", "delta", "max_iter"), [(0.5, 0.0, 1), (1.0, 0.0, 4), (0.5, 0.05, 6), (2.0, 0.01, 7)]
)
def test_no_sequence_of_draws_tells_neighbours_apart_by_more(epsilon, delta, max_iter, adjacency):
    # a single coefficient, so that all sequences can be gone through
    made = model(
        epsilon, delta, max_iter=max_iter, adjacency=adjacency, fit_intercept=False,
        clipping_norm=0.3, l1_bound=3.0,
    )  # fmt: skip
    pair = worst_pair(adjacency)
    laws = [joint_law(made, data, 1) for data in pair]
    np.testing.assert_allclose([np.exp(one).sum() for one in laws], 1.0)
    assert delta_between(*laws, epsilon) <= delta
    # the claim is not far off: with less it would be false
    if delta == 0:
        assert delta_between(*laws, 0.4 * epsilon) > 0
    else:
        assert delta_between(*laws, 0.1 * epsilon) > delta


@every_adjacency
def test_equal_draws_give_equal_fits(adjacency):
    made = model(adjacency=adjacency, max_iter=9)
    vertices = np.random.default_rng(1).integers(0, 14, size=9)
    other = Y.copy()
    other[7] = 1 - Y[7] if adjacency == "replace-one" else 99
    fits = [vars(fitted(made, (X, labels), vertices)[0]) for labels in (Y, other)]
    keys = [key for key in fits[0] if key.endswith("_")]
    assert {"coef_", "intercept_", "n_iter_", "ledger_", "privacy_spent_"} <= set(keys)
    assert all(np.array_equal(fits[0][key], fits[1][key]) for key in keys)


# -- one draw --------------------------------------------------------------------------------


def is_private(adjacency="replace-one"):
    """Return whether one draw, from many rows against one, keeps its epsilon."""
    made = model(
        1.0, 0.0, max_iter=1, adjacency=adjacency, fit_intercept=False, clipping_norm=0.1
    )  # fmt: skip
    laws = [joint_law(made, data, 1) for data in worst_pair(adjacency, 30)]
    return delta_between(*laws, 1.0) == 0


def test_half_the_spread_is_caught(monkeypatch):
    real = SteepestCoordinate.sensitivity

    def halved(self, *args):
        return replace(real(self, *args), spread=real(self, *args).spread / 2)

    for adjacency in ADJACENCIES:
        with monkeypatch.context() as patch:
            assert is_private(adjacency)
            patch.setattr(SteepestCoordinate, "sensitivity", halved)
            assert not is_private(adjacency)


def test_the_spread_of_the_other_adjacency_is_caught(monkeypatch):
    assert is_private()
    real = SteepestCoordinate.sensitivity
    monkeypatch.setattr(
        SteepestCoordinate, "sensitivity", lambda self, _, n: real(self, "zero-out", n)
    )
    assert not is_private()


def test_half_the_temperature_is_caught(monkeypatch):
    assert is_private()
    real = _steepest_coordinate.rate
    monkeypatch.setattr(_steepest_coordinate, "rate", lambda b, t: real(b, t / 2))
    assert not is_private()


def test_gradients_that_are_not_clipped_are_caught(monkeypatch):
    assert is_private()
    # every row as if its entries were tiny
    monkeypatch.setattr(LinearChunk, "largest_entries", lambda self: np.full(len(self.norm), 1e-9))
    assert not is_private()


def moves(query, X, change, intercept=0.0, adjacency="replace-one"):
    """Return how far the scores move, relative to what is stated."""
    codes = np.arange(len(X)) % 2
    scores = []
    for rows in (X, change(X)):
        admitted = admit(Rows(rows, codes, np.zeros(len(X), bool)), query.loss, intercept)
        scores.append(query.scores(admitted))
    gap = np.abs(scores[0] - scores[1]).max() * query.grid
    return 2 * gap / query.sensitivity(adjacency, len(X)).spread


def shrunk(X):
    return np.where(np.arange(len(X))[:, None] == 0, -1.0, X)


def test_a_constant_feature_that_is_not_clipped_is_caught(monkeypatch):
    X = np.full((6, 1), 1e-3)
    query = SteepestCoordinate(np.array([0.0, -3.0]), LogisticLoss(), 0.3)
    flipped = lambda rows: np.where(np.arange(6)[:, None] == 1, np.nan, rows)  # noqa: E731
    assert moves(query, X, flipped, intercept=2.0) <= 1
    real = LinearChunk.largest_entries

    def without(self):
        peaks = np.abs(self.X[:, 0]) * self.factor
        return np.where(np.isinf(self.norm), np.inf, np.minimum(peaks, real(self)))

    monkeypatch.setattr(LinearChunk, "largest_entries", without)
    assert moves(query, X, flipped, intercept=2.0) > 1


def test_a_clip_that_looks_at_other_rows_is_caught(monkeypatch):
    X = np.full((50, 1), 0.01)
    query = SteepestCoordinate(np.zeros(1), LogisticLoss(), 1e-3)
    # all rows pull one way
    X[1::2] *= -1
    assert moves(query, X, shrunk) <= 1
    monkeypatch.setattr(
        LinearChunk, "largest_entries", lambda self: np.full(len(self.norm), np.abs(self.X).max())
    )
    assert moves(query, X, shrunk) > 1


def test_rounding_that_is_not_paid_for_is_caught(monkeypatch):
    query = SteepestCoordinate(np.zeros(1), LogisticLoss(), 0.3)
    worlds = [np.array([[1.0], [x]]) for x in np.linspace(0, 1, 97)]

    def gone(X):
        return np.array([[np.nan], X[1]])

    worst = lambda: max(moves(query, X, gone, adjacency="zero-out") for X in worlds)  # noqa: E731
    assert 0.998 < worst() <= 1
    real = SteepestCoordinate.sensitivity

    def unrounded(self, *args):
        return replace(real(self, *args), spread=real(self, *args).spread - 2 * self.grid)

    monkeypatch.setattr(SteepestCoordinate, "sensitivity", unrounded)
    assert worst() > 1


def test_the_best_vertex_for_a_draw_is_caught(monkeypatch):
    made = model(1.0, 0.0, max_iter=2, random_state=None, fit_intercept=False, clipping_norm=0.1)

    def outcomes(data):
        return {float(made.fit(*data).coef_[0, 0]) for _ in range(60)}

    first, second = worst_pair("replace-one", 2)
    assert outcomes(first) == outcomes(second)

    def best(self, rows, noise, source):
        along = self.scores(rows)
        return np.array([np.argmin(np.concatenate([along, -along]))], dtype=float)

    monkeypatch.setattr(SteepestCoordinate, "draw", best)
    assert outcomes(first) != outcomes(second)


# -- all draws -------------------------------------------------------------------------------


def unpaid(n_steps=7):
    """Return how many draws a fit makes beyond those on its ledger."""
    made, draws = fitted(model(max_iter=n_steps), (X, Y), [0] * (n_steps + 1))
    return len(draws) - sum(release.count for release in made.ledger_.releases)


def test_a_step_that_is_not_paid_is_refused_and_caught(monkeypatch):
    assert unpaid() == 0
    prepay = Curator.prepay
    monkeypatch.setattr(Curator, "prepay", lambda self, q, m, n: prepay(self, q, m, n - 1))
    with pytest.raises(BudgetError, match="no release of this kind is left"):
        unpaid()
    # without that check the count tells
    redeem = Charging.redeem

    def forever(self, query, paid, *others):
        self._accounts[paid].left = 99
        return redeem(self, query, paid, *others)

    monkeypatch.setattr(Charging, "redeem", forever)
    assert unpaid() == 1


def test_steps_at_the_price_of_more_steps_exceed_the_budget(monkeypatch):
    made = model(max_iter=40).fit(X, Y)
    assert made.privacy_spent_[0] <= 1
    real = solver.prices
    monkeypatch.setattr(solver, "prices", lambda e, d, n: real(e, d, n / 1.05))
    with pytest.raises(BudgetError, match="would exceed the budget"):
        made.fit(X, Y)
    monkeypatch.setattr(Record, "fits", lambda *_: True)
    assert made.fit(X, Y).privacy_spent_[0] > 1.01


def test_a_composition_that_forgets_a_part_of_the_range_is_caught(monkeypatch):
    # many draws of one row's full weight, by the law of their sum
    def delta_of(made):
        (release,) = made.ledger_.releases
        epsilon, count = release.noise.epsilon, release.count
        worst = 0.0
        for t in epsilon * np.linspace(0.3, 0.7, 9):
            p = np.exp(t) * np.expm1(epsilon - t) / np.expm1(epsilon)
            heads = np.arange(count + 1)
            log_p = special.xlogy(heads, p) + special.xlog1py(count - heads, -p)
            log_p -= special.betaln(heads + 1, count - heads + 1) + np.log(count + 1)
            loss = count * t - (count - heads) * epsilon
            worst = max(worst, float(np.exp(log_p) @ np.maximum(-np.expm1(1.0 - loss), 0)))
        return worst

    made = model(1.0, 1e-4, max_iter=300)
    assert delta_of(made.fit(X, Y)) <= 1e-4
    total, rho = _composition.total_rho, solver.zcdp_rho
    monkeypatch.setattr(_composition, "total_rho", lambda *a: total(*a) / 2)
    monkeypatch.setattr("skdp.privacy.kernel.ledger.total_rho", lambda *a: total(*a) / 2)
    monkeypatch.setattr(solver, "zcdp_rho", lambda *a: 2 * rho(*a))
    assert delta_of(made.fit(X, Y)) > 1e-4

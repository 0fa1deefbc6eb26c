# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What DPNormQuantile releases."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse

from skdp._quantiles import plan_threshold
from skdp.exceptions import SeededNoiseWarning
from skdp.location import DPNormQuantile
from tests.location._thresholds import fitted_law

NAN, INF = float("nan"), float("inf")
rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 3))
NORMS = np.linalg.norm(X, axis=1)
# the default of 0.001 would make some test fail too often
SURE = {"epsilon": 1.0, "failure": 1e-9}
every_adjacency = pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])


def data_sets():
    """Return rows of many shapes of tails, some with ties and gaps."""
    heavy = X * rng.standard_cauchy(size=(1000, 1))
    return {
        "normal": X,
        "heavy": heavy,
        "equal": np.tile(X[:1], (1000, 1)),
        "zeros": np.zeros((1000, 2)),
        "two atoms": np.repeat([[1.0, 0.0], [90.0, 0.0]], 500, axis=0),
        "outliers": np.concatenate([X, np.full((5, 3), 50.0)]),
        "gap": np.concatenate([X * 1e-6, 10 * X[:200]]),
    }


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 10.0])
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("name", data_sets())
def test_the_statement_about_the_radius_fails_as_seldom_as_stated(name, centered, epsilon):
    rows = data_sets()[name]
    center = np.full(rows.shape[1], 3.0) if centered else None
    model = DPNormQuantile(epsilon, data_norm=100.0, center=center)
    query, log_law = fitted_law(model, rows)
    # the exact law, so there is no luck in this
    clipped = rows * np.minimum(1, 100 / np.maximum(np.linalg.norm(rows, axis=1), 1e-9))[:, None]
    distances = np.linalg.norm(clipped - (3.0 if centered else 0.0), axis=1) / 100
    radii = query.grid()
    beyond = (distances[:, None] * (1 - 1e-12) > radii).sum(axis=0)
    holds = (beyond <= 2 * query.tail) & (
        radii < np.maximum(1.05 * distances.max() * (1 + 1e-12), radii[0] * (1 + 1e-12))
    )
    assert np.exp(log_law)[~holds].sum() <= model.failure
    # a plan that asks for more certainty has a longer tail
    assert plan_threshold(1.0, n_rows=9, centered=False, failure=1e-9).tail > 26


@every_adjacency
def test_a_far_too_large_data_norm_costs_nothing(adjacency):
    for data_norm in (10.0, 1e8):
        model = DPNormQuantile(**SURE, adjacency=adjacency, data_norm=data_norm, resolution=1e-12)
        fitted = [model.fit(X).threshold_ for _ in range(20)]
        assert np.quantile(NORMS, 0.9) < min(fitted)
        assert max(fitted) < 1.1 * NORMS.max()


def test_with_a_huge_budget_it_is_the_rank():
    model = DPNormQuantile(1e6, tail=100, data_norm=10.0).fit(X)
    expected = np.sort(NORMS)[-101]
    assert expected / 1.05 <= model.threshold_ <= expected * 1.05
    # both sides of the interval: never more than the tail, and the radius before has it
    beyond = [(model.threshold_ < NORMS).sum(), (model.threshold_ / 1.05 < NORMS).sum()]
    assert beyond[0] <= 100 <= beyond[1]


@pytest.mark.parametrize("value", [1e-5, 0.3, 1.0])
def test_equal_rows_are_found_by_the_next_radius(value):
    rows = np.full((500, 1), value)
    fitted = [DPNormQuantile(**SURE).fit(rows).threshold_ for _ in range(20)]
    assert min(fitted) >= value
    assert max(fitted) < 1.05 * value


def test_rows_at_the_centre_get_the_smallest_radius():
    rows = np.full((500, 2), 3.0)
    model = DPNormQuantile(**SURE, center=[3.0, 3.0], data_norm=10.0, resolution=1e-6).fit(rows)
    assert 0 < model.threshold_ <= 1e-5
    zeros = DPNormQuantile(**SURE, resolution=0.5).fit(np.zeros((500, 2)))
    assert 0.4 < zeros.threshold_ <= 0.5


def test_distances_are_taken_from_the_centre():
    rows = X + 1e6
    model = DPNormQuantile(**SURE, center=np.full(3, 1e6), data_norm=2e6).fit(rows)
    assert 2 < model.threshold_ < 1.05 * NORMS.max()
    # and not after all from the origin
    assert DPNormQuantile(**SURE, data_norm=2e6).fit(rows).threshold_ > 1e6


@pytest.mark.parametrize(("center", "largest"), [(None, 7.0), ([1.0, 1.0, 1.0], 14.0)])
@pytest.mark.parametrize("n_rows", [1, 5, 20])
def test_too_few_rows_are_not_read(n_rows, center, largest):
    model = DPNormQuantile(1.0, data_norm=7.0, center=center).fit(X[:n_rows])
    assert model.tail_ >= n_rows
    assert model.threshold_ == largest
    assert model.ledger_.releases == ()
    assert model.privacy_spent_ == (0.0, 0.0)
    assert (
        DPNormQuantile(tail=n_rows, data_norm=7.0, center=center).fit(X[:n_rows]).threshold_
        == largest
    )
    one_less = DPNormQuantile(tail=n_rows, center=center, data_norm=7.0).fit(X[: n_rows + 1])
    assert len(one_less.ledger_.releases) == 1


def test_the_tail_depends_on_public_numbers_only():
    tails = [DPNormQuantile(e).fit(X).tail_ for e in (0.1, 1.0, 10.0, 1e6)]
    assert tails == [260, 26, 3, 1]
    assert DPNormQuantile(tail=7).fit(X).tail_ == 7
    assert DPNormQuantile().fit(X * 9).tail_ == 26


@every_adjacency
def test_the_ledger_shows_one_draw(adjacency):
    model = DPNormQuantile(0.7, adjacency=adjacency).fit(X)
    (release,) = model.ledger_.releases
    assert (release.count, release.size, release.adjacency) == (1, 1, adjacency)
    assert (release.noise.law, release.noise.epsilon) == ("exponential", 0.7)
    assert release.stated_sensitivity == 2.0
    assert release.numerics == "exact on the grid, system entropy"
    assert model.privacy_spent_ == (0.7, 0.0)


def test_seeds():
    with pytest.warns(SeededNoiseWarning) as caught:
        first = DPNormQuantile(0.1, data_norm=9, random_state=0).fit(X).threshold_
    assert caught[0].filename == __file__
    assert first == DPNormQuantile(0.1, data_norm=9, random_state=0).fit(X).threshold_
    others = [DPNormQuantile(0.1, data_norm=9, random_state=s).fit(X) for s in range(20)]
    assert len({model.threshold_ for model in others}) > 1


def test_layouts_types_and_frames():
    single = X.astype(np.float32)
    expected = DPNormQuantile(random_state=0).fit(single).threshold_
    frame = pd.DataFrame(single, columns=["a", "b", "c"])
    for rows in (
        np.asfortranarray(single),
        np.repeat(single, 2, axis=1)[:, ::2],
        single.astype(float),
        frame,
        sparse.csr_array(single),
        sparse.csc_array(single),
    ):
        model = DPNormQuantile(random_state=0).fit(rows)
        assert model.threshold_ == expected
    assert DPNormQuantile().fit(frame).feature_names_in_.tolist() == ["a", "b", "c"]
    frozen = X.copy()
    frozen.flags.writeable = False
    DPNormQuantile(center=[0.1, 0.1, 0.1]).fit(frozen)
    np.testing.assert_array_equal(frozen, X)


def test_many_features():
    rows = np.random.default_rng(0).normal(size=(40, 20_000))
    model = DPNormQuantile(20.0, failure=1e-12, data_norm=1e4, center=np.zeros(20_000)).fit(rows)
    assert 130 < model.threshold_ < 160


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1e100, 1e-100, 0.0])
@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 1.0, 1e6, 1e300])
def test_extreme_rows_and_budgets(scale, epsilon):
    for center in (None, [0.1, 0.2, 0.3]):
        model = DPNormQuantile(epsilon, center=center).fit(X * scale)
        assert 0 < model.threshold_ <= 2
        assert model.privacy_spent_[0] <= epsilon
    assert 0 < DPNormQuantile(epsilon, data_norm=1e100).fit(X * scale).threshold_ <= 1e100
    assert DPNormQuantile(epsilon, data_norm=1e-100, resolution=1e-100).fit(X).threshold_ > 0


def test_rows_that_are_not_numbers_are_not_counted():
    rows = np.concatenate([X, np.full((5000, 3), NAN)])
    with sklearn.config_context(assume_finite=True):
        fitted = DPNormQuantile(**SURE, data_norm=10.0).fit(rows).threshold_
        nobody = DPNormQuantile(**SURE).fit(np.full((500, 2), INF)).threshold_
    assert np.quantile(NORMS, 0.8) < fitted < 1.1 * NORMS.max()
    assert 0 < nobody < 1e-6


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", v) for v in (0, -1, NAN, INF, "1", None, True)]
    + [("data_norm", v) for v in (0, -1, NAN, INF, 1e-200, True)]
    + [("tail", v) for v in (0, -1, 1.5, "a", NAN)]
    + [("resolution", v) for v in (0, 1, -1, NAN, "a", None)]
    + [("failure", v) for v in (0, 1, -1, NAN, None)]
    + [("center", v) for v in ([0.0, 0.0], [NAN] * 3, [INF] * 3, [1.0] * 3, [[0.0] * 3], "abc")]
    + [("adjacency", "add-remove"), ("random_state", -1), ("random_state", "a")],
)
def test_bad_parameters_are_named(name, value):
    model = DPNormQuantile(**{name: value})
    with pytest.raises((ValueError, TypeError), match=name):
        model.fit(X)
    assert not hasattr(model, "ledger_")
    with (
        sklearn.config_context(skip_parameter_validation=True, assume_finite=True),
        pytest.raises((ValueError, TypeError), match=name),
    ):
        model.fit(X)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.empty((0, 3)), "0 sample"),
        (np.zeros(60), "1D array"),
        (np.full((6, 3), NAN), "NaN"),
        (np.full((6, 3), INF), "infinity"),
        ([["60", "kilos"]] * 6, "numeric"),
    ],
)
def test_bad_data(data, message):
    with pytest.raises((ValueError, TypeError), match=message):
        DPNormQuantile().fit(data)


def test_sparse_rows_around_a_centre_are_refused():
    with pytest.raises((ValueError, TypeError), match=r"[Ss]parse"):
        DPNormQuantile(center=[0.1] * 3).fit(sparse.csr_array(X))

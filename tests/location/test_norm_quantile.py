# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private quantiles of norms and the centering of features: laws, sensitivities, planted bugs."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils._testing import set_random_state

from skdp import DPFeatureCenterer, DPLogisticRegression, DPNormQuantile, _quantiles, privacy_spent
from skdp._quantiles import NormThreshold, plan_threshold
from skdp._rows import linear
from skdp.exceptions import BudgetError, SeededNoiseWarning
from skdp.location._clipped_mean import GaussianMean
from skdp.privacy import ExponentialMechanism, Record, gdp_mu
from skdp.privacy.kernel.samplers import SeededBits
from tests import _audit
from tests._neighbours import ADJACENCIES, LAYOUTS, as_dense, neighbours, on_examples, rows_in_ball
from tests.location._thresholds import NAN, drawn, fitted_law, law, threshold_epsilon, worst_pair

# What DPNormQuantile releases.


QUANTILE_NAN, INF = float("nan"), float("inf")
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


@pytest.mark.sample(6, 18)
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


@pytest.mark.sample(1)
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


def test_rows_at_the_center_get_the_smallest_radius():
    rows = np.full((500, 2), 3.0)
    model = DPNormQuantile(**SURE, center=[3.0, 3.0], data_norm=10.0, resolution=1e-6).fit(rows)
    assert 0 < model.threshold_ <= 1e-5
    zeros = DPNormQuantile(**SURE, resolution=0.5).fit(np.zeros((500, 2)))
    assert 0.4 < zeros.threshold_ <= 0.5


def test_distances_are_taken_from_the_center():
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


@pytest.mark.sample(6, 10)
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
    rows = np.concatenate([X, np.full((5000, 3), QUANTILE_NAN)])
    with sklearn.config_context(assume_finite=True):
        fitted = DPNormQuantile(**SURE, data_norm=10.0).fit(rows).threshold_
        nobody = DPNormQuantile(**SURE).fit(np.full((500, 2), INF)).threshold_
    assert np.quantile(NORMS, 0.8) < fitted < 1.1 * NORMS.max()
    assert 0 < nobody < 1e-6


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", v) for v in (0, -1, QUANTILE_NAN, INF, "1", None, True)]
    + [("data_norm", v) for v in (0, -1, QUANTILE_NAN, INF, 1e-200, True)]
    + [("tail", v) for v in (0, -1, 1.5, "a", QUANTILE_NAN)]
    + [("resolution", v) for v in (0, 1, -1, QUANTILE_NAN, "a", None)]
    + [("failure", v) for v in (0, 1, -1, QUANTILE_NAN, None)]
    + [
        ("center", v)
        for v in ([0.0, 0.0], [QUANTILE_NAN] * 3, [INF] * 3, [1.0] * 3, [[0.0] * 3], "abc")
    ]
    + [("adjacency", "remove-one"), ("random_state", -1), ("random_state", "a")],
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
        (np.full((6, 3), QUANTILE_NAN), "NaN"),
        (np.full((6, 3), INF), "infinity"),
        ([["60", "kilos"]] * 6, "numeric"),
    ],
)
def test_bad_data(data, message):
    with pytest.raises((ValueError, TypeError), match=message):
        DPNormQuantile().fit(data)


def test_sparse_rows_around_a_center_are_refused():
    with pytest.raises((ValueError, TypeError), match=r"[Ss]parse"):
        DPNormQuantile(center=[0.1] * 3).fit(sparse.csr_array(X))


# What DPFeatureCenterer releases, and how it maps rows and coefficients.


centerer_rng = np.random.default_rng(0)
CENTERER_X = centerer_rng.normal(size=(2000, 3))
Y = (CENTERER_X[:, 0] + 0.3 * centerer_rng.normal(size=2000) > 0).astype(int)
OFFSET = np.array([30.0, -40.0, 0.0])


def test_center_and_radius_are_near_the_rows():
    model = DPFeatureCenterer(4.0, data_norm=100.0, random_state=0).fit(CENTERER_X + OFFSET)
    distances = np.linalg.norm(CENTERER_X + OFFSET - model.center_, axis=1)
    assert np.linalg.norm(model.center_ - OFFSET) < 6 * 100 * 2 * np.sqrt(3) / 2000 / 0.4
    assert np.quantile(distances, 0.95) < model.threshold_ < 1.05 * distances.max()
    shifted = model.transform(CENTERER_X + OFFSET)
    assert np.mean(np.linalg.norm(shifted, axis=1) > 1) < 0.05


def test_transform_is_not_clipped_and_is_undone():
    model = DPFeatureCenterer(data_norm=100.0, random_state=0).fit(CENTERER_X + OFFSET)
    far = np.array([[1e6, -1e6, 3.0]])
    expected = (far - model.center_) / model.threshold_
    np.testing.assert_allclose(model.transform(far), expected, rtol=1e-15)
    np.testing.assert_allclose(model.inverse_transform(expected), far, rtol=1e-12)
    rows = CENTERER_X + OFFSET
    np.testing.assert_allclose(model.inverse_transform(model.transform(rows)), rows, rtol=1e-12)


@pytest.mark.sample(1)
@every_adjacency
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (2.0, 1e-3)])
def test_the_budget_is_kept_and_used(epsilon, delta, adjacency):
    model = DPFeatureCenterer(epsilon, delta, adjacency=adjacency).fit(CENTERER_X)
    assert model.privacy_spent_ == (model.ledger_.epsilon(delta), delta)
    assert 0.98 * epsilon < model.privacy_spent_[0] <= epsilon
    laws = [release.noise.law for release in model.ledger_.releases]
    assert laws == ["gaussian", "exponential"]
    assert {release.adjacency for release in model.ledger_.releases} == {adjacency}


@pytest.mark.sample(2)
@pytest.mark.parametrize("share", [1e-6, 0.1, 0.9, 1 - 1e-9])
def test_any_share_fits_the_budget(share):
    model = DPFeatureCenterer(1.0, 1e-5, threshold_share=share, data_norm=5.0).fit(CENTERER_X)
    assert model.privacy_spent_[0] <= 1.0
    expected = 1 if share < 1e-3 else 2
    assert len(model.ledger_.releases) == expected


@pytest.mark.parametrize(("threshold", "expected"), [(None, 1.0), (2.5, 2.5), (7, 7.0)])
def test_a_public_threshold_costs_nothing(threshold, expected):
    model = DPFeatureCenterer(1.0, threshold=threshold, data_norm=5.0).fit(CENTERER_X)
    assert model.threshold_ == expected
    (release,) = model.ledger_.releases
    assert release.noise.mu == pytest.approx(gdp_mu(1.0, 1e-6))
    shifted = (CENTERER_X - model.center_) / expected
    np.testing.assert_allclose(model.transform(CENTERER_X), shifted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n_rows", [1, 2, 30])
def test_too_few_rows_for_a_radius(n_rows):
    model = DPFeatureCenterer(1.0, data_norm=5.0).fit(CENTERER_X[:n_rows])
    assert model.threshold_ == 10.0
    (release,) = model.ledger_.releases
    # what the radius does not need goes to the center
    assert release.noise.mu == pytest.approx(gdp_mu(1.0, 1e-6))
    scaled = DPFeatureCenterer(1.0, with_mean=False, data_norm=5.0).fit(
        CENTERER_X[: min(n_rows, 20)]
    )
    assert scaled.threshold_ == 5.0
    assert scaled.privacy_spent_ == (0.0, 0.0)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_scaling_only(container):
    rows = np.where(np.abs(CENTERER_X) > 0.7, CENTERER_X, 0.0)
    model = DPFeatureCenterer(2.0, 0.0, with_mean=False, data_norm=50.0, random_state=0)
    model.fit(container(rows))
    assert get_tags(model).input_tags.sparse
    assert model.privacy_spent_ == (2.0, 0.0)
    np.testing.assert_array_equal(model.center_, 0.0)
    assert 2 < model.threshold_ < 6
    for mapped, expected in (
        (model.transform(container(rows)), rows / model.threshold_),
        (model.inverse_transform(container(rows)), rows * model.threshold_),
    ):
        assert type(mapped) is type(container(rows))
        np.testing.assert_allclose(mapped @ np.eye(3), expected, rtol=1e-12)
    coef, intercept = model.original_coef(np.ones(3), 0.5)
    assert intercept == 0.5
    np.testing.assert_allclose(coef * model.threshold_, 1.0)


def test_sparse_rows_are_not_shifted():
    rows = sparse.csr_array(np.eye(3))
    assert not get_tags(DPFeatureCenterer()).input_tags.sparse
    with pytest.raises(TypeError, match="with_mean=False"):
        DPFeatureCenterer().fit(rows)
    with pytest.raises(TypeError, match="with_mean=False"):
        DPFeatureCenterer().fit(CENTERER_X).transform(rows)


def test_nothing_to_do_costs_nothing():
    model = DPFeatureCenterer(with_mean=False, threshold=None).fit(CENTERER_X)
    np.testing.assert_array_equal(model.transform(CENTERER_X), CENTERER_X)
    assert model.privacy_spent_ == (0.0, 0.0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_coefficients_for_original_rows(n_classes, offset):
    y = np.arange(2000) % n_classes
    rows = CENTERER_X + offset
    public = {"classes": range(n_classes), "data_norm": 100.0, "solver": "accelerated"}
    model = make_pipeline(
        DPFeatureCenterer(1.0, 1e-5, data_norm=2 * offset + 5, random_state=0),
        DPLogisticRegression(8.0, 1e-5, random_state=0, **public),
    )
    with pytest.warns(SeededNoiseWarning):
        model.fit(rows, y)
    centerer, classifier = model
    coef, intercept = centerer.original_coef(classifier.coef_, classifier.intercept_)
    assert coef.shape == classifier.coef_.shape
    scores = rows @ coef.T + intercept
    expected = model.decision_function(rows)
    np.testing.assert_allclose(np.squeeze(scores), expected, rtol=1e-10, atol=1e-10)


def test_one_row_of_coefficients():
    model = DPFeatureCenterer(data_norm=100.0, random_state=0).fit(CENTERER_X + OFFSET)
    coef, intercept = model.original_coef([1.0, -2.0, 0.5], 0.25)
    assert coef.shape == (3,)
    np.testing.assert_allclose(
        (CENTERER_X + OFFSET) @ coef + intercept,
        model.transform(CENTERER_X + OFFSET) @ [1.0, -2.0, 0.5] + 0.25,
    )


def accuracy(model, rows):
    scores = []
    for seed in range(3):
        set_random_state(model, seed)
        scores.append(model.fit(rows, Y).score(rows, Y))
    return np.mean(scores)


@pytest.mark.full
def test_centering_helps_rows_that_are_far_off():
    rows = CENTERER_X + 100.0
    # a solver that moves no rows by itself
    plain = DPLogisticRegression(2.0, data_norm=200.0, classes=(0, 1), solver="accelerated")
    centered = make_pipeline(
        DPFeatureCenterer(1.0, 5e-7, data_norm=200.0),
        DPLogisticRegression(1.0, 5e-7, data_norm=1.0, classes=(0, 1)),
    )
    assert accuracy(plain, rows) < 0.7
    assert accuracy(centered, rows) > 0.8
    epsilon, delta = privacy_spent(centered)
    assert epsilon <= 2.0
    assert delta == 1e-6
    assert privacy_spent(centered).not_covered == ()


@pytest.mark.full
@pytest.mark.parametrize("mechanism", ["coinpress", "shifted-clipped"])
def test_means_that_do_not_pay_for_the_offset(mechanism):
    rows = CENTERER_X + 1e6
    # a narrower grid would end before the rows do
    model = make_pipeline(
        DPFeatureCenterer(4.0, mechanism=mechanism, data_norm=2e6),
        DPLogisticRegression(4.0, classes=(0, 1), data_norm=1.0),
    )
    assert accuracy(model, rows) > 0.9
    assert np.linalg.norm(model[0].center_ - 1e6) < 1
    assert 2 < model[0].threshold_ < 8
    assert model[0].privacy_spent_[0] <= 4.0
    coef, intercept = model[0].original_coef(model[1].coef_, model[1].intercept_)
    # those that the classifier does not clip
    near = np.linalg.norm(model[0].transform(rows), axis=1) <= 1
    # the center is a million radii off: as many digits are lost
    np.testing.assert_allclose(
        np.squeeze(rows @ coef.T + intercept)[near], model.decision_function(rows)[near], atol=1e-7
    )


def test_a_budget_that_cannot_be_spent_is_named():
    with pytest.raises(ValueError, match="budget"):
        DPFeatureCenterer(1e-300, 1e-300).fit(CENTERER_X)


def test_seeds_frames_and_types():
    frame = pd.DataFrame(CENTERER_X.astype(np.float32), columns=["a", "b", "c"])
    model = DPFeatureCenterer(random_state=0).set_output(transform="pandas")
    with pytest.warns(SeededNoiseWarning) as caught:
        mapped = model.fit(frame).transform(frame)
    assert caught[0].filename == __file__
    assert list(mapped.columns) == list(model.get_feature_names_out()) == ["a", "b", "c"]
    assert set(mapped.dtypes) == {np.dtype(np.float32)}
    again = DPFeatureCenterer(random_state=0).fit(CENTERER_X.astype(np.float32))
    np.testing.assert_array_equal(again.center_, model.center_)
    assert np.all(again.center_ != DPFeatureCenterer(random_state=1).fit(CENTERER_X).center_)
    frozen = CENTERER_X.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(
        DPFeatureCenterer().fit(frozen).transform(frozen).shape, CENTERER_X.shape
    )
    np.testing.assert_array_equal(frozen, CENTERER_X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_overflows_is_the_largest_number(dtype):
    model = DPFeatureCenterer(threshold=1e-100).fit(CENTERER_X)
    largest = np.finfo(dtype).max
    mapped = model.transform(np.array([[largest, -largest, 0.0]], dtype=dtype))
    assert mapped.dtype == dtype
    np.testing.assert_array_equal(mapped[0, :2], [largest, -largest])
    assert np.isfinite(mapped).all()


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1.0, 0.0])
@pytest.mark.parametrize("data_norm", [1e-100, 1.0, 1e100])
def test_extreme_rows(data_norm, scale):
    model = DPFeatureCenterer(data_norm=data_norm).fit(CENTERER_X * scale)
    assert np.linalg.norm(model.center_) <= data_norm * (1 + 1e-9)
    assert 0 < model.threshold_ <= 2 * data_norm
    assert np.isfinite(model.transform(CENTERER_X * scale)).all()
    assert np.isfinite(model.inverse_transform(CENTERER_X * scale)).all()


@pytest.mark.full
def test_equal_rows_and_a_constant_feature():
    rows = np.tile([[3.0, 4.0]], (2000, 1))
    model = DPFeatureCenterer(2.0, data_norm=10.0, random_state=0).fit(rows)
    distance = np.linalg.norm(model.center_ - rows[0])
    assert distance <= model.threshold_ <= 1.05 * distance
    constant = np.column_stack([CENTERER_X, np.full(2000, 7.0)])
    assert np.isfinite(DPFeatureCenterer(data_norm=10.0).fit_transform(constant)).all()
    zeros = DPFeatureCenterer(2.0, with_mean=False, random_state=0).fit(np.zeros((500, 2)))
    assert 0 < zeros.threshold_ < 1e-8


@pytest.mark.full
def test_centering_many_features():
    rows = np.random.default_rng(0).normal(size=(60, 20_000))
    model = DPFeatureCenterer(2.0, data_norm=200.0, threshold_share=0.9).fit(rows)
    assert 0 < model.threshold_ <= 400
    assert model.center_.shape == (20_000,)


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", v) for v in (0, -1, QUANTILE_NAN, INF, "1", None, True)]
    + [("delta", v) for v in (-0.1, 0.0, 1, QUANTILE_NAN, INF, None, True)]
    + [("data_norm", v) for v in (0, -1, QUANTILE_NAN, INF, 1e-200, True)]
    + [("threshold", v) for v in ("public", 0, -1, QUANTILE_NAN, INF, True)]
    + [("threshold_share", v) for v in (0, 1, -0.5, QUANTILE_NAN, None)]
    + [("mechanism", v) for v in ("laplace", None)]
    + [("adjacency", "remove-one"), ("random_state", -1), ("random_state", "a")],
)
def test_bad_parameters_of_centering_are_named(name, value):
    for skipped in (False, True):
        model = DPFeatureCenterer(**{name: value})
        with (
            sklearn.config_context(skip_parameter_validation=skipped),
            pytest.raises((ValueError, TypeError), match=name),
        ):
            model.fit(CENTERER_X)
        assert not hasattr(model, "ledger_")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.empty((0, 3)), "0 sample"),
        (np.zeros(60), "1D array"),
        (np.full((6, 3), QUANTILE_NAN), "NaN"),
        (np.full((6, 3), INF), "infinity"),
        ([["60", "kilos"]] * 6, "numeric"),
    ],
)
def test_bad_data_for_centering(data, message):
    with pytest.raises((ValueError, TypeError), match=message):
        DPFeatureCenterer().fit(data)


# The score of a radius keeps the spread it states, and the draw its exact law.


EPSILON = 2.0
DENSE = LAYOUTS[:5]
every_sensitivity_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def admit(X, null=None, radius=1.0):
    null = np.zeros(X.shape[0], dtype=bool) if null is None else null
    return rows_in_ball(X, null, null, radius, 0.0)


def naive_distances(X, null, query, radius=1.0):
    """Return the distances of the rows that are not null, one by one."""
    distances = []
    for x, is_null in zip(as_dense(X), null, strict=True):
        if is_null or not np.isfinite(x).all():
            continue
        scale = max(np.abs(x).max(), radius)
        unit = x / scale / max(np.linalg.norm(x / scale), radius / scale)
        distances.append(np.linalg.norm(unit - (0.0 if query.center is None else query.center)))
    return np.array(distances)


def naive_scores(X, null, query):
    """Return the scores as the definition says, radius by radius."""
    distances, scores = naive_distances(X, null, query), []
    beyond = [np.sum(distances > t) for t in query.grid()[:-1]] + [0]
    for k, count in enumerate(beyond):
        too_large = query.tail - beyond[k - 1] if k else 0
        scores.append(max(count - query.tail, too_large, 0))
    return np.array(scores)


def small_worlds(n_rows):
    """Return all data sets of rows in 4 shells of a grid of 4 radii, or null (NaN)."""
    shells = [0.0, 0.3, 0.6, 1.0, NAN]
    return {world: np.array(world)[:, None] for world in itertools.product(shells, repeat=n_rows)}


def small_neighbours(world, adjacency):
    """Yield all neighbours of a small world; a replaced row may be or become null."""
    others = [0.0, 0.3, 0.6, 1.0, NAN] if adjacency == "replace-one" else [NAN]
    for i, other in itertools.product(range(len(world)), others):
        yield (*world[:i], other, *world[i + 1 :])


@pytest.mark.sample(1)
@every_sensitivity_adjacency
@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_brute_force_over_all_small_neighbours(n_rows, adjacency):
    changes, worst = set(), 0.0
    worlds = small_worlds(n_rows)
    for tail in range(n_rows + 2):
        query = NormThreshold(None, 1.0, 2.0, 4, tail)
        noise = ExponentialMechanism(EPSILON).calibrate(query.sensitivity(adjacency, n_rows), 1)
        scores = {world: query.scores(admit(X)) for world, X in worlds.items()}
        logs = {world: law(query, noise, s) for world, s in scores.items()}
        keys = {repr(world): world for world in worlds}
        for world, score in scores.items():
            assert np.array_equal(score, naive_scores(worlds[world], [False] * n_rows, query))
            for other in small_neighbours(world, adjacency):
                other = keys[repr(other)]
                change = scores[other] - score
                changes |= set(change.tolist())
                assert np.ptp(change) <= query.sensitivity(adjacency, n_rows).spread
                worst = max(worst, np.abs(logs[other] - logs[world]).max())
    assert worst <= EPSILON
    assert changes == {-1, 0, 1}


@every_sensitivity_adjacency
def test_the_spread_is_attained_by_one_pair(adjacency):
    query = NormThreshold(None, 1.0, 1.05, 400, 3)
    first, second = worst_pair(adjacency, 3, query.grid()[0])
    change = query.scores(admit(second)) - query.scores(admit(first))
    assert np.ptp(change) == query.sensitivity(adjacency, len(first)).spread == 2


@pytest.mark.covering
@every_sensitivity_adjacency
@pytest.mark.parametrize("centered", [False, True])
@on_examples(75)
def test_any_neighbours_keep_the_spread(centered, adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-100, 1e100, 3.7]))
    layouts = DENSE if centered else LAYOUTS
    pair = data.draw(neighbours(adjacency, radius=radius, layouts=layouts))
    n_rows, n_features = pair[0].X.shape
    center = np.full(n_features, 0.5 / n_features) if centered else None
    tail = data.draw(st.integers(0, n_rows + 1))
    query = NormThreshold(center, 2.0 if centered else 1.0, 1.3, 60, tail)
    scores = [query.scores(admit(rows.X, rows.null, radius)) for rows in pair]
    change = scores[1] - scores[0]
    assert np.ptp(change) <= query.sensitivity(adjacency, n_rows).spread
    assert np.abs(change).max() <= 1
    for score in scores:
        assert score.min() == 0 or tail > n_rows
        # whole numbers, of which sums are exact
        np.testing.assert_array_equal(score, score.astype(np.int64))


@on_examples(50)
def test_scores_are_what_the_definition_says(data):
    rows, _ = data.draw(neighbours("replace-one"))
    query = NormThreshold(None, 1.0, math.sqrt(2.0) + 0.1, 9, 2)
    distances = naive_distances(rows.X, rows.null, query)
    # a distance that is a radius, up to rounding, may go either way
    if not np.isclose(distances[:, None], query.grid()[:-1], rtol=1e-6).any():
        expected = naive_scores(rows.X, rows.null, query)
        np.testing.assert_array_equal(query.scores(admit(rows.X, rows.null)), expected)


def moved_by_awkward_row(query, layout, radius=2.0):
    """Return how the scores change when one row becomes one of tiny numbers.

    All other rows lie on one radius of the grid, up to rounding either way.
    """
    rng = np.random.default_rng(0)
    first = rng.normal(size=(600, 7))
    first *= query.grid()[query.points // 2] / np.linalg.norm(first, axis=1)[:, None]
    first = radius * (first if query.center is None else first + query.center)
    second = first.copy()
    second[0] = 1e-310
    if layout == "F":
        # a part of more rows: what is column-major as a whole is admitted row by row
        pair = [np.asfortranarray(np.concatenate([X, X]))[:600] for X in (first, second)]
    else:
        pair = [first, second]
    pair = [admit(X, radius=radius) for X in pair]
    return np.abs(query.scores(pair[0]) - query.scores(pair[1]))


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("centered", [False, True])
def test_a_row_moves_no_distance_but_its_own(centered, layout, monkeypatch):
    # of rows that are too many to be copied at once, every chunk keeps its layout
    monkeypatch.setattr(linear, "LARGE", 0)
    # tiny numbers make the chunk be copied: the other rows must not notice, to the last bit
    center = np.full(7, 0.1) if centered else None
    query = NormThreshold(center, 2.0, 1.01, 400, 100)
    assert moved_by_awkward_row(query, layout).max() <= 1


@pytest.mark.parametrize("layout", DENSE)
def test_distances_do_not_depend_on_the_layout(layout):
    from tests._neighbours import as_layout

    query = NormThreshold(np.full(3, 0.1), 2.0, 1.05, 300, 20)
    X = np.random.default_rng(1).normal(size=(200, 3)).astype(np.float32).astype(np.float64)
    expected = query.scores(admit(X))
    np.testing.assert_array_equal(query.scores(admit(as_layout(X, layout))), expected)


def test_sparse_and_dense_rows_agree():
    from scipy import sparse

    X = np.random.default_rng(1).normal(size=(500, 9))
    X[np.abs(X) < 1] = 0
    query = NormThreshold(None, 1.0, 1.05, 300, 20)
    expected = query.scores(admit(X, radius=5.0))
    np.testing.assert_array_equal(query.scores(admit(sparse.csr_array(X), radius=5.0)), expected)


def test_a_point_of_the_sphere_is_within_the_largest_radius():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 6))
    query = NormThreshold(None, 1.0, 1.05, 10, 5)
    assert query.scores(admit(X, radius=1e-3))[-1] == 0


@pytest.mark.full
def test_draws_follow_the_law():
    query = NormThreshold(None, 1.0, 2.0, 4, 2)
    rows = admit(np.array([[0.05], [0.2], [0.3], [0.6], [0.7], [1.0]]))
    noise = ExponentialMechanism(1.0).calibrate(query.sensitivity("replace-one", 6), 1)
    bits, n_draws = SeededBits(0), 4000
    counts = np.bincount(
        [int(query.draw(rows, noise, bits)[0]) for _ in range(n_draws)], minlength=4
    )
    expected = np.exp(law(query, noise, query.scores(rows)))
    assert expected.sum() == pytest.approx(1)
    assert np.sum((counts - n_draws * expected) ** 2 / (n_draws * expected)) < 22


# -- whole estimators ----------------------------------------------------------------


@every_sensitivity_adjacency
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_claim_of_a_fit_is_kept_and_tight(epsilon, adjacency):
    model = DPNormQuantile(epsilon, tail=3, adjacency=adjacency, resolution=1e-12)
    smallest = plan_threshold(epsilon, n_rows=4, centered=False, resolution=1e-12).smallest
    measured = threshold_epsilon(model, *worst_pair(adjacency, 3, smallest))
    assert 0.99 * epsilon <= measured <= epsilon


@every_sensitivity_adjacency
@on_examples(30)
def test_the_claim_is_kept_on_any_neighbours(adjacency, data):
    first, second = data.draw(neighbours(adjacency, null_row=NAN))
    model = DPNormQuantile(EPSILON, tail=data.draw(st.integers(1, 3)), adjacency=adjacency)
    if first.X.shape[0] > model.tail:
        assert threshold_epsilon(model, first.X, second.X) <= EPSILON


@every_sensitivity_adjacency
def test_the_claims_of_center_and_radius(adjacency):
    model = DPFeatureCenterer(4.0, 1e-5, threshold_share=0.9, adjacency=adjacency, random_state=0)
    first = np.tile([[0.0, 0.5]], (30, 1))
    first[0] = [9.0, 0.0]
    second = first.copy()
    second[0] = NAN if adjacency == "zero-out" else [-9.0, 0.0]

    def fit(X):
        with drawn(None):
            model.fit(X)

    measured = _audit.coupled_mu(fit, first, second)
    ledger = model.fit(first).ledger_
    assert 0.999 * ledger.mu <= measured <= ledger.mu
    assert ledger.epsilon(1e-5) <= 4.0
    # given one center, the radius keeps the price on the ledger
    with _audit.recorded([np.array([3.0, 10.0])] * 2):
        measured = threshold_epsilon(model, first, second)
    (price,) = [r.noise.epsilon for r in ledger.releases if not r.noise.mu]
    assert price == 3.6
    assert measured <= price


def test_the_budget_is_composed_and_not_summed():
    X = np.random.default_rng(0).normal(size=(400, 2))
    ledger = DPFeatureCenterer(1.0, 1e-6).fit(X).ledger_
    assert gdp_mu(0.5, 1e-6) * 1.01 < ledger.mu < gdp_mu(1.0, 1e-6)
    assert 0.99 < ledger.epsilon(1e-6) <= 1.0


# Known bugs of private radii and centers, planted one by one: the audits see them all.
#
# Every test first shows that the audit passes on the real code.


MUTANT_EPSILON, DELTA = 2.0, 1e-5
mutant_rng = np.random.default_rng(0)
ROWS = mutant_rng.normal(size=(300, 2))


def worst_ratio(adjacency="replace-one"):
    """Return the exact privacy loss of a drawn radius, relative to the claim."""
    model = DPNormQuantile(MUTANT_EPSILON, tail=3, adjacency=adjacency)
    smallest = plan_threshold(MUTANT_EPSILON, n_rows=4, centered=False).smallest
    return threshold_epsilon(model, *worst_pair(adjacency, 3, smallest)) / MUTANT_EPSILON


@every_adjacency
def test_half_the_spread_is_caught(adjacency, monkeypatch):
    assert 0.98 <= worst_ratio(adjacency) <= 1
    real = NormThreshold.sensitivity
    monkeypatch.setattr(
        NormThreshold, "sensitivity", lambda self, *args: replace(real(self, *args), spread=1.0)
    )
    assert worst_ratio(adjacency) > 1.9


def test_half_the_temperature_is_caught(monkeypatch):
    assert worst_ratio() <= 1
    real = _quantiles.rate
    monkeypatch.setattr(_quantiles, "rate", lambda b, t: real(b, t / 2))
    assert worst_ratio() > 1.9


def test_a_score_in_squares_is_caught(monkeypatch):
    assert worst_ratio() <= 1
    real = NormThreshold.scores
    monkeypatch.setattr(NormThreshold, "scores", lambda self, rows: real(self, rows) ** 2)
    first = np.ones((9, 1))
    second = first.copy()
    second[0] = 0.0
    model = DPNormQuantile(MUTANT_EPSILON, tail=3)
    assert threshold_epsilon(model, first, second) > MUTANT_EPSILON


# -- what leaves without a release ---------------------------------------------------


def replayed(model, first, second):
    """Return whether equal outputs of the mechanisms give equal fitted attributes.

    What is public must be a function of what was released: so it must not matter which of
    two data sets the outputs are replayed on.
    """
    fitted = []
    for X in (first, second):
        with drawn(None), _audit.recorded([np.array([7.0, -5.0])] * 2):
            fitted.append(vars(clone(model).fit(X)))
    keys = [key for key in fitted[0] if key.endswith("_")]
    return all(np.array_equal(fitted[0][key], fitted[1][key]) for key in keys)


CENTERER = DPFeatureCenterer(MUTANT_EPSILON, DELTA, data_norm=5.0)
QUANTILE = DPNormQuantile(MUTANT_EPSILON, data_norm=5.0)
NEIGHBOUR = np.concatenate([[[9.0, 0.0]], ROWS[1:]])


def largest_distance(self, curator, center=None):
    rows = curator._admitted(None)
    gaps = np.concatenate([chunk.explicit() for chunk in rows.chunks])
    return float(np.linalg.norm(gaps - (0.0 if center is None else center), axis=1).max())


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", [CENTERER, QUANTILE], ids=str)
def test_the_largest_distance_for_a_radius_is_caught(model, monkeypatch):
    assert replayed(model, ROWS, NEIGHBOUR)
    monkeypatch.setattr(_quantiles.ThresholdPlan, "run", largest_distance)
    assert not replayed(model, ROWS, NEIGHBOUR)
    # the ledger does not show it: only the replay does
    assert model.fit(ROWS).ledger_.epsilon(DELTA) <= MUTANT_EPSILON


@pytest.mark.full
def test_a_draw_that_is_the_best_radius_is_caught(monkeypatch):
    def best(self, rows, noise, source):
        return np.array([np.argmin(self.scores(rows))], dtype=float)

    def outcomes(X):
        model = DPNormQuantile(MUTANT_EPSILON, tail=1, resolution=0.5)
        return {model.fit(X).threshold_ for _ in range(60)}

    pair = np.array([[0.9], [0.9], [0.6]]), np.array([[0.9], [0.6], [0.6]])
    assert outcomes(pair[0]) & outcomes(pair[1])
    monkeypatch.setattr(NormThreshold, "draw", best)
    # no output is possible in both worlds
    assert not outcomes(pair[0]) & outcomes(pair[1])


def test_a_mean_without_noise_is_caught(monkeypatch):
    assert replayed(CENTERER, ROWS, NEIGHBOUR)

    def exact(self, curator):
        rows = np.concatenate([chunk.explicit() for chunk in curator._admitted(None).chunks])
        return rows.mean(axis=0)

    monkeypatch.setattr(GaussianMean, "run", exact)
    assert not replayed(CENTERER, ROWS, NEIGHBOUR)


# -- the budget ----------------------------------------------------------------------


def test_a_center_that_takes_all_of_the_budget_is_caught(monkeypatch):
    assert CENTERER.fit(ROWS).ledger_.epsilon(DELTA) <= MUTANT_EPSILON
    monkeypatch.setattr(
        "skdp.preprocessing._feature_centerer.mu_beside", lambda e, d, *_: gdp_mu(e, d)
    )
    with pytest.raises(BudgetError):
        CENTERER.fit(ROWS)
    # without that check the ledger tells
    monkeypatch.setattr(Record, "fits", lambda *_: True)
    assert CENTERER.fit(ROWS).privacy_spent_[0] > 1.4 * MUTANT_EPSILON


def test_a_radius_that_takes_all_of_the_budget_is_caught(monkeypatch):
    monkeypatch.setattr(_quantiles, "ExponentialMechanism", lambda e: ExponentialMechanism(2 * e))
    with pytest.raises(BudgetError):
        CENTERER.fit(ROWS)
    with pytest.raises(BudgetError):
        QUANTILE.fit(ROWS)


# -- utility and floats --------------------------------------------------------------


def overshoot(X, model):
    """Return the exact probability of a radius beyond all rows."""
    query, log_law = fitted_law(model, X)
    largest = np.linalg.norm(X, axis=1).max() / model.data_norm
    return np.exp(log_law)[query.grid() > 1.05 * largest * (1 + 1e-9)].sum()


def test_a_tail_without_its_margin_is_caught(monkeypatch):
    X = ROWS / 1e3
    model = DPNormQuantile(1.0)
    assert overshoot(X, model) <= model.failure
    real = _quantiles.plan_threshold

    def marginless(*args, tail=None, **options):
        return replace(real(*args, tail=tail, **options), tail=5)

    monkeypatch.setattr("skdp.location._norm_quantile.plan_threshold", marginless)
    assert overshoot(X, model) > 0.5


@pytest.mark.parametrize("centered", [False, True])
def test_distances_that_depend_on_the_layout_are_caught(centered, monkeypatch):
    query = NormThreshold(np.full(7, 0.1) if centered else None, 2.0, 1.01, 400, 100)
    # as of rows that are too many to be copied at once: each chunk is, where it is multiplied
    monkeypatch.setattr(linear, "LARGE", 0)
    assert moved_by_awkward_row(query, "F").max() <= 1

    def quick(center, chunk):
        # products of whatever layout the chunk has, without `row_major`
        gaps = chunk.X * chunk.factor[:, None] - (0.0 if center is None else center)
        return np.sqrt(np.einsum("ij,ij->i", gaps, gaps))

    monkeypatch.setattr(_quantiles, "distances_from", quick)
    assert moved_by_awkward_row(query, "F").max() > 1

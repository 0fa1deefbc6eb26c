# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What DPFeatureCenterer releases, and how it maps rows and coefficients."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils._testing import set_random_state

from skdp import DPFeatureCenterer, DPLogisticRegression, privacy_spent
from skdp.exceptions import SeededNoiseWarning
from skdp.privacy import gdp_mu

NAN, INF = float("nan"), float("inf")
rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 3))
Y = (X[:, 0] + 0.3 * rng.normal(size=2000) > 0).astype(int)
OFFSET = np.array([30.0, -40.0, 0.0])
every_adjacency = pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])


def test_centre_and_radius_are_near_the_rows():
    model = DPFeatureCenterer(4.0, data_norm=100.0, random_state=0).fit(X + OFFSET)
    distances = np.linalg.norm(X + OFFSET - model.center_, axis=1)
    assert np.linalg.norm(model.center_ - OFFSET) < 6 * 100 * 2 * np.sqrt(3) / 2000 / 0.4
    assert np.quantile(distances, 0.95) < model.threshold_ < 1.05 * distances.max()
    shifted = model.transform(X + OFFSET)
    assert np.mean(np.linalg.norm(shifted, axis=1) > 1) < 0.05


def test_transform_is_not_clipped_and_is_undone():
    model = DPFeatureCenterer(data_norm=100.0, random_state=0).fit(X + OFFSET)
    far = np.array([[1e6, -1e6, 3.0]])
    expected = (far - model.center_) / model.threshold_
    np.testing.assert_allclose(model.transform(far), expected, rtol=1e-15)
    np.testing.assert_allclose(model.inverse_transform(expected), far, rtol=1e-12)
    rows = X + OFFSET
    np.testing.assert_allclose(model.inverse_transform(model.transform(rows)), rows, rtol=1e-12)


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (2.0, 1e-3)])
def test_the_budget_is_kept_and_used(epsilon, delta, adjacency):
    model = DPFeatureCenterer(epsilon, delta, adjacency=adjacency).fit(X)
    assert model.privacy_spent_ == (model.ledger_.epsilon(delta), delta)
    assert 0.98 * epsilon < model.privacy_spent_[0] <= epsilon
    laws = [release.noise.law for release in model.ledger_.releases]
    assert laws == ["gaussian", "exponential"]
    assert {release.adjacency for release in model.ledger_.releases} == {adjacency}


@pytest.mark.parametrize("share", [1e-6, 0.1, 0.9, 1 - 1e-9])
def test_any_share_fits_the_budget(share):
    model = DPFeatureCenterer(1.0, 1e-5, threshold_share=share, data_norm=5.0).fit(X)
    assert model.privacy_spent_[0] <= 1.0
    expected = 1 if share < 1e-3 else 2
    assert len(model.ledger_.releases) == expected


@pytest.mark.parametrize(("threshold", "expected"), [(None, 1.0), (2.5, 2.5), (7, 7.0)])
def test_a_public_threshold_costs_nothing(threshold, expected):
    model = DPFeatureCenterer(1.0, threshold=threshold, data_norm=5.0).fit(X)
    assert model.threshold_ == expected
    (release,) = model.ledger_.releases
    assert release.noise.mu == pytest.approx(gdp_mu(1.0, 1e-6))
    shifted = (X - model.center_) / expected
    np.testing.assert_allclose(model.transform(X), shifted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n_rows", [1, 2, 30])
def test_too_few_rows_for_a_radius(n_rows):
    model = DPFeatureCenterer(1.0, data_norm=5.0).fit(X[:n_rows])
    assert model.threshold_ == 10.0
    (release,) = model.ledger_.releases
    # what the radius does not need goes to the centre
    assert release.noise.mu == pytest.approx(gdp_mu(1.0, 1e-6))
    scaled = DPFeatureCenterer(1.0, with_mean=False, data_norm=5.0).fit(X[: min(n_rows, 20)])
    assert scaled.threshold_ == 5.0
    assert scaled.privacy_spent_ == (0.0, 0.0)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_scaling_only(container):
    rows = np.where(np.abs(X) > 0.7, X, 0.0)
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
        DPFeatureCenterer().fit(X).transform(rows)


def test_nothing_to_do_costs_nothing():
    model = DPFeatureCenterer(with_mean=False, threshold=None).fit(X)
    np.testing.assert_array_equal(model.transform(X), X)
    assert model.privacy_spent_ == (0.0, 0.0)


@pytest.mark.covering
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_coefficients_for_original_rows(n_classes, offset):
    y = np.arange(2000) % n_classes
    rows = X + offset
    model = make_pipeline(
        DPFeatureCenterer(1.0, 1e-5, data_norm=2 * offset + 5, random_state=0),
        DPLogisticRegression(8.0, 1e-5, classes=range(n_classes), random_state=0),
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
    model = DPFeatureCenterer(data_norm=100.0, random_state=0).fit(X + OFFSET)
    coef, intercept = model.original_coef([1.0, -2.0, 0.5], 0.25)
    assert coef.shape == (3,)
    np.testing.assert_allclose(
        (X + OFFSET) @ coef + intercept, model.transform(X + OFFSET) @ [1.0, -2.0, 0.5] + 0.25
    )


def accuracy(model, rows):
    scores = []
    for seed in range(3):
        set_random_state(model, seed)
        scores.append(model.fit(rows, Y).score(rows, Y))
    return np.mean(scores)


def test_centring_helps_rows_that_are_far_off():
    rows = X + 100.0
    plain = DPLogisticRegression(2.0, data_norm=200.0, classes=(0, 1))
    centred = make_pipeline(
        DPFeatureCenterer(1.0, 5e-7, data_norm=200.0),
        DPLogisticRegression(1.0, 5e-7, data_norm=1.0, classes=(0, 1)),
    )
    assert accuracy(plain, rows) < 0.7
    assert accuracy(centred, rows) > 0.8
    epsilon, delta = privacy_spent(centred)
    assert epsilon <= 2.0
    assert delta == 1e-6
    assert privacy_spent(centred).not_covered == ()


@pytest.mark.parametrize("mechanism", ["coinpress", "shifted-clipped"])
def test_means_that_do_not_pay_for_the_offset(mechanism):
    rows = X + 1e6
    # a narrower grid would end before the rows do
    model = make_pipeline(
        DPFeatureCenterer(4.0, mechanism=mechanism, data_norm=2e6),
        DPLogisticRegression(4.0, classes=(0, 1)),
    )
    assert accuracy(model, rows) > 0.9
    assert np.linalg.norm(model[0].center_ - 1e6) < 1
    assert 2 < model[0].threshold_ < 8
    assert model[0].privacy_spent_[0] <= 4.0
    coef, intercept = model[0].original_coef(model[1].coef_, model[1].intercept_)
    # the centre is a million radii off: as many digits are lost
    np.testing.assert_allclose(
        np.squeeze(rows @ coef.T + intercept), model.decision_function(rows), atol=1e-7
    )


def test_a_budget_that_cannot_be_spent_is_named():
    with pytest.raises(ValueError, match="budget"):
        DPFeatureCenterer(1e-300, 1e-300).fit(X)


def test_seeds_frames_and_types():
    frame = pd.DataFrame(X.astype(np.float32), columns=["a", "b", "c"])
    model = DPFeatureCenterer(random_state=0).set_output(transform="pandas")
    with pytest.warns(SeededNoiseWarning) as caught:
        mapped = model.fit(frame).transform(frame)
    assert caught[0].filename == __file__
    assert list(mapped.columns) == list(model.get_feature_names_out()) == ["a", "b", "c"]
    assert set(mapped.dtypes) == {np.dtype(np.float32)}
    again = DPFeatureCenterer(random_state=0).fit(X.astype(np.float32))
    np.testing.assert_array_equal(again.center_, model.center_)
    assert np.all(again.center_ != DPFeatureCenterer(random_state=1).fit(X).center_)
    frozen = X.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(DPFeatureCenterer().fit(frozen).transform(frozen).shape, X.shape)
    np.testing.assert_array_equal(frozen, X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_overflows_is_the_largest_number(dtype):
    model = DPFeatureCenterer(threshold=1e-100).fit(X)
    largest = np.finfo(dtype).max
    mapped = model.transform(np.array([[largest, -largest, 0.0]], dtype=dtype))
    assert mapped.dtype == dtype
    np.testing.assert_array_equal(mapped[0, :2], [largest, -largest])
    assert np.isfinite(mapped).all()


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1.0, 0.0])
@pytest.mark.parametrize("data_norm", [1e-100, 1.0, 1e100])
def test_extreme_rows(data_norm, scale):
    model = DPFeatureCenterer(data_norm=data_norm).fit(X * scale)
    assert np.linalg.norm(model.center_) <= data_norm * (1 + 1e-9)
    assert 0 < model.threshold_ <= 2 * data_norm
    assert np.isfinite(model.transform(X * scale)).all()
    assert np.isfinite(model.inverse_transform(X * scale)).all()


def test_equal_rows_and_a_constant_feature():
    rows = np.tile([[3.0, 4.0]], (2000, 1))
    model = DPFeatureCenterer(2.0, data_norm=10.0, random_state=0).fit(rows)
    distance = np.linalg.norm(model.center_ - rows[0])
    assert distance <= model.threshold_ <= 1.05 * distance
    constant = np.column_stack([X, np.full(2000, 7.0)])
    assert np.isfinite(DPFeatureCenterer(data_norm=10.0).fit_transform(constant)).all()
    zeros = DPFeatureCenterer(2.0, with_mean=False, random_state=0).fit(np.zeros((500, 2)))
    assert 0 < zeros.threshold_ < 1e-8


def test_many_features():
    rows = np.random.default_rng(0).normal(size=(60, 20_000))
    model = DPFeatureCenterer(2.0, data_norm=200.0, threshold_share=0.9).fit(rows)
    assert 0 < model.threshold_ <= 400
    assert model.center_.shape == (20_000,)


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", v) for v in (0, -1, NAN, INF, "1", None, True)]
    + [("delta", v) for v in (-0.1, 0.0, 1, NAN, INF, None, True)]
    + [("data_norm", v) for v in (0, -1, NAN, INF, 1e-200, True)]
    + [("threshold", v) for v in ("public", 0, -1, NAN, INF, True)]
    + [("threshold_share", v) for v in (0, 1, -0.5, NAN, None)]
    + [("mechanism", v) for v in ("laplace", None)]
    + [("adjacency", "add-remove"), ("random_state", -1), ("random_state", "a")],
)
def test_bad_parameters_are_named(name, value):
    for skipped in (False, True):
        model = DPFeatureCenterer(**{name: value})
        with (
            sklearn.config_context(skip_parameter_validation=skipped),
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
        DPFeatureCenterer().fit(data)

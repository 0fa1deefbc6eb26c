# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""DPStandardScaler: accuracy, extremes, bad input, and the interface of StandardScaler."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import DPLogisticRegression, DPStandardScaler, privacy_spent

BOX = (-10.0, 10.0)
SCALES = np.array([1.0, 1e300, 1e-300, 1e100, 1e-6])


def scaler(epsilon=1.0, **options):
    return DPStandardScaler(epsilon, random_state=0, **options)


def normal_rows(n_rows, n_features, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


def errors(fitted, X):
    """Return errors of means in standard deviations, and of log scales."""
    exact = StandardScaler().fit(X)
    return (
        np.abs(fitted.mean_ - exact.mean_) / exact.scale_,
        np.abs(np.log(fitted.scale_ / exact.scale_)),
    )


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("bounds", [None, BOX])
@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_with_many_rows_it_agrees_with_the_exact_scaler(offset, bounds, adjacency):
    X = offset + normal_rows(20_000, 5)
    fitted = scaler(bounds=bounds, adjacency=adjacency).fit(X)
    mean, scale = errors(fitted, X)
    # public bounds are wide here: more is clipped by what was found
    assert mean.max() < (0.1 if bounds else 0.06)
    assert scale.max() < (0.25 if bounds else 0.06)
    np.testing.assert_allclose(fitted.var_, fitted.scale_**2)
    assert fitted.n_samples_seen_ == 20_000


def test_without_noise_to_speak_of_only_clipping_is_left():
    X = normal_rows(5000, 3)
    mean, scale = errors(DPStandardScaler(1e4, 0.5, random_state=0).fit(X), X)
    assert max(mean.max(), scale.max()) < 1e-3


def test_offsets_and_scales_do_not_matter():
    X = normal_rows(20_000, 5)
    # as far as floats go: an offset of a million standard deviations
    wild = (X[:, :3] + 1e6) * [1.0, 1e200, 1e-250]
    for rows in (wild, X * SCALES):
        fitted = scaler(2.0).fit(rows)
        standard = fitted.transform(rows)
        assert np.abs(standard.mean(axis=0)).max() < 0.05
        assert np.abs(np.log(standard.std(axis=0))).max() < 0.1


@pytest.mark.parametrize("value", [0.0, 3.0, -0.1, 1e300, -1e-300, 1e6])
def test_constant_features_get_scale_one(value):
    X = np.column_stack([np.full(5000, value), normal_rows(5000, 1)])
    fitted = scaler().fit(X)
    exact = StandardScaler().fit(np.full((10, 1), np.clip(value, -1e9, 1e9)))
    assert fitted.scale_[0] == exact.scale_[0] == 1
    assert fitted.var_[0] == 0
    assert fitted.mean_[0] == value
    assert np.all(fitted.transform(X)[:, 0] == 0)
    assert 0.8 < fitted.scale_[1] < 1.2


@pytest.mark.covering
@pytest.mark.parametrize("bounds", [None, BOX])
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((1, 1)), np.full((1, 3), 1e308), np.zeros((7, 300)), np.full((50, 2), -1e-308),
        np.array([[1.7e308, -1.7e308], [-1.7e308, 1e-320]] * 20), normal_rows(2, 1000),
    ],
    ids=lambda X: f"{X.shape}-{X.flat[0]:g}",
)  # fmt: skip
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_extreme_rows_give_usable_numbers(X, bounds, epsilon):
    for seed in range(3):
        fitted = DPStandardScaler(epsilon, bounds=bounds, random_state=seed).fit(X)
        assert np.isfinite(fitted.mean_).all()
        assert np.isfinite(fitted.scale_).all()
        assert (fitted.scale_ > 0).all()
        standard = fitted.transform(X)
        assert np.isfinite(standard).all()
        assert np.isfinite(fitted.inverse_transform(standard)).all()
        assert fitted.privacy_spent_[0] <= epsilon


def test_too_few_rows_do_not_lead_to_absurd_scales():
    # nothing can be found out here, and most features are left as they are
    X = normal_rows(30, 50)
    fitted = scaler(0.5).fit(X)
    assert (fitted.scale_ == 1).mean() > 0.5
    assert np.median(np.abs(fitted.mean_)) < 1e3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_the_type_and_format_of_the_input_are_kept(container, dtype):
    X = container(np.where(np.arange(4000).reshape(1000, 4) % 3, 0, normal_rows(1000, 4)))
    X = X.astype(dtype)
    fitted = scaler(bounds=BOX, with_mean=False).fit(X)
    standard = fitted.transform(X)
    assert standard.dtype == dtype
    assert type(standard) is type(X)
    restored = fitted.inverse_transform(standard)
    assert np.abs(restored - X).max() < 1e-6


@pytest.mark.parametrize("bounds", [None, BOX, ([-3, 0, 1, -9], [3, 2, 4, -5])])
def test_sparse_rows_are_scaled_as_dense_ones(bounds):
    X = np.where(normal_rows(3000, 4) > 0, normal_rows(3000, 4, 1), 0)
    dense = scaler(with_mean=False, bounds=bounds).fit(X)
    for container in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix):
        fitted = scaler(with_mean=False, bounds=bounds).fit(container(X))
        np.testing.assert_allclose(fitted.scale_, dense.scale_, rtol=1e-5)
        np.testing.assert_allclose(fitted.transform(container(X)).toarray(), dense.transform(X))


@pytest.mark.parametrize("call", ["fit", "transform", "inverse_transform"])
def test_sparse_rows_cannot_be_centred(call):
    X = sparse.csr_array(normal_rows(10, 2))
    fitted = scaler(bounds=BOX).fit(X.toarray())
    with pytest.raises(TypeError, match="with_mean=False"):
        getattr(fitted, call)(X)


def test_what_is_not_asked_for_is_not_released():
    X = normal_rows(100, 2)
    only_mean = scaler(bounds=BOX, with_std=False).fit(X)
    assert only_mean.var_ is None
    assert only_mean.scale_ is None
    np.testing.assert_allclose(only_mean.transform(X), X - only_mean.mean_)
    nothing = scaler(with_mean=False, with_std=False).fit(X)
    assert nothing.mean_ is None
    assert nothing.ledger_.releases == ()
    assert nothing.privacy_spent_[0] == 0
    np.testing.assert_array_equal(nothing.transform(X), X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"epsilon": np.inf}, "epsilon"),
        ({"epsilon": 1e-30, "delta": 1e-30}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": np.nan}, "delta"),
        ({"bounds": (1.0, 0.0)}, "bounds must be a pair"),
        ({"bounds": (0.0, np.inf)}, "bounds must be a pair"),
        ({"bounds": ([0.0] * 3, [1.0] * 3)}, "bounds must be a pair"),
        ({"bounds": (1.0,)}, "bounds must be a pair"),
        ({"bounds": "auto"}, "bounds"),
        ({"adjacency": "add-remove"}, "adjacency"),
        ({"with_mean": "yes"}, "with_mean"),
        ({"with_std": 2}, "with_std"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        DPStandardScaler(**options).fit(normal_rows(10, 2))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_that_are_not_finite_are_refused_without_a_value(value):
    X = normal_rows(10, 2)
    X[3, 1] = value
    for call in (scaler().fit, scaler(bounds=BOX).fit(normal_rows(10, 2)).transform):
        with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
            call(X)


def test_rows_are_never_changed():
    X = normal_rows(40, 3)
    X.flags.writeable = False
    scaler().fit(X).inverse_transform(scaler().fit_transform(X))
    np.testing.assert_array_equal(X, normal_rows(40, 3))


def test_names_and_frames_pass_through():
    frame = pd.DataFrame(normal_rows(30, 2), columns=["age", "height"])
    fitted = scaler(bounds=BOX).set_output(transform="pandas").fit(frame)
    assert list(fitted.transform(frame).columns) == ["age", "height"]
    assert list(fitted.get_feature_names_out()) == ["age", "height"]


def test_it_helps_a_private_classifier_where_features_have_wild_scales():
    X, y = make_classification(4000, 8, n_informative=5, random_state=0)
    X *= 10.0 ** np.array([3, -2, 0, 4, 1, -3, 2, 0])
    model = DPLogisticRegression(0.5, data_norm=3.0, classes=(0, 1), random_state=0)
    alone = clone(model).set_params(epsilon=1.0).fit(X, y).score(X, y)
    pipe = make_pipeline(scaler(0.5), model).fit(X, y)
    assert pipe.score(X, y) > alone + 0.05
    spent = privacy_spent(pipe)
    assert spent.not_covered == ()
    assert spent.epsilon < 1.0

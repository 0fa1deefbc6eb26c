# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scalers: moments, bisection, public scalers, sensitivities, planted bugs."""

import math
import pickle
from unittest import mock

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from skdp import (
    BoundedScaler,
    DPLogisticRegression,
    DPMean,
    DPMedian,
    DPQuantile,
    DPStandardScaler,
    LocalDPMean,
    NormClipper,
    RandomFourierFeatures,
    privacy_spent,
)
from skdp._bisection import FloatKey, SideSum, bisect_quantile, shortest
from skdp._rows.base import Box
from skdp._rows.columns import FeatureRows
from skdp.audit import trace_privacy
from skdp.exceptions import BudgetError
from skdp.preprocessing import _standard_scaler
from skdp.preprocessing._standard_scaler import OFFSET, WEIGHT, MomentSum
from skdp.privacy import gdp_mu
from skdp.privacy.kernel import mechanisms
from tests import _audit
from tests._chunks import shorten_chunks
from tests._neighbours import (
    ADJACENCIES,
    LAYOUTS,
    as_layout,
    neighbours,
    on_examples,
    worst_mean_pairs,
)
from tests.test_row_queries import assert_keeps_its_word, gap_ratio

# DPStandardScaler: accuracy, extremes, bad input, and the interface of StandardScaler.


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


@pytest.mark.sample(1)
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


@pytest.mark.full
def test_offsets_and_scales_do_not_matter():
    X = normal_rows(20_000, 5)
    # as far as floats go: an offset of a million standard deviations
    wild = (X[:, :3] + 1e6) * [1.0, 1e200, 1e-250]
    for rows in (wild, X * SCALES):
        fitted = scaler(2.0).fit(rows)
        standard = fitted.transform(rows)
        assert np.abs(standard.mean(axis=0)).max() < 0.05
        assert np.abs(np.log(standard.std(axis=0))).max() < 0.1


@pytest.mark.sample(1)
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


@pytest.mark.sample(1)
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


@pytest.mark.sample(1)
@pytest.mark.parametrize("bounds", [None, BOX, ([-3, 0, 1, -9], [3, 2, 4, -5])])
def test_sparse_rows_are_scaled_as_dense_ones(bounds):
    X = np.where(normal_rows(3000, 4) > 0, normal_rows(3000, 4, 1), 0)
    dense = scaler(with_mean=False, bounds=bounds).fit(X)
    for container in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix):
        fitted = scaler(with_mean=False, bounds=bounds).fit(container(X))
        np.testing.assert_allclose(fitted.scale_, dense.scale_, rtol=1e-5)
        np.testing.assert_allclose(fitted.transform(container(X)).toarray(), dense.transform(X))


@pytest.mark.parametrize("call", ["fit", "transform", "inverse_transform"])
def test_sparse_rows_cannot_be_centered(call):
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
        ({"delta": -0.1}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": np.nan}, "delta"),
        ({"bounds": (1.0, 0.0)}, "bounds must be a pair"),
        ({"bounds": (0.0, np.inf)}, "bounds must be a pair"),
        ({"bounds": ([0.0] * 3, [1.0] * 3)}, "bounds must be a pair"),
        ({"bounds": (1.0,)}, "bounds must be a pair"),
        ({"bounds": "auto"}, "bounds"),
        ({"adjacency": "remove-one"}, "adjacency"),
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
    # by default it would find them itself
    public = {"data_norm": 3.0, "classes": (0, 1), "solver": "preconditioned"}
    model = DPLogisticRegression(0.5, random_state=0, **public)
    alone = clone(model).set_params(epsilon=1.0).fit(X, y).score(X, y)
    pipe = make_pipeline(scaler(0.5), model).fit(X, y)
    assert pipe.score(X, y) > alone + 0.05
    spent = privacy_spent(pipe)
    assert spent.uncovered == ()
    assert spent.epsilon < 1.0


# Noisy bisection: exact without noise, on all scales, and no worse than its noise.


BISECTION_SCALES = np.array([1.0, 1e300, 1e-300, 1e6, 1e-6, -1e100])


def search(X, tau, key, *, noise=0.0, steps=60, center=None, seed=0, asked=1, shared=False):
    rng = np.random.default_rng(seed)
    whole, (n, d) = FeatureRows(X), X.shape

    def sides(thresholds, *places):
        assert thresholds.shape == ((d,) if asked == 1 else (asked, d))
        assert np.isfinite(thresholds).all()
        assert len(places) == shared
        rows = FeatureRows(X[:, places[0]]) if shared else whole
        each = np.atleast_2d(thresholds)
        sums = np.reshape([SideSum(one, center).evaluate(rows) for one in each], thresholds.shape)
        return sums + noise * rng.normal(size=thresholds.shape)

    public = {"n_rows": n, "n_features": d, "steps": steps, "asked": asked}
    wanted = np.full(d, True) if shared else None
    return bisect_quantile(sides, key, tau, scale=noise or 1e-9, wanted=wanted, **public)


def parts(belief):
    low, high = belief.interval()
    return low, belief.middle, high


def rank(X, values):
    """Return the share of rows that are not above the values."""
    return (values >= X).mean(axis=0)


@pytest.mark.parametrize("tau", [0.5, 0.1, 0.97])
def test_without_noise_it_is_the_quantile_on_any_scale(tau):
    X = np.random.default_rng(0).normal(3, 1, size=(1001, 6)) * BISECTION_SCALES
    low, middle, high = parts(search(X, tau, FloatKey()))
    expected = np.quantile(X, tau, axis=0, method="inverted_cdf")
    np.testing.assert_allclose(middle, expected, rtol=1e-8)
    assert (low < expected).all()
    assert (expected <= high).all()


def test_several_thresholds_in_a_release_need_fewer_releases():
    X = np.random.default_rng(0).normal(3, 1, size=(1001, 6)) * BISECTION_SCALES
    low, middle, high = parts(search(X, 0.5, FloatKey(), steps=17, asked=5))
    expected = np.quantile(X, 0.5, axis=0, method="inverted_cdf")
    np.testing.assert_allclose(middle, expected, rtol=1e-8)
    assert (low < expected).all()
    assert (expected <= high).all()
    # a wrong answer is taken back
    middle = search(X[:, :1], 0.5, FloatKey(), noise=60.0, steps=17, asked=5).middle
    assert abs(rank(X[:, :1], middle)[0] - 0.5) < 0.15


@pytest.mark.sample(3)
@pytest.mark.parametrize("value", [0.0, -0.0, 0.1, -7.0, 1e6, 123456789.0, 1e-300, 1.7e308, 0.001])
def test_a_value_that_all_rows_share_is_hit_exactly(value):
    X = np.full((50, 1), value)
    found = shortest(search(X, 0.5, FloatKey()))
    assert found[0] == value
    assert not np.signbit(found[0]) or value < 0
    low, high = search(X, 0.9, FloatKey(3, signed=False), center=found, steps=20).interval()
    assert low == 0
    assert high < 1e-300


def test_the_key_runs_through_all_floats_in_order():
    key = FloatKey(mantissa_bits=1)
    positions = np.arange(key.end + 1)
    values = key.value(positions)
    assert (np.diff(values) >= 0).all()
    assert np.isfinite(values).all()
    assert values[0] < -1e308
    assert values[-1] > 1e308
    assert 0.0 in values
    for signed in (True, False):
        starts, weights = FloatKey(signed=signed).prior()
        assert (np.diff(starts) > 0).all()
        assert starts[0] == 0
        assert starts[-1] < FloatKey(signed=signed).end
        assert weights.sum() == pytest.approx(1)
        assert weights.min() > 0


@pytest.mark.sample(1)
@pytest.mark.parametrize("tau", [0.5, 0.8])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_rank_is_off_by_little_more_than_the_noise_of_a_count(offset, tau):
    X = offset + np.random.default_rng(0).normal(size=(1000, 200))
    noise = 30.0
    middle = search(X, tau, FloatKey(), noise=noise, steps=42).middle
    off = np.abs(rank(X, middle) - tau) * len(X)
    assert np.median(off) < noise
    assert off.max() < 5 * noise


def test_wrong_turns_are_taken_back():
    # a wrong turn of ordinary bisection is final; here the noise takes one in four features
    X = np.random.default_rng(0).normal(size=(1000, 300))
    middle = search(X, 0.5, FloatKey(), noise=200.0, steps=42).middle
    assert (np.abs(middle) < 3).mean() > 0.95


@pytest.mark.parametrize(("asked", "noise"), [(1, 800.0), (5, 3000.0)])
def test_settled_features_leave_their_places_to_others(asked, noise):
    # nearly all rows of most columns are zero; a fifth of the others is, and the rest no decimal
    rng, n, d = np.random.default_rng(0), 4000, 60
    X = (rng.random((n, d)) < np.where(np.arange(d) < 56, 0.02, 0.8)) / np.sqrt(13)
    given = {"noise": noise, "steps": 28, "asked": asked}
    apart, shared = (
        search(X, 0.5, FloatKey(16), shared=shared, **given) for shared in (False, True)
    )
    far = [np.abs(belief.middle[56:] - 1 / np.sqrt(13)).max() for belief in (apart, shared)]
    assert far[1] < 1e-5 < 5e-4 < far[0]
    assert (shared.interval()[1][:56] == 0).all()
    # while none is settled it is the same search
    X, given = rng.normal(5, 1, size=(n, 9)), {"noise": 200.0, "steps": 20}
    one, two = (search(X, 0.5, FloatKey(16), shared=s, **given) for s in (False, True))
    np.testing.assert_array_equal(one.middle, two.middle)


def test_a_search_ends_once_all_quantiles_are_near_enough_to_0():
    n, asked, near = 1000, [], np.array([0.3, 0.3])
    for middles in ([0.0, 0.1], [0.0, 40.0]):
        X = np.random.default_rng(0).normal(middles, 1, size=(n, 2))
        asked.append([])

        def sides(thresholds, X=X, asked=asked[-1]):
            asked.append(thresholds)
            return SideSum(thresholds).evaluate(FeatureRows(X))

        public = {"n_rows": n, "n_features": 2, "steps": 40, "scale": 5.0}
        belief = bisect_quantile(sides, FloatKey(), 0.5, near=near, **public)
    # one that is farther away is searched to the end, and so are those beside it
    assert len(asked[0]) < 25
    assert len(asked[1]) == 40
    assert_allclose(belief.middle, middles, atol=0.1)


def test_if_nothing_can_be_learned_the_prior_remains():
    X = np.random.default_rng(0).normal(1e200, 1, size=(10, 100))
    low, middle, high = parts(search(X, 0.5, FloatKey(), noise=1e12, steps=42))
    assert np.median(np.abs(middle)) < 1e3
    assert (low < -1e3).all()
    assert (high > 1e3).all()


@pytest.mark.sample(1)
@pytest.mark.parametrize("released", [np.inf, -np.inf, 1e308, -1e308, 0.0])
def test_whatever_is_released_the_answer_is_finite(released):
    for key in (FloatKey(), FloatKey(3, signed=False)):
        belief = bisect_quantile(
            lambda thresholds: np.full(2, released),
            key, 0.5, n_rows=10, n_features=2, steps=90, scale=1.0,
        )  # fmt: skip
        found = parts(belief)
        assert np.isfinite(found).all()
        assert (found[0] <= found[1]).all()
        assert (found[1] <= found[2]).all()


# Transformers with public constants: exact, stateless, and never out of range.


ANY_FLOAT = st.floats(allow_nan=False, allow_infinity=False, width=64)


@pytest.mark.full
@given(arrays(np.float64, (3, 4), elements=ANY_FLOAT), st.sampled_from([1e-100, 0.3, 1.0, 1e100]))
def test_no_row_is_longer_than_the_norm(X, norm):
    clipped = NormClipper(norm=norm).fit_transform(X)
    unit = clipped / norm
    assert np.all(np.linalg.norm(unit, axis=1) <= 1 + 1e-12)


@pytest.mark.full
@given(arrays(np.float64, (3, 2), elements=ANY_FLOAT))
def test_no_value_leaves_the_feature_range(X):
    scaled = BoundedScaler(bounds=(-2.5, 7.0), feature_range=(-3, 11)).fit_transform(X)
    assert scaled.min() >= -3
    assert scaled.max() <= 11


def test_short_rows_are_left_alone_and_long_ones_keep_their_direction():
    X = np.array([[0.3, 0.4], [30.0, 40.0], [0.0, 0.0], [3e307, 4e307]])
    clipped = NormClipper().fit_transform(X)
    np.testing.assert_allclose(clipped, [[0.3, 0.4], [0.6, 0.8], [0, 0], [0.6, 0.8]])


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_sparse_rows_stay_sparse_and_agree_with_dense_ones(container):
    X = np.random.default_rng(0).normal(size=(30, 6)) * 3
    X[np.abs(X) < 2] = 0
    for scaler in (NormClipper(2.0), BoundedScaler((0, 4), (0, 0.5))):
        result = scaler.fit_transform(container(X))
        assert sparse.issparse(result)
        assert result.format == container(X).format
        np.testing.assert_allclose(result.toarray(), scaler.fit_transform(X))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_single_precision_rows_whose_squares_overflow_it(container):
    rows = container(np.array([[3e19, 4e19], [3e37, 4e37]], dtype=np.float32))
    clipped = NormClipper().fit_transform(rows)
    assert clipped.dtype == np.float32
    np.testing.assert_allclose(clipped @ np.eye(2), [[0.6, 0.8]] * 2, rtol=1e-6)


def test_duplicate_entries_of_a_sparse_row_are_added_before_its_norm_is_taken():
    duplicated = sparse.csr_array(([1.0, 1.0], [0, 0], [0, 2]), shape=(1, 2))
    assert NormClipper().fit_transform(duplicated).toarray().tolist() == [[1.0, 0.0]]


def test_sparse_input_that_zero_would_not_survive_is_refused():
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        BoundedScaler((0, 1), (-1, 1)).fit(sparse.csr_array([[1.0, 0.0]]))


AGES = np.array([[25.0, 0.5], [250.0, 1.0]])
CUBE = {"mechanism": "cube", "epsilon": 8.0}


@pytest.mark.parametrize(
    "bounds",
    [
        ([0, 0], [100, 2]),
        [(0, 100), (0, 2)],
        np.array([[0, 100], [0, 2]]),
        {0: (0, 100), 1: (0, 2)},
        {"age": (0, 100), "share": (0, 2)},
        {"share": (0, 2), "age": (0, 100)},
    ],
)
def test_bounds_are_two_vectors_or_a_pair_for_every_feature(bounds):
    rows = pd.DataFrame(AGES, columns=["age", "share"])
    expected = [[-0.5, -0.5], [1.0, 0.0]]
    assert_allclose(BoundedScaler(bounds).fit_transform(rows), expected)
    scaler = DPStandardScaler(bounds=bounds, random_state=0)
    vectors = DPStandardScaler(bounds=([0, 0], [100, 2]), random_state=0)
    assert_array_equal(scaler.fit(rows).mean_, vectors.fit(rows).mean_)
    for kind, own in ((DPMean, {}), (DPMedian, {}), (DPQuantile, {}), (LocalDPMean, CUBE)):
        place = kind(bounds=bounds, random_state=0, **own)
        same = kind(bounds=([0, 0], [100, 2]), random_state=0, **own)
        assert_array_equal(place.fit(rows).location_, same.fit(rows).location_)


def test_pairs_of_zero_and_more_take_sparse_rows():
    X = sparse.csr_array([[1.0, 0.0, 2.0]])
    for bounds in ([(0, 2), (0, 4), (0, 4)], {0: (0, 2), 1: (0, 4), 2: (0, 4)}, (0, 4)):
        scaled = BoundedScaler(bounds, (0, 1)).fit_transform(X).toarray()
        assert_allclose(scaled, BoundedScaler(bounds, (0, 1)).fit_transform(X.toarray()))
    with pytest.raises(TypeError, match="Sparse"):
        BoundedScaler([(0, 2), (1, 4), (0, 4)], (0, 1)).fit(X)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([(0, 1), (5, 10)], r"two vectors, lower and upper, or two pairs.*\{0: \(0.0, 1.0\), 1"),
        (np.array([[0, 1], [5, 10]]), "dict by position or name"),
        ([(0, 1), (0, 1), (0, 1)], "for 2 feature"),
        ({"age": (0, 100)}, r"by name; missing are \['share'\]"),
        ({"age": (0, 100), "share": (0, 1), "sex": (0, 1)}, r"unknown are \['sex'\]"),
        ({"age": (0, 100), "share": 1}, "must be a pair"),
        ({"age": (100, 0), "share": (0, 1)}, "lower below upper"),
        ({"age": (0, np.inf), "share": (0, 1)}, "finite"),
    ],
)
def test_bounds_that_cannot_be_read_are_refused(bounds, message):
    rows = pd.DataFrame(AGES, columns=["age", "share"])
    for scaler in (BoundedScaler(bounds), DPStandardScaler(bounds=bounds), DPMean(bounds=bounds)):
        with pytest.raises(ValueError, match=message):
            scaler.fit(rows)


def test_bounds_of_many_features_are_not_quoted():
    rows, bounds = np.zeros((9, 40)), np.tile([0.0, 1.0], (40, 1))
    bounds[[3, 31]] = 1.0
    for wrong, said in (
        (bounds, r"bounds of features \[3, 31\] for 40"),
        ([(0, 1)] * 39, "of 39 en"),
    ):
        with pytest.raises(ValueError, match=said) as error:
            DPStandardScaler(bounds=wrong).fit(rows)
        assert len(str(error.value)) < 300


def test_names_without_names_are_refused():
    with pytest.raises(ValueError, match="the rows have no names"):
        BoundedScaler({"age": (0, 100), "share": (0, 1)}).fit(AGES)


@pytest.mark.parametrize("n_components", [1, 2, 7, 100])
def test_waves_have_norm_one_whatever_the_rows_are(n_components):
    X = np.random.default_rng(0).standard_normal((30, 4)) * np.geomspace(1e-300, 1e300, 30)[:, None]
    for gamma in (None, 1e-9, [1e9, 0.1]):
        mapped = RandomFourierFeatures(gamma, n_components).fit_transform(X)
        assert mapped.shape == (30, n_components)
        np.testing.assert_allclose(np.linalg.norm(mapped, axis=1), 1.0, rtol=1e-14)


def test_products_of_waves_are_means_of_kernels():
    X = np.random.default_rng(0).standard_normal((8, 3))
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    mapped = RandomFourierFeatures([0.05, 0.4], n_components=40_000).fit_transform(X)
    kernel = (np.exp(-0.05 * distances) + np.exp(-0.4 * distances)) / 2
    np.testing.assert_allclose(mapped @ mapped.T, kernel, atol=0.03)


def test_waves_of_a_row_depend_on_no_other_row_and_on_their_own_seed():
    X = np.random.default_rng(0).standard_normal((101, 5))
    waves = RandomFourierFeatures(n_components=34).fit(X)
    whole = waves.transform(X)
    assert (np.vstack([waves.transform(X[:40]), waves.transform(X[40:])]) == whole).all()
    assert (waves.transform(X[::-1])[::-1] == whole).all()
    other = RandomFourierFeatures(n_components=34, random_state=1).fit_transform(X)
    assert np.abs(other - whole).max() > 0.1
    assert list(waves.get_feature_names_out()[:2]) == [
        "randomfourierfeatures0",
        "randomfourierfeatures1",
    ]


@pytest.mark.parametrize("gamma", [[], [1.0, 0.0], [1.0, np.nan], [[1.0]], ["wide"]])
def test_widths_of_waves_are_positive_numbers(gamma):
    with pytest.raises(ValueError, match="gamma must be None, a number in"):
        RandomFourierFeatures(gamma).fit(np.ones((3, 2)))


@pytest.mark.parametrize("transformer", [NormClipper(), BoundedScaler()])
def test_they_learn_nothing(transformer):
    assert not get_tags(transformer).requires_fit
    X = np.random.default_rng(0).normal(size=(30, 6))
    alone = type(transformer)().transform(X)
    np.testing.assert_array_equal(transformer.fit(100 * X[:2]).transform(X), alone)


def test_names_and_frames_pass_through_public_scalers():
    frame = pd.DataFrame({"age": [30.0, 50.0], "height": [1.6, 1.8]})
    scaler = BoundedScaler(([0, 0], [100, 2])).set_output(transform="pandas")
    result = scaler.fit_transform(frame)
    assert list(result.columns) == ["age", "height"]
    assert list(scaler.get_feature_names_out()) == ["age", "height"]


# Counts of sides and joint moments keep the sensitivity they state, and attain it.


every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
THRESHOLDS = [0.0, -0.0, 0.3, -0.3, 1e-310, 1e308, -1e308, math.inf]
BOXES = [(-1.0, 1.0), (0.1, 0.3), (-1e-300, 1e-300), (-1e308, 1.7e308), (5.0, 1e9), (-3.0, -2.0)]


def null_flags(rows, choice):
    """Return rows whose null rows are flagged, or not a number."""
    if choice == "flag":
        return FeatureRows(rows.X, rows.null)
    X = rows.X.toarray() if sparse.issparse(rows.X) else np.array(rows.X)
    X[rows.null] = math.nan
    return FeatureRows(X)


@every_adjacency
@on_examples(150)
def test_counts_of_sides_keep_their_sensitivity(adjacency, data):
    pair = data.draw(neighbours(adjacency))
    n, d = pair[0].X.shape
    thresholds = np.array(data.draw(st.lists(st.sampled_from(THRESHOLDS), min_size=d, max_size=d)))
    center = data.draw(st.sampled_from([None, 0.0, 0.3, 1e308]))
    query = SideSum(thresholds, None if center is None else np.full(d, center))
    null = data.draw(st.sampled_from(["flag", "nan"]))
    assert_keeps_its_word(query, adjacency, *(null_flags(rows, null) for rows in pair), n)


@every_adjacency
@on_examples(150)
def test_joint_moments_keep_their_sensitivity(adjacency, data):
    pair = data.draw(neighbours(adjacency))
    n, d = pair[0].X.shape
    lower, upper = data.draw(st.sampled_from(BOXES))
    query = MomentSum(Box((lower,) * d, (upper,) * d))
    null = data.draw(st.sampled_from(["flag", "nan"]))
    assert_keeps_its_word(query, adjacency, *(null_flags(rows, null) for rows in pair), n)


@every_adjacency
@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("center", [None, 5.0])
def test_counts_of_sides_attain_their_sensitivity(adjacency, d, norm, center):
    other = math.nan if adjacency == "zero-out" else 5.0
    pair = [FeatureRows(np.full((1, d), value)) for value in (9.0, other)]
    query = SideSum(np.full(d, 6.0 if center is None else 1.0), center and np.full(d, center))
    assert gap_ratio(query, adjacency, *pair, norm=norm) == 1


# the ends, the middle whose square is as far from the offset, and the second maximum
@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize(
    ("adjacency", "first", "second"),
    [
        ("zero-out", 1.0, math.nan),
        ("zero-out", -1.0, math.nan),
        ("zero-out", 0.0, math.nan),
        ("replace-one", 1.0, -1.0),
        ("replace-one", 1.0, 2 - math.sqrt(5)),
        ("replace-one", math.sqrt(5) - 2, -1.0),
    ],
)
def test_joint_moments_attain_their_sensitivity(adjacency, first, second, d):
    box = Box((-3.0,) * d, (7.0,) * d)
    pair = [FeatureRows(np.full((1, d), 2 + 5 * value)) for value in (first, second)]
    assert gap_ratio(MomentSum(box), adjacency, *pair) == pytest.approx(1, rel=1e-12)


def test_the_l1_sensitivity_of_moments_is_the_largest_of_all():
    grid = np.append(np.linspace(-1, 1, 401), 1 - (1 + 2 * WEIGHT) / (2 * WEIGHT))
    moments = np.column_stack([grid, WEIGHT * (grid**2 - OFFSET)])
    stated = [MomentSum(Box((0.0,) * 2, (1.0,) * 2)).sensitivity(a, 1).l1 for a in ADJACENCIES]
    gaps = np.abs(moments[:, None] - moments[None]).sum(axis=2)
    assert 2 * gaps.max() == pytest.approx(stated[0], rel=1e-9)
    assert 2 * np.abs(moments).sum(axis=1).max() == pytest.approx(stated[1], rel=1e-9)


@every_adjacency
def test_without_a_delta_it_is_pure(adjacency):
    rng = np.random.default_rng(0)
    X = rng.normal([0.0, 1e6], [1e-3, 50.0], size=(5000, 2))
    X = np.column_stack([X, np.full(5000, 7.0)])
    for bounds in (None, ([-0.01, 999_000, 0], [0.01, 1_001_000, 9])):
        scaler = DPStandardScaler(4.0, 0.0, bounds=bounds, adjacency=adjacency).fit(X)
        assert 0.999 * 4.0 <= scaler.privacy_spent_[0] <= 4.0
        assert scaler.privacy_spent_[1] == 0.0
        assert {release.noise.law for release in scaler.ledger_.releases} <= {
            "laplace", "exponential",
        }  # fmt: skip
        moved = scaler.transform(X)[:, :2]
        assert np.abs(moved.mean(axis=0)).max() < 0.1
        assert np.abs(moved.std(axis=0) - 1).max() < 0.2
        assert bounds or (scaler.var_[2], scaler.scale_[2], scaler.mean_[2]) == (0.0, 1.0, 7.0)
    other = X[:200].copy()
    other[3] = np.nan if adjacency == "zero-out" else [1.0, -1e6, -7.0]
    model = DPStandardScaler(8.0, 0.0, adjacency=adjacency)
    result = trace_privacy(model, X[:200], X_neighbour=other, n_draws=0)
    assert result.passed
    with pytest.raises(TypeError, match="delta=0 without bounds"):
        DPStandardScaler(delta=0.0, with_mean=False).fit(sparse.csr_array(np.eye(4)))


def test_constants_of_the_moments():
    golden = (1 + math.sqrt(5)) / 2
    assert pytest.approx(golden**2.5 / 2, rel=1e-15) == WEIGHT
    grid = np.linspace(-1, 1, 2001)
    moments = np.column_stack([grid, WEIGHT * (grid**2 - OFFSET)])
    norms = np.linalg.norm(moments, axis=1)
    stated = [MomentSum(Box((0.0,), (1.0,))).sensitivity(a, 1).l2 for a in ADJACENCIES]
    assert norms.max() == pytest.approx(stated[1], rel=1e-12)
    coarse = moments[::10]
    gaps = np.linalg.norm(coarse[:, None] - coarse[None], axis=2)
    assert gaps.max() == pytest.approx(stated[0], rel=1e-12)
    # a square that weighs any more is no longer free
    heavier = moments * [1, 1.001]
    gaps = np.linalg.norm(heavier[:, None] - heavier[[0, -1]][None], axis=2)
    assert gaps.max() > 2.0000001


def some_rows():
    rng = np.random.default_rng(0)
    X = np.where(rng.uniform(size=(101, 5)) < 0.4, rng.normal(size=(101, 5)), 0.0)
    return X, rng.uniform(size=101) < 0.1


@pytest.fixture
def small_chunks(monkeypatch):
    shorten_chunks(monkeypatch, 3, threads=True)


QUERIES = [
    SideSum(np.full(5, 0.2)),
    SideSum(np.full(5, -0.2)),
    SideSum(np.full(5, 0.2), np.full(5, 0.1)),
    MomentSum(Box((-1.0,) * 5, (1.5,) * 5)),
    MomentSum(Box((0.5,) * 5, (1.5,) * 5)),
]


def naive(query, X):
    """Sum over rows as the definition says."""
    if isinstance(query, MomentSum):
        lower, upper = (np.array(side) for side in (query.box.lower, query.box.upper))
        unit = (2 * np.clip(X, lower, upper) - lower - upper) / (upper - lower)
        return np.concatenate([unit.sum(axis=0), (WEIGHT * (unit**2 - OFFSET)).sum(axis=0)])
    values = X if query.center is None else np.abs(X - query.center)
    return np.where(values > query.thresholds, 0.5, -0.5).sum(axis=0)


@pytest.mark.sample(6)
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_any_layout_and_chunks_it_is_the_sum_over_rows(query, layout, request):
    X, null = some_rows()
    rows = as_layout(X, layout)
    expected = naive(query, (X.astype(np.float32) if layout == "float32" else X)[~null])
    assert_allclose(query.evaluate(FeatureRows(rows, null)), expected, rtol=1e-12, atol=1e-12)
    request.getfixturevalue("small_chunks")
    cut = [query.evaluate(FeatureRows(rows, null, n_threads=n)) for n in (1, 2)]
    assert len(FeatureRows(rows, null).chunks) == 34
    assert_allclose(cut[0], expected, rtol=1e-12, atol=1e-12)
    assert_array_equal(*cut)
    assert_array_equal(X, some_rows()[0])


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("layout", ["C", "csr"])
@pytest.mark.parametrize("value", [1e308, math.nan, 1e-310, math.inf])
def test_a_row_shifts_the_rounding_of_its_own_chunk_only(layout, value):
    X, _ = some_rows()
    other = X.copy()
    other[30] = value
    query = QUERIES[3]
    partials = [
        [query.partial(chunk) for chunk in FeatureRows(as_layout(rows, layout)).chunks]
        for rows in (X, other)
    ]
    same = [np.array_equal(a, b) for a, b in zip(*partials, strict=True)]
    assert same == [i != 10 for i in range(34)]


def test_moments_are_recovered_and_the_floor_follows_from_the_noise():
    X, query = some_rows()[0], QUERIES[3]
    unit = np.clip((X - 0.25) / 1.25, -1, 1)
    mean, variance = query.moments(query.evaluate(FeatureRows(X)), len(X), 0.0)
    assert_allclose(mean, unit.mean(axis=0), rtol=1e-12)
    assert_allclose(variance, unit.var(axis=0), rtol=1e-12)
    _, floor = query.moments(np.full(10, -1e9), len(X), 2.0)
    assert_allclose(floor, 2 * 2.0 / (len(X) * WEIGHT))
    for total in (np.full(10, 1e300), np.full(10, -1e300)):
        with np.errstate(over="ignore"):
            mean, variance = query.moments(total, 1, 1e9)
        assert_array_equal(np.abs(mean), 1)
        assert_array_equal(variance, 1)


# The claim of the private scaler: coupled traces of whole fits, and planted bugs.


EPSILON, DELTA = 2.0, 1e-5
CLAIMED_MU = gdp_mu(EPSILON, DELTA)
BOUNDS = (2.0, 5.0)
MUTANT_LAYOUTS = ("C", "F", "strided", "read-only", "float32")
NAN = float("nan")
every_range = pytest.mark.parametrize("bounds", [None, BOUNDS], ids=["search", "bounds"])


def mutant_scaler(adjacency="replace-one", bounds=None, **options):
    return DPStandardScaler(
        EPSILON, DELTA, adjacency=adjacency, bounds=bounds, random_state=0, **options
    )


def measured(model, pair):
    """Return the coupled mu of whole fits, relative to the claim."""

    def fit(rows):
        # the null row of the zero-out relation is not a number; no user can pass one
        with sklearn.config_context(assume_finite=True):
            clone(model).fit(rows)

    return _audit.coupled_mu(fit, *pair) / CLAIMED_MU


def far_pair(adjacency, d=3, n_rows=20):
    """Return rows of which one is above all thresholds, and another below, or null."""
    first = np.random.default_rng(0).normal(size=(n_rows, d))
    second = first.copy()
    first[0], second[0] = 1e308, NAN if adjacency == "zero-out" else -1e308
    return first, second


def box_pairs(adjacency, d=3):
    pairs = worst_mean_pairs(20, d, adjacency, *BOUNDS)
    if adjacency == "zero-out":
        for _, second in pairs:
            second[0] = NAN
    return pairs


@every_adjacency
@pytest.mark.parametrize("d", [1, 4])
def test_the_claim_with_bounds_is_kept_and_tight(adjacency, d):
    ratios = [measured(mutant_scaler(adjacency, BOUNDS), pair) for pair in box_pairs(adjacency, d)]
    assert 0.999 <= max(ratios) <= 1


@pytest.mark.sample(1)
@every_adjacency
def test_the_claim_without_bounds_is_kept_and_its_parts_are_tight(adjacency):
    pair = far_pair(adjacency)
    ratio = measured(mutant_scaler(adjacency), pair)
    # a far row is far on either side: its distance to the median tells it from a null row only
    everything = 1.0 if adjacency == "zero-out" else math.sqrt(0.75)
    assert 0.999 * everything <= ratio <= 1


def test_the_counts_of_distances_are_tight_on_their_own():
    # rows that are all equal, so that the median is exact and a row there at distance zero
    first, second = np.full((2, 10_000, 3), 7.0)
    first[0] = 1e308
    steps = _audit.coupled(mutant_scaler().fit, first, second)[42:62]
    moved = [np.linalg.norm(a.statistic - b.statistic) / a.noise.scale for a, b in steps]
    assert np.linalg.norm(moved) == pytest.approx(CLAIMED_MU / 2, rel=1e-3)


@pytest.mark.covering
@every_adjacency
@every_range
@on_examples(20)
def test_the_claim_is_kept_on_any_neighbours(bounds, adjacency, data):
    pair = data.draw(neighbours(adjacency, radius=3.0, finite=True, layouts=MUTANT_LAYOUTS))
    options = {"with_std": data.draw(st.booleans())}
    rows = [np.where(each.null[:, None], NAN, each.X) for each in pair]
    assert measured(mutant_scaler(adjacency, bounds, **options), rows) <= 1


@every_range
def test_the_budget_is_spent_to_the_last_digit(bounds):
    X = np.random.default_rng(0).normal(size=(50, 3))
    for adjacency in ADJACENCIES:
        ledger = mutant_scaler(adjacency, bounds).fit(X).ledger_
        assert ledger.mu == pytest.approx(CLAIMED_MU, rel=1e-9)
        assert ledger.fits(EPSILON, DELTA)
        assert len({release.query for release in ledger.releases}) == (3 if bounds is None else 1)


@pytest.mark.sample(1)
@every_range
def test_without_the_noisy_statistic_nothing_depends_on_the_data(bounds):
    hashes, sizes = set(), set()
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(40, 3)) * 10.0 ** (100 * seed)
        with mock.patch.object(mechanisms, "add_noise", lambda x, *_: np.full(x.shape, 0.25)):
            fitted = mutant_scaler(bounds=bounds).fit(X)
        hashes.add(joblib.hash(vars(fitted)))
        sizes.add(len(pickle.dumps(fitted)))
    assert len(hashes) == len(sizes) == 1


@every_range
def test_noise_has_the_declared_scale_and_is_never_used_twice(bounds):
    X = np.random.default_rng(0).normal(size=(20, 200))
    streams = [_audit.noise_stream(mutant_scaler(bounds=bounds).fit, X)]
    assert not _audit.scale_is_wrong(streams[0])
    assert _audit.repeats(*(step.standard for step in streams[0])) == 0


def unclipped(self, values, columns):
    unit = (values - self.box.center[columns]) / self.box.half_width[columns]
    return [unit, _standard_scaler.WEIGHT * (unit * unit - _standard_scaler.OFFSET)]


@pytest.mark.sample(1)
@every_range
def test_dropped_clipping_is_caught(bounds, monkeypatch):
    # the statistic is clamped at its bound: enough rows, and not too far
    first = np.random.default_rng(0).normal(3.5, 0.1, size=(200, 2))
    second = first.copy()
    second[0] = 50.0
    assert measured(mutant_scaler(bounds=bounds), (first, second)) <= 1
    monkeypatch.setattr(MomentSum, "_moments", unclipped)
    assert measured(mutant_scaler(bounds=bounds), (first, second)) > 1.5


@pytest.mark.sample(1)
@pytest.mark.parametrize("query", [SideSum, MomentSum])
def test_replace_one_charged_as_zero_out_is_caught(query, monkeypatch):
    pair = far_pair("replace-one")
    assert measured(mutant_scaler(), pair) <= 1
    real = query.sensitivity
    monkeypatch.setattr(query, "sensitivity", lambda self, _, n: real(self, "zero-out", n))
    assert measured(mutant_scaler(), pair) > 1.09


def test_a_second_moment_that_is_not_charged_is_caught(monkeypatch):
    # under zero-out it is not free: charge what the features cost alone
    pairs = box_pairs("zero-out")
    real = MomentSum.sensitivity

    def alone(self, adjacency, n_rows):
        stated = real(self, adjacency, n_rows)
        return type(stated)(math.inf, math.sqrt(self.size // 2), stated.bound, "mutant")

    monkeypatch.setattr(MomentSum, "sensitivity", alone)
    ratios = [measured(mutant_scaler("zero-out", BOUNDS), pair) for pair in pairs]
    assert max(ratios) == pytest.approx(_standard_scaler.WEIGHT * _standard_scaler.OFFSET, rel=1e-3)


def test_squares_that_weigh_too_much_to_be_free_are_caught(monkeypatch):
    first = np.full((20, 3), 5.0)
    second = first.copy()
    # the second maximum of the distance of two rows
    second[0] = 3.5 + 1.5 * (2 - math.sqrt(5))
    assert measured(mutant_scaler(bounds=BOUNDS), (first, second)) <= 1
    monkeypatch.setattr(_standard_scaler, "WEIGHT", 2.0)
    assert measured(mutant_scaler(bounds=BOUNDS), (first, second)) > 1.05


def test_a_center_that_was_not_released_is_caught(monkeypatch):
    # one row decides which cluster has the median
    first = np.concatenate([np.full(11, -1.0), np.linspace(5, 50, 10)])[:, None]
    second = first.copy()
    second[0] = 5.0
    assert measured(mutant_scaler(), (first, second)) <= 1
    data = []

    def leaky(belief):
        return np.median(data[-1], axis=0)

    class Remembering(_standard_scaler.SideSum):
        def evaluate(self, rows):
            data.append(rows.chunks[0].X)
            return super().evaluate(rows)

    monkeypatch.setattr(_standard_scaler, "SideSum", Remembering)
    monkeypatch.setattr(_standard_scaler, "shortest", leaky)
    assert measured(mutant_scaler(), (first, second)) > 1.5


def test_steps_that_cost_too_much_are_stopped_by_the_budget(monkeypatch):
    monkeypatch.setattr(_standard_scaler, "_SHARES", (0.25, 0.25, 0.500001))
    with pytest.raises(BudgetError):
        mutant_scaler().fit(np.ones((5, 2)))

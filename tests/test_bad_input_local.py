# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows and parameters that break arithmetic, for the transformers that randomise rows."""

import numpy as np
import pytest
from scipy import sparse

from skdp import PrivUnitPrivatizer, ScalarPrivatizer

BOX = {"mechanism": "cube", "bounds": (-1.0, 1.0)}
CONFIGURATIONS = [
    PrivUnitPrivatizer(),
    PrivUnitPrivatizer(magnitude="flip"),
    PrivUnitPrivatizer(magnitude="product"),
    PrivUnitPrivatizer(magnitude="product", levels="relative"),
    PrivUnitPrivatizer(magnitude="unit"),
    PrivUnitPrivatizer(mechanism="privunit-gaussian"),
    PrivUnitPrivatizer(mechanism="privunit-gaussian", magnitude="flip"),
    PrivUnitPrivatizer(mechanism="projunit"),
    PrivUnitPrivatizer(mechanism="projunit", magnitude="unit"),
    PrivUnitPrivatizer(**BOX),
    ScalarPrivatizer(),
    ScalarPrivatizer(levels="relative"),
]
every = pytest.mark.parametrize("made", CONFIGURATIONS, ids=str)


@pytest.mark.covering
@every
@pytest.mark.parametrize("value", [0.0, 1e300, -1e300, 1e-300, 5e-324, 1.7e308, 1e-160])
@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (4, 2), (2, 5)])
def test_rows_of_all_sizes_are_reported_and_kept(made, value, shape):
    X = np.full(shape, value)
    reports = made.fit_transform(X)
    assert reports.shape == shape
    assert np.isfinite(reports).all()
    # nothing about the size of rows is in the size of reports
    assert np.abs(reports).max() < 1e6
    kept = made.transform(X)
    assert np.isfinite(kept).all()
    assert np.linalg.norm(kept, axis=1).max() <= np.sqrt(shape[1]) * (1 + 1e-12)


@every
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_and_costs_nothing(made, bad):
    X = np.zeros((3, 2))
    made.fit(X)
    X[1, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        made.transform(X)
    assert not made.ledger_.releases


@every
def test_layouts_and_types_of_rows_do_not_matter(made):
    X = np.random.default_rng(0).uniform(-1, 1, size=(6, 3)).astype(np.float32)
    X.setflags(write=False)
    for rows in (X, np.asfortranarray(X), X[::-1], X.astype(int), X.tolist()):
        reports = made.fit_transform(rows)
        assert reports.dtype == np.float64
        assert reports.shape == (6, 3)


@every
def test_zero_rows_get_a_fresh_direction_every_time(made):
    # so many features that no two reports are the same by chance
    reports = made.fit(np.zeros((1, 64))).transform(np.zeros((30, 64)))
    assert len(np.unique(reports, axis=0)) == 30


@pytest.mark.covering
@every
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 50.0, 1e3, 1e5])
@pytest.mark.parametrize("n_features", [1, 2, 3, 17])
def test_budgets_of_all_sizes(made, epsilon, n_features):
    made = type(made)(**{**made.get_params(), "epsilon": epsilon})
    X = np.full((3, n_features), 0.1)
    reports = made.fit_transform(X)
    assert np.isfinite(reports).all()
    assert 0 < made.privacy_spent_[0] <= epsilon
    assert np.all(made.noise_variance_ >= 0)


@every
@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.nan, np.inf, 1e-7, 1e7, "1", None])
def test_what_is_no_budget_is_refused(made, epsilon):
    made = type(made)(**{**made.get_params(), "epsilon": epsilon})
    with pytest.raises(ValueError, match="epsilon"):
        made.fit(np.zeros((3, 2)))


@pytest.mark.parametrize("made", CONFIGURATIONS[:9], ids=str)
def test_sparse_rows_report_like_dense_ones(made):
    X = sparse.random_array((20, 6), density=0.3, rng=np.random.default_rng(0), format="csr")
    for rows in (X, X.tocsc(), X.tocoo(), sparse.csr_matrix(X)):
        reports = made.fit_transform(rows)
        assert isinstance(reports, np.ndarray)
        assert reports.shape == (20, 6)
        kept = made.transform(rows)
        assert sparse.issparse(kept)
        np.testing.assert_allclose(kept.toarray(), made.transform(X.toarray()))


@pytest.mark.parametrize("made", CONFIGURATIONS[9:], ids=str)
def test_sparse_rows_are_refused_where_zero_is_no_centre(made):
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        made.fit(sparse.csr_array(np.eye(3)))


def test_wide_rows():
    X = np.zeros((3, 20_000))
    for given in ({}, {"mechanism": "projunit"}, BOX):
        made = PrivUnitPrivatizer(**given)
        assert np.isfinite(made.fit_transform(X)).all()
    with pytest.raises(ValueError, match="epsilon must be at least"):
        ScalarPrivatizer(0.01).fit(X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"data_norm": 0.0}, "data_norm"),
        ({"data_norm": 1e101}, "data_norm"),
        ({"data_norm": np.nan}, "data_norm"),
        ({"bounds": (0, 1)}, 'bounds must be given for mechanism="cube" and be None for others'),
        ({"mechanism": "cube"}, "bounds must be given"),
        ({"mechanism": "cube", "bounds": (1, 0)}, "bounds"),
        ({"mechanism": "cube", "bounds": (0, [1, 2, 3])}, "bounds"),
        ({"mechanism": "cube", "bounds": (0, np.inf)}, "bounds"),
        ({"mechanism": "cube", "bounds": (-8e307, 8e307), "epsilon": 0.01}, "bounds are so far"),
        ({**BOX, "parameters": "paper"}, "parameters='paper' is for mechanism=\"privunit\""),
        ({"mechanism": "projunit", "magnitude": "product"}, 'magnitude="product"'),
        ({"mechanism": "projunit", "n_components": 3}, "n_components must be at most"),
        ({"n_components": 0}, "n_components"),
        ({"magnitude": "length"}, "magnitude"),
        ({"expected_norm": 0.0}, "expected_norm"),
        ({"expected_norm": 1.5}, "expected_norm"),
        ({"magnitude_epsilon": 1.0}, 'magnitude_epsilon is for magnitude="product"'),
        ({"magnitude": "unit", "n_levels": 3}, 'n_levels is for magnitude="product"'),
        ({"magnitude": "product", "magnitude_epsilon": 9.0}, "magnitude_epsilon"),
        ({"magnitude": "product", "n_levels": 1}, "n_levels"),
        ({"magnitude": "product", "n_levels": 3, "levels": "relative"}, "n_levels must be at"),
        ({"levels": "relative"}, "levels='relative' needs magnitude=\"product\""),
        ({"parameters": "paper-simulation"}, "paper-simulation"),
        ({"parameters": "paper-simulation", "magnitude": "unit"}, "paper-simulation"),
        ({"parameters": "paper", "magnitude": "unit"}, "gives? no cosine|spend more"),
        ({"magnitude": "product", "epsilon": 1e-5}, "epsilon must be at least 0.0001"),
        ({"new_rows": "never"}, "new_rows"),
        ({"random_state": "seed"}, "random_state"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(given, message):
    made = PrivUnitPrivatizer(**given)
    with pytest.raises(ValueError, match=message):
        made.fit(np.zeros((2, 2)))


def test_large_boxes_and_balls():
    X = np.array([[1e100, -3e99]])
    reports = PrivUnitPrivatizer(data_norm=1e100).fit_transform(np.tile(X, (50, 1)))
    assert 1e99 < np.abs(reports).max() < 1e101
    made = PrivUnitPrivatizer(mechanism="cube", bounds=(-1e300, 1e300)).fit(X)
    assert np.isfinite(made.transform(X)).all()
    assert np.isinf(made.noise_variance_).all()
    tiny = PrivUnitPrivatizer(data_norm=1e-100).fit_transform(X / 1e200)
    assert 0 < np.abs(tiny).max() < 1e-98

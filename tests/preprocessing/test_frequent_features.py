# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""DPFrequentFeatures: what it keeps, formats, pipelines, and bad input."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import DPFrequentFeatures, DPLogisticRegression, privacy_spent
from skdp.exceptions import SeededNoiseWarning

NAN, INF = float("nan"), float("inf")
N, D = 3000, 40


def rows_with_frequencies(seed=0):
    """Return 0/1 rows; feature j occurs in fewer rows the larger j is."""
    rates = np.linspace(0.8, 0.0, D)
    return (np.random.default_rng(seed).uniform(size=(N, D)) < rates).astype(float)


X = rows_with_frequencies()
SPARSE = sparse.csr_array(X)
# half-way between the counts of two features
EDGE = X.sum(axis=0)[19:21].mean()


def selector(epsilon=5.0, **options):
    return DPFrequentFeatures(epsilon, random_state=0, **options)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_the_most_frequent_features_are_kept(delta, adjacency):
    model = selector(delta=delta, n_features_to_select=10, adjacency=adjacency).fit(SPARSE)
    assert model.get_support(indices=True).tolist() == list(range(10))
    scale = model.ledger_.releases[0].noise.scale
    np.testing.assert_allclose(model.counts_, X.sum(axis=0), atol=20 * scale)
    assert model.ledger_.releases[0].noise.law == ("gaussian" if delta else "laplace")
    assert model.privacy_spent_ == (pytest.approx(5.0), delta)


def test_rows_longer_than_the_sparsity_count_with_their_largest_entries():
    rows = np.tile(np.arange(1.0, D + 1), (N, 1))
    model = selector(sparsity=3, n_features_to_select=3).fit(rows)
    assert model.get_support(indices=True).tolist() == [D - 3, D - 2, D - 1]
    assert model.counts_[: D - 3].max() < 100


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, D // 2),
        ({"n_features_to_select": 7}, 7),
        ({"n_features_to_select": 1000}, D),
        ({"threshold": EDGE}, 20),
        ({"threshold": EDGE, "n_features_to_select": 5}, 5),
        ({"threshold": EDGE, "n_features_to_select": 39}, 20),
        ({"threshold": -1e9}, D),
    ],
)
def test_how_many_are_kept(options, kept):
    model = selector(epsilon=200.0, sparsity=D, **options).fit(X)
    np.testing.assert_array_equal(np.flatnonzero(model.support_), np.arange(kept))


def test_of_equal_counts_the_first_are_kept(monkeypatch):
    monkeypatch.setattr("skdp.privacy.kernel.mechanisms.add_noise", lambda values, *_: np.ones(D))
    model = selector(n_features_to_select=3).fit(X)
    assert model.get_support(indices=True).tolist() == [0, 1, 2]


def test_without_any_feature_scikit_learn_says_so():
    model = selector(threshold=1e9).fit(SPARSE)
    assert not model.support_.any()
    with pytest.warns(UserWarning, match="No features were selected"):
        assert model.transform(SPARSE).shape == (N, 0)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_are_cut_out_in_the_format_and_type_of_the_rows(container, dtype):
    given = container(X).astype(dtype)
    model = selector(n_features_to_select=8).fit(given)
    kept = model.get_support(indices=True)
    cut = model.transform(given)
    assert type(cut) is type(given)
    assert cut.dtype == dtype
    np.testing.assert_array_equal(cut @ np.eye(8), X[:, kept])
    back = model.inverse_transform(cut)
    expected = np.zeros_like(X)
    expected[:, kept] = X[:, kept]
    np.testing.assert_array_equal(back @ np.eye(D), expected)


def test_formats_agree_on_what_is_kept():
    one = selector().fit(X)
    for other in (sparse.csr_matrix(X), sparse.coo_array(X), X.astype(np.float32), X.astype(int)):
        np.testing.assert_array_equal(selector().fit(other).counts_, one.counts_)


def test_names_follow_the_columns():
    frame = pd.DataFrame(X, columns=[f"word{j}" for j in range(D)])
    model = selector(n_features_to_select=2).set_output(transform="pandas").fit(frame)
    assert list(model.transform(frame).columns) == ["word0", "word1"]
    assert list(model.get_feature_names_out()) == ["word0", "word1"]
    assert list(model.feature_names_in_) == list(frame.columns)


def test_a_pipeline_pays_for_the_choice():
    y = np.arange(N) % 2
    model = make_pipeline(
        selector(epsilon=0.5, delta=1e-7, n_features_to_select=5),
        DPLogisticRegression(0.5, 1e-7, classes=[0, 1], random_state=0),
    )
    with pytest.warns(SeededNoiseWarning):
        model.fit(SPARSE, y)
    spent = privacy_spent(model)
    assert spent.not_covered == ()
    assert 0.5 < spent.epsilon < 1.0
    assert len(spent.ledger.releases) == 2
    assert model[-1].coef_.shape == (1, 5)


# -- bad input ----------------------------------------------------------------------------

BAD = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "delta": [-1e-9, 1, NAN, "0", None],
    "adjacency": ["add-remove", None],
    "sparsity": [0, -1, 1.5, True, "1", None, NAN],
    "n_features_to_select": [0, -1, 1.5, True, "1", NAN],
    "threshold": [NAN, INF, -INF, "1", True],
    "random_state": [-1, "a"],
}


@pytest.mark.parametrize(
    ("parameter", "value"), [(name, value) for name, bad in BAD.items() for value in bad]
)
@pytest.mark.parametrize("validated", [True, False])
def test_a_parameter_out_of_range_is_named_and_nothing_is_fitted(parameter, value, validated):
    model = DPFrequentFeatures().set_params(**{parameter: value})
    with (
        sklearn.config_context(skip_parameter_validation=not validated),
        pytest.raises((ValueError, TypeError), match=parameter),
    ):
        model.fit(X[:50])
    assert not hasattr(model, "ledger_")


def test_a_budget_too_small_for_gaussian_noise_is_named():
    with pytest.raises(ValueError, match="too small to be spent"):
        DPFrequentFeatures(1e-12, 1e-300).fit(X)


def test_more_features_than_counts_fit_in_memory():
    with pytest.raises(ValueError, match="hash the features to at most 2147483648"):
        DPFrequentFeatures().fit(sparse.csr_array((5, 2**40)))


DATA = {
    "one row": X[:1], "two rows": X[:2], "one feature": X[:, :1], "constant": np.full((60, 3), 3.3),
    "zeros": np.zeros((60, 3)), "large": X * 1e300, "small": X * 1e-300, "negative": -X,
    "largest": np.full((60, 3), 1.7e308), "denormal": np.full((60, 3), 5e-324),
    "single": X.astype(np.float32), "scales": X[:, :3] * [1e300, 1, 1e-300],
    "columns": np.asfortranarray(X), "backwards": X[::-1, ::-1],
    "no entries": sparse.csr_array((9, 4)),
    "long indices": sparse.csr_array((SPARSE.data, SPARSE.indices.astype(np.int64),
                                      SPARSE.indptr.astype(np.int64)), shape=SPARSE.shape),
    "duplicates": sparse.csr_array(
        (np.full(240, 8e307), np.tile([2, 0, 2, 2], 60), np.arange(0, 241, 4)), shape=(60, 3)
    ),
}  # fmt: skip


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("rows", DATA.values(), ids=DATA)
def test_degenerate_rows(rows, delta):
    before = rows.copy()
    if not sparse.issparse(rows):
        rows.flags.writeable = False
    with np.errstate(all="raise"):
        model = clone(selector(delta=delta)).fit(rows)
        assert model.transform(rows).shape == (rows.shape[0], max(1, rows.shape[1] // 2))
    assert np.isfinite(model.counts_).all()
    assert model.privacy_spent_[0] <= 5.0
    for name in ("data", "indices", "indptr") if sparse.issparse(rows) else ("data",):
        np.testing.assert_array_equal(getattr(rows, name), getattr(before, name))


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-9), (1.0, 0.9), (1e9, 1e-9), (1e-9, 0.0)])
def test_legal_budgets_are_served_within_the_budget(epsilon, delta):
    model = selector(epsilon, delta=delta).fit(X)
    assert model.privacy_spent_[0] <= epsilon
    assert model.privacy_spent_[1] == delta


def test_wide_sparse_rows_take_memory_of_their_entries_and_a_few_vectors():
    n_rows, n_features, per_row = 2000, 10**6, 30
    rng = np.random.default_rng(0)
    columns = rng.integers(n_features, size=n_rows * per_row)
    columns[::per_row] = 17
    rows = sparse.csr_array(
        (np.ones(len(columns)), columns, np.arange(n_rows + 1) * per_row), (n_rows, n_features)
    )
    tracemalloc.start()
    model = selector(n_features_to_select=3, sparsity=per_row).fit(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.support_[17]
    assert peak < 12 * 8 * n_features
    assert model.transform(rows).shape == (n_rows, 3)

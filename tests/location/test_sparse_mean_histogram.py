# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""DPSparseMeanEstimator, mechanism="histogram": open dictionaries, memory, bad input."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from skdp import DPSparseMeanEstimator

HUGE = 2**40


def estimator(**options):
    options = {"mechanism": "histogram", "sparsity": 20, "random_state": 0, **options}
    return DPSparseMeanEstimator(**{"sparse_output": True, **options})


def bags(n_rows, n_features=HUGE, per_row=20, seed=0):
    """Return bags of words whose frequencies follow a power law, in CSR with 64-bit indices."""
    words = np.minimum(np.random.default_rng(seed).zipf(1.3, (n_rows, per_row)), n_features - 1)
    ends = np.arange(n_rows + 1) * per_row
    rows = sparse.csr_array((np.ones(words.size), words.ravel(), ends), shape=(n_rows, n_features))
    rows.sum_duplicates()
    return rows


def dense_mean(rows, columns):
    """Return the mean of the rows of norm 1 over some columns, and its squares elsewhere."""
    norms = np.sqrt(
        np.bincount(np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), rows.data**2)
    )
    values = rows.data / np.repeat(norms, np.diff(rows.indptr)) / rows.shape[0]
    touched, where = np.unique(rows.indices, return_inverse=True)
    sums = np.bincount(where, values)
    kept = np.isin(touched, columns)
    return sums[kept], np.sum(sums[~kept] ** 2)


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_a_dictionary_of_a_trillion_words(adjacency, nonnegative):
    rows = bags(20_000)
    model = estimator(nonnegative=nonnegative, adjacency=adjacency).fit(rows)
    location = model.location_
    assert location.shape == (1, HUGE)
    assert location.indices.dtype == np.int64
    assert model.n_features_in_ == HUGE
    assert 20 < location.nnz < 500
    assert model.mechanism_ == "histogram"
    assert model.privacy_spent_ == (1.0, 1e-6)
    (release,) = model.ledger_.releases
    assert model.threshold_ == pytest.approx(release.noise.threshold / 20_000)
    assert (np.abs(location.data) > 0.99 * model.threshold_).all()
    values, missed = dense_mean(rows, location.indices)
    noise = location.data - values
    assert np.abs(noise).max() < 6 * release.noise.scale / 20_000
    error = np.sqrt(noise @ noise + missed)
    assert error < model.error_estimate_ < 1
    located = dict(zip(location.indices, location.data, strict=True))
    cross = sum(x * located.get(j, 0) for x, j in zip(rows.data, rows.indices, strict=True))
    score = (2 * cross - rows.data @ rows.data) / 20_000 - location.data @ location.data
    assert model.score(rows) == pytest.approx(score)
    assert estimator(sparsity=1).fit(rows[:2]).score(rows) == -rows.data @ rows.data / 20_000


def test_memory_follows_the_entries_and_not_the_dictionary():
    rows = bags(5000)
    tracemalloc.start()
    estimator().fit(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * (rows.data.nbytes + rows.indices.nbytes)


def test_with_a_generous_budget_it_is_the_mean():
    rows = bags(3000, n_features=500)
    exact, missed = dense_mean(rows, np.arange(500))
    assert missed == 0
    model = estimator(epsilon=1e7, delta=0.5, sparse_output=False).fit(rows)
    # what one row alone has stays hidden at any budget
    hidden = model.location_ == 0
    found = np.zeros(500)
    found[np.unique(rows.indices)] = exact
    np.testing.assert_allclose(model.location_[~hidden], found[~hidden], atol=1e-5)
    assert found[hidden].max() < 1.01 / 3000


def test_units_are_those_of_the_data():
    rows = bags(3000, n_features=500)
    one, ten = (estimator(data_norm=norm).fit(norm * rows) for norm in (1.0, 10.0))
    np.testing.assert_allclose(ten.location_.data, 10 * one.location_.data)
    assert ten.threshold_ == pytest.approx(10 * one.threshold_)
    assert ten.error_estimate_ == pytest.approx(10 * one.error_estimate_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sparsity": None}, "sparsity must be given for mechanism='histogram'.* got None"),
        ({"delta": 0.0}, "delta must be greater than 0 for mechanism='histogram'.* got 0"),
        ({"projection": "l1"}, "projection is a parameter of"),
        ({"sparse_output": False}, "sparse_output must be True for 1099511627776 features"),
        ({"epsilon": 1e-12, "delta": 1e-300}, "too small to be spent"),
        ({"mechanism": "auto"}, "use mechanism='histogram'"),
    ],
)
def test_what_makes_no_sense_is_named(options, message):
    model = estimator(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(bags(10))
    assert not hasattr(model, "ledger_")


X = np.random.default_rng(0).normal(size=(60, 3))
DATA = {
    "one row": X[:1], "one feature": X[:, :1], "constant": np.full((60, 3), 3.3),
    "zeros": np.zeros((60, 3)), "no entries": sparse.csr_array((9, HUGE)), "large": X * 1e300,
    "small": X * 1e-300, "denormal": np.full((60, 3), 5e-324), "scales": X * [1e300, 1, 1e-300],
    "largest": np.full((60, 3), 1.7e308), "single": X.astype(np.float32),
    "last column": sparse.csr_array(([1.0], [HUGE - 1], [0, 1]), shape=(1, HUGE)),
    "duplicates": sparse.csr_array(
        (np.full(240, 8e307), np.tile([2, 0, 2, 2], 60), np.arange(0, 241, 4)), shape=(60, 3)
    ),
}  # fmt: skip


@pytest.mark.covering
@pytest.mark.parametrize("rows", DATA.values(), ids=DATA)
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("sparsity", [1, 1000])
def test_degenerate_rows(rows, nonnegative, sparsity):
    with np.errstate(all="raise"):
        model = estimator(nonnegative=nonnegative, sparsity=sparsity).fit(rows)
    assert model.location_.shape == (1, rows.shape[1])
    assert np.isfinite(model.location_.data).all()
    assert np.linalg.norm(model.location_.data) <= 1 + 1e-12
    assert 0 < model.error_estimate_ <= 1
    assert model.privacy_spent_ == (1.0, 1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-9), (1.0, 0.9), (1e9, 1e-9)])
def test_legal_budgets_are_served_within_the_budget(epsilon, delta):
    model = estimator(epsilon=epsilon, delta=delta).fit(X)
    assert model.privacy_spent_ == (epsilon, delta)

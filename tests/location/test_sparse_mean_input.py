# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bad input to means of sparse rows: a clear error, or a correct fit within the budget."""

import tracemalloc
import warnings

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone

from skdp import DPSparseMeanEstimator
from skdp.exceptions import SeededNoiseWarning
from skdp.location._sparse_mean import plan_sparse_mean
from skdp.location._sparse_noisy import SparseMeanProblem
from tests.location._bags import admitted_mean, bags_of_words

NAN, INF = float("nan"), float("inf")
X = np.where(
    (rng := np.random.default_rng(0)).uniform(size=(60, 7)) < 0.6, 0, rng.normal(size=(60, 7))
)
MODELS = {
    "soft-threshold": DPSparseMeanEstimator(random_state=0),
    "with sparsity": DPSparseMeanEstimator(sparsity=2, nonnegative=True, random_state=0),
    "pure": DPSparseMeanEstimator(delta=0.0, sparsity=2, random_state=0),
    "l1l2": DPSparseMeanEstimator(
        mechanism="projection", sparsity=3, projection="l1l2", random_state=0
    ),
    "sparse output": DPSparseMeanEstimator(sparsity=3, sparse_output=True, random_state=0),
}
every_model = pytest.mark.parametrize("name", MODELS)
BAD = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "delta": [-0.1, 1, NAN, "1", None, 1e-320],
    "mechanism": ["median", None, 3, "laplace"],
    "adjacency": ["add-remove", None],
    "data_norm": [0, -1, NAN, INF, 1e101, "1", None],
    "sparsity": [0, -1, 2.5, "2", NAN],
    "projection": ["l2", None, 1],
    "solver": ["lbfgs", None],
    "measurement": ["dct", None],
    "recovery": ["lasso", None],
    "n_measurements": [0, 2.5, "3"],
    "random_state": [-1, "a"],
}


def fit(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SeededNoiseWarning)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            return clone(model).fit(data)


@pytest.mark.covering
@pytest.mark.parametrize("name", ["soft-threshold", "with sparsity"])
@pytest.mark.parametrize(
    ("parameter", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
@pytest.mark.parametrize("validated", [True, False])
def test_a_parameter_out_of_range_is_named_and_nothing_is_fitted(name, parameter, value, validated):
    model = clone(MODELS[name]).set_params(**{parameter: value})
    with (
        sklearn.config_context(skip_parameter_validation=not validated),
        pytest.raises((ValueError, TypeError), match=parameter),
    ):
        model.fit(X)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"delta": 0.0}, "sparsity must be given at delta=0.*; got None"),
        ({"delta": 0.0, "mechanism": "soft-threshold"}, "sparsity must be given at delta=0"),
        ({"mechanism": "projection"}, "sparsity must be given .*soft-threshold"),
        ({"measurement": "hadamard"}, "measurement .*'compressed-sensing'.*'soft-threshold'"),
        ({"n_measurements": 3}, "n_measurements .*'compressed-sensing'.*got n_measurements=3"),
        ({"recovery": "equality", "delta": 0.0, "sparsity": 2}, "recovery .*'soft-threshold'"),
        ({"solver": "cvxpy"}, "solver .*'compressed-sensing'"),
        ({"mechanism": "histogram", "sparsity": 2, "projection": "l1"}, "projection .*'histogram'"),
    ],
)
def test_parameters_that_do_not_go_together_are_named(parameters, words):
    model = DPSparseMeanEstimator(**parameters)
    with pytest.raises(ValueError, match=words):
        model.fit(X)
    assert not hasattr(model, "ledger_")


@pytest.mark.covering
@every_model
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 50.0, 1e6])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_any_finite_rows_are_fitted_within_the_budget(name, epsilon, container):
    tiny = np.where(X > 0, 1e-300, 5e-324)
    for data in (
        X, X[:1], X[:, :1], np.zeros((5, 2)), np.full((5, 2), 1e300), np.full((5, 2), -1e-300),
        X.astype(np.float32), np.where(X > 0, 1e308, tiny), X[::-1], np.ones((3, 3)), tiny,
        np.tile(X[:1], (20, 1)),
    ):  # fmt: skip
        model = fit(clone(MODELS[name]).set_params(epsilon=epsilon), container(data))
        location = model.location_
        location = location.toarray()[0] if sparse.issparse(location) else location
        assert location.shape == (data.shape[1],)
        assert np.linalg.norm(location) <= model.data_norm * (1 + 1e-9)
        assert model.privacy_spent_[0] <= epsilon
        assert model.privacy_spent_[1] in (0.0, model.delta)
        assert 0 < model.error_estimate_ <= model.data_norm


@every_model
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_that_are_not_finite_are_refused(name, bad, container):
    data = X.copy()
    data[3, 1] = bad
    with pytest.raises(ValueError, match="contains"):
        fit(MODELS[name], container(data))


@pytest.mark.parametrize("shape", [(0, 2), (3, 0), (4,)])
def test_shapes_that_are_no_rows_are_refused(shape):
    with pytest.raises(ValueError, match=r"array|sample|feature"):
        DPSparseMeanEstimator().fit(np.zeros(shape))


def odd_formats():
    """Yield sparse rows with odd formats, and what they are worth as a dense array."""
    rows = sparse.csr_array(X)
    long_indices = sparse.csr_matrix(X)
    long_indices.indices = long_indices.indices.astype(np.int64)
    long_indices.indptr = long_indices.indptr.astype(np.int64)
    yield long_indices, X
    backwards = sparse.csr_array(X)
    for i in range(60):
        part = slice(*backwards.indptr[i : i + 2])
        backwards.indices[part] = backwards.indices[part][::-1].copy()
        backwards.data[part] = backwards.data[part][::-1].copy()
    yield backwards, X
    twice = sparse.csr_array(
        (np.repeat(rows.data, 2) / 2, np.repeat(rows.indices, 2), 2 * rows.indptr), shape=X.shape
    )
    yield twice, X
    zeros = sparse.csr_array((X.ravel(), np.tile(np.arange(7), 60), np.arange(61) * 7), X.shape)
    yield zeros, X
    yield sparse.csr_array((60, 7)), np.zeros((60, 7))
    stale = sparse.csr_matrix(np.eye(4, 6) + 1.0)
    assert stale.has_canonical_format
    stale.indices[:] = 0
    yield stale, stale.toarray()
    yield rows.tocsc(), X
    yield (
        sparse.csr_array(np.where(np.arange(60)[:, None] % 2, X, 0)),
        X * (np.arange(60)[:, None] % 2),
    )


@pytest.mark.parametrize("index", range(8))
@pytest.mark.parametrize("parameters", [{}, {"sparsity": 2}, {"sparsity": 3, "nonnegative": True}])
def test_every_stored_value_counts_once_in_odd_formats(index, parameters):
    rows, dense = list(odd_formats())[index]
    parts = [getattr(rows, name).copy() for name in ("data", "indices", "indptr")]
    mean = DPSparseMeanEstimator(1e9, random_state=0, **parameters)
    expected = admitted_mean(dense, **parameters)
    np.testing.assert_allclose(fit(mean, rows).location_, expected, atol=1e-4)
    for name, part in zip(("data", "indices", "indptr"), parts, strict=True):
        np.testing.assert_array_equal(getattr(rows, name), part)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_read_only_memory_maps(dtype, tmp_path):
    saved = {}
    for name, part in zip(("data", "indices", "indptr"), _parts(dtype), strict=True):
        np.save(tmp_path / f"{name}.npy", part)
        saved[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    rows = sparse.csr_array(tuple(saved.values()), shape=X.shape, copy=False)
    for model in MODELS.values():
        assert fit(model, rows).privacy_spent_[0] <= 1.0
    np.save(tmp_path / "X.npy", X.astype(dtype))
    assert fit(MODELS["with sparsity"], np.load(tmp_path / "X.npy", mmap_mode="r")).ledger_


def _parts(dtype):
    rows = sparse.csr_array(X.astype(dtype))
    return rows.data, rows.indices, rows.indptr


def test_more_non_zeros_allowed_than_features_means_all_of_them():
    few, many = (fit(clone(MODELS["pure"]).set_params(sparsity=s), X) for s in (7, 10**9))
    np.testing.assert_array_equal(few.location_, many.location_)
    assert few.ledger_ == many.ledger_


def test_names_of_features_are_kept():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:, :3], columns=["a", "b", "c"])
    assert list(fit(MODELS["pure"], frame).feature_names_in_) == ["a", "b", "c"]


@pytest.mark.parametrize("mechanism", ["auto", "projection", "compressed-sensing"])
def test_vectors_that_do_not_fit_in_memory_are_refused_by_name(mechanism):
    wide = sparse.csr_array((np.ones(3), ([0, 1, 2], [0, 5, 2**40 - 1])), shape=(3, 2**40))
    model = DPSparseMeanEstimator(mechanism=mechanism, sparsity=2)
    with pytest.raises(ValueError, match="sparse_output"):
        model.fit(wide)
    with pytest.raises(ValueError, match="histogram"):
        model.set_params(sparse_output=True).fit(wide)


def test_there_is_no_such_mechanism():
    with pytest.raises(ValueError, match="mechanism"):
        plan_sparse_mean("median", SparseMeanProblem(3, 3, 1.0, 0.0, "zero-out", sparsity=2))


def test_a_fit_needs_memory_for_the_non_zeros_and_a_few_vectors():
    n_rows, n_features = 4000, 10**6
    rows = bags_of_words(n_rows, n_features, 50)
    tracemalloc.start()
    fit(clone(MODELS["with sparsity"]).set_params(sparsity=30), rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * rows.nnz + 30 * 8 * n_features

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Means of sparse rows: thresholds, histograms, rates, input."""

import math
import tracemalloc
import warnings

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from skdp import DPSparseMeanEstimator
from skdp._recovery.shrinkage import ksupport_norm, predicted_error
from skdp.exceptions import PrivacyWarning
from tests import _audit
from tests.location._bags import admitted_mean, bags_of_words, blocks

# What DPSparseMeanEstimator releases, and how near it comes.


CONFIGURATIONS = [
    {},
    {"nonnegative": True},
    {"sparsity": 3, "mechanism": "soft-threshold"},
    {"sparsity": 3, "delta": 0.0, "adjacency": "zero-out"},
    {"sparsity": 3, "nonnegative": True, "delta": 0.0},
    *[{"sparsity": 2, "mechanism": "projection", "projection": p} for p in ("l1", "l1l2")],
    {"sparsity": 99, "mechanism": "projection", "nonnegative": True},
]
every_configuration = pytest.mark.parametrize("parameters", CONFIGURATIONS, ids=str)


def rows_of(parameters):
    return {name: parameters[name] for name in ("sparsity", "nonnegative") if name in parameters}


@pytest.mark.sample(8)
@every_configuration
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_with_a_huge_budget_it_is_the_mean_of_the_admitted_rows(parameters, container):
    X = np.random.default_rng(0).normal(size=(300, 6)).round(1)
    mean = DPSparseMeanEstimator(1e7, data_norm=1.5, **parameters).fit(container(X))
    expected = admitted_mean(X, 1.5, **rows_of(parameters))
    assert_allclose(mean.location_, expected, atol=1e-4)
    assert mean.error_estimate_ < 1e-4


@pytest.mark.parametrize(
    ("parameters", "scale"),
    [
        ({}, 2 * 4.224679),
        ({"adjacency": "zero-out"}, 4.224679),
        ({"nonnegative": True}, math.sqrt(2) * 4.224679),
        ({"sparsity": 9, "delta": 0.0}, 6.0),
        ({"sparsity": 9, "delta": 0.0, "adjacency": "zero-out"}, 3.0),
    ],
)
def test_the_noise_is_what_theory_says(parameters, scale):
    mean = DPSparseMeanEstimator(1.0, **{"delta": 1e-6, **parameters})
    (step,) = _audit.noise_stream(mean.fit, np.zeros((5, 100)))
    assert step.noise.scale == pytest.approx(scale, rel=1e-5)
    assert not _audit.scale_is_wrong([step])


@every_configuration
def test_it_lies_in_the_set_that_it_was_projected_on(parameters):
    X = bags_of_words(40, 50, 5)
    mean = DPSparseMeanEstimator(0.1, data_norm=2.0, **parameters).fit(X)
    unit = mean.location_ / 2.0
    assert np.linalg.norm(unit) <= 1 + 1e-12 or parameters.get("projection") == "l1"
    if "sparsity" in parameters:
        kind, s = parameters.get("projection", "ksupport"), min(parameters["sparsity"], 50)
        assert np.abs(unit).sum() <= math.sqrt(s) * (1 + 1e-12)
        if kind == "ksupport":
            assert ksupport_norm(unit, s) <= 1 + 1e-12
    if parameters.get("nonnegative"):
        assert unit.min() >= 0


def noise_of(mean, X):
    """Fit, and return the noise on the mean, in units of data_norm."""
    (step,) = _audit.noise_stream(mean.fit, X)
    return (step.output - step.statistic) / X.shape[0]


@pytest.mark.sample(6, 11)
@pytest.mark.parametrize("projection", ["l1", "l1l2", "ksupport"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n_rows", [10, 1000, 30_000])
def test_a_projection_errs_by_no_more_than_the_noise_and_its_largest_entry_allow(
    n_rows, delta, projection
):
    X = blocks(n_rows, 400, 4, 10)
    mean = DPSparseMeanEstimator(
        1.0, delta, mechanism="projection", sparsity=4, projection=projection
    )
    noise = noise_of(mean, X)
    square = np.sum((mean.location_ - X.mean(axis=0)) ** 2)
    largest = 2 * math.sqrt(4) * np.abs(noise).max()
    assert square <= min(largest, np.sum(noise**2)) * (1 + 1e-9)


def errors_on_bags(n_rows, delta, reps=5, n_features=2**14):
    """Return mean errors of raw noise, the l1 projection, the default, and its estimate."""
    X = bags_of_words(n_rows, n_features, 20)
    expected = np.asarray(X.mean(axis=0)).ravel()
    longest = float(np.sqrt(X.multiply(X).sum(axis=1).max()))
    entries = int(np.diff(X.indptr).max())
    found = []
    for seed in range(reps):
        l1 = DPSparseMeanEstimator(
            random_state=seed,
            delta=delta,
            mechanism="projection",
            projection="l1",
            sparsity=entries,
            data_norm=longest,
        )
        sparsity = None if delta else entries
        free = DPSparseMeanEstimator(
            delta=delta, data_norm=longest, sparsity=sparsity, random_state=seed
        )
        noises = noise_of(l1, X)
        free.fit(X)
        gaps = noises * longest, l1.location_ - expected, free.location_ - expected
        found.append([*(np.linalg.norm(gap) for gap in gaps), free.error_estimate_])
    return np.mean(found, axis=0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n_rows", [2000, 10_000])
def test_on_bags_of_words_it_is_better_than_raw_noise_and_a_projection(n_rows, delta):
    raw, l1, soft, estimate = errors_on_bags(n_rows, delta)
    assert soft <= 1.05 * min(raw, l1)
    assert raw > 3 * soft
    assert estimate == pytest.approx(soft, rel=0.3)


def test_non_negative_rows_get_less_noise():
    X = bags_of_words(3000, 2**12, 20)
    expected = np.asarray(X.mean(axis=0)).ravel()
    longest = float(np.sqrt(X.multiply(X).sum(axis=1).max()))
    errors = []
    for nonnegative in (False, True):
        mean = DPSparseMeanEstimator(data_norm=longest, nonnegative=nonnegative)
        runs = [mean.set_params(random_state=seed).fit(X).location_ for seed in range(5)]
        runs = [np.linalg.norm(run - expected) for run in runs]
        errors.append(np.mean(runs))
    assert errors[1] < 0.8 * errors[0]


@pytest.mark.sample(1)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n_rows", [400, 4000, 40_000])
def test_the_predicted_error_is_that_of_the_worst_rows(n_rows, delta):
    mean = DPSparseMeanEstimator(1.0, delta, mechanism="projection", sparsity=4)
    ratios = []
    for n_blocks in (1, 3, 10, 30, 100, 400):
        X = blocks(n_rows, 2000, 4, n_blocks)
        expected = np.asarray(X.mean(axis=0)).ravel()
        runs = [mean.set_params(random_state=seed).fit(X).location_ for seed in range(3)]
        runs = [np.linalg.norm(run - expected) for run in runs]
        ratios.append(np.mean(runs) / mean.error_estimate_)
    assert 0.7 < max(ratios) < 1.3


def test_predictions_join_three_regimes():
    for law, root in (("gaussian", 1.0), ("laplace", math.sqrt(2.0))):
        assert predicted_error(law, 1e9, 100, 4) == 1.0
        assert predicted_error(law, 1e-9, 100, 4) == pytest.approx(root * 1e-8)
        assert predicted_error(law, 1e-3, 10**8, 1) < 0.15


@pytest.mark.parametrize(
    ("parameters", "mechanism", "law"),
    [
        ({}, "soft-threshold", "gaussian"),
        ({"sparsity": 16}, "soft-threshold", "gaussian"),
        # one-hot rows: the l1 sensitivity is no larger than the l2 sensitivity
        ({"sparsity": 1}, "soft-threshold", "laplace"),
        ({"sparsity": 1, "mechanism": "soft-threshold"}, "soft-threshold", "gaussian"),
        ({"sparsity": 3, "delta": 0.0}, "soft-threshold", "laplace"),
        ({"sparsity": 3, "delta": 0.0, "mechanism": "projection"}, "projection", "laplace"),
        ({"sparsity": 3, "mechanism": "projection"}, "projection", "gaussian"),
    ],
)
def test_the_mechanism_follows_from_public_numbers(parameters, mechanism, law):
    for X in (np.zeros((100, 64)), np.ones((100, 64)), -np.eye(100, 64)):
        mean = DPSparseMeanEstimator(**parameters).fit(X)
        (release,) = mean.ledger_.releases
        assert (mean.mechanism_, release.noise.law) == (mechanism, law)
        assert mean.privacy_spent_[1] == (0.0 if law == "laplace" else mean.delta)
        assert mean.privacy_spent_[0] <= mean.epsilon
        assert (mean.threshold_ is None) == (mechanism == "projection")


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_sparse_output_is_the_same_location(delta):
    X = bags_of_words(2000, 300, 5)
    parameters = {"delta": delta, "sparsity": 5, "random_state": 0, "data_norm": 2.0}
    dense = DPSparseMeanEstimator(**parameters).fit(X)
    mean = DPSparseMeanEstimator(**parameters, sparse_output=True).fit(X)
    assert mean.location_.shape == (1, 300)
    assert mean.location_.nnz == np.count_nonzero(dense.location_) < 300
    assert_array_equal(mean.location_.toarray()[0], dense.location_)
    assert mean.score(X) == pytest.approx(dense.score(X))
    assert mean.score(X.toarray()) == pytest.approx(dense.score(X))


def test_score_is_minus_the_squared_distance():
    X = bags_of_words(50, 20, 4)
    mean = DPSparseMeanEstimator().fit(X)
    expected = -np.mean(np.sum((X.toarray() - mean.location_) ** 2, axis=1))
    assert mean.score(X) == pytest.approx(expected)
    assert mean.score(X.toarray()) == pytest.approx(expected)


def test_scores_of_sparse_locations_make_no_vector_as_long_as_a_row():
    X = sparse.csr_array((np.full(3, 2.0), ([0, 1, 1], [7, 7, 2**40 - 1])), shape=(2, 2**40))
    mean = DPSparseMeanEstimator(mechanism="histogram", sparsity=2, sparse_output=True).fit(X)
    for columns, expected in [([7], -((2 - 0.5) ** 2 + (2 - 0.5) ** 2 + 4) / 2), ([], -6.0)]:
        data = np.full(len(columns), 0.5)
        row = sparse.csr_array((data, (np.zeros(len(columns), int), columns)), shape=(1, 2**40))
        mean.location_ = row
        assert mean.score(X) == pytest.approx(expected)


def test_formats_agree():
    X = bags_of_words(200, 40, 6)
    X.data *= np.random.default_rng(1).choice([-1, 1], size=X.nnz)
    parameters = {"sparsity": 3, "random_state": 0, "nonnegative": True}
    dense = DPSparseMeanEstimator(**parameters).fit(X.toarray()).location_
    for rows in (X, X.tocsc(), X.tocoo(), sparse.csr_matrix(X), X.astype(np.float32)):
        assert_allclose(DPSparseMeanEstimator(**parameters).fit(rows).location_, dense, atol=1e-6)


# DPSparseMeanEstimator, mechanism="histogram": open dictionaries, memory, bad input.


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


@pytest.mark.full
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


@pytest.mark.sample(4)
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


# How errors of means of sparse rows grow with rows, non-zeros and features.


def slope(sizes, errors):
    return np.polyfit(np.log(sizes), np.log(errors), 1)[0]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["projection", "soft-threshold"])
def test_rates(mechanism):
    """Slopes of the error in rows, non-zeros and features where noise is many-dimensional."""

    def error(n_rows, sparsity=8, n_features=2**16):
        noise = 2 * 4.224679 / n_rows
        level = noise * math.sqrt(2 * math.log(n_features))
        n_blocks = int(np.clip(round(1 / (level * math.sqrt(sparsity))), 1, n_features / sparsity))
        X = blocks(n_rows, n_features, sparsity, min(n_blocks, n_rows))
        mean = DPSparseMeanEstimator(mechanism=mechanism, sparsity=sparsity)
        expected = np.asarray(X.mean(axis=0)).ravel()
        runs = [mean.set_params(random_state=seed).fit(X).location_ for seed in range(4)]
        return np.mean([np.linalg.norm(run - expected) for run in runs])

    rows, entries, features = [2000, 8000, 32_000], [2, 8, 32], [2**14, 2**16, 2**18]
    assert -0.7 <= slope(rows, [error(n) for n in rows]) <= -0.45
    assert 0.15 <= slope(entries, [error(16_000, s) for s in entries]) <= 0.3
    assert abs(slope(features, [error(8000, 8, d) for d in features])) <= 0.15
    low = [2**16, 2**18, 2**20]
    assert -1.1 <= slope(low, [error(n, 4, 64) for n in low]) <= -0.9


# Bad input to means of sparse rows: a clear error, or a correct fit within the budget.


NAN, INF = float("nan"), float("inf")
INPUT_X = np.where(
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
    "adjacency": ["remove-one", None],
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
        warnings.simplefilter("ignore", PrivacyWarning)
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
        model.fit(INPUT_X)
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
        model.fit(INPUT_X)
    assert not hasattr(model, "ledger_")


@pytest.mark.sample(2)
@every_model
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 50.0, 1e6])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_any_finite_rows_are_fitted_within_the_budget(name, epsilon, container):
    tiny = np.where(INPUT_X > 0, 1e-300, 5e-324)
    for data in (
        INPUT_X,
        INPUT_X[:1],
        INPUT_X[:, :1],
        np.zeros((5, 2)),
        np.full((5, 2), 1e300),
        np.full((5, 2), -1e-300),
        INPUT_X.astype(np.float32),
        np.where(INPUT_X > 0, 1e308, tiny),
        INPUT_X[::-1],
        np.ones((3, 3)),
        tiny,
        np.tile(INPUT_X[:1], (20, 1)),
    ):
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
    data = INPUT_X.copy()
    data[3, 1] = bad
    with pytest.raises(ValueError, match="contains"):
        fit(MODELS[name], container(data))


@pytest.mark.parametrize("shape", [(0, 2), (3, 0), (4,)])
def test_shapes_that_are_no_rows_are_refused(shape):
    with pytest.raises(ValueError, match=r"array|sample|feature"):
        DPSparseMeanEstimator().fit(np.zeros(shape))


def odd_formats():
    """Yield sparse rows with odd formats, and what they are worth as a dense array."""
    rows = sparse.csr_array(INPUT_X)
    long_indices = sparse.csr_matrix(INPUT_X)
    long_indices.indices = long_indices.indices.astype(np.int64)
    long_indices.indptr = long_indices.indptr.astype(np.int64)
    yield long_indices, INPUT_X
    backwards = sparse.csr_array(INPUT_X)
    for i in range(60):
        part = slice(*backwards.indptr[i : i + 2])
        backwards.indices[part] = backwards.indices[part][::-1].copy()
        backwards.data[part] = backwards.data[part][::-1].copy()
    yield backwards, INPUT_X
    twice = sparse.csr_array(
        (np.repeat(rows.data, 2) / 2, np.repeat(rows.indices, 2), 2 * rows.indptr),
        shape=INPUT_X.shape,
    )
    yield twice, INPUT_X
    zeros = sparse.csr_array(
        (INPUT_X.ravel(), np.tile(np.arange(7), 60), np.arange(61) * 7), INPUT_X.shape
    )
    yield zeros, INPUT_X
    yield sparse.csr_array((60, 7)), np.zeros((60, 7))
    stale = sparse.csr_matrix(np.eye(4, 6) + 1.0)
    assert stale.has_canonical_format
    stale.indices[:] = 0
    yield stale, stale.toarray()
    yield rows.tocsc(), INPUT_X
    yield (
        sparse.csr_array(np.where(np.arange(60)[:, None] % 2, INPUT_X, 0)),
        INPUT_X * (np.arange(60)[:, None] % 2),
    )


@pytest.mark.sample(6, 11)
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
    rows = sparse.csr_array(tuple(saved.values()), shape=INPUT_X.shape, copy=False)
    for model in MODELS.values():
        assert fit(model, rows).privacy_spent_[0] <= 1.0
    np.save(tmp_path / "X.npy", INPUT_X.astype(dtype))
    assert fit(MODELS["with sparsity"], np.load(tmp_path / "X.npy", mmap_mode="r")).ledger_


def _parts(dtype):
    rows = sparse.csr_array(INPUT_X.astype(dtype))
    return rows.data, rows.indices, rows.indptr


def test_more_non_zeros_allowed_than_features_means_all_of_them():
    few, many = (fit(clone(MODELS["pure"]).set_params(sparsity=s), INPUT_X) for s in (7, 10**9))
    np.testing.assert_array_equal(few.location_, many.location_)
    assert few.ledger_ == many.ledger_


def test_names_of_features_are_kept():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(INPUT_X[:, :3], columns=["a", "b", "c"])
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
    model = DPSparseMeanEstimator(mechanism="median", sparsity=2, data_norm=1.0)
    unchecked = sklearn.config_context(skip_parameter_validation=True)
    with unchecked, pytest.raises(ValueError, match="mechanism"):
        model.fit(INPUT_X)


@pytest.mark.full
def test_a_fit_needs_memory_for_the_non_zeros_and_a_few_vectors():
    n_rows, n_features = 4000, 10**6
    rows = bags_of_words(n_rows, n_features, 50)
    tracemalloc.start()
    fit(clone(MODELS["with sparsity"]).set_params(sparsity=30), rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * rows.nnz + 30 * 8 * n_features

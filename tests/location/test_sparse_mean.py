# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What DPSparseMeanEstimator releases, and how near it comes."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdp import DPSparseMeanEstimator
from skdp._recovery.shrinkage import ksupport_norm, predicted_error
from tests import _audit
from tests.location._bags import admitted_mean, bags_of_words, blocks

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


@pytest.mark.covering
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
    assert_array_equal(mean.predict(X[:3].toarray()).toarray(), dense.predict(X[:3].toarray()))


def test_predict_repeats_the_location_and_score_is_minus_the_squared_distance():
    X = bags_of_words(50, 20, 4)
    mean = DPSparseMeanEstimator().fit(X)
    assert_array_equal(mean.predict(X.toarray()), np.tile(mean.location_, (50, 1)))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        mean.predict(X)
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

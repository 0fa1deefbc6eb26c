# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Output perturbation of sparse rows: noise, penalty, projection, and size."""

import functools
import math
import re
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from skdp import DPLogisticRegression
from skdp._minimize.objective import RowObjective
from skdp._recovery.shrinkage import project_linf
from tests import _audit
from tests._neighbours import ADJACENCIES
from tests._solvers import linear_model, problem_of
from tests.linear_model.test_default_ridge import noise_law, problem


def bags(n_rows=400, n_features=3000, per_row=5, seed=0):
    """Return rows that share one of two words that decide, and labels."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(2, n_features, size=(n_rows, per_row))
    y = np.arange(n_rows) % 2
    columns[:, 0] = y
    values = np.full(columns.size, 1 / math.sqrt(per_row))
    X = sparse.csr_array(
        (values, columns.ravel(), np.arange(n_rows + 1) * per_row), shape=(n_rows, n_features)
    )
    X.sum_duplicates()
    return X, y


def model(epsilon=8.0, delta=0.0, **options):
    usual = {"mechanism": "output", "classes": (0, 1), "random_state": 0}
    return linear_model(DPLogisticRegression, epsilon, delta, **{**usual, **options})


# -- the noise ---------------------------------------------------------------


def test_noise_is_chosen_by_what_it_does_to_a_margin():
    sparse_rows = problem(delta=0.0, sparsity=40)
    assert noise_law(sparse_rows, 50.0)[0] == "laplace"
    # under a weak penalty one row moves many coefficients
    many = problem(n_rows=10**7, n_features=10_000, delta=0.0, sparsity=40)
    assert noise_law(many, 1.0)[0] == "k-norm"
    assert noise_law(problem(n_features=100, delta=0.0, sparsity=40), 50.0)[0] == "k-norm"
    assert noise_law(problem(sparsity=40), 50.0)[0] == "gaussian"
    # K-norm noise of so many coefficients would take minutes
    law, deviation = noise_law(problem(delta=0.0), 50.0)
    assert law == "laplace"
    assert deviation == pytest.approx(2 * math.hypot(1, 0.1) / 50 * math.sqrt(2 * (2**18 + 1)))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_predicted_deviation_is_that_of_the_noise(delta, n_classes):
    X, y = bags(n_rows=60, n_features=200, per_row=3)
    for sparsity in (None, 1):
        fit = model(
            2.0, delta, C=0.05, sparsity=sparsity, classes=range(n_classes), fit_intercept=False
        )
        with _audit.recorded() as additions:
            fit.fit(X, y)
        law, deviation = noise_law(problem_of(fit, 60, 200, n_classes), 20.0)
        noise = additions[0].noise
        assert noise.law == law
        # the deviation of one coefficient
        factor = {"gaussian": 1.0, "laplace": math.sqrt(2), "k-norm": math.sqrt(200 * (
            1 if n_classes == 2 else n_classes) + 1)}[law]  # fmt: skip
        assert deviation == pytest.approx(factor * noise.scale, rel=1e-3)


def test_sparsity_pays_under_pure_privacy():
    X, y = bags()
    A, B, a, b = X[:300], X[300:], y[:300], y[300:]
    scores = {
        sparsity: np.mean(
            [model(4.0, sparsity=sparsity, random_state=i).fit(A, a).score(B, b) for i in range(8)]
        )
        for sparsity in (None, 5)
    }
    assert scores[5] > scores[None] + 0.1


def test_laplace_noise_is_for_sparse_rows_and_auto_knows_of_none():
    X, y = bags()
    laws = {}
    for sparsity in (None, 5):
        named = model(sparsity=sparsity).fit(X, y)
        laws[sparsity] = named.ledger_.releases[0].noise.law
    assert laws == {None: "k-norm", 5: "laplace"}
    auto, named = model(mechanism="auto").fit(X, y), model(mechanism="objective").fit(X, y)
    np.testing.assert_array_equal(auto.coef_, named.coef_)


# -- the projection ----------------------------------------------------------


def test_noisy_coefficients_are_projected_by_soft_thresholding():
    X, y = bags()
    fits = {}
    for projected in (False, True):
        with _audit.recorded() as additions:
            fits[projected] = model(coef_bound=2.0, sparsity=5, linf_projection=projected).fit(X, y)
        released = additions[0].output
        assert np.linalg.norm(released) > 2.0
        coef = np.append(fits[projected].coef_[0], fits[projected].intercept_ / 0.1)
        expected = project_linf(released, 2.0) if projected else released * 2 / np.linalg.norm(
            released)  # fmt: skip
        np.testing.assert_allclose(coef, expected, rtol=1e-9, atol=1e-12)
    assert fits[False].privacy_spent_ == fits[True].privacy_spent_
    assert np.count_nonzero(fits[False].coef_) == X.shape[1]
    assert np.count_nonzero(fits[True].coef_) < X.shape[1] / 3


def test_a_point_inside_the_ball_stays_where_it_is():
    X, y = bags()
    with _audit.recorded() as additions:
        fit = model(coef_bound=1e6, linf_projection=True).fit(X, y)
    np.testing.assert_array_equal(fit.coef_[0], additions[0].output[:-1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_projection_respects_units_and_classes(n_classes):
    X, y = bags(n_rows=60, n_features=50)
    fit = model(
        coef_bound=0.01, data_norm=300.0, linf_projection=True, classes=range(n_classes),
        fit_intercept=False,
    ).fit(300 * X, y)  # fmt: skip
    assert fit.coef_.shape == (1 if n_classes == 2 else 3, 50)
    # coefficients of a class too few are noise around zero, which may be shorter
    assert np.linalg.norm(fit.coef_) <= 0.01 * (1 + 1e-12)
    assert np.linalg.norm(fit.coef_) > 0.005


REFUSED = [
    ({}, "coef_bound must be a number for linf_projection=True"),
    ({"coef_bound": 1.0, "linf_projection": "yes"}, "linf_projection"),
    ({"sparsity": 0}, "sparsity"),
    ({"sparsity": 2.5}, "sparsity"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=str)
def test_what_makes_no_sense_is_refused_before_the_data_are_read(options, message):
    X, y = bags(n_rows=20, n_features=30)
    fit = model(**{"linf_projection": True, **options})
    with pytest.raises(ValueError, match=re.escape(message)):
        fit.fit(X, y)
    assert not hasattr(fit, "ledger_")


# -- the rows ----------------------------------------------------------------


def test_layouts_and_row_lengths_do_not_matter():
    X, y = bags(n_rows=80, n_features=60)
    dense = X.toarray()
    fit = model(sparsity=3, epsilon=1e3)
    expected = clone(fit).fit(X, y).coef_
    for other in (dense, np.asfortranarray(dense), sparse.csc_array(X), sparse.coo_array(X)):
        np.testing.assert_allclose(clone(fit).fit(other, y).coef_, expected, rtol=1e-6, atol=1e-9)
    # entries beyond the sparsity count for nothing, nor do explicit zeros
    longer = dense.copy()
    longer[longer == 0] = 1e-3
    few = top(dense, 3)
    np.testing.assert_allclose(
        clone(fit).fit(top(longer, 3), y).coef_, clone(fit).fit(few, y).coef_, rtol=1e-9
    )


def top(X, sparsity):
    order = np.argsort(-X, axis=1, kind="stable")[:, :sparsity]
    kept = np.zeros_like(X)
    np.put_along_axis(kept, order, np.take_along_axis(X, order, axis=1), axis=1)
    return kept


@pytest.mark.covering
@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-5, 1e300])
@pytest.mark.parametrize("n_rows", [1, 2, 9])
@pytest.mark.parametrize("sparsity", [1, 10**9])
def test_extreme_rows_are_fitted(n_rows, scale, sparsity):
    X = scale * np.eye(n_rows, 30).astype(np.float64)
    X.flags.writeable = False
    for data in (X, X.astype(np.float32) if scale < 1e30 else X, sparse.csr_array(X)):
        fit = model(1.0, sparsity=sparsity).fit(data, np.arange(n_rows) % 2)
        assert np.isfinite(fit.coef_).all()


# -- the size ----------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["output", "objective"])
def test_a_fit_with_many_features_takes_few_looks_and_little_memory(mechanism, monkeypatch):
    n_features = 2**18
    X, y = bags(n_rows=20_000, n_features=n_features, per_row=20)
    looks = []
    for name in ("value_and_gradient", "gradient", "hessian_product", "hessian_diagonal"):
        real = getattr(RowObjective, name)

        @functools.wraps(real)
        def counted(self, *args, real=real, name=name):
            looks.append(name)
            return real(self, *args)

        monkeypatch.setattr(RowObjective, name, counted)
    tracemalloc.start()
    fit = model(1.0, 1e-6, mechanism=mechanism).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert fit.score(X, y) > 0.9
    assert len(looks) < 60
    # pairs of steps, and a few more
    assert peak < 3 * (X.data.nbytes + X.indices.nbytes) + 60 * 8 * n_features
    assert "hessian_product" not in looks


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_pure_claims_are_kept_on_sparse_neighbours(n_classes, adjacency):
    X, y = bags(n_rows=12, n_features=80, per_row=4)
    fit = model(2.0, C=0.05, sparsity=4, adjacency=adjacency, classes=range(n_classes))
    other, codes = X.copy(), y.copy()
    codes[0] = 1 if adjacency == "replace-one" else 99
    pair = (X, y), (other, codes)
    measured = _audit.coupled_epsilon(lambda data: clone(fit).fit(*data), *pair)
    assert 0.05 < measured <= 2.0

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

from skdp import DPHingeSVM, DPLogisticRegression
from skdp._losses import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp._queries._objective import RowObjective
from skdp._recovery import project_linf
from skdp.linear_model._mechanisms import objective
from skdp.linear_model._mechanisms.ridge import MARGIN_NOISE, default_ridge, margin_noise, rivals
from skdp.privacy import gdp_mu
from tests import _audit
from tests._neighbours import ADJACENCIES


def noise_law(public, ridge):
    return margin_noise(public)(ridge)


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
    return DPLogisticRegression(epsilon, delta, **{**usual, **options})


def problem(n_rows=10_000, n_features=2**18, epsilon=1.0, delta=1e-5, n_classes=2, **options):
    return DPLogisticRegression(epsilon, delta, **options)._problem(n_rows, n_features, n_classes)


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
        law, deviation = noise_law(fit._problem(60, 200, n_classes), 20.0)
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


def test_auto_takes_laplace_noise_for_sparse_rows_only():
    X, y = bags()
    laws = {}
    for sparsity in (None, 5):
        auto = model(mechanism="auto", sparsity=sparsity).fit(X, y)
        named = model(mechanism="output" if sparsity else "objective", sparsity=sparsity).fit(X, y)
        np.testing.assert_array_equal(auto.coef_, named.coef_)
        laws[sparsity] = auto.ledger_.releases[0].noise.law
    assert laws == {None: "k-norm", 5: "laplace"}
    given = model(mechanism="auto", sparsity=5, C=0.1).fit(X, y)
    assert given.ledger_.releases[0].noise.law == "laplace"


# -- the penalty -------------------------------------------------------------


def test_the_penalty_does_not_depend_on_the_number_of_features():
    ridges = [default_ridge(problem(n_features=d)) for d in (100, 2**14, 2**20)]
    assert ridges[0] == ridges[1] == ridges[2]
    expected = 2 * math.hypot(1, 0.1) / gdp_mu(1.0, 1e-5) / MARGIN_NOISE
    assert ridges[0] == pytest.approx(expected)
    # nor does that of objective perturbation, from a few thousand on
    ridges = [objective.default_ridge(problem(n_features=d)) for d in (2**14, 2**20)]
    assert ridges[0] == pytest.approx(ridges[1], rel=1e-3)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("sparsity", [None, 30])
def test_noise_moves_margins_by_the_same_amount(delta, n_classes, sparsity):
    public = problem(n_features=5000, delta=delta, n_classes=n_classes, sparsity=sparsity)
    deviation = noise_law(public, default_ridge(public))[1]
    assert deviation == pytest.approx(MARGIN_NOISE / rivals(public.loss), rel=1e-9)


def test_few_coefficients_bear_more_noise_and_many_rows_less():
    few = problem(n_features=3)
    assert noise_law(few, default_ridge(few))[1] == pytest.approx(1.25 / 2)
    # from the bound for a solution of norm 30
    ridges = [default_ridge(problem(n_rows=n)) for n in (10**9, 8 * 10**9)]
    assert ridges[1] / ridges[0] == pytest.approx(2.0, rel=0.06)
    unit = noise_law(problem(), 1.0)[1] * math.hypot(1, 0.1)
    assert ridges[0] == pytest.approx((2 * 10**9 * unit**2 / 4 / 900) ** (1 / 3), rel=0.06)
    kinked = DPHingeSVM(1.0, 1e-5)
    ridges = [default_ridge(kinked._problem(n, 100, 2)) for n in (10**9, 4 * 10**9)]
    assert ridges[1] / ridges[0] == pytest.approx(2.0, rel=0.06)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("sparsity", [None, 1, 7])
@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
def test_the_penalty_is_found_for_any_budget(estimator, sparsity, epsilon):
    public = estimator(epsilon, 0.0, sparsity=sparsity)._problem(50, 400, 3)
    ridge = default_ridge(public)
    limit = MARGIN_NOISE / rivals(public.loss)
    assert noise_law(public, ridge)[1] <= limit * (1 + 1e-9)
    assert 0 < ridge < 1e9


@pytest.mark.parametrize(
    ("loss", "sigma", "short"),
    [
        (LogisticLoss(), 0.3, 0.0),
        (LogisticLoss(1.0, 0.1), 0.05, 0.0),
        (LogisticLoss(1.0, 0.1), 3.0, 0.0),
        (HingeLoss(), 0.3, 0.0),
        (SoftmaxLoss(3), 0.3, 0.0),
        (HingeLoss(), 0.3, 1.0),
        (LogisticLoss(), 0.3, 2.0),
    ],
    ids=str,
)
def test_what_noise_costs_is_free_of_the_dimension(loss, sigma, short):
    # Proposition 46: margins where the loss bends most attain the bound
    rng = np.random.default_rng(0)
    K, X = loss.n_outputs, 0.8
    z = np.zeros((1, K) if K > 1 else 1)
    z[..., 0] = loss.margin - short
    target = np.zeros(1, dtype=int) if K > 1 else np.ones(1)
    for n_features in (1, 50):
        # the noise of a margin, by way of the coefficients
        row = np.full(n_features, X / math.sqrt(n_features))
        noise = sigma * rng.normal(size=(100_000, K, n_features)) @ row
        moved = z + noise if K > 1 else z + noise[:, 0]
        excess = np.mean(loss.value(moved, np.repeat(target, 100_000)) - loss.value(z, target))
        kinked = sigma * X / math.sqrt(2 * math.pi)
        smooth = loss.trace * (sigma * X) ** 2 / 2
        bound = smooth if K > 1 else min(kinked, smooth)
        assert excess <= bound * 1.02 + 1e-12
        if short == 0:
            assert excess >= 0.8 * bound


def test_several_kinked_classes_cost_what_the_largest_noise_does():
    loss, rng = HingeLoss(6), np.random.default_rng(0)
    # all classes tie at the margin
    z = np.zeros((1, 6))
    z[0, 0] = 1.0
    moved = z + 0.3 * rng.normal(size=(100_000, 6))
    excess = loss.value(moved, np.zeros(100_000, dtype=int)).mean()
    assert 0.6 < excess / (0.3 * rivals(loss)) <= 1


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
    ({"coef_bound": 1.0, "solver": "localized", "delta": 1e-6}, "got it with solver='localized'"),
    ({"coef_bound": 1.0, "solver": "one-pass", "delta": 1e-6}, "got it with solver='one-pass'"),
    ({"coef_bound": 1.0, "mechanism": "objective"}, "parameter of mechanism='output'"),
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

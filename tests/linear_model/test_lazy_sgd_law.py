# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Fits whose noise comes late: the iterates and the law of solver "sgd" without momentum."""

from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from skdp import solvers
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.laws import late_noise as _lazy_noise
from skdp.privacy.laws.late_noise import LazySums
from tests._audit_lazy import coefficient_noise, dense, law_is_wrong
from tests.linear_model.test_lazy_sgd import every_estimator, lazy, rows


def no_noise():
    """Leave the noise out, lazy or not, and draw no bits for it."""

    def aligned(values, noise, bits):
        return _mechanisms.align(values, noise) * noise.grid

    def zeros(sums, n_columns):
        return np.zeros((n_columns, sums._values.shape[1]))

    return (
        mock.patch.object(_mechanisms, "add_noise", aligned),
        mock.patch.object(LazySums, "_draws", zeros),
    )


# -- the same iterates ---------------------------------------------------------------


@pytest.mark.covering
@every_estimator
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [np.inf, 1.0, 1e-3])
def test_without_noise_it_is_plain_stochastic_gradient_descent(
    C, n_classes, fit_intercept, estimator
):
    X, y = rows(n_classes=n_classes)
    model = lazy(estimator, C=C, fit_intercept=fit_intercept, step_size=2.0)
    own = model.solver.get_params()
    plain = clone(model).set_params(solver=solvers.SGD(momentum=False, **own))
    first, second = no_noise()
    # the coarser grid of the average would show where there is no noise
    with first, second, mock.patch.object(_lazy_noise, "_COARSER_BITS", 0):
        one, other = clone(model).fit(sparse.csr_array(X), y), plain.fit(X, y)
        same = dense(clone(model).fit)(X, y)
    # solver "sgd" rounds what it adds up to the grid, in another order
    atol = 1e-6 * np.abs(other.coef_).max()
    np.testing.assert_allclose(one.coef_, other.coef_, atol=atol)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=atol)
    np.testing.assert_allclose(one.coef_, same.coef_, atol=atol)
    assert one.privacy_spent_ == other.privacy_spent_
    (release,), (printed,) = one.ledger_.releases, other.ledger_.releases
    assert (release.count, release.size) == (printed.count, printed.size)
    assert release.noise == printed.noise
    assert release.stated_sensitivity == printed.stated_sensitivity
    assert release.numerics.startswith("idealised")
    assert printed.numerics.startswith("exact")


@pytest.mark.parametrize(
    ("C", "runs"),
    [
        pytest.param(0.01, 150, marks=pytest.mark.full),
        pytest.param(np.inf, 3000, marks=pytest.mark.slow),
    ],
)
def test_means_and_spreads_of_coefficients_are_those_of_dense_noise(C, runs):
    # many whole fits: steps that move, so that late noise feeds back into gradients
    X, y = rows(40, 6)
    model = lazy(C=C, max_iter=10, batch_size=8, step_size=0.3, epsilon=8.0, classes=(0, 1))
    found = []
    for start, wrap in ((0, lambda fit: fit), (runs, dense)):
        fits = []
        for seed in range(start, start + runs):
            fitted = wrap(clone(model).set_params(random_state=seed).fit)(X, y)
            fits.append(np.append(fitted.coef_, fitted.intercept_))
        found.append(np.array(fits))
    late, once = found
    spread, error = once.std(axis=0), 5 * np.sqrt(2 / runs)
    assert np.all(np.abs(late.mean(axis=0) - once.mean(axis=0)) < error * spread)
    assert np.all(np.abs(late.std(axis=0) / spread - 1) < error)
    assert np.all(np.abs(np.corrcoef(late.T) - np.corrcoef(once.T)) < error)


# -- the law of pure noise -------------------------------------------------------------


def null_rows(n_rows=60, n_features=150):
    """Return rows that touch columns often, seldom and never, with no label of the set."""
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.uniform(size=(n_rows, n_features)) < 2 / (1 + np.arange(n_features)))
    return X.astype(float), np.full(n_rows, 9)


@pytest.mark.covering
@every_estimator
@pytest.mark.parametrize("C", [np.inf, 1e-2])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_columns_have_the_noise_of_all_steps_whatever_is_touched(n_classes, C, estimator):
    model = lazy(estimator, C=C, classes=range(n_classes), random_state=None)
    coef, intercept = zip(*[coefficient_noise(model, *null_rows()) for _ in range(12)], strict=True)
    assert not law_is_wrong([each.ravel() for each in coef])
    assert not law_is_wrong(intercept)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private centring within a classifier: what the model is for, what is paid, what is refused."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skdp import DPHingeSVM, DPLogisticRegression
from skdp.linear_model import _classifiers as _classifier
from skdp.linear_model._classifiers import PREPROCESS, original_coef
from tests._neighbours import ADJACENCIES, as_layout
from tests._solvers import linear_model

every_kind = pytest.mark.parametrize("preprocess", PREPROCESS)
every_estimator = pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
SPREAD = [kind for kind in PREPROCESS if kind != "center"]


def rows(n_rows=800, offset=0.0, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    z = X @ [1.0, -1.0, 0.5, 0.0] + rng.logistic(size=n_rows)
    y = np.digitize(z, [0.0, 1.5][: n_classes - 1])
    return X + offset * np.array([1.0, -0.5, 0.0, 2.0]), y


def model_of(preprocess, estimator=DPLogisticRegression, **options):
    usual = {"epsilon": 4.0, "delta": 1e-5, "max_iter": 20, "random_state": 0}
    return linear_model(estimator, preprocess=preprocess, **{**usual, **options})


@pytest.mark.covering
@every_kind
@every_estimator
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("offset", [0.0, 10.0, 1e6])
def test_the_model_is_for_the_rows_as_they_are(offset, n_classes, estimator, preprocess):
    X, y = rows(offset=offset, n_classes=n_classes)
    data_norm, seen = 3.0 * max(offset, 2.0), []

    def spy(*args):
        seen.append(args)
        return original_coef(*args)

    model = model_of(preprocess, estimator, data_norm=data_norm, epsilon=30.0)
    with mock.patch.object(_classifier, "original_coef", spy):
        fitted = model.fit(X, y)
    ((coef, intercept, center, radius, unit),) = seen
    assert unit == data_norm
    moved = (X / data_norm - center) / radius
    scores = moved @ coef.T + intercept
    found = fitted.decision_function(X)
    size = np.abs(X @ fitted.coef_.T).max() + np.abs(scores).max()
    np.testing.assert_allclose(found, scores.squeeze(), rtol=0, atol=1e-10 + 1e-15 * size)
    assert np.isfinite(fitted.coef_).all()


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("solver", ["accelerated", "sgd"])
@every_kind
def test_the_ledger_lists_all_and_the_price_is_joint(preprocess, solver, adjacency):
    model = model_of(preprocess, solver=solver, adjacency=adjacency, preprocess_share=0.2)
    fitted = model.fit(*rows())
    ledger = fitted.ledger_
    gradient = ledger.releases[-1]
    assert gradient.query.startswith("gradient of LogisticLoss")
    assert gradient.count == fitted.n_iter_ == 20
    assert (gradient.noise.sampling is not None) == (solver == "sgd")
    draws = [r for r in ledger.releases if r.noise.law == "exponential"]
    assert len(draws) == (preprocess != "center")
    centre = [r for r in ledger.releases[:-1] if r.noise.law == "gaussian"]
    assert centre
    spent, delta = fitted.privacy_spent_
    assert 0.95 * 4.0 < spent <= 4.0
    assert delta == 1e-5
    parts = [replace(ledger, releases=tuple(group)) for group in (centre, draws, [gradient])]
    alone = [part.epsilon(1e-5 / 2) for part in parts if part.releases]
    assert max(alone) < spent * 1.2
    assert spent < sum(alone)


@pytest.mark.parametrize("preprocess", SPREAD)
def test_too_few_rows_for_a_draw_get_a_sound_radius(preprocess):
    X, y = rows(12)
    fitted = model_of(preprocess, epsilon=1.0, classes=(0, 1)).fit(X, y)
    assert all(r.noise.law == "gaussian" for r in fitted.ledger_.releases)
    assert fitted.privacy_spent_[0] <= 1.0
    one = model_of(preprocess, epsilon=1.0, classes=(0, 1)).fit(X[:1], y[:1])
    assert np.isfinite(one.coef_).all()


@every_kind
@every_estimator
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fit_intercept": False}, "an intercept makes good; got fit_intercept=False"),
        (
            {"mechanism": "output", "max_iter": None},
            "preprocess must be None|does not belong to",
        ),
        ({"mechanism": "exponential"}, r"coef_bound must be a number for solvers.ExactDraw\(\)"),
        (
            {"mechanism": "exponential", "coef_bound": 1.0, "max_iter": None},
            "preprocess must be None with|coef_bound must be None with it",
        ),
        ({"solver": "newton"}, "does not belong to|preprocess|max_iter"),
        ({"delta": 0.0}, "delta must be greater than 0"),
        ({"preprocess_share": 0.0}, "preprocess_share"),
        ({"preprocess_share": 0.5}, "preprocess_share"),
        ({"preprocess_share": np.nan}, "preprocess_share"),
        ({"preprocess": "whiten"}, "preprocess"),
        ({"epsilon": np.nan}, "epsilon"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message, estimator, preprocess):
    options = {"preprocess": preprocess, **options}
    with pytest.raises(ValueError, match=message):
        model_of(estimator=estimator, **options).fit(*rows(100))


@every_kind
def test_sparse_rows_are_refused_with_a_message(preprocess):
    X, y = rows(100)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model_of(preprocess).fit(sparse.csr_array(X), y)


def test_units_of_a_radius_are_not_mixed_with_those_of_the_data():
    for options in ({"intercept_scaling": 1.0}, {"coef_bound": 1.0}):
        with pytest.raises(ValueError, match="must be None with it"):
            model_of("center-clip", **options).fit(*rows(100))


@pytest.mark.covering
@every_kind
@pytest.mark.parametrize(
    "change",
    [
        lambda X: X * [1.0, 0.0, 0.0, 0.0] + [0.0, 5.0, -1.0, 0.0],
        lambda X: 0 * X + 0.3,
        lambda X: 0 * X,
        lambda X: X * 1e300,
        lambda X: X * 1e-300,
        lambda X: X * [1e300, 1e-300, 1.0, 0.0],
    ],
    ids=["constant features", "all equal", "all zero", "1e300", "1e-300", "mixed"],
)
def test_odd_rows_give_a_finite_model(change, preprocess):
    X, y = rows(400)
    with np.errstate(over="ignore", under="ignore"):
        X = change(X)
    fitted = model_of(preprocess, epsilon=30.0).fit(X, y)
    assert np.isfinite(fitted.coef_).all()
    assert np.isfinite(fitted.intercept_).all()


@pytest.mark.covering
@pytest.mark.parametrize("preprocess", ["center", "center-clip"])
@pytest.mark.parametrize("layout", ["F", "strided", "read-only", "float32"])
def test_the_layout_makes_no_difference(layout, preprocess):
    X, y = rows(300)
    X = X.astype(np.float32).astype(np.float64)
    model = model_of(preprocess, epsilon=30.0, data_norm=4.0)
    plain = clone(model).fit(X, y)
    other = clone(model).fit(as_layout(X, layout), y)
    assert other.ledger_ == plain.ledger_
    atol = 1e-4 * np.abs(plain.coef_).max()
    np.testing.assert_allclose(other.coef_, plain.coef_, atol=atol)


def test_features_of_extreme_units_are_a_matter_of_data_norm():
    X, y = rows(400)
    models = [
        model_of("center-clip", epsilon=30.0, data_norm=4.0 * scale).fit(X * scale, y)
        for scale in (2.0**-300, 1.0, 2.0**300)
    ]
    for other, scale in ((models[0], 2.0**-300), (models[2], 2.0**300)):
        np.testing.assert_allclose(other.coef_ * scale, models[1].coef_, rtol=1e-9)


@pytest.mark.covering
@pytest.mark.parametrize("preprocess", SPREAD)
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_without_noise_to_speak_of_the_offset_does_not_matter(offset, preprocess):
    X, y = rows(4000, offset)
    private = model_of(
        preprocess, epsilon=1e6, max_iter=1500, step_size=2.0, data_norm=3 * offset + 6.0,
        clipping_norm=None if preprocess == "center-clip" else 10.0,
    ).fit(X, y)  # fmt: skip
    public = LogisticRegression(C=np.inf, tol=1e-10).fit(X - X.mean(axis=0), y)
    np.testing.assert_allclose(private.coef_, public.coef_, rtol=0.05, atol=0.05)
    at_mean = private.decision_function(X.mean(axis=0)[None])
    np.testing.assert_allclose(at_mean, public.intercept_, atol=0.05)


def test_centring_pays_where_there_is_an_offset():
    X, y = rows(4000, 20.0)
    scores = {
        kind: model_of(kind, epsilon=1.0, max_iter=None, data_norm=60.0).fit(X, y).score(X, y)
        for kind in (None, "center-clip")
    }
    assert scores["center-clip"] > scores[None] + 0.02

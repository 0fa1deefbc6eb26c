# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Weights of classes: another prior after the fit."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss

from skdp import DPHingeSVM, DPLogisticRegression, papers, solvers
from skdp.audit import trace_privacy
from skdp.exceptions import NoisyEstimateWarning
from skdp.solvers.link import believed_shares


def rare(n_rows=6000, n_classes=2, seed=0):
    """Return rows and labels, of which the later classes are rare."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    scores = np.column_stack([np.zeros(n_rows), *(1.5 * X[:, : n_classes - 1].T - 3)])
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def test_public_weights_cost_nothing_and_multiply_odds():
    X, y = rare()
    kept = {"classes": [0, 1], "random_state": 0}
    for solver in ("preconditioned", "accelerated"):
        plain = DPLogisticRegression(solver=solver, **kept).fit(X, y)
        model = DPLogisticRegression(solver=solver, class_weight={1: 5.0}, **kept).fit(X, y)
        assert_array_equal(model.coef_, plain.coef_)
        assert model.privacy_spent_ == plain.privacy_spent_
        assert len(model.ledger_.releases) == len(plain.ledger_.releases)
        odds, before = (m.predict_proba(X)[:, 1] / m.predict_proba(X)[:, 0] for m in (model, plain))
        assert_allclose(odds, 5 * before, rtol=1e-9)
        assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))
        assert_array_equal(model.class_weight_, [1.0, 5.0])
        assert_array_equal(model.predict(X), model.decision_function(X) > 0)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_balanced_weights_find_rare_classes(n_classes):
    X, y = rare(n_classes=n_classes)
    kept = {"epsilon": 2.0, "classes": range(n_classes), "random_state": 0}
    plain = DPLogisticRegression(**kept).fit(X, y)
    model = DPLogisticRegression(class_weight="balanced", **kept).fit(X, y)
    exact = LogisticRegression(class_weight="balanced").fit(X, y)
    found = [balanced_accuracy_score(y, m.predict(X)) for m in (plain, model, exact)]
    assert found[1] > found[0] + 0.08
    assert found[1] > found[2] - 0.03
    assert_allclose(model.class_weight_, len(y) / n_classes / np.bincount(y), rtol=0.2)
    assert model.privacy_spent_[0] <= 2.0
    assert sum("rows of each class" in r.query for r in model.ledger_.releases) == 1
    assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))
    # the prior of the rows put back
    proba = model.predict_proba(X) / model.class_weight_
    proba /= proba.sum(axis=1, keepdims=True)
    assert log_loss(y, proba) < 1.05 * log_loss(y, plain.predict_proba(X)) + 0.02


ALL_KINDS = [
    {"solver": "gd"},
    {"solver": "sgd"},
    {"solver": "lazy-sgd", "C": 10.0},
    {"solver": "phased"},
    {"solver": "frank-wolfe"},
    {"mechanism": "output"},
    {"mechanism": "objective"},
    {"delta": 0.0},
    {"delta": 0.0, "mechanism": "objective"},
    {"mechanism": "exponential", "coef_bound": 5.0},
    {"solver": papers.Localized()},
    {"solver": papers.OnePass()},
    {"solver": papers.AcceleratedOnePass()},
    {"solver": papers.BiasReduced(), "max_iter": 8},
    {"solver": papers.FiniteNet(), "coef_bound": 5.0},
    {"solver": papers.FeaturePreprocessing()},
    {"solver": solvers.SGD(batch_size=8, sampling="with-replacement"), "max_iter": 20},
]


@pytest.mark.full
@pytest.mark.parametrize("kind", ALL_KINDS, ids=str)
def test_every_mechanism_pays_for_the_counts(kind):
    X, y = rare(400)
    model = DPLogisticRegression(
        epsilon=10.0, class_weight="balanced", classes=[0, 1], data_norm=1.0, random_state=0
    )
    X = X[:, :2]
    model.set_params(**kind).fit(X, y)
    assert sum("rows of each class" in r.query for r in model.ledger_.releases) == 1
    assert model.privacy_spent_[0] <= 10.0
    assert model.class_weight_[1] > 2 * model.class_weight_[0]


@pytest.mark.parametrize(("adjacency", "moved"), [("replace-one", 2), ("zero-out", 1)])
def test_counts_move_as_stated(adjacency, moved):
    X, y = rare(60)
    other = y.copy()
    # a label that is none of the classes makes a null row
    other[0] = 1 - y[0] if adjacency == "replace-one" else 7
    model = DPLogisticRegression(8.0, class_weight="balanced", data_norm=1.0, max_iter=3)
    model.set_params(classes=[0, 1], adjacency=adjacency)
    result = trace_privacy(model, X, y=y, y_neighbour=other)
    assert result.passed
    (counts,) = [r for r in result.releases if "rows of each class" in r.query]
    assert counts.distance == pytest.approx(np.sqrt(moved))
    assert counts.sensitivity == pytest.approx(np.sqrt(moved))
    assert 0.99 < counts.ratio <= 1


@pytest.mark.parametrize(("n_rows", "data_norm"), [(500, None), (1500, 1e4)])
def test_counts_and_units_of_columns_are_paid_for_together(n_rows, data_norm):
    # units of columns, which a count of small features brings about, cost more than was planned
    X, y = rare(n_rows)
    X = np.hstack([X] * 5) * np.logspace(-3, 3, 20)
    model = DPLogisticRegression(class_weight="balanced", classes=[0, 1], data_norm=data_norm)
    model.fit(X, y)
    names = [release.query for release in model.ledger_.releases]
    assert "rows above thresholds" in names[0]
    assert "rows of each class" in names
    assert 0.999 < model.privacy_spent_[0] <= 1.0


def test_counts_that_noise_would_drown_are_not_bought():
    X, y = rare(100)
    model = DPLogisticRegression(epsilon=0.5, class_weight="balanced", classes=[0, 1])
    with pytest.warns(NoisyEstimateWarning, match="class_weight='balanced' has no effect"):
        model.fit(X, y)
    assert not any("rows of each class" in r.query for r in model.ledger_.releases)
    assert_array_equal(model.class_weight_, [1.0, 1.0])


# -- where noise dominates, counts say where the intercept is ------------------------------------

FAINT = {"epsilon": 0.2, "data_norm": 6.0}


def faint(n_classes=2, seed=0):
    """Return rows of pure noise, and labels of which all but the first are rare."""
    rng = np.random.default_rng(seed)
    shares = [1 - 0.05 * (n_classes - 1), *[0.05] * (n_classes - 1)]
    return rng.normal(size=(400, 20)), rng.choice(n_classes, size=400, p=shares)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_of_faint_rows_are_near_the_shares_of_classes(n_classes):
    losses = []
    for seed in range(8):
        X, y = faint(n_classes, seed)
        model = DPLogisticRegression(**FAINT, classes=range(n_classes), random_state=seed)
        model.fit(X, y)
        counts, gradient = model.ledger_.releases
        assert "rows of each class" in counts.query
        assert "gradient" in gradient.query
        assert counts.noise.mu**2 / (counts.noise.mu**2 + gradient.noise.mu**2) < 0.21
        assert model.privacy_spent_[0] <= FAINT["epsilon"]
        assert model.n_iter_ == 1
        losses.append(log_loss(y, model.predict_proba(X), labels=range(n_classes)))
    q = np.bincount(y) / len(y)
    # about one half, or an n-th, whatever the shares are, has log n_classes
    assert np.mean(losses) < 0.4 * np.log(n_classes) - 0.6 * q @ np.log(q) + 0.05


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_faint_rows_have_the_influence_that_is_stated(adjacency):
    X, y = faint()
    other, moved = y.copy(), X.copy()
    other[0] = 1 - y[0] if adjacency == "replace-one" else 7
    if adjacency == "replace-one":
        X[0], moved[0] = 3.0 * np.eye(20)[0], 3.0 * np.eye(20)[0]
    model = DPLogisticRegression(0.1, data_norm=2.0, classes=[0, 1], adjacency=adjacency)
    result = trace_privacy(model, X, X_neighbour=moved, y=y, y_neighbour=other)
    assert result.passed
    counts, gradient = result.releases
    for release in (counts, gradient):
        assert 0.99 < release.ratio <= 1


def test_faint_balanced_weights_need_no_counts_of_their_own():
    X, y = faint()
    model = DPLogisticRegression(**FAINT, classes=[0, 1], class_weight="balanced", random_state=0)
    model.fit(X, y)
    assert sum("rows of each class" in r.query for r in model.ledger_.releases) == 1
    plain = clone(model).set_params(class_weight=None).fit(X, y)
    assert_allclose(1 / model.class_weight_.sum() * model.class_weight_[::-1].sum(), 1)
    assert_allclose(model.intercept_, 0, atol=1e-9)
    assert plain.intercept_ < -0.3
    assert_array_equal(model.coef_, plain.coef_)


@pytest.mark.parametrize(
    "kind",
    [
        {"max_iter": 16},
        {"C": 1.0},
        {"coef_bound": 5.0},
        {"fit_intercept": False},
        {"solver": "gd"},
        {"solver": solvers.Accelerated(intercept_scaling=0.5)},
        {"solver": solvers.Accelerated(clipping_norm=0.5)},
    ],
    ids=str,
)
def test_what_is_asked_of_steps_is_done_by_steps(kind):
    X, y = faint()
    model = DPLogisticRegression(**FAINT, classes=[0, 1], random_state=0).set_params(**kind)
    assert model.fit(X, y).n_iter_ > 1
    assert not any("rows of each class" in r.query for r in model.ledger_.releases)


def test_believed_shares_are_the_counts_or_equal():
    for found in ([0.9, 0.1], [0.7, 0.2, 0.06, 0.04]):
        found = np.array(found)
        assert_allclose(believed_shares(found, 0.005), found, atol=0.01)
        assert_allclose(believed_shares(found, 3.0), 1 / len(found), atol=0.03)
        assert_allclose(believed_shares(found + 0.3, 0.005), believed_shares(found, 0.005))
        assert believed_shares(10 * found - 5, 0.05).min() > 0
        assert believed_shares(found, 0.2).sum() == pytest.approx(1)


def test_more_than_all_rows_to_one_outvotes_them():
    X, y = rare(200)
    model = DPLogisticRegression(classes=[0, 1], data_norm=1.0, solver="sgd", max_iter=500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not model.set_params(class_weight={0: 1e6}).fit(X, y).predict(X).any()
        assert model.set_params(class_weight={1: 1e6}).fit(X, y).predict(X).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fit_to_few_rows_is_not_lost_once_it_is_paid_for():
    # its gradients are clipped so much that a score stands for a third of its odds
    X, y = rare(20)
    plain = DPLogisticRegression(0.1, classes=[0, 1], random_state=0).fit(X, y)
    model = DPLogisticRegression(0.1, classes=[0, 1], class_weight={1: 2.0}, random_state=0)
    found, before = (np.exp(np.diff(m.predict_log_proba(X))) for m in (model.fit(X, y), plain))
    assert_allclose(found, 2 * before, rtol=1e-9)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({2: 1.0}, r"has the key\(s\) 2; the classes are 0, 1\."),
        ({0: 0.0}, "numbers in"),
        ({0: -1.0}, "numbers in"),
        ({0: np.nan}, "numbers in"),
        ({0: np.inf}, "numbers in"),
        ({0: "much"}, "numbers in"),
        ({0: True}, "numbers in"),
        ("balance", "class_weight"),
        ([1, 2], "class_weight"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    X, y = rare(60)
    with pytest.raises(ValueError, match=message):
        DPLogisticRegression(class_weight=weights, classes=[0, 1]).fit(X, y)


def test_the_hinge_has_no_odds():
    with pytest.raises(TypeError, match="class_weight"):
        DPHingeSVM(class_weight="balanced")


def test_steps_that_a_solver_does_not_take():
    X, y = rare(300)
    model = DPLogisticRegression(epsilon=4.0, mechanism="output", data_norm=1.0, max_iter=3)
    with pytest.warns(match=r"max_iter=3 has no effect with solvers.Output\(\): it has no steps"):
        model.set_params(classes=[0, 1]).fit(X, y)

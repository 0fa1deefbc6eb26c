# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logistic regression from local reports: what is reported, once, and what is made of it."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from skdp import LocalDPLogisticRegression
from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp.exceptions import SeededNoiseWarning
from skdp.local import BallRandomiser
from skdp.local import _logistic as _gradient_reports
from skdp.local._logistic import CurvatureVectors, GradientVectors
from skdp.local.randomisers.ball import lift
from skdp.local.randomisers.report import LocalReports
from skdp.privacy import Curator
from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws.exponential import Variates
from tests._neighbours import rows_in_ball

INTERCEPT = 0.4
LONGEST = np.hypot(1.0, INTERCEPT)


def made_up(n_rows=600, n_features=3, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.argmax(X @ rng.normal(size=(n_features, n_classes)), axis=1)


def admitted(X, codes, loss, null=None):
    null = np.zeros(X.shape[0], dtype=bool) if null is None else null
    return rows_in_ball(X, loss.encode(codes), null, 1.0, INTERCEPT)


def fitted(X, y, seed=0, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return LocalDPLogisticRegression(random_state=seed, **given).fit(X, y)


@pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(3)], ids=["binary", "softmax"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_vectors_are_gradients_of_the_loss_and_have_norm_at_most_one(loss, layout):
    X, codes = made_up(50, n_classes=max(2, loss.n_outputs))
    rng = np.random.default_rng(1)
    coef = 5.0 * rng.normal(size=(4,) if loss.n_outputs == 1 else (3, 4))
    (chunk,) = admitted(layout(X), codes, loss).chunks
    longest = loss.lipschitz * LONGEST
    vectors = GradientVectors(coef, loss, longest).vectors(chunk)
    assert vectors.shape == (50, coef.size)
    assert np.linalg.norm(vectors, axis=1).max() <= 1.0 + 1e-12
    for j in range(coef.size):
        step = np.zeros(coef.size)
        step[j] = 1e-6
        step = step.reshape(coef.shape)
        up, down = (loss.value(chunk.predict(coef + s), chunk.target) for s in (step, -step))
        np.testing.assert_allclose(vectors[:, j] * longest, (up - down) / 2e-6, atol=1e-8)


def test_the_bound_of_two_classes_and_of_more_is_attained():
    X = np.array([[1.0, 0.0, 0.0]])
    for loss, codes, coef in [
        (LogisticLoss(), [0], np.array([1e3, 0, 0, 0])),
        (SoftmaxLoss(3), [0], np.array([[0, 0, 0, 0], [1e3, 0, 0, 0], [0, 0, 0, 0.0]])),
    ]:
        (chunk,) = admitted(X, np.array(codes), loss).chunks
        vectors = GradientVectors(coef, loss, loss.lipschitz * LONGEST).vectors(chunk)
        assert np.linalg.norm(vectors) == pytest.approx(1.0)


def test_roots_of_curvature_have_the_hessian_as_second_moment():
    X, codes = made_up(40)
    loss, coef = LogisticLoss(), np.array([1.0, -2.0, 0.5, 0.3])
    (chunk,) = admitted(X, codes, loss).chunks
    longest = 0.5 * LONGEST
    vectors = CurvatureVectors(coef, loss, longest).vectors(chunk)
    assert np.linalg.norm(vectors, axis=1).max() <= 1.0
    hessian = chunk.weighted_gram(loss.curvature(chunk.predict(coef), chunk.target))
    np.testing.assert_allclose(longest**2 * vectors.T @ vectors, hessian, atol=1e-12)


@pytest.mark.parametrize("kind", [GradientVectors, CurvatureVectors])
def test_null_rows_have_the_vector_of_zeros(kind):
    X, codes = made_up(6)
    null = np.array([True, False] * 3)
    (chunk,) = admitted(X, codes, LogisticLoss(), null).chunks
    vectors = kind(np.ones(4), LogisticLoss(), LONGEST).vectors(chunk)
    assert (vectors[null] == 0).all()
    assert (vectors[~null] != 0).any(axis=1).all()


@pytest.mark.parametrize("magnitude", ["lift", "flip", "product"])
def test_reports_are_unbiased(magnitude):
    n_rows, loss, coef = 30_000, LogisticLoss(), np.array([1.0, -2.0, 0.5, 0.3])
    X = np.tile([[0.6, 0.0, -0.5]], (n_rows, 1))
    rows = admitted(X, np.ones(n_rows, dtype=int), loss)
    vector = GradientVectors(coef, loss, LONGEST)
    randomiser = BallRandomiser(magnitude, expected_norm=0.5).calibrate(6.0, 4)
    made = LocalReports(vector, randomiser).draw(rows, None, Variates(SeededBits(3)))
    errors = made.mean(axis=0) - vector.vectors(rows.chunks[0])[0]
    assert (np.abs(errors) < 4 * made.std(axis=0) / np.sqrt(n_rows)).all()


def test_every_row_reports_exactly_once(monkeypatch):
    read, release = [], Curator.release

    def spy(self, query, mechanism, rows=None):
        read.append((query.what.name, rows))
        return release(self, query, mechanism, rows=rows)

    monkeypatch.setattr(Curator, "release", spy)
    fitted(*made_up(601), batch_size=50, covariance_share=0.25)
    assert len({name for name, _ in read}) == 2
    seen = np.concatenate([np.arange(*rows) for _, rows in read])
    np.testing.assert_array_equal(np.sort(seen), np.arange(601))


def test_the_ledger_has_one_line_for_all_batches():
    model = fitted(*made_up(), epsilon=3.0, batch_size=10)
    (release,) = model.ledger_.releases
    assert release.count == 1
    assert release.adjacency == "local"
    assert model.n_iter_ == 60
    assert 2.99 < model.privacy_spent_[0] <= 3.0
    assert model.privacy_spent_[1] == 0.0
    assert model.ledger_.local_epsilon() == model.privacy_spent_[0]


def test_gradients_and_curvatures_are_reported_by_different_rows_and_cost_the_maximum():
    model = fitted(*made_up(), epsilon=3.0, covariance_share=0.3)
    first, second = model.ledger_.releases
    assert (first.rows, second.rows) == ((0, 420), (420, 600))
    assert 2.99 < model.privacy_spent_[0] <= 3.0


def test_the_same_batch_twice_is_refused_at_the_gate(monkeypatch):
    mean = _gradient_reports.GradientReports.mean

    def twice(self, coef, batch):
        mean(self, coef, batch)
        return mean(self, coef, batch)

    monkeypatch.setattr(_gradient_reports.GradientReports, "mean", twice)
    with pytest.raises(ValueError, match="rows report in turn"):
        fitted(*made_up())


def test_the_label_is_protected_like_the_rest_of_the_row():
    """Audit: no event tells two labels of a row apart by more than epsilon."""
    n_rows, loss, epsilon = 200_000, LogisticLoss(), 1.0
    X = np.tile([[1.0, 0.0, 0.0]], (n_rows, 1))
    randomiser = BallRandomiser("flip").calibrate(epsilon, 4)
    query = LocalReports(GradientVectors(np.array([0.0, 0, 0, 0]), loss, 0.5 * LONGEST), randomiser)
    along = np.array([1.0, 0.0, 0.0, INTERCEPT]) / LONGEST
    shares = []
    for label in (0, 1):
        rows = admitted(X, np.full(n_rows, label), loss)
        made = query.draw(rows, None, Variates(SeededBits(label)))
        shares.append(np.mean(made @ along >= randomiser.unit.cosine / randomiser.unit.scale))
    ratio = np.log(shares[0] / shares[1])
    assert 0.95 * epsilon < ratio < epsilon + 0.05


def test_rows_of_unknown_labels_say_nothing_but_that_they_report():
    X, y = made_up()
    y[::3] = 7
    other = X.copy()
    other[::3] = 0.1
    first, second = (fitted(rows, y, classes=[0, 1]) for rows in (X, other))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert not np.array_equal(first.coef_, fitted(X, y % 2, classes=[0, 1]).coef_)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_units_of_the_data_do_not_matter(share):
    X, y = made_up(3000)
    one = fitted(X, y, epsilon=30.0, covariance_share=share, C=50.0)
    ten = fitted(8 * X, y, epsilon=30.0, covariance_share=share, data_norm=8.0, C=50.0 / 64)
    np.testing.assert_allclose(8 * ten.coef_, one.coef_, rtol=1e-9)
    np.testing.assert_allclose(ten.intercept_, one.intercept_, rtol=1e-9)
    if share:
        scale = np.array([8.0, 8.0, 8.0, 1.0])
        scaled = ten.coef_covariance_ * np.outer(scale, scale)
        np.testing.assert_allclose(scaled, one.coef_covariance_, rtol=1e-8)
        lower, upper = one.confidence_interval(0.9)
        center = np.append(one.coef_[0], one.intercept_)
        np.testing.assert_allclose((lower + upper) / 2, center)
        expected = 2 * 1.6448536269514722 * np.sqrt(np.diag(one.coef_covariance_))
        np.testing.assert_allclose(upper - lower, expected)


def test_a_curvature_that_noise_hides_makes_intervals_infinite():
    model = fitted(*made_up(60), epsilon=0.5, covariance_share=0.3)
    assert np.isinf(model.coef_covariance_).all()
    lower, upper = model.confidence_interval()
    assert (lower == -np.inf).all()
    assert (upper == np.inf).all()
    assert fitted(*made_up(), fit_intercept=False, covariance_share=0.5).coef_covariance_.shape == (
        3,
        3,
    )


def test_sparse_and_read_only_rows_and_single_precision():
    X, y = made_up()
    dense = fitted(X, y).coef_
    np.testing.assert_allclose(fitted(sparse.csr_array(X), y).coef_, dense, rtol=1e-6)
    np.testing.assert_allclose(fitted(X.astype(np.float32), y).coef_, dense, rtol=1e-3)
    X.setflags(write=False)
    y.setflags(write=False)
    np.testing.assert_array_equal(fitted(X, y).coef_, dense)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities(n_classes):
    X, y = made_up(5000, n_classes=n_classes)
    model = fitted(X, y, epsilon=20.0)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, y) > 0.85
    assert model.coef_.shape == (1 if n_classes == 2 else n_classes, 3)


def test_the_penalty_is_public_and_stable():
    X, y = made_up()
    # whatever its strength, the steps do not blow up
    for C in (1e-90, 1e-8, 1e-2):
        coef = fitted(X, y, C=C).coef_
        assert np.linalg.norm(coef) < 700 * C + 1e-6
    none = fitted(X, y, randomiser="lift", average=False, decay=0.7, step_size=1.0)
    assert np.isfinite(none.coef_).all()


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_features_of_any_scale(scale):
    X, y = made_up(100)
    model = fitted(X * scale, y, data_norm=1e100 if scale > 1 else 1e-100)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(fitted(np.zeros((20, 3)), np.arange(20) % 2).coef_).all()
    assert np.isfinite(fitted(np.ones((1, 3)), [0], classes=[0, 1]).coef_).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"epsilon": 1e-7}, "epsilon must be from 1e-6"),
        ({"epsilon": 1e7}, "epsilon must be from 1e-6"),
        ({"data_norm": 0.0}, "data_norm"),
        ({"classes": [0]}, "classes must be a sequence"),
        ({"classes": [0, 0]}, "classes must be"),
        ({"batch_size": 601}, "batch_size must be at most 600"),
        ({"batch_size": 500, "covariance_share": 0.5}, "batch_size must be at most 300"),
        ({"covariance_share": 1e-4}, "covariance_share=0.0001"),
        ({"covariance_share": 1.0}, "covariance_share"),
        ({"covariance_share": 0.2, "classes": [0, 1, 2]}, "covariance_share must be 0"),
        ({"randomiser": BallRandomiser(magnitude_epsilon=1.0)}, "magnitude_epsilon is for"),
        (
            {"randomiser": BallRandomiser("product", magnitude_epsilon=8.0)},
            "magnitude_epsilon must",
        ),
        ({"randomiser": BallRandomiser("product", n_levels=1)}, "n_levels.*BallRandomiser"),
        ({"randomiser": BallRandomiser("auto", parameters="paper")}, "needs parameters"),
        ({"randomiser": BallRandomiser(parameters="paper-simulation")}, "paper-simulation"),
        ({"randomiser": BallRandomiser(expected_norm=0.0)}, "expected_norm.*BallRandomiser"),
        ({"randomiser": BallRandomiser(expected_norm=1.5)}, "expected_norm.*BallRandomiser"),
        ({"randomiser": BallRandomiser("unit")}, "magnitude.*lift"),
        ({"randomiser": "unit"}, "randomiser.*lift.*BallRandomiser"),
        ({"randomiser": BallRandomiser}, "randomiser.*an instance of.*BallRandomiser"),
        ({"randomiser": lift(8.0, 4)}, "randomiser.*lift.*BallRandomiser"),
        ({"decay": 0.5}, "decay"),
        ({"decay": 1.0}, "decay"),
        ({"C": 1e-200}, "C must be at least"),
    ],
)
def test_bad_parameters_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        LocalDPLogisticRegression(**given).fit(*made_up())


def test_bad_data_and_intervals_that_were_not_asked_for():
    X, y = made_up(20)
    with pytest.raises(ValueError, match="only 1 class"):
        LocalDPLogisticRegression().fit(X, np.zeros(20))
    for value in (np.nan, np.inf):
        bad = X.copy()
        bad[3, 1] = value
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            LocalDPLogisticRegression().fit(bad, y)
    model = LocalDPLogisticRegression().fit(X, y)
    assert not hasattr(model, "coef_covariance_")
    with pytest.raises(ValueError, match="covariance_share must be greater than 0"):
        model.confidence_interval()
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\)"):
        model.confidence_interval(1.0)

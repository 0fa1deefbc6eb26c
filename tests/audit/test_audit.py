# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Audits: bounds, pairs of neighbours, one run, results."""

import dataclasses

import joblib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy import sparse, stats
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skdp import (
    DPFeatureCenterer,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPQuantile,
    NormClipper,
)
from skdp.audit import (
    AuditResult,
    adversarial_pairs,
    audit_one_run,
    audit_outputs,
    audit_privacy,
    clopper_pearson,
)
from skdp.audit._attack import epsilon_bound, mu_bound
from skdp.audit._one_run import one_run_epsilon, one_run_p_value
from skdp.privacy import gdp_delta
from tests.audit import _broken as broken

# Audits of whole estimators: they find what is broken, and leave alone what is not.


#: one row moved as far as it goes
FAR = ([[0.0], [1.0]], [[0.0], [-1.0]])


def audit(estimator, pair=FAR, **given):
    given = {"n_runs": 400, "random_state": 0} | given
    return audit_privacy(estimator, pair[0], neighbour=pair[1], **given)


@pytest.mark.sample(1)
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_a_sound_estimator_is_not_contradicted(epsilon):
    result = audit(broken.LaplaceMean(epsilon))
    assert result.passed
    assert result.epsilon_claimed == epsilon
    assert result.epsilon_lower > 0.3 * epsilon


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "epsilon"),
    [
        (broken.HalvedNoise, 1.0),
        (broken.BudgetIgnored, 1.0),
        (broken.NoiselessIntercept, 3.0),
        (broken.CountsSteps, 3.0),
    ],
)
def test_what_is_broken_is_found(kind, epsilon):
    result = audit(kind(epsilon), n_runs=800)
    assert not result.passed
    assert result.epsilon_lower > 1.1 * epsilon


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", [broken.NoClipping, broken.RaisesOnOutliers, broken.NanOnOutliers])
def test_the_search_finds_the_rows_that_show_what_is_broken(kind):
    result = audit_privacy(kind(1.0), n_runs=300, random_state=0)
    assert not result.passed
    assert result.epsilon_lower > 2
    if kind is broken.RaisesOnOutliers:
        assert sorted(result.n_failed) == [0, 150]


@pytest.mark.full
def test_halved_gaussian_noise_is_seen_in_the_second_figure():
    given = {"epsilon": 4.0, "delta": 1e-5}
    sound, half = (audit(broken.GaussianMean(**given, factor=f), n_runs=1000) for f in (1.0, 0.5))
    assert sound.passed
    assert sound.passed_gaussian
    assert sound.epsilon_gaussian > 2
    assert not half.passed_gaussian
    assert sound.delta == half.delta == 1e-5


def test_a_constant_gives_nothing_away():
    result = audit(broken.Constant(0.1))
    assert result.epsilon_lower == result.mu_lower == 0
    assert result.passed
    assert result.attack == "constant"


def test_a_claim_of_zero_or_infinity():
    assert audit(broken.Constant(0.0)).passed
    # every lower bound is below it
    infinite = audit(broken.HalvedNoise(np.inf), n_runs=40, score=lambda f: f.n_rows_)
    assert infinite.passed is infinite.passed_gaussian is None
    assert "claimed: infinite, which is nothing" in repr(infinite)


@pytest.mark.full
def test_an_infinite_pair_leaves_the_gaussian_parameter():
    rows = [[0.2], [1.0]], [[0.2], [-1.0]]
    sound = audit(
        DPMean(epsilon=4.0, data_norm=1.0, mechanism="gaussian"), rows, delta=0.0, n_runs=60
    )
    assert sound.epsilon_claimed == np.inf
    assert sound.mu_claimed < np.inf
    assert sound.passed
    assert dataclasses.replace(sound, mu_lower=2 * sound.mu_claimed).passed is False
    assert dataclasses.replace(sound, mu_claimed=None).passed is None


def test_a_seed_of_the_audit_that_parts_share_is_refused():
    # it made the claim infinite, and whatever was found was below it
    model = OneVsRestClassifier(DPLogisticRegression(epsilon=1.0, max_iter=1, data_norm=1.0))
    X, y = np.eye(6, 2), np.arange(6) % 3
    other = np.where(np.arange(6)[:, None] == 0, -1.0, X)
    with pytest.raises(ValueError, match=r"random_state must be None for this.*got 0"):
        audit(model, ((X, y), (other, y)), n_runs=40)
    ones, labels = np.ones((200, 2)), np.arange(200) % 3
    with pytest.raises(ValueError, match="random_state must be None"):
        audit_one_run(
            model, (ones, labels), (-ones, labels), score=lambda _: np.zeros(200), random_state=0
        )


@pytest.mark.full
def test_what_is_not_covered_is_not_claimed():
    X, y = np.eye(6, 2), np.arange(6) % 2
    bag = BaggingClassifier(DPLogisticRegression(epsilon=1.0, max_iter=1, data_norm=1.0), 2)
    other = X.copy()
    other[0] = -1.0
    found = audit(bag, ((X, y), (other, y)), n_runs=40)
    # once: 1.0, the epsilon of one member
    assert found.epsilon_claimed is found.mu_claimed is found.passed is None
    assert "nothing is claimed" in repr(found)


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(
            DPMean(epsilon=1.0, mechanism="laplace", data_norm=1.0), marks=pytest.mark.full
        ),
        pytest.param(
            DPQuantile(epsilon=2.0, bounds=([-1.0, 0.0, 5.0], [1.0, 2.0, 9.0])),
            marks=pytest.mark.full,
        ),
        pytest.param(
            DPLogisticRegression(
                epsilon=8.0, classes=("no", "yes"), adjacency="zero-out", data_norm=1.0
            ),
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda e: type(e).__name__,
)
def test_estimators_of_the_library(estimator):
    result = audit_privacy(estimator, n_runs=40, random_state=1, confidence=0.999)
    assert result.passed
    assert result.n_failed == (0, 0)
    assert result.adjacency == getattr(estimator, "adjacency", "replace-one")
    assert 0 < result.epsilon_claimed <= estimator.epsilon


@pytest.mark.full
def test_regressors_and_pipelines_of_the_library():
    X, y = np.zeros((4, 2)), np.zeros(4)
    y[0] = 1.0
    model = DPLpRegressor(epsilon=4.0)
    assert audit(model, ((X, y), (X, -y)), n_runs=40).passed
    model = make_pipeline(
        NormClipper(),
        DPFeatureCenterer(epsilon=2.0, threshold=None),
        DPMean(data_norm=1.0, mechanism="gaussian"),
    )
    result = audit(model, (X + np.diag([1.0, 0, 0, 0])[:, :2], X), n_runs=40)
    assert result.passed
    assert 2 < result.epsilon_claimed <= 3


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "convert",
    [list, np.array, pd.DataFrame, lambda rows: np.array(rows, dtype=np.float32)],
)
def test_rows_may_come_in_many_forms(convert):
    assert audit(broken.LaplaceMean(1.0), [convert(rows) for rows in FAR], n_runs=60).passed
    assert audit(
        broken.LaplaceMean(1.0), [(convert(rows), [0, 1]) for rows in FAR], n_runs=60
    ).passed


@pytest.mark.full
def test_sparse_and_read_only_rows():
    X = sparse.csr_array([[0.0, 0.5], [1.0, 0.0]])
    model = DPLogisticRegression(epsilon=8.0, data_norm=1.0)
    result = audit(model, [(X, [0, 1]), (-X * [[0], [1]] + X * [[1], [0]], [0, 1])], n_runs=40)
    assert result.passed
    rows = np.array(FAR)
    rows.flags.writeable = False
    assert audit(broken.LaplaceMean(1.0), rows, n_runs=40).passed


def test_estimators_in_name_only():
    result = audit(broken.Unclonable(1.0), [[1.0, 0.0], [3.0, 0.0]], n_runs=200)
    assert result.epsilon_claimed == 1.0
    # the sum is there without noise
    assert not result.passed


def test_seeds_repeat_an_audit_and_generators_are_replaced():
    first, again = (audit(broken.LaplaceMean(1.0), n_runs=60) for _ in range(2))
    assert first == again
    assert first.seeded
    shared = broken.LaplaceMean(1.0, random_state=3)
    # as given, every fit would have the same noise
    assert audit(shared, random_state=None, n_runs=100).passed


IN_PROCESSES = pytest.param("loky", marks=pytest.mark.full)


@pytest.mark.full
@pytest.mark.parametrize("backend", ["threading", IN_PROCESSES])
def test_jobs_change_nothing(backend):
    with joblib.parallel_config(backend=backend):
        alone, both = (
            audit(
                DPMean(epsilon=2.0, data_norm=1.0, mechanism="gaussian"),
                n_runs=40,
                n_jobs=n_jobs,
                random_state=3,
            )
            for n_jobs in (None, 2)
        )
    assert alone == both


@pytest.mark.slow
def test_jobs_run_in_parallel():
    result = audit(broken.BudgetIgnored(1.0), n_runs=400, n_jobs=2)
    assert result.n_runs == 400
    assert not result.passed
    assert audit(
        DPMean(epsilon=2.0, data_norm=1.0, mechanism="gaussian"),
        n_runs=100,
        n_jobs=2,
        random_state=None,
    ).passed


@pytest.mark.full
def test_remove_one_and_groups():
    longer, shorter = [[0.0], [1.0], [0.3]], [[0.0], [0.3]]
    for pair in ((longer, shorter), (shorter, longer)):
        assert audit(broken.NoiselessIntercept(3.0), pair, adjacency="add-remove").passed is False
    X, groups = np.zeros((4, 1)), [0, 0, 1, 1]

    class Grouped(broken.LaplaceMean):
        def fit(self, X, y, groups):
            return super().fit(X, y)

    other = X + np.array([[1.0], [1.0], [0.0], [0.0]])
    pair = (X, groups, groups), (other, groups, groups)
    assert audit(Grouped(9.0), pair, n_runs=40).passed
    with pytest.raises(ValueError, match="differ in one group; they differ in 2"):
        audit(Grouped(9.0), (pair[0], (X + 1, groups, groups)))


def test_an_audit_names_the_unit():
    X, groups = np.zeros((4, 1)), [0, 0, 1, 1]
    pair = (X, None, groups), (X + [[1.0], [1.0], [0.0], [0.0]], None, groups)
    model = DPMean(epsilon=1.0, delta=0.0, bounds=(-1, 1))
    found = audit_privacy(model, pair[0], neighbour=pair[1], n_runs=40)
    assert found.unit == "group"
    assert "pair: as given, per group; 40 runs" in str(found)
    assert found.to_frame()["unit"].tolist() == ["group"]
    found = audit_privacy(model, X, neighbour=[[1.0], [0.0], [0.0], [0.0]], n_runs=40)
    assert found.unit == "row"
    assert "group" not in str(found)


def test_the_bar(capsys):
    audit(broken.LaplaceMean(1.0), n_runs=40, verbose=1)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.endswith(f"[{30 * '#'}] 80/80 fits\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_runs": 39}, "n_runs must be an integer of 40"),
        ({"n_runs": 100.0}, "n_runs must be an integer"),
        ({"confidence": 0.0}, r"confidence must be in \(0, 1\); got 0.0"),
        ({"confidence": float("nan")}, "confidence must be"),
        ({"delta": -0.1}, r"delta must be in \[0, 1\); got -0.1"),
        ({"attack": "one"}, "attack must be one of"),
        ({"adjacency": "add-one"}, "adjacency must be one of"),
        ({"score": 3}, "score must be callable"),
        ({"random_state": -1}, "random_state must be an integer of 0"),
        ({"neighbour": FAR[0]}, "data and neighbour must differ; they are equal"),
        ({"neighbour": [[1.0], [2.0]]}, "must differ in one row; they differ in 2"),
        ({"neighbour": [[1.0]]}, "equally many rows"),
        ({"neighbour": [[1.0, 2.0]] * 2}, "have wrong shapes"),
        ({"neighbour": (FAR[0], [0, 1])}, "must be alike"),
        ({"adjacency": "add-remove"}, "must differ by one row"),
        ({"adjacency": "add-remove", "neighbour": [[3.0]]}, "other rows differ too"),
        ({"data": None}, "data must be given with neighbour"),
        ({"estimator": broken.LaplaceMean(np.nan)}, "epsilon of the estimator must be"),
        ({"estimator": broken.LaplaceMean(-1)}, "epsilon of the estimator must be"),
        ({"estimator": broken.GaussianMean(delta=2)}, "delta of the estimator must be"),
        (
            {"estimator": DPMean(mechanism="no", data_norm=1.0)},
            "every fit raised; the first one a ",
        ),
        ({"estimator": broken.Bare()}, "no numeric attribute.*; give score"),
        ({"score": lambda fitted: fitted.nothing_}, "every fit raised"),
        ({"neighbour": None, "data": ([[0.0]], [0], [0])}, "with groups, give the neighbour"),
        ({"neighbour": None, "adjacency": "zero-out"}, "which rows do is known for classifiers"),
        ({"neighbour": None, "data": ["a", "b"]}, "X must be a matrix of numbers"),
    ],
)
def test_bad_input(given, message):
    call = {"estimator": broken.LaplaceMean(), "data": FAR[0], "neighbour": FAR[1], "n_runs": 40}
    call |= given
    with pytest.raises(ValueError, match=message):
        audit_privacy(call.pop("estimator"), call.pop("data"), **call)


def test_what_cannot_be_fitted_is_refused():
    for function in (audit_privacy, audit_one_run):
        with pytest.raises(TypeError, match="must have a method fit; got a float"):
            function(1.0, np.eye(20))


# The bounds behind an audit: exact tails, and how often they fail.


@pytest.mark.parametrize("total", [1, 2, 17, 500])
@pytest.mark.parametrize("miss", [0.2, 0.025, 1e-6])
def test_clopper_pearson_is_that_of_scipy(total, miss):
    counts = np.unique([0, 1, total // 3, total - 1, total])
    lower, upper = clopper_pearson(counts, total, miss)
    exact = stats.beta.ppf(miss, counts, total - counts + 1)
    np.testing.assert_allclose(lower, np.nan_to_num(exact), rtol=1e-6)
    # the survival function: 1 - miss would lose digits
    exact = stats.beta.isf(miss, counts + 1, total - counts)
    np.testing.assert_allclose(upper, np.where(counts == total, 1.0, exact), rtol=1e-6)
    # and the tails themselves
    np.testing.assert_allclose(stats.binom.sf(counts[1:] - 1, total, lower[1:]), miss, rtol=1e-5)
    np.testing.assert_allclose(stats.binom.cdf(counts[:-1], total, upper[:-1]), miss, rtol=1e-5)


def test_rates_at_the_edge_of_a_claim_bound_that_claim():
    epsilon, fnr = 1.5, 0.2
    fpr = 1 - 1e-3 - np.exp(epsilon) * 0.15
    assert epsilon_bound(fpr, 0.15, 1e-3) == pytest.approx(epsilon)
    assert epsilon_bound(0.15, fpr, 1e-3) == pytest.approx(epsilon)
    assert mu_bound(stats.norm.cdf(-0.3), stats.norm.cdf(-0.7)) == pytest.approx(1.0)
    assert epsilon_bound(1.0, fnr, 0.0) == mu_bound(1.0, fnr) == 0.0


def test_gaussian_rates_never_bound_more_than_gaussian_noise_spends():
    mu, delta = 1.3, 1e-3
    threshold = np.linspace(-4, 5, 401)
    bound = epsilon_bound(stats.norm.sf(threshold), stats.norm.cdf(threshold - mu), delta)
    assert gdp_delta(mu, bound.max()) >= delta * (1 - 1e-6)
    assert np.all(mu_bound(stats.norm.sf(threshold), stats.norm.cdf(threshold - mu)) < mu + 1e-9)


def respond(bits, epsilon, rng):
    """Randomised response."""
    return np.where(rng.random(len(bits)) < 1 / (1 + np.exp(-epsilon)), bits, 1 - bits)


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_bound_fails_no_more_often_than_stated(epsilon):
    rng = np.random.default_rng(0)
    worlds = np.zeros(200, dtype=int), np.ones(200, dtype=int)
    bounds = [
        audit_outputs(*[respond(w, epsilon, rng) for w in worlds], confidence=0.9).epsilon_lower
        for _ in range(100)
    ]
    # 10 failures are allowed in the mean; 22 are too many with probability 3e-4
    assert np.sum(np.array(bounds) > epsilon) <= 21
    assert np.mean(bounds) > 0.25 * epsilon


@pytest.mark.full
def test_nothing_is_found_where_nothing_is():
    rng = np.random.default_rng(1)
    found = [audit_outputs(*rng.normal(size=(2, 60, 3))).epsilon_lower for _ in range(60)]
    assert np.sum(np.array(found) > 0) <= 10


@pytest.mark.full
def test_histograms_find_what_no_direction_shows():
    rng = np.random.default_rng(2)
    anywhere, striped = 4 * rng.random(size=(2, 2000))
    inner = (striped > 1) & (striped < 3)
    striped[inner] = np.floor(striped[inner]) + striped[inner] % 1 / 2
    for outputs in ((anywhere, striped), (striped, anywhere)):
        assert audit_outputs(*outputs).epsilon_lower > 1.5
        assert audit_outputs(*outputs, attack="linear").epsilon_lower < 1
    # the same mean, another spread
    wide, narrow = rng.normal(size=(2, 1000, 5)) * [[[1.0]], [[0.3]]]
    assert audit_outputs(wide, narrow).epsilon_lower > 2


@pytest.mark.full
def test_outputs_of_any_kind():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2, 200, 4)) * [1.0, 1e300, 1e-300, 0.0]
    assert audit_outputs(*X).epsilon_lower < 0.5
    X[1, rng.random(200) < 0.5, 1] = np.nan
    assert audit_outputs(*X).epsilon_lower > 1
    X[1, :, 0] = -np.inf
    assert audit_outputs(*X).epsilon_lower > 2.5
    assert audit_outputs(np.zeros(40), np.ones(40, dtype=np.float32)).epsilon_lower > 1
    assert audit_outputs(np.zeros(40), np.zeros(50)).epsilon_lower == 0
    assert audit_outputs(*[np.full(60, 1e308), np.full(60, -1e308)]).epsilon_lower > 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"first": np.zeros(39)}, "first must have the shape"),
        ({"second": np.zeros((50, 2))}, "the same number of outputs"),
        ({"first": np.zeros((50, 2, 2))}, "first must have the shape"),
        ({"delta": 1.0}, r"delta must be in \[0, 1\)"),
        ({"confidence": 1.0}, r"confidence must be in \(0, 1\)"),
        ({"claimed": float("nan")}, "the claimed epsilon must be"),
        ({"attack": "strong"}, "attack must be one of auto, linear"),
    ],
)
def test_bad_input_of_bounds(given, message):
    given = {"first": np.zeros(50), "second": np.zeros(50)} | given
    with pytest.raises(ValueError, match=message):
        audit_outputs(given.pop("first"), given.pop("second"), **given)


# Audits with one fit: the bound fails as seldom as stated, and finds what leaks.


def test_one_run():
    X = np.eye(400)
    sound = audit_one_run(
        DPMean(epsilon=20.0, data_norm=1.0, mechanism="gaussian"), X, -X, random_state=0
    )
    assert sound.passed
    assert sound.epsilon_lower > 1
    assert "200 guesses right, 400 canaries" in repr(sound)
    assert sound.to_frame()["passed"][0]
    y = np.arange(400) % 2
    loud = audit_one_run(broken.NoiselessIntercept(3.0), X, -X, score=lambda f: X @ np.ones(400))
    assert loud.passed
    # estimators that remember everything
    for model, target in ((LogisticRegression(C=1e3), y), (LinearRegression(), 2.0 * y)):
        found = audit_one_run(
            model, (X, target), data=(X[:2], target[:2]), adjacency="add-remove", random_state=0
        )
        assert found.epsilon_lower > 2.5
        assert found.passed is None
    svm = audit_one_run(
        DPLogisticRegression(epsilon=8.0, data_norm=1.0),
        (X, y),
        (-X, y),
        random_state=1,
        n_guesses=100,
    )
    assert svm.passed


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"canaries": np.eye(9)}, "the number of canaries must be an integer of 10"),
        ({"blanks": None}, "blanks must be given"),
        ({"adjacency": "add-remove"}, "blanks must be None"),
        ({"blanks": np.eye(19)}, "blanks must have the shapes"),
        ({"n_guesses": 21}, "20 at most"),
        ({"n_guesses": 0}, "n_guesses must be"),
        ({"data": np.eye(3)}, "data must have as many arrays and features"),
        ({"score": lambda fitted: [1.0]}, "score must give 20 numbers"),
        ({"estimator": broken.Constant()}, "there is no default for this estimator"),
        ({"confidence": 2}, "confidence"),
        ({"delta": 1}, "delta"),
    ],
)
def test_bad_input_of_one_run(given, message):
    call = {
        "estimator": DPMean(data_norm=1.0, mechanism="gaussian"),
        "canaries": np.eye(20),
        "blanks": -np.eye(20),
    } | given
    with pytest.raises(ValueError, match=message):
        audit_one_run(call.pop("estimator"), call.pop("canaries"), call.pop("blanks"), **call)


@pytest.mark.full
@pytest.mark.parametrize(
    ("n_canaries", "n_guesses", "epsilon", "delta"),
    [(1000, 1000, 1.0, 0.0), (1000, 400, 2.0, 1e-6), (300, 300, 3.0, 1e-3), (20, 20, 0.0, 0.0)],
)
def test_the_bound_of_one_run_fails_no_more_often_than_stated(
    n_canaries, n_guesses, epsilon, delta
):
    rng = np.random.default_rng(4)
    # the best guesses: randomised response, and coins that delta reveals
    share = 1 / (1 + np.exp(-epsilon))
    right = rng.binomial(n_guesses, share, 400) + rng.binomial(n_canaries, delta, 400)
    counts = np.minimum(right, n_guesses)
    counts, places = np.unique(counts, return_inverse=True)
    found = [one_run_epsilon(int(c), n_guesses, n_canaries, delta, 0.9) for c in counts]
    found = np.array(found)[places]
    # 40 failures in the mean; 62 are too many with probability 3e-4
    assert np.sum(found > epsilon) <= 62
    if n_canaries == 1000:
        assert np.mean(found) > 0.8 * epsilon


def test_the_bound_of_one_run_is_the_binomial_tail():
    assert one_run_p_value(70, 100, 1000, 0.4, 0.0) == pytest.approx(
        stats.binom.sf(69, 100, 1 / (1 + np.exp(-0.4))), rel=1e-9
    )
    assert one_run_p_value(0, 100, 1000, 0.4, 0.0) == 1.0
    tails = [one_run_p_value(99, 100, 100, e, 1e-4) for e in np.linspace(0, 12, 50)]
    assert np.all(np.diff(tails) >= 0)
    # with delta: the least of tails with so many coins to spare
    share = 1 / (1 + np.exp(-1.0))
    least = min(stats.binom.sf(89 - t, 100, share) + 0.1 / (t + 1) for t in range(91))
    assert one_run_p_value(90, 100, 100, 1.0, 1e-3) == pytest.approx(least, rel=1e-9)
    assert one_run_epsilon(100, 100, 100, 0.0, 0.95) > 3
    assert one_run_epsilon(50, 100, 100, 0.0, 0.95) == 0.0


# Adversarial pairs are neighbours, finite, and keep what is public.


class Reached(BaseException):
    """A fit was reached: the pair is one of neighbours."""


class Stopped(BaseEstimator):
    """Raises when it is fitted."""

    def fit(self, X, y):
        raise Reached


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
@pytest.mark.parametrize("classes", [(0, 1), ("a", "bc"), (False, True), (2, 5, 7)])
def test_pairs_differ_in_one_row_and_keep_the_label_set(adjacency, classes):
    model = DPLogisticRegression(classes=classes, data_norm=2.0)
    pairs = adversarial_pairs(model, adjacency=adjacency)
    assert len({pair.name for pair in pairs}) == len(pairs) > 8
    for pair in pairs:
        with pytest.raises(Reached):
            audit_privacy(Stopped(), pair.first, neighbour=pair.second, adjacency=adjacency)
        assert all(np.isfinite(side[0]).all() for side in (pair.first, pair.second))
        if adjacency == "zero-out":
            changed = np.flatnonzero(pair.first[1] != pair.second[1])
            assert pair.second[1][changed[0]] not in classes
    if adjacency == "replace-one":
        for pair in adversarial_pairs(DPLogisticRegression(data_norm=1.0)):
            assert all(set(side[1]) == {0, 1} for side in (pair.first, pair.second))


@pytest.mark.parametrize("scale", [1e300, 1.0, 1e-300])
def test_pairs_hide_among_given_rows_of_any_scale(scale):
    X, y = scale * np.random.default_rng(0).normal(size=(9, 4)), np.arange(9) % 3
    X.flags.writeable = False
    for model in (
        DPLogisticRegression(data_norm=1.0),
        DPLpRegressor(),
        DPMean(bounds=(-scale, scale), mechanism="gaussian"),
    ):
        for pair in adversarial_pairs(model, (X, y)):
            assert np.isfinite(pair.second[0]).all()
            changed = (pair.first[0] != pair.second[0]).any(axis=1)
            changed |= pair.first[1] != pair.second[1]
            assert changed.sum() == 1
    # bounds that do not fit the rows are left to the fit
    assert adversarial_pairs(DPMean(bounds=(np.zeros(7), np.ones(7))), X)
    for extreme in ((-1e308, 1e308), (0.0, 1e300)):
        for pair in adversarial_pairs(DPQuantile(bounds=extreme)):
            assert np.isfinite([pair.first[0], pair.second[0]]).all()


# What an audit found can be read, put in a table, and drawn.


plt.switch_backend("agg")


def result_audit(estimator, **given):
    pair = [[0.0], [1.0]], [[0.0], [-1.0]]
    return audit_privacy(estimator, pair[0], neighbour=pair[1], random_state=0, **given)


@pytest.mark.full
def test_the_result_is_readable():
    result = result_audit(broken.HalvedNoise(1.0), n_runs=800)
    assert isinstance(result, AuditResult)
    first, second = repr(result).split("\n")
    assert "CONTRADICTED" in first
    assert "with confidence 95%" in first
    assert "never proves" in second
    frame = result.to_frame()
    assert frame.shape[0] == 1
    assert frame["fpr_upper"][0] == result.fpr[2]
    assert not frame["passed"][0]


@pytest.mark.sample(1)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("epsilon", [1.0, np.inf, None])
def test_the_picture(delta, epsilon):
    result = result_audit(broken.LaplaceMean(1.0), n_runs=60, delta=delta)
    ax = dataclasses.replace(result, epsilon_claimed=epsilon).plot()
    assert ax.get_xlabel() == "false positive rate"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(labels) == 2 + (epsilon is not None) + (epsilon == 1.0 and delta > 0)
    assert result.plot(ax=plt.figure().add_subplot()) is not ax
    plt.close("all")

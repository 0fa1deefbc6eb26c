# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Displays: ledgers, searches, utility, audits."""

import dataclasses
import itertools
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import skdp
from skdp import (
    AdditiveShapesDisplay,
    AuditDisplay,
    BoundedScaler,
    DPGridSearchCV,
    DPKernelClassifier,
    DPKernelRegressor,
    DPLogisticRegression,
    DPMean,
    DPStandardScaler,
    FederatedDPLogisticRegression,
    Ledger,
    LedgerDisplay,
    LocalDPMean,
    PrivacyUtilityDisplay,
    dp_tabular_pipeline,
    privacy_spent,
    solvers,
)
from skdp.audit import OneRunResult, audit_privacy
from skdp.inspection import LedgerPart
from skdp.inspection._drawing import budget_label, plain_log_axis, short, wrapped
from skdp.inspection._utility_display import private_steps, scaled_epsilons, sum_of_deltas

# What all displays share: matplotlib late, clear errors, and axes that can be read.


plt.switch_backend("agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def mean():
    return DPMean(epsilon=0.5, random_state=0, data_norm=1.0).fit([[0.1], [0.2], [0.3]])


DISPLAYS = {
    "utility": lambda: PrivacyUtilityDisplay([1.0, 2.0], [[0.5, 0.6], [0.7, 0.8]]),
    "ledger": lambda: LedgerDisplay.from_ledger(mean().ledger_, delta=1e-5),
    "audit": lambda: AuditDisplay(["a"], [0.4], claims=[1.0]),
}
MAKERS = {
    "PrivacyUtilityDisplay.plot": lambda: DISPLAYS["utility"]().plot(),
    "PrivacyUtilityDisplay.from_estimator": lambda: PrivacyUtilityDisplay.from_estimator(
        None, None, epsilons=None
    ),
    "PrivacyUtilityDisplay.from_cv_results": lambda: PrivacyUtilityDisplay.from_cv_results(None),
    "LedgerDisplay.from_estimator": lambda: LedgerDisplay.from_estimator(None),
    "LedgerDisplay.from_ledger": lambda: LedgerDisplay.from_ledger(None),
    "AdditiveShapesDisplay.plot": lambda: AdditiveShapesDisplay(["a"], [[0]], [[1]]).plot(),
    "AdditiveShapesDisplay.from_estimator": lambda: AdditiveShapesDisplay.from_estimator(None),
    "AuditDisplay.plot": lambda: DISPLAYS["audit"]().plot(),
    "AuditDisplay.from_result": lambda: AuditDisplay.from_result(None),
}


@pytest.mark.parametrize("caller", MAKERS)
def test_missing_matplotlib_is_said_before_anything_is_computed(caller, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=rf"^{caller} needs.*skdp\[plot\]"):
        MAKERS[caller]()


@pytest.mark.full
def test_constructors_and_imports_need_no_matplotlib():
    code = (
        "import sys, skdp; d = skdp.PrivacyUtilityDisplay([1.0], [0.5]); "
        "skdp.AuditDisplay(['a'], [1.0]); print('matplotlib' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", DISPLAYS)
def test_plot_draws_again_on_given_axes(name):
    display = DISPLAYS[name]()
    ax = plt.figure(figsize=(3.4, 2.6)).add_subplot()
    assert display.plot(ax=ax) is display
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.plot().ax_ is not ax
    assert "epsilon (nats)" in display.ax_.get_xlabel()
    assert display.ax_.get_legend() is not None
    display.figure_.canvas.draw()


def test_displays_are_public():
    for name in ("AdditiveShapesDisplay", "AuditDisplay", "LedgerDisplay", "PrivacyUtilityDisplay"):
        assert getattr(skdp.inspection, name) is getattr(skdp, name)


def test_keywords_for_matplotlib_are_a_dict():
    with pytest.raises(ValueError, match="must be a dict; got 'red'"):
        DISPLAYS["audit"]().plot(bar_kw="red")
    bars = DISPLAYS["audit"]().plot(bar_kw={"color": "red"}).bars_
    assert bars[0].get_facecolor() == (1.0, 0.0, 0.0, 1.0)


def test_budgets_in_words():
    assert budget_label() == "epsilon (nats)"
    assert budget_label(1e-5, "per row") == "epsilon (nats) at delta = 1e-5\nper row"
    assert short(1e-10) == "1e-10"
    assert short(100000.0) == "100000"


def test_wrapping():
    ax = plt.figure(figsize=(3.4, 2)).add_subplot()
    text = "a gradient of SomeVeryLongLossName, clipped to 0.25"
    lines = wrapped(text, ax).split("\n")
    assert len(lines) > 1
    assert " ".join(lines) == text
    assert wrapped(text, ax, 1000) == text
    assert wrapped("", ax) == ""


def test_a_log_axis_has_plain_numbers():
    ax = plt.figure().add_subplot()
    ax.set_xscale("log")
    ax.set_xlim(1e-3, 1e3)
    plain_log_axis(ax.xaxis)
    ax.figure.canvas.draw()
    shown = {text.get_text() for text in ax.get_xticklabels()}
    assert {"0.001", "1", "1000"} <= shown
    assert np.size(ax.xaxis.get_minorticklocs()) == 0


# Where a budget went: bars for all kinds of ledgers, and why they do not add up.


plt.switch_backend("agg")
rng = np.random.default_rng(0)
X = rng.uniform(size=(200, 3))
y = (X[:, 0] > 0.5).astype(int)


def classifier(**given):
    given = {"epsilon": 2.0, "delta": 1e-5, "classes": (0, 1), "random_state": 0, **given}
    return DPLogisticRegression(**{"data_norm": 1.0, **given})


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def words(display):
    return [text.get_text() for text in display.ax_.texts]


def labels(display):
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def test_bars_of_a_pipeline_stand_in_groups_and_do_not_add_up():
    scaler = DPStandardScaler(epsilon=1.0, delta=1e-6, bounds=(0, 1), random_state=0)
    last = classifier(delta=1e-6, solver="accelerated")
    model = make_pipeline(BoundedScaler(bounds=(0, 1)), scaler, last).fit(X, y)
    display = LedgerDisplay.from_estimator(model)
    spent = privacy_spent(model)
    assert (display.total, display.delta) == (spent.epsilon, spent.delta)
    assert {part.step for part in display.parts} == {"dpstandardscaler", "dplogisticregression"}
    assert display.plain_sum > display.total > max(part.epsilon for part in display.parts)
    widths = [bar.get_width() for bar in display.bars_]
    assert widths == [part.epsilon for part in display.parts]
    total, plain = display.lines_
    np.testing.assert_allclose(total.get_xdata(), spent.epsilon)
    np.testing.assert_allclose(plain.get_xdata(), sum(widths))
    assert legend(display)[0] == f"all together: {spent.epsilon:.4g}"
    assert {"dpstandardscaler", "dplogisticregression"} <= set(words(display))
    assert display.ax_.get_xlabel() == "epsilon (nats) at delta = 2e-6\nreplace-one, per row"
    # every part alone, by the ledger itself
    alone = model[-1].ledger_.epsilon(spent.delta)
    assert display.parts[-1].epsilon == pytest.approx(alone, rel=1e-9)


def test_a_step_that_learned_without_a_ledger_is_shown():
    display = LedgerDisplay.from_estimator(make_pipeline(StandardScaler(), classifier()).fit(X, y))
    (item,) = display.not_covered
    assert (item.kind, item.step) == ("step", "standardscaler")
    assert " ".join(words(display)[-2].split()) == item.text
    assert labels(display)[-1] == "not covered"
    assert legend(display)[0].startswith("all with a ledger")


def test_repeats_of_a_query_are_one_bar():
    model = classifier(solver="accelerated").fit(X, y)
    display = LedgerDisplay.from_estimator(model, wrap=200)
    (part,) = display.parts
    assert part.count == sum(release.count for release in model.ledger_.releases) > 1
    assert labels(display) == [f"{part.name} ({part.count}\N{NO-BREAK SPACE}times)"]
    assert len(display.lines_) == 1
    narrow = display.plot(wrap=12)
    assert max(map(len, labels(narrow)[0].split("\n"))) <= 32


def test_labels_do_not_overlap_in_short_axes():
    model = make_pipeline(DPStandardScaler(), classifier(data_norm=None, solver="auto"))
    figure = plt.figure(figsize=(4, 2.2))
    display = LedgerDisplay.from_estimator(model.fit(X, y), ax=figure.add_subplot())
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
    assert len(boxes) >= 4
    assert all(below.y1 <= above.y0 + 1 for above, below in itertools.pairwise(boxes))
    # and whole names where somebody says so
    assert any("\n" in label for label in labels(display.plot(wrap=12)))


def test_pure_noise_has_an_epsilon_at_delta_0():
    mean = DPMean(epsilon=0.5, mechanism="laplace", data_norm=1.0).fit(X)
    display = LedgerDisplay.from_ledger(mean.ledger_ + mean.ledger_)
    assert display.total == pytest.approx(1.0)
    assert display.delta == 0.0
    assert [part.epsilon for part in display.parts] == [pytest.approx(1.0)]


def test_gaussian_noise_has_none_at_delta_0():
    with pytest.raises(ValueError, match="epsilon of 'total' is inf at delta=0"):
        LedgerDisplay.from_ledger(classifier().fit(X, y).ledger_)


def test_random_batches():
    model = classifier(solver=solvers.SGD(batch_size=20)).fit(X, y)
    display = LedgerDisplay.from_estimator(model)
    assert display.total == pytest.approx(model.privacy_spent_[0], rel=1e-3)
    assert len(display.bars_) == len(display.parts)


@pytest.mark.full
def test_reports_that_only_some_see_have_a_number_and_no_bar():
    clients = np.repeat(np.arange(100), 2)
    model = FederatedDPLogisticRegression(
        epsilon=2.0, delta=1e-5, local_epsilon=8.0, classes=(0, 1), random_state=0
    ).fit(X, y, groups=clients)
    display = LedgerDisplay.from_estimator(model)
    hidden = [part for part in display.parts if part.hidden]
    assert len(hidden) == 1
    assert len(display.bars_) == len(display.parts) - 1
    assert any(text.startswith("seen by the aggregator") for text in words(display))
    assert display.plain_sum < hidden[0].epsilon
    assert "per group" in display.ax_.get_xlabel()


def test_local_reports():
    model = LocalDPMean(epsilon=2.0, random_state=0).fit(X)
    display = LedgerDisplay.from_estimator(model)
    assert display.total == pytest.approx(model.privacy_spent_[0])
    assert "local reports, per row" in display.ax_.get_xlabel()


def test_all_fits_of_a_search_are_counted():
    search = classifier(delta=1e-6, random_state=None)
    search = GridSearchCV(search, {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    display = LedgerDisplay.from_estimator(make_pipeline(BoundedScaler(bounds=(0, 1)), search))
    assert display.total == privacy_spent(search).epsilon > 8
    assert display.parts[0].count == 4
    assert ("choice", "gridsearchcv") in {(item.kind, item.step) for item in display.not_covered}
    assert labels(display).count("not covered") == len(display.not_covered)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: LedgerDisplay.from_ledger(Ledger()), ValueError, "the ledger is empty"),
        (lambda: LedgerDisplay([], total=0.0, delta=0.0), ValueError, "the ledger is empty"),
        (lambda: LedgerDisplay.from_ledger([]), TypeError, "must be a Ledger; got a list"),
        (lambda: LedgerDisplay.from_estimator(classifier()), TypeError, "no ledger_: it is not"),
        (
            lambda: LedgerDisplay.from_estimator(BoundedScaler(bounds=(0, 1)).fit(X)),
            ValueError,
            "the ledger is empty",
        ),
        (
            lambda: LedgerDisplay([LedgerPart("a", math.nan)], total=1.0, delta=0.0),
            ValueError,
            "epsilon of 'a' is nan",
        ),
        (
            lambda: LedgerDisplay.from_estimator(classifier().fit(X, y), delta=1.0),
            ValueError,
            "delta",
        ),
    ],
)
def test_ledgers_that_cannot_be_drawn(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_huge_ranges_and_nothing():
    parts = [LedgerPart("tiny", 1e-3), LedgerPart("huge", 1e3), LedgerPart("seen", 5, hidden=True)]
    display = LedgerDisplay(parts, total=1e3, delta=1e-5).plot()
    assert display.plain_sum == pytest.approx(1000.001)
    assert {"0.001", "1e+03"} <= set(words(display))
    assert display.ax_.get_xlim()[1] > 1000.001
    nothing = LedgerDisplay([LedgerPart("a", 0.0)], total=0.0, delta=0.0).plot()
    assert nothing.ax_.get_xlim() == (0.0, 1.0)


def test_the_plain_sum_is_no_bound():
    search = DPGridSearchCV(
        classifier(), {"C": [0.1, 1.0]}, epsilon=2.0, delta=1e-5, random_state=0
    )
    scaler = DPStandardScaler(epsilon=0.5, delta=1e-6, bounds=(0, 1), random_state=0)
    model = make_pipeline(scaler, search).fit(X, y)
    display = LedgerDisplay.from_estimator(model)
    assert [part.step for part in display.parts] == ["dpstandardscaler", "dpgridsearchcv"]
    # each bar has a delta of 1.1e-5 to itself, and the search needs nearly all of it
    assert display.plain_sum < display.total == privacy_spent(model).epsilon


# Scores against epsilon, read off a search.


plt.switch_backend("agg")


def results(params, scores, metric="score"):
    scores = np.array(scores, dtype=float)
    splits = {f"split{i}_test_{metric}": column for i, column in enumerate(scores.T)}
    return {"params": params, f"mean_test_{metric}": scores.mean(axis=1), **splits}


ONE = results([{"m__epsilon": 2.0}, {"m__epsilon": 1.0}], [[0.7, 0.9], [0.5, 0.6]])
TWO = results(
    [{"epsilon": e, "C": c} for e in (1.0, 2.0) for c in (0.1, 10.0)],
    [[0.1, 0.3], [0.5, 0.5], [0.6, 0.8], [0.2, 0.2]],
)


def test_one_parameter():
    display = PrivacyUtilityDisplay.from_cv_results(ONE, chance=0.5, baseline_scores=0.95, name="a")
    np.testing.assert_array_equal(display.epsilons, [1.0, 2.0])
    np.testing.assert_array_equal(display.scores, [[0.5, 0.6], [0.7, 0.9]])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["a", "not private", "guessing"]


def test_other_parameters_are_fixed_or_the_best_is_named_as_such():
    with pytest.raises(ValueError, match=r"2 candidates.*differ in \['C'\].*optimistic"):
        PrivacyUtilityDisplay.from_cv_results(TWO)
    fixed = PrivacyUtilityDisplay.from_cv_results(TWO, others={"C": 10.0})
    np.testing.assert_array_equal(fixed.scores, [[0.5, 0.5], [0.2, 0.2]])
    best = PrivacyUtilityDisplay.from_cv_results(TWO, others="best")
    np.testing.assert_array_equal(best.scores, [[0.5, 0.5], [0.6, 0.8]])
    assert best.ax_.get_legend().get_texts()[0].get_text() == "search, best of 2"


def test_a_sum_of_several_budgets():
    both = results([{"a__epsilon": 1.0, "b__epsilon": e} for e in (1.0, 3.0)], [[0.5], [0.6]])
    with pytest.raises(ValueError, match="param must say which"):
        PrivacyUtilityDisplay.from_cv_results(both)
    display = PrivacyUtilityDisplay.from_cv_results(both, param=["a__epsilon", "b__epsilon"])
    np.testing.assert_array_equal(display.epsilons, [2.0, 4.0])
    assert display.ax_.get_ylabel() == "score"


def test_a_search_that_shows_means_only():
    only = {key: value for key, value in ONE.items() if not key.startswith("split")}
    display = PrivacyUtilityDisplay.from_cv_results(only)
    np.testing.assert_allclose(display.scores, [[0.55], [0.8]])


def test_other_metrics():
    named = results([{"epsilon": 1.0}], [[0.5, 0.7]], metric="f1_macro")
    display = PrivacyUtilityDisplay.from_cv_results(named, metric="f1_macro")
    assert display.ax_.get_ylabel() == "f1 macro, mean ± s.d."
    with pytest.raises(ValueError, match=r"metric='score'.*mean_test_f1_macro"):
        PrivacyUtilityDisplay.from_cv_results(named)


@pytest.mark.parametrize(
    ("cv_results", "given", "message"),
    [
        (None, {}, "must be the cv_results_"),
        ({}, {}, "must be the cv_results_"),
        (results([{"C": 1.0}], [[0.5]]), {}, r"one parameter named epsilon.*\['C'\]"),
        (results([{"C": 1.0}, {"epsilon": 1.0}], [[0.5], [0.5]]), {}, "one parameter named"),
        (TWO, {"param": "alpha"}, r"param must be of \['C', 'epsilon'\]; got 'alpha'"),
        (TWO, {"param": []}, "param must be of"),
        (TWO, {"others": {"alpha": 1.0}}, "no parameter 'alpha'"),
        (TWO, {"others": {"C": 3.0}}, "no candidate"),
        (results([{"epsilon": 1.0}], [[np.nan]]), {}, "scores must be finite"),
        (results([{"epsilon": 0.0}], [[0.5]]), {}, "epsilons must be positive"),
    ],
)
def test_results_that_cannot_be_drawn(cv_results, given, message):
    with pytest.raises(ValueError, match=message):
        PrivacyUtilityDisplay.from_cv_results(cv_results, **given)


def test_a_search_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    y = (X[:, 0] > 0.5).astype(int)
    model = DPLogisticRegression(delta=1e-5, classes=(0, 1), random_state=0, data_norm=1.0)
    search = GridSearchCV(model, {"epsilon": [1, 10, 100]}, cv=2).fit(X, y)
    display = PrivacyUtilityDisplay.from_cv_results(search.cv_results_, score_name="accuracy")
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), [1, 10, 100])
    np.testing.assert_allclose(display.mean_scores, search.cv_results_["mean_test_score"])


@pytest.mark.slow
def test_jobs_change_nothing():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    y = (X[:, 0] > 0.5).astype(int)
    model = DPLogisticRegression(delta=1e-5, classes=(0, 1), data_norm=1.0)
    given = {"epsilons": [1.0, 10.0], "cv": 2, "random_state": 0}
    first, second = (
        PrivacyUtilityDisplay.from_estimator(model, X, y, n_jobs=n_jobs, **given).scores
        for n_jobs in (None, 2)
    )
    np.testing.assert_array_equal(first, second)


# Scores against epsilon: what is drawn is what was computed.


plt.switch_backend("agg")
utility_rng = np.random.default_rng(0)
UTILITY_X = utility_rng.uniform(size=(60, 3))
utility_y = (UTILITY_X[:, 0] > 0.5).astype(int)


class Echo(ClassifierMixin, BaseEstimator):
    """Scores as its epsilon says, and as its seed says if there is one."""

    def __init__(self, epsilon=1.0, delta=1e-5, C=0.0, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.random_state = random_state

    def fit(self, X, y, groups=None):
        self.classes_ = np.unique(y)
        self.n_groups_ = None if groups is None else len(groups)
        return self

    def score(self, X, y):
        more = 0.0 if self.random_state is None else self.random_state / 2**31
        more += 100 if self.n_groups_ else 0
        return self.epsilon + self.C + more


def test_the_curve_the_band_and_the_lines_across():
    scores = np.array([[0.1, 0.3], [0.4, 0.6], [0.7, 0.7]])
    display = PrivacyUtilityDisplay(
        [0.5, 1, 2], scores, baseline_scores=[0.8, 1.0], chance=0.05, score_name="accuracy",
        name="ours", baseline_name="theirs", delta=1e-6,
    ).plot()  # fmt: skip
    curve, baseline, chance = display.lines_
    np.testing.assert_array_equal(curve.get_xdata(), [0.5, 1, 2])
    np.testing.assert_allclose(curve.get_ydata(), [0.2, 0.5, 0.7])
    np.testing.assert_allclose(baseline.get_ydata(), 0.9)
    np.testing.assert_allclose(chance.get_ydata(), 0.05)
    lower, upper = display.band()
    np.testing.assert_allclose(upper - lower, 2 * scores.std(axis=1, ddof=1))
    np.testing.assert_array_equal(display.band("min-max"), [scores.min(1), scores.max(1)])
    drawn = display.fill_between_.get_paths()[0].vertices
    assert {*np.round(lower, 9)} <= {*np.round(drawn[:, 1], 9)}
    ax = display.ax_
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "epsilon (nats) at delta = 1e-6"
    assert ax.get_ylabel() == "accuracy, mean ± s.d."
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["ours", "theirs, not private", "guessing"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0.5", "1", "2"]


def test_several_curves_differ_without_colour():
    ax, styles = None, set()
    for i, delta in enumerate([1e-5, 1e-5, 1e-6]):
        display = PrivacyUtilityDisplay(
            [1, 10 * (i + 1)], [0.1, 0.2], name=f"curve {i}", delta=delta, baseline_scores=0.9
        ).plot(ax=ax)
        ax = display.ax_
        styles.add((display.lines_[0].get_linestyle(), display.lines_[0].get_marker()))
        expected = "epsilon (nats)" + (" at delta = 1e-5" if i < 2 else "")
        assert ax.get_xlabel() == expected
        assert display.fill_between_ is None
    assert len(styles) == 3
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["curve 0", "curve 1", "curve 2"] + ["not private"] * 3
    low, high = ax.get_xlim()
    assert low < 1
    assert high > 30
    assert ax.get_ylabel() == "score"


@pytest.mark.sample(1)
@pytest.mark.parametrize("epsilons", [[1.0], [1e-3, 1e3], np.geomspace(1e-3, 1e3, 40), [1, 1.01]])
@pytest.mark.parametrize("band", ["std", "min-max", None])
def test_one_point_and_huge_ranges(epsilons, band):
    scores = np.tile([0.4, 0.6], (len(epsilons), 1))
    display = PrivacyUtilityDisplay(epsilons, scores).plot(band=band)
    low, high = display.ax_.get_xlim()
    assert low < min(epsilons) <= max(epsilons) < high
    assert (display.fill_between_ is None) == (band is None)
    display.figure_.canvas.draw()
    # as many as the version of matplotlib likes, but never one for every point
    assert sum(bool(t.get_text()) for t in display.ax_.get_xticklabels()) <= 11


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilons": []}, "epsilons must be a non-empty list"),
        ({"epsilons": [2, 1]}, "epsilons must be increasing"),
        ({"epsilons": [1, 1]}, "epsilons must be increasing"),
        ({"epsilons": [0, 1]}, "epsilons must be positive"),
        ({"epsilons": [1, np.nan]}, "epsilons must be finite"),
        ({"epsilons": [1, np.inf]}, "epsilons must be finite"),
        ({"epsilons": ["a", "b"]}, "epsilons must be numbers"),
        ({"epsilons": 3.0}, "epsilons must be a non-empty list"),
        ({"scores": [0.1, 0.2, 0.3]}, "a row for each of 2 epsilons; got the shape"),
        ({"scores": [[], []]}, "a row for each of 2 epsilons"),
        ({"scores": [[[1.0]], [[1.0]]]}, "a row for each of 2 epsilons"),
        ({"scores": [[1.0], [1.0, 2.0]]}, "scores must be numbers"),
        ({"scores": [0.1, np.nan]}, "scores must be finite"),
        ({"scores": [0.1, -np.inf]}, "scores must be finite"),
        ({"baseline_scores": []}, "baseline_scores must be a non-empty list"),
        ({"baseline_scores": [np.nan]}, "baseline_scores must be finite"),
        ({"chance": np.inf}, "chance must be finite"),
    ],
)
def test_what_cannot_be_drawn(given, message):
    with pytest.raises(ValueError, match=message):
        PrivacyUtilityDisplay(**{"epsilons": [1, 2], "scores": [0.1, 0.2], **given})


def test_bands_are_checked():
    with pytest.raises(ValueError, match="band must be 'std' or 'min-max'; got 'iqr'"):
        PrivacyUtilityDisplay([1], [0.5]).plot(band="iqr")


def test_cross_validation_at_every_epsilon():
    display = PrivacyUtilityDisplay.from_estimator(
        Echo(),
        UTILITY_X,
        utility_y,
        epsilons=[0.5, 2.0],
        cv=3,
        n_repeats=2,
        baseline=LogisticRegression(),
    )
    np.testing.assert_array_equal(display.scores, [[0.5] * 6, [2.0] * 6])
    assert display.baseline_scores.shape == (6,)
    assert (display.name, display.baseline_name) == ("Echo", "LogisticRegression")
    assert display.delta == 1e-5
    assert display.score_name == "accuracy"
    with_groups = PrivacyUtilityDisplay.from_estimator(
        Echo(),
        UTILITY_X,
        utility_y,
        epsilons=[1.0],
        cv=3,
        params={"groups": np.arange(60)},
        name="ours",
    )
    np.testing.assert_array_equal(with_groups.scores, [[101.0] * 3])
    assert with_groups.name == "ours"


def test_seeds_differ_between_fits_and_can_be_repeated():
    def scores(random_state):
        return PrivacyUtilityDisplay.from_estimator(
            Echo(),
            UTILITY_X,
            utility_y,
            epsilons=[1, 2],
            cv=ShuffleSplit(2, random_state=0),
            n_repeats=2,
            random_state=random_state,
        ).scores

    first = scores(0)
    assert len(np.unique(first - np.array([[1], [2]]))) == 8
    np.testing.assert_array_equal(first, scores(0))
    assert not np.any(first == scores(1))


def test_private_estimators_and_a_pipeline():
    model = make_pipeline(
        DPStandardScaler(epsilon=1.0, delta=1e-6, bounds=(0, 1)),
        DPLogisticRegression(epsilon=3.0, delta=1e-6, classes=(0, 1), data_norm=1.0),
    )
    steps = private_steps(model)
    assert steps == {"dpstandardscaler__epsilon": 1.0, "dplogisticregression__epsilon": 3.0}
    assert scaled_epsilons(steps, 2.0) == {
        "dpstandardscaler__epsilon": 0.5, "dplogisticregression__epsilon": 1.5,
    }  # fmt: skip
    assert sum_of_deltas(model, steps) == 2e-6
    display = PrivacyUtilityDisplay.from_estimator(
        model,
        UTILITY_X,
        utility_y,
        epsilons=[1.0, 1e3],
        cv=2,
        random_state=0,
        scoring="neg_log_loss",
    )
    assert display.name == "DPLogisticRegression"
    assert display.score_name == "negative log loss"
    assert model[0].epsilon == 1.0


def test_budgets_inside_of_a_column_transformer_are_found():
    columns = ColumnTransformer([("scale", DPStandardScaler(epsilon=2.0, bounds=(0, 1)), [0])])
    steps = private_steps(make_pipeline(columns, Echo(), SVR()))
    assert steps == {"columntransformer__scale__epsilon": 2.0, "echo__epsilon": 1.0}


def test_a_meta_estimator_with_a_budget_of_its_own_decides_alone():
    class Whole(Echo):
        def __init__(self, estimator=None, epsilon=1.0, delta=1e-5, C=0.0, random_state=None):
            super().__init__(epsilon, delta, C, random_state)
            self.estimator = estimator

    assert private_steps(make_pipeline(Whole(Echo(7.0), 3.0))) == {"whole__epsilon": 3.0}
    assert sum_of_deltas(Whole(Echo()), {"epsilon": 1.0}) == 1e-5
    assert sum_of_deltas(Whole(Echo(), delta=None), {"epsilon": 1.0}) is None


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SVR(), "SVR has no epsilon"),
        (LogisticRegression(), "LogisticRegression has no epsilon"),
        (OneVsRestClassifier(Echo()), "belongs to a part of OneVsRestClassifier"),
        (GridSearchCV(Echo(), {"C": [1.0]}), "belongs to a part of GridSearchCV"),
        (Echo, "must be an estimator with parameters"),
        (None, "must be an estimator with parameters"),
        (make_pipeline(Echo(epsilon=np.inf), Echo()), "must be positive and finite to be scaled"),
        (make_pipeline(Echo(epsilon=None), Echo()), "must be positive and finite to be scaled"),
    ],
)
def test_estimators_without_one_clear_budget(estimator, message):
    with pytest.raises(ValueError, match=message):
        PrivacyUtilityDisplay.from_estimator(estimator, UTILITY_X, utility_y, epsilons=[1.0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_repeats": 0}, "n_repeats must be an integer, at least 1; got 0"),
        ({"n_repeats": None}, "n_repeats must be an integer"),
        ({"n_repeats": True}, "n_repeats must be an integer"),
        ({"random_state": -1}, "random_state must be an integer"),
        ({"random_state": np.random.RandomState(0)}, "random_state must be an integer"),
        ({"scoring": ["accuracy"]}, "scoring must be one score"),
        ({"epsilons": [1.0, -1.0]}, "epsilons must be positive"),
        ({"epsilons": [2.0, 1.0]}, "epsilons must be increasing"),
    ],
)
def test_parameters_are_checked_before_any_fit(given, message):
    class Never(Echo):
        def fit(self, X, y):
            raise AssertionError

    with pytest.raises(ValueError, match=message):
        PrivacyUtilityDisplay.from_estimator(
            Never(), UTILITY_X, utility_y, **{"epsilons": [1.0], **given}
        )


# What audits rule out beside what is claimed, and contradictions that show without colour.


plt.switch_backend("agg")


@pytest.fixture(scope="module")
def result():
    mean = DPMean(epsilon=2.0, mechanism="laplace", data_norm=1.0)
    return audit_privacy(mean, [[0.0], [1.0]], neighbour=[[0.0], [-1.0]], n_runs=200)


@pytest.mark.full
def test_one_result_and_a_list(result):
    display = AuditDisplay.from_result(result)
    assert display.names == ["audit 1"]
    assert display.claims == [2.0]
    assert display.bars_[0].get_width() == result.epsilon_lower
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), [2.0])
    assert legend(display) == ["ruled out at 95 % confidence", "claimed"]
    assert AuditDisplay.from_result([result, result]).names == ["audit 1", "audit 2"]


@pytest.mark.full
def test_contradictions_show_without_colour(result):
    broken = dataclasses.replace(result, epsilon_lower=3.0, epsilon_claimed=1.0)
    free = dataclasses.replace(result, epsilon_lower=3.0, epsilon_claimed=None)
    endless = dataclasses.replace(result, epsilon_lower=0.0, epsilon_claimed=np.inf)
    unseen = dataclasses.replace(result, epsilon_lower=0.0, epsilon_claimed=1.0)
    rows = {"ours": result, "broken": broken, "free": free, "endless": endless, "unseen": unseen}
    display = AuditDisplay.from_result(rows)
    assert display.names == list(rows)
    assert display.contradicted == (False, True, False, False, False)
    hatches = [bar.get_hatch() for bar in display.bars_]
    assert hatches == [None, "////", None, None, None]
    stands, falls = display.lines_
    assert stands.get_marker() != falls.get_marker()
    np.testing.assert_array_equal(stands.get_xdata(), [2.0, 1.0])
    np.testing.assert_array_equal(falls.get_xdata(), [1.0])
    assert words(display) == ["CONTRADICTED", "no claim", "no claim", "nothing ruled out"]
    assert legend(display)[1:] == ["claimed", "claimed, contradicted"]
    low, high = display.ax_.get_ylim()
    assert low > high
    ticks = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert ticks == list(rows)
    assert "CONTRADICTED" not in words(display.plot(ax=plt.figure(figsize=(3.4, 3)).add_subplot()))


def test_results_of_one_run_and_of_others():
    one_run = OneRunResult(0.4, 1e-5, 0.9, 1.0, 100, 50, 40, "zero-out", False)
    display = AuditDisplay.from_result({"one run": one_run})
    assert display.ax_.get_xlabel() == "epsilon (nats) at delta = 1e-5"
    assert legend(display)[0] == "ruled out at 90 % confidence"
    other = dataclasses.replace(one_run, delta=0.0, confidence=0.95)
    display = AuditDisplay.from_result([one_run, other])
    assert display.ax_.get_xlabel() == "epsilon (nats)"
    assert legend(display)[0] == "ruled out"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("claims", "log", "scale"),
    [
        ([1.0, 8.0], None, "linear"),
        ([1e-3, 1e3], None, "log"),
        ([1.0, 8.0], True, "log"),
        ([1e-3, 1e3], False, "linear"),
        ([None, None], None, "linear"),
        ([None, None], True, "log"),
        ([1e-300, 1e100], None, "log"),
    ],
)
def test_axes(claims, log, scale):
    display = AuditDisplay(["a", "b"], [0.0, 0.5], claims=claims).plot(log=log)
    assert display.ax_.get_xscale() == scale
    left, right = display.ax_.get_xlim()
    ends = [bar.get_x() + bar.get_width() for bar in display.bars_]
    assert ends == pytest.approx([left, max(0.5, left)])
    assert right > max([0.5] + [c for c in claims if c])
    display.figure_.canvas.draw()


def test_nothing_is_known():
    display = AuditDisplay(["a"], [0.0]).plot()
    assert display.lines_ == []
    assert words(display) == ["no claim"]
    display.figure_.canvas.draw()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lower_bounds": []}, "lower_bounds must be a non-empty list"),
        ({"lower_bounds": [np.nan, 1.0]}, "lower_bounds must be finite"),
        ({"lower_bounds": [-1.0, 1.0]}, "lower_bounds must not be negative"),
        ({"names": ["a"]}, "names must have 2 entries, one a row; got 1"),
        ({"claims": [1.0]}, "claims must have 2 entries"),
        ({"claims": [0.0, 1.0]}, "claims must be positive"),
        ({"claims": [np.nan, 1.0]}, "claims must be finite"),
        ({"claims": ["a", None]}, "claims must be numbers"),
        ({"deltas": [1e-5]}, "deltas must have 2 entries"),
        ({"confidences": []}, "confidences must have 2 entries"),
    ],
)
def test_audits_that_cannot_be_drawn(given, message):
    with pytest.raises(ValueError, match=message):
        AuditDisplay(**{"names": ["a", "b"], "lower_bounds": [0.1, 0.2], **given})


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([], "lower_bounds must be a non-empty list"),
        ({}, "lower_bounds must be a non-empty list"),
        ([3.0], "'audit 1' must be the result of an audit; got a float"),
        ({"a": None}, "'a' must be the result of an audit; got None"),
        (3.0, "must be the result of an audit"),
    ],
)
def test_what_is_no_result(results, message):
    with pytest.raises(ValueError, match=message):
        AuditDisplay.from_result(results)


# Functions of columns.


def bent_rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal([5.0, 0.0], [2.0, 1.0], size=(3000, 2)), columns=["age", "x"])
    return X, X["age"] + X["x"] ** 2


@pytest.mark.parametrize("kernel", ["additive", "linear"])
def test_shapes_of_a_regressor_are_differences_of_its_predictions(kernel):
    X, y = bent_rows()
    model = DPKernelRegressor(2.0, kernel=kernel, random_state=0).fit(X, y)
    display = AdditiveShapesDisplay.from_estimator(model)
    assert display.names == ["age", "x"]
    assert display.axes_[0].get_ylabel() == "prediction"
    for j, (grid, shape) in enumerate(zip(display.grids, display.shapes, strict=True)):
        rows = pd.DataFrame([model.feature_center_] * len(grid), columns=X.columns)
        rows.iloc[:, j] = grid
        assert_allclose(np.diff(shape[:, 0]), np.diff(model.predict(rows)), atol=1e-9)
        assert_allclose(display.lines_[j][0].get_ydata(), shape[:, 0])
        assert grid[0] < X.iloc[:, j].mean() < grid[-1]
    bends = np.diff(display.shapes[1][:, 0], 2)
    assert (np.abs(bends).max() > 1e-3) == (kernel == "additive")
    display.figure_.canvas.draw()


def test_shapes_of_several_classes_between_public_bounds():
    X, y = bent_rows()
    model = DPKernelClassifier(
        4.0, kernel="additive", classes=[0, 1, 2], bounds=[(0, 10), (-3, 3)], random_state=0
    ).fit(X, np.digitize(y, [4.0, 7.0]))
    display = AdditiveShapesDisplay.from_estimator(model, features=["x", 0])
    assert display.names == ["x", "age"]
    assert_allclose([display.grids[1][0], display.grids[1][-1]], [0, 10], atol=1e-9)
    found = model.decision_function(pd.DataFrame({"age": 5.0, "x": display.grids[0]}))
    assert_allclose(np.diff(display.shapes[0], axis=0), np.diff(found, axis=0), atol=1e-9)
    assert_allclose(display.shapes[0].mean(axis=0), 0, atol=1e-9)
    texts = display.axes_[0].get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["0", "1", "2"]
    assert len({line.get_linestyle() for line in display.lines_[0]}) == 3


def test_shapes_of_a_table_are_differences_of_its_scores():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.normal(40, 10, 2000),
            "plan": rng.choice(["a", "b"], 2000),
            "shop": rng.choice(["x", "y", "z"], 2000),
            "new": rng.random(2000) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 2000), "D"),
            "gain": np.zeros(2000),
        }
    )
    model = dp_tabular_pipeline(
        "classifier", epsilon=4.0, classes=[False, True], categories={"plan": ["a", "b"]},
        random_state=0,
    ).fit(table, (table["age"] > 40) ^ table["new"])  # fmt: skip
    display = AdditiveShapesDisplay.from_estimator(model)
    assert display.names == list(table)
    row = table.iloc[:1].assign(gain=0.0, age=model[0].mean_["age"])

    def scores(name, values):
        rows = pd.concat([row] * len(values), ignore_index=True)
        rows[name] = values
        features = model[0].transform(rows)
        assert np.linalg.norm(features, axis=1).max() < 1 - 1e-6
        return features @ model[1].coef_[0]

    shapes = dict(zip(display.names, display.shapes, strict=True))
    grids = dict(zip(display.names, display.grids, strict=True))
    near = np.abs(grids["age"] - 40) < 10
    for name, values, found in (
        ("age", grids["age"][near], shapes["age"][near]),
        ("plan", ["a", "b", "neither"], shapes["plan"][:3]),
        ("new", [False, True], shapes["new"]),
        ("since", grids["since"][40:60], shapes["since"][40:60]),
    ):
        assert_allclose(np.diff(found[:, 0]), np.diff(scores(name, values)), atol=1e-9)
    assert list(grids["plan"]) == ["a", "b", "other", "missing"]
    assert list(grids["new"]) == ["no", "yes"]
    assert all(word.startswith("#") for word in grids["shop"][:3])
    assert [len(model[0].frequent_["shop"][0]) + 2] == [len(shapes["shop"])]
    assert list(grids["gain"]) == ["below 0", "0", "above 0"]
    assert [label.get_text() for label in display.axes_[3].get_yticklabels()] == ["no", "yes"]
    assert display.axes_[0].get_ylabel() == "score of True"
    display.figure_.canvas.draw()


def test_more_words_than_bars():
    words = [f"w{i}" for i in range(40)]
    shape = np.r_[np.zeros(20), np.arange(20.0)]
    display = AdditiveShapesDisplay(["a"], [np.array(words)], [shape]).plot()
    drawn = [label.get_text() for label in display.axes_[0].get_yticklabels()]
    assert drawn == words[-12:]
    assert display.spans == 19


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([], [], []), "names must not be empty"),
        ((["a"], [], []), "grids must have 1 entries"),
        ((["a"], [[1, 2]], [[1.0]]), "shapes of 'a' must be 1 for each of 2 points"),
        ((["a"], [[1, np.inf]], [[1.0, 2.0]]), "the grid of 'a' must be finite"),
        ((["a"], [[1, 2]], [[1.0, np.nan]]), "the shape of 'a' must be finite"),
    ],
)
def test_shapes_that_cannot_be_drawn(given, message):
    with pytest.raises(ValueError, match=message):
        AdditiveShapesDisplay(*given)


def test_models_that_are_no_sum_of_functions_of_columns():
    X, y = bent_rows()
    draw = AdditiveShapesDisplay.from_estimator
    with pytest.raises(ValueError, match="has waves of all columns at once"):
        draw(DPKernelRegressor(kernel="rbf", random_state=0).fit(X, y))
    for model in (mean(), make_pipeline(StandardScaler(), SVR()).fit(X, y)):
        with pytest.raises(ValueError, match="must be a kernel or linear model"):
            draw(model)
    model = DPKernelRegressor(kernel="linear", random_state=0).fit(X, y)
    for features in ("age", ["sex"], [2], [-1], [True], 0):
        with pytest.raises(ValueError, match="features must be"):
            draw(model, features=features)
    with pytest.raises(ValueError, match="axes must have 2 entries"):
        draw(model, axes=[plt.figure().add_subplot()])
    for n_cols in (0, 1.5, True):
        with pytest.raises(ValueError, match="n_cols must be a positive integer"):
            draw(model, n_cols=n_cols)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Where a budget went: bars for all kinds of ledgers, and why they do not add up."""

import math

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    BoundedScaler,
    DPGridSearchCV,
    DPLogisticRegression,
    DPMean,
    DPStandardScaler,
    FederatedDPLogisticRegression,
    Ledger,
    LedgerDisplay,
    LocalDPMean,
    privacy_spent,
    solvers,
)
from skdp.inspection import LedgerPart

plt.switch_backend("agg")
rng = np.random.default_rng(0)
X = rng.uniform(size=(200, 3))
y = (X[:, 0] > 0.5).astype(int)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def classifier(**given):
    given = {"epsilon": 2.0, "delta": 1e-5, "classes": (0, 1), "random_state": 0, **given}
    return DPLogisticRegression(**given)


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def words(display):
    return [text.get_text() for text in display.ax_.texts]


def labels(display):
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def test_bars_of_a_pipeline_stand_in_groups_and_do_not_add_up():
    scaler = DPStandardScaler(epsilon=1.0, delta=1e-6, bounds=(0, 1), random_state=0)
    model = make_pipeline(BoundedScaler(bounds=(0, 1)), scaler, classifier(delta=1e-6)).fit(X, y)
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
    model = classifier().fit(X, y)
    display = LedgerDisplay.from_estimator(model, wrap=200)
    (part,) = display.parts
    assert part.count == sum(release.count for release in model.ledger_.releases) > 1
    assert labels(display) == [f"{part.name} ({part.count}\N{NO-BREAK SPACE}times)"]
    assert len(display.lines_) == 1
    narrow = display.plot(wrap=12)
    assert max(map(len, labels(narrow)[0].split("\n"))) <= 32


def test_pure_noise_has_an_epsilon_at_delta_0():
    mean = DPMean(epsilon=0.5, mechanism="laplace", random_state=0).fit(X)
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


def test_reports_that_only_some_see_have_a_number_and_no_bar():
    clients = np.repeat(np.arange(100), 2)
    model = FederatedDPLogisticRegression(
        epsilon=2.0, delta=1e-5, local_epsilon=8.0, classes=(0, 1), random_state=0
    ).fit(X, y, groups=clients)
    display = LedgerDisplay.from_estimator(model)
    hidden = [part for part in display.parts if part.hidden]
    assert len(hidden) == 1
    assert len(display.bars_) == len(display.parts) - 1
    assert any(text.startswith("seen by those who add up") for text in words(display))
    assert display.plain_sum < hidden[0].epsilon
    assert "per client" in display.ax_.get_xlabel()


def test_local_reports():
    model = LocalDPMean(epsilon=2.0, random_state=0).fit(X)
    display = LedgerDisplay.from_estimator(model)
    assert display.total == pytest.approx(model.privacy_spent_[0])
    assert "local reports, per row" in display.ax_.get_xlabel()


def test_all_fits_of_a_search_are_counted():
    search = GridSearchCV(classifier(delta=1e-6), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
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
        (lambda: LedgerDisplay.from_ledger([]), TypeError, "must be a Ledger; got list"),
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

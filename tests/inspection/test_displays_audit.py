# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What audits rule out beside what is claimed, and contradictions that show without colour."""

import dataclasses

import numpy as np
import pytest
from matplotlib import pyplot as plt

from skdp import AuditDisplay, DPMean
from skdp.audit import OneRunResult, audit_privacy

plt.switch_backend("agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def result():
    mean = DPMean(epsilon=2.0, mechanism="laplace")
    return audit_privacy(mean, [[0.0], [1.0]], neighbour=[[0.0], [-1.0]], n_runs=200)


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def words(display):
    return [text.get_text() for text in display.ax_.texts]


def test_one_result_and_a_list(result):
    display = AuditDisplay.from_result(result)
    assert display.names == ["audit 1"]
    assert display.claims == [2.0]
    assert display.bars_[0].get_width() == result.epsilon_lower
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), [2.0])
    assert legend(display) == ["ruled out at 95 % confidence", "claimed"]
    assert AuditDisplay.from_result([result, result]).names == ["audit 1", "audit 2"]


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
def test_what_cannot_be_drawn(given, message):
    with pytest.raises(ValueError, match=message):
        AuditDisplay(**{"names": ["a", "b"], "lower_bounds": [0.1, 0.2], **given})


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([], "lower_bounds must be a non-empty list"),
        ({}, "lower_bounds must be a non-empty list"),
        ([3.0], "'audit 1' must be the result of an audit; got float"),
        ({"a": None}, "'a' must be the result of an audit; got NoneType"),
        (3.0, "must be the result of an audit"),
    ],
)
def test_what_is_no_result(results, message):
    with pytest.raises(ValueError, match=message):
        AuditDisplay.from_result(results)

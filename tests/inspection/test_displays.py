# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What all displays share: matplotlib late, clear errors, and axes that can be read."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt

import skdp
from skdp import AuditDisplay, DPMean, LedgerDisplay, PrivacyUtilityDisplay
from skdp.inspection._drawing import budget_label, plain_log_axis, short, wrapped

plt.switch_backend("agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def mean():
    return DPMean(epsilon=0.5, random_state=0).fit([[0.1], [0.2], [0.3]])


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
    for name in ("AuditDisplay", "LedgerDisplay", "PrivacyUtilityDisplay"):
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

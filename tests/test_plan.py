# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Plans: what a fit will release is what it then releases, and no row is read."""

import math
import re

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPMedian,
    DPStandardScaler,
)
from skdp.inspection import FitPlan
from skdp.local import LocalDPMean
from skdp.privacy import PrivacyBudget, gdp_mu
from skdp.solvers import SGD
from tests.test_golden import CONFIGURATIONS

PLANNED = {name: model for name, model in CONFIGURATIONS.items() if hasattr(model, "plan")}
#: randomisers of single rows and transformers by public numbers release nothing as a fit
WITHOUT = {
    "BoundedScaler",
    "NormClipper",
    "RandomFourierFeatures",
    "PrivUnitPrivatizer",
    "ScalarPrivatizer",
}


def facts_of(release):
    """Return what is public before the first release: all but units of released numbers."""
    noise = release.noise
    ratio = noise.scale / noise.sensitivity if noise.scale and noise.sensitivity else 0.0
    numbers = [ratio, noise.mu, noise.epsilon, noise.delta]
    batch = noise.sampling and (noise.sampling.kind, noise.sampling.batch_size)
    words = [release.size, release.count, release.adjacency, release.unit, release.rows]
    return [noise.law, batch, *words, *(float(f"{number:.6g}") for number in numbers)]


@pytest.mark.sample(6, 60)
@pytest.mark.parametrize(
    "name",
    [
        # an exact draw takes seconds
        pytest.param(name, marks=[pytest.mark.full] if "exact" in name else [])
        for name in PLANNED
    ],
)
def test_what_is_planned_is_what_is_released(name, capsys):
    rng = np.random.default_rng(5)
    X = 0.6 + 0.3 * rng.normal(size=(120, 4))
    labels, targets = (X[:, 0] > 0.6).astype(int), X[:, 0]
    model = PLANNED[name]
    plan = model.plan(120, 4)
    assert not hasattr(model, "ledger_")
    loud = "verbose" in model.get_params()
    fitted = clone(model).set_params(**({"verbose": 1} if loud else {}))
    fitted.fit(X, labels if is_classifier(model) else targets if is_regressor(model) else None)
    planned = [facts_of(release) for release in plan.ledger.releases]
    done = [facts_of(release) for release in fitted.ledger_.releases]
    # where released numbers may say that fewer steps, or no searches, are enough, it has the most
    if not plan.at_most or (len(done) == len(planned) and np.max(fitted.n_iter_) == plan.n_iter):
        assert planned == done
        assert plan.n_iter is None or plan.n_iter == np.max(fitted.n_iter_)
    text = repr(plan)
    if loud and plan.n_passes:
        said, head = (out.splitlines()[0] for out in (capsys.readouterr().out, text))
        if fitted.ledger_.adjacency == "add-remove":
            # the number of rows is released, and noisy
            said, head = (re.sub(r"from \d+ rows", "", line) for line in (said, head))
        assert said == head
    assert max(map(len, text.splitlines()[1:])) < 160


def test_all_that_fit_have_a_plan():
    others = {type(model).__name__ for model in CONFIGURATIONS.values()} - {
        type(model).__name__ for model in PLANNED.values()
    }
    # what a table holds is in its types, not in its shape
    assert others - WITHOUT == {"DPTableVectorizer"}


def test_a_plan_charges_no_budget_and_asks_for_no_seed():
    budget = PrivacyBudget(1.0, 1e-6)
    model = DPLogisticRegression(budget=budget, random_state=0, verbose=1, data_norm=1.0)
    model.plan(1000, 3)
    assert budget.spent == (0.0, 0.0)
    assert model.budget is budget
    assert vars(model).keys() == vars(clone(model)).keys()


def test_the_table():
    model = DPLogisticRegression(data_norm=1.0, classes=["a", "b"], solver="preconditioned")
    plan = model.plan(10_000, 20)
    assert isinstance(plan, FitPlan)
    head, columns, moments, gradients, passes, signal = repr(plan).splitlines()
    assert head == (
        "[DPLogisticRegression] at most 25 releases from 10000 rows, epsilon=1, delta=1e-06, "
        "replace-one"
    )
    assert columns.split() == ["release", "times", "numbers", "noise", "(rows)", "share"]
    assert moments.split()[-4:-2] == ["1", "231"]
    assert gradients.split()[-4:-2] == ["24", "21"]
    shares = [int(line.split()[-1].removesuffix("%")) for line in (moments, gradients)]
    assert sum(shares) == 100
    assert passes.startswith("25 passes over the rows, n_iter_=24.")
    assert signal.startswith(f"Signal to noise {plan.signal:.3g}: usually")
    assert "<table>" in plan._repr_html_()
    for cell in ("at most 25 releases", "<td>231</td>", "n_iter_=24"):
        assert cell in plan._repr_html_()


def test_where_there_may_be_fewer_steps_the_plan_has_the_most(capsys):
    X = np.random.default_rng(0).normal(size=(60_000, 20)) / 6
    model = DPLogisticRegression(data_norm=1.0, classes=[0, 1], verbose=1)
    plan = model.plan(*X.shape)
    # a search of scales beside the norm, and steps
    assert (plan.n_releases, plan.n_iter) == (42, 24)
    model.fit(X, (X[:, 0] > 0).astype(int))
    assert "at most 42 releases from 60000 rows" in capsys.readouterr().out.splitlines()[0]
    planned, done = plan.ledger.releases, model.ledger_.releases
    assert facts_of(planned[0]) == facts_of(done[0])
    # fewer, and at the same price together
    assert len(done) == 3
    assert done[-1].count < planned[-1].count
    spent = [sum(r.count * r.noise.mu**2 for r in ledger) for ledger in (planned, done)]
    assert spent[0] == pytest.approx(spent[1], rel=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        DPMean(8.0),
        DPMean(8.0, data_norm=9.0),
        DPMean(8.0, mechanism="coinpress", data_norm=9.0),
        DPMean(8.0, mechanism="shifted-clipped", data_norm=9.0),
        DPMedian(8.0),
        DPMedian(8.0, max_iter=7, data_norm=9.0),
        DPMedian(8.0, mechanism="rank"),
        DPMedian(8.0, 0.0, mechanism="exponential"),
        DPStandardScaler(8.0),
        DPStandardScaler(8.0, bounds=(-3, 3)),
    ],
    ids=repr,
)
def test_the_line_of_a_statistic_counts_its_releases(model, capsys):
    X = np.random.default_rng(0).normal(size=(1000, 3))
    clone(model).fit(X)
    assert capsys.readouterr().out == ""
    loud = clone(model).set_params(verbose=1).fit(X)
    head = repr(model.plan(*X.shape)).splitlines()[0]
    assert capsys.readouterr().out == f"{head}\n"
    n_releases = sum(release.count for release in loud.ledger_.releases)
    assert f" {n_releases} release{'s' * (n_releases != 1)} from 1000 rows" in head


def test_a_statistic_that_releases_nothing_says_nothing(capsys):
    DPStandardScaler(with_mean=False, with_std=False, verbose=1).fit(np.ones((9, 2)))
    assert capsys.readouterr().out == ""


def test_signal_to_noise():
    n, d = 4000, 8
    model = DPLogisticRegression(0.7, 1e-5, data_norm=1.0)
    found = model.plan(n, d).signal
    assert found == pytest.approx(n * gdp_mu(0.7, 1e-5) / (2 * math.sqrt(d + 1)))
    model.set_params(adjacency="zero-out")
    assert model.plan(n, d).signal == pytest.approx(2 * found)
    # three classes have three times the coefficients
    assert model.plan(n, d, n_classes=3).signal == pytest.approx(2 * found / math.sqrt(3))
    for other in (DPLpRegressor(), DPMean(data_norm=1.0), model.set_params(delta=0.0)):
        assert other.plan(n, d).signal is None
        assert other.plan(n, d).outlook is None


def test_outlook_falls_with_the_signal():
    model = DPLogisticRegression(data_norm=1.0)
    words = [model.plan(n, 9).outlook for n in (30, 200, 1000, 4000, 20_000)]
    assert len(set(words)) == 5
    assert "almost nothing" in words[0]
    assert "level" in words[-1]


def test_passes_of_batches_and_of_searches():
    model = DPLogisticRegression(solver=SGD(batch_size=100), data_norm=1.0)
    plan = model.plan(2000, 3)
    assert plan.n_passes == pytest.approx(plan.n_releases * 100 / 2000)
    search = DPGridSearchCV(
        DPLogisticRegression(classes=["no", "yes"]), {"data_norm": [1.0, 2.0]}, epsilon=1.0
    )
    plan = search.plan(400, 3)
    assert plan.n_passes is None
    assert "best of 2 candidates" in repr(plan)


def test_rows_beyond_memory_are_made_up_one_by_one(monkeypatch):
    small = DPMean(data_norm=1.0).plan(3000, 4)
    monkeypatch.setattr("skdp._plan._IN_MEMORY", 1000)
    for model in (DPMean(data_norm=1.0), DPStandardScaler(), DPLogisticRegression(data_norm=1.0)):
        assert model.plan(3000, 4).n_releases
    plan = DPMean(data_norm=1.0).plan(3000, 4)
    assert repr(plan) == repr(small)


def test_bounds_by_name_need_no_names():
    by_name = DPStandardScaler(bounds={"age": (18, 100), "hours": (0, 99)})
    assert repr(by_name.plan(500, 2)) == repr(DPStandardScaler(bounds=(0, 1)).plan(500, 2))


def test_reports_have_no_noise_of_a_sum():
    assert "drawn by every row on its own" in repr(LocalDPMean(data_norm=1.0).plan(500, 2))


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ((0, 3), ValueError, "n_samples == 0, must be >= 1"),
        ((10, -1), ValueError, "n_features == -1, must be >= 1"),
        ((10.5, 3), TypeError, "n_samples must be an instance of int"),
    ],
)
def test_shapes_that_are_none_are_refused(sizes, error, message):
    with pytest.raises(error, match=message):
        DPMean(data_norm=1.0).plan(*sizes)


def test_one_class_is_refused_and_parameters_are_checked():
    with pytest.raises(ValueError, match="n_classes == 1, must be >= 2"):
        DPLogisticRegression().plan(10, 3, n_classes=1)
    with pytest.raises(ValueError, match=r"The .epsilon. parameter"):
        DPLogisticRegression(epsilon=-1).plan(10, 3)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What fitted estimators and pipelines have spent together."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    BoundedScaler,
    DPLogisticRegression,
    DPMean,
    DPSparseMeanEstimator,
    Ledger,
    NormClipper,
    privacy_spent,
)
from skdp.privacy import NotCovered, gdp_epsilon, gdp_mu

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(40, 3))
Y = (X[:, 0] > 0).astype(int)


def mean_of(epsilon=0.5, **parameters):
    return DPMean(epsilon=epsilon, random_state=0, **parameters).fit(X)


def classifier(epsilon=0.5):
    return DPLogisticRegression(epsilon=epsilon, random_state=0, max_iter=3)


def test_one_estimator_has_spent_what_it_reports():
    mean = mean_of()
    spent = privacy_spent(mean)
    assert (spent.epsilon, spent.delta) == mean.privacy_spent_
    assert spent.ledger == mean.ledger_
    assert spent.not_covered == ()
    assert 0.5 * (1 - 1e-6) < spent.epsilon <= 0.5


def test_several_estimators_compose_tightly():
    epsilon, delta = privacy_spent(mean_of(0.3), mean_of(0.4))
    assert delta == 2e-6
    assert 0.4 < epsilon < 0.7
    mu = math.hypot(gdp_mu(0.3, 1e-6), gdp_mu(0.4, 1e-6))
    assert epsilon == pytest.approx(gdp_epsilon(mu, 2e-6), rel=1e-6)


def test_the_same_estimator_twice_counts_twice():
    mean = mean_of()
    assert privacy_spent(mean, mean).epsilon > mean.privacy_spent_[0]
    assert privacy_spent(mean, mean).ledger == mean.ledger_ + mean.ledger_


def test_pure_estimators_add_up_without_delta():
    spent = privacy_spent(mean_of(0.25, mechanism="laplace"), mean_of(0.5, mechanism="laplace"))
    assert tuple(spent) == (pytest.approx(0.75, rel=1e-12), 0.0)
    assert spent.epsilon >= 0.75


@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_the_total_is_read_at_the_delta_that_is_asked_for(delta):
    spent = privacy_spent(mean_of(), mean_of(), delta=delta)
    assert spent.delta == delta
    assert spent.epsilon == spent.ledger.epsilon(delta)


def test_gaussian_noise_at_delta_zero_is_infinite():
    assert privacy_spent(mean_of(), delta=0).epsilon == math.inf


@pytest.mark.parametrize("bad", [1, -1e-9, math.nan, "0", True])
def test_a_bad_delta_is_refused(bad):
    with pytest.raises(ValueError, match="delta must be a number"):
        privacy_spent(mean_of(), delta=bad)


@pytest.mark.parametrize("scaler", [NormClipper(), BoundedScaler(bounds=(-1, 1)), "passthrough"])
def test_steps_that_learn_nothing_are_free_and_not_listed(scaler):
    model = Pipeline([("scale", scaler), ("model", classifier())]).fit(X, Y)
    spent = privacy_spent(model)
    assert spent.not_covered == ()
    assert spent.ledger == model[-1].ledger_
    assert tuple(spent) == model[-1].privacy_spent_


def test_a_step_that_learned_without_a_ledger_is_named():
    model = Pipeline([("scale", StandardScaler()), ("model", classifier())]).fit(X, Y)
    spent = privacy_spent(model)
    text = "step 'scale', which was fitted on the data"
    assert spent.not_covered == (NotCovered("step", "scale", text),)
    assert str(spent).splitlines()[1] == f"not covered: {text}"
    assert str(spent).splitlines()[2].startswith("use public constants")


def test_nested_pipelines_are_counted_to_the_last_step():
    inner = make_pipeline(NormClipper(), StandardScaler(), "passthrough", None)
    model = make_pipeline(inner, make_pipeline(NormClipper(), classifier())).fit(X, Y)
    spent = privacy_spent(model, mean_of())
    assert [(item.kind, item.step) for item in spent.not_covered] == [("step", "standardscaler")]
    assert spent.ledger == model[-1][-1].ledger_ + mean_of().ledger_
    assert spent.delta == 2e-6


@pytest.mark.parametrize(
    "estimator",
    [
        DPMean(),
        classifier(),
        LogisticRegression().fit(X, Y),
        StandardScaler().fit(X),
        GridSearchCV(DPMean(random_state=0), {"epsilon": [0.5, 1.0]}),
        object(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_an_estimator_without_a_ledger_is_refused(estimator):
    with pytest.raises(TypeError, match="has no ledger_: it is not fitted, or keeps none"):
        privacy_spent(mean_of(), estimator)


def test_an_unfitted_pipeline_is_refused():
    with pytest.raises(TypeError, match="not fitted"):
        privacy_spent(make_pipeline(NormClipper(), classifier()))


def test_nothing_to_add_up_is_refused():
    with pytest.raises(ValueError, match="at least one fitted estimator"):
        privacy_spent()


def test_adjacencies_do_not_mix():
    with pytest.raises(ValueError, match="same adjacency"):
        privacy_spent(mean_of(), mean_of(adjacency="zero-out"))


def test_a_total_unpacks_as_epsilon_and_delta():
    epsilon, delta = spent = privacy_spent(mean_of())
    assert (epsilon, delta) == (spent.epsilon, spent.delta)
    assert isinstance(spent.ledger, Ledger)


def test_text_names_the_budget_the_adjacency_and_the_unit():
    for adjacency in ("replace-one", "zero-out"):
        spent = privacy_spent(mean_of(0.5, adjacency=adjacency))
        assert str(spent) == repr(spent)
        assert str(spent) == f"(epsilon=0.5, delta=1e-06), {adjacency} adjacency, per row"


def test_parts_that_learn_nothing_spend_nothing():
    spent = privacy_spent(NormClipper().fit(X))
    assert tuple(spent) == (0.0, 0.0)
    assert str(spent) == "(epsilon=0, delta=0)"


@pytest.mark.parametrize("deltas", [(1e-6, 3e-7, 7e-9), (1e-7, 3.3e-6, 1.7e-8), (0.1, 0.2, 0.3)])
def test_unequal_deltas_add_up_to_a_finite_epsilon(deltas):
    # a sum of deltas that is rounded down would not cover what was spent
    fits = [
        DPSparseMeanEstimator(0.5, d, mechanism="histogram", sparsity=2, random_state=0).fit(X)
        for d in deltas
    ]
    epsilon, delta = privacy_spent(*fits)
    assert sum(deltas) <= delta <= sum(deltas) * (1 + 1e-12)
    assert 0.5 < epsilon <= 1.5

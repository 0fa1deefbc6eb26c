# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the mechanisms of the linear classifiers claim: coupled traces and densities."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression
from skdp.privacy import gdp_mu
from skdp.solvers.exponential import LossDraw, localized_radius
from tests import _audit, _densities
from tests._densities import Line
from tests._neighbours import ADJACENCIES, neighbours, on_examples
from tests._solvers import PAIRS, linear_model, problem_of

EPSILON, DELTA = 2.0, 1e-5
NEW = [pair for pair in PAIRS if pair[0] != "gradient"]
ADDITIVE = [pair for pair in PAIRS if pair[0] != "exponential"]
ESTIMATORS = {"logistic": DPLogisticRegression, "hinge": DPHingeSVM}
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
every_new = pytest.mark.parametrize(("mechanism", "solver"), NEW)


def make(name, mechanism, solver, n_classes=2, **options):
    """Return a model of a pair of mechanism and solver, smoothed where it must be."""
    usual = {
        "epsilon": EPSILON, "delta": DELTA, "classes": range(n_classes), "random_state": 0,
        "coef_bound": 3.0 if mechanism == "exponential" else None,
        "max_iter": 20 if solver == "frank-wolfe" else 5 if mechanism == "gradient" else None,
    }  # fmt: skip
    if name == "hinge" and (mechanism == "objective" or solver in ("one-pass", "frank-wolfe")):
        usual["smoothing"] = 0.5
    return linear_model(
        ESTIMATORS[name], mechanism=mechanism, solver=solver, **{**usual, **options}
    )


def fit_rows(model, rows):
    return clone(model).fit(rows.X, rows.labels())


TRACED = [
    ("newton", DELTA), ("newton", 0.0), ("phased", DELTA), ("localized", DELTA),
    ("one-pass", DELTA),
]  # fmt: skip


@pytest.mark.covering
@every_adjacency
@every_estimator
@pytest.mark.parametrize(("solver", "delta"), TRACED)
@pytest.mark.parametrize("n_classes", [2, 3])
@settings(max_examples=6)
@given(data=st.data())
def test_output_claims_are_kept_on_any_neighbours(name, solver, delta, n_classes, adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-3, 1e3]))
    extra = {
        "data_norm": radius,
        "fit_intercept": data.draw(st.booleans()),
        "intercept_scaling": data.draw(st.sampled_from([None, 0.01, 3.0])),
        "C": data.draw(st.sampled_from([0.01, 1.0, 50.0, np.inf])) / radius**2,
        "coef_bound": data.draw(st.sampled_from([None, 0.5])),
    }
    model = make(name, "output", solver, n_classes, adjacency=adjacency, delta=delta, **extra)
    pair = data.draw(neighbours(adjacency, n_classes=n_classes, radius=radius, finite=True))
    measure = _audit.coupled_mu if delta else _audit.coupled_epsilon
    claimed = gdp_mu(EPSILON, DELTA) if delta else EPSILON
    assert measure(functools.partial(fit_rows, model), *pair) <= claimed


@pytest.mark.covering
@every_adjacency
@every_estimator
@on_examples(30)
def test_localised_draws_keep_their_claim_given_the_same_first_stage(name, adjacency, data):
    # the first stage costs one half by its coupled trace, the draw the other by its density
    xs = data.draw(st.lists(st.sampled_from([1.0, -1.0, 0.2]), min_size=2, max_size=8))
    ts = data.draw(st.lists(st.sampled_from([-1, 1, 0]), min_size=len(xs), max_size=len(xs)))
    first = Line(tuple(xs), tuple(ts))
    change = -xs[0], data.draw(st.sampled_from([-1, 1])) if adjacency == "replace-one" else 0
    second = first.changed(0, *change)
    model = make(
        name, "exponential", "exact", adjacency=adjacency, localize=True, C=0.05, coef_bound=5.0,
        fit_intercept=False,
    )  # fmt: skip
    fit = lambda line: clone(model).fit(*line.labels())  # noqa: E731
    half = _audit.coupled_epsilon(fit, first, second)
    assert half <= EPSILON / 2
    coarse, draw = fit(first).ledger_.releases
    assert coarse.noise.epsilon + draw.noise.epsilon == EPSILON
    problem = problem_of(model, len(xs), 1, 2)
    for center in (-4.9, 0.0, 3.0):
        near = (np.array([center]), localized_radius(problem))
        query = LossDraw(problem.loss, 1, 1.0, problem.penalty, 5.0, near=near)
        assert query.sensitivity(adjacency, len(xs)).spread == draw.stated_sensitivity
        low, high = max(-5.0, center - near[1]), min(5.0, center + near[1])
        w = np.linspace(low, high, 4001)
        one, two = (
            _densities.draw_log_density(problem.loss, problem.penalty, draw.noise.scale, line, w)
            for line in (first, second)
        )
        assert np.abs(one - two).max() <= draw.noise.epsilon * (1 + 1e-5)


@pytest.mark.covering
@every_adjacency
@every_estimator
def test_draws_have_the_density_of_the_temperature_on_the_ledger(name, adjacency):
    line = Line((1.0, -1.0, 0.4, 1.0, 0.7), (1, 1, -1, 1, 0))
    model = make(
        name, "exponential", "exact", adjacency=adjacency, fit_intercept=False, C=1.0,
        epsilon=3.0,
    )  # fmt: skip
    levels = draw_levels(model, line, range(120))
    assert stats.kstest(levels, "uniform").pvalue > 1e-4


def draw_levels(model, line, seeds):
    """Return where the draws of many fits lie in their law, uniform if it is the declared one."""
    problem = problem_of(model, len(line.x), 1, 2)
    w, levels = np.linspace(-problem.radius, problem.radius, 8001), []
    for seed in seeds:
        fitted = clone(model).set_params(random_state=seed).fit(*line.labels())
        temperature = fitted.ledger_.releases[-1].noise.scale
        law = np.exp(
            _densities.draw_log_density(problem.loss, problem.penalty, temperature, line, w)
        )
        levels.append(np.trapezoid(law * (w <= fitted.coef_[0, 0]), w))
    return levels

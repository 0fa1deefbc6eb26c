# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of minimisers, draws and passes, planted one by one: the audits see them all.

Every test first shows that the audit passes on the real code.
"""

import functools
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from skdp._minimize import smooth as certified
from skdp._minimize.objective import RowObjective
from skdp._minimize.queries import Minimizer, PerturbedMinimizer
from skdp._minimize.smooth import SMOOTH_SOLVERS
from skdp.privacy import gdp_mu
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.kernel import samplers as _bits
from skdp.solvers import objective
from skdp.solvers.base import Problem
from tests import _audit
from tests._densities import Line
from tests.linear_model.test_mechanisms import label_flip
from tests.test_claims_erm import DELTA, EPSILON, make
from tests.test_claims_objective import exact_minimiser, fitted, worst_of

CLAIMED_MU = gdp_mu(EPSILON, DELTA)


def trace(model, first, second, claimed=CLAIMED_MU):
    """Return the coupled mu (epsilon, if that is pure) of a pair, relative to the claim."""
    fit = functools.partial(lambda m, data: clone(m).fit(*data), model)
    pure = claimed != CLAIMED_MU
    return (_audit.coupled_epsilon if pure else _audit.coupled_mu)(fit, first, second) / claimed


def output(solver="newton", **options):
    # far below the margin of a sharp hinge: gradients of full length, no curvature
    usual = {"C": 0.1, "fit_intercept": False, "smoothing": 0.01}
    return make("hinge", "output", solver, **{**usual, **options})


def is_tight(ratio, expected=1.0):
    return ratio == pytest.approx(expected, rel=5e-3)


# -- objective perturbation ------------------------------------------------------


@pytest.mark.parametrize("budget", [(4.0, 0.0), (2.0, 1e-3)], ids=str)
@pytest.mark.parametrize("name", ["logistic", "hinge"])
def test_a_dropped_jacobian_is_caught_by_exact_densities(name, budget, monkeypatch):
    # short rows with the other label, of hardly any curvature: where the row's curvature is
    # large they turn the noise against its gradient, and both parts of the loss add up
    n_short = 0 if budget[1] else 20_000
    line = Line((1e-3,) * n_short + (1.0,), (-1,) * n_short + (1,))
    pair = line, line.changed(-1, 1.0, 0)
    # the weakest penalty that is allowed, below the one that makes the determinant free
    honest = fitted(name, "zero-out", budget, False)
    assert worst_of(honest, *pair) <= 1
    real = PerturbedMinimizer.sensitivity

    def forgetful(self, *args):
        return replace(real(self, *args), log_det=0.0, slope=0.0)

    monkeypatch.setattr(PerturbedMinimizer, "sensitivity", forgetful)
    broken = clone(honest)
    if budget[1]:
        # Gaussian noise hides it unless the penalty is weaker than a plan would have it
        monkeypatch.setattr(objective, "weakest_ridge", lambda _: 0.0)
        broken.set_params(C=100.0)
    broken.fit(np.zeros((9, 1)), np.zeros(9, dtype=int))
    assert worst_of(broken, *pair) > 1.1


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_a_reach_that_leaves_out_half_is_caught_by_exact_densities(delta, monkeypatch):
    line, options = Line((1.0,), (1,)), {"smoothing": 0.01}
    honest = fitted("hinge", "zero-out", (1.0, delta), True, **options)
    assert 0.9 < worst_of(honest, line, line.changed(0, 1.0, 0)) <= 1 + 1e-3
    real = PerturbedMinimizer.sensitivity

    def half(self, *args):
        facts = real(self, *args)
        return replace(facts, reach=facts.reach / 2)

    monkeypatch.setattr(PerturbedMinimizer, "sensitivity", half)
    broken = clone(honest).fit(np.zeros((9, 1)), np.zeros(9, dtype=int))
    assert worst_of(broken, line, line.changed(0, 1.0, 0)) > 1.5


def off_by(length, objective, start, met, newton=SMOOTH_SOLVERS["newton"]):
    """Return a point `length` from the minimiser, in a direction that the rows decide."""
    w = newton(objective, start, lambda *_: False)
    return w + length * np.sign(w - objective.center + 1e-300)


def test_an_ignored_certificate_is_caught_by_the_exact_minimiser(monkeypatch):
    line = Line((1.0, 0.3), (1, -1))
    model = make("logistic", "objective", "newton", C=0.02, fit_intercept=False)

    def error():
        with _audit.recorded() as additions:
            fit = clone(model).fit(*line.labels())
        w = exact_minimiser(model, line, 50.0, additions[0].output[0])
        paid = fit.ledger_.releases[1].stated_sensitivity / 2 + additions[1].noise.grid
        return abs(additions[1].statistic[0] - w) / paid

    assert error() <= 1
    # the certificate finds such a solver out
    monkeypatch.setitem(SMOOTH_SOLVERS, "newton", functools.partial(off_by, 0.1))
    assert error() <= 1
    monkeypatch.setattr(certified, "distance_bound", lambda *_: 0.0)
    assert error() > 100


def test_the_same_secret_term_in_two_fits_is_caught(monkeypatch):
    model, data = make("logistic", "objective", "newton", random_state=None), label_flip(9, "")[0]
    data = np.tile(data[0], 5), data[1]

    def streams():
        both = [step for _ in range(2) for step in _audit.noise_stream(model.fit, *data)]
        return [step.standard for step in both]

    assert _audit.repeats(*streams()) == 0
    real = _mechanisms.add_noise

    def secret(values, noise, bits):
        # the first of two additions: zeros plus the linear term
        seeded = _bits.make_bits(7, "another fit")
        return real(values, noise, bits if values.any() else seeded)

    monkeypatch.setattr(_mechanisms, "add_noise", secret)
    assert _audit.repeats(*streams()) > 0


@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_a_cover_that_is_left_out_or_reused_is_caught(delta, monkeypatch):
    model = make("logistic", "objective", "newton", delta=delta)
    rng = np.random.default_rng(0)
    data = rng.normal(size=(9, 20)), np.arange(9) % 2
    linear, cover = _audit.noise_stream(model.fit, *data)
    assert not _audit.scale_is_wrong([cover])
    assert _audit.repeats(linear.standard, cover.standard) == 0
    real, kept = _mechanisms.add_noise, []

    def left_out(values, noise, bits):
        if not values.any():
            return real(values, noise, bits)
        return noise.grid * np.rint(values / noise.grid)

    def reused(values, noise, bits):
        statistic = noise.grid * np.rint(values / noise.grid)
        kept.append((real(values, noise, bits) - statistic) / noise.scale)
        return statistic + noise.scale * kept[0]

    monkeypatch.setattr(_mechanisms, "add_noise", left_out)
    assert _audit.scale_is_wrong(_audit.noise_stream(model.fit, *data)[1:])
    monkeypatch.setattr(_mechanisms, "add_noise", reused)
    assert _audit.repeats(*[step.standard for step in _audit.noise_stream(model.fit, *data)]) > 0


# -- output perturbation ---------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_one_gradient_where_two_differ_is_caught(delta, monkeypatch):
    model, claimed = output(delta=delta), EPSILON if delta == 0 else CLAIMED_MU
    # an opposite row with the other label moves as the same row: a flip moves by 2 L / ridge
    pair = label_flip(8, "replace-one")
    assert is_tight(trace(model, *pair, claimed))
    real = Minimizer.sensitivity
    monkeypatch.setattr(Minimizer, "sensitivity", lambda q, _, n: real(q, "zero-out", n))
    assert is_tight(trace(model, *pair, claimed), 2)


@pytest.mark.parametrize("factor", [2.0, 5.0])
def test_an_overstated_ridge_is_caught(factor, monkeypatch):
    model, pair = output(C=0.05), label_flip(8, "zero-out")
    model.set_params(adjacency="zero-out")
    assert is_tight(trace(model, *pair))
    real = Minimizer.sensitivity

    def overstated(self, *args):
        return real(replace(self, ridge=factor * self.ridge), *args)

    monkeypatch.setattr(Minimizer, "sensitivity", overstated)
    assert is_tight(trace(model, *pair), factor)


def test_an_intercept_that_is_not_penalised_is_caught(monkeypatch):
    # rows of zeros: the intercept is all there is, and one row makes both labels occur
    X, y = np.zeros((100, 1)), np.arange(100) % 2
    other = y.copy()
    other[0] = 1
    model = make("logistic", "output", "newton", C=1.0, intercept_scaling=0.01)
    assert trace(model, (X, y), (X, other)) <= 1
    gradient, hessian = RowObjective.gradient, RowObjective.hessian
    both = RowObjective.value_and_gradient

    def free(self, w):
        return self.ridge * w * [0, 1]

    def value_and_gradient(self, w):
        value, slope = both(self, w)
        return value - self.ridge / 2 * w[1] ** 2, slope - free(self, w)

    monkeypatch.setattr(RowObjective, "gradient", lambda J, w: gradient(J, w) - free(J, w))
    monkeypatch.setattr(RowObjective, "value_and_gradient", value_and_gradient)
    monkeypatch.setattr(
        RowObjective, "hessian", lambda J, w: hessian(J, w) - np.diag([0, J.ridge * (1 - 1e-9)])
    )
    assert trace(model, (X, y), (X, other)) > 1.5


def test_a_tolerance_left_out_of_the_sensitivity_is_caught(monkeypatch):
    model, pair = output(adjacency="zero-out"), label_flip(8, "zero-out")
    # a solver that stops as early, and in as bad a place, as a coarse certificate lets it
    tolerance = 0.01
    monkeypatch.setattr(Problem, "tolerance", lambda *_, **__: tolerance)
    solver = functools.partial(off_by, 0.99 * tolerance)
    monkeypatch.setitem(SMOOTH_SOLVERS, "newton", solver)
    assert 0.98 < trace(model, *pair) <= 1
    real = Minimizer.sensitivity

    def forgetful(self, *args):
        facts = real(self, *args)
        return replace(facts, l2=facts.l2 - 2 * self.tolerance)

    monkeypatch.setattr(Minimizer, "sensitivity", forgetful)
    assert trace(model, *pair) > 1.1

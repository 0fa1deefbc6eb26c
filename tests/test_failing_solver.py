# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A solver that fails leaves no trace: no warning, no other ledger, no worse certificate."""

import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skdp._minimize import nonsmooth
from skdp._minimize import smooth as certified
from skdp._minimize.smooth import SMOOTH_SOLVERS
from skdp.privacy import gdp_mu
from skdp.solvers.base import Problem
from tests import _audit
from tests._solvers import problem_of
from tests.linear_model.test_mechanisms import label_flip
from tests.test_claims_erm import make

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(12, 2))
y = np.arange(12) % 2


def raises(objective, start, met):
    raise np.linalg.LinAlgError(f"a message with a data value: {objective.gradient(start)}")


def warns(objective, start, met):
    warnings.warn(f"did not converge: {objective.gradient(start)}", RuntimeWarning, stacklevel=1)
    np.log(np.zeros(3))
    return start


FAILURES = {
    "raises": raises,
    "warns": warns,
    "garbage": lambda J, start, met: start + 1e3 * np.sign(J.gradient(start)),
    "huge": lambda J, start, met: np.full(start.shape, 1e300),
    "nan": lambda J, start, met: np.full(start.shape, np.nan),
    "inf": lambda J, start, met: np.full(start.shape, np.inf),
    "shape": lambda J, start, met: np.zeros((3, 7)),
    "None": lambda J, start, met: None,
    "text": lambda J, start, met: "converged",
    "stays": lambda J, start, met: start,
}


def fit(model):
    with _audit.recorded() as additions:
        fitted = clone(model).fit(X, y)
    return fitted, additions


@pytest.mark.covering
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("name", ["logistic", "hinge"])
def test_a_solver_that_fails_leaves_no_trace(
    name, mechanism, solver, failure, monkeypatch, capfd, recwarn
):
    model = make(name, mechanism, solver, C=0.3, smoothing=0.5) if name == "hinge" else make(
        name, mechanism, solver, C=0.3
    )  # fmt: skip
    expected, exact = fit(model)
    before = len(recwarn)
    # whatever is tried first, second and third
    for known in SMOOTH_SOLVERS:
        monkeypatch.setitem(SMOOTH_SOLVERS, known, FAILURES[failure])
    monkeypatch.setattr(certified, "newton", FAILURES[failure])
    monkeypatch.setattr(certified, "cooled_newton", FAILURES[failure])
    start = time.perf_counter()
    found, additions = fit(model)
    assert time.perf_counter() - start < 5
    assert set(vars(found)) == set(vars(expected))
    assert found.ledger_ == expected.ledger_
    assert found.privacy_spent_ == expected.privacy_spent_
    assert found.n_iter_ == expected.n_iter_
    assert len(recwarn) == 2 * before
    assert capfd.readouterr() == ("", "")
    # both within the certificate of the same minimiser, and the same noise on top
    gap = np.linalg.norm(additions[-1].statistic - exact[-1].statistic)
    release = found.ledger_.releases[-1]
    paid = release.stated_sensitivity
    if mechanism == "output":
        problem = problem_of(model, 12, 2, 2)
        paid = 2 * problem.tolerance(problem.penalty)
    assert gap <= paid + 2 * release.noise.grid
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-3 * abs(expected.coef_).max())


@pytest.mark.parametrize("failure", ["raises", "garbage", "nan"])
@pytest.mark.parametrize("solver", ["newton", "phased", "localized"])
def test_the_claim_is_kept_when_every_fast_solver_fails(solver, failure, monkeypatch):
    for known in SMOOTH_SOLVERS:
        monkeypatch.setitem(SMOOTH_SOLVERS, known, FAILURES[failure])
    monkeypatch.setattr(certified, "newton", FAILURES[failure])
    monkeypatch.setattr(certified, "cooled_newton", FAILURES[failure])
    model = make("hinge", "output", solver, smoothing=0.5, fit_intercept=False)
    pair = label_flip(6, "replace-one")
    measured = _audit.coupled_mu(lambda data: clone(model).fit(*data), *pair)
    assert 0.3 * gdp_mu(2.0, 1e-5) < measured <= gdp_mu(2.0, 1e-5)


@pytest.mark.parametrize("failure", ["raises", "garbage", "nan", "warns"])
def test_a_homotopy_that_fails_leaves_no_trace_either(failure, monkeypatch, capfd):
    # a coarse tolerance: the fall-back is slow
    monkeypatch.setattr(Problem, "tolerance", lambda *_, **__: 0.05)
    model = make("hinge", "output", "newton", C=0.3)
    expected, exact = fit(model)

    def broken(smoothed, w, enough):
        w = FAILURES[failure](smoothed, w, None)
        return w, np.zeros_like(w)

    monkeypatch.setattr(nonsmooth, "_newton", broken)
    found, additions = fit(model)
    assert found.ledger_ == expected.ledger_
    assert set(vars(found)) == set(vars(expected))
    assert capfd.readouterr() == ("", "")
    assert np.linalg.norm(additions[0].statistic - exact[0].statistic) <= 2 * 0.05

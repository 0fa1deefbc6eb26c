# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Composition by Renyi divergences: never below the truth, and often the best bound."""

import dataclasses
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from skdp.privacy import (
    ExponentialMechanism,
    GaussianMechanism,
    KNormMechanism,
    LaplaceMechanism,
    Ledger,
    Sampling,
    Sensitivity,
    gdp_epsilon,
)
from skdp.privacy.kernel.accounting import zcdp_epsilon
from skdp.privacy.kernel.ledger import compose_epsilon, total_mu, total_rho
from skdp.privacy.laws.calibration import zcdp_rho
from skdp.privacy.laws.search import DeclaredTotal
from tests.privacy.test_ledger import entry, ledger_of

DELTA = 1e-6
FACTS = Sensitivity(l1=1.0, l2=1.0, bound=1.0, theorem="a theorem", spread=1.0)


def drawn(epsilon, count=1):
    noise = ExponentialMechanism(epsilon).calibrate(FACTS, 1)
    return dataclasses.replace(entry(LaplaceMechanism(1.0)), noise=noise, count=count)


# -- the conversion ----------------------------------------------------------------------


@pytest.mark.covering
@pytest.mark.parametrize("delta", [1e-300, 1e-9, 1e-6, 1e-2, 0.3])
@pytest.mark.parametrize("rho", [1e-12, 1e-6, 1e-3, 0.02, 1.0, 30.0])
def test_epsilon_is_the_least_over_all_orders(rho, delta):
    orders = 1 + np.logspace(-6, 12, 40_000)
    theirs = rdp_privacy_accountant.compute_epsilon(orders, rho * orders, delta)[0]
    ours = zcdp_epsilon(rho, delta)
    # theirs is the least on a grid, and 0 where a bound on the total variation says so
    assert ours <= theirs * (1 + 1e-9) or theirs == 0
    assert ours == pytest.approx(theirs, rel=1e-4) or theirs == 0 or ours == 0


@given(st.floats(1e-20, 1e4), st.floats(1e-100, 0.999))
def test_epsilon_is_rounded_up(rho, delta):
    mp = mpmath.mp.clone()
    mp.dps = 60
    ours = zcdp_epsilon(rho, delta)
    r, log = mp.mpf(rho), -mp.log(mp.mpf(delta))
    x = mp.mpf(1e-12)
    # where the derivative vanishes
    low, high = mp.mpf("1e-60"), mp.mpf("1e160")
    for _ in range(90):
        x = mp.sqrt(low * high)
        low, high = (low, x) if r * x * x + mp.log1p(x) > log else (x, high)
    exact = r * (1 + x) - mp.log1p(1 / x) + (log - mp.log1p(x)) / x
    assert mp.mpf(ours) >= max(exact, 0)
    assert mp.mpf(ours) <= max(exact, 0) * (1 + mp.mpf("1e-9")) + mp.mpf("1e-11")


@given(st.floats(1e-9, 1e4), st.floats(1e-100, 0.999))
def test_a_calibrated_rho_fits_and_little_more_does(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    # tiny budgets at large deltas are had for nothing
    assert (epsilon > 1e-6) * 1e-12 <= zcdp_epsilon(rho, delta) <= epsilon
    assert zcdp_epsilon(rho * (1 + 1e-6), delta) > epsilon


def test_edges():
    assert zcdp_epsilon(0.0, 0.0) == zcdp_epsilon(0.0, 0.5) == 0.0
    assert zcdp_epsilon(1e-9, 0.0) == zcdp_epsilon(math.inf, 0.5) == math.inf
    assert zcdp_epsilon(math.nan, 0.5) == math.inf
    assert zcdp_rho(1.0, 0.0) == zcdp_rho(1e-200, 1e-6) == 0.0
    assert zcdp_rho(1e300, 1e-6) == pytest.approx(1e9, rel=1e-3)
    for bad in (-1.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="delta must be"):
            zcdp_epsilon(1.0, bad)
    for bad in (0.0, -1.0, math.inf):
        with pytest.raises(ValueError, match="epsilon must be"):
            zcdp_rho(bad, DELTA)


# -- the price of a bounded range --------------------------------------------------------


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=6),
    st.lists(st.floats(0.01, 1), min_size=6, max_size=6),
    st.floats(0.01, 6),
    st.floats(1.01, 60),
)
def test_a_loss_of_bounded_range_has_the_divergence_of_its_price(changes, weights, epsilon, order):
    # a draw of the exponential mechanism, its scores changed within a range of epsilon
    change = np.array(changes) * epsilon
    q = np.array(weights[: len(change)])
    q /= q.sum()
    p = q * np.exp(-change)
    p /= p.sum()
    divergence = special.logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1)
    assert divergence <= order * total_rho(0.0, [(epsilon, 1, True)]) * (1 + 1e-9) + 1e-12
    # and the loss of any purely private release lies within twice its epsilon
    assert np.abs(np.log(p / q)).max() <= epsilon * (1 + 1e-9)
    assert total_rho(0.0, [(epsilon, 1, False)]) == 4 * total_rho(0.0, [(epsilon, 1, True)])


def worst_delta(epsilon, count, total):
    """Return the largest delta at `total` of equal releases with two outputs, exactly.

    The loss of one is t or t - epsilon; the sum of several is binomial.
    """
    worst = 0.0
    for t in epsilon * np.linspace(0.02, 0.98, 97):
        q = math.expm1(epsilon - t) / math.expm1(epsilon)
        heads = np.arange(count + 1)
        loss = count * t - (count - heads) * epsilon
        log_p = heads * (t + math.log(q)) + (count - heads) * math.log1p(-math.exp(t) * q)
        log_p += special.gammaln(count + 1)
        log_p -= special.gammaln(heads + 1) + special.gammaln(count - heads + 1)
        worst = max(worst, float(np.exp(log_p) @ np.maximum(-np.expm1(total - loss), 0)))
    return worst


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 1), (0.5, 3), (0.2, 30), (0.05, 400)])
def test_the_composed_epsilon_is_never_below_the_worst_pair_s(epsilon, count, delta):
    ours = Ledger((drawn(epsilon, count),)).epsilon(delta)
    assert worst_delta(epsilon, count, ours) <= delta
    # as a sum of independent losses of that range, it is not far from it
    if count >= 30:
        assert worst_delta(epsilon, count, 0.75 * ours) > delta
        assert ours < 0.6 * epsilon * count
    assert ours <= epsilon * count


def test_half_the_price_would_be_below_the_truth():
    rho = total_rho(0.0, [(0.05, 400, True)])
    assert worst_delta(0.05, 400, zcdp_epsilon(rho, 1e-5)) <= 1e-5
    assert worst_delta(0.05, 400, zcdp_epsilon(rho / 2, 1e-5)) > 1e-5


@given(
    st.floats(0, 2),
    st.lists(st.tuples(st.floats(1e-3, 3), st.integers(1, 90), st.booleans()), max_size=4),
)
def test_rho_adds_up_rounded_up(mu, pure):
    rho = total_rho(mu, pure)
    exact = mu**2 / 2 + math.fsum(
        n * (e**2 / 8 if draw else e**2 / 2) for e, n, draw in pure
    )  # fmt: skip
    assert rho == pytest.approx(exact, rel=1e-14)
    assert total_rho(0.0, [(1e200, 1, True)]) == math.inf


# -- the ledger ----------------------------------------------------------------------------


def test_the_new_bound_is_one_of_several():
    for pure in ([(0.5, 0.0, 1)], [(0.02, 0.0, 500)], [(0.3, 0.0, 2), (0.1, 0.0, 9)]):
        for mu in (0.0, 0.4):
            old = compose_epsilon(mu, pure, DELTA)
            rho = total_rho(mu, [(e, n, True) for e, _, n in pure])
            new = compose_epsilon(mu, pure, DELTA, rho=rho)
            assert new == min(old, zcdp_epsilon(rho, DELTA))
            # nothing is known at delta 0, or of a release that may break
            assert compose_epsilon(mu, pure, 0.0, rho=rho) == compose_epsilon(mu, pure, 0.0)
    # Gaussian releases alone stay exact
    assert compose_epsilon(0.4, [], DELTA, rho=1e-9) == gdp_epsilon(0.4, DELTA)


@pytest.mark.parametrize("order", [1, -1])
def test_a_ledger_of_many_laws_has_the_sum(order):
    laws = [
        (entry(GaussianMechanism(0.3)), 0.3**2 / 2),
        (entry(LaplaceMechanism(0.2)), 0.2**2 / 2),
        (entry(KNormMechanism(0.1), size=3), 0.1**2 / 2),
        (drawn(0.2, 7), 7 * 0.2**2 / 8),
    ][::order]
    ledger = ledger_of(*[release for release, _ in laws])
    assert ledger.rho == pytest.approx(sum(rho for _, rho in laws), rel=1e-12)
    assert Ledger().rho == 0.0


def test_what_has_no_such_parameter_leaves_the_other_bounds():
    draws = drawn(0.01, 1000)
    noise = entry(GaussianMechanism(0.3)).noise
    said = {field.name: getattr(noise, field.name) for field in dataclasses.fields(noise)}
    total = DeclaredTotal(**{**said, "mu": 0.0, "epsilon": 0.3, "delta": 1e-9})
    broken = dataclasses.replace(draws, noise=total, count=1)
    sampled = dataclasses.replace(noise, sampling=Sampling("poisson", 100, 10))
    batch = dataclasses.replace(draws, noise=sampled, stated_sensitivity=1.0, count=1)
    assert ledger_of(draws).epsilon(DELTA) < 2
    assert ledger_of(draws, broken).rho == ledger_of(draws, batch).rho == math.inf
    assert ledger_of(draws, broken).epsilon(DELTA) == pytest.approx(10.3)


def test_a_row_pays_for_the_parts_that_it_is_in():
    parts = [
        dataclasses.replace(entry(GaussianMechanism(mu)), rows=rows)
        for mu, rows in ((0.3, (0, 5)), (0.4, (5, 9)))
    ]
    ledger = ledger_of(*parts, drawn(0.1, 20))
    assert ledger.rho == pytest.approx(0.4**2 / 2 + 20 * 0.1**2 / 8)
    assert ledger.mu == pytest.approx(total_mu([(0.4, 1)]))


def test_huge_prices_do_not_overflow():
    assert ledger_of(drawn(1e200)).epsilon(DELTA) == 1e200
    assert ledger_of(drawn(1e-200)).epsilon(DELTA) == 0.0
    assert ledger_of(drawn(1e-200)).epsilon(0.0) == 1e-200

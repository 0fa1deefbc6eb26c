# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Accounting of Gaussian and pure privacy, in zCDP too, and its arguments."""

import dataclasses
import math
import sys
import warnings
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar
from unittest import mock

import dp_accounting
import mpmath
import numpy as np
import pytest
import sklearn
from dp_accounting import gaussian_mechanism
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, special
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression, DPLpRegressor, PrivacyBudget, solvers
from skdp.exceptions import BudgetError
from skdp.privacy import (
    Curator,
    ExponentialMechanism,
    GaussianMechanism,
    KNormMechanism,
    LaplaceMechanism,
    LateNoise,
    Ledger,
    LocalMechanism,
    SampledGaussianMechanism,
    Sampling,
    Sensitivity,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
)
from skdp.privacy.kernel import accounting, charging
from skdp.privacy.kernel.accounting import check_delta, check_epsilon, pure_mu, zcdp_epsilon
from skdp.privacy.kernel.ledger import compose_epsilon, sum_up, total_mu, total_rho
from skdp.privacy.kernel.mechanisms import check_fields
from skdp.privacy.laws.calibration import pure_epsilon, zcdp_rho
from skdp.privacy.laws.search import DeclaredTotal
from skdp.solvers.gradient import ClippedGradient
from tests._solvers import LOGISTIC_LOSS
from tests.privacy.test_curator import Door, Total, curator_of
from tests.privacy.test_ledger import entry, ledger_of

# Privacy arithmetic, against 60 digits and against dp_accounting; never rounded inward.


mp = mpmath.mp.clone()
mp.dps = 60


def exact_delta(mu, epsilon):
    """Return the delta of mu-GDP; epsilon may be negative."""
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)

    def cdf(x):
        return mp.erfc(-x / mp.sqrt(2)) / 2

    return cdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * cdf(-mu / 2 - epsilon / mu)


def exact_mixture_delta(mu, lies, epsilon):
    """Return the delta of a Gaussian and randomised responses, by summing over the answers."""
    losses = {mp.mpf(0): mp.mpf(1)}
    for lie in lies:
        honest = 1 / (1 + mp.exp(-mp.mpf(lie)))
        new = {}
        for loss, weight in losses.items():
            for sign, share in ((1, honest), (-1, 1 - honest)):
                new[loss + sign * lie] = new.get(loss + sign * lie, 0) + weight * share
        losses = new
    return sum(weight * exact_delta(mu, epsilon - loss) for loss, weight in losses.items())


# epsilon, then mu at delta 1e-5, 1e-6, 1e-8 to four digits (private-erm.md, section 2)
GOLDEN_MU = [
    (0.1, 0.0325, 0.0275, 0.0218),
    (0.25, 0.0753, 0.0649, 0.0523),
    (0.5, 0.1422, 0.1241, 0.1014),
    (1, 0.2681, 0.2367, 0.1961),
    (2, 0.5016, 0.4483, 0.3769),
    (4, 0.9249, 0.8379, 0.7165),
    (8, 1.666, 1.5315, 1.3362),
]
# (epsilon, delta), then the standard deviation for unit sensitivity (sparse-gradients.md)
GOLDEN_SIGMA = [
    (1, 1e-6, 4.224679),
    (0.1, 1e-5, 30.749566),
    (0.5, 1e-6, 8.057618),
    (1, 1e-5, 3.730632),
    (4, 1e-6, 1.193519),
    (10, 1e-5, 0.499889),
]


@pytest.mark.parametrize("row", GOLDEN_MU, ids=lambda row: f"epsilon={row[0]}")
def test_mu_matches_the_published_table(row):
    epsilon, *mus = row
    for delta, mu in zip((1e-5, 1e-6, 1e-8), mus, strict=True):
        assert gdp_mu(epsilon, delta) == pytest.approx(mu, abs=6e-5 if mu < 1.6 else 6e-4)


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), GOLDEN_SIGMA)
def test_sigma_matches_the_published_values(epsilon, delta, sigma):
    assert 1 / gdp_mu(epsilon, delta) == pytest.approx(sigma, abs=6e-7)


def grid(seed, size, *exponents):
    rng = np.random.default_rng(seed)
    return (10 ** np.stack([rng.uniform(*e, size) for e in exponents], axis=1)).tolist()


def test_delta_is_rounded_up_and_tight():
    checked = 0
    for mu, epsilon in [*grid(0, 1500, (-6, 2), (-6, 3)), *[(m, 0.0) for m in (1e-6, 0.3, 9)]]:
        exact = exact_delta(mu, epsilon)
        if exact > 1e-300:
            checked += 1
            assert exact <= gdp_delta(mu, epsilon) <= min(1, exact * (1 + mp.mpf("1e-6")))
    assert checked > 400


def test_epsilon_is_rounded_up_and_tight():
    checked = 0
    for mu, delta in grid(1, 300, (-3, 1.7), (-15, -1)):
        epsilon = gdp_epsilon(mu, delta)
        assert exact_delta(mu, epsilon) <= delta
        if epsilon > 1e-4:
            checked += 1
            assert exact_delta(mu, epsilon * (1 - 1e-6)) > delta
    assert checked > 100


def test_mu_is_rounded_down_and_tight():
    for epsilon, delta in grid(2, 300, (-4, 2), (-15, -1)):
        mu = gdp_mu(epsilon, delta)
        assert exact_delta(mu, epsilon) <= delta
        assert exact_delta(mu * (1 + 1e-6), epsilon) > delta


def test_a_delta_too_small_for_floats_is_not_rounded_down_to_zero():
    for mu, epsilon in [(0.01, 1.0), (1e-5, 1e-3), (1.0, 100.0), (1e-12, 1e-6)]:
        assert exact_delta(mu, epsilon) <= gdp_delta(mu, epsilon)


@pytest.mark.full
@given(st.floats(0.01, 50), st.floats(1e-12, 0.1))
def test_dp_accounting_agrees_on_one_gaussian(parameter, delta):
    theirs = gaussian_mechanism.get_epsilon_gaussian(1 / parameter, delta)
    assert gdp_epsilon(parameter, delta) == pytest.approx(theirs, rel=1e-6, abs=1e-8)
    sigma = gaussian_mechanism.get_sigma_gaussian(parameter, delta)
    assert 1 / gdp_mu(parameter, delta) == pytest.approx(sigma, rel=1e-6)


@given(st.floats(0.01, 20), st.floats(1e-12, 1e-2))
def test_round_trips_return_just_under_the_budget(epsilon, delta):
    mu = gdp_mu(epsilon, delta)
    assert epsilon * (1 - 1e-6) <= gdp_epsilon(mu, delta) <= epsilon
    assert delta * (1 - 1e-6) <= gdp_delta(mu, epsilon) <= delta


@pytest.mark.full
@given(st.floats(1e-3, 20), st.floats(1e-3, 20), st.floats(1.001, 2))
def test_everything_is_monotone(mu, epsilon, factor):
    assert gdp_delta(mu, epsilon) <= gdp_delta(mu * factor, epsilon)
    assert gdp_delta(mu, epsilon * factor) <= gdp_delta(mu, epsilon)
    assert gdp_epsilon(mu, 1e-6) <= gdp_epsilon(mu * factor, 1e-6)
    assert gdp_epsilon(mu, 1e-6 * factor) <= gdp_epsilon(mu, 1e-6)
    assert gdp_mu(epsilon, 1e-6) < gdp_mu(epsilon * factor, 1e-6)
    assert gdp_mu(epsilon, 1e-6) < gdp_mu(epsilon, 1e-6 * factor)


def test_no_noise_to_pay_for_costs_nothing():
    assert gdp_delta(0.0, 1.0) == gdp_epsilon(0.0, 0.0) == gdp_epsilon(0.0, 1e-6) == 0.0
    assert gdp_epsilon(1.0, 0.0) == math.inf
    assert gdp_epsilon(1e-7, 1e-6) == total_mu([]) == 0.0
    assert total_mu([(0.1, 1)]) == 0.1


@given(st.lists(st.tuples(st.floats(1e-6, 1e3), st.integers(1, 10**6)), min_size=1, max_size=8))
def test_squared_mus_add_up_rounded_up(mus):
    exact = mp.sqrt(sum(count * mp.mpf(mu) ** 2 for mu, count in mus))
    assert exact <= total_mu(mus) <= exact * (1 + mp.mpf("1e-14"))


@pytest.mark.slow
@pytest.mark.parametrize("n_releases", [1, 10, 1000])
def test_the_accountants_agree_on_composed_gaussians(n_releases):
    mu = 1.3 / math.sqrt(n_releases)
    ours = compose_epsilon(total_mu([(mu, n_releases)]), [], 1e-6)
    exact = gaussian_mechanism.get_epsilon_gaussian(1 / (mu * math.sqrt(n_releases)), 1e-6)
    assert ours == pytest.approx(exact, rel=1e-6)
    event = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(1 / mu), n_releases)
    theirs = PLDAccountant(value_discretization_interval=1e-5).compose(event).get_epsilon(1e-6)
    assert ours == pytest.approx(theirs, rel=1e-5)


def priced(pure):
    return [(epsilon, 0.0, count) for epsilon, count in pure]


@given(st.lists(st.tuples(st.floats(1e-3, 10), st.integers(1, 50)), min_size=1, max_size=6))
def test_pure_releases_add_up_rounded_up(pure):
    exact = sum(count * Fraction(epsilon) for epsilon, count in pure)
    for delta in (0.0, 1e-6):
        total = Fraction(compose_epsilon(0.0, priced(pure), delta))
        assert exact <= total <= exact * (1 + Fraction(1, 10**15))


@pytest.mark.parametrize("pure", [[(1.0, 1)], [(0.5, 2)], [(0.25, 2), (0.5, 1)], [(0.125, 8)]])
def test_an_exact_pure_sum_is_not_rounded_up(pure):
    assert compose_epsilon(0.0, priced(pure), 0.0) == 1.0


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("mu", "pure"), [(0.3, [(0.5, 1)]), (1.0, [(0.1, 3)]), (0.05, [(0.2, 2), (0.7, 1)])]
)
def test_a_mixture_is_near_its_exact_value_and_between_its_bounds(mu, pure):
    ours = compose_epsilon(mu, priced(pure), 1e-6)
    lies = [epsilon for epsilon, count in pure for _ in range(count)]
    assert exact_mixture_delta(mu, lies, ours) <= 1e-6
    assert exact_mixture_delta(mu, lies, ours * 0.995) > 1e-6
    assert gdp_epsilon(mu, 1e-6) < ours < gdp_epsilon(mu, 1e-6) + math.fsum(lies)
    assert compose_epsilon(mu, priced(pure), 0.0) == math.inf


def test_a_mixture_costs_no_less_than_dp_accounting_says_of_laplace_noise():
    # Laplace noise is milder than the worst pure release, so theirs is a lower bound
    events = [dp_accounting.GaussianDpEvent(1 / 0.4), *[dp_accounting.LaplaceDpEvent(1 / 0.3)] * 4]
    theirs = PLDAccountant().compose(dp_accounting.ComposedDpEvent(events)).get_epsilon(1e-6)
    assert theirs * (1 - 1e-6) <= compose_epsilon(0.4, priced([(0.3, 4)]), 1e-6) <= theirs * 1.05


@pytest.mark.parametrize("pure", [[(800.0, 1)], [(400.0, 2)]])
def test_a_mixture_with_huge_releases_stays_between_its_bounds(pure):
    plain = math.fsum(epsilon * count for epsilon, count in pure) + gdp_epsilon(1.0, 1e-6)
    total = compose_epsilon(1.0, priced(pure), 1e-6)
    assert gdp_epsilon(1.0, 1e-6) <= total <= plain * (1 + 1e-15)


def test_releases_with_a_delta_add_up():
    releases = [(0.5, 1e-7, 3), (0.2, 0.0, 1)]
    assert compose_epsilon(0.0, releases, 4e-7) == pytest.approx(1.7)
    assert compose_epsilon(0.0, releases, 2e-7) == math.inf


@pytest.mark.parametrize("count", [1, 4])
def test_a_release_with_a_delta_next_to_gaussian_noise(count):
    # the exact curve: broken with probability broken, else as its pure part
    broken, delta = 1e-7, 1e-6
    ours = compose_epsilon(0.5, [(0.3, broken, count)], delta)
    survive = (1 - broken) ** count
    left = (delta - (1 - survive)) / survive
    assert exact_mixture_delta(0.5, [0.3] * count, ours) <= left * (1 + 1e-6)
    assert exact_mixture_delta(0.5, [0.3] * count, ours * 0.995) > left


def test_a_little_gaussian_noise_next_to_one_release_is_summed():
    ours = compose_epsilon(1e-4, [(1.0, 9e-7, 1)], 1e-6)
    assert ours == pytest.approx(1 + gdp_epsilon(1e-4, 1e-7), rel=1e-9)


BAD_NUMBERS = [
    math.nan, math.inf, -math.inf, -1, -1e-9, True, np.True_, "1", np.str_("1"), None, [0.5],
    np.array([0.5, 0.5]), 0.5j, np.complex128(0.5), 10**400, np.longdouble("1e4000"),
]  # fmt: skip


@pytest.mark.parametrize("bad", [*BAD_NUMBERS, 0, 0.0], ids=lambda bad: repr(bad)[:30])
def test_a_bad_epsilon_is_refused_by_name(bad):
    for check in (check_epsilon, lambda epsilon: gdp_mu(epsilon, 1e-6)):
        with pytest.raises(ValueError, match="epsilon must be a finite number greater than 0"):
            check(bad)


@pytest.mark.parametrize("bad", [*BAD_NUMBERS, 1, 1.5], ids=lambda bad: repr(bad)[:30])
def test_a_bad_delta_is_refused_by_name(bad):
    for check in (check_delta, lambda delta: gdp_mu(1.0, delta), lambda d: gdp_epsilon(1.0, d)):
        with pytest.raises(ValueError, match=r"delta must be a number in \[0, 1\)"):
            check(bad)


@pytest.mark.parametrize("kind", [int, np.int32, np.float16, np.float32, np.float64])
def test_numbers_of_any_type_become_floats(kind):
    assert type(check_epsilon(kind(1))) is type(check_delta(kind(0))) is float


def test_gaussian_noise_is_refused_without_delta():
    with pytest.raises(ValueError, match="delta must be greater than 0 for Gaussian noise"):
        gdp_mu(1.0, 0)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-12, 1e-12), (1e-300, 1e-30), (5e-324, 1e-15)])
def test_a_budget_too_small_to_spend_is_refused(epsilon, delta):
    with pytest.raises(ValueError, match=r"epsilon=.*, delta=.* is too small to be spent"):
        gdp_mu(epsilon, delta)
    assert gdp_delta(accounting.SMALLEST_MU, epsilon) > delta


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(-1.0, 1.0), (math.nan, 1.0), (math.inf, 1.0), (1, -1)]
)
def test_delta_refuses_parameters_out_of_range(mu, epsilon):
    with pytest.raises(ValueError, match="mu must be finite and non-negative"):
        gdp_delta(mu, epsilon)


# Composition by Renyi divergences: never below the truth, and often the best bound.


DELTA = 1e-6
FACTS = Sensitivity(l1=1.0, l2=1.0, bound=1.0, theorem="a theorem", spread=1.0)


def drawn(epsilon, count=1):
    noise = ExponentialMechanism(epsilon).calibrate(FACTS, 1)
    return dataclasses.replace(entry(LaplaceMechanism(1.0)), noise=noise, count=count)


# -- the conversion ----------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("delta", [1e-300, 1e-9, 1e-6, 1e-2, 0.3])
@pytest.mark.parametrize("rho", [1e-12, 1e-6, 1e-3, 0.02, 1.0, 30.0])
def test_epsilon_is_the_least_over_all_orders(rho, delta):
    orders = 1 + np.logspace(-6, 12, 40_000)
    theirs = rdp_privacy_accountant.compute_epsilon(orders, rho * orders, delta)[0]
    ours = zcdp_epsilon(rho, delta)
    # theirs is the least on a grid, and 0 where a bound on the total variation says so
    assert ours <= theirs * (1 + 1e-9) or theirs == 0
    assert ours == pytest.approx(theirs, rel=1e-4) or theirs == 0 or ours == 0


@pytest.mark.full
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


@pytest.mark.full
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


@pytest.mark.full
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


# From a pure epsilon to a Gaussian-DP parameter and back: rounded outward at any size.


pure_mp = mpmath.mp.clone()
pure_mp.dps = 60
# around the change of formulas, where scipy's inverse is worst, and the ends of floats
MUS = [5e-324, 1e-310, 1e-300, 1e-12, 1e-3, 1.9999999, 2.0, 37.5, 1583.3, 1e8, 1e150, 1.8e308]


def exact_epsilon(mu):
    """Return the epsilon whose Gaussian-DP parameter is mu."""
    mu = pure_mp.mpf(mu)
    if mu < 1:
        return 2 * pure_mp.atanh(pure_mp.erf(mu / pure_mp.sqrt(8)))
    return pure_mp.log(pure_mp.erfc(-mu / pure_mp.sqrt(8)) / pure_mp.erfc(mu / pure_mp.sqrt(8)))


@given(st.floats(0, sys.float_info.max) | st.floats(0, 100) | st.sampled_from(MUS))
def test_the_inverse_never_exceeds(mu):
    epsilon = pure_epsilon(mu)
    assert 0 <= epsilon <= sys.float_info.max
    assert pure_mu(epsilon) <= mu


@pytest.mark.parametrize("mu", [mu for mu in MUS if 1e-299 < mu < 1e6] + [0.3, 5.0, 254.0])
def test_both_ways_lose_little(mu):
    lost = pure_mp.mpf(pure_epsilon(mu)) / exact_epsilon(mu) - 1
    assert -3e-12 <= lost <= -5e-13
    assert 1 <= pure_mu(float(exact_epsilon(mu))) / mu <= 1 + 1e-12


def test_a_price_that_is_not_nothing_has_a_parameter_that_is_not():
    assert pure_mu(0.0) == pure_epsilon(0.0) == 0.0
    assert pure_mu(5e-324) > 0
    assert pure_epsilon(math.inf) < math.inf


@pytest.mark.parametrize("spent", [0.0, 1e-9, 0.3, 0.49])
def test_what_a_gaussian_budget_has_left_can_be_charged(spent):
    budget = PrivacyBudget(0.5, 1e-6, composition="gaussian")
    if spent:
        budget.charge(spent / 10, adjacency="replace-one")
    left = budget.remaining[0]
    assert pure_mu(left) < np.sqrt(float(budget._limits[0]))
    budget.charge(left, adjacency="replace-one")
    assert budget.remaining[0] < 1e-4 * left


# Queries with numbers that are not finite: refused before anything is charged or read.


NOT_FINITE = (math.nan, math.inf, -math.inf)


@dataclass(frozen=True)
class Part:
    """Something that a query holds."""

    clip: float = 1.0


@dataclass(frozen=True)
class Held(Total):
    """A total with fields of every kind."""

    may_be_infinite: ClassVar[tuple[str, ...]] = ("row_l1",)

    step: float = 0.5
    row_l1: float = math.inf
    point: object = None
    bounds: tuple = (0.0, 1.0)
    part: Part = field(default_factory=Part)
    name: str = "held"


def refused(query, match):
    """Assert that a query is refused, by name, and that nothing happened."""
    door = Door()
    curator = curator_of(door)
    with pytest.raises(ValueError, match=match):
        curator.release(query, GaussianMechanism(0.1))
    with pytest.raises(ValueError, match=match):
        curator.prepay(query, GaussianMechanism(0.1), 2)
    assert (door.opened, query.diary) == (0, [])
    assert not curator.ledger.releases


@pytest.mark.parametrize("value", [*NOT_FINITE, np.float64("nan"), np.float32("inf")])
def test_a_number_that_is_not_finite_is_refused_by_name(value):
    refused(Held(step=value), "query 'held' has a field 'step' that is not finite")
    refused(Held(bounds=(0.0, value)), "query 'held' has a field 'bounds'")
    refused(Held(part=Part(value)), "query 'held' has a field 'clip'")


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("make", [np.asarray, np.atleast_2d, sparse.csr_array, sparse.coo_array])
def test_one_entry_of_an_array_is_enough(value, kind, make):
    entries = np.ones((1, 50) if make is not np.asarray else 50, dtype=kind)
    entries[..., 17] = value
    if make is not np.asarray and kind is np.float16:
        make = np.atleast_2d
    refused(Held(point=make(entries)), "query 'held' has a field 'point'")


def test_infinities_do_not_cancel_and_large_numbers_pass():
    refused(Held(point=np.array([math.inf, -math.inf])), "field 'point'")
    # a sum that overflows is not an entry that is infinite
    largest = np.full(3, np.finfo(np.float64).max)
    for point in (largest, np.zeros(0), np.arange(3), np.array(["a"]), None, "inf", LOGISTIC_LOSS):
        check_fields(Held(point=point))
    assert curator_of(Door()).release(Held(point=largest), GaussianMechanism(0.1)).shape == (1,)


def test_only_what_is_declared_may_be_infinite_and_nothing_is_nan():
    check_fields(Held(row_l1=math.inf))
    refused(Held(row_l1=math.nan), "field 'row_l1'")
    # the declaration is that of its own class
    refused(Held(point=Held(step=math.inf)), "query 'held' has a field 'step'")
    check_fields(Held(point=Held(row_l1=math.inf)))


def test_declarations_name_fields_that_are_unbounded_by_default():
    loaded = [vars(module) for name, module in sys.modules.items() if name.startswith("skdp.")]
    kinds = {kind for names in loaded for kind in names.values() if isinstance(kind, type)}
    declared = {kind for kind in kinds if getattr(kind, "may_be_infinite", ())}
    assert {kind.__name__ for kind in declared} >= {"Minimizer", "TelescopedGradient"}
    for kind in declared:
        fields = kind.__dataclass_fields__
        assert {fields[name].default for name in kind.may_be_infinite} == {math.inf}


def test_the_point_of_every_prepaid_release_is_checked():
    door = Door()
    curator = curator_of(door)
    paid = curator.prepay(Held(), GaussianMechanism(0.1), 2)
    with pytest.raises(ValueError, match="field 'point'"):
        curator.release(Held(point=np.array([math.nan])), paid)
    assert door.opened == 0
    # nothing of the right was used up
    for _ in range(2):
        curator.release(Held(), paid)
    with pytest.raises(ValueError, match="n_skipped"):
        LateNoise(GaussianMechanism(0.1), 2, math.nan)


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("name", ["clip", "coef"])
def test_the_gradient_of_a_fit_is_refused(name, value):
    query = ClippedGradient(np.zeros(2), LOGISTIC_LOSS, 1.0)
    change = {"clip": value} if name == "clip" else {"coef": np.array([0.0, value])}
    with pytest.raises(ValueError, match=f"field '{name}' that is not finite"):
        check_fields(replace(query, **change))


# -- fits, with the validation of scikit-learn switched off --------------------------------------

LOGISTIC, HINGE, LP = DPLogisticRegression, DPHingeSVM, DPLpRegressor
STEPS = ("solver__step_size", "solver__clipping_norm")
PARAMETERS = [
    (LOGISTIC, {"solver": solvers.GD()}, (*STEPS, "coef_bound", "C", "data_norm", "epsilon")),
    (LOGISTIC, {"solver": solvers.SGD()}, (*STEPS, "coef_bound", "solver__batch_size", "delta")),
    (LOGISTIC, {"solver": solvers.Accelerated()}, (*STEPS, "coef_bound", "C")),
    (LOGISTIC, {"mechanism": "objective", "C": 1.0}, ("C", "data_norm", "epsilon", "delta")),
    (LOGISTIC, {"mechanism": "output", "C": 1.0}, ("C", "data_norm", "epsilon", "delta")),
    (HINGE, {"solver": solvers.GD()}, (*STEPS, "coef_bound", "C", "data_norm", "epsilon")),
    (LP, {"solver": solvers.GD()}, (*STEPS, "coef_bound", "l2", "target_scale", "epsilon")),
]
X = np.random.default_rng(0).normal(size=(60, 3))
LABELS = (X[:, 0] > 0).astype(int)


def fit(kind, given, name, value):
    model = clone(kind(max_iter=3, random_state=0, **given)).set_params(**{name: value})
    with sklearn.config_context(skip_parameter_validation=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, LABELS)


@pytest.mark.parametrize(
    ("kind", "given", "name"),
    [(kind, given, name) for kind, given, names in PARAMETERS for name in names],
)
def test_nan_never_trains(kind, given, name):
    with pytest.raises((ValueError, TypeError)):
        fit(kind, given, name, math.nan)


@pytest.mark.parametrize(
    ("kind", "given", "name"),
    [
        (kind, given, name)
        for kind, given, names in PARAMETERS
        for name in names
        # C=inf is no penalty, coef_bound=inf no constraint
        if name not in ("C", "coef_bound")
    ],
)
def test_infinity_never_trains(kind, given, name):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        fit(kind, given, name, math.inf)


def test_it_is_the_gate_that_refuses_a_bound_that_is_not_a_number():
    facts = (LOGISTIC, {"solver": "gd"}, "coef_bound", math.nan)
    with pytest.raises(ValueError, match="field 'coef' that is not finite"):
        fit(*facts)
    with mock.patch.object(charging, "check_fields"):
        assert np.isnan(fit(*facts).coef_).all()


# Numbers of other types at the gate: what is no plain number is refused, or becomes one.


PURE = [LaplaceMechanism, KNormMechanism, ExponentialMechanism, LocalMechanism]
NO_NUMBERS = [True, np.True_, "1", Decimal(1), Fraction(1, 2), None, math.nan, 1j, [1.0]]
FLOATS = [np.float16, np.float32, np.longdouble]


@dataclass(frozen=True)
class OddTotal:
    """A sum whose sensitivity is stated in floats of numpy."""

    kind: type = np.float32
    name: str = "total"
    size: int = 1

    def sensitivity(self, adjacency, n_rows):
        number = self.kind(0.7)
        return Sensitivity(number, number, number, "by clipping", spread=number)

    def evaluate(self, rows):
        return np.array([0.25])


def curator(**changes):
    usual = {"n_rows": 4, "epsilon": 1.0, "delta": 1e-6, "adjacency": "replace-one"}
    usual |= {"random_state": None, "purpose": "test", **changes}
    return Curator(lambda: np.zeros(4), **usual)


@pytest.mark.parametrize("bad", NO_NUMBERS)
@pytest.mark.parametrize("mechanism", [*PURE, GaussianMechanism])
def test_a_price_is_a_plain_number(mechanism, bad):
    with pytest.raises(ValueError, match="must be"):
        mechanism(bad)


@pytest.mark.parametrize("bad", NO_NUMBERS)
def test_a_budget_is_made_of_plain_numbers(bad):
    for name in ("epsilon", "delta", "mu"):
        if (name, bad) != ("mu", None):
            with pytest.raises(ValueError, match=f"{name} must be"):
                curator(**{name: bad})
    with pytest.raises(ValueError, match="epsilon must be"):
        PrivacyBudget(bad)
    with pytest.raises(ValueError, match="epsilon must be"):
        PrivacyBudget(1.0).charge(bad, adjacency="replace-one")


def test_a_bound_on_mu_that_is_no_number_does_not_pass_for_none():
    # nothing exceeds NaN
    for bad in (math.nan, math.inf, 0.0, -1.0):
        with pytest.raises(ValueError, match="mu must be finite and greater than 0"):
            curator(mu=bad)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"unit": "person"}, "unit must be one of"),
        ({"adjacency": ["local"]}, "adjacency must be one of"),
        ({"adjacency": None}, "adjacency must be one of"),
    ],
)
def test_words_are_those_that_are_known(changes, match):
    with pytest.raises(ValueError, match=match):
        curator(**changes)


@pytest.mark.parametrize("bad", [3.7, "4", None, np.float64(4)])
def test_a_number_of_rows_is_whole(bad):
    with pytest.raises(TypeError):
        curator(n_rows=bad)
    with pytest.raises(TypeError):
        Sampling("poisson", bad, 1)


def test_parts_of_the_rows_are_whole_numbers_and_stand_as_such_on_the_ledger():
    ours = curator()
    with pytest.raises(TypeError):
        ours.prepay(OddTotal(), LaplaceMechanism(0.1), 1, rows=(0, 2.5))
    with pytest.raises((TypeError, ValueError)):
        ours.release(OddTotal(), LaplaceMechanism(0.1), rows=())
    assert ours.ledger.releases == ()


def all_numbers(noise):
    values = [getattr(noise, field.name) for field in fields(noise)]
    return [value for value in values if not isinstance(value, str | None)]


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("mechanism", [*PURE, GaussianMechanism])
def test_short_floats_round_neither_noise_nor_price(mechanism, kind):
    price, query = kind(0.7), OddTotal(kind)
    noise = mechanism(price).calibrate(query.sensitivity("replace-one", 4), 1)
    plain = Sensitivity(*[float(price)] * 3, "by clipping", spread=float(price))
    assert noise == mechanism(float(price)).calibrate(plain, 1)
    assert {type(value) for value in all_numbers(noise)} <= {float, int, bool}


@pytest.mark.parametrize("kind", FLOATS)
def test_short_floats_do_not_reach_the_ledger(kind):
    ours = curator(epsilon=kind(1.0), delta=kind(1e-3), mu=kind(0.5))
    ours.release(OddTotal(kind), GaussianMechanism(kind(0.1)))
    ours.release(OddTotal(kind), GaussianMechanism(np.float64(0.1)))
    for release in ours.ledger.releases:
        assert {type(value) for value in all_numbers(release.noise)} <= {float, int, bool}
        assert type(release.stated_sensitivity) is float
    assert type(ours.ledger.epsilon(kind(1e-3))) is float


@pytest.mark.parametrize("law", ["poisson", "without-replacement", "with-replacement"])
def test_the_rate_of_a_batch_has_all_its_digits(law):
    # 7 / 10 in 24 bits is less than 0.7
    short, plain = Sampling(law, np.int32(10), np.float32(7)), Sampling(law, 10, 7)
    assert short == plain
    assert short.rate == plain.rate >= 0.7 * (law == "without-replacement")
    assert type(short.n_rows) is int
    assert type(short.batch_size) is float
    assert type(plain.batch_size) is int
    unit = Sensitivity(math.inf, 1.0, 1.0, "")
    assert SampledGaussianMechanism(0.5, short).calibrate(unit, 1).sampling == plain


@pytest.mark.parametrize("bad", [True, "1", None, Decimal(1), math.nan, 0, 11])
def test_a_batch_has_a_plain_size(bad):
    with pytest.raises(ValueError, match="batch_size must be"):
        Sampling("poisson", 10, bad)


def test_a_sum_of_two_kinds_of_prices_is_rounded_up():
    for price in np.linspace(0.5, 9, 60).tolist():
        # an epsilon of its own from noise, whose digits the other price hides
        alone = compose_epsilon(1e-4, [], 1e-6)
        both = compose_epsilon(1e-4, [(price, 0.0, 1)], 1e-6)
        assert 0 < Fraction(alone) + Fraction(price) <= Fraction(both)


def test_a_sum_may_overflow_to_infinity():
    assert sum_up([(1e308, 2)]) == sum_up([(math.inf, 1)]) == math.inf
    assert compose_epsilon(0.0, [(1e308, 0.0, 2)], 0.0) == math.inf
    ours = curator(epsilon=1e308)
    ours.release(OddTotal(float), LaplaceMechanism(9e307))
    with pytest.raises(BudgetError, match="would exceed the budget"):
        ours.release(OddTotal(float), LaplaceMechanism(1e308))

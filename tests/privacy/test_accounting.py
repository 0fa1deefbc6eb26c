# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Privacy arithmetic, against 60 digits and against dp_accounting; never rounded inward."""

import math
from fractions import Fraction

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from dp_accounting.pld import PLDAccountant
from hypothesis import given
from hypothesis import strategies as st

from skdp.privacy import gdp_delta, gdp_epsilon, gdp_mu
from skdp.privacy.kernel import accounting as _accounting
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.kernel.ledger import compose_epsilon, total_mu

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


@pytest.mark.full
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
    assert gdp_delta(_accounting.SMALLEST_MU, epsilon) > delta


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(-1.0, 1.0), (math.nan, 1.0), (math.inf, 1.0), (1, -1)]
)
def test_delta_refuses_parameters_out_of_range(mu, epsilon):
    with pytest.raises(ValueError, match="mu must be finite and non-negative"):
        gdp_delta(mu, epsilon)

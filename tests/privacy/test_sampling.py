# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Amplification by sampling: curves, pairs, subsets, the sampled Gaussian."""

import dataclasses
import itertools
import math
from collections import Counter
from fractions import Fraction
from unittest import mock

import mpmath
import numpy as np
import pytest
from scipy import integrate, signal, stats

from skdp.privacy import (
    GaussianMechanism,
    SampledGaussianMechanism,
    Sampling,
    Sensitivity,
    gdp_mu,
    sampled_mu,
)
from skdp.privacy.kernel import ledger, samplers
from skdp.privacy.kernel.batches import fixed_subset, poisson_subset, repeated_subset
from skdp.privacy.kernel.ledger import SampledCost, compose_epsilon
from skdp.privacy.kernel.samplers import SeededBits, geometric
from skdp.privacy.laws import calibration, loss_distributions
from skdp.privacy.laws.loss_distributions import batch_copies, batch_loss, batch_profile
from tests.privacy.test_laws import Words

# What sampling is worth: profiles and compositions against direct integration.


KINDS = ("poisson", "without-replacement", "with-replacement")
CASES = [(10, 1), (100, 10), (1000, 1), (50, 25), (7, 6)]
ADJACENCIES = ("replace-one", "zero-out")
quiet = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize(("n_rows", "size"), [*CASES, (10**9, 1), (3, 1), (10**6, 999_999)])
def test_the_rate_is_rounded_up_by_very_little(n_rows, size):
    exact = Fraction(size, n_rows)
    for kind in KINDS:
        rate = Sampling(kind, n_rows, size).rate
        if kind == "with-replacement":
            if size > 50:
                continue
            exact = 1 - (1 - Fraction(1, n_rows)) ** size
        if kind == "poisson":
            # the rate of what is drawn, which is a function of a float
            scale = Sampling(kind, n_rows, size).gap_scale
            assert rate >= -math.expm1(-1 / scale)
            assert rate == pytest.approx(float(exact), rel=1e-14)
        else:
            assert exact <= Fraction(rate) <= exact * Fraction(1 + 1e-14)


def test_copies_are_the_law_of_the_number_of_draws():
    for n_rows, size in [(10, 10), (1000, 30), (3, 3), (10**6, 10**5), (10**9, 10**9), (1, 1)]:
        sampling = Sampling("with-replacement", n_rows, size)
        law = stats.binom(size, 1 / n_rows)
        inside = law.sf(0)
        total = 0.0
        for count, weight in batch_copies(sampling):
            total += weight
            assert weight == pytest.approx(law.pmf(count) / inside, rel=1e-6)
        assert 1 <= total <= 1 + 1e-11


@pytest.mark.parametrize(
    ("kind", "n_rows", "batch_size", "message"),
    [
        ("shuffled", 10, 1, "sampling must be one of"),
        ("poisson", 10, 11, "batch_size must be greater than 0 and at most"),
        ("poisson", 10, 0, "batch_size must be greater than 0"),
        ("poisson", 10, math.nan, "batch_size must be greater than 0"),
        ("poisson", 10, -1, "batch_size must be greater than 0"),
        ("poisson", 10, 1e-12, "batch_size must be at least 1e-12"),
        ("poisson", 10, 5e-324, "batch_size must be at least 1e-12"),
        ("without-replacement", 10, 2.5, "batch_size must be a whole number"),
        ("with-replacement", 10, 0.5, "batch_size must be a whole number"),
    ],
)
def test_bad_parameters_are_refused(kind, n_rows, batch_size, message):
    with pytest.raises(ValueError, match=message):
        Sampling(kind, n_rows, batch_size)


def gaussian_profile(gap, order):
    """Return the integral of (N(gap, 1) - order N(0, 1))_+, by quadrature."""
    edge = math.log(order) / gap + gap / 2
    f = lambda x: stats.norm.pdf(x - gap) - order * stats.norm.pdf(x)  # noqa: E731
    return integrate.quad(f, edge, edge + 40, points=[gap], epsabs=0, epsrel=1e-12, limit=200)[0]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("n_rows", "size"), CASES)
@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("kind", KINDS[1:])
def test_profile_is_the_formula_by_quadrature(kind, mu, n_rows, size):
    sampling = Sampling(kind, n_rows, size)
    for epsilon in (0.0, 0.3):
        order = 1 + math.expm1(epsilon) / sampling.rate
        direct = sampling.rate * sum(
            weight * gaussian_profile(copies * mu, order)
            for copies, weight in batch_copies(sampling)
        )
        back = 1 - math.exp(-epsilon) + math.exp(-epsilon) * direct
        found = batch_profile(sampling, mu, np.array([epsilon, -epsilon]))
        assert found[0] == pytest.approx(direct, rel=1e-8, abs=1e-17)
        assert found[1] == pytest.approx(back if epsilon else direct, rel=1e-8)
        assert found[0] >= direct * (1 - 1e-9) - 1e-18


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("mu", [0.01, 1.0, 30.0])
def test_profile_is_that_of_a_pair(kind, mu):
    # convex in exp(epsilon), falling, at least what any profile is, and small far away
    sampling = Sampling(kind, 100, 20)
    orders = np.linspace(0.02, 30, 4001)
    deltas = batch_profile(sampling, mu, np.log(orders))
    assert (deltas >= 1 - orders - 1e-14).all()
    assert (deltas <= 1).all()
    slopes = np.diff(deltas) / np.diff(orders)
    assert (slopes <= 1e-12).all()
    assert (np.diff(slopes) >= -1e-10).all()
    assert batch_profile(sampling, mu, np.array([800.0, -800.0, 3000.0]))[1] == 1.0


def batch_laws(n_rows, size, with_replacement):
    """Return {multiplicity of row 0: probability}, by exact counting."""
    if with_replacement:
        return {k: stats.binom(size, 1 / n_rows).pmf(k) for k in range(size + 1)}
    return {0: 1 - size / n_rows, 1: size / n_rows}


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize(("n_rows", "size"), [(2, 1), (3, 2), (4, 3), (2, 2)])
def test_the_profile_bounds_what_worst_data_show(kind, n_rows, size):
    # all other rows at -1; row 0 at 1, or at -1 (replace-one), or at 0 (zero-out)
    if kind == "without-replacement" and size == n_rows:
        return
    sampling, sigma = Sampling(kind, n_rows, size), 1.3
    law = batch_laws(n_rows, size, kind == "with-replacement")
    x = np.linspace(-25, 25, 200_001)

    def density(value):
        parts = (p * stats.norm.pdf(x, k * value - (size - k), sigma) for k, p in law.items())
        return sum(parts)

    for other in (-1.0, 0.0):
        one, two = density(1.0), density(other)
        for epsilon in (-1.0, -0.1, 0.0, 0.2, 1.0):
            bound = batch_profile(sampling, 2 / sigma, np.array([epsilon]))[0]
            for p, q in ((one, two), (two, one)):
                gap = np.maximum(p - math.exp(epsilon) * q, 0)
                measured = np.trapezoid(gap, x)
                assert measured <= bound * (1 + 1e-7)
    # and it is attained, but for the copies, where order and data are the worst
    measured = np.trapezoid(np.maximum(density(1.0) - density(-1.0), 0), x)
    if size == 1:
        assert measured == pytest.approx(
            batch_profile(sampling, 2 / sigma, np.zeros(1))[0], rel=1e-6
        )


def pair(q, mu, adjacency, y):
    """Return the log densities of the worst pair that is claimed for Poisson batches."""
    up = np.logaddexp(math.log1p(-q) - y**2 / 2, math.log(q) - (y - mu) ** 2 / 2)
    down = np.logaddexp(math.log1p(-q) - y**2 / 2, math.log(q) - (y + mu) ** 2 / 2)
    return (up, down) if adjacency == "replace-one" else (up, -(y**2) / 2)


def direct_delta(q, mu, adjacency, n_releases, epsilon, cell=1e-3):
    """Return delta of the composed pair in both orders, by convolution of laws of losses."""
    y = np.linspace(-9, 9 + mu, 40_001)
    logs, found = pair(q, mu, adjacency, y), []
    for p, r in (logs, logs[::-1]):
        # the mass of an output is split between two cells, so that its mean loss is kept
        weights, place = np.exp(p) / math.sqrt(2 * math.pi) * (y[1] - y[0]), (p - r) / cell
        low = np.floor(place)
        lowest = int(low.min())
        index, share = (low - lowest).astype(int), place - low
        one = np.bincount(index, weights * (1 - share), index.max() + 2)
        one += np.bincount(index + 1, weights * share, index.max() + 2)
        law = one
        for _ in range(n_releases - 1):
            law = signal.fftconvolve(law, one)
        total = (np.arange(len(law)) + n_releases * lowest) * cell
        keep = total > epsilon
        found.append(float(np.sum(law[keep] * -np.expm1(epsilon - total[keep]))))
    return max(found)


@pytest.mark.sample(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("n_releases", [1, 2, 3])
@pytest.mark.parametrize(("n_rows", "mu"), [(10, 1.0), (2, 0.7)])
def test_composed_poisson_releases_agree_with_direct_integration(adjacency, n_releases, n_rows, mu):
    sampling = Sampling("poisson", n_rows, 1)
    for delta in (1e-2, 1e-4):
        cost = SampledCost(sampling, mu, adjacency, n_releases)
        epsilon = compose_epsilon(0.0, (), delta, (cost,))
        spent = direct_delta(1 / n_rows, mu, adjacency, n_releases, epsilon)
        assert spent <= delta * (1 + 5e-3)
        assert direct_delta(1 / n_rows, mu, adjacency, n_releases, 0.98 * epsilon) > delta


@pytest.mark.parametrize("n_releases", [1, 2, 3])
def test_composed_batches_of_fixed_size_agree_with_direct_integration(n_releases):
    sampling, mu, delta = Sampling("without-replacement", 10, 1), 1.0, 1e-4
    cost = SampledCost(sampling, mu, "zero-out", n_releases)
    epsilon = compose_epsilon(0.0, (), delta, (cost,))
    # the law of the loss of a symmetric pair: second differences of its profile
    h = 2.0**-7
    e = np.arange(-600, 601) * h
    d = batch_profile(sampling, mu, e)
    fall = -np.diff(d)
    mass = np.append(0, fall / -math.expm1(-h)) - np.append(fall / math.expm1(h), 0)
    total, law = e, mass
    for _ in range(n_releases - 1):
        law = np.convolve(law, mass)
        total = np.arange(len(law)) * h + total[0] + e[0]
    keep = total > epsilon
    assert np.sum(law[keep] * -np.expm1(epsilon - total[keep])) == pytest.approx(delta, rel=0.01)


PRICED = [("poisson", 2.0, 1000), ("poisson", 100.0, 50), ("without-replacement", 20, 300)]


@pytest.mark.full
@quiet
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("kind", "batch_size", "count"), PRICED)
def test_a_finer_grid_changes_little(kind, batch_size, count, adjacency, monkeypatch):
    sampling = Sampling(kind, 1000, batch_size)
    cost = SampledCost(sampling, 0.8, adjacency, count)
    usual = loss_distributions._sampled_epsilon.__wrapped__(0.0, (), 1e-6, (cost,))
    real = loss_distributions.batch_loss
    monkeypatch.setattr(loss_distributions, "batch_loss", lambda s, m, a, h: real(s, m, a, h / 2))
    finer = loss_distributions._sampled_epsilon.__wrapped__(0.0, (), 1e-6, (cost,))
    assert finer <= usual * (1 + 1e-6)
    assert finer == pytest.approx(usual, rel=0.01)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("batch_size", "sigma", "zero_out", "replace_one"),
    [(100, 1.0, 1.828, 2.843), (100, 2.0, 0.622, 1.205), (1000, 2.0, 8.28, 17.69)],
)
def test_prices_of_poisson_batches(batch_size, sigma, zero_out, replace_one):
    sampling = Sampling("poisson", 10_000, batch_size)
    for adjacency, known in (("zero-out", zero_out), ("replace-one", replace_one)):
        cost = SampledCost(sampling, 1 / sigma, adjacency, 1000)
        assert compose_epsilon(0.0, (), 1e-5, (cost,)) == pytest.approx(known, rel=2e-3)


@pytest.mark.slow
def test_price_of_a_million_single_rows():
    cost = SampledCost(Sampling("poisson", 1000, 1), 1 / 95.7, "zero-out", 10**6)
    assert compose_epsilon(0.0, (), 1e-6, (cost,)) == pytest.approx(0.0353, rel=5e-3)


def test_long_compositions_of_small_losses_stay_laws():
    # the masses of one release add up to 1 so well that a million of them still do
    for kind in KINDS[1:]:
        loss = batch_loss(Sampling(kind, 1000, 1), 2 / 95.7, "zero-out", 2.0**-20)
        total = loss._pmf_remove._probs.sum() + loss._pmf_remove._infinity_mass
        assert abs(total - 1) < 1e-13


def test_reading_all_rows_costs_what_a_full_release_costs():
    for adjacency in ADJACENCIES:
        for kind in KINDS[:2]:
            cost = SampledCost(Sampling(kind, 9, 9), 0.5, adjacency, 4)
            full = ledger.gdp_epsilon(1.0, 1e-5)
            found = compose_epsilon(0.0, (), 1e-5, (cost,))
            assert full <= found <= 1.01 * full


def test_fixed_sizes_cost_more_than_coins():
    sampling = [Sampling(kind, 1000, 50) for kind in KINDS]
    prices = [
        compose_epsilon(0.0, (), 1e-5, (SampledCost(s, mu, "replace-one", 100),))
        for s, mu in zip(sampling, (0.5, 1.0, 1.0), strict=True)
    ]
    assert prices[0] < prices[1] < prices[2]


# The worst pairs of Poisson batches, against all other contributions (Propositions 30, 31).


def plane_profile(first, second, order, q, half=9.0, n=721):
    """Return H of two Poisson mixtures with shifts in the plane, by a sum over a grid."""
    y = np.linspace(-half, half, n)
    a, b = np.meshgrid(y, y, indexing="ij")
    base = np.exp(-(a**2 + b**2) / 2) * (y[1] - y[0]) ** 2 / (2 * math.pi)
    laws = [
        1 - q + q * np.exp(u[0] * a + u[1] * b - (u[0] ** 2 + u[1] ** 2) / 2)
        for u in (first, second)
    ]
    return float(np.sum(base * np.maximum(laws[0] - order * laws[1], 0)))


@pytest.mark.slow
@pytest.mark.parametrize("q", [0.02, 0.3, 0.8])
@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_no_two_contributions_are_worse_than_opposite_ones(q, mu):
    # Proposition 31: any two shifts span a plane; the worst are of full length and opposite
    rng = np.random.default_rng(0)
    orders = np.concatenate([1 + q * np.expm1(np.array([0.0, 0.05, 0.5, 2.0])), [0.7, 0.3]])
    top, bottom = np.array([mu, 0.0]), np.array([-mu, 0.0])
    for order in orders:
        worst = plane_profile(top, bottom, order, q)
        mirrored = plane_profile(bottom, top, order, q)
        assert worst == pytest.approx(mirrored, rel=1e-9)
        for _ in range(4):
            shifts = rng.normal(size=(2, 2))
            shifts *= mu * rng.choice([1.0, 0.4], (2, 1)) / np.linalg.norm(shifts, axis=1)[:, None]
            assert plane_profile(*shifts, order, q) <= worst * (1 + 1e-6) + 1e-9
        # Proposition 30: one shift, in both directions
        null = np.zeros(2)
        for u in (0.3 * top, 0.9 * bottom):
            assert plane_profile(u, null, order, q) <= plane_profile(top, null, order, q) + 1e-9
            assert plane_profile(null, u, order, q) <= plane_profile(null, top, order, q) + 1e-9


@pytest.mark.full
def test_a_mixture_falls_as_its_shifts_turn_towards_each_other():
    # the step by Slepian and Plackett, for shifts of fixed lengths
    for q, order in ((0.3, 1.1), (0.1, 1.02), (0.6, 2.0)):
        values = [
            plane_profile((1.5, 0.0), (1.2 * math.cos(a), 1.2 * math.sin(a)), order, q)
            for a in np.linspace(0, math.pi, 7)
        ]
        assert (np.diff(values) >= -1e-12).all()


# Noise for releases on random batches: within the budget, close to its edge, and cached.


EPSILON, DELTA = 1.0, 1e-5
SMALL = Sampling("poisson", 1000, 20)


def spent(value, sampling, count, adjacency="replace-one", mu=0.0, priced=()):
    cost = SampledCost(sampling, value, adjacency, count)
    return compose_epsilon(mu, priced, DELTA, (cost,))


def found(sampling=SMALL, count=100, epsilon=EPSILON, **others):
    adjacency = others.pop("adjacency", "replace-one")
    return sampled_mu(
        epsilon, DELTA, sampling=sampling, n_releases=count, adjacency=adjacency, **others
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("size", "count", "epsilon"), [(20, 100, 1.0), (1, 3, 8.0), (1000, 5, 0.3)]
)
def test_the_price_is_within_the_budget_and_near_its_edge(kind, size, count, epsilon, adjacency):
    if (kind, size) == ("with-replacement", 1000):
        size = 700
    sampling = Sampling(kind, 1000, size)
    value = found(sampling, count, epsilon, adjacency=adjacency)
    assert spent(value, sampling, count, adjacency) <= epsilon
    assert spent(value * (1 + 3e-4), sampling, count, adjacency) > epsilon


def test_what_else_is_released_leaves_less():
    plain = found()
    beside = found(mu=0.05)
    both = found(mu=0.05, priced=((0.1, 0.0, 1),))
    assert both < beside < plain
    assert spent(both, SMALL, 100, mu=0.05, priced=((0.1, 0.0, 1),)) <= EPSILON
    assert spent(both * 1.0003, SMALL, 100, mu=0.05, priced=((0.1, 0.0, 1),)) > EPSILON
    # and joint composition is better than a sum
    assert 0.1 + spent(both, SMALL, 100, mu=0.05) > EPSILON


@pytest.mark.full
def test_more_releases_larger_batches_and_smaller_budgets_need_more_noise():
    assert found(count=200) < found(count=100) < found(count=1)
    assert found(Sampling("poisson", 1000, 40)) < found()
    assert found(epsilon=0.5) < found() < found(epsilon=2.0)
    assert found() < found(adjacency="zero-out")


def test_a_second_question_is_answered_without_a_composition():
    first = found(epsilon=0.77)
    with mock.patch.object(calibration, "compose_epsilon", side_effect=AssertionError):
        assert found(epsilon=0.77) == first
        with pytest.raises(AssertionError):
            found(epsilon=0.771)


@pytest.mark.parametrize("ulps", [-9, 9])
def test_another_processor_finds_the_same_price(ulps, monkeypatch):
    epsilons = 0.31, 0.83, 2.9
    here = [found(count=40, epsilon=epsilon) for epsilon in epsilons]
    real = calibration.compose_epsilon
    monkeypatch.setattr(
        calibration, "compose_epsilon", lambda *about: real(*about) * (1 + ulps * 1e-10)
    )
    calibration.sampled_mus.cache_clear()
    assert [found(count=40, epsilon=epsilon) for epsilon in epsilons] == here
    calibration.sampled_mus.cache_clear()


def test_reading_all_rows_is_worth_a_full_release():
    for kind in KINDS[:2]:
        value = found(Sampling(kind, 50, 50), 4)
        full = gdp_mu(EPSILON, DELTA) / 2
        assert 0.99 * full < value <= full


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (0.0, DELTA, "epsilon must be"),
        (math.nan, DELTA, "epsilon must be"),
        (1.0, 0.0, "delta must be greater than 0"),
        (1.0, 1.5, "delta must be"),
        (1e-12, 1e-300, "too small to be spent"),
    ],
)
def test_what_is_no_budget_is_refused(epsilon, delta, message):
    with pytest.raises(ValueError, match=message):
        sampled_mu(epsilon, delta, sampling=SMALL, n_releases=3, adjacency="zero-out")


@pytest.mark.full
def test_a_budget_that_others_have_spent_is_refused():
    with pytest.raises(ValueError, match="nothing of the budget is left"):
        found(mu=gdp_mu(EPSILON, DELTA) * 1.01)
    with pytest.raises(ValueError, match="too small for 100 releases: use fewer steps"):
        found(priced=((1.01 * EPSILON, 0.0, 1),))


def test_noise_is_that_of_a_full_release_with_the_sampling_noted():
    unit = Sensitivity(l1=math.inf, l2=2.0, bound=50.0, theorem="example")
    noise = SampledGaussianMechanism(0.3, SMALL).calibrate(unit, 5)
    plain = GaussianMechanism(0.3).calibrate(unit, 5)
    assert noise.sampling is SMALL
    assert plain.sampling is None
    assert dataclasses.replace(noise, sampling=None) == plain
    assert noise.scale == pytest.approx(2.0 / 0.3, rel=1e-5)


@pytest.mark.parametrize("mu", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_price_is_refused(mu):
    unit = Sensitivity(l1=math.inf, l2=2.0, bound=50.0, theorem="example")
    with pytest.raises(ValueError, match="mu must be finite"):
        SampledGaussianMechanism(mu, SMALL).calibrate(unit, 5)


def test_which_adjacency_the_sensitivity_is_asked_in():
    for asked in ("replace-one", "zero-out"):
        assert SMALL.adjacency(asked) == "zero-out"
        assert Sampling("without-replacement", 9, 2).adjacency(asked) == "replace-one"
        assert Sampling("with-replacement", 9, 9).adjacency(asked) == "replace-one"
        assert Sampling("poisson", 9, 9).adjacency(asked) == asked


def test_a_price_does_not_hang_on_the_last_digits():
    # the ledger's mu comes out of another rounding; it must not cost a second composition
    value = found()
    for scale in np.geomspace(1e-3, 1e3, 50):
        stated = Sensitivity(l1=math.inf, l2=scale, bound=1e6 * scale, theorem="example")
        noise = SampledGaussianMechanism(value, SMALL).calibrate(stated, 7)
        assert spent(noise.mu, SMALL, 100) == spent(value, SMALL, 100) <= EPSILON


# Random batches of rows have exactly the laws that the accountant assumes.


mp = mpmath.mp.clone()
mp.dps = 60
SCALES = (0.05, 0.3, 1.0, 9.5, 1e3, 1e7, 2.0**40)


def exact_geometric(scale, words):
    """Return floor(-scale log u) of the real number u whose binary digits are the words."""
    u = sum((mp.mpf(int(w)) / mp.mpf(2) ** (64 * i) for i, w in enumerate(words, 1)), mp.mpf(0))
    return int(mp.floor(-mp.mpf(scale) * mp.log(u)))


def near_boundary(scale, k, shift):
    """Return three words whose u is `shift` units of the last place from exp(-k / scale)."""
    digits = int(mp.floor(mp.exp(-mp.mpf(k) / mp.mpf(scale)) * mp.mpf(2) ** 192)) + shift
    mask = 2**64 - 1
    return [digits >> 128, digits >> 64 & mask, digits & mask]


@pytest.mark.parametrize("scale", SCALES)
def test_geometric_draws_are_exact_on_crafted_words(scale):
    rest = 0x9E3779B97F4A7C15
    for k in {1, 2, 3, math.ceil(scale), math.ceil(5 * scale)}:
        if k > 20 * scale:
            continue
        for shift in (-2, -1, 1, 2):
            words = near_boundary(scale, k, shift)
            if not 0 < words[0] < 2**64:
                continue
            (drawn,) = geometric(scale, 1, Words(words, rest))
            assert drawn == exact_geometric(scale, [*words, rest])
            assert drawn == (k if shift < 0 else k - 1)


@pytest.mark.sample(3)
@pytest.mark.parametrize("scale", SCALES)
def test_geometric_draws_are_exact_on_any_words(scale):
    rng = np.random.default_rng(0)
    words = rng.integers(1, 2**64, 300, dtype=np.uint64)
    words[:40] >>= np.arange(5, 45, dtype=np.uint64)
    words[40:44] = [2**64 - 1, 2**64 - 2, 2**63, 2**63 - 1]
    drawn = geometric(scale, len(words), Words(words))
    # further words are read for undecided draws only, and decide nothing here
    exact = [exact_geometric(scale, [w, 0x9E3779B97F4A7C15]) for w in words]
    np.testing.assert_array_equal(drawn, exact)


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.5, 300.0])
def test_geometric_draws_have_their_law(scale):
    drawn = geometric(scale, 100_000, SeededBits(3))
    law = stats.geom(-math.expm1(-1 / scale), loc=-1)
    cuts = np.unique(law.ppf(np.linspace(0.1, 0.9, 9)))
    edges = np.concatenate([[-1], cuts, [np.inf]])
    expected = np.diff(np.append(law.cdf(edges[:-1]), 1.0)) * len(drawn)
    found = np.histogram(drawn, edges + 0.5)[0]
    assert stats.chisquare(found, expected).pvalue > 1e-4


def test_few_geometric_draws_need_exact_arithmetic(monkeypatch):
    calls, resolve = [], samplers._resolve
    monkeypatch.setattr(samplers, "_resolve", lambda *a, **k: calls.append(1) or resolve(*a, **k))
    geometric(100.0, 100_000, SeededBits(0))
    assert len(calls) < 5


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2.0**41])
def test_geometric_refuses_a_bad_scale(scale):
    with pytest.raises(ValueError, match="scale must be"):
        geometric(scale, 1, SeededBits(0))


def batches(sampling, size, seed=0):
    bits = SeededBits(seed)
    return [sampling.draw(bits) for _ in range(size)]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("n_rows", "batch_size"), [(40, 3.7), (40, 39.5), (3, 0.5), (500, 20)])
def test_poisson_batches_have_independent_rows(n_rows, batch_size):
    sampling, n_batches = Sampling("poisson", n_rows, batch_size), 4000
    member = np.zeros((n_batches, n_rows))
    for row, batch in zip(member, batches(sampling, n_batches), strict=True):
        assert (np.diff(batch) > 0).all()
        row[batch] = 1
    q = batch_size / n_rows
    counts = member.sum(axis=0)
    assert np.sum((counts - n_batches * q) ** 2) / (n_batches * q * (1 - q)) < stats.chi2.isf(
        1e-4, n_rows
    )
    # the size of a batch is binomial: rows are independent of each other
    spread = member.sum(axis=1).var() / (n_rows * q * (1 - q))
    assert abs(spread - 1) < 5 * math.sqrt(2 / n_batches) + 0.02
    # neighbouring rows, rows far apart, and one row in two releases
    for one, other in (
        (member[:, 0], member[:, 1]),
        (member[:, 0], member[:, -1]),
        (member[:-1, 0], member[1:, 0]),
        (member[:-1, :-1].ravel(), member[1:, 1:].ravel()),
    ):
        assert abs(np.corrcoef(one, other)[0, 1]) < 5 / math.sqrt(len(one))


def test_the_size_of_a_poisson_batch_is_binomial():
    sizes = [len(b) for b in batches(Sampling("poisson", 30, 6), 5000)]
    law = stats.binom(30, 0.2)
    edges = np.array([0, 4, 5, 6, 7, 8, 9, 31])
    expected = np.diff(law.cdf(edges - 1)) * len(sizes)
    assert stats.chisquare(np.histogram(sizes, edges - 0.5)[0], expected).pvalue > 1e-4


def test_a_poisson_subset_ends_at_the_last_row_and_may_be_empty():
    bits = SeededBits(1)
    found = np.concatenate([poisson_subset(5, 1.0, bits) for _ in range(200)])
    assert set(found) == set(range(5))
    assert min(len(poisson_subset(5, 100.0, bits)) for _ in range(20)) == 0
    # a rate next to 1: blocks of gaps go on until the data end
    assert len(poisson_subset(10_000, 0.03, bits)) == 10_000


@pytest.mark.sample(1)
@pytest.mark.parametrize(("n_rows", "size"), [(5, 2), (5, 3), (6, 1), (4, 4), (7, 5), (1, 1)])
def test_fixed_subsets_are_uniform(n_rows, size):
    bits = SeededBits(2)
    drawn = Counter(tuple(fixed_subset(n_rows, size, bits)) for _ in range(4000))
    subsets = list(itertools.combinations(range(n_rows), size))
    assert set(drawn) <= set(subsets)
    if len(subsets) > 1:
        assert stats.chisquare([drawn[s] for s in subsets]).pvalue > 1e-4


@pytest.mark.sample(2)
@pytest.mark.parametrize(("n_rows", "size"), [(3, 2), (2, 2), (1, 1), (5, 1)])
def test_repeated_draws_are_uniform_and_independent(n_rows, size):
    bits = SeededBits(4)
    drawn = Counter(tuple(repeated_subset(n_rows, size, bits)) for _ in range(4000))
    law = Counter(tuple(sorted(p)) for p in itertools.product(range(n_rows), repeat=size))
    assert set(drawn) <= set(law)
    if len(law) > 1:
        expected = np.array([law[key] for key in law]) * 4000 / n_rows**size
        assert stats.chisquare([drawn[key] for key in law], expected).pvalue > 1e-4


def test_large_fixed_subsets_have_their_size():
    for kind, distinct in (("without-replacement", True), ("with-replacement", False)):
        for size in (1, 700, 1999):
            (batch,) = batches(Sampling(kind, 2000, size), 1)
            assert len(batch) == size
            assert (np.diff(batch) >= (1 if distinct else 0)).all()
            assert 0 <= batch[0] <= batch[-1] < 2000


def test_all_rows_are_no_batch():
    for kind in ("poisson", "without-replacement"):
        assert batches(Sampling(kind, 7, 7), 1) == [None]
    assert len(batches(Sampling("with-replacement", 7, 7), 1)[0]) == 7

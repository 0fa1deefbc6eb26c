# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What sampling is worth: profiles and compositions against direct integration."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, signal, stats

from skdp.privacy import Sampling
from skdp.privacy.kernel import ledger as accounting
from skdp.privacy.kernel.ledger import SampledCost, compose_epsilon
from skdp.privacy.laws import loss_distributions
from skdp.privacy.laws.loss_distributions import batch_copies, batch_loss, batch_profile

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


@pytest.mark.covering
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


@pytest.mark.covering
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


@pytest.mark.covering
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


@pytest.mark.covering
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
            full = accounting.gdp_epsilon(1.0, 1e-5)
            found = compose_epsilon(0.0, (), 1e-5, (cost,))
            assert full <= found <= 1.01 * full


def test_fixed_sizes_cost_more_than_coins():
    sampling = [Sampling(kind, 1000, 50) for kind in KINDS]
    prices = [
        compose_epsilon(0.0, (), 1e-5, (SampledCost(s, mu, "replace-one", 100),))
        for s, mu in zip(sampling, (0.5, 1.0, 1.0), strict=True)
    ]
    assert prices[0] < prices[1] < prices[2]

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Draws on a ball have their laws along the axis, away from it, and in length."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammainc, ive

from skdp import _log_concave as _ball
from skdp._log_concave import sample_linear_on_ball, sample_quadratic_on_ball, uniform_on_ball
from tests.sampling._laws import quadrature_cdf, same_law, source

N = 1_000


def axis_of(n_dims, seed=3):
    v = np.random.default_rng(seed).normal(size=n_dims)
    return v / np.linalg.norm(v)


def linear_draws(n_dims, kappa, radius, purpose, n=N):
    v, variates = axis_of(n_dims) * kappa / radius, source(purpose)
    return np.array([sample_linear_on_ball(v, radius, variates) for _ in range(n)])


def linear_law(n_dims, kappa):
    """Return the law of <theta, axis>/radius."""
    return quadrature_cdf(
        lambda t: kappa * t + (n_dims - 1) / 2 * np.log(1 - t * t), -1, 1, n_points=200_001
    )


def linear_length_law(n_dims, kappa):
    """Return the law of |theta|/radius."""
    nu = n_dims / 2 - 1

    def log_density(r):
        return (n_dims - 1 - nu) * np.log(r) + np.log(ive(nu, kappa * r)) + kappa * r

    return quadrature_cdf(log_density, 0, 1)


@pytest.mark.covering
@pytest.mark.parametrize("n_dims", [1, 2, 10])
@pytest.mark.parametrize("kappa", [0.5, 6.0, 300.0])
def test_linear_law(n_dims, kappa):
    theta = linear_draws(n_dims, kappa, 2.5, f"{n_dims} {kappa}") / 2.5
    assert same_law(theta @ axis_of(n_dims), linear_law(n_dims, kappa))
    assert same_law(np.linalg.norm(theta, axis=1), linear_length_law(n_dims, kappa))
    if n_dims > 1:
        away = theta - np.outer(theta @ axis_of(n_dims), axis_of(n_dims))
        sign = away @ axis_of(n_dims, seed=4) > 0
        assert stats.binomtest(int(sign.sum()), N).pvalue > 1e-6


@pytest.mark.parametrize(("n_dims", "kappa"), [(1, 6.0), (2, 6.0), (3, 30.0), (10, 30.0)])
def test_half_of_the_tilt_is_noticed(n_dims, kappa):
    for wrong in (kappa / 2, kappa * 2):
        theta = linear_draws(n_dims, wrong, 1.0, "mutant")
        assert not same_law(theta @ axis_of(n_dims), linear_law(n_dims, kappa))


@pytest.mark.parametrize("n_dims", [1, 2, 7, 10_000])
@pytest.mark.parametrize("kappa", [1e-300, 1e5, 1e8, 1e12, 1e200])
def test_extreme_tilts(n_dims, kappa):
    with np.errstate(all="raise", under="ignore"):
        theta = linear_draws(n_dims, kappa, 1.0, "extreme", n=3)
    assert (np.linalg.norm(theta, axis=1) <= 1 + 1e-15).all()
    if kappa >= 1e12:
        assert (theta @ axis_of(n_dims) > 1 - 1e-7).all()


@pytest.mark.parametrize("n_dims", [1, 4])
def test_the_gap_keeps_its_law_for_large_tilts(n_dims):
    kappa, variates = 1e10, source("gap")
    gaps = np.array([_ball._cosine_gap(kappa, n_dims, variates) for _ in range(N)])
    # kappa times the gap is Gamma((n_dims + 1)/2) up to a factor 1 + O(1/kappa)
    assert same_law(kappa * gaps, stats.gamma((n_dims + 1) / 2).cdf)
    assert not same_law(kappa / 1.3 * gaps, stats.gamma((n_dims + 1) / 2).cdf)


@pytest.mark.parametrize("n_dims", [1, 2, 5])
def test_uniform_law(n_dims):
    variates = source("uniform")
    theta = np.array([uniform_on_ball(n_dims, 3.0, variates) for _ in range(N)])
    zero = np.array([sample_linear_on_ball(np.zeros(n_dims), 3.0, variates) for _ in range(N)])
    for sample in (theta, zero):
        assert same_law((np.linalg.norm(sample, axis=1) / 3) ** n_dims, "uniform")
        assert same_law(sample @ axis_of(n_dims) / 3, linear_law(n_dims, 0.0))


def quadratic_laws(n_dims, distance, precision, radius):
    """Return the laws along the mean and, for n_dims > 1, of the distance from its axis."""
    half = precision / 2

    def along(t):
        left = half * (radius**2 - t * t)
        other = np.log(gammainc((n_dims - 1) / 2, left)) if n_dims > 1 else 0.0
        return -half * (t - distance) ** 2 + other

    def away(r):
        reach, scale = np.sqrt(radius**2 - r * r), np.sqrt(precision)
        inside = stats.norm.cdf(scale * (reach - distance)) - stats.norm.cdf(
            scale * (-reach - distance)
        )
        return (n_dims - 2) * np.log(r) - half * r * r + np.log(inside)

    laws = [quadrature_cdf(along, -radius, radius)]
    return laws + ([quadrature_cdf(away, 0, radius)] if n_dims > 1 else [])


def quadratic_checks(theta, axis, laws):
    t = theta @ axis
    away = np.linalg.norm(theta - np.outer(t, axis), axis=1)
    return [same_law(x, law) for x, law in zip((t, away), laws, strict=False)]


PROPOSALS = {"gaussian": (10**9, 1.0), "linear": (10**9, -1.0), "boxes": (0, 1.0)}


@pytest.mark.covering
@pytest.mark.parametrize("n_dims", [1, 2, 5])
@pytest.mark.parametrize(("distance", "precision"), [(0.0, 1.0), (0.8, 3.0), (1.2, 6.0)])
@pytest.mark.parametrize("proposal", PROPOSALS)
def test_quadratic_law_by_every_proposal(n_dims, distance, precision, proposal, monkeypatch):
    tries, odds = PROPOSALS[proposal]
    # otherwise hardly anything is accepted
    if proposal == "gaussian" and n_dims == 5:
        precision *= 3
    elif proposal == "linear":
        precision /= 3
    monkeypatch.setattr(_ball, "_TRIES", tries)
    monkeypatch.setattr(_ball, "_log_odds_of_gaussian", lambda *_: odds)
    axis, variates, n = axis_of(n_dims), source(proposal), 300
    theta = np.array(
        [sample_quadratic_on_ball(distance * axis, precision, 1.3, variates) for _ in range(n)]
    )
    assert (np.linalg.norm(theta, axis=1) <= 1.3).all()
    assert all(quadratic_checks(theta, axis, quadratic_laws(n_dims, distance, precision, 1.3)))


@pytest.mark.parametrize(
    ("n_dims", "distance", "precision"), [(1, 0.3, 40.0), (3, 0.9, 25.0), (8, 1.0, 60.0)]
)
def test_quadratic_law_and_its_mutants(n_dims, distance, precision):
    axis, variates = axis_of(n_dims), source("quadratic")
    laws = quadratic_laws(n_dims, distance, precision, 1.0)
    for factor in (1.0, 0.5, 2.0):
        theta = np.array(
            [
                sample_quadratic_on_ball(distance * axis, factor * precision, 1.0, variates)
                for _ in range(1800)
            ]
        )
        assert all(quadratic_checks(theta, axis, laws)) == (factor == 1.0)


def test_quadratic_in_many_dimensions_and_far_outside():
    variates = source("hard")
    with np.errstate(all="raise", under="ignore"):
        for n_dims in (1, 3, 1000):
            for distance in (0.0, 0.5, 1.0, 5.0):
                for precision in (0.0, 1e-9, 1.0, 1e3, 1e8):
                    mean = distance * axis_of(n_dims)
                    theta = sample_quadratic_on_ball(mean, precision, 1.0, variates)
                    assert np.linalg.norm(theta) <= 1 + 1e-15
                    if precision == 1e8:
                        nearest = mean / max(1.0, distance)
                        assert np.linalg.norm(theta - nearest) < 0.02


def test_quadratic_picks_the_better_proposal():
    # compared with the exact ratio of the two normalising constants, n_dims = 1
    for distance in (0.01, 0.5, 1.0, 3.0):
        for precision in (0.1, 1.0, 10.0, 100.0):
            v = precision * distance
            linear = np.log(2 * np.sinh(v) / v)
            gaussian = 0.5 * np.log(2 * np.pi / precision) + v * distance / 2
            odds = _ball._log_odds_of_gaussian(distance, precision, 1.0, 1)
            assert abs(odds - (linear - gaussian)) < 0.2

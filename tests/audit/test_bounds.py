# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The bounds behind an audit: exact tails, and how often they fail."""

import numpy as np
import pytest
from scipy import stats

from skdp.audit import audit_outputs, clopper_pearson
from skdp.audit._attack import epsilon_bound, mu_bound
from skdp.privacy import gdp_delta


@pytest.mark.parametrize("total", [1, 2, 17, 500])
@pytest.mark.parametrize("miss", [0.2, 0.025, 1e-6])
def test_clopper_pearson_is_that_of_scipy(total, miss):
    counts = np.unique([0, 1, total // 3, total - 1, total])
    lower, upper = clopper_pearson(counts, total, miss)
    exact = stats.beta.ppf(miss, counts, total - counts + 1)
    np.testing.assert_allclose(lower, np.nan_to_num(exact), rtol=1e-6)
    # the survival function: 1 - miss would lose digits
    exact = stats.beta.isf(miss, counts + 1, total - counts)
    np.testing.assert_allclose(upper, np.where(counts == total, 1.0, exact), rtol=1e-6)
    # and the tails themselves
    np.testing.assert_allclose(stats.binom.sf(counts[1:] - 1, total, lower[1:]), miss, rtol=1e-5)
    np.testing.assert_allclose(stats.binom.cdf(counts[:-1], total, upper[:-1]), miss, rtol=1e-5)


def test_rates_at_the_edge_of_a_claim_bound_that_claim():
    epsilon, fnr = 1.5, 0.2
    fpr = 1 - 1e-3 - np.exp(epsilon) * 0.15
    assert epsilon_bound(fpr, 0.15, 1e-3) == pytest.approx(epsilon)
    assert epsilon_bound(0.15, fpr, 1e-3) == pytest.approx(epsilon)
    assert mu_bound(stats.norm.cdf(-0.3), stats.norm.cdf(-0.7)) == pytest.approx(1.0)
    assert epsilon_bound(1.0, fnr, 0.0) == mu_bound(1.0, fnr) == 0.0


def test_gaussian_rates_never_bound_more_than_gaussian_noise_spends():
    mu, delta = 1.3, 1e-3
    threshold = np.linspace(-4, 5, 401)
    bound = epsilon_bound(stats.norm.sf(threshold), stats.norm.cdf(threshold - mu), delta)
    assert gdp_delta(mu, bound.max()) >= delta * (1 - 1e-6)
    assert np.all(mu_bound(stats.norm.sf(threshold), stats.norm.cdf(threshold - mu)) < mu + 1e-9)


def respond(bits, epsilon, rng):
    """Randomised response."""
    return np.where(rng.random(len(bits)) < 1 / (1 + np.exp(-epsilon)), bits, 1 - bits)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_bound_fails_no_more_often_than_stated(epsilon):
    rng = np.random.default_rng(0)
    worlds = np.zeros(200, dtype=int), np.ones(200, dtype=int)
    bounds = [
        audit_outputs(*[respond(w, epsilon, rng) for w in worlds], confidence=0.9).epsilon_lower
        for _ in range(100)
    ]
    # 10 failures are allowed in the mean; 22 are too many with probability 3e-4
    assert np.sum(np.array(bounds) > epsilon) <= 21
    assert np.mean(bounds) > 0.25 * epsilon


def test_nothing_is_found_where_nothing_is():
    rng = np.random.default_rng(1)
    found = [audit_outputs(*rng.normal(size=(2, 60, 3))).epsilon_lower for _ in range(60)]
    assert np.sum(np.array(found) > 0) <= 10


def test_histograms_find_what_no_direction_shows():
    rng = np.random.default_rng(2)
    anywhere, striped = 4 * rng.random(size=(2, 2000))
    inner = (striped > 1) & (striped < 3)
    striped[inner] = np.floor(striped[inner]) + striped[inner] % 1 / 2
    for outputs in ((anywhere, striped), (striped, anywhere)):
        assert audit_outputs(*outputs).epsilon_lower > 1.5
        assert audit_outputs(*outputs, attack="linear").epsilon_lower < 1
    # the same mean, another spread
    wide, narrow = rng.normal(size=(2, 1000, 5)) * [[[1.0]], [[0.3]]]
    assert audit_outputs(wide, narrow).epsilon_lower > 2


def test_outputs_of_any_kind():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2, 200, 4)) * [1.0, 1e300, 1e-300, 0.0]
    assert audit_outputs(*X).epsilon_lower < 0.5
    X[1, rng.random(200) < 0.5, 1] = np.nan
    assert audit_outputs(*X).epsilon_lower > 1
    X[1, :, 0] = -np.inf
    assert audit_outputs(*X).epsilon_lower > 2.5
    assert audit_outputs(np.zeros(40), np.ones(40, dtype=np.float32)).epsilon_lower > 1
    assert audit_outputs(np.zeros(40), np.zeros(50)).epsilon_lower == 0
    assert audit_outputs(*[np.full(60, 1e308), np.full(60, -1e308)]).epsilon_lower > 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"first": np.zeros(39)}, "first must have the shape"),
        ({"second": np.zeros((50, 2))}, "the same number of outputs"),
        ({"first": np.zeros((50, 2, 2))}, "first must have the shape"),
        ({"delta": 1.0}, r"delta must be in \[0, 1\)"),
        ({"confidence": 1.0}, r"confidence must be in \(0, 1\)"),
        ({"claimed": float("nan")}, "the claimed epsilon must be"),
        ({"attack": "strong"}, "attack must be one of auto, linear"),
    ],
)
def test_bad_input(given, message):
    given = {"first": np.zeros(50), "second": np.zeros(50)} | given
    with pytest.raises(ValueError, match=message):
        audit_outputs(given.pop("first"), given.pop("second"), **given)

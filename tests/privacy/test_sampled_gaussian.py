# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noise for releases on random batches: within the budget, close to its edge, and cached."""

import dataclasses
import math
from unittest import mock

import numpy as np
import pytest

from skdp.privacy import (
    GaussianMechanism,
    SampledGaussianMechanism,
    Sampling,
    Sensitivity,
    gdp_mu,
    sampled_mu,
)
from skdp.privacy.kernel.ledger import SampledCost, compose_epsilon
from skdp.privacy.laws import calibration as _calibration

EPSILON, DELTA = 1.0, 1e-5
KINDS = ("poisson", "without-replacement", "with-replacement")
SMALL = Sampling("poisson", 1000, 20)


def spent(value, sampling, count, adjacency="replace-one", mu=0.0, priced=()):
    cost = SampledCost(sampling, value, adjacency, count)
    return compose_epsilon(mu, priced, DELTA, (cost,))


def found(sampling=SMALL, count=100, epsilon=EPSILON, **others):
    adjacency = others.pop("adjacency", "replace-one")
    return sampled_mu(
        epsilon, DELTA, sampling=sampling, n_releases=count, adjacency=adjacency, **others
    )


@pytest.mark.covering
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


def test_more_releases_larger_batches_and_smaller_budgets_need_more_noise():
    assert found(count=200) < found(count=100) < found(count=1)
    assert found(Sampling("poisson", 1000, 40)) < found()
    assert found(epsilon=0.5) < found() < found(epsilon=2.0)
    assert found() < found(adjacency="zero-out")


def test_a_second_question_is_answered_without_a_composition():
    first = found(epsilon=0.77)
    with mock.patch.object(_calibration, "compose_epsilon", side_effect=AssertionError):
        assert found(epsilon=0.77) == first
        with pytest.raises(AssertionError):
            found(epsilon=0.771)


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

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The curator: draws of the exponential mechanism, and perturbed minimisers."""

import math
from dataclasses import replace

import numpy as np
import pytest

from skdp.exceptions import BudgetError
from skdp.privacy import ExponentialMechanism, ObjectivePerturbation
from tests.privacy.test_curator import DELTA, EPSILON, Door, curator_of
from tests.privacy.test_curator_rows import Draw, Perturbed


@pytest.mark.parametrize("drawn", [0.1, 2.0, -2.0, 7.3, -1e300, math.inf, -math.inf, math.nan])
def test_a_draw_is_snapped_to_the_public_grid_and_clamped(drawn):
    class Drawn(Draw):
        def draw(self, rows, noise, source):
            return np.array([drawn])

    curator = curator_of(Door())
    released = curator.release(Drawn((0.0,)), ExponentialMechanism(0.5))
    (release,) = curator.ledger.releases
    assert release.noise.grid == 2.0 * 2.0**-32
    steps = released / release.noise.grid
    np.testing.assert_array_equal(steps, np.rint(steps))
    expected = 0.0 if math.isnan(drawn) else np.clip(drawn, -2, 2)
    assert abs(released[0] - expected) <= release.noise.grid / 2


def test_what_lies_within_half_a_step_of_the_same_point_is_the_same_release():
    grid = 2.0 * 2.0**-32
    values = [
        curator_of(Door()).release(Draw((0.3 + shift * grid,)), ExponentialMechanism(0.5))[0]
        for shift in (-1e-3, 0.0, 1e-3)
    ]
    assert len(set(values)) == 1


def test_a_draw_is_told_its_temperature_and_listed_with_it():
    query = Draw()
    curator = curator_of(Door())
    curator.release(query, ExponentialMechanism(0.5))
    (release,) = curator.ledger.releases
    assert release.noise.law == "exponential"
    assert release.stated_sensitivity == 3.0
    assert release.noise.scale == pytest.approx(6.0, rel=1e-5)
    assert release.noise.scale >= 6.0
    assert (release.noise.epsilon, release.noise.mu, release.noise.delta) == (0.5, 0.0, 0.0)


def test_a_draw_at_an_infinite_temperature_is_free_and_one_without_a_temperature_is_not():
    sensitivity = Draw().sensitivity("replace-one", 10)
    noise = ExponentialMechanism(5e-324).calibrate(sensitivity, 1)
    assert noise.scale == math.inf
    assert noise.actual(sensitivity.spread, 1).epsilon == 0.0
    assert noise.price.covers(noise.actual(sensitivity.spread, 1))
    for broken in ({"scale": 0.0}, {"scale": math.nan}, {"scale": -math.inf}, {"grid": math.inf}):
        unknown = replace(noise, **broken).actual(sensitivity.spread, 1)
        assert unknown.epsilon == math.inf


def test_floats_are_handed_out_for_idealised_draws_only():
    for idealised, source, numerics in (
        (True, "Variates", "idealised, system entropy"),
        (False, "SystemBits", "exact on the grid, system entropy"),
    ):
        query, curator = Draw(idealised=idealised), curator_of(Door())
        curator.release(query, ExponentialMechanism(0.5))
        assert query.sources[0][0] == source
        assert curator.ledger.releases[0].numerics == numerics


@pytest.mark.parametrize("drawn", [(), (0.1, 0.2)])
def test_a_draw_of_another_size_than_stated_is_refused(drawn):
    with pytest.raises(ValueError, match="does not have the size that it states"):
        curator_of(Door()).release(Draw(drawn), ExponentialMechanism(0.5))


# -- perturbed minimisers ------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_both_parts_of_a_perturbed_minimiser_are_on_the_ledger(delta):
    query, curator = Perturbed(), curator_of(Door(), delta=delta)
    curator.release(query, ObjectivePerturbation(0.5, delta))
    linear, cover = curator.ledger.releases
    assert (linear.query, cover.query) == ("perturbed", "error of the perturbed")
    assert linear.stated_sensitivity == 2.0
    assert (linear.noise.mu, linear.noise.delta > 0) == (0.0, delta > 0)
    assert cover.stated_sensitivity >= 2e-6
    assert 0.495 < curator.ledger.epsilon(delta) <= 0.5


@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_nothing_is_refunded_when_the_minimiser_fails(delta):
    curator = curator_of(Door(), delta=delta)
    with pytest.raises(FloatingPointError, match="midway"):
        curator.release(Perturbed(fails=True), ObjectivePerturbation(EPSILON, delta))
    assert len(curator.ledger.releases) == 2
    assert curator.ledger.epsilon(delta) > 0.97 * EPSILON
    with pytest.raises(BudgetError):
        curator.release(Perturbed(), ObjectivePerturbation(0.1, delta))


def test_the_secret_term_is_fresh_on_the_grid_and_covered():
    query, curator = Perturbed(), curator_of(Door(), epsilon=10.0, delta=1e-3)
    released = [curator.release(query, ObjectivePerturbation(1.0, DELTA)) for _ in range(2)]
    terms = [term for _, term in query.terms]
    assert not np.intersect1d(*np.abs(terms)).size
    linear, cover = (release.noise for release in curator.ledger.releases[:2])
    for term, value in zip(terms, released, strict=True):
        steps = term / linear.grid
        np.testing.assert_array_equal(steps, np.rint(steps))
        # what leaves is never the minimiser itself
        assert (value != -term / 10).all()
        np.testing.assert_allclose(value, -term / 10, atol=40 * cover.scale)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The best attack on PrivUnit, in simulation and where it attains the bound."""

import math

import numpy as np
import pytest

from skdp.inspection import reconstruction_risk
from skdp.local import PrivUnitPrivatizer
from skdp.local.randomisers.privunit import optimal_privunit


def privunit_reports(vectors, epsilon):
    """Return directions of the reports of unit vectors, as the privatizer makes them."""
    privatizer = PrivUnitPrivatizer(epsilon, magnitude="unit")
    reports = privatizer.fit(vectors).transform(vectors)
    return reports / np.linalg.norm(reports, axis=1, keepdims=True)


@pytest.mark.parametrize(("n_dims", "epsilon"), [(2, 1.0), (3, 4.0), (10, 2.0), (50, 5.0)])
def test_the_best_attack_on_privunit_in_simulation(n_dims, epsilon):
    rng, n = np.random.default_rng(n_dims), 20_000
    truth = rng.standard_normal((n, n_dims))
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    channel = optimal_privunit(epsilon, n_dims)
    reports = privunit_reports(truth, epsilon)
    cosine = np.sum(truth * reports, axis=1)
    assert cosine.mean() == pytest.approx(channel.scale, abs=5 * cosine.std() / math.sqrt(n))
    risk = reconstruction_risk(epsilon, n_dims, mechanism="privunit")
    for c, success, odds in zip(risk.cosine, risk.privunit, risk.odds_bound, strict=True):
        error = 5 * math.sqrt(success * (1 - success) / n) + 1e-9
        assert np.mean(cosine >= c) == pytest.approx(success, abs=error)
        assert np.mean(cosine >= c) <= odds + error
    # another guess does worse
    off = reports + 0.5 * rng.standard_normal((n, n_dims)) / math.sqrt(n_dims)
    off /= np.linalg.norm(off, axis=1, keepdims=True)
    assert np.all(
        np.mean(np.sum(truth * off, axis=1) >= np.array(risk.cosine)[:, None], axis=1)
        <= risk.privunit + 5 * np.sqrt(risk.privunit * (1 - risk.privunit) / n) + 1e-9
    )


def test_an_image_has_at_most_the_stated_success():
    rng, n, d, k = np.random.default_rng(0), 20_000, 30, 4
    truth = rng.standard_normal((n, d))
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    reports = privunit_reports(truth, 4.0)
    a, b = truth[:, :k], reports[:, :k]
    cosine = np.sum(a * b, axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    risk = reconstruction_risk(4.0, d, target_dims=k, mechanism="privunit")
    assert np.all(np.mean(cosine >= np.array(risk.cosine)[:, None], axis=1) <= risk.privunit)
    assert risk.prior == pytest.approx(reconstruction_risk(4.0, k).prior)
    assert "image of 4" in str(risk)
    assert "upper bound" in str(risk)


@pytest.mark.parametrize("n_dims", [2, 7, 50])
def test_the_bound_from_odds_is_attained(n_dims):
    """By PrivUnit, for the cosine of its own cap; so it cannot be improved."""
    channel = optimal_privunit(3.0, n_dims)
    risk = reconstruction_risk(3.0, n_dims, cosine=channel.cosine, mechanism="privunit")
    assert risk.privunit[0] == pytest.approx(channel.p, rel=1e-9)
    assert risk.odds_bound[0] == pytest.approx(channel.p, rel=1e-9)

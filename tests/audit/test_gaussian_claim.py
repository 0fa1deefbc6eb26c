# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A ledger of Gaussian noise promises its parameter, and audits hold it to that."""

import numpy as np
import pytest

from skdp import DPMean
from skdp.audit import audit_privacy
from skdp.privacy.kernel import mechanisms

ROWS = np.zeros((4, 1))
NEAR, FAR = ROWS.copy(), ROWS.copy()
NEAR[0], FAR[0] = 1.0, -1.0


def audit(model, n_runs=80):
    return audit_privacy(model, NEAR, neighbour=FAR, n_runs=n_runs, random_state=0)


def test_noise_that_is_a_fourth_of_what_it_should_be_contradicts_the_claim(monkeypatch):
    own = mechanisms.add_noise

    def quieter(values, noise, bits):
        exact = noise.grid * mechanisms.align(values, noise)
        return exact + (own(values, noise, bits) - exact) / 4

    sound = audit(DPMean(epsilon=4.0, data_norm=1.0, mechanism="gaussian"))
    monkeypatch.setattr(mechanisms, "add_noise", quieter)
    broken = audit(DPMean(epsilon=4.0, data_norm=1.0, mechanism="gaussian"))
    assert sound.passed
    assert sound.mu_lower <= sound.mu_claimed == pytest.approx(0.838, abs=1e-3)
    # epsilon alone sees nothing: few runs bound little at a small delta
    assert broken.epsilon_lower <= broken.epsilon_claimed
    assert broken.mu_lower > broken.mu_claimed
    assert broken.passed is False
    assert "CONTRADICTED" in str(broken)
    assert "CONTRADICTED" not in str(sound)


def test_pure_noise_claims_no_parameter():
    result = audit(DPMean(mechanism="laplace", data_norm=1.0), n_runs=40)
    assert result.mu_claimed is None
    assert "mu" not in str(result).splitlines()[0]

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Longer versions of the proofs by test; run with ``pytest -m slow``."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from skdp import DPLogisticRegression
from skdp.privacy.kernel.samplers import SeededBits, rounded_gaussian, rounded_laplace
from tests.test_claims_erm import audited_epsilon as black_box_epsilon
from tests.test_claims_erm import every_world
from tests.test_claims_sgd import audited_epsilon, tiny_worlds
from tests.test_common import training_check_data

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
@tiny_worlds
def test_whole_fits_at_everyday_budgets(model, labels, epsilon):
    assert epsilon / 3 < audited_epsilon(model, labels, epsilon, 20_000) < epsilon


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
@every_world
def test_whole_fits_of_every_mechanism_at_everyday_budgets(name, epsilon):
    found = black_box_epsilon(name, epsilon, 8000)
    assert epsilon / 4 < found < epsilon


@pytest.mark.parametrize("n_classes", [2, 3])
def test_default_passes_the_training_check_for_almost_every_of_1000_seeds(n_classes):
    X, y = training_check_data(n_classes)
    model = DPLogisticRegression(data_norm=1.0)
    passed = [model.set_params(random_state=s).fit(X, y).score(X, y) > 0.83 for s in range(1000)]
    assert np.mean(passed) >= 0.99


@pytest.mark.parametrize(
    ("sampler", "law"), [(rounded_gaussian, ndtr), (rounded_laplace, stats.laplace.cdf)]
)
def test_fifty_million_draws_follow_the_law(sampler, law):
    scale, size, cells = 2.0**24, 10**7, 2000
    edges = np.linspace(-6, 6, cells + 1)
    counts, probabilities = np.zeros(cells), np.diff(law(edges))
    bits = SeededBits(0)
    for _ in range(5):
        counts += np.histogram(sampler(scale, size, bits) / scale, edges)[0]
    expected = 5 * size * probabilities
    keep = expected > 10
    statistic = np.sum((counts - expected)[keep] ** 2 / expected[keep])
    # five standard deviations of a chi-square variable
    assert statistic < keep.sum() + 5 * math.sqrt(2 * keep.sum())

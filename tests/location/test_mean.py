# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What DPMean releases."""

import numpy as np
import pytest
from scipy import sparse

from skdp import DPMean

CONFIGURATIONS = [
    {"mechanism": mechanism, "adjacency": adjacency}
    for mechanism in ("gaussian", "laplace")
    for adjacency in ("replace-one", "zero-out")
]


@pytest.mark.parametrize("parameters", CONFIGURATIONS)
def test_with_a_huge_budget_it_is_the_mean_of_the_clipped_rows(parameters):
    X = np.random.default_rng(0).normal(size=(500, 4))
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    ball = DPMean(1e6, data_norm=1.5, **parameters).fit(X)
    np.testing.assert_allclose(ball.location_, (X / np.maximum(norms / 1.5, 1)).mean(0), atol=1e-4)
    bounds = ([-1, -2, -3, 0], [1, 0.5, 3, 4])
    box = DPMean(1e6, bounds=bounds, **parameters).fit(X)
    np.testing.assert_allclose(box.location_, np.clip(X, *bounds).mean(0), atol=1e-4)


@pytest.mark.full
@pytest.mark.parametrize("parameters", CONFIGURATIONS)
def test_noise_has_the_size_that_theory_gives(parameters):
    # one feature: l1 and l2 agree. Sum sensitivity 1 or 2, mean = sum / n.
    X = np.zeros((100, 1))
    draws = np.ravel([DPMean(0.5, 1e-6, **parameters).fit(X).location_ for _ in range(2000)])
    reach = 2.0 if parameters["adjacency"] == "replace-one" else 1.0
    if parameters["mechanism"] == "gaussian":
        expected = 8.057618 * reach / 100
    else:
        expected = np.sqrt(2) * reach / 0.5 / 100
    # 2000 draws: the standard error of a standard deviation is below 4 % for both laws
    assert abs(draws.std() / expected - 1) < 0.16
    assert abs(draws.mean()) < 5 * expected / np.sqrt(2000)


def test_pure_noise_spends_no_delta():
    mean = DPMean(0.7, 1e-6, mechanism="laplace").fit([[0.1], [0.2]])
    assert mean.privacy_spent_ == (0.7, 0.0)


def test_noise_is_proportional_to_every_feature_s_bounds():
    X = np.zeros((10, 2))
    model = DPMean(bounds=([-1, -1000], [1, 1000]))
    draws = np.array([model.fit(X).location_ for _ in range(300)])
    assert 700 < draws[:, 1].std() / draws[:, 0].std() < 1400


def test_sparse_rows_in_a_ball():
    X = np.random.default_rng(0).uniform(size=(300, 5))
    X[X < 0.6] = 0
    dense = DPMean(random_state=0).fit(X)
    rows = DPMean(random_state=0).fit(sparse.csc_array(X))
    np.testing.assert_allclose(rows.location_, dense.location_, atol=1e-5)
    assert rows.score(sparse.csr_array(X)) == pytest.approx(dense.score(X), rel=1e-4)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        DPMean(bounds=(0, 1)).fit(sparse.csr_array(X))


def test_predict_repeats_the_location_and_score_is_minus_the_squared_distance():
    X = np.random.default_rng(0).normal(size=(20, 3))
    mean = DPMean(data_norm=5.0).fit(X)
    np.testing.assert_array_equal(mean.predict(X), np.tile(mean.location_, (20, 1)))
    expected = -np.mean(np.sum((X - mean.location_) ** 2, axis=1))
    assert mean.score(X) == pytest.approx(expected)

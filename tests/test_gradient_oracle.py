# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What is made of noisy means of sparse gradients: bounded, and right where it is clear."""

import math

import numpy as np
import pytest

from skdp._recovery.measurements import measurement_matrix
from skdp.papers.bias_reduced import SketchOracle, make_oracle


@pytest.mark.covering
@pytest.mark.parametrize("name", ["soft-threshold", "projection", "sketch"])
@pytest.mark.parametrize("shape", [(40,), (3, 40), (1,), (2, 1)])
@pytest.mark.parametrize("intercept", [True, False])
def test_oracles_are_bounded_and_do_what_they_are_told(intercept, shape, name):
    oracle = make_oracle(name, radius=0.7, shape=shape, intercept=intercept, sparsity=3, signal=1e3)
    size = math.prod(shape) if oracle.measurement is None else (
        math.prod(shape[:-1]) * oracle.measurement.shape[0]
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for scale in (1e-9, 1.0, 1e9):
        mean = scale * rng.normal(size=size)
        found = oracle(mean.copy(), scale)
        assert found.shape == (math.prod(shape),)
        assert np.linalg.norm(found) <= 0.7 * (1 + 1e-12)
    assert not oracle(np.zeros(size), 1.0).any()


def test_a_clear_sparse_gradient_is_found_by_all_oracles():
    truth = np.zeros(60)
    truth[[3, 17, 40]] = [0.3, -0.4, 0.2]
    truth[-1] = 0.1
    rng = np.random.default_rng(0)
    for name in ("soft-threshold", "projection", "sketch"):
        oracle = make_oracle(name, radius=1.0, shape=(60,), intercept=True, sparsity=3, signal=1e9)
        mean = truth if oracle.measurement is None else oracle.measurement.forward(truth)
        found = oracle(mean + 1e-3 * rng.normal(size=len(mean)), 1e-3)
        # least squares with a square matrix lengthen the noise
        assert np.linalg.norm(found - truth) < (0.1 if name == "sketch" else 0.02)


def test_the_intercept_is_not_shrunk():
    oracle = make_oracle(
        "soft-threshold", radius=9.0, shape=(2, 5), intercept=True, sparsity=None, signal=1.0
    )
    mean = np.full(10, 0.5)
    found = oracle(mean, 1.0).reshape(2, 5)
    np.testing.assert_array_equal(found[:, -1], 0.5)
    assert not found[:, :-1].any()
    np.testing.assert_array_equal(mean, 0.5)


@pytest.mark.parametrize("name", ["projection", "sketch"])
def test_oracles_that_rest_on_sparsity_ask_for_it(name):
    with pytest.raises(ValueError, match="sparsity must be a number for oracle"):
        make_oracle(name, radius=1.0, shape=(5,), intercept=True, sparsity=None, signal=1.0)


def test_measurements_of_a_gradient_are_seldom_clipped():
    rng, oracle = (
        np.random.default_rng(0),
        SketchOracle(1.0, 5, measurement_matrix("gaussian", 30, 500)),
    )
    lengths = []
    for _ in range(300):
        g = np.zeros(500)
        g[rng.choice(500, 5, replace=False)] = rng.normal(size=5)
        lengths.append(np.linalg.norm(oracle.measurement.forward(g / np.linalg.norm(g))))
    assert np.mean(np.array(lengths) > oracle.longest) < 0.02
    one = SketchOracle(1.0, 1, measurement_matrix("gaussian", 30, 500))
    assert one.longest == 1.0

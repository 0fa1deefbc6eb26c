# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The worst pairs of Poisson batches, against all other contributions (Propositions 30, 31)."""

import math

import numpy as np
import pytest


def plane_profile(first, second, order, q, half=9.0, n=721):
    """Return H of two Poisson mixtures with shifts in the plane, by a sum over a grid."""
    y = np.linspace(-half, half, n)
    a, b = np.meshgrid(y, y, indexing="ij")
    base = np.exp(-(a**2 + b**2) / 2) * (y[1] - y[0]) ** 2 / (2 * math.pi)
    laws = [
        1 - q + q * np.exp(u[0] * a + u[1] * b - (u[0] ** 2 + u[1] ** 2) / 2)
        for u in (first, second)
    ]
    return float(np.sum(base * np.maximum(laws[0] - order * laws[1], 0)))


@pytest.mark.sample(1)
@pytest.mark.parametrize("q", [0.02, 0.3, 0.8])
@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_no_two_contributions_are_worse_than_opposite_ones(q, mu):
    # Proposition 31: any two shifts span a plane; the worst are of full length and opposite
    rng = np.random.default_rng(0)
    orders = np.concatenate([1 + q * np.expm1(np.array([0.0, 0.05, 0.5, 2.0])), [0.7, 0.3]])
    top, bottom = np.array([mu, 0.0]), np.array([-mu, 0.0])
    for order in orders:
        worst = plane_profile(top, bottom, order, q)
        mirrored = plane_profile(bottom, top, order, q)
        assert worst == pytest.approx(mirrored, rel=1e-9)
        for _ in range(4):
            shifts = rng.normal(size=(2, 2))
            shifts *= mu * rng.choice([1.0, 0.4], (2, 1)) / np.linalg.norm(shifts, axis=1)[:, None]
            assert plane_profile(*shifts, order, q) <= worst * (1 + 1e-6) + 1e-9
        # Proposition 30: one shift, in both directions
        null = np.zeros(2)
        for u in (0.3 * top, 0.9 * bottom):
            assert plane_profile(u, null, order, q) <= plane_profile(top, null, order, q) + 1e-9
            assert plane_profile(null, u, order, q) <= plane_profile(null, top, order, q) + 1e-9


def test_a_mixture_falls_as_its_shifts_turn_towards_each_other():
    # the step by Slepian and Plackett, for shifts of fixed lengths
    for q, order in ((0.3, 1.1), (0.1, 1.02), (0.6, 2.0)):
        values = [
            plane_profile((1.5, 0.0), (1.2 * math.cos(a), 1.2 * math.sin(a)), order, q)
            for a in np.linspace(0, math.pi, 7)
        ]
        assert (np.diff(values) >= -1e-12).all()

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bias-reduced gradients: the sum over levels telescopes, to the last digit."""

import itertools

import numpy as np
import pytest

from skdp._losses.classification import LogisticLoss
from skdp.papers import bias_reduced as query_module
from skdp.papers.bias_reduced import Telescope, TelescopedGradient, make_oracle
from tests._neighbours import mixed_rows, rows_in_ball

COEF = np.array([0.7, -1.1, 0.4, 0.2, -0.3, 0.5])


def admitted(rows, intercept=0.3, loss=None):
    loss = loss or LogisticLoss()
    return rows_in_ball(rows.X, loss.encode(rows.codes), rows.null, 1.0, intercept)


def crooked(mean, size):
    """Return something bounded that is far from linear in a mean."""
    return np.sign(mean) * np.maximum(np.abs(mean) - 0.02, 0.0) ** 1.5 + np.tanh(mean**2)


def subsets(n, rate):
    """Yield the batches of n rows and their probabilities."""
    for inside in itertools.product([False, True], repeat=n):
        k = sum(inside)
        yield np.flatnonzero(inside), rate**k * (1 - rate) ** (n - k)


# -- the sum over levels -----------------------------------------------------------


@pytest.mark.parametrize("n_levels", [0, 1, 2, 3])
def test_the_expectation_over_everything_is_the_oracle_on_all_rows(n_levels, monkeypatch):
    n, rows = 4, mixed_rows(n_rows=4)
    private, telescope, heads = admitted(rows), Telescope(4, n_levels), {}
    monkeypatch.setattr(
        query_module, "public_coins", lambda step, positions: np.array(heads[step])[positions]
    )
    query = TelescopedGradient(COEF, LogisticLoss(), 0.4, None)

    def evaluated(query, positions, rate):
        batch = private if rate == 1 else private.batch(positions, rate)
        return query.evaluate(batch)

    smallest = [
        (evaluated(query, batch, telescope.rate(0)), probability)
        for batch, probability in subsets(n, telescope.rate(0))
        if probability
    ]
    sides = list(itertools.product([False, True], repeat=n))
    heads.update(enumerate(sides))
    total = total_probability = 0.0
    for level, chance in enumerate(telescope.probabilities if n_levels else [1.0]):
        triples = [(None, 1.0)]
        if n_levels:
            rate = telescope.rate(level + 1)
            triples = [
                (
                    evaluated(TelescopedGradient(COEF, LogisticLoss(), 0.4, step), batch, rate)
                    .reshape(3, -1),
                    probability / len(sides),
                )
                for batch, probability in subsets(n, rate)
                for step in heads
                if probability
            ]  # fmt: skip
        for (base, p), (triple, q) in itertools.product(smallest, triples):
            total = total + chance * p * q * telescope.estimate(level, base, triple, crooked)
            total_probability += chance * p * q
    assert total_probability == pytest.approx(1)
    expected = crooked(query.evaluate(private) / n, n_levels)
    assert np.linalg.norm(expected) > 0.02
    np.testing.assert_allclose(total, expected, atol=1e-12)
    if n_levels:
        # what small batches alone would have given
        naive = sum(p * crooked(base / telescope.batch_size(0), 0) for base, p in smallest)
        assert np.linalg.norm(naive - expected) > 0.01


def test_probabilities_halve_from_level_to_level():
    for n_levels in (1, 2, 8):
        p = Telescope(100, n_levels).probabilities
        assert p.sum() == pytest.approx(1)
        np.testing.assert_allclose(p[1:] / p[:-1], 0.5)
        # the normalising constant of the truncated geometric law
        assert p[0] == pytest.approx(1 / (2 * (1 - 2.0**-n_levels)))


def test_batches_double_up_to_all_rows():
    telescope = Telescope(1000, 5)
    rates = [telescope.rate(size) for size in range(6)]
    assert rates == [1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0]
    assert telescope.batch_size(5) == 1000


@pytest.mark.parametrize("n_steps", [1, 2, 7, 64, 255])
def test_every_level_occurs_as_often_as_expected(n_steps):
    for n_levels in (1, 3, 6):
        telescope = Telescope(1000, n_levels)
        for run in range(5):
            levels = telescope.levels(n_steps, run)
            counts = np.bincount(levels, minlength=n_levels)
            assert len(levels) == n_steps
            assert (np.abs(counts - n_steps * telescope.probabilities) < 1).all()
            assert telescope.levels(n_steps, run) == levels


def test_every_step_has_the_law_of_levels():
    telescope, runs = Telescope(1000, 4), 4000
    drawn = np.array([telescope.levels(13, run) for run in range(runs)])
    for step in (0, 1, 5, 12):
        counts = np.bincount(drawn[:, step], minlength=4)
        expected = runs * telescope.probabilities
        assert np.sum((counts - expected) ** 2 / expected) < 25


def test_levels_are_spread_over_the_steps():
    levels = np.array(Telescope(1000, 4).levels(240))
    for part in np.split(levels, 8):
        assert np.abs(np.mean(part == 0) - 8 / 15) < 0.1
        assert (part == 3).sum() in (1, 2, 3)


# -- the second moment -------------------------------------------------------------


@pytest.mark.full
def test_the_second_moment_grows_with_the_number_of_levels_only():
    # not with the number of rows, though the rarest level is multiplied by its inverse chance
    rng, d, sigma, found = np.random.default_rng(0), 400, 40.0, {}
    for n_levels in (2, 4, 6):
        telescope = Telescope(64 * 2**n_levels, n_levels)
        truth = np.zeros(d)
        truth[:8] = 0.3

        oracle = make_oracle(
            "soft-threshold", radius=1.0, shape=(d,), intercept=False, sparsity=None, signal=1.0
        )

        def clean(mean, size, telescope=telescope, oracle=oracle):
            return oracle(mean, sigma / telescope.batch_size(size))

        def noisy(size, telescope=telescope, truth=truth):
            return telescope.batch_size(size) * truth + sigma * rng.normal(size=d)

        squares = []
        for level in telescope.levels(600):
            triple = [noisy(level + 1), noisy(level), noisy(level)]
            squares.append(np.sum(telescope.estimate(level, noisy(0), triple, clean) ** 2))
        found[n_levels] = np.mean(squares) / n_levels
    assert max(found.values()) < 3 * min(found.values())
    assert max(found.values()) < 3

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noise that comes late: the moments, the coupled recursion, and the law of the average."""

import numpy as np
import pytest
from scipy import stats

from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.kernel.samplers import SeededBits, SystemBits
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.privacy.laws.late_noise import LazySums, _moments
from tests._audit_lazy import law_is_wrong, noise_weights

UNIT = Sensitivity(l1=np.inf, l2=1.0, bound=100.0, theorem="test")
NOISE = GaussianMechanism(0.5).calibrate(UNIT, size=8)
DECAYS = (1.0, 1 - 1e-9, 0.999, 0.5, 1e-3, 1e-150)
every_decay = pytest.mark.parametrize("decay", DECAYS)


def pattern(n_columns, n_steps, n_free, seed):
    """Return for every step which columns are touched: often, seldom, and never."""
    rng = np.random.default_rng(seed)
    rates = np.array([1.0, 0.7, 0.3, 0.1, 0.02, 0.0])[np.arange(n_columns) % 6]
    touched = rng.uniform(size=(n_steps, n_columns)) < rates
    touched[:, n_columns - n_free :] = True
    return [np.flatnonzero(row) for row in touched]


# -- moments -----------------------------------------------------------------------


@every_decay
def test_moments_are_those_of_the_recursion(decay):
    n_steps = 40
    power, reach, spread, slope, rest = _moments(decay, n_steps)
    assert not np.any([power[0], reach[0], spread[0], slope[0], rest[0], rest[1]])
    for k in range(1, n_steps + 1):
        # what every one of k noises does to the value, and to the sum of values
        value, total, kept, added = np.zeros(k), np.zeros(k), 1.0, 0.0
        for i in range(k):
            value[i] += 1.0
            value, kept = decay * value, decay * kept
            total, added = total + value, added + kept
        assert power[k] == pytest.approx(kept, rel=1e-12)
        assert reach[k] == pytest.approx(added, rel=1e-12)
        assert spread[k] == pytest.approx(np.linalg.norm(value), rel=1e-12)
        assert slope[k] * spread[k] ** 2 == pytest.approx(value @ total, rel=1e-12)
        left = total - slope[k] * value
        assert rest[k] == pytest.approx(np.linalg.norm(left), rel=1e-9, abs=1e-9 * decay)


def test_moments_without_decay_are_the_printed_ones():
    k = np.arange(1, 2001)
    _, _, spread, slope, rest = _moments(1.0, 2000)[:, 1:]
    np.testing.assert_allclose(spread**2, k)
    np.testing.assert_allclose(slope, (k + 1) / 2)
    np.testing.assert_allclose(rest**2, k * (k**2 - 1.0) / 12, rtol=1e-10)


# -- the recursion, with noise that is known -----------------------------------------


class Coupled(LazySums):
    """Lazy sums whose draws are what a known sequence of noises makes of them."""

    def known(self, sequence):
        self.sequence, self.queue = sequence, []
        return self

    def _advance(self, columns, step):
        behind = step - self._since[columns]
        first, second = [], []
        for j, k in zip(columns[behind > 0], behind[behind > 0], strict=True):
            free = j >= self._n_decaying
            decay = 1.0 if free else self.decay
            _, _, spread, slope, rest = self._tables[:, k + free * (self._steps + 1)]
            value = total = 0.0
            for t in range(step - k, step):
                value = decay * (value + self.sequence[t, j])
                total = total + value
            first.append(value / spread)
            if k > 1 and self._total is not None:
                second.append((total - slope * value) / rest)
        self.queue = [np.array(first), np.array(second)]
        super()._advance(columns, step)

    def _draws(self, n_columns):
        drawn = self.queue.pop(0)
        assert len(drawn) == n_columns
        return drawn.reshape(n_columns, self._values.shape[1])


@pytest.mark.covering
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("n_free", [0, 1])
@pytest.mark.parametrize("decay", [1.0, 0.999, 0.7])
@pytest.mark.parametrize("n_skipped", [0, 9, 29], ids=["average", "suffix", "last"])
def test_late_noise_gives_the_iterates_of_the_recursion(n_skipped, decay, n_free, n_outputs):
    n_columns, n_steps, rng = 18, 30, np.random.default_rng(1)
    sequence = rng.normal(size=(n_steps, n_columns, n_outputs))
    touched = pattern(n_columns, n_steps, n_free, seed=2)
    shape = (n_columns, n_outputs)
    lazy = Coupled(shape, n_free, decay, n_steps, n_skipped, NOISE, SystemBits()).known(sequence)
    lazy.decay = decay
    decays = np.full((n_columns, 1), decay)
    decays[n_columns - n_free :] = 1.0
    values, total = np.zeros(shape), np.zeros(shape)
    for step, columns in enumerate(touched):
        np.testing.assert_allclose(lazy.at(columns, step), values[columns], atol=1e-12)
        # a statistic that depends on where it is, as a gradient does
        statistic = np.tanh(values[columns]) + rng.normal(size=(len(columns), n_outputs))
        lazy.add(columns, statistic)
        added = np.zeros(shape)
        added[columns] = statistic
        values = decays * (values + added + sequence[step])
        total += values if step >= n_skipped else 0.0
    # the result is on a grid
    found, expected = lazy.average(), total / (n_steps - n_skipped)
    np.testing.assert_allclose(found, expected, atol=1e-12 + lazy._grid)
    np.testing.assert_array_equal(found / lazy._grid, np.rint(found / lazy._grid))


# -- the law -------------------------------------------------------------------------


def pure_noise(n_columns, n_steps, n_skipped, decay, bits, noise=NOISE, seed=0):
    """Return the average of nothing but noise, in its standard deviations."""
    lazy = LazySums((n_columns, 1), 0, decay, n_steps, n_skipped, noise, bits)
    for step, columns in enumerate(pattern(n_columns, n_steps, 0, seed)):
        lazy.at(columns, step)
        lazy.add(columns, np.zeros((len(columns), 1)))
    weights = noise_weights(decay, n_steps, n_skipped)
    return lazy.average()[:, 0] / noise.scale / np.linalg.norm(weights)


@pytest.mark.covering
@pytest.mark.parametrize("decay", DECAYS[:-1])
@pytest.mark.parametrize("n_skipped", [0, 13, 39])
def test_columns_have_the_law_of_the_recursion_however_often_they_are_touched(n_skipped, decay):
    draws = pure_noise(12_000, 40, n_skipped, decay, SeededBits(3))
    for kind in range(6):
        assert not law_is_wrong([draws[kind::6]])


def test_the_last_value_and_the_average_vary_together_as_they_should():
    # touched for the last time at step 25: value and sum of values go on together
    n_columns, n_steps, decay = 40_000, 40, 0.98
    columns = np.arange(n_columns)
    lazy = LazySums((n_columns, 1), 0, decay, n_steps, 0, NOISE, SeededBits(4))
    middle = []
    for step in range(n_steps):
        if step in (0, 10, 25):
            middle.append(lazy.at(columns, step)[:, 0])
        else:
            lazy.at(columns[:0], step)
    found = np.cov([*middle[1:], lazy.average()[:, 0]]) / NOISE.scale**2
    steps = np.zeros((3, n_steps))
    steps[0, :10], steps[1, :25] = decay ** np.arange(10, 0, -1), decay ** np.arange(25, 0, -1)
    steps[2] = noise_weights(decay, n_steps, 0)
    expected = steps @ steps.T
    error = np.sqrt((expected**2 + np.outer(np.diag(expected), np.diag(expected))) / n_columns)
    assert np.all(np.abs(found - expected) < 5 * error)


def test_a_column_that_is_touched_in_every_step_has_exact_noise():
    # without decay, values stay whole multiples of the grid of one step
    lazy = LazySums((50, 2), 0, 1.0, 6, 5, NOISE, SystemBits())
    for step in range(6):
        values = lazy.at(np.arange(50), step) / NOISE.grid
        np.testing.assert_array_equal(values, np.rint(values))
        lazy.add(np.arange(50), np.ones((50, 2)) * 3 * NOISE.grid)
    assert stats.kstest(lazy.average().ravel() / NOISE.scale / np.sqrt(6), "norm").pvalue > 1e-6


def test_no_draw_is_used_twice(monkeypatch):
    drawn = []
    real = LazySums._draws

    def listening(sums, n_columns):
        drawn.append(real(sums, n_columns))
        return drawn[-1].copy()

    monkeypatch.setattr(LazySums, "_draws", listening)
    pure_noise(300, 20, 5, 0.9, SystemBits())
    steps = np.concatenate([draw.ravel() for draw in drawn])
    # the law has as good as no ties
    assert len(np.unique(np.abs(steps[steps != 0]))) > 0.999 * len(steps)


def test_a_decay_that_leaves_nothing_makes_no_noise_of_its_own():
    with np.errstate(all="raise", under="ignore"):
        draws = pure_noise(6000, 40, 13, 1e-150, SeededBits(5))
    assert np.isfinite(draws).all()
    assert stats.kstest(draws, "norm").pvalue > 1e-6


@pytest.mark.parametrize("decay", [0.0, -0.5, 1.5, np.nan])
def test_decays_beyond_their_range_are_refused(decay):
    with pytest.raises(ValueError, match="decays in"):
        LazySums((3, 1), 0, decay, 4, 0, NOISE, SystemBits())


@pytest.mark.parametrize("decay", [1.0, 0.5])
def test_the_last_digit_does_not_say_whether_a_column_was_touched(decay):
    n_steps, half = 2, 20_000
    lazy = LazySums((2 * half, 1), 0, decay, n_steps, 0, NOISE, SeededBits(3))
    touched = np.arange(half)
    for step in range(n_steps):
        lazy.add(touched, np.zeros_like(lazy.at(touched, step)))
    average = lazy.average()[:, 0]
    odd = np.rint(average / lazy._grid) % 2
    # rounding halves to even numbers would have made three of four even
    assert abs(odd[:half].mean() - odd[half:].mean()) < 6 * np.sqrt(0.5 / half)

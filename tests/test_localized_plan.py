# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The schedule of localisation on disjoint batches, and the error that is proved for it."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from skdp.papers.localized import moment_clip, plan_phases
from skdp.privacy import gdp_mu
from tests._solvers import plan_of
from tests.linear_model.test_localized import make
from tests.test_disjoint import SIZES, cover

PUBLIC = {"size": 10, "mu": 1.0, "reach": 2, "radius": 3.0, "clip": 1.0, "spread": 1.0}


@pytest.mark.parametrize("n_rows", SIZES)
@pytest.mark.parametrize("least", [1, 20, 10**7])
def test_phases_are_disjoint_leave_no_row_out_and_shrink(n_rows, least):
    phases = plan_phases(3, 3 + n_rows, least=least, **PUBLIC)
    assert cover([(phase.start, phase.stop) for phase in phases], 3, 3 + n_rows)
    sizes = [phase.n_rows for phase in phases]
    assert len(phases) == 1 or min(sizes) >= least
    assert sizes == sorted(sizes, reverse=True)
    pulls = np.array([phase.pull for phase in phases])
    np.testing.assert_allclose(pulls[1:] / pulls[:-1], pulls[1] / pulls[0] if len(pulls) > 1 else 1)


def test_the_pull_has_the_units_of_a_gradient_over_a_length():
    (first, *_), scaled = plan_phases(0, 1000, **PUBLIC), {}
    scaled["clip"] = scaled["spread"] = 7.0
    assert plan_phases(0, 1000, **{**PUBLIC, **scaled})[0].pull == pytest.approx(7 * first.pull)
    longer = plan_phases(0, 1000, **{**PUBLIC, "radius": 6.0})
    assert longer[0].pull == pytest.approx(first.pull / 2)


def test_a_penalty_pulls_too():
    plain = plan_phases(0, 1000, **PUBLIC)
    first, last = plain[0].pull, plain[-1].pull
    weak = plan_phases(0, 1000, convexity=first / 2, **PUBLIC)
    assert weak[0].pull == pytest.approx(first / 2)
    assert weak[-1].pull == pytest.approx(last - first / 2)
    # where the penalty alone is more than the first pull, pulls grow from there
    strong = plan_phases(0, 1000, convexity=2 * first, **PUBLIC)
    assert 0 < strong[0].pull < 1e-40
    assert strong[-1].pull == pytest.approx(2 * last - 2 * first)


def test_a_moment_balances_noise_and_bias():
    clip, bias = moment_clip(2.0, 5.0, 9, 0.5)
    for n_rows in (100, 1000):
        noise = clip(n_rows) * 3 / n_rows / 0.5
        assert bias(clip(n_rows)) == pytest.approx(noise / 4)
    # Pareto rows: what clipping takes off is at most what is stated
    x = stats.pareto(3.5).rvs(200_000, random_state=0)
    for order in (2.0, 3.0):
        bound = np.mean(x**order) ** (1 / order)
        for c in (3.0, 10.0, 30.0):
            assert np.mean(np.maximum(x - c, 0)) <= moment_clip(order, bound, 1, 1.0)[1](c)
    phases = plan_phases(0, 4000, **{**PUBLIC, "clip": clip, "bias": bias})
    assert [phase.clip for phase in phases] == [clip(phase.n_rows) for phase in phases]


@pytest.mark.parametrize("n_rows", [20, 39, 40, 79, 80, 159, 4000, 10**6])
def test_the_closed_form_of_the_error_is_above_its_sum(n_rows):
    # Proposition 52, (b) and (c)
    for size, mu, r, taken in itertools.product((1, 1000), (1e-3, 0.5, 10), (0.05, 1), (0, 0.3)):
        phases = plan_phases(
            0, n_rows, size=size, mu=mu, reach=1, radius=3.0, clip=1.0, spread=r,
            bias=lambda _, taken=taken: taken,
        )  # fmt: skip
        noise = [math.sqrt(size) / (phase.pull * phase.n_rows * mu) for phase in phases]
        total = phases[0].pull * 9 / 2 + r * noise[-1]
        total += sum((2 * r**2 / p.n_rows + taken**2 / 2) / p.pull for p in phases)
        total += sum(p.pull / 2 * v**2 for p, v in zip(phases[1:], noise[:-1], strict=True))
        closed = 7.1 * r / math.sqrt(n_rows) + 13 * math.sqrt(size) / n_rows / mu + 1.1 * taken
        assert total <= 3 * (closed + 0.06 * r * n_rows * (40 / n_rows) ** 2.58)


# -- accuracy ----------------------------------------------------------------------------


def proved_bound(plan, radius, size, signal):
    """Return the bound of Proposition 52 on the expected excess, for gradients of at most 1."""
    (((_, phases),),) = plan.runs
    noise = [math.sqrt(size) / (phase.pull * phase.n_rows * signal) for phase in phases]
    bound = phases[0].pull * radius**2 / 2 + noise[-1]
    bound += sum(2 / (phase.pull * phase.n_rows) for phase in phases)
    return bound + sum(
        phase.pull / 2 * length**2 for phase, length in zip(phases[1:], noise[:-1], strict=True)
    )


@pytest.mark.parametrize("n_rows", [400, 4000])
def test_the_expected_excess_stays_below_the_proved_bound(n_rows):
    size, epsilon = 5, 2.0
    w = np.full(size, 2 / np.sqrt(size))
    rng = np.random.default_rng(0)

    def rows(n):
        X = rng.normal(size=(n, size))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return X, rng.uniform(size=n) < expit(X @ w)

    X, _ = rows(20_000)

    def risk(v):
        return np.mean(np.logaddexp(0, X @ v) - expit(X @ w) * (X @ v))

    model = make(epsilon, fit_intercept=False, coef_bound=4.0)
    excess = []
    for seed in range(12):
        model.set_params(random_state=seed).fit(*rows(n_rows))
        excess.append(risk(model.coef_[0]) - risk(w))
    signal = gdp_mu(epsilon, 1e-6) / 2
    plan = plan_of(model, n_rows, size, 2)
    bound = proved_bound(plan, np.linalg.norm(w), size, signal)
    assert 0 < np.mean(excess) < bound
    # and the bound says something where there are rows enough
    assert n_rows == 400 or bound < 2 * np.linalg.norm(w)
    assert n_rows == 400 or np.mean(excess) < 0.25 * (risk(np.zeros(size)) - risk(w))

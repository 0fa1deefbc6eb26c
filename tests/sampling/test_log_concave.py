# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exact draws from log-concave densities: pieces, boxes, nets, walks."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import sparse, stats

from skdp import DPLogisticRegression, _log_concave, papers
from skdp._log_concave import (
    ball_candidates,
    ball_grid,
    choose_by_loss,
    sample_piecewise_exponential,
    sample_tangent_box,
    truncated_exponential,
)
from skdp.papers import grid_walk_steps
from skdp.solvers import exponential
from tests.sampling import _laws
from tests.sampling._laws import FALSE_ALARM, quadrature_cdf, same_counts, same_law, source

# Truncated exponentials and chains of them have their exact law, at every scale.


N = 2_500


def absolute_loss(data):
    """Return knots and slopes of the sum of |x - d| on [-1, 1]."""
    knots = np.concatenate([[-1.0], np.sort(data), [1.0]])
    return knots, 2.0 * np.arange(len(data) + 1) - len(data)


def pinball_loss(data, level=0.8):
    knots, slopes = absolute_loss(data)
    return knots, slopes / 2 + len(data) * (0.5 - level)


def hinge_loss(data):
    """Return the sum of max(0, 1 - d x), for d > 1, on [-1, 1]."""
    order = np.sort(data)
    knots = np.concatenate([[-1.0], 1 / order[::-1], [1.0]])
    return knots, np.append(-np.cumsum(order)[::-1], 0.0)


LOSSES = {
    "absolute": absolute_loss(np.array([-0.8, -0.1, 0.05, 0.3, 0.31, 0.9])),
    "one record": absolute_loss(np.array([0.4])),
    "ties": absolute_loss(np.array([-1.0, -0.5, -0.5, -0.5, 0.2, 1.0, 1.0])),
    "pinball": pinball_loss(np.linspace(-0.9, 0.7, 40)),
    "hinge": hinge_loss(np.array([1.2, 1.5, 2.0, 4.0, 9.0])),
    "flat": (np.array([-1.0, 1.0]), np.array([0.0])),
    "steep": (np.array([-1.0, 0.999, 1.0]), np.array([-50.0, 70.0])),
}


def draws(knots, slopes, c, purpose, n=N):
    variates = source(purpose)
    return np.array([sample_piecewise_exponential(knots, slopes, c, variates) for _ in range(n)])


def law(knots, slopes, c):
    values = np.concatenate([[0.0], np.cumsum(slopes * np.diff(knots))])
    return quadrature_cdf(lambda x: -c * np.interp(x, knots, values), knots[0], knots[-1])


@pytest.mark.sample(4)
@pytest.mark.parametrize("slope", [0.0, 1e-12, 0.3, 5.0, 700.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_truncated_exponential_has_its_law(slope, sign):
    slope, n = sign * slope, 50_000
    x = truncated_exponential(np.full(n, slope), -0.5, 1.5, source(f"law {slope}"))
    assert same_law(x, quadrature_cdf(lambda t: -slope * t, -0.5, 1.5))
    if slope:
        assert same_law(x, quadrature_cdf(lambda t: -slope / 2 * t, -0.5, 1.5)) == (
            abs(slope) < 0.1
        )


def test_truncated_exponential_at_every_scale():
    variates, powers = source("scales"), 10.0 ** np.arange(-300, 301)
    with np.errstate(all="raise"):
        for slope in (powers, -powers):
            for width in (1.0, 1e-300, 1e300, 0.0):
                x = truncated_exponential(slope, 0.0, width, variates)
                assert ((x >= 0) & (x <= width)).all()
        steep = truncated_exponential(np.array([np.inf, -np.inf]), -1.0, 2.0, variates)
    assert steep.tolist() == [-1.0, 2.0]


@pytest.mark.full
def test_truncated_exponential_resolves_the_tail():
    x = truncated_exponential(np.full(10**6, 1e3), 0.0, 1.0, source("tail"))
    assert same_law(np.exp(-1e3 * x), "uniform")
    assert x.max() < 0.04


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("c", [0.7, 6.0])
def test_piecewise_law(name, c):
    knots, slopes = LOSSES[name]
    x = draws(knots, slopes, c, name)
    assert same_law(x, law(knots, slopes, c))
    cells = np.linspace(-1, 1, 41)
    counts = np.histogram(x, cells)[0]
    assert same_counts(counts, np.diff(law(knots, slopes, c)(cells)))


@pytest.mark.full
@pytest.mark.parametrize("name", ["absolute", "pinball", "hinge", "steep"])
def test_half_and_double_the_temperature_are_noticed(name):
    knots, slopes = LOSSES[name]
    for c in (0.7 / 2, 0.7 * 2):
        assert not same_law(draws(knots, slopes, c, name), law(knots, slopes, 0.7))


@pytest.mark.full
def test_intervals_without_width_are_never_chosen():
    knots = np.array([0.0, 0.0, 0.0, 0.5, 0.5, 1.0, 1.0])
    for between in (0.0, 1e300, -1e300):
        slopes = np.array([between, between, -3.0, between, 3.0, between])
        with np.errstate(all="raise", under="ignore"):
            x = draws(knots, slopes, 1.0, "ties", n=1000)
        assert same_law(x, quadrature_cdf(lambda t: -3 * np.abs(t - 0.5), 0, 1))
    for c in (0.0, 1.0, 1e300):
        assert (
            draws(np.full(4, 0.3), np.array([-1.0, 0.0, 1.0]), c, "point", n=3).tolist()
            == [0.3] * 3
        )


def test_every_scale_is_handled_without_a_warning():
    data = np.array([-0.5, -0.5, 0.0, 1e-300, 0.25, 1.0])
    knots, slopes = absolute_loss(data)
    variates = source("scales")
    with np.errstate(all="raise", under="ignore"):
        for power in range(-300, 301, 10):
            for width in (1.0, 1e-150, 1e150):
                c = 10.0**power
                x = sample_piecewise_exponential(knots * width, slopes, c, variates)
                assert -width <= x <= width
                if c * width > 1e4:  # the minimum is on the interval between 0 and its neighbour
                    assert abs(x) <= 1e-300 * width + 100 / c
                x = sample_piecewise_exponential(knots, slopes * width, c, variates)
                assert -1 <= x <= 1


def test_the_mass_near_the_minimum_of_a_large_loss_is_resolved():
    # the loss varies by 1e4, the mass sits close to the minimum
    data = np.random.default_rng(0).uniform(-1, 1, size=10**4)
    data[data > 0] **= 2
    knots, slopes = absolute_loss(data)
    near = np.abs(knots - np.median(data)) < 0.2
    k = np.flatnonzero(near)
    inner = (knots[k], slopes[k[:-1]])
    x = draws(knots, slopes, 5.0, "many", n=200)
    assert same_law(x, law(*inner, 5.0))
    assert not same_law(x, law(*inner, 0.5))


# The tangent-box sampler has the target law, for every loss, set and sampler to compare with.


BOX_N = 450
DATA = np.array([-0.8, -0.3, -0.1, 0.2, 0.25, 0.7])
LINE = {
    "absolute": _laws.absolute(DATA),
    "hinge": _laws.hinge(3 * DATA[:, None]),
    "logistic": _laws.logistic(9 * DATA[:, None] + 2),
    "constant": lambda x: (np.full(len(x), 7.0), np.zeros(x.shape)),
}
PLANE = {
    "hinge": _laws.hinge(3 * _laws.unit_rows(40, 2)),
    "logistic": _laws.logistic(2 * _laws.unit_rows(60, 2)),
    "distance": _laws.distance(_laws.unit_rows(30, 2, seed=1)),
    "affine": _laws.affine(np.array([3.0, -8.0])),
}
UNIT = [(np.zeros(2), 1.0)]
TWO = [(np.zeros(2), 1.0), (np.array([0.6, 0.7]), 0.4)]


def linear_draws(v, n, seed=0):
    """Return points of the unit ball of density exp(<v, x>), by a von Mises-Fisher law.

    It is that of the sphere with two dimensions more, less these two coordinates.
    """
    axis = np.append(v, [0.0, 0.0]) / np.linalg.norm(v)
    return stats.vonmises_fisher(axis, np.linalg.norm(v), seed=seed).rvs(n)[:, :-2]


def box_draws(loss, n_dims, c, balls, purpose, n=BOX_N, **options):
    variates = source(purpose)
    return np.array(
        [sample_tangent_box(loss, n_dims, c, balls, variates, **options) for _ in range(n)]
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", LINE)
@pytest.mark.parametrize("c", [0.5, 20.0])
def test_law_on_the_line(name, c):
    x = box_draws(LINE[name], 1, c, [([0.1], 0.8)], name)[:, 0]
    assert same_law(x, quadrature_cdf(lambda t: -c * LINE[name](t[:, None])[0], -0.7, 0.9, 20_001))


# half the temperature, and the diameter taken for the radius or the other way round
@pytest.mark.sample(1)
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_wrong_temperature_is_noticed(factor):
    law = quadrature_cdf(lambda t: -6 * t, -1, 1, 20_001)
    for c in (2.0, 2.0 * factor):
        x = box_draws(_laws.affine(np.array([3.0])), 1, c, [([0.0], 1.0)], "mutant")[:, 0]
        assert same_law(x, law) == (c == 2.0)


@pytest.mark.full
def test_agrees_with_the_piecewise_sampler():
    knots, slopes = np.concatenate([[-1.0], DATA, [1.0]]), 2.0 * np.arange(7) - 6
    variates = source("piecewise")
    x = box_draws(LINE["absolute"], 1, 3.0, [([0.0], 1.0)], "boxes")[:, 0]
    for c, agree in ((3.0, True), (1.0, False)):
        other = [sample_piecewise_exponential(knots, slopes, c, variates) for _ in range(BOX_N)]
        assert (stats.ks_2samp(x, other).pvalue > FALSE_ALARM) == agree


def cells_of(loss, c, balls, n=240, n_cells=12):
    """Return the cells' edges and probabilities, by a fine grid."""
    fine = (np.arange(n) + 0.5) / n * 2 - 1
    x = np.stack(np.meshgrid(fine, fine, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density = -c * np.concatenate([loss(part)[0] for part in np.array_split(x, 50)])
    inside = np.all([np.linalg.norm(x - center, axis=1) <= r for center, r in balls], axis=0)
    mass = np.where(inside, np.exp(log_density - log_density[inside].max()), 0.0)
    width = n // n_cells
    mass = mass.reshape(n_cells, width, n_cells, width).sum(axis=(1, 3))
    return np.linspace(-1, 1, n_cells + 1), mass / mass.sum()


@pytest.mark.full
@pytest.mark.parametrize("name", PLANE)
@pytest.mark.parametrize("balls", [UNIT, TWO], ids=["ball", "two balls"])
def test_law_in_the_plane(name, balls):
    edges, probabilities = cells_of(PLANE[name], 0.4, balls)
    x = box_draws(PLANE[name], 2, 0.4, balls, name)
    assert all((np.linalg.norm(x - center, axis=1) <= r).all() for center, r in balls)
    counts = np.histogram2d(*x.T, bins=[edges, edges])[0]
    assert same_counts(counts, probabilities)
    if balls is UNIT:
        x = box_draws(PLANE[name], 2, 0.8 if name == "affine" else 1.6, balls, name)
        counts = np.histogram2d(*x.T, bins=[edges, edges])[0]
        assert not same_counts(counts, probabilities)


@pytest.mark.full
def test_a_steep_loss_is_drawn_at_the_boundary():
    # the linear law is known; its mass sits in a layer of thickness 1/300
    v = np.array([-180.0, 240.0])
    x = box_draws(_laws.affine(-v), 2, 1.0, UNIT, "steep")
    other, half = linear_draws(v, BOX_N), linear_draws(v / 2, BOX_N)
    for direction in (v / 300, np.array([0.8, 0.6])):
        assert stats.ks_2samp(x @ direction, other @ direction).pvalue > FALSE_ALARM
    assert stats.ks_2samp(x @ v, half @ v).pvalue < FALSE_ALARM


@pytest.mark.full
def test_agrees_with_the_linear_law_in_three_dimensions():
    v, balls = np.array([4.0, -3.0, 6.0]), [(np.zeros(3), 1.5)]
    x = box_draws(_laws.affine(-v), 3, 1.0, balls, "linear", n=300)
    other = 1.5 * linear_draws(1.5 * v, 2000)
    for direction in (v, *np.eye(3)):
        assert stats.ks_2samp(x @ direction, other @ direction).pvalue > FALSE_ALARM
    assert stats.ks_2samp(x @ v, other @ v / 2).pvalue < FALSE_ALARM


@pytest.mark.full
def test_agrees_with_a_fine_net():
    points = ball_grid(2, 1.0, 0.02)
    losses = PLANE["distance"](points)[0]
    variates = source("net")
    x = box_draws(PLANE["distance"], 2, 0.5, UNIT, "boxes")
    jitter = (variates.uniform(4 * BOX_N).reshape(2 * BOX_N, 2) - 0.5) * 0.02
    for c, agree in ((0.5, True), (0.1, False)):
        net = points[[choose_by_loss(losses, c, variates) for _ in range(2 * BOX_N)]] + jitter
        alarm = stats.ks_2samp(np.hypot(*x.T), np.hypot(*net.T)).pvalue
        assert (alarm > FALSE_ALARM) == agree


def separable(points):
    """Return a sum of |x_k - k/10|, and its subgradient."""
    gap = points - np.arange(points.shape[1]) / 10
    return np.abs(gap).sum(axis=1), np.sign(gap)


@pytest.mark.parametrize(
    ("n_dims", "n"),
    [pytest.param(3, 300, marks=pytest.mark.full), pytest.param(4, 1000, marks=pytest.mark.slow),
     pytest.param(5, 1000, marks=pytest.mark.slow)],
)  # fmt: skip
def test_coordinates_of_a_separable_loss_are_independent_and_laplace(n_dims, n):
    # the ball cuts off less than 1e-8 of the mass
    x = box_draws(separable, n_dims, 15.0, [(np.zeros(n_dims), 2.0)], "separable", n=n)
    x = 15.0 * (x - np.arange(n_dims) / 10)
    for column in x.T:
        assert same_law(column, stats.laplace.cdf)
    assert same_law(np.abs(x).sum(axis=1), stats.gamma(n_dims).cdf)
    assert np.abs(np.corrcoef(x.T) - np.eye(n_dims)).max() < 6 / np.sqrt(n)


@pytest.mark.slow
@pytest.mark.parametrize("n_dims", [4, 5])
def test_agrees_with_the_linear_law_in_more_dimensions(n_dims):
    v, balls = 12 * np.eye(n_dims)[0] + 3, [(np.zeros(n_dims), 1.0)]
    x = box_draws(_laws.affine(-v), n_dims, 1.0, balls, "linear", n=1000)
    other = linear_draws(v, 4000)
    for direction in (v, *np.eye(n_dims)):
        assert stats.ks_2samp(x @ direction, other @ direction).pvalue > FALSE_ALARM


@pytest.mark.full
def test_a_cover_restricts_the_set():
    cover = (np.array([0.2, -9.0]), np.array([9.0, -0.1]))
    x = box_draws(_laws.affine(np.zeros(2)), 2, 1.0, UNIT, "cover", cover=cover)
    assert ((x[:, 0] >= 0.2) & (x[:, 1] <= -0.1)).all()
    law = quadrature_cdf(
        lambda t: np.log(np.maximum(np.sqrt(1 - t * t) - 0.1, 1e-300)), 0.2, np.sqrt(0.99)
    )
    assert same_law(x[:, 0], law)


@pytest.mark.full
def test_the_number_of_proposals_and_bisections_does_not_change_the_law(monkeypatch):
    law = quadrature_cdf(lambda t: -8 * t + np.log(np.sqrt(1 - t * t)), -1, 1)
    for proposals, bisections in ((1, 60), (3, 0), (32, 2)):
        monkeypatch.setattr(_log_concave, "_PROPOSALS", proposals)
        monkeypatch.setattr(_log_concave, "_BISECTIONS", bisections)
        x = box_draws(_laws.affine(np.array([0.0, 8.0])), 2, 1.0, UNIT, "law", n=500)
        assert same_law(x[:, 1], law)


def test_batches_are_small_and_never_empty():
    sizes = []

    def loss(points):
        sizes.append(len(points))
        return _laws.logistic(_laws.unit_rows(50, 5))(points)

    sample_tangent_box(loss, 5, 10.0, [(np.zeros(5), 3.0)], source("sizes"))
    assert 1 <= min(sizes) <= max(sizes) <= 512


@pytest.mark.parametrize(
    "balls",
    [
        [(np.zeros(2), 1.0), (np.array([1.5, 1.5]), 1.0)],
        [(np.zeros(2), 1.0), (np.array([2.0, 0.0]), 1.0)],
        [(np.zeros(2), 1.0), (np.zeros(2), 0.0)],
    ],
)
def test_balls_that_do_not_meet_are_refused(balls):
    with pytest.raises(ValueError, match="balls must meet"):
        sample_tangent_box(separable, 2, 1.0, balls, source("apart"))


def test_a_cover_that_misses_the_ball_is_refused():
    for corner in (0.8, 0.75, 3.0):
        cover = (np.full(2, corner), np.full(2, 4.0))
        with pytest.raises(ValueError, match="balls must meet"):
            sample_tangent_box(separable, 2, 1.0, UNIT, source("apart"), cover=cover)


@pytest.mark.sample(1)
@pytest.mark.parametrize("c", [0.0, 1e-300, 1e-12, 1e6, 1e12])
def test_every_temperature_ends_without_a_warning(c):
    with np.errstate(all="raise", under="ignore"):
        x = box_draws(PLANE["distance"], 2, c, TWO, "scales", n=3)
        y = box_draws(LINE["hinge"], 1, c, [([0.0], 1.0)], "scales", n=3)
    assert np.isfinite(x).all()
    assert (np.abs(y) <= 1).all()


def test_a_small_second_ball_on_the_boundary():
    edge = np.array([0.6, 0.8])
    for radius in (1e-3, 1e-9):
        x = box_draws(PLANE["logistic"], 2, 1.0, [(np.zeros(2), 1.0), (edge, radius)], "edge", n=50)
        assert (np.linalg.norm(x - edge, axis=1) <= radius).all()
        assert (np.linalg.norm(x, axis=1) <= 1).all()


# The net covers the ball, and its choice has the exact probabilities.


def choices(losses, c, n=6_000):
    variates = source("choices")
    drawn = [choose_by_loss(losses, c, variates) for _ in range(n)]
    return np.bincount(drawn, minlength=len(losses))


@pytest.mark.sample(1)
@pytest.mark.parametrize("shift", [0.0, -1e6, 1e6])
def test_choice_has_its_probabilities(shift):
    losses = np.array([3.0, 0.0, 1.0, 1.0, 2.5, 8.0])
    probabilities = np.exp(-0.9 * losses)
    counts = choices(losses + shift, 0.9)
    assert same_counts(counts, probabilities)
    assert not same_counts(counts, np.sqrt(probabilities))
    assert not same_counts(counts, probabilities**2)


def test_choice_at_every_scale():
    with np.errstate(all="raise", under="ignore"):
        losses = np.array([1.0, 1e-300, 1e300, 5.0])
        assert same_counts(choices(losses, 0.0, n=4000), np.ones(4))
        assert same_counts(choices(losses[[0, 1, 3]], 1e-300, n=4000), np.ones(3))
        assert choices(losses, 1e300, n=10).tolist() == [0, 10, 0, 0]
        assert choices(losses[:1], 1.0, n=10).tolist() == [10]


@pytest.mark.parametrize(("n_dims", "radius", "spacing"), [(1, 1, 0.1), (2, 3.0, 0.5), (3, 2, 0.7)])
def test_every_point_of_the_ball_is_near_the_grid(n_dims, radius, spacing):
    points = ball_grid(n_dims, radius, spacing)
    assert points.shape[1] == n_dims
    assert (np.linalg.norm(points, axis=1) <= radius * (1 + 1e-15)).all()
    assert (points == 0).all(axis=1).sum() == 1
    np.testing.assert_allclose(points / spacing, np.rint(points / spacing), atol=1e-12)
    assert len(np.unique(points, axis=0)) == len(points)
    x = np.random.default_rng(0).normal(size=(500, n_dims))
    x *= (
        radius
        * np.random.default_rng(1).uniform(0.5, 1, size=(500, 1))
        / np.linalg.norm(x, axis=1, keepdims=True)
    )
    gaps = np.linalg.norm(x[:, None] - points, axis=2).min(axis=1)
    assert gaps.max() < spacing * np.sqrt(n_dims)


def test_no_lattice_point_of_the_ball_is_left_out():
    # Gauss's circle problem
    assert [len(ball_grid(2, r, 1)) for r in (0.5, 1, 2, 3, 4, 5)] == [1, 5, 13, 29, 49, 81]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.0, 0.1), "n_dims must be at least 1; got 0"),
        ((2, -1.0, 0.1), "radius must be a finite positive number; got -1.0"),
        ((2, np.inf, 0.1), "radius must be a finite positive number; got inf"),
        ((2, 1.0, 0.0), "spacing must be a finite positive number; got 0.0"),
        ((2, 1.0, np.nan), "spacing must be a finite positive number; got nan"),
        ((3, 1.0, 1e-3), f"spacing must leave at most {_log_concave.MAX_GRID} points"),
        ((50, 1.0, 1.0), f"spacing must leave at most {_log_concave.MAX_GRID} points"),
    ],
)
def test_bad_grids_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ball_grid(*arguments)


@pytest.mark.sample(4)
@pytest.mark.parametrize("n_dims", [1, 2, 3, 4, 20, 500])
def test_candidates_fill_the_ball_evenly(n_dims):
    points = ball_candidates(n_dims, 3.0, 2000)
    assert 0.9 * 2000 < len(points) < 1.1 * 2000
    lengths = np.linalg.norm(points, axis=1)
    assert lengths.max() <= 3.0 * (1 + 1e-12)
    assert lengths.min() == 0
    assert len(np.unique(points, axis=0)) == len(points)
    # no direction is preferred
    assert np.linalg.norm(points.mean(axis=0)) < 0.15
    np.testing.assert_array_equal(points, ball_candidates(n_dims, 3.0, 2000))


def test_primes():
    assert _log_concave._primes(6).tolist() == [2, 3, 5, 7, 11, 13]
    assert len(_log_concave._primes(10_000)) == 10_000
    assert _log_concave._primes(10_000)[-1] == 104_729


def test_candidates_do_not_depend_on_the_entries_of_sparse_rows(monkeypatch):
    # their number is private, and so would be what can be drawn
    seen = []
    monkeypatch.setattr(exponential, "_WORK", 4e5)
    monkeypatch.setattr(
        exponential, "ball_candidates", lambda *a: seen.append(a) or ball_candidates(*a)
    )
    for entries in (1, 100):
        X = sparse.csr_array(
            (np.full(entries, 0.1), (np.arange(entries), np.zeros(entries, int))), (100, 6)
        )
        model = DPLogisticRegression(
            mechanism="exponential",
            solver=papers.FiniteNet(),
            coef_bound=1.0,
            classes=(0, 1),
            random_state=0,
            data_norm=1.0,
        )
        model.fit(X, np.arange(100) % 2)
    assert seen[0] == seen[1]
    assert seen[0][2] < exponential._CANDIDATES


# The step counts of the grid walk, against an independent evaluation, and its errors.


COUNTS = {(100, 1): (4.8e11, 3.4e13), (1000, 2): (4.5e15, 3e18), (10**4, 10): (1.2e21, 8e24)}


def by_hand(n, p, diameter, epsilon):
    """Return steps per call and calls in 50 digits, Lemma 6.1 and Algorithms 5 to 7."""
    mp = mpmath.mp.clone()
    mp.dps = 50
    D, e = mp.mpf(diameter), mp.mpf(epsilon) / 3
    eta = n * mp.mpf(epsilon) / (6 * D)
    calls = mp.ceil(4 * eta * D + p * mp.log(D, 2) + mp.log(1 / (1 - mp.exp(-e / 4)), 2))
    e /= 4
    eta += 3 * mp.exp(2 * e) * (eta * D + p)
    e /= 2
    cells = mp.ceil(D * 2 * eta * mp.sqrt(p) / e)
    phi = e / (8 * eta * D * mp.mpf(p) ** 1.5 * mp.exp(e / 2))
    rarest = mp.exp(-eta * D * mp.sqrt(p)) / cells**p
    return mp.ceil(1 + 4 / phi**2 * mp.log(2 / (e * rarest))), calls


@pytest.mark.parametrize("shape", COUNTS)
def test_known_counts(shape):
    steps = grid_walk_steps(*shape)
    assert steps.steps_per_call == pytest.approx(COUNTS[shape][0], rel=0.02)
    assert steps.total_steps == pytest.approx(COUNTS[shape][1], rel=0.02)


@pytest.mark.sample(6, 21)
@pytest.mark.parametrize("n", [1, 50, 10**6])
@pytest.mark.parametrize("p", [1, 7])
@pytest.mark.parametrize("diameter", [2.0, 5])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0])
def test_counts_by_hand(n, p, diameter, epsilon):
    steps = grid_walk_steps(n, p, diameter=diameter, epsilon=epsilon)
    per_call, calls = by_hand(n, p, diameter, epsilon)
    assert steps.calls == calls
    assert steps.steps_per_call == pytest.approx(float(per_call), rel=1e-9)
    assert steps.total_steps == steps.steps_per_call * steps.calls


def test_the_lipschitz_constant_cancels():
    assert grid_walk_steps(10, 2, lipschitz=1e-3) == grid_walk_steps(10, 2, lipschitz=7)


def test_counts_too_large_for_a_float_are_infinite():
    for epsilon in (1e-300, 1e6, 1e300):
        steps = grid_walk_steps(10**15, 10**9, epsilon=epsilon)
        assert steps.steps_per_call == steps.total_steps == math.inf


@pytest.mark.parametrize(
    ("name", "bad", "allowed"),
    [
        ("n_samples", 0, "an integer from 1"),
        ("n_samples", 1.5, "an integer from 1"),
        ("n_samples", True, "an integer from 1"),
        ("n_features", -2, "an integer from 1"),
        ("n_features", 10**10, "an integer from 1"),
        ("n_features", "3", "an integer from 1"),
        ("lipschitz", 0.0, "a number above 0"),
        ("lipschitz", math.inf, "a number above 0"),
        ("epsilon", -1.0, "a number above 0"),
        ("epsilon", math.nan, "a number above 0"),
        ("epsilon", None, "a number above 0"),
        ("diameter", 1.0, "a number from 2 on"),
        ("diameter", math.inf, "a number from 2 on"),
    ],
)
def test_bad_arguments_are_named(name, bad, allowed):
    with pytest.raises(ValueError, match=f"{name} must be {allowed}.*; got {bad!r}"):
        grid_walk_steps(**{"n_samples": 10, "n_features": 2, name: bad})


# The temperature of the exponential mechanism spends epsilon, all of it and no more.
#
# Densities exp(-c sum |theta - d|) on [-1, 1], by quadrature, for all small data sets on a
# grid and all their neighbours: L = 1, diameter 2, radius 1.


THETA = np.linspace(-1, 1, 4001)
VALUES = np.linspace(-1, 1, 5)
LIPSCHITZ, DIAMETER = 1.0, 2.0
EPSILONS = [0.1, 1.0, 4.0]


def log_density(data, c, theta=THETA, repeats=1):
    """Return the log-density on theta; the first record occurs `repeats` times."""
    loss = np.abs(theta[:, None] - np.asarray(data)).sum(axis=1)
    if len(data):
        loss += (repeats - 1) * np.abs(theta - data[0])
    log_value = -c * loss
    # the grid has a point at every kink, and the density is exponential in between
    value = np.exp(log_value - log_value.max())
    low, high = log_value[:-1], log_value[1:]
    z = np.maximum(np.abs(high - low), 1e-12)
    mass = np.maximum(value[:-1], value[1:]) * (-np.expm1(-z) / z) * np.diff(theta)
    return log_value - log_value.max() - np.log(mass.sum())


def log_ratio(first, second, c, theta=THETA, repeats=1):
    gap = log_density(first, c, theta, repeats) - log_density(second, c, theta, repeats)
    return np.abs(gap).max()


def worst_replacement(n, c):
    """Return the largest log-ratio over all data sets of n records and all swaps."""
    return max(
        log_ratio((*rest, a), (*rest, b), c)
        for rest in itertools.combinations_with_replacement(VALUES, n - 1)
        for a, b in itertools.combinations(VALUES, 2)
    )


def worst_removal(n, c):
    """Return the largest log-ratio over all data sets of n records and all removals."""
    return max(
        log_ratio((*rest, a), rest, c)
        for rest in itertools.combinations_with_replacement(VALUES, n - 1)
        for a in VALUES
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_epsilon_is_kept_by_every_small_data_set(n, epsilon):
    assert worst_replacement(n, epsilon / (2 * LIPSCHITZ * DIAMETER)) <= epsilon
    assert worst_removal(n, epsilon / (LIPSCHITZ * DIAMETER)) <= epsilon


# Records at one end pull all mass there, where the swapped record's loss is extreme; the
# density at the other end then changes by as much as the range of the loss allows.
REPEATS = 100_000
FINE = -1 + 2 * np.concatenate([[0.0], np.geomspace(1e-8, 1, 4000)])


def extreme_replacement(c):
    return log_ratio([-1.0, -1.0], [-1.0, 1.0], c, FINE, REPEATS)


def extreme_removal(c):
    return log_ratio([-1.0, 1.0], [-1.0], c, FINE, REPEATS)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_epsilon_is_attained(epsilon):
    replaced = extreme_replacement(epsilon / (2 * LIPSCHITZ * DIAMETER))
    removed = extreme_removal(epsilon / (LIPSCHITZ * DIAMETER))
    for spent in (replaced, removed):
        assert 0.99 * epsilon <= spent <= epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_radius_taken_for_the_diameter_breaks_the_promise(epsilon):
    radius = DIAMETER / 2
    assert extreme_replacement(epsilon / (2 * LIPSCHITZ * radius)) > 1.9 * epsilon
    assert extreme_removal(epsilon / (LIPSCHITZ * radius)) > 1.9 * epsilon
    # and so does the temperature of the other adjacency
    assert extreme_replacement(epsilon / (LIPSCHITZ * DIAMETER)) > 1.9 * epsilon

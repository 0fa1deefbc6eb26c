# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The tangent-box sampler has the target law, for every loss, set and sampler to compare with."""

import numpy as np
import pytest
from scipy import stats

from skdp import _log_concave as _tangent_box
from skdp._log_concave import (
    ball_grid,
    choose_by_loss,
    sample_piecewise_exponential,
    sample_tangent_box,
)
from tests.sampling import _laws
from tests.sampling._laws import FALSE_ALARM, quadrature_cdf, same_counts, same_law, source

N = 450
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


def draws(loss, n_dims, c, balls, purpose, n=N, **options):
    variates = source(purpose)
    return np.array(
        [sample_tangent_box(loss, n_dims, c, balls, variates, **options) for _ in range(n)]
    )


@pytest.mark.covering
@pytest.mark.parametrize("name", LINE)
@pytest.mark.parametrize("c", [0.5, 20.0])
def test_law_on_the_line(name, c):
    x = draws(LINE[name], 1, c, [([0.1], 0.8)], name)[:, 0]
    assert same_law(x, quadrature_cdf(lambda t: -c * LINE[name](t[:, None])[0], -0.7, 0.9, 20_001))


# half the temperature, and the diameter taken for the radius or the other way round
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_wrong_temperature_is_noticed(factor):
    law = quadrature_cdf(lambda t: -6 * t, -1, 1, 20_001)
    for c in (2.0, 2.0 * factor):
        x = draws(_laws.affine(np.array([3.0])), 1, c, [([0.0], 1.0)], "mutant")[:, 0]
        assert same_law(x, law) == (c == 2.0)


def test_agrees_with_the_piecewise_sampler():
    knots, slopes = np.concatenate([[-1.0], DATA, [1.0]]), 2.0 * np.arange(7) - 6
    variates = source("piecewise")
    x = draws(LINE["absolute"], 1, 3.0, [([0.0], 1.0)], "boxes")[:, 0]
    for c, agree in ((3.0, True), (1.0, False)):
        other = [sample_piecewise_exponential(knots, slopes, c, variates) for _ in range(N)]
        assert (stats.ks_2samp(x, other).pvalue > FALSE_ALARM) == agree


def cells_of(loss, c, balls, n=240, n_cells=12):
    """Return the cells' edges and probabilities, by a fine grid."""
    fine = (np.arange(n) + 0.5) / n * 2 - 1
    x = np.stack(np.meshgrid(fine, fine, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density = -c * np.concatenate([loss(part)[0] for part in np.array_split(x, 50)])
    inside = np.all([np.linalg.norm(x - centre, axis=1) <= r for centre, r in balls], axis=0)
    mass = np.where(inside, np.exp(log_density - log_density[inside].max()), 0.0)
    width = n // n_cells
    mass = mass.reshape(n_cells, width, n_cells, width).sum(axis=(1, 3))
    return np.linspace(-1, 1, n_cells + 1), mass / mass.sum()


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PLANE)
@pytest.mark.parametrize("balls", [UNIT, TWO], ids=["ball", "two balls"])
def test_law_in_the_plane(name, balls):
    edges, probabilities = cells_of(PLANE[name], 0.4, balls)
    x = draws(PLANE[name], 2, 0.4, balls, name)
    assert all((np.linalg.norm(x - centre, axis=1) <= r).all() for centre, r in balls)
    counts = np.histogram2d(*x.T, bins=[edges, edges])[0]
    assert same_counts(counts, probabilities)
    if balls is UNIT:
        x = draws(PLANE[name], 2, 0.8 if name == "affine" else 1.6, balls, name)
        counts = np.histogram2d(*x.T, bins=[edges, edges])[0]
        assert not same_counts(counts, probabilities)


@pytest.mark.full
def test_a_steep_loss_is_drawn_at_the_boundary():
    # the linear law is known; its mass sits in a layer of thickness 1/300
    v = np.array([-180.0, 240.0])
    x = draws(_laws.affine(-v), 2, 1.0, UNIT, "steep")
    other, half = linear_draws(v, N), linear_draws(v / 2, N)
    for direction in (v / 300, np.array([0.8, 0.6])):
        assert stats.ks_2samp(x @ direction, other @ direction).pvalue > FALSE_ALARM
    assert stats.ks_2samp(x @ v, half @ v).pvalue < FALSE_ALARM


def test_agrees_with_the_linear_law_in_three_dimensions():
    v, balls = np.array([4.0, -3.0, 6.0]), [(np.zeros(3), 1.5)]
    x = draws(_laws.affine(-v), 3, 1.0, balls, "linear", n=300)
    other = 1.5 * linear_draws(1.5 * v, 2000)
    for direction in (v, *np.eye(3)):
        assert stats.ks_2samp(x @ direction, other @ direction).pvalue > FALSE_ALARM
    assert stats.ks_2samp(x @ v, other @ v / 2).pvalue < FALSE_ALARM


@pytest.mark.full
def test_agrees_with_a_fine_net():
    points = ball_grid(2, 1.0, 0.02)
    losses = PLANE["distance"](points)[0]
    variates = source("net")
    x = draws(PLANE["distance"], 2, 0.5, UNIT, "boxes")
    jitter = (variates.uniform(4 * N).reshape(2 * N, 2) - 0.5) * 0.02
    for c, agree in ((0.5, True), (0.1, False)):
        net = points[[choose_by_loss(losses, c, variates) for _ in range(2 * N)]] + jitter
        alarm = stats.ks_2samp(np.hypot(*x.T), np.hypot(*net.T)).pvalue
        assert (alarm > FALSE_ALARM) == agree


def separable(points):
    """Return a sum of |x_k - k/10|, and its subgradient."""
    gap = points - np.arange(points.shape[1]) / 10
    return np.abs(gap).sum(axis=1), np.sign(gap)


@pytest.mark.parametrize(
    ("n_dims", "n"),
    [(3, 300), pytest.param(4, 1000, marks=pytest.mark.slow),
     pytest.param(5, 1000, marks=pytest.mark.slow)],
)  # fmt: skip
def test_coordinates_of_a_separable_loss_are_independent_and_laplace(n_dims, n):
    # the ball cuts off less than 1e-8 of the mass
    x = draws(separable, n_dims, 15.0, [(np.zeros(n_dims), 2.0)], "separable", n=n)
    x = 15.0 * (x - np.arange(n_dims) / 10)
    for column in x.T:
        assert same_law(column, stats.laplace.cdf)
    assert same_law(np.abs(x).sum(axis=1), stats.gamma(n_dims).cdf)
    assert np.abs(np.corrcoef(x.T) - np.eye(n_dims)).max() < 6 / np.sqrt(n)


@pytest.mark.slow
@pytest.mark.parametrize("n_dims", [4, 5])
def test_agrees_with_the_linear_law_in_more_dimensions(n_dims):
    v, balls = 12 * np.eye(n_dims)[0] + 3, [(np.zeros(n_dims), 1.0)]
    x = draws(_laws.affine(-v), n_dims, 1.0, balls, "linear", n=1000)
    other = linear_draws(v, 4000)
    for direction in (v, *np.eye(n_dims)):
        assert stats.ks_2samp(x @ direction, other @ direction).pvalue > FALSE_ALARM


def test_a_cover_restricts_the_set():
    cover = (np.array([0.2, -9.0]), np.array([9.0, -0.1]))
    x = draws(_laws.affine(np.zeros(2)), 2, 1.0, UNIT, "cover", cover=cover)
    assert ((x[:, 0] >= 0.2) & (x[:, 1] <= -0.1)).all()
    law = quadrature_cdf(
        lambda t: np.log(np.maximum(np.sqrt(1 - t * t) - 0.1, 1e-300)), 0.2, np.sqrt(0.99)
    )
    assert same_law(x[:, 0], law)


@pytest.mark.full
def test_the_number_of_proposals_and_bisections_does_not_change_the_law(monkeypatch):
    law = quadrature_cdf(lambda t: -8 * t + np.log(np.sqrt(1 - t * t)), -1, 1)
    for proposals, bisections in ((1, 60), (3, 0), (32, 2)):
        monkeypatch.setattr(_tangent_box, "_PROPOSALS", proposals)
        monkeypatch.setattr(_tangent_box, "_BISECTIONS", bisections)
        x = draws(_laws.affine(np.array([0.0, 8.0])), 2, 1.0, UNIT, "law", n=500)
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


@pytest.mark.parametrize("c", [0.0, 1e-300, 1e-12, 1e6, 1e12])
def test_every_temperature_ends_without_a_warning(c):
    with np.errstate(all="raise", under="ignore"):
        x = draws(PLANE["distance"], 2, c, TWO, "scales", n=3)
        y = draws(LINE["hinge"], 1, c, [([0.0], 1.0)], "scales", n=3)
    assert np.isfinite(x).all()
    assert (np.abs(y) <= 1).all()


def test_a_small_second_ball_on_the_boundary():
    edge = np.array([0.6, 0.8])
    for radius in (1e-3, 1e-9):
        x = draws(PLANE["logistic"], 2, 1.0, [(np.zeros(2), 1.0), (edge, radius)], "edge", n=50)
        assert (np.linalg.norm(x - edge, axis=1) <= radius).all()
        assert (np.linalg.norm(x, axis=1) <= 1).all()

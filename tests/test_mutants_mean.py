# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The privacy claims of clipped means: coupled traces of whole fits, and planted bugs."""

import math
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from hypothesis import strategies as st
from sklearn.base import clone

from skdp import DPMean
from skdp._rows import linear as _linear_rows
from skdp._rows.base import L2Ball
from skdp._rows.linear import ball_rows
from skdp.exceptions import BudgetError
from skdp.location import _clipped_mean as _far_count
from skdp.location._clipped_mean import (
    ClippedMean,
    ClippedRowSum,
    FarCount,
    RadiusSearch,
    RotatedSideSum,
    rotate_back,
)
from skdp.privacy import GaussianMechanism, gdp_mu
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.kernel.ledger import Record
from tests import _audit
from tests._neighbours import ADJACENCIES, neighbours, on_examples

EPSILON, DELTA = 4.0, 1e-5
CLAIMED_MU = gdp_mu(EPSILON, DELTA)
NAN = float("nan")
MECHANISMS = ("clipped", "coinpress", "shifted-clipped")
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)


def mean(mechanism, adjacency="zero-out", epsilon=EPSILON, **options):
    options = {"random_state": 0, "mechanism": mechanism, "adjacency": adjacency, **options}
    return DPMean(epsilon, DELTA, **options)


def fitted(model, X):
    """Fit, with null rows in the data: validation would refuse them."""
    with sklearn.config_context(assume_finite=True):
        return clone(model).fit(X)


def steps(model, first, second):
    """Return the gap of every release, in sensitivities that were paid for, and its price."""
    pairs = _audit.coupled(lambda X: fitted(model, X), first, second)
    gaps = [np.linalg.norm(one.statistic - two.statistic) for one, two in pairs]
    noises = [one.noise for one, _ in pairs]
    ratios = [gap / noise.sensitivity for gap, noise in zip(gaps, noises, strict=True)]
    return np.array(ratios), np.array([noise.mu for noise in noises])


def measured(model, first, second):
    """Return the coupled mu of a fit, relative to the claim."""
    ratios, prices = steps(model, first, second)
    return float(np.linalg.norm(ratios * prices)) / CLAIMED_MU


def pair(adjacency, d=3, n_rows=800, other="opposite"):
    """Return rows near 0 and a far one, which becomes its opposite, a near one or null."""
    first = np.random.default_rng(0).normal(size=(n_rows, d)) * 1e-3
    # far from all medians of rotated coordinates
    first[0] = rotate_back(np.full(d, 5.0))
    second = first.copy()
    second[0] = NAN if adjacency == "zero-out" else {"opposite": -1, "near": 0}[other] * first[0]
    return first, second


@every_mechanism
def test_zero_out_claims_are_kept_and_tight(mechanism):
    model = mean(mechanism)
    first, second = pair("zero-out")
    assert fitted(model, first).mechanism_ == mechanism
    assert 0.999 <= measured(model, first, second) <= 1.0


@every_mechanism
def test_replace_one_claims_are_kept_and_tight(mechanism):
    # no row is at once beyond a radius, within it, and on opposite sides of the centre
    model = mean(mechanism, "replace-one")
    opposite, prices = steps(model, *pair("replace-one"))
    near, _ = steps(model, *pair("replace-one", other="near"))
    counts = opposite == 0.0
    assert 0 < counts.sum() < len(counts)
    assert (opposite[~counts] >= 0.999).all()
    # counts of radii that lie between the near row and the far one
    assert (near[counts] >= 0.999).sum() >= counts.sum() / 2
    assert max(opposite.max(), near.max()) <= 1.0
    assert np.linalg.norm(prices) == pytest.approx(CLAIMED_MU, rel=1e-6)
    assert np.linalg.norm(prices) <= CLAIMED_MU * (1 + 1e-12)


@pytest.mark.covering
@every_adjacency
@every_mechanism
@on_examples(40)
def test_claims_are_kept_on_any_neighbours(mechanism, adjacency, data):
    layouts = ("C", "F", "strided", "read-only", "float32")
    one, two = data.draw(neighbours(adjacency, null_row=NAN, layouts=layouts))
    # a budget with which nine rows are not too few
    model = mean(mechanism, adjacency, epsilon=2000.0, data_norm=data.draw(st.sampled_from([1, 9])))
    fit = lambda X: fitted(model, X)  # noqa: E731
    assert _audit.coupled_mu(fit, one.X, two.X) <= gdp_mu(2000.0, DELTA)
    if len(one.X) == 9:
        assert fitted(model, one.X).mechanism_ == mechanism


@every_mechanism
def test_dropped_clipping_is_caught(mechanism, monkeypatch):
    rows = pair("zero-out")
    assert measured(mean(mechanism), *rows) <= 1.0

    def unclipped(self, chunk, real=ClippedRowSum.partial):
        return real(replace(self, radius=4.0), chunk)

    monkeypatch.setattr(ClippedRowSum, "partial", unclipped)
    assert measured(mean(mechanism), *rows) > 1.5


@every_mechanism
def test_a_radius_read_off_the_rows_is_caught(mechanism, monkeypatch):
    rows = pair("replace-one", other="near")
    model = mean(mechanism, "replace-one")
    assert measured(model, *rows) <= 1.0

    def unpaid(self, curator, center=None):
        curator.release(FarCount(1.0), GaussianMechanism(1e-6))
        admitted = curator._Curator__rows
        return max(1e-9, *(chunk.norm.max() for chunk in admitted.chunks))

    monkeypatch.setattr(RadiusSearch, "run", unpaid)
    # the noise of the sum differs between neighbours: it shows who is there
    with pytest.raises(AssertionError):
        measured(model, *rows)


@every_mechanism
def test_halved_noise_is_caught(mechanism, monkeypatch):
    rows, model = pair("zero-out", d=50, n_rows=3000)[0], mean(mechanism, epsilon=20.0)
    fit = lambda: fitted(model, rows)  # noqa: E731
    assert not _audit.scale_is_wrong(_audit.noise_stream(fit))
    real = _mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(_mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(fit))


@pytest.mark.parametrize(
    ("query", "mechanism", "other"),
    [(FarCount, "clipped", "near"), (RotatedSideSum, "shifted-clipped", "opposite")],
)
def test_two_sides_charged_as_one_are_caught(query, mechanism, other, monkeypatch):
    model, rows = mean(mechanism, "replace-one"), pair("replace-one", other=other)
    assert steps(model, *rows)[0].max() <= 1.0

    def one_side(self, adjacency, n_rows, real=query.sensitivity):
        return real(self, "zero-out", n_rows)

    monkeypatch.setattr(query, "sensitivity", one_side)
    assert steps(model, *rows)[0].max() == pytest.approx(2.0, rel=1e-3)


def test_a_null_row_that_counts_is_caught(monkeypatch):
    rows, model = pair("zero-out"), mean("clipped")
    real = _far_count.FarCount.partial

    def counted(self, chunk):
        return real(self, chunk) - np.isinf(chunk.norm).sum() / 2

    monkeypatch.setattr(FarCount, "partial", counted)
    assert steps(model, *rows)[0].max() == pytest.approx(2.0, rel=1e-3)


@every_mechanism
def test_a_split_that_sums_to_more_is_caught(mechanism, monkeypatch):
    rows, model = pair("zero-out"), mean(mechanism)
    shares = ClippedMean.shares.fget
    monkeypatch.setattr(
        ClippedMean, "shares", property(lambda self: tuple(1.1 * mu for mu in shares(self)))
    )
    with pytest.raises(BudgetError):
        fitted(model, rows[0])
    # a ledger that forgets would let it pass; the trace does not
    monkeypatch.setattr(
        Record, "append", lambda ledger, release: replace(ledger, releases=(release,))
    )
    assert measured(model, *rows) > 1.05


def test_norms_that_depend_on_the_layout_are_caught(monkeypatch):
    # all rows on a radius of the grid, up to rounding; a denormal changes the layout
    rng = np.random.default_rng(0)
    first = rng.normal(size=(800, 17))
    first *= math.sqrt(0.5) / np.linalg.norm(first, axis=1)[:, None]
    second = first.copy()
    second[0, 0] = 1e-150
    # columns that are a part of longer ones, as chunks of a column-major array have them
    pair = [np.asfortranarray(np.concatenate([X, X]))[:800] for X in (first, second)]
    query = FarCount(math.sqrt(0.5))
    # as of rows that are too many to be copied at once: each chunk is, where it is multiplied
    monkeypatch.setattr(_linear_rows, "LARGE", 0)

    def moved():
        counts = [query.evaluate(ball_rows(X, L2Ball(1.0)))[0] for X in pair]
        return abs(counts[1] - counts[0])

    assert moved() <= 1.0
    # products of whatever layout the chunk has, without `row_major`
    monkeypatch.setattr(_far_count, "distances_from", lambda center, chunk: chunk.norm)
    monkeypatch.setattr(_linear_rows, "row_norms", lambda X: np.sqrt(np.einsum("ij,ij->i", X, X)))
    assert moved() > 2.0

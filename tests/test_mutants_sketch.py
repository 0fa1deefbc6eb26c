# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The privacy claim of compressed sensing: coupled traces of whole fits, and planted bugs."""

import math
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from skdp._recovery.measurements import MEASUREMENTS, measurement_matrix
from skdp.location import DPSparseMeanEstimator
from skdp.location._compressed_sensing import SketchMean, SketchSum
from skdp.privacy import gdp_mu
from skdp.privacy.kernel import mechanisms as _mechanisms
from tests import _audit
from tests._neighbours import ADJACENCIES, neighbours, on_examples

EPSILON, DELTA = 2.0, 1e-5
CLAIMED_MU = gdp_mu(EPSILON, DELTA)
NAN = float("nan")
M, D = 10, 80
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_kind = pytest.mark.parametrize("kind", MEASUREMENTS)


def mean(kind="gaussian", adjacency="replace-one", **options):
    defaults = {
        "mechanism": "compressed-sensing", "measurement": kind, "adjacency": adjacency,
        "random_state": 0, "n_measurements": M, "solver": "first-order",
    }  # fmt: skip
    return DPSparseMeanEstimator(EPSILON, DELTA, **{**defaults, **options})


def fitted(model, X):
    """Fit, with null rows in the data: validation would refuse them."""
    with sklearn.config_context(assume_finite=True):
        return clone(model).fit(X)


def measured(model, first, second):
    """Return the coupled mu of a fit, relative to the claim."""
    return _audit.coupled_mu(lambda X: fitted(model, X), first, second) / CLAIMED_MU


def pair(kind, adjacency, m=M):
    """Return neighbours in the direction whose measurements are longest, in CSR format."""
    A = measurement_matrix(kind, m, D).explicit()
    row = np.linalg.svd(A.toarray() if sparse.issparse(A) else A)[2][0]
    first = 0.1 * np.random.default_rng(0).normal(size=(12, D))
    first[4] = 3 * row
    second = first.copy()
    second[4] = NAN if adjacency == "zero-out" else -first[4]
    return sparse.csr_array(first), sparse.csr_array(second)


@pytest.mark.covering
@every_adjacency
@every_kind
@pytest.mark.parametrize("m", [1, M, D])
def test_claims_are_kept_and_tight(kind, adjacency, m):
    ratio = measured(mean(kind, adjacency, n_measurements=m), *pair(kind, adjacency, m))
    assert ratio <= 1.0
    # a square orthogonal matrix is the exception: D is no power of two
    assert ratio >= 0.999


@every_adjacency
@on_examples(60)
def test_claims_are_kept_on_any_neighbours(adjacency, data):
    one, two = data.draw(neighbours(adjacency, null_row=NAN))
    n_features = one.X.shape[1]
    model = mean(
        data.draw(st.sampled_from(MEASUREMENTS)),
        adjacency,
        n_measurements=data.draw(st.integers(1, n_features)),
        sparsity=data.draw(st.sampled_from([None, 1, 2, 9])),
        nonnegative=data.draw(st.booleans()),
        data_norm=data.draw(st.sampled_from([1.0, 9.0])),
        recovery=data.draw(st.sampled_from(["auto", "equality"])),
    )
    with pytest.MonkeyPatch.context() as patch:
        # what is recovered is post-processing, and takes longest
        patch.setattr("skdp._recovery.measurements._MOST_STEPS", 3)
        assert measured(model, one.X, two.X) <= 1.0


@every_kind
def test_measurements_that_are_not_clipped_are_caught(kind, monkeypatch):
    rows = pair(kind, "replace-one")
    assert measured(mean(kind), *rows) <= 1.0

    def unclipped(self, chunk, real=SketchSum.partial):
        return real(replace(self, radius=1e9), chunk)

    monkeypatch.setattr(SketchSum, "partial", unclipped)
    assert measured(mean(kind), *rows) > 1.5


def test_rows_clipped_before_they_are_measured_only_are_caught(monkeypatch):
    """A row of norm 1 is not one whose measurements have norm 1: the printed proof's gap."""
    rows = pair("gaussian", "replace-one")
    monkeypatch.setattr(SketchMean, "query", isometry(SketchMean.query))
    # charged as if no direction grew by more than half
    assert measured(mean(), *rows) > 1.5


def isometry(real):
    class Trusting(SketchSum):
        def partial(self, chunk):
            return SketchSum(self.measurement, 1e9).partial(chunk)

    def query(self):
        return Trusting(real(self).measurement, 1.5)

    return query


@every_adjacency
def test_one_sketch_charged_for_two_is_caught(adjacency, monkeypatch):
    rows, model = pair("gaussian", adjacency), mean(adjacency=adjacency)
    assert measured(model, *rows) <= 1.0

    def one_row(self, adjacency, n_rows, real=SketchSum.sensitivity):
        return real(self, "zero-out", n_rows)

    monkeypatch.setattr(SketchSum, "sensitivity", one_row)
    expected = 2.0 if adjacency == "replace-one" else 1.0
    assert measured(model, *rows) == pytest.approx(expected, rel=1e-3)


def test_a_null_row_that_counts_is_caught(monkeypatch):
    rows, model = pair("gaussian", "zero-out"), mean(adjacency="zero-out")
    assert measured(model, *rows) <= 1.0

    def counted(self, chunk, real=SketchSum.partial):
        null = np.isinf(chunk.norm).sum()
        extra = -self.radius * real(self, chunk) / np.linalg.norm(real(self, chunk))
        return real(self, chunk) + null * extra

    monkeypatch.setattr(SketchSum, "partial", counted)
    assert measured(model, *rows) > 1.3


def test_halved_noise_is_caught(monkeypatch):
    X = pair("gaussian", "replace-one")[0]
    model = mean(n_measurements=60)
    fit = lambda: fitted(model, X)  # noqa: E731
    assert not _audit.scale_is_wrong(_audit.noise_stream(fit))
    real = _mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(_mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(fit))


def test_a_radius_read_off_the_rows_is_caught(monkeypatch):
    rows, model = pair("gaussian", "zero-out"), mean(adjacency="zero-out")
    run, real = SketchMean.run, SketchMean.query

    def peeking(self, curator):
        query = real(self)
        (chunk,) = curator._admitted(None).chunks
        sketches = query.measurement.sketches(chunk.X) * chunk.factor[:, None]
        longest = np.linalg.norm(sketches[np.isfinite(chunk.norm)], axis=1).max()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SketchMean, "query", lambda self: replace(query, radius=longest))
            return run(self, curator)

    assert measured(model, *rows) <= 1.0
    monkeypatch.setattr(SketchMean, "run", peeking)
    # the noise differs between neighbours: it shows who is there
    with pytest.raises(AssertionError):
        measured(model, *rows)


def test_the_matrix_may_be_used_again_and_again():
    """Two fits measure alike; their prices add up, and nothing else is owed."""
    rows = pair("gaussian", "replace-one")
    pairs = []
    for seed in (0, 1):
        model = mean(random_state=seed)
        pairs += _audit.coupled(lambda X, model=model: fitted(model, X), *rows)
    total = math.hypot(
        *(np.linalg.norm(a.statistic - b.statistic) / a.noise.scale for a, b in pairs)
    )
    assert 0.999 * math.sqrt(2) * CLAIMED_MU <= total <= math.sqrt(2) * CLAIMED_MU
    np.testing.assert_array_equal(pairs[0][0].statistic, pairs[1][0].statistic)

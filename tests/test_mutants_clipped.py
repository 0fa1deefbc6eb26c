# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of clipped losses, planted one by one: the coupled trace sees them all.

Every test first shows that the audit passes on the real code.
"""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest

from skdp._losses import clipped
from skdp._losses.classification import HingeLoss, SoftmaxLoss
from skdp._losses.clipped import ClippedLoss
from skdp._losses.regression import PinballLoss, QuarticLoss, SquaredLoss
from skdp._minimize import nonsmooth
from skdp._minimize import smooth as certified
from skdp._minimize.queries import Minimizer
from skdp._minimize.smooth import SMOOTH_SOLVERS
from skdp.privacy import Curator, GaussianMechanism, gdp_mu
from tests import _audit
from tests._neighbours import rows_in_ball
from tests.test_mutants_erm import off_by
from tests.test_sensitivity_clipped import query, worst_pair

EPSILON, DELTA, CLIP = 1.0, 1e-5, 0.3
LOSSES = {
    "squared": SquaredLoss(),
    "quartic": QuarticLoss(),
    "absolute": PinballLoss(),
    "hinge": HingeLoss(),
}
every_loss = pytest.mark.parametrize("base", LOSSES.values(), ids=LOSSES)


def release(q, intercept, data):
    """Release a minimiser with Gaussian noise that takes the whole budget."""
    X, y, null = data
    rows = rows_in_ball(X, y, null, 1.0, intercept)
    curator = Curator(
        lambda: rows, n_rows=len(y), epsilon=EPSILON, delta=DELTA, adjacency="replace-one",
        random_state=None, purpose="test",
    )  # fmt: skip
    return curator.release(q, GaussianMechanism(gdp_mu(EPSILON, DELTA)))


def trace(q, pair, intercept=0.0):
    """Return the coupled mu of a pair, relative to the claim."""
    fit = functools.partial(release, q, intercept)
    return _audit.coupled_mu(fit, *pair) / gdp_mu(EPSILON, DELTA)


@every_loss
@pytest.mark.parametrize("intercept", [0.0, 1.0])
def test_a_clip_that_is_dropped_is_caught(base, intercept, monkeypatch):
    pair = worst_pair(base, "replace-one")
    q = query(base, CLIP, 1, 2 + bool(intercept), intercept)
    assert 0.95 < trace(q, pair, intercept) <= 1
    # neither solvers nor certificates know the clip: they see the residuals that there are
    monkeypatch.setattr(
        ClippedLoss, "targets", lambda loss, target, norm: (target, np.full(len(norm), 3.0))
    )
    # what is released is cut down to its bound: no trace is longer
    assert trace(q, pair, intercept) > 1.3


@every_loss
def test_a_limit_that_forgets_the_norm_is_caught(base, monkeypatch):
    # with the constant feature the row is longer than 1
    pair, q = worst_pair(base, "replace-one"), query(base, CLIP, 1, 3, 1.0)
    assert 0.95 < trace(q, pair, 1.0) <= 1
    monkeypatch.setattr(
        ClippedLoss, "targets", lambda loss, target, norm: (target, np.full(len(norm), loss.clip))
    )
    assert trace(q, pair, 1.0) > 1.3


@every_loss
def test_a_limit_of_the_longest_row_for_all_is_sound_but_wasteful(base, monkeypatch):
    # no privacy bug: short rows are clipped more than they need be
    (X, y, null), (_, other, gone) = worst_pair(base, "replace-one")
    pair, q = ((X / 10, y, null), (X / 10, other, gone)), query(base, 0.05, 1, 2)
    assert 0.9 < trace(q, pair) <= 1
    monkeypatch.setattr(
        ClippedLoss, "targets", lambda loss, target, norm: (target, np.full(len(norm), loss.clip))
    )
    assert trace(q, pair) < 0.2


@pytest.mark.parametrize("base", [SquaredLoss(), QuarticLoss()], ids=str)
def test_a_tolerance_left_out_of_the_sensitivity_is_caught(base, monkeypatch):
    pair = worst_pair(base, "replace-one")
    q = query(base, CLIP, 1, 2, share=0.2)
    # a solver that stops as early, and in as bad a place, as the certificate lets it
    found = functools.partial(off_by, 0.69 * q.tolerance)
    monkeypatch.setitem(SMOOTH_SOLVERS, "newton", found)
    assert 0.95 < trace(q, pair) <= 1
    real = Minimizer.sensitivity

    def forgetful(self, *args):
        facts = real(self, *args)
        return replace(facts, l2=facts.l2 - 2 * self.tolerance)

    monkeypatch.setattr(Minimizer, "sensitivity", forgetful)
    assert trace(q, pair) > 1.1


@pytest.mark.parametrize("base", [PinballLoss(), HingeLoss()], ids=str)
def test_a_duality_gap_that_is_ignored_is_caught(base, monkeypatch):
    pair, q = worst_pair(base, "replace-one"), query(base, CLIP, 1, 2, share=0.01)

    def hasty(J, w, goal, first):
        smoothed = J.smoothed(nonsmooth.last_temperature(J, goal))
        away = np.sign(smoothed.gradient(J.center))
        off = nonsmooth._newton(smoothed, w, 1e-12)[0] - 20 * q.tolerance * away
        return off, sum(nonsmooth.gap_bound(J, smoothed, off, np.zeros_like(w))) <= goal

    monkeypatch.setattr(nonsmooth, "cool", hasty)
    # the certificate finds it out, and the fall-back takes its place
    assert 0.9 < trace(q, pair) <= 1
    monkeypatch.setattr(nonsmooth, "gap_bound", lambda *_: (0.0, 0.0))
    assert trace(q, pair) > 1.1


@pytest.mark.parametrize("base", [SquaredLoss(), QuarticLoss()], ids=str)
def test_a_gradient_that_is_not_looked_at_is_caught(base, monkeypatch):
    pair, q = worst_pair(base, "replace-one"), query(base, CLIP, 1, 2, share=0.01)
    monkeypatch.setitem(SMOOTH_SOLVERS, "newton", functools.partial(off_by, 20 * q.tolerance))
    assert 0.9 < trace(q, pair) <= 1
    monkeypatch.setattr(certified, "distance_bound", lambda *_: 0.0)
    assert trace(q, pair) > 1.1


def test_a_row_norm_that_is_not_the_clipped_losss_would_be_caught(monkeypatch):
    # L X would be less than the clip: the guard in the query refuses the pair of bounds
    loss = ClippedLoss(SquaredLoss(), CLIP, math.sqrt(2.0))
    with pytest.raises(ValueError, match="row_norm"):
        Minimizer(loss, 1.0, 3, 1.0, 1e-6)
    short = Minimizer(loss, 1.0, 3, math.sqrt(2.0), 1e-6)
    object.__setattr__(short, "row_norm", 1.0)
    assert trace(short, worst_pair(SquaredLoss(), "replace-one"), 1.0) > 1.3


def test_clipped_vectors_that_are_let_through_are_caught(monkeypatch):
    # the guard is all there is against them: without it, a field that is not a gradient is
    # solved for (tests/test_sensitivity_clipped.py measures how far its zeros move)
    with pytest.raises(ValueError, match="several classes leave clipping_norm=None"):
        ClippedLoss(SoftmaxLoss(3), CLIP, 1.0)
    monkeypatch.setattr(clipped.ClippedLoss, "_forms", {SoftmaxLoss: clipped.ClippedCurve})
    with pytest.raises(ValueError, match="one output"):
        ClippedLoss(SoftmaxLoss(3), CLIP, 1.0)

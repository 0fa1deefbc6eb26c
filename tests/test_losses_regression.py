# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Losses of regression and clipped losses: against formulas of their own."""

import copy
import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp._losses.clipped import ClippedLoss
from skdp._losses.regression import HuberLoss, PinballLoss, QuarticLoss, SquaredLoss

N = 600
VALUES = {
    SquaredLoss(): lambda u: u**2 / 2,
    QuarticLoss(): lambda u: u**4 / 4,
    HuberLoss(0.7): lambda u: u**2 / 2 if abs(u) <= 0.7 else 0.7 * (abs(u) - 0.35),
    PinballLoss(): abs,
    PinballLoss(0.9): lambda u: 2 * max(0.1 * u, -0.9 * u),
}
MARGINS = (LogisticLoss(), LogisticLoss(1.0, 0.1), LogisticLoss(-2.0, 3.0), HingeLoss())
LOSSES = (*VALUES, *MARGINS)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)
every_value = pytest.mark.parametrize(("loss", "value"), VALUES.items(), ids=list(map(str, VALUES)))
every_clip = pytest.mark.parametrize("clip", [0.03, 0.4, 5.0])
ROW_NORM = 1.25


def eps_of(loss):
    """Return the error of a loss's own residuals: those of LogisticLoss end at that of 1."""
    return 3e-16 if isinstance(loss, LogisticLoss) else 0.0


def is_kinked(loss):
    return isinstance(loss, (PinballLoss, HingeLoss))


def points(loss, seed=0, n=N):
    """Return predictions, targets and norms of rows, some short and some null."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) * rng.choice([0.1, 1.0, 30.0], n)
    target = rng.choice([-1.0, 1.0], n)
    if loss in VALUES:
        target = rng.standard_t(2.1, size=n) * 3
    norm = ROW_NORM * rng.choice([1.0, 0.5, 1e-3, 1e-100, np.inf], n)
    return z, target, norm


def clipped_points(loss, clip, seed=0):
    form = ClippedLoss(loss, clip, ROW_NORM)
    z, target, norm = points(loss, seed)
    return form, z, form.targets(target, norm), norm


@every_value
def test_values_are_those_of_the_definition(loss, value):
    z, target, _ = points(loss)
    expected = [value(u) for u in z - target]
    assert_allclose(loss.value(z, target), expected, rtol=1e-12)
    assert loss.encode(target) is target


@every_loss
def test_residuals_and_curvatures_are_derivatives(loss):
    z, target, _ = points(loss)
    step = 1e-6
    away = np.abs(z - target) > 1e-4
    if isinstance(loss, HuberLoss):
        away &= np.abs(np.abs(z - target) - loss.threshold) > 1e-4
    slope = (loss.value(z + step, target) - loss.value(z - step, target)) / (2 * step)
    found = loss.residual(z.copy(), target)
    assert_allclose(found[away], slope[away], rtol=1e-5, atol=1e-6)
    bend = loss.residual(z + step, target) - loss.residual(z - step, target)
    found = loss.curvature(z, target)
    assert_allclose(found[away], bend[away] / (2 * step), rtol=1e-5, atol=1e-5)
    assert np.abs(loss.residual(z, target)).max() <= loss.lipschitz
    assert found.max() <= loss.smoothness


def test_a_constant_that_minimises_pinball_losses_is_the_quantile():
    target = np.random.default_rng(0).pareto(1.5, size=1001)
    for q in (0.1, 0.5, 0.9):
        total = [PinballLoss(q).value(np.full(1001, c), target).sum() for c in target]
        assert target[np.argmin(total)] == pytest.approx(np.quantile(target, q), rel=1e-2)


@pytest.mark.covering
@every_loss
@every_clip
def test_clipped_residuals_are_clipped_and_their_integral_is_the_value(loss, clip):
    form, z, target, norm = clipped_points(loss, clip)
    limit = np.where(np.isfinite(norm), clip / np.where(np.isfinite(norm), norm, 1.0), np.inf)
    residual = form.residual(z.copy(), target)
    expected = np.clip(loss.residual(z.copy(), target[0]), -limit, limit)
    kept = np.isfinite(norm)
    # LogisticLoss loses digits of small residuals that the clipped loss keeps
    assert_allclose(residual[kept], expected[kept], rtol=1e-15, atol=eps_of(loss))
    assert (np.abs(residual[kept]) * norm[kept]).max() <= clip * (1 + 1e-15)
    assert np.abs(residual[kept] * norm[kept]).max() <= form.lipschitz * ROW_NORM * (1 + 1e-15)
    for i in np.flatnonzero(kept)[:40]:
        # kinks and turning points are near the target
        grid = target[0][i] + np.append(np.linspace(-9, 9, 20001), np.linspace(-300, 300, 20001))
        grid = np.unique(np.append(np.clip(grid, min(z[i], 0), max(z[i], 0)), [z[i], 0.0]))
        r = loss.residual(grid.copy(), np.full(len(grid), target[0][i]))
        area = np.trapezoid(np.clip(r, -limit[i], limit[i]), grid) * np.sign(z[i])
        assert form.rise(z, target)[i] == pytest.approx(area, rel=1e-3, abs=2e-3)


@every_loss
@every_clip
def test_clipped_values_are_convex_below_the_loss_and_rise_from_zero(loss, clip):
    form, z, target, norm = clipped_points(loss, clip)
    other = points(loss, 1)[0]
    value = form.value(z, target)
    assert (value >= 0.0).all()
    kept = np.isfinite(norm)
    assert (value <= loss.value(z, target[0]) * (1 + 1e-12) + 1e-12)[kept].all()
    middle = form.value((z + other) / 2, target)
    assert (middle <= (value + form.value(other, target)) / 2 * (1 + 1e-12) + 1e-12).all()
    # above every tangent
    r = form.residual(z.copy(), target)
    scale = np.abs(value) + np.abs(r * (other - z)) + 1
    assert (form.value(other, target) >= value + r * (other - z) - 1e-11 * scale).all()
    start = form.value(np.zeros(N), target)
    assert_allclose(form.rise(z, target), value - start, rtol=1e-9, atol=1e-11 * scale.max())
    assert_array_equal(form.rise(np.zeros(N), target), 0.0)


@every_loss
def test_a_limit_that_does_not_bind_leaves_the_loss_to_the_last_bit(loss):
    form, (z, target, _) = ClippedLoss(loss, 1e12, ROW_NORM), points(loss)
    pair = form.targets(target, np.full(N, ROW_NORM))
    kept = z.copy()
    for name in ("value", "curvature"):
        found, expected = (getattr(form, name)(z, pair), getattr(loss, name)(z, target))
        if isinstance(loss, HuberLoss) and name == "value":
            # the tail is written in another way
            assert_allclose(found, expected, rtol=1e-15)
        else:
            assert_array_equal(found, expected)
    assert_array_equal(z, kept)
    assert_allclose(
        form.residual(z.copy(), pair), loss.residual(z.copy(), target), rtol=0, atol=eps_of(loss)
    )
    if hasattr(loss, "rise"):
        assert_array_equal(form.rise(z, pair), loss.rise(z, target))
    if is_kinked(loss):
        r = np.linspace(-1, 1, N)
        r = np.clip(r, *form.slopes(z, pair)[1:])
        gaps = form.conjugate_gap(z, r, pair), loss.conjugate_gap(z, r, target)
        assert_allclose(*gaps, rtol=1e-15, atol=1e-15)


@every_loss
@every_clip
def test_stated_constants_hold_and_are_attained(loss, clip):
    form = ClippedLoss(loss, clip, ROW_NORM)
    rng = np.random.default_rng(3)
    norm = ROW_NORM * np.append(np.ones(4000), rng.uniform(1e-3, 1, 4000))
    target = rng.choice([-1.0, 1.0], 8000) * (1.0 if loss in MARGINS else 0.0)
    margin, T = getattr(loss, "margin", 0.0), getattr(loss, "temperature", 1.0) or 1.0
    z = margin * target + T * rng.normal(size=8000) * rng.choice([0.01, 1.0, 8.0], 8000)
    pair = form.targets(target, norm)
    r, c = form.residual(z.copy(), pair), form.curvature(z, pair)
    share = norm / ROW_NORM
    reach = (np.abs(r) * share).max()
    assert 0.97 * form.lipschitz <= reach <= form.lipschitz * (1 + 1e-12)
    assert form.lipschitz * form.row_norm <= clip * (1 + 1e-15)
    assert np.abs(r).max() <= form.lipschitz_l1
    if is_kinked(loss):
        assert math.isinf(form.smoothness)
        _, a, b = form.slopes(z, pair)
        for width, bound in (((b - a) * share, form.diameter), (b - a, form.widest)):
            assert 0.99 * bound <= width.max() <= bound * (1 + 1e-12)
        return
    assert form.smoothness == form.trace
    assert 0.85 * form.smoothness <= (c * share**2).max() <= form.smoothness * (1 + 1e-12)
    assert c.max() <= form.smoothness_l1
    assert not form.tied
    assert form.n_outputs == 1


def test_the_curvature_of_clipped_fourth_powers_is_what_the_formula_says():
    assert ClippedLoss(QuarticLoss(), 0.2, 2.0).smoothness == pytest.approx(3 * 0.1 ** (2 / 3))
    assert ClippedLoss(LogisticLoss(), 0.2, 2.0).smoothness == pytest.approx(0.09)
    assert ClippedLoss(LogisticLoss(), 5.0, 2.0).smoothness == 0.25


@pytest.mark.filterwarnings("error")
@every_loss
def test_nothing_overflows_into_a_warning_or_into_nan(loss):
    huge = np.array([1e300, -1e300, 1e-300, 0.0, 1.0, -1.7e308, 1.7e308])
    target, z = (a.ravel() for a in np.meshgrid(huge, [0.0, 1e300, -1e300, 1e-200, -3.0, 1e308]))
    if loss in MARGINS:
        target = np.where(target > 0, 1.0, -1.0)
    with np.errstate(all="raise", under="ignore"):
        assert not np.isnan(loss.value(z, target)).any()
        assert not np.isnan(loss.residual(z.copy(), target)).any()
        assert not np.isnan(loss.curvature(z, target)).any()
        for clip in (1e-300, 1e-3, 1.0, 1e200):
            form = ClippedLoss(loss, clip, 1.0)
            for norm in (1e-100, 1e-3, 1.0, np.inf):
                pair = form.targets(target, np.full(len(z), norm))
                forms = [form, form.smoothed(1e-9)] if is_kinked(loss) else [form]
                for one in forms:
                    assert not np.isnan(one.value(z, pair)).any()
                    assert not np.isnan(one.rise(z, pair)).any()
                    assert np.isfinite(one.residual(z.copy(), pair)).all()
                    assert np.isfinite(one.curvature(z, pair)).all()


@every_clip
@pytest.mark.parametrize("loss", [PinballLoss(), PinballLoss(0.8), HingeLoss()], ids=str)
def test_smoothed_kinks_are_above_and_their_derivatives_are_right(loss, clip):
    form, z, target, _ = clipped_points(loss, clip)
    for T in (1.0, 0.03):
        smooth = form.smoothed(T)
        above = smooth.value(z, target) - form.value(z, target)
        assert above.min() >= -1e-12
        assert above.max() <= form.looseness * T
        r = smooth.residual(z.copy(), target)
        gap = form.conjugate_gap(z, r, target)
        assert 0.0 <= gap.min() <= gap.max() <= form.looseness * T / 2 * (1 + 1e-9)
        step = 1e-6 * T
        slope = smooth.value(z + step, target) - smooth.value(z - step, target)
        assert_allclose(r, slope / (2 * step), atol=1e-5)
        clear = np.abs(np.abs(form.slopes(z, target)[0]) - 2 * T) > 2 * step
        bend = smooth.residual(z + step, target) - smooth.residual(z - step, target)
        c = smooth.curvature(z, target)
        assert_allclose(c[clear], bend[clear] / (2 * step), rtol=1e-6, atol=1e-6)
        d = np.random.default_rng(1).normal(size=N) * 0.1
        exact = smooth.residual(z + d, target)
        assert_allclose(smooth.stepped(z.copy(), d, target), exact, atol=1e-12)
        scale = np.abs(form.value(z, target)).max()
        start = smooth.value(np.zeros(N), target)
        rise = smooth.value(z, target) - start
        assert_allclose(smooth.rise(z, target), rise, atol=1e-12 * scale + 1e-12)


@pytest.mark.parametrize("loss", [PinballLoss(), PinballLoss(0.8), HingeLoss()], ids=str)
def test_gaps_are_those_of_the_definition(loss):
    form, z, target, _ = clipped_points(loss, 0.4)
    other = points(loss, 5)[0]
    r = form.residual(other.copy(), target)
    # loss(z) - <r, z> is least where r is a subgradient
    excess = form.value(z, target) - form.value(other, target) - r * (z - other)
    found = form.conjugate_gap(z, r, target)
    smooth = other != form.slopes(other, target)[0]
    assert_allclose(found[smooth], excess[smooth], atol=1e-11)
    assert found.min() >= 0.0


def test_a_row_off_the_kink_has_no_gap_however_far_its_target_is():
    target = np.array([1e300, -1e300, 1e17])
    for loss in (PinballLoss(0.3), ClippedLoss(PinballLoss(0.3), 0.1, 1.0)):
        known = loss.targets(target, np.full(3, 0.7))
        r = loss.smoothed(1e-3).stepped(np.full(3, 2.0), np.full(3, 1e-9), known)
        assert_array_equal(loss.conjugate_gap(np.full(3, 2.0), r, known), 0.0)


@every_loss
def test_copies_are_equal(loss):
    form = ClippedLoss(loss, 0.5, 1.0)
    for other in (copy.deepcopy(form), pickle.loads(pickle.dumps(form))):
        assert other == form
        assert type(other) is type(form)
    assert isinstance(form, ClippedLoss)
    assert form.name == f"{type(loss).__name__} clipped to 0.5"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ClippedLoss(SoftmaxLoss(3), 1.0, 1.0), "not the gradient of a convex function"),
        (lambda: ClippedLoss(HingeLoss(4), 1.0, 1.0), "one output; got 4"),
        (lambda: ClippedLoss(ClippedLoss(SquaredLoss(), 1.0, 1.0), 1.0, 1.0), "must be one of"),
        (lambda: ClippedLoss(SquaredLoss(), 0.0, 1.0), "clip must be"),
        (lambda: ClippedLoss(SquaredLoss(), math.nan, 1.0), "clip must be"),
        (lambda: ClippedLoss(SquaredLoss(), math.inf, 1.0), "clip must be"),
        (lambda: ClippedLoss(SquaredLoss(), 1.0, -1.0), "row_norm must be"),
        (lambda: HuberLoss(0.0), "threshold must be"),
        (lambda: HuberLoss(math.nan), "threshold must be"),
        (lambda: PinballLoss(1.0), "quantile must be"),
        (lambda: PinballLoss(math.nan), "quantile must be"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()

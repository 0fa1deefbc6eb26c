# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The constants that losses state, and their derivatives."""

import numpy as np
import pytest
from scipy.special import log_softmax

from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss

RNG = np.random.default_rng(0)
N = 4000


def logistic_case():
    z = RNG.normal(scale=3, size=N) * RNG.choice([0.01, 1, 100], N)
    target = RNG.choice([-1.0, 1.0], N)
    return LogisticLoss(), z, target, lambda z: np.logaddexp(0, -target * z)


def softmax_case(n_outputs=3):
    z = RNG.normal(scale=3, size=(N, n_outputs)) * RNG.choice([0.01, 1, 100], (N, 1))
    z[: N // 2, 2:] -= 50.0  # two classes share all the mass: the most curved case
    target = RNG.integers(0, n_outputs, N)
    value = lambda z: -log_softmax(z, axis=1)[np.arange(N), target]  # noqa: E731
    return SoftmaxLoss(n_outputs), z, target, value


CASES = pytest.mark.parametrize("case", [logistic_case, softmax_case], ids=["logistic", "softmax"])


@CASES
def test_the_residual_is_the_derivative_of_the_loss(case):
    loss, z, target, value = case()
    direction, step = RNG.normal(size=z.shape), 1e-6
    along = (value(z + step * direction) - value(z - step * direction)) / (2 * step)
    found = loss.residual(z.copy(), target) * direction
    np.testing.assert_allclose(found.reshape(N, -1).sum(axis=1), along, atol=1e-6)


@CASES
def test_stated_constants_hold_and_are_nearly_attained(case):
    loss, z, target, _ = case()
    residual = loss.residual(z.copy(), target).reshape(N, -1)
    length = np.linalg.norm(residual, axis=1).max()
    assert 0.99 * loss.lipschitz <= length <= loss.lipschitz * (1 + 1e-12)
    z[: N // 4] *= 1e-4  # near the point of largest curvature
    if z.ndim == 2:
        z[: N // 4, 2:] = -50.0
    move = 1e-4 * RNG.normal(size=z.shape)
    if z.ndim == 2:
        move[: N // 4] = 1e-4 * np.array([1.0, -1.0, 0.0])
    change = loss.residual(z + move, target) - loss.residual(z.copy(), target)
    norm = np.linalg.norm(change.reshape(N, -1), axis=1)
    ratio = (norm / np.linalg.norm(move.reshape(N, -1), axis=1)).max()
    assert 0.99 * loss.smoothness <= ratio <= loss.smoothness * (1 + 1e-6)


SMOOTH = {
    "logistic": LogisticLoss(),
    "logistic, margin": LogisticLoss(1.0, 0.3),
    "logistic, sharp": LogisticLoss(1.0, 1e-3),
    "softmax": SoftmaxLoss(4),
    "softmax, margin": SoftmaxLoss(3, 1.0, 0.3),
    "softmax, sharp": SoftmaxLoss(3, 1.0, 1e-3),
}
HINGES = {"hinge": HingeLoss(), "Crammer-Singer": HingeLoss(4)}
every_smooth = pytest.mark.parametrize("loss", SMOOTH.values(), ids=SMOOTH)
every_hinge = pytest.mark.parametrize("loss", HINGES.values(), ids=HINGES)
every_loss = pytest.mark.parametrize(
    "loss", [*SMOOTH.values(), *HINGES.values()], ids=[*SMOOTH, *HINGES]
)


def points(loss, n=N, scale=1.5, seed=1):
    """Return predictions, a third of them near the kink, and targets."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, max(2, loss.n_outputs), n)
    target = loss.encode(codes)
    if loss.n_outputs == 1:
        z = rng.normal(scale=scale, size=n)
        z[::3] = loss.margin * target[::3] + loss.temperature * rng.normal(size=z[::3].size)
        return z, target
    z = rng.normal(scale=scale, size=(n, loss.n_outputs))
    z[::3] = loss.temperature * rng.normal(size=z[::3].shape)
    z[np.arange(0, n, 3), target[::3]] += loss.margin
    return z, target


def naive(loss, z, t):
    """Return the loss of one row as its definition says."""
    T = np.longdouble(loss.temperature)
    if loss.n_outputs == 1:
        short = [loss.margin - t * z, 0.0]
    else:
        short = [z[k] + loss.margin * (k != t) - z[t] for k in range(loss.n_outputs)]
    largest = max(short)
    if T == 0.0:
        return largest
    return largest + T * np.log(sum(np.exp((np.longdouble(s) - largest) / T) for s in short))


def hessians(loss, z, target):
    """Return the Hessians in z that `curvature` tells."""
    c = loss.curvature(z.copy(), target)
    if loss.n_outputs == 1:
        return c[:, None, None]
    outer = c[:, :, None] * c[:, None, :]
    return (np.eye(loss.n_outputs) * c[:, None, :] - outer) / loss.temperature


@every_loss
@pytest.mark.parametrize("scale", [1.5, 1e3])
def test_values_are_those_of_the_definition(loss, scale):
    z, target = points(loss, 300, scale)
    kept = z.copy()
    expected = [naive(loss, a, t) for a, t in zip(z, target, strict=True)]
    np.testing.assert_allclose(
        loss.value(z, target), np.array(expected, float), rtol=1e-12, atol=1e-14
    )
    np.testing.assert_array_equal(z, kept)


@every_loss
def test_huge_predictions_overflow_nowhere(loss):
    z, target = points(loss, 50)
    for size in (1e10, 1e150, 1e290):
        big = z * size
        value = loss.value(big, target)
        assert np.isfinite(value).all()
        assert (value >= 0).all()
        residual = loss.residual(big.copy(), target)
        assert np.isfinite(residual).all()
        assert np.isfinite(loss.curvature(big.copy(), target)).all()
        assert (loss.conjugate_gap(big, residual, target) <= 1e-12 * size).all()


@every_smooth
def test_derivatives_are_those_of_the_value(loss):
    z, target = points(loss)
    step = 1e-4 * loss.temperature * np.random.default_rng(2).normal(size=z.shape)
    shaped = lambda a: a.reshape(N, -1)  # noqa: E731
    residual = shaped(loss.residual(z.copy(), target))
    slope = loss.value(z + step, target) - loss.value(z - step, target)
    found = 2 * (residual * shaped(step)).sum(axis=1)
    np.testing.assert_allclose(found, slope, atol=1e-5 * np.abs(step).max())
    change = loss.residual(z + step, target) - loss.residual(z - step, target)
    found = 2 * np.einsum("nij,nj->ni", hessians(loss, z, target), shaped(step))
    np.testing.assert_allclose(found, shaped(change), atol=1e-7)


@every_smooth
def test_constants_of_the_second_derivative_hold_and_are_attained(loss):
    z, target = points(loss)
    if loss.n_outputs > 1:
        # all classes share the mass, then two of them
        z[0] = 0.0
        z[0, target[0]] = loss.margin
        z[1] = z[0] - 1e3
        z[1, target[1]] = loss.margin
        z[1, target[1] - 1] = 0.0
    else:
        z[0] = loss.margin * target[0]
    found = hessians(loss, z, target)
    eigenvalues = np.linalg.eigvalsh(found)
    trace = np.trace(found, axis1=1, axis2=2)
    assert eigenvalues.min() >= -1e-9 * loss.smoothness
    assert 0.999 <= eigenvalues.max() / loss.smoothness <= 1 + 1e-9
    assert 0.999 <= trace.max() / loss.trace <= 1 + 1e-9
    if loss.tied:
        a = np.abs(loss.residual(z.copy(), target))
        np.testing.assert_allclose(
            found.ravel(), a * (1 - a) / loss.temperature, atol=1e-9 * loss.smoothness
        )


@every_loss
def test_residuals_stay_in_their_set(loss):
    z, target = points(loss, scale=100.0)
    r = loss.residual(z.copy(), target)
    if loss.n_outputs == 1:
        assert loss.corners == 1
        assert ((-target * r >= 0) & (-target * r <= 1)).all()
        return
    assert loss.corners == loss.n_outputs - 1
    np.testing.assert_allclose(r.sum(axis=1), 0.0, atol=1e-12)
    own = r[np.arange(N), target]
    assert ((own <= 0) & (own >= -1)).all()
    r[np.arange(N), target] = 0.0
    assert (r >= 0).all()
    assert np.linalg.norm(loss.residual(z, target), axis=1).max() <= loss.lipschitz * (1 + 1e-12)


@every_hinge
def test_smoothed_hinges_tend_to_the_hinge_from_above(loss):
    z, target = points(loss, scale=2.0)
    exact = loss.value(z, target)
    for T in (1.0, 1e-2, 1e-5, 1e-12):
        above = loss.smoothed(T).value(z, target) - exact
        assert above.min() >= -1e-14
        assert above.max() <= T * np.log(max(2, loss.n_outputs)) + 1e-14
    clear = np.abs(exact) > 1e-3
    sharp = loss.smoothed(1e-7).residual(z.copy(), target)
    if loss.n_outputs == 1:
        np.testing.assert_allclose(sharp[clear], loss.residual(z, target)[clear], atol=1e-9)


@every_hinge
def test_a_residual_of_the_hinge_is_a_subgradient(loss):
    z, target = points(loss)
    other, _ = points(loss, seed=2)
    r = loss.residual(z.copy(), target)
    linear = loss.value(z, target) + (r * (other - z)).reshape(N, -1).sum(axis=1)
    assert (loss.value(other, target) >= linear - 1e-12).all()


def test_ties_and_kinks_of_the_hinge_are_settled():
    binary, several = HingeLoss(), HingeLoss(3)
    np.testing.assert_array_equal(
        binary.residual(np.array([1.0, 0.5, -1.0]), np.array([1.0, 1, -1])), [0, -1, 0]
    )
    z = np.array([[0.0, 0, 1], [0, 0, 0.5]])
    np.testing.assert_array_equal(several.residual(z, np.array([2, 2])), [[0, 0, 0], [1, 0, -1]])


@every_loss
def test_the_gap_is_zero_at_the_residual_and_nowhere_negative(loss):
    z, target = points(loss)
    other, _ = points(loss, seed=3)
    r = loss.residual(z.copy(), target)
    assert loss.conjugate_gap(z, r, target).max() <= 1e-13
    kept = r.copy()
    gap = loss.conjugate_gap(other, r, target)
    assert gap.min() >= 0.0
    np.testing.assert_array_equal(r, kept)
    # loss(other) - <r, other> is least at z, where the gap is zero
    excess = loss.value(other, target) - loss.value(z, target)
    excess -= (r * (other - z)).reshape(N, -1).sum(axis=1)
    np.testing.assert_allclose(gap, excess, atol=1e-12)


@every_smooth
def test_stepped_residuals_are_first_order_and_feasible(loss):
    z, target = points(loss)
    direction = np.random.default_rng(4).normal(size=z.shape)
    step = 1e-4 * loss.temperature * direction
    exact = loss.residual(z + step, target)
    np.testing.assert_allclose(loss.stepped(z.copy(), step, target), exact, atol=2e-7)
    r = loss.stepped(z.copy(), 1e3 * direction, target)
    assert HingeLoss(loss.n_outputs).conjugate_gap(z, r, target).min() >= 0.0
    if loss.n_outputs > 1:
        np.testing.assert_allclose(r.sum(axis=1), 0.0, atol=1e-12)


def test_default_losses_are_numerically_what_they_were():
    z, target = points(LogisticLoss(), scale=20.0)
    expected = (np.tanh(z * 0.5) - target) * 0.5
    np.testing.assert_array_equal(LogisticLoss().residual(z.copy(), target), expected)
    z, target = points(SoftmaxLoss(4), scale=20.0)
    expected = np.exp(z - z.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    expected[np.arange(N), target] -= 1.0
    np.testing.assert_array_equal(SoftmaxLoss(4).residual(z.copy(), target), expected)

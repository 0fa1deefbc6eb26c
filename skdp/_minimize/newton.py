# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Damped Newton steps."""

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, cg

#: up to that size the Hessian is formed and factorised
DENSE_SIZE = 2048
_MAX_STEPS = 40
_COOLED_STEPS = 200
_COOLING = 6.0
# targets may lie 1e-14 apart, in units of the step that the penalty alone would make
_MAX_HALVINGS = 60


def newton_step(objective, w, gradient):
    """Return minus the inverse Hessian times the gradient.

    Large Hessians are not formed: conjugate gradients stop as early as superlinear
    convergence allows. A matrix that rounding made indefinite is shifted until it is
    not; whatever comes out, the certificate is what counts.
    """
    if objective.size > DENSE_SIZE:
        operator = LinearOperator(
            (objective.size, objective.size),
            matvec=lambda d: objective.hessian_product(w, d.ravel()),
            dtype=np.float64,
        )
        step, _ = cg(operator, -gradient, rtol=1e-3, maxiter=500)
        return step
    hessian = objective.hessian(w)
    diagonal, shift = hessian.diagonal().copy(), 0.0
    for _ in range(20):
        try:
            factor = linalg.cho_factor(hessian, lower=True, check_finite=False)
            return -linalg.cho_solve(factor, gradient, check_finite=False)
        except linalg.LinAlgError:
            shift = max(10 * shift, 1e-15 * diagonal.max())
            np.fill_diagonal(hessian, diagonal + shift)
    return -gradient / objective.bounds.total_smoothness


def line_search(objective, w, value, gradient, step):
    """Return a better point, its value and its gradient; None if no step is better.

    The step is halved until Armijo's rule holds; where rounding hides the decrease of the
    value, until the gradient gets shorter.
    """
    slope, norm = gradient @ step, np.linalg.norm(gradient)
    hidden = 1e-14 * abs(value)
    length = 1.0
    for _ in range(_MAX_HALVINGS):
        point = w + length * step
        new_value, new_gradient = objective.value_and_gradient(point)
        decrease = value - new_value
        seen = decrease >= max(-1e-4 * length * slope, hidden)
        if seen or (abs(decrease) <= hidden and np.linalg.norm(new_gradient) < norm):
            return point, new_value, new_gradient
        length /= 2
    return None


def newton(objective, start, met, max_steps=_MAX_STEPS):
    """Minimise by damped Newton steps until ``met(w, gradient)``.

    Parameters
    ----------
    objective : object
        With `value_and_gradient`, `hessian`, `hessian_product`, `size` and `bounds`.
    start : ndarray of shape (size,)
        First point.
    met : callable
        Tells whether a point is good enough.
    max_steps : int
        Most losses that Newton's method is good at need ten.

    Returns
    -------
    w : ndarray of shape (size,)
        A point that is good enough, or the last one before no step was better.
    """
    w = start
    value, gradient = objective.value_and_gradient(w)
    for _ in range(max_steps):
        if met(w, gradient):
            break
        better = line_search(objective, w, value, gradient, newton_step(objective, w, gradient))
        if better is None:
            break
        w, value, gradient = better
    return w


def cooled_newton(objective, start, met):
    """Minimise by Newton's method at falling temperatures, the loss's own being the last.

    For nearly separable rows and sharp losses, where Newton's method alone makes short
    steps. At a temperature as high as the predictions can be, the loss is nearly
    quadratic. Begins at the centre, whatever `start` is; otherwise parameters and result
    are those of `newton`.
    """
    bounds, last = objective.bounds, objective.loss.temperature
    w = np.array(objective.center, dtype=np.float64)
    temperature = bounds.row_norm * (bounds.center_norm + bounds.reach)
    # by strong convexity, within a hundredth of what the predictions can be
    enough = 0.01 * bounds.ridge * bounds.reach
    while temperature > last:
        warm = objective.at_temperature(temperature)
        w = newton(warm, w, lambda _, gradient: np.linalg.norm(gradient) <= enough)
        temperature /= _COOLING
    return newton(objective, w, met, _COOLED_STEPS)

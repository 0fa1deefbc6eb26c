# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Minimisers of smooth objectives, certified by the norm of the gradient.

Certificate. J is ridge-strongly convex, so ``|w - w*| <= |grad J(w)| / ridge``. The
gradient is computed anew at the point that is returned, and what rounding may hide is
added to its norm.

Methods. Damped Newton steps for few coefficients, L-BFGS for many, accelerated gradient steps with
a number of steps known beforehand, and cvxpy. Each returns a point; only the certificate counts.
"""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.linalg.blas import daxpy, ddot
from scipy.sparse.linalg import LinearOperator, cg

from skdp._recovery.measurements import solved_in_silence

# The public constants of an objective: its size, and bounds on rounding errors.
#
# The objective is J(w) = sum of n losses + ridge/2 |w - center|^2 + <linear, w>, a loss
# being a convex function >= 0 of the predictions of one row of norm at most X.


# unit roundoff
_U = 2.0**-53
# A partial sum has at most that many rows, and costs one rounding each: see
# skdp/_rows/base.py. The rest counts what happens to one row before it is summed.
_SUM_ROUNDINGS = 32768 + 100


@dataclass(frozen=True)
class Bounds:
    """Public constants of an objective.

    Parameters
    ----------
    n_rows, n_coefs, n_outputs : int
        Numbers of rows, or what they count together at most; of coefficients per output that a
        row may touch; and of outputs.
    row_norm : float
        Bound X on the norm of a row.
    lipschitz, smoothness, start_loss : float
        Of one row's loss in the predictions: bounds on its gradient, on its second
        derivatives, and on its value at `center`.
    ridge : float
        Strong convexity.
    center_norm, linear_norm : float, default=0.0
        Norms of `center` and `linear`.
    diameter : float, default=None
        Bound on the length of a row's set of residuals, times its norm over X; None for
        `lipschitz`.
    offset : float, default=1.0
        Size of the constants that a prediction is added to.
    """

    n_rows: int
    n_coefs: int
    n_outputs: int
    row_norm: float
    lipschitz: float
    smoothness: float
    start_loss: float
    ridge: float
    center_norm: float = 0.0
    linear_norm: float = 0.0
    diameter: float | None = None
    offset: float = 1.0

    @property
    def total_smoothness(self):
        """Bound on the largest eigenvalue of the Hessian."""
        return self.n_rows * self.smoothness * self.row_norm * self.row_norm + self.ridge

    @property
    def start_gradient(self):
        """Bound on the gradient at `center`."""
        return self.n_rows * self.lipschitz * self.row_norm + self.linear_norm

    @property
    def reach(self):
        """Bound on the distance of the minimiser from `center`.

        Notes
        -----
        (i) Its gradient vanishes: ridge |w - center| <= n L X + |linear|. (ii) No loss is
        negative: ridge/2 |w - center|^2 - |linear| |w - center| <= n * start_loss.
        """
        b = self.linear_norm
        cost = self.n_rows * self.start_loss
        return min(
            self.start_gradient / self.ridge,
            (b + math.sqrt(b * b + 2 * self.ridge * cost)) / self.ridge,
        )

    def prediction_error(self, norm):
        """Bound the rounding error of one row's predictions at coefficients of that norm.

        A product of p terms errs by p roundings, relative to the product of the norms; the
        row itself and what a loss does to a prediction take the other ones.
        """
        return (self.n_coefs + self.n_outputs + 30) * _U * (self.row_norm * norm + self.offset)

    def sum_error(self, distance):
        """Bound the rounding error of a sum of residuals times rows, penalty included.

        The penalty is counted at that distance from `center`.
        """
        rows = self.n_rows * self.lipschitz * self.row_norm
        rounded = (_SUM_ROUNDINGS + self.n_outputs) * _U * rows
        return rounded + 10 * _U * (self.ridge * (distance + self.center_norm) + self.linear_norm)

    def gradient_error(self, distance):
        """Bound the rounding error of the gradient at that distance from `center`."""
        shift = self.prediction_error(self.center_norm + distance)
        rows = self.n_rows * self.smoothness * self.row_norm
        return rows * shift + self.sum_error(distance)

    def gap_error(self, distance):
        """Bound the rounding error of a duality gap at that distance from `center`.

        The gap of a row has a slope in its predictions that is the difference of two
        residuals, hence at most the diameter of their set: L for classes, b - a for a loss
        with slopes a < b.
        """
        shift = self.prediction_error(self.center_norm + distance)
        slope = self.lipschitz if self.diameter is None else self.diameter
        return self.n_rows * slope * shift


def reachable_tolerance(bounds):
    """Return a distance that a certificate can reach, whatever the rows are.

    Parameters
    ----------
    bounds : Bounds
        Public constants of the objective.

    Returns
    -------
    tolerance : float
        Several times what rounding errors alone may amount to in the certificate:
        4 (error of the gradient) / ridge for a smooth loss; for another one the root of
        8 (error of the duality gap) / ridge, a prediction being counted as having at
        least 300 roundings, which is what the homotopy was seen to need.
    """
    if math.isfinite(bounds.smoothness):
        return 4 * bounds.gradient_error(bounds.reach) / bounds.ridge
    few = 300 / (bounds.n_coefs + bounds.n_outputs + 30)
    gap = bounds.gap_error(bounds.reach) * max(few, 1.0)
    gap += bounds.sum_error(bounds.reach) ** 2 / bounds.ridge
    return math.sqrt(8 * gap / bounds.ridge)


def check_tolerance(tolerance, bounds):
    """Raise a ValueError for a tolerance that rounding errors do not allow."""
    least = reachable_tolerance(bounds)
    if not tolerance >= least:
        raise ValueError(
            f"tolerance must be at least {least:.3g}, what rounding errors allow; "
            f"got {tolerance!r}."
        )


def distance_bound(objective, w, gradient):
    """Return a proved bound on the distance of w from the minimiser; inf or NaN if none."""
    away = np.linalg.norm(w - objective.center)
    return (np.linalg.norm(gradient) + objective.bounds.gradient_error(away)) / (
        objective.bounds.ridge
    )


# Damped Newton steps.


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
    quadratic. Begins at the center, whatever `start` is; otherwise parameters and result
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


# Quasi-Newton steps, for many coefficients.
#
# Nocedal's limited-memory BFGS, the inverse Hessian being built up from the inverse of the
# Hessian's diagonal at the first point: columns of sparse rows differ by orders of magnitude
# in how often they are used, and rare ones hardly interact. A step costs one look at the rows
# and a few products of vectors; solvers for bounded problems spend most of their time beside
# the rows when there are a million coefficients.


# pairs of steps that are remembered: more save looks at the rows, but take memory and time
_MOST_PAIRS, _FEWEST_PAIRS = 40, 8
_REMEMBERED = 1 << 22
_MAX_QUASI_NEWTON_STEPS = 2000


def lbfgs(objective, start, met):
    """Minimise by preconditioned L-BFGS steps until ``met(w, gradient)``.

    Parameters
    ----------
    objective : object
        With `value_and_gradient` and `hessian_diagonal`.
    start : ndarray of shape (size,)
        First point.
    met : callable
        Tells whether a point is good enough.

    Returns
    -------
    w : ndarray of shape (size,)
        A point that is good enough, or the last one before no step was better.

    Notes
    -----
    The objective is convex, so every pair of steps has positive curvature but for rounding.
    Memory of curvature that rounding has spoilt is thrown away once before giving up.
    """
    inverse = 1.0 / objective.hessian_diagonal(start)
    pairs = min(max(_REMEMBERED // len(start), _FEWEST_PAIRS), _MOST_PAIRS)
    w, memory = start, deque(maxlen=pairs)
    value, gradient = objective.value_and_gradient(w)
    for _ in range(_MAX_QUASI_NEWTON_STEPS):
        if met(w, gradient):
            break
        step = _quasi_newton_direction(gradient, memory, inverse)
        better = line_search(objective, w, value, gradient, step)
        if better is None:
            if not memory:
                break
            memory.clear()
            continue
        moved, turned = better[0] - w, better[2] - gradient
        w, value, gradient = better
        curvature = ddot(moved, turned)
        if curvature > 0:
            memory.append((moved, turned, curvature))
    return w


def _quasi_newton_direction(gradient, memory, inverse):
    """Return minus the inverse Hessian, as far as it is known, times the gradient."""
    step, weights = -gradient, []
    for moved, turned, curvature in reversed(memory):
        weight = ddot(moved, step) / curvature
        weights.append(weight)
        daxpy(turned, step, a=-weight)
    if memory:
        _, turned, curvature = memory[-1]
        preconditioned = inverse * turned
        step *= curvature / ddot(turned, preconditioned)
    step *= inverse
    for (moved, turned, curvature), weight in zip(memory, reversed(weights), strict=True):
        daxpy(moved, step, a=weight - ddot(turned, step) / curvature)
    return step


# Accelerated gradient descent with a number of steps known beforehand.
#
# Theorem (Nesterov 2004, Theorem 2.2.3). For m-strongly convex J whose gradient has the Lipschitz
# constant M, with or without a Hessian, the method below from x_0 has
# ``J(x_k) - J* <= (1 - sqrt(m/M))^k (J(x_0) - J* + m/2 |x_0 - w*|^2)``, which is at most
# ``2 exp(-k sqrt(m/M)) (J(x_0) - J*)``. By strong convexity the starting gap is at most
# ``|grad J(x_0)|^2 / (2 m)``, which is public at x_0 = center; by smoothness
# ``|grad J(x)|^2 <= 2 M (J(x) - J*)``.


def n_steps(bounds, gradient_norm):
    """Return how many steps from `center` bring the gradient down to that norm."""
    strong, smooth = bounds.ridge, bounds.total_smoothness
    gap = bounds.start_gradient**2 / (2 * strong)
    ratio = 4 * smooth * gap / gradient_norm**2
    return max(1, math.ceil(math.sqrt(smooth / strong) * math.log(max(ratio, 2.0))))


def accelerated(objective, gradient_norm, met):
    """Minimise from the center until ``met(w, gradient)``, or for all steps of the theorem.

    Parameters
    ----------
    objective : object
        With `gradient`, `center` and `bounds`.
    gradient_norm : float
        What the theorem is asked for.
    met : callable
        Tells whether a point is good enough; asked now and then.

    Returns
    -------
    w : ndarray of shape (size,)
        Point whose gradient has at most that norm, in exact arithmetic.
    """
    bounds = objective.bounds
    root = math.sqrt(bounds.total_smoothness / bounds.ridge)
    momentum = (root - 1) / (root + 1)
    every = math.ceil(root)
    w = y = np.array(objective.center, dtype=np.float64)
    for step in range(1, n_steps(bounds, gradient_norm) + 1):
        new = y - objective.gradient(y) / bounds.total_smoothness
        y = new + momentum * (new - w)
        w = new
        if step % every == 0 and met(w, objective.gradient(w)):
            break
    return w


# Objectives handed to cvxpy.


def solve_with_cvxpy(objective, start, met):
    """Minimise by cvxpy and Clarabel.

    Parameters
    ----------
    objective : RowObjective
        With `explicit`, `loss`, `ridge`, `center` and `linear`.
    start : ndarray of shape (size,)
        Gives the shape; an interior-point method has no use for it.
    met : callable
        Not asked: the solver has its own tolerances, and what it finds is certified and
        polished by the caller.

    Returns
    -------
    w : ndarray of shape (size,)
        Minimiser as cvxpy finds it.

    Notes
    -----
    The variable is the distance from the center in units of what the objective can reach,
    and the objective is divided by the number of rows: solvers stop at absolute tolerances.
    """
    import cvxpy

    V, target, norm, counts = objective.explicit()
    known = getattr(objective.loss, "targets", None)
    target = known(target, norm) if known else target
    reach = objective.bounds.reach
    u = cvxpy.Variable(len(start))
    w = objective.center + reach * u
    penalty = objective.ridge / 2 * reach**2 * cvxpy.sum_squares(u)
    penalty += reach * (objective.linear @ u)
    losses = counts @ _losses(cvxpy, objective.loss, V, w, target)
    problem = cvxpy.Problem(cvxpy.Minimize((losses + penalty) / max(1, V.shape[0])))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return objective.center + reach * np.asarray(u.value)


def _losses(cvxpy, loss, V, w, target):
    """Return the losses of rows V, an expression in w."""
    if hasattr(loss, "slopes"):
        # two slopes: a line, and what is beyond the kink
        distance, a, b = loss.slopes(np.zeros(V.shape[0]), target)
        beyond = V @ w + distance
        return cvxpy.multiply(a, beyond) + cvxpy.multiply(b - a, cvxpy.pos(beyond))
    K, T = loss.n_outputs, loss.temperature
    if K == 1:
        short = loss.margin - cvxpy.multiply(target, V @ w)
        return cvxpy.pos(short) if T == 0.0 else T * cvxpy.logistic(short / T)
    z = V @ cvxpy.reshape(w, (K, V.shape[1]), order="C").T
    one = np.eye(K)[target]
    short = z + loss.margin * (1 - one)
    worst = cvxpy.max(short, axis=1) if T == 0.0 else T * cvxpy.log_sum_exp(short / T, axis=1)
    return worst - cvxpy.sum(cvxpy.multiply(one, z), axis=1)


# Minimisers: attempts by the chosen method, and the certificate.

#: solvers of smooth objectives, by name
SMOOTH_SOLVERS = {"newton": newton, "lbfgs": lbfgs, "cvxpy": solve_with_cvxpy}


def attempt(solver, objective, start, met):
    """Return what a solver finds, or the start if it fails; in silence."""
    found = solved_in_silence(lambda: solver(objective, start, met), start.shape)
    return start if found is None else found


def minimize_smooth(objective, tolerance, solver="newton", start=None):
    """Return a point within `tolerance` of the minimiser.

    Parameters
    ----------
    objective : RowObjective
        Smooth and strongly convex. The gradient need not have a derivative everywhere.
    tolerance : float
        Public; not below ``reachable_tolerance(objective.bounds)``.
    solver : {"newton", "lbfgs", "cvxpy"}, default="newton"
        What is tried first.
    start : ndarray of shape (size,), default=None
        First point; None starts from the center.

    Returns
    -------
    w : ndarray of shape (size,)
        Fresh array. What is returned is certified, by one solver or the next; the last
        one's theorem holds whatever the rows are.

    Raises
    ------
    ValueError
        If the tolerance is out of reach, which is public.
    """
    check_tolerance(tolerance, objective.bounds)

    def met(w, gradient):
        return distance_bound(objective, w, gradient) <= tolerance

    w = np.array(objective.center if start is None else start, dtype=np.float64)
    # a loss without a temperature cannot be cooled
    last = cooled_newton if getattr(objective.loss, "temperature", 0.0) else lbfgs
    for step in dict.fromkeys([SMOOTH_SOLVERS[solver], newton, last]):
        w = attempt(step, objective, w, met)
        # what a solver found may be as large as floats are
        with np.errstate(all="ignore"):
            if met(w, objective.gradient(w)):
                return w
    bounds = objective.bounds
    if tolerance >= bounds.reach:
        return np.array(objective.center, dtype=np.float64)
    # The error is affine in the distance, hence at most twice that at `reach`, which is a
    # quarter of ridge * tolerance: half of that is left.
    spare = bounds.ridge * tolerance - bounds.gradient_error(bounds.reach + tolerance)
    return accelerated(objective, spare, met)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Regularised losses of private rows, and their minimisers as statistics to be released with noise.

A `RowObjective` gives values, gradients, Hessians and duality gaps to the minimisers, each a sum
over chunks; `objective_bounds` gives what is public about it, from which rounding is bounded.

A row may count less than 1: its loss is multiplied by what it counts, and by convexity so are its
gradient, its Hessian and its duality gap. All bounds are for the total of what rows count, which is
at most `n_rows`: the number of groups where those of a group count 1 together.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp._losses.clipped import ClippedLoss
from skdp._losses.regression import Kinked
from skdp._minimize.nonsmooth import minimize_nonsmooth
from skdp._minimize.smooth import SMOOTH_SOLVERS, Bounds, check_tolerance, minimize_smooth
from skdp._rows.base import sum_over
from skdp._rows.linear import LinearChunk, counted_rows
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.objective import Influence

# The public constants of a regularised loss of private rows.


def objective_bounds(
    loss, *, n_rows, n_coefs, row_norm, ridge, row_terms=None, center=None, linear=None
):
    """Return the public constants of a `RowObjective`.

    Parameters
    ----------
    loss : object
        Loss of `skdp._losses`.
    n_rows, n_coefs, row_norm, ridge, row_terms : int, int, float, float, int
        See `RowObjective`.
    center, linear : ndarray of shape (size,), default=None
        None for zeros.

    Returns
    -------
    bounds : Bounds
        The constants.
    """
    norm = 0.0 if center is None else float(np.linalg.norm(center))
    at_zero = getattr(loss, "start_loss", None)
    if at_zero is None:
        zero = np.zeros(1) if loss.n_outputs == 1 else np.zeros((1, loss.n_outputs))
        at_zero = float(loss.value(zero, np.ones(1, dtype=np.int64))[0])
    return Bounds(
        n_rows=n_rows,
        n_coefs=n_coefs if row_terms is None else min(row_terms, n_coefs),
        n_outputs=loss.n_outputs,
        row_norm=row_norm,
        lipschitz=loss.lipschitz,
        smoothness=loss.smoothness,
        start_loss=at_zero + loss.lipschitz * row_norm * norm,
        ridge=ridge,
        center_norm=norm,
        linear_norm=0.0 if linear is None else float(np.linalg.norm(linear)),
        diameter=getattr(loss, "diameter", loss.lipschitz),
        offset=getattr(loss, "offset", 1.0),
    )


class RowObjective:
    """Sum of losses, times what rows count, + ridge/2 |w - center|^2 + <linear, w>.

    The penalty is on all coordinates, the intercept's included: it makes the objective
    ridge-strongly convex, which is what a sensitivity is proved from.

    Parameters
    ----------
    rows : LinearRows
        Private rows. Null rows contribute exactly nothing.
    loss : object
        Loss of `skdp._losses` with a Lipschitz constant.
    ridge : float
        Greater than 0.
    n_coefs : int
        Coefficients per output, the intercept included.
    row_norm : float
        Public bound on the norm of a row.
    row_terms : int, default=None
        Public bound on the non-zeros of a row, which makes products more accurate.
    center, linear : ndarray of shape (size,), default=None
        None for zeros. Never changed.
    most_rows : int, default=None
        Public number that all rows together count no more than; None for their own number.

    Notes
    -----
    A loss with targets of any size has a method `rise`: its values are taken relative to the
    prediction 0, which changes the objective by a constant.
    """

    def __init__(
        self,
        rows,
        loss,
        *,
        ridge,
        n_coefs,
        row_norm,
        row_terms=None,
        center=None,
        linear=None,
        most_rows=None,
    ):
        self.rows, self.loss, self.ridge = rows, loss, ridge
        self.size = loss.n_outputs * n_coefs
        self._shape = (n_coefs,) if loss.n_outputs == 1 else (loss.n_outputs, n_coefs)
        self.center = np.zeros(self.size) if center is None else np.ravel(center)
        self.linear = np.zeros(self.size) if linear is None else np.ravel(linear)
        self.bounds = objective_bounds(
            loss,
            n_rows=rows.n_rows if most_rows is None else most_rows,
            n_coefs=n_coefs,
            row_norm=row_norm,
            ridge=ridge,
            row_terms=row_terms,
            center=center,
            linear=linear,
        )

    def __getstate__(self):
        # all that workers need to add up losses: the secret linear term stays where it was drawn
        return {"loss": self.loss, "_shape": self._shape}

    @property
    def smoothness(self):
        """Bound on the largest eigenvalue of the Hessian."""
        return self.bounds.total_smoothness

    def smoothed(self, temperature):
        """Return the same objective with its kinked loss smoothed."""
        return self._with(self.loss.smoothed(temperature), temperature * self.looseness)

    @property
    def looseness(self):
        """Bound, a unit of temperature, on what smoothing adds to a loss or its duality gap."""
        return getattr(self.loss, "looseness", math.log(max(2, self.loss.n_outputs)))

    def at_temperature(self, temperature):
        """Return the same objective with its smooth loss at another temperature."""
        change = getattr(self.loss, "at_temperature", None)
        loss = change(temperature) if change else replace(self.loss, temperature=temperature)
        # at most that much is between any two temperatures' losses
        return self._with(loss, max(temperature - self.loss.temperature, 0.0) * self.looseness)

    def _with(self, loss, rise):
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.loss = loss
        other.bounds = replace(
            self.bounds, smoothness=loss.smoothness, start_loss=self.bounds.start_loss + rise
        )
        return other

    def value_and_gradient(self, w):
        """Return J(w) and its gradient."""
        coef = w.reshape(self._shape)
        measure = getattr(self.loss, "rise", self.loss.value)

        def partial(chunk):
            chunk, valid, z, target = self._predict(chunk, coef)
            value = _times_counts(measure(z, target), chunk)[valid].sum()
            residual = self.loss.residual(z, target)
            return np.append(chunk.combine(_kept(residual, valid, chunk)), value)

        total = sum_over(self.rows, partial, self.size + 1)
        away = w - self.center
        value = total[-1] + self.ridge / 2 * (away @ away) + self.linear @ w
        return float(value), total[:-1] + self.ridge * away + self.linear

    def gradient(self, w):
        """Return the gradient at w."""
        coef = w.reshape(self._shape)

        def partial(chunk):
            chunk, valid, z, target = self._predict(chunk, coef)
            return chunk.combine(_kept(self.loss.residual(z, target), valid, chunk))

        total = sum_over(self.rows, partial, self.size)
        return total + self.ridge * (w - self.center) + self.linear

    def hessian(self, w):
        """Return the Hessian at w, an array of shape (size, size).

        Rows whose curvature cannot add 1e-9 of the ridge, all together, are left out.
        """
        coef = w.reshape(self._shape)
        d, K = self._shape[-1], self.loss.n_outputs
        least = 1e-9 * self.ridge / (self.bounds.n_rows * self.bounds.row_norm**2 + 1e-300)

        def partial(chunk):
            chunk, valid, z, target = self._predict(chunk, coef)
            curvature = _kept(self.loss.curvature(z, target), valid)

            def gram_of(weights):
                weights = np.where(weights > least, weights, 0.0)
                return chunk.weighted_gram(_times_counts(weights, chunk))

            if K == 1:
                return gram_of(curvature).ravel()
            # diag(s) - s s' has rows that sum to zero: the blocks beside the diagonal tell all
            blocks = np.zeros((K, d, K, d))
            for k in range(K):
                for m in range(k):
                    gram = gram_of(curvature[:, k] * curvature[:, m] / self.loss.temperature)
                    blocks[k, :, m] -= gram
                    blocks[m, :, k] -= gram
                    blocks[k, :, k] += gram
                    blocks[m, :, m] += gram
            return blocks.ravel()

        total = sum_over(self.rows, partial, self.size**2).reshape(self.size, self.size)
        total[np.diag_indices(self.size)] += self.ridge
        return total

    def hessian_diagonal(self, w):
        """Return the diagonal of the Hessian at w, an array of shape (size,)."""
        coef = w.reshape(self._shape)

        def partial(chunk):
            chunk, valid, z, target = self._predict(chunk, coef)
            curvature = self.loss.curvature(z, target)
            if self.loss.n_outputs > 1:
                curvature *= (1.0 - curvature) / self.loss.temperature
            return _squared(chunk).combine(_kept(curvature, valid, chunk))

        return sum_over(self.rows, partial, self.size) + self.ridge

    def hessian_product(self, w, direction):
        """Return the Hessian at w times a direction."""
        coef, move = w.reshape(self._shape), direction.reshape(self._shape)

        def partial(chunk):
            chunk, valid, z, target = self._predict(chunk, coef)
            dz = chunk.predict(move)
            curvature = self.loss.curvature(z, target)
            if self.loss.n_outputs > 1:
                dz -= np.einsum("ij,ij->i", curvature, dz)[:, None]
                dz /= self.loss.temperature
            dz *= curvature
            return chunk.combine(_kept(dz, valid, chunk))

        return sum_over(self.rows, partial, self.size) + self.ridge * direction

    def duality_gap(self, smooth, w, step):
        """Return the rows' part of the duality gap at w, and g.

        Parameters
        ----------
        smooth : RowObjective
            This one, smoothed: gives the dual residuals, predicted for w + step.
        w, step : ndarray of shape (size,)
            Point and a small step.

        Returns
        -------
        gap, gradient : float and ndarray of shape (size,)
            See skdp/_minimize/nonsmooth.py.
        """
        coef, move = w.reshape(self._shape), step.reshape(self._shape)

        def partial(chunk):
            chunk, valid, z, target = self._predict(chunk, coef)
            residual = smooth.loss.stepped(z.copy(), chunk.predict(move), target)
            gap = _times_counts(self.loss.conjugate_gap(z, residual, target), chunk)[valid].sum()
            return np.append(chunk.combine(_kept(residual, valid, chunk)), gap)

        total = sum_over(self.rows, partial, self.size + 1)
        return float(total[-1]), total[:-1] + self.ridge * (w - self.center) + self.linear

    def _predict(self, chunk, coef):
        """Return the chunk in float64, which rows count, their predictions, and targets."""
        chunk = chunk.widened()
        known = getattr(self.loss, "targets", None)
        target = known(chunk.target, chunk.norm) if known else chunk.target
        return chunk, np.isfinite(chunk.norm), chunk.predict(coef), target

    def explicit(self):
        """Return the rows that count as one matrix, their targets, norms, and what they count."""
        chunks = [chunk.taken(np.isfinite(chunk.norm)) for chunk in self.rows.chunks]
        parts = [chunk.explicit() for chunk in chunks]
        stack = sparse.vstack if sparse.issparse(parts[0]) else np.vstack
        target, norm = (
            np.concatenate([getattr(chunk, name) for chunk in chunks])
            for name in ("target", "norm")
        )
        return stack(parts), target, norm, np.concatenate([counted_rows(part) for part in chunks])


def _squared(chunk):
    """Return a chunk of the squared entries of the rows."""
    X = chunk.X
    if sparse.issparse(X):
        X = sparse.csr_array((X.data * X.data, X.indices, X.indptr), shape=X.shape)
    else:
        X = X * X
    lift = None if chunk.lift is None else chunk.lift**2
    kept = chunk.factor**2, chunk.norm, chunk.target
    return LinearChunk(X, *kept, chunk.intercept**2, lift)


def _kept(values, valid, chunk=None):
    """Return the values with those of null rows set to zero, times what rows count, in place."""
    if not valid.all():
        values[~valid] = 0.0
    return values if chunk is None else _times_counts(values, chunk)


def _times_counts(values, chunk):
    """Return one value of every row, or several, times what the rows count, in place."""
    if chunk.weight is not None:
        values *= chunk.weight if values.ndim == 1 else chunk.weight[:, None]
    return values


# The common part of queries that minimise a regularised loss.


#: losses that cvxpy is told about
IN_CVXPY = (LogisticLoss, SoftmaxLoss, HingeLoss, Kinked)


def title(loss):
    """Return what a loss is called."""
    return getattr(loss, "name", type(loss).__name__)


@dataclass(frozen=True, eq=False)
class Regularised:
    """Loss, penalty and tolerance of a minimiser; parameters are those of `Minimizer`."""

    # no bound is stated
    may_be_infinite: ClassVar[tuple[str, ...]] = ("row_l1",)

    loss: Any
    ridge: float
    n_coefs: int
    row_norm: float
    tolerance: float
    solver: str = "newton"
    center: Any = None
    row_l1: float = math.inf
    row_terms: int | None = None
    most_rows: int | None = None
    of_groups: bool = False

    def __post_init__(self):
        if self.center is not None:
            center = np.array(self.center, dtype=np.float64).ravel()
            center.flags.writeable = False
            object.__setattr__(self, "center", center)
            if center.shape != (self.size,) or not np.isfinite(center).all():
                raise ValueError(f"center must be {self.size} finite numbers.")
        for name in ("ridge", "row_norm", "tolerance"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be finite and greater than 0.")
        if not math.isfinite(self.loss.lipschitz):
            raise ValueError(
                f"loss must have a Lipschitz constant; got {type(self.loss).__name__}, which has "
                "none: clip it, by ClippedLoss."
            )
        if isinstance(self.loss, ClippedLoss) and self.loss.row_norm != self.row_norm:
            raise ValueError(
                f"row_norm must be that of the clipped loss, {self.loss.row_norm!r}; "
                f"got {self.row_norm!r}."
            )
        if not self.row_l1 > 0:
            raise ValueError("row_l1 must be greater than 0.")
        if self.solver not in SMOOTH_SOLVERS:
            raise ValueError(f"solver must be one of {list(SMOOTH_SOLVERS)}; got {self.solver!r}.")
        if self.solver == "cvxpy" and not isinstance(self.loss, IN_CVXPY):
            raise ValueError(
                f"solver must be 'newton' or 'lbfgs' for {title(self.loss)}; got 'cvxpy'."
            )

    @property
    def size(self):
        """Number of coordinates."""
        return self.loss.n_outputs * self.n_coefs

    def bounds(self, n_rows, linear=None):
        """Return the public constants of the objective.

        Raises
        ------
        ValueError
            If there may be more rows than what is computed is certified for.
        """
        if self.most_rows is not None and n_rows > self.most_rows:
            raise ValueError(f"most_rows must be at least {n_rows}; got {self.most_rows!r}.")
        return objective_bounds(
            self.loss,
            n_rows=n_rows,
            n_coefs=self.n_coefs,
            row_norm=self.row_norm,
            ridge=self.ridge,
            row_terms=self.row_terms,
            center=self.center,
            linear=linear,
        )

    def minimise_rows(self, rows, linear=None):
        """Return the minimiser for private rows, within the tolerance."""
        objective = RowObjective(
            rows,
            self.loss,
            ridge=self.ridge,
            n_coefs=self.n_coefs,
            row_norm=self.row_norm,
            row_terms=self.row_terms,
            center=self.center,
            linear=linear,
            most_rows=self.most_rows,
        )
        smooth = math.isfinite(self.loss.smoothness)
        return (minimize_smooth if smooth else minimize_nonsmooth)(
            objective, self.tolerance, self.solver
        )


# The sensitivity of a minimiser of sparse rows in the l1 norm.


def l1_shift(loss, *, ridge, n_rows, n_coefs, row_norm, row_l1, moved):
    """Return a bound on the l1 distance of the exact minimisers of neighbours.

    Parameters
    ----------
    loss : object
        Loss of `skdp._losses`, of Lipschitz constant L.
    ridge : float
        Strength r of the penalty, which is on all coefficients.
    n_rows, n_coefs : int
        Numbers n of rows, and of coefficients per output.
    row_norm, row_l1 : float
        Bounds X and R on the l2 and the l1 norm of a row, the intercept included; R may be
        infinite.
    moved : {1, 2}
        Rows in which neighbours differ: 1 (zero-out) or 2 (replace-one).

    Returns
    -------
    shift : float
        The smaller one of the two bounds below.

    Notes
    -----
    (i) At p coefficients, sqrt(p) times the l2 distance, which is at most S / r for S =
    moved L X.

    (ii) For a smooth loss. Let w and w' be the minimisers and u = w - w'. Between them the
    gradient of a row that both data sets have changes by ``B (U x) x'``, U being u as a
    matrix and B a mean of the loss's Hessians in the predictions. With v the gradient at
    w' of the row that is only there, minus that at w of the row that is only here, and A
    the sum of all ``B (x) x x'``, stationarity reads ``(r + A) u = v``. So
    ``r |u|_1 <= |v|_1 + |A u|_1``, and ``|v|_1 <= moved R G`` with G the largest l1 norm of
    a residual. For signs s, ``(s' B p)^2 <= (s' B s) (p' B p)``, hence with h the largest
    ``s' B s`` and by Cauchy's inequality over the n - 1 rows
    ``|A u|_1 <= R sum_i sqrt(h (U x_i)' B_i (U x_i)) <= R sqrt((n - 1) h u' A u)``. And
    ``u' A u = v' (r + A)^-1 A (r + A)^-1 v`` is at most ``|v|^2`` times the largest value
    of ``t / (r + t)^2`` at eigenvalues t of A, which are at most k r for
    ``k = (n - 1) H X^2 / r``: ``1 / (4 r)``, or ``k / (1 + k)^2 / r`` if k < 1. Together

        |u|_1 <= (moved R G + R S sqrt((n - 1) h / r) min(sqrt(k), 1) / (1 + min(k, 1))) / r.

    Both parts grow with R, that is, with the square root of a row's number of non-zeros;
    Ghazi et al. (2024, Theorem 7.1) have ``1 + 2 n H X^2 / r`` in place of the root.

    A clipped loss may have larger residuals and curvatures at short rows, which can be as long
    as others in the l1 norm: G and h are those of the loss within. Where they are infinite
    there is bound (i) alone. Part (ii) needs no second derivative: a residual that is
    Lipschitz in the prediction changes by a mean curvature B times the change of it.

    Groups. Let a row count c_i in [0, 1], and those of a group at most 1 together. The parts of v
    are means of gradients of rows, and of zero: no longer, in either norm. A is the sum of all
    ``c_i B_i (x) x_i x_i'`` over groups that both data sets have, at most n - 1: its eigenvalues
    are at most ``(n - 1) H X^2``. Cauchy's inequality has ``sum_i c_i <= n - 1`` in the place of
    the number of rows: ``|A u|_1 <= R sum_i c_i sqrt(h q_i)``, which is at most
    ``R sqrt((n - 1) h sum_i c_i q_i)``, q_i being ``(U x_i)' B_i (U x_i)``; that sum is u' A u.
    """
    reach = moved * loss.lipschitz * row_norm
    dense = math.sqrt(loss.n_outputs * n_coefs) * reach / ridge
    known = loss.smoothness, loss.smoothness_l1, loss.lipschitz_l1, row_l1
    if not all(map(math.isfinite, known)):
        return dense
    others = max(n_rows - 1, 0)
    k = min(others * loss.smoothness * row_norm**2 / ridge, 1.0)
    own = moved * loss.lipschitz_l1
    through = reach * math.sqrt(others * loss.smoothness_l1 / ridge) * math.sqrt(k) / (1 + k)
    return min(dense, row_l1 * (own + through) / ridge)


class Minimizer(Regularised):
    """Minimiser of sum of losses + ridge/2 |w - center|^2, within a public distance.

    A loss counts as often as its row does.

    Parameters
    ----------
    loss : object
        Loss of `skdp._losses` with a Lipschitz constant: one for classes, HuberLoss,
        PinballLoss, or a ClippedLoss for the same `row_norm`.
    ridge : float
        Weight of the penalty, which is on the intercept too.
    n_coefs : int
        Coefficients per output, the intercept included.
    row_norm : float
        Bound on the norm of a row, the intercept included: the rows must keep it.
    tolerance : float
        Bound on the distance of what is computed from the minimiser; at least
        `reachable_tolerance`. Changes the noise, not the result.
    solver : {"newton", "lbfgs", "cvxpy"}, default="newton"
        What is tried first. For a hinge loss "lbfgs" is "newton".
    center : array-like of shape (size,), default=None
        Center of the penalty, public; None for zeros. Copied.
    row_l1, row_terms : float and int, default=inf and None
        Bounds on the l1 norm and on the non-zeros of a row, the intercept included, if
        there are any: the rows must keep them.
    most_rows : int, default=None
        Public number that all rows together count no more than. None is how many there are, which
        is for rows that count 1 each, and of which that is public.
    of_groups : bool, default=False
        Whether what is protected is a group of rows, which count at most 1 together.
    """

    @property
    def name(self):
        """What the statistic is."""
        return f"minimiser of {title(self.loss)} with ridge {self.ridge:.6g}"

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity, S / ridge + 2 tolerance, and the l1 sensitivity.

        S is L X (zero-out) or 2 L X (replace-one): L the loss's Lipschitz constant, X the
        bound on the norm of a row. For a clipped loss L X is at most `clip`.

        Raises
        ------
        ValueError
            If the tolerance is out of reach for that number of rows.

        Notes
        -----
        Proof. Let w and w' minimise J and J', which differ in one row, and let h = J - J'
        be that row's loss, or the difference of two. Zero is a subgradient of J at w and
        of J' at w'. Hence some subgradient of J at w' is a difference of subgradients of
        the losses in h at w', each of norm at most L X: a row's is the outer product of
        its residual and the row. It has norm at most S. J is ridge-strongly convex, so
        its subgradients are strongly monotone: ``ridge |w - w'|^2 <= S |w - w'|``. What is
        computed is within the tolerance of w on J and of w' on J', hence twice that. Both
        parts of the proof need the penalty on all coordinates. Replace-one is attained
        for one output by a row that changes its label, as long as both residuals are +-1.

        A clipped loss is convex in the coefficients and its subgradients in them have norm at
        most min(L X, clip), L being that of the loss within; there need be no L, and no bound
        on the targets. Replace-one is attained by a row whose target changes from far above
        to far below its predictions.

        Groups, and weights. Let rows count c_i in [0, 1], and those of a group at most 1 together;
        neighbours differ in all rows of one group, their number and what they count included. Then
        h is the sum of its losses times c_i, or the difference of two such sums. Subgradients of
        it are means of those of rows, and of zero, hence no longer: S is the same, and so is the
        rest. Nothing here is divided by a number of rows: under add-remove S is that of zero-out,
        for h is the loss of a row, or group, that is only there. What is computed is certified for
        rows that count at most `most_rows` together, which bounds `n_rows`.

        The l1 sensitivity is that of the exact minimisers, proved in `l1_shift`, plus
        2 sqrt(size) tolerance, by Cauchy's inequality for the two errors.
        """
        bounds = self.bounds(n_rows)
        check_tolerance(self.tolerance, bounds)
        moved = 1 if adjacency == "zero-out" else 2
        reach = moved * self.loss.lipschitz * self.row_norm
        shift = l1_shift(
            self.loss,
            ridge=self.ridge,
            n_rows=n_rows,
            n_coefs=self.n_coefs,
            row_norm=self.row_norm,
            row_l1=self.row_l1,
            moved=moved,
        )
        in_l1 = "; in l1 by stationarity" if self.row_l1 < math.inf else ""
        return Sensitivity(
            l1=shift + 2 * math.sqrt(self.size) * self.tolerance,
            l2=reach / self.ridge + 2 * self.tolerance,
            bound=bounds.center_norm + bounds.reach + self.tolerance,
            theorem=f"{'' if adjacency == 'zero-out' else '2 '}{self._gradient_bound} / ridge "
            f"by strong convexity{in_l1}, + 2 tolerance",
        )

    @property
    def _gradient_bound(self):
        clipped = isinstance(self.loss, ClippedLoss)
        return "clip" if clipped and self.loss.lipschitz < self.loss.loss.lipschitz else "L X"

    def evaluate(self, rows):
        """Return the minimiser within the tolerance, an array of shape (size,)."""
        return self.minimise_rows(rows)


class PerturbedMinimizer(Regularised):
    """Minimiser of sum of losses + ridge/2 |w - center|^2 + <linear, w>.

    The statistic of objective perturbation, `linear` being noise. Its privacy is not that
    of a sensitivity; what is proved here is the distance of what is computed from the
    exact minimiser. Parameters are those of `Minimizer`; the loss must be smooth.
    """

    def __post_init__(self):
        super().__post_init__()
        if not math.isfinite(self.loss.smoothness):
            raise ValueError("objective perturbation needs a smooth loss; smooth the hinge first.")
        if not isinstance(self.loss, (LogisticLoss, SoftmaxLoss)):
            raise ValueError(
                "loss must have two continuous derivatives for objective perturbation, that is, be "
                f"LogisticLoss or SoftmaxLoss; got {title(self.loss)}. Use Minimizer for it."
            )

    @property
    def name(self):
        """What the statistic is."""
        return f"perturbed minimiser of {type(self.loss).__name__} with ridge {self.ridge:.6g}"

    def sensitivity(self, adjacency, n_rows):
        """State how a row acts on the objective: what `ObjectivePerturbation` needs.

        Notes
        -----
        Proof. The gradient of a row is the outer product of its residual and the row. The
        residual is a convex combination of 0 and `loss.corners` fixed vectors of norm at
        most L, hence the gradient one of 0 and vectors of norm at most L X. The Hessian of
        a row is A x x', A being that of the loss in the predictions, of rank at most
        `loss.corners` and trace at most t: its eigenvalues a_i, relative to a Hessian of at
        least ``ridge``, add at most ``sum log(1 + a_i X^2 / ridge)`` to the
        log-determinant, which is largest where the a_i are equal. With one output A =
        a (1 - a) / temperature at a residual of size a: the two are tied.

        A row that counts c in [0, 1] has c times that gradient and Hessian: the first is a convex
        combination as before, and the trace is at most t. The rows of a group count at most 1
        together: its gradient is a mean of those of rows, and of zero, and its Hessian a mean of
        matrices of trace at most ``t X^2``, of any rank up to the number of coefficients, p. So the
        log-determinant grows by at most ``p log(1 + t X^2 / (p ridge)) <= t X^2 / ridge``.
        `skdp.privacy.laws.objective` has what follows from a mean of gradients, and of tied ones.
        """
        square = self.row_norm**2 / self.ridge
        corners = self.loss.corners
        rank = self.size if self.of_groups else corners
        bounds = self.bounds(n_rows)
        return Influence(
            rows=1 if adjacency == "zero-out" else 2,
            reach=self.loss.lipschitz * self.row_norm,
            corners=corners,
            log_det=rank * math.log1p(self.loss.trace * square / rank),
            slope=square / self.loss.temperature if self.loss.tied else math.inf,
            ridge=self.ridge,
            distance=self.tolerance,
            bound=bounds.center_norm + bounds.reach + self.tolerance,
            theorem="a row's gradient has norm <= L X; density of the exact minimiser",
            of_groups=self.of_groups,
        )

    def minimise(self, rows, linear):
        """Return the minimiser within the tolerance.

        Parameters
        ----------
        rows : LinearRows
            Private rows.
        linear : ndarray of shape (size,)
            Coefficients of the linear term; never changed.

        Returns
        -------
        w : ndarray of shape (size,)
            Within the tolerance of the exact minimiser.

        Raises
        ------
        ValueError
            If rounding errors do not allow the tolerance for a `linear` that long. Whether
            it is raised does not depend on the rows.
        """
        return self.minimise_rows(rows, linear)

    def slope_at(self, rows, w):
        """Return the gradient of the objective without a linear term, and its curvature.

        Parameters
        ----------
        rows : LinearRows
            Private rows.
        w : ndarray of shape (size,)
            Where.

        Returns
        -------
        gradient : ndarray of shape (size,)
            It is minus the linear term for which w is the minimiser.
        log_det : float
            Logarithm of the determinant of the Hessian there.
        """
        objective = RowObjective(
            rows,
            self.loss,
            ridge=self.ridge,
            n_coefs=self.n_coefs,
            row_norm=self.row_norm,
            row_terms=self.row_terms,
            center=self.center,
            most_rows=self.most_rows,
        )
        return objective.gradient(w), float(np.linalg.slogdet(objective.hessian(w))[1])

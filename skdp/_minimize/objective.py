# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Regularised losses of private rows, as functions of the coefficients.

A `RowObjective` gives values, gradients, Hessians and duality gaps to the minimisers, each a sum
over chunks; `objective_bounds` gives what is public about it, from which rounding is bounded.

A row may count less than 1: its loss is multiplied by what it counts, and by convexity so are its
gradient, its Hessian and its duality gap. All bounds are for the total of what rows count, which is
at most `n_rows`: the number of groups where those of a group count 1 together.
"""

import math
from dataclasses import replace

import numpy as np
from scipy import sparse

from skdp._minimize.smooth import Bounds
from skdp._rows.base import sum_over
from skdp._rows.linear import LinearChunk, counted_rows

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

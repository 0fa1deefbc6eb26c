# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The loss at many coefficients in one pass over the rows."""

import numpy as np

from skdp._queries._sums import sum_over

# values of all chunk rows at all points, kept small enough for the cache
_VALUES_PER_BATCH = 1 << 19


def loss_values(rows, coefs, loss):
    """Return the sum over rows of the loss at every one of several coefficients.

    Parameters
    ----------
    rows : LinearRows
        Private rows; null rows contribute nothing.
    coefs : ndarray of shape (n_points, n_outputs * n_coefs)
        Points.
    loss : object
        Loss of `skdp._losses`.

    Returns
    -------
    values : ndarray of shape (n_points,)
        Sums.
    """
    points = coefs.reshape(len(coefs), loss.n_outputs, -1)

    def partial(chunk):
        chunk = chunk.widened()
        active = np.isfinite(chunk.norm)
        sums = np.empty(len(points))
        step = max(1, _VALUES_PER_BATCH // (len(chunk.norm) * loss.n_outputs))
        for start in range(0, len(points), step):
            batch = points[start : start + step]
            z = chunk.predict(batch.reshape(-1, batch.shape[-1]))
            sums[start : start + step] = active @ _values(z, batch.shape, chunk.target, loss)
        return sums

    return sum_over(rows, partial, len(points))


def _values(z, shape, target, loss):
    """Return losses of shape (n_rows, n_points) from raw predictions of all outputs."""
    if loss.n_outputs == 1:
        return loss.value(z, target[:, None])
    flat = loss.value(z.reshape(-1, loss.n_outputs), np.repeat(target, shape[0]))
    return flat.reshape(-1, shape[0])


def loss_gradients(rows, coefs, loss):
    """Return the values and (sub)gradients of the summed loss at several coefficients.

    Parameters
    ----------
    rows, coefs, loss : LinearRows, ndarray of shape (n_points, size), object
        As in `loss_values`.

    Returns
    -------
    values, gradients : ndarray of shape (n_points,) and (n_points, size)
        Sums over rows.
    """
    n_points, size = coefs.shape
    points = coefs.reshape(n_points * loss.n_outputs, -1)
    shape = (n_points, loss.n_outputs)

    def partial(chunk):
        chunk = chunk.widened()
        active = np.isfinite(chunk.norm)
        z = chunk.predict(points)
        values = active @ _values(z, shape, chunk.target, loss)
        if loss.n_outputs == 1:
            residual = loss.residual(z, chunk.target[:, None])
        else:
            target = np.repeat(chunk.target, n_points)
            residual = loss.residual(z.reshape(-1, loss.n_outputs), target).reshape(z.shape)
        residual *= active[:, None]
        return np.append(values, chunk.combine(residual))

    total = sum_over(rows, partial, n_points * (1 + size))
    return total[:n_points], total[n_points:].reshape(n_points, size)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What is public about a regularised loss of private rows."""

import numpy as np

from skdp._minimize import Bounds


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

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How far one sparse row can move a minimiser in the l1 norm."""

import math


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

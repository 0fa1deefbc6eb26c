# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reports of gradients through the gate, and what their scatter says."""

import math

import numpy as np

from skdp._queries import CurvatureVectors, GradientVectors, LocalReports
from skdp.privacy import LocalMechanism

#: numbers of reports that are held at a time
_AT_ONCE = 1 << 21


class GradientReports:
    """One report of the gradient of each of the first rows, batch after batch.

    Parameters
    ----------
    curator : Curator
        Holds the rows.
    loss : object
        Pointwise loss.
    shape : tuple of int
        Shape of the coefficients.
    randomiser : Lift, Flip or Product
        Of vectors of as many entries.
    longest : float
        Bound on the norm of a gradient.
    n_rows : int
        Rows that report gradients.
    penalty : float
        Strength of the public penalty, which counts in the scatter.
    first_kept : int or None
        First row whose report counts in the scatter; None for no scatter.
    """

    def __init__(
        self, curator, loss, shape, randomiser, longest, n_rows, penalty=0.0, first_kept=None
    ):
        self._curator, self._loss, self._randomiser = curator, loss, randomiser
        self._longest, self._penalty, self._kept = longest, penalty, first_kept
        size = math.prod(shape)
        self._step, self._n_kept = max(1, _AT_ONCE // size), 0
        self._moment = None if first_kept is None else np.zeros((size, size))
        mechanism = LocalMechanism(randomiser.epsilon)
        query = self._query(np.zeros(shape))
        self._prepaid = curator.prepay(query, mechanism, 1, rows=(0, n_rows))

    def _query(self, coef):
        return LocalReports(GradientVectors(coef, self._loss, self._longest), self._randomiser)

    def mean(self, coef, batch):
        """Return the mean of the reports of a batch (start, stop), in the shape of `coef`."""
        query, total = self._query(coef), np.zeros(coef.size)
        for start in range(batch[0], batch[1], self._step):
            part = start, min(start + self._step, batch[1])
            made = self._curator.release(query, self._prepaid, rows=part)
            total += made.sum(axis=0)
            if self._kept is not None and start >= self._kept:
                made *= self._longest
                made += self._penalty * coef.ravel()
                self._moment += made.T @ made
                self._n_kept += len(made)
        return (total * (self._longest / (batch[1] - batch[0]))).reshape(coef.shape)

    @property
    def second_moment(self):
        """Mean of ``g g'`` over the reports g that count, the penalty's gradient included."""
        return self._moment / self._n_kept


def reported_hessian(curator, loss, coef, randomiser, longest, rows):
    """Return an unbiased Hessian of the mean loss, and a level that its noise stays below.

    Parameters
    ----------
    curator : Curator
        Holds the rows.
    loss : LogisticLoss
        Pointwise loss with one output.
    coef : ndarray of shape (size,)
        Where the Hessian is taken.
    randomiser : Lift
        Of vectors of as many entries.
    longest : float
        Bound on the norm of `CurvatureVectors`.
    rows : tuple of (int, int)
        First row that reports, and the one after the last.

    Returns
    -------
    hessian : ndarray of shape (size, size)
        Without the penalty; it need not be positive definite.
    level : float
        Twice the noise's variance times ``sqrt(size / n_rows)``: what an eigenvalue of the
        noise hardly ever exceeds.

    Notes
    -----
    A report of w has second moment ``s I + (c/m) w w'`` (Lift), whatever the length of w.
    """
    query = LocalReports(CurvatureVectors(coef, loss, longest), randomiser)
    prepaid = curator.prepay(query, LocalMechanism(randomiser.epsilon), 1, rows=rows)
    moment, step = np.zeros((coef.size, coef.size)), max(1, _AT_ONCE // coef.size)
    for start in range(*rows, step):
        made = curator.release(query, prepaid, rows=(start, min(start + step, rows[1])))
        moment += made.T @ made
    n_rows, unit = rows[1] - rows[0], randomiser.unit
    noise = unit.noise_variance
    hessian = moment / n_rows - noise * np.eye(coef.size)
    hessian *= longest**2 * unit.scale / unit.cosine
    level = 2.0 * noise * longest**2 * math.sqrt(coef.size / n_rows)
    return hessian, level

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Minimisers of regularised losses, as statistics that can be released with noise."""

import math

from skdp._losses import ClippedLoss, LogisticLoss, SoftmaxLoss
from skdp._minimize import check_tolerance
from skdp._queries._l1_shift import l1_shift
from skdp._queries._regularised import Regularised, title
from skdp.privacy import Influence, Sensitivity


class Minimizer(Regularised):
    """Minimiser of sum of losses + ridge/2 |w - center|^2, within a public distance.

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
        Centre of the penalty, public; None for zeros. Copied.
    row_l1, row_terms : float and int, default=inf and None
        Bounds on the l1 norm and on the non-zeros of a row, the intercept included, if
        there are any: the rows must keep them.
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
        """
        square = self.row_norm**2 / self.ridge
        corners = self.loss.corners
        bounds = self.bounds(n_rows)
        return Influence(
            rows=1 if adjacency == "zero-out" else 2,
            reach=self.loss.lipschitz * self.row_norm,
            corners=corners,
            log_det=corners * math.log1p(self.loss.trace * square / corners),
            slope=square / self.loss.temperature if self.loss.tied else math.inf,
            ridge=self.ridge,
            distance=self.tolerance,
            bound=bounds.center_norm + bounds.reach + self.tolerance,
            theorem="a row's gradient has norm <= L X; density of the exact minimiser",
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

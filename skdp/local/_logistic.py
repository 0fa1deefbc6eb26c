# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logistic regression from one local report of every row.

A. Bhowmick et al., "Protection against reconstruction and its applications in private federated
learning", 2018, Section 3.2. In this order: one pass of stochastic gradient steps; the plan of a
fit, from public numbers; the vectors that rows report; reports through the gate; the estimator.
"""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from skdp._gate import Doubts, Heard, open_gate
from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._plan import PlanMixin
from skdp._rows.base import L2Ball, check_radius
from skdp._rows.linear import LinearRows
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    LinearClassifierMixin,
    SoftmaxClassifierMixin,
    SparseCoefMixin,
    StrOptions,
    centered_classes,
    effective_n_threads,
    fit_context,
    penalty_of,
    resolve_classes,
    validate_private_data,
)
from skdp._typing import ArrayLike, Budget, MatrixLike, Seed, VectorLike
from skdp.local._ball_randomiser import MAGNITUDES, BallRandomiser, as_ball_randomiser
from skdp.local._clients import Aggregator, LocalClient, sums_of
from skdp.local._row_domains import GradientDomain, GradientVectors, rows_times
from skdp.local.randomisers.ball import lift
from skdp.local.randomisers.base import check_local_epsilon
from skdp.local.randomisers.report import LocalReports
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.laws.local_reports import LocalMechanism
from skdp.solvers.disjoint import even_parts, public_order

# One pass of stochastic gradient steps along local reports of gradients.
#
# Every row reports once, in its batch, so every row pays for one report however many steps there
# are. The plan is made from public quantities before any data are read.
#
# Step size. Let G^2 bound the mean square of a step direction and D the distance to the
# minimiser. T steps of length ``D / (G sqrt(T))`` bring the expected excess of the averaged
# iterate to at most ``D G / sqrt(T)`` (Robbins-Siegmund, as in Bhowmick et al. 2018, Section 3.2).
# A batch of n / T reports with errors of mean square e has ``G^2 = r^2 (1 + e) T / n``, r being
# the longest gradient, so that ``length * T = D sqrt(n) / (r sqrt(1 + e))`` for every T: all
# numbers of steps are equally good in the presence of noise, as long as a step is no longer than
# one over the smoothness L. The plan takes about as many steps as that asks for.
#
# Decaying steps ``step_size * k**-decay`` with 1/2 < decay < 1 are those of Polyak and Juditsky
# (1992), for which the average is asymptotically normal.


#: the minimiser is expected within this radius; rows are in the unit ball
EXPECTED_RADIUS = 10.0
#: for decaying steps: their first ones may be long, and the start must be forgotten
DECAYING_RADIUS = 30.0
#: fewest batches, and the largest product of step and smoothness, of a plan made here
_LEAST_STEPS, _LONGEST_STEP = 20, 4.0


@dataclass(frozen=True)
class LocalSgdPlan:
    """Plan of the steps, fixed before any row is read.

    Parameters
    ----------
    batches : tuple of (int, int)
        First row of every batch, and the one after the last.
    step_size : float
        Length of steps, or of the first one if they decay.
    decay : float or None
        Steps have length ``step_size * k**-decay``; None for equal steps.
    penalty : float
        Strength of ``penalty/2 |coef|^2`` next to the MEAN of losses.
    average : bool
        Whether the result is the average of all iterates, or the last one.
    """

    batches: tuple
    step_size: float
    decay: float | None
    penalty: float
    average: bool

    @property
    def n_steps(self):
        """Number of batches."""
        return len(self.batches)

    def length(self, k):
        """Return the length of the k-th step, from 1 on."""
        return self.step_size if self.decay is None else self.step_size * k**-self.decay


def plan_local_sgd(
    *,
    n_rows,
    longest,
    error,
    smoothness,
    batch_size=None,
    step_size=None,
    decay=None,
    penalty=0.0,
    average=True,
):
    """Choose batches and steps from public quantities.

    Parameters
    ----------
    n_rows : int
        Rows that report gradients.
    longest : float
        Bound on the norm of a row's gradient.
    error : float
        Mean squared error of a report, in units of ``longest**2``.
    smoothness : float
        Bound on the largest eigenvalue of the Hessian of the mean loss.
    batch_size, step_size, decay : int, float, float, default=None
        Given by the user, or None to be chosen here; a decay of None makes equal steps.
    penalty, average : float, bool
        As for `LocalSgdPlan`.

    Returns
    -------
    plan : LocalSgdPlan
        Plan with every row in one batch; sizes of batches are nearly equal.
    """
    # the sum of all steps, whatever their number
    radius = EXPECTED_RADIUS if decay is None else DECAYING_RADIUS
    travelled = radius * math.sqrt(n_rows) / (longest * math.sqrt(1.0 + error))
    if batch_size is None:
        n_steps = max(_LEAST_STEPS, math.ceil(travelled * smoothness))
    else:
        n_steps = math.ceil(n_rows / batch_size)
    n_steps = min(n_steps, n_rows)
    if step_size is None:
        units = n_steps if decay is None else n_steps ** (1.0 - decay) / (1.0 - decay)
        step_size = min(travelled / units, _LONGEST_STEP / smoothness)
    batches = even_parts(0, n_rows, n_steps)
    return LocalSgdPlan(batches, float(step_size), decay, penalty, average)


class LocalDescent:
    """Steps along means of reports, each used once.

    Parameters
    ----------
    shape : tuple of int
        Shape of the coefficients.
    plan : LocalSgdPlan
        Batches and steps.

    Notes
    -----
    The penalty is public, and its part of a step is implicit (at the new point): that is stable
    for every strength, and equal to first order in the length of the step.
    """

    def __init__(self, shape, plan):
        self.plan, self.n_done = plan, 0
        self.coef, self._total = np.zeros(shape), np.zeros(shape)

    def step(self, gradient):
        """Take a step.

        Parameters
        ----------
        gradient : ndarray of the shape of `coef`
            Mean of the gradients that the rows of a batch reported at `coef`, without the penalty.
        """
        self.n_done += 1
        length = self.plan.length(self.n_done)
        self.coef = (self.coef - length * gradient) / (1.0 + length * self.plan.penalty)
        self._total += self.coef

    @property
    def result(self):
        """Average of the iterates after every step, or the last one."""
        return self._total / self.n_done if self.plan.average else self.coef


# The plan of a fit, made from public numbers.


#: constant feature for the intercept, in units of the longest row: one report cannot be
#: repeated, so the intercept must be learned as fast as the coefficients are
LOCAL_INTERCEPT = 0.4
#: equal steps are the best for predictions, but their average keeps a bias as large as its noise
COVARIANCE_DECAY = 0.55


@dataclass(frozen=True)
class LogisticReportsPlan:
    """Plan of reports: vectors, numbers of rows, and steps.

    Parameters
    ----------
    loss : LogisticLoss or SoftmaxLoss
        Pointwise loss.
    shape : tuple of int
        Shape of the coefficients.
    randomiser, longest : Lift, Flip or Product, and float
        Randomiser of gradients, and the norm of its unit.
    sgd : LocalSgdPlan
        Batches and steps.
    n_gradients : int
        Number of rows that report a gradient; the others report a root of curvature.
    curvature, longest_root : Lift or None, and float
        Randomiser of roots of curvature, and the norm of its unit.
    """

    loss: Any
    shape: tuple
    randomiser: Any
    longest: float
    sgd: LocalSgdPlan
    n_gradients: int
    curvature: Any
    longest_root: float

    def heard(self):
        """Return what takes note of whether gradients are longer than their noise."""
        size, n_rows = math.prod(self.shape), self.n_gradients
        variance = self.randomiser.mean_squared_error(0.0) * self.longest**2 / size
        return Heard(size, n_rows * variance, n_rows * self.longest)


def plan_logistic_reports(
    n_rows,
    n_features,
    n_classes,
    *,
    epsilon,
    intercept,
    randomiser,
    covariance_share,
    batch_size,
    step_size,
    decay,
    penalty,
    average,
):
    """Plan all reports and steps from public numbers.

    Parameters
    ----------
    n_rows, n_features, n_classes : int
        Shape of the data.
    epsilon : float
        Budget of one report.
    intercept : float
        Constant feature of every row, not included in its unit ball; 0 for none.
    penalty : float
        Strength of the penalty next to the SUM of losses.
    randomiser : BallRandomiser
        Randomiser of gradients. The default of `expected_norm` is the norm of gradients at the
        start.
    covariance_share, batch_size, step_size, decay, average : float, int, float, float, bool
        Parameters of the estimator.

    Returns
    -------
    plan : LogisticReportsPlan
        The plan.

    Raises
    ------
    ValueError
        If parameters are incompatible, or there are too few rows for them.
    """
    loss = LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)
    if covariance_share and n_classes > 2:
        raise ValueError(
            "covariance_share must be 0 for more than 2 classes: one softmax has many "
            f"coefficients, and their Hessian is singular; got {covariance_share!r} with "
            f"{n_classes} classes."
        )
    n_curved = math.floor(covariance_share * n_rows)
    if covariance_share and not 0 < n_curved < n_rows:
        raise ValueError(
            f"covariance_share={covariance_share!r} of n_samples={n_rows} leaves no row to report "
            "a curvature; set covariance_share=0.0, or take more rows."
        )
    n_gradients = n_rows - n_curved
    if batch_size is not None and batch_size > n_gradients:
        raise ValueError(
            f"batch_size must be at most {n_gradients}, the number of rows that report a gradient "
            f"(n_samples={n_rows}); got {batch_size!r}."
        )
    n_coefs, row_norm = n_features + bool(intercept), math.hypot(1.0, intercept)
    shape = (n_coefs,) if loss.n_outputs == 1 else (loss.n_outputs, n_coefs)
    norm = randomiser.expected_norm
    if norm is None:
        norm = _first_residual(n_classes) / loss.lipschitz
    made = randomiser.calibrate(epsilon, math.prod(shape), norm)
    longest = loss.lipschitz * row_norm
    sgd = plan_local_sgd(
        n_rows=n_gradients,
        longest=longest,
        error=made.mean_squared_error(norm),
        smoothness=loss.smoothness * row_norm**2,
        batch_size=batch_size,
        step_size=step_size,
        decay=COVARIANCE_DECAY if decay is None and n_curved else decay,
        penalty=penalty / n_rows,
        average=average,
    )
    return LogisticReportsPlan(
        loss=loss,
        shape=shape,
        randomiser=made,
        longest=longest,
        sgd=sgd,
        n_gradients=n_gradients,
        curvature=lift(epsilon, n_coefs) if n_curved else None,
        longest_root=math.sqrt(loss.smoothness) * row_norm,
    )


def coef_covariance(hessian, level, second_moment, plan):
    """Return the covariance of averaged iterates, in the units of the plan.

    Parameters
    ----------
    hessian, level : ndarray of shape (size, size), float
        Hessian of the mean loss, without the penalty, and a bound on its noise.
    second_moment : ndarray of shape (size, size)
        Of the reported gradients near the end.
    plan : LogisticReportsPlan
        The plan.

    Returns
    -------
    covariance : ndarray of shape (size, size)
        ``H^-1 S H^-1 / n``, symmetric; infinite if the noise hides an eigenvalue of H.
    """
    n_coefs = len(hessian)
    if np.linalg.eigvalsh(hessian)[0] <= level:
        return np.full((n_coefs, n_coefs), math.inf)
    hessian = hessian + plan.sgd.penalty * np.eye(n_coefs)
    half = np.linalg.solve(hessian, second_moment)
    covariance = np.linalg.solve(hessian, half.T) / plan.n_gradients
    return (covariance + covariance.T) / 2.0


def _first_residual(n_classes):
    """Return the norm of a residual for equally likely classes."""
    return 0.5 if n_classes == 2 else math.sqrt(1.0 - 1.0 / n_classes)


# Vectors that rows of a linear model report: gradients, and roots of curvature.


@dataclass(frozen=True, eq=False)
class CurvatureVectors:
    """The row times the square root of the second derivative of its loss, in units of the longest.

    Parameters
    ----------
    coef : ndarray of shape (n_coefs,)
        Point of the derivative.
    loss : LogisticLoss
        Pointwise loss with one output.
    longest : float
        Bound on the norm: the square root of the largest second derivative, times the bound on a
        row.

    Notes
    -----
    The second moment of these vectors is the Hessian of the mean loss, over ``longest**2``.
    """

    coef: Any
    loss: Any
    longest: float

    @property
    def name(self):
        """Name of the reported vectors."""
        return f"roots of curvature of {type(self.loss).__name__}"

    def vectors(self, chunk):
        """Return the vectors of a chunk of `LinearRows`, zeros for null rows."""
        chunk = chunk.widened()
        root = np.sqrt(self.loss.curvature(chunk.predict(self.coef), chunk.target))
        root[np.isinf(chunk.norm)] = 0.0
        root /= self.longest
        return rows_times(root, chunk)


# Reports of gradients through the gate, and their second moment.


#: numbers of reports that are held at a time
_AT_ONCE = 1 << 21


class GradientReports:
    """One gradient report of each of the first rows, batch by batch.

    Parameters
    ----------
    curator : Curator
        Holds the rows.
    loss : object
        Pointwise loss.
    shape : tuple of int
        Shape of the coefficients.
    randomiser : Lift, Flip or Product
        Randomiser of vectors of this size.
    longest : float
        Bound on the norm of a gradient.
    n_rows : int
        Rows that report gradients.
    penalty : float
        Strength of the public penalty, which is part of the scatter.
    first_kept : int or None
        First row with a report in the scatter; None for no scatter.
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
        """Mean of ``g g'`` over the reports g of the scatter, with the gradient of the penalty."""
        return self._moment / self._n_kept


def reported_hessian(curator, loss, coef, randomiser, longest, rows):
    """Return an unbiased Hessian of the mean loss, and a bound on its noise.

    Parameters
    ----------
    curator : Curator
        Holds the rows.
    loss : LogisticLoss
        Pointwise loss with one output.
    coef : ndarray of shape (size,)
        Point of the Hessian.
    randomiser : Lift
        Randomiser of vectors of this size.
    longest : float
        Bound on the norm of `CurvatureVectors`.
    rows : tuple of (int, int)
        First row that reports, and the one after the last.

    Returns
    -------
    hessian : ndarray of shape (size, size)
        Hessian without the penalty, not necessarily positive definite.
    level : float
        Twice the variance of the noise times ``sqrt(size / n_rows)``, which an eigenvalue of the
        noise hardly ever exceeds.

    Notes
    -----
    A report of w has second moment ``s I + (c/m) w w'`` (Lift), for every length of w.
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


class LocalDPLogisticRegression(
    PlanMixin, SoftmaxClassifierMixin, LinearClassifierMixin, SparseCoefMixin, BaseEstimator
):
    """Logistic regression from one locally private report of every row.

    Every row reports the gradient of its loss once, randomised before anybody sees it, in one pass
    of stochastic gradient steps over batches. The result is the average of the iterates [1]_.
    Nobody holds the rows, and nobody is trusted.

    Parameters
    ----------
    epsilon : float, default=8.0
        Privacy budget of the one report of a row, in nats, from 1e-6 to 1e6.
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of a row; longer rows are scaled down to it.
    classes : array-like of shape (n_classes,), default=None
        Public label set. Rows with other labels report a vector of zeros, randomised like any
        other. None reads it from `y`, and the ledger says so. The label is protected like the rest
        of its row.
    C : float, default=np.inf
        Inverse strength of the penalty, as in scikit-learn: the sum of losses plus ``|coef|^2 / (2
        C)``, where the intercept is another coefficient, with its constant feature in units of
        `data_norm`. The penalty is public, and not part of a report.
    fit_intercept : bool, default=True
        Whether to fit an intercept, by one more entry of every report.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. None is 0.4.
    randomiser : {"lift", "flip", "product", "auto"} or BallRandomiser, default="lift"
        Randomiser of gradients, in units of the longest. A name is the `magnitude` of a
        `BallRandomiser`, the treatment of lengths below 1. "lift": an additional entry makes all
        vectors unit vectors. "product": separate reports of direction and length, as in [1]_;
        better at large budgets. An object also has the expected norm of gradients, which
        determines the steps; its default is the norm for a row of norm 1 at the start.
    batch_size : int, default=None
        Number of rows of a batch, nearly equal for all. None chooses it from public quantities.
    step_size : float, default=None
        Length of steps along the mean gradient of rows in units of `data_norm`. None chooses it.
    decay : float, default=None
        In (1/2, 1): steps have length ``step_size * k**-decay`` [2]_. None: equal steps, or 0.55
        with a covariance.
    average : bool, default=True
        Whether the result is the average of the iterates, or the last one.
    covariance_share : float, default=0.0
        For two classes: share of the rows that report, instead of a gradient, a vector for the
        Hessian at the result, which `coef_covariance_` needs. Try 0.2.
    budget : PrivacyBudget, default=None
        A budget shared by several fits. Each fit is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise reproducible, voids
        the guarantee towards anybody who knows it, and warns.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients. For several classes they add up to zero, if none is zero.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    coef_covariance_ : ndarray of shape (n_features + 1, n_features + 1)
        Estimated covariance of the coefficients and, last, the intercept, in squared units of
        these; only with `covariance_share`. Infinite if the noise hides the curvature: it needs
        more rows or a larger budget.
    classes_ : ndarray of shape (n_classes,)
        Label set.
    n_iter_ : ndarray of shape (1,)
        Number of batches, a public number.
    n_rounds_ : int
        Planned number of rounds; only after `client`.
    randomiser_ : object
        Public parameters of the reports of gradients.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, 0.0) spent; never more than granted.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    DPLogisticRegression : With somebody who holds the rows, and far less noise.
    PrivUnitPrivatizer : Reports of the rows themselves.

    Notes
    -----
    Privacy. Every row, with its label, makes one report. The densities of the report under any two
    values of the row differ by a factor of at most ``exp(epsilon)``. So all reports together are
    epsilon-private in the local model, towards every reader. Public: the parameters, the number of
    rows, the number and names of features, and the label set. Not covered: timing, exceptions on
    malformed input, `score` on private data, and the choice of parameters by private data. Every
    further fit costs every row another `epsilon`.

    Rows are read in a fixed order, far from sorted. Each batch reports at the current point, so
    rows must be available at their turn: the protocol is interactive. `client` and
    `partial_fit_reports` are one round of it. Several classes make one vector and one report, with
    a norm of at most ``sqrt(2)`` times the norm of the row.

    The covariance is ``H^-1 S H^-1 / n``: S is the second moment of the reported gradients, and H
    the reported Hessian, corrected for its noise [1]_, [2]_. It covers the noise of rows and of
    reports, with enough steps to forget the start; it does not cover the bias of shorter passes.
    On made-up data of 20,000 and 200,000 rows, the coverage of intervals of level 0.95 was 0.9 to
    0.95. Proofs are in the user guide, :ref:`proofs-local`.

    References
    ----------
    .. [1] A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor and R. Rogers, "Protection against
       reconstruction and its applications in private federated learning", 2018, Section 3.2,
       Corollaries 3.1 and 3.2, Theorem 3.
    .. [2] B. T. Polyak and A. B. Juditsky, "Acceleration of stochastic approximation by
       averaging", SIAM J. Control and Optimization, 1992, Theorem 3.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import LocalDPLogisticRegression
    >>> X, y = make_blobs(
    ...     2000, centers=[[0.5, 0.5], [-0.5, -0.5]], cluster_std=0.2, random_state=0
    ... )
    >>> model = LocalDPLogisticRegression(classes=[0, 1], random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.privacy_spent_[0] <= 8.0
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    _parameter_constraints = {
        **{
            name: SHARED_CONSTRAINTS[name]
            for name in ("epsilon", "data_norm", "budget", "random_state")
        },
        "classes": ["array-like", None],
        "C": [Interval(Real, 0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": SCALE_OR_NONE,
        "randomiser": [StrOptions(set(MAGNITUDES)), BallRandomiser],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "step_size": SCALE_OR_NONE,
        "decay": [Interval(Real, 0.5, 1, closed="neither"), None],
        "average": ["boolean"],
        "covariance_share": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        epsilon: float = 8.0,
        *,
        data_norm: float = 1.0,
        classes: ArrayLike | None = None,
        C: float = np.inf,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        randomiser: Literal["lift", "flip", "product", "auto"] | BallRandomiser = "lift",
        batch_size: int | None = None,
        step_size: float | None = None,
        decay: float | None = None,
        average: bool = True,
        covariance_share: float = 0.0,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.classes = classes
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.randomiser = randomiser
        self.batch_size = batch_size
        self.step_size = step_size
        self.decay = decay
        self.average = average
        self.covariance_share = covariance_share
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: VectorLike) -> Self:
        """Fit the model from one report of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows. Rows longer than `data_norm` are scaled down to it.
        y : array-like of shape (n_samples,)
            Private labels.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable. The message contains no data value, but the
            exception itself may depend on the data.
        """
        check_local_epsilon(self.epsilon)
        ball = L2Ball(check_radius(self.data_norm))
        X, y = validate_private_data(self, X, y, classes=self.classes, accept_sparse="csr")
        classes, codes, outside, assumptions = resolve_classes(y, self.classes)
        n_rows, n_features = X.shape
        plan = self._plan(n_rows, n_features, len(classes))
        intercept, order, doubts = self._intercept, public_order(n_rows), Doubts(self)
        with open_gate(
            self,
            lambda: LinearRows(
                X[order],
                plan.loss.encode(codes)[order],
                outside[order],
                ball,
                intercept,
                effective_n_threads(),
            ),
            n_rows=n_rows,
            delta=0.0,
            adjacency="local",
            assumptions=assumptions,
            doubts=doubts,
        ) as curator:
            reports = GradientReports(
                curator,
                plan.loss,
                plan.shape,
                plan.randomiser,
                plan.longest,
                plan.n_gradients,
                plan.sgd.penalty,
                plan.n_gradients // 2 if plan.curvature else None,
            )
            descent = LocalDescent(plan.shape, plan.sgd)
            heard = plan.heard()
            for batch in plan.sgd.batches:
                gradient, n_batch = reports.mean(descent.coef, batch), batch[1] - batch[0]
                heard.add(gradient * n_batch, n_batch / plan.n_gradients)
                descent.step(gradient)
            heard.say(doubts)
            if plan.curvature:
                rows, unit = (plan.n_gradients, n_rows), plan.longest_root
                hessian, level = reported_hessian(
                    curator, plan.loss, descent.result, plan.curvature, unit, rows
                )
                covariance = coef_covariance(hessian, level, reports.second_moment, plan)
                units = self._units(n_features)
                self.coef_covariance_ = units[:, None] * covariance * units
        if "_rounds" in vars(self):
            del self._rounds
        return self._described(descent, classes, plan)

    def client(self, n_features: int, n_samples: int) -> LocalClient:
        """Return a client that reports a gradient at the current point.

        A round: send this client to all persons of a batch, add their reports to an `Aggregator`,
        and pass it to `partial_fit_reports`. The first call begins the rounds, without an earlier
        fit.

        Parameters
        ----------
        n_features, n_samples : int
            Number of features, and approximate number of reporting persons in all rounds, which
            determines the step sizes. The same in every round.

        Returns
        -------
        client : LocalClient
            Client for ``report(row, label)``. Every person reports in one round only.

        Raises
        ------
        ValueError
            If a parameter is unusable, `classes` is None, `covariance_share` is not 0, or all
            rounds are done.
        """
        self._validate_params()
        check_local_epsilon(self.epsilon)
        check_scalar(n_features, "n_features", Integral, min_val=1)
        check_scalar(n_samples, "n_samples", Integral, min_val=1)
        if self.classes is None or self.covariance_share:
            raise ValueError(
                "clients need classes, the public label set, and covariance_share=0.0: a curvature "
                f"is reported in a fit only; got classes={self.classes!r}, "
                f"covariance_share={self.covariance_share!r}."
            )
        plan, _, point = self._begun(int(n_features), int(n_samples))
        self.n_rounds_ = plan.sgd.n_steps
        return LocalClient(point, plan.randomiser, self.epsilon, self.budget)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit_reports(self, reports: Aggregator) -> Self:
        """Make one step along the reported gradients of a round.

        Parameters
        ----------
        reports : Aggregator
            Reports of the last result of `client`, in any number.

        Returns
        -------
        self : object
            Estimator fitted to the rounds so far, with an empty ledger: it spends nothing.

        Raises
        ------
        ValueError, TypeError
            If there is no client, the reports are from another round, or there are none.
        """
        if "_rounds" not in vars(self):
            raise ValueError("there is no round: call client(n_features, n_samples) first.")
        n_features, n_samples, _ = self._rounds
        plan, descent, point = self._begun(n_features, n_samples)
        sums = sums_of(self, reports, lambda _: point)
        descent.step((sums.mean * plan.longest).reshape(plan.shape))
        return self._described(descent, point.classes, plan)

    def _begun(self, n_features, n_samples):
        """Return the plan, the steps so far, and the vectors of the next round, or raise."""
        classes, *_ = resolve_classes(np.asarray(self.classes), self.classes)
        plan = self._plan(n_samples, n_features, len(classes))
        if "_rounds" not in vars(self):
            self._rounds = n_features, n_samples, LocalDescent(plan.shape, plan.sgd)
        *begun, descent = self._rounds
        if begun != [n_features, n_samples] or descent.plan != plan.sgd:
            raise ValueError(
                f"rounds have begun for n_features={begun[0]} and n_samples={begun[1]}, or with "
                "other parameters: clone the estimator to begin anew."
            )
        if descent.n_done == plan.sgd.n_steps:
            raise ValueError(
                f"all {plan.sgd.n_steps} rounds are done: clone the estimator to begin anew."
            )
        radius, intercept = float(self.data_norm), float(self._intercept)
        return plan, descent, GradientDomain(descent.coef, classes, radius, intercept)

    def _described(self, descent, classes, plan):
        """Set the attributes from the result."""
        intercept, coef = self._intercept, centered_classes(descent.result)
        self.classes_ = classes
        self._clipped_at = check_radius(self.data_norm)
        self.coef_ = coef[:, : self.n_features_in_] / self.data_norm
        self.intercept_ = intercept * coef[:, -1] if intercept else np.zeros(len(coef))
        self.n_iter_ = self._steps(descent.n_done)
        self.randomiser_ = plan.randomiser
        return self

    def confidence_interval(
        self, level: float = 0.95
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return intervals for the coefficients of two classes, from their covariance.

        Parameters
        ----------
        level : float, default=0.95
            Probability in (0, 1) that one interval covers the coefficient of the population,
            for many rows and enough steps (see Notes of the class).

        Returns
        -------
        lower, upper : ndarray of shape (n_features + 1,)
            Ends in the order of `coef_covariance_`. Infinite if noise hides the curvature.

        Raises
        ------
        ValueError
            If the level is not in (0, 1), or there is no covariance.
        """
        check_is_fitted(self)
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be in (0, 1); got {level!r}.")
        if not hasattr(self, "coef_covariance_"):
            raise ValueError(
                "an interval needs the covariance of the coefficients: covariance_share must be "
                "greater than 0 in fit."
            )
        center = np.append(self.coef_[0], self.intercept_[: self.fit_intercept])
        reach = ndtri((1.0 + level) / 2.0) * np.sqrt(np.diag(self.coef_covariance_))
        return center - reach, center + reach

    @property
    def _intercept(self):
        if not self.fit_intercept:
            return 0.0
        return LOCAL_INTERCEPT if self.intercept_scaling is None else self.intercept_scaling

    def _units(self, n_features):
        units = np.full(n_features, 1.0 / self.data_norm)
        return np.append(units, self._intercept) if self.fit_intercept else units

    def _plan(self, n_rows, n_features, n_classes):
        return plan_logistic_reports(
            n_rows,
            n_features,
            n_classes,
            epsilon=self.epsilon,
            intercept=self._intercept,
            randomiser=as_ball_randomiser(self.randomiser),
            covariance_share=self.covariance_share,
            batch_size=self.batch_size,
            step_size=self.step_size,
            decay=self.decay,
            penalty=penalty_of(self.C, self.data_norm),
            average=self.average,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

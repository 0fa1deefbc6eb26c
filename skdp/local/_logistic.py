# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logistic regression from one local report of every row."""

from numbers import Integral, Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skdp._sklearn import SCALE_OR_NONE, SHARED_CONSTRAINTS, Interval, StrOptions
from skdp._typing import Budget, Seed
from skdp.local._choice import MAGNITUDES, PARAMETERS
from skdp.local._logistic_fit import LogisticFromReports


class LocalDPLogisticRegression(LogisticFromReports):
    """Logistic regression from one locally private report of every row.

    Every row reports the gradient of its loss once, randomised before anybody sees it, in one
    of the batches of one pass of stochastic gradient steps; the result is the average of the
    iterates [1]_. Nobody holds the rows, and nobody need be trusted.

    Parameters
    ----------
    epsilon : float, default=8.0
        Budget of the one report that a row makes, in nats, from 1e-6 to 1e6.
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of a row; longer rows are scaled down to it.
    classes : array-like of shape (n_classes,), default=None
        Public label set. Rows with other labels report a vector of zeros, randomised like any
        other. None reads it from `y` and says so in the ledger. The label is protected like
        the rest of its row.
    C : float, default=np.inf
        Inverse strength of the penalty, as in scikit-learn: the sum of losses plus
        ``|coef|^2 / (2 C)``, the intercept counting as one more coefficient, with its constant
        feature in units of `data_norm`. The penalty is public: no report has it.
    fit_intercept : bool, default=True
        Whether there is an intercept. It is one more entry of every report.
    intercept_scaling : float, default=None
        Constant feature that the intercept belongs to, in units of `data_norm`. None: 0.4.
    magnitude : {"lift", "flip", "product", "auto"}, default="lift"
        What is done about lengths of gradients. "lift": one more entry makes all of them unit
        vectors. "flip": the direction is turned round at random. "product": direction and
        length are reported separately, as in [1]_; better at large budgets. "auto": the one of
        least error for gradients of norm `expected_norm`.
    expected_norm : float, default=None
        A public guess of the norms of gradients, in (0, 1], in units of the longest; steps, and
        the choices of "product" and "auto" rest on it. None: that of a row of norm 1 at the
        start.
    magnitude_epsilon : float, default=None
        "product": the part of `epsilon` that is for the length. None for the best one, or for an
        eighth where `parameters` is not "optimal".
    parameters : {"optimal", "paper", "paper-simulation", "half"}, default="optimal"
        "optimal" has the least error. The others reproduce [1]_ and are worse: 1 % of the
        budget of directions for the coin; Section 5.1 (with "product" only); a fair coin
        (equation 22).
    batch_size : int, default=None
        Rows of a batch, all nearly equal. None chooses it from public quantities.
    step_size : float, default=None
        Length of steps along the mean gradient of rows in units of `data_norm`. None chooses it.
    decay : float, default=None
        In (1/2, 1): steps have length ``step_size * k**-decay`` [2]_. None: equal steps, or 0.55
        if there is to be a covariance.
    average : bool, default=True
        Whether the result is the average of the iterates, or the last one.
    covariance_share : float, default=0.0
        Two classes: share of the rows that do not report gradients, but a vector whose second
        moment is the Hessian at the result, for `coef_covariance_`. Try 0.2.
    budget : PrivacyBudget, default=None
        A budget that several fits share: each is charged (epsilon, delta) before it reads a
        row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise
        reproducible, voids the guarantee towards whoever knows it, and warns.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    coef_covariance_ : ndarray of shape (n_features + 1, n_features + 1)
        Estimated covariance of the coefficients and, last, the intercept, in squared units of
        these; only with `covariance_share`. Infinite where the noise hides the curvature: more
        rows, or a larger budget, are needed.
    classes_ : ndarray of shape (n_classes,)
        Label set.
    n_iter_ : int
        Number of batches, a public number.
    randomiser_ : object
        Public parameters of the reports of gradients.
    ledger_ : Ledger
        What was released, at what price.
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
    Privacy. Every row, its label included, makes one report, whose densities under any two
    values of the row differ by a factor of at most ``exp(epsilon)``. So all reports together
    are epsilon-private in the local model, whoever reads them. Public: the parameters, the
    number of rows, the number and names of features, and the label set. Not covered: timing,
    exceptions on malformed input, `score` on private data, and the choice of parameters by
    looking at private data; every further fit costs every row another `epsilon`.

    Rows are read in a fixed order that is far from sorted. At step k the batch reports at the
    current point, so that the rows must be reachable in turn: this is an interactive protocol.
    Several classes are one vector and one report, of norm at most ``sqrt(2)`` times that of the
    row.

    The covariance is ``H^-1 S H^-1 / n``: S is the second moment of the reported gradients, and
    H the reported Hessian, corrected for its noise [1]_, [2]_. It describes the noise, of the
    rows and of the reports, when steps are many and have forgotten the start; with short
    passes there is a bias as well, which it does not know. Made-up data of 20,000 and 200,000
    rows had intervals of level 0.95 that covered in 0.9 to 0.95 of all fits. Proofs are in the
    user guide, :ref:`proofs-local`.

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

    _parameter_constraints = {
        **{
            name: SHARED_CONSTRAINTS[name]
            for name in ("epsilon", "data_norm", "budget", "random_state")
        },
        "classes": ["array-like", None],
        "C": [Interval(Real, 0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": SCALE_OR_NONE,
        "magnitude": [StrOptions(set(MAGNITUDES))],
        "expected_norm": [Interval(Real, 0, 1, closed="right"), None],
        "magnitude_epsilon": [Interval(Real, 0, None, closed="neither"), None],
        "parameters": [StrOptions(set(PARAMETERS))],
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
        magnitude: Literal["lift", "flip", "product", "auto"] = "lift",
        expected_norm: float | None = None,
        magnitude_epsilon: float | None = None,
        parameters: Literal["optimal", "paper", "paper-simulation", "half"] = "optimal",
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
        self.magnitude = magnitude
        self.expected_norm = expected_norm
        self.magnitude_epsilon = magnitude_epsilon
        self.parameters = parameters
        self.batch_size = batch_size
        self.step_size = step_size
        self.decay = decay
        self.average = average
        self.covariance_share = covariance_share
        self.budget = budget
        self.random_state = random_state

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private logistic regression."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator

from skdp._domains import L2Ball, check_radius
from skdp._losses import LogisticLoss, SoftmaxLoss
from skdp._queries import ClippedGradient, LinearRows
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    StrOptions,
    blas_on_one_thread,
    effective_n_threads,
    fit_context,
    validate_private_data,
)
from skdp._solvers import DEFAULT_INTERCEPT, GRADIENT_SOLVERS, plan_gradient
from skdp.linear_model._labels import resolve_classes
from skdp.linear_model._softmax import SoftmaxClassifierMixin
from skdp.privacy import Curator, GaussianMechanism, gdp_mu


class DPLogisticRegression(SoftmaxClassifierMixin, BaseEstimator):
    """Differentially private logistic regression, binary and multinomial.

    Minimises ``C * sum_i log-loss(y_i, x_i coef + intercept) + |coef|^2 / 2`` by clipped
    gradient steps, each of which is released with Gaussian noise.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0 and finite.
    delta : float, default=1e-6
        Privacy budget, in (0, 1). Choose it well below 1 / n_samples.
    mechanism : {"gradient"}, default="gradient"
        What is released: the clipped gradient of the loss, summed over all rows, once a
        step.
    solver : {"accelerated", "gd"}, default="accelerated"
        "accelerated" extrapolates (Nesterov), "gd" is plain gradient descent. Both
        average all iterates but the first half or third.
    adjacency : {"replace-one", "zero-out"}, default="replace-one"
        Which data sets the claim cannot tell apart: those that differ in one row
        ("replace-one"), or in one row that is replaced by a null row which contributes
        nothing ("zero-out", half the noise). The number of rows is public in both.
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, in [1e-100, 1e100]. Longer rows are
        scaled down to it, in `fit` only. It must not be computed from private data.
    classes : array-like of shape (n_classes,), default=None
        Public label set. Rows with another label contribute nothing; a class without
        rows is allowed. None reads the set from `y`, and the ledger says so.
    C : float, default=np.inf
        Inverse strength of the penalty, as in scikit-learn; ``np.inf`` for none, because
        noise and a limited number of steps regularise enough. The intercept is not
        penalised.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is inside the guarantee: rows are clipped
        together with the constant feature.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small one
        takes less of a row's clipped gradient. None chooses it, see Notes.
    coef_bound : float, default=None
        Radius of the ball that the coefficients stay in, where the intercept counts as
        ``intercept_ / (intercept_scaling * data_norm)``. None for no constraint.
    clipping_norm : float, default=None
        Bound on the norm of one row's gradient, for rows in units of `data_norm`. None
        chooses it, see Notes.
    step_size : float, default=None
        Step along the gradient of the mean loss, for rows in units of `data_norm`. None
        chooses it, see Notes, and shortens it where released gradients call for it.
    max_iter : int, default=None
        Number of steps; all of them are made, none depends on the data. None chooses
        it, see Notes.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise
        reproducible, voids the guarantee towards whoever knows it, and warns.
    verbose : int, default=0
        1 prints the plan before the first step: public numbers only.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    classes_ : ndarray of shape (n_classes,)
        Label set.
    n_iter_ : int
        Number of steps, a public number.
    ledger_ : Ledger
        What was released, at what price.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent; never more than granted.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    DPMean : Private mean.
    privacy_spent : Add up several fits.
    sklearn.linear_model.LogisticRegression : Without privacy.

    Notes
    -----
    Privacy. One row is protected, at (epsilon, delta) and the chosen adjacency. Public:
    the parameters, the number of rows, the number and names of features, and the label
    set. The gradient of a row, intercept included, is clipped to norm c, so that the sum
    moves by at most c (zero-out) or 2c (replace-one); T releases with noise of standard
    deviation ``sensitivity * sqrt(T) / mu`` are exactly mu-Gaussian-DP together [2]_, and
    mu is the largest that implies (epsilon, delta) [3]_. Several classes share one
    clipped gradient and one budget. Not covered: timing, exceptions on malformed input,
    `score` on private data, and the choice of parameters by looking at private data.

    Steps, step size, clipping and intercept feature are chosen from the number of rows,
    of features and of classes, from mu and the adjacency: see
    ``skdp/_solvers/gradient_plan.py`` and the table in the user guide.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014, Algorithm 1.
    .. [2] J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", JRSS B, 2022,
       Corollary 2.
    .. [3] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential
       privacy", ICML 2018, Theorem 8.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import BoundedScaler, DPLogisticRegression
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(
    ...     BoundedScaler(bounds=(0, 16), feature_range=(0, 1)),
    ...     DPLogisticRegression(epsilon=4.0, data_norm=4.0, classes=range(10), random_state=0),
    ... )
    >>> model.fit(X, y).score(X, y) > 0.85
    True
    >>> model[-1].privacy_spent_[0] <= 4.0
    True
    """

    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "verbose": ["verbose"],
        "mechanism": [StrOptions({"gradient"})],
        "solver": [StrOptions(set(GRADIENT_SOLVERS))],
        "classes": ["array-like", None],
        "C": [Interval(Real, 0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": SCALE_OR_NONE,
        "coef_bound": SCALE_OR_NONE,
        "clipping_norm": SCALE_OR_NONE,
        "step_size": SCALE_OR_NONE,
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-6,
        *,
        mechanism="gradient",
        solver="accelerated",
        adjacency="replace-one",
        data_norm=1.0,
        classes=None,
        C=np.inf,
        fit_intercept=True,
        intercept_scaling=None,
        coef_bound=None,
        clipping_norm=None,
        step_size=None,
        max_iter=None,
        random_state=None,
        verbose=0,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.mechanism = mechanism
        self.solver = solver
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.classes = classes
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.coef_bound = coef_bound
        self.clipping_norm = clipping_norm
        self.step_size = step_size
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y):
        """Fit the model within the budget.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows. Rows longer than `data_norm` are scaled down to it.
        y : array-like of shape (n_samples,)
            Private labels.

        Returns
        -------
        self : DPLogisticRegression
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable. The message names no data value,
            but that it was raised may depend on the data.
        """
        mu = gdp_mu(self.epsilon, self.delta)
        ball = L2Ball(check_radius(self.data_norm))
        X, y = validate_private_data(self, X, y, accept_sparse="csr")
        classes, codes, outside, assumptions = resolve_classes(y, self.classes)
        loss = LogisticLoss() if len(classes) == 2 else SoftmaxLoss(len(classes))
        intercept = self._constant_feature()
        n_rows, n_features = X.shape
        plan = self._plan(n_rows, n_features, loss, mu, intercept)
        if self.verbose:
            print(f"[{type(self).__name__}] {plan}")
        curator = Curator(
            lambda: LinearRows(
                X, loss.encode(codes), outside, ball, intercept, effective_n_threads()
            ),
            n_rows=n_rows,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            random_state=self.random_state,
            purpose=type(self).__name__,
            assumptions=assumptions,
        )
        mechanism = GaussianMechanism(plan.mu_step)

        def gradient(coef):
            released = curator.release(ClippedGradient(coef, loss, plan.clip), mechanism)
            return released.reshape(coef.shape) / n_rows

        n_coefs = n_features + self.fit_intercept
        shape = (n_coefs,) if len(classes) == 2 else (len(classes), n_coefs)
        with blas_on_one_thread():
            coef = np.atleast_2d(GRADIENT_SOLVERS[self.solver](gradient, shape, plan))
        self.classes_ = classes
        self.coef_ = coef[:, :n_features] / self.data_norm
        self.intercept_ = intercept * coef[:, -1] if intercept else np.zeros(len(coef))
        self.n_iter_ = plan.n_steps
        self.ledger_ = curator.ledger
        self.privacy_spent_ = (curator.ledger.epsilon(self.delta), self.delta)
        return self

    def _constant_feature(self):
        if not self.fit_intercept:
            return 0.0
        return DEFAULT_INTERCEPT if self.intercept_scaling is None else self.intercept_scaling

    def _plan(self, n_rows, n_features, loss, mu, intercept):
        radius = None if self.coef_bound is None else self.coef_bound * self.data_norm
        return plan_gradient(
            n_rows=n_rows,
            n_features=n_features,
            loss=loss,
            mu=mu,
            adjacency=self.adjacency,
            intercept=intercept,
            l2=1.0 / self.C / self.data_norm / self.data_norm / n_rows,
            radius=radius,
            n_steps=self.max_iter,
            step_size=self.step_size,
            clip=self.clipping_norm,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

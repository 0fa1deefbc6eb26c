# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private logistic regression."""

from numbers import Integral, Real

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator

from skdp._domains import L2Ball
from skdp._losses import LogisticLoss, SoftmaxLoss
from skdp._queries import ClippedGradient, LinearRows
from skdp._sklearn import (
    POSITIVE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    LinearClassifierMixin,
    StrOptions,
    effective_n_threads,
    fit_context,
    validate_private_data,
)
from skdp._solvers import GRADIENT_SOLVERS, plan_gradient
from skdp.linear_model._labels import resolve_classes
from skdp.privacy import Curator, GaussianMechanism, gdp_mu


class DPLogisticRegression(LinearClassifierMixin, BaseEstimator):
    """Differentially private logistic regression, binary and multinomial."""

    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "mechanism": [StrOptions({"gradient"})],
        "solver": [StrOptions(set(GRADIENT_SOLVERS))],
        "classes": ["array-like", None],
        "C": [Interval(Real, 0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": POSITIVE_OR_NONE,
        "coef_bound": POSITIVE_OR_NONE,
        "clipping_norm": POSITIVE_OR_NONE,
        "step_size": POSITIVE_OR_NONE,
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
        C=1.0,
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
        """
        mu = gdp_mu(self.epsilon, self.delta)
        ball = L2Ball(self.data_norm)
        X, y = validate_private_data(self, X, y, accept_sparse="csr")
        classes, codes, outside, assumptions = resolve_classes(y, self.classes)
        loss = LogisticLoss() if len(classes) == 2 else SoftmaxLoss(len(classes))
        intercept = (self.intercept_scaling or 1.0) if self.fit_intercept else 0.0
        n_rows, n_features = X.shape
        plan = self._plan(n_rows, n_features, loss, mu, intercept)
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

        shape = (n_features + 1,) if len(classes) == 2 else (len(classes), n_features + 1)
        coef = GRADIENT_SOLVERS[self.solver](gradient, shape, plan)
        coef = np.atleast_2d(coef)
        self.classes_ = classes
        self.coef_ = coef[:, :-1] / self.data_norm
        self.intercept_ = coef[:, -1] * intercept
        self.n_iter_ = plan.n_steps
        self.ledger_ = curator.ledger
        self.privacy_spent_ = (curator.ledger.epsilon(self.delta), self.delta)
        return self

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

    def predict_proba(self, X):
        """Estimate probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        score = self.decision_function(X)
        if score.ndim == 1:
            return np.column_stack([expit(-score), expit(score)])
        return softmax(score, axis=1)

    def predict_log_proba(self, X):
        """Estimate logarithms of probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        score = self.decision_function(X)
        if score.ndim == 1:
            return np.column_stack([log_expit(-score), log_expit(score)])
        return log_softmax(score, axis=1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How a logistic regression is fitted to local reports, and what its attributes say."""

from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skdp._classification import SoftmaxClassifierMixin, penalty_of, resolve_classes
from skdp._domains import L2Ball, check_radius
from skdp._queries import LinearRows
from skdp._randomisers._odds import check_local_epsilon
from skdp._sklearn import (
    LinearClassifierMixin,
    SparseCoefMixin,
    blas_on_one_thread,
    effective_n_threads,
    fit_context,
    validate_private_data,
)
from skdp._solvers import local_sgd, public_order
from skdp._typing import MatrixLike, VectorLike
from skdp.local._gradient_reports import GradientReports, reported_hessian
from skdp.local._logistic_plan import LOCAL_INTERCEPT, coef_covariance, plan_logistic_reports
from skdp.privacy import Curator


class LogisticFromReports(
    SoftmaxClassifierMixin, LinearClassifierMixin, SparseCoefMixin, BaseEstimator
):
    """Base of `LocalDPLogisticRegression`, which has the parameters."""

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
            If a parameter or the data are unusable. The message names no data value, but that
            it was raised may depend on the data.
        """
        check_local_epsilon(self.epsilon)
        ball = L2Ball(check_radius(self.data_norm))
        X, y = validate_private_data(self, X, y, accept_sparse="csr")
        classes, codes, outside, assumptions = resolve_classes(y, self.classes)
        n_rows, n_features = X.shape
        plan = self._plan(n_rows, n_features, len(classes))
        intercept, order = self._intercept, public_order(n_rows)
        curator = Curator(
            lambda: LinearRows(
                X[order],
                plan.loss.encode(codes)[order],
                outside[order],
                ball,
                intercept,
                effective_n_threads(),
            ),
            n_rows=n_rows,
            epsilon=self.epsilon,
            delta=0.0,
            adjacency="local",
            budget=self.budget,
            random_state=self.random_state,
            purpose=type(self).__name__,
            assumptions=assumptions,
        )
        with blas_on_one_thread():
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
            coef = local_sgd(reports.mean, plan.shape, plan.sgd)
            if plan.curvature:
                rows, unit = (plan.n_gradients, n_rows), plan.longest_root
                hessian, level = reported_hessian(
                    curator, plan.loss, coef, plan.curvature, unit, rows
                )
                covariance = coef_covariance(hessian, level, reports.second_moment, plan)
                units = self._units(n_features)
                self.coef_covariance_ = units[:, None] * covariance * units
        coef = np.atleast_2d(coef)
        self.classes_ = classes
        self.coef_ = coef[:, :n_features] / self.data_norm
        self.intercept_ = intercept * coef[:, -1] if intercept else np.zeros(len(coef))
        self.n_iter_ = plan.sgd.n_steps
        self.randomiser_ = plan.randomiser
        self.ledger_ = curator.ledger
        self.privacy_spent_ = (curator.ledger.epsilon(), 0.0)
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
            In the order of `coef_covariance_`. Infinite if the curvature is hidden by noise.

        Raises
        ------
        ValueError
            If the level is not in (0, 1), or the estimator was fitted without a covariance.
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
            magnitude=self.magnitude,
            expected_norm=self.expected_norm,
            magnitude_epsilon=self.magnitude_epsilon,
            parameters=self.parameters,
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

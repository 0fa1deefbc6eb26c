# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How a private linear regression is fitted: units, a threshold, then any mechanism."""

import math
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from skdp._losses import ClippedLoss
from skdp._queries import regression_rows
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    CallbackSupportMixin,
    Interval,
    StrOptions,
    blas_on_one_thread,
    effective_n_threads,
    fit_context,
    real_targets,
    validate_private_data,
)
from skdp._solvers import plan_clip, plan_scales
from skdp._typing import MatrixLike, VectorLike
from skdp.linear_model._problem import Problem
from skdp.linear_model._progress import Progress
from skdp.linear_model._reading import as_read, check_reading
from skdp.linear_model._regression_plan import (
    SOLVERS,
    check_clips,
    chosen,
    default_clip,
    plan_clipped,
)
from skdp.linear_model._regression_units import (
    LONGEST,
    Units,
    check_scale,
    regression_loss,
)
from skdp.privacy import Curator
from skdp.privacy._accounting import check_delta, check_epsilon

# constant feature in public units, and where the coefficient of it is expected; targets of unit
# size need coefficients of about that size for every feature if rows of unit length have it
_INTERCEPT, _EXPECTED_SHIFT = 0.1, 3.0


class PrivateLinearRegressor(CallbackSupportMixin, RegressorMixin, BaseEstimator):
    """Base of private linear regression: parameters, and the way through the gate."""

    _parameter_constraints = {
        **{
            name: SHARED_CONSTRAINTS[name]
            for name in ("epsilon", "delta", "adjacency", "budget", "random_state")
        },
        "p": [Interval(Real, 1, 4, closed="both"), StrOptions({"huber"})],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "huber_threshold": SCALE_OR_NONE[:1],
        "mechanism": [StrOptions({"auto", *SOLVERS})],
        "solver": [StrOptions({"auto"}.union(*SOLVERS.values()))],
        "data_norm": SCALE_OR_NONE,
        "target_scale": SCALE_OR_NONE,
        "l2": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": SCALE_OR_NONE,
        "coef_bound": SCALE_OR_NONE,
        "clipping_norm": [*SCALE_OR_NONE, StrOptions({"private"})],
        "moment_order": [Interval(Real, 1, None, closed="neither"), None],
        "moment_bound": SCALE_OR_NONE,
        "growth": [StrOptions({"halving", "doubling"}), None],
        "growth_order": [Interval(Real, 1, None, closed="neither")],
        "failure_probability": [Interval(Real, 0, 1, closed="neither"), None],
        "step_size": SCALE_OR_NONE,
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "batch_size": [Interval(Real, 0, None, closed="neither"), None],
        "verbose": ["verbose"],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: VectorLike) -> Self:
        """Fit the model within the budget.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowStream, dask array} of shape (n_samples, n_features)
            Private rows, of any length. Streams of `skdp.io`, memory maps from 256 MiB on and
            collections of dask are read chunk by chunk, with the same result; not by the
            solvers "localized" and "accelerated-one-pass".
        y : {array-like, RowStream, dask array} of shape (n_samples,)
            Private targets, of any size.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable, or if mechanism, solver and loss do
            not go together; nothing has been released then. The message names no data
            value, but that it was raised may depend on the data.
        """
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        X, y = validate_private_data(
            self,
            X,
            y,
            streams=True,
            accept_sparse="csr",
            order="C",
            y_numeric=True,
            multi_output=False,
        )
        y = real_targets(y)
        n_rows, n_features = X.shape
        scales, clipping, problem, pair = self._prepared(n_rows, n_features)
        plan = self._planned(problem, pair, self._units(), None)
        check_reading(plan, pair[1], X)
        if self.verbose:
            print(f"[{type(self).__name__}] {scales}, {clipping}, {plan}")
        n_draws = len(scales.prices) + len(clipping.prices)
        progress = Progress(self, plan.n_iter + n_draws)
        curator = Curator(
            lambda: regression_rows(*as_read(plan, X, y), effective_n_threads()),
            n_rows=n_rows,
            epsilon=self.epsilon,
            delta=plan.delta,
            adjacency=self.adjacency,
            budget=self.budget,
            mu=plan.total_mu,
            random_state=self.random_state,
            purpose=type(self).__name__,
            progress=progress,
        )
        with blas_on_one_thread():
            units = self._units(*scales.run(curator, *self._units().given))
            curator.map_rows(units.rows)
            clip = clipping.run(curator, problem.pointwise, None)
            plan = self._planned(problem, pair, units, clip)
            coef = plan.run(curator)
        progress.close()
        self.coef_, self.intercept_ = units.original(coef)
        self.data_norm_, self.target_center_, self.target_scale_ = units.given
        self.n_iter_ = plan.n_iter
        self.ledger_ = curator.ledger
        self.privacy_spent_ = (curator.ledger.epsilon(plan.delta), float(plan.delta))
        return self

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Return the predicted targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        predicted : ndarray of shape (n_samples,)
            ``X @ coef_ + intercept_``.
        """
        check_is_fitted(self)
        X = validate_private_data(self, X, accept_sparse="csr", reset=False)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return safe_sparse_dot(X, self.coef_) + self.intercept_

    def _units(self, radius=None, center=0.0, scale=None):
        """Return the units for scales that were drawn; those given, or a guess, for None."""
        given = self.data_norm is not None
        scaling = _INTERCEPT if self.intercept_scaling is None else self.intercept_scaling
        return Units(
            # as if features had been standardised
            radius=float(radius or self.data_norm or math.sqrt(self.n_features_in_)),
            longest=1.0 if given else LONGEST,
            center=center,
            scale=float(scale or self.target_scale or 1.0),
            intercept=float(scaling) if self.fit_intercept else 0.0,
            power=2.0 if self.p == "huber" else float(self.p),
        )

    def _prepared(self, n_rows, n_features):
        """Return the plans of all draws, the problem without its clip, and the solver."""
        loss = regression_loss(self.p, self.quantile, self.huber_threshold)
        check_scale("data_norm", self.data_norm)
        check_scale("target_scale", self.target_scale)
        check_clips(self.clipping_norm, self.moment_order, self.moment_bound)
        units = self._units()
        scales = plan_scales(
            self.epsilon,
            n_rows=n_rows,
            adjacency=self.adjacency,
            with_radius=self.data_norm is None,
            with_scale=self.target_scale is None,
            with_center=self.fit_intercept,
        )
        problem = Problem(
            n_rows=n_rows,
            n_features=n_features,
            loss=ClippedLoss(loss, 1.0, math.hypot(units.longest, units.intercept)),
            intercept=units.intercept,
            longest_row=units.longest,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            penalty=units.penalty(self.l2),
            radius=units.coef_bound(self.coef_bound),
            max_iter=self.max_iter,
            step_size=self.step_size,
            batch_size=self.batch_size,
            failure_probability=self.failure_probability,
            growth=self.growth,
            growth_order=self.growth_order,
            scale_prices=scales.prices,
            expected_radius=math.hypot(math.sqrt(n_features), _EXPECTED_SHIFT),
        )
        clipping = plan_clip(
            self.epsilon if self.clipping_norm == "private" else 0.0,
            n_rows=n_rows,
            tail=n_rows / problem.signal,
        )
        problem = replace(problem, scale_prices=(*scales.prices, *clipping.prices))
        return scales, clipping, problem, chosen(self.mechanism, self.solver, problem)

    def _planned(self, problem, pair, units, clip):
        """Return the plan of a mechanism in some units, with a clip that was drawn, or None."""
        wanted = None if self.clipping_norm == "private" else self.clipping_norm
        moments = None
        if self.moment_order is not None:
            moments = float(self.moment_order), units.gradient(self.moment_bound)
        problem = replace(
            problem,
            penalty=units.penalty(self.l2),
            radius=units.coef_bound(self.coef_bound),
            moments=moments,
        )
        clip = float(clip or wanted or default_clip(problem))
        return plan_clipped(problem, *pair, clip)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What private linear classifiers share: parameters, the way through the gate, attributes."""

from numbers import Integral, Real
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from skdp._classification import penalty_of, resolve_classes
from skdp._domains import L2Ball, check_radius
from skdp._queries import LinearRows, top_entries
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    CallbackSupportMixin,
    Interval,
    LinearClassifierMixin,
    SparseCoefMixin,
    StrOptions,
    blas_on_one_thread,
    effective_n_threads,
    fit_context,
    refuse_sparse,
    validate_private_data,
)
from skdp._solvers import DEFAULT_INTERCEPT
from skdp._streams import over_rows
from skdp._typing import MatrixLike, VectorLike
from skdp.linear_model._mechanisms import SOLVERS, choose, make_plan
from skdp.linear_model._preprocess import PREPROCESS, original_coef, plan_centring
from skdp.linear_model._problem import Problem
from skdp.linear_model._progress import Progress
from skdp.linear_model._reading import as_read, check_reading
from skdp.privacy import Curator
from skdp.privacy._accounting import check_delta, check_epsilon
from skdp.privacy._sampling import KINDS


class PrivateLinearClassifier(
    CallbackSupportMixin, LinearClassifierMixin, SparseCoefMixin, BaseEstimator
):
    """Base of the private linear classifiers; a subclass states its loss."""

    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "mechanism": [StrOptions({"auto", *SOLVERS})],
        "solver": [StrOptions({"auto"}.union(*SOLVERS.values()))],
        "classes": ["array-like", None],
        "C": [Interval(Real, 0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": SCALE_OR_NONE,
        "coef_bound": SCALE_OR_NONE,
        "localize": ["boolean"],
        "clipping_norm": SCALE_OR_NONE,
        "step_size": SCALE_OR_NONE,
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "batch_size": [Interval(Real, 0, None, closed="neither"), None],
        "sampling": [StrOptions(set(KINDS))],
        "momentum": ["boolean"],
        "preprocess": [StrOptions(set(PREPROCESS)), None],
        "preprocess_share": [Interval(Real, 0, 0.5, closed="neither")],
        "sparsity": [Interval(Integral, 1, None, closed="left"), None],
        "linf_projection": ["boolean"],
        "l1_bound": SCALE_OR_NONE,
        "oracle": [StrOptions({"soft-threshold", "projection", "sketch"})],
        "failure_probability": [Interval(Real, 0, 1, closed="neither"), None],
        "growth": [StrOptions({"halving", "doubling"}), None],
        "growth_order": [Interval(Real, 1, None, closed="neither")],
        "verbose": ["verbose"],
    }

    def _loss(self, n_classes):
        """Return the loss for a number of classes."""
        raise NotImplementedError

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: VectorLike) -> Self:
        """Fit the model within the budget.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowStream, dask array} of shape (n_samples, n_features)
            Private rows. Rows longer than `data_norm` are scaled down to it. Streams of
            `skdp.io`, memory maps from 256 MiB on and collections of dask are read chunk by
            chunk, with the same result; not by the solvers "localized", "one-pass",
            "accelerated-one-pass" and "cvxpy".
        y : {array-like, RowStream, dask array} of shape (n_samples,)
            Private labels.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable, or if mechanism, solver and loss do
            not go together. The message names no data value, but that it was raised may
            depend on the data.
        """
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        ball = L2Ball(check_radius(self.data_norm))
        if self.preprocess is not None:
            refuse_sparse(X, f"preprocess={self.preprocess!r}", "preprocess=None")
        sparse = "csr" if self.preprocess is None else False
        X, y = validate_private_data(self, X, y, streams=True, accept_sparse=sparse)
        classes, codes, outside, assumptions = resolve_classes(y, self.classes)
        n_rows, n_features = X.shape
        problem = self._problem(n_rows, n_features, len(classes))
        mechanism, solver = choose(self.mechanism, self.solver, problem)
        plan = make_plan(mechanism, solver, problem)
        check_reading(plan, solver, X)
        if self.verbose:
            print(f"[{type(self).__name__}] {plan}")
        loss, centring = problem.loss, problem.centring
        # centred rows get their constant feature later
        intercept = 0.0 if centring else problem.intercept
        progress = Progress(self, plan.n_iter + (centring.n_releases if centring else 0))
        curator = Curator(
            lambda: LinearRows(
                *as_read(
                    plan, top_entries(X, self.sparsity), over_rows(loss.encode, codes), outside
                ),
                ball,
                intercept,
                effective_n_threads(),
            ),
            n_rows=n_rows,
            epsilon=self.epsilon,
            delta=plan.delta,
            adjacency=self.adjacency,
            budget=self.budget,
            mu=plan.total_mu,
            random_state=self.random_state,
            purpose=type(self).__name__,
            assumptions=assumptions,
            progress=progress,
        )
        with blas_on_one_thread():
            center, radius = np.zeros(n_features), 1.0
            if centring:
                center, radius = centring.run(curator)
                plan = plan.rescaled(radius)
            coef = np.atleast_2d(plan.run(curator))
        progress.close()
        self.classes_ = classes
        self.coef_, self.intercept_ = original_coef(
            coef[:, :n_features],
            problem.intercept * coef[:, -1] if problem.intercept else np.zeros(len(coef)),
            center,
            radius,
            self.data_norm,
        )
        self.n_iter_ = plan.n_iter
        self.ledger_ = curator.ledger
        self.privacy_spent_ = (curator.ledger.epsilon(plan.delta), float(plan.delta))
        return self

    def _problem(self, n_rows, n_features, n_classes):
        scaling = DEFAULT_INTERCEPT if self.intercept_scaling is None else self.intercept_scaling
        centring = None
        if self.preprocess is not None:
            self._check_centring()
            centring = plan_centring(
                self.preprocess,
                self.preprocess_share,
                n_rows=n_rows,
                n_features=n_features,
                epsilon=self.epsilon,
                delta=self.delta,
                adjacency=self.adjacency,
                intercept=scaling,
            )
            scaling = centring.intercept
        return Problem(
            n_rows=n_rows,
            n_features=n_features,
            loss=self._loss(n_classes),
            intercept=scaling if self.fit_intercept else 0.0,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            penalty=penalty_of(self.C, self.data_norm),
            radius=None if self.coef_bound is None else self.coef_bound * self.data_norm,
            data_norm=self.data_norm,
            max_iter=self.max_iter,
            step_size=self.step_size,
            clipping_norm=self.clipping_norm,
            localize=self.localize,
            batch_size=self.batch_size,
            sampling=self.sampling,
            momentum=self.momentum,
            centring=centring,
            sparsity=self.sparsity,
            linf_projection=self.linf_projection,
            l1_bound=None if self.l1_bound is None else self.l1_bound * self.data_norm,
            oracle=self.oracle,
            failure_probability=self.failure_probability,
            growth=self.growth,
            growth_order=self.growth_order,
        )

    def _check_centring(self):
        """Raise a ValueError if a parameter makes no sense for centred rows."""
        if self.delta == 0:
            raise ValueError(
                f"delta must be greater than 0 for preprocess={self.preprocess!r}, whose centre "
                "has Gaussian noise; got 0. Set preprocess=None for pure privacy."
            )
        if not self.fit_intercept:
            raise ValueError(
                f"preprocess={self.preprocess!r} moves the rows, which an intercept makes good; "
                "got fit_intercept=False."
            )
        if self.preprocess == "center-clip" and self.intercept_scaling is not None:
            raise ValueError(
                "preprocess='center-clip' has the radius of the rows for their constant feature: "
                f"intercept_scaling must be None with it; got {self.intercept_scaling!r}."
            )
        if self.preprocess != "center" and self.coef_bound is not None:
            raise ValueError(
                f"preprocess={self.preprocess!r} measures rows by a radius that is released "
                f"during the fit: coef_bound must be None with it; got {self.coef_bound!r}."
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # a centred sparse row is not sparse
        tags.input_tags.sparse = self.preprocess is None
        return tags

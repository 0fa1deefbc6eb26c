# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The base of private linear classifiers: private centering, and the way through the gate."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from skdp._classification import penalty_of, resolve_classes
from skdp._gate import open_gate
from skdp._quantiles import plan_threshold
from skdp._rows.columns import centered_rows
from skdp._rows.domains import L2Ball, check_radius
from skdp._rows.linear import LinearRows, top_entries
from skdp._rows.streams import over_rows
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    CallbackSupportMixin,
    Interval,
    LinearClassifierMixin,
    SparseCoefMixin,
    StrOptions,
    effective_n_threads,
    fit_context,
    refuse_sparse,
    validate_private_data,
)
from skdp._typing import MatrixLike, VectorLike
from skdp.linear_model._choice import MECHANISMS, asked_solver, chosen_solver
from skdp.linear_model._problem import Problem, as_read, check_reading
from skdp.location._clipped_mean import plan_mean
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.laws.calibration import mu_beside
from skdp.solvers.base import Solver
from skdp.solvers.gradient import DEFAULT_INTERCEPT

# Private centering of the rows before the fit: two algorithms of Sun, Suresh and Menon (2023).
#
# "center" is their Algorithm 3: a Gaussian mean, a shift, and gradients that are clipped.
# "center-clip" is Algorithm 2: a mean whose error does not grow with the offset, a radius tau
# that few rows exceed, rows (x - mean, tau) shortened to sqrt(2) tau, and gradients that
# need no clipping. "center-scale" takes the center and the radius of the second, as the unit
# of length, and the clipped gradients of the first. Corrections to the print are in
# docs/user_guide/proofs_sampling.rst.


#: no center is bought for less
SMALLEST_MU = 1e-10

#: share of the budget for centering, where the solver has none
DEFAULT_SHARE = 0.05
PREPROCESS = ("center", "center-scale", "center-clip")


@dataclass(frozen=True)
class Centering:
    """A plan to center the rows; public numbers only.

    Parameters
    ----------
    mean, threshold : object, object or None
        Plans of a private mean, and of a private radius.
    mu, priced : float, float
        Price of the center, a Gaussian-DP parameter, and of the radius, an epsilon.
    intercept : float
        Constant feature of the moved rows, in units of the radius.
    shorten : bool
        Whether longer rows are shortened, so that gradients need no clipping.
    """

    mean: Any
    threshold: Any
    mu: float
    priced: float
    intercept: float
    shorten: bool

    @property
    def n_releases(self):
        """Number of releases."""
        return self.mean.n_releases + (self.threshold is not None and self.threshold.released)

    def run(self, curator):
        """Release center and radius, and move the curator's rows.

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows` without an intercept.

        Returns
        -------
        center, radius : ndarray of shape (n_features,), float
            In the unit ball; the radius is 1 for "center".
        """
        center, radius = self.mean.run(curator), 1.0
        if self.threshold is not None:
            radius = self.threshold.run(curator, center)
        intercept, shorten = self.intercept, self.shorten
        curator.map_rows(lambda rows: centered_rows(rows, center, intercept, radius, shorten))
        return center, radius


def plan_row_centering(
    preprocess, share, *, n_rows, n_features, epsilon, delta, adjacency, intercept
):
    """Plan the centering from public numbers.

    Parameters
    ----------
    preprocess, share : {"center", "center-scale", "center-clip"}, float
        Which algorithm, and which part of the budget the center gets: of the squared
        Gaussian-DP parameter. The radius gets twice that share of epsilon.
    n_rows, n_features, epsilon, delta, adjacency : int, int, float, float, str
        Public facts.
    intercept : float
        Constant feature; 1 for "center-clip".

    Returns
    -------
    plan : Centering
        The plan.

    Raises
    ------
    ValueError
        If the budget is too small.
    """
    if not (isinstance(preprocess, str) and preprocess in PREPROCESS):
        raise ValueError(f"preprocess must be None or one of {PREPROCESS}; got {preprocess!r}.")
    threshold, priced, shorten = None, 0.0, preprocess == "center-clip"
    if preprocess != "center":
        # rows that are not shortened may be as long as one over the radius
        threshold = plan_threshold(
            2 * share * epsilon,
            n_rows=n_rows,
            centered=True,
            resolution=1e-9 if shorten else 1e-7,
        )
        priced = threshold.epsilon if threshold.released else 0.0
    if shorten:
        intercept = 1.0
    mu = math.sqrt(share) * mu_beside(epsilon, delta, priced)
    if mu < SMALLEST_MU:
        raise ValueError(
            f"preprocess_share={share!r} of epsilon={epsilon!r}, delta={delta!r} is too small to "
            f"be spent: the noise of the center would exceed {1 / SMALLEST_MU:.0e} times the "
            "influence of a row. Raise the share or the budget."
        )
    mean = plan_mean(
        "gaussian" if preprocess == "center" else "shifted-clipped",
        n_rows=n_rows,
        n_features=n_features,
        mu=mu,
        adjacency=adjacency,
    )
    # a hair more than the ledger will hold
    return Centering(mean, threshold, mu * (1 + 1e-9), priced, intercept, shorten)


def original_coef(coef, intercept, center, radius, data_norm):
    """Map coefficients and intercepts for moved rows to those for the rows as they are.

    Parameters
    ----------
    coef, intercept : ndarray of shape (n_outputs, n_features), ndarray of shape (n_outputs,)
        For rows ``(x / data_norm - center) / radius``.
    center, radius, data_norm : ndarray of shape (n_features,), float, float
        Public by now.

    Returns
    -------
    coef, intercept : ndarray of shape (n_outputs, n_features), ndarray of shape (n_outputs,)
        Such that ``x @ coef.T + intercept`` is the score of the row x.
    """
    body = coef / radius
    return body / data_norm, intercept - body @ center


class PrivateLinearClassifier(
    CallbackSupportMixin, LinearClassifierMixin, SparseCoefMixin, BaseEstimator
):
    """Base of the private linear classifiers; a subclass states its loss."""

    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "mechanism": [StrOptions({"auto", *MECHANISMS})],
        # `asked_solver` says what fits
        "solver": "no_validation",
        "classes": ["array-like", None],
        "C": [Interval(Real, 0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "coef_bound": SCALE_OR_NONE,
        "preprocess": [StrOptions(set(PREPROCESS)), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
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
            chunk, with the same result; not by solvers that need all rows in memory, which
            say so.
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
        asked = asked_solver(self.solver)
        ball = L2Ball(check_radius(self.data_norm))
        if self.preprocess is not None:
            refuse_sparse(X, f"preprocess={self.preprocess!r}", "preprocess=None")
        sparse = "csr" if self.preprocess is None else False
        X, y = validate_private_data(self, X, y, streams=True, accept_sparse=sparse)
        classes, codes, outside, assumptions = resolve_classes(y, self.classes)
        n_rows, n_features = X.shape
        problem = self._problem(n_rows, n_features, len(classes), asked or Solver())
        solver = chosen_solver(self, asked, problem)
        plan = solver.plan(problem)
        check_reading(solver, X)
        if self.verbose:
            print(f"[{type(self).__name__}] {plan}")
        loss, centering = problem.loss, problem.centering
        # centered rows get their constant feature later
        intercept = 0.0 if centering else problem.intercept
        with open_gate(
            self,
            lambda: LinearRows(
                *as_read(
                    solver,
                    plan,
                    top_entries(X, problem.sparsity),
                    over_rows(loss.encode, codes),
                    outside,
                ),
                ball,
                intercept,
                effective_n_threads(),
            ),
            n_rows=n_rows,
            delta=plan.delta,
            mu=plan.total_mu,
            assumptions=assumptions,
            n_releases=plan.n_iter + (centering.n_releases if centering else 0),
        ) as curator:
            center, radius = np.zeros(n_features), 1.0
            if centering:
                center, radius = centering.run(curator)
                plan = plan.rescaled(radius)
            coef = np.atleast_2d(plan.run(curator))
        self.classes_ = classes
        self.coef_, self.intercept_ = original_coef(
            coef[:, :n_features],
            problem.intercept * coef[:, -1] if problem.intercept else np.zeros(len(coef)),
            center,
            radius,
            self.data_norm,
        )
        self.n_iter_ = plan.n_iter
        return self

    def _problem(self, n_rows, n_features, n_classes, solver):
        """Return the problem for what a solver asks of the rows; plans ask the solver itself."""
        scaling = solver.intercept_scaling
        scaling = DEFAULT_INTERCEPT if scaling is None else scaling
        centering = None
        if self.preprocess is not None:
            self._check_centering(solver)
            centering = plan_row_centering(
                self.preprocess,
                getattr(solver, "preprocess_share", DEFAULT_SHARE),
                n_rows=n_rows,
                n_features=n_features,
                epsilon=self.epsilon,
                delta=self.delta,
                adjacency=self.adjacency,
                intercept=scaling,
            )
            scaling = centering.intercept
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
            clipping_norm=getattr(solver, "clipping_norm", None),
            centering=centering,
            sparsity=getattr(solver, "sparsity", None),
        )

    def _check_centering(self, solver):
        """Raise a ValueError if a parameter makes no sense for centered rows."""
        if self.delta == 0:
            raise ValueError(
                f"delta must be greater than 0 for preprocess={self.preprocess!r}, whose center "
                "has Gaussian noise; got 0. Set preprocess=None for pure privacy."
            )
        if not self.fit_intercept:
            raise ValueError(
                f"preprocess={self.preprocess!r} moves the rows, which an intercept makes good; "
                "got fit_intercept=False."
            )
        if self.preprocess == "center-clip" and solver.intercept_scaling is not None:
            raise ValueError(
                "preprocess='center-clip' has the radius of the rows for their constant feature: "
                f"intercept_scaling must be None with it; got {solver.intercept_scaling!r}."
            )
        if self.preprocess != "center" and self.coef_bound is not None:
            raise ValueError(
                f"preprocess={self.preprocess!r} measures rows by a radius that is released "
                f"during the fit: coef_bound must be None with it; got {self.coef_bound!r}."
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # a centered sparse row is not sparse
        tags.input_tags.sparse = self.preprocess is None
        return tags

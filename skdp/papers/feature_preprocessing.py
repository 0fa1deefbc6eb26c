# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""DPSGD-F: gradients of rows after a private centering.

Two algorithms of Sun, Suresh and Menon (2023). "center" is their Algorithm 3: a Gaussian mean, a
shift, and clipped gradients. "center-clip" is Algorithm 2: a mean with an error independent of the
offset, a radius tau that few rows exceed, rows (x - mean, tau) clipped to sqrt(2) tau, and
gradients without clipping. "center-scale" has the center and the radius of "center-clip", with the
radius as the unit of length, and the clipped gradients of "center". Corrections of the paper are
in docs/user_guide/proofs_sampling.rst.
"""

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from skdp._quantiles import plan_threshold
from skdp._rows.columns import centered_rows
from skdp._sklearn import Interval, StrOptions
from skdp.location._clipped_mean import plan_mean
from skdp.papers.accelerated_one_pass import AcceleratedOnePass
from skdp.privacy.laws.calibration import mu_beside
from skdp.solvers.base import Fit, Solver
from skdp.solvers.gradient import GD, NEVER_PURE, Accelerated
from skdp.solvers.sgd import SGD

#: no center is bought for less
_LEAST_MU = 1e-10
KINDS = ("center", "center-scale", "center-clip")


class FeaturePreprocessing(Solver):
    """Gradients of rows after a private centering, within the same budget.

    For rows with a common offset much larger than their spread; another solver takes the
    gradients. The default solver of classifiers centers rows itself, in the geometry of their
    second moments.

    Parameters
    ----------
    solver : Accelerated, GD, SGD or AcceleratedOnePass, default=None
        Solver for the steps. None is `Accelerated`, or `GD` for losses with a kink.
    kind : {"center", "center-scale", "center-clip"}, default="center"
        Transformation of the rows. "center" subtracts a noisy mean ([1]_, Algorithm 3).
        "center-scale" subtracts a mean with an error independent of the offset, and scales by a
        private radius that few rows exceed. "center-clip" also clips rows to that radius, so
        gradients need no clipping ([1]_, Algorithm 2).
    share : float, default=0.05
        Share of the squared Gaussian-DP budget for the center, less than a half. The radius gets
        twice that share of epsilon.

    See Also
    --------
    skdp.DPFeatureCenterer : The same in front of any estimator, for a budget of its own.
    skdp.solvers.Preconditioned : The default, which centers and scales rows.

    Notes
    -----
    `data_norm` must be a number, rows dense, delta greater than 0, and `fit_intercept` True: the
    intercept compensates for the shift. Coefficients are for the original rows.

    References
    ----------
    .. [1] Z. Sun, A. T. Suresh and A. K. Menon, "The importance of feature preprocessing for
       differentially private linear optimization", ICLR 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, papers
    >>> rng = np.random.default_rng(0)
    >>> X = 50 + rng.normal(size=(5000, 2))
    >>> y = X[:, 0] > 50
    >>> solver = papers.FeaturePreprocessing(kind="center-scale")
    >>> model = DPLogisticRegression(
    ...     solver=solver, data_norm=100.0, classes=[False, True], random_state=0
    ... )
    >>> model.fit(X, y).score(X, y) > 0.8
    True
    """

    tasks = ("classification",)
    needs_delta = NEVER_PURE
    moves_rows = True
    only_classification = ()

    _parameter_constraints = {
        "solver": [Solver, None],
        "kind": [StrOptions(set(KINDS))],
        "share": [Interval(Real, 0, 0.5, closed="neither")],
    }

    def __init__(
        self,
        *,
        solver: Solver | None = None,
        kind: Literal["center", "center-scale", "center-clip"] = "center",
        share: float = 0.05,
    ) -> None:
        self.solver = solver
        self.kind = kind
        self.share = share

    @property
    def steps_of(self) -> Solver:
        """The solver that takes the steps."""
        return Accelerated() if self.solver is None else self.solver

    @property
    def streams(self) -> bool:  # type: ignore[override]
        """Whether rows may be read chunk by chunk."""
        return self.steps_of.streams

    def plan(self, problem: Any) -> Fit:
        """Plan center, radius and steps from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : PreprocessedFit
            The plan.

        Raises
        ------
        TypeError
            If rows are sparse.
        ValueError
            If the budget is too small, or the solver or a parameter is not for centered rows.
        """
        steps = self.steps_of
        if self.solver is None and math.isinf(problem.loss.smoothness):
            steps = GD()
        self._check(problem, steps)
        centering = plan_row_centering(
            self.kind,
            self.share,
            n_rows=problem.n_rows,
            n_features=problem.n_features,
            epsilon=problem.epsilon,
            delta=problem.delta,
            adjacency=problem.adjacency,
            intercept=problem.intercept,
        )
        moved = replace(
            problem,
            intercept=centering.intercept,
            scale_prices=(*problem.scale_prices, *centering.prices),
            scale_mu=math.hypot(problem.scale_mu, centering.mu),
        )
        if centering.shorten and problem.clipping_norm is None:
            # rows are short by now: their gradients need no clipping
            moved = replace(moved, clipping_norm=moved.longest_gradient)
        return PreprocessedFit(problem, centering, steps.plan(moved))

    def _check(self, problem, steps):
        """Raise if a solver or a parameter is not for centered rows."""
        name = f"papers.FeaturePreprocessing(kind={self.kind!r})"
        if not isinstance(steps, Accelerated | GD | SGD | AcceleratedOnePass):
            raise ValueError(
                f"the solver of {name} must be solvers.Accelerated, solvers.GD, solvers.SGD or "
                f"papers.AcceleratedOnePass; got {steps!r}."
            )
        if problem.is_sparse:
            raise TypeError(
                f"sparse rows cannot be shifted (solver={name}), for they would become dense: "
                "leave the solver to 'auto', or pass a dense array."
            )
        if not problem.intercept:
            raise ValueError(
                f"{name} moves the rows, which an intercept makes good; got fit_intercept=False."
            )
        if self.kind == "center-clip" and steps.intercept_scaling is not None:
            raise ValueError(
                f"{name} has the radius of the rows for their constant feature: intercept_scaling "
                f"of its solver must be None; got {steps.intercept_scaling!r}."
            )
        if self.kind != "center" and problem.radius is not None:
            raise ValueError(
                f"{name} measures rows by a radius that is released during the fit: coef_bound "
                f"must be None with it; got {problem.radius / problem.data_norm!r}."
            )


@dataclass(frozen=True)
class PreprocessedFit(Fit):
    """Plan to center the rows, and to make steps on the centered rows.

    Parameters
    ----------
    problem : Problem
        Public facts of the original rows.
    centering : Centering
        First releases.
    steps : Fit
        Plan of the steps, for centered rows.
    """

    centering: Any
    steps: Fit

    @property
    def n_iter(self):
        """Number of steps."""
        return self.steps.n_iter

    @property
    def n_releases(self):
        """Number of releases."""
        return self.centering.n_releases + self.steps.n_releases

    @property
    def full_batches(self):
        """Whether the steps read all rows, with Gaussian noise."""
        return self.steps.full_batches

    @property
    def total_mu(self):
        """The Gaussian-DP parameter of the whole fit; None if it has none."""
        return self.steps.total_mu

    def order(self):
        """Return the order of the steps."""
        return self.steps.order()

    def run(self, curator):
        """Release center and radius, center the rows, make the steps, and map back."""
        center, radius = self.centering.run(curator)
        coef, link, _ = self.steps.rescaled(radius).solution(curator)
        n_features, problem = self.problem.n_features, self.problem
        body = coef[..., :n_features] / radius
        constant = self.steps.problem.intercept * coef[..., -1] - body @ center
        mapped = np.concatenate([body, constant[..., None] / problem.intercept], axis=-1)
        return mapped, link


@dataclass(frozen=True)
class Centering:
    """Plan to center the rows, of public numbers only.

    Parameters
    ----------
    mean, threshold : object, object or None
        Plans of a private mean, and of a private radius.
    mu, priced : float, float
        Price of the center, a Gaussian-DP parameter, and of the radius, an epsilon.
    intercept : float
        Constant feature of the centered rows, in units of the radius.
    shorten : bool
        Whether longer rows are clipped, so that gradients need no clipping.
    """

    mean: Any
    threshold: Any
    mu: float
    priced: float
    intercept: float
    shorten: bool

    @property
    def prices(self):
        """Price of the radius, an epsilon, if it is released."""
        return (self.priced,) if self.priced else ()

    @property
    def n_releases(self):
        """Number of releases."""
        return self.mean.n_releases + (self.threshold is not None and self.threshold.released)

    def run(self, curator):
        """Release center and radius, and center the curator's rows.

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


def plan_row_centering(kind, share, *, n_rows, n_features, epsilon, delta, adjacency, intercept):
    """Plan the centering from public numbers.

    Parameters
    ----------
    kind, share : {"center", "center-scale", "center-clip"}, float
        Algorithm, and share of the squared Gaussian-DP parameter for the center. The radius gets
        twice that share of epsilon.
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
    threshold, priced, shorten = None, 0.0, kind == "center-clip"
    if kind != "center":
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
    if mu < _LEAST_MU:
        raise ValueError(
            f"share={share!r} of epsilon={epsilon!r}, delta={delta!r} is too small to "
            f"be spent: the noise of the center would exceed {1 / _LEAST_MU:.0e} times the "
            "influence of a row. Raise the share or the budget."
        )
    mean = plan_mean(
        "gaussian" if kind == "center" else "shifted-clipped",
        n_rows=n_rows,
        n_features=n_features,
        mu=mu,
        adjacency=adjacency,
    )
    # a hair more than the ledger will hold
    return Centering(mean, threshold, mu * (1 + 1e-9), priced, intercept, shorten)

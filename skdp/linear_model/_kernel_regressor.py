# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A nonlinear regression: scaled columns, public features of them, least squares.

What is searched, released and charged is that of `DPLpRegressor` without a `data_norm`, on one
curator; maps of rows, and the choice of one, are those of `DPKernelClassifier`. The columns
themselves stand beside what bends: targets are not bounded as classes are, and often grow with a
column as far as it goes. So a bent fit is a straight one at least, up to the noise.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skdp._export import beside_columns, mapped_regression
from skdp._rows.base import bounds_of, empty_rows
from skdp._sklearn import SCALE_OR_NONE
from skdp._typing import Adjacency, ArrayLike, Bounds, Budget, MatrixLike, Seed
from skdp.linear_model._classifiers import HEARD_TARGETS
from skdp.linear_model._kernel_classifier import (
    KernelMixin,
    LeftOver,
    bent_rows,
    features_twin,
)
from skdp.linear_model._lp_regressor import (
    EXPECTED_SHIFT,
    LARGEST_IN_UNITS,
    NearerRows,
    PrivateLinearRegressor,
)
from skdp.linear_model._scales import plan_alike_check, plan_scales
from skdp.preprocessing._public import check_gamma

# length of the columns, in that of what bends
_LINES = 0.7
# below this signal only a linear model is above the noise: a bent one has the columns as well
_STRAIGHTER = 20.0


@dataclass(frozen=True, eq=False)
class WithColumns:
    """Features that bend, and the columns beside them.

    Parameters
    ----------
    bend : Hats or Waves
        Features of norm at most 1.
    n_features : int
        Number of columns.
    radius : float
        Usual length of a row.
    """

    bend: Any
    n_features: int
    radius: float

    @property
    def size(self):
        """Number of features of a row."""
        return self.bend.size + self.n_features

    @property
    def shares(self):
        """What features that bend, and what columns are multiplied by."""
        share = 1 / math.hypot(1.0, _LINES)
        return share, share * _LINES / self.radius

    def __call__(self, X):
        """Return mapped rows; of norm at most 1 for rows of at most the usual length.

        Every operation is elementwise, but for those of what bends.
        """
        share, line = self.shares
        body = empty_rows((len(X), self.size))
        np.multiply(self.bend(X), share, out=body[:, : self.bend.size])
        np.multiply(X, line, out=body[:, self.bend.size :])
        return body


def missed(z, target, center, scale):
    """Return by how much predictions miss targets, in units, a unit at most."""
    with np.errstate(over="ignore", under="ignore"):
        target = np.clip((target - center) / scale, -LARGEST_IN_UNITS, LARGEST_IN_UNITS)
    z = np.clip(np.nan_to_num(z), -LARGEST_IN_UNITS, LARGEST_IN_UNITS)
    return np.clip(target - z, -1.0, 1.0)


class DPKernelRegressor(KernelMixin, PrivateLinearRegressor):
    """Differentially private nonlinear least squares.

    Within one privacy budget columns are standardised, mapped to features by public constants, and
    the targets are fitted by least squares. With ``kernel="additive"`` a prediction is a sum of
    functions of one column each, which can be drawn and read; with ``kernel="rbf"`` it is a smooth
    function of all columns. A private choice between these is part of the budget.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0 and finite.
    delta : float, default=1e-6
        Privacy budget, in (0, 1); well below 1 / n_samples.
    kernel : {"auto", "additive", "rbf", "linear"}, default="auto"
        "additive": piecewise linear functions of single columns, a generalised additive model.
        "rbf": random Fourier features of a Gaussian kernel beside the columns, for products of
        columns and other dependence on several. "linear": `DPLpRegressor`. "auto" chooses one of
        these by the rows, for 6 to 18 % of the squared Gaussian-DP budget; if public numbers show
        too little signal for a choice, it is "additive", at no price, or for at most 3 % "rbf",
        where rows are too few to find units of columns that are unlike.
    n_knots : int, default=None
        Knots of each function of "additive", at least 2; beyond the outer ones it is a straight
        line. None chooses from 3 to 16 by the numbers of rows and columns and the budget; and
        "linear" where noise would hide any bend.
    gamma : float or array-like of shape (n_scales,), default=None
        Parameters of the kernels of "rbf", as in `RandomFourierFeatures`, for standardised
        columns.
    n_components : int, default=None
        Number of features of "rbf". None chooses from 20 to 500 by the same public numbers.
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=None
        Public bounds of the columns, as in `BoundedScaler`: entries beyond them count as those at
        them. None searches origins and units of the columns.
    target_scale : float, default=None
        Public unit of the targets, around 0, in [1e-50, 1e50]: not a bound, but the usual size of a
        target, and brought near it, as in `DPLpRegressor`. None finds the median, and a usual
        distance from it. All searches cost at most .85 of the squared Gaussian-DP budget, mostly a
        fifth or less.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out", half the noise), or in the presence of a row ("add-remove"). See
        :ref:`adjacency`.
    max_iter : int, default=None
        Number of steps. None chooses it from public quantities.
    max_weight : float, default=None
        Public bound on weights of rows. None: `fit` takes no weights (:ref:`sample_weight`).
    budget : PrivacyBudget, default=None
        A budget shared by several fits.
    random_state : int, RandomState instance or None, default=None
        Of the noise, and of nothing else. None draws it from the operating system. A seed makes
        the noise reproducible, voids the guarantee towards anybody who knows it, and warns.
    verbose : int, default=0
        1 prints a line with the plan and its price; public numbers only.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_mapped,), float
        Coefficients of the mapped features, those of the columns last, and the intercept; with
        "linear" of the columns alone.
    kernel_ : {"additive", "rbf", "linear"}
        The fitted kernel: "linear" also if noise would hide any bend, or the choice found nothing
        nonlinear.
    n_knots_, n_components_ : int or None
        Knots of a column with "additive", features with "rbf"; otherwise None.
    data_norm_, target_scale_, target_center_ : float
        Unit of length of mapped rows, 1, or with "linear" that of `DPLpRegressor`; unit and origin
        of the targets, public or released.
    feature_center_, feature_scale_ : ndarray of shape (n_features,)
        Origins and units of columns, public or released; zeros and a common unit with too few
        rows.
    n_iter_ : int
        Number of steps, a public number.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent; never more than granted.
    n_features_in_, feature_names_in_ : int, ndarray of shape (`n_features_in_`,)
        Number of columns, and their names, if X had string names.

    Warns
    -----
    PrivacyWarning
        If epsilon or delta is too large (:ref:`warnings`).
    NoisyEstimateWarning
        If there are too few rows, or too much noise, to find units or to learn anything.

    See Also
    --------
    DPKernelClassifier : The same for classes.
    DPLpRegressor : Without a map; other losses.
    AdditiveShapesDisplay : Draws the functions of "additive".

    Notes
    -----
    Privacy. One row and its target are protected, at (epsilon, delta) and the chosen adjacency, as
    by `DPLpRegressor`: releases, sensitivities and what is public are the same. A map by public and
    released constants, row by row, makes no release. Mapped rows are about of norm 1, and longer
    ones than 6 are scaled down with their targets.

    Knots, frequencies and their numbers are those of `DPKernelClassifier`, but for "linear" below
    a signal of 20. The columns are features too, with 0.7 of the norm, so a linear part costs few
    coefficients, and continues beyond the outer knots.

    "auto" chooses as `DPKernelClassifier` does, by the signal ``n mu / a``. Residuals of straight
    lines are clipped to a unit of the targets. If "rbf" is tried, the reduction of the squares of
    residuals is released, with at most 1 per row, in that unit. Without a choice, and with too few
    rows to find units of columns, a count tells whether these are alike: rows with an entry, other
    than 0, below a quarter of what d columns that are alike would leave for the smallest. If more
    than half of the rows have one, it is "rbf": a column that is far out hides the others from
    straight lines, and waves of a row are bounded. Figures are in the user guide
    (:ref:`kernel-regressor`).

    References
    ----------
    .. [1] T. Hastie and R. Tibshirani, "Generalized additive models", Statistical Science, 1986.
    .. [2] A. Rahimi and B. Recht, "Random features for large-scale kernel machines", NIPS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPKernelRegressor, DPLpRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = X[:, 0] ** 2 + np.abs(X[:, 1]) + X[:, 2]
    >>> model = DPKernelRegressor(epsilon=1.0).fit(X, y)
    >>> straight = DPLpRegressor(epsilon=1.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.75 > 0.4 > straight.score(X, y))
    True
    >>> model.privacy_spent_[0] <= 1.0
    True
    """

    # what `DPLpRegressor` has as parameters
    p = 2
    solver = "auto"
    data_norm = None
    l2 = 0.0
    fit_intercept = True
    coef_bound = None
    clipping_norm = None
    _straight = _STRAIGHTER

    _parameter_constraints = (
        {
            name: PrivateLinearRegressor._parameter_constraints[name]
            for name in (
                *("epsilon", "adjacency", "max_iter", "max_weight"),
                *("budget", "random_state", "verbose"),
            )
        }
        | KernelMixin._kernel_constraints
        | {"target_scale": SCALE_OR_NONE}
    )

    _extrapolates = False

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        kernel: Literal["auto", "additive", "rbf", "linear"] = "auto",
        n_knots: int | None = None,
        gamma: float | ArrayLike | None = None,
        n_components: int | None = None,
        bounds: Bounds | None = None,
        target_scale: float | None = None,
        adjacency: Adjacency = "replace-one",
        max_iter: int | None = None,
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.kernel = kernel
        self.n_knots = n_knots
        self.gamma = gamma
        self.n_components = n_components
        self.bounds = bounds
        self.target_scale = target_scale
        self.adjacency = adjacency
        self.max_iter = max_iter
        self.max_weight = max_weight
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Return the predicted targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. Entries further than 100 units from the origin of their column, or 10 where
            nothing was seen of it, count as that far.

        Returns
        -------
        predicted : ndarray of shape (n_samples,)
            In the units of the targets.

        Raises
        ------
        ValueError, TypeError
            If X has other columns than the rows of `fit`, is not numeric or not finite.
        """
        check_is_fitted(self)
        if self._map is None:
            return super().predict(X)
        return self._scores(X, self._found, 1)[:, 0] + self.intercept_

    def _unknown(self):
        given = {"bounds": self.bounds, "target_scale": self.target_scale}
        return [name for name, value in given.items() if value is None]

    def _scales(self, n_rows, n_features, is_sparse):
        return plan_scales(
            self.epsilon,
            self.delta,
            n_rows=n_rows,
            adjacency=self.adjacency,
            with_radius=self.bounds is None,
            with_scale=self.target_scale is None,
            with_center=True,
            n_columns=n_features if self.bounds is None else 0,
            medians_first=True,
        )

    def _alike(self, problem, n_features):
        """Return the check whether columns without units are alike; None for none."""
        straight = replace(problem, n_features=n_features)
        # with more signal a released geometry makes up for units
        if self.kernel != "auto" or self.bounds is not None or straight.ratio >= HEARD_TARGETS:
            return None
        if self._n_mapped(problem, n_features, "additive"):
            return None
        facts = self.epsilon, self.delta, self.adjacency
        return plan_alike_check(self._scales(problem.n_rows, n_features, False), n_features, *facts)

    def _sizes_after(self, check, problem, n_features):
        """Return the kernels that are tried and the numbers of features of a row, by a check."""
        if check is None:
            return self._sizes(problem, n_features)
        return {kernel: self._n_mapped(problem, n_features, kernel) for kernel in ("linear", "rbf")}

    def _prepared(self, n_rows, n_features, scaling, is_sparse=False):
        check_gamma(self.gamma)
        if self.bounds is not None:
            bounds_of(self, n_features)
        first = super()._prepared(n_rows, n_features, scaling, is_sparse)
        problem, check = first.problem, self._alike(first.problem, n_features)
        size = max(self._sizes_after(check, problem, n_features).values())
        problem = _of_size(problem, size + n_features) if size else problem
        return replace(first, problem=problem, check=check)

    def _bent(self, curator, solver, first, units):
        d, problem, check = self.n_features_in_, first.problem, first.check
        sizes = self._sizes_after(check, problem, d)
        if check is not None:
            # a plan has the most coefficients
            kernel = "linear" if check.run(curator) and not problem.is_made_up else "rbf"
            sizes = {kernel: sizes[kernel]}
            problem = replace(problem, scale_mu=math.hypot(problem.scale_mu, check.mu))
        bent = any(sizes.values())
        columns = self._in_columns(curator, units.columns, units.radius, bent)
        if columns is not units.columns:
            units = replace(units, columns=columns, radius=math.sqrt(d))
        bends = {kernel: self._features(kernel, size) for kernel, size in sizes.items()}
        maps = {
            kernel: bend and WithColumns(bend, d, max(units.radius, 1e-50))
            for kernel, bend in bends.items()
        }
        mapped = replace(units, radius=1.0, columns=None)
        kernel = next(iter(sizes))
        if len(sizes) > 1:

            def solved(problem):
                curator.map_rows(mapped.rows)
                problem = _of_size(problem, problem.n_features)
                return self._planned(problem, solver, mapped, None).solution(curator)[0]

            place = {"center": units.center, "scale": units.scale}
            compared = partial(NearerRows, intercept=units.intercept, **place)
            left = partial(LeftOver, intercept=units.intercept, residual=partial(missed, **place))
            plan = self._trial(problem, d)
            kernel, problem = plan.run(curator, problem, d, maps, solved, (compared, left))
        features = maps[kernel]
        self._keep(kernel, features, bends[kernel])
        if features is None:
            return units, _of_size(problem, d), columns
        curator.map_rows(partial(bent_rows, features=features))
        return mapped, _of_size(problem, features.size), columns

    def _twin(self):
        if self._map is None:
            return super()._twin()
        d = self.n_features_in_
        bend, shares = features_twin(self._map.bend, d), self._map.shares
        features = beside_columns(bend, self._map.bend.size, d, *shares)
        return mapped_regression(self, self._found, features)


def _of_size(problem, size):
    """Return a problem with another number of features."""
    expected = math.hypot(math.sqrt(size), EXPECTED_SHIFT)
    return replace(problem, n_features=size, expected_radius=expected)

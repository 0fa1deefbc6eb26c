# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private ridge regression from one release of second moments, with intervals.

The products of features, targets and a constant are released (`RowProducts`), and normal equations
are solved [1]_. A row that is shortened keeps its direction, the constant included, and so the
equation that its entries fulfil: it counts less. Since the law of the noise is known, so is that of
what it does to the coefficients, and where it hides them they are a posterior mean [2]_.

.. [1] J. Foulds, J. Geumlek, M. Welling and K. Chaudhuri, "On the theory and practice of
   privacy-preserving Bayesian data analysis", UAI 2016.
.. [2] G. Bernstein and D. Sheldon, "Differentially private Bayesian linear regression", NeurIPS
   2019.
"""

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Real
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from skdp._counted import check_groups, largest_weight
from skdp._export import linear_regression
from skdp._rows.base import empty_rows, leaves_out_zeros, row_norms, tame
from skdp._rows.linear import LinearChunk, StandardColumns, regression_rows, usable_norms
from skdp._rows.streams import is_streamed
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    StrOptions,
    effective_n_threads,
    fit_context,
    is_number,
    is_sparse,
    real_targets,
    validate_private_data,
)
from skdp._typing import Adjacency, Budget, MatrixLike, Seed, VectorLike
from skdp.exceptions import NoisyEstimateWarning
from skdp.linear_model._lp_regressor import NearerRows, TailPlan, plan_tail
from skdp.linear_model._scales import LARGEST, plan_scales, say_of_signal, say_of_unit
from skdp.moments._products import (
    CONSTANT,
    ColumnUnits,
    KnownUnits,
    MomentEstimator,
    RowProducts,
    UnitsPlan,
    check_size,
    left_of,
    move_rows,
    moved,
    noise_in_rows,
    plan_lengths,
    plan_units,
)
from skdp.privacy.books.texts import some_of
from skdp.privacy.kernel.accounting import check_delta, check_epsilon, level_of_caller
from skdp.privacy.laws.calibration import gdp_mu
from skdp.solvers.preconditioned import spectrum_without_noise, variances_without_noise

# with a given penalty the smallest eigenvalue is raised to that part of the edge of the noise:
# hardly at all
_NEXT_TO_NONE = 1e-3
# the deviation of what is taken for granted of a sum of squares, in parts of it; that of the mean
# of a column, in its units; and how many deviations of its square noise does not reach
_GRANTED, _MEAN, _NO_NOISE = 0.4, 0.3, 10.0
# products of standardised columns, times the root of their number
_RELATED = 0.8
# deviations of noise by which coefficients find directions of low variance
_LOW = 0.5
# predictions clip entries of columns to so many lengths of rows: little is known of coefficients
# along rows that were cut a great deal; and to so many where there are enough rows for a look
_AWAY, _AWAY_SEEN = 4.0, 8.0
# and to so many if a look says that this is nearer to the targets; a row counts by its squared
# residual, up to that of so many usual sizes of a target
_NEAR, _LARGE = 1.0, 3.0
# parts of the variance of a target that features may explain: none, or all others equally likely
_EXPLAINED, _NOTHING = np.linspace(0.0, 0.98, 50), 0.2
_EXPLAINED_PRIOR = np.where(_EXPLAINED == 0, _NOTHING, (1 - _NOTHING) / (len(_EXPLAINED) - 1))
# edges of the noise that the smallest eigenvalue must exceed, for intervals
_CLEAR = 2.0
# part of the squared budget that a search for the origin of the target has to leave
_LEFT_BESIDE_TARGETS = 0.3
# with at most so many columns the effect of shortening is computed, by so many points of a half
_FEW, _DRAWS = 32, 2048
# beside a given norm, part of the squared budget that a search of more columns than that may take:
# it makes good a norm that is far off, and finds the unit of the target with less care
_BESIDE_NORM, _MANY = 0.05, 32
# without a delta, and with few rows, scales are planned as for that many times epsilon: of which
# they take .3
_MORE = 2.8
# targets whose unit is less than that part of their origin have one that may be inexact
_NEARLY_EQUAL = 5e-4
# with given units rows count less than that in the mean only if most are cut a great deal
_COUNTED = 0.15
# part of a direction below these that is in a column worth naming
_NAMED = 0.2
# epsilon from which R2 is above .5 on the 200 rows of scikit-learn's checks, for nearly every seed
_FAIR, _FAIR_PURE = 4.0, 8.0
# usual sizes of a target to which rows of about full length are cut, with public units
_TARGETS = 2.0

# The equations, in units of the rows.


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Released products of features, targets and a constant, and the law of their noise.

    Parameters
    ----------
    products : ndarray of shape (size, size)
        Means of products, symmetric. Features come first, then targets, then the constant.
    n_features, n_rows : int
        Numbers of features and rows.
    noise : float
        Standard deviation of a diagonal entry; that of the others is sqrt(2) times less.
    constant : float
        The constant of a row of full weight.
    intercept : bool
        Whether there is an intercept.
    """

    products: Any
    n_features: int
    n_rows: int
    noise: float
    constant: float
    intercept: bool

    @property
    def edge(self):
        """About the largest eigenvalue that noise alone makes."""
        return self.noise * math.sqrt(2.0 * self.n_features)

    @property
    def share(self):
        """Mean weight of the rows, with its noise."""
        return self.products[-1, -1] / self.constant**2

    @property
    def weight(self):
        """Mean weight of the rows, between noise and 1."""
        return min(max(self.share, 0.05), 1.0)

    @cached_property
    def _centered(self):
        """Products without the constant, around weighted means with an intercept."""
        inner, last = self.products[:-1, :-1], self.products[-1, :-1]
        if not self.intercept:
            return inner
        return inner - np.multiply.outer(last, last) / (self.weight * self.constant**2)

    def spectrum(self, penalty=0.0):
        """Return the eigenvalues of the matrix of the features with a diagonal added, ascending."""
        d = self.n_features
        return np.linalg.eigvalsh(self._centered[:d, :d] + np.diag(np.broadcast_to(penalty, d)))

    def hidden(self):
        """Return the features of directions with too little variance for intervals."""
        found, directions = np.linalg.eigh(self._centered[: self.n_features, : self.n_features])
        weak = found <= _CLEAR * self.edge
        return np.flatnonzero((directions[:, weak] ** 2 > _NAMED).any(axis=1))

    def solved(self, penalty):
        """Return coefficients of features, and of the constant.

        Parameters
        ----------
        penalty : float or ndarray of shape (n_features,)
            Diagonal that is added.

        Returns
        -------
        coef, last : ndarray of shape (n_features, n_targets) and (n_targets,)
            In units of the rows.
        """
        d = self.n_features
        matrix = self._centered[:d, :d] + np.diag(np.broadcast_to(penalty, d))
        coef = np.linalg.solve(matrix, self._centered[:d, d:])
        if not self.intercept:
            return coef, np.zeros(coef.shape[1])
        last = self.products[-1, :-1]
        return coef, (last[d:] - last[:d] @ coef) / (self.weight * self.constant**2)

    def cut(self):
        """Return how far coefficients move as rows are shortened, if rows are Gaussian.

        Where the slope is positive a residual that is so, too, makes the row longer: it counts
        less than one that is not, and slopes are too near to 0. That is less than what sampling
        moves, but for few columns and rows that are cut a great deal. What was released tells how
        much rows count on average, which rows of the released covariance are stretched to.

        Returns
        -------
        moved : ndarray of shape (n_features, n_targets)
            In units of the rows; 0 for many columns, for whose length a residual hardly matters.
        """
        d, size = self.n_features, len(self.products) - 1
        if size > _FEW:
            return np.zeros((d, size - d))
        mean = self.products[-1, :-1] / (self.constant * self.weight)
        values, vectors = np.linalg.eigh(
            self.products[:-1, :-1] / self.weight - np.multiply.outer(mean, mean)
        )
        # evenly spread points: multiples of the roots of primes, in parts of one (Richtmyer)
        primes = [k for k in range(2, 140) if all(k % part for part in range(2, k))][:size]
        draws = ndtri(np.multiply.outer(np.arange(1, _DRAWS + 1), np.sqrt(primes)) % 1.0)
        rows = np.vstack([draws, -draws]) @ (vectors * np.sqrt(np.maximum(values, 1e-9))).T

        def stretched(times):
            found = mean + times * rows
            return found, 1 / np.maximum(1.0, np.einsum("ij,ij->i", found, found))

        low, high = 0.1, 100.0
        for _ in range(20):
            middle = math.sqrt(low * high)
            low, high = (
                (middle, high) if stretched(middle)[1].mean() > self.weight else (low, middle)
            )
        found, counts = stretched(low)
        slopes = []
        for count in (np.ones(len(found)), counts):
            own = found - np.average(found, axis=0, weights=count) if self.intercept else found
            inner = (own * count[:, None]).T @ own
            slopes.append(np.linalg.solve(inner[:d, :d], inner[:d, d:]))
        return slopes[1] - slopes[0]

    def believed(self, squares):
        """Return coefficients as `solved` does: a posterior mean, nearer to 0 the less is known.

        Parameters
        ----------
        squares : ndarray of shape (n_features + n_targets,)
            Squares of the columns that are taken for granted where noise hides them; public.

        Returns
        -------
        coef, last : ndarray of shape (n_features, n_targets) and (n_targets,)
            In units of the rows.
        penalty : ndarray of shape (n_targets,)
            Of the ridge whose loss along each `coef` is least where it ends.

        Notes
        -----
        In the directions that are left of the matrix of the features, with eigenvalues x, a product
        q with the target is x b and noise, of the variance v: the noise of q, what is left of that
        of the matrix times b, and the sampling of residuals. If features explain the part r of the
        variance V of the target, coefficients b are taken to be normal with a variance t in
        proportion to ``1 / sqrt(x)``, so that ``x t`` adds up to r V: between coefficients that are
        alike, and directions that explain alike. Then q has the variance ``x^2 t + v``, which tells
        how likely r is, and the mean of b is ``x t q / (x^2 t + v)``. That is its mean over r.

        Of the matrix noise hides all but the largest eigenvalues, up to ``s sqrt(2 d)``, and what
        is hidden counts as alike. Coefficients may lie along a direction that has far more, and
        are too long then. Along one direction the noise of the matrix is s only: if what was
        released along the coefficients is more, the matrix is given that, and half a deviation, as
        coefficients are larger where noise made it less. Then b is worked out again, for the same
        r.
        """
        d, noise = self.n_features, self.noise
        usual = min(1.0, 1.0 / squares.sum())
        weight = min(max(_tempered(self.share, noise / self.constant**2, usual), 0.05), 1.0)
        squares = usual * squares
        mean = np.zeros(len(squares))
        if self.intercept:
            mean = self.products[-1, :-1] / (self.constant * weight)
            error = noise**2 / 2 / (self.constant * weight) ** 2
            for own, square in ((mean[None, :d], squares[:1]), (mean[d:, None], squares[d:])):
                own *= _kept_of_means(own, square[:, None] / usual, error)
        inner = self.products[:-1, :-1] - weight * np.multiply.outer(mean, mean)
        matrix, column = inner[:d, :d], inner.diagonal()[:d]
        level = _tempered(column.mean(), noise / math.sqrt(d), squares[0])
        column = variances_without_noise(column, level, noise)
        values, vectors, _ = spectrum_without_noise(matrix, column, self.edge)
        values = np.maximum(values, 0.01 * level)
        # noise of one product, and what is left of it in the matrix
        one = noise**2 / 2
        left = one / (1 + one * d / (_RELATED * level) ** 2)
        targets = [_tempered(inner[j, j], noise, squares[j]) for j in range(d, len(squares))]

        def along(product, variance, values, vectors):
            """Return products in the directions, of the parts of the variance signal, and all."""
            explained = (_EXPLAINED * variance)[:, None]
            rest = (variance - explained) / self.n_rows
            signal = explained * values**1.5 / np.sqrt(values).sum()
            total = signal + one + left * d * explained / values.sum() + rest * values
            return vectors.T @ product, signal, total

        made, parts = (vectors * values) @ vectors.T, []
        for product, variance in zip(inner[:d, d:].T, targets, strict=True):
            own, signal, total = along(product, variance, values, vectors)
            likely = np.log(total).sum(axis=1) + (own**2 / total).sum(axis=1)
            likely = np.exp((likely.min() - likely) / 2) * _EXPLAINED_PRIOR
            parts.append(likely / likely.sum())
            # most directions have too little variance to be told from noise, but not these
            found = vectors @ (parts[-1] @ (signal / total) / values * own)
            found /= max(float(np.linalg.norm(found)), 1e-200)
            more = found @ (matrix - made) @ found
            if more > 0:
                made += (more + _LOW * noise) * np.multiply.outer(found, found)
        values, vectors = np.linalg.eigh(made)
        values = np.maximum(values, 0.01 * level)
        found, penalty = np.empty((d, len(targets))), np.empty(len(targets))
        for j, (product, variance) in enumerate(zip(inner[:d, d:].T, targets, strict=True)):
            product, signal, total = along(product, variance, values, vectors)
            own = parts[j] @ (signal / total) / values * product
            pull = own @ (product - values * own)
            penalty[j] = max(pull, 0.0) / max(float(own @ own), 1e-200)
            found[:, j] = own
        coef = vectors @ found
        return coef, (mean[d:] - mean[:d] @ coef) / self.constant, penalty

    def deviations(self, coef, last):
        """Return standard deviations of the coefficients without a penalty.

        Parameters
        ----------
        coef, last : ndarray of shape (n_features, n_targets) and (n_targets,)
            What `solved` returned for no penalty.

        Returns
        -------
        deviations : ndarray of shape (n_features, n_targets)
            Of sampling, for residuals of equal variance, of the noise, and of `cut`.
        spreads : list of ndarray of shape (size, size)
            Covariance of the coefficients of features and constant, for each target.
        squares : ndarray of shape (n_targets,)
            Variance of the residuals of rows of full weight, and what noise may have taken off.

        Notes
        -----
        With A the matrix of features and constant, N what noise adds to it, b the coefficients, and
        q what noise adds to the column of a target, b errs by ``A^-1 (q - N b)`` and the mean of
        residuals times rows. N has independent entries of variance s^2 on the diagonal and s^2 / 2
        off it, so that q - N b has the covariance ``s^2 / 2 ((1 + |b|^2) I + b b')``.
        """
        d, half = self.n_features, self.noise**2 / 2
        kept = np.r_[:d, -1] if self.intercept else np.arange(d)
        matrix = self.products[np.ix_(kept, kept)]
        if self.intercept:
            matrix[-1, -1] = self.weight * self.constant**2
        inverse, found = np.linalg.inv(matrix), self.cut()
        spreads, squares = [], np.empty(coef.shape[1])
        for j in range(coef.shape[1]):
            b = np.append(coef[:, j], last[j]) if self.intercept else coef[:, j]
            errors = np.append(-b, 1.0)
            place = [*kept, d + j]
            square = errors @ self.products[np.ix_(place, place)] @ errors
            # noise may have taken off as much as that
            square = max(square, 0.0) + self.noise * (errors @ errors)
            square *= self.n_rows / max(self.n_rows - len(b), 1) / self.weight
            noise = half * ((1 + b @ b) * np.eye(len(b)) + np.outer(b, b))
            spread = inverse @ (square / self.n_rows * matrix + noise) @ inverse
            found[:, j] = np.hypot(found[:, j], np.sqrt(np.maximum(spread.diagonal()[:d], 0.0)))
            spreads.append(spread)
            squares[j] = square
        return found, spreads, squares


def _tempered(found, noise, usual):
    """Return a sum of squares, nearer to the usual one the more noise is in what was found."""
    kept = 1 / (1 + (noise / (_GRANTED * usual)) ** 2)
    return max(usual + kept * (found - usual), min(noise, 0.5 * usual))


def _kept_of_means(means, squares, error):
    """Return which part of means is kept: those of a row are near 0 together, or no noise."""
    k = means.shape[1]
    made = (k + _NO_NOISE * math.sqrt(2 * k)) * error
    near = ((means**2).sum(axis=1, keepdims=True) - made) / k
    near = np.maximum(near, _MEAN**2 * squares)
    return near / (near + error)


# The rows: features and targets beside each other.


def side_by_side(chunk):
    """Return a chunk whose rows are features and targets, in one."""
    body, broken = tame(beside(chunk.X, chunk.target))
    norm = usable_norms(row_norms(body), np.isinf(chunk.norm) | broken)
    nobody = np.zeros(len(norm))
    return LinearChunk(body, np.ones(len(norm)), norm, nobody, 0.0, None, chunk.drawn, chunk.weight)


def _ridge_rows(X, y, counts, plan):
    """Return the rows that a curator holds: with the targets among the features, or beside them."""
    rows = regression_rows(X, y, effective_n_threads(), counts)
    return rows if isinstance(plan, DrawnUnits) else rows.mapped(side_by_side)


def beside(X, y):
    """Return rows of features and targets, dense ones in float64."""
    y = y.reshape(len(y), -1)
    if sparse.issparse(X):
        return sparse.hstack([sparse.csr_array(X, dtype=np.float64), y], format="csr")
    rows = empty_rows((len(y), X.shape[1] + y.shape[1]))
    rows[:, : X.shape[1]], rows[:, X.shape[1] :] = X, y
    return rows


@dataclass(frozen=True, eq=False)
class CutEntries:
    """Rows in units, entries of which are cut to a reach; every operation is elementwise.

    Parameters
    ----------
    reach : ndarray of shape (n_columns,)
        How far entries go.
    """

    reach: Any

    @property
    def size(self):
        """Number of columns."""
        return len(self.reach)

    def __call__(self, X):
        """Return rows with entries that go so far."""
        return np.clip(X, -self.reach, self.reach)


@dataclass(frozen=True)
class DrawnUnits:
    """Units of few rows, or without a delta: a length of rows, origin and scale of a target.

    Parameters
    ----------
    scales : ScalesPlan or SearchedScales
        The draws, or searches.
    n_features : int
        Number of features.
    price : float
        What is left for the products: a Gaussian-DP parameter, or epsilon.
    stretch : ndarray of shape (n_features + n_targets,)
        As that of `KnownUnits`.
    longest : float
        As that of `plan_lengths`.
    """

    scales: Any
    n_features: int
    price: float
    stretch: Any
    longest: float

    @property
    def n_releases(self):
        """Number of releases."""
        return self.scales.n_releases

    @property
    def is_missing(self):
        """Whether there are too few rows for any draw."""
        return not self.scales.n_releases

    def run(self, curator, given):
        """Draw the units, and bring the rows to them; as `UnitsPlan.run`."""
        d = self.n_features
        # features of a length that nobody knows count as nothing where the target has a unit
        usual = 1.0 if self.is_missing or self.scales.mu else LARGEST
        found = self.scales.run(curator, usual * math.sqrt(d), 0.0, 1.0)
        drawn, n_targets = np.full(d, found.radius / math.sqrt(d)), len(given) - d
        origin = np.append(np.zeros(d), np.full(n_targets, found.center))
        drawn = np.append(drawn, np.full(n_targets, found.scale))
        unit = np.where(np.isnan(given), drawn, given) / self.stretch
        curator.map_rows(lambda rows: rows.mapped(side_by_side))
        move_rows(curator, 1 / unit, -origin / unit)
        length = _public_length(d, self.stretch, self.longest)
        return ColumnUnits(origin, unit, length), None, found.vague


def _public_length(n_features, stretch, longest):
    """Return the length to which rows are cut in public units: that of long ones, or less."""
    n_targets = len(stretch) - n_features
    full = math.sqrt(n_features + (_TARGETS * stretch[-1]) ** 2 * n_targets)
    return min(full, longest * float(np.linalg.norm(stretch)))


# The fit.

# rows whose deviations are computed at once
_AT_ONCE = 4096
# no number in the units of the data is larger
_LARGEST_COEF = 1e200


class DPRidge(MultiOutputMixin, RegressorMixin, MomentEstimator):
    """Differentially private ridge regression, with confidence intervals.

    Least squares with a penalty, from one release of the products of all rows, for one target or
    several. Its intervals include the noise. For predictions `DPLpRegressor` is better.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0.
    delta : float, default=1e-6
        Privacy budget, in [0, 1); well below 1 / n_samples. The noise is Gaussian; at 0 it is
        purely private.
    l2 : float or "auto", default="auto"
        Strength of the penalty, not negative: the `alpha` of scikit-learn's `Ridge`. "auto" has
        none if the released spectrum is clear of noise; otherwise coefficients are a posterior
        mean, which follows from the distribution of the noise alone.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in the presence of a row ("add-remove", where the number of rows is
        released first; otherwise it is public). See :ref:`adjacency`.
    data_norm : float, default=None
        Public unit of length R of the rows, in [1e-50, 1e50]: about that of the longest. None finds
        medians and spreads of the columns privately; at delta 0 a length of the rows.
    target_scale : float or array-like of shape (n_targets,), default=None
        Public unit B of the targets, around 0: their usual size, in [1e-50, 1e50]. None finds
        medians and spreads of the targets privately, at delta 0 of one target only. Sparse rows
        need both scales.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is inside the guarantee, and not in the penalty.
    max_weight : float, default=None
        Public bound on weights of rows, in [1e-50, 1e50]; larger weights are clipped to it. None:
        `fit` takes no weights (:ref:`sample_weight`).
    budget : PrivacyBudget, default=None
        A budget shared by several fits. Each fit is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise reproducible, voids
        the guarantee towards anybody who knows it, and warns.
    verbose : int, default=0
        1 prints a line with the plan and its price, and a progress bar if the fit takes seconds;
        public numbers only.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Coefficients.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercepts; 0.0 without.
    unpenalised_coef_ : ndarray of the shape of `coef_`
        Coefficients without a penalty, the centers of the intervals; `coef_` where there are none,
        and where "auto" takes no penalty.
    coef_std_ : ndarray of the shape of `coef_`
        Standard deviation of `unpenalised_coef_`, of sampling, of noise, and of what shortening
        takes off; infinite where noise may have made the smallest eigenvalue.
    residual_std_ : float or ndarray of shape (n_targets,)
        Standard deviation of the residuals of least squares, long rows counting less, and what
        noise may have taken off it; infinite where `coef_std_` is.
    l2_ : float or ndarray of shape (n_targets,)
        Strength of the penalty: `l2`. For "auto" that which shortens as much, of columns in units
        of `feature_scale_`, for each target if there are several; 0 where there is none.
    feature_center_, feature_scale_ : ndarray of shape (n_features,)
        Origins and units of the columns, given or released.
    target_center_, target_scale_ : ndarray of shape (n_targets,)
        Origins and units of the targets, given or released.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    Warns
    -----
    NoisyEstimateWarning
        If there are too few rows for private units, nothing of the features is clear of noise, or
        targets hardly vary. Warnings depend on released and public numbers only.

    See Also
    --------
    DPLpRegressor : Better predictions at the same budget, without intervals.
    DPCovariance : The covariance of features and targets.
    LocalDPLinearRegression : From reports of rows that nobody else sees.
    sklearn.linear_model.Ridge : Without privacy.

    Notes
    -----
    Privacy. One row and its targets are protected, or with `groups` one group, which adds a mean of
    its products to the sum. The number of rows or groups, the numbers and names of features and
    targets and all parameters are public. The sum of v v' is released, v being a row of features
    and targets in units, shortened to length 1, and a constant of 1/2, multiplied as the row was:
    it moves by at most 5/4 in the Frobenius norm under zero-out, and by sqrt(2) times that under
    replace-one (Proposition 87). The search for units is that of `DPCovariance`; with few rows
    length of rows, and origin and unit of one target, are searched instead, at delta 0 drawn by
    ranks, for up to .85 of epsilon. With many rows, .03 of the squared budget at most tests whether
    the target follows entries far out; see `predict`. Timing, exceptions on malformed input and
    `score` on private rows are not covered.

    Intervals. They are for the coefficients of a linear truth whose residuals do not depend on the
    features and are symmetric. Long rows count less, and those are long whose residual has the sign
    of the slope: so slopes are too near to 0, by up to one deviation where rows are few, which is
    worked out for Gaussian rows of up to 32 columns and added to the deviation. Residuals are taken
    to have equal variance, whatever the weight. With weights, or groups, intervals are too wide
    rather than too narrow: a residual of weight w, in units of `max_weight`, adds w^2 times its
    variance to that of a sum, and w times is counted. The law of the noise is known exactly, and
    what it does to coefficients to the first order: so there is no interval unless the smallest
    eigenvalue of the features, and the weight of the rows, are twice what noise alone makes. A
    posterior mean has none: how far it is from the truth depends on what was taken to be likely.
    The guide has the coverage that was measured. Given units that are far too small cut most rows,
    and intervals miss the truth: the released sum of the constants tells, and there is a warning.
    If one of the two units is given and columns are searched, it is brought to within a factor of
    two, or four if it is larger, of the spreads that are found, with a warning. Of new targets
    `predict` has a standard deviation: of the residuals nothing is released but one variance, in
    which long rows count less. It says nothing of their law, nor whether they are wider in one
    place than in another.

    Memory is a copy of dense rows in double precision, if they are not streamed, and three or four
    matrices of n_features squared. More than 8,192 features and targets are refused.

    References
    ----------
    .. [1] G. Bernstein and D. Sheldon, "Differentially private Bayesian linear regression", NeurIPS
       2019.
    .. [2] J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", JRSS B, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3))
    >>> y = X @ [1.0, -2.0, 0.0] + 10 + rng.normal(size=20_000)
    >>> model = DPRidge(epsilon=1.0, random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1.0, -2.0, 0.0]).max() < 0.1)
    True
    >>> lower, upper = model.conf_int(level=0.99)
    >>> bool(np.all((lower < [1.0, -2.0, 0.0]) & ([1.0, -2.0, 0.0] < upper)))
    True
    """

    coef_: NDArray[Any]
    intercept_: Any
    _found: StandardColumns | None

    _parameter_constraints = {
        **{
            name: SHARED_CONSTRAINTS[name]
            for name in ("epsilon", "delta", "adjacency", "budget", "random_state")
        },
        "l2": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "data_norm": SCALE_OR_NONE,
        "target_scale": [*SCALE_OR_NONE, "array-like"],
        "fit_intercept": ["boolean"],
        "max_weight": SCALE_OR_NONE,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        l2: float | Literal["auto"] = "auto",
        adjacency: Adjacency = "replace-one",
        data_norm: float | None = None,
        target_scale: float | VectorLike | None = None,
        fit_intercept: bool = True,
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.l2 = l2
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.target_scale = target_scale
        self.fit_intercept = fit_intercept
        self.max_weight = max_weight
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: MatrixLike,
        y: MatrixLike,
        *,
        groups: VectorLike | None = None,
        sample_weight: VectorLike | None = None,
    ) -> Self:
        """Release the products of all rows, and solve for the coefficients.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowStream, dask array} of shape (n_samples, n_features)
            Private rows; sparse only with `data_norm` and `target_scale`, and not made dense.
            Streams of `skdp.io`, memory maps from 256 MiB on and collections of dask are read chunk
            by chunk, with the same result.
        y : {array-like, RowStream, dask array} of shape (n_samples,) or (n_samples, n_targets)
            Private targets, of any size; several only beside rows in memory.
        groups : {array-like, RowStream, dask array} of shape (n_samples,), default=None
            Whose row it is: numbers, or text. All rows of a group are protected together, whatever
            their number, and count as one row does, each as one over their number. The number of
            groups is public. Beside a stream also one of identifiers, or an array. None protects
            rows. See :ref:`groups`.
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of the rows, finite and not negative; only with `max_weight`. Larger
            weights are clipped to it. A twentieth of epsilon is for their noisy total. See
            :ref:`sample_weight`.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable; nothing has been released then.
        BudgetError
            If a shared budget has less left, or protects groups and there are none.
        """
        check_groups(self, groups)
        # 1. price, before any data
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        # 2. validate
        is_known = not self._unknown()
        refuse_unscaled(X, is_known)
        X, y = validate_private_data(
            self,
            X,
            y,
            # a stream has one target for every row
            streams=getattr(y, "ndim", 1) < 2 or is_streamed(y),
            accept_sparse="csr",
            order="C",
            y_numeric=True,
            multi_output=True,
        )
        target = real_targets(y)
        if leaves_out_zeros(X):
            refuse_unscaled(sparse.csr_array((0, 1)), is_known)
        # 3. plan, from public facts; 4. gate, 5. run
        n_features, shape = X.shape[1], y.shape[1:]
        n_targets = math.prod(shape)
        check_size(self, n_features + n_targets, "Take DPLpRegressor, or fewer columns.")
        given = self._given(n_features, n_targets)
        if not self.delta and self.target_scale is None and n_targets > 1:
            raise ValueError(
                f"target_scale must be a number, or one for each of {n_targets} targets, with "
                "delta=0: without a delta the scale of one target alone is searched. Got None."
            )
        self._measured(
            X,
            lambda plan, counts: _ridge_rows(X, target, counts, plan),
            partial(self._planned, given, n_targets),
            partial(self._released, shape),
            groups=groups,
            sample_weight=sample_weight,
            wanted=self._unknown(),
            given=given,
        )
        return self

    def _planned(self, given, n_targets, n_rows):
        """Return the plan of units, and of the price of the products, by public facts.

        Parameters
        ----------
        given : ndarray of shape (n_features + n_targets,)
            Units that are known, NaN for the others.
        n_targets, n_rows : int
            Number of targets, and of rows or groups.
        """
        size, epsilon, delta = len(given), self.epsilon, self.delta
        n_features = size - n_targets
        total = gdp_mu(epsilon, delta) if delta else epsilon
        facts = {"n_rows": n_rows, "adjacency": self.adjacency}
        if not self._unknown():
            longest, stretch = self._lengths(n_features, n_targets, total, facts)
            unit = given / stretch
            radius = _public_length(n_features, stretch, longest)
            units = ColumnUnits(np.zeros(size), unit, radius)
            move = partial(moved, weight=1 / unit, shift=0 * unit)
            return KnownUnits(units, total, move, stretch)
        if not delta:
            return self._drawn(n_features, n_targets, facts)
        plan = plan_units(
            epsilon,
            delta,
            n_features=size,
            by_column=True,
            around_mean=False,
            centered=not self.fit_intercept,
            power=1.0,
            n_targets=n_targets,
            **facts,
        )
        dear = size > _MANY and plan.columns.mu > math.sqrt(_BESIDE_NORM) * total
        if self.data_norm is not None and n_targets == 1 and dear:
            return self._drawn(n_features, n_targets, facts)
        if plan.columns.n_releases and n_targets == 1:
            tail = plan_tail(plan.columns, epsilon, delta, self.adjacency)
            look = 0.0 if tail.few else tail.mu
            price = left_of(epsilon, delta, plan.columns, plan.length, mean=look)
            return replace(plan, look=look, price=price) if look else plan
        if plan.columns.n_releases or n_targets > 1 or self.target_scale is not None:
            return plan
        # where columns are not searched, the target has an origin and a unit of its own
        alone = self._drawn(n_features, n_targets, facts)
        too_few = not alone.n_releases or alone.price**2 < _LEFT_BESIDE_TARGETS * total**2
        return plan if too_few else alone

    def _unknown(self):
        """Return the parameters that could have given what is searched."""
        given = {"data_norm": self.data_norm, "target_scale": self.target_scale}
        return [name for name, value in given.items() if value is None]

    def _released(self, shape, setting):
        """Release the products of rows in units, and keep the coefficients they lead to.

        Parameters
        ----------
        shape : tuple of int
            Of the target of a row.
        setting : Setting
            The rows in units, the plan, and how products are released.
        """
        n_features = self.n_features_in_
        units, columns = setting.units, setting.columns
        query = RowProducts(len(units.unit), units.radius, CONSTANT, lifted=True)
        made, deviation = setting.release(query)
        n_rows = setting.n_rows
        equations = NormalEquations(
            query.matrix(made) / n_rows,
            n_features,
            n_rows,
            deviation / n_rows,
            CONSTANT,
            self.fit_intercept,
        )
        if self._unknown() and self.delta:
            facts = n_rows, self.epsilon, self.delta, self.adjacency
            n_coefs = n_features + self.fit_intercept
            say_of_signal(setting.doubts, *facts, n_coefs, searched=self._unknown())
        line = self._keep(equations, units, setting.plan.stretch, shape, setting.doubts)
        if columns is not None:
            first = slice(n_features)
            looks = isinstance(setting.plan, UnitsPlan) and setting.plan.look
            parts = [part[first] for part in (columns.center, columns.scale, columns.seen)]
            far, near = (
                StandardColumns(
                    *parts, farthest=min(StandardColumns.farthest, lengths * units.radius)
                )
                for lengths in (_AWAY_SEEN if looks else _AWAY, _NEAR)
            )
            columns = near if looks and self._is_nearer(setting, line, far, near) else far
        self._found = columns if self.data_norm is None else None

    def _is_nearer(self, setting, line, far, near):
        """Return whether predictions are much nearer to the target with entries cut short.

        Parameters
        ----------
        setting : Setting
            With rows in units, the target last.
        line : tuple of (ndarray, ndarray)
            Coefficients of features and constant, in units of the rows; released.
        far, near : StandardColumns, StandardColumns
            How far entries go in either case; public or released.
        """
        coef, last = line
        # what is predicted is the residual, for targets of 0
        coef = np.append(coef[:, 0], [-1.0, CONSTANT * setting.units.radius * last[0]])
        coef /= _LARGE * np.broadcast_to(setting.plan.stretch, len(coef) - 1)[-1]
        most = StandardColumns.farthest
        maps = tuple(CutEntries(np.append(one.reach, most)) for one in (far, near))
        query = NearerRows(maps, (coef, coef), 1.0, 0.0, 1.0)
        return TailPlan(setting.plan.look).is_nearer(setting.curator, query)

    def _lengths(self, n_features, n_targets, price, shape):
        """Return `plan_lengths` of a price for the products."""
        size = n_features + n_targets
        part = size * noise_in_rows(size, price=price, pure=not self.delta, **shape)
        return plan_lengths(n_features, n_targets, part)

    def _drawn(self, n_features, n_targets, shape):
        """Return the plan of a length of rows, and of the origin and unit of one target."""
        asked = {
            "with_radius": self.data_norm is None,
            "with_scale": self.target_scale is None,
            "with_center": self.fit_intercept,
        }
        scales = plan_scales(self.epsilon, self.delta, **asked, **shape)
        if not (scales.n_releases or self.delta):
            # nothing is learned without an origin and a unit of the target
            asked["with_radius"] = False
            scales = plan_scales(_MORE * self.epsilon, 0.0, **asked, **shape)
        price = left_of(self.epsilon, self.delta, scales)
        longest, stretch = self._lengths(n_features, n_targets, price, shape)
        return DrawnUnits(scales, n_features, price, stretch, longest)

    def _given(self, n_features, n_targets):
        """Return units of features and targets that are known, NaN for the others."""
        norm, scale = self.data_norm, self.target_scale
        norm = math.nan if norm is None else norm / math.sqrt(n_features)
        scales = np.asarray(math.nan if scale is None else scale, dtype=np.float64)
        if scale is not None and not (
            scales.shape in ((), (n_targets,)) and ((scales >= 1e-50) & (scales <= 1e50)).all()
        ):
            raise ValueError(
                "target_scale must be None, a number in [1e-50, 1e50], or one for each of "
                f"{n_targets} target(s); got {scale!r}."
            )
        return np.append(np.full(n_features, norm), np.broadcast_to(scales, n_targets))

    def _keep(self, equations, units, stretch, shape, doubts):
        """Set the fitted attributes, note what is doubtful; return coefficients in units."""
        d, edge = equations.n_features, equations.edge
        # in whose unit rows count; the penalty stands beside a sum of losses times weights
        heaviest = largest_weight(self) or 1.0
        unit = units.unit * units.radius
        features, targets = unit[:d], unit[d:]
        spectrum = equations.spectrum()
        # and so must what is left of the constant, which the weight of the rows follows from
        clear = min(spectrum[0], equations.products[-1, -1]) > _CLEAR * edge
        if self.l2 != "auto":
            with np.errstate(over="ignore", under="ignore"):
                given = self.l2 / heaviest / equations.n_rows / features**2
            given = np.minimum(given, 1e30)
            added = max(0.0, _NEXT_TO_NONE * edge - equations.spectrum(given)[0])
            solved, penalty = equations.solved(given + added), np.full(len(targets), self.l2)
        elif clear:
            solved, penalty = equations.solved(0.0), np.zeros(len(targets))
        else:
            *solved, penalty = equations.believed((stretch / units.radius) ** 2)
            penalty *= heaviest * equations.n_rows * units.radius**2
        self.l2_ = penalty if shape and self.l2 == "auto" else float(penalty[0])
        free = equations.solved(0.0) if clear else solved
        deviations, self._spreads, squares = np.inf, None, np.full(len(targets), np.inf)
        # some may be left out; if it is all of them, rows are too few
        hidden = equations.hidden() if not clear else np.zeros(0, dtype=np.intp)
        self._hidden = hidden if hidden.size < d else hidden[:0]
        if clear:
            deviations, self._spreads, squares = equations.deviations(*free)
        with np.errstate(over="ignore"):
            residual = np.sqrt(squares) * targets
        self.residual_std_ = residual if shape else float(residual[0])

        def original(coef):
            with np.errstate(over="ignore", under="ignore"):
                ratio = np.exp(np.subtract.outer(np.log(targets), np.log(features)))
                found = np.clip(coef.T * ratio, -_LARGEST_COEF, _LARGEST_COEF)
            return found.reshape(*shape, d)

        self.coef_, self.unpenalised_coef_ = original(solved[0]), original(free[0])
        self.coef_std_ = original(deviations) if clear else np.full(self.coef_.shape, np.inf)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            last = equations.constant * solved[1] * targets + units.center[d:]
            away = np.reshape(self.coef_, (-1, d)) @ units.center[:d]
            last = np.clip(np.nan_to_num(last - away), -_LARGEST_COEF, _LARGEST_COEF)
        last = last if self.fit_intercept else np.zeros(len(targets))
        self.intercept_ = last if shape else float(last[0])
        self._units = unit
        self.feature_center_, self.target_center_ = units.center[:d], units.center[d:]
        self.feature_scale_, self.target_scale_ = np.split(units.unit * stretch, [d])
        self._say_of_units(equations, doubts)
        if spectrum[-1] < edge:
            doubts.noise(
                "no direction of the features has more variance than the noise: the "
                "coefficients are mostly random. Use more rows, fewer columns or a larger epsilon."
            )
        return solved

    def _say_of_units(self, equations, doubts):
        """Take note of units that do not fit the rows, by public and released numbers alone."""
        length = self.feature_scale_[:1] * math.sqrt(equations.n_features)
        say_of_unit(doubts, "data_norm", self.data_norm, length)
        say_of_unit(doubts, "target_scale", self.target_scale, self.target_scale_)
        share, error = equations.share, equations.noise / equations.constant**2
        is_given = self.data_norm is not None or self.target_scale is not None
        if is_given and self.max_weight is None and share + 3 * error < _COUNTED:
            doubts.noise(
                "most rows are much longer than data_norm, or their targets larger than "
                f"target_scale: they are cut, count {max(share, 0.0):.2g} of a row in the mean, "
                "and intervals miss the truth. Give larger numbers, or None."
            )
        if (self.target_scale_ < _NEARLY_EQUAL * np.abs(self.target_center_)).any():
            doubts.noise(
                f"targets vary by less than {_NEARLY_EQUAL:g} of their size, and their origin may "
                "be as far off. Subtract a public guess of their median."
            )

    @overload
    def predict(self, X: MatrixLike, return_std: Literal[False] = False) -> NDArray[Any]: ...

    @overload
    def predict(
        self, X: MatrixLike, return_std: Literal[True]
    ) -> tuple[NDArray[Any], NDArray[Any]]: ...

    def predict(self, X: MatrixLike, return_std: bool = False) -> Any:
        """Return the predicted targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether the standard deviation of new targets is returned, too, as by scikit-learn's
            `BayesianRidge`.

        Returns
        -------
        predicted : ndarray of shape (n_samples,) or (n_samples, n_targets)
            ``X @ coef_.T + intercept_``. Where columns were standardised, entries further than 100
            units from their origin, or 10 where nothing was seen, count as that far, as in `fit`;
            and those further than four lengths of a row in `fit`; eight where rows are enough for a
            look at far entries, or one if that was nearer to the targets.
        std : ndarray of the shape of `predicted`
            Only with `return_std`: root of the squares of `residual_std_` and of the deviation of
            the prediction itself; infinite where `coef_std_` is. For residuals of equal variance.
        """
        check_is_fitted(self)
        X = validate_private_data(self, X, accept_sparse="csr", reset=False)
        if self._found is not None:
            X = self._found.near(X)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            predicted = safe_sparse_dot(X, self.coef_.T) + self.intercept_
        return (
            (predicted, self._deviations(X).reshape(predicted.shape)) if return_std else predicted
        )

    def _deviations(self, X):
        """Return standard deviations of new targets, of shape (n_samples, n_targets)."""
        residual = np.atleast_1d(self.residual_std_)
        if self._spreads is None:
            return np.full((X.shape[0], len(residual)), np.inf)
        unit, target = np.split(self._units, [self.n_features_in_])
        origin = self.feature_center_ / unit
        found = np.empty((X.shape[0], len(residual)))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for start in range(0, X.shape[0], _AT_ONCE):
                rows = slice(start, start + _AT_ONCE)
                part = X[rows].toarray() if sparse.issparse(X) else X[rows]
                part = part / unit - origin
                if self.fit_intercept:
                    part = np.column_stack([part, np.full(len(part), CONSTANT)])
                for j, spread in enumerate(self._spreads):
                    square = np.einsum("ij,ij->i", part @ spread, part)
                    own = np.sqrt(np.maximum(square, 0.0)) * target[j]
                    found[rows, j] = np.hypot(own, residual[j])
        return found

    def conf_int(self, level: float = 0.95) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return an interval for every coefficient, of sampling and of noise.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which one interval holds, in (0, 1).

        Returns
        -------
        lower, upper : ndarray of the shape of `coef_`
            Ends around `unpenalised_coef_`; infinite where `coef_std_` is.

        Warns
        -----
        NoisyEstimateWarning
            If intervals are infinite.
        """
        check_is_fitted(self)
        if not (is_number(level) and 0.0 < level < 1.0):
            raise ValueError(f"level must be a number in (0, 1); got {level!r}.")
        if np.isinf(self.coef_std_).any():
            named = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
            columns = "a column may be constant, or depend on others. Leave it out"
            if self._hidden.size:
                columns = (
                    f"by what was released, column(s) {some_of(named[self._hidden])} may be "
                    "constant, or depend on each other. Leave one out"
                )
            warnings.warn(
                f"{type(self).__name__}: intervals are infinite, because the smallest eigenvalue "
                f"of the features may be noise only: {columns}, or use more rows or a larger "
                "epsilon.",
                NoisyEstimateWarning,
                stacklevel=level_of_caller(),
            )
        half = float(ndtri(0.5 + level / 2)) * self.coef_std_
        return self.unpenalised_coef_ - half, self.unpenalised_coef_ + half

    def _twin(self):
        return linear_regression(self, self._found)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.data_norm is not None and self.target_scale is not None
        # what scikit-learn means by that: an R2 below .5 on 200 rows of 10 columns
        least = _FAIR if self.delta else _FAIR_PURE
        tags.regressor_tags.poor_score = is_number(self.epsilon) and self.epsilon < least
        return tags


def refuse_unscaled(X, known):
    """Raise a TypeError for sparse rows without public scales."""
    if is_sparse(X) and not known:
        raise TypeError(
            "sparse rows need numbers for data_norm and target_scale: medians and spreads of "
            "columns are searched in dense rows alone. Use X.toarray() if the rows fit in memory."
        )

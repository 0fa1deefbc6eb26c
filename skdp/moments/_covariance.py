# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private covariance and principal components, from one release of second moments.

The sum of v v' is released with noise, v being a row, shortened to a radius, with a constant
appended: means and second moments in one symmetric matrix [1]_. Everything else is post-processing.

Of very many columns leading components are found from products with a basis [2]_.

.. [1] C. Dwork, K. Talwar, A. Thakurta and L. Zhang, "Analyze Gauss: optimal bounds for
   privacy-preserving principal component analysis", STOC 2014.
.. [2] M. Hardt and E. Price, "The noisy power method: a meta algorithm with applications", NeurIPS
   2014.
"""

import math
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh, pinvh
from sklearn.covariance import log_likelihood
from sklearn.utils.validation import check_is_fitted

from skdp._counted import check_groups
from skdp._export import empirical_covariance
from skdp._rows.base import Box, L2Ball, bounds_of, check_radius, leaves_out_zeros
from skdp._rows.linear import EveryRow, ball_rows
from skdp._sklearn import (
    COUNT_OR_SHARE,
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    effective_n_threads,
    fit_context,
    refuse_sparse,
    validate_private_data,
)
from skdp._typing import Adjacency, Bounds, Budget, MatrixLike, Seed, VectorLike
from skdp.local._covariance import (
    PrincipalComponents,
    covariance_error,
    nearest_positive,
    signed_components,
)
from skdp.location._base import shares_of_score
from skdp.location._mean import say_of_edge
from skdp.moments._products import (
    CONSTANT,
    BasisProducts,
    ColumnSquares,
    ColumnUnits,
    KnownUnits,
    MomentEstimator,
    RowProducts,
    boxed,
    check_size,
    mean_of_rows,
    plan_units,
    some_columns,
)
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws.calibration import gdp_mu

# The moments, in the units of the data.


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and covariance from released products, and their noise, in the units of the data.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        The mean.
    covariance : ndarray of shape (n_features, n_features)
        Positive semi-definite.
    noise : ndarray of shape (n_features, n_features)
        Standard deviation of the noise of every entry, before it was projected.
    """

    mean: Any
    covariance: Any
    noise: Any

    @property
    def level(self):
        """About the largest eigenvalue that noise alone makes."""
        # in a unit in which squares of squares are finite
        largest = float(self.noise.max())
        rows = np.sqrt(np.square(self.noise / largest).sum(axis=1))
        return 2.0 * largest * float(rows.max())


def moments_of(query, released, scale, n_rows, units):
    """Return the moments that released products stand for.

    Parameters
    ----------
    query : RowProducts
        What was released.
    released : ndarray of shape (size,)
        With noise.
    scale : float
        Standard deviation of the noise.
    n_rows : int
        Number of rows.
    units : ColumnUnits
        Units of the rows.
    """
    d, one = query.n_features, scale / n_rows
    products, mean, size = query.matrix(released) / n_rows, np.zeros(d), np.zeros(d)
    if query.constant:
        mean = products[-1, :d] / query.constant
        # the mean of rows of the unit ball is one of its points
        mean = mean / max(1.0, float(np.linalg.norm(mean)))
        size = np.square(mean / query.constant)
    covariance = nearest_positive(products[:d, :d] - np.multiply.outer(mean, mean))
    noise = one * np.sqrt((1 + np.add.outer(size, size)) * np.where(np.eye(d) > 0, 1.0, 0.5))
    with np.errstate(under="ignore", over="ignore"):
        unit = units.unit * units.radius
        pairs = np.multiply.outer(unit, unit)
        return Moments(units.center + unit * mean, covariance * pairs, noise * pairs)


# a column is left out whose noise is so many times that of the others, and hides its variance
_FAR, _HIDDEN = 10.0, 2.0


def without_far_units(moments):
    """Return a covariance without the columns whose unit is far too large, by what was released.

    A spread may have been misjudged, or a bound be far too wide: then the noise of one column has
    more variance than all others have.

    Parameters
    ----------
    moments : Moments
        Public.
    """
    noise, variance = moments.noise.diagonal(), moments.covariance.diagonal()
    far = (noise > _FAR * np.median(noise)) & (variance < _HIDDEN * noise)
    return moments.covariance * np.multiply.outer(~far, ~far)


# Leading components of very many columns, without a matrix of all products.

# columns of dense and of sparse rows up to which all products are released
_WIDE = {False: 4096, True: 1024}
# dense rows: rounds of products with a basis, its columns beyond the components, and the share of
# the mean. Sparse rows: share of squares, and columns that are kept, so many that the largest
# eigenvalue of the noise is that number times their number to the power of -3/2. Chosen on made-up
# rows and on source code as text
_ROUNDS, _BEYOND, _MEAN_SHARE = 3, 20, 0.05
_SQUARES_SHARE, _KEPT, _MOST_KEPT = 0.2, 20.0, 2048
# components of so many columns, at most
_MOST_LEADING = 100


@dataclass(frozen=True, eq=False)
class LeadingMoments:
    """Mean and leading components, in the units of the data.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        The mean.
    vectors : ndarray of shape (n_features, n_found)
        Directions by growing variance.
    variance : ndarray of shape (n_found,)
        Variances by falling size, at least 0.
    total : float
        Variance of all directions together.
    level : float
        About the largest variance that noise alone makes.
    """

    mean: Any
    vectors: Any
    variance: Any
    total: float
    level: float


def public_signs(n_rows, n_columns):
    """Return a matrix of signs that anybody can make."""
    words = SeededBits(0, f"signs, {n_rows} x {n_columns}").words(-(-n_rows * n_columns // 64))
    bits = np.unpackbits(words.view(np.uint8))[: n_rows * n_columns]
    return 1.0 - 2.0 * bits.reshape(n_rows, n_columns)


def leading_moments(setting, n_features, n_components, means):
    """Release products of the rows with a basis, which follows from the products before.

    The noisy power method [2]_: no matrix has more than n_features times the columns of the basis.
    The first basis follows from signs that are public.

    Parameters
    ----------
    setting : Setting
        Of the fit. Units of all columns are the same.
    n_features, n_components : int
        Numbers of columns, and of directions that are asked for.
    means : bool
        Whether the mean of the rows is released before, and its products are taken off.
    """
    n_rows, radius = setting.n_rows, setting.units.radius
    mean, left = np.zeros(n_features), 1 - 1e-9
    if means:
        law, left = setting.law(n_features, _MEAN_SHARE), left - _MEAN_SHARE
        mean = mean_of_rows(setting.curator, n_features, n_rows, radius, law) / radius
    width = n_components + _BEYOND
    basis = np.linalg.qr(public_signs(n_features, width))[0]
    lengths = []
    for _ in range(_ROUNDS):
        query = BasisProducts(basis, radius)
        released, deviation = setting.release(query, left / _ROUNDS)
        products = query.products(released) / n_rows - np.multiply.outer(mean, mean @ basis)
        lengths.append(query.squared_length(released) / n_rows)
        last, (basis, _, _) = basis, np.linalg.svd(products, full_matrices=False)
    # what the last products say of the variances along the directions that they have
    variance = np.maximum(np.einsum("ij,ij->j", basis, products @ (last.T @ basis)), 0.0)
    order = np.argsort(-variance[:n_components], kind="stable")
    square = (setting.units.unit[0] * radius) ** 2
    level = deviation / n_rows * (math.sqrt(n_features) + math.sqrt(width))
    total = max(float(np.mean(lengths)) - float(mean @ mean), 0.0)
    return LeadingMoments(
        setting.units.center + setting.units.unit * radius * mean,
        basis[:, order[::-1]],
        variance[order] * square,
        max(total, variance[order].sum()) * square,
        level * square,
    )


def n_columns_kept(price, pure, n_rows, n_components, n_features):
    """Return of how many columns products are released; from public numbers.

    The largest eigenvalue of the noise in the mean of products of m columns is about
    ``2 sqrt(m) / (mu n)``, and without a delta ``sqrt(2) m^1.5 / (epsilon n)``.
    """
    signal = _KEPT * n_rows * price
    kept = (signal / math.sqrt(2)) ** (1 / 3) if pure else math.sqrt(signal / 2)
    return min(max(int(min(kept, _MOST_KEPT)), n_components), n_features)


def moments_of_columns(setting, n_features, n_components, means):
    """Release squares of all columns, and products of those with the largest.

    Parameters
    ----------
    setting : Setting
        Of the fit. Rows are sparse.
    n_features, n_components : int
        Numbers of columns, and of directions that are asked for.
    means : bool
        Whether means are released with the products.
    """
    units, n_rows = setting.units, setting.n_rows
    query = ColumnSquares(n_features, units.radius)
    squares, _ = setting.release(query, _SQUARES_SHARE, concentrated=True)
    n_kept = n_columns_kept(setting.plan.price, setting.pure, n_rows, n_components, n_features)
    kept = np.sort(np.argsort(-squares, kind="stable")[:n_kept])
    setting.curator.map_rows(lambda rows: rows.mapped(partial(some_columns, where=kept)))
    query = RowProducts(n_kept, units.radius, CONSTANT if means else 0.0)
    made, deviation = setting.release(query, 1 - 1e-9 - _SQUARES_SHARE)
    units = ColumnUnits(units.center[kept], units.unit[kept], units.radius)
    found = moments_of(query, made, deviation, n_rows, units)
    values, small = eigh(found.covariance)
    variance = np.maximum(values[::-1], 0.0)
    vectors, mean = np.zeros((n_features, n_components)), np.zeros(n_features)
    vectors[kept], mean[kept] = small[:, -n_components:], found.mean
    square = (units.unit[0] * units.radius) ** 2
    total = float(squares.sum()) / n_rows * square - float(mean @ mean)
    variance, total = variance[:n_components], max(total, float(variance.sum()))
    return LeadingMoments(mean, vectors, variance, total, found.level)


# The fit: units, then products.

# a mean square is at least as large as so many deviations below what was released
_SURE = 3.0

_SHARED = ("epsilon", "delta", "adjacency", "budget", "random_state")
_CONSTRAINTS = {
    **{name: SHARED_CONSTRAINTS[name] for name in _SHARED},
    "data_norm": [*SHARED_CONSTRAINTS["data_norm"], None],
    "bounds": [tuple, list, dict, np.ndarray, None],
    "max_weight": SCALE_OR_NONE,
    "verbose": ["verbose"],
}


class CovarianceEstimator(MomentEstimator):
    """Base of covariances and components: their one release, and what is known of their rows."""

    _count_share = 0.1

    data_norm: float | None
    bounds: Bounds | None
    assume_centered: bool

    #: units of columns are that power of their spreads, where they are found
    _power = 1.0
    #: squared length of the mean from which rows that are cut are told of, in units of the norm
    _least_mean = 0.0

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        *,
        groups: VectorLike | None = None,
        sample_weight: VectorLike | None = None,
    ) -> Self:
        """Release the products of all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Private rows; sparse ones are not made dense.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            Whose row it is: numbers, or text. All rows of a group are protected together, whatever
            their number, and count as one row does, each as one over their number. The number of
            groups is public. Only for rows in memory. None protects rows. See :ref:`groups`.
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of the rows, finite and not negative; only with `max_weight`. Weights
            beyond that count as that. A tenth of epsilon goes to their noisy total. See
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
        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta)
        total = gdp_mu(epsilon, delta) if delta else epsilon
        # 2. validate
        if self.bounds is not None:
            refuse_sparse(X, "into the center of bounds", "bounds=None and a data_norm")
        X = validate_private_data(self, X, streams=True, accept_sparse="csr", order="C")
        n_features, is_sparse = X.shape[1], leaves_out_zeros(X)
        wide = self._check_columns(n_features, is_sparse)
        # 3. plan, from public facts; 4. gate, 5. run
        known, domain = self._known(n_features, is_sparse)
        centered = self.assume_centered

        def planned(n_rows):
            if known is not None:
                units, move = known
                return KnownUnits(units, total, move)
            return plan_units(
                epsilon,
                delta,
                n_rows=n_rows,
                n_features=n_features,
                adjacency=self.adjacency,
                by_column=not is_sparse and not wide,
                around_mean=not is_sparse,
                centered=centered,
                power=self._power,
            )

        def released(setting):
            means = self._needs_means(setting.plan, is_sparse)
            if wide:
                find = moments_of_columns if is_sparse else leading_moments
                moments = find(setting, n_features, self.n_components, means)
                self._keep_components(moments, setting.n_rows, setting.doubts)
                return
            constant = CONSTANT if means else 0.0
            query = RowProducts(n_features, setting.units.radius, constant)
            made, deviation = setting.release(query)
            moments = moments_of(query, made, deviation, setting.n_rows, setting.units)
            if known is not None and self.bounds is not None and self.data_norm is not None:
                setting.doubts.promise("data_norm has no effect with bounds. Give only one.")
            if known is not None:
                self._say_of_bounds(setting, moments, deviation / setting.n_rows)
            self._keep(moments, setting.n_rows, setting.doubts)

        self._measured(
            X,
            lambda _, counts: ball_rows(X, domain, effective_n_threads(), counts),
            planned,
            released,
            groups=groups,
            sample_weight=sample_weight,
            wanted=["data_norm"],
            n_releases=1 + (_ROUNDS if wide else 0),
        )
        return self

    def _say_of_bounds(self, setting, moments, noise):
        """Take note if most rows may lie beyond public bounds, by released moments alone."""
        units, d = setting.units, len(moments.mean)
        with np.errstate(under="ignore", over="ignore"):
            mean = (moments.mean - units.center) / units.unit
            variance = moments.covariance.diagonal() / units.unit / units.unit
        if self.bounds is not None:
            # that of a mean, half of the widths being 1
            noise = noise * math.sqrt(0.5) / CONSTANT * units.radius
            say_of_edge(setting.doubts, mean, noise, "bounds", "")
            return
        square = float(mean @ mean)
        sure = square + float(variance.sum()) - _SURE * noise * math.sqrt(d)
        if square >= self._least_mean:
            setting.doubts.of_long_rows(sure)

    def _known(self, n_features, is_sparse):
        """Return public units of the columns with what maps rows to them, or None; and a domain."""
        ones, everywhere = np.ones(n_features), cast(Any, EveryRow())
        if self.bounds is not None:
            if is_sparse:
                raise TypeError("bounds must be None for a stream of sparse rows; give data_norm.")
            box = Box(*map(tuple, bounds_of(self, n_features)))
            if self.assume_centered and np.abs(box.center).max() > 0:
                raise ValueError(
                    "bounds must be symmetric around 0 with assume_centered=True; "
                    f"got {self.bounds!r}."
                )
            for half in (box.half_width.min(), box.half_width.max()):
                # products of larger or smaller ones are no floats
                check_radius(float(half), "half the width of bounds of a column")
            units = ColumnUnits(box.center, box.half_width, math.sqrt(n_features))
            return (units, partial(boxed, box=box)), everywhere
        if self.data_norm is None:
            return None, everywhere
        radius = check_radius(self.data_norm)
        return (ColumnUnits(0 * ones, radius * ones, 1.0), None), L2Ball(radius)

    def _needs_means(self, plan, is_sparse):
        """Whether means are released with the products."""
        return not self.assume_centered

    def _check_columns(self, n_features, is_sparse):
        """Say whether leading components are found without a matrix, or raise a ValueError."""
        check_size(self, n_features, "Take DPPCA with a number of n_components, or fewer columns.")
        return False

    def _keep(self, moments, n_rows, doubts):
        """Set the fitted attributes, and take note of what is doubtful about them."""
        raise NotImplementedError

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.bounds is None
        return tags


class DPCovariance(CovarianceEstimator):
    """Differentially private mean and covariance.

    One release of the products of all rows. Without `data_norm` and `bounds` a private search for
    the units of the columns comes first.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0.
    delta : float, default=1e-6
        Privacy budget, in [0, 1); well below 1 / n_samples. The noise is Gaussian; at 0 it is
        purely private.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in the presence of a row ("add-remove", where the number of rows is
        released first; otherwise it is public). See :ref:`adjacency`.
    data_norm : float, default=None
        Public radius around the origin: longer rows are scaled down to this Euclidean norm. None
        finds medians and spreads of the columns privately, within the budget, and a norm of rows
        in these units; with fewer rows, and at delta 0, a mean and a norm around it; for sparse
        rows, whose columns keep their units, a norm only.
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=None
        Public bounds, as those of `DPMean`: entries outside are clipped. Not for sparse rows.
    assume_centered : bool, default=False
        Whether the mean is known to be 0. `bounds` must be symmetric then.
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
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance of the shortened rows, with noise, projected to the positive semi-definite cone.
        Sums are divided by the number of rows.
    location_ : ndarray of shape (n_features,)
        Mean of the shortened rows, with noise; zeros with `assume_centered`.
    precision_ : ndarray of shape (n_features, n_features)
        Pseudo-inverse of `covariance_`.
    noise_std_ : ndarray of shape (n_features, n_features)
        Standard deviation of the noise of every entry of `covariance_`, before the projection.
    noise_level_ : float
        About the largest eigenvalue of noise alone. Smaller eigenvalues of `covariance_` are
        noise.
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
        If there are too few rows for private units, or noise is as large as the variances.
        Warnings depend on released and public numbers only.

    See Also
    --------
    DPPCA : Principal components.
    DPMean : Means alone, with less noise.
    LocalDPCovariance : From reports of rows that nobody else sees.
    sklearn.covariance.EmpiricalCovariance : Without privacy.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean of its products to
    the sum. The number of rows or groups (a secret under add-remove), the number and names of
    features and all parameters are public. With v a row in units of the radius and a constant of
    1/2, or of 0 with `assume_centered`, the sum of v v' moves by at most 5/4 or 1 in the Frobenius
    norm under zero-out, and by sqrt(2) times that under replace-one (Proposition 87). A search for
    units takes two fifths of the squared Gaussian-DP budget at most, and little of it with many
    rows; a mean a tenth. At delta 0 the noise is K-norm noise, or Laplace noise for more than
    32,768 products. Everything computed from released numbers is free. Timing, exceptions on
    malformed input and `score` on private rows are not covered.

    Errors. The noise of every entry is Gaussian, with `noise_std_`, except for the product of the
    noises of two means. The projection never increases the error in the Frobenius norm. Shortened
    rows have less variance, by an amount that depends on the data and is not known: little for
    normal columns, a third and more for lognormal ones, whose logarithms are normal. Memory is
    three or four matrices of n_features squared: 3,000 columns take about half a gigabyte, and more
    than 8,192 are refused.

    References
    ----------
    .. [1] C. Dwork, K. Talwar, A. Thakurta and L. Zhang, "Analyze Gauss: optimal bounds for
       privacy-preserving principal component analysis", STOC 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPCovariance
    >>> rng = np.random.default_rng(0)
    >>> rows = 50 + rng.normal(size=(20_000, 3)) @ np.array([[3, 1, 0], [0, 2, 0], [0, 0, 1]])
    >>> model = DPCovariance(random_state=0).fit(rows)
    >>> bool(np.abs(model.covariance_ - [[9, 3, 0], [3, 5, 0], [0, 0, 1]]).max() < 0.5)
    True
    >>> model.privacy_spent_[0] <= 1.0
    True
    """

    _parameter_constraints = {**_CONSTRAINTS, "assume_centered": ["boolean"]}

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        adjacency: Adjacency = "replace-one",
        data_norm: float | None = None,
        bounds: Bounds | None = None,
        assume_centered: bool = False,
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.bounds = bounds
        self.assume_centered = assume_centered
        self.max_weight = max_weight
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    def _keep(self, moments, n_rows, doubts):
        self.location_, self.covariance_ = moments.mean, moments.covariance
        self.noise_std_, self.noise_level_ = moments.noise, moments.level
        self.precision_ = pinvh(moments.covariance, check_finite=False)
        lost = np.count_nonzero(moments.covariance.diagonal() < moments.noise.diagonal())
        if lost:
            doubts.noise(
                f"the released variances of {lost} of {len(moments.mean)} columns are smaller "
                "than their noise. Use more rows, fewer columns or a larger epsilon, or give a "
                "tight data_norm or bounds."
            )

    def get_precision(self) -> Any:
        """Return the pseudo-inverse of the covariance.

        Returns
        -------
        precision : ndarray of shape (n_features, n_features)
            `precision_`.
        """
        check_is_fitted(self)
        return self.precision_

    def mahalanobis(self, X: MatrixLike) -> Any:
        """Return squared Mahalanobis distances of rows to the released mean, without noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. What is returned of private rows is private.

        Returns
        -------
        distances : ndarray of shape (n_samples,)
            ``(x - location_) @ precision_ @ (x - location_)``.
        """
        check_is_fitted(self)
        away = validate_private_data(self, X, reset=False) - self.location_
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.einsum("ij,ij->i", away @ self.precision_, away)

    def score(
        self, X_test: MatrixLike, y: object = None, sample_weight: VectorLike | None = None
    ) -> float:
        """Return the mean log-likelihood of rows under a Gaussian of the released moments.

        Parameters
        ----------
        X_test : array-like of shape (n_samples, n_features)
            Rows. If they are private, so is the score: it is not covered.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            What rows count in the mean, not negative; None is 1 each.

        Returns
        -------
        score : float
            Higher is better; minus infinity if `covariance_` is singular.
        """
        check_is_fitted(self)
        away = validate_private_data(self, X_test, reset=False) - self.location_
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            if sample_weight is None:
                second = away.T @ away / len(away)
            else:
                second = away.T * shares_of_score(sample_weight, away) @ away
            return float(log_likelihood(second, self.precision_))

    def error_norm(
        self,
        comp_cov: ArrayLike,
        norm: Literal["frobenius", "spectral"] = "frobenius",
        scaling: bool = True,
        squared: bool = True,
    ) -> float:
        """Return how far the estimate is from another covariance.

        Parameters
        ----------
        comp_cov : array-like of shape (n_features, n_features)
            The other one.
        norm : {"frobenius", "spectral"}, default="frobenius"
            Root of the sum of squares, or the largest singular value, of the difference.
        scaling : bool, default=True
            Whether the squared norm is divided by the number of features.
        squared : bool, default=True
            Whether the squared norm is returned.

        Returns
        -------
        error : float
            As that of scikit-learn's ``EmpiricalCovariance``.
        """
        check_is_fitted(self)
        return covariance_error(self.covariance_, comp_cov, norm, scaling, squared)

    def _twin(self):
        return empirical_covariance(self)


# Principal components.


class DPPCA(PrincipalComponents, CovarianceEstimator):
    """Differentially private principal components.

    Eigenvectors of a private covariance, from one release of the products of all rows. You may
    publish the components. The output of `transform` is not protected: it has no noise.

    Parameters
    ----------
    n_components : int or float, default=None
        Number of components, at most the number of features; or, in (0, 1), the least share of the
        released variance that they explain. None keeps all. A number up to 100 finds leading
        components of very many features without a matrix of all products.
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0.
    delta : float, default=1e-6
        Privacy budget, in [0, 1); well below 1 / n_samples. The noise is Gaussian; at 0 it is
        purely private.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in the presence of a row ("add-remove", where the number of rows is
        released first; otherwise it is public). See :ref:`adjacency`.
    data_norm : float, default=None
        Public radius around the origin: longer rows are scaled down to this Euclidean norm. None
        finds medians and spreads of the columns privately, within the budget, and a norm of rows
        in units that are the roots of the spreads; with fewer rows, and at delta 0, a mean and a
        norm around it; for sparse rows a norm only.
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=None
        Public bounds, as those of `DPMean`: entries outside are clipped. Not for sparse rows.
    assume_centered : bool, default=False
        Whether the mean is known to be 0. `bounds` must be symmetric then.
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
    components_ : ndarray of shape (n_components, n_features)
        Components as rows of norm 1, in order of decreasing variance. The entry of largest
        magnitude of each is positive.
    explained_variance_ : ndarray of shape (n_components,)
        Released variance along each, at least 0. Noise makes the largest larger.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same, divided by the sum of all released variances.
    singular_values_ : ndarray of shape (n_components,)
        Roots of `explained_variance_` times the number of rows, or of groups, less 1.
    mean_ : ndarray of shape (n_features,)
        Mean of the shortened rows, with noise; zeros with `assume_centered`, or if there are too
        few rows.
    noise_variance_ : float
        Mean of the released variances of the omitted directions; 0 if there are none.
    noise_level_ : float
        About the largest variance of privacy noise alone. Components of less variance have random
        directions.
    n_components_ : int
        Number of components.
    n_samples_ : int
        Number of rows, or of groups.
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
        If there are too few rows for private units, or components have less variance than noise.
        Warnings depend on released and public numbers only.

    See Also
    --------
    DPCovariance : The covariance itself.
    LocalDPPCA : From reports of rows that nobody else sees.
    sklearn.decomposition.PCA : Without privacy.

    Notes
    -----
    Privacy. As for `DPCovariance` (Proposition 87): the sum of v v' moves by at most 5/4 under
    zero-out, and by sqrt(2) times that under replace-one, v being a row in units of the radius and
    a constant; without a constant, where the mean is known, was released before, or is not looked
    for, by 1 and sqrt(2). `transform` adds no noise: its output for a private row is private.

    Errors. The sine of the angle between a component and that of the shortened rows is about
    `noise_level_` over the distance to the next variance [2]_. Memory is three or four matrices of
    n_features squared: 3,000 columns take about half a gigabyte, and more than 8,192 are refused.

    Many columns. For sparse rows of more than 1,024 columns, up to 100 components are those of the
    columns with the largest squares, which are released for a fifth of the budget. For dense rows
    of more than 4,096 columns they follow from three rounds of products with a basis [3]_.

    References
    ----------
    .. [1] C. Dwork, K. Talwar, A. Thakurta and L. Zhang, "Analyze Gauss: optimal bounds for
       privacy-preserving principal component analysis", STOC 2014.
    .. [2] C. Davis and W. M. Kahan, "The rotation of eigenvectors by a perturbation. III",
       SIAM Journal on Numerical Analysis 1970.
    .. [3] M. Hardt and E. Price, "The noisy power method: a meta algorithm with applications",
       NeurIPS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPPCA
    >>> rng = np.random.default_rng(0)
    >>> rows = 7 + rng.normal(size=(20_000, 1)) * [3.0, 4.0, 0.0] + rng.normal(size=(20_000, 3))
    >>> pca = DPPCA(n_components=1, random_state=0).fit(rows)
    >>> bool(pca.components_[0] @ [0.6, 0.8, 0.0] > 0.99)
    True
    >>> pca.transform(rows).shape
    (20000, 1)
    """

    #: the least error of the whole matrix
    _power = 0.5
    # directions of rows around 0 survive
    _least_mean = 0.8

    _parameter_constraints = {
        **_CONSTRAINTS,
        "assume_centered": ["boolean"],
        "n_components": COUNT_OR_SHARE,
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        adjacency: Adjacency = "replace-one",
        data_norm: float | None = None,
        bounds: Bounds | None = None,
        assume_centered: bool = False,
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.bounds = bounds
        self.assume_centered = assume_centered
        self.max_weight = max_weight
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    def _needs_means(self, plan, is_sparse):
        # nothing is left of the mean where it was released before; where it was not, and rows are
        # too few to find origins, what it would take away is mostly noise
        around = isinstance(plan, KnownUnits) or bool(plan.columns.n_releases) or is_sparse
        return around and not self.assume_centered

    def _check_columns(self, n_features, is_sparse):
        if isinstance(self.n_components, Integral) and self.n_components > n_features:
            raise ValueError(
                f"n_components must be at most the number of features, {n_features}; got "
                f"{self.n_components!r}."
            )
        few = isinstance(self.n_components, Integral) and self.n_components <= _MOST_LEADING
        if few and self.bounds is None and n_features > _WIDE[is_sparse]:
            return True
        instead = (
            f"Give a number up to {_MOST_LEADING} for n_components and no bounds, or take fewer "
            "columns."
        )
        check_size(self, n_features, instead)
        return False

    def _keep(self, moments, n_rows, doubts):
        values, vectors = eigh(without_far_units(moments))
        variance = np.maximum(values[::-1], 0.0)
        found = LeadingMoments(moments.mean, vectors, variance, variance.sum(), moments.level)
        self._keep_components(found, n_rows, doubts)

    def _keep_components(self, moments, n_rows, doubts):
        """Set the fitted attributes, and take note of what is doubtful about them."""
        variance, total = moments.variance, max(float(moments.total), 1e-300)
        n_features = len(moments.mean)
        kept = len(variance) if self.n_components is None else self.n_components
        if not isinstance(kept, Integral):
            explained = np.cumsum(variance) / total
            kept = min(int(np.searchsorted(explained, kept)) + 1, len(variance))
        kept = int(kept)
        self.components_ = signed_components(moments.vectors)[:kept]
        self.explained_variance_ = variance[:kept]
        self.explained_variance_ratio_ = variance[:kept] / total
        self.singular_values_ = np.sqrt(variance[:kept]) * math.sqrt(max(n_rows - 1, 0))
        left = max(float(moments.total) - float(variance[:kept].sum()), 0.0)
        self.noise_variance_ = left / (n_features - kept) if kept < n_features else 0.0
        self.mean_, self.noise_level_ = moments.mean, moments.level
        self.n_components_, self.n_samples_ = kept, n_rows
        wanted = kept if self.n_components is not None else 1
        hidden = wanted - np.count_nonzero(variance[:wanted] > moments.level)
        if hidden:
            doubts.noise(
                f"{hidden} of the first {wanted} components have less variance than the noise: "
                "their directions are mostly random. Use more rows, fewer columns or components, "
                "or a larger epsilon, or give a tight data_norm or bounds."
            )

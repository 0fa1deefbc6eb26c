# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private covariance and principal components, from products of rows that are released once.

The sum of v v' is released with Gaussian noise, v being a row, shortened to a radius, with a
constant appended: means and second moments in one symmetric matrix [1]_. Everything else is
post-processing. Without public bounds the origins and the units of the columns and a length that
few rows exceed are searched privately first, with the searches of `DPLpRegressor`.

Units matter: noise in the product of two columns is in proportion to their units. With standardised
columns every variance has the same relative noise. With units a_i, rows are about as long as the
root of the sum of (s_i / a_i)^2, s_i being the spread of column i, and the squared error of the
whole matrix is in proportion to the square of that sum times the square of the sum of a_i^2: the
least, by Cauchy and Schwarz, is at a_i^2 = s_i. Those are the units for principal components.

.. [1] C. Dwork, K. Talwar, A. Thakurta and L. Zhang, "Analyze Gauss: optimal bounds for
   privacy-preserving principal component analysis", STOC 2014.
"""

import math
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import eigh, pinvh
from sklearn.base import BaseEstimator
from sklearn.covariance import log_likelihood
from sklearn.utils.validation import check_is_fitted

from skdp._counted import count_rows, counts_of, hidden_count
from skdp._export import TwinMixin, empirical_covariance
from skdp._gate import Doubts, open_gate
from skdp._groups import check_groups
from skdp._plan import PlanMixin
from skdp._rows.base import (
    Box,
    L2Ball,
    bounds_of,
    check_radius,
    empty_rows,
    leaves_out_zeros,
    row_major,
    row_norms,
    sum_over,
)
from skdp._rows.linear import EveryRow, LinearChunk, ball_rows
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
from skdp.linear_model._scales import plan_scales, say_of_scales
from skdp.local._covariance import (
    PrincipalComponents,
    covariance_error,
    nearest_positive,
    signed_components,
)
from skdp.location._base import shares_of_score
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.privacy.laws.calibration import gdp_mu, mu_beside, mu_of_all

# The query: products of rows.


@dataclass(frozen=True)
class RowProducts:
    """Sum over rows of v v', v being a row of the unit ball with a constant.

    Parameters
    ----------
    n_features : int
        Number of columns d.
    radius : float, default=1.0
        Rows count in this unit of length, and longer ones as of this length.
    constant : float, default=0.0
        Last entry of every v, between 0 and 1; 0 for none.
    lifted : bool, default=False
        Whether the constant of a row that is shortened is multiplied as the row is: v keeps its
        direction, and the equation that its entries fulfil.

    Notes
    -----
    The coordinates are the upper triangle of v v' row after row, what is off the diagonal times
    sqrt(2): their Euclidean norm is the Frobenius norm of v v'. A null row contributes nothing.
    """

    n_features: int
    radius: float = 1.0
    constant: float = 0.0
    lifted: bool = False

    @property
    def name(self):
        """What the statistic is."""
        return f"sum of products of rows{' and of rows' * bool(self.constant)}"

    @property
    def side(self):
        """Number of entries of v."""
        return self.n_features + bool(self.constant)

    @property
    def size(self):
        """Number of coordinates."""
        return self.side * (self.side + 1) // 2

    @property
    def reach(self):
        """Square of the largest length of v."""
        return 1.0 + self.constant**2

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: R (zero-out) or sqrt(2) R (replace-one), R = 1 + constant^2.

        Proof. The Frobenius norm of v v' is ``|v|^2 <= R``. For two rows with v and u it is
        ``|v v' - u u'|^2 = |v|^4 + |u|^4 - 2 <v, u>^2 <= 2 R^2``. A unit row attains the first. Two
        unit rows with the inner product ``-constant^2``, which is at least -1, have <v, u> = 0 and
        attain the second; with one column there are none, and the bound is not tight. A group
        contributes a mean of such matrices, and of zero, if its weights add up to at most 1: the
        farthest two points of a convex hull are two of its corners.
        """
        if adjacency == "zero-out":
            reach, theorem = self.reach, "r^2 <= R for the products of a row of length r"
        else:
            reach, theorem = math.sqrt(2.0) * self.reach, "r^4 + s^4 - 2 <v, u>^2 <= 2 R^2"
        bound = float(n_rows) * self.reach
        return Sensitivity(l1=math.inf, l2=reach, bound=bound, theorem=theorem)

    def partial(self, chunk):
        """Return the sum of whole products v v' of a chunk, flattened."""
        X, weight = chunk.X, np.where(np.isinf(chunk.norm), 0.0, chunk.factor / self.radius)
        there = np.isfinite(chunk.norm).astype(np.float64)
        if chunk.weight is not None:
            there *= np.sqrt(chunk.weight)
        with np.errstate(under="ignore", over="ignore"):
            if sparse.issparse(X):
                rows = sparse.csr_array(X, dtype=np.float64, copy=True)
                lengths = np.diff(rows.indptr)
                rows.data *= np.repeat(weight, lengths)
                short = there / np.maximum(row_norms(rows), 1.0)
                rows.data *= np.repeat(short, lengths)
                products = (rows.T @ rows).toarray()
            else:
                rows = row_major(X) * weight[:, None]
                length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
                short = there / np.maximum(length, 1.0)
                rows *= short[:, None]
                # one array on both sides: half the work, and symmetric to the last bit
                products = rows.T.dot(rows)
        if not self.constant:
            return products.ravel()
        last = self.constant * (short if self.lifted else there)
        whole = np.empty((self.side, self.side))
        whole[:-1, :-1] = products
        whole[-1, :-1] = whole[:-1, -1] = rows.T.dot(last)
        whole[-1, -1] = last @ last
        return whole.ravel()

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (size,)."""
        total = sum_over(rows, self.partial, self.side**2).reshape(self.side, self.side)
        upper = np.triu_indices(self.side)
        products = total[upper]
        products[upper[0] != upper[1]] *= math.sqrt(2.0)
        return products

    def matrix(self, released):
        """Return the symmetric matrix that a released vector stands for.

        Parameters
        ----------
        released : ndarray of shape (size,)
            With noise.

        Returns
        -------
        products : ndarray of shape (side, side)
            Noise of the scale s on the diagonal, and of s / sqrt(2) off it.
        """
        products = np.zeros((self.side, self.side))
        upper = np.triu_indices(self.side)
        products[upper] = released
        # half of what is off the diagonal, and half of the diagonal, on either side
        products[upper] *= np.where(upper[0] == upper[1], 0.5, math.sqrt(0.5))
        return products + products.T


# The units of the columns, and how long rows may be.

#: the constant: at 1/2 the noise of means and that of products are in balance, for rows that were
#: centered
CONSTANT = 0.5
# length to which rows are cut, in units of what a quarter of them exceed: so many times that power
# of the relative noise, between two limits; chosen on made-up rows
_TIMES, _POWER, _LENGTHS = 0.8, -0.2, (1.25, 4.0)


@dataclass(frozen=True, eq=False)
class ColumnUnits:
    """Public origins and units of columns, and the length to which rows are cut in these.

    Parameters
    ----------
    center, unit : ndarray of shape (n_features,)
        Origins and units.
    radius : float
        Rows ``(x - center) / unit`` that are longer are shortened.
    """

    center: Any
    unit: Any
    radius: float


@dataclass(frozen=True)
class UnitsPlan:
    """How units are found; public numbers only.

    Parameters
    ----------
    columns, length : SearchedScales
        Searches for origins and spreads of columns, and for a length that a quarter of the rows
        exceed.
    power : float
        Units are that power of the spreads: 1 standardises columns.
    mu : float
        Gaussian-DP parameter that is left for the products.
    longest : float
        Length to which rows are cut, in units of what a quarter of them exceed.
    """

    columns: Any
    length: Any
    power: float
    mu: float
    longest: float

    @property
    def n_releases(self):
        """Number of releases."""
        return self.columns.n_releases + self.length.n_releases

    def run(self, curator, n_features, given=None):
        """Search the units.

        Parameters
        ----------
        curator : Curator
            Holds rows of any length; rows in the new units when this returns.
        n_features : int
            Number of columns.
        given : ndarray of shape (n_features,) or None
            Units of columns that are known, around 0; NaN for the others.

        Returns
        -------
        units : ColumnUnits
            The units.
        columns : StandardColumns or None
            Origins and spreads that were found.
        vague : bool
            Whether the released counts leave a scale open.
        """
        center, spread = np.zeros(n_features), np.ones(n_features)
        _, columns, _ = self.columns.run(curator, 1.0, 0.0, 1.0)
        if columns is not None:
            center, spread = np.asarray(columns.center), np.asarray(columns.scale)
        unit = spread**self.power * math.exp(float(np.log(spread).mean())) ** (1 - self.power)
        origin = center
        if given is not None:
            origin = np.where(np.isnan(given), center, 0.0)
            unit = np.where(np.isnan(given), unit, given)
        move = {"weight": spread / unit, "shift": (center - origin) / unit}
        if (move["weight"] != 1).any() or move["shift"].any():
            move_rows(curator, **move)
        (radius, _, _), _, vague = self.length.run(curator, math.sqrt(n_features), 0.0, 1.0)
        return ColumnUnits(origin, unit, self.longest * radius), columns, vague


def plan_units(epsilon, delta, *, n_rows, n_features, adjacency, is_sparse, centered, power):
    """Plan the search for units, from public facts.

    Parameters
    ----------
    epsilon, delta : float
        Budget of the whole fit.
    n_rows, n_features : int
        Shape of the data.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    is_sparse : bool
        Whether rows are stored without their zeros: then columns stay as they are.
    centered : bool
        Whether the mean of the rows is known to be 0.
    power : float
        As that of `UnitsPlan`.

    Returns
    -------
    plan : UnitsPlan
        With no release, where there are too few rows.
    """
    shape: dict[str, Any] = {"n_rows": n_rows, "adjacency": adjacency, "with_scale": False}
    columns, length = (
        plan_scales(epsilon, delta, with_radius=r, with_center=not centered, n_columns=d, **shape)
        for r, d in ((False, 0 if is_sparse else n_features), (True, 0))
    )
    mu = mu_beside(epsilon, delta, (), math.hypot(columns.mu, length.mu) * (1 + 1e-9))
    # the largest eigenvalue of the noise, in parts of the variance of one direction
    moved = RowProducts(n_features, 1.0, CONSTANT).sensitivity(adjacency, n_rows).l2
    noise = moved * math.sqrt(2 * n_features) / (mu * n_rows) * n_features
    longest = min(max(_TIMES * noise**_POWER, _LENGTHS[0]), _LENGTHS[1])
    return UnitsPlan(columns, length, power, mu, longest)


def move_rows(curator, weight, shift):
    """Have a curator multiply the columns of its rows by public numbers, and shift them."""
    curator.map_rows(lambda rows: rows.mapped(partial(_moved, weight=weight, shift=shift)))


def _moved(chunk, weight, shift):
    """Return one chunk of rows whose columns are mapped by public numbers; sparse without shift."""
    with np.errstate(under="ignore", over="ignore"):
        if sparse.issparse(chunk.X):
            body = sparse.csr_array(chunk.X, dtype=np.float64, copy=True)
            body.data *= weight[body.indices]
        else:
            body = empty_rows(chunk.X.shape)
            np.multiply(row_major(chunk.X), weight, out=body)
            body += shift
    rest = chunk.intercept, chunk.lift, chunk.drawn, chunk.weight
    return LinearChunk(body, chunk.factor, chunk.norm, chunk.target, *rest)


def _boxed(chunk, box):
    """Return one chunk of dense rows, clipped into a box and mapped to [-1, 1]."""
    body = empty_rows(chunk.X.shape)
    body[:] = box.to_unit(row_major(chunk.X))
    rest = chunk.intercept, chunk.lift, chunk.drawn, chunk.weight
    return LinearChunk(body, chunk.factor, chunk.norm, chunk.target, *rest)


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


# The fit: units, then products.

_SHARED = ("epsilon", "delta", "adjacency", "budget", "random_state")
_CONSTRAINTS = {
    **{name: SHARED_CONSTRAINTS[name] for name in _SHARED},
    "data_norm": [*SHARED_CONSTRAINTS["data_norm"], None],
    "bounds": [tuple, list, dict, np.ndarray, None],
    "max_weight": SCALE_OR_NONE,
    "verbose": ["verbose"],
}


class MomentEstimator(TwinMixin, PlanMixin, BaseEstimator):
    """Base of estimators of second moments: the way of their rows through the gate."""

    _count_share = 0.1

    ledger_: Ledger
    privacy_spent_: tuple[float, float]
    epsilon: float
    delta: float
    adjacency: Adjacency
    data_norm: float | None
    bounds: Bounds | None

    #: units of columns are that power of their spreads, where they are found
    _power = 1.0

    @property
    def _centered(self):
        """Whether the mean of the rows is known to be 0."""
        return False

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
        total_mu = gdp_mu(epsilon, delta)
        # 2. validate
        if self.bounds is not None:
            refuse_sparse(X, "into the center of bounds", "bounds=None and a data_norm")
        X = validate_private_data(self, X, streams=True, accept_sparse="csr", order="C")
        n_features, is_sparse = X.shape[1], leaves_out_zeros(X)
        self._check_columns(n_features)
        # 3. plan, from public facts
        doubts, centered = Doubts(type(self).__name__), self._centered
        constant = 0.0 if centered else CONSTANT
        plan, box, domain = None, None, cast(Any, EveryRow())
        units: Any = None
        ones = np.ones(n_features)
        if self.bounds is not None:
            if is_sparse:
                raise TypeError("bounds must be None for a stream of sparse rows; give data_norm.")
            box = Box(*map(tuple, bounds_of(self, n_features)))
            units = ColumnUnits(box.center, box.half_width, math.sqrt(n_features))
            if centered and np.abs(box.center).max() > 0:
                raise ValueError(
                    "bounds must be symmetric around 0 with assume_centered=True; "
                    f"got {self.bounds!r}."
                )
            if self.data_norm is not None:
                doubts.promise("data_norm has no effect beside bounds: give one of them.")
        elif self.data_norm is not None:
            radius = check_radius(self.data_norm)
            units, domain = ColumnUnits(0 * ones, radius * ones, 1.0), L2Ball(radius)
        (n_rows, unit), whose = count_rows(groups, X, hidden_count(self), sample_weight)
        if units is None:
            shape = {"n_rows": n_rows, "n_features": n_features, "is_sparse": is_sparse}
            given = {"adjacency": self.adjacency, "centered": centered}
            plan = plan_units(epsilon, delta, power=self._power, **shape, **given)
        # 4. gate, 5. run
        with open_gate(
            self,
            lambda: ball_rows(X, domain, effective_n_threads(), counts_of(whose)),
            n_rows=n_rows,
            unit=unit,
            delta=delta,
            mu=mu_of_all(epsilon, delta),
            n_releases=1 + (plan.n_releases if plan else 0),
            doubts=doubts,
        ) as curator:
            mu = plan.mu if plan else total_mu
            if box is not None:
                curator.map_rows(lambda rows: rows.mapped(partial(_boxed, box=box)))
            if plan is not None:
                units, _, vague = plan.run(curator, n_features)
                missing = not plan.length.n_releases
                facts = ["data_norm"], n_rows, epsilon
                say_of_scales(doubts, *facts, missing=missing, vague=vague)
            query = RowProducts(n_features, units.radius, constant)
            released = curator.release(query, GaussianMechanism(mu))
            scale = curator.ledger.releases[-1].noise.scale
            moments = moments_of(query, released, scale, n_rows, units)
            self._keep(moments, n_rows, doubts)
        return self

    def _check_columns(self, n_features):
        """Raise a ValueError if a parameter does not go with the number of columns."""

    def _keep(self, moments, n_rows, doubts):
        """Set the fitted attributes, and take note of what is doubtful about them."""
        raise NotImplementedError

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.bounds is None
        return tags


class DPCovariance(MomentEstimator):
    """Differentially private mean and covariance.

    One release of the products of all rows; with neither `data_norm` nor `bounds` after a private
    search for the units of the columns.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0.
    delta : float, default=1e-6
        Privacy budget, in (0, 1); well below 1 / n_samples. The noise is Gaussian.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in whether it is there ("add-remove", where the number of rows is released
        first; it is public otherwise). See :ref:`adjacency`.
    data_norm : float, default=None
        Public radius around the origin: longer rows are scaled down to this Euclidean norm. None
        finds medians and spreads of the columns privately, within the budget, and a length of
        rows in these units; of sparse rows, whose columns stay as they are, a length alone.
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=None
        Public bounds, as those of `DPMean`: entries outside are clipped. Not for sparse rows.
    assume_centered : bool, default=False
        Whether the mean is known to be 0. `bounds` must be symmetric then.
    max_weight : float, default=None
        Public bound on weights of rows, in [1e-50, 1e50]; larger ones count as that. None has no
        weights (:ref:`sample_weight`).
    budget : PrivacyBudget, default=None
        A budget that several fits share: each is charged (epsilon, delta) before it reads a
        row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise
        reproducible, voids the guarantee towards whoever knows it, and warns.
    verbose : int, default=0
        1 prints a line with what is about to be spent, and a bar if the fit takes seconds: public
        numbers only.

    Attributes
    ----------
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance of the shortened rows, with noise, projected on the positive semi-definite
        matrices. Sums are divided by the number of rows.
    location_ : ndarray of shape (n_features,)
        Mean of the shortened rows, with noise; zeros with `assume_centered`.
    precision_ : ndarray of shape (n_features, n_features)
        Pseudo-inverse of `covariance_`.
    noise_std_ : ndarray of shape (n_features, n_features)
        Standard deviation of the noise of every entry of `covariance_`, before it was projected.
    noise_level_ : float
        About the largest eigenvalue that noise alone makes. Smaller ones of `covariance_` mean
        nothing.
    ledger_ : Ledger
        What was released, at what price.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    Warns
    -----
    NoisyEstimateWarning
        If there are too few rows for private units, or noise is as large as the variances. No
        warning depends on anything that was not released.

    See Also
    --------
    DPPCA : Principal components.
    DPMean : Means alone, with less noise.
    LocalDPCovariance : From reports of rows that nobody else sees.
    sklearn.covariance.EmpiricalCovariance : Without privacy.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean of its products to
    the sum. The number of rows or groups, the number and names of features and all parameters are
    public. With v a row in units of the radius and a constant of 1/2, or of 0 with
    `assume_centered`, the sum of v v' moves by at most 5/4 or 1 in the Frobenius norm under
    zero-out, and by sqrt(2) times that under replace-one (Proposition 87). A search for units takes
    two fifths of the squared Gaussian-DP budget at most, and little of it with many rows. What is
    computed from what was released costs nothing. Timing, exceptions on malformed input and `score`
    on private rows are not covered.

    Errors. The noise of every entry is Gaussian, with `noise_std_`, but for the product of the
    noises of two means, and the projection never adds to the error in the Frobenius norm. Shortened
    rows have less variance: by how much depends on the data. Memory is three or four matrices of
    n_features squared: 3,000 columns take about half a gigabyte.

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

    @property
    def _centered(self):
        return self.assume_centered

    def _keep(self, moments, n_rows, doubts):
        self.location_, self.covariance_ = moments.mean, moments.covariance
        self.noise_std_, self.noise_level_ = moments.noise, moments.level
        self.precision_ = pinvh(moments.covariance, check_finite=False)
        lost = np.count_nonzero(moments.covariance.diagonal() < moments.noise.diagonal())
        if lost:
            doubts.noise(
                f"the released variances of {lost} of {len(moments.mean)} columns are less than "
                "the noise in them. Use more rows, fewer columns or a larger epsilon; or give a "
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


class DPPCA(PrincipalComponents, MomentEstimator):
    """Differentially private principal components.

    Eigenvectors of a private covariance, from one release of the products of all rows. The
    components may be published. What `transform` returns is not protected: it is computed from rows
    without noise.

    Parameters
    ----------
    n_components : int or float, default=None
        Number of components, at most the number of features; or, in (0, 1), the share of the
        released variance that they explain at least. None keeps all.
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0.
    delta : float, default=1e-6
        Privacy budget, in (0, 1); well below 1 / n_samples. The noise is Gaussian.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in whether it is there ("add-remove", where the number of rows is released
        first; it is public otherwise). See :ref:`adjacency`.
    data_norm : float, default=None
        Public radius around the origin: longer rows are scaled down to this Euclidean norm. None
        finds medians and spreads of the columns privately, within the budget, and a length of
        rows in units that are the roots of the spreads; of sparse rows a length alone.
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=None
        Public bounds, as those of `DPMean`: entries outside are clipped. Not for sparse rows.
    max_weight : float, default=None
        Public bound on weights of rows, in [1e-50, 1e50]; larger ones count as that. None has no
        weights (:ref:`sample_weight`).
    budget : PrivacyBudget, default=None
        A budget that several fits share: each is charged (epsilon, delta) before it reads a
        row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise
        reproducible, voids the guarantee towards whoever knows it, and warns.
    verbose : int, default=0
        1 prints a line with what is about to be spent, and a bar if the fit takes seconds: public
        numbers only.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Components as rows of length 1, in the order of decreasing variance. In each of them the
        entry of largest magnitude is positive.
    explained_variance_ : ndarray of shape (n_components,)
        Released variance along each, at least 0. Noise makes the largest larger.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same, divided by the sum of all released variances.
    singular_values_ : ndarray of shape (n_components,)
        Roots of `explained_variance_` times the number of rows, or of groups, less 1.
    mean_ : ndarray of shape (n_features,)
        Mean of the shortened rows, with noise.
    noise_variance_ : float
        Mean of the released variances of the directions that were left out; 0 if none were.
    noise_level_ : float
        About the largest variance that privacy noise alone makes. Components of less variance have
        random directions.
    n_components_ : int
        Number of components.
    n_samples_ : int
        Number of rows, or of groups.
    ledger_ : Ledger
        What was released, at what price.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    Warns
    -----
    NoisyEstimateWarning
        If there are too few rows for private units, or components have less variance than noise
        makes. No warning depends on anything that was not released.

    See Also
    --------
    DPCovariance : The covariance itself.
    LocalDPPCA : From reports of rows that nobody else sees.
    sklearn.decomposition.PCA : Without privacy.

    Notes
    -----
    Privacy. As for `DPCovariance` (Proposition 87): the sum of v v' moves by at most 5/4 under
    zero-out, and by sqrt(2) times that under replace-one, v being a row in units of the radius and
    a constant. `transform` adds no noise: what it returns of a private row is private.

    Errors. The sine of the angle between a component and that of the shortened rows is about
    `noise_level_` over the distance to the next variance [2]_. Memory is three or four matrices of
    n_features squared: 3,000 columns take about half a gigabyte.

    References
    ----------
    .. [1] C. Dwork, K. Talwar, A. Thakurta and L. Zhang, "Analyze Gauss: optimal bounds for
       privacy-preserving principal component analysis", STOC 2014.
    .. [2] C. Davis and W. M. Kahan, "The rotation of eigenvectors by a perturbation. III",
       SIAM Journal on Numerical Analysis 1970.

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

    _parameter_constraints = {
        **_CONSTRAINTS,
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
        self.max_weight = max_weight
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    def _check_columns(self, n_features):
        if isinstance(self.n_components, Integral) and self.n_components > n_features:
            raise ValueError(
                f"n_components must be at most the number of features, {n_features}; got "
                f"{self.n_components!r}."
            )

    def _keep(self, moments, n_rows, doubts):
        values, vectors = eigh(without_far_units(moments))
        variance = np.maximum(values[::-1], 0.0)
        total = max(float(variance.sum()), 1e-300)
        kept = len(variance) if self.n_components is None else self.n_components
        if not isinstance(kept, Integral):
            explained = np.cumsum(variance) / total
            kept = min(int(np.searchsorted(explained, kept)) + 1, len(variance))
        kept = int(kept)
        self.components_ = signed_components(vectors)[:kept]
        self.explained_variance_ = variance[:kept]
        self.explained_variance_ratio_ = variance[:kept] / total
        self.singular_values_ = np.sqrt(variance[:kept]) * math.sqrt(max(n_rows - 1, 0))
        left = variance[kept:]
        self.noise_variance_ = float(left.mean()) if len(left) else 0.0
        self.mean_, self.noise_level_ = moments.mean, moments.level
        self.n_components_, self.n_samples_ = kept, n_rows
        wanted = kept if self.n_components is not None else 1
        hidden = wanted - np.count_nonzero(variance[:wanted] > moments.level)
        if hidden:
            doubts.noise(
                f"{hidden} of the first {wanted} components have less variance than noise makes: "
                "their directions are mostly random. Use more rows, fewer columns or components, "
                "or a larger epsilon; or give a tight data_norm or bounds."
            )

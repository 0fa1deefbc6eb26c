# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Products of rows, released once, and the units of rows for this release.

`RowProducts` is the statistic that covariances, components and ridge regressions follow from. The
noise is Gaussian; without a delta it is K-norm noise, or Laplace noise for very many products.
Without public bounds the origins and the units of the columns and a length that few rows exceed are
searched privately first, with the searches of `DPLpRegressor`. Where rows are too few for searches
in every column, the mean of the rows is released, and their length is searched around it.

Units matter: noise in the product of two columns is in proportion to their units. With standardised
columns every variance has the same relative noise. With units a_i, rows are about as long as the
root of the sum of (s_i / a_i)^2, s_i being the spread of column i, and the squared error of the
whole matrix is in proportion to the square of that sum times the square of the sum of a_i^2: the
least, by Cauchy and Schwarz, is at a_i^2 = s_i. Those are the units for principal components.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from skdp._counted import count_rows, counts_of, hidden_count
from skdp._export import TwinMixin
from skdp._gate import Doubts, open_gate
from skdp._plan import PlanMixin
from skdp._rows.base import ball_constraint, empty_rows, row_major, row_norms, sum_over
from skdp._rows.linear import LinearChunk, StandardColumns, usable_norms
from skdp._typing import Adjacency
from skdp.linear_model._scales import plan_scales, say_of_far, say_of_scales
from skdp.location._clipped_mean import ClippedRowSum
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import GaussianMechanism, LaplaceMechanism
from skdp.privacy.laws.calibration import gdp_mu, mu_beside, mu_of_all
from skdp.privacy.laws.k_norm import KNormMechanism

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

        That of l1 is the root of the number of coordinates times that.

        Proof. The Frobenius norm of v v' is ``|v|^2 <= R``. For two rows with v and u it is
        ``|v v' - u u'|^2 = |v|^4 + |u|^4 - 2 <v, u>^2 <= 2 R^2``. A unit row attains the first. Two
        unit rows with the inner product ``-constant^2``, which is at least -1, have <v, u> = 0 and
        attain the second; with one column there are none, and the bound is not tight. A group
        contributes a mean of such matrices, and of zero, if its weights add up to at most 1: the
        farthest two points of a convex hull are two of its corners. In l1 by Cauchy and Schwarz.
        """
        if adjacency == "zero-out":
            reach, theorem = self.reach, "r^2 <= R for the products of a row of length r"
        else:
            reach, theorem = math.sqrt(2.0) * self.reach, "r^4 + s^4 - 2 <v, u>^2 <= 2 R^2"
        bound = float(n_rows) * self.reach
        l1 = math.sqrt(self.size) * reach
        return Sensitivity(l1=l1, l2=reach, bound=bound, theorem=theorem)

    def partial(self, chunk):
        """Return the sum of whole products v v' of a chunk, flattened."""
        rows, short, there = shortened(chunk, self.radius)
        with np.errstate(under="ignore"):
            # one array on both sides: half the work, and symmetric to the last bit
            products = rows.T.dot(rows)
        products = products.toarray() if sparse.issparse(products) else products
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


def shortened(chunk, radius):
    """Return the rows of a chunk in a unit of length, at most 1 long, times the roots of weights.

    Parameters
    ----------
    chunk : LinearChunk
        Without an intercept.
    radius : float
        The unit of length.

    Returns
    -------
    rows : ndarray or CSR array of shape (n_rows, n_features)
        A copy; null rows are 0.
    short, there : ndarray of shape (n_rows,)
        What rows in units were multiplied by; and 1 or the root of their weight, 0 for null rows.
    """
    X, weight = chunk.X, np.where(np.isinf(chunk.norm), 0.0, chunk.factor / radius)
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
        else:
            rows = row_major(X) * weight[:, None]
            length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
            short = there / np.maximum(length, 1.0)
            rows *= short[:, None]
    return rows, short, there


#: what the squared length of a row counts beside its products with a basis
_LENGTH_COUNTS = 0.25


@dataclass(frozen=True, eq=False)
class BasisProducts:
    """Sum over rows of v v' Q and of the squared length of v, v being a row of the unit ball.

    Parameters
    ----------
    basis : ndarray of shape (n_features, n_columns)
        Q, with orthonormal columns; public.
    radius : float
        As that of `RowProducts`.
    """

    basis: Any
    radius: float

    #: what the statistic is
    name = "sum of products of rows with a basis"

    @property
    def size(self):
        """Number of coordinates."""
        return self.basis.size + 1

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: sqrt(1 + 1/16) (zero-out) or sqrt(2) (replace-one).

        That of l1 is the root of the number of coordinates times that.

        Proof. The norm of Q is 1, so that the Frobenius norm of ``A Q`` is at most that of A. For
        two rows with v and u of the squared lengths a and b, both at most 1, that of v v' is a, and
        ``|v v' - u u'|^2 = a^2 + b^2 - 2 <v, u>^2``. The squared length counts a quarter:
        ``a^2 + b^2 + (a - b)^2 / 16`` is convex in a and in b, at the corners at most 2, and
        ``1 + 1/16`` for b = 0. Unit rows in the span of Q, at right angles, attain both. For groups
        as for `RowProducts`.
        """
        if adjacency == "zero-out":
            reach, theorem = math.hypot(1.0, _LENGTH_COUNTS), "|v v'|^2 + |v|^4 / 16 <= 17/16"
        else:
            reach, theorem = math.sqrt(2.0), "a^2 + b^2 + (a - b)^2 / 16 <= 2"
        l1 = math.sqrt(self.size) * reach
        return Sensitivity(l1=l1, l2=reach, bound=float(n_rows), theorem=theorem)

    def partial(self, chunk):
        """Return the sum of a chunk."""
        rows, _, _ = shortened(chunk, self.radius)
        with np.errstate(under="ignore"):
            products = rows.T.dot(rows.dot(self.basis))
            values = rows.data if sparse.issparse(rows) else rows.ravel()
            return np.append(products.ravel(), _LENGTH_COUNTS * values.dot(values))

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (size,)."""
        return sum_over(rows, self.partial, self.size)

    def products(self, released):
        """Return the products with the basis, of its shape, from a released vector."""
        return released[:-1].reshape(self.basis.shape)

    def squared_length(self, released):
        """Return the sum of squared lengths of rows from a released vector."""
        return released[-1] / _LENGTH_COUNTS


@dataclass(frozen=True)
class ColumnSquares:
    """Sum of the squares of every column over rows of the unit ball.

    Parameters
    ----------
    n_features : int
        Number of columns.
    radius : float
        As that of `RowProducts`.
    """

    n_features: int
    radius: float

    #: what the statistic is
    name = "sum of squares of columns"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_features

    def sensitivity(self, adjacency, n_rows):
        """State the sensitivities: 1 (zero-out); 2 in l1 and sqrt(2) in l2 (replace-one).

        Proof. Squares are not negative, and those of a row add up to at most 1; so do the squares
        of these. Two such vectors a and b are at most 2 apart in l1, and as <a, b> is not negative,
        ``|a - b|^2 <= |a|^2 + |b|^2 <= 2``. Rows with one entry each, of length 1, in two columns,
        attain all. For groups as for `RowProducts`.
        """
        if adjacency == "zero-out":
            l1, l2, theorem = 1.0, 1.0, "squares of a row of the unit ball add up to <= 1"
        else:
            l1, l2, theorem = 2.0, math.sqrt(2.0), "|a - b|^2 <= |a|^2 + |b|^2 for a, b >= 0"
        return Sensitivity(l1=l1, l2=l2, bound=float(n_rows), theorem=theorem)

    def partial(self, chunk):
        """Return the sums of a chunk."""
        rows, _, _ = shortened(chunk, self.radius)
        with np.errstate(under="ignore"):
            if sparse.issparse(rows):
                return np.bincount(rows.indices, rows.data**2, self.n_features)
            return np.einsum("ij,ij->j", rows, rows)

    def evaluate(self, rows):
        """Return the sums over all rows, an array of shape (size,)."""
        return sum_over(rows, self.partial, self.size)


# The noise: Gaussian, or purely private.

# a draw of K-norm noise is one vector, and slow for more coordinates than that; its deviation is
# sqrt(2) times less than that of Laplace noise
_LONGEST_DRAW = 2**15


def law_of(price, pure, size):
    """Return the law of a release of that many coordinates.

    Parameters
    ----------
    price : float
        Gaussian-DP parameter, or epsilon with `pure`.
    pure : bool
        Whether there is no delta.
    size : int
        Number of coordinates.
    """
    if not pure:
        return GaussianMechanism(price)
    return KNormMechanism(price) if size <= _LONGEST_DRAW else LaplaceMechanism(price)


def deviation_of(noise, size):
    """Return the standard deviation of every coordinate of a release.

    K-norm noise of scale s is s R G / |G|, R being a sum of `size` exponential variables: the mean
    of its squared length is s^2 size (size + 1).
    """
    factor = {"gaussian": 1.0, "laplace": math.sqrt(2.0), "k-norm": math.sqrt(size + 1.0)}
    return noise.scale * factor[noise.law]


def expected_deviation(sensitivity, price, pure, size):
    """Return about what `deviation_of` says of a release to be made; from public numbers."""
    law = law_of(price, pure, size)
    return deviation_of(law.calibrate(sensitivity, size), size)


# The units of the columns, and how long rows may be.

#: the constant: at 1/2 the noise of means and that of products are in balance, for rows that were
#: centered
CONSTANT = 0.5
# length to which rows are cut, in units of what a quarter of them exceed: so many times that power
# of the relative noise, between two limits, by experiments; shorter where only directions matter
_TIMES, _POWER, _LENGTHS, _SHORTER = 0.8, -0.2, (1.25, 4.0), 0.7
# and the same for a regression: what is cut keeps its equation
_TIMES_LINE, _POWER_LINE, _SHORTEST_LINE = 0.53, -0.29, 0.6
# the mean of the rows is released first if the eigenvalues of the noise are at most that part of
# their squared length. It takes that part of the budget, from rows cut to that length, in units of
# what a quarter of them exceed
_CLEAR_ENOUGH, _MEAN_SHARE, _MEAN_LENGTH = 0.08, 0.1, 1.25


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


@dataclass(frozen=True, eq=False)
class KnownUnits:
    """Units that are public: nothing is searched.

    Parameters
    ----------
    units : ColumnUnits
        The units.
    price : float
        What the products may cost: a Gaussian-DP parameter, or epsilon.
    move : callable
        Maps a chunk of admitted rows to the units.
    stretch : float or ndarray of shape (n_features,), default=1.0
        How many times longer than others columns are in the units.
    """

    units: ColumnUnits
    price: float
    move: Callable[[Any], Any] | None = None
    stretch: Any = 1.0

    n_releases = 0
    #: whether something should have been searched
    is_missing = False

    def run(self, curator, given=None):
        """Bring the rows to the units; parameters and result are those of `UnitsPlan.run`."""
        if self.move is not None:
            curator.map_rows(lambda rows: rows.mapped(self.move))
        return self.units, None, False


# root mean squares of spreads that were found, in units that are given, are taken to be in between
_SPREADS = (0.25, 2.0)


@dataclass(frozen=True)
class UnitsPlan:
    """How units are found; public numbers only.

    Parameters
    ----------
    n_features : int
        Number of columns.
    columns, length : SearchedScales or ScalesPlan
        Searches for origins and spreads of columns, and for a length that a quarter of the rows
        exceed.
    power : float
        Units are that power of the spreads: 1 standardises columns.
    price : float
        What is left for the products: a Gaussian-DP parameter, or epsilon.
    longest : float
        Length to which rows are cut, in units of what a quarter of them exceed.
    first : SearchedScales or ScalesPlan, default=None
        Search for a length around the origin, before the mean of the rows is released; None for
        no mean.
    mean_law : Law, default=None
        Of the mean.
    stretch : float or ndarray of shape (n_features,), default=1.0
        As that of `KnownUnits`.
    look : float, default=0.0
        Gaussian-DP parameter of a release after the products; 0 for none.
    """

    n_features: int
    columns: Any
    length: Any
    power: float
    price: float
    longest: float
    first: Any = None
    mean_law: Any = None
    stretch: Any = 1.0
    look: float = 0.0

    @property
    def searches(self):
        """All searches."""
        return [self.columns, self.length] + [self.first] * (self.first is not None)

    @property
    def n_releases(self):
        """Number of releases."""
        after = (self.first is not None) + bool(self.look)
        return sum(one.n_releases for one in self.searches) + after

    @property
    def is_missing(self):
        """Whether there are too few rows for any search."""
        return not self.length.n_releases

    def run(self, curator, given=None):
        """Search the units.

        Parameters
        ----------
        curator : Curator
            Holds rows of any length; rows in the new units when this returns.
        given : ndarray of shape (n_features,) or None
            Units of columns that are known, around 0; NaN for the others. What is far from the
            spreads that were found is brought nearer to them.

        Returns
        -------
        units : ColumnUnits
            The units.
        columns : StandardColumns or None
            Origins and spreads that were found.
        vague : bool
            Whether the released counts leave a scale open.
        """
        n_features = self.n_features
        center, spread = np.zeros(n_features), np.ones(n_features)
        columns = self.columns.run(curator, 1.0, 0.0, 1.0).columns
        if columns is not None:
            center, spread = np.asarray(columns.center), np.asarray(columns.scale)
        if self.first is not None:
            center = self._mean(curator)
            move_rows(curator, spread, -center)
        unit = spread**self.power * math.exp(float(np.log(spread).mean())) ** (1 - self.power)
        origin = center
        if given is not None:
            known = ~np.isnan(given)
            origin = np.where(known, 0.0, center)
            if columns is not None and known.any():
                # columns far beyond their unit hide the others, and noise hides those far below it
                found = math.sqrt(np.mean((spread[known] / given[known]) ** 2))
                given = given * (found / min(max(found, _SPREADS[0]), _SPREADS[1]))
            unit = np.where(known, given, unit)
        unit = unit / self.stretch
        move = {"weight": spread / unit, "shift": (center - origin) / unit}
        if (move["weight"] != 1).any() or move["shift"].any():
            move_rows(curator, **move)
        usual = float(np.linalg.norm(np.broadcast_to(self.stretch, n_features)))
        found = self.length.run(curator, usual, 0.0, 1.0)
        return ColumnUnits(origin, unit, self.longest * found.radius), columns, found.vague

    def _mean(self, curator):
        """Release the mean of the rows, at a rough length."""
        n_features = self.n_features
        radius = self.first.run(curator, math.sqrt(n_features), 0.0, 1.0).radius
        length = _MEAN_LENGTH * radius
        return mean_of_rows(curator, n_features, self.length.n_rows, length, self.mean_law)


def mean_of_rows(curator, n_features, n_rows, length, law):
    """Release the mean of rows, longer ones shortened, nearer to 0 by what noise adds.

    Parameters
    ----------
    curator : Curator
        Holds the rows.
    n_features, n_rows : int
        Their shape; public.
    length : float
        Length to which they are cut.
    law : Law
        Of the release.
    """
    total = curator.release(ClippedRowSum(n_features, length), law)
    noise = curator.ledger.releases[-1].noise
    mean, added = total / n_rows, deviation_of(noise, n_features) / n_rows
    kept = 1 - n_features * added**2 / max(float(mean @ mean), 1e-300)
    return ball_constraint(mean * max(0.0, kept), length)


def plan_units(
    epsilon,
    delta,
    *,
    n_rows,
    n_features,
    adjacency,
    by_column,
    around_mean,
    centered,
    power,
    n_targets=0,
):
    """Plan the search for units, from public facts.

    Parameters
    ----------
    epsilon, delta : float
        Budget of the whole fit.
    n_rows, n_features : int
        Shape of the data.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    by_column : bool
        Whether origins and spreads of columns may be searched.
    around_mean : bool
        Whether the mean may be released first, where columns are not searched.
    centered : bool
        Whether the mean of the rows is known to be 0.
    power : float
        As that of `UnitsPlan`.
    n_targets : int, default=0
        Number of columns, the last ones, that are targets of a regression.

    Returns
    -------
    plan : UnitsPlan
        With no release, where there are too few rows.
    """
    shape: dict[str, Any] = {
        "n_rows": n_rows,
        "adjacency": adjacency,
        "with_scale": False,
        "with_center": not centered,
    }
    columns, length = (
        plan_scales(epsilon, delta, with_radius=r, n_columns=d, medians_first=not r, **shape)
        for r, d in ((False, n_features if by_column else 0), (True, 0))
    )
    price = left_of(epsilon, delta, columns, length)
    edge = noise_in_rows(n_features, n_rows, adjacency, price, not delta)
    # of the variance of one direction
    part, stretch = n_features * edge, 1.0
    least = _LENGTHS[0] if power == 1 else _SHORTER
    longest = min(max(_TIMES * part**_POWER, least), _LENGTHS[1])
    if n_targets:
        longest, stretch = plan_lengths(n_features - n_targets, n_targets, part)
    plan = UnitsPlan(n_features, columns, length, power, price, longest, stretch=stretch)
    searched = length.n_releases and not columns.n_releases
    if not (around_mean and searched and not centered and edge < _CLEAR_ENOUGH):
        return plan
    # a rough length will do
    first = replace(length, unit=length.unit / 2) if delta else length
    mean = math.sqrt(_MEAN_SHARE) * gdp_mu(epsilon, delta) if delta else _MEAN_SHARE * epsilon
    price = left_of(epsilon, delta, columns, length, first, mean=mean)
    return replace(plan, price=price, first=first, mean_law=law_of(mean, not delta, n_features))


def noise_in_rows(n_columns, n_rows, adjacency, price, pure):
    """Return the largest eigenvalue of the noise, in parts of the squared length of rows."""
    query = RowProducts(n_columns, 1.0, CONSTANT)
    stated = query.sensitivity(adjacency, n_rows)
    deviation = expected_deviation(stated, price, pure, query.size) / n_rows
    return deviation * math.sqrt(2 * n_columns)


def plan_lengths(n_features, n_targets, part):
    """Plan how rows of features and targets are cut, and how much targets count in their length.

    Parameters
    ----------
    n_features, n_targets : int
        Numbers of columns.
    part : float
        The largest eigenvalue of the noise, in parts of the variance of one direction.

    Returns
    -------
    longest : float
        As that of `UnitsPlan`.
    stretch : ndarray of shape (n_features + n_targets,)
        As that of `KnownUnits`. Where noise hides the products of the features those with the
        targets are all that is left: they are largest, and cut least, if targets are as long as
        features together.
    """
    longest = min(_TIMES * part**_POWER, _TIMES_LINE * part**_POWER_LINE, _LENGTHS[1])
    longest = max(longest, _SHORTEST_LINE)
    heavy = max(1.0, min(math.sqrt(2.0 * part), math.sqrt(n_features / n_targets)))
    return longest, np.append(np.ones(n_features), np.full(n_targets, heavy))


def left_of(epsilon, delta, *searches, mean=0.0):
    """Return what searches, and the release of a mean, leave of a budget for the products."""
    if delta:
        return mu_beside(
            epsilon, delta, (), math.hypot(mean, *(one.mu for one in searches)) * (1 + 1e-9)
        )
    prices = [price for one in searches for price in one.prices]
    return (epsilon - math.fsum([*prices, mean])) * (1 - 1e-9)


def move_rows(curator, weight, shift):
    """Have a curator multiply the columns of its rows by public numbers, and shift them."""
    curator.map_rows(lambda rows: rows.mapped(partial(moved, weight=weight, shift=shift)))


def moved(chunk, weight, shift):
    """Return one chunk of rows whose columns are mapped by public numbers; sparse without shift."""
    with np.errstate(under="ignore", over="ignore"):
        if sparse.issparse(chunk.X):
            body = sparse.csr_array(chunk.X, dtype=np.float64, copy=True)
            body.data *= weight[body.indices]
        else:
            body = empty_rows(chunk.X.shape)
            np.multiply(row_major(chunk.X), weight, out=body)
            body += shift
    return _with_rows(chunk, body)


def some_columns(chunk, where):
    """Return one chunk of sparse rows with some of their columns alone."""
    body = sparse.csr_array(chunk.X)[:, where]
    rest = chunk.intercept, chunk.lift, chunk.drawn, chunk.weight
    return LinearChunk(body, chunk.factor, chunk.norm, chunk.target, *rest)


def boxed(chunk, box):
    """Return one chunk of dense rows, clipped into a box and mapped to [-1, 1]."""
    body = empty_rows(chunk.X.shape)
    body[:] = box.to_unit(row_major(chunk.X))
    return _with_rows(chunk, body)


def _with_rows(chunk, body):
    """Return a chunk whose factors are 1 with other rows, and their norms."""
    norm = usable_norms(row_norms(body), np.isinf(chunk.norm))
    rest = chunk.intercept, chunk.lift, chunk.drawn, chunk.weight
    return LinearChunk(body, chunk.factor, norm, chunk.target, *rest)


# The fit: units, then products.


#: matrices with more columns are not made
MOST_COLUMNS = 8192


def check_size(estimator, n_columns, instead):
    """Raise a ValueError if a matrix of the products of so many columns would be too large.

    Parameters
    ----------
    estimator : estimator
        Named in the message.
    n_columns : int
        How many there are.
    instead : str
        What else can be done.
    """
    if n_columns > MOST_COLUMNS:
        raise ValueError(
            f"{type(estimator).__name__} makes matrices of all products of columns, for at most "
            f"{MOST_COLUMNS} of them; got {n_columns}. {instead}"
        )


class MomentEstimator(TwinMixin, PlanMixin, BaseEstimator):
    """Base of estimators of second moments: the way of their rows through the gate."""

    ledger_: Ledger
    privacy_spent_: tuple[float, float]
    epsilon: float
    delta: float
    adjacency: Adjacency
    n_features_in_: int

    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}

    def _measured(
        self, X, admit, planned, then, *, groups, sample_weight, wanted, given=None, n_releases=1
    ):
        """Plan the releases, open the gate, find units, and release the rest in them.

        Parameters
        ----------
        X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
            Validated.
        admit : callable
            Returns the rows that the curator holds, from the plan of the units and what rows count.
        planned : callable
            Returns the plan of the units for a number of rows; what it refuses is refused before
            anything is charged.
        then : callable
            Releases what the estimator is made of and sets its attributes: takes a `Setting`.
        groups, sample_weight : array-like or None
            As for `fit`.
        wanted : list of str
            Parameters that could have given what is searched.
        given : ndarray or None
            As for `UnitsPlan.run`.
        n_releases : int, default=1
            Number of releases besides those of units.
        """
        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta)
        (n_rows, unit), whose = count_rows(groups, X, hidden_count(self), sample_weight, planned)
        plan, doubts = planned(n_rows), Doubts(self)
        with open_gate(
            self,
            lambda: admit(plan, counts_of(whose)),
            n_rows=n_rows,
            unit=unit,
            delta=delta,
            mu=mu_of_all(epsilon, delta) if delta else None,
            n_releases=n_releases + plan.n_releases,
            doubts=doubts,
        ) as curator:
            units, columns, vague = plan.run(curator, given)
            say_of_scales(doubts, wanted, n_rows, epsilon, missing=plan.is_missing, vague=vague)
            far, target = columns, 1.0
            if columns is not None:
                # targets stand behind the columns
                d = self.n_features_in_
                target = float(np.max(columns.scale[d:], initial=1.0, where=columns.seen[d:]))
                parts = (part[:d] for part in (columns.center, columns.scale, columns.seen))
                far = StandardColumns(*parts)
            say_of_far(doubts, 1.0, target, far)
            then(Setting(curator, units, columns, plan, n_rows, not delta, doubts))


@dataclass(frozen=True, eq=False)
class Setting:
    """What a fit has come to when the rows are in their units.

    Parameters
    ----------
    curator : Curator
        Holds the rows, in their units.
    units : ColumnUnits
        The units.
    columns : StandardColumns or None
        Origins and spreads that were found.
    plan : KnownUnits or UnitsPlan
        How the units were found, and what is left to be spent.
    n_rows : int
        Number of rows.
    pure : bool
        Whether there is no delta.
    doubts : Doubts
        Takes notes of what is doubtful.
    """

    curator: Any
    units: ColumnUnits
    columns: Any
    plan: Any
    n_rows: int
    pure: bool
    doubts: Doubts

    def law(self, size, share=1.0, concentrated=False):
        """Return the law of a release of so many coordinates for a share of what is left.

        Where a row moves few coordinates, and sensitivities are alike in l1 and in l2, noise
        without a delta is Laplace noise.
        """
        price = self.plan.price * (share if self.pure else math.sqrt(share))
        if self.pure and concentrated:
            return LaplaceMechanism(price)
        return law_of(price, self.pure, size)

    def release(self, query, share=1.0, **concentrated):
        """Return a release for a share of what is left, and the deviation of its noise."""
        law = self.law(query.size, share, **concentrated)
        released = self.curator.release(query, law)
        return released, deviation_of(self.curator.ledger.releases[-1].noise, query.size)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Gradient perturbation in a released geometry: second moments once, then few steps.

A first-order method ignores the covariance of the rows: after few steps it has made little
progress along directions of small variance, and wastes steps along the others. So one release, for
a part of the budget, has the sum of the rows and the sum of their outer products. Corrected for
the noise, it estimates the mean and covariance of the rows. Rows are mapped by a negative power of
that covariance. Gradients of mapped rows are clipped and released.

The noise alone determines how much of the geometry is used. With less and less noise, the rows
stay unchanged, are centered, have their columns scaled, and have their directions scaled.
Everything after the first release is a function of released numbers.
"""

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._rows.base import ball_constraint, empty_rows, row_major, sum_over
from skdp._rows.columns import mapped_rows
from skdp._rows.linear import counted_rows, counts_parts
from skdp._rows.streams import LARGE
from skdp._sklearn import Interval
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.privacy.laws.calibration import mu_beside
from skdp.solvers.base import LARGEST_COEF, Fit, Solver
from skdp.solvers.gradient import NEVER_PURE, ClippedGradient, StepSize
from skdp.solvers.link import believed, believed_classes


class Preconditioned(Solver):
    """Noisy gradients of all rows, in a geometry released first.

    The default with delta greater than 0, except for very little signal in dense rows or in more
    than two classes. It suits correlated columns, columns on different scales, rows far from the
    origin, and few passes.

    Parameters
    ----------
    moments_share : float, default=0.15
        Share of the squared Gaussian-DP budget for the second moments, less than a half.
    sparsity : int, default=None
        Public bound on the number of non-zero features of a row; rows with more keep their largest
        entries. None: no bound.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of the length of a typical row in the
        geometry. A small value takes a smaller share of the clipped gradient. None is 0.3.

    See Also
    --------
    Accelerated : Steps in the geometry of the rows as they are.

    Notes
    -----
    For classification, and for regression without a `clipping_norm`. Targets of a regression are
    assumed to have about length 1 in units of `target_scale_`; its clipping norms grow with the
    square root of the signal. If `intercept_scaling` is None, `coef_bound` counts the intercept
    with the default of the other solvers.

    One release has the sums of x and x x', or of x and its squares with more than 1,000 columns
    (128 for CSR rows); for classes also the number of rows with a known label. Directions of the
    estimated covariance that may be noise are dropped. A row is mapped to ``A (x - m)``, with the
    estimated mean m, and A a power of the estimated covariance between -1/4 (little signal) and
    -1/2. The gradient of the mapped row is clipped, and 40 accelerated steps follow noisy sums of
    these gradients. For a loss with kinks the steps are plain; the noise determines their length,
    and released gradients may shorten them. The later half of the iterates is averaged. In the
    moments of a regression, rows longer than 2 `data_norm_` are clipped to that length.

    If only squares were released, the coefficients of logistic regression are multiplied by one
    number at the end, computed from the known noise of the steps. Then that noise has a standard
    deviation of at most 1 in the log-odds of a typical row, and less with little signal. Decisions
    and the order of rows do not change. With products and no `coef_bound`, released gradients show
    the difference between predicted log-odds and labels: the coefficients are multiplied by a
    number of at most 1, and the intercepts follow the shares of the classes (:ref:`how
    <believed-odds>`).

    Dense rows in memory are copied once, in double precision, if that takes less than 256 MiB.

    Two classes and the logistic loss need fewer steps, at the same price. With products there are
    24, whose length along each direction follows from its estimated variance and the noise, or 16
    if the released moments show about the same variance of mapped rows along all directions. With
    squares only there are 12, if there is little signal in each column. `max_iter` fixes the
    number.

    References
    ----------
    .. [1] C. Dwork, K. Talwar, A. Thakurta and L. Zhang, "Analyze Gauss: optimal bounds for
       privacy-preserving principal component analysis", STOC 2014.
    .. [2] O. Ledoit and M. Wolf, "A well-conditioned estimator for large-dimensional covariance
       matrices", Journal of Multivariate Analysis, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, solvers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2)) * [0.7, 0.07]
    >>> y = X[:, 0] + 10 * X[:, 1] > 0
    >>> model = DPLogisticRegression(
    ...     solver=solvers.Preconditioned(), classes=[False, True], random_state=0
    ... )
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    word = "preconditioned"
    takes_groups = True
    needs_delta = NEVER_PURE
    unused = {
        "clipping_norm": "it chooses the norm in its geometry",
    }

    _parameter_constraints = {
        **Solver._parameter_constraints,
        "moments_share": [Interval(Real, 0, 0.5, closed="neither")],
    }

    def __init__(
        self,
        *,
        moments_share: float = 0.15,
        sparsity: int | None = None,
        intercept_scaling: float | None = None,
    ) -> None:
        self.moments_share = moments_share
        self.sparsity = sparsity
        self.intercept_scaling = intercept_scaling

    def plan(self, problem: Any) -> Fit:
        """Plan the moments and the steps from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : PreconditionedFit
            The plan.
        """
        moments = math.sqrt(self.moments_share) * problem.mu
        priced = tuple(epsilon for epsilon, _, _ in problem.priced)
        # a hair more than the ledger will hold
        spent = math.hypot(problem.scale_mu, moments) * (1 + 1e-9)
        full = problem.n_features <= _MOST_COLUMNS[problem.is_sparse]
        fewer = problem.max_iter is None and isinstance(problem.pointwise, LogisticLoss)
        most = _OWN if fewer and full else _MANY
        return PreconditionedFit(
            problem=problem,
            moments=SecondMoments(
                problem.n_features,
                full=full,
                radius=min(problem.longest_row, _LONGEST_MOMENT),
                counted=_COUNTED.get(problem.adjacency, 0.0) if problem.has_labels else 0.0,
            ),
            mu_moments=moments,
            mu=mu_beside(problem.epsilon, problem.delta, priced, spent),
            n_iter=problem.max_iter or most[0],
            intercept=self.intercept_scaling or _INTERCEPT,
            at_most=fewer,
        )


# The second moments of the rows.

# a mean square of lengths counts as 0 within so many deviations of its noise, if that is small
# enough to show rows of a quarter of the norm; and a square of the mean is surely as long as that
# many deviations below what was released
_NOTHING, _LITTLE = 3.0, 0.06
# length to which the second moments cut rows, in units of length of the rows
_LONGEST_MOMENT = 2.0
# what a row with a known label adds to their number: free under replace-one if its square is at
# most 5/2, since a null row is nearer than another row may be; .12 % of the squared budget of a fit
# under zero-out
_COUNTED, _FREE = {"replace-one": 1.5, "zero-out": 0.125}, 2.5
# with more columns of dense rows, and of CSR rows, squares are released and no products: those of
# CSR rows take long, and gain nothing
_MOST_COLUMNS = (1000, 128)


@dataclass(frozen=True)
class SecondMoments:
    """Sum over rows x in the unit ball of x and x x', or of x and its squares; and their number.

    Parameters
    ----------
    n_features : int
        Dimension d.
    full : bool
        Whether it has all products, or only the squares.
    radius : float, default=1.0
        Unit of length of rows; longer rows are clipped to it.
    counted : float, default=0.0
        What a row that is not null contributes to a last coordinate; 0 for none.

    Notes
    -----
    The coordinates are x, then the upper triangle of x x' by rows, with entries off the diagonal
    multiplied by sqrt(2): their Euclidean norm is the Frobenius norm of x x'. A constant feature
    of the rows is excluded; a null row contributes nothing.
    """

    n_features: int
    full: bool
    radius: float = 1.0
    counted: float = 0.0

    @property
    def name(self):
        """Name of the statistic."""
        number = ", number of rows" * bool(self.counted)
        return f"sum of rows and of their {'products' if self.full else 'squares'}{number}"

    @property
    def size(self):
        """Number of coordinates."""
        d = self.n_features
        return d + (d * (d + 1) // 2 if self.full else d) + bool(self.counted)

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: sqrt(2 + c^2) (zero-out) or 3 / sqrt(2) (replace-one).

        Proof. A row of norm r contributes a vector of squared norm ``r^2 + r^4 <= 2``: the
        Frobenius norm of x x' is r^2. Two rows of norms r and s and inner product t have
        contributions at the squared distance ``r^2 + s^2 - 2 t + r^4 + s^4 - 2 t^2``, which is at
        most ``4 - 2 t - 2 t^2 <= 9/2``. Zero-out is attained by a unit row, replace-one by two
        unit rows at an angle of 120 degrees, where t = -1/2. Without the products
        contributions lose coordinates, and distances do not grow; both are still attained, the
        second by such rows of a plane of two coordinates that lie on both sides of its diagonal.
        Every row adds c = `counted` to the count, and a null row 0: beside it a row is at the
        squared distance ``2 + c^2`` at most. Above 9/2 that is the sensitivity under replace-one.
        A group contributes a mean of such vectors, and of zero, if its weights add up to at most 1:
        the farthest two points of a convex hull are two of its corners.
        """
        beside_null = math.sqrt(2.0 + self.counted**2)
        if adjacency == "zero-out" or self.counted**2 > _FREE:
            reach, theorem = beside_null, "r^2 + r^4 + c^2 <= 2 + c^2 for a row of length r <= 1"
        else:
            reach, theorem = 3 / math.sqrt(2.0), "4 - 2 <x, u> - 2 <x, u>^2 <= 9/2"
        bound = n_rows * max(1.0, self.counted)
        return Sensitivity(l1=math.inf, l2=reach, bound=bound, theorem=theorem)

    def partial(self, chunk):
        """Return the sums of a chunk: of the rows, of their products or squares, and the count."""
        count = [self.counted * counted_rows(chunk).sum()] if self.counted else []
        X, weight = chunk.X, np.where(np.isinf(chunk.norm), 0.0, chunk.factor / self.radius)
        with np.errstate(under="ignore"):
            if sparse.issparse(X) and self.full:
                # few columns: a chunk, in the one layout that products are made in
                X = X.toarray(out=empty_rows(X.shape))
            if sparse.issparse(X):
                squares = sparse.csr_array((X.data * X.data, X.indices, X.indptr), shape=X.shape)
                if self.radius != 1:
                    length = np.sqrt(squares.dot(np.ones(X.shape[1]))) * weight
                    weight = weight / np.maximum(length, 1.0)
                part = weight if chunk.weight is None else weight * chunk.weight
                return np.concatenate([X.T.dot(part), squares.T.dot(part * weight), count])
            rows = row_major(X) * weight[:, None]
            if self.radius != 1:
                length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
                rows /= np.maximum(length, 1.0)[:, None]
            total = rows.sum(axis=0) if chunk.weight is None else chunk.weight @ rows
            if counts_parts(chunk):
                rows *= np.sqrt(chunk.weight)[:, None]
            # one array on both sides: half the work, and symmetric to the last bit
            products = rows.T.dot(rows) if self.full else np.einsum("ij,ij->j", rows, rows)
        return np.concatenate([total, products.ravel(), count])

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (size,)."""
        d = self.n_features
        end = d + (d * d if self.full else d)
        total = sum_over(rows, self.partial, end + bool(self.counted))
        if not self.full:
            return total
        upper = np.triu_indices(d)
        products = total[d:end].reshape(d, d)[upper]
        products[upper[0] != upper[1]] *= math.sqrt(2.0)
        return np.concatenate([total[:d], products, total[end:]])

    def matrices(self, released):
        """Return the sum and the products (or squares) of a released vector.

        Parameters
        ----------
        released : ndarray of shape (size,)
            With noise.

        Returns
        -------
        total, products : ndarray of shape (d,), ndarray of shape (d, d) or (d,)
            Symmetric.
        """
        d = self.n_features
        released = released[: len(released) - bool(self.counted)]
        if not self.full:
            return released[:d], released[d:]
        upper = np.triu_indices(d)
        products = np.zeros((d, d))
        products[upper] = released[d:]
        # half of what is off the diagonal, and half of the diagonal, on either side
        products[upper] *= np.where(upper[0] == upper[1], 0.5, math.sqrt(0.5))
        return released[:d], products + products.T


# The geometry: what is left of the moments when the noise is taken off.
#
# With s the deviation of the noise, n rows and d columns, s / n is that of one mean. A mean is
# shrunk by James and Stein; variances of columns towards their mean, by how much more they spread
# than their noise does (Ledoit and Wolf); of the products, eigenvalues within the edge of the
# spectrum of the noise, s sqrt(2 d) / n for symmetric noise, are dropped, and the others are shrunk
# by what noise adds to them. Constants were chosen on data (benchmarks/accuracy.py has the
# outcome); nothing in them bears on privacy.

# the least trace of a covariance, and variance of a direction, in parts of the mean variance
_LEAST_TRACE, _LEAST_VARIANCE = 0.02, 0.01
# variance of a column, in parts of the mean, that is believed without and with signal
_FLOOR, _SURE_FLOOR = 0.25, 0.02


@dataclass(frozen=True, eq=False)
class Spread:
    """Mean and covariance of the rows, from released moments.

    Parameters
    ----------
    center : ndarray of shape (d,)
        Estimated mean.
    variance, sure : ndarray of shape (d,)
        Estimated variances of the directions, and variances that are not too small because of
        noise.
    directions : ndarray of shape (d, d) or None
        Orthonormal columns; None if only squares were released.
    turned : bool
        Whether the directions differ from the columns of the data.
    square : float
        Mean square of the lengths of rows, with its noise.
    """

    center: Any
    variance: Any
    sure: Any
    directions: Any
    turned: bool
    square: float

    def matrix(self, values):
        """Return the matrix with these eigenvalues, or its diagonal if it is diagonal."""
        if self.directions is None:
            return values
        made = (self.directions * values) @ self.directions.T
        # rows are scaled then, which takes less than a product
        return made if self.turned else made.diagonal()


def variances_without_noise(column, mean, noise):
    """Return variances of columns around a mean, shrunk to it the more they look like noise."""
    kept = max(0.0, 1.0 - noise * noise / max(column.var(), 1e-300))
    floor = _FLOOR * (1 - kept) + _SURE_FLOOR * kept
    return np.maximum(mean + kept * (column - column.mean()), floor * mean)


def spectrum_without_noise(products, column, edge):
    """Return eigenvalues and directions of products with a new diagonal, and a flag for change."""
    products = products.copy()
    np.fill_diagonal(products, 0.0)
    values, vectors = np.linalg.eigh(products)
    seen = np.abs(values) > 1.05 * edge
    vectors, values = vectors[:, seen], values[seen]
    values = (values + np.sign(values) * np.sqrt(values**2 - edge**2)) / 2
    return *np.linalg.eigh(np.diag(column) + (vectors * values) @ vectors.T), bool(seen.any())


def estimated_spread(moments, released, n_rows, noise, centered):
    """Return the mean and covariance of the rows from released moments, corrected for noise.

    Parameters
    ----------
    moments : SecondMoments
        What was released.
    released : ndarray of shape (size,)
        The sums, with noise.
    n_rows : int
        Number of rows.
    noise : float
        Standard deviation of the noise.
    centered : bool
        Whether rows may be centered; only with an intercept.

    Returns
    -------
    spread : Spread
        Public.
    """
    d, one = moments.n_features, noise / n_rows
    total, products = moments.matrices(released / n_rows)
    center = np.zeros(d)
    if centered:
        center = ball_constraint(total, 1.0)
        center = center * max(0.0, 1.0 - d * one * one / max(center @ center, 1e-300))
    squares = products.diagonal() if moments.full else products
    column = squares - center * center
    # rows are in the unit ball
    trace = max(1.0 - center @ center, _LEAST_TRACE)
    trace = min(max(column.sum(), one * math.sqrt(d), _LEAST_TRACE), trace)
    mean = trace / d
    column = variances_without_noise(column, mean, one)
    variance, directions, seen, least = column, None, False, 0.5 * one
    if moments.full:
        edge = one * math.sqrt(2 * d)
        products = products - np.multiply.outer(center, center)
        variance, directions, seen = spectrum_without_noise(products, column, edge)
        least = max(least, 0.25 * edge if seen else 0.0)
    variance = np.maximum(variance, _LEAST_VARIANCE * mean)
    public = center, variance * trace / variance.sum(), np.maximum(variance, least)
    return Spread(*public, directions, seen, squares.sum())


# Steps in the geometry.

# Number of steps, part of the iterates left out of the average, momentum, and deviation of a
# prediction that the noise of all steps may cause: for most losses; and for two classes with a step
# length for each direction, with round rows, and with faint columns
_MANY = (40, 0.5, 0.8, 0.5)
_OWN = (24, 0.625, 0.75, 0.55)
_ROUND, _FAINT = (16, 0.625, 0.7, 0.5), (12, 0.625, 0.7, 0.5)
# variances of round rows are equal but for a factor, and faint ones have less signal in a dimension
_ROUND_SPREAD, _FAINT_SIGNAL = 3.0, 2.0
# constant feature, in units of a typical row
_INTERCEPT = 0.3
# clipping norm, in units of a typical gradient: at least, and per signal in one dimension
_LEAST_CLIP, _CLIP_SLOPE = 0.25, 0.04
# for targets that nothing bounds, per root of the signal
_TARGET_SLOPE = 0.2
# the same deviation: for a loss with kinks, whose steps have no momentum; for targets of length 1;
# and for longer steps of single classes
_KINKED_WILD, _WILD_TARGET, _CLASS_WILD = 1.0, 0.25, 0.35
# signal in one dimension from which the power of the map grows, and from which it whitens
_QUARTER, _WHITE = 3.0, 100.0
# dimensions that there may be per signal, and how strongly the others are held
_DIMENSIONS, _RIDGE = 1.0, 0.3
# curvature that counts as signal, at most, and beyond which a loss counts as one with kinks
_CURVATURE, _STEEPEST = 0.5, 4.0
# where squares alone were released: noise of the log-odds of a typical row is kept to a deviation
# of 1, and to half of that with so much signal of one output along one direction
_HALVED = 50.0
# length of the shift of sparse rows, in units of their constant feature, at most; and what rounding
# adds to the change of a sum for each such unit
_LONGEST_SHIFT, _ROUNDING = 1e3, 2e-6
# coefficients, at most, of fits whose steps are kept until odds follow from them
_MOST_SEEN = 200_000
# a grid of pulls towards 0 in a step, for there may be many coefficients
_PULLS = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 200)])


@dataclass(frozen=True, eq=False)
class GeometryPlan:
    """Plan of the steps, computed from public numbers and released moments.

    Parameters
    ----------
    center, root : ndarray
        Rows become ``root (x - center)``; a matrix or a diagonal.
    directions : ndarray or None
        Orthonormal eigenvectors of `root`, its columns; None for a diagonal.
    scale, held : ndarray of shape (d,)
        Eigenvalues of `root` times `speed`, and strength of the penalty along each, in steps.
    intercept : float
        Constant feature of the rows there; 0 for none.
    n_steps, n_skipped, momentum : int, int, float
        Number of steps; number left out of the average; and the fraction of a step that is added
        to the next one.
    length, step_size : float
        Length of a typical mapped row, and step along the gradient of the mean loss. Rows are
        scaled so that the clipping norm is the bound on the slope of the loss.
    noise, adaptive : float, bool
        Standard deviation of a coordinate of a released gradient of the mean loss, and whether
        released gradients may shorten the step.
    kept : float
        Factor of the coefficients after the steps.
    variance : ndarray of shape (d,) or None
        Variances of mapped rows along the directions, if odds follow from released gradients.
    slack : float
        Bound on the rounding error in the change of a sum, as a fraction of `clip`.
    within : bool
        Whether rows are mapped within products: CSR rows by a matrix, or dense rows of a large fit.
    speed : ndarray of shape (d,) or None
        Factors along the directions: steps are made in coefficients divided by them, so a step for
        mapped rows is longer by their squares. None for 1 along all.
    longest : float
        Bound on the step of one of several classes, in units of `step_size`; below 1, no step is
        longer.
    """

    center: Any
    root: Any
    directions: Any
    scale: Any
    held: Any
    intercept: float
    n_steps: int
    n_skipped: int
    momentum: float
    length: float
    step_size: float
    noise: float
    adaptive: bool
    slack: float
    within: bool
    kept: float = 1.0
    variance: Any = None
    speed: Any = None
    longest: float = 1.0

    @property
    def deviation(self):
        """Standard deviation of each coefficient of the average, from the noise of all steps.

        The curvature of the loss, which reduces it, is ignored, and so is the constant feature.
        """
        pull = _PULLS
        before, last = np.zeros_like(pull), 1 / (1 + pull)
        felt = [before, last]
        for _ in range(self.n_steps - 1):
            ahead = last + self.momentum * (last - before)
            before, last = last, ahead / (1 + pull)
            felt.append(felt[-1] + last)
        left, averaged = np.arange(self.n_steps, 0, -1), self.n_steps - self.n_skipped
        # what noise of a step adds to the iterates that are averaged
        part = np.array(felt)
        part = (part[left] - part[np.maximum(left - averaged, 0)]) / averaged
        unit = self.step_size * self.noise * np.sqrt((part**2).sum(axis=0))
        left = np.interp(self.step_size * self.held, pull, unit)
        return left if self.speed is None else left * self.speed**2

    def lengths(self, gradient, loss):
        """Return the step of each class in units of `step_size`, from the first gradient.

        Parameters
        ----------
        gradient : ndarray of shape (n_outputs, n_coefs)
            Released gradient of the mean loss at coefficients 0.
        loss : SoftmaxLoss
            Pointwise loss.

        Notes
        -----
        If the mean of p equals the shares of the classes, the mean of diag(p) - p p' is at most
        diag(share): the step of a class may be as long as the inverse of its share. At
        coefficients 0, p is 1 / n_outputs, and no step is longer than its inverse. There the
        gradient of the constant feature, clipped like the gradient of a typical row, is the
        difference of p and the shares. If rows of a class lie far out, the curvature is larger:
        released gradients show it, and shorten all steps.
        """
        if self.longest <= 1:
            return 1.0
        even = 1 / loss.n_outputs
        felt = self.intercept * min(1.0, loss.lipschitz / (math.sqrt(1 - even) * self.length))
        # one deviation of the noise more, for shares that are taken for too small
        share = even + (self.noise - gradient[:, -1]) / felt
        # beside steps for the most that a softmax can bend, which is 1 / 2
        return np.clip(0.5 / np.maximum(share, even), 1.0, self.longest)[:, None]

    def sped(self, vector):
        """Map coefficients of steps to those for mapped rows, or gradients the other way.

        Parameters
        ----------
        vector : ndarray of shape (n_coefs,) or (n_outputs, n_coefs)
            Coefficients of the steps, or a gradient: the map is symmetric.
        """
        if self.speed is None:
            return vector
        d, basis = len(self.speed), self.directions
        body = (vector[..., :d] @ basis * self.speed) @ basis.T
        return np.concatenate([body, vector[..., d:]], axis=-1)

    def original(self, coef, intercept):
        """Return coefficients for the original rows, with constant feature `intercept`.

        Parameters
        ----------
        coef : ndarray of shape (n_coefs,) or (n_outputs, n_coefs)
            For mapped rows.
        intercept : float
            Constant feature of the original rows; 0 for none.
        """
        if not intercept:
            return applied(self.root, coef)
        body = applied(self.root, coef[..., :-1])
        last = (self.intercept * coef[..., -1] - body @ self.center) / intercept
        return np.concatenate([body, last[..., None]], axis=-1)

    def constrained(self, coef, length, intercept, radius):
        """Return coefficients after the penalties of a step, within a bound.

        Parameters
        ----------
        coef : ndarray of shape (n_coefs,) or (n_outputs, n_coefs)
            For mapped rows.
        length : float
            Step size.
        intercept : float
            Constant feature of the original rows; 0 for none.
        radius : float or None
            Bound on the norm of the result of `original`.

        Notes
        -----
        The result is the nearest vector within the bound. The bound is tighter along directions of
        long mapped rows, and coefficients along these shrink first.
        """
        d, basis = len(self.scale), self.directions
        body, pull, square = coef[..., :d], np.zeros(coef.shape[-1]), np.zeros(coef.shape[-1])
        body = (body if basis is None else body @ basis) / (1 + length * self.held)
        coef = np.concatenate([body, coef[..., d:]], axis=-1)
        if radius is not None:
            # |original(coef)|^2 is square @ coef^2 + (pull @ coef)^2
            square[:d] = self.scale**2
            if intercept:
                center = self.center if basis is None else self.center @ basis
                pull[:d], pull[d] = -self.scale * center / intercept, self.intercept / intercept
            coef = within_ellipsoid(coef, square, pull, radius)
        if basis is None:
            return coef
        return np.concatenate([coef[..., :d] @ basis.T, coef[..., d:]], axis=-1)


# Newton's steps to the edge of a bound, at most: six are usual
_MOST_NEWTON = 60


def within_ellipsoid(coef, square, pull, radius):
    """Return the nearest point where ``square @ coef^2 + (pull @ coef)^2 <= radius^2``.

    Parameters
    ----------
    coef : ndarray of shape (n_coefs,) or (n_outputs, n_coefs)
        The squares of all outputs are added up.
    square, pull : ndarray of shape (n_coefs,)
        At least 0; any.
    radius : float
        Greater than 0.

    Notes
    -----
    The point for a multiplier w is ``(1 + w M)^-1 coef``, with the matrix M of the bound. The
    inverse of its length is increasing and concave in w. So Newton's steps from 0 to the w with
    length `radius` never overshoot (Conn, Gould and Toint 2000, Lemma 7.3.1).
    """

    def length(point):
        return math.hypot(np.linalg.norm(np.sqrt(square) * point), np.linalg.norm(point @ pull))

    def solved(weight, right):
        # Sherman and Morrison: the inverse of 1 + weight (square + pull pull') times right
        part = 1 / (1 + weight * square)
        along = weight / (1 + weight * (part * pull) @ pull) * ((right * part) @ pull)
        return right * part - np.multiply.outer(along, part * pull)

    nearest, weight = coef, 0.0
    for _ in range(_MOST_NEWTON):
        long = length(nearest)
        if long <= radius * (1 + 2.0**-50):
            break
        unit = nearest / long
        image = unit * square + np.multiply.outer(unit @ pull, pull)
        weight += (long / radius - 1) / np.vdot(image, solved(weight, image))
        nearest = solved(weight, coef)
    return nearest if nearest is coef else nearest * min(1.0, radius / length(nearest))


def applied(matrix, coef):
    """Return the product of coefficients and a symmetric matrix, or a diagonal."""
    return coef * matrix if matrix.ndim == 1 else coef @ matrix


def plan_geometry(problem, spread, *, mu, n_steps, fewer, intercept, radius=1.0):
    """Return the plan of steps in a geometry.

    Parameters
    ----------
    problem : Problem
        Public facts.
    spread : Spread
        From released moments.
    mu : float
        Gaussian-DP price of all steps.
    n_steps : int
        Number of steps, at most.
    fewer : bool
        Whether fewer steps are allowed if the spread shows that they are enough.
    intercept : float
        Constant feature, in units of a typical row.
    radius : float, default=1.0
        Unit of length of the spread, in units of the rows.

    Returns
    -------
    plan : GeometryPlan
        The plan.
    """
    loss, variance = problem.pointwise, spread.variance
    along = problem.n_rows * mu / problem.moved_rows
    curvature = min(loss.smoothness, _CURVATURE)
    signal = along * curvature
    floor = _floor(variance, _DIMENSIONS * signal / _LEAST_CLIP)
    # outputs share the signal, and add their noise
    each = signal / np.sum(variance / (variance + floor)) / math.sqrt(loss.n_outputs)
    # targets that nothing bounds are of length about 1, and the bias of clipping is to vanish
    bounded = loss.lipschitz < math.inf
    grown = _CLIP_SLOPE * each if bounded else _TARGET_SLOPE * math.sqrt(each)
    share = min(1.0 if bounded else math.inf, max(_LEAST_CLIP, grown))
    grown = math.log(max(each, 1e-9) / _QUARTER) / math.log(_WHITE / _QUARTER)
    power = 0.25 + 0.25 * min(1.0, max(0.0, grown))
    scale = (spread.sure + floor) ** -power
    # the largest variance of a direction is 1
    scale /= math.sqrt(np.max(variance * scale * scale))
    size = float(np.sum(variance * scale * scale))
    few = _few_steps(spread, variance * scale * scale, each) if fewer else None
    n_steps, skipped, momentum, noisy = few or (n_steps, *_MANY[1:])
    constant = min(1.0, intercept * math.sqrt(size)) if problem.intercept else 0.0
    length = math.hypot(math.sqrt(size), constant)
    # gradients are clipped at the slope of the loss times this length of a row, the unit of mapped
    # rows: so no released number stands on the ledger
    unit, slope = share * length, _slope(loss)
    kinked = loss.smoothness > _STEEPEST
    # a kink has no curvature to make steps for: they are as long as noise allows, which keeps the
    # rate of the error where rows nearly cancel, until released gradients shorten them
    noisy = _KINKED_WILD if kinked else noisy if bounded else _WILD_TARGET
    wild = noisy * along / (n_steps * slope * unit * math.sqrt(size))
    step_size = wild if kinked else min(1 / loss.smoothness, wild)
    held = _RIDGE * curvature * floor + problem.penalty / problem.n_rows / radius**2
    center, slack = spread.center, 0.0
    scaled = problem.is_sparse and not spread.turned
    if scaled and constant:
        # a row is the difference of what is stored and of a shift, which are added up apart
        longer = np.linalg.norm(spread.matrix(scale) * center) / constant
        center = center * min(1.0, _LONGEST_SHIFT / max(longer, _LONGEST_SHIFT))
        slack = _ROUNDING * min(longer, _LONGEST_SHIFT)
    # a copy of CSR rows would have no zeros, and one of so many dense rows would take long to make
    # and to read: see `MappedChunk`
    large = 8 * problem.n_rows * problem.n_features >= LARGE
    within = not scaled and (problem.is_sparse or large)
    if within:
        longer = np.max(scale) / np.min(scale)
        if constant:
            longer += 2 * np.max(scale) * np.linalg.norm(center) / constant
        slack = _ROUNDING * float(longer)
    speed = None
    if few is _OWN:
        # along each direction steps are as long as its curvature and noise allow
        longest = 1 / (loss.smoothness * spread.sure * scale * scale)
        speed = np.sqrt(np.minimum(longest, wild) / step_size)
    scale = scale / unit
    stepped = scale if speed is None else speed * scale
    # shares of classes are seen in the constant feature, and a bound holds for equal steps
    own = isinstance(loss, SoftmaxLoss) and spread.directions is not None and constant > 0
    own = own and problem.radius is None
    longest = _CLASS_WILD / noisy * wild / step_size if own else 1.0
    plan = GeometryPlan(
        center=radius * center,
        root=spread.matrix(scale / radius),
        directions=spread.directions,
        scale=stepped / radius,
        held=held * stepped * stepped,
        intercept=constant / unit,
        n_steps=n_steps,
        n_skipped=int(skipped * n_steps),
        # a kink is crossed at any speed
        momentum=0.0 if kinked else momentum,
        length=1 / share,
        step_size=step_size * unit * unit,
        noise=slope * math.sqrt(n_steps) / along,
        adaptive=kinked or longest > 1 or not isinstance(loss, LogisticLoss | SoftmaxLoss),
        slack=slack,
        within=within,
        speed=speed,
        longest=longest,
    )
    if not isinstance(loss, LogisticLoss | SoftmaxLoss):
        return plan
    if spread.directions is not None:
        # a bound on the coefficients holds for what the steps have found; and so many coefficients
        # of all steps would fill the memory
        follow = problem.radius is None and problem.size <= _MOST_SEEN
        return replace(plan, variance=variance * scale * scale) if follow else plan
    # what noise does to the log-odds of a typical row, of two classes
    variance = variance * (scale * plan.deviation) ** 2
    most = 1 / (1 + math.sqrt(_HALVED * loss.n_outputs / along))
    return replace(plan, kept=min(1.0, most / math.sqrt(np.sum(variance))))


def _few_steps(spread, variance, signal):
    """Return the number and kind of steps that are enough for two classes, or None.

    Parameters
    ----------
    spread : Spread
        From released moments.
    variance : ndarray of shape (d,)
        Variances of the directions of mapped rows.
    signal : float
        Signal in one dimension.
    """
    if spread.directions is None:
        # columns may be correlated, and nothing has been seen of that
        return _FAINT if signal < _FAINT_SIGNAL else None
    # what was taken for so small may be smaller
    clear = np.min(spread.variance) > 2 * _LEAST_VARIANCE * np.mean(spread.variance)
    return _ROUND if clear and np.max(variance) <= _ROUND_SPREAD * np.min(variance) else _OWN


def _slope(loss):
    """Return the bound on the slope of a loss; without one 1, for targets of length 1."""
    return loss.lipschitz if loss.lipschitz < math.inf else 1.0


def _floor(variance, most):
    """Return the ridge with an effective dimension of at most the given one."""
    low, high = 1e-12, 1e3
    for _ in range(60):
        middle = math.sqrt(low * high)
        many = (variance / (variance + middle)).sum() > most
        low, high = (middle, high) if many else (low, middle)
    return high


@dataclass(frozen=True)
class PreconditionedFit(Fit):
    """Plan to release second moments, and gradients in their geometry.

    Parameters
    ----------
    problem : Problem
        Public facts.
    moments : SecondMoments
        First release.
    mu_moments, mu : float
        Gaussian-DP price of the moments, and of all steps.
    n_iter : int
        Number of steps, at most.
    intercept : float
        Constant feature, in units of a typical row.
    at_most : bool
        Whether the moments may reduce the number of steps.

    Notes
    -----
    The number of steps is a function of the released moments, and all steps together are `mu`-GDP
    for every number. So both parts compose as with a fixed number: the second is mu-GDP for every
    outcome of the first.
    """

    moments: Any
    mu_moments: float
    mu: float
    n_iter: int
    intercept: float
    at_most: bool = False
    full_batches = True

    @property
    def counts_labels(self):
        """Whether rows with a known label are counted."""
        return self.moments.counted > 0

    @property
    def n_releases(self):
        """Number of releases: the moments, and at most one per step."""
        return 1 + self.n_iter

    def solution(self, curator, doubts=None):
        """Release the moments, map the rows, and descend along released gradients."""
        problem = self.problem
        released = curator.release(self.moments, GaussianMechanism(self.mu_moments))
        stated = self.moments.sensitivity(problem.adjacency, problem.n_rows).l2
        noise = stated / self.mu_moments
        spread = estimated_spread(
            self.moments, released, problem.n_rows, noise, centered=bool(problem.intercept)
        )
        if doubts is not None and not problem.is_made_up:
            one = self.moments.counted
            if not (one and doubts.of_labels(released[-1] / one, noise / one, problem.n_rows)):
                means = released / problem.n_rows
                self._say_of_rows(doubts, means, spread.square, noise / problem.n_rows)
        plan = plan_geometry(
            problem,
            spread,
            mu=self.mu,
            n_steps=self.n_iter,
            fewer=self.at_most and not problem.is_made_up,
            intercept=self.intercept,
            radius=self.moments.radius,
        )
        public = plan.center, plan.root, plan.intercept, plan.within
        curator.map_rows(lambda rows: mapped_rows(rows, *public))
        coef, seen = self._descend(curator, plan)
        if plan.variance is not None:
            two = isinstance(problem.pointwise, LogisticLoss)
            coef = (believed if two else believed_classes)(plan, coef, seen, problem.n_rows)
        # shorter odds: neither their order nor their signs change, nor does a bound break
        coef = plan.original(plan.kept * coef, problem.intercept)
        return coef, plan.length / _slope(problem.pointwise), plan.n_steps

    def _say_of_rows(self, doubts, released, square, noise):
        """Collect a warning if rows in their bounds are nearly 0, or nearly the same vector."""
        d, variance = self.moments.n_features, noise * noise
        if square < (most := _NOTHING * noise * math.sqrt(d)) < _LITTLE:
            doubts.of_short_rows(most)
        mean = released[:d] @ released[:d] - d * variance
        deviation = math.sqrt(4 * variance * max(mean, 0.0) + (2 * d) * variance**2)
        if self.problem.has_labels:
            doubts.of_equal_rows(mean - _NOTHING * deviation)

    def _descend(self, curator, plan):
        """Return the average of the later half of accelerated steps along released gradients.

        If odds follow from the gradients, the gradients and their points are returned too.
        """
        problem, loss = self.problem, self.problem.pointwise
        law = GaussianMechanism(self.mu / math.sqrt(plan.n_steps))
        clip = _slope(loss)
        first = ClippedGradient(np.zeros(problem.shape), loss, clip, plan.slack)
        paid = curator.prepay(first, law, plan.n_steps)
        average = previous = coef = np.zeros(problem.shape)
        seen = []
        step_size = StepSize(plan)
        for t in range(plan.n_steps):
            ahead = coef + plan.momentum * (coef - previous)
            at = plan.sped(ahead)
            query = ClippedGradient(at, loss, clip, plan.slack)
            released = curator.release(query, paid)
            gradient = released.reshape(problem.shape) / problem.n_rows
            if t == 0:
                times = plan.lengths(gradient, loss)
                root = np.sqrt(times)
            length = times * step_size.at(at / root, gradient * root)
            step = ahead - length * plan.sped(gradient)
            step = np.clip(step, -LARGEST_COEF, LARGEST_COEF)
            previous = coef
            coef = plan.constrained(step, length, problem.intercept, problem.radius)
            if t >= plan.n_skipped:
                average = average + coef / (plan.n_steps - plan.n_skipped)
            if plan.variance is not None:
                seen.append((at, gradient))
        return plan.sped(average), seen

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A nonlinear classifier: scaled columns, public features of them, logistic regression.

What is searched, released and charged is that of `DPLogisticRegression` without a `data_norm`, on
one curator; so are the small fits by which a kernel is chosen, and their comparison. Between the
search of units and the steps every row is mapped by public constants to one of norm at most 1: a
function of that row alone, and of what was released, which costs nothing.
"""

import math
from dataclasses import dataclass, replace
from functools import cache, partial
from numbers import Integral, Real
from operator import methodcaller
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from skdp._export import (
    fold_features,
    fourier_features,
    hat_features,
    mapped_classifier,
)
from skdp._rows.base import L2Ball, bounds_of, empty_rows, row_major, sum_over
from skdp._rows.linear import (
    StandardColumns,
    counted_rows,
    map_chunk,
    readmitted,
)
from skdp._sklearn import Interval, StrOptions, centered_classes, validate_private_data
from skdp._typing import Adjacency, ArrayLike, Bounds, Budget, MatrixLike, Seed
from skdp.linear_model._classifiers import DPLogisticRegression
from skdp.linear_model._scales import SMALLEST, SearchedScales, center_and_scale
from skdp.preprocessing._public import (
    check_gamma,
    fourier_frequencies,
    fourier_rows,
    reach_of,
    triangles,
)
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.solvers.link import LINK_SHARE

# seed of the frequencies, public as all the rest of the map
_SEED = 0
# knots of a column: so many at a signal of `_USUAL` for a column, and as the cube root of it
_KNOTS, _FEWEST_KNOTS, _MOST_KNOTS, _USUAL = 4.0, 3, 16, 100.0
# below this signal only a linear model is above the noise
_STRAIGHT = 10.0
# units up to which lines go on beyond three knots
_FAR = 3.0
# waves: so many times the root of the signal along one coefficient
_WAVES, _FEWEST_WAVES, _MOST_WAVES = 10.0, 20, 500
# standard deviations in the unit of a searched column, which a quarter of its rows exceed: 1.15
# for a normal column, and less with heavier tails, which are usual
_UNIT = 0.8
# where bounds are public: half of what is between them, in standard deviations of even rows
_HALF = math.sqrt(3.0)
# kernels that are chosen from, the one with most coefficients last
_TRIED = "linear", "additive", "rbf"
# from this signal on the residuals of a linear model choose the kernel; parts of the squared budget
# for that model, and for the look at its residuals, at a signal of the first number, and at least
_LEAST_GLANCE = 100.0
_LINES, _LINES_LEAST = 20.0, 0.02
_SEEN, _SEEN_LEAST = 30.0, 0.04
# from a signal at which trials see more, waves are compared with it; parts of each trial of what
# bends, and of the comparison
_MOST_GLANCE = 1500.0
_TRIAL, _TRIAL_LEAST, _COUNTED = 400.0, 0.05, 0.01
# rows of straight lines are shortened to so many times the usual length
_LONG = 1.25
# knots of the bends that are looked for, points of the normal law that they are off lines of, and
# what an entry of a row is divided by and cut to 1 in a product
_BENDS, _GRID, _NEAR = 4, 2000, 0.5
# what products count in a release beside bends; sums, a row, from which on there are some: those of
# bends at a signal of 1 along a column, those of products up to a signal of all rows, and less as
# its root beyond; and what a product is at least in bends
_BESIDE = 0.6
_IS_BENT, _IS_PRODUCT, _FAINT, _TWICE = 0.45, 0.2, 250.0, 2.0
# rows that predictions map at once
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Hats:
    """Features of an additive model: triangles between public knots, the same for every column.

    Parameters
    ----------
    n_features : int
        Number of columns.
    knots : ndarray of shape (n_knots,)
        Increasing. Beyond the first and the last a column counts as these.
    """

    n_features: int
    knots: Any

    @property
    def size(self):
        """Number of features of a row."""
        return self.n_features * len(self.knots)

    def __call__(self, X):
        """Return mapped rows, of norm at most 1: that of the triangles of a column is at most 1."""
        hats = triangles(X, self.knots)
        hats /= math.sqrt(self.n_features)
        return hats.reshape(len(X), -1)


@dataclass(frozen=True, eq=False)
class Folds:
    """Features of an additive model of three knots: a fold of each column, and the column itself.

    Parameters
    ----------
    n_features : int
        Number of columns.
    knots : ndarray of shape (3,)
        The middle one 0, and the others as far from it.
    radius : float
        Usual length of a row.

    Notes
    -----
    A fold is the distance from the middle knot, up to the outer ones. Where there is little signal
    a coefficient less is worth more, and these knots are near: a line goes on beyond them, but not
    as far as a unit that noise made small puts a row.
    """

    n_features: int
    knots: Any
    radius: float

    @property
    def size(self):
        """Number of features of a row."""
        return 2 * self.n_features

    @property
    def share(self):
        """What columns, and folds, are multiplied by."""
        return math.sqrt(0.5) / self.radius

    def __call__(self, X):
        """Return mapped rows; of norm at most 1 for rows of at most the usual length.

        Every operation is elementwise.
        """
        body, d = empty_rows((len(X), self.size)), self.n_features
        np.minimum(np.abs(X), self.knots[2], out=body[:, :d])
        np.clip(X, -_FAR, _FAR, out=body[:, d:])
        body *= self.share
        return body


@dataclass(frozen=True, eq=False)
class Waves:
    """Random Fourier features.

    Parameters
    ----------
    frequencies : ndarray of shape (n_waves, n_features)
        Public.
    odd : {0, 1}
        Whether there is a constant besides.
    """

    frequencies: Any
    odd: int

    @property
    def size(self):
        """Number of features of a row."""
        return 2 * len(self.frequencies) + self.odd

    def __call__(self, X):
        """Return mapped rows, of norm 1."""
        return fourier_rows(X, self.frequencies, self.odd)


def bent_rows(rows, features):
    """Return mapped rows."""
    return rows.mapped(partial(map_chunk, features=features))


# The choice of a kernel by the rows: residuals of a linear model, and a comparison with waves.
#
# A trial fit with a small part of the budget has more noise than the final fit, and noise hurts
# bent functions most: trials would favour "linear". So the residuals of a linear model are tested
# for bends of columns and products of two; where noise hides these, public numbers decide. Waves
# can learn more than products of two columns, but a trial shows this only with much signal: then
# they are compared with the kernel that the residuals chose.


@dataclass(frozen=True, eq=False)
class RightRows:
    """Number of rows that the second of two models predicts rightly, less that of the first.

    Parameters
    ----------
    features : tuple of (object, object)
        Maps of rows in units.
    coefs : tuple of (ndarray, ndarray) of shape (n_outputs, n_mapped + 1)
        Coefficients of mapped rows, the last of the constant feature; released.
    intercept : float
        The constant feature.
    """

    features: tuple[Any, Any]
    coefs: tuple[Any, Any]
    intercept: float
    name = "correct rows of the second of two models minus those of the first"
    size = 1

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities: 1 (zero-out), or 2 (replace-one).

        Proof. A row adds -1, 0 or 1, and a null row 0. Both are attained: by a row that one model
        alone gets right, and by one of which the label changes so that the other one alone does. A
        group, whose weights add up to at most 1, contributes a mean of such numbers, and of 0.
        """
        reach = 1.0 if adjacency == "zero-out" else 2.0
        theorem = f"a row adds -1, 0 or 1: {reach:.0f} at most"
        return Sensitivity(l1=reach, l2=reach, bound=float(n_rows), theorem=theorem)

    def _right(self, chunk, model):
        """Return which rows of a chunk one of the models predicts rightly, as 0 or 1."""
        features, coef = self.features[model], self.coefs[model]
        z = map_chunk(chunk, features, self.intercept).predict(coef)
        right = z[:, 0] * chunk.target > 0 if len(coef) == 1 else z.argmax(axis=1) == chunk.target
        return right.astype(np.float64)

    def partial(self, chunk):
        """Return the difference in a chunk, an array of shape (1,)."""
        more = self._right(chunk, 1) - self._right(chunk, 0)
        return np.array([np.sum(more * counted_rows(chunk))])

    def evaluate(self, rows):
        """Return the difference in all rows, an array of shape (1,)."""
        return sum_over(rows, self.partial, self.size)


@dataclass(frozen=True)
class Lines:
    """The columns of rows in units, shortened to norm 1: straight lines.

    Parameters
    ----------
    size : int
        Number of columns, and of features of a row.
    """

    size: int

    def __call__(self, X):
        """Return mapped rows, of norm at most 1."""
        rows = X / (_LONG * math.sqrt(self.size))
        return rows / np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), 1.0)[:, None]


@cache
def bends_off_lines():
    """Return knots, and by what triangles are multiplied to be at right angles to lines.

    That is for columns of the normal law. A row's triangles are between those of two knots, so that
    the longest row of the matrix, which has length 1, is the longest of all products.
    """
    knots = ndtri((np.arange(_BENDS) + 0.5) / _BENDS) / _UNIT
    grid = ndtri((np.arange(_GRID) + 0.5) / _GRID)
    hats = triangles(grid[:, None], knots).reshape(_GRID, _BENDS)
    basis, _ = np.linalg.qr(hats.T @ np.column_stack([np.ones(_GRID), grid]))
    off = np.eye(_BENDS) - basis @ basis.T
    return knots, off / np.sqrt(np.einsum("ij,ij->i", off, off)).max()


@dataclass(frozen=True, eq=False)
class LeftOver:
    """How far the residuals of a model go along with a bend of a column, or a product of two.

    Parameters
    ----------
    features : object
        Map of rows in units.
    coef : ndarray of shape (n_outputs, n_mapped + 1) or (n_mapped + 1,)
        Coefficients of mapped rows, the last of the constant feature; released.
    intercept : float
        The constant feature.
    residual : callable
        Of predictions and targets: what is left of a row, a number or a vector of length at most 1.

    Notes
    -----
    The longest sum of residuals times bends of a column, and that of residuals times products of
    two columns; of several classes a residual has an entry for each. Nothing is divided by the
    number of columns: one of them that bends is seen among many.
    """

    features: Any
    coef: Any
    intercept: float
    residual: Any
    name = "residuals of a linear model, times bends of columns and products of two"
    size = 2

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities: 1.6 and sqrt(1.36) (zero-out), or twice that.

        Proof. A row adds its residual, of length at most 1, to the sums: times a vector of such a
        length for every column, times a number of [-1, 1] for every pair; and a null row 0.
        Zero-out moves each by at most 1, replace-one by 2. A largest length moves by no more than
        the one that moves most. The second counts 0.6. Both are attained: by a row at the knot of
        the longest bend with two entries that are cut, where other rows have bent and multiplied
        the same way, and a residual of length 1, or that moves to the opposite. A group contributes
        a mean of such rows, and of 0.
        """
        reach = 1.0 if adjacency == "zero-out" else 2.0
        theorem = f"a row moves each largest sum by {reach:.0f} at most; the second counts 0.6"
        l1, l2 = (1 + _BESIDE) * reach, math.hypot(1.0, _BESIDE) * reach
        return Sensitivity(l1=l1, l2=l2, bound=float(n_rows), theorem=theorem)

    def partial(self, chunk):
        """Return the sums of a chunk: of bends column by column, and of products."""
        z = map_chunk(chunk, self.features, self.intercept).predict(self.coef)
        counts, X = counted_rows(chunk)[:, None], row_major(chunk.X)
        z = z if self.n_outputs > 1 else z.reshape(len(X))
        left = self.residual(z, chunk.target).reshape(len(X), -1)
        left = np.where(counts > 0, left, 0.0) * counts
        knots, off = bends_off_lines()
        found = np.empty((self.n_outputs, self.n_sums))
        with np.errstate(under="ignore"):
            hats = triangles(X, knots).reshape(len(X), -1)
            near = np.clip(X / _NEAR, -1.0, 1.0)
            for sums, part in zip(found, left.T[:, :, None], strict=True):
                bends = (part * hats).sum(axis=0).reshape(-1, _BENDS) @ off
                sums[:] = np.append(bends, near.T @ (near * part))
        return found.ravel()

    @property
    def n_outputs(self):
        """Number of residuals of a row."""
        return len(np.atleast_2d(self.coef))

    @property
    def n_sums(self):
        """Number of sums of one residual."""
        return self.features.size * (_BENDS + self.features.size)

    def evaluate(self, rows):
        """Return the largest of both, an array of shape (2,)."""
        d = self.features.size
        total = sum_over(rows, self.partial, self.n_outputs * self.n_sums)
        bends, products = np.split(total.reshape(-1, self.n_sums), [d * _BENDS], axis=1)
        with np.errstate(under="ignore"):
            squares = np.sum(bends.reshape(-1, d, _BENDS) ** 2, axis=2).sum(axis=0)
            pairs = np.sum(products.reshape(-1, d, d) ** 2, axis=0)
        np.fill_diagonal(pairs, 0.0)
        return np.sqrt([squares.max(), pairs.max()]) * [1.0, _BESIDE]

    def kernel(self, released, noise, n_rows, signal):
        """Return the kernel that released sums, with noise of a scale, speak for."""
        # with more signal waves learn more of a product, and classes share residuals
        product = _IS_PRODUCT * math.sqrt(min(_FAINT / signal, 1.0) * min(2 / self.n_outputs, 1.0))
        if released[1] > _BESIDE * max(product * n_rows, _TWICE * released[0]):
            return "rbf"
        # a bend gains about its square, and costs the noise along the knots of all columns
        bend = _IS_BENT / math.sqrt(signal / math.sqrt(self.features.size))
        # in doubt "additive": it costs less where nothing bends than "linear" where something does
        return "additive" if released[0] + noise / 2 > bend * n_rows else "linear"


@dataclass(frozen=True)
class TrialPlan:
    """How a kernel is chosen; public numbers only.

    Parameters
    ----------
    mu_lines, mu_seen : float
        Gaussian-DP parameters of straight lines, and of a look at what they leave over.
    mu_fit, mu_count : float
        Those of a fit of each map that bends, and of a comparison; 0 for none.
    """

    mu_lines: float
    mu_seen: float
    mu_fit: float = 0.0
    mu_count: float = 0.0

    @property
    def n_tried(self):
        """Numbers of maps that are tried and of looks at them, at most."""
        return (3, 2) if self.mu_fit else (1, 1)

    def run(self, curator, problem, n_features, maps, solved, queries):
        """Look at what straight lines leave over, and compare what that speaks for with waves.

        Parameters
        ----------
        curator, problem, n_features : Curator, Problem, int
            Holds the rows; public facts; number of columns.
        maps : dict
            The maps of the kernels.
        solved : callable
            Of a problem: fits mapped rows, and returns the coefficients.
        queries : tuple of (callable, callable)
            Of a pair of maps and of coefficients: the comparison. Of one map and its coefficients:
            what is left over.

        Returns
        -------
        kernel : str
            That was chosen; of two the second one, if it is better, beyond a deviation of the
            noise.
        left : Problem
            What is left.
        """
        spent = []

        def fitted(features, mu):
            spent.append(mu)
            rest = math.sqrt(problem.scale_mu**2 + problem.mu**2 - mu**2)
            curator.map_rows(methodcaller("set_aside"))
            curator.map_rows(partial(bent_rows, features=features))
            coef = solved(replace(problem, n_features=features.size, scale_mu=rest))
            curator.map_rows(methodcaller("restored"))
            return features, coef

        def asked(query, mu):
            spent.append(mu)
            released = curator.release(query, GaussianMechanism(mu))
            return released, curator.ledger.releases[-1].noise.scale

        query = queries[1](*fitted(Lines(n_features), self.mu_lines))
        seen = asked(query, self.mu_seen)
        kernel = query.kernel(*seen, problem.n_rows, signal_of(problem))
        if self.mu_fit:
            # a plan on made-up rows has all fits
            straight = kernel == "linear" and not problem.is_made_up
            first = Lines(n_features) if straight else maps["additive"]
            pair = zip(*(fitted(part, self.mu_fit) for part in (first, maps["rbf"])), strict=True)
            more, noise = asked(queries[0](*pair), self.mu_count)
            kernel = "rbf" if more[0] > noise else "linear" if straight else "additive"
        if problem.is_made_up:
            # and the most coefficients
            kernel = "rbf"
        # a hair more than the ledger will hold
        spent = math.hypot(problem.scale_mu, *spent) * (1 + 1e-9)
        return kernel, replace(problem, scale_mu=spent)


def plan_trial(problem):
    """Return how a kernel is chosen by the rows; None where public numbers decide."""
    signal = signal_of(problem)
    if signal < _LEAST_GLANCE:
        return None
    shares = [max((_LINES / signal) ** 2, _LINES_LEAST), max((_SEEN / signal) ** 2, _SEEN_LEAST)]
    if signal >= _MOST_GLANCE:
        # half of that sees as much there
        shares = [_LINES_LEAST / 2, _SEEN_LEAST / 2]
        shares += [max((_TRIAL / signal) ** 2, _TRIAL_LEAST), _COUNTED]
    return TrialPlan(*(math.sqrt(share) * problem.mu for share in shares))


def surprise(z, target, loss):
    """Return what straight lines leave of classes: half a chance counts as all of it."""
    if loss.n_outputs == 1:
        return np.clip(-2.0 * loss.residual(z, target), -1.0, 1.0)
    # of two classes that is as long as the number is large
    left = math.sqrt(2.0) * loss.residual(z, target)
    return left / np.maximum(np.sqrt(np.einsum("ij,ij->i", left, left)), 1.0)[:, None]


def signal_of(problem):
    """Return the signal along one coefficient, that outputs share."""
    along = problem.n_rows * problem.mu / problem.moved_rows
    return along / math.sqrt(problem.loss.n_outputs)


def features_twin(features, n_features):
    """Return the step of scikit-learn that maps rows in units as hats, folds or waves do."""
    if isinstance(features, Waves):
        frequencies = features.frequencies
        return fourier_features(frequencies, reach_of(frequencies), features.odd)
    if isinstance(features, Folds):
        return fold_features(features.knots[2], _FAR, features.share, n_features)
    return hat_features(features.knots, n_features)


class KernelMixin:
    """Units of columns, maps and their sizes: what classification and regression share."""

    kernel_: str
    n_knots_: int | None
    n_components_: int | None

    _formats = False
    _medians_first = True
    _map: Any = None
    #: a signal of a column below which "additive" is the linear model
    _straight = _STRAIGHT
    _kernel_constraints = {
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "kernel": [StrOptions({"auto", "additive", "rbf", "linear"})],
        "n_knots": [Interval(Integral, 2, None, closed="left"), None],
        "gamma": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "bounds": [tuple, list, dict, np.ndarray, None],
    }

    def _sizes(self, problem, n_features):
        """Return the kernels that are tried and the numbers of features of a row, 0 for no map."""
        plan = self._trial(problem, n_features)
        kernels = _TRIED if plan else ("additive" if self.kernel == "auto" else self.kernel,)
        return {kernel: self._n_mapped(problem, n_features, kernel) for kernel in kernels}

    def _trial(self, problem, n_features):
        """Return how a kernel is chosen by the rows; None if it is not."""
        plan = plan_trial(problem) if self.kernel == "auto" else None
        # where noise hides all bends there is nothing to look for
        return plan if plan and self._n_mapped(problem, n_features, "additive") else None

    def _n_mapped(self, problem, n_features, kernel):
        """Return the number of features of a mapped row, by public numbers; 0 for no map."""
        if kernel == "linear":
            return 0
        signal = signal_of(problem)
        if kernel == "rbf":
            waves = 2 * round(_WAVES * math.sqrt(signal) / 2)
            return self.n_components or min(max(waves, _FEWEST_WAVES), _MOST_WAVES)
        signal /= math.sqrt(n_features)
        if self.n_knots is None and signal < self._straight:
            return 0
        knots = round(_KNOTS * math.cbrt(signal / _USUAL))
        return n_features * (self.n_knots or min(max(knots, _FEWEST_KNOTS), _MOST_KNOTS))

    def _features(self, kernel, size):
        """Return the map of a kernel; None for none."""
        d = self.n_features_in_
        if not size:
            return None
        if kernel == "rbf":
            return Waves(fourier_frequencies(d, size, self.gamma, _SEED), size % 2)
        return Hats(d, self._knots(size // d))

    def _knots(self, k):
        """Return public knots of a column."""
        if self.bounds is not None:
            return np.linspace(-_HALF, _HALF, k)
        return ndtri((np.arange(k) + 0.5) / k) / _UNIT

    def _n_releases(self, plan):
        trial = self._trial(plan.problem, self.n_features_in_)
        fits, looks = trial.n_tried if trial else (0, 0)
        return (fits + 1) * plan.n_releases + looks

    def _in_columns(self, curator, found, norm, needed):
        """Bring rows into units of columns, if they are not; return these, or None.

        Parameters
        ----------
        curator : Curator
            Holds the rows.
        found : StandardColumns or None
            Units that the rows have by now.
        norm : float
            About the length of a row, where there are none.
        needed : bool
            Whether rows are to be mapped.
        """
        d = self.n_features_in_
        if self.bounds is not None:
            lower, upper = bounds_of(self, d)
            scale = np.maximum((upper / 2 - lower / 2) / _HALF, SMALLEST)
            # entries beyond bounds count as those at them
            seen = np.ones(d, dtype=bool)
            found = StandardColumns(lower / 2 + upper / 2, scale, seen, farthest=_HALF)
        elif found is None and needed:
            # rows of about the length sqrt(d), as if columns had been standardised
            unit = np.full(d, max(norm / math.sqrt(d), SMALLEST))
            found = StandardColumns(np.zeros(d), unit, np.ones(d, dtype=bool))
        else:
            return found
        curator.map_rows(found.rows)
        return found

    def _keep(self, kernel, features, bend):
        """Set what says which kernel it is; `bend` is the part of the map that bends, or None."""
        self._map = features
        self.kernel_ = kernel if features is not None else "linear"
        self.n_knots_ = len(bend.knots) if isinstance(bend, Hats | Folds) else None
        self.n_components_ = bend.size if isinstance(bend, Waves) else None

    def _scores(self, X, columns, n_outputs):
        """Return the linear scores of mapped rows, in parts, of shape (n_rows, n_outputs)."""
        X = validate_private_data(self, X, reset=False)
        coef, found = np.reshape(self.coef_, (n_outputs, -1)), np.empty((len(X), n_outputs))
        for start in range(0, len(X), _BLOCK):
            rows = slice(start, start + _BLOCK)
            # as for the rows of the fit
            with np.errstate(under="ignore", over="ignore"):
                units = (row_major(X[rows]) - columns.center) / columns.scale
            near = np.clip(units, -columns.reach, columns.reach)
            found[rows] = safe_sparse_dot(self._map(near), coef.T, dense_output=True)
        return found

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


class DPKernelClassifier(KernelMixin, DPLogisticRegression):
    """Differentially private nonlinear classification.

    Within one privacy budget columns are standardised, mapped to features by public constants, and
    classified by logistic regression. With ``kernel="additive"`` the score of a class is a sum of
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
        "rbf": random Fourier features of a Gaussian kernel, for products of columns and other
        dependence on several. "linear": `DPLogisticRegression`. "auto" chooses one of these by the
        rows, for 6 to 18 % of the squared Gaussian-DP budget; if public numbers show too little
        signal for a choice, it is "additive", at no price.
    n_knots : int, default=None
        Knots of each function of "additive", at least 2. None chooses from 3 to 16 by the number
        of rows, the budget, and the numbers of columns and classes; and "linear" where noise would
        hide any bend. With three a function is a line, and a bend at the middle knot that ends at
        the others.
    gamma : float or array-like of shape (n_scales,), default=None
        Parameters of the kernels of "rbf", as in `RandomFourierFeatures`, for standardised
        columns.
    n_components : int, default=None
        Number of features of "rbf". None chooses from 20 to 500 by the same public numbers.
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=None
        Public bounds of the columns, as in `BoundedScaler`: entries beyond them count as those at
        them. None searches origins and units of the columns, for at most a fifth of the squared
        Gaussian-DP budget.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out", half the noise), or in the presence of a row ("add-remove"). See
        :ref:`adjacency`.
    classes : array-like of shape (n_classes,), default=None
        Public label set. None reads it from `y`, and the ledger says so.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, as in `DPLogisticRegression`.
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
    coef_ : ndarray of shape (1, n_mapped) or (n_classes, n_mapped)
        Coefficients of the mapped features; with "linear" of the columns.
    intercept_, classes_ : ndarray of shape (1,) or (n_classes,), ndarray of shape (n_classes,)
        Intercepts, and the label set.
    kernel_ : {"additive", "rbf", "linear"}
        The fitted kernel: "linear" also if noise would hide any bend, or the choice found nothing
        nonlinear.
    n_knots_, n_components_ : int or None
        Knots of a column with "additive", features with "rbf"; otherwise None.
    data_norm_ : float
        Norm that mapped rows have at most: 1. With "linear" that of `DPLogisticRegression`.
    feature_center_, feature_scale_ : ndarray of shape (n_features,)
        Origins and units of columns, public or released; zeros and a common unit with too few
        rows.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the classes, public or from released counts. Only with `class_weight`.
    n_iter_ : ndarray of shape (1,)
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
        If epsilon or delta is too large, or labels were read from y (:ref:`warnings`).
    NoisyEstimateWarning
        If there are too few rows, or too much noise, to find units of columns or to learn anything.

    See Also
    --------
    RandomFourierFeatures : The map of "rbf", for a pipeline.
    AdditiveShapesDisplay : Draws the functions of "additive".

    Notes
    -----
    Privacy. One row is protected, at (epsilon, delta) and the chosen adjacency, as by
    `DPLogisticRegression`: releases, sensitivities and what is public are the same. A map by public
    and released constants, row by row, makes no release, and its rows are of norm at most 1, those
    of three knots once longer ones have been shortened.

    Knots are quantiles of the normal law in the units of the columns, and evenly spaced between
    public bounds. Frequencies are those of ``RandomFourierFeatures(random_state=0)``. More
    features fit more, and are noisier. So with three knots a column has two features: itself, up
    to 3 units, and its distance from the middle knot, up to that of the others; rows of the usual
    length, as it was released, have a norm of about 1. With a signal ``s = n mu / (a sqrt(d))`` for
    n rows, d columns, a Gaussian-DP parameter mu and a of 1 under zero-out, 2 otherwise, there are
    about ``4 (s / 100)^(1/3)`` knots, none below s = 10, and ``10 sqrt(s sqrt(d))`` Fourier
    features; K classes, of more than two, share the signal, which is divided by ``sqrt(K)``.

    "auto" looks at residuals. With a signal ``S = s sqrt(d)`` of 100 or more straight lines are
    fitted, for ``(20 / S)^2`` of the squared budget and at least .02. Then the correlation of
    their residuals with bends of a column, and with products of two, is released, for ``(30 /
    S)^2`` and at least .04. "rbf" is for products, and "additive" for bends of more than ``0.45 /
    sqrt(s)`` a row. From 1,500 on both parts are .01 and .02. "rbf" is fitted to all rows, for
    ``(400 / S)^2`` and at least .05, and so is "additive", or straight lines if they left neither
    over. The number of rows that only "rbf" gets right, minus those that only the other gets
    right, is released for .01: "rbf" is chosen if it exceeds a deviation of the noise. The chosen
    kernel is fitted with the rest. Below 100 there is no choice. Figures are in the user guide
    (:ref:`kernel-classifier`).

    References
    ----------
    .. [1] T. Hastie and R. Tibshirani, "Generalized additive models", Statistical Science, 1986.
    .. [2] A. Rahimi and B. Recht, "Random features for large-scale kernel machines", NIPS 2007.
    .. [3] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk
       minimization", JMLR, 2011, Section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPKernelClassifier, DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = (X[:, 0] ** 2 + X[:, 1] ** 2 > 1.4).astype(int)
    >>> model = DPKernelClassifier(epsilon=1.0, classes=[0, 1]).fit(X, y)
    >>> straight = DPLogisticRegression(epsilon=1.0, classes=[0, 1]).fit(X, y)
    >>> bool(model.score(X, y) > 0.85 > 0.75 > straight.score(X, y))
    True
    >>> model.privacy_spent_[0] <= 1.0
    True
    """

    # what `DPLogisticRegression` has as parameters
    mechanism = "auto"
    solver = "auto"
    data_norm = None
    C = np.inf
    fit_intercept = True
    coef_bound = None

    _parameter_constraints = {
        name: DPLogisticRegression._parameter_constraints[name]
        for name in (
            *("epsilon", "adjacency", "classes", "class_weight", "max_iter", "max_weight"),
            *("budget", "random_state", "verbose"),
        )
    } | KernelMixin._kernel_constraints

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
        adjacency: Adjacency = "replace-one",
        classes: ArrayLike | None = None,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
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
        self.adjacency = adjacency
        self.classes = classes
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.max_weight = max_weight
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    def decision_function(self, X: MatrixLike) -> NDArray[Any]:
        """Return how far rows are on the side of a class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. What lies beyond the outer knots counts as these.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of each class in the order of `classes_`; of two classes only that of the second,
            which is predicted where it is positive.

        Raises
        ------
        ValueError, TypeError
            If X has other columns than the rows of `fit`, is not numeric or not finite.
        """
        check_is_fitted(self)
        if self._map is None:
            return super().decision_function(X)
        found = self._scores(X, self._columns, len(self.intercept_))
        found += self.intercept_
        return found.ravel() if found.shape[1] == 1 else found

    def _unknown(self):
        return ["bounds"] if self.bounds is None else []

    def _scales(self, n_rows, n_features, is_sparse):
        if self.bounds is not None:
            return SearchedScales(n_rows)
        return super()._scales(n_rows, n_features, is_sparse)

    def _problem(self, scales, n_rows, n_features, *facts):
        check_gamma(self.gamma)
        if self.bounds is not None:
            bounds_of(self, n_features)
        problem = super()._problem(scales, n_rows, n_features, *facts)
        size = max(self._sizes(problem, n_features).values())
        return self._in_units(replace(problem, n_features=size), 1.0) if size else problem

    def _n_mapped(self, problem, n_features, kernel):
        size = super()._n_mapped(problem, n_features, kernel)
        # see `Folds`
        folded = kernel == "additive" and size == _FEWEST_KNOTS * n_features
        return 2 * n_features if folded else size

    def _bent(self, curator, solver, problem, norm, found):
        d = self.n_features_in_
        sizes = self._sizes(problem, d)
        columns = self._in_columns(curator, found, norm, any(sizes.values()))
        norm = norm if columns is found else math.sqrt(d)
        self._columns = found = columns
        maps = {kernel: self._features(kernel, size) for kernel, size in sizes.items()}
        if sizes.get("additive") == 2 * d and self.n_knots != 2:
            maps["additive"] = Folds(d, self._knots(_FEWEST_KNOTS), max(norm, SMALLEST))
        kernel = next(iter(sizes))
        if len(sizes) > 1:
            # rows that are moved get their constant feature later
            intercept = 0.0 if solver.moves_rows else problem.intercept

            def solved(problem):
                curator.map_rows(partial(readmitted, ball=L2Ball(1.0), intercept=intercept))
                return centered_classes(solver.plan(problem).solution(curator)[0])

            left = partial(LeftOver, residual=partial(surprise, loss=problem.loss))
            queries = (partial(q, intercept=problem.intercept) for q in (RightRows, left))
            plan = self._trial(problem, d)
            kernel, problem = plan.run(curator, problem, d, maps, solved, tuple(queries))
        size, features = sizes[kernel], maps[kernel]
        self._keep(kernel, features, features)
        if not size:
            return norm, found, replace(problem, n_features=d)
        curator.map_rows(partial(bent_rows, features=features))
        return 1.0, None, replace(problem, n_features=size)

    def _weigh(self, weights, n_rows):
        super()._weigh(weights, n_rows)
        # until now they were those of the mapped features
        columns = center_and_scale(self._columns, self.n_features_in_)
        self.feature_center_, self.feature_scale_ = columns

    def _twin(self):
        if self._map is None:
            return super()._twin()
        features = features_twin(self._map, self.n_features_in_)
        link = None if self._link is None else (self._link, LINK_SHARE)
        weighted = self._shift is not None and len(self.classes_) == 2
        shift = (self._shift, self._linked(self._shift)) if weighted and link else None
        return mapped_classifier(self, self._columns, features, link, shift)

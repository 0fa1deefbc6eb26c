# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private means of sparse rows by a noisy sum, of all columns or of those that rows touch.

Rows in the unit ball with at most s non-zeros have means in a small convex set. A noisy sum
(`SparseRowSum`) is brought back into it, or shrunk by a soft threshold, at no further cost: the
projection mechanism [1]_ and soft-thresholding [2]_. Where a vector with an entry for every
column does not fit in memory, noise goes to the columns that some row touches
(`TouchedColumnSum`), and what stays below a threshold is not released.

.. [1] B. Ghazi, C. Guzmán, P. Kamath, R. Kumar and P. Manurangsi, "Differentially private
   optimization with sparse gradients", NeurIPS 2024 (Algorithm 1).
.. [2] D. L. Donoho and I. M. Johnstone, "Adapting to unknown smoothness via wavelet shrinkage",
   JASA, 1995.
"""

import math
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from skdp._recovery.shrinkage import (
    predicted_error,
    project_ksupport,
    project_l1,
    project_l1l2,
    soft_threshold,
    sure_threshold,
    universal_threshold,
)
from skdp._rows.base import ball_constraint, sum_over, without_duplicates
from skdp._rows.linear import ball_rows, counted_rows, top_entries
from skdp._rows.streams import over_rows
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import GaussianMechanism, LaplaceMechanism
from skdp.privacy.laws.calibration import gdp_mu
from skdp.privacy.laws.histogram import SparseSensitivity, StabilityHistogram

# Public facts, admitted rows, and the result of a plan: shared by all mechanisms.

#: what the parameters that are a choice may be, the default first
CHOICES = {
    "projection": ("ksupport", "l1l2", "l1"),
    "measurement": ("auto", "gaussian", "sparse-sign", "hadamard"),
    "recovery": ("auto", "constrained", "denoising", "equality"),
    "solver": ("auto", "cvxpy", "first-order"),
}


@dataclass(frozen=True)
class SparseMeanProblem:
    """Public facts of a private mean of rows in the unit ball.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data; public.
    epsilon, delta : float
        Budget.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    sparsity : int or None, default=None
        Rows have at most this many non-zero entries, by how they are admitted; more than
        `n_features` means that many. None for any number.
    nonnegative : bool, default=False
        Whether no entry of a row is negative, by how they are admitted.
    projection : {"ksupport", "l1l2", "l1"}, default="ksupport"
        Set that a released mean is projected onto.
    measurement, n_measurements, recovery, solver : str, int or None, str, str
        Parameters of the compressed-sensing mechanism.

    Raises
    ------
    ValueError
        If a parameter that all mechanisms share is unusable.
    """

    n_rows: int
    n_features: int
    epsilon: float
    delta: float
    adjacency: str
    sparsity: int | None = None
    nonnegative: bool = False
    projection: str = "ksupport"
    measurement: str = "auto"
    n_measurements: int | None = None
    recovery: str = "auto"
    solver: str = "auto"

    def __post_init__(self):
        for name in ("sparsity", "n_measurements"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, Integral)):
                raise ValueError(f"{name} must be an integer, or None; got {value!r}.")
        if self.sparsity is not None:
            if self.sparsity < 1:
                raise ValueError(f"sparsity must be at least 1, or None; got {self.sparsity!r}.")
            object.__setattr__(self, "sparsity", min(int(self.sparsity), self.n_features))
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}; got {getattr(self, name)!r}.")

    @property
    def is_pure(self):
        """Whether the budget is purely epsilon-DP."""
        return self.delta == 0


@dataclass(frozen=True)
class SparseEstimate:
    """A released mean of rows in the unit ball.

    Parameters
    ----------
    values : ndarray of shape (n_features,), or tuple (columns, values)
        The mean; as a pair, its non-zero entries and the sorted columns they stand in.
    error : float or None, default=None
        Expected Euclidean distance to the mean of the admitted rows, from released and
        public numbers.
    threshold : float or None, default=None
        Magnitude that a noisy entry had to exceed, if there was one.
    """

    values: Any
    error: float | None = None
    threshold: float | None = None


def sparse_rows(X, ball, sparsity=None, nonnegative=False, n_threads=1, weight=None):
    """Return rows that are forced into the domain of `SparseRowSum`.

    Parameters
    ----------
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        Private rows; never changed. Sparse ones never become dense.
    ball : L2Ball
        Rows are clipped into it and divided by its radius.
    sparsity : int or None, default=None
        Rows keep their largest entries, at most so many.
    nonnegative : bool, default=False
        Whether negative entries are dropped, before anything else.
    n_threads : int, default=1
        Threads for the sums.
    weight : ndarray of shape (n_rows,), default=None
        What rows count; as for `LinearRows`.

    Returns
    -------
    rows : LinearRows
        Without an intercept. A row that is not finite is null.
    """
    if nonnegative:
        X = over_rows(_without_negatives, X)
    return ball_rows(top_entries(X, sparsity), ball, n_threads, weight)


def _without_negatives(X):
    """Return rows in which negative entries are zero."""
    if not sparse.issparse(X):
        return _dropped(X)
    # a new array, which remembers nothing about the format of the old one
    X = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    # what is stored in parts has the sign of their sum
    X = without_duplicates(X)
    return sparse.csr_array((_dropped(X.data), X.indices, X.indptr), shape=X.shape)


def _dropped(values):
    kept = np.maximum(values, 0)
    # not a number that could be dropped: its row is not finite
    kept[np.isneginf(values)] = np.nan
    return kept


# One noisy sum of all columns, then a threshold or a projection.

# Where Laplace noise is predicted to err by this much less than Gaussian noise, it does on bags
# of words; they differ from the worst rows, for which errors are predicted.
_CLEARLY = 0.8


def plan_soft_threshold(problem):
    """Plan a noisy mean with the soft threshold of least estimated risk.

    Parameters
    ----------
    problem : SparseMeanProblem
        Public facts.

    Returns
    -------
    plan : NoisyMean
        With Gaussian noise or, without a delta, Laplace noise.

    Raises
    ------
    ValueError
        If there is neither a delta nor a sparsity.
    """
    return _plan("soft-threshold", problem)


def plan_projection(problem):
    """Plan a noisy mean that is projected on the means of sparse rows.

    Parameters
    ----------
    problem : SparseMeanProblem
        Public facts.

    Returns
    -------
    plan : NoisyMean
        With Gaussian noise or, without a delta, Laplace noise.

    Raises
    ------
    ValueError
        If the sparsity is not known: it is what the projection rests on.
    """
    if problem.sparsity is None:
        raise ValueError(
            "sparsity must be given for mechanism='projection', the largest number of non-zero "
            "entries of a row that count; got None. Pass sparsity, or use "
            "mechanism='soft-threshold', which needs none (but a delta greater than 0)."
        )
    return _plan("projection", problem)


def plan_auto(problem):
    """Plan a soft threshold, with the noise that is predicted to do less harm.

    Parameters
    ----------
    problem : SparseMeanProblem
        Public facts.

    Returns
    -------
    plan : NoisyMean
        With Laplace noise, and no delta spent, where rows have few non-zeros or delta is tiny.

    Raises
    ------
    ValueError
        As `plan_soft_threshold`.
    """
    plan = _plan("soft-threshold", problem)
    if problem.is_pure or problem.sparsity is None:
        return plan
    pure = _plan("soft-threshold", replace(problem, delta=0.0))
    return pure if pure.error < _CLEARLY * plan.error else plan


def _plan(mechanism, problem):
    """Return a plan with Gaussian noise, or Laplace noise if there is no delta."""
    if not problem.is_pure:
        price = GaussianMechanism(gdp_mu(problem.epsilon, problem.delta))
    elif problem.sparsity is None:
        raise ValueError(
            "sparsity must be given at delta=0, the largest number of non-zero entries of a row "
            "that count: Laplace noise is in proportion to its root; got None. Pass sparsity, "
            "or a delta greater than 0."
        )
    else:
        price = LaplaceMechanism(problem.epsilon)
    return NoisyMean(problem, mechanism, price)


@dataclass(frozen=True)
class NoisyMean:
    """One noisy sum of all rows, then a threshold or a projection.

    Parameters
    ----------
    problem : SparseMeanProblem
        Public facts.
    mechanism : {"soft-threshold", "projection"}
        Whether noise is removed by a threshold first.
    price : GaussianMechanism or LaplaceMechanism
        What the sum is released by.
    """

    problem: SparseMeanProblem
    mechanism: str
    price: Any

    @property
    def law(self):
        """Law of the noise."""
        return "laplace" if isinstance(self.price, LaplaceMechanism) else "gaussian"

    @property
    def gaussian(self):
        """Whether all noise is Gaussian."""
        return self.law == "gaussian"

    @property
    def delta(self):
        """The delta that is spent."""
        return 0.0 if self.law == "laplace" else self.problem.delta

    @property
    def query(self):
        """What is released."""
        problem = self.problem
        return SparseRowSum(problem.n_features, problem.sparsity, problem.nonnegative)

    @property
    def scale(self):
        """Scale of the noise of an entry of the mean."""
        problem = self.problem
        facts = self.query.sensitivity(problem.adjacency, problem.n_rows)
        return self.price.calibrate(facts, problem.n_features).scale / problem.n_rows

    @property
    def error(self):
        """Expected Euclidean error after a projection, from public numbers."""
        query = self.query
        return predicted_error(self.law, self.scale, query.n_features, query.n_nonzeros)

    @property
    def risk_is_known(self):
        """Whether an estimate of the risk errs by less than the risk of the zero vector.

        The variance of the noise on d entries together is known to a standard deviation of
        ``sqrt(2 d)`` (Laplace noise: ``sqrt(5 d)``) times that of one; the risk of zeros is 1.
        """
        variance, fourth = (2.0, 5.0) if self.law == "laplace" else (1.0, 2.0)
        return variance * self.scale**2 * math.sqrt(fourth * self.problem.n_features) < 1.0

    def run(self, curator):
        """Release the mean.

        Parameters
        ----------
        curator : Curator
            Holds rows of `sparse_rows`.

        Returns
        -------
        estimate : SparseEstimate
            With a value for every feature.
        """
        problem = self.problem
        noisy = curator.release(self.query, self.price) / problem.n_rows
        error, threshold = self.error, None
        if self.mechanism == "soft-threshold":
            threshold = universal_threshold(self.scale, problem.n_features, self.law)
            if self.risk_is_known:
                # an estimate of a small risk may be negative: no less than what one entry costs
                least = threshold**2 + self.scale**2
                threshold, risk = sure_threshold(noisy, self.scale, problem.nonnegative, self.law)
                error = min(error, math.sqrt(max(risk, least)))
        if problem.nonnegative:
            noisy = np.maximum(noisy - (threshold or 0.0), 0.0)
        elif threshold:
            noisy = soft_threshold(noisy, threshold)
        return SparseEstimate(into_convex_set(noisy, problem), error, threshold)


@dataclass(frozen=True)
class SparseRowSum:
    """Sum of rows in the unit ball, of which public facts lower the sensitivity.

    Parameters
    ----------
    n_features : int
        Dimension d.
    sparsity : int or None, default=None
        No row has more non-zero entries; None for any number.
    nonnegative : bool, default=False
        Whether no row has a negative entry.
    """

    n_features: int
    sparsity: int | None = None
    nonnegative: bool = False

    @property
    def name(self):
        """What the statistic is."""
        signs = "non-negative " if self.nonnegative else ""
        limit = "" if self.sparsity is None else f" with at most {self.n_nonzeros} non-zeros"
        return f"sum of {signs}rows in the unit ball{limit}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_features

    @property
    def n_nonzeros(self):
        """Most non-zero entries of a row."""
        return self.n_features if self.sparsity is None else min(self.sparsity, self.n_features)

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities.

        Proof. A row z has ``|z|_2 <= 1`` and at most s non-zeros, so ``|z|_1 <= sqrt(s)``
        (Cauchy-Schwarz). Zero-out removes one row. Under replace-one,
        ``|z - z'|_2^2 <= 2 - 2 <z, z'>``, which is at most 4, and at most 2 if no entry is
        negative, for then ``<z, z'> >= 0``. ``|z - z'|_1`` is at most ``2 sqrt(s)`` and,
        there being d coordinates, at most sqrt(d) times the l2 norm. A group, whose weights add
        up to at most 1, contributes a mean of rows, and of zero: it is no longer, and two are no
        further apart, than the farthest of these.
        """
        bound, root = float(n_rows), math.sqrt(self.n_nonzeros)
        if adjacency == "zero-out":
            return Sensitivity(l1=root, l2=1.0, bound=bound, theorem="norm of the longest row")
        l2 = math.sqrt(2.0) if self.nonnegative else 2.0
        l1 = min(2.0 * root, math.sqrt(self.n_features) * l2)
        theorem = "rows at a right angle" if self.nonnegative else "opposite rows"
        return Sensitivity(l1=l1, l2=l2, bound=bound, theorem=theorem)

    def partial(self, chunk):
        """Return the sum of a chunk's rows."""
        return chunk.combine(counted_rows(chunk))

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (n_features,)."""
        return sum_over(rows, self.partial, self.size)


def into_convex_set(values, problem):
    """Return released values projected onto a set that has every mean of the rows.

    Parameters
    ----------
    values : ndarray of shape (n_features,)
        Released numbers; none of them negative if the rows are non-negative.
    problem : SparseMeanProblem
        Public facts.

    Returns
    -------
    projected : ndarray of shape (n_features,)
        No further from the mean: projections onto a convex set move no two points apart.
    """
    if problem.sparsity is None:
        return ball_constraint(values, 1.0)
    sparsity = min(problem.sparsity, problem.n_features)
    if problem.projection == "ksupport":
        return project_ksupport(values, sparsity, 1.0)
    radius = math.sqrt(sparsity)
    if problem.projection == "l1":
        return project_l1(values, radius)
    return project_l1l2(values, radius, 1.0)


# Sums over the columns that rows touch, for dictionaries that are not known beforehand.

# columns of chunks that are held before they are put together
_WAITING = 1 << 20


def plan_histogram(problem):
    """Plan a mean of the columns that rows touch.

    Parameters
    ----------
    problem : SparseMeanProblem
        Public facts.

    Returns
    -------
    plan : HistogramMean
        What will be released.

    Raises
    ------
    ValueError
        If there is no sparsity, or the budget does not allow for Gaussian noise.
    """
    if problem.sparsity is None:
        raise ValueError(
            "sparsity must be given for mechanism='histogram': the threshold follows from the "
            "number of columns that a row may touch; got None."
        )
    if problem.delta == 0:
        raise ValueError(
            "delta must be greater than 0 for mechanism='histogram', which may release a column "
            "that one row alone touches; got 0. Purely private is mechanism='projection'."
        )
    StabilityHistogram(problem.epsilon, problem.delta)
    return HistogramMean(problem)


@dataclass(frozen=True)
class HistogramMean:
    """One release of the columns that rows touch, and of the sums over them.

    Parameters
    ----------
    problem : SparseMeanProblem
        Public facts, with a sparsity and a delta greater than 0.
    """

    problem: SparseMeanProblem

    #: mechanism that this is
    mechanism = "histogram"

    #: whether all noise is Gaussian
    gaussian = False

    @property
    def delta(self):
        """What may be spent of delta."""
        return self.problem.delta

    def run(self, curator):
        """Release the mean.

        Parameters
        ----------
        curator : Curator
            Holds rows of `sparse_rows`.

        Returns
        -------
        estimate : SparseEstimate
            Its values are a pair (columns, values); nothing has the length of a row. The
            error is an upper estimate: what is not released is taken to be as large as the
            sparsity and the threshold allow.
        """
        problem = self.problem
        n_rows, sparsity = problem.n_rows, problem.sparsity
        query = TouchedColumnSum(problem.n_features, sparsity, problem.nonnegative)
        price = StabilityHistogram(problem.epsilon, problem.delta)
        columns, sums = curator.release(query, price)
        noise = curator.ledger.releases[-1].noise
        # rows have l1 norm sqrt(sparsity) at most; sums below the threshold share what is left
        hidden = max(0.0, n_rows * math.sqrt(query.n_nonzeros) - np.abs(sums).sum())
        square = len(sums) * noise.scale**2 + noise.threshold * hidden
        return SparseEstimate(
            values=(columns, ball_constraint(sums / n_rows, 1.0)),
            error=min(1.0, math.sqrt(square) / n_rows),
            threshold=noise.threshold / n_rows,
        )


@dataclass(frozen=True)
class TouchedColumnSum(SparseRowSum):
    """Sum of rows in the unit ball, over the columns in which some row is not zero.

    Parameters
    ----------
    n_features : int
        Dimension d; may be far more than memory holds.
    sparsity : int
        No row has more non-zero entries.
    nonnegative : bool, default=False
        Whether no row has a negative entry.
    """

    @property
    def name(self):
        """What the statistic is."""
        return super().name + ", over the columns that are touched"

    def sensitivity(self, adjacency, n_rows):
        """State what a row can do to the sums, and how many columns it can touch.

        Proof. Norms are those of `SparseRowSum`. A row touches a column if it has a non-zero
        there, so at most `n_nonzeros` columns. A sum over a column that neither of two
        neighbours' rows touches is a sum of the same floats in the same order: equal to
        the last bit, so that rounding to the grid cannot part them.
        """
        facts = super().sensitivity(adjacency, n_rows)
        return SparseSensitivity(
            **{**vars(facts), "theorem": f"{facts.theorem}; a row touches few columns"},
            rows=1 if adjacency == "zero-out" else 2,
            columns=self.n_nonzeros,
            nonnegative=self.nonnegative,
        )

    def evaluate(self, rows):
        """Return the touched columns, sorted, and the sums over them."""
        columns = _touched(rows.chunks)

        def partial(chunk):
            where, values, _ = entries(chunk)
            place = np.searchsorted(columns, where)
            # of no entries numpy returns integers, to which no later chunk could be added
            return np.bincount(place, values, len(columns)).astype(np.float64, copy=False)

        return columns, sum_over(rows, partial, len(columns))


def entries(chunk):
    """Return the columns and values of a chunk's non-zero entries, row by row.

    Parameters
    ----------
    chunk : LinearChunk
        Rows without an intercept. Null rows have no entries.

    Returns
    -------
    columns, values, rows : ndarray of int64, ndarray of float64, ndarray of int64
        Whether an entry is one depends on its row alone: not on sums, in which entries may
        cancel, and not on what a format stores.
    """
    X = chunk.X
    if sparse.issparse(X):
        row, columns, values = (
            np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)),
            X.indices,
            X.data,
        )
    else:
        row, columns = np.nonzero(X)
        values = X[row, columns]
    values = values.astype(np.float64, copy=False) * chunk.factor[row]
    kept = (values != 0) & np.isfinite(chunk.norm)[row]
    return columns[kept].astype(np.int64, copy=False), values[kept], row[kept]


def _touched(chunks):
    """Return the distinct columns of the entries of all chunks, sorted."""
    columns, waiting, n_waiting = np.empty(0, dtype=np.int64), [], 0
    for chunk in chunks:
        waiting.append(_distinct(entries(chunk)[0]))
        n_waiting += len(waiting[-1])
        # often enough for memory, seldom enough for time
        if n_waiting > max(len(columns), _WAITING):
            columns, waiting, n_waiting = _distinct(np.concatenate([columns, *waiting])), [], 0
    return _distinct(np.concatenate([columns, *waiting]))


def _distinct(columns):
    """Return the distinct columns, sorted; by a sort, which beats a hash of so many."""
    columns = np.sort(columns)
    return columns[np.diff(columns, prepend=-1) > 0]

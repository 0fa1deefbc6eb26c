# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private means of sparse rows by compressed sensing: few noisy measurements, then recovery.

Algorithm 2 of [1]_. The sum of every row's measurements by a public matrix is released
(`SketchSum`), and the sparsest mean that explains it is found by convex programs
(`skdp._recovery.measurements`).

.. [1] B. Ghazi, C. Guzmán, P. Kamath, R. Kumar and P. Manurangsi, "Differentially private
   optimization with sparse gradients", NeurIPS 2024.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import chdtri

from skdp._recovery.measurements import measurement_matrix, recover
from skdp._recovery.shrinkage import predicted_error
from skdp._rows.base import row_norms, sum_over
from skdp.location._sparse_noisy import (
    SparseEstimate,
    SparseMeanProblem,
    into_convex_set,
)
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.privacy.laws.calibration import gdp_mu

# share of the rows of norm 1 that are clipped although their measurements are typical
_CLIPPED = 1e-3
# chance that the noise is longer than the denoising form allows for
_MISSED = 0.05
# share of the measurements that must be left unfitted for the residual to be telling
_FREEDOM = 0.05
# fewer measurements than this recover nothing
_FEWEST = 16
# non-zeros of a row that are assumed, for the number of measurements only, if none are given
_TYPICAL_SPARSITY = 32
# measurements that are held at once, about
_AT_ONCE = 1 << 21


def plan_sketch(problem):
    """Plan a mean from few noisy measurements.

    Parameters
    ----------
    problem : SparseMeanProblem
        Public facts.

    Returns
    -------
    plan : SketchMean
        With as many measurements as were asked for; or the order of magnitude at which
        the noise outweighs what is lost by measuring less often, and at most one for every
        two features.

    Raises
    ------
    ValueError
        If there is no delta, there are more measurements than features, or the ball of the
        constrained form is not known.
    """
    if problem.is_pure:
        raise ValueError(
            "delta must be greater than 0 for mechanism='compressed-sensing': measurements "
            "spread every entry of a row, so that Laplace noise would be calibrated to an l1 "
            "norm of about sqrt(n_measurements); got 0. Use mechanism='projection' with a "
            "sparsity, or raise delta."
        )
    if problem.recovery == "constrained" and problem.sparsity is None:
        raise ValueError(
            "sparsity must be given for recovery='constrained': the l1 ball has the radius "
            "sqrt(sparsity); got None. Use recovery='denoising', which needs none."
        )
    mu = gdp_mu(problem.epsilon, problem.delta)
    return SketchMean(problem, _n_measurements(problem, mu), mu)


def _n_measurements(problem, mu):
    """Return a valid number of measurements, from public numbers."""
    d, asked = problem.n_features, problem.n_measurements
    if asked is None:
        s = min(problem.sparsity or _TYPICAL_SPARSITY, d)
        # n eps sqrt(s log(d / s) / log(1 / delta)), with mu for eps / sqrt(2 log(1 / delta))
        order = problem.n_rows * mu * math.sqrt(2 * s * max(1.0, math.log(d / s)))
        # one number for every two features at most, or nothing would be compressed; of one
        # feature there is nothing to leave out
        return int(min(max(d // 2, 1), max(_FEWEST, order)))
    if not 1 <= asked <= d:
        raise ValueError(
            f"n_measurements must be at least 1, and at most the number of features, {d}; got "
            f"{asked!r}. With so many measurements use mechanism='soft-threshold', which "
            "measures every feature once and loses nothing."
        )
    return int(asked)


@dataclass(frozen=True)
class SketchMean:
    """The sum of all rows' measurements with Gaussian noise, then sparse recovery.

    Parameters
    ----------
    problem : SparseMeanProblem
        Public facts.
    n_measurements : int
        Number m of measurements, at most the number of features.
    mu : float
        Gaussian-DP price of the release.
    """

    problem: SparseMeanProblem
    n_measurements: int
    mu: float

    #: whether all noise is Gaussian
    gaussian = True
    #: mechanism that this is
    mechanism = "compressed-sensing"

    @property
    def delta(self):
        """The delta that is spent."""
        return self.problem.delta

    @property
    def forms(self):
        """The programs that are solved; of several, the best one is kept."""
        if self.problem.recovery != "auto":
            return (self.problem.recovery,)
        return ("denoising",) if self.problem.sparsity is None else ("denoising", "constrained")

    @property
    def _n_nonzeros(self):
        sparsity, n_features = self.problem.sparsity, self.problem.n_features
        return n_features if sparsity is None else min(sparsity, n_features)

    def query(self):
        """Return what is released, with its measurement matrix."""
        problem, m = self.problem, self.n_measurements
        matrix = measurement_matrix(problem.measurement, m, problem.n_features)
        # Measurements of a row have about its norm, and their square the law of chi^2 / m, if
        # the matrix is Gaussian. As columns have norm 1, they are no longer than the row's
        # l1 norm either: one non-zero is never clipped.
        typical = math.sqrt(chdtri(m, _CLIPPED) / m)
        return SketchSum(matrix, min(math.sqrt(self._n_nonzeros), typical, matrix.stretch))

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
        problem, m, query = self.problem, self.n_measurements, self.query()
        price = GaussianMechanism(self.mu)
        facts = query.sensitivity(problem.adjacency, problem.n_rows)
        scale = price.calibrate(facts, m).scale / problem.n_rows
        measured = curator.release(query, price) / problem.n_rows
        found = [self._recovered(form, query.measurement, measured, scale) for form in self.forms]
        # released numbers decide which is kept: of equal ones the first
        error, values = min(found, key=lambda pair: pair[0])
        if problem.nonnegative:
            values = np.maximum(values, 0.0)
        return SparseEstimate(into_convex_set(values, problem), min(error, self.error(scale)))

    def _recovered(self, form, matrix, measured, scale):
        """Return the estimated error of a program's solution, and the solution."""
        values = recover(
            matrix,
            measured,
            form,
            radius=math.sqrt(self._n_nonzeros),
            slack=scale * (math.sqrt(len(measured)) + math.sqrt(-2 * math.log(_MISSED))),
            nonnegative=self.problem.nonnegative,
            solver=self.problem.solver,
        )
        if form == "equality":
            # it leaves no residual to tell anything
            return math.inf, values
        return _observed_error(matrix, measured, values, scale), values

    def error(self, scale):
        """Return the Euclidean error to expect of the worst rows, from public numbers.

        Parameters
        ----------
        scale : float
            Noise of a measurement of the mean.

        Returns
        -------
        error : float
            At most 1, that of the zero vector, or sqrt(2) if the noise is fitted.

        Notes
        -----
        What a measurement says about an entry is blurred by noise and by what is still
        unknown of the other entries, of variance ``error^2 / m`` together (state evolution;
        Donoho, Maleki and Montanari, 2011). So the error is that of one entry's measurement
        each, with that much noise: a fixed point.
        """
        problem, m, error = self.problem, self.n_measurements, 1.0
        for _ in range(100):
            level = math.hypot(scale, error / math.sqrt(m))
            error = predicted_error("gaussian", level, problem.n_features, self._n_nonzeros)
        if self.forms == ("equality",):
            # the noise is fitted, and what inverts a nearly square matrix lengthens it
            spare = 1 - m / problem.n_features
            fitted = scale * math.sqrt(m / spare) if spare > 0 else math.inf
            return min(math.sqrt(2.0), math.hypot(error, fitted))
        return error


def _observed_error(matrix, measured, values, scale):
    """Return the error that the residual of a recovered vector suggests.

    The risk estimate of Bayati, Erdogdu and Montanari (2013) for the lasso: the residual,
    corrected for the entries that were fitted, has the variance of noise and error together.
    """
    m = matrix.shape[0]
    # interior-point methods leave something almost everywhere
    freedom = m - np.count_nonzero(np.abs(values) > 1e-6 * np.abs(values).max())
    # with few measurements, or if the noise was fitted, what is left says nothing
    if m < _FEWEST or freedom < _FREEDOM * m:
        return math.inf
    residual = np.linalg.norm(matrix.forward(values) - measured)
    blur = residual * math.sqrt(m) / freedom
    # an estimate of a small error may be negative: no less than its standard deviation
    return math.sqrt(max(m * (blur - scale) * (blur + scale), math.sqrt(2 * m) * blur * blur))


@dataclass(frozen=True, eq=False)
class SketchSum:
    """Sum of the measurements of rows, each row's scaled down to a radius.

    Parameters
    ----------
    measurement : Measurement
        Public matrix A of shape (n_measurements, n_features), whatever it is.
    radius : float
        Largest norm of what a row contributes, greater than 0; public.

    Notes
    -----
    Rows z are `LinearRows` of the unit ball without an intercept, sparse or dense. A row
    contributes ``A z min(1, radius / |A z|)``, and a null row nothing.
    """

    measurement: Any
    radius: float

    @property
    def name(self):
        """What the statistic is."""
        return "sum of clipped measurements of rows"

    @property
    def size(self):
        """Number of measurements."""
        return self.measurement.shape[0]

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities: the radius, or twice that; in l1 sqrt(m) times.

        Proof. What a row contributes has l2 norm at most `radius`, whatever the matrix makes
        of it; a null row contributes zero. Zero-out removes one contribution, replace-one
        exchanges one for another, which differ by at most 2 `radius`: attained by opposite
        rows that are clipped. Of m numbers the l1 norm is at most sqrt(m) times the l2 norm
        (Cauchy-Schwarz). A group, whose weights add up to at most 1, contributes a mean of
        contributions, and of zero.
        """
        if adjacency == "zero-out":
            reach, theorem = self.radius, "clipped measurements are no longer than the radius"
        else:
            reach, theorem = 2 * self.radius, "two clipped rows of measurements: <= 2 radii"
        l1 = math.sqrt(self.size) * reach
        return Sensitivity(l1=l1, l2=reach, bound=n_rows * self.radius, theorem=theorem)

    def partial(self, chunk):
        """Return the clipped measurements of a chunk's rows, summed."""
        total, n_rows = np.zeros(self.size), len(chunk.norm)
        entries = chunk.X.nnz if sparse.issparse(chunk.X) else chunk.X.size
        width = min(self.size, self.measurement.spread * (1 + entries // n_rows))
        step = max(1, _AT_ONCE // width)
        for start in range(0, n_rows, step):
            rows = slice(start, min(start + step, n_rows))
            # dense rows too: products of sparse rows are made row by row, so that no row
            # changes the rounding of another
            X = sparse.csr_array(chunk.X[rows], dtype=np.float64)
            with np.errstate(under="ignore"):
                sketches = self.measurement.sketches(X)
                factor = chunk.factor[rows]
                length = row_norms(sketches) * factor
                weight = factor * (self.radius / np.maximum(length, self.radius))
                weight[np.isinf(chunk.norm[rows])] = 0.0
                if chunk.weight is not None:
                    weight *= chunk.weight[rows]
                total += sketches.T @ weight
        return total

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (n_measurements,)."""
        return sum_over(rows, self.partial, self.size)

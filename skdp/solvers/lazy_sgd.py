# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Stochastic gradient descent for sparse rows, with noise added when a coefficient is read.

A step updates only the columns with entries in its batch. The noise of all other columns is
postponed, and drawn at once when they are read. The result has the same distribution as `SGD` with
plain steps, in time independent of the number of features. Proofs are in
docs/user_guide/proofs_sparse_erm.rst.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from skdp._rows.base import sum_over
from skdp._rows.linear import LinearChunk
from skdp.privacy.laws.additive import SampledGaussianMechanism
from skdp.privacy.laws.late_noise import LateNoise
from skdp.solvers.base import Fit, Solver
from skdp.solvers.gradient import (
    GRADIENT_CONSTRAINTS,
    NEVER_PURE,
    ClippedGradient,
    gradient_facts,
    skipped_steps,
)
from skdp.solvers.sgd import BATCH_SIZE, SgdPlan, plan_sgd


class LazySGD(Solver):
    """Noisy gradients of random batches, in time independent of the number of features.

    For very sparse rows with many features, such as words.

    Parameters
    ----------
    batch_size : float, default=None
        Expected number of rows of a Poisson batch; at most the number of rows. None chooses it
        from public quantities.
    clipping_norm : float, default=None
        Bound on the norm of one row's gradient, for rows in units of `data_norm`. None chooses
        it from public quantities.
    step_size : float, default=None
        Step along the gradient of the mean loss, for rows in units of `data_norm`. None
        chooses it from public quantities.
    sparsity : int, default=None
        For classification: public bound on the number of non-zero features of a row; rows with
        more keep their largest entries. None: no bound.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1.

    See Also
    --------
    SGD : Batches of other kinds, accelerated steps, coefficients in a ball, dense rows.

    Notes
    -----
    Steps are plain and secret: only the average of the later iterates is released. It has the same
    distribution as for plain `SGD`.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from skdp import DPLogisticRegression, solvers
    >>> y = np.random.default_rng(0).integers(2, size=5000)
    >>> X = sparse.csr_array((np.ones(5000), (np.arange(5000), y)), shape=(5000, 10**6))
    >>> model = DPLogisticRegression(
    ...     solver=solvers.LazySGD(), data_norm=1.0, classes=[0, 1], random_state=0
    ... )
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    word = "lazy-sgd"
    tasks = ("classification",)
    needs_delta = NEVER_PURE
    unused = {
        "coef_bound": "a projection reads all coefficients in every step, and most of them have "
        "no value until the end",
    }

    _parameter_constraints = {**GRADIENT_CONSTRAINTS, "batch_size": BATCH_SIZE}

    def __init__(
        self,
        *,
        batch_size: float | None = None,
        clipping_norm: float | None = None,
        step_size: float | None = None,
        sparsity: int | None = None,
        intercept_scaling: float | None = None,
    ) -> None:
        self.batch_size = batch_size
        self.clipping_norm = clipping_norm
        self.step_size = step_size
        self.sparsity = sparsity
        self.intercept_scaling = intercept_scaling

    def plan(self, problem: Any) -> Fit:
        """Plan the batches and the steps from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : LazySgdFit
            The plan.

        Raises
        ------
        ValueError
            If a batch is larger than the data, or the budget too small for the steps.
        """
        steps = plan_lazy_sgd(
            gradient_facts(problem, self.step_size),
            budget=(problem.epsilon, problem.delta, problem.scale_mu, problem.priced),
            batch_size=self.batch_size,
        )
        return LazySgdFit(problem, steps)


# The plan of plain stochastic gradient descent whose noise is added late.
#
# The constants below were chosen on data, as those of `plan_gradient`, and bear on accuracy
# alone. Two facts are behind them. After steps that add up to a length s, noise of Gaussian-DP
# parameter mu moves the prediction of a row of length 1 by about ``s clip / M``, M being the signal
# to noise ratio of `plan_gradient`: it does not matter how many steps and how many coefficients
# there are. And T batches of which each would cost half a unit of mu, were its rows known, cost
# hardly more than as many full passes with the same relative noise.


# What noise may do to the prediction of a row of length 1.
_REACH = 1.2
# Steps are no longer than so many clipping norms: there are more of them instead, up to a number.
_LONGEST, _STEPS, _MOST_STEPS = 100.0, 400, 4000
# Batches have a half of this in mu each; and together they read the rows so many times at most.
_HALF, _PASSES, _SMALLEST_BATCH = 0.53, 30, 256


@dataclass(frozen=True)
class LazyPlan(SgdPlan):
    """Plan of lazy stochastic gradient descent: an `SgdPlan` with constant plain steps."""

    @property
    def decay(self):
        """Factor of a coefficient in the proximal map of the penalty."""
        return 1.0 / (1.0 + self.step_size * self.l2)

    @property
    def n_skipped(self):
        """Number of first steps left out of the average."""
        return skipped_steps(self.n_steps)


def plan_lazy_sgd(problem, *, budget, batch_size=None):
    """Choose steps, batches and noise from public quantities.

    Parameters
    ----------
    problem : dict
        The arguments of `plan_gradient`; `mu` is for full batches, and `radius` is None.
    budget : tuple (epsilon, delta, mu, priced)
        As for `plan_sgd`.
    batch_size : float, default=None
        Expected rows of a batch. None chooses it.

    Returns
    -------
    plan : LazyPlan
        The plan.

    Raises
    ------
    ValueError
        If the batch is larger than the data, or the budget too small for the steps.
    """
    moved = 1 if problem["adjacency"] == "zero-out" else 2
    n_rows, mu = problem["n_rows"], problem["mu"]
    length = _REACH * n_rows * mu / moved
    n_steps = problem["n_steps"] or math.ceil(min(max(length / _LONGEST, _STEPS), _MOST_STEPS))
    if batch_size is None:
        rate = min(mu / moved / _HALF / math.sqrt(n_steps), _PASSES / n_steps)
        batch_size = min(n_rows, max(_SMALLEST_BATCH, math.ceil(rate * n_rows)))
    steps = plan_sgd(
        {**problem, "n_steps": n_steps}, budget=budget, batch_size=batch_size, momentum=False
    )
    plan = LazyPlan(**{**vars(steps), "adaptive": False})
    if problem["step_size"] is not None:
        return plan
    return replace(plan, step_size=min(length / n_steps, _LONGEST) / plan.clip)


# The clipped gradient of a linear model's loss, in the columns that a batch touches.


class TouchedRows:
    """Rows restricted to the columns with entries."""

    def __init__(self, chunks, n_threads):
        self.chunks, self.n_threads = chunks, n_threads
        self.n_entries = sum(chunk.X.nnz for chunk in chunks)


@dataclass(frozen=True, eq=False)
class SparseGradient:
    """Sum over rows of the clipped loss gradient, for rows with few entries.

    Parameters
    ----------
    n_coefs : int
        Number of coefficients of one output, an intercept included.
    loss : object
        Pointwise loss.
    clip : float
        Bound on the Euclidean (for several outputs, Frobenius) norm of one row's gradient,
        intercept included.
    intercept : bool
        Whether the last coefficient is an intercept: every batch changes it, even an empty one,
        and it does not decay.
    step, decay : float, float
        A point is ``-step`` times the sums ``u_t = decay (u_{t-1} + gradient)``.

    Notes
    -----
    The gradient is `ClippedGradient`, the only clipping in the library. The columns that a batch
    changes are private: they depend on the entries of its rows. Only `LateNoise` sees them, and it
    adds noise to all other columns too.
    """

    n_coefs: int
    loss: Any
    clip: float
    intercept: bool
    step: float
    decay: float
    #: noise of several steps is drawn at once, which has no exact discrete form
    idealised: ClassVar[bool] = True

    @property
    def name(self):
        """Name of the statistic."""
        return f"unpublished gradient of {type(self.loss).__name__}, clipped to {self.clip:.6g}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_coefs * self.loss.n_outputs

    @property
    def shape(self):
        """Numbers of columns and of outputs."""
        return self.n_coefs, self.loss.n_outputs

    @property
    def n_free(self):
        """Number of columns at the end that do not decay."""
        return int(self.intercept)

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: clip (zero-out) or 2 clip (replace-one).

        Proof. It is that of `ClippedGradient` at the same point: in all columns but those
        touched the gradient is zero.
        """
        return self._gradient(np.zeros(0)).sensitivity(adjacency, n_rows)

    def _gradient(self, coef):
        return ClippedGradient(coef, self.loss, self.clip)

    def touched(self, rows):
        """Return the sorted columns with entries, and the rows restricted to them.

        Parameters
        ----------
        rows : LinearRows
            A batch, sparse or dense.

        Returns
        -------
        columns : ndarray of shape (n_touched,)
            An intercept is the last.
        touched : TouchedRows
            The same rows without the other columns.
        """
        parts = [_batch_entries(chunk.widened().X) for chunk in rows.chunks]
        columns, place = np.unique(
            np.concatenate([part.indices for part in parts]), return_inverse=True
        )
        ends = np.cumsum([part.nnz for part in parts])[:-1]
        chunks = []
        for chunk, part, local in zip(rows.chunks, parts, np.split(place, ends), strict=True):
            X = sparse.csr_array(
                (part.data, local, part.indptr), shape=(part.shape[0], len(columns))
            )
            chunks.append(LinearChunk(X, chunk.factor, chunk.norm, chunk.target, chunk.intercept))
        if self.intercept:
            columns = np.append(columns, self.n_coefs - 1)
        return columns, TouchedRows(chunks, rows.n_threads)

    def evaluate_at(self, part, values):
        """Return the gradient in the columns of `touched`.

        Parameters
        ----------
        part : TouchedRows
            Result of `touched`.
        values : ndarray of shape (n_touched, n_outputs)
            The sums in these columns.

        Returns
        -------
        gradient : ndarray of shape (n_touched, n_outputs)
            The sum over rows.
        """
        coef = -self.step * values.T
        if self.loss.n_outputs == 1:
            coef = coef[0]
        total = sum_over(part, self._gradient(coef).partial, values.size)
        return total.reshape(values.shape[::-1]).T


def _batch_entries(X):
    """Return rows as a CSR array without stored zeros; never changes them."""
    if sparse.issparse(X) and not np.all(X.data):
        X = X.copy()
        X.eliminate_zeros()
    return sparse.csr_array(X)


@dataclass(frozen=True)
class LazySgdFit(Fit):
    """Noisy gradients of random batches, with the average iterate as the only release."""

    steps: LazyPlan

    @property
    def n_iter(self):
        """Number of steps."""
        return self.steps.n_steps

    def run(self, curator):
        """Charge for all steps, make them behind the gate, and scale the result."""
        steps, problem = self.steps, self.problem
        # the expected size, never the realised one, which says how many rows there are
        scale = steps.step_size / steps.sampling.batch_size
        query = SparseGradient(
            problem.n_coefs, problem.loss, steps.clip, steps.intercept, scale, steps.decay
        )
        mechanism = SampledGaussianMechanism(steps.mu_batch, steps.sampling)
        sums = curator.release(query, LateNoise(mechanism, steps.n_steps, steps.n_skipped))
        return (-scale * sums.T).reshape(problem.shape)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Linear-time phases: every row is read once, in one of about log2(n) phases.

Phase i makes one pass of gradient descent over half of the remaining rows, from the last release,
and releases its average iterate with noise. The steps, and the noise with them, shrink fourfold
per phase (Feldman, Koren and Talwar 2020). No row is in two phases, so each row pays for one
release. The method is for the expected loss on new rows; for the loss on the given rows, several
passes are better.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._rows.base import SMALLEST_CHUNK, ball_constraint
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.solvers.base import Fit, Solver
from skdp.solvers.disjoint import public_order


class OnePass(Solver):
    """Linear-time phases of gradient descent: every row is read once.

    For the loss on new rows, and for smooth losses. All rows must be in memory.

    Parameters
    ----------
    sparsity : int, default=None
        For classification: public bound on the number of non-zero features of a row; rows with
        more keep their largest entries. None: no bound.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1.

    See Also
    --------
    skdp.solvers.Phased : Phases that read all rows; more accurate in our benchmarks.

    Notes
    -----
    No row is in two phases: each phase has the whole budget. Steps are short enough, relative to
    the second derivative, to be non-expansive. This bounds the distance between the results of
    neighbours.

    References
    ----------
    .. [1] V. Feldman, T. Koren and K. Talwar, "Private stochastic convex optimization: optimal
       rates in linear time", STOC 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, papers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 2)) / 2
    >>> y = X[:, 0] > 0
    >>> model = DPLogisticRegression(
    ...     solver=papers.OnePass(), data_norm=1.0, classes=[0, 1], random_state=0
    ... )
    >>> model.fit(X, y).score(X, y) > 0.8
    True
    """

    mechanism = "output"
    tasks = ("classification",)
    needs_delta = "which adds Gaussian noise in several phases"
    needs_second_derivative = "its proof rests on steps that are short against it"
    unused = {
        "max_iter": "the number of rows decides how many phases there are",
    }
    streams = False

    def __init__(
        self, *, sparsity: int | None = None, intercept_scaling: float | None = None
    ) -> None:
        self.sparsity = sparsity
        self.intercept_scaling = intercept_scaling

    def plan(self, problem: Any) -> Fit:
        """Plan the phases from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : OnePassFit
            The plan.
        """
        mu = problem.mu
        radius = problem.radius or problem.expected_radius
        reach = problem.loss.lipschitz * problem.row_norm
        curvature = problem.loss.smoothness * problem.row_norm**2
        smoothness = curvature + problem.penalty / problem.n_rows
        signal = mu / problem.moved_rows / math.sqrt(problem.size)
        step = radius / reach * min(1 / math.sqrt(problem.n_rows), signal)
        parts: list[tuple[int, int]] = []
        steps: list[tuple[float, int]] = []
        start, left = 0, problem.n_rows
        while left and len(parts) < 40:
            size = (left + 1) // 2
            step = min(step, 2 / smoothness * (1 - 1e-12))
            # a batch with a longer step does the work of as many steps of single rows
            batch = max(1, min(int(1 / smoothness / step), size // 16))
            parts.append((start, start + size))
            steps.append((step * batch, batch))
            start, left, step = start + size, left - size, step / 4
        return OnePassFit(problem, mu, tuple(parts), tuple(steps))


# One pass of gradient descent over rows, each of which is used once.


@dataclass(frozen=True, eq=False)
class OnePassDescent:
    """Average iterate of one pass of projected gradient steps, batch after batch.

    Parameters
    ----------
    start : ndarray of shape (size,)
        Public starting point.
    loss : object
        Smooth loss of `skdp._losses`.
    row_norm : float
        Bound on the norm of a row.
    step : float
        Step along the mean gradient of a batch; ``step * (loss.smoothness * row_norm^2 +
        penalty)`` is at most 2.
    batch : int
        Rows of a batch.
    penalty : float
        Strength of ``penalty/2 |w|^2`` next to the MEAN loss.
    radius : float or None
        The iterates stay in this ball.
    """

    start: Any
    loss: Any
    row_norm: float
    step: float
    batch: int
    penalty: float = 0.0
    radius: float | None = None

    def __post_init__(self):
        smoothness = self.loss.smoothness * self.row_norm**2 + self.penalty
        if not self.step * smoothness <= 2:
            raise ValueError("step is too long: the descent would not be non-expansive.")

    @property
    def name(self):
        """Name of the statistic."""
        return f"one pass over {type(self.loss).__name__}, batches of {self.batch}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.start.size

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: step L X / batch (zero-out), twice that (replace-one).

        Proof. A gradient step on a convex function of smoothness at most 2 / step is
        non-expansive, and so is a projection. Up to the batch of the row in which
        neighbours differ the iterates agree; its step moves them apart by at most step /
        batch times the difference of the row's gradients, of norm at most L X each; no
        later step moves them further apart. The same then holds for their average.
        In floats every step rounds anew, relative to the iterate, which may be far longer
        than a late phase's step is: a bound on all of it is added.
        """
        longest_step = self.step * self.loss.lipschitz * self.row_norm
        reach = longest_step / self.batch
        theorem = "one step of one batch, then non-expansive steps"
        if adjacency != "zero-out":
            reach *= 2
        # a batch may end where a chunk of rows does
        n_steps = math.ceil(n_rows / self.batch) + math.ceil(n_rows / SMALLEST_CHUNK)
        farthest = float(np.linalg.norm(self.start)) + n_steps * longest_step
        rounding = 8 * farthest + (self.batch + self.size + 32) * longest_step
        reach += 2 * (n_steps + 1) * 2.0**-53 * rounding
        return Sensitivity(math.inf, reach, farthest, theorem)

    def evaluate(self, rows):
        """Return the average of the iterates, an array of shape (size,)."""
        shape = (-1,) if self.loss.n_outputs == 1 else (self.loss.n_outputs, -1)
        coef = self.start.reshape(shape)
        total, n_steps = np.zeros(coef.shape), 0
        for batch in rows.batches(self.batch):
            residual = self.loss.residual(batch.predict(coef), batch.target)
            active = np.isfinite(batch.norm)
            residual *= active if residual.ndim == 1 else active[:, None]
            # divided by the public size, whatever the number of null rows
            gradient = batch.combine(residual).reshape(coef.shape) / self.batch
            coef = coef - self.step * (gradient + self.penalty * coef)
            coef = ball_constraint(coef, self.radius)
            total += coef
            n_steps += 1
        return (total / n_steps).ravel()


@dataclass(frozen=True)
class OnePassFit(Fit):
    """Phases over disjoint rows.

    Parameters
    ----------
    problem : Problem
        Public facts.
    mu : float
        Price of a phase, which is also the price of all phases.
    parts : tuple of (int, int)
        Rows of every phase, in the order of `order`.
    steps : tuple of (float, int)
        Step and batch of every phase.
    """

    mu: float
    parts: tuple
    steps: tuple
    full_batches = True

    @property
    def n_iter(self):
        """Number of phases."""
        return len(self.parts)

    def order(self):
        """Return the order of reading rows: fixed, and far from sorted."""
        return public_order(self.problem.n_rows)

    def run(self, curator):
        """Release one point per phase."""
        problem, coef = self.problem, np.zeros(self.problem.size)
        for part, (step, batch) in zip(self.parts, self.steps, strict=True):
            query = OnePassDescent(
                coef, problem.loss, problem.row_norm, step, batch,
                problem.penalty / problem.n_rows, problem.radius,
            )  # fmt: skip
            released = curator.release(query, GaussianMechanism(self.mu), rows=part)
            coef = ball_constraint(released, problem.radius)
        return coef.reshape(problem.shape)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The exponential mechanism: coefficients drawn with probability exp(-loss/temperature).

Bassily, Smith and Thakurta (2014), Algorithm 2, drawn exactly, by rejection from boxes that cover
the ball. The published grid walk needs too many steps to run (`skdp.papers.grid_walk_steps`). For
strongly convex losses, Algorithms 3 and 4 shrink the ball first.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammainccinv

from skdp._log_concave import ball_candidates, choose_by_loss, sample_tangent_box
from skdp._minimize.queries import Minimizer
from skdp._rows.base import ball_constraint, sum_over
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.exponential import ExponentialMechanism
from skdp.privacy.laws.k_norm import KNormMechanism
from skdp.solvers.base import Fit, Solver

#: exact sampling covers the coefficients with boxes, 2^size at a time
EXACT_LIMIT = 5


class ExponentialDraw(Solver):
    """Base class for draws from a bounded set by the exponential mechanism."""

    mechanism = "exponential"
    tasks = ("classification",)
    needs_coef_bound = "which draws from a bounded set"
    unused = {
        "max_iter": "it has no steps",
    }
    #: whether the draw is from the density on the ball, and not from a fixed set of candidates
    exact: ClassVar[bool]

    _parameter_constraints = {**Solver._parameter_constraints, "localize": ["boolean"]}

    def __init__(
        self,
        *,
        localize: bool = False,
        sparsity: int | None = None,
        intercept_scaling: float | None = None,
    ) -> None:
        self.localize = localize
        self.sparsity = sparsity
        self.intercept_scaling = intercept_scaling

    def plan(self, problem: Any) -> Fit:
        """Plan the draw from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : ExponentialFit
            The plan.

        Raises
        ------
        ValueError
            If `localize` is set without a penalty, or with one that is too weak.
        """
        return plan_draw(problem, localize=self.localize, exact=self.exact)


class ExactDraw(ExponentialDraw):
    """A random draw that favours small losses, for at most five coefficients.

    Purely private: no delta is spent.

    Parameters
    ----------
    localize : bool, default=False
        With finite `C`: spend half of epsilon on a coarse minimiser, and draw near it.
    sparsity : int, default=None
        For classification: public bound on the number of non-zero features of a row; rows with
        more keep their largest entries. None: no bound.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1.

    See Also
    --------
    Objective : Pure privacy for any number of coefficients.
    skdp.papers.FiniteNet : A draw from a fixed set of candidates, of any number of coefficients.

    Notes
    -----
    The density is ``exp(-loss / temperature)`` on the ball of radius `coef_bound`. The temperature
    is the range of a row's loss over the ball, divided by epsilon. The draw is exact, without a
    Markov chain or a mixing time.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014, Algorithms 2 to 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, solvers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2)) / 2
    >>> y = X[:, 0] > 0
    >>> model = DPLogisticRegression(
    ...     solver=solvers.ExactDraw(), data_norm=1.0, coef_bound=10.0, classes=[False, True],
    ...     random_state=0,
    ... )
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    word = "exact"
    most_coefs = EXACT_LIMIT
    beyond_most_coefs = " skdp.papers.FiniteNet() draws from a fixed set of candidates."
    exact = True


# The loss at many coefficients in one pass over the rows.


# values of all chunk rows at all points, kept small enough for the cache
_VALUES_PER_BATCH = 1 << 19


def loss_values(rows, coefs, loss):
    """Return the sum of the losses of all rows at several coefficient vectors.

    Parameters
    ----------
    rows : LinearRows
        Private rows; null rows contribute nothing.
    coefs : ndarray of shape (n_points, n_outputs * n_coefs)
        Points.
    loss : object
        Loss of `skdp._losses`.

    Returns
    -------
    values : ndarray of shape (n_points,)
        Sums.
    """
    points = coefs.reshape(len(coefs), loss.n_outputs, -1)

    def partial(chunk):
        chunk = chunk.widened()
        active = np.isfinite(chunk.norm)
        sums = np.empty(len(points))
        step = max(1, _VALUES_PER_BATCH // (len(chunk.norm) * loss.n_outputs))
        for start in range(0, len(points), step):
            batch = points[start : start + step]
            z = chunk.predict(batch.reshape(-1, batch.shape[-1]))
            sums[start : start + step] = active @ _values(z, batch.shape, chunk.target, loss)
        return sums

    return sum_over(rows, partial, len(points))


def _values(z, shape, target, loss):
    """Return losses of shape (n_rows, n_points) from raw predictions of all outputs."""
    if loss.n_outputs == 1:
        return loss.value(z, target[:, None])
    flat = loss.value(z.reshape(-1, loss.n_outputs), np.repeat(target, shape[0]))
    return flat.reshape(-1, shape[0])


def loss_gradients(rows, coefs, loss):
    """Return values and (sub)gradients of the summed loss at several coefficient vectors.

    Parameters
    ----------
    rows, coefs, loss : LinearRows, ndarray of shape (n_points, size), object
        As in `loss_values`.

    Returns
    -------
    values, gradients : ndarray of shape (n_points,) and (n_points, size)
        Sums over rows.
    """
    n_points, size = coefs.shape
    points = coefs.reshape(n_points * loss.n_outputs, -1)
    shape = (n_points, loss.n_outputs)

    def partial(chunk):
        chunk = chunk.widened()
        active = np.isfinite(chunk.norm)
        z = chunk.predict(points)
        values = active @ _values(z, shape, chunk.target, loss)
        if loss.n_outputs == 1:
            residual = loss.residual(z, chunk.target[:, None])
        else:
            target = np.repeat(chunk.target, n_points)
            residual = loss.residual(z.reshape(-1, loss.n_outputs), target).reshape(z.shape)
        residual *= active[:, None]
        return np.append(values, chunk.combine(residual))

    total = sum_over(rows, partial, n_points * (1 + size))
    return total[:n_points], total[n_points:].reshape(n_points, size)


# Coefficients drawn by the exponential mechanism, with the loss as the score.


#: net: candidates, and the multiplications that evaluating them may take
_CANDIDATES, _WORK = 4096, 2e10


@dataclass(frozen=True, eq=False)
class LossDraw:
    """Coefficients of density proportional to exp(-(loss + penalty) / temperature).

    Parameters
    ----------
    loss : object
        Loss of `skdp._losses`.
    n_coefs : int
        Coefficients of one output, the intercept included.
    row_norm : float
        Bound on the norm of a row.
    penalty : float
        Strength of ``penalty/2 |coef|^2`` in the score.
    radius : float
        The coefficients lie in the ball of this radius around 0.
    near : tuple of (ndarray, float) or None
        Public center and radius of a second ball that contains them.
    exact : bool
        Whether to draw from the density itself, or from a fixed net of candidates.

    Notes
    -----
    Rows in the unit ball, coefficients in the ball of radius R: a raw prediction of one
    output moves within [-a, a], a = R row_norm, and the losses here decrease in t z.
    The penalty is the same for all data and does not enter the spread.
    """

    loss: Any
    n_coefs: int
    row_norm: float
    penalty: float
    radius: float
    near: Any = None
    exact: bool = True

    idealised = True

    @property
    def name(self):
        """Name of the statistic."""
        where = "near a released point" if self.near is not None else "in a ball"
        how = "a density" if self.exact else "a net"
        return f"coefficients {where}, drawn from {how} by {type(self.loss).__name__}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.loss.n_outputs * self.n_coefs

    def sensitivity(self, adjacency, n_rows):
        """State the spread: how unevenly a row's loss changes over the coefficients.

        Proof. Zero-out changes the score by -loss(row): its spread is the loss's range,
        at most its Lipschitz constant times the diameter of the set, and for one output
        the difference of its two extreme values. Replace-one changes it by a difference
        of two losses, whose spread is at most the sum of theirs.
        """
        radius = self.radius if self.near is None else self.near[1]
        reach = radius * self.row_norm
        spread = self.loss.lipschitz * 2 * reach
        if self.near is None and self.loss.n_outputs == 1:
            # predictions are within [-reach, reach] in the ball around 0 only
            worst, best = self.loss.value(np.array([-reach, reach]), np.ones(2))
            # a difference of nearly equal floats may be too small: that is added back
            spread = min(spread, float(worst - best + 1e-14 * worst))
        theorem = "range of a row's loss over the set"
        if adjacency != "zero-out":
            spread, theorem = 2 * spread, "ranges of two rows' losses over the set"
        return Sensitivity(math.inf, math.inf, self.radius, theorem, spread=spread)

    @property
    def _balls(self):
        own = (np.zeros(self.size), self.radius)
        return [own] if self.near is None else [own, self.near]

    def _net(self, n_rows):
        """Return the candidates; their number depends on public values only."""
        count = int(min(_CANDIDATES, max(64, _WORK / (self.size * n_rows))))
        center, radius = self._balls[-1]
        return center + ball_candidates(self.size, radius, count)

    def outcomes(self, *sides):
        """Return the candidates, or None for a continuum; see `ExponentialMechanism`."""
        if self.exact:
            return None
        points = self._net(sides[0].n_rows)
        return points, np.ones(len(points))

    def scores_of(self, rows, outcomes):
        """Return the scores of some coefficients; see `ExponentialMechanism`."""
        scores = loss_values(rows, outcomes, self.loss)
        scores += self.penalty / 2 * np.einsum("ij,ij->i", outcomes, outcomes)
        return scores

    def draw(self, rows, noise, source):
        """Return one draw at the temperature ``noise.scale``."""
        inverse = 1.0 / noise.scale
        if self.exact:

            def score(points):
                values, gradients = loss_gradients(rows, points, self.loss)
                values += self.penalty / 2 * np.einsum("ij,ij->i", points, points)
                return values, gradients + self.penalty * points

            return sample_tangent_box(score, self.size, inverse, self._balls, source)
        points = self._net(rows.n_rows)
        return points[choose_by_loss(self.scores_of(rows, points), inverse, source)]


@dataclass(frozen=True)
class ExponentialFit(Fit):
    """One draw, or a coarse minimiser and a draw near it.

    Parameters
    ----------
    problem, exact : Problem, bool
        Public facts, and whether to draw from the exact density instead of a net.
    reach : float or None
        Radius around the coarse minimiser; None for one draw from the whole ball.
    """

    exact: bool
    reach: float | None
    n_iter: int = 1
    #: purely private
    delta: ClassVar[float] = 0.0

    def run(self, curator):
        """Release the draw."""
        problem = self.problem
        epsilon, near = problem.epsilon, None
        if self.reach is not None:
            # Bassily, Smith and Thakurta (2014), Algorithms 3 and 4, half the budget each
            epsilon = problem.epsilon / 2
            query = Minimizer(
                problem.loss, problem.penalty, problem.n_coefs, problem.row_norm,
                problem.tolerance(problem.penalty), row_terms=problem.row_terms,
            )  # fmt: skip
            coarse = curator.release(query, KNormMechanism(epsilon))
            near = (ball_constraint(coarse, problem.radius), self.reach)
        query = LossDraw(
            problem.loss, problem.n_coefs, problem.row_norm, problem.penalty, problem.radius,
            near=near, exact=self.exact,
        )  # fmt: skip
        drawn = curator.release(query, ExponentialMechanism(epsilon))
        return ball_constraint(drawn, problem.radius).reshape(problem.shape)


def plan_draw(problem, *, localize, exact):
    """Plan a draw, after a coarse minimiser if it pays.

    Parameters
    ----------
    problem, localize, exact : Problem, bool, bool
        Public facts; whether to shrink the set first; and whether to draw from the density
        itself, or from a net.

    Returns
    -------
    plan : ExponentialFit
        The plan.

    Raises
    ------
    ValueError
        If `localize` is set without a penalty, or with one that is too weak.
    """
    if not localize:
        return ExponentialFit(problem, exact, None)
    if problem.penalty == 0:
        raise ValueError(
            "C must be finite for localize=True, which rests on the strong convexity that the "
            "penalty gives; got C=inf."
        )
    problem.check_weak_penalty()
    reach = localized_radius(problem)
    # where the smaller ball is not small, all of the budget goes to the draw
    return ExponentialFit(problem, exact, reach if 2 * reach < problem.radius else None)


def localized_radius(problem):
    """Return a radius around the first stage that misses the minimiser with probability <= 1/n^2.

    The length of the noise of the first stage has a Gamma distribution. Its quantile replaces the
    published factor 3 ln(n), which is several times larger.
    """
    failure = 1.0 / max(problem.n_rows, 2) ** 2
    scale = problem.gradient_sensitivity / problem.penalty / (problem.epsilon / 2)
    return scale * float(gammainccinv(problem.size, failure)) * (1 + 1e-6)

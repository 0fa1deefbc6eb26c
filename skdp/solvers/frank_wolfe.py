# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Frank-Wolfe: coefficients with few non-zeros, by one private choice per step.

Talwar, Thakurta and Zhang (2015), with four changes. The score of a draw is a gradient clipped in
its largest entry. Draws are composed by their bounded range, which costs less than composition of
arbitrary purely private releases. Step sizes start as if some steps had been made before: the
first vertex is far away, and a step must not overshoot it. The constants below were chosen on
data; they follow from no theorem, and privacy does not depend on them.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from skdp._quantiles import rate
from skdp._rows.base import sum_over
from skdp._sklearn import SCALE_OR_NONE
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.calibration import zcdp_rho
from skdp.privacy.laws.exponential import ExponentialMechanism, weighted_choice
from skdp.solvers.base import Fit, Solver


class FrankWolfe(Solver):
    """Steps along privately drawn coordinates, for coefficients that are mostly zero.

    For many features and few relevant ones.

    Parameters
    ----------
    l1_bound : float, default=None
        Bound on the sum of the absolute coefficients; the intercept counts as for `coef_bound`.
        None chooses it from public quantities.
    clipping_norm : float, default=None
        Bound on the largest entry of one row's gradient, for rows in units of `data_norm`. None
        chooses it from public quantities.
    sparsity : int, default=None
        Public bound on the number of non-zero features of a row; rows with more keep their largest
        entries. None: no bound. It determines the default of `clipping_norm`.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1.

    See Also
    --------
    LazySGD : Coefficients that need not be sparse.

    Notes
    -----
    Every step draws a signed coordinate by a gradient; its entries change by at most c (zero-out)
    or 2 c (replace-one) between neighbours. Draws compose by the range of their privacy loss. At
    delta 0, or if it is cheaper, their prices add up to epsilon.

    References
    ----------
    .. [1] K. Talwar, A. Thakurta and L. Zhang, "Nearly optimal private LASSO", NeurIPS 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, solvers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 4)) / 2
    >>> y = X[:, 0] > 0
    >>> solver = solvers.FrankWolfe(l1_bound=20.0)
    >>> model = DPLogisticRegression(
    ...     solver=solver, data_norm=1.0, classes=[False, True], random_state=0
    ... )
    >>> model.fit(X, y).score(X, y) > 0.85
    True
    """

    word = "frank-wolfe"
    mechanism = "exponential"
    tasks = ("classification",)
    needs_second_derivative = (
        "a step towards a vertex of the l1 ball may make no progress at a kink, however small it is"
    )
    takes_groups = True
    unused = {
        "C": "it keeps coefficients small by the bound on their l1 norm, `l1_bound`",
    }

    _parameter_constraints = {
        **Solver._parameter_constraints,
        "l1_bound": SCALE_OR_NONE,
        "clipping_norm": SCALE_OR_NONE,
    }

    def __init__(
        self,
        *,
        l1_bound: float | None = None,
        clipping_norm: float | None = None,
        sparsity: int | None = None,
        intercept_scaling: float | None = None,
    ) -> None:
        self.l1_bound = l1_bound
        self.clipping_norm = clipping_norm
        self.sparsity = sparsity
        self.intercept_scaling = intercept_scaling

    def plan(self, problem: Any) -> Fit:
        """Plan the steps from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : FrankWolfeFit
            The plan.

        Raises
        ------
        ValueError
            If nothing of epsilon is left for a step.
        """
        clip = self.clipping_norm
        if clip is None:
            clip = default_coordinate_clip(problem.n_coefs, problem.sparsity, problem.intercept)
        steps = plan_frank_wolfe(
            n_rows=problem.n_rows,
            n_coefs=problem.n_coefs,
            n_outputs=problem.loss.n_outputs,
            # the Hessian of a softmax has no entry beyond that
            smoothness=0.25 / problem.loss.temperature,
            moved_rows=problem.moved_rows,
            epsilon=problem.epsilon,
            delta=problem.delta,
            # entries of residuals are at most 1, those of a row in the unit ball too
            largest_entry=max(1.0, problem.intercept),
            clip=clip,
            radius=None if self.l1_bound is None else self.l1_bound * problem.data_norm,
            # the l1 ball of that radius lies within the Euclidean one
            largest_radius=problem.radius,
            n_steps=problem.max_iter,
        )
        return FrankWolfeFit(problem, steps)


#: more steps are not made unless they are asked for
MOST_STEPS = 1000
# Default radius of the ball, in units of 1 / clip: so far a vertex moves the margin of a row
# that is not clipped.
_REACH = 8.0
# The curvature that is met, relative to its worst case: a feature is zero in most rows.
_CURVATURE = 0.008
# Entries of a row, if nobody says how many.
_ENTRIES = 25
# Kinks that are sharper than this make no difference to noisy steps.
_SHARPEST = 1.0


@dataclass(frozen=True)
class FrankWolfePlan:
    """Plan of the steps, fixed before any row is read.

    Parameters
    ----------
    n_steps : int
        Number of draws.
    radius : float
        The coefficients, intercept included, have at most this sum of magnitudes.
    clip : float
        Bound on the entries of a row's gradient.
    offset : float
        Step t, counted from 0, goes ``2 / (t + offset)`` of the way to its vertex; at
        least 2.
    epsilon_step, delta : float
        Price of a draw, and the delta at which all of them fit the budget; 0 if their sum
        does.
    """

    n_steps: int
    radius: float
    clip: float
    offset: float
    epsilon_step: float
    delta: float


def prices(epsilon, delta, n_steps):
    """Return the price of one of several draws: by summation, and by bounded range in zCDP.

    Parameters
    ----------
    epsilon, delta : float
        Budget of all of them.
    n_steps : int or ndarray
        How many.

    Returns
    -------
    summed, concentrated : float or ndarray
        Each is a price at which all fit the budget. The second is 0 at delta 0.
    """
    # a hair less, so that the ledger's sums do not exceed the budget
    summed = epsilon / n_steps * (1 - 1e-15)
    return summed, np.sqrt(8 * zcdp_rho(epsilon, delta) / n_steps) * (1 - 1e-15)


def default_coordinate_clip(n_coefs, sparsity, intercept):
    """Return a bound on the entries of a row's gradient, from public numbers.

    Parameters
    ----------
    n_coefs, sparsity, intercept : int, int or None, float
        Coefficients of an output, largest number of entries of a row, and the constant
        feature.

    Returns
    -------
    clip : float
        Half of an entry of a unit row with equal entries, because residuals start at about a half.
        Without a sparsity, rows are taken to have 25 entries. The constant feature never
        determines the clipping at the start.
    """
    typical = 0.5 / math.sqrt(min(sparsity or _ENTRIES, n_coefs))
    return max(typical, min(intercept, 1.0) / 2)


def plan_frank_wolfe(
    *,
    n_rows,
    n_coefs,
    n_outputs,
    smoothness,
    moved_rows,
    epsilon,
    delta,
    largest_entry,
    clip,
    radius,
    largest_radius,
    n_steps,
):
    """Choose steps, radius and prices from public quantities.

    Parameters
    ----------
    n_rows, n_coefs, n_outputs : int
        Rows, coefficients of an output, and outputs.
    smoothness : float
        Bound on the second derivative of the loss in one output.
    moved_rows : int
        Row gradients in which neighbours differ.
    epsilon, delta : float
        Budget of everything.
    largest_entry : float
        Bound on the entries of a row's gradient before clipping.
    clip : float
        Bound on the entries of a row's gradient.
    radius, n_steps : float, int or None
        Given by the user, or None to be chosen here.
    largest_radius : float or None
        Bound on the radius; None for none.

    Returns
    -------
    plan : FrankWolfePlan
        The plan.

    Raises
    ------
    ValueError
        If nothing of epsilon is left for a step.

    Notes
    -----
    Let C = H (2 R c)^2 bound the curvature, with smoothness H, radius R and largest entry c of a
    row. If every vertex is within e of the best, steps 2 / (t + s) keep the excess mean loss below
    ``2 C / (t + s) + e`` if it is below at t = 0. A draw among 2 p vertices has ``e <= R
    temperature log(2 p) / n`` on average. The number of steps minimises this bound, with a typical
    curvature in place of C.
    """
    clip = min(clip, largest_entry)
    if radius is None:
        radius = _REACH / clip
    radius = min(radius, largest_radius or math.inf)
    reach = radius * clip
    bend = 4 * min(smoothness, _SHARPEST)
    if n_steps is None:
        tried = np.arange(1.0, MOST_STEPS + 1)
        # a budget that rounds to nothing leaves one step
        with np.errstate(all="ignore"):
            price = np.maximum(*prices(epsilon, delta, tried))
            noise = 2 * moved_rows * math.log(2 * n_coefs * n_outputs) / n_rows / price
            # both terms over the reach
            n_steps = 1 + int(np.argmin(2 * bend * _CURVATURE * reach / tried + noise))
    summed, concentrated = prices(epsilon, delta, n_steps)
    if not max(summed, concentrated) > 0:
        raise ValueError(
            f"epsilon is too small to be shared by {n_steps} steps; got {epsilon!r}. Raise epsilon "
            "or lower max_iter."
        )
    return FrankWolfePlan(
        n_steps=n_steps,
        radius=radius,
        clip=clip,
        # the first step moves no margin of an unclipped row by more than 1 / (4 bend)
        offset=max(2.0, 8 * bend * reach),
        epsilon_step=float(max(summed, concentrated)),
        delta=0.0 if summed >= concentrated else delta,
    )


def frank_wolfe(choose, shape, plan):
    """Take the steps of a plan, starting at zero.

    Parameters
    ----------
    choose : callable
        Maps coefficients to the index of the vertex drawn there: j for coordinate j of the
        flattened coefficients, their number plus j for its opposite.
    shape : tuple of int
        Shape of the coefficients.
    plan : FrankWolfePlan
        The plan.

    Returns
    -------
    coef : ndarray of shape `shape`
        At most `n_steps` coefficients are not zero.
    """
    coef = np.zeros(shape)
    for t in range(plan.n_steps):
        side, j = divmod(choose(coef), coef.size)
        step = 2 / (t + plan.offset)
        # a new array: the old one is the field of a query
        coef = coef * (1 - step)
        coef.flat[j] += (plan.radius if side == 0 else -plan.radius) * step
    return coef


# A signed coordinate, drawn by how steeply a linear model's loss falls along it.


# scores are multiples of the largest entry over 2^10: a thousandth of the noise, and so
# coarse that features with few rows share their scores
_GRID_BITS = 10


@dataclass(frozen=True, eq=False)
class SteepestCoordinate:
    """Index of a signed coordinate, drawn by the sum of clipped gradients along it.

    Parameters
    ----------
    coef : ndarray of shape (n_coefs,) or (n_outputs, n_coefs)
        Point of the gradient; an intercept comes last.
    loss : object
        Loss of `skdp._losses`.
    clip : float
        Bound on the largest entry of one row's gradient, intercept included.

    Notes
    -----
    With g the sum of the rows' gradients, flattened, the score of index j is ``g_j``, and the
    score of ``coef.size + j`` is ``-g_j``. The gradient of a row is the outer product of its
    residual and the row itself: scaling the residual so that its largest entry is at most ``clip``
    over the row's largest entry clips the gradient, and keeps its direction. Scores lie on a grid,
    and the draw from them is exact.
    """

    coef: Any
    loss: Any
    clip: float

    #: what is drawn from is not a float
    idealised = False

    @property
    def name(self):
        """Name of the statistic."""
        loss = type(self.loss).__name__
        return f"steepest coordinate of {loss}, gradient entries clipped to {self.clip:.6g}"

    @property
    def size(self):
        """Number of coordinates of the result, an index."""
        return 1

    @property
    def grid(self):
        """Step of the scores, a power of two."""
        return math.ldexp(1.0, math.ceil(math.log2(self.clip)) - _GRID_BITS)

    def sensitivity(self, adjacency, n_rows):
        """State the spread: twice the clip (zero-out) or four times it, plus two grid steps.

        Proof. A row's gradient has entries in [-clip, clip]. Zero-out removes one such
        vector; replace-one exchanges two. So every entry of g moves by at most r = clip or
        2 clip, and once it is rounded to a multiple of the grid by at most r + grid. The
        scores of j and of its opposite change by opposite amounts: all changes lie in
        [-r - grid, r + grid]. So it is for groups, whose weights add up to at most 1: a mean of
        such vectors, and of zero, has entries in [-clip, clip].
        """
        if adjacency == "zero-out":
            reach, theorem = self.clip, "a clipped gradient has entries <= clip, either way"
        else:
            reach, theorem = 2 * self.clip, "two clipped gradients differ by <= 2 clip, either way"
        spread = 2 * (reach + self.grid)
        bound = float(2 * self.coef.size)
        return Sensitivity(math.inf, math.inf, bound, theorem, spread=spread)

    def partial(self, chunk):
        """Return the clipped gradients of a chunk, summed."""
        limit = self.clip / chunk.largest_entries()
        chunk = chunk.widened()
        residual = self.loss.residual(chunk.predict(self.coef), chunk.target)
        if residual.ndim == 1:
            np.clip(residual, -limit, limit, out=residual)
        else:
            longest = np.abs(residual).max(axis=1)
            residual *= (limit / np.maximum(longest, limit + 1e-300))[:, None]
        if chunk.weight is not None:
            residual *= chunk.weight if residual.ndim == 1 else chunk.weight[:, None]
        return chunk.combine(residual)

    def scores(self, rows):
        """Return the scores of the coordinates along +1, in grid steps, int64."""
        total = sum_over(rows, self.partial, self.coef.size)
        total /= self.grid
        return np.rint(total, out=total).astype(np.int64)

    def outcomes(self, *sides):
        """Return all indices; see `ExponentialMechanism`."""
        count = 2 * self.coef.size
        return np.arange(float(count))[:, None], np.ones(count)

    def scores_of(self, rows, outcomes):
        """Return the scores of some indices; see `ExponentialMechanism`."""
        along = self.scores(rows) * self.grid
        return np.concatenate([along, -along])[outcomes[:, 0].astype(np.int64)]

    def draw(self, rows, noise, source):
        """Return an index with probability proportional to exp(-score / noise.scale)."""
        along = self.scores(rows)
        largest = np.abs(along).max()
        steps = np.concatenate([largest + along, largest - along])
        inverse = rate(1 / Fraction(self.grid), noise.scale)
        once = np.broadcast_to(1.0, steps.shape)
        chosen = weighted_choice(once, steps, inverse, source)
        return np.array([chosen], dtype=np.float64)


@dataclass(frozen=True)
class FrankWolfeFit(Fit):
    """Steps towards vertices of the l1 ball, all of them charged before the first."""

    steps: FrankWolfePlan

    @property
    def n_iter(self):
        """Number of steps."""
        return self.steps.n_steps

    @property
    def delta(self):
        """The delta that may be spent: 0 if the prices of the steps add up to epsilon."""
        return self.steps.delta

    def run(self, curator):
        """Draw one vertex per step, and move towards it."""
        steps, loss, shape = self.steps, self.problem.loss, self.problem.shape
        first = SteepestCoordinate(np.zeros(shape), loss, steps.clip)
        paid = curator.prepay(first, ExponentialMechanism(steps.epsilon_step), steps.n_steps)

        def choose(coef):
            return int(curator.release(SteepestCoordinate(coef, loss, steps.clip), paid)[0])

        return frank_wolfe(choose, shape, steps)

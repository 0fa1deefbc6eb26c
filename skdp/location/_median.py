# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private medians: of every feature by rank, or the geometric one by gradients or by a draw.

The geometric median minimises the sum of distances to the rows. Gradient steps [1]_ release the
directions from the rows to a point (`DirectionSum`), some dozens of times; the exponential
mechanism [2]_ draws one point by its sum of distances (`DistanceSum`). Medians of features are
quantiles, see `skdp.location._quantile`.

.. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization: efficient
   algorithms and tight error bounds", FOCS 2014.
.. [2] F. McSherry and K. Talwar, "Mechanism design via differential privacy", FOCS 2007.
"""

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np

from skdp._counted import check_groups, count_rows, counts_of, hidden_count
from skdp._gate import Doubts, open_gate
from skdp._log_concave import sample_piecewise_exponential, sample_tangent_box
from skdp._rows.base import Box, L2Ball, bounds_of, check_radius, sum_over
from skdp._rows.columns import PointRows
from skdp._rows.streams import RowStream, whole_columns
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    StrOptions,
    blas_on_one_thread,
    effective_n_threads,
    fit_context,
    validate_private_data,
)
from skdp._typing import Adjacency, Bounds, Budget, MatrixLike, Seed, VectorLike
from skdp.location._base import LocationEstimator, shares_of_score
from skdp.location._mean import say_of_edge
from skdp.location._quantile import (
    check_quantile,
    even_grid,
    ladder_for,
    ranked_rows,
    release_quantiles,
    say_of_grid,
    say_of_quantiles,
)
from skdp.location._range import REACH, plan_range, say_of_range
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.privacy.laws.calibration import gdp_mu, mu_beside, mu_of_all
from skdp.privacy.laws.exponential import ExponentialMechanism
from skdp.solvers.gradient import GradientPlan, StepSize, skipped_steps

#: beyond this the exact sampler is too slow
MOST_FEATURES = 5
# Distances below this count as zero: their squares are not exact, and a quotient by
# such a distance might be longer than 1.
_TINY = 1e-140
# points times rows that are looked at together: the arrays stay in cache
_PAIRS = 1 << 15


@dataclass(frozen=True)
class Place:
    """The public set that rows are forced into, and the ball around it.

    Parameters
    ----------
    domain : L2Ball or Box
        The set.
    lower, upper : ndarray of shape (n_features,)
        The box around the set.
    center, unit : ndarray of shape (n_features,), float
        The ball around the set.
    """

    domain: Any
    lower: Any
    upper: Any
    center: Any
    unit: float

    @classmethod
    def described(cls, estimator, n_features):
        """Return the place that an estimator's parameters describe, or raise ValueError."""
        if estimator.bounds is None:
            unit, center = check_radius(estimator.data_norm), np.zeros(n_features)
            return cls(L2Ball(unit), center - unit, center + unit, center, unit)
        return cls.between(*bounds_of(estimator, n_features))

    @classmethod
    def between(cls, lower, upper):
        """Return the place between two arrays of shape (n_features,)."""
        box = Box(tuple(lower), tuple(upper))
        longest = float(box.half_width.max())
        # scaled first: the squares may overflow
        unit = longest * float(np.linalg.norm(box.half_width / longest))
        return cls(box, lower, upper, box.center, unit)

    def admitted(self, X, weight=None):
        """Return the rows of X, each with what it counts, as points of the unit ball."""
        return PointRows(X, self.domain, self.unit, effective_n_threads(), weight)

    def locate(self, point):
        """Return a point of the unit ball in the data's units.

        Moving it into the box brings it closer to every row, and costs nothing.
        """
        return np.clip(self.center + self.unit * point, self.lower, self.upper)


# a median so near to the edge, in units of the place, is taken for one beyond it: medians of skewed
# rows within wide bounds are near one end
_AT_EDGE = {"bounds": 1e-3, "data_norm": 1e-2}


def _say_of_place(doubts, location, place):
    """Take note of a released median that lies at the edge of a public place."""
    boxed = isinstance(place.domain, Box)
    name, half = ("bounds", place.domain.half_width) if boxed else ("data_norm", place.unit)
    far = (location - place.center) / half
    # 0 is a true bound of many features
    far[boxed & (np.where(far < 0, place.lower, place.upper) == 0)] = 0.0
    share = _AT_EDGE[name] / (2.0 if boxed else 2.0 * math.sqrt(len(far)))
    say_of_edge(doubts, far, share, name, ", or none for a private range", "median")


def held(X):
    """Return rows that are all in memory, or mapped into it, or raise a TypeError.

    Parameters
    ----------
    X : ndarray or RowStream of shape (n_rows, n_features)
        Rows; of a stream those of a memory map alone can be used.
    """
    if not isinstance(X, RowStream):
        return X
    if X.is_mapped:
        return X.whole()
    raise TypeError(
        "mechanism='exponential' needs all rows in memory; got rows that are read chunk by chunk. "
        "Use mechanism='rank', or mechanism='gradient' with delta > 0."
    )


# The geometric median by gradient steps.
#
# A released gradient is as noisy at the median as far from it. So steps start as long as the noise
# of all of them allows, and are cut to the inverse of the curvature that consecutive gradients
# show (`StepSize`): about the distance of typical rows. That takes few steps.

# number of steps, if none is given: twice as many bring a few per cent
_STEPS = 60
# first step, in units of the ball: at most, and what noise adds up to over all steps
_LONGEST, _WANDER = 0.5, 0.75
# probability that the error bound fails
_FAILURE = 0.01


def descend_to_median(curator, mu, place, n_rows, adjacency, n_steps):
    """Release a point by gradient steps with Gaussian noise.

    Parameters
    ----------
    curator : Curator
        Holds `PointRows`.
    mu : float
        Gaussian-DP price of all steps.
    place : Place
        Where the rows are.
    n_rows : int
        Number of rows.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    n_steps : int
        Number of steps.

    Returns
    -------
    location : ndarray of shape (n_features,)
        The geometric median.
    error_bound : float
        On the excess of the mean distance.

    Notes
    -----
    Bound. Gradients ``g_t = f'(w_t) + z_t`` of the mean distance f are released at K points of
    the unit ball, whose average is w. For any u of the ball convexity gives ``K (f(w) - f(u))
    <= sum <f'(w_t), w_t - u> = sum <g_t, w_t - u> - sum <z_t, w_t - u>``. The first sum is at
    most ``sum <g_t, w_t> + |sum g_t|``, which is known, whatever rule made the points. A term
    of the second is Gaussian given the steps before, with a deviation of at most 2 s, s being that
    of a coordinate of the noise: so, with u the minimiser, minus that sum is beyond
    ``2 s sqrt(2 K log(1/q))`` with a probability of at most q (Chernoff). Rounding to a grid h
    adds at most ``2 h sqrt(p)`` to a term.
    """
    n_features = len(place.center)
    point = np.zeros(n_features)
    law = GaussianMechanism(mu / math.sqrt(n_steps))
    stated = DirectionSum(point).sensitivity(adjacency, n_rows)
    noise = law.calibrate(stated, n_features)
    scale = noise.scale / n_rows
    plan = GradientPlan(
        n_steps=n_steps, mu=mu, clip=1.0, adaptive=True, noise=scale, l2=0.0, radius=1.0,
        step_size=min(_LONGEST, _WANDER / (scale * math.sqrt(n_steps * n_features))),
        intercept=False,
    )  # fmt: skip
    length, skipped = StepSize(plan), skipped_steps(n_steps)
    points, gradients, products = np.zeros(n_features), np.zeros(n_features), 0.0
    paid = curator.prepay(DirectionSum(point), law, n_steps)
    with blas_on_one_thread():
        for t in range(n_steps):
            gradient = curator.release(DirectionSum(point), paid) / n_rows
            if t >= skipped:
                points += point
                gradients += gradient
                products += gradient @ point
            point = plan.step(point, gradient, length.at(point, gradient))
    kept = n_steps - skipped
    chance = 2 * scale * math.sqrt(2 * math.log(1 / _FAILURE) / kept)
    grid = 2 * noise.grid / n_rows * math.sqrt(n_features)
    excess = (products + np.linalg.norm(gradients)) / kept + chance + grid
    return place.locate(points / kept), place.unit * min(float(excess), 2.0)


@dataclass(frozen=True, eq=False)
class DirectionSum:
    """Sum over rows d of the unit vector from d to `center`; zero for a row that is there.

    Parameters
    ----------
    center : ndarray of shape (n_features,)
        Point of the unit ball where the subgradient of the sum of distances is taken.
    """

    center: Any

    @property
    def name(self):
        """What the statistic is."""
        return "sum of the directions from the rows to a point"

    @property
    def size(self):
        """Number of coordinates."""
        return self.center.size

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: 1 (zero-out) or 2 (replace-one).

        Proof. A row contributes a unit vector or zero, a null row zero. Zero-out removes
        one such vector; replace-one exchanges two (triangle inequality). Both are
        attained, the second by rows on opposite sides of the center. A group, whose weights add
        up to at most 1, contributes a mean of such vectors, and of zero: no longer than 1.
        """
        if adjacency == "zero-out":
            reach, theorem = 1.0, "a direction has norm 1"
        else:
            reach, theorem = 2.0, "two directions differ by <= 2"
        return Sensitivity(l1=math.inf, l2=reach, bound=float(n_rows), theorem=theorem)

    def partial(self, chunk):
        """Return the directions from a chunk's rows, summed."""
        gaps = chunk.points()
        # differences first: distances from products would lose the digits of near rows
        np.subtract(self.center, gaps, out=gaps)
        gaps[chunk.null] = 0.0
        distance = np.sqrt(np.einsum("ij,ij->i", gaps, gaps))
        weight = 1.0 / np.maximum(distance, _TINY)
        return (weight if chunk.weight is None else weight * chunk.weight) @ gaps

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (size,)."""
        return sum_over(rows, self.partial, self.size)


# The geometric median by the exponential mechanism.


def draw_median(curator, mechanism, place, n_rows):
    """Release a point by the exponential mechanism.

    Parameters
    ----------
    curator : Curator
        Holds `PointRows`.
    mechanism : ExponentialMechanism
        The price.
    place : Place
        Where the rows are.
    n_rows : int
        Number of rows.

    Returns
    -------
    location : ndarray of shape (n_features,)
        The geometric median.
    error_bound : float
        On the expected excess of the mean distance.

    Notes
    -----
    Bound. For a convex score on a convex set of dimension p the expected excess of the
    draw is at most p times the temperature: with Z(c) the integral of exp(-c excess),
    ``c^p Z(c)`` does not decrease in c, because shrinking the set towards the minimum
    keeps a convex excess below its chord; the logarithmic derivative of Z is minus the
    expected excess.
    """
    n_features = len(place.center)
    cover = None
    if isinstance(place.domain, Box):
        corner = place.domain.half_width / place.unit
        cover = -corner, corner
    point = curator.release(DistanceSum(n_features, cover), mechanism)
    temperature = curator.ledger.releases[-1].noise.scale
    excess = min(n_features * temperature / n_rows, 2.0)
    return place.locate(point), place.unit * excess


@dataclass(frozen=True, eq=False)
class DistanceSum:
    """Point of the unit ball, drawn by its sum of distances to the rows.

    Parameters
    ----------
    n_features : int
        Dimension.
    cover : tuple of (ndarray, ndarray), default=None
        Public box, lower and upper ends, that the point is also restricted to.
    """

    n_features: int
    cover: Any = None

    #: the law is exact for real numbers, and floats only come close
    idealised = True

    @property
    def name(self):
        """What the statistic is."""
        return "point drawn by its sum of distances to the rows"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_features

    def sensitivity(self, adjacency, n_rows):
        """State the spread of the score's change: 2 (zero-out) or 4 (replace-one).

        Proof. The score at t is the sum of ``|t - d|``. Zero-out removes one term, which
        lies in [0, 2] for t and d in the unit ball. Replace-one changes the score by
        ``|t - d'| - |t - d|``, within ``|d - d'| <= 2`` of zero: an interval of length 4.
        Both are attained by rows on the sphere: at t = d and t = -d, and d' = -d. The term of a
        group, whose weights add up to at most 1, is a mean of such terms, and of zero.
        """
        if adjacency == "zero-out":
            spread, theorem = 2.0, "a distance in the unit ball is in [0, 2]"
        else:
            spread, theorem = 4.0, "two distances from a point differ by <= 2 either way"
        return Sensitivity(math.inf, math.inf, bound=1.0, theorem=theorem, spread=spread)

    def outcomes(self, *sides):
        """Return None: a continuum; see `ExponentialMechanism`."""

    def scores_of(self, rows, outcomes):
        """Return the scores of some points; see `ExponentialMechanism`."""
        return distances_and_subgradients(outcomes, rows.columns(), rows.weight())[0]

    def draw(self, rows, noise, source):
        """Return a point with density proportional to exp(-score / noise.scale)."""
        columns, weight = rows.columns(), rows.weight()
        if self.n_features == 1:
            return np.array([self._draw_number(columns[0], weight, noise, source)])
        return sample_tangent_box(
            lambda points: distances_and_subgradients(points, columns, weight),
            self.n_features,
            1.0 / noise.scale,
            [(np.zeros(self.n_features), 1.0)],
            source,
            cover=self.cover,
        )

    def _draw_number(self, values, weight, noise, source):
        """Return a draw in one dimension, where the score is piecewise linear."""
        low, high = (-1.0, 1.0) if self.cover is None else (float(end[0]) for end in self.cover)
        knots = np.concatenate([[low], np.sort(np.clip(values, low, high)), [high]])
        # k rows below pull one way, the others the other way
        slopes = 2.0 * np.arange(len(values) + 1) - len(values)
        if weight is not None:
            order = np.argsort(np.clip(values, low, high), kind="stable")
            below = np.concatenate([[0.0], np.cumsum(weight[order])])
            slopes = 2.0 * below - below[-1]
        return sample_piecewise_exponential(knots, slopes, 1.0 / noise.scale, source)


def distances_and_subgradients(points, columns, weight=None):
    """Return the sum of distances from points to rows, and a subgradient of it at each point.

    Parameters
    ----------
    points : ndarray of shape (m, n_features)
        Where.
    columns : ndarray of shape (n_features, n_rows)
        Rows, transposed.
    weight : ndarray of shape (n_rows,), default=None
        What rows count; None for 1 each.

    Returns
    -------
    value : ndarray of shape (m,)
        Sums of Euclidean distances.
    slope : ndarray of shape (m, n_features)
        Subgradients; a row at the point itself contributes zero.
    """
    value, slope = np.zeros(len(points)), np.zeros(points.shape)
    step = max(1, _PAIRS // len(points))
    for start in range(0, columns.shape[1], step):
        gaps = points.T[:, :, None] - columns[:, None, start : start + step]
        distance = np.sqrt(np.einsum("kij,kij->ij", gaps, gaps))
        # the bound makes the directions of nearer rows short, not long
        inverse = 1.0 / np.maximum(distance, _TINY)
        if weight is not None:
            counted = weight[start : start + step]
            distance, inverse = distance * counted, inverse * counted
        value += distance.sum(axis=1)
        slope += np.einsum("ij,kij->ik", inverse, gaps)
    return value, slope


class DPMedian(LocationEstimator):
    """Differentially private median: of every feature, or the geometric one.

    The geometric median is the point with the least mean Euclidean distance to the rows.
    For one feature both are the median.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0.
    delta : float, default=1e-6
        Privacy budget in [0, 1). Only ``mechanism="gradient"`` spends it.
    mechanism : {"auto", "rank", "gradient", "exponential"}, default="auto"
        "rank" releases the median of every feature, each for an equal share of epsilon,
        as `DPQuantile` does. "gradient" finds the geometric median by gradient steps
        with Gaussian noise, each a pass over the rows. "exponential" draws the geometric median
        of at most 5 features, purely epsilon-DP. "auto" is "rank" for one feature; otherwise
        "gradient", or "exponential" if delta is 0.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in the presence of a row ("add-remove", where the number of rows is
        released first; otherwise it is public). See :ref:`adjacency`.
    data_norm : float, default=None
        Public radius: longer rows are scaled down to this Euclidean norm; "rank" clips
        every feature to [-data_norm, data_norm] instead. Ignored if `bounds` is given.
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=None
        Public bounds: a pair (lower, upper) of numbers or arrays of shape (n_features,), or a pair
        for every feature, in order or by name. Values outside are clipped. A null row contributes
        nothing. If `data_norm` is None too, "rank" draws among floats of all magnitudes, as
        `DPQuantile` does, and the geometric mechanisms first draw a range of every feature, for 15
        to 55 per cent of the budget.
    max_iter : int, default=None
        Number of steps of "gradient", at least 2; None is 60.
    max_weight : float, default=None
        Public bound on weights of rows, in [1e-50, 1e50]; larger weights are clipped to it. None:
        `fit` takes no weights (:ref:`sample_weight`).
    budget : PrivacyBudget, default=None
        A budget shared by several fits. Each fit is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise reproducible, voids
        the guarantee towards anybody who knows it, and warns.
    verbose : int, default=0
        1 prints a line with the plan and its price, and a progress bar if the fit takes seconds;
        public numbers only.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        The released median.
    bounds_ : tuple of ndarray of shape (n_features,)
        The range that was drawn, lower and upper ends; only of the geometric mechanisms, without
        `data_norm` and `bounds`.
    mechanism_ : {"rank", "gradient", "exponential"}
        The mechanism that ran.
    n_iter_ : int
        Number of releases after those of a range: steps of "gradient", features of "rank", 1 for
        "exponential".
    error_bound_ : float
        A proved bound, for any rows, that follows from public numbers and from what was
        released. For "rank": with probability 0.99 or more, the rank of every median is off by at
        most this fraction of the rows. Otherwise the mean distance to the clipped rows exceeds
        the smallest possible by at most this much, in the units of the data: for "gradient" with
        probability 0.99 or more, for "exponential" in expectation.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    Warns
    -----
    PrivacyWarning
        If epsilon or delta is too large, or a parameter has no effect.
    NoisyEstimateWarning
        If there are too few rows for ranks or for a private range, by public numbers, or a
        released value lies on its bound.

    See Also
    --------
    DPQuantile : Other quantiles of every feature.
    DPMean : Private mean.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean over its rows to
    every sum or count. The number of rows or groups (a secret under add-remove), the number and
    names of features and all parameters are public. Under zero-out, on the unit ball: "gradient"
    releases subgradients of the sum of distances, whose l2 sensitivity is 1; for "exponential" the
    change of that sum stays in an interval of length 2; for "rank" the change of a rank's distance
    to n/2 stays in one of length 1. Under replace-one all three double. The law of "exponential" is
    exact for real numbers and computed in floating point. Timing, exceptions on malformed input and
    `score` on private data are not covered.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.
    .. [2] F. McSherry and K. Talwar, "Mechanism design via differential privacy",
       FOCS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.location import DPMedian
    >>> incomes = np.random.default_rng(0).lognormal(3, 1, size=(1000, 1))
    >>> median = DPMedian(epsilon=1.0, bounds=(0, 1e4), random_state=0).fit(incomes)
    >>> bool(18 < median.location_[0] < 23)
    True
    >>> median.mechanism_, median.privacy_spent_
    ('rank', (1.0, 0.0))
    >>> anywhere = DPMedian(epsilon=1.0, random_state=0).fit(incomes)
    >>> bool(18 < anywhere.location_[0] < 23)
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "data_norm": [*SHARED_CONSTRAINTS["data_norm"], None],
        "mechanism": [StrOptions({"auto", "rank", "gradient", "exponential"})],
        "bounds": [tuple, list, dict, np.ndarray, None],
        "max_iter": [Interval(Integral, 2, None, closed="left"), None],
        "max_weight": SCALE_OR_NONE,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        mechanism: Literal["auto", "rank", "gradient", "exponential"] = "auto",
        adjacency: Adjacency = "replace-one",
        data_norm: float | None = None,
        bounds: Bounds | None = None,
        max_iter: int | None = None,
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.mechanism = mechanism
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.bounds = bounds
        self.max_iter = max_iter
        self.max_weight = max_weight
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        *,
        groups: VectorLike | None = None,
        sample_weight: VectorLike | None = None,
    ) -> Self:
        """Release the median.

        Parameters
        ----------
        X : array-like or RowStream of shape (n_samples, n_features)
            Private rows. "rank" reads a stream once for as many columns as fit in 256 MiB, with
            4 bytes for every value: its position on a grid. A draw takes up to 70 bytes a row
            for a moment, if no two values are equal. "exponential" needs all rows in memory.
        y : None
            Ignored.
        groups : array-like or RowStream of shape (n_samples,), default=None
            Whose row it is: numbers, or text. All rows of a group are protected together, whatever
            their number, and count as one row does, each as one over their number: what is released
            is a median of all rows, in which every group has the same weight. The number of groups
            is public. Beside a stream of rows also one of identifiers, or an array. None protects
            rows. See :ref:`groups`.
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of the rows, finite and not negative; only with `max_weight`. Larger
            weights are clipped to it. A twentieth of epsilon is for their noisy total. See
            :ref:`sample_weight`.

        Returns
        -------
        self : DPMedian
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable, or the mechanism cannot serve the
            number of features, ``delta=0`` or a stream; nothing has been released then.
        BudgetError
            If a shared budget has less left, or protects groups and there are none.
        """
        check_groups(self, groups)
        # 1. price, before any data
        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta)
        if self.mechanism == "gradient":
            gdp_mu(epsilon, delta)
        # 2. validate
        whole = whole_columns(X)
        X = validate_private_data(self, X, streams=True, order="C")
        # 3. plan, from public facts
        n_features = X.shape[1]
        mechanism, place = self._choose(n_features), self._place(n_features)
        rows = held(X) if mechanism == "exponential" else X
        if mechanism != "rank" and place is not None:
            check_radius(place.unit, "half the diagonal of the box between bounds")
        (n_rows, unit), whose = count_rows(groups, X, hidden_count(self), sample_weight)
        if mechanism != "gradient":
            delta = 0.0
        shape, tau = {"n_rows": n_rows, "n_features": n_features}, check_quantile(0.5)
        doubts, ranges = Doubts(self), None
        if mechanism == "rank":
            sides = n_rows, n_features
            if place is None:
                grid = ladder_for(tau, epsilon, self.adjacency, sides)
            else:
                grid = even_grid(place.lower, place.upper, whole)
            say_of_quantiles(doubts, tau, epsilon, self.adjacency, sides, unit, grid)
        elif place is None:
            mu = gdp_mu(epsilon, delta) if mechanism == "gradient" else None
            ranges = plan_range(epsilon, mu, adjacency=self.adjacency, **shape)
            say_of_range(doubts, ranges, epsilon, unit)
        if self.data_norm is not None and self.bounds is not None:
            doubts.promise("data_norm has no effect with bounds. Give only one.")
        if self.max_iter is not None and mechanism != "gradient":
            doubts.promise(
                f"max_iter has no effect with mechanism={mechanism!r}, which takes no steps. "
                "leave it out."
            )

        steps = {"rank": n_features, "exponential": 1, "gradient": self.max_iter or _STEPS}
        n_iter = steps[mechanism]
        first: Any = place or ranges
        beside = ranges.beside if ranges else ((), 0.0)
        # 4. gate, 5. run
        with open_gate(
            self,
            lambda: (
                ranked_rows(X, grid, counts_of(whose))
                if mechanism == "rank"
                else first.admitted(rows, counts_of(whose))
            ),
            n_rows=n_rows,
            unit=unit,
            delta=delta,
            mu=mu_of_all(epsilon, delta, beside[0]) if delta else None,
            n_releases=n_iter + (ranges.n_releases if ranges else 0),
            doubts=doubts,
        ) as curator:
            if ranges is not None:
                place = Place.between(*ranges.run(curator, REACH, doubts, whole))
                curator.map_rows(lambda ranked: place.admitted(ranked.X, ranked.weight))
            if mechanism == "rank":
                location, bound = release_quantiles(curator, tau, grid, epsilon, sides)
                say_of_grid(doubts, location, grid)
                if place is None:
                    location = np.where(whole, np.rint(location), location)
            elif mechanism == "exponential":
                left = epsilon if ranges is None else (epsilon - ranges.epsilon) * (1 - 1e-12)
                price = ExponentialMechanism(left)
                location, bound = draw_median(curator, price, place, n_rows)
            else:
                mu = mu_beside(epsilon, delta, *beside)
                location, bound = descend_to_median(
                    curator, mu, place, n_rows, self.adjacency, n_iter
                )
            if mechanism != "rank" and ranges is None:
                _say_of_place(doubts, location, place)
        # 6. attributes: what was released, and what is public
        self.location_, self.error_bound_ = location, bound
        if ranges is not None:
            self.bounds_ = place.lower, place.upper
        elif hasattr(self, "bounds_"):
            del self.bounds_
        self.mechanism_, self.n_iter_ = mechanism, n_iter
        return self

    def _place(self, n_features):
        """Return where the rows are said to be, or None if nothing is said."""
        if self.data_norm is None and self.bounds is None:
            return None
        return Place.described(self, n_features)

    def _choose(self, n_features):
        """Return the mechanism to run, or raise ValueError."""
        few = n_features <= MOST_FEATURES
        if self.mechanism == "exponential" and not few:
            raise ValueError(
                f"mechanism='exponential' must have at most {MOST_FEATURES} features, beyond which "
                f"exact sampling is too slow; X has {n_features}. Use mechanism='rank', feature by "
                "feature, or mechanism='gradient' with delta > 0."
            )
        if self.mechanism != "auto":
            return self.mechanism
        if n_features == 1:
            return "rank"
        if self.delta > 0:
            return "gradient"
        if few:
            return "exponential"
        raise ValueError(
            f"delta must be greater than 0 for the geometric median of more than {MOST_FEATURES} "
            f"features; X has {n_features}. Give a delta, for mechanism='gradient', or choose "
            "mechanism='rank', which releases the median of every feature and spends no delta."
        )

    def score(
        self, X: MatrixLike, y: object = None, sample_weight: VectorLike | None = None
    ) -> float:
        """Return minus the mean Euclidean distance of rows to the released median.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. If they are private, so is the score: it is not covered.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            What rows count in the mean, not negative; None is 1 each.

        Returns
        -------
        score : float
            At most 0; higher is better.
        """
        X = self._check(X).astype(np.float64, copy=False)
        # distances in two parts, because squares overflow; a distance that does is infinite
        with np.errstate(over="ignore", under="ignore"):
            gaps = np.abs(X - self.location_)
            longest = np.clip(gaps.max(axis=1), 1e-300, 1e300)
            distance = longest * np.linalg.norm(gaps / longest[:, None], axis=1)
            return -float((distance * shares_of_score(sample_weight, X)).sum())

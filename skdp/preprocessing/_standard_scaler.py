# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Standardization of features by private means and standard deviations.

With public bounds, one release: first and second moments of all features in the box between the
bounds (`MomentSum`). Without, a box is found first: a median of every feature, then a quantile of
the distances to it, both by noisy bisection of counts of sides (`SideSum`). Each step of it
releases one vector of counts, at one threshold per feature. How many steps there are and what
they cost is public; all the rest is arithmetic on released numbers.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from skdp._bisection import MANTISSA_BITS, FloatKey, SideSum, bisect_quantile, shortest
from skdp._counted import check_groups, count_rows, counts_of, hidden_count
from skdp._export import standard_scaler
from skdp._gate import Doubts, are_few, open_gate
from skdp._plan import PlanMixin
from skdp._rows.base import Box, bounds_of, sum_over
from skdp._rows.columns import FeatureRows
from skdp._rows.streams import whole_columns
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    effective_n_threads,
    fit_context,
    refuse_sparse,
    validate_private_data,
)
from skdp._typing import Adjacency, Bounds, Budget, MatrixLike, Seed, VectorLike
from skdp.location._mean import say_of_edge
from skdp.location._range import FINEST_WIDTH, NARROWEST_WIDTH, plan_range, say_of_range
from skdp.preprocessing._base import ShiftAndScale
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import GaussianMechanism, LaplaceMechanism
from skdp.privacy.laws.calibration import gdp_mu, mu_of_all

# The plan: which releases there are, and how the budget is shared.

# parts of mu^2 for the medians, the spreads and the moments, and steps of the first two
_SHARES, _STEPS = (0.25, 0.25, 0.5), (42, 20)
# a spread that may be wrong by more than this factor is not used
_UNKNOWN = 2.0**10
# so large a second moment in the box means that it leaves out many rows
_OUTSIDE = 0.4
# floats that may still be added, halved and multiplied
_LARGEST_BOUND, _SMALLEST_BOUND = 1.7e308, 1e-300


def bounded_moments(curator, box, law, n_rows, doubts, is_told):
    """Release means and standard deviations of features within public bounds.

    Parameters
    ----------
    curator : Curator
        Holds `FeatureRows`.
    box : Box
        The bounds.
    law : GaussianMechanism or LaplaceMechanism
        Noise, and its price.
    n_rows : int
        Number of rows.
    doubts, is_told : Doubts, bool
        Takes notes; whether variances below their noise are one.

    Returns
    -------
    mean, scale : ndarray of shape (n_features,)
        In the units of the data.
    """
    mean, variance, noise = _moments_in(curator, box, law, n_rows)
    # a variance is at least twice its noise
    lost = (variance <= _SMALLEST * noise * (1 + 1e-9)) & (noise < _CLEAR) | (noise > _HIDES)
    if say_of_edge(doubts, mean, WEIGHT * noise, "bounds"):
        lost &= np.abs(mean) < 1 - 2 * WEIGHT * noise
    if is_told and lost.any():
        names = doubts.named(np.flatnonzero(lost))
        doubts.noise(
            f"the variances of column(s) {names} are hidden by their noise, which was taken for "
            "them. Give narrower bounds, or use more rows, fewer columns or a larger epsilon; a "
            "constant column is harmless."
        )
    with np.errstate(under="ignore"):
        return box.center + box.half_width * mean, box.half_width * np.sqrt(variance)


def _moments_in(curator, box, law, n_rows):
    """Release means and variances in the units of the box; also return the variances' noise."""
    query = MomentSum(box)
    total = curator.release(query, law)
    noise = curator.ledger.releases[-1].noise.scale
    if isinstance(law, LaplaceMechanism):
        noise *= math.sqrt(2)
    return *query.moments(total, n_rows, noise), noise / (WEIGHT * n_rows)


# fewer rows than this, times the Gaussian-DP parameter, do not show the scale of one number
_FEWEST = 47.0


def say_of_moments(doubts, n_columns, ranks, remedy, unit="row"):
    """Take note of scales without bounds that are mostly noise; public numbers alone decide.

    Parameters
    ----------
    doubts : Doubts
        Takes the note.
    n_columns : int
        How many scales are asked for.
    ranks : float
        Number of rows times the Gaussian-DP parameter.
    remedy : str
        What could be given.
    unit : {"row", "group"}
        What is protected.
    """
    if n_columns and ranks < _FEWEST * math.sqrt(n_columns):
        doubts.noise(
            f"there are too few {unit}s at this epsilon to find the scales of {n_columns} columns. "
            f"Give {remedy}, use more {unit}s or a larger epsilon."
        )


def unbounded_moments(curator, mu, adjacency, shape, missing=False):
    """Release means and standard deviations of features without bounds.

    Medians, then a quantile of the distances to them, both by noisy bisection; they make
    a box, and the rest is as with bounds.

    Parameters
    ----------
    curator : Curator
        Holds `FeatureRows`.
    mu : float
        Price of everything together.
    adjacency : str
        As the curator has it.
    shape : tuple of int
        Numbers of rows and features.
    missing : bool, default=False
        Whether a value may be NaN. It has no say in the median, and counts as that from then on.

    Returns
    -------
    mean, scale : ndarray of shape (n_features,)
        In the units of the data. The scale is 0 where a feature is constant, or its spread
        cannot be told; its mean is the median then.
    """
    n_rows, n_features = shape
    searches = [
        GaussianMechanism(mu * math.sqrt(share / steps))
        for share, steps in zip(_SHARES, _STEPS, strict=False)
    ]
    some = SideSum(np.zeros(n_features)).sensitivity(adjacency, n_rows)
    noises = [mechanism.calibrate(some, n_features).scale for mechanism in searches]
    public = {"n_rows": n_rows, "n_features": n_features}

    def sides_of_values(thresholds):
        return curator.release(SideSum(thresholds), searches[0])

    def sides_of_distances(thresholds):
        return curator.release(SideSum(thresholds, center), searches[1])

    steps, scale = _STEPS[0], noises[0]
    center = shortest(
        bisect_quantile(sides_of_values, FloatKey(), 0.5, steps=steps, scale=scale, **public)
    )
    if missing:
        curator.map_rows(lambda rows: rows.filled(center))
    tau, reach = _level(noises[1], n_rows), _reach(mu, adjacency, shape)
    steps, scale = _STEPS[1], noises[1]
    belief = bisect_quantile(
        sides_of_distances, _SPREAD_KEY, tau, steps=steps, scale=scale, **public
    )
    spread, (low, high) = belief.middle, belief.interval()
    with np.errstate(over="ignore", under="ignore"):
        # this bisection did not end, or that of medians does not see further
        flat = (high > _UNKNOWN * low) | (spread <= np.ldexp(np.abs(center), 2 - MANTISSA_BITS))
        half = np.where(flat, np.maximum(np.abs(center), 1.0), spread * reach / _gaussian(tau))
        half = np.clip(half, _SMALLEST_BOUND, _LARGEST_BOUND / 4)
        box = Box(
            tuple(np.clip(center - half, -_LARGEST_BOUND, _LARGEST_BOUND)),
            tuple(np.clip(center + half, -_LARGEST_BOUND, _LARGEST_BOUND)),
        )
    law = GaussianMechanism(mu * math.sqrt(_SHARES[2]))
    mean, variance, noise = _moments_in(curator, box, law, n_rows)
    # many rows at the ends of the box: the spread fell into a gap between the values
    flat |= mean * mean + variance > _OUTSIDE + 3 * noise
    mean, scale = box.center + box.half_width * mean, box.half_width * np.sqrt(variance)
    return np.where(flat, center, mean), np.where(flat, 0.0, scale)


def _features_of(rows):
    """Return rows of a ladder as they are."""
    return FeatureRows(rows.X, n_threads=effective_n_threads(), weight=rows.weight)


def pure_moments(curator, ranges, epsilon, adjacency, doubts, whole):
    """Release means and standard deviations of features without bounds and without a delta.

    Parameters
    ----------
    curator : Curator
        Holds what the plan of the ranges admits.
    ranges : RangePlan
        How a range of every feature is drawn.
    epsilon : float
        Price of everything together.
    adjacency : str
        As the curator has it.
    doubts : Doubts
        Takes notes.
    whole : ndarray of shape (n_features,), dtype bool
        Features that have whole numbers alone, by their type.

    Returns
    -------
    mean, scale : ndarray of shape (n_features,)
        As `unbounded_moments` returns them.
    """
    n_rows, n_features = ranges.n_rows, ranges.n_features
    law = LaplaceMechanism((epsilon - ranges.epsilon) * (1 - 1e-12))
    moved = MomentSum(Box((-1.0,) * n_features, (1.0,) * n_features)).sensitivity(adjacency, n_rows)
    reach = reach_at(math.sqrt(2) * moved.l1 / (law.epsilon * n_rows))
    box = Box(*map(tuple, ranges.run(curator, reach, doubts, whole)))
    curator.map_rows(lambda rows: _features_of(rows))
    mean, variance, noise = _moments_in(curator, box, law, n_rows)
    # as narrow as a range can be: most rows are equal; or many lie at its ends
    flat = box.half_width <= 1.01 * np.maximum(np.abs(box.center) * FINEST_WIDTH, NARROWEST_WIDTH)
    flat |= mean * mean + variance > _OUTSIDE + 3 * noise
    mean, scale = box.center + box.half_width * mean, box.half_width * np.sqrt(variance)
    return np.where(flat, box.center, mean), np.where(flat, 0.0, scale)


def _level(noise, n_rows):
    """Return which quantile of the distances to search: as high as noise lets it be seen."""
    return min(max(0.5, 1 - 3 * noise / n_rows), 0.99)


def _gaussian(tau):
    """Return that quantile of the distances, in standard deviations of a Gaussian."""
    return float(ndtri((1 + tau) / 2))


def _reach(mu, adjacency, shape):
    """Return the half width of the box in standard deviations of a Gaussian.

    The noise of a variance, relative to it, grows with the square of the reach; this keeps
    it near 2 per cent of a standard deviation, as long as the box is not too narrow for
    the rows.
    """
    n_rows, n_features = shape
    unit = MomentSum(Box((-1.0,) * n_features, (1.0,) * n_features))
    moved = unit.sensitivity(adjacency, n_rows).l2
    return reach_at(moved / (mu * math.sqrt(_SHARES[2]) * n_rows))


def reach_at(noise):
    """Return the half width of the box, for a standard deviation of the noise of a mean in it."""
    return min(max(math.sqrt(0.07 / noise), 3.5), 20.0)


# First and second moments of all features, in one release.

#: weight of the squares: the largest at which they are free under replace-one
WEIGHT = math.sqrt((11 + 5 * math.sqrt(5)) / 8)
#: what is subtracted from a square, so that a square of 0 is as long as one of 1
OFFSET = (1 + 1 / WEIGHT**2) / 2
# the smallest variance, in standard deviations of its noise; below which noise it is that of bounds
# far too wide (in usual ones it is a sixteenth of the square of half the width, or more); and from
# which noise any is hidden
_SMALLEST, _CLEAR, _HIDES = 2.0, 0.015, 0.25


@dataclass(frozen=True)
class MomentSum:
    """Sums over rows of ``u_j`` and of ``w (u_j^2 - b)``, for every feature j.

    u is the row, clipped into a public box and mapped to [-1, 1] per feature; w is `WEIGHT`,
    b is `OFFSET`.

    Parameters
    ----------
    box : Box
        Public bounds.

    Notes
    -----
    The rows are `FeatureRows`. A NaN contributes 0 to both sums.
    """

    box: Box

    name = "sums of features in the box [-1, 1]^d and of their squares"

    @property
    def size(self):
        """Number of coordinates: d sums, then d sums of squares."""
        return 2 * len(self.box.lower)

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: w b sqrt(d), about 1.133 sqrt(d), or 2 sqrt(d); and that of l1.

        Proof, for one feature; d of them are sqrt(d) times as long.

        Zero-out removes (u, w (u^2 - b)). With s = u^2 its squared length is
        ``s + w^2 (s - b)^2``, convex in s, so largest at s = 0 or s = 1; b makes both
        ``(w b)^2``, and w b = (w + 1/w) / 2.

        Replace-one changes (u, w u^2) to (v, w v^2). With p = |u - v| and
        q = |u + v| <= 2 - p the squared distance is at most ``p^2 (1 + w^2 (2 - p)^2)``.
        This is at most 4 for ``w^2 <= (2 + p) / (p^2 (2 - p))``, whose minimum, at
        p = sqrt(5) - 1, is (11 + 5 sqrt(5)) / 8: that is w^2. It is 4 at p = 2. A row
        that becomes null counts as removed, and w b < 2.

        In l1 a feature adds ``|u| + w |u^2 - b|``, which rises in |u| from where u^2 = b, to
        1 + w (1 - b) = 1 + (w - 1/w) / 2, about 1.53. Below that it is |u| + w b - w u^2, at most
        w b + 1/(4 w), about 1.28. Replace-one adds at most ``p + w p (2 - p)``, which is
        (1 + 2 w)^2 / (4 w) at p = 1 + 1/(2 w), about 2.81; a removal is shorter.

        A group, whose weights add up to at most 1, contributes a mean of what rows contribute,
        and of zero: it is no longer, and two are no further apart, than the farthest of these.
        """
        root = math.sqrt(self.size // 2)
        reach, count = WEIGHT * OFFSET, self.size // 2
        if adjacency == "zero-out":
            l1, l2 = (1 + (WEIGHT - 1 / WEIGHT) / 2) * count, reach * root
            theorem = "a feature and its square: at most w b"
        else:
            l1, l2 = (1 + 2 * WEIGHT) ** 2 / (4 * WEIGHT) * count, 2 * root
            theorem = "a feature and its square: diameter 2, as the feature alone"
        return Sensitivity(l1=l1, l2=l2, bound=reach * n_rows, theorem=theorem)

    def partial(self, chunk):
        """Return the sums over a chunk's rows."""
        return chunk.sums(self._moments)

    def _moments(self, values, columns):
        lower, upper = np.asarray(self.box.lower), np.asarray(self.box.upper)
        unit = np.clip(values, lower[columns], upper[columns])
        unit -= self.box.center[columns]
        # a box of the smallest floats: the quotient is clipped
        with np.errstate(over="ignore", under="ignore"):
            unit /= self.box.half_width[columns]
            np.clip(unit, -1.0, 1.0, out=unit)
            square = WEIGHT * (unit * unit - OFFSET)
        missing = np.isnan(unit)
        unit[missing] = square[missing] = 0.0
        return [unit, square]

    def evaluate(self, rows):
        """Return both sums over all rows, an array of shape (2 n_features,)."""
        return sum_over(rows, self.partial, self.size)

    def moments(self, total, n_rows, scale):
        """Return means and variances in the units of the box, from released sums.

        Parameters
        ----------
        total : ndarray of shape (2 * n_features,)
            What was released.
        n_rows : int
            Number of rows.
        scale : float
            Standard deviation of the noise of a sum.

        Returns
        -------
        mean, variance : ndarray of shape (n_features,)
            For u in [-1, 1]. The variance is held above twice the standard deviation of its
            noise (and below 1): of smaller ones nothing is known.
        """
        first, second = np.split(total / n_rows, 2)
        noise = scale / n_rows
        # the square of a noisy mean is too large by the noise's variance
        variance = second / WEIGHT + OFFSET - first * first + noise * noise
        floor = min(_SMALLEST * noise / WEIGHT, 1.0)
        return np.clip(first, -1.0, 1.0), np.clip(variance, floor, 1.0)


#: a spread is needed to a few per cent
_SPREAD_KEY = FloatKey(mantissa_bits=3, signed=False)


class DPStandardScaler(PlanMixin, ShiftAndScale):
    """Standardise features with differentially private means and standard deviations.

    A private version of scikit-learn's ``StandardScaler``. With public `bounds` it makes one
    release with Gaussian noise. Without bounds it first searches for a median and a spread of
    every feature, over all scales of floats.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0.
    delta : float, default=1e-6
        Privacy budget in [0, 1). At 0 the noise is Laplace noise, and ranges without bounds are
        drawn by rank, as those of `DPMean`.
    with_mean : bool, default=True
        Whether `transform` subtracts the means. Sparse rows need False.
    with_std : bool, default=True
        Whether `transform` divides by the standard deviations.
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=None
        Public bounds: a pair (lower, upper) of numbers or arrays of shape (n_features,), or a pair
        for every feature, in order or by name. Values outside are clipped in `fit`, not in
        `transform`. None searches for a range.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in the presence of a row ("add-remove", where the number of rows is
        released first; otherwise it is public). See :ref:`adjacency`.
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
    mean_ : ndarray of shape (n_features,) or None
        Released means. None if neither `with_mean` nor `with_std`.
    var_ : ndarray of shape (n_features,) or None
        Released variances, above a floor that follows from the noise; 0 for a feature that seems
        constant, or has an unknown spread. None if not `with_std`.
    scale_ : ndarray of shape (n_features,) or None
        Square root of `var_`, 1 where that is 0. None if not `with_std`.
    n_samples_seen_ : int
        Number of rows, or of groups; 1 if it is a secret and nothing is released.
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
    NoisyEstimateWarning
        If there are too few rows for scales without bounds, by public numbers, or a released mean
        lies at the edge of its bounds.

    See Also
    --------
    BoundedScaler : Scale by public bounds, which costs nothing.
    sklearn.preprocessing.StandardScaler : The same without privacy.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean over its rows to
    every sum. The number of rows or groups (a secret under add-remove), the number and names of
    features, the type of the input and all parameters are public. All releases have Gaussian noise,
    and compose to exactly the mu-GDP of (epsilon, delta); at ``delta=0`` two draws by rank for each
    feature and a sum with Laplace noise add up to epsilon. A count of sides moves by sqrt(d)/2
    under zero-out and sqrt(d) under replace-one (l2); the sums of features and of their squares in
    the box together by 1.133 sqrt(d) and 2 sqrt(d): the squares are free under replace-one. In l1
    they move by 1.54 d and 2.82 d. Timing and exceptions on malformed input are not covered.

    Accuracy. The error grows with sqrt(d) / (n epsilon). Without bounds, n epsilon above 200
    sqrt(d) is needed to find the scales at all; below, features keep their scale, or get a wrong
    one. The moments are those of rows clipped to a range around the median, without the outer part
    of heavy tails. Give bounds if you know them.

    References
    ----------
    .. [1] M. Horstein, "Sequential transmission using noiseless feedback", IEEE Transactions
       on Information Theory, 1963.
    .. [2] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential
       privacy", ICML 2018.
    .. [3] Z. Huang, Y. Liang and K. Yi, "Instance-optimal mean estimation under
       differential privacy", NeurIPS 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPStandardScaler
    >>> X = np.random.default_rng(0).normal([0, 1e6], [1e-3, 50], size=(5000, 2))
    >>> scaler = DPStandardScaler(epsilon=1.0, random_state=0).fit(X)
    >>> bool(abs(scaler.transform(X).std(axis=0) - 1).max() < 0.1)
    True
    >>> scaler.privacy_spent_[0] <= 1.0
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    _count_share = 0.1
    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        **{name: SHARED_CONSTRAINTS[name] for name in ("epsilon", "delta", "adjacency")},
        "with_mean": ["boolean"],
        "with_std": ["boolean"],
        "bounds": [tuple, list, dict, np.ndarray, None],
        "budget": SHARED_CONSTRAINTS["budget"],
        "random_state": SHARED_CONSTRAINTS["random_state"],
        "max_weight": SCALE_OR_NONE,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        with_mean: bool = True,
        with_std: bool = True,
        bounds: Bounds | None = None,
        adjacency: Adjacency = "replace-one",
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.with_mean = with_mean
        self.with_std = with_std
        self.bounds = bounds
        self.adjacency = adjacency
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
        """Release means and standard deviations.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Private rows; sparse only with ``with_mean=False``.
        y : None
            Ignored.
        groups : array-like or RowStream of shape (n_samples,), default=None
            Whose row it is: numbers, or text. All rows of a group are protected together, whatever
            their number, and count as one row does, each as one over their number: what is released
            are the means and deviations of all rows, in which every group has the same weight. The
            number of groups is public. Beside a stream of rows also one of identifiers, or an
            array. None protects rows. See :ref:`groups`.
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of the rows, finite and not negative; only with `max_weight`. Weights
            beyond that count as that. A tenth of epsilon goes to their noisy total. See
            :ref:`sample_weight`.

        Returns
        -------
        self : DPStandardScaler
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable; nothing has been released then.
        BudgetError
            If a shared budget has less left, or protects groups and there are none.
        """
        check_groups(self, groups)
        # 1. price, before any data
        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta)
        mu = gdp_mu(epsilon, delta) if delta else None
        law = GaussianMechanism(mu) if mu else LaplaceMechanism(epsilon)
        # 2. validate
        shifts = "with_mean=True", "with_mean=False"
        if self.with_mean:
            refuse_sparse(X, *shifts)
        whole = whole_columns(X)
        X = validate_private_data(self, X, streams=True, accept_sparse="csr", order="C")
        if self.with_mean:
            # the format of a stream is known by now
            refuse_sparse(X, *shifts)
        # 3. plan, from public facts
        n_features, box = X.shape[1], None
        if self.bounds is not None:
            lower, upper = bounds_of(self, n_features)
            box = Box(tuple(lower), tuple(upper))
        if mu is None and box is None and self._releases:
            refuse_sparse(X, "delta=0 without bounds", "bounds, or a delta above 0")
        (n_rows, unit), whose = count_rows(groups, X, hidden_count(self), sample_weight)
        mean: Any = None
        scale: Any = None
        doubts, ranges = Doubts(self), None
        if mu is None and box is None and self._releases:
            shape = {"n_rows": n_rows, "n_features": n_features}
            ranges = plan_range(epsilon, None, adjacency=self.adjacency, **shape)
            say_of_range(doubts, ranges, epsilon, unit)
        n_releases = 1 if box else sum(_STEPS) + 1 if ranges is None else ranges.n_releases + 1
        # 4. gate, 5. run
        with open_gate(
            self,
            lambda: (
                ranges.admitted(X, counts_of(whose))
                if ranges
                else FeatureRows(X, n_threads=effective_n_threads(), weight=counts_of(whose))
            ),
            n_rows=n_rows,
            unit=unit,
            delta=delta,
            mu=mu_of_all(epsilon, delta) if mu else None,
            n_releases=n_releases if self._releases else None,
            shared=self._releases,
            doubts=doubts,
        ) as curator:
            if ranges is not None:
                mean, scale = pure_moments(curator, ranges, epsilon, self.adjacency, doubts, whole)
            elif self._releases and box is None:
                mean, scale = unbounded_moments(curator, mu, self.adjacency, (n_rows, n_features))
                say_of_moments(doubts, n_features, n_rows * mu, "public bounds", unit)
            elif self._releases and box is not None:
                is_told = self.with_std and not are_few(n_rows, epsilon)
                mean, scale = bounded_moments(curator, box, law, n_rows, doubts, is_told)
        # 6. attributes: what was released, and what is public
        self.mean_, self.var_, self.scale_ = mean, None, None
        if self.with_std:
            # a variance may leave the range of floats where a scale does not
            with np.errstate(over="ignore", under="ignore"):
                self.var_ = scale * scale
            self.scale_ = np.where(scale == 0, 1.0, scale)
        # a secret number that was not released remains one: otherwise the adjacency is another here
        self.n_samples_seen_ = 1 if self.adjacency == "add-remove" else n_rows
        return self

    @property
    def _releases(self):
        """Whether a fit releases anything; if not, it costs nothing."""
        return self.with_mean or self.with_std

    def _twin(self):
        return standard_scaler(
            self.n_features_in_,
            self.mean_ if self.with_mean else None,
            self.scale_,
            mean_=self.mean_,
            var_=self.var_,
            n_samples_seen_=self.n_samples_seen_,
        )

    def _constants(self):
        return self.mean_ if self.with_mean else 0.0, self.scale_ if self.with_std else 1.0

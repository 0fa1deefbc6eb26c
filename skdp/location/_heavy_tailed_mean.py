# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private means of heavy-tailed rows: one clipping radius, and the error that it proves.

Rows x are independent, of one law, with E|x|^k <= r^k for some k > 1. They are clipped to the
radius C = x r, and their mean gets noise in proportion to C. `MomentRadius` balances bias and
noise, in units of r; Proposition 57 proves what it says. The bias has the best constant there
is, where Lemma 7 of [1]_ has 1 / (k - 1). Without a bound on a moment the radius is drawn from
the data (`NormThreshold` in `skdp._quantiles`). Either way one sum of clipped rows is released,
`ClippedRowSum` in `skdp.location._clipped_mean`.

.. [1] D. Xu, M. Ding, Z. Xiang, J. Xu and D. Wang, "Beyond ordinary Lipschitz constraints:
   differentially private stochastic optimization with Tsybakov noise condition", 2025.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammainccinv

from skdp._counted import check_groups, count_rows, counts_of, hidden_count
from skdp._gate import Doubts, open_gate
from skdp._quantiles import ThresholdPlan, plan_threshold
from skdp._rows.base import RADIUS_RANGE, L2Ball, ball_constraint, check_radius
from skdp._rows.linear import ball_rows
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    effective_n_threads,
    fit_context,
    validate_private_data,
)
from skdp._typing import Adjacency, Budget, MatrixLike, Seed, VectorLike
from skdp.location._base import MeanEstimator
from skdp.location._clipped_mean import ClippedRowSum
from skdp.location._norm_quantile import say_of_radius
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.privacy.laws.calibration import gdp_mu, mu_beside, mu_of_all
from skdp.privacy.laws.k_norm import KNormMechanism

# The radius that a bound on a moment suggests, and the error that it proves.

MOST_MOMENTS, _LEAST_FAILURE = 1000.0, 1e-300
# Logarithms of radii that are searched, and how precisely.
_RANGE, _PRECISION = 800.0, 1e-9


def check_moments(order, bound, failure):
    """Raise a ValueError that names the parameter of the moment that is out of range."""

    def number(value):
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)

    if not (number(order) and 1 < order <= MOST_MOMENTS):
        raise ValueError(
            f"moment_order must be a number greater than 1 and at most 1000; got {order!r}."
        )
    if not (bound is None or (number(bound) and 1e-50 <= bound <= 1e50)):
        raise ValueError(f"moment_bound must be None or a number in [1e-50, 1e50]; got {bound!r}.")
    if failure is None:
        return
    if not (number(failure) and _LEAST_FAILURE <= failure < 1):
        raise ValueError(
            f"failure_probability must be None or a number in [1e-300, 1); got {failure!r}."
        )
    if bound is None:
        raise ValueError(
            f"failure_probability={failure!r} needs a moment_bound: without one no bound on the "
            "error is known. Set moment_bound, or failure_probability=None."
        )


@dataclass(frozen=True)
class NoiseNorm:
    """The norm of a vector of noise, in its scales.

    Parameters
    ----------
    law : {"gaussian", "k-norm"}
        Law of the noise.
    size : int
        Number of coordinates.
    """

    law: str
    size: int

    @property
    def rms(self):
        """Root of the expected square."""
        square = self.size if self.law == "gaussian" else self.size * (self.size + 1.0)
        return math.sqrt(square)

    def exceeded(self, failure):
        """Return what the norm exceeds with probability `failure`.

        The square of a Gaussian norm is chi-square, a K-norm has a Gamma law.
        """
        if self.law == "gaussian":
            return math.sqrt(2 * float(gammainccinv(self.size / 2, failure)))
        return float(gammainccinv(self.size, failure))


@dataclass(frozen=True)
class MomentRadius:
    """Errors of clipped means with noise, and the radius at which they are least.

    Parameters
    ----------
    order : float
        k, greater than 1.
    n_rows : int
        Number of rows.
    noise : NoiseNorm
        Law of the noise.
    failure : float or None, default=None
        None for the expected error; else what the error exceeds with at most this probability.
    """

    order: float
    n_rows: int
    noise: NoiseNorm
    failure: float | None = None

    def error(self, radius, scale):
        """Return a bound on the Euclidean error of the mean, in units of r.

        Parameters
        ----------
        radius : float
            Clipping radius. The released mean is in the ball of radius ``min(radius, 1)``.
        scale : float
            Scale of the noise in the mean.

        Returns
        -------
        bound : float
            At most 2.
        """
        spread = _squares(self.order, radius) / self.n_rows
        deviation = math.hypot(self.noise.rms * scale, math.sqrt(spread))
        if self.failure is not None:
            # Chebyshev, or Bernstein in a Hilbert space; the first is better for few nines
            logarithm = math.log(4 / self.failure)
            jump = 2 * radius * logarithm / (3 * self.n_rows)
            tail = scale * self.noise.exceeded(self.failure / 2)
            tail += jump + math.hypot(jump, math.sqrt(2 * logarithm * spread))
            deviation = min(deviation / math.sqrt(self.failure), tail)
        return min(clipping_bias(self.order, radius) + deviation, 1 + min(radius, 1.0))

    def best(self, slope):
        """Return the radius at which the bound on the error is least, in logarithms.

        Parameters
        ----------
        slope : float
            Scale of the noise in the mean at radius 1, to which it is proportional.

        Returns
        -------
        log_radius : float
            Logarithm of the radius in units of r.

        Notes
        -----
        The bias is taken to be ``c_k x^(1-k)`` at all radii x. All terms are powers of x, roots
        of sums of powers, and sums of these, so that the logarithm of the bound is convex in
        the logarithm of the radius.
        """
        bounds = [self._log_chebyshev]
        if self.failure is not None:
            bounds.append(self._log_bernstein)
        found = [
            minimize_scalar(
                bound,
                args=(math.log(slope),),
                bounds=(-_RANGE, _RANGE),
                method="bounded",
                options={"xatol": _PRECISION},
            )
            for bound in bounds
        ]
        return float(min(found, key=lambda one: one.fun).x)

    def _log_bias(self, u):
        return _log_constant(self.order) + (1 - self.order) * u

    def _log_spread(self, u):
        return max(2 - self.order, 0.0) * u - math.log(self.n_rows)

    def _log_chebyshev(self, u, log_slope):
        noise = 2 * (log_slope + math.log(self.noise.rms) + u)
        deviation = np.logaddexp(noise, self._log_spread(u)) / 2
        deviation -= math.log(self.failure or 1.0) / 2
        return np.logaddexp(self._log_bias(u), deviation)

    def _log_bernstein(self, u, log_slope):
        logarithm = math.log(4 / self.failure)
        jump = math.log(2 * logarithm / (3 * self.n_rows)) + u
        root = np.logaddexp(2 * jump, math.log(2 * logarithm) + self._log_spread(u)) / 2
        noise = log_slope + math.log(self.noise.exceeded(self.failure / 2)) + u
        return np.logaddexp.reduce([self._log_bias(u), jump, root, noise])


def clipping_bias(order, radius):
    """Return the largest bias of clipping, in units of r.

    Parameters
    ----------
    order : float
        k, greater than 1.
    radius : float
        Clipping radius, in units of r.

    Returns
    -------
    bias : float
        Largest expected part of a norm beyond the radius, over all laws with the moment.
    """
    if radius <= (order - 1) / order:
        return 1 - radius
    return math.exp(_log_constant(order) + (1 - order) * math.log(radius))


def _log_constant(order):
    """Return the logarithm of (k-1)^(k-1) / k^k, at most 0."""
    return (order - 1) * math.log1p(-1 / order) - math.log(order)


def _squares(order, radius):
    """Return a bound on the expected square of a clipped row, in units of r^2."""
    return min(radius * radius, radius ** max(2 - order, 0.0))


# The plan: that radius or one that is drawn, and the mean of the rows clipped to it.

# The smallest radius that can be drawn, as a part of the range: eighteen decades cost a
# twentieth more rows beyond the radius than nine.
_RESOLUTION = 1e-18
# The part of epsilon that the draw gets: with few features the mean needs little noise, and
# the rows beyond the radius are what hurts. With too few rows half is given. Chosen on data.
_LEAST, _SLOPE, _MOST, _AT_WORST = 0.1, 0.4, 0.35, 0.5
# Noise of more than some 2^40 steps of the grid that it is rounded to cannot be made: so much
# must the price be, times the root of the number of features.
_LEAST_PRICE = 1e-12


@dataclass(frozen=True)
class HeavyTailedMean:
    """A radius, drawn or computed, and the mean of the rows clipped to it.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data; public.
    ball : float
        Rows are admitted into the ball of this radius, in the units of the data.
    mechanism : GaussianMechanism or KNormMechanism
        Price of the mean.
    draw : ThresholdPlan or None
        How the radius is drawn; None if it is that of the ball.
    moments : MomentRadius or None
        What proves the error; None if nothing does.
    unit : float
        The root r of the bound on the moment, in the units of the data.
    """

    n_rows: int
    n_features: int
    ball: float
    mechanism: Any
    draw: ThresholdPlan | None
    moments: MomentRadius | None = None
    unit: float = math.inf

    @property
    def priced(self):
        """Epsilons of the releases beside the mean."""
        return (self.draw.epsilon,) if self.draw and self.draw.released else ()

    def run(self, curator):
        """Release the mean.

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows` of the unit ball without an intercept.

        Returns
        -------
        mean : ndarray of shape (n_features,)
            In the units of the data.
        radius : float
            Clipping radius, in the units of the data.
        """
        radius = 1.0 if self.draw is None else self.draw.run(curator)
        total = curator.release(ClippedRowSum(self.n_features, radius), self.mechanism)
        # a mean is no longer than the rows, nor than the moment
        mean = ball_constraint(total / self.n_rows, min(radius, self.unit / self.ball))
        return self.ball * mean, self.ball * radius

    def error_bound(self, noise):
        """Return a proved bound on the Euclidean error, in the units of the data.

        Parameters
        ----------
        noise : Noise
            Of the released sum. Rounding moves every coordinate by a step of its grid at most.

        Returns
        -------
        bound : float or None
            Of the expectation, or exceeded with the probability that was asked for. None
            without a moment.
        """
        if self.moments is None:
            return None
        radius = self.ball / self.unit
        # beside the root: sampling may be most of what stands under it
        rounding = radius * (noise.grid * math.sqrt(self.n_features) / self.n_rows)
        error = self.moments.error(radius, radius * (noise.scale / self.n_rows)) + rounding
        return self.unit * min(error, 1 + min(radius, 1.0))


def plan_heavy_tailed_mean(
    epsilon,
    delta,
    *,
    n_rows,
    n_features,
    adjacency,
    data_norm,
    moment_order=2.0,
    moment_bound=None,
    failure=None,
):
    """Plan a clipped mean, from public numbers.

    Parameters
    ----------
    epsilon, delta : float
        Budget; at delta 0 the noise is K-norm noise, otherwise Gaussian.
    n_rows, n_features : int
        Shape of the data; public.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    data_norm : float
        Largest radius.
    moment_order : float, default=2.0
        k, greater than 1.
    moment_bound : float or None, default=None
        r with E|x|^k <= r^k, in the units of the data; None draws a radius.
    failure : float or None, default=None
        Probability with which the error may exceed its bound; None bounds the expectation.

    Returns
    -------
    plan : HeavyTailedMean
        With `run(curator)` and `error_bound(noise)`.

    Raises
    ------
    ValueError
        If the budget is too small for the number of features.
    """
    law = NoiseNorm("gaussian" if delta else "k-norm", n_features)
    reach = 1.0 if adjacency == "zero-out" else 2.0
    draw = None
    if moment_bound is None:
        draw = _plan_draw(epsilon, delta, n_rows, reach, law)
    price, mechanism = _price_of_mean(
        epsilon, delta, draw.epsilon if draw and draw.released else 0.0
    )
    if price < _LEAST_PRICE * math.sqrt(n_features):
        raise ValueError(
            f"epsilon and delta are too small for noise in {n_features} feature(s), which must "
            f"be finite; got epsilon={epsilon!r}, delta={delta!r}."
        )
    if draw is not None:
        return HeavyTailedMean(n_rows, n_features, data_norm, mechanism, draw)
    moments = MomentRadius(moment_order, n_rows, law, failure)
    wanted = math.log(moment_bound) + moments.best(reach / (n_rows * price))
    least, most = (math.log(edge) for edge in (RADIUS_RANGE[0], data_norm))
    # exactly the range where it is cut
    ball = data_norm if wanted >= most else math.exp(max(wanted, least))
    return HeavyTailedMean(n_rows, n_features, ball, mechanism, None, moments, moment_bound)


def _price_of_mean(epsilon, delta, drawn):
    """Return the price of the mean beside a draw, and its mechanism."""
    if delta:
        mu = mu_beside(epsilon, delta, drawn) if drawn else gdp_mu(epsilon, delta)
        return mu, GaussianMechanism(mu)
    # a hair less, so that the prices add up to no more than the budget in floats
    left = (epsilon - drawn) * (1 - 1e-12) if drawn else epsilon
    return left, KNormMechanism(left)


def _plan_draw(epsilon, delta, n_rows, reach, law):
    """Return the plan of a draw of the radius.

    The noise grows with the radius at the rate of its norm, and the worst bias falls at the
    rate of the rows beyond: so many rows are left out as balance the two, or the margin of
    the draw if that is more.
    """
    options = {"n_rows": n_rows, "centered": False, "resolution": _RESOLUTION}
    share = min(_MOST, max(_LEAST, _SLOPE / math.sqrt(law.size)))
    draw = plan_threshold(share * epsilon, **options)
    if 2 * draw.tail > n_rows:
        return plan_threshold(_AT_WORST * epsilon, **options)
    balance = reach * law.rms / _price_of_mean(epsilon, delta, draw.epsilon)[0]
    tail = math.ceil(min(max(draw.tail, balance), n_rows / 2))
    return plan_threshold(draw.epsilon, tail=tail, **options)


class DPHeavyTailedMean(MeanEstimator):
    """Differentially private mean of unbounded rows with a finite moment.

    Rows are clipped to a radius around the origin, and their mean is released with noise in
    proportion to that radius. A large radius means more noise, a small one more bias. A bound on a
    moment of the rows gives the best radius, and a proved bound on the error. Without such a bound
    the radius is drawn from the data, privately.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0.
    delta : float, default=1e-6
        Privacy budget in [0, 1). At 0 the mean gets K-norm noise, whose norm grows with the
        number of features, not with its root; otherwise Gaussian noise.
    moment_order : float, default=2.0
        Order k of the moment that is bounded, greater than 1 and at most 1000. Used only with
        `moment_bound`.
    moment_bound : float, default=None
        Public r, in the units of the data and between 1e-50 and 1e50: the k-th moment of the
        Euclidean norm of a row is at most r to the power k. None draws the radius.
    failure_probability : float, default=None
        Probability in (0, 1) that the error exceeds `error_bound_`; the radius is chosen for this
        bound. None bounds the expected error. Only with `moment_bound`.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in the presence of a row ("add-remove", where the number of rows is
        released first; otherwise it is public). See :ref:`adjacency`.
    data_norm : float, default=1e6
        Public range, in the units of the data: no radius is larger, and none that is drawn is
        smaller than 1e-18 of it. A wide range costs almost nothing.
    max_weight : float, default=None
        Public bound on weights of rows, in [1e-50, 1e50]; larger weights are clipped to it. None:
        `fit` takes no weights (:ref:`sample_weight`).
    budget : PrivacyBudget, default=None
        A budget shared by several fits. Each fit is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise reproducible, voids
        the guarantee towards anybody who knows it, and warns.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        The released mean.
    threshold_ : float
        The clipping radius, in the units of the data: computed from public numbers, or drawn.
    error_bound_ : float or None
        A bound on the Euclidean distance between `location_` and the mean of the law, for
        independent rows of one law with that moment. It bounds the expected distance or, if
        `failure_probability` is given, is exceeded with at most that probability. It follows
        from public numbers. None without `moment_bound`.
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
        If there are too few rows to draw a radius, by public numbers, or the drawn one is
        `data_norm` itself.

    See Also
    --------
    DPMean : With ``mechanism="clipped"`` it finds the radius by noisy counts instead of a draw:
        worse for ten features or more, a little better for one skewed feature. It takes no
        moment and proves no bound on the error, but has mechanisms for rows far from the origin.
    DPNormQuantile : The drawn radius alone.
    DPMedian : Private medians.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean over its rows to
    every sum or count. The number of rows or groups (a secret under add-remove), the number and
    names of features and all parameters are public. A sum of rows clipped to a radius changes by 1
    radius under zero-out, 2 under replace-one (l2). The draw of a radius is purely epsilon-DP: the
    score is a distance in ranks, whose change between neighbours stays in an interval of length 2.
    The draw gets between 0.1 and 0.5 of epsilon. Timing, exceptions on malformed input and `score`
    on private data are not covered. If `moment_bound` is wrong, so is the error bound; the privacy
    claim still holds.

    Accuracy. With noise of standard deviation ``a C / (n mu)`` in each of d coordinates, a being 1
    or 2, the radius ``C = r (1 - 1/k) (n mu / (a sqrt(d)))^(1/k)`` makes bias and noise together
    ``r (a sqrt(d) / (n mu))^(1 - 1/k)``; the radius that is used takes the error of sampling into
    account as well. No rows are set aside to make the bound hold with high probability: clipped
    rows are bounded, and their mean concentrates.

    Rows are clipped around the origin: moments are about it. Subtract a public guess
    of the mean first if there is one.

    With fewer than about ``55 / epsilon`` rows no radius is drawn: it is `data_norm`, and the
    noise is proportional to it.

    References
    ----------
    .. [1] D. Xu, M. Ding, Z. Xiang, J. Xu and D. Wang, "Beyond ordinary Lipschitz
       constraints: differentially private stochastic optimization with Tsybakov noise
       condition", 2025 (Lemma 7).
    .. [2] I. Pinelis, "Optimum bounds for the distributions of martingales in Banach spaces",
       Annals of Probability, 1994.
    .. [3] F. McSherry and K. Talwar, "Mechanism design via differential privacy",
       FOCS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPHeavyTailedMean
    >>> losses = 1 + np.random.default_rng(0).pareto(2.5, size=(10_000, 1))
    >>> mean = DPHeavyTailedMean(epsilon=1.0, random_state=0).fit(losses)
    >>> bool(abs(mean.location_[0] - 5 / 3) < 0.1)
    True

    If it is known that the mean square is at most 9:

    >>> mean = DPHeavyTailedMean(moment_order=2, moment_bound=3.0, random_state=0).fit(losses)
    >>> bool(abs(mean.location_[0] - 5 / 3) < mean.error_bound_ < 0.1)
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "moment_order": [Interval(Real, 1, MOST_MOMENTS, closed="right")],
        "moment_bound": SCALE_OR_NONE,
        "failure_probability": [Interval(Real, 0, 1, closed="neither"), None],
        "max_weight": SCALE_OR_NONE,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        moment_order: float = 2.0,
        moment_bound: float | None = None,
        failure_probability: float | None = None,
        adjacency: Adjacency = "replace-one",
        data_norm: float = 1e6,
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.moment_order = moment_order
        self.moment_bound = moment_bound
        self.failure_probability = failure_probability
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.max_weight = max_weight
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        *,
        groups: VectorLike | None = None,
        sample_weight: VectorLike | None = None,
    ) -> Self:
        """Release the mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Private rows.
        y : None
            Ignored.
        groups : array-like or RowStream of shape (n_samples,), default=None
            Whose row it is: numbers, or text. All rows of a group are protected together, whatever
            their number, and count as one row does, each as one over their number: what is released
            is the mean over groups of the means of their rows. The number of groups is public.
            Beside a stream of rows also one of identifiers, or an array. None protects rows. See
            :ref:`groups`.
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of the rows, finite and not negative; only with `max_weight`. Weights
            beyond that count as that. A fifth of epsilon goes to their noisy total. See
            :ref:`sample_weight`.

        Returns
        -------
        self : DPHeavyTailedMean
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
        if delta:
            gdp_mu(epsilon, delta)
        check_moments(self.moment_order, self.moment_bound, self.failure_probability)
        # 2. validate
        X = validate_private_data(self, X, streams=True, accept_sparse="csr", order="C")

        # 3. plan, from public facts
        def planned(n_rows):
            return plan_heavy_tailed_mean(
                epsilon,
                delta,
                n_rows=n_rows,
                n_features=X.shape[1],
                adjacency=self.adjacency,
                data_norm=check_radius(self.data_norm),
                moment_order=self.moment_order,
                moment_bound=self.moment_bound,
                failure=self.failure_probability,
            )

        hidden = hidden_count(self)
        (n_rows, unit), whose = count_rows(groups, X, hidden, sample_weight, planned)
        plan = planned(n_rows)
        doubts = Doubts(self)
        if plan.draw and not plan.priced:
            doubts.noise(
                f"{n_rows} {unit}s at epsilon={epsilon:.4g} are too few to draw a radius: it is "
                "data_norm, and the noise is proportional to it. Give a tight data_norm or a "
                f"moment_bound, or use more {unit}s or a larger epsilon."
            )
        # 4. gate, 5. run
        with open_gate(
            self,
            lambda: ball_rows(X, L2Ball(plan.ball), effective_n_threads(), counts_of(whose)),
            n_rows=n_rows,
            unit=unit,
            delta=delta,
            mu=mu_of_all(epsilon, delta, plan.priced) if delta else None,
            doubts=doubts,
        ) as curator:
            location, threshold = plan.run(curator)
            if plan.priced and threshold >= plan.ball:
                say_of_radius(doubts)
        # 6. attributes: what was released, and what is public
        self.location_, self.threshold_ = location, threshold
        self.error_bound_ = plan.error_bound(self.ledger_.releases[-1].noise)
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

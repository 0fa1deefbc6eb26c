# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private means of bounded rows, by one noisy sum or by clipping."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from skdp._counted import check_groups, count_rows, counts_of, hidden_count
from skdp._gate import Doubts, open_gate
from skdp._rows.base import Box, L2Ball, bounds_of, check_radius
from skdp._rows.linear import ball_rows
from skdp._rows.streams import whole_columns
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    StrOptions,
    effective_n_threads,
    fit_context,
    is_sparse,
    validate_private_data,
)
from skdp._typing import Adjacency, Bounds, Budget, MatrixLike, Seed, VectorLike
from skdp.location._base import MeanEstimator
from skdp.location._clipped_mean import (
    MEANS,
    BoxRows,
    RowSum,
    plan_mean,
    refuse_rotated_groups,
)
from skdp.location._range import REACH, RangePlan, balanced_reach, plan_range, say_of_range
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.laws.additive import GaussianMechanism, LaplaceMechanism
from skdp.privacy.laws.calibration import gdp_mu, mu_beside, mu_of_all

#: one release, in a ball or a box
ONE_RELEASE = ("gaussian", "laplace")
MECHANISMS = ("auto", *MEANS, "laplace")
# A center other than the origin would make sparse rows dense.
_SPARSE = (*ONE_RELEASE, "clipped")


def takes_sparse(mechanism, data_norm, bounds):
    """Return whether rows may be sparse."""
    return bounds is None and data_norm is not None and mechanism in ("auto", *_SPARSE)


def check_mean(X, mechanism, data_norm, bounds):
    """Raise if what is known of the rows, or their format, does not go with the mechanism.

    Parameters
    ----------
    X : {array-like, sparse matrix} or RowStream
        Private rows; only their format is looked at. That of a stream is known once it was
        validated.
    mechanism : str
        One of `MECHANISMS`.
    data_norm, bounds : float or None, tuple or None
        As the user gave them.

    Raises
    ------
    ValueError
        If bounds were given to a mechanism that starts from a ball, or no radius.
    TypeError
        If the rows are sparse where they may not be.
    """
    if mechanism not in ("auto", *ONE_RELEASE):
        starts = f"mechanism={mechanism!r} starts from the ball of radius data_norm"
        if bounds is not None:
            raise ValueError(
                "bounds must be None unless mechanism is 'auto', 'gaussian' or 'laplace': "
                f"{starts}; got bounds={bounds!r}."
            )
        if data_norm is None:
            raise ValueError(
                f"data_norm must be a number: {starts}. A generous range will do, such as 1e6; or "
                "leave the mechanism to 'auto', which needs no range. Got None."
            )
    if is_sparse(X) and not takes_sparse(mechanism, data_norm, bounds):
        raise TypeError(
            "Sparse rows need a number for data_norm, a public radius, bounds=None, and a "
            f"mechanism among {('auto', *_SPARSE)}; got data_norm={data_norm!r}, "
            f"mechanism={mechanism!r}. Use X.toarray() if the rows fit in memory."
        )


def quieter_law(epsilon, delta, n_features):
    """Return the mechanism with less noise on one sum of rows in a ball or a box.

    The l1 sensitivity is sqrt(d) times that of l2, in both and for both adjacencies. So the
    standard deviations are as sqrt(2 d) / epsilon and 1 / mu.
    """
    if not delta or math.sqrt(2 * n_features) * gdp_mu(epsilon, delta) <= epsilon:
        return "laplace"
    return "gaussian"


@dataclass(frozen=True)
class NoisySum:
    """Plan of one release: the sum of the rows, in a ball or a box.

    Parameters
    ----------
    mechanism : {"gaussian", "laplace"}
        Law of the noise.
    domain : L2Ball or Box
        What the rows are admitted into.
    n_rows, n_features : int
        Shape of the data; public.
    price : float
        Gaussian-DP price, or epsilon of Laplace noise.
    """

    mechanism: str
    domain: L2Ball | Box
    n_rows: int
    n_features: int
    price: float

    n_releases = 1

    def run(self, curator):
        """Release the mean, an array of shape (n_features,) in units of the domain."""
        law = LaplaceMechanism if self.mechanism == "laplace" else GaussianMechanism
        total = curator.release(RowSum(self.domain, self.n_features), law(self.price))
        return total / self.n_rows


@dataclass(frozen=True)
class RangedSum:
    """Plan of a mean without public bounds: a private range of every feature, then a sum in it.

    Parameters
    ----------
    ranges : RangePlan
        How the ranges are drawn.
    mechanism : {"gaussian", "laplace"}
        Law of the noise of the sum.
    price : float
        Gaussian-DP price of the sum, or its epsilon.
    noise : float
        Standard deviation of the noise of the mean, in half widths of a range.
    """

    ranges: RangePlan
    mechanism: str
    price: float
    noise: float

    @classmethod
    def made(cls, mechanism, epsilon, delta, *, n_rows, n_features, adjacency):
        """Return the plan, or of "auto" the one with the least noise that has rows enough."""
        shape = {"n_rows": n_rows, "n_features": n_features, "adjacency": adjacency}
        moved = 1.0 if adjacency == "zero-out" else 2.0
        if mechanism == "auto":
            pure = cls.made("laplace", epsilon, delta, **shape)
            if not delta:
                return pure
            # if all of the budget were for the sum
            least = moved * math.sqrt(n_features) / (gdp_mu(epsilon, delta) * n_rows)
            if pure.ranges.is_sound and pure.noise <= least:
                return pure
            plans = pure, cls.made("gaussian", epsilon, delta, **shape)
            return min(plans, key=lambda plan: (not plan.ranges.is_sound, plan.noise))
        if mechanism == "laplace":
            ranges = plan_range(epsilon, None, **shape)
            price = (epsilon - ranges.epsilon) * (1 - 1e-12)
            noise = math.sqrt(2) * moved * n_features / (price * n_rows)
        else:
            ranges = plan_range(epsilon, gdp_mu(epsilon, delta), **shape)
            price = mu_beside(epsilon, delta, *ranges.beside)
            noise = moved * math.sqrt(n_features) / (price * n_rows)
        return cls(ranges, mechanism, price, noise)

    @property
    def n_releases(self):
        """Number of releases."""
        return self.ranges.n_releases + 1

    def run(self, curator, doubts, whole):
        """Release the ranges and the mean.

        Parameters
        ----------
        curator, doubts : Curator, Doubts
            Holds what the plan of the ranges admits; takes notes.
        whole : ndarray of shape (n_features,), dtype bool
            Features that have whole numbers alone, by their type.

        Returns
        -------
        box : Box
            The ranges.
        mean : ndarray of shape (n_features,)
            In units of the box.
        """
        reach = balanced_reach(self.noise) if self.ranges.is_sound else REACH
        lower, upper = self.ranges.run(curator, reach, doubts, whole)
        box = Box(tuple(lower), tuple(upper))
        curator.map_rows(lambda rows: BoxRows(rows.X, box, effective_n_threads(), rows.weight))
        shape = self.ranges.n_rows, self.ranges.n_features
        return box, NoisySum(self.mechanism, box, *shape, self.price).run(curator)


# a mean so near to the edge that noise may hide what is beyond: where noise is less than that
_EDGE = 0.1


def say_of_edge(doubts, mean, noise, name, otherwise=", or none for a private range", what="mean"):
    """Take note of a released location that lies at the edge of what rows are clipped to.

    Parameters
    ----------
    doubts : Doubts
        Takes the note.
    mean, noise : ndarray of shape (n_features,), float
        In units of the domain.
    name : {"data_norm", "bounds"}
        The parameter that says what the rows are clipped to.
    otherwise : str, default=", or none for a private range"
        Another remedy.
    what : str, default="mean"
        What was released.

    Returns
    -------
    doubted : bool
        Whether there was something to say.
    """
    far = float(np.linalg.norm(mean) if name == "data_norm" else np.abs(mean).max())
    spread = noise * (math.sqrt(len(mean)) if name == "data_norm" else 1.0)
    doubted = far >= 1 - 2 * spread and spread <= _EDGE
    if doubted:
        near, remedy = "", "a larger data_norm if you know that they do"
        if name == "bounds":
            near = ", or next to it in bounds that are far too wide"
            remedy = "wider bounds, or narrower ones, if you know which is right"
        doubts.noise(
            f"the {what} lies at the edge of {name}, to which rows are clipped: most rows may lie "
            f"beyond it{near}. Give {remedy}{otherwise}."
        )
    return doubted


class DPMean(MeanEstimator):
    """Differentially private mean.

    Every row is forced into a public ball (`data_norm`) or box (`bounds`), and the sum is
    released with Gaussian or Laplace noise. Without either, a range of every feature is found
    privately, within the same budget. Three of the mechanisms first release a clipping
    radius, and two of these a center as well; for them `data_norm` is only a generous range.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0.
    delta : float, default=1e-6
        Privacy budget in [0, 1); greater than 0 for Gaussian noise. Laplace noise is
        purely epsilon-DP and spends no delta, nor charges it.
    mechanism : {"auto", "gaussian", "laplace", "clipped", "coinpress", "shifted-clipped"}, \
            default="auto"
        "gaussian" and "laplace" release one sum. Laplace noise is calibrated to the l1
        sensitivity and suits few features. "auto" is the one of the two that has less noise, by
        `epsilon`, `delta` and the number of features: at the default delta Laplace noise for up to
        8 features at ``epsilon=1``, and always at ``delta=0``. "clipped" clips the rows to a radius
        around the origin that leaves out few of them: for heavy tails. "coinpress" clips them
        around centers that are released one after another, and "shifted-clipped" around private
        medians of rotated coordinates: for rows that are close to each other and far from the
        origin. These three have Gaussian noise.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in the presence of a row ("add-remove", where the number of rows is
        released first; otherwise it is public). See :ref:`adjacency`.
    data_norm : float, default=None
        Public radius: longer rows are scaled down to this Euclidean norm, which pulls
        the mean towards 0. Ignored if `bounds` is given. For "clipped", "coinpress" and
        "shifted-clipped" it may be a generous range, and must be given.
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=None
        Public bounds: a pair (lower, upper) of numbers or arrays of shape (n_features,), or a pair
        for every feature, in order or by name. Coordinates outside are clipped. A null row counts
        as the center of the box. Only for "auto", "gaussian" and "laplace". If `data_norm` is None
        too, a range of every feature is drawn privately, by its median and the distances from it,
        for 15 to 55 per cent of the budget.
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
        The released mean.
    bounds_ : tuple of ndarray of shape (n_features,)
        The range that was drawn, lower and upper ends; only without `data_norm` and `bounds`.
    mechanism_ : str
        The mechanism that ran. With too few rows "shifted-clipped" falls back to
        "coinpress", "coinpress" to "clipped", and "clipped" to "gaussian". Only public
        facts decide: the numbers of rows and features, the budget and the adjacency.
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
        If there are too few rows for a private range (217 over epsilon for one feature), or the
        mean lies at the edge of public bounds. Warnings depend on released and public numbers
        only.

    See Also
    --------
    DPSparseMeanEstimator : Private mean of sparse rows.
    DPMedian : Private medians.
    DPLogisticRegression : Private classification.
    privacy_spent : Add up several fits.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean of its rows to
    every sum. The number of rows or groups (a secret under add-remove), the number and names of
    features and all parameters are public. Sensitivity of the sum of rows in the unit ball: 1 under
    zero-out, 2 under replace-one (l2); sqrt(d) times that in l1. In the box [-1, 1]^d: sqrt(d) and
    2 sqrt(d) in l2, d and 2 d in l1. A sum of rows clipped to a radius: 1 and 2 radii in l2. The
    number of rows beyond a radius minus half of all rows: 1/2 and 1. d such differences, one for
    each median: sqrt(d)/2 and sqrt(d). The releases of a mechanism are composed as Gaussian ones,
    exactly. A private range takes two draws by rank for each feature, as those of `DPQuantile`;
    they are added up, or with Gaussian noise composed with it. Timing, exceptions on malformed
    input and `score` on private data are not covered.

    References
    ----------
    .. [1] C. Dwork, F. McSherry, K. Nissim and A. Smith, "Calibrating noise to
       sensitivity in private data analysis", TCC 2006.
    .. [2] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential
       privacy", ICML 2018.
    .. [3] S. Biswas, Y. Dong, G. Kamath and J. Ullman, "CoinPress: practical private mean
       and covariance estimation", NeurIPS 2020.
    .. [4] Z. Huang, Y. Liang and K. Yi, "Instance-optimal mean estimation under
       differential privacy", NeurIPS 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMean
    >>> ages = np.random.default_rng(0).uniform(20, 60, size=(1000, 1))
    >>> mean = DPMean(epsilon=1.0, bounds=(0, 100), random_state=0).fit(ages)
    >>> abs(mean.location_[0] - 40) < 3
    np.True_
    >>> mean.privacy_spent_[0] <= 1.0
    True

    Nothing is known of the data:

    >>> prices = np.random.default_rng(0).lognormal(8, 1, size=(10_000, 1))
    >>> mean = DPMean(epsilon=1.0, random_state=0).fit(prices)
    >>> bool(abs(mean.location_[0] / prices.mean() - 1) < 0.1)
    True

    Rows that are far from the origin and close to each other:

    >>> far = 1e5 + np.random.default_rng(0).normal(size=(10_000, 2))
    >>> mean = DPMean(mechanism="coinpress", data_norm=1e6, random_state=0).fit(far)
    >>> bool(np.abs(mean.location_ - 1e5).max() < 0.1)
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "data_norm": [*SHARED_CONSTRAINTS["data_norm"], None],
        "mechanism": [StrOptions(set(MECHANISMS))],
        "bounds": [tuple, list, dict, np.ndarray, None],
        "max_weight": SCALE_OR_NONE,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        mechanism: Literal[
            "auto", "gaussian", "laplace", "clipped", "coinpress", "shifted-clipped"
        ] = "auto",
        adjacency: Adjacency = "replace-one",
        data_norm: float | None = None,
        bounds: Bounds | None = None,
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
        """Release the mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Private rows; sparse only without `bounds`, and not for "coinpress" and
            "shifted-clipped".
        y : None
            Ignored.
        groups : array-like or RowStream of shape (n_samples,), default=None
            Whose row it is: numbers, or text. All rows of a group are protected together, whatever
            their number, and count as one row does, each as one over their number: what is released
            is the mean over groups of the means of their rows. The number of groups is public. Not
            for "shifted-clipped". Beside a stream of rows also one of identifiers, or an array.
            None protects rows. See :ref:`groups`.
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of the rows, finite and not negative; only with `max_weight`. Weights
            beyond that count as that. A fifth of epsilon goes to their noisy total. Not for
            "shifted-clipped". See :ref:`sample_weight`.

        Returns
        -------
        self : DPMean
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable; nothing has been released then.
        BudgetError
            If a shared budget has less left, or protects groups and there are none.
        """
        check_groups(self, groups)
        # 1. price, before any data
        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta)
        private = self.data_norm is None and self.bounds is None
        mechanism = self.mechanism
        if mechanism not in ("auto", "laplace"):
            gdp_mu(epsilon, delta)
        # 2. validate
        given = mechanism, self.data_norm, self.bounds
        check_mean(X, *given)
        refuse_rotated_groups(mechanism, groups, hidden_count(self))
        whole = whole_columns(X)
        X = validate_private_data(self, X, streams=True, accept_sparse="csr", order="C")
        check_mean(X, *given)
        # 3. plan, from public facts
        doubts, hidden = Doubts(self), hidden_count(self)
        planned = partial(self._planned, mechanism, private, X.shape[1])
        # searched ranges have no parameters to refuse, and take a second to plan
        checked = None if private else planned
        (n_rows, unit), whose = count_rows(groups, X, hidden, sample_weight, checked)
        domain, plan = planned(n_rows)
        if plan.mechanism == "laplace":
            delta = 0.0
        if private:
            say_of_range(doubts, plan.ranges, epsilon, unit)
        elif self.data_norm is not None and self.bounds is not None:
            doubts.promise("data_norm has no effect with bounds. Give only one.")
        # 4. gate, 5. run
        with open_gate(
            self,
            lambda: (
                plan.ranges.admitted(X, counts_of(whose))
                if private
                else self._admit(X, domain, counts_of(whose))
            ),
            n_rows=n_rows,
            unit=unit,
            delta=delta,
            mu=mu_of_all(epsilon, delta, plan.ranges.beside[0] if private else ())
            if delta
            else None,
            n_releases=plan.n_releases,
            doubts=doubts,
        ) as curator:
            if private:
                domain, mean = plan.run(curator, doubts, whole)
            else:
                mean = plan.run(curator)
            noise = curator.ledger.releases[-1].noise.scale / n_rows
            if not private and plan.mechanism in ONE_RELEASE:
                say_of_edge(doubts, mean, noise, "data_norm" if self.bounds is None else "bounds")
        # 6. attributes: what was released, and what is public
        if isinstance(domain, Box):
            self.location_ = domain.center + domain.half_width * mean
        else:
            self.location_ = domain.radius * mean
        self.mechanism_ = plan.mechanism
        if private:
            self.bounds_ = np.asarray(domain.lower), np.asarray(domain.upper)
        elif hasattr(self, "bounds_"):
            del self.bounds_
        return self

    def _planned(self, mechanism, private, n_features, n_rows):
        """Return the public domain of the rows, or None, and the plan, from public facts."""
        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta)
        shape: Any = {"n_rows": n_rows, "n_features": n_features}
        if private:
            plan = RangedSum.made(mechanism, epsilon, delta, adjacency=self.adjacency, **shape)
            return None, plan
        domain: L2Ball | Box
        if self.bounds is None:
            domain = L2Ball(check_radius(self.data_norm))
        else:
            lower, upper = bounds_of(self, n_features)
            domain = Box(tuple(lower), tuple(upper))
        if mechanism == "auto":
            mechanism = quieter_law(epsilon, delta, n_features)
        price = epsilon if mechanism == "laplace" else gdp_mu(epsilon, delta)
        if mechanism in ONE_RELEASE:
            return domain, NoisySum(mechanism, domain, n_rows, n_features, price)
        return domain, plan_mean(mechanism, mu=price, adjacency=self.adjacency, **shape)

    @staticmethod
    def _admit(X, domain, weight):
        if isinstance(domain, Box):
            return BoxRows(X, domain, effective_n_threads(), weight)
        return ball_rows(X, domain, effective_n_threads(), weight)

    def _check_scored(self, X):
        check_mean(X, self.mechanism, self.data_norm, self.bounds)
        return super()._check_scored(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self.mechanism, self.data_norm, self.bounds)
        return tags

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private medians."""

from numbers import Integral
from typing import Literal, Self

import numpy as np

from skdp._domains import check_radius
from skdp._location import LocationEstimator
from skdp._sklearn import (
    SHARED_CONSTRAINTS,
    Interval,
    StrOptions,
    fit_context,
    validate_private_data,
)
from skdp._solvers import mu_of_all
from skdp._typing import Adjacency, Bounds, Budget, MatrixLike, Seed
from skdp.location._geometric import Place, descend_to_median, draw_median, held
from skdp.location._rank import check_quantile, release_quantiles
from skdp.privacy import Curator, ExponentialMechanism, gdp_mu
from skdp.privacy._accounting import check_delta

#: beyond this the exact sampler is too slow
MOST_FEATURES = 5


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
        as `DPQuantile` does. "gradient" finds the geometric median by subgradient
        steps with Gaussian noise. "exponential" draws the geometric median of at most
        5 features, purely epsilon-DP. "auto" is "rank" for one feature; otherwise
        "gradient", or "exponential" if delta is 0.
    adjacency : {"replace-one", "zero-out"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), or in one row that is
        replaced by a null row ("zero-out"). The number of rows is public in both.
    data_norm : float, default=1.0
        Public radius: longer rows are scaled down to this Euclidean norm; "rank" clips
        every feature to [-data_norm, data_norm] instead. Ignored if `bounds` is given.
    bounds : tuple (lower, upper), default=None
        Public bounds per feature, numbers or arrays of shape (n_features,). Values
        outside are clipped. A null row contributes nothing.
    max_iter : int, default=None
        Number of steps of "gradient", at least 2; None chooses it from public quantities.
    budget : PrivacyBudget, default=None
        A budget that several fits share: each is charged (epsilon, delta) before it reads a
        row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise
        reproducible, voids the guarantee towards whoever knows it, and warns.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        The released median.
    mechanism_ : {"rank", "gradient", "exponential"}
        The mechanism that ran.
    n_iter_ : int
        Number of releases: steps of "gradient", features of "rank", 1 for "exponential".
    error_bound_ : float
        A proved bound that follows from public numbers. For "rank": with probability
        0.99 or more, the rank of every median is off by at most this fraction of the
        rows. Otherwise the expected mean distance to the clipped rows exceeds the
        smallest possible by at most this much, in the units of the data; a worst case.
    ledger_ : Ledger
        What was released, at what price.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    DPQuantile : Other quantiles of every feature.
    DPMean : Private mean.

    Notes
    -----
    Privacy. One row is protected. The number of rows, the number and names of features
    and all parameters are public. Under zero-out, on the unit ball: the subgradient of the
    sum of distances has l2 sensitivity 1 ("gradient"), and the change of that sum stays in
    an interval of length 2 ("exponential"), that of a rank's distance to n/2 in one of
    length 1 ("rank"). Under replace-one all three double. The law of "exponential" is exact
    for real numbers and computed in floating point. Timing, exceptions on malformed input
    and `score` on private data are not covered.

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
    """

    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "mechanism": [StrOptions({"auto", "rank", "gradient", "exponential"})],
        "bounds": [tuple, list, np.ndarray, None],
        "max_iter": [Interval(Integral, 2, None, closed="left"), None],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        mechanism: Literal["auto", "rank", "gradient", "exponential"] = "auto",
        adjacency: Adjacency = "replace-one",
        data_norm: float = 1.0,
        bounds: Bounds | None = None,
        max_iter: int | None = None,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.mechanism = mechanism
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.bounds = bounds
        self.max_iter = max_iter
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Release the median.

        Parameters
        ----------
        X : array-like or RowStream of shape (n_samples, n_features)
            Private rows. Of a stream "rank" keeps the positions of a column on a grid, 4 bytes
            a row: it is gone through once for as many columns as 256 MiB hold. A draw takes
            up to 70 bytes a row for a moment, if no two values are equal.
            "exponential" needs all rows in memory.
        y : None
            Ignored.

        Returns
        -------
        self : DPMedian
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable, or the mechanism cannot serve the
            number of features, ``delta=0`` or a stream; nothing has been released then.
        """
        # 1. the price, before any data
        pure = ExponentialMechanism(self.epsilon)
        check_delta(self.delta)
        if self.mechanism == "gradient":
            gdp_mu(self.epsilon, self.delta)
        X = validate_private_data(self, X, streams=True, order="C")
        n_rows, n_features = X.shape
        mechanism = self._choose(n_features)
        rows = held(X) if mechanism == "exponential" else X
        delta = self.delta if mechanism == "gradient" else 0.0
        # 2. the public domain
        place = Place.described(self.bounds, self.data_norm, n_features)
        if mechanism != "rank":
            check_radius(place.unit, "half the diagonal of the box between bounds")
        # 3. the gate
        curator = Curator(
            lambda: place.admit(rows, mechanism),
            n_rows=n_rows,
            epsilon=self.epsilon,
            delta=delta,
            adjacency=self.adjacency,
            budget=self.budget,
            mu=mu_of_all(self.epsilon, delta) if delta else None,
            random_state=self.random_state,
            purpose=type(self).__name__,
        )
        if mechanism == "rank":
            tau, n_iter = check_quantile(0.5), n_features
            location, bound = release_quantiles(
                curator, tau, place.lower, place.upper, pure.epsilon, n_rows
            )
        elif mechanism == "exponential":
            n_iter, (location, bound) = 1, draw_median(curator, pure, place, n_rows)
        else:
            mu = gdp_mu(self.epsilon, delta)
            location, bound, n_iter = descend_to_median(
                curator, mu, place, n_rows, self.adjacency, self.max_iter
            )
        # 4. what was released, and what is public
        self.location_, self.error_bound_, self.n_iter_ = location, bound, n_iter
        self.mechanism_, self.ledger_ = mechanism, curator.ledger
        self.privacy_spent_ = (curator.ledger.epsilon(delta), float(delta))
        return self

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

    def score(self, X: MatrixLike, y: object = None) -> float:
        """Return minus the mean Euclidean distance of rows to the released median.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. If they are private, so is the score: it is not covered.
        y : None
            Ignored.

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
            return -float((distance / len(X)).sum())

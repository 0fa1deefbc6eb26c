# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private means of bounded rows, by one noisy sum or by clipping."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from skdp._gate import open_gate
from skdp._rows.base import Box, L2Ball, check_bounds, check_radius
from skdp._rows.linear import ball_rows
from skdp._sklearn import (
    SHARED_CONSTRAINTS,
    StrOptions,
    effective_n_threads,
    fit_context,
    is_sparse,
    validate_private_data,
)
from skdp._typing import Adjacency, Bounds, Budget, MatrixLike, Seed
from skdp.location._base import MeanEstimator
from skdp.location._clipped_mean import MEANS, BoxRows, RowSum, plan_mean
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.laws.additive import GaussianMechanism, LaplaceMechanism
from skdp.privacy.laws.calibration import gdp_mu, mu_of_all

#: one release, in a ball or a box
ONE_RELEASE = ("gaussian", "laplace")
MECHANISMS = (*MEANS, "laplace")
# A center other than the origin would make sparse rows dense.
_SPARSE = (*ONE_RELEASE, "clipped")


def takes_sparse(mechanism, bounds):
    """Return whether rows may be sparse."""
    return bounds is None and mechanism in _SPARSE


def check_mean(X, mechanism, bounds):
    """Raise if the bounds, or the format of the rows, do not go with the mechanism.

    Parameters
    ----------
    X : {array-like, sparse matrix} or RowStream
        Private rows; only their format is looked at. That of a stream is known once it was
        validated.
    mechanism : str
        One of `MECHANISMS`.
    bounds : tuple or None
        As the user gave them.

    Raises
    ------
    ValueError
        If bounds were given to a mechanism that starts from a ball.
    TypeError
        If the rows are sparse where they may not be.
    """
    if bounds is not None and mechanism not in ONE_RELEASE:
        raise ValueError(
            "bounds must be None unless mechanism is 'gaussian' or 'laplace': "
            f"mechanism={mechanism!r} starts from the ball of radius data_norm; got "
            f"bounds={bounds!r}."
        )
    if is_sparse(X) and not takes_sparse(mechanism, bounds):
        raise TypeError(
            f"Sparse rows need bounds=None and a mechanism among {_SPARSE}; got "
            f"mechanism={mechanism!r}. Use X.toarray() if the rows fit in memory."
        )


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

    def run(self, curator):
        """Release the mean, an array of shape (n_features,) in units of the domain."""
        law = LaplaceMechanism if self.mechanism == "laplace" else GaussianMechanism
        total = curator.release(RowSum(self.domain, self.n_features), law(self.price))
        return total / self.n_rows


class DPMean(MeanEstimator):
    """Differentially private mean of bounded rows.

    The rows are forced into a public ball (`data_norm`) or box (`bounds`), and their sum is
    released with Gaussian or Laplace noise. Three of the mechanisms first release a clipping
    radius, and two of these a center as well; for them `data_norm` is only a generous range.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0.
    delta : float, default=1e-6
        Privacy budget in [0, 1); greater than 0 for Gaussian noise. Laplace noise is
        purely epsilon-DP and spends no delta.
    mechanism : {"gaussian", "laplace", "clipped", "coinpress", "shifted-clipped"}, \
            default="gaussian"
        "gaussian" and "laplace" make one release. Laplace noise is calibrated to the l1
        sensitivity and suits few features. "clipped" clips the rows to a radius around the
        origin that leaves out few of them: for heavy tails. "coinpress" clips them around
        centers that are released one after another, and "shifted-clipped" around private
        medians of rotated coordinates: for rows that are close to each other and far from
        the origin. All but "laplace" have Gaussian noise.
    adjacency : {"replace-one", "zero-out"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), or in one row that is
        replaced by a null row ("zero-out"). The number of rows is public in both.
    data_norm : float, default=1.0
        Public radius: longer rows are scaled down to this Euclidean norm, which pulls
        the mean towards 0. Ignored if `bounds` is given. For "clipped", "coinpress" and
        "shifted-clipped" it may be a generous range.
    bounds : tuple (lower, upper), default=None
        Public bounds per coordinate, numbers or arrays of shape (n_features,).
        Coordinates outside are clipped. A null row counts as the center of the box. Only
        for "gaussian" and "laplace".
    budget : PrivacyBudget, default=None
        A budget that several fits share: each is charged (epsilon, delta) before it reads a
        row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise
        reproducible, voids the guarantee towards whoever knows it, and warns.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        The released mean.
    mechanism_ : str
        The mechanism that ran. With too few rows "shifted-clipped" falls back to
        "coinpress", "coinpress" to "clipped", and "clipped" to "gaussian". Only public
        facts decide: the numbers of rows and features, the budget and the adjacency.
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
    DPSparseMeanEstimator : Private mean of sparse rows.
    DPMedian : Private medians.
    DPLogisticRegression : Private classification.
    privacy_spent : Add up several fits.

    Notes
    -----
    Privacy. One row is protected. The number of rows, the number and names of features and all
    parameters are public. Sensitivity of the sum of rows in the unit ball: 1 under zero-out, 2
    under replace-one (l2); sqrt(d) times that in l1. In the box [-1, 1]^d: sqrt(d) and 2
    sqrt(d) in l2, d and 2 d in l1. A sum of rows clipped to a radius: 1 and 2 radii in l2. The
    number of rows beyond a radius minus half of all rows: 1/2 and 1. d such differences, one
    for each median: sqrt(d)/2 and sqrt(d). All releases of a fit are composed as Gaussian
    ones, exactly. Timing, exceptions on malformed input and `score` on private data are not
    covered.

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

    Rows that are far from the origin and close to each other:

    >>> far = 1e5 + np.random.default_rng(0).normal(size=(10_000, 2))
    >>> mean = DPMean(mechanism="coinpress", data_norm=1e6, random_state=0).fit(far)
    >>> bool(np.abs(mean.location_ - 1e5).max() < 0.1)
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "mechanism": [StrOptions(set(MECHANISMS))],
        "bounds": [tuple, list, np.ndarray, None],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        mechanism: Literal[
            "gaussian", "laplace", "clipped", "coinpress", "shifted-clipped"
        ] = "gaussian",
        adjacency: Adjacency = "replace-one",
        data_norm: float = 1.0,
        bounds: Bounds | None = None,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.mechanism = mechanism
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.bounds = bounds
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Release the mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Private rows; sparse only without `bounds`, and not for "coinpress" and
            "shifted-clipped".
        y : None
            Ignored.

        Returns
        -------
        self : DPMean
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable; nothing has been released then.
        """
        # 1. price, before any data
        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta)
        if self.mechanism == "laplace":
            price, delta = epsilon, 0.0
        else:
            price = gdp_mu(epsilon, delta)
        # 2. validate
        check_mean(X, self.mechanism, self.bounds)
        X = validate_private_data(self, X, streams=True, accept_sparse="csr", order="C")
        check_mean(X, self.mechanism, self.bounds)
        n_rows, n_features = X.shape
        # 3. plan, from public facts
        domain: L2Ball | Box
        if self.bounds is None:
            domain, center, unit = L2Ball(check_radius(self.data_norm)), 0.0, self.data_norm
        else:
            lower, upper = check_bounds(self.bounds, n_features)
            domain = box = Box(tuple(lower), tuple(upper))
            center, unit = box.center, box.half_width
        plan: Any
        if self.mechanism in ONE_RELEASE:
            plan = NoisySum(self.mechanism, domain, n_rows, n_features, price)
        else:
            plan = plan_mean(
                self.mechanism,
                n_rows=n_rows,
                n_features=n_features,
                mu=price,
                adjacency=self.adjacency,
            )
        # 4. gate, 5. run
        with open_gate(
            self,
            lambda: self._admit(X, domain),
            n_rows=n_rows,
            delta=delta,
            mu=mu_of_all(epsilon, delta) if delta else None,
        ) as curator:
            mean = plan.run(curator)
        # 6. attributes: what was released, and what is public
        self.location_ = center + unit * mean
        self.mechanism_ = plan.mechanism
        return self

    @staticmethod
    def _admit(X, domain):
        if isinstance(domain, Box):
            return BoxRows(X, domain, effective_n_threads())
        return ball_rows(X, domain, effective_n_threads())

    def _check_scored(self, X):
        check_mean(X, self.mechanism, self.bounds)
        return super()._check_scored(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self.mechanism, self.bounds)
        return tags

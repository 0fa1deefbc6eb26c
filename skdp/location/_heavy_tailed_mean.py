# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private means of heavy-tailed rows."""

from numbers import Real
from typing import Self

from skdp._domains import L2Ball, check_radius
from skdp._location import MeanEstimator
from skdp._queries import ball_rows
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    blas_on_one_thread,
    effective_n_threads,
    fit_context,
    validate_private_data,
)
from skdp._solvers import mu_of_all
from skdp._solvers.heavy_tailed_mean import plan_heavy_tailed_mean
from skdp._solvers.moment_radius import MOST_MOMENTS, check_moments
from skdp._typing import Adjacency, Budget, MatrixLike, Seed
from skdp.privacy import Curator, gdp_mu
from skdp.privacy._accounting import check_delta, check_epsilon


class DPHeavyTailedMean(MeanEstimator):
    """Differentially private mean of rows without a bound, of which a moment is finite.

    Rows are clipped to a radius around the origin, and their mean is released with noise in
    proportion to it. A large radius means much noise, a small one much bias: a bound on a
    moment of the rows gives the radius that is best, and a proved bound on the error. Without
    one the radius is drawn from the data, privately.

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
        Probability in (0, 1) with which the error may be larger than `error_bound_`; radius and
        bound are then made for it. None bounds the expected error. Only with `moment_bound`.
    adjacency : {"replace-one", "zero-out"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), or in one row that is
        replaced by a null row ("zero-out"). The number of rows is public in both.
    data_norm : float, default=1e6
        Public range, in the units of the data: no radius is larger, and none that is drawn
        is smaller than 1e-18 of it. A generous one costs hardly anything.
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
    threshold_ : float
        The clipping radius, in the units of the data: computed from public numbers, or drawn.
    error_bound_ : float or None
        With `moment_bound`, a bound on the Euclidean distance of `location_` from the mean of
        the law, for independent rows of one law with that moment: on its expectation,
        or on all but `failure_probability` of it. It follows from public numbers. None
        without `moment_bound`.
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
    DPMean : With ``mechanism="clipped"`` it finds the radius by noisy counts instead of a draw:
        worse for ten features or more, a little better for skewed rows of one. It takes no
        moment and proves no error, but has mechanisms for rows far from the origin.
    DPNormQuantile : The drawn radius alone.
    DPMedian : Private medians.

    Notes
    -----
    Privacy. One row is protected. The number of rows, the number and names of features
    and all parameters are public. A sum of rows clipped to a radius changes by 1 radius under
    zero-out, 2 under replace-one (l2). The drawn radius is purely epsilon-DP: the score is a
    distance in ranks, whose change between neighbours stays in an interval of length 2. It gets
    between 0.1 and 0.5 of epsilon. Timing, exceptions on malformed input and `score` on private
    data are not covered. If `moment_bound` is wrong, the error bound is; privacy is not.

    Accuracy. With noise of standard deviation ``a C / (n mu)`` in each of d coordinates, a being 1
    or 2, the radius ``C = r (1 - 1/k) (n mu / (a sqrt(d)))^(1/k)`` makes bias and noise together
    ``r (a sqrt(d) / (n mu))^(1 - 1/k)``; the radius that is used takes the error of sampling into
    account as well. No rows are set aside to make the bound hold with high probability: clipped
    rows are bounded, and their mean concentrates.

    Rows are clipped around the origin: moments are about it. Subtract a public guess
    of the mean first if there is one.

    With fewer than about ``55 / epsilon`` rows no radius is drawn: it is `data_norm`, and the noise
    is in proportion to that.

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

    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "moment_order": [Interval(Real, 1, MOST_MOMENTS, closed="right")],
        "moment_bound": SCALE_OR_NONE,
        "failure_probability": [Interval(Real, 0, 1, closed="neither"), None],
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
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Release the mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Private rows.
        y : None
            Ignored.

        Returns
        -------
        self : DPHeavyTailedMean
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable; nothing has been released then.
        """
        # 1. the price and the moments, before any data
        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta)
        if delta:
            gdp_mu(epsilon, delta)
        largest = check_radius(self.data_norm)
        check_moments(self.moment_order, self.moment_bound, self.failure_probability)
        X = validate_private_data(self, X, streams=True, accept_sparse="csr", order="C")
        n_rows, n_features = X.shape
        plan = plan_heavy_tailed_mean(
            epsilon,
            delta,
            n_rows=n_rows,
            n_features=n_features,
            adjacency=self.adjacency,
            data_norm=largest,
            moment_order=self.moment_order,
            moment_bound=self.moment_bound,
            failure=self.failure_probability,
        )
        # 2. the gate
        curator = Curator(
            lambda: ball_rows(X, L2Ball(plan.ball), effective_n_threads()),
            n_rows=n_rows,
            epsilon=epsilon,
            delta=delta,
            adjacency=self.adjacency,
            budget=self.budget,
            mu=mu_of_all(epsilon, delta, plan.priced) if delta else None,
            random_state=self.random_state,
            purpose=type(self).__name__,
        )
        with blas_on_one_thread():
            self.location_, self.threshold_ = plan.run(curator)
        self.error_bound_ = plan.error_bound(curator.ledger.releases[-1].noise)
        self.ledger_ = curator.ledger
        self.privacy_spent_ = (curator.ledger.epsilon(delta), float(delta))
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

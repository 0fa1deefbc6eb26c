# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private radius that few rows exceed."""

from numbers import Integral, Real
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from skdp._counted import check_groups, count_rows, counts_of, hidden_count
from skdp._gate import Doubts, open_gate
from skdp._plan import PlanMixin
from skdp._quantiles import plan_threshold
from skdp._rows.base import L2Ball, check_radius
from skdp._rows.linear import ball_rows
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    effective_n_threads,
    fit_context,
    refuse_sparse,
    validate_private_data,
)
from skdp._typing import Adjacency, ArrayLike, Budget, MatrixLike, Seed, VectorLike
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_epsilon


class DPNormQuantile(PlanMixin, BaseEstimator):
    """Differentially private radius that few rows exceed.

    The exponential mechanism draws a radius from a public geometric grid, by the number of rows
    that are longer, or further from a public center. It is purely epsilon-DP, exact and
    insensitive to ties, and a very large `data_norm` costs almost nothing.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0.
    tail : int, default=None
        Number of rows that should be longer than the radius. None takes the smallest number for
        which a radius beyond all rows is improbable, about ``26 / epsilon``.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in the presence of a row ("add-remove", where the number of rows is
        released first; otherwise it is public). See :ref:`adjacency`.
    data_norm : float, default=1.0
        Public radius: longer rows are scaled down to this Euclidean norm.
    resolution : float, default=1e-9
        Smallest radius of the grid, relative to `data_norm`; the grid may start a little
        lower.
    center : array-like of shape (n_features,), default=None
        Public point, no longer than `data_norm`, from which distances are taken, in the
        units of the data. None is the origin.
    failure : float, default=1e-3
        Probability that the statement below about the rows beyond the radius fails.
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
    threshold_ : float
        The released radius, in the units of the data.
    tail_ : int
        Number of rows that should be longer, from public numbers.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent; delta is 0.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    Warns
    -----
    NoisyEstimateWarning
        If the released radius is `data_norm` itself, to which rows are clipped.

    See Also
    --------
    DPFeatureCenterer : Shift rows by a private center, scale them by such a radius.
    DPQuantile : Quantiles of every feature.
    NormClipper : Clip rows to a public norm.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean over its rows to
    every sum or count. The number of rows or groups (a secret under add-remove), the number and
    names of features and all parameters are public. The score of a radius is the distance of `tail`
    to the interval from the number of rows beyond it to the number beyond the next smaller radius;
    between neighbours its change stays in an interval of length 2. Timing and exceptions on
    malformed input are not covered.

    With the default `tail` and a probability of ``1 - failure`` or more, at most ``2 * tail_``
    rows are beyond the radius, and the radius is less than 1.05 times the largest distance (or it
    is the smallest of the grid). If all rows are equal, or shorter than the grid's smallest
    radius, that one is found.

    With `tail_` rows or fewer nothing is released: the radius is then the largest possible,
    `data_norm` or, around a center, twice that; the ledger is empty.

    References
    ----------
    .. [1] F. McSherry and K. Talwar, "Mechanism design via differential privacy",
       FOCS 2007.
    .. [2] Z. Sun, A. T. Suresh and A. K. Menon, "The importance of feature preprocessing
       for differentially private linear optimization", ICLR 2024 (Lemma 4).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.location import DPNormQuantile
    >>> rows = np.random.default_rng(0).normal(size=(1000, 3))
    >>> radius = DPNormQuantile(epsilon=1.0, data_norm=1e6, random_state=0).fit(rows)
    >>> bool(2.5 < radius.threshold_ < 5)
    True
    >>> radius.privacy_spent_
    (1.0, 0.0)
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        **{
            name: SHARED_CONSTRAINTS[name]
            for name in ("epsilon", "adjacency", "data_norm", "budget", "random_state")
        },
        "tail": [Interval(Integral, 1, None, closed="left"), None],
        "resolution": [Interval(Real, 1e-100, 1, closed="left")],
        "center": ["array-like", None],
        "failure": [Interval(Real, 1e-300, 1, closed="left")],
        "max_weight": SCALE_OR_NONE,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        tail: int | None = None,
        adjacency: Adjacency = "replace-one",
        data_norm: float = 1.0,
        resolution: float = 1e-9,
        center: ArrayLike | None = None,
        failure: float = 1e-3,
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.tail = tail
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.resolution = resolution
        self.center = center
        self.failure = failure
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
        """Release the radius.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Private rows; sparse only without `center`.
        y : None
            Ignored.
        groups : array-like or RowStream of shape (n_samples,), default=None
            Whose row it is: numbers, or text. All rows of a group are protected together, whatever
            their number, and count as one row does, each as one over their number: what is released
            is a radius beyond which about `tail_` groups lie, each with the part of its rows that
            do. The number of groups is public. Beside a stream of rows also one of identifiers, or
            an array. None protects rows. See :ref:`groups`.
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of the rows, finite and not negative; only with `max_weight`. Larger
            weights are clipped to it. A twentieth of epsilon is for their noisy total. See
            :ref:`sample_weight`.

        Returns
        -------
        self : DPNormQuantile
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
        epsilon = check_epsilon(self.epsilon)
        # 2. validate
        shifts = "center", "center=None"
        if self.center is not None:
            refuse_sparse(X, *shifts)
        X = validate_private_data(self, X, streams=True, accept_sparse="csr", order="C")
        if self.center is not None:
            # the format of a stream is known by now
            refuse_sparse(X, *shifts)
        # 3. plan, from public facts
        domain = L2Ball(check_radius(self.data_norm))
        center = check_center(self.center, X.shape[1], domain.radius)

        def planned(n_rows):
            return plan_threshold(
                epsilon,
                n_rows=n_rows,
                centered=center is not None,
                tail=self.tail,
                resolution=self.resolution,
                failure=self.failure,
            )

        hidden = hidden_count(self)
        (n_rows, unit), whose = count_rows(groups, X, hidden, sample_weight, planned)
        plan = planned(n_rows)
        doubts = Doubts(self)
        # 4. gate, 5. run
        with open_gate(
            self,
            lambda: ball_rows(X, domain, effective_n_threads(), counts_of(whose)),
            n_rows=n_rows,
            unit=unit,
            delta=0.0,
            doubts=doubts,
        ) as curator:
            threshold = plan.run(curator, center)
            if threshold >= 1 + (center is not None):
                say_of_radius(doubts)
        # 6. attributes: what was released, and what is public
        self.threshold_ = threshold * domain.radius
        self.tail_ = plan.tail
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.center is None
        return tags


def say_of_radius(doubts):
    """Take note of a radius that is the largest there is."""
    doubts.noise(
        "the radius lies at the edge of data_norm, to which rows are clipped: many rows may be "
        "longer. Give a larger data_norm if you know that they are."
    )


def check_center(center, n_features, radius):
    """Return a public point in units of the radius, or None, or raise a ValueError."""
    if center is None:
        return None
    expected = (
        f"center must be an array of {n_features} finite number(s), no longer than "
        f"data_norm={radius:g}"
    )
    try:
        point = np.array(center, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{expected}; got {center!r}.") from None
    if point.shape != (n_features,) or not np.isfinite(point).all():
        raise ValueError(f"{expected}; got {center!r}.")
    with np.errstate(over="ignore", under="ignore"):
        point /= radius
        length = float(np.linalg.norm(point))
    # it may be the mean of rows of that length, in another rounding
    if not length <= 1 + 1e-9:
        raise ValueError(f"{expected}; got {center!r}.")
    return point / max(length, 1.0)

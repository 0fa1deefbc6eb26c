# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Shift by a private center, scale by a private radius.

The center is a private mean (`skdp.location._clipped_mean`), the radius one that few rows exceed
(`skdp._quantiles`). Both queries are there; the plan that splits the budget between them is here.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skdp._counted import check_groups, count_rows, counts_of, hidden_count
from skdp._export import standard_scaler
from skdp._gate import Doubts, open_gate
from skdp._plan import PlanMixin
from skdp._quantiles import plan_threshold
from skdp._rows.base import RADIUS_RANGE, L2Ball, check_radius
from skdp._rows.linear import ball_rows
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    StrOptions,
    effective_n_threads,
    fit_context,
    refuse_sparse,
    validate_private_data,
)
from skdp._typing import Adjacency, ArrayLike, Budget, MatrixLike, Seed, VectorLike
from skdp.location._clipped_mean import plan_mean, refuse_rotated_groups
from skdp.location._mean import say_of_edge
from skdp.preprocessing._base import ShiftAndScale
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.laws.calibration import mu_beside, mu_of_all


def plan_centering(
    epsilon,
    delta,
    *,
    mechanism,
    adjacency,
    with_mean,
    threshold,
    threshold_share,
    n_rows,
    n_features,
):
    """Split the budget between a center and a radius.

    Parameters
    ----------
    epsilon, delta, mechanism, adjacency, with_mean, threshold, threshold_share
        As in `DPFeatureCenterer`.
    n_rows, n_features : int
        Shape of the data; public.

    Returns
    -------
    plan : CenteringPlan
        Made of public numbers only.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the budget cannot be spent.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    private = isinstance(threshold, str) and threshold == "private"
    if not (private or threshold is None):
        threshold = check_radius(threshold, "threshold")
    if not with_mean:
        radius = plan_threshold(epsilon, n_rows=n_rows, centered=False) if private else threshold
        return CenteringPlan(None, radius, 0.0)
    if delta == 0:
        raise ValueError(
            "delta must be greater than 0 unless with_mean=False, for a private center has "
            "Gaussian noise; got 0. Choose a delta well below 1/n_samples."
        )
    number = isinstance(threshold_share, int | float | np.number)
    if not (number and 0 < threshold_share < 1):
        raise ValueError(
            f"threshold_share must be a number between 0 and 1, not one of them; got "
            f"{threshold_share!r}."
        )
    radius, priced = threshold, 0.0
    if private:
        radius = plan_threshold(threshold_share * epsilon, n_rows=n_rows, centered=True)
        priced = radius.epsilon if radius.released else 0.0
    mean = plan_mean(
        mechanism,
        n_rows=n_rows,
        n_features=n_features,
        mu=mu_beside(epsilon, delta, priced),
        adjacency=adjacency,
    )
    return CenteringPlan(mean, radius, delta)


@dataclass(frozen=True)
class CenteringPlan:
    """A center, a radius around it, or both.

    Parameters
    ----------
    mean : object or None
        Plan of the center; None for no shift.
    radius : ThresholdPlan, float or None
        Plan of the radius, or a public one in the units of the data, or None for no scaling.
    delta : float
        What may be spent of delta.
    """

    mean: Any
    radius: Any
    delta: float

    @property
    def priced(self):
        """Epsilons of the releases without Gaussian noise."""
        return (self.radius.epsilon,) if getattr(self.radius, "released", False) else ()

    def run(self, curator, data_norm):
        """Release what is planned.

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows` without an intercept.
        data_norm : float
            Radius of the ball that the rows were admitted into.

        Returns
        -------
        center : ndarray of shape (n_features,) or None
            In the units of the data.
        threshold : float
            In the units of the data; 1.0 for no scaling.
        """
        center = None if self.mean is None else self.mean.run(curator)
        if self.radius is None:
            threshold = 1.0
        elif isinstance(self.radius, float):
            threshold = self.radius
        else:
            unit = self.radius.run(curator, center)
            threshold = unit * data_norm
        return None if center is None else center * data_norm, threshold


class DPFeatureCenterer(PlanMixin, ShiftAndScale):
    """Shift rows by a private center, and scale them by a private radius around it.

    The noise of private estimators grows with the norm of the rows. Rows that are close together
    but far from the origin have a small norm after centering, so less noise is enough. The center
    is a private mean. Few rows exceed the radius, as in `DPNormQuantile`.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0, of the center and the radius together.
    delta : float, default=1e-6
        Privacy budget in [0, 1); greater than 0 unless ``with_mean=False``.
    mechanism : {"gaussian", "coinpress", "shifted-clipped"}, default="gaussian"
        Mechanism of the private mean. "gaussian" is one noisy sum, with an error proportional to
        `data_norm`; the others make more releases, with an error proportional to the spread of the
        rows.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in the presence of a row ("add-remove", where the number of rows is
        released first; otherwise it is public). See :ref:`adjacency`.
    data_norm : float, default=1.0
        Public radius. In `fit` longer rows are scaled down to this Euclidean norm; `transform`
        does not do this.
    with_mean : bool, default=True
        Whether to shift. If not, rows are only scaled, and may be sparse.
    threshold : "private", float or None, default="private"
        Divisor of the shifted rows: a private radius, a public one in the units of the data, or 1.
    threshold_share : float, default=0.5
        Share of `epsilon` that a private radius gets next to a center, strictly between 0
        and 1. Without a center it gets all of it.
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
    center_ : ndarray of shape (n_features,)
        The released center, in the units of the data; zeros if ``with_mean=False``.
    threshold_ : float
        The radius, in the units of the data; 1.0 if ``threshold=None``.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    DPNormQuantile : The radius alone.
    DPMean : The mean alone.
    BoundedScaler : Scale features by public bounds, at no cost.
    sklearn.preprocessing.StandardScaler : Learns from the data, which is not private.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean over its rows to
    every sum or count. The number of rows or groups (a secret under add-remove), the number and
    names of features and all parameters are public. A mean of Gaussian releases and one exponential
    mechanism are composed as the ledger composes them; the price of a following estimator is added,
    see `privacy_spent`. `transform` treats every row on its own, but its result is as private as
    its input: only `center_` and `threshold_` are released. Timing and exceptions on malformed
    input are not covered.

    The radius is drawn so that about ``26 / epsilon`` rows, its own share for epsilon, are
    longer. With fewer rows than that no radius is drawn: it is ``2 * data_norm``, or
    `data_norm` without a center, and the center gets all of the budget. If all rows are
    equal it is near the distance of the center from them; without noise it is the smallest
    radius of the grid, 1e-9 of `data_norm`.

    References
    ----------
    .. [1] Z. Sun, A. T. Suresh and A. K. Menon, "The importance of feature preprocessing
       for differentially private linear optimization", ICLR 2024 (Algorithms 2 and 3,
       Lemmas 4, 5 and 9).
    .. [2] F. McSherry and K. Talwar, "Mechanism design via differential privacy",
       FOCS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPFeatureCenterer
    >>> rows = 50 + np.random.default_rng(0).normal(size=(2000, 2))
    >>> centerer = DPFeatureCenterer(epsilon=2.0, data_norm=100.0, random_state=0)
    >>> shifted = centerer.fit_transform(rows)
    >>> bool(np.linalg.norm(rows, axis=1).mean() > 70)
    True
    >>> bool(np.linalg.norm(shifted, axis=1).max() < 1.5)
    True
    >>> centerer.privacy_spent_[0] <= 2.0
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    _count_share = 0.2
    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "mechanism": [StrOptions({"gaussian", "coinpress", "shifted-clipped"})],
        "with_mean": ["boolean"],
        "threshold": [StrOptions({"private"}), Interval(Real, *RADIUS_RANGE, closed="both"), None],
        "threshold_share": [Interval(Real, 0, 1, closed="neither")],
        "max_weight": SCALE_OR_NONE,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        mechanism: Literal["gaussian", "coinpress", "shifted-clipped"] = "gaussian",
        adjacency: Adjacency = "replace-one",
        data_norm: float = 1.0,
        with_mean: bool = True,
        threshold: Literal["private"] | float | None = "private",
        threshold_share: float = 0.5,
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.mechanism = mechanism
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.with_mean = with_mean
        self.threshold = threshold
        self.threshold_share = threshold_share
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
        """Release the center and the radius.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Private rows; sparse only with ``with_mean=False``.
        y : None
            Ignored.
        groups : array-like or RowStream of shape (n_samples,), default=None
            Whose row it is: numbers, or text. All rows of a group are protected together, whatever
            their number, and count as one row does, each as one over their number: the center is a
            mean over groups of the means of their rows. The number of groups is public. Not for
            "shifted-clipped". Beside a stream of rows also one of identifiers, or an array. None
            protects rows. See :ref:`groups`.
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of the rows, finite and not negative; only with `max_weight`. Weights
            beyond that count as that. A fifth of epsilon goes to their noisy total. See
            :ref:`sample_weight`.

        Returns
        -------
        self : DPFeatureCenterer
            Fitted transformer.

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
        # 2. validate
        shifts = "with_mean=True", "with_mean=False"
        if self.with_mean:
            refuse_sparse(X, *shifts)
            refuse_rotated_groups(self.mechanism, groups, hidden_count(self))
        X = validate_private_data(self, X, streams=True, accept_sparse="csr", order="C")
        if self.with_mean:
            # the format of a stream is known by now
            refuse_sparse(X, *shifts)
        # 3. plan, from public facts
        n_features, domain = X.shape[1], L2Ball(check_radius(self.data_norm))

        def planned(n_rows):
            return plan_centering(
                epsilon,
                delta,
                mechanism=self.mechanism,
                adjacency=self.adjacency,
                with_mean=self.with_mean,
                threshold=self.threshold,
                threshold_share=self.threshold_share,
                n_rows=n_rows,
                n_features=n_features,
            )

        hidden = hidden_count(self)
        (n_rows, unit), whose = count_rows(groups, X, hidden, sample_weight, planned)
        plan, doubts = planned(n_rows), Doubts(self)
        # 4. gate, 5. run
        with open_gate(
            self,
            lambda: ball_rows(X, domain, effective_n_threads(), counts_of(whose)),
            n_rows=n_rows,
            unit=unit,
            delta=plan.delta,
            mu=mu_of_all(epsilon, delta, plan.priced) if plan.delta else None,
            shared=self._releases,
            doubts=doubts,
        ) as curator:
            center, threshold = plan.run(curator, domain.radius)
            if center is not None and self.mechanism == "gaussian":
                noise = curator.ledger.releases[0].noise.scale / n_rows
                say_of_edge(doubts, center / domain.radius, noise, "data_norm", "")
        # 6. attributes: what was released, and what is public
        self.center_ = np.zeros(n_features) if center is None else center
        self.threshold_ = threshold
        return self

    def original_coef(
        self, coef: ArrayLike, intercept: ArrayLike = 0.0
    ) -> tuple[NDArray[np.float64], Any]:
        """Return coefficients for original rows, from those for transformed rows.

        Parameters
        ----------
        coef : array-like of shape (n_features,) or (n_outputs, n_features)
            Coefficients that were learned on transformed rows.
        intercept : float or array-like of shape (n_outputs,), default=0.0
            Intercept that was learned with them.

        Returns
        -------
        coef : ndarray
            Coefficients for original rows, in the shape of `coef`.
        intercept : float or ndarray of shape (n_outputs,)
            Intercept for original rows. If the center is far off it is large, and scores lose
            as many digits as the offset is longer than the radius.
        """
        check_is_fitted(self)
        original = np.asarray(coef, dtype=np.float64) / self.threshold_
        return original, np.asarray(intercept) - original @ self.center_

    def _twin(self):
        center = self.center_ if self.with_mean else None
        return standard_scaler(self.n_features_in_, center, self.threshold_)

    def _constants(self):
        return self.center_, self.threshold_

    @property
    def _releases(self):
        """Whether a fit releases anything; if not, it costs nothing."""
        return self.with_mean or isinstance(self.threshold, str)

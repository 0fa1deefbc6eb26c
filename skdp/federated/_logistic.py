# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logistic regression from the rows of clients."""

import warnings
from numbers import Integral, Real
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skdp._classification import SoftmaxClassifierMixin, resolve_classes
from skdp._gate import open_gate
from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._rows.domains import L2Ball, check_radius
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    CallbackSupportMixin,
    Interval,
    LinearClassifierMixin,
    SparseCoefMixin,
    StrOptions,
    effective_n_threads,
    fit_context,
    validate_private_data,
)
from skdp._typing import Adjacency, Budget, MatrixLike, Seed, VectorLike
from skdp.exceptions import SimulationWarning
from skdp.federated._rounds import (
    ClientRows,
    Rounds,
    check_budget,
    federated_descent,
    flat,
    plan_problem,
)
from skdp.local._choice import MAGNITUDES, PARAMETERS
from skdp.privacy.kernel.accounting import check_delta, check_epsilon

# Which rows belong to which client.


def resolve_clients(groups, n_rows):
    """Code the clients.

    Parameters
    ----------
    groups : array-like of shape (n_rows,) or None
        Identifier of the client that owns the row: numbers, or text. None: every row is a
        client of its own.
    n_rows : int
        Number of rows.

    Returns
    -------
    n_clients : int
        Number of clients; public.
    codes : ndarray of shape (n_rows,), dtype int64
        Position of every row's client among the sorted identifiers; private.

    Raises
    ------
    ValueError
        If `groups` is not one identifier a row.
    """
    if groups is None:
        return n_rows, np.arange(n_rows)
    try:
        groups = np.asarray(groups)
    except ValueError:
        raise ValueError(
            "groups must have one identifier of a client for each row of X; got lists of several "
            "lengths."
        ) from None
    if groups.ndim != 1 or len(groups) != n_rows:
        raise ValueError(
            f"groups must have one identifier of a client for each row of X, shape ({n_rows},); "
            f"got shape {groups.shape}."
        )
    if _has_missing_clients(groups):
        raise ValueError("groups must not have missing identifiers.")
    try:
        found, codes = np.unique(groups, return_inverse=True)
    except TypeError:
        raise ValueError(
            "groups must have identifiers of one type that can be sorted; got several types."
        ) from None
    return len(found), codes.reshape(-1).astype(np.int64)


def _has_missing_clients(groups):
    """Return whether there is None, NaN, NA or NaT."""
    if groups.dtype.kind != "O":
        # what is missing does not even equal itself
        return bool((groups != groups).any())
    return any(map(_is_missing_client, groups.tolist()))


def _is_missing_client(one):
    try:
        return one is None or bool(one != one)
    except TypeError:
        # NA does not know whether it does
        return True


# What federated classifiers share: parameters, the way through the gate, attributes.


class FederatedClassifier(
    CallbackSupportMixin,
    LinearClassifierMixin,
    SparseCoefMixin,
    BaseEstimator,
):
    """Base of the federated classifiers; a subclass states its loss."""

    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "epsilon": [Interval(Real, 0, None, closed="neither"), None],
        "local_epsilon": [Interval(Real, 1e-6, 1e6, closed="both"), None],
        "classes": ["array-like", None],
        "C": [Interval(Real, 0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": SCALE_OR_NONE,
        "local_update": [StrOptions({"gradient", "proximal"})],
        "local_steps": [Interval(Integral, 1, None, closed="left"), None],
        "local_step_size": SCALE_OR_NONE,
        "proximal_strength": SCALE_OR_NONE,
        "clipping_norm": SCALE_OR_NONE,
        "report_norm": SCALE_OR_NONE,
        "magnitude": [StrOptions(set(MAGNITUDES))],
        "expected_norm": [Interval(Real, 0, 1, closed="right"), None],
        "magnitude_epsilon": [Interval(Real, 0, None, closed="neither"), None],
        "parameters": [StrOptions(set(PARAMETERS))],
        "batch_size": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "step_size": SCALE_OR_NONE,
        "momentum": ["boolean"],
        "average": ["boolean"],
        "population_size": [Interval(Real, 1, 2**53, closed="both"), None],
        "population_batch_size": [Interval(Real, 0, None, closed="neither"), None],
        "verbose": ["verbose"],
    }

    def _loss(self, n_classes):
        """Return the loss for a number of classes."""
        raise NotImplementedError

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: VectorLike, groups: VectorLike | None = None) -> Self:
        """Fit the model within the budget.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows. Rows longer than `data_norm` are scaled down to it.
        y : array-like of shape (n_samples,)
            Private labels.
        groups : array-like of shape (n_samples,), default=None
            Client that owns the row: numbers, or text. None: every row is a client, and no more
            than a row is protected. Cross-validation passes it only if metadata are routed.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable. The message names no data value, but that
            it was raised may depend on the data.
        """
        if self.epsilon is not None:
            check_epsilon(self.epsilon)
        check_delta(self.delta)
        check_budget(self)
        ball = L2Ball(check_radius(self.data_norm))
        X, y = validate_private_data(self, X, y, accept_sparse="csr")
        # how many rows there are is private: only the number of clients is used
        n_clients, clients = resolve_clients(groups, X.shape[0])
        n_features = X.shape[1]
        classes, codes, outside, assumptions = resolve_classes(y, self.classes)
        problem = plan_problem(self, n_clients, n_features, self._loss(len(classes)))
        rounds = problem.rounds
        if self.verbose:
            print(f"[{type(self).__name__}] {rounds}")
        if rounds.hypothetical is not None:
            warnings.warn(
                "population_size is set: the noise is that of a deployment with so many clients. "
                "These clients spend what privacy_spent_ says, and not epsilon.",
                SimulationWarning,
                stacklevel=4,
            )
        with open_gate(
            self,
            lambda: ClientRows(
                X,
                problem.loss.encode(codes),
                outside,
                clients,
                n_clients,
                ball,
                problem.intercept,
                effective_n_threads(),
            ),
            n_rows=n_clients,
            epsilon=rounds.spent,
            delta=self.delta,
            adjacency="local" if rounds.mu_round is None else self.adjacency,
            mu=rounds.total_mu,
            assumptions=assumptions,
            n_releases=rounds.n_steps,
            unit="client",
        ) as curator:
            released = Rounds(curator, problem.query, np.zeros(problem.shape), rounds)
            coef = federated_descent(released.mean_update, problem.shape, rounds)
        self.classes_ = classes
        self.coef_, self.intercept_ = flat(coef, problem, n_features, self.data_norm)
        self.n_clients_, self.n_iter_ = n_clients, rounds.n_steps
        self.projected_share_ = released.projected_share
        ledger = self.ledger_
        self.local_epsilon_per_round_ = (
            np.inf if rounds.randomiser is None else rounds.randomiser.epsilon
        )
        self.local_privacy_spent_ = (ledger.local_epsilon(self.delta), float(self.delta))
        self.local_epsilon_total_ = ledger.local_epsilon(0.0)
        self.hypothetical_privacy_spent_ = None
        if rounds.hypothetical is not None:
            self.hypothetical_privacy_spent_ = (rounds.hypothetical, float(self.delta))
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class FederatedDPLogisticRegression(SoftmaxClassifierMixin, FederatedClassifier):
    """Logistic regression from clients that own any number of rows, private client by client.

    In every round a random set of clients moves the server's model along the mean log-loss of
    its own rows; the server sees the sum of clipped updates with noise, or reports that each
    client randomises itself, or both. All rows of a client together are protected.

    Parameters
    ----------
    epsilon : float or None, default=1.0
        Budget of all that is released, in nats, greater than 0 and finite. None adds no noise
        to sums of reports; `local_epsilon` is needed then.
    delta : float, default=1e-6
        Budget, in [0, 1), well below one over the number of clients; greater than 0 unless
        `epsilon` is None.
    local_epsilon : float or None, default=None
        Budget of ONE report of a client, from 1e-6 to 1e6: what the server learns of a client in
        one round. A client reports in as many rounds as it is drawn for. None trusts the server
        with exact updates.
    adjacency : {"replace-one", "zero-out"}, default="replace-one"
        What neighbours are: one client has other rows, any number of them; or it is not there.
        The number of clients is public. Reports alone (`epsilon=None`) are for any two values
        of a client.
    data_norm : float, default=1.0
        Rows longer than this (Euclidean norm, in the units of the data) are scaled down to it.
        Public.
    classes : array-like of shape (n_classes,), default=None
        Public label set. Rows with other labels contribute nothing. None reads it from `y`,
        which the ledger notes as an assumption.
    C : float, default=inf
        Inverse strength of the penalty: minimised is ``C`` times the sum over clients of the
        mean loss of their rows, plus ``|coef|^2 / 2``.
    fit_intercept : bool, default=True
        Whether rows get a constant feature.
    intercept_scaling : float, default=None
        The constant feature, in units of `data_norm`. None takes 0.1, or 0.3 where clients
        report.
    local_update : {"gradient", "proximal"}, default="gradient"
        What a client does: steps along its mean loss, or along its mean loss plus
        ``proximal_strength / 2 |w - start|^2``.
    local_steps : int, default=None
        Steps of a client in a round. None takes 1, or 10 for "proximal".
    local_step_size : float, default=None
        Length of its steps, for rows in the unit ball. None takes one over the curvature of
        its objective.
    proximal_strength : float, default=None
        Strength of the pull to the start. None takes the curvature of the loss.
    clipping_norm : float, default=None
        Bound on the norm of a client's update, for rows in the unit ball: the update is the mean
        of the directions of descent along the client's steps, so that the longest gradient of a
        row bounds it. None chooses a part of that.
    report_norm : float, default=None
        Norm to which the server projects reports, in the same units. None takes one that no
        report exceeds. A smaller one needs less noise and biases: reports are long.
    magnitude : {"lift", "flip", "product", "auto"}, default="lift"
        What reports do about updates shorter than `clipping_norm`; see `PrivUnitPrivatizer`.
    expected_norm : float, default=None
        A public guess of the norms of updates over `clipping_norm`, for "product" and "auto".
    magnitude_epsilon : float, default=None
        "product": the part of `local_epsilon` that is for the norm. None for the best part.
    parameters : {"optimal", "paper", "paper-simulation", "half"}, default="optimal"
        "optimal" has the least error; the others are choices of [1]_.
    batch_size : float, default=None
        Expected number of clients of a round, each drawn independently; at most their number.
        None chooses it; where clients report, such that each reports once on average.
    max_iter : int, default=None
        Number of rounds. None chooses it.
    step_size : float, default=None
        Length of the server's steps, for rows in the unit ball. None chooses it, and shortens
        it where released updates show curvature.
    momentum : bool, default=True
        Whether the server accelerates its steps.
    average : bool, default=True
        Whether the result is the average of the server's points but the first ones, or the last.
    population_size : float, default=None
        Simulates a deployment with so many clients: the noise on the mean is what the budget
        asks for there. THESE clients then spend what `privacy_spent_` says, in general far more
        than `epsilon`.
    population_batch_size : float, default=None
        Expected number of clients of a round of that deployment. None keeps the rate.
    budget : PrivacyBudget, default=None
        A budget that several fits share: each is charged (epsilon, delta) before it reads a
        row, and refused if that is more than what is left.
    random_state : None, int, RandomState or Generator, default=None
        None draws noise from the operating system. Anything else is for tests only.
    verbose : int, default=0
        Whether to print the plan and the progress.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients, in the units of the data.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    classes_ : ndarray of shape (n_classes,)
        Sorted label set.
    n_clients_ : int
        Number of clients; public.
    n_iter_ : int
        Number of rounds.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` had text names.
    ledger_ : Ledger
        What was released, and the reports in it.
    privacy_spent_ : tuple of (float, float)
        Epsilon and delta, per client, of all that everybody may see.
    local_epsilon_per_round_ : float
        Price of one report; infinite where the server sees exact updates.
    local_privacy_spent_ : tuple of (float, float)
        Epsilon and delta, per client, of its reports together, towards the server; delta is the
        chance that it takes part more often than is counted.
    local_epsilon_total_ : float
        The same with certainty: as if a client reported in every round.
    projected_share_ : float or None
        Share of reports that were longer than `report_norm`; None unless reports are all that
        is released.
    hypothetical_privacy_spent_ : tuple of (float, float) or None
        What the deployment of `population_size` would spend. Nothing about these data.

    See Also
    --------
    DPLogisticRegression : Rows of one table, private row by row.
    LocalDPLogisticRegression : One report of every row.
    skdp.inspection.reconstruction_risk : What a report tells about a client.

    Notes
    -----
    Privacy. An update is a function of one client's rows and is clipped as a whole, so that it
    does not matter how many rows the client has (Proposition 69). Sums are divided by the
    expected number of clients of a round. Composition over rounds is by privacy loss
    distributions of sums over Poisson batches. The number of rows is private: nothing but the
    number of clients, and the order of their identifiers, is used outside of the curator.

    The server's step is an average of clients, not of rows: a client with many rows counts for
    no more than one with a few.

    References
    ----------
    .. [1] A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor and R. Rogers, "Protection against
       reconstruction and its applications in private federated learning", 2018. Section 3.1,
       equations 11 to 13.
    .. [2] H. B. McMahan, D. Ramage, K. Talwar and L. Zhang, "Learning differentially private
       recurrent language models", ICLR 2018.
    .. [3] Y. Zhu, J. Dong and Y.-X. Wang, "Optimal accounting of differential privacy via
       characteristic function", AISTATS 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from skdp import FederatedDPLogisticRegression
    >>> X, y = load_digits(return_X_y=True)
    >>> clients = np.arange(len(X)) // 3
    >>> model = FederatedDPLogisticRegression(
    ...     epsilon=8.0, data_norm=80.0, classes=range(10), random_state=0
    ... )
    >>> model.fit(X, y, groups=clients).score(X, y) > 0.6
    True
    >>> model.n_clients_, model.ledger_.unit
    (599, 'client')
    >>> model.privacy_spent_[0] <= 8.0
    True
    """

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        *,
        local_epsilon: float | None = None,
        adjacency: Adjacency = "replace-one",
        data_norm: float = 1.0,
        classes: ArrayLike | None = None,
        C: float = np.inf,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        local_update: Literal["gradient", "proximal"] = "gradient",
        local_steps: int | None = None,
        local_step_size: float | None = None,
        proximal_strength: float | None = None,
        clipping_norm: float | None = None,
        report_norm: float | None = None,
        magnitude: Literal["lift", "flip", "product", "auto"] = "lift",
        expected_norm: float | None = None,
        magnitude_epsilon: float | None = None,
        parameters: Literal["optimal", "paper", "paper-simulation", "half"] = "optimal",
        batch_size: float | None = None,
        max_iter: int | None = None,
        step_size: float | None = None,
        momentum: bool = True,
        average: bool = True,
        population_size: float | None = None,
        population_batch_size: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.local_epsilon = local_epsilon
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.classes = classes
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.local_update = local_update
        self.local_steps = local_steps
        self.local_step_size = local_step_size
        self.proximal_strength = proximal_strength
        self.clipping_norm = clipping_norm
        self.report_norm = report_norm
        self.magnitude = magnitude
        self.expected_norm = expected_norm
        self.magnitude_epsilon = magnitude_epsilon
        self.parameters = parameters
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.step_size = step_size
        self.momentum = momentum
        self.average = average
        self.population_size = population_size
        self.population_batch_size = population_batch_size
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, n_classes):
        return LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)

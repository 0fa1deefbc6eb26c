# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logistic regression from the rows of clients, private per client."""

import math
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar

from skdp._counted import check_groups, resolve_groups
from skdp._gate import Doubts, Heard, open_gate
from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._plan import PlanMixin
from skdp._rows.base import L2Ball, check_radius, leaves_out_zeros
from skdp._sklearn import (
    SHARED_CONSTRAINTS,
    CallbackSupportMixin,
    Interval,
    LinearClassifierMixin,
    SoftmaxClassifierMixin,
    SparseCoefMixin,
    StrOptions,
    centered_classes,
    effective_n_threads,
    fit_context,
    resolve_classes,
    validate_private_data,
)
from skdp._typing import ArrayLike, Budget, MatrixLike, Seed, VectorLike
from skdp.exceptions import SimulationWarning
from skdp.federated._averaging import (
    LOCAL_UPDATES,
    ClientRows,
    FederatedAveraging,
    FederatedParameters,
    GradientSteps,
    LocalUpdate,
    Population,
    PrepaidRounds,
    ProximalPoint,
    federated_descent,
    plan_problem,
)
from skdp.federated._messages import DistantClients, FederatedRound
from skdp.linear_model._scales import say_of_signal
from skdp.local._ball_randomiser import MAGNITUDES, BallRandomiser
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_delta, check_epsilon, level_of_caller


class FederatedDPLogisticRegression(
    PlanMixin,
    SoftmaxClassifierMixin,
    CallbackSupportMixin,
    LinearClassifierMixin,
    SparseCoefMixin,
    BaseEstimator,
):
    """Logistic regression from clients with any number of rows each, private per client.

    In every round, a random set of clients update the server's model along the mean log-loss of
    their own rows. Released are noisy sums of clipped updates; or clients randomise their own
    reports; or both. All rows of a client are protected together.

    Parameters
    ----------
    epsilon : float or None, default=1.0
        Privacy budget of all releases, in nats, greater than 0 and finite. None adds no noise to
        sums of reports, and needs `local_epsilon`.
    delta : float, default=1e-6
        Privacy budget, in [0, 1), well below 1 / n_clients; greater than 0 unless `epsilon` is
        None.
    local_epsilon : float or None, default=None
        Privacy budget of ONE report of a client towards the server, from 1e-6 to 1e6. A client
        reports in every round in which it is drawn. None trusts the server with exact updates.
    randomiser : {"lift", "flip", "product", "auto"} or BallRandomiser, default="lift"
        Randomiser of updates, in units of the clipping norm. A name is the `magnitude` of a
        `BallRandomiser`, the treatment of shorter updates. The default of its `expected_norm` is
        1.
    adjacency : {"replace-one", "zero-out"}, default="replace-one"
        Neighbouring data sets differ in the rows of one client, any number of them
        ("replace-one"), or in its absence ("zero-out"). The number of clients is public. Reports
        only (`epsilon=None`) protect any two values of a client.
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, in the units of the data. Longer rows are
        scaled down to it.
    classes : array-like of shape (n_classes,), default=None
        Public label set. Rows with other labels contribute nothing. None reads it from `y`, and
        the ledger says so.
    C : float, default=inf
        Inverse strength of the penalty. The objective is ``C`` times the sum over clients of the
        mean loss of their rows, plus ``|coef|^2 / 2``.
    fit_intercept : bool, default=True
        Whether to fit an intercept, by a constant feature of the rows.
    local_update : {"gradient", "proximal"}, GradientSteps or ProximalPoint, default="gradient"
        Steps of a client in a round. "gradient" is ``GradientSteps()``, one step along the mean
        loss of its rows; "proximal" is ``ProximalPoint()``, steps with a pull to the start. The
        object also has the bound on the norm of an update.
    solver : {"auto"} or FederatedAveraging, default="auto"
        Steps of the server: number of clients of a round, step length, momentum, averages. "auto"
        is ``FederatedAveraging()``, which chooses them from public numbers.
    max_iter : int, default=None
        Number of rounds. None chooses it.
    population : Population, default=None
        A larger deployment to simulate: the noise of the mean is as in the deployment. THESE
        clients then spend `privacy_spent_`, in general far more than `epsilon`.
    budget : PrivacyBudget, default=None
        A budget shared by several fits. Each fit is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Anything else is for tests only.
    verbose : int, default=0
        1 prints a line with the plan and its price, and a progress bar if the fit takes seconds;
        public numbers only.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients, in the units of the data. For several classes they add up to zero, if none is
        zero.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    classes_ : ndarray of shape (n_classes,)
        Sorted label set.
    n_clients_ : int
        Number of clients; public.
    n_iter_ : ndarray of shape (1,)
        Number of rounds.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` had text names.
    ledger_ : Ledger
        Releases and their prices, with the reports in them.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) of all public releases, per client (per row without `groups`).
    local_epsilon_per_round_ : float
        Price of one report; infinite if the server sees exact updates.
    local_privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) of all reports of a client towards the server. delta is the
        probability that it takes part more often than counted.
    local_epsilon_total_ : float
        The same with delta 0, as for a client that reports in every round.
    projected_share_ : float or None
        Fraction of reports longer than the `report_norm` of the solver; None unless only reports
        are released.
    hypothetical_privacy_spent_ : tuple of (float, float) or None
        The (epsilon, delta) of the deployment `population`. It says nothing about these clients.

    See Also
    --------
    DPLogisticRegression : Rows of one table, private row by row.
    LocalDPLogisticRegression : One report of every row.
    skdp.inspection.reconstruction_risk : What a report tells about a client.

    Notes
    -----
    Privacy. One client is protected; without `groups`, one row. An update is a function of the
    rows of one client and is clipped as a whole, so the number of its rows does not matter
    (Proposition 69). Sums are divided by the expected number of clients of a round. Composition
    over rounds uses privacy loss distributions of sums over Poisson batches. The number of rows is
    private: only the number of clients and the order of their identifiers are used outside of the
    curator.

    The server averages clients, not rows: the weight of a client does not depend on the number of
    its rows.

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
    (599, 'group')
    >>> model.privacy_spent_[0] <= 8.0
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "adjacency": [StrOptions({"replace-one", "zero-out"})],
        "epsilon": [Interval(Real, 0, None, closed="neither"), None],
        "local_epsilon": [Interval(Real, 1e-6, 1e6, closed="both"), None],
        "randomiser": [StrOptions(set(MAGNITUDES)), BallRandomiser],
        "classes": ["array-like", None],
        "C": [Interval(Real, 0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "local_update": [StrOptions(set(LOCAL_UPDATES)), GradientSteps, ProximalPoint],
        "solver": [StrOptions({"auto"}), FederatedAveraging],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "population": [Population, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        *,
        local_epsilon: float | None = None,
        randomiser: Literal["lift", "flip", "product", "auto"] | BallRandomiser = "lift",
        adjacency: Literal["replace-one", "zero-out"] = "replace-one",
        data_norm: float = 1.0,
        classes: ArrayLike | None = None,
        C: float = np.inf,
        fit_intercept: bool = True,
        local_update: Literal["gradient", "proximal"] | LocalUpdate = "gradient",
        solver: Literal["auto"] | FederatedAveraging = "auto",
        max_iter: int | None = None,
        population: Population | None = None,
        budget: Budget = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.local_epsilon = local_epsilon
        self.randomiser = randomiser
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.classes = classes
        self.C = C
        self.fit_intercept = fit_intercept
        self.local_update = local_update
        self.solver = solver
        self.max_iter = max_iter
        self.population = population
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

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
            Client of every row: numbers or text. None: every row is its own client, and the ledger
            says that a row is protected. Cross-validators of scikit-learn pass it only with
            ``sklearn.set_config(enable_metadata_routing=True)``; otherwise they drop it. After
            ``set_fit_request(groups=True)``, missing groups are an error.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable. The message contains no data value, but the
            exception itself may depend on the data.
        BudgetError
            If less is left in a shared budget, or it protects groups and `groups` is None.
        """
        check_groups(self, groups)
        self._check_budget()
        given = FederatedParameters.of(self)
        ball = L2Ball(check_radius(self.data_norm))
        X, y = validate_private_data(self, X, y, classes=self.classes, accept_sparse="csr")
        # how many rows there are is private: only the number of clients is used
        (n_clients, unit), clients = resolve_groups(groups, X, ordered=True)
        classes, codes, outside, assumptions = resolve_classes(y, self.classes)
        problem = plan_problem(self, given, n_clients, X.shape[1], _loss_for(classes))
        terms = self._terms(problem, n_clients, unit, assumptions, not leaves_out_zeros(X))
        with open_gate(
            self,
            lambda: ClientRows(
                X,
                problem.loss.encode(codes),
                outside,
                np.arange(X.shape[0]) if clients is None else clients,
                n_clients,
                ball,
                problem.intercept,
                effective_n_threads(),
            ),
            **terms,
        ) as curator:
            released = _released(curator, problem, terms["doubts"])
        return self._finished(released, problem, classes, n_clients)

    @fit_context(prefer_skip_nested_validation=True)
    def fit_clients(
        self, drive: Callable[[FederatedRound], object], *, n_clients: int, n_features: int
    ) -> Self:
        """Fit the model to distant clients, by messages.

        Rounds, noise, ledger and price are as in `fit`. The clients of a round are drawn first.
        Clients that do not answer in time add nothing to the sum, and the divisor does not change.
        So late and lost answers bias the step, without a loss of privacy.

        Parameters
        ----------
        drive : callable
            Called once per round with a `FederatedRound`. It delivers the requests, adds the
            answers, and returns when all have arrived or time is up. An exception ends the fit,
            which stays charged.
        n_clients : int
            Public number of all clients; their places are 0 to ``n_clients - 1``.
        n_features : int
            Public number of features.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter is unusable, `classes` is None, or `local_epsilon` is set (clients send
            exact updates). No client was asked.
        BudgetError
            If less is left in a shared budget.

        See Also
        --------
        skdp.federated.FederatedClient : Answers requests where the rows are.

        Notes
        -----
        The server sees exact updates, and is trusted. Whether a client answers in time may depend
        on its own rows, but not on the rows of other clients (Proposition 97 of the guide).
        """
        self._check_budget()
        given = FederatedParameters.of(self)
        check_radius(self.data_norm)
        n_clients = check_scalar(n_clients, "n_clients", Integral, min_val=1)
        n_features = check_scalar(n_features, "n_features", Integral, min_val=1)
        if not callable(drive):
            raise TypeError(f"drive must be callable; got type {type(drive).__name__}.")
        if self.local_epsilon is not None:
            raise ValueError(
                "local_epsilon must be None in fit_clients, where clients send exact updates; got "
                f"{self.local_epsilon!r}. Reports of rows are made by "
                "LocalDPLogisticRegression.client."
            )
        if self.classes is None:
            raise ValueError("classes must be given in fit_clients: no label is read here.")
        classes, _, _, assumptions = resolve_classes(np.empty(0, dtype=object), self.classes)
        if classes.dtype.kind not in "biufU":
            raise ValueError(
                f"classes must be numbers or text in fit_clients; got {self.classes!r}."
            )
        problem = plan_problem(self, given, n_clients, n_features, _loss_for(classes))
        body = {
            "intercept": float(problem.intercept),
            "data_norm": float(self.data_norm),
            "classes": classes.tolist(),
        }
        self.n_features_in_ = n_features
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        terms = self._terms(problem, n_clients, "group", assumptions, True)
        clients = DistantClients(drive, n_clients, body)
        with open_gate(self, lambda: clients, **terms) as curator:
            released = _released(curator, problem, terms["doubts"])
        return self._finished(released, problem, classes, n_clients)

    def _check_budget(self):
        """Raise unless epsilon and delta are valid."""
        if self.epsilon is not None:
            check_epsilon(self.epsilon)
        check_delta(self.delta)

    def _terms(self, problem, n_clients, unit, assumptions, is_dense):
        """Return the terms of the gate, from public facts."""
        rounds = problem.rounds
        if rounds.hypothetical is not None:
            warnings.warn(
                "population is set: the noise is that of a deployment with so many clients. "
                "These clients spend what privacy_spent_ says, and not epsilon.",
                SimulationWarning,
                stacklevel=level_of_caller(),
            )
        doubts = Doubts(self)
        if rounds.mu_round and rounds.hypothetical is None and is_dense:
            signal = rounds.spent, self.delta, self.adjacency, math.prod(problem.shape), unit
            say_of_signal(doubts, n_clients, *signal)
        return {
            "n_rows": n_clients,
            "epsilon": rounds.spent,
            "delta": self.delta,
            "adjacency": "local" if rounds.mu_round is None else self.adjacency,
            "mu": rounds.total_mu,
            "assumptions": assumptions,
            "n_releases": rounds.n_releases,
            "unit": unit,
            "doubts": doubts,
        }

    def _finished(self, released, problem, classes, n_clients):
        """Set the attributes from the releases."""
        coef, self.projected_share_ = released
        rounds = problem.rounds
        self.classes_ = classes
        coef = centered_classes(coef)
        self._clipped_at = float(self.data_norm)
        self.coef_ = coef[:, : self.n_features_in_] / self.data_norm
        self.intercept_ = np.zeros(len(coef))
        if problem.intercept:
            self.intercept_ = problem.intercept * coef[:, -1]
        self.n_clients_, self.n_iter_ = n_clients, self._steps(rounds.n_steps)
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


def _released(curator, problem, doubts):
    """Return the coefficients after all rounds, and the fraction of projected reports."""
    rounds = problem.rounds
    released = PrepaidRounds(curator, problem.query, np.zeros(problem.shape), rounds)
    longest, n_rounds = rounds.clip * rounds.n_steps, rounds.n_steps
    heard = Heard(math.prod(problem.shape), n_rounds * rounds.noise**2, longest)

    def mean_update(point):
        update = released.mean_update(point)
        heard.add(update, 1 / n_rounds)
        return update

    coef = federated_descent(mean_update, problem.shape, rounds)
    heard.say(doubts)
    return coef, released.projected_share


def _loss_for(classes):
    return LogisticLoss() if len(classes) == 2 else SoftmaxLoss(len(classes))

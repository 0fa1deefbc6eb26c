# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logistic regression from the rows of clients."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skdp._classification import SoftmaxClassifierMixin
from skdp._losses import LogisticLoss, SoftmaxLoss
from skdp._typing import Adjacency, Budget, Seed
from skdp.federated._classifier import FederatedClassifier


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

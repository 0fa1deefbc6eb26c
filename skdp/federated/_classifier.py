# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What federated classifiers share: parameters, the way through the gate, attributes."""

import warnings
from numbers import Integral, Real
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from skdp._classification import resolve_classes
from skdp._domains import L2Ball, check_radius
from skdp._queries import ClientRows
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    CallbackSupportMixin,
    Interval,
    LinearClassifierMixin,
    SparseCoefMixin,
    StrOptions,
    blas_on_one_thread,
    effective_n_threads,
    fit_context,
    validate_private_data,
)
from skdp._solvers import Rounds, federated_descent
from skdp._typing import MatrixLike, VectorLike
from skdp.exceptions import SimulationWarning
from skdp.federated._clients import resolve_clients
from skdp.federated._plan import check_budget, flat, plan_problem
from skdp.linear_model._progress import Progress
from skdp.local._choice import MAGNITUDES, PARAMETERS
from skdp.privacy import Curator
from skdp.privacy._accounting import check_delta, check_epsilon


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
        progress = Progress(self, rounds.n_steps)
        curator = Curator(
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
            budget=self.budget,
            random_state=self.random_state,
            purpose=type(self).__name__,
            assumptions=assumptions,
            progress=progress,
            unit="client",
        )
        with blas_on_one_thread():
            released = Rounds(curator, problem.query, np.zeros(problem.shape), rounds)
            coef = federated_descent(released.mean_update, problem.shape, rounds)
        progress.close()
        self.classes_ = classes
        self.coef_, self.intercept_ = flat(coef, problem, n_features, self.data_norm)
        self.n_clients_, self.n_iter_ = n_clients, rounds.n_steps
        self.projected_share_ = released.projected_share
        self.ledger_ = ledger = curator.ledger
        self.privacy_spent_ = (ledger.epsilon(self.delta), float(self.delta))
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

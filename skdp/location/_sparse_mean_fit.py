# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How a private mean of sparse rows is fitted and used."""

from typing import Any, Self

import numpy as np
from scipy import sparse

from skdp._domains import L2Ball, check_radius
from skdp._location import MeanEstimator
from skdp._queries import sparse_rows
from skdp._sklearn import (
    blas_on_one_thread,
    effective_n_threads,
    fit_context,
    validate_private_data,
)
from skdp._solvers import mu_of_all
from skdp._solvers.sparse_mean import SparseMeanProblem
from skdp._solvers.sparse_mean_choice import MOST_FEATURES, plan_sparse_mean
from skdp._typing import MatrixLike
from skdp.privacy import Curator


class SparseMeanFit(MeanEstimator):
    """Base of `DPSparseMeanEstimator`, which documents and holds the parameters."""

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
        self : DPSparseMeanEstimator
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable; nothing has been released then.
        """
        X = validate_private_data(self, X, streams=True, accept_sparse="csr", order="C")
        n_rows, n_features = X.shape
        # 1. the plan and its price, from public numbers
        ball = L2Ball(check_radius(self.data_norm))
        problem = self._problem(n_rows, n_features)
        plan = plan_sparse_mean(self.mechanism, problem)
        # 2. the gate
        curator = Curator(
            lambda: sparse_rows(
                X, ball, problem.sparsity, problem.nonnegative, effective_n_threads()
            ),
            n_rows=n_rows,
            epsilon=self.epsilon,
            delta=plan.delta,
            adjacency=self.adjacency,
            budget=self.budget,
            mu=mu_of_all(self.epsilon, plan.delta) if plan.gaussian else None,
            random_state=self.random_state,
            purpose=type(self).__name__,
        )
        with blas_on_one_thread():
            estimate = plan.run(curator)
        # 3. post-processing of what was released
        self.location_ = self._location(estimate.values, n_features)
        self.mechanism_ = plan.mechanism
        self.error_estimate_ = self._in_data_units(estimate.error)
        self.threshold_ = self._in_data_units(estimate.threshold)
        self.ledger_ = curator.ledger
        self.privacy_spent_ = (curator.ledger.epsilon(plan.delta), float(plan.delta))
        return self

    def _problem(self, n_rows, n_features):
        """Return the public facts of a fit."""
        if n_features > MOST_FEATURES and not self.sparse_output:
            raise ValueError(
                f"sparse_output must be True for {n_features} features: a dense location would "
                "not fit in memory; got sparse_output=False."
            )
        return SparseMeanProblem(
            n_rows=n_rows,
            n_features=n_features,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            sparsity=self.sparsity,
            nonnegative=bool(self.nonnegative),
            projection=self.projection,
            measurement=self.measurement,
            n_measurements=self.n_measurements,
            recovery=self.recovery,
            solver=self.solver,
        )

    def _in_data_units(self, number):
        return None if number is None else float(number * self.data_norm)

    def _location(self, values, n_features):
        """Return the released mean in data units, as an array or as one sparse row."""
        if isinstance(values, tuple):
            columns, values = values
        else:
            columns = np.flatnonzero(values) if self.sparse_output else slice(None)
            values = values[columns]
        values = values * self.data_norm
        if self.sparse_output:
            row = np.zeros(len(values), dtype=np.int64)
            return sparse.csr_array((values, (row, columns)), shape=(1, n_features))
        location = np.zeros(n_features)
        location[columns] = values
        return location

    def predict(self, X: MatrixLike) -> Any:
        """Return the released location for every row of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; only their number matters. Sparse rows are refused: use `location_`.

        Returns
        -------
        locations : {ndarray, CSR array} of shape (n_samples, n_features)
            Copies of `location_`, in its format.
        """
        if not self.sparse_output:
            return super().predict(X)
        n_rows, row = self._check(X).shape[0], self.location_
        parts = (np.tile(row.data, n_rows), np.tile(row.indices, n_rows))
        return sparse.csr_array(
            (*parts, np.arange(n_rows + 1) * row.nnz), shape=(n_rows, row.shape[1])
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the transformers that randomise rows share."""

from typing import Any, Self

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._queries import LocalReports
from skdp._reports import message_bits
from skdp._sklearn import (
    SHARED_CONSTRAINTS,
    StrOptions,
    blas_on_one_thread,
    fit_context,
    validate_private_data,
)
from skdp._typing import MatrixLike
from skdp.local._account import Account
from skdp.privacy import Curator, Ledger, LocalMechanism

NEW_ROWS = ("auto", "keep", "randomise")


class ReportingTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer that gives every row a report of its own.

    Subclasses implement ``_domain_of(n_features)``, which returns the public domain of rows
    for a number of features and may raise, and ``_randomiser_of(n_features)``. A domain has
    ``admit(X)``, ``vectors``, ``original(reports)``, ``kept(X)`` and ``variance(randomiser)``.
    """

    _parameter_constraints = {
        "epsilon": SHARED_CONSTRAINTS["epsilon"],
        "new_rows": [StrOptions(set(NEW_ROWS))],
        "budget": SHARED_CONSTRAINTS["budget"],
        "random_state": SHARED_CONSTRAINTS["random_state"],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Check parameters and remember the number and names of the features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Only its shape is used. Nothing is spent, and a new ledger begins.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The transformer. From now on `transform` randomises, unless ``new_rows="keep"``.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable.
        """
        X = validate_private_data(self, X, accept_sparse=self._sparse_format())
        n_features = X.shape[1]
        domain, randomiser = self._domain_of(n_features), self._randomiser_of(n_features)
        self._domain, self._budget = domain, float(self.epsilon)
        self.randomiser_ = randomiser
        self.noise_variance_ = domain.variance(randomiser)
        self.message_bits_ = message_bits(randomiser)
        self._account = Account()
        self._trained = False
        return self

    def fit_transform(self, X: MatrixLike, y: object = None) -> Any:
        """Fit, and return a report of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows.
        y : None
            Ignored.

        Returns
        -------
        X_reported : ndarray of shape (n_samples, n_features)
            In float64. From now on `transform` returns rows in the clear, unless
            ``new_rows="randomise"``.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable; nothing has been spent then.
        """
        reported = self.fit(X)._report(X)
        self._trained = True
        return reported

    def transform(self, X: MatrixLike) -> Any:
        """Return a report of every row, or the rows themselves; see the notes of the class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; never changed.

        Returns
        -------
        X_transformed : {ndarray, sparse matrix} of shape (n_samples, n_features)
            In float64; sparse only if X is and its rows are kept.
        """
        check_is_fitted(self)
        if self.new_rows == "keep" or (self.new_rows == "auto" and self._trained):
            return self._domain.kept(self._checked(X))
        return self._report(X)

    @property
    def ledger_(self) -> Ledger:
        """What was reported since `fit`, at what price."""
        check_is_fitted(self)
        return self._account.ledger

    @property
    def privacy_spent_(self) -> tuple[float, float]:
        """The (epsilon, delta) of all calls since `fit`, as if all had the same rows."""
        return self.ledger_.epsilon(0.0), 0.0

    def _checked(self, X):
        return validate_private_data(self, X, accept_sparse=self._sparse_format(), reset=False)

    def _report(self, X):
        X, domain = self._checked(X), self._domain
        curator = Curator(
            lambda: domain.admit(X),
            n_rows=X.shape[0],
            epsilon=self._budget,
            delta=0.0,
            adjacency="local",
            budget=self.budget,
            random_state=self.random_state,
            # with one seed, reports at two budgets do not share their noise either
            purpose=f"{type(self).__name__} {self._budget!r}",
        )
        # a seeded report depends on the seed and the row, whatever rows come with it
        query = LocalReports(domain.vectors, self.randomiser_, by_content=True)
        try:
            with blas_on_one_thread():
                reports = curator.release(query, LocalMechanism(self._budget))
        finally:
            # what fails midway has been paid for
            self._account.add(curator.ledger)
        return domain.original(reports)

    def _sparse_format(self):
        return "csr" if self._accepts_sparse() else False

    def _accepts_sparse(self):
        return False

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_account")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

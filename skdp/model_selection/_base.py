# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What both searches share: parameters, the way through the gate, attributes."""

from numbers import Integral, Real
from typing import Self

from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.validation import check_is_fitted

from skdp._classification import resolve_classes
from skdp._sklearn import (
    SHARED_CONSTRAINTS,
    BaseSearchCV,
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
)
from skdp._typing import MatrixLike, VectorLike
from skdp.model_selection._candidates import lacks_classes
from skdp.model_selection._form import as_table, as_targets, public_form
from skdp.model_selection._plan import STRATEGIES, all_configured, plan_runs
from skdp.model_selection._results import released_score, results_of
from skdp.model_selection._row_scorer import RowScorer, check_methods, resolve_scoring
from skdp.model_selection._runs import run_search, stamp
from skdp.privacy._search import Search


class DPSearchCV(BaseSearchCV):
    """Base of the private searches; a subclass states its candidates."""

    _parameter_constraints = {
        **{name: SHARED_CONSTRAINTS[name] for name in ("epsilon", "delta", "budget")},
        "estimator": [HasMethods(["fit", "get_params", "set_params"])],
        "strategy": [StrOptions({"auto", *STRATEGIES})],
        "expected_runs": [Interval(Real, 1, None, closed="left"), None],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        # what they cannot be is said by `resolve_scoring`
        "scoring": [str, RowScorer, callable, list, tuple, set, dict, None],
        "refit": ["boolean"],
        "refit_share": [Interval(Real, 0, 1, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": SHARED_CONSTRAINTS["random_state"],
        "verbose": ["verbose"],
    }

    def _params_of_candidates(self):
        """Return the list of parameters of all candidates; public."""
        raise NotImplementedError

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: MatrixLike,
        y: VectorLike | None = None,
        *,
        X_val: MatrixLike | None = None,
        y_val: VectorLike | None = None,
        **params: object,
    ) -> Self:
        """Run the search within the budget.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,), default=None
            Private targets.
        X_val, y_val : array-like, default=None
            PUBLIC rows and targets. Given, they score the runs, which costs nothing, and no
            private row is held out.
        **params : dict
            Must be empty: what else is passed to a fit would not be paid for.

        Returns
        -------
        self : object
            Fitted search.

        Raises
        ------
        ValueError
            If a parameter or a candidate is unusable: the data were not looked at, and nothing
            was charged. If a run fails: all of it was charged.
        """
        refuse_fit_params(params)
        self._check_parameters()
        scorer = resolve_scoring(self.scoring, self.estimator)
        listed = self._params_of_candidates()
        models = all_configured(self.estimator, listed)
        check_methods(scorer, models, listed)
        X, y = as_table(X), as_targets(y)
        form = public_form(X, y)
        check_public_rows(form, X_val, y_val)
        if form.target_shape is None and self._needs_targets(scorer):
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        labels, assumptions = None, ()
        if any(map(lacks_classes, models)):
            labels, _, _, assumptions = resolve_classes(y, None)
        plan, adjacency, candidates, held_out = plan_runs(
            self, models, listed, labels, form, X_val is not None
        )
        if self.verbose:
            print(f"[{type(self).__name__}] {plan.describe()}")
        gate = Search(
            plan,
            n_rows=form.shape[0],
            held_out=held_out,
            adjacency=adjacency,
            random_state=self.random_state,
            purpose=type(self).__name__,
            budget=self.budget,
            assumptions=assumptions,
        )
        public = None if X_val is None else (as_table(X_val), as_targets(y_val))
        outcome = run_search(gate, candidates, scorer, (X, y), public, form, self.n_jobs)
        self.scorer_, self.n_splits_, self.plan_ = scorer, 1, plan
        self.ledger_, self.privacy_spent_ = gate.ledger, plan.spent
        self.best_index_ = outcome.run // self.n_repeats
        self.best_params_ = listed[self.best_index_]
        self.best_score_ = released_score(outcome, scorer.bounds, plan.public_scores)
        self.cv_results_ = results_of(listed, self.best_index_, self.best_score_, outcome.scores)
        for name in ("best_estimator_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if self.refit:
            stamp(outcome.model, gate.ledger, plan.spent)
            self.best_estimator_ = outcome.model
            if hasattr(outcome.model, "feature_names_in_"):
                self.feature_names_in_ = outcome.model.feature_names_in_
        return self

    def _check_parameters(self):
        """Raise a ValueError if parameters do not go together."""
        if self.n_jobs == 0:
            # joblib would say so when all has been charged
            raise ValueError("n_jobs must be None or an int other than 0; got 0.")
        if self.n_repeats > 1 and self.strategy not in ("auto", "all"):
            raise ValueError(
                f"n_repeats must be 1 for strategy={self.strategy!r}, whose number of runs is "
                f"random; got {self.n_repeats!r}."
            )
        if self.refit_share and not self.refit:
            raise ValueError(
                "refit_share must be 0 with refit=False, for no model is kept then; got "
                f"{self.refit_share!r}."
            )

    def _needs_targets(self, scorer):
        named = scorer is not self.scoring
        return named or get_tags(self.estimator).target_tags.required

    def score(self, X: MatrixLike, y: VectorLike | None = None) -> float:
        """Return the mean score of rows, by the scorer of the search.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. If they are private, so is the score: it is not covered.
        y : array-like of shape (n_samples,), default=None
            Targets.

        Returns
        -------
        score : float
            Within the bounds of the scorer.
        """
        if not self.refit:
            raise AttributeError("score is available only with refit=True.")
        check_is_fitted(self)
        return self.scorer_(self.best_estimator_, as_table(X), as_targets(y))

    def set_callbacks(self, *callbacks: object) -> Self:
        """Refuse callbacks: they would be told when a run ends, and count the runs.

        Parameters
        ----------
        *callbacks : callback instances
            None are taken.

        Returns
        -------
        self : object
            If there are none.
        """
        if callbacks:
            raise TypeError("a private search takes no callbacks, which would count its runs.")
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Return that nothing is routed: no metadata is paid for.

        Returns
        -------
        routing : MetadataRouter
            Without consumers.
        """
        return MetadataRouter(owner=self)


def refuse_fit_params(params):
    """Raise a ValueError if something else than rows and targets is passed to a fit."""
    if params:
        raise ValueError(
            f"a private search fits rows and targets only; got {sorted(params)}. What groups, "
            "sample_weight and the like do to a fit would not be paid for."
        )


def check_public_rows(form, X_val, y_val):
    """Raise a ValueError unless public rows look like the private ones."""
    if X_val is None:
        if y_val is not None:
            raise ValueError("y_val was given without X_val.")
        return
    public = public_form(as_table(X_val), as_targets(y_val))
    if public.shape[1:] != form.shape[1:] or public.shape[0] < 1:
        raise ValueError(
            f"X_val must have the features of X, and at least one row; got shapes {public.shape} "
            f"and {form.shape}."
        )
    if (public.target_shape is None) != (form.target_shape is None):
        raise ValueError("y_val must be given with X_val if y is given, and only then.")

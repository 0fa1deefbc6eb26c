# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private searches over a grid or over random candidates.

Both check parameters, plan the runs from public facts, charge for all of them, run them, and
release the winner.
"""

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.validation import check_is_fitted, column_or_1d

from skdp._counted import check_groups, hidden_count, in_parts, resolve_groups, units_of_weight
from skdp._export import TwinMixin, to_sklearn
from skdp._gate import Doubts
from skdp._plan import PlanMixin
from skdp._rows.streams import as_stored
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    BaseSearchCV,
    HasMethods,
    Interval,
    StrOptions,
    columns_of_params,
    fit_context,
    resolve_classes,
)
from skdp._typing import Budget, Estimator, MatrixLike, Seed, VectorLike
from skdp.model_selection._row_scorer import (
    RowScorer,
    assumed_scorer,
    check_methods,
    resolve_scoring,
)
from skdp.model_selection._runs import (
    SearchedRows,
    all_configured,
    assumed_functions,
    check_grid,
    lacks_classes,
    plan_runs,
    refuse_public_rows,
    refuse_rows,
    refuse_what_is_no_number,
    released_total,
    run_search,
    stamp,
)
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.books.resume import refuse_resumable
from skdp.privacy.laws.search import Search
from skdp.privacy.laws.selection import STRATEGIES


class DPSearchCV(TwinMixin, PlanMixin, BaseSearchCV):
    """Base class of private searches; a subclass defines the candidates."""

    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        **{name: SHARED_CONSTRAINTS[name] for name in ("epsilon", "delta", "budget")},
        "estimator": [HasMethods(["fit", "get_params", "set_params"])],
        "strategy": [StrOptions({"auto", *STRATEGIES})],
        "n_repeats": [Interval(Integral, 1, None, closed="left"), None],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        # what they cannot be is said by `resolve_scoring`
        "scoring": [str, RowScorer, callable, list, tuple, set, dict, None],
        "refit": ["boolean"],
        "refit_share": [Interval(Real, 0, 1, closed="left")],
        "max_weight": SCALE_OR_NONE,
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
        groups: VectorLike | None = None,
        sample_weight: VectorLike | None = None,
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
        groups : array-like of shape (n_samples,), default=None
            Group of every row: numbers or text. All rows of a group are protected together. They
            all train or are all held out, every private step gets the groups, and the score of a
            group is the mean score of its rows. The number of groups is public. None protects
            rows. See :ref:`groups`.
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of rows, finite and not negative; only with `max_weight`, to which
            larger weights are clipped. Every private step gets the weights, and pays for their
            noisy total. Scores of held-out rows are weighted too; a twentieth of epsilon is for
            the total of all rows. See :ref:`sample_weight`.
        X_val, y_val : array-like, default=None
            PUBLIC rows and targets for the scores of the runs. They cost nothing, and no private
            row is held out. Each has weight 1.
        **params : dict
            Must be empty: other arguments of a fit would not be charged.

        Returns
        -------
        self : object
            Fitted search.

        Raises
        ------
        ValueError
            If a parameter or a candidate is unusable, a function in it visibly mixes rows, or X or
            X_val has NaN, text or dates that the estimator refuses; nothing was charged. If a run
            fails; everything was charged.
        BudgetError
            If less is left in a shared budget, or it protects groups and `groups` is None.
        """
        check_groups(self, groups)
        refuse_resumable(self)
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
        (n_rows, unit), whose = resolve_groups(groups, X, ordered=True)
        hidden, units = hidden_count(self), None
        if hidden is not None:
            units = in_parts(units_of_weight(sample_weight, X.shape[0], hidden.max_weight))
            sample_weight = hidden.max_weight * units
            if X_val is not None:
                # no private score, and no total to divide it by
                self.epsilon = hidden.epsilon
        # groups are planned for as so many rows
        planned = replace(form, shape=(n_rows, *form.shape[1:]))
        labels, assumptions = None, assumed_functions(models)
        if X_val is None:
            assumptions += assumed_scorer(scorer)
        if any(map(lacks_classes, models)):
            labels, _, _, told = resolve_classes(y, None)
            assumptions += told
        try:
            plan, adjacency, candidates, held_out = plan_runs(
                self, models, listed, labels, planned, X_val is not None, unit, hidden is not None
            )
        except ValueError:
            refuse_what_is_no_number(models, planned, X, y, whose)
            raise
        refuse_rows(models, X, y, whose, sample_weight)
        if X_val is not None:
            refuse_public_rows(candidates, planned, as_table(X_val))
        if self.verbose:
            print(f"[{type(self).__name__}] {plan.describe()}")
        total = None
        if hidden is not None and X_val is None:
            total = released_total(hidden, units, whose, adjacency, n_rows, unit)
        gate = Search(
            plan,
            n_rows=n_rows,
            held_out=held_out,
            adjacency=adjacency,
            random_state=self.random_state,
            purpose=type(self).__name__,
            budget=None if total else self.budget,
            assumptions=assumptions,
            unit=unit,
        )
        public = None if X_val is None else (as_table(X_val), as_targets(y_val))
        rows = SearchedRows(X, y, whose, sample_weight, units)
        outcome = run_search(gate, candidates, scorer, rows, public, self.n_jobs)
        doubts = Doubts(self)
        epsilon, delta = plan.spent
        # functions of what the winner has released; those of other runs are dropped with them
        for text in outcome.model.__dict__.pop("_doubts"):
            doubts.noise(f"of the best run, {text}")
        doubts.of_budget(n_rows, unit, epsilon, delta, assumptions)
        doubts.say()
        self.scorer_, self.n_splits_, self.plan_ = scorer, 1, plan
        self.ledger_, self.privacy_spent_ = Ledger.of(gate.ledger), plan.spent
        if total:
            self.ledger_ = hidden.before(self.ledger_)
            self.privacy_spent_ = self.ledger_.epsilon(delta), delta
        self.best_index_ = outcome.run * len(listed) // len(candidates)
        self.best_params_ = listed[self.best_index_]
        # rows that count less tell less: what they tell is divided by what they count
        scale = n_rows / total if total else 1.0
        self.best_score_ = released_score(outcome, scorer.bounds, plan.public_scores, scale)
        self.cv_results_ = results_of(listed, self.best_index_, self.best_score_, outcome.scores)
        for name in ("best_estimator_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if self.refit:
            stamp(outcome.model, self.ledger_, self.privacy_spent_)
            self.best_estimator_ = outcome.model
            if hasattr(outcome.model, "feature_names_in_"):
                self.feature_names_in_ = outcome.model.feature_names_in_
        return self

    def _check_parameters(self):
        """Raise a ValueError for incompatible parameters."""
        if self.n_jobs == 0:
            # joblib would say so when all has been charged
            raise ValueError("n_jobs must be None or an int other than 0; got 0.")
        if self.refit_share and not self.refit:
            raise ValueError(
                "refit_share must be 0 with refit=False, for no model is kept then; got "
                f"{self.refit_share!r}."
            )

    def _needs_targets(self, scorer):
        named = scorer is not self.scoring
        return named or get_tags(self.estimator).target_tags.required

    def score(
        self,
        X: MatrixLike,
        y: VectorLike | None = None,
        sample_weight: VectorLike | None = None,
    ) -> float:
        """Return the mean score of rows, by the scorer of the search.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. For private rows the score is private too, and not covered.
        y : array-like of shape (n_samples,), default=None
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows in the mean, not negative; None is 1 each.

        Returns
        -------
        score : float
            Within the bounds of the scorer.
        """
        if not self.refit:
            raise AttributeError("score is available only with refit=True.")
        check_is_fitted(self)
        given = as_table(X), as_targets(y)
        return self.scorer_(self.best_estimator_, *given, sample_weight=sample_weight)

    def _twin(self):
        if not self.refit:
            raise AttributeError("to_sklearn is available only with refit=True.")
        return to_sklearn(self.best_estimator_)

    def set_callbacks(self, *callbacks: object) -> Self:
        """Refuse callbacks: they would see results of runs that are not released.

        Parameters
        ----------
        *callbacks : callback instances
            Must be empty.

        Returns
        -------
        self : object
            The search itself, without callbacks.
        """
        if callbacks:
            raise TypeError("a private search takes no callbacks, which would watch its runs.")
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the requests of `fit`, which passes groups and weights on.

        Returns
        -------
        routing : MetadataRouter
            Router with the search as its only consumer.
        """
        return MetadataRouter(owner=self).add_self_request(self)


def refuse_fit_params(params):
    """Raise a ValueError for arguments of a fit other than rows and targets."""
    if params:
        raise ValueError(
            f"a private search fits rows, targets, groups and weights only; got {sorted(params)}. "
            "What else does to a fit would not be paid for."
        )


def check_public_rows(form, X_val, y_val):
    """Raise a ValueError unless public rows have the form of the private ones."""
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
    if public.kind == form.kind == "frame" and list(public.columns) != list(form.columns):
        raise ValueError("X_val must have the columns of X, in the same order.")
    if (public.target_shape is None) != (form.target_shape is None):
        raise ValueError("y_val must be given with X_val if y is given, and only then.")


class DPGridSearchCV(DPSearchCV):
    """Private search over a grid of parameter values, within one budget.

    The budget is for the whole search: all fits, the choice and the released score. The search
    sets epsilon and delta of every private step accordingly.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline of private steps and steps that learn nothing from rows.
    param_grid : dict or list of dict
        Names of parameters with their values; not epsilon, delta or budget.
    epsilon, delta : float, default=1.0, 1e-6
        Budget of the whole search: in nats, greater than 0, and in [0, 1). At delta 0 the search
        is purely private.
    strategy : {"auto", "all", "subset"}, default="auto"
        Every candidate is run `n_repeats` times, in a public order. With "all" the runs share the
        budget, and all of them count. With "subset" only a secret random subset of about a third
        of the runs counts. The best of these is released, and the budget of a run hardly depends
        on the number of runs. "auto" is "all" for up to six candidates or with ``n_repeats > 1``,
        and "subset" otherwise.
    n_repeats : int, default=None
        Number of runs per candidate; None is 1 for "all" and 2 for "subset". With a single
        candidate and "all", the search returns the best of several outputs of one private
        algorithm (boosting).
    validation_fraction : float, default=0.2
        Fraction of rows held out for scores, in (0, 1).
    scoring : {"accuracy", "neg_log_loss"}, RowScorer or None, default=None
        A bounded mean over rows. None is "accuracy" for classifiers; other estimators need a
        scorer. "neg_log_loss" clips probabilities at 0.001. Scorers of scikit-learn are refused:
        no bound is known on their change by one row.
    refit : bool, default=True
        Whether to keep the model of the best run as `best_estimator_`.
    refit_share : float, default=0.0
        Share of the budget, in [0, 1), for a second fit of the winner to all rows.
    max_weight : float, default=None
        Public bound on weights of rows, in [1e-50, 1e50]; larger weights are clipped to it. Steps
        without their own bound get it. None: `fit` takes no weights (:ref:`sample_weight`).
    n_jobs : int, default=None
        Number of processes for the fits.
    budget : PrivacyBudget, default=None
        A budget shared by several fits. The search is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the split, the runs and the noise from the operating system. A seed makes them
        reproducible, voids the guarantee towards anybody who knows it, and warns. In a seeded
        search, private steps get a fresh seed in every run; otherwise their noise is from the
        operating system. Their own seeds are ignored.
    verbose : int, default=0
        If not 0, prints the plan with the division of the budget, and nothing about the runs.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner. Its private steps have `ledger_` and `privacy_spent_` of the search, its true
        price. Absent with ``refit=False``.
    best_params_ : dict
        Parameters of the winner.
    best_index_ : int
        Its position among the candidates.
    best_score_ : float
        Its released mean score: noisy, within the bounds, and before a second fit.
    cv_results_ : dict of ndarrays
        ``params``, ``param_...``, ``mean_test_score`` and ``rank_test_score``. Only the score of
        the winner is released: the others are nan, with rank 2. With public validation rows and
        strategy "all", all scores are present.
    scorer_ : RowScorer
        Scorer of the runs.
    plan_ : SelectionPlan
        Division of the budget; public.
    ledger_ : Ledger
        The whole search, as one release.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent, never more than the budget.
    n_splits_ : int
        1: rows are split once.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.
    classes_ : ndarray of shape (n_classes,)
        Label set of the winner, if it is a classifier.

    See Also
    --------
    DPRandomizedSearchCV : Candidates drawn from distributions.
    RowScorer : Scores that a search can release.
    privacy_spent : What estimators have spent together.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, under the adjacency of the
    candidates. Public: all parameters, the number of rows or groups, the number and names of
    features, and the label set if the candidates have no `classes`. The number and order of runs
    are public too, the same for all seeds and all data, so its running time reveals no secret of
    the search itself. Secret: the runs that count for "subset", and all scores except the released
    one. The epsilon and delta of private steps only determine the ratio in which the steps of a
    pipeline share a run. Every fitted part must keep a ledger, or learn nothing from rows. Not
    covered: time and memory of single fits, exceptions on malformed input, and `score` on private
    data.

    With `n_repeats`, "all" is the boosting of [1]_, Appendix D: candidates are scored on held-out
    rows, and the costs of all runs are added up. "subset" is a private selection as in [2]_ and
    [3]_, but without their secret running time, similar to [5]_. Its price is in Proposition 71 of
    the :ref:`proofs <proofs_selection>`.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.
    .. [2] J. Liu and K. Talwar, "Private selection from private candidates", STOC 2019.
    .. [3] N. Papernot and T. Steinke, "Hyperparameter tuning with Renyi differential
       privacy", ICLR 2022.
    .. [4] A. Koskela, R. Redberg and Y.-X. Wang, "Privacy profiles for private selection",
       ICML 2024.
    .. [5] E. Cohen, X. Lyu, J. Nelson, T. Sarlos and U. Stemmer, "Generalized private selection
       and testing with high confidence", ITCS 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import minmax_scale
    >>> from skdp import DPGridSearchCV, DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(data_norm=3.0, classes=[0, 1])
    >>> grid = {"C": [0.01, 1.0], "data_norm": [3.0]}
    >>> search = DPGridSearchCV(model, grid, epsilon=4.0, random_state=0).fit(minmax_scale(X), y)
    >>> search.privacy_spent_[0] <= 4.0
    True
    >>> search.best_params_["data_norm"]
    3.0
    >>> search.best_estimator_.ledger_ is search.ledger_
    True
    """

    _parameter_constraints = {
        **DPSearchCV._parameter_constraints,
        "param_grid": [dict, list],
    }

    def __init__(
        self,
        estimator: Estimator,
        param_grid: dict[str, Any] | list[dict[str, Any]],
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        strategy: Literal["auto", "all", "subset"] = "auto",
        n_repeats: int | None = None,
        validation_fraction: float = 0.2,
        scoring: Literal["accuracy", "neg_log_loss"] | RowScorer | None = None,
        refit: bool = True,
        refit_share: float = 0.0,
        max_weight: float | None = None,
        n_jobs: int | None = None,
        budget: Budget = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.strategy = strategy
        self.n_repeats = n_repeats
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.refit = refit
        self.refit_share = refit_share
        self.max_weight = max_weight
        self.n_jobs = n_jobs
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    def _params_of_candidates(self):
        check_grid(self.param_grid)
        if not self.param_grid and (self.n_repeats or 1) == 1:
            raise ValueError(
                f"param_grid is empty, there is nothing to choose; got {self.param_grid!r}."
            )
        return list(ParameterGrid(self.param_grid))


class DPRandomizedSearchCV(DPSearchCV):
    """Private search over random parameter values, within one budget.

    The candidates are drawn first, independently of the data. The budget is for the whole search:
    all fits, the choice and the released score. The search sets epsilon and delta of every private
    step accordingly.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline of private steps and steps that learn nothing from rows.
    param_distributions : dict or list of dict
        Names of parameters with distributions (with a method ``rvs``) or lists of values; not
        epsilon, delta or budget.
    n_iter : int, default=10
        Number of candidates.
    epsilon, delta : float, default=1.0, 1e-6
        Budget of the whole search: in nats, greater than 0, and in [0, 1). At delta 0 the search
        is purely private.
    strategy : {"auto", "all", "subset"}, default="auto"
        Every candidate is run `n_repeats` times, in a public order. With "all" the runs share the
        budget, and all of them count. With "subset" only a secret random subset of about a third
        of the runs counts. The best of these is released, and the budget of a run hardly depends
        on the number of runs. "auto" is "all" for up to six candidates or with ``n_repeats > 1``,
        and "subset" otherwise.
    n_repeats : int, default=None
        Number of runs per candidate; None is 1 for "all" and 2 for "subset". With a single
        candidate and "all", the search returns the best of several outputs of one private
        algorithm (boosting).
    validation_fraction : float, default=0.2
        Fraction of rows held out for scores, in (0, 1).
    scoring : {"accuracy", "neg_log_loss"}, RowScorer or None, default=None
        A bounded mean over rows. None is "accuracy" for classifiers; other estimators need a
        scorer. "neg_log_loss" clips probabilities at 0.001. Scorers of scikit-learn are refused:
        no bound is known on their change by one row.
    refit : bool, default=True
        Whether to keep the model of the best run as `best_estimator_`.
    refit_share : float, default=0.0
        Share of the budget, in [0, 1), for a second fit of the winner to all rows.
    max_weight : float, default=None
        Public bound on weights of rows, in [1e-50, 1e50]; larger weights are clipped to it. Steps
        without their own bound get it. None: `fit` takes no weights (:ref:`sample_weight`).
    n_jobs : int, default=None
        Number of processes for the fits.
    budget : PrivacyBudget, default=None
        A budget shared by several fits. The search is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the split, the runs and the noise from the operating system, and candidates as
        scikit-learn does. A seed makes them reproducible, voids the guarantee towards anybody who
        knows it, and warns. In a seeded search, private steps get a fresh seed in every run;
        otherwise their noise is from the operating system. Their own seeds are ignored.
    verbose : int, default=0
        If not 0, prints the plan with the division of the budget, and nothing about the runs.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner. Its private steps have `ledger_` and `privacy_spent_` of the search, its true
        price. Absent with ``refit=False``.
    best_params_ : dict
        Parameters of the winner.
    best_index_ : int
        Its position among the candidates.
    best_score_ : float
        Its released mean score: noisy, within the bounds, and before a second fit.
    cv_results_ : dict of ndarrays
        ``params``, ``param_...``, ``mean_test_score`` and ``rank_test_score``. Only the score of
        the winner is released: the others are nan, with rank 2. With public validation rows and
        strategy "all", all scores are present.
    scorer_ : RowScorer
        Scorer of the runs.
    plan_ : SelectionPlan
        Division of the budget; public.
    ledger_ : Ledger
        The whole search, as one release.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent, never more than the budget.
    n_splits_ : int
        1: rows are split once.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.
    classes_ : ndarray of shape (n_classes,)
        Label set of the winner, if it is a classifier.

    See Also
    --------
    DPGridSearchCV : All combinations of given values.
    RowScorer : Scores that a search can release.
    privacy_spent : What estimators have spent together.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, under the adjacency of the
    candidates. Public: all parameters, the number of rows or groups, the number and names of
    features, and the label set if the candidates have no `classes`. The number and order of runs
    are public too, the same for all seeds and all data, so its running time reveals no secret of
    the search itself. Secret: the runs that count for "subset", and all scores except the released
    one. The epsilon and delta of private steps only determine the ratio in which the steps of a
    pipeline share a run. Every fitted part must keep a ledger, or learn nothing from rows. Not
    covered: time and memory of single fits, exceptions on malformed input, and `score` on private
    data.

    With `n_repeats`, "all" is the boosting of [1]_, Appendix D: candidates are scored on held-out
    rows, and the costs of all runs are added up. "subset" is a private selection as in [2]_ and
    [3]_, but without their secret running time, similar to [5]_. Its price is in Proposition 71 of
    the :ref:`proofs <proofs_selection>`.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.
    .. [2] J. Liu and K. Talwar, "Private selection from private candidates", STOC 2019.
    .. [3] N. Papernot and T. Steinke, "Hyperparameter tuning with Renyi differential
       privacy", ICLR 2022.
    .. [4] A. Koskela, R. Redberg and Y.-X. Wang, "Privacy profiles for private selection",
       ICML 2024.
    .. [5] E. Cohen, X. Lyu, J. Nelson, T. Sarlos and U. Stemmer, "Generalized private selection
       and testing with high confidence", ITCS 2023.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import minmax_scale
    >>> from skdp import DPLogisticRegression, DPRandomizedSearchCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = DPRandomizedSearchCV(
    ...     DPLogisticRegression(data_norm=3.0, classes=[0, 1]),
    ...     {"C": loguniform(1e-2, 1e2)},
    ...     n_iter=8,
    ...     epsilon=4.0,
    ...     random_state=0,
    ... ).fit(minmax_scale(X), y)
    >>> search.plan_.strategy, search.plan_.n_candidates
    ('subset', 16)
    >>> bool(1e-2 <= search.best_params_["C"] <= 1e2)
    True
    """

    _parameter_constraints = {
        **DPSearchCV._parameter_constraints,
        "param_distributions": [dict, list],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Estimator,
        param_distributions: dict[str, Any] | list[dict[str, Any]],
        n_iter: int = 10,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        strategy: Literal["auto", "all", "subset"] = "auto",
        n_repeats: int | None = None,
        validation_fraction: float = 0.2,
        scoring: Literal["accuracy", "neg_log_loss"] | RowScorer | None = None,
        refit: bool = True,
        refit_share: float = 0.0,
        max_weight: float | None = None,
        n_jobs: int | None = None,
        budget: Budget = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.strategy = strategy
        self.n_repeats = n_repeats
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.refit = refit
        self.refit_share = refit_share
        self.max_weight = max_weight
        self.n_jobs = n_jobs
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    def _params_of_candidates(self):
        check_grid(self.param_distributions)
        if not self.param_distributions:
            raise ValueError(
                "param_distributions is empty, there is nothing to choose; got "
                f"{self.param_distributions!r}."
            )
        return list(
            ParameterSampler(self.param_distributions, self.n_iter, random_state=self.random_state)
        )


# The table of results.


def released_score(outcome, bounds, exact, scale=1.0):
    """Return the score of the winner in its own units, within its bounds.

    Parameters
    ----------
    outcome : Outcome
        Releases of the search.
    bounds : tuple of (float, float)
        Public.
    exact : bool
        Whether the score is from public rows, and already in its own units.
    scale : float, default=1.0
        Number of rows over their released total weight.

    Returns
    -------
    score : float
        In [low, high].
    """
    low, high = bounds
    if exact:
        return outcome.score
    share = min(max(scale * outcome.score + 0.5, 0.0), 1.0)
    return low * (1 - share) + high * share


def results_of(listed, best, score, scores):
    """Return the table of results.

    Parameters
    ----------
    listed : list of dict
        Parameters of the candidates.
    best : int
        The winner.
    score : float
        Its released score.
    scores : ndarray or None
        Scores of all runs on public rows; repeats of a candidate are adjacent.

    Returns
    -------
    results : dict
        With ``params``, a masked array ``param_...`` for every parameter, ``mean_test_score`` (of
        the best repeat; nan without a release) and ``rank_test_score``.
    """
    if scores is None:
        mean, rank = np.full(len(listed), np.nan), np.full(len(listed), 2, dtype=np.int32)
        mean[best], rank[best] = score, 1
    else:
        mean = np.reshape(scores, (len(listed), -1)).max(axis=1)
        rank = (1 + (mean[:, None] < mean).sum(axis=1)).astype(np.int32)
    results = columns_of_params(listed)
    return {**results, "params": listed, "mean_test_score": mean, "rank_test_score": rank}


# The form of a data set, which is public, and null rows of that form.


def as_table(X):
    """Return X itself if it has a shape, otherwise an array; CSR for sparse matrices."""
    if sparse.issparse(X):
        return X.tocsr()
    if hasattr(X, "shape") and (hasattr(X, "dtype") or hasattr(X, "columns")):
        return X
    made = np.asarray(X)
    # the type of a list is that of its entries: one of them is not to decide what columns are
    if isinstance(X, list | tuple) and made.dtype.kind in "biuf":
        return made.astype(np.float64)
    if isinstance(X, list | tuple):
        raise ValueError(
            "X must be a list of numbers, an array or a data frame: a list has no types of "
            "columns. Pass np.array(X, dtype=object) for columns of text."
        )
    return made


def as_targets(y):
    """Return y as an array, a single column flattened with a warning; None stays None."""
    if y is None:
        return None
    y = as_stored(y)
    return column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y


@dataclass(frozen=True)
class Form:
    """Public facts about rows and targets: their number and kind.

    Parameters
    ----------
    shape : tuple of int
        Of X.
    kind : {"array", "text", "sparse", "frame"}
        Container of the rows.
    columns : object
        Empty data frame with the columns of X, or an empty sparse matrix; otherwise None.
    target_shape : tuple of int or None
        Shape of y; None without targets.
    """

    shape: tuple[int, ...]
    kind: str
    columns: Any
    target_shape: tuple[int, ...] | None

    def of_numbers(self):
        """Return the form of an array of numbers with as many rows and features."""
        return replace(self, kind="array", columns=None)

    def null_rows(self, n_rows):
        """Return rows of zeros, or of empty text in columns without numbers.

        Parameters
        ----------
        n_rows : int
            How many.

        Returns
        -------
        X : ndarray, CSR matrix or data frame
            Rows that depend on the form only.
        """
        shape = (n_rows, *self.shape[1:])
        if self.kind == "sparse":
            return type(self.columns)(shape, dtype=self.columns.dtype)
        if self.kind == "frame":
            return _null_frame(self.columns, n_rows)
        return np.broadcast_to("" if self.kind == "text" else 0.0, shape)

    def null_targets(self, n_rows, labels):
        """Return labels in turn, or zeros without labels.

        Parameters
        ----------
        n_rows : int
            How many.
        labels : ndarray or None
            Public label set.

        Returns
        -------
        y : ndarray or None
            Targets, or None without targets.
        """
        if self.target_shape is None:
            return None
        if labels is not None:
            column = labels[np.arange(n_rows) % len(labels)]
            # of a wrong shape, too, so that it is refused before anything is charged
            further = self.target_shape[1:]
            return np.broadcast_to(column.reshape(-1, *[1] * len(further)), (n_rows, *further))
        return np.zeros((n_rows, *self.target_shape[1:]))


def public_form(X, y):
    """Return the form of a data set.

    Parameters
    ----------
    X, y : array-like
        Results of `as_table` and `as_targets`.

    Returns
    -------
    form : Form
        Form, independent of all values.

    Raises
    ------
    ValueError
        If X and y have different lengths.
    """
    shape = tuple(int(side) for side in X.shape)
    kind, columns = "array", None
    if sparse.issparse(X):
        kind, columns = "sparse", type(X)((0, shape[1]), dtype=X.dtype)
    elif hasattr(X, "columns"):
        kind, columns = "frame", X[:0]
    elif X.dtype.kind in "US":
        kind = "text"
    target_shape = None
    if y is not None:
        target_shape = tuple(y.shape)
        if len(target_shape) == 0 or not shape or target_shape[0] != shape[0]:
            raise ValueError(
                "X and y must have the same number of rows; got shapes "
                f"{shape} and {target_shape}. Found input variables with inconsistent numbers "
                "of samples."
            )
    return Form(shape, kind, columns, target_shape)


def _null_frame(columns, n_rows):
    """Return a data frame of null rows, pandas or polars."""
    numeric = [_is_numeric(columns.dtypes, place) for place in range(columns.shape[1])]
    if hasattr(columns, "iloc"):
        import pandas as pd

        parts = []
        for place, number in enumerate(numeric):
            column = columns.iloc[:, place]
            zero = 0 if number else _first_category(column.dtype)
            parts.append(pd.Series([zero] * n_rows, dtype=column.dtype))
        made = pd.concat(parts, axis=1) if parts else pd.DataFrame(index=range(n_rows))
        made.columns = columns.columns
        return made
    values = {
        name: np.zeros(n_rows) if number else [_null_value(dtype)] * n_rows
        for (name, dtype), number in zip(columns.schema.items(), numeric, strict=True)
    }
    return type(columns)(values, schema=columns.schema)


def _null_value(dtype):
    return None if str(dtype).lower().startswith(("date", "duration", "enum")) else ""


def _first_category(dtype):
    known = getattr(dtype, "categories", None)
    return "" if known is None or not len(known) else known[0]


def _is_numeric(dtypes, place):
    dtype = dtypes.iloc[place] if hasattr(dtypes, "iloc") else dtypes[place]
    text = str(dtype).lower()
    return text.startswith(("int", "uint", "float", "bool", "decimal"))

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private search over parameter values that are drawn from distributions."""

from numbers import Integral
from typing import Any, Literal

from sklearn.model_selection import ParameterSampler

from skdp._sklearn import Interval
from skdp._typing import Budget, Estimator, Seed
from skdp.model_selection._base import DPSearchCV
from skdp.model_selection._leaves import check_grid
from skdp.model_selection._row_scorer import RowScorer


class DPRandomizedSearchCV(DPSearchCV):
    """Search over drawn parameter values that pays for itself.

    The candidates are drawn first, without a look at the data. The budget belongs to the whole
    search: all fits, the choice between them and the released score. The search sets epsilon
    and delta of every private step accordingly.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline of private steps and steps that learn nothing.
    param_distributions : dict or list of dict
        Names of parameters, and distributions (with a method ``rvs``) or lists of values; not
        epsilon, delta or budget.
    n_iter : int, default=10
        Number of candidates.
    epsilon, delta : float, default=1.0, 1e-6
        Budget of the whole search: in nats, greater than 0, and in [0, 1). At delta 0 all of
        it is purely private.
    strategy : {"auto", "all", "logarithmic", "geometric", "poisson"}, default="auto"
        "all": every candidate is fitted once, and the runs share the budget. The others: a
        secret random number of runs, each of a candidate drawn at random; only the best run is
        released, and every run may spend a part of the budget that hardly depends on how many
        are expected. "poisson" may have no run at all. "auto" is "all" for up to six
        candidates, and "geometric" for more.
    expected_runs : float, default=None
        Mean of the random number of runs, at least 1; None is twice the number of candidates.
    n_repeats : int, default=1
        How often "all" runs every candidate. With one candidate this is the boosting of a
        private algorithm: the best of several outputs.
    validation_fraction : float, default=0.2
        Part of the rows, in (0, 1), that trains nothing and scores the runs.
    scoring : {"accuracy", "neg_log_loss"}, RowScorer or None, default=None
        A mean over rows of a bounded number. None is "accuracy" for classifiers; others must
        say. "neg_log_loss" counts probabilities below 0.001 as 0.001. Scorers of scikit-learn
        are refused: nobody knows how far one row moves them.
    refit : bool, default=True
        Whether to keep the model of the best run as `best_estimator_`.
    refit_share : float, default=0.0
        Part of the budget, in [0, 1), for fitting the winner again on all rows.
    n_jobs : int, default=None
        Number of processes for the fits.
    budget : PrivacyBudget, default=None
        A budget that several fits share: the search is charged (epsilon, delta) before it
        reads a row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws the split, the runs and the noise from the operating system, and candidates as
        scikit-learn does. A
        seed makes them reproducible, voids the guarantee towards whoever knows it, and warns.
        Private steps with a seed get a fresh one in every run of a seeded search, and noise
        from the operating system otherwise.
    verbose : int, default=0
        If not 0, the plan is printed: what is spent on what, and nothing of the runs.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner. Its private steps have `ledger_` and `privacy_spent_` of the search: that is
        what it costs. Absent with ``refit=False``.
    best_params_ : dict
        Parameters of the winner.
    best_index_ : int
        Its position among the candidates.
    best_score_ : float
        Its mean score as released, with noise, within the bounds; before the second fit if
        there is one. nan if "poisson" had no run: the winner was fitted to rows of zeros then.
    cv_results_ : dict of ndarrays
        ``params``, ``param_...``, ``mean_test_score`` and ``rank_test_score``. All scores but
        that of the winner are nan, and all other ranks 2: they are not released. Public
        validation rows and strategy "all" give all scores.
    scorer_ : RowScorer
        What scored the runs.
    plan_ : SelectionPlan
        What was spent on what; public.
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
    Privacy. One row is protected: the adjacency is that of the candidates. Public are all
    parameters, the number of rows, features and their names, and the label set if the
    candidates are not given `classes`. The number of runs of a random strategy is secret, and
    so are their order and scores; do not publish how long a search took. The epsilon and delta
    of private steps only say in which ratio the steps of a pipeline share a run. That "all"
    repeats every candidate `n_repeats` times is the boosting of [1]_, Appendix D, where
    candidates must be scored on rows of their own, with what they cost added up; random
    numbers of runs are those of [2]_ and [3]_. Every part that is fitted must keep a ledger, or
    learn nothing from rows. Timing, memory, exceptions from malformed input and `score` on
    private data are not covered.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.
    .. [2] J. Liu and K. Talwar, "Private selection from private candidates", STOC 2019.
    .. [3] N. Papernot and T. Steinke, "Hyperparameter tuning with Renyi differential
       privacy", ICLR 2022.
    .. [4] A. Koskela, R. Redberg and Y.-X. Wang, "Privacy profiles for private selection",
       ICML 2024.

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
    >>> search.plan_.strategy
    'geometric'
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
        strategy: Literal["auto", "all", "logarithmic", "geometric", "poisson"] = "auto",
        expected_runs: float | None = None,
        n_repeats: int = 1,
        validation_fraction: float = 0.2,
        scoring: Literal["accuracy", "neg_log_loss"] | RowScorer | None = None,
        refit: bool = True,
        refit_share: float = 0.0,
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
        self.expected_runs = expected_runs
        self.n_repeats = n_repeats
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.refit = refit
        self.refit_share = refit_share
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

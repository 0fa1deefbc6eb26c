# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Trusted types for loading models of skdp with skops."""

from skdp.privacy.books.texts import a_kind

_ESTIMATORS = (
    "skdp.federated._logistic.FederatedDPLogisticRegression",
    "skdp.linear_model._classifiers.DPHingeSVM",
    "skdp.linear_model._kernel_classifier.DPKernelClassifier",
    "skdp.linear_model._kernel_classifier.Folds",
    "skdp.linear_model._kernel_classifier.Hats",
    "skdp.linear_model._kernel_classifier.Waves",
    "skdp.linear_model._kernel_regressor.DPKernelRegressor",
    "skdp.linear_model._kernel_regressor.WithColumns",
    "skdp.linear_model._classifiers.DPLogisticRegression",
    "skdp.linear_model._lp_regressor.DPLpRegressor",
    "skdp.local._covariance.LocalDPCovariance",
    "skdp.local._frequencies.LocalDPFrequencies",
    "skdp.local._linear_regression.LocalDPLinearRegression",
    "skdp.local._logistic.LocalDPLogisticRegression",
    "skdp.local._mean.LocalDPMean",
    "skdp.local._covariance.LocalDPPCA",
    "skdp.local._privatizers.PrivUnitPrivatizer",
    "skdp.local._privatizers.ScalarPrivatizer",
    "skdp.location._heavy_tailed_mean.DPHeavyTailedMean",
    "skdp.location._histogram.DPHistogram",
    "skdp.location._mean.DPMean",
    "skdp.location._median.DPMedian",
    "skdp.location._norm_quantile.DPNormQuantile",
    "skdp.location._quantile.DPQuantile",
    "skdp.location._sparse_mean.DPSparseMeanEstimator",
    "skdp.model_selection._search.DPGridSearchCV",
    "skdp.model_selection._search.DPRandomizedSearchCV",
    "skdp.moments._covariance.DPCovariance",
    "skdp.moments._covariance.DPPCA",
    "skdp.moments._ridge.DPRidge",
    "skdp.preprocessing._public.BoundedScaler",
    "skdp.preprocessing._feature_centerer.DPFeatureCenterer",
    "skdp.preprocessing._frequent_features.DPFrequentFeatures",
    "skdp.preprocessing._public.NormClipper",
    "skdp.preprocessing._public.RandomFourierFeatures",
    "skdp.preprocessing._standard_scaler.DPStandardScaler",
    "skdp.preprocessing._table.Column",
    "skdp.preprocessing._table.DPTableVectorizer",
)
# how linear models are fitted
_SOLVERS = (
    "skdp.papers.accelerated_one_pass.AcceleratedOnePass",
    "skdp.papers.bias_reduced.BiasReduced",
    "skdp.papers.feature_preprocessing.FeaturePreprocessing",
    "skdp.papers.exponential.FiniteNet",
    "skdp.papers.localized.Localized",
    "skdp.papers.one_pass.OnePass",
    "skdp.solvers.base.Solver",
    "skdp.solvers.exponential.ExactDraw",
    "skdp.solvers.frank_wolfe.FrankWolfe",
    "skdp.solvers.gradient.Accelerated",
    "skdp.solvers.gradient.GD",
    "skdp.solvers.lazy_sgd.LazySGD",
    "skdp.solvers.objective.Objective",
    "skdp.solvers.output.Output",
    "skdp.solvers.phased.Phased",
    "skdp.solvers.preconditioned.Preconditioned",
    "skdp.solvers.sgd.SGD",
)
_LEDGERS = (
    "skdp.privacy.books.ledger.Ledger",
    "skdp.privacy.books.spent.Before",
    "skdp.privacy.books.spent.FitNote",
    "skdp.privacy.books.spent.NotCovered",
    "skdp.privacy.kernel.batches.Sampling",
    "skdp.privacy.kernel.ledger.Release",
    "skdp.privacy.kernel.mechanisms.Noise",
    "skdp.privacy.kernel.mechanisms.Price",
    "skdp.privacy.laws.exponential.DrawnNoise",
    "skdp.privacy.laws.histogram.SparseSensitivity",
    "skdp.privacy.laws.histogram.ThresholdNoise",
    "skdp.privacy.laws.k_norm.KNormNoise",
    "skdp.privacy.laws.shared_noise.SharedNoise",
    "skdp.privacy.laws.local_reports.ReportNoise",
    "skdp.privacy.laws.objective.Influence",
    "skdp.privacy.laws.objective.LinearTerm",
)
# how a search was planned and scored
_SEARCHES = (
    "skdp.model_selection._row_scorer.RowScorer",
    "skdp.model_selection._row_scorer.accuracy",
    "skdp.model_selection._row_scorer.neg_log_loss",
    "skdp.privacy.laws.search.DeclaredTotal",
    "skdp.privacy.laws.search.Winner",
    "skdp.privacy.laws.selection.SecretSubset",
    "skdp.privacy.laws.selection.SelectionPlan",
)
# how the rows of skdp.local report
_RANDOMISERS = (
    "skdp._rows.base.Box",
    "skdp.local.randomisers.privunit.PrivUnitG",
    "skdp.local.randomisers.cube.PrivUnitCube",
    "skdp.local.randomisers.privunit.PrivUnit",
    "skdp.local.randomisers.projunit.ProjUnit",
    "skdp.local.randomisers.grid.EntrywiseGrid",
    "skdp.local.randomisers.grid.ScalarGrid",
    "skdp.local.randomisers.ball.Flip",
    "skdp.local.randomisers.ball.Lift",
    "skdp.local.randomisers.ball.Product",
    "skdp.local.randomisers.subsets.CategorySubsets",
    "skdp.local._clients.RunningLedger",
    "skdp.local._logistic.LocalDescent",
    "skdp.local._logistic.LocalSgdPlan",
    "skdp.local._row_domains.BallDomain",
    "skdp.local._row_domains.BoxDomain",
)
# objects among the parameters of an estimator
_PARAMETERS = (
    "skdp.federated._averaging.FederatedAveraging",
    "skdp.federated._averaging.GradientSteps",
    "skdp.federated._averaging.Population",
    "skdp.federated._averaging.ProximalPoint",
    "skdp.local._ball_randomiser.BallRandomiser",
)
# what a mean is with sparse_output=True, and the units of columns that were found
_OTHERS = ("scipy.sparse._csr.csr_array", "skdp._rows.linear.StandardColumns")
# a model that has one leads to a file of its own
_BUDGETS = (
    "fractions.Fraction",
    "skdp.privacy.books.budget.PrivacyBudget",
    "skdp.privacy.books.postgres.PostgresStore",
    "skdp.privacy.books.store.BudgetTerms",
    "skdp.privacy.books.store.Chain",
    "skdp.privacy.books.store.FileStore",
    "skdp.privacy.books.store.Seen",
)


def trusted_types(*, budget: bool = False) -> list[str]:
    """Return the trusted types for loading a model of skdp with skops.

    Parameters
    ----------
    budget : bool, default=False
        Whether a `PrivacyBudget` is trusted too. A model with a budget names the file or database
        of the budget, and its next fit writes there. Use True only if you know that place.

    Returns
    -------
    names : list of str
        For the argument `trusted` of ``skops.io.load``. Loading these types runs only code of skdp
        and scipy. Add the types of steps from other libraries, and of other objects among the
        parameters of a model.

    Raises
    ------
    TypeError
        If `budget` is not a bool.

    See Also
    --------
    privacy_card : What a model promises, for a file beside it.

    Notes
    -----
    The list is for this version, for fitted and unfitted estimators. It promises that loading a
    file runs no foreign code, and not that its contents are true: the writer of a file can put any
    ledger into it.

    Examples
    --------
    >>> from skdp import DPMean, trusted_types
    >>> "skdp.privacy.books.ledger.Ledger" in trusted_types()
    True

    With skops::

        skops.io.dump(model, "model.skops")
        model = skops.io.load("model.skops", trusted=trusted_types())
    """
    if not isinstance(budget, bool):
        raise TypeError(f"budget must be True or False; got {a_kind(budget)}.")
    ours = (_ESTIMATORS, _SOLVERS, _LEDGERS, _SEARCHES, _RANDOMISERS, _PARAMETERS, _OTHERS)
    return [name for names in (*ours, _BUDGETS if budget else ()) for name in names]

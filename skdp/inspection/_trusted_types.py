# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What must be trusted to load a model of skdp from a file of skops."""

_ESTIMATORS = (
    "skdp.federated._logistic.FederatedDPLogisticRegression",
    "skdp.linear_model._hinge.DPHingeSVM",
    "skdp.linear_model._logistic.DPLogisticRegression",
    "skdp.linear_model._lp_regressor.DPLpRegressor",
    "skdp.local._covariance.LocalDPCovariance",
    "skdp.local._linear_regression.LocalDPLinearRegression",
    "skdp.local._logistic.LocalDPLogisticRegression",
    "skdp.local._mean.LocalDPMean",
    "skdp.local._pca.LocalDPPCA",
    "skdp.local._privatizer.PrivUnitPrivatizer",
    "skdp.local._scalar_privatizer.ScalarPrivatizer",
    "skdp.location._heavy_tailed_mean.DPHeavyTailedMean",
    "skdp.location._mean.DPMean",
    "skdp.location._median.DPMedian",
    "skdp.location._norm_quantile.DPNormQuantile",
    "skdp.location._quantile.DPQuantile",
    "skdp.location._sparse_mean.DPSparseMeanEstimator",
    "skdp.model_selection._grid.DPGridSearchCV",
    "skdp.model_selection._randomized.DPRandomizedSearchCV",
    "skdp.preprocessing._bounded_scaler.BoundedScaler",
    "skdp.preprocessing._feature_centerer.DPFeatureCenterer",
    "skdp.preprocessing._frequent_features.DPFrequentFeatures",
    "skdp.preprocessing._norm_clipper.NormClipper",
    "skdp.preprocessing._standard_scaler.DPStandardScaler",
)
_LEDGERS = (
    "skdp.privacy._ledger.Ledger",
    "skdp.privacy._mechanisms.Noise",
    "skdp.privacy._release.Release",
    "skdp.privacy._sampling.Sampling",
)
# how a search was planned and scored
_SEARCHES = (
    "skdp.model_selection._row_scorer.RowScorer",
    "skdp.model_selection._row_scorer.accuracy",
    "skdp.model_selection._row_scorer.neg_log_loss",
    "skdp.privacy._release.Winner",
    "skdp.privacy._repetitions.Repetitions",
    "skdp.privacy._selection.SelectionPlan",
)
# how the rows of skdp.local report
_RANDOMISERS = (
    "skdp._domains.Box",
    "skdp._randomisers._gaussian_privunit.PrivUnitG",
    "skdp._randomisers._hypercube.PrivUnitCube",
    "skdp._randomisers._privunit.PrivUnit",
    "skdp._randomisers._projection.ProjUnit",
    "skdp._randomisers._scalar_grid.EntrywiseGrid",
    "skdp._randomisers._scalar_grid.ScalarGrid",
    "skdp._randomisers._vectors.Flip",
    "skdp._randomisers._vectors.Lift",
    "skdp._randomisers._vectors.Product",
    "skdp.local._account.Account",
    "skdp.local._row_domains.BallDomain",
    "skdp.local._row_domains.BoxDomain",
)
# what a mean is with sparse_output=True
_OTHERS = ("scipy.sparse._csr.csr_array",)
# a model that has one leads to a file of its own
_BUDGETS = (
    "fractions.Fraction",
    "skdp.privacy._budget.PrivacyBudget",
    "skdp.privacy._budget_rules.Terms",
    "skdp.privacy._budget_store.FileStore",
)


def trusted_types(*, budget: bool = False) -> list[str]:
    """Return the types to trust when a model of skdp is loaded with skops.

    Parameters
    ----------
    budget : bool, default=False
        Whether a `PrivacyBudget` is trusted too. A model that has one names the file of the
        budget, and its next fit writes there: ask for it only if you know where that is.

    Returns
    -------
    names : list of str
        For the argument `trusted` of ``skops.io.load``. To load them runs no code but that of skdp
        and scipy. Steps of other libraries have to be added, and so has
        whatever else the parameters of a model hold.

    Raises
    ------
    TypeError
        If `budget` is anything else.

    See Also
    --------
    privacy_card : What a model promises, for a file beside it.

    Notes
    -----
    The list is that of this version, and covers fitted and unfitted estimators alike. It says
    that nothing happens when a file is opened, and not that its contents are true: whoever
    writes a file can write any ledger into it.

    Examples
    --------
    >>> from skdp import DPMean, trusted_types
    >>> "skdp.privacy._ledger.Ledger" in trusted_types()
    True

    With skops::

        skops.io.dump(model, "model.skops")
        model = skops.io.load("model.skops", trusted=trusted_types())
    """
    if not isinstance(budget, bool):
        raise TypeError(f"budget must be True or False; got a {type(budget).__name__}.")
    ours = (_ESTIMATORS, _LEDGERS, _SEARCHES, _RANDOMISERS, _OTHERS)
    return [name for names in (*ours, _BUDGETS if budget else ()) for name in names]

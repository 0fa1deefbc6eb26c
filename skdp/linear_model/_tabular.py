# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A pipeline from a table to a private linear model, and the split of its budget."""

import math
from typing import Any, Literal

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdp._typing import Adjacency, ArrayLike, Budget, Estimator, Seed
from skdp.linear_model._classifiers import DPLogisticRegression
from skdp.linear_model._lp_regressor import DPLpRegressor
from skdp.preprocessing._table import DPTableVectorizer
from skdp.privacy.books.texts import a_kind
from skdp.privacy.kernel.accounting import check_delta, check_epsilon, gdp_epsilon
from skdp.privacy.laws.calibration import gdp_mu

#: what the last step is by its word
_MODELS = {"classifier": DPLogisticRegression, "regressor": DPLpRegressor}
# what is known to spend all of its budget on Gaussian noise
_GAUSSIAN = ("auto", "gradient")


def dp_tabular_pipeline(
    estimator: Literal["classifier", "regressor"] | Estimator,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    classes: ArrayLike | None = None,
    bounds: dict[Any, Any] | None = None,
    categories: dict[Any, Any] | None = None,
    table_share: float = 0.1,
    adjacency: Adjacency = "replace-one",
    max_weight: float | None = None,
    budget: Budget = None,
    random_state: Seed = None,
) -> Pipeline:
    """Return a pipeline for raw tables, with one budget.

    Its steps are a `DPTableVectorizer` and a private linear model. The first bounds the rows, so
    the second clips none. Numbers have squares or, with enough rows and budget, functions between
    knots as nonlinear features.

    Parameters
    ----------
    estimator : {"classifier", "regressor"} or estimator
        The model: `DPLogisticRegression`, `DPLpRegressor`, or an estimator of this library with
        parameters epsilon, delta and adjacency. A copy of it is used, with the parameters named
        here; a `budget` of its own is refused.
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0, of both steps together.
    delta : float, default=1e-6
        Privacy budget in (0, 1), of both steps together; well below 1 / n_samples.
    classes : array-like of shape (n_classes,), default=None
        Public label set of a classifier. None reads it from the labels, and the ledger says so.
    bounds, categories : dict, default=None
        What is public about columns, as in `DPTableVectorizer`.
    table_share : float, default=0.1
        Share of the squared Gaussian-DP budget for the vectorizer, in [0, 1). 0 is for tables with
        public facts about all columns: the model gets everything, and a column without `bounds` or
        `categories`, other than a flag, is refused.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Adjacency of both steps.
    max_weight : float, default=None
        Public bound on weights of rows, for both steps; None has no weights (:ref:`sample_weight`).
    budget : PrivacyBudget, default=None
        A budget that both steps are charged to. With ``composition="sum"`` epsilons add up: then
        the sum of the parts is `epsilon`, and the total is less.
    random_state : int, RandomState instance or None, default=None
        For both steps. None draws the noise from the operating system.

    Returns
    -------
    pipeline : Pipeline
        Of scikit-learn, not fitted, with steps "table" and "model". ``privacy_spent(pipeline)`` is
        (epsilon, delta) after a fit, unless nothing was left to release for the vectorizer.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range.

    See Also
    --------
    DPTableVectorizer : The encoding of the columns.
    privacy_spent : The total of a fitted pipeline.

    Notes
    -----
    With Gaussian noise the squares of Gaussian-DP parameters add up, and deltas do. So shares are
    of the square, and of delta: at 0.1 and epsilon 1 the steps have 0.33 and 0.95. Where the model
    is not known to have Gaussian noise alone, the parts are in the ratio of the roots of the
    shares, and their sum is `epsilon`.

    The default share was chosen on nine tables, at epsilon 1: from 0.07 to 0.15 results agree
    within noise; with less, words are lost in large tables and scales in small ones, and above
    0.2 the model is worse in small tables.

    Groups. ``pipeline.fit(X, y, table__groups=ids, model__groups=ids)`` protects all rows of a
    group together, in both steps; with groups in one of them alone there is no total. See
    :ref:`groups`. Weights are passed alike, ``table__sample_weight=weights`` and
    ``model__sample_weight=weights``; each step pays for their noisy total.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", JRSS B, 2022,
       Corollary 2.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp import dp_tabular_pipeline, privacy_spent
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"visits": rng.poisson(4, 5000), "plan": rng.choice(["a", "b"], 5000)})
    >>> y = np.where(X["visits"] + 3 * (X["plan"] == "a") > 5, "yes", "no")
    >>> model = dp_tabular_pipeline("classifier", epsilon=1.0, classes=["no", "yes"]).fit(X, y)
    >>> bool(model.score(X, y) > 0.85)
    True
    >>> print(privacy_spent(model))
    (epsilon=..., delta=1e-06), replace-one adjacency, per row
    >>> 0.99 < privacy_spent(model).epsilon <= 1.0
    True
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    number = isinstance(table_share, int | float) and not isinstance(table_share, bool)
    if not (number and 0 <= table_share < 1):
        raise ValueError(f"table_share must be a number in [0, 1); got {table_share!r}.")
    model = _model(estimator)
    parameters = model.get_params(deep=False)
    if classes is not None and "classes" not in parameters:
        raise ValueError(f"classes are for a classifier; got {a_kind(model)}.")
    if parameters.get("budget") not in (None, budget):
        raise ValueError(
            "budget must be given to dp_tabular_pipeline, which charges both steps to it: the "
            "estimator has one of its own, which would be charged nothing."
        )
    parts: list[tuple[float | None, float]] = [(None, delta), (epsilon, delta)]
    if table_share:
        added_up = getattr(budget, "composition", None) == "sum"
        gaussian = getattr(model, "mechanism", None) in _GAUSSIAN and not added_up
        parts = _split(epsilon, delta, table_share, gaussian)
    both: dict[str, Any] = {"adjacency": adjacency, "budget": budget, "random_state": random_state}
    if max_weight is not None:
        if "max_weight" not in parameters:
            raise ValueError(
                f"max_weight must be None for {a_kind(model)}, whose rows have no weights; got "
                f"{max_weight!r}."
            )
        both["max_weight"] = max_weight
    table = DPTableVectorizer(*parts[0], bounds=bounds, categories=categories, **both)
    given = {"epsilon": parts[1][0], "delta": parts[1][1], **both, "data_norm": table.data_norm}
    if classes is not None:
        given["classes"] = classes
    model.set_params(**{name: value for name, value in given.items() if name in parameters})
    return Pipeline([("table", table), ("model", model)])


def _split(epsilon, delta, share, gaussian):
    """Return the budgets of two steps, whose squared Gaussian-DP parameters have that share."""
    # never more than the whole in the decimals that are printed
    deltas = share * delta, (1 - share) * delta * (1 - 1e-12)
    roots = math.sqrt(share), math.sqrt(1 - share)
    if gaussian:
        mu = gdp_mu(epsilon, delta)
        return [(gdp_epsilon(root * mu, d), d) for root, d in zip(roots, deltas, strict=True)]
    return [
        (root / sum(roots) * epsilon * (1 - 1e-12), d)
        for root, d in zip(roots, deltas, strict=True)
    ]


def _model(estimator):
    """Return a model that was not fitted, or raise."""
    if isinstance(estimator, str) and estimator in _MODELS:
        return _MODELS[estimator]()
    needed = {"epsilon", "delta", "adjacency"}
    usable = hasattr(estimator, "get_params") and not isinstance(estimator, type)
    if not (usable and needed <= set(estimator.get_params(deep=False))):
        shown = repr(estimator) if isinstance(estimator, str) else a_kind(estimator)
        if isinstance(estimator, type):
            shown = f"the class {estimator.__name__}"
        raise ValueError(
            "estimator must be 'classifier', 'regressor', or an estimator of skdp with parameters "
            f"epsilon, delta and adjacency; got {shown}."
        )
    return clone(estimator)

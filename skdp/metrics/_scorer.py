# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private scorers, for `cross_val_score` and for searches of scikit-learn."""

from collections.abc import Callable
from inspect import signature
from typing import Any, Self

from sklearn.utils.metadata_routing import MetadataRequest

from skdp._typing import Estimator, MatrixLike, VectorLike
from skdp.metrics._classification import dp_balanced_accuracy_score, dp_roc_auc_score
from skdp.metrics._scores import (
    DPScore,
    HeldOutScores,
    ScoreTerms,
    dp_accuracy_score,
    dp_brier_score_loss,
    dp_d2_absolute_error_score,
    dp_log_loss,
    dp_mean_absolute_error,
    dp_mean_squared_error,
    dp_r2_score,
    warn_of_seen_rows,
)

#: what may be passed with the rows
_METADATA = ("groups", "sample_weight")
#: what of an estimator is scored, whether the label set is asked for, and whether less is better
_KINDS: dict[Callable[..., DPScore], tuple[str, bool, bool]] = {
    dp_accuracy_score: ("predict", False, False),
    dp_balanced_accuracy_score: ("predict", True, False),
    dp_roc_auc_score: ("score", True, False),
    dp_log_loss: ("predict_proba", True, True),
    dp_brier_score_loss: ("predict_proba", True, True),
    dp_mean_absolute_error: ("predict", False, True),
    dp_mean_squared_error: ("predict", False, True),
    dp_r2_score: ("predict", False, False),
    dp_d2_absolute_error_score: ("predict", False, False),
}


class DPScorer:
    """A scorer of scikit-learn that releases a score; `make_dp_scorer` makes it.

    Parameters
    ----------
    score_func : callable
        A function of `skdp.metrics`.
    **terms : dict
        For the function.
    """

    def __init__(self, score_func: Callable[..., DPScore], **terms: Any) -> None:
        self.score_func, self.terms = score_func, terms
        self._requests: dict[str, bool | str | None] = dict.fromkeys(_METADATA)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Say whether `groups` and `sample_weight` are passed on where metadata are routed.

        Parameters
        ----------
        **requests : dict
            True, False, None (an error if they are passed) or an alias, for each.

        Returns
        -------
        self : DPScorer
            The scorer.
        """
        if unknown := set(requests) - set(_METADATA):
            raise TypeError(f"requests must be among {_METADATA}; got {sorted(unknown)}.")
        self._requests |= requests
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what is asked for, as scikit-learn has it.

        Returns
        -------
        routing : MetadataRequest
            Of the method `score`.
        """
        routing = MetadataRequest(owner=self)
        for name, alias in self._requests.items():
            routing.score.add_request(param=name, alias=alias)
        return routing

    def __call__(
        self, estimator: Estimator, X: MatrixLike, y: VectorLike, **metadata: VectorLike
    ) -> DPScore:
        """Release the score of a fitted estimator; of a loss, minus the loss.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X, y : array-like of shape (n_samples, n_features), and of shape (n_samples,)
            Private rows, and what is true of them.
        **metadata : dict
            `groups` and `sample_weight` of these rows; the latter with a `max_weight`.

        Returns
        -------
        score : DPScore
            Higher is better.

        Warns
        -----
        PrivacyWarning
            If the estimator was fitted to the same rows.
        """
        warn_of_seen_rows(repr(self), estimator, X)
        method, with_classes, is_loss = _KINDS[self.score_func]
        terms = self.terms | metadata
        if with_classes:
            terms.setdefault("classes", estimator.classes_)
        if method == "score":
            terms["probabilities"] = hasattr(estimator, "predict_proba")
            method = "predict_proba" if terms["probabilities"] else "decision_function"
        found = getattr(estimator, method)(X)
        score = self.score_func(y, found, **terms)
        return -score if is_loss else score

    @property
    def terms_of_score(self) -> dict[str, Any]:
        """What one call spends, and what that protects: see `privacy_spent`."""
        return {
            "name": self.score_func.__name__,
            "epsilon": self.terms["epsilon"],
            "delta": self.terms.get("delta", 0.0),
            "adjacency": self.terms.get("adjacency", "replace-one"),
            "unit": "row" if self._requests["groups"] in (None, False) else "group",
        }

    def __repr__(self) -> str:
        terms = {name: value for name, value in self.terms.items() if name != "budget"}
        listed = ", ".join(f"{name}={value!r}" for name, value in terms.items())
        return f"make_dp_scorer({self.score_func.__name__}, {listed})"


def make_dp_scorer(score_func: Callable[..., DPScore], *, epsilon: float, **terms: Any) -> DPScorer:
    """Make a scorer that releases a private score, with a price for every call.

    Parameters
    ----------
    score_func : callable
        One of the functions of `skdp.metrics`, such as `dp_accuracy_score`.
    epsilon : float
        Price in nats of one call, greater than 0.
    **terms : dict
        Other keyword parameters of the function. Give a `budget`: nothing else adds up the prices
        of the calls. `classes` are those of the estimator, unless they are given.

    Returns
    -------
    scorer : DPScorer
        ``scorer(estimator, X, y)`` is a `DPScore`, of a loss minus the loss; for `scoring` of
        `cross_val_score` and of searches.

    Raises
    ------
    ValueError, TypeError
        If the function is another one; a parameter of it is missing, unknown or out of range;
        `groups` or `sample_weight` are given (rows of folds are not known yet: see
        `DPScorer.set_score_request`); or a `random_state`, with which all calls would have the
        same noise. Nothing is charged then.

    See Also
    --------
    RowScorer : For searches that pay for the choice at once, `DPGridSearchCV`.

    Notes
    -----
    ``privacy_spent(search)`` of one of scikit-learn's searches counts all calls; the choice of the
    winner is made of what they released, and costs nothing more. ``privacy_spent(model, cv=...)``
    is not told how a cross-validation scored, and lists the scores as not covered: what calls have
    spent there is in the budget.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import cross_val_score
    >>> from skdp import DPLogisticRegression, PrivacyBudget
    >>> from skdp.metrics import dp_accuracy_score, make_dp_scorer
    >>> X, y = make_classification(2000, random_state=0)
    >>> budget = PrivacyBudget(epsilon=6.0, delta=1e-5)
    >>> scorer = make_dp_scorer(dp_accuracy_score, epsilon=0.5, budget=budget)
    >>> model = DPLogisticRegression(classes=[0, 1], data_norm=6.0, budget=budget)
    >>> scores = cross_val_score(model, X, y, scoring=scorer, cv=3)
    >>> bool(scores.min() > 0.6)
    True
    >>> budget.spent[0]
    4.5
    """
    if score_func not in _KINDS:
        known = ", ".join(sorted(function.__name__ for function in _KINDS))
        raise ValueError(f"score_func must be one of {known}; got {score_func!r}.")
    for name in (*_METADATA, "random_state"):
        if terms.get(name) is not None:
            raise ValueError(f"{name} must be None for a scorer, which is called for several rows.")
    # a fold is fitted, and paid for, before it is scored
    name, shared = score_func.__name__, ScoreTerms.__annotations__
    asked = {
        one.name: one.default is one.empty
        for one in signature(score_func).parameters.values()
        if one.kind is one.KEYWORD_ONLY
    }
    if unknown := sorted(set(terms) - set(asked) - set(shared)):
        raise TypeError(f"{unknown[0]} is no parameter of {name}, which a scorer could pass on.")
    needed = [one for one, needs in asked.items() if needs and one not in ("epsilon", "classes")]
    if missing := [one for one in needed if one not in terms]:
        raise TypeError(f"{missing[0]} must be given: {name} has no default for it.")
    given = {one: terms[one] for one in shared if one in terms and one not in _METADATA}
    HeldOutScores(epsilon, **(given | {"budget": None}))
    return DPScorer(score_func, epsilon=epsilon, **terms)

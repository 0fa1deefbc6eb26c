# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What one or several fitted estimators have spent together."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from skdp.privacy._accounting import check_delta
from skdp.privacy._composition import _sum_up
from skdp.privacy._learns_nothing import learns_nothing
from skdp.privacy._ledger import Ledger
from skdp.privacy._search_price import CHOICE, SCORES, about_splits, count_splits, price_of_fits
from skdp.privacy._steps import is_search, leaves

#: what to do about steps that learn without a ledger
ADVICE = "use public constants there (imputers: keep_empty_features=True too), or private steps"


@dataclass(frozen=True)
class PrivacySpent:
    """A total, and what it is made of. Unpacks as ``epsilon, delta``.

    Parameters
    ----------
    epsilon, delta : float
        The total: in nats, and as a probability.
    ledger : Ledger
        All releases. Fits whose own ledgers were not kept stand there with their budgets.
    not_covered : tuple of str
        Parts that learned from data without a ledger, and what else depends on private rows
        without a price (the choice of a search, say); if any, the total is no guarantee.
    n_fits : int, default=0
        Number of private fits that were added up; a fit of a pipeline is one.
    """

    epsilon: float
    delta: float
    ledger: Ledger
    not_covered: tuple[str, ...] = ()
    n_fits: int = 0

    def __iter__(self) -> Iterator[float]:
        return iter((self.epsilon, self.delta))

    def __str__(self) -> str:
        unit = f", {self.ledger.adjacency} adjacency, per {self.ledger.unit}"
        unit = unit if self.ledger.releases else ""
        lines = [f"(epsilon={self.epsilon:.6g}, delta={self.delta:.3g}){unit}"]
        if any(release.noise.law == "fits" for release in self.ledger.releases):
            lines += [f"{self.n_fits} fits, an upper bound from their budgets"]
        for name in self.not_covered:
            fitted = "" if name.startswith("the ") else " was fitted on the data"
            lines += [f"not covered: {name}{fitted}"]
        if any(not name.startswith("the ") for name in self.not_covered):
            lines += [ADVICE]
        return "\n".join(lines)

    __repr__ = __str__


@dataclass
class _Total:
    """What has been added up so far."""

    cv: Any
    n_splits: int | None
    ledger: Ledger = field(default_factory=Ledger)
    deltas: list[tuple[float, int]] = field(default_factory=list)
    not_covered: list[str] = field(default_factory=list)
    n_fits: int = 0

    def add(self, estimator: Any) -> None:
        """Add the fits of a cross-validation, and the one that is kept."""
        if self.n_splits is None or is_search(estimator):
            self._add_fitted(estimator)
            return
        self._add_lost(estimator, [{}], self.n_splits, self.cv, SCORES)
        if any(hasattr(part, "ledger_") for _, part in leaves(estimator)):
            self._add_fitted(estimator)

    def _add_fitted(self, estimator: Any) -> None:
        """Add what one fit has spent."""
        counted: list[Ledger] = []
        for name, part in leaves(estimator, type(estimator).__name__):
            if hasattr(part, "ledger_"):
                ledger = part.ledger_
                # steps that were chosen together have their ledger in common
                if not any(ledger is other for other in counted):
                    counted.append(ledger)
                    self.ledger += ledger
                    self.deltas.append((part.privacy_spent_[1], 1))
            elif is_search(part) and hasattr(part, "cv_results_"):
                self._add_search(part, name)
            elif learns_nothing(part):
                continue
            elif part is estimator or not any(n.endswith("_") for n in vars(part)):
                raise TypeError(
                    f"{name} has no ledger_: it is not fitted, or keeps none. Private estimators "
                    "inside of it are fits of their own."
                )
            else:
                self.not_covered.append(name)
        self.n_fits += bool(counted)

    def _add_search(self, search: Any, name: str) -> None:
        """Add all fits of one of scikit-learn's searches."""
        if self.n_splits not in (None, search.n_splits_):
            raise ValueError(
                f"cv must be None for {name}, or what it was fitted with: {search.n_splits_} "
                f"splits; got {self.n_splits}. Of searches that were cross-validated, pass all."
            )
        # every round of a halving search has its own entries there
        settings = search.cv_results_["params"]
        self._add_lost(search.estimator, settings, search.n_splits_, search.cv, CHOICE)
        if hasattr(search, "best_estimator_"):
            self._add_fitted(search.best_estimator_)

    def _add_lost(
        self, estimator: Any, settings: list[dict[str, Any]], n_each: int, cv: Any, told: str
    ) -> None:
        """Add fits whose ledgers were not kept."""
        ledger, steps, n_fits = price_of_fits(estimator, settings, n_each)
        not_covered, assumptions = about_splits(cv, estimator)
        self.ledger += ledger.assume(*assumptions)
        self.deltas += [(release.noise.delta, release.count) for release in ledger.releases]
        self.not_covered += [*steps, told, *not_covered]
        self.n_fits += n_fits


def privacy_spent(*estimators: Any, cv: Any = None, delta: float | None = None) -> PrivacySpent:
    """Compose what fitted estimators, pipelines or searches have spent on the same people.

    Parameters
    ----------
    *estimators : estimator, Pipeline or search
        Fitted. Every step of a pipeline is counted, those inside of a ColumnTransformer or a
        FeatureUnion too. Steps that learned from the data without a ledger are named. Of
        scikit-learn's searches every fit is counted: of all candidates on all folds (in all
        rounds, of a halving search), and the last one. A search with a ledger of its own
        has spent what that says.
    cv : int, splitter or list of splits, default=None
        Each estimator was cross-validated besides (``cross_val_score(estimator, X, y, cv=cv)``),
        and need not be fitted; if it is, that fit counts too. None for no cross-validation.
        For a search: the folds it was fitted with, which it knows. One that was cross-validated
        itself is counted if all searches that were fitted are passed (``return_estimator=True``).
    delta : float, default=None
        The delta of the total, in [0, 1); by default the sum of the reported ones.

    Returns
    -------
    spent : PrivacySpent
        The total, tightly composed, with the ledger behind it; unpacks as
        ``epsilon, delta``.

    Raises
    ------
    ValueError
        If there is nothing to add up, the adjacencies differ, or `cv` is not what a search
        was fitted with.
    TypeError
        If an estimator is not fitted, keeps no ledger and is no search, or has no private
        step; or if `cv` is of another type.

    See Also
    --------
    Ledger : What was released, at what price.

    Notes
    -----
    Fits of a search or of a cross-validation keep no ledger. They are composed as what they
    are by their parameters, (epsilon, delta)-DP in every private step: an upper bound.
    Gaussian fits together cost less than that, which a shared
    ``PrivacyBudget(composition="gaussian")`` knows. Fits of a search that failed are
    counted; if all of it failed, there is nothing to count here, but budgets were spent.

    What is done with exact scores on private rows has no price. It is named in `not_covered`
    of the result: the choice of the winner, the scores themselves, and stratified splits.

    Examples
    --------
    >>> from skdp import DPMean, privacy_spent
    >>> a = DPMean(epsilon=0.3, random_state=0).fit([[0.1], [0.2]])
    >>> b = DPMean(epsilon=0.4, random_state=1).fit([[0.1], [0.2]])
    >>> epsilon, delta = privacy_spent(a, b)
    >>> epsilon < 0.3 + 0.4
    True
    >>> privacy_spent(DPMean(epsilon=0.1), cv=5).n_fits
    5
    """
    if not estimators:
        raise ValueError("privacy_spent needs at least one fitted estimator.")
    total = _Total(cv, None if cv is None else count_splits(cv))
    for estimator in estimators:
        total.add(estimator)
    # rounded up: rounded to nearest it may be less than what was spent
    at = _sum_up(total.deltas) if delta is None else check_delta(delta)
    not_covered = tuple(dict.fromkeys(total.not_covered))
    return PrivacySpent(total.ledger.epsilon(at), at, total.ledger, not_covered, total.n_fits)

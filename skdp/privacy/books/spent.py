# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The total of what fitted estimators, pipelines and searches have spent.

`privacy_spent` walks through the steps, adds up their ledgers, and names what no ledger covers.
Of fits whose ledgers were not kept, those of a search or of a cross-validation, the price is
read off parameters: every fit is at most (epsilon, delta)-DP in every private step. What a step
is, and whether it learns anything, is told by names and attributes: nothing is imported for it.
"""

import copy
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np

from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.kernel.ledger import Release, sum_up
from skdp.privacy.laws.search import DeclaredTotal

#: what can be done about steps that learn without a ledger
ADVICE = "use public constants there (imputers: keep_empty_features=True too), or private steps"


@dataclass(frozen=True)
class NotCovered:
    """Something that depends on private rows and that no ledger covers.

    Parameters
    ----------
    kind : {"step", "reports", "choice", "scores", "splits", "fits"}
        What it is: a "step" that learned from rows without a ledger; the "reports" that a
        randomiser makes about rows to predict on; the "choice" of a search, which knows exact
        scores; these "scores" themselves, if a cross-validation published them; "splits" that
        labels decide about; "fits" of which not even the price is known.
    step : str or None
        The name of the step that this is about; None for the whole estimator.
    text : str
        The same for people; what `str` returns.

    See Also
    --------
    PrivacySpent : Its `not_covered` lists them.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import DPMean, privacy_spent
    >>> model = make_pipeline(StandardScaler(), DPMean()).fit([[0.1], [0.2], [0.3]])
    >>> [(item.kind, item.step) for item in privacy_spent(model).not_covered]
    [('step', 'standardscaler')]
    """

    kind: Literal["step", "reports", "choice", "scores", "splits", "fits"]
    step: str | None
    text: str

    def __str__(self) -> str:
        return self.text

    @classmethod
    def learned(cls, step: str | None, part: Any) -> "NotCovered":
        """Return the item of a step, or of a whole estimator, that learned without a ledger."""
        return cls("step", step, f"{name_of(step, part)}, which was fitted on the data")

    @classmethod
    def reported(cls, step: str | None, part: Any) -> "NotCovered":
        """Return the item of a randomiser that reports about new rows as well."""
        text = f"the reports of {name_of(step, part)} about rows that are predicted on"
        return cls("reports", step, text)

    @classmethod
    def scored(cls) -> "NotCovered":
        """Return the item of a cross-validation."""
        text = "the scores, which are exact numbers computed from the rows that are scored"
        return cls("scores", None, text)

    @classmethod
    def chosen(cls, step: str | None) -> "NotCovered":
        """Return the item of a search; `step` is its own name if it is a step."""
        whose = "" if step is None else f" of step {step!r}"
        text = f"the choice of the winner{whose}, by exact scores on the rows that are held out"
        return cls("choice", step, text)

    @classmethod
    def stratified(cls, step: str | None) -> "NotCovered":
        """Return the item of stratified splits; `step` is the search that made them."""
        whose = "" if step is None else f" of step {step!r}"
        text = f"the splits{whose}: they are stratified, so a label decides into which folds "
        return cls("splits", step, text + "other rows go")


@dataclass(frozen=True)
class PrivacySpent:
    """The total of several fits, with the ledger behind it. Unpacks as ``epsilon, delta``.

    Parameters
    ----------
    epsilon, delta : float
        The total: in nats, and as a probability.
    ledger : Ledger
        All releases. Fits whose own ledgers were not kept are listed with their budgets.
    not_covered : tuple of NotCovered
        Steps that learned from data without a ledger, and what else depends on private rows
        without a price (the choice of a search, say). If there are any, the total is no
        guarantee.
    n_fits : int, default=0
        Number of private fits that were added up; a fit of a pipeline is one.
    """

    epsilon: float
    delta: float
    ledger: Ledger
    not_covered: tuple[NotCovered, ...] = ()
    n_fits: int = 0

    def __iter__(self) -> Iterator[float]:
        return iter((self.epsilon, self.delta))

    def __str__(self) -> str:
        unit = f", {self.ledger.adjacency} adjacency, per {self.ledger.unit}"
        unit = unit if self.ledger.releases else ""
        lines = [f"(epsilon={self.epsilon:.6g}, delta={self.delta:.3g}){unit}"]
        if any(release.noise.law == "fits" for release in self.ledger.releases):
            lines += [f"{self.n_fits} fits, an upper bound from their budgets"]
        lines += [f"not covered: {item}" for item in self.not_covered]
        if any(item.kind == "step" for item in self.not_covered):
            lines += [ADVICE]
        return "\n".join(lines)

    __repr__ = __str__


def privacy_spent(*estimators: Any, cv: Any = None, delta: float | None = None) -> PrivacySpent:
    """Compose what fitted estimators, pipelines or searches have spent on the same people.

    Parameters
    ----------
    *estimators : estimator, Pipeline or search
        Fitted. Every step of a pipeline is counted, also inside of a ColumnTransformer or a
        FeatureUnion. Steps that learned from the data without a ledger are listed in
        `not_covered`. Of scikit-learn's searches every fit is counted: those of all candidates
        on all folds (in all rounds of a halving search), and the last one. A search with a
        ledger of its own has spent what that ledger says.
    cv : int, splitter or list of splits, default=None
        The splits by which every estimator was cross-validated as well
        (``cross_val_score(estimator, X, y, cv=cv)``); None for no cross-validation. Such an
        estimator need not be fitted; if it is, that fit counts too. A search knows its own
        folds: pass None, or the same. To count a search that was itself cross-validated, pass
        all the searches that were fitted (``return_estimator=True``).
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
    Gaussian fits cost less together, and a shared ``PrivacyBudget(composition="gaussian")``
    counts them so. Fits of a search that failed are counted; if the whole search failed, there
    is nothing to count here, but budgets were spent.

    Uses of exact scores on private rows have no price. They are listed in `not_covered` of the
    result: the choice of the winner, the scores themselves, and stratified splits.

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
    at = sum_up(total.deltas) if delta is None else check_delta(delta)
    not_covered = tuple(dict.fromkeys(total.not_covered))
    return PrivacySpent(total.ledger.epsilon(at), at, total.ledger, not_covered, total.n_fits)


@dataclass
class _Total:
    """A running total, and the cross-validation that every estimator went through besides."""

    cv: Any
    n_splits: int | None
    ledger: Ledger = field(default_factory=Ledger)
    deltas: list[tuple[float, int]] = field(default_factory=list)
    not_covered: list[NotCovered] = field(default_factory=list)
    n_fits: int = 0

    def add(self, estimator: Any) -> None:
        """Add the fits of a cross-validation, and the one that is kept."""
        if self.n_splits is None or is_search(estimator):
            self._add_fitted(estimator)
            return
        self._add_lost(estimator, [{}], self.n_splits, self.cv, None, NotCovered.scored())
        if any(hasattr(part, "ledger_") for _, part in leaves(estimator)):
            self._add_fitted(estimator)

    def _add_fitted(self, estimator: Any) -> None:
        """Add what one fit has spent."""
        counted: list[Ledger] = []
        for step, part in leaves(estimator):
            if hasattr(part, "ledger_"):
                ledger = part.ledger_
                # steps that were chosen together have their ledger in common
                if not any(ledger is other for other in counted):
                    counted.append(ledger)
                    self.ledger += ledger
                    self.deltas.append((part.privacy_spent_[1], 1))
            elif is_search(part) and hasattr(part, "cv_results_"):
                self._add_search(part, step)
            elif learns_nothing(part):
                continue
            elif part is estimator or not any(n.endswith("_") for n in vars(part)):
                raise TypeError(
                    f"{name_of(step, part)} has no ledger_: it is not fitted, or keeps none. "
                    "Private estimators inside of it are fits of their own."
                )
            else:
                self.not_covered.append(NotCovered.learned(step, part))
        self.n_fits += bool(counted)

    def _add_search(self, search: Any, step: str | None) -> None:
        """Add all fits of one of scikit-learn's searches."""
        if self.n_splits not in (None, search.n_splits_):
            raise ValueError(
                f"cv must be None for {name_of(step, search)}, or what it was fitted with: "
                f"{search.n_splits_} splits; got {self.n_splits}. Of searches that were "
                "cross-validated, pass all."
            )
        # every round of a halving search has its own entries there
        settings, n_each, cv = search.cv_results_["params"], search.n_splits_, search.cv
        choice = NotCovered.chosen(step)
        self._add_lost(search.estimator, settings, n_each, cv, step, choice)
        if hasattr(search, "best_estimator_"):
            self._add_fitted(search.best_estimator_)

    def _add_lost(
        self,
        estimator: Any,
        settings: list[dict[str, Any]],
        n_each: int,
        cv: Any,
        step: str | None,
        use: NotCovered,
    ) -> None:
        """Add fits whose ledgers were not kept, and the use that was made of their scores."""
        ledger, steps, n_fits = price_of_fits(estimator, settings, n_each)
        not_covered, assumptions = about_splits(cv, estimator, step)
        self.ledger += ledger.assume(*assumptions)
        self.deltas += [(release.noise.delta, release.count) for release in ledger.releases]
        self.not_covered += [*steps, use, *not_covered]
        self.n_fits += n_fits


# Fits whose ledgers were not kept.


def count_splits(cv: Any) -> int:
    """Return into how many splits a cross-validation divides the rows.

    `cv` is as scikit-learn has it, but for None. A TypeError is raised if it is anything else, a
    ValueError if there are no splits, or only the data could tell how many.
    """
    allowed = "an int of at least 2, a splitter, or a list of (train, test) pairs"
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv must be {allowed}; got {cv!r}.")
        return int(cv)
    if hasattr(cv, "get_n_splits"):
        try:
            found = int(cv.get_n_splits())
        except (TypeError, ValueError):
            raise ValueError(
                f"cv must be {allowed}; the number of splits of {cv!r} depends on the data. "
                "Give the number."
            ) from None
        if found < 1:
            raise ValueError(f"cv must be {allowed}; got {found} splits.")
        return found
    # an iterator has been used up by now
    if not isinstance(cv, Sequence | np.ndarray) or isinstance(cv, str):
        raise TypeError(f"cv must be {allowed}; got {type(cv).__name__}.")
    if not len(cv) or not all(isinstance(s, Sized) and len(s) == 2 for s in cv):
        raise ValueError(f"cv must be {allowed}; got {len(cv)} entries that are not such pairs.")
    return len(cv)


def about_splits(
    cv: Any, estimator: Any, step: str | None
) -> tuple[tuple[NotCovered, ...], tuple[str, ...]]:
    """Return what of the splits is not covered, and what is assumed about them.

    Stratified splits are not covered; a plain number of folds means such splits for a
    classifier. Splits that were given as positions are assumed to be public.
    """
    if cv is None or isinstance(cv, Integral):
        tags = getattr(estimator, "__sklearn_tags__", None)
        kind = tags().estimator_type if tags else getattr(estimator, "_estimator_type", None)
        return (NotCovered.stratified(step),) if kind == "classifier" else (), ()
    if not hasattr(cv, "get_n_splits"):
        return (), ("splits, which were given as positions of rows",)
    stratified = any("Stratified" in base.__name__ for base in type(cv).__mro__)
    return (NotCovered.stratified(step),) if stratified else (), ()


def _adjacency(leaf: Any) -> str:
    """Return the adjacency of a private estimator: its own, or that of what it fits."""
    if hasattr(leaf, "adjacency"):
        return str(leaf.adjacency)
    inner = leaves(leaf.estimator, {}) if hasattr(leaf, "estimator") else ()
    # what has none consists of reports that rows make on their own
    return next((_adjacency(part) for _, part in inner if is_private(part)), "local")


def _granted(step: str | None, leaf: Any) -> Release:
    """Return what one fit of a private estimator may spend."""
    population = getattr(leaf, "population", None)
    if leaf.epsilon is None or population is not None:
        # epsilon is that of a deployment then, and a fit may spend a thousand times as much
        why = "epsilon=None" if population is None else f"population={population!r}"
        raise TypeError(
            f"{name_of(step, leaf)} has {why}: its parameters do not tell what a fit spends. "
            "Count with a shared PrivacyBudget."
        )
    epsilon, delta = check_epsilon(leaf.epsilon), check_delta(getattr(leaf, "delta", 0.0))
    return Release(
        query=f"fits of {type(leaf).__name__}",
        size=1,
        adjacency=_adjacency(leaf),
        stated_sensitivity=math.inf,
        theorem="every fit keeps to its parameters epsilon and delta",
        noise=DeclaredTotal("fits", 0.0, 1.0, math.inf, math.inf, 0.0, epsilon, delta),
        numerics="as in the fits",
        seeded=getattr(leaf, "random_state", None) is not None,
        unit="client" if hasattr(leaf, "local_epsilon") else "row",
    )


def price_of_fits(
    estimator: Any, settings: Sequence[Mapping[str, Any]], n_each: int
) -> tuple[Ledger, list[NotCovered], int]:
    """Return what fits cost at most, and what of them is not covered.

    Parameters
    ----------
    estimator : estimator
        Fitted or not: only its parameters are read.
    settings : sequence of dict
        Parameters that were replaced, as for `set_params`: one dictionary per candidate.
    n_each : int
        Number of fits of every candidate.

    Returns
    -------
    ledger : Ledger
        One line for all fits of a kind with the same price.
    not_covered : list of NotCovered
        Steps that learn without a ledger.
    n_fits : int
        Number of fits that are private at all.

    Raises
    ------
    TypeError
        If no candidate has a private step, or the parameters of one do not tell its price.
    """
    prices, not_covered, n_fits = Counter[Release](), dict[NotCovered, None](), 0
    has_private_steps = False
    for given in settings:
        found = list(leaves(estimator, given))
        has_private_steps |= any(is_private(leaf) for _, leaf in found)
        n_fits += n_each * any(is_private(leaf) and not is_free(leaf) for _, leaf in found)
        for step, leaf in found:
            if is_free(leaf):
                continue
            if is_private(leaf):
                prices[_granted(step, leaf)] += n_each
                if getattr(leaf, "new_rows", None) == "randomise":
                    not_covered[NotCovered.reported(step, leaf)] = None
            elif not learns_nothing(leaf):
                not_covered[NotCovered.learned(step, leaf)] = None
    if not has_private_steps:
        raise TypeError(
            f"fits of {type(estimator).__name__} have no private step: nothing to add up. What "
            "holds private estimators inside, other than pipelines, unions and column "
            "transformers, is not taken apart."
        )
    ledger = Ledger()
    for release, count in prices.items():
        ledger = ledger.append(replace(release, count=count))
    return ledger, list(not_covered), n_fits


# Steps of pipelines and of whatever else holds steps.


def sklearn_bases(estimator: Any) -> set[str]:
    """Return the names of scikit-learn's classes among the bases of an estimator."""
    mro = type(estimator).__mro__
    return {base.__name__ for base in mro if base.__module__.startswith("sklearn.")}


def is_private(estimator: Any) -> bool:
    """Return whether this has a budget of its own, as all private estimators have."""
    return hasattr(estimator, "epsilon") and hasattr(estimator, "budget")


def is_free(estimator: Any) -> bool:
    """Return whether a private estimator releases nothing, with the parameters it has."""
    return is_private(estimator) and not getattr(estimator, "_releases", True)


def is_search(estimator: Any) -> bool:
    """Return whether this is one of scikit-learn's searches, which keep no ledger."""
    return "BaseSearchCV" in sklearn_bases(estimator) and not is_private(estimator)


def leaves(
    estimator: Any, given: Mapping[str, Any] | None = None, step: str | None = None
) -> Iterator[tuple[str | None, Any]]:
    """Yield (step, estimator) for the leaves of pipelines and of whatever else holds steps.

    Parameters
    ----------
    estimator : estimator
        Fitted or not. Of a column transformer that is fitted, the leaves are what was fitted.
    given : dict, default=None
        Parameters that are replaced before a fit, as for `set_params`: the leaves are what that
        fit would fit, whether this is fitted or not. None for what is there.
    step : str, default=None
        The name of the estimator, if it is a step itself.
    """
    own = {key: value for key, value in (given or {}).items() if "__" not in key}
    parts = _parts(estimator, own, given is None)
    if parts is None:
        # those of what it holds too: an adjacency may stand there
        yield step, copy.deepcopy(estimator).set_params(**given) if given else estimator
        return
    for name, part in parts:
        part, start, nested = own.get(name, part), f"{name}__", None
        if part is None or isinstance(part, str):  # "passthrough" and "drop"
            continue
        if given is not None:
            nested = {key[len(start) :]: v for key, v in given.items() if key.startswith(start)}
        yield from leaves(part, nested, name)


def name_of(step: str | None, part: Any) -> str:
    """Return how a sentence calls a step, or an estimator that is no step."""
    return type(part).__name__ if step is None else f"step {step!r}"


def _parts(estimator: Any, own: Mapping[str, Any], as_it_is: bool) -> list[tuple[str, Any]] | None:
    """Return the named parts of what holds steps, with parameters replaced; None for others."""
    if hasattr(estimator, "steps"):
        return list(own.get("steps", estimator.steps))
    bases = sklearn_bases(estimator)
    if "FeatureUnion" in bases:
        return list(own.get("transformer_list", estimator.transformer_list))
    if "ColumnTransformer" not in bases:
        return None
    if as_it_is and hasattr(estimator, "transformers_"):
        parts = estimator.transformers_
    else:
        parts = own.get("transformers", estimator.transformers)
        parts = [*parts, ("remainder", estimator.remainder, slice(None))]
    # a part without columns is never fitted
    return [(name, part) for name, part, columns in parts if not _none_of(columns)]


def _none_of(columns: Any) -> bool:
    """Return whether a choice of columns is empty; one that is still to be made is not."""
    if callable(columns):
        return False
    chosen = np.asarray(columns)
    return chosen.size == 0 or (chosen.dtype == bool and not chosen.any())


# Steps that learn nothing from rows.


def _always(step: Any) -> bool:
    return True


def _categories_are_given(step: Any) -> bool:
    given = not isinstance(step.categories, str)
    return given and step.min_frequency is None and step.max_categories is None


def _fills_in_a_constant(step: Any) -> bool:
    return step.strategy == "constant" and step.keep_empty_features and not step.add_indicator


#: scikit-learn's transformers whose `fit` stores what follows from parameters and shape
SHAPE_ONLY: dict[str, Callable[[Any], bool]] = {
    "GaussianRandomProjection": _always,  # a random matrix of a given size
    "SparseRandomProjection": _always,  # the same, its density following from the width
    "PolynomialFeatures": _always,  # exponents for a number of features
    "PolynomialCountSketch": _always,  # random hashes for a number of features
    "SkewedChi2Sampler": _always,  # random weights for a number of features
    # random weights, but gamma="scale" takes the variance of the rows
    "RBFSampler": lambda step: not isinstance(step.gamma, str),
    # encoders with public vocabularies, unless they count how frequent categories are
    "OneHotEncoder": _categories_are_given,
    "OrdinalEncoder": _categories_are_given,
    # other strategies learn statistics; empty features and missing values are facts about rows
    "SimpleImputer": _fills_in_a_constant,
}


def _holds_an_estimator(step: Any) -> bool:
    return any(hasattr(value, "fit") for value in getattr(step, "__dict__", {}).values())


def learns_nothing(step: Any) -> bool:
    """Return whether fitting a step leaves nothing behind that was computed from rows.

    Parameters
    ----------
    step : estimator
        A leaf of a pipeline. One that holds other estimators, or predicts, is never said
        to learn nothing.

    Returns
    -------
    nothing : bool
        By its tag ``requires_fit=False``, or by `SHAPE_ONLY`. What a function inside of a
        FunctionTransformer does with rows is not looked at.
    """
    # a regressor may do without fit and learn all the same
    if hasattr(step, "predict") or _holds_an_estimator(step):
        return False
    kind, tags = type(step), getattr(step, "__sklearn_tags__", None)
    if kind.__module__.startswith("sklearn.") and kind.__name__ in SHAPE_ONLY:
        return bool(SHAPE_ONLY[kind.__name__](step))
    return tags is not None and not tags().requires_fit

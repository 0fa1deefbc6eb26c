# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Total price of fitted estimators, and of pipelines, searches and meta-estimators.

`privacy_spent` visits the steps and the fitted parts of meta-estimators, adds up their ledgers,
and lists everything that no ledger covers. Fits of a search or of a cross-validation do not keep
ledgers; their prices follow from parameters, because every fit is at most (epsilon, delta)-DP in
every private step. A fit notes what went before it in its pipeline, and which meta-estimators have
decided about it: a slice of the pipeline, or the winner of a search, has no other trace of that.
"""

import copy
import hashlib
import itertools
import math
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np

from skdp.privacy.books.functions import mixing, using
from skdp.privacy.books.ledger import SHARED_NOISE, Ledger, for_copies
from skdp.privacy.books.parts import (
    LABEL_CODERS,
    asks_for_groups,
    assumptions_of,
    decides_about_fits,
    drawn_rows,
    fits_anew,
    fits_inside,
    fits_used,
    got_groups,
    holders_of_steps,
    is_free,
    is_private,
    is_private_search,
    is_search,
    keeps_ledgers,
    kept_parts,
    learns_before,
    learns_nothing,
    leaves,
    multiplies_rows,
    name_of,
    overrides_fit,
    own_function,
    sklearn_bases,
    takes_groups,
    was_fitted,
    watchers,
    what_else,
    what_rows_decide,
    writes_seeds,
)
from skdp.privacy.books.texts import a_kind, tags
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.kernel.ledger import Release, sum_up
from skdp.privacy.kernel.samplers import SystemBits, noise_identity
from skdp.privacy.laws.search import DeclaredTotal

#: what can be done about steps that learn without a ledger
ADVICE = "use public constants there (imputers: keep_empty_features=True too), or private steps"


@dataclass(frozen=True)
class NotCovered:
    """Something that depends on private rows and is not covered by a ledger.

    Parameters
    ----------
    kind : {"step", "reports", "choice", "scores", "splits", "fits", "rest", "seed", "stored seed"}
        Kind: a "step" that learned from rows without a ledger; the "reports" of a randomiser about
        rows for predictions; the "choice" of a search with exact scores; these "scores"
        themselves, if a cross-validation published them; "splits" that depend on labels or groups;
        "fits" with an unknown price, or no longer kept by a pipeline; the "rest" of the work of a
        meta-estimator, besides its kept fits; a "seed" given by a user, so that there is no claim
        towards anybody who can guess it; a "stored seed", written by a meta-estimator into its
        parts and kept.
    step : str or None
        Name of the step; None for the whole estimator.
    text : str
        Text for people; the result of `str`.

    See Also
    --------
    PrivacySpent : Its `not_covered` lists them.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import DPMean, privacy_spent
    >>> model = make_pipeline(StandardScaler(), DPMean(data_norm=1.0)).fit([[0.1], [0.2], [0.3]])
    >>> [(item.kind, item.step) for item in privacy_spent(model).not_covered]
    [('step', 'standardscaler')]
    """

    kind: Literal[
        "step", "reports", "choice", "scores", "splits", "fits", "rest", "seed", "stored seed"
    ]
    step: str | None
    text: str

    def __str__(self) -> str:
        return self.text

    @classmethod
    def learned(cls, step: str | None, part: Any, name: str | None = None) -> "NotCovered":
        """Return the item of a step, or of a whole estimator, that learned without a ledger."""
        name = name_of(step, part) if name is None else name
        function = own_function(part)
        if used := fits_used(part):
            return cls("step", step, using(function or part.inverse_func, name, used))
        if function is not None and not fits_anew(part):
            return cls("step", step, mixing(function, name))
        if multiplies_rows(part):
            text = (
                f"{name}, which resampled the rows: one row may count any number of times, and "
                "which ones are drawn may depend on all rows"
            )
            return cls("step", step, text)
        return cls("step", step, f"{name}, which was fitted on the data")

    @classmethod
    def decided(cls, step: str | None, part: Any, what: str) -> "NotCovered":
        """Return the item of something about a step that rows decide."""
        return cls("step", step, what.format(name_of(step, part)))

    @classmethod
    def left_out(cls, step: str | None, part: Any, what: str) -> "NotCovered":
        """Return the item of a meta-estimator that did more than the fits that it keeps."""
        return cls("rest", step, f"{name_of(step, part)}: {what}")

    @classmethod
    def missing(cls, before: "Before", step: str | None, part: Any) -> "NotCovered":
        """Return the item of a fit that went before another one in a pipeline, and is missing."""
        text = (
            f"the fit of {before.name} that went before the one of {name_of(step, part)}: it is "
            "not among what was passed. Steps were left out, replaced or fitted again"
        )
        return cls("fits", before.step, text)

    @classmethod
    def left_alone(cls, step: str | None, part: Any, kind: str) -> "NotCovered":
        """Return the item of a fit that is passed without the meta-estimator that made it."""
        text = (
            f"{name_of(step, part)}: it was fitted inside of {kind}, which fitted or chose more. "
            f"Pass the {kind} itself"
        )
        return cls("rest", step, text)

    @classmethod
    def repeated(cls, step: str | None, part: Any, copies: int, ledger: Ledger) -> "NotCovered":
        """Return the item of a fit to drawn rows that has no price for them."""
        name = name_of(step, part)
        text = f"the rows of {name}: one was drawn {copies} times, at no finite price"
        if _counts_rows(ledger):
            text = f"the rows of {name}: their number, a secret, decides which ones are drawn"
        elif ledger.unit == "group":
            text = f"the rows of {name}: by their number a group decides which ones are drawn"
        return cls("rest", step, text)

    @classmethod
    def seeded(cls, step: str | None, part: Any, writer: str | None = None) -> "NotCovered":
        """Return the item of seeded noise; `writer` is what wrote the seed, if nobody gave it."""
        name = name_of(step, part)
        if writer is None:
            text = f"seeded: no guarantee towards whoever can guess the seed of {name}"
            return cls("seed", step, text)
        text = (
            f"the noise of {name}: {writer} wrote a seed into each random_state and keeps it, so "
            "whoever has the fitted object can remove the noise. Use VotingClassifier or "
            "VotingRegressor with several copies, which leave random_state=None as it is, or a "
            "subclass whose constructor has no random_state"
        )
        return cls("stored seed", step, text)

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
        text = (
            f"the choice of the winner{_whose(step)}, by exact scores on the rows that are held out"
        )
        return cls("choice", step, text)

    @classmethod
    def stratified(cls, step: str | None) -> "NotCovered":
        """Return the item of stratified splits; `step` is the search that made them."""
        text = (
            f"the splits{_whose(step)}: they are stratified, so a label decides into which folds "
        )
        return cls("splits", step, text + "other rows go")

    @classmethod
    def counted_splits(cls, step: str | None) -> "NotCovered":
        """Return the item of splits of rows whose number is a secret."""
        text = f"the splits{_whose(step)}: the number of rows, a secret, decides where they are cut"
        return cls("splits", step, text)

    @classmethod
    def sized_splits(cls, step: str | None) -> "NotCovered":
        """Return the item of splits that the numbers of rows of groups decide."""
        text = (
            f"the splits{_whose(step)}: how many rows a group has, a secret, decides into which "
            "folds other groups go. Use GroupKFold(shuffle=True) or GroupShuffleSplit"
        )
        return cls("splits", step, text)

    @classmethod
    def unknown_splits(cls, step: str | None, cv: Any) -> "NotCovered":
        """Return the item of splits that nobody can look at any more."""
        text = (
            f"the splits{_whose(step)}: {type(cv).__name__} may repeat rows, or look at them. "
            "Use a splitter of scikit-learn, or a list of splits"
        )
        return cls("splits", step, text)

    @classmethod
    def ungrouped(cls, step: str | None, cv: Any) -> "NotCovered":
        """Return the item of groups that were passed to a splitter and not to the fits."""
        text = (
            f"the groups{_whose(step)}: {type(cv).__name__} was given groups, and the fits were "
            "not, so every row counted on its own. Call "
            "sklearn.set_config(enable_metadata_routing=True) and set_fit_request(groups=True)"
        )
        return cls("splits", step, text)


def _counts_rows(ledger: Ledger) -> bool:
    """Return whether the number of rows is a secret, and not public."""
    return ledger.adjacency == "add-remove"


def _whose(step: str | None) -> str:
    """Return whose something is, in words: of a step, or of nothing that has a name."""
    return "" if step is None else f" of step {step!r}"


@dataclass(frozen=True)
class PrivacySpent:
    """The total of several fits, with the ledger behind it. Unpacks as ``epsilon, delta``.

    An incomplete total does not unpack, and does not convert to a numpy array: it raises a
    ValueError with the missing parts. `covered` always has the pair.

    Parameters
    ----------
    epsilon, delta : float
        Total of the covered fits: in nats, and as a probability. Infinite if fits share their
        noise.
    ledger : Ledger
        All releases. Fits without kept ledgers are listed with their budgets.
    not_covered : tuple of NotCovered
        Steps that learned from data without a ledger, other unpriced uses of private rows (for
        example the choice of a search), and seeds.
    n_fits : int, default=0
        Number of added private fits; a fit of a pipeline is one.
    most_copies : int, default=1
        Largest number of copies of a row in one priced fit, above 1 if rows were drawn with
        replacement. The row pays as a group of that many rows.

    Raises
    ------
    ValueError
        On unpacking, if `uncovered` is not empty.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import DPMean, privacy_spent
    >>> model = make_pipeline(StandardScaler(), DPMean(data_norm=1.0)).fit([[0.1], [0.2]])
    >>> spent = privacy_spent(model)
    >>> epsilon, delta = spent
    Traceback (most recent call last):
    ...
    ValueError: the total is not a guarantee, because something is missing from it: step 'st...
    >>> spent.covered == (spent.epsilon, spent.delta)
    True
    """

    epsilon: float
    delta: float
    ledger: Ledger
    not_covered: tuple[NotCovered, ...] = ()
    n_fits: int = 0
    most_copies: int = 1

    @property
    def covered(self) -> tuple[float, float]:
        """The (epsilon, delta) of the ledger, without missing parts."""
        return self.epsilon, self.delta

    @property
    def uncovered(self) -> tuple[NotCovered, ...]:
        """Missing parts of the total: all of `not_covered` except given seeds.

        With a given seed, the total holds towards everybody who cannot guess it.
        """
        return tuple(item for item in self.not_covered if item.kind != "seed")

    def _pair(self) -> tuple[float, float]:
        if self.uncovered:
            raise ValueError(
                "the total is not a guarantee, because something is missing from it: "
                f"{'; '.join(map(str, self.uncovered))}. The (epsilon, delta) of the rest is in "
                "covered, and what is missing in uncovered."
            )
        return self.covered

    def __iter__(self) -> Iterator[float]:
        return iter(self._pair())

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: Any) -> Any:
        return self._pair()[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self._pair(), dtype=dtype)

    def _repr_html_(self) -> str:
        head, *more = str(self).splitlines()
        return tags("code", [head]) + tags("small", [f" {line}." for line in more])

    def __str__(self) -> str:
        unit = f", {self.ledger.adjacency} adjacency, per {self.ledger.unit}"
        unit = unit if self.ledger.releases else ""
        lines = [f"(epsilon={self.epsilon:.6g}, delta={self.delta:.3g}){unit}"]
        if self.ledger.shared_noise:
            lines += [SHARED_NOISE.format(", ".join(self.ledger.shared_noise))]
        if any(release.noise.law == "fits" for release in self.ledger.releases):
            lines += [f"{self.n_fits} fits, an upper bound from their budgets"]
        if self.most_copies > 1:
            told = "a row counts up to {0} times in one fit, and pays like a group of {0} rows"
            lines += [told.format(self.most_copies)]
            if self.ledger.budget_heads:
                lines += ["the shared budget was charged as if every row counted once"]
        lines += [f"not covered: {item}" for item in self.not_covered]
        if any(item.kind == "step" for item in self.not_covered):
            lines += [ADVICE]
        return "\n".join(lines)

    __repr__ = __str__


def privacy_spent(*estimators: Any, cv: Any = None, delta: float | None = None) -> PrivacySpent:
    """Compose the prices of fitted estimators, pipelines or searches about the same people.

    Parameters
    ----------
    *estimators : estimator, Pipeline, search or meta-estimator
        Fitted. Every step of a pipeline is counted, also inside a ColumnTransformer or a
        FeatureUnion. Steps that learned from the data without a ledger are listed in
        `not_covered`. For scikit-learn's searches every fit is counted: of all candidates on all
        folds (in all rounds of a halving search), and the last one. A search with its own ledger
        has the price on that ledger. For other meta-estimators each kept fitted part is counted
        once; their other work is in `not_covered`.
    cv : int, splitter or list of splits, default=None
        Splits of a cross-validation of every estimator (``cross_val_score(estimator, X, y,
        cv=cv)``); None for no cross-validation. Such an estimator need not be fitted; if it is,
        that fit counts too. A search has its own folds: pass None, or the same. To count a
        cross-validated search, pass all fitted searches (``return_estimator=True``).
    delta : float, default=None
        Delta of the total, in [0, 1); by default the sum of the reported deltas.

    Returns
    -------
    spent : PrivacySpent
        Total with tight composition, and its ledger; unpacks as ``epsilon, delta`` if complete.

    Raises
    ------
    ValueError
        If there is nothing to add, the adjacencies or units differ, or `cv` is not the `cv` of a
        search.
    TypeError
        If an estimator is not fitted, has no ledger and is not a search, or has no private step;
        or if `cv` is of another type.

    See Also
    --------
    Ledger : What was released, at what price.

    Notes
    -----
    Fits of a search or of a cross-validation keep no ledger. They are composed by their
    parameters, as (epsilon, delta)-DP in every private step, which is an upper bound. Gaussian
    fits cost less together, and a shared ``PrivacyBudget(composition="gaussian")`` uses that.
    Failed fits of a search are counted; if the whole search failed, there is nothing to count
    here, but budgets were spent.

    Fits with the same seed share their noise: then epsilon is infinite, and the text has the
    reason. This applies to all fits of a cross-validation, or of a search, of an estimator with a
    seed. A seed of a single fit does not change the total, and is listed in `not_covered`.

    Uses of exact scores on private rows have no price. They are listed in `not_covered` of the
    result: the choice of the winner, the scores themselves, stratified splits, and splits that the
    numbers of rows of groups decide. A search with
    private scorers (:func:`~skdp.metrics.make_dp_scorer`) pays for every score, and nothing more
    for its choice.

    Examples
    --------
    >>> from skdp import DPMean, privacy_spent
    >>> a = DPMean(epsilon=0.3, mechanism="gaussian", data_norm=1.0).fit([[0.1], [0.2]])
    >>> b = DPMean(epsilon=0.4, mechanism="gaussian", data_norm=1.0).fit([[0.1], [0.2]])
    >>> epsilon, delta = privacy_spent(a, b)
    >>> epsilon < 0.3 + 0.4
    True
    >>> privacy_spent(DPMean(epsilon=0.1, data_norm=1.0), cv=5).n_fits
    5
    """
    if not estimators:
        raise ValueError("privacy_spent needs at least one fitted estimator.")
    total = _Total(cv, None if cv is None else count_splits(cv))
    for estimator in estimators:
        total.add(estimator)
    total.add_missing()
    # rounded up: rounded to nearest it may be less than what was spent
    at = sum_up(total.deltas) if delta is None else check_delta(delta)
    not_covered = tuple(dict.fromkeys(total.not_covered))
    epsilon, counts = total.ledger.epsilon(at), (total.n_fits, total.most_copies)
    return PrivacySpent(epsilon, at, total.ledger, not_covered, *counts)


@dataclass
class _Total:
    """Running total, with the cross-validation of every estimator."""

    cv: Any
    n_splits: int | None
    ledger: Ledger = field(default_factory=Ledger)
    deltas: list[tuple[float, int]] = field(default_factory=list)
    not_covered: list[NotCovered] = field(default_factory=list)
    n_fits: int = 0
    most_copies: int = 1
    # of one estimator: ledgers that were counted with whose they are, and parts
    counted: list[tuple[Ledger, Any]] = field(default_factory=list)
    # of all estimators: the fits that were counted, and private steps with what went before them
    fits: set[str] = field(default_factory=set)
    behind: list[tuple[str | None, Any, "FitNote"]] = field(default_factory=list)
    seen: dict[int, Any] = field(default_factory=dict)
    #: whether what is added may be without what holds it
    alone: bool = True

    def add(self, estimator: Any) -> None:
        """Add the fits of a cross-validation, and the kept fit."""
        self.counted, self.seen = [], {}
        if self.n_splits is None or is_search(estimator):
            self._add_fitted(estimator)
            return
        self._add_lost(estimator, [{}], self.n_splits, self.cv, None, NotCovered.scored())
        if keeps_ledgers(estimator):
            self._add_fitted(estimator)

    def add_missing(self) -> None:
        """Name what went before counted fits in their pipelines, and was not counted."""
        named = {(item.kind, item.step) for item in self.not_covered}
        for step, part, note in self.behind:
            self.ledger = self.ledger.assume(*note.assumptions)
            for before in note.before:
                if before.item is not None:
                    # steps inside of a meta-estimator are named by that
                    places = (before.item.kind, before.item.step), (before.item.kind, step)
                    if not named.intersection(places):
                        self.not_covered.append(before.item)
                elif before.fit not in self.fits and ("fits", before.step) not in named:
                    self.not_covered.append(NotCovered.missing(before, step, part))

    def _add_fitted(self, estimator: Any, held: "_Held | None" = None) -> None:
        """Add the price of one fit; `held` is its container, if any."""
        own = False
        for step, holder in holders_of_steps(estimator):
            whose = step if held is None else held.step
            self.not_covered += about_holder(whose, holder)
        for step, part in leaves(estimator):
            whose = step if held is None else held.step
            if hasattr(part, "ledger_"):
                own |= self._add_ledger(part, whose, held)
            elif is_search(part) and hasattr(part, "cv_results_"):
                self._add_search(part, whose, held)
            elif learns_nothing(part):
                self.ledger = self.ledger.assume(*assumptions_of(part, name_of(step, part)))
            elif keeps_ledgers(part):
                self._add_held(part, whose, held)
            elif held is None and (part is estimator or not was_fitted(part)):
                raise TypeError(
                    f"{name_of(step, part)} has no ledger_: it is not fitted, or keeps none, and "
                    "no private estimator that it keeps is fitted."
                )
            else:
                name = None if held is None else f"{type(part).__name__} inside of {held.kind}"
                self.not_covered.append(NotCovered.learned(whose, part, name))
        self.n_fits += own

    def _add_ledger(self, part: Any, step: str | None, held: "_Held | None") -> bool:
        """Add the ledger of a private estimator, unless it was added; return whether it was new."""
        ledger = part.ledger_
        note = getattr(part, "_fit_note", None)
        if note is not None:
            self.fits.add(note.identity)
            self.behind.append((step, part, note))
            # what holds it was not passed
            for kind, _ in note.inside if held is None and self.alone else ():
                self.not_covered.append(NotCovered.left_alone(step, part, kind))
        # steps that were chosen together have their ledger in common; a step that stands in two
        # places was fitted twice
        if any(ledger is other and part is not owner for other, owner in self.counted):
            return False
        self.counted.append((ledger, part))
        self._add_priced(part, step, held, ledger, part.privacy_spent_[1])
        # a search has the ledger of what it fits
        inner = [leaf for _, leaf in leaves(part.estimator, {})] if is_private_search(part) else []
        for one in (part, *inner):
            if overrides_fit(one):
                self.not_covered.append(NotCovered.left_out(step, one, OVERRIDDEN))
        if ledger.seeded:
            writer = None if held is None else held.writer
            self.not_covered.append(NotCovered.seeded(step, part, writer))
        return True

    def _add_priced(
        self,
        part: Any,
        step: str | None,
        held: "_Held | None",
        ledger: Ledger,
        delta: float,
        times: int = 1,
    ) -> None:
        """Add a ledger, at the price for a row with the given number of copies."""
        copies = times if held is None else times * held.copies
        drawn = held is not None and held.draws
        priced = for_copies(ledger, copies, delta)
        if priced is None or (drawn and (ledger.unit == "group" or _counts_rows(ledger))):
            self.not_covered.append(NotCovered.repeated(step, part, copies, ledger))
            priced, copies = (ledger, delta), 1
        units = {self.ledger.unit, priced[0].unit} - {None}
        if len(units) > 1:
            # what protects a row says nothing of somebody who has several
            raise ValueError(
                f"a ledger protects one unit; got {priced[0].unit}s for {name_of(step, part)}, and "
                f"{self.ledger.unit}s before. Pass groups to the fits of all steps, as in "
                "pipeline.fit(X, y, step__groups=groups), or to none."
            )
        self.ledger += priced[0]
        self.deltas.append((priced[1], 1))
        self.most_copies = max(self.most_copies, copies)

    def _add_held(self, holder: Any, step: str | None, held: "_Held | None") -> None:
        """Add the kept fits of a meta-estimator, and list its other work."""
        kind = type(holder).__name__
        coders, template = False, None
        if "BaseEnsemble" in sklearn_bases(holder):
            template = getattr(holder, "estimator_", None)
            # copies of a FrozenEstimator are the same object, which was fitted
            if any(part is template for part in getattr(holder, "estimators_", ())):
                template = None
        outer = held or _Held(step, kind)
        writer = kind if writes_seeds(holder) else outer.writer
        draws, copies = drawn_rows(holder)
        for part in kept_parts(holder):
            # what has no ledger and is private was never fitted
            unfitted = part is template or (is_private(part) and not hasattr(part, "ledger_"))
            if unfitted or id(part) in self.seen:
                continue
            self.seen[id(part)] = part
            if type(part).__name__ in LABEL_CODERS:
                coders = True
                continue
            times = outer.copies * copies.get(id(part), 1)
            self._add_fitted(part, _Held(step, kind, writer, times, draws or outer.draws))
        if coders or "classes_" in vars(holder):
            self.ledger = self.ledger.assume(f"the set of class labels, which {kind} read from y")
        self._add_changed(holder, kept_parts(holder), step)
        if (rest := what_else(holder)) is not None:
            self.not_covered.append(NotCovered.left_out(step, holder, rest))

    def _add_changed(self, holder: Any, parts: Sequence[Any], step: str | None) -> None:
        """Name a meta-estimator whose parameters were changed after it had fitted its parts."""
        if changed := changed_parameters(holder, parts):
            names = ", ".join(changed)
            what = f"its parameters were changed after the fit ({names}). Set them back"
            self.not_covered.append(NotCovered.left_out(step, holder, what))

    def _add_search(self, search: Any, step: str | None, held: "_Held | None" = None) -> None:
        """Add all fits of a search of scikit-learn."""
        if self.n_splits not in (None, search.n_splits_):
            raise ValueError(
                f"cv must be None for {name_of(step, search)}, or what it was fitted with: "
                f"{search.n_splits_} splits; got {self.n_splits}. Of searches that were "
                "cross-validated, pass all."
            )
        # every round of a halving search has its own entries there
        settings, n_each, cv = search.cv_results_["params"], search.n_splits_, search.cv
        exact, paid = scorers_of(search)
        choice = NotCovered.chosen(step) if exact else None
        self.not_covered += about_holder(step, search)
        self.ledger = self.ledger.assume(*labels_for_resources(search))
        try:
            grouped = got_groups(getattr(search, "best_estimator_", None))
            self._add_lost(search.estimator, settings, n_each, cv, step, choice, held, grouped)
            if not hasattr(search, "best_estimator_"):
                self.ledger = self.ledger.assume(
                    f"the parameters of what {type(search).__name__} fitted, as they are now"
                )
            elif changed_since(search):
                text = (
                    f"the fits of {name_of(step, search)}: the parameters of its estimator were "
                    "changed after them, so their price is unknown. Pass a clone to the search"
                )
                self.not_covered.append(NotCovered("fits", step, text))
            if paid:
                ledger = price_of_scores(search, paid)
                delta = sum_up((r.noise.delta, r.count) for r in ledger.releases)
                times = copies_in_splits(cv, tested=True) or 1
                self._add_priced(search, step, held, ledger, delta, times)
        except TypeError:
            if held is None:
                raise
            text = f"the fits of {type(search).__name__} inside of {held.kind}, at an unknown price"
            self.not_covered.append(NotCovered("fits", step, text))
            return
        if hasattr(search, "best_estimator_"):
            self._add_changed(search, [search.best_estimator_], step)
            before, self.alone = self.alone, False
            self._add_fitted(search.best_estimator_, held)
            self.alone = before

    def _add_lost(
        self,
        estimator: Any,
        settings: list[dict[str, Any]],
        n_each: int,
        cv: Any,
        step: str | None,
        use: NotCovered | None,
        held: "_Held | None" = None,
        grouped: bool = False,
    ) -> None:
        """Add fits without kept ledgers, and the use of their scores."""
        ledger, steps, n_fits = price_of_fits(estimator, settings, n_each, grouped)
        not_covered, assumptions = about_splits(cv, estimator, step, grouped)
        delta = sum_up((release.noise.delta, release.count) for release in ledger.releases)
        if (times := copies_in_splits(cv)) is None:
            not_covered = (*not_covered, NotCovered.unknown_splits(step, cv))
        if _counts_rows(ledger):
            not_covered = (*not_covered, NotCovered.counted_splits(step))
        elif ledger.unit == "group" and sizes_decide(cv):
            not_covered = (*not_covered, NotCovered.sized_splits(step))
        for own_step, holder in holders_of_steps(estimator):
            not_covered = (*not_covered, *about_holder(step or own_step, holder))
        ledger = ledger.assume(*assumptions)
        self._add_priced(estimator, step, held, ledger, delta, times or 1)
        self.not_covered += [*steps, *([] if use is None else [use]), *not_covered]
        self.n_fits += n_fits


@dataclass(frozen=True)
class _Held:
    """Container of a fit: the step and the class of a meta-estimator.

    `writer` is the class that wrote seeds into the fit, `copies` bounds the copies of a row in the
    fit, and `draws` is whether its rows were drawn.
    """

    step: str | None
    kind: str
    writer: str | None = None
    copies: int = 1
    draws: bool = False


# Fits whose ledgers were not kept.


def count_splits(cv: Any) -> int:
    """Return the number of splits of a cross-validation.

    `cv` is as in scikit-learn, except None. Other types raise a TypeError. A ValueError is raised
    if there are no splits, or if their number depends on the data.
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
        raise TypeError(f"cv must be {allowed}; got {a_kind(cv)}.")
    if not len(cv) or not all(isinstance(s, Sized) and len(s) == 2 for s in cv):
        raise ValueError(f"cv must be {allowed}; got {len(cv)} entries that are not such pairs.")
    return len(cv)


def about_splits(
    cv: Any, estimator: Any, step: str | None, grouped: bool = False
) -> tuple[tuple[NotCovered, ...], tuple[str, ...]]:
    """Return the uncovered parts of the splits, and the assumptions about them.

    Stratified splits are not covered; a plain number of folds means such splits for a classifier.
    Neither are groups for splits that the fits did not get; `grouped` is whether they did. Splits
    given as positions are assumed to be public.
    """
    cv = _unwrapped(cv)
    if cv is None or isinstance(cv, Integral):
        return (NotCovered.stratified(step),) if is_classifier(estimator) else (), ()
    if not hasattr(cv, "get_n_splits"):
        return (), ("splits, which were given as positions of rows",)
    bases = {base.__name__ for base in type(cv).__mro__}
    found = [NotCovered.stratified(step)] * any("Stratified" in name for name in bases)
    # the splits respect groups, and the fits know of none
    if (
        not grouped
        and "GroupsConsumerMixin" in bases
        and any(
            takes_groups(leaf) and not asks_for_groups(leaf)
            for _, leaf in leaves(estimator, {})
            if is_private(leaf)
        )
    ):
        found.append(NotCovered.ungrouped(step, cv))
    return tuple(found), ()


def copies_in_splits(cv: Any, tested: bool = False) -> int | None:
    """Return a bound on the copies of a row in one training split; None if unknown.

    With `tested`, in one set of rows, be they trained on or scored. scikit-learn's splitters repeat
    none. In a list of positions repeats can be counted.
    """
    cv = _unwrapped(cv)
    if cv is None or isinstance(cv, Integral):
        return 1
    if hasattr(cv, "get_n_splits"):
        return 1 if type(cv).__module__.startswith("sklearn.") else None
    if not isinstance(cv, Sequence | np.ndarray):
        return None
    most = 1
    for rows in (np.asarray(part) for split in cv for part in split[: 1 + tested]):
        if rows.dtype.kind not in "biu" or (rows.dtype.kind == "i" and (rows < 0).any()):
            return None
        if rows.dtype.kind != "b":
            most = max(most, int(np.max(np.unique(rows, return_counts=True)[1], initial=1)))
    return most


def sizes_decide(cv: Any) -> bool:
    """Return whether the number of rows of a group decides into which splits other groups go.

    Splits by position do, but for those that were given, and those that make folds of one size.
    """
    cv = _unwrapped(cv)
    if cv is None or isinstance(cv, Integral):
        return True
    bases = {base.__name__ for base in type(cv).__mro__}
    if "GroupsConsumerMixin" in bases:
        return "GroupKFold" in bases and not getattr(cv, "shuffle", False)
    return hasattr(cv, "get_n_splits") and "PredefinedSplit" not in bases


def _unwrapped(cv: Any) -> Any:
    """Return the list of splits that `check_cv` of scikit-learn put into a splitter."""
    return cv.cv if type(cv).__name__ == "_CVIterableWrapper" else cv


def changed_since(search: Any) -> bool:
    """Return whether the price of what a search fits has changed since it fitted the best."""
    told = []
    for fitted, given in ((search.estimator, search.best_params_), (search.best_estimator_, {})):
        releases = price_of_fits(fitted, [given], 1)[0].releases
        # a generator goes on
        told.append(Counter(replace(release, stream=None) for release in releases))
    return told[0] != told[1]


def labels_for_resources(search: Any) -> tuple[str, ...]:
    """Return what a halving search read from the rows before it began: how many labels there are.

    The least number of rows of a round is a multiple of that.
    """
    reads = isinstance(getattr(search, "min_resources", None), str)
    if not (reads and search.resource == "n_samples" and is_classifier(search.estimator)):
        return ()
    return (f"the set of class labels, which {type(search).__name__} read from y",)


def is_classifier(estimator: Any) -> bool:
    """Return whether scikit-learn takes an estimator for a classifier."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    kind = tags().estimator_type if tags else getattr(estimator, "_estimator_type", None)
    return bool(kind == "classifier")


def _adjacency(leaf: Any) -> str:
    """Return the adjacency of a private estimator: its own, or that of what it fits."""
    if hasattr(leaf, "adjacency"):
        return str(leaf.adjacency)
    inner = leaves(leaf.estimator, {}) if hasattr(leaf, "estimator") else ()
    # what has none consists of reports that rows make on their own
    return next((_adjacency(part) for _, part in inner if is_private(part)), "local")


def _granted(step: str | None, leaf: Any, grouped: bool) -> Release:
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
    seed = getattr(leaf, "random_state", None)
    return Release(
        query=f"fits of {type(leaf).__name__}",
        size=1,
        adjacency=_adjacency(leaf),
        stated_sensitivity=math.inf,
        theorem="every fit keeps to its parameters epsilon and delta",
        noise=DeclaredTotal("fits", 0.0, 1.0, math.inf, math.inf, 0.0, epsilon, delta),
        numerics="as in the fits",
        seeded=seed is not None,
        unit="group" if grouped or asks_for_groups(leaf) else "row",
        # clones of a generator begin where it stands
        stream=noise_identity(seed, type(leaf).__name__),
    )


def price_of_fits(
    estimator: Any, settings: Sequence[Mapping[str, Any]], n_each: int, grouped: bool = False
) -> tuple[Ledger, list[NotCovered], int]:
    """Return a bound on the price of fits, and their uncovered parts.

    Parameters
    ----------
    estimator : estimator
        Fitted or not: only its parameters are read.
    settings : sequence of dict
        Parameters that were replaced, as for `set_params`: one dictionary per candidate.
    n_each : int
        Number of fits of every candidate.
    grouped : bool, default=False
        Whether all fits were passed groups, whoever asked.

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
    has_private_steps, assumed = False, list[str]()
    for given in settings:
        found = list(leaves(estimator, given))
        has_private_steps |= any(is_private(leaf) for _, leaf in found)
        n_fits += n_each * any(is_private(leaf) and not is_free(leaf) for _, leaf in found)
        for step, leaf in found:
            if is_free(leaf):
                continue
            if is_private(leaf):
                prices[_granted(step, leaf, grouped)] += n_each
                if overrides_fit(leaf):
                    not_covered[NotCovered.left_out(step, leaf, OVERRIDDEN)] = None
                if getattr(leaf, "random_state", None) is not None:
                    not_covered[NotCovered.seeded(step, leaf)] = None
                if getattr(leaf, "new_rows", None) == "randomise":
                    not_covered[NotCovered.reported(step, leaf)] = None
            elif not learns_nothing(leaf):
                not_covered[NotCovered.learned(step, leaf)] = None
            else:
                assumed += assumptions_of(leaf, name_of(step, leaf))
    if not has_private_steps:
        raise TypeError(
            f"fits of {type(estimator).__name__} have no private step, so there is no price to add "
            "up. Before a fit only pipelines, unions and column transformers are searched for "
            "private steps."
        )
    ledger, drawn = Ledger().assume(*assumed), Counter[str]()
    for release, count in prices.items():
        ledger = ledger.append(replace(release, count=count))
        if release.stream is not None:
            drawn[release.stream] += count
    shared = [stream for stream, count in drawn.items() if count > 1]
    return ledger.with_shared_noise(*shared), list(not_covered), n_fits


def scorers_of(search: Any) -> tuple[bool, list[Any]]:
    """Return whether a fitted search knows exact scores, and its scorers that pay for theirs."""
    scorer = search.scorer_
    scorers = list(scorer.values()) if isinstance(scorer, Mapping) else [scorer]
    paid = [one for one in scorers if hasattr(one, "terms_of_score")]
    return len(paid) < len(scorers), paid


def price_of_scores(search: Any, scorers: Sequence[Any]) -> Ledger:
    """Return what scorers that pay have spent in a search, at most.

    Every candidate is scored once on every fold, by each of them; on the rows that it was fitted to
    as well, if the search returns those scores.
    """
    count = len(search.cv_results_["params"]) * search.n_splits_ * (1 + search.return_train_score)
    ledger = Ledger()
    for scorer in scorers:
        terms = scorer.terms_of_score
        epsilon, delta = check_epsilon(terms["epsilon"]), check_delta(terms["delta"])
        release = Release(
            query=f"scores of fits, {terms['name']}",
            size=1,
            adjacency=terms["adjacency"],
            stated_sensitivity=math.inf,
            theorem="every score keeps to its parameters epsilon and delta",
            noise=DeclaredTotal("fits", 0.0, 1.0, math.inf, math.inf, 0.0, epsilon, delta),
            numerics="as in the scores",
            seeded=False,
            count=count,
            unit=terms["unit"],
        )
        ledger = ledger.append(release)
    return ledger


# Steps of pipelines and of whatever else holds steps.


def about_holder(step: str | None, holder: Any) -> list[NotCovered]:
    """Return the uncovered parts of what holds steps, or searches, besides these."""
    found = [NotCovered.decided(step, holder, what) for what in what_rows_decide(holder)]
    if watchers(holder):
        what = (
            "its callbacks, which were handed the rows and may keep what they computed. Set them "
            "on the private steps, which hand them none"
        )
        found.append(NotCovered.left_out(step, holder, what))
    # pipelines of other libraries have steps, too
    if learns_before(type(holder).__mro__, {"sklearn", "imblearn"}) is not False:
        what = "its class has a fit of its own, which may do more than to fit what it holds"
        found.append(NotCovered.left_out(step, holder, what))
    return found


@dataclass(frozen=True)
class Before:
    """Something that went before a fit in its pipeline, and learned from the rows.

    Parameters
    ----------
    step : str or None
        Name of the step.
    name : str
        What a sentence calls it.
    fit : str or None
        Identity of a private fit.
    item : NotCovered or None
        What has no price.
    """

    step: str | None
    name: str
    fit: str | None = None
    item: NotCovered | None = None


@dataclass(frozen=True)
class FitNote:
    """The identity of a private fit, what went before it in its pipeline, and what that assumes.

    A slice of a pipeline, or a pipeline with a step that was replaced, has no other trace of the
    steps that its later ones were fitted behind.
    """

    identity: str
    before: tuple[Before, ...] = ()
    assumptions: tuple[str, ...] = ()
    #: meta-estimators that have decided about it, with their parameters
    inside: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What went before, without identities."""
        return (*(one.name for one in self.before), *(kind for kind, _ in self.inside))

    def among(self, fits: set[str]) -> "FitNote":
        """Return the note without fits whose price is on the ledger of this one."""
        return replace(self, before=tuple(one for one in self.before if one.fit not in fits))


#: of this process; no fit draws bits for its identity, and none tells how many went before it
_KEY, _FITS = SystemBits().words(4).tobytes(), itertools.count()


def _identity() -> str:
    """Return the identity of a fit, which no other one has, here or in another process."""
    place = f"{os.getpid()} {next(_FITS)}".encode()
    return hashlib.blake2b(place, key=_KEY, digest_size=16).hexdigest()


def note_of_fit(ledger: Ledger) -> FitNote:
    """Return the note of the fit that calls this: it looks for estimators among the callers.

    Parameters
    ----------
    ledger : Ledger
        Of the fit. One with a seed has an identity that follows from that: it can be repeated.
    """
    before, assumptions, inside = list[Before](), list[str](), list[Any]()
    frame, seen = sys._getframe(1), set[int]()
    while frame is not None:
        module, method = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if method in _FITTING and module.partition(".")[0] in ("sklearn", "imblearn"):
            holder: Any = frame.f_locals.get("self")
            new = holder is not None and id(holder) not in seen
            seen.add(id(holder))
            if new and module in _OF_PIPELINES and hasattr(holder, "steps"):
                last = len(holder.steps) - 1
                place = frame.f_locals.get("step_idx", last) if method == "_fit" else last
                found = steps_before(holder, place)
                before += found.before
                assumptions += found.assumptions
            elif new and decides_about_fits(holder):
                inside.append((type(holder).__name__, plain_parameters_of(holder)))
        frame = frame.f_back  # type: ignore[assignment]
    seeds = sorted({release.stream for release in ledger.releases if release.stream is not None})
    identity = " ".join(seeds) if seeds else _identity()
    return FitNote(identity, tuple(before), tuple(dict.fromkeys(assumptions)), tuple(inside))


#: parameters of meta-estimators from which no total follows
_OF_NO_PRICE = {"n_jobs", "verbose", "pre_dispatch", "error_score"}


def plain_parameters_of(holder: Any) -> tuple[tuple[str, str], ...]:
    """Return the parameters of a meta-estimator as text; of objects the names of their classes."""
    given = sorted(holder.get_params(deep=False).items())
    plain = bool | int | float | str | None
    return tuple(
        (name, repr(value) if isinstance(value, plain) else type(value).__name__)
        for name, value in given
        if name not in _OF_NO_PRICE
    )


def changed_parameters(holder: Any, parts: Sequence[Any]) -> list[str]:
    """Return which parameters of a meta-estimator are others than when it fitted what it keeps."""
    changed = dict[str, None]()
    if "BaseEstimator" not in sklearn_bases(holder) or getattr(holder, "warm_start", False):
        # after several fits there are parts of each
        return []
    now = plain_parameters_of(holder)
    for fitted in (one for part in parts for one in fits_inside(part)):
        noted = getattr(fitted, "_fit_note", FitNote(""))
        then = [given for kind, given in noted.inside if kind == type(holder).__name__]
        if then and now not in then:
            changed |= dict.fromkeys(name for name, _ in {*now} ^ {*then[0]})
    return sorted(changed)


#: modules with pipelines that fit their steps one after another, and the methods that do
_OF_PIPELINES = {"sklearn.pipeline", "imblearn.pipeline"}
_FITTING = {"_fit", "fit", "fit_transform", "fit_predict", "fit_resample"}


def steps_before(pipeline: Any, place: int) -> FitNote:
    """Return what has learned from rows among the first fitted steps of a pipeline.

    And what is assumed about those that learn nothing.
    """
    total, first = _Total(None, None, alone=False), copy.copy(pipeline)
    first.steps = pipeline.steps[:place]
    try:
        total._add_fitted(first)
    except (TypeError, ValueError):
        text = "the steps before, at an unknown price"
        total.not_covered.append(NotCovered("fits", None, text))
    found = [Before(step, name_of(step, part), note.identity) for step, part, note in total.behind]
    priceless = [item for item in total.not_covered if item.kind not in ("seed", "stored seed")]
    found += [Before(item.step, item.text, item=item) for item in priceless]
    return FitNote("", tuple(found), total.ledger.assumptions)


#: what is said of a private estimator of a class with a `fit` of its own
OVERRIDDEN = (
    "its class has a fit or transform of its own, which may read rows before or after the private "
    "one. Make what that does a step of a pipeline"
)


# What meta-estimators keep of their fits, and what else they do.


# Steps that learn nothing from rows.

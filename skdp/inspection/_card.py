# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Privacy cards: the privacy claim of a fitted model, for a reader of nothing else.

`privacy_card` collects facts in a dictionary for JSON: the claim, the ledger, public parameters.
Sentences are made from ledgers, and Markdown from facts. A card reads no rows.
"""

import copy
import datetime
import html
import json
import math
import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from importlib.metadata import version
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, ndtr
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skdp._typing import Estimator
from skdp.inspection._drawing import axes_for
from skdp.privacy.books.ledger import SHARED_NOISE, Ledger
from skdp.privacy.books.parts import (
    fits_inside,
    is_search,
    keeps_ledgers,
    learns_nothing,
    leaves,
    multiplies_rows,
)
from skdp.privacy.books.spent import NotCovered, privacy_spent
from skdp.privacy.books.texts import a_kind
from skdp.solvers.base import Solver


class PrivacyCard:
    """Privacy claim of a fitted model, with its assumptions and reasons.

    Made by `privacy_card`. A card contains public facts: shapes, parameters, prices, theorems, and
    the ledger.

    Parameters
    ----------
    facts : dict
        All contents of the card, as returned by `to_dict`.

    See Also
    --------
    privacy_card : Make one.
    """

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = copy.deepcopy(facts)

    @property
    def claim(self) -> str:
        """The claim in words."""
        return self._facts["claim"]["sentence"]

    @property
    def odds(self) -> str:
        """The claim in odds: the certainty of a guesser after the release, from 50 % before."""
        return self._facts["claim"]["odds"]["sentence"]

    def plot(self, ax: Any = None) -> Any:
        """Draw the claim in odds: right guesses about a row, of a hundred.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes; None makes a new figure.

        Returns
        -------
        ax : matplotlib.axes.Axes
            Axes with a hundred dots for guesses before the release, and a hundred for guesses
            after it.

        Notes
        -----
        The form is from [1]_: in an experiment with 963 people, explanations by odds were
        understood best.

        References
        ----------
        .. [1] P. Nanayakkara, M. A. Smart, R. Cummings, G. Kaptchuk and E. M. Redmiles, "What are
           the chances? Explaining the epsilon parameter in differential privacy", USENIX Security
           2023.
        """
        return plot_odds(self._facts["claim"]["odds"], axes_for(ax, "PrivacyCard.plot", 4.8, 2.9))

    def to_dict(self) -> dict[str, Any]:
        """Return all contents of the card.

        Returns
        -------
        facts : dict
            Facts in built-in types, for JSON. ``facts["schema"]`` is the version of the fields,
            and their meaning never changes. Infinity is None.
        """
        return copy.deepcopy(self._facts)

    def to_json(self) -> str:
        """Return the card as a JSON document.

        Returns
        -------
        text : str
            Document with all digits of all numbers.
        """
        return json.dumps(self._facts, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_markdown(self) -> str:
        """Return the card as a Markdown document.

        Returns
        -------
        text : str
            Document with six digits of every number: prices are rounded up, noise down.
        """
        return as_markdown(self._facts)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the card to a file.

        Parameters
        ----------
        path : str or PathLike
            Path with the suffix .md (Markdown) or .json. An existing file is replaced.

        Returns
        -------
        path : Path
            Path of the file.

        Raises
        ------
        ValueError
            If the suffix is another one.
        """
        path = Path(path)
        writers = {".md": self.to_markdown, ".json": self.to_json}
        if path.suffix.lower() not in writers:
            raise ValueError(f"path must end in .md or .json; got {path.name!r}.")
        path.write_text(writers[path.suffix.lower()](), encoding="utf-8")
        return path

    def to_registry(
        self,
        *,
        data_curators: Sequence[str] = (),
        description: str = "",
        intended_use: str = "",
        data_product_region: str = "",
        registry_authors: Sequence[str] = (),
        data_product_type: str = "Machine learning model",
        status: str = "Draft",
    ) -> dict[str, Any]:
        """Return a record for the registry of deployments of differential privacy.

        Parameters
        ----------
        data_curators : sequence of str, default=()
            Publishers of the model.
        description, intended_use, data_product_region : str, default=""
            Description of the model, its purpose, and the region of the people or of the
            applicable law.
        registry_authors : sequence of str, default=()
            Authors of the record.
        data_product_type : str, default="Machine learning model"
            "Summary statistics" for means, quantiles and the like.
        status : str, default="Draft"
            Status of the record.

        Returns
        -------
        record : dict
            Record of tier 3, in built-in types; ``yaml.safe_dump(record, sort_keys=False)`` makes
            its file. Facts neither on the card nor given here are an empty text, or one "" in a
            list, as in the template of the registry; the date is then 1900-01-01.

        Raises
        ------
        ValueError
            If the card claims nothing.

        Notes
        -----
        The fields are from ``schemas/deployments-schema.yaml`` in [1]_ at commit 3e9c812 (15 July
        2026). Its entries are at https://registry.opendp.org.

        References
        ----------
        .. [1] OpenDP, "deployments-registry-data", https://github.com/opendp/deployments-registry-data.

        Examples
        --------
        >>> from skdp import DPMean, privacy_card
        >>> mean = DPMean(epsilon=0.5, mechanism="laplace", bounds=(0, 1)).fit([[0.1], [0.2]])
        >>> card = privacy_card(mean, name="a mean")
        >>> record = card.to_registry(data_product_type="Summary statistics")
        >>> record["url_slug"], record["deployment"]["dp_variant"]["variant_name"]
        ('a_mean', 'Pure DP')
        >>> record["deployment"]["privacy_loss"]["privacy_parameters"]
        {'epsilon': 0.5}
        """
        if self._facts["claim"]["epsilon"] is None:
            raise ValueError(f"nothing is claimed, so there is nothing to register: {self.claim}")
        basic = {
            "name": self._facts["name"],
            "data_curators": list(data_curators) or [""],
            "intended_use": intended_use,
            "data_product_type": data_product_type,
            "data_product_region": data_product_region,
            "description": description,
            "publication_date": _registry_date(self._facts["date"]),
        }
        return registry_record(self._facts, basic, list(registry_authors) or [""], status)

    def __eq__(self, other):
        return self._facts == other._facts if isinstance(other, PrivacyCard) else NotImplemented

    def __str__(self):
        return self.to_markdown()

    def _repr_markdown_(self):
        return self.to_markdown()

    def _repr_html_(self):
        return as_html(self.to_markdown())

    def __repr__(self):
        claim = self._facts["claim"]
        promised = f"status {claim['status']!r}"
        if claim["epsilon"] is not None:
            promised += f", epsilon={upward(claim['epsilon'])}, delta={upward(claim['delta'])}"
        return f"<PrivacyCard of {self._facts['name']}: {promised}>"


def privacy_card(
    estimator: Estimator,
    *others: Estimator,
    name: str | None = None,
    delta: float | None = None,
    date: str | datetime.date | None = None,
) -> PrivacyCard:
    """Write the privacy claim of a fitted model, for a reviewer who reads nothing else.

    Parameters
    ----------
    estimator : estimator, Pipeline or search
        Fitted: an estimator of skdp, a pipeline or ColumnTransformer with such estimators, or a
        search. For a search of scikit-learn, the card states the price of its fits, and no claim,
        because its choice is not charged.
    *others : estimator or scores
        Other releases about the same people, such as :ref:`scores <scores>`: the card claims the
        total of all, and lists them. Not with a search of scikit-learn.
    name : str, default=None
        Name of the model; by default the name of its class.
    delta : float, default=None
        Delta of the claimed epsilon, in [0, 1); by default the sum of the spent deltas.
    date : str or datetime.date, default=None
        Date on the card, unchanged. None by default, so that equal models have equal cards.

    Returns
    -------
    card : PrivacyCard
        Print it, or save it as Markdown or JSON; Jupyter shows it.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If the first argument is not an estimator, or has no ledger; or if `name` or `date` is of
        another type.
    ValueError
        If delta is out of range, or the adjacencies of the steps differ.

    See Also
    --------
    privacy_spent : The total alone.
    Ledger : The releases alone.

    Notes
    -----
    A card shows no coefficients, no choices of a search, and no labels except those in parameters.
    All its contents are public, or on the ledger: if a release is scaled by an earlier one (for
    example ``mechanism="coinpress"``), its scale is on the ledger, and paid for. The value of a
    `random_state` is not shown, because it reveals the noise. Arrays among the parameters are
    shown by their shape.

    A card states the ledger of the model. It is no proof that the ledger is from the fit: the
    owner of a model can change it.

    Examples
    --------
    >>> from skdp import DPMean, privacy_card
    >>> card = privacy_card(DPMean(epsilon=0.5, data_norm=1.0).fit([[0.1], [0.2], [0.3]]))
    >>> card
    <PrivacyCard of DPMean: status 'holds', epsilon=0.5, delta=0>
    >>> card.to_dict()["claim"]["adjacency"]
    'replace-one'
    >>> print(card.to_markdown().splitlines()[0])
    # Privacy card: DPMean
    """
    if not (name is None or isinstance(name, str)):
        raise TypeError(f"name must be a str or None; got {a_kind(name)}.")
    if isinstance(date, datetime.date):
        date = date.isoformat()
    if not (date is None or isinstance(date, str)):
        raise TypeError(f"date must be a str, a date or None; got {a_kind(date)}.")
    for each in (estimator, *others):
        _check_card_input(each)
        if others and is_search(each):
            raise TypeError(
                f"a card of several estimators cannot claim a total with {type(each).__name__}, "
                "whose choice has no price. Make a card of it alone."
            )
    return PrivacyCard(card_facts(estimator, *others, name=name, delta=delta, date=date))


def _check_card_input(estimator):
    """Raise for objects without a card."""
    kind = type(estimator).__name__
    if isinstance(estimator, type):
        raise TypeError(
            f"privacy_card needs a fitted estimator; got the class {estimator.__name__}."
        )
    # what is fitted by another method holds fits all the same
    if not hasattr(estimator, "fit") and not keeps_ledgers(estimator):
        hint = " Pass the estimator that it belongs to." if isinstance(estimator, Ledger) else ""
        article = "an" if kind[0].lower() in "aeiou" else "a"
        raise TypeError(f"privacy_card needs a fitted estimator; got {article} {kind}.{hint}")
    if hasattr(estimator, "__sklearn_tags__"):
        try:
            check_is_fitted(estimator)
        except NotFittedError:
            raise
        except AttributeError:
            # of what only looks like an estimator, a last step for instance, the total tells
            pass
    ledger = getattr(estimator, "ledger_", None)
    if ledger is not None and not isinstance(ledger, Ledger):
        raise TypeError(f"ledger_ of {kind} must be a Ledger; got {a_kind(ledger)}.")
    if ledger is not None and not hasattr(estimator, "privacy_spent_"):
        raise TypeError(f"{kind} has a ledger_ but no privacy_spent_, its (epsilon, delta).")


# Facts, read off ledgers, parameters and shapes alone.


SCHEMA = "skdp.privacy_card/1"
#: where a claim is read off, besides its own delta
DELTAS = (0.0, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4)
# an accountant's event may list every release
_LONGEST_EVENT = 2000

_PUBLIC = (
    "the number of {unit}s",
    "the number and names of features, the data type and the memory layout of the input",
    "all parameters of every step, listed below, including bounds, norms and vocabularies",
)
_VERIFY = (
    "skdp.privacy_spent(model) computes the total again; model.ledger_ (of every step) has the "
    "releases.",
    "To check a Gaussian release by hand: mu = sensitivity / scale; T of them cost sqrt(T) mu; "
    "skdp.privacy.gdp_epsilon(mu, delta) is epsilon.",
    "An accountant of dp_accounting composes ledger_.dp_event independently.",
    "Why each sensitivity holds: docs/user_guide/proofs.rst and the pages of proofs after it. "
    "What is promised: docs/user_guide/what_is_promised.rst.",
    "For a lower bound, from fits to simulated rows: skdp.audit.audit_privacy, "
    "docs/user_guide/audits.rst.",
)


def card_facts(estimator, *others, name, delta, date):
    """Return all contents of a card, in built-in types.

    Parameters
    ----------
    estimator, *others : estimator
        Fitted.
    name, date : str or None, str or None
        As given by the user.
    delta : float or None
        Delta of the stated epsilon.

    Returns
    -------
    facts : dict
        Facts in the schema `SCHEMA`. A field never changes its meaning; new fields may be added.
    """
    kind = type(estimator).__name__
    whole = [estimator, *others]
    parts = [found for each in whole for found in leaves(each)]
    fits = [fit for each in whole for fit in fits_inside(each)]
    if is_search(estimator):
        ledger, delta, missing, sentence = search_facts(estimator, delta)
        status, epsilon, most_copies = NONE, math.inf, 1
    else:
        spent = privacy_spent(*whole, delta=delta)
        ledger, missing = spent.ledger, list(spent.uncovered)
        epsilon, delta, most_copies = spent.epsilon, spent.delta, spent.most_copies
        status, sentence = claim(ledger, epsilon, delta, missing, bool(fits))
    unit = ledger.unit
    claimed = status != NONE
    composed = _composition(ledger, delta)
    # the first is how many there are, which add-remove hides
    public = _PUBLIC[1:] if ledger.adjacency == "add-remove" else _PUBLIC
    return plain(
        {
            "schema": SCHEMA,
            "name": kind if name is None else name,
            "date": date,
            "estimator": kind,
            "claim": {
                "status": status,
                "sentence": sentence,
                "epsilon": epsilon if claimed else None,
                "delta": delta if claimed else None,
                "adjacency": ledger.adjacency,
                "adjacency_in_words": adjacency_in_words(ledger.adjacency, unit),
                "unit": unit,
                "seeded": ledger.seeded,
                "odds": odds(ledger, composed, claimed),
            },
            "local_claim": _local(ledger, delta, missing),
            "notes": notes(ledger, fits, most_copies),
            "not_covered": {
                "parts": [asdict(item) for item in missing],
                "never": list(NEVER_COVERED),
            },
            "assumptions": list(ledger.assumptions),
            "public": {
                "facts": [fact.format(unit=unit or "row") for fact in public],
                "n_features": getattr(estimator, "n_features_in_", None),
                "steps": [_step(step, part) for step, part in parts],
            },
            "ledger": [_entry(release) for release in ledger.releases],
            "composition": composed,
            "numerics": [
                {"kind": kind, "meaning": "; ".join(MEANINGS[t] for t in terms if t in MEANINGS)}
                for kind, terms in sorted(
                    {r.numerics: numerics_terms(r) for r in ledger.releases}.items()
                )
            ],
            "versions": versions(),
            "verify": list(_VERIFY),
        }
    )


def _local(ledger, delta, missing):
    """Return the claim towards receivers of reports; None without reports."""
    if not any(release.adjacency == "local" for release in ledger.releases):
        return None
    epsilon, pure = ledger.local_epsilon(delta), ledger.local_epsilon(0.0)
    if missing:
        epsilon = pure = math.inf
    return {
        "sentence": local_claim(ledger, epsilon, delta, pure),
        "epsilon": epsilon,
        "delta": delta if epsilon < math.inf else None,
        "pure_epsilon": pure,
    }


def _step(step, part):
    if hasattr(part, "ledger_"):
        role = "private: on the ledger"
    elif is_search(part):
        role = "chose by exact scores, which have no price"
    elif keeps_ledgers(part):
        role = "holds private fits, which are on the ledger"
    elif learns_nothing(part):
        role = "learns nothing from rows"
    elif multiplies_rows(part):
        role = "resampled rows: later steps may have read one several times"
    else:
        role = "learned from rows, not on the ledger"
    return {
        "name": type(part).__name__ if step is None else step,
        "estimator": type(part).__name__,
        "role": role,
        "parameters": shown_parameters(part) if hasattr(part, "get_params") else {},
    }


def _entry(release):
    """Return all fields of a release, and the probability of a row in its batch."""
    entry = asdict(release)
    sampling = release.noise.sampling
    if sampling is not None:
        entry["noise"]["sampling"]["rate"] = sampling.rate
    entry["noise"]["by_chance"] = release.noise.by_chance
    return entry


def _composition(ledger, delta):
    # a sum of shares is not quite the delta that was asked for
    deltas = sorted({*(d for d in DELTAS if upward(d) != upward(delta)), delta})
    return {
        "method": composition(ledger),
        "gdp": ledger.gdp,
        "rho": ledger.rho,
        "epsilon_at": [{"delta": d, "epsilon": ledger.epsilon(d)} for d in deltas],
        "dp_event": _event(ledger),
    }


def _event(ledger):
    text = str(ledger.dp_event) if ledger.releases else ""
    if len(text) <= _LONGEST_EVENT:
        return text
    return f"{text[:_LONGEST_EVENT]} ... ({len(text)} letters; all of it: ledger_.dp_event)"


def versions():
    """Return the current versions."""
    return {
        "skdp": sys.modules["skdp"].__version__,
        **{name: version(name) for name in ("scikit-learn", "numpy", "scipy", "dp-accounting")},
        "python": platform.python_version(),
    }


def search_facts(search, delta):
    """Return a bound on the price of the fits of a search, with explanations.

    Parameters
    ----------
    search : estimator
        A fitted search of scikit-learn.
    delta : float or None
        Delta of the stated epsilon.

    Returns
    -------
    ledger : Ledger
        Ledger with one line for all fits of a kind, except the last, by their parameters.
    delta : float
        Delta of the stated epsilon.
    not_covered : list of NotCovered
        Parts without a price.
    sentence : str
        Sentence that nothing is claimed.
    """
    kind, n_folds = type(search).__name__, search.n_splits_
    n_fits = len(search.cv_results_["params"]) * n_folds
    last = ", refitted the best" if search.refit else ""
    # which candidate won was learned from rows, and its ledger would tell
    bare = copy.copy(search)
    vars(bare).pop("best_estimator_", None)
    sentence = (
        f"NO (epsilon, delta) is claimed: {kind} made {n_fits} fits on {n_folds} folds{last}, and "
        "chose by exact scores on held-out rows. This choice has no price."
    )
    try:
        spent = privacy_spent(bare, delta=delta)
    except TypeError:
        # no private step, or one whose parameters do not tell its price
        sentence += " The price of the fits is not known."
        fits = NotCovered("fits", None, f"the fits of {kind}, whose price is not known")
        return Ledger(), delta or 0.0, [fits], sentence
    at = f"epsilon = {upward(spent.epsilon)} nats, delta = {upward(spent.delta)}"
    sentence += (
        f" Its fits{', except the last,' if last else ''} spent at most {at} together, by their "
        "parameters. This is the price of the fits, not a promise about the search."
    )
    return spent.ledger, spent.delta, list(spent.uncovered), sentence


def plain(value):
    """Return public numbers, texts and lists of them in types of JSON; None for non-finite ones.

    Parameters
    ----------
    value : object
        Built-in or numpy types, or lists, tuples and dictionaries of them.

    Returns
    -------
    plain : object
        Built-in types. Infinity and NaN are None, because JSON has neither.
    """
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    return None if value is None else str(value)


# Parameters of estimators: plain, short, and without seeds.


# longer lists say how long they are
_MOST_ENTRIES = 12
_MOST_LETTERS = 200
_DEEPEST = 6
_SEED = "set (not shown: anybody who knows a seed can remove the noise)"


def shown_parameters(estimator, depth=0):
    """Return the given parameters of an estimator.

    Parameters
    ----------
    estimator : estimator
        With ``get_params``.
    depth : int, default=0
        Number of enclosing estimators.

    Returns
    -------
    shown : dict of str to object
        Parameters in built-in types, in the order of names.
    """
    given = estimator.get_params(deep=False)
    return {name: shown(name, given[name], depth) for name in sorted(given)}


def shown(name, value, depth=0):
    """Return one parameter: short values unchanged, arrays by their shape, objects by type.

    Parameters
    ----------
    name : str
        Name of the parameter. The value of a `random_state` is never shown.
    value : object
        As given.
    depth : int, default=0
        Depth inside other values.

    Returns
    -------
    shown : object
        Of built-in types.
    """
    if name.endswith(("random_state", "seed")):
        return None if value is None else _SEED
    if isinstance(value, bool | np.bool_ | Integral) or value is None:
        return plain(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, str):
        cut = len(value) > _MOST_LETTERS
        return value[:_MOST_LETTERS] + f"... ({len(value)} letters)" if cut else value
    kind = type(value).__name__
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return f"{value.__module__}.{value.__qualname__}"
    if depth >= _DEEPEST:
        return f"{kind}, not shown"
    if hasattr(value, "get_params"):
        what = "solver" if isinstance(value, Solver) else "estimator"
        return {what: kind, "parameters": shown_parameters(value, depth + 1)}
    if hasattr(value, "shape"):
        return f"{kind} of shape {tuple(value.shape)}"
    if isinstance(value, dict | list | tuple | set | frozenset | range):
        return _container(name, value, kind, depth + 1)
    return f"object of type {kind}"


def _container(name, value, kind, depth):
    """Return a short container, or the length of a long one."""
    if len(value) > _MOST_ENTRIES:
        return f"{kind} of {len(value)}"
    if isinstance(value, dict):
        return {str(key): shown(str(key), inner, depth) for key, inner in value.items()}
    entries = [shown(name, inner, depth) for inner in value]
    # sets have no order of their own
    return sorted(entries, key=str) if isinstance(value, set | frozenset) else entries


# Sentences. Each must be true when it is read without the others.


HOLDS, SEED, NONE = "holds", "holds unless the seed is known", "none"

#: what no claim of skdp covers
NEVER_COVERED = (
    "running time, and other physical side channels: time depends on the data",
    "memory: private rows are not erased from it",
    "errors on malformed input, which depend on the data",
    "scores, predictions and plots computed from private rows and the model",
    "other fits to the same people, including earlier ones and comparisons, unless their "
    "releases are on this ledger",
    "what the population as a whole says about a person",
    "changes to the ledger: the card of a model from a file is only as trustworthy as the file",
)
_IN_WORDS = {
    "replace-one": "any two data sets with the same number of {unit}s that differ in one {unit}",
    "zero-out": "any two data sets with the same number of {unit}s that differ in one {unit}, "
    "which in one of them is a null {unit} that contributes nothing",
    "add-remove": "any two data sets of which one has one {unit} more than the other (the number "
    "of {unit}s is secret)",
    "local": "any two values of one {unit}",
}
#: what the words about numerics on a ledger mean
MEANINGS = {
    "exact on the grid": "noise is drawn in integer arithmetic, and what is released is a "
    "multiple of a public power of two; this rounding is part of the sensitivity",
    "idealised": "the distribution of the draw is exact for real numbers only; the effect of "
    "floating-point arithmetic is not part of the claim",
    "exact choice of runs": "the number of runs is drawn in integer arithmetic; the noise within "
    "a run is that of its estimator",
    "as in the fits": "the ledgers of these fits were not kept",
    "system entropy": "bits come from the operating system's cryptographic generator",
    "seeded Philox": "bits follow from random_state: anybody who knows it can reproduce them",
}
_SEEDED = (
    " The noise was SEEDED by random_state: this does NOT hold against anybody who knows or "
    "guesses the seed."
)


def adjacency_in_words(adjacency, unit):
    """Describe neighbouring data sets."""
    return None if adjacency is None else _IN_WORDS[adjacency].format(unit=unit)


def protected(unit):
    """Describe the protected unit."""
    if unit == "group":
        return "The unit of protection is one group (a person, a client), with all of its rows."
    return "The unit of protection is one row: a person with several rows is protected less."


def _pair(epsilon, delta):
    number = f"epsilon = {upward(epsilon)} nats"
    return f"{number} and delta = {upward(delta)}" if delta else f"{number} (delta = 0)"


def claim(ledger, epsilon, delta, missing, learns):
    """Return the status of the claim, and the claim in a sentence or two.

    Parameters
    ----------
    ledger : Ledger
        All releases.
    epsilon, delta : float
        Total price; epsilon may be infinite.
    missing : sequence of NotCovered
        Parts not covered by a ledger.
    learns : bool
        Whether there is a ledger, even an empty one.

    Returns
    -------
    status, sentence : str, str
        The status is one of three constants.
    """
    if missing:
        alone = "" if not ledger.releases else " The total of the other parts is no claim either."
        return NONE, (
            "NO (epsilon, delta) is claimed, because these parts have no price: "
            f"{'; '.join(map(str, missing))}.{alone}"
        )
    if not ledger.releases:
        if ledger.assumptions:
            return NONE, (
                "Nothing was released here, and nothing is claimed: see the assumptions about the "
                "input."
            )
        so_far = "No release has been made so far" if learns else "Nothing is learned from rows"
        return HOLDS, f"{so_far}: nothing was spent (epsilon = 0, delta = 0)."
    seeded = _SEEDED if ledger.seeded else ""
    unit = ledger.unit
    if epsilon == float("inf"):
        return NONE, (
            f"NO finite epsilon is claimed at delta = {upward(delta)}: see the table for other "
            "deltas."
        )
    bound = "at most exp(epsilon) times as likely under one as under the other"
    bound += ", plus delta" if delta else ""
    about = adjacency_in_words(ledger.adjacency, unit)
    if ledger.adjacency == "local":
        sentence = (
            f"Each {unit} randomised its own reports. They are locally differentially private "
            f"with {_pair(epsilon, delta)}, towards everybody, including those who received them: "
            f"for {about}, every outcome is {bound}. {protected(unit)}"
        )
    else:
        sentence = (
            "Everything released, including the fitted model, is differentially private with "
            f"{_pair(epsilon, delta)}, under {ledger.adjacency} adjacency: for {about}, every "
            f"outcome is {bound}. {protected(unit)}"
        )
    return (SEED if seeded else HOLDS), sentence + seeded


#: the two data sets that somebody tries to tell apart
_GUESSED = {
    "replace-one": "which of two values one {unit} has",
    "zero-out": "whether one {unit} is present or was replaced by a null {unit}",
    "add-remove": "whether one {unit} is present",
    "local": "which of two values one {unit} has",
}


def odds(ledger, composed, claimed):
    """Return the odds of a guesser who knows the releases.

    A guesser has two equally likely neighbouring data sets. The probability of a right guess is at
    most 1 / 2 + TV / 2, where TV is the total variation between the releases. That is at most
    (e^epsilon + delta) / (1 + e^epsilon) for every valid pair, and Phi(mu / 2) under mu-GDP. With
    delta = 0 the bound holds for every single outcome.

    Parameters
    ----------
    ledger : Ledger
        All releases.
    composed : dict
        Their price in several forms, as on the card.
    claimed : bool
        Whether there is a claim.

    Returns
    -------
    odds : dict
        ``prior`` is 0.5; ``guess`` is a bound on the probability after the release, or infinite
        without a bound; ``always`` is whether the bound holds for every outcome, instead of the
        mean only; ``sentence`` is the text.
    """
    if not claimed:
        text = "No bound is claimed: the release may make somebody certain about a row."
        return {"prior": 0.5, "guess": math.inf, "always": False, "sentence": text}
    if not ledger.releases:
        text = "Nothing was released, so nobody can guess better than before."
        return {"prior": 0.5, "guess": 0.5, "always": True, "sentence": text}
    pairs = [(each["epsilon"], each["delta"]) for each in composed["epsilon_at"]]
    pure = float(expit(composed["epsilon_at"][0]["epsilon"]))
    bounds = [float(expit(epsilon) + delta * expit(-epsilon)) for epsilon, delta in pairs]
    guess = min([float(ndtr(composed["gdp"] / 2)), *bounds])
    always = pure <= guess
    sure = f"{upward(100 * guess, 3)} % sure"
    text = (
        f"Somebody who knows all other {ledger.unit}s and is 50 % sure "
        f"{_GUESSED[ledger.adjacency].format(unit=ledger.unit)} will be at most {sure} after the "
        f"release, {'whatever is released' if always else 'on average'}."
    )
    text += " Anybody who knows the seed may become certain." if ledger.seeded else ""
    return {"prior": 0.5, "guess": guess, "always": always, "sentence": text}


def local_claim(ledger, epsilon, delta, pure):
    """Describe the claim towards receivers of reports, or its absence.

    Parameters
    ----------
    ledger : Ledger
        All releases.
    epsilon, delta : float
        Local epsilon at delta, possibly infinite.
    pure : float
        Local epsilon at delta 0.

    Returns
    -------
    sentence : str
        Sentence for the card.
    """
    unit = ledger.unit
    if epsilon == float("inf"):
        return (
            "None is stated: the fit computed more than reports, so whoever ran it is trusted "
            f"with the {unit}s."
        )
    more = "" if pure <= epsilon else f"; at delta = 0, epsilon = {upward(pure)}"
    seen = (
        " Everybody else sees noisy sums of them: the claim above is about these sums."
        if any(release.hidden for release in ledger.releases)
        else ""
    )
    seeded = _SEEDED if ledger.seeded else ""
    return (
        f"Towards those who received the reports of single {unit}s: {_pair(epsilon, delta)}, for "
        f"any two values of one {unit}{more}.{seen}{seeded}"
    )


def composition(ledger):
    """Describe the composition of the releases to the total."""
    seen = [release for release in ledger.releases if not release.hidden]
    if not seen:
        return "There is nothing to compose."
    chance = any(r.noise.by_chance for r in seen)
    if all(r.adjacency == "local" for r in seen):
        much = (
            f"A batch decides who reports. One {ledger.unit} is charged for a number of reports "
            "that it exceeds with probability at most delta; at delta = 0, for all rounds."
            if chance
            else "Their epsilons are added up."
        )
        return f"Every {ledger.unit} pays for its own reports. {much}"
    parts = [_how(seen, chance)]
    if any(r.rows for r in seen if r.adjacency != "local"):
        parts.append(
            "A Gaussian release that reads a range of public positions is paid for by those in "
            "the range; the total is the largest sum that anybody pays."
        )
    if any(r.adjacency == "local" for r in seen):
        parts.append("Beside other releases, local reports count as if every row made all of them.")
    return " ".join(parts)


def _how(seen, chance):
    gaussian = [r for r in seen if r.noise.mu]
    if chance:
        return (
            "Releases on secret random batches are composed by privacy loss distributions of "
            "dp_accounting, with losses rounded up. Where the noise is too small to keep batches "
            "secret, they count as known, and one pays for a number of batches that is exceeded "
            "with probability at most delta / 2."
        )
    if len(gaussian) == len(seen):
        return (
            "All releases are Gaussian: together they are as private as one Gaussian release, "
            "whose mu is the root of the sum of squares (exact, also for adaptive choices)."
        )
    if not gaussian:
        return (
            "The total is the least of three bounds: epsilons and deltas added up, "
            "zero-concentrated privacy, and privacy loss distributions of the worst cases."
        )
    return (
        "Gaussian releases compose to one by the sum of squares of mu. With the other releases "
        "the total is the least of three bounds: the plain sum, zero-concentrated privacy, and "
        "privacy loss distributions of the worst cases (dp_accounting, losses rounded up)."
    )


def notes(ledger, parts, most_copies=1):
    """Return important notes for the reader, by kind."""
    found = {}
    if most_copies > 1:
        found["repeated rows"] = (
            "rows were drawn with replacement, by position alone. One row counts up to "
            f"{most_copies} times in one fit, and pays like a group of {most_copies} rows."
        )
    if ledger.shared_noise:
        found["shared noise"] = f"{SHARED_NOISE.format(', '.join(ledger.shared_noise))}."
    if ledger.seeded:
        found["seeded"] = (
            "random_state was set. Anybody who knows or guesses the seed can subtract the noise: "
            "nothing on this card holds against them."
        )
    if any(getattr(part, "hypothetical_privacy_spent_", None) is not None for part in parts):
        found["simulated population"] = (
            "the noise is that of a deployment with more clients (population). The claim on "
            "this card is about the clients of this fit, not about the deployment."
        )
    if any(hasattr(part, "n_clients_") and part.ledger_.unit == "row" for part in parts):
        found["no groups"] = (
            "fit got no groups, so every row counts as a client: one row is protected, not all "
            "rows of a client."
        )
    if any("idealised" in numerics_terms(release) for release in ledger.releases):
        found["idealised"] = (
            "some draws have an exact distribution for real numbers only; the effect of "
            "floating-point arithmetic is not part of the claim."
        )
    if any(getattr(part, "budget", None) is not None for part in parts):
        found["shared budget"] = (
            "the budget is shared with other fits, and each is charged in full before it starts. "
            "What the others spent is not on this card."
        )
        if most_copies > 1:
            found["shared budget"] += " It was charged as if every row counted once."
    return [{"kind": kind, "text": text} for kind, text in found.items()]


def numerics_terms(release):
    """Return the terms of `MEANINGS` for the noise on a ledger."""
    return release.numerics.split(", ")


# Markdown. Numbers are rounded to the side on which they promise less.


_SCALES = {
    "gaussian": "Gaussian, standard deviation",
    "laplace": "Laplace, scale",
    "k-norm": "K-norm, scale",
    "exponential": "exponential mechanism, temperature",
}
_ELSEWHERE = {
    "fits": "chosen by each of these fits, whose ledgers were not kept",
    "search": "within every run, and in the choice",
    "copies": "as for a row that is read once",
}


def as_markdown(facts):
    """Return a card as a Markdown document.

    Parameters
    ----------
    facts : dict
        Contents of the card.

    Returns
    -------
    text : str
        Document with a newline after the last line.
    """
    claim, public, composition = facts["claim"], facts["public"], facts["composition"]
    lines = [f"# Privacy card: {_escaped(facts['name'])}", ""]
    dated = [] if facts["date"] is None else [f"Date: {_escaped(facts['date'])}"]
    about = [f"Estimator: {facts['estimator']}", *dated, f"Schema: {facts['schema']}"]
    lines += [". ".join(about) + ".", ""]
    if facts["notes"]:
        shown = [
            f"> **{note['kind'].upper()}**: {_escaped(note['text'])}" for note in facts["notes"]
        ]
        # an empty line between two, or they run together
        lines += ["\n>\n".join(shown), ""]
    lines += ["## Claim", "", _escaped(claim["sentence"]), ""]
    if claim["epsilon"] is not None and claim["adjacency"]:
        lines += _table(
            ["epsilon (nats)", "delta", "adjacency", "unit", "status"],
            [
                [
                    upward(claim["epsilon"]), upward(claim["delta"]), claim["adjacency"],
                    claim["unit"], claim["status"],
                ]
            ],
        )  # fmt: skip
    lines += ["### In odds", "", _escaped(claim["odds"]["sentence"]), ""]
    if facts["local_claim"] is not None:
        lines += ["### Reports", "", _escaped(facts["local_claim"]["sentence"]), ""]
    lines += ["## Not covered", ""]
    lines += [f"- **{_escaped(part['text'])}**" for part in facts["not_covered"]["parts"]]
    lines += _bullets(facts["not_covered"]["never"])
    lines += ["## Assumed public", ""]
    lines += _bullets(facts["assumptions"] or ["nothing was read from the data beforehand"])
    lines += ["## Public", ""]
    features = public["n_features"]
    counted = [] if features is None else [f"features of the input: {features}"]
    lines += _bullets([*counted, *public["facts"]])
    for step in public["steps"]:
        kind = "" if step["name"] == step["estimator"] else f" ({step['estimator']})"
        lines += [f"### {_escaped(step['name'])}{kind}: {step['role']}", ""]
        if step["parameters"]:
            lines += _table(
                ["parameter", "value"],
                [[_code(k), _code(json.dumps(v))] for k, v in step["parameters"].items()],
            )
    lines += ["## Ledger", ""]
    lines += _ledger(facts["ledger"])
    lines += ["## Composition", "", _escaped(composition["method"]), ""]
    if facts["ledger"]:
        if composition["gdp"] is not None:
            lines += [f"Gaussian-DP parameter of all releases: {upward(composition['gdp'])}.", ""]
        if claim["epsilon"] is None:
            lines += ["Totals of the releases on the ledger alone, which are no claim:", ""]
        cells = [[upward(a["delta"]), upward(a["epsilon"])] for a in composition["epsilon_at"]]
        lines += _table(["delta", "epsilon (nats)"], cells)
        lines += ["As an event of dp_accounting:", "", _code(composition["dp_event"]), ""]
    lines += ["## Numerics", ""]
    lines += _bullets(
        [": ".join(filter(None, each.values())) for each in facts["numerics"]]
        or ["no noise was drawn"]
    )
    lines += ["## Versions", "", "The versions that made this card.", ""]
    lines += _bullets(f"{name} {number}" for name, number in facts["versions"].items())
    lines += ["## How to verify", ""]
    lines += _bullets(facts["verify"])
    return "\n".join(lines).rstrip() + "\n"


def _ledger(entries):
    if not entries:
        return ["No release.", ""]
    heads = ["#", "query", "count", "size", "sensitivity", "noise", "price of one", "rows", "seen"]
    cells = [
        [
            str(i), _escaped(entry["query"]), str(entry["count"]), str(entry["size"]),
            _sensitivity(entry["noise"]), _noise(entry), _price_in_words(entry["noise"]),
            _table_rows(entry),
            "by the aggregator of the reports" if entry["hidden"] else "by everybody",
        ]
        for i, entry in enumerate(entries, 1)
    ]  # fmt: skip
    lines = _table(heads, cells)
    lines += [
        "Count is the number of releases made or paid for, each with fresh noise. A release that "
        "only entered an average counts as if everybody had seen it. Why each sensitivity holds, "
        "and how the noise was drawn:",
        "",
    ]
    for i, entry in enumerate(entries, 1):
        seeded = ", SEEDED" if entry["seeded"] else ""
        run = (entry.get("winner") or {}).get("mu_run")
        seeded += f"; one run: mu = {upward(run)}" if run else ""
        theorem = _escaped(entry["theorem"])
        about = f"{entry['adjacency']}, per {entry['unit']}; {entry['numerics']}{seeded}"
        lines.append(f"{i}. {theorem} ({about})")
    return [*lines, ""]


def _sensitivity(noise):
    return "see below" if noise["law"] in _ELSEWHERE else upward(noise["sensitivity"])


def _noise(entry):
    noise = entry["noise"]
    law = noise["law"]
    if law in _ELSEWHERE:
        return _ELSEWHERE[law]
    if law == "local":
        text = f"drawn by every {entry['unit']} on its own"
    else:
        text = f"{_SCALES.get(law, f'{law}, scale')} {downward(noise['scale'])}"
    text += f", grid 2^{int(math.log2(noise['grid']))}"
    if noise["threshold"] is not None:
        side = "beyond" if noise["two_sided"] else "above"
        text += f", only what is {side} {downward(noise['threshold'])}"
    return text


def _price_in_words(noise):
    priced = [("mu", noise["mu"])] if noise["mu"] else [("epsilon", noise["epsilon"])]
    priced += [("delta", noise["delta"])] if noise["delta"] else []
    text = ", ".join(f"{name} = {upward(number)}" for name, number in priced)
    if noise["by_chance"]:
        text += " if all rows were read" if noise["mu"] else " for those who take part"
    return text


def _table_rows(entry):
    sampling = entry["noise"]["sampling"]
    if sampling is not None and entry["noise"]["by_chance"]:
        size = f"a batch of {sampling['batch_size']:.6g} of {sampling['n_rows']}"
        return f"{size}, {sampling['kind']}, rate {upward(sampling['rate'])}"
    if entry["rows"] is None:
        return "all"
    return f"positions {entry['rows'][0]} to {entry['rows'][1] - 1}"


def _table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def _bullets(texts):
    return [*(f"- {_escaped(text)}" for text in texts), ""]


def _escaped(text):
    """Escape a text: one line, without Markdown or HTML."""
    text = " ".join(str(text).split())
    return re.sub(r"([\\`*<|~]|(?<!\w)_|\](?=[(\[:])|^[>#+\-])", r"\\\1", text)


def _code(text):
    return "`" + " ".join(text.split()).replace("`", "'").replace("|", "\\|") + "`"


# escaped characters, code and bold words, which are all the marks inside of a line
_MARKS = re.compile(r"\\(.)|`([^`]*)`|\*\*((?:[^*\\]|\\.)+)\*\*")


def as_html(markdown):
    """Return a card in HTML, for viewers without Markdown.

    Parameters
    ----------
    markdown : str
        Result of `as_markdown`: headings, notes, tables, bullets and paragraphs.

    Returns
    -------
    html : str
        Document with all quoted text escaped.
    """
    made, kind = [], None
    for line in markdown.splitlines():
        mark, _, rest = line.partition(" ")
        new = {"-": "ul", "|": "table", ">": "blockquote"}.get(mark)
        if not line or line == ">" or line.startswith("| ---"):
            continue
        if new != kind:
            made += [f"</{kind}>"] * bool(kind) + [f"<{new}>"] * bool(new)
        if new == "ul":
            made.append(f"<li>{_inline(rest)}</li>")
        elif new == "table":
            tag = "th" if new != kind else "td"
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            made.append(
                "<tr>" + "".join(f"<{tag}>{_inline(c.strip())}</{tag}>" for c in cells) + "</tr>"
            )
        elif set(mark) == {"#"}:
            made.append(f"<h{len(mark)}>{_inline(rest)}</h{len(mark)}>")
        else:
            made.append(f"<p>{_inline(rest if new else line)}</p>")
        kind = new
    return "\n".join(made + [f"</{kind}>"] * bool(kind))


def _inline(text):
    """Return a part of a line of a card in HTML."""
    found, place = [], 0
    for mark in _MARKS.finditer(text):
        found.append(html.escape(text[place : mark.start()]))
        character, code, bold = mark.groups()
        if code is not None:
            code = html.escape(code.replace("\\|", "|"))
            found.append(f"<code>{code}</code>")
        elif bold is not None:
            found.append(f"<strong>{_inline(bold)}</strong>")
        else:
            found.append(html.escape(character))
        place = mark.end()
    return "".join([*found, html.escape(text[place:])])


def upward(x, digits=6):
    """Return a number in the given digits, rounded up; None is infinite.

    Parameters
    ----------
    x : float or None
        An upper bound.
    digits : int, default=6
        How many.

    Returns
    -------
    text : str
        Text with a float value of at least `x`.
    """
    return _towards(x, digits, ROUND_CEILING)


def downward(x, digits=6):
    """Return a number in the given digits, rounded down; None is infinite.

    Parameters
    ----------
    x : float or None
        A lower bound.
    digits : int, default=6
        How many.

    Returns
    -------
    text : str
        Text with a float value of at most `x`.
    """
    return _towards(x, digits, ROUND_FLOOR)


def _towards(x, digits, side):
    if x is None or math.isinf(x):
        return "infinite"
    text = f"{x:.{digits}g}"
    wrong = float(text) < x if side == ROUND_CEILING else float(text) > x
    if not wrong:
        return text
    exact = Decimal(x)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(step, side)):.{digits}g}"


# The picture of the odds.


def plot_odds(odds, ax):
    """Draw a hundred guesses before and after a release.

    Parameters
    ----------
    odds : dict
        Of a card.
    ax : matplotlib.axes.Axes
        Where to draw.

    Returns
    -------
    ax : matplotlib.axes.Axes
    """
    bounded = odds["guess"] is not None
    right = math.ceil(float(upward(100 * odds["guess"], 3))) if bounded else 100
    after = f"after it: at most {right}" if bounded else "after it: no bound"
    cells = np.arange(100)
    for left, count, words in ((0, 50, "before the release: 50"), (13, right, after)):
        x, y = left + cells % 10, cells // 10
        ax.scatter(x[:count], y[:count], s=42, color="tab:blue", edgecolor="tab:blue")
        ax.scatter(x[count:], y[count:], s=42, facecolor="none", edgecolor="0.6")
        ax.text(left - 0.4, -1.1, words, fontsize="medium")
    ax.set(xlim=(-1, 23), ylim=(9.7, -2), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.set_title("Of 100 guesses about one person's row, so many are right", fontsize="medium")
    return ax


# The record of the registry of deployments.


def _registry_date(date):
    """Return a date in the format of the registry, or the date of its template."""
    try:
        return datetime.date.fromisoformat(date or "").isoformat()
    except ValueError:
        return "1900-01-01"


def registry_record(facts, basic, authors, status):
    """Return the tier 3 record of a card for the registry.

    Parameters
    ----------
    facts : dict
        Facts of a card with a claim.
    basic : dict
        Facts known to the publisher only, by field name.
    authors : list of str
        Authors of the record.
    status : str
        Status of the record.

    Returns
    -------
    record : dict
    """
    claimed, unit = facts["claim"], facts["claim"]["unit"] or "row"
    local = claimed["adjacency"] == "local"
    federated = any("Federated" in part["estimator"] for part in facts["public"]["steps"])
    model = "Local" if local else "Federated" if federated else "Central"
    whom = "whoever runs the fit sees all rows and must be trusted"
    if local:
        whom = "nobody needs to be trusted with a row: owners randomise it before they send it"
    elif federated:
        whom = "the server that adds up updates must be trusted, unless clients send local reports"
    delta = {"delta": claimed["delta"]} if claimed["delta"] else {}
    laws = sorted({entry["noise"]["law"] for entry in facts["ledger"]})
    numerics = "; ".join(f"{item['kind']}: {item['meaning']}" for item in facts["numerics"])
    running = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    public = [*facts["public"]["facts"], *facts["assumptions"]]
    return {
        "url_slug": re.sub("[^a-z0-9]+", "_", facts["name"].lower()).strip("_") or "model",
        "status": status,
        "tier": 3,
        "deployment": {
            "basic": basic,
            "dp_variant": {
                "variant_name": "Approximate DP" if delta else "Pure DP",
                "data_domain": f"all tables with as many {unit}s and features, of any values",
                "unprotected_quantities": "; ".join(public),
            },
            "privacy_loss": {
                "privacy_unit": f"one {unit}",
                "privacy_unit_details": f"{claimed['adjacency_in_words']}. {protected(unit)}",
                "privacy_parameters": {"epsilon": claimed["epsilon"], **delta},
                "privacy_parameters_details": claimed["sentence"],
            },
            "deployment_model": {
                "model_name": model,
                "model_name_details": whom,
                "actors": f"{whom}; anybody who gets the model, its parameters or its ledger may "
                "be an adversary who knows all other rows.",
                "release_type": "One release",
                "release_type_details": "Other fits to the same people add to this; a shared "
                "PrivacyBudget, where there is one, bounds their sum.",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "All that is computed from the releases on the ledger: "
                "projections, averages, predictions for new rows.",
                "composition": facts["composition"]["method"],
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "Not covered by the claim: "
                + "; ".join(facts["not_covered"]["never"]),
                "mechanisms": f"Library: skdp ({running}). Laws: {', '.join(laws)}. Floating "
                f"point: {numerics}. Timing: not protected.",
                "justification": "",
            },
            "administrative": {
                "sources": "",
                "notes": " ".join(map(str, [*facts["notes"], *facts["verify"]])),
                "registry_authors": authors,
            },
        },
    }

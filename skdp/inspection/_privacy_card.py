# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Privacy cards: what a fitted model promises, for somebody who reads nothing else."""

import copy
import datetime
import json
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from skdp._typing import Estimator
from skdp.inspection._card_facts import card_facts
from skdp.inspection._card_numbers import upward
from skdp.inspection._card_text import as_markdown
from skdp.privacy import Ledger


class PrivacyCard:
    """What a fitted model promises, under which assumptions, and why.

    Made by `privacy_card`. A card holds what is public: shapes, parameters, prices and theorems,
    and the ledger.

    Parameters
    ----------
    facts : dict
        Everything that the card says, as `to_dict` returns it.

    See Also
    --------
    privacy_card : Make one.
    """

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = copy.deepcopy(facts)

    @property
    def claim(self) -> str:
        """The claim in words, alone."""
        return self._facts["claim"]["sentence"]

    def to_dict(self) -> dict[str, Any]:
        """Return everything that the card says.

        Returns
        -------
        facts : dict
            Of built-in types that JSON has. ``facts["schema"]`` names the version of the fields,
            whose meaning never changes. What is infinite is None.
        """
        return copy.deepcopy(self._facts)

    def to_json(self) -> str:
        """Return the card as a JSON document.

        Returns
        -------
        text : str
            With all digits of all numbers.
        """
        return json.dumps(self._facts, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_markdown(self) -> str:
        """Return the card as a Markdown document.

        Returns
        -------
        text : str
            Six digits of every number: prices are rounded up, noise down.
        """
        return as_markdown(self._facts)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the card to a file.

        Parameters
        ----------
        path : str or PathLike
            Ends in .md (Markdown) or .json. A file of that name is replaced.

        Returns
        -------
        path : Path
            Where it stands.

        Raises
        ------
        ValueError
            If the name ends in anything else.
        """
        path = Path(path)
        writers = {".md": self.to_markdown, ".json": self.to_json}
        if path.suffix.lower() not in writers:
            raise ValueError(f"path must end in .md or .json; got {path.name!r}.")
        path.write_text(writers[path.suffix.lower()](), encoding="utf-8")
        return path

    def __eq__(self, other):
        return self._facts == other._facts if isinstance(other, PrivacyCard) else NotImplemented

    def __str__(self):
        return self.to_markdown()

    def _repr_markdown_(self):
        return self.to_markdown()

    def __repr__(self):
        claim = self._facts["claim"]
        promised = f"status {claim['status']!r}"
        if claim["epsilon"] is not None:
            promised += f", epsilon={upward(claim['epsilon'])}, delta={upward(claim['delta'])}"
        return f"<PrivacyCard of {self._facts['name']}: {promised}>"


def privacy_card(
    estimator: Estimator,
    *,
    name: str | None = None,
    delta: float | None = None,
    date: str | datetime.date | None = None,
) -> PrivacyCard:
    """Write down what a fitted model promises, for a reviewer who reads nothing else.

    Parameters
    ----------
    estimator : estimator, Pipeline or search
        Fitted: an estimator of skdp, a pipeline or ColumnTransformer with some, or a search.
        Of a search of scikit-learn's the card says what its fits cost, and that nothing is
        claimed, for it chooses without a price.
    name : str, default=None
        What the model is called; by default the name of its class.
    delta : float, default=None
        The delta at which epsilon is claimed, in [0, 1); by default the sum of what was spent.
    date : str or datetime.date, default=None
        Stands on the card as it is. There is none by default, so that equal models have equal
        cards.

    Returns
    -------
    card : PrivacyCard
        Print it, or save it as Markdown or JSON; Jupyter shows it.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If the first argument is no estimator, or keeps no ledger; if name or date has another
        type.
    ValueError
        If delta is out of range, or the adjacencies of the steps differ.

    See Also
    --------
    privacy_spent : The total alone.
    Ledger : The releases alone.

    Notes
    -----
    A card shows no coefficient, no choice of a search and no label that was not passed. All that
    it holds is public, or on the ledger: where a release is scaled by what an earlier one let out
    (``mechanism="coinpress"``, say), its scale is on the ledger, and paid for. The value of a
    `random_state` is not shown, for it would give away the noise. Arrays among the parameters
    are shown by their shape.

    A card is read off the ledger that the model carries, and does not prove that the ledger is
    that of the fit: whoever hands over a model can change it.

    Examples
    --------
    >>> from skdp import DPMean, privacy_card
    >>> card = privacy_card(DPMean(epsilon=0.5).fit([[0.1], [0.2], [0.3]]))
    >>> card
    <PrivacyCard of DPMean: status 'holds', epsilon=0.5, delta=1e-06>
    >>> card.to_dict()["claim"]["adjacency"]
    'replace-one'
    >>> print(card.to_markdown().splitlines()[0])
    # Privacy card: DPMean
    """
    if not (name is None or isinstance(name, str)):
        raise TypeError(f"name must be a str or None; got a {type(name).__name__}.")
    if isinstance(date, datetime.date):
        date = date.isoformat()
    if not (date is None or isinstance(date, str)):
        raise TypeError(f"date must be a str, a date or None; got a {type(date).__name__}.")
    _check(estimator)
    return PrivacyCard(card_facts(estimator, name=name, delta=delta, date=date))


def _check(estimator):
    """Raise for what cannot have a card."""
    kind = type(estimator).__name__
    if isinstance(estimator, type):
        raise TypeError(
            f"privacy_card needs a fitted estimator; got the class {estimator.__name__}."
        )
    if not hasattr(estimator, "fit"):
        hint = " Pass the estimator that it belongs to." if isinstance(estimator, Ledger) else ""
        article = "an" if kind[0].lower() in "aeiou" else "a"
        raise TypeError(f"privacy_card needs a fitted estimator; got {article} {kind}.{hint}")
    check_is_fitted(estimator)
    ledger = getattr(estimator, "ledger_", None)
    if ledger is not None and not isinstance(ledger, Ledger):
        raise TypeError(f"ledger_ of {kind} must be a Ledger; got a {type(ledger).__name__}.")
    if ledger is not None and not hasattr(estimator, "privacy_spent_"):
        raise TypeError(f"{kind} has a ledger_ and no privacy_spent_, the (epsilon, delta) of it.")

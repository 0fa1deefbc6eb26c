# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How a shared budget prints, and its charges as tables."""

from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any

from skdp.privacy._budget_rules import Terms
from skdp.privacy._budget_store import Charge
from skdp.privacy._ledger_text import tags

_COLUMNS = [field.name for field in fields(Charge)]
#: not worth showing
_DEFAULTS = ("sum", "replace-one", "row", None)


def as_text(terms: Terms, path: str | None, state: Iterable[str]) -> str:
    """Return a budget on one line: what it allows, and what has become of it."""
    facts = {**terms._asdict(), "path": path}
    shown = [f"{k}={v!r}" for k, v in facts.items() if v not in _DEFAULTS]
    return f"PrivacyBudget({', '.join([*shown, *state])})"


def as_html(text: str, charges: Iterable[Charge]) -> str:
    """Return a line and a table of charges for Jupyter."""
    rows: list[Any] = [_COLUMNS, *(asdict(charge).values() for charge in charges)]
    table = "".join(f"<tr>{tags('td', row)}</tr>" for row in rows)
    return f"{tags('p', [text])}<table>{table}</table>"


def as_frame(charges: Iterable[Charge]) -> Any:
    """Return a pandas DataFrame, a row for each charge."""
    import pandas as pd

    return pd.DataFrame([asdict(charge) for charge in charges], columns=_COLUMNS)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Ledgers and kinds of objects in words."""

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

from skdp.privacy.kernel.mechanisms import Noise


def a_kind(value: Any) -> str:
    """Return the name of the class of an object, with its article: an int, a str; or None."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def some_of(names: Any, most: int = 6) -> str:
    """Return names or numbers as in code; of many, the first ones and the number of others."""
    listed = list(names.tolist() if hasattr(names, "tolist") else names)
    more = len(listed) - most
    return ", ".join(map(repr, listed[:most])) + (f" and {more} more" if more > 0 else "")


def rows_read(release: Any) -> str:
    """Describe the rows of a release."""
    sampling = release.noise.sampling
    if sampling is not None and release.noise.by_chance:
        return f"a batch of {sampling.batch_size:.6g}, {sampling.kind}, rate {sampling.rate:.4g}"
    return "all" if release.rows is None else "{} to {}".format(*release.rows)


def what_is_kept(noise: Noise) -> str:
    """Describe the released noisy values, if not all; begins with a comma."""
    side = "beyond" if noise.two_sided else "above"
    return "" if noise.threshold is None else f", only {side} {noise.threshold:.6g}"


def what_is_drawn(noise: Noise, digits: int = 6) -> str:
    """Describe the law of the noise."""
    if noise.law == "local":
        return "drawn by every row on its own"
    if noise.law == "fits":
        return "as these fits chose it, of which no ledger was kept"
    if noise.law == "search":
        return "within every run, and in the choice"
    if noise.law == "copies":
        return "as it was for a row that is read once"
    return f"{noise.law}, scale {noise.scale:.{digits}g}"


def which_grid(noise: Noise) -> str:
    """Describe the grid of a release, if any; begins with a comma."""
    return f", grid 2^{int(math.log2(noise.grid))}" if noise.scale else ""


def _cells(release: Any) -> dict[str, Any]:
    noise = release.noise
    price = f"mu={noise.mu:.4g}" if noise.mu else f"epsilon={noise.epsilon:.4g}"
    price += f", delta={noise.delta:.4g}" if noise.delta else ""
    if noise.by_chance:
        price += " if all rows were read," if noise.mu else " for those who take part,"
    return {
        "query": release.query,
        "count": release.count,
        "size": release.size,
        "sensitivity": f"{noise.sensitivity:.6g}",
        "noise": what_is_drawn(noise) + which_grid(noise) + what_is_kept(noise),
        "price": price + " each",
        "rows": rows_read(release),
        "adjacency": release.adjacency + (f", per {release.unit}" if release.unit != "row" else ""),
        "seen by": "those who add the reports up" if release.hidden else "everybody",
        "theorem": release.theorem,
        "numerics": release.numerics,
    }


def ledger_text(releases: Sequence[Any], notes: list[str]) -> str:
    """Return the releases as text, one paragraph each."""
    lines = [f"Ledger, releases: {sum(release.count for release in releases)}"]
    for release in releases:
        lines += [f"  {name:<12}{value}" for name, value in _cells(release).items()] + [""]
    return "\n".join(lines + [f"  {note}" for note in notes]).rstrip()


def ledger_html(releases: Sequence[Any], notes: list[str]) -> str:
    """Return the releases as an HTML table, one row each."""
    rows = [_cells(release) for release in releases]
    head = f"<tr>{tags('th', rows[0])}</tr>" if rows else ""
    body = "".join(f"<tr>{tags('td', row.values())}</tr>" for row in rows)
    return f"<table>{head}{body}</table><ul>{tags('li', notes)}</ul>"


def tags(name: str, texts: Iterable[Any]) -> str:
    """Return texts between the tags of an HTML element."""
    return "".join(f"<{name}>{html.escape(str(text))}</{name}>" for text in texts)

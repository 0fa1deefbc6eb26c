# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A card in Markdown. Numbers are rounded to the side on which they promise less."""

import json
import math
import re

from skdp.inspection._card_numbers import downward, upward
from skdp.inspection._card_sentences import told

_SCALES = {
    "gaussian": "Gaussian, standard deviation",
    "laplace": "Laplace, scale",
    "k-norm": "K-norm, scale",
    "exponential": "exponential mechanism, temperature",
}
_ELSEWHERE = {
    "fits": "as each of these fits chose it; their ledgers were not kept",
    "search": "within every run, and in the choice",
}


def as_markdown(facts):
    """Return a card as a Markdown document.

    Parameters
    ----------
    facts : dict
        What it says.

    Returns
    -------
    text : str
        With a line end after the last line.
    """
    claim, public, composition = facts["claim"], facts["public"], facts["composition"]
    lines = [f"# Privacy card: {_plain(facts['name'])}", ""]
    dated = [] if facts["date"] is None else [f"Date: {_plain(facts['date'])}"]
    about = [f"Estimator: {facts['estimator']}", *dated, f"Schema: {facts['schema']}"]
    lines += [". ".join(about) + ".", ""]
    if facts["notes"]:
        # an empty line between two, or they run together
        lines += ["\n>\n".join(f"> {_loud(note)}" for note in facts["notes"]), ""]
    lines += ["## Claim", "", _plain(claim["sentence"]), ""]
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
    if facts["local_claim"] is not None:
        lines += ["### Reports", "", _plain(facts["local_claim"]["sentence"]), ""]
    lines += ["## Not covered", ""]
    lines += [f"- **{_plain(told(part))}**" for part in facts["not_covered"]["parts"]]
    lines += _bullets(facts["not_covered"]["never"])
    lines += ["## Assumed public", ""]
    lines += _bullets(facts["assumptions"] or ["nothing was read from the data beforehand"])
    lines += ["## Public", ""]
    features = public["n_features"]
    counted = [] if features is None else [f"features of the input: {features}"]
    lines += _bullets([*counted, *public["facts"]])
    for step in public["steps"]:
        kind = "" if step["name"] == step["estimator"] else f" ({step['estimator']})"
        lines += [f"### {_plain(step['name'])}{kind}: {step['role']}", ""]
        if step["parameters"]:
            lines += _table(
                ["parameter", "value"],
                [[_code(k), _code(json.dumps(v))] for k, v in step["parameters"].items()],
            )
    lines += ["## Ledger", ""]
    lines += _ledger(facts["ledger"])
    lines += ["## Composition", "", _plain(composition["method"]), ""]
    if facts["ledger"]:
        if composition["gdp"] is not None:
            lines += [f"Gaussian-DP parameter of all releases: {upward(composition['gdp'])}.", ""]
        if claim["epsilon"] is None:
            lines += ["This is about the releases on the ledger alone, and no claim:", ""]
        cells = [[upward(a["delta"]), upward(a["epsilon"])] for a in composition["epsilon_at"]]
        lines += _table(["delta", "epsilon (nats)"], cells)
        lines += ["As an event of dp_accounting:", "", _code(composition["dp_event"]), ""]
    lines += ["## Numerics", ""]
    lines += _bullets(
        [": ".join(filter(None, each.values())) for each in facts["numerics"]]
        or ["no noise was drawn"]
    )
    lines += ["## Versions", "", "Those that made this card.", ""]
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
            str(i), _plain(entry["query"]), str(entry["count"]), str(entry["size"]),
            _sensitivity(entry["noise"]), _noise(entry), _price(entry["noise"]),
            _rows(entry), "by those who add the reports up" if entry["hidden"] else "by everybody",
        ]
        for i, entry in enumerate(entries, 1)
    ]  # fmt: skip
    lines = _table(heads, cells)
    lines += [
        "Count: how many were made or paid for, each with fresh noise; what only entered an "
        "average counts as if everybody had seen it. Why, and how:",
        "",
    ]
    for i, entry in enumerate(entries, 1):
        seeded = ", SEEDED" if entry["seeded"] else ""
        run = (entry.get("winner") or {}).get("mu_run")
        seeded += f"; one run: mu = {upward(run)}" if run else ""
        theorem = _plain(entry["theorem"])
        about = f"{entry['adjacency']}, per {entry['unit']}; {entry['numerics']}{seeded}"
        lines.append(f"{i}. {theorem} ({about})")
    return [*lines, ""]


def _sensitivity(noise):
    return "see why" if noise["law"] in _ELSEWHERE else upward(noise["sensitivity"])


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


def _price(noise):
    priced = [("mu", noise["mu"])] if noise["mu"] else [("epsilon", noise["epsilon"])]
    priced += [("delta", noise["delta"])] if noise["delta"] else []
    text = ", ".join(f"{name} = {upward(number)}" for name, number in priced)
    if noise["by_chance"]:
        text += " if all rows were read" if noise["mu"] else " for those who take part"
    return text


def _rows(entry):
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
    return [*(f"- {_plain(text)}" for text in texts), ""]


def _loud(note):
    """Print the capitals with which a note begins in bold."""
    head = re.match(r"[A-Z ]+(?=:)", note)
    return f"**{head[0]}**{_plain(note[head.end() :])}" if head else _plain(note)


def _plain(text):
    """Keep a text on one line, and what it holds from being read as Markdown or HTML."""
    text = " ".join(str(text).split())
    return re.sub(r"([\\`*<|~]|(?<!\w)_|\](?=[(\[:])|^[>#+\-])", r"\\\1", text)


def _code(text):
    return "`" + " ".join(text.split()).replace("`", "'").replace("|", "\\|") + "`"

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tables of classifiers on the accuracy page, and the count of where the defaults stand."""

import math

import numpy as np
from _accuracy_methods import DEFAULT, LOCAL, PURE
from _accuracy_store import read
from _datasets import EPSILONS
from _mechanisms_report import LEVEL, difference, standard_error, table

__all__ = [
    "TITLES",
    "accuracy_tables",
    "belief",
    "best_of_peers",
    "collect",
    "comparison",
    "duration",
    "is_complete",
    "probability_tables",
    "texts_of",
    "time_table",
]

PEERS = ("diffprivlib", "opacus", "interpret")
PEER_LABELS = ("Opacus", "diffprivlib", "DP-EBM")
#: heading of each section: what its rows have in common
TITLES = {
    "zero-out": "δ = 1e-5, zero-out (Opacus: add-remove)",
    "replace-one": "δ = 1e-5, replace-one",
    PURE: "δ = 0, replace-one",
    LOCAL: "δ = 0, local: every row reports on its own",
}
#: the row of ours that the peers of a section stand beside
OURS = {"zero-out": DEFAULT, "replace-one": DEFAULT, PURE: "DPLogisticRegression(delta=0)"}


def collect(folder, name):
    """Return what was measured on a data set.

    Parameters
    ----------
    folder : pathlib.Path
        Of the results.
    name : str
        Of the data set.

    Returns
    -------
    rows : dict
        (section, label) -> epsilon -> seed -> (accuracy, seconds, seconds without privacy,
        log-loss, AUC, Brier score, calibration error); the last four are NaN without probabilities,
        the last one where it was not measured.
    public : dict
        seed -> (accuracy, seconds, log-loss, AUC, Brier score, calibration error) without privacy.
    """
    rows, public = {}, {}
    for library in ("skdp", *PEERS):
        base = {}
        for record in read(folder / f"{library}.jsonl"):
            key = record["key"]
            if key[0] != name or "setting" in record:
                continue
            if key[1] in ("non-private", "baseline"):
                base[key[2]] = record["seconds"]
                if "accuracy" in record:
                    public[key[2]] = (record["accuracy"], record["seconds"], *_beliefs(record))
            else:
                section, label, epsilon, seed = key[1:]
                cell = rows.setdefault((section, label), {}).setdefault(epsilon, {})
                quality = record["accuracy"], record["seconds"], base[seed]
                cell[seed] = (*quality, *_beliefs(record))
    return rows, public


def _beliefs(record):
    return [record.get(name, math.nan) for name in ("log_loss", "auc", "brier", "ece")]


def _text(values):
    error = f" ± {standard_error(values):.1f}" if len(values) > 1 else ""
    return f"{np.mean(values):.1f}{error}"


def is_complete(rows):
    """Return whether there is something of ours in every section but the local one."""
    return set(TITLES) - {LOCAL} <= {section for section, _ in rows}


def texts_of(row):
    """Return mean and standard error of a row's cells."""
    cells = (_accuracies(row.get(epsilon, {})) for epsilon in EPSILONS)
    return [_text(values) if values else "" for values in cells]


def best_of_peers(rows):
    """Return for every epsilon the highest mean of Opacus and diffprivlib."""
    peers = [row for (_, label), row in rows.items() if label.startswith(("Opacus", "diffprivlib"))]
    best = []
    for epsilon in EPSILONS:
        means = [np.mean(_accuracies(row[epsilon])) for row in peers if row.get(epsilon)]
        best.append(f"{max(means):.1f}" if means else "")
    return best


def _accuracies(cell):
    return [accuracy for accuracy, *_ in cell.values()]


def _bold(texts, means):
    """Mark the highest mean of a column."""
    highest = max((round(m, 1) for m in means if m is not None), default=None)
    return [
        f"**{t}**" if m is not None and round(m, 1) == highest else t
        for t, m in zip(texts, means, strict=True)
    ]


def accuracy_tables(rows, public):
    """Return the lines of all accuracy tables of a data set.

    Parameters
    ----------
    rows, public : dict
        As `collect` returns them.

    Returns
    -------
    lines : list of str
        One table for every section.
    """
    lines = []
    for section, title in TITLES.items():
        chosen = {label: row for (where, label), row in rows.items() if where == section}
        if not chosen:
            continue
        columns = []
        for epsilon in EPSILONS:
            values = [_accuracies(row.get(epsilon, {})) for row in chosen.values()]
            means = [np.mean(v) if v else None for v in values]
            columns.append(_bold([_text(v) if v else "" for v in values], means))
        body = [
            (_name(label), *cells, _splits(row))
            for (label, row), *cells in zip(chosen.items(), *columns, strict=True)
        ]
        header = ("method", *(f"ε = {e:g}" for e in EPSILONS), "splits")
        lines += table(title, header, body)
    return lines


def probability_tables(rows, public):
    """Return the lines of a table of log-loss, AUC and Brier score of a data set.

    Parameters
    ----------
    rows, public : dict
        As `collect` returns them.

    Returns
    -------
    lines : list of str
        The means of rows with probabilities, but those of papers.
    """
    body = []
    for section in TITLES:
        for (where, label), row in rows.items():
            found = [np.array(list(row.get(e, {}).values()), dtype=float) for e in EPSILONS]
            known = [cell.size and not np.isnan(cell[:, 3]).any() for cell in found]
            if where != section or "papers" in label or not any(known):
                continue
            cells = [
                belief(cell[:, 3:].mean(axis=0)) if shown else ""
                for cell, shown in zip(found, known, strict=True)
            ]
            body.append((_name(label), section, *cells))
    base = belief(np.mean([values[2:] for values in public.values()], axis=0))
    caption = f"Log-loss / AUC / Brier score / calibration error; without privacy {base}"
    return table(caption, ("method", "guarantee", *(f"ε = {e:g}" for e in EPSILONS)), body)


def belief(means):
    """Return means with three digits, and a dash where nothing was measured."""
    texts = (f"{mean:.3f}".removeprefix("0") if mean == mean else "–" for mean in means)
    return " / ".join(texts)


def _name(label):
    """Mark up what is code."""
    return label if label.startswith(("Opacus", "diffprivlib", "DP-EBM")) else f"``{label}``"


def _splits(row):
    counts = sorted({len(cell) for cell in row.values()})
    return "–".join(map(str, dict.fromkeys((counts[0], counts[-1]))))


def time_table(rows, public):
    """Return the lines of the table of times of a data set.

    Parameters
    ----------
    rows, public : dict
        As `collect` returns them.

    Returns
    -------
    lines : list of str
        Median CPU time of a fit, and its ratio to a fit without privacy.
    """
    body = []
    for (section, label), row in rows.items():
        cells = []
        for epsilon in EPSILONS:
            cell = np.array(list(row.get(epsilon, {}).values()))
            if not cell.size:
                cells.append("")
                continue
            ratio = np.median(cell[:, 1] / cell[:, 2])
            cells.append(f"{duration(np.median(cell[:, 1]))} ({ratio:.2g}×)")
        body.append((_name(label), section, *cells))
    body.sort(key=lambda cells: list(TITLES).index(cells[1]))
    base = duration(np.median([values[1] for values in public.values()]))
    caption = f"CPU time of a fit; without privacy {base}"
    return table(caption, ("method", "guarantee", *(f"ε = {e:g}" for e in EPSILONS)), body)


def duration(value):
    """Return seconds in a unit that fits."""
    return f"{value:.2g} s" if value >= 0.1 else f"{1000 * value:.2g} ms"


def comparison(collected):
    """Return counts and lists of the cells of peers beside the default of ours.

    Parameters
    ----------
    collected : dict
        Name of a data set -> what `collect` returns.

    Returns
    -------
    found : dict
        Peer's label -> {"ahead", "level", "behind", "clearly behind": list of texts}.
    """
    found = {}
    for name, (rows, _) in collected.items():
        for (section, label), row in rows.items():
            if not label.startswith(PEER_LABELS):
                continue
            ours = rows[section, OURS[section]]
            outcome = found.setdefault(label, {k: [] for k in OUTCOMES})
            for epsilon, cell in sorted(row.items()):
                seeds = [seed for seed in cell if seed in ours.get(epsilon, {})]
                if not seeds:
                    continue
                a = [ours[epsilon][seed][0] for seed in seeds]
                b = [cell[seed][0] for seed in seeds]
                mean, _, p, _ = difference(a, b)
                clear = len(seeds) > 1 and p < LEVEL
                kind = OUTCOMES[0 if mean >= 0 and clear else 3 if clear else 1 if mean >= 0 else 2]
                best = max(
                    np.mean([other[epsilon][s][0] for s in seeds])
                    for (where, text), other in rows.items()
                    if where == section and not text.startswith(PEER_LABELS)
                    if set(seeds) <= set(other.get(epsilon, {}))
                )
                figures = f"{np.mean(a):.1f}, {np.mean(b):.1f}; {best:.1f}"
                outcome[kind].append(f"{name}, ε = {epsilon:g} ({figures})")
    return found


OUTCOMES = ("ahead", "level", "behind", "clearly behind")

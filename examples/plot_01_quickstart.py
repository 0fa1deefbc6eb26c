# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Quickstart: a private model of a table
======================================

A census table of 48,842 people, with words and numbers, becomes a differentially private
classifier of incomes. It takes two lines. Only the labels, and names and types of the columns, are
known. At epsilon 1 the model is about as good as one without privacy.

*You learn* to fit a private model to a table, how much accuracy it loses, and what epsilon means
in odds.
"""

# %%
# The table
# ---------
# "Adult" comes with this example. It is read as a structured array of numpy, so nothing else must
# be installed; ``pd.read_csv("adult.csv.xz")`` also works.

from pathlib import Path

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from skdp import dp_tabular_pipeline, privacy_card, privacy_spent

threadpool_limits(1)  # the products are so small that a second thread only gets in the way
FILE = Path(globals().get("__file__", "here")).with_name("adult.csv.xz")
table = np.genfromtxt(FILE, delimiter=",", names=True, dtype=None, encoding="utf-8")
*COLUMNS, TARGET = table.dtype.names
X_train, X_test, y_train, y_test = train_test_split(table[COLUMNS], table[TARGET], random_state=0)
print(f"{len(X_train):,} private rows of {len(COLUMNS)} columns: {', '.join(COLUMNS)}\n")

# %%
# The model
# ---------
# :func:`~skdp.dp_tabular_pipeline` finds scales of numbers and frequent words, trains a classifier
# on them, and spends one budget on everything. The noise comes from the operating system, so every
# run of this file is different.

CLASSES = ["<=50K", ">50K"]  # public: the form has no other answer

model = dp_tabular_pipeline("classifier", epsilon=1.0, classes=CLASSES).fit(X_train, y_train)
accuracy = model.score(X_test, y_test)

# %%
# A model without privacy
# -----------------------
# The same kind of model from scikit-learn: numbers, their squares and logarithms, all standardised,
# a feature for every word, logistic regression. Its means, words and coefficients are exact, and it
# has no guarantee. The curves that it draws through a column are not quite those of the private
# model, so on some splits the private one is even a little better.


def with_curves(numbers):
    """Return numbers, their squares and their logarithms."""
    z = numbers.astype(float)
    return np.hstack([z, z**2, np.log1p(z)])


def rows(records):
    """Return a structured array as rows, which scikit-learn reads."""
    return np.array(records.tolist(), dtype=object)


def ordinary():
    """Return an unfitted model without privacy."""
    is_number = np.array([table.dtype[name].kind == "i" for name in COLUMNS])
    numbers = make_pipeline(FunctionTransformer(with_curves), StandardScaler())
    words = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer((numbers, is_number), (words, ~is_number))
    return make_pipeline(columns, LogisticRegression(max_iter=1000))


not_private = ordinary().fit(rows(X_train), y_train).score(rows(X_test), y_test)
guessing = np.mean(y_test == CLASSES[0])
print(f"test accuracy, private, epsilon 1   {accuracy:.3f}")
print(f"               not private          {not_private:.3f}")
print(f"               the larger class     {guessing:.3f}")

# %%
# The guarantee in odds
# ---------------------
# epsilon and delta limit how well anybody who sees the model can distinguish two tables that
# differ in one row. The card of the model says this in words and in odds. ``model[1].ledger_``
# lists all releases of the classifier: each statistic, its number of times, sensitivity, noise and
# price, and the theorem for the sensitivity. ``model[0].ledger_`` lists those about the columns.

card = privacy_card(model)
print("\nspent:", privacy_spent(model))
print(f"\n{card.odds}\n")
print(model[1].ledger_)

# %%
# Accuracy against epsilon
# ------------------------
# Means of three splits with fresh noise. The test rows count as public here. On private data all
# these fits would add up, and the comparison would cost far more than one model. Without
# matplotlib (``pip install ".[plot]"``) the chart is an SVG file.

EPSILONS, REPEATS = [0.1, 0.3, 1], 3
scores, exact = np.empty((REPEATS, len(EPSILONS))), []
for repeat in range(REPEATS):
    A, B, a, b = train_test_split(table[COLUMNS], table[TARGET], random_state=repeat)
    exact.append(ordinary().fit(rows(A), a).score(rows(B), b))
    for i, epsilon in enumerate(EPSILONS):
        private = dp_tabular_pipeline("classifier", epsilon=epsilon, classes=CLASSES)
        scores[repeat, i] = private.fit(A, a).score(B, b)
mean, spread, baseline = scores.mean(axis=0), scores.std(axis=0, ddof=1), np.mean(exact)
print(f"\n{'epsilon (nats)':>14}  {'mean':>5}  {'spread':>6}")
for epsilon, m, s in zip(EPSILONS, mean, spread, strict=True):
    print(f"{epsilon:>14g}  {m:>5.3f}  {s:>6.3f}")
print(f"{'not private':>14}  {baseline:>5.3f}")

TITLE = f"Adult, {len(X_train):,} rows: mean ± s.d. of {REPEATS} splits"
X_LABEL = "epsilon (nats; delta = 1e-6, replace-one adjacency, per row)"
Y_LABEL, LOWEST, HIGHEST = "test accuracy", 0.74, 0.88


def draw():
    """Return the chart as a matplotlib figure."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    fig, ax = plt.subplots(figsize=(5.6, 3.5), layout="constrained")
    ax.axhline(baseline, color="black", linestyle="--", linewidth=1.2)
    ax.fill_between(EPSILONS, mean - spread, mean + spread, color="0.8", linewidth=0)
    ax.plot(EPSILONS, mean, color="tab:blue", marker="o", markersize=5, linewidth=1.8)
    ax.axhline(guessing, color="0.4", linestyle=":", linewidth=1.2)
    ax.text(EPSILONS[0], baseline + 0.002, "not private", va="bottom")
    ax.text(EPSILONS[-1], guessing + 0.002, "the larger class", color="0.3", ha="right")
    ax.text(EPSILONS[-1], mean[-1] - 0.012, "private", color="tab:blue", ha="right", va="top")
    ax.set_xscale("log")
    ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    ax.minorticks_off()
    ax.set_ylim(LOWEST, HIGHEST)
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)
    ax.set_xlabel(X_LABEL)
    ax.set_ylabel(Y_LABEL)
    ax.set_title(TITLE, fontsize=10)
    return fig


try:
    picture, fig = Path("quickstart.png").resolve(), draw()
    if "__file__" in globals():  # run as a script, not in the gallery
        fig.savefig(picture, dpi=200)
except ImportError:
    from _svg import save_chart

    lines = {"not private": baseline, "the larger class": guessing}
    picture = save_chart(
        "quickstart.svg", EPSILONS, mean, spread, lines,
        limits=(LOWEST, HIGHEST), label="private", title=TITLE, xlabel=X_LABEL, ylabel=Y_LABEL,
    )  # fmt: skip
if "__file__" in globals():
    print(f"\nPicture: {picture}")

# %%
# What was promised
# -----------------
# Each model, including its scales and words, is (epsilon, 1e-6)-differentially private per row
# under replace-one adjacency: two tables are neighbours if they have the same number of rows and
# differ in one. All models together, and their scores on the test rows, have no such guarantee.
#
# | After this: :ref:`sphx_glr_auto_examples_plot_02_who_has_seen_the_rows.py`

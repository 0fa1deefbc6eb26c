# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Quickstart: what privacy costs in accuracy
==========================================

A classifier of handwritten digits is trained with differential privacy at several
budgets, and compared with an ordinary logistic regression on the same features.

The promise is (epsilon, delta)-differential privacy per row, under replace-one
adjacency: two data sets are neighbours if they have the same number of rows and one
row, features and label, has been exchanged for any other. epsilon (in nats) and delta
bound how well anybody who sees the fitted model can tell neighbours apart.

*You learn* to fit a private classifier in a pipeline, what accuracy costs, and where the price is
written down.
"""

# %%
# Public preprocessing
# --------------------
# An image is 64 counts from 0 to 16. The range follows from how the images were made,
# so it is public, and scaling by it costs nothing. ``Normalizer`` then brings every
# row to norm 1, each on its own. A ``StandardScaler`` would learn from private rows
# and is not covered by the promise. The label set is public as well, and is said to be
# so by ``classes``.

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from threadpoolctl import threadpool_limits

from skdp import BoundedScaler, DPLogisticRegression, privacy_spent

X, y = load_digits(return_X_y=True)
threadpool_limits(1)  # the products are so small that a second thread only gets in the way
DELTA = 1e-5
EPSILONS = [0.25, 0.5, 1, 2, 4, 8, 16]
REPEATS = 20


def with_features(classifier):
    """Return a pipeline whose preprocessing uses public constants only."""
    scaler = BoundedScaler(bounds=(0, 16), feature_range=(0, 1))
    return make_pipeline(scaler, Normalizer(), classifier)


def private(epsilon):
    """Return an unfitted private model."""
    return with_features(
        DPLogisticRegression(epsilon=epsilon, delta=DELTA, data_norm=1.0, classes=range(10))
    )


# %%
# Accuracy against epsilon
# ------------------------
# Every repeat has its own split and its own noise, which comes from the operating
# system: no two runs of this file are equal. The test rows count as public here. On
# private data all of these fits would add up; this comparison would cost far more than
# one model.

accuracy = np.empty((REPEATS, len(EPSILONS)))
baseline = np.empty(REPEATS)
for repeat in range(REPEATS):
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=repeat)
    ordinary = with_features(LogisticRegression(C=10, max_iter=1000))
    baseline[repeat] = ordinary.fit(X_train, y_train).score(X_test, y_test)
    for i, epsilon in enumerate(EPSILONS):
        model = private(epsilon).fit(X_train, y_train)
        accuracy[repeat, i] = model.score(X_test, y_test)

mean, spread = accuracy.mean(axis=0), accuracy.std(axis=0, ddof=1)
print(f"Handwritten digits, {len(X_train)} private rows, accuracy over {REPEATS} splits")
print(f"delta={DELTA:g}, replace-one adjacency, unit: one row\n")
print(f"{'epsilon (nats)':>14}  {'mean':>5}  {'spread':>6}")
for epsilon, m, s in zip(EPSILONS, mean, spread, strict=True):
    print(f"{epsilon:>14g}  {m:>5.3f}  {s:>6.3f}")
print(f"{'non-private':>14}  {baseline.mean():>5.3f}  {baseline.std(ddof=1):>6.3f}")

# %%
# What one fit has spent
# ----------------------
# The ledger lists all that has left the private rows: which statistic, how many times,
# with which sensitivity, noise and price, and why the sensitivity holds.

model = private(epsilon=1.0).fit(X_train, y_train)
print("\nOne fit at epsilon=1:")
print(model[-1].ledger_)
print("\nprivacy_spent:", privacy_spent(model))

# %%
# The picture
# -----------
# Without matplotlib (``pip install ".[plot]"``) the same chart is written as an SVG file.

TITLE = f"Digits, n = {len(X_train)}: mean ± s.d. of {REPEATS} splits"
Y_LABEL = "test accuracy"


def draw():
    """Return the chart as a matplotlib figure."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    fig, ax = plt.subplots(figsize=(5.6, 3.5), layout="constrained")
    ax.axhline(baseline.mean(), color="black", linestyle="--", linewidth=1.2)
    ax.fill_between(EPSILONS, mean - spread, mean + spread, color="0.8", linewidth=0)
    ax.plot(EPSILONS, mean, color="tab:blue", marker="o", markersize=5, linewidth=1.8)
    ax.axhline(0.1, color="0.4", linestyle=":", linewidth=1.2)
    ax.text(EPSILONS[0], baseline.mean() - 0.02, "LogisticRegression, not private", va="top")
    ax.text(EPSILONS[-1], 0.1 - 0.015, "guessing", color="0.3", ha="right", va="top")
    ax.text(EPSILONS[-1], mean[-1] - 0.09, "DPLogisticRegression", ha="right", va="top")
    ax.set_xscale("log", base=2)
    ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    ax.set_ylim(0, 1.08)
    ax.set_yticks(np.arange(0, 1.1, 0.2))
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)
    ax.set_xlabel(r"$\varepsilon$ (nats; $\delta=10^{-5}$, replace-one adjacency, per row)")
    ax.set_ylabel(Y_LABEL)
    ax.set_title(TITLE, fontsize=10)
    return fig


try:
    picture, fig = Path("quickstart.png").resolve(), draw()
    if "__file__" in globals():  # run as a script, not in the gallery
        fig.savefig(picture, dpi=200)
except ImportError:
    from _svg import save_chart

    picture = save_chart(
        "quickstart.svg",
        EPSILONS,
        mean,
        spread,
        baseline.mean(),
        title=TITLE,
        xlabel="ε (nats; δ = 1e-5, replace-one adjacency, per row)",
        ylabel=Y_LABEL,
    )
if "__file__" in globals():
    print(f"\nPicture: {picture}")

# %%
# What was promised
# -----------------
# Each model is (epsilon, 1e-5)-differentially private per row under replace-one adjacency; all of
# them together, and their scores on the test rows, are not.
#
# | After this: :ref:`sphx_glr_auto_examples_plot_02_who_has_seen_the_rows.py`

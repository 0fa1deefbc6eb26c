# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The plan of a default fit: a geometry, then few steps
=====================================================

Noise on sums over all rows is the same in every direction. Real rows are not: columns are
correlated, have different scales, and may be far from the origin. A learner without this
information wastes most of its passes, and most of its noise budget, on directions without signal.

So the default of the classifiers first releases a geometry: one noisy sum of the rows and of their
products. Then it makes a few steps in it. This example shows both parts.

*You learn* what a default fit releases, why 24 passes are enough, what an offset of all rows does
to a learner without a geometry, and the value of public knowledge.
*It builds on* :ref:`sphx_glr_auto_examples_plot_03_from_raw_adult.py`.
"""

# %%
# Releases
# --------
# Twenty thousand made-up rows of thirty correlated columns: the spread along the j-th principal
# direction is 1/j. Every direction is equally informative about the label.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdp import BoundedScaler, DPHingeSVM, DPLogisticRegression, papers
from skdp.exceptions import NoisyEstimateWarning
from skdp.privacy import gdp_mu

N_ROWS, N_COLUMNS, DELTA = 20_000, 30, 1e-5
rng = np.random.default_rng(0)
spread = 1 / np.arange(1, N_COLUMNS + 1)
directions = np.linalg.qr(rng.normal(size=(N_COLUMNS, N_COLUMNS)))[0]
latent = rng.normal(size=(2 * N_ROWS, N_COLUMNS))
score = latent @ rng.normal(size=N_COLUMNS)
labels = rng.uniform(size=2 * N_ROWS) < 1 / (1 + np.exp(-2 * score / score.std()))
made = (latent * spread) @ directions
X, y, X_test, y_test = made[:N_ROWS], labels[:N_ROWS], made[N_ROWS:], labels[N_ROWS:]
GIVEN = {"data_norm": 1.2 * np.linalg.norm(spread), "classes": [False, True]}

model = DPLogisticRegression(epsilon=1.0, delta=DELTA, **GIVEN).fit(X, y)
print(model.ledger_)

# %%
# The first line is a check of ``data_norm``, for a very small part of the budget: one count of rows
# with an entry that is tiny beside that norm. If there are many, columns have unlike units or the
# norm is far too large, and the fit finds units of its own.
#
# The second line is the geometry: the distance of the rows from the origin, and their spread, with
# noise of a known size, and the number of rows with a known label. The fit ignores what could be
# noise. With few rows or a small epsilon it ignores first the products, then the variances, then
# the mean, and makes its steps on the original rows. No threshold reads the data: the size of the
# noise decides.
#
# The third line is 24 gradients of the rows in that geometry, clipped row by row. Nothing outside
# the ledger was learned from a row.
#
# Probabilities are calibrated, too. Clipping changes the link between scores and probabilities,
# and ``predict_proba`` corrects most of the change. The noise of all steps is known, and the
# gradients say how much of the scores is signal: coefficients are shortened by the rest.
# Probabilities become less sure, and next to no decision changes.
#
# Error against passes
# --------------------
# ``solver="accelerated"`` makes its steps on the original rows. ``max_iter`` sets the number of
# steps, and with it the noise of each: more steps mean more noise. The error is the share of
# misclassified test rows beyond that of the true coefficients.

PASSES = {"accelerated": [5, 10, 20, 40, 80, 160, 320], "preconditioned": [2, 4, 10, 20, 40, 80]}
best = np.mean((score[N_ROWS:] > 0) != y_test)


def excess(solver, n_steps, repeats=2):
    """Return the mean share of test rows that are told wrong beyond the best, in per cent."""
    given = {**GIVEN, "solver": solver, "max_iter": n_steps, "delta": DELTA}
    fits = (DPLogisticRegression(epsilon=1.0, **given).fit(X, y) for _ in range(repeats))
    return 100 * (np.mean([1 - fit.score(X_test, y_test) for fit in fits]) - best)


curves = {solver: [excess(solver, n) for n in steps] for solver, steps in PASSES.items()}
for solver, values in curves.items():
    print(solver)
    for n, value in zip(PASSES[solver], values, strict=True):
        print(f"  {n:>4} steps: {value:5.1f} % more errors than the best")

# %%
# The effect of an offset
# -----------------------
# A row is now (offset, 1) or (offset, -1), and its label is the sign of the second entry, or the
# opposite sign. There is an intercept, so the offset does not change the problem. But
# ``data_norm`` must include it, and the noise is proportional to that norm. Beyond an offset of n
# mu, where mu is the Gaussian parameter of epsilon and delta, a sum of gradients has more noise
# than all rows have signal, for any choice of steps (Sun, Suresh and Menon 2023, Section 4).
#
# A noisy mean alone moves the limit: 1 / (n mu) of the offset remains. The default removes it. Its
# check finds that one column is tiny beside the norm, and it looks for the origin and the unit of
# every column by halving intervals, which depends on no length: twice the offset needs one more
# halving. :class:`~skdp.papers.FeaturePreprocessing` of kind "center-clip", the method of the
# paper, finds medians in the same way. Fits warn of such rows, and say what to do: subtract a
# public number.

warnings.simplefilter("ignore", NoisyEstimateWarning)

N_FAR = 2000
SIGN = np.repeat([1, -1], N_FAR // 2)
OFFSETS = np.logspace(0, 6, 7)
WAYS = {
    'solver="gd"': {"solver": "gd"},
    "default": {},
    'kind="center-clip"': {"solver": papers.FeaturePreprocessing(kind="center-clip")},
}


def accuracy(offset, given, repeats=4):
    """Return the mean accuracy of several fits, half of them with opposite labels."""
    rows, scores = np.column_stack([np.full(N_FAR, offset), SIGN]), []
    given = {"data_norm": np.hypot(offset, 1.0), "classes": (-1, 1), "delta": DELTA, **given}
    for repeat in range(repeats):
        labels = SIGN if repeat % 2 else -SIGN
        fit = DPHingeSVM(1.0, adjacency="zero-out", **given).fit(rows, labels)
        scores.append(fit.score(rows, labels))
    return np.mean(scores)


far = {name: [accuracy(offset, given) for offset in OFFSETS] for name, given in WAYS.items()}
print(f"{'offset':<28}" + "".join(f"{offset:>7.0e}" for offset in OFFSETS))
for name, values in far.items():
    print(f"{name:<28}" + "".join(f"{value:>7.2f}" for value in values))

# %%
# The picture
# -----------
# Left: the plan with a geometry reaches its final error after a few passes; the other needs a
# hundred and more, and does not quite get there. Right: guessing gives 0.5, and the grey line is
# n mu.

fig, (left, right) = plt.subplots(1, 2, figsize=(6.4, 4.2), layout="constrained")
STYLES = {"accelerated": ("tab:red", "s", "--"), "preconditioned": ("tab:blue", "o", "-")}
for solver, values in curves.items():
    color, marker, line = STYLES[solver]
    passes = np.array(PASSES[solver]) + (solver == "preconditioned")
    left.plot(passes, values, color=color, marker=marker, linestyle=line, label=solver)
left.set(
    xscale="log", ylim=(0, None), xlabel="passes over the rows", ylabel="errors beyond the best, %"
)
left.set_title("columns that go together", fontsize=10)
LOOKS = (("tab:red", "s", "--"), ("tab:blue", "o", "-"), ("0.45", "^", ":"))
for (name, values), (color, marker, line) in zip(far.items(), LOOKS, strict=True):
    right.plot(OFFSETS, values, color=color, marker=marker, linestyle=line, label=name)
right.axvline(N_FAR * gdp_mu(1.0, DELTA), color="0.6", linewidth=1.2)
right.set(xscale="log", ylim=(0.38, 1.06), xlabel="offset of all rows", ylabel="accuracy")
right.set_title("rows far from the origin", fontsize=10)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
left.legend(fontsize=9, frameon=False)
right.legend(fontsize=8, frameon=False, loc="center right", handlelength=1.3)
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("how_the_default_plans_a_fit.png", dpi=150)

# %%
# Handwritten digits: public knowledge
# ------------------------------------
# An image is 64 counts from 0 to 16. This follows from how images were made, so it is public. The
# default can find it, with noise, or you can state it: ``BoundedScaler`` maps pixels to [0, 1],
# and ``Normalizer`` scales every image to length 1, both for free. 1,347 images of ten classes are
# few. Even so neither way is clearly better: pixels have one unit, and the default finds it for a
# small part of its budget.

X, y = load_digits(return_X_y=True)
TEN = {"classes": range(10), "delta": DELTA}
for epsilon in (1.0, 4.0):
    ways = {
        "raw pixels": DPLogisticRegression(epsilon, **TEN),
        "public range and length": make_pipeline(
            BoundedScaler(bounds=(0, 16), feature_range=(0, 1)),
            Normalizer(),
            DPLogisticRegression(epsilon, data_norm=1.0, **TEN),
        ),
    }
    for name, way in ways.items():
        parts = (train_test_split(X, y, random_state=seed) for seed in range(5))
        found = [clone(way).fit(A, a).score(B, b) for A, B, a, b in parts]
        print(f"digits, epsilon {epsilon:g}, {name:<24} accuracy {np.mean(found):.2f}")

# %%
# Choices of your own
# -------------------
# Public knowledge is free: first scale columns by public bounds (:class:`~skdp.BoundedScaler`), and
# leave the rest to the default. Use ``papers.FeaturePreprocessing(kind="center-clip")`` for rows
# that are much farther from the origin than from each other, and ``solver="accelerated"`` if there
# is no memory for a copy of the rows. :ref:`preconditioned` has the rules and the proof.
#
# References
# ----------
# Z. Sun, A. T. Suresh and A. K. Menon, "The importance of feature preprocessing for
# differentially private linear optimization", arXiv:2307.11106, 2023.

# %%
# What was promised
# -----------------
# Each fit, including its geometry or its center, is (1, 1e-5)-differentially private per row. The
# fits of the first part have replace-one adjacency, those of the second zero-out, which is weaker
# with the same numbers.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_06_what_tuning_costs.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_08_smoothing_the_hinge.py`

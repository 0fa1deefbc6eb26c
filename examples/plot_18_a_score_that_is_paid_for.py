# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A private test score, and its interval
======================================

A first analysis of a table of people has three steps: describe it, fit a model, and evaluate the
model. The rows of the evaluation are private, too, so each step has a price. One budget pays for
all three.

*You learn* to describe a table; to release accuracy, AUC, a ROC curve and a calibration curve
within one budget; and to read their intervals, also for few rows.
*It builds on* :ref:`sphx_glr_auto_examples_plot_05_one_account_for_all.py`.
"""

# %%
# The table, and one budget for everything
# ----------------------------------------
# The table of the first lesson. Public are the names and types of its columns, the two classes of
# incomes, and bounds of three columns; two have no bounds. The budget is 2 in all. A quarter of it
# pays for a description: ``records.describe()`` of pandas, with noise. About half of the people
# are between 28 and 48, and at least three quarters have no capital gain and no capital loss.

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import RocCurveDisplay, roc_auc_score, roc_curve
from sklearn.model_selection import train_test_split

from skdp import PrivacyBudget, dp_describe, dp_tabular_pipeline, privacy_card, privacy_spent
from skdp.exceptions import NoisyEstimateWarning
from skdp.metrics import DPClassificationScores

FILE = Path(globals().get("__file__", "here")).with_name("adult.csv.xz")
records = pd.read_csv(FILE, na_values="?")
CLASSES = ["<=50K", ">50K"]
budget = PrivacyBudget(epsilon=2.0, delta=1e-6)
summary = dp_describe(
    records,
    epsilon=0.5,
    bounds={"age": (17, 90), "capital_gain": (0, 100_000), "capital_loss": (0, 5_000)},
    categories={"income": CLASSES},
    budget=budget,
)
print(summary)

# %%
# The model, and its scores
# -------------------------
# Two thirds of the people are for the model, which gets half of the budget. The others are held
# out, and just as private: the rest of the budget pays for the scores on them.

incomes = records.pop("income")
train, test, y_train, y_test = train_test_split(records, incomes, test_size=1 / 3, random_state=0)
model = dp_tabular_pipeline("classifier", epsilon=1.0, classes=CLASSES, budget=budget)
model.fit(train, y_train)
scores = DPClassificationScores.from_estimator(
    model, test, y_test, epsilon=budget.remaining[0], budget=budget
)
print(f"{len(train)} people for the model, {len(test)} for its scores\n")
for charge in budget.charges:
    print(f"{charge.label:<24} epsilon={charge.epsilon:.3f} delta={charge.delta:.0e}")
print(f"{'left':<24} epsilon={budget.remaining[0]:.3f}")

# %%
# Releases
# --------
# There are two tables of counts. The first finds bins with about equally many people, without
# their labels. The second counts labels in these bins. All scores are computed from it, for free.
# The printed table also has the exact scores, which nobody could publish without a breach. A
# private score is a float with an ``interval``.

for release in scores.ledger_.releases:
    print(f"{release.size:>4} numbers, epsilon={release.noise.epsilon:.3f}: {release.query}")
proba = model.predict_proba(test)[:, 1]
wealthy = (y_test == ">50K").to_numpy()
exact = {
    "accuracy": ((proba > 0.5) == wealthy).mean(),
    "roc_auc": roc_auc_score(wealthy, proba),
    "brier_score_loss": ((proba - wealthy) ** 2).mean(),
}
print("\nscore              released   95 % interval     exact")
for name, value in exact.items():
    score = getattr(scores, name)
    low, high = score.interval
    print(f"{name:<18} {score:>8.3f}   {low:.3f} to {high:.3f}    {value:.3f}")

# %%
# Intervals
# ---------
# An interval includes sampling and noise. For sixteen thousand people four fifths of its width for
# accuracy is sampling, which is there without privacy, too. The interval of the AUC is wider: all
# counts affect it, and the smaller class has the same weight as the larger. For few people and a
# small epsilon the interval is all of [0, 1], and a warning says so.

SIZES = [500, 1000, 2000, 4000, 8000, len(test)]
widths = {}
warnings.simplefilter("ignore", NoisyEstimateWarning)
for epsilon in (0.1, 0.5, 2.0):
    widths[epsilon] = []
    for n_rows in SIZES:
        paid = [
            DPClassificationScores.from_predictions(
                y_test[:n_rows], proba[:n_rows], epsilon=epsilon, classes=["<=50K", ">50K"]
            )
            for _ in range(5)
        ]
        widths[epsilon].append(np.mean([np.diff(one.roc_auc.interval)[0] for one in paid]))
    print(f"epsilon={epsilon}: " + "  ".join(f"{width:.3f}" for width in widths[epsilon]))

# %%
# The picture
# -----------
# Left, the private curve in the display of scikit-learn. Middle, calibration with intervals.
# Right, the width of the interval of the AUC.

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(9.6, 3.6), layout="constrained")
fpr, tpr, _ = scores.roc_curve()
false, true, _ = roc_curve(wealthy, proba)
left.plot(false, true, color="0.7", linewidth=4, label="exact")
display = RocCurveDisplay(fpr=fpr, tpr=tpr, name="private")
display.plot(ax=left)
display.line_.set(color="tab:blue", marker=".", markersize=4)
low, high = scores.roc_auc.interval
left.set_title(f"AUC {scores.roc_auc:.3f} ({low:.3f} to {high:.3f})", fontsize=10)
left.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
left.legend(frameon=False, fontsize=9, loc="lower right")
prob_true, prob_pred, intervals = scores.calibration_curve()
middle.plot([0, 1], [0, 1], ":", color="0.5")
error = np.abs(intervals.T - prob_true)
middle.errorbar(prob_pred, prob_true, error, fmt="o", color="tab:blue", markersize=4, capsize=2)
middle.set(xlabel="predicted probability", ylabel="share of >50K")
middle.set_aspect("equal")
middle.set_title("calibration", fontsize=10)
for (epsilon, found), style in zip(widths.items(), (":^", "--s", "-o"), strict=True):
    right.loglog(
        SIZES, found, style, color="tab:blue", markersize=4, label=rf"$\varepsilon={epsilon}$"
    )
right.set(xlabel="held-out rows", ylabel="width of the interval of the AUC")
right.set_xticks([500, 2000, 8000], ["500", "2,000", "8,000"])
right.set_yticks([0.02, 0.1, 0.5, 1], ["0.02", "0.1", "0.5", "1"])
right.minorticks_off()
right.legend(frameon=False, fontsize=9)
for ax in (left, middle, right):
    ax.spines[["top", "right"]].set_visible(False)
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("a_score_that_is_paid_for.png", dpi=150)

# %%
# A card for all three
# --------------------
# A card states the guarantee of all three together, for a reviewer who reads nothing else. The
# charges above add up to the budget: .5 and 1 and .5. The ledgers compose the releases more
# tightly than a sum of prices, so the epsilon here is smaller.

print(privacy_spent(model, scores, summary))
card = privacy_card(model, scores, summary, name="Who earns more than 50,000")
claim = card.to_dict()["claim"]
print(f"the claim {claim['status']}: epsilon={claim['epsilon']:.4f}, delta={claim['delta']:.0e}")
print(len(card.to_markdown().splitlines()), "lines of Markdown for the file of the project")

# %%
# What was promised
# -----------------
# The description, the model and its scores together are (2, 1e-6)-differentially private per row
# under replace-one adjacency, for people of the model and of the scores alike. This does not cover
# the exact scores and the exact curve of this page, nor the scores of the third picture: each of
# them would have its own price. :ref:`scores` has the rules, and errors in more settings.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_17_larger_than_memory.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_19_who_loses.py`

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A private test score, and its interval
======================================

A private model comes with a question: how good is it? The rows that could tell are private, too. So
far the answer was not covered by any promise. It can be: a score is a statistic, and has a price.

*You learn* to release accuracy, AUC, a ROC curve and a calibration curve out of the budget of the
model, to read their intervals, and what a class with few rows does to them.
*It builds on* :ref:`sphx_glr_auto_examples_plot_05_one_account_for_all.py`.
"""

# %%
# One budget for the model and for its scores
# -------------------------------------------
# The table of the first lesson. A third of the people are held out, and just as private as the
# others.

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import RocCurveDisplay, roc_auc_score, roc_curve
from sklearn.model_selection import train_test_split

from skdp import dp_tabular_pipeline, privacy_spent
from skdp.exceptions import NoisyEstimateWarning
from skdp.metrics import DPClassificationScores

FILE = Path(globals().get("__file__", "here")).with_name("adult.csv.xz")
records = pd.read_csv(FILE, na_values="?")
incomes = records.pop("income")
train, test, y_train, y_test = train_test_split(records, incomes, test_size=1 / 3, random_state=0)

model = dp_tabular_pipeline("classifier", epsilon=1.0, classes=["<=50K", ">50K"])
model.fit(train, y_train)
scores = DPClassificationScores.from_estimator(model, test, y_test, epsilon=0.5)
print(f"{len(train)} people for the model, {len(test)} for its scores")
print("spent together:", privacy_spent(model, scores))

# %%
# What was released
# -----------------
# Two tables of counts. The first finds bins in which about equally many people are, without their
# labels. The second counts labels in these bins. All scores are computed from it, and cost nothing
# more. Beside them, what nobody could see without a breach: the exact ones.

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
# What the interval counts
# ------------------------
# The rows are a sample, and there is noise. Of sixteen thousand people four fifths of the width
# for accuracy is the sampling, which is there without any privacy. The AUC needs more: all counts
# enter it, and the class with fewer people counts as much as the other. Of few people, at a small
# epsilon, nothing is known: the interval is all of [0, 1], and a warning says so.

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
# Left, the display of scikit-learn takes the private curve as it is. In the middle, calibration,
# with intervals. Right, how wide the interval of the AUC is.

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(9.6, 3.6), layout="constrained")
fpr, tpr, _ = scores.roc_curve()
false, true, _ = roc_curve(wealthy, proba)
left.plot(false, true, color="0.7", linewidth=4, label="exact")
display = RocCurveDisplay(fpr=fpr, tpr=tpr, name="private")
display.plot(ax=left)
display.line_.set(color="tab:blue", marker=".", markersize=4)
low, high = scores.roc_auc.interval
left.set_title(f"AUC {scores.roc_auc:.3f} ({low:.3f} to {high:.3f})", fontsize=10)
left.set(xlabel="false positive rate", ylabel="true positive rate")
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
# What was promised
# -----------------
# The model and its scores together are (1.5, 1e-6)-differentially private per row under
# replace-one adjacency, whether a person is among those of the model or those of the scores. The
# exact scores and the exact curve of this page are no part of that, and neither are the scores that
# were released for the third picture: each of them would have its own price. :ref:`scores` has the
# rules, and errors on more settings.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_17_larger_than_memory.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_19_who_loses.py`

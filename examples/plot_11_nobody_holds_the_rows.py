# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Local privacy: every row reports for itself
===========================================

The other examples trust whoever runs ``fit``, who sees the rows and adds noise to what is
published. Here nobody is trusted. Every person randomises a report and sends it; the rows never
leave their owners.

How much accuracy is lost, and what can still be learned?

*You learn* what changes if nobody may see the rows, and how much accuracy is lost.
*It builds on* :ref:`sphx_glr_auto_examples_plot_01_quickstart.py`.
"""

# %%
# A survey
# --------
# Two hundred thousand people answer twelve questions with yes or no. Some answers are correlated.

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPMean
from skdp.local import LocalDPCovariance, LocalDPMean, PrivUnitPrivatizer

N_PEOPLE, N_QUESTIONS, EPSILON = 200_000, 12, 4.0
rng = np.random.default_rng(0)
habits = rng.normal(size=(N_PEOPLE, 3)) @ rng.normal(size=(3, N_QUESTIONS))
answers = (habits + rng.normal(size=habits.shape) > rng.uniform(-1.5, 1.5, N_QUESTIONS)) * 1.0
share = answers.mean(axis=0)
print("yes:", np.round(share, 2))

# %%
# One report
# ----------
# A row of answers, centered by the public one half, has Euclidean norm :math:`\sqrt{12}/2`. The
# report points into a cap around the row more often than by chance, and otherwise elsewhere. For
# any row, no report is more than :math:`e^4` times as likely as under other answers: one report is
# a poor guess.

CENTER, NORM = 0.5, np.sqrt(N_QUESTIONS) / 2
privatizer = PrivUnitPrivatizer(EPSILON, data_norm=NORM).fit(answers[:1] - CENTER)
report = privatizer.transform(answers[:1] - CENTER) + CENTER
print("row:   ", answers[0].astype(int))
print("report:", np.round(report[0], 1))
print("spent: ", privatizer.privacy_spent_)

# %%
# Many reports
# ------------
# A report is unbiased, so the mean of all is close to the mean of the rows, and its error is
# estimated from the reports. Every person spends the whole epsilon, but nobody spends it twice.

local = LocalDPMean(EPSILON, data_norm=NORM).fit(answers - CENTER)
low, high = local.confidence_interval(0.95)
central = DPMean(EPSILON, bounds=(0, 1)).fit(answers)
print("inside of the intervals:", np.sum((low <= share - CENTER) & (share - CENTER <= high)))
print(f"error, local:   {np.abs(local.location_ + CENTER - share).max():.4f}")
print(f"error, trusted: {np.abs(central.location_ - share).max():.5f}")

# %%
# The picture
# -----------
# Left: the estimates, with intervals at 95 per cent, and the truth. Right: errors against the
# number of people n. With a trusted curator they fall as 1/n, because noise is added once; with
# local reports as one over the root of n, because everybody adds noise.

SIZES = np.logspace(3, np.log10(N_PEOPLE), 6).astype(int)


def error(location, n):
    """Return the root mean squared error over the questions."""
    return np.sqrt(np.mean((location - answers[:n].mean(axis=0)) ** 2))


errors = {"local reports": [], "trusted curator": []}
for n in SIZES:
    one = LocalDPMean(EPSILON, data_norm=NORM).fit(answers[:n] - CENTER)
    other = DPMean(EPSILON, bounds=(0, 1)).fit(answers[:n])
    errors["local reports"].append(error(one.location_ + CENTER, n))
    errors["trusted curator"].append(error(other.location_, n))

fig, (left, right) = plt.subplots(1, 2, figsize=(6.4, 4.2), layout="constrained")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
order = np.argsort(share)
places = np.arange(N_QUESTIONS)
middle, half = local.location_ + CENTER, (high - low) / 2
left.errorbar(
    places, middle[order], half[order], fmt="o", markersize=4, color="tab:blue", capsize=3,
    label="from reports",
)  # fmt: skip
left.plot(places, share[order], "_", color="black", markersize=14, label="truth")
left.set(xlabel="question", ylabel="share of yes", xticks=places)
left.legend(frameon=False)
left.set_title(rf"{N_PEOPLE:,} people, $\varepsilon = {EPSILON:g}$ each", fontsize=10)
styles = {"local reports": ("tab:blue", "o", "-"), "trusted curator": ("0.4", "s", "--")}
for name, values in errors.items():
    color, marker, line = styles[name]
    right.loglog(SIZES, values, color=color, marker=marker, linestyle=line, label=name)
right.set(xlabel="people", ylabel="root mean squared error")
right.legend(frameon=False)
right.set_title("price of not trusting anybody", fontsize=10)
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("nobody_holds_the_rows.png", dpi=150)

# %%
# More from the same reports
# --------------------------
# The noise of a report has the same variance in every direction for all rows, so it can be
# subtracted from second moments. The correlations of answers are therefore free.

moments = LocalDPCovariance(EPSILON, data_norm=NORM).fit(answers - CENTER)
truth = np.cov(answers.T, bias=True)
above = np.triu_indices(N_QUESTIONS, 1)
agree = np.corrcoef(moments.covariance_[above], truth[above])[0, 1]
print(f"covariances of pairs, estimated against true: correlation {agree:.2f}")

# %%
# Limits
# ------
# Two reports of a person spend two budgets: a survey that is repeated every week spends every
# week. The guarantee is about one row; whether somebody answered is visible. At large budgets a
# report points to the row itself, as the next example shows.

# %%
# What was promised
# -----------------
# Each report is 4-differentially private towards everybody, including the collector, each time a
# person reports.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_10_one_enormous_row.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_12_what_an_attacker_can_rebuild.py`

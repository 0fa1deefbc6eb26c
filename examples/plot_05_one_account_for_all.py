# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
One privacy budget for many fits
================================

A fit keeps its own promise, and knows nothing about earlier fits. For the people in the data,
everything that was ever released about them adds up. So an analysis needs one budget, which
refuses fits when it is empty.

*You learn* to give one :class:`~skdp.PrivacyBudget` to many fits, what a refusal looks like, how
to share a budget in a file, and how to choose between two kinds of composition.
*It builds on* :ref:`sphx_glr_auto_examples_plot_04_reading_a_ledger.py`.
"""

# %%
# An analysis in four steps
# -------------------------
# Two thousand made-up patients: age, blood pressure, and whether they came back. Bounds are
# public.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skdp import (
    BoundedScaler,
    DPLogisticRegression,
    DPMean,
    DPQuantile,
    PrivacyBudget,
)
from skdp.exceptions import BudgetError
from skdp.privacy import gdp_mu

rng = np.random.default_rng(0)
age = rng.integers(18, 95, size=2000)
pressure = 110 + 0.4 * age + rng.normal(scale=12, size=2000)
patients = np.column_stack([age, pressure])
came_back = (rng.logistic(0.04 * (age - 60)) > 0).astype(int)
BOUNDS = ([0, 0], [120, 250])

budget = PrivacyBudget(epsilon=1.0, delta=1e-6)
mean = DPMean(epsilon=0.2, delta=1e-7, bounds=BOUNDS, budget=budget).fit(patients)
median = DPQuantile(epsilon=0.2, bounds=BOUNDS, budget=budget).fit(patients)
scaled = BoundedScaler(bounds=BOUNDS).fit_transform(patients)  # public bounds: costs nothing
given = {"delta": 1e-7, "data_norm": 1.5, "classes": (0, 1), "budget": budget}
model = DPLogisticRegression(epsilon=0.5, **given).fit(scaled, came_back)
print("means  ", mean.location_.round(1))
print("medians", np.round(median.location_, 1))
print(budget)

# %%
# A refused fit
# -------------
# 0.1 is left. The next fit asks for 0.3, and is refused *before* it reads a row: to stop halfway
# would also be a release.

try:
    DPLogisticRegression(epsilon=0.3, **given).fit(scaled, came_back)
except BudgetError as error:
    print(error)
print(budget.to_frame()[["label", "epsilon", "delta"]])

# %%
# A budget in a file
# ------------------
# Next week's session, the workers of a grid search, and a colleague on the same machine can share
# a budget by its file. Whoever opens it finds the spent budget. A charge is on disk before the
# first row is read, so a program that dies has paid.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "patients.budget")
    today = PrivacyBudget(epsilon=1.0, delta=1e-6, path=path)
    DPMean(epsilon=0.4, delta=1e-7, bounds=BOUNDS, budget=today).fit(patients)
    next_week = PrivacyBudget.open(path)
    print("next week there is left: epsilon={:.3g}, delta={:.2g}".format(*next_week.remaining))
    try:
        PrivacyBudget(epsilon=10.0, delta=1e-6, path=path)
    except BudgetError as error:
        print(str(error).replace(str(path), "patients.budget"))

# %%
# Two kinds of composition
# ------------------------
# ``composition="sum"``, the default, adds epsilons. ``"gaussian"`` adds the squares of mu, the
# price of Gaussian noise, and reserves half of delta for it. The first is better for one fit that
# uses all of delta, and for a few without Gaussian noise. For many small ones with Gaussian noise
# the second is much better. Choose before the first fit: a later choice of the smaller total is
# not covered.


def after(counts, composition, epsilon, delta):
    """Return the epsilon spent after so many fits of equal price."""
    account = PrivacyBudget(1e3, 1e-5, composition=composition)
    spent = []
    for n_fits in range(1, max(counts) + 1):
        account.charge(epsilon, delta, adjacency="replace-one", mu=gdp_mu(epsilon, delta))
        if n_fits in counts:
            spent.append(account.spent[0])
    return spent


FITS = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
curves = {name: after(FITS, name, 0.1, 1e-8) for name in ("sum", "gaussian")}
print(f"\n{'fits of (0.1, 1e-8)':<22}" + "".join(f"{n:>6}" for n in FITS))
for name, values in curves.items():
    print(f"{name:<22}" + "".join(f"{value:>6.2f}" for value in values))

# %%
# The picture
# -----------
# Left, the charges of the first budget: the hatched fit would have exceeded it. Right, the total
# of many fits of 0.1.

fig, (left, right) = plt.subplots(1, 2, figsize=(6.4, 4.0), layout="constrained")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
start = 0.0
for charge, color in zip(budget.charges, ["0.45", "0.7", "tab:blue"], strict=True):
    left.barh(charge.label, charge.epsilon, left=start, color=color)
    start += charge.epsilon
left.barh("refused", 0.3, left=start, color="white", edgecolor="tab:red", hatch="//")
left.axvline(budget.epsilon, color="black", linewidth=1.2)
left.invert_yaxis()
left.set(xlabel=r"$\varepsilon$, charge by charge", xlim=(0, 1.3), xticks=(0, 0.5, 1))
left.set_title(r"a budget of $\varepsilon = 1$", fontsize=10)
for (name, values), style in zip(curves.items(), ("--s", "-o"), strict=True):
    color = "tab:red" if name == "sum" else "tab:blue"
    right.loglog(FITS, values, style, color=color, markersize=4, label=f'"{name}"')
right.set(xlabel="fits", ylabel=r"$\varepsilon$ of all")
right.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
right.set_title(r"fits of (0.1, $10^{-8}$)", fontsize=10)
right.legend(title="composition", frameon=False, fontsize=9)
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("one_account_for_all.png", dpi=150)

# %%
# What was promised
# -----------------
# All releases about the patients, means, medians and model together, are (1, 1e-6)-differentially
# private per row under replace-one adjacency, if every fit to these rows had the budget.
# :ref:`budgets` says what happens when disks are full and clocks stop.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_04_reading_a_ledger.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_06_what_tuning_costs.py`

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Reconstruction of a row from its local report
=============================================

If noise is added on a person's device, before anything leaves it, budgets tend to be large: one
report must hide one person by itself. A large epsilon hides no single property. It may still
prevent reconstruction of the person's data, if the data has many dimensions. How large is too
large?

This example examines one report of a direction in 784 dimensions (an image of 28 by 28 pixels, or
a small gradient), and the words of a person. It reads no data: everything follows from public
numbers (Bhowmick, Duchi, Freudiger, Kapoor and Rogers 2018).

*You learn* what a large local budget protects from, and what it does not.
*It builds on* :ref:`sphx_glr_auto_examples_plot_11_nobody_holds_the_rows.py`.
"""

# %%
# Bounds and an attack for one budget
# -----------------------------------
# A guess succeeds if its cosine with the truth is at least that of the row. The *prior* is the
# probability of success without the report. The next three columns are bounds for every attack on
# every channel with this budget: that of the paper, e^epsilon times the prior, and the *odds
# bound*, which is the smallest. The last column is the exact success of the best attack on
# PrivUnit, the optimal local randomiser of directions.

import matplotlib.pyplot as plt
import numpy as np

from skdp.inspection import (
    cosine_for_reconstruction,
    dictionary_risk,
    epsilon_for_reconstruction,
    reconstruction_risk,
)

DIMS = 784
print(reconstruction_risk(8.0, DIMS, cosine=[0.05, 0.1, 0.15, 0.2, 0.3], mechanism="privunit"))

# %%
# The picture
# -----------
# Dashed lines are the bound, solid lines the best attack on PrivUnit. To the right of a dashed
# curve nothing can be reconstructed; to the left of a solid one nearly everything can. Between the
# two another channel might be worse than PrivUnit, except at the cosine where they meet.

COSINES = np.linspace(0.0, 1.0, 401)
BUDGETS = {8: "tab:green", 50: "tab:blue", 200: "tab:purple", 510: "tab:red"}

fig, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
ax.spines[["top", "right"]].set_visible(False)
for epsilon, colour in BUDGETS.items():
    risk = reconstruction_risk(epsilon, DIMS, cosine=COSINES, mechanism="privunit")
    ax.plot(COSINES, risk.odds_bound, "--", color=colour, linewidth=1.2)
    ax.plot(COSINES, risk.privunit, color=colour)
    ax.text(risk.mean_cosine + 0.045, 0.5, rf"$\varepsilon = {epsilon}$", color=colour)
ax.plot(COSINES, risk.prior, ":", color="0.4")
ax.set_xlabel("cosine that counts as a success")
ax.set_ylabel("success of the attacker")
ax.set_title(f"{DIMS} dimensions, uniform prior (dotted: without a report)", fontsize=10)
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("what_an_attacker_can_rebuild.png", dpi=150)

# %%
# The next picture has the smallest cosine that nobody reaches more often than once in twenty. It
# depends on epsilon over the dimension. If this ratio is 1, nothing below a cosine of
# 0.93 is ruled out: the direction is nearly known.

budgets = np.geomspace(1.0, 1e4, 60)
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.spines[["top", "right"]].set_visible(False)
for n_dims, style in {100: ":", 784: "-", 10_000: "--"}.items():
    least = [cosine_for_reconstruction(epsilon, n_dims, success=0.05) for epsilon in budgets]
    ax.semilogx(budgets, least, style, color="black", label=f"{n_dims:,} dimensions")
ax.set_xlabel(r"$\varepsilon$")
ax.set_ylabel("smallest cosine that is ruled out")
ax.set_title("success at most 0.05", fontsize=10)
ax.legend(fontsize=9, frameon=False, loc="upper left")
ax.set_ylim(-0.02, 1.02)
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("what_is_ruled_out.png", dpi=150)

# %%
# Knowledge of the attacker
# -------------------------
# The bound assumes a nearly uniform prior. If its density is at most e^10 times that of the
# uniform law, the budget must be smaller by 10. State this whenever you quote the bound.

print("\nlargest epsilon for a cosine of 0.5 once in a hundred")
for ratio in (0, 1, 5, 10, 50):
    epsilon = epsilon_for_reconstruction(0.01, DIMS, cosine=0.5, prior_log_ratio=ratio)
    print(f"  prior at most e^{ratio:<2d} times uniform: {epsilon:6.1f}")

# %%
# Words
# -----
# The same for the words of a person, from a dictionary in which word j is used with probability
# min(100/j, 1). An attacker names words, and succeeds if half of them are right and their recall
# is that of the table. Without a report the best guess is a list of the most frequent words.

print("\nrecall   words named   without a report   with one of epsilon 8")
for recall in (0.4, 0.45, 0.5, 0.55, 0.6):
    words = dictionary_risk(8.0, 25_000, 100, precision=0.5, recall=recall)
    print(
        f"{recall:<9}{words.n_predicted:<14}{words.prior:<19.1e}{words.odds_bound:.1e}"
    )  # fmt: skip

# %%
# A small change leads from "half of the time, without a report" to "practically never, with any
# report". First decide what in the data is secret, then choose epsilon.
#
# References
# ----------
# A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor and R. Rogers, "Protection against reconstruction
# and its applications in private federated learning", 2018.

# %%
# What was promised
# -----------------
# Nothing was released here. These numbers say what an epsilon-private report of one row excludes,
# if the attacker's prior is no sharper than stated.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_11_nobody_holds_the_rows.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_13_clients_of_a_federation.py`

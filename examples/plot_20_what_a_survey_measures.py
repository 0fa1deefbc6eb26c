# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Private components and ridge regression of a survey
===================================================

Twenty thousand people answer twenty-four questions. How many things do the questions measure, and
how are these related to income? Both answers follow from products of columns, which are released
once.

*You learn* to reduce a table to a few components that may be published, to recognise components
that may be noise, and to read confidence intervals that include the noise.
*It builds on* :ref:`sphx_glr_auto_examples_plot_05_one_account_for_all.py`.
"""

# %%
# A made-up survey
# ----------------
# The truth is known: trust, health and chance determine all answers, on a scale from 1 to 7.
# Income depends on the first two and on age, and not on the third.

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPPCA, DPRidge, PrivacyBudget

rng = np.random.default_rng(0)
behind = rng.normal(size=(20_000, 3)) * [1.0, 0.8, 0.6]
questions = np.kron(np.eye(3), rng.uniform(0.7, 1.2, size=8))
answers = np.clip(np.rint(4 + behind @ questions + 0.8 * rng.normal(size=(20_000, 24))), 1, 7)
age = rng.uniform(20, 65, size=20_000)
incomes = 30 + 4 * behind[:, 0] + 2 * behind[:, 1] + 0.2 * age + 6 * rng.normal(size=20_000)

# %%
# Components
# ----------
# All products are released once. Three variances stand out. The others are the individual part of
# each question, with noise; below ``noise_level_`` they may be noise alone, whatever share of the
# variance they seem to explain.

budget = PrivacyBudget(epsilon=1.5, delta=1e-6, composition="gaussian")
pca = DPPCA(epsilon=0.8, delta=1e-7, bounds=(1, 7), budget=budget).fit(answers)
print("variances:", pca.explained_variance_[:6].round(2))
print(f"noise alone makes about {pca.noise_level_:.2f}")

# %%
# Three columns instead of twenty-four
# ------------------------------------
# The components are now public. The output of ``transform`` is not: it has rows of people, without
# noise. It goes to the next private estimator, within the same budget.

scores = pca.transform(answers)[:, :3]
names = ["component 1", "component 2", "component 3", "age"]
model = DPRidge(epsilon=1.0, delta=1e-7, budget=budget)
model.fit(np.column_stack([scores, age]), incomes)
lower, upper = model.conf_int(level=0.95)
for name, coef, low, high in zip(names, model.unpenalised_coef_, lower, upper, strict=True):
    verdict = "not told from 0" if low < 0 < high else ""
    print(f"{name:<12} {coef:>6.2f}   {low:.2f} to {high:.2f}   {verdict}")
print("spent:", budget.spent)

# %%
# The interval includes sampling and noise. For age the true coefficient is 0.2. Noise has turned
# the components a little: the third contains a small part of the other two, so its coefficient is
# close to 0, but need not be 0. The direction of a component, and so the sign of its coefficient,
# is a convention.
#
# The picture
# -----------
# Left, the released variances and the level of the noise. Middle, the questions in each component:
# eight each. Right, the intervals.

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(9.6, 3.2), layout="constrained")
left.plot(range(1, 25), pca.explained_variance_, "o", color="tab:blue", markersize=4)
left.axhline(pca.noise_level_, color="0.5", linestyle=":")
left.annotate("noise alone", (24, pca.noise_level_), (0, 4), textcoords="offset points", ha="right")
left.set(xlabel="component", ylabel="released variance")
largest = np.abs(pca.components_[:3]).max()
middle.imshow(pca.components_[:3], cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto")
middle.set(xlabel="question", yticks=[0, 1, 2], yticklabels=["1", "2", "3"])
places = np.arange(4)
middle_of = (lower + upper) / 2
right.errorbar(middle_of, places, xerr=(upper - lower) / 2, fmt="o", color="tab:blue", capsize=3)
right.axvline(0, color="0.5", linestyle=":")
right.set(yticks=places, yticklabels=names, xlabel="thousands a year, per unit")
right.invert_yaxis()
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("what_a_survey_measures.png", dpi=150)

# %%
# What was promised
# -----------------
# Both fits together are within (1.5, 1e-6)-differential privacy per row under replace-one
# adjacency: components, coefficients and intervals may be published. The reduced rows may not. The
# bounds 1 and 7 of the answers are public; nothing is assumed about age and income. :ref:`moments`
# has the rules, and the measured coverage of the intervals.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_19_who_loses.py`

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
When centering pays
===================

A private learner hides each row behind noise, and the noise has to match the longest row
there may be. If all rows lie far from the origin, and close to each other, most of that
noise hides an offset which says nothing about anybody.

Subtract the mean, then? The mean depends on the private rows, so it has a price too. This
example shows what the price buys, on data where it decides between everything and nothing
(Sun, Suresh and Menon 2023, Section 4).

*You learn* why an offset of all rows drowns what they say, and how to buy it off.
*It builds on* :ref:`sphx_glr_auto_examples_plot_03_from_raw_adult.py`.
"""

# %%
# Two lines of points, far away
# -----------------------------
# A row is (mu, 1) or (mu, -1), and its label is the sign of the second feature, or the
# opposite of it: whoever learns the model has to find out which. For mu = 0 that is easy.
# The offset mu changes nothing about the problem, as the classifier has an intercept.
#
# But rows have the length sqrt(mu^2 + 1), and this is what must be said in ``data_norm``. It is
# also about the length of a row's gradient. The second feature, which holds all the signal,
# is one part in mu of it.

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPHingeSVM, DPMean
from skdp.privacy import gdp_mu

N_ROWS, EPSILON, DELTA = 2000, 1.0, 1e-5
COMMON = {"adjacency": "zero-out", "classes": (-1, 1)}
SIGN = np.repeat([1, -1], N_ROWS // 2)


def rows(offset):
    """Return the rows at an offset, and the public bound on their length."""
    return np.column_stack([np.full(N_ROWS, offset), SIGN]), np.hypot(offset, 1.0)


# %%
# What goes wrong
# ---------------
# Every step adds up the gradients of all rows. The signal in the sum is at most n. The noise
# is mu / G times that of rows without an offset, where G says how much the budget allows:
# the Gaussian-DP parameter of (epsilon, delta). Once mu is beyond n G, the noise is larger than
# the signal of all rows together. No step size, number of steps or clipping norm changes
# that: a stronger step, or a harder clip, scales signal and noise alike.

G = gdp_mu(EPSILON, DELTA)
print(f"G = {G:.3f}, so {N_ROWS} rows allow for offsets up to about n G = {N_ROWS * G:.0f}\n")


# %%
# Two ways out
# ------------
# ``preprocess="center"`` subtracts a noisy mean, which takes 5 % of the budget. The noise
# of the mean is in proportion to the offset as well: what remains of it is
# mu / (n G'), with G' the part of G that the mean got. This is no cure, but it moves the limit.
#
# ``preprocess="center-clip"`` first finds medians by halving an interval again and again.
# A halving asks on which side most rows are, and the noise of a count does not depend on
# how far away the rows are. Then it looks for a radius that holds nearly all rows, clips to
# it, and learns from what are small vectors now. Each doubling of the offset costs one halving
# more, and no accuracy.
# ``preprocess="center-scale"`` finds the same center and radius, but clips gradients instead of
# rows; it does as well here, and better where rows have no offset.
#
# Both parts are private and paid from the same epsilon and delta.

OFFSETS = np.logspace(0, 7, 15)
METHODS = {
    "as they are": None,
    'preprocess="center"': "center",
    'preprocess="center-clip"': "center-clip",
}
REPEATS = 8


def accuracy(offset, preprocess):
    """Return the mean accuracy of several fits, half of them with opposite labels."""
    X, length = rows(offset)
    scores = []
    for repeat in range(REPEATS):
        y = SIGN if repeat % 2 else -SIGN
        model = DPHingeSVM(EPSILON, DELTA, data_norm=length, preprocess=preprocess, **COMMON)
        scores.append(model.fit(X, y).score(X, y))
    return np.mean(scores)


curves = {
    name: [accuracy(offset, preprocess) for offset in OFFSETS]
    for name, preprocess in METHODS.items()
}
print(f"{'offset':<28}" + "".join(f"{offset:>9.0e}" for offset in OFFSETS[::2]))
for name, values in curves.items():
    print(f"{name:<28}" + "".join(f"{value:>9.2f}" for value in values[::2]))

# %%
# The picture
# -----------
# Guessing gives 0.5. The grey line is n epsilon. The rows as they are begin to fail well before
# it, and are lost from n G on; those with a plain private mean hold out a little
# longer.

fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.spines[["top", "right"]].set_visible(False)
ax.axvline(N_ROWS * EPSILON, color="0.6", linewidth=1.2)
ax.text(1.25 * N_ROWS * EPSILON, 0.42, r"$n\,\varepsilon$", color="0.4", va="center")
STYLES = {
    "as they are": {"color": "tab:red", "marker": "s", "linestyle": "--"},
    'preprocess="center"': {"color": "0.45", "marker": "^", "linestyle": ":"},
    'preprocess="center-clip"': {"color": "tab:blue", "marker": "o", "linewidth": 1.8},
}
for name, values in curves.items():
    ax.plot(OFFSETS, values, markersize=5, label=name, **STYLES[name])
ax.set_xscale("log")
ax.set_ylim(0.38, 1.06)
ax.set_xlabel("offset of all rows (their distances from each other are at most 2)")
ax.set_ylabel("accuracy")
ax.set_title(
    rf"$n = {N_ROWS}$, $\varepsilon = {EPSILON:g}$, $\delta = 10^{{-5}}$, zero-out", fontsize=10
)
ax.legend(fontsize=9, frameon=False, loc="lower left")
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("when_centering_pays.png", dpi=150)

# %%
# When to take it
# ---------------
# Real rows are seldom that far away, and often public knowledge already moves them: pixels
# have a known range, percentages a known middle. A shift by public constants costs
# nothing; do that first (:class:`~skdp.BoundedScaler`). Centering pays if what
# remains of the mean is not small beside the scatter of the rows, and there are thousands
# of rows. It hurts with a few hundred, where the mean takes budget that the model needs.
#
# A private mean shows which case it is, for a small part of the budget:

X, length = rows(100.0)
mean = DPMean(epsilon=0.1, delta=DELTA, data_norm=length, adjacency="zero-out").fit(X)
print(f"\nMean of the rows: {np.round(mean.location_, 1)}; they may be {length:.0f} long")

# %%
# References
# ----------
# Z. Sun, A. T. Suresh and A. K. Menon, "The importance of feature preprocessing for
# differentially private linear optimization", arXiv:2307.11106, 2023.

# %%
# What was promised
# -----------------
# Each fit, its private center included, is (1, 1e-5)-differentially private per row under zero-out
# adjacency, which is weaker than replace-one with the same numbers.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_06_what_tuning_costs.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_08_smoothing_the_hinge.py`

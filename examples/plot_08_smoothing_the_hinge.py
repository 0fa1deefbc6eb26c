# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Smoothing the hinge loss for privacy
====================================

Objective perturbation is a simple way to a private classifier: it adds a random linear term to the
loss, and releases the minimiser. Its proof needs a second derivative, and the hinge loss of a
support vector machine has a kink. Can we smooth it?

This example shows the answer of Bassily, Smith and Thakurta (2014, Appendix A): on the worst data,
for any amount of smoothing, the error grows as the square root of the number of rows. Mechanisms
for the unsmoothed hinge avoid this.

*You learn* that mechanisms differ, and which of them a loss allows.
*It builds on* :ref:`sphx_glr_auto_examples_plot_01_quickstart.py`.
"""

# %%
# The plain hinge is refused
# --------------------------
# The noise hides a row only if the minimiser moves smoothly with the noise. At a kink it does not
# move: many values of the noise have the same minimiser, and the density in the proof does not
# exist. So the library refuses, and says what to do.

import numpy as np

from skdp import DPHingeSVM

COMMON = {
    "epsilon": 1.0, "delta": 1e-6, "data_norm": 1.0, "fit_intercept": False,
    "classes": ("no", "yes"),
}  # fmt: skip
X, y = np.ones((4, 1)), ["no", "yes", "yes", "yes"]
try:
    DPHingeSVM(mechanism="objective", **COMMON).fit(X, y)
except ValueError as error:
    print(error)

# %%
# Data with one number to learn
# -----------------------------
# All rows have the same single feature 1, so the model is one coefficient w. n/2 + k rows have the
# label "yes" and the loss max(0, 1 - w); n/2 - k rows have the label "no" and the loss max(0, 1 +
# w). The sum has slope -2k up to w = 1, and slope n/2 - k beyond: the minimum is at the kink, w =
# 1, for any k > 0.
#
# - k = n/4: a steep kink. Smoothing at temperature T moves the minimum by T log(2), and each of the
#   n rows loses by it. The excess loss is about n T / 6.
# - k about 1/T: a flat slope towards the kink. Objective perturbation needs a penalty that grows
#   with the second derivative, as 1/T. It pulls w to 0 with a force similar to that of the k excess
#   rows, and wins. The excess loss is of the order of 1/T.
#
# A high T fails on the first data, a low T on the second. The best compromise, T about 1 /
# sqrt(n), has an excess of order sqrt(n).


def excess_loss(n, k, **parameters):
    """Return how much larger than necessary the sum of hinge losses of one fit is."""
    yes = n // 2 + k
    labels = np.repeat(["yes", "no"], [yes, n - yes])
    model = DPHingeSVM(coef_bound=2.0, **COMMON, **parameters).fit(np.ones((n, 1)), labels)
    w = model.coef_[0, 0]
    return yes * max(0, 1 - w) + (n - yes) * max(0, 1 + w) - 2 * (n - yes)


ROWS = [100, 400, 1600, 6400, 25600]


def worst_excess(n, repeats, **parameters):
    """Return the mean excess loss on the worst of several data sets."""
    imbalances = [k for k in (4, 16, 64, 256) if k < n / 4] + [n // 4]
    return max(
        np.mean([excess_loss(n, k, **parameters) for _ in range(repeats)]) for k in imbalances
    )


# %%
# With and without smoothing
# --------------------------
# With smoothing, for objective perturbation, we try six temperatures, and give this method the
# advantage of the best one for every n. On private data this choice would have a price.
#
# Without smoothing, there are two ways. ``solver="gd"`` takes noisy subgradient steps. For the
# best possible error the number of steps must grow as the square of n, so we stop at 1600 rows.
# ``solver="phased"`` releases about log(n) minimisers with noise, each close to the one before.

TEMPERATURES = [1 / 256, 1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 4]
smooth = {
    T: [worst_excess(n, 4, mechanism="objective", smoothing=T) for n in ROWS] for T in TEMPERATURES
}
curves = {
    "smoothed, T = 1/4": smooth[1 / 4],
    "smoothed, T = 1/128": smooth[1 / 128],
    "smoothed, best T": np.min(list(smooth.values()), axis=0),
    "plain, noisy subgradients": [
        worst_excess(n, 2, mechanism="gradient", solver="gd") for n in ROWS[:3]
    ],
    "plain, localised minimisers": [
        worst_excess(n, 2, mechanism="output", solver="phased") for n in ROWS[:4]
    ],
}
print("Worst excess of the sum of hinge losses, epsilon=1, delta=1e-6, replace-one\n")
print(f"{'rows':<28}" + "".join(f"{n:>8}" for n in ROWS))
for name, values in curves.items():
    print(f"{name:<28}" + "".join(f"{value:>8.1f}" for value in values))

# %%
# The picture
# -----------
# At a fixed T the error finally grows in proportion to n (too smooth), or is large from the start
# (not smooth enough). The best T for every n follows the square root of n. The two ways with the
# kink stay level: their error does not depend on the number of rows, so the excess per row falls
# as 1/n. With few rows they have no advantage: the curves cross.
#
# So use ``smoothing`` only for other reasons. For privacy alone, keep the hinge and use
# ``mechanism="gradient"`` or ``mechanism="output"``. But these are worst cases: on ordinary data a
# smoothed hinge, or the logistic loss, can be as good.

import matplotlib.pyplot as plt

STYLES = {
    "smoothed, T = 1/4": {"color": "0.55", "marker": "^", "linestyle": "--"},
    "smoothed, T = 1/128": {"color": "0.55", "marker": "v", "linestyle": ":"},
    "smoothed, best T": {"color": "tab:red", "marker": "s", "linewidth": 1.8},
    "plain, noisy subgradients": {"color": "tab:blue", "marker": "o", "linewidth": 1.8},
    "plain, localised minimisers": {"color": "black", "marker": "D", "linestyle": "-."},
}

plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
fig, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
root = np.sqrt(ROWS)
best = np.mean(np.divide(curves["smoothed, best T"], root)[1:]) * root
ax.plot(ROWS, best, color="tab:red", linewidth=1, alpha=0.5)
ax.text(1.1 * ROWS[-1], best[-1], r"$\propto \sqrt{n}$", color="tab:red", va="center")
for name, values in curves.items():
    ax.plot(ROWS[: len(values)], values, markersize=5, label=name, **STYLES[name])
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_xticks(ROWS, [str(n) for n in ROWS])
ax.minorticks_off()
ax.grid(axis="y", color="0.92")
ax.set_xlabel("number of rows n")
ax.set_ylabel("worst excess of the summed loss")
ax.set_title(r"Hinge loss, $\varepsilon = 1$, $\delta = 10^{-6}$, replace-one", fontsize=10)
ax.legend(fontsize=8.5, frameon=False, loc="upper left")
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("smoothing_the_hinge.png", dpi=150)

# %%
# What was promised
# -----------------
# Each fit that was not refused is (1, 1e-6)-differentially private per row under replace-one
# adjacency, with or without the kink.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_07_how_the_default_plans_a_fit.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_09_what_people_read.py`

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Private regression with heavy tails
===================================

Costs, incomes and waiting times have long tails: a few rows are a thousand times larger than the
others, and nobody knows a bound. Private learning usually needs one. A bound for all rows makes
noise for the largest row; a smaller one removes signal.

This example makes one row larger and larger, and shows the effect on three regressions (Xu, Ding,
Xiang, Xu and Wang 2025).

*You learn* to fit regressions to rows and targets without a known bound.
*It builds on* :ref:`sphx_glr_auto_examples_plot_07_how_the_default_plans_a_fit.py`.
"""

# %%
# The rows
# --------
# Twenty thousand rows, with Student's t with three degrees of freedom in the features and in the
# noise: most are small, some are not. The first row gets a target of our choice.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from skdp import DPLpRegressor

N_ROWS, EPSILON, DELTA = 20_000, 1.0, 1e-6
rng = np.random.default_rng(0)
X = rng.standard_t(3, size=(N_ROWS, 5))
COEF = np.array([2.0, -1.0, 0.5, 0.0, 1.0])
y = X @ COEF + 3 + rng.standard_t(3, size=N_ROWS)


def with_one_target(size):
    """Return the targets, the first of which has that size."""
    changed = y.copy()
    changed[0] = size
    return changed


def error(model):
    """Return the Euclidean distance of coefficients from those that made the rows."""
    return np.linalg.norm(np.append(model.coef_ - COEF, model.intercept_ - 3))


# %%
# Three regressions
# -----------------
# Least squares is not private. It is optimal for Gaussian noise, and one row can change it
# arbitrarily.
#
# The second has noisy gradients without clipping: the noise must hide the longest possible
# gradient, the target times the length of its row. This is the meaning of a Lipschitz constant in
# practice.
#
# The third is :class:`~skdp.DPLpRegressor` with its defaults and no public knowledge. A small
# part of its budget finds center and scale of features and targets, by counting rows beyond
# thresholds; one row changes such a count by one, whatever its size. Then the *derivative* of the
# loss is clipped, row by row. This is a fit of another convex loss, which is linear far away
# (Huber's): a row still pulls, but no more than others.

SIZES = np.logspace(1, 8, 8)
METHODS = {
    "least squares, not private": lambda size: LinearRegression(),
    "noise for the longest gradient": lambda size: DPLpRegressor(
        EPSILON, DELTA, data_norm=10.0, target_scale=1.0, clipping_norm=size, max_iter=30
    ),
    "DPLpRegressor()": lambda size: DPLpRegressor(EPSILON, DELTA),
}
curves = {
    name: [np.median([error(make(size).fit(X, with_one_target(size))) for _ in range(3)])
           for size in SIZES]
    for name, make in METHODS.items()
}  # fmt: skip
print(f"{'largest target':<32}" + "".join(f"{size:>9.0e}" for size in SIZES))
for name, values in curves.items():
    print(f"{name:<32}" + "".join(f"{value:>9.2g}" for value in values))

# %%
# The picture
# -----------
# The third curve is flat, up to its noise: the influence of a row does not depend on its size.

fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.spines[["top", "right"]].set_visible(False)
STYLES = {
    "least squares, not private": {"color": "0.45", "marker": "^", "linestyle": ":"},
    "noise for the longest gradient": {"color": "tab:red", "marker": "s", "linestyle": "--"},
    "DPLpRegressor()": {"color": "tab:blue", "marker": "o", "linewidth": 1.8},
}
for name, values in curves.items():
    ax.loglog(SIZES, values, markersize=5, label=name, **STYLES[name])
ax.axhline(np.linalg.norm(np.append(COEF, 3)), color="0.75", linewidth=1)
ax.text(SIZES[0], 1.15 * np.linalg.norm(np.append(COEF, 3)), "all coefficients zero", color="0.5")
ax.set_xlabel("largest target (the others are below about 100)")
ax.set_ylabel("error of the coefficients")
ax.set_title(
    rf"{N_ROWS} rows, $\varepsilon = {EPSILON:g}$, $\delta = 10^{{-6}}$, replace-one", fontsize=10
)
ax.legend(fontsize=9, frameon=False)
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("one_enormous_row.png", dpi=150)

# %%
# The spent budget
# ----------------
# The first lines of the ledger are counts of rows, which find centers and scales of targets and
# features; these are then public. Next are one sum, by which the coefficients have one scale, and
# all gradients. The last line tests if targets follow features that are far out.

model = DPLpRegressor(EPSILON, DELTA).fit(X, with_one_target(1e8))
print(f"\nscale of rows {model.data_norm_:.2f}, of targets {model.target_scale_:.2f}")
for release in model.ledger_.releases:
    print(f"{release.count:4d} x {release.query}")
print(f"spent: epsilon = {model.privacy_spent_[0]:.3f}, delta = {model.privacy_spent_[1]:g}")

# %%
# Limits
# ------
# A clipped loss estimates the same coefficients if the noise of the targets is symmetric. If it is
# skewed, as for costs, the clipped fit lies between the mean and the median. The clipping norm
# grows with the number of rows, so this bias vanishes, but slowly. For the median set ``p=1``; for
# a mean, bound the targets.
#
# References
# ----------
# D. Xu, M. Ding, Z. Xiang, J. Xu and D. Wang, "Beyond ordinary Lipschitz constraints:
# differentially private stochastic optimization with Tsybakov noise condition", 2025.

# %%
# What was promised
# -----------------
# Each fit of ``DPLpRegressor`` is (1, 1e-6)-differentially private per row under replace-one
# adjacency, for any size of rows and targets. Least squares has no guarantee.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_09_what_people_read.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_11_nobody_holds_the_rows.py`

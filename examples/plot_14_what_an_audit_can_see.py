# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Privacy audits and their limits
===============================

A privacy claim is a proof and a program. An audit tests the program from outside: it fits it
hundreds of times to two data sets that differ in one row, and tries to distinguish them by the
outputs. If this works better than the claim allows, the claim is wrong.

*You learn* to audit any estimator, how two common bugs look from outside, and how many fits are
needed to detect them.
*It builds on* :ref:`sphx_glr_auto_examples_plot_04_reading_a_ledger.py`.
"""

# %%
# Three means
# -----------
# The first mean is :class:`~skdp.DPMean`. The second assumes that the sensitivity of a mean of
# numbers in [-1, 1] is 1/n; it is 2/n. The third takes its bounds from the data, as is usual
# without privacy.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from skdp import AuditDisplay, DPMean
from skdp.audit import audit_privacy


class HalvedNoise(BaseEstimator):
    """A mean with half of the noise that it needs."""

    def __init__(self, epsilon=1.0, random_state=None):
        self.epsilon = epsilon
        self.random_state = random_state

    def sensitivity(self, X):
        """Return how far one row moves the mean, as its author has it."""
        return 1 / len(X)

    def fit(self, X, y=None):
        """Release a mean."""
        rng = check_random_state(self.random_state)
        scale = self.sensitivity(X) / self.epsilon
        self.location_ = np.clip(X, -1, 1).mean() + rng.laplace(scale=scale)
        return self


class BoundsFromData(HalvedNoise):
    """A mean whose noise follows the range of the rows that it has."""

    def sensitivity(self, X):
        """Return the range of these rows over their number."""
        return np.ptp(X) / len(X)


# %%
# The audit
# ---------
# The pair of data sets matters, because a bug does not show on every pair. Here the last row moves
# from one end of its range to the other, and the other rows are all alike. Half of the fits are
# used to find the best way to distinguish the two. The other half count how often it is right, and
# give a bound with a confidence of 95 per cent. The rows are made up, as they should be: the
# result of an audit is not private.

data = np.full((20, 1), 0.2)
data[-1] = 1.0
neighbour = data.copy()
neighbour[-1] = -1.0
audited = {
    "DPMean": DPMean(epsilon=1.0, mechanism="laplace", data_norm=1.0),
    "half of the noise": HalvedNoise(epsilon=1.0),
    "bounds from the data": BoundsFromData(epsilon=1.0),
}
results = {
    name: audit_privacy(estimator, data, neighbour=neighbour, n_runs=500, random_state=0)
    for name, estimator in audited.items()
}
for name, result in results.items():
    print(f"{name:<22}claimed {1.0:g}, at least {result.epsilon_lower:.2f}, ", end="")
    print("not contradicted" if result.passed else "CONTRADICTED")

# %%
# The picture
# -----------
# The bar covers the excluded values, and the marker is the claim. A claim inside its bar is wrong.
# A claim to the right of its bar is not contradicted: an audit can never say more.

display = AuditDisplay.from_result(
    results, ax=plt.figure(figsize=(6.4, 2.6), layout="constrained").add_subplot()
)
if "__file__" in globals():  # run as a script, not in the gallery
    display.figure_.savefig("what_an_audit_can_see.png", dpi=150)

# %%
# Number of fits
# --------------
# With n fits a bound is at most about log(n / 4), less an allowance for chance. Half of the noise
# reveals 2 instead of 1. A few fits do not detect it: an audit that passes may have been too
# short.

COUNTS = [50, 100, 200, 400]
bounds = {
    name: [
        audit_privacy(
            audited[name], data, neighbour=neighbour, n_runs=n, random_state=1
        ).epsilon_lower
        for n in COUNTS
    ]
    for name in ("DPMean", "half of the noise")
}
print(f"\n{'fits to each data set':<24}" + "".join(f"{n:>7}" for n in COUNTS))
for name, values in bounds.items():
    print(f"{name:<24}" + "".join(f"{value:>7.2f}" for value in values))

fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.spines[["top", "right"]].set_visible(False)
ax.axhline(1.0, color="black", linewidth=1.2)
ax.text(COUNTS[-1], 1.03, "claimed by both", ha="right")
ax.axhline(2.0, color="tab:red", linestyle=":", linewidth=1.2)
ax.text(COUNTS[-1], 2.03, "what halved noise gives away", color="tab:red", ha="right")
ax.semilogx(COUNTS, bounds["half of the noise"], "--s", color="tab:red", markersize=5)
ax.semilogx(COUNTS, bounds["DPMean"], "-o", color="tab:blue", markersize=5)
ax.text(COUNTS[-1], bounds["DPMean"][-1] - 0.22, "DPMean", color="tab:blue", ha="right")
ax.text(
    COUNTS[1],
    bounds["half of the noise"][1] + 0.1,
    "half of the noise",
    color="tab:red",
    ha="right",
)
ax.set_xticks(COUNTS, [str(n) for n in COUNTS])
ax.minorticks_off()
ax.set(ylim=(0, 2.2), xlabel="fits to each data set", ylabel=r"$\varepsilon$ is at least")
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("how_many_fits_it_takes.png", dpi=150)

# %%
# What was promised
# -----------------
# Nothing: an audit contradicts a claim or fails to. The guarantee of ``DPMean`` (epsilon = 1 per
# row, replace-one adjacency) rests on its proof, and on exact checks of its noise in the tests.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_13_clients_of_a_federation.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_15_pictures_for_a_report.py`

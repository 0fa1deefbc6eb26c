# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Plots of accuracy, ledger and audit for a report
================================================

A user of a private model has three questions. How much accuracy does privacy lose? What was the
budget spent on? Does an attack contradict the claim? There is a display for each, at the width of
a column, and readable in grey.

*You learn* to draw accuracy, ledger and audit for print.
*It builds on* :ref:`sphx_glr_auto_examples_plot_14_what_an_audit_can_see.py`.
"""

# %%
# Accuracy against epsilon
# ------------------------
# The digits of scikit-learn are public. This matters: every point below is many fits and many
# scores, without a price. On private rows this picture would be a leak. At the smallest epsilon
# the fits would warn that 1,347 rows are too few for 650 coefficients. The picture shows it, too.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.utils import check_random_state

from skdp import (
    AuditDisplay,
    BoundedScaler,
    DPHingeSVM,
    DPLogisticRegression,
    DPMean,
    DPStandardScaler,
    LedgerDisplay,
    PrivacyUtilityDisplay,
)
from skdp.audit import audit_privacy
from skdp.exceptions import NoisyEstimateWarning

warnings.simplefilter("ignore", NoisyEstimateWarning)
DELTA = 1e-5
X, y = load_digits(return_X_y=True)


def column(height):
    """Return axes as wide as a column of a paper."""
    return plt.figure(figsize=(3.4, height), layout="constrained").add_subplot()


def pixels(classifier):
    """Return a pipeline: the range of a pixel is public."""
    return make_pipeline(BoundedScaler(bounds=(0, 16), feature_range=(0, 1)), classifier)


given = {"delta": DELTA, "data_norm": 4.0, "classes": range(10)}
shared = {
    "epsilons": [0.25, 0.5, 1, 2, 4, 8],
    "cv": ShuffleSplit(3, test_size=0.25, random_state=0),
    "n_repeats": 1,
}
utility = PrivacyUtilityDisplay.from_estimator(
    pixels(DPLogisticRegression(**given)), X, y, **shared,
    baseline=pixels(LogisticRegression(max_iter=2000)), chance=0.1, ax=column(2.7),
)  # fmt: skip
PrivacyUtilityDisplay.from_estimator(pixels(DPHingeSVM(**given)), X, y, **shared, ax=utility.ax_)
utility.ax_.set_ylim(0, 1)
for epsilon, mean in zip(utility.epsilons, utility.mean_scores, strict=True):
    print(f"epsilon {epsilon:<5g} mean accuracy {mean:.2f}")

# %%
# Parts of the budget
# -------------------
# A pipeline that first divides pixels by private deviations. Pixels of 0 stay 0. Each bar is the
# price of these releases alone; the solid line is the total. It is less than the sum here, because
# prices of Gaussian releases add up in squares. The scaler would warn that means lie on a bound.
# Here this is right: in some corners of the images nearly all pixels are 0.

model = make_pipeline(
    BoundedScaler(bounds=(0, 16), feature_range=(0, 1)),
    DPStandardScaler(epsilon=1.0, delta=DELTA / 2, bounds=(0, 1), with_mean=False),
    DPLogisticRegression(epsilon=2.0, delta=DELTA / 2, data_norm=12.0, classes=range(10)),
)
model.fit(X, y)
spent = LedgerDisplay.from_estimator(model, ax=column(4.6))
print(f"all together {spent.total:.3f}, plain sum {spent.plain_sum:.3f}")

# %%
# Audits
# ------
# An audit fits an estimator hundreds of times to two data sets that differ in one row, and bounds
# epsilon from below. The last mean has half of the necessary noise: its author assumed that the
# sensitivity of the mean of numbers in [-1, 1] is 1/n, and it is 2/n.


class HalvedNoise(BaseEstimator):
    """A mean that claims epsilon and has twice as much."""

    def __init__(self, epsilon=1.0, random_state=None):
        self.epsilon = epsilon
        self.random_state = random_state

    def fit(self, X, y=None):
        """Release a mean with too little noise."""
        noise = check_random_state(self.random_state).laplace(scale=1 / len(X) / self.epsilon)
        self.location_ = np.clip(X, -1, 1).mean() + noise
        return self


pair = [[0.2], [1.0]], [[0.2], [-1.0]]
audited = {
    "DPMean, Laplace": DPMean(epsilon=1.0, mechanism="laplace", data_norm=1.0),
    "DPMean, Gaussian": DPMean(epsilon=1.0, delta=DELTA, data_norm=1.0),
    "halved noise": HalvedNoise(epsilon=1.0),
}
results = {
    name: audit_privacy(
        estimator, pair[0], neighbour=pair[1], delta=DELTA, n_runs=500, random_state=0
    )
    for name, estimator in audited.items()
}
audits = AuditDisplay.from_result(results, ax=column(2.2))
print("contradicted:", dict(zip(audits.names, audits.contradicted, strict=True)))

# %%
# A marker to the right of its bar is not contradicted. This is not a proof; :ref:`proofs` has the
# proofs.

if "__file__" in globals():  # run as a script, not in the gallery
    utility.figure_.savefig("what_privacy_costs.png", dpi=300)
    spent.figure_.savefig("where_the_budget_went.png", dpi=300)
    audits.figure_.savefig("what_audits_rule_out.png", dpi=300)

# %%
# What was promised
# -----------------
# Each fit keeps its own claim. No claim covers the picture of accuracy against epsilon, so it was
# drawn with public rows.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_14_what_an_audit_can_see.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_16_a_card_for_the_reviewer.py`

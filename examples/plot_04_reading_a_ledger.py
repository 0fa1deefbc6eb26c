# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Reading the ledger of a private model
=====================================

Every fitted private estimator has a ledger: what was released from the private rows, how often,
with which noise, at which price, and why that price is right. It is the evidence for the claim,
and anybody can check it line by line.

*You learn* what every line means, how prices add up, and what "idealised" means.
*It builds on* :ref:`sphx_glr_auto_examples_plot_02_who_has_seen_the_rows.py`.
"""

# %%
# Two steps, two ledgers
# ----------------------
# Handwritten digits, standardised by private moments and classified. Each step has its own ledger.
# Pixels near the border of an image are nearly always 0, so the scaler warns that the mean lies at
# the edge of its bounds. The bounds are right here, and the warning is ignored.

import math
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

from skdp import (
    BoundedScaler,
    DPLogisticRegression,
    DPQuantile,
    DPStandardScaler,
    LedgerDisplay,
    privacy_spent,
)
from skdp.exceptions import NoisyEstimateWarning
from skdp.privacy import gdp_epsilon

warnings.simplefilter("ignore", NoisyEstimateWarning)
DELTA = 1e-5
X, y = load_digits(return_X_y=True)
model = make_pipeline(
    BoundedScaler(bounds=(0, 16), feature_range=(0, 1)),
    DPStandardScaler(epsilon=1.0, delta=DELTA / 2, bounds=(0, 1)),
    DPLogisticRegression(epsilon=2.0, delta=DELTA / 2, data_norm=8.0, classes=range(10)),
).fit(X, y)
ledger = model[-1].ledger_
print(ledger)

# %%
# Line by line
# ------------
# ``query``
#     The statistic. Here the first line is a check of ``data_norm``, for little: it counts rows
#     with a value that is far too small for it. Then come the sum of the rows and of their
#     products, and the sum over rows of gradients, each clipped to the stated length.
# ``count``, ``size``
#     How many times it was released, and how many numbers each time: for a gradient, one per
#     coefficient.
# ``sensitivity``
#     The largest change if one row is exchanged. A gradient of length c can turn into its opposite:
#     2 c.
# ``noise``
#     The law, and its scale: for Gaussian noise the standard deviation. Values are rounded to the
#     ``grid`` before noise is added, so that float arithmetic reveals nothing. The sensitivity
#     includes this rounding.
# ``price``
#     The price of one release. ``mu`` is the price of Gaussian noise, sensitivity / scale;
#     ``epsilon`` is the price of other laws.
# ``rows``
#     All rows, or random batches of them, which have a lower price.
# ``adjacency``
#     Which data sets are neighbours, and so what is protected.
# ``seen by``
#     Everybody; or, in a federation, only the party that adds up.
# ``theorem``
#     Why the sensitivity holds. The proofs are in :ref:`proofs`, by the name of the query.
# ``numerics``
#     How the noise was made, and its source of random numbers.
#
# A check by hand takes two lines. mu is one division; the mu of all releases is the root of the
# sum of their squares.

squares = 0.0
for entry in ledger.releases:
    mu = entry.noise.sensitivity / entry.noise.scale
    print(f"one of {entry.count:<2}     mu = {mu:.5f}, on the ledger {entry.noise.mu:.5f}")
    squares += entry.count * mu**2
whole = math.sqrt(squares)
print(f"all releases  mu = {whole:.4f}, on the ledger {ledger.mu:.4f}")
print(f"which is      epsilon = {gdp_epsilon(whole, DELTA / 2):.4f} at delta = {DELTA / 2:g}")
print(f"granted were  epsilon = {model[-1].epsilon:g}")

# %%
# As a table
# ----------
# ``to_frame`` has a row for every kind of release, with all digits.

columns = ["count", "size", "noise_law", "noise_sensitivity", "noise_scale", "noise_mu"]
print((model[1].ledger_ + ledger).to_frame()[columns].T.to_string())

# %%
# Two ledgers make one
# --------------------
# ``+`` concatenates ledgers, and composes the sum again: by squares for Gaussian noise, so the
# total is less than the sum of the parts. :func:`~skdp.privacy_spent` does this for a pipeline,
# and looks for steps without a ledger.

both = model[1].ledger_ + ledger
parts = [model[1].ledger_.epsilon(DELTA), ledger.epsilon(DELTA)]
print(f"apart {parts[0]:.3f} and {parts[1]:.3f}, sum {sum(parts):.3f}")
print(
    f"together {both.epsilon(DELTA):.3f}, and privacy_spent says {privacy_spent(model).epsilon:.3f}"
)

# %%
# The picture
# -----------
# :class:`~skdp.LedgerDisplay` draws a bar for every kind of release alone. The solid line is the
# total; the dotted line is the sum of the bars.

display = LedgerDisplay.from_estimator(
    model, ax=plt.figure(figsize=(6.4, 3.2), layout="constrained").add_subplot()
)
if "__file__" in globals():  # run as a script, not in the gallery
    display.figure_.savefig("reading_a_ledger.png", dpi=150)

# %%
# Exact, grid, idealised
# ----------------------
# "exact on the grid" means that noise was drawn in integer arithmetic, and that the rounding of
# the release is part of the sensitivity: its last digits reveal nothing. A *draw* is different:
# mechanisms that draw coefficients from a density have their exact law for real numbers, and a
# computer has floats. The ledger calls such releases "idealised". The claim does not cover the
# effect of floating-point arithmetic on them.

drawn = DPLogisticRegression(
    1.0, 0.0, mechanism="exponential", coef_bound=10.0, classes=(0, 1), data_norm=1.0
)
rng = np.random.default_rng(0)
rows = rng.uniform(-0.5, 0.5, size=(500, 2))
drawn.fit(rows, (rows[:, 0] > 0).astype(int))
exact = DPQuantile(epsilon=1.0, bounds=(-0.5, 0.5)).fit(rows)
for fitted in (model[-1], exact, drawn):
    (name,) = {release.numerics for release in fitted.ledger_.releases}
    print(f"{type(fitted).__name__:<22}{name}")

# %%
# What a ledger does not say
# --------------------------
# A ledger does not prove that it belongs to the model: somebody could have changed it. It can be
# checked, but it is not a signature.
#
# What was promised
# -----------------
# The pipeline is differentially private per row under replace-one adjacency, with delta = 1e-5 and
# the composed epsilon above. Both follow from scales of noise on the ledger.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_03_from_raw_adult.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_05_one_account_for_all.py`

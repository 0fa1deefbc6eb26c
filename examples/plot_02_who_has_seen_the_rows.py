# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Private steps of a pipeline, and those that void the claim
==========================================================

A private classifier seldom stands alone: a scaler, an encoder, a vocabulary stand before it. They
see the same rows, and what they keep of them goes into the fitted pipeline. A pipeline promises
what all of its steps promise together. One exact mean in it is enough to give a person away.

*You learn* which steps cost nothing, which pay, which void the claim, and how
:func:`~skdp.privacy_spent` tells them apart.
*It builds on* :ref:`sphx_glr_auto_examples_plot_01_quickstart.py`.
"""

# %%
# Customers
# ---------
# Three thousand made-up customers, with a number that has a known range, a number that has none, a
# choice from a list, and a few words. Some ages are missing.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skdp import BoundedScaler, DPLogisticRegression, DPStandardScaler, privacy_spent

N_ROWS, PLANS = 3000, ["free", "basic", "pro"]
REMARKS = ["far too slow", "I love it", "please cancel", "works for me", "too many emails"]
rng = np.random.default_rng(0)
remark = rng.integers(len(REMARKS), size=N_ROWS)
income = rng.lognormal(10.3, 0.6, N_ROWS).round()
leaves = rng.logistic(2.0 * np.isin(remark, [0, 2, 4]) - 1.5 * (income > 30_000), 0.5) > 0.5
customers = pd.DataFrame(
    {
        "age": np.where(rng.random(N_ROWS) < 0.1, np.nan, rng.integers(18, 90, N_ROWS)),
        "income": income,
        "plan": rng.choice(PLANS, N_ROWS),
        "remark": np.take(REMARKS, remark),
    }
)
print(customers.head(4))

# %%
# Four ways to prepare a column, and what each promises
# -----------------------------------------------------
# **From public constants.** ``BoundedScaler`` is told the range. ``OneHotEncoder`` is told its
# categories; ``SimpleImputer`` what to fill in (and to keep columns that have no value
# at all: to drop one is to tell something). They learn nothing, and cost nothing.
#
# **Row by row.** ``HashingVectorizer`` turns words into columns by a fixed hash, with no
# vocabulary. A function such as ``log1p`` looks at one row at a time.
#
# **For a price.** ``DPStandardScaler`` finds the range of incomes in the private rows, and pays.
#
# **By heart.** ``StandardScaler``, ``TfidfVectorizer``, or an encoder without a list keep exact
# statistics. No budget of a later step covers them.

paying = DPStandardScaler(epsilon=0.3, delta=1e-7)


def prepared(incomes, ages, plans, words):
    """Return the transformer of all columns."""
    log = FunctionTransformer(np.log1p, feature_names_out="one-to-one")
    return make_column_transformer(
        (make_pipeline(log, incomes, BoundedScaler(bounds=(-3, 3))), ["income"]),
        (make_pipeline(ages, BoundedScaler(bounds=(18, 100))), ["age"]),
        (plans, ["plan"]),
        (words, "remark"),
        sparse_threshold=0,
    )


def classifier():
    """Return the last step."""
    return DPLogisticRegression(epsilon=0.95, delta=9e-7, data_norm=2.0, classes=(False, True))


careful = prepared(
    incomes=paying,
    ages=SimpleImputer(strategy="constant", fill_value=50.0, keep_empty_features=True),
    plans=OneHotEncoder(categories=[PLANS], handle_unknown="ignore", sparse_output=False),
    words=HashingVectorizer(n_features=32, alternate_sign=False),
)
careless = prepared(StandardScaler(), SimpleImputer(), OneHotEncoder(), TfidfVectorizer())

model = make_pipeline(careful, classifier()).fit(customers, leaves)
print("\ncareful: ", privacy_spent(model))
print("careless:", privacy_spent(make_pipeline(careless, classifier()).fit(customers, leaves)))

# %%
# The second pipeline runs as well, and its classifier is as private as the first one's. But its
# total is for the classifier alone, and the lines below it say so: no claim holds for the whole.
#
# The first one has a total for two steps. It is not 0.3 + 0.95: both add Gaussian noise, and for
# that budgets compose nearly like the sides of a right triangle. So an epsilon of 1 is enough for
# a classifier that has 0.95 of it. The deltas add up.
#
# What an exact mean gives away
# -----------------------------
# Somebody has the fitted scaler and knows all customers but one. They take the mean times the
# number of rows, and subtract what they know.

logs = np.log1p(income)[:, None]


def guess(scaler):
    """Return the logarithm of the first income, from a scaler and all the other rows."""
    return N_ROWS * scaler.fit(logs).mean_[0] - logs[1:].sum()


exact = guess(StandardScaler())
noisy = np.array([guess(DPStandardScaler(epsilon=0.3, delta=1e-7)) for _ in range(100)])
print(f"\nincome of the first customer  {income[0]:.0f}")
print(f"by the mean of StandardScaler {np.expm1(exact):.0f}")
print(f"by that of DPStandardScaler   e^{noisy[0]:.0f}, and by another fit e^{noisy[1]:.0f}")
print(f"the private mean itself is off by {noisy.std() / N_ROWS:.3f}, typically")

# %%
# The picture
# -----------
# The exact mean gives the income to the digit. The private one gives a number that is nearly always
# outside of the range where incomes lie at all, whoever the first customer is: on the scale of one
# row the noise is a hundred times the scatter of incomes. The classifier does not mind a mean that
# is a little off.

fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.spines[["top", "right"]].set_visible(False)
ax.axvspan(logs.min(), logs.max(), color="0.85", label="where incomes lie")
ax.hist(noisy, bins=25, color="tab:blue", alpha=0.8, label="DPStandardScaler, 100 fits")
ax.axvline(exact, color="tab:red", label="StandardScaler: the truth")
ax.set_xlabel("logarithm of one income, computed from the fitted scaler and all other rows")
ax.set_ylabel("fits")
ax.set_title(
    r"$\varepsilon = 0.3$, $\delta = 10^{-7}$ for the scaler, replace-one, per row", fontsize=10
)
ax.legend(fontsize=9, frameon=False)
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("who_has_seen_the_rows.png", dpi=150)

# %%
# What was promised
# -----------------
# The careful pipeline is (1, 1e-6)-differentially private per customer under replace-one adjacency,
# with everything that its steps have stored; the careless one promises nothing.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_01_quickstart.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_03_from_raw_adult.py`

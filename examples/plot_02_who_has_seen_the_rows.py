# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Private steps of a pipeline, and those that void the claim
==========================================================

A private classifier usually follows a scaler, an encoder or a vocabulary. These steps read the
same rows, and the fitted pipeline keeps what they learned. The guarantee of a pipeline covers all
of its steps. One exact mean in it can reveal a person.

*You learn* which steps are free, which have a price, which void the claim, and how
:func:`~skdp.privacy_spent` tells them apart.
*It builds on* :ref:`sphx_glr_auto_examples_plot_01_quickstart.py`.
"""

# %%
# Customers
# ---------
# Three thousand made-up customers: a number with a known range, a number without one, a choice
# from a list, and a few words. Some ages are missing.

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
# Four kinds of preprocessing
# ---------------------------
# **From public constants.** ``BoundedScaler`` gets the range, ``OneHotEncoder`` its categories,
# and ``SimpleImputer`` the value to fill in (it must also keep columns without values, because a
# dropped column is a release). They learn nothing, and are free.
#
# **Row by row.** ``HashingVectorizer`` maps words to columns by a fixed hash, without a
# vocabulary. A function such as ``log1p`` reads one row at a time. These steps are free, too.
#
# **For a price.** ``DPStandardScaler`` finds the range of incomes in the private rows, with its
# own budget.
#
# **Without a guarantee.** ``StandardScaler``, ``TfidfVectorizer``, and an encoder without a list
# keep exact statistics. No budget of a later step covers them.

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
# The second pipeline also runs, and its classifier is as private as the first. But its total is
# for the classifier alone, and the lines below it say that no claim holds for the whole.
#
# The first pipeline has a total for two steps. It is not 0.3 + 0.95: both add Gaussian noise, and
# the budgets of Gaussian noise compose nearly like the sides of a right triangle. So an epsilon of
# 1 is enough for both. The deltas add up.
#
# What an exact mean reveals
# --------------------------
# An attacker has the fitted scaler and knows all customers but one. They multiply the mean by the
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
# The exact mean gives the income to the digit. The private one gives a number that is nearly
# always outside the range of incomes, for any first customer: at the scale of one row, the noise
# is more than a hundred times the standard deviation of incomes. The classifier tolerates a mean
# that is a little wrong.

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
# The careful pipeline, with everything that its steps store, is (1, 1e-6)-differentially private
# per customer under replace-one adjacency. The careless one has no guarantee.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_01_quickstart.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_03_from_raw_adult.py`

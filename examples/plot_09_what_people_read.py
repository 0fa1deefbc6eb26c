# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Private means and classifiers of sparse rows
============================================

Clicks, words and one-hot tables are sparse: of a hundred thousand features a person touches a few
dozen. Noise is on every feature alike, and hides a mean whose entries are mostly zero.

Public knowledge about the rows, and post-processing after the release, remove most of that noise
for free. This example releases the mean clicks of twenty thousand readers, then a classifier
trained on the same rows.

*You learn* to release means of sparse rows and to classify them, without making them dense.
*It builds on* :ref:`sphx_glr_auto_examples_plot_01_quickstart.py`.
"""

# %%
# Readers and pages
# -----------------
# A reader has forty clicks, on about thirty of 100,000 pages, of which few are popular. Every row
# is scaled to length 1, so nobody counts more than others. The subscribers, a quarter of the
# readers, prefer even pages.

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from skdp import DPLogisticRegression, DPMean, DPSparseMeanEstimator, privacy_spent

N_READERS, N_PAGES, N_CLICKS = 20_000, 100_000, 40
DELTA = 1e-6

rng = np.random.default_rng(0)
popularity = 1 / np.arange(1, N_PAGES + 1) ** 1.1
ends = np.cumsum(popularity) / popularity.sum()
pages = np.searchsorted(ends, rng.random((N_READERS, N_CLICKS)))
subscribes = rng.random(N_READERS) < 0.25
# every other odd page of a subscriber becomes the even one before it
moved = subscribes[:, None] & (pages % 2 == 1) & (rng.random(pages.shape) < 0.5)
pages = np.where(moved, pages - 1, pages)
row_ends = np.arange(N_READERS + 1) * N_CLICKS
clicks = sparse.csr_array((np.ones(pages.size), pages.ravel(), row_ends), (N_READERS, N_PAGES))
clicks.sum_duplicates()
clicks.data[:] = 1.0
clicks = sparse.csr_array(sparse.diags_array(1 / np.sqrt(clicks.sum(axis=1))) @ clicks)
print(f"{clicks.nnz / N_READERS:.0f} pages a reader, of {N_PAGES}")

# %%
# Three mechanisms
# ----------------
# :class:`~skdp.DPMean` adds Gaussian noise to every entry and keeps it.
# :class:`~skdp.DPSparseMeanEstimator` adds the same noise, and then sets probable noise to zero.
# The threshold is chosen on the released numbers (Stein's unbiased risk estimate), so it is free,
# and the sparsity of the rows need not be known. ``nonnegative=True`` says that clicks are not
# negative: two such rows are at most sqrt(2) apart instead of 2, and the noise is smaller in the
# same ratio.
#
# ``mechanism="histogram"`` adds noise only to pages that somebody read, and releases those that
# stand out. It is for open dictionaries. The bound on the pages of a reader is part of its
# guarantee, and longer rows are cut.

MEANS = {
    "Gaussian noise, as it is": lambda epsilon: DPMean(epsilon, DELTA, data_norm=1.0),
    "soft-threshold": lambda epsilon: DPSparseMeanEstimator(epsilon, DELTA),
    "soft-threshold, non-negative": lambda epsilon: DPSparseMeanEstimator(
        epsilon, DELTA, nonnegative=True
    ),
    "histogram, non-negative": lambda epsilon: DPSparseMeanEstimator(
        epsilon, DELTA, mechanism="histogram", sparsity=N_CLICKS, nonnegative=True
    ),
}
EPSILONS = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0]

exact = np.asarray(clicks.mean(axis=0)).ravel()
nothing = np.linalg.norm(exact)
curves = {}
for name, make in MEANS.items():
    errors = [np.linalg.norm(make(e).fit(clicks).location_ - exact) for e in EPSILONS]
    curves[name] = np.array(errors) / nothing
print(f"\n{'error, of the length of the mean':<34}" + "".join(f"{e:>7g}" for e in EPSILONS))
for name, errors in curves.items():
    print(f"{name:<34}" + "".join(f"{error:>7.2f}" for error in errors))

# %%
# The picture
# -----------
# Above 1, a release is worse than all zeros. Plain noise is below 1 only from an epsilon of about
# 0.3 on. The other mechanisms find the popular pages at every epsilon here, and have a fraction of
# its error.

fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.spines[["top", "right"]].set_visible(False)
ax.axhline(1.0, color="0.6", linewidth=1.2)
ax.text(EPSILONS[-1], 1.1, "all zeros", color="0.4", ha="right")
STYLES = [
    {"color": "tab:red", "marker": "s", "linestyle": "--"},
    {"color": "tab:blue", "marker": "o"},
    {"color": "tab:blue", "marker": "o", "linestyle": ":", "markerfacecolor": "white"},
    {"color": "0.45", "marker": "^"},
]
for (name, errors), style in zip(curves.items(), STYLES, strict=True):
    ax.plot(EPSILONS, errors, markersize=5, label=name, **style)
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_xlabel(r"$\varepsilon$")
ax.set_ylabel("error / length of the mean")
ax.set_title(
    rf"{N_READERS} readers, {N_PAGES} pages, $\delta = 10^{{-6}}$, replace-one", fontsize=10
)
ax.legend(fontsize=9, frameon=False)
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("what_people_read.png", dpi=150)

# %%
# Estimated error
# ---------------
# The true error needs the exact mean, which stays private. ``error_estimate_`` uses only released
# numbers and public constants.

mean = DPSparseMeanEstimator(1.0, DELTA, nonnegative=True).fit(clicks)
print(f"\nestimated error {mean.error_estimate_:.4f}, in truth", end=" ")
print(f"{np.linalg.norm(mean.location_ - exact):.4f}")
print(f"pages that are left: {np.count_nonzero(mean.location_)}")
print("most read:", np.argsort(-mean.location_)[:8], "- in truth:", np.argsort(-exact)[:8])
print(mean.ledger_)

# %%
# Who subscribes?
# ---------------
# The classifiers also read sparse rows, in time proportional to the entries. Noise is less of a
# problem for a linear model than for a mean: the prediction for a reader has the noise of thirty
# pages, not of all.

train, test = slice(0, 16_000), slice(16_000, None)
for epsilon in (1.0, 4.0):
    model = DPLogisticRegression(epsilon, DELTA, classes=(False, True))
    model.fit(clicks[train], subscribes[train])
    scores = model.decision_function(clicks[test])
    ranks = np.argsort(np.argsort(scores))[subscribes[test]]
    n_yes, n_no = subscribes[test].sum(), (~subscribes[test]).sum()
    auc = (ranks.sum() - n_yes * (n_yes - 1) / 2) / (n_yes * n_no)
    print(f"epsilon = {epsilon:g}: area under the curve {auc:.2f}, spent {model.privacy_spent_}")

# %%
# Words
# -----
# A text is also a sparse row if words are columns. ``HashingVectorizer`` makes columns by a fixed
# hash. It has no vocabulary, so it learns nothing, and the whole pipeline is as private as its
# classifier; ``TfidfVectorizer`` would keep the words of single people.

from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import make_pipeline

OPENINGS = ["hello", "dear team", "hi there", "to whom it may concern"]
GOOD = ["works well", "quick answer", "happy with it", "thank you"]
BAD = ["still broken", "no answer", "want my money back", "cancel it"]
unhappy = rng.random(5000) < 0.4
blunt = unhappy ^ (rng.random(5000) < 0.1)  # one in ten writes the opposite
letters = [
    f"{rng.choice(OPENINGS)}, {rng.choice(BAD if bad else GOOD)}, ticket {rng.integers(10**6)}"
    for bad in blunt
]
model = make_pipeline(
    HashingVectorizer(n_features=2**14),  # every row gets length 1
    DPLogisticRegression(1.0, DELTA, data_norm=1.0, classes=(False, True)),
).fit(letters[:4000], unhappy[:4000])
print(letters[0])
print(f"accuracy on letters {model.score(letters[4000:], unhappy[4000:]):.2f}", end=", ")
print("spent", privacy_spent(model))

# %%
# References
# ----------
# B. Ghazi, C. Guzmán, P. Kamath, R. Kumar and P. Manurangsi, "Differentially private
# optimization with sparse gradients", NeurIPS 2024.

# %%
# What was promised
# -----------------
# Each mean and each classifier is (epsilon, 1e-6)-differentially private per reader under
# replace-one adjacency, for any number of pages of a reader; the histogram counts at most forty.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_08_smoothing_the_hinge.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_10_one_enormous_row.py`

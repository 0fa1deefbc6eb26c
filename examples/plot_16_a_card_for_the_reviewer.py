# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A privacy card for the reviewer, and a file of the model
========================================================

The model is fitted, and somebody who was not there must sign for it: a data protection officer, an
ethics board, a reviewer. They will not read code. This example makes the page that they read
instead, and a file of the model.

*You learn* to document a claim for somebody who will not read code, and to save model and claim.
*It builds on* :ref:`sphx_glr_auto_examples_plot_04_reading_a_ledger.py`.
"""

# %%
# A model
# -------
# Two private steps, the scaler and the classifier, have an epsilon of 1 each. The scaler warns: 569
# rows are too few to find 30 scales at this epsilon. A card does not judge that, because it is
# about privacy, and not about accuracy.

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import DPLogisticRegression, DPStandardScaler, privacy_card, trusted_types
from skdp.exceptions import NoisyEstimateWarning

warnings.simplefilter("ignore", NoisyEstimateWarning)
X, y = load_breast_cancer(return_X_y=True)
model = make_pipeline(
    DPStandardScaler(epsilon=1.0),
    DPLogisticRegression(epsilon=1.0, data_norm=6.0, classes=[0, 1]),
).fit(X, y)

# %%
# Its card
# --------
# The claim comes first, then what it does not cover, public knowledge, the ledger, and
# instructions to check them. Prices are rounded up. Nothing on the card depends on the rows.

card = privacy_card(model, name="tumours, benign or malignant", delta=1e-5)
print(card)

# %%
# In odds
# -------
# Odds are easier to understand than epsilon. An attacker guesses which of two values one row has,
# and without the model would be right in half of all cases.

ax = card.plot()
if "__file__" in globals():  # run as a script, not in the gallery
    ax.figure.savefig("odds_of_a_card.png", dpi=150)

# %%
# One claim, many deltas
# ----------------------
# The same releases are private at every delta, each with its own epsilon. The card has a few of
# them; the ledger has all. The price of both steps together is less than the sum of their claims,
# each with half of the delta.

first, last = model[0].ledger_, model[1].ledger_
deltas = [10.0**-k for k in range(2, 13)]
added = [first.epsilon(d / 2) + last.epsilon(d / 2) for d in deltas]
together = [(first + last).epsilon(d) for d in deltas]
scaler = [first.epsilon(d) for d in deltas]

fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.spines[["top", "right"]].set_visible(False)
for name, epsilons, style in [
    ("two claims added up", added, {"color": "0.45", "marker": "^", "linestyle": ":"}),
    ("both steps together", together, {"color": "tab:blue", "marker": "o"}),
    ("the scaler alone", scaler, {"color": "tab:red", "marker": "s", "linestyle": "--"}),
]:
    ax.semilogx(deltas, epsilons, markersize=5, **style)
    ax.annotate(name, (deltas[7], epsilons[7]), (6, 6), textcoords="offset points")
ax.axvline(1e-5, color="0.8", zorder=0)
ax.text(1.3e-5, 3.2, "the card", color="0.45")
ax.set(xlabel=r"$\delta$", ylabel=r"$\varepsilon$ (nats)", ylim=(0, None))
ax.set_title("replace-one, per row", fontsize=10)
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("a_card_for_the_reviewer.png", dpi=150)

# %%
# A model without a claim
# -----------------------
# With an ordinary scaler in front, the same classifier has no claim.

leaky = make_pipeline(StandardScaler(), DPLogisticRegression(classes=[0, 1])).fit(X, y)
print(privacy_card(leaky).claim)

# %%
# The file
# --------
# Keep card and model together. skops loads models without running code;
# :func:`~skdp.trusted_types` lists the types that it must trust. The loaded model has the same
# card.

try:
    import skops.io
except ImportError:
    print("pip install skops, to go on")
else:
    with tempfile.TemporaryDirectory() as folder:
        skops.io.dump(model, Path(folder, "model.skops"))
        card.save(Path(folder, "card.md"))
        card.save(Path(folder, "card.json"))
        back = skops.io.load(Path(folder, "model.skops"), trusted=trusted_types())
        print({path.name: path.stat().st_size for path in sorted(Path(folder).iterdir())})
    print(privacy_card(back, name=card.to_dict()["name"], delta=1e-5) == card)

# %%
# What was promised
# -----------------
# Scaler and classifier together are differentially private per row under replace-one adjacency,
# with the epsilon on the card at delta = 1e-5. A card is read off the model, and proves nothing by
# itself.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_15_pictures_for_a_report.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_17_larger_than_memory.py`

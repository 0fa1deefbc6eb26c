# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Federated learning: clients with many rows each
===============================================

A client often has many rows: a phone has a thousand sentences, a hospital ten thousand scans. The
unit of protection is then a *client*, with all its rows. The rows stay there: in every round some
clients move the model along their own rows, and send the change.

There are two kinds of observers: insiders, who receive the messages of single clients, and
outsiders, who see only the model. This example fits digits for both (Bhowmick et al. 2018).

*You learn* to protect people with many rows each, from outsiders and from insiders.
*It builds on* :ref:`sphx_glr_auto_examples_plot_11_nobody_holds_the_rows.py`.
"""

# %%
# Clients
# -------
# Five thousand clients, made of the digits of scikit-learn. Every client has six images, slightly
# blurred, because there are only 1,500 different ones.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skdp import DPLogisticRegression, FederatedDPLogisticRegression
from skdp.exceptions import PrivacyWarning

X, y = load_digits(return_X_y=True)
X /= np.linalg.norm(X, axis=1, keepdims=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=300, random_state=0)
rng = np.random.default_rng(0)
N_CLIENTS = 5_000
chosen = rng.integers(len(X), size=6 * N_CLIENTS)
noisy = X[chosen] + rng.normal(scale=0.05, size=(len(chosen), X.shape[1]))
labels = y[chosen]
clients = np.repeat(np.arange(N_CLIENTS), 6)

# %%
# One fit, two guarantees
# -----------------------
# ``groups`` names the client of each row. ``epsilon`` is for outsiders: the sums of a round get
# Gaussian noise, and the accountant composes rounds of random clients. ``local_epsilon`` is for
# insiders: every client randomises its own message with PrivUnit.

model = FederatedDPLogisticRegression(
    epsilon=2.0, delta=1e-5, local_epsilon=32.0, classes=range(10)
)
model.fit(noisy, labels, groups=clients)
print(f"accuracy                     {model.score(X_test, y_test):.3f}")
print("outsiders: epsilon, delta    {:.3g}, {:.1g}".format(*model.privacy_spent_))
print(f"insiders: epsilon a report   {model.local_epsilon_per_round_:.3g}")
print("insiders, all rounds         {:.3g}, {:.1g}".format(*model.local_privacy_spent_))
print(model.ledger_)

# %%
# The ledger has both: reports, seen only by the party that adds up, and sums. With reports the
# central noise is larger: it must hide a report, which is longer than the message behind it.
#
# The effect of the local budget
# ------------------------------
# Two fits at each of several local budgets, with and without central noise. One report in 650
# dimensions is nearly all noise, but the sum of hundreds is not. These budgets look absurd
# elsewhere: a client sends several reports, and if they add up to more than 20, a fit without
# central noise would warn that this is almost no privacy. But who knows little about a message of
# 650 numbers cannot reconstruct it from a report with an epsilon of 32 (see the previous example),
# and this is the aim of the paper.

warnings.simplefilter("ignore", PrivacyWarning)
LOCAL = [2, 8, 32, 128]


def accuracy(repeats=2, **budget):
    """Return the accuracies of several fits."""
    fits = [
        FederatedDPLogisticRegression(delta=1e-5, classes=range(10), **budget).fit(
            noisy, labels, groups=clients
        )
        for _ in range(repeats)
    ]
    return [fit.score(X_test, y_test) for fit in fits]


alone = {e: accuracy(epsilon=None, local_epsilon=float(e)) for e in LOCAL}
both = {e: accuracy(epsilon=2.0, local_epsilon=float(e)) for e in LOCAL}
central = accuracy(repeats=1, epsilon=2.0)
plain = LogisticRegression(max_iter=500).fit(noisy, labels).score(X_test, y_test)
print("local epsilon   " + "".join(f"{e:>8}" for e in LOCAL))
print("reports alone   " + "".join(f"{np.mean(alone[e]):8.3f}" for e in LOCAL))
print("and epsilon = 2 " + "".join(f"{np.mean(both[e]):8.3f}" for e in LOCAL))
print(f"epsilon = 2 alone {np.mean(central):.3f}, without privacy {plain:.3f}")

fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.spines[["top", "right"]].set_visible(False)
for name, runs, color, marker, line in [
    ("reports alone", alone, "tab:blue", "o", "-"),
    (r"reports, and $\varepsilon = 2$ for outsiders", both, "tab:red", "s", "--"),
]:
    means = [np.mean(runs[e]) for e in LOCAL]
    ax.semilogx(LOCAL, means, color=color, marker=marker, linestyle=line, label=name, base=2)
    for e in LOCAL:
        ax.plot([e] * 2, runs[e], ".", color=color, alpha=0.4)
ax.axhline(
    np.mean(central), color="tab:red", linestyle=":", label=r"exact messages, $\varepsilon = 2$"
)
ax.axhline(plain, color="0.6", linewidth=1, label="without privacy")
ax.set(xlabel=r"$\varepsilon$ of one report", ylabel="accuracy")
ax.set_xticks(LOCAL, [str(e) for e in LOCAL])
ax.set_title(f"{N_CLIENTS} clients of 6 images, 650 coefficients", fontsize=10)
ax.legend(frameon=False, fontsize=9, loc="lower right")
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("clients_of_a_federation.png", dpi=150)

# %%
# A row is not a client
# ---------------------
# A private fit that protects rows has no guarantee for clients: a client with six rows counts six
# times, and correlated rows reveal each other.

rows_only = DPLogisticRegression(epsilon=2.0, delta=1e-5, classes=range(10)).fit(noisy, labels)
print(rows_only.ledger_.unit, "against", model.ledger_.unit)

# %%
# What was promised
# -----------------
# Towards outsiders the model is (2, 1e-5)-differentially private per *client*, with all its rows,
# under replace-one adjacency of clients. Towards insiders every report has the printed epsilon.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_12_what_an_attacker_can_rebuild.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_14_what_an_audit_can_see.py`

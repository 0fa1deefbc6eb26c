# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A picture of what an attacker can rebuild."""

import numpy as np

STYLES = {
    "prior": {"color": "0.5", "linestyle": ":"},
    "paper_bound": {"color": "0.7", "linestyle": "--", "linewidth": 1},
    "odds_bound": {"color": "tab:red"},
    "privunit": {"color": "tab:blue"},
}
LABELS = {
    "prior": "guess without the report",
    "paper_bound": "bound in print",
    "odds_bound": "no attack on any channel does better",
    "privunit": "best attack on PrivUnit",
}


def plot_risk(risk, ax=None):
    """Draw the success over the cosine.

    Parameters
    ----------
    risk : ReconstructionRisk
        What to draw, in order of the cosine.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    ax : matplotlib.axes.Axes
    """
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(6.4, 3.8), layout="constrained").add_subplot()
    order = np.argsort(risk.cosine)
    few = "o" if len(order) == 1 else None
    for name, style in STYLES.items():
        values = getattr(risk, name)
        if values is None:
            continue
        label = LABELS[name]
        if name == "privunit" and risk.target_dims < risk.n_dims:
            label = "no attack on PrivUnit does better"
        ax.plot(np.array(risk.cosine)[order], values[order], label=label, marker=few, **style)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("cosine that counts as a success")
    ax.set_ylabel("success of the attacker")
    ax.set_title(rf"{risk.n_dims} dimensions, $\varepsilon = {risk.epsilon:g}$", fontsize=10)
    ax.legend(fontsize=8, frameon=False)
    return ax

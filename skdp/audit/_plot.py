# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A picture of an audit: error rates of the attack, and what the claim allows."""

import numpy as np
from scipy.special import ndtr, ndtri

from skdp.privacy import gdp_mu


def plot_audit(result, ax=None):
    """Draw an audit.

    Parameters
    ----------
    result : AuditResult
        What to draw.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    ax : matplotlib.axes.Axes
    """
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(4.8, 4.6), layout="constrained").add_subplot()
    grid = np.linspace(0, 1, 501)
    claimed = result.epsilon_claimed
    if claimed is not None:
        _draw_claim(ax, grid, claimed, result.delta)
    fpr, fnr = np.array(result.curve).T
    order = np.argsort(fpr)
    ax.plot(fpr[order], fnr[order], color="tab:blue", linewidth=1, label="attack, all thresholds")
    # the ends behind the bound: both rates lie below and left of the corner
    ax.errorbar(
        result.fpr[0],
        result.fnr[0],
        xerr=[[result.fpr[0] - result.fpr[1]], [result.fpr[2] - result.fpr[0]]],
        yerr=[[result.fnr[0] - result.fnr[1]], [result.fnr[2] - result.fnr[0]]],
        color="black",
        marker="o",
        markersize=4,
        capsize=3,
        label=f"attack at its threshold, {100 * result.confidence:g}%",
    )
    ax.set(
        xlim=(0, 1), ylim=(0, 1), xlabel="false positive rate", ylabel="false negative rate",
        title=f"epsilon at least {result.epsilon_lower:.3g} at delta {result.delta:g}",
    )  # fmt: skip
    ax.set_aspect("equal")
    ax.legend(loc="upper right", fontsize="small")
    return ax


def _draw_claim(ax, grid, epsilon, delta):
    """Draw the region that (epsilon, delta) forbids, and the curve of Gaussian noise."""
    with np.errstate(over="ignore", under="ignore"):
        # exp(-epsilon) keeps an infinite claim finite
        factor = np.exp(-epsilon)
        line = np.maximum((1 - delta - grid) * factor, 1 - delta - grid / max(factor, 1e-300))
    line = np.maximum(line, 0.0)
    ax.fill_between(
        grid, 0, line, color="0.85", linewidth=0,
        label=f"forbidden by ({epsilon:.3g}, {delta:.3g})",
    )  # fmt: skip
    if delta > 0 and 0 < epsilon < np.inf:
        mu = gdp_mu(epsilon, delta)
        # the ends of the quantile function are infinite, and so they may be
        with np.errstate(invalid="ignore"):
            gaussian = ndtr(ndtri(1 - grid) - mu)
        ax.plot(grid, gaussian, color="0.3", linestyle="--", label=f"Gaussian noise, mu {mu:.3g}")

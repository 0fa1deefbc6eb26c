# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Result of an audit, and its picture."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from skdp.privacy.kernel.accounting import gdp_epsilon
from skdp.privacy.laws.calibration import gdp_mu

#: (rate, lower end, upper end)
Rate = tuple[float, float, float]


def unexceeded(lower: float, claimed: float | None) -> bool | None:
    """Return whether a claim is not contradicted; None without a claim, or for infinity."""
    return None if claimed is None or math.isinf(claimed) else lower <= claimed


def compared(lower: float, claimed: float | None) -> str:
    """Return the comparison of a lower bound and a claim in words."""
    if claimed is None:
        return "nothing is claimed"
    if math.isinf(claimed):
        return "claimed: infinite, which is nothing"
    return f"claimed: {claimed:.4g}, {'not contradicted' if lower <= claimed else 'CONTRADICTED'}"


def per_group(unit: str | None) -> str:
    """Return the unit in words, if it is not a row."""
    return ", per group" if unit == "group" else ""


@dataclass(frozen=True, repr=False)
class AuditResult:
    """A lower bound on epsilon, with its evidence.

    Parameters
    ----------
    epsilon_lower : float
        Lower bound on epsilon at this delta, with the stated confidence.
    mu_lower : float
        The same for mu, if the claim is mu-Gaussian differential privacy. Both bounds, and the
        rates, hold together.
    delta, confidence : float
        As given, or from the claim.
    epsilon_claimed : float or None
        Claim of the estimator at this delta, if any.
    fpr, fnr : tuple of (float, float, float)
        Error rates of the test on fresh runs: the rate, and the lower and upper end of its
        Clopper-Pearson interval.
    gaussian_fpr, gaussian_fnr : tuple of (float, float, float)
        The same for the test behind `mu_lower`, which has its own threshold if delta is positive.
    n_runs, n_bound_runs : int
        Number of fits to each of the two data sets: all of them, and the fits behind the bound.
    n_failed : tuple of (int, int)
        Number of fits behind the bound that raised an exception, which counts as an output.
    pair, attack : str
        The neighbours, and the score of the test.
    adjacency : str or None
        Relation of the neighbours.
    seeded : bool
        Whether the fits were seeded.
    curve : tuple of (float, float)
        Points (FPR, FNR) of the same score at other thresholds: estimates without bounds.
    mu_claimed : float or None, default=None
        Gaussian-DP parameter claimed by the estimator, if all noise on its ledger is Gaussian.
    unit : {"row", "group"} or None, default=None
        Unit of the neighbours and of the claim. None without a ledger.
    """

    epsilon_lower: float
    mu_lower: float
    delta: float
    confidence: float
    epsilon_claimed: float | None
    fpr: Rate
    fnr: Rate
    gaussian_fpr: Rate
    gaussian_fnr: Rate
    n_runs: int
    n_bound_runs: int
    n_failed: tuple[int, int]
    pair: str
    attack: str
    adjacency: str | None
    seeded: bool
    curve: tuple[tuple[float, float], ...]
    mu_claimed: float | None = None
    unit: str | None = None

    @property
    def epsilon_gaussian(self) -> float | None:
        """Epsilon of `mu_lower` at `delta`, if the trade-off is Gaussian; None at delta 0.

        If it is larger than the claim, that does not contradict (epsilon, delta)-privacy as such.
        It contradicts Gaussian noise of the claimed size.
        """
        return gdp_epsilon(self.mu_lower, self.delta) if self.delta else None

    @property
    def passed(self) -> bool | None:
        """Whether the claim is not contradicted; None without a claim, or for infinity.

        With `mu_claimed` both bounds must be within their claims: a ledger with Gaussian noise
        only claims the whole trade-off curve, not only one pair.
        """
        gaussian = unexceeded(self.mu_lower, self.mu_claimed)
        pair = unexceeded(self.epsilon_lower, self.epsilon_claimed)
        return pair if gaussian is None else gaussian and pair is not False

    @property
    def passed_gaussian(self) -> bool | None:
        """Whether `epsilon_gaussian` is at most the claim; None if one of the two is missing."""
        gaussian = self.epsilon_gaussian
        return None if gaussian is None else unexceeded(gaussian, self.epsilon_claimed)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame of one row, without the curve (needs pandas)."""
        import pandas as pd

        row = {name: value for name, value in asdict(self).items() if name != "curve"}
        for name in ("fpr", "fnr", "gaussian_fpr", "gaussian_fnr"):
            row[name], row[f"{name}_lower"], row[f"{name}_upper"] = row[name]
        row["n_failed_first"], row["n_failed_second"] = row.pop("n_failed")
        row |= {name: getattr(self, name) for name in ("epsilon_gaussian", "passed")}
        return pd.DataFrame([row])

    def plot(self, ax: Any = None) -> Any:
        """Draw the error rates of the attack, and the limits of the claim.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes; None makes a new figure. Needs matplotlib.

        Returns
        -------
        ax : matplotlib.axes.Axes
            Axes; points below the curve of the claim contradict it.
        """
        return plot_audit(self, ax)

    def __repr__(self) -> str:
        given = f"epsilon >= {self.epsilon_lower:.4g} at delta={self.delta:.3g}"
        gaussian = self.epsilon_gaussian
        second = "" if gaussian is None else f"; {gaussian:.4g} if the trade-off is Gaussian"
        sure = f"with confidence {100 * self.confidence:.6g}%"
        if self.mu_claimed is not None:
            second += f"; mu >= {self.mu_lower:.4g} ({compared(self.mu_lower, self.mu_claimed)})"
        return (
            f"{given} {sure} ({compared(self.epsilon_lower, self.epsilon_claimed)}){second}\n"
            f"pair: {self.pair}{per_group(self.unit)}; {self.n_runs} runs each. A lower bound can "
            "contradict a claim; it never proves one."
        )


# The picture: error rates of the attack, and the region that the claim forbids.


def plot_audit(result, ax=None):
    """Draw an audit.

    Parameters
    ----------
    result : AuditResult
        Result to draw.
    ax : matplotlib.axes.Axes, default=None
        Axes; None makes a new figure.

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
    """Draw the forbidden region of (epsilon, delta), and the curve of Gaussian noise."""
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

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What is known of a reconstruction attack, as a table or a picture."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


def show(log_p: float) -> str:
    """Return a probability as text, from its logarithm; it may be far below any float."""
    if log_p == -math.inf or log_p > math.log(0.001):
        return f"{math.exp(log_p):.3g}"
    exponent = math.floor(log_p / math.log(10))
    text = f"{math.exp(log_p - exponent * math.log(10)):.1f}"
    return f"1.0e{exponent + 1:+03d}" if text == "10.0" else f"{text}e{exponent:+03d}"


def table(columns: dict[str, list[str]]) -> list[str]:
    """Return the lines of a table with aligned columns."""
    cells = [[head, *column] for head, column in columns.items()]
    widths = [max(7, *map(len, column)) for column in cells]
    lines = zip(*cells, strict=True)
    return [
        "  ".join(f"{c:<{w}}" for c, w in zip(line, widths, strict=True)).rstrip() for line in lines
    ]


@dataclass(frozen=True)
class ReconstructionRisk:
    """Success of attackers who rebuild a direction, for several cosines.

    Parameters
    ----------
    epsilon, n_dims, target_dims, prior_log_ratio : float, int, int, float
        What was asked.
    cosine : tuple of float
        A guess is a success if its cosine with the truth is at least that.
    log_prior : tuple of float
        Logarithms of the success without a report, the baseline.
    log_paper_bound, log_product_bound, log_odds_bound : tuple of float
        Logarithms of bounds on the success of every attack on every channel: the bound
        in print, e^epsilon times the prior, and the one from odds, which is sharp.
    log_privunit : tuple of float or None
        Logarithms of the success of the best attack on PrivUnit, for a uniform prior; an
        upper bound of it if `target_dims` is less than `n_dims`.
    mean_cosine : float or None
        Mean cosine between the input and the best guess on PrivUnit.
    """

    epsilon: float
    n_dims: int
    target_dims: int
    prior_log_ratio: float
    cosine: tuple[float, ...]
    log_prior: tuple[float, ...]
    log_paper_bound: tuple[float, ...]
    log_product_bound: tuple[float, ...]
    log_odds_bound: tuple[float, ...]
    log_privunit: tuple[float, ...] | None = None
    mean_cosine: float | None = None

    @property
    def distance(self) -> np.ndarray:
        """Euclidean distances of unit vectors with these cosines."""
        return np.sqrt(2 - 2 * np.array(self.cosine))

    @property
    def prior(self) -> np.ndarray:
        """Success without a report, the baseline; below 1e-308 it is zero."""
        return np.exp(self.log_prior)

    @property
    def paper_bound(self) -> np.ndarray:
        """The bound in print, for comparison."""
        return np.exp(self.log_paper_bound)

    @property
    def product_bound(self) -> np.ndarray:
        """The prior times e^epsilon, at most 1, for comparison."""
        return np.exp(self.log_product_bound)

    @property
    def odds_bound(self) -> np.ndarray:
        """The bound to quote: no attack on any channel succeeds more often."""
        return np.exp(self.log_odds_bound)

    @property
    def privunit(self) -> np.ndarray | None:
        """Success of the best attack on PrivUnit with a uniform prior, or None."""
        return None if self.log_privunit is None else np.exp(self.log_privunit)

    @property
    def _columns(self) -> dict[str, Any]:
        """Return logarithms of probabilities by the names of their columns."""
        found: dict[str, Any] = {
            "prior": self.log_prior,
            "paper": self.log_paper_bound,
            "e^eps prior": self.log_product_bound,
            "odds bound": self.log_odds_bound,
        }
        return found | ({"PrivUnit": self.log_privunit} if self.log_privunit else {})

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, one row per cosine (needs pandas)."""
        import pandas as pd

        columns = {"cosine": self.cosine, "distance": self.distance, "prior": self.prior}
        columns |= {name: getattr(self, name) for name in ("paper_bound", "product_bound")}
        columns |= {"odds_bound": self.odds_bound}
        if self.log_privunit is not None:
            columns["privunit"] = np.exp(self.log_privunit)
        return pd.DataFrame(columns)

    def plot(self, ax: Any = None) -> Any:
        """Draw the success over the cosine.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure. Needs matplotlib.

        Returns
        -------
        ax : matplotlib.axes.Axes
            The probability is on a linear axis: bounds matter where they are neither
            near 0 nor near 1.
        """
        from skdp.inspection._reconstruction_plot import plot_risk

        return plot_risk(self, ax)

    def __str__(self) -> str:
        ratio = self.prior_log_ratio
        prior = f"prior at most e^{ratio:g} times uniform" if ratio else "uniform prior"
        prior = "any prior" if ratio == math.inf else prior
        image = f", image of {self.target_dims}" if self.target_dims < self.n_dims else ""
        shown = {"cosine": [f"{c:g}" for c in self.cosine]}
        shown |= {name: [show(p) for p in logs] for name, logs in self._columns.items()}
        lines = [f"epsilon {self.epsilon:g}, {self.n_dims} dimensions{image}, {prior}"]
        lines += table(shown)
        if self.mean_cosine is not None:
            lines.append(f"best guess on PrivUnit: mean cosine {self.mean_cosine:.3g}")
        if self.log_privunit and (ratio or image):
            bound = " and is an upper bound for an image" if image else ""
            lines.append(f"the column PrivUnit is for a uniform prior{bound}")
        return "\n".join(lines)

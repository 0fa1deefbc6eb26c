# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Centre the rows privately, and fit to them: two algorithms of Sun, Suresh and Menon (2023).

"center" is their Algorithm 3: a Gaussian mean, a shift, and gradients that are clipped.
"center-clip" is Algorithm 2: a mean whose error does not grow with the offset, a radius tau
that few rows exceed, rows (x - mean, tau) shortened to sqrt(2) tau, and gradients that
need no clipping. "center-scale" takes the centre and the radius of the second, as the unit
of length, and the clipped gradients of the first. Corrections to the print are in
docs/user_guide/proofs_sampling.rst.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from skdp._queries import centred_rows
from skdp._solvers import mu_beside, plan_mean, plan_threshold

#: no centre is bought for less
SMALLEST_MU = 1e-10

PREPROCESS = ("center", "center-scale", "center-clip")


@dataclass(frozen=True)
class Centring:
    """A plan to move the rows; public numbers only.

    Parameters
    ----------
    mean, threshold : object, object or None
        Plans of `skdp._solvers`.
    mu, priced : float, float
        Price of the centre, a Gaussian-DP parameter, and of the radius, an epsilon.
    intercept : float
        Constant feature of the moved rows, in units of the radius.
    shorten : bool
        Whether longer rows are shortened, so that gradients need no clipping.
    """

    mean: Any
    threshold: Any
    mu: float
    priced: float
    intercept: float
    shorten: bool

    @property
    def n_releases(self):
        """Number of releases."""
        return self.mean.n_releases + (self.threshold is not None and self.threshold.released)

    def run(self, curator):
        """Release centre and radius, and move the curator's rows.

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows` without an intercept.

        Returns
        -------
        center, radius : ndarray of shape (n_features,), float
            In the unit ball; the radius is 1 for "center".
        """
        center, radius = self.mean.run(curator), 1.0
        if self.threshold is not None:
            radius = self.threshold.run(curator, center)
        intercept, shorten = self.intercept, self.shorten
        curator.map_rows(lambda rows: centred_rows(rows, center, intercept, radius, shorten))
        return center, radius


def plan_centring(preprocess, share, *, n_rows, n_features, epsilon, delta, adjacency, intercept):
    """Plan the centring from public numbers.

    Parameters
    ----------
    preprocess, share : {"center", "center-scale", "center-clip"}, float
        Which algorithm, and which part of the budget the centre gets: of the squared
        Gaussian-DP parameter. The radius gets twice that share of epsilon.
    n_rows, n_features, epsilon, delta, adjacency : int, int, float, float, str
        Public facts.
    intercept : float
        Constant feature; 1 for "center-clip".

    Returns
    -------
    plan : Centring
        The plan.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the budget is too small.
    """
    if not (isinstance(preprocess, str) and preprocess in PREPROCESS):
        raise ValueError(f"preprocess must be None or one of {PREPROCESS}; got {preprocess!r}.")
    number = isinstance(share, Real) and not isinstance(share, bool)
    if not (number and 0 < share < 0.5):
        raise ValueError(
            f"preprocess_share must be a number between 0 and 0.5, neither of them; got {share!r}."
        )
    threshold, priced, shorten = None, 0.0, preprocess == "center-clip"
    if preprocess != "center":
        # rows that are not shortened may be as long as one over the radius
        threshold = plan_threshold(
            2 * share * epsilon,
            n_rows=n_rows,
            centered=True,
            resolution=1e-9 if shorten else 1e-7,
        )
        priced = threshold.epsilon if threshold.released else 0.0
    if shorten:
        intercept = 1.0
    mu = math.sqrt(share) * mu_beside(epsilon, delta, priced)
    if mu < SMALLEST_MU:
        raise ValueError(
            f"preprocess_share={share!r} of epsilon={epsilon!r}, delta={delta!r} is too small to "
            f"be spent: the noise of the centre would exceed {1 / SMALLEST_MU:.0e} times the "
            "influence of a row. Raise the share or the budget."
        )
    mean = plan_mean(
        "gaussian" if preprocess == "center" else "shifted-clipped",
        n_rows=n_rows,
        n_features=n_features,
        mu=mu,
        adjacency=adjacency,
    )
    # a hair more than the ledger will hold
    return Centring(mean, threshold, mu * (1 + 1e-9), priced, intercept, shorten)


def original_coef(coef, intercept, center, radius, data_norm):
    """Map coefficients and intercepts for moved rows to those for the rows as they are.

    Parameters
    ----------
    coef, intercept : ndarray of shape (n_outputs, n_features), ndarray of shape (n_outputs,)
        For rows ``(x / data_norm - center) / radius``.
    center, radius, data_norm : ndarray of shape (n_features,), float, float
        Public by now.

    Returns
    -------
    coef, intercept : ndarray of shape (n_outputs, n_features), ndarray of shape (n_outputs,)
        Such that ``x @ coef.T + intercept`` is the score of the row x.
    """
    body = coef / radius
    return body / data_norm, intercept - body @ center

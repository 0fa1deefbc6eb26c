# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of PrivUnit by the conditions of the paper, which are not the best ones."""

import math
from typing import Literal

from scipy.optimize import brentq
from scipy.special import expit

from skdp._randomisers._cap import cap_cosine, check_dims, log_cosh
from skdp._randomisers._odds import BELOW_ONE, check_local_epsilon
from skdp._randomisers._privunit import PrivUnit
from skdp.privacy._accounting import check_epsilon


def paper_privunit(
    epsilon_cap: float,
    epsilon_coin: float,
    n_dims: int,
    condition: Literal["16", "16a", "16b", "exact"] = "16",
) -> PrivUnit:
    """Return parameters of PrivUnit as Bhowmick et al. (2018) choose them.

    Parameters
    ----------
    epsilon_cap, epsilon_coin : float
        Budgets of the cap and of the coin. The paper claims that their sum is spent.
    n_dims : int
        Dimension of the unit vectors, at least 2.
    condition : {"16", "16a", "16b", "exact"}, default="16"
        Which sufficient condition of Theorem 1 gives the cosine: the one or the other, the
        better of both, or the share of the cap itself.

    Returns
    -------
    parameters : PrivUnit
        Its `epsilon` is what is spent in truth. Usually that is less than claimed. In dimension
        2 condition (16a) is false, and it may be more.

    Raises
    ------
    ValueError
        If the condition gives no cosine, which happens for small budgets.

    Examples
    --------
    The largest network of the paper's Table 1, with a budget of 500:

    >>> from skdp.local import optimal_privunit, paper_privunit
    >>> paper = paper_privunit(0.99 * 500, 0.01 * 500, 3_274_634)
    >>> round(paper.cosine, 5), paper.epsilon < 500
    (0.01729, True)
    >>> best = optimal_privunit(500.0, 3_274_634)
    >>> paper.mean_squared_error > best.mean_squared_error
    True
    """
    n_dims, epsilon_cap = check_dims(n_dims, 2), check_local_epsilon(epsilon_cap)
    p = min(float(expit(check_epsilon(epsilon_coin))), BELOW_ONE)
    found = []
    if condition in ("16", "16a"):
        wide = math.sqrt(math.pi / (2.0 * (n_dims - 1)))
        found.append(math.tanh(0.5 * epsilon_cap) * wide)
    if condition in ("16", "16b"):
        found.append(_cosine_16b(epsilon_cap, n_dims))
    if condition == "exact":
        found.append(cap_cosine(-float(epsilon_cap + math.log1p(math.exp(-epsilon_cap))), n_dims))
    if not found:
        raise ValueError(
            f'condition must be one of "16", "16a", "16b" and "exact", got {condition!r}.'
        )
    cosine = max(found)
    if not 0.0 <= cosine < 1.0:
        raise ValueError(
            f"epsilon_cap={epsilon_cap!r} gives no cosine below 1 by condition {condition} in "
            f"dimension {n_dims}."
        )
    return PrivUnit(n_dims, cosine, p)


def _cosine_16b(epsilon_cap, n_dims):
    """Return the largest cosine that condition (16b) allows, or -1."""

    def spare(y):
        cosine = math.tanh(y)
        spent = 0.5 * math.log(n_dims) + math.log(6.0) + math.log(cosine)
        return epsilon_cap - spent - (n_dims - 1) * log_cosh(y)

    if n_dims == 2:
        return -1.0
    low = math.atanh(math.sqrt(2.0 / n_dims))
    if spare(low) < 0.0:
        return -1.0
    high = 2.0 * low
    while spare(high) > 0.0:
        high *= 2.0
    return min(math.tanh(brentq(spare, low, high, xtol=1e-300, rtol=1e-15)), BELOW_ONE)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which noise a minimiser gets, and which penalty it has, from public quantities.

A row's loss sees the coefficients through its margin alone (through one margin a class).
Noise of independent coordinates moves the margin of a row by a deviation that depends on
the length of the row, and not on how many coefficients there are: what it costs is free
of the dimension (Jain and Thakurta 2014; Arora et al. 2022). With D the norm of a good
solution, n rows, and u the deviation of the margin of a row of unit length, the sum of
losses exceeds the best one by at most

    n min(sqrt(2 / pi) L X u, H X^2 u^2 / 2) + ridge D^2 / 2,    u ~ 1 / ridge,

which a penalty growing as n^(1/3) makes smallest. D is not known. On data the best
penalty corresponds to a D that grows as the square root of the signal, which is to say to
the same deviation of a margin, about 0.3, for 8,000 to 80,000 rows, 21 to 262,145
coefficients and epsilon 0.1 to 8. Hence the rule: the weakest penalty at which noise moves
margins by no more than that, and not below what the bound asks for with a generous D.
"""

import math

import numpy as np
from scipy.optimize import brentq

from skdp._queries import l1_shift
from skdp.linear_model._mechanisms.phased import EXPECTED_RADIUS
from skdp.privacy import gdp_mu

#: deviation of the margin of a row of unit length that noise may cause
MARGIN_NOISE = 0.3
# noise of that length is no harm to few coefficients
_NOISE_LENGTH = 1.25
# exact K-norm noise takes minutes beyond
_MOST_K_NORM = 1 << 16


def rivals(loss):
    """Return how much larger the largest of the noises of all rival classes is."""
    return 1.0 if loss.n_outputs == 1 else math.sqrt(2 * math.log(loss.n_outputs))


def noise_law(problem, ridge):
    """Return the law of the noise that moves margins least, and by how much.

    Parameters
    ----------
    problem : Problem
        Public facts.
    ridge : float
        Strength of the penalty.

    Returns
    -------
    law : {"gaussian", "k-norm", "laplace"}
        Gaussian noise if delta allows it; otherwise Laplace noise, for the l1 sensitivity,
        or K-norm noise, for the l2 sensitivity.
    deviation : float
        Of the margin of a row of unit length.
    """
    l2 = problem.gradient_sensitivity / ridge
    if problem.delta:
        return "gaussian", l2 / gdp_mu(problem.epsilon, problem.delta)
    laplace = math.sqrt(2.0) * _l1(problem, ridge) / problem.epsilon
    k_norm = l2 * math.sqrt(problem.size + 1.0) / problem.epsilon
    if laplace < k_norm or problem.size > _MOST_K_NORM:
        return "laplace", laplace
    return "k-norm", k_norm


def default_ridge(problem):
    """Return a penalty that balances its own bias and the noise.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    ridge : float
        Strength of the penalty.
    """
    limit = max(MARGIN_NOISE / rivals(problem.loss), _NOISE_LENGTH / math.sqrt(problem.size))
    ridge = _weakest(problem, limit)
    stronger = ridge * np.exp(np.linspace(0.0, 30.0, 601))
    return float(min(stronger, key=lambda strength: _excess(problem, strength)))


def _weakest(problem, limit):
    """Return the weakest penalty at which noise moves a margin by at most the limit."""
    unit = problem.gradient_sensitivity / limit
    if problem.delta:
        return unit / gdp_mu(problem.epsilon, problem.delta)
    strongest = unit * math.sqrt(2.0 * problem.size) / problem.epsilon

    def too_loud(log_ridge):
        return math.log(noise_law(problem, math.exp(log_ridge))[1] / limit)

    # at the strongest one Laplace noise would do, whatever the rows are
    high = math.log(strongest)
    low = high - 1.0
    while too_loud(low) <= 0.0:
        low -= 1.0
    return math.exp(brentq(too_loud, low, high + 1.0, rtol=1e-12))


def _excess(problem, ridge):
    """Bound what noise and penalty add to the sum of losses."""
    loss = problem.loss
    deviation = noise_law(problem, ridge)[1] * problem.row_norm
    kinked = math.sqrt(2 / math.pi * loss.n_outputs) * loss.lipschitz * deviation
    smooth = loss.trace * deviation**2 / 2
    norm = problem.radius or EXPECTED_RADIUS
    return problem.n_rows * min(kinked, smooth) + ridge * norm**2 / 2


def _l1(problem, ridge):
    return l1_shift(
        problem.loss,
        ridge=ridge,
        n_rows=problem.n_rows,
        n_coefs=problem.n_coefs,
        row_norm=problem.row_norm,
        row_l1=problem.row_l1,
        moved=problem.moved_rows,
    )

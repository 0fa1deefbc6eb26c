# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Boosting: from a bound in expectation to a bound with high probability.

A mechanism with expected excess loss F exceeds 2 F with probability at most 1/2 (Markov). Of k =
log2(2 / failure) independent runs at least one is within 2 F, except with probability failure / 2;
the exponential mechanism finds one nearly as good. Bassily, Smith and Thakurta (2014), Appendix D,
with two corrections: the choice is charged (in the paper it is free), and the weights are
exp(-loss), not exp(loss). It replaces Algorithm 5 of Ghazi, Guzman, Kamath, Kumar and Manurangsi
(2024), with a random number of runs and constants that need corrections too (Proposition 49).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._log_concave import choose_by_loss
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.calibration import mu_beside
from skdp.privacy.laws.exponential import ExponentialMechanism
from skdp.solvers.exponential import loss_values

# The choice of one of several released coefficients, by their loss.


# candidates of which all pairs are looked at
_MOST_PAIRED = 100


@dataclass(frozen=True, eq=False)
class CandidateChoice:
    """Index of a candidate, drawn with probability exp(-loss / temperature).

    Parameters
    ----------
    candidates : ndarray of shape (n_candidates, n_outputs * n_coefs)
        Public coefficients, such as released ones. At least two differ.
    loss : object
        Loss of `skdp._losses`.
    row_norm : float
        Bound on the norm of a row.
    """

    candidates: Any
    loss: Any
    row_norm: float

    idealised = True
    size = 1

    @property
    def name(self):
        """Name of the statistic."""
        return f"choice among {len(self.candidates)} candidates by {type(self.loss).__name__}"

    @property
    def diameter(self):
        """Largest distance of two candidates; for many, twice the largest norm as a bound."""
        points = self.candidates
        if len(points) > _MOST_PAIRED:
            return 2 * math.sqrt(np.einsum("ij,ij->i", points, points).max())
        return max(float(np.linalg.norm(points - point, axis=1).max()) for point in points)

    def sensitivity(self, adjacency, n_rows):
        """State the spread: Lipschitz constant times the diameter of the candidates.

        Proof. The loss of one row differs between two candidates by at most
        L X |a - b|. Zero-out changes the score by one row's loss, replace-one by a
        difference of two. The candidates are public, and so is their diameter.
        """
        spread = self.loss.lipschitz * self.row_norm * self.diameter
        theorem = "L X times the diameter of the candidates"
        if adjacency != "zero-out":
            spread, theorem = 2 * spread, "2 " + theorem
        bound = float(max(1, len(self.candidates)))
        return Sensitivity(math.inf, math.inf, bound, theorem, spread=spread)

    def outcomes(self, *sides):
        """Return all indices; see `ExponentialMechanism`."""
        count = len(self.candidates)
        return np.arange(float(count))[:, None], np.ones(count)

    def scores_of(self, rows, outcomes):
        """Return the scores of some indices; see `ExponentialMechanism`."""
        losses = loss_values(rows, self.candidates, self.loss)
        return losses[outcomes[:, 0].astype(np.int64)]

    def draw(self, rows, noise, source):
        """Return the index at the temperature ``noise.scale``."""
        scores = loss_values(rows, self.candidates, self.loss)
        return np.array([float(choose_by_loss(scores, 1.0 / noise.scale, source))])


# Parts of epsilon that the choice gets. Next to Gaussian releases a tenth is enough on data:
# what it costs is a small number over the number of rows.
_SHARE_PURE, _SHARE_GAUSSIAN = 0.5, 0.1


@dataclass(frozen=True)
class BoostingPlan:
    """Division of a budget between runs and the choice.

    Parameters
    ----------
    n_runs : int
        Independent runs.
    mu_run, epsilon_run : float
        Price of one run: in Gaussian-DP if delta > 0 (the other is 0), otherwise pure.
    epsilon_choice : float
        Price of the choice.
    failure : float
        Probability that the bound fails.
    """

    n_runs: int
    mu_run: float
    epsilon_run: float
    epsilon_choice: float
    failure: float

    def excess_bound(self, expected, spread):
        """Return a bound on the excess loss that fails with probability at most `failure`.

        Parameters
        ----------
        expected, spread : float
            Expected excess of one run, and spread of the score of the choice.
        """
        temperature = spread / self.epsilon_choice
        return 2 * expected + temperature * math.log(2 * self.n_runs / self.failure)


def plan_boosting(epsilon, delta, failure):
    """Split a budget.

    Parameters
    ----------
    epsilon, delta : float
        The whole budget. Half of epsilon is for the choice at delta 0, a tenth otherwise.
    failure : float
        Probability, in (0, 1), of a result worse than the bound.

    Returns
    -------
    plan : BoostingPlan
        Runs and prices; together they are (epsilon, delta)-DP.

    Raises
    ------
    ValueError
        If `failure` or the budget is out of range.
    """
    if not 0 < failure < 1:
        raise ValueError(f"failure must be in (0, 1); got {failure!r}.")
    n_runs = math.ceil(math.log2(2 / failure))
    # a hair less, so that the prices add up to no more than the budget in floats
    choice = (_SHARE_GAUSSIAN if delta else _SHARE_PURE) * epsilon * (1 - 1e-12)
    if delta:
        mu = mu_beside(epsilon, delta, choice) / math.sqrt(n_runs) * (1 - 1e-12)
        return BoostingPlan(n_runs, mu, 0.0, choice, failure)
    return BoostingPlan(n_runs, 0.0, choice / n_runs, choice, failure)


def boost(curator, run, plan, loss, row_norm):
    """Release several results and choose one of them privately.

    Parameters
    ----------
    curator : Curator
        The gate; the rows are those of a linear model.
    run : callable
        Releases coefficients of shape (size,) at the price of one run; called without
        arguments `plan.n_runs` times.
    plan : BoostingPlan
        From `plan_boosting`.
    loss, row_norm : object, float
        Loss for the choice, and bound on the norm of a row.

    Returns
    -------
    coef : ndarray of shape (size,)
        The chosen result.
    """
    candidates = np.array([run() for _ in range(plan.n_runs)])
    if (candidates == candidates[0]).all():
        return candidates[0]
    query = CandidateChoice(candidates, loss, row_norm)
    chosen = curator.release(query, ExponentialMechanism(plan.epsilon_choice))
    return candidates[int(chosen[0])]

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What one fit says of epsilon: the bound, and the result that carries it."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import special

from skdp.audit._result import compared

#: no bound is larger than this
LARGEST = 60.0


def one_run_p_value(n_correct, n_guesses, n_canaries, epsilon, delta):
    """Bound how likely so many correct guesses are under (epsilon, delta)-privacy.

    Parameters
    ----------
    n_correct, n_guesses, n_canaries : int
        Every canary has a fair coin of its own. An attacker sees the output and guesses the
        coins of at most `n_guesses` canaries.
    epsilon, delta : float
        The claim, for a change of one coin.

    Returns
    -------
    p : float
        At most 1.

    Notes
    -----
    Given the output and the coins before, coin i has the probabilities P / (P + Q) and
    Q / (P + Q), where P and Q are the densities of the output with either side of the coin;
    with an average over the coins after it, they are (epsilon, delta)-close. Let
    q = e^eps / (1 + e^eps). A guess is right with probability at most q + (1 - q) F_i, where
    F_i is the larger excess of the two sides over q, divided by 1 - q. Hence it is no better
    than the maximum of a coin B_i of probability q, independent of all before and of the output,
    and a coin C_i of probability F_i. The mean of F_i is at most
    1/2 sum of the integrals of (P - e^eps Q)+ and (Q - e^eps P)+, which is at most delta.
    So the number of correct guesses is at most W + V, where W is binomial and V has a mean
    of at most m delta; the two may depend on each other. By Markov's inequality,
    P(W + V >= v) <= P(W >= v - t) + m delta / (t + 1) for every integer t >= 0. With delta 0
    this is Steinke, Nasr and Jagielski (2023), Theorem 5.2; with delta their term is
    another one.
    """
    with np.errstate(under="ignore"):
        share = float(special.expit(epsilon))
        spared = np.arange(n_correct + 1)
        # P(W >= v - t) = P(W > v - t - 1); the last is 1
        tail = special.bdtrc(n_correct - spared - 1, n_guesses, share)
        tail = np.where(spared == n_correct, 1.0, tail)
        return float(min(1.0, np.min(tail + n_canaries * delta / (spared + 1))))


def one_run_epsilon(n_correct, n_guesses, n_canaries, delta, confidence):
    """Return the largest epsilon that the guesses rule out, at least 0 and at most 60."""
    lower, upper = 0.0, LARGEST
    if one_run_p_value(n_correct, n_guesses, n_canaries, lower, delta) > 1 - confidence:
        return 0.0
    # the p-value grows with epsilon
    for _ in range(60):
        middle = (lower + upper) / 2
        p = one_run_p_value(n_correct, n_guesses, n_canaries, middle, delta)
        lower, upper = (middle, upper) if p <= 1 - confidence else (lower, middle)
    return lower


@dataclass(frozen=True, repr=False)
class OneRunResult:
    """A lower bound on epsilon from a single fit.

    Parameters
    ----------
    epsilon_lower : float
        With the stated confidence, epsilon at this delta is at least this large.
    delta, confidence : float
        What was asked.
    epsilon_claimed : float or None
        What the estimator claims at this delta, if it claims anything.
    n_canaries, n_guesses, n_correct : int
        Rows whose coins were to be guessed, guesses that were made, and right ones.
    adjacency : str
        In what data sets differ whose coins differ once.
    seeded : bool
        Whether coins and noise were seeded.
    """

    epsilon_lower: float
    delta: float
    confidence: float
    epsilon_claimed: float | None
    n_canaries: int
    n_guesses: int
    n_correct: int
    adjacency: str
    seeded: bool

    @property
    def passed(self) -> bool | None:
        """Whether the claim was not contradicted; None if nothing is claimed."""
        return None if self.epsilon_claimed is None else self.epsilon_lower <= self.epsilon_claimed

    def to_frame(self) -> Any:
        """Return a pandas DataFrame of one row (needs pandas)."""
        import pandas as pd

        return pd.DataFrame([asdict(self) | {"passed": self.passed}])

    def __repr__(self) -> str:
        sure = f"at delta={self.delta:.3g} with confidence {100 * self.confidence:.6g}%"
        claim = compared(self.epsilon_lower, self.epsilon_claimed)
        return (
            f"epsilon >= {self.epsilon_lower:.4g} {sure} ({claim})\n"
            f"one fit: {self.n_correct} of {self.n_guesses} guesses right, {self.n_canaries} "
            "canaries. A lower bound can contradict a claim; it never proves one."
        )

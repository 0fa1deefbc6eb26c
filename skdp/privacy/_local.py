# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reports that every row makes on its own, before anybody sees it.

A report is a draw whose law depends on one row. It is epsilon-locally private if its
densities under any two values of the row differ by a factor of at most exp(epsilon),
everywhere. Rows that report independently of each other do not share anything, so that one
report of every row costs a row what its own report costs, and no more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from skdp.privacy._accounting import check_epsilon
from skdp.privacy._composition import compose_epsilon, most_participations
from skdp.privacy._mechanisms import Noise, Sensitivity
from skdp.privacy._sampling import Sampling

# the grid is 2^-20 of the size of an entry: it hides the last digits of floats
_REPORT_BITS = 20


@dataclass(frozen=True)
class LocalMechanism:
    """A report of every row, at a price of at most `epsilon` each.

    Parameters
    ----------
    epsilon : float
        Bound on the price of one report, in nats.
    sampling : Sampling, default=None
        How the rows that report are drawn; None for all. Who takes part is no secret towards
        those who receive reports, so this makes none of them cheaper; but few rows take part
        in most of many rounds.

    Examples
    --------
    >>> facts = Sensitivity(float("inf"), float("inf"), 1.0, "example", spread=0.4)
    >>> LocalMechanism(epsilon=0.5).calibrate(facts, size=1).epsilon
    0.4
    """

    epsilon: float
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if self.sampling is not None and self.sampling.kind == "with-replacement":
            raise ValueError("a row may be in such a batch twice, but is to report only once.")

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the price that the query states, or raise if it is more than was granted."""
        spread, bound = sensitivity.spread, sensitivity.bound
        if not (0 < spread <= self.epsilon and 0 < bound < math.inf):
            raise ValueError(
                f"reports must state a finite bound and a price of at most {self.epsilon!r}; got "
                f"bound={bound!r}, price={spread!r}."
            )
        exponent = math.ceil(math.log2(bound / math.sqrt(size))) - _REPORT_BITS
        grid = math.ldexp(1.0, min(max(exponent, -1000), 900))
        return Noise(
            "local", 1.0, grid, spread, bound, mu=0.0, epsilon=spread, sampling=self.sampling
        )


def report_epsilon(
    always: Sequence[tuple[float, float, int]],
    by_chance: Sequence[tuple[float, int, float]],
    delta: float,
) -> float:
    """Return the epsilon, at `delta`, of all reports of one row together.

    Parameters
    ----------
    always : sequence of (float, float, int)
        Reports that every row makes: price, 0, and how many.
    by_chance : sequence of (float, int, float)
        Rounds in which a row may take part: price, how many, and the probability.
    delta : float
        In [0, 1).

    Returns
    -------
    epsilon : float
        In nats, rounded up.

    Notes
    -----
    Who takes part does not depend on the data. Given that a row reports at most k times, its
    reports compose like k of them; that it does so more often has a probability, which counts
    as delta. All of delta may go there, or half of it and the rest into composition.
    """
    best = math.inf
    for share in (1.0, 0.5) if by_chance and delta else (0.0,):
        spare = delta * share / max(len(by_chance), 1) * (1 - 1e-12)
        priced = [*always]
        priced += [(e, 0.0, most_participations(n, rate, spare)) for e, n, rate in by_chance]
        best = min(best, compose_epsilon(0.0, priced, delta * (1 - share)))
    return best

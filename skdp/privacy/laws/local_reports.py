# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Local reports: every row is randomised on its own, before anybody sees it.

A report is a draw whose law depends on one row. It is epsilon-locally private if its densities
under any two values of the row differ by a factor of at most exp(epsilon), everywhere. Rows report
independently of each other, so one report of every row costs a row only its own report.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincc

from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.kernel.batches import Sampling
from skdp.privacy.kernel.mechanisms import Law, Line, Noise, Price, Sensitivity, Source, Values
from skdp.privacy.laws.exponential import drawing_source

# numbers of reports that are put on the grid at a time
_AT_ONCE = 1 << 18
# the grid is 2^-20 of the size of an entry: it hides the last digits of floats
_REPORT_BITS = 20


@dataclass(frozen=True)
class LocalMechanism(Law):
    """A report of every row, at a price of at most `epsilon` each.

    A query has ``draw(rows, noise, source)``, a report for each of the rows, and `idealised`, as
    for the exponential mechanism. Audits ask it for ``what.vectors(chunk)``, what rows report, and
    its randomiser, if it can say, for ``log_ratio(reports, first, second)``, the logarithms of
    the ratios of the laws of reports of two vectors. Where some random choices of a report are
    public, ``given(source)`` draws them, and returns a randomiser of what is left.

    Parameters
    ----------
    epsilon : float
        Bound on the price of one report, in nats.
    sampling : Sampling, default=None
        Sampling of the reporting rows; None for all. Participation is not secret towards receivers
        of reports, so sampling does not reduce the price of a report; but few rows take part in
        most of many rounds.

    Examples
    --------
    >>> facts = Sensitivity(float("inf"), float("inf"), 1.0, "example", spread=0.4)
    >>> LocalMechanism(epsilon=0.5).calibrate(facts, size=1).epsilon
    0.4
    """

    epsilon: float
    sampling: Sampling | None = None
    adds_rows = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if self.sampling is not None and self.sampling.kind == "with-replacement":
            raise ValueError("a row may be in such a batch twice, but is to report only once.")

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the price stated by the query, or raise if it exceeds the granted one."""
        spread, bound = sensitivity.spread, sensitivity.bound
        if not (0 < spread <= self.epsilon and 0 < bound < math.inf):
            raise ValueError(
                f"reports must state a finite bound and a price of at most {self.epsilon!r}; got "
                f"bound={bound!r}, price={spread!r}."
            )
        exponent = math.ceil(math.log2(bound / math.sqrt(size))) - _REPORT_BITS
        grid = math.ldexp(1.0, min(max(exponent, -1000), 900))
        return ReportNoise(
            "local", 1.0, grid, spread, bound, mu=0.0, epsilon=spread, sampling=self.sampling
        )

    @property
    def in_turn(self) -> bool:  # type: ignore[override]
        """Whether rows may report part by part; not with random participation."""
        return self.sampling is None or self.sampling.reads_all

    def stated(self, sensitivity: Sensitivity) -> float:
        """Return the price that the query states."""
        return sensitivity.spread

    def lines(self, query: Any, sensitivity: Any, noise: Any) -> tuple[Line, ...]:
        """Return the line of a report, which is private under every adjacency."""
        return tuple(line._replace(local=True) for line in super().lines(query, sensitivity, noise))

    def release(self, query: Any, noise: Noise, source: Source) -> Values:
        """Return a report of every row, on the grid."""
        made = made_reports(query, noise, source)
        if self.in_turn and len(made) != source.n_rows:
            raise ValueError(f"query {query.name!r} has not one report for every row.")
        return made


class ReportNoise(Noise):
    """Randomisation of a report, with the price stated by the query."""

    def actual(self, stated: float, size: int) -> Price:
        """Return the price of one report."""
        return Price(epsilon=stated, sampling=self.sampling)


def made_reports(query: Any, noise: Noise, source: Source) -> Values:
    """Return a report of every row read, on the grid."""
    rows = source.read()
    # whether an entry underflows depends on the row: nobody is to be told
    with np.errstate(under="ignore"):
        drawn = query.draw(rows, noise, drawing_source(query, source.bits))
        made = np.asarray(drawn, dtype=np.float64)
        if made.ndim != 2 or made.shape[1] != query.size:
            raise ValueError(f"query {query.name!r} does not have the size that it states.")
        # in parts: there may be as many numbers as memory holds
        step = max(1, _AT_ONCE // query.size)
        for start in range(0, len(made), step):
            part = made[start : start + step]
            np.multiply(mechanisms.align(part, noise), noise.grid, out=part)
    return made


# Reports that nobody sees but whoever adds them up: a noisy sum is released.


@dataclass(frozen=True)
class SumOfReports:
    """A sum of local reports, for `ReportedSum`.

    Parameters
    ----------
    sum_of, reports : Query, Query
        The sum, with ``total(reports)``; and the query of the reports.
    """

    sum_of: Any
    reports: Any

    @property
    def name(self) -> str:
        """The name of the sum."""
        return str(self.sum_of.name)

    @property
    def size(self) -> int:
        """The number of coordinates of the sum."""
        return int(self.sum_of.size)

    def sensitivity(self, adjacency: str, n_rows: int) -> tuple[Any, Any]:
        """Return what the sum states, and what the reports state."""
        sums, reports = self.sum_of, self.reports
        return sums.sensitivity(adjacency, n_rows), reports.sensitivity(adjacency, n_rows)


@dataclass(frozen=True)
class ReportedSum(Law):
    """A noisy sum of local reports, with only the sum released.

    It has two lines on the ledger: the reports, seen by the collector only, and the public sum.

    Parameters
    ----------
    additive : Law
        The noise of the sum.
    local : LocalMechanism
        The reports, of the same rows.
    """

    additive: Law
    local: LocalMechanism

    def __post_init__(self) -> None:
        local = self.local
        if not isinstance(local, LocalMechanism) or local.sampling != self.additive.sampling:
            raise ValueError("what is summed must be local reports of the rows of the batch.")

    @property
    def sampling(self) -> Sampling | None:  # type: ignore[override]
        """Sampling of the reporting rows."""
        return self.additive.sampling

    def calibrate(self, sensitivity: tuple[Any, Any], size: int) -> tuple[Noise, Noise]:
        """Return the noise of the sum and of the reports."""
        own, reported = sensitivity
        return self.additive.calibrate(own, size), self.local.calibrate(reported, size)

    def price(self, noise: tuple[Noise, Noise]) -> Price:
        """Return the price of the sum; the reports are not released."""
        return noise[0].price

    def lines(self, query: SumOfReports, sensitivity: Any, noise: Any) -> tuple[Line, ...]:
        """Return the hidden line of the reports, and the line of the sum."""
        (own,) = self.additive.lines(query.sum_of, sensitivity[0], noise[0])
        (reported,) = self.local.lines(query.reports, sensitivity[1], noise[1])
        return reported._replace(hidden=True), own._replace(of_reports=True)

    def release(self, query: SumOfReports, noise: Any, source: Source) -> Values:
        """Let the rows report, add the reports up, and add the noise."""
        made = made_reports(query.reports, noise[1], source)
        values = mechanisms.shaped(query, query.sum_of.total(made))
        return mechanisms.add_noise(values, noise[0], source.bits)


# Amplification by shuffling: the budget of a local report that hides among others.
#
# What is computed is the exact privacy curve of one pair of laws that dominates all shuffled local
# reports, rounded up. That it does is Proposition 65 of the guide.


# more reports only help, and here the arithmetic is known to be good enough
_MOST_REPORTS = 10**9
# the numbers of helpful reports are grouped into this many blocks
_BLOCKS = 1500


def shuffled_epsilon(epsilon: float, n_reports: int, delta: float) -> float:
    """Return the epsilon of one local report after a shuffler, which hides its sender.

    Everybody sends one report, made by the same `epsilon`-locally private randomiser. A trusted
    shuffler collects the reports and passes on only the counts of the reported values, or only
    their sum. Towards anybody who sees nothing else, each report is then much more private.

    Parameters
    ----------
    epsilon : float
        Privacy budget of one report, in nats, finite and greater than 0.
    n_reports : int
        Number of mixed reports, at least 1. Count only reports that the adversary did not send and
        does not know, including the protected one.
    delta : float
        Failure probability of the guarantee, in [0, 1).

    Returns
    -------
    shuffled : float
        The mixed reports are (`shuffled`, `delta`)-differentially private under replacement of one
        row. Rounded up; never above `epsilon`, and equal to it for delta 0.

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names it.

    See Also
    --------
    skdp.privacy.gdp_epsilon : The same for Gaussian noise that is added to a sum.

    Notes
    -----
    The bound is from [1]_ (Theorem 3.2, computed and not approximated); the guide has its own
    proof (Proposition 65). The worst randomiser is randomised response between two values, which
    other rows report by chance. Its curve is computed here from tails of binomial distributions;
    closed formulas are larger, mostly by a factor of two to six.

    *Requirements.* A trusted shuffler, or secure addition; the same randomiser, with the same
    parameters, for everybody; and no report left out because of its value. The bound is for one
    round. If everybody reports again, the guarantees compose: the randomiser of a round may depend
    on earlier rounds, but not on reports of the same round.

    *Limits.* At n = 10^5 and delta = 10^-6 an epsilon of 8 becomes 1.18, but an epsilon of 9 only
    8.74, and at the 50 and more of large models there is no gain at all. The approximately normal
    distribution of a sum of many reports suggests far smaller values, but is no proof of them.

    References
    ----------
    .. [1] V. Feldman, A. McMillan and K. Talwar, "Stronger privacy amplification by shuffling for
       Renyi and approximate differential privacy", SODA 2023. Theorem 3.2.

    Examples
    --------
    >>> from skdp.local import shuffled_epsilon
    >>> round(shuffled_epsilon(4.0, 100_000, delta=1e-6), 4)
    0.1182
    >>> round(shuffled_epsilon(50.0, 100_000, delta=1e-6), 4)
    50.0
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    whole = isinstance(n_reports, int | np.integer) and not isinstance(n_reports, bool)
    if not whole or n_reports < 1:
        raise ValueError(f"n_reports must be an integer of at least 1; got {n_reports!r}.")
    if delta == 0:
        return epsilon
    curve = shuffled_curve(epsilon, n_reports, delta)
    if curve(0.0) <= delta:
        return 0.0
    # at the upper end the guarantee holds throughout: at first it is that of the report itself
    low, high = 0.0, epsilon
    while high - low > 1e-9 * high:
        middle = low + 0.5 * (high - low)
        low, high = (low, middle) if curve(middle) <= delta else (middle, high)
    return high


def shuffled_curve(epsilon: float, n_reports: int, target: float) -> Callable[[float], Any]:
    """Return the function that bounds the delta of shuffled reports at each smaller epsilon.

    Parameters
    ----------
    epsilon, n_reports : float, int
        Budget of a report, and number of reports.
    target : float
        The delta of interest, greater than 0; the curve is tight from about there on.

    Returns
    -------
    curve : callable
        For numbers from 0 to `epsilon`; rounded up.

    Notes
    -----
    Of the others, ``C ~ Bin(n - 1, r)`` hide the row, ``r = 2 / (exp(epsilon) + 1)``, and given C
    the delta is `_hidden_delta`, which falls with C. So the mean over C is the last value plus the
    falls, each times the probability that C is smaller; and within a block C counts as its least
    value. As all summands are positive, it is enough to round each up.
    """
    others = float(min(int(n_reports), _MOST_REPORTS) - 1)
    rate = 2.0 * math.exp(-epsilon) / (1.0 + math.exp(-epsilon))
    # by Chernoff's bounds, beyond there is less than a millionth of the target
    rare = 14.0 - math.log(target)
    width = math.sqrt(2.0 * others * rate * rare)
    first, last = others * rate - width, min(others * rate + width + rare, others)
    blocks = np.floor(np.linspace(max(first, 0.0), last, _BLOCKS))
    starts = np.unique(np.append(blocks, 0.0))
    # P(C < start)
    smaller = betaincc(starts[1:], others + 1.0 - starts[1:], rate) * (1.0 + 1e-9)

    def curve(at: float) -> Any:
        with np.errstate(under="ignore"):
            values = np.minimum.accumulate(_hidden_delta(at, epsilon, starts))
            # what underflows is less than the last summand
            return (values[-1] + smaller @ (values[:-1] - values[1:])) * (1.0 + 1e-12) + 1e-290

    return curve


def _hidden_delta(at: float, epsilon: float, hiding: np.ndarray) -> np.ndarray:
    """Return the delta of randomised response among fair coins, for numbers of coins.

    Of ``c + 1`` answers t are tails. The likelihood ratio exceeds ``exp(at)`` up to some t. A
    rounded t misses terms that are nearly 0. The two sums cancel up to a factor of about the root
    of c; the error of each, which grows like that, is exceeded by far (see the tests).
    """
    honest = 1.0 / (1.0 + math.exp(-epsilon))
    gain = -math.expm1(at - epsilon) * honest
    # less than that is on the safe side of overflow
    odds = math.exp(min(at, 700.0))
    loss = -math.expm1(-at - epsilon) * honest * odds
    share = math.expm1(at - epsilon) / ((1.0 + odds) * math.expm1(-epsilon))
    heads = hiding + 1.0 - np.maximum(np.ceil((hiding + 1.0) * share) - 1.0, 0.0)
    margin = 1e-13 + 3e-14 * np.sqrt(hiding)
    upper = gain * _coins(heads - 1.0, hiding) * (1.0 + margin)
    lower = loss * _coins(heads, hiding) * (1.0 - margin)
    return np.asarray(np.maximum(upper - lower, 0.0))


def _coins(heads: np.ndarray, coins: np.ndarray) -> np.ndarray:
    """Return the probability of at least so many heads, from 0 to one more than there are coins."""
    inner = (heads >= 1.0) & (heads <= coins)
    # so many heads are so few tails: scipy has this function to more digits than the other one,
    # which errs by 2e-8 beyond 10^8 coins before scipy 1.17
    tails = betaincc(np.where(inner, coins + 1.0 - heads, 1.0), np.where(inner, heads, 1.0), 0.5)
    return np.where(inner, tails, np.where(heads < 1.0, 1.0, 0.0))

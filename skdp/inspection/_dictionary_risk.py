# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reconstruction of the words a person used, under local privacy: bounds on its success."""

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from skdp.inspection._reconstruction import check_number, check_public_epsilon, log_odds_bound, show


@dataclass(frozen=True)
class DictionaryRisk:
    """Success of attackers who rebuild which words a person used.

    Parameters
    ----------
    epsilon, n_words, n_items, precision, recall : float, int, int, float, float
        As passed to `dictionary_risk`.
    n_predicted : int
        How many of the most frequent words the best guess without a report names.
    log_prior : float
        Logarithm of the success of that guess, the baseline.
    exact : bool
        Whether the baseline is exact, which it is above 1e-250; else it is an upper bound.
    log_odds_bound : float
        Logarithm of the largest success of all attacks with a report.
    """

    epsilon: float
    n_words: int
    n_items: int
    precision: float
    recall: float
    n_predicted: int
    log_prior: float
    exact: bool
    log_odds_bound: float

    @property
    def prior(self) -> float:
        """Success of the best guess without a report; below 1e-308 it is zero."""
        return math.exp(self.log_prior)

    @property
    def odds_bound(self) -> float:
        """The bound to quote: no attack on any channel succeeds more often."""
        return math.exp(self.log_odds_bound)

    def __str__(self) -> str:
        relation = "" if self.exact else "at most "
        return (
            f"epsilon {self.epsilon:g}, {self.n_words} words, {self.n_items} per person, "
            f"precision {self.precision:g}, recall {self.recall:g}\n"
            f"best guess without a report: the first {self.n_predicted} words, "
            f"success {relation}{show(self.log_prior)}\n"
            f"any attack with a report: at most {show(self.log_odds_bound)}"
        )


def dictionary_risk(
    epsilon: float, n_words: int, n_items: int, *, precision: float, recall: float
) -> DictionaryRisk:
    """Bound how often an attacker rebuilds the words that a person used.

    A person has a set of words. The attacker knows how frequent words are, sees a report of
    an epsilon-locally private channel, and names a set of words. That is a success if
    it has the given precision and the given recall, or more.

    Parameters
    ----------
    epsilon : float
        Budget in nats of all that is reported on the person, from 1e-3 to 1e5.
    n_words : int
        Words in the dictionary, in order of frequency; from 1 to 10^6. A million take
        half a minute.
    n_items : int
        Words that everybody uses, from 1 to `n_words`. Word j is used with
        probability ``min(n_items / j, 1)``, independently of the others (Zipf's law).
    precision : float
        The part of the words named that the person used, above 0 and at most 1.
    recall : float
        The part of the words the person used that are named, above 0 and at most 1.

    Returns
    -------
    risk : DictionaryRisk
        Print it. It holds logarithms, which do not underflow.

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names it.

    See Also
    --------
    reconstruction_risk : The same for directions.

    Notes
    -----
    Without a report the best guess names the s most frequent words, for some s. The hits and
    the words missed are sums of independent counts, whose laws are computed exactly, for every
    s that may be best (see :ref:`proof-dictionary`). With a report the odds grow by
    a factor of at most e^epsilon. The exponential bounds in print ([1]_, Lemma 2.3) are larger
    by many orders of magnitude, with a constant that has to be doubled.

    The number rests on the prior. A person may use words that go together, and an attacker may
    know some of them: then the baseline is larger.

    References
    ----------
    .. [1] A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor and R. Rogers, "Protection against
       reconstruction and its applications in private federated learning", 2018.
       Lemma 2.3 and Proposition 2.

    Examples
    --------
    >>> from skdp.inspection import dictionary_risk
    >>> print(dictionary_risk(8.0, 25_000, 100, precision=0.5, recall=0.5))
    epsilon 8, 25000 words, 100 per person, precision 0.5, recall 0.5
    best guess without a report: the first 628 words, success 4.1e-06
    any attack with a report: at most 0.0122
    """
    epsilon = check_public_epsilon(epsilon)
    n_words = check_number(
        "n_words", n_words, "from 1 to 10^6", lambda n: 1 <= n <= 10**6, Integral
    )
    n_items = check_number(
        "n_items", n_items, f"from 1 to n_words={n_words}", lambda m: 1 <= m <= n_words, Integral
    )
    parts = {
        name: check_number(name, part, "above 0 and at most 1", lambda x: 0 < x <= 1)
        for name, part in {"precision": precision, "recall": recall}.items()
    }
    words = np.minimum(n_items / np.arange(1.0, n_words + 1), 1.0)
    size, log_prior, exact = best_prediction(words, **parts)
    return DictionaryRisk(
        epsilon=epsilon,
        n_words=n_words,
        n_items=n_items,
        **parts,
        n_predicted=size,
        log_prior=log_prior,
        exact=exact,
        log_odds_bound=log_odds_bound(epsilon, log_prior),
    )


# Laws of the number of words, which are independent, each with a probability of its own.


BLOCK = 128
# far below it floats underflow, and Chernoff's bound is given instead
LEAST = 1e-250
TILTS = np.geomspace(1e-3, 30.0, 28)


def at_least(share, count):
    """Return the least integer that is at least a share of a count, but for rounding."""
    return np.ceil(share * np.asarray(count) * (1 - 1e-12)).astype(np.int64)


def words_missed(recall, hits):
    """Return how many words a prediction may miss, given its hits, but for rounding."""
    hits = np.asarray(hits, dtype=float)
    with np.errstate(over="ignore"):
        return np.floor(hits * (1 - recall) / recall * (1 + 1e-12) + 1e-12)


def log_chernoff(words, precision, recall, pairs=None):
    """Bound the success of predicting the first s words, for every s.

    Parameters
    ----------
    words : ndarray of shape (d,)
        Probabilities of the words, none increasing.
    precision, recall : float
        What counts as a success; in (0, 1].
    pairs : iterable of (float, float), default=None
        Multiples to try, not negative. None: one of the two at a time.

    Returns
    -------
    log_bound : ndarray of shape (d,)
        At ``s - 1``, an upper bound on the logarithm of the probability that s words
        have that precision and that recall.

    Notes
    -----
    Chernoff's bound, the least over the multiples. A success needs ``H - precision s >= 0``
    and ``(1 - recall) H - recall O >= 0``, with H hits and O words missed. So it is at most the
    mean of the exponential of a times the first plus b times the second, which is a product
    over words.
    """
    if pairs is None:
        pairs = [(t, 0.0) for t in TILTS] + [(0.0, t) for t in TILTS]
    sizes, bound, last = np.arange(1, len(words) + 1), np.zeros(len(words)), None
    for a, b in pairs:
        if b != last:
            # a word that is sure has log(0 + exp(-x)), which is -x
            outside = np.cumsum(np.logaddexp(_log(1 - words), np.log(words) - b * recall))
            last = b
        inside = np.cumsum(np.log1p(words * math.expm1(a + b * (1 - recall))))
        inside += outside[-1] - outside - a * precision * sizes
        np.minimum(bound, inside, out=bound)
    return bound


def _log(p):
    with np.errstate(divide="ignore"):
        return np.log(p)


def add_word(law, p):
    """Return the law of a count after a word joins it; the last place is for all above."""
    grown = law * (1 - p)
    grown[1:] += p * law[:-1]
    grown[-1] += p * law[-1]
    return grown


def _reach_of_counts(words):
    """Return a number that the count of words exceeds with probability below 1e-30."""
    mean = words.sum()
    return math.ceil(mean + 12 * math.sqrt(mean) + 60)


def joint_probabilities(words, precision, recall, first, last):
    """Return the success of predicting the first s words, for each s of a range.

    Parameters
    ----------
    words : ndarray of shape (d,)
        Probabilities of the words.
    precision, recall : float
        What counts as a success; in (0, 1].
    first, last : int
        The range of s, both included; ``1 <= first <= last <= d``.

    Returns
    -------
    success : ndarray of shape (last - first + 1,)
        ``P(H >= precision s and recall (H + O) <= H)`` for hits H and words missed O. H is
        among the first s words, O among the others, so that they are independent.

    Notes
    -----
    The laws are built up word by word from positive terms, hits from the front and words
    missed from the back, and so have a small relative error wherever they do not underflow.
    Hits are kept at the beginning of every block of words only.
    """
    needed = int(at_least(precision, last))
    most_hits = min(last, max(_reach_of_counts(words[:last]), needed + 800))
    most_missed = min(len(words) - first, _reach_of_counts(words[first:])) + 1
    hits = np.zeros(most_hits + 2)
    hits[0] = 1.0
    kept = {}
    with np.errstate(under="ignore"):
        for s in range(1, last + 1):
            hits = add_word(hits, words[s - 1])
            if s >= first and (s - first) % BLOCK == 0:
                kept[s] = hits
        missed = np.zeros(most_missed + 1)
        missed[0] = 1.0
        for p in words[last:][::-1]:
            missed = add_word(missed, p)
        allowed = words_missed(recall, np.arange(most_hits + 2))
        allowed = np.minimum(allowed, most_missed).astype(np.int64)
        success = np.empty(last - first + 1)
        for start in sorted(kept, reverse=True):
            stop = min(start + BLOCK - 1, last)
            block = [kept.pop(start)]
            for s in range(start + 1, stop + 1):
                block.append(add_word(block[-1], words[s - 1]))
            for s in range(stop, start - 1, -1):
                least = int(at_least(precision, s))
                recalled = np.cumsum(missed)[allowed[least:]]
                success[s - first] = block[s - start][least:] @ recalled
                missed = add_word(missed, words[s - 1])
    return np.minimum(success, 1.0)


def best_prediction(words, precision, recall):
    """Return the best number of words to predict, and the logarithm of its success.

    Parameters
    ----------
    words : ndarray of shape (d,)
        Probabilities of the words, none increasing.
    precision, recall : float
        What counts as a success; in (0, 1].

    Returns
    -------
    size : int
        How many of the first words to predict.
    log_success : float
        The logarithm of the largest success of all predictions; an upper bound if it is
        not exact.
    exact : bool
        Whether it is exact, which it is above 1e-250.

    Notes
    -----
    Sizes are left out only where Chernoff's bound is below a success that another size has.
    """
    bound = log_chernoff(words, precision, recall)
    cut = bound.max() - math.log(1e3)
    for _ in range(2):
        worth = np.flatnonzero(bound >= cut) + 1
        success = joint_probabilities(words, precision, recall, worth[0], worth[-1])
        best = int(np.argmax(success))
        found = math.log(max(success[best], LEAST))
        if found >= cut:
            break
        cut = found
    if success[best] < LEAST:
        grid = np.geomspace(0.01, 10.0, 20)
        both = ((a, b) for b in grid for a in grid)
        bound = np.minimum(bound, log_chernoff(words, precision, recall, both))
        return int(np.argmax(bound)) + 1, float(bound.max()), False
    return int(worth[0]) + best, found, True

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bounds on the reconstruction of a person's words under local privacy."""

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from skdp.inspection._reconstruction import check_number, check_public_epsilon, log_odds_bound, show


@dataclass(frozen=True)
class DictionaryRisk:
    """Bounds on the success of a reconstruction of a person's words.

    Parameters
    ----------
    epsilon, n_words, n_items, precision, recall : float, int, int, float, float
        As passed to `dictionary_risk`.
    n_predicted : int
        Number of the most frequent words in the best guess without a report.
    log_prior : float
        Logarithm of the success of that guess, the baseline.
    exact : bool
        Whether the baseline is exact (above 1e-250); otherwise it is an upper bound.
    log_odds_bound : float
        Logarithm of the largest success of any attack with a report.
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
        """Success of the best guess without a report; zero below 1e-308."""
        return math.exp(self.log_prior)

    @property
    def odds_bound(self) -> float:
        """Bound on the success of any attack on any channel; the number to quote."""
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
    """Bound the success of a reconstruction of a person's words.

    A person has a set of words. The attacker knows the frequencies of words, sees a report of an
    epsilon-locally private channel, and predicts a set of words. The prediction is a success if it
    has at least the given precision and recall.

    Parameters
    ----------
    epsilon : float
        Privacy budget of all reports on the person, in nats, from 1e-3 to 1e5.
    n_words : int
        Number of words in the dictionary, in order of frequency; from 1 to 10^6. A million words
        take half a minute.
    n_items : int
        Number of words used by everybody, from 1 to `n_words`. Word j is used with probability
        ``min(n_items / j, 1)``, independently of the others (Zipf's law).
    precision : float
        Fraction of the predicted words that the person used, above 0 and at most 1.
    recall : float
        Fraction of the person's words in the prediction, above 0 and at most 1.

    Returns
    -------
    risk : DictionaryRisk
        Result to print. It has logarithms, which do not underflow.

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names it.

    See Also
    --------
    reconstruction_risk : The same for directions.

    Notes
    -----
    Without a report the best guess has the s most frequent words, for some s. Hits and missed
    words are sums of independent counts. Their distributions are computed exactly, for every s
    that may be optimal (see :ref:`proof-dictionary`). A report increases the odds by a factor of
    at most e^epsilon. The published exponential bounds ([1]_, Lemma 2.3) are larger by many orders
    of magnitude, and their constant must be doubled.

    The result depends on the prior. Words of a person may be correlated, and an attacker may know
    some of them: then the baseline is larger.

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
    """Return a fraction of a count, rounded up, with a tolerance for rounding errors."""
    return np.ceil(share * np.asarray(count) * (1 - 1e-12)).astype(np.int64)


def words_missed(recall, hits):
    """Return the allowed number of missed words for given hits, up to rounding errors."""
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
        Thresholds of a success; in (0, 1].
    pairs : iterable of (float, float), default=None
        Multiples to try, not negative. None: one of the two at a time.

    Returns
    -------
    log_bound : ndarray of shape (d,)
        At ``s - 1``, an upper bound on the logarithm of the success probability of s words.

    Notes
    -----
    Chernoff's bound, minimised over the multiples. A success needs ``H - precision s >= 0`` and
    ``(1 - recall) H - recall O >= 0``, with H hits and O missed words. So its probability is at
    most the mean of the exponential of a times the first term plus b times the second one, which
    is a product over words.
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
    """Return the distribution of a count with one more word; the last entry is the upper tail."""
    grown = law * (1 - p)
    grown[1:] += p * law[:-1]
    grown[-1] += p * law[-1]
    return grown


def _reach_of_counts(words):
    """Return a bound on the count of words that fails with probability below 1e-30."""
    mean = words.sum()
    return math.ceil(mean + 12 * math.sqrt(mean) + 60)


def joint_probabilities(words, precision, recall, first, last):
    """Return the success of predicting the first s words, for each s of a range.

    Parameters
    ----------
    words : ndarray of shape (d,)
        Probabilities of the words.
    precision, recall : float
        Thresholds of a success; in (0, 1].
    first, last : int
        The range of s, both included; ``1 <= first <= last <= d``.

    Returns
    -------
    success : ndarray of shape (last - first + 1,)
        ``P(H >= precision s and recall (H + O) <= H)`` for hits H and missed words O. They are
        independent: H is from the first s words, O from the others.

    Notes
    -----
    The distributions are built word by word from positive terms, hits from the front and missed
    words from the back, so their relative error is small without underflow. Hits are stored only
    at the beginning of every block of words.
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
        Thresholds of a success; in (0, 1].

    Returns
    -------
    size : int
        Number of the first words to predict.
    log_success : float
        Logarithm of the largest success of any prediction; an upper bound if not exact.
    exact : bool
        Whether it is exact (above 1e-250).

    Notes
    -----
    A size is skipped only if its Chernoff bound is below the success of another size.
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

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exact probabilities of counts of independent words, of which each has its own probability."""

import math

import numpy as np

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


def _reach(words):
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
    most_hits = min(last, max(_reach(words[:last]), needed + 800))
    most_missed = min(len(words) - first, _reach(words[first:])) + 1
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

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How well an attacker can rebuild which words a person used, under local privacy."""

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from skdp.inspection._poisson_binomial import best_prediction
from skdp.inspection._public_numbers import check_epsilon, check_number, log_odds_bound
from skdp.inspection._reconstruction_report import show


@dataclass(frozen=True)
class DictionaryRisk:
    """Success of attackers who rebuild which words a person used.

    Parameters
    ----------
    epsilon, n_words, n_items, precision, recall : float, int, int, float, float
        What was asked.
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
    epsilon = check_epsilon(epsilon)
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

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exact probabilities of guessing the words of a person, against enumeration and theorems."""

import itertools
import math

import numpy as np
import pytest

from skdp.inspection import dictionary_risk
from skdp.inspection._dictionary_risk import best_prediction, joint_probabilities, log_chernoff


def zipf(n_words, n_items):
    return np.minimum(n_items / np.arange(1.0, n_words + 1), 1.0)


@pytest.mark.parametrize(
    ("n_words", "n_items", "size", "precise", "recalled", "both"),
    [(2000, 20, 120, 0.176, 1.0, 0.176), (2000, 50, 500, 9.8e-22, 1.0, 9.8e-22),
     (25_000, 100, 600, 0.0177, 1.0, 0.0177), (25_000, 100, 200, 1.0, 5.4e-5, 5.4e-5)],
)  # fmt: skip
def test_printed_values(n_words, n_items, size, precise, recalled, both):
    words, none = zipf(n_words, n_items), 1e-9
    for part, expected in {(0.5, none): precise, (none, 0.3): recalled, (0.5, 0.3): both}.items():
        found = joint_probabilities(words, *part, size, size)[0]
        assert found == pytest.approx(expected, rel=6e-3)


def enumerated(words, precision, recall):
    """Return the largest success over all predictions, and over those of the first words."""
    d, best, first = len(words), 0.0, np.zeros(len(words))
    people = np.array(list(itertools.product([0, 1], repeat=d)))
    weight = np.prod(np.where(people, words, 1 - words), axis=1)
    for guess in people[1:]:
        hits = people @ guess
        success = (hits >= precision * guess.sum() - 1e-9) & (
            hits >= recall * people.sum(axis=1) - 1e-9
        )
        best = max(best, float(weight @ success))
        if np.all(guess[: guess.sum()]):
            first[guess.sum() - 1] = weight @ success
    return best, first


@pytest.mark.covering
@pytest.mark.parametrize(("n_words", "n_items"), [(1, 1), (7, 2), (9, 1), (9, 4), (8, 8)])
@pytest.mark.parametrize(("precision", "recall"), [(0.5, 0.5), (1.0, 0.4), (0.3, 0.9), (1.0, 1.0)])
def test_all_predictions(n_words, n_items, precision, recall):
    words = zipf(n_words, n_items)
    best, first = enumerated(words, precision, recall)
    assert best == pytest.approx(first.max(), rel=1e-12)
    found = joint_probabilities(words, precision, recall, 1, n_words)
    assert found == pytest.approx(first, rel=1e-12, abs=1e-300)
    size, log_success, exact = best_prediction(words, precision, recall)
    assert exact
    assert math.exp(log_success) == pytest.approx(best, rel=1e-12)
    assert first[size - 1] == pytest.approx(best, rel=1e-12)
    assert np.all(log_chernoff(words, precision, recall) >= np.log(first + 1e-300) - 1e-9)


def test_simulation():
    rng, words, n = np.random.default_rng(0), zipf(150, 6), 100_000
    people = rng.random((n, 150)) < words
    total = people.sum(axis=1)
    for size in (3, 10, 20, 40):
        hits = people[:, :size].sum(axis=1)
        success = np.mean((hits >= 0.5 * size) & (hits >= 0.4 * total))
        exact = joint_probabilities(words, 0.5, 0.4, size, size)[0]
        assert success == pytest.approx(exact, abs=3.5 * math.sqrt(exact * (1 - exact) / n) + 1e-6)


def test_a_range_is_what_its_parts_are():
    words = zipf(900, 12)
    whole = joint_probabilities(words, 0.4, 0.35, 5, 400)
    parts = [joint_probabilities(words, 0.4, 0.35, s, s)[0] for s in (5, 12, 133, 134, 260, 400)]
    assert whole[[0, 7, 128, 129, 255, 395]] == pytest.approx(parts, rel=1e-11)


def lemma(n_items, growth, precision, factor):
    """Return the logarithm of the bound in print on the precision of many words."""
    excess = precision * growth - 1 - math.log(growth)
    square = excess**2 * n_items / (factor * math.log(growth))
    return -min(square, 0.75 * excess * n_items) if excess > 0 else 0.0


@pytest.mark.parametrize("n_items", [20, 100])
def test_the_lemma_holds_with_its_constant_doubled(n_items):
    for growth, way in itertools.product((2, 6, 20, 50, 200), (0.25, 0.5, 1.0, 1.25, 1.5)):
        precision = (1 + (1 + way) * math.log(growth)) / growth
        if precision <= 1:
            size = n_items * growth
            words = zipf(size, n_items)
            exact = joint_probabilities(words, precision, 1e-9, size, size)[0]
            assert math.log(exact + 1e-290) <= lemma(n_items, growth, precision, 4)


def test_the_lemma_is_false_as_printed():
    words, precision = zipf(4000, 20), (1 + 2.25 * math.log(200)) / 200
    exact = joint_probabilities(words, precision, 1e-9, 4000, 4000)[0]
    assert exact == pytest.approx(1.17e-35, rel=1e-2)
    assert math.log(exact) > lemma(20, 200, precision, 2) + 2


def test_the_choice_of_the_proof_says_nothing_above_a_small_precision():
    def exponent(p):
        growth = 2 / p * math.log(1 / p)
        return p * growth - 1 - math.log(growth)

    assert exponent(0.068) > 0 > exponent(0.070)


def test_no_other_size_is_better():
    words = zipf(600, 15)
    every = joint_probabilities(words, 0.5, 0.5, 1, 600)
    size, log_success, exact = best_prediction(words, 0.5, 0.5)
    assert exact
    assert (size, math.exp(log_success)) == (every.argmax() + 1, pytest.approx(every.max()))


def test_where_floats_underflow_there_is_a_bound():
    risk = dictionary_risk(2000.0, 20_000, 4000, precision=0.9, recall=0.9)
    assert not risk.exact
    assert risk.log_prior < -1500
    assert risk.prior == 0.0
    assert -math.inf < risk.log_odds_bound <= 0.0
    assert "success at most" in str(risk)
    # a tenth of the same problem shows how far off the bound is
    words = zipf(2000, 400)
    _, log_success, exact = best_prediction(words, 0.9, 0.9)
    tilts = np.geomspace(0.01, 10.0, 20)
    bound = log_chernoff(words, 0.9, 0.9, [(a, b) for b in tilts for a in tilts]).max()
    assert exact
    assert log_success <= bound <= 0.9 * log_success
    assert log_success <= log_chernoff(words, 0.9, 0.9).max()


def test_monotone():
    risks = [dictionary_risk(e, 500, 20, precision=0.6, recall=0.6) for e in (1e-3, 1, 8, 1e5)]
    assert np.all(np.diff([risk.log_odds_bound for risk in risks]) > 0)
    assert risks[-1].odds_bound == pytest.approx(1.0)
    assert len({risk.log_prior for risk in risks}) == 1
    by_recall = [dictionary_risk(1, 500, 20, precision=0.6, recall=r).prior for r in (0.2, 0.5, 1)]
    assert np.all(np.diff(by_recall) <= 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"epsilon": 0.0}, "epsilon must be a number from 1e-3 to 1e5; got 0.0"),
     ({"n_words": 0}, "n_words must be an integer from 1"), ({"n_words": 10**7}, "n_words must"),
     ({"n_items": 0}, "n_items must be an integer from 1 to n_words=50; got 0"),
     ({"n_items": 51}, "n_items must be"), ({"n_items": 2.5}, "n_items must be an integer"),
     ({"precision": 0.0}, "precision must be a number above 0 and at most 1; got 0.0"),
     ({"recall": 1.1}, "recall must be"), ({"recall": math.nan}, "recall must be")],
)  # fmt: skip
def test_bad_input(change, message):
    public = {"epsilon": 1.0, "n_words": 50, "n_items": 5, "precision": 0.5, "recall": 0.5}
    with pytest.raises(ValueError, match=message):
        dictionary_risk(**(public | change))


@pytest.mark.slow
def test_a_million_words():
    risk = dictionary_risk(8.0, 10**6, 1000, precision=0.8, recall=0.3)
    assert 0 < risk.odds_bound <= 1

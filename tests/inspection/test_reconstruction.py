# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Attacks: reconstruction, dictionaries, the best one."""

import dataclasses
import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skdp.inspection import (
    ReconstructionRisk,
    cosine_for_reconstruction,
    dictionary_risk,
    epsilon_for_reconstruction,
    reconstruction_risk,
)
from skdp.inspection._dictionary_risk import best_prediction, joint_probabilities, log_chernoff
from skdp.local import PrivUnitPrivatizer, optimal_privunit
from skdp.local.randomisers.caps import cap_cosine

# Bounds on the reconstruction of directions, and the attack that comes closest to them.


# success, dimensions: smallest cosine by e^epsilon times the prior, as tabulated
COSINES = {
    10: {1: 0.633, 8: 0.930, 50: 1.000},
    32: {1: 0.365, 8: 0.656, 50: 0.980},
    100: {1: 0.208, 8: 0.400, 50: 0.797, 110: 0.944, 510: 1.000},
    784: {1: 0.075, 8: 0.148, 50: 0.346, 110: 0.494, 510: 0.853, 1010: 0.961},
    3072: {1: 0.038, 8: 0.075, 50: 0.179, 110: 0.262, 510: 0.531, 1010: 0.694},
    10_000: {1: 0.021, 8: 0.042, 50: 0.100, 110: 0.147, 510: 0.311, 1010: 0.427},
}
cells = [(k, eps, c) for k, row in COSINES.items() for eps, c in row.items()]


@pytest.mark.parametrize(("n_dims", "epsilon", "cosine"), cells)
def test_smallest_cosines(n_dims, epsilon, cosine):
    loose = cap_cosine(math.log(0.05) - epsilon, n_dims)
    assert loose == pytest.approx(cosine, abs=6e-4)
    # the bound from odds rules out a little more
    odds = cosine_for_reconstruction(epsilon, n_dims)
    assert loose - 0.006 <= odds <= loose


@pytest.mark.parametrize(
    ("cosine", "n_dims", "epsilon"),
    [(0.5, 100, 12.2), (0.5, 784, 111.6), (0.5, 10_000, 1438.5), (0.9, 10, 4.8),
     (0.9, 100, 80.7), (0.9, 784, 649.7), (0.9, 10_000, 8303.6)],
)  # fmt: skip
def test_largest_epsilons(cosine, n_dims, epsilon):
    assert epsilon_for_reconstruction(0.01, n_dims, cosine=cosine) == pytest.approx(
        epsilon, abs=0.06
    )


def test_a_guess_may_be_too_good_already():
    with pytest.raises(ValueError, match=r"success must be at least 0\.0587.*got 0\.01"):
        epsilon_for_reconstruction(0.01, 10, cosine=0.5)


@pytest.mark.parametrize(
    ("n_dims", "epsilon", "cosine", "privunit", "product", "odds", "paper"),
    [(50, 5.0, 0.3, 0.4055, 1.0, 0.71, 1.0), (200, 8.0, 0.3, 0.0022, 0.0226, 0.0221, 0.0295),
     (200, 20.0, 0.3, 0.970, 1.0, 1.0, 1.0), (10, 2.0, 0.5, 0.176, 0.433, 0.315, None)],
)  # fmt: skip
def test_examples(n_dims, epsilon, cosine, privunit, product, odds, paper):
    risk = reconstruction_risk(epsilon, n_dims, cosine=cosine, mechanism="privunit")
    assert risk.privunit[0] == pytest.approx(privunit, rel=3e-3)
    assert risk.product_bound[0] == pytest.approx(product, rel=3e-3)
    assert risk.odds_bound[0] == pytest.approx(odds, rel=3e-3)
    if paper is not None:
        assert risk.paper_bound[0] == pytest.approx(paper, rel=3e-3)


@pytest.mark.parametrize(
    ("n_dims", "epsilon"), [(2, 1e-3), (3, 5.0), (10, 40.0), (200, 8.0), (784, 510.0)]
)
def test_against_forty_digits(n_dims, epsilon):
    with mpmath.workdps(40):
        half = mpmath.mpf(1) / 2

        def cap(c):
            x = 1 - mpmath.mpf(c) ** 2
            return mpmath.betainc((n_dims - 1) * half, half, 0, x, regularized=True) / 2

        channel = optimal_privunit(epsilon, n_dims)
        p, q, grow = mpmath.mpf(channel.p), cap(channel.cosine), mpmath.exp(epsilon)
        risk = reconstruction_risk(epsilon, n_dims, cosine=[0.02, 0.3, 0.95], mechanism="privunit")
        for i, c in enumerate(risk.cosine):
            P = cap(c)
            odds = grow * P / (1 + (grow - 1) * P)
            success = p / q * min(P, q) + (1 - p) / (1 - q) * max(P - q, 0)
            assert risk.log_odds_bound[i] == pytest.approx(float(mpmath.log(odds)), rel=1e-12)
            assert risk.log_privunit[i] == pytest.approx(float(mpmath.log(success)), rel=1e-12)


epsilons = st.floats(-3.0, 5.0).map(lambda e: min(max(10.0**e, 1e-3), 1e5))
dims = st.one_of(st.integers(2, 10**7), st.integers(2, 40))
ratios = st.one_of(st.floats(0.0, 1e6), st.just(math.inf))


@pytest.mark.full
@example(1.0, 4, [1.0], math.inf)
@given(epsilons, dims, st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5), ratios)
def test_bounds_are_in_order_and_probabilities(epsilon, n_dims, cosines, ratio):
    risk = reconstruction_risk(
        epsilon, n_dims, cosine=cosines, prior_log_ratio=ratio, mechanism="privunit"
    )
    slack = 1e-10 * (1 + np.abs(risk.log_odds_bound).clip(max=1e300))
    for name in ("log_prior", "log_odds_bound", "log_product_bound", "log_paper_bound"):
        assert np.all(np.array(getattr(risk, name)) <= 0.0)
    assert np.all(risk.log_privunit <= risk.log_odds_bound + slack)
    assert np.all(risk.log_prior <= risk.log_odds_bound + slack)
    assert np.all(risk.log_odds_bound <= risk.log_product_bound + slack)
    assert np.all(risk.log_product_bound <= np.array(risk.log_paper_bound) + slack)
    assert len(str(risk).splitlines()) >= len(cosines) + 3


@pytest.mark.full
@given(epsilons, dims, st.floats(0.01, 0.99), st.floats(1e-12, 0.999), st.floats(0.0, 100.0))
def test_inverses(epsilon, n_dims, cosine, success, ratio):
    least = cosine_for_reconstruction(epsilon, n_dims, success=success, prior_log_ratio=ratio)
    assert 0.0 <= least <= 1.0
    risk = reconstruction_risk(epsilon, n_dims, cosine=least, prior_log_ratio=ratio)
    near = 1 + 1e-9 * (n_dims + epsilon + ratio)
    if 0.0 < least < 1 - 1e-7:
        assert risk.odds_bound[0] == pytest.approx(success, rel=near - 1)
    prior = reconstruction_risk(epsilon, n_dims, cosine=cosine, prior_log_ratio=ratio)
    if prior.prior[0] < success:
        most = epsilon_for_reconstruction(success, n_dims, cosine=cosine, prior_log_ratio=ratio)
        if 1e-3 <= most <= 1e5:
            risk = reconstruction_risk(most, n_dims, cosine=cosine, prior_log_ratio=ratio)
            assert risk.odds_bound[0] == pytest.approx(success, rel=near - 1)


def test_monotone():
    budgets = np.geomspace(1e-3, 1e5, 25)
    by_epsilon = [reconstruction_risk(e, 300, mechanism="privunit") for e in budgets]
    for name in ("log_odds_bound", "log_product_bound", "log_paper_bound"):
        assert np.all(np.diff([getattr(r, name) for r in by_epsilon], axis=0) >= -1e-12)
        assert np.all(np.diff([getattr(r, name) for r in by_epsilon], axis=1) <= 1e-12)
    for risk in by_epsilon:
        assert np.all(np.diff(risk.log_privunit) <= 1e-12)
    # the mean cosine grows with the budget
    assert np.all(np.diff([r.mean_cosine for r in by_epsilon]) >= 0)
    by_dims = [reconstruction_risk(5.0, d).log_odds_bound for d in (2, 3, 4, 9, 99, 10**4, 10**7)]
    assert np.all(np.diff(by_dims, axis=0) <= 1e-12)
    by_ratio = [reconstruction_risk(5.0, 99, prior_log_ratio=r).log_odds_bound
                for r in (0, 1, 5, 10, math.inf)]  # fmt: skip
    assert np.all(np.diff(by_ratio, axis=0) >= 0)


def test_ends():
    risk = reconstruction_risk(1e5, 10**7, cosine=[0, 0.5, 1], mechanism="privunit")
    assert risk.log_odds_bound[0] == pytest.approx(0.0)
    assert risk.log_odds_bound[1] < -1e6
    assert risk.log_odds_bound[2] == risk.log_privunit[2] == -math.inf
    assert risk.odds_bound[1] == 0.0
    known = reconstruction_risk(1e-3, 2, cosine=[0, 1], prior_log_ratio=math.inf)
    assert known.odds_bound.tolist() == [1.0, 1.0]
    assert "any prior" in str(known)
    assert epsilon_for_reconstruction(0.3, 5, cosine=1.0) == math.inf
    assert epsilon_for_reconstruction(1.0, 5, cosine=0.1) == math.inf
    assert cosine_for_reconstruction(1.0, 5, success=1.0) == 0.0
    assert cosine_for_reconstruction(1.0, 5, prior_log_ratio=math.inf) == 1.0
    assert cosine_for_reconstruction(1e5, 2) == 1.0
    assert cosine_for_reconstruction(0.001, 5, success=0.9) == 0.0


def test_kinds_of_cosines():
    expected = reconstruction_risk(2.0, 9, cosine=(0.25, 0.5))
    for given_ in ([0.25, 0.5], np.array([0.25, 0.5]), np.array([0.25, 0.5], dtype=np.float32)):
        assert reconstruction_risk(2.0, 9, cosine=given_) == expected
    assert reconstruction_risk(np.float64(2.0), np.int64(9), cosine=np.float32(0.25)).cosine == (
        0.25,
    )
    assert expected.distance == pytest.approx(np.sqrt(2 - 2 * np.array([0.25, 0.5])))
    with pytest.raises(dataclasses.FrozenInstanceError):
        expected.epsilon = 1.0
    assert isinstance(expected, ReconstructionRisk)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"epsilon": 0}, "epsilon must be a number from 1e-3 to 1e5; got 0"),
     ({"epsilon": math.nan}, "epsilon must be"), ({"epsilon": math.inf}, "epsilon must be"),
     ({"epsilon": "1"}, "epsilon must be"), ({"epsilon": True}, "epsilon must be"),
     ({"n_dims": 1}, "n_dims must be an integer from 2 to 10000000; got 1"),
     ({"n_dims": 10**8}, "n_dims must be"), ({"n_dims": 3.0}, "n_dims must be an integer"),
     ({"cosine": -0.1}, "cosine must be a number from 0 to 1; got -0.1"),
     ({"cosine": [0.5, 1.01]}, "cosine must be"), ({"cosine": math.nan}, "cosine must be"),
     ({"cosine": []}, "cosine must have at least one"), ({"cosine": "half"}, "cosine must be"),
     ({"prior_log_ratio": -1.0}, "prior_log_ratio must be a number from 0 to infinity; got -1"),
     ({"prior_log_ratio": math.nan}, "prior_log_ratio must be"),
     ({"mechanism": "laplace"}, "mechanism must be one of .*privunit.*; got 'laplace'"),
     ({"target_dims": 11}, "target_dims must be an integer from 2 to 10; got 11"),
     ({"target_dims": 1}, "target_dims must be")],
)  # fmt: skip
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        reconstruction_risk(**({"epsilon": 1.0, "n_dims": 10} | change))


@pytest.mark.parametrize("success", [0.0, -1.0, 1.5, math.nan, None])
def test_bad_success(success):
    with pytest.raises(ValueError, match="success must be a number above 0 and at most 1"):
        epsilon_for_reconstruction(success, 10, cosine=0.5)
    with pytest.raises(ValueError, match="success must be a number above 0 and at most 1"):
        cosine_for_reconstruction(1.0, 10, success=success)


def test_tiny_probabilities_are_shown():
    logs = -math.inf, 0.0, -1e6, math.log(9.99e-7)
    risk = ReconstructionRisk(1.0, 2, 2, 0.0, (0.5,) * 4, *(logs,) * 4)
    shown = [line.split()[1:] for line in str(risk).splitlines()[-4:]]
    assert shown == [[text] * 4 for text in ("0", "1", "3.3e-434295", "1.0e-06")]


def test_table_and_picture():
    risk = reconstruction_risk(8.0, 200, mechanism="privunit")
    frame = risk.to_frame()
    assert frame.shape == (9, 7)
    assert frame["odds_bound"].tolist() == risk.odds_bound.tolist()
    assert "privunit" not in reconstruction_risk(8.0, 200).to_frame()
    assert reconstruction_risk(8.0, 200).privunit is None
    import matplotlib.pyplot as plt

    ax = risk.plot()
    assert len(ax.lines) == 4
    assert reconstruction_risk(8.0, 200, cosine=0.3).plot(ax) is ax
    assert len(ax.lines) == 7
    plt.close(ax.figure)


# Exact probabilities of guessing the words of a person, against enumeration and theorems.


def zipf(n_words, n_items):
    return np.minimum(n_items / np.arange(1.0, n_words + 1), 1.0)


@pytest.mark.sample(1)
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


@pytest.mark.full
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


@pytest.mark.sample(1)
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


@pytest.mark.full
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


def test_dictionary_risk_is_monotone():
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
def test_bad_input_of_dictionary_risk(change, message):
    public = {"epsilon": 1.0, "n_words": 50, "n_items": 5, "precision": 0.5, "recall": 0.5}
    with pytest.raises(ValueError, match=message):
        dictionary_risk(**(public | change))


@pytest.mark.slow
def test_a_million_words():
    risk = dictionary_risk(8.0, 10**6, 1000, precision=0.8, recall=0.3)
    assert 0 < risk.odds_bound <= 1


# The best attack on PrivUnit, in simulation and where it attains the bound.


def privunit_reports(vectors, epsilon):
    """Return directions of the reports of unit vectors, as the privatizer makes them."""
    privatizer = PrivUnitPrivatizer(epsilon, magnitude="unit")
    reports = privatizer.fit(vectors).transform(vectors)
    return reports / np.linalg.norm(reports, axis=1, keepdims=True)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("n_dims", "epsilon"), [(2, 1.0), (3, 4.0), (10, 2.0), (50, 5.0)])
def test_the_best_attack_on_privunit_in_simulation(n_dims, epsilon):
    rng, n = np.random.default_rng(n_dims), 20_000
    truth = rng.standard_normal((n, n_dims))
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    channel = optimal_privunit(epsilon, n_dims)
    reports = privunit_reports(truth, epsilon)
    cosine = np.sum(truth * reports, axis=1)
    assert cosine.mean() == pytest.approx(channel.scale, abs=5 * cosine.std() / math.sqrt(n))
    risk = reconstruction_risk(epsilon, n_dims, mechanism="privunit")
    for c, success, odds in zip(risk.cosine, risk.privunit, risk.odds_bound, strict=True):
        error = 5 * math.sqrt(success * (1 - success) / n) + 1e-9
        assert np.mean(cosine >= c) == pytest.approx(success, abs=error)
        assert np.mean(cosine >= c) <= odds + error
    # another guess does worse
    off = reports + 0.5 * rng.standard_normal((n, n_dims)) / math.sqrt(n_dims)
    off /= np.linalg.norm(off, axis=1, keepdims=True)
    assert np.all(
        np.mean(np.sum(truth * off, axis=1) >= np.array(risk.cosine)[:, None], axis=1)
        <= risk.privunit + 5 * np.sqrt(risk.privunit * (1 - risk.privunit) / n) + 1e-9
    )


def test_an_image_has_at_most_the_stated_success():
    rng, n, d, k = np.random.default_rng(0), 20_000, 30, 4
    truth = rng.standard_normal((n, d))
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    reports = privunit_reports(truth, 4.0)
    a, b = truth[:, :k], reports[:, :k]
    cosine = np.sum(a * b, axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    risk = reconstruction_risk(4.0, d, target_dims=k, mechanism="privunit")
    assert np.all(np.mean(cosine >= np.array(risk.cosine)[:, None], axis=1) <= risk.privunit)
    assert risk.prior == pytest.approx(reconstruction_risk(4.0, k).prior)
    assert "image of 4" in str(risk)
    assert "upper bound" in str(risk)


@pytest.mark.parametrize("n_dims", [2, 7, 50])
def test_the_bound_from_odds_is_attained(n_dims):
    """By PrivUnit, for the cosine of its own cap; so it cannot be improved."""
    channel = optimal_privunit(3.0, n_dims)
    risk = reconstruction_risk(3.0, n_dims, cosine=channel.cosine, mechanism="privunit")
    assert risk.privunit[0] == pytest.approx(channel.p, rel=1e-9)
    assert risk.odds_bound[0] == pytest.approx(channel.p, rel=1e-9)

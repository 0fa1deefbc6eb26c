# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Amplification by shuffling, against enumeration, and never rounded inward."""

import inspect
import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.local import shuffled_epsilon
from skdp.privacy.laws import local_reports as _shuffling
from skdp.privacy.laws.local_reports import _hidden_delta, shuffled_curve

mp = mpmath.mp.clone()
mp.dps = 40
FRACTIONS = [0.0, 0.1, 0.3, 0.6, 0.9, 0.999]


def add_up(laws):
    """Return the law of how often each value is reported, for independent laws of reports."""
    counts = {(0,) * len(laws[0]): 1.0}
    for law in laws:
        new = {}
        for state, weight in counts.items():
            for value, chance in enumerate(law):
                key = (*state[:value], state[value] + 1, *state[value + 1 :])
                new[key] = new.get(key, 0.0) + weight * chance
        counts = new
    return counts


def hockey_stick(P, Q, at):
    return sum(max(p - math.exp(at) * Q.get(key, 0.0), 0.0) for key, p in P.items())


def shuffled_delta(first, second, others, at):
    """Return the exact delta of shuffled reports, one of which has one of two laws."""
    P, Q = add_up([first, *others]), add_up([second, *others])
    return max(hockey_stick(P, Q, at), hockey_stick(Q, P, at))


def pair_delta(epsilon, n_reports, at, rate=None, victim=True):
    """Return the delta of the dominating pair by its definition, with 40 digits."""
    epsilon, at = mp.mpf(epsilon), mp.mpf(at)
    honest = 1 / (1 + mp.exp(-epsilon))
    rate = 2 / (mp.exp(epsilon) + 1) if rate is None else mp.mpf(rate)
    total = mp.mpf(0)
    for c in range(n_reports):
        chance = mp.binomial(n_reports - 1, c) * rate**c * (1 - rate) ** (n_reports - 1 - c)
        for k in range(c + 2):
            ones = honest * mp.binomial(c, k - 1) if k else mp.mpf(0)
            zeros = (1 - honest) * mp.binomial(c, k)
            mirrored = (1 - honest) * (mp.binomial(c, k - 1) if k else 0)
            mirrored += honest * mp.binomial(c, k)
            total += chance * max(ones + zeros - mp.exp(at) * mirrored, 0) / mp.mpf(2) ** c
    return total


@pytest.mark.covering
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 6.0, 30.0])
@pytest.mark.parametrize("n_reports", [1, 2, 3, 7, 25])
def test_the_curve_is_that_of_the_pair(epsilon, n_reports):
    curve = shuffled_curve(epsilon, n_reports, 1e-12)
    for fraction in FRACTIONS:
        exact = float(pair_delta(epsilon, n_reports, fraction * epsilon))
        assert exact <= curve(fraction * epsilon) <= exact * (1 + 1e-8) + 1e-14


def random_laws(rng, n_laws, n_values):
    """Return laws with all ratios in a range, and the epsilon that they have together."""
    laws = rng.dirichlet(np.ones(n_values)) * np.exp(
        rng.integers(0, 2, (n_laws, n_values)) * rng.uniform(0.1, 4)
    )
    laws /= laws.sum(axis=1, keepdims=True)
    return laws, float(np.log(laws.max(axis=0) / laws.min(axis=0)).max())


@pytest.mark.parametrize("seed", range(40))
def test_no_randomiser_is_worse(seed):
    """Any laws of the others, all different, and any two of the row."""
    rng = np.random.default_rng(seed)
    laws, epsilon = random_laws(rng, int(rng.integers(2, 6)), int(rng.integers(2, 5)))
    curve = shuffled_curve(epsilon, len(laws) - 1, 1e-9)
    for fraction in FRACTIONS:
        at = fraction * epsilon
        exact = shuffled_delta(laws[0], laws[1], list(laws[2:]), at)
        assert exact <= curve(at) * (1 + 1e-12) + 1e-15


def with_blanks(epsilon, blank):
    """Return the laws of a randomiser that says nothing with a chance, and what the others do.

    Nobody else is blank more often than he must be, and else reports what the row hardly ever
    does: the blanks betray as much as they can.
    """
    e = math.exp(epsilon)
    # the row's chance of the other value, such that the budget is kept
    rest = (1 - blank - (1 - blank / e) / e) / (e + 1 - 2 / e)
    row = [e * rest, rest, blank]
    other = [rest, rest, blank / e]
    left = 1 - sum(other)
    return [*row, left / e], [row[1], row[0], blank, left / e], [*other, left]


@pytest.mark.covering
@pytest.mark.parametrize("blank", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("epsilon", [1.0, 3.0, 5.0])
def test_blank_reports_do_not_help_the_adversary(blank, epsilon):
    first, second, other = with_blanks(epsilon, blank)
    assert sum(first) == pytest.approx(1.0)
    for n_reports in (2, 5, 12):
        curve = shuffled_curve(epsilon, n_reports, 1e-9)
        for fraction in FRACTIONS:
            at = fraction * epsilon
            exact = shuffled_delta(first, second, [other] * (n_reports - 1), at)
            assert exact <= curve(at) * (1 + 1e-12) + 1e-15
            if not blank and epsilon == 5.0 and fraction < 0.7:
                assert exact >= 0.9 * curve(at)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_binary_randomised_response_comes_close(epsilon):
    p = 1 / (1 + math.exp(-epsilon))
    first, second = [p, 1 - p], [1 - p, p]
    for n_reports in (2, 10, 60):
        others = [first, second] * n_reports
        exact = shuffled_delta(first, second, others[: n_reports - 1], 0.1)
        bound = shuffled_curve(epsilon, n_reports, 1e-9)(0.1)
        assert 0.6 * bound <= exact <= bound


def test_drawn_pair_attains_the_curve():
    rng = np.random.default_rng(0)
    epsilon, n_reports, at, draws = 2.0, 200, 0.3, 10**6
    hiding = rng.binomial(n_reports - 1, 2 / (math.exp(epsilon) + 1), draws)
    ones = rng.binomial(hiding, 0.5) + (rng.uniform(size=draws) < 1 / (1 + math.exp(-epsilon)))
    zeros = hiding + 1 - ones
    e = math.exp(epsilon)
    # the odds of the pair, given how many answers there are
    odds = (e * ones + zeros) / (ones + e * zeros)
    excess = np.maximum(1 - math.exp(at) / odds, 0)
    curve = shuffled_curve(epsilon, n_reports, 1e-9)(at)
    assert excess.mean() == pytest.approx(curve, abs=4 * excess.std() / math.sqrt(draws))


@pytest.mark.parametrize(
    ("epsilon", "n_reports", "expected"),
    [(4.0, 10**5, 0.1182), (2.0, 10**4, 0.1144), (8.0, 10**5, 1.1766), (8.0, 10**6, 0.3037),
     (6.0, 10**5, 0.3570), (1.0, 10**6, 0.0035)],
)  # fmt: skip
def test_anchors(epsilon, n_reports, expected):
    assert shuffled_epsilon(epsilon, n_reports, 1e-6) == pytest.approx(expected, abs=6e-5)


@pytest.mark.covering
@pytest.mark.parametrize("n_reports", [10**4, 10**5, 10**6, 10**8])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_closed_formulas_lie_above(epsilon, n_reports):
    e, delta = math.exp(epsilon), 1e-6
    newer = math.log1p(
        (e - 1) * (4 * math.sqrt(2 * math.log(4 / delta) / ((e + 1) * n_reports)) + 4 / n_reports)
    )
    x = 8 * math.sqrt(e * math.log(4 / delta) / n_reports) + 8 * e / n_reports
    older = math.log1p((1 - 1 / e) / (1 + 1 / (e * (1 + x))) * x)
    assert 2.0 * shuffled_epsilon(epsilon, n_reports, delta) < newer < older


def exact_tail(heads, coins):
    """Return the probability of at least so many heads, more than half, by continued fraction."""
    a, b, x = mp.mpf(heads), mp.mpf(coins - heads + 1), mp.mpf(1) / 2
    c, d = mp.mpf(1), 1 / (1 - (a + b) * x / (a + 1))
    total, m = d, 1
    while True:
        before = total
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / (1 + term * d), 1 + term / c
            total *= c * d
        if abs(total / before - 1) < mp.mpf(10) ** -33:
            break
        m += 1
    log_beta = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
    return mp.exp((a + b) * mp.log(x) - log_beta) * total / a


@pytest.mark.parametrize(
    ("coins", "far"),
    [(10**2, 2.0), (10**2, 5.0)]
    + [(coins, far) for coins in (10**4, 10**6, 10**8, 10**9) for far in (2.0, 5.0, 12.0)],
)
def test_sums_of_tails_are_rounded_up_by_little(coins, far):
    """Where two tails cancel, against 40 digits."""
    epsilon = 1.0
    e = mp.exp(epsilon)
    heads = int(coins / 2 + far * math.sqrt(coins) / 2) + 1
    # the number at which the likelihood ratio is that of half a head less
    k = mp.mpf(heads) - mp.mpf(1) / 2
    at = mp.log((e * k + coins + 1 - k) / (k + e * (coins + 1 - k)))
    at = float(at)
    gain, loss = (e - mp.exp(at)) / (e + 1), (mp.exp(at) * e - 1) / (e + 1)
    exact = gain * exact_tail(heads - 1, coins) - loss * exact_tail(heads, coins)
    ratio = float(_hidden_delta(at, epsilon, np.array([float(coins)]))[0] / exact)
    assert 1.0 <= ratio < 1.0 + 1e-11 * coins / far


def test_the_margin_of_a_tail_exceeds_its_error():
    for coins in (10**3, 10**5, 10**7, 10**9):
        for far in (0.5, 3.0, 8.0, 20.0):
            heads = int(coins / 2 + far * math.sqrt(coins) / 2) + 1
            found = _shuffling._coins(np.array([float(heads)]), np.array([float(coins)]))[0]
            error = abs(float(found / exact_tail(heads, coins)) - 1.0)
            assert 4 * error < 1e-13 + 3e-14 * math.sqrt(coins)


@pytest.mark.full
@given(
    epsilon=st.floats(1e-3, 12.0), n_reports=st.integers(1, 10**7), exponent=st.integers(-12, -1)
)
@settings(max_examples=60, deadline=None)
def test_monotone_and_never_above_the_report(epsilon, n_reports, exponent):
    value = shuffled_epsilon(epsilon, n_reports, 10.0**exponent)
    assert 0.0 <= value <= epsilon
    slack = 1 + 1e-4
    assert shuffled_epsilon(epsilon, 2 * n_reports, 10.0**exponent) <= value * slack
    assert shuffled_epsilon(epsilon, n_reports, 10.0 ** (exponent - 1)) * slack >= value
    assert shuffled_epsilon(epsilon * 1.1, n_reports, 10.0**exponent) * slack >= value


def test_extreme_numbers():
    assert shuffled_epsilon(3.0, 10**6, 0.0) == 3.0
    # a report alone: the best conversion of pure privacy
    alone = shuffled_epsilon(3.0, 1, 0.01)
    exact = 3.0 + math.log1p(-0.01 * (1 + math.exp(-3.0)))
    assert exact <= alone <= exact * (1 + 1e-8)
    assert shuffled_epsilon(0.01, 10, 0.1) == 0.0
    assert shuffled_epsilon(50.0, 10**5, 1e-6) == pytest.approx(50.0, abs=1e-5)
    assert shuffled_epsilon(1e6, 10**9, 0.5) == pytest.approx(1e6, abs=1.0)
    assert shuffled_epsilon(1.0, 100, 1e-250) <= 1.0
    assert shuffled_epsilon(1.0, 100, 5e-324) == 1.0
    assert shuffled_epsilon(1e-12, 100, 1e-3) == 0.0
    assert shuffled_epsilon(1.0, 10**30, 1e-6) == shuffled_epsilon(1.0, 10**9, 1e-6)
    assert shuffled_epsilon(np.float32(1.0), np.int64(100), 1e-6) <= 1.0


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ((0.0, 10, 1e-6), "epsilon"), ((-1.0, 10, 1e-6), "epsilon"), ((math.nan, 10, 0), "epsilon"),
        ((math.inf, 10, 1e-6), "epsilon"), (("1", 10, 1e-6), "epsilon"),
        ((1.0, 0, 1e-6), "n_reports"), ((1.0, 2.5, 1e-6), "n_reports"),
        ((1.0, True, 1e-6), "n_reports"), ((1.0, math.nan, 1e-6), "n_reports"),
        ((1.0, 10, 1.0), "delta"), ((1.0, 10, -1e-9), "delta"), ((1.0, 10, math.nan), "delta"),
    ],
)  # fmt: skip
def test_bad_input(given, name):
    with pytest.raises(ValueError, match=name):
        shuffled_epsilon(*given)


def mutant(old, new):
    source = inspect.getsource(_shuffling)
    assert source.count(old) == 1
    space = {"__name__": "mutant"}
    exec(compile(source.replace(old, new), "mutant", "exec"), space)
    return space


def test_the_older_rate_is_seen_to_be_loose():
    older = mutant("rate = 2.0 *", "rate = (1.0 + math.exp(-epsilon)) *")
    assert older["shuffled_epsilon"](4.0, 10**5, 1e-6) == pytest.approx(0.1698, abs=6e-5)
    assert older["shuffled_epsilon"](2.0, 10**4, 1e-6) == pytest.approx(0.155, abs=6e-4)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # the row counted among those who hide it; too many who hide; the report left out
        ("_MOST_REPORTS) - 1)", "_MOST_REPORTS))"),
        ("rate = 2.0 *", "rate = 2.2 *"),
        ("heads = hiding + 1.0", "heads = hiding + 2.0"),
        ("gain * _coins(heads - 1.0", "gain * _coins(heads"),
        ("np.maximum(np.ceil(", "np.maximum(np.ceil(-3.0 + "),
    ],
)
def test_mutants_fall_below_the_exact_curve(old, new):
    bad = mutant(old, new)["shuffled_curve"]
    grid = list(itertools.product([0.5, 2.0], [2, 3, 12], FRACTIONS))
    exact = {case: float(pair_delta(case[0], case[1], case[2] * case[0])) for case in grid}
    good = [shuffled_curve(e, n, 1e-12)(f * e) >= exact[e, n, f] for e, n, f in grid]
    assert all(good)
    assert any(bad(e, n, 1e-12)(f * e) < exact[e, n, f] * (1 - 1e-6) for e, n, f in grid)

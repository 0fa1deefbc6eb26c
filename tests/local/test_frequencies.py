# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Frequencies from reports: the exact law of a report, errors, intervals."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from skdp import LocalDPFrequencies
from skdp.audit import trace_privacy
from skdp.exceptions import PrivacyWarning
from skdp.local.randomisers.subsets import CategorySubsets, best_subsets
from skdp.privacy.kernel.samplers import make_bits

TREE = ["oak", "ash", "elm", "fir"]
RANDOMISERS = [
    best_subsets(1.0, (5,)),
    best_subsets(0.3, (2,)),
    best_subsets(3.0, (3, 4)),
    CategorySubsets((3, 4), (1, 2), (0.6, 0.7), 2),
]


def vectors_of(randomiser):
    """Return all rows: one category of each feature, or none."""
    places = itertools.product(*(range(-1, k) for k in randomiser.sizes))
    return [
        np.concatenate(
            [np.arange(k) == place for k, place in zip(randomiser.sizes, own, strict=True)]
        ).astype(float)
        for own in places
    ]


def law_of(randomiser, vector):
    """Return the probabilities of all reports of a row, from the definition."""
    features = range(len(randomiser.sizes))
    law = {}
    choices = list(itertools.combinations(features, randomiser.asked))
    for asked in choices:
        parts = []
        for j in features:
            k, w, p = randomiser.sizes[j], randomiser.widths[j], randomiser.chances[j]
            own = np.flatnonzero(vector[randomiser.columns[j]])
            if j not in asked:
                parts.append([((0,) * k, 1.0)])
                continue
            table = []
            for named in itertools.combinations(range(k), w):
                chance = 1 / math.comb(k, w)
                if len(own) and own[0] in named:
                    chance = p / math.comb(k - 1, w - 1)
                elif len(own):
                    chance = (1 - p) / math.comb(k - 1, w)
                table.append((tuple(int(i in named) for i in range(k)), chance))
            parts.append(table)
        for combined in itertools.product(*parts):
            report = sum((one for one, _ in combined), ())
            chance = math.prod(c for _, c in combined) / len(choices)
            law[report] = law.get(report, 0.0) + chance
    return law


@pytest.mark.parametrize("randomiser", RANDOMISERS)
def test_no_report_is_likelier_than_the_budget_allows(randomiser):
    laws = [law_of(randomiser, vector) for vector in vectors_of(randomiser)]
    assert all(math.isclose(sum(law.values()), 1.0) for law in laws)
    table = np.log([[law[report] for report in sorted(laws[0])] for law in laws])
    worst = (table.max(axis=0) - table.min(axis=0)).max()
    assert worst <= randomiser.epsilon <= worst * (1 + 1e-9)


@pytest.mark.parametrize("randomiser", RANDOMISERS)
def test_the_stated_law_is_the_law(randomiser):
    vectors = vectors_of(randomiser)
    reports = np.array(sorted(law_of(randomiser, vectors[0])), dtype=float)
    for first, second in itertools.pairwise(vectors):
        own, other = (law_of(randomiser, vector) for vector in (first, second))
        expected = [math.log(own[tuple(r)] / other[tuple(r)]) for r in reports.astype(int)]
        np.testing.assert_allclose(
            randomiser.log_ratio(reports, first, second), expected, atol=1e-12
        )


@pytest.mark.parametrize("randomiser", RANDOMISERS)
def test_draws_have_the_law(randomiser):
    for vector in vectors_of(randomiser)[-2:]:
        made = randomiser.report(np.tile(vector, (3000, 1)), make_bits(None, ""))
        law = law_of(randomiser, vector)
        found = dict.fromkeys(law, 0)
        for report in made.astype(int).tolist():
            found[tuple(report)] += 1
        expected = [3000 * law[report] for report in found]
        assert chisquare(list(found.values()), expected).pvalue > 1e-6


def test_the_best_number_of_names_is_the_best():
    for epsilon, k in ((0.2, 9), (1.0, 30), (2.5, 40), (6.0, 12)):
        best, errors = best_subsets(epsilon, (k,)), []
        for w in range(1, k // 2 + 1):
            p = 1 / (1 + (k - w) / w * math.exp(-epsilon))
            errors.append(CategorySubsets((k,), (w,), (p,), 1).squared_errors()[0])
        assert best.squared_errors()[0] <= min(errors) * (1 + 1e-6)
        # optimised unary encoding (Wang et al. 2017), which names each category on its own
        unary = k * 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2
        assert best.squared_errors()[0] < unary
    assert best_subsets(1.0, (4,) * 3).asked == 1
    assert best_subsets(30.0, (4,) * 3).asked == 3


@pytest.mark.parametrize(
    ("epsilon", "categories", "n_features"), [(1.0, range(6), 1), (4.0, range(3), 2)]
)
def test_frequencies_have_the_error_that_was_expected(epsilon, categories, n_features):
    rng = np.random.default_rng(0)
    X = rng.choice(categories, p=rng.dirichlet(np.ones(len(categories))), size=(500, n_features))
    true = [np.bincount(X[:, j], minlength=len(categories)) / len(X) for j in range(n_features)]
    squares, sums = [], 0.0
    model = LocalDPFrequencies(epsilon, categories=categories, positive=False)
    for _ in range(60):
        model.fit(X)
        off = np.concatenate(model.frequencies_) - np.concatenate(true)
        squares.append(off @ off)
        sums = sums + off
    expected = model.expected_error(500, n_features) ** 2
    # the mean of 60: standard error of a sixth at most, and of the bias of a seventh
    assert 0.5 * expected < np.mean(squares) < 1.6 * expected
    assert np.linalg.norm(sums / 60) < 5 * math.sqrt(expected / 60)


@pytest.mark.full
def test_intervals_hold_their_level():
    rng, true, missed = np.random.default_rng(0), np.array([0.7, 0.2, 0.06, 0.04]), 0
    for _ in range(200):
        X = rng.choice(TREE, p=true, size=(300, 1))
        model = LocalDPFrequencies(1.5, categories=TREE).fit(X)
        (lower,), (upper,) = model.confidence_interval(0.9)
        missed += np.sum((true < lower) | (true > upper))
    # 800 intervals, four of which are of one fit and not independent
    assert 30 < missed < 130


def test_frequencies_are_brought_to_the_simplex():
    X = np.array(TREE)[[0] * 30 + [1] * 5][:, None]
    model = LocalDPFrequencies(0.2, categories=TREE).fit(X)
    (own,) = model.frequencies_
    assert own.min() >= 0
    assert math.isclose(own.sum(), 1.0)
    raw = model.randomiser_.estimates(model.counts_)[0][0]
    assert raw.min() < 0
    # no other point of the simplex is nearer
    for corner in np.eye(4):
        assert (raw - own) @ (corner - own) <= 1e-12


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
def test_a_client_is_not_told_that_one_row_says_nothing(recwarn):
    LocalDPFrequencies(2.0).fit([[1]])
    assert not recwarn
    with pytest.warns(PrivacyWarning, match="gives almost no privacy"):
        LocalDPFrequencies(50.0).fit([[1]])


def test_tables_of_text_and_numbers():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"tree": ["oak"] * 300, "age": [30] * 300})
    model = LocalDPFrequencies(12.0, categories=[TREE, [10, 20, 30]]).fit(frame)
    assert list(model.feature_names_in_) == ["tree", "age"]
    assert model.frequencies_[0][0] > 0.9
    assert model.frequencies_[1][2] > 0.9
    # what is in no list is drawn at random
    model = LocalDPFrequencies(12.0, categories=TREE).fit(np.full((4000, 1), "yew"))
    np.testing.assert_allclose(model.frequencies_[0], 0.25, atol=0.06)


def test_values_of_another_sort_are_refused_before_any_report():
    for text in (np.full((9, 1), "yes"), np.full((9, 1), "yes", dtype=object), [["yes"]] * 9):
        with pytest.raises(
            ValueError, match="feature 0 are numbers, and its values are text"
        ) as found:
            LocalDPFrequencies().fit(text)
        assert "yes" not in str(found.value)
    with pytest.raises(ValueError, match="feature 1 are text, and its values are numbers"):
        LocalDPFrequencies(categories=[[1, 2], ["1", "2"]]).fit([[1, 1], [2, 2]])
    # one entry of a list decides about no other
    model = LocalDPFrequencies(30.0, categories=[0, 1]).fit([[1]] * 2000 + [["x"]])
    assert model.frequencies_[0][1] > 0.99
    client = LocalDPFrequencies(categories=TREE).client(n_features=1)
    for value in (1, None):
        with pytest.raises(ValueError, match="feature 0 are text, and its values"):
            client.report([value])
    assert client.privacy_spent_ == (0.0, 0.0)
    assert client.report(["yew"])


@pytest.mark.parametrize(
    "categories",
    [[1], [1, 1], [], [[1, 2], [3, 4], [5, 6]], [[1, 2], [3]], [[1, 2], 3], ["a", np.nan],
     [["a"], ["b"]], [(1, 2), [[1], [2]]]],
    ids=str,
)  # fmt: skip
def test_categories_that_make_no_sense_are_refused(categories):
    with pytest.raises(ValueError, match="categories must be a list of at least two"):
        LocalDPFrequencies(categories=categories).fit(np.zeros((5, 2)))


def test_levels_and_numbers_are_checked():
    model = LocalDPFrequencies(1.0, categories=range(9))
    with pytest.raises(ValueError, match="level"):
        model.fit([[1]]).confidence_interval(1.0)
    with pytest.raises(ValueError, match="n_samples"):
        model.expected_error(0, 1)


# Planted bugs.


def traced(epsilon=1.0, categories=(0, 1, 2)):
    """Return the trace of neighbours of which one row has another category."""
    X = np.zeros((30, 1))
    other = X.copy()
    other[7] = 1
    model = LocalDPFrequencies(epsilon, categories=categories)
    return trace_privacy(model, X, X_neighbour=other)


def test_the_trace_measures_the_price():
    result = traced()
    assert result.passed
    assert 0.999 <= result.share <= 1.0


def test_the_trace_sees_a_chance_that_was_not_paid_for(monkeypatch):
    monkeypatch.setattr(CategorySubsets, "epsilon", property(lambda self: 0.5), raising=True)
    assert not traced().passed

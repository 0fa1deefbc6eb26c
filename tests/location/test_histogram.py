# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Histograms: bins as numpy has them, categories, sensitivities that are attained, ranges."""

import warnings

import numpy as np
import pytest

from skdp import DPHistogram
from skdp._counted import CellCounts
from skdp.audit import trace_privacy
from skdp.exceptions import NoisyEstimateWarning, PrivacyWarning
from skdp.location._clipped_mean import BoxRows

rng = np.random.default_rng(0)
every_adjacency = pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])


@pytest.mark.parametrize("bins", [7, [-1.0, -0.5, 0.0, 0.1, 4.0]], ids=["number", "edges"])
def test_with_a_huge_budget_they_are_the_counts_of_numpy(bins):
    X = np.round(rng.normal(size=(500, 2)).clip(-1, 4), 1)
    bounds = (-1.0, 4.0) if bins == 7 else None
    model = DPHistogram(1e6, bins=bins, bounds=bounds).fit(X)
    for column, counts, edges in zip(X.T, model.counts_, model.bin_edges_, strict=True):
        expected, expected_edges = np.histogram(column, bins, range=(-1.0, 4.0))
        np.testing.assert_allclose(counts, expected, atol=0.1)
        np.testing.assert_allclose(edges, expected_edges)
    assert model.categories_ is None


def test_values_beyond_are_in_the_outermost_bins():
    X = np.array([[-1e300], [5.0], [1e300], [1e300]])
    counts = DPHistogram(1e6, bins=[0, 1, 2, 9]).fit(X).counts_[0]
    np.testing.assert_allclose(counts, [1, 0, 3], atol=0.1)


def test_without_bounds_a_range_is_found():
    X = rng.normal([1e6, 1e-6], [10.0, 1e-7], size=(4000, 2))
    model = DPHistogram(4.0, bins=20).fit(X)
    for column, counts, edges in zip(X.T, model.counts_, model.bin_edges_, strict=True):
        assert edges[0] < np.quantile(column, 0.01)
        assert np.quantile(column, 0.99) < edges[-1]
        assert edges[-1] - edges[0] < 40 * column.std()
        assert np.argmax(counts) in (8, 9, 10, 11)
    assert 0.999 * 4.0 <= model.privacy_spent_[0] <= 4.0
    with pytest.warns(NoisyEstimateWarning, match="too few for a private range"):
        DPHistogram(0.5).fit(X[:50])


def test_categories_of_text_and_numbers():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"tree": ["oak", "ash", "yew", "oak"] * 50, "n": [1, 2, 3, 3] * 50})
    model = DPHistogram(1e6, categories=[["ash", "oak"], [1, 2, 3]]).fit(frame)
    np.testing.assert_allclose(model.counts_[0], [50, 100], atol=0.1)
    np.testing.assert_allclose(model.counts_[1], [50, 50, 100], atol=0.1)
    assert list(model.feature_names_in_) == ["tree", "n"]
    with pytest.warns(PrivacyWarning, match="bounds have no effect with categories"):
        DPHistogram(5.0, categories=[1, 2], bounds=(0, 1)).fit(frame[["n"]])


def test_one_entry_of_a_list_decides_about_no_other():
    # numpy makes text of all of them, and no row was in a category
    for strange in ("x", b"x", 1j, 1.5, True):
        rows = [[0], [2]] * 50 + [[2], [strange]]
        counts = DPHistogram(1e6, categories=[0, 2]).fit(rows).counts_[0]
        np.testing.assert_allclose(counts, [50, 51], atol=0.1)
    # nor floats of whole numbers that have none
    one, other = 2**60 + 1, 2**60 + 3
    for strange in (0.5, 2**64, -1):
        rows = [[one], [other]] * 50 + [[other], [strange]]
        counts = DPHistogram(1e6, categories=[one, other]).fit(rows).counts_[0]
        np.testing.assert_allclose(counts, [50, 51], atol=0.1)


def test_categories_that_no_row_has_are_named():
    text, named = (
        np.array(["a", "b"] * 200)[:, None],
        "feature 0 are numbers, and its values are text",
    )
    with pytest.raises(ValueError, match=named):
        DPHistogram(categories=[0, 1]).fit(text)
    # the type of objects tells nothing, and one row could decide: released counts tell
    for rows, listed in ((text.astype(object), [0, 1]), (text, "xy"), (text[:, [0, 0]], "xy")):
        with pytest.warns(
            NoisyEstimateWarning, match=r"no row is in any category of feature\(s\) 0"
        ):
            DPHistogram(categories=list(listed)).fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPHistogram(categories=["a", "y"]).fit(text)


def test_bins_that_hold_no_row_but_at_an_end_are_told():
    rows = np.random.default_rng(0).normal(3e5, 5e4, (2000, 2))
    rows[:, 0] /= 1e6
    model = DPHistogram(bins=10, bounds=(0, 1), random_state=0)
    for other in (1.0, -1.0):
        with pytest.warns(NoisyEstimateWarning, match=r"the last cell of feature\(s\) 1, by"):
            model.fit(rows * [1.0, other])
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoisyEstimateWarning)
        model.fit(rows[:, :1])
        model.set_params(bins=1).fit(rows)
        # a hundredth of the rows elsewhere
        rows[:, 1] = np.arange(2000) < 20
        model.set_params(bins=[0.0, 0.5, 1.0], bounds=None).fit(rows[:, 1:])


def test_what_is_missing_has_one_message():
    pd = pytest.importorskip("pandas")
    for dtype in ("string", "category", object):
        frame = pd.DataFrame({"a": pd.array(["x", None, "y"] * 9, dtype=dtype)})
        with pytest.raises(ValueError, match="X has missing values"):
            DPHistogram(categories=["x", "y"]).fit(frame)
        full = frame.fillna("x")
        counts = DPHistogram(1e6, categories=["x", "y"]).fit(full).counts_[0]
        np.testing.assert_allclose(counts, [18, 9], atol=0.1)


def test_noise_has_the_stated_standard_error():
    model = DPHistogram(0.5, bins=2000, bounds=(0, 1)).fit(np.zeros((50, 1)))
    assert model.standard_error_ == pytest.approx(np.sqrt(2) * 4, rel=1e-3)
    assert np.std(model.counts_[0][1:]) == pytest.approx(model.standard_error_, rel=0.15)


def test_a_group_counts_one():
    X = np.repeat([[0.1], [0.9]], [30, 10], axis=0)
    groups = np.repeat(np.arange(4), 10)
    counts = DPHistogram(1e6, bins=2, bounds=(0, 1)).fit(X, groups=groups).counts_[0]
    np.testing.assert_allclose(counts, [3, 1], atol=0.1)


@every_adjacency
def test_the_stated_sensitivity_is_the_largest_of_all_moves(adjacency):
    query, worst = CellCounts((3, 1, 2)), np.zeros(2)
    for _ in range(200):
        X = np.column_stack([rng.integers(-1, k, 6) for k in query.sizes]).astype(float)
        other = X.copy()
        other[2] = -1 if adjacency == "zero-out" else [rng.integers(-1, k) for k in query.sizes]
        moved = query.evaluate(BoxRows(X, None)) - query.evaluate(BoxRows(other, None))
        worst = np.maximum(worst, [np.abs(moved).sum(), np.linalg.norm(moved)])
    stated = query.sensitivity(adjacency, 6)
    np.testing.assert_allclose(worst, [stated.l1, stated.l2])


@every_adjacency
def test_the_trace_attains_the_price(adjacency):
    X = rng.uniform(0, 1, size=(40, 2))
    other = X.copy()
    other[3] = np.nan if adjacency == "zero-out" else 1 - np.round(X[3])
    model = DPHistogram(bins=2, bounds=(0, 1), adjacency=adjacency)
    result = trace_privacy(model, X, X_neighbour=other)
    assert result.passed
    assert result.share > 0.999


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bins": [1.0]}, "bins must be a number of bins"),
        ({"bins": [1.0, 0.0]}, "bins must be a number of bins"),
        ({"bins": [0.0, np.nan]}, "bins must be a number of bins"),
        ({"bins": ["a", "b"]}, "bins must be a number of bins"),
        ({"bins": 0}, "bins"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"categories": [1]}, "categories must be a list of at least two"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        DPHistogram(**given).fit(np.zeros((9, 2)))

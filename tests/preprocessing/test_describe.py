# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions of tables: against pandas, one budget, types of tables, what is left out."""

import copy
import datetime
import math
import pickle

import numpy as np
import pandas as pd
import pytest

from skdp import DPTableVectorizer, PrivacyBudget, dp_describe, privacy_card, privacy_spent
from skdp.audit import trace_privacy
from skdp.exceptions import BudgetError, NoisyEstimateWarning
from skdp.inspection import TableSummary

rng = np.random.default_rng(0)
N = 3000
PEOPLE = pd.DataFrame(
    {
        "age": rng.integers(18, 90, N),
        "income": np.where(rng.random(N) < 0.2, np.nan, rng.lognormal(10, 0.5, N)),
        "plan": rng.choice(["basic", "pro"], N, p=[0.7, 0.3]),
        "member": rng.random(N) < 0.4,
        "city": rng.choice(["a", "b", "c"], N),
    }
)
PUBLIC = {"bounds": {"age": (0, 120)}, "categories": {"plan": ["pro", "basic", "free"]}}


def test_with_a_huge_budget_it_is_that_of_pandas():
    summary = dp_describe(PEOPLE, 1e4, percentiles=[0.1, 0.5, 0.9], **PUBLIC)
    found, expected = summary.frame, PEOPLE.describe(percentiles=[0.1, 0.5, 0.9], include="all")
    assert found.columns.tolist() == ["age", "income", "plan", "member"]
    assert found.index.tolist() == ["count", "top", "freq", "mean", "std", "10%", "50%", "90%"]
    for name in ("count", "mean", "std", "10%", "50%", "90%"):
        for column in ("age", "income"):
            assert found.loc[name, column] == pytest.approx(expected.loc[name, column], rel=0.02)
    for column in ("plan", "member"):
        assert found.loc["top", column] == str(expected.loc["top", column])
        assert found.loc["freq", column] == expected.loc["freq", column]
        assert found.loc["count", column] == N
    # ages are whole by their type
    assert all(float(found.loc[name, "age"]).is_integer() for name in ("10%", "50%", "90%"))
    assert summary.left_out_ == ("city",)


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_all_of_one_budget_is_spent_and_no_more(adjacency):
    budget = PrivacyBudget(epsilon=1.0, adjacency=adjacency)
    summary = dp_describe(PEOPLE, 0.8, adjacency=adjacency, budget=budget, **PUBLIC)
    assert 0.999 * 0.8 <= summary.privacy_spent_[0] <= 0.8
    assert summary.privacy_spent_[1] == 0
    assert privacy_spent(summary).epsilon <= 0.8
    assert len(budget.charges) == 1
    with pytest.raises(BudgetError):
        dp_describe(PEOPLE, 0.8, adjacency=adjacency, budget=budget, **PUBLIC)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning")
def test_types_of_tables_agree():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    own = dp_describe(PEOPLE, 50.0, **PUBLIC).frame
    for kind in (pl.from_pandas, pa.Table.from_pandas):
        other = dp_describe(kind(PEOPLE), 50.0, **PUBLIC).frame
        assert other.index.equals(own.index)
        numbers = other.loc[["mean", "5%", "50%", "95%"], ["age", "income"]].astype(float)
        assert np.allclose(numbers / own.loc[numbers.index, numbers.columns].astype(float), 1, 0.1)
    array = dp_describe(rng.normal(size=(500, 2)), 4.0).frame
    assert array.columns.tolist() == ["x0", "x1"]


def test_it_prints_as_a_frame_and_says_what_is_not_there():
    summary = dp_describe(PEOPLE, 4.0, **PUBLIC)
    text, page = repr(summary), summary._repr_html_()
    assert isinstance(summary, TableSummary)
    for part in ("50%", "income", "epsilon=4", "No least and no largest", "'city'"):
        assert part in text
        assert part in page
    assert repr(TableSummary(2.0)) == "TableSummary(epsilon=2.0)"
    assert "replace-one" in str(privacy_card(summary))
    assert pickle.loads(pickle.dumps(summary)).frame.equals(summary.frame)


class Described(TableSummary):
    """A description as an estimator, for audits."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return super().fit(pd.DataFrame(X, columns=["a", "b", "c"]))


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_the_trace_is_within_the_price(adjacency):
    X = np.column_stack([rng.normal(size=(2000, 2)), rng.integers(0, 3, size=2000)])
    X[5] = [-1.0, -9.0, 0.0]
    other = X.copy()
    other[5] = np.nan if adjacency == "zero-out" else [1.0, 9.0, 1.0]
    model = Described(8.0, bounds={"a": (-1, 1)}, categories={"c": [0, 1, 2]}, adjacency=adjacency)
    result = trace_privacy(model, X, X_neighbour=other)
    assert result.passed
    assert result.share > 0.6


@pytest.mark.parametrize("kind", ["groups", "weights", "add-remove"])
def test_the_trace_is_within_the_price_where_rows_count_in_parts(kind):
    # numbers alone, some missing: counts of categories took the place of what decides about draws
    X = np.vstack([np.tile([5.0, 5.0], (300, 1)), rng.normal(size=(2000, 2))])
    owners, ones = np.append(np.zeros(300), np.arange(1, 2001)), np.ones(2300)
    first, more = X[299:], {}
    other = first.copy()
    other[0] = -5.0
    if kind == "groups":
        first, other, more = X, X.copy(), {"groups": owners}
        other[:300] = -5.0
    elif kind == "weights":
        more = {"sample_weight": ones[299:], "sample_weight_neighbour": 0.5 * ones[299:]}
        more["sample_weight_neighbour"][1:] = 1.0
    else:
        other = first[1:]
    model = TableSummary(
        epsilon=20.0,
        adjacency=kind if kind == "add-remove" else "replace-one",
        max_weight=1.0 if kind == "weights" else None,
    )
    result = trace_privacy(model, first, other, **more)
    assert result.passed, result
    assert result.share > 0.3
    assert not any("part(s) of the rows" in release.query for release in result.releases)


def test_nobody_s_values_are_in_it():
    frame = pd.concat([PEOPLE] * 10, ignore_index=True)
    frame.loc[0, "income"] = 1e300
    frame["constant"] = 3.0
    frame["extreme"] = 1e300
    with pytest.warns(NoisyEstimateWarning):
        summary = dp_describe(frame, 4.0, **PUBLIC)
    assert summary.statistics_["income"]["mean"] < 1e6
    assert summary.statistics_["constant"]["std"] < 1e-3
    assert np.isfinite(list(summary.statistics_["extreme"].values())).all()
    assert not hasattr(copy.deepcopy(summary), "budget_")


def test_percentiles_and_columns_are_called_by_their_names():
    for given in ([50], [], ["median"]):
        with pytest.raises(ValueError, match=r"^percentiles must be .*; got "):
            dp_describe(PEOPLE, percentiles=given)
    far = pd.DataFrame({"near": np.arange(3000.0), "far": 1e300 * np.arange(-1500.0, 1500.0)})
    with pytest.warns(NoisyEstimateWarning, match=r"feature\(s\) 'far' have values beyond"):
        dp_describe(far, 4.0)


def test_too_few_rows_are_said_to_be():
    with pytest.warns(NoisyEstimateWarning) as said:
        few = dp_describe(PEOPLE[:30], 0.5, **PUBLIC).statistics_
    text = " ".join(str(one.message) for one in said)
    assert "at epsilon=0.5 are too few for the percentiles of the column(s) 'age'" in text
    assert "too few for any statistic but the count of the column(s) 'income' without" in text
    # what cannot be known is not there, and what has public bounds is within these
    assert all(math.isnan(v) for name, v in few["income"].items() if name != "count")
    assert 0 <= few["age"]["5%"] <= few["age"]["95%"] <= 120
    # the outermost percentiles go first
    with pytest.warns(NoisyEstimateWarning, match="the percentiles 5%, 95% of the column"):
        some = dp_describe(PEOPLE[["income"]], 0.5).statistics_["income"]
    assert math.isnan(some["5%"])
    assert 0 < some["25%"] < some["75%"] < 1e6
    assert 0 < some["mean"] < 1e6
    budget = PrivacyBudget(epsilon=1.0)
    with pytest.raises(
        ValueError, match=r"30 rows at epsilon=0\.5 are too few for anything about 1"
    ):
        dp_describe(PEOPLE[["age"]][:30], 0.5, budget=budget)
    assert budget.spent == (0.0, 0.0)


def test_categories_that_no_row_has_are_named():
    frame = pd.DataFrame({"plan": ["a", "b"] * 400, "city": ["x", "y"] * 400})
    with pytest.warns(NoisyEstimateWarning, match=r"almost no row has .* column\(s\) 'city', by"):
        dp_describe(frame, 1.0, categories={"plan": ["a"], "city": [1, 2]})


def test_one_entry_of_a_list_decides_about_no_other():
    # numpy makes text of all of them: 1.0 was a word that 1 is not
    for strange in ("x", True, None):
        rows = [[1.0], [2.0]] * 200 + [[strange]]
        found = dp_describe(rows, 20.0, categories={"x0": ["1", "2"]}).statistics_["x0"]
        assert abs(found["count"] - 400) < 5
    # nor, by a type that is wider or by a flag, how others are spelt
    short, words = np.float32(0.1), {"x0": ["0.1", str(float(np.float32(0.1)))]}
    for strange in (np.float32(0.5), True, 2.5, np.longdouble(2.5)):
        rows = [[short], [0.1]] * 200 + [[strange]]
        found = dp_describe(rows, 20.0, categories=words).statistics_["x0"]
        assert abs(found["count"] - 400) < 5
        assert abs(found["freq"] - 200) < 5
    # nor whether columns have whole numbers alone, or a place for what is missing
    rows = [[k % 50, k % 7] for k in range(2000)]
    for other in ([3.5, 2], [None, 2], [True, 2]):
        for model in (TableSummary(4.0), DPTableVectorizer(4.0)):
            assert trace_privacy(model, rows, [*rows[:9], other, *rows[10:]], n_draws=0).passed
    with pytest.raises(ValueError, match="a list has no types of columns"):
        dp_describe([*rows, ["x", 1]])


def test_columns_that_are_mostly_missing_are_left_out_by_their_counts():
    table = PEOPLE[["income"]].assign(rare=np.where(np.arange(N) % 9, np.nan, 3.0))
    with pytest.warns(
        NoisyEstimateWarning, match=r"column\(s\) 'rare' have too few values, by their"
    ):
        found = dp_describe(table, 1.6).statistics_
    assert abs(found["rare"]["count"] - N / 9) < 100
    assert math.isnan(found["rare"]["mean"])
    assert math.isnan(found["rare"]["50%"])
    assert 1e4 < found["income"]["mean"] < 5e4


def test_counts_that_are_mostly_zero_have_a_mean():
    counts = pd.DataFrame({"visits": np.where(np.arange(2000) % 5, 0, 1 + np.arange(2000) % 3)})
    with pytest.warns(NoisyEstimateWarning, match="the percentiles 5%, 95% of the column"):
        found = [dp_describe(counts, 0.3).statistics_["visits"]["mean"] for _ in range(8)]
    assert np.mean(found) == pytest.approx(counts["visits"].mean(), abs=0.25)  # 0.4


@pytest.mark.filterwarnings("ignore::skdp.exceptions.NoisyEstimateWarning")
def test_dates_and_durations_are_given_back_as_such():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    seconds = np.linspace(1.5e9, 1.6e9, 4000).astype(np.int64)
    joined = pd.Series(seconds.astype("datetime64[s]"), name="joined").astype("datetime64[ns]")
    joined[::10] = pd.NaT
    frame = pd.DataFrame({"joined": joined, "stay": (joined - joined.min()) / 100})
    expected = frame.describe()
    public = {"bounds": {"joined": ("2017-01-01", "2021-01-01")}}
    for table, given in (
        (frame, public), (frame, {}), (pl.from_pandas(frame), {}),
        (pa.Table.from_pandas(frame), {}),
        (frame.assign(joined=joined.dt.tz_localize("UTC")), {}),
    ):  # fmt: skip
        found = dp_describe(table, 20.0, **given).frame
        assert abs(found.loc["count", "joined"] - 3600) < 30
        for name in ("mean", "25%", "50%", "75%"):
            for column, most in (("joined", "30D"), ("stay", "12h")):
                assert abs(found.loc[name, column] - expected.loc[name, column]) < pd.Timedelta(
                    most
                )
        assert abs(found.loc["std", "joined"] - joined.std()) < pd.Timedelta("60D")
    text = repr(dp_describe(frame, 20.0, **public))
    assert "2018-" in text
    assert "days" in text
    # in no year that has no date, whatever the noise
    for few, epsilon in ((frame[:60], 1.0), (frame[:400], 2.0)):
        bounds = {"joined": ("0001-01-01", "9999-12-31")}
        found = dp_describe(few[["joined"]], epsilon, bounds=bounds).statistics_["joined"]
        assert np.datetime64("0001-01-01") <= found["5%"] <= np.datetime64("9999-12-31")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"percentiles": [0.5]}, "percentiles must hold two"),
        ({"percentiles": [0.0, 0.5]}, "greater than 0 and less than 1"),
        ({"bounds": {"agee": (0, 1)}}, "no column has this name"),
        ({"bounds": {"age": (1, 0)}}, "bounds"),
        ({"bounds": {"city": (1, 2)}}, "which is not a number"),
        (
            {"bounds": {"born": ("2021-01-01", "2020-01-01")}},
            "a pair of dates, the earlier one first",
        ),
        ({"bounds": {"born": (0, 1)}}, "a pair of dates, the earlier one first"),
        ({"categories": {"plan": []}}, "at least one distinct value"),
        ({"epsilon": 0.0}, "epsilon"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(given, said):
    table = PEOPLE.assign(born=np.datetime64("2000-01-01", "s"))
    with pytest.raises((ValueError, TypeError), match=said):
        dp_describe(table, **{"epsilon": 1.0, **given})
    with pytest.raises(ValueError, match="column of numbers, dates or flags"):
        dp_describe(PEOPLE[["city"]])
    with pytest.raises(ValueError, match="at least one row"):
        dp_describe(PEOPLE[:0])


def test_errors_call_what_was_called_and_say_what_is_allowed():
    for given, said in (
        ({"epsilon": 0}, "^The 'epsilon' parameter of dp_describe must be"),
        ({"sample_weight": np.ones(len(PEOPLE))}, "^dp_describe takes sample_weight only with"),
        ({"bounds": {"age": (5, 1)}}, r"must be a pair .* below upper; got \(5, 1"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            dp_describe(PEOPLE, **given)
    with pytest.raises(ValueError, match=r"categories=\{'city': \[...\]\}; got 'city' of type"):
        dp_describe(PEOPLE[["city"]])


def test_bounds_of_durations_are_durations_or_days():
    stay = pd.DataFrame({"stay": pd.to_timedelta(np.linspace(0, 3600, 4000), unit="s")})
    hour = (
        (datetime.timedelta(0), datetime.timedelta(hours=1)), (0, 1 / 24),
        (pd.Timedelta(0), pd.Timedelta("1h")), (np.timedelta64(0, "m"), np.timedelta64(60, "m")),
    )  # fmt: skip
    for bounds in hour:
        found = dp_describe(stay, 2.0, bounds={"stay": bounds}).frame["stay"]
        assert abs(found["mean"] - pd.Timedelta("30min")) < pd.Timedelta("2min")
    for bounds in (hour[0][::-1], ("0s", "1h"), 5):
        with pytest.raises(ValueError, match=r"must be a pair .* of durations, or"):
            dp_describe(stay, bounds={"stay": bounds})


def test_bounds_with_a_time_zone_are_moments():
    # a warning of numpy would be an error
    ends = tuple(pd.Timestamp(day, tz="Asia/Tokyo") for day in ("2020-01-01", "2020-01-02"))
    moments = pd.DataFrame({"at": pd.date_range(*ends, periods=4000)})
    found = dp_describe(moments, 4.0, bounds={"at": ends}).frame["at"]
    assert pd.Timestamp("2019-12-31 15:00") <= found["5%"] < found["95%"]
    assert found["95%"] <= pd.Timestamp("2020-01-01 15:00")
    assert abs(found["mean"] - pd.Timestamp("2020-01-01 03:00")) < pd.Timedelta("1h")

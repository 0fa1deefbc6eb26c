# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tables of columns of several kinds: schema, features, releases, the pipeline, bad input."""

import datetime
import importlib.util
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from skdp import (
    BoundedScaler,
    DPGridSearchCV,
    DPHingeSVM,
    DPLogisticRegression,
    DPLpRegressor,
    DPTableVectorizer,
    LocalDPMean,
    PrivacyBudget,
    dp_tabular_pipeline,
    privacy_card,
    privacy_spent,
    trusted_types,
)
from skdp.audit import trace_privacy
from skdp.exceptions import BudgetError, NoisyEstimateWarning
from skdp.preprocessing._table import bucket_of, table_schema
from skdp.privacy import gdp_mu

N = 4000
PUBLIC = {
    "bounds": {"age": (18, 100), "joined": ("2020-01-01", "2024-01-01")},
    "categories": {"plan": ["basic", "plus", "pro"], "shop": [1, 2]},
}


def made_up(n=N, seed=0):
    """Return a table with a column of every kind, and values missing where they can be."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({
        "age": rng.integers(18, 91, n),
        "height": np.where(rng.random(n) < 0.2, np.nan, rng.normal(170, 10, n)),
        "plan": rng.choice(["basic", "plus", "pro", None], n, p=[0.5, 0.3, 0.1, 0.1]),
        "left": rng.random(n) < 0.3,
        "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        "stay": pd.to_timedelta(rng.integers(1, 240, n), "h"),
        "shop": rng.integers(1, 4, n),
        "visits": pd.array(rng.poisson(6, n), dtype="Int64"),
    })  # fmt: skip
    table.loc[table.index == 2, "visits"] = pd.NA
    table.loc[table.index == 3, "joined"] = pd.NaT
    return table


def fitted(table, **options):
    return DPTableVectorizer(**{"epsilon": 4.0, "random_state": 0, **options}).fit(table)


def features(vectorizer, table):
    """Return the features of rows by their names, before rows are divided by their unit."""
    rows = vectorizer.transform(table) * vectorizer._unit() / vectorizer.data_norm
    return dict(zip(vectorizer.get_feature_names_out(), rows.T, strict=True))


# What a column is.


@pytest.mark.parametrize(
    ("values", "kind", "nullable"),
    [
        (np.arange(3), "number", False),
        (np.arange(3, dtype=np.uint8), "number", False),
        (np.arange(3.0), "number", True),
        (pd.array([1, None], dtype="Int16"), "number", True),
        (pd.array([1.5, None], dtype="Float32"), "number", True),
        (pd.array([1, None], dtype="int64[pyarrow]"), "number", True),
        (np.array([True, False]), "flag", False),
        (pd.array([True, None], dtype="boolean"), "flag", True),
        (pd.to_datetime(["2020-01-01"]), "date", True),
        (pd.to_datetime(["2020-01-01"]).tz_localize("Europe/Oslo"), "date", True),
        (pd.to_timedelta([3], "h"), "duration", True),
        (["a", None], "text", True),
        (np.array([1, "a"], dtype=object), "text", True),
        (np.array([1, 2], dtype=object), "text", True),
        (pd.array(["a"], dtype="string"), "text", True),
        (pd.Categorical(["a", "b"]), "text", True),
        (pd.Categorical([1, 2], ordered=True), "text", True),
    ],
)
def test_types_tell_kinds(values, kind, nullable):
    (column,) = table_schema(pd.DataFrame({"c": values}))
    assert (column.kind, column.nullable) == (kind, nullable)


POLARS = {
    pl.Int32: "number", pl.Float32: "number", pl.Boolean: "flag", pl.String: "text",
    pl.Categorical: "text", pl.Enum(["a"]): "text", pl.Date: "date", pl.Datetime("ms"): "date",
    pl.Datetime("us", "UTC"): "date", pl.Duration("ms"): "duration", pl.Decimal(10, 2): "number",
    pl.Null: "text",
}  # fmt: skip
ARROW = {
    pa.int8(): "number", pa.float16(): "number", pa.float64(): "number", pa.bool_(): "flag",
    pa.decimal128(10, 2): "number", pa.string(): "text", pa.large_string(): "text",
    pa.dictionary(pa.int8(), pa.string()): "text", pa.date32(): "date",
    pa.timestamp("ns", "UTC"): "date", pa.duration("s"): "duration",
}  # fmt: skip


def test_types_of_polars_and_arrow_tell_kinds():
    for dtype, kind in POLARS.items():
        (column,) = table_schema(pl.DataFrame({"c": pl.Series([None], dtype=dtype)}))
        assert (column.kind, column.nullable) == (kind, True), dtype
    for dtype, kind in ARROW.items():
        (column,) = table_schema(pa.table({"c": pa.array([None], dtype)}))
        assert (column.kind, column.nullable) == (kind, True), dtype


@pytest.mark.parametrize(
    "values",
    [
        np.array([1j]),
        pd.array([pd.Interval(0, 1)]),
        pd.period_range("2020", periods=1, freq="M"),
        pd.arrays.SparseArray([0.0, 1.0]),
    ],
    ids=["complex", "interval", "period", "sparse"],
)
def test_other_types_are_refused_with_the_name_of_the_column(values):
    with pytest.raises(TypeError, match=r"column 'odd' is of type .*X\.drop\(columns=\['odd'\]\)"):
        fitted(pd.DataFrame({"age": range(len(values)), "odd": values}))


@pytest.mark.parametrize("dtype", [pl.List(pl.Int8), pl.Struct({"secret": pl.Int8}), pl.Time])
def test_other_types_of_polars_are_refused_without_what_is_in_them(dtype):
    with pytest.raises(TypeError, match="column 'odd' is of type") as caught:
        fitted(pl.DataFrame({"odd": pl.Series([None], dtype=dtype)}))
    assert "secret" not in str(caught.value)


def test_the_schema_depends_on_no_value():
    one, other = made_up(seed=0), made_up(n=7, seed=1)
    other = other.astype(one.dtypes)
    assert table_schema(one, **PUBLIC) == table_schema(other, **PUBLIC)
    assert table_schema(one.iloc[:0], **PUBLIC) == table_schema(one, **PUBLIC)


def test_categories_of_pandas_are_not_believed():
    # they are usually read off the rows, and the last one is nobody's
    values = pd.Categorical(["a", "b"] * 1000, categories=["a", "b", "secret"])
    names = fitted(pd.DataFrame({"c": values})).get_feature_names_out()
    assert len(names) == 4
    assert not any("secret" in name for name in names)


@pytest.mark.parametrize(
    ("name", "values", "word"),
    [
        ("id", [1], "identifier"), ("customer_id", ["a"], "identifier"),
        ("customerId", [1], "identifier"), ("Email", ["a"], "identifier"),
        ("Unnamed: 0", [1], "identifier"), ("uuid", ["a"], "identifier"),
        ("Review text", ["a"], "free text"), ("comments", ["a"], "free text"),
    ],
)  # fmt: skip
def test_identifiers_and_prose_are_refused_by_their_names(name, values, word):
    table = pd.DataFrame({name: values * 500, "age": range(500)})
    with pytest.raises(ValueError, match=f"is (an )?{word} by its name.*X.drop") as caught:
        fitted(table)
    assert repr(name) in str(caught.value)
    # the remedy that is named
    fitted(table, categories={name: None})


def test_names_that_only_hold_such_words_are_taken():
    names = ["phone_service", "paid", "identity", "text_length", "idle", "email_opened"]
    fitted(pd.DataFrame({name: np.arange(900) % 7 for name in names}))


# What rows become.


def test_bounds_are_those_of_the_scaler_and_cost_nothing():
    table = made_up()[["age", "left", "joined"]]
    vectorizer = fitted(table, bounds=PUBLIC["bounds"], curves=None, epsilon=None)
    found = features(vectorizer, table)
    age = BoundedScaler(bounds=(18, 100)).fit_transform(table[["age"]].to_numpy(float))
    assert_allclose(found["age"], age[:, 0], atol=1e-12)
    assert_array_equal(np.unique(np.round(found["left"], 12)), [-1, 1])
    days = (table["joined"] - pd.Timestamp("2020-01-01")).dt.days.to_numpy()
    expected = np.nan_to_num(2 * days / 1461 - 1)
    assert_allclose(found["joined"], expected, atol=1e-12)
    assert_allclose(found["joined=missing"], table["joined"].isna(), atol=1e-12)
    assert "age=missing" not in found
    assert vectorizer.privacy_spent_ == (0.0, 0.0)
    assert not vectorizer.ledger_.releases


def test_a_list_has_a_place_for_others_and_for_missing_words():
    table = pd.DataFrame({"plan": ["pro", "basic", None, "new"]})
    vectorizer = fitted(table, categories={"plan": ["basic", "pro"]}, epsilon=None)
    assert vectorizer.get_feature_names_out().tolist() == [
        "plan=basic", "plan=pro", "plan=other", "plan=missing"
    ]  # fmt: skip
    found = np.column_stack(list(features(vectorizer, table).values()))
    assert_allclose(found, np.eye(4)[[1, 0, 3, 2]], atol=1e-12)


def test_codes_are_the_same_words_as_integers_and_as_floats():
    table = pd.DataFrame({"shop": [1, 2, 3]})
    vectorizer = fitted(table, categories={"shop": [1.0, 2]}, epsilon=None)
    expected = vectorizer.transform(table)
    assert_array_equal(vectorizer.transform(table.astype(float)), expected)
    assert_array_equal(vectorizer.transform(table.astype(str)), expected)
    later = vectorizer.transform(pd.DataFrame({"shop": [np.nan, 1.5]}))
    assert_array_equal(later > 0, [[False, False, False, True], [False, False, True, False]])


def test_buckets_are_the_same_in_every_process():
    # MurmurHash3, 32 bits, without a key
    assert [bucket_of(1024, word) for word in ("", "basic", "pro", "\ud800")] == BUCKETS


BUCKETS = [0, 545, 446, 334]


def test_released_scales_are_those_of_the_rows():
    table = made_up(20_000)[["height", "stay", "visits"]]
    vectorizer = fitted(table, curves="squares")
    assert vectorizer.mean_["height"] == pytest.approx(170, abs=1)
    # a fifth is missing, and counts as the mean
    assert vectorizer.scale_["height"] == pytest.approx(10 * math.sqrt(0.8), rel=0.05)
    assert vectorizer.mean_["stay"] == pytest.approx(5, abs=0.2)  # days
    assert vectorizer.scale_["visits"] == pytest.approx(math.sqrt(6), rel=0.05)
    found = features(vectorizer, table)
    missing = table["height"].isna().to_numpy()
    assert_array_equal(found["height"][missing], 0)
    assert_array_equal(found["height^2"][missing], 0)
    assert_array_equal(found["height=missing"] > 0, missing)
    assert np.abs(found["height"]).max() <= 4 + 1e-9


def test_a_column_of_one_value_says_who_differs_from_it():
    values = np.full(4000, 7.25)
    values[:20] = 1e9
    found = features(fitted(pd.DataFrame({"c": values}), curves=None), pd.DataFrame({"c": values}))
    assert_allclose(found["c"], np.where(values > 8, 1.0, 0.0), atol=1e-12)


def test_frequent_words_are_kept_and_others_are_one():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"city": rng.choice(["oslo", "rome", "bonn"], N, p=[0.6, 0.399, 0.001])})
    vectorizer = fitted(table)
    kept, shares = vectorizer.frequent_["city"]
    expected = sorted(bucket_of(1024, word) for word in ("oslo", "rome"))
    assert set(expected) <= set(kept.tolist())
    assert len(kept) < 10
    assert_allclose(sorted(shares)[-2:], [0.399, 0.6], atol=0.03)
    found = features(vectorizer, pd.DataFrame({"city": ["bonn", "paris", None, "oslo"]}))
    assert_allclose(found["city=other"], [1, 1, 0, 0], atol=1e-12)
    assert_allclose(found["city=missing"], [0, 0, 1, 0], atol=1e-12)
    assert len(fitted(table, max_categories=1).frequent_["city"][0]) == 1


@pytest.mark.parametrize("n", [2000, 200_000])
def test_identifiers_without_a_name_come_out_without_features_and_with_a_warning(n):
    # in many rows every bucket holds more than noise, but none holds more than others
    table = pd.DataFrame({"key": [f"{i:x}" for i in range(n)], "age": np.arange(n) % 80})
    with pytest.warns(NoisyEstimateWarning, match="no frequent word was found in 'key'"):
        vectorizer = DPTableVectorizer(
            20.0, bounds={"age": (0, 80)}, curves="squares", random_state=0
        ).fit(table)
    names = vectorizer.get_feature_names_out().tolist()
    assert names == ["key=other", "key=missing", "age", "age^2"]


def test_a_warning_about_many_columns_names_some():
    many = pd.DataFrame(np.zeros((5, 40))).rename(columns=str)
    with pytest.warns(NoisyEstimateWarning, match="for '0', .*, '5' and 34 more, use more rows"):
        DPTableVectorizer().fit(many)


def test_too_few_rows_for_scales_are_said_by_public_numbers():
    with pytest.warns(NoisyEstimateWarning, match="too few rows .* 1 columns. Give bounds for 'a'"):
        DPTableVectorizer(random_state=0).fit(pd.DataFrame({"a": np.arange(50.0)}))


@pytest.mark.covering
@pytest.mark.parametrize("data_norm", [1.0, 7.0])
@pytest.mark.parametrize("public", [{}, PUBLIC], ids=["private", "public"])
def test_no_row_is_longer_than_data_norm_and_few_are_cut(data_norm, public):
    table = made_up()
    vectorizer = fitted(table, data_norm=data_norm, **public)
    far = table.head(3).assign(age=[10**9, -5, 0], height=[np.inf, -np.inf, 1e300])
    assert np.linalg.norm(vectorizer.transform(far), axis=1).max() <= data_norm * (1 + 1e-12)
    norms = np.linalg.norm(vectorizer.transform(table), axis=1)
    assert np.isfinite(norms).all()
    assert np.mean(norms > data_norm * (1 - 1e-9)) < 0.05
    assert np.median(norms) > data_norm / 3


def test_a_row_becomes_what_it_becomes_alone():
    table = made_up(300)
    vectorizer = fitted(made_up())
    whole = vectorizer.transform(table)
    for i in (0, 2, 3, 299):
        assert_array_equal(vectorizer.transform(table.iloc[[i]]), whole[[i]])
    assert_array_equal(vectorizer.transform(table.iloc[::-1]), whole[::-1])


def test_squares_let_a_linear_model_rise_and_fall():
    x = np.random.default_rng(0).uniform(-1, 1, 6000)
    table, y = pd.DataFrame({"x": x}), np.abs(x) > 0.5
    model = dp_tabular_pipeline("classifier", classes=[False, True], bounds={"x": (-1, 1)})
    assert model.fit(table, y).score(table, y) > 0.9
    model.set_params(table__curves=None)
    assert model.fit(table, y).score(table, y) < 0.7


def test_numbers_have_knots_with_enough_rows_and_budget():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(50, 10, 3000), "share": rng.random(3000)})
    vectorizer = fitted(table, bounds={"share": (0, 1)})
    assert vectorizer.has_knots_
    center, scale = vectorizer.mean_["x"], vectorizer.scale_["x"]
    z = np.array([-20, -1.5, -1, 0, 0.5, 2.75, 8, 13, np.nan])
    found = vectorizer._block(center + scale * z, vectorizer.columns_[0])
    assert_allclose(found[:, 0], [-4, -1.5, -1, 0, 0.5, 2.75, 4, 4, 0], atol=1e-9)
    curves = [
        [1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0], [0.5, 0.5, 0, 0, 0, 0], [0] * 6,
        [0, 0, 1, 0, 0, 0], [0, 0, 0, 0.5, 0.5, 0], [0, 0, 0, 0, 0.5, 0.5], [0, 0, 0, 0, 0, 1],
        [0] * 6,
    ]  # fmt: skip
    assert_allclose(found[:, 1:-1], curves, atol=1e-9)
    assert_array_equal(found[:, -1], np.isnan(z))
    names = vectorizer.get_feature_names_out()
    places = [float(name[2:]) for name in names if name.startswith("x~")]
    assert_allclose(places, center + scale * np.array([-1.5, -0.5, 0.5, 1.5, 4, 12]), rtol=1e-3)
    found = vectorizer._block(np.array([0.0, 1 / 6, 0.5, 2.0]), vectorizer.columns_[1])
    assert_allclose(found[:, 1:-1], np.eye(6)[[0, 1, 1, 5]] * [[1], [1], [0], [1]], atol=1e-9)
    assert [name for name in names if "share~" in name][3] == "share~0.6667"


def test_a_column_of_one_value_tells_orders_of_magnitude():
    values = np.full(4000, 7.25)
    values[:20] = 1e9
    vectorizer = fitted(pd.DataFrame({"c": values}))
    assert vectorizer.scale_["c"] == 0
    found = vectorizer._block(np.array([7.25, 9.75, 7.25 - 64, 1e9]), vectorizer.columns_[0])
    assert_array_equal(found[:, 0], [0, 1, -1, 1])
    assert_array_equal(found[0, 1:], 0)
    assert_allclose(found[1, [12, 13]], [0.5, 0.5])
    assert found[2, 8] == 1
    assert found[3, 22] == 1
    assert_allclose(found[1:, 1:].sum(axis=1), 1)


@pytest.mark.parametrize(
    ("n", "options", "knots"),
    [
        # n mu of two numbers is 300 sqrt(2), or half of that under zero-out
        (400, {}, False),
        (600, {}, True),
        (400, {"adjacency": "zero-out"}, True),
        (200, {"adjacency": "zero-out"}, False),
        (600, {"epsilon": 2.0}, False),
        (600, {"curves": "squares"}, False),
        (600, {"curves": None}, False),
        (600, {"bounds": {"a": (0, 1), "b": (0, 1)}}, True),
        (600, {"bounds": {"a": (0, 1), "b": (0, 1)}, "epsilon": None}, False),
        # the number of rows is a secret, which nothing else would be released for
        (600, {"bounds": {"a": (0, 1), "b": (0, 1)}, "adjacency": "add-remove"}, False),
    ],
)
def test_public_numbers_decide_between_knots_and_squares(n, options, knots):
    for values in (np.zeros(n), np.arange(n)):
        table = pd.DataFrame({"a": values, "b": values[::-1], "left": values > 3})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoisyEstimateWarning)
            assert fitted(table, **options).has_knots_ is knots


def test_a_pipeline_bends_as_its_first_step_does():
    for kind in ("classifier", "regressor"):
        assert dp_tabular_pipeline(kind)[0].curves == DPTableVectorizer().curves == "auto"


# Formats.


def test_every_kind_of_frame_gives_the_same_releases_and_rows():
    table = made_up().astype({"age": "Int64", "shop": "Int64", "left": "boolean"})
    frames = {
        "polars": pl.from_pandas(table),
        "arrow": pa.Table.from_pandas(table, preserve_index=False),
        "arrow types": table.convert_dtypes(dtype_backend="pyarrow"),
    }
    if importlib.util.find_spec("narwhals"):  # scikit-learn brings it from 1.9 on
        frames["narwhals"] = importlib.import_module("narwhals").from_native(frames["polars"])
    expected = fitted(table, categories={"shop": None})
    rows = expected.transform(table)
    for name, frame in frames.items():
        found = fitted(frame, categories={"shop": None})
        assert found.mean_ == expected.mean_, name
        assert_array_equal(found.get_feature_names_out(), expected.get_feature_names_out())
        assert_array_equal(found.feature_names_in_, expected.feature_names_in_)
        assert_array_equal(found.transform(frame), rows, err_msg=name)


def test_fields_of_a_structured_array_are_columns():
    table = made_up().drop(columns="visits").dropna()
    words = {"plan": np.dtype("U8")}
    types = [(name, words.get(name, kind)) for name, kind in table.dtypes.items()]
    records = np.fromiter(table.itertuples(index=False, name=None), types, len(table))
    expected, found = fitted(table), fitted(records)
    assert found.mean_ == expected.mean_
    assert_array_equal(found.feature_names_in_, list(table))
    assert_array_equal(found.transform(records[:50]), expected.transform(table[:50]))
    with pytest.raises(ValueError, match="feature names should match"):
        found.transform(records[list(table)[::-1]])
    with pytest.raises(ValueError, match="at least one row"):
        fitted(records[:0])
    with pytest.raises(TypeError, match="column 'a' is of type"):
        fitted(np.zeros(20, [("a", float, (2,)), ("b", float)]))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_come_out(library):
    table = made_up()
    rows = fitted(table).set_output(transform=library).transform(table)
    assert "height=missing" in rows.columns
    assert len(rows) == N


def test_names_of_features_are_distinct():
    table = pd.DataFrame({"a": [1.0, 2.0] * 500, "a^2": [3.0, 1.0] * 500})
    names = fitted(table, curves="squares").get_feature_names_out()
    assert len(set(names)) == len(names) == 6


def test_arrays_have_columns_x0_and_so_on():
    array = np.array([[1, "a"], [2, "b"]] * 500, dtype=object)
    names = fitted(array, bounds={}, categories={"x0": [1, 2]}).get_feature_names_out()
    assert names[:4].tolist() == ["x0=1", "x0=2", "x0=other", "x0=missing"]


# Price and privacy.


def test_all_releases_compose_to_the_budget_with_a_line_for_each_kind():
    vectorizer = fitted(made_up(), epsilon=1.0)
    epsilon, delta = vectorizer.privacy_spent_
    assert 0.999 < epsilon <= 1.0
    assert delta == 1e-6
    ledger = vectorizer.ledger_
    assert [release.count for release in ledger.releases] == [1, 42, 20, 1]
    assert vectorizer.ledger_.mu <= gdp_mu(1.0, 1e-6) * (1 + 1e-9)
    for names in (["age", "height"], ["plan"]):
        spent, _ = fitted(made_up()[names], epsilon=1.0).privacy_spent_
        assert 0.999 < spent <= 1.0


def test_without_a_budget_a_column_that_needs_one_is_refused_by_its_name():
    with pytest.raises(ValueError, match="bounds or categories for 'height', 'stay', 'visits'"):
        DPTableVectorizer(None, **PUBLIC).fit(made_up())


def neighbouring_tables(adjacency):
    """Return rows of numbers and words that differ in one row, as far as rows can."""
    rng = np.random.default_rng(0)
    rows = np.empty((60, 4), dtype=object)
    rows[:, :2] = rng.normal(size=(60, 2))
    rows[:, 2:] = rng.choice(["a", "b"], size=(60, 2))
    other = rows.copy()
    rows[7] = [1e6, 1e6, "c", "d"]
    other[7] = [-1e6, -1e6, "e", "f"] if adjacency == "replace-one" else [None] * 4
    return tuple(pd.DataFrame(X).astype({0: float, 1: float}) for X in (rows, other))


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_one_row_moves_every_release_by_what_is_stated_and_no_more(adjacency):
    one, other = neighbouring_tables(adjacency)
    result = trace_privacy(DPTableVectorizer(4.0, adjacency=adjacency), one, other)
    assert result.passed, result
    found = {release.query[:9]: release.ratio for release in result.releases}
    # counts, values and moments at their bounds; opposite rows are equally far from the middle
    assert len(found) == 4
    assert all(ratio > 0.9999 for ratio in found.values()) or adjacency == "replace-one"
    assert sum(ratio > 0.9999 for ratio in found.values()) >= 3


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_a_pipeline_keeps_its_claim_from_the_table_on(adjacency):
    model = dp_tabular_pipeline("classifier", epsilon=4.0, classes=[0, 1], adjacency=adjacency)
    y = np.arange(60) % 2
    result = trace_privacy(model, *neighbouring_tables(adjacency), y=y, n_draws=0)
    assert result.passed, result
    assert 0 < result.mu <= result.mu_claimed * (1 + 1e-9)


def test_under_zero_out_a_row_without_a_value_is_a_null_row():
    table = pd.DataFrame({"a": np.arange(1000.0), "b": ["x", "y"] * 500})
    table.loc[5] = [np.nan, None]
    assert np.isnan(fitted(table, adjacency="zero-out").transform(table)[5]).all()
    assert np.isfinite(fitted(table).transform(table)).all()
    table.loc[5, "b"] = "x"
    assert np.isfinite(fitted(table, adjacency="zero-out").transform(table)).all()


# The pipeline.


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("kind", ["classifier", "regressor"])
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_a_pipeline_spends_all_of_its_budget_and_no_more(kind, adjacency, epsilon):
    table = made_up()
    y = table["age"] > 50 if kind == "classifier" else table["age"] * 1.0
    model = dp_tabular_pipeline(kind, epsilon=epsilon, delta=1e-5, adjacency=adjacency)
    spent = privacy_spent(model.fit(table, y))
    assert 0.99 * epsilon < spent.epsilon <= epsilon
    assert 0.99e-5 < spent.delta <= 1e-5 * (1 + 1e-9)
    assert spent.not_covered == ()
    assert model.get_params()["model__adjacency"] == adjacency


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "estimator",
    [DPHingeSVM(C=10.0), DPLogisticRegression(mechanism="objective"), DPLpRegressor(p=1)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_an_estimator_of_the_library_may_be_the_model(estimator):
    table = made_up()
    model = dp_tabular_pipeline(estimator, epsilon=2.0, random_state=0).fit(
        table, table["left"] * 1
    )
    assert privacy_spent(model).epsilon <= 2.0
    assert estimator.epsilon == 1.0
    assert model[-1].get_params().items() >= {"data_norm": 1.0, "random_state": 0}.items()
    for name in ("C", "mechanism", "p"):
        assert getattr(model[-1], name, None) == getattr(estimator, name, None)


def test_where_everything_is_public_the_model_gets_all():
    table = made_up()[["age", "plan", "left", "joined", "shop"]]
    model = dp_tabular_pipeline("classifier", classes=[False, True], table_share=0, **PUBLIC)
    model.fit(table, table["left"])
    assert 0.99 < privacy_spent(model).epsilon <= 1.0
    assert model[0].privacy_spent_ == (0.0, 0.0)
    # fits that were lost are counted by their parameters
    assert privacy_spent(model, cv=3).n_fits == 4
    with pytest.raises(ValueError, match="epsilon must be a number for columns"):
        dp_tabular_pipeline("classifier", table_share=0).fit(made_up(), made_up()["left"])


@pytest.mark.parametrize(("composition", "delta"), [("sum", 1e-6), ("gaussian", 2e-6)])
def test_both_steps_are_charged_to_a_shared_budget(composition, delta):
    table, budget = made_up(), PrivacyBudget(1.0, delta, composition=composition)
    own = DPLogisticRegression(classes=[False, True], budget=budget)
    with pytest.raises(ValueError, match="budget must be given to dp_tabular_pipeline"):
        dp_tabular_pipeline(own)
    assert dp_tabular_pipeline(own, budget=budget)[-1].budget is budget
    model = dp_tabular_pipeline("classifier", classes=[False, True], budget=budget)
    model.fit(table, table["left"])
    names = [charge.label for charge in budget.charges]
    assert names == ["DPTableVectorizer", "DPLogisticRegression"]
    assert privacy_spent(model).epsilon > (0.75 if composition == "sum" else 0.99)
    with pytest.raises(BudgetError):
        model.fit(table, table["left"])


def test_a_pipeline_can_be_cloned_scored_by_folds_and_has_a_card():
    table = made_up()
    model = dp_tabular_pipeline("classifier", epsilon=4.0, classes=[False, True], **PUBLIC)
    scores = cross_val_score(clone(model), table, table["left"], cv=2)
    assert scores.min() > 0.95
    card = privacy_card(model.fit(table, table["left"]), name="who left", delta=1e-6)
    assert "DPTableVectorizer" in str(card)
    assert "differentially private with epsilon = 4" in card.claim or "3.99" in card.claim


def test_a_pipeline_goes_to_a_file_and_comes_back():
    table, sio = made_up(), pytest.importorskip("skops.io")
    model = dp_tabular_pipeline("classifier", epsilon=4.0, classes=[False, True], **PUBLIC)
    model.fit(table, table["left"])
    for again in (
        pickle.loads(pickle.dumps(model)),
        sio.loads(sio.dumps(model), trusted=trusted_types()),
    ):
        assert_array_equal(again.decision_function(table), model.decision_function(table))
        assert privacy_spent(again) == privacy_spent(model)


@pytest.mark.sample(1)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_a_search_that_pays_for_itself_takes_a_pipeline(frame):
    table = made_up()
    model = dp_tabular_pipeline("classifier", classes=[False, True], **PUBLIC)
    search = DPGridSearchCV(model, {"model__C": [1.0, 100.0]}, epsilon=8.0)
    assert search.fit(frame(table), table["left"]).score(frame(table), table["left"]) > 0.95
    assert 7.9 < privacy_spent(search).epsilon <= 8.0
    public = dp_tabular_pipeline("classifier", classes=[False, True], table_share=0, **PUBLIC)
    names = ["age", "plan", "left", "joined", "shop"]
    search.set_params(estimator=public).fit(frame(table[names]), table["left"])
    assert search.best_estimator_[0].privacy_spent_ == (0.0, 0.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"estimator": "forest"}, "'classifier', 'regressor', or an estimator .* got 'forest'"),
        ({"estimator": LocalDPMean()}, "epsilon, delta and adjacency; got a LocalDPMean"),
        ({"estimator": DPLogisticRegression}, "got the class DPLogistic"),
        ({"estimator": "regressor", "classes": [0, 1]}, "for a classifier; got a DPLpRegressor"),
        ({"table_share": 1.0}, r"table_share must be a number in \[0, 1\); got 1.0"),
        ({"table_share": True}, "table_share must be a number"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 0.0}, "delta must be greater than 0"),
    ],
)
def test_what_a_pipeline_refuses(given, message):
    with pytest.raises(ValueError, match=message):
        dp_tabular_pipeline(**{"estimator": "classifier", **given})


# Bad input: the message names the column or the parameter, what is allowed, and no value.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bounds": {"aeg": (0, 1)}}, "bounds has the key 'aeg', .* Did you mean 'age'"),
        ({"categories": {"x": ["a"]}}, "categories has the key 'x', but no column has this name"),
        ({"bounds": {"age": (1, 1)}}, r"bounds\['age'\] must be a pair"),
        ({"bounds": {"age": 5}}, r"bounds\['age'\] must be a pair"),
        ({"bounds": {"age": ([0, 0], [1, 1])}}, r"bounds\['age'\] must be a pair"),
        ({"bounds": {"plan": (0, 1)}}, "'plan' of type .*, which is not a number: give categories"),
        ({"bounds": {"joined": (0, 1)}}, r"bounds\['joined'\] must be a pair of dates"),
        ({"bounds": {"joined": ("2024-01-01", "2020-01-01")}}, r"bounds\['joined'\] must be"),
        ({"categories": {"plan": []}}, r"categories\['plan'\] must be None, or a list"),
        ({"categories": {"plan": "basic"}}, r"categories\['plan'\] must be None, or a list"),
        ({"categories": {"plan": ["a", "a"]}}, "distinct"),
        ({"categories": {"plan": ["a", None]}}, "no missing one"),
        (
            {"categories": {"age": ["old", "nan"]}},
            r"'age'\] must have values that a column of type",
        ),
        ({"categories": {"left": ["yes", "no"]}}, "values that a column of type bool can hold"),
        ({"categories": {"joined": None}}, "the column 'joined' of dates: give bounds="),
        (
            {"bounds": {"age": (0, 9)}, "categories": {"age": None}},
            "'age' is in bounds and in categories",
        ),
    ],
)
def test_public_facts_that_do_not_fit_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        fitted(made_up(20), **given)


def test_tables_without_rows_or_columns_and_with_a_name_twice_are_refused():
    table = made_up(20)
    with pytest.raises(ValueError, match=r"at least one row; got one of shape \(0, 8\)"):
        fitted(table.iloc[:0])
    with pytest.raises(ValueError, match="at least one column"):
        fitted(table[[]])
    with pytest.raises(ValueError, match="must be distinct; several columns are called 'age'"):
        fitted(table.rename(columns={"height": "age"}))
    with pytest.raises(TypeError, match=r"pass X.collect\(\)"):
        fitted(pl.from_pandas(table).lazy())
    with pytest.raises(ValueError, match=r"Expected (2D|a 2-dimensional)"):
        fitted(table["age"])


@pytest.mark.parametrize("column", ["age", "height", "plan", "joined", "left", "visits"])
def test_tables_of_one_column_and_of_nothing_but_missing_values(column):
    table = made_up()[[column]]
    assert np.isfinite(fitted(table).transform(table)).all()
    if column in ("age", "left"):
        return
    table = pd.DataFrame({column: pd.array([None] * 300, dtype=table[column].dtype)})
    found = features(fitted(table), table)
    assert_allclose(found.pop(f"{column}=missing"), 1.0, atol=1e-12)
    assert all(np.abs(part).max() < 0.5 for part in found.values())


def test_mixed_objects_are_words():
    values = [1, 1.0, "1", True, b"x", "x", None, np.nan, pd.NA, datetime.date(2020, 1, 1), [1]]
    table = pd.DataFrame({"c": np.array([*values, "y"], dtype=object)})
    names = ["1", "True", "x", "[1]", "2020-01-01"]
    found = fitted(table, categories={"c": names}, epsilon=None).transform(table)
    places = [0, 0, 0, 1, 2, 2, 6, 6, 6, 4, 3, 5]
    assert_array_equal(found.argmax(axis=1), places)


def test_a_million_categories_are_no_more_work_than_rows():
    words = np.arange(200_000).astype(str)
    words[:100_000] = "common"
    table = pd.DataFrame({"c": words})
    vectorizer = fitted(table, epsilon=1.0)
    assert vectorizer.frequent_["c"][0].tolist() == [bucket_of(1024, "common")]
    assert vectorizer.transform(table.head()).shape == (5, 3)


def test_dates_out_of_range_are_moved_to_the_ends():
    table = pd.DataFrame({"d": pd.date_range("2020-01-01", periods=1000, freq="D")})
    vectorizer = fitted(table, bounds={"d": ("2020-01-01", "2022-01-01")}, epsilon=None)
    far = np.array(["0001-01-01", "9999-12-31", "NaT"], dtype="datetime64[s]")
    found = features(vectorizer, pd.DataFrame({"d": far}))
    assert_allclose(found["d"], [-1, 1, 0], atol=1e-12)
    wide = fitted(table).transform(pl.DataFrame({"d": [datetime.date(1, 1, 1)]}))
    assert np.isfinite(wide).all()


def test_columns_that_are_new_or_missing_at_predict_are_named():
    table = made_up()
    vectorizer = fitted(table)
    with pytest.raises(ValueError, match=r"yet now missing(.|\n)*height"):
        vectorizer.transform(table.drop(columns="height"))
    with pytest.raises(ValueError, match=r"unseen at fit time(.|\n)*extra"):
        vectorizer.transform(table.assign(extra=1))
    with pytest.raises(ValueError, match="same order"):
        vectorizer.transform(table[table.columns[::-1]])


@pytest.mark.parametrize(
    ("column", "values"),
    [("age", ["secret", "x"]), ("joined", ["secret", "x"]), ("joined", [5, 6]), ("stay", [1.0, 2])],
)
def test_a_column_that_has_become_something_else_is_named_and_not_quoted(column, values):
    table = made_up()
    vectorizer = fitted(table)
    with pytest.raises(TypeError, match=f"column '{column}' held .*s when") as caught:
        vectorizer.transform(table.head(2).assign(**{column: values}))
    assert "secret" not in str(caught.value)


def test_at_predict_any_value_may_be_missing():
    vectorizer = fitted(made_up())
    row = pd.DataFrame({name: [None] for name in made_up(1).columns})
    assert np.isfinite(vectorizer.transform(row)).all()
    later = made_up(5).astype({"age": float, "left": object, "visits": float})
    later.loc[0, ["age", "visits", "left"]] = np.nan
    found = features(vectorizer, later)
    assert found["age"][0] == found["visits"][0] == found["left"][0] == 0


def test_paragraphs_come_out_without_features():
    words = np.random.default_rng(0).choice(["it", "was", "the", "best", "of", "times"], (3000, 60))
    prose = [" ".join(part) for part in words]
    with pytest.warns(NoisyEstimateWarning, match="'story'"):
        vectorizer = DPTableVectorizer(random_state=0).fit(pd.DataFrame({"story": prose}))
    assert vectorizer.get_feature_names_out().tolist() == ["story=other", "story=missing"]


def test_labels_that_are_missing():
    table = made_up()
    y = np.where(table["left"], 1.0, 0.0)
    y[3] = np.nan
    with pytest.raises(ValueError, match=r"Input (y )?contains NaN"):
        dp_tabular_pipeline("classifier").fit(table, y)
    # with public classes it is a null row
    model = dp_tabular_pipeline("classifier", classes=[0.0, 1.0], epsilon=4.0)
    assert model.fit(table, y).score(table.drop(index=3), np.delete(y, 3)) > 0.9
    with pytest.raises(ValueError, match="contains NaN"):
        dp_tabular_pipeline("regressor").fit(table, y)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Streams of Parquet files and of other data sets of Arrow."""

import builtins
import datetime
import decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from skdp import DPLogisticRegression, PrivacyBudget
from skdp.io import stream_parquet
from tests.streams._ways import assert_same_fit

RNG = np.random.default_rng(0)
N_ROWS = 20_000
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(0, 100, N_ROWS),
        "income": RNG.normal(size=N_ROWS),
        "retired": RNG.random(N_ROWS) < 0.5,
        "children": RNG.integers(0, 5, N_ROWS).astype(np.uint8),
        "weight": RNG.normal(size=N_ROWS).astype(np.float32),
    }
)
FRAME["label"] = np.where(FRAME["income"] > 0, "rich", "poor")
FEATURES = list(FRAME.columns[:-1])
MODEL = DPLogisticRegression(data_norm=100.0, max_iter=4, solver="gd", random_state=0)


def written(folder, n_files=3):
    """Write the rows into files of odd lengths and row groups; return where."""
    cuts = [*np.linspace(0, N_ROWS - 7, n_files).astype(int), N_ROWS]
    for number, (start, stop) in enumerate(pairwise(cuts)):
        table = pa.Table.from_pandas(FRAME.iloc[start:stop], preserve_index=False)
        parquet.write_table(table, folder / f"part-{number:02}.parquet", row_group_size=777)
    return folder


def test_files_give_the_fit_to_what_pandas_reads(tmp_path):
    read = pd.read_parquet(written(tmp_path))
    files = sorted(tmp_path.glob("*.parquet"))
    ways = [
        tmp_path, str(tmp_path), str(tmp_path / "*.parquet"), files, [str(f) for f in files],
        dataset.dataset(tmp_path), pa.Table.from_pandas(read, preserve_index=False),
        parquet.read_table(tmp_path),
    ]  # fmt: skip
    streams = [stream_parquet(path, target="label") for path in ways]
    inside = assert_same_fit(MODEL, (read[FEATURES], read["label"]), *streams)
    assert list(inside.feature_names_in_) == FEATURES
    assert list(inside.classes_) == ["poor", "rich"]


def test_one_file_and_columns_in_another_order(tmp_path):
    written(tmp_path, n_files=1)
    path = tmp_path / "part-00.parquet"
    columns = ["weight", "income", "age"]
    read = pd.read_parquet(path, columns=[*columns, "retired"])
    stream = stream_parquet(path, target="retired", columns=columns)
    assert_same_fit(MODEL, (read[columns], read["retired"]), stream)


@pytest.mark.parametrize("columns", [["weight"], ["weight", "children"], ["age", "weight"]])
def test_single_precision_is_kept_where_no_column_needs_more(tmp_path, columns):
    path = tmp_path / "a.parquet"
    FRAME.to_parquet(path)
    read = pd.read_parquet(path)
    X, y = stream_parquet(path, target="retired", columns=columns)
    kind = np.float64 if "age" in columns else np.float32
    assert X.read(0, 3).dtype == kind
    assert_same_fit(MODEL, (read[columns], read["retired"]), (X, y))


def test_files_are_read_in_the_order_of_their_names(tmp_path):
    for number in (10, 2, 1):
        table = pa.table({"a": [float(number)]})
        parquet.write_table(table, tmp_path / f"{number:02}.parquet")
    for path in (tmp_path, tmp_path / "*.parquet"):
        assert stream_parquet(path).read(0, 3).ravel().tolist() == [1.0, 2.0, 10.0]
    given = [tmp_path / "10.parquet", tmp_path / "01.parquet"]
    assert stream_parquet(given).read(0, 2).ravel().tolist() == [10.0, 1.0]


def test_folders_may_be_columns(tmp_path):
    table = pa.Table.from_pandas(FRAME[["income", "children", "label"]], preserve_index=False)
    dataset.write_dataset(table, tmp_path, format="parquet", partitioning=["children"],
                          partitioning_flavor="hive")  # fmt: skip
    X, y = stream_parquet(tmp_path, target="label", columns=["income", "children"])
    order = np.argsort(FRAME["children"], kind="stable")
    assert X.shape == (N_ROWS, 2)
    np.testing.assert_array_equal(np.sort(X.read(0, N_ROWS)[:, 1]), FRAME["children"][order])
    assert set(y.read(0, N_ROWS)) == {"poor", "rich"}


def test_decimals_are_the_nearest_floats():
    exact = [decimal.Decimal(text) for text in ("0.3", "-7.1", "12345678901.123456789", "1e-9")]
    column = pa.array(exact, pa.decimal128(38, 9))
    X, y = stream_parquet(pa.table({"a": column, "y": column}), target="y")
    for stream in (X, y):
        assert stream.read(0, 4).ravel().tolist() == [float(number) for number in exact]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (pa.array(["918273"]), "string"),
        (pa.array(["918273"]).dictionary_encode(), "dictionary"),
        (pa.array([datetime.date(1918, 2, 7)]), "date32"),
        (pa.array([datetime.datetime(1918, 2, 7)]), "timestamp"),
        (pa.array([datetime.timedelta(918273)]), "duration"),
        (pa.array([[918273.0]]), "list"),
        (pa.array([{"x918273": 1}]), "struct"),
        (pa.array([b"918273"]), "binary"),
        (pa.array([None]), "null"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_columns_that_are_no_numbers_are_named(values, named):
    table = pa.table({"fine": [1.0], "birthday": values})
    with pytest.raises(TypeError, match=rf"column 'birthday' is of type {named}") as caught:
        stream_parquet(table)
    assert "918273" not in str(caught.value)
    assert stream_parquet(table, columns=["fine"]).shape == (1, 1)
    if named not in ("string", "dictionary"):
        with pytest.raises(TypeError, match=rf"column 'birthday' is of type {named}"):
            stream_parquet(table, target="birthday")
    # the same in memory
    with pytest.raises(TypeError, match=rf"column 'birthday' is of type {named}"):
        MODEL.fit(table, [0])


@pytest.mark.parametrize("kind", [pa.float32(), pa.int16(), pa.bool_(), pa.decimal128(5, 2)])
@pytest.mark.parametrize("name", ["a", "y"])
def test_nulls_are_refused_before_anything_is_charged(kind, name):
    budget = PrivacyBudget(9.0, 1e-3)
    parts = {"a": pa.array([1.0, 0.0] * 9), "y": pa.array([0, 1] * 9)}
    parts[name] = pa.array([1, 0] * 8 + [1, None], pa.int8()).cast(kind)
    model = DPLogisticRegression(budget=budget)
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(*stream_parquet(pa.table(parts), target="y"))
    assert budget.spent == (0.0, 0.0)


def test_missing_text_is_refused_before_anything_is_charged():
    budget = PrivacyBudget(9.0, 1e-3)
    for text in (pa.array(["b", "a", None]), pa.array(["b", "a", None]).dictionary_encode()):
        table = pa.table({"a": [1.0, 2.0, 3.0], "y": text})
        with pytest.raises(ValueError, match="missing values"):
            DPLogisticRegression(budget=budget).fit(*stream_parquet(table, target="y"))
    assert budget.spent == (0.0, 0.0)


def test_text_that_is_stored_as_a_dictionary_can_be_targets():
    text = pa.array(FRAME["label"].astype(object)).dictionary_encode()
    table = pa.table({"a": FRAME["income"], "y": text})
    frame = FRAME[["income"]].rename(columns={"income": "a"})
    labels = FRAME["label"].astype(object)
    assert_same_fit(MODEL, (frame, labels), stream_parquet(table, target="y"))


def test_values_that_do_not_fit_are_not_quoted(tmp_path):
    parquet.write_table(pa.table({"a": pa.array([1], pa.int8())}), tmp_path / "0.parquet")
    parquet.write_table(pa.table({"a": pa.array([918273])}), tmp_path / "1.parquet")
    X = stream_parquet(tmp_path)
    with pytest.raises(ValueError, match="cannot be read") as caught:
        X.read(0, 2)
    assert "918273" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"target": "z"}, "target must be one of the columns"),
        ({"columns": ["z"]}, "columns must be names"),
        ({"columns": ["a", "y"], "target": "y"}, "columns must be names"),
        ({"columns": []}, "at least one name"),
        ({"columns": ["a", "a"]}, "each once"),
    ],
)
def test_names_that_are_not_there_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        stream_parquet(pa.table({"a": [1.0], "y": [1]}), **options)


def test_columns_of_one_name_are_refused():
    table = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], ["a", "a"])
    with pytest.raises(ValueError, match="once"):
        stream_parquet(table)


def test_paths_that_are_not_there(tmp_path):
    for path in (tmp_path / "no", str(tmp_path / "*.parquet"), [tmp_path / "no"]):
        with pytest.raises(FileNotFoundError):
            stream_parquet(path)


def test_without_pyarrow_it_says_what_to_install(monkeypatch):
    find = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "pyarrow":
            raise ImportError(name)
        return find(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "skdp\[arrow\]"'):
        stream_parquet("people.parquet")


def test_few_batches_are_held(tmp_path, monkeypatch):
    """Arrow's memory stays far below the size of the file, which is read twice."""
    monkeypatch.setattr("skdp.io._streams.BATCH_ROWS", 5000)
    path = tmp_path / "a.parquet"
    n_rows, wide = 250_000, RNG.random((250_000, 60), dtype=np.float32)
    table = pa.table({f"x{j}": column for j, column in enumerate(wide.T)})
    parquet.write_table(table, path, row_group_size=5000)
    size = table.nbytes
    del table, wide
    pool = pa.default_memory_pool()
    before, most = pool.bytes_allocated(), 0
    X = stream_parquet(path)
    for _ in range(2):
        for block in X.blocks(5000):
            most = max(most, pool.bytes_allocated() - before)
            assert block.shape[1] == 60
    assert X.shape[0] == n_rows
    assert most < size / 2

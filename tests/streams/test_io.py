# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Streams from files: arrays on disk, HDF5, Zarr, Parquet."""

import builtins
import datetime
import decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet
from scipy import sparse

from skdp import DPLogisticRegression, PrivacyBudget
from skdp.io import RowStream, stream_arrays, stream_chunks, stream_parquet
from tests.streams._ways import OnDisk, assert_same_fit, chunked

# Streams of chunks and of arrays on disk: what they give, and what they refuse.


RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = (X[:, 0] > 0).astype(int)
SECRET = 918273.645
MODEL = DPLogisticRegression(data_norm=3.0, max_iter=3, solver="gd", random_state=0)


def whole(stream):
    return np.concatenate(list(stream.blocks(97)))


def refused(chunks, error, match, **options):
    """Assert that a fit raises, in `stream_chunks` or in the first pass, and charges nothing."""
    budget = PrivacyBudget(9.0, 1e-3)
    model = DPLogisticRegression(**{"data_norm": 1.0, **MODEL.get_params(), "budget": budget})

    def fit():
        streams = stream_chunks(chunks, **options)
        X, *others = streams if isinstance(streams, tuple) else (streams, None)
        model.fit(X, others[0], groups=others[1] if len(others) > 1 else None)

    with pytest.raises(error, match=match) as caught:
        fit()
    assert str(SECRET) not in str(caught.value)
    assert budget.spent == (0.0, 0.0)


def test_chunks_give_the_rows_however_they_are_cut():
    for cuts in (None, [0, 300], [*range(301)], [0, 299, 300]):
        rows, targets = chunked(X, Y, cuts)
        assert isinstance(rows, RowStream)
        assert rows.shape == (300, 3)
        assert targets.shape == (300,)
        assert len(rows) == 300
        np.testing.assert_array_equal(whole(rows), X)
        np.testing.assert_array_equal(whole(targets), Y)


def test_ranges_are_read_in_any_order():
    rows, targets = chunked(X, Y)
    for start, stop in [(0, 300), (290, 300), (0, 1), (5, 5), (7, 200), (200, 201), (100, 300)]:
        np.testing.assert_array_equal(rows.read(start, stop), X[start:stop])
        np.testing.assert_array_equal(targets.read(start, stop), Y[start:stop])
    np.testing.assert_array_equal(rows.table.take(np.array([0, 7, 8, 299]))[0], X[[0, 7, 8, 299]])
    assert rows.table.take(np.array([], dtype=np.int64))[0].shape == (0, 3)


@pytest.mark.sample(2)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.Table.from_pandas], ids=str)
def test_chunks_may_be_data_frames(frame):
    table = pd.DataFrame({"a": X[:, 0], "label": Y, "b": X[:, 1], "flag": X[:, 2] > 0})
    chunks = [frame(table.iloc[rows].to_dict("list")) if frame is pl.DataFrame
              else frame(table.iloc[rows]) for rows in (slice(0, 7), slice(7, 300))]  # fmt: skip
    features = table.drop(columns="label")
    streams = stream_chunks(chunks, target="label")
    inside = assert_same_fit(MODEL, (features, table["label"]), streams)
    assert list(inside.feature_names_in_) == ["a", "b", "flag"]


def test_record_batches_are_chunks():
    table = pa.table({"a": X[:, 0], "label": Y, "b": X[:, 1]})
    streams = stream_chunks(table.to_batches(max_chunksize=31), target="label")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    assert_same_fit(MODEL, (frame, Y), streams, stream_chunks([(table.select(["a", "b"]), Y)]))


def test_a_csv_file_is_read_in_chunks_and_closed(tmp_path):
    path = tmp_path / "people.csv"
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=Y)
    table.to_csv(path, index=False)
    opened = []

    def chunks():
        opened.append(pd.read_csv(path, chunksize=41))
        return opened[-1]

    read = pd.read_csv(path)
    streams = stream_chunks(chunks, target="label")
    assert_same_fit(MODEL, (read[["a", "b", "c"]], read["label"]), streams)
    # a look at the first chunk, the first pass, and another: few rows are kept from then on
    assert len(opened) == 3
    assert all(reader.handles.handle.closed for reader in opened)


def test_generator_functions_and_lists_are_read_again_and_again():
    def chunks():
        yield X[:100], Y[:100]
        yield X[100:], Y[100:]

    assert_same_fit(MODEL, (X, Y), stream_chunks(chunks), stream_chunks(list(chunks())))


def test_rows_may_be_lists():
    listed = [(X[:3].tolist(), Y[:3].tolist()), (X[3:].tolist(), Y[3:].tolist())]
    assert_same_fit(MODEL, (X, Y), stream_chunks(listed))


@pytest.mark.parametrize(
    "chunks",
    [iter([X]), (part for part in [X]), map(np.asarray, [X])],
    ids=["iterator", "generator", "map"],
)
def test_iterators_are_refused(chunks):
    refused(chunks, TypeError, "only once.*pass a function")


@pytest.mark.parametrize("chunks", ["people.csv", Path("people.csv"), X, X[0], pd.DataFrame(X)])
def test_a_path_or_one_table_is_no_list_of_chunks(chunks):
    with pytest.raises(TypeError, match=r"a list of blocks of rows, or a function .*; got a"):
        stream_chunks(chunks)


def test_functions_that_return_the_same_iterator_are_refused():
    iterator = iter([(X, Y)])
    refused(lambda: iterator, TypeError, "the same iterator every time")


UNUSABLE = {
    "no chunk": ([], ValueError, "at least one chunk"),
    "no rows": ([(X[:0], Y[:0])], ValueError, "0 sample"),
    "wide": ([(X, Y), (X[:, :2], Y)], ValueError, "the same features: one has 3 .*another 2"),
    "one dimension": ([(X[:, 0], Y)], ValueError, "Expected 2D array"),
    "y is short": ([(X, Y[:-1])], ValueError, "one target for each"),
    "y is wide": ([(X, np.c_[Y, Y])], ValueError, "one target for each"),
    "no y": ([X], ValueError, "requires y"),
    "y is None": ([(X, None)], ValueError, "y is None"),
    "later without y": ([(X, Y), X], ValueError, "must all be"),
    "four parts": ([(X, Y, Y, Y)], ValueError, "tuple of 4"),
    "later without groups": ([(X, Y, Y), (X, Y)], ValueError, "as many parts"),
    "groups are None": ([(X, Y, None)], ValueError, "groups are None"),
    "groups are short": ([(X, Y, Y[1:])], ValueError, "one group for each"),
    "triple without y later": ([(X, Y, Y), (X, None, Y)], ValueError, "y is None"),
    "NaN at last": ([(X, Y), (np.full((1, 3), np.nan), [0])], ValueError, "contains NaN"),
    "infinite": ([(X, Y), (np.full((1, 3), np.inf), [0])], ValueError, "contains infinity"),
    "NaN in y": ([(X, Y), (X[:1], [np.nan])], ValueError, "contains NaN"),
    "text": ([(X, Y), (np.array([[f"{SECRET}x"] * 3]), [0])], ValueError, "must be numeric"),
    "objects": ([(np.array([[{SECRET}] * 3]), [0])], (TypeError, ValueError), "."),
    "huge integers": ([(np.array([[10**400] * 3], dtype=object), [0])], Exception, "."),
    "a dict": ([({"a": [SECRET]}, [0])], TypeError, "got a dict"),
    "complex": ([(X + SECRET * 1j, Y)], ValueError, "Complex"),
    "sparse and dense": ([(X, Y), (sparse.csr_array(X), Y)], ValueError, "all be sparse"),
    "labels of two kinds": ([(X, Y), (X, Y.astype(str))], ValueError, "of one type"),
    "dates": ([(pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}), [0])], TypeError, "datetime"),
    "not iterable": (lambda: 3, TypeError, "not iterable"),
    "a number": (3, TypeError, "not iterable"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNUSABLE)
def test_unusable_chunks_are_refused_before_anything_is_charged(name):
    refused(*UNUSABLE[name])


WHOSE = RNG.integers(0, 90, 300)
NAMED = np.array([f"person {i}" for i in WHOSE], dtype=object)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_chunks_may_have_a_column_of_groups(frame):
    table = pd.DataFrame({"a": X[:, 0], "who": NAMED, "label": Y, "b": X[:, 1]})
    chunks = [frame(table.iloc[rows].to_dict("list")) for rows in (slice(0, 7), slice(7, 300))]
    streams = stream_chunks(chunks, target="label", groups="who")
    given = dict(zip(("X", "y", "groups"), streams, strict=True))
    features = {"X": table[["a", "b"]], "y": table["label"]}
    inside = assert_same_fit(MODEL, {**features, "groups": WHOSE}, given)
    assert list(inside.feature_names_in_) == ["a", "b"]
    assert inside.ledger_.unit == "group"
    # or a column of its own, in memory
    rows, labels, _ = streams
    for column in (table["who"], table["who"].astype("category"), pl.Series(NAMED.tolist()),
                   pa.chunked_array([NAMED[:9].tolist(), NAMED[9:].tolist()])):  # fmt: skip
        beside = {"X": rows, "y": labels, "groups": column}
        assert_same_fit(MODEL, {**features, "groups": column}, beside, given)


def test_sparse_chunks_have_groups():
    model = DPLogisticRegression(data_norm=3.0, max_iter=3, random_state=0)
    rows = sparse.csr_array(np.where(np.abs(X) > 1, X, 0))
    inside = {"X": rows, "y": Y, "groups": WHOSE}
    assert_same_fit(model, inside, chunked(rows, Y, groups=NAMED))


def test_a_wrong_number_of_rows_is_refused():
    refused([(X, Y)], ValueError, "300 rows; n_rows is 200", n_rows=200)
    assert_same_fit(MODEL, (X, Y), stream_chunks([(X, Y)], n_rows=300))


def test_targets_must_be_columns():
    frames = [pd.DataFrame({"a": [1.0], "y": [0]}), pd.DataFrame({"a": [1.0]})]
    refused(frames, ValueError, "column of every chunk", target="b")
    refused(frames, ValueError, "column of every chunk", target="y")
    refused([X], ValueError, "column of every chunk", target="y")
    refused(frames, ValueError, "groups must be a column", target="y", groups="person")
    refused([(X, Y)], ValueError, "targets and groups as parts; got groups", groups="person")
    refused([(X, Y)], ValueError, "have targets and groups as parts; got target", target="y")
    twice = pd.DataFrame([[1.0, 2.0, 0]], columns=["a", "y", "y"])
    refused([twice], ValueError, "one target for each", target="y")


@pytest.mark.parametrize(("n_later", "match"), [(299, "ended early"), (301, "more rows")])
def test_chunks_with_other_rows_the_next_time_are_refused(n_later, match):
    passes = []

    def chunks():
        passes.append(None)
        # the first look and the first pass
        n_rows = 300 if len(passes) <= 2 else n_later
        yield np.resize(X, (n_rows, 3)), np.resize(Y, n_rows)

    with pytest.raises(ValueError, match=match):
        MODEL.fit(*stream_chunks(chunks))


def test_streams_do_not_become_arrays_unasked():
    rows, _ = chunked(X, Y)
    with pytest.raises(TypeError, match="not an array"):
        np.asarray(rows)
    assert "RowStream" in repr(rows)


def test_arrays_on_disk_are_read_once_a_pass_in_whole_stored_chunks():
    for chunks in (None, (7, 3), (130, 2), (1000, 3)):
        disk, labels = OnDisk(X, chunks), OnDisk(Y)
        rows, targets = stream_arrays(disk, labels)
        rows.table._kept = None
        for start in range(0, 300, 50):
            np.testing.assert_array_equal(rows.read(start, start + 50), X[start : start + 50])
        starts = [start for start, _ in disk.reads]
        assert len(set(starts)) == len(starts)
        assert all(start % (chunks or (1,))[0] == 0 for start in starts)
        assert_same_fit(MODEL, (X, Y), (rows, targets))


@pytest.mark.full
def test_wide_arrays_on_disk_are_read_a_few_rows_at_a_time():
    wide = OnDisk(np.zeros((100, 1 << 20), dtype=np.int8))
    rows = stream_arrays(wide)
    assert [block.shape[0] for block in rows.blocks(50)] == [50, 50]
    assert max(stop - start for start, stop in wide.reads) == 8


def test_arrays_of_other_shapes_are_refused():
    with pytest.raises(TypeError, match="X must be an array of 2"):
        stream_arrays(X[:, 0])
    with pytest.raises(TypeError, match=r"X must be .*; got a list"):
        stream_arrays(X.tolist())
    with pytest.raises(TypeError, match="y must be an array of 1"):
        stream_arrays(X, Y[:, None])
    with pytest.raises(ValueError, match="the same number of rows; got 300 and 299"):
        stream_arrays(X, Y[1:])


# Streams of Parquet files and of other data sets of Arrow.


PARQUET_RNG = np.random.default_rng(0)
N_ROWS = 20_000
FRAME = pd.DataFrame(
    {
        "age": PARQUET_RNG.integers(0, 100, N_ROWS),
        "income": PARQUET_RNG.normal(size=N_ROWS),
        "retired": PARQUET_RNG.random(N_ROWS) < 0.5,
        "children": PARQUET_RNG.integers(0, 5, N_ROWS).astype(np.uint8),
        "weight": PARQUET_RNG.normal(size=N_ROWS).astype(np.float32),
    }
)
FRAME["label"] = np.where(FRAME["income"] > 0, "rich", "poor")
FEATURES = list(FRAME.columns[:-1])
PARQUET_MODEL = DPLogisticRegression(data_norm=100.0, max_iter=4, solver="gd", random_state=0)


def written(folder, n_files=3):
    """Write the rows into files of odd lengths and row groups; return where."""
    cuts = [*np.linspace(0, N_ROWS - 7, n_files).astype(int), N_ROWS]
    for number, (start, stop) in enumerate(pairwise(cuts)):
        table = pa.Table.from_pandas(FRAME.iloc[start:stop], preserve_index=False)
        parquet.write_table(table, folder / f"part-{number:02}.parquet", row_group_size=777)
    return folder


@pytest.mark.full
def test_files_give_the_fit_to_what_pandas_reads(tmp_path):
    read = pd.read_parquet(written(tmp_path))
    files = sorted(tmp_path.glob("*.parquet"))
    ways = [
        tmp_path, str(tmp_path), str(tmp_path / "*.parquet"), files, [str(f) for f in files],
        dataset.dataset(tmp_path), pa.Table.from_pandas(read, preserve_index=False),
        parquet.read_table(tmp_path),
    ]  # fmt: skip
    streams = [stream_parquet(path, target="label") for path in ways]
    inside = assert_same_fit(PARQUET_MODEL, (read[FEATURES], read["label"]), *streams)
    assert list(inside.feature_names_in_) == FEATURES
    assert list(inside.classes_) == ["poor", "rich"]


def test_files_have_a_column_of_groups(tmp_path):
    table = pa.table({"a": X[:, 0], "who": NAMED.tolist(), "b": X[:, 1], "label": Y})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=77)
    given = dict(
        zip(("X", "y", "groups"), stream_parquet(tmp_path, target="label", groups="who"),
            strict=True)
    )  # fmt: skip
    frame = table.to_pandas()
    assert_same_fit(MODEL, {"X": frame[["a", "b"]], "y": Y, "groups": frame["who"]}, given)
    rows, whose = stream_parquet(table.drop_columns("label"), groups="who")
    assert (rows.shape, whose.read(0, 300).tolist()) == ((300, 2), NAMED.tolist())
    with pytest.raises(ValueError, match="groups must be one of the columns; got 'person'"):
        stream_parquet(table, groups="person")
    with pytest.raises(ValueError, match="different columns; got 'who' for both"):
        stream_parquet(table, target="who", groups="who")
    with pytest.raises(ValueError, match="other than target and groups"):
        stream_parquet(table, groups="who", columns=["a", "who"])
    with pytest.raises(TypeError, match="groups must be numbers, booleans or text"):
        stream_parquet(table.append_column("day", [[datetime.date(2020, 1, 1)] * 300]),
                       groups="day", columns=["a"])  # fmt: skip


def test_one_file_and_columns_in_another_order(tmp_path):
    written(tmp_path, n_files=1)
    path = tmp_path / "part-00.parquet"
    columns = ["weight", "income", "age"]
    read = pd.read_parquet(path, columns=[*columns, "retired"])
    stream = stream_parquet(path, target="retired", columns=columns)
    assert_same_fit(PARQUET_MODEL, (read[columns], read["retired"]), stream)


@pytest.mark.sample(1)
@pytest.mark.parametrize("columns", [["weight"], ["weight", "children"], ["age", "weight"]])
def test_single_precision_is_kept_where_no_column_needs_more(tmp_path, columns):
    path = tmp_path / "a.parquet"
    FRAME.to_parquet(path)
    read = pd.read_parquet(path)
    X, y = stream_parquet(path, target="retired", columns=columns)
    kind = np.float64 if "age" in columns else np.float32
    assert X.read(0, 3).dtype == kind
    assert_same_fit(PARQUET_MODEL, (read[columns], read["retired"]), (X, y))


def test_files_are_scanned_part_by_part(tmp_path, monkeypatch):
    # a scan that is closed goes on to its end: a pass that ends early must not read a whole file
    monkeypatch.setattr("skdp.io.PART_ROWS", 25)
    rows = np.arange(100.0)
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"a": rows}), path, row_group_size=10)
    X = stream_parquet(path)
    parts = [part.row_groups for part in X.table._make._parts()]
    assert [sum(group.num_rows for group in part) for part in parts] == [30, 30, 30, 10]
    np.testing.assert_array_equal(np.concatenate(list(X.blocks(7))).ravel(), rows)
    few = dataset.dataset(path).filter(dataset.field("a") >= 95)
    found = np.concatenate(list(stream_parquet(few).blocks()))
    np.testing.assert_array_equal(found.ravel(), rows[95:])


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
        PARQUET_MODEL.fit(table, [0])


@pytest.mark.parametrize("kind", [pa.float32(), pa.int16(), pa.bool_(), pa.decimal128(5, 2)])
@pytest.mark.parametrize("name", ["a", "y"])
def test_nulls_are_refused_before_anything_is_charged(kind, name):
    budget = PrivacyBudget(9.0, 1e-3)
    parts = {"a": pa.array([1.0, 0.0] * 9), "y": pa.array([0, 1] * 9)}
    parts[name] = pa.array([1, 0] * 8 + [1, None], pa.int8()).cast(kind)
    model = DPLogisticRegression(budget=budget, data_norm=1.0)
    with pytest.raises(ValueError, match=r"contains (NaN|missing values)"):
        model.fit(*stream_parquet(pa.table(parts), target="y"))
    assert budget.spent == (0.0, 0.0)


def test_missing_text_is_refused_before_anything_is_charged():
    budget = PrivacyBudget(9.0, 1e-3)
    for text in (pa.array(["b", "a", None]), pa.array(["b", "a", None]).dictionary_encode()):
        table = pa.table({"a": [1.0, 2.0, 3.0], "y": text})
        with pytest.raises(ValueError, match="missing values"):
            DPLogisticRegression(budget=budget, data_norm=1.0).fit(
                *stream_parquet(table, target="y")
            )
    assert budget.spent == (0.0, 0.0)


def test_text_that_is_stored_as_a_dictionary_can_be_targets():
    text = pa.array(FRAME["label"].astype(object)).dictionary_encode()
    table = pa.table({"a": FRAME["income"], "y": text})
    frame = FRAME[["income"]].rename(columns={"income": "a"})
    labels = FRAME["label"].astype(object)
    assert_same_fit(PARQUET_MODEL, (frame, labels), stream_parquet(table, target="y"))


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


@pytest.mark.full
def test_few_batches_are_held(tmp_path, monkeypatch):
    """Arrow's memory stays far below the size of the file, which is read twice."""
    monkeypatch.setattr("skdp.io.BATCH_ROWS", 5000)
    path = tmp_path / "a.parquet"
    n_rows, wide = 250_000, PARQUET_RNG.random((250_000, 60), dtype=np.float32)
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

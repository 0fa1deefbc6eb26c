# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""With a public label set, a label that is not in it is a null row, whatever it is."""

import math
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone

from skdp import (
    DPGridSearchCV,
    DPHingeSVM,
    DPLogisticRegression,
    FederatedDPLogisticRegression,
    LocalDPLogisticRegression,
)
from skdp._rows.dask import Sealed, with_targets
from skdp.exceptions import NoisyEstimateWarning, PrivacyWarning
from skdp.io import stream_arrays, stream_chunks, stream_parquet

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(40, 3))
NUMBERS = (X[:, 0] > 0).astype(int)
WORDS = np.where(NUMBERS == 1, "yes", "no").astype(object)


class Odd:
    """Neither has a hash nor can be compared."""

    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("no")


STRANGE = {
    "a half": 0.5, "another number": 7, "huge": 10**400, "above floats": 2**53 + 1,
    "infinite": np.inf, "NaN": np.nan, "None": None, "NA": pd.NA, "NaT": pd.NaT, "text": "maybe",
    "text of a class": "1", "bytes": b"yes", "complex": 1 + 1j, "a list": [1], "lists": [0, [1]],
    "an array": np.ones(2), "a date": np.datetime64("2020-01-01"), "odd": Odd(), "empty": "",
}  # fmt: skip
MODELS = {
    "logistic": DPLogisticRegression(max_iter=2, random_state=0, data_norm=1.0),
    "hinge": DPHingeSVM(max_iter=2, random_state=0, data_norm=1.0),
    "objective": DPLogisticRegression(mechanism="objective", random_state=0, data_norm=1.0),
    "federated": FederatedDPLogisticRegression(max_iter=2, random_state=0),
    "local": LocalDPLogisticRegression(random_state=0),
}
#: what cannot be read as text is a label that no class has
CLASSES = {"numbers": (NUMBERS, [0, 1], 9), "words": (WORDS, ["no", "yes"], "other")}


def fitted(name, X, y, classes):
    model = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return type(model)(**{**model.get_params(deep=False), "classes": classes}).fit(X, y).coef_


def replaced(labels, at, label):
    labels = labels.astype(object)
    labels[at] = label
    return labels


@pytest.mark.sample(6, 15)
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("strange", STRANGE)
def test_a_label_of_any_type_is_a_null_row(strange, kind):
    labels, classes, outside = CLASSES[kind]
    expected = fitted("logistic", X, replaced(labels, 3, outside), classes)
    odd = np.empty(40, dtype=object)
    odd[:] = labels
    odd[3] = STRANGE[strange]
    listed = labels.tolist()
    listed[3] = STRANGE[strange]
    # one entry of a list decides about no other
    for y in (odd, listed, tuple(listed), odd[:, None]):
        assert_array_equal(fitted("logistic", X, y, classes), expected)
    # and in a stream
    chunks = [(X[:20], listed[:20]), (X[20:], odd[20:])]
    assert_array_equal(fitted("logistic", *stream_chunks(chunks), classes), expected)
    assert_array_equal(fitted("logistic", *stream_arrays(X, odd), classes), expected)


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("strange", [0.5, np.nan, np.inf, "maybe", None], ids=str)
def test_all_classifiers(name, strange):
    expected = fitted(name, X, replaced(NUMBERS, 3, 9), [0, 1])
    assert_array_equal(fitted(name, X, replaced(NUMBERS, 3, strange), [0, 1]), expected)
    if isinstance(strange, float):
        floats = replaced(NUMBERS, 3, strange).astype(float)
        assert_array_equal(fitted(name, X, floats, [0, 1]), expected)


@pytest.mark.sample(8)
@pytest.mark.parametrize("classes", [[0, 1], [0.0, 1.0], [False, True], range(2), range(6)])
@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, bool, object])
def test_labels_that_are_equal_are_the_same(classes, dtype):
    expected = fitted("logistic", X, NUMBERS, list(classes))
    assert_array_equal(fitted("logistic", X, NUMBERS.astype(dtype), classes), expected)
    assert_array_equal(fitted("logistic", X, NUMBERS.astype(dtype).tolist(), classes), expected)


def test_columns_of_other_libraries_hold_missing_labels():
    expected = fitted("logistic", X, replaced(NUMBERS, 3, 9), [0, 1])
    missing = [None if i == 3 else int(label) for i, label in enumerate(NUMBERS)]
    for y in (
        pd.Series(missing, dtype="Int64"), pd.Series(missing), pl.Series(missing),
        pa.array(missing), pa.chunked_array([missing[:5], missing[5:]]),
        pd.Series(missing).astype("category"),
    ):  # fmt: skip
        assert_array_equal(fitted("logistic", X, y, [0, 1]), expected)
    words = [None if i == 3 else word for i, word in enumerate(WORDS)]
    expected = fitted("logistic", X, replaced(WORDS, 3, "other"), ["no", "yes"])
    for y in (
        pd.Series(words), pd.Series(words, dtype="string"), pl.Series(words), pa.array(words),
        pa.array(words).dictionary_encode(),
    ):  # fmt: skip
        assert_array_equal(fitted("logistic", X, y, ["no", "yes"]), expected)
    table = pa.table({**{f"f{i}": X[:, i] for i in range(3)}, "y": words})
    streamed = stream_parquet(table, target="y")
    assert_array_equal(fitted("logistic", *streamed, ["no", "yes"]), expected)


def test_a_gap_among_labels_decides_about_no_other():
    # whole numbers beside a gap are floats to numpy, and there all of these are the class 2^53
    large = [2**53 + int(label) for label in NUMBERS]
    expected = fitted("logistic", X, replaced(np.array(large), 3, 9), [2**53, 2**60])
    gaps = [None if i == 3 else label for i, label in enumerate(large)]
    columns = {
        "pandas": pd.Series(gaps, dtype="Int64"), "array": pd.array(gaps, dtype="Int64"),
        "Arrow in pandas": pd.Series(gaps, dtype="int64[pyarrow]"),
        "categories": pd.Series(gaps, dtype="Int64").astype("category"),
        "frame": pd.DataFrame({"y": pd.Series(gaps, dtype="Int64")}),
        "polars": pl.Series(gaps), "Arrow": pa.array(gaps),
        "parts": pa.chunked_array([gaps[:5], gaps[5:]]),
    }  # fmt: skip
    for name, y in columns.items():
        assert_array_equal(fitted("logistic", X, y, [2**53, 2**60]), expected, name)
    # and in a chunk
    for name in ("pandas", "polars", "Arrow"):
        y = columns[name]
        streams = stream_chunks([(X[:20], y[:20]), (X[20:], y[20:])])
        assert_array_equal(fitted("logistic", *streams, [2**53, 2**60]), expected, name)
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": columns["Arrow"]})
    streams = stream_parquet(table, target="y")
    assert_array_equal(fitted("logistic", *streams, [2**53, 2**60]), expected)


#: labels of a chunk of one row, and those of all other chunks: numpy would make text of these, or
#: floats, of which two are one
BESIDE = {
    "text": (np.array(["maybe"]), 0, [0, 1]),
    "a list of text": (["maybe"], 0, [0, 1]),
    "bytes": (np.array([b"maybe"]), 0, [0, 1]),
    "a float": (np.array([0.5]), 2**53, [2**53, 2**60]),
    "no number": ([np.nan], 2**53, [2**53, 2**60]),
    "beyond int64": (np.array([2**63], dtype=np.uint64), -(2**53), [-(2**53) - 2, -(2**53)]),
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_chunk_with_labels_of_another_type_decides_about_no_other(name):
    odd, least, classes = BESIDE[name]
    labels = least + NUMBERS
    expected = fitted("logistic", X, replaced(labels, 39, None), classes)
    chunks = [(X[:39], labels[:39]), (X[39:], odd)]
    assert_array_equal(fitted("logistic", *stream_chunks(chunks), classes), expected)
    one = with_targets((X, None), labels[:39], Sealed(slice(None)), odd, Sealed(slice(None)))
    table = dict(zip(one[1].tolist()[:39], labels[:39].tolist(), strict=True))
    assert all(found == given for found, given in table.items())
    assert_array_equal(fitted("logistic", X, one[1], classes), expected)


#: columns of data frames that say what they are
COLUMNS = [
    pd.Series, partial(pd.Series, dtype=object), partial(pd.Series, dtype="category"), pl.Series,
    pa.array, lambda y: pa.array(y).dictionary_encode(), lambda y: pd.DataFrame({"y": y}),
]  # fmt: skip


@pytest.mark.parametrize("make", COLUMNS)
def test_a_column_that_is_text_in_one_chunk_and_numbers_in_another_is_refused(make):
    text = make(["maybe", *map(str, NUMBERS[21:])])
    numbers = pd.Series(NUMBERS[:20])
    for first, second in ((numbers, text), (text, numbers)):
        chunks = stream_chunks([(X[:20], first), (X[20:], second)])
        with pytest.raises(ValueError, match="targets of chunks must be of one type"):
            fitted("logistic", *chunks, [0, 1])


def test_readers_that_look_at_entries_are_stopped_before_one_decides_about_a_chunk(tmp_path):
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=NUMBERS)
    strange = table.astype({"label": object})
    strange.loc[25, "label"] = "?"
    expected = fitted("logistic", X, replaced(NUMBERS, 25, None), [0, 1])
    strange.to_csv(tmp_path / "rows.csv", index=False)

    def read(**options):
        return stream_chunks(
            lambda: pd.read_csv(tmp_path / "rows.csv", chunksize=10, **options), target="label"
        )

    with pytest.raises(ValueError, match="targets of chunks must be of one type"):
        fitted("logistic", *read(), [0, 1])
    assert_array_equal(fitted("logistic", *read(dtype={"label": str}), ["0", "1"]), expected)
    # gaps make floats of a chunk, and objects with numbers among them say nothing
    gaps = [pd.Series([0, 1, None]), pd.Series([0, "maybe", 1], dtype=object), pd.Series([0, 1, 1])]
    chunks = [(X[3 * i : 3 * i + 3], part) for i, part in enumerate(gaps)]
    found = fitted("logistic", *stream_chunks(chunks), [0, 1])
    assert_array_equal(found, fitted("logistic", X[:9], [0, 1, None, 0, None, 1, 0, 1, 1], [0, 1]))


@pytest.mark.parametrize("n_classes", [2, 6])
@pytest.mark.parametrize("make", [pl.Series, pa.array, partial(pd.Series, dtype="Int64")])
def test_classes_that_are_floats_are_no_other_whole_numbers_beside_a_gap(make, n_classes):
    large = [2**53 + int(label) for label in NUMBERS]
    classes = [2.0**53, *map(float, range(1, n_classes))]
    expected = fitted("logistic", X, replaced(np.array(large), 3, None), classes)
    assert_array_equal(
        fitted("logistic", X, make([None if i == 3 else y for i, y in enumerate(large)]), classes),
        expected,
    )
    # a gap is a label of nobody, and nothing else
    large[3] = 9**9
    assert_array_equal(fitted("logistic", X, make(large), classes), expected)


@pytest.mark.parametrize("odd", [0.5, "maybe"])
def test_a_list_beside_a_stream_keeps_its_entries(odd):
    # of floats all would be the class 2^53, of text none would be any
    large = [2**53 + int(label) for label in NUMBERS]
    expected = fitted("logistic", X, replaced(np.array(large), 3, 9), [2**53, 2**60])
    large[3] = odd
    found = fitted("logistic", stream_arrays(X), large, [2**53, 2**60])
    assert_array_equal(found, expected)


def test_dask():
    import dask.array as da

    expected = fitted("logistic", X, replaced(NUMBERS, 3, 9), [0, 1])
    for strange in (0.5, np.nan):
        y = replaced(NUMBERS, 3, strange).astype(float)
        parts = da.from_array(X, chunks=(15, 3)), da.from_array(y, chunks=15)
        assert_array_equal(fitted("logistic", *parts, [0, 1]), expected)
    y = replaced(NUMBERS, 3, "maybe")
    parts = da.from_array(X, chunks=(15, 3)), da.from_array(y, chunks=15)
    assert_array_equal(fitted("logistic", *parts, [0, 1]), expected)


@pytest.mark.sample(2)
@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss"])
@pytest.mark.parametrize("strange", [0.5, "maybe", None, pd.NA])
def test_a_private_search_takes_them_too(scoring, strange):
    model = DPLogisticRegression(classes=[0, 1], max_iter=2, random_state=0, data_norm=1.0)

    def best(y):
        search = DPGridSearchCV(model, {"C": [0.1, 1.0]}, scoring=scoring, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return search.fit(X, y).best_score_

    # many, so that some are held out
    for y in (replaced(NUMBERS, slice(0, 20), strange), [strange] * 20 + NUMBERS[20:].tolist()):
        assert best(y) == best(replaced(NUMBERS, slice(0, 20), 9))


def test_rows_of_which_hardly_one_has_a_label_are_doubted_by_released_numbers():
    rows = RNG.normal(size=(1000, 3))
    labels = np.where(np.arange(1000) % 10, "no", "oui").astype(object)
    for model in (DPLogisticRegression(classes=["oui", "non"]), DPHingeSVM(classes=["oui", "non"])):
        for data in (rows, sparse.csr_array(rows)):
            with pytest.warns(NoisyEstimateWarning, match="a label outside classes"):
                model.fit(data, labels)


def test_rows_of_which_none_has_a_label_are_doubted_under_a_norm():
    rows = RNG.uniform(-1, 1, size=(20_000, 8)) / math.sqrt(8)
    labels = np.where(rows[:, 0] > 0, " >50K", " <=50K")
    for data in (rows, sparse.csr_array(rows)):
        model = DPLogisticRegression(classes=["<=50K", ">50K"], data_norm=1.0)
        with pytest.warns(NoisyEstimateWarning, match="Compare classes|compare classes"):
            model.fit(data, labels)
        model.set_params(classes=[" <=50K", " >50K"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(data, labels)
            model.plan(n_samples=20_000, n_features=8)


def test_a_class_of_another_name_is_doubted():
    rows = RNG.normal(size=(20_000, 5)) * [1.0, 1e-3, 40.0, 1.0, 7.0] + [0.0, 0.0, 40.0, 0.0, 0.0]
    rows[:, 3] = rows[:, 3] > 0
    labels = (rows[:, 0] > 0).astype(int)
    third = np.digitize(rows[:, 0], [-0.4, 0.4])
    for found, classes in ((labels, [-1, 1]), (labels, [1, 2]), (third, [0, 1])):
        for model in (DPLogisticRegression(classes=classes), DPHingeSVM(classes=classes)):
            with pytest.warns(
                NoisyEstimateWarning,
                match=r"about \d+% of the rows have a label outside classes=\[",
            ):
                model.set_params(max_iter=2).fit(rows, found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in ({}, {"adjacency": "zero-out"}, {"adjacency": "add-remove"}):
            DPLogisticRegression(classes=[0, 1], max_iter=2, **given).fit(rows, labels)
        halves = {"sample_weight": np.full(20_000, 0.5)}
        DPLogisticRegression(classes=[0, 1], max_iter=2, max_weight=1.0).fit(rows, labels, **halves)
        model = DPLogisticRegression(classes=[0, 1], max_iter=2)
        model.fit(rows, labels, groups=np.arange(20_000) // 4)
        # columns in which many rows are 0, each in its own
        counts = RNG.poisson([0.3, 0.5, 0.8, 0.4], size=(20_000, 4)).astype(float)
        model.fit(counts * RNG.lognormal(size=counts.shape), labels)
        # flags
        model.fit((RNG.random((20_000, 6)) < 0.5).astype(float), labels)


def test_half_of_the_labels_are_missed_whatever_the_norm():
    rng = np.random.default_rng(5)
    normal = rng.normal(size=(3000, 6))
    labels = np.where(normal[:, 0] + rng.normal(size=3000) > 0, 1, 0)
    tables = {
        "normal": normal, "box": rng.random((3000, 6)),
        "raw": 50 * normal + 200, "csr": sparse.csr_array(normal * (normal > 0)),
    }  # fmt: skip
    options = ({}, {"adjacency": "zero-out"}, {"adjacency": "add-remove"}, {"max_weight": 1.0})
    for X in tables.values():
        lengths = np.sqrt((X * X).sum(axis=1))
        for norm, given in ((None, {}), *((lengths.max(), option) for option in options)):
            model = DPLogisticRegression(data_norm=norm, max_iter=2, **given)
            weights = {"sample_weight": np.full(3000, 0.5)} if "max_weight" in given else {}
            with warnings.catch_warnings():
                warnings.simplefilter("error", NoisyEstimateWarning)
                model.set_params(classes=[0, 1])
                model.fit(X, labels, **weights)
            with pytest.warns(NoisyEstimateWarning, match=r"about \d\d% of the rows have a label"):
                model.set_params(classes=[-1, 1]).fit(X, labels, **weights)


def test_counts_of_classes_tell_of_labels_outside():
    rng = np.random.default_rng(6)
    X, labels = rng.normal(size=(400, 3)) / 2, np.arange(400) % 2
    model = DPLogisticRegression(2.0, class_weight="balanced", solver="accelerated", data_norm=1.0)
    with pytest.warns(NoisyEstimateWarning, match=r"outside classes=\[1, 2\], and contribute"):
        model.set_params(classes=[1, 2]).fit(X, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoisyEstimateWarning)
        model.set_params(classes=[0, 1]).fit(X, labels)


@pytest.mark.full
def test_clients_and_reports_of_which_none_has_a_label_are_doubted():
    rows = RNG.normal(size=(6000, 2)) / 2
    labels = np.where(rows[:, 0] + RNG.normal(size=6000) / 5 > 0, "yes", "no")
    for model in (LocalDPLogisticRegression(), FederatedDPLogisticRegression()):
        with pytest.warns(NoisyEstimateWarning, match="no longer than their noise"):
            clone(model).set_params(classes=["No", "Yes"]).fit(rows, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            clone(model).set_params(classes=["no", "yes"]).fit(rows, labels)
            # a class is rare
            clone(model).set_params(classes=["no", "yes"]).fit(
                rows, np.where(rows > 1, "no", "yes")[:, 0]
            )


def test_labels_are_not_doubted_where_rows_are_too_long_to_be_seen():
    rows = 1e300 * RNG.normal(size=(3000, 2))
    with pytest.warns(NoisyEstimateWarning, match="at the end of the search range") as said:
        DPLogisticRegression(classes=[0, 1]).fit(rows, (rows[:, 0] > 0).astype(int))
    assert "label" not in str(said[0].message)


def test_rows_without_a_label_take_no_norm_away():
    rows = RNG.normal(size=(6000, 3)) * [1.0, 2.0, 30.0]
    labels = (rows[:, 0] > 0).astype(int)
    # a null row counts as half a row beyond any norm: from half of them on there is no such norm
    for share in (0.6, 0.8):
        known = np.where(RNG.random(6000) < share, 7, labels)
        for given, longest in (({}, 3.0), ({"C": 1e3}, 60.0)):
            model = DPLogisticRegression(2.0, classes=[0, 1], random_state=0, **given)
            with pytest.warns(NoisyEstimateWarning, match="a label outside classes"):
                model.fit(rows, known)
            assert longest / 4 < model.data_norm_ < 2 * longest
        assert model.score(rows, labels) > 0.6


def test_types_that_never_meet_are_refused():
    for y in (NUMBERS.astype(str), NUMBERS.astype("S")):
        with pytest.raises(ValueError, match="labels of one type: classes are int64 and y is"):
            DPLogisticRegression(classes=[0, 1], data_norm=1.0).fit(X, y)
    with pytest.raises(ValueError, match="no label is one of the classes"):
        DPLogisticRegression(classes=["0", "1"], data_norm=1.0).fit(X, NUMBERS)
    # columns say that they are text, whatever is missing in them
    text = pd.Series(NUMBERS.astype(str), dtype="string")
    for y in (text, text.to_frame(), text.where(NUMBERS > 0), text.astype("string[pyarrow]")):
        with pytest.raises(ValueError, match="classes are int64 and y is str"):
            DPLogisticRegression(classes=[0, 1], data_norm=1.0).fit(X, y)
    # and that they are numbers, or categories of these
    numbers = pd.Series(NUMBERS, dtype="Int64")
    gap, codes = numbers.where(NUMBERS > 0), pd.Series(NUMBERS, dtype="category")
    for y in (
        numbers, gap, gap.astype("boolean"), gap.to_frame(), gap.astype("int64[pyarrow]"),
        pa.array(numbers), pa.array(gap), codes, codes.where(NUMBERS > 0),
        pl.Series(numbers), pl.Series(gap),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"classes are <U1 and y is (?i:int|bool)"):
            DPLogisticRegression(classes=["0", "1"], data_norm=1.0).fit(X, y)
    for classes in ([b"0", b"1"], np.array([0, 1], dtype="M8[D]")):
        with pytest.raises(ValueError, match="labels of one type"):
            DPLogisticRegression(classes=classes, data_norm=1.0).fit(X, NUMBERS.astype(str))
    # of a list or of objects nothing is told: one entry could decide
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        for y in (NUMBERS.astype(str).tolist(), NUMBERS.astype(str).astype(object)):
            DPLogisticRegression(classes=[0, 1], data_norm=1.0).fit(X, y)


def test_a_missing_label_is_no_class():
    words = WORDS.copy()
    # the first one decides what scikit-learn takes all of them for
    words[0] = None
    series = pd.Series(words)
    for labels in (
        words, list(words), pa.array(words), series, series.to_frame(), series.astype(object),
        series.astype("string"), series.astype("category"),
        series.fillna(np.nan).to_numpy(dtype=object),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="y has missing labels"):
            DPLogisticRegression().fit(X, labels)
    for nobody in (None, np.nan, pd.NA):
        for classes in (["yes", nobody], np.array(["yes", nobody], dtype=object)):
            with pytest.raises(ValueError, match="distinct labels, none missing; got"):
                DPLogisticRegression(classes=classes).fit(X, WORDS)


def test_what_is_wrong_with_all_labels_is_still_an_error():
    model = DPLogisticRegression(classes=[0, 1], data_norm=1.0)
    for y, told in (
        (None, "requires y"), (NUMBERS[:-1], "inconsistent numbers"),
        (np.column_stack([NUMBERS, NUMBERS]), "1d array"), (3, "1d array|array"),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=told):
            model.fit(X, y)
    # without a label set they are read, and must be labels
    for y in (NUMBERS + 0.5, replaced(NUMBERS, 3, 0.5).astype(float), NUMBERS * np.nan):
        with pytest.raises(ValueError, match=r"Unknown label type|contains NaN"):
            DPLogisticRegression(data_norm=1.0).fit(X, y)


@pytest.mark.parametrize("name", MODELS)
def test_numpy_strings_of_any_length_are_text(name):
    strings = WORDS.astype(np.dtypes.StringDType())
    expected = clone(MODELS[name]).fit(X, WORDS)
    for classes in (None, ["no", "yes"], np.array(["no", "yes"], dtype=np.dtypes.StringDType())):
        model = clone(MODELS[name]).set_params(classes=classes).fit(X, strings)
        assert_array_equal(model.coef_, expected.coef_)
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.score(X, WORDS) == expected.score(X, WORDS)


def test_a_missing_string_is_the_label_of_nobody():
    missing = WORDS.copy()
    missing[3] = None
    strings = missing.astype(np.dtypes.StringDType(na_object=None))
    one, other = (fitted("logistic", X, labels, ["no", "yes"]) for labels in (missing, strings))
    assert_array_equal(one, other)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong with a collection of dask is said before anything is charged."""

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from skdp import DPLogisticRegression, PrivacyBudget
from skdp.io import stream_chunks

X = np.random.default_rng(0).normal(size=(300, 3))
Y = (X[:, 0] > 0).astype(int)
SECRET = 987.654321


@pytest.fixture(autouse=True)
def one_thread():
    """Compute without threads."""
    with dask.config.set(scheduler="synchronous"):
        yield


def refused(X, y, error, match):
    budget = PrivacyBudget(1.0, 1e-6)
    model = DPLogisticRegression(epsilon=1.0, budget=budget, max_iter=2, random_state=0)
    with pytest.raises(error, match=match) as caught:
        model.fit(X, y)
    assert budget.spent == (0.0, 0.0)
    assert not hasattr(model, "coef_")
    assert str(SECRET) not in str(caught.value)


def rows(values=X, chunks=(100, 3)):
    return da.from_array(values, chunks=chunks)


@pytest.mark.parametrize("value", [np.nan, np.inf], ids=str)
def test_a_value_that_is_not_finite_in_one_partition(value):
    broken = X.copy()
    broken[250, 1], broken[251, 0] = value, SECRET
    refused(rows(broken), Y, ValueError, "Input X contains")
    refused(rows(), np.where(np.arange(300) == 250, value, Y), ValueError, "Input y contains")
    refused(dd.from_pandas(pd.DataFrame(broken), npartitions=3), Y, ValueError, "Input X contains")


@pytest.mark.parametrize(
    "y", [Y[:-1], rows()[:299, 0], dd.from_pandas(pd.Series(Y[:-1]), npartitions=2)], ids=type
)
def test_other_lengths(y):
    refused(rows(), y, ValueError, "same number of rows; got 300 and 299")


def test_targets_of_several_columns():
    refused(rows(), rows(), TypeError, "y must be a dask array, Series or DataFrame with one")
    refused(rows(), X, ValueError, "y must have one column")
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=2)
    refused(rows(), frame, ValueError, "y must have one column")
    refused(rows(), 3, ValueError, "y must have one column|same number of rows")


def test_no_targets():
    refused(rows(), None, ValueError, "requires y to be passed")


@pytest.mark.parametrize(
    "given",
    [
        dask.delayed(lambda: X)(),
        db.from_sequence([1, 2, 3]),
        dd.from_pandas(pd.Series(Y), npartitions=2),
        da.from_array(Y, chunks=100),
        da.zeros((4, 2, 2), chunks=2),
    ],
    ids=lambda given: type(given).__name__,
)
def test_other_collections(given):
    refused(given, Y, TypeError, "X must be a dask array with two dimensions, or a dask DataFrame")
    if not isinstance(given, da.Array | dd.Series) or given.ndim == 3:
        refused(rows(), given, TypeError, "y must be a dask array, Series or DataFrame")


def test_a_stream_of_targets():
    _, y = stream_chunks([(X, Y)])
    refused(rows(), y, TypeError, "not an array|y is a stream")


def test_columns_that_are_no_numbers():
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(Y)})
    refused(dd.from_pandas(frame, npartitions=2), Y, TypeError, "must be numeric")
    frame["b"] = pd.to_datetime(Y)
    refused(dd.from_pandas(frame, npartitions=2), Y, TypeError, "must be numeric")
    frame["b"] = [f"{SECRET}?"] * 300
    refused(dd.from_pandas(frame, npartitions=2), Y, ValueError, "must be numeric")


def test_columns_that_nobody_has_counted():
    refused(rows()[:, rows()[0] > -99], Y, ValueError, "number of columns of X must be known")


def test_partitions_of_another_width():
    wrong = rows().map_blocks(lambda block: block[:, :2], meta=np.empty((0, 0)), chunks=(100, 3))
    refused(wrong, Y, ValueError, "a partition of X has 2 features; X has 3")


@pytest.mark.parametrize("n_rows", [0, 1])
def test_too_few_rows(n_rows):
    some = rows()[:n_rows]
    refused(some, Y[:n_rows], ValueError, "0 sample|only 1 class")


def test_an_error_of_the_graph_itself_is_passed_on():
    def broken(block):
        raise OSError("no such disk")

    refused(rows().map_blocks(broken, meta=np.empty((0, 0))), Y, OSError, "no such disk")

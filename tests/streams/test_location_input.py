# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Locations of streams: bad ones, changing ones, what is read, and what is charged."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skdp import DPMedian, PrivacyBudget
from skdp import _quantiles as _quantile_rank
from skdp._rows import streams as _arrays
from skdp._rows.streams import RowStream, Table
from skdp.io import stream_chunks
from skdp.privacy import gdp_mu
from tests import _audit
from tests._neighbours import ADJACENCIES
from tests.streams._location import (
    DENSE,
    MODELS,
    PUBLIC,
    STEP,
    D,
    N,
    dense_rows,
    every_model,
    short_chunks,
    sparse_rows,
)
from tests.streams._ways import assert_same_fit, chunked

__all__ = ["short_chunks"]
pytestmark = pytest.mark.filterwarnings("ignore:.*random_state:UserWarning")


class Watched(Table):
    """Rows that are read as they are asked for; `lengths` has how many at a time."""

    def __init__(self, X):
        self.n_rows, self._X, self.lengths = len(X), X, []

    def _read(self, start, stop):
        self.lengths.append(stop - start)
        return self._X[start:stop], None


@every_model
def test_only_short_ranges_are_read_after_the_first_pass(name):
    table = Watched(dense_rows())
    clone(MODELS[name]).fit(RowStream(table))
    first, *later = table.lengths
    assert first == N
    assert later
    assert max(later) <= STEP


@pytest.mark.parametrize("name", ["quantile", "rank"])
@pytest.mark.parametrize(("kept", "passes"), [(1, 3), (8 * N, 2), (1 << 28, 1)])
def test_ranks_keep_as_many_columns_as_fit(name, kept, passes, monkeypatch):
    monkeypatch.setattr(_quantile_rank, "_KEPT", kept)
    X, started = dense_rows(), []

    def chunks():
        started.append(True)
        yield X

    stream = stream_chunks(chunks)
    del started[:]
    model = clone(MODELS[name]).fit(stream)
    # the first pass is the check
    assert len(started) == 1 + passes
    assert_array_equal(model.location_, clone(MODELS[name]).fit(X).location_)


def test_the_exponential_mechanism_needs_all_points(tmp_path, monkeypatch):
    X = dense_rows()
    budget = PrivacyBudget(100.0)
    model = DPMedian(mechanism="exponential", data_norm=5.0, budget=budget, **PUBLIC)
    with pytest.raises(TypeError, match="'exponential' looks at all rows at once"):
        model.fit(*chunked(X))
    assert budget.spent == (0.0, 0.0)
    monkeypatch.setattr(_arrays, "LARGE", 0)
    mapped = np.memmap(tmp_path / "rows", np.float64, "w+", shape=(N, D))
    mapped[:] = X
    assert_same_fit(model.set_params(budget=None), [X], [mapped])


@pytest.mark.parametrize("name", DENSE)
def test_sparse_chunks_are_refused_as_sparse_rows_are(name):
    X, budget = sparse_rows()[:, :D], PrivacyBudget(100.0, 1e-3)
    model = clone(MODELS[name]).set_params(budget=budget)
    messages = []
    for rows in ([X], chunked(X)):
        with pytest.raises(TypeError) as caught:
            model.fit(*rows)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert budget.spent == (0.0, 0.0)


@every_model
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_costs_nothing(name, value):
    X, budget = dense_rows(), PrivacyBudget(100.0, 1e-3)
    X[-1, -1] = value
    model = clone(MODELS[name]).set_params(budget=budget)
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        model.fit(*chunked(X))
    assert budget.spent == (0.0, 0.0)
    assert not hasattr(model, "ledger_")


@every_model
def test_chunks_of_other_widths_cost_nothing(name):
    X, budget = dense_rows(), PrivacyBudget(100.0, 1e-3)
    model = clone(MODELS[name]).set_params(budget=budget)
    with pytest.raises(ValueError, match="the chunks must have the same features"):
        model.fit(stream_chunks([X[:50], X[50:, :2]]))
    assert budget.spent == (0.0, 0.0)


@every_model
def test_a_shared_budget_is_charged_once_a_fit(name):
    budget = PrivacyBudget(100.0, 1e-3)
    model = clone(MODELS[name]).set_params(budget=budget)
    model.fit(*chunked(dense_rows()))
    assert len(budget.charges) == 1
    model.fit(*chunked(dense_rows()))
    assert len(budget.charges) == 2
    with pytest.raises(ValueError, match="budget"):
        model.fit(*chunked(dense_rows()))


class Changing:
    """Chunks that are others from the second pass on."""

    def __init__(self, first, later):
        self.first, self.later, self.n_passes = first, later, -1

    def __call__(self):
        # one is opened to look at the type of the chunks
        self.n_passes += 1
        return iter([self.first if self.n_passes <= 1 else self.later])


@every_model
def test_rows_that_are_missing_later_are_an_error_after_the_charge(name):
    X, budget = dense_rows(), PrivacyBudget(100.0, 1e-3)
    model = clone(MODELS[name]).set_params(budget=budget)
    with pytest.raises(ValueError, match="the chunks ended early"):
        model.fit(stream_chunks(Changing(X, X[:-9])))
    assert len(budget.charges) == 1


@every_model
def test_rows_that_break_later_count_as_null_rows_and_are_not_told(name):
    X, later = dense_rows(), dense_rows()
    later[3] = np.nan
    model = clone(MODELS[name]).fit(stream_chunks(Changing(X, later)))
    location = getattr(model, "location_", 0.0)
    assert np.isfinite(location).all()
    assert str(model.ledger_).count("\n") == str(clone(MODELS[name]).fit(X).ledger_).count("\n")


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", ["box", "gaussian", "gradient", "gradient-box"])
def test_claims_are_kept_on_neighbouring_streams(name, adjacency):
    model = clone(MODELS[name]).set_params(adjacency=adjacency, epsilon=2.0, delta=1e-5)
    first = np.full((N, D), 5.0)
    second = first.copy()
    # a row at the opposite end; a coordinate without a value has no weight in a box
    second[-1] = -3.0 if adjacency == "replace-one" else np.nan

    def fit(rows):
        # the check looks at the first data set: a null row is one that breaks later
        clone(model).fit(stream_chunks(Changing(first, rows)))

    measured = _audit.coupled_mu(fit, first, second)
    claimed = gdp_mu(2.0, 1e-5)
    assert measured <= claimed
    assert measured >= 0.999 * claimed or name.startswith("gradient")


@pytest.mark.covering
@every_model
@pytest.mark.parametrize("method", ["predict", "score"])
def test_other_methods_say_what_to_do_with_a_stream(name, method):
    X = dense_rows()
    model = clone(MODELS[name]).fit(X)
    if hasattr(model, method):
        with pytest.raises(TypeError, match="needs all rows in memory here; got a stream"):
            getattr(model, method)(*chunked(X))

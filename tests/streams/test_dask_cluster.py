# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Fits on a cluster of two processes, one of which is killed in the middle, and on none."""

import logging
import os
import signal

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from skdp import DPLogisticRegression, PrivacyBudget
from skdp._rows import dask as _cluster
from skdp.privacy import Curator
from tests._chunks import shorten_chunks
from tests._solvers import linear_model

pytestmark = [
    pytest.mark.full,
    # of dask's processes and event loops, when they end
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:tornado"),
]

N_ROWS, N_FEATURES = 3000, 5
X = np.random.default_rng(0).normal(size=(N_ROWS, N_FEATURES))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
LOCAL = {"host": "127.0.0.1", "protocol": "tcp://", "dashboard_address": "127.0.0.1:0"}


def model(**params):
    return linear_model(
        DPLogisticRegression, data_norm=3.0, random_state=0, **{"max_iter": 5} | params
    )


@pytest.fixture(autouse=True)
def small_partitions(monkeypatch):
    """Cut few rows into many blocks and partitions."""
    shorten_chunks(monkeypatch, 64)
    monkeypatch.setattr(_cluster, "PARTITION_BYTES", 8 * N_FEATURES * 1100)


@pytest.fixture(scope="module", autouse=True)
def quiet():
    """Leave out what dask logs about workers that are lost."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.scheduler")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture(scope="module")
def cluster():
    """Start two processes that stay for the module."""
    options = {"n_workers": 2, "threads_per_worker": 1, "silence_logs": logging.CRITICAL}
    with LocalCluster(processes=True, **LOCAL, **options) as started:
        yield started


@pytest.fixture
def client(cluster):
    """Make the cluster current."""
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


def given():
    return da.from_array(X, chunks=(700, 3)), da.from_array(Y, chunks=700)


def at_release(monkeypatch, number, act):
    """Call something before one of the releases."""
    release, count = Curator.release, []

    def counted(self, *args, **kwargs):
        count.append(None)
        if len(count) == number:
            act()
        return release(self, *args, **kwargs)

    monkeypatch.setattr(Curator, "release", counted)
    return count


def same(fitted, expected):
    assert np.array_equal(fitted.coef_, expected.coef_)
    assert repr(fitted.ledger_) == repr(expected.ledger_)


@pytest.mark.parametrize(
    "params",
    [{}, {"solver": "sgd", "batch_size": 700}, {"mechanism": "objective", "max_iter": None}],
    ids=str,
)
def test_no_row_comes_to_the_driver(client, monkeypatch, params):
    expected = model(**params).fit(X, Y)
    brought, bring = [], _cluster.ClusterTable._brought

    def counted(table, places):
        rows = bring(table, places)
        brought.append(rows[0].shape[0])
        return rows

    monkeypatch.setattr(_cluster.ClusterTable, "_brought", counted)
    monkeypatch.setattr(_cluster.ClusterTable, "_read", None)
    monkeypatch.setattr(_cluster.ClusterTable, "take", None)
    same(model(**params).fit(*given()), expected)
    # but for a single one, which tells the shape
    assert set(brought) <= {1}


def test_long_coefficients_are_sent_once(client, monkeypatch):
    monkeypatch.setattr(_cluster, "SENT_ONCE", 1)
    same(model().fit(*given()), model().fit(X, Y))


def test_waves_of_sums(client, monkeypatch):
    monkeypatch.setattr(_cluster, "WAVE_BYTES", 8 * N_FEATURES)
    same(model().fit(*given()), model().fit(X, Y))


def test_frames_and_fallbacks(client):
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    params = {"solver": "lazy-sgd", "batch_size": 100, "data_norm": 2.0, "max_iter": 5}
    expected = linear_model(DPLogisticRegression, random_state=0, **params).fit(frame, Y)
    fitted = linear_model(DPLogisticRegression, random_state=0, **params)
    same(fitted.fit(dd.from_pandas(frame, npartitions=3), Y), expected)
    assert list(fitted.feature_names_in_) == list("abcd")


def test_bad_rows_are_reported_once(client):
    broken = X.copy()
    broken[2000, 4] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model().fit(da.from_array(broken, chunks=(600, -1)), Y)


def test_a_worker_is_killed_in_the_middle(client, monkeypatch):
    expected = model().fit(X, Y)
    budget = PrivacyBudget(2.0, 1e-5)

    def kill():
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    count = at_release(monkeypatch, 3, kill)
    same(model(budget=budget).fit(*given()), expected)
    assert len(count) == expected.n_iter_
    assert budget.spent == (1.0, 1e-6)


def test_the_cluster_goes_away(monkeypatch):
    budget = PrivacyBudget(2.0, 1e-5)
    with LocalCluster(n_workers=1, processes=False, **LOCAL) as started, Client(started) as client:
        count = at_release(monkeypatch, 3, client.close)
        fitted = model(budget=budget)
        with pytest.raises(ConnectionError, match="the cluster is gone"):
            fitted.fit(*given())
    assert len(count) == 3
    assert budget.spent == (1.0, 1e-6)
    assert not hasattr(fitted, "coef_")

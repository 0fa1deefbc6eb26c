# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Updates of clients: the vectors themselves, their sums, and what a client can do to them."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdp.federated._averaging import ClientUpdates, ReportSum
from tests._neighbours import ADJACENCIES, with_duplicates
from tests.federated._clients import OUTSIDE, admitted, clients, loss_of

SIZES = [1, 4, 1, 7, 30, 4, 1, 2, 9, 4]


def point(n_classes, n_coefs=4, seed=1):
    shape = (n_coefs,) if n_classes == 2 else (n_classes, n_coefs)
    return np.random.default_rng(seed).normal(size=shape)


def query(n_classes=2, clip=0.2, **local):
    return ClientUpdates(point(n_classes), loss_of(n_classes), clip, **local)


def by_hand(X, y, query, n_classes, intercept=0.3):
    """Return the clipped update of one client, step by step."""
    valid = y != OUTSIDE
    if not valid.any():
        return np.zeros(query.coef.size)
    X = X[valid] / np.maximum(1.0, np.linalg.norm(X[valid], axis=1))[:, None]
    X = np.column_stack([X, np.full(len(X), intercept)])
    start = np.atleast_2d(query.coef)
    coef, weight = start.copy(), 0.0
    target = query.loss.encode(y[valid])
    for step in range(query.n_steps):
        score = X @ coef.T
        residual = query.loss.residual(score[:, 0] if n_classes == 2 else score, target)
        gradient = residual.reshape(len(X), -1).T @ X / len(X) + query.pull * (coef - start)
        coef = coef - query.step_size * gradient
        weight += (1 - query.pull * query.step_size) ** step
    update = ((coef - start) / (weight * query.step_size)).ravel()
    return update * min(1.0, query.clip / np.linalg.norm(update))


LOCAL = {
    "one step": {},
    "five steps": {"n_steps": 5, "step_size": 2.0},
    "proximal": {"n_steps": 6, "step_size": 1.5, "pull": 0.4},
}


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("clip", [0.05, 10.0])
def test_updates_are_those_of_every_client_alone(name, n_classes, clip):
    X, y, groups = clients(SIZES, n_classes=n_classes)
    y[groups == 3], y[groups == 6] = OUTSIDE, OUTSIDE
    y[np.flatnonzero(groups == 4)[:5]] = OUTSIDE
    asked = query(n_classes, clip, **LOCAL[name])
    expected = [by_hand(X[groups == i], y[groups == i], asked, n_classes) for i in range(10)]
    rows = admitted(X, y, groups, 10, n_classes)
    vectors = np.concatenate([asked.vectors(chunk) for chunk in rows.chunks])
    assert_allclose(clip * vectors, expected, atol=1e-13)
    assert_allclose(asked.evaluate(rows), np.sum(expected, axis=0), atol=1e-13)
    chosen = np.array([0, 3, 4, 8])
    part = asked.evaluate(rows.batch(chosen, 0.4))
    assert_allclose(part, np.sum(expected, axis=0, where=np.isin(range(10), chosen)[:, None]))
    assert not np.any(expected[3])
    assert not np.any(expected[6])


def test_the_weighted_mean_of_directions_is_no_longer_than_the_longest():
    X, y, groups = clients(SIZES)
    for local in LOCAL.values():
        rows = admitted(X, y, groups, 10)
        norms = [np.linalg.norm(query(clip=9.0, **local).vectors(c), axis=1) for c in rows.chunks]
        assert np.max(np.concatenate(norms)) * 9.0 <= np.hypot(1.0, 0.3)


@pytest.mark.parametrize("layout", ["csr", "duplicates", "float32", "read-only", "F"])
def test_layouts_agree(layout):
    X, y, groups = clients(SIZES, n_classes=3)
    X[np.abs(X) < 0.5] = 0.0
    asked = query(3, n_steps=3, step_size=1.0)
    expected = asked.evaluate(admitted(X, y, groups, 10, 3))
    other = {
        "csr": sparse.csr_array(X),
        "duplicates": with_duplicates(X),
        "float32": X.astype(np.float32),
        "F": np.asfortranarray(X),
    }.get(layout, X.copy())
    if layout == "read-only":
        other.flags.writeable = False
    found = asked.evaluate(admitted(other, y, groups, 10, 3))
    assert_allclose(found, expected, atol=1e-6 if layout == "float32" else 1e-13)


def test_wide_sparse_rows_agree():
    X, y, groups = clients(SIZES, n_features=200, n_classes=3)
    X[np.abs(X) < 1.5] = 0.0
    asked = ClientUpdates(point(3, 201), loss_of(3), 0.2, n_steps=3, step_size=1.0)
    found = [asked.evaluate(admitted(r, y, groups, 10, 3)) for r in (X, sparse.csr_array(X))]
    assert_allclose(*found, atol=1e-13)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_one_client_more_rows_leaves_all_others_as_they_are(n_threads):
    # to the last bit: chaotic local steps would blow up any rounding
    X, y, groups = clients(SIZES * 8, n_classes=3)
    asked = query(3, n_steps=4, step_size=50.0)
    more = np.concatenate([X, X[:3]]), np.concatenate([y, y[:3]]), np.append(groups, [5] * 3)
    first = admitted(X, y, groups, 80, 3, n_threads=n_threads)
    second = admitted(*more, 80, 3, n_threads=n_threads)
    one, other = (
        np.concatenate([asked.vectors(chunk) for chunk in rows.chunks]) for rows in (first, second)
    )
    assert_array_equal(np.delete(one, 5, axis=0), np.delete(other, 5, axis=0))
    assert (one[5] != other[5]).any()


def test_the_order_of_rows_of_a_client_does_not_matter():
    X, y, groups = clients(SIZES)
    order = np.argsort(groups, kind="stable")
    asked = query(n_steps=3)
    sums = [asked.evaluate(admitted(X[o], y[o], groups[o], 10)) for o in (order, order[::-1])]
    assert_allclose(*sums, atol=1e-14)


def test_a_client_without_rows_is_not_there():
    X, y, groups = clients([3, 0, 2])
    rows = admitted(X, y, groups, 3)
    assert [chunk.n_clients for chunk in rows.chunks] == [2]
    assert sum(chunk.n_clients for chunk in rows.batch(np.array([1]), 0.5).chunks) == 0
    assert not query().evaluate(rows.batch(np.array([1]), 0.5)).any()
    assert not query().evaluate(rows.batch(np.array([], dtype=int), 0.5)).any()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308, 1e-310])
def test_rows_that_break_arithmetic_are_harmless(value):
    X, y, groups = clients(SIZES)
    X[groups == 4] = value
    found = query(n_steps=3).evaluate(admitted(X, y, groups, 10))
    assert np.isfinite(found).all()
    assert np.linalg.norm(found) <= 10 * 0.2


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_stated_sensitivities_hold_and_are_attained(adjacency):
    asked, total = query(clip=0.2), ReportSum(4, 0.2, 0.7)
    rng = np.random.default_rng(0)
    for _ in range(50):
        sizes = rng.integers(0, 9, size=(2, 6))
        sizes[1, 1:] = sizes[0, 1:]
        if adjacency == "zero-out":
            sizes[1, 0] = 0
        seed = int(rng.integers(1000))
        X, y, groups = clients(sizes[0], seed=seed)
        X2, y2, _ = clients(np.r_[sizes[1, 0], np.zeros(5, int)], seed=seed + 1)
        keep = groups > 0
        second = (
            np.concatenate([X[keep], 9 * X2]),
            np.concatenate([y[keep], y2]),
            np.concatenate([groups[keep], np.zeros(len(X2), int)]),
        )
        gap = asked.evaluate(admitted(X, y, groups, 6)) - asked.evaluate(admitted(*second, 6))
        assert np.linalg.norm(gap) <= asked.sensitivity(adjacency, 6).l2 * (1 + 1e-12)
        reports = 3 * rng.normal(size=(6, 4))
        other = reports.copy()
        other[0] = -5 * reports[0]
        other = other[1:] if adjacency == "zero-out" else other
        gap = np.linalg.norm(total.total(reports) - total.total(other))
        assert gap <= total.sensitivity(adjacency, 6).l2 * (1 + 1e-12)
    long = np.full((1, 4), 50.0)
    other = np.empty((0, 4)) if adjacency == "zero-out" else -long
    gap = np.linalg.norm(total.total(long) - total.total(other))
    assert gap == pytest.approx(total.sensitivity(adjacency, 6).l2)


def test_reports_that_are_short_are_summed_as_they_are():
    reports = np.random.default_rng(0).normal(size=(1500, 4))
    assert_allclose(ReportSum(4, 2.0, 100.0).total(reports), 2 * reports.sum(axis=0), atol=1e-10)
    assert ReportSum(4, 2.0, 100.0).n_projected(reports) == 0
    assert ReportSum(4, 2.0, 1e-9).n_projected(reports) == 1500


def test_sums_of_reports_carry_all_rounding_along():
    # a client that is not there moves all others to other places
    rng = np.random.default_rng(0)
    reports = np.abs(rng.normal(size=(20_000, 1))) * rng.choice([1.0, 1e-8], size=(20_000, 1))
    asked = ReportSum(1, 1.0, 0.3)
    counted = (asked._factors(reports) * reports[:, 0]).tolist()
    for start in (0, 1, 63, 64):
        exact = math.fsum(counted[start:])
        assert abs(asked.total(reports[start:])[0] - exact) <= 2 * math.ulp(exact)

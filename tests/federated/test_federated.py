# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Federated learning: updates of clients, estimators, populations, claims, planted bugs."""

import math
import pickle
import time
from dataclasses import replace

import dp_accounting
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import binom
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline

from skdp import (
    BoundedScaler,
    DPHistogram,
    DPLogisticRegression,
    FederatedDPLogisticRegression,
    privacy_spent,
)
from skdp._rows.base import L2Ball
from skdp.exceptions import BudgetError, PrivacyWarning, SimulationWarning
from skdp.federated import FederatedAveraging, GradientSteps, Population, ProximalPoint, _averaging
from skdp.federated._averaging import ClientRows, ClientUpdates, ReportSum, _all, _norms
from skdp.local import BallRandomiser, optimal_privunit
from skdp.privacy import Curator, Sampling, gdp_epsilon, gdp_mu, sampled_mu
from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.ledger import SampledCost, compose_epsilon
from skdp.privacy.laws.loss_distributions import _sampled_epsilon
from tests import _audit
from tests import _audit_batches as batches
from tests._neighbours import ADJACENCIES, with_duplicates
from tests._solvers import fitted_loss
from tests.test_common import training_check_data

# Clients for the tests: sizes from one row to many, and neighbours that differ in one.


OUTSIDE = 99


def clients(sizes, n_features=3, n_classes=2, seed=0):
    """Return rows, labels and groups of clients of given sizes, in a mixed order."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(groups), n_features))
    y = rng.integers(0, n_classes, len(groups))
    order = rng.permutation(len(groups))
    return X[order], y[order], groups[order]


def loss_of(n_classes):
    """Return the loss for a number of classes."""
    return fitted_loss(DPLogisticRegression, n_classes)


def admitted(X, y, groups, n_clients, n_classes=2, intercept=0.3, n_threads=1):
    """Return what a curator would hold; rows labelled OUTSIDE are null."""
    null = np.asarray(y) == OUTSIDE
    target = loss_of(n_classes).encode(np.where(null, 0, y))
    ball = L2Ball(1.0)
    return ClientRows(X, target, null, np.asarray(groups), n_clients, ball, intercept, n_threads)


def exchanged(data, client, adjacency, label=0):
    """Return data in which a client has one long row many times, and a neighbour of it.

    The neighbour has other rows, and another number of them, or only null rows.
    """
    X, y, groups = data
    others = groups != client
    row = np.zeros(X.shape[1])
    row[0] = 5.0
    made = []
    for copies, sign in ((40, 1.0), (3, -1.0)):
        labels = np.full(copies, OUTSIDE if sign < 0 and adjacency == "zero-out" else label)
        made.append(
            (
                np.concatenate([X[others], np.tile(sign * row, (copies, 1))]),
                np.concatenate([y[others], labels]),
                np.concatenate([groups[others], np.full(copies, client)]),
            )
        )
    return made


# Updates of clients: the vectors themselves, their sums, and what a client can do to them.


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


@pytest.mark.sample(6, 10)
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


@pytest.mark.sample(1)
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


# The estimator: groups, routing, layouts, and everything that is refused.


def model(**options):
    usual = {"epsilon": 4.0, "classes": (0, 1), "random_state": 0, "max_iter": 6}
    objects = {
        "local_update": GradientSteps(), "solver": FederatedAveraging(),
        "randomiser": BallRandomiser(),
    }  # fmt: skip
    return FederatedDPLogisticRegression(**objects).set_params(**{**usual, **options})


def separated(sizes=(1, 5, 2, 9, 3, 1, 4, 7) * 20):
    X, y, groups = clients(sizes)
    X[:, 0] += 4.0 * y - 2.0
    return X, y, groups


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "options",
    [
        {"max_iter": None},
        {"local_update__n_steps": 5},
        {"local_update": ProximalPoint()},
        {"solver__batch_size": 60},
        {"epsilon": 8.0, "local_epsilon": 16.0},
        {"epsilon": None, "local_epsilon": 8.0, "max_iter": None, "randomiser": "product"},
        {"solver__momentum": False, "solver__average": False},
    ],
)
def test_it_learns(options):
    X, y, groups = separated()
    fitted = model(**{"max_iter": 20, **options}).fit(X, y, groups)
    assert fitted.score(X, y) > 0.8
    assert fitted.n_clients_ == 160
    assert_allclose(fitted.predict_proba(X).sum(axis=1), 1.0)


def test_every_row_is_a_client_by_default():
    X, y, _ = separated()
    alone, named = model().fit(X, y), model().fit(X, y, np.arange(len(X)))
    assert alone.n_clients_ == len(X)
    # the rounding of sums over rows that stand anywhere is paid for
    assert_allclose(alone.coef_, named.coef_, rtol=1e-6)


@pytest.mark.sample(5)
@pytest.mark.parametrize("kind", ["text", "objects", "list", "negative", "floats", "bool"])
def test_identifiers_may_be_anything_that_can_be_sorted(kind):
    X, y, groups = separated((3, 4))
    expected = model().fit(X, y, groups).coef_
    other = {
        "text": np.array(["ann", "bob"])[groups],
        "objects": np.array(["ann", "bob"], dtype=object)[groups],
        "list": groups.tolist(),
        "negative": groups - 7,
        "floats": groups + 0.5,
        "bool": groups == 1,
    }[kind]
    assert_array_equal(model().fit(X, y, other).coef_, expected)


def test_one_client_fits():
    X, y, _ = separated()
    fitted = model().fit(X, y, np.zeros(len(X)))
    assert fitted.n_clients_ == 1
    assert np.isfinite(fitted.coef_).all()


def test_clients_count_and_not_rows():
    X, y, groups = clients([2] * 30)
    once = model().fit(X, y, groups)
    # rows twice: the mean loss of every client is what it was
    doubled = [np.concatenate([part, part]) for part in (X, y, groups)]
    assert_allclose(model().fit(*doubled).coef_, once.coef_, atol=1e-6)


def test_clients_without_a_valid_label_contribute_nothing():
    X, y, groups = separated()
    y = np.where(groups % 2 == 0, 7, y)
    for options in ({}, {"epsilon": None, "local_epsilon": 8.0}):
        assert np.isfinite(model(**options).fit(X, y, groups).coef_).all()
    none = model().fit(X, np.full(len(y), 7), groups)
    assert none.n_clients_ == 160


@pytest.mark.full
@pytest.mark.parametrize("layout", ["csr", "coo", "float32", "read-only", "list"])
def test_layouts_give_the_same_model(layout):
    X, y, groups = separated()
    X = np.round(X)
    other = {"csr": sparse.csr_array, "coo": sparse.coo_array, "float32": np.float32}
    if layout == "read-only":
        same = X.copy()
        for array in (same, y, groups):
            array.flags.writeable = False
    else:
        same = other.get(layout, np.ndarray.tolist)(X)
    found = model(local_update__n_steps=2).fit(same, y, groups).coef_
    assert_allclose(found, model(local_update__n_steps=2).fit(X, y, groups).coef_, atol=1e-5)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (np.zeros(3), r"groups must have one identifier"),
        (np.zeros((480, 2)), r"groups must have one identifier"),
        (np.r_[np.nan, np.zeros(479)], r"missing identifiers"),
        (np.array([np.nan] + [0] * 479, dtype=object), r"missing identifiers"),
        (np.array(["a"] + [0] * 479, dtype=object), r"of one type"),
        (np.array([None] + [0] * 479, dtype=object), r"missing identifiers"),
        ([None] * 480, r"missing identifiers"),
        ([0, [1, 2]] * 240, r"lists of several lengths"),
        (0, r"groups must have one identifier"),
    ],
)
def test_groups_that_are_refused(groups, words):
    X, y, _ = clients([2] * 240)
    with pytest.raises(ValueError, match=words):
        model().fit(X, y, groups)


def test_missing_text_of_pandas_is_refused():
    pd = pytest.importorskip("pandas")
    groups = pd.Series([pd.NA, *("ab" * 10)], dtype="string")
    with pytest.raises(ValueError, match="missing identifiers"):
        model().fit(np.zeros((21, 1)), np.arange(21) % 2, groups)
    counted = DPHistogram(1e6, bins=1, bounds=(0, 1)).fit(np.zeros((20, 1)), groups=groups[1:])
    assert counted.counts_[0] == pytest.approx(2, abs=0.1)
    assert counted.ledger_.unit == "group"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": None}, "there would be no privacy"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"epsilon": 1e-12, "delta": 1e-14}, "budget"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"local_epsilon": 0.0}, "local_epsilon"),
        ({"local_epsilon": np.nan}, "local_epsilon"),
        ({"local_epsilon": 1e9}, "local_epsilon"),
        (
            {"solver__batch_size": 161},
            "batch_size must be greater than 0 and at most the number of clients",
        ),
        ({"solver__batch_size": 0}, "batch_size"),
        ({"max_iter": 0}, "max_iter"),
        ({"data_norm": 0.0}, "data_norm"),
        ({"solver__report_norm": 1.0}, "report_norm is for reports"),
        ({"randomiser__expected_norm": 0.5}, "expected_norm is for reports"),
        ({"randomiser__magnitude_epsilon": 0.5}, "magnitude_epsilon is for reports"),
        ({"randomiser__n_levels": 3}, "n_levels is for reports"),
        ({"local_epsilon": 1.0, "randomiser__magnitude_epsilon": 0.5}, "magnitude_epsilon is for"),
        ({"local_epsilon": 1.0, "randomiser__magnitude": "long"}, "magnitude.*lift"),
        (
            {"local_update": ProximalPoint(3.0, step_size=1.0)},
            "step_size must be at most 1 / strength",
        ),
        ({"local_update__n_steps": 0}, "n_steps.*GradientSteps"),
        ({"local_update": ProximalPoint(0.0)}, "strength.*ProximalPoint"),
        ({"solver__momentum": "yes"}, "momentum.*FederatedAveraging"),
        ({"population": Population(0)}, "size.*Population"),
        ({"local_update": "momentum"}, "local_update.*'gradient'.*GradientSteps.*ProximalPoint"),
        ({"local_update": GradientSteps}, "local_update.*an instance of"),
        ({"local_update": FederatedAveraging()}, "local_update.*GradientSteps.*ProximalPoint"),
        ({"solver": "sgd"}, "solver.*auto.*FederatedAveraging"),
        ({"solver": GradientSteps()}, "solver.*auto.*FederatedAveraging"),
        ({"randomiser": "unit"}, "randomiser.*lift.*BallRandomiser"),
        ({"randomiser": optimal_privunit(8.0, 4)}, "randomiser.*lift.*BallRandomiser"),
        ({"population": 1e6}, "population.*an instance of.*Population"),
        ({"C": 1e-300}, "C must be at least"),
    ],
)
def test_parameters_that_are_refused(options, words):
    X, y, groups = separated()
    with pytest.raises(ValueError, match=words):
        model(**options).fit(X, y, groups)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_values_are_refused(value):
    X, y, groups = separated()
    X[3, 1] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model().fit(X, y, groups)


@pytest.mark.sample(1)
@pytest.mark.parametrize("scale", [1e300, 1e-300, 0.0])
def test_features_of_any_scale(scale):
    X, y, groups = separated()
    X[:, 1] = scale
    for options in ({"local_update__n_steps": 3}, {"epsilon": None, "local_epsilon": 8.0}):
        assert np.isfinite(model(**options).fit(X, y, groups).coef_).all()


def test_parameters_of_another_update_are_refused_with_a_list_of_its_own():
    with pytest.raises(
        ValueError, match=r"'strength'.*Valid parameters are: \['clipping_norm', 'n_s"
    ):
        model(local_update__strength=1.0)
    with pytest.raises(TypeError, match="strength"):
        GradientSteps(strength=1.0)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("words", "objects"),
    [
        (
            {"local_update": "gradient", "solver": "auto", "randomiser": "lift"},
            {
                "local_update": GradientSteps(),
                "solver": FederatedAveraging(),
                "randomiser": BallRandomiser(),
            },
        ),
        ({"local_update": "proximal"}, {"local_update": ProximalPoint()}),
        ({"randomiser": "product"}, {"randomiser": BallRandomiser("product")}),
    ],
)
def test_words_stand_for_objects_with_default_parameters(words, objects):
    X, y, groups = separated()
    fits = [model(local_epsilon=8.0, **given).fit(X, y, groups) for given in (words, objects)]
    assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].ledger_ == fits[1].ledger_


@pytest.mark.full
def test_objects_are_parameters_like_others():
    X, y, groups = separated()
    given = model(solver__batch_size=np.float32(20), local_update__n_steps=np.int8(2))
    copy = clone(given)
    assert copy.solver is not given.solver
    assert repr(copy) == repr(given)
    before = copy.get_params()
    fitted = copy.fit(X, y, groups)
    # a fit changes no object, and short numbers promise what plain ones do
    assert copy.get_params()["solver__batch_size"] is before["solver__batch_size"]
    plain = model(solver__batch_size=20.0, local_update__n_steps=2).fit(X, y, groups)
    assert fitted.ledger_ == plain.ledger_
    assert_array_equal(fitted.coef_, plain.coef_)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.get_params()["local_update__n_steps"] == 2
    search = GridSearchCV(model(), {"local_update__n_steps": [1, 3], "solver__step_size": [0.5]})
    found = search.fit(X, y).best_estimator_
    assert found.local_update.n_steps in (1, 3)
    assert found.solver.step_size == 0.5


@pytest.mark.full
def test_groups_are_routed():
    X, y, groups = separated()
    with sklearn.config_context(enable_metadata_routing=True):
        asked = model().set_fit_request(groups=True)
        scores = cross_validate(
            asked, X, y, params={"groups": groups}, cv=GroupKFold(4), return_estimator=True
        )
        assert [fitted.n_clients_ for fitted in scores["estimator"]] == [120] * 4
        search = GridSearchCV(asked, {"C": [1.0, np.inf]}, cv=GroupKFold(4))
        search.fit(X, y, groups=groups)
        assert search.best_estimator_.n_clients_ == 160
        pipeline = make_pipeline(BoundedScaler(bounds=(-5.0, 5.0)), clone(asked))
        pipeline.fit(X, y, groups=groups)
        assert pipeline[-1].n_clients_ == 160
        unasked = make_pipeline(BoundedScaler(bounds=(-5.0, 5.0)), model())
        assert unasked.fit(X, y, groups=groups)[-1].n_clients_ == 160


def test_fits_are_reproducible_with_a_seed_only():
    X, y, groups = separated()
    one, other = (model(local_epsilon=8.0).fit(X, y, groups).coef_ for _ in range(2))
    assert_array_equal(one, other)
    one, other = (model(random_state=None).fit(X, y, groups).coef_ for _ in range(2))
    assert (one != other).all()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"epsilon": None, "local_epsilon": 8.0}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_training_check_passes_for_almost_every_seed(n_classes, options):
    # the check of scikit-learn looks at one seed; it must not be passed by luck
    X, y = training_check_data(n_classes)
    passed = 0
    for seed in range(100):
        fitted = FederatedDPLogisticRegression(**options, random_state=seed).fit(X, y)
        passed += fitted.score(X, y) > 0.83
    assert passed >= 98


# Simulated deployments: the noise, what these clients spend, what the deployment would.


DELTA = 1e-9
ignored = pytest.mark.filterwarnings("ignore::skdp.exceptions.SimulationWarning")


def fitted(**options):
    usual = {
        "epsilon": 1.0, "delta": DELTA, "adjacency": "zero-out", "classes": (0, 1),
        "solver__batch_size": 10, "max_iter": 20, "population": Population(100_000),
        "random_state": 0, "local_update__clipping_norm": 0.1,
    }  # fmt: skip
    objects = {"local_update": GradientSteps(), "solver": FederatedAveraging()}
    made = FederatedDPLogisticRegression(**objects).set_params(**{**usual, **options})
    return made.fit(*clients([3] * 40))


@pytest.mark.sample(1)
@ignored
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_the_noise_on_the_mean_is_that_of_the_deployment(adjacency):
    model = fitted(adjacency=adjacency, population=Population(100_000, batch_size=5000))
    deployed = Sampling("poisson", 100_000, 5000)
    mu = sampled_mu(1.0, DELTA, sampling=deployed, n_releases=20, adjacency=adjacency)
    (release,) = model.ledger_.releases
    assert_allclose(release.noise.scale / 10, 0.1 / mu / 5000, rtol=1e-4)
    epsilon, delta = model.hypothetical_privacy_spent_
    assert 0.99 < epsilon <= 1.0
    assert delta == DELTA
    # the clients whose rows were read pay for the noise that there really was
    assert model.privacy_spent_[0] > 100
    assert model.privacy_spent_[0] == model.ledger_.epsilon(DELTA)


@ignored
def test_the_rate_is_kept_by_default():
    (one,), (other,) = (
        fitted(**options).ledger_.releases
        for options in ({}, {"population": Population(100_000, batch_size=25_000)})
    )
    assert one.noise.scale == other.noise.scale


@ignored
def test_a_population_of_the_clients_that_there_are_changes_nothing():
    (one,), (other,) = (
        fitted(population=given).ledger_.releases for given in (Population(40), None)
    )
    assert_allclose(one.noise.scale, other.noise.scale, rtol=1e-6)


@pytest.mark.sample(1)
@ignored
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_full_rounds_of_a_simulation_are_accounted_in_closed_form(adjacency):
    model = fitted(
        solver__batch_size=40, adjacency=adjacency, population=Population(100_000, batch_size=5000)
    )
    (release,) = model.ledger_.releases
    reach = 0.1 if adjacency == "zero-out" else 0.2
    expected = gdp_epsilon(reach / release.noise.scale * math.sqrt(20), DELTA)
    assert_allclose(model.privacy_spent_[0], expected, rtol=1e-5)
    # the deployment has Poisson batches, whose sensitivity is stated for one contribution
    deployed = Sampling("poisson", 100_000, 5000)
    mu = sampled_mu(1.0, DELTA, sampling=deployed, n_releases=20, adjacency=adjacency)
    assert_allclose(release.noise.scale / 40, 0.1 / mu / 5000, rtol=1e-4)


def test_a_simulation_says_so():
    with pytest.warns(SimulationWarning, match="population is set"):
        model = fitted()
    assert issubclass(SimulationWarning, PrivacyWarning)
    assert "hypothetical" not in repr(model.ledger_)
    assert fitted(population=None).hypothetical_privacy_spent_ is None


def test_a_small_deployment_costs_less_and_nothing_else_is_said():
    # no claim of more than epsilon: these clients spend less
    with pytest.warns(SimulationWarning, match="and not epsilon"):
        model = fitted(population=Population(10), solver__batch_size=None)
    assert model.privacy_spent_[0] < 1.0


@ignored
def test_sizes_of_a_deployment_need_not_be_whole():
    one, other = (
        fitted(population=Population(size), solver__batch_size=40) for size in (50.0, 50.5)
    )
    assert one.ledger_.releases[0].noise == other.ledger_.releases[0].noise


def test_a_rate_that_is_too_small_is_refused_by_its_name():
    with pytest.raises(ValueError, match=r"^batch_size of the population must be at least 1e-12"):
        fitted(population=Population(1e15, batch_size=5.0))
    with pytest.raises(ValueError, match=r"^batch_size must be at least 1e-12 times"):
        fitted(population=None, solver__batch_size=1e-11)


@pytest.mark.full
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_accounting_for_rare_clients_is_quick_and_tight(adjacency):
    # losses as far away as ten million steps of a grid that is made for the likely ones
    cost = SampledCost(Sampling("poisson", 10**9, 10**4), 2.4, adjacency, 5)
    start = time.perf_counter()
    found = _sampled_epsilon.__wrapped__(0.0, (), 1e-6, (cost,))
    assert time.perf_counter() - start < 8
    assert_allclose(found, 0.011989, rtol=2e-3)


def test_parameters_that_do_not_go_together():
    with pytest.raises(ValueError, match="of the population must be greater than 0 and at most"):
        fitted(population=Population(100_000, batch_size=200_000))
    with pytest.raises(ValueError, match="population is for noise"):
        fitted(epsilon=None, local_epsilon=1.0)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
@pytest.mark.parametrize("kind", ["poisson", "without-replacement"])
@pytest.mark.parametrize("batch_size", [3, 40])
def test_noise_that_hides_next_to_nothing_has_a_quick_honest_price(kind, adjacency, batch_size):
    sampling = Sampling(kind, 100, batch_size)
    start = time.perf_counter()
    found = compose_epsilon(0.0, (), DELTA, (SampledCost(sampling, 200.0, adjacency, 100),))
    assert time.perf_counter() - start < 1.0
    # at least what one participation costs, at most what taking part always does
    far = 2.0 if (kind, adjacency) == ("poisson", "replace-one") else 1.0
    assert 0.9 * 200.0**2 / 2 < found < gdp_epsilon(200.0 * far * 10, DELTA)


@pytest.mark.full
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_the_quick_price_is_above_the_composed_one(adjacency):
    cost = SampledCost(Sampling("poisson", 100, 20), 20.5, adjacency, 4)
    exact = _sampled_epsilon(0.0, (), DELTA, (cost,))
    quick = compose_epsilon(0.0, (), DELTA, (cost,))
    assert exact <= quick <= (1.5 if adjacency == "zero-out" else 5.0) * exact
    beside = compose_epsilon(1.0, ((0.5, 0.0, 2),), DELTA, (cost,))
    assert quick < beside < 1.5 * quick


def test_the_quick_price_is_that_of_what_could_be_told():
    # nearly everybody is drawn, in all rounds but k of 60 with half of delta
    sampling, mu = Sampling("poisson", 1000, 900), 25.0
    most = next(k for k in range(61) if binom.sf(k, 60, sampling.rate) <= 1e-6 / 2)
    for adjacency, far in (("zero-out", 1), ("replace-one", 2)):
        found = compose_epsilon(0.0, (), 1e-6, (SampledCost(sampling, mu, adjacency, 60),))
        expected = gdp_epsilon(far * mu * math.sqrt(most), 1e-6 / 2)
        assert expected <= found <= expected * (1 + 1e-8)


@pytest.mark.full
@pytest.mark.parametrize(
    ("batch", "rounds", "printed", "tight"),
    [(20_000, 100, 1.9, 0.5523), (15_000, 200, 1.76, 0.4683)],
)
def test_our_accountant_on_the_printed_settings(batch, rounds, printed, tight):
    # noise of 1.0 times the projection on the sum over the inflated batch
    sampling = Sampling("poisson", 10**7, batch)
    cost = SampledCost(sampling, 1.0, "zero-out", rounds)
    found = compose_epsilon(0.0, (), DELTA, (cost,))
    assert found < printed
    assert_allclose(found, tight, rtol=0.01)
    # Renyi divergences in their older and newer conversion: 1.8902, 1.5773; 1.7579, 1.4641
    event = dp_accounting.PoissonSampledDpEvent(batch / 10**7, dp_accounting.GaussianDpEvent(1.0))
    accountant = dp_accounting.rdp.RdpAccountant(list(np.arange(2, 257)))
    accountant.compose(event, rounds)
    newer = {100: 1.5773, 200: 1.4641}[rounds]
    assert_allclose(accountant.get_epsilon(DELTA), newer, atol=6e-5)
    assert found <= newer


def test_the_batches_that_were_simulated_hide_nothing():
    # the same noise on the mean of 200 and 75 clients is .01 and .005 of the projection
    for batch, rounds, multiplier in ((200, 100, 0.01), (75, 200, 0.005)):
        sampling = Sampling("poisson", 10**7, batch)
        cost = SampledCost(sampling, 1 / multiplier, "zero-out", rounds)
        assert 1000 < compose_epsilon(0.0, (), DELTA, (cost,)) < 1e6


def test_the_printed_noise_is_too_small_by_orders_of_magnitude():
    rate, rounds, radius, epsilon = 2e-5, 100, 100.0, 1.0
    printed = math.sqrt(rounds * rate**2 * radius**2 / epsilon)
    assert_allclose(printed, 0.02)
    whole = radius / math.sqrt(math.log1p(epsilon * (1 - rate) / (rounds * rate**2)))
    assert whole > 1000 * printed
    sampling = Sampling("poisson", 10**7, rate * 10**7)
    cost = SampledCost(sampling, radius / printed, "zero-out", rounds)
    assert compose_epsilon(0.0, (), DELTA, (cost,)) > 1e6
    # the formula that it was made from is no proof either, but of the right size
    cost = SampledCost(sampling, radius / whole, "zero-out", rounds)
    assert 0.5 < compose_epsilon(0.0, (), DELTA, (cost,)) < 20


# What federated fits claim: coupled traces with a whole client exchanged, and the ledger.


EPSILON, CLAIM_DELTA, N = 2.0, 1e-5, 8
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def claim_model(**options):
    usual = {
        "epsilon": EPSILON,
        "delta": CLAIM_DELTA,
        "classes": (0, 1),
        "random_state": 0,
        "max_iter": 7,
        "local_update__clipping_norm": 0.05,
        "solver__step_size": 1e-6,
        "fit_intercept": False,
    }
    objects = {"local_update": GradientSteps(), "solver": FederatedAveraging()}
    return FederatedDPLogisticRegression(**objects).set_params(**{**usual, **options})


def data(n_clients=N, n_classes=2):
    return clients(np.arange(n_clients) % 5 + 1, n_classes=n_classes)


def ratio(fitted, adjacency, client=2, n_classes=2):
    """Return the coupled mu of exchanging a client, over what the budget allows."""
    pair = exchanged(data(n_classes=n_classes), client, adjacency)
    return _audit.coupled_mu(lambda rows: clone(fitted).fit(*rows), *pair) / gdp_mu(
        EPSILON, CLAIM_DELTA
    )


CLAIM_LOCAL = {
    "one step": {},
    "five steps": {"local_update__n_steps": 5},
    "proximal": {"local_update": ProximalPoint()},
    "three classes": {"classes": (0, 1, 2)},
    "data_norm": {"data_norm": 7.0, "C": 2.0},
}


@pytest.mark.sample(3)
@every_adjacency
@pytest.mark.parametrize("name", CLAIM_LOCAL)
def test_a_client_with_many_rows_costs_what_is_claimed(name, adjacency):
    found = ratio(claim_model(adjacency=adjacency, **CLAIM_LOCAL[name]), adjacency)
    assert 0.999 <= found <= 1.0


@every_adjacency
def test_a_model_that_moves_claims_no_less(adjacency):
    fitted = claim_model(
        adjacency=adjacency,
        local_update__clipping_norm=None,
        solver__step_size=None,
        local_update__n_steps=3,
    )
    assert ratio(fitted, adjacency) <= 1.0


@pytest.mark.sample(1)
@every_adjacency
def test_a_client_of_random_batches_moves_sums_by_its_clip_when_drawn(adjacency):
    fitted = claim_model(adjacency=adjacency, solver__batch_size=3, max_iter=12)
    first, second = exchanged(data(), 2, adjacency)
    with batches.drawn() as seen, _audit.recorded() as one:
        clone(fitted).fit(*first)
    with batches.drawn(seen), _audit.recorded([step.output for step in one]) as other:
        clone(fitted).fit(*second)
    moved = 1 if adjacency == "zero-out" else 2
    for batch, a, b in zip(seen, one, other, strict=True):
        expected = moved * 0.05 if 2 in batch else 0.0
        assert np.linalg.norm(a.statistic - b.statistic) == pytest.approx(expected, abs=1e-6)
    assert 0 < sum(2 in batch for batch in seen) < 12


def test_noise_has_its_declared_scale_and_law():
    X, y, groups = clients([2] * 20, n_features=300)
    for options in ({}, {"solver__batch_size": 5}, {"local_epsilon": 8.0}):
        additions = _audit.noise_stream(claim_model(**options, max_iter=15).fit, X, y, groups)
        assert len(additions) == 15
        assert not _audit.scale_is_wrong(additions)


@pytest.mark.sample(1)
@every_adjacency
def test_sums_of_reports_are_charged_by_what_a_projected_report_counts_for(adjacency):
    for report_norm in (None, 0.03):
        fitted = claim_model(
            adjacency=adjacency,
            local_epsilon=4.0,
            solver__report_norm=report_norm,
            solver__batch_size=3,
        ).fit(*data())
        hidden, seen = fitted.ledger_.releases
        assert (hidden.hidden, hidden.adjacency) == (True, "local")
        assert (seen.of_reports, seen.adjacency, seen.unit) == (True, adjacency, "group")
        longest = fitted.ledger_.releases[1].stated_sensitivity
        if report_norm:
            assert longest == report_norm
        else:
            # the reports of the lift have the length 1 / cosine before an entry is left out
            assert longest > 0.05
        assert fitted.privacy_spent_[0] <= EPSILON


def test_clients_of_the_batch_report_anew_in_every_round(monkeypatch):
    made, total = [], ReportSum.total

    def spy(self, reports):
        made.append(reports.copy())
        return total(self, reports)

    monkeypatch.setattr(ReportSum, "total", spy)
    for options in ({}, {"epsilon": None}):
        made.clear()
        with batches.drawn() as seen:
            fitted = claim_model(local_epsilon=4.0, solver__batch_size=3, max_iter=12, **options)
            fitted = fitted.fit(*data())
        assert [len(reports) for reports in made] == [len(batch) for batch in seen]
        assert len(set(map(len, seen))) > 1
        together = np.concatenate(made)
        assert len(np.unique(together, axis=0)) == len(together)
        # the last digits of floats are never seen
        assert not (together % fitted.ledger_.releases[0].noise.grid).any()


def test_no_report_is_projected_by_default():
    fitted = claim_model(epsilon=None, local_epsilon=1.0, solver__batch_size=6).fit(*data())
    assert fitted.projected_share_ == 0.0
    fitted = claim_model(
        epsilon=None, local_epsilon=1.0, solver__batch_size=6, solver__report_norm=1e-3
    )
    assert fitted.fit(*data()).projected_share_ == 1.0
    assert claim_model().fit(*data()).projected_share_ is None


def test_reports_alone_cost_what_participations_cost():
    fitted = claim_model(epsilon=None, local_epsilon=3.0, solver__batch_size=2, max_iter=40).fit(
        *data()
    )
    (entry,) = fitted.ledger_.releases
    assert (entry.adjacency, entry.count, entry.unit) == ("local", 40, "group")
    price = fitted.local_epsilon_per_round_
    assert 2.999 < price <= 3.0
    most = next(k for k in range(40) if binom.sf(k, 40, 0.25) <= CLAIM_DELTA)
    assert fitted.privacy_spent_[0] <= most * price * (1 + 1e-9)
    assert fitted.privacy_spent_ == fitted.local_privacy_spent_
    assert fitted.local_epsilon_total_ == pytest.approx(40 * price)
    assert privacy_spent(fitted).ledger.unit == "group"


def test_every_client_reports_in_every_full_round():
    fitted = claim_model(epsilon=None, local_epsilon=3.0, solver__batch_size=N, max_iter=4).fit(
        *data()
    )
    assert fitted.privacy_spent_[0] == pytest.approx(12.0)


def test_a_trusted_server_sees_everything():
    fitted = claim_model().fit(*data())
    assert fitted.local_epsilon_per_round_ == fitted.local_epsilon_total_ == math.inf
    assert fitted.local_privacy_spent_ == (math.inf, CLAIM_DELTA)
    assert fitted.privacy_spent_[0] <= EPSILON


def test_delta_zero_is_for_reports_alone():
    fitted = claim_model(epsilon=None, local_epsilon=3.0, delta=0.0, solver__batch_size=4).fit(
        *data()
    )
    assert fitted.privacy_spent_ == (pytest.approx(21.0), 0.0)
    with pytest.raises(ValueError, match="delta"):
        claim_model(delta=0.0).fit(*data())


def test_a_sum_is_divided_by_the_expected_number():
    # whatever was drawn: the point moves by what was released over batch_size
    fitted = claim_model(
        solver__batch_size=2.5,
        max_iter=1,
        solver__step_size=0.5,
        solver__momentum=False,
        solver__average=False,
    )
    with batches.drawn() as seen, _audit.recorded() as additions:
        fitted = clone(fitted).fit(*data())
    assert len(seen) == 1
    np.testing.assert_allclose(fitted.coef_[0], 0.5 * additions[0].output / 2.5)


def test_a_sum_of_public_reports_is_divided_by_the_expected_number(monkeypatch):
    sums, total = [], ReportSum.total

    def spy(self, reports):
        sums.append(total(self, reports))
        return sums[-1]

    monkeypatch.setattr(ReportSum, "total", spy)
    options = {
        "solver__step_size": 0.5,
        "solver__momentum": False,
        "solver__average": False,
        "max_iter": 1,
    }
    fitted = claim_model(epsilon=None, local_epsilon=4.0, solver__batch_size=2.5, **options).fit(
        *data()
    )
    np.testing.assert_allclose(fitted.coef_[0], 0.5 * sums[0] / 2.5)


def test_nothing_is_read_that_was_not_paid_for(monkeypatch):
    def never(*_):
        raise AssertionError

    monkeypatch.setattr("skdp.federated._averaging.ClientRows.__init__", never)
    monkeypatch.setattr(_averaging, "gdp_mu", lambda *_: 1.1 * gdp_mu(EPSILON, CLAIM_DELTA))
    fitted = claim_model()
    with pytest.raises(BudgetError):
        fitted.fit(*data())


def test_reports_of_a_client_at_opposite_updates_differ_by_what_is_claimed(monkeypatch):
    kept, release = [], Curator.release

    def spy(*args, **options):
        kept.append(release(*args, **options))
        return kept[-1]

    monkeypatch.setattr(Curator, "release", spy)
    rows, groups = np.tile([1.0, 0.0], (4000, 1)), np.repeat(np.arange(1000), 4)
    fitted = claim_model(epsilon=None, local_epsilon=1.5, solver__batch_size=1000, max_iter=3)
    found = []
    for label in (0, 1):
        kept.clear()
        fitted.fit(rows, np.full(4000, label), groups)
        found.append(np.concatenate(kept)[:, 0])
    assert [len(one) for one in found] == [3000, 3000]
    # one entry of a report of three, and what is left to chance: a part of the price
    assert 0.7 < _audit.rate_epsilon(*found) <= 1.5


# Known bugs of federated learning, planted one by one: the audits must see every one of them.


ZERO_OUT = "zero-out"


def test_updates_that_are_not_clipped_are_caught(monkeypatch):
    assert ratio(claim_model(), "replace-one") <= 1.0
    monkeypatch.setattr(ClientUpdates, "_factors", lambda self, norm: np.ones_like(norm))
    assert ratio(claim_model(), "replace-one") > 1.5


def test_clipping_rows_instead_of_clients_is_caught(monkeypatch):
    def row_by_row(self, chunk):
        coef = np.atleast_2d(self.coef)
        total = np.zeros(coef.shape)
        for stack in chunk.stacks():
            # every row's part is short, but there are many
            weights = self._residuals(stack, coef) * stack.rows.shape[1]
            norm = _norms(weights.reshape(-1, 1, len(coef))) * _norms(
                stack.rows.reshape(-1, 1, stack.rows.shape[2])
            )
            weights *= self._factors(norm).reshape(*weights.shape[:2], 1)
            total[:, _all(stack.columns)] -= np.einsum("gmk,gmp->kp", weights, stack.rows)
        return total.ravel()

    assert ratio(claim_model(adjacency=ZERO_OUT), ZERO_OUT) <= 1.0
    monkeypatch.setattr(ClientUpdates, "partial", row_by_row)
    assert ratio(claim_model(adjacency=ZERO_OUT), ZERO_OUT) > 5


def test_weights_by_the_number_of_rows_are_caught(monkeypatch):
    real = ClientUpdates._factors

    def weighted(self, norm):
        return 1.2 * real(self, norm)

    monkeypatch.setattr(ClientUpdates, "_factors", weighted)
    assert ratio(claim_model(adjacency=ZERO_OUT), ZERO_OUT) > 1.1


def test_division_by_the_realised_number_is_caught(monkeypatch):
    X, y, groups = data()
    y = np.where(groups < 3, 99, y)
    fitted = claim_model(adjacency=ZERO_OUT, max_iter=1)
    real = ClientUpdates.evaluate

    def divided(self, rows):
        found = [self.vectors(chunk).any(axis=1).sum() for chunk in rows.chunks]
        return real(self, rows) * 8 / max(sum(found), 1)

    def sensitivity():
        changed = np.where(groups == 3, 99, y)
        pair = (X, y, groups), (X, changed, groups)
        return _audit.coupled_mu(lambda rows: clone(fitted).fit(*rows), *pair)

    honest = sensitivity()
    monkeypatch.setattr(ClientUpdates, "evaluate", divided)
    assert sensitivity() > 1.2 * honest


def test_halved_noise_is_caught(monkeypatch):
    X, y, groups = clients([3] * 12, n_features=400)
    assert not _audit.scale_is_wrong(_audit.noise_stream(clone(claim_model()).fit, X, y, groups))
    real = mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(clone(claim_model()).fit, X, y, groups))


def test_reports_that_are_not_projected_are_caught(monkeypatch):
    query, long = ReportSum(3, 1.0, 0.5), np.full((1, 3), 9.0)
    stated = query.sensitivity(ZERO_OUT, 1).l2
    assert np.linalg.norm(query.total(long)) <= stated * (1 + 1e-12)
    monkeypatch.setattr(ReportSum, "_factors", lambda self, reports: np.ones(len(reports)))
    assert np.linalg.norm(query.total(long)) > 10 * stated


def test_an_update_that_looks_at_other_clients_is_caught(monkeypatch):
    real = ClientUpdates._residuals

    def mixed(self, stack, coef):
        weights = real(self, stack, coef)
        return weights + 1e-3 * weights.mean(axis=0)

    def others():
        X, y, groups = clients([2] * 6)
        kept, vectors = [], ClientUpdates(np.ones(4), loss_of(2), 9.0)
        for sign in (1, -1):
            rows = np.where((groups == 0)[:, None], sign * X, X)
            (chunk,) = admitted(rows, y, groups, 6).chunks
            kept.append(vectors.vectors(chunk)[1:])
        return np.abs(kept[0] - kept[1]).max()

    assert others() == 0.0
    monkeypatch.setattr(ClientUpdates, "_residuals", mixed)
    assert others() > 0.0


@pytest.mark.parametrize("adjacency", ["replace-one", ZERO_OUT])
def test_a_limit_that_leaves_out_the_unit_is_caught(monkeypatch, adjacency):
    query = ReportSum(3, 4.0, 0.5)

    def unscaled(self, reports):
        return self.limit / np.maximum(np.linalg.norm(reports, axis=1), self.limit)

    reports = np.full((1, 3), 9.0)
    other = np.empty((0, 3)) if adjacency == ZERO_OUT else -reports
    stated = query.sensitivity(adjacency, 1).l2
    assert np.linalg.norm(query.total(reports) - query.total(other)) <= stated * (1 + 1e-12)
    monkeypatch.setattr(ReportSum, "_factors", unscaled)
    assert np.linalg.norm(query.total(reports) - query.total(other)) > 2 * stated

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Means of reports: expectation, error, intervals, and the server's half."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skdp import LocalDPMean, PrivUnitPrivatizer
from skdp.local import _moments as _report_sums
from skdp.privacy import Curator, LocalMechanism
from skdp.privacy.kernel.charging import Account
from tests import _audit

MODELS = [
    LocalDPMean(epsilon=4.0, random_state=0),
    LocalDPMean(epsilon=4.0, mechanism="flip", expected_norm=0.5, random_state=0),
    LocalDPMean(epsilon=4.0, mechanism="product", expected_norm=0.5, random_state=0),
    LocalDPMean(epsilon=4.0, mechanism="cube", bounds=(-1.0, 1.0), random_state=0),
]
PRIVATIZERS = [
    {"magnitude": "lift"},
    {"magnitude": "flip", "expected_norm": 0.5},
    {"magnitude": "product", "expected_norm": 0.5},
    {"mechanism": "cube", "bounds": (-1.0, 1.0)},
]
every_mechanism = pytest.mark.parametrize("model", MODELS, ids=lambda m: m.mechanism)


def copies(norm, n_rows, n_features=3):
    """Return a row many times."""
    row = np.arange(1.0, n_features + 1)
    return np.tile(row * (norm / np.linalg.norm(row)), (n_rows, 1))


@pytest.mark.covering
@every_mechanism
@pytest.mark.parametrize("norm", [0.0, 0.5, 1.0])
def test_mean_of_reports_is_that_of_rows(model, norm):
    rows = copies(norm, 40_000)
    fitted = clone(model).fit(rows)
    assert (np.abs(fitted.location_ - rows[0]) < 4 * fitted.standard_error_).all()


@every_mechanism
def test_variance_is_what_was_stated_beforehand(model):
    norm = 0.0 if model.mechanism == "cube" else model.expected_norm or 1.0
    fitted = clone(model).fit(copies(norm, 150_000))
    measured = fitted.standard_error_**2 * fitted.n_reports_
    assert measured.sum() == pytest.approx(fitted.noise_variance_.sum(), rel=0.02)
    expected = model.expected_error(n_samples=150_000, n_features=3)
    assert expected == pytest.approx(np.sqrt(fitted.noise_variance_.sum() / 150_000))


@pytest.mark.full
def test_squared_error_of_many_fits_is_what_was_stated_beforehand():
    model, rows = LocalDPMean(epsilon=2.0, data_norm=3.0), copies(1.0, 20, n_features=8)
    errors = [np.sum((model.fit(rows).location_ - rows[0]) ** 2) for _ in range(600)]
    expected = model.expected_error(20, 8) ** 2
    assert abs(np.mean(errors) - expected) < 4 * np.std(errors) / np.sqrt(len(errors))


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", [MODELS[0], MODELS[3]], ids=lambda m: m.mechanism)
def test_intervals_hold_as_often_as_they_say(model):
    model, held = clone(model).set_params(random_state=None), []
    rng = np.random.default_rng(0)
    for _ in range(400):
        lower, upper = model.fit(rng.uniform(-0.4, 0.4, size=(40, 5))).confidence_interval()
        held.append((lower < 0) & (upper > 0))
    # five entries, whose intervals are nearly independent
    assert 0.93 <= np.mean(held) <= 0.97


def test_long_rows_are_scaled_down():
    rows = 1e200 * np.eye(3)[[0] * 20_000]
    fitted = LocalDPMean(data_norm=2.0, random_state=0).fit(rows)
    assert np.abs(fitted.location_ - [2.0, 0.0, 0.0]).max() < 5 * fitted.standard_error_.max()


def test_large_budget_leaves_the_rows():
    rows = np.random.default_rng(0).uniform(-1, 1, size=(50, 4)) * [1, 2, 3, 4]
    for X in (rows, sparse.csr_array(rows), rows.astype(np.float32)):
        fitted = LocalDPMean(epsilon=1e5, data_norm=10.0, random_state=0).fit(X)
        np.testing.assert_allclose(fitted.location_, rows.mean(axis=0), atol=1e-4)
        sampling = rows.std(axis=0, ddof=1) / np.sqrt(50)
        np.testing.assert_allclose(fitted.standard_error_, sampling, rtol=1e-3)


@pytest.mark.parametrize(
    ("model", "privatizer"), [*zip(MODELS, PRIVATIZERS, strict=True)], ids=["a", "b", "c", "d"]
)
def test_server_needs_reports_only(model, privatizer):
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, size=(500, 3))
    clients = PrivUnitPrivatizer(epsilon=4.0, **privatizer)
    reports = clients.fit_transform(rows)
    server = clone(model).fit_reports(reports)
    assert server.randomiser_ == clients.randomiser_
    np.testing.assert_allclose(server.location_, reports.mean(axis=0), atol=1e-12)
    sampled = reports.std(axis=0, ddof=1) / np.sqrt(500)
    np.testing.assert_allclose(server.standard_error_, sampled)
    assert server.privacy_spent_ == (0.0, 0.0)
    assert not server.ledger_.releases
    assert "elsewhere" in server.ledger_.assumptions[0]
    with pytest.raises(ValueError, match="reports must have been made"):
        server.fit_reports(100 * reports)


def test_reports_are_in_memory_a_few_at_a_time(monkeypatch):
    rows, sizes = copies(0.5, 1000), []
    whole = LocalDPMean(random_state=0).fit(rows)
    monkeypatch.setattr(_report_sums, "_AT_ONCE", 3 * 64)
    real = _report_sums.MeanSums.add
    monkeypatch.setattr(
        _report_sums.MeanSums, "add", lambda sums, new: (sizes.append(len(new)), real(sums, new))
    )
    fitted = LocalDPMean(random_state=0).fit(rows)
    assert max(sizes) == 64
    assert sum(sizes) == fitted.n_reports_ == 1000
    assert fitted.ledger_ == whole.ledger_
    assert fitted.ledger_.epsilon() == fitted.ledger_.local_epsilon() <= 8.0


def test_whole_fits_cannot_be_told_apart_better_than_claimed():
    seeds = itertools.count()
    worlds = [
        np.array(
            [
                LocalDPMean(epsilon=2.0, random_state=next(seeds)).fit([[value]]).location_[0]
                for _ in range(600)
            ]
        )
        for value in (1.0, -1.0)
    ]
    assert 0.5 < _audit.rate_epsilon(*worlds) < 2.0


# Known bugs, planted one by one -----------------------------------------------------------


def test_row_that_reports_twice_is_caught(monkeypatch):
    real = Curator.release
    monkeypatch.setattr(
        Curator, "release", lambda self, *a, **kw: (real(self, *a, **kw), real(self, *a, **kw))[0]
    )
    with pytest.raises(ValueError, match=r"paid|in turn"):
        LocalDPMean(random_state=0).fit(copies(0.5, 10))


def test_reports_sold_below_their_price_are_caught(monkeypatch):
    monkeypatch.setattr(_report_sums, "LocalMechanism", lambda e: LocalMechanism(e / 2))
    with pytest.raises(ValueError, match="price"):
        LocalDPMean(random_state=0).fit(copies(0.5, 10))


def test_accounts_that_forget_are_caught_by_the_audit(monkeypatch):
    # every row reports three times for the price of once
    monkeypatch.setattr(Account, "take", lambda account, rows: None)
    real = Curator.release
    monkeypatch.setattr(
        Curator, "release", lambda *a, **kw: np.mean([real(*a, **kw) for _ in range(3)], axis=0)
    )
    model = LocalDPMean(epsilon=2.0)
    worlds = [
        np.array([model.fit([[value]]).location_[0] for _ in range(400)]) for value in (1.0, -1.0)
    ]
    assert _audit.rate_epsilon(*worlds) > 2.0


def test_second_fit_is_a_second_report():
    model = LocalDPMean(random_state=0).fit(copies(0.5, 10))
    assert (model.ledger_ + model.ledger_).epsilon() > 15.99


# Bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"epsilon": 1e-9}, "epsilon"),
        ({"epsilon": np.inf}, "epsilon"),
        ({"mechanism": "gaussian"}, "mechanism"),
        ({"mechanism": "cube"}, "bounds"),
        ({"bounds": (-1, 1)}, "bounds"),
        ({"mechanism": "cube", "bounds": (1, -1)}, "bounds"),
        ({"epsilon": 0.01, "mechanism": "cube", "bounds": (-1e308, 1e307)}, "bounds"),
        ({"data_norm": 0.0}, "data_norm"),
        ({"expected_norm": 1.5}, "expected_norm"),
    ],
    ids=str,
)
def test_unusable_parameters_are_named(params, message):
    for action in (lambda m: m.fit(np.eye(3)), lambda m: m.expected_error(10, 3)):
        with pytest.raises(ValueError, match=message):
            action(LocalDPMean(**params))


def test_unusable_rows_are_refused():
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            LocalDPMean().fit([[value, 1.0]])
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            LocalDPMean().fit_reports([[value, 1.0]])
    with pytest.raises(TypeError, match="bounds=None"):
        clone(MODELS[3]).fit(sparse.eye_array(3, format="csr"))


@every_mechanism
def test_awkward_rows_give_numbers(model):
    rows = [np.ones((1, 1)), np.zeros((5, 2)), np.full((9, 2), 1e300), np.full((9, 2), 1e-300)]
    for X in [*rows, np.eye(3, dtype=np.float32), np.ones((2, 400))]:
        X.setflags(write=False)
        fitted = clone(model).fit(X)
        assert np.isfinite(fitted.location_).all()
        lower, upper = fitted.confidence_interval()
        assert (lower < upper).all() or len(X) < 10
        assert np.isinf(upper).all() == (len(X) == 1)


def test_levels_and_sizes_are_checked():
    with pytest.raises(NotFittedError):
        LocalDPMean().confidence_interval()
    for level in (0.0, 1.0, np.nan, "95"):
        with pytest.raises(ValueError, match="level"):
            LocalDPMean().fit(np.eye(3)).confidence_interval(level)
    for size in (0, 1.5):
        with pytest.raises(ValueError, match="n_samples"):
            LocalDPMean().expected_error(size, 3)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of local reports, planted one by one at the gate: audits and refusals see them.

Every test first shows that the audit passes on the real code.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from skdp import PrivUnitPrivatizer, ScalarPrivatizer
from skdp.local.randomisers.base import Randomiser
from skdp.local.randomisers.report import LocalReports, RowVectors
from skdp.privacy import Curator, LocalMechanism
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.kernel.charging import Charging
from skdp.privacy.kernel.ledger import report_epsilon
from skdp.privacy.kernel.samplers import SeededBits

EPSILON, U = 2.0, np.array([0.0, 1.0, 0.0])
pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
every = pytest.mark.parametrize(
    "made",
    [
        PrivUnitPrivatizer(EPSILON),
        PrivUnitPrivatizer(EPSILON, magnitude="flip"),
        PrivUnitPrivatizer(EPSILON, magnitude="unit"),
        PrivUnitPrivatizer(EPSILON, mechanism="cube", bounds=(-1.0, 1.0)),
    ],
    ids=str,
)


def audited_epsilon(made, n_rows=40_000):
    """Return a lower bound on what reports of u and -u tell, with confidence 1 - 2e-6.

    The event is that a report is at least as far along u as the cap is; the larger share is
    bounded from below, and the smaller from above, by Clopper and Pearson.
    """
    # the corner of a cube, where nothing is rounded
    u = np.ones(3) if made.mechanism == "cube" else U
    made.fit(np.zeros((1, 3)))
    first, second = (made.transform(np.tile(s * u, (n_rows, 1))) @ u for s in (1.0, -1.0))
    half = n_rows // 2
    # the best threshold on the first half of the reports
    tries = np.quantile(np.concatenate([first[:half], second[:half]]), np.linspace(0.02, 0.98, 49))
    bounds = _log_ratio(first[:half], second[:half], tries)
    return float(_log_ratio(first[half:], second[half:], tries[[np.argmax(bounds)]])[0])


def _log_ratio(first, second, levels):
    n = len(first)
    more, less = (np.sum(w[:, None] >= levels, axis=0) for w in (first, second))
    low = np.where(more > 0, stats.beta.ppf(1e-6, np.maximum(more, 1), n - more + 1), 1e-300)
    high = np.where(less < n, stats.beta.ppf(1 - 1e-6, less + 1, np.maximum(n - less, 1)), 1.0)
    return np.log(low / high)


@every
def test_reports_tell_what_they_may_and_hardly_less(made):
    audited = audited_epsilon(made)
    assert audited <= EPSILON
    # the best event along u is not quite the cap where rows are lifted
    assert audited > 0.8 * EPSILON


@every
def test_reports_that_are_not_randomised_are_caught(made, monkeypatch):
    assert audited_epsilon(made, 4000) <= EPSILON
    monkeypatch.setattr(Randomiser, "report", lambda self, vectors, *_: vectors.copy())
    assert audited_epsilon(made, 4000) > EPSILON


def test_the_wrong_parameters_are_caught(monkeypatch):
    made = PrivUnitPrivatizer(EPSILON, magnitude="unit")
    assert audited_epsilon(made) <= EPSILON
    real = Randomiser.report

    def louder(randomiser, *others):
        return real(replace(randomiser, p=0.5 + 0.5 * randomiser.p), *others)

    monkeypatch.setattr(Randomiser, "report", louder)
    assert audited_epsilon(made) > EPSILON


@every
def test_an_understated_price_is_refused_by_the_budget_or_the_audit(made, monkeypatch):
    real = LocalReports.sensitivity
    for factor in (2.0, 0.0, math.inf, math.nan):
        with monkeypatch.context() as patch:
            patch.setattr(
                LocalReports,
                "sensitivity",
                lambda self, *args, f=factor: replace(
                    real(self, *args), spread=f * real(self, *args).spread
                ),
            )
            made.fit(np.zeros((1, 3)))
            with pytest.raises(ValueError, match="must state a finite bound and a price"):
                made.transform(U[None])
    # half of it passes the gate, which takes queries at their word, and not the audit
    monkeypatch.setattr(
        LocalReports,
        "sensitivity",
        lambda self, *args: replace(real(self, *args), spread=real(self, *args).spread / 2),
    )
    audited = audited_epsilon(made)
    assert made.ledger_.releases[0].noise.epsilon < audited


# -- rows and each other ---------------------------------------------------------------------


def most_alike(made, n_rows=300):
    """Return the largest correlation of the noise of two rows, relative to chance."""
    rows = np.random.default_rng(0).normal(size=(n_rows, 40)) / 10
    noise = made.fit(rows).transform(rows) - rows
    noise /= np.linalg.norm(noise, axis=1)[:, None]
    alike = np.abs(noise @ noise.T - np.eye(n_rows))
    return alike.max() * math.sqrt(40)


@pytest.mark.parametrize("seed", [None, 0])
def test_the_same_noise_for_two_rows_is_caught(seed, monkeypatch):
    made = PrivUnitPrivatizer(1.0, random_state=seed)
    assert most_alike(made) < 6.0
    monkeypatch.setattr(
        SeededBits, "of_rows", lambda self, rows: (SeededBits(1, "same") for _ in rows)
    )
    real = Randomiser.report

    def repeated(randomiser, vectors, source, *others):
        made = [real(randomiser, row[None], SeededBits(1, "same")) for row in vectors]
        return np.concatenate(made)

    monkeypatch.setattr(Randomiser, "report", repeated)
    assert most_alike(made) > 6.2


def reacts(made):
    """Return whether seeded reports of other rows change with the first row."""
    rows = np.random.default_rng(0).uniform(-1, 1, size=(20, 3))
    other = rows.copy()
    other[0] = [5.0, -3.0, 0.5]
    first, second = (made.fit(rows).transform(r) for r in (rows, other))
    assert not np.array_equal(first[0], second[0])
    return not np.array_equal(first[1:], second[1:])


def test_a_report_that_looks_at_another_row_is_caught(monkeypatch):
    made = PrivUnitPrivatizer(random_state=0)
    assert not reacts(made)
    real = RowVectors.vectors
    monkeypatch.setattr(
        RowVectors, "vectors", lambda self, chunk: real(self, chunk) - real(self, chunk).mean(0)
    )
    assert reacts(made)


def test_words_that_depend_on_a_row_before_are_caught(monkeypatch):
    # without streams of their own, rows share words; how many one takes must not tell
    made = ScalarPrivatizer(6.0, bounds=(-1.0, 1.0), random_state=0)
    assert not reacts(made)
    fresh = SeededBits.of_rows

    def shifted(self, rows):
        for own in fresh(self, rows):
            own.words(int(abs(rows[0]).sum() * 10))
            yield own

    monkeypatch.setattr(SeededBits, "of_rows", shifted)
    assert reacts(made)


# -- the gate --------------------------------------------------------------------------------


def test_snapping_changes_digits_only(monkeypatch):
    made = PrivUnitPrivatizer(random_state=0)
    rows = np.random.default_rng(0).normal(size=(40, 5))
    usual = made.fit(rows).transform(rows)
    grid = made.ledger_.releases[0].noise.grid
    np.testing.assert_array_equal(usual, np.rint(usual / grid) * grid)
    monkeypatch.setattr(_mechanisms, "align", lambda part, noise: part / noise.grid)
    unsnapped = made.fit(rows).transform(rows)
    np.testing.assert_allclose(unsnapped, usual, atol=grid)
    assert not np.array_equal(unsnapped, usual)


def test_a_call_that_is_not_charged_is_caught(monkeypatch):
    made = PrivUnitPrivatizer(EPSILON).fit(np.zeros((1, 3)))
    for _ in range(3):
        made.transform(U[None])
    assert made.privacy_spent_[0] > 2.9 * EPSILON
    monkeypatch.setattr(Charging, "_append", lambda *_: None)
    made.transform(U[None])
    assert made.privacy_spent_[0] < 3.1 * EPSILON


def test_chance_that_is_counted_without_delta_is_caught():
    # a row that takes part in all ten rounds, as it may, tells all of its reports
    assert report_epsilon([], [(0.5, 10, 0.3)], 0.0) >= 5.0
    assert report_epsilon([], [(0.5, 10, 0.3)], 1e-3) < 5.0


def test_a_randomiser_that_is_louder_than_granted_is_refused():
    gate = Curator(
        lambda: None, n_rows=1, epsilon=9.0, delta=0.0, adjacency="local", random_state=None,
        purpose="",
    )  # fmt: skip
    query = LocalReports(RowVectors(), PrivUnitPrivatizer(3.0).fit([[0.0]]).randomiser_)
    with pytest.raises(ValueError, match="a price of at most"):
        gate.release(query, LocalMechanism(2.9))

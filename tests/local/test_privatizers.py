# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Privatizers of vectors and scalars, and planted bugs."""

import copy
import math
import pickle
from dataclasses import replace

import joblib
import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skdp import PrivUnitPrivatizer, ScalarPrivatizer, privacy_spent
from skdp.local import optimal_privunit, paper_privunit
from skdp.local.randomisers.ball import Flip, Lift, Product
from skdp.local.randomisers.base import Randomiser
from skdp.local.randomisers.report import LocalReports, RowVectors
from skdp.privacy import Curator, LocalMechanism
from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.charging import Charging
from skdp.privacy.kernel.ledger import report_epsilon
from skdp.privacy.kernel.samplers import SeededBits

# PrivUnitPrivatizer: unbiased reports, which calls report, and what the ledger says.


pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
ROW = np.array([0.3, -0.2, 0.1, 0.25])
X = np.random.default_rng(0).normal(size=(60, 4)) / 3
Y = np.arange(60) % 2
CONFIGURATIONS = [
    {},
    {"data_norm": 7.0},
    {"magnitude": "flip"},
    {"magnitude": "product"},
    {"magnitude": "product", "levels": "relative", "expected_norm": 0.3},
    {"magnitude": "product", "n_levels": 5, "magnitude_epsilon": 2.0},
    {"magnitude": "product", "parameters": "paper-simulation"},
    {"magnitude": "auto", "expected_norm": 0.4},
    {"magnitude": "unit"},
    {"parameters": "paper"},
    {"parameters": "half"},
    {"mechanism": "privunit-gaussian"},
    {"mechanism": "privunit-gaussian", "magnitude": "flip"},
    {"mechanism": "privunit-gaussian", "magnitude": "unit"},
    {"mechanism": "cube", "bounds": (-2.0, [0.5, 1.0, 3.0, 2.0])},
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("given", CONFIGURATIONS, ids=str)
def test_reports_are_unbiased_and_cost_what_was_asked(given):
    made = PrivUnitPrivatizer(6.0, **given).fit(ROW[None])
    reports = made.transform(np.tile(ROW, (40_000, 1)))
    truth = ROW / np.linalg.norm(ROW) if given.get("magnitude") == "unit" else ROW
    error = reports.std(axis=0) / 200
    assert (np.abs(reports.mean(axis=0) - truth) < 5 * error).all()
    (release,) = made.ledger_.releases
    assert release.adjacency == "local"
    assert 5.0 < made.privacy_spent_[0] == release.noise.epsilon <= 6.0
    assert made.privacy_spent_[1] == 0.0
    assert ("idealised" in release.numerics) == (given.get("mechanism") != "cube")
    across = np.array([0.2, 0.3, 0.0, 0.0]) / np.hypot(0.2, 0.3)
    if given.get("mechanism") == "cube":
        middle = made._domain.box.center
        entries = made.noise_variance_ - (ROW - middle) ** 2
        np.testing.assert_allclose(reports.var(axis=0), entries, rtol=0.05)
    elif given.get("magnitude") not in ("product", "auto"):
        np.testing.assert_allclose((reports @ across).var(), made.noise_variance_, rtol=0.06)


@pytest.mark.full
def test_a_report_by_projections_is_unbiased_over_calls():
    made = PrivUnitPrivatizer(6.0, mechanism="projunit", n_components=2).fit(ROW[None])
    means = [made.transform(np.tile(ROW, (50, 1))).mean(axis=0) for _ in range(800)]
    error = np.std(means, axis=0) / np.sqrt(800)
    assert (np.abs(np.mean(means, axis=0) - ROW) < 5 * error).all()
    assert made.message_bits_ == 2 * 32 + 128


def test_default_noise_is_the_same_in_all_directions_for_all_rows():
    made = PrivUnitPrivatizer(3.0).fit(np.zeros((1, 3)))
    for row in (np.zeros(3), np.array([0.0, 0.6, 0.0]), np.array([0.6, 0.0, 0.8])):
        reports = made.transform(np.tile(row, (60_000, 1)))
        np.testing.assert_allclose(
            np.cov(reports.T), made.noise_variance_ * np.eye(3), atol=0.03 * made.noise_variance_
        )
    assert made.message_bits_ == 96


def test_parameters_are_those_of_the_arithmetic():
    kinds = {"lift": Lift, "flip": Flip, "product": Product}
    for magnitude, kind in kinds.items():
        made = PrivUnitPrivatizer(10.0, magnitude=magnitude).fit(X).randomiser_
        assert type(made) is kind
        assert made.n_dims == 4
    unit = PrivUnitPrivatizer(10.0, magnitude="unit").fit(X).randomiser_
    assert unit == optimal_privunit(10.0, 4)
    paper = PrivUnitPrivatizer(10.0, magnitude="unit", parameters="paper").fit(X).randomiser_
    expected = paper_privunit(9.9, 0.1, 4)
    assert (paper.cosine, paper.p) == pytest.approx((expected.cosine, expected.p))
    split = PrivUnitPrivatizer(
        16.0, magnitude="product", parameters="paper-simulation", n_levels=9
    ).fit(X).randomiser_  # fmt: skip
    assert split.grid.epsilon == pytest.approx(2.0)
    assert split.grid.levels.size == 9
    assert np.log(split.unit.p / (1 - split.unit.p)) == pytest.approx(1.0)


# -- which calls report ----------------------------------------------------------------------


def test_after_fit_every_call_reports_and_spends():
    made = PrivUnitPrivatizer(2.0).fit(X)
    assert made.privacy_spent_ == (0.0, 0.0)
    before = vars(made).copy()
    first, second = made.transform(X), made.transform(X)
    assert not np.isclose(first, second).all(axis=1).any()
    assert vars(made) == before
    assert 3.9 < made.privacy_spent_[0] <= 4.0
    assert made.ledger_.releases[0].count == 2
    # a fit begins anew
    assert made.fit(X).privacy_spent_ == (0.0, 0.0)


@pytest.mark.parametrize("rows", [X, sparse.csr_array(X)], ids=["dense", "sparse"])
def test_after_training_new_rows_pass_as_they_are(rows):
    made = PrivUnitPrivatizer(2.0, data_norm=0.5)
    trained = made.fit_transform(rows)
    assert trained.shape == X.shape
    kept = made.transform(rows)
    kept = kept.toarray() if sparse.issparse(kept) else kept
    inside = np.linalg.norm(X, axis=1) <= 0.5
    assert 0 < inside.sum() < 60
    np.testing.assert_array_equal(kept[inside], X[inside])
    np.testing.assert_allclose(np.linalg.norm(kept[~inside], axis=1), 0.5)
    assert made.privacy_spent_[0] <= 2.0
    # and fitting alone is for clients again
    assert not np.isclose(made.fit(rows).transform(X), X).all(axis=1).any()


def test_kept_rows_are_in_the_domain_of_directions_and_boxes():
    made = PrivUnitPrivatizer(magnitude="unit", data_norm=3.0, new_rows="keep").fit(X)
    np.testing.assert_allclose(np.linalg.norm(made.transform(X), axis=1), 3.0)
    np.testing.assert_array_equal(made.transform(np.zeros((1, 4))), 0.0)
    made = PrivUnitPrivatizer(mechanism="cube", bounds=(-0.1, 0.2), new_rows="keep").fit(X)
    np.testing.assert_array_equal(made.transform(X), np.clip(X, -0.1, 0.2))
    assert made.privacy_spent_ == (0.0, 0.0)


def test_what_transform_does_can_be_said():
    always = PrivUnitPrivatizer(2.0, new_rows="randomise")
    always.fit_transform(X)
    assert not np.isclose(always.transform(X), X).all(axis=1).any()
    assert always.ledger_.releases[0].count == 2
    never = PrivUnitPrivatizer(2.0, new_rows="keep").fit(X / 9)
    np.testing.assert_array_equal(never.transform(X / 9), X / 9)
    assert not never.ledger_.releases
    assert not np.isclose(never.fit_transform(X), X).all(axis=1).any()
    assert len(never.ledger_.releases) == 1


def test_equal_rows_and_further_calls_get_other_reports():
    for seed in (None, 0):
        made = PrivUnitPrivatizer(8.0, random_state=seed).fit(X)
        reports = made.transform(np.tile(ROW, (500, 1)))
        assert len(np.unique(reports, axis=0)) == 500


def test_a_seeded_report_depends_on_the_row_alone():
    made = PrivUnitPrivatizer(random_state=3).fit(X)
    reports, order = made.transform(X), np.random.default_rng(1).permutation(60)
    np.testing.assert_array_equal(made.transform(X[order]), reports[order])
    np.testing.assert_array_equal(made.transform(X[17:18]), reports[17:18])
    np.testing.assert_array_equal(clone(made).fit_transform(X), reports)
    assert made.ledger_.seeded
    other = PrivUnitPrivatizer(random_state=4).fit(X).transform(X)
    assert not np.isclose(other, reports).all(axis=1).any()


# -- in company ------------------------------------------------------------------------------


def test_a_pipeline_trains_on_reports_and_predicts_on_rows():
    model = make_pipeline(PrivUnitPrivatizer(4.0, data_norm=5.0), LogisticRegression())
    model.fit(X, Y)
    last = model[-1]
    np.testing.assert_array_equal(model.predict_proba(X), last.predict_proba(X))
    spent = privacy_spent(model)
    assert 3.9 < spent.epsilon <= 4.0
    assert spent.delta == 0.0
    # labels went into the regression as they were
    assert "not covered: step 'logisticregression', which was fitted on the data" in str(spent)
    assert spent.ledger.releases[0].count == 1


def test_cross_validation_and_search_refit_and_spend_on_clones():
    made = PrivUnitPrivatizer(4.0)
    model = make_pipeline(made, LogisticRegression())
    assert np.isfinite(cross_val_score(model, X, Y, cv=3)).all()
    with pytest.raises(NotFittedError):
        _ = made.ledger_
    assert not hasattr(made, "privacy_spent_")
    search = GridSearchCV(model, {"privunitprivatizer__epsilon": [1.0, 4.0]}, cv=2).fit(X, Y)
    assert search.best_estimator_[0].ledger_.releases[0].count == 1


def test_copies_keep_the_ledger_and_clones_do_not():
    made = PrivUnitPrivatizer(2.0)
    made.fit_transform(X)
    for twin in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert twin.privacy_spent_ == made.privacy_spent_
        twin.set_params(new_rows="randomise").transform(X)
        assert twin.ledger_.releases[0].count == 2
        np.testing.assert_array_equal(twin.set_params(new_rows="keep").transform(X / 9), X / 9)
    assert made.ledger_.releases[0].count == 1
    with pytest.raises(NotFittedError):
        clone(made).transform(X)


def test_threads_add_to_one_ledger():
    made = PrivUnitPrivatizer(2.0).fit(X)
    calls = (joblib.delayed(made.transform)(X) for _ in range(40))
    joblib.Parallel(n_jobs=4, backend="threading")(calls)
    assert sum(release.count for release in made.ledger_.releases) == 40


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_go_in_and_come_out(library):
    module = pytest.importorskip(library)
    frame = module.DataFrame({name: X[:, i] for i, name in enumerate("abcd")})
    made = PrivUnitPrivatizer().set_output(transform=library).fit(frame)
    assert list(made.transform(frame).columns) == list("abcd")
    assert list(made.fit_transform(frame).columns) == list("abcd")
    assert list(made.get_feature_names_out()) == list("abcd")


# ScalarPrivatizer: every feature reports on its own, from exact laws.


@pytest.mark.sample(2)
@pytest.mark.parametrize("levels", ["uniform", "relative"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 30.0])
def test_reports_are_unbiased_and_their_variance_is_bounded(levels, epsilon):
    row = np.array([0.3, 7.0, -1.0])
    made = ScalarPrivatizer(epsilon, bounds=([0, 0, -1], [1, 10, 3]), levels=levels).fit(row[None])
    reports = made.transform(np.tile(row, (50_000, 1)))
    error = reports.std(axis=0) / np.sqrt(50_000)
    assert (np.abs(reports.mean(axis=0) - row) <= 5 * error).all()
    # at large budgets a few far levels make up half of the variance
    squares = (reports - row) ** 2
    error = squares.std(axis=0) / np.sqrt(50_000)
    assert (squares.mean(axis=0) <= made.noise_variance_ + 5 * error).all()
    np.testing.assert_allclose(
        made.noise_variance_, made.noise_variance_[0] * np.array([1, 100, 16])
    )
    (release,) = made.ledger_.releases
    assert 0.999 * epsilon < release.noise.epsilon <= epsilon
    assert release.numerics == "exact on the grid, system entropy"
    assert made.randomiser_.grid.epsilon <= epsilon / 3


def test_reports_are_levels_and_their_shares_are_those_of_randomised_response():
    made = ScalarPrivatizer(2.0, n_levels=4).fit([[0.0]])
    found = {x: made.transform(np.full((40_000, 1), x))[:, 0] for x in (0.0, 1.0)}
    levels = np.unique(found[0.0])
    np.testing.assert_allclose(levels, 0.5 + made.randomiser_.grid.outputs / 2, atol=2e-6)
    shares = np.array([[np.mean(r == v) for v in levels] for r in found.values()])
    p = made.randomiser_.grid.p
    np.testing.assert_allclose(shares[0], [p, *[(1 - p) / 3] * 3], atol=0.01)
    # the audit: what the largest ratio is
    assert np.log(shares[0] / shares[1]).max() == pytest.approx(2.0, abs=0.1)
    assert made.message_bits_ == 2


def test_relative_levels_are_fine_near_the_lower_bound():
    coarse = ScalarPrivatizer(60.0, n_levels=40).fit([[0.0]])
    fine = ScalarPrivatizer(60.0, n_levels=40, levels="relative", floor=0.01).fit([[0.0]])
    assert fine.randomiser_.grid.levels.size <= 40
    small = np.full((20_000, 1), 0.005)
    assert fine.transform(small).var() < coarse.transform(small).var() / 20


def test_features_share_the_budget_and_report_independently():
    made = ScalarPrivatizer(6.0).fit(np.zeros((1, 3)))
    reports = made.transform(np.full((50_000, 3), 0.4))
    correlations = np.corrcoef(reports.T) - np.eye(3)
    assert np.abs(correlations).max() < 0.025
    assert made.randomiser_.n_dims == 3


def test_rows_that_are_equal_once_they_are_clipped_keep_their_seeded_reports():
    rows = np.random.default_rng(0).uniform(1, 3, size=(30, 2))
    made = ScalarPrivatizer(random_state=0).fit(rows)
    np.testing.assert_array_equal(made.transform(rows)[::-1], made.transform(rows[::-1]))


def test_new_rows_are_clipped_only():
    made = ScalarPrivatizer(bounds=(0.0, 2.0))
    made.fit_transform([[1.0], [3.0]])
    np.testing.assert_array_equal(made.transform([[-1.0], [1.5], [9.0]])[:, 0], [0.0, 1.5, 2.0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"floor": 0.1}, 'floor is for levels="relative" only'),
        ({"levels": "relative", "n_levels": 2}, "n_levels must be at least 6"),
        ({"levels": "relative", "floor": 0.0}, "floor"),
        ({"n_levels": 1}, "n_levels"),
        ({"bounds": (1.0, 0.0)}, "bounds"),
        ({"bounds": None}, "bounds"),
        ({"epsilon": 1e-6}, "epsilon must be at least .* for 2 features"),
        ({"epsilon": 3e6}, "epsilon"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        ScalarPrivatizer(**given).fit(np.zeros((2, 2)))


def test_budgets_of_other_types():
    rows = np.full((2, 3), 0.5)
    privatizer = ScalarPrivatizer(epsilon=np.float32(1)).fit(rows)
    assert privatizer.transform(rows).shape == (2, 3)
    assert privatizer.privacy_spent_[0] <= 1.0
    with pytest.raises(ValueError, match="epsilon"):
        ScalarPrivatizer(epsilon=True).fit(rows)
    with pytest.raises(ValueError, match=r"epsilon must be from 1e-6 to 1e6.* got 10000000.0"):
        ScalarPrivatizer(epsilon=1e7).fit(rows)


# Known bugs of local reports, planted one by one at the gate: audits and refusals see them.
#
# Every test first shows that the audit passes on the real code.


EPSILON, U = 2.0, np.array([0.0, 1.0, 0.0])
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


@pytest.mark.sample(1)
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


@pytest.mark.sample(1)
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


@pytest.mark.sample(1)
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
    monkeypatch.setattr(mechanisms, "align", lambda part, noise: part / noise.grid)
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

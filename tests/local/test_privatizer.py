# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""PrivUnitPrivatizer: unbiased reports, which calls report, and what the ledger says."""

import copy
import pickle

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skdp import PrivUnitPrivatizer, privacy_spent
from skdp.local.randomisers.ball import Flip, Lift, Product
from skdp.local.randomisers.privunit import optimal_privunit, paper_privunit

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
    assert not np.isclose(first, second).any()
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
    assert not np.isclose(made.fit(rows).transform(X), X).any()


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
    assert not np.isclose(always.transform(X), X).any()
    assert always.ledger_.releases[0].count == 2
    never = PrivUnitPrivatizer(2.0, new_rows="keep").fit(X / 9)
    np.testing.assert_array_equal(never.transform(X / 9), X / 9)
    assert not never.ledger_.releases
    assert not np.isclose(never.fit_transform(X), X).any()
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
    assert not np.isclose(other, reports).any()


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

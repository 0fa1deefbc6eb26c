# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The identity of seeded noise: two fits that share their noise have no total and no budget."""

import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPMean,
    DPMedian,
    DPStandardScaler,
    LedgerDisplay,
    PrivacyBudget,
    PrivUnitPrivatizer,
    privacy_card,
    privacy_spent,
)
from skdp.exceptions import BudgetError

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
OTHER = np.vstack([X[:-1], [[0.5, 0.5, 0.5]]])


def mean(seed=None, rows=X, **parameters):
    given = {"epsilon": 0.1, "data_norm": 1.0, "random_state": seed, **parameters}
    return DPMean(**given).fit(rows)


def classifier(**parameters):
    return DPLogisticRegression(
        **{"data_norm": 1.0, "epsilon": 0.5, "max_iter": 2, "classes": [0, 1], **parameters}
    )


def streams(estimator):
    return {release.stream for release in estimator.ledger_.releases}


# -- what has one ------------------------------------------------------------------------------


def test_noise_of_the_operating_system_has_no_identity():
    assert streams(mean()) == {None}
    assert mean().ledger_.streams == ()
    assert streams(DPGridSearchCV(classifier(), {"C": [1.0, 2.0]}).fit(X, Y)) == {None}


def test_a_seed_and_a_purpose_are_an_identity():
    (ours,) = mean(5).ledger_.streams
    assert len(ours) == 32
    assert mean(np.int64(5), OTHER, epsilon=2.0).ledger_.streams == (ours,)
    assert mean(5, X[:, :1], mechanism="laplace").ledger_.streams == (ours,)
    assert mean(6).ledger_.streams != (ours,)
    # another estimator draws from another stream of the seed
    assert DPMedian(random_state=5, data_norm=1.0).fit(X).ledger_.streams != (ours,)
    assert pickle.loads(pickle.dumps(mean(5))).ledger_.streams == (ours,)


def test_a_generator_gives_every_fit_noise_of_its_own_unless_it_is_copied():
    state = np.random.RandomState(0)
    model = DPMean(random_state=state, data_norm=1.0)
    copied = clone(model)
    first, second = model.fit(X).ledger_, model.fit(X).ledger_
    assert first.streams != second.streams
    assert (first + second).epsilon(1e-5) < math.inf
    # scikit-learn's clone copies the generator, and so the noise
    third = copied.fit(X).ledger_
    assert third.streams == first.streams
    assert (first + third).epsilon(1e-5) == math.inf


# -- totals ------------------------------------------------------------------------------------


def test_two_fits_with_one_seed_cancel_their_noise_and_have_no_total():
    # on a secret seed: the released difference is that of the data, to the grid
    seed = int(np.random.RandomState().randint(2**31))
    one, two = mean(seed), mean(seed, OTHER)
    moved = (one.location_ - two.location_) * len(X)
    assert np.allclose(moved, (X - OTHER).sum(axis=0), atol=1e-3)
    spent = privacy_spent(one, two)
    assert spent.epsilon == math.inf
    assert one.ledger_.streams[0] in str(spent)
    assert "had the same random_state" in str(spent)
    assert "random_state=None" in repr(spent.ledger)
    assert "had the same random_state" in spent.ledger._repr_html_()
    assert privacy_spent(one, mean(seed + 1)).epsilon < math.inf


def test_no_number_of_shared_noise_is_finite():
    both = mean(1).ledger_ + mean(1).ledger_
    assert {both.mu, both.rho, both.gdp, both.epsilon(0.5), both.local_epsilon(0.5)} == {math.inf}
    assert "NonPrivate" in repr(both.dp_event)
    # however it is added on
    for more in (both + mean(2).ledger_, mean(2).ledger_ + both, both.assume("it")):
        assert more.epsilon(1e-3) == math.inf
        assert more.shared_noise == mean(1).ledger_.streams
    assert (mean(1).ledger_ + mean(2).ledger_).epsilon(1e-3) < math.inf
    with pytest.raises(ValueError, match="delta must be"):
        both.epsilon(-1.0)


@pytest.mark.parametrize(
    "seed", [3, np.random.RandomState(3)], ids=lambda seed: type(seed).__name__
)
def test_fits_of_a_search_or_a_cross_validation_share_the_noise_of_a_seed(seed):
    model = classifier(random_state=seed)
    assert privacy_spent(model, cv=3).epsilon == math.inf
    assert privacy_spent(classifier(), cv=3).epsilon < math.inf
    for n_folds in (1, 2):
        cv = KFold(3) if n_folds == 2 else [(np.arange(40), np.arange(40, 60))]
        search = GridSearchCV(model, {"C": [1.0]}, cv=cv).fit(X, Y)
        # the fit that was kept begins where those began that were not
        assert privacy_spent(search).epsilon == math.inf
        assert "seed" in {item.kind for item in privacy_spent(search).not_covered}


def test_steps_of_one_class_share_the_noise_of_a_seed_and_others_do_not():
    def scaler(seed):
        return DPStandardScaler(bounds=(-1, 1), random_state=seed)

    model = make_pipeline(scaler(0), classifier(random_state=0)).fit(X, Y)
    assert privacy_spent(model).epsilon < math.inf
    for second, shared in ((0, True), (1, False)):
        front = ColumnTransformer([("a", scaler(0), [0]), ("b", scaler(second), [1])])
        total = privacy_spent(make_pipeline(front, classifier()).fit(X, Y))
        assert (total.epsilon == math.inf) == shared
    # one seed, and a class of labels in turn: differences of their models have no noise
    labels = np.arange(60) % 3
    each = OneVsRestClassifier(DPLogisticRegression(max_iter=2, random_state=0, data_norm=1.0)).fit(
        X, labels
    )
    assert privacy_spent(each).epsilon == math.inf


def test_the_seeds_that_a_search_gives_its_runs_are_not_repeated():
    model = make_pipeline(
        DPStandardScaler(bounds=(-1, 1), random_state=0), classifier(random_state=0)
    )
    search = DPGridSearchCV(model, {"dplogisticregression__C": [0.1, 1.0]}, random_state=0)
    spent = privacy_spent(search.fit(X, Y))
    assert spent.epsilon <= 1.0
    assert privacy_spent(search.best_estimator_).epsilon <= 1.0
    assert privacy_spent(search, clone(search).fit(X, Y)).epsilon == math.inf


def test_reports_of_one_transformer_repeat_what_they_said():
    # with a seed the second report of a row is the first one
    reporter = PrivUnitPrivatizer(epsilon=2.0, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(reporter.transform(X), reporter.transform(X))
    assert privacy_spent(reporter).epsilon == pytest.approx(4.0)
    # another mechanism makes something else of the same bits
    other = PrivUnitPrivatizer(epsilon=2.0, mechanism="cube", bounds=(-1, 1), random_state=0)
    other.fit_transform(X)
    assert privacy_spent(reporter, other).epsilon == math.inf


def test_card_and_picture_say_why_there_is_no_total():
    shared = make_pipeline(
        ColumnTransformer(
            [(name, DPStandardScaler(bounds=(-1, 1), random_state=0), [i])
             for i, name in enumerate("ab")]
        ),
        classifier(),
    ).fit(X, Y)  # fmt: skip
    card = privacy_card(shared).to_dict()
    assert card["claim"]["status"] == "none"
    assert [note["kind"] for note in card["notes"]] == ["shared noise", "seeded"]
    with pytest.raises(ValueError, match="fits share their noise"):
        LedgerDisplay.from_estimator(shared)


# -- what is said of a seed --------------------------------------------------------------------


def test_a_seed_is_not_covered_and_the_total_holds_for_the_others():
    model = make_pipeline(DPStandardScaler(bounds=(-1, 1)), classifier(random_state=0)).fit(X, Y)
    spent = privacy_spent(model)
    (item,) = spent.not_covered
    assert (item.kind, item.step) == ("seed", "dplogisticregression")
    assert "seeded: no guarantee towards whoever can guess the seed" in str(spent)
    assert spent.uncovered == ()
    assert tuple(spent) == spent.covered
    card = privacy_card(model).to_dict()
    assert card["claim"]["status"] == "holds unless the seed is known"
    assert privacy_spent(classifier().fit(X, Y)).not_covered == ()


def test_an_ensemble_that_writes_seeds_keeps_the_noise():
    bag = BaggingClassifier(classifier(), n_estimators=2, bootstrap=False).fit(X, Y)
    # nobody gave a seed, and the fitted object gives the noise away
    assert bag.random_state is bag.estimator.random_state is None
    again = clone(bag.estimators_[0]).fit(X, Y)
    assert np.array_equal(again.coef_, bag.estimators_[0].coef_)
    spent = privacy_spent(bag)
    assert {item.kind for item in spent.uncovered} == {"stored seed"}
    assert "BaggingClassifier wrote a seed into each random_state and keeps it" in str(spent)
    assert "VotingClassifier" in str(spent)
    with pytest.raises(ValueError, match="BaggingClassifier wrote a seed"):
        tuple(spent)
    assert privacy_card(bag).to_dict()["claim"]["status"] == "none"
    # what the text proposes
    vote = VotingClassifier([("a", classifier()), ("b", classifier())]).fit(X, Y)
    assert privacy_spent(vote).not_covered == ()


# -- shared budgets ----------------------------------------------------------------------------


@pytest.fixture(params=["memory", "file"])
def budget(request, tmp_path):
    path = tmp_path / "budget" if request.param == "file" else None
    return PrivacyBudget(epsilon=5.0, delta=1e-4, path=path)


class Unread:
    """Rows that nobody may look at."""

    def __getattr__(self, name):
        raise AssertionError(f"somebody asked for {name}")


def test_a_budget_refuses_the_noise_of_an_earlier_fit(budget):
    mean(5, budget=budget)
    mean(6, budget=budget)
    spent = budget.spent
    told = "had the same random_state.*Use random_state=None, or another seed.*no row was read"
    for refit in (
        lambda: mean(5, OTHER, budget=budget),
        lambda: mean(5, Unread(), budget=budget),
        lambda: budget.charge(0.1, adjacency="replace-one", stream=budget.charges[0].stream),
    ):
        with pytest.raises(BudgetError, match=told):
            refit()
    assert budget.spent == spent
    assert len(budget.charges) == 2
    # other streams of the seed, and noise of the operating system
    DPMedian(random_state=5, budget=budget, data_norm=1.0).fit(X)
    for _ in range(2):
        mean(None, budget=budget)
    assert [charge.stream is None for charge in budget.charges] == [False] * 3 + [True] * 2
    assert list(budget.to_frame()["stream"])[:3] == [c.stream for c in budget.charges[:3]]


def test_a_budget_refuses_a_copied_generator_and_a_second_search(budget):
    model = DPMean(epsilon=0.1, random_state=np.random.RandomState(0), budget=budget, data_norm=1.0)
    clone(model).fit(X)
    with pytest.raises(BudgetError, match="had the same random_state"):
        clone(model).fit(X)
    # a generator that goes on is another seed
    model.random_state.bytes(16)
    model.fit(X)
    model.fit(X)
    search = DPGridSearchCV(classifier(), {"C": [0.1, 1.0]}, random_state=0, budget=budget)
    search.fit(X, Y)
    with pytest.raises(BudgetError, match="had the same random_state"):
        clone(search).fit(X, Y)


def test_another_process_knows_the_noise_that_was_charged(tmp_path):
    mean(5, budget=PrivacyBudget(1.0, 1e-5, path=tmp_path / "budget"))
    with pytest.raises(BudgetError, match="had the same random_state"):
        mean(5, budget=PrivacyBudget.open(tmp_path / "budget"))

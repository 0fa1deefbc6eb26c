# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows that count several times: drawn with replacement, resampled, and what they pay."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
import sklearn
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
)
from sklearn.model_selection import GridSearchCV, KFold, check_cv
from sklearn.pipeline import Pipeline, make_pipeline

import skdp.privacy.books.spent as books
from skdp import (
    DPLogisticRegression,
    DPLpRegressor,
    DPStandardScaler,
    FederatedDPLogisticRegression,
    LocalDPLogisticRegression,
    PrivacyBudget,
    privacy_card,
    privacy_spent,
)
from skdp.audit import trace_privacy
from skdp.privacy import gdp_epsilon, gdp_mu
from skdp.solvers import SGD

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(40, 3))
Y = (X[:, 0] > 0).astype(int)
EPSILON, DELTA = 0.5, 1e-6


class Fresh(DPLogisticRegression):
    """Has no parameter `random_state`, into which an ensemble could write a seed."""

    def __init__(
        self, epsilon=EPSILON, delta=DELTA, mechanism="auto", solver="auto", max_iter=None
    ):
        fixed = {"classes": [0, 1], "max_iter": max_iter, "data_norm": 1.0}
        super().__init__(epsilon, delta=delta, mechanism=mechanism, solver=solver, **fixed)


class FreshReports(LocalDPLogisticRegression):
    """The same, from one report of every row."""

    def __init__(self, epsilon=EPSILON):
        super().__init__(epsilon, classes=[0, 1])


class FreshClients(FederatedDPLogisticRegression):
    """The same, of clients."""

    def __init__(self, epsilon=EPSILON):
        super().__init__(epsilon=epsilon, classes=[0, 1], max_iter=1)


def bag(member=None, n_estimators=1, random_state=3, **options):
    member = Fresh(max_iter=2) if member is None else member
    return BaggingClassifier(member, n_estimators, random_state=random_state, **options)


def most(model):
    """Return how often the same row was drawn for one member, at most, member by member."""
    return [int(np.bincount(rows).max()) for rows in model.estimators_samples_]


def for_group(epsilon, delta, k):
    """Return the (epsilon, delta) of a group of k rows, step by step from one neighbour to next."""
    total = 0.0
    for _ in range(k):
        total = total * math.exp(epsilon) + delta
    return k * epsilon, total


# -- what a row pays that was drawn several times -------------------------------------------------


def test_gaussian_members_cost_as_many_times_mu_as_a_row_was_drawn():
    model = bag(n_estimators=3).fit(X, Y)
    times = most(model)
    assert max(times) > 2
    for read in (model, pickle.loads(pickle.dumps(model))):
        spent = privacy_spent(read)
        mu = gdp_mu(EPSILON, DELTA) * math.sqrt(sum(k**2 for k in times))
        epsilon, delta = spent
        assert epsilon == pytest.approx(gdp_epsilon(mu, 3 * DELTA), rel=1e-3)
        assert delta == pytest.approx(3 * DELTA)
        assert (spent.n_fits, spent.most_copies) == (3, max(times))
    told = (
        f"a row counts up to {max(times)} times in one fit, and pays like a group of {max(times)} "
    )
    assert told in str(spent)
    assert told in spent._repr_html_()
    assert f"times {times[0]}, the most that the same row is read" in repr(spent.ledger)
    card = privacy_card(model)
    (note,) = card.to_dict()["notes"]
    assert note["kind"] == "repeated rows"
    assert f"One row counts up to {max(times)} times" in note["text"]
    assert card.to_dict()["claim"]["epsilon"] == spent.epsilon
    assert "REPEATED ROWS" in card.to_markdown()
    # the hand check that a card proposes
    for release in spent.ledger.releases:
        assert release.noise.sensitivity / release.noise.scale == pytest.approx(release.noise.mu)


@pytest.mark.parametrize(
    "member",
    [
        Fresh(mechanism="output", delta=0.0),
        Fresh(mechanism="objective", delta=0.0),
    ],
    ids=["k-norm", "objective"],
)
def test_pure_members_cost_as_many_times_epsilon(member):
    model = bag(member).fit(X, Y)
    (k,) = most(model)
    assert tuple(privacy_spent(model)) == pytest.approx((k * EPSILON, 0.0))


def test_the_delta_of_a_release_grows_with_the_group():
    model = bag(Fresh(mechanism="objective")).fit(X, Y)
    (k,), (one,) = most(model), model.estimators_
    term, error = one.ledger_.releases
    priced, other = privacy_spent(model).ledger.releases
    epsilon, delta = for_group(term.noise.epsilon, term.noise.delta, k)
    assert (priced.noise.epsilon, priced.noise.delta) == pytest.approx((epsilon, delta))
    assert other.noise.mu == pytest.approx(k * error.noise.mu)
    # what is left for the Gaussian release is what it had before
    spare = one.privacy_spent_[1] - term.noise.delta
    assert privacy_spent(model).delta == pytest.approx(delta + spare)
    assert math.isfinite(privacy_spent(model).epsilon)
    assert "as for a row that is read once" in repr(privacy_spent(model).ledger)
    assert "as for a row that is read once" in privacy_card(model).to_markdown()


def test_releases_on_batches_are_one_pair_of_their_group():
    model = bag(Fresh(solver=SGD(batch_size=8), max_iter=3)).fit(X, Y)
    (k,), (one,) = most(model), model.estimators_
    assert one.ledger_.releases[0].noise.by_chance
    spent = privacy_spent(model)
    (release,) = spent.ledger.releases
    expected = for_group(one.ledger_.epsilon(DELTA), DELTA, k)
    assert (release.noise.epsilon, release.noise.delta) == pytest.approx(expected)
    assert spent.epsilon == pytest.approx(expected[0])
    assert "3 releases, added up" in release.theorem


def test_a_row_that_reports_for_itself_reports_again():
    model = bag(FreshReports()).fit(X, Y)
    (k,) = most(model)
    spent = privacy_spent(model)
    assert spent.ledger.releases[0].adjacency == "local"
    assert tuple(spent) == pytest.approx((k * EPSILON, 0.0))
    assert spent.ledger.local_epsilon(0.0) == pytest.approx(k * EPSILON)


def test_parameters_that_are_changed_after_a_fit_are_named():
    model = bag(Fresh(max_iter=2)).fit(X, Y)
    whole = privacy_spent(model)
    for change in ({"bootstrap": False}, {"max_samples": 0.1}, {"oob_score": True}):
        changed = copy.deepcopy(model).set_params(**change)
        assert "were changed after the fit" in str(privacy_spent(changed))
        assert next(iter(change)) in str(privacy_spent(changed))
    model.set_params(n_jobs=2, verbose=0)
    assert privacy_spent(model).uncovered == whole.uncovered
    # inside of others, and after a second fit
    nested = bag(make_pipeline(DPStandardScaler(), bag(Fresh(max_iter=2)))).fit(X, Y)
    assert "were changed" not in str(privacy_spent(nested))
    model.set_params(bootstrap=False, n_jobs=None)
    assert privacy_spent(model.fit(X, Y)).uncovered == ()
    stack = StackingClassifier([("one", Fresh(max_iter=2))], Fresh(max_iter=2), cv=2).fit(X, Y)
    assert "which it did not keep" in str(privacy_spent(stack))
    assert "(cv)" in str(privacy_spent(stack.set_params(cv="prefit")))
    search = GridSearchCV(Fresh(max_iter=2), {"epsilon": [0.1]}, cv=KFold(2)).fit(X, Y)
    assert "(return_train_score)" in str(privacy_spent(search.set_params(return_train_score=True)))


def test_all_steps_of_a_member_and_searches_inside_pay_for_the_copies():
    scaler = DPStandardScaler(epsilon=EPSILON, bounds=(-1, 1))
    model = bag(make_pipeline(scaler, Fresh(max_iter=2))).fit(X, Y)
    (k,) = most(model)
    spent = privacy_spent(model)
    # the scaler has a random_state, into which bagging wrote
    assert [item.kind for item in spent.uncovered] == ["stored seed"]
    assert {f"times {k}" in r.theorem for r in spent.ledger.releases} == {True}
    lost = bag(GridSearchCV(Fresh(max_iter=2), {"epsilon": [0.1]}, cv=KFold(2))).fit(X, Y)
    (k,) = most(lost)
    fits, *_ = privacy_spent(lost).ledger.releases
    assert fits.noise.law == "fits"
    assert (fits.noise.epsilon, fits.count) == pytest.approx((k * 0.1, 2))
    assert [item.kind for item in privacy_spent(lost).uncovered] == ["choice"]


def test_without_replacement_a_row_counts_once_a_member_and_gains_nothing():
    model = bag(n_estimators=2, bootstrap=False, max_samples=0.5).fit(X, Y)
    spent = privacy_spent(model)
    mu = gdp_mu(EPSILON, DELTA) * math.sqrt(2)
    assert spent.epsilon == pytest.approx(gdp_epsilon(mu, 2 * DELTA), rel=1e-3)
    assert spent.most_copies == 1
    assert "counts up to" not in str(spent)
    assert privacy_card(model).to_dict()["notes"] == []
    assert privacy_spent(model).uncovered == ()


def test_regressors_too():
    class FreshRegressor(DPLpRegressor):
        def __init__(self, epsilon=EPSILON):
            super().__init__(epsilon=epsilon, max_iter=2)

    model = BaggingRegressor(FreshRegressor(), 1, random_state=0).fit(X, X[:, 0])
    assert privacy_spent(model).most_copies == most(model)[0]


def test_a_budget_that_was_charged_for_single_rows_is_named():
    class Charged(Fresh):
        def __init__(self, epsilon=EPSILON, budget=None):
            fixed = {"classes": [0, 1], "max_iter": 2, "data_norm": 1.0}
            DPLogisticRegression.__init__(self, epsilon, budget=budget, **fixed)

    budget = PrivacyBudget(5.0, 1e-4)
    model = bag(Charged(budget=budget)).fit(X, Y)
    told = "charged as if every row counted once"
    assert budget.spent[0] < privacy_spent(model).epsilon
    assert told in str(privacy_spent(model))
    notes = {note["kind"]: note["text"] for note in privacy_card(model).to_dict()["notes"]}
    assert told in notes["shared budget"]
    once = bag(Charged(budget=budget), bootstrap=False).fit(X, Y)
    assert told not in str(privacy_spent(once)) + privacy_card(once).to_markdown()


def test_splits_may_repeat_rows():
    once, twice = np.arange(20), np.repeat(np.arange(20), 2)
    test = np.arange(20, 40)
    for k, train, given in (
        (1, once, list), (2, twice, list), (1, np.arange(40) < 20, list), (2, twice, check_cv),
    ):  # fmt: skip
        model, cv = Fresh(max_iter=2), given([(once, test), (train, test)])
        spent = privacy_spent(model, cv=cv)
        (release,) = spent.ledger.releases
        expected = for_group(EPSILON, DELTA, k)
        assert (release.noise.epsilon, release.noise.delta) == pytest.approx(expected)
        assert spent.delta == pytest.approx(2 * expected[1])
        assert spent.most_copies == k
        search = GridSearchCV(model, {"epsilon": [EPSILON]}, cv=cv).fit(X, Y)
        assert privacy_spent(search).ledger.releases[0] == release
        # the last fit is to all rows, each once
        assert (
            privacy_spent(search).ledger.releases[1] == search.best_estimator_.ledger_.releases[0]
        )


class Bootstrap:
    """A splitter of another library."""

    def get_n_splits(self, X=None, y=None, groups=None):
        """Return how many splits there are."""
        return 2

    def split(self, X, y=None, groups=None):
        """Yield splits that repeat rows."""
        for _ in range(2):
            yield np.repeat(np.arange(20), 2), np.arange(20, 40)


def test_splitters_that_may_repeat_rows_are_named():
    negative = [(np.array([0, 39, -1]), np.arange(20)), (np.arange(20), np.arange(20, 40))]
    for cv, name in ((Bootstrap(), "Bootstrap"), (negative, "list")):
        told = f"the splits: {name} may repeat rows, or look at them"
        search = GridSearchCV(Fresh(max_iter=2), {"epsilon": [EPSILON]}, cv=cv).fit(X, Y)
        for spent in (privacy_spent(search), privacy_spent(Fresh(), cv=cv)):
            assert told in "; ".join(map(str, spent.uncovered))
    used_up = (split for split in KFold(2).split(X))
    search = GridSearchCV(Fresh(max_iter=2), {"epsilon": [EPSILON]}, cv=used_up).fit(X, Y)
    assert "generator may repeat rows" in str(privacy_spent(search))


# -- where there is no price ----------------------------------------------------------------------


def missing(model):
    (item,) = privacy_spent(model).uncovered
    with pytest.raises(ValueError, match="something is missing"):
        tuple(privacy_spent(model))
    return item.text


def test_draws_that_are_not_known_or_not_free_of_the_rows_have_no_price():
    # bagging hands its draws to another bagging as weights; before scikit-learn 1.8 it takes none
    weighted = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
    for model, more in ((bag(), {"sample_weight": np.ones(40)}), (bag(bag()), {})):
        if weighted:
            assert "the rows that it drew, by weights of theirs" in missing(model.fit(X, Y, **more))
        else:
            with pytest.raises(ValueError, match="doesn't support sample weight"):
                model.fit(X, Y, **more)
    warm = bag(warm_start=True).fit(X, Y).set_params(n_estimators=2).fit(X, Y)
    assert "it keeps its last draws" in missing(warm)
    with warnings.catch_warnings():
        # that some rows were left out by no member
        warnings.simplefilter("ignore")
        scored = bag(oob_score=True).fit(X, Y)
    assert "its score on rows that were left out" in missing(scored)
    # what drew members before may have been told otherwise, or of other rows
    warm = bag(warm_start=True).fit(X, Y).set_params(n_estimators=2, bootstrap=False).fit(X, Y)
    assert "it keeps its last draws" in missing(warm)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        warm = bag(warm_start=True).fit(X, Y).set_params(max_samples=2).fit(X, Y)
    assert "it keeps its last draws" in missing(warm)


def test_a_price_that_is_not_finite_is_named():
    model = bag(Fresh(epsilon=30.0, mechanism="objective")).fit(X, Y)
    (k,) = most(model)
    assert f"one was drawn {k} times, at no finite price" in missing(model)


def test_clients_decide_by_their_rows_which_positions_are_drawn():
    clients = np.arange(40) // 4
    for bootstrap in (True, False):
        with config_context(enable_metadata_routing=True):
            member = FreshClients().set_fit_request(groups=True)
            model = bag(member, bootstrap=bootstrap, max_samples=0.9)
            model.fit(X, Y, groups=clients)
        assert privacy_spent(model).ledger.unit == "group"
        assert "by their number a group decides which ones are drawn" in missing(model)


def test_boosting_repeats_rows_by_their_errors():
    class FreshRegressor(DPLpRegressor):
        def __init__(self, epsilon=EPSILON):
            super().__init__(epsilon=epsilon, max_iter=2)

    model = AdaBoostRegressor(FreshRegressor(), n_estimators=1, random_state=0).fit(X, X[:, 0])
    assert "how often rows are drawn" in missing(model)


class Doubled(BaseEstimator):
    """A sampler with the interface of imbalanced-learn, which claims to learn nothing."""

    def fit(self, X, y):
        """Do nothing."""
        return self

    def fit_resample(self, X, y):
        """Repeat every row."""
        return np.repeat(X, 2, axis=0), np.repeat(y, 2)

    def transform(self, X):
        """Return the rows."""
        return X

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def test_a_sampler_is_told_by_its_interface_whatever_it_says_of_itself():
    model = Pipeline([("double", Doubled()), ("model", Fresh(max_iter=2))]).fit(X, Y)
    told = "step 'double', which resampled the rows: one row may count any number of times"
    assert told in missing(model)
    assert privacy_card(model).to_dict()["claim"]["status"] == "none"
    assert told in "; ".join(map(str, privacy_spent(model, cv=KFold(3)).uncovered))


# -- neighbours -----------------------------------------------------------------------------------


def worst_pair(model):
    """Return rows, targets, and rows of a neighbour that differ where most copies are drawn."""
    fitted = model.fit(X, Y)
    row = int(np.argmax(np.bincount(fitted.estimators_samples_[0], minlength=40)))
    first = np.zeros_like(X)
    second = first.copy()
    first[row], second[row] = 1.0, -1.0
    return first, second


def test_a_row_loses_as_often_as_it_counts_and_the_price_of_one_is_contradicted(monkeypatch):
    # the draws of the trace: its seed is 0
    model = bag(random_state=0)
    first, second = worst_pair(model)
    (k,) = most(model)
    result = trace_privacy(model, first, second, y=Y)
    assert result.passed
    assert result.not_covered == ()
    assert result.complete
    # all of the price is lost: no smaller one would do
    assert 0.99 < result.share <= 1 + 1e-9
    assert {release.copies for release in result.releases} == {k}
    assert max(r.distance / r.paid for r in result.releases) == pytest.approx(k, rel=0.01)
    one = trace_privacy(Fresh(max_iter=2), first, second, y=Y)
    assert one.share > 0.99
    assert result.mu == pytest.approx(k * one.mu_claimed, rel=0.01)
    # the plain price
    monkeypatch.setattr(books, "drawn_rows", lambda holder: (True, {}))
    plain = trace_privacy(model, first, second, y=Y)
    assert plain.passed is False
    assert plain.share > 0.99 * k


def test_a_trace_claims_what_the_total_claims():
    model = BaggingClassifier(
        DPLogisticRegression(classes=[0, 1], max_iter=2, data_norm=1.0), 2, random_state=0
    )
    first, second = worst_pair(model)
    result = trace_privacy(model, first, second, y=Y)
    # nothing: the seeds of the noise are kept
    assert result.passed is None
    assert result.epsilon_claimed is None
    assert "wrote a seed into each random_state" in " ".join(result.not_covered)
    assert "no claim" in str(result)
    assert "not covered: the noise of" in str(result)
    assert result.to_dict()["not_covered"] == list(result.not_covered)
    # what is released is measured all the same
    assert result.epsilon > 0
    assert {release.passed for release in result.releases} == {True}

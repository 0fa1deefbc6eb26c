# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Models go to a file and come back the same: with pickle, joblib and skops."""

import io
import pickle

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import skdp
from skdp import (
    DPLogisticRegression,
    DPMean,
    LocalDPMean,
    NormClipper,
    PrivacyBudget,
    PrivUnitPrivatizer,
    papers,
    privacy_card,
    privacy_spent,
    solvers,
    trusted_types,
)
from skdp.exceptions import BudgetError
from skdp.federated import FederatedAveraging, GradientSteps, Population, ProximalPoint
from skdp.local import BallRandomiser
from skdp.privacy import Curator
from skdp.privacy.kernel.samplers import make_bits
from skdp.solvers import Solver
from tests.test_common import ALL, configurations

sio = pytest.importorskip("skops.io")

N_ROWS = 137
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(N_ROWS, 3)), np.arange(N_ROWS) % 2
MORE, MORE_Y = RNG.normal(size=(2000, 3)), np.arange(2000) % 2


def is_quick(estimator):
    """Tell whether this is one of those that are always tried."""
    kind, params = type(estimator), estimator.get_params()
    if kind.__module__.split(".")[1] in ("local", "preprocessing"):
        return True
    if kind.__module__.split(".")[1] == "location":
        return params.get("mechanism") != "gradient"
    return estimator in first_of(estimator)


def _name(value):
    return str(value).replace("\n", "")


FITTED = {}


def fitted(estimator):
    """Return one fit of each configuration for all tests, which do not change it."""
    if id(estimator) not in FITTED:
        model = clone(estimator).fit(X, Y)
        if isinstance(model, PrivUnitPrivatizer | skdp.ScalarPrivatizer):
            model.transform(X)
        FITTED[id(estimator)] = model
    return FITTED[id(estimator)]


def first_of(estimator):
    """Return the first two configurations of a class."""
    return [other for other in ALL if type(other) is type(estimator)][:2]


def of_pickle(model):
    return pickle.loads(pickle.dumps(model))


def of_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def of_skops(model):
    data = sio.dumps(model)
    more = [name for name in sio.get_untrusted_types(data=data) if name.startswith("tests.")]
    return sio.loads(data, trusted=trusted_types() + more)


TRIPS = [of_pickle, of_joblib, of_skops]


def assert_same(ours, theirs):
    """Compare attributes of attributes, arrays and dtypes included."""
    assert type(ours) is type(theirs)
    if sparse.issparse(ours):
        ours, theirs = ours.toarray(), theirs.toarray()
    if isinstance(ours, np.ndarray):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    elif isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for key in ours:
            assert_same(ours[key], theirs[key])
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    elif type(ours).__module__.split(".")[0] in ("skdp", "sklearn") and hasattr(ours, "__dict__"):
        # a lock belongs to its process
        left, right = ({k: v for k, v in vars(o).items() if k != "_lock"} for o in (ours, theirs))
        assert_same(dict(sorted(left.items())), dict(sorted(right.items())))
    else:
        assert ours == theirs


def sizes(value):
    """Yield every length and every dimension inside of a value."""
    if isinstance(value, type) or callable(value):
        return
    yield from np.shape(value) if hasattr(value, "shape") else ()
    if isinstance(value, str | bytes | list | tuple | dict | set):
        yield len(value)
    inner = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list | tuple | set):
        for one in inner:
            yield from sizes(one)
    elif hasattr(value, "__dict__"):
        yield from sizes(vars(value))


@pytest.mark.sample(8)
@pytest.mark.parametrize("estimator", configurations(ALL))
def test_a_fitted_model_comes_back(estimator, capsys):
    model = fitted(estimator)
    for trip in TRIPS:
        back = trip(model)
        assert_same(model, back)
        if hasattr(model, "ledger_"):
            assert back.ledger_ == model.ledger_
            assert repr(back.ledger_) == repr(model.ledger_)
            assert back.privacy_spent_ == model.privacy_spent_
            assert tuple(privacy_spent(back)) == tuple(privacy_spent(model))
        if hasattr(model, "predict"):
            assert_same(back.predict(MORE), model.predict(MORE))
        if hasattr(model, "transform") and not hasattr(model, "message_bits_"):
            assert_same(back.transform(MORE), model.transform(MORE))
        if trip is of_skops:
            assert privacy_card(back) == privacy_card(model)


@pytest.mark.parametrize("model", [DPLogisticRegression(classes=[0, 1]), skdp.DPLpRegressor()])
def test_models_with_units_of_columns_come_back(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)) * [1.0, 10.0, 100.0]
    model = clone(model).fit(X, (X[:, 0] > 0).astype(int))
    assert (model.feature_scale_ > 20).any()
    for trip in TRIPS:
        assert_same(trip(model).predict(X), model.predict(X))


@pytest.mark.sample(6, 20)
@pytest.mark.parametrize("estimator", configurations(ALL))
def test_nothing_in_a_model_is_as_long_as_the_data(estimator, capsys):
    assert N_ROWS not in set(sizes(fitted(estimator)))


@pytest.mark.sample(3, 12)
@pytest.mark.parametrize("estimator", configurations(ALL))
def test_a_file_does_not_grow_with_the_rows(estimator, capsys):
    models = fitted(estimator), clone(estimator).fit(MORE, MORE_Y)
    # some ledgers have a line for every block of rows, whose positions are public
    small, large = (
        len(pickle.dumps({k: v for k, v in vars(model).items() if k != "ledger_"}))
        for model in models
    )
    # a bit per row would be 230 bytes
    assert large - small < (len(MORE) - len(X)) // 8


def test_a_ledger_of_full_batches_does_not_grow_either():
    for model in (
        DPLogisticRegression(classes=[0, 1], data_norm=1.0, solver="preconditioned"),
        DPMean(data_norm=1.0),
        PrivUnitPrivatizer(),
    ):
        small, large = (len(pickle.dumps(clone(model).fit(*d))) for d in [(X, Y), (MORE, MORE_Y)])
        assert large - small < (len(MORE) - len(X)) // 8


@pytest.mark.sample(6, 19)
@pytest.mark.parametrize("kind", sorted({type(e) for e in ALL}, key=lambda kind: kind.__name__))
def test_an_unfitted_model_comes_back_unfitted(kind):
    model = next(e for e in ALL if type(e) is kind)
    for trip in TRIPS:
        back = trip(clone(model))
        assert_same(model, back)
        if model.__sklearn_tags__().requires_fit:
            with pytest.raises(NotFittedError):
                check_is_fitted(back)
        else:
            back.transform(X)


def needed(estimator):
    found = set(sio.get_untrusted_types(data=sio.dumps(estimator)))
    # scores of the user's own are for the user to trust
    return {name for name in found if not name.startswith("tests.")}


@pytest.mark.full
def test_every_trusted_type_is_needed_and_none_is_missing(capsys):
    found = set()
    for estimator in ALL:
        parameters = estimator.get_params(deep=False)
        ways = {value for value in parameters.values() if isinstance(value, str)}
        in_shares = getattr(parameters.get("solver"), "fewest_reports", None)
        if in_shares or is_quick(estimator) or ways & {"sgd", "objective", "neg_log_loss", "rbf"}:
            found |= needed(fitted(estimator)) | needed(clone(estimator))
        elif any(isinstance(value, BaseEstimator) for value in parameters.values()):
            found |= needed(clone(estimator))
    for solver in (*vars(solvers).values(), *vars(papers).values()):
        if isinstance(solver, type) and issubclass(solver, Solver):
            found |= needed(DPLogisticRegression(solver=solver(), data_norm=1.0))
    for given in (
        {"population": Population(1_000_000)},
        {"local_update": GradientSteps()},
        {"local_update": ProximalPoint()},
        {"solver": FederatedAveraging()},
        {"randomiser": BallRandomiser()},
    ):
        found |= needed(skdp.FederatedDPLogisticRegression(**given))
    # what learned before a fit in its pipeline
    behind = make_pipeline(StandardScaler(), DPLogisticRegression(classes=[0, 1], data_norm=1.0))
    found |= needed(behind.fit(X, Y)[-1])
    # between two rounds
    reporting = skdp.LocalDPLogisticRegression(classes=[0, 1])
    reporting.client(2, 24)
    found |= needed(reporting)
    assert sorted(found) == sorted(trusted_types())


@pytest.mark.slow
def test_no_configuration_needs_more(capsys):
    for estimator in ALL:
        assert needed(fitted(estimator)) <= set(trusted_types())


def test_trusted_types_are_strings_without_repetition():
    names = trusted_types()
    assert len(set(names)) == len(names)
    names.clear()
    assert trusted_types()


def test_skops_refuses_what_is_not_trusted():
    from skops.io.exceptions import UntrustedTypesFoundException

    data = sio.dumps(DPMean(data_norm=1.0).fit(X))
    with pytest.raises(UntrustedTypesFoundException, match="Ledger"):
        sio.loads(data)

    data = sio.dumps(DPMean(random_state=Foreign(), data_norm=1.0))
    with pytest.raises(UntrustedTypesFoundException, match="Foreign"):
        sio.loads(data, trusted=trusted_types())


def test_a_budget_with_a_file_is_found_again(tmp_path):
    budget = PrivacyBudget(3.0, 1e-4, path=tmp_path / "budget.db")
    model = DPMean(budget=budget, data_norm=1.0).fit(X)
    # and that of a budget in a database
    more = set(trusted_types(budget=True)) - set(trusted_types())
    assert more - {"skdp.privacy.books.postgres.PostgresStore"} == needed(model) - needed(
        clone(model).set_params(budget=None).fit(X)
    )
    backs = [
        of_pickle(model),
        of_joblib(model),
        sio.loads(sio.dumps(model), trusted=trusted_types(budget=True)),
    ]
    for i, back in enumerate(backs):
        # to load a model charges nothing, and to fit it again charges the same budget
        assert len(budget.charges) == 1 + min(i, 2)
        assert back.privacy_spent_ == model.privacy_spent_
        if i < 2:
            back.fit(X)
        else:
            with pytest.raises(BudgetError, match="left"):
                back.fit(X)
    assert budget.spent[0] == 3.0
    assert "budget.db" not in privacy_card(model).to_json() + str(privacy_card(model))
    assert "shared budget" in [note["kind"] for note in privacy_card(model).to_dict()["notes"]]


@pytest.mark.parametrize("trip", TRIPS)
def test_a_budget_in_memory_is_in_no_file(trip):
    model = DPMean(budget=PrivacyBudget(3.0, 1e-4), data_norm=1.0).fit(X)
    with pytest.raises(BudgetError, match="in memory cannot be pickled"):
        trip(model)
    # the remedy of the message
    assert trip(model.set_params(budget=None)).ledger_ == model.ledger_


def test_trusted_types_take_a_bool():
    with pytest.raises(TypeError, match="budget must be True or False; got a str"):
        trusted_types(budget="yes")


class Foreign:
    """A type that nobody trusts."""


@pytest.mark.sample(2)
@pytest.mark.parametrize("trip", TRIPS)
def test_pipelines_come_back(trip):
    pipe = make_pipeline(
        NormClipper(), StandardScaler(), DPLogisticRegression(classes=[0, 1], data_norm=1.0)
    )
    pipe.fit(X, Y)
    back = trip(pipe)
    assert privacy_card(back) == privacy_card(pipe)
    np.testing.assert_array_equal(back.predict_proba(X), pipe.predict_proba(X))


@pytest.mark.parametrize("trip", TRIPS)
@pytest.mark.parametrize("random_state", [None, 3, np.random.RandomState(0)], ids=_name)
def test_parameters_of_all_kinds_come_back(trip, random_state):
    bounds = (np.zeros(3), np.ones(3, dtype=np.float32))
    model = DPMean(bounds=bounds, random_state=random_state).fit(X)
    back = trip(model)
    assert_same(back.bounds, bounds)
    assert_same(back.location_, model.location_)
    back.fit(X)
    assert back.privacy_spent_ == model.privacy_spent_


@pytest.mark.parametrize("trip", TRIPS)
def test_a_privatizer_that_came_back_goes_on_spending(trip):
    privatizer = PrivUnitPrivatizer(epsilon=2.0, new_rows="randomise").fit(X)
    privatizer.transform(X)
    back = trip(privatizer)
    back.transform(X)
    spent = privatizer.privacy_spent_[0]
    assert back.privacy_spent_[0] == 2 * spent
    # the two know nothing of each other
    assert privatizer.privacy_spent_[0] == spent


@pytest.mark.parametrize("trip", TRIPS)
def test_reports_that_came_from_elsewhere(trip):
    model = LocalDPMean(epsilon=4.0).fit(X)
    assert_same(trip(model), model)


def make_curator(random_state=None):
    return Curator(
        lambda: X, n_rows=N_ROWS, epsilon=1.0, delta=1e-6, adjacency="replace-one",
        random_state=random_state, purpose="test",
    )  # fmt: skip


@pytest.mark.parametrize(
    "held", [make_curator(), make_bits(None), make_bits(0)], ids=lambda held: type(held).__name__
)
@pytest.mark.parametrize("save", [pickle.dumps, lambda m: joblib.dump(m, io.BytesIO()), sio.dumps])
def test_what_holds_rows_or_noise_is_never_in_a_file(held, save):
    model = DPMean(data_norm=1.0).fit(X)
    model.kept_ = held
    with pytest.raises(TypeError, match="cannot be pickled"):
        save(model)
    model.kept_ = [{"deep": held}]
    with pytest.raises(TypeError, match="cannot be pickled"):
        save(model)

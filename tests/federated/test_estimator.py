# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The estimator: groups, routing, layouts, and everything that is refused."""

import pickle

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline

from skdp import BoundedScaler, FederatedDPLogisticRegression
from skdp.federated import FederatedAveraging, GradientSteps, Population, ProximalPoint
from skdp.federated._logistic import resolve_clients
from skdp.local import BallRandomiser, optimal_privunit
from tests.federated._clients import clients
from tests.test_common import training_check_data


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
    assert_array_equal(alone.coef_, named.coef_)


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


@pytest.mark.sample(3)
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
        resolve_clients(groups, 21)
    assert resolve_clients(groups[1:], 20)[0] == 2


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
        with pytest.raises(ValueError, match="groups"):
            unasked.fit(X, y, groups=groups)


def test_the_number_of_clients_comes_first():
    n_clients, codes = resolve_clients(["b", "a", "b"], 3)
    assert n_clients == 2
    assert codes.tolist() == [1, 0, 1]
    n_clients, codes = resolve_clients(None, 3)
    assert (n_clients, codes.tolist()) == (3, [0, 1, 2])


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

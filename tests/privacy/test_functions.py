# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Functions of users are assumptions, and those that visibly mix rows are refused."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import norm
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler, normalize

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPStandardScaler,
    NormClipper,
    privacy_card,
    privacy_spent,
)
from skdp.io import stream_arrays
from skdp.model_selection import RowScorer

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 1.0, size=(60, 3))
Y = (X[:, 0] > 0.5).astype(int)


def classifier(**parameters):
    return DPLogisticRegression(
        **{"data_norm": 1.0, "epsilon": 1.0, "max_iter": 2, "classes": [0, 1], **parameters}
    )


def halved(rows):
    """Divide all entries by two."""
    return rows / 2


#: what reads other rows, by every way that was thought of
MIXING = {
    "standardised": lambda A: (A - A.mean(0)) / A.std(0),
    "shifted": lambda A: A - A.min(0),
    "sorted": lambda A: np.sort(A, axis=0),
    "ranked": lambda A: A.argsort(0).argsort(0) / len(A),
    "clipped": lambda A: np.clip(A, *np.percentile(A, [5, 95])),
    "scaled by the number of rows": lambda A: A / len(A),
    "numbered": lambda A: np.column_stack([A, np.arange(len(A))]),
    "running": lambda A: np.cumsum(A, axis=0),
    "the row before": lambda A: A + 0.1 * np.roll(A, 1, axis=0),
    "reversed": lambda A: A[::-1],
    "dropped": lambda A: A[A[:, 0] > 0],
    "one number": lambda A: A.sum(),
    "fitted": lambda A: StandardScaler().fit_transform(A),
    "ranks in text": lambda A: A.argsort(0).astype(str).astype(object),
    "sparse": lambda A: sparse.csr_array(A - A.mean(0)),
    "frame": lambda A: pd.DataFrame(A).sub(A.mean(0)),
}
#: what does not
ALONE = {
    "halved": halved,
    "logarithm": np.log,
    "squares": lambda A: np.hstack([A, A**2]),
    "lengths": lambda A: A / np.linalg.norm(A, axis=1, keepdims=True),
    "products": lambda A: A @ np.ones((A.shape[1], 2)),
    "normalised": normalize,
    "sparse": lambda A: sparse.csr_array(A),
    "one column": lambda A: A[:, :1],
    "signs": lambda A: A > 0.5,
    "missing": lambda A: np.where(A < 0.5, np.nan, A),
    "roots of what may be negative": lambda A: np.sqrt(A - 0.5),
    "text": lambda A: np.where(A > 0.5, "much", "little").astype(object),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", MIXING)
def test_a_function_that_visibly_mixes_rows_is_not_covered(name):
    step = FunctionTransformer(MIXING[name])
    fitted = make_pipeline(
        FunctionTransformer(halved).fit(X), DPMean(epsilon=0.5, data_norm=1.0).fit(X)
    )
    fitted.steps.insert(0, ("functiontransformer-0", step.fit(X)))
    spent = privacy_spent(fitted)
    (item,) = spent.uncovered
    assert (item.kind, item.step) == ("step", "functiontransformer-0")
    assert "which mixes rows" in item.text
    assert "<lambda>" in item.text
    with pytest.raises(ValueError, match="which mixes rows"):
        tuple(spent)
    assert privacy_card(fitted).to_dict()["claim"]["status"] == "none"


@pytest.mark.parametrize("name", ALONE)
def test_another_function_is_an_assumption(name):
    step = FunctionTransformer(ALONE[name]).fit(X)
    spent = privacy_spent(make_pipeline(step, DPMean(epsilon=0.5, data_norm=1.0).fit(X)))
    assert spent.uncovered == ()
    # numpy's own functions of single entries need not be trusted
    assert len(spent.ledger.assumptions) == (name != "logarithm")


@pytest.mark.parametrize("scaler", [DPStandardScaler(), StandardScaler()], ids=["private", "exact"])
def test_a_method_that_fits_is_not_covered(scaler):
    step = FunctionTransformer(scaler.fit_transform)
    (item,) = privacy_spent(make_pipeline(step, DPMean(data_norm=1.0)).fit(X)).uncovered
    assert "fit_transform" in item.text
    with pytest.raises(ValueError, match="which mixes rows"):
        DPMean(data_norm=1.0).fit(stream_arrays(X).map(scaler.fit_transform))
    # one that does not is known
    step = FunctionTransformer(NormClipper().fit(X).transform)
    assert not privacy_spent(make_pipeline(step, DPMean(data_norm=1.0)).fit(X)).uncovered


FITTED = {
    "private": DPStandardScaler(epsilon=1.0).fit(X),
    "exact": StandardScaler().fit(X),
    "a pipeline": make_pipeline(NormClipper(), StandardScaler()).fit(X),
}


class Caller:
    """A function that is an object."""

    def __init__(self, scaler):
        self.scaler = scaler

    def __call__(self, rows):
        """Return scaled rows."""
        return self.scaler.transform(rows)


def with_default(rows, scaler=FITTED["exact"]):
    return scaler.transform(rows)


def by_a_global(rows):
    return GLOBAL.transform(rows)


def by_another(rows):
    return 2 * by_a_global(rows)


GLOBAL = FITTED["private"]


def uses(scaler):
    """Return functions that use a fit, each in its own way."""
    named = {"scaler": [scaler]}
    return [
        scaler.transform,
        lambda rows: scaler.transform(rows),
        lambda rows: named["scaler"][0].transform(rows),
        partial(lambda rows, fitted: fitted.transform(rows), fitted=scaler),
        Caller(scaler),
        with_default,
        by_a_global,
        by_another,
    ]


@pytest.mark.parametrize("name", FITTED)
def test_a_function_that_uses_a_fit_is_not_covered(name):
    for function in uses(FITTED[name]):
        model = make_pipeline(FunctionTransformer(function), classifier())
        (item,) = privacy_spent(model.fit(X, Y)).uncovered
        assert "which uses a fit of" in item.text
        assert "StandardScaler" in item.text
        with pytest.raises(ValueError, match="which uses a fit of"):
            DPGridSearchCV(model, {"dplogisticregression__C": [1.0, 2.0]}).fit(X, Y)
    given = FunctionTransformer(lambda rows, fitted: fitted.transform(rows))
    given.kw_args = {"fitted": FITTED[name]}
    assert privacy_spent(make_pipeline(given, classifier()).fit(X, Y)).uncovered
    back = FITTED[name].transform
    model = TransformedTargetRegressor(
        DPLpRegressor(max_iter=2), func=np.sqrt, inverse_func=back, check_inverse=False
    )
    (item,) = privacy_spent(model.fit(X, Y)).uncovered
    assert "which uses a fit of" in item.text
    back = FunctionTransformer(None, back, check_inverse=False)
    assert privacy_spent(make_pipeline(back, classifier()).fit(X, Y)).uncovered
    # a step of its own is on the ledger, if it has one
    step = FrozenEstimator(FITTED[name])
    uncovered = privacy_spent(make_pipeline(step, classifier()).fit(X, Y)).uncovered
    assert (uncovered == ()) == (name == "private")


def test_the_fit_that_a_map_of_a_stream_uses_is_assumed_to_be_public():
    scaler = FITTED["exact"]
    for function in (scaler.transform, lambda rows: scaler.transform(rows)):
        (told,) = DPMean(data_norm=1.0).fit(stream_arrays(X).map(function)).ledger_.assumptions
        assert told.endswith("alone, and the fit of StandardScaler that it uses is public")
    (told,) = DPMean(data_norm=1.0).fit(stream_arrays(X).map(halved)).ledger_.assumptions
    assert told.endswith("from that row alone")


def test_distributions_with_a_method_fit_are_no_fits():
    for function in (norm.cdf, lambda rows: norm.cdf(rows)):
        model = make_pipeline(FunctionTransformer(function), classifier()).fit(X, Y)
        assert privacy_spent(model).uncovered == ()


def test_a_function_of_python_is_no_function_of_numpy():
    seen = []

    def since_the_first(value):
        seen.append(float(value))
        return float(value) - seen[0]

    # a function of numpy at the time of the fit
    model = make_pipeline(FunctionTransformer(np.log1p), DPMean(data_norm=1.0)).fit(np.abs(X))
    for function in (since_the_first, lambda value: float(value) / 2):
        model.steps[0] = "odd", FunctionTransformer(np.frompyfunc(function, 1, 1)).fit(X)
        assert len(privacy_spent(model).ledger.assumptions) == 1
    two = partial(np.frompyfunc(lambda other, value: float(value) / other, 2, 1), 2.0)
    model.steps[0] = "odd", FunctionTransformer(two).fit(X)
    assert len(privacy_spent(model).ledger.assumptions) == 1
    model.steps[0] = "odd", FunctionTransformer(np.log1p).fit(X)
    assert not privacy_spent(model).ledger.assumptions


def test_the_assumption_is_on_ledger_and_card_in_the_words_of_the_user():
    model = make_pipeline(FunctionTransformer(halved), classifier()).fit(X, Y)
    words = (
        "the function halved ('Divide all entries by two.') of step 'functiontransformer' computes "
        "the value of a row from that row alone"
    )
    assert privacy_spent(model).ledger.assumptions == (words,)
    assert f"assumed public: {words}" in repr(privacy_spent(model).ledger)
    assert words in privacy_card(model).to_dict()["assumptions"]
    tuned = GridSearchCV(model, {"dplogisticregression__C": [0.1, 1.0]}, cv=KFold(2)).fit(X, Y)
    assert words in privacy_spent(tuned).ledger.assumptions
    for idle in (FunctionTransformer(), FunctionTransformer(np.tanh)):
        model = make_pipeline(idle, classifier()).fit(X, Y)
        assert privacy_spent(model).ledger.assumptions == ()


def test_functions_are_found_wherever_they_stand():
    mixing = FunctionTransformer(MIXING["standardised"])
    front = ColumnTransformer([("mixing", mixing, [0, 1])], remainder="passthrough")
    spent = privacy_spent(make_pipeline(front, classifier()).fit(X, Y))
    assert [item.step for item in spent.uncovered] == ["mixing"]
    target = TransformedTargetRegressor(
        DPLpRegressor(max_iter=2), func=lambda y: y - y.mean(), inverse_func=lambda y: y,
        check_inverse=False,
    ).fit(X, Y)  # fmt: skip
    assert ["FunctionTransformer inside" in str(i) for i in privacy_spent(target).uncovered] == [
        True
    ]
    target.set_params(func=halved, inverse_func=lambda y: 2 * y)
    spent = privacy_spent(target.fit(X, Y))
    assert spent.uncovered == ()
    assert "halved" in spent.ledger.assumptions[0]


def test_functions_of_frames_are_tried_with_their_names():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    alone = FunctionTransformer(lambda F: F.assign(d=F["a"] * F["b"])).fit(frame)
    mixing = FunctionTransformer(lambda F: F.assign(d=F["a"] - F["a"].mean())).fit(frame)
    mean = DPMean(epsilon=0.5, data_norm=1.0).fit(X)
    assert privacy_spent(make_pipeline(alone, mean)).uncovered == ()
    assert len(privacy_spent(make_pipeline(mixing, mean)).uncovered) == 1


def test_what_cannot_be_tried_is_assumed():
    def picky(rows):
        if len(rows) < 50:
            raise ValueError("more rows")
        return rows - rows.mean(0)

    def random(rows):
        return rows + np.random.default_rng().normal(size=rows.shape)

    for function in (picky, random):
        model = make_pipeline(FunctionTransformer(function), classifier()).fit(X, Y)
        (assumed,) = privacy_spent(model).ledger.assumptions
        assert function.__name__ in assumed
    # rows of the user are not looked at, and what was made up is not changed for the next call
    seen = []

    def spy(rows):
        seen.append(rows.copy())
        rows *= 0
        return rows

    step = FunctionTransformer(spy).fit(X)
    privacy_spent(make_pipeline(step, DPMean(data_norm=1.0).fit(X)))
    assert len(seen) > 5
    assert all(len(rows) <= 24 and rows.any() for rows in seen)


# -- searches ----------------------------------------------------------------------------------


def test_a_private_search_refuses_steps_that_mix_and_notes_the_others():
    grid = {"dplogisticregression__C": [0.1, 1.0]}
    for name in ("standardised", "sorted"):
        model = make_pipeline(FunctionTransformer(MIXING[name]), classifier())
        with pytest.raises(ValueError, match=r"step 'functiontransformer', which mixes rows"):
            DPGridSearchCV(model, grid).fit(X, Y)
    search = DPGridSearchCV(make_pipeline(FunctionTransformer(halved), classifier()), grid)
    search.fit(X, Y)
    assert "halved" in search.ledger_.assumptions[0]
    assert "halved" in privacy_spent(search).ledger.assumptions[0]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("function", "refused"),
    [
        (lambda e, X, y: -np.abs(y - e.predict(X)), False),
        (lambda e, X, y: (y == e.predict(X)).astype(float), False),
        (lambda e, X, y: np.max(e.predict_proba(X), axis=1), False),
        (lambda e, X, y: np.asarray(e.coef_)[0, 0] * X[:, 0], False),
        (lambda e, X, y: np.full(len(y), np.mean(y == e.predict(X))), True),
        (lambda e, X, y: -np.abs(y - y.mean()), True),
        (lambda e, X, y: e.decision_function(X) - e.decision_function(X).max(), True),
        (lambda e, X, y: y * len(y) + 1.0, True),
    ],
)
def test_a_row_score_that_mixes_rows_is_refused(function, refused):
    scorer = RowScorer(function, bounds=(-1.0, 1.0))
    search = DPGridSearchCV(classifier(), {"C": [0.1, 1.0]}, scoring=scorer)
    if refused:
        with pytest.raises(ValueError, match="of a RowScorer, which mixes rows"):
            search.fit(X, Y)
    else:
        assert "<lambda> of a RowScorer" in search.fit(X, Y).ledger_.assumptions[0]
    # public rows may be mixed
    assert search.fit(X, Y, X_val=X[:9], y_val=Y[:9]).ledger_.assumptions == ()
    assert DPGridSearchCV(classifier(), {"C": [0.1]}).fit(X, Y).ledger_.assumptions == ()


# -- streams -----------------------------------------------------------------------------------


def test_the_map_of_a_stream_is_an_assumption():
    rows, labels = stream_arrays(X, Y)
    for mixed in (
        (rows.map(MIXING["standardised"]), labels),
        (rows, labels.map(lambda y: np.roll(y, 1))),
    ):
        with pytest.raises(ValueError, match="of the map of a stream, which mixes rows"):
            classifier().fit(*mixed)
    model = classifier().fit(rows.map(halved), labels.map(lambda y: 1 - y))
    assert ["halved" in a for a in model.ledger_.assumptions] == [True, False]
    assert all("of the map of a stream" in a for a in model.ledger_.assumptions)
    assert classifier().fit(rows, labels).ledger_.assumptions == ()
    # through a pipeline, whose own steps need no trust
    piped = make_pipeline(NormClipper(), classifier()).fit(rows.map(halved), labels)
    assert ["halved" in a for a in piped[-1].ledger_.assumptions] == [True]
    assert (
        make_pipeline(NormClipper(), classifier()).fit(rows, labels)[-1].ledger_.assumptions == ()
    )

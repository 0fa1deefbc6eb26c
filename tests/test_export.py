# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Twins in scikit-learn: the same outputs on any rows, and nothing of skdp."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from skdp import (
    DPPCA,
    BoundedScaler,
    DPFeatureCenterer,
    DPFrequentFeatures,
    DPGridSearchCV,
    DPHingeSVM,
    DPKernelRegressor,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPStandardScaler,
    DPTableVectorizer,
    LocalDPPCA,
    NormClipper,
    PrivUnitPrivatizer,
    RandomFourierFeatures,
    dp_tabular_pipeline,
    to_sklearn,
)
from tests.test_golden import CONFIGURATIONS, FEW_COEFFICIENTS

METHODS = (
    "predict", "predict_proba", "decision_function", "transform", "inverse_transform",
    "mahalanobis",
)  # fmt: skip
#: whose outputs nothing of scikit-learn has: one point for all rows, or a random report of each
WITHOUT_TWIN = {
    "DPHeavyTailedMean", "DPHistogram", "DPMean", "DPMedian", "DPNormQuantile", "DPQuantile",
    "DPSparseMeanEstimator", "LocalDPCovariance", "LocalDPFrequencies", "LocalDPMean",
    "PrivUnitPrivatizer", "ScalarPrivatizer",
}  # fmt: skip
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(120, 4))
#: at the origin, inside of every clip, and far beyond
FAR = np.vstack([np.zeros((1, 4)), ROWS[:40] * 0.01, ROWS[:40], ROWS[40:80] * [1e3, 1, 50, 1e6]])
LABELS = np.digitize(ROWS[:, 0], [-0.4, 0.4])


def fitted(estimator, n_classes=2, X=ROWS):
    model = clone(estimator)
    names = model.get_params(deep=True)
    model.set_params(**{n: 3 for n in names if n.split("__")[-1] == "random_state"})
    model.set_params(**({"verbose": 0} if "verbose" in names else {}))
    y = np.minimum(LABELS, n_classes - 1) if is_classifier(model) else X[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y) if is_classifier(model) or is_regressor(model) else model.fit(X)


def as_array(values):
    return values.toarray() if sparse.issparse(values) else np.asarray(values)


def assert_twins(model, twin, X, tolerance=1e-12):
    """Assert that all that a twin can do is what the model does."""
    compared = 0
    for method in METHODS:
        if not (hasattr(twin, method) and hasattr(model, method)):
            continue
        rows = twin.transform(X) if method == "inverse_transform" else X
        ours, theirs = (as_array(getattr(m, method)(rows)) for m in (model, twin))
        assert ours.shape == theirs.shape
        if ours.dtype.kind == "f":
            scale = tolerance * max(1.0, np.abs(ours[np.isfinite(ours)]).max(initial=0.0))
            np.testing.assert_allclose(theirs, ours, rtol=tolerance, atol=scale)
        else:
            assert (ours == theirs).all()
        compared += 1
    assert compared
    assert not hasattr(model, "predict_proba") or hasattr(twin, "predict_proba")


@pytest.mark.sample(6, 60)
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_configuration_has_a_twin_or_none(name):
    estimator = CONFIGURATIONS[name]
    if type(estimator).__name__ in WITHOUT_TWIN:
        assert not hasattr(estimator, "to_sklearn")
        with pytest.raises(TypeError, match="has no twin in scikit-learn"):
            to_sklearn(estimator)
        return
    with pytest.raises(NotFittedError):
        clone(estimator).to_sklearn()
    model = fitted(estimator)
    if getattr(estimator, "refit", True) is False:
        with pytest.raises(AttributeError, match="refit=True"):
            model.to_sklearn()
        return
    if isinstance(model, DPTableVectorizer) and model.adjacency == "zero-out":
        # a row of missing numbers is NaN there
        with pytest.raises(TypeError, match="under zero-out"):
            model.to_sklearn()
        return
    assert_twins(model, model.to_sklearn(), FAR)
    if hasattr(model, "coef_") and is_classifier(model) and name not in FEW_COEFFICIENTS:
        model = fitted(estimator, n_classes=3)
        assert_twins(model, model.to_sklearn(), FAR)


#: by name; links are those of clipped gradients at few rows
LINEAR = {
    "columns and norm found": DPLogisticRegression(epsilon=50.0),
    "a link": DPLogisticRegression(),
    "no intercept": DPLogisticRegression(fit_intercept=False),
    "a norm": DPLogisticRegression(data_norm=0.5),
    "a norm and no link": DPLogisticRegression(epsilon=50.0, data_norm=1e-3, solver="gd"),
    "a norm found": DPLogisticRegression(epsilon=50.0, C=1.0),
    "margins": DPHingeSVM(epsilon=50.0, data_norm=1e3),
    "targets": DPLpRegressor(epsilon=50.0, l2=0.1),
    "targets and columns": DPLpRegressor(epsilon=50.0),
    "hats and columns": DPKernelRegressor(epsilon=50.0, kernel="additive", max_iter=8),
}
LINKED = {"a link", "no intercept", "a norm"}
MANY = np.repeat(ROWS, 25, axis=0) + RNG.normal(size=(3000, 4)) / 10


@pytest.mark.sample(6)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", LINEAR)
def test_linear_models_of_all_kinds_of_rows(name, n_classes):
    model, X = clone(LINEAR[name]).set_params(random_state=0), MANY
    y = X[:, 0] if is_regressor(model) else np.digitize(X[:, 0], [-0.4, 0.4][: n_classes - 1])
    model.fit(X, y)
    twin = model.to_sklearn()
    rows = np.vstack([FAR, FAR * 1e30])
    assert_twins(model, twin, rows)
    assert_twins(model, twin, FAR.astype(np.float32), tolerance=1e-5)
    assert_twins(model, twin, FAR.tolist())
    if model._found is None:
        for form in (sparse.csr_array, sparse.csc_matrix):
            assert_twins(model, twin, form(rows))
        assert_twins(model, twin, FAR * 1e200)
    else:  # columns are moved: as after a StandardScaler
        with pytest.raises(ValueError, match="Cannot center sparse"):
            twin.predict(sparse.csr_array(rows))
    # columns in units, or rows, or both, are clipped before the linear step
    if isinstance(twin, Pipeline):
        unclipped = Pipeline([step for step in twin.steps if step[0] not in ("reach", "sphere")])
        output = next(m for m in (*METHODS[2:0:-1], "predict") if hasattr(twin, m))
        assert (output == "predict_proba") == (name in LINKED)
        given = [getattr(m, output)(rows) for m in (unclipped, model)]
        assert np.abs(given[0] - given[1]).max() > 1e-3
    else:
        assert type(twin) is LinearRegression


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_link_leaves_no_decision_function_that_differs(n_classes):
    y = np.digitize(MANY[:, 0], [-0.4, 0.4][: n_classes - 1])
    model = DPLogisticRegression(random_state=0).fit(MANY, y)
    score = model.decision_function(MANY)
    scores = np.column_stack([np.zeros(len(MANY)), score]) if n_classes == 2 else score
    assert np.abs(model.predict_proba(MANY) - softmax(scores, axis=1)).max() > 1e-3
    twin = model.to_sklearn()
    assert_twins(model, twin, MANY)
    assert not hasattr(twin, "decision_function")
    # nothing is lost: the linear model within has the scores
    within = twin[-1].estimators_[0]
    np.testing.assert_allclose(within.decision_function(twin[:-1].transform(MANY)), score, 1e-9)
    model = DPLogisticRegression(data_norm=5.0, solver="gd", random_state=0).fit(MANY, y)
    assert type(model.to_sklearn()[-1]) is LogisticRegression


@pytest.mark.covering
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("labels", [["no", "yes", "perhaps"], [False, True, True], [7, -3, 5]])
def test_labels_of_any_type(labels, n_classes):
    classes = np.unique(labels[:n_classes])
    y = classes[np.digitize(MANY[:, 0], [-0.4, 0.4][: len(classes) - 1])]
    model = DPLogisticRegression(epsilon=50.0, classes=classes, random_state=0).fit(MANY, y)
    twin = model.to_sklearn()
    assert (twin.classes_ == model.classes_).all()
    assert (twin.predict(FAR) == model.predict(FAR)).all()
    assert twin.predict(FAR).dtype == model.predict(FAR).dtype


TRANSFORMERS = {
    "standard": DPStandardScaler(epsilon=5.0),
    "no mean": DPStandardScaler(epsilon=5.0, with_mean=False),
    "no deviation": DPStandardScaler(epsilon=5.0, with_std=False),
    "nothing": DPStandardScaler(with_mean=False, with_std=False),
    "centerer": DPFeatureCenterer(epsilon=5.0),
    "bounds": BoundedScaler((-1, 2), feature_range=(0, 3)),
    "bounds far off": BoundedScaler((1e9, 1e9 + 1)),
    "norm": NormClipper(0.7),
    "waves": RandomFourierFeatures(0.5, 8),
    "frequent": DPFrequentFeatures(epsilon=5.0, n_features_to_select=2),
    "private components": DPPCA(2),
    "components": LocalDPPCA(2),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers_of_all_kinds_of_rows(name):
    model = fitted(TRANSFORMERS[name], X=MANY)
    twin = model.to_sklearn()
    rows = FAR + 1e9 if name == "bounds far off" else FAR
    if name in ("bounds", "bounds far off"):  # what was clipped does not come back
        assert np.abs(twin.transform(rows) - model.transform(rows)).max() <= 1e-12
    elif hasattr(twin, "inverse_transform"):
        narrow = ROWS[:, : twin.transform(ROWS).shape[1]]
        both = [m.inverse_transform(narrow) for m in (model, twin)]
        np.testing.assert_allclose(*both, rtol=1e-12, atol=1e-12)
        assert np.abs(twin.transform(rows) - model.transform(rows)).max() <= 1e-12 * 1e7
    else:
        assert_twins(model, twin, FAR)
    if name != "bounds far off":
        single = twin.transform(FAR.astype(np.float32))
        np.testing.assert_allclose(single, model.transform(FAR), rtol=1e-4, atol=1e-4)
    if getattr(model, "with_mean", name not in ("norm", "frequent")) is False:
        found = twin.transform(sparse.csr_array(FAR))
        assert sparse.issparse(found)
        np.testing.assert_allclose(found.toarray(), model.transform(FAR), 1e-12, 1e-12)


def table(n_rows=2000):
    rng = np.random.default_rng(1)
    days = pd.to_timedelta(rng.integers(0, 900, n_rows), unit="D")
    made = pd.DataFrame({
        "age": rng.integers(18, 90, n_rows),
        "spent": rng.lognormal(3, 1, n_rows),
        "same": np.full(n_rows, 7.5),
        "day": pd.Timestamp("2020-01-01") + days,
        "last": pd.Timestamp("2020-01-01") + days[::-1],
        "wait": days,
        "member": rng.random(n_rows) > 0.5,
        "plan": rng.choice(["basic", "plus", "pro"], n_rows),
        "code": rng.choice([1, 2, 5], n_rows),
        "shop": rng.integers(0, 9, n_rows).astype(str),
        "rare": [f"word {i}" for i in range(n_rows)],
    })  # fmt: skip
    for i, name in enumerate(["spent", "day", "last", "wait", "plan", "shop"]):
        made.loc[i::7, name] = None
    return made


PUBLIC = {
    "bounds": {"age": (18, 100), "day": ("2020-01-01", "2022-01-01")},
    "categories": {"plan": ["pro", "basic"], "code": [5, 1]},
}


def strange(rows):
    """Return rows as no fit has seen them: unseen words, far numbers, nothing."""
    rows = rows.copy()
    rows["age"] = rows["age"] * 3.0
    rows["spent"] *= 1e6
    rows["code"] = rows["code"].astype(float)
    rows.loc[::5, "code"] = None
    rows.loc[::3, "age"] = None
    rows.loc[:50, "plan"] = "unseen"
    rows.loc[::2, "shop"] = "unseen"
    rows.loc[::11, "same"] = 8.0
    return rows


@pytest.mark.parametrize(
    ("n_buckets", "curves"), [(1000, "auto"), pytest.param(1024, "squares", marks=pytest.mark.full)]
)
def test_tables(n_buckets, curves):
    made = table()
    options = {"n_buckets": n_buckets, "curves": curves}
    model = DPTableVectorizer(20.0, random_state=0, **options, **PUBLIC)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(made)
    assert len(model.frequent_["shop"][0]) > 5
    assert not len(model.frequent_["rare"][0])
    assert model.scale_["same"] == 0.0
    assert model.has_knots_ == (curves == "auto")
    twin = model.to_sklearn()
    assert type(twin[0]) is ColumnTransformer
    for rows in (made, strange(made)):
        np.testing.assert_allclose(twin.transform(rows), model.transform(rows), 1e-11, 1e-12)
    assert list(twin.feature_names_in_) == list(made.columns)
    polars = pytest.importorskip("polars")
    with warnings.catch_warnings():
        # columns of polars have lost their names in scikit-learn 1.6
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        both = [m.transform(polars.from_pandas(made)) for m in (twin, model)]
    np.testing.assert_allclose(*both, 1e-11, 1e-12)


def test_words_of_a_bucket_have_both_signs():
    """Our bucket of a word is that of its hash, scikit-learn's that of its signed hash."""
    made = pd.DataFrame({"shop": [f"word {i % 20}" for i in range(2000)]})
    model = DPTableVectorizer(50.0, n_buckets=64, max_categories=64, random_state=0).fit(made)
    rows = pd.DataFrame({"shop": [f"other {i}" for i in range(500)]})
    found = model.transform(rows)
    assert len(np.unique(found, axis=0)) > 10
    np.testing.assert_allclose(model.to_sklearn().transform(rows), found, 1e-12, 1e-12)


def test_tables_that_have_no_twin():
    made = pd.DataFrame({"plan": ["a", "b"] * 50})
    public = {"epsilon": None, "categories": {"plan": ["a"]}}
    assert DPTableVectorizer(**public).fit(made).to_sklearn()
    with pytest.raises(TypeError, match="zero-out"):
        DPTableVectorizer(adjacency="zero-out", **public).fit(made).to_sklearn()
    # numbers instead of hashed words are refused, and not taken for other words
    made = pd.DataFrame({"shop": np.arange(900) % 9})
    twin = DPTableVectorizer(50.0, categories={"shop": None}, random_state=0).fit(made).to_sklearn()
    with pytest.raises(TypeError, match="string"):
        twin.transform(made)


@pytest.mark.full
def test_pipelines_whole():
    made = table()
    models = [
        dp_tabular_pipeline("classifier", epsilon=20.0, classes=[0, 1], random_state=0, **PUBLIC),
        dp_tabular_pipeline("regressor", epsilon=20.0, random_state=0, **PUBLIC),
    ]
    for model in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(made, made["age"] > 50)
        assert_twins(model, to_sklearn(model), strange(made))
    frame = pd.DataFrame(MANY, columns=list("abcd"))
    model = make_pipeline(
        FunctionTransformer(np.arctan),
        ColumnTransformer(
            [
                ("bounded", BoundedScaler((-2, 2)), ["a", "b"]),
                ("plain", MinMaxScaler(), ["b"]),
                ("none", "drop", ["c"]),
            ],
            remainder=DPStandardScaler(random_state=0),
        ),
        FeatureUnion([("same", "passthrough"), ("short", NormClipper(0.5))]),
        "passthrough",
        DPLogisticRegression(random_state=0),
    ).fit(frame, frame["a"] > 0)
    twin = to_sklearn(model)
    assert list(twin.feature_names_in_) == list(frame)
    far = pd.DataFrame(FAR, columns=list("abcd"))
    assert_twins(model, twin, far)
    assert b"skdp" not in pickle.dumps(twin)
    with pytest.raises(ValueError, match="columns are missing"):
        twin.predict(far.rename(columns={"a": "z"}))


def test_searches():
    base = DPLogisticRegression(epsilon=50.0, classes=(0, 1), data_norm=2.0)
    y = (MANY[:, 0] > 0).astype(int)
    grid = {"C": [1.0, 10.0]}
    models = [
        DPGridSearchCV(base, grid, epsilon=20.0, random_state=0),
        GridSearchCV(base.set_params(random_state=0), grid, cv=2),
    ]
    for model in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(MANY, y)
        assert_twins(model, to_sklearn(model), FAR)


def test_what_is_no_twin_is_refused():
    for model in (DPMean(), PrivUnitPrivatizer()):
        with pytest.raises(TypeError, match=f"{type(model).__name__} has no twin"):
            to_sklearn(model)
    with pytest.raises(TypeError, match="DPMean has no twin"):
        to_sklearn(make_pipeline(StandardScaler(), DPMean(random_state=0)).fit(ROWS))
    with pytest.raises(NotFittedError):
        to_sklearn(make_pipeline(StandardScaler(), DPHingeSVM()))
    with pytest.raises(NotFittedError):
        to_sklearn(BoundedScaler())
    y = MANY[:, 0] > 0
    inner = DPHingeSVM(data_norm=2.0, random_state=0).fit(MANY, y)
    held = CalibratedClassifierCV(FrozenEstimator(inner)).fit(MANY, y)
    with pytest.raises(TypeError, match="CalibratedClassifierCV holds an estimator of skdp"):
        to_sklearn(held)
    assert_twins(plain := LinearRegression().fit(ROWS, ROWS[:, 0]), to_sklearn(plain), FAR)


def test_nothing_is_shared_with_the_model():
    model = DPHingeSVM(epsilon=50.0, data_norm=2.0, random_state=0).fit(MANY, MANY[:, 0] > 0)
    before, twin = model.decision_function(FAR), model.to_sklearn()
    twin[-1].intercept_ += 1.0
    twin[-1].coef_ *= 2.0
    assert (model.decision_function(FAR) == before).all()


def test_wide_sparse_rows_stay_sparse():
    rows = sparse.random_array((300, 100_000), density=1e-4, rng=0, format="csr")
    for classes in ((0, 1), (0, 1, 2)):
        model = DPLogisticRegression(data_norm=1.0, classes=classes, solver="gd", max_iter=2)
        model.set_params(random_state=0).fit(rows, np.arange(300) % len(classes))
        twin = model.to_sklearn()
        # dense they would be 240 megabytes
        assert sparse.issparse(twin[:-1].transform(rows))
        assert_twins(model, twin, rows * 10)


def test_names_of_features_and_containers():
    frame = pd.DataFrame(MANY, columns=list("abcd"))
    y = frame["a"] > 0
    for model in (DPLogisticRegression(random_state=0), DPLpRegressor(random_state=0)):
        twin = model.fit(frame, y).to_sklearn()
        assert list(twin.feature_names_in_) == list(frame)
        for container in ("default", "pandas"):
            with sklearn.config_context(transform_output=container):
                assert_twins(model, twin, frame[:100])
        with pytest.raises(ValueError, match="feature names"):
            twin.predict(frame[list("badc")])
    for model in (BoundedScaler((-1, 1)), DPStandardScaler(random_state=0)):
        twin = model.fit(frame).to_sklearn().set_output(transform="pandas")
        found = model.set_output(transform="pandas").transform(frame)
        pd.testing.assert_frame_equal(twin.transform(frame), found, rtol=1e-12, atol=1e-12)


ALONE = """
import pickle, sys
sys.modules["skdp"] = None  # whoever imports it fails
import numpy as np
for twin, rows, method, expected in pickle.load(sys.stdin.buffer):
    np.testing.assert_allclose(getattr(twin, method)(rows), expected, 1e-11, 1e-11)
assert not [name for name in sys.modules if name.startswith("skdp.")]
print("done")
"""


@pytest.mark.full
def test_a_twin_is_loaded_and_used_where_there_is_no_skdp(tmp_path):
    made, y = table(), MANY[:, 0] > 0
    words = dp_tabular_pipeline("classifier", epsilon=20.0, classes=[0, 1], random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        words.fit(made, made["age"] > 50)
    linked = DPLogisticRegression(random_state=0).fit(MANY, y)
    cases = [
        (words, strange(made).drop(columns="code").assign(code=made["code"])[made.columns]),
        (linked, FAR),
        (DPHingeSVM(random_state=0).fit(MANY, y), FAR),
        (DPLpRegressor(random_state=0).fit(MANY, MANY[:, 0]), FAR),
        (NormClipper(0.5).fit(MANY), FAR),
    ]
    held = []
    for model, rows in cases:
        twin = to_sklearn(model)
        method = next(m for m in ("predict_proba", "predict", "transform") if hasattr(model, m))
        held.append((twin, rows, method, getattr(model, method)(rows)))
        names = {type(value).__name__ for value in vars(twin).values()}
        assert not names & {"Ledger", "RandomState", "Generator"}
    ran = subprocess.run(
        [sys.executable, "-c", ALONE], input=pickle.dumps(held), capture_output=True, cwd=tmp_path
    )
    assert ran.stdout == b"done\n", ran.stderr.decode()

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The public coupled trace: every estimator, every law, planted bugs, and the file it writes."""

import dataclasses
import functools
import json
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skdp import (
    DPGridSearchCV,
    DPHingeSVM,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPMedian,
    DPQuantile,
    DPSparseMeanEstimator,
    DPStandardScaler,
    FederatedDPLogisticRegression,
    LocalDPMean,
    PrivUnitPrivatizer,
    privacy_spent,
    solvers,
)
from skdp.audit import trace_privacy
from skdp.inspection import TableSummary
from skdp.local import optimal_privunit
from skdp.privacy import GaussianMechanism, Law, PrivacyBudget, Sampling
from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.samplers import make_bits
from skdp.solvers import Accelerated
from tests import _audit
from tests.test_common import ALL, NAMES


def neighbours_for(estimator, n_rows=60, n_features=3, row=7, cosine=-1.0):
    """Return arguments of `trace_privacy`: one long row against its opposite, or a null row.

    With another cosine, against a row at that angle.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features))
    X /= np.linalg.norm(X, axis=1)[:, None]
    X[row] *= 3
    y = None
    if is_classifier(estimator):
        y = np.arange(n_rows) % 2
    elif is_regressor(estimator):
        y = rng.uniform(-1, 1, n_rows)
    other = X.copy()
    params = estimator.get_params()
    zero = "zero-out" in (params.get("adjacency"), params.get("estimator__adjacency"))
    other[row] = np.nan if zero else cosine * X[row]
    if not zero and cosine > -1:
        across = X[row - 1] - X[row - 1] @ X[row] / 9 * X[row]
        other[row] += 3 * np.sqrt(1 - cosine**2) * across / np.linalg.norm(across)
    if "add-remove" in (params.get("adjacency"), params.get("estimator__adjacency")):
        given = {"X": X, "X_neighbour": np.delete(X, row, axis=0), "y": y}
        return given if y is None else {**given, "y_neighbour": np.delete(y, row)}
    return {"X": X, "X_neighbour": other, "y": y}


#: one estimator of every law, and how much of its claim these neighbours show at least
LAWS = {
    "gaussian": (DPMean(data_norm=1.0, mechanism="gaussian"), 0.999),
    "laplace": (DPMean(mechanism="laplace", adjacency="zero-out", data_norm=1.0), 0.88),
    "k-norm": (DPHingeSVM(epsilon=40.0, delta=0.0, data_norm=1.0), 0.04),
    "exponential": (DPQuantile(bounds=(-1.0, 1.0)), 0.999),
    "exponential, a continuum": (
        DPMedian(epsilon=2.0, delta=0.0, mechanism="exponential", data_norm=1.0), 0.4,
    ),
    "threshold": (
        DPSparseMeanEstimator(mechanism="histogram", sparsity=2, nonnegative=True), 0.9,
    ),
    "objective": (DPLogisticRegression(epsilon=20.0, mechanism="objective", data_norm=1.0), 0.3),
    "poisson batches": (
        DPLogisticRegression(
            epsilon=8.0, solver=solvers.SGD(batch_size=8), adjacency="zero-out", data_norm=1.0,
        ),
        0.99,
    ),
    "batches of a fixed size": (
        DPLogisticRegression(
            epsilon=20.0, solver=solvers.SGD(batch_size=8, sampling="without-replacement"),
            data_norm=1.0,
        ),
        0.9,
    ),
    "late noise": (
        DPHingeSVM(
            epsilon=8.0, solver=solvers.LazySGD(batch_size=8), adjacency="zero-out", max_iter=12,
            data_norm=1.0,
        ),
        0.99,
    ),
    "local reports": (LocalDPMean(), 0.999),
    "sums of reports": (
        FederatedDPLogisticRegression(epsilon=8.0, local_epsilon=16.0, randomiser="auto"), 0.99,
    ),
    "a search": (
        DPGridSearchCV(
            DPLogisticRegression(random_state=0, data_norm=1.0), {"C": [1.0, 10.0]}, epsilon=8.0,
        ),
        0.99,
    ),
}  # fmt: skip
#: an opposite row has the same products
COSINE = {"a search": -0.5}
every_law = pytest.mark.parametrize("name", LAWS)


@functools.cache
def sound(name):
    """Return the trace of a law as it is, and the classes of its queries."""
    estimator, _ = LAWS[name]
    found = set()
    with pytest.MonkeyPatch.context() as patch:
        for law in [law for law in all_laws() if "release" in vars(law)]:
            own = law.release

            def noting(self, query, noise, source, own=own):
                found.add(type(query))
                return own(self, query, noise, source)

            patch.setattr(law, "release", noting)
        cosine = COSINE.get(name, -1.0)
        result = trace_privacy(estimator, **neighbours_for(estimator, cosine=cosine))
    assert found
    return result, found


def all_laws(kind=Law):
    for law in kind.__subclasses__():
        yield law
        yield from all_laws(law)


@every_law
def test_every_law_keeps_its_claim(name):
    result, least = sound(name)[0], LAWS[name][1]
    assert result.passed, result
    assert result.violations == ()
    assert least <= result.share <= 1 + 1e-9
    assert result.releases
    levels = [r.noise_level for r in result.releases if r.noise_level is not None]
    assert levels or name in (
        "exponential",
        "exponential, a continuum",
        "local reports",
        "late noise",
    )
    assert np.isfinite(result.loss)


@pytest.mark.full
@pytest.mark.parametrize("estimator", ALL, ids=[NAMES[id(e)] for e in ALL])
def test_every_configuration_keeps_its_claim(estimator):
    result = trace_privacy(estimator, **neighbours_for(estimator))
    assert result.passed, result
    assert not result.share > 1 + 1e-9
    if result.epsilon_claimed is not None and result.complete:
        assert result.epsilon <= result.epsilon_claimed * (1 + 1e-9)


@pytest.mark.parametrize(
    ("model", "measured"),
    [
        (DPLogisticRegression(epsilon=4.0, data_norm=1.0), _audit.coupled_mu),
        (DPMean(mechanism="laplace", data_norm=1.0), _audit.coupled_epsilon),
    ],
)
def test_another_way_to_measure_agrees(model, measured):
    # additions of noise, recorded without laws and queries
    arguments = neighbours_for(model)
    result = trace_privacy(model, **arguments)
    seeded = clone(model).set_params(random_state=0)
    sides = [arguments["X"], arguments["X_neighbour"]]
    found = measured(lambda X: clone(seeded).fit(X, arguments["y"]), *sides)
    assert found == pytest.approx(result.mu or result.epsilon, rel=1e-9)


@pytest.mark.full
def test_neighbours_of_another_adjacency_leave_what_is_declared():
    model = DPLogisticRegression(epsilon=20.0, solver=solvers.SGD(batch_size=8), data_norm=1.0)
    arguments = neighbours_for(DPLogisticRegression(adjacency="zero-out", data_norm=1.0))
    less = trace_privacy(model, **arguments, adjacency="zero-out", n_draws=0)
    own = trace_privacy(model, **neighbours_for(model), n_draws=0)
    assert less.passed
    assert less.releases[0].sensitivity == own.releases[0].sensitivity
    assert 0 < less.epsilon <= own.epsilon * (1 + 1e-9) <= own.epsilon_claimed * (1 + 2e-9)


DEFAULT, ZERO_OUT = DPLogisticRegression(epsilon=4, data_norm=1.0), {"adjacency": "zero-out"}
#: the trace of a model, on whichever pair shows most
built_in = functools.cache(trace_privacy)


MODELS = [
    DEFAULT,
    DPLogisticRegression(epsilon=4, solver="accelerated", data_norm=1.0),
    *(
        pytest.param(model, marks=pytest.mark.full)
        for model in (
            DPLogisticRegression(epsilon=1, data_norm=1.0),
            DPLogisticRegression(epsilon=1, solver="preconditioned", data_norm=1.0),
            DPLogisticRegression(epsilon=4, **{"data_norm": 1.0, **ZERO_OUT}),
            DPLogisticRegression(
                epsilon=4, solver="preconditioned", classes=("a", "b"), data_norm=1.0
            ),
            DPLogisticRegression(epsilon=20, data_norm=5.0),
            DPHingeSVM(epsilon=4, **{"data_norm": 1.0, **ZERO_OUT}),
            DPHingeSVM(epsilon=4, solver="accelerated", data_norm=1.0),
            DPHingeSVM(epsilon=4, solver="accelerated", **{"data_norm": 1.0, **ZERO_OUT}),
        )
    ),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_built_in_pairs_show_nearly_all_of_the_claim(model):
    # many runs of a black box see hardly anything of it
    result = built_in(model)
    assert result.passed
    assert result.adjacency == model.adjacency
    assert 0.9999 < result.share <= 1
    assert result.mu == pytest.approx(result.share * result.mu_claimed)


@pytest.mark.parametrize(
    "solver",
    [
        pytest.param("auto", marks=pytest.mark.slow),
        pytest.param("preconditioned", marks=pytest.mark.full),
    ],
)
def test_built_in_pairs_show_all_gradients_of_the_hinge(solver):
    # steps as long as noise allows lead beyond the kink, on the one side or the other of two rows
    # that are opposite; a row and its label do not move the moments, 15 % of the squared budget
    result = built_in(DPHingeSVM(epsilon=1, solver=solver, data_norm=1.0))
    assert result.passed
    assert 0.92 < result.share <= 1


def test_few_rows_show_counts_and_one_gradient_at_their_bounds():
    counts, gradient = built_in(DEFAULT).releases
    assert "rows of each class" in counts.query
    assert min(counts.ratio, gradient.ratio) > 0.9999


def test_two_directions_show_moments_and_gradients_at_their_bounds(monkeypatch):
    # few rows would show as much, with two releases
    monkeypatch.delattr(Accelerated, "plan")
    result = trace_privacy(DEFAULT)
    assert result.pair == "one row among many, two directions"
    norm, moments, *gradients = result.releases
    assert "that is not 0" in norm.query
    assert "products" in moments.query
    # the second moments of the pair are round, so that few steps are enough
    assert len(gradients) == 16
    assert all(release.ratio > 0.9997 for release in result.releases[1:])


def test_a_sensitivity_of_moments_that_opposite_rows_attain_is_caught(monkeypatch):
    # no two rows that are opposite, or at a right angle, are farther apart than 2
    (moments,) = (kind for kind in sound("a search")[1] if kind.__name__ == "SecondMoments")
    own = moments.sensitivity
    monkeypatch.setattr(
        moments, "sensitivity", lambda self, a, n: dataclasses.replace(own(self, a, n), l2=2.0)
    )
    model = DPLogisticRegression(epsilon=4, solver="preconditioned", max_iter=4, data_norm=1.0)
    assert trace_privacy(model, **neighbours_for(model)).passed
    broken = trace_privacy(model)
    assert not broken.passed
    assert broken.releases[0].ratio == pytest.approx(1.5 / np.sqrt(2), rel=1e-4)


@pytest.mark.full
def test_built_in_null_rows_show_all_of_a_claim_under_zero_out():
    result = trace_privacy(DPLpRegressor(adjacency="zero-out"))
    assert result.passed
    assert result.adjacency == "zero-out"
    assert "against nothing" in result.pair
    assert 0.999 < result.share <= 1


def test_prices_within_the_declared_ones_are_within_the_claim():
    # all are attained to five digits, and Laplace with Gaussian noise is composed on a grid
    rng = np.random.default_rng(0)
    X, weights = rng.uniform(-1, 1, size=(300, 3)), np.ones(300)
    X[7], weights[7] = [9.0, 0.0, 0.0], 1e308
    other = X.copy()
    other[7] = np.nan
    model = DPLogisticRegression(classes=[0, 1], data_norm=1.0, adjacency="zero-out")
    for epsilon in (0.3, 1.0, 2.0):
        result = trace_privacy(
            clone(model).set_params(epsilon=epsilon, max_weight=1.0, solver="preconditioned"),
            X, other, y=np.arange(300) % 2, sample_weight=weights,
            sample_weight_neighbour=np.where(np.arange(300) == 7, 0.0, weights),
        )  # fmt: skip
        assert 0.999 < result.releases[0].ratio <= 1
        assert result.passed
        assert 0.999 < result.share <= 1


def test_steps_of_a_pipeline_add_up():
    model = make_pipeline(
        DPStandardScaler(epsilon=0.2), DPLogisticRegression(epsilon=0.8, data_norm=1.0)
    )
    result = trace_privacy(model, **neighbours_for(DPLogisticRegression(data_norm=1.0)))
    assert result.passed
    assert result.complete
    assert len({release.query for release in result.releases}) > 1
    assert 0 < result.mu <= result.mu_claimed


def test_clients_are_the_unit_with_groups():
    rng = np.random.default_rng(1)
    X, groups = rng.normal(size=(40, 3)), np.repeat(np.arange(10), 4)
    y, other = np.arange(40) % 2, X.copy()
    other[8:12] *= -1
    result = trace_privacy(FederatedDPLogisticRegression(), X, other, y=y, groups=groups)
    assert result.passed
    assert result.unit == "group"
    assert "(replace-one, per group): passed" in str(result)
    with pytest.raises(ValueError, match="one row"):
        trace_privacy(FederatedDPLogisticRegression(), X, other, y=y)


@pytest.mark.parametrize(
    "given",
    [{"magnitude": "unit"}, {"magnitude": "flip", "n_components": 2}, {"n_components": 3}],
    ids=["unit", "flip", "lift"],
)
def test_reports_of_rotated_rows_are_measured_given_the_rotation(given):
    model = PrivUnitPrivatizer(mechanism="projunit", **given)
    result = trace_privacy(model, **neighbours_for(model))
    assert result.passed
    assert result.unmeasured == ()
    assert 0.999 < result.share <= 1
    # which rotation it was is not known afterwards
    assert np.isnan(result.loss)


def test_half_of_the_price_of_a_rotated_report_is_caught(monkeypatch):
    (kind,) = sound("local reports")[1]
    own = kind.sensitivity
    monkeypatch.setattr(kind, "sensitivity", lambda self, a, n: halved(own(self, a, n)))
    model = PrivUnitPrivatizer(mechanism="projunit")
    result = trace_privacy(model, **neighbours_for(model))
    assert not result.passed
    assert result.releases[0].ratio == pytest.approx(2, rel=1e-6)


def test_reports_without_a_closed_form_are_named(monkeypatch):
    kind = type(optimal_privunit(1.0, 3))
    monkeypatch.setattr(kind, "log_law", lambda self, reports, _: np.full(len(reports), np.nan))
    model = PrivUnitPrivatizer(magnitude="unit")
    result = trace_privacy(model, **neighbours_for(model))
    assert result.unmeasured
    assert np.isnan(result.share)
    assert "not measured" in str(result)


# Planted bugs.


def halved(sensitivity):
    """Return what a query states, with all of it halved."""
    if isinstance(sensitivity, tuple):
        return tuple(map(halved, sensitivity))
    names = {"l1", "l2", "spread", "reach"} & {f.name for f in dataclasses.fields(sensitivity)}
    return dataclasses.replace(
        sensitivity, **{name: getattr(sensitivity, name) / 2 for name in names}
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["gaussian", "laplace", "exponential", "poisson batches",
                                  "batches of a fixed size", "late noise", "local reports",
                                  "sums of reports", "a search"])  # fmt: skip
def test_a_sensitivity_that_is_half_of_the_true_one_is_caught(name, monkeypatch):
    estimator, _ = LAWS[name]
    for kind in sound(name)[1]:
        own = kind.sensitivity
        monkeypatch.setattr(
            kind, "sensitivity", lambda self, a, n, own=own: halved(own(self, a, n))
        )
    broken = trace_privacy(estimator, **neighbours_for(estimator))
    assert not broken.passed
    assert max(release.ratio for release in broken.releases) > 1.5
    assert "FAILED" in str(broken)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["gaussian", "laplace", "k-norm", "poisson batches", "threshold",
                                  "objective"])  # fmt: skip
def test_noise_that_is_half_of_what_it_should_be_is_caught(name, monkeypatch):
    estimator, _ = LAWS[name]
    own = mechanisms.add_noise

    def quieter(values, noise, bits):
        exact = noise.grid * mechanisms.align(values, noise)
        return exact + (own(values, noise, bits) - exact) / 2

    monkeypatch.setattr(mechanisms, "add_noise", quieter)
    result = trace_privacy(estimator, **neighbours_for(estimator))
    assert not result.passed
    assert min(r.noise_level for r in result.releases if r.noise_level is not None) < 1e-6
    assert "not the declared law" in str(result)


def test_rows_that_are_clipped_too_late_are_caught(monkeypatch):
    (query,) = sound("gaussian")[1]
    own = query.evaluate
    # as if rows were as long as three times what they are clipped to
    monkeypatch.setattr(query, "evaluate", lambda self, rows: 3 * own(self, rows))
    result = trace_privacy(
        DPMean(data_norm=1.0, mechanism="gaussian"),
        **neighbours_for(DPMean(data_norm=1.0, mechanism="gaussian")),
    )
    assert not result.passed
    assert result.releases[0].distance > 2.9 * result.releases[0].paid


class Leaking(DPMean):
    """A mean that keeps a count of its rows which nobody paid for."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.n_long_ = int((np.asarray(X)[:, 0] > 0).sum())
        return self


class Peeking(DPMean):
    """A mean whose budget depends on its rows."""

    def fit(self, X, y=None):
        self.set_params(epsilon=1.0 if np.asarray(X)[7, 0] > 0 else 2.0)
        return super().fit(X, y)


class Silent(DPMean):
    """A mean that leaves one release off its ledger."""

    def fit(self, X, y=None):
        super().fit(X, y)
        query, noise = Quiet(), GaussianMechanism(1.0).calibrate(Quiet().sensitivity("", 1), 1)
        source = Open(np.asarray(X))
        self.more_ = GaussianMechanism(1.0).release(query, noise, source)
        return self


@dataclasses.dataclass(frozen=True)
class Quiet:
    """A sum of the first feature."""

    name = "sum of a feature"
    size = 1

    def sensitivity(self, adjacency, n_rows):
        return mechanisms.Sensitivity(6.0, 6.0, 100.0, "clipped beforehand")

    def evaluate(self, rows):
        return np.array([rows[:, 0].sum()])


class Open:
    """Rows without a curator."""

    def __init__(self, rows):
        self._rows, self.n_rows = rows, len(rows)
        self.bits = make_bits(0, "test")

    def read(self):
        return self._rows


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (Leaking(data_norm=1.0), "Leaking.n_long_ differs"),
        (Peeking(data_norm=1.0), "release 1 differs in public facts: law"),
        (Silent(data_norm=1.0), "more releases than the ledger has"),
    ],
)
def test_what_is_not_on_the_ledger_is_caught(model, told):
    result = trace_privacy(model, **neighbours_for(model))
    assert not result.passed
    assert any(told in text for text in result.violations)
    assert f"VIOLATION: {result.violations[0]}" in str(result)


class Above:
    """Code with a number in it."""

    def __init__(self, least):
        self.least = least

    def __call__(self, x):
        return x > self.least


def above(x, least=0.0):
    return x > least


def closed(n):
    return lambda x: x > n


def with_default(n):
    def rule(x, *, least=n):
        return x > least

    return rule


#: rules made of a number, and where in them it is
RULES = {
    "closure": (closed, "Keeping.rule_.n"),
    "default": (with_default, "Keeping.rule_.defaults.1.least"),
    "partial": (lambda n: functools.partial(above, least=n), "Keeping.rule_.least"),
    "method": (lambda n: Above(n).__call__, "Keeping.rule_.object.least"),
    "callable": (Above, "Keeping.rule_.least"),
    "code": (lambda n: above if n else closed, "Keeping.rule_"),
    "a list of them": (lambda n: [np.sin, closed(n)], "Keeping.rule_.1.n"),
}


@pytest.mark.parametrize("kind", RULES)
def test_what_kept_code_holds_is_compared(kind):
    make, where = RULES[kind]

    class Keeping(DPMean):
        def fit(self, X, y=None):
            super().fit(X, y)
            self.rule_ = make(self.count(X))
            return self

        def count(self, X):
            return int((np.asarray(X)[:, 0] > 0).sum()) % 2

    class Public(Keeping):
        def count(self, X):
            return len(X)

    result = trace_privacy(
        Keeping(data_norm=1.0), **neighbours_for(DPMean(data_norm=1.0, mechanism="gaussian"))
    )
    assert result.violations == (f"{where} differs though all that was released is the same",)
    assert trace_privacy(
        Public(), **neighbours_for(DPMean(data_norm=1.0, mechanism="gaussian"))
    ).passed


def test_a_neighbour_that_raises_is_told():
    class Failing(DPMean):
        def fit(self, X, y=None):
            super().fit(X, y)
            if np.asarray(X)[7, 0] < 0:
                raise RuntimeError("secret")
            return self

    arguments = neighbours_for(DPMean(data_norm=1.0, mechanism="gaussian"))
    if arguments["X"][7, 0] < 0:
        arguments["X"], arguments["X_neighbour"] = arguments["X_neighbour"], arguments["X"]
    result = trace_privacy(Failing(data_norm=1.0), **arguments)
    assert result.violations == ("the fit to the neighbour raised a RuntimeError",)


# Batches.


@pytest.mark.parametrize("name", ["poisson batches", "batches of a fixed size"])
def test_every_batch_counts_whether_the_row_is_in_it_or_not(name):
    result, _ = sound(name)
    steps = [r for r in result.releases if r.rows != "all"]
    # of 60 rows, 8 are in a batch
    assert len(steps) > 20
    assert all(release.distance > 0 for release in steps)
    assert result.loss < result.epsilon


def test_the_loss_of_a_batch_is_that_of_two_mixtures():
    result, _ = sound("poisson batches")
    rate = 8 / 60
    # a row that is in with probability q changes the density by a factor of at least 1 - q
    assert all(release.loss > np.log(1 - rate) - 1e-9 for release in result.releases)


# The report.


def test_a_file_tells_enough_to_measure_again(tmp_path):
    result, _ = sound("gaussian")
    result.to_json(tmp_path / "trace.json")
    read = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    assert read == json.loads(json.dumps(result.to_dict()))
    assert (read["format"], read["version"], read["passed"]) == ("skdp privacy trace", 1, True)
    (release,) = read["releases"]
    gap = np.subtract(release["first"], release["second"])
    assert np.linalg.norm(gap, 2) == pytest.approx(release["distance"])
    assert release["distance"] <= release["paid"]
    assert "first" not in result.to_dict(inputs=False)["releases"][0]


@every_law
def test_every_distance_follows_from_the_inputs_in_the_file(name):
    measures = {
        "l1": lambda gap: np.abs(gap).sum(),
        "l2": np.linalg.norm,
        "spread": np.ptp,
        "log-ratio": lambda gap: np.abs(gap).max(),
    }
    for release in sound(name)[0].releases:
        gap = np.subtract(release.first, release.second)
        if gap.size and release.rows in ("all", "poisson"):
            assert measures[release.metric](gap) == pytest.approx(release.distance, abs=1e-12)


def test_a_picture_has_every_release():
    result, _ = sound("poisson batches")
    ax = result.plot()
    points = [line for line in ax.lines if line.get_marker() == "o"]
    assert sum(len(line.get_xdata()) for line in points) == len(result.releases)


def test_a_text_has_the_numbers():
    text = str(
        trace_privacy(
            DPMean(data_norm=1.0, mechanism="gaussian"),
            **neighbours_for(DPMean(data_norm=1.0, mechanism="gaussian")),
        )
    )
    assert "passed" in text
    assert "l2 2 declared, 2 measured" in text


# What a trace leaves alone.


def test_nothing_stays_in_front_of_the_laws():
    before = {law: vars(law)["release"] for law in all_laws() if "release" in vars(law)}
    draw = Sampling.draw
    trace_privacy(
        DPMean(data_norm=1.0, mechanism="gaussian"),
        **neighbours_for(DPMean(data_norm=1.0, mechanism="gaussian")),
    )
    with pytest.raises(ValueError, match="epsilon"):
        trace_privacy(
            DPMean(epsilon=-1.0, data_norm=1.0, mechanism="gaussian"),
            **neighbours_for(DPMean(data_norm=1.0, mechanism="gaussian")),
        )
    assert {law: vars(law)["release"] for law in before} == before
    assert Sampling.draw is draw


def test_a_fit_in_another_thread_is_not_replayed():
    class Meanwhile(DPMean):
        def fit(self, X, y=None):
            super().fit(X, y)
            other = DPMean(epsilon=1e4, random_state=1, data_norm=1.0, mechanism="gaussian")
            thread = threading.Thread(target=other.fit, args=(np.full((50, 3), 0.1),))
            thread.start()
            thread.join()
            OTHERS.append(other.location_)
            return self

    OTHERS = []
    result = trace_privacy(
        Meanwhile(data_norm=1.0), **neighbours_for(DPMean(data_norm=1.0, mechanism="gaussian"))
    )
    assert len(result.releases) == 1
    assert np.abs(np.array(OTHERS) - 0.1).max() < 0.01


def test_a_budget_is_not_charged():
    budget = PrivacyBudget(epsilon=1.0, delta=1e-5)
    model = DPMean(epsilon=0.5, budget=budget, data_norm=1.0, mechanism="gaussian")
    assert trace_privacy(model, **neighbours_for(model)).passed
    assert not budget.charges


def test_the_estimator_is_not_fitted():
    model = DPMean(data_norm=1.0, mechanism="gaussian")
    trace_privacy(model, **neighbours_for(model))
    assert not hasattr(model, "location_")
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X_neighbour": [[0.0]]}, "X must be given"),
        ({"X": [[0.0], [1.0]], "y_neighbour": [0, 1]}, "y must be given with y_neighbour"),
        ({"X": [[0.0], [1.0]], "X_neighbour": [[0.0], [1.0]]}, "must differ"),
        ({"X": [[0.0]], "groups": [0]}, "X_neighbour must be given with groups"),
        ({"method": "predict"}, "method must be"),
        ({"n_draws": -1}, "n_draws must be"),
        ({"random_state": None}, "random_state must be an integer"),
        ({"adjacency": "add-remove"}, "adjacency must be"),
    ],
)
def test_unusable_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        trace_privacy(DPMean(data_norm=1.0, mechanism="gaussian"), **arguments)
    with pytest.raises(TypeError, match="method fit"):
        trace_privacy(object())


def test_the_seeds_of_a_trace_take_nothing_from_the_claim():
    # one seed for all members would leave a claim that nothing could exceed
    model = OneVsRestClassifier(DPLogisticRegression(max_iter=2, data_norm=1.0))
    told = neighbours_for(DPLogisticRegression(data_norm=1.0)) | {"y": np.arange(60) % 3}
    result = trace_privacy(model, **told)
    assert result.passed
    fitted = clone(model).fit(told["X"], told["y"])
    assert result.epsilon_claimed == privacy_spent(fitted).epsilon < np.inf


def test_a_released_date_that_is_none_equals_itself():
    days = np.datetime64("2020-01-01", "s") + np.arange(60).astype("m8[D]")
    other = days.copy()
    other[7] = "NaT"
    one, two = (pd.DataFrame({"day": column}) for column in (days, other))
    result = trace_privacy(TableSummary(epsilon=50.0), one, two)
    assert result.passed

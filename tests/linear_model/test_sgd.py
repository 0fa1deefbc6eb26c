# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Stochastic gradient descent: fits, progress, shuffled rows, the steps of the recursion."""

import math
import re
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import DPHingeSVM, DPLogisticRegression, NormClipper, solvers
from skdp.io import stream_chunks
from skdp.papers.accelerated_one_pass import (
    ApproximationPlan,
    plan_approximation,
    stochastic_approximation,
)
from skdp.privacy import gdp_mu
from skdp.privacy.laws import calibration, loss_distributions
from tests import _audit
from tests._neighbours import as_layout
from tests._solvers import linear_model

# Fits on random batches: inputs, refusals, and Algorithm 1 of Bassily, Smith and Thakurta.


ESTIMATORS = (DPLogisticRegression, DPHingeSVM)
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


def rows(n_rows=200, n_features=4, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    y = np.digitize(X[:, 0], np.linspace(-0.5, 0.5, n_classes - 1))
    return X / 4, y


def sgd(estimator=DPLogisticRegression, **options):
    usual = {"epsilon": 4.0, "delta": 1e-5, "solver": "sgd", "batch_size": 20, "random_state": 0}
    return linear_model(estimator, **{**usual, **options})


@pytest.mark.full
@every_estimator
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("layout", ["F", "strided", "read-only", "csr", "csr zeros"])
def test_the_layout_makes_no_difference(layout, n_classes, estimator):
    X, y = rows(n_classes=n_classes)
    X[np.abs(X) < 0.05] = 0.0
    model = sgd(estimator, max_iter=15)
    dense, other = clone(model).fit(X, y), clone(model).fit(as_layout(X, layout), y)
    # a sum in another order, on the same grid, with the same noise
    np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-5 * np.abs(dense.coef_).max())
    assert other.ledger_ == dense.ledger_


def test_unsorted_sparse_rows_and_single_precision():
    X, y = rows()
    model = sgd(max_iter=15)
    one = clone(model).fit(X.astype(np.float32), y)
    two = clone(model).fit(X.astype(np.float32).astype(np.float64), y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    unsorted = as_layout(X, "csr duplicates")
    kept = unsorted.copy()
    np.testing.assert_allclose(clone(model).fit(unsorted, y).coef_, clone(model).fit(X, y).coef_)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(unsorted, name), getattr(kept, name))


@pytest.mark.full
@every_estimator
def test_the_data_are_not_changed(estimator):
    X, y = rows()
    before = X.copy(), y.copy()
    sgd(estimator, max_iter=5).fit(X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


@every_estimator
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 201}, "batch_size must be greater than 0 and at most the number of rows"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": math.nan}, "batch_size"),
        ({"batch_size": -3}, "batch_size"),
        ({"batch_size": "10"}, "batch_size"),
        ({"batch_size": 1e-300}, "batch_size must be at least 1e-12"),
        ({"batch_size": 2.5, "sampling": "without-replacement"}, "must be a whole number"),
        ({"sampling": "shuffled"}, "sampling"),
        ({"delta": 0.0}, "delta must be greater than 0"),
        ({"mechanism": "output"}, "does not belong to mechanism='output'"),
        ({"epsilon": 1e-9, "delta": 1e-300}, "too small"),
    ],
)
def test_misuse_is_refused(options, message, estimator):
    with pytest.raises(ValueError, match=message):
        sgd(estimator, **options).fit(*rows())


@pytest.mark.sample(1)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("sampling", ["poisson", "without-replacement", "with-replacement"])
@pytest.mark.parametrize("batch_size", [1, 199, 200, None])
def test_extreme_batches_are_paid_for(batch_size, sampling, adjacency):
    X, y = rows()
    model = sgd(batch_size=batch_size, sampling=sampling, adjacency=adjacency, max_iter=4)
    fitted = model.fit(X, y)
    (release,) = fitted.ledger_.releases
    assert release.count == fitted.n_iter_ == 4
    spent, delta = fitted.privacy_spent_
    assert 0.98 * 4.0 < spent <= 4.0
    assert delta == 1e-5
    assert np.isfinite(fitted.coef_).all()


@pytest.mark.full
def test_few_rows():
    for n_rows in (1, 2):
        X, y = rows(n_rows)
        fitted = sgd(classes=(0, 1), batch_size=1, max_iter=3).fit(X, y)
        assert np.isfinite(fitted.coef_).all()
        fitted = sgd(classes=(0, 1), batch_size=0.5, max_iter=3).fit(X, y)
        assert np.isfinite(fitted.coef_).all()


@pytest.mark.full
def test_expected_sizes_need_not_be_whole():
    fitted = sgd(batch_size=7.25, max_iter=5).fit(*rows())
    assert fitted.ledger_.releases[0].noise.sampling.rate == pytest.approx(7.25 / 200, rel=1e-12)


@pytest.mark.sample(1)
@pytest.mark.parametrize("scale", [1e300, 1e-300, 0.0])
def test_extreme_features(scale):
    X, y = rows()
    X[:, 1] = scale * np.sign(X[:, 1])
    fitted = sgd(max_iter=10).fit(X, y)
    assert np.isfinite(fitted.coef_).all()
    assert np.isfinite(sgd(max_iter=10).fit(0 * X + scale, y).coef_).all()


def test_a_repeated_fit_makes_no_second_calibration(monkeypatch):
    model = sgd(epsilon=3.21, max_iter=17)
    first = clone(model).fit(*rows())
    misses = loss_distributions._sampled_epsilon.cache_info().misses

    def refused(*args):
        raise AssertionError("calibrated again")

    monkeypatch.setattr(calibration, "compose_epsilon", refused)
    again = clone(model).fit(*rows(seed=1))
    assert again.ledger_ == first.ledger_
    assert loss_distributions._sampled_epsilon.cache_info().misses == misses


@pytest.mark.sample(1)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("penalty", [np.inf, 0.5])
def test_the_printed_algorithm_is_followed(fit_intercept, adjacency, penalty):
    n_rows, n_features, bound = 12, 3, 2.0
    X, y = rows(n_rows, n_features)
    model = sgd(
        batch_size=1, max_iter=n_rows**2, sampling="with-replacement", coef_bound=bound,
        fit_intercept=fit_intercept, adjacency=adjacency, classes=(0, 1), C=penalty, data_norm=1.0,
    )  # fmt: skip
    with _audit.recorded() as additions:
        fitted = clone(model).fit(X, y)
    assert len(additions) == n_rows**2
    assert all(step.noise.sampling.kind == "with-replacement" for step in additions)
    # Algorithm 1: gradients of the sum of losses, bounded by nL, noise sigma on all p of them
    noise = additions[0].noise
    lipschitz = math.hypot(1.0, 0.1) if fit_intercept else 1.0
    size = n_features + fit_intercept
    sigma = n_rows * 2 * lipschitz / noise.mu
    assert sigma == pytest.approx(n_rows * noise.scale, rel=2e-6)
    theta, diameter = np.zeros(size), 2 * bound
    held = np.append(np.ones(n_features), np.zeros(int(fit_intercept)))
    for t, step in enumerate(additions, start=1):
        gradient = n_rows * step.output + held * theta / penalty
        length = diameter / math.sqrt(t * ((n_rows * lipschitz) ** 2 + size * sigma**2))
        theta = theta - length * gradient
        theta *= min(1.0, bound / np.linalg.norm(theta))
    np.testing.assert_allclose(fitted.coef_[0], theta[:n_features], rtol=0, atol=1e-12)
    intercept = 0.1 * theta[-1] if fit_intercept else 0.0
    np.testing.assert_allclose(fitted.intercept_, intercept, rtol=0, atol=1e-12)


def test_a_released_sum_is_divided_by_the_expected_size(monkeypatch):
    # the same noise for all, and steps of given length: the first one says what was divided
    X, y = rows()
    model = sgd(batch_size=20, max_iter=1, step_size=0.01, clipping_norm=1.0)
    with _audit.recorded() as additions:
        fitted = clone(model).fit(X, y)
    expected = -0.01 * additions[0].output / 20
    np.testing.assert_allclose(fitted.coef_[0], expected[:-1], rtol=1e-12)


@pytest.mark.full
def test_accuracy_without_noise_to_speak_of():
    X, y = rows(2000)
    for sampling in ("poisson", "without-replacement"):
        model = sgd(epsilon=30.0, batch_size=200, max_iter=200, sampling=sampling)
        assert model.fit(X, y).score(X, y) > 0.95


# Progress of a fit: callbacks and messages learn public numbers and nothing else.


MODELS = {
    "sgd": DPLogisticRegression(
        solver=solvers.SGD(batch_size=5), max_iter=7, random_state=0, data_norm=1.0
    ),
    "gd": DPHingeSVM(solver="gd", max_iter=250, random_state=0, data_norm=1.0),
    "output": DPLogisticRegression(mechanism="output", random_state=0, data_norm=1.0),
    "center": linear_model(DPLogisticRegression, preprocess="center", max_iter=30, random_state=0),
    "center-clip": linear_model(
        DPLogisticRegression, epsilon=30.0, preprocess="center-clip", max_iter=30, random_state=0
    ),
}
every_model = pytest.mark.parametrize("name", MODELS)


def progress_rows(seed=0, n_rows=300):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, 3)), np.arange(n_rows) % 2


class Diary:
    """A callback that writes down what it is told."""

    def __init__(self):
        self.calls, self.given = [], []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, **given):
        self._note("begin", estimator, context, given)

    def on_fit_task_end(self, estimator, context, **given):
        self._note("end", estimator, context, given)
        # a wish to stop, which is not heard
        return True

    def _note(self, name, estimator, context, given):
        self.calls.append(name)
        self.given.append({key: value for key, value in given.items() if value is not None})
        # neither is a model that is being fitted
        self.given[-1].update(
            {key: 1 for key in vars(estimator) if key.endswith("_") and "n_features" not in key}
        )
        for value in [*vars(estimator).values(), *vars(context).values()]:
            assert not isinstance(value, np.ndarray)

    def __deepcopy__(self, memo):
        return self


def watched(name, data):
    diary = Diary()
    model = clone(MODELS[name])
    model.set_callbacks(diary)
    return model.fit(*data), diary


@pytest.mark.sample(1)
@every_model
def test_messages_hold_public_numbers_only(name, capsys):
    shown = []
    for seed in range(2):
        X, y = progress_rows(seed)
        clone(MODELS[name]).set_params(verbose=1).fit(X * 10.0**-seed, y)
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    line = r"\[DP\w+\] \d+ releases? from 300 rows, epsilon=[\d.]+, delta=[\de.-]+, replace-one\n"
    assert re.fullmatch(line, shown[0])


def test_a_long_fit_shows_a_bar(monkeypatch, capsys):
    monkeypatch.setattr("skdp._gate._LONG", 0.0)
    clone(MODELS["gd"]).set_params(verbose=1).fit(*progress_rows())
    head, bars = capsys.readouterr().out.split("\n", 1)
    assert "250 releases from 300 rows" in head
    assert bars.endswith("100 % of the releases\n")
    shares = [int(share) for share in re.findall(r"(\d+) % of the releases", bars)]
    assert shares == sorted(shares)
    assert len(shares) >= 100
    assert {len(bar) for bar in bars.strip().split("\r")} <= {len(bars.strip().split("\r")[-1])}


def test_a_fit_to_a_stream_says_when_the_first_pass_begins(capsys):
    X, y = progress_rows()
    chunks = [(X[start : start + 70], y[start : start + 70]) for start in range(0, 300, 70)]
    model = clone(MODELS["gd"]).set_params(verbose=1)
    model.fit(*stream_chunks(chunks))
    first, second = capsys.readouterr().out.splitlines()
    assert first == "[DPHingeSVM] a first pass over the rows: are they usable?"
    model.fit(X, y)
    assert capsys.readouterr().out.splitlines() == [second]
    # before anything is charged, and before a row is seen to be unusable
    X[-1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(*stream_chunks(chunks))
    assert capsys.readouterr().out.splitlines() == [first]


def test_silence_is_the_default(capsys):
    clone(MODELS["sgd"]).fit(*progress_rows())
    assert capsys.readouterr().out == ""


# scikit-learn has callbacks from 1.9 on.
if find_spec("sklearn.callback"):

    @pytest.mark.sample(1)
    @every_model
    def test_callbacks_receive_neither_rows_nor_models(name):
        fitted, diary = watched(name, progress_rows())
        assert fitted.n_iter_ >= 1
        assert diary.calls[0] == "setup"
        assert diary.calls[-1] == "teardown"
        assert all(given == {} for given in diary.given)
        n_tasks = diary.calls.count("begin")
        assert n_tasks == diary.calls.count("end")
        assert n_tasks <= 101
        if name == "sgd":
            assert n_tasks == 1 + 7
        if name == "gd":
            assert n_tasks == 1 + 100

    @pytest.mark.sample(1)
    @every_model
    def test_what_callbacks_see_does_not_depend_on_the_data(name):
        diaries = [watched(name, progress_rows(seed))[1].calls for seed in range(2)]
        assert diaries[0] == diaries[1]

    @pytest.mark.sample(1)
    @every_model
    def test_a_callback_changes_nothing(name):
        with_callback, _ = watched(name, progress_rows())
        without = clone(MODELS[name]).fit(*progress_rows())
        np.testing.assert_array_equal(with_callback.coef_, without.coef_)
        assert with_callback.ledger_ == without.ledger_

    @pytest.mark.filterwarnings("ignore:The estimator NormClipper does not support callbacks")
    @pytest.mark.parametrize("nested", [False, True])
    def test_a_progress_bar(nested, capsys):
        from sklearn.callback import ProgressBar

        model = clone(MODELS["sgd"])
        if nested:
            model = make_pipeline(NormClipper(), model)
        model.set_callbacks(ProgressBar())
        assert model.fit(*progress_rows()).score(*progress_rows()) >= 0
        assert "%" in capsys.readouterr().out
        model.fit(*stream_chunks([progress_rows()]))
        assert "100%" in capsys.readouterr().out

else:

    @every_model
    def test_without_callbacks_nobody_can_set_any(name):
        assert not hasattr(MODELS[name], "set_callbacks")


# Why solver "accelerated-one-pass" does not shuffle: the noise of a step, three ways.


def shuffled(local, n_rows, delta):
    """Return the epsilon of shuffled reports, each of them `local`-private.

    Closed form of Feldman, McMillan and Talwar (2021), Theorem 3.1.
    """
    odds = math.exp(local)
    spread = 8 * math.sqrt(odds * math.log(4 / delta) / n_rows) + 8 * odds / n_rows
    return math.log1p((odds - 1) / (odds + 1) * spread)


def noise_of_a_batch(n_rows, epsilon, n_steps):
    """Return the noise of a batch's mean gradient over the clip: three ways to account."""
    delta = n_rows**-1.1
    mu = gdp_mu(epsilon, delta)
    # half of delta for the mixture, half for the tails of the reports
    most = math.log(n_rows / (16 * math.log(4 / delta)))
    local = brentq(lambda e: shuffled(e, n_rows, delta / 2) - epsilon, 1e-6, most)
    tail = delta / 2 / ((math.exp(epsilon) + 1) * (1 + math.exp(-local) / 2) * n_rows)
    report = 2 / gdp_mu(local, tail)
    return (
        2 * n_steps / n_rows / mu,
        report * math.sqrt(n_steps / n_rows),
        2 * math.sqrt(n_steps) / n_rows / mu,
    )


TABLE = {
    (10_000, 10): (0.100, 1.06, 0.0317),
    (10_000, 50): (0.502, 2.38, 0.071),
    (100_000, 10): (0.0127, 0.165, 0.0040),
    (1_000_000, 10): (0.0015, 0.027, 0.00048),
}


@pytest.mark.parametrize(("n_rows", "n_steps"), TABLE)
def test_shuffling_needs_more_noise_than_disjoint_steps(n_rows, n_steps):
    found = noise_of_a_batch(n_rows, 0.05, n_steps)
    assert found == pytest.approx(TABLE[n_rows, n_steps], rel=0.02)
    assert found[1] > 4 * found[0] > 4 * found[2]


@pytest.mark.parametrize(("n_rows", "most"), [(10**4, 0.085), (10**5, 0.030), (10**6, 0.0104)])
def test_shuffling_is_proved_for_small_epsilon_only(n_rows, most):
    # reports of local epsilon 1/2 at most, as the theorem asks
    assert shuffled(0.5, n_rows, n_rows**-1.1 / 2) == pytest.approx(most, rel=0.01)


# Accelerated stochastic approximation: its error bound, its weights, its plan.


# curvatures, and the minimiser of a quadratic
CURVATURES = np.array([1.0, 0.3, 0.05, 0.01, 1e-3, 1e-4])
BEST = np.array([1.0, -2.0, 1.0, 3.0, 0.5, -1.0])
DISTANCE = float(np.linalg.norm(BEST))


def planned(n_steps, step_size, **options):
    usual = {
        "mu": 1.0, "clip": 1.0, "adaptive": False, "noise": 0.0, "l2": 0.0, "radius": None,
        "intercept": False,
    }  # fmt: skip
    return ApproximationPlan(n_steps=n_steps, step_size=step_size, **{**usual, **options})


def smooth_plan(n_steps, spread, beta=1.0, distance=DISTANCE, **options):
    """Return the plan of Proposition 54 for a given noise, and its bound."""
    T = n_steps
    eta = max(2 * beta, spread / distance * math.sqrt(T * (T + 1) * (2 * T + 1) / 12))
    bound = 4 * beta * distance**2 / (T * (T + 1))
    bound += 2 * distance * spread * math.sqrt((2 * T + 1) / (3 * T * (T + 1)))
    return planned(T, 1 / eta, **options), bound


def quadratic(coef):
    return 0.5 * (coef - BEST) ** 2 @ CURVATURES


def excesses(plan, spread, n_repeats, bias=0.0):
    rng = np.random.default_rng(0)
    sigma = spread / math.sqrt(len(BEST))

    def gradient(coef):
        return CURVATURES * (coef - BEST) + bias + sigma * rng.normal(size=coef.shape)

    if plan.radius is None:
        # all runs at once, side by side
        return quadratic(stochastic_approximation(gradient, (n_repeats, 6), plan))
    runs = [stochastic_approximation(gradient, (6,), plan) for _ in range(n_repeats)]
    return quadratic(np.array(runs))


@pytest.mark.parametrize("n_steps", [1, 2, 5, 20, 80])
@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 10.0])
def test_the_error_bound_holds(n_steps, spread):
    plan, bound = smooth_plan(n_steps, spread)
    found = excesses(plan, spread, 200 if spread else 1)
    assert found.mean() <= bound + 4 * found.std() / math.sqrt(len(found))


def test_the_error_bound_is_near_where_the_noise_is_what_matters():
    # one direction without curvature: nothing but noise moves the point
    plan, bound = smooth_plan(40, 5.0)
    assert 0.02 * bound < excesses(plan, 5.0, 300).mean() <= bound


def test_noise_is_averaged_as_the_theorem_says():
    slow = [excesses(smooth_plan(T, 3.0)[0], 3.0, 300).mean() for T in (10, 40, 160)]
    assert all(before > 1.5 * after for before, after in pairwise(slow))


@pytest.mark.parametrize("n_steps", [5, 50])
def test_a_bias_costs_itself_times_the_diameter(n_steps):
    bias = np.full(6, 0.2)
    plan, bound = smooth_plan(n_steps, 0.5, radius=DISTANCE)
    bound += np.linalg.norm(bias) * 2 * DISTANCE
    assert excesses(plan, 0.5, 40, bias=bias).mean() <= bound


@pytest.mark.parametrize("n_steps", [10, 100])
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_kinks_cost_the_length_of_a_subgradient(n_steps, spread):
    # part (c): |w - best|, of Lipschitz constant 1, with eta for 2 L + S
    rng, T = np.random.default_rng(0), n_steps
    size = 2.0 + spread
    eta = size / DISTANCE * math.sqrt(T * (T + 1) * (2 * T + 1) / 24)

    def gradient(coef):
        gap = coef - BEST
        gap /= np.maximum(np.linalg.norm(gap, axis=1, keepdims=True), 1e-9)
        return gap + spread * rng.normal(size=gap.shape) / math.sqrt(6)

    runs = stochastic_approximation(gradient, (100, 6), planned(T, 1 / eta))
    found = np.linalg.norm(runs - BEST, axis=1).mean()
    assert found <= 2 * DISTANCE * size * math.sqrt((2 * T + 1) / (6 * T * (T + 1)))


def test_full_batches_reach_the_minimiser_faster_than_plain_steps():
    plan, bound = smooth_plan(400, 0.0)
    plain = np.zeros(6)
    for _ in range(400):
        plain = plain - CURVATURES * (plain - BEST)
    accelerated = excesses(plan, 0.0, 1)[0]
    assert accelerated <= bound
    assert accelerated < 0.3 * quadratic(plain)


def test_a_penalty_is_a_proximal_step():
    l2 = 0.5
    plan = planned(300, 0.5, l2=l2)
    coef = stochastic_approximation(lambda w: CURVATURES * (w - BEST), (6,), plan)
    np.testing.assert_allclose(coef, CURVATURES * BEST / (CURVATURES + l2), atol=1e-3)


# -- weights -----------------------------------------------------------------


def printed(best, start, n_steps):
    """Return the average for the printed weights 2 / (t + 2), where every step finds the best."""
    average = start
    for t in range(1, n_steps + 1):
        weight = 2 / (t + 2)
        average = (1 - weight) * average + weight * best
    return average


@pytest.mark.parametrize("n_steps", [1, 3, 10])
def test_nothing_is_left_of_the_start(n_steps):
    # curvature 1, and a first step of length 1: every step ends at the minimiser or near it
    start, visited = BEST + 1e6, []

    def gradient(coef):
        visited.append(coef)
        return coef - BEST

    plan = planned(n_steps, 2.0)
    found = stochastic_approximation(gradient, (6,), plan, start)
    np.testing.assert_array_equal(visited[0], start)
    np.testing.assert_allclose(found, BEST, atol=1e-6 * n_steps)
    # the printed ones keep the share 2 / ((T + 1) (T + 2)) of it
    left = 1e6 * 2 / ((n_steps + 1) * (n_steps + 2))
    np.testing.assert_allclose(printed(BEST, start, n_steps) - BEST, left)


def test_the_average_has_weights_proportional_to_the_number_of_the_step():
    # constant gradients: step t moves by t/2 times the step size
    plan, g = planned(7, 0.1), np.array([1.0, -2.0])
    steps = np.arange(1, 8)
    points = -np.cumsum(steps / 2 * 0.1)
    expected = (steps @ points) / steps.sum() * g
    np.testing.assert_allclose(stochastic_approximation(lambda w: g, (2,), plan), expected)


def test_the_point_stays_in_both_balls():
    rng = np.random.default_rng(0)
    start = np.array([[0.6, 0.0], [0.0, 0.7]])
    plan = planned(50, 5.0, radius=1.0)
    for _ in range(20):
        target = 10 * rng.normal(size=(2, 2))
        visited = []

        def gradient(coef, target=target, visited=visited):
            visited.append(coef)
            return coef - target

        visited.append(stochastic_approximation(gradient, (2, 2), plan, start, 0.3))
        for coef in visited:
            assert np.linalg.norm(coef) <= 1 + 1e-12
            assert np.linalg.norm(coef - start) <= 0.3 + 1e-12


# -- the plan ----------------------------------------------------------------

PROBLEM = {
    "n_rows": 10_000, "n_coefs": 50, "mu": 0.5, "reach": 2, "longest": 1.0, "smoothness": 0.25,
    "distance": 3.0,
}  # fmt: skip


def test_the_number_of_steps_has_the_least_bound():
    chosen = plan_approximation(**PROBLEM)
    others = [plan_approximation(**PROBLEM, n_steps=T) for T in (5, 8, 12, 20, 40, 100, 200)]
    assert all(chosen.error_bound <= other.error_bound for other in others)
    assert 5 < chosen.n_steps < 200
    assert chosen.mu_step == chosen.mu == 0.5


@pytest.mark.parametrize("order", [1.2, 2.0, 4.0])
def test_the_clip_for_a_moment_has_the_least_bound(order):
    problem = {**PROBLEM, "longest": math.inf, "n_steps": 12}
    chosen = plan_approximation(**problem, moments=(order, 2.0))
    for factor in (0.5, 0.8, 1.25, 2.0):
        other = plan_approximation(**problem, moments=(order, 2.0), clip=factor * chosen.clip)
        # the spread of a batch is bounded, not minimised over
        assert chosen.error_bound <= other.error_bound * (1.0 if order >= 2 else 1.05)
    assert chosen.clip > 2.0


def test_the_bound_of_the_plan_is_that_of_the_theorem():
    plan = plan_approximation(**PROBLEM, clip=1.0, n_steps=10)
    sigma = 2 * 1.0 / (1000 * 0.5)
    spread = math.hypot(math.sqrt(50) * sigma, 1 / math.sqrt(1000))
    same, bound = smooth_plan(10, spread, beta=0.25, distance=3.0)
    assert plan.error_bound == pytest.approx(bound, rel=1e-12)
    assert plan.step_size == pytest.approx(same.step_size, rel=1e-12)


@pytest.mark.parametrize("n_rows", [1, 2, 4, 5, 7])
def test_no_step_is_without_a_row(n_rows):
    for n_steps in (None, 1, 100):
        plan = plan_approximation(**{**PROBLEM, "n_rows": n_rows}, n_steps=n_steps)
        assert min(n_rows, n_steps or 5) <= plan.n_steps <= min(n_rows, n_steps or 200)


def test_absurd_numbers_give_a_plan():
    for distance in (1e-150, 1e200):
        for mu in (1e-12, 1e6):
            for moments in (None, (1.001, 1e-200), (50.0, 1e200)):
                given = {**PROBLEM, "distance": distance, "mu": mu, "moments": moments}
                plan = plan_approximation(**given)
                assert 1 <= plan.n_steps <= 200
                assert 0 < plan.step_size < math.inf
                assert 0 < plan.clip <= 1.0
    given = plan_approximation(**PROBLEM, step_size=0.7)
    assert (given.step_size, given.adaptive, given.error_bound) == (0.7, False, math.inf)

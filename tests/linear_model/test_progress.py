# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Progress of a fit: callbacks and messages learn public numbers and nothing else."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import DPHingeSVM, DPLogisticRegression, NormClipper, solvers

MODELS = {
    "sgd": DPLogisticRegression(solver=solvers.SGD(batch_size=5), max_iter=7, random_state=0),
    "gd": DPHingeSVM(solver="gd", max_iter=250, random_state=0),
    "output": DPLogisticRegression(mechanism="output", random_state=0),
    "center": DPLogisticRegression(preprocess="center", max_iter=30, random_state=0),
    "center-clip": DPLogisticRegression(
        epsilon=30.0, preprocess="center-clip", max_iter=30, random_state=0
    ),
}
every_model = pytest.mark.parametrize("name", MODELS)


def rows(seed=0, n_rows=300):
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


@every_model
def test_callbacks_receive_neither_rows_nor_models(name):
    fitted, diary = watched(name, rows())
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


@every_model
def test_what_callbacks_see_does_not_depend_on_the_data(name):
    diaries = [watched(name, rows(seed))[1].calls for seed in range(2)]
    assert diaries[0] == diaries[1]


@every_model
def test_a_callback_changes_nothing(name):
    with_callback, _ = watched(name, rows())
    without = clone(MODELS[name]).fit(*rows())
    np.testing.assert_array_equal(with_callback.coef_, without.coef_)
    assert with_callback.ledger_ == without.ledger_


@every_model
def test_messages_hold_public_numbers_only(name, capsys):
    shown = []
    for seed in range(2):
        X, y = rows(seed)
        clone(MODELS[name]).set_params(verbose=1).fit(X * 10.0**-seed, y)
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    lines = shown[0].splitlines()
    assert re.match(r"\[DP\w+\] \w+Fit\(", lines[0])
    shares = [re.match(r"\[DP\w+\] (\d+) % of \d+ releases$", line) for line in lines[1:]]
    shares = [int(match[1]) for match in shares if match]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert len(lines) <= 12


def test_silence_is_the_default(capsys):
    clone(MODELS["sgd"]).fit(*rows())
    assert capsys.readouterr().out == ""


@pytest.mark.filterwarnings("ignore:The estimator NormClipper does not support callbacks")
@pytest.mark.parametrize("nested", [False, True])
def test_a_progress_bar(nested, capsys):
    from sklearn.callback import ProgressBar

    model = clone(MODELS["sgd"])
    if nested:
        model = make_pipeline(NormClipper(), model)
    model.set_callbacks(ProgressBar())
    assert model.fit(*rows()).score(*rows()) >= 0
    assert "%" in capsys.readouterr().out

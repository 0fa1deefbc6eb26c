# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Fits that were interrupted, and go on from the numbers that they had released."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone

from skdp import (
    DPGridSearchCV,
    DPHingeSVM,
    DPLogisticRegression,
    DPMean,
    DPStandardScaler,
    PrivacyBudget,
)
from skdp.exceptions import BudgetError
from skdp.io import resumable
from skdp.privacy import Curator
from skdp.privacy.books import resume
from tests.streams._ways import chunked

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = (X[:, 0] + RNG.normal(size=300) > 0).astype(int)
OTHER = RNG.normal(size=(300, 3))
MODEL = DPLogisticRegression(classes=[0, 1], data_norm=3.0, solver="preconditioned", max_iter=6)


class Stop(Exception):
    """An interruption."""


def interrupted(monkeypatch, path, model, *data, after=4):
    """Fit until so many releases were made."""
    real = Curator._count

    def count(self):
        real(self)
        if self._n_releases == after:
            raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(Curator, "_count", count)
        with pytest.raises(Stop), resumable(path):
            model.fit(*data)


def reads_of(monkeypatch):
    """Return a list that grows with every reading of rows."""
    reads, real = [], Curator._batch

    def batch(self, charged):
        reads.append(charged)
        return real(self, charged)

    monkeypatch.setattr(Curator, "_batch", batch)
    return reads


@pytest.mark.parametrize(
    "model",
    [
        MODEL,
        DPLogisticRegression(classes=[0, 1], max_iter=3),
        DPHingeSVM(classes=[0, 1], data_norm=3.0, max_iter=5, adjacency="add-remove"),
        clone(MODEL).set_params(solver="sgd"),
        DPStandardScaler(),
    ],
    ids=["default", "without data_norm", "hinge", "batches", "scaler"],
)
@pytest.mark.parametrize("after", [1, 4])
def test_a_seeded_fit_that_goes_on_is_the_one_without_interruption(
    monkeypatch, tmp_path, model, after
):
    model = clone(model).set_params(random_state=3)
    path, data = tmp_path / "releases", (X,) if isinstance(model, DPStandardScaler) else (X, Y)
    expected = clone(model).fit(*data)
    interrupted(monkeypatch, path, clone(model), *data, after=after)
    with resumable(path):
        found = clone(model).fit(*data)
    for name in ("coef_", "intercept_", "scale_"):
        if hasattr(expected, name):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.ledger_ == expected.ledger_
    assert found.privacy_spent_ == expected.privacy_spent_


def test_what_was_released_is_neither_read_nor_drawn_again(monkeypatch, tmp_path):
    path = tmp_path / "releases"
    reads = reads_of(monkeypatch)
    interrupted(monkeypatch, path, clone(MODEL), X, Y)
    assert len(reads) == 4
    before = path.read_bytes()
    with resumable(path):
        found = clone(MODEL).fit(X, Y)
    n_releases = sum(release.count for release in found.ledger_.releases)
    assert len(reads) == n_releases == 7
    # what stood there stands there, and was what the fit was made of
    assert path.read_bytes().startswith(before)
    with resumable(path):
        again = clone(MODEL).fit(*chunked(OTHER, 1 - Y))
    assert len(reads) == 7
    np.testing.assert_array_equal(again.coef_, found.coef_)
    assert again.ledger_ == found.ledger_


def test_every_release_is_on_the_disk_before_anybody_sees_it(monkeypatch, tmp_path):
    path, counts, real = tmp_path / "releases", [], Curator._count

    def count(self):
        # a reader of the file, that has no lock
        monkeypatch.setattr(resume, "_lock", lambda *_: None)
        copy = tmp_path / "copy"
        copy.write_bytes(path.read_bytes())
        counts.append(len(resume.Pages(str(copy))._pages))
        real(self)

    monkeypatch.setattr(Curator, "_count", count)
    with resumable(path):
        clone(MODEL).fit(X, Y)
    assert counts == [2, 3, 4, 5, 6, 7, 8]


def test_what_was_not_finished_cannot_be_read_and_is_forgotten(tmp_path):
    path = tmp_path / "releases"
    with resumable(path):
        clone(MODEL).fit(X, Y)
    data = path.read_bytes()
    pages = resume.Pages(str(path))
    contents = [page.content for page in pages._pages]
    pages.close()
    assert len(contents) == 8
    end = len(data) - resume._COMMIT
    last = end - len(contents[-1]) - resume._HEAD - resume._CHECK
    for stop in (last, last + 5, end - 20, end):
        # cut off, or full of zeros, as after a loss of power
        for cut in (data[:stop], data[:stop] + bytes((stop in (last, end)) * (len(data) - stop))):
            path.write_bytes(cut)
            pages = resume.Pages(str(path))
            assert [page.content for page in pages._pages] == contents[:-1]
            pages.close()
            assert path.read_bytes() == data[:last]
    # no number is in the file as it is: what is before its key says nothing
    assert all(part not in data for part in contents[1:])


def test_damage_is_an_error_and_never_a_new_release(tmp_path):
    path = tmp_path / "releases"
    with resumable(path):
        clone(MODEL).fit(X, Y)
    data = path.read_bytes()
    for place in range(len(resume._TITLE), len(data), 61):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(ValueError, match="damaged"), resumable(path):
            raise AssertionError
        assert path.stat().st_size == len(data)
    path.write_bytes(data[:-3])
    with pytest.raises(ValueError, match="damaged"), resumable(path):
        raise AssertionError
    path.write_text("name,age\n")
    with pytest.raises(ValueError, match="another file"), resumable(path):
        raise AssertionError


@pytest.mark.parametrize(
    "changed",
    [{"epsilon": 2.0}, {"C": 0.5}, {"max_iter": 7}, {"random_state": 1}, {"solver": "gd"}],
    ids=str,
)
def test_another_fit_is_refused_before_a_row_is_read(monkeypatch, tmp_path, changed):
    path = tmp_path / "releases"
    interrupted(monkeypatch, path, clone(MODEL), X, Y)
    reads, budget = reads_of(monkeypatch), PrivacyBudget(10.0, 0.1)
    model = clone(MODEL).set_params(**changed, budget=budget)
    with resumable(path), pytest.raises(ValueError, match="not what comes next"):
        model.fit(X, Y)
    with resumable(path), pytest.raises(ValueError, match="not what comes next"):
        clone(MODEL).fit(X[:299], Y[:299])
    assert not reads
    assert not budget.charges


def test_another_question_is_refused_before_a_row_is_read(monkeypatch, tmp_path):
    # as by a version that steps otherwise
    path = tmp_path / "releases"
    interrupted(monkeypatch, path, clone(MODEL), X, Y)
    reads = reads_of(monkeypatch)
    monkeypatch.setattr("skdp.solvers.preconditioned._MANY", (40, 0.5, 0.7, 0.5))
    with resumable(path), pytest.raises(ValueError, match=r"'gradient of.* not what comes next"):
        clone(MODEL).fit(X, Y)
    assert not reads


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_shared_budget_is_charged_once(monkeypatch, tmp_path, kind):
    where = {"path": tmp_path / "budget"} if kind == "file" else {}
    path = tmp_path / "releases"
    budget = PrivacyBudget(1.0, 1e-6, **where)
    model = clone(MODEL).set_params(budget=budget, random_state=0)
    interrupted(monkeypatch, path, model, X, Y)
    (charge,) = budget.charges
    with resumable(path):
        found = clone(model).fit(X, Y)
    assert budget.charges == (charge,)
    assert found.ledger_.budget_heads == (charge.head,)
    # one that has not paid does so, or the fit is refused
    where = {"path": tmp_path / "other"} if kind == "file" else {}
    other = PrivacyBudget(1.0, 1e-6, **where)
    model.set_params(budget=other)
    if kind == "file":
        with resumable(path), pytest.raises(BudgetError, match="does not hold the charge"):
            model.fit(X, Y)
        assert not other.charges
    else:
        with resumable(path):
            model.fit(X, Y)
        assert len(other.charges) == 1


def test_fits_of_a_block_go_on_in_their_order(monkeypatch, tmp_path):
    path = tmp_path / "releases"
    mean = DPMean(data_norm=3.0)
    interrupted(monkeypatch, path, mean, X, after=1)
    with resumable(path):
        first = clone(mean).fit(X)
        second = clone(MODEL).fit(X, Y)
        plan = MODEL.plan(300, 3)
    assert plan.n_releases == 7
    with resumable(path):
        np.testing.assert_array_equal(clone(mean).fit(X).location_, first.location_)
        np.testing.assert_array_equal(clone(MODEL).fit(X, Y).coef_, second.coef_)
        # the file ends here: what comes is new
        assert (clone(mean).fit(X).location_ != first.location_).any()


def test_what_is_no_noisy_sum_is_refused(tmp_path):
    with resumable(tmp_path / "releases"), pytest.raises(ValueError, match="cannot be written"):
        clone(MODEL).set_params(solver="objective", max_iter=None).fit(X, Y)


def test_one_process_and_one_thread_have_the_file(tmp_path):
    path = tmp_path / "releases"
    mean = DPMean(data_norm=3.0)
    with resumable(path):
        with pytest.raises(ValueError, match="another process"), resumable(path):
            raise AssertionError
        size = path.stat().st_size
        thread = threading.Thread(target=mean.fit, args=(X,))
        thread.start()
        thread.join()
        assert hasattr(mean, "location_")
        assert path.stat().st_size == size
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_disk_that_is_full_ends_the_fit(monkeypatch, tmp_path):
    real, calls = os.write, []

    def write(file, data):
        calls.append(None)
        if len(calls) == 8:
            return real(file, data[:5])
        if len(calls) == 9:
            raise OSError("no space left")
        return real(file, data)

    path = tmp_path / "releases"
    with resumable(path):
        monkeypatch.setattr(os, "write", write)
        with pytest.raises(OSError, match="no space"):
            clone(MODEL).fit(X, Y)
        monkeypatch.setattr(os, "write", real)
        with pytest.raises(ValueError, match="could not be written"):
            clone(MODEL).fit(X, Y)


SCRIPT = """
import sys, os, signal, numpy as np, warnings
warnings.simplefilter("ignore")
from skdp import DPLogisticRegression, PrivacyBudget
from skdp.io import resumable, stream_chunks
from skdp.privacy.kernel.curator import Curator
real = Curator._count
def count(self):
    real(self)
    if self._n_releases == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
Curator._count = count
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3)); y = (X[:, 0] > 0).astype(int)
budget = PrivacyBudget(1.0, 1e-6, path=sys.argv[1] + ".budget")
model = DPLogisticRegression(
    classes=[0, 1], data_norm=3.0, max_iter=6, random_state=0, budget=budget
)
with resumable(sys.argv[1]):
    model.fit(*stream_chunks([(X[:100], y[:100]), (X[100:], y[100:])]))
print(model.coef_.tobytes().hex(), model.privacy_spent_, len(budget.charges))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="no SIGKILL")
def test_a_process_that_is_killed_is_continued_by_another(tmp_path):
    def run(path, after):
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / path), str(after)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    whole = run("whole", 99)
    assert whole.returncode == 0, whole.stderr
    for after in (2, 5):
        assert run("killed", after).returncode == -signal.SIGKILL
    found = run("killed", 99)
    assert found.stdout == whole.stdout
    assert found.stdout.split()[-1] == "1"


def test_a_search_is_refused_before_it_charges(tmp_path):
    budget, path = PrivacyBudget(9.0, 1e-3), tmp_path / "releases"
    search = DPGridSearchCV(clone(MODEL), {"C": [1.0, 2.0]}, budget=budget)
    with resumable(path), pytest.raises(ValueError, match="runs that it does not release"):
        search.fit(X, Y)
    assert budget.charges == ()
    assert path.read_bytes().count(b"\n") == 1

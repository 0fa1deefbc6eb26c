# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The scripts beside the library start, and the accuracy page is written from what is stored."""

import csv
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from scipy import sparse

import skdp

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
ONE_EPSILON = 1.0


@pytest.fixture
def benchmark_module(monkeypatch):
    """Return a function that imports a module of the benchmarks by its name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_every_script_is_in_the_table_of_commands():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    table = [line for line in readme.splitlines() if line.startswith("| `python ")]
    for script in FOLDER.glob("[a-z]*.py"):
        known = (f"benchmarks/{script.name}`", f"`{script.name}`")
        assert any(name in line for name in known for line in table), script.name


def test_no_script_asks_for_an_environment_of_a_peer():
    for script in FOLDER.glob("*.py"):
        text = script.read_text(encoding="utf-8")
        assert "-m venv" not in text, script.name
        assert "peer/bin" not in text, script.name


def test_an_environment_is_made_once(tmp_path, monkeypatch, benchmark_module):
    environments = benchmark_module("_environments")
    made, installed = [], []
    monkeypatch.setattr(
        environments.venv,
        "create",
        lambda place, **_: (place.mkdir(parents=True), made.append(place)),
    )
    monkeypatch.setattr(
        environments.subprocess, "run", lambda command, **_: installed.append(command)
    )
    for _ in range(2):
        python = environments.interpreter("diffprivlib", tmp_path)
    assert python == tmp_path / "diffprivlib" / "bin" / "python"
    assert made == [tmp_path / "diffprivlib"]
    assert installed[0][-2:] == list(environments.PACKAGES["diffprivlib"])
    assert len(installed) == 1


def test_an_environment_with_other_pins_is_made_anew(tmp_path, monkeypatch, benchmark_module):
    environments = benchmark_module("_environments")
    made = []
    monkeypatch.setattr(
        environments.venv, "create",
        lambda place, **_: (place.mkdir(parents=True, exist_ok=True), made.append(place)),
    )  # fmt: skip
    monkeypatch.setattr(environments.subprocess, "run", lambda command, **_: None)
    environments.interpreter("opacus", tmp_path)
    monkeypatch.setitem(environments.PACKAGES, "opacus", ("opacus==0",))
    environments.interpreter("opacus", tmp_path)
    assert len(made) == 2


def test_what_is_stored_is_not_measured_again(tmp_path, benchmark_module):
    store = benchmark_module("_accuracy_store")
    store.Store(tmp_path / "a.jsonl").add("data", "method", 0.5, 100, accuracy=1.0)
    again = store.Store(tmp_path / "a.jsonl")
    assert again.get("data", "method", 0.5, 100)["accuracy"] == 1.0
    assert again.get("data", "method", 0.5, 101) is None
    assert len(store.read(tmp_path / "a.jsonl")) == 1


@pytest.mark.full
def test_the_accuracy_page_holds_ours_and_peers(tmp_path, benchmark_module):
    data = benchmark_module("_accuracy_data")
    store = benchmark_module("_accuracy_store").Store
    measure = benchmark_module("_accuracy_methods").measure
    ours = tmp_path / "skdp.jsonl"
    measure(store(ours), ["breast_cancer"], most_splits=2, epsilons=(ONE_EPSILON,))
    size = ours.stat().st_size
    measure(store(ours), ["breast_cancer"], most_splits=2, epsilons=(ONE_EPSILON,))
    assert ours.stat().st_size == size
    peer = store(tmp_path / "opacus.jsonl")
    peer.add("versions", versions={"opacus": "0"})
    for seed in data.SEEDS["breast_cancer"][:2]:
        peer.add("breast_cancer", "baseline", seed, seconds=1.0)
        peer.add("breast_cancer", "zero-out", "Opacus", 1.0, seed, accuracy=101.0, seconds=2.0)
    page = benchmark_module("_accuracy_page").page(tmp_path)
    assert "non-private: 9" in page
    assert "untuned, replace-one" in page
    assert page.count("``DPLogisticRegression()``") >= 3
    assert "Of 2 cells (data, adjacency, ε) ``DPLogisticRegression(data_norm=1)`` is at or" in page
    assert "Cells in which log-loss is above the base rate's beyond noise: in " in page
    picture = tmp_path / "calibration.png"
    benchmark_module("_accuracy_page").save_picture(tmp_path, picture)
    assert picture.stat().st_size > 10_000
    assert "**101.0 ± 0.0**" in page
    assert "2 s (2×)" in page
    assert "* Opacus: breast_cancer, ε = 1 (" in page
    assert "opacus 0" in page


def test_peers_read_the_rows_that_ours_are_fitted_to(tmp_path, benchmark_module):
    data = benchmark_module("_accuracy_data")
    peers = benchmark_module("_accuracy_peers")
    data.export("synthetic", 100, tmp_path)
    for theirs, ours in zip(
        peers.load(tmp_path, "synthetic", 100), data.split("synthetic", 100), strict=True
    ):
        assert (theirs == ours).all()


@pytest.mark.parametrize(
    "script",
    ["accuracy", "mechanisms", "median", "regression", "rivals", "sgd_speed", "local_mean"]
    + ["audit_peers", "careless"],
)
def test_a_comparison_with_peers_takes_a_folder_of_environments(script):
    text = (FOLDER / f"{script}.py").read_text(encoding="utf-8")
    assert "add_argument(parser)" in text or "run_page(__doc__" in text


def test_decisions_about_a_table_are_counted(benchmark_module):
    careless = benchmark_module("careless")
    table = careless.pd.DataFrame(
        {"age": [30.0, np.nan, 50.0], "job": ["a", "b", "a"], "n": [1, 2, 3]}
    )
    # ours: a kind of model and the classes; theirs: a kind, two bounds for two columns, a list,
    # a fill-in and a norm
    assert careless.decisions(table, False, []) == (2, 1 + 4 + 1 + 1 + 1)
    # a number has no classes; its two bounds are in the place of the norm
    assert careless.decisions(table, True, ["id"]) == (2, 1 + 4 + 1 + 1 + 2 + 1)
    raw, ready = careless.matrices(table)
    assert raw.tolist()[1] == [0, 0, 1, 2]
    assert np.allclose(ready * np.sqrt(3), [[-1, 1, 0, -1], [0, 0, 1, 0], [1, 1, 0, 1]])


@pytest.mark.full
def test_the_command_of_the_accuracy_page_starts():
    # with the library that is tested, wherever another one is installed
    library = str(Path(skdp.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", FOLDER / "accuracy.py", "--help"],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": library},
    )  # fmt: skip
    assert "--environments" in done.stdout


def test_a_library_measures_what_a_file_of_tasks_asks_for(tmp_path, monkeypatch, benchmark_module):
    data = benchmark_module("_accuracy_data")
    peers = benchmark_module("_accuracy_peers")
    from sklearn.linear_model import LogisticRegression

    def rows(name):
        grids = {"fixed": [{}], "searched": [{"C": 1e-9}, {"C": 100.0}]}
        return "pure", lambda epsilon, delta, y, **given: LogisticRegression(**given), grids

    monkeypatch.setitem(peers.LIBRARIES, "opacus", rows)
    for seed in (0, 1, 100):
        data.export("breast_cancer", seed, tmp_path)
    task = {"seeds": [100], "tuning": [0, 1], "C": 100.0}
    tasks = {"data": {"breast_cancer": task}, "epsilons": [ONE_EPSILON], "delta": 1e-5}
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    command = ["peers", "opacus", tmp_path / "tasks.json", tmp_path, tmp_path / "out.jsonl"]
    monkeypatch.setattr(sys, "argv", [str(part) for part in command])
    peers.main()
    found = benchmark_module("_accuracy_store").Store(tmp_path / "out.jsonl")
    assert found.get("breast_cancer", "setting", "searched", ONE_EPSILON)["setting"]["C"] == 100.0
    assert found.get("breast_cancer", "pure", "searched", ONE_EPSILON, 100)["accuracy"] > 90.0


def _linear(n_rows):
    rng = np.random.default_rng(0)
    X, coef = rng.uniform(-1, 1, (n_rows, 3)), np.array([1.0, -2.0, 0.5])
    return X, X @ coef + 0.3 + 0.1 * rng.normal(size=n_rows), coef, rng


@pytest.mark.parametrize("name", ["adassp", "hessian_mixing"])
def test_a_rival_with_bounds_finds_the_coefficients(name, benchmark_module):
    method = getattr(benchmark_module("_regression_rivals"), name)
    X, y, coef, rng = _linear(20_000)
    bounds = {"row_bound": 3**0.5, "target_bound": 4.0}
    found, intercept = method(X, y, 20.0, 1e-6, **bounds, rng=rng)
    assert np.abs(found - coef).max() < 0.05
    assert abs(intercept - 0.3) < 0.05
    # a clip at half of the targets is seen
    found, _ = method(X, y, 20.0, 1e-6, row_bound=3**0.5, target_bound=0.5, rng=rng)
    assert np.abs(found - coef).max() > 0.2


def test_deep_models_are_taken_only_where_they_agree(benchmark_module):
    tukey = benchmark_module("_regression_rivals").tukey
    X, y, coef, rng = _linear(4_000)
    found, intercept = tukey(X, y, 4.0, 1e-6, n_models=400, rng=rng)
    assert np.abs(found - coef).max() < 0.05
    assert abs(intercept - 0.3) < 0.05
    assert tukey(X, y, 4.0, 1e-6, n_models=20, rng=rng) is None  # too few to hide one
    assert tukey(X, y, 4.0, 1e-6, n_models=2_000, rng=rng) is None  # too few rows in each


def test_the_sketches_of_hessian_mixing_are_priced_by_their_divergence(benchmark_module):
    rivals = benchmark_module("_regression_rivals")

    def renyi(alpha, mine, other):  # of normal laws with these variances
        mixed = alpha * other + (1 - alpha) * mine
        return 0.5 * np.log(other / mine) + np.log(other / mixed) / (2 * (alpha - 1))

    gamma, k, steps, delta = 50.0, 40, 3, 1e-6
    alpha = np.linspace(1.001, gamma / 2, 20_000)
    sketches = renyi(alpha, gamma + 1, gamma) + renyi(alpha, gamma, gamma + 1)
    rest = alpha / 2 * k / gamma**2 * (1 + steps + 1)
    to_delta = np.log1p(-1 / alpha) - np.log(delta * alpha) / (alpha - 1)
    wanted = np.min(k * steps * sketches + rest + to_delta)
    assert rivals._mixing_epsilon(gamma, k, steps, delta) == pytest.approx(wanted, rel=1e-3)


@pytest.mark.full
def test_the_regression_page_says_where_others_lead(tmp_path, monkeypatch, benchmark_module):
    page = benchmark_module("regression")
    monkeypatch.setattr(page, "NAMES", ["made"])
    monkeypatch.setattr(page, "EPSILONS", (ONE_EPSILON, 4.0))
    monkeypatch.setitem(page.REGRESSION, "made", ("package", "item", "y", (), "made up"))
    X, y, *_ = _linear(300)
    monkeypatch.setattr(page, "regression", lambda name: (X, y))
    store = benchmark_module("_accuracy_store").Store
    page.measure(tmp_path, None, ["made"], 2, page.EPSILONS)
    size = (tmp_path / "skdp.jsonl").stat().st_size
    page.measure(tmp_path, None, ["made"], 2, page.EPSILONS)
    assert (tmp_path / "skdp.jsonl").stat().st_size == size
    peer = store(tmp_path / "diffprivlib.jsonl")
    for epsilon in page.EPSILONS:
        for seed in (100, 101):
            score = 2.0 if epsilon == ONE_EPSILON else -5.0
            peer.add("made", "diffprivlib †", epsilon, seed, score=score, seconds=1.0)
    text = page.page(tmp_path)
    assert "* made, ε = 1, ``DPLpRegressor()`` " in text
    assert "diffprivlib † 2.000 ± 0.000" in text
    assert "**2.000 ± 0.000**" in text
    assert "below -1" in text
    # the others were run, and may lead there
    assert not re.search(r"\* made, ε = 4[^*]*diffprivlib", text)


def test_the_page_of_kernels_counts_where_a_choice_is_behind(
    tmp_path, monkeypatch, benchmark_module
):
    page = benchmark_module("kernels")
    monkeypatch.setattr(page, "CLASSES", ("straight", "rings"))
    monkeypatch.setattr(page, "TARGETS", ("product",))
    monkeypatch.setattr(page, "EPSILONS", (1.0,))
    store = benchmark_module("_accuracy_store").Store(tmp_path / "skdp.jsonl")
    accuracy = {
        "straight": {"linear": [90, 91, 92], "additive": [80] * 3, "auto": [88, 89.1, 89.9]},
        "rings": {"linear": [70] * 3, "additive": [90] * 3, "auto": [92, 91, 90]},
    }
    for seed in (2, 1, 0):
        for name, cells in accuracy.items():
            for kernel in (*page.KERNELS, "auto"):
                share = {"accuracy": cells.get(kernel, [50] * 3)[seed], "log_loss": 0.5}
                store.add("classes", name, kernel, 1.0, seed, kernel="linear", **share)
        for kernel in (*page.KERNELS, "ridge", "auto"):
            store.add("targets", "product", kernel, 1.0, seed, R2=0.5, kernel="rbf")
        for label in page.PLAIN:
            store.add("targets", "product", label, None, seed, R2=0.9, kernel=None)
    text = page.page(tmp_path)
    assert max(map(len, text.splitlines())) <= 100
    text = " ".join(text.split())
    assert "by more than a point in 1 of 2 cells, and beyond two standard errors of that" in text
    assert "in 1: straight at 1, 2 ± 0.058. In 1 it is ahead." in text
    assert "-2.0 ± 0.1" in text
    assert "by more than 0.02 in 0 of 1 cells" in text
    assert "rbf 3" in text


@pytest.mark.full
@pytest.mark.covering
@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("bound", [False, True])
def test_newton_steps_with_two_noises_find_the_coefficients(bound, clip, benchmark_module):
    newton = benchmark_module("_rivals_methods").double_noise
    rng = np.random.default_rng(0)
    X, coef = rng.uniform(-1, 1, (20_000, 60)) / 60**0.5, 3 * rng.normal(size=60)
    y = (rng.random(20_000) < 1 / (1 + np.exp(-X @ coef))).astype(int)

    def likeness(epsilon):
        found = newton(X, y, epsilon, 1e-5, bound=bound, clip=clip, rng=rng)
        return coef @ found / np.linalg.norm(coef) / np.linalg.norm(found)

    assert likeness(100.0) > 0.95
    assert likeness(1e-3) < 0.6


def test_vertices_of_sparse_frank_wolfe_have_the_law_of_the_exponential_mechanism(benchmark_module):
    walk = benchmark_module("_rivals_methods").sparse_frank_wolfe
    X = sparse.csr_array(np.array([[1.0, 0.0, 1.0]] * 30 + [[0.0, 1.0, 1.0]] * 10))
    y, rng, epsilon, delta = np.repeat([1, 0], [30, 10]), np.random.default_rng(0), 2.0, 0.1
    given = {"bound": 3.0, "steps": 1, "rng": rng}
    found = [tuple(walk(X, y, epsilon, delta, **given)) for _ in range(1500)]
    # the first step goes two thirds of the way; the sum of a gradient moves by 2
    slope = X.T @ (0.5 - y)
    price = epsilon / (8 * np.log(1 / delta)) ** 0.5
    weights = np.exp(price / (2 * 2) * np.concatenate([-slope, slope]))
    vertices = [tuple(row) for row in 2 * np.vstack([np.eye(3), -np.eye(3)])]
    for vertex, share in zip(vertices, weights / weights.sum(), strict=True):
        assert found.count(vertex) / 1500 == pytest.approx(share, abs=4 * (share / 1500) ** 0.5)


def test_steps_of_sparse_frank_wolfe_stay_in_the_ball_and_go_downhill(benchmark_module):
    walk = benchmark_module("_rivals_methods").sparse_frank_wolfe
    rng = np.random.default_rng(0)
    X = sparse.csr_array((rng.random((2000, 30)) < 0.2).astype(float))
    y = X[:, [0]].toarray().ravel().astype(int)
    coef = walk(X, y, 1000.0, 1e-5, bound=4.0, steps=40, rng=rng)
    assert np.abs(coef).sum() <= 4.0 * (1 + 1e-12)
    assert np.mean((X @ coef > coef[0] / 2) == y) > 0.95
    assert abs(coef[0]) > 2 * np.abs(coef[1:]).max()


def test_codes_and_rows_of_a_table_rest_on_what_is_public(benchmark_module):
    tables = benchmark_module("_rivals_tables")
    values = [np.array([-5.0, 0.0, 50.0, 100.0]), np.array([0.0, 1.0, 2.0, 2.0]), list("abba")]
    table = tables.Table(list("xyz"), values, [(0, 100), (0, 2), ["a", "b", "c"]], np.zeros(4))
    assert table.sizes.tolist() == [tables.BINS, 3, 3]
    assert table.codes.T.tolist() == [[0, 0, 16, 31], [0, 1, 2, 2], [0, 1, 1, 0]]
    wanted = np.array([[-1, -1, 1, 0, 0], [-1, 0, 0, 1, 0], [0, 1, 0, 1, 0], [1, 1, 1, 0, 0]])
    np.testing.assert_allclose(table.rows, wanted / 3**0.5)
    assert (np.linalg.norm(table.rows, axis=1) <= 1).all()


def test_the_page_of_rivals_says_where_they_lead(tmp_path, benchmark_module):
    page, store = benchmark_module("_rivals_page"), benchmark_module("_accuracy_store").Store
    ours, peer = store(tmp_path / "skdp.jsonl"), store(tmp_path / "dpmm.jsonl")
    values = {"accuracy": 80.0, "log_loss": 0.4, "seconds": 1.0}
    numbers, hot = page.CODINGS
    for seed, auc in ((100, 0.8), (101, 0.2), (102, 0.5)):
        ours.add(page.OURS, "income", numbers, 1.0, seed, auc=auc, **values)
        ours.add(page.NEWTON, "income", hot, 1.0, seed, auc=auc - 0.01 + seed / 1e6, **values)
    text = page.page(tmp_path)
    assert "In none of 1 cells" in text
    assert "did not finish" in text
    peer.add(page.SSP, "income", numbers, 1.0, 100, auc=0.9, **values)
    text = page.page(tmp_path)
    assert "In 1 of 1 cells" in text
    assert "is above that of ours, in 0 beyond noise" in text.replace("\n", " ")
    lead = "* AUC, income, bins as numbers, ε = 1: DD-SSP 0.900, ours on the same splits 0.800"
    assert text.replace("\n ", "").count(lead) == 2
    assert "* Accuracy" not in text
    assert "did not finish" not in text
    for seed, auc in ((100, 0.85), (101, 0.25), (102, 0.551)):
        ours.add(page.ADDITIVE, "income", page.USUAL, 1.0, seed, auc=auc, **values)
        peer.add(page.AIM, "income", hot, 1.0, seed, auc=auc + 0.5 + seed / 1e6, **values)
    text = page.page(tmp_path).replace("\n ", "")
    assert "AIM + logistic regression 1.050, ours on the same splits 0.550 (" in text
    assert "; beyond noise." in text


@pytest.mark.parametrize("coding", ["bins as numbers", "bins one-hot"])
def test_moments_of_marginals_are_those_of_the_rows(coding, benchmark_module):
    peer = benchmark_module("_rivals_peer")
    rng, sizes, is_number = np.random.default_rng(0), [5, 3, 2], [True, False, False]
    codes = np.stack([rng.integers(size, size=400) for size in (*sizes, 2)], axis=1)
    pairs = [(i, j) for j in range(4) for i in range(j)]
    levels = (*sizes, 2)
    tables = [
        np.histogram2d(codes[:, i], codes[:, j], bins=(range(levels[i] + 1), range(levels[j] + 1)))
        for i, j in pairs
    ]
    found = peer.from_moments(pairs, [t[0] for t in tables], sizes, is_number, coding, ridge=1e-9)
    X = peer.design(codes[:, :-1], sizes, is_number, coding)
    t = 6 * np.cos(np.pi * (np.arange(3) + 0.5) / 3)  # where the quadratic meets the loss
    curve, slope, _ = np.polyfit(t, np.log1p(np.exp(-t)), 2)
    targets = (2 * codes[:, -1] - 1) * -slope / (2 * curve)
    wanted = X @ np.linalg.lstsq(X, targets, rcond=None)[0]
    assert X @ found.coef == pytest.approx(wanted, abs=1e-4)


@pytest.fixture(scope="module")
def one_command():
    """Return the module that ``python benchmarks`` runs."""
    spec = importlib.util.spec_from_file_location("one_command", FOLDER / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(FOLDER), *sys.path])
        before = set(sys.modules)
        spec.loader.exec_module(module)
        yield module
        for name in set(sys.modules) - before:
            if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def _lines(version, **figures):
    return [
        {"version": version, "date": "", "figure": name, "better": better, "value": str(value)}
        | {"error": "0.1"}
        for name, (better, value) in figures.items()
    ]


def test_a_figure_that_got_worse_is_named(tmp_path, one_command):
    file = tmp_path / "history.csv"
    first = _lines("1", accuracy=("higher", 80.0), seconds=("lower", 2.0))
    assert one_command.kept(first, file) == []
    worse = _lines("2", accuracy=("higher", 79.0), seconds=("lower", 1.0), new=("lower", 9.0))
    before = one_command.kept(worse, file)
    assert before == first
    (sentence,) = one_command.regressions(worse, before)
    assert sentence == "accuracy: 79.0 ± 0.1, and in version 1 80.0 ± 0.1."
    # within noise, and in the place of what that version had before
    again = _lines("2", accuracy=("higher", 79.7), seconds=("lower", 2.3))
    assert one_command.kept(again, file) == first
    assert not list(one_command.regressions(again, first))
    with file.open() as stored:
        assert [line["value"] for line in csv.DictReader(stored)] == ["80.0", "2.0", "79.7", "2.3"]
    # of two earlier versions the last one counts, and no earlier one excuses a broken claim
    third = _lines("3", share=("at most 1", 1.1))
    assert one_command.kept(third, file) == again
    assert next(one_command.regressions(third, third)).startswith("share: 1.1 is more than")


def test_a_page_goes_on_where_it_was_and_forgets_another_version(
    tmp_path, monkeypatch, one_command
):
    folder = tmp_path / "results" / "page"
    ours, peers = folder / "skdp.jsonl", folder / "peers.jsonl"
    page = {"page": ("script.py", "--results", folder)}
    monkeypatch.setattr(one_command, "RESULTS", folder.parent)
    monkeypatch.setattr(one_command, "PAGES", page)
    calls = []

    def run(command, check):
        folder.mkdir(exist_ok=True)
        calls.append([file.exists() for file in (ours, peers)])
        ours.touch(), peers.touch()
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(one_command.subprocess, "run", run)
    with pytest.raises(KeyboardInterrupt):
        one_command.write_pages(page, False)
    one_command.write_pages(page, False)
    one_command.write_pages(page, False)
    assert calls == [[False, False], [True, True]]
    one_command.write_pages(page, True)
    monkeypatch.setattr(one_command, "__version__", "another")
    one_command.write_pages(page, False)
    assert calls[2:] == [[False, True], [False, True]]


@pytest.mark.full
def test_audits_that_have_passed_are_kept(tmp_path, monkeypatch, benchmark_module):
    audits, calls = benchmark_module("audit_all"), []

    def audited(estimator, pair, seconds):
        calls.append(pair)
        # the second one fails at first
        return f"row of {pair}", int(len(calls) == 2)

    pairs = [(skdp.DPMean(), name) for name in (audits.LABEL, audits.OPPOSITE)]
    monkeypatch.setattr(audits, "cases", lambda: pairs)
    monkeypatch.setattr(audits, "mutants", lambda: [])
    monkeypatch.setattr(audits, "black_box", audited)
    for name in ("traces", "exact_checks"):
        part = lambda: ("a part. ", 0)  # noqa: E731
        part.__name__ = name
        monkeypatch.setattr(audits, name, part)
    out = tmp_path / "page.rst"
    command = ["audit_all", "--results", str(tmp_path / "kept.jsonl"), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", command)
    for failed in (True, False, False):
        with pytest.raises(SystemExit) as end:
            audits.main()
        assert end.value.code is failed
    assert calls == [audits.LABEL, audits.OPPOSITE, audits.OPPOSITE]
    assert "a part. a part. " in out.read_text()
    assert f"row of {audits.LABEL}row of {audits.OPPOSITE}" in out.read_text()


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_every_line_of_the_page_of_audits_can_be_made(benchmark_module):
    audits = benchmark_module("audit_all")
    for estimator, pair in [*audits.cases(), *audits.mutants()]:
        for data in audits.data_of(estimator, pair):
            type(estimator)(**estimator.get_params(deep=False)).fit(*data)
    # workers that an earlier test has left do not know where benchmarks are
    get_reusable_executor().shutdown()
    # the wrapper of clients' reports claims what it spends
    for estimator, pair in audits.local_cases():
        result = audits.measured(estimator, *audits.data_of(estimator, pair), 40)
        assert "not contradicted" in audits.row(estimator, result)


def test_the_history_has_this_version_and_every_command_its_script(one_command):
    with (FOLDER / "history.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert tuple(lines[0]) == one_command.FIELDS
    assert skdp.__version__ in {line["version"] for line in lines}
    for script, *_ in one_command.PAGES.values():
        assert (FOLDER / script).is_file()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("kind", "curved"),
    [("HINGE", False), ("HINGE", True), ("LOGISTIC", False), ("LOGISTIC", True)]
    + [("ABSOLUTE", False), ("SQUARES", True)],
)
def test_no_coefficients_are_better_than_those_that_excesses_count_from(
    kind, curved, benchmark_module, monkeypatch
):
    rates = benchmark_module("private_erm_rates")
    subject, rng = getattr(rates, kind), np.random.default_rng(0)
    given = {}

    def excess(coef):
        def fitted(self, X, budget, **problem):
            given.update(problem, rows=X)
            return coef

        monkeypatch.setattr(rates.Subject, "fitted", fitted)
        if curved:
            return subject.strongly_convex(40, 3, rates.Budget(1.0))
        return subject.convex(40, 3, rates.Budget(1.0), 5.5)

    best = np.array([rates._LEAST[subject.kind] if curved else 1.0, 0.0, 0.0])
    assert excess(best) == pytest.approx(0, abs=1e-12)
    for step in rng.normal(size=(50, 3)) * 0.3:
        near = best + step
        near = near if curved else near / max(1.0, np.linalg.norm(near))
        assert excess(near) > -1e-12
    assert excess(-best) > 1
    assert (np.linalg.norm(given["rows"], axis=1) <= 1).all()
    total = given["rows"].sum(axis=0)
    assert total == pytest.approx([20 if curved else 5.5, 0, 0])

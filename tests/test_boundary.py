# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The boundaries that make a privacy claim auditable, read off the source code."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import skdp
from tests._audit import Taint

ROOT = Path(skdp.__file__).parent
FILES = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text()) for name, path in FILES.items()}
every_file = pytest.mark.parametrize("name", FILES)

RANDOM_MODULES = {"random", "secrets", "uuid", "numpy.random", "scipy.stats"}
RANDOM_NAMES = {
    "urandom", "getrandom", "SystemRandom", "secrets", "random", "default_rng", "RandomState",
    "BitGenerator", "Philox", "PCG64", "PCG64DXSM", "SFC64", "MT19937", "SeedSequence",
    "check_random_state", "rvs", "shuffle", "permutation", "standard_normal", "random_raw",
}  # fmt: skip
LAZY = {"cvxpy", "matplotlib", "pandas", "polars", "dp_accounting", "dask", "distributed"}
# A module may import from its own package and from packages of a lower rank.
RANKS = {
    "exceptions": 0, "privacy": 1, "_typing": 1.5, "_losses": 2, "_log_concave": 2, "_recovery": 2,
    "_rows": 2, "_minimize": 3, "_quantiles": 3, "_classification": 3, "_sklearn": 3, "_gate": 4,
    "io": 4,
    "solvers": 4, "location": 5, "papers": 6, "preprocessing": 6, "local": 6, "linear_model": 7,
    "federated": 8, "model_selection": 9, "inspection": 9, "audit": 9, "__init__": 10,
}  # fmt: skip


def imports(tree):
    """Yield (module, name or None, whether it happens inside a function)."""
    inside = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, None, node in inside
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            for alias in node.names:
                yield node.module, alias.name, node in inside


def mentioned(tree):
    """Return all names and attributes that occur in code."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return names | {name for _, name, _ in imports(tree) if name}


def calls(tree):
    """Yield the last name of everything that is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield getattr(node.func, "attr", getattr(node.func, "id", None))


def package_of(module):
    return module.split(".")[0]


def makes_randomness(tree):
    modules = {module for module, _, _ in imports(tree)}
    modules |= {f"{module}.{name}" for module, name, _ in imports(tree)}
    return bool(modules & RANDOM_MODULES or mentioned(tree) & RANDOM_NAMES)


def test_one_module_makes_randomness():
    assert [name for name, tree in TREES.items() if makes_randomness(tree)] == [
        "privacy/kernel/bits.py"
    ]


@pytest.mark.parametrize(
    "source",
    [
        "import random", "import secrets as s", "from numpy import random", "import numpy.random",
        "from os import urandom", "noise = np.random.default_rng().normal()", "x = os.urandom(8)",
        "from sklearn.utils import check_random_state", "norm.rvs(size=3)",
    ],
)  # fmt: skip
def test_randomness_is_recognised(source):
    assert makes_randomness(ast.parse(source))


def private_names(tree):
    """Return scikit-learn's private names that are imported or reached as attributes."""
    found = [
        (module, name)
        for module, name, _ in imports(tree)
        if package_of(module) == "sklearn"
        and any(part.startswith("_") for part in f"{module}.{name or ''}".split(".") if part)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            base = ast.unparse(node.value)
            if package_of(base) == "sklearn":
                found.append((base, node.attr))
    return found


def test_one_module_borrows_private_names_of_scikit_learn():
    assert [name for name, tree in TREES.items() if private_names(tree)] == ["_sklearn.py"]


@every_file
def test_dependencies_run_one_way(name):
    own = package_of(name.replace("/", ".").removesuffix(".py"))
    for module, imported, _ in imports(TREES[name]):
        if package_of(module) == "skdp":
            other = (module.split(".") + [imported or "__init__"])[1]
            other = other if other in RANKS else "__init__"
            assert other == own or RANKS[other] < RANKS[own], f"{name} imports {module}"


@every_file
def test_heavy_packages_are_imported_inside_functions(name):
    for module, _, inside in imports(TREES[name]):
        assert inside or package_of(module) not in LAZY


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("privacy/")])
def test_the_audit_folder_depends_on_little(name):
    allowed = sys.stdlib_module_names | {"numpy", "scipy"}
    # pandas only shows a ledger as a table
    lazily = allowed | {"dp_accounting", "pandas"}
    for module, _, inside in imports(TREES[name]):
        if package_of(module) == "skdp":
            assert module.split(".")[1] in {"privacy", "exceptions"}
        else:
            assert package_of(module) in (lazily if inside else allowed)


def test_the_audit_folder_is_short():
    audited = [path for name, path in FILES.items() if name.startswith("privacy/")]
    assert sum(len(path.read_text().splitlines()) for path in audited) < 6000


GATED = [
    "add_noise", "evaluate", "draw", "minimise", "make_bits", "Variates", "LazySums", "touched",
    "evaluate_at",
]  # fmt: skip


@pytest.mark.parametrize("function", GATED)
def test_only_the_curator_calls(function):
    callers = [name for name, tree in TREES.items() if function in calls(tree)]
    # a search draws its own secrets: the split, the number of runs, and which they are
    others = ["privacy/laws/search.py"] if function == "make_bits" else []
    assert callers == ["privacy/kernel/curator.py", *others]


def spoken(tree):
    """Return all names, attributes, and strings that could be attributes."""
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return mentioned(tree) | {text for text in strings if isinstance(text, str)}


#: the files that may speak of what makes noise, or of what a curator keeps, in any way
MAKERS = {
    "add_noise": {"kernel/curator"},
    "LazySums": {"kernel/curator"},
    "Variates": {"kernel/curator"},
    "evaluate_at": {"kernel/curator"},
    "minimise": {"kernel/curator"},
    "rounded_gaussian": {"laws/late_noise", "kernel/mechanisms"},
    "rounded_laplace": {"laws/k_norm", "kernel/mechanisms"},
    "rounded_k_norm": {"kernel/mechanisms"},
    "_accounts": {"kernel/curator"},
    "_append": {"kernel/curator"},
    "_charge": {"kernel/curator"},
    "_redeem": {"kernel/curator"},
    "_pay": {"kernel/curator"},
    "_admitted": {"kernel/curator"},
    "_Curator__rows": set(),
    "_Curator__admit": set(),
    "Charging": {"kernel/curator"},
}


@pytest.mark.parametrize("name", MAKERS)
def test_noise_and_what_a_curator_keeps_are_named_where_they_belong(name):
    users = {file for file, tree in TREES.items() if name in spoken(tree)}
    assert users == {f"privacy/{file}.py" for file in MAKERS[name]}


FITS = {
    f"{name}:{node.name}": method
    for name, tree in TREES.items()
    for node in ast.walk(tree)
    if isinstance(node, ast.ClassDef)
    for method in node.body
    if isinstance(method, ast.FunctionDef) and method.name == "fit"
}


@pytest.mark.parametrize("name", FITS)
def test_fit_keeps_nothing_that_was_computed_from_the_data(name):
    assert Taint(FITS[name]).found == []


@pytest.mark.parametrize(("name", "private"), [("run_search", {"rows"}), ("_choose", {"tested"})])
def test_a_search_returns_what_was_released(name, private):
    tree = TREES["model_selection/_runs.py"]
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name]
    assert len(found) == 1
    assert Taint(found[0], private).found == []
    assert private <= {arg.arg for arg in found[0].args.args}


def test_a_search_fits_in_two_places():
    # one with shares, whose result is checked, and one to null rows that keeps nothing
    for name in (file for file in FILES if file.startswith("model_selection/")):
        functions = [n for n in ast.walk(TREES[name]) if isinstance(n, ast.FunctionDef)]
        fitting = {f.name for f in functions if {"fit", "fit_transform"} & set(calls(f))}
        expected = {"_runs.py": {"fit_candidate", "null_charges"}}
        assert fitting == expected.get(name.split("/")[1], set()), name


RUNS = """
def run_search(gate, candidates, rows, n_jobs):
    train, held_out = gate.split()
    taken = _of(rows, train)
    models = Parallel(n_jobs)(delayed(fit_candidate)(c, *taken) for c in candidates)
    curator = gate.score_curator(lambda: HeldOutRows(models, rows), 2)
    score = curator.release(HeldOutScore(), 1.0)
    {}
"""


def test_the_taint_analysis_accepts_the_runs_of_a_search():
    assert Taint(ast.parse(RUNS.format("return models[0], score")).body[0], {"rows"}).found == []


@pytest.mark.parametrize(
    "leak",
    [
        "return taken",
        "return Outcome(models[0], scorer(models[0], rows))",
        "return models[0].fit(*rows)",
        "model = other_fit(models[0], *taken)\n    return model",
        "models = [delayed(other_fit)(m, *taken) for m in models]\n    return models",
        "models[0].n_ = len(rows)\n    return models[0]",
        "print(rows)\n    return models[0]",
        "if rows[1].any():\n        return models[0]\n    return models[1]",
        "curator = gate.score_curator(rows, 2)\n    return curator",
    ],
)
def test_the_taint_analysis_finds_in_a_search(leak):
    assert Taint(ast.parse(RUNS.format(leak)).body[0], {"rows"}).found


def test_no_fit_was_overlooked():
    assert len(FITS) == sum(path.read_text().count("def fit(") for path in FILES.values()) >= 3


CLEAN = """
def fit(self, X, y):
    X, y = validate_private_data(self, X, y)
    n_rows, n_features = X.shape
    classes, codes, outside, assumptions = resolve_classes(y, self.classes)
    curator = Curator(lambda: LinearRows(X, codes, outside), n_rows=n_rows)
    def gradient(coef):
        return curator.release(ClippedGradient(coef), mechanism) / n_rows
    self.coef_ = solver(gradient)
    self.classes_ = classes
    self.ledger_ = curator.ledger
    {}
"""


def test_the_taint_analysis_accepts_released_numbers():
    assert Taint(ast.parse(CLEAN.format("return self")).body[0]).found == []


def test_the_taint_analysis_knows_that_only_the_number_of_clients_is_public():
    grouped = CLEAN.replace("def fit(self, X, y):", "def fit(self, X, y, groups=None):")
    line = "n_clients, clients = resolve_clients(groups, X.shape[0])\n    self.kept_ = {}"
    for kept, is_clean in (("n_clients", True), ("clients", False), ("groups", False)):
        found = Taint(ast.parse(grouped.format(line.format(kept))).body[0]).found
        assert (found == []) is is_clean


@pytest.mark.parametrize(
    "leak",
    [
        "self.mean_ = X.mean(axis=0)",
        "self.count_ = len(codes)",
        "self.n_outside_ = outside.sum()",
        "scale = abs(X).max()\n    self.scale_ = [1, scale]",
        "self.coef_ += 1e-9 * X[0]",
        "self.a_, self.b_ = 1, y[0]",
        "self.coef_[0] = X[0, 0]",
        "setattr(self, 'mean_', X.mean())",
        "self.__dict__.update(mean_=X.mean())",
        "if X.max() > 1:\n        self.large_ = True",
        "self.large_ = True if y.any() else False",
        "for row in X:\n        self.rows_ = 1",
        "self.gradient_ = lambda: X",
        "def helper():\n        return y\n    self.y_ = helper()",
        "kept = []\n    kept.append(X)\n    self.kept_ = kept",
        "kept = {}\n    kept['X'] = X\n    self.kept_ = kept",
        "with open_(X) as file:\n        self.file_ = file",
        "if (total := X.sum()):\n        pass\n    self.total_ = total",
        "self.rows_ = [row for row in X]",
        "self.sum_ = curator.release(RowSum(X.max()), mechanism)",
        "while y.any():\n        self.steps_ = 1",
        "self._remember(X)",
        "warnings.warn(f'{X.max()}')",
        "if outside.any():\n        warnings.warn('labels')",
        "print(y)",
        "n_rows = X[:, 0].size\n    self.n_ = n_rows",
        "Z = X[X > 0]\n    self.n_positive_ = Z.shape[0]",
        "X = X[X > 0]\n    self.n_positive_ = X.shape[0]",
        "return X",
        "if X.any():\n        return self\n    return None",
        "self._curator(lambda: X)",
        "super().fit(X)",
    ],
)
def test_the_taint_analysis_finds(leak):
    assert Taint(ast.parse(CLEAN.format(leak)).body[0]).found


def test_import_loads_nothing_heavy():
    # scikit-learn itself loads pandas where it is installed
    check = (
        "import sys, sklearn.linear_model; before = set(sys.modules); import skdp; "
        f"print(sorted({LAZY!r} & (set(sys.modules) - before)), sorted({LAZY!r} & before))"
    )
    run = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=ROOT.parent
    )
    assert run.stdout.strip() in ("[] []", "[] ['pandas']")

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The boundaries that make a privacy claim auditable, read off the source code."""

import ast
import subprocess
import sys
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import skdp
from skdp import DPLogisticRegression
from skdp.privacy import Curator
from tests._audit import Taint
from tests._taint import WAYS, WEIGHED

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
LAZY = {
    "cvxpy",
    "matplotlib",
    "pandas",
    "polars",
    "dp_accounting",
    "dask",
    "distributed",
    "psycopg",
}
# A module may import from its own package and from packages of a lower rank.
RANKS = {
    "privacy": 0, "exceptions": 1, "_export": 1, "budget": 1.2, "_typing": 1.5, "_losses": 2,
    "_log_concave": 2, "_recovery": 2, "_rows": 2, "_counted": 2.5, "_minimize": 3,
    "_bisection": 3, "_quantiles": 3, "_classification": 3, "_sklearn": 3, "_gate": 4, "io": 4,
    "solvers": 4, "_plan": 4.5,
    "location": 5, "papers": 6, "preprocessing": 6, "local": 6, "linear_model": 7,
    "federated": 8, "moments": 8, "model_selection": 9, "inspection": 9, "audit": 9, "metrics": 9.5,
    "__init__": 10,
}  # fmt: skip


@cache
def walked(node):
    """Return a node and all below it, as `ast.walk` does: many tests ask for the same."""
    return list(ast.walk(node))


@cache
def imports(tree):
    """Return a list of (module, name or None, whether it happens inside a function)."""
    inside = {
        node
        for function in walked(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    found = []
    for node in walked(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, None, node in inside) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            found += [(node.module, alias.name, node in inside) for alias in node.names]
    return found


@cache
def mentioned(tree):
    """Return all names and attributes that occur in code."""
    names = {node.id for node in walked(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in walked(tree) if isinstance(node, ast.Attribute)}
    return names | {name for _, name, _ in imports(tree) if name}


@cache
def calls(tree):
    """Return the last names of everything that is called."""
    return [
        getattr(node.func, "attr", getattr(node.func, "id", None))
        for node in walked(tree)
        if isinstance(node, ast.Call)
    ]


def package_of(module):
    return module.split(".")[0]


def makes_randomness(tree):
    modules = {module for module, _, _ in imports(tree)}
    modules |= {f"{module}.{name}" for module, name, _ in imports(tree)}
    return bool(modules & RANDOM_MODULES or mentioned(tree) & RANDOM_NAMES)


def test_one_module_makes_randomness():
    makers = [module_of(name) for name, tree in TREES.items() if makes_randomness(tree)]
    assert makers == [place_of("make_bits")]


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
    for node in walked(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            base = ast.unparse(node.value)
            if package_of(base) == "sklearn":
                found.append((base, node.attr))
    return found


def test_one_module_borrows_private_names_of_scikit_learn():
    assert [name for name, tree in TREES.items() if private_names(tree)] == ["_sklearn.py"]


@pytest.mark.sample(6, 105)
@every_file
def test_dependencies_run_one_way(name):
    own = package_of(name.replace("/", ".").removesuffix(".py"))
    for module, imported, _ in imports(TREES[name]):
        if package_of(module) == "skdp":
            other = (module.split(".") + [imported or "__init__"])[1]
            other = other if other in RANKS else "__init__"
            assert other == own or RANKS[other] < RANKS[own], f"{name} imports {module}"


@pytest.mark.sample(6, 75)
@every_file
def test_heavy_packages_are_imported_inside_functions(name):
    for module, _, inside in imports(TREES[name]):
        assert inside or package_of(module) not in LAZY


# -- modules, and what they define ---------------------------------------------------------------


def module_of(name):
    """Return the module of a file; a package is the module ``package.__init__``."""
    return "skdp." + name.removesuffix(".py").replace("/", ".")


MODULES = {module_of(name): tree for name, tree in TREES.items()}


def package(module):
    return module.rpartition(".")[0]


@cache
def targets(module):
    """Return the modules of skdp that a module imports, in functions too."""
    found = set()
    for source, name, _ in imports(MODULES[module]):
        if package_of(source) == "skdp":
            places = (f"{source}.{name}", source, f"{source}.__init__")
            found.add(next(place for place in places if place in MODULES))
    return found


@cache
def definitions(tree):
    """Return pairs (name, node) of what a module defines at its top level."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append((node.name, node))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                names = (part.id for part in walked(target) if isinstance(part, ast.Name))
                found += [(name, node) for name in names]
    return found


def place_of(concept):
    """Return the one module that defines a class or a function."""
    found = [m for m, tree in MODULES.items() if concept in dict(definitions(tree))]
    assert len(found) == 1, f"{concept} is defined in {found}"
    return found[0]


def class_of(concept):
    return dict(definitions(MODULES[place_of(concept)]))[concept]


def file_of(module):
    return module.removeprefix("skdp.").replace(".", "/") + ".py"


def cycles(graph):
    """Return the sets of nodes that reach each other, of more than one node (Tarjan 1972)."""
    found, index, low, stack = [], {}, {}, []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1 or node in graph[node]:
                found.append(sorted(part))

    for node in graph:
        if node not in index:
            visit(node)
    return found


def test_no_module_imports_itself_by_way_of_others():
    assert cycles({module: targets(module) for module in MODULES}) == []


def test_a_cycle_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"e"}}
    assert cycles(graph) == [["b", "c"], ["e"]]
    assert cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


#: what every solver has under the same name
SAME_NAME = {"plan"}


def test_no_two_modules_define_the_same_name():
    defined = Counter(
        name
        for tree in MODULES.values()
        for name, node in definitions(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    )
    assert {name for name, count in defined.items() if count > 1} <= SAME_NAME


def is_private(module):
    return any(part.startswith("_") for part in package(module).split("."))


#: packages without a leading underscore whose names are imported from their files
NO_FACE = {f"skdp.privacy.{ring}" for ring in ("kernel", "laws", "books")} | {
    "skdp.local.randomisers"
}


def test_private_packages_have_no_face():
    packages = [package(module) for module in MODULES if module.endswith(".__init__")]
    faces = [f"{p}.__init__" for p in packages if is_private(f"{p}.") or p in NO_FACE]
    assert len(faces) >= 6
    for face in faces:
        body = MODULES[face].body
        assert all(isinstance(node, ast.Expr) for node in body), face


#: modules that one module of their package imports, and nobody else, and why they stand alone
ALONE = {
    "skdp._minimize.nonsmooth": "another theory than that of smooth losses",
    "skdp.location._compressed_sensing": "an algorithm of its own, one of several for a mean",
    "skdp.model_selection._runs": "its functions are audited one by one: they see held-out rows",
    "skdp.linear_model._class_weight": "a concept of its own, after the fit, with its query",
    "skdp.solvers.subgradient": "a rule for losses with kinks, with the proof of its bound",
    "skdp.io": "public: users import from it",
    "skdp.papers.boosting": "an algorithm of its own, of another section of the paper",
}


def test_a_module_that_one_neighbour_imports_is_part_of_it():
    users = {module: {m for m in MODULES if module in targets(m)} for module in MODULES}
    alone = {
        module
        for module, (*found,) in users.items()
        if len(found) == 1 and package(found[0]) == package(module)
        if not found[0].endswith(".__init__")
    }
    assert alone == set(ALONE)


# -- three rings ---------------------------------------------------------------------------------

STANDARD = set(sys.stdlib_module_names)
#: ring: (rings it may import, packages at the top of a module, packages inside functions)
RINGS = {
    "kernel": ({"kernel"}, {"numpy", "scipy"}, {"numpy", "scipy"}),
    "laws": ({"kernel", "laws"}, {"numpy", "scipy"}, {"numpy", "scipy", "dp_accounting"}),
    "books": (
        {"kernel", "laws", "books"}, {"numpy", "scipy"},
        {"numpy", "scipy", "dp_accounting", "pandas", "psycopg"},
    ),
}  # fmt: skip
#: ways to import without saying so, to make texts, and to leave functions for later
NOT_IN_THE_KERNEL = {"importlib", "__import__", "import_module", "html", "json", "textwrap"}


def ring(name):
    return [module for module in MODULES if module.startswith(f"skdp.privacy.{name}.")]


@pytest.mark.parametrize("name", RINGS)
def test_a_ring_imports_only_inwards(name):
    inner, at_top, in_functions = RINGS[name]
    assert len(ring(name)) > 3
    for module in ring(name):
        for source, imported, inside in imports(MODULES[module]):
            if package_of(source) == "skdp":
                parts = f"{source}.{imported}".split(".")
                assert parts[1] == "privacy", f"{module} imports {source}"
                assert parts[2] in inner, f"{module} imports {source}"
            else:
                allowed = STANDARD | (in_functions if inside else at_top)
                assert package_of(source) in allowed, f"{module} imports {source}"


def test_the_kernel_imports_at_the_top_and_makes_no_texts():
    for module in ring("kernel"):
        assert not any(inside for *_, inside in imports(MODULES[module])), module
        modules = {source for source, *_ in imports(MODULES[module])}
        assert not (modules | mentioned(MODULES[module])) & NOT_IN_THE_KERNEL, module


def test_the_kernel_alone_falls_back_on_bounds_that_are_no_lower():
    # what composes loss distributions is put into it from outside
    from skdp.privacy.kernel import ledger as composition

    arguments = (0.3, [(0.1, 0.0, 4)], 1e-6)
    cost = composition.SampledCost(skdp.privacy.Sampling("poisson", 100, 10), 0.5, "zero-out", 5)
    tight = composition.compose_epsilon(*arguments)
    alone = (
        "import sys, types; from pathlib import Path; "
        f"root = Path({str(ROOT)!r}); "
        # packages without their faces: nothing but the kernel is loaded
        "[sys.modules.setdefault(n, types.ModuleType(n)).__dict__.update(__path__=[str(p)]) "
        "for n, p in (('skdp', root), ('skdp.privacy', root / 'privacy'))]; "
        "from skdp.privacy.kernel import ledger as c, curator; "
        "from skdp.privacy.kernel.batches import Sampling; "
        f"print(c.compose_epsilon(*{arguments!r})); "
        "s = c.SampledCost(Sampling('poisson', 100, 10), 0.5, 'zero-out', 5); "
        "print(c.compose_epsilon(0.0, [], 1e-6, (s,))); "
        "print({m.split('.')[0] for m in sys.modules} & {'dp_accounting', 'sklearn', 'pandas'}); "
        "print(sorted(m for m in sys.modules if m.startswith('skdp.privacy.') "
        "and '.kernel' not in m))"
    )
    run = subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True, check=True)
    plain, sampled, packages, others = run.stdout.splitlines()
    assert tight <= float(plain) < 2 * tight
    assert composition.compose_epsilon(0.0, [], 1e-6, (cost,)) < float(sampled) == float("inf")
    assert (packages, others) == ("set()", "[]")


# -- sizes that only shrink ----------------------------------------------------------------------

#: committed sizes in lines; to raise one needs a sentence in docs/reviewers.rst
KERNEL, CURATOR, REACHED = 2000, 200, 3450


def lines_of(module):
    return len(FILES[file_of(module)].read_text().splitlines())


def test_the_kernel_is_short():
    assert sum(map(lines_of, ring("kernel"))) <= KERNEL <= 2000


def test_the_curator_is_short_and_stands_alone():
    curator = class_of("Curator")
    assert curator.end_lineno - curator.lineno + 1 <= CURATOR <= 300
    assert curator.bases == []


def test_the_curator_knows_no_kind_of_law():
    tree = MODULES[place_of("Curator")]
    laws = {name for module in ring("laws") for name, _ in definitions(MODULES[module])}
    kinds = {"gaussian", "laplace", "k-norm", "exponential", "local", "threshold", "by_chance"}
    assert not (spoken(class_of("Curator")) | mentioned(tree)) & (laws | kinds)


def first_release(estimator, *data):
    """Return the objects that a fit enters up to its first release: query, law, rows."""
    seen, release = [], Curator.release

    def spy(curator, query, law, rows=None):
        account = curator._charging._accounts.get(law) if not hasattr(law, "release") else None
        law_itself = law if account is None else account.charged.law
        seen.append((query, law_itself, curator._admitted(None)))
        return release(curator, query, law, rows)

    with mock.patch.object(Curator, "release", spy), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(*data)
    return seen[0]


def parts_of(value):
    """Yield the types of skdp of an object and of what it holds."""
    if type(value).__module__.startswith("skdp."):
        yield type(value)
        held = [getattr(value, slot, None) for slot in getattr(type(value), "__slots__", ())]
        for part in [*getattr(value, "__dict__", {}).values(), *held]:
            for one in part if isinstance(part, tuple | list) else [part]:
                yield from parts_of(one)


def reached(roots):
    """Return the top-level definitions that code of the roots can name, and they in turn."""
    todo, done = list(roots), set()
    while todo:
        module, name = todo.pop()
        if (module, name) in done:
            continue
        own = dict(definitions(MODULES[module]))
        if name not in own:
            continue
        done.add((module, name))
        known = {}
        for source, imported, _ in imports(MODULES[module]):
            if package_of(source) == "skdp":
                known[imported] = source
        for node in walked(own[name]):
            if isinstance(node, ast.Name) and node.id in own:
                todo.append((module, node.id))
            elif isinstance(node, ast.Name) and known.get(node.id) in MODULES:
                todo.append((known[node.id], node.id))
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                # a name of an imported module
                place = f"{known.get(node.value.id)}.{node.value.id}"
                if place in MODULES:
                    todo.append((place, node.attr))
    return done


def test_what_a_default_fit_reaches_is_short():
    # the whole kernel; and of the query that is evaluated first, its law, and the rows that are
    # admitted: their classes, whatever these name, and what that names in turn
    X, y = np.eye(20), np.arange(20) % 2
    entered = first_release(DPLogisticRegression(data_norm=1.0), X, y)
    kinds = {kind for value in entered for kind in parts_of(value)}
    roots = {(kind.__module__, kind.__name__) for kind in kinds}
    assert len(roots) >= 4
    spans = {
        (module, node.lineno): node.end_lineno - node.lineno + 1
        for module, name in reached(roots)
        if module not in ring("kernel")
        for node in [dict(definitions(MODULES[module]))[name]]
    }
    total = sum(spans.values()) + sum(map(lines_of, ring("kernel")))
    assert 2000 < total <= REACHED <= 4000


# -- the gate ------------------------------------------------------------------------------------


#: what measures releases on rows that are made up, for audits; a function for every law
MEASURES = {
    "add_noise": {"_redrawn", "_late", "_objective"},
    "evaluate": {"_additive", "_threshold"},
    "draw": {"_draw"},
    "minimise": {"_objective"},
    "touched": {"_late", "_threshold"},
    "evaluate_at": {"_late"},
    "made_reports": {"_reported_sum"},
}

GATED = {
    "add_noise": {
        "Additive", "ObjectivePerturbation", "StabilityHistogram", "ReportedSum",
        "SharedGaussianMechanism",
    },
    "discrete_gaussian": {"SharedNoise", "FederatedClient"},
    "evaluate": {
        "Additive", "StabilityHistogram", "SharedGaussianMechanism", "FederatedClient",
    },
    "draw": {"Curator", "ExponentialMechanism", "NotedNoise", "made_reports"},
    "minimise": {"ObjectivePerturbation"},
    "touched": {"StabilityHistogram", "LateNoise"},
    "evaluate_at": {"LateNoise"},
    "LazySums": {"LateNoise"},
    "Variates": {"drawing_source"},
    "made_reports": {"LocalMechanism", "ReportedSum"},
    # a search draws its own secrets: the split, and the runs that count
    "make_bits": {"Curator", "FederatedClient", "LocalClient", "Search", "_unguessable"},
}  # fmt: skip
#: callers beside kernel and laws: a client draws identifiers of reports, which are public; a client
#: of a federation makes its update, and its share of the noise, where its rows are
OUTSIDE = {
    ("make_bits", "LocalClient"), ("make_bits", "FederatedClient"), ("make_bits", "_unguessable"),
    ("evaluate", "FederatedClient"), ("discrete_gaussian", "FederatedClient"),
}  # fmt: skip


@pytest.mark.sample(1)
@pytest.mark.parametrize("function", GATED)
def test_only_the_gate_calls(function):
    callers = {
        name
        for tree in MODULES.values()
        for name, node in definitions(tree)
        if function in calls(node)
    }
    measures = MEASURES.get(function, set())
    assert callers == GATED[function] | measures
    for caller in callers:
        inside = place_of(caller) in [*ring("kernel"), *ring("laws")]
        assert inside or (function, caller) in OUTSIDE
    assert {place_of(measure) for measure in measures} <= {place_of("Measured")}


def test_measures_are_for_audits_alone():
    users = {module for module in MODULES if place_of("Measured") in targets(module)}
    assert users == {place_of("trace_privacy")}


def test_every_law_is_told_by_its_base():
    # what calls for rows or noise is a law, or a part of one in its own module
    laws = {"Law"}
    while True:
        more = {
            name
            for module in MODULES
            for name, node in definitions(MODULES[module])
            if isinstance(node, ast.ClassDef)
            and laws & {base.id for base in node.bases if isinstance(base, ast.Name)}
        }
        if more <= laws:
            break
        laws |= more
    assert {place_of(law) for law in laws} <= {*ring("laws"), place_of("Law")}
    assert {"GaussianMechanism", "KNormMechanism", "LateNoise", "ObjectivePerturbation"} <= laws
    readers = {
        name
        for tree in MODULES.values()
        for name, node in definitions(tree)
        if any(ast.unparse(n.func) == "source.read" for n in walked(node) if is_call(n))
    }
    assert readers <= laws | {"made_reports"}


def is_call(node):
    return isinstance(node, ast.Call)


@cache
def spoken(tree):
    """Return all names, attributes, and strings that could be attributes."""
    strings = {node.value for node in walked(tree) if isinstance(node, ast.Constant)}
    return mentioned(tree) | {text for text in strings if isinstance(text, str)}


#: what makes noise, or what a curator keeps, and the definitions whose modules may speak of it
MAKERS = {
    "add_noise": {
        "Additive", "ObjectivePerturbation", "StabilityHistogram", "ReportedSum",
        "SharedGaussianMechanism",
    },
    "discrete_gaussian": {"SharedNoise", "FederatedClient"},
    "LazySums": {"LazySums"},
    "Variates": {"drawing_source"},
    "evaluate_at": {"LateNoise"},
    "minimise": {"ObjectivePerturbation"},
    "rounded_gaussian": {"LazySums", "Noise"},
    "rounded_laplace": {"rounded_k_norm", "Noise"},
    "rounded_k_norm": {"KNormNoise"},
    "_accounts": {"Charging"},
    "_append": {"Charging"},
    "redeem": {"Curator"},
    "_admitted": {"Curator"},
    "_batch": {"Curator"},
    "_Curator__rows": set(),
    "_Curator__admit": set(),
    "Charging": {"Curator"},
    "ChargedSource": {"Curator"},
    "numerical_epsilon": {"compose_epsilon"},
}  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", MAKERS)
def test_noise_and_what_a_curator_keeps_are_named_where_they_belong(name):
    users = {module for module, tree in MODULES.items() if name in spoken(tree)}
    # the face of the package tells the kernel what composes loss distributions
    face = {"skdp.privacy.__init__"} if name == "numerical_epsilon" else set()
    measures = {place_of(measure) for measure in MEASURES.get(name, ())}
    assert users == {place_of(concept) for concept in MAKERS[name]} | face | measures


def test_the_side_of_a_curator_that_charges_sees_no_row():
    module = place_of("Charging")
    assert module != place_of("Curator")
    tree = MODULES[module]
    rows = {"admit", "__admit", "__rows", "read", "batch"}
    assert not spoken(tree) & {*rows, "numpy", "bits", "_bits"}
    # it asks a law for noise and lines, and never for a release
    called = {ast.unparse(node.func) for node in walked(tree) if is_call(node)}
    assert not set(GATED) & set(calls(tree))
    assert not any(name.endswith("law.release") for name in called)
    assert place_of("Curator") not in targets(module)
    # and the other side does not touch what this one keeps
    kept = {"_epsilon", "_delta", "_mu", "_record", "_accounts"}
    assert not kept & mentioned(MODULES[place_of("Curator")])


def test_the_rows_of_a_curator_are_sealed():
    # two private attributes of one class, which no other code can name
    for name in ("__rows", "__admit"):
        users = [module for module, tree in MODULES.items() if name in mentioned(tree)]
        assert users == [place_of("Curator")]
        assert all(name not in mentioned(node) for other, node in definitions(MODULES[users[0]])
                   if other != "Curator")  # fmt: skip


FITS = {
    f"{name}:{node.name}": method
    for name, tree in TREES.items()
    for node in tree.body
    if isinstance(node, ast.ClassDef)
    for method in node.body
    if isinstance(method, ast.FunctionDef) and method.name == "fit"
}


@pytest.mark.parametrize("name", FITS)
def test_fit_keeps_nothing_that_was_computed_from_the_data(name):
    assert Taint(FITS[name]).found == []


def test_ways_of_rows_through_the_gate_are_audited_as_fits_are():
    found = [n for tree in TREES.values() for n in walked(tree) if isinstance(n, ast.FunctionDef)]
    ways = [node for node in found if node.name in WAYS and "open_gate" in calls(node)]
    assert {node.name for node in ways} == WAYS.keys()
    for node in ways:
        assert Taint(node, {"X", "admit", *WEIGHED}).found == []
        first = [arg.arg for arg in node.args.args[1:]][: WAYS[node.name]]
        assert set(first) <= {"X", "admit"}


@pytest.mark.parametrize(
    ("call", "is_found"),
    [
        ("self._measured(X, lambda n: Rows(X, n), planned, released, groups=groups)", False),
        ("self._measured(X, lambda n: Rows(X, n), lambda n: plan(X), released)", True),
        ("self._measured(X, lambda n: Rows(X, n), planned, released, wanted=len(X))", True),
        ("self.n_ = self._reported(X)", False),
        ("self.n_ = self._reported(X) + X.sum()", True),
    ],
)
def test_the_taint_analysis_finds_beside_a_way(call, is_found):
    fit = ast.parse(f"def fit(self, X, y=None, *, groups=None):\n    {call}\n    return self")
    assert bool(Taint(fit.body[0]).found) == is_found


@pytest.mark.parametrize("name", FITS)
def test_fit_does_not_count_the_rows_itself(name):
    # their number may be a secret: plans have it from `count_rows`
    if "count_rows" not in calls(FITS[name]):
        return
    found = [n for n in walked(FITS[name]) if isinstance(n, ast.Subscript | ast.Call)]
    assert not {ast.unparse(n) for n in found} & {"X.shape[0]", "y.shape[0]", "len(X)", "len(y)"}


@pytest.mark.parametrize(
    ("name", "private"),
    [("run_search", {"rows"}), ("_choose", {"tested"}), ("refuse_rows", {"X", "y"})],
)
def test_a_search_returns_what_was_released(name, private):
    tree = TREES["model_selection/_runs.py"]
    found = [n for n in walked(tree) if isinstance(n, ast.FunctionDef) and n.name == name]
    assert len(found) == 1
    assert Taint(found[0], private).found == []
    assert private <= {arg.arg for arg in found[0].args.args}


def test_a_search_fits_in_three_places():
    # one with shares, whose result is checked, one to null rows that keeps nothing, and one that
    # ends at its charge, before a row is admitted
    for name in (file for file in FILES if file.startswith("model_selection/")):
        functions = [n for n in walked(TREES[name]) if isinstance(n, ast.FunctionDef)]
        fitting = {f.name for f in functions if {"fit", "fit_transform"} & set(calls(f))}
        expected = {"_runs.py": {"fit_candidate", "null_charges", "refuse_rows"}}
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
    line = "n_clients, clients = resolve_groups(groups, X)\n    self.kept_ = {}"
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


@pytest.mark.full
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

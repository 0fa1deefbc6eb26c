# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The tiers of the test suite, and the private names of the library that tests import."""

import ast
import itertools
from pathlib import Path

import pytest

from tests import conftest

HERE = Path(__file__).parent
PRIVATE_IMPORTS = 174

SUITE = """
import pytest

each = pytest.mark.parametrize

@pytest.mark.covering
@each("a", [1, 2, 3])
@each("b", ["x", "y", pytest.param("z", marks=pytest.mark.slow)])
def test_product(a, b): ...

@pytest.mark.covering("b")
@each("a", [1, 2, 3])
@each("b", ["x", "y"])
def test_named(a, b): ...

@pytest.mark.sample(3)
@each("a", range(50))
def test_many(a): ...

@pytest.mark.sample(1, 5)
@each("a", range(6))
def test_few(a): ...

@pytest.mark.full
def test_large(): ...

@pytest.mark.slow
def test_long(): ...

def test_plain(): ...
"""


class Collected:
    """A plugin that notes what is left after the selection."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        self.names = [item.name for item in items]


def collected(path, *arguments):
    """Return the names of the tests that are selected, in order."""
    plugin = Collected()
    quiet = ["--collect-only", "-qqq", "-p", "no:cacheprovider", "--import-mode", "importlib"]
    # which collects the garbage of all tests before
    quiet += ["-p", "no:unraisableexception"]
    place = ["--rootdir", str(path.parent), "-c", str(HERE.parent / "setup.cfg")]
    pytest.main([*quiet, *place, *arguments, str(path)], plugins=[plugin, conftest])
    return plugin.names


@pytest.fixture
def suite(tmp_path, capsys):
    path = tmp_path / "test_of_tiers.py"
    path.write_text(SUITE, encoding="utf-8")
    return path


def test_every_test_is_in_one_tier(suite):
    everything = collected(suite, "-m", "")
    tiers = [collected(suite), collected(suite, "-m", "full"), collected(suite, "-m", "slow")]
    assert len(everything) == 9 + 6 + 50 + 6 + 3
    assert sorted(itertools.chain(*tiers)) == sorted(everything)
    assert all(tiers)


def test_the_default_tier_has_every_value_and_little_else(suite):
    default = collected(suite)
    products = [name for name in default if name.startswith("test_product")]
    assert products == ["test_product[x-1]", "test_product[x-3]", "test_product[y-2]"]
    assert [name for name in default if name.startswith("test_named")] == [
        "test_named[x-1]",
        "test_named[y-1]",
    ]
    assert [name for name in default if name.startswith("test_many")] == [
        "test_many[0]",
        "test_many[24]",
        "test_many[49]",
    ]


def test_the_full_tier_has_a_few_dozen_of_a_selection_and_the_slow_one_the_others(suite):
    full, slow = collected(suite, "-m", "full"), collected(suite, "-m", "slow")
    assert sum(name.startswith("test_many") for name in full) == conftest.MOST_BEFORE_A_CHANGE - 3
    assert [name for name in full if name.startswith("test_few")] == [
        f"test_few[{a}]" for a in (1, 2, 4, 5)
    ]
    assert [name for name in slow if name.startswith("test_few")] == ["test_few[3]"]


def test_a_test_in_two_tiers_is_refused():
    with pytest.raises(pytest.UsageError, match="test_long is marked both full and slow"):
        conftest.pytest_collection_modifyitems([Marked("full", "slow")])


class Marked:
    """As much of a test as has marks."""

    name = "test_long"

    def __init__(self, *marks):
        self.get_closest_marker = lambda name: name if name in marks else None


def private_imports():
    """Return the import statements of tests that name a private module or name of the library."""
    for path in sorted(HERE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = node.module + "." if isinstance(node, ast.ImportFrom) else ""
                names = [(module + alias.name).split(".") for alias in node.names]
                if any(name[0] == "skdp" and any(map(is_private, name)) for name in names):
                    yield f"{path.relative_to(HERE)}:{node.lineno}"


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


@pytest.mark.full
def test_tests_of_behaviour_import_public_names():
    # a ratchet: lower it when fewer are needed, so that what is inside can be rebuilt; queries that
    # take groups are tested one by one, and took 13 more; those of histograms, scores and moments
    # 8; messages of clients, a choice of kernels and chunks that are kept 6; federations over
    # messages, noise in shares and regression on columns that bend 8; moments of many columns 1
    assert len(list(private_imports())) <= PRIVATE_IMPORTS

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Set-up shared by all tests: environment, workers, and the tiers default, full and slow."""

import gc
import hashlib
import itertools
import os
import sys

# Read when scipy is imported: without it one scikit-learn check skips for everybody.
os.environ["SCIPY_ARRAY_API"] = "1"
# Read when numpy is imported: the workers share the cores, and the matrices of tests are small.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# pytest keeps rewritten assertions only where bytecode may be written: half a minute a worker.
sys.dont_write_bytecode = False

import pytest
from hypothesis import given, settings
from hypothesis.strategies import none

#: parameter sets of a test in the default tier, if no mark says how many; the others are full
MOST_BY_DEFAULT = 6
#: a selection's parameter sets in the default and the full tier together; the others are slow
MOST_BEFORE_A_CHANGE = 10

# The same examples in every run; a failure anywhere is a failure everywhere.
settings.register_profile("skdp", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("skdp")


SYSTEM_ENTROPY, PROCESS = os.urandom, os.getpid()


class Entropy:
    """Stand in for the system's generator: the noise of a test depends on the test's name alone.

    A statistical check then passes always or never. Child processes ask the system.
    """

    def __init__(self, name):
        self.stream = hashlib.sha256(name.encode()).digest()
        self.calls = itertools.count()

    def __call__(self, n_bytes):
        if os.getpid() != PROCESS:
            return SYSTEM_ENTROPY(n_bytes)
        call = next(self.calls).to_bytes(8, "little")
        return hashlib.shake_256(self.stream + call).digest(n_bytes)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Start the stream of a test."""
    os.urandom = Entropy(item.nodeid)


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Give a fixture that several tests share a stream of its own: any of them may come first."""
    of_test = os.urandom
    if fixturedef.scope != "function":
        os.urandom = Entropy(f"{fixturedef.baseid}::{fixturedef.argname}::{request.param_index}")
    yield
    os.urandom = of_test


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    """Hand the system's generator back."""
    os.urandom = SYSTEM_ENTROPY


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config):
    """Start no workers for a few tests: each worker collects all that is asked for anew."""
    few = all(".py" in argument for argument in config.args) or config.option.keyword
    return 0 if few else None


def pytest_collection_finish():
    """Leave the tests themselves out of all later collections of garbage."""
    # its first run asks the garbage collector who holds its generator, which sees nothing frozen
    given(none())(lambda nothing: None)()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as full, or beyond a number as slow, what a selection leaves out of the default tier."""
    groups = {}
    for item in items:
        if item.get_closest_marker("full") and item.get_closest_marker("slow"):
            raise pytest.UsageError(f"{item.name} is marked both full and slow: choose a tier.")
        groups.setdefault((item.path, item.originalname), []).append(item)
    for group in groups.values():
        # what another mark has put into the slow tier stays there
        free = [item for item in group if not in_a_later_tier(item)]
        if group[0].get_closest_marker("covering"):
            kept, most = evenly(covering(free), 2 * MOST_BY_DEFAULT), MOST_BEFORE_A_CHANGE
        elif sample := group[0].get_closest_marker("sample"):
            kept, most = evenly(free, sample.args[0]), (*sample.args, MOST_BEFORE_A_CHANGE)[1]
        else:
            kept, most = evenly(free, MOST_BY_DEFAULT), len(group)
        later = [item for item in group if item.get_closest_marker("full")] if free else []
        left = [item for item in (*free, *later) if item not in kept]
        full = evenly(left, max(most - len(kept), 1))
        for item in left:
            item.own_markers = [mark for mark in item.own_markers if mark.name != "full"]
            item.add_marker(pytest.mark.full if item in full else pytest.mark.slow)


def in_a_later_tier(item):
    """Tell whether the default tier leaves the test out."""
    return any(item.get_closest_marker(tier) for tier in ("full", "slow"))


def evenly(items, n_kept):
    """Return the first item, the last, and others at even distances."""
    if len(items) <= n_kept:
        return items
    if n_kept == 1:
        return items[:1]
    step = (len(items) - 1) / (n_kept - 1)
    return [items[round(i * step)] for i in range(n_kept)]


def covering(items):
    """Return few items among which every value of every parameter occurs, as all do.

    The mark may name the parameters; the others then take whatever value comes along.
    """
    if not items:
        return []
    parameters = {item: item.callspec.params for item in items}
    names = items[0].get_closest_marker("covering").args or tuple(parameters[items[0]])
    values = {
        item: {(name, id(given[name])) for name in names} for item, given in parameters.items()
    }
    missing, kept = set().union(*values.values()), []
    while missing:
        # the first of the best, so that every worker chooses alike
        best = max(items, key=lambda item: len(values[item] & missing))
        missing -= values[best]
        kept.append(best)
    return kept


# -- budgets, and the servers that keep them --------------------------------------------------


@pytest.fixture(scope="session")
def server():
    """Return a PostgreSQL server, which a worker starts when its first test asks for it."""
    from tests._places import Server

    started = Server()
    yield started
    started.stop()


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.full)])
def place(request, tmp_path):
    """Return where a budget may be kept; nothing is there yet."""
    from tests._places import FilePlace, ServerPlace

    if request.param == "file":
        return FilePlace(tmp_path / "budget.db")
    return ServerPlace(request.getfixturevalue("server"), request.node.name)

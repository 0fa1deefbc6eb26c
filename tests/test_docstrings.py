# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Docstrings have numpydoc's form, and their examples run."""

import doctest
import importlib
import inspect
import pkgutil

import pytest
from numpydoc.validate import validate

import skdp

PUBLIC_MODULES = [
    "skdp",
    "skdp.audit",
    "skdp.exceptions",
    "skdp.federated",
    "skdp.inspection",
    "skdp.io",
    "skdp.linear_model",
    "skdp.local",
    "skdp.location",
    "skdp.metrics",
    "skdp.model_selection",
    "skdp.papers",
    "skdp.preprocessing",
    "skdp.privacy",
    "skdp.solvers",
]
#: what they hold beside estimators need not say what else to see
HELPING = ["audit", "exceptions", "inspection", "io", "local", "papers", "privacy"]
ALL_MODULES = sorted(
    ["skdp"] + [m.name for m in pkgutil.walk_packages(skdp.__path__, prefix="skdp.")]
)

# Not required anywhere, as in scikit-learn:
EVERYWHERE = {
    "GL01",  # the summary may start on the line of the quotes
    "GL02",  # the closing quotes may follow a one-line docstring
    "GL03",  # blank lines are the formatter's business
    "ES01",  # a summary may say it all
    "RT02",  # a single returned value may have a name
}
# Not required of methods, whose class says so:
METHODS = {"SA01", "EX01"}
# Not required of what authors of estimators use, and of exceptions:
HELPERS = {"SA01", "EX01"}
# Not required where the docstring is one line and every type is annotated:
ANNOTATED = {"PR01", "RT01"}


def public_objects():
    """Return {name: (object, ignored codes)} for what the public modules export."""
    found = {}
    for module_name in PUBLIC_MODULES:
        module = importlib.import_module(module_name)
        names = getattr(module, "__all__", None) or [n for n in vars(module) if n[0].isupper()]
        for name in names:
            thing = getattr(module, name)
            path = f"{thing.__module__}.{thing.__qualname__}"
            helpers = {f"skdp.{name}" for name in HELPING}
            helper = module_name in helpers and name not in skdp.__all__
            found.setdefault(path, EVERYWHERE | (HELPERS if helper else set()))
            if not inspect.isclass(thing):
                continue
            for base in thing.__mro__:
                if not base.__module__.startswith("skdp"):
                    continue
                for member, value in vars(base).items():
                    if member.startswith("_") or member.endswith("_request"):
                        continue  # the latter are made by scikit-learn
                    if inspect.isroutine(value) or isinstance(value, property | staticmethod):
                        where = f"{base.__module__}.{base.__qualname__}.{member}"
                        short = ANNOTATED if says_all_in_a_line(value) else set()
                        found.setdefault(where, EVERYWHERE | METHODS | short)
    return found


def says_all_in_a_line(routine):
    """Tell whether a routine is fully annotated and has a docstring of one line."""
    routine = getattr(routine, "__func__", routine)  # of a class method
    if not inspect.isfunction(routine) or "\n" in (routine.__doc__ or "\n"):
        return False
    signature = inspect.signature(routine)
    types = [p.annotation for p in list(signature.parameters.values())[1:]]
    return inspect.Parameter.empty not in [*types, signature.return_annotation]


OBJECTS = public_objects()


@pytest.mark.sample(6, 1000)
@pytest.mark.parametrize("path", OBJECTS)
def test_docstring_has_numpydoc_form(path):
    result = validate(path)
    errors = [f"{code}: {text}" for code, text in result["errors"] if code not in OBJECTS[path]]
    assert not errors, f"{result['file']}:{result['file_line']} {path}\n" + "\n".join(errors)


def examples():
    """Return the doctests of all modules."""
    finder = doctest.DocTestFinder()
    found = [t for m in ALL_MODULES for t in finder.find(importlib.import_module(m), m)]
    return [pytest.param(test, id=test.name) for test in found if test.examples]


@pytest.mark.sample(6, 1000)
@pytest.mark.parametrize("test", examples())
def test_examples_of_docstrings_run(test):
    runner = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False
    )
    # a copy: the runner clears the namespace
    copy = doctest.DocTest(
        test.examples, dict(test.globs), test.name, test.filename, test.lineno, test.docstring
    )
    assert runner.run(copy).failed == 0


def test_every_public_estimator_and_function_has_an_example():
    parser = doctest.DocTestParser()
    for name in skdp.__all__:
        doc = inspect.getdoc(getattr(skdp, name))
        assert parser.get_examples(doc), f"skdp.{name} has no example"


@pytest.mark.sample(6, 1000)
@pytest.mark.parametrize("module", ALL_MODULES)
def test_modules_say_what_they_are(module):
    assert importlib.import_module(module).__doc__

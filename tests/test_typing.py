# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Public signatures are annotated in full, and say of options what the constraints say."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
from sklearn.utils._param_validation import Interval, StrOptions

import skdp

MODULES = [skdp] + [
    importlib.import_module(f"skdp.{found.name}")
    for found in pkgutil.iter_modules(skdp.__path__)
    if not found.name.startswith("_")
]
PUBLIC = {
    name: getattr(module, name)
    for module in MODULES
    for name in getattr(module, "__all__", [n for n in vars(module) if n[0].isupper()])
}
ESTIMATORS = {
    name: thing for name, thing in PUBLIC.items() if hasattr(thing, "_parameter_constraints")
}


def routines(thing):
    """Yield (name, function) of a public function, or of what a public class defines itself."""
    if not inspect.isclass(thing):
        yield thing.__name__, thing
        return
    for base in thing.__mro__:
        if not base.__module__.startswith("skdp."):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") and name not in ("__init__", "__call__"):
                continue
            member = getattr(member, "fget", None) or getattr(member, "__func__", member)
            # a fit that takes weights where there is a bound on them
            member = getattr(member, "fit", member)
            member = inspect.unwrap(member) if callable(member) else member
            # neither what a data class makes up, nor what scikit-learn adds
            if inspect.isfunction(member) and member.__code__.co_filename == inspect.getfile(base):
                yield f"{base.__qualname__}.{name}", member


def without_annotation(routine):
    """Return the names of parameters, and "return", that have none."""
    signature = inspect.signature(routine)
    annotations = {name: p.annotation for name, p in signature.parameters.items()}
    annotations["return"] = signature.return_annotation
    missing = [name for name, found in annotations.items() if found is inspect.Parameter.empty]
    return [name for name in missing if name not in ("self", "cls")]


@pytest.mark.sample(6, 64)
@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_signature_is_annotated(name):
    found = {what: without_annotation(routine) for what, routine in routines(PUBLIC[name])}
    assert not {what: missing for what, missing in found.items() if missing}


def test_the_search_finds_what_is_not_annotated():
    class Half:
        def __init__(self, known: int, unknown=None) -> None: ...

        @property
        def price(self): ...

    assert without_annotation(Half.__init__) == ["unknown"]
    assert without_annotation(Half.price.fget) == ["return"]
    assert {name for name, _ in routines(skdp.DPMean)} >= {"DPMean.fit", "MeanEstimator.score"}


def options_of(annotation):
    """Return the words that an annotation allows."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    return set().union(*map(options_of, get_args(annotation)))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_annotations_say_what_the_constraints_say(name):
    constraints = ESTIMATORS[name]._parameter_constraints
    for parameter, found in inspect.signature(ESTIMATORS[name]).parameters.items():
        if constraints[parameter] == "no_validation":  # what it may be is checked in one place
            assert parameter == "solver"
            continue
        allowed, annotation = constraints[parameter], found.annotation
        kinds = {annotation, *get_args(annotation)}
        words = set().union(*(c.options for c in allowed if isinstance(c, StrOptions)))
        if parameter != "scoring":
            assert options_of(annotation) == words, parameter
        if parameter != "random_state":
            assert (type(None) in kinds) == (None in allowed), parameter
        for interval in (c for c in allowed if isinstance(c, Interval)):
            assert (int if interval.type.__name__ == "Integral" else float) in kinds, parameter
        if "array-like" not in allowed:  # a scalar is one
            assert ("boolean" in allowed) == (bool in kinds), parameter


@pytest.mark.parametrize("name", ESTIMATORS)
def test_signatures_do_not_spell_out_what_numpy_makes_an_array_of(name):
    assert "numpy" not in str(inspect.signature(ESTIMATORS[name]))


@pytest.mark.parametrize("name", ["DPLogisticRegression", "DPHingeSVM", "DPLpRegressor"])
def test_help_of_a_linear_model_is_short(name):
    estimator = ESTIMATORS[name]
    assert len(inspect.signature(estimator).parameters) <= 16
    assert len(inspect.getdoc(estimator).splitlines()) <= 150


def test_every_public_name_is_in_the_checked_script():
    script = Path(__file__).resolve().parents[1] / ".ci" / "typed_use.py"
    missing = set(PUBLIC) - set(re.findall(r"\w+", script.read_text(encoding="utf-8")))
    assert not missing

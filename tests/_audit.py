# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Audits of a fit: coupled trace, noise stream, black box, and taint in its source.

All additive noise goes through one function, `add_noise`, as the curator names it.
The first two audits stand in front of it.
"""

import ast
import contextlib
from dataclasses import dataclass
from unittest import mock

import numpy as np
from scipy import stats
from scipy.special import ndtri

from skdp.privacy import _curator, _mechanisms, gdp_epsilon

#: chance that an audit of correct noise raises a false alarm
FALSE_ALARM = 1e-6


@dataclass(frozen=True)
class Addition:
    """One noise addition: the statistic on the grid, the declared noise, the output."""

    statistic: np.ndarray
    noise: _mechanisms.Noise
    output: np.ndarray

    @property
    def standard(self):
        """The noise that was added, in units of its declared scale."""
        return (self.output - self.statistic) / self.noise.scale


@contextlib.contextmanager
def recorded(outputs=None):
    """Record every noise addition of the body, with given outputs instead of noise or none.

    Whatever stands under the name `add_noise` in the curator is what is audited.
    """
    additions, add_noise = [], _curator.add_noise

    def audited(values, noise, bits):
        statistic = noise.grid * _mechanisms.align(values, noise)
        output = add_noise(values, noise, bits) if outputs is None else outputs[len(additions)]
        additions.append(Addition(statistic, noise, output))
        return output.copy()

    with mock.patch.object(_curator, "add_noise", audited):
        yield additions


def coupled(fit_on, first, second):
    """Run a fit on one data set, replay it on another with the same noisy outputs.

    Returns
    -------
    pairs : list of (Addition, Addition)
        Step by step; everything public about them is equal.
    """
    with recorded() as original:
        fit_on(first)
    with recorded([step.output for step in original]) as replay:
        fit_on(second)
    assert original
    assert [step.noise for step in original] == [step.noise for step in replay]
    return list(zip(original, replay, strict=True))


def coupled_mu(fit_on, first, second):
    """Return the Gaussian-DP parameter between two data sets, exactly, for one trajectory."""
    total = 0.0
    for one, other in coupled(fit_on, first, second):
        assert one.noise.law == "gaussian"
        total += (np.linalg.norm(one.statistic - other.statistic) / one.noise.scale) ** 2
    return float(np.sqrt(total))


def coupled_epsilon(fit_on, first, second):
    """Return the largest log-ratio of output densities, for Laplace noise."""
    total = 0.0
    for one, other in coupled(fit_on, first, second):
        assert one.noise.law == "laplace"
        total += np.abs(one.statistic - other.statistic).sum() / one.noise.scale
    return float(total)


def noise_stream(fit, *data):
    """Return the noise additions of a fit."""
    with recorded() as additions:
        fit(*data)
    return additions


def scale_is_wrong(additions):
    """Return whether the size of the noise contradicts its declared scale."""
    total, freedom = 0.0, 0
    for step in additions:
        # a Gaussian's square, twice a Laplace variable's size: both are chi-square
        gaussian = step.noise.law == "gaussian"
        total += np.sum(step.standard**2) if gaussian else 2 * np.abs(step.standard).sum()
        freedom += step.standard.size * (1 if gaussian else 2)
    tails = stats.chi2.cdf(total, freedom), stats.chi2.sf(total, freedom)
    return 2 * min(tails) < FALSE_ALARM


def repeats(*streams):
    """Count runs of three draws that occur more than once, up to sign and scale.

    A stream is an array of draws in units of their scale. By chance, three draws agree to
    six digits once in 10^16 pairs.
    """
    windows = [np.lib.stride_tricks.sliding_window_view(np.abs(s), 3) for s in streams]
    found = np.round(np.concatenate(windows), 6)
    return len(found) - len(np.unique(found, axis=0))


def threshold_mu(first, second, confidence=0.999):
    """Return a lower bound on the Gaussian-DP parameter, from outputs of two worlds.

    `first` and `second` have a row for every run. Half of the runs choose a direction
    (Fisher's discriminant) and a threshold; the error rates of that test on the other
    half are bounded by Clopper and Pearson. mu-GDP allows no test with
    ``ndtri(1 - FPR) - ndtri(FNR) > mu``.
    """
    half = len(first) // 2
    pooled = np.cov(first[:half].T) + np.cov(second[:half].T)
    gap = second[:half].mean(axis=0) - first[:half].mean(axis=0)
    direction = np.linalg.lstsq(np.atleast_2d(pooled), gap, rcond=None)[0]
    train = first[:half] @ direction, second[:half] @ direction
    grid = np.quantile(np.concatenate(train), np.linspace(0.02, 0.98, 97))
    threshold = max(grid, key=lambda t: _separation(*train, t, 0.99))
    return _separation(first[half:] @ direction, second[half:] @ direction, threshold, confidence)


def _separation(first, second, threshold, confidence):
    false_positive = _rate_at_most(np.sum(first > threshold), len(first), confidence)
    false_negative = _rate_at_most(np.sum(second <= threshold), len(second), confidence)
    return float(ndtri(1 - false_positive) - ndtri(false_negative))


def _rate_at_most(count, total, confidence):
    # both rates hold together with the stated confidence
    miss = (1 - confidence) / 2
    return 1.0 if count == total else float(stats.beta.ppf(1 - miss, count + 1, total - count))


def black_box_epsilon(first, second, delta):
    """Return a lower bound on epsilon at `delta`, from outputs of two worlds."""
    return gdp_epsilon(max(0.0, threshold_mu(first, second)), delta)


MESSAGES = {"print", "warn", "warn_explicit", "write", "info", "debug", "warning"}


class Taint:
    """Follow the arguments of a `fit` through its source, whatever the order of statements.

    What is computed from X or y, or under a condition on them, is tainted. Clean are
    ``X.shape``, what a curator returns, and the label set and the assumptions that
    `resolve_classes` returns, which the ledger lists. `found` has a line for every way in
    which something tainted would outlive `fit`: an attribute, a function that is handed
    both `self` and the data, a returned value, a message.
    """

    def __init__(self, fit):
        data = {arg.arg for arg in ast.walk(fit.args) if isinstance(arg, ast.arg)} - {"self"}
        names = [node for node in ast.walk(fit) if isinstance(node, ast.Name)]
        self.local = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        self.tainted, self.shaped, before = data, data.copy(), None
        while before != (self.tainted, self.shaped):
            before, self.found = (self.tainted.copy(), self.shaped.copy()), []
            for statement in fit.body:
                self.visit(statement, False)

    def dirty(self, node):
        if isinstance(node, ast.Name):
            return node.id in self.tainted
        children = ast.iter_child_nodes(node)
        if getattr(node, "attr", None) == "shape":
            return getattr(node.value, "id", None) not in self.shaped and self.dirty(node.value)
        if _called(node) == "Curator":
            children = [child for child in _arguments(node) if not isinstance(child, ast.Lambda)]
        return any(map(self.dirty, children))

    def assign(self, target, value, branch, statement):
        if isinstance(target, ast.Tuple | ast.List):
            parts = [(part, value) for part in target.elts]
            if _called(value) == "resolve_classes" and len(parts) == 4:
                parts = [(part, None) for part in (target.elts[0], target.elts[3])] + parts[1:3]
            for part, source in parts:
                self.assign(part, source, branch, statement)
            return
        name = _base(target)
        if value is not None and _called(value) != "validate_private_data":
            self.shaped.discard(name)
        if branch or (value is not None and self.dirty(value)):
            if name == "self":
                self.found.append(ast.unparse(statement))
            self.tainted |= {name} - {"self"}

    def call(self, node, branch):
        arguments, name = _arguments(node), _called(node)
        if not (branch or any(map(self.dirty, arguments))) or name == "validate_private_data":
            return
        reached = [] if isinstance(node.func, ast.Name) else ast.walk(node.func)
        if name in MESSAGES or {"self", "super"} & {_id(part) for part in [*arguments, *reached]}:
            self.found.append(ast.unparse(node))
        elif isinstance(node.func, ast.Attribute) and _base(node.func) in self.local:
            self.tainted.add(_base(node.func))

    def visit(self, node, branch):
        if _called(node) == "Curator":
            return
        if isinstance(node, ast.FunctionDef) and any(map(self.dirty, node.body)):
            self.tainted.add(node.name)
        if isinstance(node, ast.Call):
            self.call(node, branch)
        if isinstance(node, ast.Return) and node.value and (branch or self.dirty(node.value)):
            self.found.append(ast.unparse(node))
        one = getattr(node, "target", getattr(node, "optional_vars", None))
        value = getattr(node, "value", getattr(node, "iter", getattr(node, "context_expr", None)))
        for target in getattr(node, "targets", [one] if one else []):
            self.assign(target, value, branch, node)
        deciding = getattr(node, "test", getattr(node, "iter", getattr(node, "subject", None)))
        branch = branch or (deciding is not None and self.dirty(deciding))
        for child in ast.iter_child_nodes(node):
            self.visit(child, branch)


def _id(node):
    return getattr(node, "id", None)


def _called(node):
    return getattr(node.func, "attr", _id(node.func)) if isinstance(node, ast.Call) else None


def _arguments(call):
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _base(node):
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return _id(node)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Audit of the source of a fit: nothing that was computed from the data outlives it."""

import ast

#: what returns released or public things only: audited itself, or shape and format alone go in
PUBLIC = {
    "public_form", "run_search", "_choose", "leaves_out_zeros", "table_schema", "described_columns",
    "released_total", "whole_columns",
}  # fmt: skip
#: guards of private rows, and the one function that fits a clone of a private estimator
GUARDS, FITS_A_CLONE = {"Curator", "open_gate", "score_curator"}, "fit_candidate"
#: arguments of fits that are public by name
PUBLIC_ROWS = {"X_val", "y_val"}
MESSAGES = {"print", "warn", "warn_explicit", "write", "info", "debug", "warning"}

#: read what is private, and raise or leave public facts: the latter whether there are groups at all
CHECKS = {"validate_private_data", "check_groups"}
#: private arguments of fits beside rows and targets
WEIGHED = {"groups", "sample_weight"}
#: methods that take the rows of a fit through the gate, and are audited as fits are: how many of
#: their first arguments are rows, or admit them. What they return was released.
WAYS = {"_measured": 2, "_reported": 1}


class Taint:
    """Follow the arguments of a `fit` through its source, whatever the order of statements.

    What is computed from X or y, or under a condition on them, is tainted. Clean are
    ``X.shape``, what a curator returns, and the label set and the assumptions that
    `resolve_classes` returns, which the ledger lists, and the number of clients that
    `resolve_groups` and `count_rows` return first. Clean is what comes from `PUBLIC` and
    `FITS_A_CLONE`, too.
    Instead of all arguments, `private` may name the private ones. `found` has a line for
    every way in which something tainted would outlive `fit`: an attribute, a function that is
    handed both `self` and the data, a returned value, a message.
    """

    def __init__(self, fit, private=None):
        data = {arg.arg for arg in ast.walk(fit.args) if isinstance(arg, ast.arg)}
        data = data - {"self"} - PUBLIC_ROWS if private is None else data & private
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
        if _called(node) in {*PUBLIC, *WAYS} or _fits_a_clone(node):
            return False
        if _called(node) in GUARDS:
            children = [child for child in _arguments(node) if not isinstance(child, ast.Lambda)]
        return any(map(self.dirty, children))

    def assign(self, target, value, branch, statement):
        if isinstance(target, ast.Tuple | ast.List):
            parts = [(part, value) for part in target.elts]
            if _called(value) == "resolve_classes" and len(parts) == 4:
                parts = [(part, None) for part in (target.elts[0], target.elts[3])] + parts[1:3]
            if _called(value) in ("resolve_groups", "count_rows") and len(parts) == 2:
                parts[0] = (target.elts[0], None)
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
        if name in WAYS:
            rows = [*node.args[: WAYS[name]], *(k.value for k in node.keywords if k.arg in WEIGHED)]
            arguments = [part for part in arguments if part not in rows]
        if not (branch or any(map(self.dirty, arguments))) or name in CHECKS:
            return
        if not branch and name in PUBLIC and "self" not in map(_id, arguments):
            return
        reached = [] if isinstance(node.func, ast.Name) else ast.walk(node.func)
        if name in MESSAGES or {"self", "super"} & {_id(part) for part in [*arguments, *reached]}:
            self.found.append(ast.unparse(node))
        elif isinstance(node.func, ast.Attribute) and _base(node.func) in self.local:
            self.tainted.add(_base(node.func))

    def visit(self, node, branch):
        if _called(node) in GUARDS:
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


def _fits_a_clone(node):
    """Tell whether a node is a call of `FITS_A_CLONE`, or of what joblib makes of it."""
    if not isinstance(node, ast.Call):
        return False
    if _called(node.func) == "delayed":
        return [_id(part) for part in node.func.args] == [FITS_A_CLONE]
    return _id(node.func) == FITS_A_CLONE


def _arguments(call):
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _base(node):
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return _id(node)

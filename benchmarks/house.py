# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the structure of a checkout: ``python benchmarks/house.py [ROOT]``.

Everything is read off the source, but for the files that a default fit enters, which are
counted while it runs (in a process of its own, with that checkout first on the path). Run it on
two checkouts to compare them. tests/test_boundary.py holds what must not grow.
"""

import ast
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: a default fit, with a note of every file of the library whose functions it calls
FIT = """
import os, sys, warnings
import numpy as np
import skdp
from skdp import DPLogisticRegression
root = os.path.dirname(skdp.__file__) + os.sep
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = (X[:, 0] > 0).astype(int)
model, entered = DPLogisticRegression(classes=[0, 1]), set()
def note(frame, event, arg):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(root):
        entered.add(name[len(root):])
model.fit(X, y)  # what is done once a process is not counted
sys.setprofile(note)
model.fit(X, y)
sys.setprofile(None)
print(*sorted(entered), sep="\\n")
"""


def trees(folder):
    """Return the parsed files below a folder, by path."""
    return {path: ast.parse(path.read_text()) for path in sorted(folder.rglob("*.py"))}


def n_lines(path):
    return len(path.read_text().splitlines())


def classes_and_functions(found):
    """Yield every class and function at the top level of parsed files."""
    for path, tree in found.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                yield path, node


def most_parameters(found):
    """Return the largest number of parameters of a public class of estimators, and its name."""
    counts = []
    for _, node in classes_and_functions(found):
        for method in node.body if isinstance(node, ast.ClassDef) else ():
            stores = getattr(method, "name", "") == "__init__" and node.bases
            if stores and not node.name.startswith("_"):
                arguments = method.args
                counts.append((len(arguments.args) + len(arguments.kwonlyargs) - 1, node.name))
    return max(counts)


def repeated_names(found):
    """Return the names that more than one file defines at its top level."""
    owners = {}
    for path, node in classes_and_functions(found):
        owners.setdefault(node.name, set()).add(path)
    return [name for name, paths in owners.items() if len(paths) > 1]


def is_private(module, name):
    return any(part.startswith("_") for part in f"{module}.{name}".split("."))


def private_imports(found):
    """Return how many import statements name something of the library, and how many a private."""
    total = private = 0
    for tree in found.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "skdp":
                total += 1
                private += any(is_private(node.module, alias.name) for alias in node.names)
    return total, private


def curator_lines(found):
    """Return the lines of the class that guards the rows, base classes of ours included."""
    by_name = {node.name: node for _, node in classes_and_functions(found)}
    seen, left = 0, ["Curator"]
    while left:
        node = by_name.get(left.pop())
        if isinstance(node, ast.ClassDef):
            seen += node.end_lineno - node.lineno + 1
            left += [base.id for base in node.bases if isinstance(base, ast.Name)]
    return seen


def entered_files(root):
    """Return the files that a default logistic fit enters."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIT], capture_output=True, text=True, check=True,
        cwd=root, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    return run.stdout.split()


def figures(root):
    """Return the figures of a checkout, by name."""
    library, tests = trees(root / "skdp"), trees(root / "tests")
    lengths = [n_lines(path) for path in library]
    entered = entered_files(root)
    kernel = root / "skdp" / "privacy" / "kernel"
    trusted = kernel if kernel.exists() else kernel.parent
    most, owner = most_parameters(library)
    total, private = private_imports(tests)
    return {
        "files in skdp/": len(library),
        "lines in skdp/": sum(lengths),
        "median length of a file": round(statistics.median(lengths)),
        "longest file": max(lengths),
        "files that a default logistic fit enters": len(entered),
        "lines of these files": sum(n_lines(root / "skdp" / name) for name in entered),
        "lines of the innermost trusted folder": sum(map(n_lines, trusted.rglob("*.py"))),
        "lines of Curator, bases included": curator_lines(library),
        "parameters of an estimator at most": f"{most} ({owner})",
        "names defined twice at top level": len(repeated_names(library)),
        "files of tests": len(tests),
        "import statements of skdp in tests": total,
        "of which name something private": private,
    }


if __name__ == "__main__":
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    for name, value in figures(root).items():
        print(f"{name:45s} {value}")

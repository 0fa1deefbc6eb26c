# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Public implementations of PrivUnit beside ours, each in a process of its own.

Run by `local_mean.py`; nothing of them is part of this library.
"""

import contextlib
import io
import json
import math
import random
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np

#: seconds after which an answer is not waited for
LIMIT = 60.0
#: name, dimension, budgets
CASES = (
    ("skdp PrivUnit", 1000, (1.0, 8.0, 16.0, 64.0, 256.0)),
    ("pfl-research PrivUnit", 1000, (1.0, 8.0, 16.0, 64.0, 256.0)),
    ("jacobian-anr-ldp PrivUnit", 1000, (1.0, 8.0, 16.0, 64.0, 256.0)),
    ("ml-projunit PrivUnitG", 1000, (1.0, 8.0, 16.0, 64.0, 256.0)),
    ("skdp PrivUnit", 100_000, (8.0,)),
    ("pfl-research PrivUnit", 100_000, (8.0,)),
    ("ml-projunit PrivUnitG", 100_000, (8.0,)),
    ("skdp ProjUnit, 128 of", 8192, (8.0,)),
    ("ml-projunit FastProjUnit, 128 of", 8192, (8.0,)),
    ("skdp ProjUnit, 8 of", 1024, (8.0,)),
    ("ml-projunit ProjUnit, 8 of", 1024, (8.0,)),
)


def _package(name, path):
    """Stand in for a package whose own start would import far more than is needed."""
    made = types.ModuleType(name)
    made.__path__ = [str(path)]
    sys.modules[name] = made


def _each(randomise):
    return lambda rows: np.array([randomise(row) for row in rows])


def load(name, n_dims, epsilon, folder):
    """Return the function that reports rows by a method of `CASES`."""
    method = name.split(" ", 1)[1]
    kept = int(method.split()[1]) if "," in method else None
    if name.startswith("skdp"):
        from skdp.local.randomisers.privunit import optimal_privunit
        from skdp.local.randomisers.projunit import projunit
        from skdp.privacy.kernel.samplers import SystemBits

        if kept is None:
            randomiser = optimal_privunit(epsilon, n_dims)
        else:
            randomiser = projunit(epsilon, n_dims, kept, "hadamard")
        source = SystemBits()
        return lambda rows: randomiser.report(rows, source)
    if name.startswith("pfl"):
        _package("pfl", Path(folder) / "pfl-research" / "pfl")
        from pfl.internal.priv_unit_functions import privatize

        return _each(lambda row: privatize(epsilon, row))
    if name.startswith("ml-projunit"):
        sys.path.insert(0, str(Path(folder) / "ml-projunit"))
        import PrivUnitAlgs as peer
        import utilities

        p = utilities.priv_unit_G_get_p(epsilon)
        given = (p, *utilities.get_gamma_sigma(p, epsilon))
        if kept is None:
            return _each(lambda row: peer.PrivUnitG(row, epsilon, *given))
        chosen, more = (peer.FastProjUnit, (True,)) if "Fast" in method else (peer.ProjUnit, ())
        return _each(lambda row: chosen(row, epsilon, kept, *given, *more))
    sys.path.insert(0, str(Path(folder) / "jacobian-anr-ldp" / "mechanisms"))
    # it is imported there, and not used by what is called
    sys.modules["torch"] = MagicMock()
    from mechanisms import make_privunit2_opt

    del sys.modules["torch"]

    generator = np.random.default_rng()
    unit = make_privunit2_opt(np.eye(2, n_dims))
    return lambda rows: unit.encode(rows, epsilon, generator)


def run(name, n_dims, epsilon, folder):
    """Return seconds of CPU a row, the error over the best one, and the mean inner product."""
    from skdp.local.randomisers.privunit import optimal_privunit

    rng = np.random.default_rng(0)
    np.random.seed(1)  # noqa: NPY002 - the peers draw from it
    random.seed(1)
    best = optimal_privunit(epsilon, n_dims).mean_squared_error
    n_rows = max(20, 2_000_000 // n_dims)
    rows = rng.standard_normal((n_rows, n_dims))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    with contextlib.redirect_stdout(io.StringIO()):
        reported = load(name, n_dims, epsilon, folder)
        # parameters are searched once
        reported(rows[:2])
        if not name.startswith(("skdp", "jacobian")):
            start = time.process_time()
            reported(rows[:2])
            n_rows = int(min(n_rows, max(20, 20.0 / (time.process_time() - start))))
        start = time.process_time()
        made = reported(rows[:n_rows])
        spent = (time.process_time() - start) / n_rows
    squares = ((made - rows[:n_rows]) ** 2).sum(axis=1) / best
    inner = (made * rows[:n_rows]).sum(axis=1)
    root = math.sqrt(n_rows)
    return [
        spent, squares.mean(), squares.std() / root, inner.mean(), inner.std() / root, n_rows
    ]  # fmt: skip


def compare(folder, quick=False):
    """Yield name, dimension, budget and what `run` found, or a sentence why it found nothing."""
    for name, n_dims, budgets in CASES:
        if not name.startswith("skdp") and folder is None:
            continue
        for epsilon in budgets[:2] if quick else budgets:
            yield name, n_dims, epsilon, _answer(name, n_dims, epsilon, folder)


def _answer(name, n_dims, epsilon, folder):
    place = str(folder and Path(folder).resolve())
    command = [
        sys.executable,
        str(Path(__file__).resolve()),
        name,
        str(n_dims),
        str(epsilon),
        place,
    ]
    # one of them writes a file where it runs
    with tempfile.TemporaryDirectory() as scratch:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=LIMIT, check=False, cwd=scratch
            )
        except subprocess.TimeoutExpired:
            return f"no end within {LIMIT:.0f} s"
    if done.returncode:
        return done.stderr.strip().splitlines()[-1].split(":")[0]
    return json.loads(done.stdout)


if __name__ == "__main__":
    given = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    print(json.dumps([float(value) for value in run(*given)]))

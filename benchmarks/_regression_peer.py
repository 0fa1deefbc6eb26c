# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""diffprivlib's side of the page on regression: runs in its environment."""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from _accuracy_store import Store

LABEL = "diffprivlib †"


def measure(store, file, name, seed, epsilons):
    """Store R2 on held out rows and CPU seconds, with the bounds of the data."""
    from diffprivlib.models import LinearRegression

    with np.load(file) as arrays:
        X, y, X_test, y_test = (arrays[part] for part in ("X", "y", "X_test", "y_test"))
    bounds = {"bounds_X": (X.min(axis=0), X.max(axis=0)), "bounds_y": (y.min(), y.max())}
    for epsilon in epsilons:
        if store.get(name, LABEL, epsilon, seed) is None:
            start = time.process_time()
            model = LinearRegression(epsilon=epsilon, **bounds).fit(X, y)
            seconds = time.process_time() - start
            with np.errstate(over="ignore"):
                score = float(model.score(X_test, y_test))
            store.add(name, LABEL, epsilon, seed, score=score, seconds=seconds)


def main():
    """Measure every file of a folder, which is named after table and seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("splits", type=Path)
    parser.add_argument("--epsilons", type=float, nargs="+")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for file in sorted(arguments.splits.glob("*.npz")):
        name, seed = file.stem.rsplit("-", 1)
        measure(Store(arguments.out), file, name, int(seed), arguments.epsilons)


if __name__ == "__main__":
    main()

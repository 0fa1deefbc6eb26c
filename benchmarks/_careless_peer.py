# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""diffprivlib's side of the page on first calls: runs in its environment."""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np


def fitted(rows, C, n_columns):
    """Return a model of prepared rows, at epsilon 1."""
    from diffprivlib.models import LinearRegression, LogisticRegression

    X, y = rows["X"], rows["y"]
    if y.dtype.kind == "f":
        bounds = {"bounds_X": (-1 / n_columns, 1 / n_columns), "bounds_y": (y.min(), y.max())}
        return LinearRegression(epsilon=1.0, **bounds).fit(X, y)
    return LogisticRegression(epsilon=1.0, data_norm=1.0, C=C, max_iter=1000).fit(X, y)


def main():
    """Print a line for every file of a folder: name, number of a grid, scores, seconds."""
    warnings.simplefilter("ignore")
    for file in sorted(Path(sys.argv[1]).glob("*.npz")):
        with np.load(file) as arrays:
            rows = dict(arrays)
        for C in [1.0] if rows["y"].dtype.kind == "f" else [1e-2, 1e-1, 1.0, 10.0, 100.0]:
            start = time.perf_counter()
            model = fitted(rows, C, float(rows["unit"]))
            seconds = time.perf_counter() - start
            score = float(model.score(rows["X_test"], rows["y_test"]))
            print(json.dumps([file.stem, C, score, seconds]), flush=True)


if __name__ == "__main__":
    main()

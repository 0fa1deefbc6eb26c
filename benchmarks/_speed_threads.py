# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Wall-clock seconds of fits with as many threads as ``OMP_NUM_THREADS`` says, for `speed.py`.

A program of its own, because the number of threads is read when libraries are loaded:
``python _speed_threads.py SCALE`` prints one JSON object.
"""

import json
import statistics
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from _speed_rows import labels, make, name_of
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression, DPMean, DPMedian, DPStandardScaler

ROUNDS = 3


def cases(scale):
    """Yield names and calls."""
    for size in ((int(scale * 10**6), 50, None), (int(scale * 4 * 10**5), 10**4, 30)):
        X, score = make(size)
        y, name = labels(score), name_of(size)
        for n_passes, solver in ((20, "gd"), (100, "sgd")):
            model = DPLogisticRegression(
                classes=(0, 1),
                mechanism="gradient",
                solver=solver,
                max_iter=n_passes,
                data_norm=1.0,
            )
            yield (
                f"DPLogisticRegression, {n_passes} steps, {solver}; {name}",
                lambda m=model, X=X, y=y: m.fit(X, y),
            )
        yield f"LogisticRegression; {name}", lambda X=X, y=y: LogisticRegression().fit(X, y)
        if size[2] is None:
            five = labels(score, 5)
            softmax = DPLogisticRegression(
                classes=range(5), mechanism="gradient", max_iter=20, data_norm=1.0
            )
            yield (
                f"DPLogisticRegression, 5 classes, 20 steps; {name}",
                lambda m=softmax, X=X, y=five: m.fit(X, y),
            )
            for model in (
                DPMean(data_norm=1.0),
                DPStandardScaler(),
                DPMedian(max_iter=20, data_norm=1.0),
            ):
                yield f"{model}; {name}", lambda m=model, X=X: m.fit(X)


def main():
    """Print the median seconds of every case."""
    warnings.simplefilter("ignore")
    found = {}
    for name, call in cases(float(sys.argv[1])):
        taken = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
        found[name] = statistics.median(taken)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

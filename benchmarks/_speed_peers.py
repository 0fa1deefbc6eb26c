# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The peers' side of `speed.py`: a program for each peer's own environment, without skdp.

``python _speed_peers.py PEER SIZES`` prints one JSON object a line; SIZES is a list in JSON.
"""

import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from _speed_rows import alternately, labels, make, name_of

#: one epoch of stochastic gradients: rows of a batch, and the budget
BATCH, BUDGET = 1024, {"epsilon": 1.0, "delta": 1e-6, "clip": 1.0, "lr": 4.0}
#: steps of Opacus that are timed where every batch has to be made dense
CSR_STEPS = 4


def diffprivlib(size):
    """Fit diffprivlib's LogisticRegression and scikit-learn's in turn; None for CSR rows."""
    from diffprivlib.models import LogisticRegression as Private
    from sklearn.linear_model import LogisticRegression

    if size[2] is not None:
        return  # dense rows only
    X, score = make(size)
    y = labels(score)
    medians, models = alternately(
        lambda: Private(epsilon=1.0, data_norm=1.0).fit(X, y),
        lambda: LogisticRegression().fit(X, y),
    )
    yield {
        "fit": medians[0], "public": medians[1], "iterations": int(models[0].n_iter_[0]),
        "accuracy": models[0].score(X, y),
    }  # fmt: skip


def opacus(size):
    """Time one epoch of Opacus in each of its modes."""
    from _sgd_speed_opacus import cells

    X, score = make(size, np.float32)
    yield from cells(X, labels(score), BATCH, CSR_STEPS, **BUDGET)


def main():
    """Run one peer on all sizes."""
    warnings.simplefilter("ignore")
    peer, sizes = sys.argv[1], [tuple(size) for size in json.loads(sys.argv[2])]
    run = {"diffprivlib": diffprivlib, "opacus": opacus}[peer]
    for size in sizes:
        for cell in run(size):
            print(json.dumps({"rows": name_of(size), "version": version(peer), **cell}), flush=True)


if __name__ == "__main__":
    main()

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rivals of private logistic regression, on one page: docs/benchmarks/rivals.rst.

AIM with what is learned from its model (see `_rivals_peer.py`), in an environment of its own, and
methods without a package (`_rivals_methods.py`), beside ours, on tables of people
(`_rivals_tables.py`) and on sparse rows::

    pip install ".[bench]"
    python benchmarks/rivals.py             # about 30 minutes of one core, most of it AIM
    python benchmarks/rivals.py --quick     # one epsilon, a tiny model of AIM: a minute, no page

Every result is stored as soon as it is there (``--results DIR``): an interrupted run goes on where
it was. ``--part`` runs one part and writes no page, ``--report`` writes the page of what is stored.
"""

import functools
import itertools
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import _one_thread  # noqa: F401  before numpy
import _rivals_peer
import numpy as np
from _a9a import a9a_like
from _accuracy_store import Store, qualities
from _environments import run_page, run_there
from _rivals_methods import double_noise, sparse_frank_wolfe
from _rivals_page import (
    ADDITIVE,
    DEFAULTS,
    FRANK_WOLFE,
    LARGE,
    MANY,
    NEWTON,
    NORM,
    OUR_FRANK_WOLFE,
    OURS,
    PIPELINE,
    PLAIN,
    TABLE,
    USUAL,
    page,
)
from _rivals_peer import CODINGS, Linear, design
from _rivals_tables import CENSUS, split, tables
from _text import texts
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression

from skdp import DPKernelClassifier, DPLogisticRegression, dp_tabular_pipeline, solvers

DELTA, EPSILONS, SEEDS = 1e-5, (0.05, 0.1, 0.5, 1.0, 2.0), (100, 101, 102)
#: of AIM, which is slow; its largest model in MB, and iterations of inference in every round
AIM_SEEDS = {"earnings": 1, "income": 1, "employment": 1, "Adult": 1}
AIM_SIZE, AIM_ITERATIONS = 2, 100
#: larger models, for one split each: table, MB, iterations, what labels end with, epsilons
LARGER = (
    ("earnings", 80, 1000, DEFAULTS, (0.5, 1.0, 2.0)),
    ("Adult", 8, 100, LARGE, (1.0,)),
)
SPARSE_EPSILONS = (0.5, 1.0, 4.0)
#: radius and number of steps of sparse Frank-Wolfe: many, for one split, and fewer
LONG_WALK, GRID = (50.0, 4000), tuple(itertools.product((10.0, 50.0, 250.0), (50, 500)))
#: one split at one epsilon, and a tiny model of AIM
QUICK = {"seeds": SEEDS[:1], "epsilons": (1.0,), "names": ("Adult",)}
QUICK_AIM = {"epsilons": (1.0,), "names": {"Adult": 1}, "size": 0.05, "iterations": 5, "larger": ()}
QUICK_SPARSE = {"seeds": SEEDS[:1], "epsilons": (1.0,), "grid": GRID[:1], "long": (50.0, 50)}


def timed(make, X, y):
    """Return a fitted model, and the CPU seconds that it took."""
    start = time.process_time()
    model = make().fit(X, y)
    return model, time.process_time() - start


def measure(folder, environments=None, seeds=SEEDS, epsilons=EPSILONS, names=None):
    """Fit ours, Newton steps, and scikit-learn, on rows of several kinds."""
    warnings.simplefilter("ignore")
    store = Store(folder / "skdp.jsonl")
    for name, load in tables().items():
        if name not in (names or tables()):
            continue
        table = load()
        y, codes = table.y, table.codes
        rows = {
            USUAL: table.rows,
            **{c: design(codes, table.sizes, table.is_number, c) for c in CODINGS},
        }
        for (coding, X), seed in itertools.product(rows.items(), seeds):
            held, kept = split(len(y), seed)
            _measure_rows(store, (name, coding, seed), X, y, held, kept, epsilons)
        frame = table.frame
        for seed, epsilon in itertools.product(seeds, epsilons):
            if store.get(PIPELINE, name, TABLE, epsilon, seed) is None:
                held, kept = split(len(y), seed)
                model, seconds = timed(
                    lambda epsilon=epsilon: dp_tabular_pipeline(
                        "classifier", epsilon=epsilon, delta=DELTA, classes=[0, 1]
                    ),
                    frame.iloc[kept], y[kept],
                )  # fmt: skip
                found = qualities(model, frame.iloc[held], y[held])
                store.add(PIPELINE, name, TABLE, epsilon, seed, seconds=seconds, **found)


def _measure_rows(store, key, X, y, held, kept, epsilons):
    name, coding, seed = key
    test = X[held], y[held]
    if store.get(PLAIN, name, coding, None, seed) is None:
        model, seconds = timed(lambda: LogisticRegression(max_iter=1000, C=100.0), X[kept], y[kept])
        store.add(PLAIN, name, coding, None, seed, seconds=seconds, **qualities(model, *test))
    for epsilon in epsilons:
        given = {"epsilon": epsilon, "delta": DELTA, "classes": [0, 1]}
        ours = {
            OURS: functools.partial(DPLogisticRegression, **given),
            NORM: functools.partial(DPLogisticRegression, data_norm=1.0, **given),
        }
        if coding == USUAL and name in CENSUS:  # most columns of Adult are one-hot
            ours[ADDITIVE] = functools.partial(DPKernelClassifier, kernel="additive", **given)
        for label, make in ours.items():
            if store.get(label, name, coding, epsilon, seed) is None:
                model, seconds = timed(make, X[kept], y[kept])
                found = qualities(model, *test)
                store.add(label, name, coding, epsilon, seed, seconds=seconds, **found)
        if store.get(NEWTON, name, coding, epsilon, seed) is None:
            start, rng = time.process_time(), np.random.default_rng()
            found = [
                double_noise(X[kept], y[kept], epsilon, DELTA, bound=bound, clip=clip, rng=rng)
                for bound, clip in itertools.product((False, True), repeat=2)
            ]
            seconds = (time.process_time() - start) / len(found)
            best = max((qualities(Linear(w), *test) for w in found), key=lambda q: q["auc"])
            store.add(NEWTON, name, coding, epsilon, seed, seconds=seconds, **best)


def sparse_rows():
    """Return rows of 0 and 1, classes, and a public bound on their ones, by name."""
    words, verdicts = texts()
    hashed = HashingVectorizer(n_features=2**14, alternate_sign=False, binary=True, norm=None)
    census, y, more, y_more = a9a_like()
    return {
        "reviews": (sparse.csr_array(hashed.transform(words)), verdicts, 48),
        "a9a": (sparse.csr_array(sparse.vstack([census, more])), np.concatenate([y, y_more]), 14),
    }


def measure_sparse(
    folder, environments=None, seeds=SEEDS, epsilons=SPARSE_EPSILONS, grid=GRID,
    long=LONG_WALK,
):  # fmt: skip
    """Fit ours and the sparse Frank-Wolfe method on sparse rows."""
    warnings.simplefilter("ignore")
    store, rng = Store(folder / "sparse.jsonl"), np.random.default_rng()
    for name, (X, y, ones) in sparse_rows().items():
        for seed, epsilon in itertools.product(seeds, (None, *epsilons)):
            held, kept = split(len(y), seed)
            test, own = (X[held], y[held]), {"data_norm": ones**0.5, "classes": [0, 1]}
            models = {PLAIN: lambda: LogisticRegression(max_iter=1000, C=0.1)}
            if epsilon is not None:
                few = solvers.FrankWolfe(sparsity=ones)
                models = {
                    OURS: lambda e=epsilon, o=own: DPLogisticRegression(e, DELTA, **o),
                    OUR_FRANK_WOLFE: lambda e=epsilon, o=own, s=few: DPLogisticRegression(
                        e, DELTA, solver=s, **o
                    ),
                }
            for label, make in models.items():
                if store.get(label, name, "", epsilon, seed) is None:
                    model, seconds = timed(make, X[kept], y[kept])
                    found = qualities(model, *test)
                    store.add(label, name, "", epsilon, seed, seconds=seconds, **found)
            rivals = {} if epsilon is None else {FRANK_WOLFE: grid}
            if rivals and seed == seeds[0]:
                rivals[MANY] = (long,)
            for label, settings in rivals.items():
                if store.get(label, name, "", epsilon, seed) is not None:
                    continue
                start = time.process_time()
                found = [
                    sparse_frank_wolfe(
                        X[kept], y[kept], epsilon, DELTA, bound=bound, steps=steps, rng=rng
                    )
                    for bound, steps in settings
                ]
                seconds = (time.process_time() - start) / len(found)
                best = max((qualities(Linear(w), *test) for w in found), key=lambda q: q["auc"])
                store.add(label, name, "", epsilon, seed, seconds=seconds, **best)


def measure_peer(
    folder, environments=None, epsilons=EPSILONS, names=None, size=AIM_SIZE,
    iterations=AIM_ITERATIONS, larger=LARGER,
):  # fmt: skip
    """Run AIM on the same rows, and larger models of it on a few."""
    splits = Path(folder) / "splits"
    splits.mkdir(parents=True, exist_ok=True)
    runs = []
    for name, number in (names or AIM_SEEDS).items():
        table = tables()[name]()
        for seed in SEEDS[:number]:
            held, kept = split(len(table.y), seed)
            parts = {"codes": table.codes[kept], "codes_test": table.codes[held]}
            parts |= {"y": table.y[kept], "y_test": table.y[held]}
            file = splits / f"{name}-{seed}.npz"
            np.savez(file, sizes=table.sizes, is_number=table.is_number, **parts)
            runs.append((file, size, iterations, "", epsilons))
    for name, *other in larger:
        runs.append((splits / f"{name}-{SEEDS[0]}.npz", *other))
    for file, megabytes, rounds, note, wanted in runs:
        run_there(
            "dpmm", environments, _rivals_peer.__file__, Path(folder) / "dpmm.jsonl", file,
            "--epsilons", *wanted, "--delta", DELTA, "--size", megabytes, "--iterations", rounds,
            "--note", note,
        )  # fmt: skip


if __name__ == "__main__":
    PARTS = {"skdp": (measure, QUICK), "sparse": (measure_sparse, QUICK_SPARSE)}
    PARTS["dpmm"] = (measure_peer, QUICK_AIM)
    sized = functools.partial(page, size=(AIM_SIZE, AIM_ITERATIONS))
    run_page(__doc__, "rivals", PARTS, sized)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The rows and splits of the accuracy page, the same for every library."""

import functools
import os
from pathlib import Path

import numpy as np
from _datasets import SUITE, mnist
from _tables import KEPT_ASIDE, kept_aside
from _text import reviews
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

__all__ = ["DATA", "SEEDS", "SPARSITY", "describe", "export", "public_model", "split"]

#: rows of MNIST that are learned from
N_IMAGES = 10_000
#: 2^12 columns of hashed words: peers take dense rows only
BITS = 12
#: a public bound: the longest review has 43 words
SPARSITY = 48
FIRST_SEED = 100
#: name, number of splits, strength of the penalty of the non-private model
DATA = {  # from the fastest to the slowest
    "breast_cancer": (10, 100.0),
    "digits": (5, 100.0),
    "synthetic": (5, 100.0),
    "text": (3, 5.0),
    "Adult": (3, 100.0),
    "MNIST": (2, 100.0),
    # looked at once, with few rows of methods
    **dict.fromkeys(KEPT_ASIDE, (3, 100.0)),
}
SEEDS = {name: range(FIRST_SEED, FIRST_SEED + n) for name, (n, _) in DATA.items()}
_LOADERS = {
    "synthetic": SUITE["synthetic 10,000 x 20"],
    "text": lambda: reviews(BITS),
    **{name: functools.partial(kept_aside, name) for name in KEPT_ASIDE},
}


@functools.cache
def _loaded(name):
    if name == "MNIST":
        return mnist()
    return _LOADERS.get(name, SUITE.get(name))()


def split(name, seed):
    """Return training rows, test rows, training labels and test labels of one split."""
    if name == "MNIST":
        X, X_test, y, y_test = _loaded(name)
        kept = np.random.default_rng(seed).choice(len(X), N_IMAGES, replace=False)
        return X[kept], X_test, y[kept], y_test
    return train_test_split(*_loaded(name), test_size=0.2, random_state=seed)


def public_model(name):
    """Return the non-private classifier of a data set."""
    return LogisticRegression(C=DATA[name][1], max_iter=2000)


def describe(name):
    """Return a sentence fragment on the rows."""
    X, X_test, y, y_test = split(name, FIRST_SEED)
    largest = np.bincount(y_test).max() / len(y_test)
    kind = ", sparse" if sparse.issparse(X) else ""
    return (
        f"{X.shape[0]:,} rows to learn from, {X_test.shape[0]:,} to test with, "
        f"{X.shape[1]:,} columns{kind}, {len(np.unique(y))} classes, of which the "
        f"largest has {100 * largest:.1f} % of the test rows"
    )


def export(name, seed, folder):
    """Write a split for the environments of peers, dense, and return the file."""
    file = Path(folder) / f"{name}-{seed}.npz"
    if not file.is_file():
        X, X_test, y, y_test = split(name, seed)
        X, X_test = (part.toarray() if sparse.issparse(part) else part for part in (X, X_test))
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(f".{os.getpid()}.npz")  # others may write it too
        np.savez(unfinished, X=X, X_test=X_test, y=y, y_test=y_test)
        unfinished.rename(file)
    return file

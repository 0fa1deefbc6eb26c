# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""AIM, and what is learned from its model: runs in the environment of dpmm.

A model of the marginals of the discretised table is released (McKenna et al. 2022). From it come
rows, on which logistic regression is fitted (AIM + logistic regression), and second moments, of
which a quadratic in place of the logistic loss has its minimum (DD-SSP, Ferrando and Sheldon 2025).

AIM counts the addition or removal of a row. Where a row is replaced a marginal moves by the root of
two times as much, which doubles the price of its noise in zCDP; and errors by which marginals are
chosen move by twice as much, which makes the price of a choice fourfold. Nine tenths are spent
on noise.
"""

import argparse
import itertools
import time
import warnings
from pathlib import Path

import numpy as np
from _accuracy_store import Store, qualities
from sklearn.linear_model import LogisticRegression

#: by how much the price of AIM grows where a row is replaced
REPLACED = 0.9 * 2 + 0.1 * 4
#: rows for linear models: numbers as one column each, or every bin as a column
CODINGS = ("bins as numbers", "bins one-hot")
AIM, SSP = "AIM + logistic regression", "DD-SSP"


def design(codes, sizes, is_number, coding):
    """Return rows of a discretised table, in the unit ball."""
    blocks = []
    for column, size, number in zip(codes.T, sizes, is_number, strict=True):
        if number and coding == CODINGS[0]:
            blocks.append((2 * column / (size - 1) - 1)[:, None])
        else:
            blocks.append(column[:, None] == np.arange(size))
    return np.hstack(blocks).astype(np.float64) / np.sqrt(len(sizes))


class Linear:
    """A linear model of two classes with given coefficients."""

    def __init__(self, coef):
        self.coef = coef

    def predict_proba(self, X):
        margin = np.clip(X @ self.coef, -500, 500)
        p = 1 / (1 + np.exp(-margin))
        return np.stack([1 - p, p], axis=1)

    def score(self, X, y):
        return np.mean((X @ self.coef > 0) == y)


def from_moments(codes, weights, sizes, is_number, coding, ridge=1e-6):
    """Return the minimum of the quadratic closest to the logistic loss on [-6, 6].

    Parameters
    ----------
    codes, weights : list of ndarray
        For every pair of attributes, the class among them, the cells and their counts.
    """
    fit = np.polynomial.chebyshev.Chebyshev.interpolate(
        lambda t: np.log1p(np.exp(-t)), 2, domain=[-6, 6]
    )
    _, slope, curve = fit.convert(kind=np.polynomial.Polynomial).coef
    parts = [
        design(np.arange(size)[:, None], [size], [number], coding)
        for size, number in zip(sizes, is_number, strict=True)
    ]
    starts = np.cumsum([0, *(part.shape[1] for part in parts)])
    gram, cross = np.zeros((starts[-1], starts[-1])), np.zeros(starts[-1])
    n = len(parts)
    for (i, j), table in zip(codes, weights, strict=True):
        rows = slice(starts[i], starts[i + 1])
        if j == n:  # the class, as -1 and 1
            cross[rows] = parts[i].T @ (table[:, 1] - table[:, 0]) / np.sqrt(n)
            gram[rows, rows] = parts[i].T @ (table.sum(axis=1)[:, None] * parts[i]) / n
        else:
            block = parts[i].T @ table @ parts[j] / n
            columns = slice(starts[j], starts[j + 1])
            gram[rows, columns], gram[columns, rows] = block, block.T
    gram += ridge * np.trace(gram) * np.eye(len(gram))
    return Linear(np.linalg.solve(2 * curve * gram, -slope * cross))


def measure(store, arrays, key, epsilon, delta, size, iterations, note):
    """Store what AIM's rows and moments are good for; ``key`` is of the table and the split."""
    import pandas as pd
    from dpmm.models.aim import AIMGM

    table_name, seed = key
    sizes, is_number = arrays["sizes"].tolist(), arrays["is_number"].tolist()
    table = np.column_stack([arrays["codes"], arrays["y"]])
    names = [f"a{i}" for i in range(table.shape[1])]
    domain = dict(zip(names, [*sizes, 2], strict=True))
    start = time.process_time()
    model = AIMGM(
        epsilon=epsilon, delta=delta, domain=domain, n_jobs=1, compress=False,
        max_model_size=size, n_iters=iterations,
    )  # fmt: skip
    model.generator.rho /= REPLACED
    model.set_random_state(np.random.RandomState())
    model.fit(pd.DataFrame(table, columns=names))
    seconds = time.process_time() - start
    drawn = model.generate(n_records=len(table))[names].to_numpy()
    pairs = list(itertools.combinations(range(len(names)), 2))
    marginals = [
        np.asarray(model.generator.model.project([names[i], names[j]]).datavector(flatten=False))
        for i, j in pairs
    ]
    for coding in CODINGS:
        held = design(arrays["codes_test"], sizes, is_number, coding)
        rows = design(drawn[:, :-1], sizes, is_number, coding)
        plain = LogisticRegression(max_iter=1000, C=100.0).fit(rows, drawn[:, -1])
        quadratic = from_moments(pairs, marginals, sizes, is_number, coding)
        for label, found in ((AIM, plain), (SSP, quadratic)):
            values = qualities(found, held, arrays["y_test"])
            store.add(label + note, table_name, coding, epsilon, seed, seconds=seconds, **values)


def main():
    """Measure what is not stored yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("splits", type=Path, nargs="+", help="files of the name TABLE-SEED.npz")
    parser.add_argument("--epsilons", type=float, nargs="+")
    parser.add_argument("--delta", type=float)
    parser.add_argument("--size", type=float, help="largest model in MB")
    parser.add_argument("--iterations", type=int, help="of inference, in every round")
    parser.add_argument("--note", default="", help="what the labels end with")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    store = Store(arguments.out)
    for file, epsilon in itertools.product(arguments.splits, arguments.epsilons):
        name, seed = file.stem.rsplit("-", 1)
        if store.get(SSP + arguments.note, name, CODINGS[-1], epsilon, int(seed)) is None:
            with np.load(file) as arrays:
                measure(
                    store, arrays, (name, int(seed)), epsilon, arguments.delta, arguments.size,
                    arguments.iterations, arguments.note,
                )  # fmt: skip


if __name__ == "__main__":
    main()

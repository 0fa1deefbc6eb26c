# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Audit every estimator and mechanism of the library; write docs/benchmarks/audits.rst.

Three layers: coupled traces of every configuration of the conformance grid, the tests of exact
sensitivities and samplers, and black-box audits; these also of the library with one known bug at a
time, which an audit should find. About half an hour on two idle cores::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/audit_all.py

All rows are made up. Fits are seeded; how many there are depends on how long a fit takes, so
figures differ a little between machines. ``--seconds`` sets the time for one line, ``--only``
takes the lines whose text contains a word, ``--out`` names another file, and ``--results`` one that
keeps what has passed, from which an interrupted call goes on.
"""

import argparse
import os
import re
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _accuracy_store import Store
from _audit_mutants import Mutant, mutants
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline

sys.path.insert(0, str(Path(__file__).parent.parent))
import skdp
from skdp import federated, local, metrics, papers
from skdp.audit import adversarial_pairs, audit_privacy, trace_privacy
from tests.audit.test_trace import neighbours_for
from tests.test_common import ALL

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "audits.rst"
CONFIDENCE = 0.999
LEAST, MOST = 100, 2000
# runs of a mutant: what is found must not depend on how fast the machine is
MUTANT_RUNS = 3000

LABEL = "equal rows, another label"
OPPOSITE = "rows on two sides, opposite rows"
NOTHING = "equal rows, one row against nothing"


class Reports(BaseEstimator):
    """What a privatizer makes of the rows it is fitted to.

    It makes the privatizer by itself, and keeps none: what a wrapper learns beside an estimator
    that it holds is not covered by any claim.
    """

    def __init__(self, privatizer):
        self.privatizer = privatizer

    def fit(self, X):
        """Fit, and keep the report of the first row, the one that differs."""
        fitted = self.privatizer().fit(X)
        self.reports_ = fitted.transform(X)[0]
        self.privacy_spent_ = fitted.epsilon, 0.0
        return self


class HeldOutScores(BaseEstimator):
    """Scores of public predictions on private labels: every other row is said to be of class 1."""

    def __init__(self, scores):
        self.scores = scores

    def fit(self, X, y):
        """Release the scores of the labels."""
        found = self.scores(y, np.arange(len(y)) % 2)
        self.released_ = np.array([getattr(found, name) for name in found._listed])
        self.privacy_spent_ = found.privacy_spent_
        return self


def classified(y, predicted):
    """Return the scores of a classifier, all of one histogram."""
    terms = {"classes": (0, 1), "thresholds": [0.5]}
    return metrics.DPClassificationScores.from_predictions(y, predicted, epsilon=2.0, **terms)


def confused(y, predicted):
    """Return the scores of predicted labels."""
    terms = {"classes": (0, 1)}
    return metrics.DPConfusionMatrix.from_predictions(y, predicted, epsilon=2.0, **terms)


def regressed(y, predicted):
    """Return the scores of a regressor."""
    terms = {"bounds": (0.0, 1.0)}
    return metrics.DPRegressionScores.from_predictions(y, predicted, epsilon=2.0, **terms)


def against_null(x, n_rows=4):
    """Return rows at 0, the first of which is x in one data set: 0 contributes nothing."""
    X = np.zeros((n_rows, len(x)))
    first = X.copy()
    first[0] = x
    return first, X


def cases():
    """Yield (estimator, pair by name or as data sets)."""
    binary = {"classes": (0, 1), "data_norm": 1.0}
    pure = {"delta": 0.0}
    for kind in (skdp.DPLogisticRegression, skdp.DPHingeSVM):
        smooth = {"smoothing": 0.5} if kind is skdp.DPHingeSVM else {}
        for solver in (
            "accelerated",
            "gd",
            "sgd",
            "lazy-sgd",
            "preconditioned",
            papers.AcceleratedOnePass(),
        ):
            yield kind(epsilon=8.0, solver=solver, **binary), LABEL
        yield kind(epsilon=8.0, classes=(0, 1)), LABEL
        yield kind(epsilon=8.0, adjacency="zero-out", **binary), NOTHING
        yield kind(epsilon=8.0, mechanism="objective", **binary, **smooth), LABEL
        yield kind(epsilon=4.0, mechanism="objective", **pure, **binary, **smooth), LABEL
        yield kind(epsilon=8.0, mechanism="output", **binary, **smooth), LABEL
        yield kind(epsilon=4.0, mechanism="output", **pure, **binary, **smooth), LABEL
        for solver in ("phased", papers.Localized(), papers.BiasReduced()):
            yield kind(epsilon=8.0, solver=solver, **binary), LABEL
        for solver in (papers.OnePass(), "frank-wolfe"):
            yield kind(epsilon=8.0, solver=solver, **smooth, **binary), LABEL
        exponential = {"mechanism": "exponential", "coef_bound": 10.0, "epsilon": 4.0}
        yield kind(**exponential, **binary), LABEL
    for kernel in ("additive", "rbf"):
        yield skdp.DPKernelClassifier(epsilon=8.0, kernel=kernel, classes=(0, 1)), LABEL
    mapped = skdp.RandomFourierFeatures(n_components=4)
    yield make_pipeline(mapped, skdp.DPLogisticRegression(epsilon=8.0, **binary)), LABEL
    yield skdp.DPLpRegressor(epsilon=8.0), LABEL
    yield skdp.DPRidge(epsilon=8.0), LABEL
    yield skdp.DPKernelRegressor(epsilon=8.0, kernel="additive"), LABEL
    yield skdp.DPLpRegressor(epsilon=8.0, p=1), LABEL
    yield skdp.DPLpRegressor(epsilon=8.0, p="huber", solver="sgd"), LABEL
    yield skdp.DPLpRegressor(epsilon=20.0, clipping_norm="private"), LABEL
    yield skdp.DPLpRegressor(epsilon=8.0, solver="output"), LABEL
    yield skdp.DPLpRegressor(epsilon=8.0, solver=papers.Localized()), LABEL
    yield skdp.DPCovariance(epsilon=4.0, data_norm=1.0), "zero rows, another feature"
    yield skdp.DPPCA(epsilon=4.0, data_norm=1.0), "zero rows, another feature"
    yield skdp.DPHistogram(epsilon=2.0, bins=2, bounds=(-1.0, 1.0)), OPPOSITE
    for scores in (confused, classified, regressed):
        yield HeldOutScores(scores), OTHER_LABEL
    yield skdp.DPMean(epsilon=4.0, data_norm=1.0), OPPOSITE
    yield skdp.DPMean(epsilon=2.0, mechanism="laplace", data_norm=1.0), OPPOSITE
    yield skdp.DPMean(epsilon=4.0, adjacency="zero-out", data_norm=1.0), against_null([1.0, 0.0])
    yield skdp.DPMean(epsilon=4.0, bounds=(0.0, 1.0)), OPPOSITE
    for mechanism in ("clipped", "coinpress", "shifted-clipped"):
        yield skdp.DPMean(epsilon=8.0, mechanism=mechanism, data_norm=1.0), OPPOSITE
    yield skdp.DPHeavyTailedMean(epsilon=8.0), OPPOSITE
    yield skdp.DPHeavyTailedMean(epsilon=8.0, **pure), OPPOSITE
    yield skdp.DPMedian(epsilon=4.0, data_norm=1.0), OPPOSITE
    yield skdp.DPMedian(epsilon=2.0, mechanism="rank", bounds=(-1.0, 1.0)), OPPOSITE
    yield skdp.DPMedian(epsilon=4.0, mechanism="gradient", data_norm=1.0), OPPOSITE
    yield skdp.DPQuantile(epsilon=2.0, bounds=(-1.0, 1.0)), OPPOSITE
    yield skdp.DPNormQuantile(epsilon=2.0, tail=2), "rows on two sides, a row and zeros"
    for mechanism in ("soft-threshold", "projection", "histogram", "compressed-sensing"):
        pair = "rows on two sides, another feature"
        yield skdp.DPSparseMeanEstimator(epsilon=8.0, sparsity=1, mechanism=mechanism), pair
    yield skdp.DPStandardScaler(epsilon=8.0, bounds=(-1.0, 1.0)), OPPOSITE
    yield skdp.DPStandardScaler(epsilon=8.0), OPPOSITE
    yield skdp.DPFeatureCenterer(epsilon=8.0, threshold=None), OPPOSITE
    yield skdp.DPFeatureCenterer(epsilon=8.0), OPPOSITE
    pair = "zero rows, another feature"
    yield skdp.DPFrequentFeatures(epsilon=4.0, n_features_to_select=1, sparsity=1), pair
    model = skdp.DPLogisticRegression(classes=(0, 1), solver="gd", max_iter=4, data_norm=1.0)
    for strategy in ("all", "subset"):
        grid = {"fit_intercept": [True, False]}
        yield skdp.DPGridSearchCV(model, grid, epsilon=8.0, strategy=strategy), LABEL
    yield from local_cases()


def local_cases():
    """Yield the same for local reports and clients."""
    for given in ({}, {"magnitude": "flip"}, {"mechanism": "projunit", "n_components": 1}):
        yield Reports(partial(local.PrivUnitPrivatizer, epsilon=2.0, **given)), OPPOSITE_ROWS
    cube = {"mechanism": "cube", "bounds": (-1.0, 1.0)}
    yield Reports(partial(local.PrivUnitPrivatizer, epsilon=2.0, **cube)), OPPOSITE_ROWS
    scalars = ([[0.0], [0.5]], [[1.0], [0.5]])
    pair = tuple(np.array(rows) for rows in scalars)
    yield Reports(partial(local.ScalarPrivatizer, epsilon=2.0)), pair
    for kind in (local.LocalDPMean, local.LocalDPCovariance, local.LocalDPPCA):
        yield kind(epsilon=2.0), OPPOSITE_ROWS
    yield local.LocalDPFrequencies(epsilon=2.0, categories=[-1.0, 1.0]), OPPOSITE
    yield local.LocalDPLinearRegression(epsilon=4.0), LABEL
    yield local.LocalDPLogisticRegression(epsilon=4.0, classes=(0, 1)), LABEL
    yield federated.FederatedDPLogisticRegression(epsilon=8.0, classes=(0, 1)), LABEL


#: rows of which the first has another label
OTHER_LABEL = tuple((np.zeros((6, 1)), np.array([label, 0, 1, 1, 0, 1])) for label in (0, 1))
OPPOSITE_ROWS = tuple(np.array([[side, 0.0], [0.0, 0.5], [0.0, -0.5]]) for side in (1.0, -1.0))


def data_of(estimator, pair):
    """Return the two data sets of a pair, given by its name or as they are."""
    if not isinstance(pair, str):
        return [part if isinstance(part, tuple) else (part,) for part in pair]
    inner = getattr(estimator, "estimator", estimator)
    pairs = {p.name: (p.first, p.second) for p in adversarial_pairs(inner)}
    return pairs[pair]


def audited(estimator, pair, seconds):
    """Return the result of one audit, of about so many seconds on two cores."""
    first, second = data_of(estimator, pair)
    times = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # the first one calibrates, once for all
        for _ in range(4):
            began = time.perf_counter()
            type(estimator)(**estimator.get_params(deep=False)).fit(*first)
            times.append(time.perf_counter() - began)
    runs = int(np.clip(seconds / min(times), LEAST, MOST)) // 20 * 20
    return measured(estimator, first, second, runs)


def measured(estimator, first, second, runs):
    """Return the result of one audit with a given number of runs."""
    return audit_privacy(
        estimator, first, neighbour=second, n_runs=runs, confidence=CONFIDENCE,
        random_state=0, n_jobs=2,
    )  # fmt: skip


HEADER = """\
.. This file is written by benchmarks/audit_all.py.

Audits of every estimator
=========================

Three layers, each of which is blind to something that another one sees (:ref:`audits`): coupled
traces, exact checks of sensitivities and of samplers, and black boxes.
``python benchmarks/audit_all.py`` runs all of them and writes this page.
"""


TRACES = """
Coupled traces
--------------

Every configuration of the conformance grid, by :func:`skdp.audit.trace_privacy`, on 60 made-up rows
of which one is three times too long and stands on the other side in the neighbour, or is a null row
under zero-out. The "measured part" is what the distances of all releases cost, over what the ledger
claims; of a search, which releases one of its runs, the release with the largest part. Above 1 it
would contradict the claim. Below 1 these rows are not the worst ones. {n_traces} traces with
{n_releases:,} releases: {verdict}.

.. list-table::
   :header-rows: 1

   * - estimator
     - configurations
     - releases
     - measured part
     - passed
"""


CHECKS = """
Exact checks
------------

Sensitivities of queries against worst pairs and random neighbours, prices of laws against exact
densities and other accountants, samplers against exact laws and other exact samplers: tests, of
the default tier, all of which passed.

.. list-table::
   :header-rows: 1

   * - what
     - files below ``tests/``
     - tests
"""


BLACK_BOX = """
Black boxes
-----------

Lower bounds on epsilon at the claim's delta, by :func:`skdp.audit.audit_privacy`, each with a
confidence of {confidence:g} %. "Gaussian" is the second figure, which holds if the trade-off
between errors is that of Gaussian noise. Each line has one pair of made-up data sets and few
runs: a line that is far below its claim says little, a line above it would say
that the claim is wrong. Bounds are capped by the runs: with 500 behind the bound none exceeds
about 4. Claims are what the fitted estimator has spent, or, for the reports of a
privatizer, the budget of one report.

.. list-table::
   :header-rows: 1

   * - estimator
     - claimed epsilon
     - delta
     - lower bound
     - Gaussian
     - runs each
     - claim
"""

#: which tests are the second layer
EXACT = {
    "sensitivities of queries": (
        "test_row_queries.py", "location/test_sparse_queries.py", "model_selection/test_scorers.py",
        "preprocessing/test_standard_scaler.py", "location/test_norm_quantile.py",
        "test_private_minimizers.py",
    ),
    "prices of laws": (
        "privacy/test_laws.py", "privacy/test_accounting.py", "privacy/test_sampling.py",
        "privacy/test_histogram.py", "privacy/test_secret_subset.py", "audit/test_measures.py",
    ),
    "samplers": (
        "auditors", "sampling", "randomisers",
    ),
}  # fmt: skip


MUTANTS = """
What an audit finds in a library with a bug
-------------------------------------------

The same audit, of the library with one bug at a time, put in for the occasion. Claims are those of
the library without the bug. "(Gaussian)": the second figure contradicts the claim, with the same
confidence; these mechanisms are Gaussian. Where the last bug is concerned, an audit of the final
model is blind, whatever the runs: noise that repeats is found by the tests of noise streams and by
traces (:ref:`audits`).

.. list-table::
   :header-rows: 1

   * - estimator
     - bug
     - claimed epsilon
     - delta
     - lower bound
     - Gaussian
     - runs each
     - claim
"""


def name_of(estimator):
    """Return an estimator as it is written."""
    own = estimator.privatizer() if isinstance(estimator, Reports) else estimator
    if isinstance(estimator, HeldOutScores):
        return f"scores of {estimator.scores.__name__} rows"
    return f"``{' '.join(str(own).split())}``"


def row(estimator, result):
    """Return one row of the table."""
    gaussian = result.epsilon_gaussian
    verdict = "not contradicted" if result.passed else "CONTRADICTED"
    own = [name_of(estimator)]
    if isinstance(estimator, Mutant):
        own = [name_of(estimator.estimator), estimator.bug]
        # Laplace noise is not Gaussian
        if result.passed and result.delta and gaussian > result.epsilon_claimed:
            verdict = "CONTRADICTED (Gaussian)"
    cells = [
        *own,
        f"{result.epsilon_claimed:.3g}",
        f"{result.delta:g}",
        f"{result.epsilon_lower:.2f}",
        "" if gaussian is None else f"{gaussian:.2f}",
        str(result.n_runs),
        verdict,
    ]
    return cells_of(cells)


def traces():
    """Return the section of coupled traces, and how many failed."""
    found = {}
    for estimator in ALL:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = trace_privacy(estimator, **neighbours_for(estimator))
        found.setdefault(type(estimator).__name__, []).append(result)
        if result.passed is False:
            print(result, flush=True)
    every = [result for results in found.values() for result in results]
    failed = sum(result.passed is False for result in every)
    text = TRACES.format(
        n_traces=len(every),
        n_releases=sum(len(result.releases) for result in every),
        verdict=f"{failed} contradict their claim" if failed else "none contradicts its claim",
    )
    for name, results in sorted(found.items()):
        shares = [r.share for r in results if r.releases and not np.isnan(r.share)]
        part = "not measured" if any(r.releases for r in results) else "releases nothing"
        if shares:
            part = f"{min(shares):.4f} to {max(shares):.4f}"
        cells = [
            f":class:`~skdp.{name}`",
            str(len(results)),
            str(sum(len(r.releases) for r in results)),
            part,
            str(sum(r.passed is not False for r in results)),
        ]
        text += cells_of(cells)
    return text, failed


def exact_checks():
    """Return the section of exact checks, and whether any failed."""
    text, failed = CHECKS, 0
    for what, files in EXACT.items():
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n0", *(f"tests/{name}" for name in files)],
            cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        failed += done.returncode != 0
        passed = re.search(r"(\d+) passed", done.stdout)
        print(what, done.stdout.splitlines()[-1:], flush=True)
        names = ", ".join(f"``{name}``" for name in files)
        text += cells_of([what, names, passed[1] if passed else "FAILED"])
    return text, failed


def cells_of(cells):
    """Return one row of a table."""
    lines = [f"     - {cell}".rstrip() for cell in cells]
    lines[0] = "   * - " + cells[0]
    return "\n".join(lines) + "\n"


def black_box(estimator, pair, seconds):
    """Return the row of one audit, and how much of it failed."""
    result = audited(estimator, pair, seconds)
    print(name_of(estimator), result, f"failed fits: {result.n_failed}", sep="\n", flush=True)
    return row(estimator, result), int(not result.passed) + sum(result.n_failed)


def mutant(estimator, pair):
    """Return the row of one known bug, which nothing can be wrong with."""
    text = row(estimator, measured(estimator, *data_of(estimator, pair), MUTANT_RUNS))
    print(text, flush=True)
    return text, 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="for one line, about")
    parser.add_argument("--only", default="", help="lines with this text only; write nothing")
    parser.add_argument("--results", type=Path, help="file that keeps what passed, to go on from")
    parser.add_argument("--out", type=Path, default=PAGE)
    arguments = parser.parse_args()
    store = Store(arguments.results) if arguments.results and not arguments.only else None
    failed = 0

    def once(name, measure):
        nonlocal failed
        known = store.get(name) if store else None
        if known is not None:
            return known["text"]
        text, bad = measure()
        failed += bad
        if store and not bad:
            store.add(name, text=text)
        return text

    parts = []
    if not arguments.only:
        parts += [once(part.__name__, part) for part in (traces, exact_checks)]
    rows = [
        once(
            f"{name_of(estimator)}, {pair}", partial(black_box, estimator, pair, arguments.seconds)
        )
        for estimator, pair in cases()
        if arguments.only in name_of(estimator)
    ]
    if not arguments.only:
        rows.append(MUTANTS)
        for estimator, pair in mutants():
            name = f"mutant: {name_of(estimator)}, {pair}"
            rows.append(once(name, partial(mutant, estimator, pair)))
        header = HEADER + "".join(parts) + BLACK_BOX.format(confidence=100 * CONFIDENCE)
        arguments.out.write_text(header + "".join(rows), encoding="utf-8")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Second moments beside others, on one page: docs/benchmarks/moments.rst.

Components of `DPPCA`, of Analyze Gauss and of diffprivlib; coefficients of `DPRidge`,
`DPLpRegressor` and AdaSSP::

    pip install ".[bench]"
    python benchmarks/moments.py             # about 8 minutes of one core
    python benchmarks/moments.py --quick     # a smoke run, writes no page

Every result is stored as soon as it is there, as in `regression.py`.
"""

import itertools
import math
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import _moments_peer
import _one_thread  # noqa: F401  before numpy
import numpy as np
from _accuracy_store import Store, read
from _environments import run_page, run_there
from _machine import machine, versions
from _mechanisms_report import standard_error, table
from _regression_rivals import adassp
from _tables import regression
from regression import mapped, score_of, split
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LinearRegression

from skdp import DPPCA, DPLpRegressor, DPRidge
from skdp.privacy import gdp_mu

DELTA, COMPONENTS, SEEDS = 1e-6, 5, range(5)
EPSILONS = (0.1, 1.0, 10.0)
TABLES = ("digits", "breast cancer", "labsup", "flights", "spiked")
REGRESSIONS = ("k401", "labsup", "cpssw8", "flights")
PCA_LABELS = (
    "``DPPCA()``, nothing known", "``DPPCA(data_norm=, assume_centered=True)``", "Analyze Gauss",
    _moments_peer.LABEL,
)  # fmt: skip
RIDGE_LABELS = ("``DPRidge()``", "``DPLpRegressor()``", "AdaSSP, bounds of the data")

INTRODUCTION = """\
.. This file is written by benchmarks/moments.py.

Second moments beside others
============================

Replace-one, δ = 1e-6; mean ± standard error over {n} fits with fresh noise. Written by
``python benchmarks/moments.py``.

Principal components
--------------------

The variance of the rows along five private components, in parts of that along the best five: 1 is
the result without privacy. ``DPPCA()`` is given nothing but the rows. The others are told the mean
of the rows, which is subtracted, and the length of the longest one, read off the data, for which
nobody pays. Analyze Gauss (Dwork et al. 2014) adds symmetric Gaussian noise to the sum of x x'; it
was written here, with the same exact composition. diffprivlib is told the ranges of columns, too;
† it states δ = 0 and no adjacency, and draws by rejection: where a fit took more than 20 seconds it
was stopped.

"""
RIDGE = """\
Ridge regression
----------------

R² on a fifth of the rows that was held out. The first two are given nothing but the data. AdaSSP
(Wang 2018) is told ranges of columns, the median of the targets, the longest row and the largest
target, read off the data.

"""
COMPONENTS_READ = """\
With a radius and a mean that are known, ours is Analyze Gauss, and level with it: 60 fits to
breast cancer at ε = 1 have 0.412 ± 0.019, and 0.401 ± 0.020 there. Without any knowledge a mean,
a length around it and, with rows enough, units of columns are found first: that is ahead of both
on every table but digits, where it is level. On breast cancer nothing at all is searched at ε =
0.1: rows count as standardised and are cut to a length of 7, which leaves their direction, mostly
that of two areas, and no mean is taken off. That happens to be the direction of most variance,
too: by luck, and a warning says that scales were not searched. With more budget the mean is
found, and what is found is no worse.

"""
READING = """\
:class:`~skdp.DPLpRegressor` spends its budget on gradients in a geometry that it has learned: take
it for predictions. :class:`~skdp.DPRidge` has intervals and several targets. No rule chooses
between them, for they answer different questions.

"""


def rows_of(name):
    """Return the rows of a table."""
    if name == "digits":
        return load_digits().data
    if name == "breast cancer":
        return load_breast_cancer().data
    if name == "spiked":
        rng = np.random.default_rng(0)
        spikes = rng.normal(size=(20_000, 5)) * [5.0, 4.0, 3.0, 2.0, 1.5]
        basis = np.linalg.qr(rng.normal(size=(60, 5)))[0]
        return spikes @ basis.T + rng.normal(size=(20_000, 60))
    return regression(name)[0]


def analyze_gauss(X, norm, epsilon, rng):
    """Return components from one noisy sum of products of centered rows."""
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), norm)
    d, scale = X.shape[1], math.sqrt(2.0) / gdp_mu(epsilon, DELTA)
    noise = rng.normal(size=(d, d)) * scale / math.sqrt(2.0)
    # what is off the diagonal counts twice in the norm
    made = X.T @ X + (noise + noise.T) / math.sqrt(2.0)
    return np.linalg.eigh(made)[1][:, ::-1][:, :COMPONENTS].T


def components(label, X, norm, epsilon, seed):
    """Return the components of a method."""
    centered = X - X.mean(axis=0)
    if label == PCA_LABELS[0]:
        return DPPCA(COMPONENTS, epsilon, DELTA).fit(X).components_
    if label == PCA_LABELS[1]:
        given = {"data_norm": norm, "assume_centered": True}
        return DPPCA(COMPONENTS, epsilon, DELTA, **given).fit(centered).components_
    return analyze_gauss(centered, norm, epsilon, np.random.default_rng(seed))


def regressed(label, epsilon, X, y, X_test, y_test, public):
    """Return R2 of a method on held-out rows."""
    if label in RIDGE_LABELS[:2]:
        kind = DPRidge if label == RIDGE_LABELS[0] else DPLpRegressor
        return kind(epsilon, DELTA).fit(X, y).score(X_test, y_test)
    scaled, scaled_test, center, bounds = public
    found = adassp(scaled, y - center, epsilon, DELTA, rng=np.random.default_rng(), **bounds)
    return score_of(found, scaled_test, y_test - center)


def measure(
    folder, environments=None, names=TABLES, regressions=REGRESSIONS, seeds=SEEDS, epsilons=EPSILONS
):
    """Fit ours and what is written here; store shares of variance, and R2."""
    warnings.simplefilter("ignore")
    store = Store(folder / "skdp.jsonl")
    for name in names:
        X = rows_of(name)
        covariance = np.cov(X.T, bias=True)
        norm = float(np.linalg.norm(X - X.mean(axis=0), axis=1).max())
        best = np.linalg.eigvalsh(covariance)[::-1][:COMPONENTS].sum()
        for label, epsilon, seed in itertools.product(PCA_LABELS[:3], epsilons, seeds):
            if store.get(name, label, epsilon, seed) is None:
                V = components(label, X, norm, epsilon, seed)
                score = float(np.trace(V @ covariance @ V.T) / best)
                store.add(name, label, epsilon, seed, score=score)
    for name, seed in itertools.product(regressions, seeds):
        X, y, X_test, y_test = split(name, 100 + seed)
        if store.get(f"R2 {name}", "least squares", None, seed) is None:
            score = float(LinearRegression().fit(X, y).score(X_test, y_test))
            store.add(f"R2 {name}", "least squares", None, seed, score=score)
        scaled, scaled_test = mapped(X, X_test)
        center = np.median(y)
        bounds = {
            "row_bound": float(np.linalg.norm(scaled, axis=1).max()),
            "target_bound": float(np.abs(y - center).max()),
        }
        given = X, y, X_test, y_test, (scaled, scaled_test, center, bounds)
        for label, epsilon in itertools.product(RIDGE_LABELS, epsilons):
            if store.get(f"R2 {name}", label, epsilon, seed) is None:
                score = float(regressed(label, epsilon, *given))
                store.add(f"R2 {name}", label, epsilon, seed, score=score)


def measure_peer(
    folder, environments=None, names=TABLES, regressions=(), seeds=SEEDS, epsilons=EPSILONS
):
    """Run diffprivlib on the same rows."""
    tables = Path(folder) / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    for name in names:
        X = rows_of(name)
        np.savez(tables / f"{name}.npz", X=X, covariance=np.cov(X.T, bias=True))
    run_there(
        "diffprivlib", environments, _moments_peer.__file__,
        Path(folder) / "diffprivlib.jsonl", tables, "--components", COMPONENTS,
        "--epsilons", *epsilons, "--seeds", *seeds,
    )  # fmt: skip


def page(folder):
    """Return the text of the page, from what is stored in a folder."""
    found = {}
    for record in (*read(folder / "skdp.jsonl"), *read(folder / "diffprivlib.jsonl")):
        name, label, epsilon, _ = record["key"]
        found.setdefault((name, label, epsilon), []).append(record["score"])

    def text(*key):
        scores = found.get(key, [])
        if None in scores or not scores:
            return "over 20 s"
        if np.mean(scores) < -1:
            return "below -1"
        return f"{np.mean(scores):.3f} ± {standard_error(scores):.3f}"

    def rows(prefix, names, labels):
        for name, label in itertools.product(names, labels):
            cells = [text(prefix + name, label, epsilon) for epsilon in EPSILONS]
            yield name if label == labels[0] else "", label, *cells

    header = ("table", "method", *(f"ε = {epsilon:g}" for epsilon in EPSILONS))
    shapes = "; ".join(
        f"{name} {len(rows_of(name)):,} x {rows_of(name).shape[1]}" for name in TABLES
    )
    plain = ", ".join(f"{name} {text('R2 ' + name, 'least squares', None)}" for name in REGRESSIONS)
    lines = [
        INTRODUCTION.format(n=len(SEEDS)),
        *table("Share of the variance of the best five components", header,
               rows("", TABLES, PCA_LABELS)),
        f"Rows and columns: {shapes}.", "", COMPONENTS_READ, RIDGE,
        *table("R² on held-out rows", header, rows("R2 ", REGRESSIONS, RIDGE_LABELS)),
        f"Without privacy: {plain}.", "", READING,
        "What was run", "------------", "", f"* {machine()}; one thread.",
        f"* {versions('skdp', 'scikit-learn', 'numpy', 'scipy')}; diffprivlib 0.6.6.",
    ]  # fmt: skip
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()).rstrip() + "\n"


if __name__ == "__main__":
    QUICK = {"names": ("breast cancer",), "regressions": (), "seeds": (0,), "epsilons": (1.0,)}
    PARTS = {"skdp": (measure, QUICK), "diffprivlib": (measure_peer, QUICK)}
    run_page(__doc__, "moments", PARTS, page)

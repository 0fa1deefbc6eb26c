# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Error against the offset of the rows, with private centering and without.

Sun, Suresh and Menon (2023): the error of DPSGD grows with the length of the rows, that of
DPSGD-F with their diameter. Three measurements::

    python benchmarks/feature_preprocessing_rates.py            # five minutes of one core
    python benchmarks/feature_preprocessing_rates.py --quick    # a smoke run

Counter-example (their Section 4): all rows are (mu, 1) or (mu, -1), the label is the sign,
or its negative. Past mu = n G, with G the Gaussian-DP parameter of the budget, gradient
descent learns nothing, however it is tuned.

Error against the offset, the rows and the budget: excess of the mean hinge loss over its
minimum, on the worst of three data sets, which differ in how strong the signal is. Rows
are (s e_j, R) with balanced signs s and coordinates j, labels s with probability 1/2 + a, else -s.
The minimum is 1 - 2a, at coefficients 1 and intercept 0: beside a coefficient w the loss of
a coordinate's rows is (1/2 + a) max(0, 1 - w) + (1/2 - a) max(0, 1 + w). A signal just as
strong as the noise is the worst: then the error is that of theory, p R / (n G) for DPSGD, and
R is 1 for DPSGD-F whatever it was, with the number of coefficients p. Steps are those of the
proved rule for subgradients, their number (n G / 4)^2 / p.
"""

import argparse
import itertools
import math
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline

sys.path.insert(0, str(Path(__file__).parent))
from _rates_fit import Effort, Rate, save_picture, worst

from skdp import DPHingeSVM
from skdp.papers import FeaturePreprocessing
from skdp.preprocessing import DPFeatureCenterer
from skdp.privacy import gdp_mu

DELTA, N_FEATURES = 1e-5, 4
COMMON = {"adjacency": "zero-out", "classes": (-1, 1)}
#: what the centering step of a pipeline gets of epsilon and delta
SHARE = 0.25
_seeds = itertools.count(1)


def centered(epsilon, data_norm, mechanism="shifted-clipped", **parameters):
    """Return DPSGD-F: a centering step, then the classifier with the rest of the budget."""
    first, rest = ((share * epsilon, share * DELTA) for share in (SHARE, 1 - SHARE))
    return make_pipeline(
        DPFeatureCenterer(
            *first, mechanism=mechanism, adjacency="zero-out", data_norm=data_norm,
            random_state=next(_seeds),
        ),
        DPHingeSVM(*rest, random_state=next(_seeds), **COMMON, **{"data_norm": 1.0, **parameters}),
    )  # fmt: skip


def plain(epsilon, data_norm, **parameters):
    """Return DPSGD on the rows as they are, or on those of another solver."""
    return DPHingeSVM(
        epsilon, DELTA, data_norm=data_norm, random_state=next(_seeds), **COMMON, **parameters
    )


METHODS = {
    "DPSGD": plain,
    'kind="center"': lambda *a: plain(*a, solver=FeaturePreprocessing(kind="center")),
    'kind="center-scale"': lambda *a: plain(*a, solver=FeaturePreprocessing(kind="center-scale")),
    'kind="center-clip"': lambda *a: plain(*a, solver=FeaturePreprocessing(kind="center-clip")),
    "DPFeatureCenterer, shifted-clipped": centered,
    "DPFeatureCenterer, coinpress": lambda *a: centered(*a, mechanism="coinpress"),
}


def counter_example(effort, n_rows=2000, epsilon=1.0):
    """Print accuracies on the data of Section 4, for offsets far past the limit."""
    offsets = [10.0**k for k in range(8)][:: 1 if effort.points is None else 3]
    limit = n_rows * gdp_mu(epsilon, DELTA)
    print(f"Accuracy, n = {n_rows}, ε = {epsilon:g}, δ = {DELTA:g}; n ε = {n_rows * epsilon:g}")
    print(f"n G = {limit:.0f}; in brackets the mean hinge loss\n")
    print("| method |", " | ".join(f"mu = {offset:g}" for offset in offsets), "|")
    print("| --- |" + " --- |" * len(offsets))
    sign = np.repeat([1, -1], n_rows // 2)
    for name, make in METHODS.items():
        cells = []
        for offset in offsets:
            X, found = np.column_stack([np.full(n_rows, offset), sign]), []
            for labels in (sign, -sign):
                for _ in range(effort.repeats // 2):
                    model = make(epsilon, math.hypot(offset, 1.0)).fit(X, labels)
                    margin = labels * model.decision_function(X)
                    found.append((np.mean(margin > 0), np.mean(np.maximum(0, 1 - margin))))
            accuracy, loss = np.mean(found, axis=0)
            cells.append(f"{100 * accuracy:.0f} [{loss:.2g}]")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print()


def instance(n_rows, offset, strength):
    """Return rows and labels whose signal has a given strength, the same every time."""
    place, of_place = np.arange(n_rows) % N_FEATURES, np.arange(n_rows) // N_FEATURES
    sign = np.where(of_place % 2, 1, -1)
    # in every coordinate exactly the share of labels that is wanted, for each sign the same:
    # else an intercept would lower the minimum
    wrong = of_place < 2 * round((0.5 - strength) * (n_rows // N_FEATURES) / 2)
    X = np.zeros((n_rows, N_FEATURES + 1))
    X[np.arange(n_rows), place], X[:, -1] = sign, offset
    return X, np.where(wrong, -sign, sign)


def excess(make, n_rows, offset, epsilon, strength):
    """Return the excess of the mean hinge loss of one fit."""
    X, y = instance(n_rows, offset, strength)
    model = make(epsilon, math.hypot(1.0, offset)).fit(X, y)
    agree = np.mean(np.where(X[:, :-1].sum(axis=1) == y, 1.0, 0.0))
    loss = np.mean(np.maximum(0, 1 - y * model.decision_function(X)))
    return loss - 2 * (1 - agree)


def error(name, effort, *, n_rows=512, offset=4.0, epsilon=4.0):
    """Return the excess losses of the worst strength of the signal."""
    n_rows, mu = int(n_rows), gdp_mu(epsilon, DELTA)
    longest = math.hypot(1.0, offset if name == "DPSGD" else 1.0)
    steps = round(min(2e4, max(30, (n_rows * mu / 4) ** 2 / (N_FEATURES + 1))))
    options = {"solver": "gd", "max_iter": steps, "coef_bound": 1.5 * math.sqrt(N_FEATURES)}

    def make(epsilon, data_norm):
        if name == "DPSGD":
            return plain(epsilon, data_norm, fit_intercept=False, **options)
        return centered(epsilon, data_norm, intercept_scaling=1.0, **options)

    noise = (N_FEATURES + 1) * longest / (n_rows * mu)
    strengths = [min(0.45, factor * noise) for factor in (0.5, 1.0, 2.0)]
    return worst(
        effort.repeat(excess, make, n_rows, offset, epsilon, strength) for strength in strengths
    )


def rates(effort):
    """Yield the rates of the error in the offset, the rows and the budget."""
    sweeps = {
        "offset R": ("offset", effort.sweep(1.0, 5), {"DPSGD": 1.0, "DPSGD-F": 0.0}),
        "rows n": ("n_rows", effort.sweep(256, 3), {"DPSGD": -1.0, "DPSGD-F": -1.0}),
        "1 / ε": ("epsilon", effort.sweep(1.0, 3), {"DPSGD": 1.0, "DPSGD-F": 1.0}),
    }
    for variable, (keyword, values, expected) in sweeps.items():
        for name, slope in expected.items():
            rest = {"epsilon": 2.0} if keyword == "n_rows" else {}  # else too many steps
            samples = [error(name, effort, **{keyword: value}, **rest) for value in values]
            x = [1 / v for v in values] if keyword == "epsilon" else values
            yield Rate(name, variable, slope, x, samples, panel=f"excess loss against {variable}")


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repeats, short sweeps")
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--figure", type=Path, help="where to draw the rates, a .png file")
    parser.add_argument("--part", choices=("both", "counter-example", "rates"), default="both")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    effort = Effort(2, 2) if arguments.quick else Effort(arguments.repeats)
    if arguments.part != "rates":
        counter_example(effort)
    if arguments.part != "counter-example":
        print("| method | variable | expected slope | fitted slope | errors |")
        print("| --- | --- | --- | --- | --- |")
        start = time.process_time()
        found = []
        for rate in rates(effort):
            found.append(rate)
            errors = ", ".join(f"{value:.3g}" for value in rate.mean)
            print(f"| {' | '.join(rate.cells()[:4])} | {errors} |", flush=True)
        print(f"\n{time.process_time() - start:.0f} s CPU")
        if arguments.figure:
            save_picture(found, arguments.figure)
    if arguments.quick:
        print("A smoke run: these are too few repeats to judge a slope by.")


if __name__ == "__main__":
    main()

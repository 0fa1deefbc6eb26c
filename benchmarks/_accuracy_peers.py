# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The classifiers of other libraries on the accuracy page: runs in their environments.

It needs numpy, scikit-learn and one peer; rows come from files, results go into one. Settings are
searched on splits of their own, and nobody pays for that; fits with one fixed setting stand
beside.
"""

import argparse
import functools
import importlib.metadata
import itertools
import json
import math
import time
import warnings
from pathlib import Path

import numpy as np
from _accuracy_store import Store, qualities
from _tables import KEPT_ASIDE
from sklearn.linear_model import LogisticRegression

# fits for each setting and tuning split, with fresh noise; elsewhere 1
DRAWS = {"breast_cancer": 2}
UNPAID = ", tuned unpaid"
SLOW = ("text", "MNIST")  # smaller grids there
#: bounds of the columns, which DP-EBM must be told
BOUNDS = {"Adult": (0.0, 1 / 3), "breast_cancer": (-0.4, 0.4), "synthetic": (-1.0, 1.0)}


@functools.cache
def noise_multiplier(epsilon, delta, rate, steps):
    """Return the noise level that Opacus finds."""
    from opacus.accountants.utils import get_noise_multiplier

    # "prv" is the default of PrivacyEngine; the default tolerance, 0.01, is coarse for 0.1.
    claim = {"target_epsilon": epsilon, "target_delta": delta, "epsilon_tolerance": epsilon / 100}
    return get_noise_multiplier(**claim, sample_rate=rate, steps=steps, accountant="prv")


class OpacusLogisticRegression:
    """Linear model trained by DP-SGD from zero, with each row's gradient clipped to 1.

    Opacus clips, adds noise and accounts; a vectorised Poisson sampler replaces its data
    loader, which is slower.
    """

    def __init__(self, epsilon, delta, y, *, lr, epochs):
        self.n_classes, self.lr = len(np.unique(y)), lr
        self.batch = 2 ** round(math.log2(5.5 * math.sqrt(len(y))))  # 128 to 1024 here
        self.rate = self.batch / len(y)
        self.steps = math.ceil(epochs / self.rate)
        self.sigma = noise_multiplier(epsilon, delta, self.rate, self.steps)

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

    def predict_proba(self, X):
        """Return the probabilities of the classes."""
        score = X @ self.coef_.T + self.intercept_
        if self.n_classes == 2:
            score = np.hstack([np.zeros_like(score), score])
        proba = np.exp(score - score.max(axis=1, keepdims=True))
        return proba / proba.sum(axis=1, keepdims=True)

    def score(self, X, y):
        """Return the accuracy."""
        return np.mean(self.predict_proba(X).argmax(axis=1) == y)


def opacus_rows(name):
    """Return section, maker of a model and grids of settings by label."""
    pairs = [*itertools.product((0.5, 2, 8), (5, 20)), (8, 60)]
    if name in SLOW:
        pairs = [(0.5, 20), (2, 5), (2, 20), (8, 20)]
    grid = [{"lr": lr, "epochs": epochs} for lr, epochs in pairs]
    grids = {"Opacus, lr=2, 20 epochs": [{"lr": 2, "epochs": 20}], f"Opacus{UNPAID}": grid}
    if name in KEPT_ASIDE:
        del grids[f"Opacus{UNPAID}"]
    return "zero-out", OpacusLogisticRegression, grids


def diffprivlib_rows(name):
    """Return section, maker of a model and grids of settings by label."""
    from diffprivlib.models import LogisticRegression as Private

    def nominal(epsilon, delta, y, **parameters):
        return Private(epsilon=epsilon, data_norm=1, **parameters)

    grids = {"diffprivlib †, defaults": [{}]}
    strengths = (1e-3, 0.1, 10) if name == "MNIST" else (1e-3, 1e-2, 0.1, 1, 10, 100)
    if name not in KEPT_ASIDE:
        grids[f"diffprivlib †{UNPAID}"] = [{"C": C} for C in strengths]
    return "pure", nominal, grids


def interpret_rows(name):
    """Return section, maker of a model and grids of settings by label."""
    from interpret.privacy import DPExplainableBoostingClassifier

    def nominal(epsilon, delta, y, *, n_features):
        bounds = dict.fromkeys(range(n_features), BOUNDS[name])
        return DPExplainableBoostingClassifier(
            epsilon=epsilon, delta=delta, privacy_bounds=bounds, n_jobs=1
        )

    n_features = {"Adult": 104, "breast_cancer": 30, "synthetic": 20}.get(name)
    grids = {"DP-EBM †, defaults": [{"n_features": n_features}]} if n_features else {}
    return "replace-one", nominal, grids


LIBRARIES = {
    "diffprivlib": diffprivlib_rows, "opacus": opacus_rows, "interpret": interpret_rows,
}  # fmt: skip


def load(folder, name, seed):
    """Return training and test rows and labels of one split."""
    with np.load(Path(folder) / f"{name}-{seed}.npz") as arrays:
        return [arrays[part] for part in ("X", "X_test", "y", "y_test")]


def best_setting(make, grid, claim, tuning, name):
    """Return the setting of the highest mean accuracy on the splits for that."""

    def quality(setting):
        splits = tuning * DRAWS.get(name, 1)
        fits = ((make(*claim, y, **setting).fit(X, y), T, t) for X, T, y, t in splits)
        return np.mean([model.score(T, t) for model, T, t in fits])

    return max(grid, key=quality) if len(grid) > 1 else grid[0]


def measure(library, store, tasks, folder):
    """Search settings, fit, and store accuracies and CPU seconds."""
    for index in range(max(len(task["seeds"]) for task in tasks["data"].values())):
        for name, task in tasks["data"].items():
            section, make, grids = LIBRARIES[library](name)
            if index >= len(task["seeds"]) or not grids:
                continue
            seed, tuning = task["seeds"][index], None
            X, X_test, y, y_test = load(folder, name, seed)
            if store.get(name, "baseline", seed) is None:
                start = time.process_time()
                LogisticRegression(C=task["C"], max_iter=2000).fit(X, y)
                store.add(name, "baseline", seed, seconds=time.process_time() - start)
            for label, grid in grids.items():
                for epsilon in tasks["epsilons"]:
                    claim = (epsilon, tasks["delta"])
                    known = store.get(name, "setting", label, epsilon)
                    if known is None:
                        tuning = tuning or [load(folder, name, s) for s in task["tuning"]]
                        setting = best_setting(make, grid, claim, tuning, name)
                        known = store.add(name, "setting", label, epsilon, setting=setting)
                    if store.get(name, section, label, epsilon, seed) is None:
                        model = make(*claim, y, **known["setting"])
                        start = time.process_time()
                        model.fit(X, y)
                        seconds = time.process_time() - start
                        key = name, section, label, epsilon, seed
                        store.add(*key, seconds=seconds, **qualities(model, X_test, y_test))
            print(f"{library}: {name}, split {index + 1}", flush=True)


def main():
    """Measure what a file of tasks asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("tasks", type=Path, help="JSON: data with seeds, epsilons, delta")
    parser.add_argument("splits", type=Path, help="folder of the rows")
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    store = Store(arguments.out)
    if store.get("versions") is None:
        names = ("diffprivlib", "opacus", "torch", "interpret-core", "scikit-learn", "numpy")
        found = {p.metadata["Name"]: p.version for p in importlib.metadata.distributions()}
        store.add("versions", versions={name: found[name] for name in names if name in found})
    measure(arguments.library, store, json.loads(arguments.tasks.read_text()), arguments.splits)


if __name__ == "__main__":
    main()

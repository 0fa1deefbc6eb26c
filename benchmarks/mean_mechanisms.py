# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Errors of the mechanisms of DPMean, for rows with offsets and heavy tails.

Prints a table of root mean squared errors against the population mean, fresh rows and
fresh noise in every repeat. `data_norm` is 1e6 but for the column "told", where it is the
norm of the longest row, which nobody would know.
"""

import argparse

import numpy as np

from skdp import DPMean

MECHANISMS = ("gaussian", "clipped", "coinpress", "shifted-clipped")
LAWS = {
    "normal": (lambda rng, size: rng.normal(size=size), 0.0),
    "exponential": (lambda rng, size: rng.exponential(size=size), 1.0),
    "t, 3 degrees": (lambda rng, size: rng.standard_t(3, size=size), 0.0),
    "t, 2.1 degrees": (lambda rng, size: rng.standard_t(2.1, size=size), 0.0),
}


def errors(law, offset, n_rows, n_features, epsilon, adjacency, repeats):
    """Return root mean squared errors: of the sample mean, "told", and the mechanisms."""
    draw, center = LAWS[law]
    squares = []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        direction = rng.normal(size=n_features)
        shift = offset * direction / np.linalg.norm(direction)
        X = draw(rng, (n_rows, n_features)) + shift
        longest = np.linalg.norm(X, axis=1).max()
        fits = [X.mean(axis=0), DPMean(epsilon, adjacency=adjacency, data_norm=longest).fit(X)]
        for name in MECHANISMS:
            model = DPMean(epsilon, mechanism=name, adjacency=adjacency, data_norm=1e6)
            fits.append(model.fit(X))
        fits = [getattr(fit, "location_", fit) for fit in fits]
        squares.append([np.sum((fit - center - shift) ** 2) for fit in fits])
    return np.sqrt(np.mean(squares, axis=0))


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--adjacency", default="replace-one")
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    print("n, d, law, offset:", "sample mean", "told", *MECHANISMS, sep="  ")
    for n_rows, n_features in ((1000, 1), (1000, 10), (10_000, 10), (10_000, 100)):
        for law in LAWS:
            for offset in (0, 10, 1000):
                found = errors(law, offset, n_rows, n_features, **vars(given))
                cells = "  ".join(f"{value:.2g}" for value in found)
                print(f"{n_rows}, {n_features}, {law}, {offset}:  {cells}", flush=True)


if __name__ == "__main__":
    main()

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Errors of frequencies from local reports, beside pure-ldp (1.2.0, installed beside skdp).

Prints roots of mean squared Euclidean distances to the frequencies of the rows, times a hundred:
of unbiased frequencies, and of those brought to the simplex. Zipf's law, fresh noise every time.
"""

import argparse
import importlib

import numpy as np

from skdp import LocalDPFrequencies, LocalDPMean

#: what pure-ldp has: names of modules and of classes, and parameters
PEERS = {
    "direct encoding": ("direct_encoding", "DE", {}),
    "optimised unary": ("unary_encoding", "UE", {"use_oue": True}),
    "Hadamard response": ("hadamard_response", "HadamardResponse", {}),
}


def of_peer(name, rows, k, epsilon):
    """Return the frequencies that pure-ldp estimates; it numbers categories from 1."""
    module, kind, options = PEERS[name]
    module = importlib.import_module(f"pure_ldp.frequency_oracles.{module}")
    server = getattr(module, f"{kind}Server")(epsilon=epsilon, d=k, **options)
    if name == "Hadamard response":
        options = {"hash_funcs": server.get_hash_funcs()}
    client = getattr(module, f"{kind}Client")(epsilon=epsilon, d=k, **options)
    for value in (rows + 1).tolist():
        server.aggregate(client.privatise(value))
    return np.asarray(server.estimate_all(range(1, k + 1), suppress_warnings=True)) / len(rows)


def of_ours(rows, k, epsilon, positive):
    """Return ours."""
    model = LocalDPFrequencies(epsilon, categories=range(k), positive=positive)
    return model.fit(rows[:, None]).frequencies_[0]


def of_mean(rows, k, epsilon):
    """Return the mean of reports of one-hot rows."""
    return LocalDPMean(epsilon).fit(np.eye(k)[rows]).location_


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    ways = {
        "skdp": lambda rows, k, epsilon: of_ours(rows, k, epsilon, False),
        "skdp, simplex": lambda rows, k, epsilon: of_ours(rows, k, epsilon, True),
        "LocalDPMean": of_mean,
    }
    for name in PEERS:
        ways[name] = lambda rows, k, epsilon, name=name: of_peer(name, rows, k, epsilon)
    print("epsilon, categories:", *ways, sep="  ")
    for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0):
        for k in (2, 10, 100):
            cells = []
            for way in ways.values():
                squares = []
                for seed in range(given.repeats):
                    weights = 1.0 / np.arange(1.0, k + 1)
                    rng = np.random.default_rng(seed)
                    rows = rng.choice(k, p=weights / weights.sum(), size=given.rows)
                    true = np.bincount(rows, minlength=k) / len(rows)
                    squares.append(np.sum((way(rows, k, epsilon) - true) ** 2))
                cells.append(f"{100 * np.sqrt(np.mean(squares)):.2f}")
            print(f"{epsilon}, {k}:", *cells, sep="  ", flush=True)


if __name__ == "__main__":
    main()

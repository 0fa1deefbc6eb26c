# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bytes of reports, and CPU time of clients and servers, for PrivUnit and ProjUnit.

Prints a table for the user guide. A row has one entry less than a power of two: with the entry that
"lift" adds, rotations need no more. The best of some runs counts, each of a client of its own.
"""

import argparse
from time import process_time

import numpy as np

from skdp import LocalDPFrequencies, PrivUnitPrivatizer
from skdp.local import Aggregator, LocalClient

MECHANISMS = ("privunit", "projunit")


def best_of(n_runs, make, run):
    """Return the least CPU time in milliseconds of ``run(make())``, and what it returned last."""
    times = []
    for _ in range(n_runs):
        made = make()
        begun = process_time()
        found = run(made)
        times.append(process_time() - begun)
    return 1e3 * min(times), found


def measured(client, row, n_runs):
    """Return the bytes of a report, and the times of making and of adding one."""
    text = client.to_json()
    made, report = best_of(n_runs, lambda: LocalClient.from_json(text), lambda own: own.report(row))
    added, _ = best_of(n_runs, lambda: Aggregator(client), lambda sums: sums.add(report))
    return len(report), made, added


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    print("entries, then for each of", MECHANISMS, ": bytes, ms at the client, ms at the server")
    for power in (10, 12, 14, 16, 18, 20):
        d, line = 2**power - 1, []
        row, errors = np.full(d, 0.5 / np.sqrt(d)), []
        for mechanism in MECHANISMS:
            client = PrivUnitPrivatizer(given.epsilon, mechanism=mechanism).client(d)
            size, made, added = measured(client, row, given.runs)
            errors.append(client.randomiser.mean_squared_error(0.5))
            line.append(f"{size:9,} {made:8.1f} {added:8.1f}")
        print(f"2^{power:2} - 1", *line, f"error ratio {errors[1] / errors[0]:.3f}", sep="  ")
    print("categories at epsilon: bytes of a report")
    for k in (3, 10, 100, 1000):
        sizes = [
            len(LocalDPFrequencies(epsilon, categories=range(k)).client(1).report([0]))
            for epsilon in (1.0, 2.0, 4.0, 8.0)
        ]
        print(k, *sizes, sep="  ")


if __name__ == "__main__":
    main()

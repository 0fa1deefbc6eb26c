# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The sweeps of `heavy_tails_rates.py`. All methods of a repeat see the same rows."""

import itertools
import math

import numpy as np
from _heavy_data import (
    DELTA,
    Task,
    outlier_rows,
    packing_rows,
    student_rows,
    student_task,
)
from _heavy_methods import (
    doubling,
    halving,
    localized,
    noisy_descent,
    non_private,
    private_mean,
    told_convexity,
)
from _rates_fit import Rate

from skdp.privacy import gdp_mu

PRIVATE = {
    "private mean": private_mean,
    "localised": localized,
    "halving": halving,
    "doubling": doubling,
}
METHODS = {"non-private": non_private, **PRIVATE}
ORDERS = (2.0, 3.0, 4.0)
#: numbers of rows
ROWS = (2_000, 8_000, 32_000, 128_000)
#: degrees of freedom, and a moment just below them
TAILS = {2.5: 2.4, 3.0: 2.9, 5.0: 4.9, 10.0: 9.9}
#: where noise dominates: little budget on many rows
SMALL, MANY = 1 / 16, 128_000
LONGEST = (1e1, 1e3, 1e5, 1e7)
_seeds = itertools.count(1)


def statistical(order):
    """Return the exponent of n in the rate without privacy."""
    return -order / (2 * (order - 1))


def private(order, k=4.0):
    """Return the exponent of n epsilon / sqrt(d) in the rate where privacy dominates."""
    return -(k - 1) / k * order / (order - 1)


def _errors(draw, tasks, methods, repeats):
    """Return arrays of excess losses by task and method; `draw` returns rows and their mean."""
    found = {(key, name): [] for key in tasks for name in methods}
    for _ in range(repeats):
        X, mean = draw(np.random.default_rng(next(_seeds)))
        for (key, task), name in itertools.product(tasks.items(), methods):
            told = task if mean is None else task.at(mean=mean)
            # the mean is for the excess loss; no method reads it
            found[key, name].append(told.excess(methods[name](X, task)))
    return {key: np.array(values) for key, values in found.items()}


def _rates(values, results, expected, variable, panel):
    """Return rates by key and method from the results at all values."""
    return {
        (key, name): Rate(
            f"{panel(key)}, {name}", variable, expected(key), list(values),
            [result[key, name] for result in results],
        )
        for key, name in results[0]
    }  # fmt: skip


def against_rows(effort):
    """Return rates in n, by (epsilon, theta) and method."""
    keys = list(itertools.product((1.0, 8.0), ORDERS))
    tasks = {key: student_task(epsilon=key[0], order=key[1]) for key in keys}
    convex = {key: task for key, task in tasks.items() if key[1] == 2}
    results = []
    for n in ROWS[: effort.points]:

        def draw(rng, n=n):
            return student_rows(rng, n, 10), None

        found = _errors(draw, tasks, METHODS, effort.repeats)
        found |= _errors(draw, convex, {"told convexity": told_convexity}, effort.repeats)
        results.append(found)
    return _rates(
        ROWS[: effort.points], results, lambda key: statistical(key[1]), "n",
        lambda key: f"ε = {key[0]:g}, θ = {key[1]:g}",
    )  # fmt: skip


def against_features(effort):
    """Return rates in d where privacy dominates, by theta and method."""
    sizes, results = (4, 16, 64)[: effort.points], []
    for d in sizes:
        tasks = {order: student_task(d, order, SMALL) for order in (2.0, 4.0)}

        def draw(rng, d=d):
            return student_rows(rng, MANY, d), None

        results.append(_errors(draw, tasks, PRIVATE, effort.repeats))
    return _rates(sizes, results, lambda order: -private(order) / 2, "d", "θ = {:g}".format)


def against_budget(effort):
    """Return rates in the Gaussian-DP parameter, by theta and method."""
    budgets, results = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4)[: effort.points], []
    for epsilon in budgets:
        tasks = {order: student_task(10, order, epsilon) for order in (2.0, 4.0)}

        def draw(rng):
            return student_rows(rng, MANY, 10), None

        results.append(_errors(draw, tasks, PRIVATE, effort.repeats))
    mus = [gdp_mu(epsilon, DELTA) for epsilon in budgets]
    return _rates(mus, results, private, "μ", "θ = {:g}".format)


def against_tails(effort):
    """Return rates in n where privacy dominates, by degrees of freedom and method."""
    rows, results = (32_000, 128_000, 512_000)[: effort.points], []
    for n in rows:
        found = {}
        for df, k in TAILS.items():

            def draw(rng, n=n, df=df):
                return student_rows(rng, n, 10, df), None

            task = {df: student_task(10, 2.0, SMALL, df, k)}
            found |= _errors(draw, task, PRIVATE, effort.repeats)
        results.append(found)
    return _rates(
        rows, results, lambda df: private(2.0, TAILS[df]), "n",
        lambda df: f"{df:g} degrees of freedom, k = {TAILS[df]:g}",
    )  # fmt: skip


def against_longest(effort):
    """Return rates in the length of the longest row, by method."""
    longest, results = LONGEST[: effort.points], []
    start = np.eye(1, 10)[0]
    # normal rows have E|x|^4 = 1 + 2/d, outliers another 1, and E|x|^2 = 1 and 1e-2 at most
    task = Task(2.0, 1.0, 4.0, 2.2**0.25, 1.1**0.5, start, 1.0, 0 * start)
    for length in longest:

        def draw(rng, length=length):
            return outlier_rows(rng, 32_000, 10, length), None

        methods = PRIVATE | {
            "noisy descent": lambda X, task, length=length: noisy_descent(X, task, length)
        }
        results.append(_errors(draw, {"outliers": task}, methods, effort.repeats))
    return _rates(longest, results, lambda _: 0.0, "length of the longest row", str)


def hard_share(n_rows, size, epsilon):
    """Return the probability of a row that is not 0, sqrt(d) / (n sqrt(rho))."""
    return math.sqrt(2 * size) / (n_rows * gdp_mu(epsilon, DELTA))


def hard_rate(n_rows, size, epsilon, order, k=4.0):
    """Return the rate of the lower bound, for moments of at most 1."""
    return hard_share(n_rows, size, epsilon) ** -private(order, k)


def lower_bound(effort, size=64, epsilon=1.0, k=4.0):
    """Return rates in n on the instance of the lower bound, by theta and method."""
    results = []
    for n in ROWS[: effort.points]:
        share = hard_share(n, size, epsilon)
        length = share ** (1 - 1 / k) / 2
        tasks = {
            order: Task(
                order, epsilon, k, 0.5, 0.5 * share ** (0.5 - 1 / k), np.zeros(size),
                length ** (1 / (order - 1)), np.zeros(size),
            )
            for order in ORDERS
        }  # fmt: skip

        def draw(rng, n=n, share=share):
            return packing_rows(rng, n, size, share, k)

        results.append(_errors(draw, tasks, METHODS, effort.repeats))
    return _rates(ROWS[: effort.points], results, private, "n", "θ = {:g}".format)

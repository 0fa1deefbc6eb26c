# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Errors, times and memory of local reports, measured."""

import math
import time
import tracemalloc
from dataclasses import dataclass

import numpy as np
from _local_theory import BALL, CUBE, NORM, Noise, error, make

from skdp.local.randomisers.privunit import optimal_privunit
from skdp.privacy.kernel.samplers import SeededBits, SystemBits

DIMS = (10, 100, 1000, 10_000, 100_000, 1_000_000)
EPSILONS = (0.5, 2.0, 8.0, 32.0, 128.0, 1000.0)
#: a uniform rotation is a matrix
MOST_DENSE = 1000
#: standard error of a ratio at which measuring ends, after so many batches at most
ENOUGH, MOST_BATCHES = 0.004, 32
#: a part of smaller errors comes from reports that are too rare to be seen
SMALLEST = 1e-6


@dataclass(frozen=True)
class Measured:
    """An error, measured: method, budget, dimension, ratio to theory and its standard error."""

    name: str
    epsilon: float
    n_dims: int
    theory: float
    ratio: float
    error: float


def rows_of(name, n_rows, n_dims, rng):
    """Return random rows of the domain of a method."""
    if name == CUBE:
        return rng.uniform(-1.0, 1.0, (n_rows, n_dims))
    rows = rng.standard_normal((n_rows, n_dims))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * NORM if name in BALL else rows


def draw(randomiser, rows, source, rng):
    """Return reports; noise is drawn here, everything else by the sampler of the library."""
    if not isinstance(randomiser, Noise):
        return randomiser.report(rows, source)
    if randomiser.law == "gaussian":
        return rows + randomiser.scale * rng.standard_normal(rows.shape)
    if randomiser.law == "laplace":
        return rows + rng.laplace(0.0, randomiser.scale, rows.shape)
    ways = rng.standard_normal(rows.shape)
    ways *= rng.gamma(rows.shape[1], randomiser.scale, (len(rows), 1)) / np.linalg.norm(
        ways, axis=1, keepdims=True
    )
    return rows + ways


def measure(name, epsilon, n_dims, entries, seed=0):
    """Return the mean squared error of reports relative to theory, or None if it is too small.

    Parameters
    ----------
    name, epsilon, n_dims : str, float, int
        Method of `METHODS`, budget and dimension.
    entries : int
        Entries of the first four batches of rows; a batch has at least eight rows.
    seed : int, default=0
        Of rows and noise.

    Returns
    -------
    measured : Measured or None
    """
    theory = error(name, epsilon, n_dims)
    if theory < SMALLEST:
        return None
    rng = np.random.default_rng((seed, n_dims))
    source = SeededBits(seed, f"{name} {epsilon} {n_dims}")
    randomiser, squares = make(name, epsilon, n_dims), []
    # batches, for a rotation is shared by a batch, until the error is known well enough
    for batch in range(1, 1 + MOST_BATCHES):
        rows = rows_of(name, max(8, entries // (4 * n_dims)), n_dims, rng)
        made = draw(randomiser, rows, source, rng)
        made -= rows
        squares.extend(np.einsum("ij,ij->i", made, made) / theory)
        spread = np.std(squares, ddof=1) / math.sqrt(len(squares))
        if batch >= 4 and spread < ENOUGH:
            break
    return Measured(name, epsilon, n_dims, theory, float(np.mean(squares)), float(spread))


def cells(name, quick=False):
    """Yield the budgets and dimensions at which a method is measured."""
    for n_dims in DIMS[:3] if quick else DIMS:
        # lengths vary so much that few rows say nothing
        if ("uniform" in name or name == "Product") and n_dims > MOST_DENSE:
            continue
        for epsilon in EPSILONS[:4] if quick else EPSILONS:
            yield epsilon, n_dims


def timed(n_rows, n_dims, epsilon=8.0, n_threads=1):
    """Return what it takes to report unit vectors by PrivUnit with entropy of the system.

    Returns
    -------
    wall, cpu : float
        Seconds, the better of two runs each.
    """
    rows = rows_of("PrivUnit", n_rows, n_dims, np.random.default_rng(0))
    randomiser, source = optimal_privunit(epsilon, n_dims), SystemBits()
    best = [math.inf, math.inf]
    for _ in range(2):
        start = time.perf_counter(), time.process_time()
        randomiser.report(rows, source, n_threads)
        spent = time.perf_counter() - start[0], time.process_time() - start[1]
        best = [min(pair) for pair in zip(best, spent, strict=True)]
    return tuple(best)


def peak_memory(n_rows, n_dims, epsilon=8.0):
    """Return the peak of memory beyond the rows and their reports, in bytes."""
    rows = rows_of("PrivUnit", n_rows, n_dims, np.random.default_rng(0))
    randomiser, source = optimal_privunit(epsilon, n_dims), SystemBits()
    tracemalloc.start()
    made = randomiser.report(rows, source)
    peak = tracemalloc.get_traced_memory()[1] - made.nbytes
    tracemalloc.stop()
    return peak


def time_of_parameters(n_dims, epsilon):
    """Return the seconds of a search for the best parameters of PrivUnit."""
    optimal_privunit.cache_clear()
    start = time.perf_counter()
    optimal_privunit(epsilon, n_dims)
    return time.perf_counter() - start

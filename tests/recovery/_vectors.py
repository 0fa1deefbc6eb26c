# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Vectors, ordinary and extreme, for the tests of projections."""

import numpy as np

#: magnitudes, from which a vector is made with random signs
SHAPES = {
    "one": lambda d, rng: np.ones(1),
    "one zero": lambda d, rng: np.zeros(1),
    "zeros": lambda d, rng: np.zeros(d),
    "normal": lambda d, rng: rng.normal(size=d),
    "heavy": lambda d, rng: rng.standard_cauchy(size=d),
    "equal": lambda d, rng: np.full(d, 0.7),
    "ties": lambda d, rng: rng.integers(0, 3, size=d).astype(float),
    "nearly equal": lambda d, rng: 1 + 1e-13 * rng.normal(size=d),
    "one large": lambda d, rng: np.where(np.arange(d) == 1, 1e9, rng.uniform(size=d)),
    "few": lambda d, rng: np.where(np.arange(d) < 2, rng.uniform(size=d), 0.0),
    "wide": lambda d, rng: 10.0 ** rng.uniform(-12, 0, size=d),
}
#: by what all of it is multiplied
SCALES = (1.0, 1e-150, 1e150, 1e-290, 1e290)
#: radii, in norms of the vector
RADII = (0.0, 1e-9, 0.1, 0.5, 0.9, 1 - 1e-12, 1.0, 1.1, 1e9)


def vector(shape, d=9, seed=0):
    """Return a vector of a named shape; its sign is that of the entry's index, or random."""
    rng = np.random.default_rng(seed)
    y = np.asarray(SHAPES[shape](d, rng), dtype=np.float64)
    return y * rng.choice([-1.0, 1.0], size=len(y))


def length(x, order=2):
    """Return a norm without overflow."""
    unit = np.abs(x).max(initial=0.0)
    with np.errstate(under="ignore"):
        return float(np.linalg.norm(x / unit, ord=order) * unit) if unit else 0.0

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows for the tables of regression, means, quantiles and scalers, and what counts as an error.

Needs numpy alone: peers run it in their environments too.
"""

import numpy as np

__all__ = ["BOUNDS", "QUANTILES", "columns", "errors_of"]

#: of the columns, in the units they have
BOUNDS = (-5.0, 20.0)
QUANTILES = (0.5, 0.9)


def columns(seed, n_rows, n_features):
    """Return columns of normal and, in the second half, of exponential numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    half = n_features // 2
    X[:, half:] = rng.exponential(2.0, (n_rows, n_features - half))
    return X.clip(*BOUNDS)


def errors_of(found, exact, unit=1.0):
    """Return the root mean square error over features, in given units."""
    return float(np.sqrt(np.mean(((np.asarray(found) - exact) / unit) ** 2)))

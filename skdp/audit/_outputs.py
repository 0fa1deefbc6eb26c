# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted estimator gives away, as numbers.

An outcome is a dictionary of flat arrays, or a `Failure`: a fit that raises tells its
data apart from those with which it does not, and so does an attribute that is missing.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

#: entries of one attribute that are looked at
MOST_ENTRIES = 2000
#: how deep estimators may be nested
DEPTH = 5


@dataclass(frozen=True)
class Failure:
    """A fit that raised.

    Parameters
    ----------
    kind, message : str
        The exception's class and text.
    """

    kind: str
    message: str


def released(fitted):
    """Return the numeric attributes of a fitted estimator whose names end with "_".

    Parameters
    ----------
    fitted : object
        A fitted estimator. Steps of pipelines and estimators inside of estimators are
        looked into.

    Returns
    -------
    outcome : dict of str to ndarray
        The first 2000 entries of every attribute, flat, and the sizes of those that are
        not numeric.
    """
    return dict(_walk(fitted, "", DEPTH))


def scored(value):
    """Return what a user's score says, a number or a vector, as an outcome."""
    return {"score": np.ravel(np.asarray(value, dtype=np.float64))}


def _walk(fitted, prefix, depth):
    for name, step in getattr(fitted, "steps", None) or []:
        yield from _value(step, f"{prefix}{name}.", depth)
    for name, value in vars(fitted).items() if hasattr(fitted, "__dict__") else ():
        if name.endswith("_") and not name.startswith("_"):
            yield from _value(value, f"{prefix}{name}", depth)


def _value(value, name, depth):
    """Yield (name, entries) of one attribute."""
    if depth == 0 or value is None or isinstance(value, str | type):
        return
    if hasattr(value, "fit"):
        yield from _walk(value, f"{name}.", depth - 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _value(item, f"{name}[{key}]", depth - 1)
    elif isinstance(value, list | tuple) and any(_is_nested(item) for item in value):
        for place, item in enumerate(value):
            yield from _value(item, f"{name}[{place}]", depth - 1)
    else:
        yield from _entries(value, name)


def _is_nested(item):
    return hasattr(item, "fit") or isinstance(item, dict | list | tuple | np.ndarray)


def _entries(value, name):
    if sparse.issparse(value):
        value = value.toarray() if np.prod(value.shape) <= MOST_ENTRIES else value.sum(axis=0)
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if not isinstance(value, np.ndarray | np.generic | int | float | list | tuple):
        return
    entries = np.ravel(np.asarray(value))
    if entries.dtype.kind in "biuf":
        yield name, entries[:MOST_ENTRIES].astype(np.float64)
    else:
        yield f"{name} (size)", np.array([entries.size], dtype=np.float64)


class Layout:
    """A fixed table for outcomes: one column per entry, and columns for what is missing.

    Parameters
    ----------
    outcomes : list of (dict or Failure)
        Outcomes that decide which columns there are.
    """

    def __init__(self, outcomes):
        self.sizes = dict[str, int]()
        for outcome in outcomes:
            if not isinstance(outcome, Failure):
                for name, entries in outcome.items():
                    self.sizes[name] = max(self.sizes.get(name, 0), entries.size)

    def table(self, outcomes):
        """Return a matrix, one row per outcome.

        Parameters
        ----------
        outcomes : list of (dict or Failure)
            These, or others.

        Returns
        -------
        table : ndarray of shape (n_outcomes, n_columns)
            Finite. The first column says whether the fit failed. Every attribute has a
            column with its size, columns with its entries, and as many which say that an entry
            is not finite: -1 and 1 for infinite ones, 2 for NaN.
        """
        blocks = [np.array([[isinstance(o, Failure)] for o in outcomes], dtype=np.float64)]
        for name, size in self.sizes.items():
            found = np.zeros((len(outcomes), 1 + 2 * size))
            for row, outcome in zip(found, outcomes, strict=True):
                entries = {} if isinstance(outcome, Failure) else outcome
                entries = entries.get(name, np.empty(0))
                row[0] = entries.size
                entries = entries[:size]
                broken = ~np.isfinite(entries)
                row[1 : 1 + len(entries)] = np.where(broken, 0.0, entries)
                signs = np.where(np.isnan(entries), 2.0, np.sign(entries))
                row[1 + size : 1 + size + len(entries)] = np.where(broken, signs, 0.0)
            blocks.append(found)
        return np.hstack(blocks)

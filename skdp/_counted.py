# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of rows: in cells of tables; and of all, where it is a secret, released before the fit.

With adjacency "add-remove" neighbours are data sets with and without one row, so plans must not
know their number. With weights of rows they must not know the total of these, which a row changes.
Either is released first, for a small part of epsilon, and stands in plans where the number of rows
stands otherwise. Sums that nothing is divided by do without a total of weights: the number of rows
is public then, and bounds them. Given what was released, a row more is a row in the place of a null
row, for estimators whose statistics are sums over rows that may stand anywhere: what follows is the
fit that adjacency "zero-out" has, with what is left of epsilon (Propositions 85 and 86).
"""

import math
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from numbers import Real
from typing import Any

import numpy as np

from skdp._groups import PARTS, resolve_groups, shares
from skdp._rows.base import sum_over
from skdp._rows.linear import LinearChunk, counted_rows
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.books.resume import open_curator
from skdp.privacy.kernel.errors import SeededNoiseWarning
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import LaplaceMechanism

# part of epsilon that the number gets, where it is in plans only
_COUNT_SHARE = 0.05
# no number of rows is larger: sums are exact enough for so many
_MOST_ROWS = 2**31
#: as many rows as any solver needs: what is refused for these is refused for all
MANY_ROWS = 10**6
# scales of the noise between the released number and what the true one is below: it is not with a
# probability of exp(-1000), and sums beyond their bound are clamped then
_MARGIN = 1000


@dataclass(frozen=True)
class RowCount:
    """Number of rows, or of groups; or the total of their weights.

    Parameters
    ----------
    name : {"number of rows", "total of the weights"}
        What the statistic is.
    """

    name: str = "number of rows"
    size = 1

    def sensitivity(self, adjacency, n_rows):
        """State the l1 sensitivity: 1.

        Proof. A row, or a group, counts between 0 and 1. Neighbours differ in one, that is there or
        is not, or counts as another does.
        """
        return Sensitivity(l1=1.0, l2=1.0, bound=float(n_rows), theorem="a row counts 1 at most")

    def evaluate(self, rows):
        """Return the total of what rows count, an array of shape (1,)."""
        # whole parts of one, for up to 2^31 rows: nothing is rounded
        return np.array([np.sum(rows)])


def _cells_of(chunk):
    """Return the cells of rows, shape (n_rows, n_tables), and what rows count; None for 1 each."""
    if isinstance(chunk, LinearChunk):
        # of two classes with one prediction the first is -1
        return np.maximum(chunk.target, 0)[:, None], counted_rows(chunk)
    return chunk.X, chunk.weight


@dataclass(frozen=True)
class CellCounts:
    """Numbers of rows in the cells of tables: a row is in one cell of each, or in none.

    Parameters
    ----------
    sizes : tuple of int
        Number of cells of every table: bins of a feature, classes, labels with predictions.
    name : str
        What the cells are.

    Notes
    -----
    Rows are those of `BoxRows`, with the cell of a row in every table, -1 for none; or `LinearRows`
    of a classifier, whose cells are their classes.
    """

    sizes: tuple[int, ...]
    name: str = "rows in cells of features"

    @property
    def size(self):
        """Number of coordinates."""
        return sum(self.sizes)

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities of d tables: d and sqrt(d), or 2 d and sqrt(2 d).

        Proof. A row adds 1 to at most one cell of each table, a null row nothing. Zero-out removes
        that; under replace-one it leaves one cell of each and enters another, or, of a table with a
        single cell, does one of both: 1. All is attained. A group, whose weights add up to at most
        1, adds a mean of such vectors, and of zero.
        """
        moved = len(self.sizes)
        theorem = "a row is in one cell of each table"
        if adjacency == "replace-one":
            moved = sum(min(size, 2) for size in self.sizes)
            theorem = "a row leaves one cell of each table and enters another"
        return Sensitivity(float(moved), math.sqrt(moved), float(n_rows), theorem)

    def partial(self, chunk):
        """Return the counts over a chunk's rows."""
        cells, weight = _cells_of(chunk)
        starts = np.cumsum((0, *self.sizes[:-1]))
        there = (cells >= 0) & np.isfinite(cells)
        if weight is not None:
            weight = np.broadcast_to(weight[:, None], there.shape)[there]
        places = (np.where(there, cells, 0) + starts).astype(np.int64)[there]
        return np.bincount(places, weight, minlength=self.size).astype(np.float64)

    def evaluate(self, rows):
        """Return the counts over all rows, an array of shape (size,)."""
        return sum_over(rows, self.partial, self.size)


@dataclass
class HiddenCount:
    """A fit for which the number of rows, or the total of their weights, is a secret.

    Parameters
    ----------
    epsilon, delta, adjacency : float, float, str
        What is promised for the whole fit.
    price : float
        Epsilon of the number; 0 where none is needed.
    max_weight : float or None
        A weight that counts 1; None without weights.
    source : dict
        The shared budget, the source of noise, and its purpose.
    made_up : bool
        Whether rows are made up for a plan, which is for as many as was asked for.
    ledger : Ledger
        With the number, once it was released.
    most : int
        A public number that the number of rows, or of groups, is not above.
    """

    epsilon: float
    delta: float
    adjacency: str
    price: float
    max_weight: float | None
    source: Any
    made_up: bool = False
    ledger: Any = None
    most: int = 0

    @property
    def left(self):
        """Epsilon that is left for the fit."""
        if self.is_free:
            return self.epsilon
        # a hair less, so that prices add up to no more than the budget in floats
        return (self.epsilon - self.price) * (1 - 1e-9)

    @property
    def is_free(self):
        """Whether nothing is planned by a total, nor divided by one: none is released."""
        return self.price == 0

    def before(self, ledger):
        """Return a ledger with the number before the releases of the same fit."""
        if self.is_free:
            return ledger
        whole = self.ledger.assume(*ledger.assumptions)
        for release in ledger.releases:
            whole = whole.append(release)
        return whole

    def release(self, counts, n_rows, unit):
        """Release the number; a shared budget is charged for the whole fit.

        Parameters
        ----------
        counts : callable
            Returns what rows count, each in [0, 1], those of a group at most 1 together.
        n_rows, unit : int, {"row", "group"}
            How many there are of what is protected; private with adjacency "add-remove".

        Returns
        -------
        n_rows : int
            Public from here on, at least 1.
        """
        secret = self.adjacency == "add-remove"
        if self.is_free:
            # the number of rows is public, and bounds all sums of what they count
            self.most = n_rows
            return n_rows
        with warnings.catch_warnings():
            # the curator of the fit warns of a seed
            warnings.simplefilter("ignore", SeededNoiseWarning)
            curator = open_curator(
                None if self.made_up else (self.price, self.max_weight),
                counts,
                n_rows=_MOST_ROWS if secret else n_rows,
                epsilon=self.epsilon,
                delta=self.delta,
                adjacency=self.adjacency,
                unit=unit,
                **self.source,
            )
        query = RowCount() if self.max_weight is None else RowCount("total of the weights")
        (released,) = curator.release(query, LaplaceMechanism(self.price))
        self.ledger, self.most = Ledger.of(curator.ledger), n_rows
        found = n_rows if self.made_up else min(max(1, round(released)), _MOST_ROWS)
        if secret:
            scale = curator.ledger.releases[-1].noise.scale
            self.most = min(found + math.ceil(_MARGIN * scale), _MOST_ROWS)
        return min(found, self.most)


def hidden_count(estimator):
    """Return the `HiddenCount` of a fit that is under way; None if the number is public."""
    return vars(estimator).get("_hidden_count")


def largest_weight(estimator):
    """Return the weight that counts 1 in a fit that is under way; None without weights."""
    hidden = hidden_count(estimator)
    return None if hidden is None else hidden.max_weight


@contextmanager
def counted_first(estimator, weighted):
    """Fit an estimator with what is left when a secret number of rows, or total, was released.

    Parameters
    ----------
    estimator : estimator
        With a secret number of rows, or with weights and a bound on them, its `epsilon` and
        `adjacency` are others until the context closes: those of a fit that takes the released
        number for the true one.
    weighted : bool
        Whether rows have weights.
    """
    epsilon, adjacency = (getattr(estimator, name, None) for name in ("epsilon", "adjacency"))
    secret = adjacency == "add-remove"
    weighted = weighted and getattr(estimator, "max_weight", None) is not None
    releases = epsilon is not None and getattr(estimator, "_releases", True)
    if not (secret or weighted) or not releases:
        yield
        return
    share = getattr(estimator, "_count_share", _COUNT_SHARE)
    if secret:
        # plans need it, whatever is divided by it
        share = share or _COUNT_SHARE
    hidden = HiddenCount(
        epsilon,
        getattr(estimator, "delta", 0.0),
        adjacency,
        share * epsilon,
        estimator.max_weight if weighted else None,
        {
            "budget": estimator.budget,
            "random_state": estimator.random_state,
            "purpose": f"{type(estimator).__name__}, number of rows",
        },
        getattr(estimator, "_is_made_up", False),
    )
    estimator._hidden_count = hidden
    try:
        estimator.epsilon = hidden.left
        if secret:
            estimator.adjacency = "zero-out"
        yield
    finally:
        estimator.epsilon = epsilon
        if secret:
            estimator.adjacency = adjacency
        del estimator._hidden_count


def count_rows(groups, X, hidden, sample_weight=None, planned=None):
    """Say how many rows, or groups, there are; release that where it is a secret.

    Parameters
    ----------
    groups : array-like of shape (n_rows,) or None
        As for `resolve_groups`.
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        The rows. What they count is in memory, whether they are or not.
    hidden : HiddenCount or None
        Of the fit.
    sample_weight : array-like of shape (n_rows,), float or None
        Weights of rows, with `max_weight`.
    planned : callable, default=None
        Plans for a number of rows. What it refuses for many of them is refused before the number
        is released, which a shared budget pays for.

    Returns
    -------
    public : tuple of (int, str)
        The number, released where it is a secret, and what is protected: "row" or "group".
    whose : callable or None
        What `counts_of` has counts from; private. None where every row counts 1 in its place.

    Raises
    ------
    ValueError, TypeError
        If groups or weights are unusable, or as `planned` raises.
    """
    if hidden is None:
        public, codes = resolve_groups(groups, X)
        return public, None if codes is None else partial(shares, public[1], codes)
    weights = None
    if hidden.max_weight is not None:
        weights = units_of_weight(sample_weight, X.shape[0], hidden.max_weight)
    (n_rows, unit), codes = resolve_groups(groups, X)
    # a row alone is a group of one
    codes = np.arange(X.shape[0]) if codes is None else codes
    if planned is not None:
        planned(MANY_ROWS)
    # counted once, for the total and for the fit
    whose = cache(partial(_counts, unit, codes, weights))
    return (hidden.release(whose, n_rows, unit), unit), whose


def counts_of(whose):
    """Return what rows count, in whole parts of one.

    Parameters
    ----------
    whose : callable or None
        From `count_rows`.

    Returns
    -------
    counts : ndarray of shape (n_rows,) or None
        Private; multiples of 1 / PARTS in [0, 1], of a group at most 1 together. None for 1 each.
    """
    return None if whose is None else whose()


def _counts(unit, codes, weights):
    """Return what rows count, by the rows of their group and by their weights, if there are any."""
    counts = np.ones(len(codes)) if unit == "row" else shares(unit, codes)
    return counts if weights is None else in_parts(counts * weights)


def in_parts(counts):
    """Return what rows count, rounded down to whole parts of one, of which sums are exact."""
    return np.floor(counts * PARTS) / PARTS


def units_of_weight(sample_weight, n_rows, max_weight):
    """Return weights in units of the largest that counts, at most 1.

    Parameters
    ----------
    sample_weight : array-like of shape (n_rows,), or float
        Private weights.
    n_rows, max_weight : int, float
        How many there are, and the largest that counts.

    Returns
    -------
    weights : ndarray of shape (n_rows,)
        In [0, 1].

    Raises
    ------
    ValueError
        If they are not one finite number a row, none of them negative.
    """
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, float(sample_weight))
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must have one number for each row of X.") from None
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one number for each row of X, shape ({n_rows},); got shape "
            f"{weights.shape}."
        )
    # no message tells which
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must have finite numbers that are not negative.")
    with np.errstate(under="ignore"):
        return np.minimum(weights, max_weight) / max_weight

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The number of rows where it is a secret: adjacency "add-remove".

Neighbours are data sets with and without one row, so plans must not know how many there are. The
number is released first, for a small part of epsilon. Given what was released, a row more is a row
in the place of a null row, for estimators whose statistics are sums over rows that may stand
anywhere: the rest is the fit that adjacency "zero-out" has, with what is left of epsilon and the
released number in the place of the true one (Proposition 85).
"""

import math
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.curator import Curator
from skdp.privacy.kernel.errors import SeededNoiseWarning
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import LaplaceMechanism

# part of epsilon that the number gets, where it is in plans only
_COUNT_SHARE = 0.05
# no number of rows is larger: sums are exact enough for so many
_MOST_ROWS = 2**31
# scales of the noise between the released number and what the true one is below: it is not with a
# probability of exp(-1000), and sums beyond their bound are clamped then
_MARGIN = 1000


@dataclass(frozen=True)
class RowCount:
    """Number of rows, or of groups."""

    name = "number of rows"
    size = 1

    def sensitivity(self, adjacency, n_rows):
        """State the l1 sensitivity: 1.

        Proof. Neighbours differ in one row, or in one group, that is there or is not.
        """
        return Sensitivity(l1=1.0, l2=1.0, bound=float(n_rows), theorem="a row is counted once")

    def evaluate(self, rows):
        """Return the number as an array of shape (1,); what was admitted is the number."""
        return np.array([float(rows)])


@dataclass
class HiddenCount:
    """What a fit with adjacency "add-remove" has promised, and what it has released so far.

    Parameters
    ----------
    epsilon : float
        Budget of the whole fit.
    price : float
        Epsilon of the number of rows.
    ledger : Ledger
        With the number, once it was released.
    n_rows, most : int
        The released number, at least 1; and a number that the true one is below.
    """

    epsilon: float
    price: float
    ledger: Any = None
    n_rows: int = 0
    most: int = 0

    @property
    def left(self):
        """Epsilon that is left for the fit."""
        # a hair less, so that prices add up to no more than the budget in floats
        return (self.epsilon - self.price) * (1 - 1e-9)

    def before(self, ledger):
        """Return a ledger with the number of rows before the releases of the same fit."""
        whole = self.ledger.assume(*ledger.assumptions)
        for release in ledger.releases:
            whole = whole.append(release)
        return whole

    def release(self, estimator, n_rows, unit):
        """Release the number of rows; a shared budget is charged for the whole fit.

        Parameters
        ----------
        estimator : estimator
            Its budget, delta and source of noise are read.
        n_rows, unit : int, {"row", "group"}
            How many there are of what is protected; private.

        Returns
        -------
        n_rows : int
            Public from here on.
        """
        with warnings.catch_warnings():
            # the curator of the fit warns of a seed
            warnings.simplefilter("ignore", SeededNoiseWarning)
            curator = Curator(
                lambda: n_rows,
                n_rows=_MOST_ROWS,
                epsilon=self.epsilon,
                delta=getattr(estimator, "delta", 0.0),
                adjacency="add-remove",
                budget=estimator.budget,
                random_state=estimator.random_state,
                purpose=f"{type(estimator).__name__}, number of rows",
                unit=unit,
            )
        (released,) = curator.release(RowCount(), LaplaceMechanism(self.price))
        self.ledger = Ledger.of(curator.ledger)
        # rows that are made up for a plan are as many as was asked for
        made_up = getattr(estimator, "_is_made_up", False)
        self.n_rows = n_rows if made_up else min(max(1, round(released)), _MOST_ROWS)
        scale = curator.ledger.releases[-1].noise.scale
        self.most = min(self.n_rows + math.ceil(_MARGIN * scale), _MOST_ROWS)
        return self.n_rows


def hidden_count(estimator):
    """Return the `HiddenCount` of a fit that is under way; None with another adjacency."""
    return vars(estimator).get("_hidden_count")


def most_rows(estimator, n_rows):
    """Return a public number that the number of rows, or of groups, is not above."""
    hidden = hidden_count(estimator)
    return n_rows if hidden is None else hidden.most


@contextmanager
def zero_out_meanwhile(estimator):
    """Fit an estimator with adjacency "add-remove" as "zero-out", with what the count leaves.

    Parameters
    ----------
    estimator : estimator
        Its `adjacency` and `epsilon` are others until the context closes.
    """
    epsilon = getattr(estimator, "epsilon", None)
    releases = epsilon is not None and getattr(estimator, "_releases", True)
    if getattr(estimator, "adjacency", None) != "add-remove" or not releases:
        yield
        return
    share = getattr(estimator, "_count_share", _COUNT_SHARE)
    hidden = HiddenCount(epsilon, share * epsilon)
    estimator._hidden_count, estimator.adjacency = hidden, "zero-out"
    try:
        estimator.epsilon = hidden.left
        yield
    finally:
        estimator.adjacency, estimator.epsilon = "add-remove", epsilon
        del estimator._hidden_count

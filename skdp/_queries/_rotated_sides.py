# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""On which side of thresholds the coordinates of rotated rows lie."""

import functools
import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.fft import dct, idct

from skdp._queries._sums import sum_over
from skdp._queries._unit_columns import unit_columns
from skdp.privacy import Sensitivity


@functools.lru_cache(maxsize=8)
def signs(n_features):
    """Return the public signs of the rotation, an array of n_features times 1 or -1.

    They are the bits of SHAKE-128 on a fixed text: the same for everybody, and for all
    purposes but an adversary's as good as random.
    """
    digest = hashlib.shake_128(b"skdp: signs of the rotation").digest(-(-n_features // 8))
    bits = np.unpackbits(np.frombuffer(digest, dtype=np.uint8))[:n_features]
    chosen = 1.0 - 2.0 * bits
    chosen.flags.writeable = False
    return chosen


def rotate(rows):
    """Return rows with random-looking signs, cosine-transformed: a fixed rotation.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        In float64.

    Returns
    -------
    rotated : ndarray of shape (n_rows, n_features)
        Of the same Euclidean norms. A row's norm is spread over its coordinates: but for
        few rows, none is much larger than ``2 sqrt(log(n_features) / n_features)`` norms.
    """
    with np.errstate(under="ignore"):
        return dct(rows * signs(rows.shape[-1]), norm="ortho", axis=-1)


def rotate_back(point):
    """Return what `rotate` turns into a given point, an array of shape (n_features,)."""
    return idct(point, norm="ortho") * signs(len(point))


@dataclass(frozen=True, eq=False)
class RotatedSideSum:
    """Sum over rows, for every rotated coordinate, of 1/2 above a threshold and -1/2 below.

    Parameters
    ----------
    thresholds : ndarray of shape (n_features,)
        One for every coordinate of a rotated row; public.

    Notes
    -----
    Rows are dense `LinearRows` of the unit ball without an intercept. A coordinate at its
    threshold counts as below. A positive sum says that the median is above. The rotated rows
    are kept with the rows, in float64, as long as these are.
    """

    thresholds: Any

    @property
    def name(self):
        """What the statistic is, the same for all thresholds."""
        return "sides of thresholds that rotated coordinates lie on"

    @property
    def size(self):
        """Number of coordinates."""
        return self.thresholds.size

    def sensitivity(self, adjacency, n_rows):
        """State the sensitivities: sqrt(d)/2 (zero-out) or sqrt(d) (replace-one), in l1 d.

        Proof. A row contributes a vector of entries 1/2 and -1/2, of l2 norm sqrt(d)/2 and
        l1 norm d/2; a null row contributes zero. Zero-out removes one such vector. Under
        replace-one two differ by at most twice as much, attained by rows on opposite sides
        of all thresholds. The rotation is public and acts on every row alone.
        """
        root = math.sqrt(self.size)
        if adjacency == "zero-out":
            reach, theorem = root / 2, "a row has d entries of 1/2 or -1/2"
        else:
            reach, theorem = root, "d entries of 1/2 or -1/2 differ by <= 1 each"
        return Sensitivity(l1=root * reach, l2=reach, bound=n_rows / 2, theorem=theorem)

    def partial(self, chunk):
        """Return the sums of a chunk's halves; exact in floating point."""
        counted = np.isfinite(chunk.norm)
        # all rows are transformed, in their places: what a transform rounds to may depend
        # on where a row stands, and must not depend on which other rows are null
        if chunk.rotated is None:
            # transformed once: the next dozens of thresholds ask for the same
            columns, _ = unit_columns(chunk)
            chunk.rotated = rotate(columns.T)
        above = chunk.rotated > self.thresholds
        above[~counted] = False
        return np.count_nonzero(above, axis=0) - np.count_nonzero(counted) / 2

    def evaluate(self, rows):
        """Return the sums over all rows, an array of shape (n_features,)."""
        return sum_over(rows, self.partial, self.size)

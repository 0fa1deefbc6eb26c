# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Floating-point random variates for samplers that have no exact discrete form.

Releases that rest on these say "idealised" on the ledger: their privacy proof is
about real numbers, and floats only come close. Additive noise never uses them.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from skdp.privacy._bits import Bits

Floats = NDArray[np.float64]


class Variates:
    """Independent floats of standard laws, each made from one 64-bit word.

    Parameters
    ----------
    bits : Bits
        Source of random words.
    """

    def __init__(self, bits: Bits) -> None:
        self._bits = bits

    @property
    def bits(self) -> Bits:
        """The source of random words."""
        return self._bits

    def uniform(self, size: int) -> Floats:
        """Return floats in the open interval (0, 1), uniform to 2^-64."""
        words = self._bits.words(size)
        # the largest words round to 1.0, which is outside
        u = (words.astype(np.float64) + 0.5) * 2.0**-64
        return np.minimum(u, 1 - 2.0**-53)

    def exponential(self, size: int) -> Floats:
        """Return standard exponential floats, all positive."""
        return np.maximum(-np.log(self.uniform(size)), 2.0**-64)

    def gumbel(self, size: int) -> Floats:
        """Return standard Gumbel floats; the largest of w_i + g_i has index i w.p. ~ exp(w_i)."""
        return -np.log(self.exponential(size))

    def normal(self, size: int) -> Floats:
        """Return standard normal floats."""
        words = self._bits.words(size)
        u = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64
        sign = 1.0 - 2.0 * (words & np.uint64(1)).astype(np.float64)
        draws: Floats = sign * -ndtri(u)
        return draws

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Random words made into numbers, apart from where they come from.

Words are drawn in order by one thread; what is made of them may be made by others.
"""

import numpy as np
from scipy.special import ndtri

from skdp.privacy._bits import Bits


def bits_of(source):
    """Return the `Bits` behind a source of variates, or the source if it is one itself."""
    return source if isinstance(source, Bits) else source.bits


def uniforms(words):
    """Return floats in the open interval (0, 1), uniform to 2^-64, one of each word."""
    u = words.astype(np.float64)
    u += 0.5
    u *= 2.0**-64
    # the largest words round to 1.0, which is outside
    return np.minimum(u, 1.0 - 2.0**-53, out=u)


def normals(words):
    """Return standard normal floats, one of each word.

    Parameters
    ----------
    words : ndarray of uint64
        Independent uniform words.

    Returns
    -------
    draws : ndarray of float64
        Fresh, of the same shape. A word is read as an odd integer between ``-2^64`` and
        ``2^64``, that is a sign and half of a uniform number, so that both tails are fine.
    """
    signed = words.view(np.int64).astype(np.float64)
    signed += 0.5
    half = np.abs(signed)
    half *= 2.0**-64
    ndtri(half, out=half)
    return np.copysign(half, signed, out=half)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The average that a noisy method returns."""

import numpy as np


def skipped_steps(n_steps):
    """Return how many first iterates are left out: a third, eight at least, half at most."""
    return min(n_steps // 2, max(8, n_steps // 3))


class SuffixAverage:
    """Average of the iterates after the first third: eight at least, half at most."""

    def __init__(self, shape, n_steps):
        self._skip = skipped_steps(n_steps)
        self._count, self._sum = 0, np.zeros(shape)

    def add(self, coef):
        """Take the next iterate into account."""
        if self._skip > 0:
            self._skip -= 1
        else:
            self._sum += coef
            self._count += 1

    @property
    def value(self):
        """The average so far."""
        return self._sum / self._count

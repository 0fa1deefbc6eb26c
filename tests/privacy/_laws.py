# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What proofs about the law of the number of runs need, and the library does not."""

import math


def derivative(runs, s):
    """Return E[K s^(K - 1)] of a law of repetitions, for s in [0, 1]."""
    # proportional to (1 - (1 - gamma) s)^(-1 - eta); to exp(expected * s) for "poisson"
    gamma = runs.gamma
    if runs.law == "poisson":
        return runs.expected * math.exp(runs.expected * (s - 1))
    if gamma == 1:
        return 1.0
    rest = 1 - (1 - gamma) * s
    return gamma / rest**2 if runs.law == "geometric" else (gamma - 1) / (rest * math.log(gamma))

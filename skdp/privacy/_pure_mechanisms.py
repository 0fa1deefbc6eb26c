# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Two purely private mechanisms: K-norm noise, and the exponential mechanism."""

import math

from skdp.privacy._mechanisms import _UP, FLOAT_SLACK, Noise, PureMechanism, Sensitivity, _calibrate

# a drawn output lies on the grid bound / 2^32
_DRAWN_BITS = 32


class KNormMechanism(PureMechanism):
    """Noise of density proportional to ``exp(-|b|/s)``: one release is `epsilon`-DP.

    It is calibrated to the l2 sensitivity, and suits statistics whose l1 sensitivity is
    sqrt(size) times larger (Hardt and Talwar 2010).

    Parameters
    ----------
    epsilon : float
        Pure-DP parameter that one release costs, in nats.

    Examples
    --------
    >>> unit = Sensitivity(l1=float("inf"), l2=1.0, bound=10.0, theorem="example")
    >>> round(KNormMechanism(epsilon=0.5).calibrate(unit, size=3).scale, 4)
    2.0
    """

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the noise: s = (S + g sqrt(k)) / epsilon."""
        bound, root = sensitivity.bound, math.sqrt(size)
        scale, grid, paid = _calibrate(sensitivity.l2, bound, self.epsilon, root, spread=root)
        return Noise("k-norm", scale, grid, paid, bound, mu=0.0, epsilon=self.epsilon)


class ExponentialMechanism(PureMechanism):
    """A draw with probability proportional to ``exp(-score / temperature)``.

    If the change of the score between neighbours, as a function of the output, stays
    within an interval of length `spread`, temperature ``spread / epsilon`` makes one
    draw `epsilon`-DP: the density changes by the factor exp(-change / temperature), its
    integral by a mean of that factor (McSherry and Talwar 2007).

    Parameters
    ----------
    epsilon : float
        Pure-DP parameter that one draw costs, in nats.

    Examples
    --------
    >>> facts = Sensitivity(float("inf"), float("inf"), 1.0, "example", spread=2.0)
    >>> round(ExponentialMechanism(epsilon=0.5).calibrate(facts, size=1).scale, 4)
    4.0
    """

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the temperature, as the scale of the noise."""
        spread, bound = sensitivity.spread, sensitivity.bound
        if not (0 < spread < math.inf and 0 < bound < math.inf):
            raise ValueError("a query that is drawn must state a finite spread and bound.")
        paid = spread * (1 + FLOAT_SLACK)
        # coarse enough to hide the last digits of a sampler that works in floats
        grid = math.ldexp(1.0, math.ceil(math.log2(bound)) - _DRAWN_BITS)
        scale = paid / self.epsilon * _UP
        return Noise("exponential", scale, grid, paid, bound, mu=0.0, epsilon=self.epsilon)

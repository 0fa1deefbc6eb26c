# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Additive noise: Gaussian, Laplace, and Gaussian on a random batch.

A Gaussian release of a statistic of l2 sensitivity S with standard deviation sigma is exactly (S /
sigma)-GDP. A release with Laplace noise of scale b of a statistic of l1 sensitivity S is (S /
b)-DP. Both hold for the statistic rounded to the grid; the sensitivity of the rounded statistic is
charged (see ``kernel/mechanisms.py``). Gaussian releases on batches are in
``loss_distributions.py``. K-norm noise, which is additive too, has its own file.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.accounting import check_epsilon, check_mu
from skdp.privacy.kernel.batches import Sampling
from skdp.privacy.kernel.mechanisms import Law, Noise, Sensitivity, Source, Values, shaped
from skdp.privacy.laws.calibration import ROUND_UP, additive_scale


class Additive(Law):
    """Noise added to the exact statistic, ``query.evaluate(rows)``."""

    def release(self, query: Any, noise: Noise, source: Source) -> Values:
        """Evaluate the statistic on the rows, or on a batch of them, and add the noise."""
        values = shaped(query, query.evaluate(source.read()))
        return mechanisms.add_noise(values, noise, source.bits)


@dataclass(frozen=True)
class GaussianMechanism(Additive):
    """Gaussian noise such that one release is exactly `mu`-GDP.

    Parameters
    ----------
    mu : float
        Price of one release, a Gaussian-DP parameter.

    Examples
    --------
    >>> unit = Sensitivity(l1=float("inf"), l2=1.0, bound=10.0, theorem="example")
    >>> round(GaussianMechanism(mu=0.5).calibrate(unit, size=3).scale, 4)
    2.0
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check_mu(self.mu))

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the noise: sigma = (S + g sqrt(k)) / mu."""
        bound = sensitivity.bound
        scale, grid, paid = additive_scale(sensitivity.l2, bound, self.mu, math.sqrt(size))
        return Noise("gaussian", scale, grid, paid, bound, mu=paid / scale * ROUND_UP, epsilon=0.0)


@dataclass(frozen=True)
class PureMechanism(Law):
    """Base class of laws with a price in epsilon only."""

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))


class LaplaceMechanism(PureMechanism, Additive):
    """Laplace noise such that one release is `epsilon`-DP.

    Parameters
    ----------
    epsilon : float
        Price of one release, a pure epsilon in nats.

    Examples
    --------
    >>> unit = Sensitivity(l1=1.0, l2=1.0, bound=10.0, theorem="example")
    >>> round(LaplaceMechanism(epsilon=0.5).calibrate(unit, size=1).scale, 4)
    2.0
    """

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the noise: scale = (S + g k) / epsilon."""
        bound = sensitivity.bound
        scale, grid, paid = additive_scale(sensitivity.l1, bound, self.epsilon, size)
        return Noise("laplace", scale, grid, paid, bound, mu=0.0, epsilon=self.epsilon)

    def stated(self, sensitivity: Sensitivity) -> float:
        """Return the sensitivity in l1."""
        return sensitivity.l1


@dataclass(frozen=True)
class SampledGaussianMechanism(Additive):
    """Gaussian noise on a sum over the rows of a fresh random batch.

    Parameters
    ----------
    mu : float
        Sensitivity over standard deviation. The sensitivity is the norm of one row's contribution
        for Poisson batches, and the distance of two contributions otherwise. Without sampling a
        release would be `mu`-GDP.
    sampling : Sampling
        How the batch is drawn.

    See Also
    --------
    sampled_mu : The largest `mu` for a number of releases.

    Examples
    --------
    >>> sampling = Sampling("poisson", n_rows=1000, batch_size=10)
    >>> mechanism = SampledGaussianMechanism(mu=0.5, sampling=sampling)
    >>> unit = Sensitivity(l1=float("inf"), l2=1.0, bound=10.0, theorem="example")
    >>> round(mechanism.calibrate(unit, size=3).scale, 4)
    2.0
    """

    mu: float
    sampling: Sampling = field()

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the noise: sigma = (S + g sqrt(k)) / mu."""
        plain = GaussianMechanism(self.mu).calibrate(sensitivity, size)
        return replace(plain, sampling=self.sampling)


class NotedNoise(Law):
    """Additive noise with releases from a file, or written to it before use.

    Parameters
    ----------
    law : Additive
        Law that calibrates, prices and draws the noise.
    recall : callable
        Returns an earlier release, or None.
    note : callable
        Writes a release.

    Notes
    -----
    With seeded noise, an earlier release uses as many words as a new one, so the next release has
    the same words as without a file.
    """

    def __init__(self, law: Any, recall: Any, note: Any) -> None:
        self.law, self._recall, self._note = law, recall, note
        self.sampling = law.sampling

    def calibrate(self, sensitivity: Any, size: int) -> Any:
        """Return the noise of the law."""
        return self.law.calibrate(sensitivity, size)

    def lines(self, query: Any, sensitivity: Any, noise: Any) -> Any:
        """Return the lines of the law for the ledger."""
        return self.law.lines(query, sensitivity, noise)

    def release(self, query: Any, noise: Noise, source: Source) -> Values:
        """Return the earlier release, or make and write a new one."""
        found: Values | None = self._recall()
        if found is not None:
            if source.bits.seeded:
                if self.sampling is not None:
                    self.sampling.draw(source.bits)
                noise.rounded(query.size, source.bits)
            return found
        released: Values = self.law.release(query, noise, source)
        self._note(released)
        return released

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Objective perturbation: the minimiser of a private sum plus a secret random linear term.

With J(w) = sum of row losses + ridge/2 |w|^2, smooth and convex, and noise b, the
exact minimiser w of J(w) + <b, w> is a bijection of b with b = -grad J(w), so that
its density is f(b) det(Hess J(w)). Let two data sets differ in a row whose gradient
is u (and u' after the change), v = u - u'. The privacy loss at w is

    log f(b) - log f(b + v) + log det Hess J - log det Hess J'.

*Gradient.* u is a convex combination of 0 and `corners` fixed vectors of norm at most
`reach`. For Gaussian b with s = reach / sigma, the first difference is convex in u and
in u', so at most the largest of its values G at corners, where G ~ N(m^2/2, m^2) and
m <= s (one corner) or 2 s (two). For K-norm noise it is at most |v| / scale.

*Hessian.* Taking the row away only lowers the determinant; putting it in raises its
logarithm by at most `log_det`. Since P[loss > epsilon] enters delta as the mean of
(1 - exp(epsilon - loss))_+, and the positive part of a largest value is at most the
sum, delta is at most the sum over corners of `gdp_delta(m, epsilon - log_det)`.

*Tied* (one output): there u = -a t x, a in [0, 1], and the second derivative of the
loss is a (1 - a) times a constant, so the determinant grows by at most
log(1 + a (1 - a) slope). Over a, a G + log(1 + a (1 - a) slope) is concave, with
derivative G - slope at a = 1: it is at most max(G, slope). Where slope <= epsilon the
losses beyond epsilon are those of the noisy gradient alone, and the determinant is free.

*Groups.* Rows count c_i >= 0, those of a group at most 1 together; u is the sum of c_i u_i, and of
what is left of 1 times zero. The first difference is convex in u and in u', so it is at most the
mean of its values Q_ij at pairs of a row here and a row there, with weights c_i c'_j, which no
coefficients change. By concavity of log det, log det(I + M) <= tr M: the second difference is at
most `log_det`, or, tied, the mean of a_i (1 - a_i) slope. So the privacy loss is at most a mean of
terms, each of which is at most the largest of a few G as above, `slope` among them for tied ones:
a G + a (1 - a) slope <= max(G, slope), too. As (1 - exp(epsilon - loss))_+ is not convex,
it is replaced by (loss - epsilon)_+, which is larger and convex: its mean is at most the mean, over
pairs of rows, of E (max G - epsilon)_+, and that at most the sum over G. So groups of any number of
rows have delta as above with E (G - epsilon)_+ in the place of `gdp_delta`, some percent more. Pure
prices are bounds on the loss itself: nothing changes for these.

The result extends the (epsilon, delta) analysis of Kifer, Smith and Thakurta (2012)
and the tight one of Redberg, Koskela and Wang (2023). The constants printed in Bassily,
Smith and Thakurta (2014), Appendix E, are not private: noise alone spends epsilon there.

*Approximate minimiser.* The computed point lies within `distance` of the exact one.
Given the exact one (which determines b), the error is a function of the data, and two
errors differ by at most 2 `distance`: additive noise of that sensitivity covers them,
and what is released is a function of the exact minimiser and the covered error.
"""

import math
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.accounting import check_delta, check_epsilon, first, gdp_delta
from skdp.privacy.kernel.mechanisms import (
    FLOAT_SLACK,
    Law,
    Line,
    Noise,
    Price,
    Sensitivity,
    Source,
    Values,
    plain_floats,
    shaped,
)
from skdp.privacy.kernel.samplers import Bits, Integers
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.privacy.laws.calibration import MARGIN, gdp_mu
from skdp.privacy.laws.k_norm import KNormMechanism

# Part of the budget that covers the error of the computed minimiser
_COVER = 2.0**-8


@dataclass(frozen=True)
class Influence:
    """How one row acts on a strongly convex objective, stated by the query.

    Parameters
    ----------
    rows : {1, 2}
        Gradients that differ between neighbours: 1 (zero-out) or 2 (replace-one).
    reach : float
        Bound on the norm of a row's gradient.
    corners : int
        Number of fixed vectors that, with 0, span the gradients of a row.
    log_det : float
        Bound on what a row adds to the log-determinant of the Hessian.
    slope : float
        Largest curvature of a row over the ridge, if gradient and curvature are tied;
        infinite if not.
    ridge : float
        Strong convexity of the objective, from the penalty alone.
    distance : float
        Bound on the distance of the computed minimiser to the exact one.
    bound : float
        Bound on the magnitude of every coordinate of the minimiser without noise.
    theorem : str
        Why.
    of_groups : bool, default=False
        Whether gradients are means of those of several rows, `reach` and `corners` being these'.
    """

    rows: int
    reach: float
    corners: int
    log_det: float
    slope: float
    ridge: float
    distance: float
    bound: float
    theorem: str
    of_groups: bool = False

    def __post_init__(self) -> None:
        plain_floats(self, "reach", "log_det", "slope", "ridge", "distance", "bound")


@dataclass(frozen=True)
class ObjectiveNoise:
    """The secret linear term, and what covers the error of the minimiser."""

    linear: Noise
    cover: Noise
    error: tuple[Noise, float, str]  # the cover, the sensitivity that it is for, and why


def objective_delta(epsilon: float, sigma: float, influence: Influence) -> float:
    """Return the delta of the exact minimiser with Gaussian noise: see the module's proof."""
    s = influence.reach / sigma
    tied = general = 1.0
    two = influence.rows == 2
    tail = mean_excess if influence.of_groups else gdp_delta
    if epsilon >= influence.log_det:
        inner = epsilon - influence.log_det
        general = influence.corners * tail(s, inner)
        if two:
            general = influence.corners**2 * tail(2 * s, inner) + 2 * general
    if epsilon >= influence.slope:
        tied = tail(s, epsilon)
        if two:
            tied += tail(2 * s, epsilon) + tail(s, epsilon - influence.slope)
    return min(1.0, tied, general)


def mean_excess(mu: float, epsilon: float) -> float:
    """Return E (G - epsilon)_+ for G ~ N(mu^2/2, mu^2), rounded up."""
    away = epsilon - mu * mu / 2
    if mu == 0:
        return 0.0
    # two terms that nearly cancel: at least one in 3 + z^2 is left of the first
    z = away / mu
    value = mu * math.exp(-z * z / 2) / math.sqrt(2 * math.pi) - away * float(ndtr(-z))
    return max(value, 0.0) * (1 + 1e-9) + sys.float_info.min


def pure_scale(epsilon: float, influence: Influence) -> float:
    """Return the least scale of K-norm noise for a pure epsilon: see the module's proof."""
    tied = influence.rows * influence.reach / epsilon
    if influence.slope > influence.reach / tied:
        tied = math.inf
    left = epsilon - influence.log_det
    general = influence.rows * influence.reach / left if left > 0 else math.inf
    return min(tied, general)


@dataclass(frozen=True)
class LinearTerm(Noise):
    """The secret linear term: additive noise, and what one row does to the objective."""

    additive: Noise | None = None
    influence: Influence | None = None

    def actual(self, stated: float, size: int) -> Price:
        """Return the price of the exact minimiser, from the scale of the term."""
        influence = self.influence
        if influence is None or stated != influence.rows * influence.reach or not self.is_usable:
            return Price(epsilon=math.inf)
        influence = with_slack(influence)
        if self.law == "gaussian":
            delta = objective_delta(self.epsilon, self.scale, influence)
            return Price(epsilon=self.epsilon, delta=delta)
        enough = self.law == "k-norm" and pure_scale(self.epsilon, influence) <= self.scale
        return Price(epsilon=self.epsilon if enough else math.inf)

    def rounded(self, size: int, bits: Bits) -> Integers:
        """Draw the term, in whole grid steps."""
        assert self.additive is not None
        return replace(self.additive, scale=self.scale, grid=self.grid).rounded(size, bits)


def with_slack(influence: Influence) -> Influence:
    """Return an influence with a reach that covers evaluation in floating point."""
    return replace(influence, reach=influence.reach * (1 + FLOAT_SLACK))


@dataclass(frozen=True)
class ObjectivePerturbation(Law):
    """Noise such that one release of a perturbed minimiser is (epsilon, delta)-DP.

    A query states an `Influence`, and has ``minimise(rows, linear)``, the minimiser of the
    objective plus ``<linear, w>``. Audits ask it for ``slope_at(rows, w)``, the gradient of the
    objective at w and the logarithm of the determinant of its Hessian.

    Parameters
    ----------
    epsilon, delta : float
        Price, in nats and as a probability; delta = 0 makes it pure, with K-norm noise.
    """

    epsilon: float
    delta: float
    # what is returned depends on two terms that are drawn together
    prepayable = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))

    def longest_term(self, influence: Influence, size: int) -> float:
        """Return what the length of the linear term exceeds with probability below e^-70."""
        return _longest(self._linear(influence, size), size)

    def _linear(self, influence: Influence, size: int) -> LinearTerm:
        epsilon, delta = self.epsilon * (1 - _COVER), self.delta * (1 - _COVER)
        wider = with_slack(influence)
        # at the price of 1, the additive mechanisms choose the grid for a given scale
        unit = Sensitivity(math.inf, self._scale(epsilon, delta, wider), 1.0, "")
        additive = (GaussianMechanism(1.0) if delta else KNormMechanism(1.0)).calibrate(unit, size)
        return LinearTerm(
            additive.law, additive.scale, additive.grid,
            sensitivity=influence.rows * wider.reach, bound=additive.bound, mu=0.0,
            epsilon=epsilon, delta=delta, additive=additive, influence=influence,
        )  # fmt: skip

    def calibrate(self, influence: Influence, size: int) -> ObjectiveNoise:
        """Return the noise; raise ValueError if the ridge is too weak for the price."""
        linear = self._linear(influence, size)
        rounding = linear.grid * math.sqrt(size) / 2 / influence.ridge
        error = Sensitivity(
            l1=math.inf,
            l2=2 * (influence.distance + rounding),
            bound=influence.bound + _longest(linear, size) / influence.ridge,
            theorem="two computed minimisers are within twice the certified distance",
        )
        cover = self._cover().calibrate(error, size)
        return ObjectiveNoise(linear, cover, (cover, error.l2, error.theorem))

    def price(self, noise: ObjectiveNoise) -> Price:
        """Return the price of both terms together."""
        return Price(epsilon=self.epsilon, delta=self.delta)

    def lines(self, query: Any, sensitivity: Influence, noise: Any) -> tuple[Line, ...]:
        """Return the line of the exact minimiser, and that of the error of the computed one."""
        stated, idealised = sensitivity.rows * sensitivity.reach, getattr(query, "idealised", False)
        name, size, (cover, error, reason) = query.name, query.size, noise.error
        # the secret term is charged too: it is the price of the exact minimiser
        return (
            Line(name, size, noise.linear, stated, sensitivity.theorem, idealised),
            Line(f"error of the {name}", size, cover, error, reason, idealised),
        )

    def release(self, query: Any, noise: ObjectiveNoise, source: Source) -> Values:
        """Draw the linear term, minimise, and cover the error of the minimiser."""
        linear = mechanisms.add_noise(np.zeros(query.size), noise.linear, source.bits)
        values = shaped(query, query.minimise(source.read(), linear))
        return mechanisms.add_noise(values, noise.cover, source.bits)

    def _cover(self) -> GaussianMechanism | KNormMechanism:
        # this difference is exact in floats (Sterbenz): the two parts add up to the whole
        epsilon, delta = self.epsilon - self.epsilon * (1 - _COVER), self.delta * _COVER
        # the ledger adds up delta in floats
        return (
            GaussianMechanism(gdp_mu(epsilon, delta * 0.999)) if delta else KNormMechanism(epsilon)
        )

    @staticmethod
    def _scale(epsilon: float, delta: float, influence: Influence) -> float:
        """Return the smallest scale of the linear term that keeps the price."""
        if delta == 0:
            scale = pure_scale(epsilon, influence)
        elif objective_delta(epsilon, math.inf, influence) > delta:
            scale = math.inf
        else:
            too_loud = first(
                lambda s: objective_delta(epsilon, influence.reach / s, influence) > delta, 1e-10
            )
            scale = influence.reach / (too_loud * (1 - MARGIN))
        if not scale < math.inf:
            raise ValueError("the penalty is too weak for objective perturbation at this epsilon.")
        return scale


def _longest(noise: Noise, size: int) -> float:
    root = math.sqrt(size)
    gaussian = noise.law == "gaussian"
    # tails of the chi and of the Gamma distribution
    return noise.scale * (root + 12.0 if gaussian else size + 12.0 * root + 70.0)

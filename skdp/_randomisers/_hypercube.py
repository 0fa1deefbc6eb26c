# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""PrivUnit on the corners of a cube, for rows whose entries are bounded."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Integral

from skdp._randomisers._binomial import heads_tail, log_heads, log_heads_tail
from skdp._randomisers._cap import check_dims
from skdp._randomisers._odds import TwoDensities, check_local_epsilon, largest_chance, log_growth


@dataclass(frozen=True)
class PrivUnitCube(TwoDensities):
    """Parameters of PrivUnit on the cube, and what follows from them.

    Parameters
    ----------
    n_dims : int
        Number of entries of the rows u, each in [-1, 1].
    threshold : int
        Number of entries that a report from the cap shares with the corner, at least; more
        than half of `n_dims`.
    p : float
        Probability that the report is drawn from the cap, greater than the cap's share q of
        all corners. It may be less than 1/2.

    Notes
    -----
    First u is rounded to a corner: entry j to 1 with probability ``(1 + u_j) / 2``, else -1.
    Then V is drawn uniformly from the corners that share at least `threshold` entries with
    it, or from the others, and the report is Z = V/m.

    The rounding is a part of the channel and does not weaken it: given the corner, the
    probabilities of V are p/q and (1-p)/(1-q) times the uniform ones, whatever the corner is,
    so epsilon is ``logit p - logit q``. All numbers are discrete. The sufficient condition
    (20) of Bhowmick et al. (2018) is false: it needs kappa + 1 where kappa stands.

    With L heads among d fair coins, ``q = P(L >= T)`` and ``h = E[(2L/d - 1) 1(L >= T)] =
    C(d-1, T-1) / 2^d``; so the mean of V is m times the corner for ``m = h (p-q) / (q (1-q))``.
    All entries of Z are 1/m or -1/m, whence its variances. By parts ``E[(2L-d)^2 1(L >= T)] =
    d (q + (2T-d-1) h)``; so two entries of V agree with those of the corner with covariance
    ``c m`` for ``c = (2T-d-1) / (d-1)``, and those of Z have covariance
    ``(c/m - 1) u_i u_j``.
    """

    n_dims: int
    threshold: int
    p: float

    def __post_init__(self):
        check_dims(self.n_dims)
        low = self.n_dims // 2 + 1
        whole = isinstance(self.threshold, Integral)
        if not whole or not low <= self.threshold <= self.n_dims:
            raise ValueError(
                f"threshold must be an integer from {low} to {self.n_dims}, got {self.threshold!r}."
            )
        self.check_p("share of the cap")

    @cached_property
    def log_q(self):
        """Logarithm of the share of the cap."""
        return log_heads_tail(self.threshold, self.n_dims)

    def exact_q(self):
        """Return the share of the cap as a fraction, in time quadratic in the dimension."""
        return heads_tail(self.threshold, self.n_dims)

    @cached_property
    def scale(self):
        """The number m by which reports are divided."""
        q = math.exp(self.log_q)
        ratio = math.exp(_log_mean(self.threshold, self.n_dims) - self.log_q)
        return min(1.0, ratio * (self.p - q) / (1.0 - q))

    @property
    def cosine(self):
        """What takes the place of the cosine of a cap of the sphere, ``(2T-d-1) / (d-1)``."""
        if self.n_dims == 1:
            return self.scale
        return (2 * self.threshold - self.n_dims - 1) / (self.n_dims - 1)

    def variance(self, entry):
        """Return the variance of an entry of the report, given that of the row.

        Parameters
        ----------
        entry : float or ndarray
            Entries of rows, in [-1, 1].

        Returns
        -------
        variance : float or ndarray
            ``1/m^2 - entry^2``, which is also the mean squared error.
        """
        return 1.0 / self.scale**2 - entry * entry

    def covariance(self, first, second):
        """Return the covariance of two entries of the report, given those of the row."""
        return (self.cosine / self.scale - 1.0) * first * second


def _log_mean(threshold, n_dims):
    # the share of the corner's own entry: the others match threshold - 1 times or more
    return log_heads(threshold - 1, n_dims - 1) - math.log(2.0)


def log_scale(threshold, epsilon, n_dims):
    """Return log m of the randomiser that spends `epsilon` with a threshold.

    Parameters
    ----------
    threshold : int
        More than half of `n_dims`, and at most that.
    epsilon : float
        Budget of one report.
    n_dims : int
        Number of entries.

    Returns
    -------
    value : float
        ``log(C h / (1 + C q))`` with ``C = exp(epsilon) - 1``.
    """
    log_c = log_growth(epsilon)
    log_cq = log_c + log_heads_tail(threshold, n_dims)
    denominator = max(0.0, log_cq) + math.log1p(math.exp(-abs(log_cq)))
    return _log_mean(threshold, n_dims) + log_c - denominator


@lru_cache(maxsize=1024, typed=True)
def optimal_privunit_cube(epsilon: float, n_dims: int) -> PrivUnitCube:
    """Return the parameters of PrivUnit on the cube of least error for a budget.

    Parameters
    ----------
    epsilon : float
        Budget of one report in nats, from 10^-6 to 10^6.
    n_dims : int
        Number of entries of the rows.

    Returns
    -------
    parameters : PrivUnitCube
        Its `epsilon` is at most what was asked for.

    Notes
    -----
    The budget fixes p for each threshold T, and then ``m(T) = C h_T / (1 + C q_T)`` with
    ``C = exp(epsilon) - 1``. With ``w_T = 2T/d - 1`` the next threshold is better if and only
    if ``C h_{T+1} - w_T (1 + C q_{T+1})`` is positive, that is ``m(T+1) > w_T``. That number
    falls with T, by ``(2/d) (1 + C q_{T+1})``: so m has one peak, which bisection finds.
    A threshold of at most half of d has the error of its mirror image but costs more.

    Examples
    --------
    >>> from skdp.local import optimal_privunit_cube
    >>> best = optimal_privunit_cube(8.0, 100)
    >>> best.threshold, round(best.p, 5), round(best.scale, 5)
    (64, 0.90847, 0.27318)
    """
    epsilon, n_dims = check_local_epsilon(epsilon), check_dims(n_dims)
    low, high = n_dims // 2 + 1, n_dims
    while low < high:
        middle = (low + high) // 2
        if log_scale(middle + 1, epsilon, n_dims) > math.log(2 * middle / n_dims - 1.0):
            low = middle + 1
        else:
            high = middle
    p = largest_chance(epsilon, log_heads_tail(low, n_dims))
    return PrivUnitCube(n_dims, low, p)

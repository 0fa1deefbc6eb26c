# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""PrivUnit on the corners of a cube, for rows with bounded entries.

A. Bhowmick et al. (2018), Algorithm 2. Reports have one bit an entry, and are drawn exactly. In
this order: probabilities of numbers of heads; the randomiser; its best parameters; draws of numbers
of heads, and of subsets.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from numbers import Integral

import numpy as np

from skdp.local.randomisers.base import (
    Randomiser,
    TwoDensities,
    check_local_epsilon,
    coins,
    in_chunks,
    largest_chance,
    log_growth,
    pack_numbers,
    unpack_numbers,
)
from skdp.local.randomisers.caps import beta_fraction, check_dims

# Probabilities of the number of heads among fair coins, in log space.


# up to here integers are summed
_EXACT = 64


def _stirling_error(n):
    """Return what Stirling's formula lacks to the logarithm of a factorial; n is above 0."""
    if n < 16:
        return math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2.0 * math.pi)
    u = 1.0 / (float(n) * n)
    return (1 / 12 - u * (1 / 360 - u * (1 / 1260 - u * (1 / 1680 - u / 1188)))) / n


def log_heads(k, n):
    """Return the logarithm of the probability of `k` heads among `n` fair coins.

    Parameters
    ----------
    k, n : int
        From 0 to `n`, and at least 0.

    Returns
    -------
    value : float
        ``log(C(n, k) / 2^n)``, of relative accuracy ``2e-15``, or of that absolute accuracy if
        it is above -1. Differences of logarithms of the gamma function would lose ``n log n``
        units of the last place; with Stirling's formula the large terms make one, the
        relative entropy of ``k/n`` and 1/2, times n (Loader 2000).
    """
    if n <= _EXACT:
        return math.log(math.comb(n, k) / (1 << n))
    if k in (0, n):
        return -n * math.log(2.0)
    tilt = (2 * k - n) / n
    # for small tilts the two terms are minus one and two times the square
    entropy = 0.5 * n * (math.log1p(-tilt * tilt) + 2.0 * tilt * math.atanh(tilt))
    error = _stirling_error(n) - _stirling_error(k) - _stirling_error(n - k)
    return error - entropy + 0.5 * math.log(n / (2.0 * math.pi * k * (n - k)))


def log_heads_tail(k, n):
    """Return the logarithm of the probability of at least `k` heads among `n` fair coins.

    Parameters
    ----------
    k, n : int
        More than half of `n`, up to ``n + 1``, and at least 0.

    Returns
    -------
    value : float
        Minus infinity for ``n + 1``. The tail is the incomplete beta function of k and
        ``n - k + 1`` at 1/2; its continued fraction is multiplied by the probability of k.
    """
    if k > n:
        return -math.inf
    if n <= _EXACT:
        return math.log(heads_tail(k, n))
    if 2 * k == n + 1:
        return -math.log(2.0)
    fraction = beta_fraction(float(k), n - k + 1.0, 0.5, 0.5)
    return log_heads(k, n) + math.log(0.5 * fraction)


def heads_tail(k, n):
    """Return the probability of at least `k` heads among `n` fair coins as a fraction."""
    term = total = 1 if k <= n else 0
    for j in range(n, k, -1):
        # from the number of ways to have j heads to that of j - 1
        term = term * j // (n - j + 1)
        total += term
    return Fraction(total, 1 << n)


# The randomiser, and its best parameters.


@dataclass(frozen=True)
class PrivUnitCube(TwoDensities, Randomiser):
    """PrivUnit on the cube: parameters and their consequences.

    Parameters
    ----------
    n_dims : int
        Number of entries of the rows u, each in [-1, 1].
    threshold : int
        Least number of entries that a report from the cap shares with the corner; more than half
        of `n_dims`.
    p : float
        Probability that the report is drawn from the cap, greater than the cap's share q of
        all corners. It may be less than 1/2.

    Notes
    -----
    First u is rounded to a corner: entry j to 1 with probability ``(1 + u_j) / 2``, else -1.
    Then V is drawn uniformly from the corners that share at least `threshold` entries with
    it, or from the others, and the report is Z = V/m.

    The rounding is a part of the channel and does not weaken it: given the corner, the
    probabilities of V are p/q and (1-p)/(1-q) times the uniform ones, whatever the corner is, so
    epsilon is ``logit p - logit q``. All numbers are discrete. The sufficient condition (20) of
    Bhowmick et al. (2018) is false: it needs kappa + 1 in place of kappa.

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

    exact = True

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

    @cached_property
    def scale(self):
        """Divisor m of reports."""
        q = math.exp(self.log_q)
        ratio = math.exp(_log_mean(self.threshold, self.n_dims) - self.log_q)
        return min(1.0, ratio * (self.p - q) / (1.0 - q))

    @property
    def cosine(self):
        """Counterpart of the cosine of a cap of the sphere, ``(2T-d-1) / (d-1)``."""
        if self.n_dims == 1:
            return self.scale
        return (2 * self.threshold - self.n_dims - 1) / (self.n_dims - 1)

    def variance(self, entry):
        """Return the variance of an entry of the report, given the entry of the row.

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

    @property
    def worst_variance(self):
        """The largest variance of an entry of a report: that of zero."""
        return float(self.variance(0.0))

    @property
    def bound(self):
        """Magnitude of all entries of reports."""
        return 1.0 / self.scale

    def message_bits(self, number_bits=32, n_entries=None):
        """Return how many bits a report takes when it is sent: one an entry."""
        return super().message_bits(1, n_entries)

    def packed(self, report, grid):
        """Return one report as bytes: a bit an entry, set if it is positive."""
        return pack_numbers(report > 0.0, 1)

    def unpacked(self, message, grid):
        """Return the report that bytes are of; see `Randomiser`."""
        high = np.rint(self.bound / grid) * grid
        return np.where(unpack_numbers(message, 1, self.n_dims) == 1, high, -high)

    def log_law(self, reports, vector):
        """Return the logarithms of the probabilities of reports; see `Randomiser`."""
        entries = np.clip(np.nan_to_num(vector, nan=-1.0), -1.0, 1.0)
        agree = (1.0 + np.sign(reports) * entries) / 2.0
        # how many entries of the corner to which a row is rounded a report shares
        law = np.zeros((len(reports), self.n_dims + 1))
        law[:, 0] = 1.0
        for share in agree.T[:, :, None]:
            moved = law[:, :-1] * share
            law *= 1.0 - share
            law[:, 1:] += moved
        inside = law[:, self.threshold :].sum(axis=1)
        inner, outer = np.exp(self.log_densities)
        return np.log(inner * inside + outer * (1.0 - inside))

    def randomise(self, vectors, bits, n_threads=1, *, out=None):
        """Return the unbiased report of every row, of entries ``1/m`` and ``-1/m``.

        Entries beyond -1 or 1 count as the nearer end, and NaN as -1.

        Notes
        -----
        Given the corner to which a row is rounded, the law of its report is exactly that of
        the parameters: the coin, the number of matches and the subset of the entries that
        match are made from integers. Rounding itself is exact to ``2^-53`` and has no part in
        the proof.
        """
        n_rows, n_dims = vectors.shape
        wanted = matches(self.threshold, n_dims, coins(self.p, n_rows, bits), bits)
        out = np.empty((n_rows, n_dims)) if out is None else out
        high = 1.0 / self.scale

        def work(rows, words):
            # 53 bits are floats from -1 on, all below 1
            below = (words[:, :n_dims].view(np.int64) >> 11) * 2.0**-52
            with np.errstate(invalid="ignore"):
                positive = below < vectors[rows]
            match, tied = uniform_subsets(words[:, n_dims:], wanted[rows])
            out[rows] = np.where(positive == match, high, -high)
            return np.flatnonzero(tied)

        in_chunks(work, n_rows, 2 * n_dims, bits, n_threads)
        return out


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
        Randomiser with an `epsilon` of at most the budget.

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


# Numbers of heads among fair coins, given that they are at least or below a threshold, exactly.
#
# A draw is the inverse of the distribution function at a uniform number u, of which 64 bits are
# drawn first. The boundaries are known to much less than ``2^-64``; where u is too near to one
# of them, more bits of u and more digits of the boundary decide the same question.


# bits of the fractions that the weights are, at first
_BITS = 192
# words this near to a boundary are left to further bits
_NEAR = 4


def _cumulative(threshold, n_dims, inside, n_bits):
    """Return cumulative weights of the numbers of heads on one side of a threshold.

    Returns
    -------
    first : int
        The number of heads that the first weight belongs to.
    sums : list of int
        Sums of weights, in units in which the largest weight is ``2^n_bits``. Numbers of heads
        whose weights vanish at that precision are left out.
    error : int
        Bound on the error of each sum.

    Notes
    -----
    Weights follow from the largest one by factors of at most 1, each rounded down. So the
    k-th is off by less than k units, and their sums by less than the square of the number of
    coins. Those that are left out come after one of 0 units, hence are below that number too.
    """
    mode = threshold if inside else min(threshold - 1, n_dims // 2)
    up, down = [1 << n_bits], []
    last = n_dims if inside else threshold - 1
    for heads in range(mode, last):
        weight = up[-1] * (n_dims - heads) // (heads + 1)
        if not weight:
            break
        up.append(weight)
    weight = up[0]
    for heads in range(mode, mode if inside else 0, -1):
        weight = weight * heads // (n_dims - heads + 1)
        if not weight:
            break
        down.append(weight)
    return mode - len(down), list(accumulate(down[::-1] + up)), (n_dims + 1) ** 2


@lru_cache(maxsize=256)
def _boundaries(threshold, n_dims, inside):
    """Return the first number of heads, and the words at which the following ones begin."""
    first, sums, _ = _cumulative(threshold, n_dims, inside, _BITS)
    # the last boundary is 2^64
    words = [(value << 64) // sums[-1] for value in sums[:-1]]
    return first, np.array(words, dtype=np.uint64)


def _decided(word, threshold, n_dims, inside, bits):
    """Return the number of heads at the number whose first 64 bits are `word`."""
    width, n_bits = 64, _BITS
    while True:
        for extra in bits.words(n_bits // 64).tolist():
            word, width = (word << 64) | extra, width + 64
        first, sums, error = _cumulative(threshold, n_dims, inside, n_bits)
        # u times the sum of all weights lies between these
        low = word * (sums[-1] - error) >> width
        high = ((word + 1) * (sums[-1] + error) >> width) + 1
        index = bisect_right(sums, low - error)
        # nothing is below the first weight, unless small ones were left out
        clear = index > 0 or inside or first == 0 or low >= error
        if clear and index < len(sums) and high + error <= sums[index]:
            return first + index
        n_bits *= 2


def matches(threshold, n_dims, inside, bits):
    """Draw numbers of heads among fair coins, on given sides of a threshold.

    Parameters
    ----------
    threshold, n_dims : int
        The threshold, more than half of the number of coins, and that number.
    inside : ndarray of bool, shape (n,)
        Whether a draw is at least the threshold, or below it.
    bits : Bits
        Source of random words.

    Returns
    -------
    heads : ndarray of int64, shape (n,)
        Binomial given their sides, exactly.
    """
    heads = np.empty(inside.size, dtype=np.int64)
    words = bits.words(inside.size)
    near = np.uint64(_NEAR)
    for side in (True, False):
        chosen = np.flatnonzero(inside == side)
        first, begins = _boundaries(threshold, n_dims, side)
        word = words[chosen]
        # how many of the boundaries are at most a bit below, and at most a bit above
        low = np.searchsorted(begins, np.maximum(word, near) - near, side="right")
        high = np.searchsorted(begins, word + np.minimum(near, ~word), side="right")
        heads[chosen] = first + low
        ends = (word < near) | (~word < near)
        for i in chosen[(low != high) | ends].tolist():
            heads[i] = _decided(int(words[i]), threshold, n_dims, side, bits)
    return heads


# The entries that match, uniform among all subsets of a size.


def uniform_subsets(keys, sizes):
    """Choose a subset of every row, uniformly among those of a size.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n, d)
        Independent uniform words.
    sizes : ndarray of int64, shape (n,)
        From 0 to d.

    Returns
    -------
    chosen : ndarray of bool, shape (n, d)
        The entries of the smallest keys.
    tied : ndarray of bool, shape (n,)
        Rows in which two equal keys leave it open; they need other keys. That does not make
        one subset more probable than another, for all play the same part.
    """
    n_dims = keys.shape[1]
    ordered = np.sort(keys, axis=1)
    last = np.take_along_axis(ordered, np.maximum(sizes - 1, 0)[:, None], axis=1)
    following = np.take_along_axis(ordered, np.minimum(sizes, n_dims - 1)[:, None], axis=1)
    chosen = (keys <= last) & (sizes > 0)[:, None]
    tied = (last == following)[:, 0] & (sizes > 0) & (sizes < n_dims)
    return chosen, tied

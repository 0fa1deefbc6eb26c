# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private means of rows in the unit ball: noisy sums, and sums of clipped rows.

The noise of a sum is in proportion to the longest row that is admitted. So rows are clipped to
a radius that is itself released, around a center that is released too. `plan_mean` chooses among
four plans, each a frozen dataclass of public numbers with ``run(curator)``:

- `GaussianMean`, one noisy sum (`RowSum`);
- `ClippedMean` without stages: noisy counts of the rows beyond a radius (`FarCount`) find one
  that leaves out few rows, and the rows clipped to it are added up (`ClippedRowSum`);
- `ClippedMean` with stages: every stage does the same around a center, and the noisy mean is the
  next center (CoinPress [1]_);
- `ShiftedClippedMean`: the rows are rotated, a noisy bisection finds the median of every rotated
  coordinate (`RotatedSideSum`), and the rows are clipped around these medians [2]_.

.. [1] S. Biswas, Y. Dong, G. Kamath and J. Ullman, "CoinPress: practical private mean and
   covariance estimation", NeurIPS 2020.
.. [2] Z. Huang, Y. Liang and K. Yi, "Instance-optimal mean estimation under differential privacy",
   NeurIPS 2021.
"""

import functools
import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.fft import dct, idct

from skdp._rows.base import L2Ball, ball_constraint, chunk_rows, sum_over
from skdp._rows.columns import distances_from, gaps_from, unit_columns
from skdp._rows.linear import chunks_of, counted_rows
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import GaussianMechanism

#: with too few rows for one, the one before it is taken
MEANS = ("gaussian", "clipped", "coinpress", "shifted-clipped")


def plan_mean(mechanism, *, n_rows, n_features, mu, adjacency):
    """Plan a private mean of rows in the unit ball, from public numbers.

    Parameters
    ----------
    mechanism : {"gaussian", "clipped", "coinpress", "shifted-clipped"}
        One noisy sum; the mean of rows clipped around the origin to a released radius; the
        same around centers that are released one after another; the same around private
        medians of rotated coordinates.
    n_rows, n_features : int
        Shape of the data; public.
    mu : float
        Gaussian-DP price of everything the plan releases.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.

    Returns
    -------
    plan : GaussianMean, ClippedMean or ShiftedClippedMean
        A frozen plan with `run(curator)`, which returns the center as an array of shape
        (n_features,) in the unit ball, `n_releases`, and `mechanism`, which is another one
        than was asked for where that needs more rows: "shifted-clipped" falls back to
        "coinpress", that to "clipped", and that to "gaussian". Rows may be sparse for
        "gaussian" and "clipped".

    Raises
    ------
    ValueError
        If there is no such mechanism.
    """
    if mechanism not in MEANS:
        raise ValueError(f"mechanism must be one of {MEANS}; got {mechanism!r}.")
    given = (n_rows, n_features, mu, adjacency)
    plans = [ClippedMean(*given), plan_coinpress(*given), ShiftedClippedMean(*given)]
    for plan in reversed(plans[: MEANS.index(mechanism)]):
        if plan.is_sound:
            return plan
    return GaussianMean(n_rows, n_features, mu)


def refuse_rotated_groups(mechanism, groups, hidden):
    """Raise a ValueError for groups of rows, or a secret number of rows, that are to be rotated.

    A transform of many rows may round one by its place, which depends on the sizes of other
    groups; and a side of a threshold hangs on the last digit.
    """
    if mechanism == "shifted-clipped" and hidden is not None:
        what = "adjacency must be 'replace-one' or 'zero-out'"
        raise ValueError(
            f"{'sample_weight must be None' if hidden.max_weight else what} with "
            "mechanism='shifted-clipped', whose rotation rounds a row by its place. Use "
            "'coinpress' or 'clipped'."
        )
    if mechanism == "shifted-clipped" and groups is not None:
        raise ValueError(
            "groups must be None with mechanism='shifted-clipped', whose rotation rounds a row by "
            "its place among those of other groups; got groups. Use 'coinpress' or 'clipped'."
        )


# One noisy sum of rows in a ball or a box.


@dataclass(frozen=True)
class GaussianMean:
    """One release of the sum of the rows.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data; public.
    mu : float
        Gaussian-DP price.
    """

    n_rows: int
    n_features: int
    mu: float

    #: mechanism that this is
    mechanism = "gaussian"
    #: number of releases
    n_releases = 1

    def run(self, curator):
        """Release the mean.

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows` without an intercept.

        Returns
        -------
        center : ndarray of shape (n_features,)
            In the unit ball.
        """
        query = RowSum(L2Ball(1.0), self.n_features)
        total = curator.release(query, GaussianMechanism(self.mu))
        return ball_constraint(total / self.n_rows, 1.0)


@dataclass(frozen=True)
class RowSum:
    """Sum of rows in the unit ball, or in the box [-1, 1]^d.

    Parameters
    ----------
    domain : L2Ball or Box
        What the rows were admitted into (and scaled to unit size).
    n_features : int
        Dimension d.
    """

    domain: Any
    n_features: int

    @property
    def name(self):
        """What the statistic is."""
        shape = "unit ball" if isinstance(self.domain, L2Ball) else "box [-1, 1]^d"
        return f"sum of rows in the {shape}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_features

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities: a row's largest norm, or its diameter.

        Proof. A row of the unit ball has l2 norm at most 1 and, by Cauchy-Schwarz, l1
        norm at most sqrt(d); a row of the box sqrt(d) and d. Zero-out removes one row.
        Under replace-one the difference of two rows is at most twice as long, attained
        by opposite rows. A group, whose weights add up to at most 1, contributes a point of the
        domain: that is convex, and contains zero.
        """
        root = math.sqrt(self.n_features)
        l1, l2 = (root, 1.0) if isinstance(self.domain, L2Ball) else (root * root, root)
        if adjacency == "zero-out":
            theorem = "norm of the longest row of the domain"
        else:
            l1, l2, theorem = 2 * l1, 2 * l2, "diameter of the domain"
        return Sensitivity(l1=l1, l2=l2, bound=float(n_rows), theorem=theorem)

    def partial(self, chunk):
        """Return the sum of a chunk's rows."""
        if isinstance(chunk, BoxChunk):
            return chunk.total()
        return chunk.combine(counted_rows(chunk))

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (n_features,)."""
        return sum_over(rows, self.partial, self.size)


class BoxRows:
    """Rows admitted into a box; a coordinate that is not a number counts as its center.

    Parameters
    ----------
    X : ndarray or RowStream of shape (n_rows, n_features)
        Never changed. A stream is read chunk by chunk whenever a chunk is needed.
    box : Box
        Public bounds.
    n_threads : int, default=1
        Threads for the sums.
    weight : ndarray of shape (n_rows,), default=None
        What rows count, in [0, 1]: those of a group at most 1 together. None for 1 each.
    """

    def __init__(self, X, box, n_threads=1, weight=None):
        self.n_threads, self.n_rows = n_threads, X.shape[0]
        self.n_entries, _ = chunk_rows(X)
        self.chunks = chunks_of(BoxAdmission(box), X, weight=weight)
        self._X, self._box, self._weight = X, box, weight

    def part(self, start, stop):
        """Return the rows of a range of positions, as rows that share memory with these."""
        weight = None if self._weight is None else self._weight[start:stop]
        return BoxRows(self._X[start:stop], self._box, self.n_threads, weight)


@dataclass(frozen=True)
class BoxAdmission:
    """How rows become a chunk of `BoxRows`; `box` is the public box."""

    box: Any

    def __call__(self, block):
        """Return the chunk of a block (rows,), or of that and what rows count."""
        X, *weight = block
        return BoxChunk(X, self.box, *weight)


class BoxChunk:
    """Consecutive rows of a box; with a `weight` each counts so often."""

    __slots__ = ("X", "box", "weight")

    def __init__(self, X, box, weight=None):
        self.X, self.box, self.weight = X, box, weight

    def total(self):
        """Return the sum of the rows, mapped to [-1, 1] per coordinate."""
        unit = self.box.to_unit(self.X.astype(np.float64, copy=False))
        return unit.sum(axis=0) if self.weight is None else self.weight @ unit


# Clipped means: a radius that leaves out few rows, then the rows clipped to it.

# Shares of mu^2, relative to that of the last sum: the radius and the center of a stage,
# and the last radius, whose margin should be no more rows than the target. Chosen on data.
_STAGE_RADIUS, _STAGE_CENTER = 1 / 8, 1 / 16
_LAST_RADIUS = (1 / 32, 1 / 2)
# A stage divides the distance of the center from the rows by 1 / contraction; together
# they shall divide it by a million, and never are there more than four of them.
_RANGE, _MOST_STAGES = 1e6, 4


def plan_coinpress(n_rows, n_features, mu, adjacency):
    """Return the plan of a clipped mean with as many stages as pay, at most four.

    Parameters
    ----------
    n_rows, n_features, mu, adjacency : int, int, float, str
        As in `ClippedMean`.

    Returns
    -------
    plan : ClippedMean
        With at least one stage.
    """
    most = ClippedMean(n_rows, n_features, mu, adjacency, _MOST_STAGES)
    gain = max(-math.log(most.contraction), 1e-3)
    n_stages = min(_MOST_STAGES, math.ceil(math.log(_RANGE) / gain))
    return ClippedMean(n_rows, n_features, mu, adjacency, n_stages)


@dataclass(frozen=True)
class ClippedMean:
    """A radius that leaves out few rows, and the mean of the rows clipped to it.

    Before that come stages that move the center: each releases a radius around the
    center, and the mean of the rows clipped to it, which is the new center.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data; public.
    mu : float
        Gaussian-DP price of everything.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    n_stages : int, default=0
        Stages before the last radius and sum.

    Notes
    -----
    The last radius leaves out about ``a sqrt(n_features) / mu`` rows, a the sensitivity in
    radii. There the noise, which grows with the radius at the rate of its expected norm,
    and the worst bias of clipping, which falls at the rate of the rows left out, balance.
    """

    n_rows: int
    n_features: int
    mu: float
    adjacency: str
    n_stages: int = 0

    @property
    def mechanism(self):
        """Mechanism that this is."""
        return "coinpress" if self.n_stages else "clipped"

    @property
    def shares(self):
        """Prices of a stage's radius and center, and of the last radius and sum."""
        last = float(np.clip(16 / self.n_features, *_LAST_RADIUS))
        weights = np.array([_STAGE_RADIUS, _STAGE_CENTER, last, 1.0])
        total = self.n_stages * weights[:2].sum() + weights[2:].sum()
        return tuple((self.mu * np.sqrt(weights / total)).tolist())

    def _noise(self, mu):
        """Return the expected norm of a sum's noise, in clipping radii."""
        reach = 1.0 if self.adjacency == "zero-out" else 2.0
        return reach * math.sqrt(self.n_features) / mu

    @property
    def contraction(self):
        """Norm of the noise in a stage's center, in radii."""
        return self._noise(self.shares[1]) / self.n_rows

    @property
    def searches(self):
        """How the radii of the stages and the last radius are found."""
        stage, _, last, total = self.shares
        tail = min(self._noise(total), self.n_rows / 2)
        return (
            RadiusSearch(self.n_rows, stage, self.adjacency),
            RadiusSearch(self.n_rows, last, self.adjacency, tail),
        )

    @property
    def n_releases(self):
        """Number of releases."""
        return (self.n_stages + 1) * (RadiusSearch.n_releases + 1)

    @property
    def is_sound(self):
        """Whether there are rows enough: noise would decide the radii or centers otherwise."""
        stage, last = self.searches
        moves = stage.margin <= self.n_rows / 2 and self.contraction <= 0.5
        return last.margin <= self.n_rows / 2 and (moves or not self.n_stages)

    def run(self, curator, center=None):
        """Release the mean.

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows` of the unit ball without an intercept; sparse rows only if
            there is neither a center nor a stage.
        center : ndarray of shape (n_features,), default=None
            Where to start, a released or public point of the unit ball; None is the origin.

        Returns
        -------
        center : ndarray of shape (n_features,)
            In the unit ball.
        """
        stage, last = self.searches
        for _ in range(self.n_stages):
            center = self._moved(curator, center, stage.run(curator, center), self.shares[1])
        return self._moved(curator, center, last.run(curator, center), self.shares[3])

    def _moved(self, curator, center, radius, mu):
        """Release the mean of the rows clipped to a radius around a center."""
        query = ClippedRowSum(self.n_features, radius, center)
        shift = curator.release(query, GaussianMechanism(mu)) / self.n_rows
        return ball_constraint(shift if center is None else center + shift, 1.0)


@dataclass(frozen=True, eq=False)
class ClippedRowSum:
    """Sum of the rows minus a center, each of them scaled down to a radius.

    Parameters
    ----------
    n_features : int
        Dimension.
    radius : float
        Largest norm of what a row contributes, greater than 0; public.
    center : ndarray of shape (n_features,), default=None
        Public point of the unit ball; None is the origin, around which rows may be sparse.

    Notes
    -----
    Rows are `LinearRows` of the unit ball without an intercept. A null row contributes
    nothing: it counts as a row at the center.
    """

    n_features: int
    radius: float
    center: Any = None

    @property
    def name(self):
        """What the statistic is."""
        around = "the origin" if self.center is None else "a released center"
        return f"sum of rows clipped around {around}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_features

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities: the radius, or twice that; in l1 sqrt(d) times.

        Proof. What a row contributes has l2 norm at most `radius` and, by Cauchy-Schwarz, l1
        norm at most sqrt(d) times that; a null row contributes zero. Zero-out removes one
        contribution. Under replace-one two differ by at most 2 `radius`, attained by rows
        that are far away on opposite sides of the center. A group, whose weights add up to at
        most 1, contributes a mean of contributions, and of zero: no longer, and no further apart.
        """
        if adjacency == "zero-out":
            reach, theorem = self.radius, "a clipped row is no longer than the radius"
        else:
            reach, theorem = 2 * self.radius, "two clipped rows differ by <= 2 radii"
        l1 = math.sqrt(self.n_features) * reach
        return Sensitivity(l1=l1, l2=reach, bound=n_rows * self.radius, theorem=theorem)

    def partial(self, chunk):
        """Return the clipped rows of a chunk, summed."""
        if self.center is None:
            # nothing is left of a null row, whose norm is infinite
            weight = self.radius / np.maximum(chunk.norm, self.radius)
            return chunk.combine(weight if chunk.weight is None else weight * chunk.weight)
        gaps, distance = gaps_from(self.center, chunk)
        weight = self.radius / np.maximum(distance, self.radius)
        weight[np.isinf(chunk.norm)] = 0.0
        if chunk.weight is not None:
            weight *= chunk.weight
        with np.errstate(under="ignore"):
            return gaps @ weight

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (n_features,)."""
        return sum_over(rows, self.partial, self.size)


# The radius: bisection on a geometric grid, by noisy counts of the rows beyond.

# 2^7 radii in steps of sqrt(2): seven counts, and sixty-three octaves
_STEPS = 7
_RATIO = math.sqrt(2.0)
# a margin of 3.5 standard deviations: one count in 4000 is too high by more
_MARGIN = 3.5


@dataclass(frozen=True)
class RadiusSearch:
    """Bisection on a geometric grid of radii, with noisy counts of the rows beyond.

    Parameters
    ----------
    n_rows : int
        Number of rows; public.
    mu : float
        Gaussian-DP price of all counts together.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    tail : float, default=0.0
        How many rows may lie beyond; at least the margin of the counts.
    """

    n_rows: int
    mu: float
    adjacency: str
    tail: float = 0.0

    #: number of releases
    n_releases = _STEPS

    @property
    def margin(self):
        """Three and a half standard deviations of a count."""
        reach = 0.5 if self.adjacency == "zero-out" else 1.0
        return _MARGIN * reach * math.sqrt(_STEPS) / self.mu

    def run(self, curator, center=None):
        """Release a radius.

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows` of the unit ball without an intercept.
        center : ndarray of shape (n_features,), default=None
            Point of the unit ball; None is the origin.

        Returns
        -------
        radius : float
            On the grid, at most 1 around the origin and 2 around a center.

        Notes
        -----
        Let no row be null, and let no count be off by more than the margin m. Then at most
        ``max(tail, m) + m`` rows lie beyond the radius, and either it is the smallest of
        the grid or more than ``max(tail, m) - m`` rows lie beyond ``radius / sqrt(2)``:
        it is at most sqrt(2) times the largest distance.
        """
        largest = 1.0 if center is None else 2.0
        price = GaussianMechanism(self.mu / math.sqrt(_STEPS))
        most = max(self.tail, self.margin)
        # few enough rows beyond radius `reached`, too many beyond radius `missed`
        reached, missed = 0, 2**_STEPS
        for _ in range(_STEPS):
            middle = (reached + missed) // 2
            count = FarCount(largest / _RATIO**middle, center)
            beyond = self.n_rows / 2 + curator.release(count, price)[0]
            if beyond <= most:
                reached = middle
            else:
                missed = middle
        return largest / _RATIO**reached


@dataclass(frozen=True, eq=False)
class FarCount:
    """Sum over rows of 1/2 beyond a radius, and -1/2 within it.

    Parameters
    ----------
    radius : float
        Radius, greater than 0; public.
    center : ndarray of shape (n_features,), default=None
        Public point of the unit ball; None is the origin, around which rows may be sparse.

    Notes
    -----
    Rows are `LinearRows` of the unit ball without an intercept. If none is null, half the
    number of rows more than this is the number of rows beyond the radius. Halves, not
    ones: that way a row that becomes null moves the sum half as far.
    """

    radius: float
    center: Any = None

    @property
    def name(self):
        """What the statistic is, the same for every radius."""
        around = "the origin" if self.center is None else "a released center"
        return f"rows beyond a radius around {around}"

    @property
    def size(self):
        """Number of coordinates."""
        return 1

    def sensitivity(self, adjacency, n_rows):
        """State the sensitivity: 1/2 (zero-out) or 1 (replace-one).

        Proof. A row contributes 1/2 or -1/2, a null row 0. Zero-out removes one half;
        replace-one exchanges two, at most 1 apart. Both are attained. A group, whose weights
        add up to at most 1, contributes a number between -1/2 and 1/2.
        """
        if adjacency == "zero-out":
            reach, theorem = 0.5, "a row counts 1/2 or -1/2"
        else:
            reach, theorem = 1.0, "1/2 and -1/2 differ by 1"
        return Sensitivity(l1=reach, l2=reach, bound=n_rows / 2, theorem=theorem)

    def partial(self, chunk):
        """Return the sum of a chunk's halves; exact in floating point."""
        halves = np.where(distances_from(self.center, chunk) > self.radius, 0.5, -0.5)
        halves *= counted_rows(chunk)
        return np.array([math.fsum(halves)])

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (1,)."""
        return sum_over(rows, self.partial, self.size)


# Shifted clipped means: medians of rotated coordinates, then rows clipped around them.

# part of mu^2 that the medians get
_SHARE = 0.25
# chance that a rotated coordinate of a row leaves its range, over random signs
_LEAVES = 1e-3


@dataclass(frozen=True)
class ShiftedClippedMean:
    """Coordinate-wise medians after a rotation, and the mean of rows clipped around them.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data; public.
    mu : float
        Gaussian-DP price of everything.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.

    Notes
    -----
    Huang, Liang and Yi (2021), with one fixed rotation, noisy bisection of all coordinates
    at once, and a radius on a geometric grid.
    """

    n_rows: int
    n_features: int
    mu: float
    adjacency: str

    #: mechanism that this is
    mechanism = "shifted-clipped"

    @property
    def n_halvings(self):
        """Counts for the medians: the cells shrink to their range over 65536 n."""
        return 16 + math.ceil(math.log2(self.n_rows))

    @property
    def clipped(self):
        """The plan of the clipped mean around the medians."""
        mu = self.mu * math.sqrt(1 - _SHARE)
        return ClippedMean(self.n_rows, self.n_features, mu, self.adjacency)

    @property
    def n_releases(self):
        """Number of releases."""
        return self.n_halvings + self.clipped.n_releases

    @property
    def rank_noise(self):
        """Standard deviation of the noise of a count, the same for every coordinate."""
        reach = 0.5 if self.adjacency == "zero-out" else 1.0
        return reach * math.sqrt(self.n_features * self.n_halvings / _SHARE) / self.mu

    @property
    def range(self):
        """Largest magnitude of a rotated coordinate that is reckoned with.

        Over random signs a rotated coordinate of a row of the unit ball is a weighted sum
        of signs whose squared weights sum to 2/d or less; Hoeffding's inequality for all
        coordinates of all rows.
        """
        d, coordinates = self.n_features, 2 * self.n_rows * self.n_features
        return min(1.0, 2 * math.sqrt(math.log(coordinates / _LEAVES) / d))

    @property
    def is_sound(self):
        """Whether there are rows enough for medians, and for a radius."""
        return self.rank_noise <= self.n_rows / 8 and self.clipped.is_sound

    def run(self, curator):
        """Release the mean.

        Parameters
        ----------
        curator : Curator
            Holds dense `LinearRows` of the unit ball without an intercept.

        Returns
        -------
        center : ndarray of shape (n_features,)
            In the unit ball.
        """
        price = GaussianMechanism(self.mu * math.sqrt(_SHARE / self.n_halvings))
        medians, width = np.zeros(self.n_features), self.range
        for _ in range(self.n_halvings):
            width /= 2
            above = curator.release(RotatedSideSum(medians), price)
            medians = medians + np.where(above > 0, width, -width)
        return self.clipped.run(curator, ball_constraint(rotate_back(medians), 1.0))


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

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exact draws from densities exp(-c f), f convex: on an interval, on balls, among candidates.

On an interval f is piecewise linear: the absolute, quantile and hinge losses of one parameter.
exp(-c f) is then a truncated exponential density between two knots. Choosing the interval by
its mass and then inverting one distribution function is exact, in time linear in the knots
(`sample_piecewise_exponential`).

On a ball, or where several meet, `sample_tangent_box` makes rejection draws without a Markov
chain. The set is covered by boxes. In each box f lies above its tangent plane at the center, so
exp(-c f) lies below an exponential of an affine function, whose mass is a product over the
coordinates and which is easy to draw from. A proposal from the whole envelope is accepted with
probability exp(-c (f - tangent)); boxes whose proposals fail are split, which tightens the
envelope where it matters. Whatever the sequence of splits, a proposal that is accepted has
exactly the target law, so every refinement path gives an exact draw.

Among finitely many candidates (`choose_by_loss`) the set of possible outputs is fixed before
the data are seen, so that no output can carry digits of the data: what floats do to the
probabilities is all they can do.
"""

import itertools
import math

import numpy as np
from scipy.special import ndtri

# Exponential densities on an interval, and chains of them.

# Below this slope * width the density is flat to more digits than a float has.
_FLAT = 1e-30


def sample_piecewise_exponential(knots, slopes, c, variates):
    """Draw x in [knots[0], knots[-1]] with density proportional to exp(-c f(x)).

    f is continuous, has slope ``slopes[k]`` on ``[knots[k], knots[k + 1]]``, and is
    convex. Values are summed up from the minimum outwards, so that rounding errors are
    relative to the excess over the minimum, whatever the size of f.

    Parameters
    ----------
    knots : array of shape (m + 1,)
        Ascending; equal knots are allowed, and the slope between them is ignored.
    slopes : array of shape (m,)
        Finite and ascending, apart from those between equal knots.
    c : float
        Inverse temperature, not negative.
    variates : Variates
        Source of randomness.

    Returns
    -------
    x : float
        An exact draw, in ideal arithmetic.

    Examples
    --------
    The exponential mechanism for the median of three numbers in [-1, 1]; the loss is
    the sum of their distances:

    >>> import numpy as np
    >>> from skdp._log_concave import sample_piecewise_exponential
    >>> from skdp.privacy.kernel.samplers import SeededBits
    >>> from skdp.privacy.laws.exponential import Variates
    >>> knots = np.array([-1.0, -0.2, 0.1, 0.4, 1.0])
    >>> slopes = np.array([-3.0, -1.0, 1.0, 3.0])
    >>> x = sample_piecewise_exponential(knots, slopes, 50.0, Variates(SeededBits(0)))
    >>> -0.2 < x < 0.4
    True
    """
    knots, slopes = (np.asarray(a, dtype=np.float64) for a in (knots, slopes))
    widths = np.diff(knots)
    if not (widths > 0).any():
        return float(knots[0])
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        # slopes * c first would overflow for narrow intervals and flush small slopes
        rise = np.where(widths > 0, slopes * widths * c, 0.0)
        lowest = int(np.max(np.flatnonzero(rise < 0), initial=-1)) + 1
        right = np.cumsum(rise[lowest:])
        left = np.cumsum(-rise[:lowest][::-1])[::-1]
        excess = np.concatenate([left, [0.0], right])
        z = np.abs(rise)
        # mass = exp(-lower end) * width * (1 - exp(-z))/z
        shape = np.log(-np.expm1(-z)) - np.log(z)
        # z overflowed: the logarithm of the product is a sum
        steep = -np.log(np.abs(slopes)) - np.log(widths) - np.log(c)
        shape = np.where(z < _FLAT, 0.0, np.where(np.isinf(z), steep, shape))
        mass = np.log(widths) + shape - np.minimum(excess[:-1], excess[1:])
        k = int(np.argmax(mass + variates.gumbel(len(mass))))
        slope = slopes[k] * c
    return float(truncated_exponential(slope, knots[k], knots[k + 1], variates))


def truncated_exponential(slope, low, high, variates):
    """Draw x in [low, high] with density proportional to exp(-slope x).

    Parameters
    ----------
    slope : ndarray
        Slopes of any sign, zeros and infinities included.
    low, high : ndarray
        Ends of the intervals, of the shape of `slope` (or broadcast to it); low <= high.
    variates : Variates
        Source of randomness.

    Returns
    -------
    x : ndarray
        Independent draws, of the shape of `slope`.
    """
    slope = np.asarray(slope, dtype=np.float64)
    width = np.subtract(high, low)
    u = variates.uniform(slope.size).reshape(slope.shape)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        rate = np.abs(slope)
        z = np.where(width > 0, np.maximum(rate * width, _FLAT), _FLAT)
        # The distance from the heavy end. The second form resolves far tails by the small u.
        gentle = width * (-np.log1p(u * np.expm1(-z)) / z)
        steep = -np.log(np.exp(-z) - u * np.expm1(-z)) / rate
        distance = np.where(z > 1, steep, gentle)
    return np.clip(np.where(slope >= 0, low + distance, high - distance), low, high)


# Log-concave densities on balls, under an envelope of tangent planes.

# Boxes that miss a ball by less than rounding errors are kept.
_TOUCHING = 1 + 1e-12
_POINTS_PER_CALL = 512
# Largest number of proposals per round; it changes the time, not the law.
_PROPOSALS = 32
_BISECTIONS = 60
_APART = "balls must meet in a set with an interior, also within the cover; these do not."


def sample_tangent_box(value_and_subgradient, n_dims, c, balls, variates, *, cover=None):
    """Draw from a meeting of balls with density proportional to exp(-c f).

    Parameters
    ----------
    value_and_subgradient : callable
        Maps points of shape (m, n_dims) to the values of f, of shape (m,), and to
        subgradients, of shape (m, n_dims). m is at most 512. f is convex and finite on
        the boxes, which reach beyond the balls; sums of losses of a linear predictor
        are so everywhere.
    n_dims : int
        Number of dimensions. Made for 1 to 5; slow beyond, because boxes then fit badly.
    c : float
        Inverse temperature, not negative.
    balls : sequence of (array of shape (n_dims,), float)
        Centers and radii; the set is where all balls meet.
    variates : Variates
        Source of randomness.
    cover : (array of shape (n_dims,), array of shape (n_dims,)), default=None
        Lower and upper ends of a box that the set is further restricted to.

    Returns
    -------
    theta : ndarray of shape (n_dims,)
        An exact draw, in ideal arithmetic.

    Raises
    ------
    ValueError
        If the set has no interior. The balls and the cover are public, and so is this.

    Notes
    -----
    There is no limit on the number of rounds: giving up with a probability that depends
    on the data would cost delta. The time depends on the data; it is not part of the
    release, and whoever may observe it learns more than the privacy claim says.

    The logarithm of the acceptance probability is at most 0 for a convex f. Rounding
    errors, of the order of 1e-16 c |f|, may lift it above; that counts as acceptance,
    so nothing is ever raised because of data.

    Proposals come in rounds, and the first accepted one of a round is returned, as if
    they had been drawn one by one. The boxes of a round that fails are all split, so the
    envelope is refined in proportion to its mass; to refine it before the first proposal
    takes more evaluations, not fewer (measured with logistic losses).
    """
    balls = [(np.asarray(center, dtype=np.float64), float(radius)) for center, radius in balls]
    low = np.max([center - radius for center, radius in balls], axis=0)
    high = np.min([center + radius for center, radius in balls], axis=0)
    if cover is not None:
        low, high = np.maximum(low, cover[0]), np.minimum(high, cover[1])
    apart = any(
        np.linalg.norm(a - b) >= r + s for (a, r), (b, s) in itertools.combinations(balls, 2)
    )
    if apart or not (low < high).all():
        raise ValueError(_APART)
    boxes = _Cover(value_and_subgradient, c, balls, low, high)
    n_proposals = min(_PROPOSALS, 4 * 2**n_dims)
    while len(boxes):
        box, points, tangent = boxes.propose(n_proposals, variates)
        log_u = -variates.exponential(n_proposals)
        inside = np.flatnonzero(boxes.inside(points))
        if len(inside):
            value, _ = value_and_subgradient(points[inside])
            accepted = log_u[inside] <= tangent[inside] - c * value
            if accepted.any():
                return points[inside[np.argmax(accepted)]]
        boxes.split(np.unique(box))
    raise ValueError(_APART)


class _Cover:
    """Boxes that cover the set, with the envelope of the density on each.

    Parameters
    ----------
    evaluate : callable
        As in `sample_tangent_box`.
    c : float
        Inverse temperature.
    balls : list of (ndarray, float)
        Centers and radii.
    low, high : ndarray
        The first box.
    """

    def __init__(self, evaluate, c, balls, low, high):
        self._evaluate, self._c, self._balls = evaluate, c, balls
        self._signs = np.array(list(itertools.product((-0.5, 0.5), repeat=len(low))))
        n = len(low)
        self.center, self.half, self.slope = np.empty((3, 0, n))
        self.value, self.log_mass = np.empty((2, 0))
        self._add(((low + high) / 2)[None], ((high - low) / 2)[None])

    def __len__(self):
        return len(self.center)

    def inside(self, points, margin=0.0):
        """Tell which points, or boxes around them, are in all balls, or touch them."""
        slack = _TOUCHING if np.ndim(margin) else 1.0
        kept = np.ones(len(points), dtype=bool)
        for center, radius in self._balls:
            gap = np.maximum(np.abs(points - center) - margin, 0.0)
            kept &= (gap * gap).sum(axis=1) <= (slack * radius) ** 2
        return kept

    def _add(self, center, half):
        """Evaluate new boxes and append those that touch all balls."""
        kept = self.inside(center, half)
        center, half = center[kept], half[kept]
        parts = [
            self._evaluate(center[i : i + _POINTS_PER_CALL])
            for i in range(0, len(center), _POINTS_PER_CALL)
        ]
        if not parts:
            return
        # from here on in units of the exponent
        value, slope = (self._c * np.concatenate(part) for part in zip(*parts, strict=True))
        for ball, radius in self._balls:
            # boxes that a ball's boundary may cross
            offset = center - ball
            out = ((np.abs(offset) + half) ** 2).sum(axis=1) > radius * radius
            offset = offset[out]
            with np.errstate(over="ignore", under="ignore"):
                t = _tilts(slope[out], offset, half[out], radius)
            value[out] += t * ((offset * offset).sum(axis=1) - radius * radius) / 2
            slope[out] += t[:, None] * offset
        with np.errstate(over="ignore", under="ignore"):
            # mass of exp(-z x/h) on [-h, h]: e^z h (1 - e^-2z)/z
            z = np.maximum(np.abs(slope * half), 1e-9)
            factor = z + np.log(half * (-np.expm1(-2 * z) / z))
            log_mass = factor.sum(axis=1) - value
        new = {"center": center, "half": half, "value": value, "slope": slope, "log_mass": log_mass}
        for name, rows in new.items():
            setattr(self, name, np.concatenate([getattr(self, name), rows]))

    def split(self, chosen):
        """Split the chosen boxes in half along every coordinate."""
        n = self.center.shape[1]
        half = self.half[chosen] / 2
        center = self.center[chosen][:, None, :] + 2 * half[:, None, :] * self._signs
        for name in ("center", "half", "value", "slope", "log_mass"):
            setattr(self, name, np.delete(getattr(self, name), chosen, axis=0))
        self._add(center.reshape(-1, n), np.repeat(half, len(self._signs), axis=0))

    def propose(self, size, variates):
        """Draw from the envelope; return the boxes, the points, and tangents at them."""
        noise = variates.gumbel(size * len(self)).reshape(size, -1)
        box = (self.log_mass + noise).argmax(axis=1)
        offset = truncated_exponential(self.slope[box], -self.half[box], self.half[box], variates)
        tangent = self.value[box] + (self.slope[box] * offset).sum(axis=1)
        return box, self.center[box] + offset, tangent


def _tilts(slope, offset, half, radius):
    """Return by how much to tilt the tangent plane of each box towards a ball's inside.

    In the ball, c f is at least c f + t (|x|^2 - radius^2)/2 for any t >= 0, x being the
    position from the ball's center. The tangent plane of the right-hand side is as good
    a lower bound, and it keeps the envelope from growing outside the ball. The envelope's
    log-mass is convex in t; bisection of its derivative comes near the best t. Any t is
    valid, so precision does not matter here.
    """
    inward = (radius * radius - (offset * offset).sum(axis=1)) / 2

    def derivative(t):
        z = (slope + t[:, None] * offset) * half
        return inward + (offset * half * _langevin(z)).sum(axis=1)

    # there the plane leans inwards in every coordinate, and steeply for its box
    steep = np.abs(slope).max(axis=1) + 4 / half.min(axis=1)
    high = 4 * steep / np.maximum(np.abs(offset).max(axis=1), 1e-6 * radius)
    low = np.zeros(len(slope))
    useful = derivative(low) < 0
    if not useful.any():
        return low
    reach = (np.abs(offset) * half).max(axis=1)
    for _ in range(_BISECTIONS):
        if ((high - low) * reach).max() < 1:
            break  # the log-mass hardly changes any more
        middle = (low + high) / 2
        down = derivative(middle) < 0
        low, high = np.where(down, middle, low), np.where(down, high, middle)
    return np.where(useful, low, 0.0)


def _langevin(z):
    """Return coth(z) - 1/z, the derivative of log(sinh(z)/z)."""
    big = np.where(np.abs(z) > 1e-3, z, 1.0)
    return np.where(np.abs(z) > 1e-3, 1 / np.tanh(big) - 1 / big, z / 3)


# Finitely many candidates.

#: largest number of lattice points that are looked at for a grid
MAX_GRID = 10_000_000


def choose_by_loss(losses, c, variates):
    """Draw an index with probability proportional to exp(-c losses[i]).

    Parameters
    ----------
    losses : array of shape (n_candidates,)
        Finite losses.
    c : float
        Inverse temperature, not negative.
    variates : Variates
        Source of randomness.

    Returns
    -------
    index : int
        An exact draw, in ideal arithmetic (the Gumbel-max trick).
    """
    losses = np.asarray(losses, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        score = c * (losses.min() - losses)
    return int(np.argmax(score + variates.gumbel(len(score))))


def ball_candidates(n_dims, radius, count):
    """Return about `count` points spread over a ball around 0: the same whatever the data.

    Parameters
    ----------
    n_dims, radius, count : int, float, int
        Number of dimensions, radius, and number of points wanted.

    Returns
    -------
    points : ndarray of shape (n_points, n_dims)
        In up to 3 dimensions a lattice; in more, where lattices are too coarse, 0 and a
        sequence of evenly spread directions and lengths, about which nothing is proved.
    """
    if n_dims <= 3:
        volume = (2.0, math.pi, 4 * math.pi / 3)[n_dims - 1]
        return ball_grid(n_dims, radius, radius * (volume / count) ** (1 / n_dims))
    steps = np.arange(1, count)[:, None]
    # multiples of irrational numbers fill the unit cube evenly (Kronecker)
    cube = (steps * np.sqrt(_primes(n_dims))) % 1.0
    gaussian = ndtri(np.clip(cube, 1e-9, 1 - 1e-9))
    length = np.sqrt(np.einsum("ij,ij->i", gaussian, gaussian))
    # a cube root, since square roots of primes are taken
    wanted = radius * ((steps[:, 0] * 2 ** (1 / 3)) % 1.0)
    points = gaussian * (wanted / np.maximum(length, 1e-300))[:, None]
    return np.vstack([np.zeros((1, n_dims)), points])


def ball_grid(n_dims, radius, spacing):
    """Return the points of a lattice that lie in a ball around 0.

    Parameters
    ----------
    n_dims : int
        Number of dimensions.
    radius : float
        Radius of the ball.
    spacing : float
        Distance between neighbouring points.

    Returns
    -------
    points : ndarray of shape (n_points, n_dims)
        All points of the ball whose coordinates are multiples of `spacing`, in
        lexicographic order; 0 is one of them.

    Raises
    ------
    ValueError
        If an argument is out of range, or the grid would be too large.

    Notes
    -----
    Rounding every coordinate towards 0 stays in the ball. So every point of the ball is
    less than ``spacing * sqrt(n_dims)`` from the grid, and a sum of n L-Lipschitz losses
    is at most n L times that above its minimum at the best candidate.
    """
    if n_dims < 1:
        raise ValueError(f"n_dims must be at least 1; got {n_dims!r}.")
    for name, number in {"radius": radius, "spacing": spacing}.items():
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"{name} must be a finite positive number; got {number!r}.")
    steps = radius / spacing
    if n_dims * math.log(2 * steps + 1) > math.log(MAX_GRID):
        raise ValueError(
            f"spacing must leave at most {MAX_GRID} points in the cube around the ball; got "
            f"{spacing!r} for radius {radius!r} and n_dims {n_dims!r}."
        )
    # integers first: which points are inside does not depend on rounding of products
    axis = np.arange(-math.floor(steps), math.floor(steps) + 1)
    cube = np.meshgrid(*[axis.astype(np.float64)] * n_dims, indexing="ij")
    points = np.stack(cube, axis=-1).reshape(-1, n_dims)
    return spacing * points[(points * points).sum(axis=1) <= steps * steps]


def _primes(count):
    """Return the first prime numbers."""
    limit = 16 + int(2 * count * math.log(count + 2))
    sieve = np.ones(limit, dtype=bool)
    sieve[:2] = False
    for i in range(2, math.isqrt(limit) + 1):
        if sieve[i]:
            sieve[i * i :: i] = False
    return np.flatnonzero(sieve)[:count]

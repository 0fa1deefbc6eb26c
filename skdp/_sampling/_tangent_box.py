# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exact draws from exp(-c f), f convex, on a ball or on a meeting of balls.

Rejection sampling without a Markov chain. The set is covered by boxes. In each box f
lies above its tangent plane at the centre, so exp(-c f) lies below an exponential of
an affine function, whose mass is a product over the coordinates and which is easy to
draw from. A proposal from the whole envelope is accepted with probability
exp(-c (f - tangent)); boxes whose proposals fail are split, which tightens the
envelope where it matters. Whatever the sequence of splits, a proposal that is
accepted has exactly the target law, so every refinement path gives an exact draw.
"""

import itertools

import numpy as np

from skdp._sampling._piecewise import truncated_exponential

# Boxes that miss a ball by less than rounding errors are kept.
_TOUCHING = 1 + 1e-12
_POINTS_PER_CALL = 512
# Largest number of proposals per round; it changes the time, not the law.
_PROPOSALS = 32
_BISECTIONS = 60
_APART = "balls must meet in a set with an interior, also within the cover; these do not."


def _langevin(z):
    """Return coth(z) - 1/z, the derivative of log(sinh(z)/z)."""
    big = np.where(np.abs(z) > 1e-3, z, 1.0)
    return np.where(np.abs(z) > 1e-3, 1 / np.tanh(big) - 1 / big, z / 3)


def _tilts(slope, offset, half, radius):
    """Return by how much to tilt the tangent plane of each box towards a ball's inside.

    In the ball, c f is at least c f + t (|x|^2 - radius^2)/2 for any t >= 0, x being the
    position from the ball's centre. The tangent plane of the right-hand side is as good
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


class _Cover:
    """Boxes that cover the set, with the envelope of the density on each.

    Parameters
    ----------
    evaluate : callable
        As in `sample_tangent_box`.
    c : float
        Inverse temperature.
    balls : list of (ndarray, float)
        Centres and radii.
    low, high : ndarray
        The first box.
    """

    def __init__(self, evaluate, c, balls, low, high):
        self._evaluate, self._c, self._balls = evaluate, c, balls
        self._signs = np.array(list(itertools.product((-0.5, 0.5), repeat=len(low))))
        n = len(low)
        self.centre, self.half, self.slope = np.empty((3, 0, n))
        self.value, self.log_mass = np.empty((2, 0))
        self._add(((low + high) / 2)[None], ((high - low) / 2)[None])

    def __len__(self):
        return len(self.centre)

    def inside(self, points, margin=0.0):
        """Tell which points, or boxes around them, are in all balls, or touch them."""
        slack = _TOUCHING if np.ndim(margin) else 1.0
        kept = np.ones(len(points), dtype=bool)
        for centre, radius in self._balls:
            gap = np.maximum(np.abs(points - centre) - margin, 0.0)
            kept &= (gap * gap).sum(axis=1) <= (slack * radius) ** 2
        return kept

    def _add(self, centre, half):
        """Evaluate new boxes and append those that touch all balls."""
        kept = self.inside(centre, half)
        centre, half = centre[kept], half[kept]
        parts = [
            self._evaluate(centre[i : i + _POINTS_PER_CALL])
            for i in range(0, len(centre), _POINTS_PER_CALL)
        ]
        if not parts:
            return
        # from here on in units of the exponent
        value, slope = (self._c * np.concatenate(part) for part in zip(*parts, strict=True))
        for ball, radius in self._balls:
            # boxes that a ball's boundary may cross
            offset = centre - ball
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
        new = {"centre": centre, "half": half, "value": value, "slope": slope, "log_mass": log_mass}
        for name, rows in new.items():
            setattr(self, name, np.concatenate([getattr(self, name), rows]))

    def split(self, chosen):
        """Split the chosen boxes in half along every coordinate."""
        n = self.centre.shape[1]
        half = self.half[chosen] / 2
        centre = self.centre[chosen][:, None, :] + 2 * half[:, None, :] * self._signs
        for name in ("centre", "half", "value", "slope", "log_mass"):
            setattr(self, name, np.delete(getattr(self, name), chosen, axis=0))
        self._add(centre.reshape(-1, n), np.repeat(half, len(self._signs), axis=0))

    def propose(self, size, variates):
        """Draw from the envelope; return the boxes, the points, and tangents at them."""
        noise = variates.gumbel(size * len(self)).reshape(size, -1)
        box = (self.log_mass + noise).argmax(axis=1)
        offset = truncated_exponential(self.slope[box], -self.half[box], self.half[box], variates)
        tangent = self.value[box] + (self.slope[box] * offset).sum(axis=1)
        return box, self.centre[box] + offset, tangent


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
        Centres and radii; the set is where all balls meet.
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
    balls = [(np.asarray(centre, dtype=np.float64), float(radius)) for centre, radius in balls]
    low = np.max([centre - radius for centre, radius in balls], axis=0)
    high = np.min([centre + radius for centre, radius in balls], axis=0)
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

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which rows a release reads, by chance, and what that is worth.

A release that reads a secret random batch says less about a row than one that reads all
rows. `Sampling` states how batches are drawn, draws them, and gives the privacy loss
of Gaussian noise on a sum over a batch. Let a row's contribution to the sum have norm at
most C, and sigma be the standard deviation of the noise.

Poisson. Under zero-out the worst pair is ``(1-q) N(0) + q N(C)`` against ``N(0)``, in both
directions; under replace-one ``(1-q) N(0) + q N(C)`` against ``(1-q) N(0) + q N(-C)``
(proved in docs/user_guide/proofs_sampling.rst). Both dominate at every order, hence under
adaptive composition as well (Zhu, Dong and Wang 2022). dp_accounting knows these pairs.

Fixed size. A batch without the row has another one in its place, which may be as far away
as two contributions can be: the profile below bounds all pairs of either adjacency in both
directions, and a bound on a profile is that of a dominating pair.
"""

import math
import operator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr

from skdp.privacy.kernel.accounting import as_float, check_choice
from skdp.privacy.kernel.bits import Bits
from skdp.privacy.kernel.samplers import geometric

# Random batches of rows, with exact laws.
#
# Which rows are in a batch is secret: amplification by sampling rests on it. So batches are
# drawn from the same bits as the noise, inside the gate, and nobody else sees them.


Positions = NDArray[np.int64]


def poisson_subset(n_rows: int, gap_scale: float, bits: Bits) -> Positions:
    """Return sorted positions; each is in with probability ``1 - exp(-1 / gap_scale)``.

    The numbers of rows left out between two that are in are independent and geometric:
    the work grows with the batch, not with the data.
    """
    expected = -n_rows * math.expm1(-1 / gap_scale)
    block = int(expected + 6 * math.sqrt(expected)) + 16
    found: list[Any] = []
    last = -1
    while last < n_rows:
        # a gap beyond the data ends the batch, however long it is
        gaps = np.minimum(geometric(gap_scale, block, bits), n_rows)
        positions = last + np.cumsum(gaps + 1)
        found.append(positions[positions < n_rows])
        last, block = int(positions[-1]), 64
    return np.concatenate(found)


def fixed_subset(n_rows: int, size: int, bits: Bits) -> Positions:
    """Return the sorted positions of a subset drawn uniformly among those of a size."""
    if 2 * size > n_rows:
        left_out = fixed_subset(n_rows, n_rows - size, bits)
        chosen = np.ones(n_rows, dtype=bool)
        chosen[left_out] = False
        return np.flatnonzero(chosen)
    # the first `size` distinct values of a sequence of uniform positions
    sequence = np.zeros(0, dtype=np.int64)
    while True:
        values, first = np.unique(sequence, return_index=True)
        if len(values) >= size:
            kept: Positions = np.sort(values[np.argsort(first)[:size]])
            return kept
        missing = 2 * (size - len(values)) + 16
        sequence = np.append(sequence, _uniform_positions(n_rows, missing, bits))


def repeated_subset(n_rows: int, size: int, bits: Bits) -> Positions:
    """Return sorted positions drawn uniformly and independently; some may repeat."""
    return np.sort(_uniform_positions(n_rows, size, bits))


def _uniform_positions(n_rows: int, size: int, bits: Bits) -> Positions:
    """Return independent uniform positions, in the order in which they were drawn."""
    # whole words below the next power of two, and those beyond the data dropped
    surplus = np.uint64(64 - max(1, (n_rows - 1).bit_length()))
    found = np.zeros(0, dtype=np.int64)
    while len(found) < size:
        values = (bits.words(2 * (size - len(found)) + 8) >> surplus).astype(np.int64)
        found = np.append(found, values[values < n_rows])
    return found[:size]


KINDS = ("poisson", "without-replacement", "with-replacement")
# multiplicities of a row in a batch beyond this weigh nothing that matters
_MOST_COPIES = 40
_LIGHTEST = 1e-20
_TAIL = 1e-18
#: the gaps between the rows of a Poisson batch must be counted exactly
SMALLEST_RATE = 1e-12


@dataclass(frozen=True)
class Sampling:
    """How the batch of one release is drawn, anew for every release.

    Parameters
    ----------
    kind : {"poisson", "without-replacement", "with-replacement"}
        Every row is in the batch independently of the others; or the batch is a uniform
        subset of fixed size; or so many independent uniform draws.
    n_rows : int
        Number of rows; public.
    batch_size : float
        Expected number of rows of a batch ("poisson"), or the number. At most `n_rows`.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

    kind: str
    n_rows: int
    batch_size: float

    def __post_init__(self) -> None:
        check_choice("sampling", self.kind, KINDS)
        # floats of numpy would round the rate of a batch to their own few digits
        size = self.batch_size if type(self.batch_size) is int else as_float(self.batch_size)
        if not 0 < size <= operator.index(self.n_rows):
            raise ValueError(
                f"batch_size must be greater than 0 and at most the number of rows, "
                f"{self.n_rows}; got {self.batch_size!r}."
            )
        if self.kind != "poisson" and self.batch_size != int(self.batch_size):
            raise ValueError(f"batch_size must be a whole number; got {self.batch_size!r}.")
        if not self.batch_size >= SMALLEST_RATE * self.n_rows:
            raise ValueError(f"batch_size must be at least 1e-12 n_rows; got {self.batch_size!r}.")
        object.__setattr__(self, "batch_size", size)
        object.__setattr__(self, "n_rows", int(self.n_rows))

    @property
    def reads_all(self) -> bool:
        """Whether every batch is the whole data set."""
        return self.batch_size == self.n_rows and self.kind != "with-replacement"

    @property
    def gap_scale(self) -> float:
        """Scale of the gaps between the rows of a Poisson batch."""
        return -1 / math.log1p(-self.batch_size / self.n_rows)

    @property
    def rate(self) -> float:
        """Probability that a row is in a batch, rounded up."""
        if self.reads_all:
            return 1.0
        if self.kind == "poisson":
            exact = -math.expm1(-1 / self.gap_scale)
        elif self.kind == "without-replacement":
            exact = self.batch_size / self.n_rows
        else:
            exact = -math.expm1(self.batch_size * math.log1p(-1 / max(self.n_rows, 1.5)))
            exact = 1.0 if self.n_rows == 1 else exact
        return min(1.0, exact * (1 + 1e-15))

    def adjacency(self, asked: str) -> str:
        """Return the adjacency whose sensitivity the loss below is stated in.

        Parameters
        ----------
        asked : {"replace-one", "zero-out"}
            What is promised.

        Returns
        -------
        adjacency : str
            "zero-out", the norm of one contribution, for Poisson batches; "replace-one", the
            distance of two, for fixed sizes; what is promised, if all rows are read.
        """
        if self.reads_all:
            return asked
        return "zero-out" if self.kind == "poisson" else "replace-one"

    def draw(self, bits: Bits) -> Positions | None:
        """Return the sorted positions of one batch; None for all rows."""
        if self.reads_all:
            return None
        if self.kind == "poisson":
            return poisson_subset(self.n_rows, self.gap_scale, bits)
        subset = fixed_subset if self.kind == "without-replacement" else repeated_subset
        return subset(self.n_rows, int(self.batch_size), bits)

    def copies(self) -> list[tuple[int, float]]:
        """Return pairs: how often a row is in a fixed-size batch, and how likely, given once."""
        if self.kind == "without-replacement":
            return [(1, 1.0)]
        size, n_rows = int(self.batch_size), self.n_rows
        k = np.arange(1, min(size, _MOST_COPIES) + 1)
        # logarithms of factors, not of factorials, whose difference would have few digits
        logs = np.cumsum(np.log((size - k + 1) / (k * n_rows)))
        if n_rows > 1:
            logs += (size - k) * math.log1p(-1 / n_rows)
        weights = np.exp(logs) / self.rate * (1 + 1e-12)
        # what is left out counts as the worst: see `profile`
        return [(int(c), float(w)) for c, w in zip(k, weights, strict=True) if w > _LIGHTEST]

    def profile(self, mu: float, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a bound on delta for fixed-size batches, at any real epsilons, rounded up.

        Parameters
        ----------
        mu : float
            Distance of two contributions, in standard deviations of the noise.
        epsilons : ndarray
            In nats; negative ones ask for the same of the reversed pair.

        Returns
        -------
        delta : ndarray
            ``q sum_k w_k H(k mu)`` at ``log(1 + (exp(epsilon) - 1) / q)`` (Balle, Barthe and
            Gaboardi 2018, Theorems 9 and 10), symmetrised.
        """
        size, q = np.abs(epsilons), self.rate
        # log(1 + expm1(size) / q), which expm1 would overflow for large ones
        inner = np.where(
            size < 30,
            np.log1p(np.expm1(np.minimum(size, 30)) / q),
            size - math.log(q) + np.log1p((q - 1) * np.exp(-size)),
        )
        copies = self.copies()
        # what has more copies weighs less still, each a small part of the one before
        complete = self.kind == "without-replacement" or len(copies) == self.batch_size
        beyond = 0.0 if complete else (_MOST_COPIES + 1) * _LIGHTEST
        delta = q * (beyond + sum(w * _gaussian_delta(k * mu, inner) for k, w in copies))
        delta = np.minimum(delta, 1.0)
        mirrored = -np.expm1(-size) + np.exp(-size) * delta
        return np.where(epsilons >= 0, delta, mirrored)

    def loss(self, mu: float, adjacency: str, interval: float) -> Any:
        """Return the privacy loss distribution of one release, on a grid of losses.

        Parameters
        ----------
        mu, adjacency : float, {"replace-one", "zero-out"}
            Sensitivity over noise, the sensitivity as `adjacency` asks for it; what is
            promised.
        interval : float
            Step of the grid; losses are rounded up.

        Returns
        -------
        loss : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
            Of a dominating pair.
        """
        return _loss(self, mu, adjacency, interval)


@lru_cache(maxsize=4)
def _loss(sampling: Sampling, mu: float, adjacency: str, interval: float) -> Any:
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    if sampling.kind == "poisson" or sampling.reads_all:
        replace = adjacency == "replace-one" and not sampling.reads_all
        return privacy_loss_distribution.from_gaussian_mechanism(
            1 / mu,
            value_discretization_interval=interval,
            sampling_prob=sampling.rate,
            neighboring_relation=NeighboringRelation.REPLACE_ONE
            if replace
            else NeighboringRelation.ADD_OR_REMOVE_ONE,
        )
    # far enough for the mass beyond to be nothing
    farthest = 2.0**-10
    while sampling.profile(mu, np.array([farthest]))[0] > _TAIL and farthest < 700:
        farthest *= 1.25
    epsilons = np.arange(math.ceil(farthest / interval) + 1, dtype=np.float64) * interval
    deltas = np.minimum.accumulate(sampling.profile(mu, epsilons))
    probs = _connected(deltas, interval)
    # a loss of -x has exp(-x) times the probability of x; differences of deltas near 1
    # would have rounding errors instead
    both = np.concatenate([(probs * np.exp(-epsilons))[:0:-1], probs])
    steps = len(probs) - 1
    return privacy_loss_distribution.PrivacyLossDistribution(
        pld_pmf.DensePLDPmf(interval, -steps, both, float(deltas[-1]), True)
    )


def _connected(deltas: NDArray[np.float64], interval: float) -> NDArray[np.float64]:
    """Return the masses of the losses 0, interval, ... of a symmetric pair, from its deltas.

    The profile is linear in exp(epsilon) between the losses (Doroshenko et al. 2022).
    """
    drop = -np.diff(deltas)
    rise, fall = math.expm1(interval), -math.expm1(-interval)
    probs: NDArray[np.float64] = np.append(0.0, drop / fall)
    probs[1:-1] -= drop[1:] / rise
    probs[0] = 1 - deltas[1] - drop[0] * (1 / fall + 1 / rise)
    np.maximum(probs, 0.0, out=probs)
    return probs


def _gaussian_delta(mu: float, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the delta of mu-GDP at many non-negative epsilons, rounded up."""
    u, v = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    near = np.maximum(u, -5.0)
    with np.errstate(under="ignore", over="ignore"):
        # exp(-u^2/2) is common to both terms, and would drown their difference
        scaled = erfcx(near / math.sqrt(2)) - erfcx(v / math.sqrt(2))
        tail = 0.5 * np.exp(-near * near / 2) * scaled
        plain = ndtr(-u) - np.exp(np.minimum(epsilon, 700)) * ndtr(-v)
    exact: NDArray[np.float64] = np.where(u > -5, tail, plain)
    # as in `gdp_delta`: cancellation for small mu, conditioning of the tail
    slack = 1e-11 + 4e-15 * (1 + epsilon / mu) * (1 / min(mu, 1.0) + epsilon / mu)
    return np.clip(exact * (1 + slack), 0.0, 1.0)

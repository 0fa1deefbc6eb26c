# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""ProjUnit: PrivUnit of some entries of a randomly rotated vector, for short messages.

H. Asi, V. Feldman, J. Nelson, H. Nguyen and K. Talwar, "Fast optimal locally private mean
estimation via random projections", NeurIPS 2023.
"""

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from numbers import Integral
from typing import Literal

import numpy as np
from scipy.linalg import hadamard as sylvester

from skdp.local.randomisers.base import (
    CHUNK,
    LENGTH_ROUNDING,
    UnitRandomiser,
    bits_of,
    directions_of,
    distinct_positions,
    in_chunks,
    normals,
)
from skdp.local.randomisers.caps import check_dims, log_beta_half
from skdp.local.randomisers.cube import uniform_subsets
from skdp.local.randomisers.privunit import PrivUnit, optimal_privunit

#: the largest dimension in which a uniformly random rotation is made
MOST_DENSE = 4096
#: order of the small matrices that Hadamard's is a product of, and how many times fewer entries
#: than there are count as few
_RADIX = 16
#: numbers that are multiplied at a time where only some of the products are wanted
_IN_CACHE = 1 << 15
#: the eight signs that each byte stands for
_SIGNS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)


def projection_factor(n_dims, n_kept):
    """Return the mean length of the part of a random unit vector, times what restores it.

    Parameters
    ----------
    n_dims, n_kept : int
        Dimension d of the vector and number k of its entries that are kept.

    Returns
    -------
    factor : float
        ``sqrt(d/k) E|P u|``, at most 1.

    Notes
    -----
    ``|P u|^2`` has a beta law with parameters k/2 and (d-k)/2, whose moment of order 1/2 is
    ``Gamma((k+1)/2) Gamma(d/2) / (Gamma(k/2) Gamma((d+1)/2))``.
    """
    n_dims = check_dims(n_dims)
    n_kept = _check_kept(n_kept, n_dims)
    log_factor = 0.5 * math.log(n_dims / n_kept)
    log_factor += log_beta_half(0.5 * n_dims) - log_beta_half(0.5 * n_kept)
    return min(1.0, math.exp(log_factor))


def _check_kept(n_kept, n_dims):
    if not isinstance(n_kept, Integral) or not 1 <= n_kept <= n_dims:
        raise ValueError(f"n_kept must be an integer from 1 to {n_dims}, got {n_kept!r}.")
    return int(n_kept)


def _check_rotation(rotation):
    if rotation not in ("haar", "hadamard"):
        raise ValueError(f'rotation must be "haar" or "hadamard", got {rotation!r}.')
    return rotation


@dataclass(frozen=True)
class ProjUnit(UnitRandomiser):
    """ProjUnit: parameters and their consequences.

    Parameters
    ----------
    n_dims : int
        Dimension d of the unit vectors.
    unit : PrivUnit
        Parameters for the k kept entries.
    rotation : {"haar", "hadamard"}, default="haar"
        A uniformly random rotation, or random signs followed by Hadamard's matrix. The second is
        fast. Vectors are then padded with zeros to a power of two, which replaces d below, and
        only the first d entries of a report count.

    Notes
    -----
    The sender draws a rotation, keeps k entries of the rotated vector, makes their length 1 and
    reports them by PrivUnit; the seed of the rotation is public and independent of the data, so
    the budget is the budget of `unit`. The receiver rotates back. With W the kept rows times
    ``sqrt(d/k)`` the mean of ``W' W u / |W u|`` is C u with `projection_factor` C, so ``Z = W' V /
    (m C)`` is unbiased; published versions leave C out (Asi et al. 2023).

    ``|W' v|^2 = (d/k) |v|^2``, so Z has the constant length ``sqrt(d/k) / (m C)``. Let the second
    moment of V/m be ``s I + t x x'``. That of Z is s times ``E[W' W] = I``, plus t times the one
    of ``W' x = sqrt(d/k) P u / |P u|``, with ``|P u|^2`` of mean k/d: it is 1 along u and
    ``(d/k - 1) / (d - 1)`` along each direction across; all over ``C^2``.

    All that holds for "haar". With "hadamard" it is an average over directions: for one
    vector the true factor lies between C, if its rotated entries look normal, and 1, if they
    all have the same size, as those of a single entry. Reports are divided by C, so their mean
    may be too long by up to ``1/C - 1``, about ``1/(4k)``.
    """

    n_dims: int
    unit: PrivUnit
    rotation: str = "haar"

    def __post_init__(self):
        _check_kept(self.unit.n_dims, check_dims(self.n_dims))
        _check_rotation(self.rotation)

    @property
    def n_rotated(self):
        """Number of entries of a rotated vector."""
        return self.n_dims if self.rotation == "haar" else 1 << (self.n_dims - 1).bit_length()

    @property
    def n_kept(self):
        """Number of kept entries."""
        return self.unit.n_dims

    @property
    def epsilon(self):
        """The budget of one report, rounded up by the accuracy of the arithmetic."""
        return self.unit.epsilon

    @property
    def scale(self):
        """Divisor of reports, after ``W'``."""
        return self.unit.scale * projection_factor(self.n_rotated, self.n_kept)

    @property
    def mean_squared_error(self):
        """Mean of the squared distance of a report from its vector, for every vector."""
        if self.n_rotated == self.n_dims:
            return self.n_dims / self.n_kept / self.scale**2 - 1.0
        return self.noise_variance_along + (self.n_dims - 1) * self.noise_variance

    @property
    def noise_variance(self):
        """Variance of a report along each direction that is orthogonal to its vector."""
        if self.n_rotated == 1:
            return self.mean_squared_error
        factor = projection_factor(self.n_rotated, self.n_kept)
        aside = (self.n_rotated / self.n_kept - 1.0) / (self.n_rotated - 1.0)
        stretch = self.unit.cosine / self.unit.scale
        return (self.unit.noise_variance + stretch * aside) / factor**2

    @property
    def noise_variance_along(self):
        """Variance of a report along its vector."""
        factor = projection_factor(self.n_rotated, self.n_kept)
        stretch = self.unit.cosine / self.unit.scale
        return (self.unit.noise_variance + stretch) / factor**2 - 1.0

    @property
    def stretch(self):
        """How much larger the second moment of a report is along its vector than across."""
        return self.noise_variance_along + 1.0 - self.noise_variance

    @property
    def bound(self):
        """Bound on the magnitude of all entries of reports: their length, which is rounded."""
        return math.sqrt(self.n_rotated / self.n_kept) / self.scale * LENGTH_ROUNDING

    def message_bits(self, number_bits=32, n_entries=None, seed_bits=128):
        """Return the number of bits of a message with one report.

        Parameters
        ----------
        number_bits : int, default=32
            Bits of each number in the message.
        n_entries : int, default=None
            Ignored: the receiver rotates back, and needs the whole message.
        seed_bits : int, default=128
            Bits of the seed of the rotation; 0 if all senders use a known one.

        Returns
        -------
        bits : int
        """
        return self.n_kept * number_bits + seed_bits

    def given(self, source):
        """Draw a rotation and the kept entries, which `unit` reports; see `Randomiser`.

        Neither depends on a vector. Given both, the report is a report of `unit`. The same words
        give the same result on other machines, up to the rounding of "haar".
        """
        bits, wide, k = bits_of(source), self.n_rotated, self.n_kept
        rotation = make_rotation(self, bits)
        if _RADIX * k <= wide:
            kept = distinct_positions(wide, k, bits)
        else:
            (kept,) = _kept_entries(1, wide, k, bits)
        factor = self.unit.scale / self.scale * math.sqrt(wide / k)

        def carried(vectors):
            found = directions_of(np.asarray(vectors))[0]
            if wide > self.n_dims:
                found = np.hstack([found, np.zeros((len(found), wide - self.n_dims))])
            return rotation.entries(found, kept)

        def restored(reports):
            return rotation.back_from(reports * factor, kept)[:, : self.n_dims]

        return self.unit, carried, restored

    def begin(self, bits):
        """Return the function that draws the blocks of one call, all with one rotation."""
        return partial(self.directions, rotation=make_rotation(self, bits))

    def directions(self, vectors, bits, n_threads=1, *, out=None, rotation=None):
        """Return the report of the direction of every row, in all its entries.

        Parameters
        ----------
        vectors : ndarray of shape (n, d)
            Rows, for their directions. A row without a direction gets a uniform one among the kept
            ones.
        bits, n_threads : Bits, int
            As for `in_chunks`.
        out : ndarray of shape (n, d), default=None
            Output array for the reports.
        rotation : DenseRotation or HadamardRotation, default=None
            Result of `make_rotation`; None for a fresh one.

        Returns
        -------
        reports : ndarray of shape (n, d)

        Notes
        -----
        All rows of a call share a rotation, and each draws the entries that it keeps. Both are
        public: they could be seeds that are sent along. Any entries of a uniform rotation are
        as good as any others, so every report has the law of `ProjUnit`, and its mean is the
        direction. Given the rotation, the mean is off by a length of about ``1.2/k``: an error
        that the reports of one call have in common. (If the entries were shared too, it would
        be off by ``sqrt(d/k - 1)``.) Another call takes another rotation.
        """
        rotation = make_rotation(self, bits) if rotation is None else rotation
        n_rows, n_dims = vectors.shape
        wide, k = self.n_rotated, self.n_kept
        factor = self.unit.scale / self.scale * math.sqrt(wide / k)
        out = np.empty((n_rows, n_dims)) if out is None else out
        step = max(1, CHUNK // wide)
        for start in range(0, n_rows, step):
            rows = slice(start, min(start + step, n_rows))
            padded = np.zeros((rows.stop - start, wide))
            padded[:, :n_dims] = directions_of(vectors[rows])[0]
            kept = _kept_entries(len(padded), wide, k, bits)
            parts = np.take_along_axis(rotation.there(padded), kept, axis=1)
            parts = self.unit.randomise(parts, bits, n_threads)
            padded[:] = 0.0
            np.put_along_axis(padded, kept, parts * factor, axis=1)
            out[rows] = rotation.back(padded)[:, :n_dims]
        return out


def projunit(
    epsilon: float, n_dims: int, n_kept: int, rotation: Literal["haar", "hadamard"] = "haar"
) -> ProjUnit:
    """Return the best `ProjUnit` for a budget and a number of entries that are kept.

    Parameters
    ----------
    epsilon : float
        Budget of one report in nats, from 10^-6 to 10^6.
    n_dims, n_kept : int, int
        Dimension of the unit vectors, and number of entries that are kept.
    rotation : {"haar", "hadamard"}, default="haar"
        As for `ProjUnit`.

    Returns
    -------
    parameters : ProjUnit
        Randomiser with an `epsilon` of at most the budget.

    Examples
    --------
    >>> from skdp.local import optimal_privunit, projunit
    >>> short, best = projunit(8.0, 10_000, 100), optimal_privunit(8.0, 10_000)
    >>> round(short.mean_squared_error / best.mean_squared_error, 3)
    1.038
    """
    unit = optimal_privunit(epsilon, _check_kept(n_kept, n_dims))
    return ProjUnit(check_dims(n_dims), unit, rotation)


@lru_cache(maxsize=1024, typed=True)
def smallest_projunit(
    epsilon: float, n_dims: int, loss: float = 0.01, rotation: Literal["haar", "hadamard"] = "haar"
) -> ProjUnit:
    """Return the `ProjUnit` with the shortest reports nearly as accurate as PrivUnit.

    Parameters
    ----------
    epsilon : float
        Budget of one report in nats, from 10^-6 to 10^6.
    n_dims : int
        Dimension of the unit vectors.
    loss : float, default=0.01
        Allowed relative increase of the mean squared error over PrivUnit.
    rotation : {"haar", "hadamard"}, default="haar"
        As for `ProjUnit`.

    Returns
    -------
    parameters : ProjUnit
        Parameters by bisection: the error falls with the number of kept entries.

    Examples
    --------
    >>> from skdp.local import smallest_projunit
    >>> smallest_projunit(8.0, 10_000).n_kept < 500
    True
    """
    if not loss >= 0.0:
        raise ValueError(f"loss must be at least 0, got {loss!r}.")
    n_dims = check_dims(n_dims)
    allowed = (1.0 + loss) * optimal_privunit(epsilon, n_dims).mean_squared_error
    low, high = 1, n_dims
    while low < high:
        middle = (low + high) // 2
        if projunit(epsilon, n_dims, middle, rotation).mean_squared_error <= allowed:
            high = middle
        else:
            low = middle + 1
    return projunit(epsilon, n_dims, low, rotation)


# Random rotations, and the entries of rotated vectors that are kept.


def _kept_entries(n_rows, wide, k, bits):
    """Return positions of k entries for every row, uniform among all subsets."""
    chosen = np.ones((n_rows, wide), dtype=bool)
    if k < wide:

        def work(rows, words):
            chosen[rows], tied = uniform_subsets(words, np.full(len(words), k))
            return np.flatnonzero(tied)

        in_chunks(work, n_rows, wide, bits)
    return np.nonzero(chosen)[1].reshape(n_rows, k)


def make_rotation(projected, bits):
    """Return a random rotation of rows.

    Parameters
    ----------
    projected : ProjUnit
        Parameters; `rotation` says which kind.
    bits : Bits
        Source of random words.

    Returns
    -------
    rotation : DenseRotation or HadamardRotation

    Raises
    ------
    ValueError
        If a uniform rotation would be a matrix of more than 4096 rows.

    Notes
    -----
    "haar": the orthogonal factor of a matrix of normals, uniform if the other factor has a
    positive diagonal. "hadamard": random signs, then Hadamard's matrix, in ``d log d`` steps.
    """
    wide = projected.n_rotated
    if projected.rotation == "hadamard":
        # bytes in an order that is the same on every machine: a receiver makes them again
        words = bits.words(-(-wide // 64)).astype("<u8").view(np.uint8)
        return HadamardRotation(_SIGNS[words].reshape(-1)[:wide])
    if wide > MOST_DENSE:
        raise ValueError(
            f'rotation="haar" is for at most {MOST_DENSE} dimensions, got {wide}; '
            'rotation="hadamard" is for more.'
        )
    matrix, upper = np.linalg.qr(normals(bits.words(wide * wide)).reshape(wide, wide))
    matrix *= np.where(np.diagonal(upper) < 0.0, -1.0, 1.0)
    return DenseRotation(matrix)


@dataclass(frozen=True, eq=False)
class DenseRotation:
    """Rows times an orthogonal matrix.

    Parameters
    ----------
    matrix : ndarray of shape (wide, wide)
    """

    matrix: np.ndarray

    def there(self, rows):
        """Return rows, rotated."""
        return rows @ self.matrix.T

    def back(self, rows):
        """Return rows, rotated back."""
        return rows @ self.matrix

    def entries(self, rows, kept):
        """Return the entries at some positions of rotated rows."""
        return self.there(rows)[:, kept]

    def back_from(self, parts, kept):
        """Return rows with entries at some positions and zeros elsewhere, rotated back."""
        padded = np.zeros((len(parts), len(self.matrix)))
        padded[:, kept] = parts
        return self.back(padded)


@dataclass(frozen=True, eq=False)
class HadamardRotation:
    """Random signs, then Hadamard's matrix.

    Parameters
    ----------
    signs : ndarray of shape (wide,)
        Signs 1 or -1; the length is a power of two.

    Notes
    -----
    Hadamard's matrix is the Kronecker product of one of order `high`, for the first bits of a
    position, and one of order `low`, for the others. Of a few entries of a rotated row the product
    with the first is wanted at these alone, and part after part of the row stays in a cache
    while it is multiplied with the second; the same holds back from a few entries.
    """

    signs: np.ndarray

    def there(self, rows):
        """Return rows, rotated."""
        return hadamard(rows * self.signs)

    def back(self, rows):
        """Return rows, rotated back."""
        return hadamard(rows) * self.signs

    def entries(self, rows, kept):
        """Return the entries at some positions of rotated rows."""
        high, low = self._split(kept)
        first, last = np.divmod(kept, low)
        signs, made = self.signs.reshape(high, low), np.empty((len(rows), len(kept)))
        factors, found = _sylvester(high)[first].T, np.empty((high, len(kept)))
        for row, out in zip(rows.reshape(-1, high, low), made, strict=True):
            for part in _cached_slices(high, low):
                np.take(hadamard(row[part] * signs[part]), last, axis=1, out=found[part])
            np.einsum("ik,ik->k", found, factors, out=out)
        return made

    def back_from(self, parts, kept):
        """Return rows with entries at some positions and zeros elsewhere, rotated back."""
        high, low = self._split(kept)
        first, last = np.divmod(kept, low)
        # positions in order of their last bits, of which some may have the same
        order = np.argsort(last, kind="stable")
        column, begins = np.unique(last[order], return_index=True)
        signs, made = self.signs.reshape(high, low), np.zeros((len(parts), high, low))
        factors = _sylvester(high)[:, first[order]]
        for values, row in zip(parts, made, strict=True):
            row[:, column] = np.add.reduceat(factors * values[order], begins, axis=1)
            for part in _cached_slices(high, low):
                np.multiply(hadamard(row[part]), signs[part], out=row[part])
        return made.reshape(len(parts), -1)

    def _split(self, kept):
        """Return the orders of the two matrices: few products with the first, or none."""
        wide = len(self.signs)
        high = min(1 << max(wide // (_RADIX * len(kept)), 1).bit_length() - 1, _RADIX**2)
        return high, wide // high


def _cached_slices(high, low):
    """Return slices of rows of so many entries that a product of them stays in a cache."""
    step = max(1, _IN_CACHE // low)
    return [slice(start, start + step) for start in range(0, high, step)]


@lru_cache(maxsize=16)
def _sylvester(order):
    """Return Hadamard's matrix of a small order, made orthogonal; not to be written to."""
    return sylvester(order) / math.sqrt(order)


def hadamard(rows):
    """Return rows times Hadamard's matrix, made orthogonal; their length is a power of two.

    The matrix is the Kronecker product of small ones: a product with each of these in turn reads
    memory a quarter as often as sums of pairs do.
    """
    wide, half = rows.shape[1], 1
    made, free = rows.reshape(-1), [np.empty(rows.size) for _ in range(1 + (wide > _RADIX))]
    while half < wide:
        radix, out = min(_RADIX, wide // half), free.pop()
        signs = _sylvester(radix)
        if half == 1:
            np.matmul(made.reshape(-1, radix), signs, out=out.reshape(-1, radix))
        else:
            shape = (-1, radix, half)
            np.matmul(signs, made.reshape(shape), out=out.reshape(shape))
            free.append(made)
        made, half = out, half * radix
    return made.reshape(rows.shape)

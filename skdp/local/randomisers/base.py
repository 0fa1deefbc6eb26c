# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Base class of local randomisers, and shared arithmetic.

A randomiser is one frozen dataclass: its fields are public parameters, and its methods give the
price, the bound and the draw of a report. The base classes are followed by the budget of two
densities, lengths and directions of rows, and conversions of random words to numbers, coins,
positions and vectors.
"""

import math
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
from scipy.special import expit, logit, ndtri

from skdp.local.randomisers.caps import CAP_ACCURACY
from skdp.privacy.kernel.accounting import check_epsilon
from skdp.privacy.kernel.samplers import Bits

#: rows, and their entries, for which what all of them need is drawn first
BLOCK, ENTRIES = 1 << 16, 1 << 22

#: the budgets for which parameters are sought
LEAST_EPSILON, MOST_EPSILON = 1e-6, 1e6

#: what lengths may be rounded up by
LENGTH_ROUNDING = 1.0 + 2.0**-30

#: the largest number below 1
BELOW_ONE = 1.0 - 2.0**-53


class Randomiser:
    """Base class of all local randomisers.

    A subclass has `epsilon`, the budget of one report, and `n_dims`, the number of entries of a
    row; it implements `bound` and `randomise`, and overrides other methods as needed.
    """

    #: whether the law of reports is exact, and not only up to the rounding of floats
    exact = False
    #: entries of the rows that are drawn together
    block_entries = ENTRIES

    @property
    def size(self):
        """Number of entries of a row, and of its report."""
        return self.n_dims

    @property
    def bound(self):
        """Bound on the magnitude of all entries of all reports."""
        raise NotImplementedError

    @property
    def longest(self):
        """Bound on the Euclidean norms of all reports."""
        return self.bound * math.sqrt(self.size)

    def randomise(self, vectors, bits, n_threads=1, *, out=None):
        """Return the unbiased report of every row of a block.

        Parameters
        ----------
        vectors : ndarray of float64, shape (n, size)
            Rows, as for `report`.
        bits, n_threads : Bits, int
            As for `in_chunks`.
        out : ndarray of shape (n, size), default=None
            Output array for the reports.

        Returns
        -------
        reports : ndarray of shape (n, size)
            The array `out` if one is given.
        """
        raise NotImplementedError

    def begin(self, bits):
        """Return the function that draws the blocks of one call, `randomise` in most cases."""
        return self.randomise

    def message_bits(self, number_bits=32, n_entries=None):
        """Return the number of bits of a message with one report.

        Parameters
        ----------
        number_bits : int, default=32
            Bits of each number in the message.
        n_entries : int, default=None
            Number of entries that the receiver needs; None for all.

        Returns
        -------
        bits : int
        """
        return number_bits * (self.size if n_entries is None else n_entries)

    def log_law(self, reports, vector):
        """Return the logarithms of the densities of reports of one vector, up to constants.

        Parameters
        ----------
        reports : ndarray of shape (n, size)
            Reports of any vector.
        vector : ndarray of shape (size,)
            Reported vector, as for `report`.

        Returns
        -------
        log_law : ndarray of shape (n,)
            Logarithms up to constants that do not depend on the vector. NaN without a closed form.
        """
        return np.full(len(reports), np.nan)

    def log_ratio(self, reports, first, second):
        """Return the logarithms of the ratios of the densities of reports of two vectors.

        Parameters
        ----------
        reports : ndarray of shape (n, size)
            Reports of any vector.
        first, second : ndarray of shape (size,)
            The vectors.

        Returns
        -------
        log_ratio : ndarray of shape (n,)
        """
        return self.log_law(reports, first) - self.log_law(reports, second)

    def given(self, source):
        """Draw the public part of a report, such as a rotation; return the rest.

        Parameters
        ----------
        source : Variates or Bits
            Source of random words.

        Returns
        -------
        randomiser : Randomiser
            Randomiser of the rest of a report, with its law.
        carried : callable
            Maps vectors, as an array of shape (n, size), to the vectors that it reports.
        restored : callable
            Maps its reports, an array of the same number of entries, to whole reports.
        """
        return self, np.asarray, np.asarray

    def packed(self, report, grid):
        """Return one report as bytes, in whole steps of a grid; `message_bits` has their number.

        Parameters
        ----------
        report : ndarray of shape (size,)
            Multiples of `grid`, as the gate releases them.
        grid : float
            A power of two.

        Returns
        -------
        message : bytes
            Message with a length that depends only on public parameters. By default integers of 32
            bits, or of 64 in more than about four million dimensions; the least byte comes first.
        """
        return np.rint(report / grid).astype(self._steps(grid)).tobytes()

    def unpacked(self, message, grid):
        """Return the report from its bytes.

        Parameters
        ----------
        message : bytes
            Data from any source.
        grid : float
            As for `packed`.

        Returns
        -------
        report : ndarray of shape (size,)

        Raises
        ------
        ValueError
            If the bytes are not a packed report.
        """
        kind = self._steps(grid)
        check_packed(len(message) == kind.itemsize * self.size)
        report = np.frombuffer(message, dtype=kind) * grid
        # bounds are rounded to the grid as well
        check_packed(bool((np.abs(report) <= self.bound + grid).all()))
        check_packed(float(np.linalg.norm(report)) <= self.longest + grid * math.sqrt(self.size))
        return report

    def _steps(self, grid):
        return np.dtype("<i4" if self.bound / grid < 2.0**31 - 2.0 else "<i8")

    # whether an entry underflows depends on the row: nobody is to be told
    @np.errstate(under="ignore")
    def report(self, vectors, source, n_threads=1):
        """Return the unbiased report of every row.

        Parameters
        ----------
        vectors : ndarray of float64, shape (n_rows, size)
            Rows in the randomiser's domain: unit vectors, vectors of the unit ball, entries from
            -1 to 1, or one number between the first and the last level of a grid. Rows outside are
            moved into it; rows without a direction get a uniform one.
        source : Variates or Bits
            Source of random words.
        n_threads : int, default=1
            Threads of arithmetic. Results do not depend on it.

        Returns
        -------
        reports : ndarray of float64, shape (n_rows, size)
            Independent reports, except for the shared rotation of `ProjUnit`.

        Raises
        ------
        ValueError
            If the shape is not the shape of the randomiser.
        """
        bits, vectors = bits_of(source), np.asarray(vectors, dtype=np.float64)
        if vectors.ndim != 2 or vectors.shape[1] != self.size:
            raise ValueError(f"vectors must have shape (n_rows, {self.size}), got {vectors.shape}.")
        out, made_by = np.empty(vectors.shape), self.begin(bits)
        step = max(1, min(BLOCK, self.block_entries // max(1, self.size)))
        for start in range(0, len(vectors), step):
            rows = slice(start, start + step)
            made_by(vectors[rows], bits, n_threads, out=out[rows])
        return out


class UnitRandomiser(Randomiser):
    """Base class of randomisers of unit vectors, the parts of `Lift` and `Flip`.

    A subclass implements `directions`, and has the `noise_variance` of a report across its
    vector and the `stretch`, by which its second moment along the vector is larger.
    """

    def directions(self, vectors, bits, n_threads=1, *, out=None):
        """Return the unbiased report of the direction of every row, as `randomise` does."""
        raise NotImplementedError

    def randomise(self, vectors, bits, n_threads=1, *, out=None, factors=None, prepare=None):
        """Return the unbiased report of the direction of every row of a block.

        Parameters
        ----------
        vectors : ndarray of shape (n, d)
            Rows, for their directions. A row without a direction gets a uniform one.
        bits, n_threads : Bits, int
            As for `in_chunks`.
        out : ndarray of shape (n, size), default=None
            Takes the first entries of the reports, or all.
        factors : ndarray of shape (n,), default=None
            What the directions are multiplied by, and their reports with them.
        prepare : callable, default=None
            Maps some of the rows to those of which the directions are reported.

        Returns
        -------
        reports : ndarray of shape (n, d)
            The array `out` if one is given.
        """
        if prepare is None:
            out = self.directions(vectors, bits, n_threads, out=out)
        else:
            made = self.directions(prepare(vectors), bits, n_threads)
            out = made if out is None else out
            out[:] = made[:, : out.shape[1]]
        if factors is not None:
            out *= factors[:, None]
        return out


class TwoDensities:
    """Mixin of randomisers that choose between two sets.

    A report is drawn from a set of probability q under a reference law with probability `p`,
    and otherwise from the rest; the set depends on the data, q does not. `log_q` is the
    logarithm of q.
    """

    def check_p(self, share):
        """Raise if `p` is not between the set's share, named in words, and 1."""
        if not math.exp(self.log_q) < self.p < 1.0:
            raise ValueError(
                f"p must be below 1 and above the {share}, {math.exp(self.log_q)!r}, "
                f"got {self.p!r}."
            )

    @cached_property
    def epsilon(self):
        """The budget of one report, rounded up by the accuracy of the arithmetic."""
        return budget_of(self.p, self.log_q)

    @cached_property
    def log_densities(self):
        """Logarithms of the densities on the set and on the rest, relative to the reference."""
        rest = math.log1p(-math.exp(self.log_q))
        return math.log(self.p) - self.log_q, math.log1p(-self.p) - rest


def check_local_epsilon(epsilon):
    """Return a budget as a float.

    Parameters
    ----------
    epsilon : float
        Budget of one report, in nats.

    Returns
    -------
    epsilon : float

    Raises
    ------
    ValueError
        If it is not from 10^-6 to 10^6. Below, a report says nothing; above, everything.
    """
    epsilon = check_epsilon(epsilon)
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise ValueError(f"epsilon must be from 1e-6 to 1e6 for a local report, got {epsilon!r}.")
    return epsilon


def log_growth(epsilon):
    """Return ``log(exp(epsilon) - 1)`` without overflow."""
    return math.log(math.expm1(epsilon)) if epsilon < 40.0 else epsilon


def log_odds(log_q):
    """Return ``logit q`` for a probability of at most one half, given its logarithm."""
    return log_q - math.log1p(-math.exp(log_q))


def budget_of(p, log_q):
    """Return ``logit p - logit q``, rounded up by the accuracy of the arithmetic.

    Parameters
    ----------
    p : float
        Probability of the set that depends on the data.
    log_q : float
        Logarithm of its probability under the reference law, of relative accuracy
        `CAP_ACCURACY`, or of that absolute accuracy if it is above -1.

    Returns
    -------
    epsilon : float

    Notes
    -----
    As q is at most one half, its log-odds have at most twice the error of its logarithm.
    """
    odds_p, odds_q = float(logit(p)), log_odds(log_q)
    return odds_p - odds_q + 2.0 * CAP_ACCURACY * (1.0 + abs(odds_p) + abs(odds_q))


def largest_chance(epsilon, log_q):
    """Return the largest probability p that a budget allows, or one that is hardly smaller.

    Parameters
    ----------
    epsilon : float
        The budget.
    log_q : float
        As for `budget_of`.

    Returns
    -------
    p : float
        Below 1, and with ``budget_of(p, log_q) <= epsilon``.
    """
    spare = 4.0 * CAP_ACCURACY * (1.0 + abs(log_q))
    p = min(float(expit(epsilon - spare + log_odds(log_q))), BELOW_ONE)
    while budget_of(p, log_q) > epsilon:
        p = math.nextafter(p, 0.0)
    return p


# Reports as bytes.


def check_packed(fits):
    """Raise a ValueError unless bytes are those of a report."""
    if not fits:
        raise ValueError("no report of these parameters is packed like that.")


def pack_numbers(numbers, width):
    """Return numbers as bytes, `width` bits each, the highest bit first."""
    places = np.arange(width - 1, -1, -1)
    bits = (np.asarray(numbers, dtype=np.int64)[:, None] >> places) & 1
    return np.packbits(bits.astype(np.uint8).ravel()).tobytes()


def unpack_numbers(message, width, size):
    """Return `size` numbers of `width` bits as an array of int64, or raise a ValueError."""
    check_packed(len(message) == -(-size * width // 8))
    bits = np.unpackbits(np.frombuffer(message, dtype=np.uint8))
    # what fills up the last byte is zero: a report has one message
    check_packed(not bits[size * width :].any())
    weights = 1 << np.arange(width - 1, -1, -1)
    return bits[: size * width].reshape(size, width).astype(np.int64) @ weights


# Lengths and directions of rows, for all floats.


# squares inside of this neither overflow nor lose digits
_SAFE = 1e-200, 1e200


def directions_of(rows):
    """Return the directions of rows, and which of them have none.

    Parameters
    ----------
    rows : ndarray of shape (n, d)

    Returns
    -------
    directions : ndarray of shape (n, d)
        Fresh rows of length 1, or zero where there is no direction.
    lost : ndarray of bool, shape (n,)
        Rows that are zero or not finite.
    """
    with np.errstate(all="ignore"):
        square = np.einsum("ij,ij->i", rows, rows)
        directions = rows / np.sqrt(square)[:, None]
        odd = np.flatnonzero(~((square > _SAFE[0]) & (square < _SAFE[1])))
        lost = np.zeros(len(rows), dtype=bool)
        if odd.size:
            size = np.abs(rows[odd]).max(axis=1, initial=0.0)
            lost[odd] = ~((size > 0.0) & (size < np.inf))
            part = rows[odd] / size[:, None]
            part /= np.sqrt(np.einsum("ij,ij->i", part, part))[:, None]
            directions[odd] = part
            directions[lost] = 0.0
    return directions, lost


def row_lengths(rows):
    """Return the lengths of rows, an ndarray of shape (n,); 0 for rows that are not finite."""
    with np.errstate(all="ignore"):
        square = np.einsum("ij,ij->i", rows, rows)
        lengths = np.sqrt(square)
        odd = np.flatnonzero(~((square > _SAFE[0]) & (square < _SAFE[1])))
        if odd.size:
            size = np.abs(rows[odd]).max(axis=1, initial=0.0)
            part = rows[odd] / size[:, None]
            part = size * np.sqrt(np.einsum("ij,ij->i", part, part))
            lengths[odd] = np.where((size > 0.0) & (size < np.inf), part, 0.0)
    return lengths


# Random words made into numbers, apart from where they come from.
#
# Words are drawn in order by one thread; what is made of them may be made by others.


def bits_of(source):
    """Return the `Bits` behind a source of variates, or the source if it is one itself."""
    return source if isinstance(source, Bits) else source.bits


def uniforms(words):
    """Return floats in the open interval (0, 1), uniform to 2^-64, one of each word."""
    u = words.astype(np.float64)
    u += 0.5
    u *= 2.0**-64
    # the largest words round to 1.0, which is outside
    return np.minimum(u, 1.0 - 2.0**-53, out=u)


def normals(words):
    """Return standard normal floats, one of each word.

    Parameters
    ----------
    words : ndarray of uint64
        Independent uniform words.

    Returns
    -------
    draws : ndarray of float64
        Fresh, of the same shape. A word is read as an odd integer between ``-2^64`` and
        ``2^64``, that is a sign and half of a uniform number, so that both tails are fine.
    """
    signed = words.view(np.int64).astype(np.float64)
    signed += 0.5
    half = np.abs(signed)
    half *= 2.0**-64
    ndtri(half, out=half)
    return np.copysign(half, signed, out=half)


# Work on chunks of rows, with random words that are drawn in the order of the rows.


#: words of one chunk; a few arrays of this size are held for each thread
CHUNK = 1 << 16


def in_chunks(work, n_rows, width, bits, n_threads=1):
    """Call a function for every chunk of rows, with fresh words.

    Parameters
    ----------
    work : callable
        ``work(rows, words)`` does the rows of a slice with words of shape (n, width), in any
        thread, and returns the positions inside of the slice of rows that need other words.
    n_rows, width : int
        Number of rows, and of the words of each.
    bits : Bits
        Source of random words. A seeded one is read by the calling thread only.
    n_threads : int, default=1
        How many threads work. With a seed a further one, the caller, draws the words of the
        next chunk; the operating system gives words to all threads at once.

    Notes
    -----
    With a seed row i gets the words from ``i * width`` on, whatever chunks and threads are. Rows
    that need other words are done at the end, one by one and in order.
    """
    step = max(1, CHUNK // max(1, width))
    slices = [slice(i, min(i + step, n_rows)) for i in range(0, n_rows, step)]
    again = []

    def fresh(rows):
        return bits.words((rows.stop - rows.start) * width).reshape(-1, width)

    def drawn(rows):
        return work(rows, fresh(rows))

    def note(rows, failed):
        again.extend(rows.start + i for i in failed)

    if n_threads > 1 and len(slices) > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            running = deque()
            for rows in slices:
                if len(running) > n_threads:
                    done, future = running.popleft()
                    note(done, future.result())
                if bits.seeded:
                    running.append((rows, pool.submit(work, rows, fresh(rows))))
                else:
                    running.append((rows, pool.submit(drawn, rows)))
            for done, future in running:
                note(done, future.result())
    else:
        for rows in slices:
            note(rows, drawn(rows))
    while again:
        rows, again = [slice(i, i + 1) for i in again], []
        for row in rows:
            note(row, drawn(row))


# Coins and positions with exact probabilities, many at a time.


def coins(p, size, bits):
    """Return independent coins that are true with probability exactly `p`.

    Parameters
    ----------
    p : float
        In (0, 1), meant as the real number it is.
    size : int
        How many.
    bits : Bits
        Source of random words.

    Returns
    -------
    heads : ndarray of bool, shape (size,)

    Notes
    -----
    A uniform number u has independent fair bits, and the coin is ``u < p``. The first 64 bits
    decide unless they are those of p; then further ones do, until p has no more.
    """
    numerator, denominator = float(p).as_integer_ratio()
    first, left = divmod(numerator << 64, denominator)
    words = bits.words(size)
    heads = words < np.uint64(first)
    if left:
        for i in np.flatnonzero(words == np.uint64(first)):
            heads[i] = _continued(left, denominator, bits)
    return heads


def _continued(left, denominator, bits):
    """Return whether the bits to come are below ``left / denominator``."""
    while left:
        digit, left = divmod(left << 64, denominator)
        word = int(bits.words(1)[0])
        if word != digit:
            return word < digit
    return False


def positions_below(n, size, bits):
    """Return independent positions, each exactly uniform among ``0, ..., n - 1``.

    Parameters
    ----------
    n, size : int
        From 1 to 2^62, and how many.
    bits : Bits
        Source of random words.

    Returns
    -------
    positions : ndarray of int64, shape (size,)
        In the order in which they were drawn.

    Notes
    -----
    The leading bits of words, as many as n needs; those that are too large are dropped.
    """
    surplus = np.uint64(64 - max(1, (n - 1).bit_length()))
    found = np.zeros(0, dtype=np.int64)
    while found.size < size:
        values = (bits.words(size - found.size) >> surplus).astype(np.int64)
        found = np.concatenate([found, values[values < n]])
    return found


def distinct_positions(n, size, bits):
    """Return a subset of ``0, ..., n - 1`` in increasing order, uniform among those of a size.

    Parameters
    ----------
    n, size : int
        From 1 to 2^62, and at most half of `n`.
    bits : Bits
        Source of random words.

    Returns
    -------
    positions : ndarray of int64, shape (size,)

    Notes
    -----
    Positions are drawn until so many of them differ: it takes time in proportion to `size`.
    """
    found = np.zeros(0, dtype=np.int64)
    while found.size < size:
        drawn = np.concatenate([found, positions_below(n, size - found.size, bits)])
        _, first = np.unique(drawn, return_index=True)
        found = drawn[np.sort(first)]
    return np.sort(found)


# Vectors with given parts along and across a direction, uniform otherwise.


# less of a vector than that across the direction is mostly rounding of what is along it
_SHORT = 2.0**-20


def around(out, vectors, along, across, aimless, bits, n_threads=1, prepare=None):
    """Fill rows with random vectors around the directions of others.

    Parameters
    ----------
    out : ndarray of shape (n, size)
        Takes the results; only their first entries if they have more.
    vectors : ndarray of shape (n, d)
        Rows of which the directions count. Their lengths do not, they are made 1 here.
    along : ndarray of shape (n,)
        Component of the result along the direction.
    across : ndarray of shape (n,) or None
        Length of the part that is orthogonal to it. With None that part is standard normal
        in all directions across.
    aimless : ndarray of shape (n,)
        Lengths of the results of rows that are zero or not finite: they are uniform on the
        sphere of that radius, as if the row had a fresh direction that is uniform.
    bits, n_threads : Bits, int
        As for `in_chunks`.
    prepare : callable, default=None
        Maps some of the rows to those of which the directions count.

    Notes
    -----
    The orthogonal part of a vector of normals has a uniform direction across u, and a length
    that is independent of that, and of the part along u. So normals of which nearly nothing is
    across may be drawn again: what is left of them would show the rounding of u. It happens to
    less than one row in a million. Otherwise every row takes as many words, whatever it is.
    """
    n_dims = vectors.shape[1] + (prepare is not None)

    def work(rows, words):
        part = vectors[rows]
        directions, lost = directions_of(part if prepare is None else prepare(part))
        made = normals(words)
        common = np.einsum("ij,ij->i", made, directions)
        made -= directions * common[:, None]
        length = np.sqrt(np.einsum("ij,ij->i", made, made))
        wanted = np.where(lost, aimless[rows], length if across is None else across[rows])
        factor = np.divide(wanted, length, out=np.zeros_like(length), where=length > 0.0)
        made *= factor[:, None]
        directions *= along[rows][:, None]
        made += directions
        out[rows] = made[:, : out.shape[1]]
        if across is None:
            # the length is as drawn, and so is its rounding
            return np.flatnonzero((length == 0.0) & (wanted > 0.0))
        return np.flatnonzero((length <= _SHORT * np.abs(common)) & (wanted > 0.0))

    in_chunks(work, len(vectors), n_dims, bits, n_threads)

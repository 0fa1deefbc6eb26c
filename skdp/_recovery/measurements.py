# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sparse recovery from few noisy measurements: public matrices, and the programs that invert them.

A measurement matrix is a function of its kind and shape, the same for everybody and for every
fit. It is not a secret: what it measures is private for every matrix, because each row's
measurements are clipped (`SketchSum`). `recover` finds a vector of small l1 norm that explains
released measurements, by cvxpy or by first-order methods that take products with the matrix
alone. What comes in was released, so when to stop is nobody's secret: both methods stop when a
step is short, and after a fixed number of steps at the latest.
"""

import warnings
from functools import cached_property, lru_cache

import numpy as np
from scipy import sparse
from scipy.linalg import hadamard
from scipy.special import ndtri

from skdp._recovery.shrinkage import soft_threshold
from skdp.privacy.kernel.samplers import SeededBits

# Public measurement matrices.

#: non-zeros in a column of a sparse matrix of signs
NONZEROS = 8
# numbers drawn at once
_BLOCK = 1 << 20
_POWER_STEPS = 25
# The largest dense matrix, in numbers. Beyond it, products with it take longer than all the
# rest; signs at a few places serve as well and take a hundredth of the time.
_DENSE_LIMIT = 1_000_000


def measurement_matrix(kind, n_measurements, n_features):
    """Return the public measurement matrix of a kind and a shape.

    Parameters
    ----------
    kind : {"auto", "gaussian", "sparse-sign", "hadamard"}
        "auto" is "gaussian" for up to a million entries, and "sparse-sign" beyond.
    n_measurements, n_features : int
        Shape; at most as many measurements as features.

    Returns
    -------
    matrix : Measurement
        The same for everybody.
    """
    if kind == "auto":
        small = n_measurements * n_features <= _DENSE_LIMIT
        kind = "gaussian" if small else "sparse-sign"
    return _KINDS[kind](n_measurements, n_features)


def public_words(kind, shape):
    """Return the source of the public words that a matrix is made of."""
    return SeededBits(0, f"measurement matrix, {kind}, {shape[0]} x {shape[1]}")


class Measurement:
    """A public matrix A of shape (n_measurements, n_features) with columns of norm 1.

    Parameters
    ----------
    n_measurements, n_features : int
        Shape; there are at most as many measurements as features.
    """

    def __init__(self, n_measurements, n_features):
        self.shape = (n_measurements, n_features)

    #: largest factor by which it stretches a vector, where that is known beforehand
    stretch = np.inf
    #: most measurements that an entry of a row has a part in
    spread = np.iinfo(np.int32).max

    def forward(self, z):
        """Return A z, for z of shape (n_features,)."""
        return self.columns.T @ z

    def backward(self, r):
        """Return A' r, for r of shape (n_measurements,)."""
        return self.columns @ r

    def sketches(self, X):
        """Return the measurements of rows.

        Parameters
        ----------
        X : CSR array of shape (n_rows, n_features)
            In float64.

        Returns
        -------
        sketches : ndarray or CSR array of shape (n_rows, n_measurements)
            The floats of a row depend on nothing but the row: its entries are added up in
            the order in which they are stored.
        """
        return X @ self.columns

    def explicit(self):
        """Return A itself, an ndarray or a sparse array."""
        return self.columns.T

    @cached_property
    def norm(self):
        """Spectral norm of A, or slightly more: an estimate, good enough for step sizes."""
        v = np.cos(np.arange(self.shape[0], dtype=np.float64))
        growth = 1.0
        for _ in range(_POWER_STEPS):
            v = self.forward(self.backward(v / np.linalg.norm(v)))
            growth = np.linalg.norm(v)
        return 1.05 * float(np.sqrt(growth))


class GaussianMeasurement(Measurement):
    """Columns that point into uniformly random directions: Gaussian ones, of norm 1."""

    @cached_property
    def columns(self):
        """The transposed matrix, an ndarray of shape (n_features, n_measurements)."""
        m, d = self.shape
        words = public_words("gaussian", self.shape)
        columns, step = np.empty((d, m)), max(1, _BLOCK // m)
        for start in range(0, d, step):
            part = columns[start : start + step]
            uniform = ((words.words(part.size) >> np.uint64(11)) + 0.5) * 2.0**-53
            part[:] = ndtri(uniform).reshape(part.shape)
            part /= np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-300)
        return columns


class SparseSignMeasurement(Measurement):
    """Columns with eight entries of one magnitude and random signs, at random places."""

    spread = NONZEROS

    @cached_property
    def columns(self):
        """The transposed matrix, a CSR array of shape (n_features, n_measurements)."""
        m, d = self.shape
        k = min(NONZEROS, m)
        words = public_words("sparse-sign", self.shape)
        # one entry in each of k parts of the measurements: no two fall on the same
        edges = np.arange(k + 1) * m // k
        places, values = np.empty((d, k), np.int64), np.empty((d, k))
        step = max(1, _BLOCK // k)
        for start in range(0, d, step):
            stop = min(start + step, d)
            drawn = words.words((stop - start) * k).reshape(-1, k)
            uniform = (drawn >> np.uint64(11)) * 2.0**-53
            places[start:stop] = edges[:-1] + uniform * np.diff(edges)
            values[start:stop] = np.where(drawn & np.uint64(1), 1.0, -1.0) / np.sqrt(k)
        parts = (values.ravel(), places.ravel(), np.arange(d + 1) * k)
        return sparse.csr_array(parts, shape=(d, m))


# Measurement by a part of a randomised Walsh-Hadamard transform.

# bits of the index that one product with a small Hadamard matrix transforms
_BITS = 6
# numbers of explicit columns at once, and of a row that is transformed as a whole
_AT_ONCE = 1 << 22


class HadamardMeasurement(Measurement):
    """Rows of the Hadamard matrix, chosen at random, columns multiplied by random signs.

    Notes
    -----
    Features are padded with zeros to a power of two, D. All columns have norm 1, and without
    the padding A A' would be D/m times the identity; so no vector grows by more than
    ``sqrt(D / m)``.
    """

    def __init__(self, n_measurements, n_features):
        super().__init__(n_measurements, n_features)
        self.padded = 1 << (n_features - 1).bit_length()
        self.stretch = self.norm = float(np.sqrt(self.padded / n_measurements))
        words = public_words("hadamard", self.shape)
        flips = words.words(n_features) & np.uint64(1)
        # divided by the norm of a column, so that both products need no other factor
        self._signs = np.where(flips, 1.0, -1.0) / np.sqrt(n_measurements)
        order = np.argpartition(words.words(self.padded), n_measurements - 1)
        self._chosen = np.sort(order[:n_measurements])

    def forward(self, z):
        """Return A z, for z of shape (n_features,)."""
        wide = np.zeros(self.padded)
        np.multiply(z, self._signs, out=wide[: self.shape[1]])
        return walsh_hadamard(wide)[self._chosen]

    def backward(self, r):
        """Return A' r, for r of shape (n_measurements,)."""
        wide = np.zeros(self.padded)
        wide[self._chosen] = r
        return walsh_hadamard(wide)[: self.shape[1]] * self._signs

    @cached_property
    def _tables(self):
        # an entry of the matrix is a product: of the low bits' matrix and the high bits'
        bits = self.padded.bit_length() - 1
        low, high = bits // 2, bits - bits // 2
        low_rows, high_rows = self._chosen & ((1 << low) - 1), self._chosen >> low
        first, second = (hadamard(1 << part, dtype=np.int8) for part in (low, high))
        return low, first[:, low_rows], second[:, high_rows]

    def _columns(self, index):
        """Return columns of A as rows, an ndarray of shape (len(index), n_measurements)."""
        low, first, second = self._tables
        signs = first[index & ((1 << low) - 1)] * second[index >> low]
        return signs * self._signs[index, None]

    def sketches(self, X):
        """Return the measurements of rows; as for any measurement, row by row."""
        m, d = self.shape
        counts = np.diff(X.indptr).astype(np.int64)
        # which way a row takes depends on the row: a full one is transformed as a whole
        full = counts * m > _AT_ONCE
        found = np.empty((X.shape[0], m))
        for i in np.flatnonzero(full):
            wide, part = np.zeros(d), slice(X.indptr[i], X.indptr[i + 1])
            np.add.at(wide, X.indices[part], X.data[part])
            found[i] = self.forward(wide)
        rest = np.flatnonzero(~full)
        group = np.cumsum(counts[rest]) // (_AT_ONCE // m + 1)
        for rows in np.split(rest, np.flatnonzero(np.diff(group)) + 1):
            part = X[rows]
            used, place = np.unique(part.indices, return_inverse=True)
            narrow = sparse.csr_array((part.data, place, part.indptr), shape=(len(rows), len(used)))
            found[rows] = narrow @ self._columns(used)
        return found

    def explicit(self):
        """Return A itself, an ndarray."""
        return np.ascontiguousarray(self._columns(np.arange(self.shape[1])).T)


def walsh_hadamard(x):
    """Return the Walsh-Hadamard transform, without a factor, of a vector of length 2^k.

    Parameters
    ----------
    x : ndarray of shape (2^k,)
        Never changed.

    Returns
    -------
    transformed : ndarray of shape (2^k,)
        In time ``2^k k``. Twice the transform is ``2^k x``.
    """
    left = x.size.bit_length() - 1
    while left > 0:
        bits = min(left, _BITS)
        # the lowest bits are transformed and become the highest: after all bits of the
        # index had their turn, its order is what it was
        x = (x.reshape(-1, 1 << bits) @ _small(bits)).T.ravel()
        left -= bits
    return x


@lru_cache(maxsize=_BITS)
def _small(bits):
    return hadamard(1 << bits, dtype=np.float64)


_KINDS = {
    "gaussian": GaussianMeasurement,
    "sparse-sign": SparseSignMeasurement,
    "hadamard": HadamardMeasurement,
}


# Recovery: three programs, two ways to solve them.

SOLVERS = ("cvxpy", "first-order")
# Entries of a dense matrix up to which a fit by cvxpy takes at most three times as long as one
# by first-order steps: with noise allowed for, and with measurements met exactly, for which
# first-order steps are slow (`benchmarks/speed.py --part cvxpy`).
_NOISY_LIMIT, _EXACT_LIMIT = 10_000, 50_000


def recover(matrix, b, form, *, radius=None, slack=0.0, nonnegative=False, solver="auto"):
    """Return a vector of small l1 norm that explains noisy measurements.

    Parameters
    ----------
    matrix : Measurement
        A; public.
    b : ndarray of shape (n_measurements,)
        Released measurements, finite.
    form : {"constrained", "denoising", "equality"}
        The least ``|A z - b|_2`` over the l1 ball of a radius; the least l1 norm with
        ``|A z - b|_2 <= slack``; the least l1 norm with ``A z = b``, which fits the noise.
    radius : float, default=None
        For "constrained".
    slack : float, default=0.0
        For "denoising".
    nonnegative : bool, default=False
        Whether no entry of z is negative.
    solver : {"auto", "cvxpy", "first-order"}, default="auto"
        "auto" is "cvxpy" for a small matrix, and "first-order" for a larger one.

    Returns
    -------
    z : ndarray of shape (n_features,)
        Finite. If cvxpy fails or finds no optimum, what first-order steps find.
    """
    z, largest = np.zeros(matrix.shape[1]), np.abs(b).max()
    if largest == 0:
        return z
    with np.errstate(over="ignore", under="ignore"):
        unit = largest * np.linalg.norm(b / largest)
        b = b / unit
        radius = radius / unit if form == "constrained" else None
        slack = slack / unit if form == "denoising" else 0.0
        if slack < 1:
            z = _solved(matrix, b, form, radius, slack, nonnegative, solver) * unit
    return z


def _solved(matrix, b, form, radius, slack, nonnegative, solver):
    """Return the solution for measurements of norm 1."""
    limit = _EXACT_LIMIT if form == "equality" else _NOISY_LIMIT
    small = matrix.shape[0] * matrix.shape[1] <= limit
    if solver == "cvxpy" or (solver == "auto" and small):
        found = _guarded(matrix, b, radius, slack, nonnegative)
        if found is not None:
            return found
    if radius is not None:
        return recover_constrained(matrix, b, radius, nonnegative)
    return recover_shortest(matrix, b, slack, nonnegative)


def _guarded(matrix, b, radius, slack, nonnegative):
    """Return what cvxpy finds, or None: the first-order steps take over then."""
    given = {"radius": radius, "slack": slack, "nonnegative": nonnegative}
    return solved_in_silence(lambda: recover_with_cvxpy(matrix, b, **given), matrix.shape[1:])


def solved_in_silence(solve, shape):
    """Return what a solver of others returns, or None if it fails; it says nothing either way.

    Parameters
    ----------
    solve : callable
        Called without arguments. It may warn, and raise what it likes: messages may have private
        numbers.
    shape : tuple of int
        Of a usable solution, whose numbers are finite.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = solve()
            found = None if found is None else np.asarray(found, dtype=np.float64)
        except BaseException as error:
            # compiled solvers panic, which is no Exception
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            return None
    usable = found is not None and found.shape == shape and np.isfinite(found).all()
    return found if usable else None


def recover_with_cvxpy(matrix, b, *, radius=None, slack=0.0, nonnegative=False):
    """Return what cvxpy and Clarabel recover.

    Parameters
    ----------
    matrix : Measurement
        A; it is made explicit.
    b : ndarray of shape (n_measurements,)
        Released measurements, of norm 1: solvers stop at absolute tolerances.
    radius : float, default=None
        Given, ``|A z - b|_2`` is least over the l1 ball of this radius; None is the shortest
        z in the l1 norm with ``|A z - b|_2 <= slack``.
    slack : float, default=0.0
        In [0, 1); with 0 the measurements are met exactly.
    nonnegative : bool, default=False
        Whether no entry of z is negative.

    Returns
    -------
    z : ndarray of shape (n_features,), or None
        None if the solver did not report an optimum.
    """
    import cvxpy

    z = cvxpy.Variable(matrix.shape[1], nonneg=nonnegative)
    residual = matrix.explicit() @ z - b
    length = cvxpy.sum(z) if nonnegative else cvxpy.norm1(z)
    if radius is not None:
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm2(residual)), [length <= radius])
    else:
        met = residual == 0 if slack == 0 else cvxpy.norm2(residual) <= slack
        problem = cvxpy.Problem(cvxpy.Minimize(length), [met])
    problem.solve(solver="CLARABEL")
    return np.asarray(z.value, dtype=np.float64) if problem.status == "optimal" else None


# First-order methods.

# steps relative to the point at which a method stops, and the most of them
_TOLERANCE = 1e-5
_MOST_STEPS = 3000
# how often the slower method looks whether it is done
_EVERY = 10


def recover_constrained(matrix, b, radius, nonnegative=False):
    """Return a minimiser of ``|A z - b|_2`` over the l1 ball, by accelerated projected descent.

    Parameters
    ----------
    matrix : Measurement
        A.
    b : ndarray of shape (n_measurements,)
        Released measurements, of norm 1.
    radius : float
        Radius of the ball, at least 0.
    nonnegative : bool, default=False
        Whether no entry of z is negative.

    Returns
    -------
    z : ndarray of shape (n_features,)
        In the ball.

    Notes
    -----
    Nesterov's momentum, begun anew whenever it points uphill (O'Donoghue and Candes, 2015).
    """
    z = np.zeros(matrix.shape[1])
    with np.errstate(under="ignore"):
        step, ahead, t, level = 1.0 / matrix.norm**2, z, 1.0, 0.0
        for _ in range(_MOST_STEPS):
            new = ahead - step * matrix.backward(matrix.forward(ahead) - b)
            if nonnegative:
                np.maximum(new, 0.0, out=new)
            level = _l1_level(np.abs(new), radius, level)
            new = soft_threshold(new, level)
            move = new - z
            if (ahead - new) @ move > 0:
                t, ahead = 1.0, new
            else:
                grown = (1 + np.sqrt(1 + 4 * t * t)) / 2
                t, ahead = grown, new + ((t - 1) / grown) * move
            close, z = _close(new, z), new
            if close:
                break
    return z


def _l1_level(magnitudes, radius, level):
    """Return the threshold that brings a vector into the l1 ball, by Newton's method.

    From the threshold of the step before, this takes few looks at the magnitudes, and no
    sort. The l1 norm is convex in the threshold: after one step, whatever the start, all
    steps go up to the solution, and each leaves fewer entries.
    """
    if magnitudes.sum() <= radius:
        return 0.0
    for _ in range(len(magnitudes) + 2):
        above = magnitudes[magnitudes > level]
        new = max((above.sum() - radius) / above.size, 0.0) if above.size else 0.0
        if 0 <= new - level <= 1e-12 * new:
            break
        level = new
    return new


def recover_shortest(matrix, b, slack, nonnegative=False):
    """Return a z of least l1 norm with ``|A z - b|_2 <= slack``, by a primal-dual method.

    Parameters
    ----------
    matrix : Measurement
        A.
    b : ndarray of shape (n_measurements,)
        Released measurements, of norm 1.
    slack : float
        In [0, 1); with 0 the measurements are met exactly.
    nonnegative : bool, default=False
        Whether no entry of z is negative; then measurements may be out of reach, and what
        comes out is as near as the steps got.

    Returns
    -------
    z : ndarray of shape (n_features,)
        Up to the tolerance.

    Notes
    -----
    The method of Chambolle and Pock (2011). Its two step sizes are in the ratio of what is
    expected of the solutions: a primal one of about the length of b, and a dual one with
    about sqrt(m) entries of order 1.
    """
    z = np.zeros(matrix.shape[1])
    with np.errstate(under="ignore"):
        ratio = 1.0 / np.sqrt(len(b))
        step, dual_step = ratio / matrix.norm, 1.0 / (ratio * matrix.norm)
        u, reached = np.zeros(len(b)), np.zeros(len(b))
        for i in range(_MOST_STEPS):
            new = z - step * matrix.backward(u)
            new = np.maximum(new - step, 0.0) if nonnegative else soft_threshold(new, step)
            fitted = matrix.forward(new)
            v = u + dual_step * (2 * fitted - reached - b)
            size = np.linalg.norm(v)
            # what is left of the dual step beyond the ball of feasible residuals
            u_new = v * max(0.0, 1.0 - dual_step * slack / size) if size else v
            if i % _EVERY == 0:
                missed = np.linalg.norm(fitted - b) - slack
                if missed <= _TOLERANCE and _close(new, z) and _close(u_new, u):
                    z = new
                    break
            z, u, reached = new, u_new, fitted
    return z


def _close(new, old):
    """Return whether a step from old to new is short."""
    return np.linalg.norm(new - old) <= _TOLERANCE * np.linalg.norm(new)

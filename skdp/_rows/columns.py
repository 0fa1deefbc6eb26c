# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows for statistics of features and of distances: as they are, as points, or around a center.

`FeatureRows` are rows as they are, for statistics that treat every feature on its own. `PointRows`
are points of the unit ball, for directions and distances. `unit_columns` and what follows it give
norms and distances whose floats come from elementwise operations alone. `centered_rows` are rows of
a linear model around a public center, within a public radius, and `mapped_rows` their images under
a public linear map.
"""

from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from skdp._rows.base import (
    L2Ball,
    chunk_rows,
    empty_rows,
    row_major,
    row_norms,
    squared_lengths,
    tame,
    without_duplicates,
)
from skdp._rows.linear import LinearChunk, chunks_of, moved_rows, usable_norms
from skdp._rows.streams import no_flags, over_rows

#: all columns, in their order
EVERY = slice(None)


class DenseChunk:
    """Consecutive rows that are not null; with a `weight` each counts so often."""

    __slots__ = ("X", "weight")

    def __init__(self, X, weight=None):
        self.X, self.weight = X, weight

    @property
    def count(self):
        """How many rows count."""
        return self.X.shape[0] if self.weight is None else self.weight.sum()

    def sums(self, contributions):
        """Return the sums over rows of every contribution, one after another.

        Parameters
        ----------
        contributions : callable
            Maps values, and the columns they stand in, to a list of arrays of their shape.
            Columns are what an array with an entry per feature is to be indexed with.

        Returns
        -------
        sums : ndarray of shape (n_contributions * n_features,), float64
        """
        parts = contributions(row_major(self.X), EVERY)
        if self.weight is not None:
            return np.concatenate(
                [self.weight @ part.astype(np.float64, copy=False) for part in parts]
            )
        return np.concatenate([part.sum(axis=0) for part in parts]).astype(np.float64)


class SparseChunk(DenseChunk):
    """The same, CSR: an entry that is not stored is 0."""

    __slots__ = ("missing", "shared")

    def __init__(self, X, weight=None):
        super().__init__(X, weight)
        self.shared = None if weight is None else np.repeat(weight, np.diff(X.indptr))
        # how many zeros every column has that are not stored
        self.missing = self.count - np.bincount(X.indices, self.shared, X.shape[1])

    def sums(self, contributions):
        """Return what `DenseChunk.sums` does, without the zeros ever being written down."""
        columns, n_features = self.X.indices, self.X.shape[1]
        stored = contributions(self.X.data.astype(np.float64, copy=False), columns)
        others = contributions(np.zeros(n_features), EVERY)
        if self.shared is not None:
            stored = [part * self.shared for part in stored]
        return np.concatenate(
            [
                np.bincount(columns, part, n_features) + self.missing * other
                for part, other in zip(stored, others, strict=True)
            ]
        )


def feature_chunk(block):
    """Return the chunk of a block (rows,), (rows, null flags), or of both and what rows count."""
    X, null, weight = (*block, None, None)[:3]
    is_sparse = sparse.issparse(X)
    # of these rows alone: what a matrix remembers of itself may be out of date, and a value
    # that is stored twice would count twice
    if is_sparse:
        X = without_duplicates(X)
    # cut before null rows are dropped: the chunks of neighbours have the same rows
    if null is not None and null.any():
        X, weight = X[~null], None if weight is None else weight[~null]
    return SparseChunk(X, weight) if is_sparse else DenseChunk(X, weight)


class FeatureRows:
    """Rows as they are, in chunks.

    What becomes of a value, NaN included, is for the query to say; it may depend on
    nothing but that value and public constants.

    Parameters
    ----------
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        Never changed, and not copied but for chunks with null rows and those of CSR matrices
        with duplicate entries, which are added up. A stream is read chunk by chunk, and chunks
        are kept for the next pass as far as there is room.
    null : ndarray or RowStream of shape (n_rows,), dtype bool, default=None
        Rows that contribute nothing; None for no row.
    n_threads : int, default=1
        Threads for the sums.
    weight : ndarray of shape (n_rows,), default=None
        What rows count, in [0, 1]: those of a group at most 1 together. None for 1 each.
    """

    def __init__(self, X, null=None, n_threads=1, weight=None):
        self.n_threads = n_threads
        self.n_entries, _ = chunk_rows(X)
        if weight is not None:
            null = over_rows(no_flags, X) if null is None else null
        self.chunks = chunks_of(feature_chunk, X, null, weight=weight, kept=True)

    def filled(self, values):
        """Return dense rows in which every NaN is the value of its column.

        Parameters
        ----------
        values : ndarray of shape (n_features,)
            Public by now. Null rows remain null.
        """
        rows = copy(self)
        rows.chunks = [
            DenseChunk(np.where(np.isnan(chunk.X), values, chunk.X), chunk.weight)
            for chunk in self.chunks
        ]
        return rows


# Rows as points of the unit ball, for statistics of distances.


class BallChunk:
    """Consecutive rows f_i x_i, f_i bringing x_i into the unit ball; `null` lists null rows."""

    __slots__ = ("X", "factor", "null", "weight")

    def __init__(self, X, ball, weight=None):
        self.weight = weight
        # a row that is not finite has become zeros, and its index is all that is left of it
        self.X, broken = tame(X)
        self.factor = ball.factors(row_norms(self.X))[:, None]
        self.null = np.flatnonzero(broken)

    def points(self):
        """Return the points as a fresh float64 array; a null row has zeros."""
        return np.multiply(row_major(self.X), self.factor)


class BoxedChunk:
    """Consecutive rows of a box, mapped into the unit ball; `null` lists null rows."""

    __slots__ = ("X", "box", "null", "radius", "weight")

    def __init__(self, X, box, radius, weight=None):
        self.X, self.box, self.radius, self.weight = X, box, radius, weight
        self.null = np.flatnonzero(np.isnan(X).any(axis=1))

    def points(self):
        """Return the points as a fresh float64 array; a null row has zeros."""
        points = np.clip(row_major(self.X), self.box.lower, self.box.upper)
        points -= self.box.center
        points /= self.radius
        points[self.null] = 0.0
        return points


@dataclass(frozen=True)
class PointAdmission:
    """How rows become a chunk of `PointRows`; parameters are those of `PointRows`."""

    domain: Any
    radius: float

    def __call__(self, block):
        """Return the chunk of a block (rows,), or of that and what rows count."""
        X, *weight = block
        if isinstance(self.domain, L2Ball):
            return BallChunk(X, self.domain, *weight)
        return BoxedChunk(X, self.domain, self.radius, *weight)


class PointRows:
    """Rows admitted into a ball or a box, as points of the unit ball.

    Parameters
    ----------
    X : ndarray or RowStream of shape (n_rows, n_features)
        Never changed and, unless it holds floats that break arithmetic, never copied. A
        stream is read chunk by chunk whenever a chunk is needed.
    domain : L2Ball or Box
        Longer rows are scaled into the ball, rows outside clipped into the box. A row
        with a NaN, in a ball also with an infinity, is a null row: it contributes nothing.
    radius : float
        Radius of the ball, or of a ball around the box: the unit of the points.
    n_threads : int, default=1
        Threads for the sums.
    weight : ndarray of shape (n_rows,), default=None
        As for `FeatureRows`.
    """

    def __init__(self, X, domain, radius, n_threads=1, weight=None):
        self.n_threads = n_threads
        self.n_entries, _ = chunk_rows(X)
        self.chunks = chunks_of(PointAdmission(domain, radius), X, weight=weight)

    def columns(self):
        """Return the points that are not null, one row for each coordinate, all in memory."""
        parts = [np.delete(chunk.points(), chunk.null, axis=0).T for chunk in self.chunks]
        return np.concatenate(parts, axis=1)

    def weight(self):
        """Return what these points count, in their order; None for 1 each."""
        if self.chunks[0].weight is None:
            return None
        return np.concatenate([np.delete(chunk.weight, chunk.null) for chunk in self.chunks])


# Rows of the unit ball, whose floats depend on nothing but the row itself.
#
# A count may jump when a distance moves by one unit in the last place, and a sum of rows
# clipped to a tiny radius feels the last place of every row. Here every operation is elementwise,
# with one row in each column: that a row's floats do not depend on other rows needs no assumption
# about how a library sums along a row.


# Rows this close to the sphere count as long ones. Far more than the rounding of a norm.
_EDGE = 1 - 1e-9
# Norms of chunks are held above this one, for a division: it may stand for zero.
_FLOOR = 1e-100


def _lengths(columns):
    """Return the norms of columns, each the same wherever its column stands."""
    squares = columns * columns
    if squares.shape[1] == 1:
        # one column alone would be added up in another order than among others
        squares = np.repeat(squares, 2, axis=1)
    return np.sqrt(squares.sum(axis=0))[: columns.shape[1]]


def unit_columns(chunk):
    """Return the rows of a dense chunk, one in each column, and their norms.

    Parameters
    ----------
    chunk : LinearChunk
        Dense rows without an intercept.

    Returns
    -------
    columns : ndarray of shape (n_features, n_rows)
        Fresh, in float64. Those of null rows mean nothing.
    norm : ndarray of shape (n_rows,)
        At most 1.

    Notes
    -----
    A row clearly inside the ball has the factor one over its radius, a constant. Every
    other row is divided by its own norm, computed anew.
    """
    columns = np.array(chunk.X.T, dtype=np.float64, order="C")
    with np.errstate(under="ignore"):
        norm = _lengths(columns)
        scaled = norm * chunk.factor
        inside = scaled < _EDGE
        # a row of zeros is inside
        columns *= np.where(inside, chunk.factor, 1.0 / np.maximum(norm, 1e-150))
    return columns, np.where(inside, scaled, 1.0)


def gaps_from(center, chunk):
    """Return the rows of a dense chunk minus a center, and their distances from it.

    Parameters
    ----------
    center : ndarray of shape (n_features,)
        Point of the unit ball.
    chunk : LinearChunk
        Dense rows without an intercept.

    Returns
    -------
    gaps : ndarray of shape (n_features, n_rows)
        Fresh, one row in each column.
    distance : ndarray of shape (n_rows,)
        Their Euclidean norms.
    """
    gaps, _ = unit_columns(chunk)
    # differences first: distances from products would lose the digits of near rows
    with np.errstate(under="ignore"):
        gaps -= center[:, None]
        return gaps, _lengths(gaps)


def distances_from(center, chunk):
    """Return the distances of a chunk's rows from a center.

    Parameters
    ----------
    center : ndarray of shape (n_features,) or None
        Point of the unit ball; None is the origin.
    chunk : LinearChunk
        Rows without an intercept; sparse only without a center.

    Returns
    -------
    distances : ndarray of shape (n_rows,)
        In float64. Those of null rows mean nothing.
    """
    if center is not None:
        return gaps_from(center, chunk)[1]
    if sparse.issparse(chunk.X):
        # summed in the stored order of each row
        return np.where(chunk.norm > _FLOOR, chunk.norm, 0.0)
    return unit_columns(chunk)[1]


# Rows of a linear model around a public center, within a public radius.


def centered_rows(rows, center, intercept, radius=1.0, shorten=False):
    """Return rows moved so that a public point is their origin.

    Parameters
    ----------
    rows : LinearRows
        Dense rows f x in the unit ball, without an intercept.
    center : ndarray of shape (n_features,)
        Public point, in units of the ball.
    intercept : float
        Constant feature of the new rows.
    radius : float, default=1.0
        Public radius tau: the new rows are ``((f x - center) / tau, intercept)``.
    shorten : bool, default=False
        Whether the whole of a row is shortened to norm ``sqrt(1 + intercept^2)`` where it is
        longer.

    Returns
    -------
    moved : LinearRows
        In float64, a copy: moving the rows anew at every step would take longer than the
        step. Rows that are read chunk by chunk are moved anew all the same.

    Notes
    -----
    A unit in the last place of x may be long in units of a small radius. So a new row is made of
    the old one by elementwise operations alone.
    """
    move = partial(_centered, center=center, intercept=intercept, radius=radius, shorten=shorten)
    if rows.is_streamed:
        return rows.mapped(move)
    return moved_rows(rows, move, len(center))


def _centered(chunk, center, intercept, radius, shorten, body=None):
    """Return one chunk of moved rows; `body` is where they are to be stored."""
    columns, _ = unit_columns(chunk)
    with np.errstate(under="ignore"):
        columns -= center[:, None]
        columns /= radius
        norm = np.hypot(_lengths(columns), intercept)
    lift = None
    if shorten:
        longest = np.hypot(1.0, intercept)
        lift = longest / np.maximum(norm, longest)
        columns *= lift
        np.minimum(norm, longest, out=norm)
    if body is None:
        body = np.empty(columns.shape[::-1])
    body[:] = columns.T
    norm = usable_norms(norm, np.isinf(chunk.norm))
    return LinearChunk(body, np.ones(len(norm)), norm, chunk.target, intercept, lift)


# Rows of a linear model under a public linear map.


def mapped_rows(rows, center, root, intercept, within=False):
    """Return rows ``root (x - center)`` with a constant feature.

    Parameters
    ----------
    rows : LinearRows
        Rows f x; a constant feature that they have is left out, but for its lifts: a row that was
        scaled by s becomes ``s (root (x - center), intercept)``.
    center : ndarray of shape (n_features,)
        Public point, in units of the ball.
    root : ndarray of shape (n_features, n_features) or (n_features,)
        Public symmetric matrix, or a diagonal; of sparse rows a matrix for few columns.
    intercept : float
        Constant feature of the new rows; 0 for none.
    within : bool, default=False
        Whether dense rows are mapped within every product, too; public. See `MappedChunk` for what
        it costs in accuracy.

    Returns
    -------
    mapped : LinearRows
        Dense rows are a copy in float64, unless they are read chunk by chunk: those are mapped
        anew where they are not kept. What is mapped within products shares memory with the rows.

    Notes
    -----
    A row of a copy is one row of a product of a whole chunk, in the layout of the contract; where
    rows have weights, and others may move up, a product of its own.
    """
    move = partial(_mapped, center=center, root=root, intercept=intercept, within=within)
    if within or rows.is_streamed or any(sparse.issparse(chunk.X) for chunk in rows.chunks):
        return rows.mapped(move)
    return moved_rows(rows, move, len(center))


def _mapped(chunk, center, root, intercept, within=False, body=None):
    """Return one chunk of mapped rows; `body` is where dense ones are to be stored."""
    null, lift = np.isinf(chunk.norm), chunk.lift
    constant = intercept if lift is None else intercept * lift
    is_sparse = sparse.issparse(chunk.X)
    if is_sparse and root.ndim == 1:
        norm = _sparse_norms(chunk, root, root * center)
    elif is_sparse or (within and not chunk.drawn):
        norm = _moved_bounds(chunk, center, root)
    else:
        body = empty_rows(chunk.X.shape) if body is None else body
        with np.errstate(under="ignore"):
            norm = np.hypot(_moved_norms(chunk, center, root, body), constant)
        kept = body, np.ones(len(norm)), usable_norms(norm, null), chunk.target
        return LinearChunk(*kept, intercept, lift, chunk.drawn, chunk.weight)
    norm = usable_norms(np.hypot(norm, constant), null)
    shift = center * root if root.ndim == 1 else center @ root
    return MappedChunk(chunk, norm, PublicMap(root, shift), intercept)


# entries that are mapped at a time, and rows at least: memory that is handed out again at once
_MOVED_ENTRIES, _MOVED_ROWS = 1 << 15, 64


def _parts_moved(body, X, factor, lift, center, root, drawn=False):
    """Write rows ``root (factor x - lift center)`` into an array, or into parts of one.

    Parameters
    ----------
    body : ndarray of shape (n_rows, n_features) or None
        None for memory that is handed out again after every part, and for sparse rows.
    X, factor, lift, center, root, drawn : ndarray or bool
        The rows, what they are multiplied by, and the map.

    Yields
    ------
    part, rows : slice, ndarray of shape (n_part, n_features)
        Which rows, and what they are by now.
    """
    step, is_sparse = max(_MOVED_ENTRIES // X.shape[1], _MOVED_ROWS), sparse.issparse(X)
    if is_sparse:
        # the product comes first, for it leaves zeros out; and a part takes long to cut
        step, center = 4 * step, center @ root
    for start in range(0, len(factor), step):
        part = slice(start, start + step)
        moved = X[part].dot(root) if is_sparse else row_major(X[part])
        moved = np.multiply(moved, factor[part, None], out=empty_rows(moved.shape))
        moved -= center if lift is None else np.multiply.outer(lift[part], center)
        if is_sparse:
            yield part, moved
            continue
        rows = empty_rows(moved.shape) if body is None else body[part]
        if root.ndim == 1:
            np.multiply(moved, root, out=rows)
        elif drawn:
            # a stack of rows: one product each, of which no row knows where it stands
            np.matmul(moved[:, None], root, out=rows[:, None])
        else:
            np.dot(moved, root, out=rows)
        yield part, rows


# Rows that are mapped within every product.

# of the squares that a norm is the difference of: far more than the rounding of their sums
_NORM_SLACK = 1e-9
# of lengths that a mapped row is the difference of: far more than the rounding of 1000 products
_MOVE_SLACK = 1e-12


def _sparse_norms(chunk, scale, shift):
    """Return upper bounds on the norms of sparse rows whose columns are scaled."""
    X, factor = chunk.X, chunk.factor
    lift = 1.0 if chunk.lift is None else chunk.lift
    with np.errstate(under="ignore"):
        square = squared_lengths(X, scale * scale) * factor * factor
        # where nothing was seen of a center there is no shift
        cross = X.dot(scale * shift) * factor * lift if shift.any() else 0.0
        rest = shift @ shift * lift * lift
        norm = np.maximum(square - 2.0 * cross + rest, 0.0)
        norm += _NORM_SLACK * (square + 2.0 * np.abs(cross) + rest)
        return np.sqrt(norm)


def _moved_bounds(chunk, center, root):
    """Return upper bounds on the norms of rows mapped part by part, of null rows anything."""
    with np.errstate(under="ignore", invalid="ignore"):
        norm = _moved_norms(chunk, center, root)
        return norm + _MOVE_SLACK * np.linalg.norm(root) * (chunk.norm + np.linalg.norm(center))


def _moved_norms(chunk, center, root, body=None):
    """Return the norms of mapped rows, which are written into an array if there is one."""
    norm = np.empty(len(chunk.norm))
    public = center, root, chunk.drawn
    for part, rows in _parts_moved(body, chunk.X, chunk.factor, chunk.lift, *public):
        norm[part] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norm


@dataclass(frozen=True, eq=False)
class PublicMap:
    """A linear map and what it makes of a public center; all chunks share it.

    Parameters
    ----------
    root, shift : ndarray of shape (d, d) or (d,), ndarray of shape (d,)
        Symmetric matrix, or a diagonal; its product with the center.
    """

    root: Any
    shift: Any

    def of(self, body):
        """Return the product with coefficients, or sums of rows, of shape (..., d)."""
        return body * self.root if self.root.ndim == 1 else body @ self.root


class MappedChunk(LinearChunk):
    """Rows ``(root f_i x_i - shift, intercept)`` that are mapped within every product.

    With a `lift`, shift and intercept are times it. Zeros of sparse rows are left alone, and dense
    rows take no memory. Norms are upper bounds. Sums are differences of longer ones, and how much
    longer they may be is part of the sensitivity: Propositions 80 for columns of sparse rows that
    are scaled, and 100.
    """

    __slots__ = ("columns", "map")

    def __init__(self, chunk, norm, public_map, intercept):
        rest = intercept, chunk.lift, chunk.drawn, chunk.weight
        super().__init__(chunk.X, chunk.factor, norm, chunk.target, *rest)
        self.map = public_map
        # made once: among few rows that takes as long as a product
        self.columns = chunk.X.T if sparse.issparse(chunk.X) else None

    def _with(self, X):
        made = copy(self)
        made.X, made.columns = X, X.T if sparse.issparse(X) else None
        return made

    def predict(self, coef):
        """Return rows @ coef.T for coef of shape (size,) or (n_outputs, size)."""
        body = coef[..., :-1] if self.intercept else coef
        z = self._rows().dot(self.map.of(body).T)
        z *= self.factor if z.ndim == 1 else self.factor[:, None]
        constant = self.intercept * coef[..., -1] if self.intercept else 0.0
        constant = constant - body @ self.map.shift
        z += constant if self.lift is None else np.multiply.outer(self.lift, constant)
        return z

    def combine(self, residual):
        """Return residual.T @ rows, flattened; overwrites the residual."""
        total = residual.sum(axis=0) if self.lift is None else self.lift @ residual
        residual *= self.factor if residual.ndim == 1 else self.factor[:, None]
        dense, d = self.columns is None, self.X.shape[1]
        made = np.empty((*residual.shape[1:], d + bool(self.intercept)))
        body = residual.T.dot(self._rows()) if dense else self.columns.dot(residual).T
        made[..., :d] = self.map.of(body)
        made[..., :d] -= np.multiply.outer(total, self.map.shift)
        if self.intercept:
            made[..., d] = self.intercept * total
        return made.ravel()

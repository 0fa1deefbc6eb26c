# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Public domains of reporting rows, their vectors, and the units of reports.

A domain determines the map of a row before its report, and the reported vector. It has public
parameters only, which a server sends to clients: `plain` returns them as plain data, and
`of_plain` is the inverse. In this order: balls, boxes, categories, gradients.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._rows.base import (
    RADIUS_RANGE,
    Box,
    L2Ball,
    check_bounds,
    check_radius,
    row_norms,
    tame,
)
from skdp._rows.linear import LinearRows, ball_rows
from skdp._sklearn import effective_n_threads, resolve_classes
from skdp.local._moments import CategoryCounts, MeanSums, MomentSums
from skdp.local.randomisers.report import RowVectors
from skdp.location._clipped_mean import BoxRows
from skdp.location._histogram import category_places, check_categories


@dataclass(frozen=True)
class BoxVectors:
    """The rows themselves, in the box [-1, 1]^d.

    Parameters
    ----------
    name : str, default="rows in a box"
        What they are.
    """

    name: str = "rows in a box"

    def vectors(self, chunk):
        """Return the rows of a chunk of `BoxRows`; what is not a number is the center."""
        return chunk.box.to_unit(chunk.X.astype(np.float64, copy=False))

    def contents(self, chunk):
        """Return the rows before they are clipped: fewer of them are equal."""
        return chunk.X.astype(np.float64, copy=False)


@dataclass(frozen=True)
class BallDomain:
    """Rows of at most, or of exactly, a public norm.

    Parameters
    ----------
    radius : float
        The public norm.
    norm : float or None
        Public guess of the norms of rows relative to it, for the stated variances; None if rows
        are scaled to the radius (zero rows stay zero).
    """

    radius: float
    norm: float | None

    #: what reports are added to, whether rows have a label, and how many entries if it is fixed
    sums: ClassVar[Any] = MeanSums
    labelled, n_features = False, None
    vectors = RowVectors()
    #: what a report of zero stands for, in the units of the data
    center = 0.0

    def plain(self):
        """Return the public parameters as plain data."""
        return {"data_norm": self.radius, "expected_norm": self.norm}

    @classmethod
    def of_plain(cls, data_norm, expected_norm):
        """Return the domain of public parameters, or raise a ValueError."""
        if expected_norm is not None and not 0.0 < expected_norm <= 1.0:
            raise ValueError(f"expected_norm must be in (0, 1]; got {expected_norm!r}.")
        return cls(check_radius(data_norm), expected_norm)

    @property
    def unit(self):
        """Value of the number 1 in a report, in the units of the data."""
        return self.radius

    def admit(self, X):
        """Return private rows in the unit ball."""
        # in a tiny ball nearly all rows are long, and have length 1 then
        ball = L2Ball(RADIUS_RANGE[0] if self.norm is None else self.radius)
        return ball_rows(X, ball, effective_n_threads())

    def original(self, reports):
        """Return reports in the units of rows."""
        reports *= self.radius
        return reports

    def kept(self, X):
        """Return rows in the domain, without noise."""
        rows, _ = tame(X)
        lengths = row_norms(rows)
        if self.norm is None:
            factor = np.divide(self.radius, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        else:
            # exactly 1 for rows that are in the ball
            factor = self.radius / np.maximum(lengths, self.radius)
        if sparse.issparse(rows):
            data = rows.data * np.repeat(factor, np.diff(rows.indptr))
            return type(rows)((data, rows.indices, rows.indptr), shape=X.shape, copy=True)
        return rows * factor[:, None]

    def variance(self, randomiser):
        """Return the variance of a report in directions orthogonal to its row, a float."""
        if self.norm is None:
            across = randomiser.noise_variance
        else:
            across = randomiser.variances(self.norm)[1]
        return float(across) * self.radius * self.radius

    def entry_variances(self, randomiser):
        """Return the variance of every entry of a report, averaged over entries."""
        error, n_dims = randomiser.mean_squared_error(self.norm), randomiser.n_dims
        return np.full(n_dims, error * self.radius**2 / n_dims)


class MomentDomain(BallDomain):
    """Rows of at most a public norm, for sums of reports and of their products."""

    sums = MomentSums


@dataclass(frozen=True)
class BoxDomain:
    """Rows with every entry between public bounds.

    Parameters
    ----------
    box : Box
        The bounds.
    """

    box: Any

    sums, labelled = MeanSums, False
    vectors = BoxVectors()

    def plain(self):
        """Return the public parameters as plain data."""
        return {"lower": list(self.box.lower), "upper": list(self.box.upper)}

    @classmethod
    def of_plain(cls, lower, upper):
        """Return the domain of public parameters, or raise a ValueError."""
        ends = (np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64))
        return cls.between(*check_bounds(ends, len(lower)))

    @property
    def n_features(self):
        """Number of entries of a row."""
        return len(self.box.lower)

    @property
    def center(self):
        """Value of a report of zero, in the units of the data."""
        return self.box.center

    @property
    def unit(self):
        """Value of the number 1 in a report, in the units of the data."""
        return self.box.half_width

    @classmethod
    def between(cls, lower, upper):
        """Return the domain of bounds, arrays of shape (n_features,)."""
        return cls(Box(tuple(lower.tolist()), tuple(upper.tolist())))

    def admit(self, X):
        """Return private rows in the box."""
        return BoxRows(X, self.box, effective_n_threads())

    def original(self, reports):
        """Return reports in the units of rows."""
        reports *= self.box.half_width
        reports += self.box.center
        return reports

    def kept(self, X):
        """Return rows in the domain, without noise."""
        return np.clip(X.astype(np.float64, copy=False), self.box.lower, self.box.upper)

    def variance(self, randomiser):
        """Return the largest variance of every entry of a report, shape (n_features,)."""
        with np.errstate(over="ignore", under="ignore"):
            reach = randomiser.bound * self.box.half_width + np.abs(self.box.center)
            if not np.isfinite(reach).all():
                raise ValueError(
                    "bounds are so far apart that reports, which reach beyond them by a factor "
                    f"of {randomiser.bound:.3g}, would overflow; bring them together."
                )
            # a root, for the squares of tiny sides
            return (math.sqrt(randomiser.worst_variance) * self.box.half_width) ** 2

    def entry_variances(self, randomiser):
        """Return the variance of every entry of a report, the largest one."""
        return self.variance(randomiser)


# Categories.


@dataclass(frozen=True)
class Indicators:
    """Indicators of the categories of a row, one feature after the other.

    Parameters
    ----------
    sizes : tuple of int
        Number of categories of every feature.
    name : str, default="categories"
        What they are.
    """

    sizes: tuple[int, ...]
    name: str = "categories"

    def vectors(self, chunk):
        """Return the indicators of a chunk of category positions; zeros without a category."""
        codes = chunk.X
        blocks = [codes[:, [j]] == np.arange(k) for j, k in enumerate(self.sizes)]
        return np.concatenate(blocks, axis=1).astype(np.float64)


@dataclass(frozen=True, eq=False)
class CategoryDomain:
    """Rows with one of the public categories of each feature, or none.

    Parameters
    ----------
    categories : list of ndarray
        Categories of every feature, from `check_categories`.
    """

    categories: Any

    sums, labelled = CategoryCounts, False

    def plain(self):
        """Return the public parameters as plain data."""
        return {"categories": [own.tolist() for own in self.categories]}

    @classmethod
    def of_plain(cls, categories):
        """Return the domain of public parameters, or raise a ValueError."""
        return cls(check_categories(categories, len(categories)))

    @property
    def n_features(self):
        """Number of entries of a row."""
        return len(self.categories)

    @property
    def sizes(self):
        """Number of categories of every feature, a tuple."""
        return tuple(map(len, self.categories))

    @property
    def vectors(self):
        """Vectors of the rows."""
        return Indicators(self.sizes)

    def admit(self, X):
        """Return the places of private values among the categories."""
        return BoxRows(category_places(X, self.categories), None)

    def original(self, reports):
        """Return reports unchanged: 1 for every named category."""
        return reports


# Gradients of linear models at a public point.


@dataclass(frozen=True, eq=False)
class GradientVectors:
    """Gradient of every row's loss, in units of the longest one.

    Parameters
    ----------
    coef : ndarray of shape (n_coefs,) or (n_outputs, n_coefs)
        Point of the gradients; an intercept comes last.
    loss : LogisticLoss or SoftmaxLoss
        Pointwise loss.
    longest : float
        Bound on the norm of a gradient: the bound on the residual times the bound on a row.

    Notes
    -----
    The gradient of a row is the outer product of its residual and the row, intercept included;
    several outputs are one vector, reported once. The penalty is public and is not included.
    """

    coef: Any
    loss: Any
    longest: float

    @property
    def name(self):
        """Name of the reported vectors."""
        return f"gradients of {type(self.loss).__name__}"

    def vectors(self, chunk):
        """Return the gradients of a chunk of `LinearRows`, zeros for null rows."""
        chunk = chunk.widened()
        residual = self.loss.residual(chunk.predict(self.coef), chunk.target)
        residual[np.isinf(chunk.norm)] = 0.0
        residual /= self.longest
        return rows_times(residual, chunk)


def rows_times(factors, chunk):
    """Return, for every row, its factor or factors times the row, as one vector."""
    rows = chunk.explicit()
    rows = rows.toarray() if sparse.issparse(rows) else rows
    # whether a product underflows depends on the data: nobody is to be told
    with np.errstate(under="ignore"):
        if factors.ndim == 1:
            rows *= factors[:, None]
            return rows
        return (factors[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)


@dataclass(frozen=True, eq=False)
class GradientDomain:
    """Rows with labels, which report the gradient of their loss at a public point.

    Parameters
    ----------
    coef : ndarray of shape (n_coefs,) or (n_classes, n_coefs)
        The point, for rows in units of `radius`; the intercept, if there is one, comes last.
    classes : ndarray of shape (n_classes,)
        Public label set, sorted.
    radius : float
        Public bound on the norms of rows.
    intercept : float
        Constant feature of every row; 0 for none.
    """

    coef: Any
    classes: Any
    radius: float
    intercept: float

    sums, labelled = MeanSums, True

    def plain(self):
        """Return the public parameters as plain data."""
        return {
            "coef": self.coef.tolist(),
            "classes": self.classes.tolist(),
            "data_norm": self.radius,
            "intercept": self.intercept,
        }

    @classmethod
    def of_plain(cls, coef, classes, data_norm, intercept):
        """Return the domain of public parameters, or raise a ValueError."""
        labels, coef = np.array(classes), np.array(coef, dtype=np.float64)
        resolve_classes(labels, labels)
        made = cls(coef, labels, check_radius(data_norm), float(intercept))
        outputs = () if len(labels) == 2 else (len(labels),)
        if coef.shape[:-1] != outputs or not np.isfinite(coef).all() or made.n_features < 1:
            raise ValueError("coef must be finite, a row for every class of more than two.")
        if not 0.0 <= made.intercept <= 1e50:
            raise ValueError(f"intercept must be from 0 to 1e50; got {intercept!r}.")
        return made

    @property
    def n_features(self):
        """Number of entries of a row."""
        return self.coef.shape[-1] - (self.intercept > 0.0)

    @cached_property
    def loss(self):
        """Pointwise loss."""
        return LogisticLoss() if len(self.classes) == 2 else SoftmaxLoss(len(self.classes))

    @property
    def longest(self):
        """Bound on the norm of a gradient."""
        return self.loss.lipschitz * math.hypot(1.0, self.intercept)

    @property
    def vectors(self):
        """Vectors of the rows."""
        return GradientVectors(self.coef, self.loss, self.longest)

    def admit(self, X, y):
        """Return private rows in the unit ball, with their labels."""
        _, codes, outside, _ = resolve_classes(y, self.classes)
        target, ball = self.loss.encode(codes), L2Ball(self.radius)
        return LinearRows(X, target, outside, ball, self.intercept, effective_n_threads())

    def original(self, reports):
        """Return reports in the units of gradients."""
        return reports * self.longest

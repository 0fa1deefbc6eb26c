# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Transformers with public parameters, which learn nothing and are free."""

import math
from copy import copy
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.kernel_approximation import RBFSampler
from sklearn.utils.validation import check_is_fitted

from skdp._export import TwinMixin, bounded_scaler, fourier_features, row_clipper
from skdp._rows.base import (
    bounds_of,
    check_bounds,
    check_radius,
    empty_rows,
    row_major,
    row_norms,
    tame,
)
from skdp._rows.streams import RowStream
from skdp._sklearn import (
    SHARED_CONSTRAINTS,
    Interval,
    check_feature_names_in,
    fit_context,
    validate_private_data,
)
from skdp._typing import ArrayLike, Bounds, MatrixLike
from skdp.preprocessing._base import checked_rows


class RowwiseTransformer(TwinMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer that maps every row on its own, by public constants.

    Subclasses implement ``_transform(X)`` and may refine ``_accepts_sparse``.
    """

    _parameter_constraints: dict = {}

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Check parameters and remember the number and names of the features.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Only its shape is used. Of a stream the first rows are read.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The transformer.
        """
        formats = self._sparse_formats()
        X = validate_private_data(self, X, streams="first", accept_sparse=formats)
        self._constants(X.shape[1])
        return self

    def transform(self, X: MatrixLike) -> Any:
        """Transform every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Rows; never changed.

        Returns
        -------
        X_transformed : {ndarray, sparse matrix} or RowStream of shape (n_samples, n_features)
            In the floating-point type of X.
        """
        self._validate_params()
        formats = self._sparse_formats()
        if isinstance(X, RowStream):
            X, n_features = checked_rows(self, X, formats)
            self._constants(n_features)
            # of a copy: what is read later must not depend on parameters that are set later
            return X.map(copy(self)._transform)
        return self._transform(validate_private_data(self, X, accept_sparse=formats, reset=False))

    def _sparse_formats(self):
        return ["csr", "csc"] if self._accepts_sparse() else False

    def _accepts_sparse(self):
        return True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse()
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class BoundedScaler(RowwiseTransformer):
    """Clip features to public bounds and map the bounds to a range.

    Like ``MinMaxScaler``, but with public bounds: from a codebook, a legal limit, the range of a
    sensor. It learns nothing from the data, so it costs no privacy.

    Parameters
    ----------
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=(0.0, 1.0)
        Public bounds: a pair (lower, upper) of numbers, or of arrays of shape (n_features,); or a
        pair for every feature, in order or by name, as ``{"age": (18, 100), "hours": (0, 99)}``.
        For two features, two pairs that could also be two vectors are refused; use a dict.
    feature_range : tuple (low, high), default=(-1.0, 1.0)
        Range that the bounds are mapped to.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    NormClipper : Clip rows to a public norm.
    sklearn.preprocessing.MinMaxScaler : Learns the bounds from the data, which is not private.

    Notes
    -----
    d features in [-1, 1] have rows of norm up to ``sqrt(d)``; give a private estimator
    that follows a `data_norm` to match. Sparse input is accepted if zero is mapped to
    zero, for example with ``bounds=(0, b)`` and ``feature_range=(0, 1)``.

    Examples
    --------
    >>> from skdp.preprocessing import BoundedScaler
    >>> BoundedScaler(bounds=[(0, 100), (0, 1)]).fit_transform([[25, 0.5], [250, 1]])
    array([[-0.5,  0. ],
           [ 1. ,  1. ]])
    """

    _parameter_constraints = {
        "bounds": [tuple, list, dict, np.ndarray],
        "feature_range": [tuple, list],
    }

    def __init__(
        self,
        bounds: Bounds = (0.0, 1.0),
        feature_range: tuple[float, float] | list[float] = (-1.0, 1.0),
    ) -> None:
        self.bounds = bounds
        self.feature_range = feature_range

    def _constants(self, n_features):
        lower, upper = bounds_of(self, n_features)
        (low,), (high,) = check_bounds(self.feature_range, 1, name="feature_range")
        return lower, upper, low, high

    def _twin(self):
        check_is_fitted(self, "n_features_in_")
        return bounded_scaler(*self._constants(self.n_features_in_))

    def _accepts_sparse(self):
        try:
            named = isinstance(self.bounds, dict)
            given = list(self.bounds.values()) if named else self.bounds
            low, side = float(self.feature_range[0]), np.asarray(given[0], dtype=float)
            if len(given) != 2 or np.any(side != 0):
                # no vector of zeros, so pairs, if bounds at all
                side = np.asarray(given, dtype=float)[:, 0]
        except (TypeError, ValueError, IndexError):
            return False
        return bool(np.all(side == 0) and low == 0)

    def _transform(self, X):
        lower, upper, low, high = self._constants(X.shape[1])
        if sparse.issparse(X):
            X = X.copy()
            # clipping is no linear map: what is stored in parts is clipped as a whole
            # in an order that depends on no other row (or column, of CSC)
            X.has_sorted_indices = False
            X.sum_duplicates()
            columns = (
                X.tocoo().col
                if X.format == "csr"
                else np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
            )
            top = upper[columns]
            X.data = (np.clip(X.data, 0.0, top) / top * high).astype(X.dtype)
            return X
        # convex combination of the ends: exact at both, and it cannot overflow
        share = (np.clip(X, lower, upper) - lower) / (upper - lower)
        return (low * (1 - share) + high * share).astype(X.dtype, copy=False)


class NormClipper(RowwiseTransformer):
    """Scale rows that are longer than a public norm down to it.

    Shorter rows do not change. It learns nothing from the data, so it costs no privacy.

    Parameters
    ----------
    norm : float, default=1.0
        Public Euclidean norm, in [1e-100, 1e100].

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    BoundedScaler : Scale features by public bounds.
    sklearn.preprocessing.Normalizer : Scale all rows to unit norm, short ones too.

    Notes
    -----
    Private estimators clip rows to `data_norm` themselves; this transformer clips before another
    step.

    Examples
    --------
    >>> from skdp.preprocessing import NormClipper
    >>> NormClipper(norm=1.0).fit_transform([[3.0, 4.0], [0.3, 0.4]])
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """

    _parameter_constraints = {"norm": SHARED_CONSTRAINTS["data_norm"]}

    def __init__(self, norm: float = 1.0) -> None:
        self.norm = norm

    def _constants(self, n_features):
        return check_radius(self.norm, "norm")

    def _twin(self):
        check_is_fitted(self, "n_features_in_")
        return row_clipper(self.n_features_in_, self._constants(self.n_features_in_))

    def _transform(self, X):
        norm = self._constants(X.shape[1])
        rows, _ = tame(X.tocsr() if sparse.issparse(X) else X)
        factor = norm / np.maximum(row_norms(rows), norm)
        if not sparse.issparse(X):
            return (rows * factor[:, None]).astype(X.dtype, copy=False)
        data = rows.data * np.repeat(factor, np.diff(rows.indptr))
        parts = (data.astype(X.dtype), rows.indices, rows.indptr)
        return type(X.tocsr())(parts, shape=X.shape, copy=True).asformat(X.format)


#: widths of a kernel, in units of 1 / n_features, where none are given
_GAMMAS = (1 / 16, 1 / 4, 1.0)
# angles that an entry may make: roundings of larger ones would be seen in cosines
_LARGEST_ANGLE = 100.0


def fourier_frequencies(
    n_features: int, n_components: int, gamma: float | ArrayLike | None, seed: int
) -> NDArray[np.float64]:
    """Return the frequencies of random Fourier features, public numbers.

    Parameters
    ----------
    n_features, n_components : int
        Numbers of columns, and of features.
    gamma : float, array-like of shape (n_scales,) or None
        Parameters of the kernels, in turn; None for those of `RandomFourierFeatures`.
    seed : int
        Public.

    Returns
    -------
    frequencies : ndarray of shape (n_components // 2, n_features)
        Normal, of variance ``2 * gamma``.
    """
    widths = np.divide(_GAMMAS, n_features) if gamma is None else np.atleast_1d(gamma)
    n_waves = n_components // 2
    # public numbers from a public seed: no module of ours but that of the noise draws any
    sampler = RBFSampler(n_components=max(1, n_waves), random_state=seed)
    drawn = sampler.fit(np.zeros((1, n_features))).random_weights_.T[:n_waves]
    return drawn * np.sqrt(np.resize(widths, n_waves))[:, None]


def reach_of(frequencies: NDArray[np.float64]) -> float:
    """Return the magnitude that entries of rows count as at most."""
    return _LARGEST_ANGLE / float(np.abs(frequencies).max(initial=1e-100))


def fourier_rows(
    X: NDArray[Any], frequencies: NDArray[np.float64], odd: int = 0
) -> NDArray[np.float64]:
    """Return cosines and sines of the angles of rows, and a constant if `odd`; of norm 1.

    Every row is mapped on its own, to the last bit: no product of matrices, which may round by the
    place of a row.
    """
    reach, n_waves = reach_of(frequencies), len(frequencies)
    mapped = np.empty((len(X), 2 * n_waves + odd))
    angles = np.vecdot(np.clip(row_major(X), -reach, reach)[:, None], frequencies)
    np.cos(angles, out=mapped[:, :n_waves])
    np.sin(angles, out=mapped[:, n_waves : 2 * n_waves])
    mapped[:, 2 * n_waves :] = math.sqrt(0.5)
    mapped *= math.sqrt(2 / mapped.shape[1])
    return mapped


def triangles(X: NDArray[Any], knots: NDArray[Any]) -> NDArray[np.float64]:
    """Return piecewise linear functions of every entry: each is 1 at one knot, and 0 at others.

    They are in [0, 1] and add up to 1, so their squares to at most 1. Every operation is
    elementwise.

    Parameters
    ----------
    X : ndarray
        Numbers; beyond the first and the last knot they count as these.
    knots : ndarray of shape (n_knots,)
        Increasing.

    Returns
    -------
    hats : ndarray of shape (*X.shape, n_knots)
    """
    inside = np.clip(X, knots[0], knots[-1])
    hats = empty_rows((*X.shape, len(knots)))
    hats[:] = 1.0
    for j, (low, high) in enumerate(pairwise(knots)):
        share = (inside - low) / (high - low)
        np.minimum(hats[..., j], 1 - share, out=hats[..., j])
        np.minimum(hats[..., j + 1], share, out=hats[..., j + 1])
    return np.maximum(hats, 0.0, out=hats)


class RandomFourierFeatures(RowwiseTransformer):
    """Map rows to random Fourier features, in which a linear model is a kernel machine.

    Cosines and sines of ``w @ x`` for random frequencies w: the product of two mapped rows is
    about the mean of ``exp(-gamma * |x - z|^2)`` over the parameters `gamma`. Frequencies are
    public, and drawn from a public seed. The map learns nothing from the data, so it costs no
    privacy. Mapped rows have norm 1: the following private estimator takes ``data_norm=1``, and
    clips none.

    Parameters
    ----------
    gamma : float or array-like of shape (n_scales,), default=None
        Parameters of the kernels, positive and public; several share the features. None is for
        standardised columns: 1/16, 1/4 and 1 over the number of features.
    n_components : int, default=100
        Number of features: cosines, as many sines, and a constant if the number is odd.
    random_state : int, default=0
        Public seed of the frequencies. It is independent of the noise of any fit.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    DPKernelClassifier : Scales, this map and a linear model within one budget.
    sklearn.kernel_approximation.RBFSampler : Cosines with random phases, whose rows are of norms
        between 0 and sqrt(2).

    Notes
    -----
    The squares of a cosine and of its sine add up to 1, for every row. Columns should have
    comparable units: use a `BoundedScaler` or a `DPStandardScaler` first. Angles are limited to
    100.

    References
    ----------
    .. [1] A. Rahimi and B. Recht, "Random features for large-scale kernel machines", NIPS 2007.
    .. [2] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk
       minimization", JMLR, 2011, Section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import RandomFourierFeatures
    >>> waves = RandomFourierFeatures(gamma=0.5, n_components=2000)
    >>> mapped = waves.fit_transform([[0.0, 0.0], [1.0, 1.0]])
    >>> np.linalg.norm(mapped, axis=1)
    array([1., 1.])
    >>> bool(abs(mapped[0] @ mapped[1] - np.exp(-0.5 * 2)) < 0.05)
    True
    """

    _parameter_constraints = {
        "gamma": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "random_state": [Interval(Integral, 0, 2**32 - 1, closed="both")],
    }

    def __init__(
        self,
        gamma: float | ArrayLike | None = None,
        n_components: int = 100,
        random_state: int = 0,
    ) -> None:
        self.gamma = gamma
        self.n_components = n_components
        self.random_state = random_state

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return names of the features: the class in small letters, and a number.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Only checked, if given: the names of the columns of `fit`.

        Returns
        -------
        names : ndarray of shape (n_components,), dtype object
            As those of ``RBFSampler``: ``randomfourierfeatures0`` and so on.
        """
        check_is_fitted(self, "n_features_in_")
        check_feature_names_in(self, input_features)
        name = type(self).__name__.lower()
        return np.asarray([f"{name}{i}" for i in range(self.n_components)], dtype=object)

    def _constants(self, n_features):
        check_gamma(self.gamma)
        return fourier_frequencies(n_features, self.n_components, self.gamma, self.random_state)

    def _accepts_sparse(self):
        return False

    def _twin(self):
        check_is_fitted(self, "n_features_in_")
        frequencies = self._constants(self.n_features_in_)
        return fourier_features(frequencies, reach_of(frequencies), self.n_components % 2)

    def _transform(self, X):
        frequencies = self._constants(X.shape[1])
        mapped = fourier_rows(X, frequencies, self.n_components % 2)
        return mapped.astype(X.dtype, copy=False)


def check_gamma(gamma: float | ArrayLike | None) -> None:
    """Raise a ValueError unless parameters of kernels are positive, finite numbers, or None."""
    try:
        widths = np.ones(1) if gamma is None else np.atleast_1d(np.asarray(gamma, dtype=float))
    except (TypeError, ValueError):
        widths = np.empty(0)
    if widths.ndim != 1 or not widths.size or not ((widths > 0) & (widths <= 1e100)).all():
        raise ValueError(
            "gamma must be None, a number in (0, 1e100], or an array of such numbers; "
            f"got {gamma!r}."
        )

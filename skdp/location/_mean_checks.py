# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which parameters and rows the mechanisms of the mean go with."""

from skdp._sklearn import is_sparse
from skdp._solvers.mean import MEANS

#: one release, in a ball or a box
ONE_RELEASE = ("gaussian", "laplace")
MECHANISMS = (*MEANS, "laplace")
# A centre other than the origin would make sparse rows dense.
_SPARSE = (*ONE_RELEASE, "clipped")


def takes_sparse(mechanism, bounds):
    """Return whether rows may be sparse."""
    return bounds is None and mechanism in _SPARSE


def check_mean(X, mechanism, bounds):
    """Raise if the bounds, or the format of the rows, do not go with the mechanism.

    Parameters
    ----------
    X : {array-like, sparse matrix} or RowStream
        Private rows; only their format is looked at. That of a stream is known once it was
        validated.
    mechanism : str
        One of `MECHANISMS`.
    bounds : tuple or None
        As the user gave them.

    Raises
    ------
    ValueError
        If bounds were given to a mechanism that starts from a ball.
    TypeError
        If the rows are sparse where they may not be.
    """
    if bounds is not None and mechanism not in ONE_RELEASE:
        raise ValueError(
            "bounds must be None unless mechanism is 'gaussian' or 'laplace': "
            f"mechanism={mechanism!r} starts from the ball of radius data_norm; got "
            f"bounds={bounds!r}."
        )
    if is_sparse(X) and not takes_sparse(mechanism, bounds):
        raise TypeError(
            f"Sparse rows need bounds=None and a mechanism among {_SPARSE}; got "
            f"mechanism={mechanism!r}. Use X.toarray() if the rows fit in memory."
        )

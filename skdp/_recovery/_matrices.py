# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which measurement matrix there is for a shape."""

from skdp._recovery._hadamard import HadamardMeasurement
from skdp._recovery._measurements import GaussianMeasurement, SparseSignMeasurement

_KINDS = {
    "gaussian": GaussianMeasurement,
    "sparse-sign": SparseSignMeasurement,
    "hadamard": HadamardMeasurement,
}
MEASUREMENTS = tuple(_KINDS)
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

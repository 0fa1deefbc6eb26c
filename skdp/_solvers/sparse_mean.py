# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the private means of sparse rows share: the public facts, and what a plan returns."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

#: what the parameters that are a choice may be, the default first
CHOICES = {
    "projection": ("ksupport", "l1l2", "l1"),
    "measurement": ("auto", "gaussian", "sparse-sign", "hadamard"),
    "recovery": ("auto", "constrained", "denoising", "equality"),
    "solver": ("auto", "cvxpy", "first-order"),
}


@dataclass(frozen=True)
class SparseMeanProblem:
    """Public facts of a private mean of rows in the unit ball.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data; public.
    epsilon, delta : float
        Budget.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    sparsity : int or None, default=None
        Rows have at most this many non-zero entries, by how they are admitted; more than
        `n_features` means that many. None for any number.
    nonnegative : bool, default=False
        Whether no entry of a row is negative, by how they are admitted.
    projection : {"ksupport", "l1l2", "l1"}, default="ksupport"
        Set that a released mean is projected onto.
    measurement, n_measurements, recovery, solver : str, int or None, str, str
        Parameters of the compressed-sensing mechanism.

    Raises
    ------
    ValueError
        If a parameter that all mechanisms share is unusable.
    """

    n_rows: int
    n_features: int
    epsilon: float
    delta: float
    adjacency: str
    sparsity: int | None = None
    nonnegative: bool = False
    projection: str = "ksupport"
    measurement: str = "auto"
    n_measurements: int | None = None
    recovery: str = "auto"
    solver: str = "auto"

    def __post_init__(self):
        for name in ("sparsity", "n_measurements"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, Integral)):
                raise ValueError(f"{name} must be an integer, or None; got {value!r}.")
        if self.sparsity is not None:
            if self.sparsity < 1:
                raise ValueError(f"sparsity must be at least 1, or None; got {self.sparsity!r}.")
            object.__setattr__(self, "sparsity", min(int(self.sparsity), self.n_features))
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}; got {getattr(self, name)!r}.")

    @property
    def is_pure(self):
        """Whether the budget is purely epsilon-DP."""
        return self.delta == 0


@dataclass(frozen=True)
class SparseEstimate:
    """A released mean of rows in the unit ball.

    Parameters
    ----------
    values : ndarray of shape (n_features,), or tuple (columns, values)
        The mean; as a pair, its non-zero entries and the sorted columns they stand in.
    error : float or None, default=None
        Expected Euclidean distance to the mean of the admitted rows, from released and
        public numbers.
    threshold : float or None, default=None
        Magnitude that a noisy entry had to exceed, if there was one.
    """

    values: Any
    error: float | None = None
    threshold: float | None = None

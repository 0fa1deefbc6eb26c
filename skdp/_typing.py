# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Types of parameters that several public signatures share."""

import builtins
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy.typing as npt
from numpy.typing import NDArray

from skdp.privacy.books.budget import PrivacyBudget

if TYPE_CHECKING:
    #: What numpy makes an array of.
    ArrayLike: TypeAlias = npt.ArrayLike
    #: Lower and upper ends, one for all features or one for each; or a pair for every feature.
    Bounds: TypeAlias = tuple[ArrayLike, ArrayLike] | list[Any] | dict[Any, Any] | NDArray[Any]
else:
    # signatures show these names, as those of types of Python, and not what they stand for
    ArrayLike = type("ArrayLike", (), {"__module__": "builtins"})
    Bounds = type("Bounds", (), {"__module__": "builtins"})

#: Rows: arrays, data frames, sparse matrices, and what is larger than memory. What has rows is
#: found out at run time; no checker could tell.
MatrixLike: TypeAlias = Any
#: One value for each row, in the same formats.
VectorLike: TypeAlias = Any
#: Whatever has the methods of scikit-learn's estimators, which are not typed.
Estimator: TypeAlias = Any

#: More can be audited than estimators here promise.
Adjacency: TypeAlias = Literal["replace-one", "zero-out", "add-remove"]
Budget: TypeAlias = PrivacyBudget | None


class SeededState(Protocol):
    """An instance of numpy's RandomState, which one module alone may name."""

    def bytes(self, length: int) -> builtins.bytes:
        """Return random bytes."""

    def seed(self) -> None:
        """Start anew. numpy's generators lack it, and are refused."""


SeededState.__module__ = "builtins"


Seed: TypeAlias = int | SeededState | None

ClassifierMechanism: TypeAlias = Literal["auto", "gradient", "objective", "output", "exponential"]

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What is made of the noisy mean of sparse gradients: shrunken, projected, or recovered.

Every oracle is a function of released numbers, never sees a row, and returns a vector of
bounded norm: a level that is seldom drawn is multiplied by a large number.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri

from skdp._domains import ball_constraint
from skdp._recovery import (
    measurement_matrix,
    project_ksupport,
    recover,
    soft_threshold,
    sure_threshold,
)

# share of the gradients that are clipped although their measurements are typical
_CLIPPED = 1e-3
# fewer measurements than this recover nothing
_FEWEST = 16


@dataclass(frozen=True)
class SoftThresholdOracle:
    """The soft threshold of least estimated risk, then the ball.

    Parameters
    ----------
    radius : float
        Bound on the norm of a gradient.
    shape : tuple of int
        Shape of the coefficients.
    intercept : bool
        Whether the last coefficient of every output is an intercept, whose gradient is not
        sparse: it is left as it is.
    """

    radius: float
    shape: tuple
    intercept: bool
    #: sums of gradients themselves are released
    measurement = None

    def __call__(self, mean, scale):
        """Return a clean gradient, flattened, from a noisy one and the noise of an entry."""
        clean = np.array(mean).reshape(self.shape)
        body = clean[..., :-1] if self.intercept else clean
        if body.size:
            flat = body.ravel()
            threshold, _ = sure_threshold(flat, scale)
            body[...] = soft_threshold(flat, threshold).reshape(body.shape)
        return ball_constraint(clean.ravel(), self.radius)


@dataclass(frozen=True)
class ProjectionOracle:
    """The nearest point among averages of gradients that have few non-zeros and are short.

    Parameters
    ----------
    radius, n_nonzeros : float, int
        Bounds on the norm of a row's gradient, and on the number of its non-zeros.
    """

    radius: float
    n_nonzeros: int
    #: sums of gradients themselves are released
    measurement = None

    def __call__(self, mean, scale):
        """Return a clean gradient, flattened, from a noisy one."""
        return ball_constraint(project_ksupport(mean, self.n_nonzeros, self.radius), self.radius)


@dataclass(frozen=True)
class SketchOracle:
    """Recovery from measurements: least squares over the l1 ball, one output at a time.

    Parameters
    ----------
    radius, n_nonzeros : float, int
        Bounds on the norm of a row's gradient, and on the number of its non-zeros in one
        output.
    measurement : Measurement
        Public matrix of shape (n_measurements, n_coefs).
    """

    radius: float
    n_nonzeros: int
    measurement: Any

    @property
    def longest(self):
        """Norm to which the measurements of a row's gradient are clipped."""
        typical = math.sqrt(chdtri(self.measurement.shape[0], _CLIPPED) / self.measurement.shape[0])
        stretch = min(math.sqrt(self.n_nonzeros), typical, self.measurement.stretch)
        return self.radius * float(stretch)

    def __call__(self, mean, scale):
        """Return a gradient, flattened, from noisy measurements of every output."""
        found = [
            recover(
                self.measurement,
                part,
                "constrained",
                radius=self.radius * math.sqrt(self.n_nonzeros),
                solver="first-order",
            )
            for part in mean.reshape(-1, self.measurement.shape[0])
        ]
        return ball_constraint(np.concatenate(found), self.radius)


def make_oracle(name, *, radius, shape, intercept, sparsity, signal):
    """Return an oracle.

    Parameters
    ----------
    name : {"soft-threshold", "projection", "sketch"}
        Which.
    radius, shape, intercept : float, tuple of int, bool
        Bound on a row's gradient, shape of the coefficients, and whether the last one is an
        intercept.
    sparsity : int or None
        Number of features of a row that are not zero.
    signal : float
        Norm of a row's gradient times the number of rows, over the noise of an entry of the
        sum: how many measurements are worth their noise.

    Returns
    -------
    oracle : callable
        Takes the noisy mean, and its noise.

    Raises
    ------
    ValueError
        If the oracle rests on a sparsity and there is none.
    """
    if name == "soft-threshold":
        return SoftThresholdOracle(radius, shape, intercept)
    if sparsity is None:
        raise ValueError(
            f"sparsity must be a number for oracle={name!r}, which looks for averages of sparse "
            "gradients; got None. oracle='soft-threshold' needs none."
        )
    n_nonzeros = min(sparsity + intercept, shape[-1])
    n_outputs = math.prod(shape[:-1])
    if name == "projection":
        return ProjectionOracle(radius, n_outputs * n_nonzeros)
    wanted = signal * math.sqrt(2 * n_nonzeros * max(1.0, math.log(shape[-1] / n_nonzeros)))
    m = int(min(shape[-1], max(_FEWEST, wanted)))
    return SketchOracle(radius, n_nonzeros, measurement_matrix("auto", m, shape[-1]))

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Queries, laws and noise: statements, prices, and addition of noise.

A law is given the price of one release. It turns the sensitivity stated by a query into a `Noise`.
The ledger records this object, and the noise is drawn from the same object: no second number can
reach the accountant. The price of additive noise is computed here again, from its scale and the
sensitivity (`Noise.actual`), so a wrong law is detected. The laws are in ``privacy/laws``.

Numerics. With g a public power of two, a statistic x is released as
``g * (rint(x / g) + rint(N / g))``, N continuous noise, all in exact integer
arithmetic. Since rint(x/g) is an integer this is rint((g * rint(x/g) + N) / g)
* g: a function of the *continuous* mechanism applied to x rounded to the grid, so
the continuous privacy analysis holds, word for word. Rounding moves each of k
coordinates by at most g/2 on either data set, hence the sensitivity charged is
S + g * sqrt(k) in l2, S + g * k in l1. The last digits of the output say nothing.

Float evaluation. A query is evaluated in floating point; `FLOAT_SLACK` is the
relative error in the *difference* of two neighbouring evaluations that is charged
on top (see skdp/_rows/base.py for why sums stay within it).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.kernel.accounting import BudgetError
from skdp.privacy.kernel.batches import Sampling
from skdp.privacy.kernel.samplers import Bits, Integers, rounded_gaussian, rounded_laplace

Values = NDArray[np.float64]
_names = cache(lambda kind: tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ())

FLOAT_SLACK, GROUP_SLACK = 1e-6, 8e-12


def plain_floats(stated: Any, *names: str) -> None:
    """Convert the numbers stated by a query to floats, for noise and price without rounding."""
    for name in names:
        object.__setattr__(stated, name, float(getattr(stated, name)))


@dataclass(frozen=True)
class Sensitivity:
    """Largest change of a statistic by one row, stated by the query.

    Parameters
    ----------
    l1, l2 : float
        Bounds on the l1 and l2 distance of the statistic on any two neighbouring
        data sets; `inf` where no bound is stated.
    bound : float
        Bound on the magnitude of every coordinate on any data set.
    theorem : str
        Why.
    spread : float, default=inf
        For a query that is drawn by the exponential mechanism: bound on the largest
        minus the smallest change of its score, over all outputs, between neighbours.
    """

    l1: float
    l2: float
    bound: float
    theorem: str
    spread: float = math.inf

    def __post_init__(self) -> None:
        plain_floats(self, "l1", "l2", "bound", "spread")


@dataclass(frozen=True)
class Price:
    """Price of one release, in the form for addition.

    Parameters
    ----------
    mu : float, default=0.0
        Gaussian-DP parameter; 0 if the price is a pair.
    epsilon, delta : float, default=0.0
        The pair, if `mu` is 0.
    sampling : Sampling, default=None
        How the batch was drawn that was read. If it is up to chance who is in, `mu` is the
        parameter without that, and both state the dominating pair of a sampled Gaussian.
    bounded_range : bool, default=False
        Whether the privacy loss stays within an interval of length `epsilon`, and not only of
        twice that: it then costs a quarter of the rho in zCDP.
    """

    mu: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0
    sampling: Sampling | None = None
    bounded_range: bool = False

    @property
    def by_chance(self) -> bool:
        """Whether the rows read are random."""
        return self.sampling is not None and not self.sampling.reads_all

    def covers(self, other: "Price") -> bool:
        """Return whether another price is of the same kind, and no higher."""
        kind = (self.sampling, self.bounded_range, self.mu > 0)
        parts = ((self.mu, other.mu), (self.epsilon, other.epsilon), (self.delta, other.delta))
        return kind == (other.sampling, other.bounded_range, other.mu > 0) and all(
            actual <= declared for declared, actual in parts
        )


@dataclass(frozen=True)
class Noise:
    """Everything public about how one release is randomised.

    This class is additive noise; how else a release can be random is said by laws, which
    derive from it and price themselves in `actual`.

    Parameters
    ----------
    law, scale : {"gaussian", "laplace", "k-norm", "exponential"}, float
        Standard deviation (Gaussian) or scale (Laplace) of every coordinate; scale s of
        the density ``exp(-|b|/s)`` of the whole vector (K-norm); temperature
        (exponential mechanism).
    grid : float
        Step of the public grid that the release lies on, a power of two.
    sensitivity : float
        Sensitivity that is paid for: the query's, plus rounding and float slack.
    bound : float
        The statistic is clamped to [-bound, bound] in every coordinate.
    mu, epsilon, delta : float
        Price: a Gaussian-DP parameter, or (epsilon, delta) with mu = 0; delta is 0 but
        for objective perturbation and for a release with a threshold.
    sampling : Sampling or None
        How the batch of rows was drawn; None for all rows. With a batch, `mu` is the
        parameter that the release would have if all rows were read, and the price less.
    threshold, two_sided : float or None, bool
        Only noisy values above the threshold are released, or beyond it on either side;
        None for all.
    """

    law: str
    scale: float
    grid: float
    sensitivity: float
    bound: float
    mu: float
    epsilon: float
    delta: float = 0.0
    sampling: Sampling | None = None
    threshold: float | None = None
    two_sided: bool = False

    @property
    def by_chance(self) -> bool:
        """Whether the rows read are random."""
        return self.sampling is not None and not self.sampling.reads_all

    @cached_property
    def price(self) -> Price:
        """The price that is declared, and charged."""
        return Price(self.mu, self.epsilon, self.delta, self.sampling)

    def actual(self, stated: float, size: int) -> Price:
        """Return the price of a release, from the stated sensitivity and the drawn noise."""
        if self.law == "gaussian" and self.threshold is None:
            return Price(mu=self.loudness(stated, math.sqrt(size)), sampling=self.sampling)
        if self.law == "laplace" and self.threshold is None:
            return Price(epsilon=self.loudness(stated, size), sampling=self.sampling)
        raise BudgetError(f"no price is known for a release by the law {self.law!r}.")

    def loudness(self, stated: float, rounding: float) -> float:
        """Return sensitivity over scale, with float slack, and `rounding` grid steps."""
        paid = stated * (1 + FLOAT_SLACK) + self.grid * rounding
        return paid / self.scale if self.is_usable else math.inf

    @property
    def is_usable(self) -> bool:
        """Whether scale and grid are positive and finite."""
        return 0 < self.scale < math.inf and 0 < self.grid < math.inf

    def rounded(self, size: int, bits: Bits) -> Integers:
        """Draw the noise of a vector, in whole grid steps."""
        return _SAMPLERS[self.law](self.scale / self.grid, size, bits)


_SAMPLERS: dict[str, Callable[[float, int, Bits], Integers]] = {
    "gaussian": rounded_gaussian, "laplace": rounded_laplace,
}  # fmt: skip


class Query(Protocol):
    """A statistic of the private rows. Its fields are public; the rows are an argument.

    What the law of a query needs besides, none of it ever raising because of a value:
    `evaluate(rows)`, the exact statistic, for additive noise; what other laws ask for is said
    there. `idealised` says that noise is made of floats and not exact on the grid.

    Fields must be finite; ``may_be_infinite``, a tuple on the class, names those that may be
    infinite because that means something, like "no bound is stated".
    """

    name: str  # what the statistic is, in words
    size: int  # number of coordinates

    def sensitivity(self, adjacency: str, n_rows: int) -> Any:
        """State the sensitivity under an adjacency, for a public number of rows."""


def check_fields(stated: Any, query: Any = None) -> None:
    """Raise unless the numbers of a query, and of what it holds, are finite, or may be infinite."""
    query, infinite = query or stated, getattr(stated, "may_be_infinite", ())
    for one in _names(stated.__class__):
        value = getattr(stated, one)
        for part in value if isinstance(value, tuple) else (value,):
            if _names(part.__class__):
                check_fields(part, query)
            elif not _is_finite(part, one in infinite):
                name = getattr(query, "name", type(query).__name__)
                raise ValueError(f"query {name!r} has a field {one!r} that is not finite.")


def _is_finite(value: Any, or_infinite: bool) -> bool:
    """Return whether a number, or all of an array, is finite; whatever else it is, it passes."""
    if isinstance(value, float | np.floating):
        return math.isfinite(value) or (or_infinite and not math.isnan(value))
    values = getattr(value, "data", None) if hasattr(value, "tocsr") else value
    if not (isinstance(values, np.ndarray) and values.dtype.kind == "f"):
        return True
    return bool((~np.isnan(values) if or_infinite else np.isfinite(values)).all())


class Line(NamedTuple):
    """Statement of a law about a release; see `skdp.privacy.kernel.ledger.Release`.

    `idealised` says whether its noise is made of floats; `local`, whether it is a report that
    rows make on their own, whatever the adjacency of the curator.
    """

    query: str
    size: int
    noise: Noise
    stated: float
    theorem: str
    idealised: bool = False
    local: bool = False
    hidden: bool = False
    of_reports: bool = False
    times: int = 1


class Source(Protocol):
    """Access of a law to the rows, for one charged release."""

    bits: Bits  # the source of random words
    n_rows: int  # the number of rows of the part that is read; public

    def read(self) -> Any:
        """Return the rows, a fresh batch every time; as often as was charged, and no more."""


class Law:
    """Law of a randomised release: calibration, price and draw of noise.

    A law is a class with `calibrate` and `release`; the noise returned by `calibrate` has the
    price. It is in one file with its proof.
    """

    #: how batches are drawn; None for all rows
    sampling: Sampling | None = None
    #: whether releases can be charged beforehand
    prepayable = True
    #: whether rows that were charged together may be read part by part; whether they are added up
    in_turn, adds_rows = False, True

    def calibrate(self, sensitivity: Any, size: int) -> Any:
        """Return the noise for a statistic of that sensitivity and size."""
        raise NotImplementedError

    def price(self, noise: Any) -> Price:
        """Return the price of one release with such noise."""
        declared: Price = noise.price
        return declared

    def stated(self, sensitivity: Any) -> float:
        """Return the sensitivity in the norm of the law."""
        return float(sensitivity.l2)

    def lines(self, query: Any, sensitivity: Any, noise: Any) -> Sequence[Line]:
        """Return the lines of one release for the ledger: every part with a price."""
        stated, idealised = self.stated(sensitivity), getattr(query, "idealised", False)
        return (Line(query.name, query.size, noise, stated, sensitivity.theorem, idealised),)

    def release(self, query: Any, noise: Any, source: Source) -> Any:
        """Make one release that has been charged."""
        raise NotImplementedError


def align(values: Values, noise: Noise) -> Values:
    """Return the statistic in whole grid steps, clamped to its public bound.

    Clamping has slope at most 1 and does not raise the sensitivity. A query that keeps
    its word is within the bound and never NaN, so neither changes it.
    """
    safe = np.where(np.isnan(values), 0.0, values)
    return np.rint(np.maximum(np.minimum(safe, noise.bound), -noise.bound) / noise.grid)


def add_noise(values: Values, noise: Noise, bits: Bits) -> Values:
    """Return the released statistic, multiples of the grid: noise is added only here."""
    steps = align(values, noise).astype(np.int64)
    steps += noise.rounded(len(steps), bits)
    released: Values = np.multiply(steps, noise.grid, dtype=np.float64)
    return released


def shaped(query: Any, values: Any) -> Values:
    """Return a statistic as floats, if it has the size that its query states."""
    found: Values = np.asarray(values, dtype=np.float64)
    if found.shape != (query.size,):
        raise ValueError(f"query {query.name!r} does not have the size that it states.")
    return found

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The ledger: what was released, at what price, and why that price is right.

A ledger is plain immutable data. The meaning of a field never changes between
versions; new kinds of release get new fields.
"""

import html
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from skdp.privacy._accounting import check_delta, compose_epsilon, gdp_delta, total_mu
from skdp.privacy._mechanisms import Noise

ADJACENCIES = ("replace-one", "zero-out")


@dataclass(frozen=True)
class Release:
    """One kind of release, and how many times in a row it was made.

    Parameters
    ----------
    query : str
        The statistic.
    size : int
        Number of coordinates released at once.
    adjacency : {"replace-one", "zero-out"}
        Which data sets count as neighbours; the unit of privacy is one row.
    stated_sensitivity : float
        Sensitivity of the query, in the norm that the noise needs (l2 for Gaussian,
        l1 for Laplace).
    theorem : str
        Why the sensitivity holds.
    noise : Noise
        Law, scale, grid, sensitivity paid for (rounding included) and price.
    numerics : str
        How the noise was made.
    seeded : bool
        Whether the noise can be reproduced from a `random_state`.
    count : int
        How many such releases, each with fresh noise, were made in a row.
    """

    query: str
    size: int
    adjacency: str
    stated_sensitivity: float
    theorem: str
    noise: Noise
    numerics: str
    seeded: bool
    count: int = 1

    @property
    def dp_event(self) -> Any:
        """The release as a ``dp_accounting.DpEvent``, relative to its own adjacency.

        The noise multiplier of a Gaussian event is the standard deviation over the
        actual sensitivity, so it must be composed as is: an accountant that doubles
        the sensitivity for replace-one would do so twice. A pure release of several
        coordinates stands as randomised response, the worst of its epsilon.
        """
        import dp_accounting

        event: Any
        if self.noise.mu:
            event = dp_accounting.GaussianDpEvent(1 / self.noise.mu)
        elif self.size == 1:
            event = dp_accounting.LaplaceDpEvent(1 / self.noise.epsilon)
        else:
            lie = 2 / (1 + math.exp(min(self.noise.epsilon, 700.0)))
            event = dp_accounting.RandomizedResponseDpEvent(lie, 2)
        return dp_accounting.SelfComposedDpEvent(event, self.count) if self.count > 1 else event


_COLUMNS = (
    "query", "count", "size", "sensitivity", "noise", "scale", "grid", "price", "adjacency",
    "theorem", "numerics",
)  # fmt: skip


def _row(release: Release) -> tuple[Any, ...]:
    noise = release.noise
    price = f"mu={noise.mu:.4g}" if noise.mu else f"epsilon={noise.epsilon:.4g}"
    return (
        release.query, release.count, release.size, f"{noise.sensitivity:.6g}", noise.law,
        f"{noise.scale:.6g}", f"2^{int(math.log2(noise.grid))}", price + " each",
        release.adjacency, release.theorem, release.numerics,
    )  # fmt: skip


@dataclass(frozen=True)
class Ledger:
    """Immutable list of releases made from one data set.

    Ledgers of several analyses of the same people add up with ``+``.

    Parameters
    ----------
    releases : tuple of Release
        In order.
    assumptions : tuple of str
        What was taken from the data and is assumed public.

    Examples
    --------
    >>> from skdp import DPMean
    >>> mean = DPMean(epsilon=0.5, random_state=0).fit([[0.1], [0.2], [0.3]])
    >>> (mean.ledger_ + mean.ledger_).epsilon(delta=1e-6) < 1.0
    True
    """

    releases: tuple[Release, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def adjacency(self) -> str | None:
        """The adjacency all releases share; None for an empty ledger."""
        return self.releases[0].adjacency if self.releases else None

    @property
    def seeded(self) -> bool:
        """Whether any noise can be reproduced from a `random_state`."""
        return any(release.seeded for release in self.releases)

    @property
    def mu(self) -> float:
        """Gaussian-DP parameter of all Gaussian releases together."""
        return total_mu([(r.noise.mu, r.count) for r in self.releases if r.noise.mu])

    def _pure(self) -> list[tuple[float, int]]:
        return [(r.noise.epsilon, r.count) for r in self.releases if not r.noise.mu]

    def epsilon(self, delta: float = 0.0) -> float:
        """Return the epsilon at which all releases together are (epsilon, delta)-DP.

        Parameters
        ----------
        delta : float, default=0.0
            In [0, 1).

        Returns
        -------
        epsilon : float
            In nats, rounded up; infinite for Gaussian noise at delta 0.
        """
        return compose_epsilon(self.mu, self._pure(), check_delta(delta))

    def fits(self, epsilon: float, delta: float) -> bool:
        """Return whether all releases together are (epsilon, delta)-DP."""
        if not self._pure():
            # the closed form, with no root to find: called before every release
            return gdp_delta(self.mu, epsilon) <= delta
        return self.epsilon(delta) <= epsilon

    def append(self, release: Release) -> "Ledger":
        """Return a new ledger with one more release; a repeat raises the last count."""
        if self.adjacency not in (None, release.adjacency):
            raise ValueError(
                f"a ledger has one adjacency; got a {release.adjacency!r} release for a "
                f"{self.adjacency!r} ledger. Fit all estimators with the same adjacency."
            )
        last = self.releases[-1] if self.releases else None
        if last is not None and replace(last, count=release.count) == release:
            again = replace(last, count=last.count + release.count)
            return replace(self, releases=(*self.releases[:-1], again))
        return replace(self, releases=(*self.releases, release))

    def assume(self, *assumptions: str) -> "Ledger":
        """Return a new ledger that lists further assumptions."""
        new = tuple(a for a in assumptions if a not in self.assumptions)
        return replace(self, assumptions=self.assumptions + new)

    def __add__(self, other: "Ledger") -> "Ledger":
        if not isinstance(other, Ledger):
            return NotImplemented
        total = self.assume(*other.assumptions)
        for release in other.releases:
            total = total.append(release)
        return total

    def __iter__(self) -> Iterator[Release]:
        return iter(self.releases)

    def __len__(self) -> int:
        return len(self.releases)

    @property
    def dp_event(self) -> Any:
        """All releases as one ``dp_accounting.ComposedDpEvent``."""
        import dp_accounting

        return dp_accounting.ComposedDpEvent([release.dp_event for release in self.releases])

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as nested built-in types, for JSON."""
        return asdict(self)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, one row per kind of release (needs pandas)."""
        import pandas as pd

        records = []
        for release in self.releases:
            flat = asdict(release)
            noise = flat.pop("noise")
            records.append(flat | {"noise_" + name: value for name, value in noise.items()})
        return pd.DataFrame.from_records(records)

    def __repr__(self) -> str:
        n = sum(release.count for release in self.releases)
        return f"<Ledger: {n} release{'s' * (n != 1)}>"

    def __str__(self) -> str:
        lines = [repr(self)]
        for release in self.releases:
            lines += [
                f"  {name:<12}{value}" for name, value in zip(_COLUMNS, _row(release), strict=True)
            ]
            lines.append("")
        if self.seeded:
            lines.append("  SEEDED NOISE: whoever knows random_state can remove it.")
        lines += [f"  assumed public: {assumption}" for assumption in self.assumptions]
        return "\n".join(lines).rstrip()

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(v))}</td>" for v in _row(release)) + "</tr>"
            for release in self.releases
        )
        notes = [f"Assumed public: {a}" for a in self.assumptions]
        if self.seeded:
            notes.append("Seeded noise: whoever knows random_state can remove it.")
        items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><ul>{items}</ul>"

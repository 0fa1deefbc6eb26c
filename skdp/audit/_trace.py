# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Coupled trace of a fit: recorded on one data set, replayed on a neighbour, measured.

Every number that leaves private rows is made by the `release` of a law, called by the curator
after its charge. A trace replaces this call, for its duration and in its own thread: it records
the first fit, and the second fit gets the outputs of the first one. So both make the same queries
if only released numbers determine the queries, and every release can be measured separately.
"""

import copy
import json
import math
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Literal

import numpy as np
from scipy.special import chdtr, chdtrc
from sklearn import config_context
from sklearn.base import clone

from skdp._sklearn import is_sparse
from skdp._typing import Adjacency, Estimator, MatrixLike, VectorLike
from skdp.audit._audit import fresh, per_group
from skdp.audit._pairs import (
    N_ROWS,
    NeighbourPair,
    as_arguments,
    call_with,
    check_count,
    check_neighbours,
    check_seed,
    gaussian_mu,
    known,
    ledger_of,
    made_pairs,
    pairs_among_many,
    parameters,
    resolve_adjacency,
    total_of_fit,
)
from skdp.privacy.books.spent import FitNote
from skdp.privacy.books.texts import a_kind
from skdp.privacy.kernel.batches import Sampling
from skdp.privacy.kernel.ledger import (
    SampledCost,
    compose_epsilon,
    report_epsilon,
    total_mu,
    total_rho,
)
from skdp.privacy.kernel.mechanisms import Law, Line
from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws.measures import Measured, Trial, measure
from skdp.privacy.laws.search import DeclaredTotal

#: version of what `TraceResult.to_dict` returns
SCHEMA = 1
#: chance that correct noise is called wrong
FALSE_ALARM = 1e-6
# rounding of what is compared: a price is rounded up by more than that
_HAIR = 1 + 1e-9
# of built-in pairs so many are tried again among many rows, unless one shows as much of the claim
_AGAIN, _MANY_ROWS, _TIGHT = 4, 1000, 0.9999


@dataclass(frozen=True)
class TracedRelease:
    """One release of a traced fit, declared and measured.

    Parameters
    ----------
    query, law : str, str
        Statistic, and law of its noise.
    size : int
        Number of coordinates.
    rows : str
        Rows that it reads: "all", or the sampling of batches.
    reads : int
        Number of readings: more than one for secret steps.
    sensitivity : float
        Stated sensitivity, in the metric.
    paid : float
        Sensitivity for the noise: the same, with rounding.
    distance : float
        Measured distance. NaN without a closed form.
    metric : {"l1", "l2", "spread", "log-ratio"}
        Metric of the sensitivity: a norm; the largest minus the smallest change of a score; the
        largest log-ratio of the laws of a report.
    mu, epsilon, delta : float
        Declared price of one reading: a Gaussian parameter, or a pair with mu 0.
    mu_measured, epsilon_measured : float
        Price of the distance at the declared noise; `delta` is the same.
    loss : float
        Privacy loss at the output: the log-ratio of its densities on the two data sets. NaN
        without a closed form, or if it depends on public random choices that were not kept.
    noise_level : float or None
        For redrawn additive noise: p-value of a test of correct noise. None without redrawn noise.
    first, second : tuple of float
        Statistics before noise on the two data sets; for a draw, scores of outcomes. With Poisson
        batches, statistics of the same batch without and with the row.
    hidden : bool
        Whether these are local reports with only a noisy sum released.
    copies : int, default=1
        Largest number of copies of a row among the rows read, after a draw with replacement: the
        row pays once per copy.
    """

    query: str
    law: str
    size: int
    rows: str
    reads: int
    sensitivity: float
    paid: float
    distance: float
    metric: str
    mu: float
    epsilon: float
    delta: float
    mu_measured: float
    epsilon_measured: float
    loss: float
    noise_level: float | None
    first: tuple[float, ...]
    second: tuple[float, ...]
    hidden: bool = False
    copies: int = 1

    @property
    def ratio(self) -> float:
        """Measured over declared price, for all copies of a row; NaN if not measured."""
        measured, declared = self.mu_measured, self.mu * self.copies
        if not self.mu:
            measured, declared = self.epsilon_measured, self.epsilon * self.copies
        if not declared:
            return math.inf if measured > 0 else 0.0
        return measured / declared

    @property
    def passed(self) -> bool:
        """Whether the measured distance and noise are within the declared ones."""
        quiet = self.noise_level is None or self.noise_level >= FALSE_ALARM
        far = self.distance > self.paid * self.copies * _HAIR
        return quiet and not self.ratio > _HAIR and not far


@dataclass(frozen=True, repr=False)
class TraceResult:
    """Measurements of a coupled trace, made by `trace_privacy`, to print.

    Parameters
    ----------
    estimator, pair, adjacency, unit : str
        Estimator, neighbours, and the adjacency and unit of their difference.
    releases : tuple of TracedRelease
        In order.
    violations : tuple of str
        Events that must not happen for any outputs: another order of releases, other public
        fields, other fitted attributes, releases that are not on the ledger.
    delta : float
        Delta of epsilon.
    epsilon_claimed, mu_claimed : float or None
        Price claimed by the fitted estimator; `mu_claimed` if all releases are Gaussian. None
        without a claim or without releases.
    epsilon, mu : float
        Total price of the measured distances, composed as on the ledger; `mu` is for the Gaussian
        releases that read all rows. For batches, the step with the largest distance counts for
        all.
    complete : bool
        Whether the claim is the composition of these releases. It need not be for a search, which
        may release one of its runs.
    not_covered : tuple of str, default=()
        Parts not covered by a ledger, as in `privacy_spent`. If there are any, there is no claim.
    """

    estimator: str
    pair: str
    adjacency: str
    unit: str
    releases: tuple[TracedRelease, ...]
    violations: tuple[str, ...]
    delta: float
    epsilon_claimed: float | None
    mu_claimed: float | None
    epsilon: float
    mu: float
    complete: bool
    not_covered: tuple[str, ...] = ()

    @property
    def loss(self) -> float:
        """Privacy loss of all public releases at the outputs of this trace."""
        return float(sum(r.loss for r in self.releases if not r.hidden))

    @property
    def share(self) -> float:
        """Measured fraction of the claim: of mu if it is Gaussian, otherwise of epsilon.

        If the claim is not the composition of these releases, the largest fraction of a single
        release; NaN without a claim or with unmeasured releases.
        """
        if self.unmeasured:
            return math.nan
        if not self.complete:
            found = [r.ratio for r in self.releases if not math.isnan(r.ratio)]
            return max(found, default=math.nan)
        if self.mu_claimed:
            return self.mu / self.mu_claimed
        return self.epsilon / self.epsilon_claimed if self.epsilon_claimed else math.nan

    @property
    def passed(self) -> bool | None:
        """Whether nothing contradicts the claim: control flow, every release, and the total.

        None if there is no claim, because something is not covered, and no release contradicts its
        own price.
        """
        within = not (self.complete and self.share > _HAIR)
        if not within or self.violations or not all(r.passed for r in self.releases):
            return False
        return None if self.not_covered else True

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Queries with reports without a closed form: only the proof supports their law."""
        return tuple(dict.fromkeys(r.query for r in self.releases if math.isnan(r.ratio)))

    def to_dict(self, *, inputs: bool = True) -> dict[str, Any]:
        """Return the trace as plain data, in the documented schema.

        Parameters
        ----------
        inputs : bool, default=True
            Whether to include the statistics of the two data sets, for independent measurements of
            the distance.

        Returns
        -------
        trace : dict
            Trace for `json`: infinite and missing numbers are None.
        """
        left = {"first", "second"} if not inputs else set[str]()
        releases = [
            {f.name: getattr(r, f.name) for f in fields(r) if f.name not in left}
            | {"ratio": r.ratio, "passed": r.passed}
            for r in self.releases
        ]
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "releases"}
        told = {name: getattr(self, name) for name in ("loss", "share", "passed", "unmeasured")}
        head = {"format": "skdp privacy trace", "version": SCHEMA}
        plain: dict[str, Any] = _for_json(head | own | told | {"releases": releases})
        return plain

    def to_json(self, path: str | Path, *, inputs: bool = True) -> None:
        """Write the trace to a file.

        Parameters
        ----------
        path : str or Path
            Path of the file, which is overwritten.
        inputs : bool, default=True
            As for `to_dict`.
        """
        text = json.dumps(self.to_dict(inputs=inputs), indent=1, allow_nan=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    def plot(self, ax: Any = None) -> Any:
        """Draw the measured and the declared price of every release.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes; None makes a new figure. Needs matplotlib.

        Returns
        -------
        ax : matplotlib.axes.Axes
            Axes; points above the line cost more than declared.
        """
        return plot_trace(self, ax)

    def __repr__(self) -> str:
        return trace_text(self)


def _for_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _for_json(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_for_json(part) for part in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value


def trace_text(result):
    """Return a trace in words."""
    verdict = {True: "passed", False: "FAILED", None: "no claim"}[result.passed]
    differ = result.adjacency + per_group(result.unit)
    lines = [f"trace of {result.estimator} on {result.pair} ({differ}): {verdict}"]
    if result.epsilon_claimed is None:
        lines.append("nothing is claimed")
        lines += [f"not covered: {text}" for text in result.not_covered]
    else:
        mu = "" if result.mu_claimed is None else f", mu {result.mu:.4g} of {result.mu_claimed:.4g}"
        lines.append(
            f"epsilon {result.epsilon:.4g} of {result.epsilon_claimed:.4g} at delta="
            f"{result.delta:.3g}{mu}; loss at these outputs {result.loss:.4g}"
        )
        if not result.complete:
            lines.append("the claim is not the sum of these releases: each is judged by itself")
    lines += [f"VIOLATION: {text}" for text in result.violations]
    groups: dict[Any, list[TracedRelease]] = {}
    for release in result.releases:
        groups.setdefault((release.query, release.law, release.rows, release.paid), []).append(
            release
        )
    for (query, law, rows, paid), found in groups.items():
        count = f"{len(found)} x " if len(found) > 1 else ""
        far = max((r.distance for r in found if not math.isnan(r.distance)), default=math.nan)
        measured = "not measured" if math.isnan(far) else f"{far:.6g} measured"
        bad = "" if all(r.passed for r in found) else "  FAILED"
        lines.append(
            f"  {count}{query} [{law}, {rows} rows]: {found[0].metric} {paid:.6g} declared, "
            f"{measured}{bad}"
        )
        levels = [r.noise_level for r in found if r.noise_level is not None]
        if levels and min(levels) < FALSE_ALARM:
            lines.append(f"    its noise has not the declared law (p = {min(levels):.1g})")
    return "\n".join(lines)


def plot_trace(result, ax=None):
    """Draw a trace.

    Parameters
    ----------
    result : TraceResult
        Result to draw.
    ax : matplotlib.axes.Axes, default=None
        Axes; None makes a new figure.

    Returns
    -------
    ax : matplotlib.axes.Axes
    """
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(6.4, 3.8), layout="constrained").add_subplot()
    ratios = np.array([release.ratio for release in result.releases])
    places = np.arange(1, len(ratios) + 1)
    good = np.array([release.passed for release in result.releases], dtype=bool)
    ax.axhline(1.0, color="0.3", linewidth=1, label="declared")
    for choice, color, label in ((good, "tab:blue", "measured"), (~good, "tab:red", "failed")):
        if choice.any():
            shown = np.minimum(np.nan_to_num(ratios[choice], posinf=10.0), 10.0)
            ax.vlines(places[choice], 0, shown, color=color, linewidth=1)
            ax.plot(places[choice], shown, "o", color=color, markersize=3, label=label)
    ax.set(
        xlabel="release", ylabel="measured / declared price", ylim=(0, None),
        title=f"{result.estimator.split('(')[0]}: {result.share:.4g} of the claim",
    )  # fmt: skip
    ax.legend(loc="lower right", fontsize="small")
    return ax


# Recording and replaying.


class _Diverged(BaseException):
    """Signal of a different query in the second fit; handlers of the fit must not catch it."""


@dataclass
class _Entry:
    """One recorded release."""

    law: Any
    query: Any
    noise: Any
    admitted: tuple[Any, ...]
    batches: tuple[Any, ...]
    released: Any
    n_rows: int


class _Run:
    """Releases of one fit; with a past, the outputs of the past are repeated."""

    def __init__(self, past: list[_Entry] | None = None) -> None:
        self.past, self.entries = past, list[_Entry]()

    def release(self, made_by: Any, law: Any, query: Any, noise: Any, source: Any) -> Any:
        place = len(self.entries)
        if self.past is None:
            watched = _Watched(source, law.sampling)
            # public points may be changed in place once this is over
            asked = copy.deepcopy(query)
            released = made_by(law, query, noise, watched)
            entry = _Entry(law, asked, noise, *watched.seen, copy.deepcopy(released), source.n_rows)
        else:
            if place == len(self.past):
                raise _Diverged(f"more than {place} releases")
            old = self.past[place]
            for name, one, other in (
                ("law", old.law, law), ("noise", old.noise, noise), ("query", old.query, query),
            ):  # fmt: skip
                if (where := difference(one, other, name)) is not None:
                    raise _Diverged(f"release {place + 1} differs in public facts: {where}")
            again = _Watched(source, None)
            seen = tuple(again.read() for _ in old.admitted)
            entry = _Entry(law, old.query, noise, seen, old.batches, old.released, old.n_rows)
            released = copy.deepcopy(old.released)
        self.entries.append(entry)
        return released


class _Watched:
    """Source of a law that records its rows and batches."""

    def __init__(self, source: Any, sampling: Any) -> None:
        self.bits, self.n_rows = source.bits, source.n_rows
        self._source, self._sampling = source, sampling
        self._rows, self._batches = list[Any](), list[Any]()

    @property
    def seen(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(self._rows), tuple(self._batches)

    def read(self) -> Any:
        rows, batch = self._source.read(), None
        if self._sampling is not None:
            batch = _drawn_batch(self._sampling, self.bits)
        self._rows.append(rows)
        self._batches.append(batch)
        return rows if batch is None else rows.batch(batch, self._sampling.rate)


_RUN: ContextVar[_Run | None] = ContextVar("run", default=None)
_drawn_batch = Sampling.draw
# one trace at a time: what it stands in front of belongs to the whole process
_TURN = threading.RLock()


def _laws(kind: type[Law] = Law) -> Iterator[type[Law]]:
    for law in kind.__subclasses__():
        yield law
        yield from _laws(law)


def _in_front_of(release: Callable[..., Any]) -> Callable[..., Any]:
    def watched(law: Any, query: Any, noise: Any, source: Any) -> Any:
        run = _RUN.get()
        # a law that is a part of another one is not a release of its own
        if run is None or isinstance(source, _Watched):
            return release(law, query, noise, source)
        return run.release(release, law, query, noise, source)

    return watched


def _no_batch_yet(sampling: Any, bits: Any) -> Any:
    """Leave the draw of a batch to the trace, which then sees all rows."""
    return _drawn_batch(sampling, bits) if _RUN.get() is None else None


@contextmanager
def _standing_in_front() -> Iterator[None]:
    """Intercept the release of every law, without effect on fits in other threads."""
    with _TURN:
        own = [(law, vars(law)["release"]) for law in {*_laws()} if "release" in vars(law)]
        try:
            Sampling.draw = _no_batch_yet  # type: ignore[method-assign, assignment]
            for law, release in own:
                law.release = _in_front_of(release)  # type: ignore[method-assign]
            yield
        finally:
            Sampling.draw = _drawn_batch  # type: ignore[method-assign]
            for law, release in own:
                law.release = release  # type: ignore[method-assign]


def _fit(estimator: Any, method: str, data: tuple[Any, ...], run: _Run) -> tuple[Any, Any]:
    """Return a fitted copy, and the result of the method if it is a release."""
    token = _RUN.set(run)
    try:
        with warnings.catch_warnings():
            # seeded noise, and whatever else an estimator has to say about made-up rows
            warnings.simplefilter("ignore")
            fitted = clone(estimator) if hasattr(estimator, "get_params") else estimator
            returned = call_with(getattr(fitted, method), data)
    finally:
        _RUN.reset(token)
    return fitted, None if returned is fitted else returned


# What must not depend on private rows.


def difference(
    one: Any,
    other: Any,
    name: str,
    ignored: Collection[str] = (),
    seen: dict[tuple[int, int], Any] | None = None,
) -> str | None:
    """Return the place of a difference between two objects; None if all bits are equal.

    Parameters
    ----------
    one, other : object
        Objects to compare, with all their contents. Functions are equal if they have the same code
        and contents; random generators are always equal.
    name : str
        Name of the objects.
    ignored : collection of str, default=()
        Attributes and keys that may differ.
    seen : dict
        Pairs under comparison, by their ids; storing them keeps the ids unique.

    Returns
    -------
    where : str or None
        The path to the first difference, without a value.
    """
    seen = {} if seen is None else seen
    if one is other or (id(one), id(other)) in seen:
        return None
    if type(one) is not type(other):
        return name
    if isinstance(one, FitNote):
        # every fit has an identity of its own, by chance
        return difference(one.names, other.names, f"{name}.names", ignored, seen)
    seen[id(one), id(other)] = one, other
    if isinstance(one, np.ndarray) and one.dtype.kind != "O":
        if one.shape != other.shape or one.dtype != other.dtype:
            return name
        return None if np.array_equal(one, other, equal_nan=one.dtype.kind in "fc") else name
    if isinstance(one, float | complex | np.generic):
        # NaN and NaT equal nothing, themselves included
        return None if one == other or (one != one and other != other) else name
    if isinstance(one, str | bytes | int | frozenset | set | range | type):
        return None if one == other else name
    if _written(one) != _written(other):
        return name
    held, others = _held(one), _held(other)
    if list(held) != list(others):
        return name
    for key, part in held.items():
        if str(key) in ignored:
            continue
        if (at := difference(part, others[key], f"{name}.{key}", ignored, seen)) is not None:
            return at
    return None


def _written(value: Any) -> Any:
    """Return the code of a function and its place; None for other objects."""
    if isinstance(value, FunctionType | MethodType | BuiltinFunctionType | np.ufunc):
        where = getattr(value, "__module__", None), value.__name__
        return *where, getattr(value, "__code__", None)
    return None


def _held(value: Any) -> Mapping[Any, Any]:
    """Return the contents of an object, by name or place."""
    if isinstance(value, np.ndarray):
        return {"shape": value.shape, **dict(enumerate(value.ravel()))}
    if is_sparse(value):
        return {"entries": value.toarray()}
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    if isinstance(value, partial):
        return {"function": value.func, "arguments": value.args, **value.keywords}
    if isinstance(value, MethodType):
        return {"function": value.__func__, "object": value.__self__}
    if isinstance(value, FunctionType):
        names = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        closed = {name: _content(cell) for name, cell in names}
        return {"defaults": (value.__defaults__, value.__kwdefaults__), **closed}
    if is_dataclass(value):
        # what is cached there follows from the fields
        return {f.name: getattr(value, f.name) for f in fields(value)}
    held = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        for slot in getattr(kind, "__slots__", ()):
            if hasattr(value, slot) and not slot.startswith("__"):
                held[slot] = getattr(value, slot)
    return held


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


# Measures of a pair of runs.


def _place_of_row(entry: _Entry, other: _Entry, bits: Any) -> int | None:
    """Return the position of the differing row, by bisection; None if no half differs."""
    rate, n_rows = entry.law.sampling.rate, entry.law.sampling.n_rows
    low, high = 0, n_rows

    def differ(positions):
        sides = [tuple(r.batch(positions, rate) for r in e.admitted[:1]) for e in (entry, other)]
        law = entry.law
        if hasattr(law, "n_steps"):
            sides = [side * len(entry.admitted) for side in sides]
        trial = Trial(*sides, None, None, bits)
        return any(m.distance != 0 for m in measure(law, entry.query, entry.noise, trial))

    if not differ(np.arange(n_rows)):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if differ(np.arange(low, middle)) else (middle, high)
    return low


def _batches_of(batch, place, sampling):
    """Return a batch with the differing row, and the same batch without it."""
    rest = batch[batch != place]
    if sampling.kind == "poisson":
        return np.sort(np.append(rest, place)), rest
    # of a fixed size: another row stands in for it
    if len(rest) == len(batch):
        return np.sort(np.append(rest[1:], place)), batch
    others = np.setdiff1d(np.arange(sampling.n_rows), batch)
    spare = others[:1] if len(others) else rest[:1]
    again = np.append(rest, np.repeat(spare, len(batch) - len(rest) - 1))
    return np.sort(np.append(again, place)), np.sort(np.append(again, spare))


def _trial(entry: _Entry, other: _Entry, place: int | None, bits: Any, n_draws: int) -> Trial:
    sampling = entry.law.sampling
    first, second, absent = [], [], []
    reads = zip(entry.admitted, other.admitted, entry.batches, strict=True)
    for one, two, batch in reads:
        if batch is None:
            first.append(one)
            second.append(two)
            continue
        present, gone = batch, None
        if place is not None:
            present, gone = _batches_of(batch, place, sampling)
        first.append(one.batch(present, sampling.rate))
        second.append(two.batch(present, sampling.rate))
        if gone is not None:
            absent.append(one.batch(gone, sampling.rate))
    return Trial(tuple(first), tuple(second), tuple(absent) or None, entry.released, bits, n_draws)


def _oddness(line: Line, found: Measured) -> float | None:
    """Return the two-sided p-value of redrawn noise."""
    if found.scaled is None:
        return None
    if line.noise.law == "gaussian":
        total, freedom = float(np.sum(found.scaled**2)), found.scaled.size
    else:
        # twice the norm has the Gamma law of as many exponential variables
        order = 1 if line.noise.law == "laplace" else 2
        norms = np.linalg.norm(found.scaled, ord=order, axis=1)
        total, freedom = 2 * float(norms.sum()), 2 * found.scaled.size
    return float(min(1.0, 2 * min(chdtr(freedom, total), chdtrc(freedom, total))))


def _facts_of(entry: _Entry, adjacency: str, n_rows: int) -> tuple[Line, ...]:
    sampling = entry.law.sampling
    adjacency = "zero-out" if adjacency == "add-remove" else adjacency
    under = adjacency if sampling is None else sampling.adjacency(adjacency)
    return tuple(entry.law.lines(entry.query, entry.query.sensitivity(under, n_rows), entry.noise))


def _told(line: Line, found: Measured, reads: int, sampling: Any) -> TracedRelease:
    rows = "all" if sampling is None or sampling.reads_all else sampling.kind
    price, inputs = line.noise.price, found.inputs or (np.empty(0), np.empty(0))
    return TracedRelease(
        query=line.query,
        law=line.noise.law,
        size=line.size,
        rows=rows,
        reads=reads,
        sensitivity=line.stated,
        paid=line.noise.sensitivity,
        distance=found.distance,
        metric=found.metric,
        mu=price.mu,
        epsilon=price.epsilon,
        delta=price.delta,
        mu_measured=found.price.mu,
        epsilon_measured=found.price.epsilon,
        loss=found.loss,
        noise_level=_oddness(line, found),
        first=tuple(inputs[0].ravel().tolist()),
        second=tuple(inputs[1].ravel().tolist()),
        hidden=line.hidden,
    )


def _composed(releases, samplings, adjacency, delta):
    """Return epsilon and mu of measured prices, composed as on a ledger."""
    mus, priced, pure, by_chance = [], [], [], dict[Any, list[Any]]()
    chance_of_reports = dict[Any, list[Any]]()
    for release, sampling in zip(releases, samplings, strict=True):
        if release.hidden or math.isnan(release.epsilon_measured):
            continue
        chance = sampling is not None and not sampling.reads_all
        if release.mu and chance:
            by_chance.setdefault(sampling, []).append((release.mu_measured, release.reads))
        elif release.mu:
            mus.append((release.mu_measured, release.reads))
        elif release.metric == "log-ratio" and chance:
            chance_of_reports.setdefault(sampling, []).append(release.epsilon_measured)
        else:
            priced.append((release.epsilon_measured, release.delta, release.reads))
            pure.append((release.epsilon_measured, release.reads, release.metric == "spread"))
    sampled = tuple(
        SampledCost(sampling, max(m for m, _ in found), adjacency, sum(n for _, n in found))
        for sampling, found in by_chance.items()
        if max(m for m, _ in found) > 0
    )
    mu = total_mu([(0.0, 1), *mus])
    if any(math.isinf(e) for e, _, _ in priced) or math.isinf(mu):
        return math.inf, mu
    if chance_of_reports:
        rounds = [(max(found), len(found), s.rate) for s, found in chance_of_reports.items()]
        return report_epsilon([(e, 0.0, n) for e, _, n in priced], rounds, delta), mu
    plain = not sampled and not any(part for _, part, _ in priced)
    rho = total_rho(mu, pure) if plain else math.inf
    return compose_epsilon(mu, [p for p in priced if p[0] or p[1]], delta, sampled, rho), mu


def trace_privacy(
    estimator: Estimator,
    X: MatrixLike = None,
    X_neighbour: MatrixLike = None,
    *,
    y: VectorLike | None = None,
    y_neighbour: VectorLike | None = None,
    groups: VectorLike | None = None,
    groups_neighbour: VectorLike | None = None,
    sample_weight: VectorLike | None = None,
    sample_weight_neighbour: VectorLike | None = None,
    adjacency: Adjacency | None = None,
    method: Literal["auto", "fit", "fit_transform"] = "auto",
    n_draws: int = 256,
    random_state: int = 0,
) -> TraceResult:
    """Measure the privacy loss of every release of a fit, on two neighbouring data sets.

    The estimator is fitted to the first data set, and every release is recorded: the query, the
    charged noise, and the output. Then it is fitted to the second data set, and gets the same
    outputs, independent of its own rows. So all later choices are the same, unless they depend on
    anything besides released numbers. The privacy loss of every release follows from the two
    statistics and the law of the noise. Two fits are enough; no statistics over many fits are
    needed.

    Parameters
    ----------
    estimator : estimator
        Estimator of this library, or a pipeline or a search of such estimators. Fits use clones
        with their own seeds, without `budget`, and in one process.
    X : array-like of shape (n_samples, n_features), default=None
        Rows. Use made-up ones: the result is not private. None makes up rows.
    X_neighbour : array-like of shape (n_samples, n_features), default=None
        The same rows except one; with groups, except the rows of one group. None, without
        `y_neighbour`, tries all pairs of `adversarial_pairs`, and returns the one with the largest
        fraction of the claim, or the first that fails. For a classifier with Gaussian noise only,
        one row among thousands is tried too: with another label, at a prediction near 0; and two
        directions at 120 degrees that are far from all other rows and opposite after centering and
        whitening.
    y, y_neighbour : array-like of shape (n_samples,), default=None
        Targets, if the estimator uses them. For the neighbour, None takes the same.
    groups, groups_neighbour : array-like of shape (n_samples,), default=None
        Groups of the rows, for estimators with groups in `fit`. For the neighbour, None takes the
        same; otherwise a group may have another number of rows.
    sample_weight, sample_weight_neighbour : array-like of shape (n_samples,), default=None
        Weights of the rows, for estimators with a `max_weight`. For the neighbour, None takes the
        same.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default=None
        Relation of the data sets; None takes the adjacency of the estimator. Under "zero-out" the
        row of the second data set must be a null row: NaN, which a trace accepts. Under
        "add-remove" one data set has one more row.
    method : {"auto", "fit", "fit_transform"}, default="auto"
        Traced method. "auto" is `fit`, or `fit_transform` if `fit` releases nothing.
    n_draws : int, default=256
        Number of redrawn noise values for every kind of additive noise, for a test of its declared
        law; 0 for none. 128 detect noise of half the correct size.
    random_state : int, default=0
        Seeds the fits.

    Returns
    -------
    result : TraceResult
        Result to print. `passed` is whether nothing contradicts the claim, `plot` draws every
        release, `to_json` writes a file for other tools.

    Raises
    ------
    ValueError
        If a parameter is out of range, the data sets are not neighbours, or the fit to the first
        one fails.
    TypeError
        If a law of the estimator is not from this library.

    See Also
    --------
    audit_privacy : Tells many fits apart by their outputs. It sees whatever reaches the model by
        any path, and is blind to small violations.

    Notes
    -----
    *Comparison.* For each release, the distance of the two statistics is compared with the stated
    sensitivity, in its own norm, and the price of that distance with the declared price. The price
    is exact for Gaussian noise (its mu), and the largest loss over all outputs for Laplace and
    K-norm noise. For batches, the other rows of the drawn batch are fixed: the distance is the
    norm of the row's contribution (Poisson) or of its exchange for another row (fixed size). Every
    batch counts, with or without the row, and the loss is between two mixtures, where the row is
    present at the rate of the batch. A draw is measured by the spread of the change of its score,
    exactly for finitely many outcomes; on a continuum, the spread over some outcomes is a lower
    bound. Local reports are measured by log-ratios of their laws. For `ProjUnit` these are
    conditional on the rotation and the kept entries, which are public, so their loss is not known
    afterwards. Late noise is measured along its own trajectory, step by step.

    *Equality.* The number of releases, their laws, noises and public fields, and at the end all
    attributes of the two fitted estimators must be equal: they follow from the releases.

    *Limits.* Other neighbours, the running time, the law of noise (except the size of redrawn
    additive noise) and other processes are not examined.

    The method, to record the primitives of one run and to replay the other run with their outputs,
    is also in [1]_; its harness can measure the distances of a trace file independently.

    References
    ----------
    .. [1] ObliviousAI, "dp-recorder: a grey-box auditing library for differential privacy
       mechanisms", version 0.1.0, 2026, https://github.com/ObliviousAI/dp-recorder.
    .. [2] J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", Journal of the Royal
       Statistical Society B 84, 2022.

    Examples
    --------
    >>> from skdp import DPMean
    >>> from skdp.audit import trace_privacy
    >>> result = trace_privacy(DPMean(epsilon=1.0, data_norm=1.0), [[0.2], [1.0]], [[0.2], [-1.0]])
    >>> result.passed, round(result.share, 3)
    (True, 1.0)
    >>> release = result.releases[0]
    >>> release.sensitivity, round(release.distance, 6)
    (2.0, 2.0)
    """
    if not callable(getattr(estimator, "fit", None)):
        raise TypeError(f"estimator must have a method fit; got {a_kind(estimator)}.")
    n_draws, seed = check_count("n_draws", n_draws, 0), check_seed(random_state)
    if seed is None:
        raise ValueError("random_state must be an integer: both fits need the same; got None.")
    if method not in ("auto", "fit", "fit_transform"):
        raise ValueError(f"method must be 'auto', 'fit' or 'fit_transform'; got {method!r}.")
    adjacency = resolve_adjacency(estimator, adjacency)
    own = known(estimator, "adjacency")
    if adjacency == "add-remove" and own != adjacency:
        raise ValueError(
            "adjacency must be 'replace-one' or 'zero-out' for an estimator that plans with the "
            f"number of rows, adjacency={own!r}; got 'add-remove'."
        )
    quiet, traces = _quiet(estimator, seed), list[TraceResult]()

    def worst(pairs):
        for pair in pairs:
            traces.append(_traced(quiet, pair, adjacency, method, n_draws, seed))
            if traces[-1].passed is False:
                return traces[-1]
        # a share that is not known comes last
        traces.sort(key=lambda trace: (math.isnan(trace.share), -trace.share))
        return traces[0]

    more = [
        (part, part if other is None else other)
        for part, other in ((groups, groups_neighbour), (sample_weight, sample_weight_neighbour))
    ]
    found = worst(_chosen_pairs(estimator, X, X_neighbour, y, y_neighbour, more, adjacency))
    if X is not None or not found.passed or not found.share < _TIGHT:
        return found
    # among many rows a model moves less, and its gradients stay long
    names = {trace.pair for trace in traces[:_AGAIN]}
    if found.complete and found.mu_claimed:
        for pair in pairs_among_many(estimator, found.mu_claimed):
            found = worst(_under(adjacency, [pair]))
            # nothing is whitened where products of columns are not released
            largest = max(release.size for trace in traces for release in trace.releases)
            products = 2 * largest >= pair.first[0].shape[1] ** 2
            if not found.passed or found.share >= _TIGHT or not products:
                break
    if found.passed and found.share < _TIGHT:
        many = _built_in(estimator, None, adjacency, _MANY_ROWS)
        found = worst(pair for pair in many if pair.name in names)
    return found


def _chosen_pairs(estimator, X, X_neighbour, y, y_neighbour, more, adjacency):
    """Return the candidate pairs; `more` has groups and weights of both sides."""
    if X is None and (X_neighbour is not None or y_neighbour is not None or y is not None):
        raise ValueError("X must be given with a neighbour or with y; got None.")
    if X_neighbour is None and y_neighbour is None and more[1][0] is more[1][1]:
        given = ["groups", "sample_weight"]
        given = [name for name, (part, _) in zip(given, more, strict=True) if part is not None]
        if given:
            raise ValueError(
                f"X_neighbour must be given with {given[0]}: no pairs are known for them."
            )
        data = None if X is None else (X,) if y is None else (X, y)
        return _built_in(estimator, data, adjacency, N_ROWS)
    if y_neighbour is not None and y is None:
        raise ValueError("y must be given with y_neighbour; got None.")
    first = as_arguments(X if y is None else (X, y))
    others = (X if X_neighbour is None else X_neighbour, y if y_neighbour is None else y_neighbour)
    second = as_arguments(others[0] if y is None else others)
    if any(part is not None for part, _ in more):
        missing = (None,) * (y is None)
        first, second = (
            (*side, *missing, *own)
            for side, own in zip((first, second), zip(*more, strict=True), strict=True)
        )
    check_neighbours(first, second, adjacency)
    return [NeighbourPair("the data given", first, second)]


def _built_in(estimator, data, adjacency, n_rows):
    """Return pairs of `adversarial_pairs`, with a least number of rows if none are given."""
    return _under(adjacency, made_pairs(estimator, data, "replace-one", n_rows))


def _under(adjacency, pairs):
    """Return pairs of an adjacency.

    Under zero-out one row becomes a null row, all NaN; under add-remove it is absent.
    """
    if adjacency == "replace-one":
        return pairs
    found, rows_seen = [], set()
    for pair in pairs:
        for side in (pair.first, pair.second):
            X, *others = side
            (row,) = np.flatnonzero(
                np.any(
                    [_unlike(a, b) for a, b in zip(pair.first, pair.second, strict=True)], axis=0
                )
            )
            key = tuple(np.asarray(part)[: row + 1].tobytes() for part in side)
            if key not in rows_seen:
                rows_seen.add(key)
                null = X.copy()
                null[row] = np.nan
                without = (null, *others)
                if adjacency == "add-remove":
                    without = tuple(np.delete(np.asarray(part), row, axis=0) for part in side)
                name = f"{pair.name}, against nothing ({len(found) + 1})"
                found.append(NeighbourPair(name, side, without))
    return found


def _unlike(one, other):
    return (np.asarray(one) != np.asarray(other)).reshape(len(one), -1).any(axis=1)


def _quiet(estimator, seed):
    """Return an unfitted copy with its own seeds, without a budget and without output."""
    own = fresh(estimator, seed)
    changed = {}
    for name, value in parameters(own).items():
        last = name.split("__")[-1]
        if last in ("budget", "n_jobs") and value is not None:
            changed[name] = None
        elif last == "verbose" and value:
            changed[name] = type(value)(0)
    return own.set_params(**changed) if changed else own


def _traced(estimator, pair, adjacency, method, n_draws, seed):
    """Return the trace of one pair."""
    violations = []
    # rows that contribute nothing are NaN, which scikit-learn would refuse
    with _standing_in_front(), config_context(assume_finite=adjacency == "zero-out"):
        how, first = "fit" if method == "auto" else method, _Run()
        fitted, returned = _fit(estimator, how, pair.first, first)
        if method == "auto" and not first.entries and hasattr(estimator, "fit_transform"):
            how, first = "fit_transform", _Run()
            fitted, returned = _fit(estimator, how, pair.first, first)
            if not first.entries:
                # rows that pass through are not released
                returned = None
        second = _Run(first.entries)
        try:
            other, other_returned = _fit(estimator, how, pair.second, second)
        except _Diverged as error:
            violations.append(str(error))
        except Exception as error:
            violations.append(f"the fit to the neighbour raised {a_kind(error)}")
        else:
            if len(second.entries) < len(first.entries):
                violations.append(f"{len(second.entries)} releases of {len(first.entries)}")
            reported = how == "fit_transform" and returned is not None and _reports_only(first)
            pairs = [(vars(fitted), vars(other), type(estimator).__name__)]
            pairs += [(returned, other_returned, "the reports")] if reported else []
            for one, two, name in pairs:
                if (where := difference(one, two, name)) is not None:
                    violations.append(f"{where} differs though all that was released is the same")
    return _result(fitted, first, second, pair, adjacency, n_draws, seed, violations)


def _reports_only(run):
    return all(entry.noise.law == "local" for entry in run.entries if hasattr(entry.noise, "law"))


def _releases_of(first, second, promised, copies, n_draws, bits):
    """Return what was measured of every release of two fits, and how they are to be added up.

    Parameters
    ----------
    first, second : _Run
        Of the fits.
    promised, copies : str, int
        Adjacency of the promise, and copies of a row that a fit may have had.
    n_draws, bits : int, SeededBits
        Draws of noise of every kind, and their source.

    Returns
    -------
    releases, samplings : list of TracedRelease, list of Sampling or None
        One for each line of the ledger.
    n_traced : int
        Number of releases, but for rows that report in turn.
    """
    releases, samplings, drawn, places, n_traced = [], [], set(), {}, 0
    for entry, other in zip(first.entries, second.entries, strict=False):
        sampling, place = entry.law.sampling, None
        if any(batch is not None for batch in entry.batches):
            key = (id(entry.admitted[0]), id(other.admitted[0]))
            if places.get(key) is None:
                places[key] = _place_of_row(entry, other, bits)
            place = places[key]
        # noise of one kind is drawn anew once
        kind = (type(entry.law), getattr(entry.noise, "law", None), entry.query.name)
        trial = _trial(entry, other, place, bits, 0 if kind in drawn else n_draws)
        drawn.add(kind)
        found = measure(entry.law, entry.query, entry.noise, trial)
        lines = _facts_of(entry, promised, entry.n_rows)
        n_traced += 0 if entry.law.in_turn else len(lines) * len(entry.admitted)
        for line, measured in zip(lines, found, strict=True):
            told = _told(line, measured, len(entry.admitted), sampling)
            releases.append(replace(told, copies=copies))
            samplings.append(sampling)
    return releases, samplings, n_traced


def _result(fitted, first, second, pair, adjacency, n_draws, seed, violations):
    bits, total = SeededBits(seed, "trace"), total_of_fit(fitted)
    ledger, delta = ledger_of(fitted, total)
    missing = () if total is None else tuple(map(str, total.uncovered))
    copies = 1 if total is None else total.most_copies
    if getattr(ledger, "shared_noise", ()):
        # the seeds are those of the trace; it measures fits with noise of their own
        ledger = replace(ledger, shared_noise=())
    # what is promised, whatever the neighbours are
    promised = adjacency if ledger is None else ledger.adjacency
    releases, samplings, n_traced = _releases_of(first, second, promised, copies, n_draws, bits)
    epsilon_measured, mu = _composed(releases, samplings, promised, delta)
    epsilon, mu_claimed, unit, complete = None, None, "row", False
    if ledger is not None:
        unit = ledger.unit
        # a line for several releases is not taken apart
        totals = [r for r in ledger.releases if isinstance(r.noise, DeclaredTotal)]
        complete = not totals
        # rows that report in turn count once together, however many parts they come in
        paid = sum(r.count for r in ledger.releases if r.adjacency != "local" or r.price.by_chance)
        if complete and n_traced > paid:
            complete = False
            violations.append("more releases than the ledger has")
        complete &= not missing
        if not missing:
            epsilon, mu_claimed = float(ledger.epsilon(delta)), gaussian_mu(ledger)
    elif releases:
        violations.append("there is no ledger of what was released")
    if epsilon is not None and epsilon_measured > epsilon and all(r.ratio <= 1 for r in releases):
        # losses are added up on a grid, where a hair less of a price may come out as a hair more:
        # prices within the declared ones cost no more together than these do
        most = [
            replace(r, mu_measured=r.mu * copies, epsilon_measured=r.epsilon * copies)
            for r in releases
        ]
        epsilon_measured = min(epsilon_measured, _composed(most, samplings, promised, delta)[0])
    return TraceResult(
        estimator=" ".join(str(fitted).split()),
        pair=pair.name,
        adjacency=adjacency,
        unit=unit,
        releases=tuple(releases),
        violations=tuple(violations),
        delta=delta,
        epsilon_claimed=epsilon,
        mu_claimed=mu_claimed,
        epsilon=float(epsilon_measured),
        mu=float(mu),
        complete=complete,
        not_covered=missing,
    )

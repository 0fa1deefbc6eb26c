# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Measurements of releases: distance between two data sets, and privacy loss.

A query states how far one row can move a statistic, and a law states the price. Here both are
measured on two data sets, with all earlier releases fixed: the distance of the two statistics in
the norm of the law, and the price of that distance at the declared noise. At the released output,
the privacy loss is the logarithm of the ratio of the two densities. No price depends on these
measurements; they are for audits, on made-up rows.

Every law has one function here, found by `measure` from its class:

- additive noise: the distance is a norm, and everything is exact;
- a batch by chance: all others of the batch are held fixed. The row is in it with the rate of the
  batch, so the two densities are mixtures. The distance is the norm of a contribution of the row,
  or of an exchange for batches of a fixed size;
- draws: the spread of the change of the score. On finitely many outcomes it is exact; on a
  continuum it is that over some outcomes, a bound from below;
- late noise: a trajectory of its own, with noise in every step, along which steps are measured;
- a perturbed minimiser: at a minimiser of its own, gradients and Hessians give the two densities;
- a threshold: the columns that one data set alone touches, and the distance on the others;
- reports: the log-ratio of the laws of a row's report, over some reports, random choices that
  everybody may know being the same.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.accounting import gdp_epsilon
from skdp.privacy.kernel.mechanisms import Law, Noise, Price, Values, align, shaped
from skdp.privacy.kernel.samplers import Bits
from skdp.privacy.laws.additive import Additive
from skdp.privacy.laws.exponential import ExponentialMechanism, drawing_source
from skdp.privacy.laws.histogram import StabilityHistogram, beyond, touched
from skdp.privacy.laws.late_noise import LateNoise
from skdp.privacy.laws.local_reports import LocalMechanism, ReportedSum, made_reports
from skdp.privacy.laws.objective import ObjectivePerturbation

#: the norm in which additive noise falls off
NORMS = {"gaussian": 2, "laplace": 1, "k-norm": 2}
# outcomes of a draw on a continuum, and reports of a row, that are looked at
_OUTCOMES, _REPORTS = 48, 64


@dataclass(frozen=True)
class Trial:
    """Rows of two data sets that one release reads, and what was released.

    Parameters
    ----------
    first, second : tuple
        Rows of every reading of the release. For a batch by chance the row in question is in it.
    absent : tuple or None
        The same batches without the row, for which another one stands in if their size is fixed;
        None if all rows are read.
    released : object
        What was released of the first data set.
    bits : Bits
        Source of random words for what is drawn to be looked at.
    n_draws : int, default=0
        Numbers of noise that are drawn anew and compared with the declared law.
    """

    first: tuple[Any, ...]
    second: tuple[Any, ...]
    absent: tuple[Any, ...] | None
    released: Any
    bits: Bits
    n_draws: int = 0


@dataclass(frozen=True)
class Measured:
    """What was measured of one line of the ledger.

    Parameters
    ----------
    distance : float
        In the norm in which the line states its sensitivity.
    price : Price
        Of that distance, at the declared noise.
    loss : float
        Logarithm of the ratio of the densities of the released output; NaN if it is not known.
    metric : {"l1", "l2", "spread", "log-ratio"}
        What `distance` is of `inputs`.
    inputs : tuple of (ndarray, ndarray) or None
        Of the last reading: the two statistics, or the scores of the same outcomes.
    scaled : ndarray of shape (n_vectors, size) or None
        Noise that was drawn anew, in units of its scale; None if there is none.
    """

    distance: float
    price: Price
    loss: float
    metric: str
    inputs: tuple[Values, Values] | None = None
    scaled: Values | None = None


Measures = Callable[[Any, Any, Any, Trial], tuple[Measured, ...]]


def measure(law: Law, query: Any, noise: Any, trial: Trial) -> tuple[Measured, ...]:
    """Measure one release.

    Parameters
    ----------
    law, query, noise : Law, object, object
        How it was randomised, what was asked, and the noise that was charged.
    trial : Trial
        The two data sets, and the output.

    Returns
    -------
    measured : tuple of Measured
        One for every line that the law puts on the ledger.

    Raises
    ------
    TypeError
        If nobody has said how releases by this law are measured.
    """
    for kind, function in MEASURES.items():
        if isinstance(law, kind):
            return function(law, query, noise, trial)
    raise TypeError(f"no measure is known for the law {type(law).__name__}.")


def _log_density(noise: Noise, gap: Values) -> float:
    """Return the logarithm of the density of additive noise, up to a constant."""
    norm = float(np.linalg.norm(gap, ord=NORMS[noise.law])) / noise.scale
    return -norm * norm / 2 if noise.law == "gaussian" else -norm


def _apart(noise: Noise, one: Values, other: Values) -> float:
    return float(np.linalg.norm(one - other, ord=NORMS[noise.law]))


def _price_of(noise: Noise, distance: float) -> Price:
    """Return what a distance costs with additive noise of a declared scale."""
    if noise.law == "gaussian":
        return Price(mu=distance / noise.scale, sampling=noise.sampling)
    return Price(epsilon=distance / noise.scale)


def _rates(noise: Noise) -> float:
    return noise.sampling.rate if noise.sampling is not None else 1.0


def _compared(
    noise: Noise, one: Values, other: Values, without: Values | None, released: Any
) -> tuple[float, float]:
    """Return the distance and the loss of statistics that get additive noise."""
    if without is None:
        distance = _apart(noise, one, other)
        if released is None:
            return distance, math.nan
        return distance, _log_density(noise, released - one) - _log_density(noise, released - other)
    distance = max(_apart(noise, one, without), _apart(noise, other, without))
    if noise.sampling is not None and noise.sampling.kind != "poisson":
        # of a fixed size: one row in the place of another
        distance = max(distance, _apart(noise, one, other))
    if released is None:
        return distance, math.nan
    rate = _rates(noise)
    weights = np.array([1 - rate, rate])
    rest = _log_density(noise, released - without)
    sides = [
        float(logsumexp([rest, _log_density(noise, released - s)], b=weights)) for s in (one, other)
    ]
    return distance, sides[0] - sides[1]


def _redrawn(noise: Noise, size: int, trial: Trial, at: Values) -> Values:
    """Return noise that is drawn anew, as many vectors as it takes, over its scale."""
    count = -(-trial.n_draws // size)
    start = noise.grid * align(at, noise)
    drawn = [mechanisms.add_noise(at, noise, trial.bits) - start for _ in range(count)]
    return np.array(drawn).reshape(count, size) / noise.scale


def _on_grid(noise: Noise, values: Values) -> Values:
    return align(values, noise) * noise.grid


def _measured(
    noise: Noise, views: Sequence[Values | None], released: Any, trial: Trial
) -> Measured:
    """Return what was measured of a sum with noise; views are first, second and absent."""
    one, other, without = views
    assert one is not None
    assert other is not None
    distance, loss = _compared(noise, one, other, without, released)
    scaled = _redrawn(noise, len(one), trial, one) if trial.n_draws else None
    metric, price = f"l{NORMS[noise.law]}", _price_of(noise, distance)
    inputs = (one, other)
    if without is not None and noise.sampling is not None and noise.sampling.kind == "poisson":
        # the larger of the two contributions, which is what is stated
        far = one if _apart(noise, one, without) >= _apart(noise, other, without) else other
        inputs = (without, far)
    return Measured(distance, price, loss, metric, inputs, scaled)


def _additive(law: Any, query: Any, noise: Noise, trial: Trial) -> tuple[Measured, ...]:
    """Measure a statistic with noise."""
    sides = (trial.first, trial.second, trial.absent)
    views = [
        None if side is None else _on_grid(noise, shaped(query, query.evaluate(side[0])))
        for side in sides
    ]
    return (_measured(noise, views, trial.released, trial),)


def _late(law: Any, query: Any, noise: Noise, trial: Trial) -> tuple[Measured, ...]:
    """Measure the steps of a descent, along a trajectory with noise in every step.

    The furthest step stands for all: each of them pays the same.
    """
    n_columns, width = query.shape
    decay = np.full((n_columns, 1), query.decay)
    decay[n_columns - query.n_free :] = 1.0
    point, worst, total = np.zeros(query.shape), None, 0.0
    sides = [side for side in (trial.first, trial.second, trial.absent) if side is not None]
    for step in range(len(trial.first)):
        views: list[Values | None] = []
        for side in sides:
            columns, part = query.touched(side[step])
            dense = np.zeros(query.shape)
            dense[columns] = _on_grid(noise, query.evaluate_at(part, point[columns]))
            views.append(dense.ravel())
        first = views[0]
        assert first is not None
        noisy = mechanisms.add_noise(first, noise, trial.bits)
        quiet = replace(trial, n_draws=0)
        found = _measured(noise, [*views, None][:3], noisy, quiet)
        total += found.loss
        if worst is None or found.distance > worst.distance:
            worst = found
        point = decay * (point + noisy.reshape(n_columns, width))
    assert worst is not None
    return (replace(worst, loss=total),)


def _draw(law: Any, query: Any, noise: Noise, trial: Trial) -> tuple[Measured, ...]:
    """Measure a draw of the exponential mechanism."""
    (one,), (other,) = trial.first, trial.second
    if hasattr(query, "parts"):
        return _draws(law, query, noise, trial)
    support = query.outcomes(one, other)
    released = np.atleast_2d(trial.released)
    if support is None:
        source = drawing_source(query, trial.bits)
        made = [query.draw(side, noise, source) for side in (one, other) for _ in range(_OUTCOMES)]
        outcomes = np.vstack([*made, released])
        weights = np.concatenate([np.ones(_OUTCOMES), np.zeros(_OUTCOMES + 1)])
    else:
        outcomes, weights = support
        outcomes = np.vstack([outcomes, released])
        weights = np.append(weights, 0.0)
    scores = [np.asarray(query.scores_of(side, outcomes), dtype=float) for side in (one, other)]
    # only differences matter, and totals may be large
    change = scores[1] - scores[0]
    inverse = 0.0 if math.isinf(noise.scale) else 1 / noise.scale
    distance = float(change.max() - change.min())
    if support is None:
        # the ratio of the two totals is a mean over draws of the first law
        ratio = float(logsumexp(-inverse * change, b=weights) - math.log(_OUTCOMES))
    else:
        ratio = float(
            logsumexp(-inverse * scores[1], b=weights) - logsumexp(-inverse * scores[0], b=weights)
        )
    loss = inverse * float(change[-1]) + ratio
    price = Price(epsilon=distance * inverse, bounded_range=True)
    return (Measured(distance, price, loss, "spread", (scores[0], scores[1])),)


def _draws(law: Any, query: Any, noise: Noise, trial: Trial) -> tuple[Measured, ...]:
    """Measure draws that are independent given the rows: spreads and losses add up."""
    given = np.split(np.ravel(trial.released), len(query.parts))
    found = [
        _draw(law, part, noise, replace(trial, released=own))[0]
        for part, own in zip(query.parts, given, strict=True)
    ]
    distance, loss = sum(part.distance for part in found), sum(part.loss for part in found)
    inverse = 0.0 if math.isinf(noise.scale) else 1 / noise.scale
    sides = [part.inputs for part in found if part.inputs is not None]
    first, second = (np.concatenate([side[i] for side in sides]) for i in (0, 1))
    price = Price(epsilon=distance * inverse, bounded_range=True)
    return (Measured(distance, price, loss, "spread", (first, second)),)


def _threshold(law: Any, query: Any, noise: Any, trial: Trial) -> tuple[Measured, ...]:
    """Measure sums over columns that are not known beforehand."""
    pairs = [touched(query.evaluate(side[0]), query.size) for side in (trial.first, trial.second)]
    columns = np.union1d(pairs[0][0], pairs[1][0])
    sums, there = np.zeros((2, len(columns))), np.zeros((2, len(columns)), dtype=bool)
    for i, (own, values) in enumerate(pairs):
        place = np.searchsorted(columns, own)
        sums[i, place], there[i, place] = _on_grid(noise, values), True
    both, tau = there.all(axis=0), float(noise.threshold)
    # the chance that columns of one data set alone are released
    hidden = np.array([_log_hidden(noise, tau, sums[i, there[i] & ~both]).sum() for i in (0, 1)])
    stray, other_stray = -np.expm1(hidden)
    distance = float(np.linalg.norm(sums[0, both] - sums[1, both]))
    left = float(noise.delta - max(stray, other_stray))
    epsilon = math.inf
    if left > 0:
        epsilon = gdp_epsilon(distance / noise.scale, left) - float(hidden.min())
    price = Price(epsilon=epsilon, delta=float(noise.delta))
    loss = _threshold_loss(noise, columns, sums, there, trial.released)
    scaled = None
    if trial.n_draws:
        at = np.zeros(1) if not len(pairs[0][1]) else pairs[0][1]
        scaled = _redrawn(noise, len(at), trial, at)
    # in the norm that is stated: what a row moves altogether
    moved = float(np.linalg.norm(sums[0] - sums[1]))
    return (Measured(moved, price, loss, "l2", (sums[0], sums[1]), scaled),)


def _log_hidden(noise: Any, tau: float, sums: Values) -> Values:
    """Return the logarithm of the chance that sums stay within the threshold."""
    upper = (tau - sums) / noise.scale
    if not noise.two_sided:
        return np.asarray(log_ndtr(upper))
    lower = (-tau - sums) / noise.scale
    with np.errstate(under="ignore"):
        outside = np.logaddexp(log_ndtr(-upper), log_ndtr(lower))
        return np.asarray(np.log(-np.expm1(outside)))


def _threshold_loss(
    noise: Any, columns: NDArray[Any], sums: Values, there: NDArray[np.bool_], released: Any
) -> float:
    """Return the privacy loss of columns that were released, and of those that were not."""
    shown = dict(zip(*beyond(np.asarray(released[0]), np.asarray(released[1]), noise), strict=True))
    sides = [0.0, 0.0]
    for place, column in enumerate(columns.tolist()):
        for i in (0, 1):
            value = sums[i, place]
            if column in shown:
                gap = (shown[column] - value) / noise.scale
                sides[i] += -gap * gap / 2 if there[i, place] else -math.inf
            elif there[i, place]:
                hidden = _log_hidden(noise, float(noise.threshold), np.array([value]))
                sides[i] += float(hidden[0])
    return sides[0] - sides[1]


def _objective(law: Any, query: Any, noise: Any, trial: Trial) -> tuple[Measured, ...]:
    """Measure a perturbed minimiser, and the error of the computed one.

    The point is the minimiser of the first data set for a term that is drawn here. The second
    data set has it for another term, and the two densities of the point are known.
    """
    linear, cover = noise.linear, noise.cover
    (one,), (other,) = trial.first, trial.second
    drawn = mechanisms.add_noise(np.zeros(query.size), linear, trial.bits)
    point = shaped(query, query.minimise(one, drawn))
    terms = [query.slope_at(side, point) for side in (one, other)]
    (gradient, log_det), (other_gradient, other_log_det) = terms
    distance = float(np.linalg.norm(gradient - other_gradient))
    bend = abs(log_det - other_log_det)
    if linear.law == "gaussian":
        epsilon = bend + gdp_epsilon(distance / linear.scale, linear.delta)
    else:
        epsilon = bend + distance / linear.scale
    loss = _log_density(linear, gradient) - _log_density(linear, other_gradient)
    loss += log_det - other_log_det
    scaled = _redrawn(linear, query.size, trial, np.zeros(query.size)) if trial.n_draws else None
    exact = Measured(
        distance, Price(epsilon=epsilon, delta=linear.delta), loss, "l2",
        (gradient, other_gradient), scaled,
    )  # fmt: skip
    # terms for which the two exact minimisers are this one point
    errors = [
        _on_grid(cover, shaped(query, query.minimise(side, drawn + gradient - own)))
        for side, (own, _) in zip((one, other), terms, strict=True)
    ]
    noisy = mechanisms.add_noise(errors[0], cover, trial.bits)
    return exact, _measured(cover, [*errors, None], noisy, trial)


def _rows_that_differ(query: Any, one: Any, other: Any) -> tuple[Values, Values, NDArray[Any]]:
    """Return the vectors that rows report, and the places where two data sets differ."""
    vectors = query.what.vectors
    sides = [np.concatenate([vectors(chunk) for chunk in side.chunks]) for side in (one, other)]
    if sides[0].shape != sides[1].shape:
        raise ValueError("the data sets do not have equally many rows that report.")
    return sides[0], sides[1], np.flatnonzero((sides[0] != sides[1]).any(axis=1))


def _reports(law: Any, query: Any, noise: Noise, trial: Trial) -> tuple[Measured, ...]:
    """Measure reports that rows make on their own."""
    return (_of_reports(query, noise, trial, trial.released),)


def _of_reports(query: Any, noise: Noise, trial: Trial, released: Any) -> Measured:
    one, other, places = _rows_that_differ(query, trial.first[0], trial.second[0])
    if not len(places):
        return Measured(0.0, Price(sampling=noise.sampling), 0.0, "log-ratio")
    # more rows than one: nobody has promised anything about that
    ratios, law = None, None
    if len(places) == 1:
        ratios, law = ratios_of_reports(query, one[places], other[places], trial.bits)
    if ratios is None:
        price = Price(epsilon=math.nan if len(places) == 1 else math.inf, sampling=noise.sampling)
        return Measured(price.epsilon, price, math.nan, "log-ratio")
    worst = float(np.abs(ratios).max())
    # who takes part is no secret: whoever did not has lost nothing
    loss = 0.0
    if released is not None and len(released) == len(one):
        loss = math.nan if law is None else float(law(released[places])[0])
    price = Price(epsilon=worst, sampling=noise.sampling)
    return Measured(worst, price, loss, "log-ratio", (np.zeros(len(ratios)), ratios))


def ratios_of_reports(
    query: Any, own: Values, other: Values, bits: Bits
) -> tuple[Values | None, Callable[[Values], Values] | None]:
    """Return the log-ratios of the laws of a row's report, at reports that are drawn here.

    Parameters
    ----------
    query : LocalReports
        Whose reports they are.
    own, other : ndarray of shape (1, size)
        What the row reports in the two data sets.
    bits : Bits
        Source of random words.

    Returns
    -------
    ratios : ndarray or None
        At reports of either vector; None if the randomiser cannot say. Random choices that
        everybody may know, such as a rotation, are the same for all.
    law : callable or None
        Maps other reports to their log-ratios; None if these depend on such choices, of which
        no report tells.
    """
    randomiser, source = query.randomiser, drawing_source(query, bits)
    vectors = np.vstack([own, other])
    made_by = randomiser
    if hasattr(randomiser, "given"):
        made_by, carried, _ = randomiser.given(source)
        vectors = carried(vectors)
    if not hasattr(made_by, "log_ratio"):
        return None, None

    def law(reports: Values) -> Values:
        ratios: Values = made_by.log_ratio(reports, *vectors)
        return ratios

    made = [made_by.report(np.repeat(v[None], _REPORTS, axis=0), source) for v in vectors]
    return law(np.vstack(made)), law if made_by is randomiser else None


def _reported_sum(law: Any, query: Any, noise: Any, trial: Trial) -> tuple[Measured, ...]:
    """Measure reports of which a noisy sum is released, and the sum.

    All rows but the one in question make the same reports.
    """
    own, reported = noise
    sides = [trial.first, trial.second] + ([] if trial.absent is None else [trial.absent])
    made = [made_reports(query.reports, reported, _Again(side[0], trial.bits)) for side in sides]
    _, _, places = _rows_that_differ(query.reports, trial.first[0], trial.second[0])
    mixed = made[0].copy()
    mixed[places] = made[1][places]
    tables: list[Any] = [made[0], mixed, None]
    if trial.absent is not None:
        # whoever is not there reports nothing
        kept = np.delete(made[0], places, axis=0)
        tables[2] = kept if len(made[2]) == len(kept) else None
    views = [
        None if table is None else _on_grid(own, shaped(query, query.sum_of.total(table)))
        for table in tables
    ]
    local = _of_reports(query.reports, reported, trial, made[0])
    return local, _measured(own, views, trial.released, trial)


class _Again:
    """Rows that are read once more."""

    def __init__(self, rows: Any, bits: Bits) -> None:
        self._rows, self.bits, self.n_rows = rows, bits, int(rows.n_rows)

    def read(self) -> Any:
        return self._rows


#: how releases by the laws of the library are measured; a new law adds a line
MEASURES: dict[type[Law], Measures] = {
    Additive: _additive,
    ExponentialMechanism: _draw,
    StabilityHistogram: _threshold,
    LateNoise: _late,
    ObjectivePerturbation: _objective,
    LocalMechanism: _reports,
    ReportedSum: _reported_sum,
}

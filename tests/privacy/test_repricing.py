# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Prices: every line is priced once more, and one that costs more than it declares is refused."""

import contextlib
import math
from dataclasses import dataclass, replace
from unittest import mock

import numpy as np
import pytest

from skdp import DPLogisticRegression, DPMean
from skdp.exceptions import BudgetError
from skdp.privacy import (
    ExponentialMechanism,
    GaussianMechanism,
    Influence,
    KNormMechanism,
    LaplaceMechanism,
    LateNoise,
    LocalMechanism,
    Noise,
    ObjectivePerturbation,
    ReportedSum,
    SampledGaussianMechanism,
    Sampling,
    Sensitivity,
    StabilityHistogram,
    SumOfReports,
)
from skdp.privacy.kernel.ledger import Record
from skdp.privacy.kernel.mechanisms import Law, Line, Price
from skdp.privacy.laws.histogram import SparseSensitivity
from skdp.privacy.laws.search import DeclaredTotal
from tests import _audit
from tests.privacy.test_curator import Door, Total, curator_of

SAMPLING = Sampling("poisson", 2, 1.0)
FACTS = Sensitivity(4.0, 2.0, 10.0, "example", spread=0.5)
INFLUENCE = Influence(2, 1.0, 1, 0.1, 0.2, 1.0, 1e-6, 3.0, "example")
SPARSE = SparseSensitivity(math.inf, 2.0, 1000.0, "example", rows=2, columns=3)


@dataclass(frozen=True)
class Stated:
    """A query that states what it is told to, and never gets as far as its rows."""

    facts: object = FACTS
    name: str = "stated"
    size: int = 4

    def sensitivity(self, adjacency, n_rows):
        return self.facts


LAWS = {
    "gaussian": (GaussianMechanism(0.3), Stated()),
    "laplace": (LaplaceMechanism(0.3), Stated()),
    "k-norm": (KNormMechanism(0.3), Stated()),
    "sampled": (SampledGaussianMechanism(0.3, SAMPLING), Stated()),
    "late": (LateNoise(SampledGaussianMechanism(0.3, SAMPLING), 3, 1), Stated()),
    "exponential": (ExponentialMechanism(0.3), Stated()),
    "local": (LocalMechanism(0.6), Stated()),
    "reported sum": (
        ReportedSum(SampledGaussianMechanism(0.3, SAMPLING), LocalMechanism(0.6, SAMPLING)),
        SumOfReports(Stated(), Stated()),
    ),
    "objective": (ObjectivePerturbation(0.9, 1e-7), Stated(INFLUENCE)),
    "pure objective": (ObjectivePerturbation(0.9, 0.0), Stated(INFLUENCE)),
    "histogram": (StabilityHistogram(0.9, 1e-7), Stated(SPARSE)),
}
every_law = pytest.mark.parametrize("law", LAWS)
#: reports have no scale that says what they cost: the query states it
SCALED = [name for name in LAWS if name != "local"]


def lines_of(name, change=lambda noise: noise):
    law, query = LAWS[name]
    facts = query.sensitivity("replace-one", 2)
    lines = law.lines(query, facts, law.calibrate(facts, query.size))
    return [line._replace(noise=change(line.noise)) for line in lines]


def appended(lines):
    """Return the record of lines, or raise: what is charged goes through here."""
    curator, record = curator_of(Door()), Record()
    for line in lines:
        record = record.append(curator._charging.terms.release(line, None))
    return record


@every_law
def test_a_line_that_declares_what_it_costs_is_accepted(law):
    lines = lines_of(law)
    assert len(appended(lines).releases) == len(lines)
    for line in lines:
        declared, actual = line.noise.price, line.noise.actual(line.stated, line.size)
        assert declared.covers(actual)
        # no more than rounding, and what a search on a curve leaves, is given away
        assert actual.mu >= declared.mu * (1 - 1e-11)
        assert actual.epsilon >= declared.epsilon * (1 - 1e-11)
        assert actual.delta >= 0.99 * declared.delta or law == "histogram"


@pytest.mark.parametrize("law", SCALED)
@pytest.mark.parametrize("factor", [0.5, 0.9, 0.0, math.nan, -1.0])
def test_less_noise_than_was_paid_for_is_refused(law, factor):
    lines = lines_of(law, lambda noise: replace(noise, scale=noise.scale * factor))
    with pytest.raises(BudgetError, match="declares the price"):
        appended(lines)


@every_law
@pytest.mark.parametrize("factor", [0.5, 0.999])
def test_a_lower_price_than_the_noise_has_is_refused(law, factor):
    def cheaper(noise):
        return replace(noise, mu=noise.mu * factor, epsilon=noise.epsilon * factor)

    with pytest.raises(BudgetError, match="declares the price"):
        appended(lines_of(law, cheaper))


@pytest.mark.parametrize("law", ["gaussian", "laplace", "k-norm", "sampled", "late"])
def test_a_coarser_grid_than_was_paid_for_is_refused(law):
    with pytest.raises(BudgetError, match="declares the price"):
        appended(lines_of(law, lambda noise: replace(noise, grid=noise.grid * 2**22)))


@pytest.mark.parametrize("law", SCALED)
def test_a_larger_sensitivity_than_the_noise_covers_is_refused(law):
    lines = [line._replace(stated=1.01 * line.stated) for line in lines_of(law)]
    with pytest.raises(BudgetError, match="declares the price"):
        appended(lines)


def test_a_price_without_batches_is_not_that_of_all_rows():
    # all rows are read, and the line says that a batch is
    (line,) = lines_of("gaussian", lambda noise: replace(noise, sampling=SAMPLING))
    with pytest.raises(BudgetError, match="prices other batches than it draws"):
        curator_of(Door()).release(Stated(), Wrong(line))


def test_thresholds_and_deltas_are_part_of_the_price():
    for change in ({"threshold": 4.0}, {"delta": 1e-9}, {"threshold": None}, {"two_sided": False}):
        with pytest.raises(BudgetError, match="declares the price"):
            appended(lines_of("histogram", lambda noise, c=change: replace(noise, **c)))
    with pytest.raises(BudgetError, match="declares the price"):
        appended(lines_of("objective", lambda noise: replace(noise, delta=noise.delta / 2)))


def test_the_influence_that_was_stated_is_the_one_that_is_priced():
    first, second = lines_of("objective")
    weaker = replace(INFLUENCE, reach=0.5)
    first = first._replace(noise=replace(first.noise, influence=weaker))
    with pytest.raises(BudgetError, match="declares the price"):
        appended([first, second])


def test_a_law_that_nobody_knows_has_no_price():
    for name in ("laplacian", "exponential", "local", "search"):
        noise = Noise(name, 1.0, 1.0, 1.0, 1.0, mu=0.0, epsilon=0.1)
        with pytest.raises(BudgetError, match="no price is known"):
            appended([Line("sum", 1, noise, 1.0, "none")])
    # a total that was added up elsewhere says so by its class
    total = DeclaredTotal("search", 0.0, 1.0, math.inf, math.inf, 0.0, 0.5, 1e-7)
    assert appended([Line("search", 1, total, math.inf, "none")]).epsilon(1e-6) == 0.5


class Wrong(Law):
    """A law that says what it is told to, and must not get as far as rows."""

    def __init__(self, *lines):
        self.told = lines

    def calibrate(self, sensitivity, size):
        return None

    def lines(self, query, sensitivity, noise):
        return self.told

    def release(self, query, noise, source):
        raise AssertionError("it was charged")


@pytest.mark.parametrize("told", [(), (Line("sum", 1, None, 1.0, "none"),)])
def test_a_law_that_does_not_say_what_it_costs_is_refused(told):
    door = Door()
    with pytest.raises(BudgetError, match="does not say what it costs"):
        curator_of(door).release(Total(), Wrong(*told))
    with pytest.raises(BudgetError, match="neither a law nor paid for"):
        curator_of(door).release(Total(), object())
    assert door.opened == 0


def test_prices_cover_what_is_of_their_kind():
    price = Price(mu=0.5)
    assert price.covers(Price(mu=0.5))
    assert not price.covers(Price(mu=0.5000001))
    # neither batches nor the range of the loss can be declared away
    assert not Price(mu=0.5, sampling=SAMPLING).covers(price)
    assert not price.covers(Price(epsilon=0.1))
    assert not Price(epsilon=0.5, bounded_range=True).covers(Price(epsilon=0.5))
    assert not price.covers(Price(mu=math.nan))


# -- a calibrator that errs, in a fit ------------------------------------------------------------

FITS = {
    "mean": (DPMean(epsilon=1.0), GaussianMechanism),
    "pure mean": (DPMean(epsilon=1.0, delta=0.0, mechanism="laplace"), LaplaceMechanism),
    "classifier": (DPLogisticRegression(solver="gd", max_iter=3), GaussianMechanism),
    "batches": (DPLogisticRegression(solver="sgd", max_iter=3), SampledGaussianMechanism),
}
ROWS = np.linspace(-0.5, 0.5, 40).reshape(20, 2), np.arange(20) % 2


def halving(law):
    """Return a patch with which a law calibrates half the noise that it declares a price for."""
    real = law.calibrate

    def halved(self, sensitivity, size):
        noise = real(self, sensitivity, size)
        return replace(noise, scale=noise.scale / 2)

    return mock.patch.object(law, "calibrate", halved)


@pytest.mark.parametrize("fit", FITS)
def test_a_calibrator_that_halves_the_noise_is_refused(fit):
    estimator, law = FITS[fit]
    with halving(law), pytest.raises(BudgetError, match="its noise is not the one"):
        estimator.fit(*ROWS)


@pytest.mark.parametrize("fit", FITS)
def test_without_a_second_price_the_calibrator_would_not_be_found_out(fit):
    # the mutant of this check: the ledger believes the law, and half of the noise is added
    estimator, law = FITS[fit]

    def believing(noise, stated, size):
        return noise.price

    kinds = [kind for kind in (Noise, *Noise.__subclasses__()) if "actual" in vars(kind)]
    honest = _audit.noise_stream(estimator.fit, *ROWS)
    with halving(law), contextlib.ExitStack() as stack:
        for kind in kinds:
            stack.enter_context(mock.patch.object(kind, "actual", believing))
        erring = _audit.noise_stream(estimator.fit, *ROWS)
    assert len(honest) == len(erring) > 0
    for one, other in zip(honest, erring, strict=True):
        assert other.noise.scale == one.noise.scale / 2
        assert other.noise.price == one.noise.price

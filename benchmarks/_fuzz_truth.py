# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Releases that were really made while something was fitted, and their true price.

The releases of all private fits are recorded where laws make them, so that none can hide in a
wrapper. A second fit to a neighbouring data set gets the same outputs, and every release is
measured. A row counts as often as it was read: the distances are those of what entered each fit.

The composition of Gaussian and of pure releases is written down here once more, and that of all
others is the ledger's. What depends on no composition comes besides: the privacy loss at the
outputs of this very run exceeds epsilon + t with a chance of at most delta / (1 - exp(-t)).
"""

import contextlib
import itertools
import math
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import log_ndtr
from sklearn import config_context

from skdp.audit import _trace
from skdp.model_selection._search import DPSearchCV
from skdp.privacy.kernel import samplers
from skdp.privacy.kernel.samplers import Bits, SeededBits
from skdp.privacy.laws.local_reports import LocalMechanism, ReportedSum
from skdp.privacy.laws.measures import _rows_that_differ, ratios_of_reports
from skdp.privacy.laws.search import Search

# rounding of prices, which are rounded up by more; of delta, which is steeper
HAIR, DELTA_HAIR = 1 + 1e-9, 1 + 1e-6
#: what a loss may exceed epsilon by, with a chance of 1.1 delta
BEYOND = 3.0


class Recording(_trace._Run):
    """The releases of one run, and whose they are."""

    def __init__(self, past=None):
        super().__init__(past)
        self.owners, self.inside = [], []
        self.depth, self.drawn, self.searches = 0, [], []

    def release(self, made_by, law, query, noise, source):
        """Record one release, or replay it."""
        released = super().release(made_by, law, query, noise, source)
        self.owners.append(source._curator)
        self.inside.append(self.depth > 0)
        return released

    def lines(self):
        """Return the lines that all curators outside of searches have on their ledgers."""
        owners = {id(o): o for o, inner in zip(self.owners, self.inside, strict=True) if not inner}
        return [line for owner in owners.values() for line in owner.ledger.releases]


@contextlib.contextmanager
def recorded(run, seed):
    """Record in `run` what is fitted here; noise of the operating system follows from `seed`."""
    own_draw, own_words = samplers.SystemBits._draw, Bits.words
    own_rows = SeededBits.of_rows
    # as the class has it: what it hands out is no longer the descriptor that asks for weights
    fit, started, n_made = vars(DPSearchCV)["fit"], list[Bits](), itertools.count()

    def system_init(self):
        Bits.__init__(self)
        # by the order in which they are made: a replay draws from fewer of them
        self._made = np.random.Philox(np.random.SeedSequence([seed, next(n_made)]))

    def system_words(self, size):
        return self._made.random_raw(size) if hasattr(self, "_made") else own_draw(self, size)

    def noted_words(self, size):
        words = own_words(self, size)
        # rows that report in turn have streams of their own, without an identity
        if self not in started and len(words) and not hasattr(self, "_met"):
            started.append(self)
            run.drawn.append(("system", words[:4].tobytes()))
        elif self not in started and len(words) and getattr(self, "identity", None):
            started.append(self)
            run.drawn.append(("seeded", words[:4].tobytes()))
        return words

    def noted_rows(self, rows):
        if self not in started:
            started.append(self)
            run.drawn.append(("seeded", str(self._entropy).encode()))
        return own_rows(self, rows)

    def deeper(self, *args, **kwargs):
        run.depth += 1
        try:
            return fit.__get__(self)(*args, **kwargs)
        finally:
            run.depth -= 1

    init = Search.__init__

    def noted_search(self, *args, **kwargs):
        init(self, *args, **kwargs)
        if run.depth <= 1:
            run.searches.append(self.ledger.releases[0])

    samplers.SystemBits.__init__ = system_init
    samplers.SystemBits._draw, Bits.words = system_words, noted_words
    DPSearchCV.fit, Search.__init__ = deeper, noted_search
    SeededBits.of_rows = noted_rows
    token = _trace._RUN.set(run)
    try:
        with _trace._standing_in_front(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # wrappers without a seed take this one
            np.random.seed(seed % 2**32)  # noqa: NPY002
            yield
    finally:
        _trace._RUN.reset(token)
        del samplers.SystemBits.__init__
        samplers.SystemBits._draw, Bits.words = own_draw, own_words
        DPSearchCV.fit, Search.__init__ = fit, init
        SeededBits.of_rows = own_rows


# Prices of what was measured.


def gaussian_delta(epsilon, mu):
    """Return the least delta of a Gaussian release with parameter mu, at epsilon."""
    if mu == 0:
        return 0.0
    first = math.exp(log_ndtr(-epsilon / mu + mu / 2))
    return first - math.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2))


@dataclass
class Truth:
    """What two coupled runs have shown.

    Parameters
    ----------
    releases : list of TracedRelease
        As measured; those inside of private searches are not among them.
    samplings : list
        How their batches were drawn.
    n_releases, n_unmeasured : int
        Of all, and those that have no measure.
    problems : list of str
        What may not happen if all that was released is private: a replay that asks something
        else, other attributes.
    shared : bool
        Whether two fits have drawn the same noise.
    seeded : bool
        Whether any noise is seeded.
    searches : list of Release
        What private searches declare for all that happened inside of them.
    worst_inside : float
        The largest measured over declared price of a release inside of a search.
    odd : list of str
        Noise that has not the law that is declared.
    """

    releases: list = field(default_factory=list)
    samplings: list = field(default_factory=list)
    n_releases: int = 0
    n_unmeasured: int = 0
    problems: list = field(default_factory=list)
    shared: bool = False
    seeded: bool = False
    searches: list = field(default_factory=list)
    worst_inside: float = 0.0
    odd: list = field(default_factory=list)

    @property
    def loss(self):
        """Privacy loss at the outputs, as far as it is known."""
        return sum(r.loss for r in self.releases if not r.hidden and not math.isnan(r.loss))

    def epsilon(self, delta, adjacency):
        """Return what was measured, composed as a ledger composes it, at a delta."""
        found, _ = _trace._composed(self.releases, self.samplings, adjacency, delta)
        return float(found)

    def beyond(self, epsilon, delta, adjacency):
        """Return by what a claim is contradicted; None if by nothing."""
        seen = [r for r in self.releases if not r.hidden and not math.isnan(r.epsilon_measured)]
        inside = [s.noise for s in self.searches]
        whole = all(s is None or s.reads_all for s in self.samplings)
        if self.loss > epsilon + (BEYOND if delta else epsilon * 1e-9 + 1e-12):
            return f"loss {self.loss:.6g} at these outputs"
        if not seen and not inside:
            return None
        if whole and not inside and all(r.mu for r in seen):
            mu = math.sqrt(math.fsum(r.reads * r.mu_measured**2 for r in seen))
            if gaussian_delta(epsilon, mu) > delta * DELTA_HAIR:
                return f"mu {mu:.6g}, delta {gaussian_delta(epsilon, mu):.3g} at that epsilon"
            return None
        if whole and not any(r.mu or r.delta for r in seen) and delta == 0:
            total = math.fsum(r.reads * r.epsilon_measured for r in seen)
            total += math.fsum(noise.epsilon for noise in inside)
            return f"epsilon {total:.6g}" if total > epsilon * HAIR else None
        measured = self.epsilon(delta, adjacency)
        if measured > epsilon * HAIR:
            return f"epsilon {measured:.6g} as a ledger composes it"
        # pure releases of one row that all point one way; no composition helps a search
        floor = max((noise.epsilon for noise in inside if noise.delta <= delta), default=0.0)
        return f"epsilon {floor:.6g} of a search" if floor > epsilon * HAIR else None


def places_that_differ(entry, other, bits, limit=2):
    """Return positions at which the rows of two runs differ, no more than `limit`."""
    rate, found = entry.law.sampling.rate, []

    def differ(positions):
        sides = [tuple(r.batch(positions, rate) for r in e.admitted[:1]) for e in (entry, other)]
        if hasattr(entry.law, "n_steps"):
            sides = [side * len(entry.admitted) for side in sides]
        trial = _trace.Trial(*sides, None, None, bits)
        measured = _trace.measure(entry.law, entry.query, entry.noise, trial)
        return any(m.distance != 0 for m in measured)

    def look(low, high):
        if len(found) >= limit or not differ(np.arange(low, high)):
            return
        if high - low == 1:
            found.append(low)
            return
        middle = (low + high) // 2
        look(low, middle)
        look(middle, high)

    look(0, entry.law.sampling.n_rows)
    return found


def reports_apart(entry, other, bits):
    """Return the largest sum of log-ratios of the reports of all rows that differ; or None."""
    one, two, places = _rows_that_differ(entry.query, entry.admitted[0], other.admitted[0])
    if len(places) < 2:
        return None
    total = 0.0
    for place in places:
        ratios, _ = ratios_of_reports(entry.query, one[[place]], two[[place]], bits)
        if ratios is None:
            return None
        total += float(np.abs(ratios).max())
    return total


def measured(first, second, adjacency, seed, n_draws=0):
    """Return the truth about two coupled runs, at the adjacency that is promised."""
    bits, truth = SeededBits(seed, "fuzz"), Truth()
    places, drawn = {}, set()
    truth.n_releases = len(first.entries)
    truth.searches = list(first.searches)
    words = Counter(first.drawn)
    truth.shared = any(count > 1 for (kind, _), count in words.items() if kind == "seeded")
    truth.seeded = any(kind == "seeded" for kind, _ in words)
    for i, (entry, other) in enumerate(zip(first.entries, second.entries, strict=False)):
        sampling, place, several = entry.law.sampling, None, False
        if any(batch is not None for batch in entry.batches):
            key = (id(entry.admitted[0]), id(other.admitted[0]))
            if not places.get(key):
                # early points may hide a difference that later ones show
                places[key] = places_that_differ(entry, other, bits)
            place = places[key][0] if places[key] else None
            several = len(places[key]) > 1
        kind = (type(entry.law), getattr(entry.noise, "law", None), entry.query.name)
        draws = 0 if kind in drawn else n_draws
        drawn.add(kind)
        trial = _trace._trial(entry, other, place, bits, draws)
        try:
            found = _trace.measure(entry.law, entry.query, entry.noise, trial)
        except ValueError as error:
            # fits to other numbers of rows, which no total with all parts may have
            truth.problems.append(f"release {i + 1} cannot be compared: {error}")
            truth.n_unmeasured += 1
            continue
        lines = _trace._facts_of(entry, adjacency, entry.n_rows)
        if isinstance(entry.law, LocalMechanism) and math.isinf(found[0].distance):
            total = reports_apart(entry, other, bits)
            far = math.nan if total is None else total
            price = replace(found[0].price, epsilon=far)
            found = (replace(found[0], distance=far, price=price, loss=math.nan),)
        elif isinstance(entry.law, ReportedSum) and math.isinf(found[0].distance):
            found = tuple(replace(m, loss=math.nan) for m in found)
        for line, one in zip(lines, found, strict=True):
            told = _trace._told(line, one, len(entry.admitted), sampling)
            if told.noise_level is not None and told.noise_level < _trace.FALSE_ALARM:
                truth.odd.append(f"{told.query}: noise of another law (p={told.noise_level:.1g})")
            if several:
                # of several copies of a row in secret batches only one is moved here
                told = replace(told, mu_measured=math.nan, epsilon_measured=math.nan)
                told = replace(told, loss=math.nan)
            if math.isnan(told.epsilon_measured):
                truth.n_unmeasured += 1
            if first.inside[i]:
                if not math.isnan(told.ratio):
                    truth.worst_inside = max(truth.worst_inside, told.ratio)
                continue
            truth.releases.append(told)
            truth.samplings.append(sampling)
    return truth


# What must not depend on private rows.

#: attributes that differ between two runs for reasons that have nothing to do with rows
IGNORED = {"budget", "budget_heads", "_made", "memory"}


def differs(one, other):
    """Return where two fits differ, or None if all that they hold is equal to the last bit."""
    return _trace.difference(one, other, "fitted", IGNORED)


def coupled(run_on, pair, seed, null=False):
    """Return what `run_on` gave for both data sets of a pair, and the two recordings.

    Parameters
    ----------
    run_on : callable
        Builds and fits everything anew for the arguments of a fit, and returns it.
    pair : tuple of tuple
        Two data sets.
    seed : int
        Of all that is random.
    null : bool
        Whether one row of the second one is a null row, which is NaN.

    Returns
    -------
    fitted, first : object, Recording
        Of the first data set.
    replay : callable
        Makes the second run; returns (fitted, Recording, problem or None).
    """
    first = Recording()
    with recorded(first, seed), config_context(assume_finite=null):
        fitted = run_on(*pair[0])

    def replay():
        second, other, problem = Recording(first.entries), None, None
        with recorded(second, seed), config_context(assume_finite=null):
            try:
                other = run_on(*pair[1])
            except _trace._Diverged as error:
                problem = str(error)
            except Exception as error:
                problem = f"the fit to the neighbour raised a {type(error).__name__}: {error}"
        if problem is None and len(second.entries) < len(first.entries):
            problem = f"{len(second.entries)} releases of {len(first.entries)} on the neighbour"
        return other, second, problem

    return fitted, first, replay

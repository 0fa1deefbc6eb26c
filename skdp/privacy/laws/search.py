# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Gate of a search: its secrets, and its line on the ledger."""

import math
import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.kernel.accounting import (
    BudgetError,
    SeededNoiseWarning,
    check_choice,
    gdp_epsilon,
    level_of_caller,
)
from skdp.privacy.kernel.batches import fixed_subset
from skdp.privacy.kernel.curator import Curator
from skdp.privacy.kernel.ledger import Record, Release, sum_up
from skdp.privacy.kernel.mechanisms import Noise, Price
from skdp.privacy.kernel.samplers import Bits, make_bits
from skdp.privacy.laws.selection import SecretSubset, SelectionPlan

Positions = NDArray[np.int64]
# any delta will do for a curator that is bound by a Gaussian-DP parameter
_DELTA = 1e-6


@dataclass(frozen=True)
class Winner:
    """Contents of a release that is a whole search.

    Parameters
    ----------
    subset : SecretSubset or None
        Law of the counted runs; None if all count.
    mu_run, mu_refit : float or None
        Gaussian-DP parameters of a run, and of the second fit of the winner; None for none.
    """

    subset: SecretSubset | None
    mu_run: float | None
    mu_refit: float | None


class DeclaredTotal(Noise):
    """A declared total of releases without their own noise for a price.

    No curator releases anything by it; it is for whole fits and whole searches on a ledger.
    """

    def actual(self, stated: float, size: int) -> Price:
        """Return the price as it is declared."""
        return self.price


class Search:
    """Charge for a search, keep its secrets, and guard the rows that score its runs.

    Parameters
    ----------
    plan : SelectionPlan
        Plan with the prices of the search.
    n_rows, held_out : int
        Public numbers of rows and of held-out rows. 0 are held out with public scores, otherwise
        at least 1 and not all of them.
    adjacency : {"replace-one", "zero-out"}
        Adjacency of every fit.
    random_state, purpose : None, int, RandomState or Generator, and str
        As for a `Curator`.
    budget : object, default=None
        Budget shared by several searches and curators; its `charge` takes all of the plan, or
        raises.
    assumptions : tuple of str, default=()
        Facts read from the data in advance and assumed public.
    unit : {"row", "group"}, default="row"
        Protected unit; with "group" the numbers and positions are for groups.

    Raises
    ------
    ValueError
        If an argument is unusable.
    BudgetError
        If less is left in the shared budget.
    """

    def __init__(
        self,
        plan: SelectionPlan,
        *,
        n_rows: int,
        held_out: int,
        adjacency: str,
        random_state: Any,
        purpose: str,
        budget: Any = None,
        assumptions: tuple[str, ...] = (),
        unit: str = "row",
    ) -> None:
        check_choice("adjacency", adjacency, ("replace-one", "zero-out"))
        check_choice("unit", unit, ("row", "group"))
        n_rows, held_out = operator.index(n_rows), operator.index(held_out)
        if not (held_out == 0 < n_rows if plan.public_scores else 0 < held_out < n_rows):
            needed = "0, for scores are public" if plan.public_scores else "in [1, n_rows)"
            raise ValueError(f"held_out must be {needed}; got {held_out} of {n_rows} rows.")
        self.plan, self._purpose = plan, purpose
        self._n_rows, self._held_out, self._adjacency = n_rows, held_out, adjacency
        self._unit = unit
        self._bits = make_bits(random_state, f"{purpose}, search")
        release = _line(plan, adjacency, unit, self._bits)
        self._ledger = Record(assumptions=assumptions).append(release)
        if budget is not None:
            # all at once, before a row is admitted; what fails from here on has been paid for
            epsilon, delta = plan.spent
            facts = {"adjacency": adjacency, "unit": unit, "stream": release.stream}
            charge = budget.charge(epsilon, delta, mu=None, label=purpose, **facts)
            self._ledger = self._ledger.charged_as(charge)
        # one key for all streams that hang on the run, not on the order of calls
        self._key = int.from_bytes(self._bits.words(2).tobytes(), "little")
        self._seeds, self._given = dict[int, Bits](), set[int]()
        self._scored = dict[int | None, object]()
        self._split, self._counted = self._draw_split(), self._draw_counted()
        if self._bits.seeded:
            warnings.warn(
                "random_state is set: anybody who knows it can reproduce the search, with its "
                "noise and its secret choice of the runs that count. Use random_state=None for a "
                "real release.",
                SeededNoiseWarning,
                stacklevel=level_of_caller(),
            )

    @property
    def ledger(self) -> Record:
        """One release: the whole search."""
        return self._ledger

    def _draw_split(self) -> tuple[Positions, Positions]:
        held_out = fixed_subset(self._n_rows, self._held_out, self._bits)
        trains = np.ones(self._n_rows, dtype=bool)
        trains[held_out] = False
        return np.flatnonzero(trains), held_out

    def _draw_counted(self) -> NDArray[np.bool_]:
        counted = np.ones(self.plan.n_candidates, dtype=bool)
        if self.plan.subset is not None:
            counted[:] = False
            counted[self.plan.subset.choose(self._bits)] = True
        return counted

    def split(self) -> tuple[Positions, Positions]:
        """Return the training and the held-out rows, the same at every call.

        Returns
        -------
        train, held_out : ndarray of int
            Sorted positions. The subset is uniform among subsets of its size, and drawn
            independently of the data. With public scores all rows train.
        """
        return self._split

    def best(self, scores: Any) -> int:
        """Return the winning run: the first counted run with the largest score.

        Parameters
        ----------
        scores : array-like of shape (n_candidates,)
            Scores of all runs, in the order of the candidates; released, or public. Runs that do
            not count are made and scored too, so time does not reveal them.

        Returns
        -------
        run : int
            Position of the winner, the only release about the scores and the counted runs. Not for
            "all" with private scores, where the winner is drawn.
        """
        scores = np.asarray(scores, dtype=float)
        if scores.shape != self._counted.shape:
            raise ValueError(f"all {len(self._counted)} runs must be scored; got {scores.shape}.")
        return int(np.argmax(np.where(self._counted, scores, -np.inf)))

    def seed(self, run: int) -> int:
        """Return a fresh seed below 2^32 for a seeded estimator inside of a run.

        Parameters
        ----------
        run : int
            Position of a run, or the number of runs for the fit of the winner.

        Returns
        -------
        seed : int
            A different seed at every call, for every run.
        """
        run = operator.index(run)
        if run not in self._seeds:
            self._seeds[run] = make_bits(self._key, f"{self._purpose}, seeds of run {run}")
        while True:
            seed = int(self._seeds[run].words(1)[0]) >> 32
            if seed not in self._given:
                self._given.add(seed)
                return seed

    def score_curator(
        self, admit: Callable[[], Any], n_held_out: int, run: int | None = None
    ) -> Curator:
        """Return the curator of the held-out rows, with the budget for scoring one run.

        Parameters
        ----------
        admit : callable
            Returns the held-out rows, forced into their public domain.
        n_held_out : int
            Their number, as in `split`.
        run : int or None
            Position of a run. None for "all": the budget then is that of the choice and of the
            winner's score.

        Returns
        -------
        curator : Curator
            With exactly the budget of ``plan.score_mechanism``, for "all" with that of
            ``plan.choice_mechanism`` besides.

        Raises
        ------
        ValueError
            If there is no such run, or not so many rows are held out.
        BudgetError
            If scores are public, or the score of this run was asked for before.
        """
        plan, mu = self.plan, None
        if plan.public_scores:
            raise BudgetError("scores are public, no private score is paid for.")
        if n_held_out != self._held_out:
            raise ValueError(f"{self._held_out} rows are held out; got n_held_out={n_held_out!r}.")
        run = None if run is None else operator.index(run)
        if run not in ([None] if plan.subset is None else range(plan.n_candidates)):
            raise ValueError("run must be the position of a run, or None for strategy 'all'.")
        # in one step, whatever other threads do
        if self._scored.setdefault(run, token := object()) is not token:
            raise BudgetError("the score of this run was asked for before.")
        if plan.epsilon_score is not None:
            price = (sum_up([(plan.epsilon_choice or 0.0, 1), (plan.epsilon_score, 1)]), 0.0)
        elif plan.mu_run is not None:
            mu = plan.mu_run
            price = (max(gdp_epsilon(mu, _DELTA), 1e-300), _DELTA)
        else:
            assert plan.epsilon_run is not None
            price = (plan.epsilon_run, 0.0)
        with warnings.catch_warnings():
            # said once, for the whole search
            warnings.simplefilter("ignore", SeededNoiseWarning)
            return Curator(
                admit,
                n_rows=n_held_out,
                epsilon=price[0],
                delta=price[1],
                adjacency=self._adjacency,
                random_state=self._key if self._bits.seeded else None,
                purpose=f"{self._purpose}, score of run {run}",
                mu=mu,
                unit=self._unit,
            )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a search holds secrets and cannot be pickled or copied.")


def _line(plan: SelectionPlan, adjacency: str, unit: str, bits: Bits) -> Release:
    """Return the search as one release."""
    runs = f"{plan.n_candidates} runs"
    if plan.subset is not None:
        runs += f", a secret subset counts ({plan.subset.mean:.3g} expected)"
    scores = "public rows" if plan.public_scores else "held-out rows"
    again = ", and its second fit on all rows" if plan.refit_share else ""
    theorem = "every row trains or scores (Proposition 72)"
    if plan.subset is not None:
        theorem = "the winner of a secret subset of the runs (Proposition 71)"
    epsilon, delta = plan.spent
    return Release(
        query=f"best of {plan.n_candidates} candidates by {scores}, {runs}{again}",
        size=1,
        adjacency=adjacency,
        stated_sensitivity=math.inf,
        theorem=theorem,
        noise=DeclaredTotal("search", 0.0, 1.0, math.inf, math.inf, 0.0, epsilon, delta),
        numerics=f"exact choice of runs, {bits.origin}",
        seeded=bits.seeded,
        unit=unit,
        winner=Winner(plan.subset, plan.mu_run, plan.mu_refit),
        stream=bits.identity,
    )

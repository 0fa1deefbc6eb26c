# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The runs of a search: fits with a share of the budget, and what is released of them.

`run_search` alone sees private rows, and what it returns has been paid for on the ledger of
the search.
"""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from skdp._quantiles import rate
from skdp._rows.sums import CHUNKS_PER_BLOCK, SMALLEST_CHUNK, sum_over
from skdp._sklearn import take_rows
from skdp.exceptions import BudgetError
from skdp.model_selection._candidates import (
    RunBudget,
    all_leaves,
    check_adjacency,
    configured,
    is_gaussian,
    make_candidate,
    private_leaves,
    quieten,
    share_out,
    unseeded,
)
from skdp.privacy.books.spent import is_free, is_private, learns_nothing, name_of
from skdp.privacy.kernel.ledger import Ledger
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.exponential import weighted_choice
from skdp.privacy.laws.selection import STRATEGIES, plan_selection

# Scores of candidates on rows that were held out: the mean of one, and the choice of one.


#: a score is a whole number of steps, of which the range has this many
STEPS = 1 << 20
# numbers in a chunk, about
_ENTRIES = 1 << 18


class HeldOutRows:
    """Scores of held-out rows, in whole steps from the lower bound.

    Parameters
    ----------
    scores : array-like of shape (n_rows, n_candidates)
        Real numbers. What is not finite or out of bounds is moved to the nearest bound, a
        NaN to the lower one.
    low, high : float
        Public bounds.
    """

    n_threads = 1

    def __init__(self, scores, low, high):
        scores = np.array(scores, dtype=np.float64, ndmin=2)
        # whether a number overflows or underflows depends on the row: nobody is to be told
        with np.errstate(all="ignore"):
            scores = np.clip(np.where(np.isnan(scores), low, scores), low, high)
            # halves: the width of the bounds may be infinite
            share = (scores / 2 - low / 2) / (high / 2 - low / 2)
            # bounds so near that they have no middle: every row counts the same
            share = np.clip(np.nan_to_num(share, nan=0.5), 0.0, 1.0)
            self._steps = np.rint(share * STEPS).astype(np.int32)
        self.n_rows, self.n_entries = len(self._steps), self._steps.size

    @property
    def chunks(self):
        """Parts of the table, cut by its shape alone."""
        n_rows, width = self._steps.shape
        length = max(SMALLEST_CHUNK, _ENTRIES // (CHUNKS_PER_BLOCK * width))
        return [self._steps[start : start + length] for start in range(0, n_rows, length)]

    def totals(self):
        """Return the steps of every candidate beyond the middle of the bounds, all rows added.

        Integers below 2^52 for up to 2^31 rows: sums of floats are exact.
        """
        width = self._steps.shape[1]
        return sum_over(self, lambda part: (part - STEPS / 2).sum(axis=0), width)


def _change(adjacency):
    """Return by how many ranges a row changes a total, and why."""
    if adjacency == "zero-out":
        return 0.5, "a row counts within half a range of 0, a null row counts as 0"
    return 1.0, "a row moves a total by one range at most"


@dataclass(frozen=True)
class HeldOutScore:
    """Mean score of one candidate over held-out rows, as a share of its range.

    Parameters
    ----------
    column : int, default=0
        Which candidate; public.

    Notes
    -----
    Every row counts as its score in units of the range, minus 1/2; a null row counts as 0.
    """

    column: int = 0

    #: nothing here is a float that rounds
    idealised = False
    name = "mean score on held-out rows"
    size = 1

    def sensitivity(self, adjacency, n_rows):
        """State 1 / n, or half of it under zero-out.

        Proof. A row counts as a number in [-1/2, 1/2], over n. Another value moves that by
        1 / n at most; a null row counts as 0.
        """
        ranges, theorem = _change(adjacency)
        moved = ranges / n_rows
        return Sensitivity(l1=moved, l2=moved, bound=0.5, theorem=theorem)

    def evaluate(self, rows):
        """Return the mean."""
        totals = rows.totals()
        return np.array([totals[self.column] / (STEPS * rows.n_rows)])


@dataclass(frozen=True)
class HeldOutChoice:
    """Index of a candidate, drawn with probability exp(total score / temperature).

    Parameters
    ----------
    n_candidates : int
        How many there are.

    Notes
    -----
    Totals are whole numbers of steps, and the draw has exact probabilities.
    """

    n_candidates: int

    idealised = False
    size = 1

    @property
    def name(self):
        """What the statistic is."""
        return f"choice among {self.n_candidates} candidates by scores on held-out rows"

    def sensitivity(self, adjacency, n_rows):
        """State the spread, in steps: twice the range, or the range under zero-out.

        Proof. The change of a candidate's total lies in [-R, R], R being the range of one
        score if a row takes another value, and half of it if the row becomes null. The
        largest change and the smallest one are at most 2 R apart.
        """
        ranges, theorem = _change(adjacency)
        bound = float(max(1, self.n_candidates))
        return Sensitivity(math.inf, math.inf, bound, theorem, spread=2 * ranges * STEPS)

    def draw(self, rows, noise, source):
        """Return the index at the temperature ``noise.scale``."""
        totals = rows.totals().astype(np.int64)
        steps = totals.max() - totals
        index = weighted_choice(np.ones(len(steps)), steps, rate(1, noise.scale), source)
        return np.array([float(index)])


@dataclass(frozen=True)
class Outcome:
    """What a search releases.

    Parameters
    ----------
    model : estimator
        The winner.
    run : int
        Its candidate, and which repeat of it, as a position in the list that was run.
    score : float
        The released mean score, a share of the range minus 1/2, or the exact score on public
        rows; nan if there was no run.
    scores : ndarray or None
        Of all runs, on public rows.
    """

    model: Any
    run: int
    score: float
    scores: Any = None


def fit_candidate(estimator, share, X, y, seeds=None, public_seeds=()):
    """Fit a clone of an estimator, whose private steps charge what they were given.

    Parameters
    ----------
    estimator : estimator
        Not fitted.
    share : Share
        What its private steps are given.
    X, y : array-like
        Rows and targets.
    seeds : list of int, default=None
        Fresh seeds for the private steps that have one; None leaves all noise to the
        operating system.
    public_seeds : list of int, default=()
        Fresh seeds for the steps that `unseeded` returns.

    Returns
    -------
    model : estimator
        Fitted. All that was computed from rows in it was released by curators.

    Raises
    ------
    BudgetError
        If a step charged more than its share, or nothing, or is not one that was given one.
    """
    model = clone(estimator)
    loud = {name: value for name, value in model.get_params().items() if _is_verbose(name)}
    quieten(model)
    leaves, budgets = private_leaves(model), [RunBudget(limit) for limit in share.limits]
    before = [leaf.get_params(deep=False).get("random_state") for leaf in leaves]
    for place, leaf in enumerate(leaves):
        given = {"budget": budgets[place], **share.settings[place]}
        if before[place] is not None:
            given["random_state"] = None if seeds is None else seeds[place]
        leaf.set_params(**given)
    drawing = unseeded(model)
    for leaf, seed in zip(drawing, public_seeds, strict=True):
        leaf.set_params(random_state=seed)
    with warnings.catch_warnings():
        # one warning for every run would count the runs
        warnings.simplefilter("ignore")
        model.fit(X, y)
    _check_fitted(model, budgets)
    # what was fitted may be clones of the leaves
    fitted = [(budgets.index(leaf.budget), leaf) for leaf in private_leaves(model)]
    for place, leaf in [*fitted, *enumerate(leaves)]:
        leaf.set_params(budget=None)
        if before[place] is not None:
            leaf.set_params(random_state=before[place])
    for leaf in [*drawing, *(leaf for _, leaf in all_leaves(model) if not is_private(leaf))]:
        if getattr(leaf, "random_state", None) in public_seeds:
            leaf.set_params(random_state=None)
    model.set_params(**loud)
    return model


def _is_verbose(name):
    return name.split("__")[-1] == "verbose"


def _check_fitted(model, budgets):
    """Raise a BudgetError unless every part of a fitted model was paid for."""
    if any(budget.charged is None for budget in budgets):
        raise BudgetError("a private step did not charge its share: the run is not paid for.")
    for step, leaf in all_leaves(model):
        free = is_free(leaf) and getattr(leaf, "ledger_", None) == Ledger()
        if not (free or (is_private(leaf) and leaf.budget in budgets) or learns_nothing(leaf)):
            raise BudgetError(
                f"{name_of(step, leaf)} was fitted, but is not among the steps that were paid for."
            )


def run_search(gate, candidates, scorer, rows, public, form, n_jobs):
    """Run the candidates that the gate asks for, and release the winner.

    Parameters
    ----------
    gate : Search
        Has charged for all of it, and keeps the secrets.
    candidates : list of Candidate
        With shares, one for every run of "all".
    scorer : RowScorer
        Scores rows on their own.
    rows : tuple of (X, y)
        Private.
    public : tuple of (X, y) or None
        Public rows that score the runs, if there are any.
    form : Form
        Of the rows, for the fit to null rows of a search that happens to have no run.
    n_jobs : int or None
        Of joblib.

    Returns
    -------
    outcome : Outcome
        Released numbers, and a model that was paid for.
    """
    train, held_out = gate.split()
    runs = list(gate.runs())
    if not runs:
        # nothing was computed from rows
        place = gate.seed(0) * len(candidates) >> 32
        chosen = candidates[place]
        own, nothing = _seeds_of(gate, chosen, 0), chosen.null_data(form, len(train))
        return Outcome(fit_candidate(chosen.estimator, chosen.run, *nothing, *own), place, math.nan)
    taken = _of(rows, train) if len(held_out) else rows
    seeds = [_seeds_of(gate, candidates[j], run) for run, j in enumerate(runs)]
    with warnings.catch_warnings():
        # threads share their filters, and joblib has its own: either would count the runs
        warnings.simplefilter("ignore")
        models = Parallel(n_jobs=n_jobs, verbose=0)(
            delayed(fit_candidate)(candidates[j].estimator, candidates[j].run, *taken, *own)
            for j, own in zip(runs, seeds, strict=True)
        )
    if public is not None:
        scores = np.array([scorer(model, *public) for model in models])
        best, score = int(np.argmax(scores)), float(scores.max())
    else:
        scores = None
        best, score = _choose(gate, models, scorer, _of(rows, held_out), len(held_out))
    j, model = runs[best], models[best]
    if candidates[j].refit is not None:
        own = _seeds_of(gate, candidates[j], len(runs))
        model = fit_candidate(candidates[j].estimator, candidates[j].refit, *rows, *own)
    return Outcome(model, j, score, scores if gate.plan.strategy == "all" else None)


def _choose(gate, models, scorer, tested, n_held_out):
    """Return the run with the best score, and that score, as released."""
    plan = gate.plan
    if plan.strategy == "all":
        curator = gate.score_curator(lambda: _scored(models, scorer, tested), n_held_out)
        best = 0
        if len(models) > 1:
            drawn = curator.release(HeldOutChoice(len(models)), plan.choice_mechanism)
            best = int(drawn[0])
        return best, float(curator.release(HeldOutScore(best), plan.score_mechanism)[0])
    scores = []
    for run, model in enumerate(models):
        curator = gate.score_curator(
            lambda model=model: _scored([model], scorer, tested), n_held_out, run
        )
        scores.append(float(curator.release(HeldOutScore(), plan.score_mechanism)[0]))
    # the first of the best: runs are independent and alike, so their order tells nothing
    best = int(np.argmax(scores))
    return best, scores[best]


def _scored(models, scorer, tested):
    """Return the scores of held-out rows by several models."""
    table = [scorer.of_rows(model, *tested) for model in models]
    return HeldOutRows(np.stack(table, axis=1), *scorer.bounds)


def _seeds_of(gate, candidate, run):
    """Return fresh seeds for private steps, and for those that would draw from numpy's."""
    return _seeds(gate, candidate, run), [gate.seed(run) for _ in unseeded(candidate.estimator)]


def _seeds(gate, candidate, run):
    """Return fresh seeds for the private steps; None if the search itself has none."""
    if not gate.ledger.seeded:
        return None
    return [gate.seed(run) for _ in candidate.charges]


def _of(rows, positions):
    X, y = rows
    return take_rows(X, positions), None if y is None else take_rows(y, positions)


def stamp(model, ledger, spent):
    """Give every private step the ledger of the search: that is what the winner costs.

    Parameters
    ----------
    model : estimator
        The winner, which is changed.
    ledger : Ledger
        Of the search.
    spent : tuple of (float, float)
        Its price.
    """
    for leaf in private_leaves(model):
        leaf.ledger_, leaf.privacy_spent_ = ledger, spent
        # a search that won in a search
        if hasattr(leaf, "best_estimator_"):
            stamp(leaf.best_estimator_, ledger, spent)


# The plan of a search: from parameters, the number of rows and the label set alone.


__all__ = ["STRATEGIES", "all_configured", "plan_runs"]

#: the most runs that "auto" gives a part of the budget each
MOST_OF_ALL = 6


def all_configured(estimator, listed):
    """Return a model for every candidate, or raise a ValueError.

    Parameters
    ----------
    estimator : estimator
        What is to be tuned.
    listed : list of dict
        Parameters of the candidates.
    """
    if not listed:
        raise ValueError("the grid is empty: there is no candidate to be fitted.")
    return [configured(estimator, params) for params in listed]


def held_out_rows(n_rows, fraction):
    """Return the number of rows that score the runs: at least one, and not all.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    fraction : float
        Which part of them, about.
    """
    if n_rows < 2:
        raise ValueError(
            f"a search needs at least 2 rows, one that trains and one that scores; got "
            f"n_samples={n_rows}. Pass public rows as X_val, and none is held out."
        )
    return min(max(1, round(fraction * n_rows)), n_rows - 1)


def check_scores(plan, adjacency, held_out):
    """Raise a ValueError if a score cannot be released for so little.

    Parameters
    ----------
    plan : SelectionPlan
        What is spent on it.
    adjacency, held_out : str, int
        Of the rows that score the runs.
    """
    queries = [
        (HeldOutScore(), plan.score_mechanism),
        (HeldOutChoice(plan.n_candidates), plan.choice_mechanism),
    ]
    try:
        for query, mechanism in queries:
            if mechanism is not None:
                mechanism.calibrate(query.sensitivity(adjacency, held_out), query.size)
    except ValueError:
        raise ValueError(
            f"epsilon={plan.epsilon!r} is too small for a search: the noise of the scores leaves "
            "the range of floating point."
        ) from None


def plan_runs(search, models, listed, labels, form, public_scores):
    """Return the plan of a search, and its candidates with their shares.

    Parameters
    ----------
    search : DPSearchCV
        Its parameters are read.
    models, listed : list of estimator, list of dict
        The candidates.
    labels : ndarray or None
        The label set, if steps were given none.
    form : Form
        Of the data.
    public_scores : bool
        Whether public rows score the runs.

    Returns
    -------
    plan : SelectionPlan
        What is spent on what.
    adjacency : str
        Of all fits.
    candidates : list of Candidate
        In order; every one `n_repeats` times.
    held_out : int
        Number of rows that score the runs.

    Raises
    ------
    ValueError
        If a candidate is unusable, or the budget is too small for the search.
    """
    n_rows, epsilon, delta = form.shape[0], float(search.epsilon), float(search.delta)
    held_out = 0 if public_scores else held_out_rows(n_rows, search.validation_fraction)
    candidates = [
        make_candidate(model, params, labels, (epsilon, delta), form, n_rows - held_out)
        for model, params in zip(models, listed, strict=True)
    ]
    adjacency = check_adjacency(candidates)
    n_runs, strategy = len(candidates) * search.n_repeats, search.strategy
    if strategy == "auto":
        few = n_runs <= MOST_OF_ALL and search.expected_runs is None
        strategy = "all" if few or search.n_repeats > 1 else "geometric"
    plan = plan_selection(
        epsilon,
        delta,
        strategy=strategy,
        n_candidates=n_runs,
        expected_runs=search.expected_runs,
        gaussian=is_gaussian(candidates, delta),
        refit_share=search.refit_share,
        public_scores=public_scores,
    )
    check_scores(plan, adjacency, held_out)
    run = (plan.epsilon_run, plan.delta_run, plan.mu_run)
    again = (plan.epsilon_refit, plan.delta_refit, plan.mu_refit)
    shared = []
    for one in candidates:
        given = {"run": _shared(one, form, n_rows - held_out, run, (epsilon, delta))}
        if plan.refit_share:
            given["refit"] = _shared(one, form, n_rows, again, (epsilon, delta))
        shared += [replace(one, **given)] * search.n_repeats
    return plan, adjacency, shared, held_out


def _shared(candidate, form, n_rows, price, whole):
    epsilon, delta, mu = price
    return share_out(candidate, form, n_rows, epsilon=epsilon, delta=delta, mu=mu, whole=whole)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The runs of a search: fits with a share of the budget, and what is released of them.

`run_search` alone sees private rows, and what it returns has been paid for on the ledger of
the search.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from skdp._queries import HeldOutChoice, HeldOutRows, HeldOutScore
from skdp._sklearn import take_rows
from skdp.exceptions import BudgetError
from skdp.model_selection._candidates import quieten
from skdp.model_selection._leaves import all_leaves, private_leaves, unseeded
from skdp.model_selection._run_budget import RunBudget
from skdp.privacy import Ledger
from skdp.privacy._learns_nothing import learns_nothing
from skdp.privacy._steps import is_free, is_private


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
    for name, leaf in all_leaves(model):
        free = is_free(leaf) and getattr(leaf, "ledger_", None) == Ledger()
        if not (free or (is_private(leaf) and leaf.budget in budgets) or learns_nothing(leaf)):
            raise BudgetError(f"{name} was fitted, but is not among the steps that were paid for.")


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

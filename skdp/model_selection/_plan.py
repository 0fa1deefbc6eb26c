# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The plan of a search: from parameters, the number of rows and the label set alone."""

from dataclasses import replace

from skdp._queries import HeldOutChoice, HeldOutScore
from skdp.model_selection._candidates import (
    check_adjacency,
    configured,
    is_gaussian,
    make_candidate,
)
from skdp.model_selection._shares import share_out
from skdp.privacy._selection import STRATEGIES, plan_selection

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

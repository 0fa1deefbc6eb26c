# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Candidates of a search, and what their private steps charge.

That is learned from fits to null rows, which end at the last charge.
"""

import math
import warnings
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone

from skdp.model_selection._leaves import check_steps, private_leaves
from skdp.model_selection._run_budget import Charge, Enough, RunBudget


@dataclass(frozen=True, eq=False)
class Candidate:
    """An estimator with the parameters of a candidate, and what its steps charge.

    Parameters
    ----------
    estimator : estimator
        Not fitted.
    params : dict
        What makes it a candidate.
    labels : ndarray or None
        The label set, if there are labels.
    charges : tuple of Charge
        If it had the whole budget.
    run, refit : Share or None
        For the fits of the search, and for fitting the winner again.
    """

    estimator: Any
    params: dict
    labels: Any
    charges: tuple[Charge, ...]
    run: Any = None
    refit: Any = None

    def null_data(self, form, n_rows):
        """Return null rows and targets for a fit of this candidate."""
        return form.null_rows(n_rows), form.null_targets(n_rows, self.labels)

    def null_charges(self, form, n_rows, settings=None):
        """Return what its steps charge, for null rows of the form of the data.

        Parameters
        ----------
        form, n_rows : Form, int
            Of the rows that it is to be fitted to.
        settings : sequence of dict, default=None
            Parameters of the private steps; None leaves them.

        Returns
        -------
        charges : tuple of Charge
            One for every private step, in order.

        Raises
        ------
        ValueError
            If the candidate cannot be fitted; the message names it.
        """
        model = clone(self.estimator)
        leaves = private_leaves(model)
        budgets = []
        for place, leaf in enumerate(leaves):
            given = dict(settings[place]) if settings else {}
            if "random_state" in leaf.get_params(deep=False):
                given["random_state"] = None
            budgets.append(RunBudget(None, together=budgets))
            leaf.set_params(budget=budgets[-1], **given)
        quieten(model)
        try:
            with warnings.catch_warnings():
                # nobody is to be told the same in every run
                warnings.simplefilter("ignore")
                model.fit(*self.null_data(form, n_rows))
        except Enough:
            pass
        except Exception as error:
            raise ValueError(f"the candidate {self.params!r} cannot be fitted: {error}") from error
        if any(budget.charged is None for budget in budgets):
            raise ValueError(
                f"a private step of the candidate {self.params!r} charges nothing in a fit, so "
                "nobody knows what it costs."
            )
        return tuple(budget.charged for budget in budgets)


def quieten(model):
    """Set every `verbose` of an estimator to False: what is printed would count the runs."""
    loud = [name for name in model.get_params() if name.split("__")[-1] == "verbose"]
    model.set_params(**dict.fromkeys(loud, False))


def configured(estimator, params):
    """Return a clone of an estimator with the parameters of a candidate, or raise a ValueError.

    Parameters
    ----------
    estimator : estimator
        What is to be tuned.
    params : dict
        Parameters of the candidate.
    """
    try:
        model = clone(estimator).set_params(**clone(params, safe=False))
        check_steps(model)
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"the candidate {params!r} cannot be searched: {error}") from error
    return model


def lacks_classes(model):
    """Return whether a private step was given no public label set, and reads it from y."""
    leaves = private_leaves(model)
    return any(leaf.get_params(deep=False).get("classes", 0) is None for leaf in leaves)


def _scaled_to(whole, leaves):
    """Return settings of private steps that add up to a whole budget, in their own ratios."""
    own = [leaf.get_params(deep=False) for leaf in leaves]
    if any(not isinstance(one["epsilon"], Real) or not one["epsilon"] > 0 for one in own):
        return None  # the step itself says why
    epsilons = math.fsum(one["epsilon"] for one in own)
    deltas = math.fsum(one.get("delta", 0.0) for one in own)
    settings = []
    for one in own:
        settings.append({"epsilon": whole[0] * (one["epsilon"] / epsilons)})
        if one.get("delta"):
            settings[-1]["delta"] = whole[1] * (one["delta"] / deltas)
    return settings


def make_candidate(model, params, labels, whole, form, n_rows):
    """Return a candidate, after a look at what its steps charge for null rows.

    Parameters
    ----------
    model : estimator
        What `configured` returned; it is changed.
    params : dict
        Parameters of the candidate.
    labels : ndarray or None
        The label set, for steps that were given none.
    whole : tuple of (float, float)
        (epsilon, delta) of the search, of which the steps are given parts in the ratio of
        their own.
    form, n_rows : Form, int
        Of the rows that it will be fitted to.

    Returns
    -------
    candidate : Candidate
        Without shares.

    Raises
    ------
    ValueError
        If it cannot be part of a search, with the reason.
    """
    for leaf in private_leaves(model):
        own = leaf.get_params(deep=False)
        if "classes" in own and own["classes"] is None:
            leaf.set_params(classes=labels)
        elif "classes" in own:
            labels = np.unique(np.asarray(own["classes"]))
    bare = Candidate(model, params, labels, ())
    charges = bare.null_charges(form, n_rows, _scaled_to(whole, private_leaves(model)))
    for charge in charges:
        if charge.adjacency == "local" or charge.unit != "row":
            told = "local reports of rows" if charge.adjacency == "local" else "clients"
            raise ValueError(
                f"the candidate {params!r} protects {told}: a search protects single rows, which "
                "it holds itself."
            )
    return replace(bare, charges=charges)


def check_adjacency(candidates):
    """Return the one adjacency of all candidates, or raise a ValueError."""
    found = sorted({charge.adjacency for one in candidates for charge in one.charges})
    if len(found) > 1:
        raise ValueError(f"all candidates need the same adjacency; got {' and '.join(found)}.")
    return found[0]


def is_gaussian(candidates, delta):
    """Return whether shares can be Gaussian-DP parameters, and some step gains by it."""
    charges = [charge for one in candidates for charge in one.charges]
    some = any(charge.delta > 0 for charge in charges)
    return delta > 0 and some and all(charge.mu is not None for charge in charges)

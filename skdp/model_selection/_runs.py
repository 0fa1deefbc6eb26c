# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Candidates of a private search, their shares of the budget, and their runs.

`plan_runs` finds the charges of the private steps of every candidate, by fits to null rows that
end at the last charge, and divides the budget. The plan is a function of parameters, the number of
rows and the label set only. Only `run_search` sees private rows, and its results are paid for on
the ledger of the search.
"""

import math
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from skdp._counted import in_parts, shares
from skdp._gate import overheard
from skdp._sklearn import is_sparse, resolve_classes, take_rows
from skdp.exceptions import BudgetError
from skdp.model_selection._row_scorer import HeldOutChoice, HeldOutRows, HeldOutScore
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.books.parts import (
    assumptions_of,
    holders_of_steps,
    is_free,
    is_private,
    learns_nothing,
    leaves,
    name_of,
    own_function,
    takes_groups,
    what_rows_decide,
)
from skdp.privacy.books.spent import NotCovered
from skdp.privacy.kernel.accounting import gdp_epsilon, pure_mu
from skdp.privacy.laws.calibration import gdp_mu, pure_epsilon
from skdp.privacy.laws.selection import plan_selection

# Steps: which are private, and which may stand beside them.


#: what a search decides itself
DECIDED = ("epsilon", "delta", "budget")


def all_leaves(estimator):
    """Return the (step, estimator) of all leaves of pipelines and other containers of steps."""
    # in the order in which they are given shares and seeds
    return sorted(leaves(estimator), key=lambda leaf: leaf[0] == "remainder")


def _holders(estimator):
    """Yield an estimator and all estimators among its parameters."""
    yield estimator
    if hasattr(estimator, "get_params"):
        for value in estimator.get_params(deep=True).values():
            if hasattr(value, "get_params") and not isinstance(value, type):
                yield value


def private_leaves(estimator):
    """Return the private leaves that get a share of the search, in a fixed order.

    Leaves that release nothing with their parameters are left out.
    """
    found = [leaf for _, leaf in all_leaves(estimator)]
    return [leaf for leaf in found if is_private(leaf) and not is_free(leaf)]


def unseeded(estimator):
    """Return the non-private steps that would draw from numpy's global generator.

    Its state continues from run to run, so a run would depend on earlier ones, but runs must be
    independent. So every run gives these steps a fresh seed.

    Parameters
    ----------
    estimator : estimator
        Not fitted.

    Returns
    -------
    leaves : list of estimator
        Leaves in a fixed order.
    """
    others = [leaf for _, leaf in all_leaves(estimator) if not is_private(leaf)]
    return [leaf for leaf in others if getattr(leaf, "random_state", 0) is None]


def check_steps(estimator):
    """Raise a ValueError unless every step is private or learns nothing from rows.

    Parameters
    ----------
    estimator : estimator
        Estimator with its parameters set; not fitted.
    """
    found = all_leaves(estimator)
    for step, leaf in found:
        name = name_of(step, leaf)
        if own_function(leaf) is not None and not learns_nothing(leaf):
            raise ValueError(f"not covered: {NotCovered.learned(step, leaf)}.")
        if not (is_private(leaf) or learns_nothing(leaf)):
            kind = "" if step is None else f" ({type(leaf).__name__})"
            raise ValueError(
                f"{name}{kind} learns from the data without a ledger, so its price is "
                "unknown. Use private steps, and steps that learn nothing from rows."
            )
        if getattr(leaf, "_skl_callbacks", None):
            raise ValueError(f"{name} has callbacks, which would watch the runs. Remove them.")
    for step, holder in holders_of_steps(estimator):
        for what in what_rows_decide(holder):
            raise ValueError(f"not covered: {NotCovered.decided(step, holder, what)}.")
    chosen = [leaf for _, leaf in found if is_private(leaf)]
    if all(map(is_free, chosen)):
        raise ValueError(
            f"{type(estimator).__name__} has no private step that releases anything: there is "
            "nothing to give a budget to."
        )
    if len({id(leaf) for leaf in chosen}) < len(chosen):
        raise ValueError("a step stands in two places; pass a clone of it in one of them.")
    if any(leaf.get_params(deep=False)["budget"] is not None for leaf in chosen):
        raise ValueError(
            "budget of a step must be None: the search pays for all runs. Give the budget to the "
            "search."
        )
    for holder in _holders(estimator):
        kind = type(holder).__name__
        if getattr(holder, "_skl_callbacks", None):
            raise ValueError(f"{kind} has callbacks, which would watch the runs. Remove them.")
        if getattr(holder, "memory", None) is not None:
            raise ValueError(f"memory of a {kind} must be None: a cache repeats noise.")
        if all(holder is not leaf for _, leaf in found) and getattr(holder, "n_jobs", 1) not in (
            None,
            1,
        ):
            raise ValueError(
                f"n_jobs of a {kind} must be None: what a step charges in another process would "
                "not be seen. Set n_jobs of the search instead."
            )


def check_grid(grids):
    """Raise a ValueError if a grid sets parameters that belong to the search.

    Parameters
    ----------
    grids : dict or list of dict
        Grids, as in scikit-learn.
    """
    for grid in [grids] if isinstance(grids, dict) else grids:
        for name in grid:
            if name.split("__")[-1] in DECIDED:
                raise ValueError(
                    f"{name!r} cannot be searched: the search divides its own epsilon and delta "
                    "among all runs. Set epsilon, delta and budget of the search instead."
                )


@contextmanager
def routed(model, groups, weights=None):
    """Route groups and weights to every private step of a model, at any depth.

    Parameters
    ----------
    model : estimator
        A clone to fit. Its requests for metadata are restored afterwards.
    groups : ndarray of shape (n_rows,) or None
        Group of every row; private.
    weights : ndarray of shape (n_rows,), default=None
        Weights of rows, for steps with a bound on weights; private.

    Yields
    ------
    given : dict
        Arguments of `fit` besides rows and targets.
    """
    given = {"groups": groups, "sample_weight": weights}
    given = {name: part for name, part in given.items() if part is not None}
    if not given:
        yield {}
        return
    asked = [leaf for _, leaf in all_leaves(model) if _asks_for(leaf, given)]
    before = [vars(leaf).get("_metadata_request") for leaf in asked]
    with config_context(enable_metadata_routing=True):
        for leaf in asked:
            leaf.set_fit_request(**_asks_for(leaf, given))
        try:
            yield given
        finally:
            # what was fitted may be clones of the leaves, in the same order
            fitted = [leaf for _, leaf in all_leaves(model) if _asks_for(leaf, given)]
            for leaves_of in (asked, fitted):
                for leaf, request in zip(leaves_of, before, strict=True):
                    vars(leaf).pop("_metadata_request", None)
                    if request is not None:
                        leaf._metadata_request = request


def _asks_for(leaf, given):
    """Return whether a step gets groups and whether it gets weights, if it supports them."""
    asks = {}
    if "groups" in given and takes_groups(leaf):
        asks["groups"] = True
    if "sample_weight" in given and getattr(leaf, "max_weight", None) is not None:
        asks["sample_weight"] = True
        if "groups" not in given and takes_groups(leaf):
            # or whoever asks for weights is taken to ask for groups as well
            asks["groups"] = False
    return asks


# The budget of a private step in one run: a limit, and a witness.


@dataclass(frozen=True)
class RunCharge:
    """Charge of one private step, as declared by the step; or a limit on it.

    Parameters
    ----------
    epsilon, delta : float
        The price of the fit.
    mu : float or None
        Its Gaussian-DP parameter; for a purely private fit it follows from epsilon.
    adjacency, unit : str
        Protected unit.
    """

    epsilon: float
    delta: float
    mu: float | None
    adjacency: str
    unit: str


class Enough(Exception):
    """Signal to end a fit to null rows: all private steps have declared their charges."""


class RunBudget:
    """Budget of one private step in one fit; a copy is the same object.

    Parameters
    ----------
    limit : RunCharge or None
        Limit on the single charge of the step; None accepts and records any charge.
    together : list of RunBudget, default=None
        Budgets of all private steps of a fit that ends with `Enough` after the last of their
        charges; None for a complete fit.
    """

    def __init__(self, limit, together=None):
        self._limit, self._together, self.charged = limit, together, None

    def ends_alone(self):
        """End the fit after the charge of this step, without waiting for the others."""
        self._together = [self]

    def check(self, epsilon, stream=None):
        """Accept a new fit; `charge` does all checks."""

    def charge(self, epsilon, delta, *, mu, adjacency, unit, label, stream=None):
        """Record a charge, or raise if it exceeds the plan.

        Parameters
        ----------
        epsilon, delta : float
            The price of the fit.
        mu : float or None
            Its Gaussian-DP parameter, if it has one.
        adjacency, unit, label : str
            Adjacency and unit of the guarantee, and the label of the charge.
        stream : str or None
            Identity of seeded noise. Every run of the search has its own seeds.

        Raises
        ------
        BudgetError
            If the charge exceeds the limit, or is the second one.
        """
        if mu is None and delta == 0:
            mu = pure_mu(epsilon)
        asked = RunCharge(float(epsilon), float(delta), mu, adjacency, unit)
        if self.charged is not None:
            raise BudgetError(f"{label} charges twice in one fit; a run has room for one charge.")
        if self._limit is not None and not _within_limit(asked, self._limit):
            raise BudgetError(f"{label} charges more than its share of the run; no row was read.")
        self.charged = asked
        if self._together and all(budget.charged for budget in self._together):
            raise Enough

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(
            "the budget of a run stays in one process: set n_jobs=None in the steps, and let the "
            "search have the processes."
        )


def _within_limit(asked, limit):
    """Return whether a charge is within a limit; NaN never is."""
    if (asked.adjacency, asked.unit) != (limit.adjacency, limit.unit):
        return False
    if limit.mu is not None:
        return asked.mu is not None and asked.mu <= limit.mu
    return asked.epsilon <= limit.epsilon and asked.delta <= limit.delta


def total_of(charges):
    """Return (epsilon, delta, mu) of charges on the same rows; mu is None if one lacks it."""
    epsilon = math.fsum(charge.epsilon for charge in charges)
    delta = math.fsum(charge.delta for charge in charges)
    if any(charge.mu is None for charge in charges):
        return epsilon, delta, None
    return epsilon, delta, math.hypot(*(charge.mu for charge in charges))


@dataclass(frozen=True, eq=False)
class Candidate:
    """Estimator with the parameters of a candidate, and the charges of its steps.

    Parameters
    ----------
    estimator : estimator
        Not fitted.
    params : dict
        Parameters of the candidate.
    labels : ndarray or None
        Label set, if there are labels.
    charges : tuple of RunCharge
        Charges of the steps with the whole budget.
    unit : {"row", "group"}
        Protected unit.
    weighted : bool
        Whether rows have weights.
    run, refit : Share or None
        Shares for the fits of the search, and for the second fit of the winner.
    """

    estimator: Any
    params: dict
    labels: Any
    charges: tuple[RunCharge, ...]
    unit: str = "row"
    weighted: bool = False
    run: Any = None
    refit: Any = None

    def null_data(self, form, n_rows):
        """Return null rows and targets for a fit of this candidate."""
        return form.null_rows(n_rows), form.null_targets(n_rows, self.labels)

    def null_charges(self, form, n_rows, settings=None):
        """Return the charges of its steps, for null rows of the same form as the data.

        Parameters
        ----------
        form, n_rows : Form, int
            Form and number of the rows to fit.
        settings : sequence of dict, default=None
            Parameters of the private steps; None keeps the present ones.

        Returns
        -------
        charges : tuple of RunCharge
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
        groups = np.arange(n_rows) if self.unit == "group" else None
        weights = np.ones(n_rows) if self.weighted else None
        try:
            with warnings.catch_warnings(), routed(model, groups, weights) as given:
                # nobody is to be told the same in every run
                warnings.simplefilter("ignore")
                model.fit(*self.null_data(form, n_rows), **given)
        except Enough:
            pass
        except Exception as error:
            raise ValueError(f"the candidate {self.params!r} cannot be fitted: {error}") from error
        if any(budget.charged is None for budget in budgets):
            raise ValueError(
                f"a private step of the candidate {self.params!r} charges nothing in a fit, so "
                "its price is unknown."
            )
        return tuple(budget.charged for budget in budgets)


def quieten(model):
    """Set every `verbose` of an estimator to False: a search prints its plan only once."""
    loud = [name for name in model.get_params() if name.split("__")[-1] == "verbose"]
    model.set_params(**dict.fromkeys(loud, False))


def configured(estimator, params):
    """Return a clone of an estimator with the parameters of a candidate, or raise a ValueError.

    Parameters
    ----------
    estimator : estimator
        Estimator to tune.
    params : dict
        Parameters of the candidate.
    """
    try:
        model = clone(estimator).set_params(**clone(params, safe=False))
        check_steps(model)
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"the candidate {params!r} cannot be searched: {error}") from error
    return model


def assumed_functions(models):
    """Return the assumptions about functions in the steps of all candidates."""
    found = [leaf for model in models for leaf in all_leaves(model)]
    assumed = [
        assumption
        for step, leaf in found
        if not is_private(leaf)
        for assumption in assumptions_of(leaf, name_of(step, leaf))
    ]
    return tuple(dict.fromkeys(assumed))


def lacks_classes(model):
    """Return whether a private step has no public label set, and would read it from y."""
    leaves = private_leaves(model)
    return any(leaf.get_params(deep=False).get("classes", 0) is None for leaf in leaves)


def _scaled_to(whole, leaves):
    """Return settings of private steps that share a whole budget in their own ratios."""
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


def make_candidate(model, params, labels, whole, form, n_rows, unit="row", max_weight=None):
    """Return a candidate, with the charges of its steps from a fit to null rows.

    Parameters
    ----------
    model : estimator
        Result of `configured`; it is changed.
    params : dict
        Parameters of the candidate.
    labels : ndarray or None
        Label set, for steps without one.
    whole : tuple of (float, float)
        (epsilon, delta) of the search; the steps share it in the ratio of their own budgets.
    form, n_rows : Form, int
        Form and number of the rows to fit.
    unit : {"row", "group"}, default="row"
        Protected unit.
    max_weight : float, default=None
        Bound on weights for steps without their own; None without weights.

    Returns
    -------
    candidate : Candidate
        Candidate without shares.

    Raises
    ------
    ValueError
        If the model cannot be part of a search; the message has the reason.
    """
    for leaf in private_leaves(model):
        own = leaf.get_params(deep=False)
        if "classes" in own and own["classes"] is None:
            leaf.set_params(classes=labels)
        elif "classes" in own:
            labels = np.unique(np.asarray(own["classes"]))
    if any(hasattr(leaf, "local_epsilon") for leaf in private_leaves(model)):
        raise ValueError(
            f"the candidate {params!r} protects clients, who keep their rows: a search protects "
            "single rows, or groups of rows, which it holds itself."
        )
    for step, leaf in all_leaves(model) if unit == "group" else ():
        if is_private(leaf) and not takes_groups(leaf):
            raise ValueError(
                f"groups must be None for the candidate {params!r}: {name_of(step, leaf)} has no "
                "parameter groups in fit, and would protect single rows."
            )
    for step, leaf in all_leaves(model) if max_weight is not None else ():
        if not is_private(leaf) or is_free(leaf):
            continue
        own = leaf.get_params(deep=False)
        if "max_weight" not in own:
            raise ValueError(
                f"sample_weight must be None for the candidate {params!r}: {name_of(step, leaf)} "
                "has no parameter max_weight, and all its rows count the same."
            )
        if own["max_weight"] is None:
            leaf.set_params(max_weight=max_weight)
    bare = Candidate(model, params, labels, (), unit, max_weight is not None)
    charges = bare.null_charges(form, n_rows, _scaled_to(whole, private_leaves(model)))
    for charge in charges:
        if charge.adjacency == "local" or charge.unit != unit:
            told = "local reports of rows" if charge.adjacency == "local" else f"{charge.unit}s"
            raise ValueError(
                f"the candidate {params!r} protects {told}: this search protects {unit}s, which "
                "it holds itself."
            )
    return replace(bare, charges=charges)


def refuse_rows(models, X, y, groups=None, weights=None):
    """Raise the errors of a fit to the rows before its charge: NaN, text and dates.

    Parameters
    ----------
    models : list of estimator
        The candidates; not fitted, not changed.
    X, y : array-like
        All rows and targets; private. Nothing computed from them is kept or charged.
    groups, weights : ndarray of shape (n_rows,) or None
        Group and weight of every row; private.
    """
    for model in map(clone, models):
        for leaf in private_leaves(model):
            if "random_state" in leaf.get_params(deep=False):
                leaf.set_params(random_state=None)
            # the first charge ends it, and no row was admitted by then
            leaf.set_params(budget=RunBudget(None))
            leaf.budget.ends_alone()
        quieten(model)
        with warnings.catch_warnings(), suppress(Enough), routed(model, groups, weights) as given:
            warnings.simplefilter("ignore")
            model.fit(X, y, **given)


def refuse_public_rows(candidates, form, X_val):
    """Raise a ValueError, before any charge, if a candidate cannot read the public rows.

    Parameters
    ----------
    candidates : list of Candidate
        Planned candidates.
    form : Form
        Form of the private data. The public rows are repeated or cut to as many, with made-up
        targets.
    X_val : array-like
        Public rows.
    """
    rows = take_rows(X_val, np.arange(form.shape[0]) % X_val.shape[0])
    for one in {id(one.estimator): one for one in candidates}.values():
        groups = np.arange(form.shape[0]) if one.unit == "group" else None
        try:
            targets = form.null_targets(form.shape[0], one.labels)
            weights = np.ones(form.shape[0]) if one.weighted else None
            refuse_rows([one.estimator], rows, targets, groups, weights)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X_val cannot be read; nothing was charged. {error}") from error


def refuse_what_is_no_number(models, form, X, y, groups=None):
    """Raise the errors of a fit to the rows, for candidates that accept numbers.

    Null rows of an array are always numbers: errors of a fit to them have another reason.
    """
    usable, unit = [], "row" if groups is None else "group"
    for model in models if form.kind != "array" else []:
        with suppress(ValueError):
            Candidate(model, {}, None, (), unit).null_charges(form.of_numbers(), form.shape[0])
            usable.append(model)
    refuse_rows(usable, X, y, groups)


def check_adjacency(candidates):
    """Return the common adjacency of all candidates, or raise a ValueError."""
    found = sorted({charge.adjacency for one in candidates for charge in one.charges})
    if len(found) > 1:
        raise ValueError(f"all candidates need the same adjacency; got {' and '.join(found)}.")
    if found == ["add-remove"]:
        raise ValueError(
            "adjacency of all candidates must be 'replace-one' or 'zero-out': a search plans with "
            "the number of rows; got 'add-remove'."
        )
    return found[0]


def is_gaussian(candidates, delta):
    """Return whether shares can be Gaussian-DP parameters, with a gain for some step."""
    charges = [charge for one in candidates for charge in one.charges]
    some = any(charge.delta > 0 for charge in charges)
    return delta > 0 and some and all(charge.mu is not None for charge in charges)


# Shares of one fit for the private steps of a candidate.


# rounds in which shares are made to fit
_ROUNDS = 20
# kept between a total and a share that had to be made smaller
_MARGIN = 1e-9


@dataclass(frozen=True)
class Share:
    """Budgets of the private steps of a candidate in one fit.

    Parameters
    ----------
    settings : tuple of dict
        epsilon and, if it is a parameter, delta, for every private step in order.
    limits : tuple of RunCharge
        Limits on their charges.
    """

    settings: tuple[dict, ...]
    limits: tuple[RunCharge, ...]


def share_out(candidate, form, n_rows, *, epsilon, delta, mu, whole):
    """Divide the share of one fit among the private steps of a candidate.

    Parameters
    ----------
    candidate : Candidate
        Candidate with the charges that determine the ratios.
    form, n_rows : Form, int
        Form and number of the rows of the fit.
    epsilon, delta, mu : float or None
        The share: a Gaussian-DP parameter, or, if that is None, a price.
    whole : tuple of (float, float)
        (epsilon, delta) of the search.

    Returns
    -------
    share : Share
        A share with limits that add up to at most the share of the fit.

    Raises
    ------
    ValueError
        If the share is too small for the steps.
    """
    divide = _gaussian_aims if mu is not None else _priced_aims
    aims = divide(candidate.charges, epsilon, delta, mu)
    leaves = private_leaves(candidate.estimator)
    for _ in range(_ROUNDS):
        settings = [
            _settings(leaf, charge, aim, mu, whole)
            for leaf, charge, aim in zip(leaves, candidate.charges, aims, strict=True)
        ]
        charges = candidate.null_charges(form, n_rows, settings)
        spent = total_of(charges)
        if mu is not None and spent[2] is not None and spent[2] <= mu:
            return Share(tuple(settings), charges)
        if mu is None and spent[0] <= epsilon and spent[1] <= delta:
            limits = tuple(replace(charge, mu=None) for charge in charges)
            return Share(tuple(settings), limits)
        aims = _smaller(aims, charges, mu)
    raise ValueError(
        f"the steps of the candidate {candidate.params!r} charge more than the share that they "
        "are given; raise epsilon or delta, or search less."
    )


def _gaussian_aims(charges, epsilon, delta, mu):
    length = math.hypot(*(charge.mu for charge in charges))
    return [mu * (charge.mu / length) for charge in charges]


def _priced_aims(charges, epsilon, delta, mu):
    epsilons = math.fsum(charge.epsilon for charge in charges)
    deltas = math.fsum(charge.delta for charge in charges)
    return [
        (
            epsilon * (charge.epsilon / epsilons),
            delta * (charge.delta / deltas) if charge.delta else 0.0,
        )
        for charge in charges
    ]


def _smaller(aims, charges, mu):
    """Return smaller aims, for charges above the present ones."""
    if mu is None:
        return [(e * (1 - 1e-12), d * (1 - 1e-12)) for e, d in aims]
    return [
        aim * min(1.0, aim / charge.mu) * (1 - _MARGIN) if charge.mu is not None else aim / 2
        for aim, charge in zip(aims, charges, strict=True)
    ]


def _settings(leaf, charge, aim, mu, whole):
    """Return epsilon and delta of a step, for a target of its charge."""
    has_delta = "delta" in leaf.get_params(deep=False)
    if mu is None:
        epsilon, delta = aim
        return {"epsilon": epsilon, "delta": delta} if has_delta else {"epsilon": epsilon}
    if not (charge.delta and has_delta):
        return {"epsilon": pure_epsilon(aim)}
    # less of delta for less of mu, so that something is left of epsilon
    delta = whole[1] * min(1.0, aim / gdp_mu(*whole))
    return {"epsilon": gdp_epsilon(aim, delta), "delta": delta}


# The plan.


#: the most runs that "auto" gives a part of the budget each
MOST_OF_ALL = 6
#: how often "subset" runs every candidate if nobody says
RUNS_OF_SUBSET = 2


def all_configured(estimator, listed):
    """Return a model for every candidate, or raise a ValueError.

    Parameters
    ----------
    estimator : estimator
        Estimator to tune.
    listed : list of dict
        Parameters of the candidates.
    """
    if not listed:
        raise ValueError("the grid is empty: there is no candidate to be fitted.")
    return [configured(estimator, params) for params in listed]


def held_out_rows(n_rows, fraction, unit="row"):
    """Return the number of held-out rows, at least one and not all.

    Parameters
    ----------
    n_rows : int
        Number of rows, or groups.
    fraction : float
        Approximate fraction of them.
    unit : {"row", "group"}, default="row"
        Protected unit.
    """
    if n_rows < 2:
        raise ValueError(
            f"a search needs at least 2 {unit}s, one that trains and one that scores; got "
            f"n_samples={n_rows}. Pass public rows as X_val, and none is held out."
        )
    return min(max(1, round(fraction * n_rows)), n_rows - 1)


def check_scores(plan, adjacency, held_out):
    """Raise a ValueError if the budget is too small to release a score.

    Parameters
    ----------
    plan : SelectionPlan
        Plan of the budget.
    adjacency, held_out : str, int
        Adjacency, and number of held-out rows.
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


def resolve_strategy(strategy, n_candidates, n_repeats):
    """Return "all" or "subset", and the number of runs per candidate.

    Parameters
    ----------
    strategy : {"auto", "all", "subset"}
        "auto" is "all" for few runs, and if repeats are given.
    n_candidates : int
        Number of candidates.
    n_repeats : int or None
        None for the default of the strategy.
    """
    if strategy == "auto":
        few = n_candidates <= MOST_OF_ALL or (n_repeats or 1) > 1
        strategy = "all" if few else "subset"
    return strategy, n_repeats or (RUNS_OF_SUBSET if strategy == "subset" else 1)


def plan_runs(search, models, listed, labels, form, public_scores, unit="row", weighted=False):
    """Return the plan of a search, and its candidates with their shares.

    Parameters
    ----------
    search : DPSearchCV
        Search with the parameters.
    models, listed : list of estimator, list of dict
        The candidates.
    labels : ndarray or None
        Label set, if steps have none.
    form : Form
        Of the data.
    public_scores : bool
        Whether the scores are from public rows.
    unit : {"row", "group"}, default="row"
        Protected unit; groups are planned for as that many rows.
    weighted : bool, default=False
        Whether rows have weights.

    Returns
    -------
    plan : SelectionPlan
        Division of the budget.
    adjacency : str
        Adjacency of all fits.
    candidates : list of Candidate
        One candidate per run, in order; repeats are adjacent.
    held_out : int
        Number of held-out rows.

    Raises
    ------
    ValueError
        If a candidate is unusable, or the budget is too small for the search.
    """
    n_rows, epsilon, delta = form.shape[0], float(search.epsilon), float(search.delta)
    held_out = 0 if public_scores else held_out_rows(n_rows, search.validation_fraction, unit)
    options = unit, search.max_weight if weighted else None
    candidates = [
        make_candidate(model, params, labels, (epsilon, delta), form, n_rows - held_out, *options)
        for model, params in zip(models, listed, strict=True)
    ]
    adjacency = check_adjacency(candidates)
    strategy, n_repeats = resolve_strategy(search.strategy, len(candidates), search.n_repeats)
    plan = plan_selection(
        epsilon,
        delta,
        strategy=strategy,
        n_candidates=len(candidates) * n_repeats,
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
        shared += [replace(one, **given)] * n_repeats
    return plan, adjacency, shared, held_out


def _shared(candidate, form, n_rows, price, whole):
    epsilon, delta, mu = price
    return share_out(candidate, form, n_rows, epsilon=epsilon, delta=delta, mu=mu, whole=whole)


# The runs.


@dataclass(frozen=True)
class Outcome:
    """Releases of a search.

    Parameters
    ----------
    model : estimator
        The winner.
    run : int
        Position of the winner in the list of runs, repeats included.
    score : float
        Released mean score as a fraction of the range, minus 1/2; or the exact score on public
        rows.
    scores : ndarray or None
        Scores of all runs on public rows.
    """

    model: Any
    run: int
    score: float
    scores: Any = None


@dataclass(frozen=True, eq=False)
class SearchedRows:
    """Private rows of a search, with targets, groups and weights.

    Parameters
    ----------
    X, y : array-like
        Rows, and targets or None.
    groups : ndarray of shape (n_rows,) or None
        Group of every row: a position among all groups.
    weights, counts : ndarray of shape (n_rows,) or None
        Weights for the fits, and weights in scores, in [0, 1].
    """

    X: Any
    y: Any
    groups: Any = None
    weights: Any = None
    counts: Any = None

    def of(self, chosen):
        """Return the rows at some positions, or all rows of the groups at these positions."""
        if self.groups is not None:
            chosen = np.flatnonzero(np.isin(self.groups, chosen))
        y = None if self.y is None else take_rows(self.y, chosen)
        rest = (self.groups, self.weights, self.counts)
        rest = [None if part is None else part[chosen] for part in rest]
        return SearchedRows(take_rows(self.X, chosen), y, *rest)


def counts_in_groups(counts, groups):
    """Return weights of rows with a total of at most 1 per group.

    Parameters
    ----------
    counts : ndarray of shape (n_rows,)
        Weights of single rows, in [0, 1].
    groups : ndarray of shape (n_rows,) or None
        Group of every row; None if every row is its own group.
    """
    return counts if groups is None else in_parts(counts * shares("group", groups))


def released_total(hidden, counts, groups, adjacency, n_rows, unit):
    """Release the total weight of the rows of a search, and charge for the whole search.

    Parameters
    ----------
    hidden : HiddenCount
        Count of the current search.
    counts, groups : ndarray of shape (n_rows,), ndarray of shape (n_rows,) or None
        Weights and groups of rows; private.
    adjacency, n_rows, unit : str, int, {"row", "group"}
        Adjacency, number of protected units, and unit.

    Returns
    -------
    total : int
        Total, at least 1.
    """
    hidden.adjacency = adjacency
    return hidden.release(partial(counts_in_groups, counts, groups), n_rows, unit)


def fit_candidate(estimator, share, rows, seeds=None, public_seeds=()):
    """Fit a clone of an estimator, with the given budgets of its private steps.

    Parameters
    ----------
    estimator : estimator
        Not fitted.
    share : Share
        Budgets of its private steps.
    rows : SearchedRows
        Training rows.
    seeds : list of int, default=None
        Fresh seeds for the private steps; None leaves all noise to the
        operating system.
    public_seeds : list of int, default=()
        Fresh seeds for the steps that `unseeded` returns.

    Returns
    -------
    model : estimator
        Fitted model. Everything in it that depends on rows was released by curators; so was what
        its `_doubts` depend on, the texts of what is noise about it.

    Raises
    ------
    BudgetError
        If a step charged more than its share or nothing, or has no share.
    """
    model = clone(estimator)
    loud = {name: value for name, value in model.get_params().items() if _is_verbose(name)}
    quieten(model)
    leaves, budgets = private_leaves(model), [RunBudget(limit) for limit in share.limits]
    # a step without the parameter draws from nothing that a seed could set
    before = [leaf.get_params(deep=False) for leaf in leaves]
    before = [{n: v for n, v in given.items() if n == "random_state"} for given in before]
    for place, leaf in enumerate(leaves):
        given = {"budget": budgets[place], **share.settings[place]}
        if before[place]:
            given["random_state"] = None if seeds is None else seeds[place]
        leaf.set_params(**given)
    drawing = unseeded(model)
    for leaf, seed in zip(drawing, public_seeds, strict=True):
        leaf.set_params(random_state=seed)
    given = model, rows.groups, rows.weights
    with warnings.catch_warnings(), overheard() as doubts, routed(*given) as passed:
        # nobody is to be told the same in every run, nor anything about a run that did not win
        warnings.simplefilter("ignore")
        model.fit(rows.X, rows.y, **passed)
    model._doubts = doubts
    _check_fitted(model, budgets)
    # what was fitted may be clones of the leaves
    fitted = [(budgets.index(leaf.budget), leaf) for leaf in private_leaves(model)]
    for place, leaf in [*fitted, *enumerate(leaves)]:
        leaf.set_params(budget=None, **before[place])
    for leaf in [*drawing, *(leaf for _, leaf in all_leaves(model) if not is_private(leaf))]:
        if getattr(leaf, "random_state", None) in public_seeds:
            leaf.set_params(random_state=None)
    model.set_params(**loud)
    return model


def _is_verbose(name):
    return name.split("__")[-1] == "verbose"


def _check_fitted(model, budgets):
    """Raise a BudgetError unless every part of a fitted model was charged."""
    if any(budget.charged is None for budget in budgets):
        raise BudgetError("a private step did not charge its share: the run is not paid for.")
    for step, leaf in all_leaves(model):
        free = is_free(leaf) and getattr(leaf, "ledger_", None) == Ledger()
        if not (free or (is_private(leaf) and leaf.budget in budgets) or learns_nothing(leaf)):
            raise BudgetError(
                f"{name_of(step, leaf)} was fitted, but is not among the steps that were paid for."
            )


def run_search(gate, candidates, scorer, rows, public, n_jobs):
    """Run all candidates, in order, and release the winner.

    Parameters
    ----------
    gate : Search
        Open gate of the search, which was charged and keeps the secrets.
    candidates : list of Candidate
        One candidate with shares per run.
    scorer : RowScorer
        Scorer of single rows.
    rows : SearchedRows
        All private rows.
    public : tuple of (X, y) or None
        Public validation rows, if any.
    n_jobs : int or None
        Of joblib.

    Returns
    -------
    outcome : Outcome
        Released numbers, and the model of the winner.
    """
    train, held_out = gate.split()
    taken = rows.of(train) if len(held_out) else rows
    # all of them, whichever count: what is made, and in which order, is public
    seeds = [_seeds_of(gate, one, run) for run, one in enumerate(candidates)]
    with warnings.catch_warnings():
        # threads share their filters, and joblib has its own
        warnings.simplefilter("ignore")
        models = Parallel(n_jobs=n_jobs, verbose=0)(
            delayed(fit_candidate)(one.estimator, one.run, taken, *own)
            for one, own in zip(candidates, seeds, strict=True)
        )
    scores = None
    if public is not None:
        scores = np.array([scorer(model, *public) for model in models])
        best = gate.best(scores)
        score = float(scores[best])
    else:
        best, score = _choose(gate, models, scorer, rows.of(held_out), len(held_out))
    winner, model = candidates[best], models[best]
    if winner.refit is not None:
        own = _seeds_of(gate, winner, len(candidates))
        model = fit_candidate(winner.estimator, winner.refit, rows, *own)
    return Outcome(model, best, score, scores if gate.plan.strategy == "all" else None)


def _choose(gate, models, scorer, tested, n_held_out):
    """Return the winning run and its score, as released."""
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
    best = gate.best(scores)
    return best, scores[best]


def _scored(models, scorer, tested):
    """Return the scores of held-out rows by several models."""
    table = [scorer.of_rows(model, tested.X, tested.y) for model in models]
    null = [null_rows(model, tested.X, tested.y) for model in models]
    counted = np.stack(null, axis=1), tested.groups, tested.counts
    return HeldOutRows(np.stack(table, axis=1), *scorer.bounds, *counted)


def null_rows(model, X, y):
    """Return the null rows of a fit, which contribute nothing to scores either.

    Parameters
    ----------
    model : estimator
        Fitted.
    X, y : array-like
        Rows, and targets or None.

    Returns
    -------
    null : ndarray of shape (n_rows,), dtype bool
        Rows with a label outside the public set; also non-finite rows if scikit-learn's validation
        is switched off (otherwise these are refused or imputed).
    """
    null = np.zeros(X.shape[0] if hasattr(X, "shape") else len(X), dtype=bool)
    classes = getattr(model, "classes_", None)
    if y is not None and classes is not None and len(classes) > 1:
        with warnings.catch_warnings():
            # whether any label is one of them
            warnings.simplefilter("ignore")
            null |= resolve_classes(y, classes)[2]
    if get_config()["assume_finite"] and getattr(getattr(X, "dtype", None), "kind", "") == "f":
        null |= ~np.isfinite(X.toarray() if is_sparse(X) else X).all(axis=1)
    return null


def _seeds_of(gate, candidate, run):
    """Return fresh seeds for private steps, and for steps on numpy's global generator."""
    return _seeds(gate, candidate, run), [gate.seed(run) for _ in unseeded(candidate.estimator)]


def _seeds(gate, candidate, run):
    """Return fresh seeds for the private steps; None if the search is not seeded."""
    if not gate.ledger.seeded:
        return None
    return [gate.seed(run) for _ in candidate.charges]


def stamp(model, ledger, spent):
    """Give every private step the ledger of the search, which is the price of the winner.

    Parameters
    ----------
    model : estimator
        The winner; it is changed.
    ledger : Ledger
        Ledger of the search.
    spent : tuple of (float, float)
        Its price.
    """
    chosen = private_leaves(model)
    together = {leaf._fit_note.identity for leaf in chosen if hasattr(leaf, "_fit_note")}
    for leaf in chosen:
        leaf.ledger_, leaf.privacy_spent_ = ledger, spent
        if hasattr(leaf, "_fit_note"):
            leaf._fit_note = leaf._fit_note.among(together)
        # a search that won in a search
        if hasattr(leaf, "best_estimator_"):
            stamp(leaf.best_estimator_, ledger, spent)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The steps of an estimator: which are private, and which may stand beside them."""

from skdp.privacy._learns_nothing import learns_nothing
from skdp.privacy._search_price import is_private
from skdp.privacy._spent import _parts

#: what a search decides itself
DECIDED = ("epsilon", "delta", "budget")


def all_leaves(estimator):
    """Return the (name, estimator) of all leaves of pipelines and what else holds steps.

    Parameters
    ----------
    estimator : estimator
        Fitted or not.

    Returns
    -------
    leaves : list of (str, estimator)
        Of a column transformer that is not fitted, what takes the remaining columns too.
    """
    found = list(_parts(estimator, type(estimator).__name__))
    for holder in _holders(estimator):
        rest = getattr(holder, "remainder", None)
        if hasattr(rest, "fit") and not hasattr(holder, "transformers_"):
            found += [leaf for leaf in all_leaves(rest) if leaf[1] not in _only(found)]
    return found


def _only(leaves):
    return [leaf for _, leaf in leaves]


def _holders(estimator):
    """Yield an estimator and all estimators among its parameters."""
    yield estimator
    if hasattr(estimator, "get_params"):
        for value in estimator.get_params(deep=True).values():
            if hasattr(value, "get_params") and not isinstance(value, type):
                yield value


def private_leaves(estimator):
    """Return the private leaves of an estimator, always in the same order."""
    return [leaf for _, leaf in all_leaves(estimator) if is_private(leaf)]


def unseeded(estimator):
    """Return the steps that are not private, and would draw from numpy's own generator.

    Its state goes on from run to run: whoever knows where it began could tell from the winner
    how many runs there were before. So every run gives these steps a fresh seed.

    Parameters
    ----------
    estimator : estimator
        Not fitted.

    Returns
    -------
    leaves : list of estimator
        Always in the same order.
    """
    others = [leaf for _, leaf in all_leaves(estimator) if not is_private(leaf)]
    return [leaf for leaf in others if getattr(leaf, "random_state", 0) is None]


def check_steps(estimator):
    """Raise a ValueError unless every step is private, or learns nothing.

    Parameters
    ----------
    estimator : estimator
        With its parameters set; not fitted.
    """
    leaves = all_leaves(estimator)
    for name, leaf in leaves:
        if not (is_private(leaf) or learns_nothing(leaf)):
            kind = type(leaf).__name__
            told = name if name == kind else f"{name} ({kind})"
            raise ValueError(
                f"{told} learns from the data without a ledger: nobody could pay for "
                "it. Use private steps, and steps that learn nothing from rows."
            )
        if getattr(leaf, "_skl_callbacks", None):
            raise ValueError(f"{name} has callbacks, which would count the runs: remove them.")
    chosen = [leaf for _, leaf in leaves if is_private(leaf)]
    if not chosen:
        raise ValueError(
            f"{type(estimator).__name__} has no private step: there is nothing to give a budget to."
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
        if getattr(holder, "memory", None) is not None:
            raise ValueError(f"memory of a {kind} must be None: a cache repeats noise.")
        if all(holder is not leaf for _, leaf in leaves) and getattr(holder, "n_jobs", 1) not in (
            None,
            1,
        ):
            raise ValueError(
                f"n_jobs of a {kind} must be None: what a step charges in another process would "
                "not be seen. Let the search have the processes."
            )


def check_grid(grids):
    """Raise a ValueError if a grid sets what the search decides.

    Parameters
    ----------
    grids : dict or list of dict
        As scikit-learn has them.
    """
    for grid in [grids] if isinstance(grids, dict) else grids:
        for name in grid:
            if name.split("__")[-1] in DECIDED:
                raise ValueError(
                    f"{name!r} cannot be searched: the search divides its own epsilon and delta "
                    "among all runs. Set epsilon, delta and budget of the search instead."
                )

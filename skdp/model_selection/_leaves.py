# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The steps of an estimator: which are private, and which may stand beside them."""

from skdp.privacy._learns_nothing import learns_nothing
from skdp.privacy._steps import is_free, is_private, leaves

#: what a search decides itself
DECIDED = ("epsilon", "delta", "budget")


def all_leaves(estimator):
    """Return the (name, estimator) of all leaves of pipelines and what else holds steps."""
    found = leaves(estimator, type(estimator).__name__)
    # in the order in which they are given shares and seeds
    return sorted(found, key=lambda leaf: leaf[0] == "step 'remainder'")


def _holders(estimator):
    """Yield an estimator and all estimators among its parameters."""
    yield estimator
    if hasattr(estimator, "get_params"):
        for value in estimator.get_params(deep=True).values():
            if hasattr(value, "get_params") and not isinstance(value, type):
                yield value


def private_leaves(estimator):
    """Return the private leaves that a search gives a share to, always in the same order.

    Those that release nothing, with the parameters that they have, need none.
    """
    found = [leaf for _, leaf in all_leaves(estimator)]
    return [leaf for leaf in found if is_private(leaf) and not is_free(leaf)]


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
    found = all_leaves(estimator)
    for name, leaf in found:
        if not (is_private(leaf) or learns_nothing(leaf)):
            kind = type(leaf).__name__
            told = name if name == kind else f"{name} ({kind})"
            raise ValueError(
                f"{told} learns from the data without a ledger: nobody could pay for "
                "it. Use private steps, and steps that learn nothing from rows."
            )
        if getattr(leaf, "_skl_callbacks", None):
            raise ValueError(f"{name} has callbacks, which would count the runs: remove them.")
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
        if getattr(holder, "memory", None) is not None:
            raise ValueError(f"memory of a {kind} must be None: a cache repeats noise.")
        if all(holder is not leaf for _, leaf in found) and getattr(holder, "n_jobs", 1) not in (
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

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What fits cost whose ledgers were not kept: those of a search and of a cross-validation.

Read off parameters: every fit is at most (epsilon, delta)-DP in every private step.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Sized
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from skdp.privacy._accounting import check_delta, check_epsilon
from skdp.privacy._learns_nothing import learns_nothing
from skdp.privacy._ledger import Ledger
from skdp.privacy._mechanisms import Noise
from skdp.privacy._release import Release
from skdp.privacy._steps import is_free, is_private, leaves

#: entries of `not_covered` that are no steps
SCORES = "the scores, which are exact numbers computed from the rows that are scored"
CHOICE = "the choice of the winner, by exact scores on the rows that are held out"
SPLITS = "the splits: they are stratified, so a label decides into which folds other rows go"


def count_splits(cv: Any) -> int:
    """Return into how many splits a cross-validation divides the rows.

    `cv` is as scikit-learn has it, but for None. A TypeError is raised if it is anything else, a
    ValueError if there are no splits, or only the data could tell how many.
    """
    allowed = "an int of at least 2, a splitter, or a list of (train, test) pairs"
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv must be {allowed}; got {cv!r}.")
        return int(cv)
    if hasattr(cv, "get_n_splits"):
        try:
            found = int(cv.get_n_splits())
        except (TypeError, ValueError):
            raise ValueError(
                f"cv must be {allowed}; the number of splits of {cv!r} depends on the data. "
                "Give the number."
            ) from None
        if found < 1:
            raise ValueError(f"cv must be {allowed}; got {found} splits.")
        return found
    # an iterator has been used up by now
    if not isinstance(cv, Sequence | np.ndarray) or isinstance(cv, str):
        raise TypeError(f"cv must be {allowed}; got {type(cv).__name__}.")
    if not len(cv) or not all(isinstance(s, Sized) and len(s) == 2 for s in cv):
        raise ValueError(f"cv must be {allowed}; got {len(cv)} entries that are not such pairs.")
    return len(cv)


def about_splits(cv: Any, estimator: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what of the splits is not covered, and what is assumed about them.

    The one is for stratified splits, which a number of folds means for classifiers, the other
    for splits that were given as they are.
    """
    if cv is None or isinstance(cv, Integral):
        tags = getattr(estimator, "__sklearn_tags__", None)
        kind = tags().estimator_type if tags else getattr(estimator, "_estimator_type", None)
        return (SPLITS,) if kind == "classifier" else (), ()
    if not hasattr(cv, "get_n_splits"):
        return (), ("splits, which were given as positions of rows",)
    stratified = any("Stratified" in base.__name__ for base in type(cv).__mro__)
    return (SPLITS,) if stratified else (), ()


def _adjacency(leaf: Any) -> str:
    """Return the adjacency of a private estimator: its own, or that of what it fits."""
    if hasattr(leaf, "adjacency"):
        return str(leaf.adjacency)
    inner = leaves(leaf.estimator, given={}) if hasattr(leaf, "estimator") else ()
    # what has none consists of reports that rows make on their own
    return next((_adjacency(part) for _, part in inner if is_private(part)), "local")


def _granted(leaf: Any, name: str) -> Release:
    """Return what one fit of a private estimator may spend."""
    population = getattr(leaf, "population_size", None)
    if leaf.epsilon is None or population is not None:
        # epsilon is that of a deployment then, and a fit may spend a thousand times as much
        why = "epsilon=None" if population is None else f"population_size={population!r}"
        raise TypeError(
            f"{name} has {why}: its parameters do not tell what a fit spends. Count with a "
            "shared PrivacyBudget."
        )
    epsilon, delta = check_epsilon(leaf.epsilon), check_delta(getattr(leaf, "delta", 0.0))
    return Release(
        query=f"fits of {type(leaf).__name__}",
        size=1,
        adjacency=_adjacency(leaf),
        stated_sensitivity=math.inf,
        theorem="every fit keeps to its parameters epsilon and delta",
        noise=Noise("fits", 0.0, 1.0, math.inf, math.inf, 0.0, epsilon, delta),
        numerics="as in the fits",
        seeded=getattr(leaf, "random_state", None) is not None,
        unit="client" if hasattr(leaf, "local_epsilon") else "row",
    )


def price_of_fits(
    estimator: Any, settings: Sequence[Mapping[str, Any]], n_each: int
) -> tuple[Ledger, list[str], int]:
    """Return what fits cost at most, and what of them is not covered.

    Parameters
    ----------
    estimator : estimator
        Fitted or not: only its parameters are read.
    settings : sequence of dict
        Parameters that were replaced, as for `set_params`: one dictionary per candidate.
    n_each : int
        Number of fits of every candidate.

    Returns
    -------
    ledger : Ledger
        One line for all fits of a kind with the same price.
    not_covered : list of str
        Steps that learn without a ledger.
    n_fits : int
        Number of fits that are private at all.

    Raises
    ------
    TypeError
        If no candidate has a private step, or the parameters of one do not tell its price.
    """
    prices, not_covered, n_fits = Counter[Release](), dict[str, None](), 0
    whole, has_private_steps = type(estimator).__name__, False
    for given in settings:
        found = list(leaves(estimator, whole, given))
        has_private_steps |= any(is_private(leaf) for _, leaf in found)
        n_fits += n_each * any(is_private(leaf) and not is_free(leaf) for _, leaf in found)
        for name, leaf in found:
            if is_free(leaf):
                continue
            if is_private(leaf):
                prices[_granted(leaf, name)] += n_each
                if getattr(leaf, "new_rows", None) == "randomise":
                    not_covered[f"the reports of {name} about rows that are predicted on"] = None
            elif not learns_nothing(leaf):
                not_covered[name] = None
    if not has_private_steps:
        raise TypeError(
            f"fits of {whole} have no private step: nothing to add up. What holds private "
            "estimators inside, other than pipelines, unions and column transformers, is not "
            "taken apart."
        )
    ledger = Ledger()
    for release, count in prices.items():
        ledger = ledger.append(replace(release, count=count))
    return ledger, list(not_covered), n_fits

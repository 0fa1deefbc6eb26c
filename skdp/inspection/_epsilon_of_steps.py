# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which parameters of an estimator or a pipeline are privacy budgets, and how to share one."""

import math
from numbers import Real

from skdp.privacy._steps import sklearn_bases

#: they fit their steps once each, so that budgets of steps add up to that of the whole
COMPOSITES = {"Pipeline", "FeatureUnion", "ColumnTransformer"}


def _has_budget(estimator):
    """Tell whether an estimator has an epsilon of its own that is a budget.

    In scikit-learn that word is the width of a loss: SVR, HuberRegressor and others.
    """
    own = getattr(estimator, "get_params", dict)
    return (
        not isinstance(estimator, type)
        and not type(estimator).__module__.startswith("sklearn.")
        and hasattr(estimator, "get_params")
        and "epsilon" in own(deep=False)
    )


def private_steps(estimator):
    """Return the budgets of an estimator.

    Parameters
    ----------
    estimator : estimator or Pipeline
        With a parameter `epsilon`, or steps that have one.

    Returns
    -------
    steps : dict of str to float
        Names of parameters, with their present values.

    Raises
    ------
    ValueError
        If there is none, one is no number, or one is inside of a meta-estimator.
    """
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise ValueError(f"estimator must be an estimator with parameters; got {estimator!r}.")
    parts = {"": estimator, **estimator.get_params(deep=True)}
    steps = {}
    for name, value in parts.items():
        *path, last = name.split("__")
        owners = ["__".join(path[:i]) for i in range(len(path) + 1)]
        above = [parts.get(owner) for owner in owners[:-1]]
        if last != "epsilon" or not _has_budget(parts.get(owners[-1])):
            continue
        if any(_has_budget(outer) for outer in above):
            continue  # the one that holds it decides
        for outer in above:
            if not sklearn_bases(outer) & COMPOSITES:
                raise ValueError(
                    f"estimator: {name} belongs to a part of {type(outer).__name__}, which may "
                    "fit it any number of times, so that epsilon is not what it spends. "
                    "Give an estimator or a pipeline with an epsilon of its own."
                )
        steps[name] = value
    if not steps:
        raise ValueError(
            f"estimator: {type(estimator).__name__} has no epsilon, and no step that has one."
        )
    for name, value in steps.items():
        number = isinstance(value, Real) and not isinstance(value, bool)
        if len(steps) > 1 and not (number and 0 < value < math.inf):
            raise ValueError(f"{name} must be positive and finite to be scaled; got {value!r}.")
    return steps


def scaled_epsilons(steps, epsilon):
    """Return values of the parameters whose plain sum is epsilon, in the same proportions."""
    if len(steps) == 1:
        return dict.fromkeys(steps, float(epsilon))
    total = math.fsum(steps.values())
    return {name: float(epsilon) * (value / total) for name, value in steps.items()}


def sum_of_deltas(estimator, steps):
    """Return the plain sum of the deltas beside those epsilons, or None if one is not known."""
    values = estimator.get_params(deep=True)
    deltas = [values.get(f"{name.removesuffix('epsilon')}delta") for name in steps]
    known = all(isinstance(d, Real) and not isinstance(d, bool) for d in deltas)
    return float(math.fsum(deltas)) if known else None

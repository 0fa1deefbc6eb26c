# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which mechanism a private mean of sparse rows is released by."""

from skdp._solvers.sparse_mean_histogram import plan_histogram
from skdp._solvers.sparse_mean_noisy import plan_auto, plan_projection, plan_soft_threshold
from skdp._solvers.sparse_mean_sketch import plan_sketch

PLANS = {
    "soft-threshold": plan_soft_threshold,
    "projection": plan_projection,
    "compressed-sensing": plan_sketch,
    "histogram": plan_histogram,
}
SPARSE_MEANS = tuple(PLANS)
#: vectors with an entry for every feature are not made for more features
MOST_FEATURES = 2**31

_SKETCH = ("compressed-sensing",)
#: parameters that not every mechanism understands: which do, and what they are by default
_FOREIGN = {
    "projection": (("soft-threshold", "projection", "compressed-sensing"), "ksupport"),
    "measurement": (_SKETCH, "auto"),
    "n_measurements": (_SKETCH, None),
    "recovery": (_SKETCH, "auto"),
    "solver": (_SKETCH, "auto"),
}


def plan_sparse_mean(mechanism, problem):
    """Plan a private mean of sparse rows, from public numbers.

    Parameters
    ----------
    mechanism : {"auto", "soft-threshold", "projection", "compressed-sensing", "histogram"}
        "auto" is "soft-threshold", with Laplace noise also where there is a delta, if that
        is predicted to do less harm than Gaussian noise.
    problem : SparseMeanProblem
        Public facts.

    Returns
    -------
    plan : object
        Frozen, with `mechanism`, the `delta` that it may spend, and `run(curator)`, which
        returns a `SparseEstimate`. The curator holds rows of `sparse_rows`.

    Raises
    ------
    ValueError
        If there is no such mechanism, or it does not go with the public facts.
    """
    if mechanism != "histogram" and problem.n_features > MOST_FEATURES:
        raise ValueError(
            f"mechanism={mechanism!r} makes vectors with a number for each of the "
            f"{problem.n_features} features, which does not fit in memory; use "
            "mechanism='histogram', or hash the features to fewer."
        )
    plan = PLANS.get(mechanism, plan_auto)
    if mechanism == "auto":
        mechanism = "soft-threshold"
    if mechanism not in PLANS:
        raise ValueError(f"mechanism must be one of {('auto', *PLANS)}; got {mechanism!r}.")
    for name, (owners, default) in _FOREIGN.items():
        given = getattr(problem, name)
        if given != default and mechanism not in owners:
            raise ValueError(
                f"{name} is a parameter of mechanism {' or '.join(map(repr, owners))}; got "
                f"{name}={given!r} with mechanism={mechanism!r}."
            )
    return plan(problem)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""An audit of outputs that somebody has already collected."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skdp.audit._attack import ATTACKS, learn_tests
from skdp.audit._bounds import epsilon_bound, mu_bound, rates_of
from skdp.audit._checks import check_confidence, check_delta, check_real
from skdp.audit._outputs import Failure, Layout, scored
from skdp.audit._result import AuditResult

#: fewer runs bound nothing
LEAST_RUNS = 40


def check_claim(epsilon):
    """Return a claimed epsilon as a float, or None for None; raise ValueError if unusable."""
    if epsilon is None:
        return None
    return check_real("the claimed epsilon", epsilon, "0 or more", lambda e: e >= 0)


def check_attack(attack):
    """Return the name of an attack, or raise ValueError."""
    if not (isinstance(attack, str) and attack in ATTACKS):
        raise ValueError(f"attack must be one of {', '.join(ATTACKS)}; got {attack!r}.")
    return attack


def audit_outputs(
    first: ArrayLike,
    second: ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    claimed: float | None = None,
    attack: Literal["auto", "linear"] = "auto",
) -> AuditResult:
    """Bound epsilon from below by outputs of a mechanism on two neighbouring data sets.

    For mechanisms that are no estimators, or whose outputs were made elsewhere.

    Parameters
    ----------
    first, second : array-like of shape (n_runs,) or (n_runs, n_outputs)
        Outputs of independent runs on the one data set and on its neighbour, 40 at least
        of each. NaN and infinite entries are outputs like others.
    delta : float, default=0.0
        In [0, 1).
    confidence : float, default=0.95
        In (0, 1).
    claimed : float, default=None
        The epsilon that is claimed, or None.
    attack : {"auto", "linear"}, default="auto"
        How outputs are told apart: "linear" tries directions, "auto" also single outputs,
        their histograms, and a quadratic discriminant.

    Returns
    -------
    result : AuditResult
        The attack is learned from the first half of the runs, the bound from the second.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the outputs do not fit together.

    See Also
    --------
    audit_privacy : Fit an estimator to both data sets, and do this.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import audit_outputs
    >>> noise = np.random.default_rng(0).laplace(size=(2, 2000))
    >>> result = audit_outputs(noise[0], 1 + noise[1], claimed=0.5)  # the noise gives 1
    >>> result.passed, 0.5 < result.epsilon_lower < 1
    (False, True)
    """
    delta, confidence = check_delta(delta), check_confidence(confidence)
    claimed, attack = check_claim(claimed), check_attack(attack)
    worlds = [_as_outcomes(*given) for given in (("first", first), ("second", second))]
    if len({o["score"].size for world in worlds for o in world}) != 1:
        raise ValueError("first and second must have the same number of outputs per run.")
    halves = [(world[: len(world) // 2], world[len(world) // 2 :]) for world in worlds]
    return bound(
        [half[0] for half in halves],
        [half[1] for half in halves],
        delta=delta,
        confidence=confidence,
        epsilon_claimed=claimed,
        attack=attack,
        n_runs=min(len(world) for world in worlds),
        pair="as given",
    )


def _as_outcomes(name, outputs):
    table = np.asarray(outputs, dtype=np.float64)
    if table.ndim not in (1, 2) or len(table) < LEAST_RUNS or not table.size:
        raise ValueError(
            f"{name} must have the shape (n_runs,) or (n_runs, n_outputs) with {LEAST_RUNS} runs "
            f"at least; got the shape {table.shape}."
        )
    return [scored(row) for row in table]


def bound(learning, fresh, *, delta, confidence, attack, **told):
    """Learn a test from outcomes, and bound epsilon by its errors on others.

    Parameters
    ----------
    learning, fresh : pair of lists of outcomes
        Of the first data set and of the second. Nothing of `fresh` is looked at before the
        test is fixed.
    delta, confidence : float
        For the bound.
    attack : str
        Which scores are tried.
    **told : dict
        Further fields of the result.

    Returns
    -------
    result : AuditResult
    """
    layout = Layout(learning[0] + learning[1])
    tests = learn_tests(*[layout.table(world) for world in learning], delta, attack)
    tables = [layout.table(world) for world in fresh]
    # without delta Gaussian noise claims nothing; otherwise both tests hold together
    one = delta == 0 or tests[0] is tests[1]
    miss = (1 - confidence) / (1 if one else 2)
    rates = [rates_of(*[test.says_second(table) for table in tables], miss) for test in tests]
    (fpr, fnr), (mu_fpr, mu_fnr) = rates[0], rates[0 if one else 1]
    return AuditResult(
        epsilon_lower=float(epsilon_bound(fpr[2], fnr[2], delta)),
        mu_lower=float(mu_bound(mu_fpr[2], mu_fnr[2])),
        delta=delta,
        confidence=confidence,
        fpr=fpr,
        fnr=fnr,
        gaussian_fpr=mu_fpr,
        gaussian_fnr=mu_fnr,
        n_bound_runs=min(len(world) for world in fresh),
        n_failed=tuple(sum(isinstance(o, Failure) for o in world) for world in fresh),
        attack=tests[0].name,
        curve=tests[0].curve(*tables),
        **{"adjacency": None, "seeded": False} | told,
    )

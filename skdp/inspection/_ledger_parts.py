# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A ledger in parts: kinds of releases, and what each would cost if it were alone."""

from dataclasses import dataclass, replace

from skdp.privacy import privacy_spent
from skdp.privacy._steps import leaves


@dataclass(frozen=True)
class LedgerPart:
    """All releases of one query in one step.

    Parameters
    ----------
    name : str
        Of the query.
    epsilon : float
        Of these releases composed, if there were no others.
    count : int, default=1
        How many releases.
    step : str, default=""
        Of the pipeline.
    hidden : bool, default=False
        Whether only those who add local reports up see them. Then epsilon is towards these, and
        is no part of the total.
    """

    name: str
    epsilon: float
    count: int = 1
    step: str = ""
    hidden: bool = False


def parts_of_ledger(ledger, delta, step=""):
    """Return the parts of a ledger, in order of their first release.

    Parameters
    ----------
    ledger : Ledger
        What to take apart.
    delta : float
        At which epsilon is meant.
    step : str, default=""
        Of the pipeline.

    Returns
    -------
    parts : list of LedgerPart
    """
    kinds = {}
    for release in ledger.releases:
        kinds.setdefault((release.query, release.hidden), []).append(release)
    parts = []
    for (query, hidden), releases in kinds.items():
        # releases keep their rows and fits: disjoint ones cost what the dearest row pays
        alone = replace(ledger, releases=tuple(releases))
        epsilon = alone.local_epsilon(delta) if hidden else alone.epsilon(delta)
        parts.append(LedgerPart(query, epsilon, sum(r.count for r in releases), step, hidden))
    return parts


def parts_of_estimator(estimator, delta):
    """Return the parts of what an estimator or a pipeline has spent.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted.
    delta : float or None
        At which epsilon is meant; None for the sum of the reported ones.

    Returns
    -------
    parts : list of LedgerPart
        In order of the steps.
    spent : PrivacySpent
        The whole.
    """
    spent = privacy_spent(estimator, delta=delta)
    steps = {}
    for name, part in leaves(estimator):
        if hasattr(part, "ledger_"):
            # steps that were chosen together have one ledger in common
            steps.setdefault(id(part.ledger_), (step_name(name), part.ledger_))
    steps = list(steps.values())
    counted = sum(r.count for _, ledger in steps for r in ledger.releases)
    if counted != sum(r.count for r in spent.ledger.releases):
        # a search: most of what it spent stands in no ledger of a step
        steps = [("", spent.ledger)]
    parts = [p for name, ledger in steps for p in parts_of_ledger(ledger, spent.delta, name)]
    return parts, spent


def step_name(text):
    """Return the name in "step 'name'"."""
    return text.removeprefix("step ").strip("'")


def what_is_not_covered(text):
    """Return in words what is not covered: a step, or what else is done with rows."""
    if text.startswith("the "):
        return text
    return f"{step_name(text)}: learned from the data, no ledger"


def facts_of_ledger(ledger):
    """Return in words what neighbours and what is protected, or "" for an empty ledger."""
    if not ledger.releases:
        return ""
    found = "local reports" if ledger.adjacency == "local" else ledger.adjacency
    return f"{found}, per {ledger.unit}"

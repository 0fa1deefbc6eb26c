# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What one or several fitted estimators have spent together."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skdp.privacy._accounting import check_delta
from skdp.privacy._ledger import Ledger


@dataclass(frozen=True)
class PrivacySpent:
    """A total, and what it is made of. Unpacks as ``epsilon, delta``.

    Parameters
    ----------
    epsilon, delta : float
        The total: in nats, and as a probability.
    ledger : Ledger
        All releases.
    not_covered : tuple of str
        Parts that learned from data without a ledger; if any, the total is no guarantee.
    """

    epsilon: float
    delta: float
    ledger: Ledger
    not_covered: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[float]:
        return iter((self.epsilon, self.delta))

    def __str__(self) -> str:
        unit = f", {self.ledger.adjacency} adjacency, per row" if self.ledger.adjacency else ""
        lines = [f"(epsilon={self.epsilon:.6g}, delta={self.delta:.3g}){unit}"]
        lines += [f"not covered: {name} was fitted on the data" for name in self.not_covered]
        return "\n".join(lines)

    __repr__ = __str__


def _parts(estimator: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield (name, estimator) for the leaves of a pipeline."""
    if not hasattr(estimator, "steps"):
        yield name, estimator
        return
    for step_name, step in estimator.steps:
        if step is not None and step != "passthrough":
            yield from _parts(step, f"step {step_name!r}")


def privacy_spent(*estimators: Any, delta: float | None = None) -> PrivacySpent:
    """Compose what fitted estimators or pipelines have spent on the same people.

    Parameters
    ----------
    *estimators : estimator or Pipeline
        Fitted. Every step of a pipeline is counted.
    delta : float, default=None
        The delta of the total, in [0, 1); by default the sum of the reported ones.

    Returns
    -------
    spent : PrivacySpent
        The total, tightly composed, with the ledger behind it; unpacks as
        ``epsilon, delta``.

    Raises
    ------
    ValueError
        If there is nothing to add up, or the adjacencies differ.
    TypeError
        If an estimator is not fitted, or keeps no ledger (a search, say).

    See Also
    --------
    Ledger : What was released, at what price.

    Examples
    --------
    >>> from skdp import DPMean, privacy_spent
    >>> a = DPMean(epsilon=0.3, random_state=0).fit([[0.1], [0.2]])
    >>> b = DPMean(epsilon=0.4, random_state=1).fit([[0.1], [0.2]])
    >>> epsilon, delta = privacy_spent(a, b)
    >>> epsilon < 0.3 + 0.4
    True
    """
    if not estimators:
        raise ValueError("privacy_spent needs at least one fitted estimator.")
    ledger, deltas, not_covered = Ledger(), [], []
    for estimator in estimators:
        for name, part in _parts(estimator, type(estimator).__name__):
            tags = getattr(part, "__sklearn_tags__", None)
            if hasattr(part, "ledger_"):
                ledger += part.ledger_
                deltas.append(part.privacy_spent_[1])
            elif tags is not None and not tags().requires_fit:
                continue  # it learns nothing from data
            elif part is estimator or not any(n.endswith("_") for n in vars(part)):
                raise TypeError(f"{name} has no ledger_: it is not fitted, or keeps none.")
            else:
                not_covered.append(name)
    total = math.fsum(deltas) if delta is None else check_delta(delta)
    return PrivacySpent(ledger.epsilon(total), total, ledger, tuple(not_covered))

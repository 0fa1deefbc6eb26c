# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What one or several fitted estimators have spent together."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.privacy._accounting import check_delta
from skdp.privacy._composition import _sum_up
from skdp.privacy._learns_nothing import learns_nothing
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
        unit = f", {self.ledger.adjacency} adjacency, per {self.ledger.unit}"
        unit = unit if self.ledger.releases else ""
        lines = [f"(epsilon={self.epsilon:.6g}, delta={self.delta:.3g}){unit}"]
        lines += [f"not covered: {name} was fitted on the data" for name in self.not_covered]
        return "\n".join(lines)

    __repr__ = __str__


def _children(estimator: Any) -> list[tuple[str, Any]] | None:
    """Return the named parts of a pipeline, a column transformer or a union; None for others."""
    if hasattr(estimator, "steps"):
        return list(estimator.steps)
    bases = {base.__name__ for base in type(estimator).__mro__ if _is_from_sklearn(base)}
    if "FeatureUnion" in bases:
        return list(estimator.transformer_list)
    if "ColumnTransformer" in bases:
        # a part without columns is never fitted
        fitted = getattr(estimator, "transformers_", estimator.transformers)
        return [(name, part) for name, part, columns in fitted if not _none_of(columns)]
    return None


def _is_from_sklearn(kind: type) -> bool:
    return kind.__module__.startswith("sklearn.")


def _none_of(columns: Any) -> bool:
    chosen = np.asarray(columns)
    return chosen.size == 0 or (chosen.dtype == bool and not chosen.any())


def _parts(estimator: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield (name, estimator) for the leaves of pipelines and what else holds steps."""
    children = _children(estimator)
    if children is None:
        yield name, estimator
        return
    for step_name, step in children:
        if not (step is None or isinstance(step, str)):  # "passthrough" and "drop"
            yield from _parts(step, f"step {step_name!r}")


def privacy_spent(*estimators: Any, delta: float | None = None) -> PrivacySpent:
    """Compose what fitted estimators or pipelines have spent on the same people.

    Parameters
    ----------
    *estimators : estimator or Pipeline
        Fitted. Every step of a pipeline is counted, those inside of a ColumnTransformer or a
        FeatureUnion too. Steps that learned from the data without a ledger are named.
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
            if hasattr(part, "ledger_"):
                ledger += part.ledger_
                deltas.append(part.privacy_spent_[1])
            elif learns_nothing(part):
                continue
            elif part is estimator or not any(n.endswith("_") for n in vars(part)):
                raise TypeError(f"{name} has no ledger_: it is not fitted, or keeps none.")
            else:
                not_covered.append(name)
    # rounded up: rounded to nearest it may be less than what was spent
    total = _sum_up((d, 1) for d in deltas) if delta is None else check_delta(delta)
    return PrivacySpent(ledger.epsilon(total), total, ledger, tuple(not_covered))

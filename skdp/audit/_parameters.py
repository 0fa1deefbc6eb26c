# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What an estimator says of itself: its parameters and its claim."""

from skdp.audit._checks import check_real
from skdp.privacy import privacy_spent


def parameters(estimator):
    """Return the parameters of an estimator and of what it holds; none if it has no such list."""
    get_params = getattr(estimator, "get_params", None)
    return {} if get_params is None else get_params(deep=True)


def known(estimator, name):
    """Return a parameter of an estimator, or of the first step that has it, or None."""
    given = parameters(estimator)
    found = [given[name]] if name in given else []
    found += [value for key, value in given.items() if key.endswith(f"__{name}")]
    return next((value for value in found if value is not None), None)


def kind_of(estimator):
    """Return "classifier", "regressor" or "other"."""
    from sklearn.base import is_classifier, is_regressor

    try:
        if is_classifier(estimator):
            return "classifier"
        return "regressor" if is_regressor(estimator) else "other"
    except (AttributeError, TypeError):
        # no tags: an estimator in name only
        kind = getattr(estimator, "_estimator_type", None)
        return kind if kind in ("classifier", "regressor") else "other"


class Claim:
    """What is claimed: epsilon as a function of delta.

    Parameters
    ----------
    estimator : estimator
        As given, not fitted.
    fitted : estimator or None
        The same, fitted; None if the fit raised.
    """

    def __init__(self, estimator, fitted):
        self._ledger = None
        self.epsilon, self.delta = _promised(estimator)
        spent = _spent(fitted)
        if spent is not None:
            self.epsilon, self.delta = (float(part) for part in spent)
            self._ledger = getattr(spent, "ledger", None)

    def at(self, delta):
        """Return the epsilon that is claimed at a delta, or None."""
        if self.epsilon is None or delta == self.delta:
            return self.epsilon
        if self._ledger is not None:
            return float(self._ledger.epsilon(delta))
        return self.epsilon if delta > self.delta else None


def _promised(estimator):
    """Return (epsilon, delta) of the one step that has a budget; (None, 0) if there is none."""
    given = parameters(estimator) or {
        name: getattr(estimator, name) for name in ("epsilon", "delta") if hasattr(estimator, name)
    }
    found = [k for k in given if k.split("__")[-1] == "epsilon" and given[k] is not None]
    if len(found) != 1:
        return None, 0.0
    epsilon = check_real(
        "epsilon of the estimator", given[found[0]], "0 or more, or infinite", lambda e: e >= 0
    )
    delta = given.get(found[0].removesuffix("epsilon") + "delta")
    if delta is None:
        return epsilon, 0.0
    return epsilon, check_real("delta of the estimator", delta, "in [0, 1)", lambda d: 0 <= d < 1)


def _spent(fitted):
    """Return what a fitted estimator or pipeline has spent, as (epsilon, delta), or None."""
    if fitted is None:
        return None
    try:
        total = privacy_spent(fitted)
    except (TypeError, ValueError, AttributeError):
        pair = getattr(fitted, "privacy_spent_", None)
        return pair if isinstance(pair, tuple) and len(pair) == 2 else None
    return None if total.not_covered else total

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a card says, as a dictionary: read off ledgers, parameters and shapes alone."""

import math
import platform
import sys
from dataclasses import asdict
from importlib.metadata import version

from skdp.inspection import _card_sentences as say
from skdp.inspection._card_parameters import plain, shown_parameters
from skdp.inspection._card_search import search_facts
from skdp.privacy import privacy_spent
from skdp.privacy._learns_nothing import learns_nothing
from skdp.privacy._steps import is_search, leaves

SCHEMA = "skdp.privacy_card/1"
#: where a claim is read off, besides its own delta
DELTAS = (0.0, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4)
# an accountant's event may list every release
_LONGEST_EVENT = 2000

_PUBLIC = (
    "the number of {unit}s",
    "the number and names of features, data type and memory layout of the input",
    "all parameters of every step, those below; bounds, norms and vocabularies among them",
)
_VERIFY = (
    "skdp.privacy_spent(model) gives the total again, and model.ledger_ (of every step) the "
    "releases.",
    "A Gaussian release by hand: mu = sensitivity / scale; T of them cost sqrt(T) mu; "
    "skdp.privacy.gdp_epsilon(mu, delta) is epsilon.",
    "ledger_.dp_event is what an accountant of dp_accounting composes on its own.",
    "Why each sensitivity holds: docs/user_guide/proofs.rst and the pages of proofs after it. "
    "What is promised: docs/user_guide/what_is_promised.rst.",
    "From below, on rows that are made up: skdp.audit.audit_privacy, docs/user_guide/audits.rst.",
)


def card_facts(estimator, *, name, delta, date):
    """Return everything that a card says, of built-in types.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    name, date : str or None, str or None
        As the user has them.
    delta : float or None
        Where epsilon is read off.

    Returns
    -------
    facts : dict
        Of the schema `SCHEMA`. A field never changes its meaning; there may be new ones.
    """
    kind = type(estimator).__name__
    parts = list(leaves(estimator, kind))
    if is_search(estimator):
        ledger, delta, missing, sentence = search_facts(estimator, delta)
        status, epsilon = say.NONE, math.inf
    else:
        spent = privacy_spent(estimator, delta=delta)
        ledger, missing = spent.ledger, list(spent.not_covered)
        epsilon, delta = spent.epsilon, spent.delta
        learns = any(hasattr(part, "ledger_") for _, part in parts)
        status, sentence = say.claim(ledger, epsilon, delta, missing, learns)
    unit = ledger.unit
    claimed = status != say.NONE
    return plain(
        {
            "schema": SCHEMA,
            "name": kind if name is None else name,
            "date": date,
            "estimator": kind,
            "claim": {
                "status": status,
                "sentence": sentence,
                "epsilon": epsilon if claimed else None,
                "delta": delta if claimed else None,
                "adjacency": ledger.adjacency,
                "adjacency_in_words": say.adjacency_in_words(ledger.adjacency, unit),
                "unit": unit,
                "seeded": ledger.seeded,
            },
            "local_claim": _local(ledger, delta, missing),
            "notes": say.notes(ledger, parts),
            "not_covered": {
                "parts": missing,
                "never": list(say.NEVER_COVERED),
            },
            "assumptions": list(ledger.assumptions),
            "public": {
                "facts": [fact.format(unit=unit or "row") for fact in _PUBLIC],
                "n_features": getattr(estimator, "n_features_in_", None),
                "steps": [_step(step_name, part) for step_name, part in parts],
            },
            "ledger": [_entry(release) for release in ledger.releases],
            "composition": _composition(ledger, delta),
            "numerics": [
                {"kind": kind, "meaning": _meaning(kind)}
                for kind in sorted({release.numerics for release in ledger.releases})
            ],
            "versions": versions(),
            "verify": list(_VERIFY),
        }
    )


def _local(ledger, delta, missing):
    """Return what holds towards those who receive reports; None where there are none."""
    if not any(release.adjacency == "local" for release in ledger.releases):
        return None
    epsilon, pure = ledger.local_epsilon(delta), ledger.local_epsilon(0.0)
    if missing:
        epsilon = pure = math.inf
    return {
        "sentence": say.local_claim(ledger, epsilon, delta, pure),
        "epsilon": epsilon,
        "delta": delta if epsilon < math.inf else None,
        "pure_epsilon": pure,
    }


def _meaning(numerics):
    return "; ".join(meaning for words, meaning in say.MEANINGS.items() if words in numerics)


def _step(name, part):
    if hasattr(part, "ledger_"):
        role = "private: on the ledger"
    elif is_search(part):
        role = "chose by exact scores, which have no price"
    elif learns_nothing(part):
        role = "learns nothing from rows"
    else:
        role = "learned from rows, not on the ledger"
    return {
        "name": name,
        "estimator": type(part).__name__,
        "role": role,
        "parameters": shown_parameters(part) if hasattr(part, "get_params") else {},
    }


def _entry(release):
    """Return all fields of a release, and the chance of a row to be in its batch."""
    entry = asdict(release)
    sampling = release.noise.sampling
    if sampling is not None:
        entry["noise"]["sampling"]["rate"] = sampling.rate
    entry["noise"]["by_chance"] = release.noise.by_chance
    return entry


def _composition(ledger, delta):
    deltas = sorted({*DELTAS, delta})
    return {
        "method": say.composition(ledger),
        "gdp": ledger.gdp,
        "rho": ledger.rho,
        "epsilon_at": [{"delta": d, "epsilon": ledger.epsilon(d)} for d in deltas],
        "dp_event": _event(ledger),
    }


def _event(ledger):
    text = str(ledger.dp_event) if ledger.releases else ""
    if len(text) <= _LONGEST_EVENT:
        return text
    return f"{text[:_LONGEST_EVENT]} ... ({len(text)} letters; all of it: ledger_.dp_event)"


def versions():
    """Return the versions that are running now."""
    return {
        "skdp": sys.modules["skdp"].__version__,
        **{name: version(name) for name in ("scikit-learn", "numpy", "scipy", "dp-accounting")},
        "python": platform.python_version(),
    }

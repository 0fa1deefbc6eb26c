# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The sentences of a card. Each must be true when it is read without the others."""

from skdp.inspection._card_numbers import upward

HOLDS, SEED, NONE = "holds", "holds unless the seed is known", "none"

#: what no claim of skdp covers
NEVER_COVERED = (
    "running time, and other physical side channels: time depends on the data",
    "memory: private rows are not erased from it",
    "errors on malformed input, which depend on the data",
    "scores, predictions and plots that are made of private rows and the model",
    "other fits to the same people, earlier ones and those of comparisons included, unless "
    "their releases are on this ledger",
    "what the population as a whole says about a person",
    "a ledger that was changed: a card of a model that came from a file is worth what the "
    "file is worth",
)
_IN_WORDS = {
    "replace-one": "two data sets with the same number of {unit}s, one of which is exchanged "
    "for any other {unit}",
    "zero-out": "two data sets with the same number of {unit}s, one of which is replaced by a "
    "null {unit} that contributes nothing",
    "local": "any two values of one {unit}",
}
#: what the words about numerics on a ledger mean
MEANINGS = {
    "exact on the grid": "noise is drawn in integer arithmetic, and what is released is a "
    "multiple of a public power of two; this rounding is part of the sensitivity",
    "idealised": "the law of the draw is exact for real numbers only; what floating-point "
    "arithmetic changes in it is not part of the claim",
    "exact choice of runs": "how many runs there are is drawn in integer arithmetic; the noise "
    "within them is as their estimators have it",
    "as in the fits": "the ledgers of these fits were not kept",
    "system entropy": "bits come from the operating system's cryptographic generator",
    "seeded Philox": "bits follow from random_state, and can be had again by whoever knows it",
}
_SEEDED = (
    " The noise was SEEDED by random_state: this does NOT hold towards whoever knows the seed, "
    "or guesses it."
)


def adjacency_in_words(adjacency, unit):
    """Say what neighbours are."""
    return None if adjacency is None else _IN_WORDS[adjacency].format(unit=unit)


def protected(unit):
    """Say what is protected."""
    if unit == "client":
        return "Protected is one client, with all of its rows."
    return "Protected is one row; whoever has several rows is protected less."


def _pair(epsilon, delta):
    number = f"epsilon = {upward(epsilon)} nats"
    return f"{number} and delta = {upward(delta)}" if delta else f"{number} (delta = 0)"


def told(missing):
    """Say of a part that is not covered what it did; of what is no part it is said already."""
    return missing if missing.startswith("the ") else f"{missing}, which learned from the data"


def claim(ledger, epsilon, delta, missing, learns):
    """Return the status of the claim, and the claim in a sentence or two.

    Parameters
    ----------
    ledger : Ledger
        All releases.
    epsilon, delta : float
        Their total; epsilon may be infinite.
    missing : sequence of str
        What learned from the data without a ledger.
    learns : bool
        Whether there is a ledger at all, be it empty.

    Returns
    -------
    status, sentence : str, str
        The status is one of three constants.
    """
    if missing:
        alone = "" if not ledger.releases else " A total of the other parts is no claim either."
        return NONE, (
            f"NO (epsilon, delta) is claimed: these have no price: {'; '.join(map(told, missing))}."
            f"{alone}"
        )
    if not ledger.releases:
        if ledger.assumptions:
            return NONE, (
                "No release was made here, and nothing is claimed: see what is assumed about the "
                "input."
            )
        so_far = "No release has been made so far" if learns else "Nothing is learned from rows"
        return HOLDS, f"{so_far}: nothing was spent (epsilon = 0, delta = 0)."
    seeded = _SEEDED if ledger.seeded else ""
    unit = ledger.unit
    if epsilon == float("inf"):
        return NONE, (
            f"NO finite epsilon is claimed at delta = {upward(delta)}: see the table for other "
            "deltas."
        )
    bound = "at most exp(epsilon) times as likely under one as under the other"
    bound += ", plus delta" if delta else ""
    about = adjacency_in_words(ledger.adjacency, unit)
    if ledger.adjacency == "local":
        sentence = (
            f"Each {unit} made its reports on its own; they are locally differentially private "
            f"with {_pair(epsilon, delta)}, towards everybody, those who received them included: "
            f"for {about}, every outcome is {bound}. {protected(unit)}"
        )
    else:
        sentence = (
            "What was released, the fitted model included, is differentially private with "
            f"{_pair(epsilon, delta)}, under {ledger.adjacency} adjacency: for {about}, every "
            f"outcome is {bound}. {protected(unit)}"
        )
    return (SEED if seeded else HOLDS), sentence + seeded


def local_claim(ledger, epsilon, delta, pure):
    """Say what holds towards those who received the reports, or that nothing does.

    Parameters
    ----------
    ledger : Ledger
        All releases.
    epsilon, delta : float
        Local epsilon at delta, perhaps infinite.
    pure : float
        Local epsilon at delta 0.

    Returns
    -------
    sentence : str
        For the card.
    """
    unit = ledger.unit
    if epsilon == float("inf"):
        return (
            "None is stated: more than reports was computed from what was given, and whoever "
            f"ran the fit is trusted with the {unit}s that it was given."
        )
    more = "" if pure <= epsilon else f"; at delta = 0, epsilon = {upward(pure)}"
    seen = (
        " Their noisy sums are what everybody sees: the claim above is about these."
        if any(release.hidden for release in ledger.releases)
        else ""
    )
    seeded = _SEEDED if ledger.seeded else ""
    return (
        f"Towards those who received the reports of single {unit}s: {_pair(epsilon, delta)}, for "
        f"any two values of one {unit}{more}.{seen}{seeded}"
    )


def composition(ledger):
    """Say how the total was computed from the releases."""
    seen = [release for release in ledger.releases if not release.hidden]
    if not seen:
        return "There is nothing to compose."
    chance = any(r.noise.by_chance for r in seen)
    if all(r.adjacency == "local" for r in seen):
        much = (
            "A batch says who reports. How often one does is counted up to a number that is "
            "exceeded with probability delta at most; at delta = 0 all rounds count."
            if chance
            else "Their epsilons are added up."
        )
        return f"Every {ledger.unit} pays for its own reports. {much}"
    parts = [_how(seen, chance)]
    if any(r.rows for r in seen if r.adjacency != "local"):
        parts.append(
            "Gaussian releases that read a range of public positions are paid for by those in "
            "the range; who pays most counts."
        )
    if any(r.adjacency == "local" for r in seen):
        parts.append("Local reports next to other releases count as if every row made all.")
    return " ".join(parts)


def _how(seen, chance):
    gaussian = [r for r in seen if r.noise.mu]
    if chance:
        return (
            "Releases on secret random batches are composed by privacy loss distributions of "
            "dp_accounting, losses rounded up; where noise is so small that batches are no "
            "secret, as if they were known, and the number of those that one is in were what is "
            "exceeded with probability delta / 2 at most."
        )
    if len(gaussian) == len(seen):
        return (
            "All releases are Gaussian: together they are as private as one Gaussian release, "
            "whose mu is the root of the sum of squares (exact; adaptive choices included)."
        )
    if not gaussian:
        return (
            "Epsilons and deltas are added up; if zero-concentrated privacy, or privacy loss "
            "distributions of the worst cases, give less, that."
        )
    return (
        "Gaussian releases compose to one by the sum of squares of mu; with the others, the "
        "least of three bounds: the plain sum, zero-concentrated privacy, and privacy loss "
        "distributions of the worst cases (dp_accounting, losses rounded up)."
    )


def notes(ledger, parts):
    """Return what a reader must not overlook."""
    found = []
    if ledger.seeded:
        found.append(
            "SEEDED: random_state was set. Whoever knows or guesses the seed can subtract the "
            "noise, and nothing that is said here holds towards them."
        )
    if any(getattr(part, "hypothetical_privacy_spent_", None) is not None for _, part in parts):
        found.append(
            "SIMULATED POPULATION: the noise is that of a deployment with more clients "
            "(population_size). The claim on this card is that of the clients of this fit, and "
            "not that of the deployment."
        )
    if any("idealised" in release.numerics for release in ledger.releases):
        found.append(
            "IDEALISED: some draws have their law for real numbers only; what floating-point "
            "arithmetic changes in it is not part of the claim."
        )
    if any(getattr(part, "budget", None) is not None for _, part in parts):
        found.append(
            "A budget is shared with other fits: it charges each of them all that it is granted. "
            "What others spent is not on this card."
        )
    return found

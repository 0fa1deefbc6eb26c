# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a card says about a search of scikit-learn's, which keeps no ledger."""

import copy

from skdp.inspection._card_numbers import upward
from skdp.privacy import Ledger, privacy_spent


def search_facts(search, delta):
    """Return what the fits of a search cost at most, and what is to be said about it.

    Parameters
    ----------
    search : estimator
        A fitted search of scikit-learn's.
    delta : float or None
        Where epsilon is read off.

    Returns
    -------
    ledger : Ledger
        A line for all fits of a kind but the last, by their parameters.
    delta : float
        Where epsilon is read off.
    not_covered : list of str
        What has no price.
    sentence : str
        The claim, which is none.
    """
    kind, n_folds = type(search).__name__, search.n_splits_
    n_fits = len(search.cv_results_["params"]) * n_folds
    last = ", and one of the best" if search.refit else ""
    # which candidate won was learned from rows, and its ledger would tell
    bare = copy.copy(search)
    vars(bare).pop("best_estimator_", None)
    sentence = (
        f"NO (epsilon, delta) is claimed: {kind} made {n_fits} fits on {n_folds} folds{last}, and "
        "chose by exact scores on the rows that were held out, which has no price."
    )
    try:
        spent = privacy_spent(bare, delta=delta)
    except TypeError:
        # no private step, or one whose parameters do not tell its price
        sentence += " What the fits spent is not known."
        return Ledger(), delta or 0.0, [kind], sentence
    at = f"epsilon = {upward(spent.epsilon)} nats, delta = {upward(spent.delta)}"
    sentence += (
        f" Its fits{' but the last' if last else ''} spent at most {at} together, by their "
        "parameters. That is the price of the fits, and no promise about the search."
    )
    return spent.ledger, spent.delta, list(spent.not_covered), sentence

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The table of results: parameters, and the scores that were released."""

import numpy as np

from skdp._sklearn import columns_of_params


def released_score(outcome, bounds, exact):
    """Return the score of the winner in its own units, within its bounds.

    Parameters
    ----------
    outcome : Outcome
        What the search released.
    bounds : tuple of (float, float)
        Public.
    exact : bool
        Whether public rows gave the score; it is in its own units then.

    Returns
    -------
    score : float
        nan if there was no run.
    """
    low, high = bounds
    if exact or np.isnan(outcome.score):
        return outcome.score
    share = min(max(outcome.score + 0.5, 0.0), 1.0)
    return low * (1 - share) + high * share


def results_of(listed, best, score, scores):
    """Return the table of results.

    Parameters
    ----------
    listed : list of dict
        Parameters of the candidates.
    best : int
        The winner.
    score : float
        Its released score.
    scores : ndarray or None
        Scores of all runs on public rows; several for one candidate stand in a row.

    Returns
    -------
    results : dict
        With ``params``, a masked array ``param_...`` for every parameter, ``mean_test_score``
        (the best repeat; nan where nothing was released) and ``rank_test_score``.
    """
    if scores is None:
        mean, rank = np.full(len(listed), np.nan), np.full(len(listed), 2, dtype=np.int32)
        mean[best], rank[best] = score, 1
    else:
        mean = np.reshape(scores, (len(listed), -1)).max(axis=1)
        rank = (1 + (mean[:, None] < mean).sum(axis=1)).astype(np.int32)
    results = columns_of_params(listed)
    return {**results, "params": listed, "mean_test_score": mean, "rank_test_score": rank}

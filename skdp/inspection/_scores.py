# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scores at several epsilons: by cross-validation, or read off a search."""

import hashlib
from collections.abc import Mapping
from itertools import count
from numbers import Integral

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import check_cv, cross_val_score
from sklearn.utils.parallel import Parallel, delayed

from skdp.inspection._drawing import checked_epsilons
from skdp.inspection._epsilon_of_steps import private_steps, scaled_epsilons, sum_of_deltas


def name_of_score(scoring, estimator=None):
    """Return the name of a score for an axis."""
    if scoring is None:
        if is_classifier(estimator):
            return "accuracy"
        return "R²" if is_regressor(estimator) else "score"
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    return name.replace("neg_", "negative ", 1).replace("_", " ")


def name_of_estimator(estimator):
    """Return the name of the class, for a pipeline that of the last step."""
    while getattr(estimator, "steps", None):
        estimator = estimator.steps[-1][1]
    return type(estimator).__name__


def scores_of_estimator(
    estimator, X, y, *, epsilons, cv, scoring, n_repeats, baseline, params, groups, n_jobs,
    random_state,
):  # fmt: skip
    """Cross-validate an estimator at every epsilon.

    Parameters
    ----------
    estimator, X, y, epsilons, and the rest
        See `PrivacyUtilityDisplay.from_estimator`.

    Returns
    -------
    found : dict
        For the constructor of `PrivacyUtilityDisplay`.
    """
    _check_integer("n_repeats", n_repeats, 1)
    if random_state is not None:
        _check_integer("random_state", random_state, 0)
    if scoring is not None and not (isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring must be one score, a name or a callable; got {scoring!r}.")
    epsilons = checked_epsilons(epsilons)
    steps = private_steps(estimator)
    splitter = check_cv(cv, y, classifier=is_classifier(estimator))
    # the same for all epsilons: otherwise a hard split would look like a low epsilon
    splits = [s for _ in range(n_repeats) for s in splitter.split(X, y, groups)]
    seeds = (_seed(random_state, i) for i in count())
    fits = [
        (_seeded(clone(estimator).set_params(**scaled_epsilons(steps, e)), next(seeds)), s, params)
        for e in epsilons
        for s in splits
    ]
    if baseline is not None:
        fits += [(clone(baseline), split, None) for split in splits]
    scores = Parallel(n_jobs=n_jobs)(
        delayed(_score)(model, X, y, split, scoring, given) for model, split, given in fits
    )
    table = np.array(scores, dtype=float).reshape(-1, len(splits))
    return {
        "scores": table[: len(epsilons)],
        "baseline_scores": None if baseline is None else table[-1],
        "baseline_name": None if baseline is None else name_of_estimator(baseline),
        "score_name": name_of_score(scoring, estimator),
        "name": name_of_estimator(estimator),
        "delta": sum_of_deltas(estimator, steps),
    }


def _check_integer(name, given, least):
    if not isinstance(given, Integral) or isinstance(given, bool) or given < least:
        raise ValueError(f"{name} must be an integer, at least {least}; got {given!r}.")


def _score(model, X, y, split, scoring, params):
    """Fit to one part of a split, and return the score on the other."""
    return cross_val_score(
        model, X, y, cv=[split], scoring=scoring, params=params, error_score="raise"
    )[0]


def _seed(random_state, i):
    """Return the seed of one fit; seeds of other states are other ones."""
    if random_state is None:
        return None
    return int.from_bytes(hashlib.sha256(f"{random_state}, {i}".encode()).digest()[:4]) >> 1


def _seeded(estimator, seed):
    """Set every `random_state` of an estimator, and return it."""
    if seed is not None:
        names = [n for n in estimator.get_params() if n.split("__")[-1] == "random_state"]
        estimator.set_params(**dict.fromkeys(names, seed))
    return estimator


def scores_of_search(cv_results, param, others, metric):
    """Read the scores of every epsilon off the results of a search.

    Parameters
    ----------
    cv_results, param, others, metric
        See `PrivacyUtilityDisplay.from_cv_results`.

    Returns
    -------
    epsilons : list of float
        Increasing.
    scores : ndarray of shape (n_epsilons, n_scores)
        Of the splits; the mean alone if there are none.
    best_of : int
        How many candidates there were at most for an epsilon.
    """
    if not isinstance(cv_results, Mapping) or "params" not in cv_results:
        raise ValueError("cv_results must be the cv_results_ of a fitted search.")
    candidates = [dict(given) for given in cv_results["params"]]
    names = _epsilon_names(candidates, param)
    table = _scores_of_candidates(cv_results, metric)
    found = {}
    for given, scores in zip(candidates, table, strict=True):
        epsilon = sum(float(given.pop(name)) for name in names)
        if not isinstance(others, Mapping) or _agrees(given, others):
            found.setdefault(epsilon, []).append((given, scores))
    if not found:
        raise ValueError(f"others: no candidate of the search has {others!r}.")
    best_of = max(map(len, found.values()))
    if best_of > 1 and others != "best":
        raise ValueError(
            f"{best_of} candidates have the same {' + '.join(names)}, and differ in "
            f"{sorted({name for given in candidates for name in given})}: say which by "
            "others={name: value}, or others='best', which is optimistic."
        )
    epsilons = sorted(found)
    best = [max((scores for _, scores in found[e]), key=np.mean) for e in epsilons]
    return epsilons, np.array(best), best_of


def _agrees(given, others):
    unknown = [name for name in others if name not in given]
    if unknown:
        raise ValueError(f"others: the search has no parameter {unknown[0]!r}.")
    return all(given[name] == value for name, value in others.items())


def _epsilon_names(candidates, param):
    """Return which parameters of a search are epsilon."""
    searched = sorted({name for given in candidates for name in given})
    if param is not None:
        names = [param] if isinstance(param, str) else list(param)
        missing = [n for n in names if not all(n in given for given in candidates)]
        if missing or not names:
            raise ValueError(f"param must be of {searched}; got {param!r}.")
        return names
    names = [name for name in searched if name.split("__")[-1] == "epsilon"]
    if len(names) != 1 or not all(names[0] in given for given in candidates):
        raise ValueError(
            "cv_results must have one parameter named epsilon, or param must say which "
            f"are meant; the search was over {searched}."
        )
    return names


def _scores_of_candidates(cv_results, metric):
    """Return an array of shape (n_candidates, n_scores)."""
    columns = []
    for i in count():
        if f"split{i}_test_{metric}" not in cv_results:
            break
        columns.append(cv_results[f"split{i}_test_{metric}"])
    if not columns and f"mean_test_{metric}" in cv_results:
        columns.append(cv_results[f"mean_test_{metric}"])
    if not columns:
        kept = sorted(name for name in cv_results if name.startswith("mean_test_"))
        raise ValueError(f"metric={metric!r} is not in cv_results; it has {kept}.")
    return np.column_stack([np.asarray(column, dtype=float) for column in columns])

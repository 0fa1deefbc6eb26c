# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The audit of an estimator."""

import warnings
from collections.abc import Callable
from typing import Literal

from skdp._typing import AuditAdjacency, Estimator, MatrixLike
from skdp.audit._attack import separation
from skdp.audit._checks import check_confidence, check_count, check_delta, check_seed
from skdp.audit._neighbours import as_arguments, check_neighbours
from skdp.audit._outputs import Failure, Layout
from skdp.audit._outputs_audit import LEAST_RUNS, bound, check_attack
from skdp.audit._pairs import NeighbourPair, adversarial_pairs, resolve_adjacency
from skdp.audit._parameters import Claim
from skdp.audit._result import AuditResult
from skdp.audit._runs import Fits, Progress, fit_once

#: fits to each side of a pair in one round of the search, at least
FEWEST_FITS = 8
#: in every round of the search, one pair in so many is kept
KEPT = 3


def audit_privacy(
    estimator: Estimator,
    data: MatrixLike = None,
    *,
    neighbour: MatrixLike = None,
    adjacency: AuditAdjacency | None = None,
    delta: float | None = None,
    n_runs: int = 1000,
    confidence: float = 0.95,
    attack: Literal["auto", "linear"] = "auto",
    score: Callable[..., float] | None = None,
    random_state: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> AuditResult:
    """Bound the epsilon of an estimator from below, by telling its fits apart.

    The estimator is fitted many times to a data set and to a neighbour of it. What the fits
    release is looked at, and the better the two can be told apart, the larger epsilon
    must be. The estimator need not be one of this library.

    Parameters
    ----------
    estimator : object
        Anything with a method `fit`: classifier, regressor, transformer, pipeline.
        Every fit is to a clone with a `random_state` of its own, or to a deep copy of what
        cannot be cloned.
    data : array-like or tuple, default=None
        The rows: X, or a tuple of the arguments of `fit`, ``(X, y)`` say. Made-up rows do;
        for the result of an audit is not private. None makes up 12 rows of 2 features.
    neighbour : array-like or tuple, default=None
        The same rows but for one; with groups as the third argument, but for the rows of one
        group. None tries those of `adversarial_pairs` with few fits each, and takes the
        ones that are told apart best.
    adjacency : {"replace-one", "zero-out", "remove-one"}, default=None
        In what neighbours differ. None takes the estimator's, or else "replace-one".
        "zero-out" needs a neighbour, unless it is a classifier with public `classes`.
    delta : float, default=None
        For which epsilon is bounded, in [0, 1). None takes that of the claim, or else 0.
    n_runs : int, default=1000
        Fits to each of the two data sets, 40 at least. Half of them choose the neighbours and
        the attack; the other half make the bound. With no neighbour given and few runs, the
        search adds some. A bound is at most about ``log(n_runs / 8)``.
    confidence : float, default=0.95
        Probability, in (0, 1), with which the bound holds.
    attack : {"auto", "linear"}, default="auto"
        How outputs are told apart: "linear" tries directions, "auto" also single outputs,
        their histograms, and a quadratic discriminant.
    score : callable, default=None
        Maps a fitted estimator to a number or a vector, of which the rest is made. None takes
        all numeric attributes whose names end with "_", of every step, 2000 entries of each.
    random_state : int, default=None
        Seeds the fits, so that the audit can be repeated, as far as they have a parameter
        `random_state`. None leaves them to the operating system.
    n_jobs : int, default=None
        Fits in parallel, as for joblib.
    verbose : int, default=0
        1 draws a bar on standard error.

    Returns
    -------
    result : AuditResult
        Print it. `passed` tells whether the claim was contradicted, `plot` draws why.

    Raises
    ------
    ValueError
        If a parameter is out of range, data and neighbour are no neighbours, or every fit
        raises; the message names the parameter, or quotes the first exception.
    TypeError
        If the estimator has no method `fit`.

    See Also
    --------
    audit_outputs : The same for outputs that were made elsewhere.
    audit_one_run : A weaker bound from a single fit to many rows.

    Notes
    -----
    A lower bound is evidence against a claim, never proof of it: another pair, another
    attack or more runs may find more.

    A test that was fixed before looks at the second half of the runs. Its error rates are
    bounded by Clopper and Pearson [1]_, each with half of the error probability.
    (epsilon, delta)-privacy allows no two rates with
    ``exp(epsilon) * FNR < 1 - delta - FPR`` or the same with the rates exchanged [2]_; mu-Gaussian
    privacy none with ``Phi^-1(1 - FPR) - Phi^-1(FNR) > mu`` [3]_. How bad the attack and
    the search are does not matter for the confidence. A fit that raises, a missing
    attribute, NaN and constants are outputs like others.

    Warnings of the fits are not shown. Bugs in a seeded run that come from the seeds, such
    as noise that repeats itself, show only with ``random_state=None``.

    References
    ----------
    .. [1] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits
       illustrated in the case of the binomial", Biometrika 26, 1934.
    .. [2] P. Kairouz, S. Oh and P. Viswanath, "The composition theorem for differential
       privacy", ICML 2015. Theorem 2.1.
    .. [3] J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", Journal of the
       Royal Statistical Society B 84, 2022. Definition 2.6.
    .. [4] M. Nasr, J. Hayes, T. Steinke, B. Balle, F. Tramèr, M. Jagielski, N. Carlini and
       A. Terzis, "Tight auditing of differentially private machine learning", USENIX
       Security 2023.

    Examples
    --------
    >>> from skdp import DPMean
    >>> from skdp.audit import audit_privacy
    >>> model = DPMean(epsilon=2.0, mechanism="laplace")
    >>> result = audit_privacy(model, [[0.2], [1.0]], neighbour=[[0.2], [-1.0]],
    ...                        n_runs=400, random_state=0)
    >>> result.passed, result.epsilon_lower > 0.8
    (True, True)
    """
    if not callable(getattr(estimator, "fit", None)):
        raise TypeError(f"estimator must have a method fit; got a {type(estimator).__name__}.")
    confidence, attack = check_confidence(confidence), check_attack(attack)
    n_runs, random_state = check_count("n_runs", n_runs, LEAST_RUNS), check_seed(random_state)
    if score is not None and not callable(score):
        raise ValueError(f"score must be callable or None; got a {type(score).__name__}.")
    delta = None if delta is None else check_delta(delta)
    Claim(estimator, None)
    adjacency = resolve_adjacency(estimator, adjacency)
    pairs = _pairs(estimator, data, neighbour, adjacency)
    rounds = _rounds(len(pairs), n_runs // 2)
    # a search that took longer leaves the bound its half
    missing = max(0, n_runs // 2 - sum(count for _, count in rounds))
    total = sum(kept * count for kept, count in rounds) + missing + n_runs - n_runs // 2
    fits = Fits(estimator, score, random_state, n_jobs, Progress(2 * total, bool(verbose)))
    claim = _claim(estimator, pairs[0], fits)
    delta = claim.delta if delta is None else delta
    pair, learning = _search(fits, pairs, rounds)
    more = fits.run([(pair.first, missing), (pair.second, missing)])
    learning = [found + added for found, added in zip(learning, more, strict=True)]
    count = n_runs - n_runs // 2
    new = fits.run([(pair.first, count), (pair.second, count)])
    _refuse_failures([*learning, *new])
    return bound(
        learning,
        new,
        delta=delta,
        confidence=confidence,
        attack=attack,
        epsilon_claimed=claim.at(delta),
        n_runs=len(learning[0]) + count,
        pair=pair.name,
        adjacency=adjacency,
        seeded=random_state is not None,
    )


def _pairs(estimator, data, neighbour, adjacency):
    """Return the pairs that are to be tried."""
    if neighbour is None:
        return adversarial_pairs(estimator, data, adjacency=adjacency)
    if data is None:
        raise ValueError("data must be given with neighbour; got None.")
    first, second = as_arguments(data), as_arguments(neighbour)
    check_neighbours(first, second, adjacency)
    return [NeighbourPair("as given", first, second)]


def _claim(estimator, pair, fits):
    """Return what the estimator claims, by one fit that nothing else is made of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, fitted = fit_once(estimator, pair.first, fits.seeds(1)[0], None)
        return Claim(estimator, fitted)


def _rounds(n_pairs, n_learn):
    """Return the rounds of a search: how many pairs, and fits to each side of a pair.

    Every round keeps a third of the pairs; all rounds together take half of the fits
    that may be learned from, if these are enough.
    """
    sizes = []
    while n_pairs > 1:
        sizes.append(n_pairs)
        n_pairs = -(-n_pairs // KEPT)
    return [(size, max(FEWEST_FITS, n_learn // (2 * len(sizes) * size))) for size in sizes]


def _search(fits, pairs, rounds):
    """Return the pair that is told apart best, and the outcomes of its fits so far."""
    found = {pair.name: ([], []) for pair in pairs}
    left = list(pairs)
    for _, count in rounds:
        outcomes = fits.run([(side, count) for p in left for side in (p.first, p.second)])
        for place, pair in enumerate(left):
            for world in (0, 1):
                found[pair.name][world].extend(outcomes[2 * place + world])
        left = sorted(left, key=lambda p: -_steps(*found[p.name]))[: -(-len(left) // KEPT)]
    return left[0], [*found[left[0].name]]


def _steps(first, second):
    """Return how many standard errors two worlds differ by; pairs come in order of strength."""
    layout = Layout(first + second)
    standard_error = (6 * len(first)) ** -0.5
    return round(separation(layout.table(first), layout.table(second)) / standard_error)


def _refuse_failures(worlds):
    outcomes = [outcome for world in worlds for outcome in world]
    if all(isinstance(outcome, Failure) for outcome in outcomes):
        first = outcomes[0]
        raise ValueError(f"every fit raised; the first one a {first.kind}: {first.message}")
    if all(isinstance(outcome, Failure) or not outcome for outcome in outcomes):
        raise ValueError(
            "the fitted estimator has no numeric attribute whose name ends with '_'; give score, "
            "a function of the fitted estimator."
        )

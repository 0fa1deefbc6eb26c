# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Audit by a single fit: many canaries, each with its own coin."""

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import special

from skdp._typing import Adjacency, Estimator, MatrixLike
from skdp.audit._audit import compared, fresh, unexceeded
from skdp.audit._pairs import (
    Claim,
    as_arguments,
    check_claimed_delta,
    check_confidence,
    check_count,
    check_seed,
    dense,
    kind_of,
    resolve_adjacency,
)
from skdp.privacy.books.texts import a_kind
from skdp.privacy.kernel.samplers import SeededBits, SystemBits


@dataclass(frozen=True, repr=False)
class OneRunResult:
    """A lower bound on epsilon from a single fit.

    Parameters
    ----------
    epsilon_lower : float
        Lower bound on epsilon at this delta, with the stated confidence.
    delta, confidence : float
        As given.
    epsilon_claimed : float or None
        Claim of the estimator at this delta, if any.
    n_canaries, n_guesses, n_correct : int
        Numbers of canaries, of guesses, and of right guesses.
    adjacency : str
        Relation of two data sets that differ in one coin.
    seeded : bool
        Whether coins and noise were seeded.
    """

    epsilon_lower: float
    delta: float
    confidence: float
    epsilon_claimed: float | None
    n_canaries: int
    n_guesses: int
    n_correct: int
    adjacency: str
    seeded: bool

    @property
    def passed(self) -> bool | None:
        """Whether the claim is not contradicted; None without a claim, or for infinity."""
        return unexceeded(self.epsilon_lower, self.epsilon_claimed)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame of one row (needs pandas)."""
        import pandas as pd

        return pd.DataFrame([asdict(self) | {"passed": self.passed}])

    def __repr__(self) -> str:
        sure = f"at delta={self.delta:.3g} with confidence {100 * self.confidence:.6g}%"
        claim = compared(self.epsilon_lower, self.epsilon_claimed)
        return (
            f"epsilon >= {self.epsilon_lower:.4g} {sure} ({claim})\n"
            f"one fit: {self.n_correct} of {self.n_guesses} guesses right, {self.n_canaries} "
            "canaries. A lower bound can contradict a claim; it never proves one."
        )


#: fewer canaries bound nothing
LEAST_CANARIES = 10


def audit_one_run(
    estimator: Estimator,
    canaries: MatrixLike,
    blanks: MatrixLike = None,
    *,
    data: MatrixLike = None,
    adjacency: Adjacency | None = None,
    delta: float | None = None,
    n_guesses: int | None = None,
    confidence: float = 0.95,
    score: Callable[..., Any] | None = None,
    random_state: int | None = None,
) -> OneRunResult:
    """Return a lower bound on the epsilon of an estimator from a single fit.

    A coin decides for every canary whether the canary or its blank is a row of the data. After the
    fit the coins are guessed; the more right guesses, the larger epsilon must be. This is for slow
    estimators; for fast ones `audit_privacy` has larger bounds.

    Parameters
    ----------
    estimator : object
        Any object with a method `fit`.
    canaries : array-like or tuple (X, y)
        At least 10 rows that the fit remembers well and separately: for example one feature for
        each.
    blanks : array-like or tuple (X, y), default=None
        Replacements of the canaries, equally many; under "zero-out", rows that contribute nothing.
        None ("add-remove" only) leaves the canaries out.
    data : array-like or tuple (X, y), default=None
        Further rows, always present.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default=None
        Effect of a coin. None takes the adjacency of the estimator, or "replace-one".
    delta : float, default=None
        Delta of the bound on epsilon, in [0, 1). None takes the delta of the claim, or 0.
    n_guesses : int, default=None
        Number of guessed coins, with the most extreme scores; None for half of them. Choose it
        before the result is known.
    confidence : float, default=0.95
        Confidence of the bound, in (0, 1).
    score : callable, default=None
        Maps the fitted estimator to one number per canary, larger for canaries that seem to be in
        the data. None compares the fit of the canary and of its blank: by log-probability or
        decision for classifiers, squared error for regressors, and the product with `location_` or
        `mean_` for others.
    random_state : int, default=None
        Seeds coins and fit. None leaves both to the operating system.

    Returns
    -------
    result : OneRunResult
        Print it.

    Raises
    ------
    ValueError
        If a parameter is out of range, shapes are incompatible, there is no score for this kind of
        estimator, or its parts share the noise of a `random_state`.
    TypeError
        If the estimator has no method `fit`.

    See Also
    --------
    audit_privacy : Many fits to two data sets.

    Notes
    -----
    With delta 0 the number of right guesses is stochastically at most binomial with probability
    ``1 / (1 + exp(-epsilon))``, for every way of guessing and any interference between canaries
    ([1]_, Theorem 5.2). With positive delta the bound adds Markov's inequality for the coins that
    delta may reveal; keep ``n_canaries * delta`` small.

    References
    ----------
    .. [1] T. Steinke, M. Nasr and M. Jagielski, "Privacy auditing with one (1) training
       run", NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMean
    >>> from skdp.audit import audit_one_run
    >>> X = np.eye(500)  # every canary has a feature of its own
    >>> result = audit_one_run(DPMean(epsilon=20.0, data_norm=1.0), X, -X, random_state=0)
    >>> result.passed, result.epsilon_lower > 1
    (True, True)
    """
    if not callable(getattr(estimator, "fit", None)):
        raise TypeError(f"estimator must have a method fit; got {a_kind(estimator)}.")
    confidence, random_state = check_confidence(confidence), check_seed(random_state)
    delta = None if delta is None else check_claimed_delta(delta)
    adjacency = resolve_adjacency(estimator, adjacency)
    canaries = as_arguments(canaries)
    n_canaries = check_count("the number of canaries", len(dense(canaries[0])), LEAST_CANARIES)
    n_guesses = n_canaries // 2 if n_guesses is None else n_guesses
    n_guesses = check_count("n_guesses", n_guesses, 1, n_canaries)
    blanks = _check_blanks(canaries, blanks, adjacency)
    bits = SystemBits() if random_state is None else SeededBits(random_state, "one-run audit")
    words = bits.words(n_canaries + 1)
    inside = (words[1:] >> 63).astype(bool)
    with warnings.catch_warnings():
        # what the fit has to say of seeds and noise
        warnings.simplefilter("ignore")
        fitted = fresh(estimator, None if random_state is None else int(words[0]) >> 32)
        fitted.fit(*_mixed(canaries, blanks, inside, data))
        scores = _default_scores(fitted, canaries, blanks) if score is None else score(fitted)
        claim = Claim(estimator, fitted)
    claim.refuse_shared_noise(random_state)
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (n_canaries,):
        raise ValueError(f"score must give {n_canaries} numbers; got the shape {scores.shape}.")
    delta = claim.delta if delta is None else delta
    n_correct = _correct(scores, inside, n_guesses)
    return OneRunResult(
        epsilon_lower=one_run_epsilon(n_correct, n_guesses, n_canaries, delta, confidence),
        delta=delta,
        confidence=confidence,
        epsilon_claimed=claim.at(delta),
        n_canaries=n_canaries,
        n_guesses=n_guesses,
        n_correct=n_correct,
        adjacency=adjacency,
        seeded=random_state is not None,
    )


def _check_blanks(canaries, blanks, adjacency):
    if blanks is None:
        if adjacency != "add-remove":
            raise ValueError(f"blanks must be given under {adjacency!r}; got None.")
        return None
    if adjacency == "add-remove":
        raise ValueError("blanks must be None under 'add-remove': the rows are left out.")
    blanks = as_arguments(blanks)
    shapes = [[dense(part).shape for part in side] for side in (canaries, blanks)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"blanks must have the shapes of canaries; got {shapes[1]}.")
    return blanks


def _mixed(canaries, blanks, inside, data):
    """Return the arguments of `fit`."""
    parts = [dense(part) for part in canaries]
    if blanks is None:
        parts = [part[inside] for part in parts]
    else:
        rows = [inside.reshape(-1, *[1] * (part.ndim - 1)) for part in parts]
        pairs = zip(rows, parts, blanks, strict=True)
        parts = [np.where(coin, part, dense(blank)) for coin, part, blank in pairs]
    if data is not None:
        more = [dense(part) for part in as_arguments(data)]
        if [part.shape[1:] for part in more] != [part.shape[1:] for part in parts]:
            raise ValueError("data must have as many arrays and features as canaries.")
        parts = [np.concatenate(both) for both in zip(more, parts, strict=True)]
    return parts


def _correct(scores, inside, n_guesses):
    """Return the number of right guesses by the most extreme scores; NaN makes no guess."""
    finite = ~np.isnan(scores)
    ranked = np.flatnonzero(finite)[np.argsort(scores[finite], kind="stable")]
    # as many above as below; the middle says nothing
    low = ranked[: min(n_guesses // 2, len(ranked) // 2)]
    high = ranked[len(ranked) - min(n_guesses - n_guesses // 2, len(ranked) - len(low)) :]
    return int(np.sum(~inside[low])) + int(np.sum(inside[high]))


def _default_scores(fitted, canaries, blanks):
    X = dense(canaries[0])
    other = np.zeros_like(X) if blanks is None else dense(blanks[0])
    kind = kind_of(fitted)
    if kind == "other":
        center = getattr(fitted, "location_", getattr(fitted, "mean_", None))
        if np.shape(center) != X.shape[1:]:
            raise ValueError("score must be given: there is no default for this estimator.")
        return (X - other) @ center
    y = dense(canaries[1])
    y_other = y if blanks is None else dense(blanks[1])
    fit = _suits_label if kind == "classifier" else _suits_target
    # a row that is left out suits nothing
    return fit(fitted, X, y) - (0.0 if blanks is None else fit(fitted, other, y_other))


def _suits_label(fitted, X, y):
    """Return the log-probability or decision of every row's label; 0 for unknown labels."""
    if hasattr(fitted, "predict_proba"):
        with np.errstate(divide="ignore"):
            values = np.maximum(np.log(fitted.predict_proba(X)), -700.0)
    else:
        values = np.asarray(fitted.decision_function(X))
        values = np.stack([-values, values], axis=1) if values.ndim == 1 else values
    hit = y[:, None] == fitted.classes_
    return np.where(hit, values, 0.0).sum(axis=1)


def _suits_target(fitted, X, y):
    with np.errstate(over="ignore"):
        return -((fitted.predict(X) - y) ** 2)


#: no bound is larger than this
LARGEST = 60.0


def one_run_p_value(n_correct, n_guesses, n_canaries, epsilon, delta):
    """Bound the probability of as many correct guesses under (epsilon, delta)-privacy.

    Parameters
    ----------
    n_correct, n_guesses, n_canaries : int
        Every canary has its own fair coin. An attacker sees the output and guesses the coins of at
        most `n_guesses` canaries.
    epsilon, delta : float
        The claim, for a change of one coin.

    Returns
    -------
    p : float
        At most 1.

    Notes
    -----
    Given the output and the coins before, coin i has the probabilities P / (P + Q) and Q / (P +
    Q), where P and Q are the densities of the output with either side of the coin; with an average
    over the coins after it, they are (epsilon, delta)-close. Let q = e^eps / (1 + e^eps). A guess
    is right with probability at most q + (1 - q) F_i, where F_i is the larger excess of the two
    sides over q, divided by 1 - q. Hence it is no better than the maximum of a coin B_i of
    probability q, independent of all before and of the output, and a coin C_i of probability F_i.
    The mean of F_i is at most 1/2 sum of the integrals of (P - e^eps Q)+ and (Q - e^eps P)+, which
    is at most delta. So the number of correct guesses is at most W + V, where W is binomial and V
    has a mean of at most m delta; the two may depend on each other. By Markov's inequality, P(W +
    V >= v) <= P(W >= v - t) + m delta / (t + 1) for every integer t >= 0. With delta 0 this is
    Steinke, Nasr and Jagielski (2023), Theorem 5.2; with delta their term is different.
    """
    with np.errstate(under="ignore"):
        share = float(special.expit(epsilon))
        spared = np.arange(n_correct + 1)
        # P(W >= v - t) = P(W > v - t - 1); the last is 1
        tail = special.bdtrc(n_correct - spared - 1, n_guesses, share)
        tail = np.where(spared == n_correct, 1.0, tail)
        return float(min(1.0, np.min(tail + n_canaries * delta / (spared + 1))))


def one_run_epsilon(n_correct, n_guesses, n_canaries, delta, confidence):
    """Return the largest epsilon ruled out by the guesses, in [0, 60]."""
    lower, upper = 0.0, LARGEST
    if one_run_p_value(n_correct, n_guesses, n_canaries, lower, delta) > 1 - confidence:
        return 0.0
    # the p-value grows with epsilon
    for _ in range(60):
        middle = (lower + upper) / 2
        p = one_run_p_value(n_correct, n_guesses, n_canaries, middle, delta)
        lower, upper = (middle, upper) if p <= 1 - confidence else (lower, middle)
    return lower

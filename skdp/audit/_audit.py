# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Audit of an estimator: many fits to two neighbouring data sets, and a test between them.

Half of the runs choose the neighbours and the test; the other half make the bound. First the result
of any audit, and its picture.
"""

import copy
import math
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.special import ndtr, ndtri
from sklearn.base import clone

from skdp._typing import Adjacency, ArrayLike, Estimator, MatrixLike
from skdp.audit._attack import (
    ATTACKS,
    Failure,
    Layout,
    epsilon_bound,
    learn_tests,
    mu_bound,
    rates_of,
    released,
    scored,
    separation,
)
from skdp.audit._pairs import (
    Claim,
    NeighbourPair,
    adversarial_pairs,
    as_arguments,
    call_with,
    check_claimed_delta,
    check_confidence,
    check_count,
    check_neighbours,
    check_real,
    check_seed,
    parameters,
    resolve_adjacency,
)
from skdp.privacy.books.texts import a_kind
from skdp.privacy.kernel.accounting import gdp_epsilon
from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws.calibration import gdp_mu

#: (rate, lower end, upper end)
Rate = tuple[float, float, float]


def unexceeded(lower: float, claimed: float | None) -> bool | None:
    """Return whether a claim is not contradicted; None without a claim, or for infinity."""
    return None if claimed is None or math.isinf(claimed) else lower <= claimed


def compared(lower: float, claimed: float | None) -> str:
    """Return the comparison of a lower bound and a claim in words."""
    if claimed is None:
        return "nothing is claimed"
    if math.isinf(claimed):
        return "claimed: infinite, which is nothing"
    return f"claimed: {claimed:.4g}, {'not contradicted' if lower <= claimed else 'CONTRADICTED'}"


def per_group(unit: str | None) -> str:
    """Return the unit in words, if it is not a row."""
    return ", per group" if unit == "group" else ""


@dataclass(frozen=True, repr=False)
class AuditResult:
    """A lower bound on epsilon, with its evidence.

    Parameters
    ----------
    epsilon_lower : float
        Lower bound on epsilon at this delta, with the stated confidence.
    mu_lower : float
        The same for mu, if the claim is mu-Gaussian differential privacy. Both bounds, and the
        rates, hold together.
    delta, confidence : float
        As given, or from the claim.
    epsilon_claimed : float or None
        Claim of the estimator at this delta, if any.
    fpr, fnr : tuple of (float, float, float)
        Error rates of the test on fresh runs: the rate, and the lower and upper end of its
        Clopper-Pearson interval.
    gaussian_fpr, gaussian_fnr : tuple of (float, float, float)
        The same for the test behind `mu_lower`, which has its own threshold if delta is positive.
    n_runs, n_bound_runs : int
        Number of fits to each of the two data sets: all of them, and the fits behind the bound.
    n_failed : tuple of (int, int)
        Number of fits behind the bound that raised an exception, which counts as an output.
    pair, attack : str
        The neighbours, and the score of the test.
    adjacency : str or None
        Relation of the neighbours.
    seeded : bool
        Whether the fits were seeded.
    curve : tuple of (float, float)
        Points (FPR, FNR) of the same score at other thresholds: estimates without bounds.
    mu_claimed : float or None, default=None
        Gaussian-DP parameter claimed by the estimator, if all noise on its ledger is Gaussian.
    unit : {"row", "group"} or None, default=None
        Unit of the neighbours and of the claim. None without a ledger.
    """

    epsilon_lower: float
    mu_lower: float
    delta: float
    confidence: float
    epsilon_claimed: float | None
    fpr: Rate
    fnr: Rate
    gaussian_fpr: Rate
    gaussian_fnr: Rate
    n_runs: int
    n_bound_runs: int
    n_failed: tuple[int, int]
    pair: str
    attack: str
    adjacency: str | None
    seeded: bool
    curve: tuple[tuple[float, float], ...]
    mu_claimed: float | None = None
    unit: str | None = None

    @property
    def epsilon_gaussian(self) -> float | None:
        """Epsilon of `mu_lower` at `delta`, if the trade-off is Gaussian; None at delta 0.

        If it is larger than the claim, that does not contradict (epsilon, delta)-privacy as such.
        It contradicts Gaussian noise of the claimed size.
        """
        return gdp_epsilon(self.mu_lower, self.delta) if self.delta else None

    @property
    def passed(self) -> bool | None:
        """Whether the claim is not contradicted; None without a claim, or for infinity.

        With `mu_claimed` both bounds must be within their claims: a ledger with Gaussian noise
        only claims the whole trade-off curve, not only one pair.
        """
        gaussian = unexceeded(self.mu_lower, self.mu_claimed)
        pair = unexceeded(self.epsilon_lower, self.epsilon_claimed)
        return pair if gaussian is None else gaussian and pair is not False

    @property
    def passed_gaussian(self) -> bool | None:
        """Whether `epsilon_gaussian` is at most the claim; None if one of the two is missing."""
        gaussian = self.epsilon_gaussian
        return None if gaussian is None else unexceeded(gaussian, self.epsilon_claimed)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame of one row, without the curve (needs pandas)."""
        import pandas as pd

        row = {name: value for name, value in asdict(self).items() if name != "curve"}
        for name in ("fpr", "fnr", "gaussian_fpr", "gaussian_fnr"):
            row[name], row[f"{name}_lower"], row[f"{name}_upper"] = row[name]
        row["n_failed_first"], row["n_failed_second"] = row.pop("n_failed")
        row |= {name: getattr(self, name) for name in ("epsilon_gaussian", "passed")}
        return pd.DataFrame([row])

    def plot(self, ax: Any = None) -> Any:
        """Draw the error rates of the attack, and the limits of the claim.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes; None makes a new figure. Needs matplotlib.

        Returns
        -------
        ax : matplotlib.axes.Axes
            Axes; points below the curve of the claim contradict it.
        """
        return plot_audit(self, ax)

    def __repr__(self) -> str:
        given = f"epsilon >= {self.epsilon_lower:.4g} at delta={self.delta:.3g}"
        gaussian = self.epsilon_gaussian
        second = "" if gaussian is None else f"; {gaussian:.4g} if the trade-off is Gaussian"
        sure = f"with confidence {100 * self.confidence:.6g}%"
        if self.mu_claimed is not None:
            second += f"; mu >= {self.mu_lower:.4g} ({compared(self.mu_lower, self.mu_claimed)})"
        return (
            f"{given} {sure} ({compared(self.epsilon_lower, self.epsilon_claimed)}){second}\n"
            f"pair: {self.pair}{per_group(self.unit)}; {self.n_runs} runs each. A lower bound can "
            "contradict a claim; it never proves one."
        )


# The picture: error rates of the attack, and the region that the claim forbids.


def plot_audit(result, ax=None):
    """Draw an audit.

    Parameters
    ----------
    result : AuditResult
        Result to draw.
    ax : matplotlib.axes.Axes, default=None
        Axes; None makes a new figure.

    Returns
    -------
    ax : matplotlib.axes.Axes
    """
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(4.8, 4.6), layout="constrained").add_subplot()
    grid = np.linspace(0, 1, 501)
    claimed = result.epsilon_claimed
    if claimed is not None:
        _draw_claim(ax, grid, claimed, result.delta)
    fpr, fnr = np.array(result.curve).T
    order = np.argsort(fpr)
    ax.plot(fpr[order], fnr[order], color="tab:blue", linewidth=1, label="attack, all thresholds")
    # the ends behind the bound: both rates lie below and left of the corner
    ax.errorbar(
        result.fpr[0],
        result.fnr[0],
        xerr=[[result.fpr[0] - result.fpr[1]], [result.fpr[2] - result.fpr[0]]],
        yerr=[[result.fnr[0] - result.fnr[1]], [result.fnr[2] - result.fnr[0]]],
        color="black",
        marker="o",
        markersize=4,
        capsize=3,
        label=f"attack at its threshold, {100 * result.confidence:g}%",
    )
    ax.set(
        xlim=(0, 1), ylim=(0, 1), xlabel="false positive rate", ylabel="false negative rate",
        title=f"epsilon at least {result.epsilon_lower:.3g} at delta {result.delta:g}",
    )  # fmt: skip
    ax.set_aspect("equal")
    ax.legend(loc="upper right", fontsize="small")
    return ax


def _draw_claim(ax, grid, epsilon, delta):
    """Draw the forbidden region of (epsilon, delta), and the curve of Gaussian noise."""
    with np.errstate(over="ignore", under="ignore"):
        # exp(-epsilon) keeps an infinite claim finite
        factor = np.exp(-epsilon)
        line = np.maximum((1 - delta - grid) * factor, 1 - delta - grid / max(factor, 1e-300))
    line = np.maximum(line, 0.0)
    ax.fill_between(
        grid, 0, line, color="0.85", linewidth=0,
        label=f"forbidden by ({epsilon:.3g}, {delta:.3g})",
    )  # fmt: skip
    if delta > 0 and 0 < epsilon < np.inf:
        mu = gdp_mu(epsilon, delta)
        # the ends of the quantile function are infinite, and so they may be
        with np.errstate(invalid="ignore"):
            gaussian = ndtr(ndtri(1 - grid) - mu)
        ax.plot(grid, gaussian, color="0.3", linestyle="--", label=f"Gaussian noise, mu {mu:.3g}")


#: fits to each side of a pair in one round of the search, at least
FEWEST_FITS = 8
#: in every round of the search, one pair in so many is kept
KEPT = 3


def audit_privacy(
    estimator: Estimator,
    data: MatrixLike = None,
    *,
    neighbour: MatrixLike = None,
    adjacency: Adjacency | None = None,
    delta: float | None = None,
    n_runs: int = 1000,
    confidence: float = 0.95,
    attack: Literal["auto", "linear"] = "auto",
    score: Callable[..., float] | None = None,
    random_state: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> AuditResult:
    """Return a lower bound on the epsilon of an estimator, from many fits.

    The estimator is fitted many times to a data set and to a neighbour of it. The better a test
    distinguishes the outputs of the two, the larger epsilon must be. The estimator may be from any
    library.

    Parameters
    ----------
    estimator : object
        Any object with a method `fit`: classifier, regressor, transformer, pipeline. Every fit
        uses a clone with its own `random_state`, or a deep copy if cloning is impossible.
    data : array-like or tuple, default=None
        The rows: X, or a tuple of the arguments of `fit`, such as ``(X, y)``. Use made-up rows:
        the result of an audit is not private. None makes up 12 rows of 2 features.
    neighbour : array-like or tuple, default=None
        The same rows except one; with groups as the third argument, except the rows of one group.
        None tries the pairs of `adversarial_pairs` with few fits each, and uses the most
        distinguishable one.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default=None
        Relation of neighbours. None takes the adjacency of the estimator, or "replace-one".
        "zero-out" needs a neighbour, except for classifiers with public `classes`.
    delta : float, default=None
        Delta of the bound on epsilon, in [0, 1). None takes the delta of the claim, or 0.
    n_runs : int, default=1000
        Number of fits to each of the two data sets, at least 40. Half of them choose the
        neighbours and the attack; the other half give the bound. Without a neighbour and with few
        runs, the search adds some. A bound is at most about ``log(n_runs / 8)``.
    confidence : float, default=0.95
        Confidence of the bound, in (0, 1).
    attack : {"auto", "linear"}, default="auto"
        Type of test between outputs: "linear" tries directions, "auto" also single outputs, their
        histograms, and a quadratic discriminant.
    score : callable, default=None
        Maps a fitted estimator to a number or a vector for the test. None takes all numeric
        attributes with names that end in "_", of every step, 2000 entries each.
    random_state : int, default=None
        Seeds the fits through their parameter `random_state`, for a reproducible audit. None
        leaves them to the operating system, which is necessary for ensembles of clones: one seed
        would give all of them the same noise.
    n_jobs : int, default=None
        Number of parallel fits, as for joblib.
    verbose : int, default=0
        1 draws a progress bar on standard error.

    Returns
    -------
    result : AuditResult
        Result to print. `passed` is False for a contradicted claim; `plot` draws the evidence.

    Raises
    ------
    ValueError
        If a parameter is out of range, data and neighbour are not neighbours, or every fit raises;
        the message names the parameter, or quotes the first exception. If parts of the estimator
        share the noise of a `random_state`, because there is no claim then.
    TypeError
        If the estimator has no method `fit`.

    See Also
    --------
    audit_outputs : The same for outputs that were made elsewhere.
    audit_one_run : A weaker bound from a single fit to many rows.

    Notes
    -----
    A lower bound can contradict a claim, but never prove it: another pair, another attack or more
    runs may give a larger bound.

    A fixed test is applied to the second half of the runs. Its error rates have Clopper-Pearson
    bounds [1]_, each with half of the error probability. (epsilon, delta)-privacy allows no two
    rates with ``exp(epsilon) * FNR < 1 - delta - FPR`` or the same with the rates exchanged [2]_;
    mu-Gaussian privacy none with ``Phi^-1(1 - FPR) - Phi^-1(FNR) > mu`` [3]_. The confidence does
    not depend on the quality of the attack and of the search. A fit that raises, a missing
    attribute, NaN and constants are outputs too.

    Warnings of the fits are suppressed. Bugs of seeding, such as repeated noise, are visible only
    with ``random_state=None``.

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
    >>> model = DPMean(epsilon=2.0, mechanism="laplace", data_norm=1.0)
    >>> result = audit_privacy(model, [[0.2], [1.0]], neighbour=[[0.2], [-1.0]],
    ...                        n_runs=400, random_state=0)
    >>> result.passed, result.epsilon_lower > 0.8
    (True, True)
    """
    if not callable(getattr(estimator, "fit", None)):
        raise TypeError(f"estimator must have a method fit; got {a_kind(estimator)}.")
    confidence, attack = check_confidence(confidence), check_attack(attack)
    n_runs, random_state = check_count("n_runs", n_runs, LEAST_RUNS), check_seed(random_state)
    if score is not None and not callable(score):
        raise ValueError(f"score must be callable or None; got {a_kind(score)}.")
    delta = None if delta is None else check_claimed_delta(delta)
    Claim(estimator, None)
    adjacency = resolve_adjacency(estimator, adjacency)
    pairs = _built_in_pairs(estimator, data, neighbour, adjacency)
    rounds = _rounds(len(pairs), n_runs // 2)
    # a search that took longer leaves the bound its half
    missing = max(0, n_runs // 2 - sum(count for _, count in rounds))
    total = sum(kept * count for kept, count in rounds) + missing + n_runs - n_runs // 2
    fits = Fits(estimator, score, random_state, n_jobs, AuditProgress(2 * total, bool(verbose)))
    claim = _claim(estimator, pairs[0], fits)
    claim.refuse_shared_noise(random_state)
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
        mu_claimed=claim.mu,
        n_runs=len(learning[0]) + count,
        pair=pair.name,
        adjacency=adjacency,
        unit=claim.unit,
        seeded=random_state is not None,
    )


def _built_in_pairs(estimator, data, neighbour, adjacency):
    """Return the candidate pairs."""
    if neighbour is None:
        return adversarial_pairs(estimator, data, adjacency=adjacency)
    if data is None:
        raise ValueError("data must be given with neighbour; got None.")
    first, second = as_arguments(data), as_arguments(neighbour)
    check_neighbours(first, second, adjacency)
    return [NeighbourPair("as given", first, second)]


def _claim(estimator, pair, fits):
    """Return the claim of the estimator, from one fit that is used for nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, fitted = fit_once(estimator, pair.first, fits.seeds(1)[0], None)
        return Claim(estimator, fitted)


def _rounds(n_pairs, n_learn):
    """Return the rounds of a search: numbers of pairs, and of fits to each side of a pair.

    Every round keeps a third of the pairs. All rounds together use half of the learning fits, if
    there are enough.
    """
    sizes = []
    while n_pairs > 1:
        sizes.append(n_pairs)
        n_pairs = -(-n_pairs // KEPT)
    return [(size, max(FEWEST_FITS, n_learn // (2 * len(sizes) * size))) for size in sizes]


def _search(fits, pairs, rounds):
    """Return the most distinguishable pair, and the outcomes of its fits so far."""
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
    """Return the difference of two data sets in standard errors; strongest pairs first."""
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


# Outputs that were collected elsewhere, and the bound that both audits make.


#: fewer runs bound nothing
LEAST_RUNS = 40


def check_claim(epsilon):
    """Return a claimed epsilon as a float, or None for None; raise ValueError if unusable."""
    if epsilon is None:
        return None
    return check_real("the claimed epsilon", epsilon, "0 or more", lambda e: e >= 0)


def check_attack(attack):
    """Return the name of an attack, or raise ValueError."""
    if not (isinstance(attack, str) and attack in ATTACKS):
        raise ValueError(f"attack must be one of {', '.join(ATTACKS)}; got {attack!r}.")
    return attack


def audit_outputs(
    first: ArrayLike,
    second: ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    claimed: float | None = None,
    attack: Literal["auto", "linear"] = "auto",
) -> AuditResult:
    """Return a lower bound on epsilon from outputs on two neighbouring data sets.

    For mechanisms that are not estimators, or outputs computed elsewhere.

    Parameters
    ----------
    first, second : array-like of shape (n_runs,) or (n_runs, n_outputs)
        Outputs of independent runs on the data set and on its neighbour, at least 40 of each. NaN
        and infinite entries are outputs too.
    delta : float, default=0.0
        In [0, 1).
    confidence : float, default=0.95
        In (0, 1).
    claimed : float, default=None
        Claimed epsilon, or None.
    attack : {"auto", "linear"}, default="auto"
        Type of test between outputs: "linear" tries directions, "auto" also single outputs, their
        histograms, and a quadratic discriminant.

    Returns
    -------
    result : AuditResult
        Result with an attack from the first half of the runs, and a bound from the second half.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the outputs have incompatible shapes.

    See Also
    --------
    audit_privacy : Fit an estimator to both data sets, and do this.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import audit_outputs
    >>> noise = np.random.default_rng(0).laplace(size=(2, 2000))
    >>> result = audit_outputs(noise[0], 1 + noise[1], claimed=0.5)  # the noise gives 1
    >>> result.passed, 0.5 < result.epsilon_lower < 1
    (False, True)
    """
    delta, confidence = check_claimed_delta(delta), check_confidence(confidence)
    claimed, attack = check_claim(claimed), check_attack(attack)
    worlds = [_as_outcomes(*given) for given in (("first", first), ("second", second))]
    if len({o["score"].size for world in worlds for o in world}) != 1:
        raise ValueError("first and second must have the same number of outputs per run.")
    halves = [(world[: len(world) // 2], world[len(world) // 2 :]) for world in worlds]
    return bound(
        [half[0] for half in halves],
        [half[1] for half in halves],
        delta=delta,
        confidence=confidence,
        epsilon_claimed=claimed,
        attack=attack,
        n_runs=min(len(world) for world in worlds),
        pair="as given",
    )


def _as_outcomes(name, outputs):
    table = np.asarray(outputs, dtype=np.float64)
    if table.ndim not in (1, 2) or len(table) < LEAST_RUNS or not table.size:
        raise ValueError(
            f"{name} must have the shape (n_runs,) or (n_runs, n_outputs) with {LEAST_RUNS} runs "
            f"at least; got the shape {table.shape}."
        )
    return [scored(row) for row in table]


def bound(learning, fresh, *, delta, confidence, attack, **told):
    """Learn a test from outcomes, and bound epsilon by its errors on other outcomes.

    Parameters
    ----------
    learning, fresh : pair of lists of outcomes
        Outcomes of the first data set and of the second. `fresh` is not used before the test is
        fixed.
    delta, confidence : float
        Parameters of the bound.
    attack : str
        Candidate scores.
    **told : dict
        Further fields of the result.

    Returns
    -------
    result : AuditResult
    """
    layout = Layout(learning[0] + learning[1])
    tests = learn_tests(*[layout.table(world) for world in learning], delta, attack)
    tables = [layout.table(world) for world in fresh]
    # without delta Gaussian noise claims nothing; otherwise both tests hold together
    one = delta == 0 or tests[0] is tests[1]
    miss = (1 - confidence) / (1 if one else 2)
    rates = [rates_of(*[test.says_second(table) for table in tables], miss) for test in tests]
    (fpr, fnr), (mu_fpr, mu_fnr) = rates[0], rates[0 if one else 1]
    return AuditResult(
        epsilon_lower=float(epsilon_bound(fpr[2], fnr[2], delta)),
        mu_lower=float(mu_bound(mu_fpr[2], mu_fnr[2])),
        delta=delta,
        confidence=confidence,
        fpr=fpr,
        fnr=fnr,
        gaussian_fpr=mu_fpr,
        gaussian_fnr=mu_fnr,
        n_bound_runs=min(len(world) for world in fresh),
        n_failed=tuple(sum(isinstance(o, Failure) for o in world) for world in fresh),
        attack=tests[0].name,
        curve=tests[0].curve(*tables),
        **{"adjacency": None, "seeded": False} | told,
    )


# Independent fits, in parallel.


#: fits of one task at most
MOST_FITS = 64


def fresh(estimator, seed):
    """Return an unfitted copy with its own randomness.

    Parameters
    ----------
    estimator : object
        Cloned if it has `get_params`, otherwise copied.
    seed : int or None
        For every parameter `random_state`; None lets estimators ask the operating system.
    """
    if not hasattr(estimator, "get_params"):
        return copy.deepcopy(estimator)
    # a shared generator would be copied with its state, and repeat itself
    names = [name for name in parameters(estimator) if name.split("__")[-1] == "random_state"]
    seeds = {
        name: None if seed is None else (seed + step) % 2**32 for step, name in enumerate(names)
    }
    return clone(estimator).set_params(**seeds)


def fit_once(estimator, data, seed, score):
    """Return the outcome of one fit, and the fitted estimator or None."""
    fitted = None
    try:
        fitted = fresh(estimator, seed)
        call_with(fitted.fit, data)
        return (released(fitted) if score is None else scored(score(fitted))), fitted
    except Exception as error:  # whatever it is, it tells something
        return Failure(type(error).__name__, str(error)), None


def _fit_many(estimator, data, seeds, score):
    with warnings.catch_warnings():
        # seeded noise, and whatever else the estimator has to say, once for every fit
        warnings.simplefilter("ignore")
        return [fit_once(estimator, data, seed, score)[0] for seed in seeds]


class AuditProgress:
    """Progress bar on standard error."""

    def __init__(self, total, shown):
        self.total, self.shown, self.done, self._next = total, shown, 0, 0.0

    def add(self, count):
        """Update the bar, at most five times per second."""
        self.done += count
        if self.shown and (time.monotonic() >= self._next or self.done >= self.total):
            self._next = time.monotonic() + 0.2
            part = min(self.done / self.total, 1.0)
            bar = "#" * round(30 * part)
            text = f"\raudit [{bar:30}] {self.done}/{self.total} fits"
            sys.stderr.write(text + "\n" * (self.done >= self.total))
            sys.stderr.flush()


class Fits:
    """Fits of one estimator, with one score and one stream of seeds.

    Parameters
    ----------
    estimator : object
        With a method `fit`.
    score : callable or None
        Maps a fitted estimator to the values for the test.
    random_state : int or None
        Source of seeds; None leaves fits to the operating system.
    n_jobs : int or None
        For joblib.
    progress : AuditProgress
        Counts the fits.
    """

    def __init__(self, estimator, score, random_state, n_jobs, progress):
        self.estimator, self.score, self.n_jobs = estimator, score, n_jobs
        self.progress = progress
        self._bits = None if random_state is None else SeededBits(random_state, "audit")

    def seeds(self, count):
        """Return new seeds, or as many None."""
        if self._bits is None:
            return [None] * count
        return [int(word) >> 32 for word in self._bits.words(count)]

    def run(self, requests):
        """Fit to several data sets.

        Parameters
        ----------
        requests : list of (tuple, int)
            Arguments of `fit`, and number of fits.

        Returns
        -------
        outcomes : list of lists
            Outcomes in the order of the requests.
        """
        total = sum(count for _, count in requests)
        most = max(1, min(MOST_FITS, -(-total // (4 * effective_n_jobs(self.n_jobs)))))
        tasks = [
            (place, data, self.seeds(min(most, count - start)))
            for place, (data, count) in enumerate(requests)
            for start in range(0, count, most)
        ]
        found: list[list] = [[] for _ in requests]
        parts = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(_fit_many)(self.estimator, data, seeds, self.score) for _, data, seeds in tasks
        )
        for (place, _, _), part in zip(tasks, parts, strict=True):
            found[place] += part
            self.progress.add(len(part))
        return found

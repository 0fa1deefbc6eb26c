# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Score against epsilon: display, cross-validations and picture.

The scores are exact numbers computed from rows: nothing here is private.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from itertools import count
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import check_cv, cross_val_score
from sklearn.utils.parallel import Parallel, delayed

from skdp._typing import ArrayLike, Estimator, MatrixLike, VectorLike
from skdp.inspection._drawing import (
    axes_for,
    budget_label,
    checked_epsilons,
    checked_numbers,
    checked_scores,
    options,
    plain_log_axis,
    require_matplotlib,
)
from skdp.privacy.books.parts import sklearn_bases
from skdp.privacy.books.texts import a_kind


class PrivacyUtilityDisplay:
    """Score against epsilon, with a band and the score of a non-private estimator.

    Scores are exact numbers computed from rows, and are not private. Use public or simulated rows,
    or rows whose owner has agreed to all fits. With ``budget=`` the estimator charges every fit to
    a shared budget; the scores are never charged. A choice of epsilon by this picture depends on
    the rows.

    Build it with `from_estimator` or `from_cv_results`; draw several in one picture with `ax`.

    Parameters
    ----------
    epsilons : array-like of shape (n_epsilons,)
        Budgets in nats, positive and increasing.
    scores : array-like of shape (n_epsilons,) or (n_epsilons, n_scores)
        Finite scores of folds, or of draws of the noise.
    baseline_scores : float or array-like of shape (n_scores,), default=None
        Scores of a non-private estimator on the same rows.
    chance : float, default=None
        Score of guessing.
    score_name : str, default="score"
        Name of the score, for the axis.
    name, baseline_name : str, default=None
        Names of the estimators, for the legend.
    delta : float, default=None
        The delta of every fit, for the axis.

    Attributes
    ----------
    ax_, figure_ : matplotlib.axes.Axes, matplotlib.figure.Figure
        Axes and figure of the picture.
    lines_ : list of matplotlib.lines.Line2D
        The curve, then the lines of the non-private estimator and of guessing, if any.
    fill_between_ : matplotlib artist or None
        The band.

    See Also
    --------
    LedgerDisplay : Where a budget went.
    AuditDisplay : What audits rule out.

    Examples
    --------
    >>> from skdp import PrivacyUtilityDisplay
    >>> display = PrivacyUtilityDisplay(
    ...     [0.5, 1.0, 2.0], [[0.6, 0.7], [0.7, 0.8], [0.8, 0.8]], score_name="accuracy"
    ... )
    >>> display.mean_scores
    array([0.65, 0.75, 0.8 ])
    """

    def __init__(
        self, epsilons: ArrayLike, scores: ArrayLike, *, baseline_scores: ArrayLike | None = None,
        chance: float | None = None, score_name: str = "score", name: str | None = None,
        baseline_name: str | None = None, delta: float | None = None,
    ) -> None:  # fmt: skip
        self.epsilons, self.scores = checked_scores(epsilons, scores)
        self.baseline_scores = baseline_scores
        if baseline_scores is not None:
            self.baseline_scores = checked_numbers("baseline_scores", np.ravel(baseline_scores))
        self.chance = None if chance is None else float(checked_numbers("chance", [chance])[0])
        self.score_name = score_name
        self.name = name
        self.baseline_name = baseline_name
        self.delta = delta

    @property
    def mean_scores(self) -> np.ndarray:
        """Mean score of every epsilon."""
        return self.scores.mean(axis=1)

    def band(self, kind: Literal["std", "min-max"] = "std") -> tuple[np.ndarray, np.ndarray]:
        """Return the two ends of the band.

        Parameters
        ----------
        kind : {"std", "min-max"}, default="std"
            One standard deviation of the scores (not of their mean) to either side, or the full
            range.

        Returns
        -------
        lower, upper : ndarray of shape (n_epsilons,)
            Ends of the band; the mean itself for a single score.
        """
        if kind not in ("std", "min-max"):
            raise ValueError(f"band must be 'std' or 'min-max'; got {kind!r}.")
        if kind == "min-max":
            return self.scores.min(axis=1), self.scores.max(axis=1)
        spread = self.scores.std(axis=1, ddof=1) if self.scores.shape[1] > 1 else 0.0
        return self.mean_scores - spread, self.mean_scores + spread

    def plot(
        self,
        ax: Any = None,
        *,
        band: Literal["std", "min-max"] | None = "std",
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
        baseline_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes; None makes a new figure. Axes of another display get an additional curve.
        band : {"std", "min-max", None}, default="std"
            One standard deviation of the scores to either side, their range, or nothing.
        line_kw, fill_between_kw, baseline_kw : dict, default=None
            Keywords for matplotlib's ``plot``, ``fill_between`` and ``axhline``.

        Returns
        -------
        display : PrivacyUtilityDisplay
            Itself.
        """
        if band is not None:
            self.band(band)
        ax, self.lines_, self.fill_between_ = plot_curve(
            self, ax, band, line_kw, fill_between_kw, baseline_kw
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Estimator, X: MatrixLike, y: VectorLike | None = None, *,
        epsilons: ArrayLike, cv: Any = None, scoring: str | Callable[..., Any] | None = None,
        n_repeats: int = 1, baseline: Estimator | None = None, chance: float | None = None,
        params: dict[str, Any] | None = None, groups: VectorLike | None = None,
        n_jobs: int | None = None, random_state: int | None = None, ax: Any = None,
        name: str | None = None, band: Literal["std", "min-max"] | None = "std",
    ) -> Self:  # fmt: skip
        """Cross-validate an estimator at every epsilon, and draw the scores.

        The scores are not private; see the class.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Estimator with a parameter `epsilon`, or with such steps. Epsilons of several steps are
            multiplied by one factor, so that their plain sum is the epsilon shown (with tight
            composition, the whole pipeline may spend less).
        X, y : array-like
            Public or simulated rows, and targets.
        epsilons : array-like of shape (n_epsilons,)
            Budgets in nats, positive and increasing.
        cv : int, splitter or iterable, default=None
            As for :func:`sklearn.model_selection.cross_val_score`. All epsilons and the baseline
            have the same splits.
        scoring : str or callable, default=None
            As for `cross_val_score`; only one score.
        n_repeats : int, default=1
            Number of fits per fold, with fresh noise; a shuffling splitter splits again.
        baseline : estimator, default=None
            A non-private estimator.
        chance : float, default=None
            Score of guessing.
        params : dict, default=None
            For `fit` of the estimator; arrays with one entry per row are split.
        groups : array-like of shape (n_rows,), default=None
            For the splitter.
        n_jobs : int, default=None
            Number of jobs of joblib.
        random_state : int, default=None
            Seeds every `random_state` of the estimator, differently in every fit, so the picture
            is reproducible. By default they are unchanged.
        ax : matplotlib.axes.Axes, default=None
            Axes; None makes a new figure.
        name : str, default=None
            Name in the legend; by default the name of the class, or of the class of the last step
            of a pipeline.
        band : {"std", "min-max", None}, default="std"
            As for `plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            Drawn.

        Raises
        ------
        ValueError
            If there is no epsilon, or one inside a search or another meta-estimator, where the
            plain sum is not the price; or if the epsilons cannot be drawn.
        """
        require_matplotlib("PrivacyUtilityDisplay.from_estimator")
        found = scores_of_estimator(
            estimator, X, y, epsilons=epsilons, cv=cv, scoring=scoring, n_repeats=n_repeats,
            baseline=baseline, params=params, groups=groups,
            n_jobs=n_jobs, random_state=random_state,
        )  # fmt: skip
        found["name"] = found["name"] if name is None else name
        display = cls(epsilons, chance=chance, **found)
        return display.plot(ax=ax, band=band)

    @classmethod
    def from_cv_results(
        cls, cv_results: dict[str, Any], *, param: str | list[str] | None = None,
        others: dict[str, Any] | Literal["best"] | None = None, metric: str = "score",
        baseline_scores: ArrayLike | None = None, chance: float | None = None,
        score_name: str | None = None, name: str | None = None, ax: Any = None,
        band: Literal["std", "min-max"] | None = "std",
    ) -> Self:  # fmt: skip
        """Draw the scores of a search over epsilon.

        They are not private unless the search has a ledger; see the class.

        Parameters
        ----------
        cv_results : dict
            ``cv_results_`` of a fitted search, with a parameter `epsilon` in its grid.
        param : str or list of str, default=None
            Name of the parameter epsilon; for a list the sum is drawn. By default the only one
            with a name that ends with `epsilon`.
        others : dict or "best", default=None
            Values of the other searched parameters; or "best" for the candidate with the largest
            mean score at every epsilon. The largest of several noisy scores is biased upwards,
            more so with more candidates; the legend shows their number. By default several
            candidates at one epsilon are an error.
        metric : str, default="score"
            Name of the score, if the search has several.
        baseline_scores, chance : float, default=None
            Scores of a non-private estimator, and of guessing.
        score_name, name : str, default=None
            For the axis (by default `metric`), and the legend.
        ax : matplotlib.axes.Axes, default=None
            Axes; None makes a new figure.
        band : {"std", "min-max", None}, default="std"
            As for `plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            Drawn.

        Raises
        ------
        ValueError
            If the parameter or score does not exist, or there are several candidates at an
            epsilon.
        """
        require_matplotlib("PrivacyUtilityDisplay.from_cv_results")
        epsilons, scores, best_of = scores_of_search(cv_results, param, others, metric)
        if best_of > 1:
            name = f"{name or 'search'}, best of {best_of}"
        display = cls(
            epsilons, scores, baseline_scores=baseline_scores, chance=chance, name=name,
            score_name=name_of_score(metric) if score_name is None else score_name,
        )  # fmt: skip
        return display.plot(ax=ax, band=band)


# Scores, by cross-validation or read off a search.


def name_of_score(scoring, estimator=None):
    """Return the name of a score for an axis."""
    if scoring is None:
        if is_classifier(estimator):
            return "accuracy"
        return "R²" if is_regressor(estimator) else "score"
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    return name.replace("neg_", "negative ", 1).replace("_", " ")


def name_of_estimator(estimator):
    """Return the name of the class, or of the class of the last step of a pipeline."""
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
    """Return the seed of one fit, different for every state."""
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
    """Return the scores at every epsilon from the results of a search.

    Parameters
    ----------
    cv_results, param, others, metric
        See `PrivacyUtilityDisplay.from_cv_results`.

    Returns
    -------
    epsilons : list of float
        Increasing.
    scores : ndarray of shape (n_epsilons, n_scores)
        Scores of the splits; only the mean if there are none.
    best_of : int
        Largest number of candidates at an epsilon.
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
    """Return the names of the epsilons among the parameters of a search."""
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


# Budgets among the parameters of an estimator or a pipeline.


#: they fit their steps once each, so that budgets of steps add up to that of the whole
COMPOSITES = {"Pipeline", "FeatureUnion", "ColumnTransformer"}


def _has_budget(estimator):
    """Tell whether the `epsilon` of an estimator is a privacy budget.

    In scikit-learn it is the width of a loss: SVR, HuberRegressor and others.
    """
    own = getattr(estimator, "get_params", dict)
    return (
        not isinstance(estimator, type)
        and not type(estimator).__module__.startswith("sklearn.")
        and hasattr(estimator, "get_params")
        and "epsilon" in own(deep=False)
    )


def private_steps(estimator):
    """Return the budgets of an estimator.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Estimator with a parameter `epsilon`, or with such steps.

    Returns
    -------
    steps : dict of str to float
        Names of parameters, with their present values.

    Raises
    ------
    ValueError
        If there is none, one is not a number, or one is inside a meta-estimator.
    """
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        given = "a class" if isinstance(estimator, type) else a_kind(estimator)
        raise ValueError(f"estimator must be an estimator with parameters; got {given}.")
    parts = {"": estimator, **estimator.get_params(deep=True)}
    steps = {}
    for name, value in parts.items():
        *path, last = name.split("__")
        owners = ["__".join(path[:i]) for i in range(len(path) + 1)]
        above = [parts.get(owner) for owner in owners[:-1]]
        if last != "epsilon" or not _has_budget(parts.get(owners[-1])):
            continue
        if any(_has_budget(outer) for outer in above):
            continue  # the one that holds it decides
        for outer in above:
            if not sklearn_bases(outer) & COMPOSITES:
                raise ValueError(
                    f"estimator: {name} belongs to a part of {type(outer).__name__}, which may "
                    "fit it any number of times, so that epsilon is not what it spends. "
                    "Give an estimator or a pipeline with an epsilon of its own."
                )
        steps[name] = value
    if not steps:
        raise ValueError(
            f"estimator: {type(estimator).__name__} has no epsilon, and no step that has one."
        )
    for name, value in steps.items():
        number = isinstance(value, Real) and not isinstance(value, bool)
        if len(steps) > 1 and not (number and 0 < value < math.inf):
            raise ValueError(f"{name} must be positive and finite to be scaled; got {value!r}.")
    return steps


def scaled_epsilons(steps, epsilon):
    """Return values of the parameters with plain sum epsilon, in the same proportions."""
    if len(steps) == 1:
        return dict.fromkeys(steps, float(epsilon))
    total = math.fsum(steps.values())
    return {name: float(epsilon) * (value / total) for name, value in steps.items()}


def sum_of_deltas(estimator, steps):
    """Return the plain sum of the deltas of these parameters, or None if one is unknown."""
    values = estimator.get_params(deep=True)
    deltas = [values.get(f"{name.removesuffix('epsilon')}delta") for name in steps]
    known = all(isinstance(d, Real) and not isinstance(d, bool) for d in deltas)
    return float(math.fsum(deltas)) if known else None


# The picture.


#: one after the other, so that curves differ without colour
STYLES = [
    {"color": "tab:blue", "linestyle": "-", "marker": "o"},
    {"color": "tab:red", "linestyle": "--", "marker": "s"},
    {"color": "tab:green", "linestyle": "-.", "marker": "^"},
    {"color": "tab:purple", "linestyle": (0, (1, 1)), "marker": "D"},
    {"color": "tab:brown", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
]
#: marks the curves of this library, for the next one on the same axes
CURVE = "skdp-curve"
TOLD = {"std": ", mean ± s.d.", "min-max": ", mean and range", None: ", mean"}


def plot_curve(display, ax, band, line_kw, fill_between_kw, baseline_kw):
    """Draw a display.

    Parameters
    ----------
    display : PrivacyUtilityDisplay
        What to draw.
    ax, band, line_kw, fill_between_kw, baseline_kw
        See `PrivacyUtilityDisplay.plot`.

    Returns
    -------
    ax : matplotlib.axes.Axes
    lines : list of matplotlib.lines.Line2D
        The curve, and the lines across.
    filled : matplotlib artist or None
        The band.
    """
    ax = axes_for(ax, "PrivacyUtilityDisplay.plot", 4.8, 3.3)
    before = sum(line.get_gid() == CURVE for line in ax.lines)
    several = display.scores.shape[1] > 1
    band = band if several else None
    style = {**STYLES[before % len(STYLES)], "markersize": 4.5, "linewidth": 1.5}
    style = options({**style, "label": display.name or display.score_name}, line_kw)
    lines = ax.plot(display.epsilons, display.mean_scores, gid=CURVE, **style)
    filled = None if band is None else _fill(display, ax, band, lines[0], fill_between_kw)
    lines += _lines_across(display, ax, baseline_kw)
    _epsilon_axis(ax)
    # curves at several deltas: then no delta is right for the axis
    same = not before or ax.get_xlabel() == budget_label(display.delta)
    ax.set_xlabel(budget_label(display.delta if same else None))
    ax.set_ylabel(display.score_name + (TOLD[band] if several else ""))
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    handles = ax.get_legend_handles_labels()[0]
    # curves first, and a legend through which a line shows but does not disturb
    handles.sort(key=lambda line: getattr(line, "get_gid", str)() != CURVE)
    ax.legend(handles=handles, fontsize="small", edgecolor="none", framealpha=0.85)
    return ax, lines, filled


def _fill(display, ax, band, line, given):
    """Draw the band, and return it."""
    lower, upper = display.band(band)
    if len(lower) == 1:
        # a band needs a width
        look = options({"color": line.get_color(), "linewidth": 1.2}, given)
        return ax.vlines(display.epsilons, lower, upper, **look)
    look = {"color": line.get_color(), "alpha": 0.18, "linewidth": 0}
    return ax.fill_between(display.epsilons, lower, upper, **options(look, given))


def _lines_across(display, ax, baseline_kw):
    """Draw the lines independent of epsilon, and return them."""
    lines = []
    if display.baseline_scores is not None:
        name = display.baseline_name
        label = f"{name}, not private" if name else "not private"
        look = {"color": "black", "linestyle": (0, (6, 3)), "linewidth": 1.1, "label": label}
        height = display.baseline_scores.mean()
        lines.append(ax.axhline(height, **options(look, baseline_kw)))
    if display.chance is not None:
        look = {"color": "0.45", "linestyle": ":", "linewidth": 1.3, "label": "guessing"}
        lines.append(ax.axhline(display.chance, **look))
    return lines


def _epsilon_axis(ax):
    """Make the axis of epsilon logarithmic, with ticks at the budgets if they fit."""
    from matplotlib.ticker import FixedLocator

    curves = [line for line in ax.lines if line.get_gid() == CURVE]
    shown = np.unique(np.concatenate([line.get_xdata() for line in curves]))
    logs = np.log(shown)
    ax.set_xscale("log")
    margin = 0.05 * (logs[-1] - logs[0]) or np.log(2)
    ax.set_xlim(np.exp(logs[0] - margin), np.exp(logs[-1] + margin))
    # a label of four characters needs about a tenth of a column
    roomy = len(shown) <= 9 and np.all(np.diff(logs) >= 0.09 * (logs[-1] - logs[0]))
    plain_log_axis(ax.xaxis, FixedLocator(shown) if roomy else None)

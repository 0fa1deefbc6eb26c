# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A picture of what privacy costs: a score against epsilon."""

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp._typing import Estimator, MatrixLike, VectorLike
from skdp.inspection._drawing import checked_numbers, checked_scores, require_matplotlib
from skdp.inspection._scores import name_of_score, scores_of_estimator, scores_of_search
from skdp.inspection._utility_curve import plot_curve


class PrivacyUtilityDisplay:
    """Score against epsilon, with a band, and the line of a non-private estimator.

    Scores on rows are numbers computed from rows, and none of them is paid for. Draw
    this with public or simulated rows, or with rows whose owner has agreed to all fits: with
    ``budget=`` the estimator charges each of them to a shared budget, but the scores themselves
    stay exact and uncharged. Choosing epsilon by this picture is a choice that the rows made.

    Build it with `from_estimator` or `from_cv_results`; draw several into one picture with `ax`.

    Parameters
    ----------
    epsilons : array-like of shape (n_epsilons,)
        Budgets in nats, positive and increasing.
    scores : array-like of shape (n_epsilons,) or (n_epsilons, n_scores)
        Finite scores: of several folds, or several draws of the noise.
    baseline_scores : float or array-like of shape (n_scores,), default=None
        Scores of a non-private estimator on the same rows.
    chance : float, default=None
        Score of guessing.
    score_name : str, default="score"
        What the scores are, for the axis.
    name, baseline_name : str, default=None
        For the legend.
    delta : float, default=None
        Of all fits, for the axis.

    Attributes
    ----------
    ax_, figure_ : matplotlib.axes.Axes, matplotlib.figure.Figure
        With the picture.
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
    def mean_scores(self) -> NDArray[np.float64]:
        """Mean score of every epsilon."""
        return self.scores.mean(axis=1)

    def band(
        self, kind: Literal["std", "min-max"] = "std"
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the two ends of the band.

        Parameters
        ----------
        kind : {"std", "min-max"}, default="std"
            One standard deviation of the scores (not of their mean) to either side, or all
            of them.

        Returns
        -------
        lower, upper : ndarray of shape (n_epsilons,)
            The mean itself where there is one score only.
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
            Where to draw; None makes a new figure. Axes with another display get one more curve.
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

        Nothing of this is paid for; see the class.

        Parameters
        ----------
        estimator : estimator or Pipeline
            With a parameter `epsilon`, or with steps that have one. Epsilons of several steps
            are multiplied by one factor, so that their plain sum is the epsilon shown (what
            the whole pipeline spends, tightly composed, may be less).
        X, y : array-like
            Public or simulated rows, and targets.
        epsilons : array-like of shape (n_epsilons,)
            Budgets in nats, positive and increasing.
        cv : int, splitter or iterable, default=None
            As for :func:`sklearn.model_selection.cross_val_score`. All epsilons and the baseline
            have the same splits.
        scoring : str or callable, default=None
            As there, one score.
        n_repeats : int, default=1
            Fits of every fold, with fresh noise; a splitter that shuffles splits again.
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
            Seeds every `random_state` of the estimator, another way in every fit, so that
            the picture can be repeated. By default they are left as they are.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        name : str, default=None
            For the legend; by default the name of the class, for a pipeline of the last step.
        band : {"std", "min-max", None}, default="std"
            As for `plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            Drawn.

        Raises
        ------
        ValueError
            If there is no epsilon, or one inside of a search or another meta-estimator, where
            what is spent is not its plain sum; or if the epsilons cannot be drawn.
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

        They were not paid for unless the search says so; see the class.

        Parameters
        ----------
        cv_results : dict
            ``cv_results_`` of a fitted search, with a parameter `epsilon` in its grid.
        param : str or list of str, default=None
            Which parameter is epsilon; of a list the sum is drawn. By default the only one
            whose name ends with `epsilon`.
        others : dict or "best", default=None
            If other parameters were searched as well: the values that they shall have, or
            "best" for the candidate with the largest mean score at every epsilon. The
            largest of several noisy scores is too large, the more so the more candidates there
            are; the legend says how many. By default several candidates for an epsilon are
            refused.
        metric : str, default="score"
            Which score, if the search had several.
        baseline_scores, chance : float, default=None
            Scores of a non-private estimator, and of guessing.
        score_name, name : str, default=None
            For the axis (by default `metric`), and the legend.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        band : {"std", "min-max", None}, default="std"
            As for `plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            Drawn.

        Raises
        ------
        ValueError
            If there is no such parameter or score, or several candidates for an epsilon.
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

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Display of audits: lower bounds on epsilon beside claims."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from skdp._typing import ArrayLike
from skdp.inspection._drawing import (
    as_many,
    axes_for,
    budget_label,
    checked_numbers,
    legend_above,
    options,
    plain_log_axis,
    require_matplotlib,
    width_in_inches,
    words_beside,
    wrapped,
)
from skdp.privacy.books.texts import a_kind

#: attributes of the result of an audit
NEEDED = ("epsilon_lower", "epsilon_claimed", "delta", "confidence")


class AuditDisplay:
    """Lower bounds of audits beside claimed epsilons, one row per audit.

    A bar covers the epsilons that an audit rules out with its confidence. A claim inside the bar
    is contradicted. A claim to the right of it is not, but that is no proof. Each confidence is
    for a single audit: of twenty at 95 %, one may well rule out too much.

    Build it with `from_result`.

    Parameters
    ----------
    names : sequence of str
        Names of the rows, from top to bottom.
    lower_bounds : array-like of shape (n_audits,)
        Lower bounds on epsilon, not negative.
    claims : sequence of float or None, default=None
        Claimed epsilons, positive; infinity and None claim nothing.
    deltas, confidences : sequence of float, default=None
        Delta and confidence of every audit, for the labels.

    Attributes
    ----------
    ax_, figure_ : matplotlib.axes.Axes, matplotlib.figure.Figure
        Axes and figure of the picture.
    bars_ : list of matplotlib.patches.Rectangle
        Ranges ruled out, one per row.
    lines_ : list of matplotlib.lines.Line2D
        Markers of claims: claims that are not contradicted, and contradicted ones, if any.

    See Also
    --------
    PrivacyUtilityDisplay : What privacy costs in accuracy.
    LedgerDisplay : What a claim is made of.

    Notes
    -----
    A single `AuditResult` also has a method `plot`, which draws the errors of the attack.

    Examples
    --------
    >>> from skdp import AuditDisplay
    >>> display = AuditDisplay(["a", "b"], [0.7, 3.1], claims=[1.0, 1.0])
    >>> display.contradicted
    (False, True)
    """

    def __init__(
        self,
        names: Sequence[str],
        lower_bounds: ArrayLike,
        *,
        claims: Sequence[float | None] | None = None,
        deltas: Sequence[float] | None = None,
        confidences: Sequence[float] | None = None,
    ) -> None:
        self.lower_bounds = checked_numbers("lower_bounds", lower_bounds)
        if self.lower_bounds.min() < 0:
            raise ValueError(f"lower_bounds must not be negative; got {lower_bounds!r}.")
        n = len(self.lower_bounds)
        self.names = [str(name) for name in as_many("names", names, n)]
        claims = as_many("claims", [None] * n if claims is None else claims, n)
        given = [claim for claim in claims if claim is not None]
        if given:
            checked_numbers("claims", given, positive=True, infinite=True)
        self.claims = [None if c is None or math.isinf(c) else float(c) for c in claims]
        self.deltas = None if deltas is None else as_many("deltas", deltas, n)
        self.confidences = None if confidences is None else as_many("confidences", confidences, n)

    @property
    def contradicted(self) -> tuple[bool, ...]:
        """Whether each claim is contradicted."""
        pairs = zip(self.lower_bounds, self.claims, strict=True)
        return tuple(claim is not None and bool(lower > claim) for lower, claim in pairs)

    def plot(
        self,
        ax: Any = None,
        *,
        log: bool | None = None,
        wrap: int | None = None,
        bar_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the rows.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes; None makes a new figure, with a height for the number of rows.
        log : bool, default=None
            Whether the axis is logarithmic. None: logarithmic if any value is more than 30 times
            the smallest claim.
        wrap : int, default=None
            Names are wrapped after about this number of characters; None: to fit the axes.
        bar_kw : dict, default=None
            Keywords for matplotlib's ``barh``.

        Returns
        -------
        display : AuditDisplay
            Itself.
        """
        ax, self.bars_, self.lines_ = plot_audits(self, ax, log=log, wrap=wrap, bar_kw=bar_kw)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_result(
        cls,
        results: Any,
        *,
        ax: Any = None,
        log: bool | None = None,
        wrap: int | None = None,
        bar_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw one or many results of audits.

        Parameters
        ----------
        results : AuditResult, sequence of them, or dict of str to AuditResult
            Objects with `epsilon_lower`, `epsilon_claimed`, `delta` and `confidence`. Keys of a
            dict are the names of the rows.
        ax : matplotlib.axes.Axes, default=None
            Axes; None makes a new figure.
        log : bool, default=None
            As for `plot`.
        wrap : int, default=None
            As for `plot`.
        bar_kw : dict, default=None
            As for `plot`.

        Returns
        -------
        display : AuditDisplay
            Drawn.

        Raises
        ------
        ValueError
            If there are no results, or objects of other types.
        """
        require_matplotlib("AuditDisplay.from_result")
        if not isinstance(results, Mapping):
            single = hasattr(results, NEEDED[0]) or not isinstance(results, Iterable)
            results = [results] if single else list(results)
            results = {f"audit {i + 1}": result for i, result in enumerate(results)}
        for name, result in results.items():
            if not all(hasattr(result, attribute) for attribute in NEEDED):
                raise ValueError(
                    f"results: {name!r} must be the result of an audit; got {a_kind(result)}."
                )
        found = {a: [getattr(result, a) for result in results.values()] for a in NEEDED}
        display = cls(
            list(results), found["epsilon_lower"], claims=found["epsilon_claimed"],
            deltas=found["delta"], confidences=found["confidence"],
        )  # fmt: skip
        return display.plot(ax=ax, log=log, wrap=wrap, bar_kw=bar_kw)


# The picture.


#: from this ratio on, small rows could not be read on a linear axis
WIDE = 30.0
PLAIN = {"color": "0.82", "edgecolor": "0.35", "linewidth": 0.8}
BROKEN = {"color": "white", "edgecolor": "black", "linewidth": 1.2, "hatch": "////"}


def plot_audits(display, ax, *, log, wrap, bar_kw):
    """Draw a display.

    Parameters
    ----------
    display : AuditDisplay
        What to draw.
    ax, log, wrap, bar_kw
        See `AuditDisplay.plot`.

    Returns
    -------
    ax : matplotlib.axes.Axes
    bars, lines : list of matplotlib artists
    """
    ax = axes_for(ax, "AuditDisplay.plot", 4.8, 1.4 + 0.36 * len(display.names))
    labels = [wrapped(name, ax, wrap) for name in display.names]
    heights = np.array([1.7 + label.count("\n") for label in labels])
    at = np.cumsum(heights) - heights / 2
    narrow = width_in_inches(ax) < 3.2
    left, right = _ends(display, log)
    ax.set_xscale("log" if left else "linear")
    if left:
        plain_log_axis(ax.xaxis)
    ax.set_xlim(left, right)
    ax.set_ylim(heights.sum() + 0.2, -0.2)
    contradicted = np.array(display.contradicted)
    bars = []
    for y, lower, broken in zip(at, display.lower_bounds, contradicted, strict=True):
        look = options({"height": 1.0, **(BROKEN if broken else PLAIN)}, bar_kw)
        bars += ax.barh(y, max(lower - left, 0.0), left=left, **look)
    claims = np.array([np.nan if c is None else c for c in display.claims])
    lines = _markers(ax, at, claims, contradicted)
    for y, lower, claim, broken in zip(at, display.lower_bounds, claims, contradicted, strict=True):
        words = "no claim" if np.isnan(claim) else "" if lower > 0 else "nothing ruled out"
        style = {"fontstyle": "italic"}
        if broken:
            # hatches and crosses say it in a narrow column, where a long word has no room
            words, style = ("" if narrow else "CONTRADICTED"), {"fontweight": "bold"}
        if words:
            words_beside(ax, np.nanmax([lower, left, claim]), y, words, **style)
    ax.set_yticks(at, labels, fontsize="small")
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(budget_label(_common(display.deltas)))
    ax.grid(axis="x", color="0.92", linewidth=0.8)
    _legend(ax, display, bars, lines)
    return ax, bars, lines


def _common(values):
    """Return the common value, or None."""
    return values[0] if values and len(set(values)) == 1 else None


def _ends(display, log):
    """Return the ends of the axis; the left one is 0 for a linear axis."""
    claims = [claim for claim in display.claims if claim is not None]
    numbers = np.array([*display.lower_bounds[display.lower_bounds > 0], *claims])
    if not len(numbers):
        return 0.0, 1.0
    smallest, largest = numbers.min(), numbers.max()
    if log is None:
        log = largest > WIDE * min(claims, default=largest)
    # what is smaller by many orders of magnitude would leave no room for the rest
    smallest = max(smallest, largest * 1e-12)
    room = 1.45 if any(display.contradicted) or None in display.claims else 1.1
    if not log:
        return 0.0, largest * room
    return smallest / 3, largest * (largest / smallest * 3) ** (room - 1.0)


def _markers(ax, at, claims, contradicted):
    """Draw the claims, and return the artists."""
    lines = []
    for broken, marker, label in [
        (False, "D", "claimed"),
        (True, "X", "claimed, contradicted"),
    ]:
        chosen = (contradicted == broken) & ~np.isnan(claims)
        if chosen.any():
            lines += ax.plot(
                claims[chosen], at[chosen], marker, color="black", label=label, zorder=3,
                markersize=8 if broken else 5.5, markeredgecolor="white", linestyle="none",
            )  # fmt: skip
    return lines


def _legend(ax, display, bars, lines):
    """Explain bars and markers above the axes."""
    from matplotlib.patches import Patch

    confidence = _common(display.confidences)
    sure = "" if confidence is None else f" at {100 * confidence:g} % confidence"
    # the look of a bar that is not contradicted, if there is one
    bar = bars[display.contradicted.index(False) if not all(display.contradicted) else 0]
    patch = Patch(
        facecolor=bar.get_facecolor(), edgecolor=bar.get_edgecolor(), hatch=bar.get_hatch(),
        label=f"ruled out{sure}",
    )  # fmt: skip
    handles = [patch, *lines]
    legend_above(ax, handles)

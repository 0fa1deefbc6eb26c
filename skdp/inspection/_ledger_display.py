# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Display of a ledger: parts, picture, and layout of bars."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from skdp._typing import Estimator
from skdp.inspection._drawing import (
    axes_for,
    budget_label,
    legend_above,
    options,
    require_matplotlib,
    words_beside,
    wrapped,
)
from skdp.privacy.books.ledger import SHARED_NOISE, Ledger
from skdp.privacy.books.parts import leaves
from skdp.privacy.books.spent import NotCovered, privacy_spent
from skdp.privacy.books.texts import a_kind


@dataclass(frozen=True)
class LedgerPart:
    """All releases of one query in one step.

    Parameters
    ----------
    name : str
        Name of the query.
    epsilon : float
        Price of these releases together, without any others.
    count : int, default=1
        Number of releases.
    step : str, default=""
        Name of the step of the pipeline.
    hidden : bool, default=False
        Whether these are local reports, seen and added up by the collector only. Then epsilon
        holds towards the collector, and is not part of the total.
    """

    name: str
    epsilon: float
    count: int = 1
    step: str = ""
    hidden: bool = False


def parts_of_ledger(ledger, delta, step=""):
    """Return the parts of a ledger, in order of their first release.

    Parameters
    ----------
    ledger : Ledger
        Ledger to split.
    delta : float
        Delta of epsilon.
    step : str, default=""
        Of the pipeline.

    Returns
    -------
    parts : list of LedgerPart
    """
    _refuse_shared_noise(ledger)
    kinds = {}
    for release in ledger.releases:
        kinds.setdefault((release.query, release.hidden), []).append(release)
    parts = []
    for (query, hidden), releases in kinds.items():
        # releases keep their rows and fits: disjoint ones cost what the dearest row pays
        alone = replace(ledger, releases=tuple(releases))
        epsilon = alone.local_epsilon(delta) if hidden else alone.epsilon(delta)
        parts.append(LedgerPart(query, epsilon, sum(r.count for r in releases), step, hidden))
    return parts


def _refuse_shared_noise(ledger):
    """Raise a ValueError if fits share their noise: bars would be infinitely long."""
    if ledger.shared_noise:
        raise ValueError(f"{SHARED_NOISE.format(', '.join(ledger.shared_noise))}.")


def parts_of_estimator(estimator, delta):
    """Return the parts of the price of an estimator or a pipeline.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted.
    delta : float or None
        Delta of epsilon; None for the sum of the reported deltas.

    Returns
    -------
    parts : list of LedgerPart
        In order of the steps.
    spent : PrivacySpent
        Total price.
    """
    spent = privacy_spent(estimator, delta=delta)
    _refuse_shared_noise(spent.ledger)
    steps = {}
    for name, part in leaves(estimator):
        if hasattr(part, "ledger_"):
            # steps that were chosen together have one ledger in common
            steps.setdefault(id(part.ledger_), (name or "", part.ledger_))
    steps = list(steps.values())
    counted = sum(r.count for _, ledger in steps for r in ledger.releases)
    if counted != sum(r.count for r in spent.ledger.releases):
        # a search: most of what it spent stands in no ledger of a step
        steps = [("", spent.ledger)]
    parts = [p for name, ledger in steps for p in parts_of_ledger(ledger, spent.delta, name)]
    return parts, spent


def facts_of_ledger(ledger):
    """Return the adjacency and the unit in words, or "" for an empty ledger."""
    if not ledger.releases:
        return ""
    found = "local reports" if ledger.adjacency == "local" else ledger.adjacency
    return f"{found}, per {ledger.unit}"


class LedgerDisplay:
    """Division of a budget: prices of each kind of release alone, and of all together.

    The bars do not add up to the total. Gaussian releases of mu_1, ..., mu_k cost as much as one
    release with the square root of the sum of squares, and releases on disjoint rows cost as much
    as the most expensive row. In both cases the bars together are longer than the total. But each
    bar is drawn at the whole delta. If deltas add up, a release has only a share of it, and the
    bars together may be shorter. Their sum is not a bound.

    Build it with `from_estimator` or `from_ledger`. It reads the ledger and no data, and may be
    published with the model.

    Parameters
    ----------
    parts : sequence of LedgerPart
        The bars.
    total : float
        Epsilon of all releases together.
    delta : float
        The delta at which all epsilons hold.
    facts : str, default=""
        Adjacency and unit, for the axis.
    not_covered : sequence of NotCovered, default=()
        Parts that depend on private rows and are on no ledger.

    Attributes
    ----------
    ax_, figure_ : matplotlib.axes.Axes, matplotlib.figure.Figure
        Axes and figure of the picture.
    bars_ : list of matplotlib.patches.Rectangle
        One bar per public part.
    lines_ : list of matplotlib.lines.Line2D
        Total, and the plain sum of several bars.

    See Also
    --------
    Ledger : The same in words.
    privacy_spent : The total.
    PrivacyUtilityDisplay : What privacy costs in accuracy.

    Examples
    --------
    >>> from skdp import DPMean, LedgerDisplay
    >>> mean = DPMean(epsilon=0.5, random_state=0, data_norm=1.0).fit([[0.1], [0.2], [0.3]])
    >>> display = LedgerDisplay.from_estimator(mean)
    >>> [part.name for part in display.parts]
    ['sum of rows in the unit ball']
    >>> round(display.total, 3)
    0.5
    """

    def __init__(
        self,
        parts: Iterable[LedgerPart],
        *,
        total: float,
        delta: float,
        facts: str = "",
        not_covered: Iterable[NotCovered] = (),
    ) -> None:
        self.parts = tuple(parts)
        if not self.parts:
            raise ValueError("the ledger is empty: nothing was released, so there are no bars.")
        for what, epsilon in [("total", total), *self._seen]:
            if not 0 <= epsilon < math.inf:
                raise ValueError(
                    f"epsilon of {what!r} is {epsilon} at delta={delta:g}, and cannot be drawn. "
                    "Gaussian noise, say, has no epsilon at delta 0: give a positive delta."
                )
        self.total = total
        self.delta = delta
        self.facts = facts
        self.not_covered = tuple(not_covered)

    @property
    def _seen(self):
        """Names and prices of public parts."""
        return [(part.name, part.epsilon) for part in self.parts if not part.hidden]

    @property
    def plain_sum(self) -> float:
        """Sum of the bars. It is not a bound: every bar has the whole delta."""
        return math.fsum(epsilon for _, epsilon in self._seen)

    def plot(
        self, ax: Any = None, *, wrap: int | None = None, bar_kw: dict[str, Any] | None = None
    ) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes; None makes a new figure, with a height for the number of bars.
        wrap : int, default=None
            Names of queries are wrapped after about this number of characters; None: to fit the
            axes.
        bar_kw : dict, default=None
            Keywords for matplotlib's ``barh``.

        Returns
        -------
        display : LedgerDisplay
            Itself.
        """
        ax, self.bars_, self.lines_ = plot_bars(self, ax, wrap=wrap, bar_kw=bar_kw)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        *,
        delta: float | None = None,
        ax: Any = None,
        wrap: int | None = None,
        bar_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the privacy budget spent by a fitted estimator or pipeline.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted; the bars of a pipeline are grouped by step.
        delta : float, default=None
            Delta of epsilon; by default the sum of the reported deltas.
        ax : matplotlib.axes.Axes, default=None
            Axes; None makes a new figure.
        wrap : int, default=None
            As for `plot`.
        bar_kw : dict, default=None
            As for `plot`.

        Returns
        -------
        display : LedgerDisplay
            Drawn.

        Raises
        ------
        TypeError
            If it is not fitted, or has no ledger.
        ValueError
            If nothing was released, or epsilon is infinite at this delta.
        """
        require_matplotlib("LedgerDisplay.from_estimator")
        parts, spent = parts_of_estimator(estimator, delta)
        display = cls(
            parts, total=spent.epsilon, delta=spent.delta, facts=facts_of_ledger(spent.ledger),
            not_covered=spent.uncovered,
        )  # fmt: skip
        return display.plot(ax=ax, wrap=wrap, bar_kw=bar_kw)

    @classmethod
    def from_ledger(
        cls,
        ledger: Ledger,
        *,
        delta: float = 0.0,
        ax: Any = None,
        wrap: int | None = None,
        bar_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw a ledger.

        Parameters
        ----------
        ledger : Ledger
            Ledger of an estimator, or a sum of several ledgers.
        delta : float, default=0.0
            Delta of epsilon; at 0 only purely private releases have a finite epsilon.
        ax : matplotlib.axes.Axes, default=None
            Axes; None makes a new figure.
        wrap : int, default=None
            As for `plot`.
        bar_kw : dict, default=None
            As for `plot`.

        Returns
        -------
        display : LedgerDisplay
            Drawn.

        Raises
        ------
        TypeError
            If it is not a ledger.
        ValueError
            If it is empty, or epsilon is infinite at this delta.
        """
        require_matplotlib("LedgerDisplay.from_ledger")
        if not isinstance(ledger, Ledger):
            raise TypeError(f"ledger must be a Ledger; got {a_kind(ledger)}.")
        total = ledger.epsilon(delta)
        parts = parts_of_ledger(ledger, delta)
        display = cls(parts, total=total, delta=delta, facts=facts_of_ledger(ledger))
        return display.plot(ax=ax, wrap=wrap, bar_kw=bar_kw)


# The picture.


#: heights of rows, in lines of text
HEADER, GAP = 1.5, 0.6
#: a line in sizes of its text, and points of the smallest text that can be read
LINE, SMALLEST = 1.2, 5.0


def plot_bars(display, ax, *, wrap, bar_kw):
    """Draw a display.

    Parameters
    ----------
    display : LedgerDisplay
        What to draw.
    ax, wrap, bar_kw
        See `LedgerDisplay.plot`.

    Returns
    -------
    ax : matplotlib.axes.Axes
    bars, lines : list of matplotlib artists
    """
    lines_of_text = 1.8 * (len(display.parts) + 1) + 2.8 * len(display.not_covered)
    given, size = ax is not None, {"fontsize": "small"}
    ax = axes_for(ax, "LedgerDisplay.plot", 4.8, 1.3 + 0.2 * lines_of_text)
    from matplotlib.font_manager import FontProperties

    rows, headers, height = _bar_rows(display, ax, wrap)
    points = 72.0 * ax.get_position().height * ax.figure.get_size_inches()[1]
    small = LINE * FontProperties(size="small").get_size_in_points()
    if given and height * small > points:
        # too short for all lines: names have one line each, then smaller letters
        if wrap is None:
            rows, headers, height = _bar_rows(display, ax, wrap, cut=True)
        size = {"fontsize": max(min(small, points / height) / LINE, SMALLEST)}
    look = {"height": 1.1, "color": "0.75", "edgecolor": "0.25", "linewidth": 0.8}
    bars = []
    for at, label, part in rows:
        if part is None:
            words_beside(ax, 0, at, label, style="italic", **size)
        elif part.hidden:
            words = f"seen by the aggregator: {part.epsilon:.3g}"
            words_beside(ax, 0, at, words, style="italic", **size)
        else:
            (bar,) = ax.barh(at, part.epsilon, **options(look, bar_kw))
            bars.append(bar)
            words_beside(ax, part.epsilon, at, f"{part.epsilon:.3g}", **size)
    for at, step in headers:
        words_beside(ax, 0, at, step, fontweight="bold", **size)
    what = "all with a ledger" if display.not_covered else "all together"
    label = f"{what}: {display.total:.4g}"
    lines = [ax.axvline(display.total, color="black", linewidth=1.5, label=label)]
    if len(bars) > 1:
        label = f"plain sum of the bars: {display.plain_sum:.4g}"
        look = {"color": "0.35", "linestyle": ":", "linewidth": 1.3, "label": label}
        lines.append(ax.axvline(display.plain_sum, **look))
    _dress(ax, display, rows, height, size)
    return ax, bars, lines


def _bar_rows(display, ax, wrap, cut=False):
    """Return rows (position, label, part or None), headers (position, step), and the height.

    Names have the first of their lines only if they are cut.
    """
    steps = list(dict.fromkeys(part.step for part in display.parts))
    grouped = len(steps) > 1 or bool(display.not_covered)
    rows, headers, at = [], [], 0.0
    for step in steps:
        if grouped and step:
            headers.append((at + HEADER / 2, step))
            at += HEADER
        for part in display.parts:
            if part.step != step:
                continue
            times = f" ({part.count}\N{NO-BREAK SPACE}times)" if part.count > 1 else ""
            first, *more = wrapped(part.name, ax, wrap).split("\n")
            if cut:
                label = first + (" …" if more else "") + times
            else:
                label = wrapped(part.name + times, ax, wrap)
            space = 1.7 + label.count("\n")
            rows.append((at + space / 2, label, part))
            at += space
        at += GAP if step != steps[-1] or display.not_covered else 0.0
    for item in display.not_covered:
        # beside the axis, where there is about as much room as for the labels
        words = wrapped(item.text, ax)
        space = 1.4 + words.count("\n")
        rows.append((at + space / 2, words, None))
        at += space
    return rows, headers, at


def _dress(ax, display, rows, height, size):
    """Label the axes."""
    labels = ["not covered" if part is None else label for _, label, part in rows]
    ax.set_yticks([at for at, _, _ in rows], labels, **size)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(height + 0.4, -0.3)
    widest = max(
        display.total, display.plain_sum, *(p.epsilon for p in display.parts if not p.hidden), 0.0
    )
    # room for the number beside the longest bar; nothing spent is a picture too
    ax.set_xlim(0, 1.12 * widest or 1.0)
    ax.set_xlabel(budget_label(display.delta, display.facts))
    ax.grid(axis="x", color="0.92", linewidth=0.8)
    legend_above(ax)

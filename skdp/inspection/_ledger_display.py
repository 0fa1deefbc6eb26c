# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A picture of a ledger: where the budget went."""

import math
from collections.abc import Iterable
from typing import Any, Self

from skdp._typing import Estimator
from skdp.inspection._drawing import require_matplotlib
from skdp.inspection._ledger_bars import plot_bars
from skdp.inspection._ledger_parts import (
    LedgerPart,
    facts_of_ledger,
    parts_of_estimator,
    parts_of_ledger,
    what_is_not_covered,
)
from skdp.privacy import Ledger


class LedgerDisplay:
    """Where a budget went: what every kind of release would cost alone, and all together.

    The bars do not add up to the total. Gaussian releases of mu_1, ..., mu_k cost as much as
    one of the square root of the sum of squares, and parts that read other rows cost what
    the dearest row pays: then the bars together are longer. But every bar has the whole delta to
    itself, of which it would only get a share beside others: where prices in delta are added
    up, the bars together may be shorter. Their sum is no bound on anything.

    Build it with `from_estimator` or `from_ledger`. It shows what the ledger says and looks at no
    data: it may be published with the model.

    Parameters
    ----------
    parts : sequence of LedgerPart
        The bars: objects with `name`, `epsilon`, `count`, `step`, `hidden`.
    total : float
        Epsilon of all releases together.
    delta : float
        At which all these are meant.
    facts : str, default=""
        Adjacency and unit, for the axis.
    not_covered : sequence of str, default=()
        What learned from the data without a ledger, in words.

    Attributes
    ----------
    ax_, figure_ : matplotlib.axes.Axes, matplotlib.figure.Figure
        With the picture.
    bars_ : list of matplotlib.patches.Rectangle
        One for each part that everybody may see.
    lines_ : list of matplotlib.lines.Line2D
        The total, and the plain sum of the bars, if there are several.

    See Also
    --------
    Ledger : The same in words.
    privacy_spent : The total.
    PrivacyUtilityDisplay : What privacy costs in accuracy.

    Examples
    --------
    >>> from skdp import DPMean, LedgerDisplay
    >>> mean = DPMean(epsilon=0.5, random_state=0).fit([[0.1], [0.2], [0.3]])
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
        not_covered: Iterable[str] = (),
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
        """Names and prices of what everybody may see."""
        return [(part.name, part.epsilon) for part in self.parts if not part.hidden]

    @property
    def plain_sum(self) -> float:
        """The sum of the bars. It is no bound: every bar has the whole delta to itself."""
        return math.fsum(epsilon for _, epsilon in self._seen)

    def plot(
        self, ax: Any = None, *, wrap: int | None = None, bar_kw: dict[str, Any] | None = None
    ) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure, as high as there are bars.
        wrap : int, default=None
            Names of queries are broken after about that many characters; None for what
            fits the axes.
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
        """Draw what a fitted estimator or pipeline has spent.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted; the bars of a pipeline stand in groups, one a step.
        delta : float, default=None
            At which epsilon is meant; by default the sum of the reported ones.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
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
            If it is not fitted, or keeps no ledger.
        ValueError
            If nothing was released, or epsilon is infinite at this delta.
        """
        require_matplotlib("LedgerDisplay.from_estimator")
        parts, spent = parts_of_estimator(estimator, delta)
        display = cls(
            parts, total=spent.epsilon, delta=spent.delta, facts=facts_of_ledger(spent.ledger),
            not_covered=map(what_is_not_covered, spent.not_covered),
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
            Of an estimator, or a sum of several.
        delta : float, default=0.0
            At which epsilon is meant; at 0 only pure noise has one.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
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
            If it is no ledger.
        ValueError
            If it is empty, or epsilon is infinite at this delta.
        """
        require_matplotlib("LedgerDisplay.from_ledger")
        if not isinstance(ledger, Ledger):
            raise TypeError(f"ledger must be a Ledger; got {type(ledger).__name__}.")
        total = ledger.epsilon(delta)
        parts = parts_of_ledger(ledger, delta)
        display = cls(parts, total=total, delta=delta, facts=facts_of_ledger(ledger))
        return display.plot(ax=ax, wrap=wrap, bar_kw=bar_kw)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A picture of audits: what they rule out, beside what is claimed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from numpy.typing import ArrayLike

from skdp.inspection._audit_bars import plot_audits
from skdp.inspection._drawing import as_many, checked_numbers, require_matplotlib

NEEDED = ("epsilon_lower", "epsilon_claimed", "delta", "confidence")


class AuditDisplay:
    """What audits rule out, beside what is claimed: a row for every audit.

    A bar covers the epsilons that the audit has ruled out with its confidence. A claim that
    stands inside of the bar is contradicted; one to the right of it is not, which proves
    nothing. Each confidence is of one audit on its own: of twenty at 95 %, one may well rule
    out too much.

    Build it with `from_result`.

    Parameters
    ----------
    names : sequence of str
        Of the rows, from above.
    lower_bounds : array-like of shape (n_audits,)
        Lower bounds on epsilon, not negative.
    claims : sequence of float or None, default=None
        Claimed epsilons, positive; infinity and None claim nothing.
    deltas, confidences : sequence of float, default=None
        Of every audit, for the labels.

    Attributes
    ----------
    ax_, figure_ : matplotlib.axes.Axes, matplotlib.figure.Figure
        With the picture.
    bars_ : list of matplotlib.patches.Rectangle
        What is ruled out, one a row.
    lines_ : list of matplotlib.lines.Line2D
        The markers of claims: those that stand, and contradicted ones, if any.

    See Also
    --------
    PrivacyUtilityDisplay : What privacy costs in accuracy.
    LedgerDisplay : What a claim is made of.

    Notes
    -----
    A single `AuditResult` has a method `plot` as well; it draws the errors of the attack.

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
            Where to draw; None makes a new figure, as high as there are rows.
        log : bool, default=None
            Whether the axis is logarithmic; None for: if anything is more than 30
            times the smallest claim.
        wrap : int, default=None
            Names are broken after about that many characters; None for what fits the axes.
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
            Anything with `epsilon_lower`, `epsilon_claimed`, `delta` and `confidence`. A
            dict says the names of the rows.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
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
            If there are no results, or something else is among them.
        """
        require_matplotlib("AuditDisplay.from_result")
        if not isinstance(results, Mapping):
            single = hasattr(results, NEEDED[0]) or not isinstance(results, Iterable)
            results = [results] if single else list(results)
            results = {f"audit {i + 1}": result for i, result in enumerate(results)}
        for name, result in results.items():
            if not all(hasattr(result, attribute) for attribute in NEEDED):
                raise ValueError(
                    f"results: {name!r} must be the result of an audit; got "
                    f"{type(result).__name__}."
                )
        found = {a: [getattr(result, a) for result in results.values()] for a in NEEDED}
        display = cls(
            list(results), found["epsilon_lower"], claims=found["epsilon_claimed"],
            deltas=found["delta"], confidences=found["confidence"],
        )  # fmt: skip
        return display.plot(ax=ax, log=log, wrap=wrap, bar_kw=bar_kw)

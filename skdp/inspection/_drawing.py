# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Shared axes, labels and checks of displays."""

import textwrap
from collections.abc import Mapping

import numpy as np

#: beyond it a standard deviation overflows, and no picture has room
LARGEST = 1e100
#: behind words
WHITE = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8}


def require_matplotlib(caller):
    """Raise an ImportError with instructions if matplotlib is missing.

    Parameters
    ----------
    caller : str
        Name of the caller.
    """
    try:
        import matplotlib.pyplot  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib, which is not installed: pip install 'skdp[plot]'."
        ) from error


def axes_for(ax, caller, width, height):
    """Return the given axes, or axes of a new figure of the given size in inches.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        Given axes.
    caller : str
        Name of the caller, for the message if matplotlib is missing.
    width, height : float
        Size of a new figure.

    Returns
    -------
    ax : matplotlib.axes.Axes
    """
    require_matplotlib(caller)
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(width, height), layout="constrained").add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    return ax


def budget_label(delta=None, more=""):
    """Return the label of an axis of epsilon.

    Parameters
    ----------
    delta : float, default=None
        Delta of epsilon, if known.
    more : str, default=""
        Further text.

    Returns
    -------
    label : str
    """
    label = "epsilon (nats)"
    label = label if delta is None else f"{label} at delta = {short(delta)}"
    return f"{label}\n{more}" if more else label


def short(number):
    """Return a number as a person would write it: 1e-5, not 1e-05."""
    return f"{number:g}".replace("e-0", "e-").replace("e+0", "e")


def width_in_inches(ax):
    """Return the width of axes before the layout of labels."""
    return ax.get_position().width * ax.figure.get_size_inches()[0]


def wrapped(text, ax, width=None):
    """Return a text in lines of the given length; by default half the width of the axes."""
    width = max(12, int(7.5 * width_in_inches(ax))) if width is None else width
    # a name of a class stays whole, whatever it costs
    width = max(width, min(32, max(map(len, text.split()), default=1)))
    return "\n".join(textwrap.wrap(text, width)) or text


def plain_log_axis(axis, locator=None):
    """Label a logarithmic axis by plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(numticks=8) if locator is None else locator)
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_locator(NullLocator())


def legend_above(ax, handles=None):
    """Put the legend above the axes, outside the bars."""
    handles = ax.get_legend_handles_labels()[0] if handles is None else handles
    # its right end stands fast: to the left it may cover the space of the labels
    ax.legend(
        handles=handles, loc="lower right", bbox_to_anchor=(1, 1), frameon=False,
        fontsize="small", borderaxespad=0.2,
    )  # fmt: skip


def words_beside(ax, x, y, words, **look):
    """Write words to the right of a point, on a white background."""
    look = {"va": "center", "fontsize": "small", "bbox": WHITE, **look}
    return ax.annotate(words, (x, y), xytext=(4, 0), textcoords="offset points", **look)


def options(defaults, given):
    """Return keywords of matplotlib: the defaults, updated by the given ones."""
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"keywords for matplotlib must be a dict; got {given!r}.")
    return {**defaults, **(given or {})}


def checked_numbers(name, values, *, positive=False, infinite=False):
    """Return a non-empty one-dimensional array, or raise a ValueError with its name.

    Parameters
    ----------
    name : str
        Of the parameter.
    values : array-like of shape (n,)
        Values to draw.
    positive : bool, default=False
        Whether they must be positive.
    infinite : bool, default=False
        Whether infinity is allowed.

    Returns
    -------
    values : ndarray of shape (n,)
    """
    numbers = as_floats(name, values)
    if numbers.ndim != 1 or not len(numbers):
        raise ValueError(f"{name} must be a non-empty list of numbers; got {values!r}.")
    checked = numbers[~np.isinf(numbers)] if infinite else numbers
    if not np.all(np.abs(checked) <= LARGEST):
        raise ValueError(f"{name} must be finite, and at most 1e100; got {values!r}.")
    if positive and not np.all(numbers > 0):
        raise ValueError(f"{name} must be positive; got {values!r}.")
    return numbers


def checked_epsilons(epsilons):
    """Return positive increasing budgets, or raise a ValueError."""
    budgets = checked_numbers("epsilons", epsilons, positive=True)
    if not np.all(np.diff(budgets) > 0):
        raise ValueError(f"epsilons must be increasing; got {epsilons!r}.")
    return budgets


def checked_scores(epsilons, scores):
    """Return epsilons, and a row of scores for each, or raise a ValueError.

    Parameters
    ----------
    epsilons, scores : array-like
        See `PrivacyUtilityDisplay`.

    Returns
    -------
    epsilons : ndarray of shape (n_epsilons,)
    scores : ndarray of shape (n_epsilons, n_scores)
    """
    budgets = checked_epsilons(epsilons)
    table = as_floats("scores", scores)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != len(budgets) or not table.size:
        raise ValueError(
            f"scores must have a row for each of {len(budgets)} epsilons; got the shape "
            f"{np.shape(scores)}."
        )
    if not np.all(np.abs(table) <= LARGEST):
        raise ValueError("scores must be finite and at most 1e100; did a fit fail?")
    return budgets, table


def as_floats(name, values):
    """Return an array of floats, or raise a ValueError with its name."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers; got {values!r}.") from None


def as_many(name, values, n_values):
    """Return a list of the given length, or raise a ValueError with its name."""
    values = list(values)
    if len(values) != n_values:
        raise ValueError(f"{name} must have {n_values} entries, one a row; got {len(values)}.")
    return values

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Display of an additive model, a sum of functions of single columns.

Coefficients, units of columns and frequent words are public or released: they determine the
functions on public grids, which cost nothing. No row is read.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skdp._typing import Estimator
from skdp.inspection._drawing import as_many, checked_numbers, options, require_matplotlib
from skdp.preprocessing._table import DPTableVectorizer
from skdp.privacy.books.texts import a_kind

# units on both sides of the origin of a column; half of what is between public bounds is the root
# of three of them
_NEAR, _HALF = 2.5, 3**0.5
_POINTS = 101
#: bars of a column: of more words those are drawn that matter most
_BARS = 12
#: kinds of arrays that hold words
_WORDS = "UO"
#: lines of several classes differ without colour, too
_STYLES = "-", "--", ":", "-."


class AdditiveShapesDisplay:
    """Contributions of every column to the score of a model, drawn without reading rows.

    A sum of functions of single columns is interpretable. This display draws the functions, one
    axes per column, on one scale. A column of numbers has a curve over its values, a column of
    words has one bar per word. The functions were released with the model, so the picture may be
    published, and costs nothing.

    Build it with `from_estimator`.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    grids : sequence of array-like of shape (n_points,)
        Grid of each function: numbers in the units of the column, or words.
    shapes : sequence of array-like of shape (n_points,) or (n_points, n_outputs)
        Contributions of the column there.
    outputs : sequence of str, default=None
        Names of the classes, if there are several scores.
    score_name : str, default="score"
        Name of the score, for the axes.

    Attributes
    ----------
    axes_ : ndarray of matplotlib.axes.Axes
        Axes, one per column.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    lines_ : list of list of matplotlib artists
        Lines of each column, one per score, or its bars.

    See Also
    --------
    sklearn.inspection.PartialDependenceDisplay : The same from rows, which have to be public, for
        any model.

    Notes
    -----
    Shapes describe the decisions of a model, not causes. They have the noise of the coefficients:
    compare a curve with the curves of irrelevant columns. Redundant columns share their
    contribution arbitrarily.

    Examples
    --------
    >>> from skdp import AdditiveShapesDisplay
    >>> display = AdditiveShapesDisplay(["age"], [[20, 50, 80]], [[-1.0, 0.5, 0.2]])
    >>> display.spans
    array([1.5])
    """

    def __init__(
        self,
        names: Sequence[str],
        grids: Sequence[Any],
        shapes: Sequence[Any],
        *,
        outputs: Sequence[str] | None = None,
        score_name: str = "score",
    ) -> None:
        self.names = [str(name) for name in names]
        if not self.names:
            raise ValueError("names must not be empty: there is nothing to draw.")
        self.grids = [np.asarray(grid) for grid in as_many("grids", grids, len(self.names))]
        self.shapes = []
        n_outputs = 1 if outputs is None else len(list(outputs))
        given = as_many("shapes", shapes, len(self.names))
        for name, grid, shape in zip(self.names, self.grids, given, strict=True):
            if grid.dtype.kind not in _WORDS + "M":
                checked_numbers(f"the grid of {name!r}", grid)
            numbers = np.asarray(shape, dtype=float).reshape(len(shape), -1)
            if numbers.shape != (len(grid), n_outputs):
                raise ValueError(
                    f"shapes of {name!r} must be {n_outputs} for each of {len(grid)} points; got "
                    f"an array of shape {np.shape(shape)}."
                )
            checked_numbers(f"the shape of {name!r}", numbers.ravel())
            self.shapes.append(numbers)
        self.outputs = None if outputs is None else [str(output) for output in outputs]
        self.score_name = score_name

    @property
    def spans(self) -> np.ndarray:
        """Largest difference of scores along each column, of shape (n_columns,)."""
        return np.array([np.ptp(shape, axis=0).max() for shape in self.shapes])

    def plot(
        self,
        axes: Any = None,
        *,
        n_cols: int = 3,
        line_kw: dict[str, Any] | None = None,
        bar_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the functions, all on one scale.

        Parameters
        ----------
        axes : sequence of matplotlib.axes.Axes, default=None
            Axes, one per column; None makes a new figure.
        n_cols : int, default=3
            Number of axes in a row of a new figure.
        line_kw, bar_kw : dict, default=None
            Keywords for matplotlib's ``plot``, and for ``barh`` of words.

        Returns
        -------
        display : AdditiveShapesDisplay
            Itself.

        Raises
        ------
        ValueError
            If the number of axes is not the number of columns, or `n_cols` is not a positive
            integer.
        ImportError
            If matplotlib is missing.
        """
        require_matplotlib("AdditiveShapesDisplay.plot")
        if isinstance(n_cols, bool) or not isinstance(n_cols, int) or n_cols < 1:
            raise ValueError(f"n_cols must be a positive integer; got {n_cols!r}.")
        options({}, line_kw)
        options({}, bar_kw)
        if axes is None:
            axes = _new_axes(len(self.names), n_cols)
        axes = as_many("axes", np.ravel(np.asarray(axes, dtype=object)), len(self.names))
        numbers = np.concatenate([[0.0], *(shape.ravel() for shape in self.shapes)])
        room = 0.05 * max(float(np.ptp(numbers)), 1e-12)
        ends = float(numbers.min()) - room, float(numbers.max()) + room
        self.lines_ = []
        for ax, name, grid, shape in zip(axes, self.names, self.grids, self.shapes, strict=True):
            ax.spines[["top", "right"]].set_visible(False)
            ax.set_title(name, fontsize="medium")
            if grid.dtype.kind in _WORDS:
                self.lines_.append(_bars(ax, grid, shape, bar_kw))
                ax.axvline(0, color="0.8", linewidth=0.8, zorder=0)
                ax.set(xlim=ends, xlabel=self.score_name)
            else:
                self.lines_.append(_curves(ax, grid, shape, self.outputs, line_kw))
                ax.axhline(0, color="0.8", linewidth=0.8, zorder=0)
                place = ax.get_subplotspec()
                inner = place is not None and not place.is_first_col()
                ax.set(ylim=ends, ylabel="" if inner else self.score_name)
        if self.outputs:
            axes[0].legend(
                handles=_keys(self.outputs, self.lines_), frameon=False, fontsize="small"
            )
        self.axes_, self.figure_ = np.array(axes, dtype=object), axes[0].figure
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        *,
        features: Sequence[Any] | None = None,
        axes: Any = None,
        n_cols: int = 3,
        line_kw: dict[str, Any] | None = None,
        bar_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the functions of a fitted model.

        Parameters
        ----------
        estimator : estimator
            `DPKernelClassifier` or `DPKernelRegressor`, without waves; a linear model that finds
            units of columns; or a pipeline of a `DPTableVectorizer` and a linear model, as
            `dp_tabular_pipeline` returns it.
        features : sequence of str or int, default=None
            Names or positions of the columns, in drawing order. None draws all.
        axes : sequence of matplotlib.axes.Axes, default=None
            As in `plot`.
        n_cols : int, default=3
            As in `plot`.
        line_kw, bar_kw : dict, default=None
            As in `plot`.

        Returns
        -------
        display : AdditiveShapesDisplay
            Drawn.

        Raises
        ------
        NotFittedError
            If the estimator was not fitted.
        ValueError
            If it is not a sum of functions of columns, or `features` has an unknown column.
        ImportError
            If matplotlib is missing.

        Notes
        -----
        Curves of numbers extend two and a half units to both sides of the origin of a column (two
        and a half standard deviations after a vectorizer), or between its public bounds. Their
        mean is 0, over a normal column of that unit or uniformly between bounds. After a
        vectorizer 0 is about the mean of the rows. With more than 12 words, the words with the
        largest contributions are drawn; words without a public list have the number of their
        bucket. The vectorizer scales down rows longer than `data_norm`, and their contributions
        with them.
        """
        require_matplotlib("AdditiveShapesDisplay.from_estimator")
        check_is_fitted(estimator)
        model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        names, grids, shapes = _shapes_of(estimator, model)
        places = [_place_asked(feature, names) for feature in _asked_for(features, names)]
        classes = getattr(model, "classes_", None)
        outputs, score_name = None, "prediction"
        if classes is not None:
            outputs = [str(label) for label in classes] if len(classes) > 2 else None
            score_name = "score" if outputs else f"score of {classes[-1]}"
        display = cls(
            *([part[place] for place in places] for part in (names, grids, shapes)),
            outputs=outputs,
            score_name=score_name,
        )
        return display.plot(axes, n_cols=n_cols, line_kw=line_kw, bar_kw=bar_kw)


# The functions of a model: lists of names, grids and shapes.


def _shapes_of(estimator, model):
    """Return names, grids and shapes of all columns of a fitted model, or raise."""
    coef = getattr(model, "coef_", None)
    if isinstance(estimator, Pipeline):
        table = estimator[0]
        if len(estimator.steps) == 2 and isinstance(table, DPTableVectorizer):
            n_features = len(table.get_feature_names_out())
            if coef is not None and np.shape(coef)[-1] == n_features:
                return _shapes_of_table(table, np.reshape(coef, (-1, n_features)))
    elif coef is not None and hasattr(model, "feature_scale_"):
        features = getattr(model, "_map", None)
        if getattr(model, "kernel_", "linear") != "rbf":
            return _shapes_in_units(model, features, np.atleast_2d(coef))
        raise ValueError(
            f"estimator must be a sum of functions of columns; {a_kind(model)} has waves of all "
            "columns at once (kernel_='rbf'): fit it with kernel='additive'."
        )
    raise ValueError(
        "estimator must be a kernel or linear model with units of columns, or a pipeline of "
        f"DPTableVectorizer and a linear model; got {a_kind(estimator)}."
    )


def _shapes_in_units(model, features, coef):
    """Return the functions of a model on columns in units; `features` is its map or None."""
    d, bounded = model.n_features_in_, getattr(model, "bounds", None) is not None
    end = _HALF if bounded else _NEAR
    units = np.linspace(-end, end, _POINTS)
    usual = np.ones(_POINTS) if bounded else np.exp(-(units**2) / 2)
    grids, shapes = [], []
    for j, (center, scale) in enumerate(
        zip(model.feature_center_, model.feature_scale_, strict=True)
    ):
        rows = np.zeros((_POINTS, d))
        rows[:, j] = units
        found = rows * model.feature_scale_ if features is None else features(rows)
        shape = found @ coef.T
        grids.append(center + scale * units)
        shapes.append(shape - np.average(shape, axis=0, weights=usual))
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(d)])
    return list(map(str, names)), grids, shapes


def _shapes_of_table(table, coef):
    """Return the functions of a linear model after a vectorizer."""
    names, grids, shapes, start = [], [], [], 0
    for column in table.columns_:
        grid, block = _values_drawn(table, column)
        part = coef[:, start : start + block.shape[1]] * (table.data_norm / table._unit())
        start += block.shape[1]
        names.append(str(column.label))
        grids.append(grid)
        shapes.append(block @ part.T)
    return names, grids, shapes


def _values_drawn(table, column):
    """Return made-up values of a column, from public and released numbers, and their features."""
    if column.kind == "text":
        names = [name[1:] for name in table._names(column, "")]
        hot = np.eye(len(names))
        if column.words is None:
            hot[:, :-2] -= table.frequent_[column.label][1]
        return np.array(names, dtype=object), hot
    flag = column.kind == "flag"
    if column.bounds is not None:
        values = np.linspace(*column.bounds, 2 if flag else _POINTS)
        grid = np.array(["no", "yes"], dtype=object) if flag else values
    else:
        center, scale = table.mean_[column.label], table.scale_[column.label]
        values = center + scale * np.linspace(-_NEAR, _NEAR, _POINTS)
        grid = values
        if not scale:
            # the sign stands for the value
            away = max(abs(center), 1.0)
            values = np.array([center - away, center, center + away])
            grid = np.array([f"below {center:g}", f"{center:g}", f"above {center:g}"], object)
    if column.kind in ("date", "duration"):
        kind = "datetime64[s]" if column.kind == "date" else "timedelta64[s]"
        values = np.rint(values * 86_400).astype(np.int64).astype(kind)
        grid = values if column.kind == "date" and grid.dtype.kind == "f" else grid
    return grid, table._block(values, column)


def _asked_for(features, names):
    """Return the requested features."""
    if features is None:
        return range(len(names))
    if isinstance(features, str) or not np.iterable(features):
        raise ValueError(f"features must be a list of columns; got {features!r}.")
    return list(features)


def _place_asked(feature, names):
    """Return the place of a column, or raise."""
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    number = isinstance(feature, int | np.integer) and not isinstance(feature, bool)
    if number and 0 <= feature < len(names):
        return int(feature)
    raise ValueError(f"features must be names or positions of columns; got {feature!r}.")


# The picture.


def _new_axes(n_columns, n_cols):
    """Return axes of a new figure, one per column."""
    import matplotlib.pyplot as plt

    n_cols = min(n_cols, n_columns)
    n_rows = -(-n_columns // n_cols)
    size = (3.1 * n_cols, 2.4 * n_rows)
    _, axes = plt.subplots(n_rows, n_cols, figsize=size, layout="constrained", squeeze=False)
    for ax in axes.flat[n_columns:]:
        ax.remove()
    return axes.flat[:n_columns]


def _curves(ax, grid, shape, outputs, line_kw):
    """Draw the curves of a column, one per score."""
    lines = []
    for i, column in enumerate(shape.T):
        look = {"color": "tab:blue"} if outputs is None else {"color": f"C{i % 10}"}
        look["linestyle"] = _STYLES[i % len(_STYLES)]
        lines += ax.plot(grid, column, **options(look, line_kw))
    if grid.dtype.kind == "M":
        ax.tick_params(axis="x", labelrotation=30)
    return lines


def _bars(ax, words, shape, bar_kw):
    """Draw the bars of a column of words, one per word and score."""
    n_outputs = shape.shape[1]
    largest = np.sort(np.argsort(-np.abs(shape).max(axis=1), kind="stable")[:_BARS])
    places, height, bars = np.arange(len(largest)), 0.8 / n_outputs, []
    for i, column in enumerate(shape.T):
        color = "tab:blue" if n_outputs == 1 else f"C{i % 10}"
        at = places + (i - (n_outputs - 1) / 2) * height
        bars += ax.barh(at, column[largest], **options({"height": height, "color": color}, bar_kw))
    ax.set_yticks(places, [str(words[i]) for i in largest], fontsize="small")
    ax.invert_yaxis()
    return bars


def _keys(outputs, lines):
    """Return a legend key for each score."""
    from matplotlib.lines import Line2D

    curves = next((part for part in lines if isinstance(part[0], Line2D)), None)
    looks = curves or [Line2D([], [], color=f"C{i % 10}", linewidth=5) for i in range(len(outputs))]
    keys = []
    for look, output in zip(looks, outputs, strict=True):
        key = Line2D([], [], color=look.get_color(), linestyle=look.get_linestyle(), label=output)
        keys.append(key)
    return keys

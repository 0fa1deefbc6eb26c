# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Adversarial neighbouring data sets, and claims under audit."""

import contextlib
import math
from dataclasses import dataclass, replace
from numbers import Integral, Real

import numpy as np
from scipy import sparse

from skdp._rows.base import check_bounds
from skdp._typing import Adjacency, Estimator, MatrixLike
from skdp.privacy.books.parts import is_private
from skdp.privacy.books.spent import OVERRIDDEN, privacy_spent
from skdp.privacy.kernel.ledger import Record

#: rows and features of what is made up
N_ROWS, N_FEATURES = 12, 2
#: an outlier, in units of the bound
FAR = 1e6
#: and no farther than this, in the units of the data
FARTHEST = 1e300


@dataclass(frozen=True)
class NeighbourPair:
    """Two data sets that differ in one row.

    Parameters
    ----------
    name : str
        Description of the rows and of the difference.
    first, second : tuple
        The arguments of `fit`.
    """

    name: str
    first: tuple
    second: tuple


def adversarial_pairs(
    estimator: Estimator, data: MatrixLike = None, *, adjacency: Adjacency | None = None
) -> list[NeighbourPair]:
    """Return neighbours that a wrong estimator may distinguish.

    Parameters
    ----------
    estimator : estimator
        Its kind determines labels or targets; its parameters `data_norm`, `bounds`, `classes` and
        `target_scale` determine the rows.
    data : array-like or tuple (X, y), default=None
        Rows around the differing one. None makes up 12 rows of 2 features: all zero, on two sides,
        or equal.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default=None
        None takes the adjacency of the estimator, or "replace-one".

    Returns
    -------
    pairs : list of NeighbourPair
        One row is replaced by the opposite one, at the bound and far beyond it; by a row of zeros;
        by a row on another feature; by a row with another label or target. With a public label
        set, it is also the only row of its class; otherwise the label set does not change.

    Raises
    ------
    ValueError
        If the adjacency is "zero-out" and null rows are unknown. They are known for classifiers
        with public `classes`: rows with another label.

    Examples
    --------
    >>> from skdp import DPQuantile
    >>> from skdp.audit import adversarial_pairs
    >>> pairs = adversarial_pairs(DPQuantile(bounds=(0, 10)))
    >>> len(pairs), pairs[0].name
    (15, 'rows on two sides, opposite rows')
    >>> pairs[0].first[0][0], pairs[0].second[0][0]
    (array([10., 10.]), array([0., 0.]))
    """
    return made_pairs(estimator, data, resolve_adjacency(estimator, adjacency), N_ROWS)


def made_pairs(estimator, data, adjacency, n_rows):
    """Return the pairs of `adversarial_pairs`, with a least number of rows if none are given."""
    if data is None:
        made = _Rows(estimator, None, 1.0)
        backgrounds = made.backgrounds(n_rows)
    else:
        data = as_arguments(data)
        if len(data) > 2:
            raise ValueError("with groups, give the neighbour too: no pairs are known for them.")
        X = dense(data[0])
        if X.ndim != 2 or X.dtype.kind != "f" or not X.size:
            raise ValueError(f"X must be a matrix of numbers; got the shape {X.shape}.")
        y = None if len(data) < 2 else np.array(data[1])
        if kind_of(estimator) == "regressor" and y is not None:
            y = y.astype(np.float64)
        # numbers beyond 1e150 have no squared norm
        made = _Rows(estimator, X.shape[1], min(float(np.abs(X).max()), 1e150) or 1.0, y)
        backgrounds = [("the rows given", X, y)]
    found = []
    for name, X, y in backgrounds:
        row = made.replaceable(y)
        for place, (other, *contents) in enumerate(made.differences(adjacency, y, row)):
            pair = _neighbouring_pair(f"{name}, {other}", X, y, row, *contents)
            found += [] if pair is None else [(place, pair)]
    # the strongest differences first, whatever the other rows
    return [pair for _, pair in sorted(found, key=lambda item: item[0])]


def resolve_adjacency(estimator, adjacency):
    """Return the given adjacency, or the adjacency of the estimator, or "replace-one"."""
    own = known(estimator, "adjacency") if adjacency is None else None
    adjacency = adjacency or (own if own in ADJACENCIES else "replace-one")
    if adjacency not in ADJACENCIES:
        raise ValueError(f"adjacency must be one of {', '.join(ADJACENCIES)}; got {adjacency!r}.")
    return adjacency


def _neighbouring_pair(name, X, y, row, first, second):
    """Return two data sets with different contents in one row; None if they are equal."""
    sides = []
    for contents in (first, second):
        if contents is None:
            parts = [np.delete(part, row, axis=0) for part in (X, y) if part is not None]
        else:
            parts = [X.copy()] if y is None else [X.copy(), _wide_enough(y, contents[1])]
            parts[0][row] = contents[0]
            if y is not None:
                parts[1][row] = contents[1]
        sides.append(tuple(parts))
    same = all(np.array_equal(a, b) for a, b in zip(*sides, strict=True))
    return None if same else NeighbourPair(name, *sides)


def _wide_enough(y, value):
    """Return a copy of labels with room for another: a longer text, a number among bools."""
    return y.astype(y.dtype if y.dtype.kind == "O" else np.result_type(y, np.asarray(value)))


def _box(estimator, n_features):
    """Return lower and upper bounds per feature, or None without usable bounds."""
    bounds = known(estimator, "bounds")
    if not isinstance(bounds, tuple | list | dict | np.ndarray):
        return None
    sizes = [n_features] if n_features else [N_FEATURES, len(bounds), *map(np.size, bounds)]
    for size in sizes:
        # made-up rows have no names; what is no bounds at all the fit will say
        with contextlib.suppress(ValueError):
            pairs = dict(enumerate(bounds.values())) if isinstance(bounds, dict) else bounds
            return check_bounds(pairs, size)
    return None


class _Rows:
    """Rows at the bound of an estimator, and labels or targets."""

    def __init__(self, estimator, n_features, reach, y=None):
        self.kind = kind_of(estimator)
        norm, box = known(estimator, "data_norm"), _box(estimator, n_features)
        if box is not None:
            self.low, self.high = box
            n_features = self.low.size
            self.zero = self.low / 2 + self.high / 2
            self.axes = np.tile(self.zero, (n_features, 1))
            np.fill_diagonal(self.axes, self.high)
        else:
            n_features = n_features or N_FEATURES
            length = float(norm) if isinstance(norm, Real) else reach
            self.axes = length * np.eye(n_features)
            self.zero = np.zeros(n_features)
            # a clipped row is longest in l1, the norm behind Laplace noise, on the diagonal
            self.high = np.full(n_features, length / np.sqrt(n_features))
            self.low = -self.high
        self.public_classes = self.kind == "classifier" and known(estimator, "classes") is not None
        if self.public_classes:
            self.labels = np.unique(np.asarray(known(estimator, "classes")))
        elif self.kind == "classifier":
            self.labels = np.array([0, 1]) if y is None else np.unique(y)
        elif self.kind == "regressor":
            scale = known(estimator, "target_scale")
            scale = scale if scale else 1.0 if y is None else float(np.abs(y).max()) or 1.0
            self.labels = float(scale) * np.array([-1.0, 1.0])

    def backgrounds(self, n_rows):
        """Return made-up rows of at least the given number: (name, X, y)."""
        n_rows = n_rows if self.kind == "other" else max(n_rows, 2 * len(self.labels) + 2)
        side = np.arange(n_rows) % 2
        y = None
        if self.kind != "other":
            y = self.labels[np.arange(n_rows) % len(self.labels)]
        alike = np.tile(self.high, (n_rows, 1))
        found = [
            ("rows on two sides", np.where(side[:, None] == 1, self.high, self.low), y),
            ("zero rows", np.tile(self.zero, (n_rows, 1)), y),
            ("equal rows", alike, y),
        ]
        if self.public_classes:
            found.append(("equal rows of one class", alike, np.repeat(self.labels[:1], n_rows)))
        return found

    def replaceable(self, y):
        """Return a row that is not the only one of its label, if possible."""
        if self.kind != "classifier" or y is None:
            return 0
        _, place, counts = np.unique(y, return_inverse=True, return_counts=True)
        return int(np.argmax(counts[place]))

    def differences(self, adjacency, y, row):
        """Yield (name, contents of the row in the first data set, and in the second)."""
        own, other = None, None
        if y is not None and self.kind == "other":
            own = other = y[row]
        elif y is not None:
            own, other = self.labels[-1], self.labels[0]
        with np.errstate(over="ignore"):
            sides = [self.zero + FAR * (end - self.zero) for end in (self.high, self.low)]
            far, opposite_far = np.clip(sides, -FARTHEST, FARTHEST)
        if adjacency != "replace-one":
            gone = None if adjacency == "add-remove" else self._null()
            less = "removed" if gone is None else "against nothing"
            yield f"one row {less}", (self.high, own), gone
            yield f"the opposite row {less}", (self.low, own), gone
            yield f"an outlier {less}", (far, own), gone
            return
        yield "opposite rows", (self.high, own), (self.low, own)
        yield "a row and zeros", (self.high, own), (self.zero, own)
        yield "opposite outliers", (far, own), (opposite_far, own)
        if len(self.axes) > 1:
            yield "another feature", (self.axes[0], own), (self.axes[1], own)
            yield "opposite entries", (self.axes[0], own), (2 * self.zero - self.axes[0], own)
        if self.kind != "other" and y is not None:
            yield "another label", (self.high, own), (self.high, other)
            yield "another label, opposite rows", (self.high, own), (self.low, other)
            yield "another label, outliers", (far, own), (far, other)
        if self.kind == "regressor" and y is not None:
            yield "targets far off", (self.high, FAR * own), (self.high, FAR * other)

    def _null(self):
        if not self.public_classes:
            raise ValueError(
                "adjacency 'zero-out': give data and neighbour, in which one row is replaced by a "
                "row that contributes nothing; which rows do is known for classifiers with public "
                "classes only."
            )
        text = self.labels.dtype.kind in "US"
        return self.zero, ("outside " + self.labels[-1] if text else self.labels[-1] + 1)


# One row among so many that what it releases about itself is nearly all that is claimed: the more
# rows, the less of the noise of released gradients reaches a prediction. Numbers of rows are for a
# Gaussian parameter of 1, and grow with its inverse.


#: rows and features for another label, and where most of the rows lie, and the row in question
_FLIPPED, _WIDE, _NEAR, _ON_AXIS = 1200, 100, 0.35, 0.7
#: rows for two directions, and how far they spread along the first feature, and a quarter of them
#: along the second: few enough for a norm that is checked
_TURNED, _LONG, _FLAT = 16_000, 0.14, 0.03
#: no more rows than that
_MOST_ROWS = 200_000


def pairs_among_many(estimator, mu):
    """Return pairs that attain almost the whole Gaussian claim of a classifier.

    Parameters
    ----------
    estimator : estimator
        A private classifier. Other estimators have no such pairs.
    mu : float
        Claimed Gaussian-DP parameter.

    Returns
    -------
    pairs : list of NeighbourPair
        Two pairs, with thousands of rows.

    Notes
    -----
    *Another label.* All rows lie on one of many features, labels are random, and the row has a
    prediction near 0: with either label its gradient has the clipping norm. Most rows are short,
    for a smooth loss; an eighth are long, and keep the hinge away from its kink.

    *Two directions.* Two unit rows of one label at an angle of 120 degrees: their sums of x and x
    x' are as far apart as possible. All other rows lie closely around the midpoint of the two, and
    even closer along the line through them. So after centering and whitening these two are far out
    and opposite, and so are their gradients.
    """
    if kind_of(estimator) != "classifier" or not is_private(estimator):
        return []
    made = _Rows(estimator, 2, 1.0)
    length = float(made.axes[0, 0])
    y, turn = _in_turn(made.labels, _FLIPPED / mu)
    X, other_y = np.zeros((len(y), _WIDE)), y.copy()
    X[:, 0] = (1 - 2 * (turn % 2)) * np.where(turn // 2 % 8, _NEAR, 1.0)
    X[0], other_y[0] = _ON_AXIS * np.eye(_WIDE)[0], made.labels[1]
    sides = (length * X, y), (length * X, other_y)
    found = [NeighbourPair("one row among many, another label", *sides)]
    y, turn = _in_turn(made.labels, _TURNED / mu)
    eighth = turn // 2 % 8
    spread = 0.5 + _LONG * (1 - 2 * (turn % 2)), _FLAT * (1.0 * (eighth == 0) - (eighth == 4))
    X = np.column_stack(spread)
    other = X.copy()
    X[0], other[0] = (0.5, math.sqrt(0.75)), (0.5, -math.sqrt(0.75))
    sides = (length * X, y), (length * other, y)
    return [*found, NeighbourPair("one row among many, two directions", *sides)]


def _in_turn(labels, n_rows):
    """Return labels in turn for all rows, and the number of earlier cycles of each."""
    place = np.arange(min(math.ceil(n_rows) + 4 * len(labels), _MOST_ROWS))
    return labels[place % len(labels)], place // len(labels)


# Checks of neighbours.


ADJACENCIES = ("replace-one", "zero-out", "add-remove")


def as_arguments(data):
    """Return data as the arguments of `fit`: X, or the parts of a tuple."""
    return data if isinstance(data, tuple) else (data,)


def dense(values):
    """Return an array of rows: numbers as float64, other values unchanged."""
    if sparse.issparse(values):
        values = values.toarray()
    elif hasattr(values, "to_numpy"):
        values = values.to_numpy()
    values = np.asarray(values)
    return values.astype(np.float64) if values.dtype.kind in "biuf" else values


def check_neighbours(first, second, adjacency):
    """Raise ValueError unless two data sets are neighbours under an adjacency.

    Parameters
    ----------
    first, second : tuple of array-like
        The arguments of `fit`: rows, targets, groups and weights of rows, of which the last three
        may be None. With groups, all rows of one group and their number may differ.
    adjacency : {"replace-one", "zero-out", "add-remove"}
        "zero-out" is checked like "replace-one": no check can recognise a null row.
    """
    if len(first) != len(second):
        raise ValueError(
            f"data and neighbour must be alike; got {len(first)} arrays and {len(second)}."
        )
    both = [(a, b) for a, b in zip(first, second, strict=True)]
    grouped = len(both) > 2 and both[2][0] is not None
    # groups last
    both = [*both[:2], *both[3:], *both[2:3]]
    pairs = [(dense(a), dense(b)) for a, b in both if not (a is None and b is None)]
    sizes = {a.shape[:1] for a, _ in pairs}, {b.shape[:1] for _, b in pairs}
    if any(len(lengths) != 1 for lengths in sizes) or any(
        a.shape[1:] != b.shape[1:] for a, b in pairs
    ):
        shapes = [tuple(part.shape for part in side) for side in zip(*pairs, strict=True)]
        raise ValueError(f"data and neighbour have wrong shapes; got {shapes[0]} and {shapes[1]}.")
    n_first, n_second = len(pairs[0][0]), len(pairs[0][1])
    if adjacency == "add-remove" and not grouped:
        _check_removed(pairs, n_first, n_second)
        return
    if grouped:
        _check_groups(pairs, adjacency)
        return
    if n_first != n_second:
        raise ValueError(
            f"data and neighbour must have equally many rows under {adjacency!r}; got {n_first} "
            f"and {n_second} (adjacency='add-remove' is for one row less)."
        )
    changed = np.any([_differ(a, b) for a, b in pairs], axis=0)
    if not changed.any():
        raise ValueError("data and neighbour must differ; they are equal.")
    alone = int(changed.sum())
    if alone > 1:
        raise ValueError(f"data and neighbour must differ in one row; they differ in {alone}.")


def _check_groups(pairs, adjacency):
    """Raise unless two data sets have the same groups, with equal rows in all except one."""
    *parts, (groups, others) = pairs
    names = set(groups.tolist()) | set(others.tolist())
    if adjacency != "add-remove" and not set(groups.tolist()) == names == set(others.tolist()):
        raise ValueError("data and neighbour must have the same groups.")
    changed = []
    for name in names:
        here, there = groups == name, others == name
        alike = here.sum() == there.sum()
        if not alike or any(_differ(a[here], b[there]).any() for a, b in parts):
            changed.append(name)
    if not changed:
        raise ValueError("data and neighbour must differ; they are equal.")
    if len(changed) > 1:
        raise ValueError(
            f"data and neighbour must differ in one group; they differ in {len(changed)}."
        )


def call_with(method, data):
    """Call a method with the given rows, targets, groups and weights."""
    X, y, groups, weights = (*data, None, None, None)[:4]
    named = {"groups": groups, "sample_weight": weights}
    named = {name: part for name, part in named.items() if part is not None}
    return method(X, **named) if y is None else method(X, y, **named)


def _differ(first, second):
    """Return the differing rows; NaN equals NaN."""
    unequal = first != second
    if first.dtype.kind == second.dtype.kind == "f":
        unequal &= ~(np.isnan(first) & np.isnan(second))
    return unequal.reshape(len(first), -1).any(axis=1)


def _check_removed(pairs, n_first, n_second):
    if abs(n_first - n_second) != 1:
        raise ValueError(
            "data and neighbour must differ by one row under 'add-remove'; got "
            f"{n_first} and {n_second} rows."
        )
    if n_first < n_second:
        pairs = [(b, a) for a, b in pairs]
    shorter = min(n_first, n_second)
    same = np.all([~_differ(a[:shorter], b) for a, b in pairs], axis=0)
    place = shorter if same.all() else int(np.argmin(same))
    if any(_differ(np.delete(a, place, axis=0), b).any() for a, b in pairs):
        raise ValueError(
            "data and neighbour must differ by one row under 'add-remove'; other rows differ too."
        )


# Parameters and claims of an estimator.


def parameters(estimator):
    """Return the parameters of an estimator, nested ones included; none without `get_params`."""
    get_params = getattr(estimator, "get_params", None)
    return {} if get_params is None else get_params(deep=True)


def known(estimator, name):
    """Return a parameter of an estimator, or of the first step that has it, or None."""
    given = parameters(estimator)
    found = [given[name]] if name in given else []
    found += [value for key, value in given.items() if key.endswith(f"__{name}")]
    return next((value for value in found if value is not None), None)


def kind_of(estimator):
    """Return "classifier", "regressor" or "other"."""
    from sklearn.base import is_classifier, is_regressor

    try:
        if is_classifier(estimator):
            return "classifier"
        return "regressor" if is_regressor(estimator) else "other"
    except (AttributeError, TypeError):
        # no tags: an estimator in name only
        kind = getattr(estimator, "_estimator_type", None)
        return kind if kind in ("classifier", "regressor") else "other"


class Claim:
    """Claim: epsilon as a function of delta.

    Parameters
    ----------
    estimator : estimator
        As given, not fitted.
    fitted : estimator or None
        The same, fitted; None if the fit raised.
    """

    def __init__(self, estimator, fitted):
        self._ledger = None
        self.epsilon, self.delta = _promised(estimator)
        total = total_of_fit(fitted)
        #: what is missing from the claim: then nothing is claimed at all
        self.missing = () if total is None else total.uncovered
        if self.missing:
            self.epsilon = None
        elif (spent := _spent(fitted, total)) is not None:
            self.epsilon, self.delta = (float(part) for part in spent)
            self._ledger, _ = ledger_of(fitted, total)

    @property
    def mu(self):
        """Claimed Gaussian-DP parameter; None unless all noise is Gaussian."""
        return gaussian_mu(self._ledger)

    @property
    def unit(self):
        """Protected unit, "row" or "group"; None without a ledger."""
        return getattr(self._ledger, "unit", None)

    def refuse_shared_noise(self, random_state):
        """Raise a ValueError if the fits of an audit have no claim because of a shared seed."""
        if getattr(self._ledger, "shared_noise", ()) and random_state is not None:
            raise ValueError(
                "random_state must be None for this estimator: its parts would share the noise of "
                f"one seed, and claim nothing; got {random_state!r}."
            )

    def at(self, delta):
        """Return the claimed epsilon at a delta, or None."""
        if self.epsilon is None or delta == self.delta:
            return self.epsilon
        if self._ledger is not None:
            return float(self._ledger.epsilon(delta))
        return self.epsilon if delta > self.delta else None


def _promised(estimator):
    """Return (epsilon, delta) of the one step that has a budget; (None, 0) if there is none."""
    given = parameters(estimator) or {
        name: getattr(estimator, name) for name in ("epsilon", "delta") if hasattr(estimator, name)
    }
    found = [k for k in given if k.split("__")[-1] == "epsilon" and given[k] is not None]
    if len(found) != 1:
        return None, 0.0
    epsilon = check_real(
        "epsilon of the estimator", given[found[0]], "0 or more, or infinite", lambda e: e >= 0
    )
    delta = given.get(found[0].removesuffix("epsilon") + "delta")
    if delta is None:
        return epsilon, 0.0
    return epsilon, check_real("delta of the estimator", delta, "in [0, 1)", lambda d: 0 <= d < 1)


def total_of_fit(fitted):
    """Return the total of a fitted estimator or pipeline, or None."""
    try:
        total = None if fitted is None else privacy_spent(fitted)
    except (TypeError, ValueError, AttributeError):
        return None
    if total is None:
        return None
    # a fit of a derived class claims what its ledger says: whether that is so is to be found out
    items = tuple(item for item in total.not_covered if not item.text.endswith(OVERRIDDEN))
    return replace(total, not_covered=items)


def ledger_of(fitted, total):
    """Return the ledger and the delta of a fit with a total; (None, 0) without one."""
    ledger, delta = getattr(fitted, "ledger_", None), 0.0
    if total is not None:
        ledger, delta = total.ledger, total.delta
    found = isinstance(ledger, Record) and bool(ledger.releases)
    return (ledger, float(delta)) if found else (None, 0.0)


def gaussian_mu(ledger):
    """Return the Gaussian-DP parameter of a ledger with Gaussian noise only, or None."""
    if ledger is None or not all(r.price.mu and not r.price.by_chance for r in ledger.releases):
        return None
    return float(ledger.mu)


def _spent(fitted, total):
    """Return the (epsilon, delta) spent by a fitted estimator or pipeline, or None."""
    if total is not None:
        return total.covered
    pair = getattr(fitted, "privacy_spent_", None)
    return pair if isinstance(pair, tuple) and len(pair) == 2 else None


# Checks of the numbers that an audit is given.


def check_real(name, value, allowed, holds):
    """Return a real number as a float.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object
        Given value.
    allowed : str
        Allowed values, in words.
    holds : callable
        Predicate of allowed floats.

    Returns
    -------
    value : float

    Raises
    ------
    ValueError
        If it is not allowed, or not a number.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan
    except OverflowError:  # integers have no end
        number = math.inf
    if math.isnan(number) or not holds(number):
        raise ValueError(f"{name} must be {allowed}; got {value!r}.")
    return number


def check_confidence(confidence):
    """Return a confidence in (0, 1) as a float, or raise ValueError."""
    return check_real("confidence", confidence, "in (0, 1)", lambda c: 0 < c < 1)


def check_claimed_delta(delta):
    """Return a delta in [0, 1) as a float, or raise ValueError."""
    return check_real("delta", delta, "in [0, 1)", lambda d: 0 <= d < 1)


def check_count(name, value, least, most=None):
    """Return an integer as an int.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object
        Given value.
    least : int
        Smallest allowed value.
    most : int, default=None
        Largest allowed value, or None.

    Returns
    -------
    value : int

    Raises
    ------
    ValueError
        If it is not allowed, or not an integer.
    """
    allowed = f"an integer of {least} at least" + ("" if most is None else f" and {most} at most")
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {allowed}; got {value!r}.")
    return int(value)


def check_seed(random_state):
    """Return None or an int of at least 0, or raise ValueError."""
    return None if random_state is None else check_count("random_state", random_state, 0)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private linear regression by powers of the residual."""

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from operator import methodcaller
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from skdp._bisection import MagnitudeCells, TargetDistance, scales_in_cells
from skdp._counted import check_groups, count_rows, counts_of, hidden_count, largest_weight
from skdp._export import TwinMixin, linear_regression
from skdp._gate import Doubts, open_gate
from skdp._losses.clipped import ClippedLoss
from skdp._losses.regression import (
    HuberLoss,
    PinballLoss,
    PowerLoss,
    QuarticLoss,
    SquaredLoss,
)
from skdp._plan import PlanMixin
from skdp._rows.base import leaves_out_zeros, sum_over
from skdp._rows.linear import (
    FARTHEST_UNSEEN,
    StandardColumns,
    counted_rows,
    map_chunk,
    regression_rows,
    unit_rows,
)
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    CallbackSupportMixin,
    Interval,
    StrOptions,
    effective_n_threads,
    fit_context,
    is_number,
    real_targets,
    validate_private_data,
)
from skdp._typing import Adjacency, Budget, MatrixLike, Seed, VectorLike
from skdp.linear_model._classifiers import asked_solver, chosen_solver, say_of_steps
from skdp.linear_model._scales import (
    ClipPlan,
    NormCheck,
    center_and_scale,
    plan_clip,
    plan_scales,
    say_of_far,
    say_of_flat,
    say_of_scales,
    say_of_signal,
    say_of_unit,
)
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.privacy.laws.calibration import gdp_mu
from skdp.solvers.base import Problem, Solver, as_read, check_reading

# Public units of a regression, and what penalties, bounds and clips are in them.


#: rows longer than that many units of length, where the unit is drawn, are scaled down
LONGEST = 6.0
# no number in units leaves this range: beyond it nothing can be told from zero or infinity
_RANGE = (1e-40, 1e40)
_LARGEST_COEF = 1e200


def regression_loss(p):
    """Return the loss that a parameter p names, and its power, or raise a ValueError."""
    kind, number = None, None
    if isinstance(p, tuple):
        kind, number = p if len(p) == 2 and p[0] in ("quantile", "huber") else (None, None)
    elif isinstance(p, str):
        kind, number = ("huber", 1.0) if p == "huber" else (None, None)
    elif is_number(p) and 1 <= p < math.inf:
        kind, number = ("quantile", 0.5) if p == 1 else ("power", float(p))
    if kind == "quantile":
        if not (is_number(number) and 0 < number < 1):
            raise ValueError(f"p must be ('quantile', q) with a number q in (0, 1); got {p!r}.")
        return PinballLoss(float(number)), 1.0
    if kind == "huber":
        if not (is_number(number) and 1e-50 <= number <= 1e50):
            raise ValueError(f"p must be ('huber', t) with a number t in [1e-50, 1e50]; got {p!r}.")
        return HuberLoss(float(number)), 2.0
    if kind != "power":
        raise ValueError(
            "p must be a finite number, at least 1, 'huber', ('huber', threshold) or "
            f"('quantile', q); got {p!r}."
        )
    known = {2.0: SquaredLoss(), 4.0: QuarticLoss()}
    return (known[number] if number in known else PowerLoss(number)), number


def check_target_scale(name, value):
    """Raise a ValueError unless a scale is None or a number that floats can work with."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if value is not None and not (number and 1e-50 <= value <= 1e50):
        raise ValueError(f"{name} must be None or a number in [1e-50, 1e50]; got {value!r}.")


def kept_in_range(value):
    """Return a positive number brought into the range of usable ones."""
    return float(min(max(value, _RANGE[0]), _RANGE[1]))


def kept_exp(logarithm):
    """Return the number with that logarithm, brought into the range of usable ones."""
    return kept_in_range(math.exp(min(max(logarithm, -200.0), 200.0)))


@dataclass(frozen=True)
class Units:
    """Units of a regression; public by the time that they exist.

    Parameters
    ----------
    radius, longest : float, float
        Unit of length of the rows, and the length, in this unit, to which longer ones are
        scaled down.
    center, scale : float, float
        Origin and unit of the targets.
    intercept : float
        Constant feature, in units of length; 0 for none.
    power : float
        The loss of targets and predictions in units is ``scale**-power`` times the loss.
    columns : StandardColumns or None
        Origins and units that the columns of the rows have already; None for those of the data.
    """

    radius: float
    longest: float
    center: float
    scale: float
    intercept: float
    power: float
    columns: Any = None

    @property
    def given(self):
        """Unit of length, and origin and unit of the targets."""
        return self.radius, self.center, self.scale

    def rows(self, rows):
        """Return admitted rows in these units."""
        return unit_rows(rows, self.radius, self.longest, self.intercept, self.center, self.scale)

    def penalty(self, l2):
        """Return the strength of ``l2/2 |coef|^2`` for coefficients in units; 0 for none."""
        if l2 == 0:
            return 0.0
        if not l2 < math.inf:
            raise ValueError(f"l2 must be a finite number; got {l2!r}.")
        # by logarithms: powers of scales may overflow
        log = math.log(l2) + (2 - self.power) * math.log(self.scale) - 2 * math.log(self.radius)
        return kept_exp(log)

    def coef_bound(self, bound):
        """Return the radius of a ball in units; None for none."""
        return None if bound is None else kept_in_range(bound * self.radius / self.scale)

    def gradient(self, norm):
        """Return the norm of a row's gradient in units."""
        log = math.log(norm) - math.log(self.radius) - (self.power - 1) * math.log(self.scale)
        return kept_exp(log)

    def original(self, coef):
        """Return coefficients and intercept in the units of the data."""
        body = coef[:-1] if self.intercept else coef
        with np.errstate(over="ignore", under="ignore"):
            body = body * (self.scale / self.radius)
            shift = self.scale * self.intercept * coef[-1] if self.intercept else 0.0
            if self.columns is not None:
                origin, spans = self.columns.center, self.columns.scale
                body = np.clip(body / spans, -_LARGEST_COEF, _LARGEST_COEF)
                shift -= float(np.clip(body * origin, -_LARGEST_COEF, _LARGEST_COEF).sum())
            body = np.clip(body, -_LARGEST_COEF, _LARGEST_COEF)
        return body, float(np.clip(self.center + shift, -_LARGEST_COEF, _LARGEST_COEF))


# The clipping norm of a regression, from public quantities.


# The clipping norm, in public units, is a multiple of the root of the signal, and lies in a
# range. For powers above 1 it grows without end, so that the bias of clipping vanishes: with
# skewed noise that is worth what it costs. Chosen on data, for other powers by the nearer of these.
_CLIPS = {
    SquaredLoss: (0.05, 0.15, math.inf),
    QuarticLoss: (0.02, 0.05, math.inf),
    HuberLoss: (0.02, 0.2, 2.0),
    PinballLoss: (0.02, 0.2, 2.0),
}


def clip_and_moments(clipping_norm):
    """Return the clipping norm that was asked for, or None, and the moments, or None.

    Parameters
    ----------
    clipping_norm : float, "private", tuple or None
        ``("moments", k, r)`` is an order and a bound.

    Raises
    ------
    ValueError
        If the tuple is of another kind.
    """
    if not isinstance(clipping_norm, tuple):
        return (None if clipping_norm == "private" else clipping_norm), None
    kind, *moments = clipping_norm or (None,)
    usable = kind == "moments" and len(moments) == 2 and all(map(is_number, moments))
    if not (usable and moments[0] > 1 and 1e-50 <= moments[1] <= 1e50):
        raise ValueError(
            "clipping_norm must be None, 'private', a number, or ('moments', k, r) with an order "
            "k greater than 1 and a bound r in [1e-50, 1e50] on (E |gradient|^k)^(1/k); got "
            f"{clipping_norm!r}."
        )
    return None, (float(moments[0]), float(moments[1]))


def default_residual_clip(problem):
    """Return a clipping norm in public units.

    Parameters
    ----------
    problem : Problem
        Public facts. With moments (k, r) the clip is ``r signal^(1/k)``, at which the bias of a
        mean of clipped gradients, at most ``r^k / ((k - 1) clip^(k - 1))``, is about as long as
        its noise, ``clip / signal``.
    """
    if problem.moments is not None:
        order, bound = problem.moments
        return kept_in_range(bound * problem.signal ** (1 / order))
    loss = type(problem.pointwise)
    if loss is PowerLoss:
        loss = QuarticLoss if problem.flat else SquaredLoss
    growth, least, most = _CLIPS[loss]
    return min(max(least, growth * math.sqrt(problem.signal)), most)


def plan_clipped(problem, solver, clip):
    """Return the plan of a solver for the loss of a problem, clipped."""
    problem = replace(problem, loss=ClippedLoss(problem.pointwise, clip, problem.row_norm))
    if solver.mechanism == "gradient":
        problem = replace(problem, clipping_norm=problem.longest_gradient)
    return solver.plan(problem)


# A look at entries far out: whether it pays to extrapolate to them.


# predictions and targets in units count as of that size
LARGEST_IN_UNITS = 1e70
# part of the rows that the noise of the look has as its deviation, as a rule and at most, if a row
# moves a count by 1 or 2; its part of the squared budget at most; and deviations that speak against
# the far entries. With fewer rows a glance has that part of the squared budget, and needs that few
# deviations: entries far out took R^2 far below 0 on one of a hundred tables, and it costs little
_LOOK, _AGAINST = (0.002, 0.004, 0.03), 2.5
_GLANCE, _AGAINST_BY_GLANCE = 0.02, 1.0


@dataclass(frozen=True, eq=False)
class NearerRows:
    """How much nearer to the targets the second of two models is: squares of residuals.

    Parameters
    ----------
    features : tuple of (object, object)
        Maps of rows in units.
    coefs : tuple of (ndarray, ndarray) of shape (n_mapped + 1,)
        Coefficients of mapped rows for targets in units, the last of the constant; released.
    intercept : float
        The constant feature.
    center, scale : float, float
        Origin and unit of the targets; public or released.
    """

    features: tuple[Any, Any]
    coefs: tuple[Any, Any]
    intercept: float
    center: float
    scale: float
    name = "squared residuals of the first of two models minus those of the second"
    size = 1

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities: 1 (zero-out), or 2 (replace-one).

        Proof. A row adds a number that is clipped to [-1, 1], and a null row 0. Both are attained:
        where the predictions z and u of the models differ, by a target far enough on the side of
        one of them, and by one that moves from there to the other side. A group, whose weights add
        up to at most 1, contributes a mean of such numbers, and of 0.
        """
        reach = 1.0 if adjacency == "zero-out" else 2.0
        theorem = f"a row adds at least -1 and at most 1: {reach:.0f} at most"
        return Sensitivity(l1=reach, l2=reach, bound=float(n_rows), theorem=theorem)

    def _predicted(self, chunk, model):
        """Return what one of the models predicts for the rows of a chunk, in units."""
        z = map_chunk(chunk, self.features[model], self.intercept).predict(self.coefs[model])
        return np.clip(np.nan_to_num(z), -LARGEST_IN_UNITS, LARGEST_IN_UNITS)

    def partial(self, chunk):
        """Return the difference in a chunk, an array of shape (1,)."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            target = np.clip(
                (chunk.target - self.center) / self.scale, -LARGEST_IN_UNITS, LARGEST_IN_UNITS
            )
            first, second = (self._predicted(chunk, model) for model in (0, 1))
            # of the squares (t - z)^2 - (t - u)^2
            gain = (second - first) * (2 * target - first - second)
            gain = np.clip(gain, -1.0, 1.0)
        return np.array([np.sum(gain * counted_rows(chunk))])

    def evaluate(self, rows):
        """Return the difference in all rows, an array of shape (1,)."""
        return sum_over(rows, self.partial, self.size)


@dataclass(frozen=True)
class FromOrigin:
    """Columns in units, as `StandardColumns.near` has them.

    Parameters
    ----------
    columns : StandardColumns
        Origins, units and tails.
    """

    columns: Any

    @property
    def size(self):
        """Number of columns."""
        return len(self.columns.center)

    def __call__(self, X):
        """Return rows in units; every operation is elementwise."""
        with np.errstate(over="ignore", under="ignore"):
            return (self.columns.near(X) - self.columns.center) / self.columns.scale


@dataclass(frozen=True)
class TailPlan:
    """A look whether targets follow entries of columns that lie beyond their tails.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter: a hair more than the ledger will hold. 0 for no look.
    few : bool
        Whether rows are too few to be sure: entries are then cut short, and not dropped.
    """

    mu: float = 0.0
    few: bool = False

    def keep(self, curator):
        """Have the rows kept as they are, in the units of the data, for the look."""
        if self.mu:
            curator.map_rows(methodcaller("set_aside"))

    def run(self, curator, units, coef):
        """Return the columns, with entries far out dropped or cut short if that is better.

        Parameters
        ----------
        curator : Curator
            Holds rows made of those that were kept.
        units, coef : Units, ndarray
            Of the fit, and coefficients in units.
        """
        columns = units.columns
        other = replace(columns, **({"farthest": FARTHEST_UNSEEN} if self.few else {"drops": True}))
        d, maps = len(columns.center), (FromOrigin(columns), FromOrigin(other))
        # of columns that are not in units of length, and of a constant of 1
        coef = np.append(coef[:d] / units.radius, units.intercept * coef[d:].sum())
        query = NearerRows(maps, (coef, coef), 1.0, units.center, units.scale)
        curator.map_rows(methodcaller("restored"))
        # tails are kept in the model only where they matter
        nearer = self.is_nearer(curator, query)
        return other if nearer else replace(columns, tail=StandardColumns.tail)

    def is_nearer(self, curator, query):
        """Release a comparison, `NearerRows`; return whether the second model is nearer."""
        (gain,) = curator.release(query, GaussianMechanism(self.mu / (1 + 1e-9)))
        against = _AGAINST_BY_GLANCE if self.few else _AGAINST
        return gain > against * curator.ledger.releases[-1].noise.scale


def plan_tail(scales, epsilon, delta, adjacency):
    """Plan a look at entries beyond the tails of columns.

    Parameters
    ----------
    scales : SearchedScales or ScalesPlan
        How units are found.
    epsilon, delta, adjacency : float, float, {"replace-one", "zero-out"}
        What is promised for the whole fit.

    Returns
    -------
    plan : TailPlan
        With no look where units of columns of dense rows are not found.

    Notes
    -----
    What stands for a missing number in one of a hundred rows speaks against extrapolation by as
    many rows: four deviations of the noise as a rule, and two at least. With fewer rows a glance
    asks whether the same entries are nearer if they are cut to ten units.
    """
    if not scales.mu or not scales.n_columns or scales.is_sparse:
        return TailPlan()
    sure = _price_of_look(scales.n_rows, epsilon, delta, adjacency, *_LOOK)
    return TailPlan(sure or math.sqrt(_GLANCE) * gdp_mu(epsilon, delta), few=not sure)


def _price_of_look(n_rows, epsilon, delta, adjacency, deviation, largest, share):
    """Return the Gaussian-DP parameter of a look, 0 for none, from public facts.

    Parameters
    ----------
    n_rows, epsilon, delta, adjacency : int, float, float, {"replace-one", "zero-out"}
        Number of rows, and what is promised for the whole fit.
    deviation, largest, share : float, float, float
        As those of `_LOOK`.
    """
    moved = (1 if adjacency == "zero-out" else 2) / n_rows
    most = math.sqrt(share) * gdp_mu(epsilon, delta) if delta else 0.0
    return min(moved / deviation, most) if moved <= largest * most else 0.0


# A look at the size of targets, beside a public unit.


# as `_LOOK`; and what sizes of targets, in a unit that is given, are taken to be in between: noise
# grows with a unit, and a smaller one cuts residuals
_UNIT_LOOK, _SIZES = (0.04, 0.08, 0.01), (0.5, 4.0)


@dataclass(frozen=True)
class UnitLook:
    """A look whether a public unit of targets is of their size.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter: a hair more than the ledger will hold. 0 for no look.
    n_rows : int
        Number of rows.
    """

    mu: float
    n_rows: int

    def run(self, curator, scale):
        """Return the unit, brought to about the size that a quarter of the targets exceed."""
        query = MagnitudeCells((TargetDistance(0.0),), np.zeros(1, dtype=np.int64))
        released = curator.release(query, GaussianMechanism(self.mu / (1 + 1e-9)))
        counts, noise = query.by_number(released, curator.ledger.releases[-1].noise.scale)
        found = scales_in_cells(counts, noise, 0.25 * self.n_rows)[0][0] / scale
        # nothing is seen of targets that are nearly all 0
        return scale if math.isnan(found) else scale * (found / np.clip(found, *_SIZES))


# The fit: units, a threshold, then any solver.


# constant feature in public units: the origin of targets is a noisy median, and where noise leaves
# few short steps, a shorter one leaves their mean behind
_INTERCEPT = 0.2
#: where the coefficient of it is expected; targets of unit size need coefficients of about that
#: size for every feature if rows of unit length have it
EXPECTED_SHIFT = 3.0


@dataclass(frozen=True)
class FirstReleases:
    """What a regression releases before its steps, and what is left; public facts only.

    Parameters
    ----------
    scales : SearchedScales, ScalesPlan or CheckedScales
        Of rows and targets.
    tail, look : TailPlan, UnitLook
        Looks at entries far out, and at the size of targets.
    clipping : ClipPlan
        Of the threshold.
    problem : Problem
        With what all of these cost, and without its clip.
    check : NormCheck or None, default=None
        Whether columns without units are alike, where that is asked last.
    """

    scales: Any
    tail: TailPlan
    look: UnitLook
    clipping: ClipPlan
    problem: Problem
    check: NormCheck | None = None

    @property
    def n_releases(self):
        """Number of releases, at most."""
        seen = bool(self.tail.mu) + bool(self.look.mu) + (self.check is not None)
        return self.scales.n_releases + len(self.clipping.prices) + seen


class PrivateLinearRegressor(
    TwinMixin, PlanMixin, CallbackSupportMixin, RegressorMixin, BaseEstimator
):
    """Base of private linear regression: parameters, and the way through the gate."""

    ledger_: Ledger
    privacy_spent_: tuple[float, float]
    feature_center_: NDArray[Any]
    feature_scale_: NDArray[Any]
    _found: StandardColumns | None
    # of sparse rows
    _formats: Any = "csr"

    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        **{
            name: SHARED_CONSTRAINTS[name]
            for name in ("epsilon", "delta", "adjacency", "budget", "random_state")
        },
        "p": [Interval(Real, 1, None, closed="left"), StrOptions({"huber"}), tuple],
        # `asked_solver` says what fits
        "solver": "no_validation",
        "data_norm": SCALE_OR_NONE,
        "target_scale": SCALE_OR_NONE,
        "l2": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "coef_bound": SCALE_OR_NONE,
        "clipping_norm": [*SCALE_OR_NONE, StrOptions({"private"}), tuple],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "max_weight": SCALE_OR_NONE,
        "verbose": ["verbose"],
    }
    #: the solver says what is released
    mechanism = "auto"
    #: whether predictions grow with columns as far as they go
    _extrapolates = True

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: MatrixLike,
        y: VectorLike,
        *,
        groups: VectorLike | None = None,
        sample_weight: VectorLike | None = None,
    ) -> Self:
        """Fit the model within the budget.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowStream, dask array} of shape (n_samples, n_features)
            Private rows, of any length. Streams of `skdp.io`, memory maps from 256 MiB on and
            collections of dask are read chunk by chunk, with the same result; not by solvers
            that need all rows in memory, which say so.
        y : {array-like, RowStream, dask array} of shape (n_samples,)
            Private targets, of any size.
        groups : {array-like, RowStream, dask array} of shape (n_samples,), default=None
            Whose row it is: numbers, or text. All rows of a group are protected together, whatever
            their number, and count as one row does: each as one over their number. The number of
            groups is public. For solvers that release sums over all rows, or minimisers. Beside a
            stream also one of identifiers, or an array. None protects rows. Cross-validators pass
            groups after ``sklearn.set_config(enable_metadata_routing=True)``; after
            ``set_fit_request(groups=True)`` it is an error if none come. See :ref:`groups`.
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of the rows, finite and not negative; only with `max_weight`. Weights
            beyond that count as that. A twentieth of epsilon goes to the noisy total of the
            weights, which stands in plans for the number of rows. For the solvers that `groups`
            are for. See :ref:`sample_weight`.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable, or if mechanism, solver and loss do
            not go together; nothing has been released then. The message names no data
            value, but that it was raised may depend on the data.
        BudgetError
            If a shared budget has less left, or protects groups and there are none.
        """
        check_groups(self, groups)
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        asked = asked_solver(self.solver)
        X, y = validate_private_data(
            self,
            X,
            y,
            streams=True,
            accept_sparse=self._formats,
            order="C",
            y_numeric=True,
            multi_output=False,
        )
        y = real_targets(y)
        n_features = X.shape[1]
        scaling = getattr(asked or Solver(), "intercept_scaling", None)
        shape = n_features, scaling, leaves_out_zeros(X)

        hidden = hidden_count(self)

        def planned(n_rows, unit="row"):
            first = self._prepared(n_rows, *shape)
            bound = 0 if hidden is None else hidden.most
            problem = replace(first.problem, unit=unit, bound_on_rows=bound)
            solver = chosen_solver(self, asked, problem)
            plan = self._planned(problem, solver, self._units(scaling, first.scales), None)
            return replace(first, problem=problem), solver, plan

        (n_rows, unit), whose = count_rows(groups, X, hidden, sample_weight, planned)
        first, solver, plan = planned(n_rows, unit)
        scales, tail, look = first.scales, first.tail, first.look
        check_reading(solver, X)
        doubts = Doubts(self)
        say_of_steps(doubts, self, solver)
        if not leaves_out_zeros(X):
            searched = self._unknown() if plan.delta else ()
            n_coefs = n_features + self.fit_intercept if searched else first.problem.size
            facts = n_rows, self.epsilon, plan.delta, self.adjacency, n_coefs
            say_of_signal(doubts, *facts, unit, searched)
        with open_gate(
            self,
            lambda: regression_rows(
                *as_read(solver, plan, X, y), effective_n_threads(), counts_of(whose)
            ),
            n_rows=n_rows,
            unit=unit,
            delta=plan.delta,
            mu=plan.total_mu,
            n_releases=self._n_releases(plan) + first.n_releases,
            doubts=doubts,
        ) as curator:
            given = self._units(scaling, scales).given
            tail.keep(curator)
            found = scales.run(curator, *given)
            drawn, columns = (found.radius, found.center, found.scale), found.columns
            most = scales.mu > 0 and 2 * scales.mu**2 > gdp_mu(self.epsilon, self.delta) ** 2
            guessed = {"missing": not scales.n_releases, "vague": found.vague, "most": most}
            say_of_scales(doubts, self._unknown(), n_rows, self.epsilon, **guessed)
            far = drawn[0] if self.data_norm is None else 1.0
            far_target = drawn[2] if self.target_scale is None else 1.0
            say_of_far(doubts, far, far_target, columns)
            say_of_flat(doubts, scales, columns)
            if look.mu:
                drawn = *drawn[:2], look.run(curator, drawn[2])
                say_of_unit(doubts, "target_scale", self.target_scale, drawn[2:])
            units = replace(self._units(scaling, scales, *drawn), columns=columns)
            units, problem, columns = self._bent(curator, solver, first, units)
            curator.map_rows(units.rows)
            clip = first.clipping.run(curator, problem.pointwise, None)
            plan = self._planned(problem, solver, units, clip)
            # how long rows are in clipping norms is for the link of classes
            coef, _, _ = plan.solution(curator)
            columns = tail.run(curator, units, coef) if tail.mu else columns
        self.coef_, self.intercept_ = units.original(coef)
        self.data_norm_, self.target_center_, self.target_scale_ = units.given
        self._found = columns
        self.feature_center_, self.feature_scale_ = center_and_scale(columns, n_features)
        self.n_iter_ = plan.n_iter
        return self

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Return the predicted targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        predicted : ndarray of shape (n_samples,)
            ``X @ coef_ + intercept_``. Where columns were standardised, entries further than 100
            units from their origin, or 10 where nothing was seen, count as that far, as in `fit`.
            Where `fit` has seen that targets do not follow entries far out, those beyond what a
            column usually has, at least 8 units, count as the origin: 999,999 for "missing". With
            few rows they count as 10 units away.

        Raises
        ------
        ValueError, TypeError
            If X has other columns than the rows of `fit`, is not numeric or not finite. Fill in for
            NaN what was filled in for `fit`, a public constant.
        """
        check_is_fitted(self)
        X = validate_private_data(self, X, accept_sparse="csr", reset=False)
        if self._found is not None:
            X = self._found.near(X)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return safe_sparse_dot(X, self.coef_) + self.intercept_

    def _twin(self):
        return linear_regression(self, self._found)

    def _unknown(self):
        """Return the parameters that could have given the scales that are searched."""
        given = {"data_norm": self.data_norm, "target_scale": self.target_scale}
        return [name for name, value in given.items() if value is None]

    def _n_releases(self, plan):
        """Return how many releases there are besides the first ones."""
        return plan.n_releases

    def _bent(self, curator, solver, first, units):
        """Map rows to other features by what was found; return units, problem and columns.

        Parameters
        ----------
        curator : Curator
            Holds the rows, standardised if columns were found.
        solver, first : Solver, FirstReleases
            Of the fit. The number of features of its problem may be that of the other ones.
        units : Units
            That were found.
        """
        return units, first.problem, units.columns

    def _penalty(self):
        """Return the penalty where the largest weight is the unit of weights."""
        return self.l2 / (largest_weight(self) or 1.0)

    def _units(self, scaling, scales, radius=None, center=0.0, scale=None):
        """Return the units for scales that were drawn; those given, or a guess, for None."""
        # a public norm is for where none is found: it is not one of columns in units of their own
        norm = None if scales.with_radius else self.data_norm
        given = norm is not None
        scaling = _INTERCEPT if scaling is None else scaling
        return Units(
            # as if features had been standardised
            radius=float(radius or norm or math.sqrt(self.n_features_in_)),
            longest=1.0 if given else LONGEST,
            center=center,
            scale=float(scale or self.target_scale or 1.0),
            intercept=float(scaling) if self.fit_intercept else 0.0,
            power=regression_loss(self.p)[1],
        )

    def _scales(self, n_rows, n_features, is_sparse):
        """Return the plan of what is found about rows and targets."""
        _, moments = clip_and_moments(self.clipping_norm)
        # Penalties, bounds and moments of gradients are for the columns as they are. Without them a
        # norm changes nothing where units can be found: it says little of all columns but one.
        alone = self.coef_bound is None and self.l2 == 0 and moments is None
        # One for CSR rows is kept: they may be text, whose columns are alike.
        found = self.delta > 0 and alone and not (is_sparse and self.data_norm is not None)
        return plan_scales(
            self.epsilon,
            self.delta,
            n_rows=n_rows,
            adjacency=self.adjacency,
            with_radius=found or self.data_norm is None,
            with_scale=self.target_scale is None,
            with_center=self.fit_intercept,
            n_columns=n_features if found else 0,
            is_sparse=is_sparse,
        )

    def _look(self, n_rows):
        """Return the plan of a look at the size of targets: for a given unit, and the default."""
        # penalties, bounds and clips are in that unit
        default = self.coef_bound is None and self.l2 == 0 and self.clipping_norm is None
        default &= self.solver == "auto" and is_number(self.p)
        if not default or self.target_scale is None:
            return UnitLook(0.0, n_rows)
        facts = n_rows, self.epsilon, self.delta, self.adjacency
        return UnitLook(_price_of_look(*facts, *_UNIT_LOOK), n_rows)

    def _prepared(self, n_rows, n_features, scaling, is_sparse=False):
        """Return what is released first, and the problem without its clip."""
        loss, _ = regression_loss(self.p)
        check_target_scale("data_norm", self.data_norm)
        check_target_scale("target_scale", self.target_scale)
        scales, tail = self._scales(n_rows, n_features, is_sparse), TailPlan()
        if self._extrapolates:
            tail = plan_tail(scales, self.epsilon, self.delta, self.adjacency)
        scales = replace(scales, with_tails=True) if tail.mu and not tail.few else scales
        look = self._look(n_rows)
        units = self._units(scaling, scales)
        problem = Problem(
            n_rows=n_rows,
            n_features=n_features,
            loss=ClippedLoss(loss, 1.0, math.hypot(units.longest, units.intercept)),
            intercept=units.intercept,
            longest_row=units.longest,
            is_sparse=is_sparse,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            penalty=units.penalty(self._penalty()),
            radius=units.coef_bound(self.coef_bound),
            max_iter=self.max_iter,
            scale_prices=scales.prices,
            scale_mu=math.hypot(scales.mu, tail.mu, look.mu),
            expected_radius=math.hypot(math.sqrt(n_features), EXPECTED_SHIFT),
            is_made_up=self._is_made_up,
        )
        clipping = plan_clip(
            self.epsilon if self.clipping_norm == "private" else 0.0,
            n_rows=n_rows,
            tail=n_rows / problem.signal,
        )
        problem = replace(problem, scale_prices=(*scales.prices, *clipping.prices))
        return FirstReleases(scales, tail, look, clipping, problem)

    def _planned(self, problem, solver, units, clip):
        """Return the plan of a solver in some units, with a clip that was drawn, or None."""
        wanted, moments = clip_and_moments(self.clipping_norm)
        if moments is not None:
            moments = moments[0], units.gradient(moments[1])
        problem = replace(
            problem,
            penalty=units.penalty(self._penalty()),
            radius=units.coef_bound(self.coef_bound),
            moments=moments,
        )
        clip = float(clip or wanted or default_residual_clip(problem))
        return plan_clipped(problem, solver, clip)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class DPLpRegressor(PrivateLinearRegressor):
    """Differentially private linear regression that needs no bounds on the data.

    Minimises ``sum_i |y_i - x_i coef - intercept|^p / p + l2 / 2 |coef|^2`` within a privacy
    budget. Rows and targets need no bounds: their scales, and those of the columns, are released
    privately, very long rows are scaled down, and gradients are clipped.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0 and finite.
    delta : float, default=1e-6
        Privacy budget, in [0, 1); well below 1 / n_samples. 0 means pure privacy, which solver
        "output" supports.
    p : float, "huber" or tuple, default=2
        Power of the residual, at least 1: 2 for least squares, 1 for least absolute deviations;
        between these it is a parabola up to a hundredth of `target_scale_`. "huber" is 2 up to a
        threshold, and 1 beyond: ``("huber", t)`` has t, in units of `target_scale_`, for 1.
        ``("quantile", q)``, q in (0, 1), fits that quantile: the loss is twice the pinball loss.
    solver : str or Solver, default="auto"
        An object of :mod:`skdp.solvers` or :mod:`skdp.papers`, whose parameters are documented
        there, or the word for one with default parameters. "preconditioned", "accelerated", "gd"
        and "sgd" release noisy clipped gradients, one a step (Gaussian noise); "output" and
        "phased" the minimiser of a clipped and penalised loss, plus noise (Gaussian, or K-norm
        noise at delta 0). "auto" is one of the first by public quantities, and at delta 0 "output";
        never one of `skdp.papers`.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out", half the noise), or in the presence of a row ("add-remove", where the number
        of rows is released first; otherwise it is public). See :ref:`adjacency`.
    data_norm : float, default=None
        Public unit of length R of the rows, in [1e-50, 1e50]; longer rows are scaled down to it
        together with their targets. None standardises the columns if there are enough rows and no
        `l2`, `coef_bound` or moment is given (dense rows also around origins far from 0), finds an
        R that about a quarter of the rows exceed, and scales down rows longer than 6 R. A number
        is used only where columns are not standardised: with fewer rows, CSR rows, and at delta 0.
    target_scale : float, default=None
        Public unit B of the targets, in [1e-50, 1e50], around 0: not a bound, but a usual size,
        which about a quarter of the targets exceed. With the default solver, a number for `p`, and
        neither penalty, bound nor clip, at most .01 of the squared budget looks at the size of the
        targets if rows are enough for that, and a unit more than twice too large, or four times too
        small, is brought near it, with a warning. None finds the median privately (with
        `fit_intercept`), and a distance from it that about a quarter exceed.
    l2 : float, default=0.0
        Strength of the penalty, not negative; for ``p=2`` it is the `alpha` of scikit-learn's
        `Ridge`. "output" and "phased" need a penalty for privacy, and choose one if it is 0. They
        must penalise the intercept, the others do not.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is inside the guarantee.
    coef_bound : float, default=None
        Radius of a ball for the coefficients. The intercept counts as ``(intercept_ -
        target_center_) / (intercept_scaling * R)``, with the `intercept_scaling` of the solver
        (default 0.2). None: no constraint.
    clipping_norm : float, "private" or tuple, default=None
        Bound on the norm of the gradient of a row, for rows in units of R and targets in units of
        B. Beyond it the loss is linear. "private" draws it at a tenth of epsilon, such that few
        gradients at zero coefficients are longer, or leaves it as for None if there are too few
        rows. ``("moments", k, r)``, with an order k greater than 1 and a public bound r, in the
        units of the data, on ``(E |gradient|^k)^(1/k)``, is the norm that balances bias and noise
        [1]_. None takes a public number. For powers above 1 that grows with the signal, and the
        bias that clipping makes with skewed noise vanishes; for ``p=1`` and "huber" it stays
        short.
    max_iter : int, default=None
        Number of steps, of solvers that take steps; all of them are made. None chooses it from
        public quantities.
    max_weight : float, default=None
        Public bound on weights of rows, in [1e-50, 1e50]; larger weights are clipped to it. None:
        `fit` takes no weights (:ref:`sample_weight`).
    budget : PrivacyBudget, default=None
        A budget shared by several fits. Each fit is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise reproducible, voids
        the guarantee towards anybody who knows it, and warns.
    verbose : int, default=0
        1 prints a line with the plan and its price, and a progress bar if the fit takes seconds;
        public numbers only.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
        Coefficients, and the intercept, 0.0 without one.
    data_norm_, target_scale_, target_center_ : float
        R, B and the origin of the targets, given or released. If there are too few rows (about 180
        / epsilon at delta 1e-6, 700 / epsilon at delta 0), R is the square root of the number of
        features, as for standardised ones, B is 1, the origin 0, and the ledger has no search of
        scales.
    feature_center_, feature_scale_ : ndarray of shape (n_features,)
        Released origins and units of the columns, otherwise zeros and ones; R is in these units.
        Columns without a released unit of their own have the unit that they show together, or the
        common one if nearly all columns share one; otherwise 1.
    n_iter_ : int
        Number of steps or phases, a public number.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent; never more than granted.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    Warns
    -----
    NoisyEstimateWarning
        If scales cannot be found (then give `data_norm` and `target_scale`), or are beyond 1e50.

    See Also
    --------
    DPLogisticRegression : Classification.
    DPQuantile : Private quantiles, without features.
    sklearn.linear_model.Ridge : Without privacy.
    sklearn.linear_model.QuantileRegressor : Without privacy.

    Notes
    -----
    Privacy. One row and its target are protected, at (epsilon, delta) and the chosen adjacency.
    Public: the parameters, the number of rows (a secret under add-remove), and the number and names
    of features. Scales follow from noisy counts of rows beyond thresholds and in cells, for at most
    a fifth of the squared Gaussian-DP budget, or up to .85 with few rows; at delta 0, and for a
    private threshold, from draws by ranks. Then every row and its target are scaled, and the
    derivative of the loss is clipped at ``clipping_norm / |row|``: one row moves a sum of gradients
    by at most one or two clipping norms. The rest is as in `DPLogisticRegression`. With many rows,
    .03 of the squared budget at most tests whether targets follow entries far out; see `predict`.

    A small `clipping_norm` makes the fit robust: for ``p=2`` it then estimates something between
    the conditional mean and median, which differ if noise is skewed. To estimate the mean, raise
    `clipping_norm` with the number of rows, or give moments.

    References
    ----------
    .. [1] D. Xu, M. Ding, Z. Xiang, J. Xu and D. Wang, "Beyond ordinary Lipschitz
       constraints: differentially private stochastic optimization with Tsybakov noise
       condition", 2025, Algorithms 3 to 7 and Theorem 6, with corrections.
    .. [2] F. McSherry, K. Talwar, "Mechanism design via differential privacy", FOCS 2007, Thm. 6.
    .. [3] J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", JRSS B, 2022, Corollary 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLpRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_t(3, size=(20000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + 10 + rng.standard_t(3, size=20000)
    >>> model = DPLpRegressor(epsilon=1.0, random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1.0, -2.0, 0.5]).max() < 0.2)
    True
    >>> model.privacy_spent_[0] <= 1.0
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        p: float | Literal["huber"] | tuple[str, float] = 2,
        solver: str | Solver = "auto",
        adjacency: Adjacency = "replace-one",
        data_norm: float | None = None,
        target_scale: float | None = None,
        l2: float = 0.0,
        fit_intercept: bool = True,
        coef_bound: float | None = None,
        clipping_norm: float | Literal["private"] | tuple[str, float, float] | None = None,
        max_iter: int | None = None,
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.p = p
        self.solver = solver
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.target_scale = target_scale
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.coef_bound = coef_bound
        self.clipping_norm = clipping_norm
        self.max_iter = max_iter
        self.max_weight = max_weight
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

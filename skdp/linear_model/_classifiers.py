# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Linear classifiers: the choice of a solver, the way through the gate, two models.

`PrivateLinearClassifier` has the one `fit`; `DPLogisticRegression` and `DPHingeSVM` state their
loss, their parameters and their promise. `check_pair` is the one place that refuses pairs of a
model and a solver, from what the solver declares.
"""

import math
from dataclasses import replace
from functools import partial
from inspect import signature
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit
from sklearn.base import BaseEstimator, clone, is_regressor

import skdp.solvers as solvers
from skdp._counted import check_groups, count_rows, counts_of, hidden_count, largest_weight
from skdp._export import linear_classifier
from skdp._gate import Doubts, open_gate
from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp._plan import PlanMixin
from skdp._rows.base import L2Ball, check_radius, leaves_out_zeros
from skdp._rows.linear import EveryRow, LinearRows, readmitted, top_entries
from skdp._rows.streams import over_rows
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    CallbackSupportMixin,
    Interval,
    LinearClassifierMixin,
    SoftmaxClassifierMixin,
    SparseCoefMixin,
    StrOptions,
    centered_classes,
    effective_n_threads,
    fit_context,
    penalty_of,
    resolve_classes,
    validate_private_data,
)
from skdp._typing import (
    Adjacency,
    ArrayLike,
    Budget,
    ClassifierMechanism,
    MatrixLike,
    Seed,
    VectorLike,
)
from skdp.linear_model._class_weight import class_weights, shifts
from skdp.linear_model._scales import (
    center_and_scale,
    plan_norm_check,
    plan_scales,
    plan_unit_check,
    say_of_far,
    say_of_flat,
    say_of_scales,
    say_of_signal,
    say_of_unlike,
)
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.books.texts import a_kind
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.solvers.base import (
    MOST_K_NORM,
    Problem,
    Solver,
    as_read,
    check_reading,
    default_ridge,
    margin_noise,
)
from skdp.solvers.gradient import DEFAULT_INTERCEPT, HEARD
from skdp.solvers.link import LINK_SHARE, unclipped_log_proba, unclipped_odds
from skdp.solvers.objective import default_objective_ridge

# The solver of a fit: what was asked for, the choice of "auto", and pairs that do not fit.
#
# A solver declares what it needs (`skdp.solvers.Solver`); `check_pair` is the one place that
# compares this with a model. "auto" follows from public numbers, and chooses from `skdp.solvers`
# only.


#: the solvers that have a word, by their words
SOLVERS = {
    kind.word: kind for kind in (getattr(solvers, name) for name in solvers.__all__) if kind.word
}
#: what may be released
MECHANISMS = ("gradient", "objective", "output", "exponential")

# signal to noise from which second moments are worth their price: of classes without a norm, and of
# a regression; and from which the hinge, which cannot have them, is better off with accelerated
# steps
_HEARD_UNSCALED, HEARD_TARGETS, _CLEAR = 1.5, 10.0, 50.0


def asked_solver(solver):
    """Return the solver that was asked for, its parameters checked; None for "auto".

    Parameters
    ----------
    solver : str or Solver
        As given by the user.

    Returns
    -------
    solver : Solver or None
        A copy, whose numbers are those of Python.

    Raises
    ------
    TypeError, ValueError
        If it is not a solver, or a parameter of it is out of range.
    """
    if isinstance(solver, str):
        if solver == "auto":
            return None
        if solver not in SOLVERS:
            raise ValueError(f"{_OPTIONS}; got {solver!r}.{_hint(solver)}")
        return SOLVERS[solver]()
    if isinstance(solver, type):
        here = f", for example {_call(solver)}" if issubclass(solver, Solver) else ""
        raise TypeError(f"{_OPTIONS}, that is, an instance{here}; got the class {solver.__name__}.")
    if not isinstance(solver, Solver):
        raise TypeError(f"{_OPTIONS}; got {a_kind(solver)}.")
    asked = clone(solver)
    asked._validate_params()
    if asked.steps_of is not asked:
        asked_solver(asked.steps_of)
    numbers = {
        name: float(value) if isinstance(value, np.floating) else int(value)
        for name, value in asked.get_params().items()
        if isinstance(value, np.floating | np.integer)
    }
    return asked.set_params(**numbers)


def chosen_solver(model, asked, problem):
    """Return the solver of a fit.

    Parameters
    ----------
    model : estimator
        Whose fit it is.
    asked : Solver or None
        As `asked_solver` returned it.
    problem : Problem
        Public facts. The choice depends on the budget, the loss, and the numbers of rows and
        coefficients, and on nothing else.

    Returns
    -------
    solver : Solver
        That was asked for, or that "auto" stands for.

    Raises
    ------
    ValueError
        If the model and the solver do not go together.
    """
    mechanism = model.mechanism
    if mechanism not in ("auto", *MECHANISMS):
        raise ValueError(f"mechanism must be 'auto' or one of {MECHANISMS}; got {mechanism!r}.")
    if asked is None:
        released = mechanism
        if mechanism == "auto":
            released = _best_mechanism(model, problem)
        asked = SOLVERS[_best_solver(model, released, problem)]()
    check_pair(model, asked, problem)
    return asked


def check_pair(model, solver, problem):
    """Raise a ValueError unless a model and a solver go together.

    Parameters
    ----------
    model, solver, problem : estimator, Solver, Problem
        Whose fit it is; the solver; public facts.
    """
    misfit = next(_misfits(model, model.mechanism, solver, problem), None)
    if misfit is None:
        return
    for mechanism, where in ((model.mechanism, ""), ("auto", " with another mechanism")):
        fitting = [word for word in SOLVERS if _serves(model, mechanism, word, problem)]
        if fitting:
            raise ValueError(
                f"{misfit} The solvers that fit{where} are {', '.join(map(repr, fitting))}."
            )
    raise ValueError(f"{misfit} No solver of default parameters fits the rest of this model.")


def _misfits(model, mechanism, solver, problem):
    """Yield what a model has that a solver cannot do with."""
    if solver.steps_of is not solver:
        yield from _misfits(model, mechanism, solver.steps_of, problem)
    name = _call(type(solver))
    regression = is_regressor(model)
    if ("regression" if regression else "classification") not in solver.tasks:
        yield f"solver={name} is not for {'regression' if regression else 'classification'}."
    if mechanism not in ("auto", solver.mechanism):
        yield (
            f"solver={name} does not belong to mechanism={mechanism!r}: it has "
            f"mechanism={solver.mechanism!r}."
        )
    if solver.needs_delta and problem.delta == 0:
        yield f"delta must be greater than 0 for {name}, {solver.needs_delta}; got 0."
    if solver.needs_second_derivative and math.isinf(problem.loss.smoothness):
        yield (
            f"{name} needs a loss with a second derivative, which the hinge does not have: "
            f"{solver.needs_second_derivative}. Set smoothing to a positive number for the "
            "smoothed hinge."
        )
    if solver.needs_coef_bound and problem.radius is None:
        yield f"coef_bound must be a number for {name}, {solver.needs_coef_bound}; got None."
    if problem.size > solver.most_coefs:
        yield (
            f"{name} is for at most {solver.most_coefs} coefficients, intercepts included; this "
            f"problem has {problem.size}.{solver.beyond_most_coefs}"
        )
    for parameter, why in solver.unused.items():
        if parameter == "max_iter" or not hasattr(model, parameter):
            continue
        flat = signature(type(model)).parameters
        if parameter in flat and getattr(model, parameter) != flat[parameter].default:
            yield (
                f"{parameter} must be {flat[parameter].default!r} with {name}: {why}; got "
                f"{getattr(model, parameter)!r}."
            )
    if problem.unit == "group" and not solver.takes_groups:
        yield (
            f"groups must be None with {name}: only what rests on sums over all rows can protect "
            "all rows of a group; got groups."
        )
    hidden = hidden_count(model)
    if hidden is not None and not solver.takes_groups:
        what = "adjacency must be 'replace-one' or 'zero-out'"
        yield (
            f"{'sample_weight must be None' if hidden.max_weight else what} with {name}: only what "
            "rests on sums over all rows can do with rows that count less, or hide their number."
        )
    if model.data_norm is None and "regression" not in solver.tasks:
        yield (
            f"data_norm must be a number for {name}: what it releases rests on a public bound on "
            "the length of a row; got None."
        )
    if regression:
        yield from _misfits_of_regression(solver, name)


def say_of_steps(doubts, model, solver):
    """Take note of a number of steps that a solver does not take.

    It changes nothing that is promised, and cross-validators set it for all solvers alike.

    Parameters
    ----------
    doubts, model, solver : Doubts, estimator, Solver
        Takes the note; whose fit it is; its solver.
    """
    steps = solver.steps_of
    if model.max_iter is not None and "max_iter" in steps.unused:
        doubts.promise(
            f"max_iter={model.max_iter} has no effect with {_call(type(steps))}: "
            f"{steps.unused['max_iter']}."
        )


def _misfits_of_regression(solver, name):
    if getattr(solver, "clipping_norm", None) is not None:
        yield (
            f"clipping_norm of {name} must be None for regression, whose estimator has a "
            f"parameter of that name; got {solver.clipping_norm!r}."
        )
    usual = type(solver)()
    for parameter in solver.only_classification:
        value = getattr(solver, parameter)
        if value != getattr(usual, parameter):
            yield f"{parameter}={value!r} of {name} is not for regression."


def _best_mechanism(model, problem):
    if problem.delta > 0:
        return "gradient"
    if not _serves(model, "auto", "objective", problem):
        return "output"
    # Laplace noise on the minimiser of sparse rows, or a linear term with K-norm noise
    ridge = problem.penalty or default_ridge(problem)
    other = problem.penalty or default_objective_ridge(problem)
    laplace = margin_noise(problem)(ridge)[0] == "laplace"
    weaker = ridge <= other or problem.size > MOST_K_NORM
    return "output" if laplace and weaker else "objective"


def _best_solver(model, mechanism, problem):
    # a fourth power has no curvature where it is fitted, and a step for a unit of it is too short
    served = mechanism == "gradient" and not problem.flat
    if served and _serves(model, mechanism, "preconditioned", problem):
        unscaled = HEARD if model.data_norm is not None else _HEARD_UNSCALED
        heard = HEARD_TARGETS if is_regressor(model) else unscaled
        # the squares of sparse rows are cheap, and frequent columns stand out from the noise
        if problem.is_sparse and isinstance(problem.loss, LogisticLoss):
            heard = 0.0
        if problem.ratio >= heard:
            return "preconditioned"
    if mechanism == "gradient" and problem.delta and math.isinf(problem.loss.smoothness):
        # the rule for kinks is better while noise dominates, by experiments; but it counts
        # the noise of all coefficients, and a row of many features has a part of it only
        wide = problem.n_features > problem.n_rows
        return "gd" if problem.signal < _CLEAR and not wide else "accelerated"
    if mechanism == "exponential":
        many = problem.size > SOLVERS["exact"].most_coefs
        return "frank-wolfe" if many and _serves(model, "auto", "frank-wolfe", problem) else "exact"
    return "accelerated" if mechanism == "gradient" else mechanism


def _serves(model, mechanism, word, problem):
    """Return whether a solver of default parameters goes with a model of a mechanism."""
    return not any(_misfits(model, mechanism, SOLVERS[word](), problem))


def _call(kind):
    """Return how an object of a solver class is made, in words."""
    face = kind.__module__.split(".")[1] + "." if kind.__module__.startswith("skdp.") else ""
    return f"{face}{kind.__name__}()"


def _hint(word):
    """Return how to write what is no word of a solver, if it names an algorithm."""
    # here and not above: a fit without an error needs none of them
    import skdp.papers as papers

    named = word.replace("-", "").replace("_", "").lower()
    for name in papers.__all__:
        kind = getattr(papers, name)
        if named in {name.lower(), *_ALSO_CALLED.get(name, ())} and isinstance(kind, type):
            return f" It is an object: solver=skdp.papers.{name}()."
    if named in ("newton", "lbfgs", "cvxpy"):
        return f" It is a minimizer: solver=skdp.solvers.Output(minimizer={named!r})" + (
            f", or skdp.solvers.Objective(minimizer={named!r})." if named != "cvxpy" else "."
        )
    return ""


_ALSO_CALLED = {"FiniteNet": ("net",), "FeaturePreprocessing": ("dpsgdf",)}
_OPTIONS = (
    f"solver must be 'auto', one of {list(SOLVERS)}, or an object of skdp.solvers or skdp.papers"
)


def original_coef(coef, intercept, data_norm, columns):
    """Map coefficients and intercepts for rows in units to those for the rows as they are.

    Parameters
    ----------
    coef, intercept : ndarray of shape (n_outputs, n_features), ndarray of shape (n_outputs,)
        For rows ``(x - origin) / scale / data_norm``.
    data_norm : float
        Public by now.
    columns : StandardColumns or None
        Origins and scales of the columns, if they were found.

    Returns
    -------
    coef, intercept : ndarray of shape (n_outputs, n_features), ndarray of shape (n_outputs,)
        Such that ``x @ coef.T + intercept`` is the score of the row x.
    """
    if columns is None:
        return coef / data_norm, intercept
    body = coef / data_norm / columns.scale
    return body, intercept - body @ columns.center


class PrivateLinearClassifier(
    PlanMixin, CallbackSupportMixin, LinearClassifierMixin, SparseCoefMixin, BaseEstimator
):
    """Base of the private linear classifiers; a subclass states its loss."""

    ledger_: Ledger
    privacy_spent_: tuple[float, float]
    feature_center_: NDArray[Any]
    feature_scale_: NDArray[Any]
    class_weight_: NDArray[Any]
    #: length of a typical row in clipping norms, if the solver knows it, for probabilities
    _link: float | None = None
    #: what weights of classes have added to the intercepts
    _shift: NDArray[Any] | None = None
    # of sparse rows
    _formats: Any = "csr"
    #: whether origins of all columns are worth more than a look around 0
    _medians_first = False

    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "mechanism": [StrOptions({"auto", *MECHANISMS})],
        # `asked_solver` says what fits
        "solver": "no_validation",
        "data_norm": [*SHARED_CONSTRAINTS["data_norm"], None],
        "classes": ["array-like", None],
        "C": [Interval(Real, 0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "coef_bound": SCALE_OR_NONE,
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "max_weight": SCALE_OR_NONE,
        "verbose": ["verbose"],
    }

    def _loss(self, n_classes):
        """Return the loss for a number of classes."""
        raise NotImplementedError

    def _steps(self, n_steps):
        """Return a number of steps as the model's twin in scikit-learn has it."""
        return n_steps

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
            Private rows. Rows longer than `data_norm_` are scaled down to it. Streams of
            `skdp.io`, memory maps from 256 MiB on and collections of dask are read chunk by
            chunk, with the same result; not by solvers that need all rows in memory, which
            say so.
        y : {array-like, RowStream, dask array} of shape (n_samples,)
            Private labels.
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
            not go together. The message names no data value, but that it was raised may
            depend on the data.
        BudgetError
            If a shared budget has less left, or protects groups and there are none.
        """
        check_groups(self, groups)
        # 1. price, before any data
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        asked = asked_solver(self.solver)
        if self.data_norm is not None:
            check_radius(self.data_norm)
        # 2. validate
        X, y = validate_private_data(
            self, X, y, streams=True, classes=self.classes, accept_sparse=self._formats
        )
        classes, codes, outside, assumptions = resolve_classes(y, self.classes)
        weights = class_weights(getattr(self, "class_weight", None), classes)
        # 3. plan, from public facts
        is_sparse, hidden = leaves_out_zeros(X), hidden_count(self)
        shape = X.shape[1], len(classes), asked or Solver(), is_sparse
        planned = partial(self._planned_for, shape, asked, hidden)
        (n_rows, unit), whose = count_rows(groups, X, hidden, sample_weight, planned)
        scales, problem, solver, plan = planned(n_rows, unit)
        check_reading(solver, X)
        weights = weights.beside(problem, plan)
        if weights.counts is not None:
            plan = solver.plan(weights.left(problem))
        doubts = Doubts(self)
        say_of_steps(doubts, self, solver)
        # few entries, or few coefficients: noise follows their number
        if not (is_sparse or problem.sparsity or isinstance(solver, solvers.FrankWolfe)):
            facts = n_rows, self.epsilon, plan.delta, self.adjacency, problem.size
            say_of_signal(doubts, *facts, unit)
        weights.say_of_noise(doubts, plan, (n_rows, unit, self.epsilon))
        # 4. gate; rows that are moved, and those without units, get their constant feature later
        given = self.data_norm is not None and not scales.n_releases
        intercept = 0.0 if solver.moves_rows else problem.intercept
        with open_gate(
            self,
            lambda: LinearRows(
                *as_read(
                    solver,
                    plan,
                    top_entries(X, problem.sparsity),
                    over_rows(problem.loss.encode, codes),
                    outside,
                ),
                L2Ball(self.data_norm) if given else EveryRow(),
                intercept if given else 0.0,
                effective_n_threads(),
                counts_of(whose),
            ),
            n_rows=n_rows,
            unit=unit,
            delta=plan.delta,
            mu=plan.total_mu,
            assumptions=assumptions,
            n_releases=self._n_releases(plan) + scales.n_releases + (weights.counts is not None),
            at_most=plan.at_most or scales.at_most,
            doubts=doubts,
        ) as curator:
            # 5. run: units of rows, counts of classes, steps
            found = scales.run(curator, problem.data_norm, 0.0, 1.0)
            norm, columns = found.radius, found.columns
            # a public norm stands where nothing else was found
            if self.data_norm is None or columns is not None:
                guessed = {"missing": not scales.n_releases, "vague": found.vague}
                say_of_scales(doubts, self._unknown(), n_rows, self.epsilon, **guessed)
                seen = weights.counts is not None or plan.counts_labels
                say_of_far(doubts, norm, None, columns, None if seen else found.absent)
                say_of_flat(doubts, scales, columns)
                say_of_unlike(doubts, found, self.C, self.coef_bound)
            if not given:
                left = weights.left(replace(problem, scale_mu=found.mu))
                norm, columns, problem = self._bent(curator, solver, left, norm, columns)
                curator.map_rows(lambda rows: readmitted(rows, L2Ball(norm), intercept))
                plan = solver.plan(self._in_units(problem, norm))
            known = weights.run(curator, plan, doubts)
            coef, self._link, n_steps = plan.solution(curator, doubts)
        # 6. attributes
        coef = centered_classes(coef)
        known = weights.after(known, plan, coef[:, -1] * problem.intercept)
        self.classes_ = classes
        self.coef_, self.intercept_ = original_coef(
            coef[:, : problem.n_features],
            problem.intercept * coef[:, -1] if problem.intercept else np.zeros(len(coef)),
            norm,
            columns,
        )
        self._clipped_at = self.data_norm_ = norm
        self._found = columns
        self.feature_center_, self.feature_scale_ = center_and_scale(columns, problem.n_features)
        self._weigh(known, n_rows)
        self.n_iter_ = self._steps(n_steps)
        return self

    def _planned_for(self, shape, asked, hidden, n_rows, unit="row"):
        """Return the plans of scales and of steps, the problem and the solver, by public facts.

        Parameters
        ----------
        shape : tuple of (int, int, Solver, bool)
            Numbers of features and classes, solver with its options, and whether zeros are left
            out.
        asked, hidden : Solver or None, HiddenCount or None
            Solver that was asked for; how the number of rows is released, if it is.
        n_rows, unit : int, {"row", "group"}
            Number of what is protected.
        """
        scales = self._checked_scales(n_rows, shape[0], shape[-1])
        problem = self._problem(scales, n_rows, *shape)
        bound = 0 if hidden is None else hidden.most
        problem = replace(problem, unit=unit, bound_on_rows=bound)
        solver = chosen_solver(self, asked, problem)
        return scales, problem, solver, solver.plan(problem)

    def _weigh(self, weights, n_rows):
        """Take weights of classes into account, if the model has any."""

    def _unknown(self):
        """Return the parameters that could have given what is searched about rows."""
        return ["data_norm"] if self.data_norm is None else []

    def _n_releases(self, plan):
        """Return how many releases there are besides those of scales and counts."""
        return plan.n_releases

    def _bent(self, curator, solver, problem, norm, found):
        """Map rows to other features by what was found; return their norm, columns and problem.

        Parameters
        ----------
        curator : Curator
            Holds the rows, standardised if columns were found.
        solver, problem : Solver, Problem
            Of the fit. The number of features may be that of the other ones.
        norm, found : float, StandardColumns or None
            Of the rows by now.
        """
        return norm, found, problem

    def _scales(self, n_rows, n_features, is_sparse):
        """Return the plan of what is found about the rows where no norm is taken as it is."""
        given = self.data_norm is not None
        # penalties, bounds and offsets are for the columns as they are
        alone = self.coef_bound is None and math.isinf(self.C)
        # and so is a norm of CSR rows, or for a solver that somebody has chosen
        usual = self.solver == "auto" and self.mechanism in ("auto", "gradient")
        if given and (is_sparse or not usual):
            alone = False
        return plan_scales(
            self.epsilon,
            self.delta,
            n_rows=n_rows,
            adjacency=self.adjacency,
            with_radius=alone or not given,
            with_scale=False,
            with_center=self.fit_intercept,
            n_columns=n_features if alone else 0,
            medians_first=self._medians_first,
            is_sparse=is_sparse,
        )

    def _checked_scales(self, n_rows, n_features, is_sparse):
        """Return the plan of what is found about the rows, perhaps after a check."""
        scales = self._scales(n_rows, n_features, is_sparse)
        facts = self.epsilon, self.delta, self.adjacency, self._is_made_up
        if self.data_norm is not None:
            return plan_norm_check(scales, self.data_norm, *facts)
        # penalties and bounds are for columns as they are; other features have many columns
        alone = self.coef_bound is None and math.isinf(self.C)
        if is_sparse or self._medians_first:
            return scales
        return plan_unit_check(scales, n_features, *facts, stay=not alone)

    def _in_units(self, problem, data_norm):
        """Return a problem whose penalty and bound are for rows in units of a norm."""
        return replace(
            problem,
            # the largest weight is the unit of weights
            penalty=penalty_of(self.C * (largest_weight(self) or 1.0), data_norm),
            radius=None if self.coef_bound is None else self.coef_bound * data_norm,
            data_norm=data_norm,
        )

    def _problem(self, scales, n_rows, n_features, n_classes, solver, is_sparse):
        """Return the problem for what a solver asks of the rows; plans ask the solver itself."""
        steps = solver.steps_of
        scaling = steps.intercept_scaling
        scaling = DEFAULT_INTERCEPT if scaling is None else scaling
        problem = Problem(
            n_rows=n_rows,
            n_features=n_features,
            loss=self._loss(n_classes),
            intercept=scaling if self.fit_intercept else 0.0,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            max_iter=self.max_iter,
            clipping_norm=getattr(steps, "clipping_norm", None),
            sparsity=steps.sparsity,
            is_sparse=is_sparse,
            scale_prices=scales.prices,
            # if columns may be alike, the choice of a solver is for such
            scale_mu=scales.mu,
            is_made_up=self._is_made_up,
            has_labels=True,
        )
        # without a norm as if columns had been standardised
        return self._in_units(problem, float(self.data_norm or math.sqrt(n_features)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # a row that is moved is not sparse
        tags.input_tags.sparse = not getattr(self.solver, "moves_rows", False)
        return tags


# Differentially private logistic regression.


class DPLogisticRegression(SoftmaxClassifierMixin, PrivateLinearClassifier):
    """Differentially private logistic regression, binary and multinomial.

    Minimises ``C * sum_i log-loss(y_i, x_i coef + intercept) + |coef|^2 / 2`` within a
    privacy budget, by one of several mechanisms.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0 and finite.
    delta : float, default=1e-6
        Privacy budget, in [0, 1); well below 1 / n_samples. 0 means pure privacy, which every
        mechanism except "gradient" supports. "exponential" is pure, except with solver
        "frank-wolfe".
    mechanism : {"auto", "gradient", "objective", "output", "exponential"}, default="auto"
        Kind of release. "gradient": noisy clipped gradients, one per step (Gaussian). "objective":
        the minimiser of the loss plus a random linear term (Gaussian, or K-norm noise at delta 0).
        "output": the minimiser of a penalised loss, plus noise (the same, or Laplace).
        "exponential": a random draw that favours small losses and needs `coef_bound`, or many
        small draws (solver "frank-wolfe"). "auto": that of the solver, if one is given; otherwise
        "gradient", and at delta 0 "objective", or "output" if it has less noise.
    solver : str or Solver, default="auto"
        An object of :mod:`skdp.solvers` or :mod:`skdp.papers`, where its parameters are
        documented, or a name for one with default parameters: "preconditioned", "accelerated",
        "gd", "sgd", "lazy-sgd" (mechanism "gradient"); "objective"; "output", "phased" (mechanism
        "output"); "exact", "frank-wolfe" (mechanism "exponential"). "auto" depends on public
        quantities, and is never from `skdp.papers`. For "gradient" it is "preconditioned", or
        "accelerated" if noise would hide second moments (never for sparse rows in two classes).
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out", half the noise), or in the presence of a row ("add-remove", where the number
        of rows is released first; otherwise it is public). See :ref:`adjacency`.
    data_norm : float, default=None
        Public bound on the Euclidean norm of a row, in [1e-100, 1e100], not computed from private
        data. Longer rows are scaled down to it, in `fit` and in predictions. None finds units of
        columns, origins of columns far from 0 (dense rows), and a norm that about a quarter of the
        rows exceed, for at most a fifth of the squared Gaussian-DP budget; only the norm with `C`,
        `coef_bound`, few rows, or more than 4,096 columns of CSR rows. Solver "auto" does the same
        with a number if a count shows that it is too loose (:ref:`norm_check`).
    classes : array-like of shape (n_classes,), default=None
        Public label set. Rows with another label contribute nothing; a class without
        rows is allowed. None reads the set from `y`, and the ledger says so.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, as in scikit-learn: ``{label: weight}``, with 1 for other labels, or
        "balanced": ``n_samples / (n_classes * counts)`` from noisy counts, for a twentieth of the
        budget. They change the prior in `intercept_` after the fit: all rows keep the same
        influence, and public weights cost nothing (:ref:`class_weight`).
    C : float, default=np.inf
        Inverse strength of the penalty, as in scikit-learn. With ``np.inf`` "gradient" and
        "exponential" have none; "objective" and "output" need a penalty for privacy, and choose it
        from public quantities. "gradient" does not penalise the intercept, the others must.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is inside the guarantee: rows are bounded
        together with the constant feature that carries it.
    coef_bound : float, default=None
        Radius of a ball for the coefficients. The intercept counts as ``intercept_ /
        (intercept_scaling * data_norm_)``, with the `intercept_scaling` of the solver (default
        0.1). None: no constraint.
    max_iter : int, default=None
        Number of steps, for solvers with steps; all are made. None chooses it from public
        quantities, and for "preconditioned" from released ones too.
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
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients; those of several classes add up to zero, if none is zero.
    intercept_, classes_ : ndarray of shape (1,) or (n_classes,), ndarray of shape (n_classes,)
        Intercepts, and the label set.
    data_norm_ : float
        Norm that rows were clipped to, given or released; otherwise ``sqrt(n_features)``.
    feature_center_, feature_scale_ : ndarray of shape (n_features,)
        Released origins and units of columns, in which `data_norm_` is measured; otherwise 0 and
        1.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the classes, public or from released counts. Only with `class_weight`.
    n_iter_ : ndarray of shape (1,)
        Number of steps or phases, a public number.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent; never more than granted.
    n_features_in_, feature_names_in_ : int, ndarray of shape (`n_features_in_`,)
        Number of features, and their names, if X had string names.

    Warns
    -----
    PrivacyWarning
        If epsilon or delta is too large, or labels were read from y (:ref:`warnings`).
    NoisyEstimateWarning
        If there are too many coefficients for the rows, or if `data_norm` is None and there are
        too few rows, or too much noise, to find scales; a scale is beyond 1e50; or most labels
        seem to be outside `classes`.

    See Also
    --------
    DPHingeSVM : The same with the hinge loss.
    DPMean : Private mean.
    privacy_spent : Add up several fits.
    sklearn.linear_model.LogisticRegression : Without privacy.

    Notes
    -----
    Privacy. One row is protected, at (epsilon, delta) and the chosen adjacency. Public: the
    parameters, the number of rows (a secret under add-remove), the number and names of features,
    and the label set. The intercept is inside the guarantee, and several classes share one budget.
    Not covered: timing, exceptions on malformed input, `score` on private data, and the choice of
    parameters by private data.

    The default first releases the sum of the rows and of their products, with sensitivity sqrt(2)
    (zero-out) or 3 / sqrt(2) (replace-one), and maps the rows. Then the gradient of a mapped row is
    clipped to norm c, so that the sum moves by at most c or 2c. T releases with noise of deviation
    ``sensitivity * sqrt(T) / mu`` are exactly mu-Gaussian-DP together [2]_. Where noise dominates,
    one gradient and :ref:`counts of classes <first-gradient>` are released. Squares of the
    parameters of all parts add up, and their total is the largest that implies (epsilon, delta)
    [3]_. All proofs, and other mechanisms: :ref:`linear_model` and :ref:`solvers`.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.
    .. [2] J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", JRSS B, 2022,
       Corollary 2.
    .. [3] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential
       privacy", ICML 2018, Theorem 8.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import BoundedScaler, DPLogisticRegression
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(
    ...     BoundedScaler(bounds=(0, 16), feature_range=(0, 1)),
    ...     DPLogisticRegression(epsilon=4.0, data_norm=4.0, classes=range(10), random_state=0),
    ... )
    >>> model.fit(X, y).score(X, y) > 0.85
    True
    >>> model[-1].privacy_spent_[0] <= 4.0
    True
    """

    _parameter_constraints = {
        **PrivateLinearClassifier._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        mechanism: ClassifierMechanism = "auto",
        solver: str | Solver = "auto",
        adjacency: Adjacency = "replace-one",
        data_norm: float | None = None,
        classes: ArrayLike | None = None,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        C: float = np.inf,
        fit_intercept: bool = True,
        coef_bound: float | None = None,
        max_iter: int | None = None,
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.mechanism = mechanism
        self.solver = solver
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.classes = classes
        self.class_weight = class_weight
        self.C = C
        self.fit_intercept = fit_intercept
        self.coef_bound = coef_bound
        self.max_iter = max_iter
        self.max_weight = max_weight
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    def predict_log_proba(self, X: MatrixLike) -> NDArray[Any]:
        """Estimate logarithms of probabilities.

        Where the solver knows how the clipping of gradients has changed the link, most of that is
        undone; see the user guide (:ref:`its link <link>`). The most probable class is that of
        `predict`. With `class_weight` they are those of a population in which classes are so many
        times as frequent.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        found = super().predict_log_proba(X)
        if self._link is None:
            return found
        if self._shift is None or len(self.classes_) > 2:
            return unclipped_log_proba(found, self._link)
        # exactly, for two classes: the odds of the rows, their link undone, times the weights
        odds = self._linked(found[:, 1] - found[:, 0] - self._shift) + self._linked(self._shift)
        return np.column_stack([log_expit(-odds), log_expit(odds)])

    def _linked(self, odds):
        """Return logarithms of the odds of two classes, most of what clipping does undone."""
        return odds if self._link is None else unclipped_odds(odds, self._link)

    def _weigh(self, weights, n_rows):
        """Put the prior that weights stand for in the place of that of the rows."""
        self._shift = None
        if self.class_weight is not None:
            length = np.linalg.norm(self.coef_ * self.feature_scale_, axis=1) * self.data_norm_
            at_center = np.abs(self.coef_ @ self.feature_center_ + self.intercept_)
            self.class_weight_ = weights
            longest = float(max(length + at_center))
            self._shift = shifts(np.log(weights), self._linked, n_rows, longest)
            self.intercept_ = self.intercept_ + self._shift

    def _twin(self):
        rows = self._clipped_at, self._found
        if self._link is None:
            return linear_classifier(self, *rows)
        weighted = self._shift is not None and len(self.classes_) == 2
        shift = (self._shift, self._linked(self._shift)) if weighted else None
        return linear_classifier(self, *rows, (self._link, LINK_SHARE), shift)

    def _loss(self, n_classes):
        return LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)


# The differentially private support vector machine: hinge loss, no derivative needed.


class DPHingeSVM(PrivateLinearClassifier):
    """Differentially private linear support vector classification.

    Minimises ``C * sum_i hinge(y_i, x_i coef + intercept) + |coef|^2 / 2`` within a
    privacy budget. For two classes the hinge is ``max(0, 1 - y z)`` with y = -1 or 1; for
    more it is that of Crammer and Singer [2]_, ``max(0, 1 + max_k z_k - z_y)``, k other than y.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0 and finite.
    delta : float, default=1e-6
        Privacy budget, in [0, 1); well below 1 / n_samples. 0 means pure privacy, which every
        mechanism except "gradient" supports. "exponential" is pure, except with solver
        "frank-wolfe".
    mechanism : {"auto", "gradient", "objective", "output", "exponential"}, default="auto"
        Kind of release. "gradient": noisy clipped gradients, one per step (Gaussian). "objective":
        the minimiser of the loss plus a random linear term (Gaussian, or K-norm noise at delta 0),
        for the smoothed hinge only. "output": the minimiser of a penalised loss, plus noise (the
        same, or Laplace). "exponential": a random draw that favours small losses and needs
        `coef_bound`, or many small draws (solver "frank-wolfe", for the smoothed hinge). "auto":
        that of the solver, if one is given; otherwise "gradient", and at delta 0 "output", or
        "objective" for the smoothed hinge.
    solver : str or Solver, default="auto"
        An object of :mod:`skdp.solvers` or :mod:`skdp.papers`, where its parameters are
        documented, or a name for one with default parameters: "preconditioned", "accelerated",
        "gd", "sgd", "lazy-sgd" (mechanism "gradient"); "objective"; "output", "phased" (mechanism
        "output"); "exact", "frank-wolfe" (mechanism "exponential"). "auto" depends on public
        quantities, and is never from `skdp.papers`. For "gradient" it is "preconditioned". If
        noise would hide second moments, it is "gd" if noise dominates, and "accelerated"
        otherwise or with more features than rows.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out", half the noise), or in the presence of a row ("add-remove", where the number
        of rows is released first; otherwise it is public). See :ref:`adjacency`.
    data_norm : float, default=None
        Public bound on the Euclidean norm of a row, in [1e-100, 1e100], not computed from private
        data. Longer rows are scaled down to it, in `fit` and in predictions. None finds units of
        columns, origins of columns far from 0 (dense rows), and a norm that about a quarter of the
        rows exceed, for at most a fifth of the squared Gaussian-DP budget; only the norm with `C`,
        `coef_bound`, few rows, or more than 4,096 columns of CSR rows. Solver "auto" does the same
        with a number if a count shows that it is too loose (:ref:`norm_check`).
    classes : array-like of shape (n_classes,), default=None
        Public label set. Rows with another label contribute nothing; a class without
        rows is allowed. None reads the set from `y`, and the ledger says so.
    C : float, default=np.inf
        Inverse strength of the penalty, as in scikit-learn. With ``np.inf`` "gradient" and
        "exponential" have none; "objective" and "output" need a penalty for privacy, and choose it
        from public quantities. Solvers "preconditioned" and "accelerated" do not penalise the
        intercept, the others must.
    smoothing : float, default=None
        Temperature T of the smoothed hinge ``T log(1 + exp((1 - y z) / T))``, which lies
        above the hinge by at most ``T log(n_classes)``. None is the hinge itself.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is inside the guarantee: rows are bounded
        together with the constant feature that carries it.
    coef_bound : float, default=None
        Radius of a ball for the coefficients. The intercept counts as ``intercept_ /
        (intercept_scaling * data_norm_)``, with the `intercept_scaling` of the solver (default
        0.1). None: no constraint, except for solver "gd", whose step rule needs one: 30 /
        `data_norm_`.
    max_iter : int, default=None
        Number of steps, for solvers with steps; all are made. None chooses it from public
        quantities, and for "preconditioned" from released ones too.
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
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients; those of several classes add up to zero, if none is zero.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    classes_ : ndarray of shape (n_classes,)
        Label set.
    data_norm_ : float
        Norm that rows were clipped to, given or released; otherwise ``sqrt(n_features)``.
    feature_center_, feature_scale_ : ndarray of shape (n_features,)
        Released origins and units of columns, in which `data_norm_` is measured; otherwise 0 and
        1.
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
    PrivacyWarning
        If epsilon or delta is too large, or labels were read from y (:ref:`warnings`).
    NoisyEstimateWarning
        If there are too many coefficients for the rows, or if `data_norm` is None and there are
        too few rows, or too much noise, to find scales; a scale is beyond 1e50; or most labels
        seem to be outside `classes`.

    See Also
    --------
    DPLogisticRegression : The same with the logistic loss, and probabilities.
    sklearn.svm.LinearSVC : Without privacy.

    Notes
    -----
    Privacy. One row is protected, at (epsilon, delta) and the chosen adjacency. Public: the
    parameters, the number of rows (a secret under add-remove), the number and names of features,
    and the label set. The intercept is inside the guarantee, and several classes share one budget.
    Not covered: timing, exceptions on malformed input, `score` on private data, and the choice of
    parameters by private data.

    The hinge has no second derivative, so "objective" has no proof for it. Smoothing for that
    mechanism adds an error that grows with the square root of the number of rows ([1]_, Appendix
    A); noisy subgradients lose nothing at the kink. A subgradient is a fixed function of
    coefficients and row: 0 at the kink, the first class of a tie. Otherwise mechanisms and proofs
    are those of `DPLogisticRegression`; solvers are in the user guide (:ref:`solvers`).

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.
    .. [2] K. Crammer and Y. Singer, "On the algorithmic implementation of multiclass
       kernel-based vector machines", JMLR, 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import minmax_scale
    >>> from skdp import DPHingeSVM
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = minmax_scale(X, (-1, 1))  # in earnest, with public bounds: see BoundedScaler
    >>> model = DPHingeSVM(epsilon=4.0, data_norm=5.0, classes=(0, 1), random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.85
    True
    >>> model.privacy_spent_[0] <= 4.0
    True
    """

    _parameter_constraints = {
        **PrivateLinearClassifier._parameter_constraints,
        "smoothing": [Interval(Real, 1e-3, 1e3, closed="both"), None],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        mechanism: ClassifierMechanism = "auto",
        solver: str | Solver = "auto",
        adjacency: Adjacency = "replace-one",
        data_norm: float | None = None,
        classes: ArrayLike | None = None,
        C: float = np.inf,
        smoothing: float | None = None,
        fit_intercept: bool = True,
        coef_bound: float | None = None,
        max_iter: int | None = None,
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.mechanism = mechanism
        self.solver = solver
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.classes = classes
        self.C = C
        self.smoothing = smoothing
        self.fit_intercept = fit_intercept
        self.coef_bound = coef_bound
        self.max_iter = max_iter
        self.max_weight = max_weight
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, n_classes):
        hinge = HingeLoss(1 if n_classes == 2 else n_classes)
        return hinge if self.smoothing is None else hinge.smoothed(self.smoothing)

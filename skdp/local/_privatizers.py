# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Transformers that replace rows by local reports: PrivUnit for rows, grids for single entries."""

import math
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from skdp._rows.base import bounds_of, check_radius
from skdp._sklearn import (
    SHARED_CONSTRAINTS,
    Interval,
    StrOptions,
    blas_on_one_thread,
    fit_context,
    validate_private_data,
)
from skdp._typing import Bounds, Budget, MatrixLike, Seed
from skdp.local._ball_randomiser import PARAMETERS, BallRandomiser, paper_directions
from skdp.local._clients import LocalClient, RunningLedger
from skdp.local._row_domains import BallDomain, BoxDomain
from skdp.local.randomisers.ball import Flip, Lift, Product
from skdp.local.randomisers.base import check_local_epsilon
from skdp.local.randomisers.cube import optimal_privunit_cube
from skdp.local.randomisers.grid import (
    EntrywiseGrid,
    ScalarGrid,
    best_relative_cells,
    best_uniform_cells,
    relative_levels,
    scalar_grid,
    uniform_levels,
)
from skdp.local.randomisers.privunit import optimal_privunit, optimal_privunit_gaussian
from skdp.local.randomisers.projunit import projunit, smallest_projunit
from skdp.local.randomisers.report import LocalReports
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.curator import Curator
from skdp.privacy.laws.local_reports import LocalMechanism

# The base of both transformers.


NEW_ROWS = ("auto", "keep", "randomise")


class ReportingTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Transformer of rows to their own reports.

    Subclasses implement ``_domain_of(n_features)``, which returns the public domain of rows for a
    number of features or raises, and ``_randomiser_of(n_features)``. A domain has ``admit(X)``,
    ``vectors``, ``original(reports)``, ``kept(X)`` and ``variance(randomiser)``.
    """

    _parameter_constraints = {
        "epsilon": SHARED_CONSTRAINTS["epsilon"],
        "new_rows": [StrOptions(set(NEW_ROWS))],
        "budget": SHARED_CONSTRAINTS["budget"],
        "random_state": SHARED_CONSTRAINTS["random_state"],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Check parameters and remember the number and names of the features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows, used for their shape only. Nothing is spent, and a new ledger begins.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The transformer. From now on `transform` randomises, unless ``new_rows="keep"``.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable.
        """
        X = validate_private_data(self, X, accept_sparse=self._sparse_format())
        n_features = X.shape[1]
        domain, randomiser = self._domain_of(n_features), self._randomiser_of(n_features)
        self._domain, self._budget = domain, float(self.epsilon)
        self.randomiser_ = randomiser
        self.noise_variance_ = domain.variance(randomiser)
        self.message_bits_ = randomiser.message_bits()
        self._account = RunningLedger()
        self._trained = False
        return self

    def fit_transform(self, X: MatrixLike, y: object = None) -> Any:
        """Fit, and return a report of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows.
        y : None
            Ignored.

        Returns
        -------
        X_reported : ndarray of shape (n_samples, n_features)
            Reports in float64. From now on `transform` returns rows IN THE CLEAR, unless
            ``new_rows="randomise"``.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable; nothing was spent.
        """
        reported = self.fit(X)._report(X)
        self._trained = True
        return reported

    def transform(self, X: MatrixLike) -> Any:
        """Return a report of every row, or the rows themselves; see the notes of the class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; never changed.

        Returns
        -------
        X_transformed : {ndarray, sparse matrix} of shape (n_samples, n_features)
            Result in float64; sparse only for sparse X with rows kept.
        """
        check_is_fitted(self)
        if self.new_rows == "keep" or (self.new_rows == "auto" and self._trained):
            return self._domain.kept(self._checked(X))
        return self._report(X)

    def client(self, n_features: int | None = None) -> LocalClient:
        """Return a client that reports one row, with these parameters.

        Parameters
        ----------
        n_features : int, default=None
            Number of features. None for the number (and the names, for bounds) of `fit`.

        Returns
        -------
        client : LocalClient
            Client, made without rows, with its own ledger. `LocalDPMean` takes its reports by
            `fit_reports`; ``client.read(report)`` is like a row of `transform`.

        Raises
        ------
        ValueError
            If a parameter is unusable.
        """
        self._validate_params()
        if n_features is None:
            check_is_fitted(self)
            n_features = self.n_features_in_
        check_scalar(n_features, "n_features", Integral, min_val=1)
        domain, randomiser = self._domain_of(n_features), self._randomiser_of(n_features)
        return LocalClient(domain, randomiser, self.epsilon, self.budget)

    @property
    def ledger_(self) -> Ledger:
        """Reports since `fit`, and their prices."""
        check_is_fitted(self)
        return self._account.ledger

    @property
    def privacy_spent_(self) -> tuple[float, float]:
        """The (epsilon, delta) of all calls since `fit`, as for the same rows in all calls."""
        return self.ledger_.epsilon(0.0), 0.0

    def _checked(self, X):
        return validate_private_data(self, X, accept_sparse=self._sparse_format(), reset=False)

    def _report(self, X):
        X, domain = self._checked(X), self._domain
        curator = Curator(
            lambda: domain.admit(X),
            n_rows=X.shape[0],
            epsilon=self._budget,
            delta=0.0,
            adjacency="local",
            budget=self.budget,
            random_state=self.random_state,
            # with one seed, reports at two budgets do not share their noise either
            purpose=f"{type(self).__name__} {self._budget!r}",
        )
        # a seeded report depends on the seed and the row, whatever rows come with it
        query = LocalReports(domain.vectors, self.randomiser_, by_content=True)
        try:
            with blas_on_one_thread():
                reports = curator.release(query, LocalMechanism(self._budget))
        finally:
            # what fails midway has been paid for
            self._account.add(curator.ledger)
        return domain.original(reports)

    def _sparse_format(self):
        return "csr" if self._accepts_sparse() else False

    def _accepts_sparse(self):
        return False

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_account")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


MECHANISMS = ("privunit", "privunit-gaussian", "projunit", "cube")
#: dimension up to which rotations are uniform; beyond that they are fast
MOST_UNIFORM = 512
#: where the relative grid of lengths begins, unless a norm is expected
_FLOOR = 0.1


class PrivUnitPrivatizer(ReportingTransformer):
    """Replace every row by its own unbiased, epsilon-locally private report.

    All reports together, and everything computed from them, reveal about a row no more than its
    own report. The collector need not be trusted.

    Parameters
    ----------
    epsilon : float, default=8.0
        Privacy budget of ONE report of a row, in nats, from 1e-6 to 1e6.
    mechanism : {"privunit", "privunit-gaussian", "projunit", "cube"}, default="privunit"
        "privunit" reports directions with the least known error. "privunit-gaussian" is its limit
        in high dimensions. "projunit" rotates rows at random and reports `n_components` entries,
        for shorter messages. "cube" is for rows in a box (`bounds`); its reports have one bit per
        entry and are drawn exactly, with integers.
    magnitude : {"lift", "flip", "product", "unit", "auto"}, default="lift"
        Treatment of lengths below `data_norm`. "lift" adds an entry that gives all rows this
        length; the noise is then the same in all directions and for all rows. "flip" reverses a
        row at random, with the correct mean. "product" reports the length separately. "unit"
        assumes this length for all rows: only directions are reported, and a zero row reports a
        random one. "auto" is "lift", "flip" or "product", with the least error at `expected_norm`.
        It is ignored with "cube"; "privunit-gaussian" and "projunit" have no "product".
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of a row. Longer rows are scaled down to it. Ignored
        with "cube".
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=None
        Public bounds: a pair (lower, upper) of numbers or arrays of shape (n_features,), or a pair
        for every feature, in order or by name. Only for "cube". Coordinates outside are clipped.
    expected_norm : float, default=None
        Public guess of the norms of rows, relative to `data_norm`, in (0, 1], for the tuning of
        "product" and "auto"; None for 1. It must not be computed from the rows.
    magnitude_epsilon : float, default=None
        "product": the part of `epsilon` for the length. None for the best part at `expected_norm`.
    n_levels : int, default=None
        "product": number of levels of length, at least 2; an upper bound for "relative" levels.
        None for the best number.
    levels : {"uniform", "relative"}, default="uniform"
        "product": equidistant lengths, or lengths with a relative spacing, from half of
        `expected_norm` on (a tenth of `data_norm` without it).
    n_components : int, default=None
        "projunit": number of kept entries, at most the number of features. None is the smallest
        number with an error within 1 % of the error of "privunit". Others ignore it.
    parameters : {"optimal", "paper", "paper-simulation", "half"}, default="optimal"
        "privunit": the best parameters, or for comparison the parameters of [1]_, by its condition
        (16). These give 99 % of the direction's budget to the cap and 1 % to the coin ("paper");
        13/16 of the whole to the cap, 1/16 to the coin and 2/16 to the length ("paper-simulation",
        only for "product"); or have a fair coin ("half").
    new_rows : {"auto", "randomise", "keep"}, default="auto"
        Behaviour of `transform`. "randomise": it always reports. "keep": it never reports, only
        `fit_transform` does. "auto": it reports after `fit`, and returns rows IN THE CLEAR after
        `fit_transform`. See the notes.
    budget : PrivacyBudget, default=None
        A budget shared by several calls. Each call that reports is charged epsilon before it reads
        a row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws from the operating system. An int makes a report a function of the seed, the
        parameters and the row, independent of other rows: equal calls give equal reports. It voids
        the guarantee, warns, and is slow.

    Attributes
    ----------
    randomiser_ : object
        Public parameters, of PrivUnit and of lengths.
    noise_variance_ : float or ndarray of shape (n_features,)
        Variance of a report along each direction orthogonal to its row; with "product" for a row
        of the expected norm, otherwise for every row. With the default parameters it is the
        variance of every entry. With "cube" an array: the largest variance of each entry, in the
        middle of its bounds.
    message_bits_ : int
        Bits of a message with one report: 32 per number, or 1 per entry for "cube".
    ledger_ : Ledger
        Reports since `fit`, and their prices. It grows with every call that reports.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) of these calls together, as for the same rows in all calls. Delta is
        0.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    ScalarPrivatizer : Every feature reports on its own.
    LocalDPMean : Mean of reports, with its standard error.
    privacy_spent : Add up several estimators.
    skdp.inspection.reconstruction_risk : What a report tells an attacker.

    Notes
    -----
    Privacy. Under any two values of a row, the densities of its report differ by a factor of at
    most exp(epsilon), everywhere. The number of rows, the number and names of features and all
    parameters are public. With "cube" that is exact; other reports are computed in floating point,
    which approximates real numbers, and rounded to a grid ("idealised" on the ledger). Timing and
    exceptions on malformed input are not covered.

    Only X is covered. LABELS ARE NOT PROTECTED. Neither are earlier steps of a pipeline that learn
    from rows.

    Which call reports. For distant rows: `client`, with reports as bytes. For rows in memory: call
    `fit` once, on any data of the right shape, and `transform` every row once. Each further call
    on the same rows spends `epsilon` again, and is on `ledger_`. In a pipeline, training calls
    `fit_transform`, which reports. After that, rows for predictions pass unchanged, only scaled or
    clipped into the domain, because noise would spoil predictions without protecting training
    rows. THE DANGER: after `fit_transform`, `transform` returns its rows IN THE CLEAR, rows of the
    training set too. Never publish its result; ``new_rows="randomise"`` excludes this. A
    cross-validation refits, and every fit spends: with k folds a row reports k - 1 times, and more
    often in a search, each time on the ledger of another clone. Add them up, or report once and
    cross-validate on the reports. A privatizer pickled into another process counts its reports
    there.

    Sparse rows are accepted, except with "cube". Reports are dense, and must fit into memory.

    "projunit" draws one rotation for all rows of a call. Given the rotation, reports of equal rows
    share an error of about 1.2 / `n_components` of their length, which does not average out over
    the rows of the call; another call has another error. In more than 512 dimensions the rotation
    is a fast transform, and reports of rows with few entries are longer by about one part in 4
    `n_components`.

    References
    ----------
    .. [1] A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor and R. Rogers, "Protection against
       reconstruction and its applications in private federated learning", arXiv:1812.00984,
       2018: Algorithm 1 and Theorem 1 (directions), Algorithm 2 (the cube), Algorithms 3 and
       4 (lengths).
    .. [2] H. Asi, V. Feldman and K. Talwar, "Optimal algorithms for mean estimation under
       local differential privacy", ICML 2022.
    .. [3] H. Asi, V. Feldman, J. Nelson, H. Nguyen and K. Talwar, "Fast optimal locally
       private mean estimation via random projections", NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivUnitPrivatizer
    >>> rows = np.tile([0.6, 0.0, -0.3], (20_000, 1))
    >>> privatizer = PrivUnitPrivatizer(epsilon=2.0)
    >>> reports = privatizer.fit_transform(rows)
    >>> bool(np.abs(reports.mean(axis=0) - rows[0]).max() < 0.1)
    True
    >>> privatizer.privacy_spent_[0] <= 2.0
    True
    >>> bool(abs(reports.var() / privatizer.noise_variance_ - 1) < 0.5)
    True
    """

    _parameter_constraints = {
        **ReportingTransformer._parameter_constraints,
        "mechanism": [StrOptions(set(MECHANISMS))],
        "magnitude": [StrOptions({"lift", "flip", "product", "unit", "auto"})],
        "data_norm": SHARED_CONSTRAINTS["data_norm"],
        "bounds": [tuple, list, dict, np.ndarray, None],
        "expected_norm": [Interval(Real, 0, 1, closed="right"), None],
        "magnitude_epsilon": [Interval(Real, 0, None, closed="neither"), None],
        "n_levels": [Interval(Integral, 2, None, closed="left"), None],
        "levels": [StrOptions({"uniform", "relative"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "parameters": [StrOptions(set(PARAMETERS))],
    }

    def __init__(
        self,
        epsilon: float = 8.0,
        *,
        mechanism: Literal["privunit", "privunit-gaussian", "projunit", "cube"] = "privunit",
        magnitude: Literal["lift", "flip", "product", "unit", "auto"] = "lift",
        data_norm: float = 1.0,
        bounds: Bounds | None = None,
        expected_norm: float | None = None,
        magnitude_epsilon: float | None = None,
        n_levels: int | None = None,
        levels: Literal["uniform", "relative"] = "uniform",
        n_components: int | None = None,
        parameters: Literal["optimal", "paper", "paper-simulation", "half"] = "optimal",
        new_rows: Literal["auto", "randomise", "keep"] = "auto",
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.mechanism = mechanism
        self.magnitude = magnitude
        self.data_norm = data_norm
        self.bounds = bounds
        self.expected_norm = expected_norm
        self.magnitude_epsilon = magnitude_epsilon
        self.n_levels = n_levels
        self.levels = levels
        self.n_components = n_components
        self.parameters = parameters
        self.new_rows = new_rows
        self.budget = budget
        self.random_state = random_state

    def _domain_of(self, n_features):
        if self.mechanism == "cube" and self.bounds is not None:
            return BoxDomain.between(*bounds_of(self, n_features))
        norm = 1.0 if self.expected_norm is None else float(self.expected_norm)
        return BallDomain(check_radius(self.data_norm), None if self.magnitude == "unit" else norm)

    def _randomiser_of(self, n_features):
        return unit_randomiser(self, n_features)

    def _accepts_sparse(self):
        return self.mechanism != "cube"


def unit_randomiser(privatizer, n_features):
    """Return the randomiser for the parameters of a `PrivUnitPrivatizer`.

    Parameters
    ----------
    privatizer : PrivUnitPrivatizer
        Privatizer with the public parameters.
    n_features : int
        Number of features.

    Returns
    -------
    randomiser : Randomiser
        Randomiser with an `epsilon` of at most the `epsilon` of the privatizer.

    Raises
    ------
    ValueError
        If the parameters are incompatible.
    """
    p = privatizer
    _check_unit(p, n_features)
    if p.mechanism == "cube":
        return optimal_privunit_cube(p.epsilon, n_features)
    if p.mechanism == "privunit":
        return _privunit(p, n_features)
    if p.magnitude == "unit":
        return _directions(p, n_features)
    lifted, flipped = Lift(_directions(p, n_features + 1)), Flip(_directions(p, n_features))
    if p.magnitude != "auto":
        return lifted if p.magnitude == "lift" else flipped
    norm = 1.0 if p.expected_norm is None else p.expected_norm
    return min((lifted, flipped), key=lambda made: made.mean_squared_error(norm))


def _privunit(p, n_features):
    if p.magnitude == "unit":
        if p.parameters == "optimal":
            return optimal_privunit(p.epsilon, n_features)
        return paper_directions(p.epsilon, n_features, p.parameters)
    if p.magnitude == "product" and p.levels == "relative":
        return _relative(p, n_features)
    return _in_ball(p, p.n_levels).calibrate(p.epsilon, n_features)


def _in_ball(p, n_levels):
    return BallRandomiser(
        p.magnitude,
        expected_norm=p.expected_norm,
        magnitude_epsilon=p.magnitude_epsilon,
        n_levels=n_levels,
        parameters=p.parameters,
    )


def _relative(p, n_features):
    """Return the product of the usual direction and a length on a relative grid."""
    usual = _in_ball(p, None).calibrate(p.epsilon, n_features)
    floor = _FLOOR if p.expected_norm is None else p.expected_norm / 2.0
    part = usual.grid.epsilon
    grid = scalar_grid(levels_of("relative", part, p.n_levels, floor), part)
    # the same budget but for rounding, and the sum must not be above what was asked for
    if usual.unit.epsilon + grid.epsilon >= p.epsilon:
        part -= 4.0 * math.ulp(p.epsilon)
        grid = scalar_grid(grid.levels, part)
    return Product(usual.unit, grid)


def levels_of(kind, epsilon, n_levels, floor):
    """Return levels from 0 to 1 for a budget.

    Parameters
    ----------
    kind : {"uniform", "relative"}
        Equal spacing, or relative spacing from `floor` on.
    epsilon : float
        Budget of one number.
    n_levels : int or None
        Number of levels, or a bound for "relative"; None for the best number.
    floor : float
        In (0, 1); for "relative" only.

    Returns
    -------
    levels : ndarray

    Raises
    ------
    ValueError
        If there are too few levels from the floor to 1.
    """
    if kind == "uniform":
        return uniform_levels(best_uniform_cells(epsilon) if n_levels is None else n_levels - 1)
    if n_levels is None:
        return relative_levels(floor, best_relative_cells(epsilon, floor))
    made, n_inner = None, 1
    while (levels := relative_levels(floor, n_inner)).size <= n_levels:
        made, n_inner = levels, n_inner + 1
    if made is None:
        raise ValueError(
            f'n_levels must be at least {levels.size} for levels="relative" from {floor:g} on; '
            f"got {n_levels!r}."
        )
    return made


def _directions(p, n_dims):
    """Return the randomiser of unit vectors."""
    if p.mechanism == "privunit-gaussian":
        return optimal_privunit_gaussian(p.epsilon, n_dims)
    rotation = "haar" if n_dims <= MOST_UNIFORM else "hadamard"
    if p.n_components is None:
        return smallest_projunit(p.epsilon, n_dims, rotation=rotation)
    return projunit(p.epsilon, n_dims, p.n_components, rotation)


def _check_unit(p, n_features):
    """Raise for incompatible parameters."""
    mechanism = f"mechanism={p.mechanism!r}"
    if (p.bounds is None) == (p.mechanism == "cube"):
        raise ValueError(
            f'bounds must be given for mechanism="cube" and be None for others; got {p.bounds!r} '
            f"for {mechanism}."
        )
    given = p.mechanism == "projunit" and p.n_components is not None
    if given and p.n_components > n_features:
        raise ValueError(
            f"n_components must be at most the number of features, {n_features}; got "
            f"{p.n_components!r}."
        )
    if p.mechanism == "privunit":
        if p.magnitude == "unit" and p.parameters == "paper-simulation":
            raise ValueError('parameters="paper-simulation" needs magnitude="product"; got "unit".')
        if p.magnitude != "product" and p.levels != "uniform":
            raise ValueError(f'levels={p.levels!r} needs magnitude="product"; got {p.magnitude!r}.')
        for name in ("magnitude_epsilon", "n_levels"):
            if p.magnitude == "unit" and getattr(p, name) is not None:
                raise ValueError(
                    f'{name} is for magnitude="product" only; got {getattr(p, name)!r} for "unit".'
                )
        return
    if p.parameters != "optimal":
        raise ValueError(
            f'parameters={p.parameters!r} is for mechanism="privunit" only; got {mechanism}.'
        )
    given = p.magnitude_epsilon is not None or p.n_levels is not None or p.levels != "uniform"
    if p.magnitude == "product" or given:
        raise ValueError(
            'magnitude="product" and its magnitude_epsilon, n_levels and levels are for '
            f'mechanism="privunit" only; got {mechanism}.'
        )


# Reports of single entries.


#: the least budget of one feature
_LEAST = 1e-6


class ScalarPrivatizer(ReportingTransformer):
    """Replace every entry by its own unbiased, locally private report.

    An entry is rounded at random to one of several levels between public bounds. Then the level is
    kept, or replaced by another one. The features of a row share its budget equally, so this is
    for few features; for many, use `PrivUnitPrivatizer`.

    Parameters
    ----------
    epsilon : float, default=8.0
        Privacy budget of ONE report of a row, in nats, at most 1e6. Every feature gets ``epsilon /
        n_features``, which must be at least 1e-6.
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=(0, 1)
        Public bounds: a pair (lower, upper) of numbers or arrays of shape (n_features,), or a pair
        for every feature, in order or by name. Coordinates outside are clipped.
    levels : {"uniform", "relative"}, default="uniform"
        Equidistant levels, with the least maximal error; or levels denser near the lower bound,
        with the least relative error.
    n_levels : int, default=None
        Number of levels, at least 2; an upper bound with "relative". None for the best number.
    floor : float, default=None
        "relative": distance from the lower bound below which levels are equidistant, as a fraction
        of the distance of the bounds, from 1e-6 to 1. None is a tenth.
    new_rows : {"auto", "randomise", "keep"}, default="auto"
        Behaviour of `transform`. "randomise": it always reports. "keep": it never reports, only
        `fit_transform` does. "auto": it reports after `fit`, and returns rows IN THE CLEAR after
        `fit_transform`. See the notes.
    budget : PrivacyBudget, default=None
        A budget shared by several calls. Each call that reports is charged epsilon before it reads
        a row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws from the operating system. An int makes a report a function of the seed and the
        row, independent of other rows. It voids the guarantee towards anybody who knows it, warns,
        and is slow.

    Attributes
    ----------
    randomiser_ : object
        Public parameters: a grid on [-1, 1], and the number of features.
    noise_variance_ : ndarray of shape (n_features,)
        The largest variance of every entry of a report, over all values within the bounds.
    message_bits_ : int
        Bits of a message with one report: the indices of its levels.
    ledger_ : Ledger
        Reports since `fit`, and their prices. It grows with every call that reports.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) of these calls together, as for the same rows in all calls. Delta is
        0.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    PrivUnitPrivatizer : All features of a row in one report.
    privacy_spent : Add up several estimators.

    Notes
    -----
    Privacy. Under any two values of a row the probabilities of its report differ by a factor of at
    most exp(epsilon). All draws are exact. The number of rows, the number and names of features
    and all parameters are public. Timing and exceptions on malformed input are not covered. LABELS
    ARE NOT PROTECTED.

    Which call reports is as for `PrivUnitPrivatizer`. After `fit`, every call of `transform`
    reports and spends again. After `fit_transform`, the call of a training pipeline, `transform`
    returns rows IN THE CLEAR, only clipped to the bounds. Never publish these;
    ``new_rows="randomise"`` excludes this. A cross-validation refits, and every fit spends.

    Reports are outside of the bounds, for small budgets far outside: otherwise they would be
    biased. "uniform" is ScalarDP of [1]_. "relative" replaces its ScalarRelDP, which has no level
    between 0 and the floor: Lemma B.1 is false there.

    References
    ----------
    .. [1] A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor and R. Rogers, "Protection against
       reconstruction and its applications in private federated learning", arXiv:1812.00984,
       2018: Algorithms 3 and 4, Lemmas 4.3 and B.1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import ScalarPrivatizer
    >>> ages = np.full((5000, 1), 37.0)
    >>> privatizer = ScalarPrivatizer(epsilon=2.0, bounds=(0, 100))
    >>> reports = privatizer.fit_transform(ages)
    >>> bool(abs(reports.mean() - 37) < 6)
    True
    >>> len(np.unique(reports)), privatizer.message_bits_
    (3, 2)
    """

    _parameter_constraints = {
        **ReportingTransformer._parameter_constraints,
        "bounds": [tuple, list, dict, np.ndarray],
        "levels": [StrOptions({"uniform", "relative"})],
        "n_levels": [Interval(Integral, 2, None, closed="left"), None],
        "floor": [Interval(Real, 1e-6, 1, closed="left"), None],
    }

    def __init__(
        self,
        epsilon: float = 8.0,
        *,
        bounds: Bounds = (0, 1),
        levels: Literal["uniform", "relative"] = "uniform",
        n_levels: int | None = None,
        floor: float | None = None,
        new_rows: Literal["auto", "randomise", "keep"] = "auto",
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.levels = levels
        self.n_levels = n_levels
        self.floor = floor
        self.new_rows = new_rows
        self.budget = budget
        self.random_state = random_state

    def _domain_of(self, n_features):
        return BoxDomain.between(*bounds_of(self, n_features))

    def _randomiser_of(self, n_features):
        if self.floor is not None and self.levels != "relative":
            raise ValueError(f'floor is for levels="relative" only; got {self.floor!r}.')
        epsilon = check_local_epsilon(self.epsilon)
        # sums of budgets are rounded up
        part = epsilon / n_features * (1.0 - 2.0**-50)
        if part < _LEAST:
            raise ValueError(
                f"epsilon must be at least {_LEAST * 1.01 * n_features:.3g} for {n_features} "
                f"features that report on their own; got {self.epsilon!r}."
            )
        floor = 0.1 if self.floor is None else float(self.floor)
        levels = levels_of(self.levels, part, self.n_levels, floor)
        # the box is [-1, 1]
        grid = scalar_grid(2.0 * levels - 1.0, part)
        return _within(EntrywiseGrid(grid, n_features), epsilon)


def _within(entrywise, epsilon):
    """Return the parameters with the chance lowered until the budget holds."""
    while entrywise.epsilon > epsilon:
        grid = ScalarGrid(entrywise.grid.levels, math.nextafter(entrywise.grid.p, 0.0))
        entrywise = EntrywiseGrid(grid, entrywise.n_dims)
    return entrywise

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private means of sparse rows: one estimator for four mechanisms.

`plan_sparse_mean` takes the public facts of a fit and returns the plan of a mechanism: a noisy
sum or a histogram of touched columns (`skdp.location._sparse_noisy`), or few noisy measurements
(`skdp.location._compressed_sensing`).
"""

import math
from numbers import Integral
from typing import Literal, Self

import numpy as np
from scipy import sparse

from skdp._counted import check_groups, count_rows, counts_of, hidden_count, largest_weight
from skdp._gate import Doubts, open_gate
from skdp._rows.base import L2Ball, check_radius
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    StrOptions,
    effective_n_threads,
    fit_context,
    validate_private_data,
)
from skdp._typing import Adjacency, Budget, MatrixLike, Seed, VectorLike
from skdp.location._base import MeanEstimator
from skdp.location._compressed_sensing import plan_sketch
from skdp.location._mean import say_of_edge
from skdp.location._sparse_noisy import (
    CHOICES,
    SparseMeanProblem,
    plan_auto,
    plan_histogram,
    plan_projection,
    plan_soft_threshold,
    sparse_rows,
)
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.laws.calibration import mu_of_all

PLANS = {
    "soft-threshold": plan_soft_threshold,
    "projection": plan_projection,
    "compressed-sensing": plan_sketch,
    "histogram": plan_histogram,
}
SPARSE_MEANS = tuple(PLANS)
#: vectors with an entry for every feature are not made for more features
MOST_FEATURES = 2**31
_SKETCH = ("compressed-sensing",)
#: parameters that not every mechanism understands: which do, and what they are by default
_FOREIGN = {
    "projection": (("soft-threshold", "projection", "compressed-sensing"), "ksupport"),
    "measurement": (_SKETCH, "auto"),
    "n_measurements": (_SKETCH, None),
    "recovery": (_SKETCH, "auto"),
    "solver": (_SKETCH, "auto"),
}


def plan_sparse_mean(mechanism, problem):
    """Plan a private mean of sparse rows, from public numbers.

    Parameters
    ----------
    mechanism : {"auto", "soft-threshold", "projection", "compressed-sensing", "histogram"}
        "auto" is "soft-threshold", with Laplace noise also where there is a delta, if that
        is predicted to do less harm than Gaussian noise.
    problem : SparseMeanProblem
        Public facts.

    Returns
    -------
    plan : object
        Frozen, with `mechanism`, the `delta` that it may spend, and `run(curator)`, which
        returns a `SparseEstimate`. The curator holds rows of `sparse_rows`.

    Raises
    ------
    ValueError
        If there is no such mechanism, or it does not go with the public facts.
    """
    if mechanism != "histogram" and problem.n_features > MOST_FEATURES:
        raise ValueError(
            f"mechanism={mechanism!r} makes vectors with a number for each of the "
            f"{problem.n_features} features, which does not fit in memory; use "
            "mechanism='histogram', or hash the features to fewer."
        )
    plan = PLANS.get(mechanism, plan_auto)
    if mechanism == "auto":
        mechanism = "soft-threshold"
    if mechanism not in PLANS:
        raise ValueError(f"mechanism must be one of {('auto', *PLANS)}; got {mechanism!r}.")
    for name, (owners, default) in _FOREIGN.items():
        given = getattr(problem, name)
        if given != default and mechanism not in owners:
            raise ValueError(
                f"{name} is a parameter of mechanism {' or '.join(map(repr, owners))}; got "
                f"{name}={given!r} with mechanism={mechanism!r}."
            )
    return plan(problem)


class DPSparseMeanEstimator(MeanEstimator):
    """Differentially private mean of rows with few non-zeros: text, one-hot tables, clicks.

    Rows are reduced to a public number of non-zeros and clipped to a public ball. Their sum is
    released with noise. Most of the noise is then removed at no cost: a nearly sparse vector, or a
    mean of sparse rows, can be recovered from noise of a much larger norm.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0.
    delta : float, default=1e-6
        Privacy budget in [0, 1); at 0 the noise is Laplace noise, and `sparsity` is needed.
    mechanism : {"auto", "soft-threshold", "projection", "compressed-sensing", "histogram"}, \
            default="auto"
        "soft-threshold": Gaussian or (at delta 0) Laplace noise, then the soft threshold of
        least estimated risk [2]_. "projection": the same noise, then the projection on all
        means of sparse rows [1]_, which "soft-threshold" makes too if it knows the sparsity.
        "compressed-sensing": few noisy measurements of the mean,
        from which it is recovered [1]_; less accurate, for uploads of few numbers.
        "histogram": noise on the features that some row has, and a threshold, for
        dictionaries that are too large for a vector. "auto": "soft-threshold", with Laplace
        noise, and no delta spent, also where that is predicted to do less harm.
    solver : {"auto", "cvxpy", "first-order"}, default="auto"
        "compressed-sensing": what solves the program of `recovery`. "auto" is "cvxpy" up to
        10,000 for measurements times features, for `recovery` "equality" up to 50,000, and
        "first-order" beyond.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in the presence of a row ("add-remove", where the number of rows is
        released first; otherwise it is public). See :ref:`adjacency`.
    data_norm : float, default=1.0
        Public radius: longer rows are scaled down to this Euclidean norm.
    sparsity : int, default=None
        Public number of non-zero features that a row may have; of longer rows only the largest
        entries count. More than there are features means all of them, None any number.
        "projection" and "histogram" need it, the others gain by it.
    nonnegative : bool, default=False
        Whether negative entries are dropped, of the rows and of what is released. Under
        "replace-one" the noise is then lower by the factor sqrt(2), and half of it is dropped.
    projection : {"ksupport", "l1l2", "l1"}, default="ksupport"
        With `sparsity`: the set that is projected on. The hull of all sparse rows is
        the ball of the k-support norm; the others are larger.
    measurement : {"auto", "gaussian", "sparse-sign", "hadamard"}, default="auto"
        "compressed-sensing": the public measurement matrix. Its columns are random
        directions, or eight random signs each, or parts of those of a Hadamard matrix. "auto"
        is "gaussian" up to a million entries, and "sparse-sign" beyond.
    n_measurements : int, default=None
        "compressed-sensing": number of measurements, at most `n_features_in_`. None chooses
        about ``n_samples * epsilon * sqrt(sparsity)``, from public quantities, and no more than
        half of the features (of one feature, one). Too few cost accuracy, as
        `error_estimate_` tells, but no privacy.
    recovery : {"auto", "constrained", "denoising", "equality"}, default="auto"
        "compressed-sensing": the program of recovery. Least squares in an l1 ball (needs
        `sparsity`); least l1 norm up to the noise; least l1 norm, which fits the noise [1]_.
        "auto": the better of the first two by their estimated errors, or the second.
    sparse_output : bool, default=False
        Whether `location_` is sparse.
    max_weight : float, default=None
        Public bound on weights of rows, in [1e-50, 1e50]; larger weights are clipped to it. None:
        `fit` takes no weights (:ref:`sample_weight`).
    budget : PrivacyBudget, default=None
        A budget shared by several fits. Each fit is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise reproducible, voids
        the guarantee towards anybody who knows it, and warns.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,) or CSR array of shape (1, n_features)
        The released mean.
    mechanism_ : str
        The mechanism that ran.
    error_estimate_ : float
        Euclidean distance to expect between `location_` and the mean of the admitted rows,
        from released and public numbers: Stein's estimate of the risk, or what is
        predicted for the worst rows, at most `data_norm` (sqrt(2) times that for `recovery`
        "equality").
    threshold_ : float or None
        Magnitude that a noisy entry had to exceed; None if there was no threshold.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    Warns
    -----
    NoisyEstimateWarning
        If the mean lies at the edge of `data_norm`, by what was released.

    See Also
    --------
    DPMean : Private mean of dense rows.
    DPLogisticRegression : Private classification.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean over its rows to
    every sum or count. The number of rows or groups (a secret under add-remove), the number and
    names of features and all parameters are public. Rows are in the unit ball and have at most s
    non-zeros after they were cut, whatever they were before. Sensitivity of their sum: 1 under
    zero-out, 2 under replace-one (l2), sqrt(2) if no entry is negative; sqrt(s) and 2 sqrt(s) in
    l1. "compressed-sensing" sums the measurements of rows, clipped to a public norm C: C and 2 C,
    whatever the matrix. All that follows is post-processing. Timing, exceptions on malformed input
    and `score` on private data are not covered.

    References
    ----------
    .. [1] B. Ghazi, C. Guzmán, P. Kamath, R. Kumar and P. Manurangsi, "Differentially
       private optimization with sparse gradients", NeurIPS 2024. Algorithms 1 and 2.
    .. [2] D. L. Donoho and I. M. Johnstone, "Adapting to unknown smoothness via wavelet
       shrinkage", JASA, 1995.
    .. [3] A. Argyriou, R. Foygel and N. Srebro, "Sparse prediction with the k-support norm",
       NeurIPS 2012.
    .. [4] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential
       privacy", ICML 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from skdp import DPSparseMeanEstimator
    >>> words = np.random.default_rng(0).zipf(1.5, size=(5000, 8)) % 2**16
    >>> rows = np.repeat(np.arange(5000), 8)
    >>> X = sparse.csr_array((np.ones(40_000), (rows, words.ravel())), shape=(5000, 2**16))
    >>> mean = DPSparseMeanEstimator(data_norm=3.0, nonnegative=True, random_state=0).fit(X)
    >>> mean.mechanism_, mean.error_estimate_ < 0.2
    ('soft-threshold', True)
    >>> mean.privacy_spent_[0] <= 1.0
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "mechanism": [StrOptions({"auto", *SPARSE_MEANS})],
        **{name: [StrOptions(set(allowed))] for name, allowed in CHOICES.items()},
        "sparsity": [Interval(Integral, 1, None, closed="left"), None],
        "nonnegative": ["boolean"],
        "n_measurements": [Interval(Integral, 1, None, closed="left"), None],
        "sparse_output": ["boolean"],
        "max_weight": SCALE_OR_NONE,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        mechanism: Literal[
            "auto", "soft-threshold", "projection", "compressed-sensing", "histogram"
        ] = "auto",
        solver: Literal["auto", "cvxpy", "first-order"] = "auto",
        adjacency: Adjacency = "replace-one",
        data_norm: float = 1.0,
        sparsity: int | None = None,
        nonnegative: bool = False,
        projection: Literal["ksupport", "l1l2", "l1"] = "ksupport",
        measurement: Literal["auto", "gaussian", "sparse-sign", "hadamard"] = "auto",
        n_measurements: int | None = None,
        recovery: Literal["auto", "constrained", "denoising", "equality"] = "auto",
        sparse_output: bool = False,
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.mechanism = mechanism
        self.solver = solver
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.sparsity = sparsity
        self.nonnegative = nonnegative
        self.projection = projection
        self.measurement = measurement
        self.n_measurements = n_measurements
        self.recovery = recovery
        self.sparse_output = sparse_output
        self.max_weight = max_weight
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        *,
        groups: VectorLike | None = None,
        sample_weight: VectorLike | None = None,
    ) -> Self:
        """Release the mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Private rows.
        y : None
            Ignored.
        groups : array-like or RowStream of shape (n_samples,), default=None
            Whose row it is: numbers, or text. All rows of a group are protected together, whatever
            their number, and count as one row does, each as one over their number: what is released
            is the mean over groups of the means of their rows. The number of groups is public. Not
            for "histogram". Beside a stream of rows also one of identifiers, or an array. None
            protects rows. See :ref:`groups`.
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of the rows, finite and not negative; only with `max_weight`. Weights
            beyond that count as that. A fifth of epsilon goes to their noisy total. See
            :ref:`sample_weight`.

        Returns
        -------
        self : DPSparseMeanEstimator
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable; nothing has been released then.
        BudgetError
            If a shared budget has less left, or protects groups and there are none.
        """
        check_groups(self, groups)
        # 1. price, before any data
        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta)
        # 2. validate
        X = validate_private_data(self, X, streams=True, accept_sparse="csr", order="C")
        weighed = largest_weight(self) is not None
        if self.mechanism == "histogram" and (groups is not None or weighed):
            what = "sample_weight" if groups is None else "groups"
            raise ValueError(
                f"{what} must be None with mechanism='histogram': its threshold rests on how many "
                f"columns one row touches, each of them once; got {what}. Use 'auto'."
            )
        # 3. plan, from public facts
        n_features, ball = X.shape[1], L2Ball(check_radius(self.data_norm))

        def planned(n_rows):
            problem = self._problem(epsilon, delta, n_rows, n_features)
            return problem, plan_sparse_mean(self.mechanism, problem)

        hidden = hidden_count(self)
        (n_rows, unit), whose = count_rows(groups, X, hidden, sample_weight, planned)
        problem, plan = planned(n_rows)
        doubts = Doubts(self)
        # 4. gate, 5. run
        with open_gate(
            self,
            lambda: sparse_rows(
                X,
                ball,
                problem.sparsity,
                problem.nonnegative,
                effective_n_threads(),
                counts_of(whose),
            ),
            n_rows=n_rows,
            unit=unit,
            delta=plan.delta,
            mu=mu_of_all(epsilon, plan.delta) if plan.gaussian else None,
            doubts=doubts,
        ) as curator:
            estimate = plan.run(curator)
            if estimate.error is not None:
                values = estimate.values
                values = values[1] if isinstance(values, tuple) else values
                noise = estimate.error / math.sqrt(max(1, len(values)))
                say_of_edge(doubts, values, noise, "data_norm", "")
        # 6. attributes: what was released, and what is public
        self.location_ = self._location(estimate.values, n_features)
        self.mechanism_ = plan.mechanism
        self.error_estimate_ = self._in_data_units(estimate.error)
        self.threshold_ = self._in_data_units(estimate.threshold)
        return self

    def _problem(self, epsilon, delta, n_rows, n_features):
        """Return the public facts of a fit."""
        if n_features > MOST_FEATURES and not self.sparse_output:
            raise ValueError(
                f"sparse_output must be True for {n_features} features: a dense location would "
                "not fit in memory; got sparse_output=False."
            )
        return SparseMeanProblem(
            n_rows=n_rows,
            n_features=n_features,
            epsilon=epsilon,
            delta=delta,
            adjacency=self.adjacency,
            sparsity=self.sparsity,
            nonnegative=bool(self.nonnegative),
            projection=self.projection,
            measurement=self.measurement,
            n_measurements=self.n_measurements,
            recovery=self.recovery,
            solver=self.solver,
        )

    def _in_data_units(self, number):
        return None if number is None else float(number * self.data_norm)

    def _location(self, values, n_features):
        """Return the released mean in data units, as an array or as one sparse row."""
        if isinstance(values, tuple):
            columns, values = values
        else:
            columns = np.flatnonzero(values) if self.sparse_output else slice(None)
            values = values[columns]
        values = values * self.data_norm
        if self.sparse_output:
            row = np.zeros(len(values), dtype=np.int64)
            return sparse.csr_array((values, (row, columns)), shape=(1, n_features))
        location = np.zeros(n_features)
        location[columns] = values
        return location

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private linear regression by powers of the residual."""

from typing import Literal

from skdp._typing import Adjacency, Budget, RegressorSolver, Seed
from skdp.linear_model._regression import PrivateLinearRegressor


class DPLpRegressor(PrivateLinearRegressor):
    """Differentially private linear regression that needs no bounds on the data.

    Minimises ``sum_i |y_i - x_i coef - intercept|^p / p + l2 / 2 |coef|^2`` within a privacy
    budget. Neither rows nor targets need be bounded: their scales are drawn privately, rows
    that are far too long count less, and gradients are clipped.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0 and finite.
    delta : float, default=1e-6
        Privacy budget, in [0, 1); well below 1 / n_samples. 0 asks for pure privacy, which
        mechanism "output" with the solvers "newton" and "lbfgs" can give.
    p : {1, 2, 4, "huber"}, default=2
        Power of the residual: 2 for least squares, 1 for least absolute deviations, 4 for few
        large residuals; "huber" is 2 up to `huber_threshold`, and 1 beyond.
    quantile : float, default=0.5
        With ``p=1``: the conditional quantile that is fitted, in (0, 1); the loss is twice the
        pinball loss.
    huber_threshold : float, default=1.0
        With ``p="huber"``: in units of `target_scale_`.
    mechanism : {"auto", "gradient", "output"}, default="auto"
        What is released. "gradient": noisy clipped gradients, one a step (Gaussian). "output":
        the minimiser of a clipped and penalised loss, plus noise (Gaussian, or K-norm noise at
        delta 0). "auto" is "gradient", and at delta 0 "output".
    solver : {"auto", "accelerated", "gd", "sgd", "accelerated-one-pass", "newton", "lbfgs", \
            "phased", "localized"}, default="auto"
        "gradient": "accelerated" (Nesterov), "gd" (plain), "sgd" (a secret random batch a
        step; for many rows), or "accelerated-one-pass" (every row is in one step [1]_).
        "output": "newton", "lbfgs", "phased" (several noisy minimisers, each held near the one
        before), or "localized" (the same on disjoint batches [1]_). "auto" chooses from public
        quantities.
    adjacency : {"replace-one", "zero-out"}, default="replace-one"
        Which data sets the claim cannot tell apart: those that differ in one row and its
        target ("replace-one"), or in one row that is replaced by a null row which contributes
        nothing ("zero-out", half the noise). The number of rows is public in both.
    data_norm : float, default=None
        Public unit of length R of the rows, in [1e-50, 1e50]; longer rows are scaled down to
        it together with their targets. None draws it privately, such that about a quarter of
        the rows are longer, and scales down rows longer than 6 R.
    target_scale : float, default=None
        Public unit B of the targets, in [1e-50, 1e50], around 0; nothing is clipped to it. None
        draws the median of the targets privately (with `fit_intercept`), and a distance from
        it that about a quarter of them exceed.
    l2 : float, default=0.0
        Strength of the penalty, not negative; for ``p=2`` it is the `alpha` of scikit-learn's
        `Ridge`. "output", whose privacy rests on a penalty, chooses one if it is 0. "gradient"
        leaves the intercept out of the penalty, "output" must not.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is inside the guarantee.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of R. None is 0.1.
    coef_bound : float, default=None
        Radius of the ball that the coefficients stay in, where the intercept counts as
        ``(intercept_ - target_center_) / (intercept_scaling * R)``. None for no constraint.
    clipping_norm : float or "private", default=None
        Bound on the norm of one row's gradient, for rows in units of R and targets in units of
        B: the loss goes on linearly where its gradient would be longer. "private" draws it at
        a tenth of epsilon, such that few gradients at zero coefficients are longer, or leaves
        it as for None if there are too few rows. None takes a public number. For powers above
        1 that grows with the signal, and the bias that clipping makes with skewed noise
        vanishes; for ``p=1`` and "huber" it stays short.
    moment_order, moment_bound : float, default=None
        Order k, greater than 1, and a public bound r, in the units of the data, on
        ``(E |gradient|^k)^(1/k)``: the clipping norm is then the one that balances bias and
        noise [1]_. Both or neither.
    growth, growth_order : {"halving", "doubling"} or None, float, default=None and 2.0
        Solvers "localized" and "accelerated-one-pass": restarts on further rows, with half the
        radius each ("halving"), or twice as many rows ("doubling", where `growth_order` is a
        lower bound on the power by which the loss of new rows grows) [1]_.
    failure_probability : float, default=None
        Solvers "localized" and "accelerated-one-pass": several runs on disjoint parts of the
        rows, of which the most central result is taken. None makes one run.
    step_size : float, default=None
        "gradient": step along the gradient of the mean loss, in units of R and B. None chooses
        it, and shortens it where released gradients call for it.
    max_iter : int, default=None
        "gradient": number of steps; all of them are made. None chooses it from public
        quantities.
    batch_size : float, default=None
        Solver "sgd": expected number of rows in a batch; asks for that solver.
    budget : PrivacyBudget, default=None
        A budget that several fits share: each is charged (epsilon, delta) before it reads a
        row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise
        reproducible, voids the guarantee towards whoever knows it, and warns.
    verbose : int, default=0
        1 prints the plans before the first release, and how many releases were made: public
        numbers only.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients.
    intercept_ : float
        Intercept; 0.0 without one.
    data_norm_, target_scale_, target_center_ : float
        R, B and the origin of the targets that were used, given or released. If there are too
        few rows for a draw at a fifth of epsilon (about 3000 / epsilon), R is the square root
        of the number of features, as for standardised ones, B is 1, the origin 0, and the
        ledger has no draws.
    n_iter_ : int
        Number of steps or phases, a public number.
    ledger_ : Ledger
        What was released, at what price.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent; never more than granted.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    DPLogisticRegression : Classification.
    DPQuantile : Private quantiles, without features.
    sklearn.linear_model.Ridge : Without privacy.
    sklearn.linear_model.QuantileRegressor : Without privacy.

    Notes
    -----
    Privacy. One row and its target are protected, at (epsilon, delta) and the chosen adjacency.
    Public: the parameters, the number of rows, and the number and names of features. Scales and
    a private threshold are drawn by ranks from public grids (1e-50 to 1e50 for the scales),
    purely privately; their prices are on the ledger and part of epsilon. Given them every
    row, its constant feature and its target are brought into units, and the derivative of the
    loss in the prediction is clipped at ``clipping_norm / |row|``: the clipped loss is convex,
    and one row moves the sum of gradients by at most one or two clipping norms, however large
    its target. What follows is as for `DPLogisticRegression`. Not covered: timing, exceptions
    on malformed input, `score` on private data, and the choice of parameters by looking at
    private data. Proofs are in the user guide.

    A clip that is short against the gradients makes the fit robust: for ``p=2`` it then
    estimates something between the conditional mean and median, which differ if noise is
    skewed. Raise `clipping_norm` with the number of rows, or give moments, for the mean.

    References
    ----------
    .. [1] D. Xu, M. Ding, Z. Xiang, J. Xu and D. Wang, "Beyond ordinary Lipschitz
       constraints: differentially private stochastic optimization with Tsybakov noise
       condition", 2025, Algorithms 3 to 7 and Theorem 6, with corrections.
    .. [2] F. McSherry and K. Talwar, "Mechanism design via differential privacy",
       FOCS 2007, Theorem 6.
    .. [3] J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", JRSS B, 2022,
       Corollary 2.

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
        p: float | Literal["huber"] = 2,
        quantile: float = 0.5,
        huber_threshold: float = 1.0,
        mechanism: Literal["auto", "gradient", "output"] = "auto",
        solver: RegressorSolver = "auto",
        adjacency: Adjacency = "replace-one",
        data_norm: float | None = None,
        target_scale: float | None = None,
        l2: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        coef_bound: float | None = None,
        clipping_norm: float | Literal["private"] | None = None,
        moment_order: float | None = None,
        moment_bound: float | None = None,
        growth: Literal["halving", "doubling"] | None = None,
        growth_order: float = 2.0,
        failure_probability: float | None = None,
        step_size: float | None = None,
        max_iter: int | None = None,
        batch_size: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.p = p
        self.quantile = quantile
        self.huber_threshold = huber_threshold
        self.mechanism = mechanism
        self.solver = solver
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.target_scale = target_scale
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.coef_bound = coef_bound
        self.clipping_norm = clipping_norm
        self.moment_order = moment_order
        self.moment_bound = moment_bound
        self.growth = growth
        self.growth_order = growth_order
        self.failure_probability = failure_probability
        self.step_size = step_size
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

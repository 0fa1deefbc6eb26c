# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private logistic regression."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skdp._classification import SoftmaxClassifierMixin
from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._typing import Adjacency, Budget, ClassifierMechanism, ClassifierSolver, Seed
from skdp.linear_model._classifier import PrivateLinearClassifier


class DPLogisticRegression(SoftmaxClassifierMixin, PrivateLinearClassifier):
    """Differentially private logistic regression, binary and multinomial.

    Minimises ``C * sum_i log-loss(y_i, x_i coef + intercept) + |coef|^2 / 2`` within a
    privacy budget, by one of several mechanisms.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0 and finite.
    delta : float, default=1e-6
        Privacy budget, in [0, 1); well below 1 / n_samples. 0 asks for pure privacy,
        which every mechanism but "gradient" can give. "exponential" is pure and spends
        no delta, unless by solver "frank-wolfe".
    mechanism : {"auto", "gradient", "objective", "output", "exponential"}, default="auto"
        What is released. "gradient": noisy clipped gradients, one a step (Gaussian).
        "objective": the minimiser of the loss plus a random linear term (Gaussian, or
        K-norm noise at delta 0). "output": the minimiser of a penalised loss, plus noise
        (likewise, or Laplace noise). "exponential": a random draw that favours small losses
        and needs `coef_bound`, or many small ones (solver "frank-wolfe"). "auto" is
        "gradient", and at delta 0 "objective", or "output" if `sparsity` makes Laplace
        noise the better one.
    solver : {"auto", "accelerated", "gd", "newton", "lbfgs", "cvxpy", \
            "phased", "localized", "one-pass", "exact", "net", "sgd", "lazy-sgd", \
            "bias-reduced", "accelerated-one-pass", "frank-wolfe"}, default="auto"
        "gradient": "accelerated" (Nesterov), "gd" (plain), "sgd" (Nesterov steps on a
        secret random batch each; for many rows), "lazy-sgd" (plain ones, whose time does
        not grow with the number of features; for very sparse rows), "bias-reduced"
        (cleaned sparse gradients; for research [7]_), or "accelerated-one-pass" (every row is
        in one step [9]_). "objective": "newton",
        "lbfgs". "output": these, "cvxpy", "phased" (several noisy minimisers, each
        held near the one before; no strong convexity needed), "localized" (the same on
        disjoint batches, for the loss of new rows [9]_), or "one-pass" (linear time; every
        row is read once). "exponential": "exact" for at most 5 coefficients, "net", a
        fixed set of candidates, or "frank-wolfe", steps along a coordinate each [8]_, which
        leave most coefficients zero. "auto" is "accelerated", or chooses by the number
        of coefficients.
    adjacency : {"replace-one", "zero-out"}, default="replace-one"
        Which data sets the claim cannot tell apart: those that differ in one row
        ("replace-one"), or in one row that is replaced by a null row which contributes
        nothing ("zero-out", half the noise). The number of rows is public in both.
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, in [1e-100, 1e100]. Longer rows are
        scaled down to it, in `fit` only. It must not be computed from private data.
    classes : array-like of shape (n_classes,), default=None
        Public label set. Rows with another label contribute nothing; a class without
        rows is allowed. None reads the set from `y`, and the ledger says so.
    C : float, default=np.inf
        Inverse strength of the penalty, as in scikit-learn. With ``np.inf`` "gradient"
        and "exponential" have none; "objective" and "output", whose privacy rests on
        one, choose it from public quantities. "gradient" leaves the intercept out of the
        penalty, the others must not.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is inside the guarantee: rows are bounded
        together with the constant feature.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small one
        takes less of a row's gradient. None is 0.1.
    coef_bound : float, default=None
        Radius of the ball that the coefficients stay in, where the intercept counts as
        ``intercept_ / (intercept_scaling * data_norm)``. None for no constraint.
    localize : bool, default=False
        "exponential" with finite `C`: spend half of epsilon on a coarse minimiser, and
        draw near it.
    clipping_norm : float, default=None
        "gradient": bound on the norm of one row's gradient, for rows in units of
        `data_norm`; solver "frank-wolfe": on its largest entry; solver "localized", two
        classes: the loss goes on linearly where its gradient would be longer. None chooses
        it from public quantities.
    step_size : float, default=None
        "gradient": step along the gradient of the mean loss, for rows in units of
        `data_norm`. None chooses it, and shortens it where released gradients call for
        it.
    max_iter : int, default=None
        "gradient" and solver "frank-wolfe": number of steps; all of them are made, none
        depends on the data. None chooses it from public quantities.
    batch_size : float, default=None
        Solvers "sgd" and "lazy-sgd": rows of a batch, the expected number for Poisson
        batches; at most n_samples. "bias-reduced": of its smallest batches. None chooses it
        from public quantities.
    sampling : {"poisson", "without-replacement", "with-replacement"}, default="poisson"
        Solver "sgd": every row is in a batch by its own coin; or the batch is a random subset
        of fixed size; or so many independent draws, which with the step lengths of [1]_,
        Algorithm 1, and the last iterate is that algorithm (``batch_size=1,
        max_iter=n_samples**2`` is its setting). Fixed sizes need more noise.
    momentum : bool, default=True
        Solver "sgd": whether steps are accelerated (Nesterov). Plain ones need more of them,
        or longer ones.
    preprocess : {"center", "center-scale", "center-clip"} or None, default=None
        "gradient": what is done to the rows first, within the same budget, so that their
        common offset costs nothing. "center" subtracts a noisy mean. "center-scale"
        subtracts a mean whose error does not grow with the offset, and takes a private
        radius that few rows exceed as the unit of length. "center-clip" clips rows to that
        radius as well; gradients need no clipping then. `coef_` and `intercept_` are for
        the rows as they are. Dense rows only.
    preprocess_share : float, default=0.05
        Share, less than a half, of the squared Gaussian-DP budget that the centre gets; a
        radius gets twice that share of epsilon.
    sparsity : int, default=None
        Public number of non-zero features that a row may have: of longer rows the largest
        entries count. None for any number. Laplace noise ("output" at delta 0) and solver
        "bias-reduced" rest on it.
    linf_projection : bool, default=False
        "output" with `coef_bound`: whether noisy coefficients are brought into the ball by
        soft-thresholding, which is the projection in the largest coordinate [7]_, and leaves
        few of them; otherwise they are scaled.
    l1_bound : float, default=None
        Solver "frank-wolfe": bound on the sum of the absolute coefficients, where the
        intercept counts as for `coef_bound`. None chooses it from public quantities.
    oracle : {"soft-threshold", "projection", "sketch"}, default="soft-threshold"
        Solver "bias-reduced": how noisy sparse gradients are cleaned. By the threshold of
        least estimated risk; by projection on the averages of sparse gradients; or by
        releasing few measurements, and recovery. The last two need `sparsity`.
    failure_probability : float, default=None
        Solver "bias-reduced": several runs are made and one is chosen privately, so that the
        bound of [7]_ fails with this probability at most. "localized" and
        "accelerated-one-pass": as many runs on disjoint parts of the rows, and the result with
        the least median distance to the others. None makes one run.
    growth : {"halving", "doubling"} or None, default=None
        Solvers "localized" and "accelerated-one-pass": run again on further rows from the
        last result, in a ball of half the radius, with equal numbers of rows ("halving")
        or twice as many each time ("doubling"). Faster where the loss of new rows grows like
        a power of the distance from its minimiser [9]_.
    growth_order : float, default=2.0
        With ``growth="doubling"``: a lower bound, greater than 1, on that power.
    budget : PrivacyBudget, default=None
        A budget that several fits share: each is charged (epsilon, delta) before it reads a
        row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise
        reproducible, voids the guarantee towards whoever knows it, and warns.
    verbose : int, default=0
        1 prints the plan before the first release, and how many releases were made: public
        numbers only.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    classes_ : ndarray of shape (n_classes,)
        Label set.
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
    DPHingeSVM : The same with the hinge loss.
    DPMean : Private mean.
    privacy_spent : Add up several fits.
    sklearn.linear_model.LogisticRegression : Without privacy.

    Notes
    -----
    Privacy. One row is protected, at (epsilon, delta) and the chosen adjacency. Public:
    the parameters, the number of rows, the number and names of features, and the label
    set. The intercept is inside the guarantee, and several classes share one budget. Not
    covered: timing, exceptions on malformed input, `score` on private data, and the
    choice of parameters by looking at private data.

    "gradient" [1]_: a row's gradient is clipped to norm c, so that the sum moves by at most
    c (zero-out) or 2c (replace-one); T releases with noise of standard deviation
    ``sensitivity * sqrt(T) / mu`` are exactly mu-Gaussian-DP together [2]_, and mu is the
    largest that implies (epsilon, delta) [3]_. "objective" [4]_: a strongly convex
    objective with a random linear term has a minimiser whose density is known; the
    minimiser is computed to a certified precision, and noise covers the rest. "output":
    the minimiser of a sum with strength of convexity r moves by at most
    ``gradient sensitivity / r``. "exponential" [1]_: a draw with density
    ``exp(-loss / temperature)``, the temperature being the range of a row's loss over
    the ball, over epsilon. Solver "sgd": a secret random batch a step; the noise is the least
    that composed privacy loss distributions of a dominating pair allow [5]_. Solver
    "frank-wolfe" [8]_: a signed coordinate is drawn in every step, by a gradient whose entries
    move by at most c or 2c; draws compose by the range of their privacy loss. `preprocess`
    follows [6]_, Algorithms 3 ("center") and 2 ("center-clip"). Proofs, with what is wrong
    in print, are in the user guide.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.
    .. [2] J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", JRSS B, 2022,
       Corollary 2.
    .. [3] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential
       privacy", ICML 2018, Theorem 8.
    .. [4] D. Kifer, A. Smith and A. Thakurta, "Private convex empirical risk
       minimization and high-dimensional regression", COLT 2012.
    .. [5] Y. Zhu, J. Dong and Y.-X. Wang, "Optimal accounting of differential privacy via
       characteristic function", AISTATS 2022.
    .. [6] Z. Sun, A. T. Suresh and A. K. Menon, "The importance of feature preprocessing for
       differentially private linear optimization", ICLR 2024.
    .. [7] B. Ghazi, C. Guzmán, P. Kamath, R. Kumar and P. Manurangsi, "Differentially
       private optimization with sparse gradients", NeurIPS 2024.
    .. [8] K. Talwar, A. Thakurta and L. Zhang, "Nearly optimal private LASSO", NeurIPS 2015.
    .. [9] D. Xu, M. Ding, Z. Xiang, J. Xu and D. Wang, "Beyond ordinary Lipschitz
       constraints: differentially private stochastic optimization with Tsybakov noise
       condition", 2025.

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

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        mechanism: ClassifierMechanism = "auto",
        solver: ClassifierSolver = "auto",
        adjacency: Adjacency = "replace-one",
        data_norm: float = 1.0,
        classes: ArrayLike | None = None,
        C: float = np.inf,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        coef_bound: float | None = None,
        localize: bool = False,
        clipping_norm: float | None = None,
        step_size: float | None = None,
        max_iter: int | None = None,
        batch_size: float | None = None,
        sampling: Literal["poisson", "without-replacement", "with-replacement"] = "poisson",
        momentum: bool = True,
        preprocess: Literal["center", "center-scale", "center-clip"] | None = None,
        preprocess_share: float = 0.05,
        sparsity: int | None = None,
        linf_projection: bool = False,
        l1_bound: float | None = None,
        oracle: Literal["soft-threshold", "projection", "sketch"] = "soft-threshold",
        failure_probability: float | None = None,
        growth: Literal["halving", "doubling"] | None = None,
        growth_order: float = 2.0,
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
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.coef_bound = coef_bound
        self.localize = localize
        self.clipping_norm = clipping_norm
        self.step_size = step_size
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.sampling = sampling
        self.momentum = momentum
        self.preprocess = preprocess
        self.preprocess_share = preprocess_share
        self.sparsity = sparsity
        self.linf_projection = linf_projection
        self.l1_bound = l1_bound
        self.oracle = oracle
        self.failure_probability = failure_probability
        self.growth = growth
        self.growth_order = growth_order
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, n_classes):
        return LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)

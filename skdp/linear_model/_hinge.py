# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The differentially private support vector machine: hinge loss, no derivative needed."""

from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skdp._losses.classification import HingeLoss
from skdp._sklearn import Interval
from skdp._typing import Adjacency, Budget, ClassifierMechanism, ClassifierSolver, Seed
from skdp.linear_model._classifier import PrivateLinearClassifier


class DPHingeSVM(PrivateLinearClassifier):
    """Differentially private linear support vector classification.

    Minimises ``C * sum_i hinge(y_i, x_i coef + intercept) + |coef|^2 / 2`` within a
    privacy budget. For two classes the hinge is ``max(0, 1 - y z)`` with y = -1 or 1; for
    more it is that of Crammer and Singer, ``max(0, 1 + max_k z_k - z_y)``, k other than y.

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
        K-norm noise at delta 0), for the smoothed hinge only. "output": the minimiser
        of a penalised loss, plus noise (likewise, or Laplace). "exponential": a random draw that
        favours small losses and needs `coef_bound`, or many small ones ("frank-wolfe").
        "auto" is "gradient"; at delta 0 it is "output", or "objective" if the hinge is
        smoothed.
    solver : {"auto", "accelerated", "gd", "newton", "lbfgs", "cvxpy", \
            "phased", "localized", "one-pass", "exact", "net", "sgd", "lazy-sgd", \
            "bias-reduced", "accelerated-one-pass", "frank-wolfe"}, default="auto"
        "gradient": "accelerated" (Nesterov), "gd" (subgradients, with the step rule of
        non-smooth losses), "sgd" (Nesterov steps on a secret random batch each; for many
        rows), "lazy-sgd" (plain ones, whose time does not grow with the number of
        features; for very sparse rows), "bias-reduced" (cleaned sparse gradients; for
        research [4]_), or "accelerated-one-pass" (every row is in one step [6]_).
        "objective": "newton", "lbfgs". "output": these, "cvxpy",
        "phased" (several noisy minimisers, each held near the one before; no strong
        convexity needed), "localized" (the same on disjoint batches, for the loss of new
        rows [6]_), or "one-pass" (linear time; every row is read once; for the
        smoothed hinge). "exponential": "exact" for at most 5 coefficients, "net", a
        fixed set of candidates, or "frank-wolfe", steps along a coordinate each [5]_, which
        leave most coefficients zero (for the smoothed hinge). "auto" chooses from public
        numbers: "gd" while noise dominates, and "accelerated" beyond or with more features
        than rows; otherwise by the number of coefficients.
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
        one, choose it from public quantities. Solver "accelerated" leaves the intercept
        out of the penalty, the others must not.
    smoothing : float, default=None
        Temperature T of the smoothed hinge ``T log(1 + exp((1 - y z) / T))``, which lies
        above the hinge by at most ``T log(n_classes)``. None is the hinge itself.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is inside the guarantee: rows are bounded
        together with the constant feature.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small one
        takes less of a row's gradient. None is 0.1.
    coef_bound : float, default=None
        Radius of the ball that the coefficients stay in, where the intercept counts as
        ``intercept_ / (intercept_scaling * data_norm)``. None for no constraint, but for
        solver "gd", whose step rule needs one: 30 / `data_norm`.
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
        soft-thresholding, which is the projection in the largest coordinate [4]_, and leaves
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
        bound of [4]_ fails with this probability at most. "localized" and
        "accelerated-one-pass": as many runs on disjoint parts of the rows, and the result with
        the least median distance to the others. None makes one run.
    growth : {"halving", "doubling"} or None, default=None
        Solvers "localized" and "accelerated-one-pass": run again on further rows from the
        last result, in a ball of half the radius, with equal numbers of rows ("halving")
        or twice as many each time ("doubling"). Faster where the loss of new rows grows like
        a power of the distance from its minimiser [6]_.
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
    DPLogisticRegression : The same with the logistic loss, and probabilities.
    sklearn.svm.LinearSVC : Without privacy.

    Notes
    -----
    Privacy. One row is protected, at (epsilon, delta) and the chosen adjacency. Public:
    the parameters, the number of rows, the number and names of features, and the label
    set. The intercept is inside the guarantee, and several classes share one budget. Not
    covered: timing, exceptions on malformed input, `score` on private data, and the
    choice of parameters by looking at private data.

    The hinge has no second derivative, and "objective" has no proof for it: smoothing it
    enough for that mechanism costs an error that grows with the square root of the
    number of rows ([1]_, Appendix A), where noisy subgradients pay nothing for the kink.
    A subgradient is a fixed function of coefficients and row: 0 at the kink, the first
    class of a tie. Otherwise mechanisms and proofs are those of `DPLogisticRegression`;
    `preprocess` follows [3]_.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.
    .. [2] K. Crammer and Y. Singer, "On the algorithmic implementation of multiclass
       kernel-based vector machines", JMLR, 2001.
    .. [3] Z. Sun, A. T. Suresh and A. K. Menon, "The importance of feature preprocessing for
       differentially private linear optimization", ICLR 2024.
    .. [4] B. Ghazi, C. Guzmán, P. Kamath, R. Kumar and P. Manurangsi, "Differentially
       private optimization with sparse gradients", NeurIPS 2024.
    .. [5] K. Talwar, A. Thakurta and L. Zhang, "Nearly optimal private LASSO", NeurIPS 2015.
    .. [6] D. Xu, M. Ding, Z. Xiang, J. Xu and D. Wang, "Beyond ordinary Lipschitz
       constraints: differentially private stochastic optimization with Tsybakov noise
       condition", 2025.

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
        solver: ClassifierSolver = "auto",
        adjacency: Adjacency = "replace-one",
        data_norm: float = 1.0,
        classes: ArrayLike | None = None,
        C: float = np.inf,
        smoothing: float | None = None,
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
        self.smoothing = smoothing
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
        hinge = HingeLoss(1 if n_classes == 2 else n_classes)
        return hinge if self.smoothing is None else hinge.smoothed(self.smoothing)

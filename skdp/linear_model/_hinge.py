# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The differentially private support vector machine: hinge loss, no derivative needed."""

from numbers import Real

import numpy as np

from skdp._losses.classification import HingeLoss
from skdp._sklearn import Interval
from skdp._typing import Adjacency, ArrayLike, Budget, ClassifierMechanism, Preprocess, Seed
from skdp.linear_model._classifier import PrivateLinearClassifier
from skdp.solvers.base import Solver


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
        Privacy budget, in [0, 1); well below 1 / n_samples. 0 asks for pure privacy,
        which every mechanism but "gradient" can give. "exponential" is pure and spends
        no delta, unless by solver "frank-wolfe".
    mechanism : {"auto", "gradient", "objective", "output", "exponential"}, default="auto"
        What is released. "gradient": noisy clipped gradients, one a step (Gaussian).
        "objective": the minimiser of the loss plus a random linear term (Gaussian, or
        K-norm noise at delta 0), for the smoothed hinge only. "output": the minimiser
        of a penalised loss, plus noise (likewise, or Laplace). "exponential": a random draw that
        favours small losses and needs `coef_bound`, or many small draws (solver "frank-wolfe",
        for the smoothed hinge). "auto" is that of the solver, or else "gradient"; at delta 0 it
        is "output", or "objective" if the hinge is smoothed.
    solver : str or Solver, default="auto"
        An object of :mod:`skdp.solvers` or :mod:`skdp.papers`, whose parameters are documented
        there, or the word for one with default parameters: "accelerated", "gd", "sgd",
        "lazy-sgd" (mechanism "gradient"); "objective"; "output", "phased" (mechanism "output");
        "exact", "frank-wolfe" (mechanism "exponential"). "auto" chooses by public quantities,
        and never from `skdp.papers`: "gd" while noise dominates, and "accelerated" beyond or
        with more features than rows.
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
        together with the constant feature that carries it.
    coef_bound : float, default=None
        Radius of the ball that the coefficients stay in, where the intercept counts as
        ``intercept_ / (intercept_scaling * data_norm)``, with the solver's `intercept_scaling`,
        which is 0.1 by default. None for no constraint, but for
        solver "gd", whose step rule needs one: 30 / `data_norm`.
    preprocess : {"center", "center-scale", "center-clip"} or None, default=None
        "gradient": what is done to the rows first, within the same budget, so that their
        common offset costs nothing. "center" subtracts a noisy mean. "center-scale"
        subtracts a mean whose error does not grow with the offset, and takes a private
        radius that few rows exceed as the unit of length. "center-clip" clips rows to that
        radius as well; gradients need no clipping then. `coef_` and `intercept_` are for
        the rows as they are. Dense rows only.
    max_iter : int, default=None
        Number of steps of the solvers that take steps; all of them are made, none depends on
        the data. None chooses it from public quantities.
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
    which solver is for what is in the user guide (:ref:`solvers`).

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
        data_norm: float = 1.0,
        classes: ArrayLike | None = None,
        C: float = np.inf,
        smoothing: float | None = None,
        fit_intercept: bool = True,
        coef_bound: float | None = None,
        preprocess: Preprocess | None = None,
        max_iter: int | None = None,
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
        self.preprocess = preprocess
        self.max_iter = max_iter
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, n_classes):
        hinge = HingeLoss(1 if n_classes == 2 else n_classes)
        return hinge if self.smoothing is None else hinge.smoothed(self.smoothing)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private logistic regression."""

import numpy as np

from skdp._classification import SoftmaxClassifierMixin
from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._typing import Adjacency, ArrayLike, Budget, ClassifierMechanism, Preprocess, Seed
from skdp.linear_model._classifier import PrivateLinearClassifier
from skdp.solvers.base import Solver


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
        (likewise, or Laplace). "exponential": a random draw that favours small losses and needs
        `coef_bound`, or many small draws (solver "frank-wolfe"). "auto" is that of the solver,
        or else "gradient", and at delta 0 "objective", or "output" if that has less noise.
    solver : str or Solver, default="auto"
        An object of :mod:`skdp.solvers` or :mod:`skdp.papers`, whose parameters are documented
        there, or the word for one with default parameters: "accelerated", "gd", "sgd",
        "lazy-sgd" (mechanism "gradient"); "objective"; "output", "phased" (mechanism "output");
        "exact", "frank-wolfe" (mechanism "exponential"). "auto" chooses by public quantities,
        and never from `skdp.papers`.
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
        together with the constant feature that carries it.
    coef_bound : float, default=None
        Radius of the ball that the coefficients stay in, where the intercept counts as
        ``intercept_ / (intercept_scaling * data_norm)``, with the solver's `intercept_scaling`,
        which is 0.1 by default. None for no constraint.
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

    By default a row's gradient is clipped to norm c, so that the sum moves by at most c
    (zero-out) or 2c (replace-one); T releases with noise of standard deviation
    ``sensitivity * sqrt(T) / mu`` are exactly mu-Gaussian-DP together [2]_, and mu is the
    largest that implies (epsilon, delta) [3]_. `preprocess` follows [4]_. What the other
    mechanisms are, and which solver is for what, is in the user guide (:ref:`linear_model`,
    :ref:`solvers`), with all proofs and what is wrong in print.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.
    .. [2] J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", JRSS B, 2022,
       Corollary 2.
    .. [3] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential
       privacy", ICML 2018, Theorem 8.
    .. [4] Z. Sun, A. T. Suresh and A. K. Menon, "The importance of feature preprocessing for
       differentially private linear optimization", ICLR 2024.

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
        solver: str | Solver = "auto",
        adjacency: Adjacency = "replace-one",
        data_norm: float = 1.0,
        classes: ArrayLike | None = None,
        C: float = np.inf,
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
        self.fit_intercept = fit_intercept
        self.coef_bound = coef_bound
        self.preprocess = preprocess
        self.max_iter = max_iter
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, n_classes):
        return LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private means of sparse rows."""

from numbers import Integral
from typing import Literal

from skdp._sklearn import SHARED_CONSTRAINTS, Interval, StrOptions
from skdp._solvers.sparse_mean import CHOICES
from skdp._solvers.sparse_mean_choice import SPARSE_MEANS
from skdp._typing import Adjacency, Budget, Seed
from skdp.location._sparse_mean_fit import SparseMeanFit


class DPSparseMeanEstimator(SparseMeanFit):
    """Differentially private mean of rows with few non-zeros: text, one-hot tables, clicks.

    The rows are cut to a public number of non-zeros and clipped into a public ball. Their
    sum is released with noise, and most of the noise is removed again, which costs nothing:
    a vector that is known to be nearly sparse, or to be a mean of sparse rows, is found in
    noise that is far longer than it.

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
        "compressed-sensing": how the program of recovery is solved. "auto" is "cvxpy" for
        `recovery` "equality" with few measurements and features, and "first-order" otherwise.
    adjacency : {"replace-one", "zero-out"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), or in one row that is
        replaced by a null row ("zero-out"). The number of rows is public in both.
    data_norm : float, default=1.0
        Public radius: longer rows are scaled down to this Euclidean norm.
    sparsity : int, default=None
        Public number of non-zero features that a row may have: of longer rows the largest
        entries count. More than there are features means all of them; None for any number.
        "projection" and "histogram" rest on it, the others gain by it.
    nonnegative : bool, default=False
        Whether negative entries are dropped. It lowers the noise under "replace-one" by
        the factor sqrt(2), and half of what is left of it.
    projection : {"ksupport", "l1l2", "l1"}, default="ksupport"
        With `sparsity`: the set that is projected on. The hull of all sparse rows is
        the ball of the k-support norm; the others are larger.
    measurement : {"auto", "gaussian", "sparse-sign", "hadamard"}, default="auto"
        "compressed-sensing": the public measurement matrix. Its columns are random
        directions, or eight random signs each, or parts of those of a Hadamard matrix. "auto"
        is "gaussian" up to a million entries, and "sparse-sign" beyond.
    n_measurements : int, default=None
        "compressed-sensing": number of measurements, at most `n_features_in_`. None chooses
        about ``n_samples * epsilon * sqrt(sparsity)``, from public quantities. Too few are
        as private, and `error_estimate_` tells.
    recovery : {"auto", "constrained", "denoising", "equality"}, default="auto"
        "compressed-sensing": the program of recovery. Least squares in an l1 ball (needs
        `sparsity`); least l1 norm up to the noise; least l1 norm, which fits the noise [1]_.
        "auto": the better of the first two by their estimated errors, or the second.
    sparse_output : bool, default=False
        Whether `location_` is sparse.
    budget : PrivacyBudget, default=None
        A budget that several fits share: each is charged (epsilon, delta) before it reads a
        row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise
        reproducible, voids the guarantee towards whoever knows it, and warns.

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
        What was released, at what price.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    DPMean : Private mean of dense rows.
    DPLogisticRegression : Private classification.

    Notes
    -----
    Privacy. One row is protected. The number of rows, the number and names of features
    and all parameters are public. Rows are in the unit ball and have at most s non-zeros
    after they were cut, whatever they were before. Sensitivity of their sum: 1 under
    zero-out, 2 under replace-one (l2), sqrt(2) if no entry is negative; sqrt(s) and
    2 sqrt(s) in l1. "compressed-sensing" sums the measurements of rows, clipped to a public
    norm C: C and 2 C, whatever the matrix. All that follows is post-processing. Timing,
    exceptions on malformed input and `score` on private data are not covered.

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

    _parameter_constraints = {
        **SHARED_CONSTRAINTS,
        "mechanism": [StrOptions({"auto", *SPARSE_MEANS})],
        **{name: [StrOptions(set(allowed))] for name, allowed in CHOICES.items()},
        "sparsity": [Interval(Integral, 1, None, closed="left"), None],
        "nonnegative": ["boolean"],
        "n_measurements": [Interval(Integral, 1, None, closed="left"), None],
        "sparse_output": ["boolean"],
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
        self.budget = budget
        self.random_state = random_state

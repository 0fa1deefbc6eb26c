# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A transformer that randomises rows by PrivUnit."""

from numbers import Integral, Real
from typing import Literal

import numpy as np

from skdp._domains import check_bounds, check_radius
from skdp._sklearn import SHARED_CONSTRAINTS, Interval, StrOptions
from skdp._typing import Bounds, Budget, Seed
from skdp.local._choice import PARAMETERS
from skdp.local._reporting import ReportingTransformer
from skdp.local._row_domains import BallDomain, BoxDomain
from skdp.local._unit_choice import MECHANISMS, unit_randomiser


class PrivUnitPrivatizer(ReportingTransformer):
    """Replace every row by a report of its own: unbiased, and epsilon-locally private.

    Whoever sees the reports, all of them and everything made of them, learns about a row at
    most what its own report tells. No trust in those who collect them is needed.

    Parameters
    ----------
    epsilon : float, default=8.0
        Budget of ONE report of a row in nats, from 1e-6 to 1e6.
    mechanism : {"privunit", "privunit-gaussian", "projunit", "cube"}, default="privunit"
        "privunit" reports directions with the least error that is known. "privunit-gaussian"
        is its limit in many dimensions. "projunit" rotates rows at random and reports
        `n_components` entries: shorter messages. "cube" is for rows in a box (`bounds`); its
        reports take one bit an entry and are drawn exactly, with integers.
    magnitude : {"lift", "flip", "product", "unit", "auto"}, default="lift"
        What is done about lengths below `data_norm`. "lift" adds an entry with which all rows
        have that length; the noise is then the same in all directions and for all rows. "flip"
        turns a row round with a probability that gives the right mean. "product" reports the
        length on its own. "unit" takes all rows to be that long: only their directions are
        reported, and a zero row reports a random one. "auto" is the one of "lift", "flip" and
        "product" with the least error at `expected_norm`. With "cube" it is ignored; with
        "privunit-gaussian" and "projunit" there is no "product".
    data_norm : float, default=1.0
        Public radius: longer rows are scaled down to this Euclidean norm. Ignored with "cube".
    bounds : tuple (lower, upper), default=None
        Public bounds per coordinate, numbers or arrays of shape (n_features,). For "cube", and
        for that only. Coordinates outside are clipped.
    expected_norm : float, default=None
        A public guess of the norms of rows, relative to `data_norm`, in (0, 1]; None for 1.
        "product" and "auto" are tuned to it. It must not come from the rows themselves.
    magnitude_epsilon : float, default=None
        "product": the part of `epsilon` that is for the length. None for the best part at
        `expected_norm`.
    n_levels : int, default=None
        "product": how many lengths are told apart, at least 2, and at most so many for
        "relative" levels. None for the best number.
    levels : {"uniform", "relative"}, default="uniform"
        "product": lengths in equal distances, or as fine as they are short, from half of
        `expected_norm` on (a tenth of `data_norm` without it).
    n_components : int, default=None
        "projunit": number of entries that are kept, at most the number of features. None for
        the fewest whose error is within 1 % of that of "privunit". Others ignore it.
    parameters : {"optimal", "paper", "paper-simulation", "half"}, default="optimal"
        "privunit": the best ones, or for comparison those of [1]_, by its condition (16). They
        give 99 % of the direction's budget to the cap and 1 % to the coin ("paper"), 13/16 of
        all to the cap, 1/16 to the coin and 2/16 to the length ("paper-simulation", only for
        "product"), or take a fair coin ("half").
    new_rows : {"auto", "randomise", "keep"}, default="auto"
        What `transform` does. "randomise": it always reports. "keep": it never does, only
        `fit_transform`. "auto": it reports after `fit`, and returns rows IN THE CLEAR after
        `fit_transform`. See the notes.
    budget : PrivacyBudget, default=None
        A budget that several calls share: each call that reports is charged epsilon before it
        reads a row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws from the operating system. An int makes a report a function of the seed, the
        parameters and the row, whatever rows come with it: equal calls give equal reports. It
        voids the guarantee, warns, and is slow.

    Attributes
    ----------
    randomiser_ : object
        The public parameters: those of PrivUnit, and what is made of them for lengths.
    noise_variance_ : float or ndarray of shape (n_features,)
        Variance of a report along each direction that is orthogonal to its row; with
        "product" of a row of the expected norm, otherwise of every row. With the default
        parameters it is the variance of every entry. With "cube" an array: the largest
        variance of each entry, that at the middle of its bounds.
    message_bits_ : int
        Bits of a report that is sent: 32 a number, or 1 an entry for "cube".
    ledger_ : Ledger
        What was reported since `fit`, at what price. It grows with every call that reports.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) of these calls together, as if all had the same rows. Delta is 0.
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
    Privacy. Under any two values of a row the laws of its report differ by a factor of at most
    exp(epsilon), everywhere. The number of rows, the number and names of features and all
    parameters are public. With "cube" that is exact; other reports are made of floats, which
    only come close to real numbers, and are rounded to a grid ("idealised" on the ledger).
    Timing and exceptions on malformed input are not covered.

    What is covered is X, and nothing else. LABELS ARE NOT PROTECTED by it. Neither is what
    other steps of a pipeline learn from rows before this one.

    Which call reports. On the side of clients: `fit` once, on anything of the right shape, and
    `transform` every row once. Each further call on the same rows spends `epsilon` again, and
    `ledger_` says so. In a pipeline: training calls `fit_transform`, which reports; from then
    on rows that are predicted on pass as they are, only scaled or clipped into the domain, for
    noise would spoil predictions and protect nobody who is trained on. THE DANGER: after
    `fit_transform`, `transform` returns its rows in the clear, those of the training set too.
    Never publish what it returns; ``new_rows="randomise"`` rules that out. A cross-validation
    refits, and every fit spends: with k folds a row reports k - 1 times, or more often in a
    search, each time on the ledger of another clone. Add them up, or report once and
    cross-validate on the reports. A privatizer that is pickled into another process counts there
    what is reported there.

    Sparse rows are accepted, except with "cube". Reports are dense: so many numbers must fit
    into memory.

    "projunit" draws one rotation for all rows of a call. Given that, all reports of equal rows
    are off by the same vector, about 1.2 / `n_components` of their length, which no number of
    rows averages out; another call is off by another one. In more than 512 dimensions the
    rotation is a fast one, with which reports of rows that have few entries are longer by
    about one part in 4 `n_components`.

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
        "bounds": [tuple, list, np.ndarray, None],
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
            return BoxDomain.between(*check_bounds(self.bounds, n_features))
        norm = 1.0 if self.expected_norm is None else float(self.expected_norm)
        return BallDomain(check_radius(self.data_norm), None if self.magnitude == "unit" else norm)

    def _randomiser_of(self, n_features):
        return unit_randomiser(self, n_features)

    def _accepts_sparse(self):
        return self.mechanism != "cube"

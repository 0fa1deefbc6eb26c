# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A transformer that randomises every feature of a row on its own."""

import math
from numbers import Integral, Real
from typing import Literal

import numpy as np

from skdp._domains import check_bounds
from skdp._randomisers import EntrywiseGrid, ScalarGrid, scalar_grid
from skdp._randomisers._odds import check_local_epsilon
from skdp._sklearn import Interval, StrOptions
from skdp._typing import Bounds, Budget, Seed
from skdp.local._reporting import ReportingTransformer
from skdp.local._row_domains import BoxDomain
from skdp.local._unit_choice import levels_of

#: the least budget of one feature
_LEAST = 1e-6


class ScalarPrivatizer(ReportingTransformer):
    """Replace every entry by a report of its own: unbiased, and locally private.

    An entry is rounded at random to one of some levels between public bounds, and the level
    then kept or replaced by another one. The features of a row share its budget evenly, so
    this is for one feature, or few; for many, take `PrivUnitPrivatizer`.

    Parameters
    ----------
    epsilon : float, default=8.0
        Budget of ONE report of a row in nats, at most 1e6. Every feature gets
        ``epsilon / n_features``, which must be at least 1e-6.
    bounds : tuple (lower, upper), default=(0, 1)
        Public bounds per coordinate, numbers or arrays of shape (n_features,). Coordinates
        outside are clipped.
    levels : {"uniform", "relative"}, default="uniform"
        Levels in equal distances, with the least largest error; or as fine as entries are
        close to their lower bound, with the least relative error.
    n_levels : int, default=None
        How many levels, at least 2, and at most so many with "relative". None for the best
        number.
    floor : float, default=None
        "relative": where levels begin to be in equal distances, as a part of the distance
        of the bounds, from 1e-6 to 1. None for a tenth.
    new_rows : {"auto", "randomise", "keep"}, default="auto"
        What `transform` does. "randomise": it always reports. "keep": it never does, only
        `fit_transform`. "auto": it reports after `fit`, and returns rows IN THE CLEAR after
        `fit_transform`. See the notes.
    budget : PrivacyBudget, default=None
        A budget that several calls share: each call that reports is charged epsilon before it
        reads a row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws from the operating system. An int makes a report a function of the seed and
        the row, whatever rows come with it. It voids the guarantee towards whoever knows it,
        warns, and is slow.

    Attributes
    ----------
    randomiser_ : object
        The public parameters: a grid on [-1, 1], and the number of features.
    noise_variance_ : ndarray of shape (n_features,)
        The largest variance of every entry of a report, over all values within the bounds.
    message_bits_ : int
        Bits of a report that is sent: the numbers of its levels.
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
    PrivUnitPrivatizer : All features of a row in one report.
    privacy_spent : Add up several estimators.

    Notes
    -----
    Privacy. Under any two values of a row the probabilities of its report differ by a factor
    of at most exp(epsilon). All draws are exact. The number of rows, the number and names of
    features and all parameters are public. Timing and exceptions on malformed input are not
    covered. LABELS ARE NOT PROTECTED by it.

    Which call reports is as for `PrivUnitPrivatizer`: after `fit` every call of `transform`,
    each spending again; after `fit_transform`, which is what a pipeline trains with,
    `transform` returns rows IN THE CLEAR, only clipped to the bounds. Never publish these;
    ``new_rows="randomise"`` rules that out. A cross-validation refits, and every fit spends.

    Reports lie a little, for small budgets far, outside of the bounds: that is what makes them
    unbiased. "uniform" is ScalarDP of [1]_. "relative" takes the place of its ScalarRelDP,
    whose grid has no level between 0 and the floor: Lemma B.1 is false there.

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
        "bounds": [tuple, list, np.ndarray],
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
        return BoxDomain.between(*check_bounds(self.bounds, n_features))

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

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The exponential mechanism on a finite net: a fixed set of candidates, of any dimension.

Bassily, Smith and Thakurta (2014) draw from a grid; here the candidates are a few thousand points
of the ball, the same for all data. That is private for any number of coefficients, and inaccurate
for most: it is a cross-check of `skdp.solvers.ExactDraw`.
"""

from skdp.solvers.exponential import ExponentialDraw


class FiniteNet(ExponentialDraw):
    """A random draw that favours small losses, from a fixed set of candidates.

    Purely private: no delta is spent.

    Parameters
    ----------
    localize : bool, default=False
        With finite `C`: spend half of epsilon on a coarse minimiser, and draw near it.
    sparsity : int, default=None
        For classification: public bound on the number of non-zero features of a row; rows with
        more keep their largest entries. None: no bound.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1.

    See Also
    --------
    skdp.solvers.ExactDraw : A draw from the density itself, for at most five coefficients.

    Notes
    -----
    The number of candidates, at most 4,096, depends on the numbers of rows and coefficients.

    References
    ----------
    .. [1] R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization:
       efficient algorithms and tight error bounds", FOCS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, papers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2)) / 2
    >>> y = X[:, 0] > 0
    >>> model = DPLogisticRegression(
    ...     solver=papers.FiniteNet(), data_norm=1.0, coef_bound=10.0, classes=[False, True],
    ...     random_state=0,
    ... )
    >>> model.fit(X, y).score(X, y) > 0.85
    True
    """

    exact = False

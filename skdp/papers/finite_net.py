# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The exponential mechanism on a finite net: a fixed set of candidates, of any dimension.

Bassily, Smith and Thakurta (2014) draw from a grid; here the candidates are a few thousand
points of the ball that are the same for all data. That is private at any number of coefficients,
and inaccurate at most: it is a cross-check of `skdp.solvers.ExactDraw`.
"""

from typing import Any

from skdp.solvers.base import Fit, Solver
from skdp.solvers.exponential import plan_draw


class FiniteNet(Solver):
    """A random draw that favours small losses, from a fixed set of candidates.

    Purely private: no delta is spent.

    Parameters
    ----------
    localize : bool, default=False
        With finite `C`: spend half of epsilon on a coarse minimiser, and draw near it.
    sparsity : int, default=None
        For classification: public number of non-zero features that a row may have; of longer
        rows the largest entries count. None for any number.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small one takes
        less of a row's gradient. None is 0.1.

    See Also
    --------
    skdp.solvers.ExactDraw : A draw from the density itself, for at most five coefficients.

    Notes
    -----
    The number of candidates, at most 4,096, follows from the numbers of rows and coefficients.

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
    ...     solver=papers.FiniteNet(), coef_bound=10.0, classes=[False, True], random_state=0
    ... )
    >>> model.fit(X, y).score(X, y) > 0.85
    True
    """

    mechanism = "exponential"
    tasks = ("classification",)
    needs_coef_bound = "which draws from a bounded set"
    unused = {
        "max_iter": "it has no steps",
        "preprocess": "only gradients are taken of centered rows",
    }

    _parameter_constraints = {**Solver._parameter_constraints, "localize": ["boolean"]}

    def __init__(
        self,
        *,
        localize: bool = False,
        sparsity: int | None = None,
        intercept_scaling: float | None = None,
    ) -> None:
        self.localize = localize
        self.sparsity = sparsity
        self.intercept_scaling = intercept_scaling

    def plan(self, problem: Any) -> Fit:
        """Plan the draw from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : ExponentialFit
            The plan.

        Raises
        ------
        ValueError
            If the set is to be shrunk without a penalty, or with too weak a one.
        """
        return plan_draw(problem, localize=self.localize, exact=False)

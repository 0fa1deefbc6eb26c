# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The plan of plain stochastic gradient descent whose noise is added late.

The constants below were chosen on data, as those of `plan_gradient`, and bear on accuracy
alone. Two facts are behind them. After steps that add up to a length s, noise of Gaussian-DP
parameter mu moves the prediction of a row of length 1 by about ``s clip / M``, M being the signal
to noise ratio of `plan_gradient`: it does not matter how many steps and how many coefficients
there are. And T batches of which each would cost half a unit of mu, were its rows known, cost
hardly more than as many full passes with the same relative noise.
"""

import math
from dataclasses import dataclass, replace

from skdp._solvers.sgd import SgdPlan, plan_sgd
from skdp._solvers.suffix_average import skipped_steps

# What noise may do to the prediction of a row of length 1.
_REACH = 1.2
# Steps are no longer than so many clipping norms: there are more of them instead, up to a number.
_LONGEST, _STEPS, _MOST_STEPS = 100.0, 400, 4000
# Batches have a half of this in mu each; and together they read the rows so many times at most.
_HALF, _PASSES, _SMALLEST_BATCH = 0.53, 30, 256


@dataclass(frozen=True)
class LazyPlan(SgdPlan):
    """What lazy stochastic gradient descent will do: an `SgdPlan` with constant plain steps."""

    @property
    def decay(self):
        """What is left of a coefficient after the penalty's proximal map."""
        return 1.0 / (1.0 + self.step_size * self.l2)

    @property
    def n_skipped(self):
        """Number of the first steps that the average leaves out."""
        return skipped_steps(self.n_steps)


def plan_lazy_sgd(problem, *, budget, batch_size=None):
    """Choose steps, batches and noise from public quantities.

    Parameters
    ----------
    problem : dict
        The arguments of `plan_gradient`; `mu` is what full batches would have, and `radius`
        is None.
    budget : tuple (epsilon, delta, mu, priced)
        As for `plan_sgd`.
    batch_size : float, default=None
        Expected rows of a batch. None chooses it.

    Returns
    -------
    plan : LazyPlan
        The plan.

    Raises
    ------
    ValueError
        If the batch is larger than the data, or the budget too small for the steps.
    """
    moved = 1 if problem["adjacency"] == "zero-out" else 2
    n_rows, mu = problem["n_rows"], problem["mu"]
    length = _REACH * n_rows * mu / moved
    n_steps = problem["n_steps"] or math.ceil(min(max(length / _LONGEST, _STEPS), _MOST_STEPS))
    if batch_size is None:
        rate = min(mu / moved / _HALF / math.sqrt(n_steps), _PASSES / n_steps)
        batch_size = min(n_rows, max(_SMALLEST_BATCH, math.ceil(rate * n_rows)))
    steps = plan_sgd(
        {**problem, "n_steps": n_steps}, budget=budget, batch_size=batch_size, momentum=False
    )
    plan = LazyPlan(**{**vars(steps), "adaptive": False})
    if problem["step_size"] is not None:
        return plan
    return replace(plan, step_size=min(length / n_steps, _LONGEST) / plan.clip)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sentences of the page of `heavy_tails_rates.py` about its tables."""

BEFORE = r""".. _heavy_tails_rates:

Heavy tails: rates, measured
============================

Written by ``python benchmarks/heavy_tails_rates.py``. The loss is
:math:`F(w) = -\langle w, \mathbb{E} x\rangle + |w|^\theta / \theta`, which grows from its
minimum like the power :math:`\theta` of the distance. The loss of one row is linear in the row,
so that its gradient is as heavy-tailed as the rows are. Xu, Ding, Xiang, Xu and Wang (2025),
Theorems 2 to 5 and 7, prove for such losses the excess

.. math::

   \Big(\frac{1}{\sqrt n} + \Big(\frac{\sqrt d}{n \varepsilon}\Big)^{(k-1)/k}
   \Big)^{\theta / (\theta - 1)}

up to logarithms, if the gradients have k-th moments (for most upper bounds, 2k-th). Errors are
excess expected losses, adjacency is replace-one, :math:`\delta = 10^{-5}`. Slopes are fitted to
the means of REPEATS repeats in logarithms, and have the standard error of the repeats or of the
residuals, whichever is larger. Methods are told a bound on a moment, never the law.

- *non-private*: the minimiser of the loss of the rows.
- *private mean*: :class:`~skdp.DPHeavyTailedMean`, and the minimiser for that mean row. It
  makes use of the loss being linear in the rows; the others do not.
- *localised*: noisy minimisers on disjoint batches, each held near the one before it, as in
  ``solver="localized"``. *Halving* and *doubling* are restarts in smaller balls
  (``growth="halving"``, and ``growth="doubling"`` with ``growth_order=1.5``). They start at
  distance 1 from the minimum, which is all that they are told about :math:`\theta`.
"""

PICTURE = r""".. image:: /_static/heavy_tails_rates.png
   :alt: Twelve log-log plots of the excess loss against rows, features, budget and outliers,
         with lines of the slopes of theory.
   :width: 100%
"""

ROWS = r"""Rows
----

Rows have 10 independent Student coordinates with 4.5 degrees of freedom over
:math:`\sqrt{10}`, and k = 4. Slopes in n, from 2,000 to 128,000; "without privacy" and "noise
dominates" are those of the two terms of the rate:
"""

LEVELS = "Excess losses at the largest number of rows:\n"

NOISE = r"""Where noise dominates
---------------------

Little budget, :math:`\varepsilon = 1/16` unless it varies, and many rows (128,000 unless their
number varies). :math:`\mu` is the Gaussian-DP parameter, which stands for
:math:`\varepsilon / \sqrt{\log(1/\delta)}`. In the last four lines :math:`\theta = 2`, and k is
just below the degrees of freedom. "Theory" is for restarts, "proved" for localisation alone.
"""

LONGEST = r"""No Lipschitz constant
---------------------

Normal rows of length about 1, one in L\ :sup:`4` of them replaced by one of length L: its share of
the fourth moment is 1 for every L, while the Lipschitz constant of the loss is L. One row is that
long in any case. Excess losses for :math:`\theta = 2`, :math:`\varepsilon = 1`, 32,000 rows. *Noisy
descent* is 16 noisy gradient steps without clipping, whose noise has to cover L; the domain
stops its error at 1/2.
"""

BOUND = r"""The lower bound's instance
--------------------------

The law of Theorem 4: a row is 0 but with probability :math:`p = \sqrt d / (n \sqrt\rho)`, when it
is :math:`p^{-1/k} / (2 \sqrt d)` times one fixed vector of signs; :math:`\rho = \mu^2 / 2`, d = 64,
k = 4, :math:`\varepsilon = 1`. The statement of the theorem prints d for :math:`\sqrt d` in p, its
proof the root, which is right. The domain is the ball whose radius is the length of the minimiser:
with a larger one the moments of the gradient would not be bounded as the theorem wants. Cells:
least excess over all n in units of :math:`p^{(k-1)/k \cdot \theta/(\theta-1)}`, and in brackets the
slope in n. The zero vector learns nothing.
"""

WHAT_HOLDS = r"""What holds, and what does not
-----------------------------

- *Slopes of the theorems.* They show in the private mean where one of the two terms dominates: in
  d, in :math:`\mu` and in n on little budget, for all tails, and without privacy. In between, at
  :math:`\varepsilon = 1`, every private method is steeper than the slope without privacy: noise
  falls faster than chance does, and the two have not met yet at 128,000 rows.
- *Localisation alone* is proved to reach the powers :math:`n^{-1/2}` and :math:`n^{-(k-1)/k}`,
  without the exponent :math:`\theta/(\theta-1)` ("proved" in the second table). It does better,
  since the loss grows, and stays behind the full exponent where noise dominates.
- *Restarts* have the full exponent in theory. Each takes for granted that it begins half as far
  from the minimum as the one before, and pulls accordingly. On little budget that is not so, and
  the point stays behind. Hence halving falls even faster than theory at some places: from behind.
  Doubling, whose first part has 2,000 of 128,000 rows, is the worst of the three on little
  budget, and does not show its slope there. It needs rows and budget, and its number of parts
  jumps with n: hence bumpy curves and large errors of slopes.
- *Levels.* On independent Student rows all three are behind the private mean, hardly at
  :math:`\varepsilon = 8` and :math:`\theta = 4`, hundredfold on little budget. A phase reads half
  of the rows that are left and learns no more than its own noise allows, and the first has to
  cross the whole distance. That is the price of methods for losses that are not linear in rows.
- *No Lipschitz constant.* A row a million times longer changes nothing that clips.
- *The lower bound* is met: on that law every private method has the slope of theory, with
  constants of 0.1 to 0.3. None is much better than the zero vector. What is not private is
  far below.
"""


def told_convexity(rates):
    """Return what it brings to tell that the loss is strongly convex."""
    parts = []
    for epsilon in (1.0, 8.0):
        plain, told = (rates[(epsilon, 2.0), name] for name in ("localised", "told convexity"))
        levels = f"{plain.mean[-1]:.2g} to {told.mean[-1]:.2g}"
        parts.append(f"{levels} (ε = {epsilon:g}, slope {told.slope:+.2f})")
    return (
        "For θ = 2 the loss is strongly convex whatever the rows are. *Localised*, told so,\n"
        f"comes from {parts[0]} and from {parts[1]}.\n"
    )

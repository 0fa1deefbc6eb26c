# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The page that `private_erm_rates.py` writes for the documentation."""

_BEFORE = """\
.. _private_erm_rates:

Rates of private empirical risk minimisation, measured
======================================================

Written by ``python benchmarks/private_erm_rates.py``. Every row is a sweep of one variable over
powers of two, with 20 repeats a point or more, of the mean excess of the SUM of losses
(for the median, of the error of the value). The slope is fitted in logarithms by least squares,
and has the standard error of the repeats or of the residuals, whichever is larger.
Adjacency is replace-one; :math:`\\varepsilon = 1`, and :math:`\\delta = 10^{-6}` or 0 ("pure"),
unless they vary. Expected slopes are those of Bassily, Smith and Thakurta (2014), Table 1 and
Appendix A, with :math:`\\mu`, the Gaussian-DP budget, for
:math:`\\varepsilon / \\sqrt{\\log(1/\\delta)}`.
"""

_AFTER = """\
.. image:: /_static/private_erm_rates.png
   :alt: Log-log plots of all sweeps, measured points on lines of the expected slope.
   :width: 100%

What was run:

- *convex*: the linear loss on the unit ball, :math:`-\\langle\\theta, d\\rangle`. The sum of the
  rows has length 1, 3 and 9 times the error that theory predicts, and the worst of the three
  counts. *Noisy gradients* is ``subgradient_descent`` with the plan's own number of steps, but
  without its limits, beyond which optimisation error would take over at one end of a
  sweep. *Exact draw* is the exponential mechanism. Its error tends to
  :math:`2 (p + 1) / \\varepsilon` as the sum grows, hence a slope a little below 1 in p.
  Slopes in p of noisy gradients are also a little low, because of constants next to p: from
  p = 4 to 64 that of the convex loss is 0.42 (100 repeats), only just within the tolerance.
- *strongly convex*: :math:`|\\theta - d| + \\frac12 |\\theta|^2`, all rows equal and the minimum at
  their kink. *Localised* is a coarse noisy minimiser and a draw near it, with half the
  budget each; :math:`Q(p, n)` is the :math:`1 - n^{-2}` quantile of the Gamma(p) law, which the
  radius follows. This is slope -1 in n, up to a logarithm. Either half *alone*, with all of
  the budget, does not improve with n. *DPHingeSVM* is the estimator with
  ``mechanism="exponential", localize=True`` and a penalty of n/2. The sweep over p = 1 to 5,
  beyond which the exact draw is not offered, spans three octaves of its variable, fewer
  than the other sweeps.
- *quadratic*: :math:`\\frac12 |\\theta - d|^2`, its minimiser with K-norm noise. The error is
  :math:`2 p (p + 1) / (n \\varepsilon^2)`.
- *smoothed, perturbed objective*: the one-sided loss :math:`(y - x \\theta)_+`, its kink replaced
  by a parabola, by objective perturbation. For every width the worse of two data sets
  counts, for every n the best of 21 widths. The signs of the first data set and the
  constants of the mechanism, as printed in the paper, are corrected.
- *median*: :class:`~skdp.DPMedian` of evenly spread normal rows, with ``mechanism="rank"`` and
  ``"exponential"``. The second is the mechanism of the paper; ranks serve one feature better.
"""


def page(header, rows, note):
    """Return the page: text, table, picture, text.

    Parameters
    ----------
    header : tuple of str
        Heads of the columns.
    rows : list of tuple of str
        Cells.
    note : str
        A sentence that depends on the run.

    Returns
    -------
    text : str
        In reStructuredText.
    """
    table = [".. list-table::", "   :header-rows: 1", ""]
    for row in (header, *rows):
        table += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return "\n".join([_BEFORE, *table, "", _AFTER, note, ""])

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The page that `local_logistic.py` writes for the documentation."""

import numpy as np
from _logistic_runs import LIFT, PLAIN, Population

HEADER = ("method", "ε", "last iterate", "average", "distance of the average")


def page(settings, found, check):
    """Return the page, from what came out of both settings and of one fit by the library."""
    weak, strong = (table(*pair) for pair in zip(settings, found, strict=True))
    population = Population(settings[0].n_dims, settings[0].tau)
    truth = np.eye(settings[0].n_dims)[0] * settings[0].tau
    start = population.loss(0 * truth, truth) - population.loss(truth, truth)
    runs = found[0].errors[LIFT, 62.5], found[0].averaged[LIFT, 62.5]
    lifted = *(values.mean() for values in runs), *(values.std(ddof=1) for values in runs)
    return TEXT.format(
        weak=weak,
        strong=strong,
        theory=_table(
            ("ε", "measured", "theory", "ratio"), theory(settings[1], found[1], (LIFT, PLAIN))
        ),
        start=start,
        repeats=tuple(len(runs.mle) for runs in found),
        check=check,
        lifted=lifted,
    )


def table(setting, runs):
    """Return the table of one setting: excess losses and distances, with standard errors."""
    rows = []
    for name, epsilon in setting.methods():
        key = name, epsilon
        last, averaged = runs.gaps[key][:, -1], runs.averaged[key]
        shown = "∞" if name == PLAIN else f"{epsilon:g}"
        rows.append((name, shown, _short(last), _short(averaged), _short(runs.errors[key])))
    rows.append(("maximum likelihood", "∞", "–", "–", _short(runs.mle)))
    return _table(HEADER, rows)


def theory(setting, runs, names):
    """Return rows of measured and asymptotic mean squared distances, times the rows."""
    population, rows = Population(setting.n_dims, setting.tau), []
    for name, epsilon in setting.methods():
        if name in names:
            squares = setting.n_rows * (runs.finals[name, epsilon] ** 2).sum(axis=1)
            expected = population.trace(setting.method(name, epsilon))
            shown = "∞" if name == PLAIN else f"{epsilon:g}"
            ratio = f"{squares.mean() / expected:.2f}"
            rows.append((shown, f"{squares.mean():.3g}", f"{expected:.3g}", ratio))
    return rows


def _short(values):
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.3g} ± {error:.1g}"


def _table(header, rows):
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (header, *rows):
        lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return "\n".join([*lines, ""])


TEXT = """.. _benchmark-local-logistic:

Local logistic regression from one report a row, measured
=========================================================

Written by ``python benchmarks/local_logistic.py``. Rows :math:`x` are uniform on the sphere, labels
have :math:`P(y \\mid x) = 1 / (1 + e^{{-y \\langle \\theta^*, x \\rangle}})`, and
:math:`\\theta^*` is a random vector of length :math:`\\tau`. Every row is one step of stochastic
gradient descent: it reports the gradient of its own loss once, and steps have length
:math:`\\eta_0 k^{{-0.51}}`. Numbers are means and standard errors of {repeats[0]} and
{repeats[1]} repeats; losses are expected losses, exact, in excess of that of
:math:`\\theta^*`.

- *paper's split*: direction times length as Bhowmick et al. (2018), Section 5.1, have it: 13/16 of
  the budget for the cap, 1/16 for the coin, 2/16 for the length
  (``BallRandomiser("product", parameters="paper-simulation")``).
- *best split*: the same with the parameters of least error for gradients of about half the
  largest length (``BallRandomiser("product", expected_norm=0.5)``).
- *lift*: one more entry instead of a report of the length (``randomiser="lift"``, the default).

.. image:: /_static/local_logistic.png
   :alt: Excess loss of the iterates against steps for three randomisers and several budgets, and
         box plots of the distances of averages, for 500 and for 50 dimensions.
   :width: 100%

A weak signal: the setting of the paper
---------------------------------------

:math:`d = 500`, 100,000 rows, :math:`\\tau = 4`, and :math:`\\eta_0 = \\sqrt{{\\varepsilon / d}}`
(1 without privacy, of which the paper says nothing). This is Figure 3 of the paper, which prints no
numbers. The vector of zeros (dotted lines) has the excess {start:.4f} and the distance 4, and
the maximum likelihood estimate is not much nearer than that.

{weak}
The paper's claim stands: with its parameters nothing is gained over zero below about
:math:`\\varepsilon = d / 8 = 62.5`, and hardly anything there. The best parameters help most where
budgets are small, and reports of the length are worth their budget here, for the gradients have
about half the largest length. At the smallest budget the lift comes before the paper's split.

One fit by :class:`~skdp.LocalDPLogisticRegression` with ``batch_size=1`` on other rows of this
kind, at :math:`\\varepsilon = 62.5` by lift, ends at the distance {check[0]:.2f} and the excess
{check[1]:.5f}. The runs above have {lifted[0]:.2f} and {lifted[1]:.5f} on average, with standard
deviations of {lifted[2]:.2f} and {lifted[3]:.5f}.

A strong signal
---------------

:math:`d = 50`, 200,000 rows, :math:`\\tau = 8`, and :math:`\\eta_0 = 5 \\sqrt{{\\varepsilon / d}}`
(5 without privacy).

{strong}
By Corollary 3.2 of the paper the average has, asymptotically, the covariance :math:`H^{{-1}} S
H^{{-1}} / n`, and for the lift :math:`S = H + s I`, with the variance s of a report
(Proposition 68 of :ref:`proofs-local`). Mean squared distances, times the number of rows, and the
traces of these matrices:

{theory}
What is above 1 is the start, which is not yet forgotten, and the steps, which are not yet short:
at small budgets a single report moves the iterate by many times the distance that is left. Batches
of many rows, as the estimator makes them by default, have far less of the second.
"""

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The rates of private empirical risk minimisation, measured on the public estimators.

Bassily, Smith and Thakurta (FOCS 2014, Table 1) prove how the excess of a sum of losses
grows with the dimension p, the number of rows n and the budget. This script fits the
estimators of the library to rows that attain the rates, and fits the slopes in logarithms::

    python benchmarks/private_erm_rates.py            # five minutes of one core
    python benchmarks/private_erm_rates.py --quick    # a smoke run, writes nothing

It writes the tables into ``docs/benchmarks/private_erm_rates.rst`` and the picture into
``docs/_static/private_erm_rates.png``. Noise is seeded.
"""

import argparse
import itertools
import json
import math
import sys
import time
import warnings
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, gammainccinv, ndtri

sys.path.insert(0, str(Path(__file__).parent))
from _rates_fit import TOLERANCE, Effort, Rate, save_picture, worst

from skdp import (
    DPHingeSVM,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPMedian,
    papers,
    solvers,
)
from skdp.exceptions import SeededNoiseWarning
from skdp.privacy import gdp_epsilon

DOCS = Path(__file__).resolve().parents[1] / "docs"
DELTA = 1e-6
HEADER = ("estimator", "variable", "expected", "fitted slope", "as expected", "excess")
_seeds = itertools.count(1)

# Instances: rows of the unit ball, of target 1, and the coefficients of least loss.


def cancelling_rows(n_rows, n_features, length):
    """Return unit rows whose sum has a given length: the rest of them cancel in pairs."""
    X = np.zeros((n_rows, n_features))
    used = min(n_rows, math.ceil(length))
    X[:used, 0] = length / used
    pairs, along = (n_rows - used) // 2, min(1, n_features - 1)
    X[used : used + pairs, along] = 1.0
    X[used + pairs : used + 2 * pairs, along] = -1.0
    return X


def spread_rows(n_rows, n_features):
    """Return rows of which half are equal, and the others cancel along all other axes."""
    X = np.zeros((n_rows, n_features))
    half = n_rows // 2
    X[:half, 0] = 1.0
    if n_features > 1:
        rest = np.arange(n_rows - half)
        X[half + rest, 1 + rest // 2 % (n_features - 1)] = 1.0 - 2.0 * (rest % 2)
    return X


@dataclass(frozen=True)
class Subject:
    """A public estimator with the parameters that are measured.

    Parameters
    ----------
    label : str
        How it is called, in the table.
    kind : type
        The estimator.
    parameters : dict
        What is not a default, but for what states the problem: bounds on rows and coefficients,
        labels, no intercept.
    stepwise : bool, default=False
        Whether the number of steps is that of theory, ``(n mu / 4)^2 / p``, without the limits of
        the defaults.
    """

    label: str
    kind: Any
    parameters: dict[str, Any] = field(default_factory=dict)
    stepwise: bool = False

    def loss(self, margin):
        """Return losses of predictions, of targets 1."""
        if self.kind is DPHingeSVM:
            return np.maximum(1 - margin, 0.0)
        if self.kind is DPLogisticRegression:
            return np.logaddexp(0.0, -margin)
        power = self.parameters.get("p", 2)
        return np.abs(1 - margin) ** power / power

    def fitted(self, X, budget, **problem):
        """Return the coefficients of one fit."""
        given = {"data_norm": 1.0, "fit_intercept": False, "random_state": next(_seeds)}
        y = np.ones(len(X), dtype=int)
        if self.kind is DPLpRegressor:
            given["target_scale"] = 1.0
            if "C" in problem:
                problem["l2"] = 1 / problem.pop("C")
        else:
            given["classes"] = (0, 1)
        if self.stepwise:
            given["max_iter"] = round((len(X) * budget.mu / 4) ** 2 / X.shape[1])
        given |= problem | self.parameters
        return self.kind(budget.epsilon, budget.delta, **given).fit(X, y).coef_.ravel()

    def convex(self, n_rows, n_features, budget, length):
        """Return one excess on the unit ball, of rows that cancel but for a sum of a length."""
        X = cancelling_rows(n_rows, n_features, min(length, n_rows // 2))
        found = self.fitted(X, budget, coef_bound=1.0)
        return self.loss(X @ found).sum() - self.loss(X[:, 0]).sum()

    def strongly_convex(self, n_rows, n_features, budget):
        """Return one excess, of rows that spread, with a penalty of a quarter of n_rows."""
        X, ridge = spread_rows(n_rows, n_features), n_rows / 4
        best = np.zeros(n_features)
        best[0] = _LEAST[self.kind]
        found = self.fitted(X, budget, C=1 / ridge)

        def value(coef):
            return self.loss(X @ coef).sum() + ridge / 2 * (coef @ coef)

        return value(found) - value(best)


# where the first coefficient of `strongly_convex` is best: at the kink, where expit(-t) = t / 2,
# and where 1 - t = t / 2
_LEAST = {
    DPHingeSVM: 1.0,
    DPLogisticRegression: brentq(lambda t: expit(-t) - t / 2, 0, 1, xtol=1e-15),
    DPLpRegressor: 2 / 3,
}


@dataclass(frozen=True)
class Budget:
    """What a fit may spend: mu with the delta of this page, or epsilon alone."""

    mu: float = 0.0
    pure: float = 0.0

    @property
    def epsilon(self):
        """Epsilon."""
        return self.pure or gdp_epsilon(self.mu * (1 + 1e-9), DELTA)

    @property
    def delta(self):
        """Delta."""
        return 0.0 if self.pure else DELTA


HINGE = Subject("``DPHingeSVM()``", DPHingeSVM)
LOGISTIC = Subject("``DPLogisticRegression()``", DPLogisticRegression)
ABSOLUTE = Subject("``DPLpRegressor(p=1)``", DPLpRegressor, {"p": 1})
SQUARES = Subject("``DPLpRegressor()``", DPLpRegressor)
STEPS = Subject(
    '``DPHingeSVM(solver="gd", max_iter=...)``', DPHingeSVM, {"solver": "gd"}, stepwise=True
)
#: lengths of the sum of rows, in units of the error that theory predicts, whose worst is taken: an
#: answer that learns nothing would have an error that grows with them
STRENGTHS = (3.0, 9.0)
N_ROWS = (1024, 4096, 16384, 65536)
FEATURES = (4, 8, 16, 32)
EPSILONS, MUS = (0.5, 1.0, 2.0, 4.0), (0.25, 0.5, 1.0, 2.0)


def measured(setting, subject, variable, expected, x, error, **options):
    """Return the rate of an error, a function that maps a value to errors of repeats."""
    label = subject if isinstance(subject, str) else subject.label
    rate = Rate(label, variable, expected, list(x), [error(value) for value in x], **options)
    return setting, rate


def sweeps(effort, setting, subject, error, slopes, at, *, rows=N_ROWS, features=FEATURES):
    """Yield the rates in rows, features and budget, for those whose slope is given.

    Parameters
    ----------
    effort : Effort
        How much to measure.
    setting, subject : str, Subject
        The section of the page, and what is fitted.
    error : callable
        Maps rows, features and a budget to errors of repeats.
    slopes : dict of str to float
        Expected slopes, by variable.
    at : tuple of (int, int)
        Rows and features where they do not vary.
    rows, features : tuple of int
        What is swept.
    """
    n, p = at
    pure = "ε" in slopes or "delta=0" in getattr(subject, "label", "")
    unit = Budget(pure=1.0) if pure else Budget(1.0)
    for variable, expected in slopes.items():
        if variable == "n":
            values, of = rows, lambda v: error(v, p, unit)
        elif variable in ("p", "p (p + 1)"):
            values = features
            of = {v if variable == "p" else v * (v + 1): v for v in features}
            values, of = list(of), lambda v, of=of: error(n, of[v], unit)
        else:
            values = EPSILONS if pure else MUS
            of = lambda v: error(n, p, Budget(pure=v) if pure else Budget(v))  # noqa: E731
        yield measured(setting, subject, variable, expected, values[: effort.points], of)


def convex(effort, setting, subject, slopes, at, strengths=STRENGTHS, **swept):
    """Yield rates of the linear loss on the unit ball, at the worst strength."""

    def error(n, p, budget):
        length = 4 * p / budget.pure if budget.pure else math.sqrt(p) / budget.mu
        return worst(
            effort.repeat(subject.convex, n, p, budget, strength * length) for strength in strengths
        )

    yield from sweeps(effort, setting, subject, error, slopes, at, **swept)


def strongly_convex(effort, setting, subject, slopes, at, **swept):
    """Yield rates with a penalty of n / 4."""

    def error(n, p, budget):
        return effort.repeat(subject.strongly_convex, n, p, budget)

    yield from sweeps(effort, setting, subject, error, slopes, at, **swept)


CONVEX, PURE = "Convex, with a delta", "Convex, purely private"
STRONG, STRONG_PURE = "Strongly convex, with a delta", "Strongly convex, purely private"
OTHERS, MEDIANS, SOLVERS = "Smoothing", "Medians", "Solver by solver"


def convex_losses(effort):
    """Yield the rates of convex losses."""
    slopes = {"n": 0.0, "p": 0.5, "μ": -1.0}
    for subject in (HINGE, LOGISTIC, ABSOLUTE):
        yield from convex(effort, CONVEX, subject, slopes, (4096, 8))
    yield from convex(
        effort, CONVEX, STEPS, slopes, (256, 16), rows=(64, 128, 256, 512),
        features=(8, 16, 32, 64),
    )  # fmt: skip


def pure_losses(effort):
    """Yield the rates of convex losses without a delta."""
    slopes = {"n": 0.0, "p": 1.0, "ε": -1.0}
    logistic = Subject("``DPLogisticRegression(delta=0)``", DPLogisticRegression)
    yield from convex(effort, PURE, logistic, slopes, (16384, 4))
    draw = Subject(
        '``DPHingeSVM(delta=0, mechanism="exponential")``', DPHingeSVM,
        {"mechanism": "exponential"},
    )  # fmt: skip
    many = Effort(8 * effort.repeats, effort.points)
    yield from convex(many, PURE, draw, slopes, (4096, 4), features=(1, 2, 3, 4, 5))


def pure_defaults(effort):
    """Yield what the defaults without a delta make of losses with kinks."""
    for label, subject in (
        ("``DPHingeSVM(delta=0)``", HINGE),
        ("``DPLpRegressor(delta=0, p=1)``", ABSOLUTE),
    ):
        plain = Subject(label, subject.kind, subject.parameters)
        yield from convex(effort, PURE, plain, {"n": 0.0}, (4096, 4), (9.0, 81.0, 729.0))


def strongly_convex_losses(effort):
    """Yield the rates of strongly convex losses."""
    slopes = {"n": -1.0, "p": 1.0, "μ": -2.0}
    for subject in (HINGE, LOGISTIC, SQUARES):
        yield from strongly_convex(effort, STRONG, subject, slopes, (16384, 8))
    steps = Subject(STEPS.label, STEPS.kind, STEPS.parameters | {"coef_bound": 2.0}, stepwise=True)
    yield from strongly_convex(
        effort, STRONG, steps, slopes, (256, 8), rows=(64, 128, 256, 512),
        features=(4, 8, 16, 32),
    )  # fmt: skip


def quantile_of_length(n_rows, n_features):
    """Return what a Gamma(n_features) length exceeds with probability 1 / n_rows^2."""
    return float(gammainccinv(n_features, 1.0 / n_rows**2))


def pure_strongly_convex_losses(effort):
    """Yield the rates of strongly convex losses without a delta."""
    effort = Effort(2 * effort.repeats, effort.points)
    slopes = {"n": -1.0, "p (p + 1)": 1.0, "ε": -2.0}
    logistic = Subject("``DPLogisticRegression(delta=0)``", DPLogisticRegression)
    output = Subject(
        '``DPLogisticRegression(delta=0, mechanism="output")``', DPLogisticRegression,
        {"mechanism": "output"},
    )  # fmt: skip
    for subject in (logistic, output):
        yield from strongly_convex(
            effort, STRONG_PURE, subject, slopes, (4096, 4), features=(2, 4, 8, 16)
        )
    hinge = Subject("``DPHingeSVM(delta=0)``", DPHingeSVM)
    yield from strongly_convex(
        Effort(effort.repeats // 2, effort.points), STRONG_PURE, hinge, {"n": -1.0}, (4096, 1)
    )
    draw = Subject(
        "``DPHingeSVM(delta=0, solver=solvers.ExactDraw())``", DPHingeSVM,
        {"solver": solvers.ExactDraw(), "coef_bound": 2.0},
    )  # fmt: skip
    yield from strongly_convex(effort, STRONG_PURE, draw, {"n": 0.0}, (4096, 1))
    local = Subject(
        "``DPHingeSVM(delta=0, solver=solvers.ExactDraw(localize=True))``", DPHingeSVM,
        {"solver": solvers.ExactDraw(localize=True), "coef_bound": 2.0},
    )  # fmt: skip
    pure = Budget(pure=1.0)

    def error(n, p):
        return effort.repeat(local.strongly_convex, n, p, pure)

    rows = {quantile_of_length(n, 1) / n: n for n in N_ROWS[: effort.points]}
    yield measured(
        STRONG_PURE, local, "Q(1, n) / n", 1.0, rows, lambda v: error(rows[v], 1)
    )  # fmt: skip
    features = {p * quantile_of_length(4096, p): p for p in range(1, 5)}
    yield measured(
        STRONG_PURE, local, "p Q(p, n)", 1.0, list(features)[: effort.points],
        lambda v: error(4096, features[v]),
    )  # fmt: skip

    def mean(n, p, budget):
        return effort.repeat(mean_excess, n, p, budget.pure)

    yield from sweeps(
        effort, STRONG_PURE, "``DPMean(delta=0)``", mean, slopes, (4096, 4),
        features=(2, 4, 8, 16),
    )  # fmt: skip


def mean_excess(n_rows, n_features, epsilon):
    """Return one excess of the sum of ``|t - d|^2 / 2`` over rows d, of DPMean."""
    X = cancelling_rows(n_rows, n_features, 1.0)
    model = DPMean(epsilon, 0.0, data_norm=1.0, random_state=next(_seeds)).fit(X)
    away = model.location_ - X.mean(axis=0)
    return n_rows * (away @ away) / 2


def smoothed_excess(n_rows, more, temperature):
    """Return one excess of the smoothed hinge: n/2 + more rows want 1, the others -1."""
    y = (np.arange(n_rows) < n_rows // 2 + more).astype(int)
    model = DPHingeSVM(
        1.0, DELTA, mechanism="objective", smoothing=temperature, data_norm=1.0, coef_bound=2.0,
        fit_intercept=False, classes=(0, 1), random_state=next(_seeds),
    ).fit(np.ones((n_rows, 1)), y)  # fmt: skip
    w, yes = model.coef_[0, 0], y.sum()
    return yes * max(0, 1 - w) + (n_rows - yes) * max(0, 1 + w) - 2 * (n_rows - yes)


def smoothing(effort):
    """Yield the rate of the smoothed hinge at its best temperature, on the worst rows."""

    def error(n):
        choices = []
        for temperature in 2.0 ** -np.arange(3.0, 10):
            imbalances = {n // 4, *(min(n // 4, round(c / temperature)) for c in (0.1, 0.25))}
            choices.append(
                worst(effort.repeat(smoothed_excess, n, k, temperature) for k in imbalances)
            )
        return min(choices, key=np.mean)

    label = '``DPHingeSVM(mechanism="objective", smoothing=...)``'
    rows = (1600, 6400, 25600, 102400)
    yield measured(OTHERS, label, "n", 0.5, rows[: effort.points], error)


def median_errors(n_rows, mechanism):
    """Return one error of DPMedian on evenly spread normal rows."""
    X = 0.3 + 0.2 * ndtri((np.arange(n_rows) + 0.5) / n_rows)[:, None]
    model = DPMedian(1.0, mechanism=mechanism, bounds=(-1, 1), random_state=next(_seeds))
    return abs(model.fit(X).location_[0] - 0.3)


def medians(effort):
    """Yield the rates of the median, by rank and by its loss."""
    effort = Effort(8 * effort.repeats, effort.points)
    for call, mechanism, expected in (
        ("``DPMedian()``", "auto", -1.0),
        ('``DPMedian(mechanism="exponential")``', "exponential", -0.5),
    ):
        yield measured(
            MEDIANS, call, "n", expected, effort.sweep(1024, 5),
            lambda n, mechanism=mechanism: effort.repeat(median_errors, int(n), mechanism),
            unit="error",
        )  # fmt: skip


def all_solvers(effort):
    """Yield the rate in rows of every solver, on rows that nearly cancel."""
    effort = Effort(max(2, effort.repeats // 3), effort.points)
    kinked = ("preconditioned", "accelerated", "gd", "sgd", "phased", "output")
    smooth = (*kinked, "objective")
    from_papers = (papers.Localized(), papers.OnePass(), papers.AcceleratedOnePass())
    for kind, some in ((DPHingeSVM, kinked), (DPLogisticRegression, (*smooth, *from_papers))):
        for solver in some:
            shown = f'"{solver}"' if isinstance(solver, str) else f"papers.{solver}"
            subject = Subject(
                f"``{kind.__name__}(solver={shown})``", kind, {"solver": solver}
            )  # fmt: skip
            yield from convex(
                effort, SOLVERS, subject, {"n": 0.0}, (4096, 8), (3.0, 24.0),
                rows=(1024, 4096, 16384),
            )  # fmt: skip


SUITE = (
    convex_losses, pure_losses, pure_defaults, strongly_convex_losses,
    pure_strongly_convex_losses, smoothing, medians, all_solvers,
)  # fmt: skip


_BEFORE = """\
.. _private_erm_rates:

Rates of private empirical risk minimisation, measured
======================================================

Written by ``python benchmarks/private_erm_rates.py``. Public estimators are fitted, with their
defaults but for what is in the first column and for what states the problem: ``data_norm=1``, no
intercept, public labels and, where losses are convex only, ``coef_bound=1``. Every row is a sweep
of one variable over powers of two or four, with 8 repeats a point or more, of the mean excess of
the SUM of losses (for the median, of the error of the value). The slope is fitted in logarithms by
least squares, and has the standard error of the repeats or of the residuals, whichever is larger.
As expected is what is within 0.1 or two standard errors; "**no**": the error grows faster, or falls
more slowly; "no, lower": the other way round. The last column has the excess at both ends.

Adjacency is replace-one; :math:`\\mu = 1`, :math:`\\delta = 10^{-6}`, and without a delta
:math:`\\varepsilon = 1`, unless they vary. Expected slopes are those of Bassily, Smith and Thakurta
(2014), Table 1 and Appendix A, with :math:`\\mu`, the Gaussian-DP budget, for
:math:`\\varepsilon / \\sqrt{\\log(1/\\delta)}`. They are upper bounds for the
worst rows. The defaults were chosen by accuracy on data (:doc:`accuracy`), and miss some of them.
"""

#: what was run, and how to read it
_WHAT = {
    CONVEX: """\
Losses that are linear on the unit ball, or nearly: the rows have a sum of length 3 or 9 times
:math:`\\sqrt p / \\mu`, of which the worse counts, and all others cancel in pairs along another
axis. An answer that learns nothing would have an error that grows with that length. The number of
steps of ``solver="gd"`` is :math:`(n \\mu / 4)^2 / p` here, the one that theory asks for.

The default of the hinge makes 40 steps as long as noise allows, and nearly keeps the rate: 64
times as many rows cost a factor of 1.7. With few features the axis of the pairs costs it most,
hence the low slope in p. As many steps as theory asks for have all three rates.
""",
    PURE: """\
The same rows, of lengths 3 and 9 times :math:`4 p / \\varepsilon`. For losses with kinks the
defaults are output perturbation: 9, 81 and 729 times that, as far as there are rows.

Objective perturbation, the default of the logistic loss, is flat in n. At p = 32 it learns nothing
of the longer sum from 16,384 rows, hence the steep slope in p. The exponential mechanism has the
rates for a loss with a kink, up to 5 coefficients; its error tends to
:math:`2 (p + 1) / \\varepsilon`, hence a slope below 1 in p. Output perturbation does not have
them: its error grows with about the square root of n, so give ``mechanism="exponential"`` where
coefficients are few and bounded.
""",
    STRONG: """\
Half of the rows are equal, the others cancel along all other axes; the penalty is n / 4. For the
hinge the minimum is at a kink.

What misses a slope is small all the same: 0.12 in a sum over 65,536 rows. The hinge has 40 steps
whatever n is, and an error of optimisation that grows with n takes over at 16,384 rows or so.
``DPLpRegressor()`` clips at a norm that grows with the root of the signal, since nothing bounds its
targets: what noise adds does not fall with n.
""",
    STRONG_PURE: """\
The same rows. :math:`Q(p, n)` is the :math:`1 - n^{-2}` quantile of the Gamma(p) law, which the
radius of a localised draw follows; :math:`Q(1, n) / n` is slope -1 in n, up to a logarithm. A draw
without localisation is there for comparison. For the mean the loss is
:math:`\\frac12 |\\theta - d|^2`.

Noise on the minimiser of the hinge does not improve with n, nor does a draw alone; a draw near a
noisy minimiser does. The sweep in p ends at 4: five coefficients take seconds a fit.
""",
    OTHERS: """\
Objective perturbation needs a second derivative. Rows of one feature, some of which want 1 and some
-1: for every smoothing the worst of three numbers of them counts, for every n the best of
seven smoothings. The square root of n is what smoothing costs (Appendix A).
""",
    MEDIANS: """\
Of evenly spread normal rows. ``"exponential"`` is the mechanism of the paper; the default draws by
rank, which serves one feature better.
""",
    SOLVERS: """\
Rows that nearly cancel, as above, of lengths 3 and 24 times :math:`\\sqrt p / \\mu`, with p = 8; 2
repeats a point, so that slopes are rough. ``"lazy-sgd"`` takes no bound on coefficients,
``"frank-wolfe"`` another one, ``papers.FeaturePreprocessing()`` moves rows and needs an intercept,
and ``papers.BiasReduced()`` is for sparse rows: they are not here.

Preconditioned steps, phases and perturbed objectives keep the rate. Accelerated, plain and
stochastic steps do not in their default numbers, which are limited; nor does one noisy minimiser.
Solvers of other papers are made for the expected loss, and read the rows once or a few times.
""",
}

_PICTURE = """\
.. image:: /_static/private_erm_rates.png
   :alt: Log-log plots of the sweeps, measured points on lines of the expected slope.
   :width: 100%
"""


def cells(rate):
    """Return the row of the table of one rate."""
    low, high = (f"{value:.2g}" if value < 10 else f"{value:.0f}" for value in rate.mean[[0, -1]])
    shown = list(rate.cells())
    shown[-1] = "yes"
    if abs(rate.slope - rate.expected) > max(TOLERANCE, 2 * rate.slope_error):
        # that variable falls as rows become more
        worse = (rate.slope > rate.expected) != (rate.variable == "Q(1, n) / n")
        shown[-1] = "**no**" if worse else "no, lower"
    return (*shown, f"{low} to {high}")


def page(found):
    """Return the page, of rates by setting, in reStructuredText."""
    parts = [_BEFORE]
    for setting, rates in found.items():
        parts += [f"{setting}\n{'-' * len(setting)}\n", _WHAT[setting], table(rates) + "\n"]
    return "\n".join([*parts, _PICTURE])


def table(rates):
    """Return a table in reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (HEADER, *map(cells, rates)):
        lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return "\n".join(lines)


def main():
    """Measure, print the tables and, unless it is a smoke run, write page and picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repeats, short sweeps")
    parser.add_argument("--rst", type=Path, default=DOCS / "benchmarks/private_erm_rates.rst")
    parser.add_argument("--figure", type=Path, default=DOCS / "_static/private_erm_rates.png")
    parser.add_argument("--results", type=Path, help="keep what was measured, and go on from it")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    effort = Effort(2, 2) if arguments.quick else Effort(8)
    kept = arguments.results if arguments.results and not arguments.quick else None
    stored = json.loads(kept.read_text()) if kept and kept.exists() else {}
    print(" | ".join(HEADER))
    found = {}
    for part in SUITE:
        start = time.process_time()
        global _seeds
        _seeds = itertools.count(1)
        if part.__name__ not in stored:
            pairs = [(setting, asdict(rate)) for setting, rate in part(effort)]
            stored[part.__name__] = pairs
            if kept:
                kept.write_text(json.dumps(stored, default=np.ndarray.tolist))
        for setting, facts in stored[part.__name__]:
            rate = Rate(**{name: value for name, value in facts.items() if name[0] != "_"})
            found.setdefault(setting, []).append(rate)
            print(" | ".join(cells(rate)), flush=True)
        print(f"    {part.__name__}: {time.process_time() - start:.0f} s CPU", flush=True)
    print(f"{time.process_time():.0f} s CPU")
    if arguments.quick:
        print("A smoke run: these are too few repeats to judge a slope by.")
    else:
        arguments.rst.write_text(page(found), encoding="utf-8")
        shown = [
            replace(rate, panel=f"{setting}\n{fill(rate.name.strip('`'), 33)}, in {rate.variable}")
            for setting, rates in found.items()
            if setting != SOLVERS
            for rate in rates
        ]
        save_picture(shown, arguments.figure)


if __name__ == "__main__":
    main()

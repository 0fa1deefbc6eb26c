# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The rates of private empirical risk minimisation, measured.

Bassily, Smith and Thakurta (FOCS 2014, Table 1) prove how the excess of a sum of losses
grows with the dimension p, the number of rows n and the budget. This script runs the
library's mechanisms on instances that attain the rates and fits the slopes in logarithms::

    python benchmarks/private_erm_rates.py            # under 10 minutes on one core
    python benchmarks/private_erm_rates.py --quick    # a smoke run, writes nothing

It writes the table into ``docs/benchmarks/private_erm_rates.rst`` and the picture into
``docs/_static/private_erm_rates.png``. Noise is seeded: the table is the same every time.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import _rates_experiments as experiments
from _rates_fit import TOLERANCE, Effort, Rate
from _rates_page import page
from _rates_picture import save_picture

from skdp.exceptions import SeededNoiseWarning

DOCS = Path(__file__).resolve().parents[1] / "docs"
HEADER = ("experiment", "variable", "expected", "fitted slope", f"within {TOLERANCE:g}")


def measured(name, variable, expected, x, error, **options):
    """Return the rate of an error, a function that maps a value to errors of repeats."""
    return Rate(name, variable, expected, list(x), [error(value) for value in x], **options)


def noisy_gradients(effort):
    """Yield the rates of noisy (sub)gradients, with Gaussian noise."""
    cases = (
        ("convex, noisy gradients", experiments.linear_gradient, (0.5, 0.0, -1.0), (8, 16)),
        ("strongly convex, noisy gradients", experiments.median_gradient, (1, -1, -2), (2, 8)),
    )
    for name, excess, (with_p, with_n, with_mu), (least, p) in cases:

        def at(n=256, p=p, mu=1.0, excess=excess):
            return excess(int(n), int(p), mu, effort)

        yield measured(name, "p", with_p, effort.sweep(least, 4), lambda p: at(p=p))
        yield measured(name, "n", with_n, effort.sweep(64, 4), lambda n: at(n=n))
        yield measured(name, "μ", with_mu, effort.sweep(0.25, 4), lambda mu: at(mu=mu))


def pure_draws(effort):
    """Yield the rates of exact draws for the linear loss."""

    def at(p=8, n=8192, epsilon=1.0):
        return experiments.linear_draw(int(n), int(p), epsilon, effort)

    name = "convex, pure, exact draw"
    yield measured(name, "p", 1.0, effort.sweep(8, 4), lambda p: at(p=p))
    yield measured(name, "ε", -1.0, effort.sweep(0.25, 5), lambda epsilon: at(epsilon=epsilon))
    yield measured(name, "n", 0.0, effort.sweep(512, 5), lambda n: at(n=n))


def localisation(effort):
    """Yield the rates of localisation, and of its two halves alone, which are flat."""
    rows = [int(n) for n in effort.sweep(512, 6)]
    scaled = [experiments.quantile_of_length(n, 1) / n for n in rows]
    back = dict(zip(scaled, rows, strict=True))
    name, panel = "strongly convex, pure, ", "strongly convex, pure, p = 1"

    def repeats(function):
        return lambda value: effort.repeat(function, int(value), times=10)

    def one(value):
        return effort.repeat(experiments.localised, back[value], 1, times=10)

    def hinge(value):
        return effort.repeat(experiments.localised_hinge, back[value], times=5)

    drawn = {"drawn": ("n", rows), "panel": panel}
    yield measured(name + "localised", "Q(1, n) / n", 1.0, scaled, one, **drawn)
    for label, function in (
        ("draw alone", experiments.drawn_once),
        ("noise alone", experiments.perturbed_output),
    ):
        yield measured(name + label, "n", 0.0, rows, repeats(function), panel=panel)
    yield measured(name + "DPHingeSVM", "Q(1, n) / n", 1.0, scaled, hinge, **drawn)
    features = range(1, 6 if effort.points is None else 3)
    product = {p * experiments.quantile_of_length(4096, p): p for p in features}
    yield measured(
        name + "localised", "p Q(p, n)", 1.0, product,
        lambda value: effort.repeat(experiments.localised, 4096, product[value], times=5),
    )  # fmt: skip


def quadratics(effort):
    """Yield the rates of noise on the mean."""

    def at(n=1024, p=4, epsilon=1.0):
        return effort.repeat(experiments.perturbed_mean, int(n), int(p), epsilon, times=10)

    name = "quadratic, pure, noisy minimiser"
    yield measured(name, "n", -1.0, effort.sweep(256, 5), lambda n: at(n=n))
    products = {p * (p + 1): p for p in effort.sweep(1, 5)}
    yield measured(name, "p (p + 1)", 1.0, products, lambda value: at(p=products[value]))
    yield measured(name, "ε", -2.0, effort.sweep(0.125, 5), lambda epsilon: at(epsilon=epsilon))


def negative_results(effort):
    """Yield the rates of smoothing, and of the median by its loss and by rank."""
    rows = [int(n) for n in effort.sweep(400, 6)]
    yield measured(
        "smoothed, perturbed objective", "n", 0.5, rows,
        lambda n: experiments.best_smoothing(n, effort),
    )  # fmt: skip
    for label, mechanism, expected in (("by rank", "rank", -1.0), ("by loss", "exponential", -0.5)):
        yield measured(
            f"median, {label}", "n", expected, [int(n) for n in effort.sweep(1024, 5)],
            lambda n, mechanism=mechanism: effort.repeat(
                experiments.median_errors, n, mechanism, times=5
            ),
            panel="median, error of the value", unit="error",
        )  # fmt: skip


def doubling(effort):
    """Return by what factor twice the steps change the errors of noisy gradients."""
    factors = []
    for excess, p in ((experiments.linear_gradient, 16), (experiments.median_gradient, 8)):
        for n in (128, 256):
            once, twice = (np.mean(excess(n, p, 1.0, effort, longer)) for longer in (1, 2))
            factors.append(f"{twice / once:.2f}")
    return (
        "Twice the steps change the errors of noisy gradients by the factors "
        f"{factors[0]} and {factors[1]}\n(convex, n = 128 and 256), {factors[2]} and {factors[3]} "
        "(strongly convex). Equal factors\nat both n mean that the steps limit every n alike."
    )


SUITE = (noisy_gradients, pure_draws, localisation, quadratics, negative_results)


def main():
    """Measure, print the table and, unless it is a smoke run, write table and picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repeats, short sweeps")
    parser.add_argument("--rst", type=Path, default=DOCS / "benchmarks/private_erm_rates.rst")
    parser.add_argument("--figure", type=Path, default=DOCS / "_static/private_erm_rates.png")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    effort = Effort(3, 2) if arguments.quick else Effort()
    print(" | ".join(HEADER))
    rates = []
    for part in SUITE:
        start = time.process_time()
        for rate in part(effort):
            rates.append(rate)
            print(" | ".join(rate.cells()), flush=True)
        print(f"    {part.__name__}: {time.process_time() - start:.0f} s CPU", flush=True)
    note = doubling(effort)
    print(note)
    print(f"{time.process_time():.0f} s CPU")
    if arguments.quick:
        print("A smoke run: these are too few repeats to judge a slope by.")
    else:
        arguments.rst.write_text(
            page(HEADER, [rate.cells() for rate in rates], note), encoding="utf-8"
        )
        save_picture(rates, arguments.figure)


if __name__ == "__main__":
    main()

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logistic regression from one local report a row, simulated.

The experiment of Bhowmick et al. (2018), Section 5.1 and Figure 3, with their parameters and with
the best ones, and the same with a stronger signal::

    python benchmarks/local_logistic.py            # about three minutes of one core
    python benchmarks/local_logistic.py --quick    # a smoke run, writes nothing

It writes the tables into ``docs/benchmarks/local_logistic.rst`` and the picture into
``docs/_static/local_logistic.png``. Noise is seeded: the tables are the same every time.
"""

import argparse
import math
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from _logistic_page import page
from _logistic_picture import save_picture
from _logistic_runs import Setting, run, run_estimator

from skdp.exceptions import PrivacyWarning

DOCS = Path(__file__).resolve().parents[1] / "docs"
# without privacy the paper does not say how long the first step is: 1 here
WEAK = Setting(
    n_dims=500,
    n_rows=100_000,
    tau=4.0,
    epsilons=(7.8, 15.6, 31.2, 62.5, 125.0, 250.0),
    first_step=lambda epsilon: math.sqrt(min(epsilon, 500.0) / 500.0),
)
STRONG = Setting(
    n_dims=50,
    n_rows=200_000,
    tau=8.0,
    epsilons=(4.0, 8.0, 16.0, 32.0, 64.0),
    first_step=lambda epsilon: 5.0 * math.sqrt(min(epsilon, 50.0) / 50.0),
)


def main():
    """Run both settings and, unless it is a smoke run, write tables and picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and repeats")
    parser.add_argument("--repeats", type=int, nargs=2, default=(8, 12))
    parser.add_argument("--rst", type=Path, default=DOCS / "benchmarks/local_logistic.rst")
    parser.add_argument("--figure", type=Path, default=DOCS / "_static/local_logistic.png")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    repeats, settings = arguments.repeats, (WEAK, STRONG)
    if arguments.quick:
        repeats, settings = (2, 2), [replace(setting, n_rows=2000) for setting in settings]
    found = []
    for setting, n_repeats in zip(settings, repeats, strict=True):
        start = time.process_time()
        found.append(run(setting, n_repeats))
        for (name, epsilon), errors in found[-1].errors.items():
            print(f"d={setting.n_dims} {name} {epsilon}: {errors.mean():.4f}", flush=True)
        print(f"    {time.process_time() - start:.0f} s CPU", flush=True)
    check = run_estimator(settings[0], 62.5)
    print(f"the estimator at 62.5, lift: {check[0]:.3f}, gap {check[1]:.5f}", flush=True)
    if not arguments.quick:
        arguments.rst.write_text(page(settings, found, check), encoding="utf-8")
        save_picture(settings, found, arguments.figure)


if __name__ == "__main__":
    main()

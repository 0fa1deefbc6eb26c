# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Growth of the time of a pass, or of a fit, with one number at a time, for `speed.py`."""

import numpy as np
from _speed_fits import pass_seconds
from _speed_rows import alternately, labels, make

from skdp import (
    DPLogisticRegression,
    DPMean,
    DPMedian,
    DPSparseMeanEstimator,
    DPStandardScaler,
)

__all__ = ["growth", "slope"]

#: entries that a series ends with
ENTRIES = 2 * 10**7


def slope(sizes, seconds):
    """Return the exponent of growth: the slope of a line through logarithms of the last four."""
    return float(np.polyfit(np.log(sizes[-4:]), np.log(seconds[-4:]), 1)[0])


def one_pass(size, n_classes=2, dtype=np.float64, seconds=2.0):
    """Return the CPU seconds of one pass of gradient descent over rows of a size."""
    X, score = make(size, dtype)
    y = labels(score, n_classes)

    def fit(passes):
        return DPLogisticRegression(
            classes=range(n_classes),
            mechanism="gradient",
            solver="gd",
            max_iter=passes,
            data_norm=1.0,
        ).fit(X, y)

    return pass_seconds(fit, max(1, min(40, 4 * 10**6 // X.size)), seconds)[0]


def whole(make_estimator, size, with_labels=False, seconds=2.0):
    """Return the CPU seconds of a fit."""
    X, score = make(size)
    y = labels(score) if with_labels else None
    return alternately(lambda: make_estimator().fit(X, y), seconds=seconds)[0][0]


def series(scale):
    """Yield what grows, what is timed, the values, and the measurement of one value."""
    n = max(64, int(scale * 400_000))
    last = max(1, int(scale * ENTRIES))
    rows = [n >> k for k in range(5, -1, -1)]
    yield "rows, 50 columns", "a pass", rows, lambda v: one_pass((v, 50, None))
    yield (
        "columns, dense",
        "a pass",
        [2**k for k in range(4, 12, 1)],
        lambda v: one_pass((last // 2**11, v, None)),
    )
    entries = [8, 16, 32, 64, 128]
    yield "entries of a CSR row", "a pass", entries, lambda v: one_pass((n // 4, 20_000, v))
    yield "rows, CSR, 30 a row", "a pass", rows, lambda v: one_pass((v // 2, 10_000, 30))
    columns = [10**3 * 4**k for k in range(6)]
    yield "columns, CSR, 30 a row", "a pass", columns, lambda v: one_pass((n // 4, v, 30))
    classes = [3, 4, 6, 8, 16, 32, 64]
    yield "classes", "a pass", classes, lambda v: one_pass((n // 8, 50, None), v)
    short = [n >> k for k in range(6, 1, -1)]
    yield (
        "rows, 50 columns",
        "DPLogisticRegression().fit",
        short,
        lambda v: whole(
            lambda: DPLogisticRegression(classes=(0, 1), data_norm=1.0), (v, 50, None), True
        ),
    )
    yield (
        "rows, 50 columns",
        "DPMean(data_norm=1.0).fit",
        rows,
        lambda v: whole(DPMean, (v, 50, None)),
    )
    yield (
        "rows, 50 columns",
        "DPStandardScaler().fit",
        short,
        lambda v: whole(DPStandardScaler, (v, 50, None)),
    )
    yield (
        "rows, 20 columns",
        "DPMedian(data_norm=1.0).fit",
        short,
        lambda v: whole(DPMedian, (v, 20, None)),
    )
    yield (
        "columns, CSR, 30 a row",
        "DPSparseMeanEstimator().fit",
        columns,
        lambda v: whole(lambda: DPSparseMeanEstimator(sparsity=30), (n // 4, v, 30)),
    )


def growth(scale):
    """Yield a cell for each series: values, seconds, and the exponent of the last doublings."""
    for grows, timed, values, measure in series(scale):
        seconds = [measure(value) for value in values]
        yield {
            "grows": grows, "timed": timed, "values": values, "seconds": seconds,
            "exponent": slope(values, seconds),
        }  # fmt: skip

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Claims of private regression where floats end: tiny rows, absurd units, odd targets."""

import numpy as np
import pytest
from scipy import sparse

from skdp import DPLpRegressor
from skdp._rows.linear import regression_rows, unit_rows
from tests._neighbours import as_layout
from tests.test_mutants_regression import NAN, SOLVERS, every_adjacency, ratio, regressor


@pytest.mark.parametrize("layout", ["C", "csr", "csr duplicates"])
def test_rows_far_below_the_floor_of_norms_keep_their_length(layout):
    # in units of 1e-50 they are as far above it: a norm that is too small is a limit too wide
    X = np.outer([1e-99, 1e-101, 1e-130, 1e-139, 0.0], [1.0, -1.0])
    rows = unit_rows(regression_rows(as_layout(X, layout), np.ones(5)), 1e-50, 1.0, 0.0, 0.0, 1.0)
    (chunk,) = rows.chunks
    length = np.sqrt(2) * np.array([1e-49, 1e-51, 1e-80, 1e-89, 0.0])
    np.testing.assert_allclose(chunk.norm, np.maximum(length, 1e-100), rtol=1e-12)


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_as_short_as_floats_allow_keep_the_claim(solver, layout, adjacency):
    # shorter than the floor of norms, in the units of the data
    X = np.full((40, 2), 1e-51)
    X[0] = 1e-101, 0.0
    first, second = np.zeros(40), np.zeros(40)
    first[0], second[0] = 1e150, NAN if adjacency == "zero-out" else -1e150
    pairs = [((layout(X), first), (layout(X), second))]
    model = regressor(solver=solver, data_norm=1e-50, fit_intercept=False)
    assert ratio(model, adjacency, pairs) <= 1


@pytest.mark.parametrize("solver", ["phased", "localized"])
@pytest.mark.parametrize(("name", "value"), [("intercept_scaling", 1e50), ("clipping_norm", 1e-50)])
def test_noise_of_absurd_units_overflows_nothing(name, value, solver):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.normal(size=300)
    with np.errstate(over="raise", invalid="raise"):
        model = regressor(solver=solver, **{name: value}).fit(X, y)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("odd", [None, float("inf"), float("nan")], ids=str)
def test_objects_that_are_no_numbers_are_refused(odd):
    # scikit-learn turns targets into floats after it has looked for what is not finite
    y = np.arange(30.0).astype(object)
    y[3] = odd
    model = DPLpRegressor()
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model.fit(np.ones((30, 1)), y)
    assert not hasattr(model, "ledger_")


def test_wide_floats_that_overflow_are_targets_far_out():
    y = np.arange(30.0).astype(np.longdouble)
    y[3] = np.longdouble(10) ** 400
    assert np.isfinite(DPLpRegressor(random_state=0).fit(np.ones((30, 1)), y).intercept_)

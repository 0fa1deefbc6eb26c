# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a row reports on does not depend on its neighbours, to the last bit."""

import numpy as np
import pytest
from scipy import sparse

from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._rows.linear import regression_rows
from skdp.local._linear_regression import JointVectors
from skdp.local._logistic import CurvatureVectors, GradientVectors
from skdp.local.randomisers.report import RowVectors
from tests._neighbours import rows_in_ball

N, D = 40, 17
COEF = np.random.default_rng(1).normal(size=(3, D + 1))
KINDS = {
    "rows": (RowVectors(), 0.0), "joint": (JointVectors(1.0, 1.0, 0.5), None),
    "gradients": (GradientVectors(COEF[0], LogisticLoss(), 1.5), 1.0),
    "softmax": (GradientVectors(COEF, SoftmaxLoss(3), 2.1), 1.0),
    "curvature": (CurvatureVectors(COEF[0], LogisticLoss(), 1.5), 1.0),
}  # fmt: skip
LAYOUTS = {
    "C": np.ascontiguousarray, "F": np.asfortranarray, "csr": sparse.csr_array,
    "single": lambda X: X.astype(np.float32), "every other": lambda X: np.repeat(X, 2, 1)[:, ::2],
}  # fmt: skip


def vectors_of(kind, X):
    what, intercept = KINDS[kind]
    target, nobody = np.ones(N, dtype=int), np.zeros(N, dtype=bool)
    if intercept is None:
        rows = regression_rows(X, target.astype(np.float64))
    else:
        rows = rows_in_ball(X, target, nobody, 1.0, intercept)
    return np.concatenate([what.vectors(chunk) for chunk in rows.chunks])


@pytest.mark.covering
@pytest.mark.parametrize("value", [1e38, 1e300, 1e-300, 5e-324, 0.0])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_awkward_neighbour_changes_no_other_row(kind, layout, value):
    if layout == "single" and value in (1e300, 1e-300, 5e-324):
        value = 1e-45
    X = np.random.default_rng(0).normal(size=(N, D))
    expected = vectors_of(kind, LAYOUTS[layout](X))
    X[7, 1] = value
    with np.errstate(under="ignore"):
        made = vectors_of(kind, LAYOUTS[layout](X))
    others = np.delete(np.arange(N), 7)
    np.testing.assert_array_equal(made[others], expected[others])

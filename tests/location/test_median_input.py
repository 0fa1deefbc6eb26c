# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bad input to DPMedian: a clear error, and nothing fitted."""

import numpy as np
import pytest
import sklearn
from scipy import sparse

from skdp.location import DPMedian

NAN, INF = float("nan"), float("inf")
X = np.random.default_rng(0).normal(size=(60, 2))
MECHANISMS = ("rank", "gradient", "exponential")
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", v) for v in (0, -1, NAN, INF, "1", None, True)]
    + [("delta", v) for v in (-0.1, 1, NAN, "x", None)]
    + [("mechanism", v) for v in ("laplace", None)]
    + [("data_norm", v) for v in (0, -1, NAN, INF, 1e-200, True)]
    + [("bounds", v) for v in ((1, 0), (0, NAN), (-INF, 1), (0,), ([0] * 3, 1), "ab", (-1e200, 1))]
    + [("max_iter", v) for v in (0, 1, 2.5, "many")]
    + [("adjacency", "add-remove"), ("random_state", -1)],
)
def test_bad_parameters_are_named(name, value):
    model = DPMedian(**{name: value})
    with pytest.raises((ValueError, TypeError), match=name) as raised:
        model.fit(X)
    assert "must" in str(raised.value)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", 0), ("epsilon", NAN), ("delta", 1.0), ("delta", -0.1), ("delta", NAN)]
    + [("data_norm", INF), ("bounds", (1, 0)), ("adjacency", "x")],
)
@pytest.mark.parametrize("mechanism", ["auto", *MECHANISMS])
def test_the_gate_does_not_rely_on_scikit_learn_s_validation(mechanism, name, value):
    model = DPMedian(**{"mechanism": mechanism, name: value})
    with (
        sklearn.config_context(skip_parameter_validation=True, assume_finite=True),
        pytest.raises(ValueError, match="must"),
    ):
        model.fit(X)
    assert not hasattr(model, "ledger_")


@every_mechanism
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.empty((0, 3)), "0 sample"),
        (np.zeros(60), "1D array"),
        (np.full((6, 3), NAN), "NaN"),
        ([["60", "kilos"]] * 6, "numeric"),
        (sparse.csr_array(np.eye(3)), "[Ss]parse"),
    ],
)
def test_bad_data(mechanism, data, message):
    with pytest.raises((ValueError, TypeError), match=message):
        DPMedian(mechanism=mechanism).fit(data)

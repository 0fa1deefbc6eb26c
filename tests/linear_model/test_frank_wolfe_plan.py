# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Frank-Wolfe over the l1 ball: what is planned from public numbers, and what is refused."""

import numpy as np
import pytest
from scipy import sparse

from skdp import DPHingeSVM
from skdp.solvers.frank_wolfe import MOST_STEPS
from skdp.solvers.frank_wolfe import default_coordinate_clip as default_clip
from tests._solvers import plan_of
from tests.linear_model._vertices import fitted
from tests.linear_model.test_frank_wolfe import X, Y, model


def steps_of(n_rows=10_000, n_features=1000, n_classes=2, **options):
    return plan_of(model(**options), n_rows, n_features, n_classes).steps


def test_the_plan_follows_the_budget_and_the_size():
    counts = [steps_of(epsilon=e).n_steps for e in (1e-3, 0.1, 1.0, 10.0, 1e3)]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] > 100
    assert steps_of(n_rows=10**9, epsilon=100.0).n_steps == MOST_STEPS
    assert steps_of(n_features=10**7).n_steps < steps_of(n_features=10).n_steps
    assert steps_of(adjacency="zero-out").n_steps > steps_of().n_steps
    # the first step moves no margin of an unclipped row by more than a quarter
    for options in ({}, {"l1_bound": 1e3}, {"clipping_norm": 0.01}):
        steps = steps_of(**options)
        assert 2 / steps.offset * steps.radius * steps.clip <= 0.25 + 1e-12
        assert steps.offset >= 2


def test_wishes_are_granted():
    steps = steps_of(l1_bound=7.0, clipping_norm=0.05, max_iter=13)
    assert (steps.radius, steps.clip, steps.n_steps) == (7.0, 0.05, 13)
    # no gradient has entries beyond 1, and the l1 ball must be inside of the other
    assert steps_of(clipping_norm=9.0).clip == 1.0
    assert steps_of(clipping_norm=9.0, intercept_scaling=3.0).clip == 3.0
    assert steps_of(l1_bound=7.0, coef_bound=2.0).radius == 2.0
    assert steps_of(coef_bound=2.0).radius == 2.0
    assert steps_of(l1_bound=7.0, data_norm=10.0).radius == 70.0


def test_the_default_clip_follows_the_sparsity():
    assert default_clip(10**6, 100, 0.1) == 0.05
    assert default_clip(10**6, None, 0.1) == 0.1
    assert default_clip(4, None, 0.1) == default_clip(4, 100, 0.1) == 0.25
    assert default_clip(10**6, 10**4, 0.0) == 0.005
    assert default_clip(10**6, None, 5.0) == 0.5


def test_the_sparsity_is_enforced():
    long = sparse.csr_array(np.ones((40, 30)))
    made = model(max_iter=3, sparsity=4)
    _, draws = fitted(made, (long, np.arange(40) % 2), (0, 0, 0))
    (chunk,) = draws[0][1].chunks
    assert (np.diff(chunk.X.indptr) == 4).all()
    np.testing.assert_allclose(chunk.largest_entries(), 0.5)


# -- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 1.0}, "C must be inf with solvers.FrankWolfe\\(\\).*l1_bound"),
        ({"preprocess": "center", "mechanism": "exponential"}, "preprocess must be None"),
        ({"mechanism": "gradient"}, "does not belong to mechanism='gradient'"),
        ({"solver": "net", "coef_bound": 1.0, "max_iter": 3}, "max_iter must be None"),
        ({"l1_bound": 0.0}, "l1_bound"),
        ({"l1_bound": np.nan}, "l1_bound"),
        ({"l1_bound": -1.0}, "l1_bound"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"epsilon": 5e-324, "max_iter": 9}, "epsilon is too small to be shared by 9 steps"),
    ],
)
def test_bad_parameters_are_named(options, message):
    made = model(**options)
    with pytest.raises(ValueError, match=message):
        made.fit(X, Y)
    assert not hasattr(made, "coef_")


def test_a_loss_with_kinks_is_refused_by_the_name_of_its_remedy():
    made = DPHingeSVM(solver="frank-wolfe", classes=(0, 1), random_state=0)
    with pytest.raises(ValueError, match="Set smoothing to a positive number"):
        made.fit(X, Y)
    assert made.set_params(smoothing=0.5).fit(X, Y).privacy_spent_[0] <= 1.0


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 5e-324, "max_iter": 1},
        {"epsilon": 1e-200, "delta": 0.9},
        {"epsilon": 1e6, "delta": 1e-300, "max_iter": 3},
        {"l1_bound": 1e50},
        {"l1_bound": 1e-50},
        {"clipping_norm": 1e-50},
        {"clipping_norm": 1e50},
        {"intercept_scaling": 1e50},
        {"intercept_scaling": 1e-50},
        {"sparsity": 1},
        {"sparsity": 10**9},
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_extreme_wishes_give_finite_fits_within_the_budget(options, n_classes):
    made = model(**({"max_iter": 5, "classes": range(n_classes)} | options)).fit(X, Y)
    assert np.isfinite(made.coef_).all()
    assert np.isfinite(made.intercept_).all()
    assert made.privacy_spent_[0] <= made.epsilon
    assert made.privacy_spent_[1] <= made.delta

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What workers are sent has no noise in it, and no rows."""

import cloudpickle
import numpy as np
import pytest

from skdp._losses.classification import HingeLoss, LogisticLoss
from skdp._minimize import objective as _objective
from tests._neighbours import rows_in_ball

SECRET = np.array([0.123456789, -2.718281828, 3.141592653])
ROWS = np.random.default_rng(0).normal(size=(50, 3))


def parts_of(objective, monkeypatch):
    """Return the pickles of all that an objective would send."""
    sent = []

    def kept(rows, partial, size):
        sent.append(cloudpickle.dumps(partial))
        return np.zeros(size)

    monkeypatch.setattr(_objective, "sum_over", kept)
    w = np.ones(3)
    objective.value_and_gradient(w)
    objective.gradient(w)
    if np.isfinite(objective.loss.smoothness):
        objective.hessian(w)
        objective.hessian_diagonal(w)
        objective.hessian_product(w, w)
    else:
        objective.duality_gap(objective.smoothed(0.1), w, w)
    return sent


@pytest.mark.parametrize("loss", [LogisticLoss(), HingeLoss()], ids=["smooth", "kinked"])
def test_the_secret_term_of_objective_perturbation_is_not_sent(monkeypatch, loss):
    target = np.where(ROWS[:, 0] > 0, 1.0, -1.0)
    rows = rows_in_ball(ROWS, target, np.zeros(50, dtype=bool), 10.0, 0.0)
    objective = _objective.RowObjective(
        rows, loss, ridge=1.0, n_coefs=3, row_norm=1.0, center=np.full(3, 7.5), linear=SECRET
    )
    sent = parts_of(objective, monkeypatch)
    assert len(sent) >= 3
    for content in sent:
        assert SECRET.tobytes() not in content
        assert np.float64(np.linalg.norm(SECRET)).tobytes() not in content
        assert ROWS[0].tobytes() not in content
        # what was sent works by itself
        vector = cloudpickle.loads(content)(rows.chunks[0])
        assert np.isfinite(vector).all()

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The sampler for strongly convex functions has the target law, whatever its anchor."""

import numpy as np
import pytest
from scipy import stats

from skdp._sampling import sample_strongly_convex, sample_tangent_box
from tests.sampling import _laws
from tests.sampling._laws import FALSE_ALARM, quadrature_cdf, same_law, source


def ridge(loss, strength):
    def penalised(points):
        value, slope = loss(points)
        square = (points * points).sum(axis=1)
        return value + strength / 2 * square, slope + strength * points

    return penalised


@pytest.mark.parametrize("anchor", [0.0, 0.4, -0.9])
def test_law_on_the_line(anchor):
    f = ridge(_laws.absolute(np.array([0.1, 0.5, 0.8])), 4.0)
    law = quadrature_cdf(lambda t: -1.5 * f(t[:, None])[0], -1, 1, 20_001)
    variates = source("line")
    for c in (1.5, 0.3):
        x = [sample_strongly_convex(f, [anchor], c, 4.0, 1.0, variates)[0] for _ in range(300)]
        assert same_law(x, law) == (c == 1.5)


def test_agrees_with_boxes_in_the_plane():
    f = ridge(_laws.logistic(_laws.unit_rows(20, 2)), 6.0)
    variates, anchor = source("plane"), np.array([0.5, 0.5])
    x = np.array([sample_strongly_convex(f, anchor, 1.0, 6.0, 1.0, variates) for _ in range(400)])
    balls = [(np.zeros(2), 1.0)]
    y = np.array([sample_tangent_box(f, 2, 1.0, balls, variates) for _ in range(400)])
    for direction in ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0]):
        assert stats.ks_2samp(x @ direction, y @ direction).pvalue > FALSE_ALARM


def test_many_dimensions():
    n_dims = 50
    f = ridge(_laws.logistic(_laws.unit_rows(30, n_dims)), 100.0)
    x = sample_strongly_convex(f, np.zeros(n_dims), 1.0, 100.0, 2.0, source("many"))
    assert np.linalg.norm(x) <= 2

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What an audit found can be read, put in a table, and drawn."""

import dataclasses

import numpy as np
import pytest
from matplotlib import pyplot as plt

from skdp.audit import AuditResult, audit_privacy
from tests.audit import _broken as broken

plt.switch_backend("agg")


def audit(estimator, **given):
    pair = [[0.0], [1.0]], [[0.0], [-1.0]]
    return audit_privacy(estimator, pair[0], neighbour=pair[1], random_state=0, **given)


def test_the_result_is_readable():
    result = audit(broken.HalvedNoise(1.0), n_runs=800)
    assert isinstance(result, AuditResult)
    first, second = repr(result).split("\n")
    assert "CONTRADICTED" in first
    assert "with confidence 95%" in first
    assert "never proves" in second
    frame = result.to_frame()
    assert frame.shape[0] == 1
    assert frame["fpr_upper"][0] == result.fpr[2]
    assert not frame["passed"][0]


@pytest.mark.covering
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("epsilon", [1.0, np.inf, None])
def test_the_picture(delta, epsilon):
    result = audit(broken.LaplaceMean(1.0), n_runs=60, delta=delta)
    ax = dataclasses.replace(result, epsilon_claimed=epsilon).plot()
    assert ax.get_xlabel() == "false positive rate"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(labels) == 2 + (epsilon is not None) + (epsilon == 1.0 and delta > 0)
    assert result.plot(ax=plt.figure().add_subplot()) is not ax
    plt.close("all")

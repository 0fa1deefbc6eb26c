# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Plans of bias-reduced descent: public numbers in, levels, steps and noise out."""

import itertools
import math

import pytest

from skdp.papers.bias_reduced import plan_telescope


def planned(**facts):
    usual = {
        "n_rows": 10_000, "size": 50, "adjacency": "zero-out", "budget": (1.0, 1e-6, 0.0, ()),
        "clip": 1.0, "radius": 30.0, "l2": 0.0, "intercept": True,
    }  # fmt: skip
    return plan_telescope(**{**usual, **facts})


def test_the_plan_is_a_function_of_public_numbers():
    assert planned() == planned()
    assert hash(planned()) == hash(planned())


@pytest.mark.full
def test_small_batches_come_in_where_there_are_many_rows():
    levels = [planned(n_rows=n).telescope.n_levels for n in (10, 300, 10**4, 10**6)]
    assert levels[:2] == [0, 0]
    assert levels[-1] > 0


@pytest.mark.full
def test_every_level_is_drawn_where_the_steps_suffice():
    for n_steps, batch_size in itertools.product((None, 5, 40), (None, 700)):
        plan = planned(n_rows=10**5, n_steps=n_steps, batch_size=batch_size)
        n_levels = plan.telescope.n_levels
        drawn = {level for level, _ in plan.costs}
        if n_steps is None or batch_size is None:
            assert drawn == {None, *range(n_levels)}
        assert sum(cost.count for level, cost in plan.costs if level is not None) == (
            plan.n_steps if n_levels else 0
        )


def test_the_noise_is_that_of_the_largest_step_count_and_all_kinds_share_it():
    for adjacency in ("zero-out", "replace-one"):
        plan = planned(adjacency=adjacency, batch_size=1000)
        assert plan.telescope.n_levels == 3
        moved = 2 if adjacency == "replace-one" else 1
        for level, cost in plan.costs:
            reach = 1.0 if level is None else math.sqrt(2)
            reach *= moved if cost.sampling.reads_all else 1
            assert reach / cost.mu == pytest.approx(plan.sigma, rel=1e-8)


def test_a_step_that_is_asked_for_is_made():
    plan = planned(n_steps=11, step_size=0.3, batch_size=5000)
    assert (plan.n_steps, plan.step_size, plan.telescope.n_levels) == (11, 0.3, 1)

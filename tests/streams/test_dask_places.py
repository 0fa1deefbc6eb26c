# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Every row of a chunk is found, once and in order, whatever the partitions are."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdp._rows.dask import cuts_for, jobs_for, layout_of, located

lengths = st.lists(st.integers(1, 9), min_size=1, max_size=8)


def bounds_of(sizes):
    return np.cumsum([0, *sizes])


def rows_at(places, bounds):
    rows = np.arange(bounds[-1])
    parts = [rows[bounds[i] : bounds[i + 1]][where] for i, where in places]
    return np.concatenate(parts)


@given(lengths, st.data())
def test_ranges_and_positions(sizes, data):
    bounds = bounds_of(sizes)
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, int(bounds[-1]))] * 2)))
    rows = np.arange(start, stop)
    assert np.array_equal(rows_at(located((start, stop), bounds), bounds), rows)
    chosen = rows[data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))]
    assert np.array_equal(rows_at(located(chosen, bounds), bounds), chosen)


@given(lengths, st.integers(1, 7), st.integers(1, 3), st.integers(1, 3))
def test_blocks_are_added_up_in_order(sizes, step, width, longest):
    bounds = bounds_of(sizes)
    n_rows = int(bounds[-1])
    pieces = [(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    found = []
    for job in jobs_for(pieces, bounds, width, longest):
        assert len(job.blocks) <= longest
        for block in job.blocks:
            if job.partition is not None:
                chunks = [[(job.partition, where)] for where in block]
            else:
                wanted, layout = layout_of(block)
                parts = [[(i, where) for where in places] for i, places in wanted.items()]
                chunks = [[parts[i][j] for i, j in chunk] for chunk in layout]
                assert len(parts) > 1
            assert len(chunks) <= width
            found += [rows_at(chunk, bounds) for chunk in chunks]
    assert [list(chunk) for chunk in found] == [list(range(*piece)) for piece in pieces]


@given(lengths, st.integers(1, 7), st.integers(1, 30))
def test_partitions_begin_where_blocks_do(sizes, unit, size):
    bounds = bounds_of(sizes)
    new, places = cuts_for(int(bounds[-1]), bounds, unit, size)
    assert (new[0], new[-1]) == (0, bounds[-1])
    assert np.all(np.diff(new) > 0)
    assert not np.any(new[1:-1] % unit)
    if places is None:
        assert new is bounds
    else:
        rows = [list(rows_at(part, bounds)) for part in places]
        assert rows == [list(range(*pair)) for pair in pairwise(new)]


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [([64, 64, 50], True), ([61, 63], False), ([8] * 100, False), ([8000, 8], False)],
)
def test_partitions_stay_if_they_are_of_a_useful_size(sizes, kept):
    bounds = bounds_of(sizes)
    assert (cuts_for(int(bounds[-1]), bounds, 8, 64)[1] is None) == kept

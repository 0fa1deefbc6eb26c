# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which rows of which partitions a chunk is made of."""

from dataclasses import dataclass, field

import numpy as np


def located(piece, bounds):
    """Return where the rows of a piece are.

    Parameters
    ----------
    piece : tuple of (int, int), or ndarray
        A range of positions, or sorted positions.
    bounds : ndarray of shape (n_partitions + 1,)
        First position of every partition, and the number of rows. No partition is empty.

    Returns
    -------
    places : list of (int, slice or ndarray)
        Partitions in order, and places inside. A piece without rows is a place without rows.
    """
    if isinstance(piece, tuple):
        start, stop = piece
        first, last = _home(bounds, start), _home(bounds, max(stop - 1, start))
        return [
            (i, slice(max(start - bounds[i], 0), min(stop, bounds[i + 1]) - bounds[i]))
            for i in range(first, last + 1)
        ]
    if not len(piece):
        return [(0, slice(0, 0))]
    first, last = _home(bounds, piece[0]), _home(bounds, piece[-1])
    ends = np.searchsorted(piece, bounds[first + 1 : last + 1])
    parts = np.split(piece, ends)
    return [(first + i, part - bounds[first + i]) for i, part in enumerate(parts) if len(part)]


def _home(bounds, position):
    """Return the partition that a position is in."""
    return int(min(np.searchsorted(bounds, position, side="right"), len(bounds) - 1)) - 1


@dataclass
class Job:
    """Blocks of chunks that one task adds up.

    Parameters
    ----------
    partition : int or None
        Where all their rows are; None if one block's rows are in several partitions.
    blocks : list
        For every block a list of chunks: places as of `located`, or for one partition, the
        places inside.
    """

    partition: int | None
    blocks: list = field(default_factory=list)


def jobs_for(pieces, bounds, width, longest):
    """Return what tasks are to do, in the order of the blocks.

    Parameters
    ----------
    pieces : sequence
        What the chunks are made of.
    bounds : ndarray of shape (n_partitions + 1,)
        Of the partitions.
    width : int
        Chunks of a block.
    longest : int
        Blocks of a job, at most.

    Returns
    -------
    jobs : list of Job
        Where partitions begin and end has no influence on what is added up, and in which
        order; only on where.
    """
    jobs: list[Job] = []
    for start in range(0, len(pieces), width):
        chunks = [located(piece, bounds) for piece in pieces[start : start + width]]
        homes = {i for places in chunks for i, _ in places}
        if len(homes) > 1:
            jobs.append(Job(None, [chunks]))
            continue
        home = homes.pop()
        if not jobs or jobs[-1].partition != home or len(jobs[-1].blocks) >= longest:
            jobs.append(Job(home))
        jobs[-1].blocks.append([places[0][1] for places in chunks])
    return jobs


def layout_of(chunks):
    """Return what partitions have to hand over for a block, and how it is put together.

    Parameters
    ----------
    chunks : list
        Places as of `located`, for every chunk.

    Returns
    -------
    wanted : dict of int to list
        For every partition, in order, the places inside.
    layout : list of list of (int, int)
        For every chunk, pairs: number of an item of `wanted`, and of a place there.
    """
    wanted: dict[int, list] = {}
    number: dict[int, int] = {}
    layout = []
    for places in chunks:
        chunk = []
        for home, where in places:
            found = wanted.setdefault(home, [])
            chunk.append((number.setdefault(home, len(number)), len(found)))
            found.append(where)
        layout.append(chunk)
    return wanted, layout


def cuts_for(n_rows, bounds, unit, size):
    """Return where rows are to be cut anew, and what every new partition is made of.

    Parameters
    ----------
    n_rows : int
        All rows.
    bounds : ndarray of shape (n_partitions + 1,)
        Of the partitions there are.
    unit : int
        Rows of a block of chunks: partitions begin at multiples.
    size : int
        Rows of a partition, about.

    Returns
    -------
    bounds : ndarray of shape (n_new + 1,)
        Of the new partitions.
    places : list
        As of `located`, one for each; None if the partitions may stay as they are.
    """
    length = max(1, size // unit) * unit
    inner, sizes = bounds[1:-1], np.diff(bounds)
    # neither tasks by the thousand nor partitions that fill a worker
    if (
        not np.any(inner % unit)
        and len(sizes) <= 2 * -(-n_rows // length)
        and sizes.max() <= 2 * length
    ):
        return bounds, None
    new = np.append(np.arange(0, n_rows, length), n_rows)
    pieces = zip(new[:-1].tolist(), new[1:].tolist(), strict=True)
    return new, [located(piece, bounds) for piece in pieces]

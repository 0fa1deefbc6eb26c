# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a collection of dask, which are added up where they are."""

import numpy as np

from skdp._streams import _cluster_tasks as tasks
from skdp._streams._cluster_tasks import Sealed
from skdp._streams._dask import compute, current_client, kept, task
from skdp._streams._dask_parts import partitions
from skdp._streams._places import cuts_for, jobs_for, layout_of, located
from skdp._streams._table import READ_ROWS, Table, joined, taken

#: bytes of a partition, about: its sum takes longer than the task that asks for it
PARTITION_BYTES = 1 << 26
#: bytes of sums that are on their way at a time
WAVE_BYTES = 1 << 28
#: bytes of functions and coefficients from which on a worker gets them once, not every task
SENT_ONCE = 1 << 16


def cluster_table(X, y=None):
    """Return the table of a collection of dask.

    Parameters
    ----------
    X : dask array or dask DataFrame of shape (n_rows, n_features)
        Rows.
    y : dask array, Series or DataFrame, or array-like, of shape (n_rows,), default=None
        Targets.

    Returns
    -------
    table : ClusterTable
        If a client of dask.distributed is current, the rows stay in its workers' memory;
        otherwise they are computed anew, partition by partition, whenever they are needed.

    Raises
    ------
    TypeError
        If they are anything else.
    ValueError
        If they have other shapes.
    """
    client = current_client()
    parts, lengths, names = partitions(X, y, client)
    return ClusterTable(parts, lengths, names, client)


class ClusterTable(Table):
    """Rows in partitions, each the result of a task of dask.

    Parameters
    ----------
    parts : list of Delayed
        Blocks (X, y).
    lengths : list of int
        Their numbers of rows.
    names : tuple of str or None
        Of the features.
    client : Client or None
        Who computes them; None for dask's own choice.

    Notes
    -----
    Blocks of chunks are cut by the shape of the data alone, and added up in order, wherever
    partitions end. Copies for other processes are empty.
    """

    def __init__(self, parts, lengths, names, client=None):
        filled = [i for i, length in enumerate(lengths) if length]
        self._parts = [parts[i] for i in filled]
        self._bounds = np.cumsum([0, *(lengths[i] for i in filled)])
        self.n_rows, self.names, self._client = int(self._bounds[-1]), names, client
        self._aligned, self._row_bytes, self._jobs = False, 8, None
        self._at_hand = self._first = None

    def __getstate__(self):
        return {}

    def of_blocks(self, look):
        """Return the facts of all partitions; none of their rows comes here.

        Parameters
        ----------
        look : callable
            Maps a block to its facts.

        Returns
        -------
        facts : list of Facts
            One for each.
        """
        look = Sealed(look)
        found = self._compute([task(tasks.looked_at, look, part) for part in self._parts])
        for part in found:
            if isinstance(part, Exception):
                raise part
        found = [part for part in found if part is not None]
        if found:
            entries = sum(part.n_entries for part in found)
            width = 12 if found[0].is_sparse else 8
            self._row_bytes = max(1, width * entries // self.n_rows)
        return found

    def block_sums(self, chunks, partial, width, size):
        """Yield sums over blocks of chunks, one after another; parts of them are added up there.

        Parameters
        ----------
        chunks : LazyChunks
            Of this table.
        partial : callable
            Maps a chunk to a vector.
        width : int
            Chunks of a block.
        size : int
            Length of a vector.

        Yields
        ------
        total : ndarray of shape (size,)
            The same to the last bit wherever the rows are.
        """
        work = self._sent((chunks.make, partial))
        jobs = self._jobs_of(chunks.pieces, width, size)
        most, wave, n_blocks = max(1, WAVE_BYTES // (8 * size)), [], 0
        for job in jobs:
            if wave and n_blocks + len(job.blocks) > most:
                yield from self._done(work, wave)
                wave, n_blocks = [], 0
            wave.append(job)
            n_blocks += len(job.blocks)
        yield from self._done(work, wave)

    def _sent(self, work):
        """Return what tasks need to make chunks and add them up."""
        if self._client is None:
            return Sealed(work)
        import cloudpickle

        sealed = Sealed(cloudpickle.dumps(work))
        if len(sealed.content) < SENT_ONCE:
            return sealed
        # a task of its own, not data that are lost with the worker that has them
        return task(tasks.unchanged, sealed)

    def _jobs_of(self, pieces, width, size):
        longest = max(1, PARTITION_BYTES // (8 * size))
        self._align(pieces, width)
        if self._jobs is None or self._jobs[0] is not pieces or self._jobs[1] != longest:
            # the same ranges are asked for at every step
            self._jobs = pieces, longest, jobs_for(pieces, self._bounds, width, longest)
        return self._jobs[2]

    def _align(self, pieces, width):
        """Cut the rows into partitions that begin where blocks do; once."""
        if self._aligned:
            return
        self._aligned = True
        ranges = [stop - start for start, stop in filter(_is_range, pieces[:width])]
        unit = width * max(ranges, default=-(-READ_ROWS // width))
        n_threads = 1 if self._client is None else sum(self._client.nthreads().values())
        # every thread is to have something to do
        size = min(PARTITION_BYTES // self._row_bytes, -(-self.n_rows // max(1, n_threads)))
        if self._client is None and len(self._parts) * size <= 16 * self.n_rows:
            # nothing is kept: rows would be copied at every pass
            return
        bounds, places = cuts_for(self.n_rows, self._bounds, unit, size)
        if places is not None:
            made = []
            for parts in places:
                found = [(self._parts[i], Sealed(where)) for i, where in parts]
                made.append(task(tasks.put_together, *(arg for pair in found for arg in pair)))
            self._parts, self._bounds = kept(made, self._client), bounds

    def _done(self, work, jobs):
        """Return the sums of all blocks of some jobs, in order."""
        asked = []
        for job in jobs:
            if job.partition is not None:
                block = self._parts[job.partition]
                asked.append(task(tasks.sums_within, work, block, Sealed(job.blocks)))
                continue
            wanted, layout = layout_of(job.blocks[0])
            parts = [task(tasks.fragments, self._parts[i], Sealed(wanted[i])) for i in wanted]
            asked.append(task(tasks.sum_across, work, Sealed(layout), *parts))
        for sums in self._compute(asked):
            yield from sums

    def _compute(self, asked):
        return compute(asked, self._client)

    def blocks(self):
        """Yield all rows, in order; a single row first, which is all that some ask for."""
        if self.n_rows:
            if self._first is None:
                self._first = self._brought([(0, slice(0, 1))])
            yield self._first
            for start in range(1, self.n_rows, READ_ROWS):
                yield self.read(start, min(start + READ_ROWS, self.n_rows))

    def _read(self, start, stop):
        # whole partitions: the next range is in the same one
        pieces = []
        for i, where in located((start, stop), self._bounds):
            if self._at_hand is None or self._at_hand[0] != i:
                self._at_hand = None
                self._at_hand = i, self._compute([self._parts[i]])[0]
            pieces.append(taken(self._at_hand[1], where))
        return joined(pieces)

    def take(self, positions):
        """Return the rows at sorted positions; no other row comes here."""
        return self._brought(located(positions, self._bounds))

    def _brought(self, places):
        asked = [task(tasks.fragments, self._parts[i], Sealed([where])) for i, where in places]
        return joined([part[0] for part in self._compute(asked)])

    def close(self):
        """Forget rows that were kept for the next call."""
        super().close()
        self._at_hand = self._first = None


def _is_range(piece):
    return isinstance(piece, tuple)

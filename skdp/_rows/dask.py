# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Streams of whatever `fit` is given, collections of dask included, whose rows stay in place.

`opened` makes the streams. Rows of a collection of dask are added up where they are: a task takes
the partition that it is sent to, makes chunks of it, and returns sums over blocks of chunks; the
process that called `fit` adds these up in the order of the rows. Where chunks and blocks begin
depends on the shape of the data alone, wherever partitions end, so that the sums are those of rows
in memory, to the last bit (Proposition 95 of the proofs).

No task draws anything, and none adds noise: a task that is run twice, because a worker was lost,
returns the same numbers. dask is imported when a collection is met.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock

import numpy as np
from threadpoolctl import ThreadpoolController

from skdp._rows.base import added_up
from skdp._rows.kept import Keeper
from skdp._rows.streams import (
    READ_ROWS,
    ArrayTable,
    PairTable,
    RowStream,
    Table,
    as_block,
    as_stored,
    in_one,
    is_dask,
    joined,
    names_of,
    refuse_masked,
    refuse_other_types,
    taken,
    targets_of,
    through,
)


def opened(X, y=None):
    """Return the streams of rows and targets.

    Parameters
    ----------
    X : RowStream, memory map or dask collection
        Rows.
    y : array-like, RowStream or dask collection, default=None
        Targets.

    Returns
    -------
    X, y : RowStream, RowStream or None
        Both of one table.
    """
    if isinstance(X, RowStream) and (y is None or getattr(y, "table", None) is X.table):
        # views: what a fit finds out is not written on what the user has
        return X.view(), None if y is None else y.view()
    if is_dask(X):
        table = cluster_table(X, y)
    elif isinstance(y, RowStream) and not isinstance(X, RowStream):
        raise TypeError("y is a stream of rows: X must be one, too.")
    elif isinstance(X, RowStream):
        table = PairTable(X, y if isinstance(y, RowStream) else as_stored(y))
    else:
        table = ArrayTable(X, None if y is None else as_stored(y))
        table.keeper = Keeper()
    return RowStream(table), None if y is None else RowStream(table, (targets_of,), 1)


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


# The table of a collection: rows in partitions.


#: bytes of a partition, about: its sum takes longer than the task that asks for it
PARTITION_BYTES = 1 << 26
#: bytes of sums that are on their way at a time
WAVE_BYTES = 1 << 28
#: bytes of functions and coefficients from which on a worker gets them once, not every task
SENT_ONCE = 1 << 16


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
        self._at_hand = self._first = self._counted = None

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
        found = self._compute([task(looked_at, look, part) for part in self._parts])
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
        return task(unchanged, sealed)

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
                made.append(task(put_together, *(arg for pair in found for arg in pair)))
            self._parts, self._bounds = kept_by_workers(made, self._client), bounds

    def _done(self, work, jobs):
        """Return the sums of all blocks of some jobs, in order."""
        asked = []
        for job in jobs:
            if job.partition is not None:
                block = self._parts[job.partition]
                asked.append(task(sums_within, work, block, Sealed(job.blocks)))
                continue
            wanted, layout = layout_of(job.blocks[0])
            parts = [task(fragments, self._parts[i], Sealed(wanted[i])) for i in wanted]
            asked.append(task(sum_across, work, Sealed(layout), *parts))
        for sums in self._compute(asked):
            yield from sums

    def _compute(self, asked):
        return compute(asked, self._client)

    def counted(self, weight, known=None):
        """Return the table of the same rows, with what each counts as a third part of blocks.

        Numbers are sent to the workers, if there are any, once.
        """
        if self._counted is None or self._counted[0] is not weight:
            pairs = zip(self._parts, self._bounds[:-1], self._bounds[1:], strict=True)
            parts = [
                task(with_numbers, part, Sealed(weight[low:high])) for part, low, high in pairs
            ]
            parts, lengths = kept_by_workers(parts, self._client), np.diff(self._bounds).tolist()
            made = ClusterTable(parts, lengths, self.names, self._client)
            made._row_bytes = self._row_bytes + 8
            self._counted = weight, made
        return self._counted[1]

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
        asked = [task(fragments, self._parts[i], Sealed([where])) for i, where in places]
        return joined([part[0] for part in self._compute(asked)])

    def close(self):
        """Forget rows that were kept for the next call."""
        super().close()
        self._at_hand = self._first = self._counted = None


def _is_range(piece):
    return isinstance(piece, tuple)


# The partitions of a collection: rows with their targets, and how many there are.


def partitions(X, y, client):
    """Return the partitions of rows and targets.

    Parameters
    ----------
    X, y : dask collection; dask collection, array-like or None
        Rows and targets.
    client : Client or None
        Who computes them.

    Returns
    -------
    parts : list of Delayed
        Blocks (X, y).
    lengths : list of int
        Their numbers of rows; they are computed if dask does not know them.
    names : tuple of str or None
        Of the features.
    """
    parts, lengths, n_features = _rows_in_parts(X)
    names = names_of(X)
    parts = [task(rows_alone, part, n_features) for part in parts]
    parts, lengths = _counted(parts, lengths, client)
    if y is None:
        return kept_by_workers(parts, client), lengths, names
    n_rows, bounds = sum(lengths), np.cumsum([0, *lengths])
    if not is_dask(y):
        y = as_stored(y)
        targets, given = [y], list(y.shape[:1])
        if y.ndim != 1 and y.shape[1:] != (1,):
            raise ValueError(f"y must have one column; got an array of shape {y.shape}.")
    else:
        targets, given = _counted(*_column_in_parts(y, "y"), client)
    if sum(given) != n_rows:
        raise ValueError(
            f"X and y must have the same number of rows; got {n_rows} and {sum(given)}."
        )
    filled = [i for i, length in enumerate(given) if length]
    ends = np.cumsum([0, *(given[i] for i in filled)])
    made = []
    for i, part in enumerate(parts):
        if not lengths[i]:
            continue
        pairs = []
        for j, where in located((int(bounds[i]), int(bounds[i + 1])), ends):
            target = targets[filled[j]]
            if isinstance(target, np.ndarray):
                # every task gets its own rows alone
                target, where = target[where], slice(None)
            pairs += [target, Sealed(where)]
        made.append(task(with_targets, part, *pairs))
    return kept_by_workers(made, client), [length for length in lengths if length], names


def _counted(parts, lengths, client):
    """Return partitions and their lengths; if nobody knows these, each is computed once."""
    if any(length is None for length in lengths):
        parts = kept_by_workers(parts, client)
        lengths = compute([task(length_of, part) for part in parts], client)
    return parts, list(lengths)


def _rows_in_parts(X):
    """Return partitions of all columns, their lengths where these are known, and n_features."""
    if not _is_collection(X) or X.ndim != 2:
        raise TypeError(
            "X must be a dask array with two dimensions, or a dask DataFrame; got "
            f"{_described_part(X)}."
        )
    refuse_other_types(X)
    if hasattr(X, "to_dask_array"):
        parts = X.to_delayed()
        return parts, [None] * len(parts), len(X.columns)
    if np.isnan(X.shape[1]):
        raise ValueError("the number of columns of X must be known; got a dask array without it.")
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    return X.to_delayed()[:, 0].tolist(), _known(X.chunks[0]), X.shape[1]


def of_column(y, function, name):
    """Return what a function makes of every partition of one column, where these are.

    Parameters
    ----------
    y : dask array, Series or DataFrame of shape (n_rows,)
        The column.
    function : callable
        Maps an array to what is sent back.
    name : str
        Of the column, for messages.

    Returns
    -------
    made : list
        One for each partition, in order.
    """
    parts, _ = _column_in_parts(y, name)
    made = compute(
        [task(mapped_column, Sealed(function), part) for part in parts], current_client()
    )
    for one in made:
        if isinstance(one, Exception):
            raise one
    return list(made)


def _column_in_parts(y, name):
    """Return partitions of one column, and their lengths where these are known."""
    known = _is_collection(y)
    if known and hasattr(y, "to_dask_array"):
        if y.ndim == 2 and len(y.columns) != 1:
            n_columns = len(y.columns)
            raise ValueError(f"{name} must have one column; got a dask DataFrame of {n_columns}.")
        parts = y.to_delayed()
        return parts, [None] * len(parts)
    if not known or y.ndim not in (1, 2) or y.shape[1:] not in ((), (1,)):
        raise TypeError(
            f"{name} must be a dask array, Series or DataFrame with one column, or an array; got "
            f"{_described_part(y)}."
        )
    return y.to_delayed().ravel().tolist(), _known(y.chunks[0])


def _is_collection(part):
    """Whether part is an array or a data frame of dask."""
    from dask.delayed import Delayed

    # a delayed object has attributes of any name
    return not isinstance(part, Delayed) and hasattr(part, "to_delayed") and hasattr(part, "ndim")


def _known(lengths):
    return [None if np.isnan(length) else int(length) for length in lengths]


def _described_part(part):
    kind = type(part).__name__
    return f"a {kind} with {part.ndim} dimensions" if _is_collection(part) else f"a {kind} of dask"


# The partitions, and the rows of these, that a chunk is made of.


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


# The tasks: what becomes of a partition, on whichever machine it is.


class Sealed:
    """An argument of a task that dask hands over as it is, and writes into no log.

    Parameters
    ----------
    content : object
        What it is.
    """

    __slots__ = ("content",)

    def __init__(self, content):
        self.content = content

    def __reduce__(self):
        return Sealed, (self.content,)

    def __repr__(self):
        return "<sealed>"


class OneThread:
    """A context in which BLAS has one thread, for tasks of several threads of a process.

    Products on several threads may round differently from one run to the next.
    """

    def __init__(self):
        self._lock, self._inside, self._limit = Lock(), 0, None

    def __enter__(self):
        with self._lock:
            if not self._inside:
                self._limit = _libraries().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error):
        # the last one out: whoever came first knows what was before
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()


@lru_cache(maxsize=1)
def _libraries():
    return ThreadpoolController()


_ONE_THREAD = OneThread()


def rows_alone(part, n_features):
    """Return a partition of the rows as a block without targets."""
    X, _ = as_block(part)
    if X.shape[1] != n_features:
        raise ValueError(f"a partition of X has {X.shape[1]} features; X has {n_features}.")
    return X, None


def length_of(block):
    """Return the number of rows of a block, or of a partition of the targets."""
    return len(block) if not isinstance(block, tuple) else block[0].shape[0]


def with_targets(block, *parts):
    """Return a block of rows with its targets, pairs of a partition of these and a slice."""
    X, _ = block
    # places, and not labels of an index
    pieces = [as_stored(part).ravel()[where.content] for part, where in _pairs(parts)]
    return as_block(X, in_one(pieces) if len(pieces) > 1 else pieces[0])


def with_numbers(block, numbers):
    """Return a block of rows and targets with a number for each row."""
    return *block[:2], numbers.content


def put_together(*parts):
    """Return a block that shares no memory with the blocks it is cut out of."""
    X, *others = joined([taken(block, where.content) for block, where in _pairs(parts)])
    # a view would keep the whole of a large partition in memory
    owner = getattr(X, "base", None) is None
    return X if owner else X.copy(order="K"), *others


def looked_at(look, block):
    """Return the facts of a block, or the error that it is not usable; None without rows."""
    if not block[0].shape[0]:
        return None
    return _or_error(look.content, block)


def _or_error(function, part):
    try:
        return function(part)
    except (TypeError, ValueError) as error:
        # as a value: dask would log it, and might try again
        return type(error)(*error.args)


def mapped_column(function, part):
    """Return what a function makes of a partition of one column, or the error that it raises."""
    return _or_error(_unmasked(function.content), part)


def _unmasked(function):
    def made(part):
        refuse_masked(part)
        return function(np.asarray(part).ravel())

    return made


def fragments(block, places):
    """Return the rows at every one of several places of a block."""
    return [taken(block, where) for where in places.content]


def sums_within(work, block, places):
    """Return the sums of blocks of chunks whose rows are all in one partition.

    Parameters
    ----------
    work : Sealed
        A pair: functions that make a chunk of rows, one after another; and what maps it to a
        vector.
    block : tuple
        The partition.
    places : Sealed
        For every block of chunks a list: where the rows of each chunk are.

    Returns
    -------
    sums : ndarray of shape (n_blocks, size)
        One for each.
    """
    work = opened_work(work)
    with _ONE_THREAD:
        return np.stack(
            [_summed(work, (taken(block, where) for where in chunks)) for chunks in places.content]
        )


def sum_across(work, layout, *parts):
    """Return the sum of a block of chunks whose rows are in several partitions.

    Parameters
    ----------
    work : Sealed
        As in `sums_within`.
    layout : Sealed
        For every chunk a list of pairs: number of a part, and of a fragment of it.
    *parts : list
        What `fragments` returned.

    Returns
    -------
    sums : ndarray of shape (1, size)
        The sum.
    """
    work = opened_work(work)
    with _ONE_THREAD:
        chunks = (joined([parts[i][j] for i, j in chunk]) for chunk in layout.content)
        return _summed(work, chunks)[None, :]


def opened_work(work):
    """Return functions that were sent as bytes, or as they are."""
    content = work.content
    if isinstance(content, bytes):
        import cloudpickle

        content = cloudpickle.loads(content)
    return content


def unchanged(content):
    """Return what is sent to every worker once."""
    return content


def _summed(work, blocks):
    """Add vectors of chunks in order, as sums in memory do."""
    make, partial = work
    return added_up(partial, (through(make, block) for block in blocks))


def _pairs(parts):
    return zip(parts[::2], parts[1::2], strict=True)


# Requests to dask, which is imported by them.


def current_client():
    """Return the client of dask.distributed that dask would use now, or None."""
    from dask.base import get_scheduler

    owner = getattr(get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "persist") and hasattr(owner, "nthreads") else None


def task(function, *args):
    """Return a task; its arguments may be other tasks, and are not looked at otherwise."""
    from dask import delayed

    return delayed(function, pure=False, traverse=False)(*args)


def kept_by_workers(made, client):
    """Return tasks whose results workers keep in memory, if there are any workers."""
    if client is None:
        return made
    return list(_asked(client.persist, made, client))


def compute(asked, client):
    """Return the results of tasks, in order.

    Parameters
    ----------
    asked : list of Delayed
        The tasks.
    client : Client or None
        Of the cluster; None for the scheduler of dask's choice.

    Returns
    -------
    results : tuple
        One for each.

    Raises
    ------
    ConnectionError
        If the cluster is gone. What workers compute anew after one of them was lost is not
        seen here.
    """
    import dask

    if client is None:
        return dask.compute(*asked)
    return _asked(lambda made: dask.compute(*made, scheduler=client), asked, client)


def _asked(ask, made, client):
    from concurrent.futures import CancelledError

    import dask
    from distributed.scheduler import KilledWorker

    try:
        # coefficients and positions are as long as they are: dask is not to warn of it
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):
            return ask(made)
    except KilledWorker as error:
        problem, cause = "workers were lost again and again, perhaps for want of memory", error
    except Exception as error:
        if client.status == "running" and not isinstance(error, CancelledError):
            raise
        problem, cause = "the cluster is gone, or has lost rows that it cannot compute anew", error
    raise ConnectionError(
        f"{problem}. The fit was given up; a shared budget has been charged for all of it."
    ) from cause

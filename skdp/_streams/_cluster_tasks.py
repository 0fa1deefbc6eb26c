# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What tasks of dask do with partitions of the rows, wherever they run.

No task draws anything, and none adds noise: a task that is run twice, because a worker was
lost, returns the same numbers.
"""

from functools import lru_cache
from threading import Lock

import numpy as np
from threadpoolctl import ThreadpoolController

from skdp._streams._blocks import as_block
from skdp._streams._lazy_chunks import added_up
from skdp._streams._table import joined, taken, through


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
    pieces = [np.asarray(part[where.content]).ravel() for part, where in _pairs(parts)]
    return as_block(X, np.concatenate(pieces) if len(pieces) > 1 else pieces[0])


def put_together(*parts):
    """Return a block that shares no memory with the blocks it is cut out of."""
    X, y = joined([taken(block, where.content) for block, where in _pairs(parts)])
    # a view would keep the whole of a large partition in memory
    owner = getattr(X, "base", None) is None
    return X if owner else X.copy(order="K"), y


def looked_at(look, block):
    """Return the facts of a block, or the error that it is not usable; None without rows."""
    if not block[0].shape[0]:
        return None
    try:
        return look.content(block)
    except (TypeError, ValueError) as error:
        # as a value: dask would log it, and might try again
        return type(error)(*error.args)


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

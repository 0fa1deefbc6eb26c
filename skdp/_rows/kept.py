# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Chunks of a stream that are kept from one pass over the rows to the next.

A fit to a stream goes through its rows again and again. To read, decode, measure and map them anew
takes many times as long as the sum that is wanted. So a `Keeper`, one for each table, keeps chunks
as they were when they were made: in memory up to a bound, or, where its owner has allowed it, in a
file without a name. They are private rows in plain, and are never more than that: neither noise nor
what was released is among them.

What is kept has the same numbers, in the same layout and at the same addresses modulo 64 bytes, as
what would be made anew, so that nothing depends on whether it is kept (Proposition 77).
"""

import copy
import heapq
import mmap
import os
import tempfile
import threading

import numpy as np
from scipy import sparse

from skdp._rows.base import LazyChunks
from skdp._rows.streams import LARGE, through

#: bytes of chunks that are kept in memory, at most
ROOM = LARGE
#: bytes that a file grows by at a time: few pieces of it are mapped
_SEGMENT = 1 << 28
# bytes: no kernel of a product looks at more of an address
_LINE = 64


class KeptChunks(LazyChunks):
    """Chunks of which those of ranges are kept for the next pass, as far as there is room.

    Parameters
    ----------
    table, pieces, make : Table, list, tuple of callables
        As those of `LazyChunks`; the table has a keeper, and the first function makes parts of a
        block, rows first.
    stages : tuple of (int, object)
        After how many of these functions chunks are kept, and by which key; from the first stage
        to the last, which is after all of them.
    """

    def __init__(self, table, pieces, make, stages):
        super().__init__(table, pieces, make)
        self.stages = stages

    def __getitem__(self, index):
        if isinstance(index, slice):
            return KeptChunks(self.table, self.pieces[index], self.make, self.stages)
        return self._finished(self._begun(self.pieces[index]))

    def __reduce__(self):
        # what another process makes of them has neither table nor keeper
        return LazyChunks, (None, self.pieces, self.make)

    def _begun(self, piece):
        """Return a piece, how much of it is done, and what there is of it: a block, or a chunk."""
        for done, key in reversed(self.stages):
            chunk = self.table.keeper.get((key, piece))
            if chunk is not None:
                return piece, done, chunk
        return piece, 0, self._block(piece)

    def _finished(self, begun):
        """Return the chunk of a piece that was begun; it is kept in place of those before it."""
        piece, done, chunk = begun
        if done == len(self.make):
            return chunk
        if not done:
            (X, *others), done = self.make[0](chunk), 1
            chunk = (_in_line(X), *others)
        chunk = through(self.make[done:], chunk)
        # what it was made of is not asked for again, as a rule
        *earlier, key = [(key, piece) for _, key in self.stages]
        self.table.keeper.keep(key, chunk, earlier)
        return chunk

    def fetched(self):
        """Return an iterator that makes the chunks, of which all rows have been read now."""
        return map(self._finished, [self._begun(piece) for piece in self.pieces])

    def then(self, function):
        """Return the chunks with a function applied to each when it is made."""
        make = (*self.make, function)
        return KeptChunks(self.table, self.pieces, make, (*self.stages, (len(make), object())))

    def between(self, start, stop):
        """Return the chunks of a range of positions: boundaries stay where they are."""
        pieces = super().between(start, stop).pieces
        return KeptChunks(self.table, pieces, self.make, self.stages)


class Keeper:
    """Chunks of one table, by who made them and which rows they have.

    Parameters
    ----------
    folder : str or None, default=None
        Where a temporary file may be made for them; None keeps them in memory, up to 256 MiB.

    Notes
    -----
    Copies, and pickles, keep nothing yet. When nothing more can be kept, in memory or because a
    disk is full, chunks are made anew as often as they are needed, with the same result. In memory
    those of the last rows are kept: what comes before them is all that a pass from the first row on
    has to read.
    """

    def __init__(self, folder=None):
        self.folder, self._turn = folder, threading.Lock()
        self._forget()

    def __reduce__(self):
        return Keeper, (self.folder,)

    def _forget(self):
        # chunks by key, with the bytes that each takes in memory; whether the disk is full
        self._chunks, self._bytes, self._file, self._is_full = {}, 0, None, False
        # keys by their first row, the lowest on top; some of them may be gone
        self._order, self._count = [], 0

    def chunks(self, chunks):
        """Return `LazyChunks` of its table as chunks that are kept; nothing is read."""
        stages = ((len(chunks.make), object()),)
        return KeptChunks(chunks.table, chunks.pieces, chunks.make, stages)

    def get(self, key):
        """Return the chunk of a key, or None."""
        found = self._chunks.get(key)
        return None if found is None else found[0]

    def keep(self, key, chunk, earlier=()):
        """Keep a chunk, if there is room.

        Parameters
        ----------
        key : tuple
            Who made it, and of which rows.
        chunk : object
            Numbers, arrays and CSR arrays in slots. It is never changed.
        earlier : sequence of tuple
            Keys of what it was made of, which is forgotten then.
        """
        owned = {name: part for name, part in _arrays_of(chunk) if not _is_on_disk(part)}
        with self._turn:
            if self._is_full or key in self._chunks:
                return
            size = 0
            if self.folder is None:
                size = sum(array.nbytes for part in owned.values() for array in _arrays(part))
                # room for the rows that come next, if these have none
                self._drop_all(earlier)
            if not self._has_room(size, key[1][0]):
                return
            made = self._moved(chunk, owned)
            self._is_full = made is None
            if not self._is_full:
                self._drop_all(earlier)
                self._chunks[key], self._bytes = (made, size), self._bytes + size
                self._count += 1
                heapq.heappush(self._order, (key[1][0], self._count, key))

    def _has_room(self, size, first):
        """Return whether there is room, when chunks that begin before a row have been dropped."""
        while self._bytes + size > ROOM and self._order and self._order[0][0] < first:
            self._drop_all([heapq.heappop(self._order)[-1]])
        return self._bytes + size <= ROOM

    def _drop_all(self, keys):
        for key in keys:
            self._bytes -= self._chunks.pop(key, (None, 0))[1]

    def close(self):
        """Forget all chunks, and the file with them."""
        with self._turn:
            if self._file is not None:
                self._file.close()
            self._forget()

    def _moved(self, chunk, owned):
        """Return a chunk of arrays that are in the file or its own; None if a disk is full."""
        made = copy.copy(chunk)
        try:
            if self.folder is not None and self._file is None:
                self._file = _File(self.folder)
            move = _owned if self._file is None else self._file.written
            for name, part in owned.items():
                setattr(made, name, _over_arrays(move, part))
        except OSError:
            # says nothing about values: rows have one length, and entries of CSR are counted
            return None
        return made


def _arrays_of(chunk):
    """Yield the names and the values of all arrays in the slots of a chunk."""
    for kind in type(chunk).__mro__:
        for name in getattr(kind, "__slots__", ()):
            part = getattr(chunk, name)
            if isinstance(part, np.ndarray) or sparse.issparse(part):
                yield name, part


def _arrays(part):
    return (part.data, part.indices, part.indptr) if sparse.issparse(part) else (part,)


def _over_arrays(function, part):
    """Return an array, or a CSR array of arrays, that a function makes of one."""
    if not sparse.issparse(part):
        return function(part)
    made = type(part)(tuple(map(function, _arrays(part))), shape=part.shape, copy=False)
    # looking for it would take a pass
    made.has_canonical_format = part.has_canonical_format
    return made


def _owned(array):
    """Return an array of which nobody else has a part: a chunk of the user's may be refilled."""
    base = array.base
    if base is None or (base.base is None and base.nbytes == array.nbytes + _LINE):
        return array
    return _copied(array, _offset(array))


def _offset(array):
    return array.__array_interface__["data"][0] % _LINE


def _in_line(X):
    """Return rows at a multiple of 64, CSR rows and those of a memory map as they are."""
    return X if sparse.issparse(X) or _is_on_disk(X) or not _offset(X) else _copied(X)


def _copied(array, place=0):
    """Return a copy of an array, row after row, at an address that is `place` modulo 64."""
    memory = np.empty(array.nbytes + _LINE, np.uint8)
    skip = (place - _offset(memory)) % _LINE
    made = memory[skip : skip + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def _is_on_disk(part):
    """Whether all of an array is a view of a file: it takes no memory that others may need."""
    for array in _arrays(part):
        base = array
        while isinstance(base, np.ndarray):
            base = base.base
        if isinstance(base, memoryview):
            base = base.obj
        if not isinstance(base, mmap.mmap):
            return False
    return True


class _File:
    """A temporary file of arrays, which nobody else can open, and which is gone when it is closed.

    Parameters
    ----------
    folder : str
        On which disk it is.
    """

    def __init__(self, folder):
        # where the system can, it has no name, and is gone even if the process is killed
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        self._map, self._first, self._next, self._stop = None, 0, 0, 0  # the map, and where it is

    def written(self, array):
        """Return an array of numbers as a view of the file, which cannot be written to."""
        if not array.size:
            return array
        array = np.ascontiguousarray(array)
        if self._stop - self._next < array.nbytes + _LINE:
            self._grow(array.nbytes + _LINE)
        # maps begin at a page: the address is what it was, modulo a line
        self._next += (_offset(array) - self._next) % _LINE
        start = self._next
        self._file.seek(start)
        rest = memoryview(array.reshape(-1).view(np.uint8))
        while rest:
            rest = rest[self._file.write(rest) :]
        self._next += array.nbytes
        found = np.frombuffer(self._map, array.dtype, array.size, start - self._first)
        return found.reshape(array.shape)

    def _grow(self, size):
        """Map the next piece of the file, which is longer then; what is mapped stays."""
        unit = mmap.ALLOCATIONGRANULARITY
        length = -(-max(size, _SEGMENT) // unit) * unit
        self._file.truncate(self._stop + length)
        self._first = self._next = self._stop
        self._stop += length
        self._map = mmap.mmap(
            self._file.fileno(), length, access=mmap.ACCESS_READ, offset=self._first
        )

    def close(self):
        """Close the file; its space is free when the last view of it is gone."""
        self._map = None
        self._file.close()


def cache_folder(cache):
    """Return the folder for a temporary file that a parameter `cache` names, or None.

    Raises
    ------
    TypeError, ValueError
        If it is neither a bool nor a path, or if there is no such folder.
    """
    if cache is None or isinstance(cache, bool):
        return tempfile.gettempdir() if cache else None
    if not isinstance(cache, str | os.PathLike):
        raise TypeError(f"cache must be a bool, or the path of a folder; got {cache!r}.")
    folder = os.fspath(cache)
    if not os.path.isdir(folder):
        raise ValueError(
            f"cache must be a folder that is there; got {folder!r}. Make it first, or pass "
            "cache=True for the system's folder of temporary files."
        )
    return folder

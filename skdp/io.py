# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Data larger than memory, read by `fit` chunk by chunk; and resumable fits.

Streams of rows from chunks of any length, from arrays on disk that slices can be taken of, and from
Parquet files and other data sets of Arrow. Memory maps from 256 MiB on and collections of dask are
streamed without being asked. The streams themselves are in ``_rows/streams.py``.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from glob import glob
from os import PathLike, fspath
from typing import Any

from skdp._rows.kept import Keeper, cache_folder
from skdp._rows.streams import (
    ArrayTable,
    ChunkTable,
    RowStream,
    arrow_dtype,
    check_column,
    columns_of,
    is_table,
    numbers_of,
    targets_of,
)
from skdp.privacy.books.resume import resumable
from skdp.privacy.books.texts import a_kind

__all__ = ["RowStream", "resumable", "stream_arrays", "stream_chunks", "stream_parquet"]

#: what is wrong with iterators
ONCE = (
    "can be gone through only once, and a fit reads its rows again and again: pass a function that "
    "returns a fresh iterator, such as lambda: pandas.read_csv(path, chunksize=100_000)."
)
#: rows of a batch, at most
BATCH_ROWS = 1 << 16
#: rows of a part of a file that is scanned at once, at least; but for its last part
PART_ROWS = 1 << 18
#: entries of a batch, at most: 32 MiB of numbers
BATCH_ENTRIES = 1 << 22


def stream_chunks(
    chunks: Callable[[], Iterable[Any]] | Iterable[Any],
    *,
    target: str | None = None,
    groups: str | None = None,
    n_rows: int | None = None,
    cache: bool | str | PathLike[str] = False,
) -> Any:
    """Read rows chunk by chunk, as often as a fit needs them.

    Parameters
    ----------
    chunks : callable or re-iterable
        A list of chunks, or a function without arguments that returns a new iterator every time,
        such as ``lambda: pandas.read_csv("people.csv", chunksize=100_000)``. A chunk is an array,
        a CSR matrix, a data frame or an Arrow table of rows, or a tuple (X, y) of rows and
        targets, or (X, y, groups) with the group of every row, where y may be None. They must hold
        the same rows in the same order every time; the division into chunks does not matter, and
        the next chunk may be in the memory of the last one.
    target : str, default=None
        Column of data frames with the targets.
    groups : str, default=None
        Column of data frames with the groups: numbers or text.
    n_rows : int, default=None
        Number of rows. None counts them, by one pass through the chunks.
    cache : bool or path, default=False
        Folder for a temporary file with rows for the next pass, until `fit` is over: private rows,
        not encrypted. True is the system's folder for temporary files.

    Returns
    -------
    X : RowStream of shape (n_rows, n_features)
        For `fit`.
    y : RowStream of shape (n_rows,)
        Targets; only if chunks have targets, or with `target`.
    groups : RowStream of shape (n_rows,)
        For ``fit(X, y, groups=groups)``; only if chunks have three parts, or with `groups`.

    Raises
    ------
    TypeError
        If `chunks` is an iterator, which has only one pass, a path, one table, or no iterable.
    ValueError
        If there is no chunk, or a column or the folder does not exist.

    See Also
    --------
    stream_arrays : Read arrays on disk by slices.
    stream_parquet : Read Parquet files, and other data sets of Arrow, by batches.

    Notes
    -----
    This function reads the first chunk, to look for targets. `fit` reads all chunks: once before
    any charge, as a check; once more with groups, to count their rows; and then once for every sum
    over the rows. If the chunks contain groups, a change of groups between passes is an error.
    Later passes use cached rows, up to 256 MiB of memory or, with `cache`, the disk. The result is
    the same to the last bit.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.io import stream_chunks
    >>> def chunks():
    ...     rng = np.random.default_rng(0)
    ...     for _ in range(10):
    ...         X = rng.normal(size=(1000, 3))
    ...         yield X, X[:, 0] > 0
    >>> X, y = stream_chunks(chunks)
    >>> model = DPLogisticRegression(epsilon=1.0, data_norm=3.0, random_state=0).fit(X, y)
    >>> bool(model.score(*next(chunks())) > 0.9)
    True
    """
    if isinstance(chunks, Iterator):
        raise TypeError(f"chunks {ONCE}")
    if isinstance(chunks, str | PathLike) or getattr(chunks, "ndim", 3) < 3:
        raise TypeError(
            "chunks must be a list of blocks of rows, or a function that returns a fresh iterator, "
            "such as lambda: pandas.read_csv(path, chunksize=100_000); got "
            f"{a_kind(chunks)}."
        )
    make = chunks if callable(chunks) else lambda: iter(chunks)
    cut = Cut(make, target, groups)
    first = cut.first()
    if first is None:
        raise ValueError("chunks must have at least one chunk; got none.")
    cut.n_parts = len(first) if isinstance(first, tuple) else 0
    if cut.n_parts not in (0, 2, 3):
        raise ValueError(
            "a chunk must be rows, or a tuple (X, y) or (X, y, groups); got a tuple of "
            f"{cut.n_parts}."
        )
    for name, value in (("target", target), ("groups", groups)):
        if cut.n_parts and value is not None:
            raise ValueError(
                f"chunks that are tuples have targets and groups as parts; got {name}={value!r}."
            )
    _, y, *others = cut.parts(first)
    cut.has_target = y is not None
    return streams_of(ChunkTable(cut, n_rows), cut.has_target, bool(others), cache)


def stream_arrays(X: Any, y: Any = None, *, cache: bool | str | PathLike[str] = False) -> Any:
    """Read arrays on disk range by range: memory maps, HDF5 and Zarr arrays.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Any object with a `shape` and slices of rows.
    y : array of shape (n_rows,), default=None
        Targets, an object of the same kind.
    cache : bool or path, default=False
        Folder for a temporary file with rows for the next pass, until `fit` is over: private rows,
        not encrypted. True is the system's folder for temporary files.

    Returns
    -------
    X : RowStream of shape (n_rows, n_features)
        For `fit`.
    y : RowStream of shape (n_rows,)
        Targets; only if there are any.

    Raises
    ------
    TypeError
        If X has no shape, or is not an array of rows.
    ValueError
        If X and y have different numbers of rows, or the folder does not exist.

    See Also
    --------
    stream_chunks : Read rows chunk by chunk.
    stream_parquet : Read Parquet files, and other data sets of Arrow, by batches.

    Notes
    -----
    `fit` always reads memory maps of 256 MiB and more in this way. The file must not change during
    a fit: norms of rows are cached, but not all entries. The cache takes 256 MiB of memory, or the
    file of `cache`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMean
    >>> from skdp.io import stream_arrays
    >>> class Squares:
    ...     shape = (10_000, 1)
    ...     def __getitem__(self, rows):
    ...         return np.arange(10_000)[rows, None] % 3 - 1.0
    >>> X = stream_arrays(Squares())
    >>> bool(abs(DPMean(random_state=0, data_norm=1.0).fit(X).location_) < 0.01)
    True
    """
    for name, part, ndim in (("X", X, 2), ("y", y, 1)):
        if part is not None and len(getattr(part, "shape", ())) != ndim:
            raise TypeError(
                f"{name} must be an array of {ndim} dimension(s), with a shape, that slices can be "
                f"taken of; got {a_kind(part)}."
            )
    return streams_of(ArrayTable(X, y), y is not None, cache=cache)


def stream_parquet(
    path: Any,
    *,
    target: str | None = None,
    groups: str | None = None,
    columns: list[str] | None = None,
    cache: bool | str | PathLike[str] = False,
) -> Any:
    """Read Parquet files by batches, as often as a fit needs them.

    Parameters
    ----------
    path : path, list of paths, or pyarrow.dataset.Dataset
        A file, a folder of files, a pattern such as ``"people/*.parquet"``, or a list of files.
        Files of a folder or a pattern are read in the order of their names. Also tables and data
        sets of pyarrow, in any storage format.
    target : str, default=None
        Column of the targets: numbers, booleans or text.
    groups : str, default=None
        Column of the groups: numbers or text.
    columns : list of str, default=None
        Columns of the features, in this order. None takes all except `target` and `groups`.
    cache : bool or path, default=False
        Folder for a temporary file with rows for the next pass, until `fit` is over: private rows,
        not encrypted. True is the system's folder for temporary files.

    Returns
    -------
    X : RowStream of shape (n_rows, n_features)
        For `fit`.
    y : RowStream of shape (n_rows,)
        Targets; only with `target`.
    groups : RowStream of shape (n_rows,)
        For ``fit(X, y, groups=groups)``; only with `groups`.

    Raises
    ------
    ImportError
        If pyarrow is not installed (``pip install "skdp[arrow]"``).
    TypeError
        If a column of the features has other types than integers, floats, decimals or booleans.
    ValueError
        If a column or the folder does not exist.

    See Also
    --------
    stream_arrays : Read arrays on disk by slices.
    stream_chunks : Read rows chunk by chunk.

    Notes
    -----
    The number, types and names of columns are from the metadata; `fit` reads the rows. It refuses
    nulls, like NaN. The result equals the same fit to ``pandas.read_parquet(path)``, to the last
    bit.

    `fit` decodes the files twice, for a check and for the first sum, and then uses cached rows: up
    to 256 MiB in memory, or in a file with `cache`. Other rows are decoded in every pass. The file
    of `cache` has no name if the system allows it, cannot be opened by others, and is deleted
    after the fit, after an error, and with the process. It holds rows in the form of the
    statistics, some twice in double precision, and neither noise nor releases. If the disk is
    full, the other rows are decoded in every pass.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from skdp import DPLogisticRegression
    >>> from skdp.io import stream_parquet
    >>> age = np.random.default_rng(0).uniform(20, 80, size=10_000)
    >>> table = pa.table({"age": age / 80, "retired": age > 65})
    >>> X, y = stream_parquet(table, target="retired")
    >>> X.shape
    (10000, 1)
    >>> model = DPLogisticRegression(random_state=0).fit(X, y)
    >>> bool(model.coef_[0, 0] > 0)
    True
    """
    dataset = opened_dataset(path)
    names = dataset.schema.names
    others = {"target": target, "groups": groups}
    for other, name in others.items():
        if name is not None and names.count(name) != 1:
            raise ValueError(f"{other} must be one of the columns; got {name!r} for {names}.")
    if target is not None and target == groups:
        raise ValueError(f"target and groups must be different columns; got {target!r} for both.")
    features = [n for n in names if n not in others.values()] if columns is None else list(columns)
    for name in features:
        if names.count(name) != 1 or name in others.values():
            raise ValueError(
                "columns must be names of columns other than target and groups, each of which the "
                f"data have once; got {name!r} for {names}, target={target!r} and "
                f"groups={groups!r}."
            )
    if not features or len(set(features)) != len(features):
        raise ValueError(f"columns must be at least one name, each once; got {features}.")
    arrow_dtype([dataset.schema.field(name) for name in features])
    for other, name in others.items():
        if name is not None:
            check_column(dataset.schema.field(name), "targets" if other == "target" else other)
    batches = Batches(dataset, features, target, groups)
    table = ChunkTable(batches, dataset.count_rows())
    return streams_of(table, target is not None, groups, cache)


# Tables that streams are made of, and chunks of any kind.


def streams_of(table, has_target, has_groups=False, cache=False):
    """Return the streams of rows and, if there are any, of targets and of groups of a table."""
    table.keeper = Keeper(cache_folder(cache))
    X = RowStream(table)
    others = [(targets_of, has_target), (numbers_of, has_groups)]
    found = [RowStream(table, (part,), 1) for part, is_there in others if is_there]
    return (X, *found) if found else X


class Cut:
    """Chunks of any kind as tuples (X, y), or (X, y, groups).

    Parameters
    ----------
    make, target, groups : callable, str or None, str or None
        As of `stream_chunks`.

    Attributes
    ----------
    n_parts : int
        Parts of a chunk that is a tuple; 0 for chunks of rows.
    has_target : bool
        Whether the first chunk has targets.
    """

    n_parts, has_target = 0, False

    def __init__(self, make, target, groups):
        self.make, self.target, self.groups = make, target, groups
        self._looked_at = None

    def __getstate__(self):
        # iterators cannot be pickled
        return {**self.__dict__, "_looked_at": None}

    def first(self):
        """Return the first chunk unchanged; None without chunks."""
        chunks = self.make()
        if isinstance(chunks, Iterator):
            self._looked_at = chunks
        with closing_iterator(chunks):
            return next(iter(chunks), None)

    def __call__(self):
        """Yield the tuples."""
        chunks = self.make()
        if self._looked_at is not None and chunks is self._looked_at:
            raise TypeError(f"chunks returns the same iterator every time: it {ONCE}")
        with closing_iterator(chunks):
            for chunk in chunks:
                yield self.parts(chunk)

    def parts(self, chunk):
        """Return the rows of a chunk, its targets or None, and its groups or None."""
        n_parts = len(chunk) if isinstance(chunk, tuple) else 0
        if n_parts != self.n_parts:
            raise ValueError("chunks must all be rows, or all be tuples of as many parts.")
        if not n_parts:
            return self._split(chunk)
        _, y, *groups = chunk
        if y is None and (self.has_target or not groups):
            raise ValueError("the targets of a chunk are missing: its y is None.")
        if any(whose is None for whose in groups):
            raise ValueError("a chunk must say whose its rows are; its groups are None.")
        return chunk

    def _split(self, chunk):
        """Return a data frame without the columns of targets and groups, and these."""
        columns, taken_out = columns_of(chunk), [self.target, self.groups]
        for name, value in zip(("target", "groups"), taken_out, strict=True):
            if value is not None and value not in columns:
                raise ValueError(f"{name} must be a column of every chunk; got {value!r}.")
        if taken_out == [None, None]:
            return chunk, None
        kept = [name for name in columns if name not in taken_out]
        X = chunk.select(kept) if is_table(chunk) else chunk[kept]
        y = None if self.target is None else chunk[self.target]
        return (X, y) if self.groups is None else (X, y, chunk[self.groups])


@contextmanager
def closing_iterator(chunks):
    """Close the resources of an iterator, such as a file, after use."""
    try:
        yield
    finally:
        if isinstance(chunks, Iterator) and hasattr(chunks, "close"):
            chunks.close()


# Data sets of Arrow.


def opened_dataset(path):
    """Return the data set of paths; data sets and tables are returned as such.

    Parameters
    ----------
    path : path, list of paths, Dataset or Table
        As of `stream_parquet`.

    Returns
    -------
    dataset : pyarrow.dataset.Dataset
        Data set with its files in a fixed order.
    """
    try:
        from pyarrow import dataset as arrow
    except ImportError as error:
        raise ImportError(
            'stream_parquet needs pyarrow, which pip install "skdp[arrow]" brings.'
        ) from error
    if isinstance(path, str | PathLike):
        path = fspath(path)
        found = sorted(glob(path)) if any(sign in path for sign in "*?[") else []
        path = found or path
    elif isinstance(path, list | tuple) and all(isinstance(p, str | PathLike) for p in path):
        path = [fspath(part) for part in path]
    if isinstance(path, arrow.Dataset):
        return path
    kind = {"format": "parquet"} if isinstance(path, str | list) else {}
    dataset = arrow.dataset(path, partitioning="hive" if kind else None, **kind)
    if isinstance(path, str) and dataset.files != sorted(dataset.files):
        dataset = arrow.dataset(sorted(dataset.files), partitioning="hive", **kind)
    return dataset


class Batches:
    """Batches of a data set, as tuples (X, y), or (X, y, groups).

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        Data set to read.
    features : list of str
        Its columns of features.
    target, groups : str or None, str or None
        Its columns of targets and groups.
    """

    def __init__(self, dataset, features, target, groups):
        self.dataset, self.features, self.target = dataset, features, target
        self.groups = groups

    def __call__(self):
        """Yield the batches in order, with few of them in memory."""
        from pyarrow import ArrowInvalid

        try:
            for batch in self._scan():
                y = None if self.target is None else batch.column(self.target)
                groups = [] if self.groups is None else [batch.column(self.groups)]
                yield batch.select(self.features), y, *groups
            return
        except ArrowInvalid:
            # Arrow's message quotes the value that does not fit
            pass
        raise ValueError(
            "a file cannot be read: it is damaged, or has a column whose values do not fit the "
            "type that the other files have for it."
        )

    def _scan(self):
        from pyarrow.dataset import ParquetFileFormat, ParquetFragmentScanOptions

        others = [name for name in (self.target, self.groups) if name is not None]
        wanted = [*self.features, *others]
        n_rows = max(min(BATCH_ENTRIES // len(wanted), BATCH_ROWS), 1)
        # threads of Arrow would read on, without a bound, while a batch is worked on
        options = {"use_threads": False, "batch_readahead": 0, "fragment_readahead": 0}
        options |= {"columns": wanted, "batch_size": n_rows}
        if not isinstance(getattr(self.dataset, "format", None), ParquetFileFormat):
            yield from self.dataset.to_batches(**options)
            return
        # otherwise Arrow brings a whole file into memory before its first batch
        options["fragment_scan_options"] = ParquetFragmentScanOptions(
            pre_buffer=False, use_buffered_stream=True
        )
        for part in self._parts():
            schema = {} if part is self.dataset else {"schema": self.dataset.schema}
            yield from part.to_batches(**schema, **options)

    def _parts(self):
        """Yield parts of files, in order: a scan would not stop when closed early."""
        try:
            fragments = list(self.dataset.get_fragments())
        except ValueError:
            # of a data set with a filter
            yield self.dataset
            return
        for fragment in fragments:
            groups, n_rows = [], 0
            for group in fragment.row_groups:
                groups, n_rows = [*groups, group.id], n_rows + group.num_rows
                if n_rows >= PART_ROWS:
                    yield fragment.subset(row_group_ids=groups)
                    groups, n_rows = [], 0
            if groups:
                yield fragment.subset(row_group_ids=groups)

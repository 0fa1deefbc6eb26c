# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Streams of rows from chunks, from arrays on disk, and from Parquet files."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from glob import glob
from os import PathLike, fspath
from typing import Any

from skdp._rows.streams import (
    ArrayTable,
    ChunkTable,
    RowStream,
    arrow_dtype,
    check_target,
    columns_of,
    is_table,
    targets_of,
)
from skdp.privacy.books.texts import a_kind

#: what is wrong with iterators
ONCE = (
    "can be gone through only once, and a fit reads its rows again and again: pass a function that "
    "returns a fresh iterator, such as lambda: pandas.read_csv(path, chunksize=100_000)."
)
#: rows of a batch, at most
BATCH_ROWS = 1 << 16
#: entries of a batch, at most: 32 MiB of numbers
BATCH_ENTRIES = 1 << 22


def stream_chunks(
    chunks: Callable[[], Iterable[Any]] | Iterable[Any],
    *,
    target: str | None = None,
    n_rows: int | None = None,
) -> Any:
    """Read rows chunk by chunk, as often as a fit needs them.

    Parameters
    ----------
    chunks : callable or re-iterable
        The chunks: a list, or a function without arguments that returns a fresh iterator every
        time, such as ``lambda: pandas.read_csv("people.csv", chunksize=100_000)``. A chunk is an
        array, a CSR matrix, a data frame or an Arrow table of rows, or a tuple (X, y) of rows
        and targets. They must hold the same rows every time, in the same order; how these are
        cut into chunks is of no consequence.
    target : str, default=None
        Column of data frames that holds the targets.
    n_rows : int, default=None
        Number of rows. None counts them, once, by going through the chunks.

    Returns
    -------
    X : RowStream of shape (n_rows, n_features)
        For `fit`.
    y : RowStream of shape (n_rows,)
        Targets; only if chunks are pairs, or with `target`.

    Raises
    ------
    TypeError
        If `chunks` is an iterator, which can be gone through only once, or is no iterable.
    ValueError
        If there is no chunk, or no such column.

    See Also
    --------
    stream_arrays : Read arrays on disk by slices.
    stream_parquet : Read Parquet files, and other data sets of Arrow, by batches.

    Notes
    -----
    The first chunk is looked at here, to see whether it has targets. All others are read by
    `fit`: once before anything is charged, to see whether they are usable, and then once for
    every sum over the rows.

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
    make = chunks if callable(chunks) else lambda: iter(chunks)
    cut = Cut(make, target, paired=False)
    first = cut.first()
    if first is None:
        raise ValueError("chunks must have at least one chunk; got none.")
    cut.paired = isinstance(first, tuple)
    if cut.paired and len(first) != 2:
        raise ValueError(f"a chunk must be rows, or a tuple (X, y); got a tuple of {len(first)}.")
    if cut.paired and target is not None:
        raise ValueError(f"chunks that are tuples (X, y) have targets; got target={target!r}.")
    if target is not None:
        cut.split(first)
    return streams_of(ChunkTable(cut, n_rows), cut.paired or target is not None)


def stream_arrays(X: Any, y: Any = None) -> Any:
    """Read arrays on disk range by range: memory maps, HDF5 and Zarr arrays.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Anything with a `shape` of which slices of rows can be taken.
    y : array of shape (n_rows,), default=None
        Targets, likewise.

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
        If X and y have different numbers of rows.

    See Also
    --------
    stream_chunks : Read rows chunk by chunk.
    stream_parquet : Read Parquet files, and other data sets of Arrow, by batches.

    Notes
    -----
    `fit` reads memory maps of 256 MiB and more in this way, without being asked.

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
    return streams_of(ArrayTable(X, y), y is not None)


def stream_parquet(
    path: Any, *, target: str | None = None, columns: list[str] | None = None
) -> Any:
    """Read Parquet files by batches, as often as a fit needs them.

    Parameters
    ----------
    path : path, list of paths, or pyarrow.dataset.Dataset
        A file, a folder of files, a pattern such as ``"people/*.parquet"``, or a list of files.
        Files of a folder or a pattern are read in the order of their names. Also tables and
        data sets of pyarrow, whatever they are stored as.
    target : str, default=None
        Column that holds the targets: numbers, booleans or text.
    columns : list of str, default=None
        Columns that hold the features, in this order. None takes all but `target`.

    Returns
    -------
    X : RowStream of shape (n_rows, n_features)
        For `fit`.
    y : RowStream of shape (n_rows,)
        Targets; only with `target`.

    Raises
    ------
    ImportError
        If pyarrow is not installed: ``pip install "skdp[arrow]"`` brings it.
    TypeError
        If a column of the features holds other things than integers, floats, decimals or
        booleans.
    ValueError
        If there is no such column.

    See Also
    --------
    stream_arrays : Read arrays on disk by slices.
    stream_chunks : Read rows chunk by chunk.

    Notes
    -----
    Numbers, types and names of columns are taken from the metadata; rows are read by `fit`. It
    refuses nulls, as it refuses NaN. The result is what the same fit to
    ``pandas.read_parquet(path)`` gives, to the last bit.

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
    if target is not None and names.count(target) != 1:
        raise ValueError(f"target must be one of the columns; got {target!r} for {names}.")
    features = [name for name in names if name != target] if columns is None else list(columns)
    for name in features:
        if names.count(name) != 1 or name == target:
            raise ValueError(
                "columns must be names of columns other than target, each of which the data have "
                f"once; got {name!r} for {names} and target={target!r}."
            )
    if not features or len(set(features)) != len(features):
        raise ValueError(f"columns must be at least one name, each once; got {features}.")
    arrow_dtype([dataset.schema.field(name) for name in features])
    if target is not None:
        check_target(dataset.schema.field(target))
    batches = Batches(dataset, features, target)
    return streams_of(ChunkTable(batches, dataset.count_rows()), target is not None)


# Tables that streams are made of, and chunks of any kind.


def streams_of(table, has_target):
    """Return the streams of rows and, if there are any, of targets of a table."""
    X = RowStream(table)
    return (X, RowStream(table, (targets_of,), 1)) if has_target else X


class Cut:
    """Chunks of any kind as pairs (X, y).

    Parameters
    ----------
    make, target : callable, str or None
        As of `stream_chunks`.
    paired : bool
        Whether chunks are pairs already.
    """

    def __init__(self, make, target, paired):
        self.make, self.target, self.paired = make, target, paired
        self._looked_at = None

    def __getstate__(self):
        # iterators cannot be pickled
        return {**self.__dict__, "_looked_at": None}

    def first(self):
        """Return the first chunk as it comes; None if there is none."""
        chunks = self.make()
        if isinstance(chunks, Iterator):
            self._looked_at = chunks
        with closing_iterator(chunks):
            return next(iter(chunks), None)

    def __call__(self):
        """Yield the pairs."""
        chunks = self.make()
        if self._looked_at is not None and chunks is self._looked_at:
            raise TypeError(f"chunks returns the same iterator every time: it {ONCE}")
        with closing_iterator(chunks):
            for chunk in chunks:
                yield self.pair(chunk)

    def pair(self, chunk):
        """Return the rows and the targets, if there are any, of a chunk."""
        if isinstance(chunk, tuple) != self.paired or (self.paired and len(chunk) != 2):
            raise ValueError("chunks must all be rows, or all be tuples (X, y).")
        if self.paired:
            if chunk[1] is None:
                raise ValueError("the targets of a chunk are missing: its y is None.")
            return chunk
        return (chunk, None) if self.target is None else self.split(chunk)

    def split(self, chunk):
        """Return a data frame without the column of targets, and that column."""
        columns = columns_of(chunk)
        if self.target not in columns:
            raise ValueError(f"target must be a column of every chunk; got {self.target!r}.")
        kept = [name for name in columns if name != self.target]
        return chunk.select(kept) if is_table(chunk) else chunk[kept], chunk[self.target]


@contextmanager
def closing_iterator(chunks):
    """Close what an iterator has opened, such as a file, when it is not needed any more."""
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
        Its files in an order that is the same every time.
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
    """Batches of a data set, as pairs (X, y).

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        What is read.
    features : list of str
        Its columns of features.
    target : str or None
        Its column of targets.
    """

    def __init__(self, dataset, features, target):
        self.dataset, self.features, self.target = dataset, features, target

    def __call__(self):
        """Yield the batches, in order; few of them are held."""
        from pyarrow import ArrowInvalid

        try:
            for batch in self._scan():
                y = None if self.target is None else batch.column(self.target)
                yield batch.select(self.features), y
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

        wanted = [*self.features, *([] if self.target is None else [self.target])]
        n_rows = max(min(BATCH_ENTRIES // len(wanted), BATCH_ROWS), 1)
        # threads of Arrow would read on, without a bound, while a batch is worked on
        options = {"use_threads": False, "batch_readahead": 0, "fragment_readahead": 0}
        if isinstance(getattr(self.dataset, "format", None), ParquetFileFormat):
            # otherwise Arrow brings a whole file into memory before its first batch
            options["fragment_scan_options"] = ParquetFragmentScanOptions(
                pre_buffer=False, use_buffered_stream=True
            )
        return self.dataset.to_batches(columns=wanted, batch_size=n_rows, **options)

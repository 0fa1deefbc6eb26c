# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Streams of rows from Parquet files, and from whatever else Arrow reads as a data set."""

from glob import glob
from os import PathLike, fspath
from typing import Any

from skdp._streams import ChunkTable, arrow_dtype, check_target
from skdp.io._stream_chunks import streams_of

#: rows of a batch, at most
BATCH_ROWS = 1 << 16
#: entries of a batch, at most: 32 MiB of numbers
BATCH_ENTRIES = 1 << 22


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

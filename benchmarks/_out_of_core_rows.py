# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are computed from their position, and files of them."""

from pathlib import Path

import numpy as np

__all__ = ["N_FEATURES", "generated", "write_map", "write_parquet"]

N_FEATURES = 20
#: rows of a chunk
CHUNK = 100_000
_ODD = (np.arange(1, N_FEATURES + 1, dtype=np.uint32) * np.uint32(0x9E3779B1)) | np.uint32(1)
_MIXED = np.uint32(0x85EBCA6B)


def _chunk(start, stop):
    """Return rows with entries in [-1, 1), hashes of their positions, and two classes."""
    entries = np.arange(start, stop, dtype=np.uint32)[:, None] * _ODD
    entries ^= entries >> np.uint32(15)
    entries *= _MIXED
    entries ^= entries >> np.uint32(13)
    X = entries.view(np.int32).astype(np.float32)
    X *= np.float32(2.0**-31)
    return X, (X[:, 0] + X[:, 1] + 0.5 * X[:, 2] > 0).astype(np.int8)


def generated(n_rows):
    """Yield chunks (X, y), the same every time, without holding more than one.

    Parameters
    ----------
    n_rows : int
        Of all chunks together.

    Yields
    ------
    X, y : ndarray of shape (n, 20), dtype float32, and of shape (n,), dtype int8
        Rows and labels.
    """
    for start in range(0, n_rows, CHUNK):
        yield _chunk(start, min(start + CHUNK, n_rows))


def write_map(folder, n_rows):
    """Write the rows as raw numbers, for memory maps; what is there already is kept."""
    paths = Path(folder) / "X.f4", Path(folder) / "y.i1"
    if paths[0].exists() and paths[0].stat().st_size == 4 * n_rows * N_FEATURES:
        return
    with paths[0].open("wb") as rows, paths[1].open("wb") as labels:
        for X, y in generated(n_rows):
            X.tofile(rows)
            y.tofile(labels)


def write_parquet(folder, n_rows):
    """Write the rows as Parquet with the usual options; what is there already is kept."""
    import pyarrow as pa
    from pyarrow import parquet

    path = Path(folder) / "rows.parquet"
    if path.exists() and parquet.ParquetFile(path).metadata.num_rows == n_rows:
        return
    names = [*(f"x{j}" for j in range(N_FEATURES)), "y"]
    schema = pa.schema([(name, pa.float32()) for name in names[:-1]] + [("y", pa.int8())])
    with parquet.ParquetWriter(path, schema) as writer:
        for X, y in generated(n_rows):
            columns = [pa.array(column) for column in (*X.T, y)]
            writer.write_table(pa.table(columns, names=names))

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Data that do not fit into memory: rows that `fit` reads chunk by chunk."""

from skdp._rows.streams import RowStream
from skdp.io._streams import stream_arrays, stream_chunks, stream_parquet

__all__ = ["RowStream", "stream_arrays", "stream_chunks", "stream_parquet"]

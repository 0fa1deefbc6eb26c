# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Data larger than memory, read by `fit` chunk by chunk; and resumable fits."""

from skdp._rows.streams import RowStream
from skdp.io._streams import stream_arrays, stream_chunks, stream_parquet
from skdp.privacy.books.resume import resumable

__all__ = ["RowStream", "resumable", "stream_arrays", "stream_chunks", "stream_parquet"]

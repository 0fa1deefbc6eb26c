# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are read range by range, again and again, instead of being held in memory."""

from skdp._streams._arrays import LARGE, ArrayTable
from skdp._streams._arrow import arrow_dtype, check_target
from skdp._streams._blocks import (
    as_block,
    columns_of,
    in_rows,
    is_table,
    quietly,
    refuse_other_types,
)
from skdp._streams._chunks import ChunkTable
from skdp._streams._inspect import Facts, facts_of
from skdp._streams._lazy_chunks import LazyChunks, added_up
from skdp._streams._opened import is_streamed, opened
from skdp._streams._stream import (
    RowStream,
    kept_meanwhile,
    no_flags,
    over_rows,
    targets_of,
    together,
)
from skdp._streams._table import READ_ROWS, Table, joined

__all__ = [
    "LARGE",
    "READ_ROWS",
    "ArrayTable",
    "ChunkTable",
    "Facts",
    "LazyChunks",
    "RowStream",
    "Table",
    "added_up",
    "arrow_dtype",
    "as_block",
    "check_target",
    "columns_of",
    "facts_of",
    "in_rows",
    "is_streamed",
    "is_table",
    "joined",
    "kept_meanwhile",
    "no_flags",
    "opened",
    "over_rows",
    "quietly",
    "refuse_other_types",
    "targets_of",
    "together",
]

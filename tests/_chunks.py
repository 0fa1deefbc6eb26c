# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Few rows in many chunks, for tests of sums that are the same however rows are cut."""

from skdp._rows import base as sums


def shorten_chunks(monkeypatch, n_rows, *, threads=False):
    """Let `n_rows` rows fill a chunk; with `threads`, two chunks a block, an entry a thread."""
    monkeypatch.setattr(sums, "dense_chunk_rows", lambda n_features: n_rows)
    monkeypatch.setattr(sums, "SPARSE_CHUNK_ROWS", n_rows)
    if threads:
        monkeypatch.setattr(sums, "CHUNKS_PER_BLOCK", 2)
        monkeypatch.setattr(sums, "ENTRIES_PER_THREAD", 1)

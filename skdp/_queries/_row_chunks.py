# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private rows cut into chunks: all at once for arrays, one at a time for streams."""

from skdp._queries._linear_rows import rows_view
from skdp._queries._sums import chunk_rows
from skdp._streams import LazyChunks, RowStream, together


def chunks_of(admit, X, *others):
    """Return the chunks that consecutive rows become.

    Parameters
    ----------
    admit : callable
        Maps a block, a tuple of arrays of consecutive rows, to their chunk. For streams it
        may be sent to other processes, and holds public constants only.
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        Rows; never changed. A stream was gone through.
    *others : ndarray or RowStream of shape (n_rows,)
        What belongs to the rows: further parts of a block.

    Returns
    -------
    chunks : list or LazyChunks
        Boundaries depend on the shape and the format of X alone. The rows of arrays are
        views; those of a stream are read, and admitted anew, whenever a chunk is asked for.
    """
    _, step = chunk_rows(X)
    if isinstance(X, RowStream):
        return LazyChunks.cut(X.table, step, (together(X, *others), admit))
    chunks = []
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        chunks.append(admit((rows_view(X, rows), *(other[rows] for other in others))))
    return chunks

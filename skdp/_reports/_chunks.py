# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Work on chunks of rows, with random words that are drawn in the order of the rows."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

#: words of one chunk; a few arrays of this size are held for each thread
CHUNK = 1 << 16


def in_chunks(work, n_rows, width, bits, n_threads=1):
    """Call a function for every chunk of rows, with fresh words.

    Parameters
    ----------
    work : callable
        ``work(rows, words)`` does the rows of a slice with words of shape (n, width), in any
        thread, and returns the positions inside of the slice of rows that need other words.
    n_rows, width : int
        Number of rows, and of the words of each.
    bits : Bits
        Source of random words. A seeded one is read by the calling thread only.
    n_threads : int, default=1
        How many threads work. With a seed a further one, the caller, draws the words of the
        next chunk; the operating system gives words to all threads at once.

    Notes
    -----
    With a seed row i gets the words from ``i * width`` on, whatever chunks and threads are. Rows
    that need other words are done at the end, one by one and in order.
    """
    step = max(1, CHUNK // max(1, width))
    slices = [slice(i, min(i + step, n_rows)) for i in range(0, n_rows, step)]
    again = []

    def fresh(rows):
        return bits.words((rows.stop - rows.start) * width).reshape(-1, width)

    def drawn(rows):
        return work(rows, fresh(rows))

    def note(rows, failed):
        again.extend(rows.start + i for i in failed)

    if n_threads > 1 and len(slices) > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            running = deque()
            for rows in slices:
                if len(running) > n_threads:
                    done, future = running.popleft()
                    note(done, future.result())
                if bits.seeded:
                    running.append((rows, pool.submit(work, rows, fresh(rows))))
                else:
                    running.append((rows, pool.submit(drawn, rows)))
            for done, future in running:
                note(done, future.result())
    else:
        for rows in slices:
            note(rows, drawn(rows))
    while again:
        rows, again = [slice(i, i + 1) for i in again], []
        for row in rows:
            note(row, drawn(row))

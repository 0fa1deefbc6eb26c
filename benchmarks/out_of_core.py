# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Time and memory of fits to rows that are not in memory.

Run with ``python benchmarks/out_of_core.py``; ``--quick`` is a smoke run. Every fit runs in a
process of its own, so that its peak of memory is its own. ``--only whole --rows 100000000`` is one
default fit to rows in memory, if there is room for them, and one to Parquet with a cache. Memory is
what the process has allocated beyond its imports; pages of files that the system keeps are not
counted, because it can drop them. Files are written to ``--folder`` once, 3.5 GB for 2e7 rows, and
caches to the same disk, 2 GB each.
Times of processors are less disturbed by other programs than times on the clock.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from _machine import machine, versions
from _out_of_core_rows import N_FEATURES, generated, write_map, write_parquet

WHERE = {
    "memory": "arrays in memory",
    "map": "memory map",
    "parquet": "Parquet, `stream_parquet`",
    "map-cache": "memory map, with `cache`",
    "parquet-cache": "Parquet, with `cache`",
    "chunks": "computed anew, `stream_chunks`",
}


def own_memory():
    """Return the bytes that this process has allocated, in memory; its peak where unknown."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    return 1024 * int(fields["RssAnon"].split()[0])


class Peak(threading.Thread):
    """Looks at the memory of this process, again and again, while the context is open."""

    def __init__(self):
        super().__init__(daemon=True)
        self.bytes, self._ended = 0, threading.Event()

    def run(self):
        """Look until the context is left."""
        while not self._ended.wait(0.01):
            self.bytes = max(self.bytes, own_memory())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self.join()


def opened(kind, n_rows, folder):
    """Return (X, y) for `fit`."""
    from skdp.io import stream_arrays, stream_chunks, stream_parquet

    if kind == "chunks":
        return stream_chunks(lambda: generated(n_rows), n_rows=n_rows)
    kind, _, cached = kind.partition("-")
    cache = folder if cached else False
    if kind == "parquet":
        return stream_parquet(folder / "rows.parquet", target="y", cache=cache)
    X = np.memmap(folder / "X.f4", np.float32, "r", shape=(n_rows, N_FEATURES))
    y = np.memmap(folder / "y.i1", np.int8, "r", shape=(n_rows,))
    return stream_arrays(X, y, cache=cache) if kind == "map" else (np.array(X), np.array(y))


def measure(kind, n_rows, folder, steps, solver):
    """Fit in this process with few and with more steps, and print what it took."""
    from skdp import DPLogisticRegression
    from skdp.exceptions import PrivacyWarning

    # of the seed, and of a delta for fewer rows
    warnings.simplefilter("ignore", PrivacyWarning)
    model = DPLogisticRegression(
        solver=solver, classes=[0, 1], data_norm=4.0, max_iter=steps, random_state=0
    )
    # one thread is started, and every module imported, before memory is looked at
    model.fit(*map(np.concatenate, zip(*generated(1000), strict=True)))
    before, taken = own_memory(), {}
    with Peak() as peak:
        X, y = opened(kind, n_rows, folder)
        # the first fit finds files, and pages of memory, that were not asked for yet
        for name, n_steps in (("cold", 1), ("few", 1), ("many", steps)):
            cpu, clock = time.process_time(), time.perf_counter()
            fitted = model.set_params(max_iter=n_steps).fit(X, y)
            taken[name] = time.process_time() - cpu, time.perf_counter() - clock
    pairs = zip(taken["few"], taken["many"], strict=True)
    step = [(many - few) / (steps - 1) for few, many in pairs]
    print(
        json.dumps(
            {
                "fit": taken["many"],
                "step": step,
                "memory": peak.bytes - before,
                "coef": fitted.coef_.tobytes().hex(),
            }
        )
    )


def in_memory(n_rows):
    """Return the rows as arrays."""
    X, y, start = np.empty((n_rows, N_FEATURES), np.float32), np.empty(n_rows, np.int8), 0
    for rows, labels in generated(n_rows):
        X[start : start + len(rows)], y[start : start + len(rows)] = rows, labels
        start += len(rows)
    return X, y


def measure_whole(kind, n_rows, folder):
    """Fit once in this process, with the default number of steps, and print what it took."""
    from skdp import DPLogisticRegression

    model = DPLogisticRegression(
        classes=[0, 1], data_norm=4.0, delta=1e-9, random_state=0, verbose=1
    )
    warnings.simplefilter("ignore")
    model.fit(*map(np.concatenate, zip(*generated(1000), strict=True)))
    before = own_memory()
    with Peak() as peak:
        X, y = in_memory(n_rows) if kind == "memory" else opened(kind, n_rows, folder)
        cpu, clock = time.process_time(), time.perf_counter()
        model.fit(X, y)
        taken = time.process_time() - cpu, time.perf_counter() - clock
    steps, coef = int(model.n_iter_[0]), model.coef_.tobytes().hex()
    found = {"fit": taken, "steps": steps, "memory": peak.bytes - before, "coef": coef}
    print(json.dumps(found))


def has_room(n_rows):
    """Return whether the rows, and half as much again, fit into the memory that is free now."""
    status = Path("/proc/meminfo")
    if not status.exists():
        return True
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return 6 * n_rows * N_FEATURES < 1024 * int(fields["MemAvailable"].split()[0])


def whole_fits(n_rows, folder):
    """Print time and memory of whole fits to rows in memory, if they fit, and to files."""
    line("rows are", "steps", "fit, processor / clock", "beside memory", "memory, with the rows")
    line(*["---"] * 5)
    plain = None
    for kind in ("memory", "parquet-cache"):
        if kind == "memory" and not has_room(n_rows):
            line(WHERE[kind], *["no room"] * 4)
            continue
        found = measured(kind, n_rows, folder, 0)
        plain = plain or found
        if found["coef"] != plain["coef"]:
            raise RuntimeError(f"the fit to rows in {WHERE[kind]} is another one.")
        (cpu, clock), memory = found["fit"], f"{found['memory'] / 2**20:.0f} MiB"
        ratio = f"{cpu / plain['fit'][0]:.2f}"
        line(WHERE[kind], found["steps"], f"{cpu:.1f} / {clock:.1f} s", ratio, memory)


def measured(kind, n_rows, folder, steps, solver="gd"):
    """Return what another process measures."""
    print(f"{kind}, {n_rows:.0e} rows ...", file=sys.stderr, flush=True)
    command = [sys.executable, __file__, "--measure", kind, str(n_rows), str(steps), solver]
    done = subprocess.run(
        [*command, "--folder", str(folder)], check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def line(*cells):
    """Print one line of a table."""
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def constant_memory(sizes, folder):
    """Print time and memory of fits of 4 steps to ever more rows."""
    line("rows", "size in float64", "fit of 4 steps, processor / clock", "memory of the fit")
    line(*["---"] * 4)
    for n_rows in sizes:
        found = measured("chunks", n_rows, folder, 4)
        size, (cpu, clock) = 8 * n_rows * N_FEATURES / 2**30, found["fit"]
        memory = f"{found['memory'] / 2**20:.0f} MiB"
        line(f"{n_rows:,}", f"{size:.2f} GiB", f"{cpu:.1f} / {clock:.1f} s", memory)


def compared(n_rows, folder, solver):
    """Print time and memory of the same fit, wherever its rows are."""
    print(f"\n{n_rows:,} rows, {solver}\n")
    line("rows are", "a step, processor / clock", "beside memory", "memory of the fit")
    line(*["---"] * 4)
    plain = None
    for kind, where in WHERE.items():
        found = measured(kind, n_rows, folder, 13, solver)
        plain = plain or found
        if found["coef"] != plain["coef"]:
            raise RuntimeError(f"the fit to rows in {where} is another one.")
        cpu, clock = found["step"]
        memory = f"{found['memory'] / 2**20:.0f} MiB"
        line(where, f"{cpu:.2f} / {clock:.2f} s", f"{cpu / plain['step'][0]:.2f}", memory)


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows")
    parser.add_argument("--folder", type=Path, help="for files; the default is temporary")
    parser.add_argument("--only", choices=["chunks", "files", "whole"], help="one kind of table")
    parser.add_argument("--rows", type=int, default=2 * 10**7, help="rows of the files")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        kind, n_rows, steps, solver = options.measure
        if not int(steps):
            measure_whole(kind, int(n_rows), options.folder)
            return
        measure(kind, int(n_rows), options.folder, int(steps), solver)
        return
    print(machine())
    print(versions("numpy", "scikit-learn", "pyarrow"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        n_rows = 10**5 if options.quick else options.rows
        if options.only == "whole":
            write_parquet(folder, n_rows)
            whole_fits(n_rows, folder)
            return
        if options.only != "files":
            print()
            sizes = (10**5, 10**6) if options.quick else (10**6, 10**7, 10**8)
            constant_memory(sizes, folder)
        if options.only != "chunks":
            write_map(folder, n_rows)
            write_parquet(folder, n_rows)
            for solver in ("gd", "preconditioned"):
                compared(n_rows, folder, solver)


if __name__ == "__main__":
    main()

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The page that `local_mean.py` writes for the documentation."""

import _local_theory as theory
from _environments import REPOSITORIES
from _heavy_page import _table
from _local_peers import LIMIT
from _local_prose import BALL, BEFORE, CHOICES, CUBE, MEASURED, PEERS, TABLE_1, TIMES

_UNITS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0, 1000.0)


def _number(value):
    return f"{value:,.0f}" if value >= 1e4 else f"{value:.3g}"


def _seconds(value):
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def unit_table():
    """Return errors of unit vectors over the dimension, by theory."""
    rows = []
    for n_dims in (10, 1000, 1_000_000):
        for name in (*theory.UNIT, "repeated hemisphere", "corner of the cube"):
            if name == "ProjUnit, uniform rotation":
                continue
            if name == "repeated hemisphere":
                errors = [theory.repeated_hemisphere(e, n_dims) for e in _UNITS]
            elif name == "corner of the cube":
                errors = [theory.corner_error(e, n_dims) for e in _UNITS]
            else:
                errors = [theory.error(name, e, n_dims) for e in _UNITS]
            rows.append([f"{n_dims:,}", name, *(_number(error / n_dims) for error in errors)])
    return _table(["d", "randomiser", *(f"ε = {e:g}" for e in _UNITS)], rows)


def measured_table(measured):
    """Return how far measured errors are from theory, the worst cell of every method."""
    rows = []
    for name in theory.METHODS:
        found = [one for one in measured if one.name == name]
        close = [one for one in found if abs(one.ratio - 1.0) <= 0.02]
        worst = max(found, key=lambda one: abs(one.ratio - 1.0))
        dims = [one.n_dims for one in found]
        rows.append([
            name, f"{min(dims):,} to {max(dims):,}", f"{len(close)} of {len(found)}",
            f"{worst.ratio:.4f} ± {worst.error:.4f}",
            f"ε = {worst.epsilon:g}, d = {worst.n_dims:,}",
        ])  # fmt: skip
    return _table(["randomiser", "d", "within 2 %", "furthest from 1", "where"], rows)


def privunit_table(measured):
    """Return the errors of PrivUnit, measured and by theory, at every budget and dimension."""
    found = {(m.epsilon, m.n_dims): m for m in measured if m.name == "PrivUnit"}
    dims = sorted({n_dims for _, n_dims in found})
    rows = []
    for epsilon in sorted({epsilon for epsilon, _ in found}):
        cells = [found.get((epsilon, n_dims)) for n_dims in dims]
        rows.append([f"{epsilon:g}"])
        rows[-1] += [
            f"{_number(m.theory)} × {m.ratio:.4f} ± {m.error:.4f}" if m else "under 1e-6"
            for m in cells
        ]
    return _table(["ε", *(f"d = {n_dims:,}" for n_dims in dims)], rows)


def ball_table():
    """Return errors of vectors of the ball over that of the lift, by theory."""
    rows = []
    for norm in (1.0, 0.5, 0.2, 0.05):
        for name in ("Product", "Flip"):
            cells = []
            for epsilon in theory.doubling(2, 128):
                base = theory.lift(epsilon, 1000).mean_squared_error(norm)
                if name == "Product":
                    cells.append(theory.product_cost(norm, epsilon, 1000))
                else:
                    cells.append(theory.flip(epsilon, 1000).mean_squared_error(norm) / base)
            rows.append([f"{norm:g}", name, *(f"{cell:.3g}" for cell in cells)])
    header = ["length", "randomiser", *(f"ε = {e:g}" for e in theory.doubling(2, 128))]
    return _table(header, rows)


def choices_table():
    """Return what the parameters of the paper cost."""
    rows = []
    for n_dims in (100, 10_000, 1_000_000):
        for name in theory.SPLITS:
            cells = [theory.split_cost(name, e, n_dims) for e in theory.doubling(1, 512)]
            rows.append([f"{n_dims:,}", name, *(f"{cell:.3f}" for cell in cells)])
    return _table(["d", "parameters", *(f"ε = {e:g}" for e in theory.doubling(1, 512))], rows)


def table_1():
    """Return Table 1 of the paper, recomputed."""
    header = [
        "data", "d", "ε", "γ printed", "γ", "p printed", "p", "1/m", "best 1/m", "ratio of errors",
        "ε of the best with that error",
    ]  # fmt: skip
    rows = [
        [
            data, f"{d:,}", f"{epsilon:,}", f"{printed:.5f}", f"{gamma:.5f}", shown, f"{p:.4f}",
            f"{length:.2f}", f"{best:.2f}", f"{ratio:.3f}", f"{equal:,.1f}",
        ]
        for data, d, epsilon, printed, gamma, shown, p, length, best, ratio, equal
        in theory.table_1()
    ]  # fmt: skip
    return _table(header, rows)


def times_table(times):
    """Return seconds of reports of unit vectors."""
    rows = [
        [
            f"{n_rows:,}", f"{n_dims:,}", str(n_threads), _seconds(wall), _seconds(cpu),
            _seconds(cpu / n_rows), _seconds(cpu / n_rows / n_dims),
        ]
        for n_rows, n_dims, n_threads, wall, cpu in times
    ]  # fmt: skip
    return _table(["rows", "d", "threads", "wall", "CPU", "CPU a row", "CPU an entry"], rows)


def peers_table(peers):
    """Return times and errors beside the peers."""
    rows = []
    for name, n_dims, epsilon, found in peers:
        head = [f"{name} {n_dims:,}" if "," in name else name, f"{n_dims:,}", f"{epsilon:g}"]
        if isinstance(found, str):
            rows.append([*head, found, "", ""])
        else:
            cpu, ratio, error, inner, inner_error, n_rows = found
            # a tenth of the reports is from beyond the cap: of few rows there may be none
            mean = f"{inner:.3f} ± {inner_error:.3f}" if n_rows >= 200 else ""
            rows.append([*head, _seconds(cpu), f"{ratio:.4f} ± {error:.4f}", mean])
    header = ["program", "d", "ε", "CPU a row", "error over the least", "mean of ⟨Z, u⟩"]
    return _table(header, rows)


def page(measured, times, memory, searches, peers):
    """Return the page: text and tables of one run.

    Parameters
    ----------
    measured : list of Measured
        Errors.
    times, memory, searches, peers : lists
        As `local_mean.py` collects them.

    Returns
    -------
    text : str
    """
    spent = "; ".join(
        f"{peak / 2**20:.1f} MiB for {n_rows:,} rows of {n_dims:,}, which take "
        f"{8 * n_rows * n_dims / 2**20:.0f} MiB themselves"
        for n_rows, n_dims, peak in memory
    )
    slowest = _seconds(max(seconds for _, _, seconds in searches))
    parts = [
        BEFORE, unit_table(), CUBE, MEASURED, measured_table(measured),
        "The errors of PrivUnit, by theory times measured over theory:", privunit_table(measured),
        BALL, ball_table(), CHOICES, choices_table(), TABLE_1, table_1(), TIMES,
        times_table(times), f"Memory beyond the rows and their reports: {spent}. The search for "
        f"the best parameters took at most {slowest}, for d = 10 and a million, ε = 0.5 and 1000.",
    ]  # fmt: skip
    if peers:
        clones = "\n".join(
            f"- {name}: {address} at {commit}" for name, (address, commit) in REPOSITORIES.items()
        )
        parts += [PEERS.format(clones=clones, limit=f"{LIMIT:.0f}"), peers_table(peers)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"

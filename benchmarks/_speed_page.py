# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The tables that `speed.py` prints, in reStructuredText, and the page that holds them."""

from _machine import versions

__all__ = ["tables", "write"]

#: comments of the page, between which the tables are
BEGIN, END = ".. tables: begin", ".. tables: end"
PACKAGES = ("numpy", "scipy", "scikit-learn")


def table(title, head, rows):
    """Return a table."""
    cells = [", ".join('"' + str(cell).replace('"', "'") + '"' for cell in row) for row in rows]
    return "\n".join(
        (
            f".. csv-table:: {title}",
            "   :header-rows: 1",
            "   :class: longtable",
            "",
            *(f"   {line}" for line in (", ".join(f'"{cell}"' for cell in head), *cells)),
            "",
        )
    )


def time_of(seconds):
    """Return seconds in a unit that fits."""
    if seconds < 0.9995e-3:
        return f"{1e6 * seconds:.3g} µs"
    return f"{1e3 * seconds:.3g} ms" if seconds < 0.9995 else f"{seconds:.3g} s"


def _fits(found):
    peers = {cell["rows"]: cell for cell in found.get("diffprivlib", ())}
    rows = []
    for cell in found["fits"]:
        peer = peers.get(cell["rows"])
        rows.append(
            (
                cell["rows"],
                f"{time_of(cell['fit'])} ({cell['passes']})",
                f"{time_of(cell['free'])} ({cell['free_passes']})",
                f"{time_of(cell['public'])} ({cell['iterations']})",
                f"{cell['fit'] / cell['public']:.2g}",
                f"{cell['free'] / cell['public']:.2g}",
                f"{time_of(peer['fit'])} ({peer['iterations']})" if peer else "",
                f"{cell['fit'] / peer['fit']:.2g}" if peer else "",
                time_of(cell["pass"]),
                f"{cell['read'] / cell['pass']:.2f}",
                time_of(cell["pass_float32"]),
                f"{100 * cell['accuracy']:.1f} / {100 * cell['public_accuracy']:.1f}"
                + (f" / {100 * peer['accuracy']:.1f}" if peer else ""),
            )
        )
    head = (
        "rows", "skdp fit, ``data_norm=1`` (passes)", "skdp fit, no ``data_norm`` (passes)",
        "scikit-learn fit (iterations)", "ratio", "ratio, no ``data_norm``",
        "diffprivlib fit (iterations)", "ratio", "one pass", "share of bandwidth",
        "one pass, float32", "accuracy on these rows, %",
    )  # fmt: skip
    return table("DPLogisticRegression in its defaults, two classes", head, rows)


def _epochs(found):
    rows = []
    for ours in found["epochs"]:
        rows.append((ours["rows"], "skdp", time_of(ours["epoch"]), "1",
                     f"{ours['read'] / ours['epoch']:.2g}"))  # fmt: skip
        for cell in found.get("opacus", ()):
            if cell["rows"] == ours["rows"]:
                rows.append((
                    "", cell["method"], time_of(cell["epoch"]) + " *" * cell["extrapolated"],
                    f"{cell['epoch'] / ours['epoch']:.3g}",
                    f"{ours['read'] / cell['epoch']:.2g}",
                ))  # fmt: skip
    head = ("rows, float32", "library", "one epoch", "times skdp", "share of bandwidth")
    return table("One epoch of private stochastic gradients in batches of 1024", head, rows)


def _estimators(found):
    rows = [
        (
            cell["format"], f"``{cell['estimator']}``", time_of(cell["fit"]),
            f"``{cell['counterpart']}``", time_of(cell["public"]),
            f"{cell['fit'] / cell['public']:.2g}",
        )
        for cell in found["estimators"]
    ]  # fmt: skip
    head = ("rows", "estimator", "fit", "without privacy", "its time", "ratio")
    return table("All estimators, 100,000 x 50 dense or 100,000 x 10,000 CSR", head, rows)


def _cvxpy(found):
    rows = [
        (
            cell["what"], cell["shape"], f"{cell['numbers']:,}", time_of(cell["ours"]),
            time_of(cell["cvxpy"]), f"{cell['cvxpy'] / cell['ours']:.2g}",
            f"{cell['difference']:.0e}",
        )
        for cell in found["cvxpy"]
    ]  # fmt: skip
    head = (
        "fit", "shape", "product", "a solver of ours", "cvxpy", "ratio", "relative difference",
    )  # fmt: skip
    return table("Whole fits by solvers of ours and by cvxpy", head, rows)


def _growth(found):
    rows = [
        (
            cell["grows"], f"``{cell['timed']}``" if "(" in cell["timed"] else cell["timed"],
            f"{cell['values'][0]:,} to {cell['values'][-1]:,}",
            f"{time_of(cell['seconds'][0])} to {time_of(cell['seconds'][-1])}",
            f"{cell['exponent']:.2f}",
        )
        for cell in found["growth"]
    ]  # fmt: skip
    head = ("what grows", "what is timed", "from, to", "time", "exponent at the end")
    return table("Growth; 1 is linear", head, rows)


def _threads(found):
    numbers = sorted(found["threads"], key=int)
    one = found["threads"][numbers[0]]
    rows = [
        (f"``{name.split('; ')[0]}``", name.split("; ")[1],
         *(time_of(found["threads"][number][name]) for number in numbers),
         f"{one[name] / found['threads'][numbers[-1]][name]:.2f}")
        for name in one
    ]  # fmt: skip
    head = ("call", "rows", *(f"OMP_NUM_THREADS={number}" for number in numbers), "gain")
    return table("Wall-clock time by the number of threads", head, rows)


def tables(found):
    """Return all tables of which something was measured."""
    made = [
        f"Measured on: {found['machine']};\n{versions(*PACKAGES)}"
        + "".join(
            f", {peer} {found[peer][0]['version']}"
            for peer in ("diffprivlib", "opacus")
            if found.get(peer)
        )
        + ".\n"
    ]
    shown = {
        "fits": _fits, "epochs": _epochs, "estimators": _estimators, "cvxpy": _cvxpy,
        "growth": _growth, "threads": _threads,
    }  # fmt: skip
    made += [show(found) for name, show in shown.items() if found.get(name)]
    return "\n".join(made)


def write(page, text):
    """Put tables into a page, between its two comments."""
    before, rest = page.read_text().split(BEGIN + "\n")
    after = rest.split(END + "\n")[1]
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}\n{after}")

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The page and the picture of federated softmax regression on handwritten digits."""

import pathlib

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"

HEAD = """\
.. _federated_mnist:

Federated learning: handwritten digits of 600 clients
=====================================================

Written by ``python benchmarks/federated_mnist.py``. The setting follows Bhowmick et al. (2018),
Section 5, with a linear softmax model (7,850 coefficients) in place of a network of 3.3 million:
the 60,000 training images of MNIST belong to 600 clients with 100 images each; 200 clients are
expected in a round, each takes 5 gradient steps, and there are 100 rounds. Updates are clipped to
0.5. Figures are accuracies on the 10,000 test images. The adjacency is "zero-out",
:math:`\\delta = 10^{-9}`.

- *product*: direction and length are reported separately, by the paper's parameters: the budget of
  the direction is the first number, that of the length is 10. *lift*: one report of the same total
  budget, with the parameters of least error for the longest updates.
- *central*: ``epsilon=2`` for what is released. The budget is held by the 600 clients themselves,
  or would be held by ten million, of whom 20,000 take part in a round (``Population``).
- Next to every accuracy stands what the clients that were read have really spent, of everything
  that was released and towards the server.

.. image:: /_static/federated_mnist.png
   :alt: Accuracy against the local budget of a round, for two kinds of reports, and without any.
   :width: 100%

"""

TAIL = """
Reading
-------

- A simulation with the noise of ten million clients is as accurate as one without noise, and its
  own clients are hardly protected. What 600 clients can have at ``epsilon=2`` is in the
  two lines above it.
- A budget of one report has a price for every participation: over 100 rounds, in which a client
  takes part in a third, the reports together cost about sixty times as much.
- Updates are shorter than their bound, and the product keeps short reports of short updates; the
  lift has noise for the longest. For budgets of 20 and more the product is the better choice here.
- Projecting reports to 0.5 (the last line, and "both product, 0.5") changes the accuracy by less
  than 0.002 in one trial. Nothing bounds its bias in general.
- Differences below 0.01 are within what single trials may show.
"""

COLUMNS = (
    "Configuration", "Local budget of a round", "Accuracy", "Trials", "Released: epsilon spent",
    "Reports: epsilon spent", "Of the deployment",
)  # fmt: skip


def _cells(result):
    def number(value):
        return "none" if value is None or value == float("inf") else f"{value:.4g}"

    return (
        f"{result['group']}, {result['label']}",
        number(result["per_round"]),
        f"{result['accuracy']:.3f}",
        str(result["trials"]),
        number(result["spent"]),
        number(result["local"]),
        number(result["hypothetical"]),
    )


def write_page(results):
    """Write docs/benchmarks/federated_mnist.rst."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for cells in [COLUMNS, *map(_cells, results)]:
        lines += [f"   {'  ' if i else '* '}- {cell}" for i, cell in enumerate(cells)]
    page = HEAD + "\n".join(lines) + "\n" + TAIL
    (DOCS / "benchmarks" / "federated_mnist.rst").write_text(page, encoding="utf-8")


def write_picture(results):
    """Write docs/_static/federated_mnist.png."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    for group, marker in (("local product", "o"), ("local lift", "s")):
        points = sorted((r["per_round"], r["accuracy"]) for r in results if r["group"] == group)
        axes.plot(*zip(*points, strict=True), marker=marker, label=f"reports: {group[6:]}")
    for result, style in zip(results[:4], ("-", ":", "-.", "--"), strict=True):
        name = "no privacy" if result["group"] == "none" else f"central: {result['label']}"
        axes.axhline(result["accuracy"], ls=style, color="grey", lw=1.2, label=name)
    axes.set(xscale="log", xlabel="epsilon of one report", ylabel="test accuracy")
    ticks = [20, 60, 110, 260, 510]
    axes.set_xticks(ticks, map(str, ticks))
    axes.minorticks_off()
    axes.set_title("600 clients with 100 images each, 100 rounds")
    axes.legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(DOCS / "_static" / "federated_mnist.png", dpi=120)

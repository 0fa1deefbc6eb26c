# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The picture of `local_mean.py`: three plots, readable in grey."""

import _local_theory as theory

_STYLES = {
    "PrivUnit": ("o", "-", "black"),
    "hemisphere": ("^", "--", "0.35"),
    "repeated hemisphere": (None, ":", "0.35"),
    "Gaussian noise": ("s", "-", "0.6"),
    "l2-Laplace noise": ("v", "-.", "0.45"),
    "Laplace noise": ("D", ":", "0.7"),
}
_SPLITS = (("-", "black"), ("--", "0.35"), (":", "0.35"), ("-.", "0.6"))
_NORMS = ((1.0, "-", "black"), (0.5, "--", "0.35"), (0.2, "-.", "0.5"), (0.05, ":", "0.35"))
#: dimension of the unit vectors of the plots
SHOWN = 1000


def save_picture(measured, path):
    """Draw errors, what the paper's choices cost, and products beside the lift.

    Parameters
    ----------
    measured : list of Measured
        Points of the first plot.
    path : Path
        Where to.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.8), layout="constrained")
    _errors(axes[0], measured)
    _splits(axes[1])
    _products(axes[2])
    for axis in axes:
        axis.set_xscale("log", base=2)
        axis.set_xlabel("budget of one report, $\\epsilon$")
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.legend(fontsize=7, frameon=False, labelspacing=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    with Image.open(path) as picture:
        grey = picture.convert("L")
    grey.save(path, optimize=True)


def _errors(axis, measured):
    grid = theory.doubling(0.5, 1024)
    for name, (marker, line, color) in _STYLES.items():
        if name == "repeated hemisphere":
            values = [theory.repeated_hemisphere(e, SHOWN) / SHOWN for e in grid]
        else:
            values = [theory.error(name, e, SHOWN) / SHOWN for e in grid]
        axis.plot(grid, values, line, color=color, linewidth=1, label=name)
        points = [m for m in measured if m.name == name and m.n_dims == SHOWN]
        axis.plot(
            [m.epsilon for m in points], [m.theory * m.ratio / SHOWN for m in points],
            linestyle="", marker=marker, markersize=4, color=color,
        )  # fmt: skip
    axis.set_yscale("log")
    axis.set_title(f"unit vectors, d = {SHOWN:,}; points measured", fontsize=9)
    axis.set_ylabel("mean squared error / d")


def _splits(axis):
    grid = theory.doubling(1, 512)
    for name, (line, color) in zip(theory.SPLITS, _SPLITS, strict=True):
        values = [theory.split_cost(name, e, 10_000) for e in grid]
        axis.plot(grid, values, line, color=color, linewidth=1, label=name)
    axis.set_ylim(bottom=1.0)
    axis.set_title("PrivUnit as in the paper, d = 10,000", fontsize=9)
    axis.set_ylabel("mean squared error / least")


def _products(axis):
    grid = theory.doubling(2, 128)
    for norm, line, color in _NORMS:
        values = [theory.product_cost(norm, e, SHOWN) for e in grid]
        axis.plot(grid, values, line, color=color, linewidth=1, label=f"length {norm:g}")
    axis.axhline(1.0, color="0.8", linewidth=0.8)
    axis.set_yscale("log")
    axis.set_title(f"direction times length, d = {SHOWN:,}", fontsize=9)
    axis.set_ylabel("mean squared error / that of the lift")

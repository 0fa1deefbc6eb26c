# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The picture of `local_logistic.py`: iterates and averages, readable in grey."""

import numpy as np
from _logistic_runs import LIFT, OPTIMAL, PAPER, PLAIN, Population

_NAMES = (PAPER, OPTIMAL, LIFT)


def save_picture(settings, found, path):
    """Draw both settings, one a row, and save the figure.

    Parameters
    ----------
    settings, found : list of Setting and list of Runs
        What was run, and what came out.
    path : Path
        Where to.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(
        2, 4, figsize=(12.0, 6.0), layout="constrained", width_ratios=(1, 1, 1, 1.6)
    )
    # where there are no lines
    places = "lower left", "upper left"
    for line, setting, runs, place in zip(axes, settings, found, places, strict=True):
        for axis, name in zip(line, _NAMES, strict=False):
            axis.sharey(line[0])
            _iterates(axis, setting, runs, name)
        line[0].set_ylabel(f"d = {setting.n_dims}: excess loss of the iterate")
        line[0].legend(frameon=False, fontsize=7, ncols=2, loc=place)
        _averages(line[3], setting, runs)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _iterates(axis, setting, runs, name):
    greys = np.linspace(0.75, 0.25, len(setting.epsilons))
    lines = [
        (name, epsilon, str(grey)) for epsilon, grey in zip(setting.epsilons, greys, strict=True)
    ]
    for method, epsilon, colour in [*lines, (PLAIN, np.inf, "black")]:
        gaps = runs.gaps[method, epsilon]
        mean = gaps.mean(axis=0)
        error = 1.96 * gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps))
        label = "no privacy" if method == PLAIN else f"$\\epsilon$ = {epsilon:g}"
        axis.plot(runs.steps, mean, color=colour, label=label, lw=1.2)
        axis.fill_between(runs.steps, mean - error, mean + error, color=colour, alpha=0.2, lw=0)
    population = Population(setting.n_dims, setting.tau)
    truth = np.eye(setting.n_dims)[0] * setting.tau
    start = population.loss(0 * truth, truth) - population.loss(truth, truth)
    axis.axhline(start, color="black", ls=":", lw=1)
    axis.set(xscale="log", xlabel="step", title=name)
    axis.set_ylim(0, 3 * start)


def _averages(axis, setting, runs):
    groups = [*setting.epsilons, np.inf]
    for i, epsilon in enumerate(groups):
        names = _NAMES if np.isfinite(epsilon) else (PLAIN, "MLE")
        for j, name in enumerate(names):
            values = runs.mle if name == "MLE" else runs.errors[name, epsilon]
            box = axis.boxplot(
                values, positions=[i + 0.25 * (j - 1)], widths=0.2, patch_artist=True, whis=(0, 100)
            )
            box["boxes"][0].set_facecolor(str(1.0 - 0.3 * j))
            box["medians"][0].set_color("black")
    axis.axhline(setting.tau, color="black", ls=":", lw=1)
    labels = [*(f"{epsilon:g}" for epsilon in setting.epsilons), "no privacy,\nMLE"]
    axis.set_xticks(range(len(groups)), labels)
    axis.set(yscale="log", xlabel="$\\epsilon$", title="distance of the average from the truth")
    axis.plot([], [], "s", color="white", mec="black", label=_NAMES[0])
    axis.plot([], [], "s", color="0.7", mec="black", label=_NAMES[1])
    axis.plot([], [], "s", color="0.4", mec="black", label=_NAMES[2])
    axis.legend(frameon=False, fontsize=7)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""All pages in one command, and one line of history for every figure that a release stands for.

::

    python benchmarks            # pages and history: an hour of one core, with peers
    python benchmarks --quick    # history alone: half a minute
    python benchmarks --part rates audits    # some pages, and history

The pages are those of rates, audits, speed, and accuracy and calibration. What was measured is kept
in ``benchmarks/results``: a call that was interrupted goes on where it was, and a page that is done
for this version is left as it is, until ``--again``. Of another version the peers of the accuracy
page alone are kept. The figures of ``benchmarks/history.csv``,
which ``docs/benchmarks/history.rst`` shows, are measured every time, and take the place of those of
the same version. What is worse than in the version before, beyond four standard errors, is named,
and then the exit status is 1.
"""

import argparse
import csv
import math
import os
import subprocess
import sys
import time
import warnings
from datetime import date
from pathlib import Path

import numpy as np
from _accuracy_data import split
from _accuracy_store import qualities
from _speed_rows import alternately, labels, make, name_of
from private_erm_rates import HINGE, LOGISTIC, Budget
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression, DPMean, __version__
from skdp.audit import audit_privacy, trace_privacy

HERE = Path(__file__).resolve().parent
RESULTS, HISTORY = HERE / "results", HERE / "history.csv"
FIELDS = ("version", "date", "figure", "better", "value", "error")
#: what writes a page, and how it is told where to keep what was measured; from the shortest on
PAGES = {
    "rates": ("private_erm_rates.py", "--results", RESULTS / "private_erm_rates.json"),
    "audits": ("audit_all.py", "--results", RESULTS / "audits.jsonl"),
    "speed": (
        "speed.py", "--results", RESULTS / "speed.json",
        "--page", HERE.parent / "docs/user_guide/performance.rst",
    ),
    "accuracy": ("accuracy.py", "--results", RESULTS / "accuracy"),
}  # fmt: skip
#: in a folder of results, what is of one version of this library
OURS = ("skdp.jsonl", "skdp_statistics.jsonl")
#: standard errors beyond which a figure is worse than before
BEYOND = 4.0


def accuracies():
    """Yield accuracy, log-loss and calibration error of the default at epsilon 1, with a delta."""
    for name in ("breast_cancer", "digits"):
        found = []
        for seed in range(100, 106):
            X, X_test, y, y_test = split(name, seed)
            model = DPLogisticRegression(1.0, 1e-5, classes=np.unique(y), random_state=seed)
            found.append(qualities(model.fit(X, y), X_test, y_test))
        for key, words, better in (
            ("accuracy", "accuracy in per cent", "higher"),
            ("log_loss", "log-loss", "lower"),
            ("ece", "calibration error", "lower"),
        ):
            yield f"{words}, {name}", better, [one[key] for one in found]


def speeds():
    """Yield CPU seconds of the default, over those of LogisticRegression on the same rows."""
    for size in ((10**5, 20, None), (10**4, 10**3, 20)):
        X, score = make(size)
        y = labels(score)
        ratios = []
        for _ in range(4):
            (ours, public), _ = alternately(
                lambda X=X, y=y: DPLogisticRegression(classes=(0, 1)).fit(X, y),
                lambda X=X, y=y: LogisticRegression().fit(X, y),
                seconds=2.0,
            )
            ratios.append(ours / public)
        yield f"CPU beside scikit-learn, {name_of(size)}", "lower", ratios


def excesses():
    """Yield the excess of the defaults on rows that nearly cancel."""
    for subject in (HINGE, LOGISTIC):
        found = [subject.convex(4096, 8, Budget(1.0), 3 * 8**0.5) for _ in range(20)]
        yield f"worst-case excess, {subject.label.strip('`')}", "lower", found


def audits():
    """Yield what coupled traces measure, and what a black box proves, in parts of the claim."""
    mean = DPMean(data_norm=1.0)
    for model in (DPLogisticRegression(classes=(0, 1)), mean):
        call = f"{type(model).__name__}()"
        yield f"traced part of the claim, {call}", "at most 1", [trace_privacy(model).share]
    seen = audit_privacy(mean, n_runs=3000, confidence=0.999, random_state=0)
    part = seen.epsilon_lower / seen.epsilon_claimed
    yield "proved part of the claim, DPMean()", "at most 1", [part]


def measured():
    """Return the lines of history of this version: figures with their standard errors."""
    lines = []
    for part in (accuracies, speeds, excesses, audits):
        start = time.process_time()
        for figure, better, values in part():
            value = np.mean(values)
            error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
            if part is speeds:
                # from one machine, and one hour, to another
                error = max(error, 0.1 * value)
            cells = (__version__, str(date.today()), figure, better)
            line = (*cells, f"{value:.6g}", f"{error:.2g}")
            print(*line[2:], sep=" | ", flush=True)
            lines.append(dict(zip(FIELDS, line, strict=True)))
        print(f"    {part.__name__}: {time.process_time() - start:.0f} s CPU", flush=True)
    return lines


def regressions(lines, before):
    """Yield sentences on what is worse than it was, or contradicts a claim.

    Parameters
    ----------
    lines, before : list of dict
        Lines of history: of now, and of an earlier version.
    """
    old = {line["figure"]: line for line in before}
    for line in lines:
        value, was = float(line["value"]), old.get(line["figure"])
        if line["better"] == "at most 1":
            if value > 1 + 1e-6:
                yield f"{line['figure']}: {value:.4g} is more than was claimed."
        elif was is not None:
            rise = (value - float(was["value"])) * (1 if line["better"] == "lower" else -1)
            noise = math.hypot(float(line["error"]), float(was["error"]))
            if rise > BEYOND * noise:
                yield (
                    f"{line['figure']}: {line['value']} ± {line['error']}, and in version "
                    f"{was['version']} {was['value']} ± {was['error']}."
                )


def kept(lines, path):
    """Write lines into the history, in place of those of their version; return the version before.

    Parameters
    ----------
    lines : list of dict
        Lines of one version.
    path : Path
        Of the history.

    Returns
    -------
    before : list of dict
        Lines of the last version that is another.
    """
    history = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            history = list(csv.DictReader(file))
    history = [line for line in history if line["version"] != lines[0]["version"]]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*history, *lines])
    return [line for line in history if line["version"] == history[-1]["version"]]


def write_pages(names, again):
    """Run what writes the pages, but for those that are done for this version."""
    RESULTS.mkdir(exist_ok=True)
    for name in names:
        # the version of what is kept, and whether the page was written from it
        state, wanted = RESULTS / f"{name}.state", [__version__, "done"]
        found = state.read_text().split() if state.exists() and not again else []
        if found == wanted:
            print(f"{name} is done for version {__version__}", flush=True)
            continue
        script, *options = PAGES[name]
        if found != wanted[:1]:
            forget(options[options.index("--results") + 1])
            state.write_text(wanted[0])
        before = sum(os.times()[2:4])
        subprocess.run([sys.executable, HERE / script, *options], check=True)
        print(f"    {name}: {sum(os.times()[2:4]) - before:.0f} s CPU", flush=True)
        state.write_text(" ".join(wanted))


def forget(results):
    """Remove what was measured of this library: a file, or what is ours in a folder."""
    for file in [results / name for name in OURS] if results.is_dir() else [results]:
        file.unlink(missing_ok=True)


def main():
    """Write the pages and the history."""
    parser = argparse.ArgumentParser(prog="python benchmarks", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the history alone")
    parser.add_argument("--part", nargs="+", choices=list(PAGES), help="some pages; all by default")
    parser.add_argument("--again", action="store_true", help="pages that are done as well")
    parser.add_argument("--history", type=Path, default=HISTORY)
    arguments = parser.parse_args()
    if not arguments.quick:
        write_pages(arguments.part or PAGES, arguments.again)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = measured()
    worse = list(regressions(lines, kept(lines, arguments.history)))
    print(*worse or ["Nothing is worse than in the version before."], sep="\n")
    print(f"{time.process_time():.0f} s CPU")
    raise SystemExit(bool(worse))


if __name__ == "__main__":
    main()

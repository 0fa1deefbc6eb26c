# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Regression in the units of the data beside others, on one page: docs/benchmarks/regression.rst.

R2 on held-out rows and CPU seconds of `DPLpRegressor`, of three private least squares that are
written in `_regression_rivals.py`, and of diffprivlib in an environment of its own::

    pip install ".[bench]"
    python benchmarks/regression.py             # about 15 minutes of one core
    python benchmarks/regression.py --quick     # a smoke run of two tables, writes no page

Every result is stored as soon as it is there (``--results DIR``): an interrupted run goes on where
it was. ``--part`` runs one library and writes no page, ``--report`` writes the page of what is
stored.
"""

import itertools
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import _one_thread  # noqa: F401  before numpy
import _regression_peer
import numpy as np
from _accuracy_store import Store, read
from _environments import run_page, run_there
from _machine import machine, versions
from _mechanisms_report import beats, filled, standard_error, table
from _regression_rivals import adassp, hessian_mixing, tukey
from _tables import REGRESSION, regression
from sklearn.linear_model import LinearRegression

from skdp import DPLpRegressor

DELTA = 1e-6
EPSILONS = (0.1, 0.5, 1.0, 4.0)
NAMES = ("diamonds", *REGRESSION)
SEEDS = range(100, 105)
QUICK = {"names": ("k401", "labsup"), "n_seeds": 2, "epsilons": (1.0,)}

DEFAULT = "``DPLpRegressor()``"
NORM = "``data_norm``"
USUAL = "``data_norm``, ``target_scale`` as documented"
RANGE = "``data_norm``, ``target_scale`` the range"
#: ours and others that know nothing, and those that know bounds; the last rows are of one promise
KNOW_NOTHING = (DEFAULT, "TukeyEM, best of 6")
KNOW_BOUNDS = (
    NORM, USUAL, RANGE,
    "AdaSSP, nothing clipped", "AdaSSP, best of 12",
    "Hessian mixing, nothing clipped", "Hessian mixing, best of 12",
    _regression_peer.LABEL,
)  # fmt: skip
OURS = (DEFAULT, NORM, USUAL, RANGE)
#: what is chosen by the true error, for rivals only
MODELS = (250, 500, 1000, 2000, 4000, 8000)
CLIPS, CONSTANTS, _TAIL = (0.9, 0.97, 1.0), (0.3, 1.0), 0.001

INTRODUCTION = """\
.. This file is written by benchmarks/regression.py.

Linear regression beside other libraries, in the units of the data
==================================================================

R² on a fifth of the rows that was held out, mean ± standard error over splits with fresh noise, and
CPU seconds of a fit. Columns and targets are in the units of their files; columns of categories are
one-hot. Replace-one, δ = 1e-6, the same for all but diffprivlib †, which states δ = 0 and no
adjacency. Written by ``python benchmarks/regression.py``.

The first rows of a table are given nothing but the data. The others are told the smallest and the
largest value of every column, and map it to [-1, 1] by them; then the length of the longest row;
and the median of the targets, which they subtract. All of that is read off the data, and nobody
pays for it: a real user would have to know it, and would know it worse.

- :class:`~skdp.DPLpRegressor` is untuned. "as documented" is the usual size of a target, which
  a quarter of them exceeds; "the range" is the largest target, which is not what the parameter
  means, and is shown for those who only know a bound.
- TukeyEM (Amin et al. 2023) needs no bounds, but many rows. It takes the best number of models on
  disjoint rows, by the true error, of {models}. It has no answer
  where its test of stability fails.
- AdaSSP (Wang 2018) and Iterative Hessian Mixing (Lev et al. 2026) clip targets. "nothing clipped"
  is the largest target as the bound, "best" takes the best of twelve settings by the true error:
  the bound is a quantile (0.9, 0.97 or 1) of the targets' sizes, columns are mapped by their
  range or clipped to their quantiles 0.001 and 0.999, the constant feature of the intercept is
  0.3 or 1. Both were written here for this promise from their descriptions, and compose their
  releases as tightly as ours; the constants are those of their authors.
- diffprivlib is given the mapped rows, and the ranges of columns and targets. † Nominal.

R² is 0 for the mean of the targets.

"""
READING = """\
Where others lead
-----------------

Every row of others beside our default, which is told less than all but TukeyEM, and those that know
bounds beside ours with ``data_norm``. "Beyond noise" is a paired t-test on common splits at 0.05,
two-sided, not corrected for the number of cells. TukeyEM is counted where it answers on all splits.

"""
WHY = """\
What is behind it:

- ames: at ε = 0.1 a unit of rows and one of targets are searched alone, for a fifth of
  the budget, and what is left is about as good as the mean. From ε = 0.5 on columns have units, and
  entries beyond 100 units count as that, 10 where noise hides a column, in `predict` too. That is
  what makes the default usable here and on k401: before it, columns of zeros with hundreds of
  square feet in a few rows, and units that noise put far off, took R² below -1.
- diamonds: a dozen of 10,788 stones have mistyped lengths, and are predicted badly by a fit that
  tells lengths from weight. A shorter bound would help here and hurt flights, where long delays
  follow the same line as short ones. R² does not rise from ε = 0.5 to 4 for these stones alone:
  without the 4 of a split that are more than 8 units from an origin it is .915, .915 and .917 at
  ε = 0.5, 1 and 4, and .904, .900 and .906 with them (ten splits, measured apart from the tables).
- Bounds: ``data_norm`` changes nothing where units can be found: what varies little beside a
  longest row is lost otherwise. What helps below is that columns were mapped, and targets
  centred.
- Few rows: units are searched from about 180 rows over ε on, if not of columns. On 3,000 rows of
  cpssw8, labsup, k401 and diamonds at ε = 0.1 R² is -.13 to .08, and at ε = 0.2, where all but
  diamonds have units of columns, .19, .64, .09 and -.09 (12 splits, measured apart). Below that
  nothing is searched, and the estimator warns: targets of thousands are predicted as next to 0.
- flights: delays have a long tail, and rows beyond six units of length count less. Where TukeyEM
  answers it is level.
- ``target_scale`` is no bound. With the range in its place a look at the size of the targets
  brings it near that, where rows are enough for a look: not on k401 and ames at ε = 0.1. Noise
  there grows by as much as the range is wider than a usual target, and R² falls below -1.

"""


def split(name, seed):
    """Return rows and targets to learn from and to test with, in the units of the data."""
    X, y = regression(name)
    held, kept = np.split(np.random.default_rng(seed).permutation(len(y)), [len(y) // 5])
    return X[kept], y[kept], X[held], y[held]


def mapped(X, X_test, tail=0.0):
    """Return rows with columns in [-1, 1], by quantiles of the first; constant ones are 0."""
    low, high = np.quantile(X, (tail, 1 - tail), axis=0)
    # rare levels keep their range
    low, high = (
        np.where(high > low, part, end) for part, end in ((low, X.min(0)), (high, X.max(0)))
    )
    half = np.where(high > low, (high - low) / 2, np.inf)
    clipped = (np.clip(rows, low, high) for rows in (X, X_test)) if tail else (X, X_test)
    return tuple((rows - low) / half - (high > low) for rows in clipped)


def score_of(estimate, X, y):
    """Return R2 of a model, or of coefficients and intercept, or None for no estimate."""
    if estimate is None:
        return None
    with np.errstate(over="ignore"):
        own = isinstance(estimate, DPLpRegressor)
        found = estimate.predict(X) if own else X @ estimate[0] + estimate[1]
        off = np.mean((y - found) ** 2)
    return 1 - float(off / np.var(y))


def _ours(X, y, **given):
    def fit(epsilon, rng):
        return DPLpRegressor(epsilon, DELTA, **given).fit(X, y)

    return fit


def _theirs(method, X, y, **given):
    return lambda epsilon, rng: method(X, y, epsilon, DELTA, rng=rng, **given)


def methods(X, y, X_test, y_test):
    """Yield label, and pairs of a fit and the rows to test it with, of which the best counts."""
    raw, raw_rows = (X_test, y_test), (X, X_test)
    yield DEFAULT, [(_ours(X, y), raw)]
    yield KNOW_NOTHING[1], [(_theirs(tukey, X, y, n_models=m), raw) for m in MODELS]
    center = np.median(y)
    X, X_test = mapped(X, X_test)
    y, test = y - center, (X_test, y_test - center)
    sizes, norm = np.abs(y), float(np.linalg.norm(X, axis=1).max())
    largest, usual = float(sizes.max()), float(np.quantile(sizes, 0.75))
    yield NORM, [(_ours(X, y, data_norm=norm), test)]
    yield USUAL, [(_ours(X, y, data_norm=norm, target_scale=usual), test)]
    yield RANGE, [(_ours(X, y, data_norm=norm, target_scale=largest), test)]
    cut, cut_test = mapped(*raw_rows, _TAIL)
    longest = float(np.linalg.norm(cut, axis=1).max())
    places = ((X, norm, test), (cut, longest, (cut_test, test[1])))
    for name, method in (("AdaSSP", adassp), ("Hessian mixing", hessian_mixing)):
        widest = {"row_bound": norm, "target_bound": largest}
        yield f"{name}, nothing clipped", [(_theirs(method, X, y, **widest), test)]
        found = []
        for (rows, bound, held), q, c in itertools.product(places, CLIPS, CONSTANTS):
            clip = float(np.quantile(sizes, q))
            given = {"row_bound": bound, "target_bound": clip, "constant": c}
            found.append((_theirs(method, rows, y, **given), held))
        yield f"{name}, best of 12", found


def measure(folder, environments=None, names=NAMES, n_seeds=5, epsilons=EPSILONS):
    """Fit ours and what is written here; store R2, and CPU seconds of one fit."""
    warnings.simplefilter("ignore")
    store = Store(folder / "skdp.jsonl")
    for name, seed in itertools.product(names, SEEDS[:n_seeds]):
        X, y, X_test, y_test = split(name, seed)
        if store.get(name, "least squares", None, seed) is None:
            start = time.process_time()
            plain = LinearRegression().fit(X, y)
            seconds = time.process_time() - start
            score = float(plain.score(X_test, y_test))
            store.add(name, "least squares", None, seed, score=score, seconds=seconds)
        for (label, fits), epsilon in itertools.product(methods(X, y, X_test, y_test), epsilons):
            if store.get(name, label, epsilon, seed) is not None:
                continue
            rng, start = np.random.default_rng(), time.process_time()
            estimates = [fit(epsilon, rng) for fit, _ in fits]
            seconds = (time.process_time() - start) / len(fits)
            scores = [
                score_of(found, *test) for found, (_, test) in zip(estimates, fits, strict=True)
            ]
            best = max((score for score in scores if score is not None), default=None)
            store.add(name, label, epsilon, seed, score=best, seconds=seconds)


def measure_peer(folder, environments=None, names=NAMES, n_seeds=5, epsilons=EPSILONS):
    """Run diffprivlib on the same rows."""
    splits = Path(folder) / "splits"
    splits.mkdir(parents=True, exist_ok=True)
    for name, seed in itertools.product(names, SEEDS[:n_seeds]):
        file = splits / f"{name}-{seed}.npz"
        if not file.is_file():
            X, y, X_test, y_test = split(name, seed)
            X, X_test = mapped(X, X_test)
            center = np.median(y)
            np.savez(file, X=X, y=y - center, X_test=X_test, y_test=y_test - center)
    run_there(
        "diffprivlib", environments, _regression_peer.__file__,
        Path(folder) / "diffprivlib.jsonl", splits, "--epsilons", *epsilons,
    )  # fmt: skip


def collected(folder):
    """Return {table: {method: {epsilon: {seed: (score, seconds)}}}} of what is stored."""
    found = {}
    for record in (*read(folder / "skdp.jsonl"), *read(folder / "diffprivlib.jsonl")):
        name, label, epsilon, seed = record["key"]
        cell = found.setdefault(name, {}).setdefault(label, {}).setdefault(epsilon, {})
        cell[seed] = record["score"], record["seconds"]
    return found


def _scores(cell):
    return [score for score, _ in cell.values() if score is not None]


def _text(cell):
    scores = _scores(cell)
    if not scores:
        return "no answer"
    if np.mean(scores) < -1:
        return "below -1"
    text = f"{np.mean(scores):.3f}"
    if len(scores) > 1:
        text += f" ± {standard_error(scores):.3f}"
    return text if len(scores) == len(cell) else f"{text} ({len(scores)} of {len(cell)})"


def _table(name, rows):
    """Return the lines of one table."""
    X, y = regression(name)
    about = "prices in dollars" if name == "diamonds" else REGRESSION[name][-1]
    where = "plotnine" if name == "diamonds" else "R: " + ".".join(REGRESSION[name][:2])
    plain = rows["least squares"][None]
    text = f"{len(y):,} rows, {X.shape[1]} columns ({where}): {about}. {len(plain)} splits. "
    lines = [name, "-" * len(name), ""]
    lines += [filled(f"{text}Least squares without privacy: {_text(plain)}."), ""]
    order = {"knows nothing": KNOW_NOTHING, "knows bounds": KNOW_BOUNDS}
    labels = [(kind, label) for kind, group in order.items() for label in group if label in rows]
    best = {}
    for epsilon in EPSILONS:
        means = [
            (np.mean(_scores(rows[label][epsilon]) or [-np.inf]), label) for _, label in labels
        ]
        best[epsilon] = max(means)[1]
    body, last = [], ""
    for kind, label in labels:
        texts = [_text(rows[label][epsilon]) for epsilon in EPSILONS]
        texts = [
            f"**{text}**" if best[epsilon] == label else text
            for epsilon, text in zip(EPSILONS, texts, strict=True)
        ]
        seconds = [s for cell in rows[label].values() for _, s in cell.values()]
        body.append(("" if kind == last else kind, label, *texts, f"{np.median(seconds):.2g}"))
        last = kind
    header = ("user", "method", *(f"ε = {epsilon:g}" for epsilon in EPSILONS), "seconds")
    return [*lines, *table("", header, body)]


def _compared(ours, theirs):
    """Return the column of the table of counts, or None where a rival gave no answer."""
    seeds = [seed for seed in theirs if theirs[seed][0] is not None]
    if not theirs or len(seeds) < len(theirs):
        return None
    ours, theirs = ([cell[seed][0] for seed in seeds] for cell in (ours, theirs))
    ahead, clear = np.mean(ours) >= np.mean(theirs), beats(ours, theirs) or beats(theirs, ours)
    return (0 if clear else 1) if ahead else (3 if clear else 2)


def _reading(found):
    """Return how often others lead, and where."""
    body, behind = [], {}
    for rival in (label for label in (*KNOW_NOTHING, *KNOW_BOUNDS) if label not in OURS):
        for ours in (DEFAULT,) if rival in KNOW_NOTHING else (DEFAULT, NORM):
            counts = np.zeros(4, dtype=int)
            for (name, rows), epsilon in itertools.product(found.items(), EPSILONS):
                theirs = rows.get(rival, {}).get(epsilon, {})
                place = _compared(rows[ours][epsilon], theirs)
                if place is None:
                    continue
                counts[place] += 1
                if place >= 2:
                    text = f"{rival} {_text(theirs)}{' (beyond noise)' if place == 3 else ''}"
                    behind.setdefault((name, epsilon, ours), []).append(text)
            body.append((rival, ours, *map(str, counts)))
    header = ("rival", "ours", "ahead beyond noise", "ahead", "behind", "behind beyond noise")
    lines = [READING, *table("Cells (table, ε) in which ours is", header, body)]
    if behind:
        lines += ["Every cell in which the mean of a rival is above ours:", ""]
    for (name, epsilon, ours), texts in behind.items():
        mine = f"{ours} {_text(found[name][ours][epsilon])}"
        text = f"* {name}, ε = {epsilon:g}, {mine}: {'; '.join(texts)}."
        lines.append(filled(text).replace("\n", "\n  "))
    return [*lines, ""]


def page(folder):
    """Return the text of the page, from what is stored in a folder."""
    found = collected(folder)
    found = {name: found[name] for name in NAMES if name in found}
    models = ", ".join(map(str, MODELS[:-1])) + f" or {MODELS[-1]}"
    lines = [INTRODUCTION.format(models=models), *_reading(found), WHY]
    for name, rows in found.items():
        lines += _table(name, rows)
    lines += [
        "What was run", "------------", "",
        filled(f"* {machine()}, shared with other work; one thread, CPU time.").replace(
            "\n", "\n  "
        ),
        f"* {versions('skdp', 'scikit-learn', 'numpy', 'scipy')}; diffprivlib 0.6.6.",
        "* Seconds are medians of one fit; the search for the best setting is not in them.",
    ]  # fmt: skip
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()).rstrip() + "\n"


if __name__ == "__main__":
    PARTS = {"skdp": (measure, QUICK), "diffprivlib": (measure_peer, QUICK)}
    run_page(__doc__, "regression", PARTS, page)

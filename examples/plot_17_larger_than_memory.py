# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Fits to data larger than memory
===============================

More rows make private learning better and make computers run out of memory. A fit needs sums over
the rows, and a sum does not mind where its rows are: it can be made of a file that is read from its
beginning to its end, a few thousand rows at a time, as often as the fit has steps.

This example fits a model to a file without loading it, sees that this is the fit in memory, and
looks at how much memory it took.

*You learn* to fit to files, memory maps and chunks that you make yourself.
*It builds on* :ref:`sphx_glr_auto_examples_plot_04_reading_a_ledger.py`.
"""

# %%
# A file of rows
# --------------
# A hundred thousand people, written as Parquet by parts, as a database would export them. (Without
# pyarrow, ``pip install "skdp[arrow]"``, write CSV and read it as further below.)

import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import DPLogisticRegression
from skdp.io import stream_chunks, stream_parquet

N_PARTS, ROWS_OF_PART, N_FEATURES = 10, 10_000, 20
FEATURES = [f"x{j}" for j in range(N_FEATURES)]
COEF = np.linspace(1, -1, N_FEATURES)


def part(number):
    """Return one part of the rows, the same every time."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(ROWS_OF_PART, N_FEATURES)) / np.sqrt(N_FEATURES)
    frame = pd.DataFrame(X, columns=FEATURES)
    frame["label"] = np.where(X @ COEF + 0.3 * rng.logistic(size=ROWS_OF_PART) > 0, "yes", "no")
    return frame


folder = tempfile.TemporaryDirectory()
for number in range(N_PARTS):
    part(number).to_parquet(Path(folder.name, f"part-{number:02}.parquet"))

# %%
# Two fits
# --------
# One loads the file, the other one streams it. The labels are given as public, as always; the seed
# is there to compare the two, and is marked in the ledger.

model = DPLogisticRegression(
    1.0, data_norm=2.0, classes=["no", "yes"], solver="gd", max_iter=5, random_state=0
)
table = pd.read_parquet(folder.name)
in_memory = model.fit(table[FEATURES], table["label"]).coef_
X, y = stream_parquet(folder.name, target="label")
model.fit(X, y)
print(f"{X!r} of shape {X.shape}; the fit is the same: {(model.coef_ == in_memory).all()}")

# %%
# To the last bit, and not by chance: which rows are added up together depends on their number
# alone, so sums are rounded alike wherever rows are. The noise was added once to each
# sum, by the same gate. The ledger says the same, too:

print(model.ledger_)

# %%
# Rows that are nowhere
# ---------------------
# Chunks can come from anywhere: ``lambda: pandas.read_csv("people.csv", chunksize=100_000)``, a
# cursor of a database, a generator. What is asked for is a *function* that starts from the first
# chunk again, because the rows are read once for every step.

passes = []


def chunks(n_parts):
    """Yield parts of the rows, which are never all in memory."""
    passes.append(n_parts)
    for number in range(n_parts):
        yield part(number)


again = model.fit(*stream_chunks(lambda: chunks(N_PARTS), target="label")).coef_
print(f"{len(passes)} times gone through, the same fit: {(again == in_memory).all()}")

# %%
# One look at the first chunk, one pass to see whether the rows are usable, and one for each
# of the 5 steps. What is wrong with the rows is found in the first pass, before anything
# is charged to a budget.
#
# How much memory
# ---------------
# The same two fits with more and more rows: what is allocated at the most, rows included.


def peak(fit):
    """Return the most MiB that are allocated by a function."""
    tracemalloc.start()
    fit()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


def load_and_fit(n_parts):
    """Fit to a table in memory."""
    whole = pd.concat(list(chunks(n_parts)))
    model.fit(whole[FEATURES], whole["label"])


model.set_params(max_iter=1)
SIZES = [1, 2, 5, 10]
loaded = [peak(lambda n=n: load_and_fit(n)) for n in SIZES]
streamed = [
    peak(lambda n=n: model.fit(*stream_chunks(lambda: chunks(n), target="label"))) for n in SIZES
]
for size, one, other in zip(SIZES, loaded, streamed, strict=True):
    print(f"{size * ROWS_OF_PART:>8} rows: {one:6.1f} MiB loaded, {other:6.1f} MiB streamed")

# %%
# The picture
# -----------

fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.spines[["top", "right"]].set_visible(False)
rows = np.array(SIZES) * ROWS_OF_PART
ax.plot(rows, loaded, color="0.45", marker="^", linestyle=":", label="loaded, then fitted")
ax.plot(rows, streamed, color="tab:blue", marker="o", linewidth=1.8, label="streamed")
ax.set_xlabel("rows")
ax.set_ylabel("largest memory, MiB")
ax.set_ylim(0)
ax.set_title("the same coefficients, the same ledger", fontsize=10)
ax.legend(fontsize=9, frameon=False)
if "__file__" in globals():  # run as a script, not in the gallery
    fig.savefig("larger_than_memory.png", dpi=150)

# %%
# It stays where it is: :ref:`large_data` has it for a hundred million rows.

folder.cleanup()

# %%
# What was promised
# -----------------
# Each fit is (1, 1e-6)-differentially private per row under replace-one adjacency. The number
# of rows is public; files, the disk and whoever can watch them are inside of what must be trusted.
# The same rows were fitted many times here, with one seed; whoever does that with real ones pays
# for every fit.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_16_a_card_for_the_reviewer.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_18_who_loses.py`

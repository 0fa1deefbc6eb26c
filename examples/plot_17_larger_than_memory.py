# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Fits to data larger than memory
===============================

More rows improve private learning, and fill the memory. But a fit needs only sums over the rows. A
sum can be computed from a file, a few thousand rows at a time.

This example fits a model to a file without loading it, shows that it equals the fit in memory, and
measures the memory.

*You learn* to fit to files, memory maps and your own chunks.
*It builds on* :ref:`sphx_glr_auto_examples_plot_04_reading_a_ledger.py`.
"""

# %%
# A file of rows
# --------------
# A hundred thousand people, written as several Parquet files, like the export of a database.
# (Without pyarrow, ``pip install "skdp[arrow]"``, write CSV and read it as below.)

import tempfile
import tracemalloc
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import DPLogisticRegression
from skdp.exceptions import SeededNoiseWarning
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
# One fit loads the file, the other streams it. The names of the labels are public, as always. The
# seed is for the comparison. The ledger marks it, and each fit would warn of it.

warnings.simplefilter("ignore", SeededNoiseWarning)
model = DPLogisticRegression(
    1.0, data_norm=2.0, classes=["no", "yes"], solver="gd", max_iter=5, random_state=0
)
table = pd.read_parquet(folder.name)
in_memory = model.fit(table[FEATURES], table["label"]).coef_
X, y = stream_parquet(folder.name, target="label")
model.fit(X, y)
print(f"{X!r} of shape {X.shape}; the fit is the same: {(model.coef_ == in_memory).all()}")

# %%
# They are equal to the last bit, for a reason: the number of rows alone decides which rows are
# added up together, so sums are rounded alike wherever the rows are. The same gate added the noise
# once to each sum. The ledger is also the same:

print(model.ledger_)

# %%
# Rows from a function
# --------------------
# Chunks can come from anywhere: ``lambda: pandas.read_csv("people.csv", chunksize=100_000)``, a
# cursor of a database, a generator. The argument is a *function* that returns to the first chunk,
# because the rows are read more than once.

passes = []


def chunks(n_parts):
    """Yield parts of the rows, which are never all in memory."""
    passes.append(n_parts)
    for number in range(n_parts):
        yield part(number)


again = model.fit(*stream_chunks(lambda: chunks(N_PARTS), target="label")).coef_
print(f"{len(passes)} times gone through, the same fit: {(again == in_memory).all()}")

# %%
# The function is called once for the first chunk, once for a pass that checks the rows, and once
# for the first of the 5 steps. The checks find errors in the rows before anything is charged to a
# budget. The other steps take rows that were kept: up to 256 MiB of them in memory. Rows beyond
# that are read again in every step, or are kept in a file, which ``cache=True`` allows. It has
# private rows in the clear, and is deleted after the fit.
#
# Memory
# ------
# The same two fits with more and more rows: the peak of allocated memory, including rows. This
# table would fit into the 256 MiB, so kept rows go to a file here.


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


def stream_and_fit(n_parts):
    """Fit to a stream, and keep rows on disk between passes."""
    model.fit(*stream_chunks(lambda: chunks(n_parts), target="label", cache=True))


model.set_params(max_iter=1)
SIZES = [1, 2, 5, 10]
loaded = [peak(lambda n=n: load_and_fit(n)) for n in SIZES]
streamed = [peak(lambda n=n: stream_and_fit(n)) for n in SIZES]
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
# From twenty thousand rows on, the memory of the streamed fit does not grow; :ref:`large_data` has
# measurements for a hundred million rows.

folder.cleanup()

# %%
# What was promised
# -----------------
# Each fit is (1, 1e-6)-differentially private per row under replace-one adjacency. The number of
# rows is public. Files, the disk and whoever can watch them must be trusted. The same rows were
# fitted many times here, with one seed; with real rows every fit has its price.
#
# | Before this: :ref:`sphx_glr_auto_examples_plot_16_a_card_for_the_reviewer.py`
# | After this: :ref:`sphx_glr_auto_examples_plot_18_a_score_that_is_paid_for.py`

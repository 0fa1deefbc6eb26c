# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Every configuration under dp-recorder, an auditor that was written elsewhere.

dp-recorder (https://github.com/ObliviousAI/dp-recorder) records the primitives of a run on one data
set, replays the run on a neighbour with their outputs, demands equal parameters and equal
values where it is told to, and compares the distance of the inputs of every primitive with its
declared sensitivity. It is not on PyPI; clone it, and name its folder ``src``::

    git clone https://github.com/ObliviousAI/dp-recorder
    pip install tqdm seaborn graphviz dp-accounting
    python benchmarks/dp_recorder.py --source dp-recorder/src

About three minutes of one core. Nothing of `skdp.audit.trace_privacy` is used here: primitives are
the noise of `add_noise`, the draws of the exponential mechanism, batches, and reports. Their
sensitivities are those that the noise on the ledger was made for. Draws have their scores on fixed
outcomes as inputs; a batch has no input, and reports have the number of rows that report something
else. Poisson batches are the same on both data sets, so under replace-one a row contributes on
both, and counts twice there. Noise that comes late, and objective perturbation, whose privacy does
not rest on the sensitivity of an input, have no primitive here.

The last lines have planted bugs, each of which must be found.
"""

import argparse
import contextlib
import io
import json
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from sklearn import config_context
from sklearn.base import clone

sys.path.insert(0, str(Path(__file__).parent.parent))
from skdp import DPLogisticRegression, DPMean, DPQuantile
from skdp._log_concave import ball_candidates
from skdp.audit import trace_privacy
from skdp.local._privatizers import ReportingTransformer
from skdp.privacy import (
    ExponentialMechanism,
    LateNoise,
    LocalMechanism,
    ObjectivePerturbation,
    Sampling,
)
from skdp.privacy.kernel import mechanisms
from skdp.privacy.laws import local_reports
from tests.audit.test_trace import LAWS, Leaking, Peeking, halved, neighbours_for
from tests.test_common import ALL, NAMES

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "dp_recorder.rst"
COMMIT = "85d189e"
#: what dp-recorder allows besides
SLACK = 1e-9


def l1(one, other):
    return float(np.abs(one - other).sum())


def l2(one, other):
    return float(np.linalg.norm(one - other))


def spread(one, other):
    return float(np.ptp(other - one))


def rows_that_differ(one, other):
    return float((one != other).any(axis=1).sum())


class NoPrimitive(Exception):
    """A release that is private for another reason than the sensitivity of one input."""


def no_primitive(law, query, noise, source):
    raise NoPrimitive(type(law).__name__)


class Primitives:
    """The primitives of the library, each under `audit_spec`."""

    def __init__(self, recorder):
        self._real = None
        self._double = 1.0

        def primitive(data, sensitivity, facts):
            # the noise of the library itself, whose source of bits is no parameter
            return self._real()

        def spec(kind, metric):
            return recorder.audit_spec(
                kind=kind, input_arg="data", sensitivity_arg="sensitivity", metric_fn=metric
            )(primitive)

        self.specs = {
            "gaussian": spec("gaussian", l2),
            "laplace": spec("laplace", l1),
            "k-norm": spec("k-norm", l2),
            "exponential": spec("exponential", spread),
            "batch": spec("batch", l2),
            "reports": spec("reports", rows_that_differ),
        }

    def call(self, kind, data, sensitivity, facts, real):
        """Make one release, `real` being what the library does."""
        self._real = real
        return np.array(self.specs[kind](data, sensitivity, facts))

    @contextlib.contextmanager
    def installed(self, adjacency):
        """Put the primitives in the place of those of the library."""
        add_noise, batch = mechanisms.add_noise, Sampling.draw
        drawing, reporting = ExponentialMechanism.release, LocalMechanism.release
        made = local_reports.made_reports

        def noisy(values, noise, bits):
            sampling = noise.sampling
            poisson = sampling is not None and sampling.kind == "poisson" and noise.by_chance
            both = 2.0 if poisson and adjacency == "replace-one" else 1.0
            data = noise.grid * mechanisms.align(values, noise)
            facts = (noise.law, noise.scale, noise.grid, len(values))
            return self.call(
                noise.law, data, both * noise.sensitivity, facts,
                lambda: add_noise(values, noise, bits),
            )  # fmt: skip

        def drawn(law, query, noise, source):
            rows = source.read()
            scores = np.asarray(query.scores_of(rows, outcomes_of(query, rows)), float)
            again = mock.Mock(bits=source.bits, n_rows=source.n_rows, read=lambda: rows)
            facts = (query.name, noise.scale)
            return self.call(
                "exponential", scores, noise.sensitivity, facts,
                lambda: drawing(law, query, noise, again),
            )  # fmt: skip

        def a_batch(sampling, bits):
            if sampling.reads_all:
                return batch(sampling, bits)
            facts = (sampling.kind, sampling.n_rows, sampling.batch_size)
            return self.call("batch", np.zeros(1), 0.0, facts, lambda: batch(sampling, bits))

        def reports(query, noise, source):
            rows = source.read()
            vectors = np.concatenate([query.what.vectors(chunk) for chunk in rows.chunks])
            again = mock.Mock(bits=source.bits, n_rows=source.n_rows, read=lambda: rows)
            return self.call(
                "reports", vectors, 1.0, (query.name, noise.epsilon),
                lambda: made(query, noise, again),
            )  # fmt: skip

        with contextlib.ExitStack() as stack:
            for holder, name, stand_in in (
                (mechanisms, "add_noise", noisy),
                (ExponentialMechanism, "release", drawn),
                (Sampling, "draw", a_batch),
                (local_reports, "made_reports", reports),
                (LateNoise, "release", no_primitive),
                (ObjectivePerturbation, "release", no_primitive),
            ):
                stack.enter_context(mock.patch.object(holder, name, stand_in))
            assert LocalMechanism.release is reporting
            yield


def outcomes_of(query, rows):
    """Return outcomes at which scores are compared, the same whatever the rows."""
    if hasattr(query, "cells"):
        return np.unique(np.rint(np.linspace(0, query.cells, 20_001)))[:, None]
    found = query.outcomes(rows)
    return ball_candidates(query.size, 1.0, 2000) if found is None else found[0]


def numbers_of(fitted):
    """Yield the numeric attributes of a fitted estimator."""
    for name, value in sorted(vars(fitted).items()):
        if name.endswith("_") and value is not None:
            with contextlib.suppress(TypeError, ValueError):
                array = np.asarray(value, dtype=float)
                # NaN is equal to itself for nobody, and -0.1234567 to no attribute
                yield name, np.nan_to_num(array, nan=-0.1234567)


def audited(estimator, recorder):
    """Return the verdict on one configuration: (primitives, largest part, what was found)."""
    data = neighbours_for(estimator)
    params = estimator.get_params()
    zero = "zero-out" in (params.get("adjacency"), params.get("estimator__adjacency"))
    seeds = {name: 0 for name in params if name.split("__")[-1] == "random_state"}
    model = clone(estimator).set_params(**seeds)
    sides = [(data[name], data["y"]) for name in ("X", "X_neighbour")]
    auditor, primitives = recorder.Auditor(), Primitives(recorder)

    def fit(X, y):
        fitted = clone(model)
        how = fitted.fit_transform if isinstance(fitted, ReportingTransformer) else fitted.fit
        with primitives.installed("zero-out" if zero else "replace-one"):
            how(*([X] if y is None else [X, y]))
        for name, value in numbers_of(fitted):
            recorder.ensure_equality(**{name: value})

    with config_context(assume_finite=zero), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with auditor:
                fit(*sides[0])
        except NoPrimitive:
            return 0, np.nan, "no primitive"
        calls = [entry for entry in auditor.log if entry.kind != "EQ"]
        if not calls:
            return 0, np.nan, "no primitive"
        try:
            auditor.set_replay()
            with auditor:
                fit(*sides[1])
            auditor.validate_records()
        except (AssertionError, RuntimeError) as error:
            found = textwrap.shorten(str(error), 90, placeholder=" …")
        else:
            found = ""
    parts = [
        entry.metric_fn(entry.inputs_d["data"], entry.inputs_dp["data"]) / entry.sensitivity_val
        for entry in calls
        if entry.sensitivity_val and entry.inputs_dp is not None
    ]
    return len(calls), max(parts, default=np.nan), found


METRICS = {"l1": l1, "l2": l2, "spread": spread, "log-ratio": lambda a, b: np.abs(a - b).max()}


def read_again(estimator, recorder):
    """Write a trace file, let dp-recorder validate it, and return whether it agrees."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        trace_privacy(estimator, **neighbours_for(estimator)).to_json(path)
        trace = json.loads(path.read_text(encoding="utf-8"))
    auditor = recorder.Auditor()
    for place, release in enumerate(trace["releases"]):
        metric = METRICS[release["metric"]]
        inputs = [{"data": np.array(release[side])} for side in ("first", "second")]
        if inputs[0]["data"].size:
            entry = recorder.LogEntry(
                place, release["law"], inputs_d=inputs[0], inputs_dp=inputs[1],
                sensitivity_val=release["paid"], metric_fn=metric,
            )  # fmt: skip
            auditor.log.append(entry)
    auditor.validate_records()
    return trace["passed"] and bool(auditor.log)


@contextlib.contextmanager
def half_the_sensitivity(kind):
    own = kind.sensitivity
    with mock.patch.object(kind, "sensitivity", lambda self, a, n: halved(own(self, a, n))):
        yield


def planted():
    """Yield (what is wrong, an estimator, a context)."""
    from skdp._quantiles import QuantileRank
    from skdp.location._clipped_mean import RowSum
    from skdp.solvers.gradient import ClippedGradient

    for estimator, query in (
        (DPMean(data_norm=1.0), RowSum), (DPQuantile(bounds=(-1.0, 1.0)), QuantileRank),
        (DPLogisticRegression(epsilon=8.0, data_norm=1.0), ClippedGradient),
    ):  # fmt: skip
        name = f"half of the sensitivity, ``{type(estimator).__name__}``"
        yield name, estimator, half_the_sensitivity(query)
    yield "a count of rows among the attributes", Leaking(), contextlib.nullcontext()
    yield "a budget that depends on the rows", Peeking(), contextlib.nullcontext()


PROSE = """.. This file is written by benchmarks/dp_recorder.py.

Audit by dp-recorder, a tool of others
======================================

`dp-recorder <https://github.com/ObliviousAI/dp-recorder>`_ (version 0.1.0, commit {commit}) audits
libraries of differential privacy from the outside: it records the primitives of a run on one data
set, replays the run on a neighbour with their outputs, and compares the distance of the inputs of
every primitive with its declared sensitivity. Parameters of the primitives, and the fitted
attributes, must be equal. Every configuration of the conformance grid went through it, with 60
made-up rows, one of which is long and becomes its opposite (or a null row, under zero-out).
``skdp.audit.trace_privacy`` has no part in it, but the scores of draws are those that queries state
for it. The files that it writes can be read there too: {files}, one for every law,
were measured again and agree.

**{passed} of {total} configurations: nothing found.** {silent} more release nothing that has a
primitive in this sense: transformers that learn nothing, noise that comes late, and objective
perturbation, whose privacy does not rest on the sensitivity of one input. Of {n_planted} planted
bugs {n_found} were found.

Primitives are additive noise, draws of the exponential mechanism, batches and reports. "Largest
part" is the largest distance over the declared sensitivity; above 1 would be a violation. For
reports it is the number of rows that report something else. What it does not test: the law of the
noise and prices. Its package is not on PyPI and asks for dp-accounting 0.4; this
run had {accounting}, which the parts used here do not call.
``python benchmarks/dp_recorder.py`` says how to run it.

"""


def table(lines, heads):
    made = [".. list-table::", "   :header-rows: 1", ""]
    for line in [heads, *lines]:
        made += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(line)]
    return "\n".join(made) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", required=True, help="the folder src of dp-recorder")
    parser.add_argument("--check", action="store_true", help="write no page")
    arguments = parser.parse_args()
    sys.path.insert(0, arguments.source)
    import dp_accounting
    from dp_recorder.auditing import audit_primitives as recorder

    lines, passed, silent, failed = [], 0, 0, 0
    for estimator in ALL:
        with contextlib.redirect_stdout(io.StringIO()):
            n_calls, part, found = audited(estimator, recorder)
        silent += found == "no primitive"
        passed += not found
        failed += bool(found) and found != "no primitive"
        told = "–" if np.isnan(part) else f"{part:.4f}"
        print(NAMES[id(estimator)][:90], n_calls, told, found or "nothing found", flush=True)
        if found != "no primitive":
            lines.append((f"``{NAMES[id(estimator)]}``", n_calls, told, found or "nothing found"))
    bugs = []
    for name, estimator, bug in planted():
        with bug, contextlib.redirect_stdout(io.StringIO()):
            _, part, found = audited(estimator, recorder)
        bugs.append((name, "–" if np.isnan(part) else f"{part:.4f}", found or "NOT FOUND"))
        print(*bugs[-1])
    agree = [read_again(estimator, recorder) for estimator, _ in LAWS.values()]
    print("trace files that agree:", sum(agree), "of", len(agree))
    if not arguments.check:
        prose = PROSE.format(
            commit=COMMIT, passed=passed, total=len(ALL) - silent, silent=silent,
            n_planted=len(bugs), n_found=sum(b[2] != "NOT FOUND" for b in bugs),
            files=f"{sum(agree)} of {len(agree)}",
            accounting=dp_accounting.__name__ + " " + version("dp-accounting"),
        )  # fmt: skip
        heads = ("configuration", "primitives", "largest part", "found")
        parts = [prose, table(lines, heads), "\nPlanted bugs\n------------\n\n"]
        quoted = [(*bug[:2], f"``{bug[2]}``") for bug in bugs]
        parts.append(table(quoted, ("bug", "largest part", "found")))
        PAGE.write_text("".join(parts), encoding="utf-8")
    return failed


def version(package):
    from importlib import metadata

    return metadata.version(package)


if __name__ == "__main__":
    raise SystemExit(main())

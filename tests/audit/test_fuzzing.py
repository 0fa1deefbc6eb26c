# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A short run of the fuzzer of certificates, and bugs that it must find."""

import json
import sys
from pathlib import Path

import pytest
from sklearn.utils.validation import has_fit_parameter

from skdp import DPGridSearchCV, DPHingeSVM

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
#: outermost wrappers whose totals are whole, or say why not, and that take little time
WRAPPERS = [
    "Pipeline", "VotingClassifier", "OneVsRestClassifier", "MultiOutputClassifier",
    "FrozenEstimator", "TransformedTargetRegressor", "BaggingClassifier", "DPGridSearchCV",
]  # fmt: skip
#: bugs, of which each is found
BUGS = [
    "bootstrap priced once", "one member of a vote missing from the walk", "noise halved",
    "fits that share a seed add up", "stored seeds are not missing", "a step that learns is free",
    "replace-one at the price of zero-out", "every function is believed", "a budget counts half",
    "lost fits of stacking, calibration and RFE are not missing", "totals two per cent too small",
]  # fmt: skip
#: where to begin, for a bug that few cases show
FIRST = {"every function is believed": 500_230}


@pytest.fixture(scope="module")
def fuzzer():
    sys.path.insert(0, str(BENCHMARKS))
    import fuzz_certificates

    yield fuzz_certificates
    sys.path.remove(str(BENCHMARKS))


def violations(verdicts):
    return [verdict for verdict in verdicts if verdict["outcome"] == "violation"]


@pytest.mark.sample(4)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_no_whole_total_is_contradicted(fuzzer, wrapper):
    found = fuzzer.run_many(range(2, 4), only=wrapper)
    assert violations(found) == []
    # what recorded them is gone, also from the class of all searches
    assert not has_fit_parameter(DPGridSearchCV(DPHingeSVM(), {}), "sample_weight")


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 300, 50))
def test_no_whole_total_is_contradicted_in_many_cases(fuzzer, start):
    found = fuzzer.run_many(range(start, start + 50))
    assert violations(found) == []
    outcomes = [verdict["outcome"] for verdict in found]
    # most cases say something
    assert outcomes.count("clean") >= 8
    assert outcomes.count("refused") <= 30


@pytest.mark.parametrize(
    "bug",
    [pytest.param(b, marks=pytest.mark.full if b in BUGS[1:2] else pytest.mark.slow) for b in BUGS],
)
def test_planted_bugs_are_found(fuzzer, bug):
    only, first = fuzzer.BUGS[bug][1], FIRST.get(bug, 0)
    with fuzzer.planted(bug):
        found = fuzzer.run_many(range(first, first + 200), only=only, until_violation=True)
    assert violations(found), bug
    # and it was the bug
    assert not violations(fuzzer.run_many([found[-1]["case"]], only=only))


def test_every_bug_is_planted(fuzzer):
    assert sorted(BUGS) == sorted(fuzzer.BUGS)


@pytest.mark.full
def test_a_case_is_the_same_whenever_it_is_run(fuzzer):
    one, two = (fuzzer.run_many([5], only="VotingClassifier") for _ in range(2))
    left = {"seconds", "cpu"}
    assert [{k: v for k, v in case.items() if k not in left} for case in one] == [
        {k: v for k, v in case.items() if k not in left} for case in two
    ]


def test_the_page_is_written_from_the_logs(fuzzer):
    found = fuzzer.run_many(range(2), only="Pipeline")
    bug = {"bug": "a bug", "cases": 3, "cpu": 1.0, "outcome": "violation"}
    bug |= {"only": "any", "why": "what was seen"}
    lines = [json.loads(json.dumps(line, default=str)) for line in [*found, bug]]
    page = fuzzer.page([{"state": "earlier"}, lines[0], {"state": "now"}, *lines])
    assert "--start 0 --cases 2\n" in page
    assert "Before that, 1 cases" in page
    assert fuzzer.runs_of({3, 4, 5, 9}) == [(3, 3), (9, 1)]
    assert "no violation" in page
    assert "   * - a bug\n     - any\n     - 3\n     - 1\n     - ``what was seen``\n" in page

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Look for clean certificates that a coupled trace contradicts: wrappers, estimators, seeds.

Every case is drawn from its number: an estimator, a nest of wrappers around it, seeds, a budget,
and two neighbouring data sets. It is fitted, `privacy_spent` is asked for a certificate, and
everything that was released meanwhile is recorded, replayed on the neighbour and measured::

    OMP_NUM_THREADS=1 python benchmarks/fuzz_certificates.py --seconds 3600 --log fuzz.jsonl
    OMP_NUM_THREADS=1 python benchmarks/fuzz_certificates.py --case 1234    # one case again
    OMP_NUM_THREADS=1 python benchmarks/fuzz_certificates.py --plant all --log bugs.jsonl
    python benchmarks/fuzz_certificates.py --page fuzz.jsonl bugs.jsonl     # writes the page

A violation is

- a certificate from which nothing is missing, whose epsilon is less than what was measured, which
  misses a release or a seed, or after which a neighbour leads to other questions or attributes;
- a budget that was charged less than what was measured;
- another certificate after a copy, a file, or a fit by another back-end of joblib;
- an error of this library that is neither a ValueError nor a TypeError.

``--plant`` puts known bugs into the library, one at a time, and prints after how many cases each
was found. Noise of the operating system is replaced by a stream that follows from the number, so
that a case is the same whenever it is run; wrappers of imbalanced-learn, fairlearn, skrub and MAPIE
take part where these are installed, which changes what the numbers mean.
"""

import argparse
import contextlib
import copy
import io
import json
import math
import pickle
import shutil
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))
import joblib
import skops.io
from _fuzz_cases import Case, draw_case, fit_all, private_parts
from _fuzz_truth import HAIR, coupled, differs, measured
from sklearn.base import clone

from skdp import privacy_spent
from skdp.exceptions import BudgetError
from skdp.inspection import privacy_card, trusted_types
from skdp.privacy.kernel import mechanisms

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "fuzzing.rst"
#: what a case may end as
OUTCOMES = ("clean", "uncovered", "infinite", "refused", "violation")
KNOWN_ERRORS = (ValueError, TypeError, BudgetError)


class Verdict(dict):
    """What became of one case: its outcome, and why."""

    def __init__(self, case, outcome, why="", **more):
        names = list(case.names)
        super().__init__(case=case.seed, outcome=outcome, names=names, why=why, **more)


def own_fault(error):
    """Return whether an error comes from this library and is of no kind that it documents."""
    if isinstance(error, KNOWN_ERRORS):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and "/skdp/" in frames[-1].filename


def told(error):
    """Return what an error says, in short."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


def certificate(estimators):
    """Return the certificate of what was fitted."""
    return privacy_spent(*estimators)


def texts(spent):
    """Return what is not covered, without names of classes that a copy may change."""
    return sorted((item.kind, item.step or "") for item in spent.not_covered)


def run_case(case):
    """Fit, ask, replay and compare; return a `Verdict`."""
    if case.null and any("Imputer" in name for name in case.names):
        return Verdict(case, "refused", "NaN is no null row where it is filled in")
    budgets = []

    def run_on(*args):
        budgets.append(case.budget())
        return fit_all(case, case.build(budgets[-1]), args)

    try:
        return _judged(case, run_on, budgets)
    finally:
        for budget in budgets:
            if budget is not None and budget.path is not None:
                shutil.rmtree(Path(budget.path).parent, ignore_errors=True)


def _judged(case, run_on, budgets):
    try:
        fitted, first, replay = coupled(run_on, case.pair, case.seed, case.null)
    except Exception as error:
        if own_fault(error):
            return Verdict(case, "violation", f"obscure error in fit: {told(error)}")
        return Verdict(case, "refused", told(error))
    try:
        spent = certificate(fitted)
    except Exception as error:
        if own_fault(error) or not isinstance(error, KNOWN_ERRORS):
            return Verdict(case, "violation", f"obscure error in privacy_spent: {told(error)}")
        return Verdict(case, "refused", f"privacy_spent: {told(error)}")
    found = _against_truth(case, spent, fitted, first, replay, budgets[0])
    if found["outcome"] != "violation":
        try:
            why = again(case, spent, fitted)
        except Exception as error:
            why = f"obscure error: {told(error)}"
        if why:
            return Verdict(case, "violation", why, ended=found["outcome"])
    return found


def _against_truth(case, spent, fitted, first, replay, budget):
    other, second, problem = replay()
    adjacency = spent.ledger.adjacency or case.options["adjacency"]
    adjacency = case.options["adjacency"] if adjacency == "local" else adjacency
    truth = measured(first, second, adjacency, case.seed, case.options["n_draws"])
    facts = {"epsilon": spent.epsilon, "releases": truth.n_releases, "odd": truth.odd}
    if (why := less_than_measured(budget, truth, adjacency)) is not None:
        # rows that enter twice are charged once: a budget cannot know, and the total says so
        named = spent.uncovered or "as if every row counted once" in str(spent)
        if not named:
            return Verdict(case, "violation", why, **facts)
    if truth.odd:
        return Verdict(case, "violation", truth.odd[0], **facts)
    missing = {item.kind for item in spent.uncovered}
    if missing and missing != {"stored seed"}:
        return Verdict(case, "uncovered", "; ".join(sorted(missing)), **facts)
    if math.isinf(spent.epsilon):
        return Verdict(case, "infinite", "shared noise" * truth.shared, **facts)
    if problem is None and (where := differs(fitted, other)) is not None:
        problem = f"{where} differs though all that was released is the same"
    problem = problem or next(iter(truth.problems), None)
    if truth.shared:
        problem = "two fits share their noise"
    seeds = [item for item in spent.not_covered if "seed" in item.kind]
    if truth.seeded and not (seeds or not truth.n_releases):
        problem = "noise is seeded, and no seed is named"
    given = [part.random_state for e in case.estimators for part in private_parts(e)
             if getattr(part, "random_state", None) is not None]  # fmt: skip
    if truth.seeded and not given and not missing:
        problem = "noise is seeded by what nobody gave, and the total is whole"
    problem = problem or missing_lines(spent, first)
    by = truth.beyond(spent.epsilon, spent.delta, adjacency)
    if by is not None:
        problem = f"epsilon {spent.epsilon:.6g} at delta {spent.delta:.3g} claimed, {by}"
    if truth.worst_inside > HAIR * getattr(spent, "most_copies", 1):
        problem = f"a release inside of a search costs {truth.worst_inside:.6g} of its price"
    if problem is not None:
        return Verdict(case, "violation", problem, **facts)
    if missing:
        # seeds that are kept take nothing from the number itself
        return Verdict(case, "uncovered", "stored seed", **facts)
    seen = truth.epsilon(spent.delta, adjacency) if truth.releases else 0.0
    share = seen / spent.epsilon if spent.epsilon else 0.0
    return Verdict(case, "clean", share=round(share, 6), unmeasured=truth.n_unmeasured, **facts)


def missing_lines(spent, first):
    """Return which release is on no line of a certificate, or None."""
    dearer = getattr(spent, "most_copies", 1) > 1

    def count(lines):
        found = Counter()
        for line in lines:
            # what rows pay for that were drawn several times stands there with another price
            key = line.query if dearer else replace(line, fit=0, count=1)
            found[key] += line.count
        return found

    certified = count(spent.ledger.releases)
    together = [r.query for r in spent.ledger.releases if r.noise.law == "copies"]
    for line, n in (count(first.lines()) + count(first.searches)).items():
        query = line if dearer else line.query
        if certified[line] < n and not any(query in one for one in together):
            return f"{n - certified[line]} releases of {query!r} are not on the certificate"
    return None


def less_than_measured(budget, truth, adjacency):
    """Return by what a budget was overdrawn, or None."""
    if budget is None:
        return None
    charges = budget.charges
    epsilon, delta = (
        sum(Fraction(repr(getattr(c, name))) for c in charges) for name in ("epsilon", "delta")
    )
    spent = budget.spent
    if spent[0] < float(epsilon) / HAIR or spent[1] < float(delta) / HAIR:
        return f"a budget that was charged {float(epsilon):.6g} says {spent[0]:.6g}"
    by = truth.beyond(spent[0], spent[1], adjacency)
    if by is not None:
        return f"a budget was charged {spent[0]:.6g} at delta {spent[1]:.3g}: {by}"
    return None


# The same certificate, by other ways.


def again(case, spent, fitted):
    """Return what is wrong with copies, files, other back-ends and second fits; None if nothing."""
    for check in (of_the_card, of_a_copy, of_a_second_fit, of_another_backend):
        if (why := check(case, spent, fitted)) is not None:
            return why
    return None


def same(spent, other, what):
    """Return what differs between two certificates."""
    # sums of floats in another order
    equal = np.allclose(spent.covered, other.covered, rtol=1e-9, atol=0)
    if equal and texts(spent) == texts(other):
        return None
    return f"{what}: {other.covered} {texts(other)} for {spent.covered} {texts(spent)}"


def of_the_card(case, spent, fitted):
    """Compare with the model card, which a reader sees."""
    if case.seed % 4 or len(fitted) > 1:
        return None
    try:
        card = privacy_card(fitted[0])
    except (ValueError, TypeError):
        # clients, reports and cross-validations are told of in other words
        return None
    if spent.uncovered and not card.to_dict()["not_covered"]:
        return "the card names nothing that is not covered"
    return None


def without_budgets(fitted):
    """Return a deep copy without budgets: those in memory stay where they are."""
    own = copy.deepcopy(fitted)
    todo, seen = list(own), set()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, dict):
            todo += one.values()
        elif isinstance(one, list | tuple):
            todo += one
        elif isinstance(one, np.ndarray) and one.dtype == object:
            todo += one.ravel().tolist()
        elif hasattr(one, "__dict__") and not isinstance(one, type):
            if getattr(one, "budget", None) is not None:
                one.budget = None
            todo += vars(one).values()
    return own


def of_a_copy(case, spent, fitted):
    """Compare with a copy, or with what a file brings back."""
    how = case.options["round trip"]
    if how is None:
        return None
    if how == "clone":
        try:
            other = certificate([clone(one) for one in fitted])
        except (ValueError, TypeError):
            return None
        # what holds fitted parts among its parameters is a copy of them
        clean = not other.uncovered and other.ledger.releases
        return same(spent, other, "a clone, which is not fitted") if clean else None
    own = without_budgets(fitted)
    if how == "pickle":
        own = pickle.loads(pickle.dumps(own))
    elif how == "skops":
        try:
            data = skops.io.dumps(own)
        except Exception:
            return None
        unknown = skops.io.get_untrusted_types(data=data)
        if any(name.startswith("skdp.") for name in set(unknown) - set(trusted_types())):
            return f"skops does not trust {sorted(set(unknown) - set(trusted_types()))}"
        try:
            own = skops.io.loads(data, trusted=unknown)
        except TypeError:
            return None
    return same(spent, certificate(own), f"after {how}")


def of_a_second_fit(case, spent, fitted):
    """Fit again, by which a shared seed is met again, and no budget forgets."""
    if not case.options["refit"] or case.null:
        return None
    budget = case.budget()
    made = case.build(budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.random.seed(case.seed % 2**32)  # noqa: NPY002
        try:
            fit_all(case, made, case.pair[0])
            n_charges = 0 if budget is None else len(budget.charges)
            fit_all(case, made, case.pair[0])
            other = certificate(made)
        except Exception as error:
            return f"obscure error in a second fit: {told(error)}" if own_fault(error) else None
    if budget is not None:
        streams = [c.stream for c in budget.charges if c.stream is not None]
        if len(set(streams)) < len(streams):
            return "a budget has charged the same noise twice"
        if n_charges and len(budget.charges) <= n_charges:
            return "a second fit was not charged"
    learned = {"step", "rest", "fits", "choice"} & {i.kind for i in spent.not_covered}
    if learned or not spent.ledger.releases:
        return None
    return None if _random(case) else same(spent, other, "after a second fit")


def _random(case):
    """Return whether what is fitted, and so its price, is up to chance or to a generator."""
    text = " ".join(str(e) for e in case.estimators)
    by_chance = ("RandomState", "Search", "Bagging", "OutputCode", "AdaBoost", "RANSAC")
    return any(word in text for word in by_chance)


def of_another_backend(case, spent, fitted):
    """Fit by threads, or by other processes."""
    backend = case.options["jobs"]
    if backend is None or case.null or case.options["budget"] == "memory":
        return None
    made = case.build(None)
    if not all(hasattr(e, "get_params") for e in made):
        return None
    jobs = [{k: 2 for k in e.get_params() if k.split("__")[-1] == "n_jobs"} for e in made]
    if not any(jobs) or (_random(case) and "OutputCode" not in str(case.estimators)):
        return None
    with warnings.catch_warnings(), joblib.parallel_config(backend, n_jobs=2):
        warnings.simplefilter("ignore")
        np.random.seed(case.seed % 2**32)  # noqa: NPY002
        for estimator, given in zip(made, jobs, strict=True):
            estimator.set_params(**given)
        try:
            other = certificate(fit_all(case, made, case.pair[0]))
        except Exception as error:
            return f"obscure error with {backend}: {told(error)}" if own_fault(error) else None
    if spent.uncovered and other.uncovered:
        return None
    return same(spent, other, f"with joblib's {backend}")


# Power: known bugs.


@contextlib.contextmanager
def planted(name):
    """Plant a bug in the library for as long as this lasts."""
    with BUGS[name][0]():
        yield


def _half_the_noise():
    rounded = mechanisms.Noise.rounded

    def less(self, size, bits):
        return np.rint(rounded(self, size, bits) / 2).astype(np.int64)

    return mock.patch.object(mechanisms.Noise, "rounded", less)


@contextlib.contextmanager
def _without(name, own):
    from skdp.privacy.books import parts, spent

    with contextlib.ExitStack() as stack:
        for module in (parts, spent):
            if real := getattr(module, name, None):
                stack.enter_context(mock.patch.object(module, name, own(real)))
        yield


def _bootstrap_priced_once():
    return _without("drawn_rows", lambda own: lambda holder: (True, {}))


def _member_missing():
    def own(kept_parts):
        def fewer(holder):
            found = kept_parts(holder)
            voting = type(holder).__name__.startswith("Voting")
            return found[:-1] if voting and len(found) > 1 else found

        return fewer

    return _without("kept_parts", own)


def _shared_seed():
    from skdp.privacy.books.ledger import Ledger

    def streams(self):
        return ()

    return mock.patch.object(Ledger, "streams", property(streams))


def _seed_not_named():
    from skdp.privacy.books.spent import PrivacySpent

    def kept(self):
        return tuple(item for item in self.not_covered if "seed" not in item.kind)

    return mock.patch.object(PrivacySpent, "uncovered", property(kept))


def _step_forgotten():
    return _without("learns_nothing", lambda own: lambda step: hasattr(step, "transform"))


def _function_believed():
    return _without("_mixes", lambda own: lambda step: False)


def _one_row_for_two():
    from skdp.location._clipped_mean import RowSum

    own = RowSum.sensitivity
    return mock.patch.object(
        RowSum, "sensitivity", lambda self, adjacency, n_rows: own(self, "zero-out", n_rows)
    )


def _unbudgeted():
    from skdp.privacy.books.store import BudgetTerms

    cost = BudgetTerms.cost

    def cheaper(self, epsilon, delta, mu=None):
        found = cost(self, epsilon, delta, mu)
        return (found[0] / 2, found[1])

    return mock.patch.object(BudgetTerms, "cost", cheaper)


def _stacking_complete():
    from skdp.privacy.books import parts

    kinds = ("StackingClassifier", "StackingRegressor", "CalibratedClassifierCV", "RFE")
    return mock.patch.dict(parts.LEFT_OUT, dict.fromkeys(kinds, lambda _: None))


def _composition_too_good():
    from skdp.privacy.books.ledger import Ledger

    own = Ledger.epsilon
    return mock.patch.object(Ledger, "epsilon", lambda self, delta=0.0: 0.98 * own(self, delta))


#: what is planted, and the outermost wrapper under which it is looked for
BUGS = {
    "bootstrap priced once": (_bootstrap_priced_once, "BaggingClassifier"),
    "one member of a vote missing from the walk": (_member_missing, "VotingClassifier"),
    "fits that share a seed add up": (_shared_seed, None),
    "stored seeds are not missing": (_seed_not_named, "BaggingClassifier"),
    "noise halved": (_half_the_noise, None),
    "replace-one at the price of zero-out": (_one_row_for_two, "FrozenEstimator"),
    "a step that learns is free": (_step_forgotten, "Pipeline"),
    "every function is believed": (_function_believed, "Pipeline"),
    "lost fits of stacking, calibration and RFE are not missing": (_stacking_complete, None),
    "a budget counts half": (_unbudgeted, None),
    "totals two per cent too small": (_composition_too_good, None),
}


# Many cases.


def run_many(seeds, seconds=math.inf, log=None, only=None, until_violation=False):
    """Run cases until time is up; return their verdicts."""
    began, found = time.perf_counter(), []
    for seed in seeds:
        if time.perf_counter() - began > seconds:
            break
        started = time.perf_counter(), time.process_time()
        verdict = run_seed(seed, only)
        verdict["seconds"] = round(time.perf_counter() - started[0], 3)
        verdict["cpu"] = round(time.process_time() - started[1], 3)
        found.append(verdict)
        if log is not None:
            print(json.dumps(verdict, default=str), file=log, flush=True)
        if until_violation and verdict["outcome"] == "violation":
            break
    return found


def run_seed(seed, only=None):
    """Return the verdict of one case."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        case = Case(seed, [], ("no case",), ())
        try:
            case = draw_case(seed, only)
            return run_case(case)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            what = f"the fuzzer itself: {told(error)} ({Path(where.filename).name}:{where.lineno})"
            return Verdict(case, "violation", what)


def summary(verdicts):
    """Return a table: a line for each wrapper, and the cases that must be looked at."""
    by_name, lines = {}, []
    for verdict in verdicts:
        for name in verdict["names"]:
            by_name.setdefault(name, Counter())[verdict["outcome"]] += 1
    by_name["all cases"] = Counter(v["outcome"] for v in verdicts)
    lines.append(f"{'':34}" + "".join(f"{name:>11}" for name in OUTCOMES))
    lines += [
        f"{name:34}" + "".join(f"{by_name[name][o]:>11}" for o in OUTCOMES)
        for name in sorted(by_name, key=lambda name: (name == "all cases", name))
    ]
    bad = [v for v in verdicts if v["outcome"] == "violation"]
    lines += [f"case {v['case']} ({', '.join(v['names'])}): {v['why']}" for v in bad]
    clean = [v for v in verdicts if v["outcome"] == "clean" and v["releases"]]
    tight = sum(v["share"] > 0.5 for v in clean)
    lines.append(f"{len(clean)} clean with releases, {tight} of them saw half of the claim or more")
    return "\n".join(lines)


HEADER = """\
.. This file is written by benchmarks/fuzz_certificates.py.

Privacy totals under a fuzzer
=============================

Is there a whole total of :func:`~skdp.privacy_spent` that is not true? Each case is drawn from its
number: an estimator of the conformance grid or one with common parameters, a nest of one to three
wrappers, seeds (none, integers that meet again, a shared generator), a budget (none, in memory, in
a file), and two neighbouring data sets. It is fitted and asked for its total. All releases that
were made meanwhile, in whatever fit, are recorded where laws make them, replayed on the neighbour,
and measured; a row counts as often as it was read. Copies, clones, files of pickle and skops,
second fits and other back-ends of joblib must give the same total.

A case is *clean* if nothing is missing from the total, and then the measured loss must be within
it, every release must be on it, and the neighbour must lead to the same questions and attributes.
*Uncovered* totals name what is missing and do not unpack. *Infinite* ones have fits that share
their noise. *Refused* is what scikit-learn or this library does not fit, or `privacy_spent` does
not add up. The cases are these::

{command}

{cases:,} cases in {hours:.2f} hours, {cpu:.0f} minutes of them CPU time: {violations}.{earlier}
{tight:,} of the {clean:,} clean totals with releases were reached to more than half by what was
measured on these neighbours, and {all_of_it:,} to more than 99 %. A case counts for each of its
wrappers. imbalanced-learn, fairlearn, skrub and MAPIE were installed.

While it was written, the fuzzer found three faults of the library, which are mended: the frozen fit
of an ensemble was not counted, null rows counted as wrong answers in private searches
(:ref:`attacks`), and a pipeline whose last step has no tags had no card.

.. list-table::
   :header-rows: 1

   * - wrapper
     - clean
     - uncovered
     - infinite
     - refused
     - violations
"""

POWER = """
Planted bugs
------------

The same, with one bug at a time in the library: after how many cases was it found, and as what?

.. list-table::
   :header-rows: 1

   * - bug
     - outermost wrapper
     - cases
     - CPU seconds
     - found as
"""


def runs_of(numbers):
    """Return the first number and the length of every run of successive numbers."""
    firsts = sorted(n for n in numbers if n - 1 not in numbers)
    lasts = sorted(n for n in numbers if n + 1 not in numbers)
    return [(first, last - first + 1) for first, last in zip(firsts, lasts, strict=True)]


def page(lines):
    """Return the page from the lines of logs."""
    verdicts, earlier, state = [], [], ""
    for line in lines:
        state = line.get("state", state)
        if "case" in line:
            (earlier if state.startswith("earlier") else verdicts).append(line)
    by_name = {}
    for verdict in verdicts:
        for name in verdict["names"]:
            by_name.setdefault(name, Counter())[verdict["outcome"]] += 1
    by_name["all cases"] = total = Counter(v["outcome"] for v in verdicts)
    clean = [v for v in verdicts if v["outcome"] == "clean" and v["releases"]]
    parts = [
        f"    python benchmarks/fuzz_certificates.py --start {first} --cases {length}"
        for first, length in runs_of({v["case"] for v in verdicts})
    ]
    bad = total["violation"]
    text = HEADER.format(
        command="\n".join(parts),
        cases=len(verdicts),
        hours=sum(v["seconds"] for v in verdicts) / 3600,
        cpu=sum(v["cpu"] for v in verdicts) / 60,
        earlier=_earlier(earlier),
        violations=f"{bad} violations" if bad else "no violation",
        clean=len(clean),
        tight=sum(v["share"] > 0.5 for v in clean),
        all_of_it=sum(v["share"] > 0.99 for v in clean),
    )
    for name in sorted(by_name, key=lambda name: (name == "all cases", name)):
        cells = [name if name in ("all cases", "no wrapper", "several models") else f"``{name}``"]
        text += _row(cells + [str(by_name[name][outcome]) for outcome in OUTCOMES])
    bugs = [line for line in lines if "bug" in line]
    if bugs:
        text += POWER
        for bug in bugs:
            found = f"``{bug['why']}``" if bug["outcome"] == "violation" else "not found"
            cells = [bug["bug"], bug["only"], str(bug["cases"]), f"{bug['cpu']:.0f}", found]
            text += _row(cells)
    return text


def _earlier(verdicts):
    if not verdicts:
        return ""
    hours = sum(v["seconds"] for v in verdicts) / 3600
    bad = sum(v["outcome"] == "violation" for v in verdicts)
    return (
        f"\nBefore that, {len(verdicts):,} cases in {hours:.2f} hours, of an earlier state of the "
        f"library\nand of the draws, had {bad or 'no'} violation{'s' * (bad > 1)}."
    )


def _row(cells):
    lines = [f"     - {cell}".rstrip() for cell in cells]
    return "\n".join(["   * - " + cells[0], *lines[1:]]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, default=10**9, help="so many at most")
    parser.add_argument("--only", help="the outermost wrapper")
    parser.add_argument("--case", type=int, help="one case, in full")
    parser.add_argument("--plant", help="a bug by a word of its name, or all")
    parser.add_argument("--log", type=Path, help="a line for every case")
    parser.add_argument("--state", help="what was tried, for the log and the page")
    parser.add_argument("--page", type=Path, nargs="+", help="write the page from such files")
    given = parser.parse_args()
    if given.page:
        lines = [line for path in given.page for line in path.read_text().splitlines()]
        PAGE.write_text(page([json.loads(line) for line in lines]), encoding="utf-8")
        return
    if given.case is not None:
        case = draw_case(given.case, given.only)
        print(*case.estimators, case.options, sep="\n")
        print([tuple(getattr(p, "shape", None) for p in side) for side in case.pair])
        print(json.dumps(run_case(case), indent=1, default=str))
        return
    if given.plant:
        for name in BUGS:
            if given.plant in ("all", name) or given.plant in name:
                began = time.perf_counter()
                with planted(name):
                    found = run_many(
                        range(given.start, given.start + given.cases), given.seconds,
                        only=given.only or BUGS[name][1], until_violation=True,
                    )  # fmt: skip
                last = found[-1]
                what = last["why"] if last["outcome"] == "violation" else "NOT FOUND"
                taken = time.perf_counter() - began
                print(f"{name}: {len(found)} cases, {taken:.0f} s: {what}", flush=True)
                bug = {
                    "bug": name,
                    "only": BUGS[name][1] or "any",
                    "cases": len(found),
                    "seconds": taken,
                    "why": what,
                }
                bug |= {"outcome": last["outcome"], "cpu": sum(v["cpu"] for v in found)}
                if given.log:
                    with given.log.open("a", encoding="utf-8") as log:
                        print(json.dumps(bug), file=log)
        return
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(given.log.open("a", encoding="utf-8")) if given.log else None
        if log is not None and given.state:
            print(json.dumps({"state": given.state}), file=log, flush=True)
        seeds = range(given.start, given.start + given.cases)
        began = time.perf_counter()
        found = run_many(seeds, given.seconds, log, given.only)
    print(summary(found))
    print(f"{len(found)} cases in {time.perf_counter() - began:.0f} s")
    raise SystemExit(any(v["outcome"] == "violation" for v in found))


if __name__ == "__main__":
    main()

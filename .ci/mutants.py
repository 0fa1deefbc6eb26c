# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Privacy bugs, planted one at a time in a copy of the library: the default tests must fail.

    python .ci/mutants.py              # all of them, about two minutes each at most
    python .ci/mutants.py clipping     # those with this word in their name
    python .ci/mutants.py --check      # whether every pattern still matches, and no more

Each names a function or a method, a pattern that its source has once, what takes its place, and
the tests that ought to see it. A function that was moved is found again; a pattern that no longer
matches is an error, so that the list is kept up.
"""

import argparse
import ast
import functools
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Mutant(NamedTuple):
    """A bug: where it is planted, and which tests are asked."""

    name: str
    scope: str
    pattern: str
    replacement: str
    tests: str


MUTANTS = [
    # noise
    Mutant(
        "Gaussian and Laplace noise halved", "additive_scale",
        r"scale = paid / price", "scale = 0.5 * paid / price",
        "tests/privacy/test_laws.py",
    ),
    Mutant(
        "noise halved, seen by the audits alone", "additive_scale",
        r"scale = paid / price", "scale = 0.5 * paid / price",
        "tests/test_claims_sgd.py",
    ),
    Mutant(
        "temperature of a draw halved", "ExponentialMechanism.calibrate",
        r"scale = paid / self\.epsilon", "scale = 0.5 * paid / self.epsilon",
        "tests/test_claims_erm.py tests/location/test_median.py",
    ),
    Mutant(
        "one draw of noise for all coordinates", "add_noise",
        r"len\(steps\), bits\)", "1, bits)",
        "tests/test_claims_erm.py tests/privacy/test_laws.py",
    ),
    Mutant(
        "the same seeded noise for every purpose", "make_bits",
        r"SeededBits\(seed, purpose\)", 'SeededBits(seed, "")',
        "tests/privacy/test_laws.py tests/privacy/test_curator.py",
    ),
    Mutant(
        "a lower threshold", "StabilityHistogram._threshold",
        r"return tau \* ROUND_UP", "return 0.8 * tau",
        "tests/privacy/test_histogram.py",
    ),
    # totals and budgets
    Mutant(
        "spent: a slice of a pipeline forgets the steps before", "note_of_fit",
        r"before \+= found\.before", "pass",
        "tests/privacy/test_spent.py",
    ),
    Mutant(
        "spent: the winner of a search forgets the search", "decides_about_fits",
        r"bool\(bases & _DECIDING\)", "False",
        "tests/privacy/test_spent.py",
    ),
    Mutant(
        "spent: parameters of an ensemble are changed after the fit", "changed_parameters",
        r"if then and now not in then", "if False",
        "tests/privacy/test_copies.py",
    ),
    Mutant(
        "spent: a lost private fit before another is not named", "_Total.add_missing",
        r"before\.fit not in self\.fits and", "False and",
        "tests/privacy/test_spent.py",
    ),
    Mutant(
        "spent: a derived class with a fit of its own is believed", "learns_before",
        r"any\(_LEARNING & set\(vars\(base\)\) for", "any(False for",
        "tests/privacy/test_spent.py",
    ),
    Mutant(
        "ledgers with one seed's noise add up", "Ledger.__add__",
        r"if s in self\.streams", "if False",
        "tests/privacy/test_identity.py",
    ),
    Mutant(
        "a budget takes the same noise twice", "refuse_shared_noise",
        r"stream in known", "False",
        "tests/privacy/test_identity.py",
    ),
    Mutant(
        "fits of a search have noise of their own, whatever the seed", "price_of_fits",
        r"if count > 1", "if count > 99",
        "tests/privacy/test_identity.py",
    ),
    Mutant(
        "a total that misses a part is a pair", "PrivacySpent._pair",
        r"if self\.uncovered", "if False",
        "tests/privacy/test_spent_inside.py tests/privacy/test_identity.py",
    ),
    Mutant(
        "a meta-estimator of another library is believed", "what_else",
        r'return "what it learned itself, and fits that it did not keep"', "return None",
        "tests/privacy/test_spent_inside.py",
    ),
    Mutant(
        "a row pays once, however often it was drawn", "for_copies",
        r"if copies == 1:", "if copies >= 1:",
        "tests/privacy/test_copies.py",
    ),
    Mutant(
        "the delta of a group is that of a row", "_times",
        r"for i in range\(copies\)", "for i in range(1)",
        "tests/privacy/test_copies.py",
    ),
    Mutant(
        "weights of rows decide about draws, and have a price", "_bagged",
        r'getattr\(holder, "_sample_weight", None\) is not None', "False",
        "tests/privacy/test_copies.py",
    ),
    Mutant(
        "a sampler is believed that says it learns nothing", "learns_nothing",
        r"if multiplies_rows\(step\) or", "if",
        "tests/privacy/test_copies.py",
    ),
    Mutant(
        "patches of an image are so many people", "multiplies_rows",
        r' or "PatchExtractor" in sklearn_bases\(step\)', "",
        "tests/privacy/test_spent_inside.py",
    ),
    Mutant(
        "rows decide for which labels there is a fit", "_one_for_each",
        r'getattr\(holder, "multilabel_", False\)', "False",
        "tests/privacy/test_spent_inside.py",
    ),
    Mutant(
        "a method of this library that fits is a known function", "_fits",
        r'hasattr\(owner, "fit"\) and', "False and",
        "tests/privacy/test_functions.py",
    ),
    Mutant(
        "a function that uses a fit learns nothing", "learns_nothing",
        r" or fits_used\(step\)", "",
        "tests/privacy/test_functions.py",
    ),
    Mutant(
        "nothing is assumed of a fit that a map of a stream uses", "assumption_about",
        r"estimators_in\(function\)", "()",
        "tests/privacy/test_functions.py",
    ),
    Mutant(
        "a class that fits in its own way is believed by the tag of another", "learns_nothing",
        r" or fits_anew\(step\)", "",
        "tests/privacy/test_spent_inside.py",
    ),
    Mutant(
        "a search costs what its estimator would cost by now", "changed_since",
        r"return told\[0\] != told\[1\]", "return False",
        "tests/privacy/test_spent_inside.py",
    ),
    Mutant(
        "callbacks of a pipeline see no rows", "about_holder",
        r"if watchers\(holder\):", "if False:",
        "tests/privacy/test_spent_inside.py",
    ),
    Mutant(
        "callbacks of a pipeline watch the runs of a search", "check_steps",
        r'if getattr\(holder, "_skl_callbacks", None\):', "if False:",
        "tests/model_selection/test_search.py",
    ),
    Mutant(
        "wrapped splits repeat no row", "copies_in_splits",
        r"cv = _unwrapped\(cv\)", "pass",
        "tests/privacy/test_copies.py",
    ),
    Mutant(
        "members of a warm start were drawn as the last ones", "_unknown_draws",
        r"holder\.warm_start or ", "",
        "tests/privacy/test_copies.py",
    ),
    Mutant(
        "any function of Python is one of numpy", "is_known",
        r" and not set\(.*function\.types[^\n]*", "",
        "tests/privacy/test_functions.py",
    ),
    Mutant(
        "a fit that ended midway keeps the total of the one before", "open_gate",
        r"vars\(estimator\)\.pop\(name, None\)", "pass",
        "tests/test_bad_input.py",
    ),
    Mutant(
        "rows choose the columns of a step", "what_rows_decide",
        r"callable\(c\) and", "False and",
        "tests/privacy/test_spent.py",
    ),
    Mutant(
        "an audit takes an infinite claim for one", "unexceeded",
        r"math\.isinf\(claimed\)", "False",
        "tests/audit/test_audit.py",
    ),
    Mutant(
        "rows of clients pass for clients", "resolve_groups",
        r'\(n_rows, "row"\)', '(n_rows, "group")',
        "tests/federated/test_units.py",
    ),
    # groups of rows
    Mutant(
        "features of a group count one each", "DenseChunk.sums",
        r"if self\.weight is not None", "if False",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "ranks of a group count one each", "in_order",
        r"both & \(\(1 << _PART_BITS\) - 1\)", "np.full(len(both), PARTS)",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "ranks of a group are in no order", "in_order",
        r"both\.sort\(\)", "pass",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "whoever shares a place in a table is one person", "_told_apart",
        r"marks\[first\] != own", "np.zeros(len(left), dtype=bool)",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "one person is two, by the text of whoever comes next", "_words_of_text",
        r" << left", "",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "whoever shares the mark of a text is one person", "_told_by_words",
        r"if all\(.*\):", "if True:",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "Arrow: rows of nobody are those of somebody", "_coded_text",
        r"if part\.null_count:", "if False:",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "text and bytes that spell it are one person", "coded_identifiers",
        r'b""\.join\(listed\)', "pass",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "chunks: rows of nobody are those of somebody", "refuse_masked",
        r"if np\.ma\.is_masked\(groups\):", "if False:",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "a client answers only if its labels are of the right type", "FederatedClient.answer",
        r"resolve_classes\(self\._y\[:0\]\.astype\(object\), classes\)",
        "resolve_classes(self._y, classes)",
        "tests/federated/test_messages.py",
    ),
    Mutant(
        "pandas: rows of nobody are those of somebody", "resolve_groups",
        r"if \(places < 0\)\.any\(\):", "if False:",
        "tests/federated/test_federated.py",
    ),
    Mutant(
        "a distance is rounded by the place of its row", "_lengths",
        r"squares\.shape\[1\] == 1", "False",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "a group trains and scores", "SearchedRows.of",
        r"np\.isin\(self\.groups, chosen\)", "self.groups >= 0",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "a held-out row counts twice its weight", "HeldOutRows.__init__",
        r"0\.5 \+ weight", "0.5 + 2 * weight",
        "tests/model_selection/test_scorers.py",
    ),
    Mutant(
        "a search keeps the total of weights off its ledger", "DPSearchCV.fit",
        r"self\.ledger_ = hidden\.before\(self\.ledger_\)", "pass",
        "tests/model_selection/test_search.py",
    ),
    Mutant(
        "counts need no number of rows, where that is a secret", "counted_first",
        r"share = share or _COUNT_SHARE", "pass",
        "tests/test_counted.py",
    ),
    Mutant(
        "a description forgets what rows count", "DescribedRows.__init__",
        r"= numbers, places, weight", "= numbers, places, None",
        "tests/test_counted.py",
    ),
    Mutant(
        "a group scores by the sum of its rows", "HeldOutRows.__init__",
        r"np\.bincount\(codes, column\) / sizes", "np.bincount(codes, column)",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "a budget for groups admits rows", "check_groups",
        r'== "group"', '== "nobody"',
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "groups that splits alone got are not named", "about_splits",
        r"takes_groups\(leaf\)", "False",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "a function that mixes rows learns nothing", "learns_nothing",
        r"return not _mixes\(step\)", "return True",
        "tests/privacy/test_functions.py",
    ),
    Mutant(
        "a function is tried in one order only", "_differs",
        r"\[\*parts, \*order\[:4, None\]\]", "[order]",
        "tests/privacy/test_functions.py",
    ),
    Mutant(
        "a strange label is an error", "_place",
        r"except Exception", "except ZeroDivisionError",
        "tests/test_strange_labels.py",
    ),
    Mutant(
        "one label of a list decides about the others", "as_stored",
        r"return made if exact else one_by_one\(y\)", "return made",
        "tests/test_strange_labels.py",
    ),
    # bounds
    Mutant(
        "rows not shortened into the ball", "L2Ball.factors",
        r"np\.maximum\(norms, self\.radius\)", "(self.radius + 0 * norms)",
        "tests/test_row_queries.py",
    ),
    Mutant(
        "rows not shortened into the ball, seen by the public trace alone", "L2Ball.factors",
        r"np\.maximum\(norms, self\.radius\)", "(self.radius + 0 * norms)",
        "tests/audit/test_trace.py",
    ),
    # audits
    Mutant(
        "an audit that ignores the Gaussian parameter of a ledger", "AuditResult.passed",
        r"unexceeded\(self\.mu_lower, self\.mu_claimed\)", "None",
        "tests/audit/test_gaussian_claim.py",
    ),
    Mutant(
        "a trace that does not compare the fitted attributes", "_traced",
        r"if \(where := difference\(one, two, name\)\) is not None:", "if False:",
        "tests/audit/test_trace.py",
    ),
    Mutant(
        "a trace that does not look at noise", "TracedRelease.passed",
        r"return quiet and not", "return not",
        "tests/audit/test_trace.py",
    ),
    Mutant(
        "a trace that counts only the batches with the row", "_batches_of",
        r"return np\.sort\(np\.append\(rest, place\)\), rest", "return batch, rest",
        "tests/audit/test_trace.py",
    ),
    Mutant(
        "rows not clipped into the box", "Box.to_unit",
        r"\(np\.clip\(X, self\.lower, self\.upper\)(.*)np\.clip\(unit, -1\.0, 1\.0\)", r"(X\1unit",
        "tests/test_row_queries.py tests/test_claims_sgd.py",
    ),
    Mutant(
        "clipping of gradients dropped", "ClippedGradient.partial",
        r"limit = self\.clip / chunk\.norm", "limit = 1e9 * self.clip / chunk.norm",
        "tests/test_row_queries.py",
    ),
    Mutant(
        "clipping dropped, seen by whole fits alone", "ClippedGradient.partial",
        r"limit = self\.clip / chunk\.norm", "limit = 1e9 * self.clip / chunk.norm",
        "tests/test_claims_sgd.py tests/linear_model/test_classifiers.py",
    ),
    # groups
    Mutant(
        "a row of a group counts as one", "shares",
        r"return counts", "return np.ones(len(codes))",
        "tests/test_groups.py",
    ),
    Mutant(
        "streams: a row of a group counts as one", "chunks_of",
        r"if weight is not None:", "if False:",
        "tests/test_groups.py",
    ),
    Mutant(
        "streams: rows are kept as they were before they were clipped anew", "KeptChunks._begun",
        r"return piece, done, chunk", "return piece, len(self.make), chunk",
        "tests/streams/test_linear.py",
    ),
    Mutant(
        "streams: the rows of one range are taken for those of all", "KeptChunks._finished",
        r"\(key, piece\) for _, key", "(key, self.pieces[0]) for _, key",
        "tests/streams/test_linear.py",
    ),
    Mutant(
        "streams: a range has views of a chunk that is filled again", "ChunkTable._next",
        r"return _of_its_own\(block\)", "return block",
        "tests/streams/test_linear.py",
    ),
    Mutant(
        "a secret number of rows is an attribute of a fit that releases nothing",
        "DPStandardScaler.fit", r'1 if self\.adjacency == "add-remove" else n_rows', "n_rows",
        "tests/test_counted.py",
    ),
    Mutant(
        "streams: a chunk with text makes text of the labels of others", "in_one",
        r"wide = len\(kinds\) > 1", "wide = False",
        "tests/test_strange_labels.py",
    ),
    Mutant(
        "streams: a chunk of floats makes floats of large labels of others", "in_one",
        r"wide = len\(kinds &", "wide = False and len(kinds &",
        "tests/test_strange_labels.py",
    ),
    Mutant(
        "large labels are those of other classes, unless there is a gap beside them", "_places",
        r'if alike and len\(kinds & set\("iuf"\)\) > 1:', "if False:",
        "tests/test_strange_labels.py",
    ),
    Mutant(
        "streams: groups that change are not seen", "Identified.check",
        r"if not np\.array_equal\(.*\):", "if False:",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "dask: a row of a group counts as one", "with_numbers",
        r"numbers\.content", "np.ones(len(numbers.content))",
        "tests/streams/test_dask.py",
    ),
    Mutant(
        "chunks: a group is another one in every chunk", "_joined_codes",
        r"places\[start \+ codes\]", "start + codes",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "minimisers: rows of a group count as one each", "_times_counts",
        r"if chunk\.weight is not None", "if False",
        "tests/test_groups.py",
    ),
    Mutant(
        "minimisers: gradients of a group's rows count as one each", "_kept",
        r"values if chunk is None else _times_counts\(values, chunk\)", "values",
        "tests/test_private_minimizers.py",
    ),
    Mutant(
        "minimisers: the secret number of a group's rows decides", "RowObjective.__init__",
        r"rows\.n_rows if most_rows is None else most_rows", "rows.n_rows",
        "tests/test_private_minimizers.py",
    ),
    Mutant(
        "minimisers: certified for the noisy number of rows alone", "Problem.most_rows",
        r"self\.bound_on_rows or self\.n_rows", "self.n_rows",
        "tests/test_counted.py",
    ),
    Mutant(
        "minimisers: certified for fewer rows than there may be", "Regularised.bounds",
        r"n_rows > self\.most_rows", "False",
        "tests/test_private_minimizers.py",
    ),
    Mutant(
        "perturbed objective: a group bends as a row", "PerturbedMinimizer.sensitivity",
        r"self\.size if self\.of_groups else corners", "corners",
        "tests/test_private_minimizers.py",
    ),
    Mutant(
        "perturbed objective: a mean of losses has the delta of one", "objective_delta",
        r"mean_excess if influence\.of_groups else gdp_delta", "gdp_delta",
        "tests/test_claims_erm.py",
    ),
    Mutant(
        "perturbed objective: groups pass for rows", "ObjectiveFit._query",
        r'problem\.unit == "group"', "False",
        "tests/test_groups.py",
    ),
    Mutant(
        "half of the mean of what is beyond epsilon", "mean_excess",
        r"value = mu", "value = 0.5 * mu",
        "tests/test_claims_erm.py",
    ),
    Mutant(
        "a median of targets by rows that count one each", "TargetMedian._parts_of",
        r"chunk\.weight is None", "True",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "a median of targets drawn a million times too sharply", "TargetMedian.draw",
        r" \* \(1 if parts is None else PARTS\)", "",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "gradients: rows of a group count as one each", "ClippedGradient.partial",
        r"if chunk\.weight is not None:", "if False:",
        "tests/test_groups.py",
    ),
    Mutant(
        "second moments: rows of a group count as one each", "SecondMoments.partial",
        r"rows \*= np\.sqrt\(chunk\.weight\)\[:, None\]", "pass",
        "tests/test_groups.py",
    ),
    Mutant(
        "scales: rows of a group count as one each", "MagnitudeCells.partial",
        r"counts_parts\(chunk\)", "False",
        "tests/test_groups.py",
    ),
    Mutant(
        "weights: more than the largest that counts", "units_of_weight",
        r"np\.minimum\(weights, max_weight\)", "weights",
        "tests/test_counted.py",
    ),
    # scores
    Mutant(
        "scores: rows that crowd a bin are as far apart as others", "crowding",
        r"return np\.minimum\(.*", "return np.zeros(len(held))",
        "tests/test_metrics.py",
    ),
    Mutant(
        "counts in cells: replace-one at the price of zero-out", "CellCounts.sensitivity",
        r'adjacency == "replace-one"', "False",
        "tests/test_metrics.py",
    ),
    Mutant(
        "scores: rows of a group count as one each", "CellCounts.partial",
        r"if weight is not None:", "weight = None\n        if weight is not None:",
        "tests/test_metrics.py",
    ),
    Mutant(
        "scores: a label that is not in the label set counts", "CellRows.__init__",
        r"np\.where\(codes\[:, None\] < 0, -1, cells\)", "np.maximum(cells, 0)",
        "tests/test_metrics.py",
    ),
    Mutant(
        "scores: a row counts for both labels", "CellCounts.evaluate",
        r"return sum_over\(rows, self\.partial, self\.size\)",
        "return (lambda c: c + c[::-1])(sum_over(rows, self.partial, self.size))",
        "tests/test_metrics.py",
    ),
    Mutant(
        "scores: rows of a group count as one each in means", "ScoreColumns.__init__",
        r"_UNIT, weight=weight", "_UNIT",
        "tests/test_metrics.py",
    ),
    Mutant(
        "scores: a row counts once and more at knots of targets", "_at_knots",
        r"\(1\.0 - part\) \* weight", "weight + 0.0 * part",
        "tests/test_metrics.py",
    ),
    Mutant(
        "scores: both releases get the whole budget", "HeldOutScores._laws",
        r"self\.epsilon \* share \* whole", "self.epsilon * whole",
        "tests/test_metrics.py",
    ),
    # sensitivities
    Mutant(
        "number of rows: noise of half a row", "RowCount.sensitivity",
        r"l1=1\.0", "l1=0.5",
        "tests/test_counted.py",
    ),
    Mutant(
        "number of rows: not paid for", "HiddenCount.left",
        r"self\.epsilon - self\.price", "self.epsilon",
        "tests/test_counted.py",
    ),
    Mutant(
        "number of rows: known to the plan", "HiddenCount.release",
        r"round\(released\)", "n_rows",
        "tests/test_counted.py",
    ),
    Mutant(
        "counts of classes: null rows count", "_cells_of",
        r"counted_rows\(chunk\)", "np.ones(len(chunk.target))",
        "tests/test_class_weight.py",
    ),
    Mutant(
        "counts of classes: the gradient gets the whole budget", "FirstGradientFit.solution",
        r"scale_mu=spent", "",
        "tests/test_class_weight.py",
    ),
    Mutant(
        "counts for weights of classes: the fit gets the whole budget", "CountsPlan.left",
        r"scale_mu=spent", "",
        "tests/test_class_weight.py",
    ),
    Mutant(
        "first gradient: stated to be a tenth as long", "FirstGradientFit.solution",
        r"ClippedGradient\(np\.zeros\(problem\.shape\), loss, clip\)",
        "ClippedGradient(np.zeros(problem.shape), loss, clip, slack=-0.9)",
        "tests/test_class_weight.py",
    ),
    Mutant(
        "choice of a kernel: replace-one at the price of zero-out", "RightRows.sensitivity",
        r'1\.0 if adjacency == "zero-out" else 2\.0', "1.0",
        "tests/linear_model/test_kernel_classifier.py",
    ),
    Mutant(
        "choice of a kernel: null rows count", "RightRows.partial",
        r"more \* counted_rows\(chunk\)", "more",
        "tests/linear_model/test_kernel_classifier.py",
    ),
    Mutant(
        "choice of a kernel: the noise of the comparison halved", "TrialPlan.run",
        r"GaussianMechanism\(mu\)", "GaussianMechanism(2 * mu)",
        "tests/linear_model/test_kernel_classifier.py",
    ),
    Mutant(
        "what lines leave over: replace-one at the price of zero-out", "LeftOver.sensitivity",
        r'1\.0 if adjacency == "zero-out" else 2\.0', "1.0",
        "tests/linear_model/test_kernel_classifier.py",
    ),
    Mutant(
        "what lines leave over: one of two numbers is not paid for", "LeftOver.sensitivity",
        r"math\.hypot\(1\.0, _BESIDE\) \* reach", "reach",
        "tests/linear_model/test_kernel_classifier.py",
    ),
    Mutant(
        "what lines leave over: null rows count", "LeftOver.partial",
        r"np\.where\(counts > 0, left, 0\.0\) \* counts", "left",
        "tests/linear_model/test_kernel_classifier.py",
    ),
    Mutant(
        "what lines leave over: of several classes longer than 1", "surprise",
        r" / np\.maximum\(np\.sqrt\(.*\), 1\.0\)\[:, None\]", "",
        "tests/linear_model/test_kernel_classifier.py",
    ),
    Mutant(
        "what lines leave over: classes add up", "LeftOver.evaluate",
        r"np\.sum\(bends\.reshape\(-1, d, _BENDS\) \*\* 2, axis=2\)\.sum\(axis=0\)",
        "np.abs(bends.reshape(-1, d, _BENDS)).sum(axis=(0, 2)) ** 2",
        "tests/linear_model/test_kernel_classifier.py",
    ),
    Mutant(
        "what lines leave over: bends are longer than 1", "bends_off_lines",
        r"knots, off / np\.sqrt\(np\.einsum\(\"ij,ij->i\", off, off\)\)\.max\(\)", "knots, 3 * off",
        "tests/linear_model/test_kernel_classifier.py",
    ),
    Mutant(
        "what lines leave over: residuals of targets are not cut", "missed",
        r"target - z, -1\.0, 1\.0\)", "target - z, -2.0, 2.0)",
        "tests/linear_model/test_kernel_regressor.py",
    ),
    Mutant(
        "nearer of two models: replace-one at the price of zero-out", "NearerRows.sensitivity",
        r'1\.0 if adjacency == "zero-out" else 2\.0', "1.0",
        "tests/linear_model/test_kernel_regressor.py",
    ),
    Mutant(
        "nearer of two models: differences of squares are not clipped", "NearerRows.partial",
        r"np\.clip\(gain, -1\.0, 1\.0\)", "gain",
        "tests/linear_model/test_kernel_regressor.py",
    ),
    Mutant(
        "nearer of two models: null rows count", "NearerRows.partial",
        r"gain \* counted_rows\(chunk\)", "gain",
        "tests/linear_model/test_kernel_regressor.py",
    ),
    Mutant(
        "a look at entries far out: it is not paid for",
        "PrivateLinearRegressor._prepared",
        r"tail\.mu, ", "",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "a look at the size of targets: it is not paid for",
        "PrivateLinearRegressor._prepared",
        r", look\.mu", "",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "a look at the size of targets: it has no noise", "UnitLook.run",
        r"released = curator\.release\(.*\)",
        "released = query.evaluate(curator._admitted(None))",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "a look at entries far out: rows are those of the fit", "TailPlan.run",
        r"curator\.map_rows\(methodcaller\(\"restored\"\)\)", "pass",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "a look of a ridge: it is not paid for", "DPRidge._planned",
        r"plan\.length, mean=look\)", "plan.length)",
        "tests/test_moments.py",
    ),
    Mutant(
        "a look at entries far out: it has no noise", "TailPlan.is_nearer",
        r"\(gain,\) = curator\.release\(.*\)",
        "(gain,) = query.evaluate(curator._admitted(None))",
        "tests/test_moments.py",
    ),
    Mutant(
        "few rows of a ridge without a delta: scales are not paid for", "DPRidge._drawn",
        r"price = left_of\(self\.epsilon", "price = left_of(_MORE * self.epsilon",
        "tests/test_moments.py",
    ),
    Mutant(
        "a bent regression: the search is not paid for by the choice", "TrialPlan.run",
        r"problem\.scale_mu, \*spent", "problem.scale_mu, *spent[1:]",
        "tests/linear_model/test_kernel_regressor.py",
    ),
    Mutant(
        "a bent regression: the check of its columns is not paid for", "DPKernelRegressor._bent",
        r"math\.hypot\(problem\.scale_mu, check\.mu\)", "problem.scale_mu",
        "tests/linear_model/test_kernel_regressor.py",
    ),
    Mutant(
        "gradients: replace-one at the price of zero-out", "ClippedGradient.sensitivity",
        r"2 \* self\.clip", "self.clip",
        "tests/test_row_queries.py",
    ),
    Mutant(
        "second moments: replace-one at the price of zero-out", "SecondMoments.sensitivity",
        r"3 / math\.sqrt\(2\.0\), \"4", 'math.sqrt(2.0), "4',
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "second moments: the products are not counted", "SecondMoments.sensitivity",
        r"math\.sqrt\(2\.0 \+", "math.sqrt(1.0 +",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "second moments: the number of rows is free under zero-out", "SecondMoments.sensitivity",
        r"2\.0 \+ self\.counted\*\*2", "2.0",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "second moments: a row weighs in their number whatever it is", "SecondMoments.sensitivity",
        r" or self\.counted\*\*2 > _FREE", "",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "second moments: rows of a group are all counted", "SecondMoments.partial",
        r"counted_rows\(chunk\)\.sum\(\)", "len(chunk.norm)",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "second moments: products without their factor", "SecondMoments.matrices",
        r"math\.sqrt\(0\.5\)", "0.5",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "the noise of the second moments halved", "PreconditionedFit.solution",
        r"GaussianMechanism\(self\.mu_moments\)", "GaussianMechanism(2 * self.mu_moments)",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "second moments that are used and not paid for", "PreconditionedFit.solution",
        r"curator\.release\(self\.moments, GaussianMechanism\(self\.mu_moments\)\)",
        "self.moments.evaluate(curator._admitted(None))",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "forty steps at the price of sixteen", "PreconditionedFit._descend",
        r"math\.sqrt\(plan\.n_steps\)", "4.0",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "steps of classes whatever noise there is", "GeometryPlan.lengths",
        r"even\), 1\.0, self\.longest\)", "even), 1.0, 1e9)",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "odds that are believed whatever gradients say", "believed",
        r"_part_kept\(found \+ fitted, along, one \* size\)", "1.0",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "noise of labels that is taken for what rows say", "_fit_to_noise",
        r"_FITTED \* \(felt / pulled\)", "0 * (felt / pulled)",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "odds that are kept where noise can have made half of them", "believed",
        r"_SURE \* \(1 - made", "4 * (1 - made",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "a center that moves whatever noise leaves of the share", "believed",
        r"1 \+ error / _SURE_SHARE\*\*2 \+ _VARIED", "1 + _VARIED",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "scores of classes that are believed whatever gradients say", "believed_classes",
        r"_part_kept\(found \+ fitted, [^\n]*\)", "1.0",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "scores of classes that are compared with labels whose link is not undone",
        "believed_classes",
        r"unclipped_log_proba\(log_softmax\(center \+ times \* u, axis=1\), longer\)",
        "log_softmax(center + times * u, axis=1)",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "intercepts of classes in units of the constant feature", "believed_classes",
        r"mean\(axis=0\) / constant - 1", "mean(axis=0) - 1",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "gradients clipped where the rows were before", "_mapped",
        r"usable_norms\(norm, null\), chunk\.target", "chunk.norm, chunk.target",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "sparse rows whose norm forgets the shift", "_sparse_norms",
        r"rest = shift @ shift", "rest = 0.0",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "sparse rows under a matrix, whose norm forgets the center", "_parts_moved",
        r"4 \* step, center @ root", "4 * step, 0.0 * (center @ root)",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "what rounding adds to sums of sparse rows under a matrix is not paid for",
        "plan_geometry",
        r"not scaled and \(problem\.is_sparse or large\)", "not problem.is_sparse and large",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "products of sparse rows outside of the ball", "SecondMoments.partial",
        r"X = X\.toarray\(out=empty_rows\(X\.shape\)\)",
        "X = X.toarray(out=empty_rows(X.shape)) * 1.5",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "mapped rows taken for as short as rounded differences say", "_moved_bounds",
        r"norm \+ _MOVE_SLACK \* np\.linalg\.norm\(root\)", "norm + 0.0",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "what rounding adds to sums of mapped rows is not paid for", "plan_geometry",
        r"slack = _ROUNDING \* float\(longer\)", "pass",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "a fit that goes on draws anew what it has released", "NotedNoise.release",
        r"if found is not None:", "if False:",
        "tests/streams/test_resume.py",
    ),
    Mutant(
        "a fit that goes on with the noise of its last release", "NotedNoise.release",
        r"noise\.rounded\(query\.size, source\.bits\)", "pass",
        "tests/streams/test_resume.py",
    ),
    Mutant(
        "a release that others have before it is written", "NotedNoise.release",
        r"self\._note\(released\)", "pass",
        "tests/streams/test_resume.py",
    ),
    Mutant(
        "a number that can be read before it is released", "_masked",
        r"\^ stream", "^ 0",
        "tests/streams/test_resume.py",
    ),
    Mutant(
        "an answer to another question", "Pages.recall",
        r"if \(page\.kind, page\.asked\) != \(kind, asked\):", "if page.kind != kind:",
        "tests/streams/test_resume.py",
    ),
    Mutant(
        "a damaged file that is cut where the damage is", "Pages._page",
        r"if is_known and not any", "if not is_known or not any",
        "tests/streams/test_resume.py",
    ),
    Mutant(
        "second moments: longer rows are not shortened", "SecondMoments.partial",
        r"rows /= np\.maximum\(length, 1\.0\)\[:, None\]", "pass",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "second moments: longer sparse rows are not shortened", "SecondMoments.partial",
        r"weight / np\.maximum\(length, 1\.0\)", "weight",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "products of rows: replace-one at the price of zero-out", "RowProducts.sensitivity",
        r"math\.sqrt\(2\.0\) \* self\.reach", "self.reach",
        "tests/test_moments.py",
    ),
    Mutant(
        "products of rows: the constant is not counted", "RowProducts.reach",
        r"1\.0 \+ self\.constant\*\*2", "1.0",
        "tests/test_moments.py",
    ),
    Mutant(
        "products of rows: longer rows are not shortened", "shortened",
        r"there / np\.maximum\(length, 1\.0\)", "there",
        "tests/test_moments.py",
    ),
    Mutant(
        "products of rows: longer sparse rows are not shortened", "shortened",
        r"there / np\.maximum\(row_norms\(rows\), 1\.0\)", "there",
        "tests/test_moments.py",
    ),
    Mutant(
        "products of rows: rows of a group count as one each", "shortened",
        r"if chunk\.weight is not None:", "if False:",
        "tests/test_moments.py",
    ),
    Mutant(
        "products of rows: entries without their factor", "RowProducts.matrix",
        r"math\.sqrt\(0\.5\)", "0.5",
        "tests/test_moments.py",
    ),
    Mutant(
        "products of rows: one coordinate counts for all in l1", "RowProducts.sensitivity",
        r"math\.sqrt\(self\.size\) \* reach", "reach",
        "tests/test_moments.py",
    ),
    Mutant(
        "products with a basis: replace-one at the price of zero-out", "BasisProducts.sensitivity",
        r"math\.sqrt\(2\.0\)", "math.hypot(1.0, _LENGTH_COUNTS)",
        "tests/test_moments.py",
    ),
    Mutant(
        "products with a basis: the length of a row is for free", "BasisProducts.sensitivity",
        r"math\.hypot\(1\.0, _LENGTH_COUNTS\)", "1.0",
        "tests/test_moments.py",
    ),
    Mutant(
        "squares of columns: replace-one at the price of zero-out", "ColumnSquares.sensitivity",
        r"2\.0, math\.sqrt\(2\.0\), ", "1.0, 1.0, ",
        "tests/test_moments.py",
    ),
    Mutant(
        "products with a basis that are paid for once", "leading_moments",
        r"left / _ROUNDS", "left",
        "tests/test_moments.py",
    ),
    Mutant(
        "squares of columns that are not paid for", "moments_of_columns",
        r"1 - 1e-9 - _SQUARES_SHARE", "1.0",
        "tests/test_moments.py",
    ),
    Mutant(
        "the noise of second moments halved", "Setting.law",
        r"price = self\.plan\.price", "price = 2 * self.plan.price",
        "tests/test_moments.py",
    ),
    Mutant(
        "second moments at twice epsilon without a delta", "law_of",
        r"KNormMechanism\(price\)", "KNormMechanism(2 * price)",
        "tests/test_moments.py",
    ),
    Mutant(
        "units of a target alone that are not paid for", "DPRidge._drawn",
        r"left_of\(self\.epsilon, self\.delta, scales\)", "left_of(self.epsilon, self.delta)",
        "tests/test_moments.py",
    ),
    Mutant(
        "units of columns that are not paid for", "left_of",
        r"math\.hypot\(mean, \*\(one\.mu for one in searches\)\)", "0.0",
        "tests/test_moments.py",
    ),
    Mutant(
        "a length of rows that is not paid for without a delta", "left_of",
        r"\[\*prices, mean\]", "[]",
        "tests/test_moments.py",
    ),
    Mutant(
        "columns of a covariance that are used and not paid for", "Setting.release",
        r"self\.curator\.release\(query, law\)",
        "query.evaluate(self.curator._admitted(None))",
        "tests/test_moments.py",
    ),
    Mutant(
        "intervals that forget the noise", "NormalEquations.deviations",
        r"half = self\.n_features, self\.noise\*\*2 / 2", "half = self.n_features, 0.0",
        "tests/test_moments.py",
    ),
    Mutant(
        "rows that were scaled down and are mapped with a whole center", "_parts_moved",
        r"np\.multiply\.outer\(lift\[part\], center\)", "center",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "sides of magnitudes: replace-one at the price of zero-out", "MagnitudeSides.sensitivity",
        r"2 \* l1, 2 \* l2", "l1, l2",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "sides of magnitudes: several places for one number at the price of one",
        "MagnitudeSides.sensitivity",
        r"l1, l2 = self\.size / 2, math\.sqrt\(self\.size\) / 2",
        "k = self.size if self.places is None else len(set(self.places)); "
        "l1, l2 = k / 2, math.sqrt(k) / 2",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "cells of magnitudes: the cell that is entered is not counted",
        "MagnitudeCells.sensitivity",
        r"2 \* l1, 2 \* square", "2 * l1, square",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "cells of magnitudes: all places of a number at the price of one",
        "MagnitudeCells.sensitivity",
        r"len\(self\.places\)", "len(set(self.places))",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "cells of CSR columns: a row counts in full for each of many entries",
        "MagnitudeCells._of_stored",
        r"self\.entries / m\b", "np.ones(len(m))",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "cells of CSR columns: null rows are counted", "MagnitudeCells._of_stored",
        r"counted_rows\(chunk\)", "np.ones(len(chunk.norm))",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "cells of CSR columns: a row counts as its target does", "MagnitudeCells.sensitivity",
        r"few = min\(d, self\.entries\)", "few = min(d, 1)",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "scales: rows beside a value that others share tell no spread", "_beside_shared_values",
        r"beyond\.any\(axis=1, keepdims=True\)", "False",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "scales: the distance to a shared value is a spread around medians", "SearchedScales.run",
        r"around = d \*", "around = 0 *",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "scales of CSR columns: what is looked at is paid for as one number",
        "SearchedScales.mu",
        r"self\._n_counted", "1",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "sides of magnitudes: rows before a piece in order are forgotten", "DividedNumbers._below",
        r"return counts\[i - 1\] \+ found", "return found",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "sides of magnitudes: numbers that hold counts are cut off", "DividedNumbers.__init__",
        r"bits \+= .*", "pass",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "sides of magnitudes: joined pieces forget what the first one counts",
        "DividedNumbers._below",
        r"one\[-1\] \+ other\[1:\]", "other[1:]",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "sides of magnitudes: a column that was not kept is another one", "MagnitudeSides.evaluate",
        r" or \(rows\.sought\[1\]\[places\] < 0\)\.any\(\)", "",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "sides of magnitudes: the longer side counts as the shorter", "DividedNumbers._below",
        r"counts\[i\] - counts\[i - 1\] - _counted", "_counted",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "sides of magnitudes: a row is above its own number by its count", "DividedNumbers.sides",
        r"bits \| ~\(bits >> 63\) & _COUNT_BITS", "bits",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "sides of magnitudes: null rows are counted", "MagnitudeSides.partial",
        r"np\.isfinite\(chunk\.norm\)", "np.isfinite(chunk.factor)",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "magnitudes in order and in cells: null rows are counted", "_OfMagnitudes._blocks",
        r"np\.isfinite\(part\.norm\)", "np.isfinite(part.factor)",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "rows are mapped with a look at their neighbours", "map_chunk",
        r"features\(row_major\(chunk\.X\)\)", "features(chunk.X - chunk.X.mean(axis=0))",
        "tests/linear_model/test_kernel_classifier.py",
    ),
    Mutant(
        "rows of found scales are not clipped", "_readmitted",
        r"ball\.factors\(norm\)", "np.full(len(norm), 1 / ball.radius)",
        "tests/linear_model/test_classifiers.py",
    ),
    Mutant(
        "scales that are searched and not paid for", "Problem.mu",
        r"priced, self\.scale_mu\)", "priced, 0.0)",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "scales: what is searched of targets beside many columns is paid for once",
        "SearchedScales.mu",
        r"self\._often \* len\(self\._spreads\)", "len(self._spreads)",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "scales: spreads are searched far from cells with rows", "SearchedScales._spreads_of",
        r"_SPREAD_KEY, paid, prior\)", "_SPREAD_KEY, paid)",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "small entries: those of other rows are seen", "SmallEntry.__call__",
        r"small\.any\(axis=1\)", "np.full(len(small), small.any())",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "small entries: the norm is that of the longest row", "SmallEntry.__call__",
        r"raw_norms\(chunk\)\[:, None\]", "raw_norms(chunk).max(initial=0.0)",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "a check of units that is not paid for", "CheckedScales.run",
        r"math\.hypot\(paid, found\.mu\)", "found.mu",
        "tests/linear_model/test_classifiers.py",
    ),
    Mutant(
        "scales that are searched beside a norm and not paid for", "CheckedScales.run",
        r"math\.hypot\(paid, found\.mu\)", "paid",
        "tests/linear_model/test_classifiers.py",
    ),
    Mutant(
        "a check of a norm that is not paid for", "CheckedScales.run",
        r"else paid", "else 0.0",
        "tests/linear_model/test_classifiers.py",
    ),
    Mutant(
        "searches for several numbers at the noise for one", "SearchedScales._prepaid",
        r"math\.sqrt\(numbers / times\)", "numbers / math.sqrt(times)",
        "tests/linear_model/test_lp_regressor.py",
    ),
    Mutant(
        "mean: replace-one at the price of zero-out", "RowSum.sensitivity",
        r"2 \* l1, 2 \* l2", "l1, l2",
        "tests/test_row_queries.py tests/test_claims_sgd.py",
    ),
    Mutant(
        "ranges: each of many features may fail as often as one", "_planned",
        r"UNLIKELY / n_features", "UNLIKELY",
        "tests/location/test_range.py",
    ),
    Mutant(
        "range: two draws at the price of one", "RangePlan.epsilon",
        r"self\.median_price \+ self\.distance_price", "self.median_price",
        "tests/location/test_range.py",
    ),
    Mutant(
        "range: draws for all features at the Gaussian-DP parameter of one", "RangePlan.beside",
        r"one \* math\.sqrt\(self\.n_features\)", "one",
        "tests/location/test_range.py",
    ),
    Mutant(
        "range: draws that are not paid for, beside a Gaussian sum", "RangedSum.made",
        r"mu_beside\(epsilon, delta, \*ranges\.beside\)", "mu_beside(epsilon, delta)",
        "tests/location/test_range.py",
    ),
    Mutant(
        "range: draws that are not paid for, beside a Laplace sum", "RangedSum.made",
        r"\(epsilon - ranges\.epsilon\) \*", "epsilon *",
        "tests/location/test_range.py",
    ),
    Mutant(
        "range: draws that are not paid for, beside gradients", "DPMedian.fit",
        r"mu_beside\(epsilon, delta, \*beside\)", "mu_beside(epsilon, delta)",
        "tests/location/test_range.py",
    ),
    Mutant(
        "range: read off the rows", "RangePlan._drawn",
        r"curator\.release\(query, paid\)\[0\] for query in queries",
        "float(np.median(curator._Curator__rows.positions(j))) for j in range(self.n_features)",
        "tests/location/test_range.py",
    ),
    Mutant(
        "frequencies: the own category named more often", "CategorySubsets.randomise",
        r"kept = coins\(p,", "kept = coins((1.0 + p) / 2.0,",
        "tests/local/test_frequencies.py",
    ),
    Mutant(
        "frequencies: the budget of one feature for several", "CategorySubsets.epsilon",
        r"prices\[-self\.asked :\]", "prices[-1:]",
        "tests/local/test_frequencies.py",
    ),
    Mutant(
        "frequencies: one more name where the own one is not among them",
        "CategorySubsets.randomise",
        r"chosen_subsets\(w - kept,", "chosen_subsets(w - kept + (~kept),",
        "tests/local/test_frequencies.py",
    ),
    Mutant(
        "clients: the same noise in every report", "LocalClient.report",
        r"random_state=None", "random_state=0",
        "tests/local/test_clients.py",
    ),
    Mutant(
        "clients: the same identifier, and rotation, in every report", "LocalClient.report",
        r"make_bits\(None\)\.words\(2\)\.tobytes\(\)", "bytes(16)",
        "tests/local/test_clients.py",
    ),
    Mutant(
        "clients: a second report of a person without a word", "LocalClient.report",
        r"self\._n_reports and not again", "False",
        "tests/local/test_clients.py",
    ),
    Mutant(
        "clients: a price that is believed", "LocalClient.from_json",
        r"cls\(domain, randomiser, epsilon, budget\)",
        "cls(domain, randomiser, max(epsilon, randomiser.epsilon), budget)",
        "tests/local/test_clients.py",
    ),
    Mutant(
        "clients: a report that counts twice", "Aggregator.add",
        r"if identifier in self\._met:", "if False:",
        "tests/local/test_clients.py",
    ),
    Mutant(
        "clients: a report that counts in both of two sums", "Aggregator.merge",
        r"not met\.isdisjoint\(self\._met\)", "False",
        "tests/local/test_clients.py",
    ),
    Mutant(
        "range: a position that depends on other rows", "LadderRows._on_grid",
        r"np\.abs\(values, out=values\)",
        "np.abs(values - np.nanmean(values), out=values)",
        "tests/location/test_range.py",
    ),
    Mutant(
        "scaler: squares that cost nothing in l1", "MomentSum.sensitivity",
        r"l1, l2 = \(1 \+ 2 \* WEIGHT\) \*\* 2 / \(4 \* WEIGHT\) \* count", "l1, l2 = 2.0 * count",
        "tests/preprocessing/test_standard_scaler.py",
    ),
    Mutant(
        "scaler: all of the budget for the sums, after the ranges", "pure_moments",
        r"epsilon - ranges\.epsilon", "epsilon",
        "tests/preprocessing/test_standard_scaler.py",
    ),
    Mutant(
        "histogram: features at the price of one", "CellCounts.sensitivity",
        r"moved = len\(self\.sizes\)", "moved = 1",
        "tests/location/test_histogram.py",
    ),
    Mutant(
        "categories: one word of a list makes words of all entries", "entry_by_entry",
        r"numbers if alike else entries", "numbers",
        "tests/location/test_histogram.py tests/preprocessing/test_describe.py",
    ),
    Mutant(
        "categories: one fraction of a list makes floats of all whole numbers", "entry_by_entry",
        r"floats_hold\(listed\)", "True",
        "tests/location/test_histogram.py",
    ),
    Mutant(
        "groups: one fraction of a list makes one of two large identifiers", "identifiers_of",
        r"as_stored\(groups\) if", "found if",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "spent: folds of even numbers of rows are taken for public ones", "sizes_decide",
        r'return "GroupKFold" in bases and', "return False and",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "spent: a width that follows from the number of rows is taken for a public one",
        "learns_nothing",
        r"return bool\(SHAPE_ONLY\[kind\.__name__\]\(step\)\)", "return True",
        "tests/privacy/test_spent.py",
    ),
    Mutant(
        "groups: one word of a list makes two identifiers of 1 and 1.0", "identifiers_of",
        r'in "fU"', 'in "f"',
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "labels: one gap makes floats of whole numbers", "as_stored",
        r"_whole_numbers\(y, np\.asarray\(y\)\)", "np.asarray(y)",
        "tests/test_strange_labels.py",
    ),
    Mutant(
        "labels: one null of Arrow makes floats of whole numbers", "arrow_targets",
        r"_whole_numbers\(y, _numbers\(y\)\)", "_numbers(y)",
        "tests/test_strange_labels.py",
    ),
    Mutant(
        "labels: one entry of a list beside a stream decides about all", "opened",
        r"else as_stored\(y\)\)\n    else", "else np.asarray(y))\n    else",
        "tests/test_strange_labels.py",
    ),
    Mutant(
        "categories: one wide float of a list spells others", "as_word",
        r"value = float\(value\)", "value = value",
        "tests/preprocessing/test_describe.py",
    ),
    Mutant(
        "a warning tells of a row that is too long for floats", "_lengths_of",
        r', over="ignore"', "",
        "tests/test_moments.py",
    ),
    Mutant(
        "a warning tells of a CSR row that is too long for floats", "squared_lengths",
        r'np\.errstate\(over="ignore"\)', "np.errstate()",
        "tests/test_moments.py",
    ),
    Mutant(
        "groups: large numbers of numpy in a list become floats", "floats_hold",
        r"isinstance\(one, Integral\)", "isinstance(one, int)",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "groups: a float of numpy is two large identifiers", "coded_identifiers",
        r"one_by_one\(listed\) if", "groups if",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "groups: decimals become floats", "arrow_targets",
        r" and not exact", "",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "groups: the type of one chunk joins large identifiers of another", "_joined_codes",
        r"found\.astype\(object\) for", "found for",
        "tests/test_grouped_statistics.py",
    ),
    Mutant(
        "search: one entry of a list decides about types of columns", "as_table",
        r"return made\.astype\(np\.float64\)", "return made",
        "tests/model_selection/test_search.py",
    ),
    Mutant(
        "tables: one entry of a list decides about types of columns", "_validate_table",
        r"if listed and options", "if False and options",
        "tests/preprocessing/test_describe.py",
    ),
    Mutant(
        "description: a share of the budget given twice", "_plan_of",
        r"\(_QUANTILES \+ _MOMENTS\) \* n_described", "_QUANTILES * n_described",
        "tests/preprocessing/test_describe.py",
    ),
    Mutant(
        "histogram: a row that only enters a cell", "CellCounts.sensitivity",
        r"min\(size, 2\)", "min(size, 1)",
        "tests/location/test_histogram.py",
    ),
    Mutant(
        "histogram: all of the budget for the counts, after the range", "DPHistogram.fit",
        r"epsilon - ranges\.epsilon", "epsilon",
        "tests/location/test_histogram.py",
    ),
    Mutant(
        "quantiles: the price of one part for a row that changes parts", "PartRanks.sensitivity",
        r"sum\(swings\[-2:\]\)", "sum(swings[-1:])",
        "tests/location/test_quantiles.py",
    ),
    Mutant(
        "quantiles: ties told apart by what other rows have", "RankRows.told_apart",
        r"there\.astype\(np\.uint64\)",
        "np.argsort(np.argsort(positions[there])).astype(np.uint64)",
        "tests/location/test_quantiles.py",
    ),
    Mutant(
        "quantiles: parts that share rows", "PartRank.places",
        r"\[self\.after, self\.upto\]", "[self.after - (2 << self.bits), self.upto]",
        "tests/location/test_quantiles.py",
    ),
    Mutant(
        "quantiles: every level at the price of all", "_prices_of_levels",
        r"Fraction\(spread\) / total", "Fraction(spread) / 2",
        "tests/location/test_quantiles.py",
    ),
    Mutant(
        "quantile: half of the spread of ranks", "QuantileRank.sensitivity",
        r"spread, theorem = 2\.0", "spread, theorem = 1.0",
        "tests/location/test_median.py tests/location/test_range.py",
    ),
    Mutant(
        "quantile: zero drawn whatever its rank", "QuantileRank.draw",
        r"np\.append\(steps, steps\[own\]\)", "np.append(steps, 0)",
        "tests/location/test_range.py",
    ),
    Mutant(
        "clipped mean: replace-one at the price of zero-out", "ClippedRowSum.sensitivity",
        r"2 \* self\.radius", "self.radius",
        "tests/location/test_mean.py",
    ),
    Mutant(
        "measurements: replace-one at the price of zero-out", "SketchSum.sensitivity",
        r"2 \* self\.radius", "self.radius",
        "tests/location/test_compressed_sensing.py",
    ),
    Mutant(
        "scaler: replace-one at the price of zero-out", "SideSum.sensitivity",
        r"2 \* l1, 2 \* l2", "l1, l2",
        "tests/preprocessing/test_standard_scaler.py",
    ),
    Mutant(
        "frequent features: one row's for two", "PresenceCount.sensitivity",
        r"2 \* features, ", "features, ",
        "tests/location/test_sparse_queries.py",
    ),
    Mutant(
        "words of a table: one column's for all", "DPTableVectorizer.fit",
        r"PresenceCount\(self\.n_buckets \* len\(counted\), len\(counted\)\)",
        "PresenceCount(self.n_buckets * len(counted), 1)",
        "tests/preprocessing/test_table.py",
    ),
    Mutant(
        "a null row of a table counts as a median", "table_rows",
        r'rows_without_values\(X, columns\) if adjacency == "zero-out" else None', "None",
        "tests/preprocessing/test_table.py",
    ),
    Mutant(
        "values of a column decide about its kind", "table_schema",
        r"types_in\(X\)", 'types_in(X.infer_objects() if hasattr(X, "iloc") else X)',
        "tests/preprocessing/test_table.py",
    ),
    Mutant(
        "a secret number of rows decides about knots", "DPTableVectorizer.fit",
        r"epsilon is not None and hidden_count\(self\) is None", "epsilon is not None",
        "tests/preprocessing/test_table.py",
    ),
    Mutant(
        "rows of a group in a table's percentiles that count one each", "TableSummary.fit",
        r"self\.adjacency, alone\)", "self.adjacency, True)",
        "tests/preprocessing/test_describe.py",
    ),
    Mutant(
        "a vertex chosen with half its spread", "SteepestCoordinate.sensitivity",
        r"2 \* \(reach", "(reach",
        "tests/test_frank_wolfe.py",
    ),
    Mutant(
        "rows of a group that count one each in a choice of a vertex", "SteepestCoordinate.partial",
        r"chunk\.weight is not None", "False",
        "tests/test_groups.py tests/test_counted.py tests/test_frank_wolfe.py",
    ),
    Mutant(
        "rounding of weighted scores that nobody pays for", "Terms.facts",
        r'"l1", "l2", "spread"', '"l1", "l2"',
        "tests/test_groups.py",
    ),
    Mutant(
        "a draw with half its spread", "LossDraw.sensitivity",
        r"self\.loss\.lipschitz \* 2 \* reach", "self.loss.lipschitz * reach",
        "tests/test_private_minimizers.py tests/test_claims_erm.py",
    ),
    Mutant(
        "a null row that counts as a wrong answer", "HeldOutRows.__init__",
        r"share = np\.where\(null, 0\.5, share\)", "pass",
        "tests/model_selection/test_scorers.py",
    ),
    Mutant(
        "a search that chooses with half its spread", "HeldOutChoice.sensitivity",
        r"2 \* ranges", "ranges",
        "tests/model_selection",
    ),
    Mutant(
        "a search whose runs that do not count are cut short", "run_search",
        r"\(one\.estimator, one\.run, taken, \*own\)",
        "(one.estimator, one.run, taken if gate._counted[candidates.index(one)] "
        "else taken.of(np.arange(4)), *own)",
        "tests/model_selection/test_public_time.py",
    ),
    Mutant(
        "a search all of whose runs count", "_draw_counted",
        r"counted\[:\] = False", "pass",
        "tests/privacy/test_search_gate.py",
    ),
    Mutant(
        "a secret subset that is paid for once", "loss_of_choice",
        r"2 \* loss", "loss",
        "tests/privacy/test_secret_subset.py",
    ),
    Mutant(
        "a search that is charged for rows it cannot read", "refuse_rows",
        r"model\.fit\(X, y, \*\*given\)", "pass",
        "tests/model_selection/test_public_time.py",
    ),
    Mutant(
        "reports of clients: replace-one at the price of zero-out", "ReportSum.sensitivity",
        r"2 \* self\.limit", "self.limit",
        "tests/federated/test_federated.py",
    ),
    Mutant(
        "messages of clients: an answer to an earlier round", "FederatedRound.add",
        r'header\.get\("round"\) != self\.number', "False",
        "tests/federated/test_messages.py",
    ),
    Mutant(
        "messages of clients: an answer after the round", "FederatedRound.add",
        r"if self\._over:", "if False:",
        "tests/federated/test_messages.py",
    ),
    Mutant(
        "messages of clients: an answer that counts twice", "FederatedRound.add",
        r"if place in self\._updates:", "if False:",
        "tests/federated/test_messages.py",
    ),
    Mutant(
        "messages of clients: an update of any length", "FederatedRound.add",
        r"np\.max\(np\.abs\(values\)\) > limit or np\.linalg\.norm\(values\) > limit", "False",
        "tests/federated/test_messages.py",
    ),
    Mutant(
        "rounds of clients: no clipping", "ClientUpdates._factors",
        r"return self\.clip / np\.maximum\(norm, self\.clip\)", "return np.ones_like(norm)",
        "tests/federated/test_messages.py",
    ),
    Mutant(
        "shares of clients: half the noise in an answer", "FederatedClient.answer",
        r"discrete_gaussian\(share,", "discrete_gaussian(share / 2,",
        "tests/federated/test_shares.py",
    ),
    Mutant(
        "shares of clients: no noise in an answer", "FederatedClient.answer",
        r"steps\.astype\(np\.int64\) \+ noise", "steps.astype(np.int64) + 0 * noise",
        "tests/federated/test_shares.py",
    ),
    Mutant(
        "shares of clients: fewer than the noise is made for", "DistantClients.noisy_sum",
        r"current\.n_reports < noise\.n_shares", "False",
        "tests/federated/test_shares.py",
    ),
    Mutant(
        "shares of clients: priced as if the sum were continuous", "unit_mu",
        r"2 \* curved / \(1 \+ math\.sqrt\(1 - curved / 3\)\)", "curved",
        "tests/federated/test_shares.py",
    ),
    Mutant(
        "shares of clients: half the noise in the sum", "SharedNoise.rounded",
        r"discrete_gaussian\(self\.share,", "discrete_gaussian(self.share / 2,",
        "tests/federated/test_shares.py",
    ),
    Mutant(
        "shares of clients: a draw that depends on its sign", "discrete_gaussian",
        r"kept &= ~\(negative & \(magnitude == 0\)\)", "pass",
        "tests/federated/test_shares.py",
    ),
    Mutant(
        "rounded updates: replace-one at the price of zero-out", "RoundedUpdates.sensitivity",
        r"l2=own\.l2 \+ count \* self\.grid \* math\.sqrt\(self\.size\) / 2", "l2=own.l2 / count",
        "tests/federated/test_shares.py",
    ),
    # the ledger
    Mutant(
        "no check of the budget", "_append",
        r"if not record\.fits", "if False and not record.fits",
        "tests/privacy/test_curator.py",
    ),
    Mutant(
        "releases that are not recorded", "_append",
        r"self\._record = record\n", "pass\n",
        "tests/privacy/test_curator.py",
    ),
    Mutant(
        "a shared budget that is not charged", "share",
        r"budget\.charge\(", "(lambda *_, **__: None)(",
        "tests/privacy/test_budget.py",
    ),
    Mutant(
        "an old copy of a budget that is accepted", "Chain.read",
        r"if not state\.holds\(seen\)", "if False and not state.holds(seen)",
        "tests/privacy/test_budget_chain.py",
    ),
    Mutant(
        "edited charges of a budget that are accepted", "_checked",
        r"if digests\[-1\] != digest", "if False and digests[-1] != digest",
        "tests/privacy/test_budget_chain.py",
    ),
    Mutant(
        "a charge that others came before", "FileStore.append",
        r"!= expected", "== 0",
        "tests/privacy/test_budget_chain.py",
    ),
    Mutant(
        "a charge that is made again when its answer is lost", "PostgresStore.append",
        r"time\.sleep\(0\.1\)", "return False",
        "tests/privacy/test_budget_server.py",
    ),
    Mutant(
        "a password that is kept where it can be seen", "PostgresStore.__init__",
        r"base \+ \"\?\" \* bool\(options\) \+ options", 'url.partition("?")[0]',
        "tests/privacy/test_budget_server.py",
    ),
    Mutant(
        "a fit that forgets where it was charged", "Record.charged_as",
        r"tuple\(filter\(None, heads\)\)", "()",
        "tests/privacy/test_budget_chain.py",
    ),
    Mutant(
        "priced releases that are counted once", "compose_epsilon",
        r"\(epsilon, count\) for epsilon, _, count", "(epsilon, 1) for epsilon, _, count",
        "tests/privacy/test_accounting.py",
    ),
    Mutant(
        "odds on a card that forget delta", "odds",
        r" \+ delta \* expit\(-epsilon\)", "",
        "tests/inspection/test_privacy_card.py",
    ),
    Mutant(
        "odds on a card of half the Gaussian price", "odds",
        r'composed\["gdp"\] / 2', 'composed["gdp"] / 4',
        "tests/inspection/test_privacy_card.py",
    ),
    # batches
    Mutant(
        "a sampling rate that is charged and not kept", "_batch",
        r"if sampling is None or", "if True or",
        "tests/privacy/test_curator.py tests/test_claims_sgd.py",
    ),
]  # fmt: skip


@functools.cache
def functions(root):
    """Return where each function and method of a checkout is defined, by its name.

    A place is (path, name of the class around it or None, number of the line before it, number of
    its last line). Read once: a planted bug is taken out again before the next one.
    """
    found = {}
    for path in sorted((root / "skdp").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        for owner in (tree, *classes):
            for node in owner.body:
                if isinstance(node, ast.FunctionDef):
                    place = (path, getattr(owner, "name", None), node.lineno - 1, node.end_lineno)
                    found.setdefault(node.name, []).append(place)
    return found


def places(scope, root):
    """Yield the files with a function or method of this name, with its first and last line."""
    *owner, function = scope.split(".")
    for path, around, start, stop in functions(root).get(function, []):
        if not owner or around in owner:
            yield path, start, stop


def planted(mutant, root):
    """Return the path of the file that changes, and its text with the bug in it."""
    found = []
    for path, start, stop in places(mutant.scope, root):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        body = "".join(lines[start:stop])
        changed, n_changes = re.subn(mutant.pattern, mutant.replacement, body, flags=re.DOTALL)
        if n_changes:
            assert n_changes == 1, f"{mutant.name}: the pattern matches {n_changes} times"
            found.append((path, "".join([*lines[:start], changed, *lines[stop:]])))
    assert len(found) == 1, f"{mutant.name}: the pattern matches in {len(found)} functions"
    return found[0]


def copy_of_source(folder):
    """Copy what git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())


def seen_by(mutant, folder):
    """Return the first test of the default tier that fails, or None."""
    path, text = planted(mutant, folder)
    before = path.read_bytes()
    path.write_text(text, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider",
         "--tb=no", *mutant.tests.split()],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)}, capture_output=True, text=True,
    )  # fmt: skip
    path.write_bytes(before)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    failed = re.search(r"^FAILED (\S+)", run.stdout, re.M)
    return failed[1] if failed else None


def main():
    """Plant every bug that is asked for, and print which test saw it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="only bugs with one of these in their name")
    parser.add_argument("--check", action="store_true", help="only look for the patterns")
    arguments = parser.parse_args()
    words = arguments.words
    mutants = [m for m in MUTANTS if not words or any(word in m.name for word in words)]
    for mutant in mutants:
        planted(mutant, ROOT)
    if arguments.check:
        return 0
    alive = 0
    with tempfile.TemporaryDirectory() as folder:
        copy_of_source(Path(folder))
        for mutant in mutants:
            start = time.monotonic()
            test = seen_by(mutant, Path(folder))
            alive += test is None
            seconds = f"{time.monotonic() - start:.0f} s"
            print(f"| {mutant.name} | {test or '**not seen**'} | {seconds} |", flush=True)
    return 1 if alive else 0


if __name__ == "__main__":
    raise SystemExit(main())

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Weights of classes: another prior in the place of that of the rows, after the fit.

Logarithms of the odds of two classes are those of what a row looks like, plus those of the prior.
So weights of classes are a shift of the scores, whatever the fit has cost: no row counts more than
another, and no noise becomes louder. Weights within the sum of losses give a louder voice to rare
classes and a softer one to all others, while the noise stays: on four tables with 1 to 28 % of
positives, at epsilon 1, balanced accuracy was 1 to 2 points lower.

Public weights are free. Balanced ones need the numbers of rows of the classes, which are released.
Where noise dominates, a solver has released them, and the intercept says what they are.
"""

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from skdp._counted import CellCounts
from skdp.privacy.laws.additive import GaussianMechanism, LaplaceMechanism

# part of the squared Gaussian-DP budget, or of epsilon, that counts get
_COUNTS_SHARE = 0.05
# a class counts as so many standard deviations of the noise, at least; and noise that counts must
# not have, in parts of the number of rows
_FEWEST, _LOUDEST = 2.0, 0.1


@dataclass(frozen=True)
class CountsPlan:
    """How rows of classes are counted; public numbers only.

    Parameters
    ----------
    query : CellCounts
        What is released.
    law : GaussianMechanism or LaplaceMechanism
        At its price.
    noise : float
        Standard deviation of a count.
    n_rows : int
        Number of rows.
    """

    query: Any
    law: Any
    noise: float
    n_rows: int

    def left(self, problem):
        """Return public facts with what is left of the budget."""
        if isinstance(self.law, GaussianMechanism):
            # a hair more than the ledger will hold
            spent = math.hypot(problem.scale_mu, self.law.mu) * (1 + 1e-9)
            return replace(problem, scale_mu=spent)
        # what is purely private simply adds up, whatever else is released
        return replace(problem, epsilon=(problem.epsilon - self.law.epsilon) * (1 - 1e-9))

    def run(self, curator, doubts=None):
        """Release counts; return balanced weights, ``n_rows / (n_classes * count)``.

        Parameters
        ----------
        curator : Curator
            Holds the rows.
        doubts : Doubts, default=None
            Collects a warning if the counts show that many rows have no class.
        """
        counts = curator.release(self.query, self.law)
        if doubts is not None:
            doubts.of_labels(counts.sum(), self.noise * math.sqrt(len(counts)), self.n_rows)
        counts = np.clip(counts, max(1.0, _FEWEST * self.noise), self.n_rows)
        return self.n_rows / (len(counts) * counts)


def plan_counts(problem, plan, n_classes):
    """Plan how rows of classes are counted for balanced weights.

    Parameters
    ----------
    problem, plan : Problem, Fit
        Public facts, and the plan of the fit without counts.
    n_classes : int
        Number of classes.

    Returns
    -------
    counts : CountsPlan or None
        None if noise would hide them.
    """
    query = CellCounts((n_classes,), "rows of each class")
    facts = query.sensitivity(problem.adjacency, problem.n_rows)
    if plan.full_batches and problem.delta:
        mu = math.sqrt(_COUNTS_SHARE) * problem.mu
        law, noise = GaussianMechanism(mu), facts.l2 / mu
    else:
        price = _COUNTS_SHARE * problem.epsilon
        law, noise = LaplaceMechanism(price), math.sqrt(2.0) * facts.l1 / price
    if noise > _LOUDEST * problem.n_rows:
        return None
    return CountsPlan(query, law, noise, problem.n_rows)


@dataclass(frozen=True)
class ClassWeights:
    """Weights of the classes of one fit: none, public ones, or balanced ones.

    Parameters
    ----------
    public : ndarray of shape (n_classes,) or None
        Public weights in the order of the classes, ones for balanced ones; None for no weights.
    balanced : bool
        Whether numbers of rows decide.
    counts : CountsPlan, default=None
        How these are released before the steps; None where the solver releases them itself.
    """

    public: Any
    balanced: bool
    counts: CountsPlan | None = None

    def beside(self, problem, plan):
        """Return these weights, with counts where a plan of steps has none; public numbers only."""
        if not self.balanced or plan.counts_classes:
            return self
        return replace(self, counts=plan_counts(problem, plan, len(self.public)))

    def left(self, problem):
        """Return public facts with what counts leave of the budget."""
        return problem if self.counts is None else self.counts.left(problem)

    def say_of_noise(self, doubts, plan, facts):
        """Warn where classes are too rare to be counted; `facts` are a number, a unit, epsilon."""
        if self.balanced and self.counts is None and not plan.counts_classes:
            n_rows, unit, epsilon = facts
            doubts.noise(
                f"class_weight='balanced' has no effect: {n_rows} {unit}s at epsilon={epsilon:.4g} "
                "are too few to count the classes. Give public weights in a dict, or use more rows "
                "or a larger epsilon."
            )

    def run(self, curator, plan, doubts):
        """Return the weights that are known before the steps, with counts released."""
        if self.counts is None:
            return self.public
        return self.counts.run(curator, None if plan.counts_labels else doubts)

    def after(self, known, plan, intercept):
        """Return the weights, those known before or by what an intercept says of shares.

        Parameters
        ----------
        known : ndarray of shape (n_classes,) or None
            From `run`.
        plan : Fit
            Of the steps that were made.
        intercept : ndarray of shape (1,) or (n_classes,)
            Logarithms of the odds of two classes, or of the shares of more.
        """
        if not self.balanced or self.counts is not None or not plan.counts_classes:
            return known
        shares = softmax(np.append(0.0, intercept) if len(intercept) == 1 else intercept)
        return 1 / (len(shares) * shares)


def class_weights(class_weight, classes):
    """Return the weights of classes that a user asks for.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        As the user gave it. A class without a weight has 1.
    classes : ndarray of shape (n_classes,)
        Labels.

    Returns
    -------
    weights : ClassWeights

    Raises
    ------
    ValueError
        If a label is no class, or a weight is no number in [1e-100, 1e100].
    """
    if class_weight is None:
        return ClassWeights(None, False)
    if isinstance(class_weight, str):
        return ClassWeights(np.ones(len(classes)), True)
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        keys, labels = (", ".join(map(repr, found)) for found in (unknown, known))
        raise ValueError(f"class_weight has the key(s) {keys}; the classes are {labels}.")
    weights = [class_weight.get(label, 1.0) for label in known]
    for weight in weights:
        number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not number or not 1e-100 <= weight <= 1e100:
            raise ValueError(
                f"class_weight must map labels to numbers in [1e-100, 1e100]; got {class_weight!r}."
            )
    return ClassWeights(np.array(weights, dtype=np.float64), False)


def shifts(logs, linked, n_rows, longest):
    """Return what is added to scores so that classes have other weights.

    Parameters
    ----------
    logs : ndarray of shape (n_classes,)
        Logarithms of the weights.
    linked : callable
        Maps differences of two scores to the logarithms of the odds that they stand for: odd,
        growing, and without a bound.
    n_rows : int
        Number of rows. They cannot tell odds of more than so many to one, and scores that do are
        made of noise: weights beyond outvote them.
    longest : float
        Bound on a score.

    Returns
    -------
    shift : ndarray of shape (1,) or (n_classes,)
        The difference of scores at which these odds are what weights are to make even: the ratio
        of two weights, or of each of several to their geometric mean.
    """
    wanted = logs[1:] - logs[0] if len(logs) == 2 else logs - logs.mean()
    largest = np.max(np.abs(wanted))
    reach = largest + 1.0
    # where rows are long for what they are clipped to, scores stand for smaller odds than their own
    while linked(np.array([reach]))[0] < largest:
        reach *= 2
    found = [
        brentq(lambda s, log=log: linked(np.array([s]))[0] - log, -reach, reach) for log in wanted
    ]
    outvoted = np.abs(wanted) > math.log(n_rows + 1)
    return np.where(outvoted, wanted + 2 * np.sign(wanted) * longest, found)

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The way of a fit through the gate: one order for all estimators.

Every ``fit`` reads in this order:

1. price: is the budget usable? (before any row is looked at)
2. validate: `validate_private_data`, shapes and labels;
3. plan: queries, noise and steps from public facts alone;
4. the gate: ``with open_gate(self, admit, ...) as curator``;
5. run: the plan releases through the curator;
6. attributes: post-processing of what was released.

`open_gate` makes the curator, which charges a shared budget before `admit` is called, holds
BLAS to one thread while releases are computed, and leaves `ledger_` and `privacy_spent_` on
the estimator. The curator and the rows in it are dropped with the block.

When the gate closes, one warning has all doubts about the fit, by public and released numbers.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any

import numpy as np

from skdp._counted import hidden_count
from skdp._sklearn import blas_on_one_thread
from skdp.exceptions import NoisyEstimateWarning, PrivacyWarning
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.books.resume import open_curator
from skdp.privacy.books.texts import some_of
from skdp.privacy.kernel.accounting import level_of_caller
from skdp.privacy.kernel.curator import Curator

# progress is reported at most so many times
_MOST_TICKS = 100
# seconds after which a fit shows a bar, and how wide that is
_LONG = 2.0
_WIDTH = 40


def headline(name, n_releases, n_rows, unit, epsilon, delta, adjacency, at_most=False):
    """Return what a fit is about to do, in a line."""
    releases = f"{'at most ' * at_most}{n_releases} release{'s' * (n_releases != 1)}"
    return (
        f"[{name}] {releases} from {n_rows} {unit}{'s' * (n_rows != 1)}, "
        f"epsilon={epsilon:.4g}, delta={delta:.4g}, {adjacency}"
    )


# epsilon above which a fit is hardly private; rows, and rows times epsilon, that are too few
_LOOSE, _HANDFUL, _NOTHING = 20.0, 5, 10.0

# labels are doubted if so many are known at most, beyond so many deviations of the noise
_MOST_LABELS, _SURELY = 0.9, 4.5

# rows are nearly equal if the squared length of their mean is that part of the largest, by what was
# given. Tables in a norm that is half too short exceed the first if they lie far from 0; one in 28
# with the median length does, and none with the length of all but a 20th of the rows. Even with
# right bounds a kernel has .87
_LONG_MEAN = {"data_norm": 0.8, "bounds": 0.9}
# and as long as a norm if their mean square is that part of its square
_FULL = 0.95


def are_few(n_rows, epsilon):
    """Return whether rows are too few for anything, which is said of every estimator."""
    return n_rows < _HANDFUL or n_rows * epsilon < _NOTHING


class Doubts:
    """What a user should know of a fit, each with a remedy; public and released numbers only.

    Parameters
    ----------
    of : estimator or str
        What is fitted, or the name of a function.
    """

    def __init__(self, of):
        self._of, self._texts, self._kind = of, [], PrivacyWarning
        self._grave: list[str] = []

    def named(self, places):
        """Return the names of some features, or their numbers, as in code."""
        names = getattr(self._of, "feature_names_in_", None)
        return some_of(places if names is None else names[places])

    def promise(self, text):
        """Take note of a doubt about what is promised, or about parameters."""
        self._texts.append(text)

    def noise(self, text):
        """Take note that what is released is mostly noise, or not what was asked for."""
        self._texts.append(text)
        self._grave.append(text)
        self._kind = NoisyEstimateWarning

    def of_labels(self, known, noise, n_rows):
        """Take note if a noisy count leaves no doubt that many rows have no known label.

        Parameters
        ----------
        known, noise : float, float
            Released number of rows that are not null, and the standard deviation of its noise.
        n_rows : int
            Number of rows, or the released one.

        Returns
        -------
        doubted : bool
            Whether there was something to say.
        """
        if getattr(self._of, "_is_made_up", False):
            return False
        hidden = hidden_count(self._of)
        # the number of rows has noise of its own; and weights without a total add up to any
        if hidden is not None:
            noise += math.inf if hidden.is_free else hidden.ledger.releases[-1].noise.scale
        if known + _SURELY * noise >= _MOST_LABELS * n_rows:
            return False
        classes = getattr(self._of, "classes", None)
        given = "" if classes is None else f"=[{some_of(classes)}]"
        self.noise(
            f"about {min(max(1 - known / n_rows, 0), 1):.0%} of the rows have a label outside "
            f"classes{given}, and contribute nothing. Compare classes with the labels in y."
        )
        return True

    def of_short_rows(self, most):
        """Take note that the mean square of rows, in units of their bound, is below a number."""
        unit, remedy = "data_norm", "Give a smaller data_norm"
        if getattr(self._of, "bounds", None) is not None:
            unit, remedy = "their bound", "Give narrower bounds"
        elif getattr(self._of, "data_norm", None) is None:
            unit = "what was found"
            remedy = "Check that columns of X vary, and by which bounds they were scaled"
        self.noise(
            "almost no row has an influence: the mean square of their lengths, in units of "
            f"{unit}, is below {most:.1g}. {remedy}."
        )

    def of_long_rows(self, square):
        """Take note if the mean square of rows, at least that part of a norm's, is next to all."""
        if square > _FULL:
            self.noise(
                f"nearly all rows are as long as data_norm={self._of.data_norm:.4g}, or longer and "
                "scaled down to it. Give a larger data_norm if you know that some are longer."
            )

    def of_equal_rows(self, mean):
        """Take note if public bounds leave little of what tells rows apart.

        Parameters
        ----------
        mean : float
            What the squared length of their mean is at least, in units of the longest row.
        """
        norm, bounds = (getattr(self._of, name, None) for name in _LONG_MEAN)
        if norm is not None and mean > _LONG_MEAN["data_norm"]:
            self.noise(
                f"nearly all rows are about as long as data_norm={norm:.4g}, or longer and scaled "
                "down to it, and point the same way: little is left of what tells them apart. "
                "Give a larger data_norm, or None; or subtract public numbers from columns far "
                "from 0."
            )
        if bounds is not None and mean > _LONG_MEAN["bounds"]:
            self.noise(
                "rows are nearly equal between their bounds, which are far too wide, or in another "
                "unit than X. Give narrower bounds, or None."
            )

    def of_budget(self, n_rows, unit, epsilon, delta, assumptions):
        """Take note of what is doubtful about any estimator."""
        if delta and delta * n_rows >= 1:
            self.promise(
                f"delta={delta:.4g} is not below 1 / {n_rows}, one over the number of {unit}s: "
                f"it allows a release of whole {unit}s. Give a delta below {0.1 / n_rows:.0e}."
            )
        if epsilon > _LOOSE:
            self.promise(
                f"epsilon={epsilon:.4g} gives almost no privacy: an outcome may be "
                f"{math.exp(min(epsilon, 700.0)):.0e} times as probable with a {unit} as without "
                f"it. Give an epsilon of at most {_LOOSE:.0f}, usually 0.1 to 8."
            )
        if are_few(n_rows, epsilon) and self._kind is not NoisyEstimateWarning:
            self.noise(
                f"with {n_rows} {unit}{'s' * (n_rows != 1)} at epsilon={epsilon:.4g}, the result "
                f"is mostly noise. Use more {unit}s or a larger epsilon: most estimators need at "
                f"least some hundreds of {unit}s, divided by epsilon."
            )
        for assumed in assumptions:
            self.promise(f"assumed public: {assumed}.")

    def say(self):
        """Warn, once, of all there is; in a run of a search, leave what is noise to that."""
        name = self._of if isinstance(self._of, str) else type(self._of).__name__
        heard = _OVERHEARD.get()
        if heard is not None:
            heard.extend(f"{name}: {text}" for text in self._grave)
        elif self._texts:
            texts = " ".join(f"({i}) {text}" for i, text in enumerate(self._texts, 1))
            text = texts if len(self._texts) > 1 else self._texts[0]
            warnings.warn(f"{name}: {text}", self._kind, stacklevel=level_of_caller())


# of this thread, for warnings and their filters are those of all threads
_OVERHEARD: ContextVar[list[str] | None] = ContextVar("doubts of one run of a search", default=None)


@contextmanager
def overheard() -> Iterator[list[str]]:
    """Yield a list to which fits add what is noise about them, in place of a warning."""
    heard: list[str] = []
    before = _OVERHEARD.set(heard)
    try:
        yield heard
    finally:
        _OVERHEARD.reset(before)


# squares of sums are beyond those of noise by that many of their deviations; and a mean gradient of
# that part of the longest is expected to be heard, if its square is that many times as long
_HEARD, _CLEAR_PART, _CLEARLY = 3.0, 0.1, 8.0


class Heard:
    """Whether the sum of noisy gradients was ever longer than its noise, by released numbers alone.

    Parameters
    ----------
    size : int
        Number of coordinates.
    variance : float
        Of the noise of a coordinate of the sum over all rounds.
    longest : float
        Bound on the norm of the sum of all gradients.
    """

    def __init__(self, size, variance, longest):
        self._total, self._variance, self._so_far = np.zeros(size), variance, 0.0
        self._least = size + _HEARD * math.sqrt(2 * size) + _HEARD
        clear = (_CLEAR_PART * longest) ** 2 > _CLEARLY * self._least * variance
        # nothing is to be said where little could be heard, by public numbers
        self._heard = not clear

    def add(self, gradient, part):
        """Take note of a gradient, which has that part of the variance."""
        self._total += gradient.ravel()
        self._so_far += part * self._variance
        self._heard |= bool(self._total @ self._total > self._least * self._so_far)

    def say(self, doubts):
        """Take note if nothing was heard."""
        if not self._heard:
            doubts.noise(
                "the released gradients are no longer than their noise: little or nothing was "
                "learned. Compare classes with the labels in y, and data_norm with the rows of X."
            )


class Progress:
    """Notes on how far a fit has come. They hold public numbers only.

    With ``verbose`` a line says what is about to be done; a fit that takes seconds shows a bar.

    Parameters
    ----------
    estimator : estimator
        Whose fit it is. Callbacks that were set on it get a task for every hundredth of the
        releases: neither rows nor labels nor an unfinished model, since those may be
        private. A wish to stop early is not heard: the number of steps is public.
    n_releases : int
        How many releases there will be, more or less.
    """

    def __init__(self, estimator, n_releases):
        self._estimator, self._total = estimator, max(1, n_releases)
        self._ticks, self._shown = min(self._total, _MOST_TICKS), 0
        self._name, self._begun, self._drawn = type(estimator).__name__, monotonic(), False
        self._context = None
        if getattr(estimator, "_skl_callbacks", None):
            self._context = estimator._init_callback_context(max_subtasks=self._ticks)
            self._context.call_on_fit_task_begin(estimator=estimator)

    def __call__(self, done):
        """Take note that so many releases were made."""
        reached = min(self._ticks, done * self._ticks // self._total)
        moved = reached > self._shown
        while self._shown < reached:
            self._shown += 1
            if self._context is not None:
                task = self._context.subcontext(task_name="releases")
                task.call_on_fit_task_begin(estimator=self._estimator)
                task.call_on_fit_task_end(estimator=self._estimator)
        long = self._drawn or monotonic() - self._begun > _LONG
        if moved and long and self._estimator.verbose:
            self._draw()

    def announce(self, *facts):
        """Print the headline, if `verbose`."""
        if self._estimator.verbose:
            print(headline(self._name, self._total, *facts))

    def _draw(self):
        """Draw a bar over the last one."""
        full, share = _WIDTH * self._shown // self._ticks, 100 * self._shown // self._ticks
        bar = f"[{self._name}] |{'#' * full}{'.' * (_WIDTH - full)}| {share:3} % of the releases"
        self._drawn = True
        print(f"\r{bar}", end="\n" if self._shown == self._ticks else "", flush=True)

    def close(self):
        """Take note that the fit is over."""
        self(self._total)
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator)


@contextmanager
def open_gate(
    estimator: Any,
    admit: Callable[[], Any],
    *,
    n_rows: int,
    delta: float,
    epsilon: float | None = None,
    mu: float | None = None,
    adjacency: str | None = None,
    unit: str = "row",
    assumptions: tuple[str, ...] = (),
    n_releases: int | None = None,
    at_most: bool = False,
    shared: bool = True,
    doubts: Doubts | None = None,
) -> Iterator[Curator]:
    """Open the gate of a fit; write the ledger and the total when it closes.

    Parameters
    ----------
    estimator : estimator
        Whose fit it is. Its `epsilon`, `adjacency`, `budget` and `random_state` are read;
        its `ledger_` and `privacy_spent_` are written.
    admit : callable
        Returns the private rows; called at the first release, after the charge.
    n_rows, delta : int, float
        Number of rows (or clients), and the delta that the plan may spend; both public.
    epsilon, adjacency : float and str, default=None
        Where they are not the estimator's own.
    mu : float, default=None
        Gaussian-DP parameter of the whole fit, if all of it is Gaussian.
    unit : {"row", "group"}, default="row"
        What is protected.
    assumptions : tuple of str, default=()
        What was read from the data beforehand and is assumed public.
    n_releases : int, default=None
        Number of releases, more or less, if progress is to be shown.
    at_most : bool, default=False
        Whether what is released first may save some of them.
    shared : bool, default=True
        Whether a shared budget is charged; False for a fit that releases nothing.
    doubts : Doubts, default=None
        What the estimator has to say itself; it may add to that until the gate closes.

    Yields
    ------
    curator : Curator
        The only way out for a private number.
    """
    hidden = hidden_count(estimator)
    # the number of rows was released before, and all of the fit was charged
    first = hidden is not None and not hidden.is_free
    progress = None if n_releases is None else Progress(estimator, n_releases + first)
    epsilon = estimator.epsilon if epsilon is None else epsilon
    adjacency = estimator.adjacency if adjacency is None else adjacency
    # what is made up is nobody's, and is not written anywhere
    is_private = shared and not getattr(estimator, "_is_made_up", False)
    if at_most and not is_private:
        estimator._may_be_shorter = True
    curator = open_curator(
        estimator if is_private else None,
        admit,
        n_rows=n_rows if hidden is None else hidden.most,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency if hidden is None else hidden.adjacency,
        budget=estimator.budget if shared and not first else None,
        mu=mu,
        random_state=estimator.random_state,
        purpose=type(estimator).__name__,
        assumptions=assumptions,
        progress=progress,
        unit=unit,
    )
    for name in ("ledger_", "privacy_spent_"):
        # of an earlier fit: if this one ends midway, attributes may be of both
        vars(estimator).pop(name, None)
    if progress is not None:
        facts = (epsilon, adjacency) if hidden is None else (hidden.epsilon, hidden.adjacency)
        progress.announce(n_rows, unit, facts[0], delta, facts[1], at_most)
    with blas_on_one_thread():
        yield curator
    if progress is not None:
        progress.close()
    ledger = Ledger.of(curator.ledger)
    ledger = ledger if hidden is None else hidden.before(ledger)
    # a fit that released nothing has spent no delta either
    spent = float(delta) if ledger.releases else 0.0
    estimator.ledger_ = ledger
    estimator.privacy_spent_ = (ledger.epsilon(spent), spent)
    if shared:
        doubts = doubts or Doubts(estimator)
        doubts.of_budget(n_rows, unit, epsilon, delta, assumptions)
        doubts.say()

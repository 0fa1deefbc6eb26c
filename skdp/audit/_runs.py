# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Many independent fits, in parallel."""

import copy
import sys
import time
import warnings

from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone

from skdp.audit._outputs import Failure, released, scored
from skdp.audit._parameters import parameters
from skdp.privacy._bits import SeededBits

#: fits of one task at most
MOST_FITS = 64


def fresh(estimator, seed):
    """Return an unfitted copy with its own randomness.

    Parameters
    ----------
    estimator : object
        With `get_params` it is cloned, otherwise copied.
    seed : int or None
        For every parameter `random_state`; None lets estimators ask the operating system.
    """
    if not hasattr(estimator, "get_params"):
        return copy.deepcopy(estimator)
    # a shared generator would be copied with its state, and repeat itself
    names = [name for name in parameters(estimator) if name.split("__")[-1] == "random_state"]
    seeds = {
        name: None if seed is None else (seed + step) % 2**32 for step, name in enumerate(names)
    }
    return clone(estimator).set_params(**seeds)


def fit_once(estimator, data, seed, score):
    """Return the outcome of one fit, and the fitted estimator or None."""
    fitted = None
    try:
        fitted = fresh(estimator, seed)
        fitted.fit(*data)
        return (released(fitted) if score is None else scored(score(fitted))), fitted
    except Exception as error:  # whatever it is, it tells something
        return Failure(type(error).__name__, str(error)), None


def _fit_many(estimator, data, seeds, score):
    with warnings.catch_warnings():
        # seeded noise, and whatever else the estimator has to say, once for every fit
        warnings.simplefilter("ignore")
        return [fit_once(estimator, data, seed, score)[0] for seed in seeds]


class Progress:
    """A bar on standard error."""

    def __init__(self, total, shown):
        self.total, self.shown, self.done, self._next = total, shown, 0, 0.0

    def add(self, count):
        """Draw the bar again, at most five times a second."""
        self.done += count
        if self.shown and (time.monotonic() >= self._next or self.done >= self.total):
            self._next = time.monotonic() + 0.2
            part = min(self.done / self.total, 1.0)
            bar = "#" * round(30 * part)
            text = f"\raudit [{bar:30}] {self.done}/{self.total} fits"
            sys.stderr.write(text + "\n" * (self.done >= self.total))
            sys.stderr.flush()


class Fits:
    """Makes fits that share an estimator, a score and a stream of seeds.

    Parameters
    ----------
    estimator : object
        With a method `fit`.
    score : callable or None
        Maps a fitted estimator to what is looked at.
    random_state : int or None
        Where seeds come from; None leaves fits to the operating system.
    n_jobs : int or None
        For joblib.
    progress : Progress
        Told of every fit.
    """

    def __init__(self, estimator, score, random_state, n_jobs, progress):
        self.estimator, self.score, self.n_jobs = estimator, score, n_jobs
        self.progress = progress
        self._bits = None if random_state is None else SeededBits(random_state, "audit")

    def seeds(self, count):
        """Return seeds that were never returned before, or as many None."""
        if self._bits is None:
            return [None] * count
        return [int(word) >> 32 for word in self._bits.words(count)]

    def run(self, requests):
        """Fit to several data sets.

        Parameters
        ----------
        requests : list of (tuple, int)
            The arguments of `fit`, and how often.

        Returns
        -------
        outcomes : list of lists
            In the order of the requests.
        """
        total = sum(count for _, count in requests)
        most = max(1, min(MOST_FITS, -(-total // (4 * effective_n_jobs(self.n_jobs)))))
        tasks = [
            (place, data, self.seeds(min(most, count - start)))
            for place, (data, count) in enumerate(requests)
            for start in range(0, count, most)
        ]
        found: list[list] = [[] for _ in requests]
        parts = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(_fit_many)(self.estimator, data, seeds, self.score) for _, data, seeds in tasks
        )
        for (place, _, _), part in zip(tasks, parts, strict=True):
            found[place] += part
            self.progress.add(len(part))
        return found

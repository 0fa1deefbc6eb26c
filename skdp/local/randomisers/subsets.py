# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Subset selection, the local randomiser of categories.

A row names some of the categories: its own one with probability p, and others at random. The best
number of names falls with the budget; with one name this is randomised response. M. Ye and A. Barg,
"Optimal schemes for discrete distribution estimation under locally differential privacy", IEEE
Transactions on Information Theory 2018; S. Wang et al., "Mutual information optimally local
private discrete distribution estimation", 2016. In this order: the randomiser; its best parameters.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from skdp.local.randomisers.base import (
    BLOCK,
    Randomiser,
    budget_of,
    check_local_epsilon,
    check_packed,
    coins,
    in_chunks,
    largest_chance,
    pack_numbers,
    positions_below,
    unpack_numbers,
)
from skdp.local.randomisers.cube import uniform_subsets


@dataclass(frozen=True)
class CategorySubsets(Randomiser):
    """Subset selection for one category of each of several features.

    Parameters
    ----------
    sizes : tuple of int
        Number of categories of every feature, at least 2.
    widths : tuple of int
        Number of named categories, at most half.
    chances : tuple of float
        Probability of naming the own category, above the share of named categories.
    asked : int
        Number of random features on which a row reports.

    Notes
    -----
    A row is the indicator of a category of each feature, one feature after the other; a report is
    the indicator of the named ones, and zero for features that were not drawn. Of k categories w
    are named. A subset with the row's own category has probability ``p / C(k-1, w-1)``, another
    one ``(1-p) / C(k-1, w)``: the logarithm of the ratio is ``logit p - logit (w/k)``. A row
    without a category takes one at random. The draw of features does not depend on the row, so the
    budget is the budget of the `asked` features with the largest prices.
    """

    sizes: tuple[int, ...]
    widths: tuple[int, ...]
    chances: tuple[float, ...]
    asked: int

    def __post_init__(self):
        n_features = len(self.sizes)
        alike = n_features == len(self.widths) == len(self.chances)
        if not alike or not 1 <= self.asked <= n_features:
            raise ValueError("sizes, widths and chances must be alike, and asked at most as many.")
        for k, w, p in zip(self.sizes, self.widths, self.chances, strict=True):
            if not (1 <= w <= k / 2 and w / k < p < 1.0):
                raise ValueError(
                    "of k categories at most k/2 must be named, w of them with a chance between "
                    f"w/k and 1; got k={k!r}, w={w!r}, chance {p!r}."
                )

    exact = True
    # every category needs a word
    block_entries = BLOCK

    @property
    def n_dims(self):
        """Number of categories of all features."""
        return sum(self.sizes)

    @cached_property
    def epsilon(self):
        """The budget of one report, rounded up by the accuracy of the arithmetic."""
        parts = zip(self.sizes, self.widths, self.chances, strict=True)
        prices = sorted(budget_of(p, math.log(w / k)) for k, w, p in parts)
        return math.nextafter(math.fsum(prices[-self.asked :]), math.inf)

    @property
    def bound(self):
        """Bound on the entries of reports."""
        return 1.0

    @property
    def columns(self):
        """The entries of every feature, a list of slices."""
        ends = np.cumsum((0, *self.sizes)).tolist()
        return [slice(*pair) for pair in pairwise(ends)]

    @property
    def others(self):
        """Probability of naming a category other than the row's own, for every feature."""
        parts = zip(self.sizes, self.widths, self.chances, strict=True)
        return [(w - p) / (k - 1) for k, w, p in parts]

    def message_bits(self, number_bits=32, n_entries=None):
        """Return the number of bits of a message with one report: names, or one per category."""
        width, most = self._listed
        return min(width * most, self.n_dims) if n_entries is None else n_entries

    @cached_property
    def _listed(self):
        """Bits of a name in a list, and largest number of names."""
        most = sum(sorted(self.widths)[-self.asked :])
        return (self.n_dims - 1).bit_length(), most

    def packed(self, report, grid):
        """Return one report as bytes: one bit per category, or the names if these are shorter."""
        width, most = self._listed
        if width * most >= self.n_dims:
            return pack_numbers(report > 0.5, 1)
        names = np.flatnonzero(report > 0.5)
        # the last one is repeated: what is sent is as long, whichever features were drawn
        return pack_numbers(np.append(names, [names[-1]] * (most - len(names))), width)

    def unpacked(self, message, grid):
        """Return the report that bytes are of; see `Randomiser`."""
        width, most = self._listed
        if width * most >= self.n_dims:
            named = unpack_numbers(message, 1, self.n_dims)
        else:
            names, named = unpack_numbers(message, width, most), np.zeros(self.n_dims)
            check_packed(names.max() < self.n_dims)
            named[names] = 1.0
        counts = np.array([named[columns].sum() for columns in self.columns])
        check_packed(int((counts == self.widths).sum()) == self.asked)
        check_packed(int((counts == 0).sum()) == len(self.sizes) - self.asked)
        # names in another order would be another message of the same report
        check_packed(self.packed(named, grid) == message)
        return named.astype(np.float64)

    def log_law(self, reports, vector):
        """Return the logarithms of the probabilities of reports; see `Randomiser`."""
        law = np.zeros(len(reports))
        parts = zip(self.columns, self.sizes, self.widths, self.chances, strict=True)
        for columns, k, w, p in parts:
            named, own = reports[:, columns], np.flatnonzero(vector[columns])
            # relative to subsets of any categories; a row without one names any
            if len(own):
                inside, outside = math.log(p * k / w), math.log((1.0 - p) * k / (k - w))
                here = np.where(named[:, own[0]] > 0.5, inside, outside)
                law += np.where(named.any(axis=1), here, 0.0)
        return law

    def randomise(self, vectors, bits, n_threads=1, *, out=None):
        """Return the named categories of every row; see `Randomiser`.

        Notes
        -----
        Every row uses the same number of words. Coins, positions and subsets are exact.
        """
        n_rows = len(vectors)
        out = np.empty(vectors.shape) if out is None else out
        drawn = self._drawn(n_rows, bits, n_threads)
        parts = zip(self.columns, self.sizes, self.widths, self.chances, strict=True)
        for feature, (columns, k, w, p) in enumerate(parts):
            given = vectors[:, columns] > 0.5
            anything = positions_below(k, n_rows, bits)
            own = np.where(given.any(axis=1), given.argmax(axis=1), anything)
            kept = coins(p, n_rows, bits)
            named = chosen_subsets(w - kept, k - 1, bits, n_threads)
            place = np.arange(k - 1) + (np.arange(k - 1) >= own[:, None])
            block = np.zeros((n_rows, k))
            np.put_along_axis(block, place, named, axis=1)
            block[np.arange(n_rows), own] = kept
            block[~drawn[:, feature]] = 0.0
            out[:, columns] = block
        return out

    def _drawn(self, n_rows, bits, n_threads):
        """Return the features of every row's report."""
        d = len(self.sizes)
        if self.asked == d:
            return np.ones((n_rows, d), dtype=bool)
        return chosen_subsets(np.full(n_rows, self.asked), d, bits, n_threads)

    def estimates(self, counts):
        """Return unbiased frequencies and their errors.

        Parameters
        ----------
        counts : ndarray of shape (n_dims,)
            Number of reports that name each category.

        Returns
        -------
        frequencies, errors : list of ndarray
            For every feature the frequencies, and their standard errors, which cover the noise and
            the sampling of rows. Without reports all frequencies are equal, and the errors
            infinite.
        n_reports : ndarray of shape (n_features,)
            Number of reports on each feature.
        """
        frequencies, errors, n_reports = [], [], []
        parts = zip(self.columns, self.widths, self.chances, self.others, strict=True)
        for columns, w, p, q in parts:
            own = counts[columns]
            n_own = round(own.sum() / w)
            n_reports.append(n_own)
            if not n_own:
                frequencies.append(np.full(len(own), 1.0 / len(own)))
                errors.append(np.full(len(own), math.inf))
                continue
            share = own / n_own
            frequencies.append((share - q) / (p - q))
            # no category is expected to be named less often than q, nor more often than p
            share = np.clip(share, q, p)
            errors.append(np.sqrt(share * (1.0 - share) / n_own) / (p - q))
        return frequencies, errors, np.array(n_reports)

    def squared_errors(self):
        """Return the mean squared error of the frequencies of each feature, for one row.

        Returns
        -------
        errors : list of float
            Errors summed over the categories. The part of the noise is the same for all
            frequencies; the part of the draw of features is for equal frequencies, the worst case.
        """
        rare = len(self.sizes) / self.asked
        parts = zip(self.sizes, self.chances, self.others, strict=True)
        noises = [
            (k, (k * q * (1 - q) + (1 - p - q) * (p - q)) / (p - q) ** 2) for k, p, q in parts
        ]
        return [rare * noise + (rare - 1.0) * (1.0 - 1.0 / k) for k, noise in noises]


def chosen_subsets(sizes, n_dims, bits, n_threads=1):
    """Return uniform subsets of given sizes, a bool array (n, n_dims)."""
    chosen = np.empty((len(sizes), n_dims), dtype=bool)
    sizes = np.asarray(sizes, dtype=np.int64)

    def work(rows, words):
        chosen[rows], tied = uniform_subsets(words, sizes[rows])
        return np.flatnonzero(tied)

    in_chunks(work, len(sizes), n_dims, bits, n_threads)
    return chosen


def best_subsets(epsilon, sizes):
    """Return the randomiser of least error for a budget.

    Parameters
    ----------
    epsilon : float
        Budget of one report in nats, from 1e-6 to 1e6.
    sizes : sequence of int
        Number of categories of every feature.

    Returns
    -------
    randomiser : CategorySubsets
        Randomiser with an `epsilon` of at most the budget.

    Notes
    -----
    Near ``k / (exp(epsilon) + 1)`` names of k are best; the whole numbers around that are
    compared. Likewise for how many features a row is asked: each gets an equal share.
    """
    epsilon, tried = check_local_epsilon(epsilon), []
    for asked in range(1, len(sizes) + 1):
        # sums of budgets are rounded up
        part = epsilon / asked * (1.0 - 2.0**-50)
        if asked > 1 and part < 1e-6:
            break
        best = [_best_width(part, k) for k in sizes]
        made = CategorySubsets(tuple(sizes), *map(tuple, zip(*best, strict=True)), asked)
        tried.append(made)
    return min(tried, key=lambda made: math.fsum(made.squared_errors()))


def _best_width(epsilon, k):
    """Return how many of k categories are best named, and the chance of the own one."""
    middle = k / (math.exp(min(epsilon, 700.0)) + 1.0)
    found = []
    for w in {max(1, math.floor(middle)), min(max(1, math.ceil(middle)), k // 2)}:
        p = largest_chance(epsilon, math.log(w / k))
        if p > w / k:
            error = CategorySubsets((k,), (w,), (p,), 1).squared_errors()[0]
            found.append((error, w, p))
    if not found:
        raise ValueError(f"epsilon must be larger for {k} categories; got {epsilon!r}.")
    return min(found)[1:]

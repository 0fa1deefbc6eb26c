# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Plans of fits: what will be released and how noisy, found out without a private row.

Every number that leaves private rows passes the gate, and all that decides about releases is
public. So a fit on made-up rows of the same shape writes the ledger that a fit on private rows will
write.
"""

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import check_scalar

from skdp._gate import headline
from skdp.exceptions import PrivacyWarning
from skdp.io import stream_arrays
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.books.texts import tags, what_is_drawn
from skdp.privacy.laws.calibration import signal_to_noise

# made-up rows before they are repeated; numbers that are made up in memory
_BLOCK, _IN_MEMORY = 1000, 2**26
# of the first column of a table
_WIDTH = 90
#: signal to noise of a linear classifier from which its accuracy is so: 156 cells of the accuracy
#: page, 13 tables
OUTLOOKS = (
    (300.0, "usually level with the fit without privacy"),
    (50.0, "usually within a point of the fit without privacy, at worst five below it"),
    (10.0, "usually four points below the fit without privacy, at worst twelve"),
    (2.0, "usually fourteen points below the fit without privacy, at worst twenty-seven"),
    (0.0, "mostly noise: almost nothing will be learned"),
)


def outlook(signal):
    """Return what a linear model of a signal to noise can do, in words."""
    return next(words for least, words in OUTLOOKS if signal >= least)


@dataclass(frozen=True, repr=False)
class FitPlan:
    """What a fit will release, and how noisy; as returned by the method `plan` of an estimator.

    Parameters
    ----------
    name : str
        Of the estimator.
    n_samples, n_features : int
        Shape of the rows.
    epsilon, delta : float
        The budget.
    ledger : Ledger
        The releases, as a fit of that shape will have them in `ledger_`; but for sensitivities and
        noise in units that were released before, of which only the ratio is the same. Where a fit
        may make fewer steps or searches, at the same price, the ledger has the most.
    n_iter : int or None
        Steps, of an estimator that takes steps, at most.
    signal : float or None
        Signal to noise of a linear classifier under Gaussian noise: n mu / (a sqrt(p)) for n rows,
        p coefficients and a Gaussian-DP parameter mu of the whole fit, a being 1 under zero-out
        and 2 under replace-one. `outlook` has it in words.
    at_most : bool
        Whether a fit may make fewer steps or searches, by what it releases first.
    """

    name: str
    n_samples: int
    n_features: int
    epsilon: float
    delta: float
    ledger: Ledger
    n_iter: int | None = None
    signal: float | None = None
    at_most: bool = False

    @property
    def n_releases(self) -> int:
        """Number of releases."""
        return sum(release.count for release in self.ledger.releases)

    @property
    def n_passes(self) -> float | None:
        """Passes over the rows, random batches by their expected size; None for a search."""
        if any(release.noise.law in ("search", "fits") for release in self.ledger.releases):
            return None
        return sum(release.count * self._share_read(release) for release in self.ledger.releases)

    @property
    def outlook(self) -> str | None:
        """What a linear classifier of such a signal to noise usually reaches."""
        return None if self.signal is None else outlook(self.signal)

    def _share_read(self, release):
        sampling = release.noise.sampling
        if sampling is not None and release.noise.by_chance:
            return sampling.batch_size / self.n_samples
        if release.rows is None:
            return 1.0
        return (release.rows[1] - release.rows[0]) / self.n_samples

    def _shares(self):
        """Return the part of the budget of every release, None where prices do not add up so."""
        releases = self.ledger.releases
        noises = [release.noise for release in releases]
        if any(noise.by_chance for noise in noises):
            return [None] * len(releases)
        if all(noise.mu for noise in noises):
            prices = [r.noise.mu**2 * r.count for r in releases]
        elif not any(noise.mu or noise.delta for noise in noises):
            prices = [r.noise.epsilon * r.count for r in releases]
        else:
            return [None] * len(releases)
        return [price / sum(prices) for price in prices]

    def _cells(self):
        """Yield the cells of the table, a row for each kind of release."""
        yield ["release", "times", "numbers", f"noise ({self.ledger.unit or 'row'}s)", "share"]
        for release, share in zip(self.ledger.releases, self._shares(), strict=True):
            noise = release.noise
            added = noise.scale and noise.sensitivity and noise.law != "local"
            rows = noise.scale / noise.sensitivity if added else 0.0
            query = release.query
            yield [
                query if len(query) <= _WIDTH else query[: _WIDTH - 3] + "...",
                str(release.count),
                str(release.size),
                f"{rows:.3g}" if rows else what_is_drawn(noise, 3),
                "" if share is None else f"{share:.0%}",
            ]

    def _notes(self):
        """Return what is said below the table."""
        unit = self.ledger.unit or "row"
        notes = [f"Noise: its scale, in units of what one {unit} can change."]
        if self.n_passes:
            passes = f"{self.n_passes:.4g} pass{'es' * (self.n_passes != 1)} over the rows"
            steps = "" if self.n_iter is None else f", n_iter_={self.n_iter}"
            notes[0] = f"{passes}{steps}. {notes[0]}"
        if self.signal is not None:
            notes.append(f"Signal to noise {self.signal:.3g}: {self.outlook}.")
        return notes + [f"Assumed public: {a}." for a in self.ledger.assumptions]

    def _headline(self):
        adjacency, unit = self.ledger.adjacency or "no release", self.ledger.unit or "row"
        facts = self.n_samples, unit, self.epsilon, self.delta, adjacency
        return headline(self.name, self.n_releases, *facts, self.at_most)

    def __repr__(self) -> str:
        cells = list(self._cells())
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        first, *others = widths
        lines = [
            "  "
            + f"{row[0]:<{first}}"
            + "".join(f"  {c:>{w}}" for c, w in zip(row[1:], others, strict=True))
            for row in cells
        ]
        return "\n".join([self._headline(), *lines, *self._notes()])

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        table = f"<tr>{tags('th', head)}</tr>" + "".join(f"<tr>{tags('td', r)}</tr>" for r in rows)
        return tags("p", [self._headline()]) + f"<table>{table}</table>" + tags("p", self._notes())


class PlanMixin:
    """The plan of a fit, for estimators that pass the gate."""

    #: whether it fits made-up rows, with the most steps that private rows may get
    _is_made_up = False
    #: whether such a fit said that others may be shorter
    _may_be_shorter = False

    def plan(self, n_samples: int, n_features: int, *, n_classes: int | None = None) -> FitPlan:
        """Return what a fit will release, and how noisy, without a private row.

        A copy of the estimator is fitted to made-up rows of that shape, in about the time of the
        fit itself; no `budget` is charged, and the estimator stays as it is. What is released, how
        often and at what price depends on public numbers only, so it will be the same for private
        rows. Units may differ, where they follow from numbers that the fit released before. A fit
        may make fewer steps at the same price, see `solvers.Preconditioned`, and search no scales
        beside a `data_norm` that passes its check: steps have less noise then.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of the rows.
        n_classes : int, default=None
            Number of classes, for classifiers without public `classes`; 2 if None.

        Returns
        -------
        plan : FitPlan
            It prints as a table: each release, the noise in units of what one row can change, and
            the share of the budget; passes over the rows; and what accuracy to expect of a linear
            model.

        Raises
        ------
        ValueError
            If a parameter is unusable for rows of that shape, as in `fit`.
        """
        sizes = {"n_samples": n_samples, "n_features": n_features}
        for name, size in sizes.items():
            check_scalar(size, name, Integral, min_val=1)
        if n_classes is not None:
            check_scalar(n_classes, "n_classes", Integral, min_val=2)
        model: Any = clone(self)
        model._is_made_up = True
        parameters = model.get_params(deep=False)
        quiet: dict[str, Any] = {"budget": None, "random_state": None, "verbose": 0}
        if isinstance(parameters.get("bounds"), dict):
            # made-up rows have no names
            quiet["bounds"] = dict(enumerate(parameters["bounds"].values()))
        model.set_params(**{name: quiet[name] for name in quiet if name in parameters})
        with warnings.catch_warnings():
            # what is made up is nothing to warn about
            warnings.simplefilter("ignore", PrivacyWarning)
            model.fit(*_made_up(model, int(n_samples), int(n_features), n_classes))
        signal, steps = None, getattr(model, "n_iter_", None)
        if steps is not None:
            steps = int(np.max(steps))
        spent, delta = model.privacy_spent_
        epsilon = spent if model.epsilon is None else model.epsilon
        if delta and hasattr(model, "coef_") and is_classifier(model):
            n_coefs = model.coef_.size + np.size(model.intercept_)
            signal = signal_to_noise(n_samples, epsilon, delta, model.ledger_.adjacency, n_coefs)
        budget = float(epsilon), float(delta)
        names = type(self).__name__, int(n_samples), int(n_features)
        return FitPlan(*names, *budget, model.ledger_, steps, signal, model._may_be_shorter)


def _made_up(model: Any, n_samples: int, n_features: int, n_classes: int | None) -> list[Any]:
    """Return arguments of `fit` that nobody owns."""
    shape = n_samples, n_features
    # cosines of angles that no two columns share: no row lies far out
    places = np.arange(1.0, min(n_samples, _BLOCK) + 1)
    drawn = np.cos(np.outer(places, np.sqrt(np.arange(2.0, n_features + 2))))
    y = _made_up_targets(model, n_samples, n_classes)
    if n_samples * n_features <= _IN_MEMORY:
        X = np.resize(drawn, shape)
        return [X] if y is None else [X, y]
    # one row in memory, as often as need be
    made = stream_arrays(np.broadcast_to(drawn[0], shape), y)
    return [made] if y is None else list(made)


def _made_up_targets(model, n_samples, n_classes):
    """Return labels or targets, in turn; None for an estimator without."""
    if is_classifier(model):
        # a search has them in its model
        named = [v for k, v in model.get_params().items() if k.split("__")[-1] == "classes"]
        classes = next((classes for classes in named if classes is not None), range(n_classes or 2))
        return np.resize(np.asarray(classes), n_samples)
    if is_regressor(model):
        return np.resize(np.linspace(-1.0, 1.0, min(n_samples, _BLOCK)), n_samples)
    return None

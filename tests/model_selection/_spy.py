# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A search whose fits and scores are written down, and what must be true of the notes."""

import math

import numpy as np

from skdp import DPLogisticRegression, privacy_spent
from skdp.model_selection import RowScorer
from skdp.privacy import gdp_mu

FITS, SCORED = [], []


class Spy(DPLogisticRegression):
    """Notes every fit; rows carry their position in the first column, times 1e-6."""

    def fit(self, X, y):
        super().fit(X, y)
        FITS.append(
            {
                "rows": positions(X),
                "null": not np.any(np.asarray(X)),
                "epsilon": self.epsilon,
                "delta": self.delta,
                "seed": self.random_state,
                "coef": self.coef_.copy(),
                "model": self,
                "C": self.C,
            }
        )
        return self


def positions(X):
    return np.rint(np.asarray(X)[:, 0] * 1e6).astype(int).tolist()


def noted_accuracy(estimator, X, y):
    SCORED.append({"rows": positions(X), "C": estimator.C})
    hits = (estimator.predict(X) == y).astype(float)
    SCORED[-1]["mean"] = hits.mean()
    return hits


NOTED = RowScorer(noted_accuracy, bounds=(0.0, 1.0))


def data(n_rows=60):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(n_rows, 3))
    y = (X[:, 1] + rng.normal(0, 0.3, n_rows) > 0).astype(int)
    # 0 would be a row of nothing
    X[:, 0] = np.arange(1, n_rows + 1) * 1e-6
    return X, y


def notes(search, X, y):
    """Fit a search; return its fits to private rows, and what was scored."""
    FITS.clear(), SCORED.clear()
    search.fit(X, y)
    return [fit for fit in FITS if not fit["null"]], list(SCORED)


def faults(search, X, y):
    """Fit a search, and return the names of the rules that it broke."""
    fits, scored = notes(search, X, y)
    plan, found = search.plan_, set()
    total = gdp_mu(search.epsilon, search.delta)
    mus = [gdp_mu(fit["epsilon"], fit["delta"]) for fit in fits]
    runs = mus[:-1] if plan.refit_share else mus
    if any(mu > plan.mu_run * (1 + 1e-6) for mu in runs):
        found.add("share")
    if plan.strategy == "all" and math.hypot(*mus) > total * (1 + 1e-6):
        found.add("total")
    trained = {row for fit in fits[: len(runs)] for row in fit["rows"]}
    if trained & {row for one in scored for row in one["rows"]}:
        found.add("rows")
    if len({fit["coef"].tobytes() for fit in fits}) < len(fits):
        found.add("noise")
    if search.random_state is not None and len({fit["seed"] for fit in fits}) < len(fits):
        found.add("seed")
    if privacy_spent(search.best_estimator_).ledger != search.ledger_:
        found.add("ledger")
    # a score beyond the bounds is moved to them
    if any(0 < search.best_score_ == one["mean"] < 1 for one in scored):
        found.add("score")
    return found

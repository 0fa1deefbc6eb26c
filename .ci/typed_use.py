# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What users write, for a type checker; it is never run."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

import skdp
import skdp.exceptions
from skdp import (
    BoundedScaler,
    DPGridSearchCV,
    DPHingeSVM,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    FederatedDPLogisticRegression,
    Ledger,
    LedgerDisplay,
    LocalDPMean,
    PrivacyBudget,
    audit_privacy,
    privacy_card,
    privacy_spent,
    reconstruction_risk,
)
from skdp.audit import AuditResult, NeighbourPair, adversarial_pairs
from skdp.inspection import PrivacyCard, ReconstructionRisk
from skdp.local import optimal_privunit, shuffled_epsilon
from skdp.model_selection import RowScorer
from skdp.privacy import (
    Curator,
    GaussianMechanism,
    LaplaceMechanism,
    Release,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    sampled_mu,
)

X: npt.NDArray[np.float64] = np.ones((10, 2))
y: npt.NDArray[np.int64] = np.repeat([0, 1], 5)
version: str = skdp.__version__

budget: PrivacyBudget = PrivacyBudget(1.0, 1e-6, path=Path("budget"))
spent: tuple[float, float] = budget.spent

model: DPLogisticRegression = DPLogisticRegression(epsilon=1.0, classes=[0, 1], budget=budget)
model.fit(X, y).predict_proba(X)
ledger: Ledger = model.ledger_
releases: tuple[Release, ...] = ledger.releases
epsilon, delta = privacy_spent(model)
total: float = epsilon + delta
print(ledger, DPHingeSVM().fit(X, y).predict(X), DPLpRegressor().fit(X, y).coef_)
print(DPMean(epsilon=1.0).fit(X).location_, LocalDPMean().fit(X).location_)
print(BoundedScaler(bounds=(0, 1)).fit_transform(X))
print(FederatedDPLogisticRegression().fit(X, y, groups=y).coef_)

search: DPGridSearchCV = DPGridSearchCV(model, {"C": [0.1, 1.0]}, epsilon=2.0, scoring=RowScorer)
print(search.fit(X, y).best_params_)

risk: ReconstructionRisk = reconstruction_risk(1.0, 10)
card: PrivacyCard = privacy_card(model)
pairs: list[NeighbourPair] = adversarial_pairs(model)
audit: AuditResult = audit_privacy(model, pairs)
print(risk, card, audit, LedgerDisplay.from_estimator(model))
print(optimal_privunit(1.0, 10), shuffled_epsilon(1.0, 100, delta=1e-6))

mu: float = gdp_mu(1.0, 1e-6)
price: float = gdp_epsilon(mu, 1e-6) + gdp_delta(mu, 1.0)
print(Curator, GaussianMechanism, LaplaceMechanism, sampled_mu)
try:
    model.fit(X, y)
except skdp.exceptions.BudgetError as error:
    print(error)

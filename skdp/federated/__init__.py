# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Estimators for clients with any number of rows each."""

from skdp.federated._averaging import (
    FederatedAveraging,
    GradientSteps,
    Population,
    ProximalPoint,
)
from skdp.federated._logistic import FederatedDPLogisticRegression
from skdp.federated._messages import FederatedClient, FederatedRound

__all__ = [
    "FederatedAveraging",
    "FederatedClient",
    "FederatedDPLogisticRegression",
    "FederatedRound",
    "GradientSteps",
    "Population",
    "ProximalPoint",
]

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Audits: lower bounds on the epsilon of any estimator, from the differences between its fits."""

from skdp.audit._attack import clopper_pearson
from skdp.audit._audit import audit_outputs, audit_privacy
from skdp.audit._one_run import OneRunResult, audit_one_run
from skdp.audit._pairs import NeighbourPair, adversarial_pairs
from skdp.audit._result import AuditResult

__all__ = [
    "AuditResult",
    "NeighbourPair",
    "OneRunResult",
    "adversarial_pairs",
    "audit_one_run",
    "audit_outputs",
    "audit_privacy",
    "clopper_pearson",
]

# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Audits: coupled traces of fits, and lower bounds on epsilon from many fits."""

from skdp.audit._attack import clopper_pearson
from skdp.audit._audit import AuditResult, audit_outputs, audit_privacy
from skdp.audit._one_run import OneRunResult, audit_one_run
from skdp.audit._pairs import NeighbourPair, adversarial_pairs
from skdp.audit._trace import TracedRelease, TraceResult, trace_privacy

__all__ = [
    "AuditResult",
    "NeighbourPair",
    "OneRunResult",
    "TraceResult",
    "TracedRelease",
    "adversarial_pairs",
    "audit_one_run",
    "audit_outputs",
    "audit_privacy",
    "clopper_pearson",
    "trace_privacy",
]
